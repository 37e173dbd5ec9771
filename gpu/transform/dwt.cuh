// Building blocks of the transform kernels: lifting along a warp's lanes, down its columns and along a line in memory,
// conversion of samples, quantiser. The filters are those of codec/transform/filters.h.
//
// Steps at different positions lag behind each other, so that one pass over a line does all of them: with values v[m]
// of the positions base - m, step j is done at position base - kReach * (j + 1), and base advances by two.
#pragma once

#include <cstdint>
#include <type_traits>

#include "codec/transform/filters.h"
#include "codec/transform/lifting.h"
#include "gpu/transform/dwt.h"

#if defined(TRIVELET_CUDA_EMULATION)
#define TRIVELET_UNROLL
#define TRIVELET_UNROLL_BY(n)
#else
#define TRIVELET_UNROLL _Pragma("unroll")
#define TRIVELET_UNROLL_BY(n) _Pragma(TRIVELET_STRING(unroll n))
#define TRIVELET_STRING(x) #x
#endif

namespace trivelet::gpu {

inline constexpr unsigned kAllLanes = 0xffffffffu;

/// Positions that the steps of a filter need at once, and the lag of the last one.
template <class F>
inline constexpr int kWindow = F::kReach*(F::kSteps + 1) + 1;
template <class F>
inline constexpr int kLag = F::kReach* F::kSteps;
/// Samples beyond an end of a tile that its results depend on.
template <class F>
inline constexpr int kHalo = F::kPairs ? 0 : kLag<F>;

// ----------------------------------------------------------------------------------------------------- along the lanes

/// Lifts a row of which every lane holds four consecutive samples, the first of them even. Results of the outer
/// kHalo<F> samples are invalid. `unpaired` is the position in x of a last even sample without a partner, otherwise <
/// 0.
template <class F, bool kInverse, int J = 0, class T = typename F::Value>
__device__ __forceinline__ void lift_lanes(T (&x)[4], int unpaired) {
  if constexpr (J < F::kSteps) {
    constexpr bool kOdd = (J % 2 == 0) != kInverse;
    T left[3] = {}, right[3] = {};  // x[-1], x[-2], x[-3] and x[4], x[5], x[6] as far as they are used
    if constexpr (!F::kPairs && kOdd) {
      right[0] = __shfl_down_sync(kAllLanes, x[0], 1);
      if constexpr (F::kReach == 3) {
        right[2] = __shfl_down_sync(kAllLanes, x[2], 1);
        left[1] = __shfl_up_sync(kAllLanes, x[2], 1);
      }
    } else if constexpr (!F::kPairs) {
      left[0] = __shfl_up_sync(kAllLanes, x[3], 1);
      if constexpr (F::kReach == 3) {
        left[2] = __shfl_up_sync(kAllLanes, x[1], 1);
        right[1] = __shfl_down_sync(kAllLanes, x[1], 1);
      }
    }
    const auto at = [&](int i) { return i < 0 ? left[-1 - i] : i > 3 ? right[i - 4] : x[i]; };
    TRIVELET_UNROLL
    for (int i = kOdd ? 1 : 0; i < 4; i += 2)
      if (kOdd || !F::kPairs || i != unpaired)
        x[i] = F::template step<J, kInverse>(x[i], [&](int d) { return at(i + d); });
    lift_lanes<F, kInverse, J + 1>(x, unpaired);
  }
}

// -------------------------------------------------------------------------------------------------- down the columns

/// All steps at `base` for the columns of a lane, in the middle of a line. `unpaired`: the even position of the step
/// that changes even ones is a last one without a partner.
template <class F, bool kInverse, int kColumns, int J = 0, class T = typename F::Value>
__device__ __forceinline__ void lift_columns(T (&v)[kWindow<F>][kColumns], bool unpaired) {
  if constexpr (J < F::kSteps) {
    constexpr int m = F::kReach * (J + 1);
    constexpr bool kOdd = (J % 2 == 0) != kInverse;
    if (kOdd || !F::kPairs || !unpaired) {
      TRIVELET_UNROLL
      for (int c = 0; c < kColumns; ++c)
        v[m][c] = F::template step<J, kInverse>(v[m][c], [&](int d) { return v[m - d][c]; });
    }
    lift_columns<F, kInverse, kColumns, J + 1>(v, unpaired);
  }
}

// ---------------------------------------------------------------------------------------------- along a line in memory

/// Steps J.. at `base` with mirrored neighbours near the ends.
template <class F, bool kInverse, int J = 0, class T = typename F::Value>
__device__ __forceinline__ void line_steps(T (&v)[kWindow<F>], int base, int n, bool inside) {
  if constexpr (J < F::kSteps) {
    constexpr int m = F::kReach * (J + 1);
    const int y = base - m;
    if (inside) {
      v[m] = F::template step<J, kInverse>(v[m], [&](int d) { return v[m - d]; });
    } else if (y >= 0 && y < n && !(F::kPairs && y == n - 1 && y % 2 == 0)) {
      const auto near = [&](int d) {
        const int q = mirror(y + d, n) - y;
        if constexpr (F::kReach == 1)
          return q < 0 ? v[m + 1] : v[m - 1];
        else
          return q == -1 ? v[m + 1] : q == 1 ? v[m - 1] : q == -3 ? v[m + 3] : v[m - 3];
      };
      v[m] = F::template step<J, kInverse>(v[m], near);
    }
    line_steps<F, kInverse, J + 1>(v, base, n, inside);
  }
}

/// One level along the n values line[i * stride], in place; split results stay interleaved.
template <class F, bool kInverse, class T = typename F::Value>
__device__ __forceinline__ void lift_line(T* line, std::ptrdiff_t stride, int n) {
  if (n < 2) return;
  constexpr int kFirst = F::kReach * (F::kSteps - 1);  // the lag of the position that is finished first
  T v[kWindow<F>] = {};
  for (int base = kInverse ? 1 : 0; base - kLag<F> < n; base += 2) {
    TRIVELET_UNROLL
    for (int m = kWindow<F> - 1; m >= 2; --m) v[m] = v[m - 2];
    if (base < n) v[0] = line[base * stride];
    if (base >= 1 && base <= n) v[1] = line[(base - 1) * stride];
    line_steps<F, kInverse>(v, base, n, base < n && base >= kWindow<F> - 1);
    if (base >= kFirst && base - kFirst < n) line[(base - kFirst) * stride] = v[kFirst];
    if (base >= kLag<F>) line[(base - kLag<F>)*stride] = v[kLag<F>];
  }
}

// --------------------------------------------------------------------------------------------- along a line in
// registers Everything is unrolled: indices are constants.

/// mirror() for distances below n, as an expression that folds.
__device__ __forceinline__ constexpr int fold(int i, int n) {
  const int a = i < 0 ? -i : i;
  const int b = a >= n ? 2 * (n - 1) - a : a;
  return b < 0 ? -b : b;
}

/// One level of the signal v[0], v[kStride], v[2 * kStride] ... of kCount values.
template <class F, bool kInverse, int kStride, int kCount, int J = 0, class T, int kSize>
__device__ __forceinline__ void lift_signal(T (&v)[kSize]) {
  if constexpr (J < F::kSteps) {
    constexpr int kParity = (J % 2 == 0) != kInverse ? 1 : 0;
    TRIVELET_UNROLL
    for (int i = kParity; i < kCount; i += 2)
      if (!F::kPairs || kParity == 1 || i + 1 < kCount)
        v[i * kStride] =
            F::template step<J, kInverse>(v[i * kStride], [&](int d) { return v[fold(i + d, kCount) * kStride]; });
    lift_signal<F, kInverse, kStride, kCount, J + 1>(v);
  }
}

/// The first `levels` levels of a signal of kSize values.
template <class F, int kStride = 1, class T, int kSize>
__device__ __forceinline__ void forward_signal(T (&v)[kSize], int levels) {
  constexpr int kCount = (kSize + kStride - 1) / kStride;
  if constexpr (kCount >= 2) {
    if (levels <= 0) return;
    lift_signal<F, false, kStride, kCount>(v);
    forward_signal<F, 2 * kStride>(v, levels - 1);
  }
}
template <class F, int kStride = 1, class T, int kSize>
__device__ __forceinline__ void inverse_signal(T (&v)[kSize], int levels) {
  constexpr int kCount = (kSize + kStride - 1) / kStride;
  if constexpr (kCount >= 2) {
    if (levels <= 0) return;
    inverse_signal<F, 2 * kStride>(v, levels - 1);
    lift_signal<F, true, kStride, kCount>(v);
  }
}

// ----------------------------------------------------------------------------------------------- samples and quantiser

template <class T, class Sample>
__device__ __forceinline__ T to_value(Sample s, std::int32_t offset) {
  if constexpr (std::is_same_v<T, float> && std::is_same_v<Sample, std::uint8_t>) {
    // 2^23 + s has s in its low mantissa bits; the difference is exact, and -0.0 cannot arise
    return __int_as_float(0x4B000000 | s) - static_cast<float>(8388608 + offset);
  } else {
    return static_cast<T>(static_cast<std::int32_t>(s) - offset);
  }
}

template <class Sample>
__device__ __forceinline__ Sample to_sample(float x, const SampleRange& r) {
  return static_cast<Sample>(clamp_round(x * r.gain, static_cast<float>(r.min_sample - r.offset),
                                         static_cast<float>(r.max_sample - r.offset)) +
                             r.offset);
}
template <class Sample>
__device__ __forceinline__ Sample to_sample(std::int32_t x, const SampleRange& r) {
  return static_cast<Sample>(clamp_int(x, r.min_sample - r.offset, r.max_sample - r.offset) + r.offset);
}

/// A coefficient as it is stored.
template <class Q>
__device__ __forceinline__ Q quantise(float c, float inverse_step) {
  if constexpr (std::is_same_v<Q, float>) {
    return c;
  } else {
    constexpr float kLimit = std::is_same_v<Q, std::int16_t> ? 32767.0f : 1073741760.0f;
    const float m = (c < 0 ? -c : c) * inverse_step;
    const std::int32_t q = static_cast<std::int32_t>(m < kLimit ? m : kLimit);
    return static_cast<Q>(c < 0 ? -q : q);
  }
}
template <class Q>
__device__ __forceinline__ Q quantise(std::int32_t c, float) {
  if constexpr (std::is_same_v<Q, std::int16_t>)
    return static_cast<Q>(clamp_int(c, -32767, 32767));
  else
    return c;
}

template <class T, class Q>
__device__ __forceinline__ T dequantise(Q q, float step, float centroid) {
  if constexpr (std::is_same_v<T, Q> || std::is_same_v<T, std::int32_t>) {
    return static_cast<T>(q);
  } else {
    const std::int32_t i = q, m = i < 0 ? -i : i;
    float magnitude;
    if constexpr (sizeof(Q) == 2)
      magnitude = __int_as_float(0x4B000000 | m) - 8388608.0f;  // the same as a conversion, which is slower
    else
      magnitude = static_cast<float>(m);
    const float v = (magnitude + centroid) * step;
    return i == 0 ? 0.0f : i < 0 ? -v : v;
  }
}

/// mirror() with a short way for the usual case, at most n - 1 beyond an end.
__device__ __forceinline__ int mirror_near(int i, int n) {
  int m = i < 0 ? -i : i;
  m = m >= n ? 2 * (n - 1) - m : m;
  return m >= 0 ? m : mirror(i, n);
}

/// Two or four neighbouring values as one access.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T v[kCount];
};
template <class T, int kCount>
__device__ __forceinline__ Pack<T, kCount> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, kCount>*>(p);
}
template <class T, int kCount>
__device__ __forceinline__ void store_pack(T* p, const Pack<T, kCount>& v) {
  *reinterpret_cast<Pack<T, kCount>*>(p) = v;
}

// ------------------------------------------------------------------------------------------------------------
// launchers Strides in values unless said otherwise. All sizes are of the level before it is split.

template <class T>
struct TimeArgs {
  const void* in = nullptr;  ///< samples or values, strides in bytes
  std::ptrdiff_t in_row = 0, in_frame = 0;
  void* out = nullptr;
  std::ptrdiff_t out_row = 0, out_frame = 0;    ///< bytes
  SampleFormat format = SampleFormat::kValues;  ///< forward: of in; inverse: of out; the other side has values
  SampleRange range;                            ///< forward: only the offset
  int frames = 0, height = 0, width = 0;
  int levels = 0;
  const float* gains = nullptr;  ///< for each frame, on the side of the temporal subbands; float only
  bool quads = false;            ///< set by the launcher: 8-bit samples can be read and written four at a time
};
/// Temporal lifting, all `levels`; 0 levels: conversion only. in may be out.
template <class T>
void forward_time(const TimeArgs<T>& a, Wavelet w, const Stream& stream);
template <class T>
void inverse_time(const TimeArgs<T>& a, Wavelet w, const Stream& stream);

// ------------------------------------------------------------------------------------------------- frames in registers

__host__ __device__ __forceinline__ int sample_bytes(SampleFormat f) {
  return f == SampleFormat::kValues ? 4 : f >= SampleFormat::kU16 ? 2 : 1;
}

template <class T, class Sample, int kCount>
__device__ __forceinline__ void load_frames_as(const TimeArgs<T>& a, std::ptrdiff_t at, int first, T (&v)[kCount]) {
  const Sample* p = reinterpret_cast<const Sample*>(static_cast<const std::byte*>(a.in) + at);
  const std::ptrdiff_t stride = a.in_frame / static_cast<std::ptrdiff_t>(sizeof(Sample));
  const auto convert = [&](Sample s) {
    if constexpr (std::is_same_v<T, Sample>)
      return s;
    else
      return to_value<T>(s, a.range.offset);
  };
  if (first >= 0 && first + kCount <= a.frames) {
    p += first * stride;
    TRIVELET_UNROLL
    for (int i = 0; i < kCount; ++i) v[i] = convert(p[i * stride]);
  } else {
    TRIVELET_UNROLL
    for (int i = 0; i < kCount; ++i) v[i] = convert(p[mirror(first + i, a.frames) * stride]);
  }
}

template <class T, class Sample, int kFirst, int kEnd, int kCount>
__device__ __forceinline__ void store_frames_as(const TimeArgs<T>& a, std::ptrdiff_t at, int first,
                                                const T (&v)[kCount]) {
  Sample* p = reinterpret_cast<Sample*>(static_cast<std::byte*>(a.out) + at);
  const std::ptrdiff_t stride = a.out_frame / static_cast<std::ptrdiff_t>(sizeof(Sample));
  p += first * stride;
  TRIVELET_UNROLL
  for (int i = kFirst; i < kEnd; ++i)
    if (first + i < a.frames) {
      if constexpr (std::is_same_v<T, Sample>)
        p[i * stride] = v[i];
      else
        p[i * stride] = to_sample<Sample>(v[i], a.range);
    }
}

/// The values of frames first .. first + kCount - 1, mirrored at the ends, of the sample `at` bytes into each frame.
template <class T, int kCount>
__device__ __forceinline__ void load_frames(const TimeArgs<T>& a, std::ptrdiff_t at, int first, T (&v)[kCount]) {
  switch (a.format) {
    case SampleFormat::kU8: load_frames_as<T, std::uint8_t>(a, at, first, v); break;
    case SampleFormat::kS8: load_frames_as<T, std::int8_t>(a, at, first, v); break;
    case SampleFormat::kU16: load_frames_as<T, std::uint16_t>(a, at, first, v); break;
    case SampleFormat::kS16: load_frames_as<T, std::int16_t>(a, at, first, v); break;
    case SampleFormat::kValues: load_frames_as<T, T>(a, at, first, v); break;
  }
}

/// Stores v[kFirst] .. v[kEnd - 1] into frames first + kFirst ... as far as they exist.
template <int kFirst, int kEnd, class T, int kCount>
__device__ __forceinline__ void store_frames(const TimeArgs<T>& a, std::ptrdiff_t at, int first, const T (&v)[kCount]) {
  switch (a.format) {
    case SampleFormat::kU8: store_frames_as<T, std::uint8_t, kFirst, kEnd>(a, at, first, v); break;
    case SampleFormat::kS8: store_frames_as<T, std::int8_t, kFirst, kEnd>(a, at, first, v); break;
    case SampleFormat::kU16: store_frames_as<T, std::uint16_t, kFirst, kEnd>(a, at, first, v); break;
    case SampleFormat::kS16: store_frames_as<T, std::int16_t, kFirst, kEnd>(a, at, first, v); break;
    case SampleFormat::kValues: store_frames_as<T, T, kFirst, kEnd>(a, at, first, v); break;
  }
}

/// Exchanges bytes between the four lanes of a group: byte i of lane l becomes byte l of lane i. `lanes`: all that
/// call.
__device__ __forceinline__ std::uint32_t transpose_bytes(std::uint32_t v, unsigned lanes) {
  v = __byte_perm(v, __shfl_xor_sync(lanes, v, 1), threadIdx.x & 1 ? 0x3715 : 0x6240);
  return __byte_perm(v, __shfl_xor_sync(lanes, v, 2), threadIdx.x & 2 ? 0x3276 : 0x5410);
}

/// load_frames() and store_frames() of all frames when a.quads: a lane reads and writes four columns of every fourth
/// frame. `at` is that of the lane's own column.
template <class Sample, class T, int kCount>
__device__ __forceinline__ void load_quads(const TimeArgs<T>& a, std::ptrdiff_t at, unsigned lanes, T (&v)[kCount]) {
  static_assert(kCount % 4 == 0);
  const std::ptrdiff_t own = static_cast<std::ptrdiff_t>(threadIdx.x % 4);
  const std::byte* p = static_cast<const std::byte*>(a.in) + at - own + own * a.in_frame;
  std::uint32_t quads[kCount / 4];
  TRIVELET_UNROLL
  for (int i = 0; i < kCount / 4; ++i) quads[i] = *reinterpret_cast<const std::uint32_t*>(p + 4 * i * a.in_frame);
  TRIVELET_UNROLL
  for (int i = 0; i < kCount / 4; ++i) {
    const std::uint32_t bytes = transpose_bytes(quads[i], lanes);
    TRIVELET_UNROLL
    for (int k = 0; k < 4; ++k)
      v[4 * i + k] = to_value<T>(static_cast<Sample>(static_cast<std::uint8_t>(bytes >> 8 * k)), a.range.offset);
  }
}
template <class Sample, class T, int kCount>
__device__ __forceinline__ void store_quads(const TimeArgs<T>& a, std::ptrdiff_t at, unsigned lanes,
                                            const T (&v)[kCount]) {
  const std::ptrdiff_t own = static_cast<std::ptrdiff_t>(threadIdx.x % 4);
  std::byte* p = static_cast<std::byte*>(a.out) + at - own + own * a.out_frame;
  TRIVELET_UNROLL
  for (int i = 0; i < kCount / 4; ++i) {
    std::uint32_t bytes = 0;
    TRIVELET_UNROLL
    for (int k = 0; k < 4; ++k)
      bytes |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(to_sample<Sample>(v[4 * i + k], a.range))) << 8 * k;
    *reinterpret_cast<std::uint32_t*>(p + 4 * i * a.out_frame) = transpose_bytes(bytes, lanes);
  }
}

template <class T, class Q>
struct PlaneArgs {
  T* plane = nullptr;  ///< forward: in; inverse: out
  int plane_pitch = 0;
  std::ptrdiff_t plane_frame = 0;
  T* low = nullptr;  ///< low band of every low_every-th frame (in the inverse: read), null: it is in the field too
  int low_pitch = 0;
  std::ptrdiff_t low_frame = 0;
  int low_every = 1;
  Q* field = nullptr;
  int pitch = 0;
  std::ptrdiff_t field_frame = 0;  ///< from one frame of the plane to the next
  int high_column = 0;
  int frames = 0, height = 0, width = 0;
  const float* steps = nullptr;  ///< of this level, [frame of the plane * step_frame + orientation]
  int step_frame = 4;
  float centroid = 0;
  int segment_rows = 64, segments = 1, tiles = 1;  ///< set by the launcher
};
/// Where a lane's four columns of a frame go in the forward transform.
template <class T, class Q>
struct BandTarget {
  T* low;  // null: the low band is part of the field
  Q* field;
  float step[4];

  __device__ __forceinline__ BandTarget(const PlaneArgs<T, Q>& a, int frame, int x) {
    const bool to_low = a.low && frame % a.low_every == 0;
    low = to_low ? a.low + frame / a.low_every * a.low_frame + x / 2 : nullptr;
    field = a.field + frame * a.field_frame + x / 2;
    load_steps(a, frame, step);
  }
  static __device__ __forceinline__ void load_steps(const PlaneArgs<T, Q>& a, int frame, float (&step)[4]) {
    if constexpr (std::is_same_v<T, Q> || std::is_same_v<T, std::int32_t>) {
      for (int o = 0; o < 4; ++o) step[o] = 1;
    } else {
      const Pack<float, 4> p = load_pack<float, 4>(a.steps + frame * a.step_frame);
      for (int o = 0; o < 4; ++o) step[o] = p.v[o];
    }
  }
  template <class R>
  static __device__ __forceinline__ void store_pair(R* to, T first, T second, float step, bool both) {
    if (both)
      store_pack<R, 2>(to, {{quantise<R>(first, step), quantise<R>(second, step)}});
    else
      *to = quantise<R>(first, step);
  }
  /// Row y of the level, low (even y) or high (odd y) along y; r is low, high, low, high along x.
  template <bool kOdd>
  __device__ __forceinline__ void store(const PlaneArgs<T, Q>& a, int x, int y, const T (&r)[4]) const {
    const bool both_low = x + 2 < a.width;
    const std::ptrdiff_t row = y / 2 + (kOdd ? (a.height + 1) / 2 : 0);
    Q* to = field + row * a.pitch;
    if (!kOdd && low)
      store_pair<T>(low + row * a.low_pitch, r[0], r[2], 1.0f, both_low);
    else
      store_pair<Q>(to, r[0], r[2], step[kOdd ? 2 : 0], both_low);
    if (x + 1 < a.width) store_pair<Q>(to + a.high_column, r[1], r[3], step[kOdd ? 3 : 1], x + 3 < a.width);
  }
};

/// Where a lane's four columns of a frame come from in the inverse transform. Rows are loaded as they are stored and
/// restored when they are needed, so that nothing waits for memory before.
template <class T, class Q>
struct BandSource {
  struct Even {       // a row that is low along y
    Pack<T, 2> low;   // from scratch memory, or in the layout of T
    Pack<Q, 2> bits;  // else
    Pack<Q, 2> high;
  };
  struct Odd {
    Pack<Q, 2> low, high;
  };
  const T* low;
  const Q* field;
  const T* next_low;  // of the pair of rows that load_inside() reads
  const Q *next_even, *next_odd;
  float step[4];

  /// `even_y` >= 0: the even row that load_inside() begins with.
  __device__ __forceinline__ BandSource(const PlaneArgs<T, Q>& a, int frame, int x, int even_y) {
    const bool from_low = a.low && frame % a.low_every == 0;
    low = from_low ? a.low + frame / a.low_every * a.low_frame : nullptr;
    field = a.field + frame * a.field_frame;
    const std::ptrdiff_t row = even_y / 2, column = x / 2;
    next_low = low ? low + row * a.low_pitch + column : nullptr;
    next_even = field + row * a.pitch + column;
    next_odd = field + (row + (a.height + 1) / 2) * a.pitch + column;
    BandTarget<T, Q>::load_steps(a, frame, step);
  }
  __device__ __forceinline__ void advance(const PlaneArgs<T, Q>& a) {
    if (next_low) next_low += a.low_pitch;
    next_even += a.pitch;
    next_odd += a.pitch;
  }
  /// The next pair of rows, if both are in the picture, with all columns.
  __device__ __forceinline__ void load_inside(const PlaneArgs<T, Q>& a, Even& e, Odd& o) const {
    if (next_low)
      e.low = load_pack<T, 2>(next_low);
    else if constexpr (std::is_same_v<T, Q>)
      e.low = load_pack<Q, 2>(next_even);
    else
      e.bits = load_pack<Q, 2>(next_even);
    e.high = load_pack<Q, 2>(next_even + a.high_column);
    o.low = load_pack<Q, 2>(next_odd);
    o.high = load_pack<Q, 2>(next_odd + a.high_column);
  }
  /// Row `at`, mirrored at the borders as its columns are. Even ones keep their parity, unless there is one row only,
  /// which is then the odd one too and not used as such.
  __device__ __forceinline__ void load(const PlaneArgs<T, Q>& a, int x, int at, Even& r) const {
    const std::ptrdiff_t row = mirror_near(at, a.height) / 2;
    const Q* from = field + row * a.pitch;
    TRIVELET_UNROLL
    for (int c = 0; c < 2; ++c) {  // mirroring keeps the parity, unless there is one column only
      const int even = mirror(x + 2 * c, a.width) / 2, i = mirror(x + 2 * c + 1, a.width);
      if (i % 2) r.high.v[c] = from[a.high_column + i / 2];
      if (low)
        r.low.v[c] = low[row * a.low_pitch + even];
      else if constexpr (std::is_same_v<T, Q>)
        r.low.v[c] = from[even];
      else
        r.bits.v[c] = from[even];
    }
  }
  __device__ __forceinline__ void load(const PlaneArgs<T, Q>& a, int x, int at, Odd& r) const {
    if (a.height == 1) return;
    const Q* from = field + (mirror_near(at, a.height) / 2 + (a.height + 1) / 2) * static_cast<std::ptrdiff_t>(a.pitch);
    TRIVELET_UNROLL
    for (int c = 0; c < 2; ++c) {
      const int even = mirror(x + 2 * c, a.width) / 2, i = mirror(x + 2 * c + 1, a.width);
      if (i % 2) r.high.v[c] = from[a.high_column + i / 2];
      r.low.v[c] = from[even];
    }
  }
  /// The values of a row.
  __device__ __forceinline__ void restore(const PlaneArgs<T, Q>& a, const Even& raw, T (&r)[4]) const {
    TRIVELET_UNROLL
    for (int c = 0; c < 2; ++c) {
      if constexpr (std::is_same_v<T, Q>)
        r[2 * c] = raw.low.v[c];
      else
        r[2 * c] = low ? raw.low.v[c] : dequantise<T>(raw.bits.v[c], step[0], a.centroid);
      r[2 * c + 1] = dequantise<T>(raw.high.v[c], step[1], a.centroid);
    }
  }
  __device__ __forceinline__ void restore(const PlaneArgs<T, Q>& a, const Odd& raw, T (&r)[4]) const {
    TRIVELET_UNROLL
    for (int c = 0; c < 2; ++c) {
      r[2 * c] = dequantise<T>(raw.low.v[c], step[2], a.centroid);
      r[2 * c + 1] = dequantise<T>(raw.high.v[c], step[3], a.centroid);
    }
  }
};

/// Lanes at each side of a warp whose columns belong to its neighbours, and the columns that remain.
template <class F>
inline constexpr int kHaloLanes = (kHalo<F> + 3) / 4;
template <class F>
inline constexpr int kTileColumns = (32 - 2 * kHaloLanes<F>)*4;

/// One level in space: rows, then columns.
template <class T, class Q>
void forward_plane(PlaneArgs<T, Q> a, Wavelet w, int processors, const Stream& stream);
template <class T, class Q>
void inverse_plane(PlaneArgs<T, Q> a, Wavelet w, int processors, const Stream& stream);

/// Between plane and field without a split.
template <class T, class Q>
void copy_plane(const PlaneArgs<T, Q>& a, bool inverse, const Stream& stream);

/// Calls f with the filter's type.
template <class T, class Function>
void with_filter(Wavelet w, const Function& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (w == Wavelet::kHaar)
      f(Haar{});
    else if (w == Wavelet::kCdf53)
      f(Cdf53{});
    else
      f(Cdf97{});
  } else {
    if (w == Wavelet::kHaar)
      f(STransform{});
    else if (w == Wavelet::kCdf53)
      f(Rev53{});
    else
      f(Rev137{});
  }
}

}  // namespace trivelet::gpu
