// Maps the squared error predicted by the norms of the subbands to the squared error of decoded samples.
//
// The two differ. Rounding decoded samples to integers adds 1/12 to a large error and removes most of a small one, more
// so when it is spread unevenly over the pictures. Errors of dropped coefficients are slightly correlated. So the
// encoder decodes a few cuts of some GOPs and interpolates between them.
#pragma once

#include <utility>
#include <vector>

namespace trivelet {

class SampleErrorModel {
 public:
  explicit SampleErrorModel(bool lossless = false) : lossless_(lossless) {}

  /// Adds a point; both values are mean squared errors. Predictions must descend.
  void add(double predicted, double measured);
  /// The expected error of a cut with this prediction.
  double actual(double predicted) const;
  /// True when the finest point was measured at about this prediction.
  bool covers(double finest) const;
  bool empty() const { return points_.empty(); }

 private:
  double assumed(double predicted) const;

  bool lossless_;
  std::vector<std::pair<double, double>> points_;  // log2 of both
};

/// The models of the GOPs measured last. A film returns to earlier scenes, so several are kept.
class MeasuredErrors {
 public:
  /// Before the first measurement like() returns the model without measurements.
  explicit MeasuredErrors(bool lossless = false) : nothing_(lossless) {}

  /// Adds the model of the GOP measured last. An empty model drops all earlier ones.
  void add(SampleErrorModel model);
  /// The newest model measured at about this finest prediction, else the newest one.
  const SampleErrorModel& like(double finest) const;

 private:
  SampleErrorModel nothing_;
  std::vector<SampleErrorModel> models_;  // newest last
};

}  // namespace trivelet
