// A level of the CCSDS 122.0 transform is one kernel: one read and one write for each sample.
//
// A warp owns a strip of 120 columns and streams down a segment of rows; four columns for each lane. Neighbours along a
// row come by shuffles, those along a column from the last nine rows, which stay in registers, while the next rows are
// loaded. No shared memory, no barrier. At the borders of the picture mirrored samples are loaded; at the borders of a
// segment a few rows are computed twice (8 of about 100). The special rules of §3.3 for the first and last samples are
// the general rule under mirroring: exactly in integers, and bit for bit in floats, because the mirrored terms are the
// two sides of a sum.
#include "gpu/still/ccsds122_dwt.h"

#include <algorithm>

#include "codec/still/ccsds122/ccsds122_lifting.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {
namespace {

using ccsds122::Float97;
using ccsds122::Narrow97M;
using ccsds122::Wide97M;

constexpr int kStripWarps = 4;      // per block
constexpr int kStripBlocks = 5;     // per multiprocessor: limits the registers
constexpr int kStripColumns = 120;  // written by a warp: the outer lanes only help
constexpr int kUsualSegment = 48;   // row pairs
constexpr int kShortestSegment = 4;

/// The part of a level a warp works on.
struct SubbandStrip {
  int x, j0, j1;  // first column of the lane, row pairs
  bool writes;    // the lane's results are kept
};

struct LevelGeometry {
  int wide = 0, high = 0;  // of each band: the level has 2 wide x 2 high samples
  int tiles = 0, segments = 0, segment_pairs = 0;
};

__device__ __forceinline__ bool find_strip(const LevelGeometry& g, SubbandStrip& s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(blockIdx.x) * kStripWarps + static_cast<int>(threadIdx.x / 32);
  const int tile = warp % g.tiles, segment = warp / g.tiles;
  s.x = tile * kStripColumns + (lane - 1) * 4;
  s.j0 = segment * g.segment_pairs;
  s.j1 = s.j0 + g.segment_pairs < g.high ? s.j0 + g.segment_pairs : g.high;
  s.writes = lane >= 1 && lane < 31 && s.x < 2 * g.wide;
  return segment < g.segments;  // the same for all lanes
}

// -------------------------------------------------------------------------------------------------------- arithmetic
// forward_row turns four samples into low, high, low, high; forward_column gives the low and high row in the middle of
// nine rows; inverse_* go back. Integers keep the high row before (forward) or the even rows (inverse) between calls.

template <class T>
__device__ __forceinline__ T from_left(T v) {
  return __shfl_up_sync(kAllLanes, v, 1);
}
template <class T>
__device__ __forceinline__ T from_right(T v) {
  return __shfl_down_sync(kAllLanes, v, 1);
}

template <class A>
struct StripFilter {  // integer 9/7M
  using T = std::int32_t;

  static __device__ __forceinline__ void forward_row(T (&x)[4]) {
    const T xm2 = from_left(x[2]), x4 = from_right(x[0]), x6 = from_right(x[2]);
    const T d0 = ccsds122::wrapping_sub(x[1], A::predict(xm2, x[0], x[2], x4));
    const T d1 = ccsds122::wrapping_sub(x[3], A::predict(x[0], x[2], x4, x6));
    const T dm1 = from_left(d1);
    x[0] = ccsds122::wrapping_sub(x[0], A::update(dm1, d0));
    x[2] = ccsds122::wrapping_sub(x[2], A::update(d0, d1));
    x[1] = d0;
    x[3] = d1;
  }
  static __device__ __forceinline__ T forward_high(const T (&v)[9][4], int c, int at) {
    return ccsds122::wrapping_sub(v[at][c], A::predict(v[at - 3][c], v[at - 1][c], v[at + 1][c], v[at + 3][c]));
  }
  struct Before {
    T high[4];
  };
  /// v[2] is row 2j - 4, j the first row pair.
  static __device__ __forceinline__ void start(const T (&v)[9][4], Before& b) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) b.high[c] = forward_high(v, c, 5);
  }
  static __device__ __forceinline__ void forward_column(const T (&v)[9][4], Before& b, T (&low)[4], T (&high)[4]) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      high[c] = forward_high(v, c, 5);
      low[c] = ccsds122::wrapping_sub(v[4][c], A::update(b.high[c], high[c]));
      b.high[c] = high[c];
    }
  }

  struct Evens {
    T row[4][4];  // even rows j - 1 .. j + 2
  };
  static __device__ __forceinline__ T even(const T (&c)[4][4], const T (&d)[5][4], int i, int at) {
    return ccsds122::wrapping_add(c[at][i], A::update(d[at][i], d[at + 1][i]));
  }
  /// c[0] is row j - 1 of the low band, d[0] row j - 2 of the high one.
  static __device__ __forceinline__ void start(const T (&c)[4][4], const T (&d)[5][4], Evens& e) {
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRIVELET_UNROLL
      for (int at = 0; at < 3; ++at) e.row[at + 1][i] = even(c, d, i, at);
    }
  }
  static __device__ __forceinline__ void inverse_column(const T (&c)[4][4], const T (&d)[5][4], Evens& e, T (&top)[4],
                                                        T (&bottom)[4]) {
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRIVELET_UNROLL
      for (int at = 0; at < 3; ++at) e.row[at][i] = e.row[at + 1][i];
      e.row[3][i] = even(c, d, i, 3);
      top[i] = e.row[1][i];
      bottom[i] = ccsds122::wrapping_add(d[2][i], A::predict(e.row[0][i], e.row[1][i], e.row[2][i], e.row[3][i]));
    }
  }
  /// x: low, high, low, high.
  static __device__ __forceinline__ void inverse_row(T (&x)[4]) {
    const T dm1 = from_left(x[3]);
    const T e0 = ccsds122::wrapping_add(x[0], A::update(dm1, x[1]));
    const T e1 = ccsds122::wrapping_add(x[2], A::update(x[1], x[3]));
    const T em1 = from_left(e1), e2 = from_right(e0), e3 = from_right(e1);
    x[0] = e0;
    x[1] = ccsds122::wrapping_add(x[1], A::predict(em1, e0, e1, e2));
    x[2] = e1;
    x[3] = ccsds122::wrapping_add(x[3], A::predict(e0, e1, e2, e3));
  }
};

template <>
struct StripFilter<Float97> {
  using T = float;

  static __device__ __forceinline__ void forward_row(T (&x)[4]) {
    const T a = from_left(x[0]), b = from_left(x[1]), c = from_left(x[2]), d = from_left(x[3]);
    const T e = from_right(x[0]), f = from_right(x[1]), g = from_right(x[2]);
    const T l0 = Float97::low(a, b, c, d, x[0], x[1], x[2], x[3], e);
    const T h0 = Float97::high(c, d, x[0], x[1], x[2], x[3], e);
    const T l1 = Float97::low(c, d, x[0], x[1], x[2], x[3], e, f, g);
    const T h1 = Float97::high(x[0], x[1], x[2], x[3], e, f, g);
    x[0] = l0;
    x[1] = h0;
    x[2] = l1;
    x[3] = h1;
  }
  struct Before {};
  static __device__ __forceinline__ void start(const T (&)[9][4], Before&) {}
  static __device__ __forceinline__ void forward_column(const T (&v)[9][4], Before&, T (&low)[4], T (&high)[4]) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      low[c] = Float97::low(v[0][c], v[1][c], v[2][c], v[3][c], v[4][c], v[5][c], v[6][c], v[7][c], v[8][c]);
      high[c] = Float97::high(v[2][c], v[3][c], v[4][c], v[5][c], v[6][c], v[7][c], v[8][c]);
    }
  }

  struct Evens {};
  static __device__ __forceinline__ void start(const T (&)[4][4], const T (&)[5][4], Evens&) {}
  static __device__ __forceinline__ void inverse_column(const T (&c)[4][4], const T (&d)[5][4], Evens&, T (&top)[4],
                                                        T (&bottom)[4]) {
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      top[i] = Float97::even(c[0][i], c[1][i], c[2][i], d[0][i], d[1][i], d[2][i], d[3][i]);
      bottom[i] = Float97::odd(c[0][i], c[1][i], c[2][i], c[3][i], d[0][i], d[1][i], d[2][i], d[3][i], d[4][i]);
    }
  }
  static __device__ __forceinline__ void inverse_row(T (&x)[4]) {
    const T cm1 = from_left(x[2]), dm2 = from_left(x[1]), dm1 = from_left(x[3]);
    const T c2 = from_right(x[0]), d2 = from_right(x[1]), c3 = from_right(x[2]), d3 = from_right(x[3]);
    const T c0 = x[0], d0 = x[1], c1 = x[2], d1 = x[3];
    x[0] = Float97::even(cm1, c0, c1, dm2, dm1, d0, d1);
    x[1] = Float97::odd(cm1, c0, c1, c2, dm2, dm1, d0, d1, d2);
    x[2] = Float97::even(c0, c1, c2, dm1, d0, d1, d2);
    x[3] = Float97::odd(c0, c1, c2, c3, dm1, d0, d1, d2, d3);
  }
};

__device__ __forceinline__ std::int32_t as_coefficient(std::int32_t v) { return v; }
__device__ __forceinline__ std::int32_t as_coefficient(float v) { return ccsds122::round_away(v); }

// ------------------------------------------------------------------------------------------------------------ forward

struct ForwardLevel {
  LevelGeometry g;
  const std::byte* in = nullptr;
  std::ptrdiff_t in_stride = 0;         // bytes
  int real_width = 0, real_height = 0;  // places beyond repeat the last column and row
  bool packed = false;                  // rows of `in` can be read four samples at a time
  void* low = nullptr;                  // T, or the last level's rounded int32
  std::int32_t* band[3] = {};
  int pitch = 0;  // of low and bands
};

template <class S>
__device__ __forceinline__ void load_samples(const ForwardLevel& a, const SubbandStrip& s, bool inside, int y,
                                             S (&r)[4]) {
  const int height = 2 * a.g.high, width = 2 * a.g.wide;
  const int m = y < 0 ? -y : y >= height ? 2 * (height - 1) - y : y;
  const int row = m < a.real_height ? m : a.real_height - 1;
  const S* p = reinterpret_cast<const S*>(a.in + row * a.in_stride);
  if (inside) {
    const Pack<S, 4> v = load_pack<S, 4>(p + s.x);
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) r[c] = v.v[c];
  } else if (s.x < width + 4) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      const int x = mirror(s.x + c, width);
      r[c] = p[x < a.real_width ? x : a.real_width - 1];
    }
  }
}

/// A: arithmetic, S: samples read, kLast: the low band is LL3.
template <class A, class S, bool kLast>
__global__ void __launch_bounds__(32 * kStripWarps, kStripBlocks) ccsds122_forward_kernel(ForwardLevel a) {
  using F = StripFilter<A>;
  using T = typename F::T;
  SubbandStrip s;
  if (!find_strip(a.g, s)) return;
  const bool inside = a.packed && s.x >= 0 && s.x + 4 <= a.real_width;
  constexpr int kAhead = 4;  // rows on their way

  T v[9][4] = {};
  TRIVELET_UNROLL
  for (int i = 0; i < 7; ++i) {  // rows 2 j0 - 4 .. 2 j0 + 2
    S r[4] = {};
    load_samples(a, s, inside, 2 * s.j0 - 4 + i, r);
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) v[i + 2][c] = static_cast<T>(r[c]);
    F::forward_row(v[i + 2]);
  }
  S next[kAhead][4] = {};
  TRIVELET_UNROLL
  for (int i = 0; i < kAhead; ++i) load_samples(a, s, inside, 2 * s.j0 + 3 + i, next[i]);

  typename F::Before before;
  F::start(v, before);
  std::ptrdiff_t out = static_cast<std::ptrdiff_t>(s.j0) * a.pitch + s.x / 2;
  TRIVELET_UNROLL_BY(2)
  for (int j = s.j0; j < s.j1; ++j) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      TRIVELET_UNROLL
      for (int i = 0; i < 7; ++i) v[i][c] = v[i + 2][c];
      v[7][c] = static_cast<T>(next[0][c]);
      v[8][c] = static_cast<T>(next[1][c]);
      TRIVELET_UNROLL
      for (int i = 0; i + 2 < kAhead; ++i) next[i][c] = next[i + 2][c];
    }
    if (j + kAhead / 2 < s.j1) {
      load_samples(a, s, inside, 2 * j + 3 + kAhead, next[kAhead - 2]);
      load_samples(a, s, inside, 2 * j + 4 + kAhead, next[kAhead - 1]);
    }
    F::forward_row(v[7]);
    F::forward_row(v[8]);
    T low[4], high[4];
    F::forward_column(v, before, low, high);
    if (s.writes) {
      if constexpr (kLast)
        store_pack<std::int32_t, 2>(static_cast<std::int32_t*>(a.low) + out,
                                    {{as_coefficient(low[0]), as_coefficient(low[2])}});
      else
        store_pack<T, 2>(static_cast<T*>(a.low) + out, {{low[0], low[2]}});
      store_pack<std::int32_t, 2>(a.band[0] + out, {{as_coefficient(low[1]), as_coefficient(low[3])}});
      store_pack<std::int32_t, 2>(a.band[1] + out, {{as_coefficient(high[0]), as_coefficient(high[2])}});
      store_pack<std::int32_t, 2>(a.band[2] + out, {{as_coefficient(high[1]), as_coefficient(high[3])}});
    }
    out += a.pitch;
  }
}

// ------------------------------------------------------------------------------------------------------------ inverse

struct InverseLevel {
  LevelGeometry g;
  const void* band[4] = {};  // LL, HL, LH, HH
  int pitch = 0;
  std::byte* out = nullptr;
  std::ptrdiff_t out_stride = 0;        // bytes
  int real_width = 0, real_height = 0;  // what is written
  bool packed = false;                  // rows of `out` can be written four samples at a time
  std::int32_t low = 0, high = 0;       // samples are clamped to these
};

/// Row j of the low (kHigh = 0) or high bands: two columns of the band that is low along x, and of the other one,
/// interleaved.
template <bool kHigh, class T>
__device__ __forceinline__ void load_bands(const InverseLevel& a, const SubbandStrip& s, bool inside, int j,
                                           T (&r)[4]) {
  const int n = a.g.high, w = a.g.wide;
  const int row = kHigh ? (j < 0 ? -j - 1 : j >= n ? 2 * (n - 1) - j : j) : (j < 0 ? -j : j >= n ? 2 * n - 1 - j : j);
  const T* left = static_cast<const T*>(a.band[kHigh ? 2 : 0]) + static_cast<std::ptrdiff_t>(row) * a.pitch;
  const T* right = static_cast<const T*>(a.band[kHigh ? 3 : 1]) + static_cast<std::ptrdiff_t>(row) * a.pitch;
  if (inside) {
    const Pack<T, 2> l = load_pack<T, 2>(left + s.x / 2), h = load_pack<T, 2>(right + s.x / 2);
    r[0] = l.v[0];
    r[1] = h.v[0];
    r[2] = l.v[1];
    r[3] = h.v[1];
  } else if (s.x < 2 * w + 4) {
    TRIVELET_UNROLL
    for (int c = 0; c < 2; ++c) {
      const int i = s.x / 2 + c;
      const int l = i < 0 ? -i : i >= w ? 2 * w - 1 - i : i, h = i < 0 ? -i - 1 : i >= w ? 2 * (w - 1) - i : i;
      r[2 * c] = left[l];
      r[2 * c + 1] = right[h > 0 ? h : 0];  // values below 0 are never used
    }
  }
}

template <class S>
__device__ __forceinline__ S as_sample(std::int32_t v, std::int32_t low, std::int32_t high) {
  return static_cast<S>(v < low ? low : v > high ? high : v);
}
template <class S>
__device__ __forceinline__ S as_sample(float v, std::int32_t low, std::int32_t high) {
  const float lowest = static_cast<float>(low), highest = static_cast<float>(high);
  return as_sample<S>(ccsds122::round_away(v < lowest ? lowest : v > highest ? highest : v), low, high);
}

/// S: samples written; kPlain: they are the transform's own values.
template <class A, class S, bool kPlain>
__global__ void __launch_bounds__(32 * kStripWarps, kStripBlocks) ccsds122_inverse_kernel(InverseLevel a) {
  using F = StripFilter<A>;
  using T = typename F::T;
  SubbandStrip s;
  if (!find_strip(a.g, s)) return;
  const bool inside = s.x >= 0 && s.x + 4 <= 2 * a.g.wide;
  const auto store_row = [&](int y, const T(&r)[4]) {
    if (!s.writes || y >= a.real_height) return;
    S* to = reinterpret_cast<S*>(a.out + y * a.out_stride) + s.x;
    S v[4];
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      if constexpr (kPlain)
        v[c] = r[c];
      else
        v[c] = as_sample<S>(r[c], a.low, a.high);
    }
    if (a.packed && s.x + 4 <= a.real_width) {
      store_pack<S, 4>(to, {{v[0], v[1], v[2], v[3]}});
    } else {
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c)
        if (s.x + c < a.real_width) to[c] = v[c];
    }
  };

  T c[4][4] = {}, d[5][4] = {};  // low rows j - 1 .., high rows j - 2 ..
  TRIVELET_UNROLL
  for (int i = 0; i < 3; ++i) load_bands<false>(a, s, inside, s.j0 - 1 + i, c[i + 1]);
  TRIVELET_UNROLL
  for (int i = 0; i < 4; ++i) load_bands<true>(a, s, inside, s.j0 - 2 + i, d[i + 1]);
  T next[2][2][4] = {};
  TRIVELET_UNROLL
  for (int i = 0; i < 2; ++i) {
    load_bands<false>(a, s, inside, s.j0 + 2 + i, next[i][0]);
    load_bands<true>(a, s, inside, s.j0 + 2 + i, next[i][1]);
  }
  typename F::Evens evens;
  {
    T shifted_c[4][4], shifted_d[5][4];
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRIVELET_UNROLL
      for (int k = 0; k < 4; ++k) {
        shifted_c[k][i] = k < 3 ? c[k + 1][i] : T{};
        shifted_d[k][i] = d[k + 1][i];
      }
      shifted_d[4][i] = T{};
    }
    F::start(shifted_c, shifted_d, evens);
  }

  TRIVELET_UNROLL_BY(2)
  for (int j = s.j0; j < s.j1; ++j) {
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      TRIVELET_UNROLL
      for (int k = 0; k < 3; ++k) c[k][i] = c[k + 1][i];
      TRIVELET_UNROLL
      for (int k = 0; k < 4; ++k) d[k][i] = d[k + 1][i];
      c[3][i] = next[0][0][i];
      d[4][i] = next[0][1][i];
      next[0][0][i] = next[1][0][i];
      next[0][1][i] = next[1][1][i];
    }
    if (j + 2 < s.j1) {
      load_bands<false>(a, s, inside, j + 4, next[1][0]);
      load_bands<true>(a, s, inside, j + 4, next[1][1]);
    }
    T top[4], bottom[4];
    F::inverse_column(c, d, evens, top, bottom);
    F::inverse_row(top);
    F::inverse_row(bottom);
    store_row(2 * j, top);
    store_row(2 * j + 1, bottom);
  }
}

// ----------------------------------------------------------------------------------------------------------- transpose

template <class S>
__global__ void transpose_kernel(const std::byte* in, std::ptrdiff_t in_stride, int width, int height, S* out,
                                 int out_pitch) {
  __shared__ S tile[32][33];
  const int x0 = static_cast<int>(blockIdx.x) * 32, y0 = static_cast<int>(blockIdx.y) * 32;
  const int tx = static_cast<int>(threadIdx.x);
  for (int ty = static_cast<int>(threadIdx.y); ty < 32; ty += static_cast<int>(blockDim.y))
    if (x0 + tx < width && y0 + ty < height)
      tile[ty][tx] = reinterpret_cast<const S*>(in + (y0 + ty) * in_stride)[x0 + tx];
  __syncthreads();
  for (int ty = static_cast<int>(threadIdx.y); ty < 32; ty += static_cast<int>(blockDim.y))
    if (y0 + tx < height && x0 + ty < width)
      out[static_cast<std::ptrdiff_t>(x0 + ty) * out_pitch + y0 + tx] = tile[tx][ty];
}

// ----------------------------------------------------------------------------------------------------------- launchers

/// Long segments compute fewer rows twice, short ones fill the device: whole rounds of its resident warps, of about
/// kUsualSegment row pairs each.
unsigned cut(LevelGeometry& g, int processors) {
  g.tiles = (2 * g.wide + kStripColumns - 1) / kStripColumns;
  const std::int64_t at_once = std::int64_t{processors} * kStripWarps * kStripBlocks;
  const std::int64_t pairs = std::int64_t{g.tiles} * g.high;
  const std::int64_t rounds = std::max<std::int64_t>(1, pairs / (at_once * kUsualSegment));
  const std::int64_t segments = std::max<std::int64_t>(1, at_once * rounds / g.tiles);
  g.segment_pairs = std::max(kShortestSegment, static_cast<int>((g.high + segments - 1) / segments));
  g.segments = (g.high + g.segment_pairs - 1) / g.segment_pairs;
  const std::int64_t warps = std::int64_t{g.tiles} * g.segments;
  require(warps < (std::int64_t{1} << 31) - 128, ErrorKind::kUnsupported,
          "a picture of " + std::to_string(warps) + " strips is too large for one launch");
  return static_cast<unsigned>((warps + kStripWarps - 1) / kStripWarps);
}

/// Calls f with a value of the stored type.
template <class Call>
void with_samples(SampleType format, const Call& call) {
  switch (format) {
    case SampleType::kU8: return call(std::uint8_t{});
    case SampleType::kS8: return call(std::int8_t{});
    case SampleType::kU16: return call(std::uint16_t{});
    case SampleType::kS16: return call(std::int16_t{});
    case SampleType::kS32: return call(std::int32_t{});
    case SampleType::kF32: return call(float{});
  }
}

constexpr int kNarrowBits = 16;  // as in codec/still/ccsds122_dwt.cpp

template <class Call>
void with_arithmetic(ccsds122::Dwt dwt, int bits, const Call& call) {
  if (dwt == ccsds122::Dwt::kFloat)
    call(Float97{});
  else if (bits <= kNarrowBits)
    call(Narrow97M{});
  else
    call(Wide97M{});
}

bool can_pack(const void* data, std::ptrdiff_t stride, int sample) {
  return (reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uintptr_t>(stride)) %
             static_cast<std::uintptr_t>(4 * sample) ==
         0;
}

int pitch_of(int n) { return (n + 7) / 8 * 8; }

}  // namespace

Ccsds122Transform::Ccsds122Transform(int blocks_wide, int blocks_high) {
  require(blocks_wide >= 3 && blocks_high >= 3, ErrorKind::kBadArgument,
          "the transform needs 3 x 3 blocks, not " + std::to_string(blocks_wide) + " x " + std::to_string(blocks_high));
  bands_.blocks_wide = blocks_wide;
  bands_.blocks_high = blocks_high;
  std::size_t size[3];  // of a band
  std::size_t total = 0;
  for (int level = 1; level <= 3; ++level) {
    const int scale = 8 >> level;
    bands_.pitch[level - 1] = pitch_of(blocks_wide * scale);
    size[level - 1] = checked_mul(static_cast<std::size_t>(bands_.pitch[level - 1]),
                                  static_cast<std::size_t>(blocks_high) * static_cast<std::size_t>(scale));
    total += size[level - 1] * 4;
  }
  memory_ = DeviceBuffer<std::int32_t>(total);
  std::int32_t* p = memory_.data();
  for (int band = 0; band < ccsds122::kBands; ++band) {
    bands_.data[band] = p;
    p += size[band_level(band) - 1];
  }
  for (int level = 1; level <= 2; ++level) {
    low_[level - 1] = p;
    p += size[level - 1];
  }
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
}

void Ccsds122Transform::forward(const DevicePicture& picture, ccsds122::Dwt dwt, int bits, const Stream& stream) {
  require((picture.width + 7) / 8 == bands_.blocks_wide && (picture.height + 7) / 8 == bands_.blocks_high,
          ErrorKind::kBadArgument, "a picture of another size");
  for (int level = 1; level <= 3; ++level) {
    ForwardLevel a;
    a.g.wide = bands_.blocks_wide * (8 >> level);
    a.g.high = bands_.blocks_high * (8 >> level);
    a.real_width = level == 1 ? picture.width : 2 * a.g.wide;
    a.real_height = level == 1 ? picture.height : 2 * a.g.high;
    a.in = level == 1 ? picture.data : reinterpret_cast<const std::byte*>(low_[level - 2]);
    a.in_stride = level == 1 ? picture.row_stride : std::ptrdiff_t{4} * bands_.pitch[level - 2];
    a.packed = level > 1 || can_pack(picture.data, picture.row_stride, sample_bytes(picture.format));
    a.pitch = bands_.pitch[level - 1];
    a.low = level == 3 ? bands_.data[ccsds122::kLL3] : low_[level - 1];
    const int first = level == 1 ? ccsds122::kHL1 : level == 2 ? ccsds122::kHL2 : ccsds122::kHL3;
    for (int b = 0; b < 3; ++b) a.band[b] = bands_.data[first + b];
    const unsigned blocks = cut(a.g, processors_);
    const auto go = [&](auto kernel) {
      launch("ccsds122_forward_kernel", kernel, dim3(blocks), dim3(32 * kStripWarps), 0, stream.get(), a);
    };
    with_arithmetic(dwt, bits, [&](auto arithmetic) {
      using A = decltype(arithmetic);
      using T = typename StripFilter<A>::T;
      if (level == 3) return go(ccsds122_forward_kernel<A, T, true>);
      if (level == 2) return go(ccsds122_forward_kernel<A, T, false>);
      with_samples(picture.format, [&](auto sample) {
        using S = decltype(sample);
        if constexpr (!std::is_same_v<S, float> || std::is_same_v<T, float>)
          go(ccsds122_forward_kernel<A, S, false>);
        else
          fail(ErrorKind::kBadArgument, "float samples need the float DWT");
      });
    });
  }
}

void Ccsds122Transform::inverse(ccsds122::Dwt dwt, int bits, std::int64_t low, std::int64_t high,
                                const MutableDevicePicture& picture, const Stream& stream) {
  require((picture.width + 7) / 8 == bands_.blocks_wide && picture.height <= 8 * bands_.blocks_high,
          ErrorKind::kBadArgument, "a picture of another size");
  for (int level = 3; level >= 1; --level) {
    InverseLevel a;
    a.g.wide = bands_.blocks_wide * (8 >> level);
    a.g.high = bands_.blocks_high * (8 >> level);
    const int first = level == 1 ? ccsds122::kHL1 : level == 2 ? ccsds122::kHL2 : ccsds122::kHL3;
    a.band[0] = level == 3 ? bands_.data[ccsds122::kLL3] : low_[level - 1];
    for (int b = 0; b < 3; ++b) a.band[1 + b] = bands_.data[first + b];
    a.pitch = bands_.pitch[level - 1];
    a.out = level == 1 ? picture.data : reinterpret_cast<std::byte*>(low_[level - 2]);
    a.out_stride = level == 1 ? picture.row_stride : std::ptrdiff_t{4} * bands_.pitch[level - 2];
    a.real_width = level == 1 ? picture.width : bands_.pitch[level - 2];
    a.real_height = level == 1 ? picture.height : 2 * a.g.high;
    a.packed = level > 1 || can_pack(picture.data, picture.row_stride, sample_bytes(picture.format));
    a.low = static_cast<std::int32_t>(low);
    a.high = static_cast<std::int32_t>(high);
    const unsigned blocks = cut(a.g, processors_);
    const auto go = [&](auto kernel) {
      launch("ccsds122_inverse_kernel", kernel, dim3(blocks), dim3(32 * kStripWarps), 0, stream.get(), a);
    };
    with_arithmetic(dwt, bits, [&](auto arithmetic) {
      using A = decltype(arithmetic);
      using T = typename StripFilter<A>::T;
      if (level > 1) return go(ccsds122_inverse_kernel<A, T, true>);
      with_samples(picture.format, [&](auto sample) {
        using S = decltype(sample);
        if constexpr (std::is_same_v<S, float> && std::is_same_v<T, float>)
          go(ccsds122_inverse_kernel<A, float, true>);
        else if constexpr (!std::is_same_v<S, float>)
          go(ccsds122_inverse_kernel<A, S, false>);
        else
          fail(ErrorKind::kBadArgument, "float samples need the float DWT");
      });
    });
  }
}

void transpose_picture(const DevicePicture& from, const MutableDevicePicture& to, const Stream& stream) {
  require(from.width == to.height && from.height == to.width && from.format == to.format, ErrorKind::kBadArgument,
          "pictures that are not each other's transpose");
  const int sample = sample_bytes(from.format);
  const dim3 grid((static_cast<unsigned>(from.width) + 31) / 32, (static_cast<unsigned>(from.height) + 31) / 32);
  require(grid.y <= 65535, ErrorKind::kUnsupported, "pictures of more than 2^21 rows are not transposed on the device");
  const auto go = [&](auto kernel, auto* out) {
    launch("transpose_kernel", kernel, grid, dim3(32, 8), 0, stream.get(), from.data, from.row_stride, from.width,
           from.height, out, static_cast<int>(to.row_stride / sample));
  };
  switch (sample) {
    case 1: go(transpose_kernel<std::uint8_t>, reinterpret_cast<std::uint8_t*>(to.data)); break;
    case 2: go(transpose_kernel<std::uint16_t>, reinterpret_cast<std::uint16_t*>(to.data)); break;
    default: go(transpose_kernel<std::uint32_t>, reinterpret_cast<std::uint32_t*>(to.data)); break;
  }
}

}  // namespace trivelet::gpu
