// What the fast profile would take for the coefficients of a GOP, estimated on the device
// (codec/entropy/fast/size_estimate.h).
#pragma once

#include "codec/entropy/fast/size_estimate.h"
#include "gpu/device/device.h"
#include "gpu/plan/gop_shape.h"

namespace trivelet::gpu {

class DeviceSizeEstimate {
 public:
  /// Estimates coefficients, laid out as the shape says, at the steps from `step` on. Waits for the stream.
  SizeEstimate estimate(const GopShape& shape, const float* coefficients, double step, const Stream& stream);
  std::size_t device_bytes() const {
    return entropy_.size() * sizeof(std::uint32_t) + sums_.size() * sizeof(unsigned long long);
  }

 private:
  void prepare(const GopShape& shape, const Stream& stream);

  std::size_t most_ = 0;  // number of the table
  DeviceBuffer<std::uint32_t> entropy_;
  PinnedBuffer<std::uint32_t> host_entropy_;
  DeviceBuffer<unsigned long long> sums_;
  PinnedBuffer<unsigned long long> host_sums_;
};

}  // namespace trivelet::gpu
