// What coefficients gain when they are coded: magnitudes in quantiser steps, sums over a frame of a subband as
// codec/base/lane_sums.h adds, and their weighted sum over a segment. Both profiles' rate control begins here.
#pragma once

#include "codec/transform/quantiser.h"
#include "gpu/entropy/dense.h"
#include "gpu/entropy/zerotree.cuh"

namespace trivelet::gpu {

/// A patch of a subband in the array of coefficients, and how its coefficients become magnitudes.
template <class C>
struct Patch {
  const C* data;
  u64 frame_stride;
  u32 row_stride;
  float inverse_step;
  __device__ __forceinline__ C at(int t, int y, int x) const {
    return data[static_cast<u64>(t) * frame_stride + static_cast<u64>(y) * row_stride + static_cast<u64>(x)];
  }
};

template <class C>
__device__ __forceinline__ Patch<C> patch_of(const TreeTables& t, const DenseTables& dense, const float* inverse_steps,
                                             const C* coefficients, u32 level, u32 block, int o) {
  const DeviceLevel& l = t.levels[level];
  const DeviceBand band = t.bands[l.band + static_cast<u32>(o)];
  const int by = static_cast<int>(block) / l.columns, bx = static_cast<int>(block) % l.columns;
  const float inverse = inverse_steps ? inverse_steps[dense.levels[level].slot + static_cast<u32>(o)] : 1.0f;
  return {coefficients + band.origin + static_cast<u64>(by * l.side) * band.row_stride + static_cast<u64>(bx * l.side),
          band.frame_stride, band.row_stride, inverse};
}

/// Magnitude in quantiser steps, not yet rounded down.
template <class C>
__device__ __forceinline__ auto limited(C c, float inverse_step) {
  if constexpr (std::is_same_v<C, std::int16_t>)
    return c < 0 ? -static_cast<i32>(c) : static_cast<i32>(c);
  else
    return limited_magnitude(c, inverse_step);
}

__device__ __forceinline__ double warp_tree(double v) {
  TRIVELET_UNROLL
  for (unsigned d = 16; d; d >>= 1) v += __shfl_down_sync(kAllLanes, v, d);
  return v;
}

/// Sum number `from` of all frames of a segment, weighted. Every frame has `count` sums.
__device__ __forceinline__ double weighted_sum(const TreeTables& t, const DenseTables& dense,
                                               const DenseMeasure& measure, const double* sums, int count,
                                               const DeviceSegment& at, int from) {
  const DeviceLevel& l = t.levels[at.level];
  const DenseLevel& d = dense.levels[at.level];
  const DenseBox* valid = d.valid[block_class(l, at.block)];
  const double* block_sums =
      sums + (d.frame_sum + static_cast<u64>(at.block) * d.frame_sum_span) * static_cast<u64>(count) + from;
  double sum = 0;
  for (int o = 0; o < l.orientations; ++o) {
    const double weight = measure.weights[d.slot + static_cast<u32>(o)];
    for (int f = 0; f < valid[o].t; ++f) {
      const double w = d.frame_weight < 0 ? weight : weight * measure.frame_weights[d.frame_weight + f];
      sum += w * block_sums[static_cast<std::ptrdiff_t>(o * d.frames + f) * count];
    }
  }
  return sum;
}

}  // namespace trivelet::gpu
