// Reads segments at given bytes and keeps the list of accepted ones (see ccsds122_segments.h).
#include "codec/still/ccsds122/ccsds122_segments.h"

#include <algorithm>
#include <string>
#include <utility>

#include "codec/base/limits.h"

namespace trivelet::ccsds122 {

SegmentReader::SegmentReader(std::span<const std::byte> stream, const Kernels& kernels)
    : kernels_(kernels), size_(stream.size()), padded_(stream.size() + kReadPadding) {
  if (!stream.empty()) std::memcpy(padded_.data(), stream.data(), stream.size());
  bytes_ = reinterpret_cast<const std::uint8_t*>(padded_.data());
}

bool SegmentReader::continues(std::uint64_t offset, const SegmentHeader& previous, int gap, SegmentHeader& h) const {
  try {
    h = header_at(offset, previous);
  } catch (const Error&) {
    return false;
  }
  // Reserved bits are 0 in all parts of a header.
  std::uint64_t at = offset + 3;
  if (h.end && (bytes_[at++] & 0x1F) != 0) return false;
  if (h.part2 && (bytes_[(at += 5) - 1] & 0x0F) != 0) return false;
  if (h.part3 && (bytes_[(at += 3) - 1] & 0x03) != 0) return false;
  if (h.start || h.count != static_cast<std::uint8_t>(previous.count + 1 + gap)) return false;
  return !h.part4 || (h.width == previous.width && h.bits == previous.bits && h.dwt == previous.dwt &&
                      h.transpose == previous.transpose && h.word_bytes == previous.word_bytes);
}

bool SegmentReader::verified(const FoundSegment& f) const {
  if (f.report.state == SegmentState::kDamaged) return false;
  const std::uint64_t next = f.report.offset + f.report.bytes;
  if (f.report.header.end) return f.report.state == SegmentState::kComplete && next == size_;
  if (f.report.state == SegmentState::kCut || next + 3 > size_) return false;
  SegmentHeader h;
  return plausible(next, f.report.header, 0, h);
}

FoundSegment SegmentReader::parse(std::uint64_t offset, const SegmentHeader& header, std::uint32_t length,
                                  std::size_t max_memory) const {
  FoundSegment f;
  f.report.header = header;
  f.report.offset = offset;
  parse(f, length, max_memory);
  return f;
}

void SegmentReader::parse_on(SegmentDevice& device, std::span<FoundSegment> found,
                             std::span<const std::uint32_t> lengths) const {
  std::vector<ParseTask> tasks;
  std::vector<std::size_t> numbers;  // indices into `found`
  for (std::size_t i = 0; i < found.size(); ++i) {
    ParseTask t;
    t.header = &found[i].report.header;
    if (found[i].report.state == SegmentState::kMissing ||
        !segment_bits(bytes_, size_, lengths[i], found[i].report, t.bits))
      continue;
    tasks.push_back(std::move(t));
    numbers.push_back(i);
  }
  device.parse(tasks);
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    FoundSegment& f = found[numbers[k]];
    f.data = std::move(tasks[k].data);
    f.report.message = std::move(tasks[k].message);
    f.report.last_plane = f.data.last_plane;
    finish_report(bytes_, size_, lengths[numbers[k]], tasks[k].end, tasks[k].position, f.report);
  }
}

bool usual_size(const SegmentHeader& header, const SegmentHeader& first) {
  return header.blocks == first.blocks || (header.end && header.blocks < first.blocks);
}

int usual_depth(const SegmentHeader& first) { return first.bits + (first.custom_weights ? first.shifts()[9] : 3); }

void SegmentList::check_blocks(std::uint64_t blocks) const {
  check_limit(blocks, limits_.samples / 64, "samples", "a picture of " + count_of(blocks, "block") + " of 64 samples");
  check_work(limits_, blocks * 64, stream_bytes_);
}

void SegmentList::add(FoundSegment f) {
  f.report.first_block = blocks_;
  blocks_ += f.report.header.blocks;
  check_blocks(blocks_);
  if (!keep_data_) f.data = SegmentData{};
  used_memory_ += keep_data_ ? f.memory() : sizeof(FoundSegment);
  if (f.report.header.end && f.report.state != SegmentState::kMissing) has_last_ = true;
  end_ = std::max(end_, f.report.offset + f.report.bytes);
  segments_.push_back(std::move(f));
}

void SegmentList::add_missing(const SegmentHeader& previous, int count, std::uint64_t offset) {
  SegmentHeader h = previous;
  for (int i = 0; i < count; ++i) {
    ++h.count;
    h.start = h.end = h.part2 = h.part3 = h.part4 = false;
    FoundSegment f;
    f.report.header = h;
    f.report.offset = offset;
    f.report.state = SegmentState::kMissing;
    f.report.message = "not found";
    add(std::move(f));
  }
}

std::vector<SegmentReport> SegmentList::reports() const {
  std::vector<SegmentReport> out;
  for (const FoundSegment& f : segments_) out.push_back(f.report);
  return out;
}

}  // namespace trivelet::ccsds122
