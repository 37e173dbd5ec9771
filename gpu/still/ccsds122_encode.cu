// Kernels of the encoder, in the order in which they run:
//
//   transpose, check samples      only when asked for
//   transform                     ccsds122_dwt.cu
//   gather_kernel                 a thread per block: 64 coefficients to sign word and bit planes; depths per segment
//   measure_kernel                16 lanes per gaggle: code parameters, options, and the length of every piece
//   layout_kernel                 a block per segment: prefix sums over the pieces in the order of the stream
//   offsets_kernel                prefix sum over the segments
//   write_kernel                  16 lanes per gaggle: the codes, straight to their places
//
// A piece is what one gaggle contributes to DC values, AC depths, or a stage of a plane. Bytes that must move per
// sample, beside the transform: 4 read and about 1 + depth / 8 written by gather, as much read again twice.
#include "gpu/still/ccsds122_encode.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "codec/still/ccsds122/ccsds122_rate.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/dwt.cuh"
#include "gpu/still/ccsds122_words.cuh"

namespace trivelet::gpu {

PlaneMasks make_plane_masks(const std::array<int, ccsds122::kBands>& shift) {
  PlaneMasks masks;
  for (int b = 0; b < 32; ++b) {
    PlaneMask& m = masks.plane[b];
    m.all = ccsds122::eligible_mask(shift.data(), b);
    for (int n = 0; n < 16; ++n)
      if (m.all >> (4 * n) & 15) m.nibble |= 1U << n;
    m.grand = static_cast<std::uint16_t>(grandchildren_flags(m.nibble));
    m.family = static_cast<std::uint16_t>((m.nibble >> 12 & 7) | m.grand);
  }
  return masks;
}

namespace ccsds122_encode {  // not unnamed: State has members of these types

using ccsds122::kBands;
using ccsds122::kLL3;

constexpr int kGaggle = 16;
constexpr int kCoderThreads = 128;
constexpr std::uint32_t kNoEnd = ~std::uint32_t{0};

enum Fault : std::uint32_t { kBadSample = 1, kTooLong = 2, kNoRoom = 4 };

/// What is known about a segment beforehand.
struct SegmentIn {
  std::uint32_t first = 0, blocks = 0;
  std::uint32_t first_gaggle = 0, gaggles = 0;
  std::uint32_t header_bytes = 0;
  std::uint32_t byte_limit = 0;     ///< 0: none
  std::uint32_t end_bits = kNoEnd;  ///< nothing is written beyond
  std::uint8_t header[20] = {};     ///< depths are 0
};
/// What becomes known.
struct SegmentOut {
  std::int32_t dc_depth, ac_depth;
  std::uint32_t bits;
  std::uint32_t padding;
  std::uint64_t offset;  ///< in the stream, bytes
};
struct Summary {
  std::uint64_t total;
  std::uint32_t faults;
  std::int32_t depth;  ///< largest AC depth
};

struct CoderArgs {
  DeviceBands bands;
  int shift[kBands];
  PlaneMasks masks;
  std::uint32_t blocks, gaggles, segments;
  std::uint32_t segment_blocks, segment_gaggles;  ///< of all but the last segment
  int planes;                                     ///< room for so many
  int last_plane, last_stage;                     ///< coded down to stage last_stage (1..4) of plane last_plane
  bool no_ac;                                     ///< DCStop
  bool optimal_dc, optimal_ac, count, fill, limited;
  std::uint32_t word_bytes;
  std::uint64_t capacity;  ///< bytes of `stream`

  const SegmentIn* in;
  SegmentOut* out;
  Summary* summary;
  std::uint32_t* lengths;  ///< bytes per segment
  std::int32_t* dc;
  std::uint8_t* depth;
  std::uint64_t* sign;
  std::uint64_t* plane;    ///< [plane][block]
  std::uint32_t* note;     ///< [plane][block]: lengths of stages 1..3 in 5, 6, 8 bits, option ids sent in 9
  std::uint8_t* options;   ///< [plane][gaggle]
  std::int8_t* parameter;  ///< [2][gaggle]: k of DC values and AC depths, -1 uncoded
  std::uint32_t* pieces;   ///< per segment [list][gaggle]: lengths, then places, in bits
  std::uint32_t*
      raw_at;            ///< [segment][planes + 1]: stage 0 of every plane; the last one: DC planes above the AC planes
  std::uint32_t* marks;  ///< [segment][2 + 4 planes]: where lists end; with `count`
  std::uint32_t* counts;  ///< [segment][planes][4]: coefficients; with `count`
  std::uint32_t* stream;
};

}  // namespace ccsds122_encode

namespace {

using namespace ccsds122_encode;

/// Lists of pieces: 0 DC, 1 AC depths, then stages 1..4 of the planes from the highest on.
__host__ __device__ inline int list_count(int planes) { return 2 + 4 * planes; }
__device__ __forceinline__ int plane_list(const CoderArgs& a, int plane) { return 2 + 4 * (a.planes - 1 - plane); }

// ------------------------------------------------------------------------------------------------------------- samples

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

// -------------------------------------------------------------------------------------------------------------- gather

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
  // Depths of the segment: one atomic per warp where all its blocks are of one segment.
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

// ---------------------------------------------------------------------------------------------------- half a warp each

/// The gaggle of 16 lanes. Collectives are of the whole warp; values of the two halves never meet.
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

// ------------------------------------------------------------------------------------------------------------- measure

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

/// Options of a gaggle as the number of a set: (o2 * 3 + o3) * 4 + o4. Ties: uncoded, else the lowest number.
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

/// For every class of words (bits 1..3), whether this lane is the first of the gaggle to have one in this stage, and no
/// earlier stage had one. `had` collects what the stages had.
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

// -------------------------------------------------------------------------------------------------------------- layout

/// Lengths of a list to places, from `base` on; returns where it ends. All threads of the block together.
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

// --------------------------------------------------------------------------------------------------------------- write

struct WriteTables {
  ccsds122::TokenTable tokens;
  ccsds122::ExtractTable extract;
  ccsds122::CodeTable codes;
};

struct WriteSink {
  const WriteTables& tables;
  const std::uint16_t* codes;  ///< of the options chosen
  unsigned set;
  unsigned ids;  ///< 3 bits per stage: option ids this block sends
  BitsOut out[3];

  template <int Stage>
  __device__ __forceinline__ void word(unsigned entry, unsigned sign_bits, unsigned signs) {
    const unsigned cls = entry >> 9;
    BitsOut& to = out[Stage - 1];
    if (cls && (ids >> (3 * (Stage - 1) + cls - 1) & 1)) {
      ids &= ~(1U << (3 * (Stage - 1) + cls - 1));
      const int length = static_cast<int>(cls) + 1;
      const int option = static_cast<int>(cls == 1 ? set / 12 : cls == 2 ? set / 4 % 3 : set % 4);
      const int uncoded = length - 1;  // the last of 2, 3, 4 options
      const int bits = cls == 1 ? 1 : 2;
      to.put(static_cast<std::uint32_t>(option == uncoded ? (1 << bits) - 1 : option), static_cast<unsigned>(bits));
    }
    const unsigned code = codes[entry & 63];
    to.put((code & 255) << signs | sign_bits, (code >> 8) + signs);
  }
  template <int Stage>
  __device__ __forceinline__ void types(int kind, unsigned mask, unsigned value, unsigned sign) {
    const unsigned entry = tables.tokens.entry[kind][mask << 4 | value];
    word<Stage>(entry, tables.extract.entry[(mask & value) << 4 | sign], entry >> 6 & 7);
  }
  template <int Stage>
  __device__ __forceinline__ void flags(int kind, unsigned mask, unsigned value) {
    word<Stage>(tables.tokens.entry[kind][mask << 4 | value], 0, 0);
  }
  template <int Stage>
  __device__ __forceinline__ void flag(unsigned bit) {
    out[Stage - 1].put(bit, 1);
  }
};

__global__ void __launch_bounds__(kCoderThreads) write_kernel(CoderArgs a) {
  __shared__ WriteTables tables;
  stage_table(tables.tokens, kDeviceTokens);
  stage_table(tables.extract, kDeviceExtract);
  stage_table(tables.codes, kDeviceCodes);
  __syncthreads();
  if (a.summary->faults) return;
  const Gaggle g = find_gaggle(a);
  std::uint64_t base = 0, end = 0;  // bits of the stream
  std::uint32_t blocks = 0;
  if (g.count) {
    const SegmentIn& s = a.in[g.segment];
    const SegmentOut& o = a.out[g.segment];
    base = 8 * o.offset;
    std::uint64_t bits = o.bits < s.end_bits ? o.bits : s.end_bits;
    const std::uint64_t limit = 8 * static_cast<std::uint64_t>(a.lengths[g.segment]);
    end = base + (bits < limit ? bits : limit);
    blocks = s.blocks;
    if (g.place == 0)
      for (std::uint32_t i = static_cast<std::uint32_t>(g.lane); i < s.header_bytes; i += kGaggle) {
        const std::uint32_t depths =
            (static_cast<std::uint32_t>(g.dc_depth) & 31) << 9 | static_cast<std::uint32_t>(g.ac_depth) << 4;
        const std::uint32_t byte = s.header[i] | (i < 3 ? depths >> (16 - 8 * i) & 255 : 0);
        BitsOut out(a.stream, base + 8 * i, end);
        out.put(byte, 8);
        out.flush();
      }
  }

  // DC values and their planes above the AC planes.
  const std::int32_t dc = g.active ? a.dc[g.block] : 0;
  const std::uint64_t dc_at = base + (g.count ? *piece(a, g, 0) : 0);
  if (__any_sync(kAllLanes, g.count && g.dc_bits > 1)) {
    const Sequence s = make_sequence(g, g.dc_bits, true, [&](std::uint32_t m) { return quantised_dc(a, g, m); });
    // The half that has single bits takes part and writes nothing.
    write_sequence(g, s, g.count ? a.parameter[g.number] : 0, a.stream, dc_at, g.dc_bits > 1 ? end : 0);
  }
  write_flags(g, dc >> g.q & 1, a.stream, dc_at, g.dc_bits == 1 ? end : 0);

  const std::uint32_t* raw_at = a.raw_at + static_cast<std::size_t>(g.segment) * static_cast<std::size_t>(a.planes + 1);
  const auto write_dc_plane = [&](int b, std::uint64_t at, bool there) {
    write_flags(g, dc >> b & 1, a.stream, base + at + g.place * kGaggle, there ? end : 0);
  };
  const int floor = g.ac_depth > a.shift[kLL3] ? g.ac_depth : a.shift[kLL3];
  const int extra = g.count && g.q > floor ? g.q - floor : 0;
  const int other_extra = __shfl_xor_sync(kAllLanes, extra, 16);
  for (int i = 0; i < (extra > other_extra ? extra : other_extra); ++i)
    write_dc_plane(i < extra ? g.q - 1 - i : 0,
                   i < extra ? raw_at[a.planes] + static_cast<std::uint64_t>(i) * blocks : 0, i < extra);

  // AC depths.
  const bool coded = g.count && !a.no_ac && a.last_plane < g.ac_depth;
  const int depth = g.active ? a.depth[g.block] : 0;
  if (!__any_sync(kAllLanes, coded)) return;
  const std::uint64_t depth_at = base + (coded ? *piece(a, g, 1) : 0);
  if (__any_sync(kAllLanes, coded && g.ac_depth > 1)) {
    const Sequence s = make_sequence(g, width_of(static_cast<std::uint32_t>(g.ac_depth)), false,
                                     [&](std::uint32_t m) { return static_cast<std::int32_t>(a.depth[m]); });
    write_sequence(g, s, g.count ? a.parameter[a.gaggles + g.number] : 0, a.stream, depth_at,
                   coded && g.ac_depth > 1 ? end : 0);
  }
  write_flags(g, depth != 0, a.stream, depth_at, coded && g.ac_depth == 1 ? end : 0);

  const std::uint64_t sign = g.active ? a.sign[g.block] : 0;
  std::uint64_t s = 0;
  for (int b = top_plane(a, g) - 1; b >= a.last_plane; --b) {
    const PlaneMask& e = a.masks.plane[b];
    const bool here = coded && b < g.ac_depth;
    if (a.limited && __all_sync(kAllLanes, g.count == 0 || (here && base + raw_at[b] >= end))) return;
    const bool stage0 = here && b < g.q && b >= a.shift[kLL3];
    if (__any_sync(kAllLanes, stage0)) write_dc_plane(b, stage0 ? raw_at[b] : 0, stage0);

    const bool own = here && depth > b;
    const std::size_t at = static_cast<std::size_t>(b) * a.blocks + g.block;
    const std::uint64_t p = own ? a.plane[at] : 0, refined = own ? s & e.all : 0;
    const std::uint32_t note = own ? a.note[at] : 0;
    const unsigned refined_bits = static_cast<unsigned>(__popcll(refined));
    const std::uint64_t bits = (note & 31) | static_cast<std::uint64_t>(note >> 5 & 63) << 16 |
                               static_cast<std::uint64_t>(note >> 11 & 255) << 32 |
                               static_cast<std::uint64_t>(refined_bits) << 48;
    const std::uint64_t before = half_prefix(bits, g.lane);
    if (own) {
      const int stages = b == a.last_plane ? a.last_stage : 4;
      const std::uint32_t* places = piece(a, g, plane_list(a, b));
      const std::size_t next = a.in[g.segment].gaggles;
      const auto out = [&](int stage) {
        return BitsOut(a.stream,
                       base + places[static_cast<std::size_t>(stage) * next] + (before >> (16 * stage) & 0xFFFF),
                       stage < stages ? end : 0);
      };
      const unsigned set = a.options[static_cast<std::size_t>(b) * a.gaggles + g.number];
      WriteSink sink{tables, tables.codes.entry[set], set, note >> 19, {out(0), out(1), out(2)}};
      visit_words(s, p, sign, e, sink);
      TRIVELET_UNROLL
      for (int i = 0; i < 3; ++i) sink.out[i].flush();
      if (refined_bits) {
        BitsOut raw = out(3);
        const std::uint64_t v = compress_bits(p, refined, tables.extract);
        if (refined_bits > 32) raw.put(static_cast<std::uint32_t>(v >> 32), refined_bits - 32);
        raw.put(static_cast<std::uint32_t>(v), refined_bits < 32 ? refined_bits : 32);
        raw.flush();
      }
    }
    s |= p;
  }
}

}  // namespace

// --------------------------------------------------------------------------------------------------------------- host

using namespace ccsds122_encode;

struct Ccsds122Encoder::State {
  ccsds122::Params params;
  int width = 0, height = 0;  // as coded
  SampleType format = SampleType::kU8;
  bool check_range = false;
  std::vector<ccsds122::SegmentPlan> plan;
  std::vector<SegmentIn> in;
  std::array<int, kBands> shift{};

  Ccsds122Transform transform;
  CoderArgs args{};
  DevicePicture picture;  // given to start()

  DeviceBuffer<std::byte> turned;
  std::ptrdiff_t turned_stride = 0;
  DeviceBuffer<SegmentIn> d_in;
  DeviceBuffer<SegmentOut> d_out;
  DeviceBuffer<Summary> d_summary;
  DeviceBuffer<std::uint32_t> d_lengths, d_note, d_pieces, d_raw_at, d_marks, d_counts, d_stream;
  DeviceBuffer<std::int32_t> d_dc;
  DeviceBuffer<std::uint8_t> d_depth, d_options;
  DeviceBuffer<std::uint64_t> d_sign, d_plane;
  DeviceBuffer<std::int8_t> d_parameter;
  PinnedBuffer<Summary> summary;
  PinnedBuffer<std::uint32_t> lengths;
  std::vector<std::uint32_t> segment_bytes;
  std::uint64_t total = 0;

  State(int w, int h, SampleType f, const ccsds122::Params& p);
  void make_room(int planes, std::uint64_t capacity);
  void transform_picture(const Stream& stream);
  void code(const Stream& stream);
  bool spread(const Stream& stream);
};

namespace {

VolumeView view_of(int width, int height, SampleType format) {
  VolumeView v;
  v.shape = {1, height, width};
  v.bytes_per_sample = sample_bytes(format);
  v.is_signed = format == SampleType::kS8 || format == SampleType::kS16 || format == SampleType::kS32;
  return v;
}

}  // namespace

Ccsds122Encoder::State::State(int w, int h, SampleType f, const ccsds122::Params& p)
    : params(p),
      width(p.transpose ? h : w),
      height(p.transpose ? w : h),
      format(f),
      transform((width + 7) / 8, (height + 7) / 8) {
  check_range = ccsds122::samples_need_check(view_of(w, h, f), p);
  plan = ccsds122::plan_segments(p, width, height);
  shift = ccsds122::band_shifts(plan.front().header.shifts());
  std::uint32_t gaggle = 0;
  for (const ccsds122::SegmentPlan& s : plan) {
    SegmentIn i;
    i.first = static_cast<std::uint32_t>(s.first);
    i.blocks = s.blocks;
    i.first_gaggle = gaggle;
    i.gaggles = (s.blocks + kGaggle - 1) / kGaggle;
    gaggle += i.gaggles;
    ccsds122::SegmentHeader header = s.header;
    header.dc_depth = 32;  // 0 in the stream
    header.ac_depth = 0;
    const std::vector<std::byte> bytes = ccsds122::write_header(header);
    i.header_bytes = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(i.header, bytes.data(), bytes.size());
    i.byte_limit = s.header.byte_limit;
    in.push_back(i);
  }
  const std::uint64_t blocks = static_cast<std::uint64_t>(transform.bands().blocks_wide) *
                               static_cast<std::uint64_t>(transform.bands().blocks_high);
  require(blocks < std::uint64_t{1} << 31, ErrorKind::kUnsupported,
          "a picture of " + std::to_string(blocks) + " blocks is too large for the device");

  CoderArgs& a = args;
  a.bands = transform.bands();
  std::copy(shift.begin(), shift.end(), a.shift);
  a.masks = make_plane_masks(shift);
  a.blocks = static_cast<std::uint32_t>(blocks);
  a.gaggles = gaggle;
  a.segments = static_cast<std::uint32_t>(plan.size());
  a.segment_blocks = p.segment_blocks;
  a.segment_gaggles = (p.segment_blocks + kGaggle - 1) / kGaggle;
  a.last_plane = p.bit_plane_stop;
  a.last_stage = p.stage_stop + 1;
  a.no_ac = p.dc_stop;
  a.optimal_dc = p.optimal_dc;
  a.optimal_ac = p.optimal_ac;
  a.count = p.total_bytes != 0;
  a.fill = p.use_fill;
  a.limited = p.segment_bytes || p.total_bytes;
  a.word_bytes = static_cast<std::uint32_t>(p.word_bytes);

  d_in = DeviceBuffer<SegmentIn>(in.size());
  d_out = DeviceBuffer<SegmentOut>(in.size());
  d_summary = DeviceBuffer<Summary>(1);
  d_lengths = DeviceBuffer<std::uint32_t>(in.size());
  d_dc = DeviceBuffer<std::int32_t>(blocks);
  d_depth = DeviceBuffer<std::uint8_t>(blocks);
  d_sign = DeviceBuffer<std::uint64_t>(blocks);
  d_parameter = DeviceBuffer<std::int8_t>(std::size_t{2} * gaggle);
  summary = PinnedBuffer<Summary>(1);
  lengths = PinnedBuffer<std::uint32_t>(in.size());
  a.in = d_in.data();
  a.out = d_out.data();
  a.summary = d_summary.data();
  a.lengths = d_lengths.data();
  a.dc = d_dc.data();
  a.depth = d_depth.data();
  a.sign = d_sign.data();
  a.parameter = d_parameter.data();
  if (p.transpose) {
    const std::ptrdiff_t sample = sample_bytes(f);
    turned_stride = (width + 15) / 16 * 16 * sample;
    turned = DeviceBuffer<std::byte>(static_cast<std::size_t>(turned_stride) * static_cast<std::size_t>(height));
  }
  // Coefficients have a few bits more than samples, streams about as many: when either is exceeded, the picture is
  // coded once more.
  const std::uint64_t samples = blocks * 64;
  std::uint64_t room = samples * static_cast<std::uint64_t>(p.bits + 2) / 8 + blocks * 8 + in.size() * 64;
  if (p.segment_bytes) room = std::min<std::uint64_t>(room, std::uint64_t{p.segment_bytes + 64} * in.size());
  if (p.use_fill) room = std::uint64_t{p.segment_bytes + 64} * in.size();
  if (p.total_bytes) room = std::min(room, p.total_bytes + 64);
  make_room(std::min(ccsds122::kMaxPlanes, p.bits + 7), room);
}

void Ccsds122Encoder::State::make_room(int planes, std::uint64_t capacity) {
  CoderArgs& a = args;
  if (planes != a.planes) {
    a.planes = planes;
    const std::size_t n = static_cast<std::size_t>(planes), lists = static_cast<std::size_t>(list_count(planes));
    d_plane = {};
    d_note = {};
    d_plane = DeviceBuffer<std::uint64_t>(checked_mul(n, a.blocks));
    d_note = DeviceBuffer<std::uint32_t>(checked_mul(n, a.blocks));
    d_options = DeviceBuffer<std::uint8_t>(n * a.gaggles);
    d_pieces = DeviceBuffer<std::uint32_t>(lists * a.gaggles);
    d_raw_at = DeviceBuffer<std::uint32_t>((n + 1) * a.segments);
    if (a.count) {
      d_marks = DeviceBuffer<std::uint32_t>(lists * a.segments);
      d_counts = DeviceBuffer<std::uint32_t>(4 * n * a.segments);
    }
    a.plane = d_plane.data();
    a.note = d_note.data();
    a.options = d_options.data();
    a.pieces = d_pieces.data();
    a.raw_at = d_raw_at.data();
    a.marks = d_marks.data();
    a.counts = d_counts.data();
  }
  if (capacity > a.capacity) {
    d_stream = {};
    d_stream = DeviceBuffer<std::uint32_t>((capacity + 3) / 4 + 2);
    a.stream = d_stream.data();
    a.capacity = capacity;
  }
}

void Ccsds122Encoder::State::transform_picture(const Stream& stream) {
  DevicePicture p = picture;
  check(cudaMemsetAsync(d_summary.data(), 0, sizeof(Summary), stream.get()), "cudaMemsetAsync");
  if (check_range) {
    const ccsds122::SampleLimits limits(params.bits, params.is_signed);
    const dim3 grid((static_cast<unsigned>(p.width) + 127) / 128,
                    static_cast<unsigned>(std::min((p.height + 15) / 16, 4096)));
    const auto go = [&](auto kernel) {
      launch("check_kernel", kernel, grid, dim3(128), 0, stream.get(), p, static_cast<std::int32_t>(limits.low),
             static_cast<std::int32_t>(limits.high), d_summary.data());
    };
    switch (p.format) {
      case SampleType::kU8: go(check_kernel<std::uint8_t>); break;
      case SampleType::kS8: go(check_kernel<std::int8_t>); break;
      case SampleType::kU16: go(check_kernel<std::uint16_t>); break;
      case SampleType::kS16: go(check_kernel<std::int16_t>); break;
      default: go(check_kernel<std::int32_t>); break;
    }
  }
  if (params.transpose) {
    const MutableDevicePicture to{turned.data(), p.format, width, height, turned_stride};
    transpose_picture(p, to, stream);
    p = {turned.data(), p.format, width, height, turned_stride};
  }
  transform.forward(p, params.dwt, params.bits, stream);
}

void Ccsds122Encoder::State::code(const Stream& stream) {
  const CoderArgs& a = args;
  copy(d_in.data(), in.data(), in.size(), cudaMemcpyHostToDevice, stream);
  check(cudaMemsetAsync(d_out.data(), 0, d_out.size() * sizeof(SegmentOut), stream.get()), "cudaMemsetAsync");
  check(cudaMemsetAsync(d_stream.data(), 0, d_stream.size() * 4, stream.get()), "cudaMemsetAsync");
  if (a.count) check(cudaMemsetAsync(d_counts.data(), 0, d_counts.size() * 4, stream.get()), "cudaMemsetAsync");
  const auto blocks = [](std::uint64_t threads) {
    return dim3(static_cast<unsigned>((threads + kCoderThreads - 1) / kCoderThreads));
  };
  launch("gather_kernel", gather_kernel, blocks(a.blocks), dim3(kCoderThreads), 0, stream.get(), a);
  launch("measure_kernel", measure_kernel, blocks(std::uint64_t{kGaggle} * a.gaggles), dim3(kCoderThreads), 0,
         stream.get(), a);
  if (a.segment_gaggles <= 64 || a.gaggles <= 64)
    launch("layout_kernel", layout_kernel<32>, dim3(a.segments), dim3(32), 0, stream.get(), a);
  else
    launch("layout_kernel", layout_kernel<1024>, dim3(a.segments), dim3(1024), 0, stream.get(), a);
  if (!a.count || spread(stream)) {
    launch("offsets_kernel", offsets_kernel, dim3(1), dim3(kOffsetThreads), 0, stream.get(), a);
    launch("write_kernel", write_kernel, blocks(std::uint64_t{kGaggle} * a.gaggles), dim3(kCoderThreads), 0,
           stream.get(), a);
  }
  copy(summary.data(), d_summary.data(), 1, cudaMemcpyDeviceToHost, stream);
  copy(lengths.data(), d_lengths.data(), in.size(), cudaMemcpyDeviceToHost, stream);
}

/// Chooses the byte limits for total_bytes, as ccsds122_encode.cpp does on the CPU. False: the planes did not fit.
bool Ccsds122Encoder::State::spread(const Stream& stream) {
  const CoderArgs& a = args;
  const std::size_t planes = static_cast<std::size_t>(a.planes), lists = static_cast<std::size_t>(list_count(a.planes));
  std::vector<SegmentOut> out(in.size());
  std::vector<std::uint32_t> marks(d_marks.size()), counts(d_counts.size());
  copy(out.data(), d_out.data(), out.size(), cudaMemcpyDeviceToHost, stream);
  copy(marks.data(), d_marks.data(), marks.size(), cudaMemcpyDeviceToHost, stream);
  copy(counts.data(), d_counts.data(), counts.size(), cudaMemcpyDeviceToHost, stream);
  copy(summary.data(), d_summary.data(), 1, cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  if (summary.data()->depth > a.planes || summary.data()->faults) return false;

  const auto list_of = [&](int b) { return static_cast<std::size_t>(2 + 4 * (a.planes - 1 - b)); };
  const auto quantiser = [&](const SegmentOut& o) {
    return ccsds122::DcQuantiser(std::max(o.dc_depth, 1), o.ac_depth, shift[kLL3]);
  };
  const auto stage0 = [&](const SegmentOut& o, int b) { return b < quantiser(o).q && b >= shift[kLL3]; };
  // The lowest plane that is coded at all: two below the one where the budget is spent.
  const int last = params.dc_stop ? ccsds122::kMaxPlanes + 1 : params.bit_plane_stop;
  int lowest = summary.data()->depth, extra = 2;
  std::uint64_t spent = 0;
  for (int b = lowest - 1; b >= last; --b) {
    if (spent > 8 * params.total_bytes && --extra < 0) break;
    lowest = b;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (b >= out[i].ac_depth) continue;
      const std::uint32_t* m = marks.data() + i * lists;
      const std::uint32_t before = b + 1 == out[i].ac_depth ? m[1] : m[list_of(b + 1) + 3];
      spent += m[list_of(b) + 3] - before - (stage0(out[i], b) ? in[i].blocks : 0);
    }
  }
  std::vector<std::vector<ccsds122::CutPoint>> points(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    const SegmentOut& o = out[i];
    const std::uint32_t* m = marks.data() + i * lists;
    double gain = 0;
    points[i].push_back({m[0], gain});
    in[i].end_bits = m[0];
    if (params.dc_stop || params.bit_plane_stop >= o.ac_depth) continue;
    std::uint32_t at = m[1];
    for (int b = o.ac_depth - 1; b >= params.bit_plane_stop; --b) {
      const bool coded = b >= lowest;
      if (stage0(o, b)) {
        at += in[i].blocks;
        gain += ccsds122::stage_gain(0, b, in[i].blocks);
      }
      const int stages = b == params.bit_plane_stop ? params.stage_stop + 1 : 4;
      for (int stage = 0; stage < stages; ++stage) {
        if (coded) {
          at = m[list_of(b) + static_cast<std::size_t>(stage)];
          const std::size_t n = (i * planes + static_cast<std::size_t>(b)) * 4 + static_cast<std::size_t>(stage);
          gain += ccsds122::stage_gain(stage + 1, b, counts[n]);
        }
        points[i].push_back({at, gain});
      }
      if (!coded) break;
    }
    in[i].end_bits = at;
  }
  const std::vector<std::uint32_t> limits = ccsds122::allocate_bytes(points, params.total_bytes, params.word_bytes);
  for (std::size_t i = 0; i < in.size(); ++i) {
    ccsds122::SegmentHeader header = plan[i].header;
    header.dc_depth = 32;
    header.ac_depth = 0;
    header.byte_limit = in[i].byte_limit = limits[i];
    const std::vector<std::byte> bytes = ccsds122::write_header(header);
    std::memcpy(in[i].header, bytes.data(), bytes.size());
  }
  copy(d_in.data(), in.data(), in.size(), cudaMemcpyHostToDevice, stream);
  stream.synchronize();  // `in` is pageable and may change before the next picture
  return true;
}

Ccsds122Encoder::Ccsds122Encoder(int width, int height, SampleType format, const ccsds122::Params& params) {
  require(format != SampleType::kF32, ErrorKind::kBadArgument, "the encoder takes integer samples");
  ccsds122::check_parameters(view_of(width, height, format), params);
  state_ = std::make_unique<State>(width, height, format, params);
}
Ccsds122Encoder::~Ccsds122Encoder() = default;
Ccsds122Encoder::Ccsds122Encoder(Ccsds122Encoder&&) noexcept = default;
Ccsds122Encoder& Ccsds122Encoder::operator=(Ccsds122Encoder&&) noexcept = default;

void Ccsds122Encoder::start(const DevicePicture& picture, const Stream& stream) {
  start_transform(picture, stream);
  state_->code(stream);
}

void Ccsds122Encoder::start_transform(const DevicePicture& picture, const Stream& stream) {
  State& s = *state_;
  const bool turned = s.params.transpose;
  require(picture.format == s.format && picture.width == (turned ? s.height : s.width) &&
              picture.height == (turned ? s.width : s.height),
          ErrorKind::kBadArgument, "a picture of another size or type");
  s.picture = picture;
  s.transform_picture(stream);
}
void Ccsds122Encoder::start_coding(const Stream& stream) { state_->code(stream); }

void Ccsds122Encoder::finish(const Stream& stream) {
  State& s = *state_;
  for (;;) {
    stream.synchronize();
    const Summary& sum = *s.summary.data();
    require(!(sum.faults & kBadSample), ErrorKind::kBadArgument,
            "there are samples outside the range of " + std::to_string(s.params.bits) + " bits");
    require(sum.depth <= ccsds122::kMaxPlanes, ErrorKind::kBadArgument,
            "coefficients beyond 31 bits: lower the weights or the bit depth");
    const bool planes = sum.depth > s.args.planes;
    require(planes || !(sum.faults & kTooLong), ErrorKind::kBadArgument,
            "a segment takes more than 2^27 bytes; use smaller segments");
    if (!planes && !(sum.faults & kNoRoom)) break;
    s.make_room(std::max(s.args.planes, sum.depth), planes ? 0 : sum.total);
    start(s.picture, stream);
  }
  s.total = s.summary.data()->total;
  s.segment_bytes.assign(s.lengths.data(), s.lengths.data() + s.in.size());
}

const std::byte* Ccsds122Encoder::bytes() const { return reinterpret_cast<const std::byte*>(state_->d_stream.data()); }
std::size_t Ccsds122Encoder::size() const { return state_->total; }
const std::vector<std::uint32_t>& Ccsds122Encoder::segment_bytes() const { return state_->segment_bytes; }

}  // namespace trivelet::gpu
