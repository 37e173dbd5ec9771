// How the bytes of a target are divided among the GOPs of a video, all of which are coded: every GOP has what it takes
// however coarse it is (heads, motion), the rest is divided by one slope for all, and what some did not take goes to
// those behind them.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/rate/spool.h"

namespace trivelet {

/// Of the bytes aimed at, what is left for chunks when heads and index are not known yet.
inline constexpr double kBodyShare = 0.97;

/// A coded GOP that waits for its bytes.
struct WaitingGop {
  RateCurve curve;
  std::uint64_t head = 0;   ///< bytes that its packet takes before the chunks
  std::uint64_t least = 0;  ///< bytes of its chunks with nothing in them
  GopInfo info;             ///< frames and times
};

class BytePlan {
 public:
  /// `total`: bytes of the stream.
  BytePlan(const StreamHeader& header, std::vector<WaitingGop> gops, std::uint64_t total);

  /// log2 of the slope at which all take about what there is.
  double slope() const { return slope_; }
  /// Bytes for the chunks of the GOPs behind those of `index`, which end at `position`: as many of them as can be cut
  /// without knowing what the first of them takes. None: all have theirs. Throws BadArgument when there are too few.
  std::vector<std::uint64_t> next(const std::vector<GopInfo>& index, std::uint64_t position) const;

 private:
  std::uint64_t tail(const std::vector<GopInfo>& index, std::uint64_t position) const;

  int layers_;
  std::vector<WaitingGop> gops_;
  std::uint64_t total_;
  double slope_;
};

}  // namespace trivelet
