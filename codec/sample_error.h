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

 private:
  double assumed(double predicted) const;

  bool lossless_;
  std::vector<std::pair<double, double>> points_;  // log2 of both
};

}  // namespace trivelet
