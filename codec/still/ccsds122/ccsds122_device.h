// The seam between the decoder's search for segments and a device that parses many at once and puts the picture
// together (gpu/still/ccsds122_decode.h). The search, the headers, the reports and everything about damage stay on the
// host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_bits.h"
#include "codec/still/ccsds122/ccsds122_parse.h"

namespace trivelet::ccsds122 {

/// One segment to be parsed: what parse_segment does between segment_bits and finish_report, with the same results.
struct ParseTask {
  const SegmentHeader* header = nullptr;
  BitCursor bits;
  // results
  SegmentData data;  ///< on_device >= 0
  ParseEnd end = ParseEnd::kDone;
  std::uint64_t position = 0;
  std::string message;
};

struct PlacedSegment {
  const SegmentHeader* header = nullptr;
  const SegmentData* data = nullptr;  ///< on the device or here
  std::uint64_t first_block = 0;
};

struct PictureTask {
  int blocks_wide = 0, blocks_high = 0;
  bool fill = false;     ///< there are blocks that no segment describes
  double constant = 0;   ///< DC value of those
  SegmentHeader header;  ///< of the first segment: DWT, depth, transposed or not
  std::int64_t low = 0, high = 0;
  std::vector<PlacedSegment> segments;
};

/// Not thread-safe; parse() and picture() belong to the stream given last.
class SegmentDevice {
 public:
  virtual ~SegmentDevice() = default;
  /// A new stream: `bytes` with kReadPadding readable bytes behind.
  virtual void begin(std::span<const std::byte> bytes) = 0;
  virtual void parse(std::span<ParseTask> tasks) = 0;
  /// Dequantises, transforms back, and turns the picture when the header says so. `out` is the picture as it will be
  /// seen. Adds to the seconds. The pool may help to copy.
  virtual void picture(const PictureTask& task, const MutableVolumeView& out, ThreadPool& pool,
                       StageSeconds& seconds) = 0;
};

/// decode() with a device. Same pictures and reports.
Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool, SegmentDevice& device);

}  // namespace trivelet::ccsds122
