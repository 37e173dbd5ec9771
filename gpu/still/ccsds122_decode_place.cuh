// Second pass of the CCSDS 122.0 decoder: bit planes to coefficients in their subbands. Part of ccsds122_decode.cu.
#pragma once

#include "gpu/still/ccsds122_decode_args.cuh"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_decode;

/// Value of a DC coefficient with known bits >= plane.
__device__ __forceinline__ double dc_value(std::int32_t v, int plane, int shift) {
  const double unit = static_cast<double>(std::int64_t{1} << shift);
  const double half = plane > shift ? 0.5 * (static_cast<double>(std::int64_t{1} << plane) - unit) : 0.0;
  return (static_cast<double>(v) + half) / unit;
}
__host__ __device__ inline std::int32_t coefficient_bits(double v, bool real) {
  if (real) {
    const float f = static_cast<float>(v);
    std::int32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
  }
  v = v < -2147483648.0 ? -2147483648.0 : v > 2147483647.0 ? 2147483647.0 : v;
  return static_cast<std::int32_t>(v < 0                     ? v - 0.5 <= -2147483648.0 ? -2147483648.0 : v - 0.5
                                   : v + 0.5 >= 2147483647.0 ? 2147483647.0
                                                             : v + 0.5);
}

constexpr int kPlaceThreads = 128;

__global__ void __launch_bounds__(kPlaceThreads)
    place_kernel(SegmentArrays a, const PlaceJob* jobs, const PlaceTile* tiles, DeviceBands bands, double constant) {
  const PlaceTile tile = tiles[blockIdx.x];
  const PlaceJob& j = jobs[tile.job];
  const std::uint32_t m = tile.first + threadIdx.x;
  if (m >= j.blocks) return;
  const std::uint64_t block = j.first_block + m;
  const std::uint64_t wide = static_cast<std::uint64_t>(bands.blocks_wide);
  const std::ptrdiff_t r = static_cast<std::ptrdiff_t>(block / wide), c = static_cast<std::ptrdiff_t>(block % wide);
  const std::ptrdiff_t at3 = r * bands.pitch[2] + c;
  const bool real = j.real;

  double dc = constant;
  if (j.dc_blocks) {
    const std::uint32_t known = m < j.dc_blocks ? m : j.dc_blocks - 1;  // the last one stands for the rest
    dc = dc_value(a.dc[j.block + known], j.dc_plane - (known < j.dc_ahead ? 1 : 0), j.shift[kLL3]);
  }
  bands.data[kLL3][at3] = coefficient_bits(dc, real);

  std::uint32_t magnitude[64];
  TRIVELET_UNROLL
  for (int i = 0; i < 64; ++i) magnitude[i] = 0;
  std::uint64_t sign = 0, known = ~std::uint64_t{0};
  if (j.has_planes) {
    const int depth = a.depth[j.block + m];
    const std::uint64_t* plane = a.plane + j.plane + m;
    sign = a.sign[j.block + m];
    for (int b = j.last_plane; b < depth; ++b) {
      const std::uint64_t word = plane[static_cast<std::uint64_t>(b) * j.blocks];
      const std::uint32_t high = static_cast<std::uint32_t>(word >> 32), low = static_cast<std::uint32_t>(word);
      TRIVELET_UNROLL
      for (int i = 0; i < 64; ++i) magnitude[i] |= ((i < 32 ? high : low) >> (31 - i % 32) & 1) << b;
    }
    if (j.partial && m >= j.refined_blocks && j.last_plane < depth) {
      known = plane[static_cast<std::uint64_t>(j.last_plane) * j.blocks];
      if (m == j.refined_blocks) known |= j.partly_refined;
    }
  }
  const auto value = [&](int i, int band) -> std::int32_t {
    const bool is_known = known >> (63 - i) & 1, negative = sign >> (63 - i) & 1;
    const int shift = j.shift[band];
    int up = j.last_plane + (is_known ? 0 : 1) - shift;  // lowest known plane above the shift
    if (real) {
      const float offset = up > 0 ? 0.45F * static_cast<float>(std::int64_t{1} << up) - 0.5F : 0.0F;
      const float v = magnitude[i] ? static_cast<float>(magnitude[i]) + offset : 0.0F;
      return __float_as_int(negative ? -v : v);
    }
    const std::int32_t offset = up > 0 ? static_cast<std::int32_t>((std::int64_t{9} << up) / 20) : 0;
    const std::uint32_t v = magnitude[i] ? (magnitude[i] >> shift) + static_cast<std::uint32_t>(offset) : 0;
    return static_cast<std::int32_t>(negative ? 0U - v : v);
  };
  TRIVELET_UNROLL
  for (int i = 0; i < 3; ++i) {
    bands.data[ccsds122::kHL3 + i][at3] = value(1 + i, ccsds122::kHL3 + i);
    TRIVELET_UNROLL
    for (int y = 0; y < 2; ++y) {
      const int band = ccsds122::kHL2 + i, from = 4 + 4 * i + 2 * y;
      store_pack<std::int32_t, 2>(bands.data[band] + (2 * r + y) * bands.pitch[1] + 2 * c,
                                  {{value(from, band), value(from + 1, band)}});
    }
    TRIVELET_UNROLL
    for (int y = 0; y < 4; ++y) {
      const int band = ccsds122::kHL1 + i, from = 16 + 16 * i + 8 * (y / 2) + 2 * (y % 2);
      store_pack<std::int32_t, 4>(
          bands.data[band] + (4 * r + y) * bands.pitch[0] + 4 * c,
          {{value(from, band), value(from + 1, band), value(from + 4, band), value(from + 5, band)}});
    }
  }
}

/// Blocks that no segment describes.
__global__ void fill_kernel(DeviceBands bands, std::int32_t dc) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= bands.blocks_wide) return;
  for (int y = static_cast<int>(blockIdx.y); y < bands.blocks_high; y += static_cast<int>(gridDim.y))
    bands.data[kLL3][static_cast<std::ptrdiff_t>(y) * bands.pitch[2] + x] = dc;
}

}  // namespace

}  // namespace trivelet::gpu
