// The encoder's search for motion (FORMAT.md says nothing of it): vectors, modes and block sizes for every high frame of
// a GOP, chosen on original samples of the first component for the least sum of distortion (of Hadamard transforms) and
// weighted bits.
//
// Regions decide by themselves, as they are coded, and frames of a level know only the coarser levels: what is found
// depends neither on threads nor on the instruction set, and all regions of many frames are searched at once.
#pragma once

#include "codec/dwt.h"
#include "codec/motion.h"

namespace trivelet {

/// How much a bit of motion counts, from the quantiser step of the GOP.
struct MotionSearchParams {
  int components = 1;
  int bits = 8;     ///< of samples
  double step = 8;  ///< quantiser step; lossless: about what noise has
  Effort effort = Effort::kMedium;
};

/// Samples minus offset of a component, all places. Those of further ones than the first are for the constants of blocks
/// that nothing predicts.
struct MotionPlane {
  Field<std::int32_t> samples;  ///< in whole grey levels
  MotionScale scale;
};

GopMotion search_motion(const std::vector<MotionPlane>& components, const MotionSearchParams& params, GopKey key,
                        int levels, ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
