// One level of the transform in space: both axes in one kernel, one read and one write for each sample.
//
// A warp owns a strip of 128 columns (of which the kHalo<F> outer ones belong to its neighbours) and streams down a
// segment of rows. Four columns for each lane: horizontal lifting exchanges values by shuffles, vertical lifting keeps
// the last few rows in registers, while the next rows are loaded. No shared memory, no barrier. At the borders of the
// picture mirrored samples are loaded; at the borders of a segment a few rows are computed twice. The low band goes to
// scratch memory for the next level, the others are quantised on the way to the field. Bytes for each sample: 8 (float
// in and out), 6.5 (float in; low float and the rest 16 bit out). Bound: memory.
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {
namespace {

constexpr int kWarps = 4;   // per block
constexpr int kBlocks = 6;  // per multiprocessor: limits the registers; 5 and 7 are slower or spill

/// The part of a plane a warp works on.
struct Strip {
  int frame, x, y0, y1;
  bool inside;  // the lane's columns are all in the picture
  bool whole;   // the warp's are
  bool writes;  // the lane's results are kept
};

template <class F, class Args>
__device__ __forceinline__ bool find_strip(const Args& a, Strip& s) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.x / 32);
  const int tile = warp % a.tiles, segment = warp / a.tiles % a.segments;
  s.frame = warp / a.tiles / a.segments;
  s.x = tile * kTileColumns<F> + (lane - kHaloLanes<F>)*4;
  s.y0 = segment * a.segment_rows;
  s.y1 = s.y0 + a.segment_rows < a.height ? s.y0 + a.segment_rows : a.height;
  s.inside = s.x >= 0 && s.x + 4 <= a.width;
  s.whole = __all_sync(kAllLanes, s.inside);
  s.writes = lane >= kHaloLanes<F> && lane < 32 - kHaloLanes<F> && s.x < a.width;
  return s.frame < a.frames;  // the same for all lanes
}

/// Columns beyond the picture that are worth loading.
template <class F, class Args>
__device__ __forceinline__ bool useful(const Args& a, const Strip& s) {
  return s.x < a.width + kHalo<F>;
}

// ------------------------------------------------------------------------------------------------------------ forward

template <class T>
__device__ __forceinline__ void load_row(const T* row, const Strip& s, int width, bool useful, T (&x)[4]) {
  if (s.inside) {
    const Pack<T, 4> p = load_pack<T, 4>(row + s.x);
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) x[c] = p.v[c];
  } else if (useful) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) x[c] = row[mirror(s.x + c, width)];
  }
}

template <class F, class Q, class T = typename F::Value>
__global__ void __launch_bounds__(32 * kWarps, kBlocks) forward_kernel(PlaneArgs<T, Q> a) {
  Strip s;
  if (!find_strip<F>(a, s)) return;
  const bool horizontal = a.width > 1, vertical = a.height > 1, load = useful<F>(a, s);
  const int unpaired = a.width % 2 ? a.width - 1 - s.x : -1;
  const T* in = a.plane + s.frame * a.plane_frame;
  const auto row_at = [&](int y) { return in + static_cast<std::ptrdiff_t>(mirror_near(y, a.height)) * a.plane_pitch; };

  const BandTarget<T, Q> target(a, s.frame, s.x);

  constexpr int kFirst = F::kReach * (F::kSteps - 1);
  const int start = F::kPairs ? s.y0 + 2 : s.y0 - kFirst + F::kReach;  // the first base
  T v[kWindow<F>][4] = {};
  TRIVELET_UNROLL
  for (int m = 2 + 2 * F::kReach - 2; m >= 2; --m) {  // rows start - 2 reach .. start - 2, as if base were start - 2
    load_row(row_at(start - m), s, a.width, load, v[m - 2]);
    if (horizontal) lift_lanes<F, false>(v[m - 2], unpaired);
  }
  T next[2][2][4] = {};  // rows of the next two bases, raw
  TRIVELET_UNROLL
  for (int i = 0; i < 2; ++i) {
    load_row(row_at(start + 2 * i - 1), s, a.width, load, next[i][1]);
    load_row(row_at(start + 2 * i), s, a.width, load, next[i][0]);
  }

  TRIVELET_UNROLL_BY(2)
  for (int base = start; base - kLag<F> < s.y1; base += 2) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      TRIVELET_UNROLL
      for (int m = kWindow<F> - 1; m >= 2; --m) v[m][c] = v[m - 2][c];
      v[1][c] = next[0][1][c];
      v[0][c] = next[0][0][c];
      next[0][1][c] = next[1][1][c];
      next[0][0][c] = next[1][0][c];
    }
    if (base + 4 - kLag<F> < s.y1) {
      load_row(row_at(base + 3), s, a.width, load, next[1][1]);
      load_row(row_at(base + 4), s, a.width, load, next[1][0]);
    }
    if (horizontal) {
      lift_lanes<F, false>(v[1], unpaired);
      lift_lanes<F, false>(v[0], unpaired);
    }
    if (vertical) lift_columns<F, false, 4>(v, base - kLag<F> == a.height - 1);

    const int low_y = base - kLag<F>, high_y = base - kFirst;
    if (s.writes && low_y >= s.y0 && low_y < s.y1) target.template store<false>(a, s.x, low_y, v[kLag<F>]);
    if (s.writes && high_y >= s.y0 && high_y < s.y1) target.template store<true>(a, s.x, high_y, v[kFirst]);
  }
}

// ------------------------------------------------------------------------------------------------------------ inverse

/// kInside: all columns and the rows that the loop loads are in the picture, as nearly always.
template <class F, bool kInside, class Q, class T = typename F::Value>
__device__ __forceinline__ void inverse_strip(const PlaneArgs<T, Q>& a, const Strip& s) {
  const bool horizontal = a.width > 1, vertical = a.height > 1, load = useful<F>(a, s);
  const int unpaired = a.width % 2 ? a.width - 1 - s.x : -1;

  constexpr int kFirst = F::kReach * (F::kSteps - 1);
  const int start = F::kPairs ? s.y0 + 1 : s.y0 + 1 - kFirst + F::kReach;  // the first base, odd
  BandSource<T, Q> source(a, s.frame, s.x, start + 3);
  using Even = typename BandSource<T, Q>::Even;
  using Odd = typename BandSource<T, Q>::Odd;
  const auto load_at = [&](int y, auto& x) {
    if (load) source.load(a, s.x, y, x);
  };
  T* out = a.plane + s.frame * a.plane_frame + (start - kFirst) * static_cast<std::ptrdiff_t>(a.plane_pitch) + s.x;
  const auto store_row = [&](int y, T* to, const T(&r)[4]) {
    if (!s.writes || y < s.y0 || y >= s.y1) return;
    if (kInside || s.inside) {
      store_pack<T, 4>(to, {{r[0], r[1], r[2], r[3]}});
    } else {
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c)
        if (s.x + c < a.width) to[c] = r[c];
    }
  };

  T v[kWindow<F>][4] = {};
  TRIVELET_UNROLL
  for (int m = 2 * F::kReach; m >= 2; --m) {
    const auto restore_at = [&](auto raw) {
      load_at(start - m, raw);
      source.restore(a, raw, v[m - 2]);
    };
    if (m % 2 == 0)
      restore_at(Odd{});
    else
      restore_at(Even{});
  }
  Even next_even[2] = {};
  Odd next_odd[2] = {};
  TRIVELET_UNROLL
  for (int i = 0; i < 2; ++i) {
    load_at(start + 2 * i - 1, next_even[i]);
    load_at(start + 2 * i, next_odd[i]);
  }

  TRIVELET_UNROLL_BY(2)
  for (int base = start; base - kLag<F> < s.y1; base += 2) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      TRIVELET_UNROLL
      for (int m = kWindow<F> - 1; m >= 2; --m) v[m][c] = v[m - 2][c];
    }
    source.restore(a, next_even[0], v[1]);
    source.restore(a, next_odd[0], v[0]);
    next_even[0] = next_even[1];
    next_odd[0] = next_odd[1];
    if (base + 4 - kLag<F> < s.y1) {
      if constexpr (kInside) {
        source.load_inside(a, next_even[1], next_odd[1]);
        source.advance(a);
      } else {
        load_at(base + 3, next_even[1]);
        load_at(base + 4, next_odd[1]);
      }
    }
    if (vertical) lift_columns<F, true, 4>(v, base - F::kReach == a.height - 1);

    T even[4], odd[4];  // finished down the columns; v itself is needed further on
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) {
      even[c] = v[kFirst][c];
      odd[c] = v[kLag<F>][c];
    }
    if (horizontal) {
      lift_lanes<F, true>(even, unpaired);
      lift_lanes<F, true>(odd, unpaired);
    }
    store_row(base - kFirst, out, even);
    store_row(base - kLag<F>, out - (kLag<F> - kFirst) * static_cast<std::ptrdiff_t>(a.plane_pitch), odd);
    out += 2 * static_cast<std::ptrdiff_t>(a.plane_pitch);
  }
}

template <class F, class Q, class T = typename F::Value>
__global__ void __launch_bounds__(32 * kWarps, kBlocks) inverse_kernel(PlaneArgs<T, Q> a) {
  Strip s;
  if (!find_strip<F>(a, s)) return;
  if (s.whole && s.y1 + kLag<F> <= a.height)
    inverse_strip<F, true>(a, s);
  else
    inverse_strip<F, false>(a, s);
}

// ------------------------------------------------------------------------------------------------------- without split

template <bool kInverse, class T, class Q>
__global__ void copy_kernel(PlaneArgs<T, Q> a) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= a.width) return;
  for (int i = static_cast<int>(blockIdx.y); i < a.height * a.frames; i += static_cast<int>(gridDim.y)) {
    const int frame = i / a.height, y = i % a.height;
    T* value = a.plane + frame * a.plane_frame + static_cast<std::ptrdiff_t>(y) * a.plane_pitch + x;
    Q* coefficient = a.field + frame * a.field_frame + static_cast<std::ptrdiff_t>(y) * a.pitch + x;
    const float step = a.steps ? a.steps[frame * a.step_frame] : 1.0f;
    if constexpr (kInverse)
      *value = dequantise<T>(*coefficient, step, a.centroid);
    else
      *coefficient = quantise<Q>(*value, step);
  }
}

// ----------------------------------------------------------------------------------------------------------- launchers

/// Long segments compute fewer rows twice, short ones fill the device: as long as every processor gets its share.
template <class F, class Args>
unsigned cut_into_strips(Args& a, int processors) {
  a.tiles = (a.width + kTileColumns<F> - 1) / kTileColumns<F>;
  const std::int64_t enough = std::int64_t{processors} * 96;  // warps; measured: 4 times the resident ones
  a.segment_rows = 256;
  while (a.segment_rows > 16 &&
         std::int64_t{a.tiles} * a.frames * ((a.height + a.segment_rows - 1) / a.segment_rows) < enough)
    a.segment_rows /= 2;
  a.segments = (a.height + a.segment_rows - 1) / a.segment_rows;
  const std::int64_t warps = std::int64_t{a.tiles} * a.segments * a.frames;
  require(warps < (std::int64_t{1} << 31) - 128, ErrorKind::kUnsupported,
          "a volume of " + std::to_string(warps) + " strips is too large for one launch");
  return static_cast<unsigned>((warps + kWarps - 1) / kWarps);
}

}  // namespace

template <class T, class Q>
void forward_plane(PlaneArgs<T, Q> a, Wavelet w, int processors, const Stream& stream) {
  with_filter<T>(w, [&](auto filter) {
    using F = decltype(filter);
    const unsigned blocks = cut_into_strips<F>(a, processors);
    launch("forward_kernel", forward_kernel<F, Q>, dim3(blocks), dim3(32 * kWarps), 0, stream.get(), a);
  });
}

template <class T, class Q>
void inverse_plane(PlaneArgs<T, Q> a, Wavelet w, int processors, const Stream& stream) {
  with_filter<T>(w, [&](auto filter) {
    using F = decltype(filter);
    const unsigned blocks = cut_into_strips<F>(a, processors);
    launch("inverse_kernel", inverse_kernel<F, Q>, dim3(blocks), dim3(32 * kWarps), 0, stream.get(), a);
  });
}

template <class T, class Q>
void copy_plane(const PlaneArgs<T, Q>& a, bool inverse, const Stream& stream) {
  const std::int64_t rows = std::int64_t{a.height} * a.frames;
  require(rows < (std::int64_t{1} << 30), ErrorKind::kUnsupported,
          "a volume of " + std::to_string(rows) + " rows is too large");
  const dim3 grid((static_cast<unsigned>(a.width) + 127) / 128, static_cast<unsigned>(rows < 65535 ? rows : 65535));
  if (inverse)
    launch("copy_kernel", copy_kernel<true, T, Q>, grid, dim3(128), 0, stream.get(), a);
  else
    launch("copy_kernel", copy_kernel<false, T, Q>, grid, dim3(128), 0, stream.get(), a);
}

#define TRIVELET_INSTANTIATE(T, Q)                                           \
  template void forward_plane(PlaneArgs<T, Q>, Wavelet, int, const Stream&); \
  template void inverse_plane(PlaneArgs<T, Q>, Wavelet, int, const Stream&); \
  template void copy_plane(const PlaneArgs<T, Q>&, bool, const Stream&);
TRIVELET_FOR_COEFFICIENTS(TRIVELET_INSTANTIATE)
#undef TRIVELET_INSTANTIATE

}  // namespace trivelet::gpu
