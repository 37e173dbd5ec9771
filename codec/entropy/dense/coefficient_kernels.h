// Loops over rows of coefficients, once per instruction set: to magnitudes with their energy, and to what is decoded.
#pragma once

#include <cstdint>

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
  /// Magnitudes of one or two rows (`lower` may be null) of n coefficients, with the sign in the highest bit. Their bits,
  /// without it, are joined into joined[0..n), the squares of what was not yet rounded down are added to lanes[32] as
  /// LaneSums does, quad after quad. Returns all bits.
  std::uint32_t (*quantise)(const T* upper, const T* lower, int n, float inverse_step, std::uint32_t* upper_out,
                            std::uint32_t* lower_out, std::uint32_t* joined, double* lanes);
  void (*cut)(const CutRow<T>& cut, const T* from, T* to, int n);
};

template <class T>
const CoefficientKernels<T>& coefficient_kernels(SimdLevel simd);

extern const CoefficientKernels<float> kCoefficientFloatScalar;
extern const CoefficientKernels<std::int32_t> kCoefficientIntScalar;
#if defined(TRIVELET_HAVE_X86_KERNELS)
extern const CoefficientKernels<float> kCoefficientFloatAvx2;
extern const CoefficientKernels<std::int32_t> kCoefficientIntAvx2;
extern const CoefficientKernels<float> kCoefficientFloatAvx512;
extern const CoefficientKernels<std::int32_t> kCoefficientIntAvx512;
#endif

}  // namespace trivelet
