// Segments that are parsed in parallel before it is known where segments begin. Nothing depends on a guess except time:
// it is used only if the walk from the start of the stream arrives at the same byte with the same header.
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

  /// Guesses where segments begin in equal parts of the stream and parses them, one part per thread.
  void parse_parts(const SegmentHeader& first);
  /// Parses a segment at every byte at which one can begin.
  void parse_everywhere(const SegmentHeader& first, SegmentDevice& device);
  /// The segment that was parsed at `offset`, if its header is this one.
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
