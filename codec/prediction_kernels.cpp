// Loops of the predictive profile over rows: the reference.
#include "codec/prediction_kernels.h"

#include <algorithm>

namespace trivelet::prediction {

namespace {

void weigh(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums) {
  std::fill_n(sums, n, 0);
  for (int i = 0; i < count; ++i) {
    const std::int32_t weight = weights[i];
    const std::int16_t* from = taps[i];
    for (int x = 0; x < n; ++x) sums[x] += weight * from[x];
  }
}

void differences(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out) {
  for (int x = 0; x < n; ++x) {
    const int d = std::clamp(from[x] - base[x], -32768, 32767) >> shift;
    out[x] = static_cast<std::int16_t>(std::clamp(d, -2047, 2047));
  }
}

void products(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out) {
  for (int i = 0; i < count; ++i)
    for (int j = 0; j <= i; ++j) {
      const std::int16_t* a = rows + static_cast<std::size_t>(i) * stride;
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      std::int32_t sum = 0;
      for (int x = 0; x < n; ++x) sum += a[x] * b[x];
      *out++ = sum;
    }
}

}  // namespace

const Kernels kKernelsScalar{weigh, differences, products};

const Kernels& kernels(SimdLevel simd) {
#if defined(TRIVELET_HAVE_X86_KERNELS)
  if (resolve_simd(simd) >= SimdLevel::kAvx2) return kKernelsAvx2;
#endif
  (void)resolve_simd(simd);
  return kKernelsScalar;
}

}  // namespace trivelet::prediction
