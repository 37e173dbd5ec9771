// The decoder: finds the segments (by parsing one after the other, or by given lengths), then turns planes into
// coefficients and transforms back. Where a segment contradicts itself or no header follows it, the next intact segment
// is searched for; what lies between is reported and filled.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <unordered_map>

#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122_device.h"
#include "codec/still/ccsds122/ccsds122_dwt.h"
#include "codec/still/ccsds122/ccsds122_parse.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "codec/threads/stopwatch.h"

namespace trivelet::ccsds122 {
namespace {

constexpr int kMaxGap = 8;  // lost segments in a row that a search looks across

constexpr std::uint64_t kAheadBytes = 1 << 15;  // smaller streams are not worth a second thread
constexpr int kAheadAttempts = 200;

struct Found {
  SegmentReport report;
  SegmentData data;
};

class Decoder {
 public:
  Decoder(std::span<const std::byte> stream, const DecodeParams& p, ThreadPool& pool, bool keep_data,
          SegmentDevice* device = nullptr)
      : p_(p), pool_(pool), k_(kernels(p.simd)), size_(stream.size()), keep_data_(keep_data), device_(device) {
    padded_.resize(stream.size() + kReadPadding);
    if (!stream.empty()) std::memcpy(padded_.data(), stream.data(), stream.size());
    std::memset(padded_.data() + stream.size(), 0, kReadPadding);
    bytes_ = reinterpret_cast<const std::uint8_t*>(padded_.data());
    if (device_) device_->begin({padded_.data(), stream.size()});
  }

  void find_segments() {
    SegmentHeader first = header_at(0, {});
    require(first.start && first.part3 && first.part4, ErrorKind::kBadStream,
            "not a CCSDS 122.0 stream: its first header lacks the start flag or parts 3 and 4");
    if (p_.segment_bytes.empty()) {
      device_ ? try_everywhere(first) : parse_ahead(first);
      one_after_the_other(first);
      ahead_.clear();
    } else {
      by_lengths();
    }
    if (!p_.keep_damaged) {
      for (const Found& f : found_)
        require(f.report.state == SegmentState::kComplete, ErrorKind::kBadStream,
                "segment at byte " + std::to_string(f.report.offset) + ": " + f.report.message);
      require(ended_, ErrorKind::kBadStream, "the stream ends before its last segment");
    }
  }

  std::vector<SegmentReport> reports() const {
    std::vector<SegmentReport> out;
    for (const Found& f : found_) out.push_back(f.report);
    return out;
  }

  Decoded picture() {
    Decoded out;
    const SegmentHeader& h = found_.front().report.header;
    const int wide = (h.width + 7) / 8;
    const std::uint64_t rows = (blocks_ + static_cast<std::uint64_t>(wide) - 1) / static_cast<std::uint64_t>(wide);
    require(rows <= 1U << 27, ErrorKind::kUnsupported, "picture of more than 2^30 rows");
    const int pad = ended_ ? found_.back().report.header.pad_rows : 0;
    // The transform needs three block rows; shorter remains of a stream are filled up.
    const int high = static_cast<int>(std::max<std::uint64_t>(rows, 3));
    const int height = static_cast<int>(rows) * 8 - pad;
    const std::uint64_t samples = static_cast<std::uint64_t>(wide) * static_cast<std::uint64_t>(high) * 64;
    check_limit(samples, p_.limits.samples, "samples", "a picture of " + std::to_string(samples) + " samples");
    check_memory(p_.limits, samples * 10 + used_memory_, "the picture");

    out.bits = h.bits;
    out.is_signed = h.is_signed;
    out.bytes_per_sample = h.bits <= 8 ? 1 : h.bits <= 16 ? 2 : 4;
    out.width = h.width;
    out.height = height;
    const std::size_t sample = static_cast<std::size_t>(out.bytes_per_sample);
    out.samples.resize(
        checked_mul(checked_mul(static_cast<std::size_t>(h.width), static_cast<std::size_t>(height)), sample));
    if (device_ && h.transpose) std::swap(out.width, out.height);
    MutableVolumeView view;
    view.data = out.samples.data();
    view.shape = {1, out.height, out.width};
    view.bytes_per_sample = out.bytes_per_sample;
    view.is_signed = h.is_signed;
    view.row_stride = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(out.width) * sample);
    const std::int64_t low = h.is_signed ? -(std::int64_t{1} << (h.bits - 1)) : 0;
    const std::int64_t top = (std::int64_t{1} << (h.is_signed ? h.bits - 1 : h.bits)) - 1;
    const std::uint64_t all_blocks = static_cast<std::uint64_t>(wide) * static_cast<std::uint64_t>(high);
    const bool whole = find_constant(h, all_blocks);
    if (device_) {
      PictureTask task{wide, high, !whole, constant_, h, low, top, {}};
      for (const Found& f : found_) task.segments.push_back({&f.report.header, &f.data, f.report.first_block});
      device_->picture(task, view, pool_, out.seconds);
    } else {
      Stopwatch watch;
      const Subbands bands(wide, high);
      if (!whole) fill_gaps(bands.view(), h, all_blocks);
      pool_.parallel_for(static_cast<int>(found_.size()), [&](int i, int) {
        Found& f = found_[static_cast<std::size_t>(i)];
        place(f, bands.view());
        f.data = SegmentData{};
      });
      out.seconds.coder = watch.seconds();
      watch = {};
      inverse_dwt(bands, h.dwt, h.bits, low, top, view, k_, pool_);
      if (h.transpose) transpose(out);
      out.seconds.dwt = watch.seconds();
    }
    out.ended = ended_;
    out.trailing_bytes = size_ - std::min<std::uint64_t>(size_, end_);
    out.segments = reports();
    return out;
  }

 private:
  // ---- finding

  SegmentHeader header_at(std::uint64_t offset, const SegmentHeader& previous) const {
    return read_header({padded_.data() + offset, size_ - offset}, previous);
  }

  /// Parses the segment at `offset` after its header has been accepted, unless that has been done ahead.
  Found parse(std::uint64_t offset, const SegmentHeader& h, std::uint32_t length) {
    check_samples(blocks_ + h.blocks);
    const auto known = ahead_.find(offset);
    if (known != ahead_.end() && known->second.report.header == h) {
      Found f = std::move(known->second);
      ahead_.erase(known);
      return f;
    }
    return parse_now(offset, h, length);
  }
  Found parse_now(std::uint64_t offset, const SegmentHeader& h, std::uint32_t length) const {
    Found f;
    f.report.header = h;
    f.report.offset = offset;
    const std::size_t left = p_.limits.memory > used_memory_ ? p_.limits.memory - used_memory_ : 0;
    f.data = parse_segment(bytes_, size_, length, left, k_, f.report);
    return f;
  }

  void check_samples(std::uint64_t blocks) const {
    check_limit(blocks, p_.limits.samples / 64, "samples",
                "a picture of " + std::to_string(blocks) + " blocks of 64 samples");
    check_work(p_.limits, blocks * 64, size_);
  }

  void keep(Found f) {
    f.report.first_block = blocks_;
    blocks_ += f.report.header.blocks;
    check_samples(blocks_);
    if (!keep_data_) f.data = SegmentData{};
    used_memory_ += sizeof(Found) + (keep_data_ ? SegmentData::memory(f.report.header.blocks,
                                                                      f.data.has_planes ? f.report.header.ac_depth : 0)
                                                : 0);
    if (f.report.header.end && f.report.state != SegmentState::kMissing) ended_ = true;
    end_ = std::max(end_, f.report.offset + f.report.bytes);
    found_.push_back(std::move(f));
  }

  /// Could this be the header of segment number `expected` + gap? The bits that never change are compared.
  bool plausible(std::uint64_t offset, const SegmentHeader& previous, int gap, SegmentHeader& h) const {
    if (offset + 3 > size_) return false;
    if ((bytes_[offset + 2] & 8) != 0 || bytes_[offset] >> 7 != 0) return false;
    try {
      h = header_at(offset, previous);
    } catch (const Error&) {
      return false;
    }
    // Reserved bits are 0 in every part.
    std::uint64_t at = offset + 3;
    if (h.end && (bytes_[at++] & 0x1F) != 0) return false;
    if (h.part2 && (bytes_[(at += 5) - 1] & 0x0F) != 0) return false;
    if (h.part3 && (bytes_[(at += 3) - 1] & 0x03) != 0) return false;
    if (h.start || h.count != static_cast<std::uint8_t>(previous.count + 1 + gap)) return false;
    return !h.part4 || (h.width == previous.width && h.bits == previous.bits && h.dwt == previous.dwt &&
                        h.transpose == previous.transpose && h.word_bytes == previous.word_bytes);
  }

  /// Only the last segment of a picture is ordinarily smaller. A guess that is larger would cost time out of
  /// proportion.
  static bool usual_size(const SegmentHeader& h, const SegmentHeader& first) {
    return h.blocks == first.blocks || (h.end && h.blocks < first.blocks);
  }

  /// Does an intact segment lie here, followed by the next one or the end?
  bool verified(const Found& f) const {
    if (f.report.state == SegmentState::kDamaged) return false;
    const std::uint64_t next = f.report.offset + f.report.bytes;
    if (f.report.header.end) return f.report.state == SegmentState::kComplete && next == size_;
    if (f.report.state == SegmentState::kCut || next + 3 > size_) return false;
    SegmentHeader h;
    return plausible(next, f.report.header, 0, h);
  }

  /// Looks for the next intact segment from byte `from` on.
  bool search(std::uint64_t from, const SegmentHeader& previous, Found& out, int& gap) {
    for (std::uint64_t at = from; at + 3 <= size_; ++at) {
      // SegmentCount from the first two bytes, before anything costs time.
      const std::uint8_t count = static_cast<std::uint8_t>(bytes_[at] << 2 | bytes_[at + 1] >> 6);
      gap = static_cast<std::uint8_t>(count - previous.count - 1);
      SegmentHeader h;
      if (gap > kMaxGap || !plausible(at, previous, gap, h)) continue;
      // A block has a bit at least.
      if (h.blocks > 8 * (size_ - at) || blocks_ + h.blocks > p_.limits.samples / 64) continue;
      searched_ += h.blocks;
      if (searched_ > 16 * size_ + 4096) return false;  // work stays in proportion to the stream
      out = parse(at, h, 0);
      if (verified(out)) return true;
    }
    return false;
  }

  /// Guesses where segments begin in equal parts of the stream and parses them, one part per thread. A guess is used
  /// only when the walk from the start arrives at the same byte with the same header, so nothing depends on it but
  /// time.
  void parse_ahead(const SegmentHeader& first) {
    const int runs = pool_.threads();
    if (runs == 1 || size_ < kAheadBytes) return;
    std::vector<std::vector<Found>> found(static_cast<std::size_t>(runs));
    pool_.parallel_for(runs, [&](int r, int) {
      const std::uint64_t n = static_cast<std::uint64_t>(runs), i = static_cast<std::uint64_t>(r);
      try {
        run_ahead(first, size_ * i / n, size_ * (i + 1) / n, p_.limits.memory / (2 * n),
                  found[static_cast<std::size_t>(r)]);
      } catch (const Error&) {  // the walk will meet it again, if it is real
      }
    });
    for (std::vector<Found>& run : found)
      for (Found& f : run) ahead_.emplace(f.report.offset, std::move(f));
  }

  void run_ahead(const SegmentHeader& first, std::uint64_t from, std::uint64_t to, std::size_t memory,
                 std::vector<Found>& out) const {
    Found f;
    if (from == 0) {
      f = parse_now(0, first, 0);
    } else {
      // Depths of an ordinary segment: both wavelets with their default weights enlarge the mean eightfold.
      const int usual = first.bits + (first.custom_weights ? first.shifts()[9] : 3);
      int attempts = 0;
      for (bool good = false; !good; ++from) {
        if (from + 3 > size_ || from >= to) return;
        SegmentHeader before = first, h;
        before.count = static_cast<std::uint8_t>((bytes_[from] << 2 | bytes_[from + 1] >> 6) - 1);
        if (!plausible(from, before, 0, h) || !usual_size(h, first) || h.blocks > 8 * (size_ - from) ||
            h.dc_depth < std::min(usual, first.dc_depth) - 3 || h.dc_depth > usual + 1 || h.ac_depth < 2 ||
            h.ac_depth > usual)
          continue;
        if (++attempts > kAheadAttempts) return;
        f = parse_now(from, h, 0);
        good = verified(f);
      }
    }
    for (std::size_t used = 0;;) {
      const SegmentHeader h = f.report.header;
      const std::uint64_t next = f.report.offset + f.report.bytes;
      const bool last = f.report.state != SegmentState::kComplete || h.end || next >= to;
      used += sizeof(Found) + SegmentData::memory(h.blocks, f.data.has_planes ? h.ac_depth : 0);
      if (!keep_data_) f.data = SegmentData{};
      out.push_back(std::move(f));
      SegmentHeader following;
      if (last || used > memory || !plausible(next, h, 0, following)) return;
      f = parse_now(next, following, 0);
    }
  }

  // ---- with a device

  /// Parses all segments but the missing ones; `lengths` where known, else 0.
  void parse_on_device(std::vector<Found>& found, const std::vector<std::uint32_t>& lengths) const {
    std::vector<ParseTask> tasks;
    std::vector<std::size_t> of;
    for (std::size_t i = 0; i < found.size(); ++i) {
      ParseTask t;
      t.header = &found[i].report.header;
      if (found[i].report.state == SegmentState::kMissing ||
          !segment_bits(bytes_, size_, lengths[i], found[i].report, t.bits))
        continue;
      tasks.push_back(std::move(t));
      of.push_back(i);
    }
    device_->parse(tasks);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      Found& f = found[of[k]];
      f.data = std::move(tasks[k].data);
      f.report.message = std::move(tasks[k].message);
      f.report.last_plane = f.data.last_plane;
      finish_report(bytes_, size_, lengths[of[k]], tasks[k].end, tasks[k].position, f.report);
    }
  }

  /// Parses a segment at every byte that can be the start of one. The walk then goes from one to the next; what it
  /// does not find among them it parses itself.
  void try_everywhere(const SegmentHeader& first) {
    const int usual = first.bits + (first.custom_weights ? first.shifts()[9] : 3);  // see run_ahead
    constexpr std::uint64_t kPart = 1 << 16;
    // The first half of part 4: type, depth, width, transposed or not, word length.
    const std::vector<std::byte> head = write_header(first);
    std::uint8_t unchanging[4];
    std::memcpy(unchanging, head.data() + head.size() - 8, sizeof unchanging);
    const std::uint64_t parts = (size_ + kPart - 1) / kPart;
    std::vector<std::vector<Found>> found(static_cast<std::size_t>(parts));
    pool_.parallel_for(static_cast<int>(parts), [&](int part, int) {
      const std::uint64_t from = kPart * static_cast<std::uint64_t>(part);
      for (std::uint64_t at = std::max<std::uint64_t>(from, 1); at < from + kPart && at + 3 <= size_; ++at) {
        const unsigned v = static_cast<unsigned>(bytes_[at] << 16 | bytes_[at + 1] << 8 | bytes_[at + 2]);
        const int dc_depth = v >> 9 & 31, ac_depth = v >> 4 & 31;
        if (v >> 23 != 0 || (v & 8) != 0 || dc_depth == 0 || dc_depth > usual + 1 || ac_depth > usual + 1) continue;
        // Most places fall here, cheaply and without an exception; what is read beyond the stream is padding.
        const bool end = v >> 22 & 1;
        std::uint64_t next = at + (end ? 4 : 3);
        if (v & 4) next += 5;
        if (v & 2) {
          const unsigned blocks =
              static_cast<unsigned>(bytes_[next] << 12 | bytes_[next + 1] << 4 | bytes_[next + 2] >> 4);
          if (end ? blocks > first.blocks : blocks != (first.blocks & (kMaxSegmentBlocks - 1))) continue;
          next += 3;
        }
        if (v & 1) {
          bool same = ((bytes_[next] ^ unchanging[0]) & 0xEF) == 0;  // all but SignedPixels
          for (std::size_t i = 1; i < 4; ++i) same = same && bytes_[next + i] == unchanging[i];
          if (!same) continue;
        }
        SegmentHeader before = first, h;
        before.count = static_cast<std::uint8_t>((v >> 14) - 1);
        if (!plausible(at, before, 0, h) || !usual_size(h, first) || h.blocks > 8 * (size_ - at)) continue;
        Found f;
        f.report.header = h;
        f.report.offset = at;
        found[static_cast<std::size_t>(part)].push_back(std::move(f));
      }
    });
    std::vector<Found> all(1);
    all[0].report.header = first;
    std::size_t memory = SegmentData::memory(first.blocks, first.ac_depth);
    if (memory > p_.limits.memory / 2) return;
    for (std::vector<Found>& part : found)
      for (Found& f : part) {
        memory += sizeof(Found) + SegmentData::memory(f.report.header.blocks, f.report.header.ac_depth);
        if (memory > p_.limits.memory / 2) break;
        all.push_back(std::move(f));
      }
    parse_on_device(all, std::vector<std::uint32_t>(all.size(), 0));
    for (Found& f : all) {
      const std::uint64_t offset = f.report.offset;
      ahead_.emplace(offset, std::move(f));
    }
  }

  void add_missing(SegmentHeader h, int count, std::uint64_t at) {
    for (int i = 0; i < count; ++i) {
      ++h.count;
      h.start = h.end = h.part2 = h.part3 = h.part4 = false;
      Found f;
      f.report.header = h;
      f.report.offset = at;
      f.report.state = SegmentState::kMissing;
      f.report.message = "not found";
      keep(std::move(f));
    }
  }

  void one_after_the_other(const SegmentHeader& first) {
    Found current = parse(0, first, 0);
    for (;;) {
      const SegmentHeader h = current.report.header;
      const std::uint64_t offset = current.report.offset;
      const std::uint64_t limit = offset + (h.byte_limit ? h.byte_limit : kMaxSegmentBytes);
      const bool damaged = current.report.state == SegmentState::kDamaged;
      std::uint64_t next = offset + current.report.bytes;
      if (!damaged && (h.end || next >= size_)) {
        keep(std::move(current));
        return;
      }
      SegmentHeader following;
      if (!damaged && plausible(next, h, 0, following)) {
        keep(std::move(current));
        current = parse(next, following, 0);
        continue;
      }
      // Where the byte limit puts the next segment, or anywhere.
      if (!damaged) {
        current.report.state = SegmentState::kDamaged;
        current.report.message = "no header follows it";
      }
      Found found;
      int gap = 0;
      const bool at_limit = limit + 3 <= size_ && plausible(limit, h, 0, following);
      if (at_limit) found = parse(limit, following, 0);
      const bool resumed = (at_limit && verified(found)) || search(offset + 3, h, found, gap);
      if (at_limit && resumed && found.report.offset == limit) gap = 0;
      current.report.bytes = static_cast<std::uint32_t>(
          std::min<std::uint64_t>((resumed ? found.report.offset : size_) - offset, kMaxSegmentBytes));
      keep(std::move(current));
      if (!resumed) return;
      add_missing(h, gap, found.report.offset);
      current = std::move(found);
    }
  }

  void by_lengths() {
    std::vector<Found> all(p_.segment_bytes.size());
    std::vector<std::uint32_t> there(all.size());
    SegmentHeader in_force;
    std::uint64_t offset = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      require(p_.segment_bytes[i] > 0 && p_.segment_bytes[i] <= kMaxSegmentBytes, ErrorKind::kBadArgument,
              "segment length " + std::to_string(p_.segment_bytes[i]) + " in the index is outside 1..2^27");
      SegmentReport& r = all[i].report;
      r.offset = offset;
      there[i] =
          offset < size_ ? static_cast<std::uint32_t>(std::min<std::uint64_t>(p_.segment_bytes[i], size_ - offset)) : 0;
      r.bytes = there[i];
      SegmentHeader h;
      bool good = false;
      try {
        if (there[i] >= 3) {
          h = i == 0 ? header_at(0, {}) : header_at(offset, in_force);
          good =
              i == 0 || (!h.start && h.count == static_cast<std::uint8_t>(in_force.count + 1) &&
                         (h.end == (i + 1 == all.size())) &&
                         (!h.part4 || (h.width == in_force.width && h.bits == in_force.bits && h.dwt == in_force.dwt)));
        }
      } catch (const Error&) {
      }
      if (!good) {
        h = in_force;
        ++h.count;
        h.start = h.end = h.part2 = h.part3 = h.part4 = false;
        r.state = SegmentState::kMissing;
        r.message = there[i] == 0 ? "the stream ends before it" : "its header is damaged";
      }
      r.header = in_force = h;
      offset += p_.segment_bytes[i];
    }
    require(offset >= size_ || p_.segment_bytes.empty(), ErrorKind::kBadArgument,
            "the index covers " + std::to_string(offset) + " bytes of a stream of " + std::to_string(size_));
    // Samples and memory are bounded by what the headers say, before anything is parsed.
    std::uint64_t blocks = 0;
    for (const Found& f : all) blocks += f.report.header.blocks;
    check_samples(blocks);
    std::size_t need = 0;
    if (keep_data_)
      for (const Found& f : all) need += SegmentData::memory(f.report.header.blocks, f.report.header.ac_depth);
    check_memory(p_.limits, need, "a segment");
    for (std::size_t i = 0; i < all.size(); ++i)  // a cut segment has no known length
      if (there[i] != p_.segment_bytes[i]) there[i] = 0;
    if (device_) {
      parse_on_device(all, there);
    } else
      pool_.parallel_for(static_cast<int>(all.size()), [&](int i, int) {
        Found& f = all[static_cast<std::size_t>(i)];
        if (f.report.state == SegmentState::kMissing) return;
        const std::uint32_t length = there[static_cast<std::size_t>(i)];
        f.data = parse_segment(bytes_, size_, length, p_.limits.memory, k_, f.report);
        if (!keep_data_) f.data = SegmentData{};
      });
    for (Found& f : all) keep(std::move(f));
  }

  // ---- reconstruction

  /// Value of a DC coefficient of which the bits >= plane are known.
  static double dc_value(std::int32_t v, int plane, int shift) {
    const double unit = static_cast<double>(std::int64_t{1} << shift);
    const double half = plane > shift ? 0.5 * (static_cast<double>(std::int64_t{1} << plane) - unit) : 0.0;
    return (static_cast<double>(v) + half) / unit;
  }
  static std::int32_t round_half_away(double v) {
    v = std::clamp(v, -2147483648.0, 2147483647.0);
    return static_cast<std::int32_t>(v < 0                     ? v - 0.5 <= -2147483648.0 ? -2147483648.0 : v - 0.5
                                     : v + 0.5 >= 2147483647.0 ? 2147483647.0
                                                               : v + 0.5);
  }
  static void put(const BandView& bands, bool real, std::uint64_t block, double v) {
    if (real) {
      const float f = static_cast<float>(v);
      std::memcpy(bands.data[kLL3] + block, &f, sizeof f);
    } else {
      bands.data[kLL3][block] = round_half_away(v);
    }
  }

  /// The value that stands for DC coefficients nobody knows: the mean of those that are. True when all are known.
  bool find_constant(const SegmentHeader& h, std::uint64_t all_blocks) {
    double sum = 0;
    std::uint64_t count = 0;
    bool whole = true;
    for (const Found& f : found_) {
      whole = whole && f.data.dc_blocks == f.report.header.blocks;
      sum += static_cast<double>(f.data.dc_sum);
      count += f.data.dc_blocks;
    }
    const double unit = static_cast<double>(1 << band_shifts(h.shifts())[kLL3]);
    constant_ = count ? sum / static_cast<double>(count) / unit : 0.0;
    return whole && blocks_ == all_blocks;
  }
  void fill_gaps(const BandView& bands, const SegmentHeader& h, std::uint64_t all_blocks) const {
    std::memset(bands.data[0], 0, static_cast<std::size_t>(all_blocks) * 64 * sizeof(std::int32_t));
    for (std::uint64_t b = 0; b < all_blocks; ++b) put(bands, h.dwt == Dwt::kFloat, b, constant_);
  }

  void place(const Found& f, const BandView& bands) const {
    const SegmentHeader& h = f.report.header;
    const SegmentData& d = f.data;
    const bool real = h.dwt == Dwt::kFloat;
    const std::array<int, kBands> shift = band_shifts(h.shifts());
    double last = constant_;
    for (std::uint32_t m = 0; m < h.blocks; ++m) {
      if (m < d.dc_blocks) {
        const DcQuantiser q(h.dc_depth, h.ac_depth, shift[kLL3]);
        const int plane = (d.dc_plane == 32 ? q.q : d.dc_plane) - (m < d.dc_ahead ? 1 : 0);
        last = dc_value(d.dc[m], plane, shift[kLL3]);
      }
      put(bands, real, f.report.first_block + m, last);
    }

    Dequantiser q{};
    q.real = real;
    q.last_plane = d.last_plane;
    q.partial = d.partial;
    q.refined_blocks = d.refined_blocks;
    q.partly_refined = d.partly_refined;
    for (int lane = 0; lane < 64; ++lane) {
      const int i = 63 - lane;
      const int s = shift[static_cast<std::size_t>(i < 4    ? kHL3 + std::max(i, 1) - 1
                                                   : i < 16 ? kHL2 + (i - 4) / 4
                                                            : kHL1 + (i - 16) / 16)];
      q.shift[lane] = s;
      for (int unknown = 0; unknown < 2; ++unknown) {
        const int up = std::max(d.last_plane + unknown - s, 0);  // lowest known plane above the shift
        q.offset[unknown][lane] = up ? static_cast<std::int32_t>((std::int64_t{9} << up) / 20) : 0;
        q.real_offset[unknown][lane] = up ? 0.45F * static_cast<float>(std::int64_t{1} << up) - 0.5F : 0.0F;
      }
    }
    BlockPlanes planes;
    std::vector<std::uint64_t> no_signs;
    std::vector<std::uint8_t> no_depth;
    planes.stride = h.blocks;
    planes.depth = const_cast<std::uint8_t*>(d.depth.data());
    planes.sign = d.sign.get();
    planes.planes = d.planes.get();
    if (!d.planes) {  // nothing but DC
      no_signs.assign(h.blocks, 0);
      no_depth.assign(h.blocks, 0);
      planes.sign = planes.planes = no_signs.data();
      planes.depth = no_depth.data();
    }
    k_.scatter(planes, 0, static_cast<int>(h.blocks), f.report.first_block, q, bands);
  }

  static void transpose(Decoded& d) {
    std::vector<std::byte> out(d.samples.size());
    const std::size_t size = static_cast<std::size_t>(d.bytes_per_sample);
    const std::size_t wide = static_cast<std::size_t>(d.width), high = static_cast<std::size_t>(d.height);
    for (std::size_t y = 0; y < high; ++y)
      for (std::size_t x = 0; x < wide; ++x)
        std::memcpy(out.data() + (x * high + y) * size, d.samples.data() + (y * wide + x) * size, size);
    d.samples = std::move(out);
    std::swap(d.width, d.height);
  }

  DecodeParams p_;
  ThreadPool& pool_;
  const Kernels& k_;
  std::uint64_t size_;
  bool keep_data_;
  SegmentDevice* device_ = nullptr;
  std::vector<std::byte> padded_;
  const std::uint8_t* bytes_ = nullptr;
  std::vector<Found> found_;
  std::uint64_t blocks_ = 0;
  std::uint64_t end_ = 0;
  std::size_t used_memory_ = 0;
  bool ended_ = false;
  std::uint64_t searched_ = 0;
  std::unordered_map<std::uint64_t, Found> ahead_;  ///< by offset: segments parsed before the walk gets there
  double constant_ = 0;
};

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

namespace {

Decoded decode_with(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool,
                    SegmentDevice* device) {
  const Stopwatch watch;
  Decoder decoder(stream, params, pool, true, device);
  decoder.find_segments();
  const double parsing = watch.seconds();
  Decoded out = decoder.picture();
  out.seconds.coder += parsing;
  return out;
}

}  // namespace

Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool) {
  return decode_with(stream, params, pool, nullptr);
}

Decoded decode(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool, SegmentDevice& device) {
  return decode_with(stream, params, pool, &device);
}

std::vector<SegmentReport> inspect(std::span<const std::byte> stream, const DecodeParams& params, ThreadPool& pool) {
  Decoder decoder(stream, params, pool, false);
  decoder.find_segments();
  return decoder.reports();
}

}  // namespace trivelet::ccsds122
