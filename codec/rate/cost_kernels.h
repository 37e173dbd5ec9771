// The loop over coefficients behind coding_cost.h, compiled once for each instruction set.
#pragma once

#include <cstdint>

#include "codec/base/simd.h"
#include "codec/rate/coding_terms.h"

namespace trivelet {

struct CostKernels {
  /// Adds the terms of a row of `n` coefficients to `sums`.
  void (*add_real)(const float* row, int n, float inverse_step, CodingSums& sums);
  void (*add_integer)(const std::int32_t* row, int n, float inverse_step, CodingSums& sums);
};

TRIVELET_DECLARE_TABLE(CostKernels, kCostKernels)

inline const CostKernels& cost_kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kCostKernels)); }

}  // namespace trivelet
