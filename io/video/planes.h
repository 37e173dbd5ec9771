// What the readers and writers of planar samples share: sizes and limits, moving one frame between a Gop and bytes,
// and the check that samples keep within their bits. Internal to io.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "codec/threads/parallel.h"
#include "io/source.h"
#include "trivelet/types.h"

namespace trivelet::io {

inline constexpr int kMaxDimension = 65536;
inline constexpr std::uint64_t kMaxPixels = std::uint64_t{1} << 31;

/// Throws `kind` unless 1 <= width, height <= 65536 and width x height <= 2^31; `where` begins the message.
void check_dimensions(std::int64_t width, std::int64_t height, ErrorKind kind, const std::string& where);

/// Bytes of one frame: all planes, samples of 1 or 2 bytes, no padding.
std::size_t frame_bytes(const VideoInfo& info);

/// Sets frame rate and a time base of one frame.
void set_constant_rate(VideoInfo& info, Rational frame_rate);

/// "WxH format", for messages.
std::string describe(const VideoInfo& info);

/// Throws BadArgument unless `gop` was made for frames of `info` and has a frame `index`.
void check_gop(const Gop& gop, int index, const VideoInfo& info);

/// Reads one frame; returns the number of bytes there were. Less than frame_bytes() = the input ended.
std::size_t read_planes(InputBytes& source, Gop& gop, int index);

/// Consecutive frames of one size in a file, each after a header of constant size. Several threads read them straight
/// to their destination.
class FrameFile {
 public:
  /// `head`: the header before every frame; `threads`: 0 = all cores.
  FrameFile(InputBytes& source, const VideoInfo& info, std::string_view head, int threads);
  /// Reads frames of `source` from its position. Returns the number of complete frames with correct headers and samples
  /// within their bits. The position is then at the next frame, which another reader has to examine.
  int read(Gop& gop, int first, int count);
  /// The same for rows `row`, `row + step`, … of the first component only; the bits of samples are not checked.
  int look(Gop& gop, int first, int count, int row, int step);
  /// Goes back by `count` frames, if that many consecutive ones were read here. `elsewhere()` says that they were not.
  bool unread(int count);
  void elsewhere() { behind_ = 0; }

 private:
  int whole_frames(int count) const;

  InputBytes& source_;
  PixelFormat format_;
  std::string_view head_;
  std::size_t frame_bytes_;
  int threads_;
  std::optional<ThreadPool> pool_;  ///< made when it is needed
  std::uint64_t behind_ = 0;        ///< consecutive frames before the position of `source` that were read here
};

/// Hands all samples of a frame to `sink`, component by component, in as few pieces as the memory allows.
void write_planes(const Gop& gop, int index, const std::function<void(const void*, std::size_t)>& sink);

/// Whether all samples of a frame keep within format.bits bits.
bool samples_fit(const Gop& gop, int index, const PixelFormat& format);
/// Throws BadStream when a sample needs more than format.bits bits; `frame` is for the message.
void check_samples(const Gop& gop, int index, const PixelFormat& format, const std::string& name, std::uint64_t frame);

}  // namespace trivelet::io
