// Converts the times of frames to the clock of a player, whatever a stream contains.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// The largest result of player_time(): it can be added to another such time without overflow. In nanoseconds it is a
/// century.
inline constexpr std::int64_t kMostPlayerTime = std::int64_t{1} << 61;

/// `ticks` of a stream's clock in units of a player's, with `units` units in a tick; 0 for negative times.
inline std::int64_t player_time(double ticks, double units) {
  const double time = ticks * units;
  return time > 0 ? std::llround(std::min(time, static_cast<double>(kMostPlayerTime))) : 0;
}

/// Ticks from one frame to another.
inline double ticks_between(const FrameTime& from, const FrameTime& to) {
  return static_cast<double>(to.pts) - static_cast<double>(from.pts);
}

}  // namespace trivelet
