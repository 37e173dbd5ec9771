// What a coefficient adds to the estimated cost of coding a GOP (coding_cost.h), in integers.
#pragma once

#include <cstdint>
#include <cstring>

#include "codec/base/host_device.h"

namespace trivelet {

/// The cost of a frame of a subband.
struct CodingSums {
  std::uint64_t bits = 0;   ///< twice the bits of the sampled rows, with kBitsFraction binary places
  std::uint64_t error = 0;  ///< squared steps with kErrorFraction binary places; of floats only
};
inline constexpr int kBitsFraction = 12;
inline constexpr int kErrorFraction = 16;

/// This many numbers of either kind can be added in 32 bits.
inline constexpr int kCodingTerms = 4096;

/// log2(1 + 12 q^2) of a coefficient of q steps, with an error below 0.01.
TRIVELET_HOST_DEVICE static inline std::uint32_t coding_bits(float q) {
  constexpr int kMantissa = 23, kBias = 127;
  const float x = 1.0f + 12.0f * (q * q);
  std::uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  // log2(1 + m) is about m + 0.337 m (1 - m).
  const std::uint32_t log2 = (bits - (static_cast<std::uint32_t>(kBias) << kMantissa)) >> (kMantissa - kBitsFraction);
  const std::uint32_t m = log2 & ((1u << kBitsFraction) - 1);
  return log2 + (((m * ((1u << kBitsFraction) - m) >> 6) * 1381u) >> 18);
}

/// The error of a coefficient: itself if it becomes 0, else that of rounding a uniform value.
TRIVELET_HOST_DEVICE static inline std::uint32_t coding_error(float q) {
  constexpr std::uint32_t kUniform = (1u << kErrorFraction) / 12;
  const float square = q < 1.0f ? static_cast<float>(1 << kErrorFraction) * (q * q) : 0.0f;
  return q < 1.0f ? static_cast<std::uint32_t>(static_cast<std::int32_t>(square)) : kUniform;
}

/// Steps, not rounded. Lossless coefficients are whole steps.
TRIVELET_HOST_DEVICE static inline float coding_steps(float c, float inverse_step) {
  return (c < 0 ? -c : c) * inverse_step;
}
TRIVELET_HOST_DEVICE static inline float coding_steps(std::int32_t c, float) {
  const auto x = static_cast<float>(c);
  return x < 0 ? -x : x;
}

}  // namespace trivelet
