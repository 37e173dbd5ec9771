// Which whole number of steps a coefficient is coded as, where the encoder weighs the error against the bits: the
// quantiser (quantiser.h) rounds down, and a coefficient is first moved into the interval of the number it is worth.
//
// What a number costs is taken from a model: magnitudes around a coefficient tell the mean `m` of a Laplacian that it
// is drawn from, so that one step more costs log2(e) / m bits, and the first one a sign besides. A bit is worth
// `lambda` squared steps (rounding_lambda()). Decoders put a number n at n + kCostCentroid / 256.
//
// Measured as BD-rate (foreman QCIF, mobile; -q 24..62, along motion, one layer) against rounding down, and 102: -3.8
// %; lambda 0.2 everywhere instead of 0.25 -3.3, 0.4 -2.2; kCostCentroid 51 0.0, 77 +0.3; kLeastMean 0.05 -0.1, 0.15
// +0.2; neighbours in time added to those in the frame +0.3. The optimum is flat, and it is that of other clips, too.
#pragma once

#include <vector>

#include "codec/base/host_device.h"
#include "codec/threads/parallel.h"
#include "trivelet/coefficients.h"

namespace trivelet {

struct Decomposition;
struct StreamHeader;
struct Subband;
template <class T>
struct Field;

inline constexpr int kCostCentroid = 64;

/// Weights of neighbours along an axis, and of diagonal ones; 12 in all.
inline constexpr float kBesideWeight = 2.0f;

/// A neighbour's magnitude in steps, as it counts.
TRIVELET_HOST_DEVICE static inline float counted_magnitude(float c, float inverse_step) {
  const float x = (c < 0 ? -c : c) * inverse_step;
  return x < 4.0f ? x : 4.0f;
}

/// What a bit is worth in a subband of a GOP. Along motion other frames lean on the key, most of all where many do, and
/// the finest levels are rounded less than their large steps would have it, which helps the worst frames most. BD-rate
/// against 0.25 everywhere (-q 5, 25, 45, 60): -1.2 % on the four clips that chose these, -0.9 % on six others, and
/// -0.1 dB from the mean to the worst frame of a GOP. Other spatial levels or components differ by nothing.
float rounding_lambda(const Subband& band, const Decomposition& decomposition);

/// The coefficient to be rounded down instead of `c`; `around`: the weighted sum of the neighbours' magnitudes. What is
/// left out or added is less than a step; large magnitudes are never worth a change.
TRIVELET_HOST_DEVICE static inline float rounded_by_cost(float c, float around, float step, float inverse_step,
                                                         float lambda) {
  constexpr float kLeastMean = 0.1f;
  constexpr float kLargest = 1024.0f;
  constexpr float kCentroid = static_cast<float>(kCostCentroid) / 256.0f;
  constexpr float kInside = 0.015625f;  // how far inside its interval a moved coefficient lies, in steps
  const float x = (c < 0 ? -c : c) * inverse_step;
  if (!(x < kLargest)) return c;
  const float mean = around * (1.0f / 12.0f) + kLeastMean;
  const float price = lambda * 1.442695f / mean;
  // n is worth it against n - 1 if (x - (n - 1 + kCentroid))^2 - (x - (n + kCentroid))^2 > price, 1 against 0 if
  // x^2 - (x - (1 + kCentroid))^2 > price + lambda.
  const int down = static_cast<int>(x);
  int n = static_cast<int>(x + 0.5f);
  if (n >= 2 && !(x > static_cast<float>(n) + (kCentroid - 0.5f) + 0.5f * price)) --n;
  if (n == 1 && !(x > 0.5f * (1.0f + kCentroid) + (price + lambda) * (0.5f / (1.0f + kCentroid)))) n = 0;
  if (n == down) return c;
  const float moved = (static_cast<float>(n) + (n > down ? kInside : 1.0f - kInside)) * step;
  return c < 0 ? -moved : moved;
}

/// Moves the coefficients of a subband so. `memory` is used again.
void round_by_cost(const Field<float>& band, float step, float inverse_step, float lambda, std::vector<float>& memory);

/// Moves all coefficients of a lossy GOP so, for a quantiser step. `header`: as StreamHeader::of_gop() describes it.
void round_by_cost(const StreamHeader& header, CoefficientGop& gop, float step, ThreadPool& pool);

}  // namespace trivelet
