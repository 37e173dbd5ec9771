// Estimates the cost of coding a GOP. Motion::kAuto compares the cost with motion and without; the estimate serves this
// choice alone. Sums over coefficients are integers, so host and device get the same result in any order.
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

/// The cost of a frame of a subband.
struct CodingSums {
  std::uint64_t bits = 0;   ///< twice the bits of the sampled rows, with kBitsFraction binary places
  std::uint64_t error = 0;  ///< squared steps with kErrorFraction binary places; of floats only
};
inline constexpr int kBitsFraction = 12;
inline constexpr int kErrorFraction = 16;

/// One row of a subband in this many is sampled, from the first on; that is enough for a choice between two.
inline constexpr int kCodingRows = 2;
inline int coding_rows(int height) { return (height + kCodingRows - 1) / kCodingRows; }

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
/// frames, one after the other, have the sums. `header`: as describe_gop() describes the GOP.
template <class F>
void for_coding_bands(const StreamHeader& header, int frames, const F& f) {
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const SubbandTable table(header.component_shape(c, frames), header.decomposition(c), header.lossless);
    for (std::size_t i = 0; i < table.all().size(); ++i)
      if (table.all()[i].shape.samples() > 0) f(c, table, i);
  }
}

/// The sums of a frame of a subband.
template <class T>
CodingSums coding_sums(const Field<T>& band, int frame, float inverse_step);

/// The cost of a GOP in squared errors of samples: its bits at the slope that belongs to the step, plus the remaining
/// errors.
double coding_cost(const StreamHeader& header, int frames, const std::vector<std::uint8_t>& frame_gains, float step,
                   const std::vector<CodingSums>& sums);
/// The same, computed from the coefficients.
double coding_cost(const StreamHeader& header, const CoefficientGop& gop, float step, ThreadPool& pool);

/// The cost of bytes in the same unit, and of those of motion.
double cost_of_bytes(const StreamHeader& header, std::size_t bytes, float step);
double motion_cost(const StreamHeader& header, const GopMotion& motion, float step);

/// Whether keys are predicted that cost `alone` by themselves and otherwise `predicted`, with their section. Those that
/// are predicted in place must cost noticeably less.
bool prediction_pays(double predicted, double alone, bool in_place);

}  // namespace trivelet
