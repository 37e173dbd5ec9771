// Common data of the kernels of the CCSDS 122.0 decoder: the description of segments, and the addresses of all arrays.
#pragma once

#include <cstdint>

#include "codec/still/ccsds122/ccsds122_segment.h"
#include "gpu/still/ccsds122_dwt.h"
#include "gpu/still/ccsds122_words.cuh"

namespace trivelet::gpu {

namespace ccsds122_decode {

using ccsds122::kBands;
using ccsds122::kLL3;

struct ParseJob {
  std::uint64_t start = 0, end = 0;  ///< bits of the stream
  std::uint64_t block = 0;           ///< first of its blocks in the arrays
  std::uint64_t plane = 0;           ///< first of its planes in the array of planes
  std::uint32_t blocks = 0;
  std::uint32_t gaggle = 0;  ///< first of its gaggles in the array of options
  std::int32_t dc_depth = 1, ac_depth = 0;
  std::int32_t stop_plane = 0, stop_stage = 4;
  std::int32_t dc_stop = 0;
  std::int8_t shift[kBands] = {};
};

struct ParseResult {
  std::uint64_t position;
  std::uint64_t partly_refined;
  std::int64_t dc_sum;
  std::uint32_t dc_blocks, dc_ahead, refined_blocks;
  std::int32_t dc_plane, last_plane;
  std::uint8_t end, damage, stage, plane;
  std::uint8_t partial, has_planes;
};

/// Arrays that all segments share.
struct SegmentArrays {
  const std::uint64_t* stream;
  std::uint64_t stream_words;
  std::int32_t* dc;
  std::uint8_t* depth;
  std::uint8_t* families;
  std::uint64_t* sign;
  std::uint64_t* significant;
  std::uint64_t* plane;
  std::uint32_t* options;
};

/// A segment on its way into the picture.
struct PlaceJob {
  std::uint64_t block = 0, plane = 0;  ///< in the arrays
  std::uint64_t first_block = 0;       ///< in the picture
  std::uint64_t partly_refined = 0;
  std::uint32_t blocks = 0, dc_blocks = 0, dc_ahead = 0, refined_blocks = 0;
  std::int32_t dc_plane = 0;  ///< known down to here
  std::int32_t last_plane = 0;
  std::uint8_t partial = 0, has_planes = 0, real = 0;
  std::int8_t shift[kBands] = {};
};

/// The blocks of a segment that a block of threads places.
struct PlaceTile {
  std::uint32_t job = 0, first = 0;
};

}  // namespace ccsds122_decode

}  // namespace trivelet::gpu
