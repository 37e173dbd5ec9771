// How large coefficients can become: whether 16 bits hold them, and how many bit planes they have.
#pragma once

#include "codec/base/stream_header.h"
#include "codec/transform/subband.h"

namespace trivelet::gpu {

/// A bound of the magnitudes of a component's quantised coefficients: the largest sample times the L1 norms of the
/// analysis filters of each axis, over the subband's step (lossless: 1), with a margin for the rounding of every step.
double coefficient_bound(const StreamHeader& header, int component, int frames, float step);

}  // namespace trivelet::gpu
