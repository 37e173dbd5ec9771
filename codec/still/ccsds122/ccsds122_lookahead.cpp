// Finds plausible segment starts and parses them in parallel (see ccsds122_lookahead.h).
#include "codec/still/ccsds122/ccsds122_lookahead.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace trivelet::ccsds122 {

namespace {

constexpr std::uint64_t kLeastBytes = 1 << 15;  // smaller streams do not repay a second thread
constexpr int kMostAttempts = 200;              // attempts to parse a first segment in a part

/// The header bytes that are constant in a stream: the first half of part 4 holds type, depth, width, transposition and
/// word length.
using UnchangingBytes = std::array<std::uint8_t, 4>;
UnchangingBytes unchanging_bytes(const SegmentHeader& first) {
  const std::vector<std::byte> bytes = write_header(first);
  UnchangingBytes out;
  std::memcpy(out.data(), bytes.data() + bytes.size() - 8, out.size());
  return out;
}

/// Rejects most positions cheaply, without exceptions. Bytes beyond the stream are padding.
bool can_be_header(const std::uint8_t* at, const SegmentHeader& first, int most_depth,
                   const UnchangingBytes& unchanging) {
  const unsigned v = static_cast<unsigned>(at[0] << 16 | at[1] << 8 | at[2]);
  const int dc_depth = v >> 9 & 31, ac_depth = v >> 4 & 31;
  if (v >> 23 != 0 || (v & 8) != 0 || dc_depth == 0 || dc_depth > most_depth || ac_depth > most_depth) return false;
  const bool end = v >> 22 & 1;
  const std::uint8_t* next = at + (end ? 4 : 3);
  if (v & 4) next += 5;
  if (v & 2) {
    const unsigned blocks = static_cast<unsigned>(next[0] << 12 | next[1] << 4 | next[2] >> 4);
    if (end ? blocks > first.blocks : blocks != (first.blocks & (kMaxSegmentBlocks - 1))) return false;
    next += 3;
  }
  if (v & 1) {
    bool same = ((next[0] ^ unchanging[0]) & 0xEF) == 0;  // all bits but SignedPixels
    for (std::size_t i = 1; i < unchanging.size(); ++i) same = same && next[i] == unchanging[i];
    if (!same) return false;
  }
  return true;
}

/// A header that the one at `at` can follow: its number is one less.
SegmentHeader header_before(const std::uint8_t* at, const SegmentHeader& first) {
  SegmentHeader before = first;
  before.count = static_cast<std::uint8_t>((at[0] << 2 | at[1] >> 6) - 1);
  return before;
}

}  // namespace

std::optional<FoundSegment> SegmentLookahead::take(std::uint64_t offset, const SegmentHeader& header) {
  const auto known = segments_.find(offset);
  if (known == segments_.end() || known->second.report.header != header) return std::nullopt;
  FoundSegment f = std::move(known->second);
  segments_.erase(known);
  return f;
}

void SegmentLookahead::parse_parts(const SegmentHeader& first) {
  const int parts = pool_.threads();
  if (parts == 1 || reader_.size() < kLeastBytes) return;
  std::vector<std::vector<FoundSegment>> found(static_cast<std::size_t>(parts));
  pool_.parallel_for(parts, [&](int part, int) {
    const std::uint64_t n = static_cast<std::uint64_t>(parts), i = static_cast<std::uint64_t>(part);
    try {
      parse_part(first, reader_.size() * i / n, reader_.size() * (i + 1) / n, most_memory_ / (2 * n),
                 found[static_cast<std::size_t>(part)]);
    } catch (const Error&) {  // if the header is real, the walk meets the error again
    }
  });
  for (std::vector<FoundSegment>& part : found)
    for (FoundSegment& f : part) segments_.emplace(f.report.offset, std::move(f));
}

/// Finds the first segment that begins in [from, to).
bool SegmentLookahead::find_first(const SegmentHeader& first, std::uint64_t from, std::uint64_t to,
                                  FoundSegment& out) const {
  const int usual = usual_depth(first);
  int attempts = 0;
  for (;; ++from) {
    if (from + 3 > reader_.size() || from >= to) return false;
    SegmentHeader h;
    if (!reader_.plausible(from, header_before(reader_.bytes() + from, first), 0, h) || !usual_size(h, first) ||
        h.blocks > 8 * (reader_.size() - from) || h.dc_depth < std::min(usual, first.dc_depth) - 3 ||
        h.dc_depth > usual + 1 || h.ac_depth < 2 || h.ac_depth > usual)
      continue;
    if (++attempts > kMostAttempts) return false;
    out = reader_.parse(from, h, 0, most_memory_);
    if (reader_.verified(out)) return true;
  }
}

/// Parses the segments that begin in [from, to), up to a limit of memory.
void SegmentLookahead::parse_part(const SegmentHeader& first, std::uint64_t from, std::uint64_t to, std::size_t memory,
                                  std::vector<FoundSegment>& out) const {
  FoundSegment f;
  if (from == 0)
    f = reader_.parse(0, first, 0, most_memory_);
  else if (!find_first(first, from, to, f))
    return;
  for (std::size_t used = 0;;) {
    const SegmentHeader h = f.report.header;
    const std::uint64_t next = f.report.offset + f.report.bytes;
    const bool last = f.report.state != SegmentState::kComplete || h.end || next >= to;
    used += f.memory();
    if (!keep_data_) f.data = SegmentData{};
    out.push_back(std::move(f));
    SegmentHeader following;
    if (last || used > memory || !reader_.plausible(next, h, 0, following)) return;
    f = reader_.parse(next, following, 0, most_memory_);
  }
}

/// Lists the positions in [from, to) where a segment may begin.
void SegmentLookahead::find_starts(const SegmentHeader& first, std::uint64_t from, std::uint64_t to,
                                   std::vector<FoundSegment>& out) const {
  const int most_depth = usual_depth(first) + 1;
  const UnchangingBytes unchanging = unchanging_bytes(first);
  for (std::uint64_t at = std::max<std::uint64_t>(from, 1); at < to && at + 3 <= reader_.size(); ++at) {
    const std::uint8_t* bytes = reader_.bytes() + at;
    if (!can_be_header(bytes, first, most_depth, unchanging)) continue;
    SegmentHeader h;
    if (!reader_.plausible(at, header_before(bytes, first), 0, h) || !usual_size(h, first) ||
        h.blocks > 8 * (reader_.size() - at))
      continue;
    FoundSegment f;
    f.report.header = h;
    f.report.offset = at;
    out.push_back(std::move(f));
  }
}

void SegmentLookahead::parse_everywhere(const SegmentHeader& first, SegmentDevice& device) {
  constexpr std::uint64_t kPart = 1 << 16;
  const std::uint64_t parts = (reader_.size() + kPart - 1) / kPart;
  std::vector<std::vector<FoundSegment>> found(static_cast<std::size_t>(parts));
  pool_.parallel_for(static_cast<int>(parts), [&](int part, int) {
    const std::uint64_t from = kPart * static_cast<std::uint64_t>(part);
    find_starts(first, from, from + kPart, found[static_cast<std::size_t>(part)]);
  });
  std::vector<FoundSegment> all(1);
  all[0].report.header = first;
  std::size_t memory = SegmentData::memory(first.blocks, first.ac_depth);
  if (memory > most_memory_ / 2) return;
  for (std::vector<FoundSegment>& part : found)
    for (FoundSegment& f : part) {
      memory += sizeof(FoundSegment) + SegmentData::memory(f.report.header.blocks, f.report.header.ac_depth);
      if (memory > most_memory_ / 2) break;
      all.push_back(std::move(f));
    }
  reader_.parse_on(device, all, std::vector<std::uint32_t>(all.size(), 0));
  for (FoundSegment& f : all) {
    const std::uint64_t offset = f.report.offset;
    segments_.emplace(offset, std::move(f));
  }
}

}  // namespace trivelet::ccsds122
