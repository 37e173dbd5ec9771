// Chooses the GOPs whose layer errors are measured; the other GOPs use the model of a measured GOP. Without motion the
// plan remembers several GOPs, because a film cuts back and forth between scenes. With motion GOPs depend on earlier
// ones, so the last measured GOP is the best model. The plan uses predicted errors only, so any process that has them
// for all GOPs in order can compute it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/measure/sample_error.h"

namespace trivelet {

/// Predicted mean squared error of an exact layer.
inline constexpr double kExactLayer = -1;

class MeasuringPlan {
 public:
  explicit MeasuringPlan(const StreamHeader& header);

  /// The layers at which the next GOP is measured, coarse to fine; empty if an earlier GOP is its model. `predicted`:
  /// mean squared errors of its layers. `open`: the GOP is open. `must_close`: by KeySchedule; with
  /// motion such a GOP uses no earlier measurement.
  std::vector<std::size_t> layers(const std::vector<double>& predicted, bool open, bool must_close);

 private:
  /// A GOP that was or will be measured.
  struct Planned {
    SampleErrorModel at;
    int age = 0;  ///< GOPs since
  };

  bool motion_;
  bool whole_;                    ///< pictures are so small that the sample is the whole picture
  std::vector<Planned> planned_;  ///< newest last; with motion only one
  int opened_ = 0;                ///< open GOPs measured since the last closed one
  bool open_ = false;             ///< the last measured GOP was open
};

/// The model that a GOP adds: measured `errors` of these `layers`. An empty model drops all earlier ones (with motion,
/// where `must_close`); nullopt adds nothing.
std::optional<SampleErrorModel> measured_model(const StreamHeader& header, const std::vector<double>& predicted,
                                               const std::vector<std::size_t>& layers,
                                               const std::vector<double>& errors, bool must_close);

/// The layer errors for the index. `measured` holds the models of the GOPs before, and of this one if it was measured.
std::vector<double> layer_errors(const std::vector<double>& predicted, const MeasuredErrors& measured);

}  // namespace trivelet
