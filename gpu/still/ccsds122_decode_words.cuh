// The words of a block's bit planes, read on the device: stages 1 to 3. Part of ccsds122_decode.cu.
#pragma once

#include "gpu/still/ccsds122_decode_bits.cuh"

namespace trivelet::gpu {

namespace {

using namespace ccsds122_decode;

struct ParseTables {
  ccsds122::DecodeTable decode;
  ExpandTable expand;
};

__device__ __forceinline__ unsigned decode_base(int kind, unsigned length) {
  if (length < 2) return length;
  if (length == 2) return 2;
  if (length == 3) return kind == ccsds122::kFamilyWord ? 7 : 4;
  return kind == ccsds122::kQuarterWord ? 10 : kind == ccsds122::kChildWord ? 14 : 0;
}

constexpr std::uint32_t kUnreadOptions = 0xFFFFFFU;  ///< a byte per length 2, 3, 4

/// The words of one block; see WordReader in codec/still/ccsds122/ccsds122_bitplane.h.
template <bool Checked>
struct WordsIn {
  BitsIn& bits;
  const ParseTables& tables;
  std::uint32_t& options;
  std::uint64_t window;
  unsigned taken = 0;
  bool stopped = false, damaged = false;

  __device__ __forceinline__ WordsIn(BitsIn& b, const ParseTables& t, std::uint32_t& o)
      : bits(b), tables(t), options(o), window(b.window()) {}
  __device__ __forceinline__ void refill() {
    bits.skip(taken);
    taken = 0;
    window = bits.window();
  }
  __device__ __forceinline__ void take(unsigned count) {
    window <<= count;
    taken += count;
  }
  __device__ __forceinline__ bool room(unsigned count) {
    if (!Checked) return true;
    if (bits.position() + taken + count > bits.end) stopped = true;
    return !stopped;
  }
  __device__ bool read_option(unsigned length) {
    refill();
    const unsigned count = length == 2 ? 1 : 2;
    if (!room(count)) return false;
    const unsigned id = static_cast<unsigned>(window >> (64 - count)), uncoded = length - 1;
    unsigned option = id;
    if (id == (1U << count) - 1) {
      option = uncoded;
    } else if (id >= uncoded) {
      damaged = true;
      return false;
    }
    const unsigned at = 8 * (length - 2);
    options = (options & ~(0xFFU << at)) | option << at;
    take(count);
    refill();
    return true;
  }
  __device__ __forceinline__ unsigned look(int kind, unsigned length) {
    unsigned option = 0;
    if (length >= 2) {
      option = options >> (8 * (length - 2)) & 255;
      if (option == 255) {
        if (!read_option(length)) return 0;
        option = options >> (8 * (length - 2)) & 255;
      }
    }
    const unsigned e = tables.decode.entry[decode_base(kind, length) + option][window >> 56];
    if (e & ccsds122::kSlow) {
      if (room(8)) damaged = true;
      return 0;
    }
    return e;
  }
  __device__ __forceinline__ unsigned flags(int kind, unsigned mask) {
    const unsigned e = look(kind, static_cast<unsigned>(__popc(mask)));
    const unsigned length = e >> 4 & 15;
    if (!room(length)) return 0;
    take(length);
    return tables.expand.entry[mask << 4 | (e & 15)];
  }
  /// The coefficients of nibble `at` / 4 at `mask`.
  __device__ __forceinline__ void types(int kind, unsigned mask, int at, std::uint64_t& plane, std::uint64_t& sign) {
    const unsigned e = look(kind, static_cast<unsigned>(__popc(mask)));
    const unsigned length = e >> 4 & 15, total = e >> 8 & 15;
    if (!room(length)) return;
    unsigned fresh = tables.expand.entry[mask << 4 | (e & 15)];
    unsigned signs = total - length;
    take(length);
    if (Checked) {
      const std::uint64_t all_left = bits.left();
      const std::uint64_t left = all_left > taken ? all_left - taken : 0;
      if (left < signs) {  // the first of the new coefficients, from the top
        stopped = true;
        for (unsigned drop = signs - static_cast<unsigned>(left); drop; --drop) fresh &= fresh - 1;
        signs = static_cast<unsigned>(left);
      }
    }
    const unsigned values = static_cast<unsigned>(window >> 60) >> (4 - signs);
    sign |= static_cast<std::uint64_t>(tables.expand.entry[fresh << 4 | values]) << at;
    plane |= static_cast<std::uint64_t>(fresh) << at;
    take(signs);
  }
};

template <int Stage, bool Checked>
__device__ __forceinline__ void read_block(WordsIn<Checked>& r, const PlaneMask& e, std::uint64_t s,
                                           std::uint64_t& plane, std::uint64_t& sign, std::uint8_t& families) {
  const std::uint64_t a = ~s & e.all;
  const auto nibble = [&](int at) { return static_cast<unsigned>(a >> at) & 15; };
  if constexpr (Stage == 1) {
    if (const unsigned mask = nibble(60)) r.types(ccsds122::kOtherWord, mask, 60, plane, sign);
    return;
  }
  const unsigned hs = nibble_flags(s);
  const unsigned gs = grandchildren_flags(hs);
  if constexpr (Stage == 2) {
    families = 0;
    if (!(hs & kDescendantFlags)) {
      if (!(e.all & kDescendantBits)) return;
      if (!r.room(1)) return;
      const bool flag = r.window >> 63;
      r.take(1);
      if (!flag) return;
    }
    const unsigned ds = (hs >> 12 & 7) | gs;
    unsigned now = ds;
    if (const unsigned ask = ~ds & e.family) {
      now |= r.flags(ccsds122::kFamilyWord, ask);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    families = static_cast<std::uint8_t>(now);
    for (unsigned set = now; set;) {
      const int at = 48 + 4 * take_highest(set);
      if (const unsigned mask = nibble(at)) r.types(ccsds122::kChildWord, mask, at, plane, sign);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    return;
  }
  if constexpr (Stage == 3) {
    if (!families) return;
    unsigned grand = gs;
    if (const unsigned ask = families & ~gs & e.grand) {
      grand |= r.flags(ccsds122::kOtherWord, ask);
      if (Checked && (r.stopped || r.damaged)) return;
    }
    if (!grand) return;
    unsigned quarters = hs & 0xFFF;
    for (unsigned set = grand; set;) {
      const int at = 4 * take_highest(set);
      const unsigned ask = ~(hs >> at) & e.nibble >> at & 15;
      if (ask) quarters |= r.flags(ccsds122::kQuarterWord, ask) << at;
      if (Checked && (r.stopped || r.damaged)) return;
    }
    for (unsigned set = quarters & nibble_flags(a); set;) {
      r.refill();
      for (int i = 0; i < 4 && set; ++i) {  // 4 * 12 bits at most
        const int at = 4 * take_highest(set);
        r.types(ccsds122::kQuarterWord, nibble(at), at, plane, sign);
        if (Checked && (r.stopped || r.damaged)) return;
      }
    }
  }
}

}  // namespace

}  // namespace trivelet::gpu
