// The decoder. It finds the segments, by parsing one after the other or from given lengths, and then makes the picture.
// If a segment is damaged or no header follows it, the next intact segment is searched for; the gap is reported and
// filled.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122_device.h"
#include "codec/still/ccsds122/ccsds122_lookahead.h"
#include "codec/still/ccsds122/ccsds122_picture.h"
#include "codec/still/ccsds122/ccsds122_segments.h"
#include "codec/threads/stopwatch.h"

namespace trivelet::ccsds122 {
namespace {

constexpr int kMostGap = 8;  // the most missing segments that a search bridges

/// Goes from segment to segment: a segment's start is known only after the one before has been parsed.
class SegmentWalk {
 public:
  SegmentWalk(const SegmentReader& reader, SegmentLookahead& lookahead, const Limits& limits, SegmentList& list)
      : reader_(reader), lookahead_(lookahead), most_blocks_(limits.samples / 64), list_(list) {}

  void run(const SegmentHeader& first) {
    FoundSegment current = parse(0, first);
    for (;;) {
      const SegmentHeader h = current.report.header;
      const bool damaged = current.report.state == SegmentState::kDamaged;
      const std::uint64_t next = current.report.offset + current.report.bytes;
      if (!damaged && (h.end || next >= reader_.size())) {
        list_.add(std::move(current));
        return;
      }
      SegmentHeader following;
      if (!damaged && reader_.plausible(next, h, 0, following)) {
        list_.add(std::move(current));
        current = parse(next, following);
        continue;
      }
      if (!damaged) {
        current.report.state = SegmentState::kDamaged;
        current.report.message = "no header follows it";
      }
      std::optional<FoundSegment> found = resume(std::move(current));
      if (!found) return;
      current = std::move(*found);
    }
  }

 private:
  /// Parses a segment with an accepted header, or takes it from the lookahead.
  FoundSegment parse(std::uint64_t offset, const SegmentHeader& h) {
    list_.check_blocks(list_.blocks() + h.blocks);
    if (std::optional<FoundSegment> known = lookahead_.take(offset, h)) return std::move(*known);
    return reader_.parse(offset, h, 0, list_.memory_left());
  }

  /// Adds a damaged segment and the missing ones up to the next intact one, which it returns. It looks for that at the
  /// byte limit first, then everywhere.
  std::optional<FoundSegment> resume(FoundSegment damaged) {
    const SegmentHeader h = damaged.report.header;
    const std::uint64_t offset = damaged.report.offset;
    const std::uint64_t limit = offset + (h.byte_limit ? h.byte_limit : kMaxSegmentBytes);
    FoundSegment found;
    SegmentHeader following;
    int gap = 0;
    const bool at_limit = limit + 3 <= reader_.size() && reader_.plausible(limit, h, 0, following);
    if (at_limit) found = parse(limit, following);
    const bool resumed = (at_limit && reader_.verified(found)) || search(offset + 3, h, found, gap);
    if (at_limit && resumed && found.report.offset == limit) gap = 0;
    damaged.report.bytes = static_cast<std::uint32_t>(
        std::min<std::uint64_t>((resumed ? found.report.offset : reader_.size()) - offset, kMaxSegmentBytes));
    list_.add(std::move(damaged));
    if (!resumed) return std::nullopt;
    list_.add_missing(h, gap, found.report.offset);
    return found;
  }

  /// Searches for the next intact segment from byte `from` on.
  bool search(std::uint64_t from, const SegmentHeader& previous, FoundSegment& out, int& gap) {
    const std::uint64_t size = reader_.size();
    for (std::uint64_t at = from; at + 3 <= size; ++at) {
      // SegmentCount is in the first two bytes, a cheap test.
      const std::uint8_t* bytes = reader_.bytes() + at;
      const std::uint8_t count = static_cast<std::uint8_t>(bytes[0] << 2 | bytes[1] >> 6);
      gap = static_cast<std::uint8_t>(count - previous.count - 1);
      SegmentHeader h;
      if (gap > kMostGap || !reader_.plausible(at, previous, gap, h)) continue;
      // A block takes at least one bit.
      if (h.blocks > 8 * (size - at) || list_.blocks() + h.blocks > most_blocks_) continue;
      searched_blocks_ += h.blocks;
      if (searched_blocks_ > 16 * size + 4096) return false;  // bounds the work by the stream's size
      out = parse(at, h);
      if (reader_.verified(out)) return true;
    }
    return false;
  }

  const SegmentReader& reader_;
  SegmentLookahead& lookahead_;
  const std::uint64_t most_blocks_;
  SegmentList& list_;
  std::uint64_t searched_blocks_ = 0;
};

/// Reads the header of segment `i` of `count`. False if it cannot follow `previous`.
bool read_indexed_header(const SegmentReader& reader, const FoundSegment& f, std::size_t i, std::size_t count,
                         const SegmentHeader& previous, SegmentHeader& h) {
  if (f.report.bytes < 3) return false;
  try {
    if (i == 0) {
      h = reader.header_at(0, {});
      return true;
    }
    h = reader.header_at(f.report.offset, previous);
  } catch (const Error&) {
    return false;
  }
  return !h.start && h.count == static_cast<std::uint8_t>(previous.count + 1) && h.end == (i + 1 == count) &&
         (!h.part4 || (h.width == previous.width && h.bits == previous.bits && h.dwt == previous.dwt));
}

/// The segments of these lengths, with headers but without contents.
std::vector<FoundSegment> indexed_segments(const SegmentReader& reader, std::span<const std::uint32_t> lengths) {
  std::vector<FoundSegment> all(lengths.size());
  SegmentHeader in_force;
  std::uint64_t offset = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    require(lengths[i] > 0 && lengths[i] <= kMaxSegmentBytes, ErrorKind::kBadArgument,
            "segment length " + std::to_string(lengths[i]) + " in the index is outside 1..2^27");
    SegmentReport& r = all[i].report;
    r.offset = offset;
    if (offset < reader.size())
      r.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(lengths[i], reader.size() - offset));
    SegmentHeader h;
    if (!read_indexed_header(reader, all[i], i, all.size(), in_force, h)) {
      h = in_force;
      ++h.count;
      h.start = h.end = h.part2 = h.part3 = h.part4 = false;
      r.state = SegmentState::kMissing;
      r.message = r.bytes == 0 ? "the stream ends before it" : "its header is damaged";
    }
    r.header = in_force = h;
    offset += lengths[i];
  }
  require(offset >= reader.size() || lengths.empty(), ErrorKind::kBadArgument,
          "the index covers " + count_of(offset, "byte") + " of a stream of " + std::to_string(reader.size()));
  return all;
}

void find_by_lengths(const SegmentReader& reader, const DecodeParams& params, ThreadPool& pool, SegmentDevice* device,
                     SegmentList& list) {
  std::vector<FoundSegment> all = indexed_segments(reader, params.segment_bytes);
  // The headers give samples and memory before anything is parsed.
  std::uint64_t blocks = 0;
  for (const FoundSegment& f : all) blocks += f.report.header.blocks;
  list.check_blocks(blocks);
  std::size_t need = 0;
  if (list.keeps_data())
    for (const FoundSegment& f : all) need += SegmentData::memory(f.report.header.blocks, f.report.header.ac_depth);
  check_memory(params.limits, need, "a segment");
  std::vector<std::uint32_t> lengths(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)  // the length of a truncated segment is unknown
    lengths[i] = all[i].report.bytes == params.segment_bytes[i] ? all[i].report.bytes : 0;
  if (device != nullptr)
    reader.parse_on(*device, all, lengths);
  else
    pool.parallel_for(static_cast<int>(all.size()), [&](int i, int) {
      FoundSegment& f = all[static_cast<std::size_t>(i)];
      if (f.report.state == SegmentState::kMissing) return;
      reader.parse(f, lengths[static_cast<std::size_t>(i)], params.limits.memory);
      if (!list.keeps_data()) f.data = SegmentData{};
    });
  for (FoundSegment& f : all) list.add(std::move(f));
}

void find_by_parsing(const SegmentReader& reader, const SegmentHeader& first, const DecodeParams& params,
                     ThreadPool& pool, SegmentDevice* device, SegmentList& list) {
  SegmentLookahead lookahead(reader, params.limits, pool, list.keeps_data());
  if (device != nullptr)
    lookahead.parse_everywhere(first, *device);
  else
    lookahead.parse_parts(first);
  SegmentWalk(reader, lookahead, params.limits, list).run(first);
}

SegmentList find_segments(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool,
                          bool keep_data, SegmentDevice* device) {
  const SegmentReader reader(stream, kernels(params.simd));
  if (device != nullptr) device->begin(reader.stream());
  const SegmentHeader first = reader.header_at(0, {});
  require(first.start && first.part3 && first.part4, ErrorKind::kBadStream,
          "not a CCSDS 122.0 stream: its first header lacks the start flag or parts 3 and 4");
  SegmentList list(params.limits, stream.size(), keep_data);
  if (params.segment_bytes.empty())
    find_by_parsing(reader, first, params, pool, device, list);
  else
    find_by_lengths(reader, params, pool, device, list);
  if (params.keep_damaged) return list;
  for (const FoundSegment& f : list.segments())
    require(f.report.state == SegmentState::kComplete, ErrorKind::kBadStream,
            "segment at byte " + std::to_string(f.report.offset) + ": " + f.report.message);
  require(list.has_last(), ErrorKind::kBadStream, "the stream ends before its last segment");
  return list;
}

Decoded decode_with(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool,
                    SegmentDevice* device) {
  const Stopwatch watch;
  SegmentList list = find_segments(stream, params, pool, true, device);
  const double parsing = watch.seconds();
  Decoded out = assemble_picture(list, params.limits, kernels(params.simd), pool, device);
  out.seconds.coder += parsing;
  return out;
}

}  // namespace

bool Decoded::intact() const {
  for (const SegmentReport& s : segments)
    if (s.state != SegmentState::kComplete) return false;
  return ended;
}

VolumeView Decoded::view() const {
  VolumeView v;
  v.data = samples.data();
  v.shape = {1, height, width};
  v.bytes_per_sample = bytes_per_sample;
  v.is_signed = is_signed;
  v.row_stride = static_cast<std::ptrdiff_t>(width) * bytes_per_sample;
  return v;
}

Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool) {
  return decode_with(stream, params, pool, nullptr);
}

Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool, SegmentDevice& device) {
  return decode_with(stream, params, pool, &device);
}

std::vector<SegmentReport> inspect(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool) {
  return find_segments(stream, params, pool, false, nullptr).reports();
}

}  // namespace trivelet::ccsds122
