// The papers' transforms on a GPU: separable convolution, one pass per axis, in global or in shared memory.
//
// After Galiano, Lopez-Granado, Malumbres and Migallon, "Fast 3D wavelet transform on multicore and many-core computing
// platforms" (J. Supercomputing 2013); papers_dwt2d_gpu.cu has the two-dimensional ones of 2011. Baselines for the
// benchmark, not used by the codec: CDF 9/7 without scaling, float, Mallat layout in all axes, extents divisible by
// 2^levels.
#pragma once

#include <utility>

#include "apps/bench/papers_filters.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

/// One axis of a region: `length` along it, `across` and `deep` in the others, with strides in values.
struct ConvolutionArgs {
  const float* in = nullptr;
  float* out = nullptr;
  int length = 0, across = 0, deep = 0;
  std::ptrdiff_t stride = 0, across_stride = 0, deep_stride = 0;
  papers::Taps<float> taps;
};

/// A thread computes one low and one high coefficient; kRows: the axis runs along threadIdx.x.
template <bool kRows>
__global__ void convolve_global(ConvolutionArgs a) {
  const int fast = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int slow = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  const int i = kRows ? fast : slow, j = kRows ? slow : fast;
  if (i >= a.length / 2 || j >= a.across) return;
  const std::ptrdiff_t origin = j * a.across_stride + static_cast<std::ptrdiff_t>(blockIdx.z) * a.deep_stride;
  float low = 0, high = 0;
  TRIVELET_UNROLL
  for (int m = 0; m < 9; ++m) low += a.taps.low[m] * a.in[origin + mirror(2 * i - 4 + m, a.length) * a.stride];
  TRIVELET_UNROLL
  for (int m = 0; m < 7; ++m) high += a.taps.high[m] * a.in[origin + mirror(2 * i - 2 + m, a.length) * a.stride];
  a.out[origin + i * a.stride] = low;
  a.out[origin + (a.length / 2 + i) * a.stride] = high;
}

/// Lines that a block of convolve_rows_shared does, so that it has 256 threads or, for long ones, kBlock / 2.
template <int kBlock>
inline constexpr int kRowLines = kBlock < 512 ? 512 / kBlock : 1;

/// Rows: a block of kBlock / 2 x kRowLines threads holds kBlock samples and their neighbours of some rows in shared
/// memory.
template <int kBlock>
__global__ void convolve_rows_shared(ConvolutionArgs a) {
  constexpr int kLines = kRowLines<kBlock>;
  __shared__ float tile[kLines][kBlock + 8];
  const int j = static_cast<int>(blockIdx.y * kLines + threadIdx.y), first = static_cast<int>(blockIdx.x) * kBlock;
  const std::ptrdiff_t origin = j * a.across_stride + static_cast<std::ptrdiff_t>(blockIdx.z) * a.deep_stride;
  if (j < a.across)
    for (int t = static_cast<int>(threadIdx.x); t < kBlock + 8; t += kBlock / 2)
      if (first - 4 + t < a.length + 4) tile[threadIdx.y][t] = a.in[origin + mirror(first - 4 + t, a.length)];
  __syncthreads();
  const int i = first / 2 + static_cast<int>(threadIdx.x);
  if (j >= a.across || i >= a.length / 2) return;
  const float* w = &tile[threadIdx.y][2 * threadIdx.x];
  float low = 0, high = 0;
  TRIVELET_UNROLL
  for (int m = 0; m < 9; ++m) low += a.taps.low[m] * w[m];
  TRIVELET_UNROLL
  for (int m = 0; m < 7; ++m) high += a.taps.high[m] * w[m + 2];
  a.out[origin + i] = low;
  a.out[origin + a.length / 2 + i] = high;
}

/// Columns and time: 32 x 8 threads, 32 columns by kBlock samples and their neighbours along the axis.
template <int kBlock>
__global__ void convolve_columns_shared(ConvolutionArgs a) {
  __shared__ float tile[kBlock + 8][33];
  const int x = static_cast<int>(blockIdx.x * 32 + threadIdx.x), first = static_cast<int>(blockIdx.y) * kBlock;
  const std::ptrdiff_t origin = x + static_cast<std::ptrdiff_t>(blockIdx.z) * a.deep_stride;
  for (int t = static_cast<int>(threadIdx.y); t < kBlock + 8; t += 8)
    if (x < a.across && first - 4 + t < a.length + 4)
      tile[t][threadIdx.x] = a.in[origin + mirror(first - 4 + t, a.length) * a.stride];
  __syncthreads();
  for (int t = static_cast<int>(threadIdx.y); t < kBlock / 2; t += 8) {
    const int i = first / 2 + t;
    if (x >= a.across || i >= a.length / 2) continue;
    float low = 0, high = 0;
    TRIVELET_UNROLL
    for (int m = 0; m < 9; ++m) low += a.taps.low[m] * tile[2 * t + m][threadIdx.x];
    TRIVELET_UNROLL
    for (int m = 0; m < 7; ++m) high += a.taps.high[m] * tile[2 * t + 2 + m][threadIdx.x];
    a.out[origin + i * a.stride] = low;
    a.out[origin + (a.length / 2 + i) * a.stride] = high;
  }
}

template <int kUnused = 0>
__global__ void copy_region(const float* in, float* out, int width, int height, std::ptrdiff_t pitch,
                            std::ptrdiff_t frame) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x),
            y = static_cast<int>(blockIdx.y * blockDim.y + threadIdx.y);
  if (x >= width || y >= height) return;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(blockIdx.z) * frame + y * pitch + x;
  out[at] = in[at];
}

/// All levels. `in` is kept; the result is in `result`, `scratch` is as large.
inline void convolve(bool shared, const float* in, float* result, float* scratch, const Shape& s, int levels,
                     const Stream& stream) {
  const auto blocks = [](int n, int size) { return static_cast<unsigned>((n + size - 1) / size); };
  const std::ptrdiff_t pitch = s.width, frame = static_cast<std::ptrdiff_t>(s.width) * s.height;
  ConvolutionArgs a;
  a.taps = papers::make_taps<float>();
  for (int l = 0; l < levels; ++l) {
    const int w = s.width >> l, h = s.height >> l, n = s.frames >> l;
    const auto pass = [&](int axis, const float* from, float* to) {
      a.in = from;
      a.out = to;
      a.length = axis == 0 ? w : axis == 1 ? h : n;
      a.across = axis == 0 ? h : w;
      a.deep = axis == 2 ? h : n;
      a.stride = axis == 0 ? 1 : axis == 1 ? pitch : frame;
      a.across_stride = axis == 0 ? pitch : 1;
      a.deep_stride = axis == 2 ? pitch : frame;
      const auto deep = static_cast<unsigned>(a.deep);
      if (axis == 0 && shared)
        launch("convolve_rows_shared", convolve_rows_shared<256>, dim3(blocks(w, 256), blocks(h, 2), deep),
               dim3(128, 2), 0, stream.get(), a);
      else if (shared)
        launch("convolve_columns_shared", convolve_columns_shared<64>, dim3(blocks(w, 32), blocks(a.length, 64), deep),
               dim3(32, 8), 0, stream.get(), a);
      else if (axis == 0)
        launch("convolve_global", convolve_global<true>, dim3(blocks(w / 2, 64), blocks(h, 4), deep), dim3(64, 4), 0,
               stream.get(), a);
      else
        launch("convolve_global", convolve_global<false>, dim3(blocks(w, 64), blocks(a.length / 2, 4), deep),
               dim3(64, 4), 0, stream.get(), a);
    };
    pass(0, l == 0 ? in : result, l == 0 ? result : scratch);
    pass(1, l == 0 ? result : scratch, l == 0 ? scratch : result);
    pass(2, l == 0 ? scratch : result, l == 0 ? result : scratch);
    if (l > 0)
      launch("copy_region", copy_region<0>, dim3(blocks(w, 64), blocks(h, 4), static_cast<unsigned>(n)), dim3(64, 4), 0,
             stream.get(), static_cast<const float*>(scratch), result, w, h, pitch, frame);
  }
}

}  // namespace trivelet::gpu
