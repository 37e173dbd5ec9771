// Which GOPs of a stream have the errors of their layers measured, the others being taken to be like one measured
// before. A film cuts between scenes that differ, so without motion each of them is remembered for a while; with motion
// GOPs depend on those before, and like them is the one measured last. It needs nothing but what coefficients predict,
// so that whoever has that of all GOPs, in their order, can plan.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/measure/sample_error.h"

namespace trivelet {

/// Mean squared errors of a GOP's layers as its coefficients predict them; this where a layer is exact.
inline constexpr double kExactLayer = -1;

class MeasuringPlan {
 public:
  explicit MeasuringPlan(const StreamHeader& header);

  /// The layers at which the next GOP is to be measured, coarse to fine; none if one before is like it. `open`: it
  /// leans on the one before. `anew`: it begins where KeySchedule says; with motion nothing is then taken from those
  /// before.
  std::vector<std::size_t> layers(const std::vector<double>& predicted, bool open, bool anew);

 private:
  /// Where a GOP was, or is going to be, measured.
  struct Planned {
    SampleErrorModel at;
    int age = 0;  ///< GOPs since
  };

  bool motion_;
  bool whole_;                    ///< a sample of its pictures is all of them
  std::vector<Planned> planned_;  ///< the newest last; with motion that one alone
  int opened_ = 0;                ///< open GOPs measured since the last closed one
  bool open_ = false;             ///< it was an open one
};

/// What a GOP tells of itself and those like it: the errors of these of its layers, if it was measured. Empty: that
/// nothing is known any more, where with motion things begin `anew`. None: nothing.
std::optional<SampleErrorModel> measured_model(const StreamHeader& header, const std::vector<double>& predicted,
                                               const std::vector<std::size_t>& layers,
                                               const std::vector<double>& errors, bool anew);

/// What the index says of layers with these predictions. `measured`: of the GOPs before, and of this one if it was.
std::vector<double> layer_errors(const std::vector<double>& predicted, const MeasuredErrors& measured);

}  // namespace trivelet
