#include "codec/still/vstc/vstc_kernels.h"

#include <cmath>
#include <cstdlib>
#include <numbers>
#include <vector>

#include "codec/base/simd.h"

namespace trivelet::vstc {

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

const Coefficient* matrix_of(int log2_n, bool sine) {
  struct Matrices {
    std::vector<Coefficient> of[2][7];
    Matrices() {
      for (int k = 0; k <= 6; ++k) {
        const int n = 1 << k;
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < n; ++j) {
            const double pi = std::numbers::pi;
            const double c = i == 0 ? 64 : 64 * std::numbers::sqrt2 * std::cos(pi * (2 * j + 1) * i / (2 * n));
            const double s = 64 * std::sqrt(4.0 * n / (2 * n + 1)) * std::sin(pi * (2 * i + 1) * (j + 1) / (2 * n + 1));
            of[0][k].push_back(static_cast<Coefficient>(std::lround(c)));
            of[1][k].push_back(static_cast<Coefficient>(std::lround(s)));
          }
      }
    }
  };
  static const Matrices matrices;
  return matrices.of[sine][log2_n].data();
}

}  // namespace trivelet::vstc
