// Loops of the predictive profile over rows, once per instruction set.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/predict/prediction.h"

namespace trivelet::prediction {

/// Readable elements behind what a kernel is given, and writable ones behind what it makes.
inline constexpr std::size_t kKernelPadding = 16;

/// Rows of errors around one that is coded; `before`: of the frame before, null in the first one.
struct ErrorRows {
  const std::uint16_t* above = nullptr;
  const std::uint16_t* above2 = nullptr;
  const std::uint16_t* before = nullptr;
  const std::uint16_t* before_above = nullptr;
  const std::uint16_t* before_below = nullptr;
};
/// Rows of numbers likewise.
struct NumberRows {
  const std::int16_t* above = nullptr;
  const std::int16_t* before = nullptr;
  const std::int16_t* before_below = nullptr;
};

/// Of a token and a context, by the lowest bits of a state: token, frequency and place in it, 7, 12 and 11 bits. The
/// bit above them: it says nothing, for the context is one that the head has no frequencies of.
inline constexpr std::uint32_t kUnknownEntry = 1u << 30;

/// The states of a codeword whose contexts are known ahead, and the words that follow them.
struct StateLanes {
  std::array<std::uint32_t, kStates> state{};
  const std::uint8_t* words = nullptr;
  std::size_t left = 0;    ///< words
  std::uint32_t seen = 0;  ///< all entries
  bool overrun = false;    ///< more words were wanted than there are
};

/// A symbol for the states: a token of a context.
struct PutSymbol {
  std::uint64_t inverse = 0;  ///< of the frequency, rounded up to 2^-kInverseBits
  std::uint32_t frequency = 0;
  std::uint32_t begin = 0;
};
inline constexpr int kInverseBits = 32 + kFrequencyBits;

struct Kernels {
  /// sums[x] = sum over i of weights[i] * taps[i][x], x < n. Magnitudes of weights add up to kWeightSum at most.
  void (*weigh)(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums);
  /// out[x] = (from[x] - base[x], within 16 bits) >> shift, within -2047..2047.
  void (*differences)(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out);
  /// Sums of errors, and where neighbours are the same (see RowAhead).
  void (*around)(const ErrorRows& rows, int n, std::uint16_t* out);
  void (*flat)(const NumberRows& rows, int n, std::uint8_t* out);
  /// Contexts that are known ahead, of both.
  void (*contexts)(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out);
  /// sums[x] += w0 * row[x - 1] + w1 * row[x - 2].
  void (*weigh_left)(const std::int16_t* row, int w0, int w1, int n, std::int32_t* sums);
  /// Errors of what `sums` predict, all taps in them.
  void (*errors)(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint16_t* out);
  /// Codes and tokens of what `sums` leave, all taps in them. True if a token has extra bits.
  bool (*tokens)(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint32_t* codes,
                 std::uint8_t* tokens);
  /// Codes -> differences.
  void (*differences_of)(const std::uint32_t* codes, int n, std::int32_t* out);
  /// Takes a token for each sample of a row; lookups: kFrequencySum entries of every context.
  void (*take)(const std::uint32_t* lookups, const std::uint8_t* contexts, int n, StateLanes& lanes,
               std::uint8_t* tokens);
  /// Puts the symbols of a row into the states, the last one first, and the words that they no longer hold in front of
  /// `words`; returns the first of these. `packed`: 2^16 times the frequency, plus the begin, of every symbol. There is
  /// room for a word a symbol, and one.
  std::uint16_t* (*put)(const PutSymbol* table, const std::uint32_t* packed, const std::uint16_t* symbols, int n,
                        std::uint32_t* states, std::uint16_t* words);
  /// Products of all pairs of `count` rows, `stride` apart: row i with rows 0..i. n is a multiple of 16, at most 256.
  void (*products)(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out);
};

namespace scalar {
extern const Kernels kKernels;
}  // namespace scalar
namespace avx2 {
extern const Kernels kKernels;
}  // namespace avx2
namespace avx512 {
extern const Kernels kKernels;
}  // namespace avx512

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

/// The context that is known ahead of a sum's place; 3 bytes behind the last one may be read.
const std::array<std::uint8_t, kLevelEntries + 3>& contexts_by_place();

}  // namespace trivelet::prediction
