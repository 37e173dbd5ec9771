// Loops of the predictive profile over rows for AVX2: two taps or samples to a multiplication.
#include <immintrin.h>

#include <cstring>

#include "codec/prediction_kernels.h"

namespace trivelet::prediction {

namespace {

__m256i load(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

void weigh(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums) {
  for (int x = 0; x < n; x += 16) {
    __m256i low = _mm256_setzero_si256();
    __m256i high = low;
    for (int i = 0; i < count; i += 2) {
      const bool two = i + 1 < count;
      std::int32_t pair = static_cast<std::uint16_t>(weights[i]);
      if (two)
        pair |= static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint16_t>(weights[i + 1])) << 16);
      const __m256i w = _mm256_set1_epi32(pair);
      const __m256i a = load(taps[i] + x);
      const __m256i b = two ? load(taps[i + 1] + x) : _mm256_setzero_si256();
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w));
    }
    // Unpacking was within halves of a register.
    auto* out = reinterpret_cast<__m256i*>(sums + x);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

void differences(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out) {
  const __m128i count = _mm_cvtsi32_si128(shift);
  const __m256i limit = _mm256_set1_epi16(2047);
  const __m256i least = _mm256_set1_epi16(-2047);
  for (int x = 0; x < n; x += 16) {
    const __m256i d = _mm256_sra_epi16(_mm256_subs_epi16(load(from + x), load(base + x)), count);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_max_epi16(_mm256_min_epi16(d, limit), least));
  }
}

std::int32_t sum_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// Four of row i with row j at once, so that a row is loaded once for them.
void products(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out) {
  for (int i = 0; i < count; ++i) {
    const std::int16_t* a = rows + static_cast<std::size_t>(i) * stride;
    int j = 0;
    for (; j + 4 <= i + 1; j += 4, out += 4) {
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
      for (int x = 0; x < n; x += 16) {
        const __m256i v = load(a + x);
        for (std::size_t k = 0; k < 4; ++k)
          sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(v, load(b + k * stride + x)));
      }
      const __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
      const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
      std::memcpy(out, &four, sizeof four);
    }
    for (; j <= i; ++j) {
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      __m256i sum = _mm256_setzero_si256();
      for (int x = 0; x < n; x += 16) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load(a + x), load(b + x)));
      *out++ = sum_of(sum);
    }
  }
}

}  // namespace

const Kernels kKernelsAvx2{weigh, differences, products};

}  // namespace trivelet::prediction
