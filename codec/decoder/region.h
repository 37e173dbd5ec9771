// Decoding of a region from part of the bytes: finds the segments that the region needs. chunk_check.h checks their
// parts when chunks are not read whole.
//
// A code block is decoded without any other, but a sample depends on coefficients within the reach of the filters: at
// every level the needed range grows by the filter's reach, then halves. A region therefore needs its own blocks whole,
// and only the coarse segments of blocks around it.
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
