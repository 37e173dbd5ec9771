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

inline constexpr int kPad = 80;       ///< padding of a picture in samples: a block, and the reach of the filters
inline constexpr int kMargin = 16;    ///< of the padding: no block begins in its outer samples
inline constexpr int kWhole = 4;      ///< of the padding: its outermost samples are not interpolated
inline constexpr int kByteBits = 8;   ///< samples of at most so many bits are searched as bytes
inline constexpr int kDeepBits = 12;  ///< range of the integers, with a sign, that deeper ones are searched as
inline constexpr int kQuarters = 4;
inline constexpr int kBlock = kMotionCell * kMotionRoot;

inline constexpr int kSmallSide = 8;    ///< side of a block in reduced pictures
inline constexpr int kSmallReach = 16;  ///< of the search in reduced pictures

inline constexpr int kRounds = 6;  ///< of a search downhill in steps of whole samples
/// Side in samples of blocks whose two vectors are refined, each beside the other one. In larger blocks, too, that
/// takes 1.4 times the transforms for 0 to 0.2 % more bits; nowhere: 0.1 and 3.8 % more bits (two small clips).
inline constexpr int kRefinedSize = 16;

/// Costs are sixteenths of half a Hadamard sum of samples of 8 bits. A sum of differences counts so much for one, which
/// makes noise cost 0.6 times as much.
inline constexpr int kSatdUnit = 16;
inline constexpr int kSadUnit = 40;

/// Estimated bits, in 1/256, of what costs less if neighbours do the same: motion that is known, a mode with one vector
/// and with two, and the division of a block of two cells.
inline constexpr int kKnownBits = 2 * 256;
inline constexpr int kModeBits = 3 * 256;
inline constexpr int kBothBits = 640;
inline constexpr int kDivisionBits = 4 * 256;
/// The same of a vector that is coded by another one than expected.
inline constexpr int kBesideBits = 256;

/// A sample minus offset in the range of the search.
TRIVELET_HOST_DEVICE static inline std::uint8_t searched(std::int32_t v, int bits, std::uint8_t) {
  return static_cast<std::uint8_t>(clamp_int(v * (1 << (kByteBits - bits)) + 128, 0, 255));
}
TRIVELET_HOST_DEVICE static inline std::int16_t searched(std::int32_t v, int bits, std::int16_t) {
  v = bits <= kDeepBits ? v * (1 << (kDeepBits - bits)) : v >> (bits - kDeepBits);
  return static_cast<std::int16_t>(clamp_int(v, -4095, 4095));
}
/// A constant of MotionCell::plain in that range.
TRIVELET_HOST_DEVICE static inline std::uint8_t searched_plain(int plain, std::uint8_t) {
  return static_cast<std::uint8_t>(plain * (1 << (kByteBits - kMotionPlainBits)) + 128);
}
TRIVELET_HOST_DEVICE static inline std::int16_t searched_plain(int plain, std::int16_t) {
  return static_cast<std::int16_t>(plain * (1 << (kDeepBits - kMotionPlainBits)));
}

/// Twice the cost of a block in reduced pictures, with a penalty for its distance.
TRIVELET_HOST_DEVICE static inline int small_cost(int difference, int dy, int dx) {
  return 2 * difference + 3 * (std::abs(dy) + std::abs(dx));
}

/// Estimated bits, in 1/256, of a vector difference while its prediction is not known: bits of both numbers.
TRIVELET_HOST_DEVICE static inline int vector_bits(MotionVector v, MotionVector e) {
  const auto bits = [](int d) {
    return 2 * static_cast<int>(std::bit_width(static_cast<unsigned>(std::abs(d)) * 2 + 1)) - 1;
  };
  return 205 * (bits(v.x - e.x) + bits(v.y - e.y));
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
inline constexpr int kEnoughBits = 12;
inline int enough_per_cell(Effort effort) { return effort == Effort::kFast ? 16 : 6; }

/// The constant of MotionCell::plain for `count` samples with this sum.
TRIVELET_HOST_DEVICE static inline std::int8_t plain_of(std::int64_t sum, int count, int bits) {
  const double unit =
      bits >= kMotionPlainBits ? 1 << (bits - kMotionPlainBits) : 1.0 / (1 << (kMotionPlainBits - bits));
  const double plain = static_cast<double>(sum) / (static_cast<double>(count) * unit);
  return static_cast<std::int8_t>(std::clamp(lround(plain), -32L, 31L));
}

/// A coder that sums the bits of decisions, in 1/256, with the states at a region's start.
struct BitCounter {
  static constexpr bool kReading = false;
  const int* prices;  ///< bit_prices()
  int bits = 0;
  TRIVELET_HOST_DEVICE explicit BitCounter(const int* of) : prices(of) {}
  TRIVELET_HOST_DEVICE bool bit(const dense::State& s, bool b) {
    bits += price(prices, s, b);
    return b;
  }
  TRIVELET_HOST_DEVICE bool flat(bool b) {
    bits += 256;
    return b;
  }
  TRIVELET_HOST_DEVICE static int price(const int* prices, const dense::State& s, bool b) {
    return prices[(b ? s.one : 65535u - s.one) >> 8];
  }
};

}  // namespace trivelet::motion_choice
