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

alignas(64) constexpr auto kBegins = [] {
  std::array<std::uint16_t, 32> b{};
  b.fill(0xffff);  // above every sum
  for (std::size_t i = 0; i < kAheadLevels; ++i) b[i] = static_cast<std::uint16_t>(kLevelBegins[i]);
  return b;
}();
/// 9/4 of 16-bit sums, as the first frame has fewer neighbours.
__m512i as_of_all_neighbours(__m512i sums) {
  return _mm512_add_epi16(_mm512_add_epi16(sums, sums), _mm512_srli_epi16(sums, 2));
}

void contexts(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out) {
  const __m512i begins = _mm512_load_si512(kBegins.data());
  for (int x = 0; x < n; x += 32) {
    const __mmask32 inside = mask_of(n - x);
    __m512i sums = _mm512_maskz_loadu_epi16(inside, around + x);
    if (first) sums = as_of_all_neighbours(sums);
    const __m256i level = _mm512_cvtepi16_epi8(levels_of(begins, sums));
    const __m256i f = _mm256_maskz_loadu_epi8(inside, flat + x);
    const __m256i context = _mm256_add_epi8(level, _mm256_set1_epi8(kFlatContexts));
    const __m256i both = _mm256_mask_sub_epi8(context, _mm256_test_epi8_mask(f, f), f, _mm256_set1_epi8(1));
    _mm256_mask_storeu_epi8(out + x, inside, both);
  }
}

__m512i load_masked(__mmask32 inside, const void* p) { return _mm512_maskz_loadu_epi16(inside, p); }

/// The contexts of 32 samples from x on, as 16 bits.
__m512i contexts_at(const NumberRows& numbers, const ErrorRows& errors, int x, __mmask32 inside) {
  const auto at = [x, inside](const auto* row) { return load_masked(inside, row + x); };
  const __m512i a = at(numbers.above);
  __mmask32 same =
      _mm512_cmpeq_epi16_mask(a, at(numbers.above - 1)) & _mm512_cmpeq_epi16_mask(a, at(numbers.above + 1));
  __mmask32 beyond = 0;
  const __m512i e = at(errors.above);
  __m512i sums = _mm512_add_epi16(_mm512_add_epi16(_mm512_add_epi16(e, e), at(errors.above2)),
                                  _mm512_add_epi16(at(errors.above - 1), at(errors.above + 1)));
  if (errors.before) {
    const __m512i b = at(errors.before);
    const __m512i beside = _mm512_add_epi16(at(errors.before - 1), at(errors.before + 1));
    const __m512i others = _mm512_add_epi16(at(errors.before_above), at(errors.before_below));
    sums = _mm512_add_epi16(sums, _mm512_add_epi16(_mm512_add_epi16(b, b), _mm512_add_epi16(beside, others)));
    same &= _mm512_cmpeq_epi16_mask(a, at(numbers.before));
    beyond = _mm512_cmpeq_epi16_mask(a, at(numbers.before + 1)) & _mm512_cmpeq_epi16_mask(a, at(numbers.before_below));
  } else {
    sums = as_of_all_neighbours(sums);
  }
  const __m512i level = levels_of(_mm512_load_si512(kBegins.data()), sums);
  const __m512i context = _mm512_add_epi16(level, _mm512_set1_epi16(kFlatContexts));
  const __m512i flat = _mm512_maskz_set1_epi16(~beyond, 1);
  return _mm512_mask_mov_epi16(context, same, flat);
}

/// Tokens and extra bits of 16 differences.
struct Said {
  __m512i token, extra;
};
inline Said said_by(__m512i d) {
  const __m512i twice = _mm512_slli_epi32(_mm512_abs_epi32(d), 1);
  const __m512i code =
      _mm512_mask_sub_epi32(twice, _mm512_cmpgt_epi32_mask(d, _mm512_setzero_si512()), twice, _mm512_set1_epi32(1));
  // The float of code - 8 holds its exponent and the two bits below the leading one, which are the token, in adjacent
  // bits.
  const __m512i distance = _mm512_sub_epi32(code, _mm512_set1_epi32(8));
  const __m512i parts = _mm512_castps_si512(_mm512_cvtepi32_ps(distance));
  const __m512i large = _mm512_sub_epi32(_mm512_srli_epi32(parts, 21), _mm512_set1_epi32(500));
  const __mmask16 has_extra = _mm512_cmpgt_epi32_mask(code, _mm512_set1_epi32(kPlainTokens - 1));
  const __m512i bits = _mm512_sub_epi32(_mm512_srli_epi32(parts, 23), _mm512_set1_epi32(127 + 2));
  const __m512i ones = _mm512_sub_epi32(_mm512_sllv_epi32(_mm512_set1_epi32(1), bits), _mm512_set1_epi32(1));
  return {_mm512_mask_mov_epi32(code, has_extra, large), _mm512_maskz_and_epi32(has_extra, distance, ones)};
}

/// The limits of predictions, in units of 1 / scale of a sample.
inline __m512i limited(__m512i p, int low, int high, int scale) {
  return _mm512_min_epi32(_mm512_max_epi32(p, _mm512_set1_epi32(low * scale)), _mm512_set1_epi32(high * scale));
}
inline __m512i rounded(__m512i sums, int shift) {
  return _mm512_srai_epi32(_mm512_add_epi32(sums, _mm512_set1_epi32(1 << (shift - 1))), shift);
}
inline __m512i error_of(__m512i numbers, __m512i fine_prediction) {
  const __m512i d = _mm512_sub_epi32(_mm512_slli_epi32(numbers, kFractionBits), fine_prediction);
  return _mm512_min_epi32(_mm512_srli_epi32(_mm512_abs_epi32(d), kFractionBits - 2), _mm512_set1_epi32(kMaxError));
}

/// Predictions of 16 numbers from their sums: errors, tokens and extra bits, each 32 bits.
struct Predicted {
  __m512i error, token, extra;
};
inline Predicted predicted(__m512i numbers, __m512i sums, const KnownRow& in) {
  const __m512i fine = limited(rounded(sums, kWeightBits - kFractionBits), in.low, in.high, 1 << kFractionBits);
  const __m512i error = error_of(numbers, fine);
  const __m512i d = _mm512_sub_epi32(numbers, limited(rounded(sums, kWeightBits), in.low, in.high, 1));
  const Said said = said_by(d);
  return {error, said.token, said.extra};
}

// Sums of 32 bits have the order of the unpack instructions, which packing undoes.
void symbols(const KnownRow& in, int n, const RowSymbols& out) {
  const auto pair = [](int first, int second) {
    return static_cast<std::int32_t>(static_cast<std::uint16_t>(first) |
                                     std::uint32_t{static_cast<std::uint16_t>(second)} << 16);
  };
  std::int32_t pairs[kMaxTaps / 2];
  const int even = in.count / 2 * 2;
  for (int i = 0; i < in.count; i += 2)
    pairs[i / 2] = pair(in.weights[kTapsInRow + i], i < even ? in.weights[kTapsInRow + i + 1] : 0);
  for (int x = 0; x < n; x += 32) {
    const std::uint32_t inside = mask_of(n - x);
    const auto add = [inside, x](const std::int16_t* first, const std::int16_t* second, std::int32_t weights,
                                 __m512i& low, __m512i& high) {
      const __m512i a = load_masked(inside, first + x);
      const __m512i b = load_masked(inside, second + x);
      const __m512i w = _mm512_set1_epi32(weights);
      low = _mm512_add_epi32(low, _mm512_madd_epi16(_mm512_unpacklo_epi16(a, b), w));
      high = _mm512_add_epi32(high, _mm512_madd_epi16(_mm512_unpackhi_epi16(a, b), w));
    };
    __m512i low = _mm512_setzero_si512();
    __m512i high = low;
    for (int i = 0; i < even; i += 2) add(in.taps[i], in.taps[i + 1], pairs[i / 2], low, high);
    if (even < in.count) add(in.taps[even], in.taps[even], pairs[even / 2], low, high);
    add(in.row - 1, in.row - 2, pair(in.weights[0], in.weights[1]), low, high);

    const __m512i numbers = load_masked(inside, in.row + x);
    const __m512i zero = _mm512_setzero_si512();
    const Predicted a = predicted(_mm512_srai_epi32(_mm512_unpacklo_epi16(zero, numbers), 16), low, in);
    const Predicted b = predicted(_mm512_srai_epi32(_mm512_unpackhi_epi16(zero, numbers), 16), high, in);
    const __m512i token = _mm512_packus_epi32(a.token, b.token);
    const __m512i context = contexts_at(in.numbers, in.errors, x, inside);
    _mm512_mask_storeu_epi16(out.errors + x, inside, _mm512_packus_epi32(a.error, b.error));
    _mm512_mask_storeu_epi16(out.extra + x, inside, _mm512_packus_epi32(a.extra, b.extra));
    _mm512_mask_storeu_epi16(out.symbols + x, inside, _mm512_add_epi16(_mm512_slli_epi16(context, 7), token));
    out.has_extra[x / 32] = _mm512_mask_cmpgt_epu16_mask(inside, token, _mm512_set1_epi16(kPlainTokens - 1));
  }
}

/// Predictions from sums, and their errors. Where the sample to the left continues a flat neighbourhood, it predicts.
void predict_levels(const LevelRow& in, std::int32_t* sums, int n, std::uint16_t* errors) {
  const auto load = [](__mmask16 inside, const std::int16_t* p) {
    return _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(inside, p));
  };
  for (int x = 0; x < n; x += 16) {
    const auto inside = static_cast<__mmask16>(mask_of(n - x < 16 ? n - x : 16));
    const __m512i left = load(inside, in.row + x - 1);
    const __m128i flat = _mm_maskz_loadu_epi8(inside, in.flat + x);
    const __mmask16 same = _mm512_cmpeq_epi32_mask(left, load(inside, in.above + x)) & _mm_test_epi8_mask(flat, flat);
    const __m512i p = limited(rounded(_mm512_maskz_loadu_epi32(inside, sums + x), kWeightBits - kFractionBits), in.low,
                              in.high, 1 << kFractionBits);
    const __m512i by_left = _mm512_mask_slli_epi32(p, same, left, kFractionBits);
    _mm512_mask_storeu_epi32(sums + x, inside, by_left);
    const __m512i error = error_of(load(inside, in.row + x), by_left);
    _mm256_mask_storeu_epi16(errors + x, inside, _mm512_cvtepi32_epi16(error));
  }
}

/// The contexts of 32 samples by the sum of errors around, and by the fractions of the predictions, all of 16 bits.
__m512i level_contexts(__m512i sums, __m512i fractions, bool first) {
  alignas(64) static constexpr auto kAllBegins = [] {
    std::array<std::uint16_t, 32> b{};
    b.fill(0xffff);  // above every sum
    for (std::size_t i = 0; i < kLevels; ++i) b[i] = static_cast<std::uint16_t>(kLevelBegins[i]);
    return b;
  }();
  const auto all = [](int v) { return _mm512_set1_epi16(static_cast<std::int16_t>(v)); };
  // 7/4 of a sum, of which 2 times it is below 2^16.
  if (first)
    sums = _mm512_sub_epi16(_mm512_add_epi16(sums, sums), _mm512_srli_epi16(_mm512_add_epi16(sums, all(3)), 2));
  const __m512i level = levels_of(_mm512_load_si512(kAllBegins.data()), sums);
  const __m512i part = _mm512_min_epi16(_mm512_srli_epi16(_mm512_abs_epi16(fractions), 1), all(3));
  const __m512i fine = _mm512_add_epi16(_mm512_slli_epi16(level, 2), part);
  const __mmask32 is_fine = _mm512_cmplt_epu16_mask(level, all(kFineLevels));
  const __m512i coarse = _mm512_add_epi16(level, all(3 * kFineLevels));
  return _mm512_add_epi16(_mm512_mask_mov_epi16(coarse, is_fine, fine), all(kFlatContexts));
}

void level_symbols(const LevelRow& in, std::int32_t* sums, int n, const RowSymbols& out) {
  predict_levels(in, sums, n, out.errors);
  struct Half {
    __m256i token, extra, fraction;
  };
  for (int x = 0; x < n; x += 32) {
    const std::uint32_t inside = mask_of(n - x);
    const auto half = [&](int begin) {
      const auto here = static_cast<__mmask16>(inside >> begin);
      const __m512i p = _mm512_maskz_loadu_epi32(here, sums + x + begin);
      const __m512i whole = _mm512_srai_epi32(_mm512_add_epi32(p, _mm512_set1_epi32(8)), kFractionBits);
      const __m512i fraction = _mm512_sub_epi32(p, _mm512_slli_epi32(whole, kFractionBits));
      const __m512i number = _mm512_cvtepi16_epi32(_mm256_maskz_loadu_epi16(here, in.row + x + begin));
      const __m512i d = _mm512_sub_epi32(number, whole);
      const __mmask16 below = _mm512_cmplt_epi32_mask(fraction, _mm512_setzero_si512());
      const Said said = said_by(_mm512_mask_sub_epi32(d, below, _mm512_setzero_si512(), d));
      return Half{_mm512_cvtepi32_epi16(said.token), _mm512_cvtepi32_epi16(said.extra),
                  _mm512_cvtepi32_epi16(fraction)};
    };
    const auto both = [](__m256i low, __m256i high) {
      return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    };
    const Half a = half(0);
    const Half b = half(16);
    const __m512i token = both(a.token, b.token);
    const auto at = [x, inside](const auto* row) { return load_masked(inside, row + x); };
    const __m512i left = at(out.errors - 1);
    const __m512i sum =
        _mm512_add_epi16(_mm512_add_epi16(at(in.around), _mm512_add_epi16(left, left)), at(out.errors - 2));
    const __m256i flat = _mm256_maskz_loadu_epi8(inside, in.flat + x);
    const __mmask32 same = _mm512_cmpeq_epi16_mask(at(in.row - 1), at(in.above)) & _mm256_test_epi8_mask(flat, flat);
    const __m512i levels = level_contexts(sum, both(a.fraction, b.fraction), in.first);
    const __m512i context = _mm512_mask_sub_epi16(levels, same, _mm512_cvtepu8_epi16(flat), _mm512_set1_epi16(1));
    _mm512_mask_storeu_epi16(out.extra + x, inside, both(a.extra, b.extra));
    _mm512_mask_storeu_epi16(out.symbols + x, inside, _mm512_add_epi16(_mm512_slli_epi16(context, 7), token));
    out.has_extra[x / 32] = _mm512_mask_cmpgt_epu16_mask(inside, token, _mm512_set1_epi16(kPlainTokens - 1));
  }
}

/// The reciprocals of eight frequencies, too large by 2^-40 of them: an estimate of 14 bits, of which two steps of
/// Newton's method make 52.
inline __m512d reciprocals(__m256i frequencies) {
  const __m512d f = _mm512_cvtepi32_pd(frequencies);
  const __m512d one = _mm512_set1_pd(1);
  __m512d r = _mm512_rcp14_pd(f);
  for (int step = 0; step < 2; ++step) r = _mm512_fmadd_pd(r, _mm512_fnmadd_pd(f, r, one), r);
  return _mm512_mul_pd(r, _mm512_set1_pd(1 + 1.0 / (std::uint64_t{1} << 40)));
}

/// Quotients of 16 states. They are exact: the reciprocal is too large by less than 2^-39 of it, so that the quotient
/// is too large by less than 2^-7 of 1 / f, and a quotient that is not whole is at least 1 / f below the next integer.
/// A state waits for one product only, because the reciprocals are there before.
inline __m512i divide(__m512i states, __m512i frequencies) {
  const auto half = [](__m256i a, __m256i f) {
    return _mm512_cvttpd_epu32(_mm512_mul_pd(_mm512_cvtepu32_pd(a), reciprocals(f)));
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
