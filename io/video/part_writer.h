// Files of raw frames, in which the position of a frame follows from its number. So several processes can write them,
// each its part.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "io/video/video_io.h"
#include "trivelet/streams.h"
#include "trivelet/types.h"

namespace trivelet::io {

struct SharedOutput {
  std::string path{};            ///< it is being written under this name; "" = there are no such places
  std::uint64_t file = 0;        ///< the system's number of it
  std::uint64_t device = 0;      ///< and its device, in the numbering of `machine`, since other machines number devices
                                 ///< differently
  std::string machine{};         ///< as the system reports it, new at each start; "" = unknown
  std::uint64_t head_bytes = 0;  ///< before the first frame
  bool frame_lines = false;      ///< as Y4M has before each
};

std::vector<std::uint8_t> serialise(const SharedOutput& output);
/// Throws BadStream.
SharedOutput parse_shared_output(const std::uint8_t* data, std::size_t size);

/// A file that another process has opened, and gives its name when all is there.
class SharedFile {
 public:
  /// Null if it is not visible under its name.
  static std::unique_ptr<SharedFile> open(const SharedOutput& output);
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  /// Throws Io.
  void write_at(std::uint64_t position, const void* data, std::size_t size);
  /// What was written is on the disk. Throws Io.
  void finish();

 private:
  SharedFile(std::string name, int file) : name_(std::move(name)), file_(file) {}
  [[noreturn]] void give_up() const;
  std::string name_;
  int file_;
};

/// The additional interface of writers of such files.
class SharedWriter {
 public:
  virtual ~SharedWriter() = default;
  /// Must be called before a frame is written, if other processes write frames instead of this one. This one gives the
  /// file its name when all are written.
  virtual SharedOutput shared() = 0;
};

/// What a writer from open_writer() says; nothing for all other kinds.
SharedOutput shared_output(FrameWriter& writer);
/// For a file whose header is written, without frames; nothing if it is not a regular file.
SharedOutput shared_file(FileSink& file, bool frame_lines);

/// Writes frames into a file that another process has opened, from number `first` on. finish() does not give it its
/// name.
std::unique_ptr<FrameWriter> open_part_writer(const SharedOutput& output, const VideoInfo& info, std::uint64_t first);

}  // namespace trivelet::io
