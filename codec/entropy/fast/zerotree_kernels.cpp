// Loops of the fast zerotree coder, compiled once per instruction set (codec/base/simd.h). Masks are 64-bit words of
// slots; FORMAT.md "Fast profile" specifies the order of the bits. The scalar forms of the bit primitives define the
// results of the instructions (PEXT, PDEP, masked compares).
#include "codec/entropy/fast/zerotree_kernels.h"

#include <cstring>

#include "codec/transform/quantiser.h"

#if defined(__BMI2__)
#include <immintrin.h>
#endif

namespace trivelet::zerotree::TRIVELET_ISA {
namespace {

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

// ---------------------------------------------------------------------------------------------------- bit primitives

inline unsigned count(u64 x) { return static_cast<unsigned>(__builtin_popcountll(x)); }
inline unsigned lowest(u64 x) { return static_cast<unsigned>(__builtin_ctzll(x)); }

// The bits of x at the set places of mask, packed.
inline u64 extract(u64 x, u64 mask) {
#if defined(__BMI2__)
  return _pext_u64(x, mask);
#else
  u64 r = 0;
  for (unsigned n = 0; mask; ++n, mask &= mask - 1) r |= (x >> lowest(mask) & 1) << n;
  return r;
#endif
}

// The low bits of x, distributed over the set places of mask.
inline u64 deposit(u64 x, u64 mask) {
#if defined(__BMI2__)
  return _pdep_u64(x, mask);
#else
  u64 r = 0;
  for (; mask; x >>= 1, mask &= mask - 1) r |= (x & 1) << lowest(mask);
  return r;
#endif
}

template <int S>
struct Groups {
  static constexpr int kCount = 64 / S;
  static constexpr u64 kFirst = S == 4 ? 0x1111111111111111ull : 0x0101010101010101ull;  // slot 0 of every group
  static constexpr u64 kOnes = (u64{1} << S) - 1;
  static constexpr u32 kAll = (u32{1} << kCount) - 1;
  static constexpr int kPositionBits = S == 4 ? 2 : 3;

  static u64 expand(u32 groups) { return deposit(groups, kFirst) * kOnes; }
  static u32 any(u64 x) {
    x |= x >> 1;
    x |= x >> 2;
    if (S == 8) x |= x >> 4;
    return static_cast<u32>(extract(x, kFirst));
  }
  static u32 all(u64 x) {
    x &= x >> 1;
    x &= x >> 2;
    if (S == 8) x &= x >> 4;
    return static_cast<u32>(extract(x, kFirst));
  }
  // Groups with exactly one slot set.
  static u32 one(u64 x) {
    u64 s = (x & 0x5555555555555555ull) + (x >> 1 & 0x5555555555555555ull);
    s = (s & 0x3333333333333333ull) + (s >> 2 & 0x3333333333333333ull);
    if (S == 8) s = (s & 0x0f0f0f0f0f0f0f0full) + (s >> 4 & 0x0f0f0f0f0f0f0f0full);
    return ~any(s ^ kFirst) & kAll;
  }
};

inline void put(BitSink& s, u64 value, unsigned bits) {  // bits <= 64; bits of value above them are 0
  s.acc |= value << s.fill;
  *s.at = s.acc;
  const u64 carry = value >> 1 >> (63 - s.fill);
  const unsigned fill = s.fill + bits;
  const bool full = fill >= 64;
  s.acc = full ? carry : s.acc;
  s.at += full;
  s.fill = fill & 63;
}

inline u64 peek(const BitSource& s, std::size_t position) {  // the 64 bits from `position` on
  std::size_t byte = position >> 3;
  byte = byte < s.size ? byte : s.size;
  u64 lo;
  std::memcpy(&lo, s.data + byte, 8);
  const unsigned shift = position & 7;
  return lo >> shift | static_cast<u64>(s.data[byte + 8]) << 1 << (63 - shift);
}

// ------------------------------------------------------------------------------------------- slicing (encoder, pass 1)

inline i32 quantise(float c, float inverse_step) {
  const i32 q = static_cast<i32>(limited_magnitude(c, inverse_step));
  return c < 0 ? -q : q;
}
inline i32 quantise(i32 c, float) {
  const i32 q = limited_magnitude(c, 1.0f);
  return c < 0 ? -q : q;
}

// 64 quantised values in slot order -> planes. Returns the number of planes.
inline int slice64(const i32* q, u64* planes, u64* sign) {
#if defined(__AVX512BW__)
  __m512i v[4];
  __m512i any = _mm512_setzero_si512();
  u64 s = 0;
  for (int i = 0; i < 4; ++i) {
    const __m512i x = _mm512_loadu_si512(q + 16 * i);
    s |= static_cast<u64>(_mm512_movepi32_mask(x)) << (16 * i);
    v[i] = _mm512_abs_epi32(x);
    any = _mm512_or_si512(any, v[i]);
  }
  const u32 m = static_cast<u32>(_mm512_reduce_or_epi32(any));
  if (m == 0) return 0;
  const int n = 32 - __builtin_clz(m);
  for (int p = 0; p < n; ++p) {
    const __m512i bit = _mm512_set1_epi32(1 << p);
    planes[p] = static_cast<u64>(_mm512_test_epi32_mask(v[0], bit)) |
                static_cast<u64>(_mm512_test_epi32_mask(v[1], bit)) << 16 |
                static_cast<u64>(_mm512_test_epi32_mask(v[2], bit)) << 32 |
                static_cast<u64>(_mm512_test_epi32_mask(v[3], bit)) << 48;
  }
  *sign = s;
  return n;
#elif defined(__AVX2__)
  __m256i v[8];
  __m256i any = _mm256_setzero_si256();
  u64 s = 0;
  for (int i = 0; i < 8; ++i) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q + 8 * i));
    s |= static_cast<u64>(static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(x)))) << (8 * i);
    v[i] = _mm256_abs_epi32(x);
    any = _mm256_or_si256(any, v[i]);
  }
  if (_mm256_testz_si256(any, any)) return 0;
  __m128i h = _mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1));
  h = _mm_or_si128(h, _mm_srli_si128(h, 8));
  h = _mm_or_si128(h, _mm_srli_si128(h, 4));
  const int n = 32 - __builtin_clz(static_cast<u32>(_mm_cvtsi128_si32(h)));
  for (int i = 0; i < 8; ++i) v[i] = _mm256_sll_epi32(v[i], _mm_cvtsi32_si128(32 - n));  // plane n - 1 becomes the sign
  for (int p = n - 1; p >= 0; --p) {
    u64 mask = 0;
    for (int i = 0; i < 8; ++i) {
      mask |= static_cast<u64>(static_cast<u32>(_mm256_movemask_ps(_mm256_castsi256_ps(v[i])))) << (8 * i);
      v[i] = _mm256_slli_epi32(v[i], 1);
    }
    planes[p] = mask;
  }
  *sign = s;
  return n;
#else
  u32 any = 0;
  u64 s = 0;
  u32 m[64];
  for (int i = 0; i < 64; ++i) {
    m[i] = static_cast<u32>(q[i] < 0 ? -q[i] : q[i]);
    s |= static_cast<u64>(q[i] < 0) << i;
    any |= m[i];
  }
  if (any == 0) return 0;
  const int n = 32 - __builtin_clz(any);
  for (int p = 0; p < n; ++p) planes[p] = 0;
  for (int i = 0; i < 64; ++i)
    for (u32 x = m[i]; x; x &= x - 1) planes[lowest(x)] |= u64{1} << i;
  *sign = s;
  return n;
#endif
}

#if defined(__AVX512BW__)
// A 4x4 quarter of a tile in slot order: the 16 values of rows 0..3 in Z order.
inline __m512i z_order() { return _mm512_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15); }

inline __m512 load_quarter(const float* p, std::ptrdiff_t row) {
  __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(p));
  v = _mm512_insertf32x4(v, _mm_loadu_ps(p + row), 1);
  v = _mm512_insertf32x4(v, _mm_loadu_ps(p + 2 * row), 2);
  return _mm512_insertf32x4(v, _mm_loadu_ps(p + 3 * row), 3);
}
inline __m512 load_quarter(const i32* p, std::ptrdiff_t row) {
  return load_quarter(reinterpret_cast<const float*>(p), row);
}

inline __m512i quantise16(__m512 c, float inverse_step, const float*) {
  const __mmask16 negative = _mm512_cmp_ps_mask(c, _mm512_setzero_ps(), _CMP_LT_OQ);  // false for NaN, as in quantise()
  const __m512 m =
      _mm512_min_ps(_mm512_mul_ps(_mm512_abs_ps(c), _mm512_set1_ps(inverse_step)), _mm512_set1_ps(1073741760.0f));
  const __m512i q = _mm512_cvttps_epi32(m);
  return _mm512_mask_sub_epi32(q, negative, _mm512_setzero_si512(), q);
}
inline __m512i quantise16(__m512 c, float, const i32*) {
  const __m512i limit = _mm512_set1_epi32((1 << 30) - 1);
  return _mm512_max_epi32(_mm512_min_epi32(_mm512_castps_si512(c), limit),
                          _mm512_sub_epi32(_mm512_setzero_si512(), limit));
}
// True when no coefficient of the 8x8 tile reaches the step. Magnitudes are compared as integers, which keeps their
// order and puts NaN above all. The product rounds monotonically, so one comparison gives the result of 64 calls of
// quantise().
inline bool tile_is_zero(const float* p, std::ptrdiff_t row, float inverse_step) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i m = _mm256_setzero_si256();
  for (int y = 0; y < 8; ++y)
    m = _mm256_max_epi32(
        m, _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + y * row)), magnitude));
  const __m256 scaled = _mm256_mul_ps(_mm256_castsi256_ps(m), _mm256_set1_ps(inverse_step));
  return _mm256_movemask_ps(_mm256_cmp_ps(scaled, _mm256_set1_ps(1.0f), _CMP_NLT_UQ)) == 0;
}
inline bool tile_is_zero(const i32* p, std::ptrdiff_t row, float) {
  __m256i m = _mm256_setzero_si256();
  for (int y = 0; y < 8; ++y) m = _mm256_or_si256(m, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + y * row)));
  return _mm256_testz_si256(m, m);
}

template <class T>
inline int slice_tile(const T* p, std::ptrdiff_t row, float inverse_step, u64* planes, u64* sign) {
  if (tile_is_zero(p, row, inverse_step)) return 0;
  alignas(64) i32 q[64];
  const __m512i z = z_order();
  const T* quarter[4] = {p, p + 4, p + 4 * row, p + 4 * row + 4};
  for (int i = 0; i < 4; ++i)
    _mm512_store_si512(q + 16 * i, quantise16(_mm512_permutexvar_ps(z, load_quarter(quarter[i], row)), inverse_step,
                                              static_cast<const T*>(nullptr)));
  return slice64(q, planes, sign);
}
#else
template <class T>
inline int slice_tile(const T* p, std::ptrdiff_t row, float inverse_step, u64* planes, u64* sign) {
  i32 q[64];
  i32 any = 0;
  for (int y = 0; y < 8; ++y) {
    const int zy = (y & 1) << 1 | (y & 2) << 2 | (y & 4) << 3;
    i32 r[8];
    for (int x = 0; x < 8; ++x) r[x] = quantise(p[y * row + x], inverse_step);
    for (int x = 0; x < 8; ++x) {
      any |= r[x];
      q[zy | (x & 1) | (x & 2) << 1 | (x & 4) << 2] = r[x];
    }
  }
  return any ? slice64(q, planes, sign) : 0;
}
#endif

// Any other word: slots by table. `valid` marks the slots that exist.
template <class T>
inline int slice_other(const SliceArgs<T>& a, const T* p, u64 valid, u64* planes, u64* sign) {
  i32 q[64] = {};
  i32 any = 0;
  for (; valid; valid &= valid - 1) {
    const unsigned s = lowest(valid);
    const WordBase& at = a.level.slot[s];
    q[s] = quantise(p[at.t * a.frame_stride + at.y * a.row_stride + at.x], a.inverse_step);
    any |= q[s];
  }
  return any ? slice64(q, planes, sign) : 0;
}

// Activity masks of the child words of `word` at plane p, one bit per slot (groups of 64 / SC).
template <int SC>
inline u64 child_activity(const EncodedWord* children, int n, const u16* act_pool, int p) {
  u64 d = 0;
  for (int j = 0; j < n; ++j)
    if (p < children[j].top)
      d |= static_cast<u64>(act_pool[children[j].act_at + static_cast<u32>(p)]) << (j * (64 / SC));
  return d;
}

template <class T, int S, int SC>
void slice_words(const SliceArgs<T>& a) {
  const LevelView& l = a.level;
  Pools& pools = *a.pools;
  // Rows of a tile are far apart, so hardware prefetchers do not predict the next one.
  constexpr int kAhead = 4;
  const u64* valid = l.valid + static_cast<std::ptrdiff_t>(a.orientation_index) * l.words;
  for (int w = 0; w < l.words; ++w) {
    EncodedWord& out = a.words[w];
    const WordBase& base = l.base[w];
    const T* p = a.origin + base.t * a.frame_stride + base.y * a.row_stride + base.x;
    u64* planes = pools.planes + pools.planes_used;
    if (w + kAhead < l.words) {
      const WordBase& ahead = l.base[w + kAhead];
      const T* q = a.origin + ahead.t * a.frame_stride + ahead.y * a.row_stride + ahead.x;
      for (int y = 0; y < 8; ++y) __builtin_prefetch(q + y * a.row_stride);
    }
    u64 sign = 0;
    int n = 0;
    if (valid[w]) {
      n = l.kind == WordKind::kTile8x8 && valid[w] == ~u64{0}
              ? slice_tile(p, a.row_stride, a.inverse_step, planes, &sign)
              : slice_other(a, p, valid[w], planes, &sign);
    }
    out.sign = sign;
    out.planes = static_cast<u8>(n);
    out.planes_at = static_cast<u32>(pools.planes_used);
    pools.planes_used += static_cast<std::size_t>(n);

    int top = n;
    int nc = 0;
    const EncodedWord* children = nullptr;
    if (a.children && a.child_orientations == 0) {
      children = a.children + static_cast<std::ptrdiff_t>(w) * SC;
      nc = a.child_words - w * SC;
      nc = nc < SC ? nc : SC;
      for (int j = 0; j < nc; ++j) top = children[j].top > top ? children[j].top : top;
    } else if (a.children) {
      for (int i = 0; i < a.child_orientations; ++i) {
        const int t = a.children[i * a.child_words + w].top;
        top = t > top ? t : top;
      }
    }
    out.top = static_cast<u8>(top);
    out.act_at = static_cast<u32>(pools.act_used);
    u16* act = pools.act + pools.act_used;
    pools.act_used += static_cast<std::size_t>(top);
    u64 sig = 0;
    for (int q = top - 1; q >= 0; --q) {
      if (q < n) sig |= planes[q];
      u32 g = Groups<S>::any(sig);
      if (nc > 0) {
        g |= Groups<S>::any(child_activity<SC>(children, nc, pools.act, q));
      } else if (a.children) {
        for (int i = 0; i < a.child_orientations; ++i) {
          const EncodedWord& c = a.children[i * a.child_words + w];
          if (q < c.top) g |= pools.act[c.act_at + static_cast<u32>(q)];
        }
      }
      act[q] = static_cast<u16>(g);
    }
  }
}

template <class T>
void slice(const SliceArgs<T>& a) {
  if (a.level.arity == 4) {
    if (a.child_arity == 8)
      slice_words<T, 4, 8>(a);
    else
      slice_words<T, 4, 4>(a);
  } else {
    slice_words<T, 8, 8>(a);
  }
}

// ------------------------------------------------------------------------------------------ coding (encoder, pass 2)

// Set bits of a level: for each group of the parent level whether it has an active child group, and which.
template <int SP, int SC>
void encode_sets(const SegmentArgs& a) {
  using G = Groups<SP>;
  const int n = a.parent.words * a.parent.orientations;
  for (int w = 0; w < n; ++w) {
    const EncodedWord& word = a.parent_words[w];
    const u64 exists = a.parent.child[w];
    if (word.top == 0 || exists == 0) continue;
    const int o = w / a.parent.words;
    const int in_orientation = w - o * a.parent.words;
    const EncodedWord* children = a.words + static_cast<std::ptrdiff_t>(o) * a.level.words + in_orientation * SC;
    int nc = a.level.words - in_orientation * SC;
    nc = nc < SC ? nc : SC;
    const u16* act = a.pools->act + word.act_at;
    const u64* planes = a.pools->planes + word.planes_at;
    const u32 has_children = G::any(exists);
    u64 sig = 0;
    u64 found = 0;
    u32 open = 0;
    u32 before = 0;
    int p = word.top - 1;
    for (; p >= a.planes; --p) {
      if (p < word.planes) sig |= planes[p];
      before = act[p];
    }
    for (; p >= 0; --p) {
      if (p < word.planes) sig |= planes[p];
      const u32 active = act[p];
      const u64 d = child_activity<SC>(children, nc, a.pools->act, p);
      const u32 b = G::any(d);
      const u32 implied = active & ~before & ~G::any(sig);
      const u32 ask = active & ~open & ~implied & has_children;
      BitSink* s = a.sinks[p];
      put(s[kSets], extract(b, ask), count(ask));
      const u64 which = G::expand(b) & exists & ~found;
      put(s[kChildren], extract(d, which), count(which));
      open = b;
      found = d;
      before = active;
    }
  }
}

// The same below root groups, which have a child group per orientation.
template <int S>
void encode_root_sets(const SegmentArgs& a) {
  const int orientations = a.level.orientations;
  const int words = a.parent.words;
  // The flags "any orientation" of all words come first, then the orientations one by one: the order of decoding.
  for (int w = 0; w < words; ++w) {
    const EncodedWord& word = a.parent_words[w];
    u32 has_children = 0;
    for (int i = 0; i < orientations; ++i) has_children |= static_cast<u32>(a.parent.child[i * words + w]);
    u32 open = 0;
    for (int p = (word.top < a.planes ? word.top : a.planes) - 1; p >= 0; --p) {
      u32 b = 0;
      for (int i = 0; i < orientations; ++i) {
        const EncodedWord& c = a.words[i * words + w];
        if (p < c.top) b |= a.pools->act[c.act_at + static_cast<u32>(p)];
      }
      const u32 ask = a.pools->act[word.act_at + static_cast<u32>(p)] & ~open & has_children;
      put(a.sinks[p][kSets], extract(b, ask), count(ask));
      open = b;
    }
  }
  for (int i = 0; i < orientations; ++i)
    for (int w = 0; w < words; ++w) {
      const EncodedWord& word = a.parent_words[w];
      const u32 exists = static_cast<u32>(a.parent.child[i * words + w]);
      const EncodedWord& c = a.words[i * words + w];
      u32 found = 0;
      for (int p = (word.top < a.planes ? word.top : a.planes) - 1; p >= 0; --p) {
        u32 b = 0;
        for (int j = 0; j < orientations; ++j) {
          const EncodedWord& other = a.words[j * words + w];
          if (p < other.top) b |= a.pools->act[other.act_at + static_cast<u32>(p)];
        }
        const u32 d = p < c.top ? a.pools->act[c.act_at + static_cast<u32>(p)] : 0;
        const u32 which = b & exists & ~found;
        put(a.sinks[p][kChildren], extract(d, which), count(which));
        found = d;
      }
    }
}

// Significance, refinement and sign bits of the coefficients of a level.
template <int S>
void encode_coefficients(const SegmentArgs& a) {
  using G = Groups<S>;
  const int n = a.level.words * a.level.orientations;
  for (int w = 0; w < n; ++w) {
    const EncodedWord& word = a.words[w];
    const u64 valid = a.level.valid[w];
    if (word.top == 0 || valid == 0) continue;
    const u16* act = a.pools->act + word.act_at;
    const u64* planes = a.pools->planes + word.planes_at;
    const u32 full = G::all(valid);
    u64 sig = 0;
    u32 before = 0;
    for (int p = word.top - 1; p >= 0; --p) {
      const u64 bits = p < word.planes ? planes[p] : 0;
      const u32 active = act[p];
      const u64 unknown = G::expand(active) & valid & ~sig;
      const u64 fresh = bits & ~sig;
      BitSink* s = a.sinks[p];
      put(s[kRefinement], extract(bits, sig), count(sig));
      const u32 fresh_groups = G::any(fresh);
      const u32 newly = active & ~before & full;
      const u32 old_zero = active & before & ~G::any(sig) & full;
      const u32 flagged = newly | old_zero;
      const u32 single = a.fine ? G::one(fresh) & newly : 0;
      const u32 flags = a.fine ? single | (fresh_groups & old_zero) : fresh_groups;
      put(s[kFlags], extract(flags, flagged), count(flagged));
      const u32 raw =
          (active & ~flagged) | (a.fine ? (newly & ~single) | (old_zero & fresh_groups) : flagged & fresh_groups);
      const u64 ask = G::expand(raw) & unknown;
      put(s[kSignificance], extract(fresh, ask), count(ask));
      if (single) {
        const unsigned c = count(single);
        u64 v = extract(G::any(fresh & 0xaaaaaaaaaaaaaaaaull), single) |
                extract(G::any(fresh & 0xccccccccccccccccull), single) << c;
        if (S == 8) v |= extract(G::any(fresh & 0xf0f0f0f0f0f0f0f0ull), single) << (2 * c);
        put(s[kPositions], v, c * G::kPositionBits);
      }
      put(s[kSigns], extract(word.sign, fresh), count(fresh));
      sig |= bits;
      before = active;
    }
  }
}

void encode_segment(const SegmentArgs& a) {
  if (!a.root) {
    if (a.parent_is_root) {
      a.parent.arity == 4 ? encode_root_sets<4>(a) : encode_root_sets<8>(a);
    } else if (a.parent.arity == 4) {
      a.level.arity == 4 ? encode_sets<4, 4>(a) : encode_sets<4, 8>(a);
    } else {
      encode_sets<8, 8>(a);
    }
  }
  if (a.level.arity == 4)
    encode_coefficients<4>(a);
  else
    encode_coefficients<8>(a);
}

void append(BitSink& to, const BitSink& from) {
  for (const u64* p = from.begin; p < from.at; ++p) put(to, *p, 64);
  if (from.fill) put(to, from.acc & ((u64{1} << from.fill) - 1), from.fill);
}

// ------------------------------------------------------------------------------------------------------------ decoder

// Calls f(word) for every live word in order.
template <class F>
inline void for_live(const u64* live, int n, F f) {
  for (int i = 0; i < (n + 63) / 64; ++i)
    for (u64 m = live[i]; m; m &= m - 1) f(i * 64 + static_cast<int>(lowest(m)));
}

template <int SP, int SC>
void decode_sets(const PlaneArgs& a) {
  using G = Groups<SP>;
  LevelState& ps = *a.parent_state;
  LevelState& s = *a.state;
  const int n = a.parent.words * a.parent.orientations;
  BitSource& bits = *a.bits;
  std::size_t at = bits.position;
  for_live(ps.live, n, [&](int w) {
    const u64 exists = a.parent.child[w];
    if (!exists) return;
    const u32 active = ps.act[w];
    const u32 has_children = G::any(exists);
    const u32 implied = ps.fresh[w] & ~G::any(ps.sig[w]) & has_children;
    const u32 ask = active & ~ps.open[w] & ~implied & has_children;
    ps.open[w] = static_cast<u16>(ps.open[w] | implied | static_cast<u32>(deposit(peek(bits, at), ask)));
    at += count(ask);
  });
  for_live(ps.live, n, [&](int w) {
    if (!ps.open[w]) return;
    const u64 which = G::expand(ps.open[w]) & a.parent.child[w] & ~ps.found[w];
    if (!which) return;
    const u64 d = deposit(peek(bits, at), which);
    at += count(which);
    if (!d) return;
    ps.found[w] |= d;
    const int o = w / a.parent.words;
    const int first = o * a.level.words + (w - o * a.parent.words) * SC;
    for (int j = 0; j < SC; ++j) {
      const u32 piece = static_cast<u32>(d >> (j * (64 / SC))) & Groups<SC>::kAll;
      if (!piece) continue;
      const int c = first + j;
      if (!s.act[c]) {
        s.live[c >> 6] |= u64{1} << (c & 63);
        s.first[c] = static_cast<u8>(a.plane);
      }
      s.act[c] = static_cast<u16>(s.act[c] | piece);
    }
  });
  bits.position = at;
}

template <int S>
void decode_root_sets(const PlaneArgs& a) {
  LevelState& ps = *a.parent_state;
  LevelState& s = *a.state;
  const int words = a.parent.words;
  const int orientations = a.level.orientations;
  BitSource& bits = *a.bits;
  std::size_t at = bits.position;
  for_live(ps.live, words, [&](int w) {
    u32 has_children = 0;
    for (int i = 0; i < orientations; ++i) has_children |= static_cast<u32>(a.parent.child[i * words + w]);
    const u32 ask = ps.act[w] & ~ps.open[w] & has_children;
    ps.open[w] = static_cast<u16>(ps.open[w] | static_cast<u32>(deposit(peek(bits, at), ask)));
    at += count(ask);
  });
  for (int i = 0; i < orientations; ++i)
    for_live(ps.live, words, [&](int w) {
      const int c = i * words + w;
      const u32 which = ps.open[w] & static_cast<u32>(a.parent.child[c]) & ~static_cast<u32>(ps.found[c]);
      if (!which) return;
      const u32 d = static_cast<u32>(deposit(peek(bits, at), which));
      at += count(which);
      if (!d) return;
      ps.found[c] |= d;
      if (!s.act[c]) {
        s.live[c >> 6] |= u64{1} << (c & 63);
        s.first[c] = static_cast<u8>(a.plane);
      }
      s.act[c] = static_cast<u16>(s.act[c] | d);
    });
  bits.position = at;
}

template <int S, bool kStaged>
void decode_coefficients(const PlaneArgs& a) {
  using G = Groups<S>;
  LevelState& s = *a.state;
  const int n = a.level.words * a.level.orientations;
  const u64* valid = a.level.valid;
  u64* plane = s.planes + static_cast<std::ptrdiff_t>(a.plane) * n;
  BitSource& bits = *a.bits;
  std::size_t refine = bits.position;
  std::size_t flags_at = refine + s.significant;
  std::size_t raw_bits = 0;
  std::size_t singles = 0;
  for_live(s.live, n, [&](int w) {
    const u32 active = s.act[w];
    const u32 before = s.seen[w];
    s.seen[w] = static_cast<u16>(active);
    s.fresh[w] = static_cast<u16>(active & ~before);
    const u64 sig = s.sig[w];
    if (kStaged) {
      const u32 full = G::all(valid[w]);
      const u32 newly = active & ~before & full;
      const u32 old_zero = active & before & ~G::any(sig) & full;
      const u32 flagged = newly | old_zero;
      const u32 flags = static_cast<u32>(deposit(peek(bits, flags_at), flagged));
      flags_at += count(flagged);
      const u32 single = a.fine ? flags & newly : 0;
      const u32 raw = (active & ~flagged) | (a.fine ? (newly & ~flags) | (old_zero & flags) : flags);
      s.single[w] = static_cast<u16>(single);
      s.raw[w] = static_cast<u16>(raw);
      raw_bits += count(G::expand(raw) & valid[w] & ~sig);
      singles += count(single);
    } else {
      raw_bits += count(G::expand(active) & valid[w] & ~sig);
    }
  });
  std::size_t raw_at = flags_at;
  std::size_t position_at = raw_at + raw_bits;
  std::size_t sign_at = position_at + singles * G::kPositionBits;
  for_live(s.live, n, [&](int w) {
    const u64 sig = s.sig[w];
    u64 known = deposit(peek(bits, refine), sig);
    refine += count(sig);
    const u64 ask = G::expand(kStaged ? s.raw[w] : s.act[w]) & valid[w] & ~sig;
    u64 fresh = deposit(peek(bits, raw_at), ask);
    raw_at += count(ask);
    const u32 single = kStaged ? s.single[w] : 0;
    if (single) {
      const unsigned c = count(single);
      const u64 v = peek(bits, position_at);
      position_at += c * G::kPositionBits;
      u64 at = (G::expand(static_cast<u32>(deposit(v, single))) ^ 0x5555555555555555ull) &
               (G::expand(static_cast<u32>(deposit(v >> c, single))) ^ 0x3333333333333333ull);
      if (S == 8) at &= G::expand(static_cast<u32>(deposit(v >> (2 * c), single))) ^ 0x0f0f0f0f0f0f0f0full;
      fresh |= at & G::expand(single);
    }
    if (fresh) {
      s.sign[w] |= deposit(peek(bits, sign_at), fresh);
      const unsigned c = count(fresh);
      sign_at += c;
      s.significant += c;
      s.sig[w] = sig | fresh;
      known |= fresh;
    }
    plane[w] = known;
  });
  bits.position = sign_at;
}

void decode_plane(const PlaneArgs& a) {
  if (a.parent_state) {
    if (a.parent_is_root) {
      a.parent.arity == 4 ? decode_root_sets<4>(a) : decode_root_sets<8>(a);
    } else if (a.parent.arity == 4) {
      a.level.arity == 4 ? decode_sets<4, 4>(a) : decode_sets<4, 8>(a);
    } else {
      decode_sets<8, 8>(a);
    }
  }
  if (a.level.arity == 4)
    a.staged ? decode_coefficients<4, true>(a) : decode_coefficients<4, false>(a);
  else
    a.staged ? decode_coefficients<8, true>(a) : decode_coefficients<8, false>(a);
}

// ---------------------------------------------------------------------------------------------------------- restoring

inline float dequantise(i32 magnitude, bool negative, const RestoreArgs<float>& a) {
  const float v = (static_cast<float>(magnitude) + a.offset) * a.step;
  return negative ? -v : v;
}
inline i32 dequantise(i32 magnitude, bool negative, const RestoreArgs<i32>& a) {
  const i32 v = magnitude + a.integer_offset;
  return negative ? -v : v;
}

template <class T>
void restore_other(const RestoreArgs<T>& a, T* p, int w, u64 sig) {
  const LevelState& s = *a.state;
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(a.level.words) * a.level.orientations;
  for (u64 m = sig; m; m &= m - 1) {
    const unsigned i = lowest(m);
    i32 v = 0;
    for (int q = s.first[w]; q >= a.low; --q) v |= static_cast<i32>(s.planes[q * n + w] >> i & 1) << q;
    const WordBase& at = a.level.slot[i];
    p[at.t * a.frame_stride + at.y * a.row_stride + at.x] = dequantise(v, s.sign[w] >> i & 1, a);
  }
}

// Where slot i of a tile is.
inline std::ptrdiff_t tile_column(unsigned i) { return (i & 1) | (i >> 1 & 2) | (i >> 2 & 4); }
inline std::ptrdiff_t tile_row(unsigned i) { return tile_column(i >> 1); }

#if defined(__AVX512BW__)
inline __m512 finish16(__m512i m, __mmask16 sig, __mmask16 sign, const RestoreArgs<float>& a) {
  __m512 v = _mm512_mul_ps(_mm512_add_ps(_mm512_cvtepi32_ps(m), _mm512_set1_ps(a.offset)), _mm512_set1_ps(a.step));
  v = _mm512_maskz_mov_ps(sig, v);
  return _mm512_mask_xor_ps(v, static_cast<__mmask16>(sign & sig), v,
                            _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<i32>(0x80000000u))));
}
inline __m512 finish16(__m512i m, __mmask16 sig, __mmask16 sign, const RestoreArgs<i32>& a) {
  __m512i v = _mm512_maskz_add_epi32(sig, m, _mm512_set1_epi32(a.integer_offset));
  return _mm512_castsi512_ps(_mm512_mask_sub_epi32(v, sign, _mm512_setzero_si512(), v));
}
// The 64 coefficients of a word in slot order, 16 each.
template <class T>
inline void load_word(const RestoreArgs<T>& a, int w, u64 sig, __m512 v[4]) {
  const LevelState& s = *a.state;
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(a.level.words) * a.level.orientations;
  __m512i m[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (int q = s.first[w]; q >= a.low; --q) {
    const u64 plane = s.planes[q * n + w];
    const __m512i bit = _mm512_set1_epi32(1 << q);
    for (int i = 0; i < 4; ++i) m[i] = _mm512_mask_or_epi32(m[i], static_cast<__mmask16>(plane >> (16 * i)), m[i], bit);
  }
  for (int i = 0; i < 4; ++i)
    v[i] = finish16(m[i], static_cast<__mmask16>(sig >> (16 * i)), static_cast<__mmask16>(s.sign[w] >> (16 * i)), a);
}
// Writes 64 coefficients in slot order to a tile: two rows from each pair of quarters side by side.
template <class T>
inline void store_tile(T* p, std::ptrdiff_t row, const __m512 v[4]) {
  const __m512i upper = _mm512_setr_epi32(0, 1, 4, 5, 16, 17, 20, 21, 2, 3, 6, 7, 18, 19, 22, 23);
  const __m512i lower = _mm512_add_epi32(upper, _mm512_set1_epi32(8));
  float* out = reinterpret_cast<float*>(p);
  for (int half = 0; half < 2; ++half)
    for (const __m512i& rows : {upper, lower}) {
      const __m512 two = _mm512_permutex2var_ps(v[2 * half], rows, v[2 * half + 1]);
      _mm256_storeu_ps(out, _mm512_castps512_ps256(two));
      _mm256_storeu_ps(out + row, _mm512_extractf32x8_ps(two, 1));
      out += 2 * row;
    }
}
template <class T>
inline void restore_tile(const RestoreArgs<T>& a, T* p, int w, u64 sig) {
  __m512 v[4];
  load_word(a, w, sig, v);
  store_tile(p, a.row_stride, v);
}
template <class T>
inline T* pack_word(const RestoreArgs<T>& a, int w, u64 sig, T* out) {
  __m512 v[4];
  load_word(a, w, sig, v);
  for (int i = 0; i < 4; ++i) {
    const auto there = static_cast<__mmask16>(sig >> (16 * i));
    _mm512_storeu_ps(out, _mm512_maskz_compress_ps(there, v[i]));
    out += count(there);
  }
  return out;
}
template <class T>
inline void unpack_tile(u64 word, const u32* from, T* p, std::ptrdiff_t row) {
  if (!word) {
    for (int y = 0; y < 8; ++y) _mm256_storeu_ps(reinterpret_cast<float*>(p + y * row), _mm256_setzero_ps());
    return;
  }
  __m512 v[4];
  for (int i = 0; i < 4; ++i) {
    const auto there = static_cast<__mmask16>(word >> (16 * i));
    v[i] = _mm512_maskz_expand_ps(there, _mm512_loadu_ps(from));
    from += count(there);
  }
  store_tile(p, row, v);
}
#else
template <class T>
inline void load_word(const RestoreArgs<T>& a, int w, i32 m[64]) {
  const LevelState& s = *a.state;
  const std::ptrdiff_t n = static_cast<std::ptrdiff_t>(a.level.words) * a.level.orientations;
  for (int q = s.first[w]; q >= a.low; --q)
    for (u64 plane = s.planes[q * n + w]; plane; plane &= plane - 1) m[lowest(plane)] |= 1 << q;
}
template <class T>
inline void restore_tile(const RestoreArgs<T>& a, T* p, int w, u64 sig) {
  i32 m[64] = {};
  load_word(a, w, m);
  for (; sig; sig &= sig - 1) {
    const unsigned i = lowest(sig);
    p[tile_row(i) * a.row_stride + tile_column(i)] = dequantise(m[i], a.state->sign[w] >> i & 1, a);
  }
}
template <class T>
inline T* pack_word(const RestoreArgs<T>& a, int w, u64 sig, T* out) {
  i32 m[64] = {};
  load_word(a, w, m);
  for (; sig; sig &= sig - 1) {
    const unsigned i = lowest(sig);
    *out++ = dequantise(m[i], a.state->sign[w] >> i & 1, a);
  }
  return out;
}
template <class T>
inline void unpack_tile(u64 word, const u32* from, T* p, std::ptrdiff_t row) {
  for (int y = 0; y < 8; ++y) std::memset(p + y * row, 0, 8 * sizeof(T));
  for (; word; word &= word - 1) {
    const unsigned i = lowest(word);
    std::memcpy(p + tile_row(i) * row + tile_column(i), from++, sizeof(T));
  }
}
#endif

template <class T>
void restore(const RestoreArgs<T>& a) {
  const LevelState& s = *a.state;
  const int first = a.orientation_index * a.level.words;
  for (int i = 0; i < a.level.words; ++i) {
    const int w = first + i;
    const u64 sig = s.sig[w];
    if (!sig) continue;
    const WordBase& base = a.level.base[i];
    T* p = a.origin + base.t * a.frame_stride + base.y * a.row_stride + base.x;
    if (a.level.kind == WordKind::kTile8x8 && a.level.valid[w] == ~u64{0})
      restore_tile(a, p, w, sig);
    else
      restore_other(a, p, w, sig);
  }
}

template <class T>
std::size_t pack(const RestoreArgs<T>& a, int first, int number, u64* words, T* out) {
  const T* const begin = out;
  for (int i = 0; i < number; ++i) {
    const int w = a.orientation_index * a.level.words + first + i;
    words[i] = a.state->sig[w];
    if (words[i]) out = pack_word(a, w, words[i], out);
  }
  return static_cast<std::size_t>(out - begin);
}

// A tile of which not all rows or columns are there.
template <class T>
void unpack_part(u64 word, const u32* from, const WordBase& base, const UnpackArgs<T>& a) {
  const auto row = [&](std::ptrdiff_t y) { return a.origin + (y - a.first_row) * a.row_stride + base.x; };
  const int columns = a.width - base.x < 8 ? a.width - base.x : 8;
  for (int y = base.y; y < base.y + 8; ++y)
    if (columns > 0 && y >= a.first_row && y < a.end_row)
      std::memset(row(y), 0, static_cast<std::size_t>(columns) * sizeof(T));
  for (; word; word &= word - 1, ++from) {
    const std::ptrdiff_t y = base.y + tile_row(lowest(word));
    if (y >= a.first_row && y < a.end_row) std::memcpy(row(y) + tile_column(lowest(word)), from, sizeof(T));
  }
}

template <class T>
void unpack(const UnpackArgs<T>& a) {
  const u32* from = a.packed + 2 * a.words;
  for (int i = 0; i < a.words; ++i) {
    const WordBase& base = a.base[i];
    u64 word;
    std::memcpy(&word, a.packed + 2 * i, sizeof word);
    if (base.y >= a.first_row && base.y + 8 <= a.end_row && base.x + 8 <= a.width)
      unpack_tile(word, from, a.origin + (base.y - a.first_row) * a.row_stride + base.x, a.row_stride);
    else
      unpack_part(word, from, base, a);
    from += count(word);
  }
}

}  // namespace

const Kernels kKernels = {slice<float>, slice<i32>,  encode_segment, append,        decode_plane, restore<float>,
                          restore<i32>, pack<float>, pack<i32>,      unpack<float>, unpack<i32>};

}  // namespace trivelet::zerotree::TRIVELET_ISA
