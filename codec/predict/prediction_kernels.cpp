// Loops of the predictive profile over rows, compiled once per instruction set (codec/base/simd.h). Loops that
// compilers do not vectorise well are written with intrinsics in the two headers included below.
#include "codec/predict/prediction_kernels.h"

#include <algorithm>

namespace trivelet::prediction::TRIVELET_ISA {

namespace {

void around(const ErrorRows& r, int n, std::uint16_t* out) {
  const std::uint16_t* a = r.above;
  const std::uint16_t* a2 = r.above2;
  if (!r.before) {
    for (int x = 0; x < n; ++x) out[x] = static_cast<std::uint16_t>(2 * a[x] + a[x - 1] + a[x + 1] + a2[x]);
    return;
  }
  const std::uint16_t* b = r.before;
  const std::uint16_t* ba = r.before_above;
  const std::uint16_t* bb = r.before_below;
  for (int x = 0; x < n; ++x)
    out[x] = static_cast<std::uint16_t>(2 * a[x] + a[x - 1] + a[x + 1] + a2[x] + 2 * b[x] + b[x - 1] + b[x + 1] +
                                        ba[x] + bb[x]);
}

void flat(const NumberRows& r, int n, std::uint8_t* out) {
  const std::int16_t* a = r.above;
  if (!r.before) {
    for (int x = 0; x < n; ++x) out[x] = static_cast<std::uint8_t>(((a[x] == a[x - 1]) & (a[x] == a[x + 1])) * 2);
    return;
  }
  const std::int16_t* b = r.before;
  const std::int16_t* bb = r.before_below;
  for (int x = 0; x < n; ++x) {
    const int same = (a[x] == a[x - 1]) & (a[x] == a[x + 1]) & (a[x] == b[x]);
    const int beyond = (a[x] == b[x + 1]) & (a[x] == bb[x]);
    out[x] = static_cast<std::uint8_t>(same * (2 - beyond));
  }
}

void errors(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint16_t* out) {
  const int least = low * (1 << kFractionBits);
  const int most = high * (1 << kFractionBits);
  constexpr int kShift = kWeightBits - kFractionBits;
  for (int x = 0; x < n; ++x) {
    int p = (sums[x] + (1 << (kShift - 1))) >> kShift;
    p = p < least ? least : p;
    p = p > most ? most : p;
    const int d = row[x] * (1 << kFractionBits) - p;
    const int a = (d < 0 ? -d : d) >> (kFractionBits - 2);
    out[x] = static_cast<std::uint16_t>(a > kMaxError ? kMaxError : a);
  }
}

void differences_of(const std::uint32_t* codes, int n, std::int32_t* out) {
  for (int x = 0; x < n; ++x) {
    const auto half = static_cast<std::int32_t>((codes[x] + 1) >> 1);
    out[x] = codes[x] & 1 ? half : -half;
  }
}

/// A word for a state that has become too small.
inline std::uint32_t with_word(std::uint32_t state, StateLanes& lanes) {
  std::uint32_t word = 0;
  if (lanes.left > 0) {
    word = static_cast<std::uint32_t>(lanes.words[0] | lanes.words[1] << 8);
    lanes.words += 2;
    --lanes.left;
  } else {
    lanes.overrun = true;
  }
  return state << 16 | word;
}

/// Kernels::take, one sample after the other.
void take_tokens(const std::uint32_t* lookups, const std::uint8_t* contexts, int n, StateLanes& lanes,
                 std::uint8_t* tokens) {
  for (int x = 0; x < n; ++x) {
    std::uint32_t state = lanes.state[static_cast<std::size_t>(x) % kStates];
    const std::uint32_t entry = lookups[contexts[x] * std::size_t{kFrequencySum} + (state & (kFrequencySum - 1))];
    tokens[x] = entry & 127;
    lanes.seen |= entry;
    state = (entry >> 7 & 0xfff) * (state >> kFrequencyBits) + (entry >> 19 & 0x7ff);
    if (state < kLowestState) state = with_word(state, lanes);
    lanes.state[static_cast<std::size_t>(x) % kStates] = state;
  }
}

/// Kernels::expect, one sample after the other.
bool expect_symbols(const std::uint32_t* packed, const std::uint16_t* symbols, int n, StateLanes& lanes) {
  bool right = true;
  for (int x = 0; x < n; ++x) {
    std::uint32_t state = lanes.state[static_cast<std::size_t>(x) % kStates];
    const std::uint32_t frequency = packed[symbols[x]] >> 16;
    const std::uint32_t place = (state & (kFrequencySum - 1)) - (packed[symbols[x]] & 0xffff);
    right &= place < frequency;
    state = frequency * (state >> kFrequencyBits) + place;
    if (state < kLowestState) state = with_word(state, lanes);
    lanes.state[static_cast<std::size_t>(x) % kStates] = state;
  }
  return right;
}

}  // namespace

}  // namespace trivelet::prediction::TRIVELET_ISA

#if defined(__AVX2__)
#include "codec/predict/prediction_kernels_avx2.h"
#endif
#if defined(__AVX512BW__)
#include "codec/predict/prediction_kernels_avx512.h"
#endif

namespace trivelet::prediction::TRIVELET_ISA {

namespace {

#if !defined(__AVX2__)
// By itself: inside symbols() GCC 12 does not vectorise it, and it takes three times as long.
[[gnu::noinline]] void weigh(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n,
                             std::int32_t* sums) {
  for (int x = 0; x < n; ++x) sums[x] = 0;
  for (int i = 0; i < count; ++i) {
    const std::int32_t weight = weights[i];
    const std::int16_t* from = taps[i];
    for (int x = 0; x < n; ++x) sums[x] += weight * from[x];
  }
}

void differences(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out) {
  for (int x = 0; x < n; ++x) {
    const int d = std::clamp(from[x] - base[x], -32768, 32767) >> shift;
    out[x] = static_cast<std::int16_t>(std::clamp(d, -2047, 2047));
  }
}

void products(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out) {
  for (int i = 0; i < count; ++i)
    for (int j = 0; j <= i; ++j) {
      const std::int16_t* a = rows + static_cast<std::size_t>(i) * stride;
      const std::int16_t* b = rows + static_cast<std::size_t>(j) * stride;
      std::int32_t sum = 0;
      for (int x = 0; x < n; ++x) sum += a[x] * b[x];
      *out++ = sum;
    }
}

/// The codes and tokens of the residuals of the predictions by `sums`, which include all taps. Returns whether a token
/// has extra bits.
bool tokens(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint32_t* codes,
            std::uint8_t* tokens) {
  bool any = false;
  for (int x = 0; x < n; ++x) {
    const int d = row[x] - std::clamp((sums[x] + (1 << (kWeightBits - 1))) >> kWeightBits, low, high);
    codes[x] = static_cast<std::uint32_t>(d > 0 ? 2 * d - 1 : -2 * d);
    tokens[x] = static_cast<std::uint8_t>(token_of(codes[x]));
    any |= tokens[x] >= kPlainTokens;
  }
  return any;
}

void contexts(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out) {
  const std::uint8_t* context_at = contexts_by_place().data();
  for (int x = 0; x < n; ++x) {
    const std::uint8_t level = context_at[place_of(first ? 9 * around[x] >> 2 : around[x])];
    out[x] = flat[x] != 0 ? static_cast<std::uint8_t>(flat[x] - 1) : level;
  }
}

constexpr auto take = take_tokens;
constexpr auto expect = expect_symbols;
#endif

#if !defined(__AVX512BW__)
std::uint16_t* put(const PutSymbol* table, const std::uint32_t*, const std::uint16_t* symbols, int n,
                   std::uint32_t* states, std::uint16_t* word) {
  for (int x = n - 1; x >= 0; --x) {
    const PutSymbol& s = table[symbols[x]];
    std::uint32_t state = states[x % kStates];
    word[-1] = static_cast<std::uint16_t>(state);
    const bool full = state >> (32 - kFrequencyBits) >= s.frequency;
    word -= full;
    state >>= full ? 16 : 0;
    // The quotient is exact, and the product fits 64 bits. With 2^n = kFrequencySum, the state is below F * 2^(32 - n).
    // The error of the inverse times that is below 1 / F.
    const auto whole = static_cast<std::uint32_t>((s.inverse * state) >> kInverseBits);
    states[x % kStates] = state + whole * (kFrequencySum - s.frequency) + s.begin;
  }
  return word;
}
#endif

#if !defined(__AVX512BW__)
void level_symbols(const LevelRow& in, std::int32_t* sums, int n, const RowSymbols& out) {
  const LevelEntry* levels = level_table().data();
  const int least = in.low * (1 << kFractionBits), most = in.high * (1 << kFractionBits);
  constexpr int kShift = kWeightBits - kFractionBits;
  for (int x = 0; x < n; ++x) {
    int p = (sums[x] + (1 << (kShift - 1))) >> kShift;
    p = p < least ? least : p > most ? most : p;
    const bool same = in.flat[x] != 0 && in.row[x - 1] == in.above[x];
    sums[x] = same ? in.row[x - 1] * (1 << kFractionBits) : p;
    const int d = in.row[x] * (1 << kFractionBits) - sums[x];
    const int error = (d < 0 ? -d : d) >> (kFractionBits - 2);
    out.errors[x] = static_cast<std::uint16_t>(error > kMaxError ? kMaxError : error);
  }
  for (int x = 0; x < n; x += 32) out.has_extra[x / 32] = 0;
  for (int x = 0; x < n; ++x) {
    const int rounded = (sums[x] + 8) >> kFractionBits;
    const int fraction = sums[x] - rounded * (1 << kFractionBits);
    std::size_t context;
    if (in.flat[x] != 0 && in.row[x - 1] == in.above[x]) {
      context = in.flat[x] - 1u;
    } else {
      int sum = in.around[x] + 2 * out.errors[x - 1] + out.errors[x - 2];
      if (in.first) sum = 7 * sum >> 2;
      const LevelEntry level = levels[place_of(sum)];
      const int part = (fraction < 0 ? -fraction : fraction) >> 1;
      context = level.context + static_cast<std::size_t>((part > 3 ? 3 : part) & level.fractions);
    }
    const int d = fraction < 0 ? rounded - in.row[x] : in.row[x] - rounded;
    const auto code = static_cast<std::uint32_t>(d > 0 ? 2 * d - 1 : -2 * d);
    int token = static_cast<int>(code);
    if (code >= kPlainTokens) {
      token = token_of(code);
      out.has_extra[x / 32] |= 1u << x % 32;
      out.extra[x] = static_cast<std::uint16_t>((code - 8) & ((1u << extra_bits(token)) - 1));
    }
    out.symbols[x] = static_cast<std::uint16_t>(context * kTokenSpace + static_cast<std::size_t>(token));
  }
}

/// sums[x] += w0 * row[x - 1] + w1 * row[x - 2].
void weigh_left(const std::int16_t* row, int w0, int w1, int n, std::int32_t* sums) {
  for (int x = 0; x < n; ++x) sums[x] += w0 * row[x - 1] + w1 * row[x - 2];
}

/// In pieces, so that what is between the loops stays in a cache.
void symbols(const KnownRow& in, int n, const RowSymbols& out) {
  constexpr int kPiece = 128;
  constexpr std::size_t kSpace = kPiece + kKernelPadding;
  std::int32_t sums[kSpace];
  std::uint16_t around_it[kSpace];
  std::uint32_t codes[kSpace];
  std::uint8_t is_flat[kSpace], context[kSpace], token[kSpace];
  const std::int16_t* taps[kMaxTaps];
  for (int x = 0; x < n; x += kPiece) {
    const int end = n - x < kPiece ? n - x : kPiece;
    const auto at = [x](const auto* row) { return row ? row + x : row; };
    for (int i = 0; i < in.count; ++i) taps[i] = in.taps[i] + x;
    const ErrorRows& e = in.errors;
    const NumberRows& r = in.numbers;
    around({at(e.above), at(e.above2), at(e.before), at(e.before_above), at(e.before_below)}, end, around_it);
    flat({at(r.above), at(r.before), at(r.before_below)}, end, is_flat);
    contexts(around_it, is_flat, !e.before, end, context);
    weigh(taps, in.weights + kTapsInRow, in.count, end, sums);
    weigh_left(in.row + x, in.weights[0], in.weights[1], end, sums);
    errors(in.row + x, sums, in.low, in.high, end, out.errors + x);
    for (int i = 0; i < end; i += 32) out.has_extra[(x + i) / 32] = 0;
    if (tokens(in.row + x, sums, in.low, in.high, end, codes, token))
      for (int i = 0; i < end; ++i) {
        if (token[i] < kPlainTokens) continue;
        out.has_extra[(x + i) / 32] |= 1u << i % 32;
        out.extra[x + i] = static_cast<std::uint16_t>((codes[i] - 8) & ((1u << extra_bits(token[i])) - 1));
      }
    for (int i = 0; i < end; ++i) out.symbols[x + i] = static_cast<std::uint16_t>(context[i] * kTokenSpace + token[i]);
  }
}
#endif

}  // namespace

const Kernels kKernels{level_symbols, symbols,        weigh, differences, around, flat,    contexts,
                       errors,        differences_of, take,  expect,      put,    products};

}  // namespace trivelet::prediction::TRIVELET_ISA
