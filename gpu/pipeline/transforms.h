// The transforms of all components of a GOP on the device, colour transform included: samples <-> coefficients.
#pragma once

#include <memory>
#include <vector>

#include "gpu/pipeline/pipeline.h"

namespace trivelet::gpu {

/// T as DeviceTransform has it. Components of equal shape share scratch memory. Of GOPs with motion only the transform
/// in space is done here, between coefficients and values (gpu/motion/motion.h).
template <class T>
class GopTransforms {
 public:
  explicit GopTransforms(const GopShape& shape);
  /// Q: see DeviceTransform. `steps`: at GopShape::step_origin, inverse ones. `frame_gains`: see DeviceTransform.
  /// Samples and coefficients lie as the shape says.
  template <class Q>
  void forward(const std::byte* samples, Q* coefficients, const float* steps, const float* frame_gains,
               const Stream& stream);
  template <class Q>
  void inverse(const Q* coefficients, const float* steps, const float* frame_gains, std::byte* samples,
               const Stream& stream);
  /// The same of one component from and to values, all rows without gaps.
  template <class Q>
  void forward(const T* values, int component, Q* coefficients, const float* steps, const Stream& stream);
  template <class Q>
  void inverse(const Q* coefficients, const float* steps, int component, T* values, const Stream& stream);
  /// The factor of values for the levels that were left out.
  float gain_of(int component) const;
  std::size_t device_bytes() const;

 private:
  const GopShape* shape_;
  std::vector<std::unique_ptr<DeviceTransform<T>>> transforms_;
  std::vector<std::size_t> transform_index_;
  DeviceBuffer<T> colours_[3];
};

}  // namespace trivelet::gpu
