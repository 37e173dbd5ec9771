// The motion of a block of the predictive profile (FORMAT.md "Moved frames"): one vector for every cell of the inter
// frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trivelet::prediction {

/// The displacement of the reference in the frame before, in quarters of a sample.
struct MotionVector {
  std::int16_t x = 0;
  std::int16_t y = 0;
  bool operator==(const MotionVector&) const = default;
};
inline constexpr int kMaxVector = 4095;
inline constexpr int kLeastCell = 3;  ///< smallest cells have an edge of 2^3 samples
inline constexpr int kMostCell = 6;
inline constexpr int kVectorContexts = 4;

struct BlockMotion {
  int log2_cell = 4;
  int rows = 0;  ///< of cells
  int columns = 0;
  std::vector<std::uint8_t> moves;    ///< by frame, 1 for inter frames; empty: there are none
  std::vector<MotionVector> vectors;  ///< by frame, row and column

  bool moves_in(int frame) const { return !moves.empty() && moves[static_cast<std::size_t>(frame)] != 0; }
  /// Allocates the vectors of this number of frames, and sets all to 0.
  void start(int frames, int height, int width);
  MotionVector* of(int frame) { return vectors.data() + static_cast<std::ptrdiff_t>(frame) * rows * columns; }
  const MotionVector* of(int frame) const {
    return vectors.data() + static_cast<std::ptrdiff_t>(frame) * rows * columns;
  }

  /// The predicted vector of a cell, and the context of the difference in x. The context of y is one higher.
  struct Guess {
    MotionVector vector;
    std::size_t context = 0;
  };
  Guess guess(int frame, int row, int column) const;
};

}  // namespace trivelet::prediction
