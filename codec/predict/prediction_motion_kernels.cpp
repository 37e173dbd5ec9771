// Loops of motion in the predictive profile, compiled once per instruction set (codec/base/simd.h).
#include "codec/predict/prediction_motion_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::prediction::TRIVELET_ISA {

namespace {

#if defined(__AVX2__)
inline __m256i load16(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void store16(std::int16_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }

/// Numbers of up to 10 bits, 16 to a register. Their sums of six taps, at most 52 * 512, fit 16 bits.
struct By16 {
  static bool suits(int w, Limits limits) { return w >= 16 && limits.high < 512; }

  explicit By16(Limits l)
      : low(_mm256_set1_epi16(static_cast<std::int16_t>(l.low))),
        high(_mm256_set1_epi16(static_cast<std::int16_t>(l.high))) {}
  __m256i limited(__m256i v) const { return _mm256_min_epi16(_mm256_max_epi16(v, low), high); }

  static __m256i six_taps(const std::int16_t* p, std::ptrdiff_t step) {
    const __m256i near = _mm256_add_epi16(load16(p), load16(p + step));
    const __m256i next = _mm256_add_epi16(load16(p - step), load16(p + 2 * step));
    const __m256i far = _mm256_add_epi16(load16(p - 2 * step), load16(p + 3 * step));
    const __m256i inner = _mm256_sub_epi16(_mm256_mullo_epi16(near, _mm256_set1_epi16(20)),
                                           _mm256_mullo_epi16(next, _mm256_set1_epi16(5)));
    return _mm256_add_epi16(far, inner);
  }
  /// Calls f(x) for stretches of 16. The last stretch may overlap the one before.
  template <class F>
  static void for_row(int w, const F& f) {
    for (int x = 0; x + 16 < w; x += 16) f(x);
    f(w - 16);
  }
  void half(Patch from, std::ptrdiff_t step, int w, int h, std::int16_t* out) const {
    const __m256i rounding = _mm256_set1_epi16(16);
    for (int y = 0; y < h; ++y, out += w)
      for_row(w, [&](int x) {
        const __m256i sum = six_taps(from.at + y * from.stride + x, step);
        store16(out + x, limited(_mm256_srai_epi16(_mm256_add_epi16(sum, rounding), 5)));
      });
  }
  /// The sum of six taps, from interleaved pairs of rows.
  static __m256i six_sums(__m256i first, __m256i middle, __m256i last) {
    const __m256i sum = _mm256_add_epi32(_mm256_madd_epi16(first, _mm256_set1_epi32(static_cast<int>(0xfffb0001))),
                                         _mm256_madd_epi16(middle, _mm256_set1_epi16(20)));
    const __m256i all = _mm256_add_epi32(sum, _mm256_madd_epi16(last, _mm256_set1_epi32(0x0001fffb)));
    return _mm256_srai_epi32(_mm256_add_epi32(all, _mm256_set1_epi32(512)), 10);
  }
  void half_xy(Patch from, int w, int h, std::int16_t* sums, std::int16_t* out) const {
    for (int y = 0; y < h + 5; ++y)
      for_row(w, [&](int x) { store16(sums + y * w + x, six_taps(from.at + (y - 2) * from.stride + x, 1)); });
    for (int y = 0; y < h; ++y, out += w)
      for_row(w, [&](int x) {
        const std::int16_t* t = sums + y * w + x;
        const __m256i a = load16(t), b = load16(t + w), c = load16(t + 2 * w), d = load16(t + 3 * w),
                      e = load16(t + 4 * w), f = load16(t + 5 * w);
        const __m256i v = _mm256_packs_epi32(
            six_sums(_mm256_unpacklo_epi16(a, b), _mm256_unpacklo_epi16(c, d), _mm256_unpacklo_epi16(e, f)),
            six_sums(_mm256_unpackhi_epi16(a, b), _mm256_unpackhi_epi16(c, d), _mm256_unpackhi_epi16(e, f)));
        store16(out + x, limited(v));
      });
  }

  __m256i low;
  __m256i high;
};
#endif

inline int six_taps(int a, int b, int c, int d, int e, int f) { return a + f - 5 * (b + e) + 20 * (c + d); }
inline std::int16_t limited(int v, Limits l) {
  v = v < l.low ? l.low : v;
  return static_cast<std::int16_t>(v > l.high ? l.high : v);
}

void half_x(Patch from, int w, int h, Limits limits, std::int16_t* out) {
#if defined(__AVX2__)
  if (By16::suits(w, limits)) return By16(limits).half(from, 1, w, h, out);
#endif
  for (int y = 0; y < h; ++y, out += w) {
    const std::int16_t* s = from.at + y * from.stride;
    for (int x = 0; x < w; ++x)
      out[x] = limited((six_taps(s[x - 2], s[x - 1], s[x], s[x + 1], s[x + 2], s[x + 3]) + 16) >> 5, limits);
  }
}

void half_y(Patch from, int w, int h, Limits limits, std::int16_t* out) {
#if defined(__AVX2__)
  if (By16::suits(w, limits)) return By16(limits).half(from, from.stride, w, h, out);
#endif
  const std::ptrdiff_t r = from.stride;
  for (int y = 0; y < h; ++y, out += w) {
    const std::int16_t* s = from.at + y * r;
    for (int x = 0; x < w; ++x)
      out[x] =
          limited((six_taps(s[x - 2 * r], s[x - r], s[x], s[x + r], s[x + 2 * r], s[x + 3 * r]) + 16) >> 5, limits);
  }
}

void half_xy(Patch from, int w, int h, Limits limits, std::int32_t* scratch, std::int16_t* out) {
#if defined(__AVX2__)
  if (By16::suits(w, limits))
    return By16(limits).half_xy(from, w, h, reinterpret_cast<std::int16_t*>(scratch),
                                out);  // only by load16, store16
#endif
  for (int y = 0; y < h + 5; ++y) {
    const std::int16_t* s = from.at + (y - 2) * from.stride;
    std::int32_t* t = scratch + y * w;
    for (int x = 0; x < w; ++x) t[x] = six_taps(s[x - 2], s[x - 1], s[x], s[x + 1], s[x + 2], s[x + 3]);
  }
  for (int y = 0; y < h; ++y, out += w) {
    const std::int32_t* t = scratch + y * w;
    for (int x = 0; x < w; ++x)
      out[x] = limited((six_taps(t[x], t[x + w], t[x + 2 * w], t[x + 3 * w], t[x + 4 * w], t[x + 5 * w]) + 512) >> 10,
                       limits);
  }
}

void average(Patch a, Patch b, int w, int h, std::int16_t* out) {
  for (int y = 0; y < h; ++y, out += w) {
    const std::int16_t* p = a.at + y * a.stride;
    const std::int16_t* q = b.at + y * b.stride;
    for (int x = 0; x < w; ++x) out[x] = static_cast<std::int16_t>((p[x] + q[x] + 1) >> 1);
  }
}

/// The SAD of a row from column x on.
template <class From>
std::uint32_t row_sad(const std::int16_t* p, const From& from, int x, int w) {
  std::uint32_t sum = 0;
  for (; x < w; ++x) {
    const int d = p[x] - from.number(x);
    sum += static_cast<std::uint32_t>(d < 0 ? -d : d);
  }
  return sum;
}

struct OneRow {
  const std::int16_t* q;
  int number(int x) const { return q[x]; }
#if defined(__AVX2__)
  __m256i numbers(int x) const { return load16(q + x); }
#endif
};

struct AverageOfRows {
  const std::int16_t* q;
  const std::int16_t* r;
  int number(int x) const { return (q[x] + r[x] + 1) >> 1; }
#if defined(__AVX2__)
  // The average instruction is unsigned, so the highest bits are inverted before and after it.
  __m256i numbers(int x) const {
    const __m256i turned = _mm256_set1_epi16(-32768);
    return _mm256_xor_si256(
        turned, _mm256_avg_epu16(_mm256_xor_si256(turned, load16(q + x)), _mm256_xor_si256(turned, load16(r + x))));
  }
#endif
};

#if defined(__AVX2__)
/// The SAD with 16 numbers per step. The difference of two numbers is below 2^16.
template <class RowOf>
std::uint32_t sad_by_16(Patch a, int w, int h, const RowOf& row_of) {
  const __m256i low = _mm256_set1_epi32(0xffff);
  __m256i sums = _mm256_setzero_si256();
  std::uint32_t rest = 0;
  for (int y = 0; y < h; ++y) {
    const std::int16_t* p = a.at + y * a.stride;
    const auto from = row_of(y);
    int x = 0;
    for (; x + 16 <= w; x += 16) {
      const __m256i v = load16(p + x), q = from.numbers(x);
      const __m256i d = _mm256_sub_epi16(_mm256_max_epi16(v, q), _mm256_min_epi16(v, q));  // unsigned
      sums = _mm256_add_epi32(sums, _mm256_add_epi32(_mm256_and_si256(d, low), _mm256_srli_epi32(d, 16)));
    }
    rest += row_sad(p, from, x, w);
  }
  const __m128i half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  const __m128i quarter = _mm_add_epi32(half, _mm_shuffle_epi32(half, 0x4e));
  return rest + static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_add_epi32(quarter, _mm_shuffle_epi32(quarter, 0xb1))));
}
#else
template <class RowOf>
std::uint32_t sad_by_16(Patch a, int w, int h, const RowOf& row_of) {
  std::uint32_t sum = 0;
  for (int y = 0; y < h; ++y) sum += row_sad(a.at + y * a.stride, row_of(y), 0, w);
  return sum;
}
#endif

std::uint32_t sad(Patch a, Patch b, int w, int h) {
  return sad_by_16(a, w, h, [b](int y) { return OneRow{b.at + y * b.stride}; });
}

std::uint32_t sad_to_average(Patch a, Patch b, Patch c, int w, int h) {
  return sad_by_16(a, w, h, [b, c](int y) { return AverageOfRows{b.at + y * b.stride, c.at + y * c.stride}; });
}

}  // namespace

const SubpelKernels kSubpelKernels = {half_x, half_y, half_xy, average, sad, sad_to_average};

}  // namespace trivelet::prediction::TRIVELET_ISA
