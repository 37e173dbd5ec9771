// Rounding of coefficients by their cost, on the device (codec/entropy/dense/rounding.h): the same bits.
#pragma once

#include "gpu/pipeline/pipeline.h"

namespace trivelet::gpu {

/// Moves the coefficients of a GOP from `from` to `to`, both laid out as the shape says.
void round_by_cost(const GopShape& shape, float step, const float* from, float* to, const Stream& stream);

/// The same for the first frame of a subband.
void round_band(const CoefficientLayout::Band& band, const float* from, float* to, float step, float inverse_step,
                float lambda, const Stream& stream);

}  // namespace trivelet::gpu
