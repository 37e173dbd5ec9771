// Loops of the predictive profile over rows for AVX-512 (prediction_kernels.cpp), where AVX2 has no such instructions:
// levels are found in a register, and all sixteen states advance at once.
#pragma once

#include <immintrin.h>

#include <array>
#include <bit>

#include "codec/predict/prediction_kernels.h"

namespace trivelet::prediction::TRIVELET_ISA {

namespace {

// The mask of the first n lanes.
constexpr std::uint32_t mask_of(int n) { return n >= 32 ? ~0u : (1u << n) - 1; }

/// Finds the levels by a binary search of five steps among 32 beginnings of levels, which are 16 bits each.
__m512i levels_of(__m512i begins, __m512i sums) {
  __m512i level = _mm512_setzero_si512();
  for (int step = 16; step > 0; step /= 2) {
    const __m512i higher = _mm512_add_epi16(level, _mm512_set1_epi16(static_cast<std::int16_t>(step)));
    const __mmask32 reached = _mm512_cmpge_epu16_mask(sums, _mm512_permutexvar_epi16(higher, begins));
    level = _mm512_mask_mov_epi16(level, reached, higher);
  }
  return level;
}

void contexts(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out) {
  alignas(64) static constexpr auto kBegins = [] {
    std::array<std::uint16_t, 32> b{};
    b.fill(0xffff);  // above every sum
    for (std::size_t i = 0; i < kAheadLevels; ++i) b[i] = static_cast<std::uint16_t>(kLevelBegins[i]);
    return b;
  }();
  const __m512i begins = _mm512_load_si512(kBegins.data());
  for (int x = 0; x < n; x += 32) {
    const __mmask32 inside = mask_of(n - x);
    __m512i sums = _mm512_maskz_loadu_epi16(inside, around + x);
    if (first) sums = _mm512_add_epi16(_mm512_add_epi16(sums, sums), _mm512_srli_epi16(sums, 2));  // 9/4
    const __m256i level = _mm512_cvtepi16_epi8(levels_of(begins, sums));
    const __m256i f = _mm256_maskz_loadu_epi8(inside, flat + x);
    const __m256i context = _mm256_add_epi8(level, _mm256_set1_epi8(kFlatContexts));
    const __m256i both = _mm256_mask_sub_epi8(context, _mm256_test_epi8_mask(f, f), f, _mm256_set1_epi8(1));
    _mm256_mask_storeu_epi8(out + x, inside, both);
  }
}

/// The reciprocal of f, rounded up.
alignas(64) constexpr auto kInverses = [] {
  std::array<double, kFrequencySum + 1> inverse{};
  for (std::size_t f = 1; f < inverse.size(); ++f)
    inverse[f] = std::bit_cast<double>(std::bit_cast<std::uint64_t>(1.0 / static_cast<double>(f)) + 1);
  return inverse;
}();

/// Quotients of 16 states. They are exact: the added part is less than 2^-18 of 1 / f, and a quotient that is not whole
/// is at least 1 / f below the next integer. A state waits for one product only, because the reciprocals are loaded
/// before.
inline __m512i divide(__m512i states, __m512i frequencies) {
  const auto half = [](__m256i a, __m256i f) {
    const __m512d inverse = _mm512_i32gather_pd(f, kInverses.data(), sizeof(double));
    return _mm512_cvttpd_epu32(_mm512_mul_pd(_mm512_cvtepu32_pd(a), inverse));
  };
  const __m256i low = half(_mm512_castsi512_si256(states), _mm512_castsi512_si256(frequencies));
  const __m256i high = half(_mm512_extracti64x4_epi64(states, 1), _mm512_extracti64x4_epi64(frequencies, 1));
  return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

std::uint16_t* put(const PutSymbol*, const std::uint32_t* packed, const std::uint16_t* symbols, int n,
                   std::uint32_t* states, std::uint16_t* word) {
  static_assert(kStates == 16);
  __m512i state = _mm512_loadu_si512(states);
  for (int x = (n - 1) / kStates * kStates; x >= 0; x -= kStates) {
    const auto inside = static_cast<__mmask16>(mask_of(n - x < kStates ? n - x : kStates));
    const __m512i symbol = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(inside, symbols + x));
    const __m512i entry = _mm512_mask_i32gather_epi32(_mm512_set1_epi32(1 << 16), inside, symbol, packed, 4);
    const __m512i frequency = _mm512_srli_epi32(entry, 16);
    const __m512i begin = _mm512_and_si512(entry, _mm512_set1_epi32(0xffff));
    const __mmask16 full =
        _mm512_mask_cmpge_epu32_mask(inside, _mm512_srli_epi32(state, 32 - kFrequencyBits), frequency);
    const int count = std::popcount(static_cast<unsigned>(full));
    word -= count;
    _mm256_mask_storeu_epi16(word, static_cast<__mmask16>(mask_of(count)),
                             _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(full, state)));
    const __m512i rest = _mm512_mask_srli_epi32(state, full, state, 16);
    const __m512i others = _mm512_sub_epi32(_mm512_set1_epi32(kFrequencySum), frequency);
    const __m512i next =
        _mm512_add_epi32(_mm512_add_epi32(rest, begin), _mm512_mullo_epi32(divide(rest, frequency), others));
    state = _mm512_mask_mov_epi32(state, inside, next);
  }
  _mm512_storeu_si512(states, state);
  return word;
}

/// Gives each state that has become too small the next word, of which 16 must be readable.
inline __m512i with_words(__m512i state, const std::uint8_t*& words, std::size_t& left) {
  const __mmask16 wants = _mm512_cmplt_epu32_mask(state, _mm512_set1_epi32(kLowestState));
  const __m512i next = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
  const auto count = static_cast<std::size_t>(std::popcount(static_cast<unsigned>(wants)));
  words += 2 * count;
  left -= count;
  return _mm512_mask_or_epi32(state, wants, _mm512_slli_epi32(state, 16), _mm512_maskz_expand_epi32(wants, next));
}

void take(const std::uint32_t* lookups, const std::uint8_t* contexts, int n, StateLanes& lanes, std::uint8_t* tokens) {
  __m512i state = _mm512_loadu_si512(lanes.state.data());
  __m512i seen = _mm512_setzero_si512();
  const std::uint8_t* words = lanes.words;
  std::size_t left = lanes.left;
  int x = 0;
  for (; x + kStates <= n && left >= kStates; x += kStates) {
    const __m512i context = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(contexts + x)));
    const __m512i slot = _mm512_or_si512(_mm512_slli_epi32(context, kFrequencyBits),
                                         _mm512_and_si512(state, _mm512_set1_epi32(kFrequencySum - 1)));
    const __m512i entry = _mm512_i32gather_epi32(slot, lookups, 4);
    seen = _mm512_or_si512(seen, entry);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(tokens + x),
                     _mm512_cvtepi32_epi8(_mm512_and_si512(entry, _mm512_set1_epi32(127))));
    const __m512i frequency = _mm512_and_si512(_mm512_srli_epi32(entry, 7), _mm512_set1_epi32(0xfff));
    const __m512i place = _mm512_and_si512(_mm512_srli_epi32(entry, 19), _mm512_set1_epi32(0x7ff));
    state = _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(state, kFrequencyBits)), place);
    state = with_words(state, words, left);
  }
  _mm512_storeu_si512(lanes.state.data(), state);
  lanes.words = words;
  lanes.left = left;
  lanes.seen |= static_cast<std::uint32_t>(_mm512_reduce_or_epi32(seen));
  if (x < n) take_tokens(lookups, contexts + x, n - x, lanes, tokens + x);
}

bool expect(const std::uint32_t* packed, const std::uint16_t* symbols, int n, StateLanes& lanes) {
  __m512i state = _mm512_loadu_si512(lanes.state.data());
  __mmask16 right = 0xffff;
  const std::uint8_t* words = lanes.words;
  std::size_t left = lanes.left;
  int x = 0;
  for (; x + kStates <= n && left >= kStates; x += kStates) {
    const __m512i symbol = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(symbols + x)));
    const __m512i entry = _mm512_i32gather_epi32(symbol, packed, 4);
    const __m512i frequency = _mm512_srli_epi32(entry, 16);
    const __m512i place = _mm512_sub_epi32(_mm512_and_si512(state, _mm512_set1_epi32(kFrequencySum - 1)),
                                           _mm512_and_si512(entry, _mm512_set1_epi32(0xffff)));
    right &= _mm512_cmplt_epu32_mask(place, frequency);
    state = _mm512_add_epi32(_mm512_mullo_epi32(frequency, _mm512_srli_epi32(state, kFrequencyBits)), place);
    state = with_words(state, words, left);
  }
  _mm512_storeu_si512(lanes.state.data(), state);
  lanes.words = words;
  lanes.left = left;
  return (x == n || expect_symbols(packed, symbols + x, n - x, lanes)) && right == 0xffff;
}

}  // namespace

}  // namespace trivelet::prediction::TRIVELET_ISA
