// Entropy decoding of one segment: bits to DC values and bit planes, with everything a damaged one may do kept inside.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"

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
  std::int64_t dc_sum = 0;      ///< of the known DC values
  std::int32_t on_device = -1;  ///< what a SegmentDevice keeps: then dc, depth, sign and planes are empty here
  bool has_planes = false;      ///< sign and planes are there

  /// Bytes that a segment needs at least / with all its planes.
  static std::size_t memory(std::uint32_t blocks, int planes) {
    return static_cast<std::size_t>(blocks) * (4 + 1 + 1 + 8 * static_cast<std::size_t>(planes ? planes + 2 : 0));
  }
};

enum class ParseEnd : std::uint8_t { kDone, kOutOfBits, kDamaged };

/// Why the bits of a segment cannot be.
enum class Damage : std::uint8_t { kNone, kDcCode, kDcDepth, kAcCode, kAcDepth, kPlane };
/// `stage` 1..4 and `plane` for kPlane.
std::string describe(Damage damage, int stage, int plane);

/// The bits of a segment after its header, up to the end of the data or the byte limit. False when not even the header
/// fits: the report then says so.
bool segment_bits(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, SegmentReport& report,
                  BitCursor& bits);
/// Fills in bytes, state, limited and message (which the damage has left in the report) once the bits are read up to
/// `position`.
void finish_report(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, ParseEnd end,
                   std::uint64_t position, SegmentReport& report);

/// Parses the segment whose header (already read, with values in force) lies at `report.offset` of `stream`; the stream
/// has kReadPadding readable bytes behind its end. `length` is the segment's length when known, else 0.
/// Fills the report's bytes, state, limited, last_plane, message. Never throws but Unsupported, when more than
/// `max_memory` bytes would be needed.
SegmentData parse_segment(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length,
                          std::size_t max_memory, const Kernels& k, SegmentReport& report);

}  // namespace trivelet::ccsds122
