// Loops of the predictive profile over rows, compiled once per instruction set (prediction_kernels.cpp).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "codec/base/simd.h"
#include "codec/predict/prediction.h"

namespace trivelet::prediction {

/// Elements that a kernel may read behind its inputs, and write behind its outputs.
inline constexpr std::size_t kKernelPadding = 16;

/// Rows of errors around the current one. `before`: rows of the previous frame, null in the first frame.
struct ErrorRows {
  const std::uint16_t* above = nullptr;
  const std::uint16_t* above2 = nullptr;
  const std::uint16_t* before = nullptr;
  const std::uint16_t* before_above = nullptr;
  const std::uint16_t* before_below = nullptr;
};
/// Rows of numbers around the current one.
struct NumberRows {
  const std::int16_t* above = nullptr;
  const std::int16_t* before = nullptr;
  const std::int16_t* before_below = nullptr;
};

/// An entry for a context and the lowest bits of a state holds the token (7 bits), its frequency (12 bits) and the
/// position in its range (11 bits). The bit above them marks a context for which the header has no frequencies.
inline constexpr std::uint32_t kUnknownEntry = 1u << 30;

/// The states of a codeword with static contexts, and the words behind them.
struct StateLanes {
  std::array<std::uint32_t, kStates> state{};
  const std::uint8_t* words = nullptr;
  std::size_t left = 0;    ///< remaining words
  std::uint32_t seen = 0;  ///< the union (bitwise or) of all entries that were used
  bool overrun = false;    ///< more words were needed than there are
};

/// A symbol for the rANS encoder: a token of a context.
struct PutSymbol {
  std::uint64_t inverse = 0;  ///< of the frequency, in units of 2^-kInverseBits, rounded up
  std::uint32_t frequency = 0;
  std::uint32_t begin = 0;
};
inline constexpr int kInverseBits = 32 + kFrequencyBits;

/// A row whose numbers are known, and what it is coded by with static contexts.
struct KnownRow {
  const std::int16_t* row = nullptr;
  const std::int16_t* const* taps = nullptr;  ///< all but the two in the row
  const std::int16_t* weights = nullptr;      ///< of all taps, those in the row first
  int count = 0;                              ///< of `taps`
  NumberRows numbers;
  ErrorRows errors;
  int low = 0;
  int high = 0;
};
/// What becomes of a row. Symbols are contexts, times kTokenSpace, and tokens. A token with extra bits has its bit in
/// `has_extra`, sample x in bit x % 32 of word x / 32, and the bits in `extra`.
struct RowSymbols {
  std::uint16_t* errors = nullptr;
  std::uint16_t* symbols = nullptr;
  std::uint16_t* extra = nullptr;
  std::uint32_t* has_extra = nullptr;
};
inline constexpr int kTokenSpace = 128;

/// A row whose numbers are known, and what RowAhead knows of it, for contexts that depend on the row.
struct LevelRow {
  const std::int16_t* row = nullptr;
  const std::int16_t* above = nullptr;
  const std::uint16_t* around = nullptr;
  const std::uint8_t* flat = nullptr;
  bool first = false;  ///< in the first frame
  int low = 0;
  int high = 0;
};

struct Kernels {
  /// Predicts a row of n samples whose numbers are known, by sums of all taps, which become the predictions.
  void (*level_symbols)(const LevelRow& in, std::int32_t* sums, int n, const RowSymbols& out);
  /// Predicts a row, of n samples, whose numbers are known.
  void (*symbols)(const KnownRow& in, int n, const RowSymbols& out);
  /// sums[x] = sum over i of weights[i] * taps[i][x], x < n. The magnitudes of the weights add up to kWeightSum at
  /// most.
  void (*weigh)(const std::int16_t* const* taps, const std::int16_t* weights, int count, int n, std::int32_t* sums);
  /// out[x] = (from[x] - base[x], saturated to 16 bits) >> shift, clamped to -2047..2047.
  void (*differences)(const std::int16_t* from, const std::int16_t* base, int shift, int n, std::int16_t* out);
  /// The sums of errors, and where neighbours are equal (RowAhead::around, RowAhead::flat).
  void (*around)(const ErrorRows& rows, int n, std::uint16_t* out);
  void (*flat)(const NumberRows& rows, int n, std::uint8_t* out);
  /// The static contexts from the results of around() and flat().
  void (*contexts)(const std::uint16_t* around, const std::uint8_t* flat, bool first, int n, std::uint8_t* out);
  /// The errors of the predictions by `sums`, which include all taps.
  void (*errors)(const std::int16_t* row, const std::int32_t* sums, int low, int high, int n, std::uint16_t* out);
  /// Turns codes into differences.
  void (*differences_of)(const std::uint32_t* codes, int n, std::int32_t* out);
  /// Takes a token for each sample of a row. `lookups`: kFrequencySum entries for every context.
  void (*take)(const std::uint32_t* lookups, const std::uint8_t* contexts, int n, StateLanes& lanes,
               std::uint8_t* tokens);
  /// Takes the symbols of a row as take() does, and returns whether the states say them. `packed`: as for put().
  bool (*expect)(const std::uint32_t* packed, const std::uint16_t* symbols, int n, StateLanes& lanes);
  /// Codes the symbols of a row with rANS, the last one first, and stores the words that leave the states in front of
  /// `words`. Returns the position of the first of these words. `packed`: 2^16 times the frequency, plus the begin, of
  /// every symbol. The memory in front of `words` holds one word per symbol, and one more.
  std::uint16_t* (*put)(const PutSymbol* table, const std::uint32_t* packed, const std::uint16_t* symbols, int n,
                        std::uint32_t* states, std::uint16_t* words);
  /// Sums of the products of all pairs of `count` rows, `stride` apart: row i with rows 0..i. n is a multiple of 16, at
  /// most 256.
  void (*products)(const std::int16_t* rows, std::size_t stride, int count, int n, std::int32_t* out);
};

TRIVELET_DECLARE_TABLE(Kernels, kKernels)

inline const Kernels& kernels(SimdLevel simd) { return pick(simd, TRIVELET_TABLES(kKernels)); }

/// The static context of place_of() a sum. 3 bytes behind the last entry may be read.
const std::array<std::uint8_t, kLevelEntries + 3>& contexts_by_place();

}  // namespace trivelet::prediction
