// Loops of the lifting transform, compiled once per instruction set (codec/base/simd.h).
//
// Columns (and time): whole rows are lifted in one sweep. When row `base` is ready, step 0 can run on row base - reach,
// step 1 on row base - 2 reach, and so on. All steps lag behind each other, and every row is read and written once
// while it is in the cache. Away from the ends one fused loop does all steps of a position; near the ends the steps run
// one by one with mirrored neighbours. The horizontal lifting of a row runs just before its first use (forward) or
// after its last (inverse).
//
// Rows: even and odd samples are separated into two arrays padded for the extension. Every step is then a loop over
// shifted arrays.
#include "codec/transform/dwt_kernels.h"

#include "codec/transform/filters.h"
#include "codec/transform/lifting.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace trivelet::TRIVELET_ISA {
namespace {

using Index = std::ptrdiff_t;

constexpr int kPrefetchColumns = 128;  // prefetched at once; more would fill the queue of outstanding misses

// -------------------------------------------------------------------------------------------------- columns and time

/// One step on one row, given its neighbours.
template <class F, int J, bool kInverse, class T = typename F::Value>
void step_row(T* x, const T* left3, const T* left1, const T* right1, const T* right3, int n) {
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < n; ++i)
    x[i] = F::template step<J, kInverse>(x[i], [=](int d) {
      return d == -1 ? left1[i] : d == 1 ? right1[i] : d == -3 ? left3[i] : right3[i];
    });
}

/// Steps from J on at `base`, one by one, for the rows that exist.
template <class F, bool kInverse, int J = 0, class T = typename F::Value>
void steps_near_end(T* plane, Index stride, int rows, int columns, int base) {
  if constexpr (J < F::kSteps) {
    const int y = base - F::kReach * (J + 1);
    const bool unpaired = F::kPairs && y == rows - 1 && y % 2 == 0;
    if (y >= 0 && y < rows && !unpaired) {
      const auto row = [=](int d) { return plane + mirror(y + d, rows) * stride; };
      step_row<F, J, kInverse>(row(0), row(-3), row(-1), row(1), row(3), columns);
    }
    steps_near_end<F, kInverse, J + 1>(plane, stride, rows, columns, base);
  }
}

/// Steps from J on, on the values v[m] of the rows base - m.
template <class F, bool kInverse, int J = 0, class T = typename F::Value>
TRIVELET_ALWAYS_INLINE void fused_steps(T* v) {
  if constexpr (J < F::kSteps) {
    constexpr int m = F::kReach * (J + 1);
    v[m] = F::template step<J, kInverse>(v[m], [=](int d) { return v[m - d]; });
    fused_steps<F, kInverse, J + 1>(v);
  }
}

/// All steps for the row `top` at `base`, away from both ends.
template <class F, bool kInverse, class T = typename F::Value>
void steps_inside(T* top, Index stride, int columns) {
  constexpr int kRows = F::kReach * (F::kSteps + 1) + 1;
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < columns; ++i) {
    T v[kRows];
#pragma GCC unroll 16
    for (int m = 0; m < kRows; ++m) v[m] = top[i - m * stride];
    fused_steps<F, kInverse>(v);
#pragma GCC unroll 16
    for (int j = 1; j <= F::kSteps; ++j) top[i - j * F::kReach * stride] = v[j * F::kReach];
  }
}

/// The same with a prefetch of the next two rows, which hardware prefetchers do not predict.
template <class F, bool kInverse, class T = typename F::Value>
void steps_inside_prefetching(T* top, Index stride, int columns) {
  constexpr int kLine = 64 / static_cast<int>(sizeof(T));
  for (int x = 0; x < columns; x += kPrefetchColumns) {
    const int n = columns - x < kPrefetchColumns ? columns - x : kPrefetchColumns;
    for (int i = x; i < x + n; i += kLine) {
      __builtin_prefetch(top + stride + i);
      __builtin_prefetch(top + 2 * stride + i);
    }
    steps_inside<F, kInverse>(top + x, stride, n);
  }
}

template <class F, bool kInverse, class T = typename F::Value>
TRIVELET_ALWAYS_INLINE void steps_at(T* plane, Index stride, int rows, int columns, int base, bool cached) {
  if (base >= rows || base < F::kReach * (F::kSteps + 1))
    steps_near_end<F, kInverse>(plane, stride, rows, columns, base);
  else if (cached || base + 2 >= rows)
    steps_inside<F, kInverse>(plane + base * stride, stride, columns);
  else
    steps_inside_prefetching<F, kInverse>(plane + base * stride, stride, columns);
}

// -------------------------------------------------------------------------------------------------------------- rows

/// Even and odd samples of a row of n values in scratch.
template <class T>
struct SplitRow {
  int n, lows, highs;
  T* even;
  T* odd;
  SplitRow(T* scratch, int length)
      : n(length),
        lows((length + 1) / 2),
        highs(length / 2),
        even(scratch + kRowPad),
        odd(scratch + (lows + 3 * kRowPad - 1) / kRowPad * kRowPad) {}
  /// Writes the extension on both sides of the even or odd samples.
  TRIVELET_ALWAYS_INLINE void extend(int parity) const {
    T* x = parity ? odd : even;
    const int count = parity ? highs : lows;
    x[-1] = x[mirror(parity - 2, n) / 2];
    x[-2] = x[mirror(parity - 4, n) / 2];
    x[count] = x[mirror(2 * count + parity, n) / 2];
    x[count + 1] = x[mirror(2 * count + 2 + parity, n) / 2];
  }
};

/// Step J on all samples of its parity, from x to out; out may be x.
template <class F, int J, bool kInverse, class T = typename F::Value>
TRIVELET_ALWAYS_INLINE void step_samples(const SplitRow<T>& r, const T* x, T* out) {
  constexpr bool kOdd = (J % 2 == 0) != kInverse;
  const T* other = kOdd ? r.even : r.odd;
  if (!F::kPairs) r.extend(kOdd ? 0 : 1);
  const int count = kOdd || F::kPairs ? r.highs : r.lows;
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < count; ++i)
    out[i] =
        F::template step<J, kInverse>(x[i], [=](int d) { return other[i + (kOdd ? (d + 1) / 2 : (d + 3) / 2 - 2)]; });
  if (F::kPairs && !kOdd && r.lows > r.highs) out[r.lows - 1] = x[r.lows - 1];
}

/// Steps J .. kSteps - 2 in scratch.
template <class F, bool kInverse, int J, class T = typename F::Value>
TRIVELET_ALWAYS_INLINE void inner_steps(const SplitRow<T>& r) {
  if constexpr (J < F::kSteps - 1) {
    T* x = (J % 2 == 0) != kInverse ? r.odd : r.even;
    step_samples<F, J, kInverse>(r, x, x);
    inner_steps<F, kInverse, J + 1>(r);
  }
}

template <class F, class T = typename F::Value>
void forward_row(T* row, int n, T* scratch) {
  if (n < 2) return;
  const SplitRow<T> r(scratch, n);
  T* even = r.even;
  T* odd = r.odd;
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < r.highs; ++i) {
    even[i] = row[2 * i];
    odd[i] = row[2 * i + 1];
  }
  if (r.lows > r.highs) even[r.lows - 1] = row[n - 1];
  inner_steps<F, false, 0>(r);
  step_samples<F, F::kSteps - 1, false>(r, even, row);
  __builtin_memcpy(row + r.lows, odd, static_cast<std::size_t>(r.highs) * sizeof(T));
}

template <class F, class T = typename F::Value>
void inverse_row(T* row, int n, T* scratch) {
  if (n < 2) return;
  const SplitRow<T> r(scratch, n);
  T* even = r.even;
  T* odd = r.odd;
  __builtin_memcpy(odd, row + r.lows, static_cast<std::size_t>(r.highs) * sizeof(T));
  step_samples<F, 0, true>(r, row, even);
  inner_steps<F, true, 1>(r);
  if (!F::kPairs) r.extend(0);
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < r.highs; ++i) {
    const T x = F::template step<F::kSteps - 1, true>(odd[i], [=](int d) { return even[i + (d + 1) / 2]; });
    row[2 * i] = even[i];
    row[2 * i + 1] = x;
  }
  if (r.lows > r.highs) row[n - 1] = even[r.lows - 1];
}

// ------------------------------------------------------------------------------------------------------------- planes

template <class F, class T = typename F::Value>
void forward_plane(T* plane, Index stride, int rows, int columns, PlaneAxes axes, T* scratch) {
  const bool along_rows = axes == PlaneAxes::kRows || axes == PlaneAxes::kRowsAndColumns;
  if (axes == PlaneAxes::kRows || rows < 2) {
    if (along_rows)
      for (int y = 0; y < rows; ++y) forward_row<F>(plane + y * stride, columns, scratch);
    return;
  }
  int ready = 0;  // rows [0, ready) have had their horizontal lifting
  for (int base = 0; base - F::kReach * F::kSteps < rows; base += 2) {
    if (along_rows)
      for (; ready <= base && ready < rows; ++ready) forward_row<F>(plane + ready * stride, columns, scratch);
    steps_at<F, false>(plane, stride, rows, columns, base, axes == PlaneAxes::kTile);
  }
}

/// Calls prepare(y) before row y is used.
template <class F, class Prepare, class T = typename F::Value>
TRIVELET_ALWAYS_INLINE void inverse_plane_of(T* plane, Index stride, int rows, int columns, PlaneAxes axes, T* scratch,
                                             Prepare prepare) {
  const bool along_rows = axes == PlaneAxes::kRows || axes == PlaneAxes::kRowsAndColumns;
  int ready = 0;  // rows [0, ready) are prepared
  int done = 0;   // rows [0, done) are finished
  if (axes != PlaneAxes::kRows && rows >= 2) {
    for (int base = 1; base - F::kReach * F::kSteps < rows; base += 2) {
      for (; ready <= base && ready < rows; ++ready) prepare(ready);
      steps_at<F, true>(plane, stride, rows, columns, base, axes == PlaneAxes::kTile);
      if (along_rows)  // the next steps read rows from base + 2 - reach * (steps + 1)
        for (; done < rows && done < base + 2 - F::kReach * (F::kSteps + 1); ++done)
          inverse_row<F>(plane + done * stride, columns, scratch);
    }
  }
  for (; ready < rows; ++ready) prepare(ready);
  if (along_rows)
    for (; done < rows; ++done) inverse_row<F>(plane + done * stride, columns, scratch);
}

template <class F, class T = typename F::Value>
void inverse_plane(T* plane, Index stride, int rows, int columns, PlaneAxes axes, T* scratch) {
  inverse_plane_of<F>(plane, stride, rows, columns, axes, scratch, [](int) {});
}

template <class F, class T = typename F::Value>
void inverse_prepared(T* plane, Index stride, int rows, int columns, T* scratch, const RowPreparation<T>& before) {
  inverse_plane_of<F>(plane, stride, rows, columns, PlaneAxes::kRowsAndColumns, scratch,
                      [&](int y) { before.prepare(before.context, y, plane + y * stride); });
}

// ------------------------------------------------------------------------------------------------------------ samples

template <class T, class Sample>
void load_samples(const std::byte* samples, std::int32_t offset, T* out, int n) {
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < n; ++i) {
    Sample s;
    __builtin_memcpy(&s, samples + i * static_cast<Index>(sizeof(Sample)), sizeof(Sample));
    out[i] = static_cast<T>(s - offset);
  }
}

template <class Sample>
void store_samples(const float* in, float gain, std::int32_t offset, std::int32_t min_sample, std::int32_t max_sample,
                   std::byte* samples, int n) {
  const float low = static_cast<float>(min_sample - offset), high = static_cast<float>(max_sample - offset);
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < n; ++i) {
    const Sample s = static_cast<Sample>(clamp_round(in[i] * gain, low, high) + offset);
    __builtin_memcpy(samples + i * static_cast<Index>(sizeof(Sample)), &s, sizeof(Sample));
  }
}

template <class Sample>
void store_samples(const std::int32_t* in, float, std::int32_t offset, std::int32_t min_sample, std::int32_t max_sample,
                   std::byte* samples, int n) {
  const std::int32_t low = min_sample - offset, high = max_sample - offset;
  TRIVELET_VECTOR_LOOP
  for (Index i = 0; i < n; ++i) {
    const Sample s = static_cast<Sample>(clamp_int(in[i], low, high) + offset);
    __builtin_memcpy(samples + i * static_cast<Index>(sizeof(Sample)), &s, sizeof(Sample));
  }
}

/// Copies past the caches, because the values are read again only after much other data.
template <class T>
void stream_values(const T* in, T* out, int n) {
  Index i = 0;
#if defined(__AVX512F__) || defined(__AVX2__)
#if defined(__AVX512F__)
  using Vector = __m512i;
  const auto copy = [](const T* from, T* to) {
    _mm512_stream_si512(reinterpret_cast<Vector*>(to), _mm512_loadu_si512(from));
  };
#else
  using Vector = __m256i;
  const auto copy = [](const T* from, T* to) {
    _mm256_stream_si256(reinterpret_cast<Vector*>(to), _mm256_loadu_si256(reinterpret_cast<const Vector*>(from)));
  };
#endif
  constexpr Index kLanes = sizeof(Vector) / sizeof(T);
  for (; i < n && reinterpret_cast<std::uintptr_t>(out + i) % sizeof(Vector) != 0; ++i) out[i] = in[i];
  for (; i + kLanes <= n; i += kLanes) copy(in + i, out + i);
#endif
  for (; i < n; ++i) out[i] = in[i];
}

/// Makes streamed values visible to other threads before any later store.
void stream_end() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

}  // namespace

constinit const DwtKernels<float> kDwtFloat = {
    {forward_plane<Haar>, forward_plane<Cdf53>, forward_plane<Cdf97>, nullptr},
    {inverse_plane<Haar>, inverse_plane<Cdf53>, inverse_plane<Cdf97>, nullptr},
    {inverse_prepared<Haar>, inverse_prepared<Cdf53>, inverse_prepared<Cdf97>, nullptr},
    {load_samples<float, std::uint8_t>, load_samples<float, std::int8_t>, load_samples<float, std::uint16_t>,
     load_samples<float, std::int16_t>},
    {store_samples<std::uint8_t>, store_samples<std::int8_t>, store_samples<std::uint16_t>,
     store_samples<std::int16_t>},
    stream_values<float>,
    stream_end,
};

constinit const DwtKernels<std::int32_t> kDwtInt = {
    {forward_plane<STransform>, forward_plane<Rev53>, nullptr, forward_plane<Rev137>},
    {inverse_plane<STransform>, inverse_plane<Rev53>, nullptr, inverse_plane<Rev137>},
    {inverse_prepared<STransform>, inverse_prepared<Rev53>, nullptr, inverse_prepared<Rev137>},
    {load_samples<std::int32_t, std::uint8_t>, load_samples<std::int32_t, std::int8_t>,
     load_samples<std::int32_t, std::uint16_t>, load_samples<std::int32_t, std::int16_t>},
    {store_samples<std::uint8_t>, store_samples<std::int8_t>, store_samples<std::uint16_t>,
     store_samples<std::int16_t>},
    stream_values<std::int32_t>,
    stream_end,
};

}  // namespace trivelet::TRIVELET_ISA
