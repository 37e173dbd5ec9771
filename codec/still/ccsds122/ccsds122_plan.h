// What every encoder decides before it looks at a sample: whether the parameters are possible, how the blocks are cut
// into segments, and what their headers say.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_rate.h"

namespace trivelet::ccsds122 {

inline constexpr int kMaxPlanes = 31;

/// Throws BadArgument for parameters and pictures that the standard or Params does not allow. Samples are not looked
/// at.
void check_parameters(const VolumeView& image, const Params& p);

/// Smallest and largest sample of a bit depth.
struct SampleLimits {
  std::int64_t low = 0, high = 0;
  SampleLimits(int bits, bool is_signed)
      : low(is_signed ? -(std::int64_t{1} << (bits - 1)) : 0),
        high((std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1) {}
};
/// Can samples of this type lie outside the limits of the parameters?
bool samples_need_check(const VolumeView& image, const Params& p);
/// Throws BadArgument for the first sample outside the range of p.bits.
void check_samples(const VolumeView& image, const Params& p, ThreadPool& pool);

/// A segment before it is coded: the depths in its header are not known yet, nor is its byte limit with total_bytes.
struct SegmentPlan {
  std::uint64_t first = 0;  ///< block of the picture
  std::uint32_t blocks = 0;
  SegmentHeader header;
};
/// The segments of a picture of width x height samples as coded (after transposing).
std::vector<SegmentPlan> plan_segments(const Params& p, int width, int height);

/// Bytes of a segment of `bits` bits: whole words, within the limit, filled when asked for. Throws BadArgument when a
/// segment without limit gets too long.
std::uint32_t segment_length(const Params& p, const SegmentHeader& h, std::uint64_t bits);

/// What a stage removes of the squared error when it is coded, for CutPoint: stage 0 (a plane of DC), 1 to 3 (newly
/// significant coefficients), 4 (refined ones). `count` coefficients in plane `bit`.
double stage_gain(int stage, int bit, std::uint64_t count);

}  // namespace trivelet::ccsds122
