// Where a layer is cut when only part of it may stay (truncation to a size): what hangs on other parts goes first.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/format/chunk.h"

namespace trivelet {

/// The chunks of layer `layer` of a GOP that was received up to it, by band, then from the largest distance to 0: with
/// as many of its parts, from coarse to fine, as fit `budget` bytes together with CRCs and sizes. Those that do not fit
/// are taken out of `gop`. Nothing when not even empty chunks fit, unless it is layer 0.
std::vector<std::vector<std::uint8_t>> cut_layer(const StreamHeader& stream, LayeredGop& gop, int layer,
                                                 std::uint64_t budget);

}  // namespace trivelet
