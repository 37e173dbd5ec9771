// Entropy decoding of one segment (see ccsds122_parse.h).
#include "codec/still/ccsds122/ccsds122_parse.h"

#include <algorithm>

#include "codec/base/limits.h"
#include "codec/still/ccsds122/ccsds122_segment.h"
#include "codec/still/ccsds122/ccsds122_sequence.h"

namespace trivelet::ccsds122 {
namespace {

using End = ParseEnd;

class Parser {
 public:
  Parser(BitCursor bits, std::size_t max_memory, const Kernels& k, const SegmentHeader& h)
      : bits_(bits),
        max_memory_(max_memory),
        k_(k),
        h_(h),
        shift_(band_shifts(h.shifts())),
        q_(h.dc_depth, h.ac_depth, shift_[kLL3]) {}

  End run(SegmentData& d, std::string& message) {
    d.last_plane = h_.ac_depth;
    allow(SegmentData::memory(h_.blocks, 0));
    d.dc.assign(h_.blocks, 0);
    d.depth.assign(h_.blocks, 0);
    End end = quantised_dc(d, message);
    if (end != End::kDone) return end;
    for (int b = q_.q - 1; b >= std::max(h_.ac_depth, shift_[kLL3]); --b)
      if (!dc_plane(d, b)) return End::kOutOfBits;
    if (h_.dc_stop || h_.bit_plane_stop >= h_.ac_depth) return End::kDone;
    end = ac_depths(d, message);
    if (end != End::kDone) return end;
    return planes(d, message);
  }
  std::uint64_t position() const { return bits_.position; }

 private:
  void allow(std::size_t bytes) const {
    require(bytes <= max_memory_, ErrorKind::kUnsupported,
            "a segment needs " + std::to_string(bytes >> 20) +
                " MiB, more than is left of the limit (Limits::memory); raise it");
  }

  End quantised_dc(SegmentData& d, std::string& message) {
    int most = 0;
    if (q_.bits == 1) {
      for (; d.dc_blocks < h_.blocks && bits_.left() > 0; ++d.dc_blocks)
        d.dc[d.dc_blocks] = -static_cast<std::int32_t>(bits_.read(1));
      most = 1;
    } else {
      const SequenceResult r = decode_sequence(bits_, h_.blocks, {q_.bits, true}, d.dc.data());
      d.dc_blocks = r.count;
      if (r.damaged) {
        message = describe(Damage::kDcCode, 0, 0);
        scale_dc(d);
        return End::kDamaged;
      }
      for (std::uint32_t m = 0; m < r.count; ++m) most = std::max(most, dc_bits(d.dc[m]));
    }
    scale_dc(d);
    if (d.dc_blocks < h_.blocks) return End::kOutOfBits;
    d.dc_plane = q_.q;
    if (most != q_.bits) {
      message = describe(Damage::kDcDepth, 0, 0);
      return End::kDamaged;
    }
    return End::kDone;
  }

  void scale_dc(SegmentData& d) const {
    for (std::int32_t& v : d.dc) v = static_cast<std::int32_t>(static_cast<std::uint32_t>(v) << q_.q);
  }

  bool dc_plane(SegmentData& d, int b) {
    for (std::uint32_t m = 0; m < h_.blocks; m += 32) {
      const std::uint32_t n =
          static_cast<std::uint32_t>(std::min<std::uint64_t>(std::min<std::uint32_t>(32, h_.blocks - m), bits_.left()));
      if (n == 0) return false;
      const std::uint32_t v = bits_.read(n);
      for (std::uint32_t i = 0; i < n; ++i)
        d.dc[m + i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(d.dc[m + i]) | (v >> (n - 1 - i) & 1) << b);
      d.dc_ahead = m + n;
      if (n < 32 && m + n < h_.blocks) return false;
    }
    d.dc_plane = b;
    d.dc_ahead = 0;
    return true;
  }

  End ac_depths(SegmentData& d, std::string& message) {
    if (h_.ac_depth == 0) return End::kDone;
    if (h_.ac_depth == 1) {
      for (std::uint32_t m = 0; m < h_.blocks; ++m) {
        if (bits_.left() == 0) return End::kOutOfBits;
        d.depth[m] = static_cast<std::uint8_t>(bits_.read(1));
      }
    } else {
      std::vector<std::int32_t> values(h_.blocks);
      const SequenceResult r = decode_sequence(bits_, h_.blocks, {depth_bits(h_.ac_depth), false}, values.data());
      const bool too_deep =
          std::any_of(values.begin(), values.begin() + r.count, [&](std::int32_t v) { return v > h_.ac_depth; });
      if (r.damaged || too_deep) {
        message = describe(Damage::kAcCode, 0, 0);
        return End::kDamaged;
      }
      if (r.count < h_.blocks) return End::kOutOfBits;
      std::copy(values.begin(), values.end(), d.depth.begin());
    }
    if (*std::max_element(d.depth.begin(), d.depth.end()) != h_.ac_depth) {
      message = describe(Damage::kAcDepth, 0, 0);
      return End::kDamaged;
    }
    return End::kDone;
  }

  End planes(SegmentData& d, std::string& message) {
    const std::size_t blocks = h_.blocks;
    if (h_.ac_depth == 0) return End::kDone;
    allow(SegmentData::memory(h_.blocks, h_.ac_depth));
    d.has_planes = true;
    d.sign.reset(new std::uint64_t[blocks]());
    d.planes.reset(new std::uint64_t[blocks * static_cast<std::size_t>(h_.ac_depth)]);
    std::vector<std::uint64_t> significant(blocks, 0);
    std::vector<std::uint8_t> families(blocks, 0);
    std::vector<GaggleOptions> options;
    for (int b = h_.ac_depth - 1; b >= h_.bit_plane_stop; --b) {
      if (b < q_.q && b >= shift_[kLL3] && !dc_plane(d, b)) return End::kOutOfBits;
      options.assign((blocks + 15) / 16, GaggleOptions{});
      PlaneDecoder p{};
      p.plane = d.planes.get() + static_cast<std::size_t>(b) * blocks;
      p.sign = d.sign.get();
      p.significant = significant.data();
      p.depth = d.depth.data();
      p.families = families.data();
      p.options = options.data();
      p.blocks = h_.blocks;
      p.bit = b;
      p.eligible = eligible_mask(shift_.data(), b);
      p.stages = b == h_.bit_plane_stop ? h_.stage_stop + 1 : 4;
      const PlaneEnd end = k_.decode_plane(bits_, p);
      if (end == PlaneEnd::kDamaged) {
        message = describe(Damage::kPlane, p.stage_reached + 1, b);
        return End::kDamaged;
      }
      d.last_plane = b;
      if (end == PlaneEnd::kOutOfBits || p.stages < 4) {
        d.partial = true;
        d.refined_blocks = p.refined_blocks;
        d.partly_refined = p.partly_refined;
        return end == PlaneEnd::kOutOfBits ? End::kOutOfBits : End::kDone;
      }
      for (std::size_t m = 0; m < blocks; ++m)
        if (d.depth[m] > b) significant[m] |= p.plane[m];
    }
    return End::kDone;
  }

  BitCursor bits_;
  std::size_t max_memory_;
  const Kernels& k_;
  const SegmentHeader& h_;
  std::array<int, kBands> shift_;
  DcQuantiser q_;
};

/// Whether the bits from `from` to the end of byte `end` - 1 are zero.
bool zeros(const std::uint8_t* stream, std::uint64_t from, std::uint64_t end) {
  if (from % 8 != 0 && (stream[from / 8] & (0xFF >> (from % 8))) != 0) return false;
  return std::all_of(stream + (from + 7) / 8, stream + end, [](std::uint8_t b) { return b == 0; });
}

}  // namespace

std::string describe(Damage damage, int stage, int plane) {
  switch (damage) {
    case Damage::kNone: return {};
    case Damage::kDcCode: return "impossible code in the DC values";
    case Damage::kDcDepth: return "DC values do not reach the depth in the header";
    case Damage::kAcCode: return "impossible AC depth";
    case Damage::kAcDepth: return "AC depths do not reach the depth in the header";
    case Damage::kPlane:
      return "contradiction in stage " + std::to_string(stage) + " of bit plane " + std::to_string(plane);
  }
  return {};
}

bool segment_bits(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, SegmentReport& report,
                  BitCursor& bits) {
  const SegmentHeader& h = report.header;
  const std::uint64_t limit = h.byte_limit ? h.byte_limit : kMaxSegmentBytes;
  const std::uint64_t there = length ? length : stream_bytes - report.offset;
  const std::uint64_t end_byte = report.offset + std::min(limit, there);
  bits = {stream, 8 * (report.offset + static_cast<std::uint64_t>(h.bytes())), 8 * end_byte};
  if (bits.position <= bits.end) return true;
  report.state = SegmentState::kDamaged;
  report.message = "the byte limit in the header is below the size of the header";
  report.bytes = static_cast<std::uint32_t>(end_byte - report.offset);
  return false;
}

void finish_report(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length, ParseEnd end,
                   std::uint64_t position, SegmentReport& report) {
  const SegmentHeader& h = report.header;
  const std::uint64_t limit = h.byte_limit ? h.byte_limit : kMaxSegmentBytes;
  const std::uint64_t there = length ? length : stream_bytes - report.offset;
  const std::uint64_t end_byte = report.offset + std::min(limit, there);
  if (end == End::kDamaged) {
    report.state = SegmentState::kDamaged;
    report.bytes = length ? length : h.use_fill ? static_cast<std::uint32_t>(end_byte - report.offset) : 0;
  } else if (end == End::kOutOfBits) {
    report.bytes = static_cast<std::uint32_t>(end_byte - report.offset);
    report.limited = limit <= there;
    if (!report.limited) {
      report.state = SegmentState::kCut;
      report.message = "cut off after " + count_of(report.bytes, "byte");
    }
  } else {
    const std::uint64_t used = (position + 7) / 8 - report.offset;
    const std::uint64_t word = static_cast<std::uint64_t>(h.word_bytes);
    std::uint64_t bytes = h.use_fill ? limit : std::min((used + word - 1) / word * word, limit);
    if (bytes > there) {
      bytes = there;
      report.state = SegmentState::kCut;
      report.message = "the padding at its end is cut off";
    } else if (length && bytes != length) {
      report.state = SegmentState::kDamaged;
      report.message = "its data end after " + std::to_string(bytes) + " of " + count_of(length, "byte");
      bytes = length;
    }
    report.bytes = static_cast<std::uint32_t>(bytes);
    if (report.state == SegmentState::kComplete && !zeros(stream, position, report.offset + bytes)) {
      report.state = SegmentState::kDamaged;
      report.message = "the padding at its end is not zero";
    }
  }
}

SegmentData parse_segment(const std::uint8_t* stream, std::uint64_t stream_bytes, std::uint32_t length,
                          std::size_t max_memory, const Kernels& k, SegmentReport& report) {
  SegmentData data;
  BitCursor bits;
  if (!segment_bits(stream, stream_bytes, length, report, bits)) return data;
  Parser parser(bits, max_memory, k, report.header);
  const End end = parser.run(data, report.message);
  report.last_plane = data.last_plane;
  for (std::uint32_t m = 0; m < data.dc_blocks && m < data.dc.size(); ++m) data.dc_sum += data.dc[m];
  finish_report(stream, stream_bytes, length, end, parser.position(), report);
  return data;
}

}  // namespace trivelet::ccsds122
