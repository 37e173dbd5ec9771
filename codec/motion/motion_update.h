// The update step of motion-compensated lifting: every low frame of a level gets a part of the differences back, at the
// places that the high frames were predicted from.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/motion/lifted_component.h"

namespace trivelet {

/// Used by one thread at a time; divides its work among the pool's threads. S: as of LiftedComponent.
template <class S>
class MotionUpdater {
 public:
  explicit MotionUpdater(const LiftedComponent<S>& lifted);
  /// Updates the low frames of a level, or undoes it with `inverse`.
  void run(int level, bool inverse);

 private:
  /// Cells of a row with the same update: samples [begin, end), their offset in eighths, and their share, which is
  /// smaller if they have two references. If all differences are zero, only their weights count.
  struct Run {
    std::int32_t begin = 0, end = 0;
    std::int32_t right = 0, down = 0;
    std::int32_t share = 0;
    bool is_zero = false;
  };
  /// The updates from a high frame to one of its references, by rows of cells.
  struct FrameRuns {
    struct Row {
      std::size_t begin = 0, end = 0;  // indices of runs
      int top = 0, bottom = 0;         // rows of the reference that they reach
    };
    std::vector<Run> runs;
    std::vector<Row> rows;
  };
  /// Columns [begin, end).
  struct Span {
    int begin, end;
  };
  /// Scratch memory of one worker, for a stripe.
  struct Scratch {
    std::vector<std::int32_t> sums;     // of differences, then of their weights
    std::vector<std::uint8_t> changes;  // by kChunk columns: whether a difference that is not zero arrives
    std::vector<Span> spans;            // the columns that change
  };
  static constexpr int kChunk = 32;
  /// Rows [y0, y1) of a low frame, with the sums of differences and of their weights.
  struct Stripe {
    int y0, y1;
    std::int32_t *sum, *total;
    Scratch& s;
  };

  std::vector<FrameRuns> find_runs(int level) const;
  std::vector<std::uint8_t> find_zeros(int high) const;
  void find_frame_runs(const MotionField& f, const std::vector<std::uint8_t>& zeros, int reference,
                       FrameRuns& out) const;
  template <class F>
  static void each_run(const FrameRuns& f, const Stripe& stripe, const F& act);
  void mark_changes(const FrameRuns& f, const Stripe& stripe) const;
  void find_spans(Scratch& s) const;
  void scatter_frame(int high, const FrameRuns& f, const Stripe& stripe) const;
  void scatter_run(int high, int y, const Run& run, const Stripe& stripe) const;
  void scatter_row(const S* h, const S* g, int n, int x, const std::int32_t weight[4], std::int32_t* sum,
                   std::int32_t* total) const;
  void apply(int t, const Stripe& stripe, bool inverse) const;

  const LiftedComponent<S>& lifted_;
  const LiftKernels<S>& kernels_;
  const std::int32_t limit_;      // of the change by an update
  std::vector<Scratch> scratch_;  // by worker
};

}  // namespace trivelet
