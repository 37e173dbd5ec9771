// Estimates the size of components that a backend does not estimate (codec/entropy/fast/size_estimate.h), from windows
// of their samples. The host does this for every backend, so that the result is the same.
#pragma once

#include "codec/backend.h"
#include "codec/entropy/fast/size_estimate.h"

namespace trivelet {

/// Adds what the components of `gop` from estimated_components() on take to `curve`. Lossy streams without motion.
void sample_sizes(const StreamHeader& header, const Gop& gop, const GopChoices& choices, SimdLevel simd,
                  ThreadPool& pool, SizeCurve& curve);

}  // namespace trivelet
