// The loop that counts magnitudes for size_estimate.h, compiled once for each instruction set.
#pragma once

#include <cstdint>

#include "codec/base/simd.h"

namespace trivelet {

struct SizeKernels {
  /// Adds a row of coefficients to the counts of its cells, of which each has 1 << `log2_side` coefficients of the row.
  /// A cell has 2 * kMagnitudeClasses counts, whose halves are to be added. Class 0 is not counted as others are.
  void (*count_row)(const float* row, int n, float inverse_step, int log2_side, std::uint32_t* counts);
};

TRIVELET_DECLARE_TABLE(SizeKernels, kSizeKernels)

inline const SizeKernels& size_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kSizeKernels)); }

}  // namespace trivelet
