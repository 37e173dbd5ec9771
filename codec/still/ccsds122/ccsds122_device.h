// The interface to a device that parses many segments at once and reconstructs the picture
// (gpu/still/ccsds122_decode.h). Search, headers, reports and damage stay on the host.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_bits.h"
#include "codec/still/ccsds122/ccsds122_parse.h"

namespace trivelet::ccsds122 {

/// One segment to parse: the work of parse_segment between segment_bits and finish_report, with the same results.
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
  const SegmentData* data = nullptr;  ///< on the device or on the host
  std::uint64_t first_block = 0;
};

struct PictureTask {
  int blocks_wide = 0, blocks_high = 0;
  bool fill = false;     ///< some blocks are in no segment
  double constant = 0;   ///< DC value of those blocks
  SegmentHeader header;  ///< of the first segment: DWT, depth, transposition
  std::int64_t low = 0, high = 0;
  std::vector<PlacedSegment> segments;
};

/// Not thread-safe. parse() and picture() refer to the stream of the last begin().
class SegmentDevice {
 public:
  virtual ~SegmentDevice() = default;
  /// Begins a stream: `bytes` with kReadPadding readable bytes behind.
  virtual void begin(std::span<const std::byte> bytes) = 0;
  virtual void parse(std::span<ParseTask> tasks) = 0;
  /// Dequantises, applies the inverse transform, and transposes if the header says so. `out` is the final picture. Adds
  /// to the stage seconds. The pool may help to copy.
  virtual void picture(const PictureTask& task, const MutableVolumeView& out, ThreadPool& pool,
                       StageSeconds& seconds) = 0;
};

/// decode() with a device; pictures and reports are the same.
Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool, SegmentDevice& device);

}  // namespace trivelet::ccsds122
