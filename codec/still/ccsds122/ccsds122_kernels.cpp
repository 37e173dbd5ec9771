#include "codec/still/ccsds122/ccsds122_kernels.h"

#include "codec/base/simd.h"

namespace trivelet::ccsds122 {

const Kernels& kernels(SimdLevel level) {
#if defined(TRIVELET_HAVE_X86_KERNELS)
  switch (resolve_simd(level)) {
    case SimdLevel::kAvx512: return avx512_kernels();
    case SimdLevel::kAvx2: return avx2_kernels();
    default: break;
  }
#else
  resolve_simd(level);
#endif
  return scalar_kernels();
}

std::uint64_t eligible_mask(const int* shift, int bit) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 3; ++i) {
    if (shift[kHL3 + i] <= bit) mask |= std::uint64_t{1} << (62 - i);
    if (shift[kHL2 + i] <= bit) mask |= std::uint64_t{0xF} << (56 - 4 * i);
    if (shift[kHL1 + i] <= bit) mask |= std::uint64_t{0xFFFF} << (32 - 16 * i);
  }
  return mask;
}

}  // namespace trivelet::ccsds122
