// Decisions of an encoder that do not depend on samples: validity of the parameters, division into segments, and
// contents of the headers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/still/ccsds122/ccsds122.h"
#include "codec/still/ccsds122/ccsds122_rate.h"

namespace trivelet::ccsds122 {

inline constexpr int kMaxPlanes = 31;

/// Throws BadArgument for parameters and pictures that the standard or Params excludes. Samples are not read.
void check_parameters(const VolumeView& image, const Params& p);

/// Smallest and largest sample of a bit depth.
struct SampleLimits {
  std::int64_t low = 0, high = 0;
  SampleLimits(int bits, bool is_signed)
      : low(is_signed ? -(std::int64_t{1} << (bits - 1)) : 0),
        high((std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1) {}
};
/// Whether samples of this type can be outside the limits of the parameters.
bool samples_need_check(const VolumeView& image, const Params& p);
/// Throws BadArgument for the first sample outside the range of p.bits.
void check_samples(const VolumeView& image, const Params& p, ThreadPool& pool);

/// A segment before coding: the depths in its header are unknown, and with total_bytes also its byte limit.
struct SegmentPlan {
  std::uint64_t first = 0;  ///< first block in the picture
  std::uint32_t blocks = 0;
  SegmentHeader header;
};
/// Divides a picture of width x height samples (as coded, after transposition) into segments.
std::vector<SegmentPlan> plan_segments(const Params& p, int width, int height);

/// The bytes of a segment of `bits` bits: whole words, within the limit, filled if requested. Throws BadArgument when a
/// segment without a limit is too long.
std::uint32_t segment_length(const Params& p, const SegmentHeader& h, std::uint64_t bits);

/// The squared error that coding a stage removes, for CutPoint. Stage 0 is a plane of DC, 1 to 3 newly significant, 4
/// refined coefficients; `count` coefficients in plane `bit`.
double stage_gain(int stage, int bit, std::uint64_t count);

}  // namespace trivelet::ccsds122
