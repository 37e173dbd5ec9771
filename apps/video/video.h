// Bytes and frames at the program's edges: .tvl streams over files and pipes, and one kind of reader for every video
// including .tvl.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "codec/prefetch.h"
#include "io/video/video_io.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// A stream into a file that appears when complete, or to standard output.
class FileSink final : public ByteSink {
 public:
  FileSink(const std::string& path, bool overwrite) : file_(path, overwrite) {}
  void write(const void* data, std::size_t size) override { file_.write(data, size); }
  io::OutputFile& file() { return file_; }

 private:
  io::OutputFile file_;
};

/// A stream from a file or "-". Regular files can seek, pipes cannot.
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
  std::size_t read_file(std::byte* data, std::size_t size);

  std::string path_;
  int fd_ = -1;
  bool seekable_ = false;
  std::uint64_t size_ = 0;
  std::vector<std::byte> buffer_;  ///< small reads come from here
  std::size_t buffered_ = 0;
  std::size_t taken_ = 0;
};

/// True when the file, or what comes out of the pipe "-", begins like a .tvl stream. Nothing is
/// consumed. False for what cannot be opened.
bool is_tvl_file(const std::string& path);

/// Opens any video, .tvl included. `range` selects frames; frames before it are skipped here.
/// Refuses options that the input contradicts: what was typed is obeyed or refused.
class VideoInput {
 public:
  VideoInput(const std::string& path, const io::ReaderOptions& options, const Common& common,
             const FrameRange& range = {});
  ~VideoInput();

  /// Of the selected frames; `frames` is 0 when the count is not known.
  const VideoInfo& info() const { return info_; }
  bool is_tvl() const { return is_tvl_; }
  /// Fills `gop` up to its capacity. False when no frame was left.
  bool read(Gop& gop);
  /// Fills one frame of `gop`. False when none was left.
  bool read_frame(Gop& gop, int index);

 private:
  std::unique_ptr<io::FrameReader> reader_;
  VideoInfo info_;
  std::uint64_t left_;  ///< frames that may still be read
  bool is_tvl_;
};

/// Raw planes say nothing about themselves: where `path` is raw video, fills what was not typed from `like`.
io::ReaderOptions like_video(io::ReaderOptions options, const std::string& path, const VideoInfo& like);

/// Frames of `info` that make about 64 MB, between 1 and 32: a size for buffers where the GOP does not matter.
int buffer_frames(const VideoInfo& info);

/// Bytes of one frame in memory.
std::size_t frame_bytes(const VideoInfo& info);

/// Warns, once, when the index of a stream was lost and had to be rebuilt.
void warn_of_lost_index(const std::string& path, const std::string& index_damage);

/// Binary data does not go to a terminal, and no output replaces its own input.
void check_output(const std::string& input, const std::string& output, bool binary);

}  // namespace trivelet::cli
