// Loops of the predictive profile over rows for AVX2 (prediction_kernels.cpp). One multiply-add instruction handles two
// taps or two samples.
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>
#include <cstring>

#include "codec/predict/prediction_kernels.h"

namespace trivelet::prediction::TRIVELET_ISA {

namespace {

__m256i load(const std::int16_t* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

void weigh(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums) {
  for (int x = 0; x < n; x += 16) {
    __m256i low = _mm256_setzero_si256();
    __m256i high = low;
    for (int i = 0; i < count; i += 2) {
      const bool two = i + 1 < count;
      std::int32_t pair = static_cast<std::uint16_t>(weights[i]);
      if (two)
        pair |= static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint16_t>(weights[i + 1])) << 16);
      const __m256i w = _mm256_set1_epi32(pair);
      const __m256i a = load(taps[i] + x);
      const __m256i b = two ? load(taps[i + 1] + x) : _mm256_setzero_si256();
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), w));
      high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), w));
    }
    // The unpack instructions work within halves of a register, so the halves are put in order here.
    auto* out = reinterpret_cast<__m256i*>(sums + x);
    _mm256_storeu_si256(out, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(out + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

void differences(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out) {
  const __m128i count = _mm_cvtsi32_si128(shift);
  const __m256i limit = _mm256_set1_epi16(2047);
  const __m256i least = _mm256_set1_epi16(-2047);
  for (int x = 0; x < n; x += 16) {
    const __m256i d = _mm256_sra_epi16(_mm256_subs_epi16(load(from + x), load(base + x)), count);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + x), _mm256_max_epi16(_mm256_min_epi16(d, limit), least));
  }
}

std::int32_t sum_of(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

// Four products of row i at once, with rows j..j+3, so that row i is loaded once for them.
void products(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out) {
  for (int i = 0; i < count; ++i) {
    const std::int16_t* a = rows + static_cast<std::size_t>(i) * stride;
    int j = 0;
    for (; j + 4 <= i + 1; j += 4, out += 4) {
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
      for (int x = 0; x < n; x += 16) {
        const __m256i v = load(a + x);
        for (std::size_t k = 0; k < 4; ++k)
          sum[k] = _mm256_add_epi32(sum[k], _mm256_madd_epi16(v, load(b + k * stride + x)));
      }
      const __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(sum[0], sum[1]), _mm256_hadd_epi32(sum[2], sum[3]));
      const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
      std::memcpy(out, &four, sizeof four);
    }
    for (; j <= i; ++j) {
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      __m256i sum = _mm256_setzero_si256();
      for (int x = 0; x < n; x += 16) sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load(a + x), load(b + x)));
      *out++ = sum_of(sum);
    }
  }
}

#if !defined(__AVX512BW__)  // AVX-512 has better instructions for the following loops
/// Packs 16 numbers below 256 into bytes.
__m128i bytes_of(__m256i low, __m256i high) {
  // The order 0..3 8..11 4..7 12..15 becomes 0..15.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(packed), _mm256_extracti128_si256(packed, 1));
}

struct Tokens {
  __m256i code, token;
};
inline Tokens tokens_of(__m128i numbers, __m256i sums, __m256i low, __m256i high) {
  const __m256i rounded =
      _mm256_srai_epi32(_mm256_add_epi32(sums, _mm256_set1_epi32(1 << (kWeightBits - 1))), kWeightBits);
  const __m256i r = _mm256_min_epi32(_mm256_max_epi32(rounded, low), high);
  const __m256i d = _mm256_sub_epi32(_mm256_cvtepi16_epi32(numbers), r);
  // The code is 2d - 1 for d > 0, else -2d: twice the magnitude, less 1 for d > 0.
  const __m256i positive = _mm256_cmpgt_epi32(d, _mm256_setzero_si256());
  const __m256i code = _mm256_add_epi32(_mm256_slli_epi32(_mm256_abs_epi32(d), 1), positive);
  // Tokens with extra bits depend on the exponent and the two bits below the leading one of code - 8. The float of code
  // - 8 holds them in adjacent bits.
  const __m256 distance = _mm256_cvtepi32_ps(_mm256_sub_epi32(code, _mm256_set1_epi32(8)));
  const __m256i large = _mm256_sub_epi32(_mm256_srli_epi32(_mm256_castps_si256(distance), 21), _mm256_set1_epi32(500));
  const __m256i has_extra = _mm256_cmpgt_epi32(code, _mm256_set1_epi32(kPlainTokens - 1));
  return {code, _mm256_blendv_epi8(code, large, has_extra)};
}

bool tokens(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint32_t* codes,
            std::uint8_t* tokens) {
  const __m256i least = _mm256_set1_epi32(low);
  const __m256i most = _mm256_set1_epi32(high);
  __m128i any = _mm_setzero_si128();
  for (int x = 0; x < n; x += 16) {
    const __m256i numbers = load(row + x);
    const auto* s = reinterpret_cast<const __m256i*>(sums + x);
    const Tokens a = tokens_of(_mm256_castsi256_si128(numbers), _mm256_loadu_si256(s), least, most);
    const Tokens b = tokens_of(_mm256_extracti128_si256(numbers, 1), _mm256_loadu_si256(s + 1), least, most);
    auto* c = reinterpret_cast<__m256i*>(codes + x);
    _mm256_storeu_si256(c, a.code);
    _mm256_storeu_si256(c + 1, b.code);
    const __m128i t = bytes_of(a.token, b.token);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(tokens + x), t);
    any = _mm_max_epu8(any, t);  // tokens behind the row may count here, which only costs a needless scan
  }
  return _mm_movemask_epi8(_mm_cmpgt_epi8(any, _mm_set1_epi8(kPlainTokens - 1))) != 0;
}

/// The contexts of eight sums.
inline __m256i levels_of(const std::uint8_t* context_at, __m256i sums) {
  const __m256i shared = _mm256_add_epi32(_mm256_srli_epi32(sums, 5), _mm256_set1_epi32(kSumsLooked));
  const __m256i place = _mm256_blendv_epi8(shared, sums, _mm256_cmpgt_epi32(_mm256_set1_epi32(kSumsLooked), sums));
  return _mm256_and_si256(_mm256_i32gather_epi32(reinterpret_cast<const int*>(context_at), place, 1),
                          _mm256_set1_epi32(255));
}

void contexts(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out) {
  const std::uint8_t* context_at = contexts_by_place().data();
  for (int x = 0; x < n; x += 16) {
    const __m256i sums = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(around + x));
    __m256i a = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(sums));
    __m256i b = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(sums, 1));
    if (first) {
      a = _mm256_srli_epi32(_mm256_mullo_epi32(a, _mm256_set1_epi32(9)), 2);
      b = _mm256_srli_epi32(_mm256_mullo_epi32(b, _mm256_set1_epi32(9)), 2);
    }
    if (x + 16 > n) {  // values behind the row are arbitrary, so indices are clamped
      const __m256i most = _mm256_set1_epi32(kMaxSum);
      a = _mm256_min_epi32(a, most);
      b = _mm256_min_epi32(b, most);
    }
    const __m128i levels = bytes_of(levels_of(context_at, a), levels_of(context_at, b));
    const __m128i f = _mm_loadu_si128(reinterpret_cast<const __m128i*>(flat + x));
    const __m128i is_flat = _mm_cmpgt_epi8(f, _mm_setzero_si128());
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + x),
                     _mm_blendv_epi8(levels, _mm_sub_epi8(f, _mm_set1_epi8(1)), is_flat));
  }
}

/// For each mask of the eight states that need a word: the index of the word that each state gets.
constexpr std::array<std::array<std::uint8_t, 8>, 256> make_places() {
  std::array<std::array<std::uint8_t, 8>, 256> places{};
  for (std::size_t mask = 0; mask < 256; ++mask) {
    std::uint8_t next = 0;
    for (std::size_t i = 0; i < 8; ++i)
      if (mask >> i & 1) places[mask][i] = next++;
  }
  return places;
}
alignas(64) constexpr auto kPlaces = make_places();

/// Gives each state that has become too small the next word, of which eight must be readable.
inline __m256i with_words(__m256i state, StateLanes& lanes) {
  const __m256i wants = _mm256_cmpeq_epi32(_mm256_srli_epi32(state, 16), _mm256_setzero_si256());
  const auto mask = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(wants)));
  const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes.words)));
  const __m256i places = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(kPlaces[mask].data())));
  const __m256i filled = _mm256_or_si256(_mm256_slli_epi32(state, 16), _mm256_permutevar8x32_epi32(words, places));
  const auto count = static_cast<std::size_t>(std::popcount(mask));
  lanes.words += 2 * count;
  lanes.left -= count;
  return _mm256_blendv_epi8(state, filled, wants);
}

/// Takes eight tokens. Eight words must be readable.
inline __m256i take_eight(const std::uint32_t* lookups, const std::uint8_t* contexts, __m256i& state, StateLanes& lanes,
                          __m256i& seen) {
  const __m256i context = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(contexts)));
  const __m256i slot = _mm256_or_si256(_mm256_slli_epi32(context, kFrequencyBits),
                                       _mm256_and_si256(state, _mm256_set1_epi32(kFrequencySum - 1)));
  const __m256i entry = _mm256_i32gather_epi32(reinterpret_cast<const int*>(lookups), slot, 4);
  seen = _mm256_or_si256(seen, entry);
  const __m256i frequency = _mm256_and_si256(_mm256_srli_epi32(entry, 7), _mm256_set1_epi32(0xfff));
  const __m256i place = _mm256_and_si256(_mm256_srli_epi32(entry, 19), _mm256_set1_epi32(0x7ff));
  state = _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(state, kFrequencyBits)), place);
  state = with_words(state, lanes);
  return _mm256_and_si256(entry, _mm256_set1_epi32(127));
}

void take(const std::uint32_t* lookups, const std::uint8_t* contexts, int n, StateLanes& lanes, std::uint8_t* tokens) {
  auto* states = reinterpret_cast<__m256i*>(lanes.state.data());
  __m256i a = _mm256_loadu_si256(states);
  __m256i b = _mm256_loadu_si256(states + 1);
  __m256i seen = _mm256_setzero_si256();
  StateLanes l = lanes;
  int x = 0;
  for (; x + kStates <= n && l.left >= kStates; x += kStates) {
    const __m256i t = take_eight(lookups, contexts + x, a, l, seen);
    const __m256i u = take_eight(lookups, contexts + x + 8, b, l, seen);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(tokens + x), bytes_of(t, u));
  }
  lanes = l;
  _mm256_storeu_si256(states, a);
  _mm256_storeu_si256(states + 1, b);
  std::array<std::uint32_t, 8> entries{};
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(entries.data()), seen);
  for (const std::uint32_t e : entries) lanes.seen |= e;
  if (x < n) take_tokens(lookups, contexts + x, n - x, lanes, tokens + x);
}

/// Expects eight symbols. Eight words must be readable. Returns a lane of ones for each that the states say.
inline __m256i expect_eight(const std::uint32_t* packed, const std::uint16_t* symbols, __m256i& state,
                            StateLanes& lanes) {
  const __m256i symbol = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)));
  const __m256i entry = _mm256_i32gather_epi32(reinterpret_cast<const int*>(packed), symbol, 4);
  const __m256i frequency = _mm256_srli_epi32(entry, 16);
  const __m256i place = _mm256_sub_epi32(_mm256_and_si256(state, _mm256_set1_epi32(kFrequencySum - 1)),
                                         _mm256_and_si256(entry, _mm256_set1_epi32(0xffff)));
  // Both are small, so that a comparison of signed numbers does.
  const __m256i right = _mm256_andnot_si256(_mm256_srai_epi32(place, 31), _mm256_cmpgt_epi32(frequency, place));
  state = _mm256_add_epi32(_mm256_mullo_epi32(frequency, _mm256_srli_epi32(state, kFrequencyBits)), place);
  state = with_words(state, lanes);
  return right;
}

bool expect(const std::uint32_t* packed, const std::uint16_t* symbols, int n, StateLanes& lanes) {
  auto* states = reinterpret_cast<__m256i*>(lanes.state.data());
  __m256i a = _mm256_loadu_si256(states);
  __m256i b = _mm256_loadu_si256(states + 1);
  __m256i right = _mm256_set1_epi32(-1);
  StateLanes l = lanes;
  int x = 0;
  for (; x + kStates <= n && l.left >= kStates; x += kStates) {
    right = _mm256_and_si256(right, expect_eight(packed, symbols + x, a, l));
    right = _mm256_and_si256(right, expect_eight(packed, symbols + x + 8, b, l));
  }
  lanes = l;
  _mm256_storeu_si256(states, a);
  _mm256_storeu_si256(states + 1, b);
  const bool rest = x == n || expect_symbols(packed, symbols + x, n - x, lanes);
  return rest && _mm256_movemask_epi8(right) == -1;
}
#endif

}  // namespace

}  // namespace trivelet::prediction::TRIVELET_ISA
