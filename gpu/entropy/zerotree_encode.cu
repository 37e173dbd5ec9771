// The encoder of the fast zerotree coder. Every kernel works on tiles: a warp has 32 words of one level of one block.
//
//   slice    per resolution, fine to coarse: coefficients -> bit planes of words; which groups are active at which
//   plane
//   join     per block: root groups take over their temporal children's planes; tops of the lowest bands
//   streams  bits that every tile sends per plane and sub-stream: counted
//   place    per segment: prefix sums over planes, sub-streams and tiles; bytes of the parts
//   order    all parts one after the other
//   streams  the same again, written: words of output are ORed together
//
// A plane's set bits (A, B, D) and coefficient bits (R, F, S, P, N) depend only on that plane and the one above, so
// nothing is sequential but the positions, and those are sums. Bytes that must move per sample: coefficients once (2 or
// 4), planes that are not empty three times (3 * planes / 8 at most), bits once. Bound: below 1 bit per sample the
// coefficients (memory), above it instructions.
#include <algorithm>

#include "gpu/entropy/zerotree.cuh"
#include "gpu/entropy/zerotree.h"

namespace trivelet::gpu {

/// Sub-streams as they are counted for a tile. kOwnSets: A at k = 0, D at k = 1. kSets and kChildren are B and, from k
/// = 2 on, D: they belong to the segment of the next level.
enum Stage { kOwnSets = 0, kSets, kChildren, kRefinement, kFlags, kSignificance, kPositions, kSigns, kStages };

struct ZerotreeEncodeArgs {
  TreeTables t;
  int planes;
  u64* plane;  // [tile][plane][32]
  u64* sign;
  u16* act;  // [tile][plane][32]
  u8* count;
  u8* top;
  u8* root_planes;  // [word - first_root_word][16], by root group
  u32 first_root_word;
  i32* tile_top;
  u32* bits;  // [tile][plane][kStages]: counts, then positions in the part
  u32* total;
  u32* segment_top;
  u32* part_bits;
  u64* part_offset;
  u32* output;
  u64 capacity;
};

namespace {

constexpr unsigned kWarps = 4;
using EncodeArgs = ZerotreeEncodeArgs;

/// Planes for which a tile has a row of counts: its own planes, or its segment's if it can have bits without active
/// groups.
__device__ __forceinline__ int tile_rows(const EncodeArgs& a, const DeviceLevel& l, u32 tile, u32 block) {
  return l.k <= 1 ? static_cast<int>(a.segment_top[l.first_segment + block]) : a.tile_top[tile];
}

/// Planes of a root group's whole set.
__device__ __forceinline__ u8* root_group(const EncodeArgs& a, u32 word, int group) {
  return a.root_planes + static_cast<std::size_t>(word - a.first_root_word) * 16 + group;
}

/// The tile of this warp; false beyond the last one.
__device__ __forceinline__ bool find_tile(u32 first, u32 end, u32& tile) {
  tile = first + blockIdx.x * kWarps + threadIdx.x / 32;
  return tile < end;
}

// ------------------------------------------------------------------------------------------------------------- slice

__device__ __forceinline__ u32 magnitude_of(i32 c) {
  const u32 m = c < 0 ? 0u - static_cast<u32>(c) : static_cast<u32>(c);
  constexpr u32 kLimit = (1u << 30) - 1;
  return m < kLimit ? m : kLimit;
}

/// Whether any value of an 8x8 square is not zero; rows are aligned to 16 bytes.
template <class Q>
__device__ __forceinline__ bool square_has_any(const Q* p, std::ptrdiff_t row) {
  constexpr int kPerLoad = 16 / sizeof(Q);
  int any = 0;
  TRIVELET_UNROLL
  for (int y = 0; y < 8; ++y) {
    TRIVELET_UNROLL
    for (int x = 0; x < 8; x += kPerLoad) {
      const int4 v = *reinterpret_cast<const int4*>(p + y * row + x);
      any |= v.x | v.y | v.z | v.w;
    }
  }
  return any != 0;
}

template <class Q>
__global__ void __launch_bounds__(kWarps * 32)
    slice_kernel(EncodeArgs a, const Q* coefficients, u32 first_tile, u32 end_tile) {
  u32 tile;
  if (!find_tile(first_tile, end_tile, tile)) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  u64* staged =
      dynamic_shared<u64>() + static_cast<std::size_t>(threadIdx.x / 32) * static_cast<std::size_t>(a.planes) * 32;
  const DeviceTile at = a.t.tiles[tile];
  const DeviceLevel& l = a.t.levels[at.level];
  const int j = static_cast<int>(at.first) + lane;
  const bool inside = j < l.all_words;
  const int o = inside ? j / l.words : 0, i = inside ? j - o * l.words : 0;
  const u32 cls = block_class(l, at.block);
  const u64 valid = inside ? a.t.valid[l.valid + cls * static_cast<u32>(l.all_words) + static_cast<u32>(j)] : 0;
  const DeviceBand band = a.t.bands[l.band + static_cast<u32>(o)];
  const WordBase base = a.t.base[l.base + static_cast<u32>(i)];
  const int by = static_cast<int>(at.block) / l.columns, bx = static_cast<int>(at.block) % l.columns;
  const u64 origin = band.origin + base.t * band.frame_stride +
                     static_cast<u64>(by * l.side + base.y) * band.row_stride + static_cast<u64>(bx * l.side + base.x);

  // Most words are empty: a lane finds out for its own. The others are sliced by the whole warp, two slots a lane.
  bool busy = valid != 0;
  if (l.tile8x8 && valid == ~u64{0}) busy = square_has_any(coefficients + origin, band.row_stride);
  u32 pending = __ballot_sync(kAllLanes, busy);
  const WordBase s0 = a.t.slot[l.slot + static_cast<u32>(lane)], s1 = a.t.slot[l.slot + 32 + static_cast<u32>(lane)];
  int n = 0;
  u64 sign = 0;
  while (pending) {
    const int w = __ffs(static_cast<int>(pending)) - 1;
    pending &= pending - 1;
    const u64 from = __shfl_sync(kAllLanes, origin, w), mask = __shfl_sync(kAllLanes, valid, w);
    const u64 frame = __shfl_sync(kAllLanes, band.frame_stride, w);
    const u32 row = __shfl_sync(kAllLanes, band.row_stride, w);
    const i32 c0 = mask >> lane & 1 ? coefficients[from + s0.t * frame + static_cast<u64>(s0.y) * row + s0.x] : 0;
    const i32 c1 =
        mask >> (lane + 32) & 1 ? coefficients[from + s1.t * frame + static_cast<u64>(s1.y) * row + s1.x] : 0;
    const u32 m0 = magnitude_of(c0), m1 = magnitude_of(c1);
    const u32 any = warp_or(m0 | m1);
    if (any == 0) continue;
    int planes = 32 - __clz(static_cast<int>(any));
    planes = planes < a.planes ? planes : a.planes;
    const u64 signs = __ballot_sync(kAllLanes, c0 < 0) | static_cast<u64>(__ballot_sync(kAllLanes, c1 < 0)) << 32;
    u64 mine = 0;
    for (int p = 0; p < planes; ++p) {
      const u32 low = __ballot_sync(kAllLanes, m0 >> p & 1), high = __ballot_sync(kAllLanes, m1 >> p & 1);
      if (lane == p) mine = low | static_cast<u64>(high) << 32;
    }
    if (lane < planes) staged[lane * 32 + w] = mine;
    if (lane == w) {
      n = planes;
      sign = signs;
    }
  }
  __syncwarp();

  // Activity: a group is active from the highest plane of its coefficients and its children.
  int top = n;
  const bool has_children = l.child >= 0;
  const DeviceLevel& cl = a.t.levels[has_children ? l.child : 0];
  const u32 child_base = has_children ? first_word(cl, at.block) : 0;
  const int children = !has_children || !inside ? 0 : l.k == 0 ? cl.orientations : cl.arity;
  const auto child_word = [&](int c) {  // of k = 0: by orientation; otherwise the c-th word below this one, if there is
                                        // one
    if (l.k == 0) return c * cl.words + j;
    return i * cl.arity + c < cl.words ? o * cl.words + i * cl.arity + c : -1;
  };
  u64 child_tops = 0;
  for (int c = 0; c < children; ++c) {
    const int cw = child_word(c);
    const int t = cw < 0 ? 0 : a.top[child_base + static_cast<u32>(cw)];
    child_tops |= static_cast<u64>(t) << (8 * c);
    top = t > top ? t : top;
  }
  const u32 word = tile * kTileWords + static_cast<u32>(lane);
  a.count[word] = static_cast<u8>(n);
  a.top[word] = static_cast<u8>(top);
  if (n) a.sign[word] = sign;
  const std::size_t planes_at = plane_at(word, a.planes, 0);
  u64 sig = 0;
  for (int p = top - 1; p >= 0; --p) {
    if (p < n) {
      const u64 bits = staged[p * 32 + lane];
      a.plane[planes_at + static_cast<std::size_t>(p) * kTileWords] = bits;
      sig |= bits;
    }
    u32 g = any_of(sig, l.arity);
    u64 d = 0;
    for (int c = 0; c < children; ++c)
      if (p < static_cast<int>(child_tops >> (8 * c) & 0xff)) {
        const u32 act = a.act[plane_at(child_base + static_cast<u32>(child_word(c)), a.planes, p)];
        if (l.k == 0)
          g |= act;
        else
          d |= static_cast<u64>(act) << (c * (64 / cl.arity));
      }
    g |= any_of(d, l.arity);
    a.act[planes_at + static_cast<std::size_t>(p) * kTileWords] = static_cast<u16>(g);
  }
  const int most = warp_max(top);
  if (lane == 0) {
    a.tile_top[tile] = most;
    if (most) atomicMax(&a.segment_top[l.first_segment + at.block], static_cast<u32>(most));
  }
}

// -------------------------------------------------------------------------------------------------------------- join

constexpr unsigned kJoinThreads = 128;

__global__ void join_kernel(EncodeArgs a) {
  u32 c = 0;
  while (blockIdx.x >= a.t.root_block[c + 1]) ++c;
  const u32 block = blockIdx.x - a.t.root_block[c];
  const u32* roots = a.t.roots + c * static_cast<u32>(a.t.families);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);

  // Planes of the groups' own sets: a group stays active, so it is the number of planes with activity.
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    for (int w = thread; w < l.words; w += threads) {
      const u32 word = first_word(l, block) + static_cast<u32>(w);
      const int groups = 64 / l.arity, top = a.top[word];
      for (int g = 0; g < groups; ++g) {
        int n = 0;
        for (int p = 0; p < top; ++p) n += a.act[plane_at(word, a.planes, p)] >> g & 1;
        *root_group(a, word, g) = static_cast<u8>(n);
      }
    }
  }
  __syncthreads();
  for (int b = a.t.families - 1; b > 0; --b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    if (l.words == 0 || l.temporal < 0) continue;
    const DeviceLevel& parent = a.t.levels[l.temporal];
    const int groups = 64 / l.arity, doubling = parent.family == 0 ? 0 : 1;
    for (int g = thread; g < parent.root_frames * l.per_frame; g += threads) {
      const int t = g / l.per_frame, i = g % l.per_frame;
      const int first = t << doubling;
      const int end = t == parent.root_frames - 1 ? l.root_frames : (t + 1) << doubling;
      u8* own = root_group(a, first_word(parent, block) + static_cast<u32>(g / groups), g % groups);
      u8 most = *own;
      for (int f = first; f < end && f < l.root_frames; ++f) {
        const int child = f * l.per_frame + i;
        const u8 n = *root_group(a, first_word(l, block) + static_cast<u32>(child / groups), child % groups);
        most = n > most ? n : most;
      }
      *own = most;
    }
    __syncthreads();
  }
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    const int groups = 64 / l.arity;
    int most = 0;
    for (int g = thread; g < l.words * groups; g += threads) {
      const int n = *root_group(a, first_word(l, block) + static_cast<u32>(g / groups), g % groups);
      most = n > most ? n : most;
    }
    if (most) atomicMax(&a.segment_top[l.first_segment + block], static_cast<u32>(most));
  }
  __syncthreads();
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    const int groups = 64 / l.arity;
    const int segment_top = static_cast<int>(a.segment_top[l.first_segment + block]);
    const u32 cls = block_class(l, block);
    for (int w = thread; w < l.words; w += threads) {
      const u32 word = first_word(l, block) + static_cast<u32>(w);
      const u32 exists = a.t.exists[l.exists + cls * static_cast<u32>(l.words) + static_cast<u32>(w)];
      const u8* own = root_group(a, word, 0);
      int top = segment_top;
      if (l.temporal >= 0) {
        top = 0;
        for (int g = 0; g < groups; ++g) top = own[g] > top ? own[g] : top;
      }
      a.top[word] = static_cast<u8>(top);
      for (int p = 0; p < top; ++p) {
        u32 act = exists;
        if (l.temporal >= 0) {
          act = 0;
          for (int g = 0; g < groups; ++g) act |= static_cast<u32>(own[g] > p) << g;
        }
        a.act[plane_at(word, a.planes, p)] = static_cast<u16>(act);
      }
    }
  }
}

// ----------------------------------------------------------------------------------------------------------- streams

/// Appends bits at a position of the output, which is zero there.
__device__ __forceinline__ void put_bits(u32* output, u64 at, u64 value) {
  if (!value) return;
  u32* to = output + (at >> 5);
  const u32 shift = static_cast<u32>(at & 31);
  const u64 low = value << shift;
  if (static_cast<u32>(low)) atomicOr(to, static_cast<u32>(low));
  if (static_cast<u32>(low >> 32)) atomicOr(to + 1, static_cast<u32>(low >> 32));
  const u32 high = shift ? static_cast<u32>(value >> (64 - shift)) : 0;
  if (high) atomicOr(to + 2, high);
}

/// The bits of a word at a plane, for each sub-stream; in "asked" the groups or slots that have a bit.
struct PlaneWord {
  u64 bits, fresh;       ///< of the plane; coefficients that become significant
  u32 own, own_asked;    ///< sets of this word's own groups
  u32 sets, sets_asked;  ///< B: groups with an active group below them
  u64 children, children_asked;
  u32 flags, flagged;
  u64 significance_asked;
  u32 single;  ///< groups that say the place of their only new coefficient
};

/// The state of a word from plane to plane: what is known above the plane, and the words that contain its sets.
struct WordCoder {
  const EncodeArgs& a;
  const DeviceLevel& l;
  const DeviceLevel& cl;  ///< of the children; of level 0 if there are none
  int lane, arity, j;     ///< j: number of the word in its level
  bool inside, root, below_root, has_children;
  int o, i;
  u32 cls, word, own_base, child_base;
  u64 valid, sign = 0;
  int top, count;
  u32 full;
  std::size_t planes_at;
  int child_planes, children;
  u64 child_tops = 0;
  u64 exists = 0;  ///< slots (k >= 1) or groups (k = 0) with child groups
  u32 has_sets = 0;
  u64 sibling_tops = 0;      ///< k = 1: of the other orientations' words with this number
  u32 below = 0;             ///< k = 1: root groups with a child in this word
  u64 sig = 0, found = 0;    ///< significant so far; child groups active so far
  u32 before = 0, open = 0;  ///< groups active, groups open so far

  __device__ __forceinline__ WordCoder(const EncodeArgs& args, const DeviceTile& at, const DeviceLevel& level, u32 tile)
      : a(args),
        l(level),
        cl(args.t.levels[level.child >= 0 ? level.child : 0]),
        lane(static_cast<int>(threadIdx.x % 32)),
        arity(level.arity),
        j(static_cast<int>(at.first) + lane),
        inside(j < level.all_words),
        root(level.k == 0),
        below_root(level.k == 1),
        has_children(level.child >= 0),
        o(inside ? j / level.words : 0),
        i(inside ? j - o * level.words : 0),
        cls(block_class(level, at.block)),
        word(tile * kTileWords + static_cast<u32>(lane)) {
    valid = inside ? a.t.valid[l.valid + cls * static_cast<u32>(l.all_words) + static_cast<u32>(j)] : 0;
    top = inside ? a.top[word] : 0;
    count = inside ? a.count[word] : 0;
    sign = count ? a.sign[word] : 0;
    full = all_of(valid, arity);
    planes_at = plane_at(word, a.planes, 0);
    find_children(at.block);
    own_base = first_word(l, at.block);
    if (below_root && inside) find_siblings();
  }

  /// The words below this one (k >= 1), or the orientations' words with this number (k = 0).
  __device__ __forceinline__ void find_children(u32 block) {
    child_planes = has_children ? static_cast<int>(a.segment_top[cl.first_segment + block]) : 0;
    child_base = has_children ? first_word(cl, block) : 0;
    children = !has_children || !inside ? 0 : root ? cl.orientations : cl.arity;
    for (int c = 0; c < children; ++c) {
      const int cw = root ? c * cl.words + j : i * cl.arity + c < cl.words ? o * cl.words + i * cl.arity + c : -1;
      if (cw >= 0) child_tops |= static_cast<u64>(a.top[child_base + static_cast<u32>(cw)]) << (8 * c);
      if (root) exists |= a.t.child[l.child_mask + cls * l.child_mask_size + static_cast<u32>(cw)];
    }
    if (!root && has_children && inside)
      exists = a.t.child[l.child_mask + cls * l.child_mask_size + static_cast<u32>(j)];
    has_sets = root ? static_cast<u32>(exists) : any_of(exists, arity);
  }
  __device__ __forceinline__ void find_siblings() {
    const DeviceLevel& up = a.t.levels[l.up];
    below = static_cast<u32>(a.t.child[up.child_mask + cls * up.child_mask_size + static_cast<u32>(j)]);
    for (int c = 0; c < l.orientations; ++c)
      sibling_tops |= static_cast<u64>(a.top[own_base + static_cast<u32>(c * l.words + i)]) << (8 * c);
  }
  /// k = 0 with a temporal parent: planes from which each group can be asked, a byte each. (Not a member: it is indexed
  /// at run time, and the whole object would have to lie in memory.)
  __device__ __forceinline__ void find_temporal_parents(u32 block, u64 (&asked_from)[2]) const {
    if (!root || l.temporal < 0 || !inside) return;
    const DeviceLevel& parent = a.t.levels[l.temporal];
    const int groups = 64 / arity;
    const u32 mask = a.t.exists[l.exists + cls * static_cast<u32>(l.words) + static_cast<u32>(j)];
    for (int g = 0; g < groups; ++g) {
      if (!(mask >> g & 1)) continue;
      const int up = temporal_parent(l, parent, j * groups + g);
      const u32 planes = parent.temporal < 0
                             ? a.segment_top[parent.first_segment + block]
                             : *root_group(a, first_word(parent, block) + static_cast<u32>(up / groups), up % groups);
      asked_from[g >> 3] |= static_cast<u64>(planes) << (8 * (g & 7));
    }
  }

  /// B and D: sets below this word.
  __device__ __forceinline__ void sets_below(int p, u32 active, u64 now, PlaneWord& w) const {
    if (p >= child_planes) return;
    for (int c = 0; c < children; ++c)
      if (p < static_cast<int>(child_tops >> (8 * c) & 0xff)) {
        const int cw = root ? c * cl.words + j : o * cl.words + i * cl.arity + c;
        const u32 act = a.act[plane_at(child_base + static_cast<u32>(cw), a.planes, p)];
        if (root)
          w.sets |= act;
        else
          w.children |= static_cast<u64>(act) << (c * (64 / cl.arity));
      }
    if (!root) w.sets = any_of(w.children, arity);
    const u32 implied = root ? 0 : active & ~before & ~any_of(now, arity);
    w.sets_asked = active & ~open & ~implied & has_sets;
    if (!root) w.children_asked = expand(w.sets, arity) & exists & ~found;
  }
  /// A, and D at k = 1: sets of this word's own groups.
  __device__ __forceinline__ void own_sets(int p, u32 active, const u64 (&asked_from)[2], PlaneWord& w) const {
    if (below_root) {
      u32 any = 0;
      for (int c = 0; c < l.orientations; ++c)
        if (p < static_cast<int>(sibling_tops >> (8 * c) & 0xff))
          any |= a.act[plane_at(own_base + static_cast<u32>(c * l.words + i), a.planes, p)];
      w.own_asked = inside ? any & below & ~before : 0;
      w.own = active;
    } else if (root && l.temporal >= 0) {
      TRIVELET_UNROLL
      for (int g = 0; g < 16; ++g)
        w.own_asked |= static_cast<u32>(p < static_cast<int>(asked_from[g >> 3] >> (8 * (g & 7)) & 0xff)) << g;
      w.own_asked &= ~before;
      w.own = active;
    }
  }
  /// F, S, P: coefficients that become significant.
  __device__ __forceinline__ void coefficients(u32 active, PlaneWord& w) const {
    const u64 unknown = expand(active, arity) & valid & ~sig;
    const u32 fresh_groups = any_of(w.fresh, arity);
    const u32 newly = active & ~before & full;
    const u32 quiet = active & before & ~any_of(sig, arity) & full;
    w.flagged = newly | quiet;
    w.single = l.fine ? one_of(w.fresh, arity) & newly : 0;
    w.flags = l.fine ? w.single | (fresh_groups & quiet) : fresh_groups;
    const u32 raw =
        (active & ~w.flagged) | (l.fine ? (newly & ~w.single) | (quiet & fresh_groups) : w.flagged & fresh_groups);
    w.significance_asked = expand(raw, arity) & unknown;
  }
  /// P: bit 0 of all places, then bit 1, then with 8 slots to a group bit 2.
  __device__ __forceinline__ u64 places(const PlaneWord& w, u32 singles) const {
    u64 v = extract_bits(any_of(w.fresh & 0xaaaaaaaaaaaaaaaaull, arity), w.single) |
            static_cast<u64>(extract_bits(any_of(w.fresh & 0xccccccccccccccccull, arity), w.single)) << singles;
    if (arity == 8)
      v |= static_cast<u64>(extract_bits(any_of(w.fresh & 0xf0f0f0f0f0f0f0f0ull, arity), w.single)) << (2 * singles);
    return v;
  }
};

/// The parts of a segment's planes: the layer, and where the part begins.
struct PartCursor {
  const EncodeArgs& a;
  const u8* low;  ///< by layer
  u32 first;      ///< part of layer 0
  int layer = 0;
  u64 begin = 0;

  __device__ __forceinline__ PartCursor(const EncodeArgs& args, u32 level, u32 segment, bool there)
      : a(args),
        low(args.t.low + level * static_cast<u32>(args.t.layers)),
        first(segment * static_cast<u32>(args.t.layers)) {
    begin = there ? a.part_offset[first] * 8 : 0;
  }
  __device__ __forceinline__ void move_to(int plane) {
    if (low[layer] <= plane) return;
    while (low[layer] > plane) ++layer;
    begin = a.part_offset[first + static_cast<u32>(layer)] * 8;
  }
};

/// kWrite false: counts the bits of every sub-stream per plane. True: writes them.
template <bool kWrite>
__global__ void __launch_bounds__(kWarps * 32) streams_kernel(EncodeArgs a) {
  if (kWrite && *reinterpret_cast<const u64*>(a.total) > a.capacity) return;
  u32 tile;
  if (!find_tile(0, a.t.tile_count, tile)) return;
  const DeviceTile at = a.t.tiles[tile];
  const DeviceLevel& l = a.t.levels[at.level];
  const int rows = tile_rows(a, l, tile, at.block);
  if (rows == 0) return;
  WordCoder c(a, at, l, tile);
  u64 asked_from[2] = {0, 0};
  c.find_temporal_parents(at.block, asked_from);
  PartCursor part(a, at.level, l.first_segment + at.block, kWrite);
  PartCursor child_part(a, static_cast<u32>(c.has_children ? l.child : 0), c.cl.first_segment + at.block,
                        kWrite && c.has_children);
  for (int p = rows - 1; p >= 0; --p) {
    PlaneWord w{};
    w.bits = p < c.count ? a.plane[c.planes_at + static_cast<std::size_t>(p) * kTileWords] : 0;
    const u32 active = p < c.top ? a.act[c.planes_at + static_cast<std::size_t>(p) * kTileWords] : 0;
    w.fresh = w.bits & ~c.sig;
    const u64 now = c.sig | w.bits;
    c.sets_below(p, active, now, w);
    c.own_sets(p, active, asked_from, w);
    c.coefficients(active, w);
    const u32 singles = count_bits(w.single);

    // Two sub-streams in a number.
    u32 c0 = count_bits(w.own_asked) | count_bits(w.sets_asked) << 16;
    u32 c1 = count_bits(w.children_asked) | count_bits(c.sig) << 16;
    u32 c2 = count_bits(w.flagged) | count_bits(w.significance_asked) << 16;
    u32 c3 = singles * (c.arity == 4 ? 2 : 3) | count_bits(w.fresh) << 16;
    u32* row =
        a.bits +
        (static_cast<std::size_t>(tile) * static_cast<std::size_t>(a.planes) + static_cast<std::size_t>(p)) * kStages;
    const bool something = __any_sync(kAllLanes, (c0 | c1 | c2 | c3) != 0) != 0;
    if constexpr (!kWrite) {
      if (something) {
        c0 = warp_sum(c0);
        c1 = warp_sum(c1);
        c2 = warp_sum(c2);
        c3 = warp_sum(c3);
      }
      if (c.lane < 4) {
        const u32 sum = c.lane == 0 ? c0 : c.lane == 1 ? c1 : c.lane == 2 ? c2 : c3;
        row[2 * c.lane] = sum & 0xffff;
        row[2 * c.lane + 1] = sum >> 16;
      }
    } else if (something) {
      part.move_to(p);
      if (c.has_children) child_part.move_to(p);
      const u32 e0 = sum_before(c0, c.lane), e1 = sum_before(c1, c.lane), e2 = sum_before(c2, c.lane),
                e3 = sum_before(c3, c.lane);
      const auto put = [&](const PartCursor& to, Stage stage, u32 at_bit, u64 value) {
        put_bits(a.output, to.begin + row[stage] + at_bit, value);
      };
      if (w.own_asked) put(part, kOwnSets, e0 & 0xffff, extract_bits(w.own, w.own_asked));
      if (w.sets_asked) put(child_part, kSets, e0 >> 16, extract_bits(w.sets, w.sets_asked));
      if (w.children_asked) put(child_part, kChildren, e1 & 0xffff, extract_bits(w.children, w.children_asked));
      if (c.sig & w.bits) put(part, kRefinement, e1 >> 16, extract_bits(w.bits, c.sig));
      if (w.flags) put(part, kFlags, e2 & 0xffff, extract_bits(w.flags, w.flagged));
      if (w.fresh) {
        put(part, kSignificance, e2 >> 16, extract_bits(w.fresh, w.significance_asked));
        if (w.single) put(part, kPositions, e3 & 0xffff, c.places(w, singles));
        put(part, kSigns, e3 >> 16, extract_bits(c.sign, w.fresh));
      }
    }
    c.sig = now;
    c.before = active;
    c.open = w.sets;
    c.found = w.children;
  }
}

// ------------------------------------------------------------------------------------------------------------- place

/// A warp per segment.
__global__ void __launch_bounds__(kWarps * 32) place_kernel(EncodeArgs a) {
  const u32 s = blockIdx.x * kWarps + threadIdx.x / 32;
  if (s >= a.t.segment_count) return;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const DeviceSegment at = a.t.segments[s];
  const DeviceLevel& l = a.t.levels[at.level];
  const u8* low = a.t.low + at.level * static_cast<u32>(a.t.layers);
  u32* part = a.part_bits + s * static_cast<u32>(a.t.layers);
  for (int i = lane; i < a.t.layers; i += 32) part[i] = 0;
  __syncwarp();
  const int top = static_cast<int>(a.segment_top[s]);
  const u32 own = l.first_tile + at.block * static_cast<u32>(l.tiles);
  const DeviceLevel& up = a.t.levels[l.up >= 0 ? l.up : 0];
  const u32 parent = up.first_tile + at.block * static_cast<u32>(up.tiles);
  int layer = 0;
  u32 bits = 0;
  for (int p = top - 1; p >= 0; --p) {
    if (low[layer] > p) {
      if (lane == 0) part[layer] = bits;
      while (low[layer] > p) ++layer;
      bits = 0;
    }
    for (int stage = 0; stage < kStages; ++stage) {
      // B and D are in the rows of the level above, except D at k = 1
      const bool from_parent = stage == kSets || stage == kChildren;
      if (from_parent && (l.k == 0 || (stage == kChildren && l.k == 1))) continue;
      if (stage == kOwnSets && l.k != 0) continue;
      if (stage == kPositions && !l.fine) continue;
      const u32 tiles = from_parent ? static_cast<u32>(up.tiles) : static_cast<u32>(l.tiles);
      const u32 first = from_parent ? parent : own;
      const DeviceLevel& of = from_parent ? up : l;
      const auto run = [&](int which, u32 from, u32 count, const DeviceLevel& level) {
        for (u32 t0 = 0; t0 < count; t0 += 32) {
          const u32 t = t0 + static_cast<u32>(lane);
          const bool there = t < count && p < tile_rows(a, level, from + t, at.block);
          u32* c =
              a.bits +
              (static_cast<std::size_t>(from + t) * static_cast<std::size_t>(a.planes) + static_cast<std::size_t>(p)) *
                  kStages +
              which;
          const u32 v = there ? *c : 0;
          const u32 e = sum_before(v, lane);
          if (there) *c = bits + e;
          bits += __shfl_sync(kAllLanes, e + v, 31);
        }
      };
      run(stage, first, tiles, of);
      if (stage == kSets && l.k == 1) run(kOwnSets, own, static_cast<u32>(l.tiles), l);
    }
  }
  if (lane == 0 && top > 0) part[layer] = bits;
}

// ------------------------------------------------------------------------------------------------------------- order

constexpr unsigned kOrderThreads = 1024;

/// One block: where every part begins.
__global__ void __launch_bounds__(kOrderThreads) order_kernel(EncodeArgs a) {
  u64* sums = dynamic_shared<u64>();  // of the warps
  const u32 parts = a.t.segment_count * static_cast<u32>(a.t.layers);
  const u32 thread = threadIdx.x;
  const int lane = static_cast<int>(thread % 32);
  u64 carry = 0;
  for (u32 first = 0; first < parts; first += kOrderThreads) {
    const u32 i = first + thread;
    const u32 part = i < parts ? a.t.part_order[i] : 0;
    const u64 size = i < parts ? (a.part_bits[part] + 7) / 8 : 0;
    const u64 before = sum_before(size, lane);
    if (lane == 31) sums[thread / 32] = before + size;
    __syncthreads();
    if (thread < 32) {
      const u64 v = sums[thread];
      const u64 e = sum_before(v, lane);
      sums[thread] = e;
      if (lane == 31) sums[32] = e + v;
    }
    __syncthreads();
    if (i < parts) a.part_offset[part] = carry + sums[thread / 32] + before;
    carry += sums[32];
    __syncthreads();
  }
  if (thread == 0) {
    a.total[0] = static_cast<u32>(carry);
    a.total[1] = static_cast<u32>(carry >> 32);
  }
}

/// Zeroes the output as far as it is used (and 16 bytes more).
__global__ void clear_kernel(EncodeArgs a) {
  const u64 total = *reinterpret_cast<const u64*>(a.total);
  if (total > a.capacity) return;
  const u64 words = (total + 15) / 16 + 1;
  int4* to = reinterpret_cast<int4*>(a.output);
  for (u64 i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += static_cast<u64>(gridDim.x) * blockDim.x)
    to[i] = make_int4(0, 0, 0, 0);
}

std::size_t padded_output(std::size_t capacity) { return (capacity + 15) / 16 * 4 + 8; }

}  // namespace

// ---------------------------------------------------------------------------------------------------------- launchers

ZerotreeEncoder::ZerotreeEncoder(const TreePlan& plan, int planes, std::size_t capacity)
    : plan_(&plan), planes_(planes), capacity_(capacity) {
  require(planes >= 1 && planes <= 30, ErrorKind::kBadArgument, std::to_string(planes) + " bit planes; must be 1..30");
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  planes_memory_ = DeviceBuffer<u64>(words * p);
  sign_ = DeviceBuffer<u64>(words);
  act_ = DeviceBuffer<u16>(words * p);
  count_ = DeviceBuffer<u8>(words);
  top_ = DeviceBuffer<u8>(words);
  root_planes_ = DeviceBuffer<u8>(std::max<std::size_t>((words - plan.first_root_word()) * 16, 1));
  tile_top_ = DeviceBuffer<i32>(plan.tiles());
  bits_ = DeviceBuffer<u32>(static_cast<std::size_t>(plan.tiles()) * p * kStages);
  meta_ = DeviceBuffer<u32>(meta_size() + 2);
  part_offset_ = DeviceBuffer<u64>(plan.parts());
  output_ = DeviceBuffer<u32>(padded_output(capacity));
}

std::size_t ZerotreeEncoder::device_bytes(const TreePlan& plan, int planes, std::size_t capacity) {
  const std::size_t words = static_cast<std::size_t>(plan.tiles()) * kTileWords, p = static_cast<std::size_t>(planes);
  return words * (p * 10 + 8 + 2) + (words - plan.first_root_word()) * 16 + plan.tiles() * (4 + p * 4 * kStages) +
         (static_cast<std::size_t>(plan.segments()) + plan.parts() + 4) * 4 + plan.parts() * 8 +
         padded_output(capacity) * 4;
}
std::size_t ZerotreeEncoder::device_bytes() const { return device_bytes(*plan_, planes_, capacity_); }

ZerotreeEncodeArgs ZerotreeEncoder::args() const {
  EncodeArgs a{};
  a.t = plan_->tables();
  a.planes = planes_;
  a.plane = planes_memory_.data();
  a.sign = sign_.data();
  a.act = act_.data();
  a.count = count_.data();
  a.top = top_.data();
  a.root_planes = root_planes_.data();
  a.first_root_word = plan_->first_root_word();
  a.tile_top = tile_top_.data();
  a.bits = bits_.data();
  a.total = meta_.data();
  a.segment_top = meta_.data() + 2;
  a.part_bits = a.segment_top + plan_->segments();
  a.part_offset = part_offset_.data();
  a.output = output_.data();
  a.capacity = capacity_;
  return a;
}

template <class Q>
void ZerotreeEncoder::encode(const Q* coefficients, const Stream& stream) {
  const EncodeArgs a = args();
  check(cudaMemsetAsync(meta_.data(), 0, meta_.size() * sizeof(u32), stream.get()), "cudaMemsetAsync");
  const std::size_t shared = kWarps * static_cast<std::size_t>(planes_) * 32 * sizeof(u64);
  for (int d = 0; d < plan_->distances(); ++d) {
    const u32 first = plan_->first_tile(d), end = plan_->first_tile(d + 1);
    if (first < end)
      launch("slice_kernel", slice_kernel<Q>, dim3((end - first + kWarps - 1) / kWarps), dim3(kWarps * 32), shared,
             stream.get(), a, coefficients, first, end);
  }
  const u32 tile_blocks = (plan_->tiles() + kWarps - 1) / kWarps;
  launch("join_kernel", join_kernel, dim3(plan_->blocks()), dim3(kJoinThreads), 0, stream.get(), a);
  launch("streams_kernel", streams_kernel<false>, dim3(tile_blocks), dim3(kWarps * 32), 0, stream.get(), a);
  launch("place_kernel", place_kernel, dim3((plan_->segments() + kWarps - 1) / kWarps), dim3(kWarps * 32), 0,
         stream.get(), a);
  launch("order_kernel", order_kernel, dim3(1), dim3(kOrderThreads), 33 * sizeof(u64), stream.get(), a);
  write(stream);
}

void ZerotreeEncoder::write(const Stream& stream) {
  const EncodeArgs a = args();
  launch("clear_kernel", clear_kernel, dim3(256), dim3(256), 0, stream.get(), a);
  launch("streams_kernel", streams_kernel<true>, dim3((plan_->tiles() + kWarps - 1) / kWarps), dim3(kWarps * 32), 0,
         stream.get(), a);
}

void ZerotreeEncoder::grow(std::size_t bytes, const Stream& stream) {
  stream.synchronize();
  output_ = {};
  output_ = DeviceBuffer<u32>(padded_output(bytes));
  capacity_ = bytes;
  write(stream);
}

template void ZerotreeEncoder::encode(const std::int16_t*, const Stream&);
template void ZerotreeEncoder::encode(const std::int32_t*, const Stream&);

}  // namespace trivelet::gpu
