// SAD (sums of absolute differences), SATD (sums of absolute values of 8x8 Hadamard transforms of differences) and
// interpolation of the motion search, compiled once per instruction set. Pictures have 8 bits a sample, or 12 and a
// sign where the source has more than 8. Both count in units of 8 bits, and every table gives the same numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/motion/motion_arithmetic.h"

namespace trivelet {

/// `Sample`: std::uint8_t or std::int16_t. Sizes are of square blocks: 8, 16, 32 or 64. Both pictures have one stride.
template <class Sample>
struct SadKernels {
  /// The sum of absolute differences of each 8x8 cell, added up.
  int (*sad)(const Sample* a, const Sample* b, std::ptrdiff_t stride, int size);
  /// The same of the 64 cells of a block of 64, each by itself.
  void (*sad_of_cells)(const Sample* a, const Sample* b, std::ptrdiff_t stride, std::uint16_t out[64]);
  /// Half the sum of the magnitudes of the Hadamard transform of the difference, for each of `cells` cells in a row.
  void (*satd_of_cells)(const Sample* a, const Sample* b, std::ptrdiff_t stride, int cells, std::int32_t* out);
  /// The same for one cell of `a` and `count` others.
  void (*satd_of_many)(const Sample* a, const Sample* const* b, std::ptrdiff_t stride, int count, std::int32_t* out);
  /// The sum of all cells for the mean of `b` and `c`, (b + c + 1) >> 1.
  int (*satd_of_mean)(const Sample* a, const Sample* b, const Sample* c, std::ptrdiff_t stride, int size);
  /// The sum of all cells for a constant.
  int (*satd_of_plain)(const Sample* a, Sample plain, std::ptrdiff_t stride, int size);
  /// Samples a quarter, half and three quarters after these: (sum of motion_tap() * in[i - 3], + 32) >> 6, limited to
  /// the range of samples. `step` is 1 for samples between columns and the stride for those between rows.
  void (*interpolate)(const Sample* in, std::ptrdiff_t step, Sample* const out[3], int n);
};

/// A difference of samples of 12 bits, in units of 8.
inline constexpr int kDeepShift = 4;

/// Of blocks of 8x8 samples of 12 bits and a sign, in units of their own.
struct FineSadKernels {
  int (*sad)(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, std::ptrdiff_t b_stride);
  /// Divided by 5.
  int (*satd)(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, std::ptrdiff_t b_stride);
  /// The same for the mean of `b` and `c`, (b + c + 1) >> 1.
  int (*satd_of_mean)(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, const std::int16_t* c,
                      std::ptrdiff_t stride);
};

namespace scalar {
extern const SadKernels<std::uint8_t> kSadKernels8;
extern const SadKernels<std::int16_t> kSadKernels16;
extern const FineSadKernels kFineSadKernels;
}  // namespace scalar
namespace avx2 {
extern const SadKernels<std::uint8_t> kSadKernels8;
extern const SadKernels<std::int16_t> kSadKernels16;
extern const FineSadKernels kFineSadKernels;
}  // namespace avx2
namespace avx512 {
extern const SadKernels<std::uint8_t> kSadKernels8;
extern const SadKernels<std::int16_t> kSadKernels16;
extern const FineSadKernels kFineSadKernels;
}  // namespace avx512

inline const SadKernels<std::uint8_t>& sad_kernels(SimdLevel simd, std::uint8_t) {
  return pick(simd, TRIVELET_TABLES(kSadKernels8));
}
inline const SadKernels<std::int16_t>& sad_kernels(SimdLevel simd, std::int16_t) {
  return pick(simd, TRIVELET_TABLES(kSadKernels16));
}
inline const FineSadKernels& fine_sad_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kFineSadKernels)); }

}  // namespace trivelet
