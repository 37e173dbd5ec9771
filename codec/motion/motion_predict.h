// The prediction step of motion-compensated lifting: every high frame of a level becomes the difference to its
// prediction from low frames, in overlapped blocks.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "codec/motion/lifted_component.h"
#include "codec/motion/narrow_kernels.h"

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

  static constexpr int kStride = 96;  // of predictions: kMostRun + kNarrowSlack, in whole cache lines

  /// Scratch memory of one worker.
  struct Scratch {
    static constexpr int kColumns = kMostRun + kMotionTaps;
    S patch[(kBandRows + kMotionTaps + 1) * kColumns];  // of a reference, if a block reaches beyond the picture
    alignas(64) std::int32_t wide[2][kBandRows * kStride];
    alignas(64) std::int16_t narrow[2][kBandRows * kStride + kNarrowSlack];
    std::vector<std::uint64_t> keys;    // of a band's cells, by rows of them: MotionCell::prediction_key()
    std::vector<std::uint8_t> taken;    // cells that belong to a rectangle already
    std::vector<std::uint8_t> uniform;  // tiles whose four cells have equal motion
    std::vector<std::int32_t> sums;     // of the samples in other tiles, by weight
    template <class P>
    P* prediction(int i) {
      if constexpr (std::is_same_v<P, std::int16_t>)
        return narrow[i];
      else
        return wide[i];
    }
  };
  /// Samples of a prediction, in any memory. P: std::int32_t, or std::int16_t where that holds all of them.
  template <class P>
  struct Samples {
    const P* data = nullptr;
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

  // The weights that a rectangle of cells has in the columns and rows of the tiles it reaches, by sample.
  struct Windows {
    std::int32_t x[kMostRun], y[kBandRows];
  };
  /// The weights of a tile's rows or columns: where a cell's motion goes on, begins, or ends.
  struct Ramp {
    std::int32_t of[3][kMotionCell];
    explicit Ramp(int size);
  };
  enum Slope { kFlat, kRises, kFalls };

  const MotionCell& cell(const Band& band, int r, int c) const {
    const MotionField& f = lifted_.motion.fields[static_cast<std::size_t>(band.t)];
    return f[lifted_.motion.grid.index(lifted_.cell_row(band.first + r - 1), lifted_.cell_column(c - 1))];
  }
  void predict_band(const Band& band);
  void find_keys(const Band& band) const;
  void find_uniform(const Band& band) const;
  void clear_sums(const Band& band) const;
  Rectangle take_rectangle(const Band& band, int r, int c) const;
  Rectangle reached_tiles(const Band& band, const Rectangle& cells) const;
  void set_windows(const Band& band, const Rectangle& cells, const Rectangle& tiles, Windows& out) const;
  void predict_rectangle(const Band& band, const Rectangle& cells);
  // False where P does not hold the prediction; nothing is changed then.
  template <class P>
  bool predict_tiles(const Band& band, const Rectangle& cells, const Rectangle& tiles, const Block& block);
  template <class P>
  bool lift(S* x, const Samples<P>* p, int count, int rows, int columns, bool add) const;
  void lift_sums(const Band& band);
  template <class P>
  int predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block, Scratch& s,
                   Samples<P> p[2]);
  template <class P>
  Samples<P> look_up(int t, MotionVector v, const Block& block, Scratch& s, P* out) const;
  template <class P>
  bool interpolate(const S* in, std::ptrdiff_t stride, P* out, const Block& block, int phase_x, int phase_y) const;
  template <class F>
  void for_runs(const Band& band, const Rectangle& tiles, const F& f) const;

  const LiftedComponent<S>& lifted_;
  const LiftKernels<S>& kernels_;
  const NarrowKernels& narrow_kernels_;
  const Ramp ramp_y_, ramp_x_;
  const int up_;          // fractional bits that the field lacks compared with a prediction
  const int shift_;       // from a prediction to the field
  const int band_tiles_;  // rows of tiles in a band
  std::vector<Scratch> scratch_;
};

}  // namespace trivelet
