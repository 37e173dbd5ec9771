// Arithmetic of frame times. A file may contain any time, so sums saturate. Durations come from the times. A frame
// count and a rate give a duration only if the rate is constant.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "trivelet/types.h"

namespace trivelet {

/// The saturating sum of two times.
inline std::int64_t add_times(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  if (b > 0 && a > kMost - b) return kMost;
  if (b < 0 && a < kLeast - b) return kLeast;
  return a + b;
}

/// Seconds from the beginning of `first` to the end of `last`, which span `frames` frames. If the times agree with the
/// frame rate to half a frame, or are unknown, the result is exactly `frames` divided by the rate. Without a rate it is
/// 0.
inline double seconds_lasting(const VideoInfo& video, FrameTime first, FrameTime last, double frames) {
  if (video.frame_rate.num <= 0 || video.frame_rate.den <= 0) return 0;
  const double by_rate = frames / video.frame_rate.value();
  const double ticks =
      static_cast<double>(last.pts) + static_cast<double>(last.duration) - static_cast<double>(first.pts);
  const double by_times = ticks * video.time_base.value();
  return !(by_times > 0) || std::abs(by_times - by_rate) * video.frame_rate.value() <= 0.5 ? by_rate : by_times;
}

}  // namespace trivelet
