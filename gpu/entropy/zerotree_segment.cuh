// A segment of the fast profile while the device decodes it, and the steps in which its threads do so; see
// zerotree_decode.cu.
#pragma once

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
/// threads of the team have one each and call the same functions.
struct DecodedSegment {
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
  Words state;
  u64 from = 0;      ///< the first bit of the part
  u32 position = 0;  ///< bits of the part that are consumed

  __device__ __forceinline__ DecodedSegment(const DecodeArgs& args, u32 number, const DeviceSegment& at, const Sums& s,
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
    state = {a.sig + own, a.act + own, a.seen + own, a.raw + own, a.single + own, a.open + parent};
    if (shared) {
      u16* const u = reinterpret_cast<u16*>(shared + word_count());
      state = {shared, u, u + word_count(), u + 2 * word_count(), u + 3 * word_count(), u + 4 * word_count()};
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
      state.act[w] = 0;
      state.seen[w] = 0;
      state.sig[w] = 0;
      a.sign[own + w] = 0;
    }
    for (u32 w = thread(); w < static_cast<u32>(parent_tiles) * kTileWords; w += threads()) state.open[w] = 0;
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
    state.act[j] = static_cast<u16>(state.act[j] | groups);
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
};

}  // namespace

}  // namespace trivelet::gpu
