#include "codec/entropy/dense/coefficient_kernels.h"

namespace trivelet {

template <>
const CoefficientKernels<float>& coefficient_kernels<float>(SimdLevel simd) {
  const SimdLevel level = resolve_simd(simd);
#if defined(TRIVELET_HAVE_X86_KERNELS)
  if (level == SimdLevel::kAvx512) return kCoefficientFloatAvx512;
  if (level == SimdLevel::kAvx2) return kCoefficientFloatAvx2;
#endif
  (void)level;
  return kCoefficientFloatScalar;
}

template <>
const CoefficientKernels<std::int32_t>& coefficient_kernels<std::int32_t>(SimdLevel simd) {
  const SimdLevel level = resolve_simd(simd);
#if defined(TRIVELET_HAVE_X86_KERNELS)
  if (level == SimdLevel::kAvx512) return kCoefficientIntAvx512;
  if (level == SimdLevel::kAvx2) return kCoefficientIntAvx2;
#endif
  (void)level;
  return kCoefficientIntScalar;
}

}  // namespace trivelet
