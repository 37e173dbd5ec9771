// First pass of the CCSDS 122.0 encoder: coefficients of blocks to sign words and bit planes. Part of
// ccsds122_encode.cu.
#pragma once

#include "gpu/still/ccsds122_encode_args.cuh"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_encode;

template <class S>
__global__ void check_kernel(DevicePicture p, std::int32_t low, std::int32_t high, Summary* summary) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  bool bad = false;
  if (x < p.width)
    for (int y = static_cast<int>(blockIdx.y); y < p.height; y += static_cast<int>(gridDim.y)) {
      const S v = reinterpret_cast<const S*>(p.data + y * p.row_stride)[x];
      bad = bad || static_cast<std::int64_t>(v) < low || static_cast<std::int64_t>(v) > high;
    }
  if (bad) atomicOr(&summary->faults, static_cast<std::uint32_t>(kBadSample));
}

__device__ __forceinline__ int width_of(std::uint32_t v) { return 32 - __clz(static_cast<int>(v)); }

__global__ void __launch_bounds__(kCoderThreads) gather_kernel(CoderArgs a) {
  const std::uint32_t m = blockIdx.x * blockDim.x + threadIdx.x;
  const bool active = m < a.blocks;
  int depth = 0, dc_depth = 1;
  const std::uint32_t segment = active ? m / a.segment_blocks : 0;
  if (active) {
    const std::uint32_t wide = static_cast<std::uint32_t>(a.bands.blocks_wide);
    const std::ptrdiff_t r = m / wide, c = m % wide;
    std::uint32_t value[64];
    const auto weighted = [&](std::int32_t v, int band) { return static_cast<std::uint32_t>(v) << a.shift[band]; };
    const std::ptrdiff_t at3 = r * a.bands.pitch[2] + c;
    const std::int32_t dc = static_cast<std::int32_t>(weighted(a.bands.data[kLL3][at3], kLL3));
    value[0] = 0;
    TRIVELET_UNROLL
    for (int i = 0; i < 3; ++i) {
      value[1 + i] = weighted(a.bands.data[ccsds122::kHL3 + i][at3], ccsds122::kHL3 + i);
      TRIVELET_UNROLL
      for (int y = 0; y < 2; ++y) {
        const int band = ccsds122::kHL2 + i;
        const Pack<std::int32_t, 2> v =
            load_pack<std::int32_t, 2>(a.bands.data[band] + (2 * r + y) * a.bands.pitch[1] + 2 * c);
        value[4 + 4 * i + 2 * y] = weighted(v.v[0], band);
        value[5 + 4 * i + 2 * y] = weighted(v.v[1], band);
      }
      TRIVELET_UNROLL
      for (int y = 0; y < 4; ++y) {
        const int band = ccsds122::kHL1 + i;
        const Pack<std::int32_t, 4> v =
            load_pack<std::int32_t, 4>(a.bands.data[band] + (4 * r + y) * a.bands.pitch[0] + 4 * c);
        TRIVELET_UNROLL
        for (int x = 0; x < 4; ++x)
          value[16 + 16 * i + 8 * (y / 2) + 4 * (x / 2) + 2 * (y % 2) + x % 2] = weighted(v.v[x], band);
      }
    }
    std::uint32_t sign[2] = {0, 0}, any = 0;
    TRIVELET_UNROLL
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t s = value[i] >> 31;
      sign[i / 32] |= s << (31 - i % 32);
      value[i] = s ? 0U - value[i] : value[i];
      any |= value[i];
    }
    depth = width_of(any);
    dc_depth = 1 + width_of(static_cast<std::uint32_t>(dc < 0 ? ~dc : dc));
    a.dc[m] = dc;
    a.depth[m] = static_cast<std::uint8_t>(depth);
    a.sign[m] = static_cast<std::uint64_t>(sign[0]) << 32 | sign[1];
    for (int b = 0; b < depth && b < a.planes; ++b) {
      std::uint32_t word[2] = {0, 0};
      TRIVELET_UNROLL
      for (int i = 0; i < 64; ++i) word[i / 32] |= (value[i] >> b & 1) << (31 - i % 32);
      a.plane[static_cast<std::size_t>(b) * a.blocks + m] = static_cast<std::uint64_t>(word[0]) << 32 | word[1];
    }
  }
  // Depths of the segment: one atomic for each warp if all its blocks are in one segment.
  const std::uint32_t leader = __shfl_sync(kAllLanes, segment, 0);
  if (__all_sync(kAllLanes, !active || segment == leader)) {
    TRIVELET_UNROLL
    for (int d = 16; d; d /= 2) {
      const int other = __shfl_xor_sync(kAllLanes, depth, d), other_dc = __shfl_xor_sync(kAllLanes, dc_depth, d);
      depth = other > depth ? other : depth;
      dc_depth = other_dc > dc_depth ? other_dc : dc_depth;
    }
    if (threadIdx.x % 32 == 0 && active) {
      atomicMax(&a.out[leader].ac_depth, depth);
      atomicMax(&a.out[leader].dc_depth, dc_depth);
      atomicMax(&a.summary->depth, depth);
    }
  } else if (active) {
    atomicMax(&a.out[segment].ac_depth, depth);
    atomicMax(&a.out[segment].dc_depth, dc_depth);
    atomicMax(&a.summary->depth, depth);
  }
}

}  // namespace

}  // namespace trivelet::gpu
