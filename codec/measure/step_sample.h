// What a GOP takes, and how much it errs, at a step: estimated by coding a few windows of its pictures, so that a
// target is aimed at before all of it is coded. Done by the host whatever the backend, which makes it the same for all.
#pragma once

#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/rate/rate_control.h"

namespace trivelet {

/// What a GOP takes when it is coded with a step, with twice that step, four times … For a plane left out is a step
/// twice as large.
struct StepAmounts {
  static constexpr int kSteps = 8;

  StepAmounts() = default;
  /// All that was coded with `step` but for its `finest` last planes is what the first step takes.
  StepAmounts(const RateControl& control, double step, int finest = 0);
  void add(const StepAmounts& others, double weight);

  double step = 1;
  std::vector<double> bytes = std::vector<double>(kSteps);   ///< without heads
  std::vector<double> errors = std::vector<double>(kSteps);  ///< squared, as predicted
  /// Of bytes or errors, which change by powers of the step: at a step between those known, or beyond them.
  double at(const std::vector<double>& amounts, double step) const;
  /// The step at which they are so much; half an octave of the steps beyond those known is as far as this can be relied
  /// on.
  double step_for(const std::vector<double>& amounts, double wanted) const;
};

class StepSample {
 public:
  /// Of a GOP whose samples stay where they are as long as this is used. `header` must outlive it.
  StepSample(const StreamHeader& header, const Gop& gop, SimdLevel simd);
  ~StepSample();
  /// False where pictures are so small that the windows would be a good part of them.
  bool worth_it() const { return !windows_.empty(); }
  /// About what a sample of the GOP takes, in bits of what is not known of it before.
  double activity() const { return activity_; }
  StepAmounts at(const GopChoices& choices, ThreadPool& pool);
  /// How much more the samples of what was coded last err than is predicted, about as if it had been coded with `step`.
  double excess(const GopChoices& coded_with, double step, ThreadPool& pool) const;

 private:
  struct Window;
  std::vector<std::unique_ptr<Window>> windows_;
  double activity_ = 0;
};

}  // namespace trivelet
