// Rate-distortion rounding of coefficients. The quantiser (quantiser.h) rounds down, so the encoder first moves a
// coefficient into the interval of the number of steps with the lowest cost of error and bits.
//
// The rate is a model: the magnitudes around a coefficient give the mean `m` of a Laplacian, so that each further step
// costs log2(e) / m bits and the first one also a sign. A bit costs `lambda` squared steps (rounding_lambda()).
// Decoders reconstruct a number n at n + kCostCentroid / 256.
//
// BD-rate (foreman QCIF, mobile; -q 24..62, with motion, one layer) against plain rounding down with centroid 102: -3.8
// %. The optimum is flat: lambda 0.2 everywhere instead of 0.25 gives -3.3, 0.4 -2.2; kCostCentroid 51 changes it by
// 0.0, 77 by +0.3; kLeastMean 0.05 by -0.1, 0.15 by +0.2; temporal neighbours by +0.3.
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

/// Weight of neighbours along an axis. Diagonal neighbours have weight 1; the sum is 12.
inline constexpr float kBesideWeight = 2.0f;

/// A neighbour's magnitude in steps, limited so that a large one does not dominate the mean.
TRIVELET_HOST_DEVICE static inline float counted_magnitude(float c, float inverse_step) {
  const float x = (c < 0 ? -c : c) * inverse_step;
  return x < 4.0f ? x : 4.0f;
}

/// The value of a bit, in squared steps, in a subband of a GOP. With motion, lambda is smaller in key frames, on which
/// other frames depend, and at the finest temporal levels, which helps the worst frames most. BD-rate against 0.25
/// everywhere (-q 5, 25, 45, 60): -1.2 % on the four clips used for tuning, -0.9 % on six others; the worst frame of a
/// GOP is 0.1 dB closer to the mean.
float rounding_lambda(const Subband& band, const Decomposition& decomposition);

/// Returns the coefficient to quantise in place of `c`. `around` is the weighted sum of the neighbours' magnitudes. The
/// change is less than a step; large magnitudes never change.
TRIVELET_HOST_DEVICE static inline float rounded_by_cost(float c, float around, float step, float inverse_step,
                                                         float lambda) {
  constexpr float kLeastMean = 0.1f;
  constexpr float kLargest = 1024.0f;
  constexpr float kCentroid = static_cast<float>(kCostCentroid) / 256.0f;
  constexpr float kInside = 0.015625f;  // distance of a moved coefficient from the end of its interval, in steps
  const float x = (c < 0 ? -c : c) * inverse_step;
  if (!(x < kLargest)) return c;
  const float mean = around * (1.0f / 12.0f) + kLeastMean;
  const float price = lambda * 1.442695f / mean;
  // n is cheaper than n - 1 if (x - (n - 1 + kCentroid))^2 - (x - (n + kCentroid))^2 > price, and 1 is cheaper than 0
  // if x^2 - (x - (1 + kCentroid))^2 > price + lambda.
  const int down = static_cast<int>(x);
  int n = static_cast<int>(x + 0.5f);
  if (n >= 2 && !(x > static_cast<float>(n) + (kCentroid - 0.5f) + 0.5f * price)) --n;
  if (n == 1 && !(x > 0.5f * (1.0f + kCentroid) + (price + lambda) * (0.5f / (1.0f + kCentroid)))) n = 0;
  if (n == down) return c;
  const float moved = (static_cast<float>(n) + (n > down ? kInside : 1.0f - kInside)) * step;
  return c < 0 ? -moved : moved;
}

/// Rounds the coefficients of a subband. `memory` is scratch that calls can share.
void round_by_cost(const Field<float>& band, float step, float inverse_step, float lambda, std::vector<float>& memory);

/// Rounds all coefficients of a lossy GOP for a quantiser step. `header` is as StreamHeader::describe_gop() gives it.
/// The first `rounded` frames of the lowest temporal band are left as they are.
void round_by_cost(const StreamHeader& header, CoefficientGop& gop, float step, ThreadPool& pool, int rounded = 0);

}  // namespace trivelet
