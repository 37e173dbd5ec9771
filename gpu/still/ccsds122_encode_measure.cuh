// Second pass of the CCSDS 122.0 encoder: code parameters, options, and the length of every piece. Part of
// ccsds122_encode.cu.
#pragma once

#include "gpu/still/ccsds122_encode_gaggle.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_encode;

constexpr std::uint64_t kEvenBytes = 0x00FF00FF00FF00FFULL;

/// Sums costs of a block's words by stage.
struct MeasureSink {
  const ccsds122::TokenTable& tokens;
  const TokenCosts& costs;
  std::uint64_t cost[3] = {0, 0, 0};
  std::uint32_t raw[3] = {0, 0, 0};       ///< bits that no option changes
  std::uint32_t uncoded4[3] = {0, 0, 0};  ///< bits of 4-bit words as they are
  std::uint32_t seen[3] = {0, 0, 0};      ///< bit c: a word of class c (lengths 2, 3, 4 are 1, 2, 3)

  template <int Stage>
  __device__ __forceinline__ void word(unsigned entry, unsigned signs) {
    const unsigned token = entry & 63, cls = entry >> 9;
    cost[Stage - 1] += costs.entry[token & 31];
    raw[Stage - 1] += signs + (cls == 0 ? 1 : 0);
    uncoded4[Stage - 1] += cls == 3 ? 4 : 0;
    seen[Stage - 1] |= 1U << cls;
  }
  template <int Stage>
  __device__ __forceinline__ void types(int kind, unsigned mask, unsigned value, unsigned) {
    const unsigned entry = tokens.entry[kind][mask << 4 | value];
    word<Stage>(entry, entry >> 6 & 7);
  }
  template <int Stage>
  __device__ __forceinline__ void flags(int kind, unsigned mask, unsigned value) {
    word<Stage>(tokens.entry[kind][mask << 4 | value], 0);
  }
  template <int Stage>
  __device__ __forceinline__ void flag(unsigned) {
    raw[Stage - 1] += 1;
  }
};

__device__ __forceinline__ unsigned cost_byte(std::uint64_t costs, int i) {
  return static_cast<unsigned>(costs >> (8 * i)) & 255;
}

/// Options of a gaggle as the number of a set: (o2 * 3 + o3) * 4 + o4. Ties: uncoded, otherwise the lowest number.
__device__ __forceinline__ unsigned choose_options(std::uint64_t cost, std::uint32_t uncoded4) {
  const std::uint64_t even = half_sum(cost & kEvenBytes), odd = half_sum(cost >> 8 & kEvenBytes);
  const std::uint32_t raw4 = half_sum(uncoded4);
  const auto at = [&](int i) { return static_cast<std::uint32_t>((i % 2 ? odd : even) >> (16 * (i / 2)) & 0xFFFF); };
  const unsigned o2 = at(0) < at(1) ? 0 : 1;
  unsigned o3 = 2, o4 = 3;
  std::uint32_t least = at(4);
  for (unsigned o = 0; o < 2; ++o)
    if (at(2 + static_cast<int>(o)) < least) {
      least = at(2 + static_cast<int>(o));
      o3 = o;
    }
  least = raw4;
  for (unsigned o = 0; o < 3; ++o)
    if (at(5 + static_cast<int>(o)) < least) {
      least = at(5 + static_cast<int>(o));
      o4 = o;
    }
  return (o2 * 3 + o3) * 4 + o4;
}

/// For every class of words (bits 1..3), true if this lane is the first of the gaggle to have one in this stage, and no
/// earlier stage had one. `had` collects the classes of the stages.
__device__ __forceinline__ unsigned first_with(unsigned seen, unsigned& had, int lane) {
  unsigned first = 0;
  TRIVELET_UNROLL
  for (unsigned c = 1; c <= 3; ++c) {
    const unsigned votes = half_ballot(seen >> c & 1);
    if (votes && !(had >> c & 1)) {
      had |= 1U << c;
      if ((votes & (0U - votes)) == 1U << lane) first |= 1U << c;
    }
  }
  return first;
}
__device__ __forceinline__ unsigned id_bits_of(unsigned classes) {
  return (classes >> 1 & 1) + 2 * (classes >> 2 & 1) + 2 * (classes >> 3 & 1);
}

__global__ void __launch_bounds__(kCoderThreads) measure_kernel(CoderArgs a) {
  __shared__ ccsds122::TokenTable tokens;
  __shared__ TokenCosts costs;
  stage_table(tokens, kDeviceTokens);
  stage_table(costs, kDeviceCosts);
  __syncthreads();
  const Gaggle g = find_gaggle(a);

  {
    const Sequence s = make_sequence(g, g.dc_bits, true, [&](std::uint32_t m) { return quantised_dc(a, g, m); });
    std::uint32_t bits = 0;
    const int k = measure_sequence(g, s, a.optimal_dc, bits);
    if (g.lane == 0 && g.count) {
      *piece(a, g, 0) = g.dc_bits == 1 ? static_cast<std::uint32_t>(g.count) : bits;
      a.parameter[g.number] = static_cast<std::int8_t>(k);
    }
  }
  {
    const Sequence s = make_sequence(g, width_of(static_cast<std::uint32_t>(g.ac_depth)), false,
                                     [&](std::uint32_t m) { return static_cast<std::int32_t>(a.depth[m]); });
    std::uint32_t bits = 0;
    const int k = measure_sequence(g, s, a.optimal_ac, bits);
    if (g.lane == 0 && g.count) {
      *piece(a, g, 1) = g.ac_depth == 0 ? 0 : g.ac_depth == 1 ? static_cast<std::uint32_t>(g.count) : bits;
      a.parameter[a.gaggles + g.number] = static_cast<std::int8_t>(k);
    }
  }

  const int depth = g.active ? a.depth[g.block] : 0;
  const std::uint64_t sign = g.active ? a.sign[g.block] : 0;
  std::uint64_t s = 0;
  for (int b = top_plane(a, g) - 1; b >= a.last_plane; --b) {
    const PlaneMask& e = a.masks.plane[b];
    const bool own = depth > b;
    const std::size_t at = static_cast<std::size_t>(b) * a.blocks + g.block;
    const std::uint64_t p = own ? a.plane[at] : 0;
    MeasureSink sink{tokens, costs};
    if (own) visit_words(s, p, sign, e, sink);
    const std::uint64_t cost = sink.cost[0] + sink.cost[1] + sink.cost[2];
    const unsigned set = choose_options(cost, sink.uncoded4[0] + sink.uncoded4[1] + sink.uncoded4[2]);
    const int o2 = static_cast<int>(set / 12), o3 = static_cast<int>(set / 4 % 3), o4 = static_cast<int>(set % 4);
    unsigned had = 0, note = 0;
    std::uint64_t bits = 0;  // four 16-bit lengths
    TRIVELET_UNROLL
    for (int stage = 0; stage < 3; ++stage) {
      const unsigned first = first_with(sink.seen[stage], had, g.lane);
      const unsigned n = sink.raw[stage] + cost_byte(sink.cost[stage], o2) + cost_byte(sink.cost[stage], 2 + o3) +
                         (o4 == 3 ? sink.uncoded4[stage] : cost_byte(sink.cost[stage], 5 + o4)) + id_bits_of(first);
      bits |= static_cast<std::uint64_t>(n) << (16 * stage);
      note |= n << (stage == 0 ? 0 : stage == 1 ? 5 : 11);
      note |= (first >> 1) << (19 + 3 * stage);
    }
    const std::uint64_t refined = own ? s & e.all : 0;
    bits |= static_cast<std::uint64_t>(__popcll(refined)) << 48;
    const std::uint64_t sums = half_sum(bits);
    if (a.count) {
      const std::uint64_t n = p & ~s & e.all;
      const std::uint64_t own_counts = static_cast<std::uint64_t>(__popcll(n >> 60)) |
                                       static_cast<std::uint64_t>(__popcll(n >> 48 & 0xFFF)) << 16 |
                                       static_cast<std::uint64_t>(__popcll(n & 0xFFFFFFFFFFFFULL)) << 32 |
                                       static_cast<std::uint64_t>(__popcll(refined)) << 48;
      const std::uint64_t counts = half_sum(own_counts);
      if (g.lane < 4 && g.count && b < g.ac_depth) {
        const std::uint32_t n_stage = static_cast<std::uint32_t>(counts >> (16 * g.lane) & 0xFFFF);
        if (n_stage)
          atomicAdd(a.counts +
                        (static_cast<std::size_t>(g.segment) * static_cast<std::size_t>(a.planes) +
                         static_cast<std::size_t>(b)) *
                            4 +
                        static_cast<std::size_t>(g.lane),
                    n_stage);
      }
    }
    if (own) a.note[at] = note;
    if (g.count && b < g.ac_depth) {
      if (g.lane == 0) a.options[static_cast<std::size_t>(b) * a.gaggles + g.number] = static_cast<std::uint8_t>(set);
      if (g.lane < 4)
        *piece(a, g, plane_list(a, b) + g.lane) = static_cast<std::uint32_t>(sums >> (16 * g.lane) & 0xFFFF);
    }
    s |= p;
  }
}

}  // namespace

}  // namespace trivelet::gpu
