// Shared by the passes over gaggles of the CCSDS 122.0 encoder: half a warp has a gaggle, a lane a block; the codes of
// DC values and AC depths. Part of ccsds122_encode.cu.
#pragma once

#include "gpu/still/ccsds122_encode_args.cuh"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_encode;

// ---------------------------------------------------------------------------------------------------- half a warp each

/// The gaggle of 16 lanes. Collectives are of the whole warp; values of the two halves are never mixed.
struct Gaggle {
  std::uint32_t number = 0;  ///< of the picture
  std::uint32_t place = 0;   ///< in its segment
  std::uint32_t segment = 0;
  std::uint32_t block = 0;  ///< of the lane
  int lane = 0;             ///< 0..15
  int count = 0;            ///< blocks; 0: no such gaggle
  bool active = false;      ///< the lane has a block
  int dc_depth = 1, ac_depth = 0;
  int q = 0, dc_bits = 1;  ///< DC quantiser
};

__device__ __forceinline__ Gaggle find_gaggle(const CoderArgs& a) {
  Gaggle g;
  g.lane = static_cast<int>(threadIdx.x % kGaggle);
  g.number = (blockIdx.x * blockDim.x + threadIdx.x) / kGaggle;
  if (g.number >= a.gaggles) return g;
  g.segment = g.number / a.segment_gaggles;
  g.place = g.number - g.segment * a.segment_gaggles;
  const SegmentIn& s = a.in[g.segment];
  const std::uint32_t left = s.blocks - g.place * kGaggle;
  g.count = left < kGaggle ? static_cast<int>(left) : kGaggle;
  g.block = s.first + g.place * kGaggle + static_cast<std::uint32_t>(g.lane);
  g.active = g.lane < g.count;
  const SegmentOut& o = a.out[g.segment];
  g.dc_depth = o.dc_depth > 1 ? o.dc_depth : 1;
  g.ac_depth = o.ac_depth;
  const ccsds122::DcQuantiser quantiser(g.dc_depth, g.ac_depth, a.shift[kLL3]);
  g.q = quantiser.q;
  g.dc_bits = quantiser.bits;
  return g;
}

__device__ __forceinline__ std::uint32_t* piece(const CoderArgs& a, const Gaggle& g, int list) {
  const SegmentIn& s = a.in[g.segment];
  return a.pieces + static_cast<std::size_t>(s.first_gaggle) * static_cast<std::size_t>(list_count(a.planes)) +
         static_cast<std::size_t>(list) * s.gaggles + g.place;
}

template <class T>
__device__ __forceinline__ T half_sum(T v) {
  TRIVELET_UNROLL
  for (int d = 8; d; d /= 2) v = static_cast<T>(v + __shfl_xor_sync(kAllLanes, v, d));
  return v;
}
/// Sum over the lanes before this one.
template <class T>
__device__ __forceinline__ T half_prefix(T v, int lane) {
  T sum = v;
  TRIVELET_UNROLL
  for (int d = 1; d < 16; d *= 2) {
    const T other = __shfl_up_sync(kAllLanes, sum, static_cast<unsigned>(d));
    if (lane >= d) sum = static_cast<T>(sum + other);
  }
  return static_cast<T>(sum - v);
}
__device__ __forceinline__ unsigned half_ballot(bool v) {
  return __ballot_sync(kAllLanes, v) >> (threadIdx.x & 16) & 0xFFFF;
}

// ----------------------------------------------------------------------------------------------- DC values, AC depths

/// Differences of neighbours, folded (codec/still/ccsds122/ccsds122_sequence.cpp).
struct Sequence {
  bool coded = false;   ///< the lane has a folded value
  std::uint32_t u = 0;  ///< it
  int bits = 1;         ///< N
  int id_bits = 1, largest_k = 0;
  int values = 0;  ///< J
  std::int32_t reference = 0;
};

template <class At>
__device__ __forceinline__ Sequence make_sequence(const Gaggle& g, int bits, bool is_signed, const At& at) {
  Sequence s;
  s.bits = bits;
  s.id_bits = bits == 2 ? 1 : bits <= 4 ? 2 : bits <= 8 ? 3 : 4;
  s.largest_k = bits == 2 ? 0 : bits <= 4 ? 2 : bits <= 8 ? 6 : 8;
  s.values = g.count - (g.place == 0 ? 1 : 0);
  s.coded = g.active && (g.place > 0 || g.lane > 0);
  if (!g.active) return s;
  const std::int32_t v = at(g.block);
  s.reference = v;
  if (!s.coded) return s;
  const std::int32_t before = at(g.block - 1);
  const std::int32_t lowest = is_signed ? -(1 << (bits - 1)) : 0,
                     highest = is_signed ? (1 << (bits - 1)) - 1 : (1 << bits) - 1;
  const std::int32_t below = before - lowest, above = highest - before, t = below < above ? below : above;
  const std::int32_t d = v - before, size = d < 0 ? -d : d;
  s.u = static_cast<std::uint32_t>(size > t ? t + size : d >= 0 ? 2 * d : -2 * d - 1);
  return s;
}

/// Code parameter (-1: uncoded) and length of the gaggle's codes.
__device__ __forceinline__ int measure_sequence(const Gaggle& g, const Sequence& s, bool optimal, std::uint32_t& bits) {
  std::uint64_t sum[3] = {0, 0, 0};  // of u >> k, four 16-bit sums each
  if (s.coded) {
    TRIVELET_UNROLL
    for (int k = 0; k <= 8; ++k) sum[k / 4] += static_cast<std::uint64_t>(s.u >> k) << (16 * (k % 4));
  }
  TRIVELET_UNROLL
  for (int i = 0; i < 3; ++i) sum[i] = half_sum(sum[i]);
  const auto cost = [&](int k) {
    const std::uint64_t word = k < 4 ? sum[0] : k < 8 ? sum[1] : sum[2];
    return static_cast<std::uint32_t>(word >> (16 * (k % 4)) & 0xFFFF) + static_cast<std::uint32_t>((k + 1) * s.values);
  };
  const std::uint32_t uncoded = static_cast<std::uint32_t>(s.bits * s.values);
  int best = -1;
  if (optimal) {
    std::uint32_t least = uncoded;
    for (int k = 0; k <= s.largest_k; ++k)
      if (cost(k) < least) {
        least = cost(k);
        best = k;
      }
  } else {
    const std::int64_t delta = static_cast<std::int64_t>(sum[0] & 0xFFFF), j = s.values;
    if (64 * delta >= 23 * j * (std::int64_t{1} << s.bits)) {
      best = -1;
    } else if (207 * j > 128 * delta) {
      best = 0;
    } else if (j * (std::int64_t{1} << (s.bits + 5)) <= 128 * delta + 49 * j) {
      best = s.bits - 2;
    } else {
      best = 0;
      while (best < s.bits - 2 && j * (std::int64_t{1} << (best + 8)) <= 128 * delta + 49 * j) ++best;
    }
  }
  bits = static_cast<std::uint32_t>(s.id_bits + (g.place == 0 ? s.bits : 0)) + (best < 0 ? uncoded : cost(best));
  return best;
}

__device__ __forceinline__ void write_sequence(const Gaggle& g, const Sequence& s, int k, std::uint32_t* words,
                                               std::uint64_t position, std::uint64_t end) {
  const unsigned unary = s.coded && k >= 0 ? (s.u >> k) + 1 : 0;
  const unsigned before = half_prefix(unary, g.lane), all = half_sum(unary);
  const unsigned low = s.coded ? static_cast<unsigned>(k < 0 ? s.bits : k) : 0;
  const unsigned low_before = half_prefix(low, g.lane);
  if (g.count == 0) return;
  if (g.lane == 0) {
    BitsOut out(words, position, end);
    out.put(k < 0 ? (1U << s.id_bits) - 1 : static_cast<unsigned>(k), static_cast<unsigned>(s.id_bits));
    if (g.place == 0)
      out.put(static_cast<std::uint32_t>(s.reference) & ((1U << s.bits) - 1), static_cast<unsigned>(s.bits));
    out.flush();
  }
  position += static_cast<unsigned>(s.id_bits) + (g.place == 0 ? static_cast<unsigned>(s.bits) : 0);
  if (!s.coded) return;
  if (k >= 0) {
    BitsOut out(words, position + before + unary - 1, end);
    out.put(1, 1);
    out.flush();
  }
  BitsOut out(words, position + all + low_before, end);
  out.put(s.u & ((1U << low) - 1), low);
  out.flush();
}

/// A bit of every block of the gaggle, one after the other.
__device__ __forceinline__ void write_flags(const Gaggle& g, bool bit, std::uint32_t* words, std::uint64_t position,
                                            std::uint64_t end) {
  const unsigned votes = half_ballot(g.active && bit);
  if (g.lane != 0 || g.count == 0) return;
  BitsOut out(words, position, end);
  out.put(__brev(votes) >> (32 - g.count), static_cast<unsigned>(g.count));
  out.flush();
}

__device__ __forceinline__ std::int32_t quantised_dc(const CoderArgs& a, const Gaggle& g, std::uint32_t m) {
  return a.dc[m] >> g.q;
}

/// The planes that the two gaggles of a warp have together: from the result - 1 down.
__device__ __forceinline__ int top_plane(const CoderArgs& a, const Gaggle& g) {
  int top = g.count ? g.ac_depth : 0;
  if (top > a.planes || a.no_ac) top = 0;  // without room for them, nothing but the depth matters
  const int other = __shfl_xor_sync(kAllLanes, top, 16);
  return other > top ? other : top;
}

}  // namespace

}  // namespace trivelet::gpu
