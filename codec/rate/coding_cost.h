// What it takes to code a GOP, about: with Motion::kAuto this is found for a GOP with its motion and without. It is a
// measure for this choice alone. What is added up over coefficients is whole numbers, which come to the same in any
// order, on a device as in a loop of the host.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/base/host_device.h"
#include "codec/base/stream_header.h"
#include "codec/motion/motion.h"
#include "codec/threads/parallel.h"
#include "codec/transform/subband.h"
#include "trivelet/coefficients.h"

namespace trivelet {

/// Of a frame of a subband, in these fractions.
struct CodingSums {
  std::uint64_t bits = 0;   ///< of rows that are looked at, twice, with kBitsFraction binary places
  std::uint64_t error = 0;  ///< that remains, in squared steps with kErrorFraction of them; of floats only
};
inline constexpr int kBitsFraction = 12;
inline constexpr int kErrorFraction = 16;

/// Of so many rows of a subband one is looked at, from the first on: this is for a choice between two.
inline constexpr int kCodingRows = 2;
inline int coding_rows(int height) { return (height + kCodingRows - 1) / kCodingRows; }

/// So many numbers of either kind can be added up in 32 bits.
inline constexpr int kCodingTerms = 4096;

/// log2(1 + 12 q^2), for a coefficient of so many steps: to less than 0.01.
TRIVELET_HOST_DEVICE static inline std::uint32_t coding_bits(float q) {
  constexpr int kMantissa = 23, kBias = 127;
  const float x = 1.0f + 12.0f * (q * q);
  std::uint32_t bits = 0;
  memcpy(&bits, &x, sizeof bits);
  // Of 1 + m the logarithm is m and a little more: 0.337 m (1 - m).
  const std::uint32_t log2 = (bits - (static_cast<std::uint32_t>(kBias) << kMantissa)) >> (kMantissa - kBitsFraction);
  const std::uint32_t m = log2 & ((1u << kBitsFraction) - 1);
  return log2 + (((m * ((1u << kBitsFraction) - m) >> 6) * 1381u) >> 18);
}

/// What is lost of it: itself, or by rounding what is uniform.
TRIVELET_HOST_DEVICE static inline std::uint32_t coding_error(float q) {
  constexpr std::uint32_t kUniform = (1u << kErrorFraction) / 12;
  const auto square = static_cast<float>(1 << kErrorFraction) * (q * q);
  return q < 1.0f ? static_cast<std::uint32_t>(square) : kUniform;
}

/// Steps, not rounded. Lossless coefficients are whole steps.
TRIVELET_HOST_DEVICE static inline float coding_steps(float c, float inverse_step) {
  return (c < 0 ? -c : c) * inverse_step;
}
TRIVELET_HOST_DEVICE static inline float coding_steps(std::int32_t c, float) {
  const auto x = static_cast<float>(c);
  return x < 0 ? -x : x;
}

/// Calls f(component, its table, the number of a subband in that) for those that have coefficients, of which the
/// frames, one after the other, have the sums. `header`: as of_gop() describes the GOP.
template <class F>
void for_coding_bands(const StreamHeader& header, int frames, const F& f) {
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const SubbandTable table(header.component_shape(c, frames), header.decomposition(c), header.lossless);
    for (std::size_t i = 0; i < table.all().size(); ++i)
      if (table.all()[i].shape.samples() > 0) f(c, table, i);
  }
}

/// Of a GOP, in squared errors of samples: its bits at the slope that goes with the step, and the errors that remain.
double coding_cost(const StreamHeader& header, int frames, const std::vector<std::uint8_t>& frame_gains, float step,
                   const std::vector<CodingSums>& sums);
/// The same from its coefficients.
double coding_cost(const StreamHeader& header, const CoefficientGop& gop, float step, ThreadPool& pool);

/// The bits of motion in the same measure.
double motion_cost(const StreamHeader& header, const GopMotion& motion, float step);

}  // namespace trivelet
