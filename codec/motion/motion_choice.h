// Costs and limits of the motion search (motion_search.h), shared by the CPU and GPUs, which must choose the same
// motion. The loops are elsewhere.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "codec/entropy/dense/dense_model.h"
#include "codec/motion/motion.h"

namespace trivelet::motion_choice {

inline constexpr int kPad = 80;         ///< padding of a picture in samples: a block, and the reach of the filters
inline constexpr int kMargin = 16;      ///< of the padding: no block begins in its outer samples
inline constexpr int kWhole = 4;        ///< of the padding: its outermost samples are not interpolated
inline constexpr int kSearchBits = 12;  ///< range of the integers that are searched
inline constexpr int kQuarters = 4;
inline constexpr int kBlock = kMotionCell * kMotionRoot;

inline constexpr int kSmallSide = 8;    ///< side of a block in reduced pictures
inline constexpr int kSmallReach = 16;  ///< of the search in reduced pictures

/// Rounds of downhill search with steps of whole samples, and with sub-pel steps. A second sub-pel round, and
/// refinement of the vectors of smaller blocks, took 1/8 of the encoding time for 0 to 0.4 % fewer bytes (seven clips).
inline constexpr int kRounds = 6;
inline constexpr int kFineRounds = 1;
/// Smallest side in samples of a block with refinement of its two vectors, each against what the other leaves.
inline constexpr int kLeastRefined = 16;
/// Whether they are refined: only where the mean of both already is the cheapest. Refinement everywhere took a fifth
/// more transforms (one clip of 1080p) for 0 to 0.1 % fewer bytes (four clips).
TRIVELET_HOST_DEVICE static inline bool refines_both(MotionMode cheapest, int size) {
  return cheapest == MotionMode::kBoth && size >= kLeastRefined;
}

/// The first step of a search downhill, in quarters of a sample. With `near` a vector is refined beside another one.
/// Blocks inside of the largest ones begin at vectors of the block around them: a step of two samples leads away from
/// those, and takes 0 to 0.5 % more bytes (three clips of small pictures). Where vectors were found in pictures reduced
/// by a `factor` of 8 (small_factor()) that step is needed: without it 1.4 % more bytes (one clip of 1080p).
TRIVELET_HOST_DEVICE static inline int first_step(int size, int factor, bool near) {
  return near ? kQuarters / 2 : size < kBlock && factor < 8 ? kQuarters : 2 * kQuarters;
}

/// Whether a vector found in whole samples, which costs so much, is refined: in large pictures (a `factor` of 8) only
/// where that is less than half more than the `known` cost of what neighbours do.
TRIVELET_HOST_DEVICE static inline bool worth_refining(float cost, float known, int factor) {
  return factor < 8 || cost * 8 <= known * 12;
}

/// A sample minus offset in the range of the search.
TRIVELET_HOST_DEVICE static inline std::int16_t searched(std::int32_t v, int bits) {
  return static_cast<std::int16_t>(bits <= kSearchBits ? v * (1 << (kSearchBits - bits)) : v >> (bits - kSearchBits));
}

/// Penalty of a distance, added to the SAD in reduced pictures.
TRIVELET_HOST_DEVICE static inline int small_penalty(int dy, int dx) {
  return kSmallSide * kSearchBits / 4 * (std::abs(dy) + std::abs(dx));
}

/// Estimated bits of a vector difference while its prediction is not known: bits of both numbers.
TRIVELET_HOST_DEVICE static inline float vector_bits(MotionVector v, MotionVector e) {
  const auto bits = [](int d) {
    return 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(std::abs(d)) * 2 + 1)) - 1;
  };
  return 0.8f * static_cast<float>(bits(v.x - e.x) + bits(v.y - e.y));
}

/// Limits a vector so that the block stays inside the padded picture.
TRIVELET_HOST_DEVICE static inline MotionVector inside(MotionVector v, int y, int x, int size, int height, int width) {
  const auto limit = [&](int q, int at, int n) {
    return static_cast<std::int16_t>(
        std::clamp(q, -(kPad - kMargin + at) * kQuarters, (n + kPad - kMargin - at - size) * kQuarters));
  };
  return {limit(v.x, x, width), limit(v.y, y, height)};
}

// A block is not searched further if it costs at most this number of bits, little more than the minimum for motion,
// plus a number per cell: the rest is noise to the quantiser. BD-rate and CPU time of encoding for bits per cell (five
// clips, -q 38 and 50): 0 is the reference; 6: -3.3 % and 0.85 of the time (a still cartoon -15.5 %, the four others
// 0.0); 12: +0.3 % for those four; 16: +0.9 % and 0.96 of the time of 6.
inline constexpr float kEnoughBits = 12;
inline float enough_per_cell(Effort effort) { return effort == Effort::kFast ? 16 : 6; }

/// Whether a block of 2^log2 cells a side is neither divided nor searched further.
TRIVELET_HOST_DEVICE static inline bool good_enough(float cost, int log2, float lambda, float per_cell) {
  return cost < lambda * (kEnoughBits + per_cell * static_cast<float>(1 << 2 * log2));
}

/// The constant of MotionCell::plain for `count` samples with this sum.
TRIVELET_HOST_DEVICE static inline std::int8_t plain_of(std::int64_t sum, int count, int bits) {
  const double unit =
      bits >= kMotionPlainBits ? 1 << (bits - kMotionPlainBits) : 1.0 / (1 << (kMotionPlainBits - bits));
  const double plain = static_cast<double>(sum) / (static_cast<double>(count) * unit);
  return static_cast<std::int8_t>(std::clamp(lround(plain), -32L, 31L));
}

/// A coder that sums the bits of decisions, with the states at a region's start.
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
