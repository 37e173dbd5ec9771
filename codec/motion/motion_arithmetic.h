// The arithmetic of motion-compensated lifting on one value (FORMAT.md "Motion"), shared by the CPU, its tests and
// CUDA. The loops are elsewhere. Integers wrap around at 32 bits, and nothing is undefined for any input.
#pragma once

#include <cstdint>

#include "codec/transform/lifting.h"

namespace trivelet {

/// Fractional bits of the integers that lossy streams are lifted in. Lossless streams have none.
inline constexpr int kMotionFraction = 4;

inline constexpr float kMotionLargest = 4194303.0f;  ///< limit of these integers: 2^22 - 1, as for clamp_round()

inline constexpr int kMotionTaps = 8;        ///< of the interpolation filter
inline constexpr int kMotionTapsBefore = 3;  ///< taps before the sample's position
inline constexpr int kMotionWeight = 16;     ///< sum of weights along an axis of a window
inline constexpr int kMotionPlainBits = 6;   ///< of a constant that replaces a block

/// Tap i for each eighth of a sample, in 1/64. The taps of quarters are HEVC's.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_tap(int phase, int i) {
  static constexpr std::int8_t kTaps[8][kMotionTaps] = {
      {0, 0, 0, 64, 0, 0, 0, 0},       {0, 2, -6, 62, 8, -3, 1, 0},      {-1, 4, -10, 58, 17, -5, 1, 0},
      {-1, 4, -11, 49, 29, -8, 3, -1}, {-1, 4, -11, 40, 40, -11, 4, -1}, {-1, 3, -8, 29, 49, -11, 4, -1},
      {0, 1, -5, 17, 58, -10, 4, -1},  {0, 1, -3, 8, 62, -6, 2, 0},
  };
  return kTaps[phase][i];
}

/// Weight, out of kMotionWeight, of the cell after a border between cells of `size` samples, for sample i around the
/// border: a raised cosine.
TRIVELET_HOST_DEVICE static inline int motion_weight(int size, int i) {
  static constexpr std::uint8_t kRamp[4][8] = {{16}, {2, 14}, {1, 5, 11, 15}, {0, 1, 4, 6, 10, 12, 15, 16}};
  return kRamp[size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0][i];
}

/// The mean from a sum weighted along both axes.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_mean(std::int32_t sum) {
  return wrap_add(sum, kMotionWeight * kMotionWeight / 2) >> 8;
}

/// The mean of two predictions.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_mean_of(std::int32_t a, std::int32_t b) {
  return wrap_add(wrap_add(a, b), 1) >> 1;
}

/// A constant of MotionCell::plain in 1/16 of a grey level of samples with `bits` bits.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_plain(int plain, int bits) {
  const int places = bits + kMotionFraction - kMotionPlainBits;
  return places >= 0 ? plain * (1 << places) : plain >> -places;
}

/// Limit of the change of a value by an update: 12 grey levels at 8 bits.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_update_limit(int fraction, int bits) {
  constexpr int kClip = 12;
  const int places = fraction + bits - 8;
  return places >= 0 ? kClip << places : kClip >> -places > 1 ? kClip >> -places : 1;
}

inline constexpr std::uint32_t kMotionMostShare = 205;  ///< of 256: limit of the weight of an update

/// Factor, in 1/32768, of a sum whose weights add up to `total`: limits the weight to kMotionMostShare.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_share(std::uint32_t total) {
  return total > kMotionMostShare ? static_cast<std::int32_t>((kMotionMostShare << 15) / total) : 1 << 15;
}

/// The change of a low value from the sum of differences that arrive. A high value predicted from it alone counts half.
TRIVELET_HOST_DEVICE static inline std::int32_t motion_update_by(std::int32_t sum, std::int32_t share,
                                                                 std::int32_t limit) {
  sum = static_cast<std::int32_t>(static_cast<std::int64_t>(sum) * share >> 15);
  return clamp_int(wrap_add(sum, 128) >> 8, -limit, limit);
}
TRIVELET_HOST_DEVICE static inline std::int32_t motion_update(std::int32_t sum, std::uint32_t total,
                                                              std::int32_t limit) {
  return motion_update_by(sum, motion_share(total), limit);
}

}  // namespace trivelet
