// Times of frames on the clock of a player, whatever a stream says of them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// The most that comes out of player_time(): two of them can be added to a time of the player's, as long as that is no
/// more than this. In nanoseconds a century.
inline constexpr std::int64_t kMostPlayerTime = std::int64_t{1} << 61;

/// `ticks` of a stream's clock in units of a player's, of which there are `units` in a tick; 0 for what is before.
inline std::int64_t player_time(double ticks, double units) {
  const double time = ticks * units;
  return time > 0 ? std::llround(std::min(time, static_cast<double>(kMostPlayerTime))) : 0;
}

/// Ticks from one frame to another.
inline double ticks_between(const FrameTime& from, const FrameTime& to) {
  return static_cast<double>(to.pts) - static_cast<double>(from.pts);
}

}  // namespace trivelet
