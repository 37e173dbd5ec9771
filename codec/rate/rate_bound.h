// A bound on the bits per second of a stream. GOPs whose packets would exceed it are cut.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "trivelet/types.h"

namespace trivelet {

/// Knows the packets written so far. A stretch is a number of GOPs behind each other; it lasts from the beginning of
/// its first frame to the end of its last one. Stretches of `window` seconds or more have at most `bits_per_second`,
/// and shorter ones at most what the window may have.
class RateBound {
 public:
  RateBound(const VideoInfo& video, double bits_per_second, double window);

  /// The most bytes of the packet of the next GOP, which has these frames.
  std::uint64_t bytes_allowed(const std::vector<FrameTime>& frames) const;
  void add(const std::vector<FrameTime>& frames, std::uint64_t bytes);

 private:
  struct Start {
    double seconds;       ///< at which the GOP begins
    std::uint64_t bytes;  ///< of all packets before it
  };
  struct Span {
    double begin;
    double end;
  };
  Span span_of(const std::vector<FrameTime>& frames) const;
  /// Bytes that a stretch of `span` seconds may have.
  double most(double span) const;

  VideoInfo video_;
  double bytes_per_second_;
  double window_;
  double end_ = -std::numeric_limits<double>::infinity();  ///< of the GOP before
  std::uint64_t written_ = 0;
  std::deque<Start> recent_;  ///< GOPs less than a window before the end of the last one
  /// Of all older GOPs the least `bytes - bytes_per_second_ * seconds`, which bounds the most.
  double older_ = std::numeric_limits<double>::infinity();
};

}  // namespace trivelet
