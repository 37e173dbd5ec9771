// Measures the squared error of a GOP whose segments end at given truncation points, on the CPU: cuts its coefficients
// as a decoder reads them, transforms them back, and compares the samples.
#pragma once

#include <vector>

#include "codec/cpu/component_groups.h"
#include "codec/cpu/cpu_context.h"
#include "codec/cpu/motion_gop.h"

namespace trivelet {

/// Used by one thread at a time.
class CutError {
 public:
  CutError(CpuContext& context, MotionTransform& motion, ComponentGroups& groups)
      : context_(context), motion_(motion), groups_(groups) {}

  void next_gop();
  /// GopEncoder::squared_error() of a GOP with these coefficients. `key`, `key_before`: the key frame that it leaves
  /// and that of the GOP before, as they are before coding.
  double measure(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                 CoefficientGop& coefficients, const MotionKey& key, const MotionKey& key_before);

 private:
  template <class T>
  double measure_still(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                       CoefficientGop& coefficients);
  template <class T>
  double measure_moving(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts,
                        CoefficientGop& coefficients, const MotionKeys& keys);
  template <class T>
  double add_group_error(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                         const std::vector<Field<T>>& fields, double sum);
  MotionKeys decoded_keys(const MotionKey& key, const MotionKey& key_before);

  CpuContext& context_;
  MotionTransform& motion_;
  ComponentGroups& groups_;
  MotionKey decoded_key_, decoded_before_;  // of the current GOP and of the one before, as measured last
};

}  // namespace trivelet
