// Loops over rows of coefficients, once per instruction set: to magnitudes with their energy, and to what is decoded.
#pragma once

#include <cstdint>
#include <type_traits>

#include "codec/base/simd.h"

namespace trivelet {

/// What is decoded of coefficients whose bits end somewhere. Two intervals of magnitudes: from `older` on and below;
/// behind a whole plane they do not differ.
template <class T>
struct CutRow {
  std::int32_t older = 0;
  std::int32_t kept[2] = {};  ///< bits of a magnitude that are known: below, from `older` on
  T offset[2] = {};           ///< what is added to them
  float inverse_step = 1;
  T step = 1;
};

template <class T>
struct CoefficientKernels {
  /// Magnitudes of one or two rows (`lower` may be null) of n coefficients, with the sign in the highest bit. Their
  /// bits, without it, are joined into joined[0..n), the squares of what was not yet rounded down are added to
  /// lanes[32] as LaneSums does, quad after quad. Returns all bits.
  std::uint32_t (*quantise)(const T* upper, const T* lower, int n, float inverse_step, std::uint32_t* upper_out,
                            std::uint32_t* lower_out, std::uint32_t* joined, double* lanes);
  void (*cut)(const CutRow<T>& cut, const T* from, T* to, int n);
};

namespace scalar {
extern const CoefficientKernels<float> kCoefficientFloat;
extern const CoefficientKernels<std::int32_t> kCoefficientInt;
}  // namespace scalar
namespace avx2 {
extern const CoefficientKernels<float> kCoefficientFloat;
extern const CoefficientKernels<std::int32_t> kCoefficientInt;
}  // namespace avx2
namespace avx512 {
extern const CoefficientKernels<float> kCoefficientFloat;
extern const CoefficientKernels<std::int32_t> kCoefficientInt;
}  // namespace avx512

/// Of float and int32.
template <class T>
const CoefficientKernels<T>& coefficient_kernels(SimdLevel simd) {
  if constexpr (std::is_same_v<T, float>)
    return pick(simd, TRIVELET_TABLES(kCoefficientFloat));
  else
    return pick(simd, TRIVELET_TABLES(kCoefficientInt));
}

}  // namespace trivelet
