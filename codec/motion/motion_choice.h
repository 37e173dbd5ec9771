// What the search for motion weighs (motion_search.h), shared by the CPU and GPUs, which must choose the same:
// constants of the pictures that are searched, bits, limits. Loops live elsewhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "codec/entropy/dense/dense_model.h"
#include "codec/motion/motion.h"

namespace trivelet::motion_choice {

inline constexpr int kPad = 80;         ///< samples around a picture: a block, and the reach of the filters
inline constexpr int kMargin = 16;      ///< of these that no block begins in
inline constexpr int kWhole = 4;        ///< of these that lie so near the outer edge that nothing is interpolated
inline constexpr int kSearchBits = 12;  ///< samples are searched in integers of this range
inline constexpr int kQuarters = 4;
inline constexpr int kBlock = kMotionCell * kMotionRoot;

inline constexpr int kSmallSide = 8;    ///< of a block among smaller pictures
inline constexpr int kSmallReach = 16;  ///< of the search there

/// Rounds of a search downhill, of steps of whole samples and of finer ones. A second fine round and
/// vectors of smaller blocks improved, too, took an eighth of the time of encoding for 0 to 0.4 % fewer bytes (seven
/// clips).
inline constexpr int kRounds = 6;
inline constexpr int kFineRounds = 1;
/// Samples along a side from which on the two vectors of a block are improved, each against what the other leaves.
inline constexpr int kLeastRefined = 16;

/// A sample minus offset as it is searched.
TRIVELET_HOST_DEVICE static inline std::int16_t searched(std::int32_t v, int bits) {
  return static_cast<std::int16_t>(bits <= kSearchBits ? v * (1 << (kSearchBits - bits)) : v >> (bits - kSearchBits));
}

/// Added to a difference among smaller pictures at this distance.
TRIVELET_HOST_DEVICE static inline int small_penalty(int dy, int dx) {
  return kSmallSide * kSearchBits / 4 * (std::abs(dy) + std::abs(dx));
}

/// Of a difference of vectors, before it is known what it is relative to: bits of both numbers.
TRIVELET_HOST_DEVICE static inline float vector_bits(MotionVector v, MotionVector e) {
  const auto bits = [](int d) {
    return 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(std::abs(d)) * 2 + 1)) - 1;
  };
  return 0.8f * static_cast<float>(bits(v.x - e.x) + bits(v.y - e.y));
}

/// Where blocks do not reach beyond the frame around the picture.
TRIVELET_HOST_DEVICE static inline MotionVector inside(MotionVector v, int y, int x, int size, int height, int width) {
  const auto limit = [&](int q, int at, int n) {
    return static_cast<std::int16_t>(
        std::clamp(q, -(kPad - kMargin + at) * kQuarters, (n + kPad - kMargin - at - size) * kQuarters));
  };
  return {limit(v.x, x, width), limit(v.y, y, height)};
}

// A block that costs no more bits than these, little more than the least motion does, and so many more for each of its
// cells, is not searched: what is left of it is noise to the quantiser. Measured as BD-rate and CPU seconds of encoding
// (five clips, -q 38 and 50): with 0 for each cell 0 %, 6 -3.3 % and 0.85 of the time (a still cartoon -15.5 %, the
// four others 0.0), 12 +0.3 % for those four, 16 +0.9 % and 0.96 of the time of 6.
inline constexpr float kEnoughBits = 12;
inline float enough_per_cell(Effort effort) { return effort == Effort::kFast ? 16 : 6; }

/// Whether a block of so many cells a side is not divided or searched further.
TRIVELET_HOST_DEVICE static inline bool good_enough(float cost, int log2, float lambda, float per_cell) {
  return cost < lambda * (kEnoughBits + per_cell * static_cast<float>(1 << 2 * log2));
}

/// The constant of MotionCell::plain for `count` samples of this sum.
TRIVELET_HOST_DEVICE static inline std::int8_t plain_of(std::int64_t sum, int count, int bits) {
  const double unit =
      bits >= kMotionPlainBits ? 1 << (bits - kMotionPlainBits) : 1.0 / (1 << (kMotionPlainBits - bits));
  const double plain = static_cast<double>(sum) / (static_cast<double>(count) * unit);
  return static_cast<std::int8_t>(std::clamp(lround(plain), -32L, 31L));
}

/// Sums what decisions would take with states as they are at a region's start.
struct BitCounter {
  static constexpr bool kReading = false;
  const float* prices;  ///< bit_prices()
  float bits = 0;
  TRIVELET_HOST_DEVICE explicit BitCounter(const float* of) : prices(of) {}
  TRIVELET_HOST_DEVICE bool bit(const dense::State& s, bool b) {
    bits += price(prices, s, b);
    return b;
  }
  TRIVELET_HOST_DEVICE bool flat(bool b) {
    bits += 1;
    return b;
  }
  TRIVELET_HOST_DEVICE static float price(const float* prices, const dense::State& s, bool b) {
    return prices[(b ? s.one : 65535u - s.one) >> 8];
  }
};

}  // namespace trivelet::motion_choice
