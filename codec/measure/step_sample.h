// Estimates rate and error of a GOP at a step by coding a few windows of its pictures, so that the first full coding is
// close to its target. The host does this for every backend, so that the result is the same.
#pragma once

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

/// Rate and error of a GOP coded with `step`, twice `step`, four times `step` and so on. Dropping a plane stands for
/// doubling the step.
struct StepAmounts {
  static constexpr int kSteps = 8;

  StepAmounts() = default;
  /// From a GOP coded with `step`. The first entry leaves out its `finest` last planes.
  StepAmounts(const RateControl& control, double step, int finest = 0);
  void add(const StepAmounts& others, double weight);

  double step = 1;
  std::vector<double> bytes = std::vector<double>(kSteps);   ///< without headers
  std::vector<double> errors = std::vector<double>(kSteps);  ///< squared, predicted
  /// Value of bytes or errors at a step, interpolated and extrapolated as powers of the step.
  double at(const std::vector<double>& amounts, double step) const;
  /// The step at which `amounts` have this value. Extrapolation is reliable up to half an octave.
  double step_for(const std::vector<double>& amounts, double wanted) const;
};

class StepSample {
 public:
  /// The GOP, its samples and `header` must outlive this object.
  StepSample(const StreamHeader& header, const Gop& gop, SimdLevel simd);
  ~StepSample();
  /// False for small pictures, of which the windows would be a large part.
  bool worth_it() const;
  /// Estimate of the bits of a sample, from differences to its neighbours in space and time.
  double activity() const { return activity_; }
  /// Codes the windows, which are drawn at the first call.
  StepAmounts at(const GopChoices& choices, ThreadPool& pool);
  /// Ratio of measured to predicted sample error of what at() coded last, as if it had been coded with `step`.
  double excess(const GopChoices& coded_with, double step, ThreadPool& pool) const;

 private:
  struct Window;
  /// Rows or columns of window i of a side of the picture.
  int extent(int i, int length) const;
  void draw_windows();

  const StreamHeader& header_;
  const Gop& gop_;
  SimdLevel simd_;
  int side_;  ///< of a window
  int columns_ = 0;
  std::vector<double> activities_;  ///< of all windows that could be drawn, by rows
  std::vector<std::unique_ptr<Window>> windows_;
  double activity_ = 0;
};

}  // namespace trivelet
