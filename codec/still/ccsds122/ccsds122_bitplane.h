// Stages 1 to 4 of one bit plane (CCSDS 122.0-B-2 §4.5), in both directions; a part of ccsds122_kernels.cpp.
//
// With the block layout of ccsds122_kernels.h, every tmax of the standard tells whether a nibble is zero. `nibbles`
// reduces a 64-bit plane to one bit per nibble; applied again it gives one bit per family. For a block and a plane let
//   S = already significant, A = eligible and not yet significant, N = plane & A = becomes significant here.
// The words are the nibbles of N compressed to the places of A. Stage 4 is the plane compressed to the places of S.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "codec/still/ccsds122/ccsds122_codes.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"

namespace trivelet::ccsds122::TRIVELET_ISA {
namespace {

#if defined(__BMI2__)
inline std::uint64_t compress_bits(std::uint64_t value, std::uint64_t mask) { return _pext_u64(value, mask); }
inline std::uint64_t expand_bits(std::uint64_t value, std::uint64_t mask) { return _pdep_u64(value, mask); }
#else
inline std::uint64_t compress_bits(std::uint64_t value, std::uint64_t mask) {
  std::uint64_t out = 0;
  for (int at = 60; at >= 0; at -= 4) {
    const unsigned m = static_cast<unsigned>(mask >> at) & 15;
    out = out << __builtin_popcount(m) | kExtract4.entry[m << 4 | (static_cast<unsigned>(value >> at) & 15)];
  }
  return out;
}
inline std::uint64_t expand_bits(std::uint64_t value, std::uint64_t mask) {
  std::uint64_t out = 0;
  for (std::uint64_t rest = mask; rest; rest &= rest - 1, value >>= 1)
    if (value & 1) out |= rest & (~rest + 1);
  return out;
}
#endif

/// Bit n of the result tells whether nibble n is non-zero.
inline unsigned nibbles(std::uint64_t x) {
  x |= x >> 1;
  x |= x >> 2;
#if defined(__BMI2__)
  return static_cast<unsigned>(_pext_u64(x, 0x1111111111111111ULL));
#else
  x &= 0x1111111111111111ULL;
  x = (x | x >> 3) & 0x0303030303030303ULL;
  x = (x | x >> 6) & 0x000F000F000F000FULL;
  x = (x | x >> 12) & 0x000000FF000000FFULL;
  return static_cast<unsigned>((x | x >> 24) & 0xFFFF);
#endif
}
/// The three grandchildren flags (bit 2 - i for family i) from the nibble flags.
inline unsigned grandchildren(unsigned h) {
  h |= h >> 1;
  h |= h >> 2;
  return (h >> 6 & 4) | (h >> 3 & 2) | (h & 1);
}

constexpr std::uint64_t kDescendants = 0x0FFFFFFFFFFFFFFFULL;
constexpr unsigned kDescendantNibbles = 0x7FFF;

/// Flags that depend on the plane only, not on the block.
struct Eligible {
  std::uint64_t all;
  unsigned nibble, grand, family;
  explicit Eligible(std::uint64_t e) : all(e), nibble(nibbles(e)), grand(grandchildren(nibble)) {
    family = (nibble >> 12 & 7) | grand;
  }
};

// ---------------------------------------------------------------------------------------------------------- encode

/// A gaggle's tokens of one stage in one plane: token | signs << 6 | sign bits << 12.
struct TokenList {
  std::uint16_t* next;
  unsigned seen;  ///< bit c: a word of length class c (see TokenTable) has occurred; class 0 has no option
  int stage;

  CCSDS_INLINE void push_word(unsigned entry, unsigned sign_bits, std::int16_t* cost) {
    const unsigned cls = entry >> 9;
    if (!(seen >> cls & 1)) {
      seen |= 1U << cls;
      *next++ = static_cast<std::uint16_t>(kOptionToken + 4 * (stage - 1) + static_cast<int>(cls) - 1);
    }
    *next++ = static_cast<std::uint16_t>((entry & 0x1FF) | sign_bits << 12);
    const std::int16_t* add = kCosts.entry[entry & 31];
#if defined(__SSE2__)
    _mm_store_si128(reinterpret_cast<__m128i*>(cost),
                    _mm_add_epi16(_mm_load_si128(reinterpret_cast<const __m128i*>(cost)),
                                  _mm_load_si128(reinterpret_cast<const __m128i*>(add))));
#else
    for (int i = 0; i < 8; ++i) cost[i] = static_cast<std::int16_t>(cost[i] + add[i]);
#endif
  }
  /// A word of flags, without signs.
  CCSDS_INLINE void push_flags(WordKind kind, unsigned mask, unsigned value, std::int16_t* cost) {
    push_word(kTokens.entry[kind][mask << 4 | value] & 0xFE3FU, 0, cost);
  }
  /// A word of coefficient types, followed by the signs of its ones.
  CCSDS_INLINE void push_types(WordKind kind, unsigned mask, unsigned value, unsigned sign, std::int16_t* cost) {
    push_word(kTokens.entry[kind][mask << 4 | value], kExtract4.entry[(mask & value) << 4 | sign], cost);
  }
  CCSDS_INLINE void push_raw(unsigned bit) { *next++ = static_cast<std::uint16_t>(kRawToken + bit); }
};

/// The cheapest options of a gaggle. On a tie uncoded wins, then the lowest number.
struct GaggleChoice {
  int option[5];
  explicit GaggleChoice(const std::int16_t* cost) {
    const auto pick = [&](int first, int count) {
      int best = count, least = 0;  // cost relative to uncoded
      for (int o = 0; o < count; ++o)
        if (cost[first + o] < least) {
          least = cost[first + o];
          best = o;
        }
      return best;
    };
    option[0] = option[1] = 0;
    option[2] = pick(0, 1);
    option[3] = pick(1, 2);
    option[4] = pick(3, 3);
  }
};

inline void write_tokens(const std::uint16_t* token, const std::uint16_t* end, const std::uint16_t* codes,
                         WordWriter& out) {
  WordWriter w = out;
  for (; token < end; ++token) {
    const unsigned t = *token;
    const unsigned code = codes[t & 63];
    const unsigned signs = t >> 6 & 7;
    w.put(static_cast<std::uint64_t>(code & 255) << signs | t >> 12, (code >> 8) + signs);
  }
  out = w;
}

void encode_plane(const std::uint64_t* plane, const std::uint64_t* sign, const std::uint8_t* depth,
                  std::uint64_t* significant, int blocks, int bit, std::uint64_t eligible, PlaneBits& out) {
  const Eligible e(eligible);
  WordWriter writer[4] = {WordWriter(out.words[0]), WordWriter(out.words[1]), WordWriter(out.words[2]),
                          WordWriter(out.words[3])};
  std::uint32_t counts[4] = {0, 0, 0, 0};
  std::uint16_t tokens1[16 + 4], tokens2[16 * 5 + 4], tokens3[16 * 16 + 4];

  for (int first = 0; first < blocks; first += 16) {
    const int last = first + 16 < blocks ? first + 16 : blocks;
    alignas(16) std::int16_t cost[8] = {0, 0, 0, 0, 0, 0, 0, 0};
    TokenList t1{tokens1, 1, 1}, t2{tokens2, 1, 2}, t3{tokens3, 1, 3};

    for (int m = first; m < last; ++m) {
      if (depth[m] <= bit) continue;
      const std::uint64_t s = significant[m], p = plane[m], g = sign[m];
      const std::uint64_t a = ~s & e.all, n = p & a;
      significant[m] = s | p;
      counts[0] += static_cast<std::uint32_t>(__builtin_popcountll(n >> 60));

      // Stage 4 first, because it has a writer of its own.
      const std::uint64_t refine = s & e.all;
      const unsigned refined = static_cast<unsigned>(__builtin_popcountll(refine));
      writer[3].put(compress_bits(p, refine), refined);
      counts[3] += refined;

      // Stage 1.
      const unsigned parents = static_cast<unsigned>(a >> 60);
      if (parents)
        t1.push_types(kOtherWord, parents, static_cast<unsigned>(p >> 60), static_cast<unsigned>(g >> 60), cost);

      // Stage 2.
      const unsigned hs = nibbles(s), hn = nibbles(n);
      if (!(hs & kDescendantNibbles)) {
        if (!(e.all & kDescendants)) continue;
        const unsigned flag = (hn & kDescendantNibbles) != 0;
        t2.push_raw(flag);
        if (!flag) continue;
      }
      const unsigned ha = nibbles(a);
      const unsigned gs = grandchildren(hs), gn = grandchildren(hn);
      const unsigned ds = (hs >> 12 & 7) | gs, dn = (hn >> 12 & 7) | gn;
      const unsigned ask_family = ~ds & e.family;
      if (ask_family) t2.push_flags(kFamilyWord, ask_family, dn, cost);
      const unsigned families = ds | dn;
      for (unsigned set = families & ha >> 12; set;) {
        const int k = 31 - __builtin_clz(set);
        set ^= 1U << k;
        const int at = 48 + 4 * k;
        t2.push_types(kChildWord, static_cast<unsigned>(a >> at) & 15, static_cast<unsigned>(p >> at) & 15,
                      static_cast<unsigned>(g >> at) & 15, cost);
      }

      // Stage 3.
      const unsigned ask_grand = families & ~gs & e.grand;
      if (ask_grand) t3.push_flags(kOtherWord, ask_grand, gn, cost);
      const unsigned both = hs | hn;
      for (unsigned set = gs | gn; set;) {
        const int k = 31 - __builtin_clz(set);
        set ^= 1U << k;
        const int at = 4 * k;
        const unsigned ask = ~(hs >> at) & e.nibble >> at & 15;
        if (ask) t3.push_flags(kQuarterWord, ask, hn >> at & 15, cost);
      }
      for (unsigned set = both & ha & 0xFFF; set;) {
        const int k = 31 - __builtin_clz(set);
        set ^= 1U << k;
        const int at = 4 * k;
        t3.push_types(kQuarterWord, static_cast<unsigned>(a >> at) & 15, static_cast<unsigned>(p >> at) & 15,
                      static_cast<unsigned>(g >> at) & 15, cost);
      }
      counts[1] += static_cast<std::uint32_t>(__builtin_popcountll(n >> 48 & 0xFFF));
      counts[2] += static_cast<std::uint32_t>(__builtin_popcountll(n & 0xFFFFFFFFFFFFULL));
    }

    // Codewords of this gaggle. An option id sent in an earlier stage has no bits here.
    const GaggleChoice choice(cost);
    std::uint16_t codes[48];
    __builtin_memcpy(codes, kCodes.entry[(choice.option[2] * 3 + choice.option[3]) * 4 + choice.option[4]], 64);
    unsigned sent = 0;
    const unsigned seen[3] = {t1.seen, t2.seen, t3.seen};
    for (int stage = 0; stage < 3; ++stage) {
      for (int length = 2; length <= 4; ++length) {
        const int bits = option_id_bits(length);
        codes[kOptionToken + 4 * stage + length - 2] = static_cast<std::uint16_t>(
            sent >> (length - 1) & 1 ? 0 : option_id(length, choice.option[length]) | bits << 8);
      }
      sent |= seen[stage];
    }
    write_tokens(tokens1, t1.next, codes, writer[0]);
    write_tokens(tokens2, t2.next, codes, writer[1]);
    write_tokens(tokens3, t3.next, codes, writer[2]);
  }
  for (int i = 0; i < 4; ++i) {
    writer[i].flush();
    out.bits[i] = writer[i].bits(out.words[i]);
    out.coefficients[i] = counts[i];
  }
}

// ---------------------------------------------------------------------------------------------------------- decode

/// Reads the words of one block. With `Checked` it stops exactly at the end of the data. Otherwise it may read past the
/// end; the block is then discarded and read again with checks.
template <bool Checked>
struct WordReader {
  BitCursor& bits;
  GaggleOptions& gaggle;
  std::uint64_t window;
  unsigned taken = 0;    ///< bits already shifted out of `window`
  bool stopped = false;  ///< Checked: out of bits
  bool damaged = false;

  CCSDS_INLINE WordReader(BitCursor& b, GaggleOptions& g) : bits(b), gaggle(g), window(b.window()) {}
  CCSDS_INLINE void refill() {
    bits.position += taken;
    taken = 0;
    window = bits.window();
  }
  CCSDS_INLINE void take(unsigned count) {
    window <<= count;
    taken += count;
  }
  CCSDS_INLINE bool room(unsigned count) {
    if (!Checked) return true;
    if (bits.position + taken + count > bits.end) stopped = true;
    return !stopped;
  }

  /// Reads the option id; false if the block must stop.
  __attribute__((noinline)) bool read_option(unsigned length) {
    refill();
    const unsigned count = static_cast<unsigned>(option_id_bits(static_cast<int>(length)));
    if (!room(count)) return false;
    const unsigned id = static_cast<unsigned>(window >> (64 - count));
    const unsigned uncoded = static_cast<unsigned>(kOptions[length]) - 1;
    unsigned option = id;
    if (id == (1U << count) - 1) {
      option = uncoded;
    } else if (id >= uncoded) {  // "10" for 3-bit words
      damaged = true;
      return false;
    }
    gaggle.option[length] = static_cast<std::uint8_t>(option);
    take(count);
    refill();
    return true;
  }

  /// Looks up, without consuming it, the next codeword of a word with `length` bits; 0 after a stop.
  CCSDS_INLINE unsigned look(WordKind kind, unsigned length) {
    if (__builtin_expect(gaggle.option[length] == kUnread, 0)) {
      if (!read_option(length)) return 0;
    }
    const unsigned e = kDecode.entry[kDecodeBase[kind][length] + gaggle.option[length]][window >> 56];
    if (__builtin_expect(e & kSlow, 0)) {
      if (room(8)) damaged = true;
      return 0;
    }
    return e;
  }
  CCSDS_INLINE unsigned flags(WordKind kind, unsigned mask) {
    const unsigned e = look(kind, static_cast<unsigned>(__builtin_popcount(mask)));
    const unsigned length = e >> 4 & 15;
    if (!room(length)) return 0;
    take(length);
    return static_cast<unsigned>(expand_bits(e & 15, mask));
  }
  /// Reads types and signs of the coefficients at `mask` (of the whole block) and adds the significant ones to plane
  /// and sign.
  CCSDS_INLINE void types(WordKind kind, std::uint64_t mask, std::uint64_t& plane, std::uint64_t& sign) {
    const unsigned e = look(kind, static_cast<unsigned>(__builtin_popcountll(mask)));
    const unsigned length = e >> 4 & 15, total = e >> 8 & 15;
    std::uint64_t fresh;
    if (Checked) {
      if (!room(length)) return;
      unsigned signs = total - length;
      fresh = expand_bits(e & 15, mask);
      take(length);
      const std::uint64_t left = bits.left() - taken;
      const unsigned have = left < signs ? static_cast<unsigned>(left) : signs;
      std::uint64_t keep = 0, rest = fresh;  // the first `have` of the new coefficients, from the top
      for (unsigned i = 0; i < have; ++i) {
        const std::uint64_t top = std::uint64_t{1} << (63 - __builtin_clzll(rest));
        rest ^= top;
        keep |= top;
        if (window >> (63 - i) & 1) sign |= top;
      }
      take(have);
      plane |= keep;
      if (have < signs) stopped = true;
      return;
    }
    fresh = expand_bits(e & 15, mask);
    sign |= expand_bits(window << length >> 1 >> (63 - (total - length)), fresh);
    plane |= fresh;
    take(total);
  }
};

/// Stage 1, 2 or 3 of one block.
template <int Stage, bool Checked>
CCSDS_INLINE void decode_block(WordReader<Checked>& r, const Eligible& e, std::uint64_t s, std::uint64_t& plane,
                               std::uint64_t& sign, std::uint8_t& families) {
  const std::uint64_t a = ~s & e.all;
  if (Stage == 1) {
    const std::uint64_t mask = a & ~kDescendants;
    if (mask) r.types(kOtherWord, mask, plane, sign);
    return;
  }
  const unsigned hs = nibbles(s);
  const unsigned gs = grandchildren(hs);
  if (Stage == 2) {
    families = 0;
    if (!(hs & kDescendantNibbles)) {
      if (!(e.all & kDescendants)) return;
      if (!r.room(1)) return;
      const bool flag = r.window >> 63;
      r.take(1);
      if (!flag) return;
    }
    const unsigned ds = (hs >> 12 & 7) | gs;
    const unsigned ask = ~ds & e.family;
    unsigned now = ds;
    if (ask) {
      now |= r.flags(kFamilyWord, ask);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    families = static_cast<std::uint8_t>(now);
    for (unsigned set = now; set;) {
      const int k = 31 - __builtin_clz(set);
      set ^= 1U << k;
      const std::uint64_t mask = a & 15ULL << (48 + 4 * k);
      if (mask) r.types(kChildWord, mask, plane, sign);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    return;
  }
  // Stage 3.
  if (!families) return;
  unsigned grand = gs;
  const unsigned ask_grand = families & ~gs & e.grand;
  if (ask_grand) {
    grand |= r.flags(kOtherWord, ask_grand);
    if (Checked && (r.stopped || r.damaged)) return;
  }
  if (!grand) return;
  unsigned quarters = hs & 0xFFF;
  for (unsigned set = grand; set;) {
    const int k = 31 - __builtin_clz(set);
    set ^= 1U << k;
    const unsigned ask = ~(hs >> 4 * k) & e.nibble >> 4 * k & 15;
    if (ask) quarters |= r.flags(kQuarterWord, ask) << 4 * k;
    if (Checked && (r.stopped || r.damaged)) return;
  }
  for (unsigned set = quarters & nibbles(a); set;) {
    r.refill();
    for (int i = 0; i < 4 && set; ++i) {  // 4 * 12 bits at most
      const int k = 31 - __builtin_clz(set);
      set ^= 1U << k;
      r.types(kQuarterWord, a & 15ULL << 4 * k, plane, sign);
      if (Checked && (r.stopped || r.damaged)) return;
    }
  }
}

template <int Stage>
PlaneEnd decode_stage(BitCursor& bits, PlaneDecoder& d, const Eligible& e) {
  for (std::uint32_t m = 0; m < d.blocks; ++m) {
    if (d.depth[m] <= d.bit) continue;
    GaggleOptions& gaggle = d.options[m / 16];
    const std::uint64_t s = d.significant[m];
    std::uint64_t plane = Stage == 1 ? 0 : d.plane[m], sign = d.sign[m];
    const GaggleOptions gaggle_before = gaggle;
    const std::uint64_t position = bits.position;
    WordReader<false> fast(bits, gaggle);
    decode_block<Stage, false>(fast, e, s, plane, sign, d.families[m]);
    fast.refill();
    bool damaged = fast.damaged;
    if (__builtin_expect(bits.overrun() || damaged, 0)) {
      // Reads the block again with checks: either the data end in it, or its bits are invalid.
      gaggle = gaggle_before;
      bits.position = position;
      plane = Stage == 1 ? 0 : d.plane[m];
      sign = d.sign[m];
      WordReader<true> careful(bits, gaggle);
      decode_block<Stage, true>(careful, e, s, plane, sign, d.families[m]);
      bits.position += careful.taken;
      d.plane[m] = plane;
      d.sign[m] = sign;
      if (Stage == 1)
        for (std::uint32_t rest = m + 1; rest < d.blocks; ++rest) d.plane[rest] = 0;
      return careful.damaged ? PlaneEnd::kDamaged : PlaneEnd::kOutOfBits;
    }
    // Consistency: a block begins in the plane of its depth, and an announced family contains a significant
    // coefficient.
    if (Stage == 3) {
      const unsigned h = nibbles(plane | s);
      const unsigned got = (h >> 12 & 7) | grandchildren(h);
      if (__builtin_expect((d.depth[m] == d.bit + 1 && plane == 0) || (d.families[m] & ~got), 0)) damaged = true;
    }
    d.plane[m] = plane;
    d.sign[m] = sign;
    if (damaged) return PlaneEnd::kDamaged;
  }
  return PlaneEnd::kDone;
}

PlaneEnd decode_refinement(BitCursor& bits, PlaneDecoder& d, const Eligible& e) {
  for (std::uint32_t m = 0; m < d.blocks; ++m) {
    if (d.depth[m] <= d.bit) continue;
    const std::uint64_t mask = d.significant[m] & e.all;
    if (!mask) continue;
    const unsigned count = static_cast<unsigned>(__builtin_popcountll(mask));
    const std::uint64_t left = bits.left();
    const std::uint64_t window = bits.window64() >> (64 - count);
    if (__builtin_expect(left < count, 0)) {
      // The first `left` places of the mask, from the top.
      std::uint64_t keep = 0, rest = mask;
      for (std::uint64_t i = 0; i < left; ++i) {
        const std::uint64_t top = std::uint64_t{1} << (63 - __builtin_clzll(rest));
        rest ^= top;
        keep |= top;
      }
      d.plane[m] |= expand_bits(window, mask) & keep;
      d.refined_blocks = m;
      d.partly_refined = keep;
      bits.position = bits.end;
      return PlaneEnd::kOutOfBits;
    }
    d.plane[m] |= expand_bits(window, mask);
    bits.position += count;
  }
  d.refined_blocks = d.blocks;
  return PlaneEnd::kDone;
}

PlaneEnd decode_plane(BitCursor& bits, PlaneDecoder& d) {
  const Eligible e(d.eligible);
  d.stage_reached = 0;
  d.refined_blocks = 0;
  d.partly_refined = 0;
  PlaneEnd end = decode_stage<1>(bits, d, e);
  if (end == PlaneEnd::kDone) {
    d.stage_reached = 1;
    if (d.stages == 1) return end;
    end = decode_stage<2>(bits, d, e);
  }
  if (d.stage_reached == 1 && end == PlaneEnd::kDone) {
    d.stage_reached = 2;
    if (d.stages == 2) return end;
    end = decode_stage<3>(bits, d, e);
  }
  if (d.stage_reached == 2 && end == PlaneEnd::kDone) {
    d.stage_reached = 3;
    if (d.stages == 3) return end;
    end = decode_refinement(bits, d, e);
    if (end == PlaneEnd::kDone) d.stage_reached = 4;
  }
  return end;
}

}  // namespace
}  // namespace trivelet::ccsds122::TRIVELET_ISA
