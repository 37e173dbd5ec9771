// The encoder's motion search in a block of the predictive profile. (FORMAT.md does not prescribe a search.) It chooses
// vectors for few bits, from those of neighbouring cells and of a reduced picture, and refines them to quarters of a
// sample.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/predict/prediction_history.h"
#include "codec/predict/prediction_motion.h"
#include "codec/predict/prediction_motion_kernels.h"

namespace trivelet::prediction {

class MotionSearch {
 public:
  explicit MotionSearch(const SubpelKernels& k) : kernels_(k) {}
  /// Searches all frames of `history`, with cells of motion.log2_cell.
  void find(const History& history, int frames, Limits limits, BlockMotion& motion);

 private:
  struct Cell {
    int row = 0, column = 0;
    int y = 0, x = 0;
    int height = 0, width = 0;
  };
  struct Found {
    MotionVector vector;
    float bits = 0;
  };
  Cell cell(const BlockMotion& motion, int row, int column) const;
  void shrink(const History& history, int frame, std::vector<std::int16_t>& out) const;
  MotionVector search_small(int region_row, int region_column) const;
  void search_small();
  void find_shifts(const History& history, int frame);
  void pad(const History& history, int frame);
  bool search_frame(const History& history, int frame, BlockMotion& motion);
  Found search(int frame, const Cell& c, const BlockMotion& motion);
  bool is_inside(const Cell& c, int dy, int dx) const;
  bool try_whole(const Cell& c, MotionVector guess, int dy, int dx, Found& best) const;
  void refine(const Cell& c, MotionVector guess, Found& best);

  const SubpelKernels& kernels_;
  Limits limits_;
  int height_ = 0;
  int width_ = 0;
  int small_height_ = 0;
  int small_width_ = 0;
  int regions_ = 0;  // regions in a row of the reduced picture
  std::vector<std::int16_t> small_;
  std::vector<std::int16_t> small_before_;
  std::vector<MotionVector> region_vectors_;
  std::array<MotionVector, 2> shifts_;  // of the whole block, down and across
  std::vector<std::int32_t> means_;
  std::vector<std::int16_t> padded_;  // the frame before, with repeated edges
  Patch now_;
  Patch before_;
  std::vector<std::uint32_t> still_;                 // SAD of each cell and the same position in the frame before
  std::array<std::vector<std::int16_t>, 3> halves_;  // around the best whole vector
  std::vector<std::int32_t> scratch_;
};

}  // namespace trivelet::prediction
