// The prediction step of motion-compensated lifting: every high frame of a level becomes the difference to its
// prediction from low frames, in overlapped blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/motion/lifted_component.h"

namespace trivelet {

/// Used by one thread at a time; divides its work among the pool's threads.
class MotionPredictor {
 public:
  explicit MotionPredictor(const LiftedComponent& lifted);
  /// Predicts the high frames of a level. `add` adds the predictions, which undoes the step.
  void run(int level, bool add);

 private:
  static constexpr int kBandTiles = 4;  // rows of tiles predicted at once, which saves filtering rows twice
  static constexpr int kMostRun = 64;   // samples of a row predicted at once in a worker's memory

  /// Scratch memory of one worker.
  struct Scratch {
    static constexpr int kRows = kBandTiles * kMotionCell;
    static constexpr int kColumns = kMostRun + kMotionTaps;
    std::int32_t patch[(kRows + kMotionTaps) * kColumns];  // of a reference, if a block reaches beyond the picture
    std::int32_t first[kRows * kMostRun];                  // a prediction, or those of the four cells around a corner
    std::int32_t second[kRows * kMostRun];
    std::vector<std::uint8_t> tiles;  // of a band: Tile
  };
  /// Samples of a prediction, in any memory.
  struct Samples {
    const std::int32_t* data = nullptr;
    std::ptrdiff_t stride = 0;
  };
  /// A rectangle of a frame, from (y, x) on.
  struct Block {
    int y, x, rows, columns;
  };
  enum Tile : std::uint8_t { kMixed, kUniform, kDone };  // whether its four cells have equal motion
  /// Limits of a prediction of samples with equal motion.
  struct Reach {
    int columns;
    bool down;
  };

  // A tile: the samples around the corner of four cells, which all predict them.
  int tile_rows() const { return lifted_.height() / lifted_.cell_y + 2; }  // the last ones may be empty
  int tile_columns() const { return lifted_.width() / lifted_.cell_x + 2; }
  int tile_top(int i) const;
  int tile_left(int i) const;

  const MotionCell& cell(const MotionField& f, int y, int x) const {
    return f[lifted_.motion.grid.index(lifted_.cell_row(y), lifted_.cell_column(x))];
  }
  void predict_band(int t, const MotionReferences& references, int first, bool add, Scratch& s);
  void find_uniform(const MotionField& f, int first, int rows, std::vector<std::uint8_t>& tiles) const;
  Reach reach(const MotionCell& c, const MotionReferences& references) const;
  void predict_alike(int t, const MotionCell& c, const MotionReferences& references, const Block& block, bool add,
                     Scratch& s);
  void predict_corner(int t, const MotionField& f, const MotionReferences& references, int tile_y, int tile_x,
                      const Block& block, bool add, Scratch& s);
  int predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block, Scratch& s,
                   std::int32_t* out, Samples p[2]);
  Samples look_up(int t, MotionVector v, const Block& block, Scratch& s, std::int32_t* out,
                  std::ptrdiff_t out_stride) const;

  const LiftedComponent& lifted_;
  const int up_;     // fractional bits that the field lacks compared with a prediction
  const int shift_;  // from a prediction to the field
  std::int32_t weights_[1 << 4][kMotionCell * kMotionCell] = {};  // of a tile's samples, by the set of its cells
  std::vector<Scratch> scratch_;
};

}  // namespace trivelet
