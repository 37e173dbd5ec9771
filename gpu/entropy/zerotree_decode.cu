// The decoder of the fast zerotree coder. A thread block has one segment, resolution after resolution (the lowest ones
// of a code block together, since their root groups hang in each other's temporal trees), plane after plane. Within a
// plane the order of the sub-streams lets every count be known before its bits are read:
//
//   A or B, D   which groups are active          R, F   refinement, flags          S, P   significance          N signs
//
// Each of these is a step: warps count the bits of their tiles, prefix sums over the tiles give the positions, and
// every lane takes its word's bits. What the next resolution must know of this one is kept per plane (history). Reads
// never leave the input, whatever the bits say; a part that does not end where it should is reported and its block left
// out. What a segment keeps of every word between the steps is in shared memory (55 KB for 96 tiles), if it fits.
// Bound: barriers and loads of the largest segments; blocks of several GOPs fill the gaps. `restore` then writes the
// significant coefficients into zeroed memory: 2 or 4 bytes per sample plus the planes once.
#include <algorithm>

#include "codec/transform/quantiser.h"
#include "gpu/entropy/zerotree.cuh"
#include "gpu/entropy/zerotree.h"

namespace trivelet::gpu {

struct ZerotreeDecodeArgs {
  TreeTables t;
  int planes, staged;
  u64* plane;  // [tile][plane][32]
  u64 *sign, *sig;
  u32* history;  // [tile][plane][32]: active groups; above, those newly active without a significant coefficient
  u16 *act, *seen, *open, *raw, *single;
  u8* first;
  u8 *root_planes, *asked_from;  // [word - first_root_word][16], by root group
  u32 first_root_word;
  const SegmentInput* segment;
  const PartInput* part;
  BlockError* error;
  const u32* bytes;
  u64 last_word;  // of bytes that may be read with two after it
};

namespace {

using DecodeArgs = ZerotreeDecodeArgs;
constexpr int kMostWarps = 16, kTilesPerWarp = 2;
constexpr u8 kNever = 255;

/// Planes of a root group, and planes from which it can be asked.
__device__ __forceinline__ u8* root_planes(const DecodeArgs& a, u32 word, u32 group) {
  return a.root_planes + static_cast<std::size_t>(word - a.first_root_word) * 16 + group;
}
__device__ __forceinline__ u8* asked_from(const DecodeArgs& a, u32 word, u32 group) {
  return a.asked_from + static_cast<std::size_t>(word - a.first_root_word) * 16 + group;
}

/// Bits of the input from a position.
__device__ __forceinline__ u64 peek(const DecodeArgs& a, u64 at) {
  u64 w = at >> 5;
  w = w < a.last_word ? w : a.last_word;
  const u32 shift = static_cast<u32>(at & 31);
  const u64 low = a.bytes[w] | static_cast<u64>(a.bytes[w + 1]) << 32;
  return low >> shift | (shift ? static_cast<u64>(a.bytes[w + 2]) << (64 - shift) : 0);
}

/// Counts of a step: a pair of numbers of bits.
__device__ __forceinline__ u64 both(u32 first, u32 second) { return first | static_cast<u64>(second) << 32; }
__device__ __forceinline__ u32 first_of(u64 x) { return static_cast<u32>(x); }
__device__ __forceinline__ u32 second_of(u64 x) { return static_cast<u32>(x >> 32); }

/// Shared memory of a thread block: a total, then a sum per tile.
struct Sums {
  u64* memory;
  __device__ u64& total() const { return memory[0]; }
  __device__ u64& tile(int t) const { return memory[1 + t]; }
};

/// The state of every word, by its number in the segment: in shared memory if it fits, otherwise in device memory.
/// open: by number in the segment above.
struct Words {
  u64* sig;
  u16 *act, *seen, *raw, *single, *open;
};

/// Bytes of shared memory for sums and words of a segment.
__host__ __device__ inline u32 sums_bytes(int tiles) { return 8 * (1 + static_cast<u32>(tiles)); }
__host__ __device__ inline u32 words_bytes(int tiles, int parent_tiles) {
  return kTileWords * (16 * static_cast<u32>(tiles) + 2 * static_cast<u32>(parent_tiles));
}

/// The threads that work on a segment: this many warps from the first on; the others have left.
struct Team {
  int warps, warp, lane;
  __device__ int threads() const { return 32 * warps; }
};

/// A step: work(tile) finishes the previous step and returns this lane's number of bits in the next; afterwards
/// sums.tile(t) is the sum of all before tile t. All threads call it. A tile has the same warp in all steps.
template <class Work>
__device__ __forceinline__ u64 add_up(const Team& team, const Sums& sums, int tiles, const Work& work) {
  for (int t = team.warp; t < tiles; t += team.warps) {
    const u64 n = warp_sum(work(t));
    __syncwarp();
    if (team.lane == 0) sums.tile(t) = n;
  }
  __syncthreads();
  if (team.warp == 0) {
    u64 carry = 0;
    for (int t0 = 0; t0 < tiles; t0 += 32) {
      const u64 v = t0 + team.lane < tiles ? sums.tile(t0 + team.lane) : 0;
      const u64 e = sum_before(v, team.lane);
      if (t0 + team.lane < tiles) sums.tile(t0 + team.lane) = carry + e;
      carry += __shfl_sync(kAllLanes, e + v, 31);
    }
    if (team.lane == 0) sums.total() = carry;
  }
  __syncthreads();
  return sums.total();
}

/// The last step: work(tile) for all tiles.
template <class Work>
__device__ __forceinline__ void finish(const Team& team, int tiles, const Work& work) {
  for (int t = team.warp; t < tiles; t += team.warps) work(t);
}

/// A segment while it is decoded: where its words are in the tables, their state, and the position in its bits. All
/// threads of the team have one each and call the same functions; a step has its name from FORMAT.md.
struct SegmentDecoder {
  const DecodeArgs& a;
  const Sums& sums;
  const Team& team;
  const DeviceLevel& l;
  const DeviceLevel& up;  ///< of the spatial parent; of level 0 if there is none
  u32 segment, block, block_of_level;
  int lane, arity, k;
  bool temporal;  ///< k = 0 with a temporal parent
  u32 own, parent, own_tile;
  int tiles, parent_tiles, all_words, words;
  const u64 *valid, *child;
  const u16* exists;
  Words of;
  u64 from = 0;      ///< the first bit of the part
  u32 position = 0;  ///< bits of the part that are consumed

  __device__ __forceinline__ SegmentDecoder(const DecodeArgs& args, u32 number, const DeviceSegment& at, const Sums& s,
                                            u64* shared, const Team& t)
      : a(args),
        sums(s),
        team(t),
        l(args.t.levels[at.level]),
        up(args.t.levels[l.k > 0 ? l.up : 0]),
        segment(number),
        block(args.t.root_block[l.component] + at.block),
        block_of_level(at.block),
        lane(t.lane),
        arity(l.arity),
        k(l.k),
        temporal(l.k == 0 && l.temporal >= 0),
        own(first_word(l, at.block)),
        parent(l.k > 0 ? first_word(up, at.block) : 0),
        own_tile(own / kTileWords),
        tiles(l.tiles),
        parent_tiles(l.k > 0 ? up.tiles : 0),
        all_words(l.all_words),
        words(l.words) {
    const u32 cls = block_class(l, at.block);
    valid = a.t.valid + l.valid + cls * static_cast<u32>(all_words);
    child = a.t.child + up.child_mask + cls * up.child_mask_size;
    exists = a.t.exists + l.exists + cls * static_cast<u32>(words);
    of = {a.sig + own, a.act + own, a.seen + own, a.raw + own, a.single + own, a.open + parent};
    if (shared) {
      u16* const u = reinterpret_cast<u16*>(shared + word_count());
      of = {shared, u, u + word_count(), u + 2 * word_count(), u + 3 * word_count(), u + 4 * word_count()};
    }
  }

  __device__ __forceinline__ u32 word_count() const { return static_cast<u32>(tiles) * kTileWords; }
  __device__ __forceinline__ u32 thread() const { return static_cast<u32>(team.warp * 32 + team.lane); }
  __device__ __forceinline__ u32 threads() const { return static_cast<u32>(team.threads()); }
  __device__ __forceinline__ bool live(int t) const { return a.first[own_tile + static_cast<u32>(t)] != kNever; }
  /// This lane's bits of a step, with those of all lanes before it in between.
  __device__ __forceinline__ u64 my_bits(int t, u32 count) const {
    return from + position + sums.tile(t) + sum_before(count, lane);
  }

  /// Initialises all words as unknown; root groups depend on those of their temporal parent, which were decoded before.
  __device__ __forceinline__ void clear() const {
    for (u32 w = thread(); w < word_count(); w += threads()) {
      of.act[w] = 0;
      of.seen[w] = 0;
      of.sig[w] = 0;
      a.sign[own + w] = 0;
    }
    for (u32 w = thread(); w < static_cast<u32>(parent_tiles) * kTileWords; w += threads()) of.open[w] = 0;
    if (k == 0) {
      // Planes from which every root group can be asked.
      const int groups = 64 / arity;
      const DeviceLevel& above = a.t.levels[temporal ? l.temporal : 0];
      const u32 above_first = temporal ? first_word(above, block_of_level) : 0;
      for (u32 i = thread(); i < static_cast<u32>(words * groups); i += threads()) {
        const u32 w = i / static_cast<u32>(groups), g = i % static_cast<u32>(groups);
        u8 asked = 0;
        if (temporal && (exists[w] >> g & 1)) {
          const u32 parent_group = static_cast<u32>(temporal_parent(l, above, static_cast<int>(i)));
          asked = *root_planes(a, above_first + parent_group / static_cast<u32>(groups),
                               parent_group % static_cast<u32>(groups));
        }
        *asked_from(a, own + w, g) = asked;
        *root_planes(a, own + w, g) = 0;
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ void activate(u32 j, u32 groups, int plane) const {
    of.act[j] = static_cast<u16>(of.act[j] | groups);
    u8& first = a.first[own_tile + j / kTileWords];
    if (first == kNever) first = static_cast<u8>(plane);  // all threads that write it write the same
    if (k == 0)
      for (u32 m = groups; m; m &= m - 1)
        *root_planes(a, own + j, static_cast<u32>(__ffs(static_cast<int>(m)) - 1)) = static_cast<u8>(plane + 1);
  }
  /// Reads a bit for each group in `mask`, this lane's of tile t, and activates those that are 1.
  __device__ __forceinline__ void take_groups(int t, u32 mask, int plane) const {
    const u64 at_bit = my_bits(t, count_bits(mask));
    if (!mask) return;
    const u32 groups = deposit_bits(static_cast<u32>(peek(a, at_bit)), mask);
    if (groups) activate(static_cast<u32>(t * kTileWords + lane), groups, plane);
  }

  /// Root groups without a temporal parent: all are active from the top.
  __device__ __forceinline__ void activate_existing(int plane) const {
    for (u32 w = thread(); w < static_cast<u32>(words); w += threads())
      if (exists[w]) activate(w, exists[w], plane);
  }

  /// A: root groups whose temporal parent is active.
  __device__ __forceinline__ u32 roots_asked(int t, int plane) const {
    const int j = t * kTileWords + lane;
    if (j >= words) return 0;
    const u8* planes = asked_from(a, own + static_cast<u32>(j), 0);
    const int4 packed = *reinterpret_cast<const int4*>(planes);
    const u32 quarter[4] = {static_cast<u32>(packed.x), static_cast<u32>(packed.y), static_cast<u32>(packed.z),
                            static_cast<u32>(packed.w)};
    u32 mask = 0;
    TRIVELET_UNROLL
    for (int g = 0; g < 16; ++g)
      mask |= static_cast<u32>(plane < static_cast<int>(quarter[g / 4] >> (8 * (g % 4)) & 0xff)) << g;
    return mask & ~static_cast<u32>(of.act[j]);
  }
  __device__ __forceinline__ void take_roots(int plane) {
    const u64 total = add_up(team, sums, tiles, [&](int t) -> u64 { return count_bits(roots_asked(t, plane)); });
    finish(team, tiles, [&](int t) { take_groups(t, roots_asked(t, plane), plane); });
    position += first_of(total);
  }

  /// B: groups of the parent level with a bit for whether any group below them is active, and those for which that is
  /// implied.
  __device__ __forceinline__ u32 sets_asked(int t, int plane, u32& implied) const {
    const int j = t * kTileWords + lane;
    implied = 0;
    const u32 word = parent + static_cast<u32>(j);
    const u8 first = a.first[word / kTileWords];
    if (j >= up.all_words || first == kNever || plane > first) return 0;
    const u32 history = a.history[plane_at(word, a.planes, plane)], open = of.open[j];
    u32 sets = 0;
    if (k > 1)
      sets = any_of(child[j], up.arity);
    else
      for (int c = 0; c < l.orientations; ++c) sets |= static_cast<u32>(child[c * up.words + j]);
    if (k > 1) implied = history >> 16 & sets;
    return history & 0xffff & ~open & ~implied & sets;
  }
  /// Takes their bits; returns which are open now.
  __device__ __forceinline__ u32 take_sets(int t, int plane) const {
    u32 implied;
    const u32 ask = sets_asked(t, plane, implied);
    const u64 at_bit = my_bits(t, count_bits(ask));
    u16* open = of.open + t * kTileWords + lane;
    u32 now = *open;
    if (ask | implied) {
      now |= implied | (ask ? deposit_bits(static_cast<u32>(peek(a, at_bit)), ask) : 0);
      *open = static_cast<u16>(now);
    }
    return now;
  }
  __device__ __forceinline__ u64 count_sets(int plane) const {
    return add_up(team, sums, parent_tiles, [&](int t) -> u64 {
      u32 implied;
      return count_bits(sets_asked(t, plane, implied));
    });
  }

  /// B and D at k = 1: a root group has a group of its own shape below it in every orientation.
  __device__ __forceinline__ void take_groups_below_roots(int plane, u64 sets) {
    finish(team, parent_tiles, [&](int t) { (void)take_sets(t, plane); });
    position += first_of(sets);
    __syncthreads();
    const auto asked = [&](int t) -> u32 {
      const int j = t * kTileWords + lane;
      if (j >= all_words) return 0;
      return of.open[j % words] & static_cast<u32>(child[j]) & ~static_cast<u32>(of.act[j]);
    };
    const u64 total = add_up(team, sums, tiles, [&](int t) -> u64 { return count_bits(asked(t)); });
    finish(team, tiles, [&](int t) { take_groups(t, asked(t), plane); });
    position += first_of(total);
  }

  /// D from k = 2 on: slots of a word of the parent level, of its open groups, whose group here is not active yet.
  __device__ __forceinline__ u64 children_asked(int t, u32 open) const {
    const int j = t * kTileWords + lane, piece = 64 / arity;  // groups of a word of this level
    if (j >= up.all_words || !open) return 0;
    const int o = j / up.words, i = j - o * up.words;
    u64 found = 0;
    for (int c = 0; c < arity && i * arity + c < words; ++c)
      found |= static_cast<u64>(of.act[o * words + i * arity + c]) << (c * piece);
    return expand(open, up.arity) & child[j] & ~found;
  }
  __device__ __forceinline__ void take_children(int plane, u64 sets) {
    const u64 total = add_up(team, sums, parent_tiles,
                             [&](int t) -> u64 { return count_bits(children_asked(t, take_sets(t, plane))); });
    position += first_of(sets);
    finish(team, parent_tiles, [&](int t) {
      const u64 mask = children_asked(t, of.open[t * kTileWords + lane]);
      const u64 at_bit = my_bits(t, count_bits(mask));
      if (!mask) return;
      const u64 d = deposit_bits(peek(a, at_bit), mask);
      if (!d) return;
      const int j = t * kTileWords + lane, o = j / up.words, i = j - o * up.words, piece = 64 / arity;
      for (int c = 0; c < arity; ++c) {
        const u32 groups = static_cast<u32>(d >> (c * piece)) & ((1u << piece) - 1);
        if (groups) activate(static_cast<u32>(o * words + i * arity + c), groups, plane);
      }
    });
    position += first_of(total);
  }

  /// Which groups are active at a plane.
  __device__ __forceinline__ void take_activity(int plane, bool top) {
    if (k > 0) {
      const u64 sets = count_sets(plane);
      if (k == 1)
        take_groups_below_roots(plane, sets);
      else
        take_children(plane, sets);
    } else if (temporal) {
      take_roots(plane);
    } else if (top) {
      activate_existing(plane);
    }
    __syncthreads();
  }

  struct Word {
    u64 valid, sig;
    u32 active, before, full;
  };
  __device__ __forceinline__ Word load(int t) const {
    Word w{};
    const int j = t * kTileWords + lane;
    if (j >= all_words) return w;
    w.active = of.act[j];
    w.before = of.seen[j];
    w.sig = of.sig[j];
    w.valid = valid[j];
    w.full = all_of(w.valid, arity);
    return w;
  }
  __device__ __forceinline__ u32 flagged(const Word& w) const {
    return a.staged ? w.active & w.full & (~w.before | ~any_of(w.sig, arity)) : 0;
  }
  __device__ __forceinline__ u32 position_bits() const { return arity == 4 ? 2 : 3; }

  /// R, F: counted, and read when the slots of S are counted. Returns the bits of S, those of P in the upper half.
  __device__ __forceinline__ u64 take_refinement_and_flags(int plane) {
    const u64 refinement = add_up(team, sums, tiles, [&](int t) -> u64 {
      if (!live(t)) return 0;
      const Word w = load(t);
      return both(count_bits(w.sig), count_bits(flagged(w)));
    });
    const u64 refine_at = from + position, flags_at = refine_at + first_of(refinement);
    position += first_of(refinement) + second_of(refinement);

    return add_up(team, sums, tiles, [&](int t) -> u64 {
      if (!live(t)) return 0;
      const Word w = load(t);
      const u32 flag_mask = flagged(w), word = own + static_cast<u32>(t * kTileWords + lane);
      const u64 before = sums.tile(t) + sum_before(both(count_bits(w.sig), count_bits(flag_mask)), lane);
      if (!w.active) return 0;
      u32 raw = w.active, single = 0;
      if (a.staged) {
        const u32 flags =
            flag_mask ? deposit_bits(static_cast<u32>(peek(a, flags_at + second_of(before))), flag_mask) : 0;
        const u32 newly = flag_mask & ~w.before;
        single = l.fine ? flags & newly : 0;
        raw = (w.active & ~flag_mask) | (l.fine ? (newly & ~flags) | (flag_mask & ~newly & flags) : flags);
      }
      of.raw[t * kTileWords + lane] = static_cast<u16>(raw);
      of.single[t * kTileWords + lane] = static_cast<u16>(single);
      a.plane[plane_at(word, a.planes, plane)] = w.sig ? deposit_bits(peek(a, refine_at + first_of(before)), w.sig) : 0;
      return both(count_bits(expand(raw, arity) & w.valid & ~w.sig), count_bits(single) * position_bits());
    });
  }

  /// P: the slot of each group with a single new coefficient; the bits are those at `v`.
  __device__ __forceinline__ u64 single_slots(u64 v, u32 single) const {
    const u32 n = count_bits(single);
    u64 place = (expand(deposit_bits(static_cast<u32>(v), single), arity) ^ 0x5555555555555555ull) &
                (expand(deposit_bits(static_cast<u32>(v >> n), single), arity) ^ 0x3333333333333333ull);
    if (arity == 8)
      place &= expand(deposit_bits(static_cast<u32>(v >> (2 * n)), single), arity) ^ 0x0f0f0f0f0f0f0f0full;
    return place & expand(single, arity);
  }

  /// S, P: coefficients that become significant, asked bit by bit or by their place; `counts` as returned above.
  /// Returns the bits of N.
  __device__ __forceinline__ u64 take_significance(int plane, u64 counts) {
    const u64 raw_at = from + position, singles_at = raw_at + first_of(counts);
    position += first_of(counts) + second_of(counts);
    return add_up(team, sums, tiles, [&](int t) -> u64 {
      if (!live(t)) return 0;
      const Word w = load(t);
      const u32 word = own + static_cast<u32>(t * kTileWords + lane);
      u64 ask = 0;
      u32 single = 0;
      if (w.active) {
        ask = expand(of.raw[t * kTileWords + lane], arity) & w.valid & ~w.sig;
        single = of.single[t * kTileWords + lane];
      }
      const u64 before = sums.tile(t) + sum_before(both(count_bits(ask), count_bits(single) * position_bits()), lane);
      u64 fresh = ask ? deposit_bits(peek(a, raw_at + first_of(before)), ask) : 0;
      if (single) fresh |= single_slots(peek(a, singles_at + second_of(before)), single);
      if (fresh) a.plane[plane_at(word, a.planes, plane)] |= fresh;
      return count_bits(fresh);
    });
  }

  /// N: signs; and the state of this plane for the next plane and the next level.
  __device__ __forceinline__ void take_signs(int plane, u64 count) {
    finish(team, tiles, [&](int t) {
      if (!live(t)) return;
      const u32 j = static_cast<u32>(t * kTileWords + lane), word = own + j;
      const u32 active = of.act[j], seen = of.seen[j];
      u64 sig = of.sig[j];
      u64* bits = a.plane + plane_at(word, a.planes, plane);
      const u64 fresh = active ? *bits & ~sig : 0;
      const u64 at_bit = my_bits(t, count_bits(fresh));
      if (fresh) {
        a.sign[word] |= deposit_bits(peek(a, at_bit), fresh);
        sig |= fresh;
        of.sig[j] = sig;
      }
      if (!active) *bits = 0;
      of.seen[j] = static_cast<u16>(active);
      a.history[plane_at(word, a.planes, plane)] = active | (active & ~seen & ~any_of(sig, arity)) << 16;
    });
    position += first_of(count);
    __syncthreads();
  }

  /// Planes from the top to the lowest received one. A part that does not end at its length ends the segment.
  __device__ __forceinline__ void planes(const SegmentInput& input) {
    const PartInput* part = a.part + static_cast<std::size_t>(segment) * static_cast<std::size_t>(a.t.layers);
    int layer = 0;
    from = part->offset * 8;
    for (int p = input.top - 1; p >= static_cast<int>(input.low); --p) {
      if (static_cast<int>(part[layer].low) > p) {
        while (static_cast<int>(part[layer].low) > p) ++layer;
        from = part[layer].offset * 8;
        position = 0;
      }
      take_activity(p, p == input.top - 1);
      const u64 significance = take_refinement_and_flags(p);
      const u64 signs = take_significance(p, significance);
      take_signs(p, signs);

      const u32 used = (position + 7) / 8, size = part[layer].size;
      const bool ends = static_cast<int>(part[layer].low) == p;
      const bool padded = ends && used == size && position % 8 != 0 &&
                          (peek(a, from + position) & ((1u << (8 - position % 8)) - 1)) != 0;
      if (used > size || (ends && used != size) || padded) {
        if (thread() == 0) {
          a.error[block].plane = static_cast<u32>(p);
          a.error[block].used = used;
          a.error[block].size = size;
          a.error[block].segment_and_one = segment + 1;
        }
        return;
      }
    }
  }
};

/// Decodes a segment. All threads of the team call it with the same arguments. `shared`: memory for its words, or null.
__device__ void decode_segment(const DecodeArgs& a, u32 segment, const Sums& sums, u64* shared, const Team& team) {
  const DeviceSegment at = a.t.segments[segment];
  const SegmentInput input = a.segment[segment];
  if (input.low >= input.top) return;
  // Another segment of the block may fail at this moment, so one thread reads the state for all.
  if (team.warp == 0 && team.lane == 0)
    sums.total() = a.error[a.t.root_block[a.t.levels[at.level].component] + at.block].segment_and_one;
  __syncthreads();
  const bool given_up = sums.total() != 0;
  __syncthreads();
  if (given_up) return;

  SegmentDecoder decoder(a, segment, at, sums, shared, team);
  decoder.clear();
  decoder.planes(input);
  __syncthreads();
  if (!shared) return;
  for (u32 w = decoder.thread(); w < decoder.word_count(); w += decoder.threads())
    a.sig[decoder.own + w] = decoder.of.sig[w];
  __syncthreads();
}

/// The lowest bands of a code block, family by family.
__global__ void __launch_bounds__(32 * kMostWarps) root_kernel(DecodeArgs a, int most_tiles, bool in_shared) {
  const Sums sums{dynamic_shared<u64>()};
  u64* const words = in_shared ? sums.memory + sums_bytes(most_tiles) / 8 : nullptr;
  const Team team{static_cast<int>(blockDim.x / 32), static_cast<int>(threadIdx.x / 32),
                  static_cast<int>(threadIdx.x % 32)};
  u32 c = 0;
  while (blockIdx.x >= a.t.root_block[c + 1]) ++c;
  const u32 block = blockIdx.x - a.t.root_block[c];
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[a.t.roots[c * static_cast<u32>(a.t.families) + static_cast<u32>(b)]];
    if (l.words > 0) decode_segment(a, l.first_segment + block, sums, words, team);
  }
}

/// Warps for a segment of this many tiles, its own or of the level above.
__host__ __device__ inline int warps_for(int tiles) {
  const int warps = (tiles + kTilesPerWarp - 1) / kTilesPerWarp;
  return warps < kMostWarps ? warps : kMostWarps;
}

__global__ void __launch_bounds__(32 * kMostWarps)
    segment_kernel(DecodeArgs a, u32 first, int most_tiles, bool in_shared) {
  const DeviceLevel& l = a.t.levels[a.t.segments[first + blockIdx.x].level];
  const int parent_tiles = a.t.levels[l.up].tiles;
  int warps = warps_for(l.tiles > parent_tiles ? l.tiles : parent_tiles);
  warps = warps < 1 ? 1 : warps;
  const Team team{warps, static_cast<int>(threadIdx.x / 32), static_cast<int>(threadIdx.x % 32)};
  if (team.warp >= warps) return;  // barriers do not wait for threads that have left
  const Sums sums{dynamic_shared<u64>()};
  decode_segment(a, first + blockIdx.x, sums, in_shared ? sums.memory + sums_bytes(most_tiles) / 8 : nullptr, team);
}

// ----------------------------------------------------------------------------------------------------------- restore

constexpr unsigned kRestoreWarps = 4;

__device__ __forceinline__ float restored(u32 m, bool negative, float step, float offset, i32, const float*) {
  const float v = (static_cast<float>(m) + offset) * step;
  return negative ? -v : v;
}
template <class V>
__device__ __forceinline__ V restored(u32 m, bool negative, float, float, i32 offset, const V*) {
  const i32 v = static_cast<i32>(m) + offset;
  return static_cast<V>(negative ? -v : v);
}

template <class V>
__global__ void __launch_bounds__(kRestoreWarps * 32)
    restore_kernel(DecodeArgs a, V* coefficients, const float* steps, int centroid) {
  const u32 tile = blockIdx.x * kRestoreWarps + threadIdx.x / 32;
  if (tile >= a.t.tile_count) return;
  const int first = a.first[tile];
  if (first == kNever) return;
  const DeviceTile at = a.t.tiles[tile];
  const DeviceLevel& l = a.t.levels[at.level];
  if (!l.wanted || a.error[a.t.root_block[l.component] + at.block].segment_and_one) return;
  const int lane = static_cast<int>(threadIdx.x % 32), j = static_cast<int>(at.first) + lane;
  const bool inside = j < l.all_words;
  const int o = inside ? j / l.words : 0, i = inside ? j - o * l.words : 0;
  const u32 word = tile * kTileWords + static_cast<u32>(lane);
  const u64 sig = inside ? a.sig[word] : 0;
  const u64 sign = sig ? a.sign[word] : 0;
  const DeviceBand band = a.t.bands[l.band + static_cast<u32>(o)];
  const WordBase base = a.t.base[l.base + static_cast<u32>(i)];
  const int by = static_cast<int>(at.block) / l.columns, bx = static_cast<int>(at.block) % l.columns;
  const u64 origin = band.origin + base.t * band.frame_stride +
                     static_cast<u64>(by * l.side + base.y) * band.row_stride + static_cast<u64>(bx * l.side + base.x);
  const float step = steps ? steps[l.band + static_cast<u32>(o)] : 1.0f;
  const int low = a.segment[l.first_segment + at.block].low;
  const float offset = reconstruction_offset(centroid, low);
  const i32 integer_offset = integer_reconstruction_offset(centroid, low);
  const WordBase s0 = a.t.slot[l.slot + static_cast<u32>(lane)], s1 = a.t.slot[l.slot + 32 + static_cast<u32>(lane)];
  const std::size_t planes_at = plane_at(tile * kTileWords, a.planes, 0);
  for (u32 pending = __ballot_sync(kAllLanes, sig != 0); pending; pending &= pending - 1) {
    const int w = __ffs(static_cast<int>(pending)) - 1;
    const u64 to = __shfl_sync(kAllLanes, origin, w), mask = __shfl_sync(kAllLanes, sig, w);
    const u64 frame = __shfl_sync(kAllLanes, band.frame_stride, w), negative = __shfl_sync(kAllLanes, sign, w);
    const u32 row = __shfl_sync(kAllLanes, band.row_stride, w);
    const float s = __shfl_sync(kAllLanes, step, w);
    u32 m0 = 0, m1 = 0;
    for (int p = first; p >= low; --p) {
      const u64 bits = a.plane[planes_at + static_cast<std::size_t>(p) * kTileWords + static_cast<std::size_t>(w)];
      m0 |= static_cast<u32>(bits >> lane & 1) << p;
      m1 |= static_cast<u32>(bits >> (lane + 32) & 1) << p;
    }
    if (mask >> lane & 1)
      coefficients[to + s0.t * frame + static_cast<u64>(s0.y) * row + s0.x] =
          restored(m0, negative >> lane & 1, s, offset, integer_offset, static_cast<const V*>(nullptr));
    if (mask >> (lane + 32) & 1)
      coefficients[to + s1.t * frame + static_cast<u64>(s1.y) * row + s1.x] =
          restored(m1, negative >> (lane + 32) & 1, s, offset, integer_offset, static_cast<const V*>(nullptr));
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------- launchers

ZerotreeDecoder::ZerotreeDecoder(const TreePlan& plan, FastMode mode, int planes)
    : plan_(&plan), staged_(mode == FastMode::kStaged), planes_(planes) {
  require(planes >= 1 && planes <= 30, ErrorKind::kBadArgument, std::to_string(planes) + " bit planes; must be 1..30");
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  // Most shared memory of a block on this device, and not so much that blocks cannot fill a multiprocessor.
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const auto attribute = [&](cudaDeviceAttr which) {
    int v = 0;
    check(cudaDeviceGetAttribute(&v, which, device), "cudaDeviceGetAttribute");
    return static_cast<u32>(v);
  };
  const u32 blocks = std::max(1u, attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / (32 * kMostWarps));
  shared_bytes_ = std::min(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin),
                           attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor) / blocks -
                               attribute(cudaDevAttrReservedSharedMemoryPerBlock));
  const int most = static_cast<int>(std::max(shared_bytes_, 48u << 10));  // available on every device, for the sums
  check(cudaFuncSetAttribute(root_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most), "cudaFuncSetAttribute");
  check(cudaFuncSetAttribute(segment_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, most),
        "cudaFuncSetAttribute");
  planes_memory_ = DeviceBuffer<u64>(words * p);
  history_ = DeviceBuffer<u32>(words * p);
  sign_ = DeviceBuffer<u64>(words);
  sig_ = DeviceBuffer<u64>(words);
  act_ = DeviceBuffer<u16>(words);
  seen_ = DeviceBuffer<u16>(words);
  open_ = DeviceBuffer<u16>(words);
  raw_ = DeviceBuffer<u16>(words);
  single_ = DeviceBuffer<u16>(words);
  first_ = DeviceBuffer<u8>(plan.tiles());
  root_planes_ = DeviceBuffer<u8>((words - plan.first_root_word()) * 16);
  asked_from_ = DeviceBuffer<u8>((words - plan.first_root_word()) * 16);
  segments_ = DeviceBuffer<SegmentInput>(plan.segments());
  parts_ = DeviceBuffer<PartInput>(plan.parts());
  errors_ = DeviceBuffer<BlockError>(plan.blocks());
}

std::size_t ZerotreeDecoder::device_bytes(const TreePlan& plan, int planes) {
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  return words * (p * 12 + 16 + 10) + (words - plan.first_root_word()) * 32 + plan.tiles() +
         plan.segments() * sizeof(SegmentInput) + plan.parts() * sizeof(PartInput) + plan.blocks() * sizeof(BlockError);
}
std::size_t ZerotreeDecoder::device_bytes() const { return device_bytes(*plan_, planes_); }

ZerotreeDecodeArgs ZerotreeDecoder::args() const {
  ZerotreeDecodeArgs a{};
  a.t = plan_->tables();
  a.planes = planes_;
  a.staged = staged_;
  a.plane = planes_memory_.data();
  a.history = history_.data();
  a.sign = sign_.data();
  a.sig = sig_.data();
  a.act = act_.data();
  a.seen = seen_.data();
  a.open = open_.data();
  a.raw = raw_.data();
  a.single = single_.data();
  a.first = first_.data();
  a.root_planes = root_planes_.data();
  a.asked_from = asked_from_.data();
  a.first_root_word = plan_->first_root_word();
  a.segment = segments_.data();
  a.part = parts_.data();
  a.error = errors_.data();
  return a;
}

void ZerotreeDecoder::decode(const std::uint8_t* bytes, std::size_t size, const Stream& stream) {
  ZerotreeDecodeArgs a = args();
  a.bytes = reinterpret_cast<const u32*>(bytes);
  a.last_word = size / 4;  // with 16 bytes after the parts, two more can be read
  check(cudaMemsetAsync(first_.data(), kNever, first_.size(), stream.get()), "cudaMemsetAsync");
  check(cudaMemsetAsync(errors_.data(), 0, errors_.size() * sizeof(BlockError), stream.get()), "cudaMemsetAsync");
  for (int k = 0; k < plan_->resolutions(); ++k) {
    const int most = plan_->most_tiles(k);
    u32 words = 0;
    for (const DeviceLevel& l : plan_->levels())
      if (l.k == k)
        words =
            std::max(words, words_bytes(l.tiles, k > 0 ? plan_->levels()[static_cast<std::size_t>(l.up)].tiles : 0));
    const bool in_shared = sums_bytes(most) + words <= shared_bytes_;
    const u32 shared = sums_bytes(most) + (in_shared ? words : 0);
    const dim3 threads(32 * static_cast<unsigned>(warps_for(most)));
    if (k == 0) {
      launch("root_kernel", root_kernel, dim3(plan_->blocks()), threads, shared, stream.get(), a, most, in_shared);
      continue;
    }
    const u32 first = plan_->first_segment(k), end = plan_->first_segment(k + 1);
    if (first < end)
      launch("segment_kernel", segment_kernel, dim3(end - first), threads, shared, stream.get(), a, first, most,
             in_shared);
  }
}

template <class V>
void ZerotreeDecoder::restore(V* coefficients, const float* steps, int centroid, const Stream& stream) {
  launch("restore_kernel", restore_kernel<V>, dim3((plan_->tiles() + kRestoreWarps - 1) / kRestoreWarps),
         dim3(32 * kRestoreWarps), 0, stream.get(), args(), coefficients, steps, centroid);
}

template void ZerotreeDecoder::restore(float*, const float*, int, const Stream&);
template void ZerotreeDecoder::restore(std::int16_t*, const float*, int, const Stream&);
template void ZerotreeDecoder::restore(std::int32_t*, const float*, int, const Stream&);

}  // namespace trivelet::gpu
