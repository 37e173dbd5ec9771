// Parses segments in parallel at guessed positions. A guess affects only time: a segment is used only if the walk from
// the start of the stream reaches the same byte with the same header.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "codec/still/ccsds122/ccsds122_segments.h"

namespace trivelet::ccsds122 {

class SegmentLookahead {
 public:
  SegmentLookahead(const SegmentReader& reader, const Limits& limits, ThreadPool& pool, bool keep_data)
      : reader_(reader), most_memory_(limits.memory), pool_(pool), keep_data_(keep_data) {}

  /// Divides the stream into equal parts, one per thread, guesses a segment start in each, and parses from there.
  void parse_parts(const SegmentHeader& first);
  /// Parses a segment at every position where one can begin.
  void parse_everywhere(const SegmentHeader& first, SegmentDevice& device);
  /// The segment parsed at `offset` if its header equals this one.
  std::optional<FoundSegment> take(std::uint64_t offset, const SegmentHeader& header);

 private:
  bool find_first(const SegmentHeader& first, std::uint64_t from, std::uint64_t to, FoundSegment& out) const;
  void parse_part(const SegmentHeader& first, std::uint64_t from, std::uint64_t to, std::size_t memory,
                  std::vector<FoundSegment>& out) const;
  void find_starts(const SegmentHeader& first, std::uint64_t from, std::uint64_t to,
                   std::vector<FoundSegment>& out) const;

  const SegmentReader& reader_;
  const std::size_t most_memory_;
  ThreadPool& pool_;
  const bool keep_data_;
  std::unordered_map<std::uint64_t, FoundSegment> segments_;  ///< by offset
};

}  // namespace trivelet::ccsds122
