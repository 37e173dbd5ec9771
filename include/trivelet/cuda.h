// The codec's backend on an NVIDIA GPU, and which GPUs there are. The only header of this folder that apps need.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/backend.h"

namespace trivelet::gpu {

struct DeviceInfo {
  int number = 0;
  std::string name;
  std::size_t memory = 0;  ///< bytes
  int major = 0, minor = 0;
};

/// Usable devices; none without a driver. Never throws.
std::vector<DeviceInfo> devices();

/// Codes on device `number`. `max_memory`: of the device, in bytes; 0 = all there is. Makers throw Unsupported for what
/// the GPU cannot do (coefficients instead of samples) and when its memory does not hold one GOP.
Backend cuda_backend(int number, std::size_t max_memory);

}  // namespace trivelet::gpu
