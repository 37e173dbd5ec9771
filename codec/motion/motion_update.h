// The update step of lifting along motion: every low frame of a level gets a part of the differences back, at the
// places that the high frames were predicted from.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/motion/lifted_component.h"

namespace trivelet {

/// Used by one thread at a time; divides its work over the pool.
class MotionUpdater {
 public:
  explicit MotionUpdater(const LiftedComponent& lifted);
  /// Updates the low frames of a level. `inverse`: undoes it.
  void run(int level, bool inverse);

 private:
  /// Cells of a row that give back alike: samples of [begin, end) by so many eighths, a quarter of them if they have
  /// two references.
  struct Run {
    std::int32_t begin = 0, end = 0;
    std::int32_t right = 0, down = 0;
    std::int32_t share = 0;
  };
  /// What a high frame gives back to one of its references, by rows of cells.
  struct FrameRuns {
    struct Row {
      std::size_t begin = 0, end = 0;  // of runs
      int top = 0, bottom = 0;         // rows of the reference that they reach
    };
    std::vector<Run> runs;
    std::vector<Row> rows;
  };
  /// Rows [y0, y1) of a low frame, with the sums of what is given back to them and of its weights.
  struct Stripe {
    int y0, y1;
    std::int32_t *sum, *total;
  };

  std::vector<FrameRuns> find_runs(int level) const;
  void find_frame_runs(const MotionField& f, int reference, FrameRuns& out) const;
  void scatter_frame(int high, const FrameRuns& f, const Stripe& stripe) const;
  void scatter_run(int high, int y, const Run& run, const Stripe& stripe) const;
  void scatter_row(const std::int32_t* h, const std::int32_t* g, int n, int x, const std::int32_t weight[4],
                   std::int32_t* sum, std::int32_t* total) const;
  void apply(int t, const Stripe& stripe, bool inverse) const;

  const LiftedComponent& lifted_;
  const std::int32_t limit_;                        // of an update
  std::vector<std::vector<std::int32_t>> scratch_;  // by worker: sums of a stripe, then totals
};

}  // namespace trivelet
