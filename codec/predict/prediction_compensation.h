// Motion compensation of inter frames (FORMAT.md "Moved frames"): makes the compensated previous frame, cell by cell,
// before a row of the inter frame is coded or decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/predict/prediction_history.h"
#include "codec/predict/prediction_motion.h"
#include "codec/predict/prediction_motion_kernels.h"

namespace trivelet::prediction {

class Compensator {
 public:
  explicit Compensator(const SubpelKernels& k) : kernels_(k) {}
  /// Makes the compensated previous frame of `frame` in a slot of the history.
  void make(History& history, const BlockMotion& motion, int frame, Limits limits, int slot);
  /// Makes the errors of the previous frame, shifted by the whole samples of the vectors of `frame`.
  void move_errors(History& history, const BlockMotion& motion, int frame);

 private:
  Patch between(Patch from, int quarter_y, int quarter_x, int w, int h, Limits limits);

  const SubpelKernels& kernels_;
  std::vector<std::int16_t> edge_;
  std::vector<std::int16_t> first_;
  std::vector<std::int16_t> second_;
  std::vector<std::int32_t> scratch_;
};

}  // namespace trivelet::prediction
