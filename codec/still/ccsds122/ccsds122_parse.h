// Entropy decoding of one segment into DC values and bit planes. The effects of damage stay within the segment.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_kernels.h"

namespace trivelet::ccsds122 {

/// The decoded content of a segment, as far as it goes.
struct SegmentData {
  std::vector<std::int32_t> dc;  ///< known bits; unknown ones are 0
  int dc_plane = 32;             ///< bits >= this one are known in all blocks; 32: see dc_blocks
  std::uint32_t dc_blocks = 0;   ///< number of blocks with a known quantised DC
  std::uint32_t dc_ahead = 0;    ///< number of blocks that know one more bit plane of DC
  std::vector<std::uint8_t> depth;
  std::unique_ptr<std::uint64_t[]> sign;
  std::unique_ptr<std::uint64_t[]> planes;  ///< stride = number of blocks
  int last_plane = 0;                       ///< lowest AC plane with decoded bits
  bool partial = false;                     ///< that plane is incomplete; see Dequantiser
  std::uint32_t refined_blocks = 0;
  std::uint64_t partly_refined = 0;
  std::int64_t dc_sum = 0;      ///< sum of the known DC values
  std::int32_t on_device = -1;  ///< handle of a SegmentDevice; if set, dc, depth, sign and planes are empty
  bool has_planes = false;      ///< sign and planes are valid

  /// Bytes of memory for a segment with so many planes.
  static std::size_t memory(std::uint32_t blocks, int planes) {
    return static_cast<std::size_t>(blocks) * (4 + 1 + 1 + 8 * static_cast<std::size_t>(planes ? planes + 2 : 0));
  }
};

enum class ParseEnd : std::uint8_t { kDone, kOutOfBits, kDamaged };

/// Why the bits of a segment are invalid.
enum class Damage : std::uint8_t { kNone, kDcCode, kDcDepth, kAcCode, kAcDepth, kPlane };
/// The text for a report; `stage` 1..4 and `plane` are for kPlane.
std::string describe(Damage damage, int stage, int plane);

/// Finds the bits of a segment after its header, up to the end of the data or the byte limit. False if not even the
/// header fits; the report then says so.
bool segment_bits(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, SegmentReport& report,
                  BitCursor& bits);
/// Completes bytes, state, limited and message of a report after the bits up to `position` were read. Damage has
/// already left its message.
void finish_report(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, ParseEnd end,
                   std::uint64_t position, SegmentReport& report);

/// Parses the segment at `report.offset` of `stream`. Its header is already read, with values in force. The stream has
/// kReadPadding readable bytes behind its end. `length` is the segment's length, 0 if unknown. Fills bytes, state,
/// limited, last_plane and message of the report. Throws only Unsupported, when it would need more than `max_memory`
/// bytes.
SegmentData parse_segment(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length,
                          std::size_t max_memory, const Kernels& k, SegmentReport& report);

}  // namespace trivelet::ccsds122
