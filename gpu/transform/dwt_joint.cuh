// A level of the dyadic transform that splits time, in one kernel: the same bits as in two (dwt.cuh), half the bytes.
#pragma once

#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

/// What decides which levels are done jointly.
struct JointChoice {
  JointLevels levels = JointLevels::kWhereFaster;
  int processors = 1;
  int shared_bytes = 0;  ///< that a block may have
};

/// Does the work of forward_time() of one level and forward_plane(), or of inverse_plane() and inverse_time(), with CDF
/// 9/7 along all axes. `a.plane` is the side of all frames, a.low_every is 2. False if it does nothing, so that the two
/// kernels must run.
bool forward_joint(const PlaneArgs<float, float>& a, const JointChoice& choice, const Stream& stream);
bool inverse_joint(const PlaneArgs<float, float>& a, const JointChoice& choice, const Stream& stream);

}  // namespace trivelet::gpu
