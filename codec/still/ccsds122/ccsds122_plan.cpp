// Checks parameters and divides the picture into segments (see ccsds122_plan.h).
#include "codec/still/ccsds122/ccsds122_plan.h"

#include <algorithm>
#include <string>

#include "codec/still/ccsds122/ccsds122_kernels.h"
#include "trivelet/error.h"

namespace trivelet::ccsds122 {

void check_parameters(const VolumeView& image, const Params& p) {
  const auto bad = [](bool ok, const std::string& what) { require(ok, ErrorKind::kBadArgument, what); };
  const int most = p.dwt == Dwt::kInteger ? 25 : p.is_signed ? 28 : 27;
  bad(p.bits >= 1 && p.bits <= most,
      "bit depth must be 1.." + std::to_string(most) + " for this DWT, not " + std::to_string(p.bits));
  bad(image.bytes_per_sample == 1 || image.bytes_per_sample == 2 || image.bytes_per_sample == 4,
      "samples must have 1, 2 or 4 bytes, not " + std::to_string(image.bytes_per_sample));
  bad(image.shape.frames == 1 && image.shape.width >= kMinSide && image.shape.height >= kMinSide,
      "pictures must be at least 17 x 17, not " + std::to_string(image.shape.width) + " x " +
          std::to_string(image.shape.height));
  const int coded_width = p.transpose ? image.shape.height : image.shape.width;
  bad(coded_width <= kMaxWidth, "pictures may be at most 2^20 wide, not " + std::to_string(coded_width));
  bad(p.segment_blocks >= 16 && p.segment_blocks <= kMaxSegmentBlocks,
      "segments must have 16..2^20 blocks, not " + std::to_string(p.segment_blocks));
  bad(p.word_bytes >= 1 && p.word_bytes <= 8, "word length must be 1..8 bytes, not " + std::to_string(p.word_bytes));
  bad(p.bit_plane_stop >= 0 && p.bit_plane_stop <= 31,
      "bit plane stop must be 0..31, not " + std::to_string(p.bit_plane_stop));
  bad(p.stage_stop >= 0 && p.stage_stop <= 3, "stage stop must be 0..3, not " + std::to_string(p.stage_stop));
  for (const int w : p.weights) bad(w <= 3, "weight exponents must be 0..3, not " + std::to_string(w));
  bad(p.segment_bytes <= kMaxSegmentBytes,
      "segment byte limit must be at most 2^27, not " + std::to_string(p.segment_bytes));
  bad(p.segment_bytes == 0 || p.segment_bytes >= 9,
      "segment byte limit must be at least 9, not " + std::to_string(p.segment_bytes));
  bad(!p.use_fill || p.segment_bytes, "fill needs a segment byte limit");
  bad(!p.total_bytes || (!p.segment_bytes && !p.use_fill), "a limit for the whole stream excludes one per segment");
}

bool samples_need_check(const VolumeView& image, const Params& p) {
  const bool any_byte = image.bytes_per_sample == 1 && p.bits >= 8 && image.is_signed == p.is_signed;
  const bool any_short = image.bytes_per_sample == 2 && p.bits >= 16 && image.is_signed == p.is_signed;
  return !any_byte && !any_short;
}

void check_samples(const VolumeView& image, const Params& p, ThreadPool& pool) {
  if (!samples_need_check(image, p)) return;
  const SampleLimits limits(p.bits, p.is_signed);
  const Kernels& k = kernels(p.simd);
  pool.parallel_for((image.shape.height + 63) / 64, [&](int strip, int) {
    for (int y = 64 * strip; y < std::min(64 * strip + 64, image.shape.height); ++y) {
      std::int64_t lo = 0, hi = 0;
      k.range_row(image.row(0, y), image.bytes_per_sample, image.is_signed, image.shape.width, &lo, &hi);
      require(lo >= limits.low && hi <= limits.high, ErrorKind::kBadArgument,
              "sample " + std::to_string(lo < limits.low ? lo : hi) + " in row " + std::to_string(y) + " is outside " +
                  std::to_string(limits.low) + ".." + std::to_string(limits.high));
    }
  });
}

std::vector<SegmentPlan> plan_segments(const Params& p, int width, int height) {
  const std::uint64_t blocks_wide = static_cast<std::uint64_t>((width + 7) / 8);
  const std::uint64_t blocks_high = static_cast<std::uint64_t>((height + 7) / 8);
  const std::uint64_t blocks = blocks_wide * blocks_high;
  SegmentHeader h;
  h.dwt = p.dwt;
  h.bits = p.bits;
  h.is_signed = p.is_signed;
  h.width = width;
  h.transpose = p.transpose;
  h.word_bytes = p.word_bytes;
  h.custom_weights = p.custom_weights;
  h.weights = p.custom_weights ? p.weights : Weights{};
  h.optimal_dc = p.optimal_dc;
  h.optimal_ac = p.optimal_ac;
  h.dc_stop = p.dc_stop;
  h.bit_plane_stop = p.bit_plane_stop;
  h.stage_stop = p.stage_stop;
  h.use_fill = p.use_fill;

  std::vector<SegmentPlan> plan;
  plan.reserve(static_cast<std::size_t>((blocks + p.segment_blocks - 1) / p.segment_blocks));
  for (std::uint64_t first = 0; first < blocks; first += p.segment_blocks) {
    SegmentPlan s;
    s.first = first;
    s.blocks = static_cast<std::uint32_t>(std::min<std::uint64_t>(p.segment_blocks, blocks - first));
    s.header = h;
    s.header.start = first == 0;
    s.header.end = first + s.blocks == blocks;
    s.header.count = static_cast<std::uint8_t>(plan.size());
    s.header.blocks = s.blocks;
    s.header.pad_rows = s.header.end ? static_cast<int>(blocks_high) * 8 - height : 0;
    const bool shorter = s.blocks != p.segment_blocks;
    s.header.part2 = first == 0 || shorter || p.every_header || p.total_bytes;
    s.header.part3 = first == 0 || shorter || p.every_header;
    s.header.part4 = first == 0 || p.every_header;
    if (p.segment_bytes) {
      std::uint64_t limit = p.segment_bytes;
      if (shorter && p.shorten_last) limit = limit * s.blocks / p.segment_blocks;
      const std::uint64_t word = static_cast<std::uint64_t>(p.word_bytes);
      limit = limit / word * word;
      while (limit < static_cast<std::uint64_t>(s.header.bytes())) limit += word;  // a header is never truncated
      s.header.byte_limit = static_cast<std::uint32_t>(limit);
    }
    plan.push_back(s);
  }
  return plan;
}

std::uint32_t segment_length(const Params& p, const SegmentHeader& h, std::uint64_t bits) {
  const std::uint64_t word = static_cast<std::uint64_t>(p.word_bytes);
  const std::uint64_t data = ((bits + 7) / 8 + word - 1) / word * word;
  const std::uint64_t limit = h.byte_limit ? h.byte_limit : kMaxSegmentBytes;
  require(data <= limit || p.segment_bytes || p.total_bytes, ErrorKind::kBadArgument,
          "a segment takes more than 2^27 bytes; use smaller segments");
  return static_cast<std::uint32_t>(p.use_fill ? limit : std::min(data, limit));
}

double stage_gain(int stage, int bit, std::uint64_t count) {
  const double step = static_cast<double>(std::uint64_t{1} << bit);
  return (stage == 0 ? 0.25 : stage < 4 ? 2.25 : 0.257) * (step * step) * static_cast<double>(count);
}

std::uint64_t eligible_mask(const int* shift, int bit) {
  std::uint64_t mask = 0;
  for (int i = 0; i < 3; ++i) {
    if (shift[kHL3 + i] <= bit) mask |= std::uint64_t{1} << (62 - i);
    if (shift[kHL2 + i] <= bit) mask |= std::uint64_t{0xF} << (56 - 4 * i);
    if (shift[kHL1 + i] <= bit) mask |= std::uint64_t{0xFFFF} << (32 - 16 * i);
  }
  return mask;
}

}  // namespace trivelet::ccsds122
