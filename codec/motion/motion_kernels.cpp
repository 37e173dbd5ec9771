// Loops of motion compensation, compiled once per instruction set (codec/base/simd.h). The compiler
// vectorises most of them. Blocks are small: where the remainder of a row would take longer than the row, the loop is
// written in vectors. Sums wrap around at 32 bits, hence the casts to uint32.
#include "codec/motion/motion_kernels.h"

#include <cstddef>

#include "codec/motion/number_vectors.h"

namespace trivelet::TRIVELET_ISA {
namespace {

struct Taps {
  Wrap k[8];
};
inline Taps taps_of(int phase, int up) {
  Taps t;
  for (int i = 0; i < 8; ++i) t.k[i] = static_cast<Wrap>(motion_tap(phase, i)) << up;
  return t;
}

// One row of a strip, filtered unless `phase` is 0.
template <class U, class S, class In>
inline U filtered(const In* in, const Taps& taps, int phase, int up) {
  if (phase == 0) return load_numbers<U>(in) << up;
  U sum = load_numbers<U>(in - 3) * taps.k[0] + 32;
  for (int i = 1; i < 8; ++i) sum += load_numbers<U>(in + i - 3) * taps.k[i];
  return (U)((S)sum >> 6);
}

// A strip as wide as U. Each row is filtered once; eight rows are kept for the filter along columns.
template <class U, class S, class In>
inline void interpolate_strip(const In* in, Index in_stride, std::int32_t* out, Index out_stride, int rows,
                              const Taps& along, const Taps& down, int phase_x, int phase_y, int up) {
  if (phase_y == 0) {
    for (int y = 0; y < rows; ++y)
      store_numbers(out + y * out_stride, filtered<U, S>(in + y * in_stride, along, phase_x, up));
    return;
  }
  U row[8];
  for (int i = 0; i < 7; ++i) row[i] = filtered<U, S>(in + (i - 3) * in_stride, along, phase_x, up);
  for (int y = 0; y < rows; ++y) {
    row[7] = filtered<U, S>(in + (y + 4) * in_stride, along, phase_x, up);
    U sum = row[0] * down.k[0] + 32;
    for (int i = 1; i < 8; ++i) sum += row[i] * down.k[i];
    store_numbers(out + y * out_stride, (U)((S)sum >> 6));
    for (int i = 0; i < 7; ++i) row[i] = row[i + 1];
  }
}

template <class In>
void interpolate(const In* in, Index in_stride, std::int32_t* out, Index out_stride, int rows, int columns, int phase_x,
                 int phase_y, int up) {
  const Taps along = taps_of(phase_x, up);
  const Taps down = taps_of(phase_y, 0);
  in_strips(columns, [&](auto of, int x) {
    using Of = decltype(of);
    interpolate_strip<typename Of::U, typename Of::S>(in + x, in_stride, out + x, out_stride, rows, along, down,
                                                      phase_x, phase_y, up);
  });
}

// x -= p(y, column, strip), or += with `add`, by strips of columns.
template <class X, class P>
inline bool lift_with(X* x, Index x_stride, int rows, int columns, bool add, const P& p) {
  const Wrap sign = add ? 1u : ~0u;
  bool fits = true;
  in_strips(columns, [&](auto of, int at) {
    using U = typename decltype(of)::U;
    U changed{};
    for (int y = 0; y < rows; ++y) {
      X* to = x + y * x_stride + at;
      store_numbers(to, load_numbers<U>(to) + sign * p(of, y, at), changed);
    }
    if constexpr (sizeof(X) < sizeof(Wrap)) fits = !any(changed) && fits;
  });
  return fits;
}

template <class X>
bool lift_by(X* x, Index x_stride, const std::int32_t* p, Index p_stride, int rows, int columns, int shift, bool add) {
  return lift_with(x, x_stride, rows, columns, add, [=](auto of, int y, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    return (U)((S)load_numbers<U>(p + y * p_stride + at) >> shift);
  });
}

template <class X>
bool lift_mean(X* x, Index x_stride, const std::int32_t* a, Index a_stride, const std::int32_t* b, Index b_stride,
               int rows, int columns, int shift, bool add) {
  return lift_with(x, x_stride, rows, columns, add, [=](auto of, int y, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    return (U)((S)(load_numbers<U>(a + y * a_stride + at) + load_numbers<U>(b + y * b_stride + at) + 1) >> 1 >> shift);
  });
}

template <class X>
bool lift_sum(X* x, Index x_stride, const std::int32_t* sum, Index sum_stride, int rows, int columns, int shift,
              bool add) {
  return lift_with(x, x_stride, rows, columns, add, [=](auto of, int y, int at) {
    using U = typename decltype(of)::U;
    using S = typename decltype(of)::S;
    return (U)((S)(load_numbers<U>(sum + y * sum_stride + at) + kMotionWeight * kMotionWeight / 2) >> 8 >> shift);
  });
}

// A strip of accumulate().
template <class U, class S, class P>
inline void accumulate_strip(const P* a, Index a_stride, const P* b, Index b_stride, int rows,
                             const std::int32_t* weight_x, const std::int32_t* weight_y, std::int32_t* sum,
                             Index sum_stride) {
  const U weight = load_numbers<U>(weight_x);
  for (int y = 0; y < rows; ++y) {
    U v = load_numbers<U>(a + y * a_stride);
    if (b) v = (U)((S)(v + load_numbers<U>(b + y * b_stride) + 1) >> 1);
    std::int32_t* to = sum + y * sum_stride;
    store_numbers(to, load_numbers<U>(to) + weight * static_cast<Wrap>(weight_y[y]) * v);
  }
}

template <class P>
void accumulate(const P* a, Index a_stride, const P* b, Index b_stride, int rows, int columns,
                const std::int32_t* weight_x, const std::int32_t* weight_y, std::int32_t* sum, Index sum_stride) {
  in_strips(columns, [&](auto of, int x) {
    using Of = decltype(of);
    accumulate_strip<typename Of::U, typename Of::S>(a + x, a_stride, b ? b + x : nullptr, b_stride, rows, weight_x + x,
                                                     weight_y, sum + x, sum_stride);
  });
}

// kBelow: there are two rows. kBeside: they also reach the next sample.
template <bool kBelow, bool kBeside, class X>
inline void scatter_row(const X* TRIVELET_RESTRICT h, const X* TRIVELET_RESTRICT g, int n, const std::int32_t weight[4],
                        std::int32_t* TRIVELET_RESTRICT sum, std::int32_t* TRIVELET_RESTRICT total) {
  const Wrap a = static_cast<Wrap>(weight[0]), b = kBeside ? static_cast<Wrap>(weight[1]) : 0;
  const Wrap c = kBelow ? static_cast<Wrap>(weight[2]) : 0, d = kBelow && kBeside ? static_cast<Wrap>(weight[3]) : 0;
  const auto at = [&](int i, Wrap by_h, Wrap by_g) {
    Wrap s = by_h * static_cast<Wrap>(std::int32_t{h[i]});
    if (kBelow) s += by_g * static_cast<Wrap>(std::int32_t{g[i]});
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

template <class X>
void scatter(const X* h, const X* g, int n, const std::int32_t weight[4], std::int32_t* sum, std::int32_t* total) {
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

template <class X>
bool update(X* TRIVELET_RESTRICT x, const std::int32_t* TRIVELET_RESTRICT sum,
            const std::int32_t* TRIVELET_RESTRICT total, int n, const std::int32_t* TRIVELET_RESTRICT shares,
            std::int32_t limit, bool inverse) {
  constexpr int kChunk = 64;
  const Wrap sign = inverse ? ~0u : 1u;
  std::int32_t changed = 0;
  const auto change = [&](int i, std::int32_t v) {
    v = back(static_cast<Wrap>(v) + 128) >> 8;
    v = v < -limit ? -limit : v;
    v = back(static_cast<Wrap>(std::int32_t{x[i]}) + sign * static_cast<Wrap>(v > limit ? limit : v));
    x[i] = static_cast<X>(v);
    changed |= v ^ x[i];
  };
  for (int first = 0; first < n; first += kChunk) {
    const int end = n - first < kChunk ? n : first + kChunk;
    Wrap most = 0;
    for (int i = first; i < end; ++i) most = static_cast<Wrap>(total[i]) > most ? static_cast<Wrap>(total[i]) : most;
    if (most <= kMotionMostShare)
      for (int i = first; i < end; ++i) change(i, sum[i]);
    else if (most < kMotionShares)
      for (int i = first; i < end; ++i) change(i, shared(sum[i], shares[total[i]]));
    else
      for (int i = first; i < end; ++i) change(i, shared(sum[i], motion_share(static_cast<Wrap>(total[i]))));
  }
  return changed == 0;
}

template <class X>
void join(const X* TRIVELET_RESTRICT x, X* TRIVELET_RESTRICT bits, int n) {
  for (int i = 0; i < n; ++i) bits[i] = static_cast<X>(bits[i] | x[i]);
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

void to_wide(const std::int16_t* TRIVELET_RESTRICT from, std::int32_t* TRIVELET_RESTRICT to, int n) {
  for (int i = 0; i < n; ++i) to[i] = from[i];
}

bool to_narrow(const std::int32_t* TRIVELET_RESTRICT from, std::int16_t* TRIVELET_RESTRICT to, int n) {
  std::int32_t changed = 0;
  for (int i = 0; i < n; ++i) {
    to[i] = static_cast<std::int16_t>(from[i]);
    changed |= from[i] ^ to[i];
  }
  return changed == 0;
}

}  // namespace

const MotionKernels kMotionKernels = {
    {interpolate<std::int32_t>, lift_by<std::int32_t>, lift_mean<std::int32_t>, lift_sum<std::int32_t>,
     accumulate<std::int32_t>, scatter<std::int32_t>, update<std::int32_t>, join<std::int32_t>},
    {interpolate<std::int16_t>, lift_by<std::int16_t>, lift_mean<std::int16_t>, lift_sum<std::int16_t>,
     accumulate<std::int16_t>, scatter<std::int16_t>, update<std::int16_t>, join<std::int16_t>},
    from_real,
    to_real,
    widen,
    round_places,
    to_wide,
    to_narrow,
};

}  // namespace trivelet::TRIVELET_ISA
