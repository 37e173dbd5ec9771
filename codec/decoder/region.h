// A region of the pictures from a part of the bytes: which segments it needs. Their parts are read alone with the
// checks of chunk_check.h.
//
// A code block is decoded without any other, but a sample depends on coefficients as far away as the filters reach: at
// every level of the transform the needed range grows by the filter's reach, then halves. So a region needs its own
// blocks whole, and of those around it the coarse segments only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/format/chunk.h"
#include "trivelet/codec.h"

namespace trivelet {

/// [block * resolutions + k] != 0: segments k of the block are needed for `region` of the component's picture, which is
/// reduced `reduced` times.
std::vector<std::uint8_t> needed_segments(const BlockGrid& grid, int reduced, const PictureRegion& region);

}  // namespace trivelet
