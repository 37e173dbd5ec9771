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
};

/// `luma`: samples minus offset of the first component, all frames. `others`: those of further components, for the
/// constants of blocks that nothing predicts, with their scale.
struct MotionPlane {
  Field<std::int32_t> samples;  ///< in whole grey levels
  MotionScale scale;
};

GopMotion search_motion(const std::vector<MotionPlane>& components, const MotionSearchParams& params, int levels,
                        ThreadPool& pool, SimdLevel simd);

}  // namespace trivelet
