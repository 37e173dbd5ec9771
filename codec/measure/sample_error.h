// The squared error of decoded samples, from what the norms of the subbands predict for their coefficients.
//
// The two differ: decoded samples are rounded to integers, which adds 1/12 to a large error and removes most of a small
// one, the more so the less evenly it is spread over the pictures; and errors of coefficients that are left out are a
// little correlated. So the encoder decodes a few cuts of a GOP now and then, and this is the line through them.
#pragma once

#include <utility>
#include <vector>

namespace trivelet {

class SampleErrorModel {
 public:
  explicit SampleErrorModel(bool lossless = false) : lossless_(lossless) {}

  /// Both mean squared. Predictions must descend.
  void add(double predicted, double measured);
  /// What to expect of a cut with this prediction.
  double actual(double predicted) const;
  /// True when it was measured where the finest prediction was about this.
  bool covers(double finest) const;
  bool empty() const { return points_.empty(); }

 private:
  double assumed(double predicted) const;

  bool lossless_;
  std::vector<std::pair<double, double>> points_;  // log2 of both
};

/// What was measured of a few GOPs: a film returns to scenes that are like one before.
class MeasuredErrors {
 public:
  /// Without anything measured it is what is assumed.
  explicit MeasuredErrors(bool lossless = false) : nothing_(lossless) {}

  /// Of the GOP measured last; an empty one: what was measured before says nothing of those to come.
  void add(SampleErrorModel of_gop);
  /// Of the GOP measured last with about this finest prediction, else of the one measured last.
  const SampleErrorModel& like(double finest) const;

 private:
  SampleErrorModel nothing_;
  std::vector<SampleErrorModel> models_;  // the newest last
};

}  // namespace trivelet
