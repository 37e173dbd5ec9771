// Loops of motion in the predictive profile for the baseline instruction set.
#include "codec/predict/prediction_motion_kernels.h"

#define TRIVELET_BETWEEN_TABLE kBetweenKernelsScalar
#include "codec/predict/prediction_motion_kernels.inc"

namespace trivelet::prediction {

const BetweenKernels& between_kernels(SimdLevel simd) {
#if defined(TRIVELET_HAVE_X86_KERNELS)
  const SimdLevel level = resolve_simd(simd);
  if (level == SimdLevel::kAvx512) return kBetweenKernelsAvx512;
  if (level == SimdLevel::kAvx2) return kBetweenKernelsAvx2;
#endif
  (void)resolve_simd(simd);
  return kBetweenKernelsScalar;
}

}  // namespace trivelet::prediction
