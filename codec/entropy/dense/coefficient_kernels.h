// Loops over rows of coefficients, compiled once per instruction set: coefficients to magnitudes with their energy, and
// magnitudes to reconstructed coefficients.
#pragma once

#include <cstdint>
#include <type_traits>

#include "codec/base/simd.h"

namespace trivelet {

/// Reconstruction of coefficients from a truncated segment. Magnitudes >= `older` and those below have different
/// intervals when the cut follows a first pass; after a whole plane the intervals are the same.
template <class T>
struct CutRow {
  std::int32_t older = 0;
  std::int32_t kept[2] = {};  ///< mask of the known bits of a magnitude: [0] below `older`, [1] from `older` on
  T offset[2] = {};           ///< reconstruction offsets, for the same two ranges
  float inverse_step = 1;
  T step = 1;
};

template <class T>
struct CoefficientKernels {
  /// Magnitudes of one or two rows (`lower` may be null) of n coefficients, with the sign in the highest bit. The
  /// magnitudes are OR-ed into joined[0..n). Their squares before rounding are added to lanes[32] in the order of
  /// LaneSums, quad by quad. Returns the OR of all magnitudes.
  std::uint32_t (*quantise)(const T* upper, const T* lower, int n, float inverse_step, std::uint32_t* upper_out,
                            std::uint32_t* lower_out, std::uint32_t* joined, double* lanes);
  void (*cut)(const CutRow<T>& cut, const T* from, T* to, int n);
};

TRIVELET_DECLARE_TABLE(CoefficientKernels<float>, kCoefficientFloat)
TRIVELET_DECLARE_TABLE(CoefficientKernels<std::int32_t>, kCoefficientInt)

/// The table of T (float or int32) for an instruction set.
template <class T>
const CoefficientKernels<T>& coefficient_kernels(SimdLevel simd) {
  if constexpr (std::is_same_v<T, float>)
    return pick(simd, TRIVELET_TABLES(kCoefficientFloat));
  else
    return pick(simd, TRIVELET_TABLES(kCoefficientInt));
}

}  // namespace trivelet
