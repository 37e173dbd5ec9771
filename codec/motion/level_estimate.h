// The arithmetic of the estimate that chooses temporal levels (level_choice.h), for the CPU and for devices.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trivelet::level_estimate {

inline constexpr int kBlockSide = 8;  // of blocks, in samples of the reduced picture
// Of the search, in samples of the reduced picture: every second place, then those beside the best.
inline constexpr int kSearchReach = 12;
inline constexpr int kEndlessCost = 1 << 30;
// A block is lost when its best prediction leaves more than this percentage of what its own mean leaves.
inline constexpr int kLostShare = 70;

/// What the blocks' own means leave of them (SATD): of those that are lost, and of all.
struct LostContrast {
  std::uint64_t lost = 0, all = 0;
  constexpr int percentage() const { return all == 0 ? 0 : static_cast<int>(100 * lost / all); }
};

/// The side of the square of samples that becomes one of the reduced picture.
constexpr int reduction_of(int width, int height) {
  const std::int64_t samples = static_cast<std::int64_t>(width) * height;
  return samples >= 1 << 22 ? 8 : samples >= 150'000 ? 4 : samples >= 50'000 ? 2 : 1;
}

/// The sample of the reduced picture, of 12 bits, for the sum of factor x factor samples of `bits` bits.
constexpr std::int16_t reduced_sample(std::int32_t sum, int factor, int bits) {
  constexpr int kReducedBits = 12;
  return static_cast<std::int16_t>(
      (bits <= kReducedBits ? sum << (kReducedBits - bits) : sum >> (bits - kReducedBits)) / (factor * factor));
}

/// The cost of a place in another picture whose samples differ by this sum.
constexpr int cost_of_place(int difference, int dy, int dx) {
  constexpr int kPerSample = 4;
  return difference + kPerSample * ((dy < 0 ? -dy : dy) + (dx < 0 ? -dx : dx));
}

/// A sample between four: `s` is the sample at whole places, dy and dx are -1, 0 or 1 halves of a sample.
constexpr std::int16_t between(const std::int16_t* s, int width, int dy, int dx) {
  return static_cast<std::int16_t>((s[0] + s[dx] + s[dy * width] + s[dy * width + dx] + 2) >> 2);
}

/// The frames that are compared with those at a distance before and behind.
struct ComparedFrames {
  int distance = 1, step = 2, count = 0;

  constexpr ComparedFrames(int apart, int frames) : distance(apart) {
    constexpr int kLookedAt = 4;  // approximate number of frames examined for a distance
    step = std::max(2 * apart, frames / kLookedAt / (2 * apart) * 2 * apart);
    count = apart < frames ? (frames - 1 - apart) / step + 1 : 0;
  }
  constexpr int frame(int i) const { return distance + i * step; }
  constexpr int past(int i) const { return frame(i) - distance; }
  /// The frame behind, or where the GOP ends before it the one in front again.
  constexpr int other(int i, int frames) const { return frame(i) + distance < frames ? frame(i) + distance : past(i); }
};

}  // namespace trivelet::level_estimate
