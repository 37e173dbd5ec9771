// Segments in the decoder: SegmentReader reads one at a given byte, SegmentList holds the accepted ones.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "codec/still/ccsds122/ccsds122_device.h"
#include "codec/still/ccsds122/ccsds122_parse.h"

namespace trivelet::ccsds122 {

/// A segment: its report and its content, as far as it was read.
struct FoundSegment {
  SegmentReport report;
  SegmentData data;

  /// Bytes of memory of the segment with its content.
  std::size_t memory() const {
    return sizeof(FoundSegment) +
           SegmentData::memory(report.header.blocks, data.has_planes ? report.header.ac_depth : 0);
  }
};

/// Reads headers and segments at given bytes of a stream. Thread-safe.
class SegmentReader {
 public:
  SegmentReader(std::span<const std::byte> stream, const Kernels& kernels);
  SegmentReader(const SegmentReader&) = delete;
  SegmentReader& operator=(const SegmentReader&) = delete;

  std::uint64_t size() const { return size_; }
  const std::uint8_t* bytes() const { return bytes_; }
  /// The stream, with kReadPadding zeros behind it.
  std::span<const std::byte> stream() const { return {padded_.data(), static_cast<std::size_t>(size_)}; }

  /// Throws BadStream, as read_header does.
  SegmentHeader header_at(std::uint64_t offset, const SegmentHeader& previous) const {
    return read_header({padded_.data() + offset, static_cast<std::size_t>(size_ - offset)}, previous);
  }
  /// Whether the header of the segment number `gap` + 1 after `previous` can be at `offset`; `header` is set to it.
  /// Compares the bits that are constant in a stream.
  bool plausible(std::uint64_t offset, const SegmentHeader& previous, int gap, SegmentHeader& header) const {
    if (offset + 3 > size_) return false;
    if ((bytes_[offset + 2] & 8) != 0 || bytes_[offset] >> 7 != 0) return false;
    return continues(offset, previous, gap, header);
  }
  /// Whether a segment is intact and followed by another one or by the end of the stream.
  bool verified(const FoundSegment& f) const;

  /// Parses the segment at `offset` with an accepted header. `length` is its length, 0 if unknown.
  FoundSegment parse(std::uint64_t offset, const SegmentHeader& header, std::uint32_t length,
                     std::size_t max_memory) const;
  /// The same for a segment whose report has offset and header.
  void parse(FoundSegment& f, std::uint32_t length, std::size_t max_memory) const {
    f.data = parse_segment(bytes_, size_, length, max_memory, kernels_, f.report);
  }
  /// Parses all segments on a device, except missing ones; their reports have offsets and headers.
  void parse_on(SegmentDevice& device, std::span<FoundSegment> found, std::span<const std::uint32_t> lengths) const;

 private:
  bool continues(std::uint64_t offset, const SegmentHeader& previous, int gap, SegmentHeader& header) const;

  const Kernels& kernels_;
  std::uint64_t size_;
  std::vector<std::byte> padded_;
  const std::uint8_t* bytes_;
};

/// Whether a segment has an ordinary size: only the last one of a picture is smaller than the first. Larger ones would
/// make a wrong guess expensive.
bool usual_size(const SegmentHeader& header, const SegmentHeader& first);

/// The largest ordinary number of bit planes: both wavelets with default weights amplify the mean eightfold.
int usual_depth(const SegmentHeader& first);

/// The segments of a picture in order, within the caller's limits.
class SegmentList {
 public:
  /// keep_data: keep contents as well as reports.
  SegmentList(const Limits& limits, std::uint64_t stream_bytes, bool keep_data)
      : limits_(limits), stream_bytes_(stream_bytes), keep_data_(keep_data) {}

  /// Throws Unsupported if a picture of `blocks` blocks exceeds the limits.
  void check_blocks(std::uint64_t blocks) const;
  void add(FoundSegment f);
  /// Adds `count` missing segments after `previous`, not found before byte `offset`.
  void add_missing(const SegmentHeader& previous, int count, std::uint64_t offset);

  std::vector<FoundSegment>& segments() { return segments_; }
  std::vector<SegmentReport> reports() const;
  bool keeps_data() const { return keep_data_; }
  bool has_last() const { return has_last_; }  ///< the picture's last segment was found
  std::uint64_t blocks() const { return blocks_; }
  std::size_t used_memory() const { return used_memory_; }
  std::size_t memory_left() const { return limits_.memory > used_memory_ ? limits_.memory - used_memory_ : 0; }
  std::uint64_t trailing_bytes() const { return end_ < stream_bytes_ ? stream_bytes_ - end_ : 0; }

 private:
  const Limits limits_;
  const std::uint64_t stream_bytes_;
  const bool keep_data_;
  std::vector<FoundSegment> segments_;
  std::uint64_t blocks_ = 0;
  std::uint64_t end_ = 0;  ///< end of the last segment in the stream
  std::size_t used_memory_ = 0;
  bool has_last_ = false;
};

}  // namespace trivelet::ccsds122
