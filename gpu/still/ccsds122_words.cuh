// Words of the bit planes of CCSDS 122.0 on the device: tables in shared memory, the order in which a block's words
// come (as in codec/still/ccsds122/ccsds122_bitplane.h, where it is explained), and a writer of bits at any place.
#pragma once

#include <array>
#include <cstdint>

#include "codec/still/ccsds122/ccsds122_codes.h"
#include "gpu/device/device.h"

namespace trivelet::gpu {

// ------------------------------------------------------------------------------------------------------------- tables

/// Costs of a token under every option, in bytes: o2:0, uncoded 2, o3:0, o3:1, uncoded 3, o4:0, o4:1, o4:2. A block has
/// at most 20 words per class in a plane, so that sums over a block do not overflow.
struct TokenCosts {
  std::uint64_t entry[32];
};
constexpr TokenCosts make_token_costs() {
  TokenCosts t{};
  for (int i = 0; i < 4; ++i) t.entry[i] = static_cast<std::uint64_t>(ccsds122::detail::kCode2[0][i].length) | 2 << 8;
  for (int i = 0; i < 8; ++i)
    t.entry[4 + i] = static_cast<std::uint64_t>(ccsds122::detail::kCode3[0][i].length) << 16 |
                     static_cast<std::uint64_t>(ccsds122::detail::kCode3[1][i].length) << 24 | std::uint64_t{3} << 32;
  for (int i = 0; i < 16; ++i)
    for (int o = 0; o < 3; ++o)
      t.entry[12 + i] |= static_cast<std::uint64_t>(ccsds122::detail::kCode4[o][i].length) << (40 + 8 * o);
  return t;
}

/// The nibble `value` (popcount(mask) low bits) spread to the places of mask: [mask * 16 + value].
struct ExpandTable {
  std::uint8_t entry[256];
};
constexpr ExpandTable make_expand_table() {
  ExpandTable t{};
  for (unsigned m = 0; m < 16; ++m)
    for (unsigned v = 0; v < 16; ++v) {
      unsigned out = 0, rest = v;
      for (unsigned i = 0; i < 4; ++i)
        if (m >> i & 1) {
          out |= (rest & 1) << i;
          rest >>= 1;
        }
      t.entry[m << 4 | v] = static_cast<std::uint8_t>(out);
    }
  return t;
}

static __device__ const TokenCosts kDeviceCosts = make_token_costs();
static __device__ const ccsds122::TokenTable kDeviceTokens = ccsds122::make_token_table();
static __device__ const ccsds122::ExtractTable kDeviceExtract = ccsds122::make_extract_table();
static __device__ const ccsds122::CodeTable kDeviceCodes = ccsds122::make_code_table();
static __device__ const ccsds122::DecodeTable kDeviceDecode = ccsds122::make_decode_table();
static __device__ const ExpandTable kDeviceExpand = make_expand_table();

/// Copies a table to shared memory, all threads of the block together; a barrier must follow.
template <class Table>
__device__ __forceinline__ void stage_table(Table& to, const Table& from) {
  static_assert(sizeof(Table) % 4 == 0 && alignof(Table) <= 8);
  std::uint32_t* t = reinterpret_cast<std::uint32_t*>(&to);
  const std::uint32_t* f = reinterpret_cast<const std::uint32_t*>(&from);
  for (unsigned i = threadIdx.x; i < sizeof(Table) / 4; i += blockDim.x) t[i] = f[i];
}

// ------------------------------------------------------------------------------------------------------------- blocks

/// Bit n of the result: nibble n is not zero.
__device__ __forceinline__ unsigned nibble_flags(std::uint64_t x) {
  x |= x >> 1;
  x |= x >> 2;
  x &= 0x1111111111111111ULL;
  x = (x | x >> 3) & 0x0303030303030303ULL;
  x = (x | x >> 6) & 0x000F000F000F000FULL;
  x = (x | x >> 12) & 0x000000FF000000FFULL;
  return static_cast<unsigned>((x | x >> 24) & 0xFFFF);
}
/// The three grandchildren flags (bit 2 - i for family i) from the nibble flags.
__host__ __device__ inline unsigned grandchildren_flags(unsigned h) {
  h |= h >> 1;
  h |= h >> 2;
  return (h >> 6 & 4) | (h >> 3 & 2) | (h & 1);
}

inline constexpr std::uint64_t kDescendantBits = 0x0FFFFFFFFFFFFFFFULL;
inline constexpr unsigned kDescendantFlags = 0x7FFF;

/// What depends on the plane only: coefficients whose band's shift is not above it.
struct PlaneMask {
  std::uint64_t all = 0;
  std::uint32_t nibble = 0;
  std::uint16_t grand = 0, family = 0;
};
struct PlaneMasks {
  PlaneMask plane[32];
};
PlaneMasks make_plane_masks(const std::array<int, ccsds122::kBands>& shift);

/// The highest bit of a non-zero set, taken out of it.
__device__ __forceinline__ int take_highest(unsigned& set) {
  const int k = 31 - __clz(static_cast<int>(set));
  set ^= 1U << k;
  return k;
}

/// Gives all words of stages 1 to 3 of a block to `sink`: types<Stage>(kind, mask, value, sign), flags<Stage>(kind,
/// mask, value), flag<Stage>(bit). s: significant before this plane, p: the plane, g: signs.
template <class Sink>
__device__ __forceinline__ void visit_words(std::uint64_t s, std::uint64_t p, std::uint64_t g, const PlaneMask& e,
                                            Sink& sink) {
  const std::uint64_t a = ~s & e.all, n = p & a;
  const auto nibble = [](std::uint64_t x, int at) { return static_cast<unsigned>(x >> at) & 15; };
  if (const unsigned parents = nibble(a, 60))
    sink.template types<1>(ccsds122::kOtherWord, parents, nibble(p, 60), nibble(g, 60));

  const unsigned hs = nibble_flags(s), hn = nibble_flags(n);
  if (!(hs & kDescendantFlags)) {
    if (!(e.all & kDescendantBits)) return;
    const unsigned flag = (hn & kDescendantFlags) != 0;
    sink.template flag<2>(flag);
    if (!flag) return;
  }
  const unsigned ha = nibble_flags(a);
  const unsigned gs = grandchildren_flags(hs), gn = grandchildren_flags(hn);
  const unsigned ds = (hs >> 12 & 7) | gs, dn = (hn >> 12 & 7) | gn;
  if (const unsigned ask = ~ds & e.family) sink.template flags<2>(ccsds122::kFamilyWord, ask, dn);
  const unsigned families = ds | dn;
  for (unsigned set = families & ha >> 12; set;) {
    const int at = 48 + 4 * take_highest(set);
    sink.template types<2>(ccsds122::kChildWord, nibble(a, at), nibble(p, at), nibble(g, at));
  }

  if (const unsigned ask = families & ~gs & e.grand) sink.template flags<3>(ccsds122::kOtherWord, ask, gn);
  const unsigned both = hs | hn;
  for (unsigned set = gs | gn; set;) {
    const int at = 4 * take_highest(set);
    const unsigned ask = ~(hs >> at) & e.nibble >> at & 15;
    if (ask) sink.template flags<3>(ccsds122::kQuarterWord, ask, hn >> at & 15);
  }
  for (unsigned set = both & ha & 0xFFF; set;) {
    const int at = 4 * take_highest(set);
    sink.template types<3>(ccsds122::kQuarterWord, nibble(a, at), nibble(p, at), nibble(g, at));
  }
}

/// The bits of value at the places of mask, packed to the right.
__device__ __forceinline__ std::uint64_t compress_bits(std::uint64_t value, std::uint64_t mask,
                                                       const ccsds122::ExtractTable& extract) {
  std::uint64_t out = 0;
  for (unsigned set = nibble_flags(mask); set;) {
    const int at = 4 * take_highest(set);
    const unsigned m = static_cast<unsigned>(mask >> at) & 15;
    out = out << __popc(m) | extract.entry[m << 4 | (static_cast<unsigned>(value >> at) & 15)];
  }
  return out;
}
/// The inverse: the low bits of value at the places of mask.
__device__ __forceinline__ std::uint64_t expand_bits(std::uint64_t value, std::uint64_t mask,
                                                     const ExpandTable& expand) {
  std::uint64_t out = 0;
  for (unsigned set = nibble_flags(mask); set;) {
    const int at = 4 * (__ffs(static_cast<int>(set)) - 1);
    set &= set - 1;
    const unsigned m = static_cast<unsigned>(mask >> at) & 15;
    out |=
        static_cast<std::uint64_t>(expand.entry[m << 4 | (static_cast<unsigned>(value) & 15 & ((1U << __popc(m)) - 1))])
        << at;
    value >>= __popc(m);
  }
  return out;
}

// ------------------------------------------------------------------------------------------------------------ writing

__device__ __forceinline__ std::uint32_t swap_bytes(std::uint32_t v) {
#if defined(__CUDA_ARCH__)
  return __byte_perm(v, 0, 0x0123);
#else
  return __builtin_bswap32(v);
#endif
}

/// Writes bits from any place on into zeroed memory; neighbours may write into the same words at the same time.
/// Nothing is written at or after bit `end`.
struct BitsOut {
  std::uint32_t* words;
  std::uint64_t end;
  std::uint64_t word;         ///< number of the word being filled
  std::uint64_t waiting = 0;  ///< its bits, and what is above them is rubbish
  unsigned used;

  __device__ __forceinline__ BitsOut(std::uint32_t* w, std::uint64_t position, std::uint64_t limit)
      : words(w), end(limit), word(position / 32), used(static_cast<unsigned>(position % 32)) {}

  /// `value` has no bits above count; count is 0..32.
  __device__ __forceinline__ void put(std::uint32_t value, unsigned count) {
    waiting = waiting << count | value;
    used += count;
    if (used >= 32) {
      used -= 32;
      store(static_cast<std::uint32_t>(waiting >> used));
      waiting &= (std::uint64_t{1} << used) - 1;
    }
  }
  __device__ __forceinline__ void flush() {
    if (used) store(static_cast<std::uint32_t>(waiting << (32 - used)));
  }

 private:
  __device__ __forceinline__ void store(std::uint32_t v) {
    const std::uint64_t at = word++ * 32;
    if (at >= end) return;
    if (end - at < 32) v &= ~std::uint32_t{0} << (32 - (end - at));
    if (v) atomicOr(words + at / 32, swap_bytes(v));
  }
};

}  // namespace trivelet::gpu
