// The probability model of the dense profile: states, contexts and their start values (FORMAT.md "Dense profile").
//
// A segment starts with the states of the trained tables. Every context belongs to a class: the place of the segment's
// resolution counted from the finest, and the subband's orientation together with "high along time". An estimate is the
// mean of all decisions up to kSeenLimit, then a running average.
//
// Alternatives that gained too little, in bytes over 32 frames of three clips (mobile, walk, BasketballPass) at steps 6
// and 24: a second, faster average -0.1 %; a second set of contexts mixed in with equal weights 0.0 %; the temporal
// parent's magnitude -0.1 %; a wider surround in the energy +0.2 %.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "codec/entropy/dense/dense_arithmetic.h"

namespace trivelet::dense {

/// An estimate of P(1) in units of 1 / 65536 and the number of decisions it stands for.
struct State {
  std::uint16_t one = 32768;
  std::uint16_t seen = 1;  ///< 1..kSeenLimit; sets the rate
};

struct RateTable {
  std::array<std::int32_t, kSeenLimit + 1> of{};
  constexpr RateTable() {
    for (std::size_t n = 1; n <= kSeenLimit; ++n) of[n] = static_cast<std::int32_t>(2 * 65536 / (2 * n + 3));
  }
};
inline constexpr RateTable kRates;

inline std::uint32_t probability(const State& s) { return limited_probability(s.one); }

inline void update(State& s, bool bit) {
  s.one = static_cast<std::uint16_t>(moved_estimate(s.one, bit, kRates.of[s.seen]));
  s.seen = static_cast<std::uint16_t>(s.seen + (s.seen < kSeenLimit));
}

// ------------------------------------------------------------------------------------------------------------ classes

inline constexpr int kResolutionClasses = 4;  // finest, next, other detail bands, lowest band
inline constexpr int kOrientationClasses = 8;
inline constexpr int kClasses = kResolutionClasses * kOrientationClasses;

inline int resolution_class(int k, int resolutions) {
  const int from_finest = resolutions - 1 - k;
  return k == 0 ? 3 : from_finest < 2 ? from_finest : 2;
}
/// `orientation` as in Subband. In t+2D every band but the first is high along time.
inline int orientation_class(int temporal_band, int orientation) { return (temporal_band > 0 ? 4 : 0) + orientation; }
/// Whether a class (resolution class, orientation class) occurs in t+2D or dyadic layouts.
inline bool class_exists(int resolution, int orientation, bool dyadic) {
  if (resolution == 3) return orientation == 0 || (orientation == 4 && !dyadic);
  return orientation != 0 && (orientation != 4 || dyadic);
}

// ------------------------------------------------------------------------------------------------------- start tables

enum TableSet { kT2dReal, kT2dInteger, kDyadicReal, kDyadicInteger, kTableSets };

/// Start states: kContexts of class 0, then of class 1, and so on.
using StartTables = std::vector<State>;
const StartTables& start_tables(TableSet set);

/// The text form: one character per context of the classes that exist, in order. Character number 3 * p + w means
/// kStartProbabilities[p] and kStartWeights[w].
inline constexpr std::size_t kStartProbabilityCount = 30;
inline constexpr std::size_t kStartWeightCount = 3;
extern const std::array<std::uint16_t, kStartProbabilityCount> kStartProbabilities;
extern const std::array<std::uint16_t, kStartWeightCount> kStartWeights;
/// The characters are '!' to '~' without '"', '?' and '\'.
char table_character(std::size_t number);
/// Throws BadArgument for text of another length or with other characters.
StartTables parse_tables(std::string_view text, bool dyadic);

}  // namespace trivelet::dense
