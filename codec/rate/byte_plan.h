// Divides the bytes of a target among the coded GOPs of a video. Every GOP gets its fixed bytes (headers, motion). The
// rest is divided by one slope for all GOPs, and bytes that a GOP does not use go to the GOPs behind it.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/rate/spool.h"

namespace trivelet {

/// The share of the target that is left for chunks while headers and index are not known.
inline constexpr double kBodyShare = 0.97;

/// A coded GOP that waits for its bytes.
struct WaitingGop {
  RateCurve curve;
  std::uint64_t head = 0;   ///< bytes of its packet before the chunks
  std::uint64_t least = 0;  ///< bytes of its chunks with nothing in them
  GopInfo info;             ///< frames and times
};

class BytePlan {
 public:
  /// `total`: bytes of the stream.
  BytePlan(const StreamHeader& header, std::vector<WaitingGop> gops, std::uint64_t total);

  /// log2 of the slope at which all GOPs together take about the available bytes.
  double slope() const { return slope_; }
  /// Bytes for the chunks of the GOPs behind those in `index`, which end at `position`: for as many GOPs as can be
  /// truncated without knowing the bytes of the first of them. Empty: all GOPs have theirs. Throws BadArgument if there
  /// are too few.
  std::vector<std::uint64_t> next(const std::vector<GopInfo>& index, std::uint64_t position) const;

 private:
  double slope_of_room(std::size_t first, double room) const;
  std::uint64_t tail(const std::vector<GopInfo>& index, std::uint64_t position) const;

  int layers_;
  std::vector<WaitingGop> gops_;
  std::uint64_t total_;
  double slope_;
};

}  // namespace trivelet
