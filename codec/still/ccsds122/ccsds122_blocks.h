// Converts between subbands and bit planes: gather() splits the 63 AC coefficients of a block into planes, scatter() is
// the inverse. Lane 63 - i of a block is coefficient i (see ccsds122_kernels.h). A part of ccsds122_kernels.cpp.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "codec/still/ccsds122/ccsds122_kernels.h"

namespace trivelet::ccsds122::TRIVELET_ISA {
namespace {

struct BlockPlace {
  std::ptrdiff_t at[3];  ///< offsets of the block's first sample in the bands of levels 3, 2, 1
  std::ptrdiff_t stride[3];
};
inline BlockPlace place_of(std::int64_t row, std::int64_t column, std::int64_t wide) {
  return {{row * wide + column, 2 * (row * 2 * wide + column), 4 * (row * 4 * wide + column)},
          {wide, 2 * wide, 4 * wide}};
}

#if defined(__AVX2__)

/// Loads the 64 lanes of a block as sixteen groups of four int32; group 15 - n = nibble n in flat order.
inline void load_lanes(const BandView& bands, const BlockPlace& p, const __m128i* shift, __m128i* group) {
  const std::int32_t* const* d = bands.data;
  group[15] = _mm_set_epi32(0, _mm_cvtsi128_si32(_mm_sll_epi32(_mm_cvtsi32_si128(d[kHL3][p.at[0]]), shift[kHL3])),
                            _mm_cvtsi128_si32(_mm_sll_epi32(_mm_cvtsi32_si128(d[kLH3][p.at[0]]), shift[kLH3])),
                            _mm_cvtsi128_si32(_mm_sll_epi32(_mm_cvtsi32_si128(d[kHH3][p.at[0]]), shift[kHH3])));
  for (int i = 0; i < 3; ++i) {
    const std::int32_t* c = d[kHL2 + i] + p.at[1];
    const __m128i a = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(c));
    const __m128i b = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(c + p.stride[1]));
    group[14 - i] = _mm_sll_epi32(_mm_shuffle_epi32(_mm_unpacklo_epi64(a, b), 0x1B), shift[kHL2 + i]);
    const std::int32_t* g = d[kHL1 + i] + p.at[2];
    for (int y = 0; y < 2; ++y, g += 2 * p.stride[2]) {
      const __m128i r = _mm_sll_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(g)), shift[kHL1 + i]);
      const __m128i s =
          _mm_sll_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(g + p.stride[2])), shift[kHL1 + i]);
      group[11 - 4 * i - 2 * y] = _mm_shuffle_epi32(_mm_unpacklo_epi64(r, s), 0x1B);
      group[10 - 4 * i - 2 * y] = _mm_shuffle_epi32(_mm_unpackhi_epi64(r, s), 0x1B);
    }
  }
}

/// The inverse: stores lanes in the subbands.
inline void store_lanes(const std::int32_t* lanes, const BlockPlace& p, const BandView& bands) {
  const auto group = [&](int n) { return _mm_load_si128(reinterpret_cast<const __m128i*>(lanes + 4 * n)); };
  bands.data[kHL3][p.at[0]] = lanes[62];
  bands.data[kLH3][p.at[0]] = lanes[61];
  bands.data[kHH3][p.at[0]] = lanes[60];
  for (int i = 0; i < 3; ++i) {
    std::int32_t* c = bands.data[kHL2 + i] + p.at[1];
    const __m128i q = _mm_shuffle_epi32(group(14 - i), 0x1B);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(c), q);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(c + p.stride[1]), _mm_unpackhi_epi64(q, q));
    std::int32_t* g = bands.data[kHL1 + i] + p.at[2];
    for (int y = 0; y < 2; ++y, g += 2 * p.stride[2]) {
      const __m128i a = _mm_shuffle_epi32(group(11 - 4 * i - 2 * y), 0x1B);
      const __m128i b = _mm_shuffle_epi32(group(10 - 4 * i - 2 * y), 0x1B);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(g), _mm_unpacklo_epi64(a, b));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(g + p.stride[2]), _mm_unpackhi_epi64(a, b));
    }
  }
}

#else

/// The sample of lane i of a block, by the definition of the block.
inline std::int32_t* lane_place(const BandView& bands, const BlockPlace& p, int i) {
  if (i < 4) return bands.data[kHL3 + i - 1] + p.at[0];
  if (i < 16) {
    const int family = (i - 4) / 4, k = (i - 4) % 4;
    return bands.data[kHL2 + family] + p.at[1] + (k >> 1) * p.stride[1] + (k & 1);
  }
  const int family = (i - 16) / 16, j = (i - 16) / 4 % 4, k = (i - 16) % 4;
  return bands.data[kHL1 + family] + p.at[2] + ((j & 2) + (k >> 1)) * p.stride[2] + 2 * (j & 1) + (k & 1);
}
inline int lane_band(int i) { return i < 4 ? kHL3 + i - 1 : i < 16 ? kHL2 + (i - 4) / 4 : kHL1 + (i - 16) / 16; }

inline void store_lanes(const std::int32_t* lanes, const BlockPlace& p, const BandView& bands) {
  for (int i = 1; i < 64; ++i) *lane_place(bands, p, i) = lanes[63 - i];
}

#endif

inline int bit_width32(std::uint32_t v) { return v ? 32 - __builtin_clz(v) : 0; }

#if defined(__AVX512BW__)

inline int block_planes(const __m128i* group, std::uint64_t* sign, std::uint64_t* planes, std::size_t stride) {
  __m512i v[4], magnitude[4];
  std::uint64_t s = 0;
  __m512i any = _mm512_setzero_si512();
  for (int q = 0; q < 4; ++q) {
    v[q] = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_set_m128i(group[4 * q + 1], group[4 * q])),
                              _mm256_set_m128i(group[4 * q + 3], group[4 * q + 2]), 1);
    s |= static_cast<std::uint64_t>(_mm512_movepi32_mask(v[q])) << (16 * q);
    magnitude[q] = _mm512_abs_epi32(v[q]);
    any = _mm512_or_si512(any, magnitude[q]);
  }
  *sign = s;
  const int depth = bit_width32(static_cast<std::uint32_t>(_mm512_reduce_or_epi32(any)));
  if (depth <= 16) {
    const __m512i low = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(magnitude[0])),
                                           _mm512_cvtepi32_epi16(magnitude[1]), 1);
    const __m512i high = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(magnitude[2])),
                                            _mm512_cvtepi32_epi16(magnitude[3]), 1);
    for (int b = 0; b < depth; ++b) {
      const __m512i bit = _mm512_set1_epi16(static_cast<short>(1U << b));
      planes[static_cast<std::size_t>(b) * stride] =
          static_cast<std::uint64_t>(_mm512_test_epi16_mask(high, bit)) << 32 | _mm512_test_epi16_mask(low, bit);
    }
  } else {
    for (int b = 0; b < depth; ++b) {
      const __m512i bit = _mm512_set1_epi32(static_cast<int>(1U << b));
      std::uint64_t word = 0;
      for (int q = 0; q < 4; ++q)
        word |= static_cast<std::uint64_t>(_mm512_test_epi32_mask(magnitude[q], bit)) << (16 * q);
      planes[static_cast<std::size_t>(b) * stride] = word;
    }
  }
  return depth;
}

#elif defined(__AVX2__)

inline int block_planes(const __m128i* group, std::uint64_t* sign, std::uint64_t* planes, std::size_t stride) {
  __m256i magnitude[8];
  std::uint64_t s = 0;
  __m256i any = _mm256_setzero_si256();
  for (int q = 0; q < 8; ++q) {
    const __m256i v = _mm256_set_m128i(group[2 * q + 1], group[2 * q]);
    s |= static_cast<std::uint64_t>(static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(v)))) << (8 * q);
    magnitude[q] = _mm256_abs_epi32(v);
    any = _mm256_or_si256(any, magnitude[q]);
  }
  *sign = s;
  __m128i fold = _mm_or_si128(_mm256_castsi256_si128(any), _mm256_extracti128_si256(any, 1));
  fold = _mm_or_si128(fold, _mm_unpackhi_epi64(fold, fold));
  fold = _mm_or_si128(fold, _mm_shuffle_epi32(fold, 1));
  const int depth = bit_width32(static_cast<std::uint32_t>(_mm_cvtsi128_si32(fold)));
  // Collects byte k of all 64 magnitudes; movemask then extracts plane after plane from the top bits.
  const __m256i byte_mask = _mm256_set1_epi32(0xFF);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int k = 0; 8 * k < depth; ++k) {
    const __m128i by = _mm_cvtsi32_si128(8 * k);
    __m256i half[2];
    for (int h = 0; h < 2; ++h) {
      __m256i b[4];
      for (int q = 0; q < 4; ++q) b[q] = _mm256_and_si256(_mm256_srl_epi32(magnitude[4 * h + q], by), byte_mask);
      const __m256i packed = _mm256_packus_epi16(_mm256_packus_epi32(b[0], b[1]), _mm256_packus_epi32(b[2], b[3]));
      half[h] = _mm256_permutevar8x32_epi32(packed, order);
    }
    for (int b = 7; b >= 0; --b) {
      if (8 * k + b < depth)
        planes[static_cast<std::size_t>(8 * k + b) * stride] =
            static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm256_movemask_epi8(half[1]))) << 32 |
            static_cast<std::uint32_t>(_mm256_movemask_epi8(half[0]));
      half[0] = _mm256_add_epi8(half[0], half[0]);
      half[1] = _mm256_add_epi8(half[1], half[1]);
    }
  }
  return depth;
}

#endif

void gather(const BandView& bands, std::uint64_t first_block, int count, const int* shift, BlockPlanes out) {
  const std::uint64_t wide = static_cast<std::uint64_t>(bands.blocks_wide);
  std::int64_t row = static_cast<std::int64_t>(first_block / wide);
  std::int64_t column = static_cast<std::int64_t>(first_block % wide);
#if defined(__AVX2__)
  __m128i shifts[kBands];
  for (int b = 0; b < kBands; ++b) shifts[b] = _mm_cvtsi32_si128(shift[b]);
#endif
  for (int m = 0; m < count; ++m) {
    const BlockPlace p = place_of(row, column, bands.blocks_wide);
    out.dc[m] = static_cast<std::int32_t>(static_cast<std::uint32_t>(bands.data[kLL3][p.at[0]]) << shift[kLL3]);
#if defined(__AVX2__)
    __m128i group[16];
    load_lanes(bands, p, shifts, group);
    out.depth[m] = static_cast<std::uint8_t>(block_planes(group, out.sign + m, out.planes + m, out.stride));
#else
    std::uint32_t magnitude[64];
    std::uint32_t any = 0;
    std::uint64_t sign = 0;
    for (int i = 1; i < 64; ++i) {
      const std::int32_t v = *lane_place(bands, p, i);
      const std::uint32_t u = static_cast<std::uint32_t>(v) << shift[lane_band(i)];
      sign |= static_cast<std::uint64_t>(u >> 31) << (63 - i);
      magnitude[i] = u >> 31 ? 0U - u : u;
      any |= magnitude[i];
    }
    out.sign[m] = sign;
    const int depth = bit_width32(any);
    out.depth[m] = static_cast<std::uint8_t>(depth);
    for (int b = 0; b < depth; ++b) {
      std::uint64_t word = 0;
      for (int i = 1; i < 64; ++i) word |= static_cast<std::uint64_t>(magnitude[i] >> b & 1) << (63 - i);
      out.planes[static_cast<std::size_t>(b) * out.stride + static_cast<std::size_t>(m)] = word;
    }
#endif
    if (++column == bands.blocks_wide) {
      column = 0;
      ++row;
    }
  }
}

/// Assembles the magnitudes of all lanes from planes 0 .. depth - 1.
inline void lane_magnitudes(const std::uint64_t* planes, std::size_t stride, int from, int depth,
                            std::uint32_t* lanes) {
#if defined(__AVX512BW__)
  if (depth <= 16) {
    __m512i low = _mm512_setzero_si512(), high = low;
    for (int b = from; b < depth; ++b) {
      const std::uint64_t word = planes[static_cast<std::size_t>(b) * stride];
      const __m512i bit = _mm512_set1_epi16(static_cast<short>(1U << b));
      low = _mm512_mask_add_epi16(low, static_cast<__mmask32>(word), low, bit);
      high = _mm512_mask_add_epi16(high, static_cast<__mmask32>(word >> 32), high, bit);
    }
    _mm512_store_si512(lanes, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(low)));
    _mm512_store_si512(lanes + 16, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(low, 1)));
    _mm512_store_si512(lanes + 32, _mm512_cvtepu16_epi32(_mm512_castsi512_si256(high)));
    _mm512_store_si512(lanes + 48, _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(high, 1)));
    return;
  }
  for (int q = 0; q < 4; ++q) {
    __m512i v = _mm512_setzero_si512();
    for (int b = from; b < depth; ++b)
      v = _mm512_mask_add_epi32(v, static_cast<__mmask16>(planes[static_cast<std::size_t>(b) * stride] >> (16 * q)), v,
                                _mm512_set1_epi32(static_cast<int>(1U << b)));
    _mm512_store_si512(lanes + 16 * q, v);
  }
#elif defined(__AVX2__)
  const __m256i spread = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
  const __m256i select = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ULL));
  for (int i = 0; i < 64; ++i) lanes[i] = 0;
  for (int k = from / 8; 8 * k < depth; ++k) {
    for (int h = 0; h < 2; ++h) {
      __m256i bytes = _mm256_setzero_si256();
      for (int b = 8 * k < from ? from : 8 * k; b < depth && b < 8 * k + 8; ++b) {
        const std::uint64_t word = planes[static_cast<std::size_t>(b) * stride] >> (32 * h);
        const __m256i x = _mm256_and_si256(
            _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(static_cast<std::uint32_t>(word))), spread), select);
        bytes = _mm256_or_si256(bytes, _mm256_and_si256(_mm256_cmpeq_epi8(x, select),
                                                        _mm256_set1_epi8(static_cast<char>(1U << (b - 8 * k)))));
      }
      alignas(32) std::uint8_t column[32];
      _mm256_store_si256(reinterpret_cast<__m256i*>(column), bytes);
      for (int i = 0; i < 32; i += 8) {
        const __m256i wide = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(column + i)));
        __m256i* to = reinterpret_cast<__m256i*>(lanes + 32 * h + i);
        _mm256_store_si256(to,
                           _mm256_or_si256(_mm256_load_si256(to), _mm256_sll_epi32(wide, _mm_cvtsi32_si128(8 * k))));
      }
    }
  }
#else
  for (int i = 0; i < 64; ++i) lanes[i] = 0;
  for (int b = from; b < depth; ++b) {
    const std::uint64_t word = planes[static_cast<std::size_t>(b) * stride];
    for (int i = 0; i < 64; ++i) lanes[i] |= static_cast<std::uint32_t>(word >> i & 1) << b;
  }
#endif
}

void scatter(const BlockPlanes& in, std::uint32_t from, int count, std::uint64_t first_block, const Dequantiser& q,
             const BandView& bands) {
  const std::uint64_t wide = static_cast<std::uint64_t>(bands.blocks_wide);
  std::int64_t row = static_cast<std::int64_t>((first_block + from) / wide);
  std::int64_t column = static_cast<std::int64_t>((first_block + from) % wide);
  alignas(64) std::uint32_t magnitude[64];
  alignas(64) std::int32_t value[64];
  for (int n = 0; n < count; ++n) {
    const std::size_t m = from + static_cast<std::size_t>(n);
    const BlockPlace p = place_of(row, column, bands.blocks_wide);
    // Planes below last_plane are unknown.
    lane_magnitudes(in.planes + m, in.stride, q.last_plane, in.depth[m], magnitude);
    std::uint64_t known = ~std::uint64_t{0};
    if (q.partial && m >= q.refined_blocks && q.last_plane < in.depth[m]) {
      known = in.planes[static_cast<std::size_t>(q.last_plane) * in.stride + m];
      if (m == q.refined_blocks) known |= q.partly_refined;
    }
    if (q.partial && q.last_plane >= in.depth[m]) known = ~std::uint64_t{0};
    const std::uint64_t sign = in.sign[m];
    if (q.real) {
      alignas(64) float real[64];
      for (int i = 0; i < 64; ++i) {
        const float offset = known >> i & 1 ? q.real_offset[0][i] : q.real_offset[1][i];
        const float v = magnitude[i] ? static_cast<float>(magnitude[i]) + offset : 0.0F;
        real[i] = sign >> i & 1 ? -v : v;
      }
      __builtin_memcpy(value, real, sizeof value);
    } else {
      for (int i = 0; i < 64; ++i) {
        const std::int32_t offset = known >> i & 1 ? q.offset[0][i] : q.offset[1][i];
        const std::int32_t v = magnitude[i] ? static_cast<std::int32_t>(magnitude[i] >> q.shift[i]) + offset : 0;
        value[i] = sign >> i & 1 ? -v : v;
      }
    }
    store_lanes(value, p, bands);
    if (++column == bands.blocks_wide) {
      column = 0;
      ++row;
    }
  }
}

}  // namespace
}  // namespace trivelet::ccsds122::TRIVELET_ISA
