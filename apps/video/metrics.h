// Measures of the difference of two videos: squared error, maximum error, SSIM.
//
// PSNR = 10 log10(peak^2 / mean squared error), peak = 2^bits - 1; over several planes and frames the mean runs over
// all samples. SSIM (Wang et al. 2004) of the first plane, in windows of 8x8 samples every 4 samples with flat weights,
// as in the ssim filters of x264 and FFmpeg; the mean over windows, then over frames.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/threads/parallel.h"
#include "trivelet/types.h"

namespace trivelet::cli {

struct PlaneError {
  std::uint64_t samples = 0;
  std::uint64_t different = 0;
  double squared = 0;
  int max = 0;
  double psnr(int bits) const;  ///< infinity when nothing differs
  void add(const PlaneError& other);
};

struct FrameError {
  std::array<PlaneError, 4> planes;
  double ssim = 0;  ///< NaN for pictures too small for a window
  PlaneError total() const;
};

/// What another process measured.
void put_errors(ByteWriter& out, const std::vector<FrameError>& errors);
std::vector<FrameError> take_errors(ByteReader& in);

/// The sum over frames.
class VideoError {
 public:
  explicit VideoError(const VideoInfo& info) : format_(info.format) {}

  /// Compares all frames of two Gops with the same format and number of frames. Returns the errors of the frames, too.
  std::vector<FrameError> add(const Gop& a, const Gop& b, ThreadPool& pool);
  /// The errors of the following frames.
  void add(const std::vector<FrameError>& errors);
  /// The same for single frames, for a caller that adds them up.
  static std::vector<FrameError> measure(const Gop& a, const Gop& b, const PixelFormat& format, ThreadPool& pool);

  std::uint64_t frames() const { return frames_; }
  const PlaneError& plane(int component) const { return sum_.planes[static_cast<std::size_t>(component)]; }
  PlaneError total() const { return sum_.total(); }
  double psnr() const { return total().psnr(format_.bits); }
  double ssim() const { return frames_ > 0 ? sum_.ssim / static_cast<double>(frames_) : 0; }
  bool identical() const { return total().different == 0; }

 private:
  PixelFormat format_;
  std::uint64_t frames_ = 0;
  FrameError sum_;
};

/// "y", "u", "v", "a"; "g", "b", "r", "a"; "y", "a".
std::string component_name(const PixelFormat& format, int component);

/// "41.234 dB", "inf".
std::string format_psnr(double psnr);

/// Throws Mismatch when the pictures cannot be compared sample by sample.
void require_comparable(const VideoInfo& a, const VideoInfo& b);

}  // namespace trivelet::cli
