// Building blocks of the zerotree kernels: bit primitives on words of 64 slots, sums and prefix sums over a warp, and
// the addressing of words in the tables. FORMAT.md "Fast profile" specifies the order of the bits;
// codec/entropy/fast/zerotree_kernels.cpp is the reference.
#pragma once

#include <cstdint>

#include "gpu/plan/tree_plan.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

// ---------------------------------------------------------------------------------------------------- bit primitives

__device__ __forceinline__ u32 count_bits(u32 x) { return static_cast<u32>(__popc(x)); }
__device__ __forceinline__ u32 count_bits(u64 x) { return static_cast<u32>(__popcll(x)); }

/// Bits of x at the set places of mask, moved together. Works along the set bits of x, which are few.
__device__ __forceinline__ u32 extract_bits(u32 x, u32 mask) {
  u32 r = 0;
  for (x &= mask; x; x &= x - 1) {
    const u32 below = (x & (0u - x)) - 1;
    r |= 1u << count_bits(mask & below);
  }
  return r;
}
__device__ __forceinline__ u64 extract_bits(u64 x, u64 mask) {
  const u32 low_mask = static_cast<u32>(mask);
  return extract_bits(static_cast<u32>(x), low_mask) |
         static_cast<u64>(extract_bits(static_cast<u32>(x >> 32), static_cast<u32>(mask >> 32)))
             << count_bits(low_mask);
}

/// The low bits of x, spread over the set places of mask.
__device__ __forceinline__ u32 deposit_bits(u32 x, u32 mask) {
  u32 r = 0;
  for (; mask && x; x >>= 1, mask &= mask - 1) r |= x & 1 ? mask & (0u - mask) : 0;
  return r;
}
__device__ __forceinline__ u64 deposit_bits(u64 x, u64 mask) {
  const u32 low_mask = static_cast<u32>(mask);
  const u32 low = deposit_bits(static_cast<u32>(x), low_mask);
  return low | static_cast<u64>(deposit_bits(static_cast<u32>(x >> count_bits(low_mask)), static_cast<u32>(mask >> 32)))
                   << 32;
}

/// One bit for each group from slot 0 of every group: the bits at multiples of the arity, packed.
__device__ __forceinline__ u32 gather_groups(u64 x, int arity) {
  if (arity == 4) {
    x &= 0x1111111111111111ull;
    x = (x | x >> 3) & 0x0303030303030303ull;
    x = (x | x >> 6) & 0x000f000f000f000full;
    x = (x | x >> 12) & 0x000000ff000000ffull;
    x = (x | x >> 24) & 0xffff;
  } else {
    x &= 0x0101010101010101ull;
    x = (x | x >> 7) & 0x0003000300030003ull;
    x = (x | x >> 14) & 0x0000000f0000000full;
    x = (x | x >> 28) & 0xff;
  }
  return static_cast<u32>(x);
}
__device__ __forceinline__ u64 spread_groups(u32 groups, int arity) {
  u64 x = groups;
  if (arity == 4) {
    x = (x | x << 24) & 0x000000ff000000ffull;
    x = (x | x << 12) & 0x000f000f000f000full;
    x = (x | x << 6) & 0x0303030303030303ull;
    return (x | x << 3) & 0x1111111111111111ull;
  }
  x = (x | x << 28) & 0x0000000f0000000full;
  x = (x | x << 14) & 0x0003000300030003ull;
  return (x | x << 7) & 0x0101010101010101ull;
}
/// All slots of the marked groups.
__device__ __forceinline__ u64 expand(u32 groups, int arity) {
  const u64 x = spread_groups(groups, arity);
  return (x << arity) - x;  // times 2^arity - 1, modulo 2^64
}
__device__ __forceinline__ u32 any_of(u64 x, int arity) {
  x |= x >> 1;
  x |= x >> 2;
  if (arity == 8) x |= x >> 4;
  return gather_groups(x, arity);
}
__device__ __forceinline__ u32 all_of(u64 x, int arity) {
  x &= x >> 1;
  x &= x >> 2;
  if (arity == 8) x &= x >> 4;
  return gather_groups(x, arity);
}
/// Groups with exactly one slot set.
__device__ __forceinline__ u32 one_of(u64 x, int arity) {
  u64 s = (x & 0x5555555555555555ull) + (x >> 1 & 0x5555555555555555ull);
  s = (s & 0x3333333333333333ull) + (s >> 2 & 0x3333333333333333ull);
  if (arity == 8) s = (s & 0x0f0f0f0f0f0f0f0full) + (s >> 4 & 0x0f0f0f0f0f0f0f0full);
  const u64 first = arity == 4 ? 0x1111111111111111ull : 0x0101010101010101ull;
  const u32 all = arity == 4 ? 0xffff : 0xff;
  return ~any_of(s ^ first, arity) & all;
}

// ------------------------------------------------------------------------------------------------------------- warps

template <class T>
__device__ __forceinline__ T warp_sum(T v) {
  TRIVELET_UNROLL
  for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(kAllLanes, v, d);
  return v;
}
__device__ __forceinline__ u32 warp_or(u32 v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_or_sync(kAllLanes, v);
#else
  TRIVELET_UNROLL
  for (int d = 16; d; d >>= 1) v |= __shfl_xor_sync(kAllLanes, v, d);
  return v;
#endif
}
__device__ __forceinline__ int warp_max(int v) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return __reduce_max_sync(kAllLanes, v);
#else
  TRIVELET_UNROLL
  for (int d = 16; d; d >>= 1) {
    const int other = __shfl_xor_sync(kAllLanes, v, d);
    v = other > v ? other : v;
  }
  return v;
#endif
}
/// Sum over the lanes before this one.
template <class T>
__device__ __forceinline__ T sum_before(T v, int lane) {
  T s = v;
  TRIVELET_UNROLL
  for (int d = 1; d < 32; d <<= 1) {
    const T below = __shfl_up_sync(kAllLanes, s, static_cast<unsigned>(d));
    if (lane >= d) s += below;
  }
  return s - v;
}

// ------------------------------------------------------------------------------------------------------------ tables

/// Which masks a block has: those at the right and lower end differ.
__device__ __forceinline__ u32 block_class(const DeviceLevel& l, u32 block) {
  const int by = static_cast<int>(block) / l.columns, bx = static_cast<int>(block) % l.columns;
  return (by == l.rows - 1 ? 2u : 0u) + (bx == l.columns - 1 ? 1u : 0u);
}
/// Place of word 0 of a block's level in arrays of words.
__device__ __forceinline__ u32 first_word(const DeviceLevel& l, u32 block) {
  return (l.first_tile + block * static_cast<u32>(l.tiles)) * kTileWords;
}
/// Place of a word in arrays of bit planes.
__device__ __forceinline__ std::size_t plane_at(u32 word, int planes, int plane) {
  return (static_cast<std::size_t>(word / kTileWords) * static_cast<std::size_t>(planes) +
          static_cast<std::size_t>(plane)) *
             kTileWords +
         word % kTileWords;
}

/// The temporal parent of a root group: its number among the root groups of the parent's family.
__device__ __forceinline__ int temporal_parent(const DeviceLevel& l, const DeviceLevel& parent, int group) {
  const int t = group / l.per_frame, i = group % l.per_frame;
  int up = parent.family == 0 ? t : t >> 1;
  up = up < parent.root_frames ? up : parent.root_frames - 1;
  return up * l.per_frame + i;
}

}  // namespace trivelet::gpu
