// A region of the pictures from a part of the bytes: which segments it needs, and the checks of single parts that let a
// decoder read those alone (FORMAT.md "part").
//
// A code block is decoded without any other, but a sample depends on coefficients as far away as the filters reach: at
// every level of the transform the needed range grows by the filter's reach, then halves. So a region needs its own
// blocks whole, and of those around it the coarse segments only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/chunk.h"

namespace trivelet {

/// [block * resolutions + k] != 0: segments k of the block are needed for `region` of the component's picture, which is
/// reduced `reduced` times.
std::vector<std::uint8_t> needed_segments(const BlockGrid& grid, int reduced, const PictureRegion& region);

/// What lets a part of a chunk be read alone.
struct ChunkChecks {
  std::uint64_t head_bytes = 0;
  std::uint32_t head_crc = 0;
  std::vector<std::uint32_t> parts;  ///< CRCs of the parts that have bytes, in their order
};

/// The payload of a GOP's "part" box. `chunks` as written, in the order of the chunk table.
std::vector<std::uint8_t> serialise_checks(const StreamHeader& stream, std::uint64_t gop, const LayeredGop& layers,
                                           const std::vector<std::vector<std::uint8_t>>& chunks);
/// One entry per chunk of the GOP; nothing when the bytes are damaged or of another GOP.
std::optional<std::vector<ChunkChecks>> parse_checks(const GopHeader& gop, const std::uint8_t* bytes, std::size_t size);

}  // namespace trivelet
