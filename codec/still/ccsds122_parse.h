// Entropy decoding of one segment: bits to DC values and bit planes, with everything a damaged one may do kept inside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codec/still/ccsds122.h"
#include "codec/still/ccsds122_kernels.h"

namespace trivelet::ccsds122 {

/// The content of a segment as far as it was read.
struct SegmentData {
  std::vector<std::int32_t> dc;  ///< known bits, the others 0
  int dc_plane = 32;             ///< bits >= this one are known of all blocks; 32: see dc_blocks
  std::uint32_t dc_blocks = 0;   ///< blocks whose quantised DC was read
  std::uint32_t dc_ahead = 0;    ///< so many blocks know one more bit plane of DC
  std::vector<std::uint8_t> depth;
  std::unique_ptr<std::uint64_t[]> sign;
  std::unique_ptr<std::uint64_t[]> planes;  ///< stride = number of blocks
  int last_plane = 0;                       ///< lowest AC plane in `planes` with content
  bool partial = false;                     ///< that plane is incomplete: see Dequantiser
  std::uint32_t refined_blocks = 0;
  std::uint64_t partly_refined = 0;

  /// Bytes that a segment needs at least / with all its planes.
  static std::size_t memory(std::uint32_t blocks, int planes) {
    return static_cast<std::size_t>(blocks) * (4 + 1 + 1 + 8 * static_cast<std::size_t>(planes ? planes + 2 : 0));
  }
};

/// Parses the segment whose header (already read, with values in force) lies at `report.offset` of `stream`; the stream
/// has kReadPadding readable bytes behind its end. `length` is the segment's length when known, else 0.
/// Fills the report's bytes, state, limited, last_plane, message. Never throws but Unsupported, when more than
/// `max_memory` bytes would be needed.
SegmentData parse_segment(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length,
                          std::size_t max_memory, const Kernels& k, SegmentReport& report);

}  // namespace trivelet::ccsds122
