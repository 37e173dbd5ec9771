// The steps of the fast profile's decoder on the device that find which groups of a segment are active at a plane: A,
// B and D of FORMAT.md.
#pragma once

#include "gpu/entropy/zerotree_segment.cuh"

namespace trivelet::gpu {

namespace {

struct ActivityDecoder {
  DecodedSegment& s;

  /// Which groups are active at a plane.
  __device__ __forceinline__ void take(int plane, bool top) {
    if (s.k > 0) {
      const u64 sets = count_sets(plane);
      if (s.k == 1)
        take_groups_below_roots(plane, sets);
      else
        take_children(plane, sets);
    } else if (s.temporal) {
      take_roots(plane);
    } else if (top) {
      activate_existing(plane);
    }
    __syncthreads();
  }

 private:
  /// Root groups without a temporal parent: all are active from the top.
  __device__ __forceinline__ void activate_existing(int plane) const {
    for (u32 w = s.thread(); w < static_cast<u32>(s.words); w += s.threads())
      if (s.exists[w]) s.activate(w, s.exists[w], plane);
  }

  /// A: root groups whose temporal parent is active.
  __device__ __forceinline__ u32 roots_asked(int t, int plane) const {
    const int j = t * kTileWords + s.lane;
    if (j >= s.words) return 0;
    const u8* planes = asked_from(s.a, s.own + static_cast<u32>(j), 0);
    const int4 packed = *reinterpret_cast<const int4*>(planes);
    const u32 quarter[4] = {static_cast<u32>(packed.x), static_cast<u32>(packed.y), static_cast<u32>(packed.z),
                            static_cast<u32>(packed.w)};
    u32 mask = 0;
    TRIVELET_UNROLL
    for (int g = 0; g < 16; ++g)
      mask |= static_cast<u32>(plane < static_cast<int>(quarter[g / 4] >> (8 * (g % 4)) & 0xff)) << g;
    return mask & ~static_cast<u32>(s.state.act[j]);
  }
  __device__ __forceinline__ void take_roots(int plane) {
    const u64 total = add_up(s.team, s.sums, s.tiles, [&](int t) -> u64 { return count_bits(roots_asked(t, plane)); });
    finish(s.team, s.tiles, [&](int t) { s.take_groups(t, roots_asked(t, plane), plane); });
    s.position += first_of(total);
  }

  /// B: groups of the parent level with a bit for whether any group below them is active, and those for which that is
  /// implied.
  __device__ __forceinline__ u32 sets_asked(int t, int plane, u32& implied) const {
    const int j = t * kTileWords + s.lane;
    implied = 0;
    const u32 word = s.parent + static_cast<u32>(j);
    const u8 first = s.a.first[word / kTileWords];
    if (j >= s.up.all_words || first == kNever || plane > first) return 0;
    const u32 history = s.a.history[plane_at(word, s.a.planes, plane)], open = s.state.open[j];
    u32 sets = 0;
    if (s.k > 1)
      sets = any_of(s.child[j], s.up.arity);
    else
      for (int c = 0; c < s.l.orientations; ++c) sets |= static_cast<u32>(s.child[c * s.up.words + j]);
    if (s.k > 1) implied = history >> 16 & sets;
    return history & 0xffff & ~open & ~implied & sets;
  }
  /// Takes their bits; returns which are open now.
  __device__ __forceinline__ u32 take_sets(int t, int plane) const {
    u32 implied;
    const u32 ask = sets_asked(t, plane, implied);
    const u64 at_bit = s.my_bits(t, count_bits(ask));
    u16* open = s.state.open + t * kTileWords + s.lane;
    u32 now = *open;
    if (ask | implied) {
      now |= implied | (ask ? deposit_bits(static_cast<u32>(peek(s.a, at_bit)), ask) : 0);
      *open = static_cast<u16>(now);
    }
    return now;
  }
  __device__ __forceinline__ u64 count_sets(int plane) const {
    return add_up(s.team, s.sums, s.parent_tiles, [&](int t) -> u64 {
      u32 implied;
      return count_bits(sets_asked(t, plane, implied));
    });
  }

  /// B and D at k = 1: a root group has a group of its own shape below it in every orientation.
  __device__ __forceinline__ void take_groups_below_roots(int plane, u64 sets) {
    finish(s.team, s.parent_tiles, [&](int t) { (void)take_sets(t, plane); });
    s.position += first_of(sets);
    __syncthreads();
    const auto asked = [&](int t) -> u32 {
      const int j = t * kTileWords + s.lane;
      if (j >= s.all_words) return 0;
      return s.state.open[j % s.words] & static_cast<u32>(s.child[j]) & ~static_cast<u32>(s.state.act[j]);
    };
    const u64 total = add_up(s.team, s.sums, s.tiles, [&](int t) -> u64 { return count_bits(asked(t)); });
    finish(s.team, s.tiles, [&](int t) { s.take_groups(t, asked(t), plane); });
    s.position += first_of(total);
  }

  /// D from k = 2 on: slots of a word of the parent level, of its open groups, whose group here is not active yet.
  __device__ __forceinline__ u64 children_asked(int t, u32 open) const {
    const int j = t * kTileWords + s.lane, piece = 64 / s.arity;  // groups of a word of this level
    if (j >= s.up.all_words || !open) return 0;
    const int o = j / s.up.words, i = j - o * s.up.words;
    u64 found = 0;
    for (int c = 0; c < s.arity && i * s.arity + c < s.words; ++c)
      found |= static_cast<u64>(s.state.act[o * s.words + i * s.arity + c]) << (c * piece);
    return expand(open, s.up.arity) & s.child[j] & ~found;
  }
  __device__ __forceinline__ void take_children(int plane, u64 sets) {
    const u64 total = add_up(s.team, s.sums, s.parent_tiles,
                             [&](int t) -> u64 { return count_bits(children_asked(t, take_sets(t, plane))); });
    s.position += first_of(sets);
    finish(s.team, s.parent_tiles, [&](int t) {
      const u64 mask = children_asked(t, s.state.open[t * kTileWords + s.lane]);
      const u64 at_bit = s.my_bits(t, count_bits(mask));
      if (!mask) return;
      const u64 d = deposit_bits(peek(s.a, at_bit), mask);
      if (!d) return;
      const int j = t * kTileWords + s.lane, o = j / s.up.words, i = j - o * s.up.words, piece = 64 / s.arity;
      for (int c = 0; c < s.arity; ++c) {
        const u32 groups = static_cast<u32>(d >> (c * piece)) & ((1u << piece) - 1);
        if (groups) s.activate(static_cast<u32>(o * s.words + i * s.arity + c), groups, plane);
      }
    });
    s.position += first_of(total);
  }
};

}  // namespace

}  // namespace trivelet::gpu
