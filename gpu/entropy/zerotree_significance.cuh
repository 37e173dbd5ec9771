// The steps of the fast profile's decoder on the device that read the coefficients of a segment's active groups at a
// plane: R, F, S, P and N of FORMAT.md.
#pragma once

#include "gpu/entropy/zerotree_segment.cuh"

namespace trivelet::gpu {

namespace {

struct SignificanceDecoder {
  DecodedSegment& s;

  __device__ __forceinline__ void take(int plane) {
    const u64 significance = take_refinement_and_flags(plane);
    const u64 signs = take_significance(plane, significance);
    take_signs(plane, signs);
  }

 private:
  struct Word {
    u64 valid, sig;
    u32 active, before, full;
  };
  __device__ __forceinline__ Word load(int t) const {
    Word w{};
    const int j = t * kTileWords + s.lane;
    if (j >= s.all_words) return w;
    w.active = s.state.act[j];
    w.before = s.state.seen[j];
    w.sig = s.state.sig[j];
    w.valid = s.valid[j];
    w.full = all_of(w.valid, s.arity);
    return w;
  }
  __device__ __forceinline__ u32 flagged(const Word& w) const {
    return s.a.staged ? w.active & w.full & (~w.before | ~any_of(w.sig, s.arity)) : 0;
  }
  __device__ __forceinline__ u32 position_bits() const { return s.arity == 4 ? 2 : 3; }

  /// R, F: counted, and read when the slots of S are counted. Returns the bits of S, those of P in the upper half.
  __device__ __forceinline__ u64 take_refinement_and_flags(int plane) {
    const u64 refinement = add_up(s.team, s.sums, s.tiles, [&](int t) -> u64 {
      if (!s.live(t)) return 0;
      const Word w = load(t);
      return both(count_bits(w.sig), count_bits(flagged(w)));
    });
    const u64 refine_at = s.from + s.position, flags_at = refine_at + first_of(refinement);
    s.position += first_of(refinement) + second_of(refinement);

    return add_up(s.team, s.sums, s.tiles, [&](int t) -> u64 {
      if (!s.live(t)) return 0;
      const Word w = load(t);
      const u32 flag_mask = flagged(w), word = s.own + static_cast<u32>(t * kTileWords + s.lane);
      const u64 before = s.sums.tile(t) + sum_before(both(count_bits(w.sig), count_bits(flag_mask)), s.lane);
      if (!w.active) return 0;
      u32 raw = w.active, single = 0;
      if (s.a.staged) {
        const u32 flags =
            flag_mask ? deposit_bits(static_cast<u32>(peek(s.a, flags_at + second_of(before))), flag_mask) : 0;
        const u32 newly = flag_mask & ~w.before;
        single = s.l.fine ? flags & newly : 0;
        raw = (w.active & ~flag_mask) | (s.l.fine ? (newly & ~flags) | (flag_mask & ~newly & flags) : flags);
      }
      s.state.raw[t * kTileWords + s.lane] = static_cast<u16>(raw);
      s.state.single[t * kTileWords + s.lane] = static_cast<u16>(single);
      s.a.plane[plane_at(word, s.a.planes, plane)] =
          w.sig ? deposit_bits(peek(s.a, refine_at + first_of(before)), w.sig) : 0;
      return both(count_bits(expand(raw, s.arity) & w.valid & ~w.sig), count_bits(single) * position_bits());
    });
  }

  /// P: the slot of each group with a single new coefficient; the bits are those at `v`.
  __device__ __forceinline__ u64 single_slots(u64 v, u32 single) const {
    const u32 n = count_bits(single);
    u64 place = (expand(deposit_bits(static_cast<u32>(v), single), s.arity) ^ 0x5555555555555555ull) &
                (expand(deposit_bits(static_cast<u32>(v >> n), single), s.arity) ^ 0x3333333333333333ull);
    if (s.arity == 8)
      place &= expand(deposit_bits(static_cast<u32>(v >> (2 * n)), single), s.arity) ^ 0x0f0f0f0f0f0f0f0full;
    return place & expand(single, s.arity);
  }

  /// S, P: coefficients that become significant, asked bit by bit or by their place; `counts` as returned above.
  /// Returns the bits of N.
  __device__ __forceinline__ u64 take_significance(int plane, u64 counts) {
    const u64 raw_at = s.from + s.position, singles_at = raw_at + first_of(counts);
    s.position += first_of(counts) + second_of(counts);
    return add_up(s.team, s.sums, s.tiles, [&](int t) -> u64 {
      if (!s.live(t)) return 0;
      const Word w = load(t);
      const u32 word = s.own + static_cast<u32>(t * kTileWords + s.lane);
      u64 ask = 0;
      u32 single = 0;
      if (w.active) {
        ask = expand(s.state.raw[t * kTileWords + s.lane], s.arity) & w.valid & ~w.sig;
        single = s.state.single[t * kTileWords + s.lane];
      }
      const u64 before =
          s.sums.tile(t) + sum_before(both(count_bits(ask), count_bits(single) * position_bits()), s.lane);
      u64 fresh = ask ? deposit_bits(peek(s.a, raw_at + first_of(before)), ask) : 0;
      if (single) fresh |= single_slots(peek(s.a, singles_at + second_of(before)), single);
      if (fresh) s.a.plane[plane_at(word, s.a.planes, plane)] |= fresh;
      return count_bits(fresh);
    });
  }

  /// N: signs; and the state of this plane for the next plane and the next level.
  __device__ __forceinline__ void take_signs(int plane, u64 count) {
    finish(s.team, s.tiles, [&](int t) {
      if (!s.live(t)) return;
      const u32 j = static_cast<u32>(t * kTileWords + s.lane), word = s.own + j;
      const u32 active = s.state.act[j], seen = s.state.seen[j];
      u64 sig = s.state.sig[j];
      u64* bits = s.a.plane + plane_at(word, s.a.planes, plane);
      const u64 fresh = active ? *bits & ~sig : 0;
      const u64 at_bit = s.my_bits(t, count_bits(fresh));
      if (fresh) {
        s.a.sign[word] |= deposit_bits(peek(s.a, at_bit), fresh);
        sig |= fresh;
        s.state.sig[j] = sig;
      }
      if (!active) *bits = 0;
      s.state.seen[j] = static_cast<u16>(active);
      s.a.history[plane_at(word, s.a.planes, plane)] = active | (active & ~seen & ~any_of(sig, s.arity)) << 16;
    });
    s.position += first_of(count);
    __syncthreads();
  }
};

}  // namespace

}  // namespace trivelet::gpu
