// Spreading a byte budget over segments by need: every segment is cut where the distortion removed per bit falls below
// one common slope.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace trivelet::ccsds122 {

/// A place where a segment may be cut, cheapest first: bits from its start, and the squared error removed so far.
struct CutPoint {
  std::uint64_t bits = 0;
  double gain = 0;
};

/// Chooses a length in bytes for every segment. points[i][0] is the least the segment needs (header and DC data);
/// between two points the gain is taken to grow evenly. The sum is at most `total_bytes`; lengths are multiples of
/// `word_bytes` and never more than needed for the last point. Throws BadArgument when the least lengths exceed the
/// budget.
std::vector<std::uint32_t> allocate_bytes(std::span<const std::vector<CutPoint>> points, std::uint64_t total_bytes,
                                          int word_bytes);

}  // namespace trivelet::ccsds122
