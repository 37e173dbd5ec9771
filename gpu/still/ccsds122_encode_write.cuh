// Last pass of the CCSDS 122.0 encoder: the codes, straight to their places. Part of ccsds122_encode.cu.
#pragma once

#include "gpu/still/ccsds122_encode_measure.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_encode;

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

}  // namespace trivelet::gpu
