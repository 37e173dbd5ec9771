// A reader of frames that lie one after the other in a file, without compression: raw video and Y4M. Internal to io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

class PlainFrameReader : public FrameReader {
 public:
  const VideoInfo& info() const override { return info_; }
  bool read(Gop& gop, int index) override;
  /// Several frames at once, and by read() those that FrameFile leaves.
  int read_frames(Gop& gop, int first, int count) override;
  int look(Gop& gop, int first, int count, int row, int step) override;
  bool unread(int count) override;
  std::uint64_t skip(std::uint64_t count) override;

 protected:
  explicit PlainFrameReader(Source source) : source_(std::move(source)) {}
  /// Reads the samples of the next frame. False at the end of the input.
  virtual bool read_samples(Gop& gop, int index) = 0;
  /// Skips the next frame. False at the end of the input.
  virtual bool skip_frame() = 0;

  Source source_;
  VideoInfo info_;
  std::size_t frame_bytes_ = 0;
  std::uint64_t frame_ = 0;        ///< number of the next one
  std::optional<FrameFile> file_;  ///< made by the constructors of the formats

 private:
  void set_time(Gop& gop, int index);
};

}  // namespace trivelet::io
