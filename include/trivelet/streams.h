// Where the bytes of a stream come from and go to: memory, files, pipes, or a class of one's own. Sizes and positions
// are bytes. An object is used by one thread at a time, though not always by the one that made it. Pointers are used
// during the call only, but for the memory of a MemorySource.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace trivelet {

/// What a packet of a video's stream is: the unit that players, multiplexers and networks handle. FORMAT.md "In
/// Matroska" says how a stream is divided into packets.
struct PacketInfo {
  enum class Kind {
    kHead,  ///< signature, header and boxes before the first GOP
    kGop,   ///< a GOP and the boxes behind it
    kEnd    ///< index and end
  };
  Kind kind = Kind::kEnd;
  bool key = false;  ///< a GOP that depends on none before it: decoding can begin here
  std::uint64_t first_frame = 0;
  std::uint64_t frames = 0;
  std::int64_t begin_pts = 0;  ///< of the first frame, in units of the stream's time base
  std::int64_t end_pts = 0;    ///< where the last frame ends
};

/// Where a stream goes. Written strictly forward.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  /// Takes all of them, or throws Error(kIo).
  virtual void write(const void* data, std::size_t size) = 0;
  /// An Encoder calls it behind the last byte of each packet.
  virtual void end_packet(const PacketInfo&) {}
};

/// Where a stream comes from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Reads up to `size` bytes at the current position; fewer only at the end. Throws Error(kIo).
  virtual std::size_t read(void* data, std::size_t size) = 0;
  virtual bool seekable() const = 0;
  virtual void seek(std::uint64_t position) = 0;  ///< up to size(), only when seekable. Throws Error(kIo)
  virtual std::uint64_t size() const = 0;         ///< only when seekable
};

/// A stream in memory; does not own it.
class MemorySource final : public ByteSource {
 public:
  MemorySource(const void* data, std::size_t size) : data_(static_cast<const std::byte*>(data)), size_(size) {}
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return true; }
  void seek(std::uint64_t position) override;
  std::uint64_t size() const override { return size_; }

 private:
  const std::byte* data_;
  std::size_t size_;
  std::size_t position_ = 0;
};

class MemorySink final : public ByteSink {
 public:
  void write(const void* data, std::size_t size) override;
  std::vector<std::byte> bytes;
};

/// A file, or "-" for standard input. Regular files can seek, pipes cannot. Nothing is read but what is asked for:
/// parts of a file are to cost no more than these, and what stands behind them in a pipe may not have been written yet.
class FileSource final : public ByteSource {
 public:
  explicit FileSource(const std::string& path);
  ~FileSource() override;
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;
  std::size_t read(void* data, std::size_t size) override;
  bool seekable() const override { return seekable_; }
  void seek(std::uint64_t position) override;
  std::uint64_t size() const override { return size_; }

 private:
  std::string path_;
  int fd_ = -1;
  bool seekable_ = false;
  std::uint64_t size_ = 0;
};

/// A file that appears under its name only when complete: bytes go to `path`.part, which commit() renames; without a
/// commit the destructor removes it. "-" is standard output; devices and pipes are written directly. An existing file
/// is replaced only when `overwrite` says so (else BadArgument). Write errors (disk full, closed pipe) throw Io with
/// the path and the system's reason, as does a second process that wants to write the same file. Writes are buffered.
/// A file that is replaced hands its permissions down.
class FileSink final : public ByteSink {
 public:
  FileSink(const std::string& path, bool overwrite);
  ~FileSink() override;
  FileSink(const FileSink&) = delete;
  FileSink& operator=(const FileSink&) = delete;
  void write(const void* data, std::size_t size) override;
  /// Writes out what is buffered where readers may wait for it: to pipes, sockets and devices.
  void end_packet(const PacketInfo&) override;
  /// False for pipes, terminals and other places that take bytes in order only.
  bool seekable() const;
  /// Where the next write goes, in bytes from the start.
  std::uint64_t position() const;
  /// Writes out what is buffered and moves the next write to `position` (to patch a header). Throws Io when not
  /// seekable.
  void seek(std::uint64_t position);
  /// Hands the file descriptor back until commit(), for the many files of a series. Nothing may be written meanwhile.
  void suspend();
  /// Flushes, closes and renames; the file is then on the disk under its name. Nothing may be written afterwards.
  void commit();
  bool is_stdout() const;
  const std::string& temporary_path() const;  ///< empty for standard output, devices and pipes

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Removes the temporary files of all FileSinks that are open; async-signal-safe (for handlers of SIGINT).
void remove_temporaries() noexcept;

}  // namespace trivelet
