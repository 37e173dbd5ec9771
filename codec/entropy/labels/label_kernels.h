// The neighbours of a sample in blocks of labels (FORMAT.md "Labels"), and loops over them, compiled once per
// instruction set (label_kernels.cpp).
#pragma once

#include <cstdint>

#include "codec/base/simd.h"

namespace trivelet::labels {

/// Neighbours, relative to the sample: frames before it, rows and columns away. In the order of the text.
inline constexpr int kNeighbours = 16;
/// The neighbours in the row of the sample: the one to the left, and the one to the left of that.
inline constexpr int kLeft = 0;
inline constexpr int kLeft2 = 7;
/// What equality with a neighbour is worth to a candidate.
inline constexpr std::uint8_t kWorth[kNeighbours] = {6, 6, 6, 2, 2, 3, 3, 1, 1, 1, 1, 1, 1, 1, 0, 0};
inline constexpr int kMostCandidates = 4;

/// Rows around the one that is coded.
struct Rows {
  const std::int16_t* above;
  const std::int16_t* above2;
  const std::int16_t* before;
  const std::int16_t* before_above;
  const std::int16_t* before_below;
  const std::int16_t* before2;
};

/// A number, and which neighbours have it, a bit each.
struct Candidate {
  std::int16_t number = 0;
  std::uint16_t pattern = 0;
};

struct Kernels {
  /// Whether all neighbours but those in the row are the same number, for n samples.
  void (*alike)(const Rows& rows, int n, std::uint8_t* out);
  /// Whether the number is that of the neighbour above.
  void (*as_above)(const Rows& rows, const std::int16_t* row, int n, std::uint8_t* out);
  /// Which neighbours, but those in the row, have numbers[x].
  void (*equal)(const Rows& rows, const std::int16_t* numbers, int n, std::uint16_t* out);
  /// The numbers of 16 neighbours, those worth most first; among equals in their order. Returns how many there are, at
  /// most kMostCandidates.
  int (*candidates)(const std::int16_t* around, Candidate* out);
};

TRIVELET_DECLARE_TABLE(Kernels, kKernels)

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

}  // namespace trivelet::labels
