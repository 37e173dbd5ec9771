// How long the stages of a GOP take on a GPU.
#pragma once

namespace trivelet::gpu {

/// Milliseconds of one GOP's stages on the device.
struct StageTimes {
  double upload = 0, kernels = 0, download = 0;
};

}  // namespace trivelet::gpu
