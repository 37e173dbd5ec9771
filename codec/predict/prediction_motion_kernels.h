// Loops of motion in the predictive profile, once per instruction set: sub-pel interpolation and block distortion
// (SAD).
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"

namespace trivelet::prediction {

/// Numbers in rows that are `stride` apart.
struct Patch {
  const std::int16_t* at = nullptr;
  std::ptrdiff_t stride = 0;
  Patch moved(int y, int x) const { return {at + y * stride + x, stride}; }
};
/// The range of numbers.
struct Limits {
  int low = 0;
  int high = 0;
};

/// A position in halves of a sample.
struct HalfPlace {
  int y = 0;
  int x = 0;
};
/// The two positions whose average is the number at a position in quarters (FORMAT.md "Moved frames"). They are used if
/// a coordinate in quarters is odd.
struct HalfPlaces {
  HalfPlace first;
  HalfPlace second;
};
inline HalfPlaces halves_around(int y, int x) {
  const int y0 = y >> 1, y1 = (y + 1) >> 1, x0 = x >> 1, x1 = (x + 1) >> 1;
  if ((y & 1) == 0 || (x & 1) == 0) return {{y0, x0}, {y1, x1}};
  const bool odd_y = (y0 & 1) != 0, odd_x = (x0 & 1) != 0;
  return {{odd_y ? y1 : y0, odd_x ? x0 : x1}, {odd_y ? y0 : y1, odd_x ? x1 : x0}};  // a whole row, a whole column
}

/// The interpolation of FORMAT.md "Moved frames". Each function makes w x h numbers without gaps between rows. It reads
/// two rows and columns before `from` and three behind it.
struct SubpelKernels {
  void (*half_x)(Patch from, int w, int h, Limits limits, std::int16_t* out);
  void (*half_y)(Patch from, int w, int h, Limits limits, std::int16_t* out);
  /// scratch: w * (h + 5) elements.
  void (*half_xy)(Patch from, int w, int h, Limits limits, std::int32_t* scratch, std::int16_t* out);
  void (*average)(Patch a, Patch b, int w, int h, std::int16_t* out);
  /// The sum of absolute differences.
  std::uint32_t (*sad)(Patch a, Patch b, int w, int h);
  /// The SAD of a and the average of b and c.
  std::uint32_t (*sad_to_average)(Patch a, Patch b, Patch c, int w, int h);
};

TRIVELET_DECLARE_TABLE(SubpelKernels, kSubpelKernels)

inline const SubpelKernels& subpel_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kSubpelKernels)); }

}  // namespace trivelet::prediction
