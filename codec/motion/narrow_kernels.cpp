// Loops over numbers of 16 bits (narrow_kernels.h). Interpolation multiplies pairs of neighbours and adds the products
// in 32 bits (PMADDWD), so that a vector has twice as many lanes as one of 32 bits, and no sum is cut off.
#include "codec/motion/narrow_kernels.h"

#include "codec/motion/motion_arithmetic.h"
#include "codec/motion/number_vectors.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::TRIVELET_ISA {
namespace {

// ------------------------------------------------------------------------------------------------------ interpolation

#if defined(__AVX2__)

// The instructions for vectors of 8, 16 and 32 numbers. Unpacking and packing stay inside 16 bytes and undo each other.
struct Eight {
  using V = __m128i;
  static constexpr int kLanes = 8;
  static V load(const std::int16_t* p) { return _mm_loadu_si128(reinterpret_cast<const V*>(p)); }
  static void store(std::int16_t* p, V v) { _mm_storeu_si128(reinterpret_cast<V*>(p), v); }
  static V all(int v) { return _mm_set1_epi32(v); }
  static V add(V a, V b) { return _mm_add_epi32(a, b); }
  static V products(V a, V b) { return _mm_madd_epi16(a, b); }
  static V low_pairs(V a, V b) { return _mm_unpacklo_epi16(a, b); }
  static V high_pairs(V a, V b) { return _mm_unpackhi_epi16(a, b); }
  static V pack(V a, V b) { return _mm_packs_epi32(a, b); }
  static V up(V v, int bits) { return _mm_sll_epi16(v, _mm_cvtsi32_si128(bits)); }
  static V halves(V even, V odd) { return _mm_blend_epi16(even, odd, 0xaa); }
  template <int kBits>
  static V down(V v) {
    return _mm_srai_epi32(v, kBits);
  }
  template <int kBits>
  static V left(V v) {
    return _mm_slli_epi32(v, kBits);
  }
  static bool any_above(V a, V b) { return _mm_movemask_epi8(_mm_cmpgt_epi16(a, b)) != 0; }
  static bool all_above(V a, V b) { return _mm_movemask_epi8(_mm_cmpgt_epi16(a, b)) == 0xffff; }
  static V least(V a, V b) { return _mm_min_epi16(a, b); }
  static V most(V a, V b) { return _mm_max_epi16(a, b); }
};
struct Sixteen {
  using V = __m256i;
  static constexpr int kLanes = 16;
  static V load(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const V*>(p)); }
  static void store(std::int16_t* p, V v) { _mm256_storeu_si256(reinterpret_cast<V*>(p), v); }
  static V all(int v) { return _mm256_set1_epi32(v); }
  static V add(V a, V b) { return _mm256_add_epi32(a, b); }
  static V products(V a, V b) { return _mm256_madd_epi16(a, b); }
  static V low_pairs(V a, V b) { return _mm256_unpacklo_epi16(a, b); }
  static V high_pairs(V a, V b) { return _mm256_unpackhi_epi16(a, b); }
  static V pack(V a, V b) { return _mm256_packs_epi32(a, b); }
  static V up(V v, int bits) { return _mm256_sll_epi16(v, _mm_cvtsi32_si128(bits)); }
  static V halves(V even, V odd) { return _mm256_blend_epi16(even, odd, 0xaa); }
  template <int kBits>
  static V down(V v) {
    return _mm256_srai_epi32(v, kBits);
  }
  template <int kBits>
  static V left(V v) {
    return _mm256_slli_epi32(v, kBits);
  }
  static bool any_above(V a, V b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b)) != 0; }
  static bool all_above(V a, V b) { return _mm256_movemask_epi8(_mm256_cmpgt_epi16(a, b)) == -1; }
  static V least(V a, V b) { return _mm256_min_epi16(a, b); }
  static V most(V a, V b) { return _mm256_max_epi16(a, b); }
};
#if defined(__AVX512BW__)
struct ThirtyTwo {
  using V = __m512i;
  static constexpr int kLanes = 32;
  static V load(const std::int16_t* p) { return _mm512_loadu_si512(p); }
  static void store(std::int16_t* p, V v) { _mm512_storeu_si512(p, v); }
  static V all(int v) { return _mm512_set1_epi32(v); }
  static V add(V a, V b) { return _mm512_add_epi32(a, b); }
  static V products(V a, V b) { return _mm512_madd_epi16(a, b); }
  static V low_pairs(V a, V b) { return _mm512_unpacklo_epi16(a, b); }
  static V high_pairs(V a, V b) { return _mm512_unpackhi_epi16(a, b); }
  static V pack(V a, V b) { return _mm512_packs_epi32(a, b); }
  static V up(V v, int bits) { return _mm512_sll_epi16(v, _mm_cvtsi32_si128(bits)); }
  static V halves(V even, V odd) { return _mm512_mask_blend_epi16(0xaaaaaaaau, even, odd); }
  template <int kBits>
  static V down(V v) {
    return _mm512_srai_epi32(v, kBits);
  }
  template <int kBits>
  static V left(V v) {
    return _mm512_slli_epi32(v, kBits);
  }
  static bool any_above(V a, V b) { return _mm512_cmpgt_epi16_mask(a, b) != 0; }
  static bool all_above(V a, V b) { return _mm512_cmpgt_epi16_mask(a, b) == 0xffffffffu; }
  static V least(V a, V b) { return _mm512_min_epi16(a, b); }
  static V most(V a, V b) { return _mm512_max_epi16(a, b); }
};
#endif

// The taps of a phase in pairs of 16 bits.
struct Pairs {
  int of[4];
  Pairs(int phase, int up) {
    for (int i = 0; i < 4; ++i) {
      const Wrap first = static_cast<Wrap>(motion_tap(phase, 2 * i)) << up;
      of[i] = back(static_cast<Wrap>(motion_tap(phase, 2 * i + 1)) << up << 16 | (first & 0xffffu));
    }
  }
};
template <class Of>
struct TapPairs {
  typename Of::V k[4];
  explicit TapPairs(const Pairs& pairs) {
    for (int i = 0; i < 4; ++i) k[i] = Of::all(pairs.of[i]);
  }
};

// The least and the largest sample that was read.
template <class Of>
struct Range {
  typename Of::V least = Of::all(0), most = Of::all(0);
  void add(typename Of::V v) {
    least = Of::least(least, v);
    most = Of::most(most, v);
  }
  bool is_within(int limit) const {
    const auto high = Of::all(limit << 16 | limit), low = Of::all(~(limit << 16 | limit));  // all -limit - 1
    return !Of::any_above(most, high) && Of::all_above(least, low);
  }
};

// (sum of products of four pairs + 32).
template <class Of, class Pair>
TRIVELET_ALWAYS_INLINE typename Of::V weighted(const TapPairs<Of>& taps, const Pair& pair) {
  const auto first = Of::add(Of::products(pair(0), taps.k[0]), Of::products(pair(1), taps.k[1]));
  const auto second = Of::add(Of::products(pair(2), taps.k[2]), Of::products(pair(3), taps.k[3]));
  return Of::add(Of::add(first, Of::all(32)), second);
}

// A row of a strip, filtered along it with kAlong.
template <class Of, bool kAlong>
TRIVELET_ALWAYS_INLINE typename Of::V row_of_strip(const std::int16_t* in, const TapPairs<Of>& taps, int up,
                                                   Range<Of>& range) {
  if constexpr (!kAlong) {
    const auto v = Of::load(in);
    range.add(v);
    return Of::up(v, up);
  } else {
    // Pairs that begin at even samples make the sums of even samples, the others those of odd ones.
    const auto even = weighted<Of>(taps, [in](int i) { return Of::load(in - 3 + 2 * i); });
    const auto odd = weighted<Of>(taps, [in](int i) { return Of::load(in - 2 + 2 * i); });
    range.add(Of::load(in - 3));
    range.add(Of::load(in + 4));
    return Of::halves(Of::template down<6>(even), Of::template left<10>(odd));
  }
}

template <class Of, bool kAlong, bool kDown>
bool interpolate_strip(const std::int16_t* in, Index in_stride, std::int16_t* out, Index out_stride, int rows,
                       const Pairs& taps_along, const Pairs& taps_down, int up) {
  const TapPairs<Of> along(taps_along);
  Range<Of> range;
  const auto row = [&](int y) { return row_of_strip<Of, kAlong>(in + y * in_stride, along, up, range); };
  if constexpr (!kDown) {
    for (int y = 0; y < rows; ++y) Of::store(out + y * out_stride, row(y));
  } else {
    const TapPairs<Of> down(taps_down);
    typename Of::V low[7], high[7];  // pairs of rows that follow each other
    auto before = row(-3);
    const auto pair = [&](int i, int y) {
      const auto next = row(y);
      low[i] = Of::low_pairs(before, next);
      high[i] = Of::high_pairs(before, next);
      before = next;
    };
    for (int i = 0; i < 6; ++i) pair(i, i - 2);
    for (int y = 0; y < rows; ++y) {
      pair(6, y + 4);
      const auto first = weighted<Of>(down, [&](int i) { return low[2 * i]; });
      const auto second = weighted<Of>(down, [&](int i) { return high[2 * i]; });
      Of::store(out + y * out_stride, Of::pack(Of::template down<6>(first), Of::template down<6>(second)));
      for (int i = 0; i < 6; ++i) {
        low[i] = low[i + 1];
        high[i] = high[i + 1];
      }
    }
  }
  return range.is_within(kNarrowInput >> up);
}

template <bool kAlong, bool kDown>
bool interpolate_in(const std::int16_t* in, Index in_stride, std::int16_t* out, Index out_stride, int rows, int columns,
                    int phase_x, int phase_y, int up) {
  const Pairs along(phase_x, up), down(phase_y, 0);
  int x = 0;
  const auto strip = [&](auto of) {
    using Of = decltype(of);
    const std::int16_t* const from = in + x;
    std::int16_t* const to = out + x;
    x += Of::kLanes;
    return interpolate_strip<Of, kAlong, kDown>(from, in_stride, to, out_stride, rows, along, down, up);
  };
  bool fits = true;
#if defined(__AVX512BW__)
  while (fits && columns - x >= 32) fits = strip(ThirtyTwo{});
#endif
  while (fits && columns - x >= 16) fits = strip(Sixteen{});
  while (fits && columns > x) fits = strip(Eight{});
  return fits;
}

bool interpolate(const std::int16_t* in, Index in_stride, std::int16_t* out, Index out_stride, int rows, int columns,
                 int phase_x, int phase_y, int up) {
  const auto with = [&](auto in_phase) {
    return in_phase(in, in_stride, out, out_stride, rows, columns, phase_x, phase_y, up);
  };
  if (phase_x == 0) return phase_y == 0 ? with(interpolate_in<false, false>) : with(interpolate_in<false, true>);
  return phase_y == 0 ? with(interpolate_in<true, false>) : with(interpolate_in<true, true>);
}

#else

// Sums of products with the taps of a phase. Tap i belongs to the numbers of in[i].
template <class In>
inline void filter(const In* const in[8], int phase, int up, int columns, std::int32_t* TRIVELET_RESTRICT out) {
  std::int32_t k[8];
  for (int i = 0; i < 8; ++i) k[i] = motion_tap(phase, i) * (1 << up);
  for (int x = 0; x < columns; ++x) {
    std::int32_t sum = 32;
    for (int i = 0; i < 8; ++i) sum += k[i] * in[i][x];
    out[x] = sum >> 6;
  }
}

bool is_within(const std::int16_t* in, Index in_stride, int rows, int columns, int limit) {
  int least = 0, most = 0;
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; ++x) {
      const int v = in[y * in_stride + x];
      least = v < least ? v : least;
      most = v > most ? v : most;
    }
  return least >= -limit && most <= limit;
}

bool interpolate(const std::int16_t* in, Index in_stride, std::int16_t* out, Index out_stride, int rows, int columns,
                 int phase_x, int phase_y, int up) {
  constexpr int kAtOnce = 64;
  const int above = phase_y != 0 ? 3 : 0, below = phase_y != 0 ? 4 : 0;
  const int left = phase_x != 0 ? 3 : 0, right = phase_x != 0 ? 4 : 0;
  if (!is_within(in - above * in_stride - left, in_stride, above + rows + below, left + columns + right,
                 kNarrowInput >> up))
    return false;
  for (int x = 0; x < columns; x += kAtOnce) {
    const int n = columns - x < kAtOnce ? columns - x : kAtOnce;
    std::int32_t ring[8][kAtOnce], sums[kAtOnce];  // row y is ring[y & 7]
    const auto add_row = [&](int y) {
      const std::int16_t* const from = in + y * in_stride + x;
      const std::int16_t* const at[8] = {from - 3, from - 2, from - 1, from, from + 1, from + 2, from + 3, from + 4};
      if (phase_x != 0) return filter(at, phase_x, up, n, ring[y & 7]);
      for (int i = 0; i < n; ++i) ring[y & 7][i] = from[i] * (1 << up);
    };
    for (int y = -above; y < below; ++y) add_row(y);
    for (int y = 0; y < rows; ++y) {
      add_row(y + below);
      const std::int32_t* at[8];
      for (int i = 0; i < 8; ++i) at[i] = ring[(y + i - 3) & 7];
      if (phase_y != 0) filter(at, phase_y, 0, n, sums);
      const std::int32_t* const from = phase_y != 0 ? sums : ring[y & 7];
      for (int i = 0; i < n; ++i) out[y * out_stride + x + i] = static_cast<std::int16_t>(from[i]);
    }
  }
  return true;
}

#endif

// ------------------------------------------------------------------------------------------------------------ lifting

typedef std::uint16_t Bits4 __attribute__((vector_size(8)));
typedef std::int16_t Short4 __attribute__((vector_size(8)));
typedef std::uint16_t Bits8 __attribute__((vector_size(16)));
typedef std::int16_t Short8 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef std::uint16_t Bits16 __attribute__((vector_size(32)));
typedef std::int16_t Short16 __attribute__((vector_size(32)));
#endif
#if defined(__AVX512BW__)
typedef std::uint16_t Bits32 __attribute__((vector_size(64)));
typedef std::int16_t Short32 __attribute__((vector_size(64)));
#endif

// in_strips() for numbers of 16 bits: U and S have as many of them as fit into a vector.
template <class F>
inline void in_short_strips(int n, const F& f) {
  int x = 0;
#if defined(__AVX512BW__)
  for (; n - x >= 32; x += 32) f(Strip<Bits32, Short32>{}, x);
#endif
#if defined(__AVX2__)
  for (; n - x >= 16; x += 16) f(Strip<Bits16, Short16>{}, x);
#endif
  for (; n - x >= 8; x += 8) f(Strip<Bits8, Short8>{}, x);
  for (; n - x >= 4; x += 4) f(Strip<Bits4, Short4>{}, x);
  for (; x < n; ++x) f(Strip<std::uint16_t, std::int16_t>{}, x);
}

template <class U>
inline U load_bits(const std::int16_t* p) {
  U v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

// Whether the sign of a number is set.
template <class U>
inline bool any_sign(const U& v) {
  if constexpr (sizeof(U) == sizeof(std::uint16_t)) {
    return (v & 0x8000) != 0;
  } else {
    std::uint64_t words[sizeof(U) / sizeof(std::uint64_t)], all = 0;
    __builtin_memcpy(words, &v, sizeof v);
    for (const std::uint64_t word : words) all |= word;
    return (all & 0x8000800080008000u) != 0;
  }
}

// x -= p(strip, y, column), or += with kAdd, by strips of columns. A sum that 16 bits do not hold has another sign than
// both numbers, such a difference another sign than x where p has, too.
template <bool kAdd, class P>
inline bool lift_narrow_with(std::int16_t* x, Index x_stride, int rows, int columns, const P& p) {
  bool fits = true;
  in_short_strips(columns, [&](auto of, int at) {
    using U = typename decltype(of)::U;
    U changed{};
    for (int y = 0; y < rows; ++y) {
      std::int16_t* const to = x + y * x_stride + at;
      const U before = load_bits<U>(to), by = p(of, y, at);
      const U after = static_cast<U>(kAdd ? before + by : before - by);
      changed |= static_cast<U>((before ^ after) & (kAdd ? by ^ after : before ^ by));
      __builtin_memcpy(to, &after, sizeof after);
    }
    fits = !any_sign(changed) && fits;
  });
  return fits;
}
template <class P>
inline bool lift_narrow_with(std::int16_t* x, Index x_stride, int rows, int columns, bool add, const P& p) {
  return add ? lift_narrow_with<true>(x, x_stride, rows, columns, p)
             : lift_narrow_with<false>(x, x_stride, rows, columns, p);
}

bool lift(std::int16_t* x, Index x_stride, const std::int16_t* p, Index p_stride, int rows, int columns, int shift,
          bool add) {
  return lift_narrow_with(x, x_stride, rows, columns, add, [=](auto of, int y, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    return (U)((S)load_bits<U>(p + y * p_stride + at) >> shift);
  });
}

bool lift_mean(std::int16_t* x, Index x_stride, const std::int16_t* a, Index a_stride, const std::int16_t* b,
               Index b_stride, int rows, int columns, int shift, bool add) {
  return lift_narrow_with(x, x_stride, rows, columns, add, [=](auto of, int y, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    const U v = load_bits<U>(a + y * a_stride + at), w = load_bits<U>(b + y * b_stride + at);
    const U mean = static_cast<U>((v | w) - (U)((S)(v ^ w) >> 1));  // (v + w + 1) >> 1 without its carry
    return (U)((S)mean >> shift);
  });
}

// -------------------------------------------------------------------------------------------------------- conversion

bool from_real(const float* TRIVELET_RESTRICT in, std::int16_t* TRIVELET_RESTRICT out, int n, float gain) {
  std::int32_t changed = 0;
  for (int i = 0; i < n; ++i) {
    const std::int32_t v = clamp_round(in[i] * gain, -kMotionLargest, kMotionLargest);
    out[i] = static_cast<std::int16_t>(v);
    changed |= v ^ out[i];
  }
  return changed == 0;
}

template <class Sample>
void store(const std::int16_t* in, int fraction, std::int32_t offset, std::int32_t min_sample, std::int32_t max_sample,
           std::byte* samples, int n) {
  const std::int32_t low = min_sample - offset, high = max_sample - offset;
  const std::int32_t half = fraction > 0 ? 1 << (fraction - 1) : 0;
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < n; ++i) {
    const Sample s = static_cast<Sample>(clamp_int((in[i] + half) >> fraction, low, high) + offset);
    __builtin_memcpy(samples + i * static_cast<Index>(sizeof(Sample)), &s, sizeof(Sample));
  }
}

}  // namespace

const NarrowKernels kNarrowKernels = {
    interpolate,
    lift,
    lift_mean,
    from_real,
    {store<std::uint8_t>, store<std::int8_t>, store<std::uint16_t>, store<std::int16_t>},
};

}  // namespace trivelet::TRIVELET_ISA
