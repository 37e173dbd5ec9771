// The dense profile's decisions on the device (FORMAT.md "Dense profile"; codec/entropy/dense/dense_passes.h is the
// reference).
//
// Both directions go through a segment in batches of up to 32 quads of coefficients, or groups, that have a decision.
// First every lane gathers what was known around its quad before the batch and packs it into three words, in the same
// way in encoder and decoder. The serial part then adds the influence of the quads to the left and above, as far as
// they are in the same batch, and of the quad's own earlier coefficients (a change of 1 << plane in a neighbour adds
// exactly its weight to the energy), chooses the context, and codes. An encoder knows that influence beforehand, so all
// lanes do this part at once and only list the decisions; in the decoder one lane does it quad by quad.
#pragma once

#include "codec/entropy/dense/dense_arithmetic.h"
#include "gpu/entropy/zerotree.cuh"
#include "gpu/plan/dense_plan.h"

namespace trivelet::gpu {

// -------------------------------------------------------------------------------------------------------------- values
// Known magnitudes with the sign in the highest bit: 15 planes in 16 bits, 30 in 32.

template <class V>
inline constexpr int kSignBit = sizeof(V) * 8 - 1;
template <class V>
__device__ __forceinline__ u32 magnitude_bits(u32 v) {
  return v & ((1u << kSignBit<V>)-1);
}
template <class V>
__device__ __forceinline__ bool is_negative(u32 v) {
  return v >> kSignBit<V> & 1;
}

/// The known part of magnitude >> plane before the first pass of the plane, after it, and after the second.
__device__ __forceinline__ u32 known_before(u32 shifted) { return shifted & ~1u; }
__device__ __forceinline__ u32 known_between(u32 shifted) { return shifted < 2 ? shifted : shifted & ~1u; }

/// Arrays of a segment's block. `up`: the level it depends on, its spatial parent's or for k = 0 its temporal one's.
template <class V>
struct DenseSegment {
  const DenseLevel* d;
  const DenseLevel* up_d;
  int k, arity, orientations, up_arity;
  V* value;
  u8 *group, *any, *all;
  V* up_value;
  u8 *up_group, *up_open, *up_closed;
  const DenseBox *valid, *exists;
  int up_family, up_root_frames;
};

/// Arrays of all segments.
template <class V>
struct DenseArrays {
  V* value;
  u8 *group, *open, *closed, *any, *all;
};

template <class V>
__device__ __forceinline__ DenseSegment<V> dense_segment(const TreeTables& t, const DenseTables& dense,
                                                         const DenseArrays<V>& a, u32 level, u32 block) {
  DenseSegment<V> s{};
  const DeviceLevel& l = t.levels[level];
  const DenseLevel& d = dense.levels[level];
  s.d = &d;
  s.k = l.k;
  s.arity = l.arity;
  s.orientations = l.orientations;
  s.value = a.value + d.value + static_cast<u64>(block) * d.value_span;
  s.group = a.group + d.group + static_cast<u64>(block) * d.group_span;
  s.any = a.any + d.quad + static_cast<u64>(block) * d.quad_span;
  s.all = a.all + d.quad + static_cast<u64>(block) * d.quad_span;
  const u32 cls = block_class(l, block);
  s.valid = d.valid[cls];
  s.exists = d.exists[cls];
  const int up = l.k > 0 ? l.up : l.temporal;
  if (up >= 0) {
    const DenseLevel& p = dense.levels[up];
    s.up_d = &p;
    s.up_arity = t.levels[up].arity;
    s.up_family = t.levels[up].family;
    s.up_root_frames = t.levels[up].root_frames;
    s.up_value = a.value + p.value + static_cast<u64>(block) * p.value_span;
    s.up_group = a.group + p.group + static_cast<u64>(block) * p.group_span;
    s.up_open = a.open + p.group + static_cast<u64>(block) * p.group_span;
    s.up_closed = a.closed + p.group + static_cast<u64>(block) * p.group_span;
  }
  return s;
}

/// Four coefficients in a row; the middle two are a quad's: columns 2x - 1 .. 2x + 2.
template <class V>
__device__ __forceinline__ void load_row(const V* row, int x, int groups, bool there, u32 out[4]) {
  out[0] = out[1] = out[2] = out[3] = 0;
  if (!there) return;
  const V* p = row + 2 * x;
  if constexpr (sizeof(V) == 2) {
    const u32 both = *reinterpret_cast<const u32*>(p);
    out[1] = both & 0xffff;
    out[2] = both >> 16;
  } else {
    const uint2 both = *reinterpret_cast<const uint2*>(p);
    out[1] = both.x;
    out[2] = both.y;
  }
  if (x > 0) out[0] = p[-1];
  if (x + 1 < groups) out[3] = p[2];
}

/// Where a quad or group of a flat index lies.
struct Place {
  int o, t, y, x;
};
__device__ __forceinline__ Place place(u32 index, int log2_groups, int frames) {
  const int mask = (1 << log2_groups) - 1, frame = static_cast<int>(index >> (2 * log2_groups));
  return {frame / frames, frame % frames, static_cast<int>(index >> log2_groups) & mask,
          static_cast<int>(index) & mask};
}

// --------------------------------------------------------------------------------------------------------------- quads

/// Energy per coefficient in a byte each; the rest as the shifts below say; signs per coefficient in a byte each.
struct alignas(16) QuadPack {
  u32 energy, info, signs, index;
};
// info of a first pass: 4 x 3 bits of the temporal class, then
inline constexpr int kParentAt = 12, kValidAt = 14, kSignificantAt = 18, kFreshAt = 22, kFoundAt = 23, kImpliedAt = 24;
// info of a refinement: 4 x 2 bits of the size, then
inline constexpr int kRefinedAt = 8;

/// The orientation, for a decoder.
inline constexpr int kOrientationAt = 28;

/// What a lane's quad will turn out to be, known to the encoder; and the quad to the left of it. Bits 0..3: newly
/// significant, or the refinement bits; 4..7: negative.
struct QuadTruth {
  u32 own, left;
};

/// The influence of the row above, in the same batch, on a quad of coefficients: whether its lower coefficients became
/// significant: left one above, its right neighbour's left one, the left neighbour's right one, right one above; and
/// the signs of the first and the last.
inline constexpr int kAboveLeft = 0, kAboveLeftOfNext = 1, kAboveRightOfLast = 2, kAboveRight = 3, kAboveSigns = 4;

/// Sums of neighbours are modulo 2^32 before the shift: a byte keeps enough for small additions.
template <class V>
__device__ __forceinline__ u32 energy_byte(u32 sum, int plane) {
  if constexpr (sizeof(V) == 2) {
    return sum < 128 ? sum : 128;
  } else {
    if (plane > 0) sum &= (1u << (32 - plane)) - 1;
    const u32 to_wrap = plane > 0 ? (1u << (32 - plane)) - sum : 0u - sum;
    return sum < 200 ? sum : to_wrap <= 16 ? 256 - to_wrap : 200;
  }
}
template <class V>
__device__ __forceinline__ u32 energy_mask(int plane) {
  return sizeof(V) > 2 && plane > 24 ? (1u << (32 - plane)) - 1 : 255;
}

using dense::NeighbourWeights;

template <class V>
__device__ __forceinline__ int sign_of(u32 v, int plane, u32 least) {
  return magnitude_bits<V>(v) >> plane >= least ? (is_negative<V>(v) ? -1 : 1) : 0;
}

/// Energies of a quad; `seen` and `not_yet` are the known neighbours before and after the row.
template <class V, class Seen, class NotYet>
__device__ __forceinline__ u32 quad_energies(const u32 rows[4][4], NeighbourWeights w, int plane, Seen seen,
                                             NotYet not_yet) {
  u32 e[4][4];
  TRIVELET_UNROLL
  for (int c = 0; c < 4; ++c) e[0][c] = seen(magnitude_bits<V>(rows[0][c]) >> plane);
  TRIVELET_UNROLL
  for (int r = 1; r < 4; ++r) {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) e[r][c] = not_yet(magnitude_bits<V>(rows[r][c]) >> plane);
  }
  u32 packed = 0;
  TRIVELET_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int r = 1 + (j >> 1), c = 1 + (j & 1);
    const u32 sum = w.horizontal * (e[r][c - 1] + e[r][c + 1]) + w.vertical * (e[r - 1][c] + e[r + 1][c]) +
                    e[r - 1][c - 1] + e[r - 1][c + 1] + e[r + 1][c - 1] + e[r + 1][c + 1];
    packed |= energy_byte<V>(sum, plane) << (8 * j);
  }
  return packed;
}

template <class V>
__device__ __forceinline__ void load_quad(const DenseSegment<V>& s, int o, int t, int y, int x, u32 rows[4][4]) {
  const int side = 2 * s.d->groups;
  const V* p = s.value + (static_cast<std::ptrdiff_t>(o * s.d->frames + t) * side + 2 * y) * side;
  load_row(p - side, x, s.d->groups, y > 0, rows[0]);
  load_row(p, x, s.d->groups, true, rows[1]);
  load_row(p + side, x, s.d->groups, true, rows[2]);
  load_row(p + 2 * side, x, s.d->groups, y + 1 < s.d->groups, rows[3]);
}

/// The group's planes of activity, 0 outside.
template <class V>
__device__ __forceinline__ int group_planes(const DenseSegment<V>& s, int o, int t, int y, int x) {
  const int n = s.d->groups;
  return s.group[(static_cast<std::ptrdiff_t>(o * s.d->groups_t + t) * n + y) * n + x];
}

/// Prepares a quad of the first pass. False if it has nothing to code.
template <class V>
__device__ __forceinline__ bool pack_significance(const DenseSegment<V>& s, int o, int t, int y, int x, int plane,
                                                  QuadPack& q, QuadTruth& truth) {
  const DenseLevel& d = *s.d;
  const DenseBox v = s.valid[o];
  if (2 * x >= v.x || 2 * y >= v.y || t >= v.t) return false;
  const bool octets = d.depth == 2;
  const int active = group_planes(s, o, octets ? t >> 1 : t, y, x);
  if (active <= plane) return false;
  u32 rows[4][4];
  load_quad(s, o, t, y, x, rows);
  const u32 right = 2 * x + 1 < v.x, below = 2 * y + 1 < v.y;
  const u32 valid = 1 | right << 1 | below << 2 | (right & below) << 3;
  u32 significant = 0;
  truth = {};
  TRIVELET_UNROLL
  for (int j = 0; j < 4; ++j) {
    const u32 c = rows[1 + (j >> 1)][1 + (j & 1)], m = magnitude_bits<V>(c) >> plane;
    significant |= static_cast<u32>(m >= 2) << j;
    truth.own |= static_cast<u32>(m == 1) << j | static_cast<u32>(is_negative<V>(c)) << (4 + j);
    if (!(j & 1)) {
      const u32 l = rows[1 + (j >> 1)][0];
      truth.left |= static_cast<u32>(magnitude_bits<V>(l) >> plane == 1) << (j + 1) |
                    static_cast<u32>(is_negative<V>(l)) << (5 + j);
    }
  }
  if ((valid & ~significant) == 0) return false;

  q.energy = quad_energies<V>(rows, dense::neighbour_weights(s.k, o), plane, known_between, known_before);
  const int side = 2 * d.groups;
  const std::ptrdiff_t frame = static_cast<std::ptrdiff_t>(side) * side;
  const V* here = s.value + static_cast<std::ptrdiff_t>(o * d.frames + t) * frame + 2 * y * side + 2 * x;
  u32 info = 0, signs = 0;
  u32 before_any = 0;
  TRIVELET_UNROLL
  for (int j = 0; j < 4; ++j) {
    const int r = 1 + (j >> 1), c = 1 + (j & 1);
    const V* p = here + (j >> 1) * side + (j & 1);
    const u32 before = t > 0 ? p[-frame] : 0, after = t + 1 < d.frames ? p[frame] : 0;
    const u32 b = known_between(magnitude_bits<V>(before) >> plane),
              f = known_before(magnitude_bits<V>(after) >> plane);
    before_any |= b;
    info |= dense::octave_class(b + f) << (3 * j);
    const int h = sign_of<V>(rows[r][c - 1], plane, 2) + sign_of<V>(rows[r][c + 1], plane, 2);
    const int vertical = sign_of<V>(rows[r - 1][c], plane, r == 1 ? 1 : 2) + sign_of<V>(rows[r + 1][c], plane, 2);
    const int time = sign_of<V>(before, plane, 1) + sign_of<V>(after, plane, 2);
    signs |= static_cast<u32>((h + 2) | (vertical + 2) << 3 | (time < 0 ? 0 : time > 0 ? 2 : 1) << 6) << (8 * j);
  }
  if (s.k >= 2) {
    const int n = 2 * s.up_d->groups;
    const V up = s.up_value[(static_cast<std::ptrdiff_t>(o * s.up_d->frames + (octets ? t >> 1 : t)) * n + y) * n + x];
    info |= dense::stage(magnitude_bits<V>(up) >> plane) << kParentAt;
  }
  const u32 fresh = active == plane + 1;
  info |= valid << kValidAt | significant << kSignificantAt | fresh << kFreshAt;
  if (fresh && octets && (t & 1) && before_any) info |= 1u << kFoundAt;
  if (d.finest && (!octets || (t & 1) || t + 1 == v.t)) info |= 1u << kImpliedAt;
  q.info = info;
  q.signs = signs;
  return true;
}

/// Sums byte by byte. With 16-bit values no byte overflows; with wider ones only if sums do, modulo 2^32.
template <class V>
__device__ __forceinline__ u32 add_bytes(u32 a, u32 b) {
  if constexpr (sizeof(V) == 2) return a + b;
  return ((a & 0x7f7f7f7fu) + (b & 0x7f7f7f7fu)) ^ ((a ^ b) & 0x80808080u);
}
/// What neighbours that came in the same batch add to the energies of a quad.
template <class V>
__device__ __forceinline__ u32 energy_around(u32 energy, u32 left, u32 above, NeighbourWeights w) {
  if (left & 2) energy = add_bytes<V>(energy, w.horizontal | 1u << 16);
  if (left & 8) energy = add_bytes<V>(energy, 1u | w.horizontal << 16);
  if (above >> kAboveLeft & 1) energy = add_bytes<V>(energy, w.vertical | 1u << 8);
  if (above >> kAboveRight & 1) energy = add_bytes<V>(energy, 1u | w.vertical << 8);
  if (above >> kAboveRightOfLast & 1) energy = add_bytes<V>(energy, 1u);
  if (above >> kAboveLeftOfNext & 1) energy = add_bytes<V>(energy, 1u << 8);
  return energy;
}
/// What the quad's own coefficient j adds.
template <class V>
__device__ __forceinline__ u32 energy_after(u32 energy, int j, NeighbourWeights w) {
  return add_bytes<V>(energy, j == 0   ? w.horizontal << 8 | w.vertical << 16 | 1u << 24
                              : j == 1 ? 1u << 16 | w.vertical << 24
                              : j == 2 ? w.horizontal << 24
                                       : 0u);
}

/// Codes a quad's new coefficients. `left`: the result of the quad to the left of it, as in QuadTruth; `above`: see
/// kAboveLeft; `context` and `sign_context` are added to the numbers of contexts of significance and signs. These loops
/// are not unrolled: in the decoder one lane runs them, and the instruction cache limits.
template <class V, class Coder>
__device__ __forceinline__ u32 code_significance(Coder& coder, const QuadPack& q, u32 left, u32 above, u32 truth,
                                                 u32 context, u32 sign_context, NeighbourWeights w, u32 mask) {
  constexpr u32 kTime = dense::kParents * dense::kPlaces, kEnergy = dense::kTimes * kTime;
  const u32 valid = q.info >> kValidAt & 15;
  const u32 fresh = q.info >> kFreshAt & 1, implied = fresh & q.info >> kImpliedAt;
  const int last = 31 - __clz(static_cast<int>(valid));
  u32 found = q.info >> kFoundAt & 1, own = 0;
  const u32 at = context + dense::kSignificance + (q.info >> kParentAt & 3) * dense::kPlaces;
  u32 energy = q.energy, signs = q.signs;
  if ((left | above) & 15) {
    energy = energy_around<V>(energy, left, above, w);
    const auto add = [&](u32 came, u32 negative, u32 one) { signs += !came ? 0 : negative ? 0u - one : one; };
    add(left & 2, left & 32, 1u);
    add(left & 8, left & 128, 1u << 16);
    add(above >> kAboveLeft & 1, above >> kAboveSigns & 1, 8u);
    add(above >> kAboveRight & 1, above >> (kAboveSigns + 1) & 1, 8u << 8);
  }
  TRIVELET_UNROLL_BY(1)
  for (u32 todo = valid & ~(q.info >> kSignificantAt); todo; todo &= todo - 1) {
    const int j = __ffs(static_cast<int>(todo)) - 1;
    bool yes = implied && j == last && !found;
    if (!yes) {
      const u32 place = dense::place_class(fresh, found, j);
      yes = coder.code(
          at + coder.energy_class(energy >> (8 * j) & mask) * kEnergy + (q.info >> (3 * j) & 7) * kTime + place,
          truth >> j & 1);
    }
    if (!yes) continue;
    found = 1;
    const u32 around = signs >> (8 * j), h = around & 7, v = around >> 3 & 7;  // sums of signs, and 2
    const auto direction = [](u32 n) { return static_cast<u32>(n >= 2) + static_cast<u32>(n > 2); };
    const u32 pattern = dense::sign_pattern(direction(h), direction(v), around >> 6 & 3);
    const bool flip = dense::sign_flips(pattern);
    const bool negative = coder.code(sign_context + dense::sign_context(pattern),
                                     (truth >> (4 + j) & 1) != static_cast<u32>(flip)) != flip;
    own |= 1u << j | static_cast<u32>(negative) << (4 + j);
    energy = energy_after<V>(energy, j, w);
    const u32 one = j == 0 ? 1u << 8 | 8u << 16 : j == 1 ? 8u << 24 : j == 2 ? 1u << 24 : 0;
    signs += negative ? 0u - one : one;
  }
  return own;
}

/// Prepares a quad of the second pass. False if it has nothing to refine.
template <class V>
__device__ __forceinline__ bool pack_refinement(const DenseSegment<V>& s, int o, int t, int y, int x, int plane,
                                                QuadPack& q, QuadTruth& truth) {
  const DenseBox v = s.valid[o];
  if (2 * x >= v.x || 2 * y >= v.y || t >= v.t) return false;
  u32 rows[4][4];
  const int side = 2 * s.d->groups;
  const V* p = s.value + (static_cast<std::ptrdiff_t>(o * s.d->frames + t) * side + 2 * y) * side;
  load_row(p, x, s.d->groups, true, rows[1]);
  load_row(p + side, x, s.d->groups, true, rows[2]);
  u32 info = 0;
  truth = {};
  TRIVELET_UNROLL
  for (int j = 0; j < 4; ++j) {
    const u32 m = magnitude_bits<V>(rows[1 + (j >> 1)][1 + (j & 1)]) >> plane;
    if (m >= 2) {
      info |= 1u << (kRefinedAt + j) | dense::size_class(m) << (2 * j);
      truth.own |= (m & 1) << j;
    }
    if (!(j & 1)) {
      const u32 l = magnitude_bits<V>(rows[1 + (j >> 1)][0]) >> plane;
      truth.left |= static_cast<u32>(l >= 2 && (l & 1)) << (j + 1);
    }
  }
  if (info == 0) return false;
  load_row(p - side, x, s.d->groups, y > 0, rows[0]);
  load_row(p + 2 * side, x, s.d->groups, y + 1 < s.d->groups, rows[3]);
  q.energy = quad_energies<V>(
      rows, dense::neighbour_weights(s.k, o), plane, [](u32 m) { return m; }, known_between);
  q.info = info;
  q.signs = 0;
  return true;
}

template <class V, class Coder>
__device__ __forceinline__ u32 code_refinement(Coder& coder, const QuadPack& q, u32 left, u32 above, u32 truth,
                                               u32 context, NeighbourWeights w, u32 mask) {
  u32 own = 0, energy = q.energy;
  if ((left | above) & 15) energy = energy_around<V>(energy, left, above, w);
  TRIVELET_UNROLL_BY(1)
  for (u32 todo = q.info >> kRefinedAt & 15; todo; todo &= todo - 1) {
    const int j = __ffs(static_cast<int>(todo)) - 1;
    const u32 at = dense::refinement_context(q.info >> (2 * j) & 3, coder.energy_class(energy >> (8 * j) & mask));
    if (!coder.code(context + at, truth >> j & 1)) continue;
    own |= 1u << j;
    energy = energy_after<V>(energy, j, w);
  }
  return own;
}

// -------------------------------------------------------------------------------------------------------------- groups

/// The child groups of a group: energy and signs are a word per frame of children: 4 x 2 bits of the parent
/// coefficient's stage, 4 x 3 of its neighbours' class, 4 x 3 of active neighbours.
inline constexpr int kNearParentAt = 8, kNearAt = 20;
// info: 8 active children, 8 existing ones, then
inline constexpr int kOpenAt = 16, kFreshGroupAt = 17, kCountAt = 18, kMostAt = 20, kNearOpenAt = 21;
// Truth of groups: bits 0..7 newly active children, 8: newly open.
inline constexpr int kNewlyOpenAt = 8;

/// Prepares the children of group (t, y, x) of the level above (k >= 2). False if it has nothing to code.
template <class V>
__device__ __forceinline__ bool pack_children(const DenseSegment<V>& s, int o, int t, int y, int x, int plane,
                                              QuadPack& q, QuadTruth& truth) {
  const DenseLevel &d = *s.d, &u = *s.up_d;
  const DenseBox e = s.exists[o];
  const bool octets = u.depth == 2;
  const int un = u.groups, n = d.groups, depth = octets ? 2 : 1;
  if (2 * x >= e.x || 2 * y >= e.y || depth * t >= e.t) return false;
  const std::ptrdiff_t at = (static_cast<std::ptrdiff_t>(o * u.groups_t + t) * un + y) * un + x;
  const int active = s.up_group[at];
  if (active <= plane) return false;
  const u32 fresh = active == plane + 1;
  const int side = 2 * un;
  truth = {};
  u32 exists = 0, children = 0, count = 0, most = 0, words[2] = {0, 0};
  for (int h = 0; h < depth; ++h) {
    const int ct = depth * t + h;
    const bool there = ct < e.t;
    const V* p = s.up_value + (static_cast<std::ptrdiff_t>(o * u.frames + ct) * side + 2 * y) * side;
    u32 c[4][4];
    load_row(p - side, x, un, y > 0, c[0]);
    load_row(p, x, un, true, c[1]);
    load_row(p + side, x, un, true, c[2]);
    load_row(p + 2 * side, x, un, y + 1 < un, c[3]);
    TRIVELET_UNROLL
    for (int r = 0; r < 4; ++r) {
      TRIVELET_UNROLL
      for (int i = 0; i < 4; ++i) {
        c[r][i] = dense::stage(magnitude_bits<V>(c[r][i]) >> plane);
      }
    }
    // Activity of the children and of the groups around them, rows 2y - 1 .. 2y + 2.
    const u8* g = s.group + (static_cast<std::ptrdiff_t>(o * d.groups_t + ct) * n + 2 * y) * n + 2 * x;
    const auto planes = [&](int r, int i) {
      const int cy = 2 * y + r, cx = 2 * x + i;
      return there && cy >= 0 && cx >= 0 && cy < n && cx < n ? static_cast<int>(g[r * n + i]) : 0;
    };
    TRIVELET_UNROLL
    for (int j = 0; j < 4; ++j) {
      const int r = j >> 1, i = j & 1;
      const u32 stage = c[1 + r][1 + i];
      count += stage > 0;
      most = stage > most ? stage : most;
      const u32 near_parent = c[1 + r][i] + c[1 + r][2 + i] + c[r][1 + i] + c[2 + r][1 + i];
      words[h] |= stage << (2 * j) | dense::octave_class(near_parent) << (kNearParentAt + 3 * j);
      if (!there || 2 * x + i >= e.x || 2 * y + r >= e.y) continue;
      exists |= 1u << (4 * h + j);
      const int own = planes(r, i);
      if (own > plane + 1) children |= 1u << (4 * h + j);
      if (own == plane + 1) truth.own |= 1u << (4 * h + j);
      const u32 near = static_cast<u32>(planes(r - 1, i) > (r == 0 ? plane : plane + 1)) +
                       static_cast<u32>(planes(r + 1, i) > plane + 1) + static_cast<u32>(planes(r, i - 1) > plane + 1) +
                       static_cast<u32>(planes(r, i + 1) > plane + 1);
      words[h] |= near << (kNearAt + 3 * j);
      if (i == 0 && planes(r, -1) == plane + 1) truth.left |= 2u << (4 * h + j);
    }
  }
  if (children == exists) return false;
  const u8* open = s.up_open + at;
  const auto opened = [&](int dy, int dx) {
    const bool inside = y + dy >= 0 && x + dx >= 0 && y + dy < un && x + dx < un;
    return inside ? static_cast<int>(open[dy * un + dx]) : 0;
  };
  const int own = opened(0, 0), left = opened(0, -1);
  if (own == plane + 1) truth.own |= 1u << kNewlyOpenAt;
  if (left == plane + 1) truth.left |= 1u << kNewlyOpenAt;
  const u32 near_open = static_cast<u32>(opened(-1, 0) > plane) + static_cast<u32>(opened(1, 0) > plane + 1) +
                        static_cast<u32>(left > plane + 1) + static_cast<u32>(opened(0, 1) > plane + 1);
  q.energy = words[0];
  q.signs = words[1];
  q.info = children | exists << 8 | static_cast<u32>(own > plane + 1) << kOpenAt | fresh << kFreshGroupAt |
           (count < 3 ? count : 3) << kCountAt | static_cast<u32>(most > 1) << kMostAt | near_open << kNearOpenAt;
  return true;
}

/// `left` and `above`: the results of those groups, as in QuadTruth, if they are in the same batch.
template <class Coder>
__device__ __forceinline__ u32 code_children(Coder& coder, const QuadPack& q, u32 left, u32 above, u32 truth,
                                             u32 context) {
  const u32 exists = q.info >> 8 & 255, active = q.info & 255;
  const bool first = !(q.info >> kOpenAt & 1);
  const u32 fresh = q.info >> kFreshGroupAt & 1, count = q.info >> kCountAt & 3;
  u32 own = 0;
  if (first) {
    // A group that has just become active without a significant coefficient has an active child.
    if (!(fresh && count == 0)) {
      const u32 near = (q.info >> kNearOpenAt & 7) + (left >> kNewlyOpenAt & 1) + (above >> kNewlyOpenAt & 1);
      if (!coder.code(context + dense::any_child_context(count, fresh, near, q.info >> kMostAt & 1),
                      truth >> kNewlyOpenAt & 1))
        return 0;
    }
    own = 1u << kNewlyOpenAt;
  }
  const int last = 31 - __clz(static_cast<int>(exists));
  bool found = false;
  TRIVELET_UNROLL_BY(1)
  for (int half = 0; half <= last; half += 4) {
    u32 word = half ? q.signs : q.energy;
    word += (left >> (half + 1) & 1) << kNearAt;
    word += (left >> (half + 3) & 1) << (kNearAt + 6);
    word += (above >> (half + 2) & 1) << kNearAt;
    word += (above >> (half + 3) & 1) << (kNearAt + 3);
    TRIVELET_UNROLL_BY(1)
    for (u32 todo = exists >> half & 15; todo; todo &= todo - 1) {
      const int i = __ffs(static_cast<int>(todo)) - 1, j = half + i;
      if (active >> j & 1) {
        found = true;
        continue;
      }
      bool yes = first && !found && j == last;
      if (!yes) {
        const u32 stage = word >> (2 * i) & 3, near = word >> (kNearAt + 3 * i) & 7;
        const u32 at = dense::child_context(stage, first, near, word >> (kNearParentAt + 3 * i) & 7, first && !found);
        yes = coder.code(context + at, truth >> j & 1);
      }
      if (!yes) continue;
      found = true;
      own |= 1u << j;
      word += i == 0 ? 1u << (kNearAt + 3) | 1u << (kNearAt + 6) : i < 3 ? 1u << (kNearAt + 9) : 0u;
    }
  }
  return own;
}

/// Groups that are coded one by one: those of level 1, a root group's child in an orientation, and root groups with a
/// temporal parent. energy: the context without the active neighbours; info: their number.
template <class V>
__device__ __forceinline__ u32 single_parent(const DenseSegment<V>& s, u32 index) {
  const Place p = place(index, s.d->log2_groups, s.d->groups_t);
  int t = p.t;
  if (s.k == 0) {
    t = s.up_family == 0 ? t : t >> 1;
    t = t < s.up_root_frames ? t : s.up_root_frames - 1;
  }
  return (static_cast<u32>(t) << (2 * s.d->log2_groups)) + (index & ((1u << (2 * s.d->log2_groups)) - 1));
}
template <class V>
__device__ __forceinline__ bool pack_single(const DenseSegment<V>& s, int o, int t, int y, int x, int plane,
                                            QuadPack& q, QuadTruth& truth) {
  const DenseLevel &d = *s.d, &u = *s.up_d;
  const DenseBox e = s.exists[o];
  if (x >= e.x || y >= e.y || t >= e.t) return false;
  const int n = d.groups;
  const int up = s.up_group[single_parent(s, static_cast<u32>(((o * d.groups_t + t) * n + y) * n + x))];
  if (up <= plane) return false;
  const int own = group_planes(s, o, t, y, x);
  if (own > plane + 1) return false;
  const u32 fresh = up == plane + 1;
  const int left = x > 0 ? group_planes(s, o, t, y, x - 1) : 0;
  truth.own = own == plane + 1;
  truth.left = left == plane + 1;
  q.info = static_cast<u32>(y > 0 && group_planes(s, o, t, y - 1, x) > plane) +
           static_cast<u32>(y + 1 < n && group_planes(s, o, t, y + 1, x) > plane + 1) +
           static_cast<u32>(left > plane + 1) +
           static_cast<u32>(x + 1 < n && group_planes(s, o, t, y, x + 1) > plane + 1);
  q.signs = 0;
  if (s.k == 0) {
    q.energy = dense::root_context(0, fresh);
    return true;
  }
  u32 most = 0;
  const int side = 2 * n;
  for (int f = 0; f < u.depth; ++f) {
    const V* p = s.up_value + (static_cast<std::ptrdiff_t>(t * u.depth + f) * side + 2 * y) * side + 2 * x;
    for (int j = 0; j < 4; ++j) {
      const u32 m = magnitude_bits<V>(p[(j >> 1) * side + (j & 1)]) >> plane;
      most = m > most ? m : most;
    }
  }
  u32 others = 0;
  for (int i = 0; i < o; ++i) others += group_planes(s, i, t, y, x) > plane;
  q.energy = dense::child_context(dense::stage(most), fresh, 0, others < 4 ? others : 4, false);
  return true;
}

template <class Coder>
__device__ __forceinline__ u32 code_single(Coder& coder, const QuadPack& q, u32 left, u32 above, u32 truth, u32 context,
                                           int k) {
  u32 near = (q.info & 7) + (left & 1) + (above & 1);
  if (k == 0) near = near < 3 ? near : 3;
  return coder.code(context + q.energy + near * (k == 0 ? dense::kRootNear : dense::kChildNear), truth & 1);
}

}  // namespace trivelet::gpu
