// What the dense profile knows before it codes a decision: probability states, contexts and their start values.
//
// A segment starts with the states of the trained tables; FORMAT.md "Dense profile" gives layout and formulas. Every
// context belongs to a class: the place of the segment's resolution counted from the finest, and the subband's
// orientation together with "high along time".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/subband.h"

namespace trivelet::dense {

/// An estimate of P(1): the mean of a fast and a slow running average, both in units of 1 / 65536.
struct State {
  std::uint16_t fast = 32768;
  std::uint16_t slow = 32768;
  std::uint16_t seen = 0;  ///< decisions so far, start value included; sets the rates
};

inline constexpr int kSeenLimit = 255;
struct Rates {
  std::array<std::uint16_t, kSeenLimit + 1> fast{};
  std::array<std::uint16_t, kSeenLimit + 1> slow{};
};
extern Rates kRates;

inline std::uint32_t probability(const State& s) {
  const std::uint32_t p = (std::uint32_t{s.fast} + s.slow) >> 1;
  return p < 24 ? 24 : p > 65512 ? 65512 : p;
}
inline void update(State& s, bool bit) {
  const std::int32_t target = bit ? 65535 : 0;
  s.fast = static_cast<std::uint16_t>(s.fast + ((target - s.fast) * kRates.fast[s.seen] >> 16));
  s.slow = static_cast<std::uint16_t>(s.slow + ((target - s.slow) * kRates.slow[s.seen] >> 16));
  s.seen = static_cast<std::uint16_t>(s.seen + (s.seen < kSeenLimit));
}

// ------------------------------------------------------------------------------------------------- contexts of a class

inline constexpr int kEnergies = 15;
inline constexpr int kTimes = 5;
inline constexpr int kParents = 4;
inline constexpr int kPlaces = 4;
inline constexpr int kSignificance = 0;
inline constexpr int kRefinement = kSignificance + kEnergies * kTimes * kParents * kPlaces;
inline constexpr int kSigns = kRefinement + 3 * kEnergies;
inline constexpr int kAny = kSigns + 14;               // "any child group active"
inline constexpr int kChild = kAny + 4 * 2 * 5 * 2;    // "this child group active"
inline constexpr int kRoot = kChild + 3 * 2 * 5 * 5 * 2;
inline constexpr int kContexts = kRoot + 8;

inline constexpr int kResolutionClasses = 5;   // finest, next, …, lowest band last
inline constexpr int kOrientationClasses = 8;
inline constexpr int kClasses = kResolutionClasses * kOrientationClasses;

inline constexpr bool kTemporalParents = true;

inline int resolution_class(int k, int resolutions) {
  const int from_finest = resolutions - 1 - k;
  return k == 0 ? 4 : from_finest < 3 ? from_finest : 3;
}
/// `orientation` as in Subband; in t+2D every band but the first is high along time.
inline int orientation_class(int temporal_band, int orientation) { return (temporal_band > 0 ? 4 : 0) + orientation; }

/// Start states of all classes.
struct StartTables {
  std::vector<State> states = std::vector<State>(static_cast<std::size_t>(kClasses) * kContexts);
};
enum TableSet { kT2dReal, kT2dInteger, kDyadicReal, kDyadicInteger, kTableSets };
const StartTables& start_tables(TableSet set);

}  // namespace trivelet::dense
