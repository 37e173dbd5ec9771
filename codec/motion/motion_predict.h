// The prediction step of motion-compensated lifting: every high frame of a level becomes the difference to its
// prediction from low frames, in overlapped blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/motion/lifted_component.h"

namespace trivelet {

/// Used by one thread at a time; divides its work among the pool's threads. S: as of LiftedComponent.
template <class S>
class MotionPredictor {
 public:
  explicit MotionPredictor(const LiftedComponent<S>& lifted);
  /// Predicts the high frames of a level. `add` adds the predictions, which undoes the step.
  void run(int level, bool add);
  /// Predicts some of them, which do not refer to each other.
  void run(int level, const std::vector<int>& frames, bool add);

 private:
  static constexpr int kBandRows = 32;  // samples predicted at once, which saves filtering rows twice
  static constexpr int kMostRun = kMotionCell * kMotionRoot + kMotionCell;  // columns that one rectangle may reach

  /// Scratch memory of one worker.
  struct Scratch {
    static constexpr int kColumns = kMostRun + kMotionTaps;
    S patch[(kBandRows + kMotionTaps) * kColumns];  // of a reference, if a block reaches beyond the picture
    std::int32_t first[kBandRows * kMostRun];
    std::int32_t second[kBandRows * kMostRun];
    std::vector<const MotionCell*> cells;  // of a band, the first one of each row
    std::vector<std::uint8_t> taken;       // cells that belong to a rectangle already
    std::vector<std::uint8_t> uniform;     // tiles whose four cells have equal motion
    std::vector<std::int32_t> sums;        // of the samples in other tiles, by weight
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
  /// Rows and columns [begin, end) of cells or of tiles. Cell (r, c) of a band is that above and left of tile (r, c).
  struct Rectangle {
    int top, bottom, left, right;
  };
  /// A band of tiles in a frame.
  struct Band {
    int t;
    MotionReferences references;
    int first, rows;  // of tiles
    bool add;
    Scratch& s;
  };

  // A tile: the samples around the corner of four cells, which all predict them.
  int tile_rows() const { return lifted_.height() / lifted_.cell_y + 2; }  // the last ones may be empty
  int tile_columns() const { return lifted_.width() / lifted_.cell_x + 2; }
  int tile_top(int i) const;
  int tile_left(int i) const;

  const MotionCell& cell(const Scratch& s, int r, int c) const {
    return s.cells[static_cast<std::size_t>(r)][lifted_.cell_column(c - 1)];
  }
  void predict_band(const Band& band);
  void find_uniform(const Band& band) const;
  Rectangle take_rectangle(const Band& band, int r, int c) const;
  Rectangle reached_tiles(const Band& band, const Rectangle& cells) const;
  void predict_rectangle(const Band& band, const Rectangle& cells);
  void lift_sums(const Band& band);
  int predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block, Scratch& s,
                   Samples p[2]);
  Samples look_up(int t, MotionVector v, const Block& block, Scratch& s, std::int32_t* out) const;

  const LiftedComponent<S>& lifted_;
  const LiftKernels<S>& kernels_;
  const int up_;          // fractional bits that the field lacks compared with a prediction
  const int shift_;       // from a prediction to the field
  const int band_tiles_;  // rows of tiles in a band
  std::vector<Scratch> scratch_;
};

}  // namespace trivelet
