// The guess of a vector is the median of three neighbours, as in H.264.
#include "codec/predict/prediction_motion.h"

#include <algorithm>

namespace trivelet::prediction {

namespace {

std::int16_t middle(std::int16_t a, std::int16_t b, std::int16_t c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

void BlockMotion::start(int frames, int height, int width) {
  rows = ((height - 1) >> log2_cell) + 1;
  columns = ((width - 1) >> log2_cell) + 1;
  vectors.assign(static_cast<std::size_t>(frames) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns),
                 {});
}

BlockMotion::Guess BlockMotion::guess(int frame, int row, int column) const {
  const MotionVector* v = of(frame) + row * columns + column;
  const MotionVector left = column > 0 ? v[-1] : row > 0 ? v[-columns] : MotionVector{};
  const MotionVector above = row > 0 ? v[-columns] : left;
  const MotionVector beside = row == 0 ? left : column + 1 < columns ? v[1 - columns] : v[-columns];
  Guess g{{middle(left.x, above.x, beside.x), middle(left.y, above.y, beside.y)}};
  if (!(left == above && above == beside)) g.context = 2;
  return g;
}

}  // namespace trivelet::prediction
