// Truncates a layer to a number of bytes. Parts that depend on other parts are removed first.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/format/chunk.h"

namespace trivelet {

/// The chunks of layer `layer` of a GOP that was received up to that layer, by band, then from the largest distance to
/// 0. They hold as many parts, from coarse to fine, as fit `budget` bytes including CRCs and sizes. The other parts are
/// removed from `gop`. Empty if not even empty chunks fit, unless it is layer 0.
std::vector<std::vector<std::uint8_t>> cut_layer(const StreamHeader& stream, LayeredGop& gop, int layer,
                                                 std::uint64_t budget);

}  // namespace trivelet
