// Third pass of the CCSDS 122.0 encoder: lengths of pieces and segments to places. Part of ccsds122_encode.cu.
#pragma once

#include "gpu/still/ccsds122_encode_gaggle.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_encode;

/// Converts the lengths of a list to positions from `base` on; returns the end. Called by all threads of the block.
template <int kThreads>
__device__ __forceinline__ std::uint32_t place_list(std::uint32_t* list, std::uint32_t count, std::uint32_t base,
                                                    std::uint32_t* warp_sums) {
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (std::uint32_t from = 0; from < count; from += kThreads) {
    const std::uint32_t i = from + threadIdx.x;
    const std::uint32_t n = i < count ? list[i] : 0;
    std::uint32_t sum = n;
    TRIVELET_UNROLL
    for (unsigned d = 1; d < 32; d *= 2) {
      const std::uint32_t other = __shfl_up_sync(kAllLanes, sum, d);
      if (lane >= d) sum += other;
    }
    std::uint32_t before = 0, all = __shfl_sync(kAllLanes, sum, 31);
    if constexpr (kThreads > 32) {
      if (lane == 31) warp_sums[warp] = sum;
      __syncthreads();
      all = 0;
      for (unsigned w = 0; w < kThreads / 32; ++w) {
        if (w < warp) before += warp_sums[w];
        all += warp_sums[w];
      }
      __syncthreads();
    }
    if (i < count) list[i] = base + before + sum - n;
    base += all;
  }
  return base;
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads) layout_kernel(CoderArgs a) {
  __shared__ std::uint32_t warp_sums[kThreads / 32];
  const std::uint32_t segment = blockIdx.x;
  const SegmentIn& s = a.in[segment];
  SegmentOut& o = a.out[segment];
  const int dc_depth = o.dc_depth > 1 ? o.dc_depth : 1, ac_depth = o.ac_depth;
  const ccsds122::DcQuantiser quantiser(dc_depth, ac_depth, a.shift[kLL3]);
  std::uint32_t* pieces =
      a.pieces + static_cast<std::size_t>(s.first_gaggle) * static_cast<std::size_t>(list_count(a.planes));
  std::uint32_t* marks =
      a.count ? a.marks + static_cast<std::size_t>(segment) * static_cast<std::size_t>(list_count(a.planes)) : nullptr;
  const auto mark = [&](int list, std::uint32_t at) {
    if (marks && threadIdx.x == 0) marks[list] = at;
  };
  std::uint32_t at = place_list<kThreads>(pieces, s.gaggles, 8 * s.header_bytes, warp_sums);
  const int floor = ac_depth > a.shift[kLL3] ? ac_depth : a.shift[kLL3];
  std::uint32_t* raw_at = a.raw_at + static_cast<std::size_t>(segment) * static_cast<std::size_t>(a.planes + 1);
  if (threadIdx.x == 0) raw_at[a.planes] = at;
  if (quantiser.q > floor) at += static_cast<std::uint32_t>(quantiser.q - floor) * s.blocks;
  mark(0, at);
  if (!a.no_ac && a.last_plane < ac_depth && ac_depth <= a.planes) {
    at = place_list<kThreads>(pieces + s.gaggles, s.gaggles, at, warp_sums);
    mark(1, at);
    for (int b = ac_depth - 1; b >= a.last_plane; --b) {
      if (threadIdx.x == 0) raw_at[b] = at;
      if (b < quantiser.q && b >= a.shift[kLL3]) at += s.blocks;
      const int stages = b == a.last_plane ? a.last_stage : 4;
      for (int stage = 0; stage < 4; ++stage) {
        const int list = plane_list(a, b) + stage;
        if (stage < stages)
          at = place_list<kThreads>(pieces + static_cast<std::size_t>(list) * s.gaggles, s.gaggles, at, warp_sums);
        mark(list, at);
      }
    }
  }
  if (threadIdx.x == 0) o.bits = at;
}

__device__ __forceinline__ std::uint32_t coded_bytes(const CoderArgs& a, const SegmentIn& s, std::uint32_t bits) {
  const std::uint64_t word = a.word_bytes;
  const std::uint64_t most = s.byte_limit ? s.byte_limit : ccsds122::kMaxSegmentBytes;
  const std::uint64_t have = bits < s.end_bits ? bits : s.end_bits;
  const std::uint64_t data = ((have + 7) / 8 + word - 1) / word * word;
  if (data > most && !a.limited) atomicOr(&a.summary->faults, static_cast<std::uint32_t>(kTooLong));
  return static_cast<std::uint32_t>(a.fill ? most : data < most ? data : most);
}

constexpr int kOffsetThreads = 1024;

__global__ void __launch_bounds__(kOffsetThreads) offsets_kernel(CoderArgs a) {
  __shared__ std::uint64_t warp_sums[kOffsetThreads / 32];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  std::uint64_t base = 0;
  for (std::uint32_t from = 0; from < a.segments; from += kOffsetThreads) {
    const std::uint32_t i = from + threadIdx.x;
    const std::uint32_t n = i < a.segments ? coded_bytes(a, a.in[i], a.out[i].bits) : 0;
    std::uint64_t sum = n;
    TRIVELET_UNROLL
    for (unsigned d = 1; d < 32; d *= 2) {
      const std::uint64_t other = __shfl_up_sync(kAllLanes, sum, d);
      if (lane >= d) sum += other;
    }
    if (lane == 31) warp_sums[warp] = sum;
    __syncthreads();
    std::uint64_t before = 0, all = 0;
    for (unsigned w = 0; w < kOffsetThreads / 32; ++w) {
      if (w < warp) before += warp_sums[w];
      all += warp_sums[w];
    }
    __syncthreads();
    if (i < a.segments) {
      a.lengths[i] = n;
      a.out[i].offset = base + before + sum - n;
    }
    base += all;
  }
  if (threadIdx.x == 0) {
    a.summary->total = base;
    if (base > a.capacity) atomicOr(&a.summary->faults, static_cast<std::uint32_t>(kNoRoom));
  }
}

}  // namespace

}  // namespace trivelet::gpu
