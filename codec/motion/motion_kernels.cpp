// Loops of motion compensation and motion search, compiled once per instruction set (codec/base/simd.h). The compiler
// vectorises most of them. Blocks are small: where the remainder of a row would take longer than the row, the loop is
// written in vectors. Sums wrap around at 32 bits, hence the casts to uint32.
#include "codec/motion/motion_kernels.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define TRIVELET_RESTRICT __restrict__

namespace trivelet::TRIVELET_ISA {
namespace {

using Index = std::ptrdiff_t;
using Wrap = std::uint32_t;

inline std::int32_t back(Wrap v) { return static_cast<std::int32_t>(v); }

// Vectors of neighbours: U for arithmetic, S for shifts that keep the sign.
typedef Wrap U4 __attribute__((vector_size(16)));
typedef std::int32_t S4 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef Wrap U8 __attribute__((vector_size(32)));
typedef std::int32_t S8 __attribute__((vector_size(32)));
#endif
#if defined(__AVX512F__)
typedef Wrap U16 __attribute__((vector_size(64)));
typedef std::int32_t S16 __attribute__((vector_size(64)));
#endif

template <class U>
inline U load(const std::int32_t* p) {
  U v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
template <class U>
inline void store(std::int32_t* p, U v) {
  __builtin_memcpy(p, &v, sizeof v);
}

/// Numbers beside each other that one strip of a block has.
template <class Unsigned, class Signed>
struct Strip {
  using U = Unsigned;
  using S = Signed;
};
/// Calls f(Strip, first column) for strips of n columns, the widest first.
template <class F>
inline void in_strips(int n, const F& f) {
  int x = 0;
#if defined(__AVX512F__)
  for (; n - x >= 16; x += 16) f(Strip<U16, S16>{}, x);
#endif
#if defined(__AVX2__)
  for (; n - x >= 8; x += 8) f(Strip<U8, S8>{}, x);
#endif
  for (; n - x >= 4; x += 4) f(Strip<U4, S4>{}, x);
  for (; x < n; ++x) f(Strip<Wrap, std::int32_t>{}, x);
}

struct Taps {
  Wrap k[8];
};
inline Taps taps_of(int phase, int up) {
  Taps t;
  for (int i = 0; i < 8; ++i) t.k[i] = static_cast<Wrap>(motion_tap(phase, i)) << up;
  return t;
}

// One row of a strip, filtered unless `phase` is 0.
template <class U, class S>
inline U filtered(const std::int32_t* in, const Taps& taps, int phase, int up) {
  if (phase == 0) return load<U>(in) << up;
  U sum = load<U>(in - 3) * taps.k[0] + 32;
  for (int i = 1; i < 8; ++i) sum += load<U>(in + i - 3) * taps.k[i];
  return (U)((S)sum >> 6);
}

// A strip as wide as U. Each row is filtered once; eight rows are kept for the filter along columns.
template <class U, class S>
inline void interpolate_strip(const std::int32_t* in, Index in_stride, std::int32_t* out, Index out_stride, int rows,
                              const Taps& along, const Taps& down, int phase_x, int phase_y, int up) {
  if (phase_y == 0) {
    for (int y = 0; y < rows; ++y) store(out + y * out_stride, filtered<U, S>(in + y * in_stride, along, phase_x, up));
    return;
  }
  U row[8];
  for (int i = 0; i < 7; ++i) row[i] = filtered<U, S>(in + (i - 3) * in_stride, along, phase_x, up);
  for (int y = 0; y < rows; ++y) {
    row[7] = filtered<U, S>(in + (y + 4) * in_stride, along, phase_x, up);
    U sum = row[0] * down.k[0] + 32;
    for (int i = 1; i < 8; ++i) sum += row[i] * down.k[i];
    store(out + y * out_stride, (U)((S)sum >> 6));
    for (int i = 0; i < 7; ++i) row[i] = row[i + 1];
  }
}

void interpolate(const std::int32_t* in, Index in_stride, std::int32_t* out, Index out_stride, int rows, int columns,
                 int phase_x, int phase_y, int up) {
  const Taps along = taps_of(phase_x, up);
  const Taps down = taps_of(phase_y, 0);
  in_strips(columns, [&](auto of, int x) {
    using Of = decltype(of);
    interpolate_strip<typename Of::U, typename Of::S>(in + x, in_stride, out + x, out_stride, rows, along, down,
                                                      phase_x, phase_y, up);
  });
}

void lift_by(std::int32_t* x, Index x_stride, const std::int32_t* p, Index p_stride, int rows, int columns, int shift,
             bool add) {
  const Wrap sign = add ? 1u : ~0u;
  for (int y = 0; y < rows; ++y) {
    std::int32_t* TRIVELET_RESTRICT to = x + y * x_stride;
    const std::int32_t* TRIVELET_RESTRICT from = p + y * p_stride;
    for (int i = 0; i < columns; ++i)
      to[i] = back(static_cast<Wrap>(to[i]) + sign * static_cast<Wrap>(from[i] >> shift));
  }
}

void lift_mean(std::int32_t* x, Index x_stride, const std::int32_t* a, Index a_stride, const std::int32_t* b,
               Index b_stride, int rows, int columns, int shift, bool add) {
  const Wrap sign = add ? 1u : ~0u;
  for (int y = 0; y < rows; ++y) {
    std::int32_t* TRIVELET_RESTRICT to = x + y * x_stride;
    const std::int32_t* TRIVELET_RESTRICT p = a + y * a_stride;
    const std::int32_t* TRIVELET_RESTRICT q = b + y * b_stride;
    for (int i = 0; i < columns; ++i) {
      const std::int32_t mean = back(static_cast<Wrap>(p[i]) + static_cast<Wrap>(q[i]) + 1) >> 1;
      to[i] = back(static_cast<Wrap>(to[i]) + sign * static_cast<Wrap>(mean >> shift));
    }
  }
}

// Strips of accumulate() and lift_sum().
template <class U, class S>
inline void accumulate_strip(const std::int32_t* a, Index a_stride, const std::int32_t* b, Index b_stride, int rows,
                             const std::int32_t* weight_x, const std::int32_t* weight_y, std::int32_t* sum,
                             Index sum_stride) {
  const U weight = load<U>(weight_x);
  for (int y = 0; y < rows; ++y) {
    U v = load<U>(a + y * a_stride);
    if (b) v = (U)((S)(v + load<U>(b + y * b_stride) + 1) >> 1);
    std::int32_t* to = sum + y * sum_stride;
    store(to, load<U>(to) + weight * static_cast<Wrap>(weight_y[y]) * v);
  }
}

void accumulate(const std::int32_t* a, Index a_stride, const std::int32_t* b, Index b_stride, int rows, int columns,
                const std::int32_t* weight_x, const std::int32_t* weight_y, std::int32_t* sum, Index sum_stride) {
  in_strips(columns, [&](auto of, int x) {
    using Of = decltype(of);
    accumulate_strip<typename Of::U, typename Of::S>(a + x, a_stride, b ? b + x : nullptr, b_stride, rows, weight_x + x,
                                                     weight_y, sum + x, sum_stride);
  });
}

void lift_sum(std::int32_t* x, Index x_stride, const std::int32_t* sum, Index sum_stride, int rows, int columns,
              int shift, bool add) {
  const Wrap sign = add ? 1u : ~0u;
  in_strips(columns, [=](auto of, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    for (int y = 0; y < rows; ++y) {
      const U mean = (U)((S)(load<U>(sum + y * sum_stride + at) + kMotionWeight * kMotionWeight / 2) >> 8);
      std::int32_t* to = x + y * x_stride + at;
      store(to, load<U>(to) + sign * (U)((S)mean >> shift));
    }
  });
}

// kBelow: there are two rows. kBeside: they also reach the next sample.
template <bool kBelow, bool kBeside>
inline void scatter_row(const std::int32_t* TRIVELET_RESTRICT h, const std::int32_t* TRIVELET_RESTRICT g, int n,
                        const std::int32_t weight[4], std::int32_t* TRIVELET_RESTRICT sum,
                        std::int32_t* TRIVELET_RESTRICT total) {
  const Wrap a = static_cast<Wrap>(weight[0]), b = kBeside ? static_cast<Wrap>(weight[1]) : 0;
  const Wrap c = kBelow ? static_cast<Wrap>(weight[2]) : 0, d = kBelow && kBeside ? static_cast<Wrap>(weight[3]) : 0;
  const auto at = [&](int i, Wrap of_h, Wrap of_g) {
    Wrap s = of_h * static_cast<Wrap>(h[i]);
    if (kBelow) s += of_g * static_cast<Wrap>(g[i]);
    return s;
  };
  const auto add = [&](int i, Wrap s, Wrap t) {
    sum[i] = back(static_cast<Wrap>(sum[i]) + s);
    total[i] = back(static_cast<Wrap>(total[i]) + t);
  };
  if (!kBeside) {
    for (int i = 0; i < n; ++i) add(i, at(i, a, c), a + c);
    return;
  }
  add(0, at(0, a, c), a + c);
  for (int i = 1; i < n; ++i) add(i, at(i, a, c) + at(i - 1, b, d), a + b + c + d);
  add(n, at(n - 1, b, d), b + d);
}

void scatter(const std::int32_t* h, const std::int32_t* g, int n, const std::int32_t weight[4], std::int32_t* sum,
             std::int32_t* total) {
  const bool beside = weight[1] != 0 || weight[3] != 0;
  if (g)
    beside ? scatter_row<true, true>(h, g, n, weight, sum, total)
           : scatter_row<true, false>(h, g, n, weight, sum, total);
  else
    beside ? scatter_row<false, true>(h, g, n, weight, sum, total)
           : scatter_row<false, false>(h, g, n, weight, sum, total);
}

// Product of an integer and a share without an intermediate above 32 bits.
inline std::int32_t shared(std::int32_t sum, std::int32_t share) {
  return (sum >> 15) * share + ((sum & 0x7fff) * share >> 15);
}

void update(std::int32_t* TRIVELET_RESTRICT x, const std::int32_t* TRIVELET_RESTRICT sum,
            const std::int32_t* TRIVELET_RESTRICT total, int n, const std::int32_t* TRIVELET_RESTRICT shares,
            std::int32_t limit, bool inverse) {
  constexpr int kChunk = 64;
  const Wrap sign = inverse ? ~0u : 1u;
  const auto limited = [&](std::int32_t v) {
    v = back(static_cast<Wrap>(v) + 128) >> 8;
    v = v < -limit ? -limit : v;
    return v > limit ? limit : v;
  };
  for (int first = 0; first < n; first += kChunk) {
    const int end = n - first < kChunk ? n : first + kChunk;
    Wrap most = 0;
    for (int i = first; i < end; ++i) most = static_cast<Wrap>(total[i]) > most ? static_cast<Wrap>(total[i]) : most;
    if (most <= kMotionMostShare) {
      for (int i = first; i < end; ++i)
        x[i] = back(static_cast<Wrap>(x[i]) + sign * static_cast<Wrap>(limited(sum[i])));
    } else if (most < kMotionShares) {
      for (int i = first; i < end; ++i)
        x[i] = back(static_cast<Wrap>(x[i]) + sign * static_cast<Wrap>(limited(shared(sum[i], shares[total[i]]))));
    } else {
      for (int i = first; i < end; ++i)
        x[i] = back(static_cast<Wrap>(x[i]) +
                    sign * static_cast<Wrap>(limited(shared(sum[i], motion_share(static_cast<Wrap>(total[i]))))));
    }
  }
}

// Converts numbers in place through bytes, which aliasing rules allow.
template <class From, class To, class F>
inline void convert(void* x, int n, const F& f) {
  static_assert(sizeof(From) == sizeof(To));
  char* bytes = static_cast<char*>(x);
  for (int i = 0; i < n; ++i) {
    From from;
    __builtin_memcpy(&from, bytes + i * static_cast<Index>(sizeof from), sizeof from);
    const To to = f(from);
    __builtin_memcpy(bytes + i * static_cast<Index>(sizeof to), &to, sizeof to);
  }
}

void from_real(void* x, int n, float gain) {
  convert<float, std::int32_t>(x, n,
                               [gain](float v) { return clamp_round(v * gain, -kMotionLargest, kMotionLargest); });
}

void to_real(void* x, int n) {
  convert<std::int32_t, float>(x, n,
                               [](std::int32_t v) { return static_cast<float>(v) * (1.0f / (1 << kMotionFraction)); });
}

void widen(std::int32_t* x, int n) {
  for (int i = 0; i < n; ++i) x[i] = back(static_cast<Wrap>(x[i]) << kMotionFraction);
}

void round_places(std::int32_t* x, int n) {
  for (int i = 0; i < n; ++i) x[i] = back(static_cast<Wrap>(x[i]) + (1u << (kMotionFraction - 1))) >> kMotionFraction;
}

// ------------------------------------------------------------------------------------------------------------- search

// Rows of 16-bit samples, 8 to 32 at a time; the wider ones hold rows of adjacent blocks. The second type holds sums of
// pairs.
typedef std::int16_t Lanes8 __attribute__((vector_size(16)));
typedef Wrap Pairs8 __attribute__((vector_size(16)));
#if defined(__AVX2__)
typedef std::int16_t Lanes16 __attribute__((vector_size(32)));
typedef Wrap Pairs16 __attribute__((vector_size(32)));
#endif
#if defined(__AVX512BW__)
typedef std::int16_t Lanes32 __attribute__((vector_size(64)));
typedef Wrap Pairs32 __attribute__((vector_size(64)));
#endif

template <class V>
inline V load_lanes(const std::int16_t* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}

template <class V>
inline V magnitude(V v) {
  return v < 0 ? -v : v;
}

// Sums of pairs of non-negative lanes.
template <class V, class P>
inline P pairs(V v) {
  const P p = (P)v;
  return (p & 0xffff) + (p >> 16);
}

template <class P>
inline int total_of(P p) {
  Wrap of[sizeof p / sizeof(Wrap)];
  __builtin_memcpy(of, &p, sizeof p);
  Wrap sum = 0;
  for (Wrap w : of) sum += w;
  return back(sum);
}

template <class V, class P>
inline int sad_in(const std::int16_t* a, Index a_stride, const std::int16_t* b, Index b_stride, int rows, int columns,
                  int limit) {
  constexpr int kAtOnce = sizeof(V) / 2;
  int sum = 0;
  for (int y = 0; y < rows && sum < limit; y += 8) {
    P part = {};
    for (int j = y; j < y + 8; ++j)
      for (int x = 0; x < columns; x += kAtOnce)
        part += pairs<V, P>(magnitude(load_lanes<V>(a + j * a_stride + x) - load_lanes<V>(b + j * b_stride + x)));
    sum += total_of(part);
  }
  return sum;
}

int sad(const std::int16_t* a, Index a_stride, const std::int16_t* b, Index b_stride, int rows, int columns,
        int limit) {
#if defined(__AVX512BW__)
  if (columns % 32 == 0) return sad_in<Lanes32, Pairs32>(a, a_stride, b, b_stride, rows, columns, limit);
#endif
#if defined(__AVX2__)
  if (columns % 16 == 0) return sad_in<Lanes16, Pairs16>(a, a_stride, b, b_stride, rows, columns, limit);
#endif
  return sad_in<Lanes8, Pairs8>(a, a_stride, b, b_stride, rows, columns, limit);
}

// Samples have 12 bits and a sign; differences are divided by 8, so that their transform stays within 16.

// Stages of an 8-point Hadamard transform; the last one only if `all`.
template <class V>
inline void butterflies(V m[8], bool all) {
  for (int s = 4; s > (all ? 0 : 1); s >>= 1)
    for (int j = 0; j < 8; ++j)
      if (!(j & s)) {
        const V u = m[j];
        const V v = m[j + s];
        m[j] = u + v;
        m[j + s] = u - v;
      }
}

// The lower and the upper halves of two rows, interleaved, in each eight lanes.
inline Lanes8 lower(Lanes8 a, Lanes8 b) { return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Lanes8 upper(Lanes8 a, Lanes8 b) { return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15); }
#if defined(__AVX2__)
inline Lanes16 lower(Lanes16 a, Lanes16 b) {
  return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 8, 24, 9, 25, 10, 26, 11, 27);
}
inline Lanes16 upper(Lanes16 a, Lanes16 b) {
  return __builtin_shufflevector(a, b, 4, 20, 5, 21, 6, 22, 7, 23, 12, 28, 13, 29, 14, 30, 15, 31);
}
#endif
#if defined(__AVX512BW__)
inline Lanes32 lower(Lanes32 a, Lanes32 b) {
  return __builtin_shufflevector(a, b, 0, 32, 1, 33, 2, 34, 3, 35, 8, 40, 9, 41, 10, 42, 11, 43, 16, 48, 17, 49, 18, 50,
                                 19, 51, 24, 56, 25, 57, 26, 58, 27, 59);
}
inline Lanes32 upper(Lanes32 a, Lanes32 b) {
  return __builtin_shufflevector(a, b, 4, 36, 5, 37, 6, 38, 7, 39, 12, 44, 13, 45, 14, 46, 15, 47, 20, 52, 21, 53, 22,
                                 54, 23, 55, 28, 60, 29, 61, 30, 62, 31, 63);
}
#endif

// Interleaves rows i and i + 4 three times, which transposes each block.
template <class V>
inline void transpose(V m[8]) {
  for (int round = 0; round < 3; ++round) {
    V t[8];
    for (int i = 0; i < 4; ++i) {
      t[2 * i] = lower(m[i], m[i + 4]);
      t[2 * i + 1] = upper(m[i], m[i + 4]);
    }
    for (int i = 0; i < 8; ++i) m[i] = t[i];
  }
}

// Half the magnitudes of the transforms of adjacent blocks of differences.
template <class V, class P>
inline P transformed(V m[8]) {
  butterflies(m, true);
  transpose(m);
  butterflies(m, false);
  // The last stage and the sum of its magnitudes: |u + v| + |u - v| = 2 max(|u|, |v|).
  P sum = {};
  for (int j = 0; j < 8; j += 2) {
    const V u = magnitude(m[j]);
    const V v = magnitude(m[j + 1]);
    sum += pairs<V, P>(u > v ? u : v);
  }
  return sum;
}

inline int satd_of(int half) { return 2 * 8 * half / 5; }

// `at(x, j)` gives lanes of the second picture.
template <class V, class P, class At>
inline int satd_in(const std::int16_t* a, Index a_stride, int rows, int columns, int limit, const At& at) {
  constexpr int kAtOnce = sizeof(V) / 2;
  int half = 0;
  for (int y = 0; y < rows && satd_of(half) < limit; y += 8) {
    P sum = {};
    for (int x = 0; x < columns; x += kAtOnce) {
      V m[8];
      for (int j = 0; j < 8; ++j) m[j] = (load_lanes<V>(a + (y + j) * a_stride + x) - at(y + j, x)) >> 3;
      sum += transformed<V, P>(m);
    }
    half += total_of(sum);
  }
  return satd_of(half);
}

template <class V, class P>
inline int satd_as(const std::int16_t* a, Index a_stride, const std::int16_t* b, Index b_stride, int rows, int columns,
                   int limit) {
  return satd_in<V, P>(a, a_stride, rows, columns, limit,
                       [=](int y, int x) { return load_lanes<V>(b + y * b_stride + x); });
}

int satd(const std::int16_t* a, Index a_stride, const std::int16_t* b, Index b_stride, int rows, int columns,
         int limit) {
#if defined(__AVX512BW__)
  if (columns % 32 == 0) return satd_as<Lanes32, Pairs32>(a, a_stride, b, b_stride, rows, columns, limit);
#endif
#if defined(__AVX2__)
  if (columns % 16 == 0) return satd_as<Lanes16, Pairs16>(a, a_stride, b, b_stride, rows, columns, limit);
#endif
  return satd_as<Lanes8, Pairs8>(a, a_stride, b, b_stride, rows, columns, limit);
}

void satd_pair(const std::int16_t* a, Index a_stride, const std::int16_t* const b[2], Index b_stride, int out[2]) {
#if defined(__AVX2__)
  Lanes16 m[8];
  for (int j = 0; j < 8; ++j) {
    const Lanes8 of_a = load_lanes<Lanes8>(a + j * a_stride);
    const Lanes8 first = of_a - load_lanes<Lanes8>(b[0] + j * b_stride);
    const Lanes8 second = of_a - load_lanes<Lanes8>(b[1] + j * b_stride);
    m[j] = __builtin_shufflevector(first, second, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15) >> 3;
  }
  const Pairs16 sums = transformed<Lanes16, Pairs16>(m);
  for (int k = 0; k < 2; ++k) {
    Pairs8 half;
    __builtin_memcpy(&half, reinterpret_cast<const char*>(&sums) + k * static_cast<Index>(sizeof half), sizeof half);
    out[k] = satd_of(total_of(half));
  }
#else
  for (int k = 0; k < 2; ++k) out[k] = satd(a, a_stride, b[k], b_stride, 8, 8, 1);
#endif
}

// (a + b + 1) >> 1 within 16 bits
template <class V>
inline V mean_of(V a, V b) {
  return (a | b) - ((a ^ b) >> 1);
}

template <class V, class P>
inline int satd_mean_as(const std::int16_t* a, Index a_stride, const std::int16_t* b, const std::int16_t* c,
                        Index stride, int rows, int columns, int limit) {
  return satd_in<V, P>(a, a_stride, rows, columns, limit, [=](int y, int x) {
    return mean_of(load_lanes<V>(b + y * stride + x), load_lanes<V>(c + y * stride + x));
  });
}

int satd_mean(const std::int16_t* a, Index a_stride, const std::int16_t* b, const std::int16_t* c, Index stride,
              int rows, int columns, int limit) {
#if defined(__AVX512BW__)
  if (columns % 32 == 0) return satd_mean_as<Lanes32, Pairs32>(a, a_stride, b, c, stride, rows, columns, limit);
#endif
#if defined(__AVX2__)
  if (columns % 16 == 0) return satd_mean_as<Lanes16, Pairs16>(a, a_stride, b, c, stride, rows, columns, limit);
#endif
  return satd_mean_as<Lanes8, Pairs8>(a, a_stride, b, c, stride, rows, columns, limit);
}

// One or three phases of the interpolation between samples `step` apart, in a column or a row. Sums keep their lower 16
// bits.
template <int kPhases>
inline void filter16_rest(const std::int16_t* from, Index step, std::int16_t* const* out, int x, int n,
                          const int* phase) {
  for (int p = 0; p < kPhases; ++p) {
    std::int32_t k[8];
    for (int i = 0; i < 8; ++i) k[i] = motion_tap(phase[p], i);
    std::int16_t* TRIVELET_RESTRICT to = out[p];
    for (int at = x; at < n; ++at) {
      std::int32_t sum = 32;
      for (int i = 0; i < 8; ++i) sum += k[i] * from[i * step + at];
      to[at] = static_cast<std::int16_t>(sum >> 6);
    }
  }
}

#if defined(__AVX2__)
#if defined(__AVX512BW__)
using Words = __m512i;
inline Words load_words(const std::int16_t* p) { return _mm512_loadu_si512(p); }
inline void store_words(std::int16_t* p, Words v) { _mm512_storeu_si512(p, v); }
inline Words of_each(std::int32_t v) { return _mm512_set1_epi32(v); }
inline Words lower_pairs(Words a, Words b) { return _mm512_unpacklo_epi16(a, b); }
inline Words upper_pairs(Words a, Words b) { return _mm512_unpackhi_epi16(a, b); }
inline Words add_products(Words sum, Words a, Words b) { return _mm512_add_epi32(sum, _mm512_madd_epi16(a, b)); }
inline Words scaled(Words sum) { return (Words)((S16)((U16)sum << 10) >> 16); }
inline Words packed(Words lower, Words upper) { return _mm512_packs_epi32(lower, upper); }
#else
using Words = __m256i;
inline Words load_words(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
inline void store_words(std::int16_t* p, Words v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
inline Words of_each(std::int32_t v) { return _mm256_set1_epi32(v); }
inline Words lower_pairs(Words a, Words b) { return _mm256_unpacklo_epi16(a, b); }
inline Words upper_pairs(Words a, Words b) { return _mm256_unpackhi_epi16(a, b); }
inline Words add_products(Words sum, Words a, Words b) { return _mm256_add_epi32(sum, _mm256_madd_epi16(a, b)); }
inline Words scaled(Words sum) { return (Words)((S8)((U8)sum << 10) >> 16); }
inline Words packed(Words lower, Words upper) { return _mm256_packs_epi32(lower, upper); }
#endif

// Samples of two taps are adjacent, so that one instruction multiplies and adds both; phases share the loads. The
// scaled sums fit into 16 bits with their sign, so packing does not change them.
template <int kPhases>
inline void filter16(const std::int16_t* from, Index step, std::int16_t* const* out, int n, const int* phase) {
  constexpr int kWords = sizeof(Words) / 2;
  Words taps[kPhases][4];
  for (int p = 0; p < kPhases; ++p)
    for (int i = 0; i < 4; ++i)
      taps[p][i] = of_each(back(static_cast<Wrap>(motion_tap(phase[p], 2 * i)) & 0xffff) |
                           back(static_cast<Wrap>(motion_tap(phase[p], 2 * i + 1)) << 16));
  int x = 0;
  for (; n - x >= kWords; x += kWords) {
    Words low[kPhases], high[kPhases];
    for (int p = 0; p < kPhases; ++p) low[p] = high[p] = of_each(32);
    for (int i = 0; i < 4; ++i) {
      const Words a = load_words(from + 2 * i * step + x);
      const Words b = load_words(from + (2 * i + 1) * step + x);
      const Words l = lower_pairs(a, b), h = upper_pairs(a, b);
      for (int p = 0; p < kPhases; ++p) {
        low[p] = add_products(low[p], l, taps[p][i]);
        high[p] = add_products(high[p], h, taps[p][i]);
      }
    }
    for (int p = 0; p < kPhases; ++p) store_words(out[p] + x, packed(scaled(low[p]), scaled(high[p])));
  }
  filter16_rest<kPhases>(from, step, out, x, n, phase);
}
#else
template <int kPhases>
inline void filter16(const std::int16_t* from, Index step, std::int16_t* const* out, int n, const int* phase) {
  filter16_rest<kPhases>(from, step, out, 0, n, phase);
}
#endif

void filter_rows16(const std::int16_t* in, std::int16_t* out, int n, int phase) {
  filter16<1>(in - 3, 1, &out, n, &phase);
}

void filter_columns16(const std::int16_t* in, Index in_stride, std::int16_t* const out[3], int n) {
  constexpr int kPhase[3] = {2, 4, 6};
  filter16<3>(in - 3 * in_stride, in_stride, out, n, kPhase);
}

void remainder_of(const std::int16_t* a, Index a_stride, const std::int16_t* b, Index b_stride, std::int16_t* out,
                  Index out_stride, int rows, int columns) {
  for (int y = 0; y < rows; ++y)
    for (int x = 0; x < columns; x += 8) {
      const Lanes8 v = load_lanes<Lanes8>(a + y * a_stride + x);
      const Lanes8 r = v + v - load_lanes<Lanes8>(b + y * b_stride + x);
      __builtin_memcpy(out + y * out_stride + x, &r, sizeof r);
    }
}

}  // namespace

const MotionKernels kMotionKernels = {
    interpolate, lift_by,   lift_mean, accumulate,    lift_sum,         scatter,
    update,      from_real, to_real,   widen,         round_places,     sad,
    satd,        satd_pair, satd_mean, filter_rows16, filter_columns16, remainder_of,
};

}  // namespace trivelet::TRIVELET_ISA
