// Distributes a byte budget over segments: every segment is truncated where the distortion removed per bit falls below
// one common slope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trivelet::ccsds122 {

/// A truncation point: bits from the start of the segment, and the squared error removed up to there. Ascending.
struct CutPoint {
  std::uint64_t bits = 0;
  double gain = 0;
};

/// Chooses the bytes of every segment. points[i][0] is the minimum of a segment (header and DC data); between two
/// points the gain is interpolated linearly. The sum is at most `total_bytes`. Lengths are multiples of `word_bytes`
/// and do not exceed the last point. Throws BadArgument when the minima exceed the budget.
std::vector<std::uint32_t> allocate_bytes(std::span<const std::vector<CutPoint>> points, std::uint64_t total_bytes,
                                          int word_bytes);

}  // namespace trivelet::ccsds122
