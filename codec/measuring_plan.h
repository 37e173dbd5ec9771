// Which GOPs of a stream have the errors of their layers measured, the others being taken to be like the one measured
// before. It needs nothing but what coefficients predict, so that whoever has that of all GOPs, in their order, can plan.
#pragma once

#include <cstddef>
#include <vector>

#include "codec/container.h"
#include "codec/sample_error.h"

namespace trivelet {

/// Mean squared errors of a GOP's layers as its coefficients predict them; this where a layer is exact.
inline constexpr double kExactLayer = -1;

class MeasuringPlan {
 public:
  explicit MeasuringPlan(const StreamHeader& header);

  /// The layers at which the next GOP is to be measured, coarse to fine; none if one before is like it. `open`: it leans
  /// on the one before. `anew`: it begins where KeySchedule says; with motion nothing is then taken from those before.
  std::vector<std::size_t> layers(const std::vector<double>& predicted, bool open, bool anew);

 private:
  bool motion_;
  bool whole_;                ///< a sample of its pictures is all of them
  SampleErrorModel planned_;  ///< where one was, or is going to be, measured
  int age_ = 0;               ///< GOPs since
  int opened_ = 0;            ///< open GOPs measured since the last closed one
  bool open_ = false;         ///< it was an open one
};

/// What the index says of layers with these predictions. `measured`: of the GOP measured last.
std::vector<double> layer_errors(const std::vector<double>& predicted, const SampleErrorModel& measured);

}  // namespace trivelet
