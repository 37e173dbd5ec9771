// The coded part of a block: the numbers and errors from which the next row is predicted (FORMAT.md "Neighbours"), and
// the work per row that encoder and decoder share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/predict/prediction.h"
#include "codec/predict/prediction_block.h"
#include "codec/predict/prediction_kernels.h"
#include "codec/predict/prediction_motion.h"
#include "trivelet/large_memory.h"

namespace trivelet::prediction {

/// Rows of numbers and errors. Numbers of at least the last `kept` frames are available.
class History {
 public:
  void start(int kept, int height, int width) {
    height_ = height;
    width_ = width;
    stride_ = static_cast<std::size_t>(width) + 2 * kMargin + 2 * kKernelPadding;
    for (std::size_t i = 0; i < slots_.size(); ++i)
      slots_[i] = static_cast<std::uint8_t>(i % static_cast<std::size_t>(kept));
    for (std::size_t i = 0; i < slots_.size(); ++i) before_[i] = slots_[i > 1 ? i - 1 : 0];
    moved_.fill(0);
    used_ = kept - 1;
    add_slot();
    std::fill_n(numbers_.begin(), stride_, std::int16_t{0});
    const std::size_t errors = (3 * static_cast<std::size_t>(height) + 1) * stride_;
    if (errors_.size() < errors) errors_.resize(errors);
    std::fill_n(errors_.begin(), stride_, std::uint16_t{0});
  }

  std::int16_t* row(int frame, int y) { return &numbers_[place(slots_[static_cast<std::size_t>(frame)], y)]; }
  const std::int16_t* row(int frame, int y) const {
    return &numbers_[place(slots_[static_cast<std::size_t>(frame)], y)];
  }
  std::uint16_t* errors(int frame, int y) { return &errors_[place(frame % 2, y)]; }

  // An inter frame sees a compensated previous frame. Its numbers lie in a slot; there is memory for the errors of one.
  std::uint16_t* moved_errors(int y) { return &errors_[place(2, y)]; }
  const std::uint16_t* errors_before(int frame, int y) {
    return moved_[static_cast<std::size_t>(frame)] ? moved_errors(y) : errors(frame - 1, y);
  }
  /// Adds memory for one more frame. Invalidates pointers to rows.
  int add_slot() {
    const std::size_t size = (static_cast<std::size_t>(used_ + 1) * static_cast<std::size_t>(height_) + 1) * stride_;
    if (numbers_.size() < size) numbers_.resize(size);
    return used_++;
  }
  std::int16_t* slot_row(int slot, int y) { return &numbers_[place(slot, y)]; }
  void set_before(int frame, int slot) {
    before_[static_cast<std::size_t>(frame)] = static_cast<std::uint8_t>(slot);
    moved_[static_cast<std::size_t>(frame)] = 1;
  }
  std::ptrdiff_t stride() const { return static_cast<std::ptrdiff_t>(stride_); }
  /// Sets the margins of a row of a compensated frame.
  void end_moved_row(std::int16_t* r) const {
    std::fill_n(r - kMargin, kMargin, r[0]);
    std::fill_n(r + width_, kMargin, r[width_ - 1]);
  }
  void end_moved_errors(int y) {
    std::uint16_t* e = moved_errors(y);
    std::fill_n(e - kMargin, kMargin, std::uint16_t{0});
    e[width_] = 0;
  }

  /// A row that taps read. FORMAT.md "Neighbours" defines the rows outside the block.
  const std::int16_t* neighbour(int frame, int y, int frames_before, int rows_away) {
    const int to = y + rows_away;
    const auto f = static_cast<std::size_t>(frame);
    if (frames_before == 0) return to >= 0 ? row(frame, to) : frame > 0 ? slot_row(before_[f], 0) : zeros();
    const int slot =
        frames_before == 1 ? before_[f] : slots_[static_cast<std::size_t>(std::max(frame - frames_before, 0))];
    return slot_row(slot, std::clamp(to, 0, height_ - 1));
  }
  /// Call begin_row() before a row is coded or decoded, and end_row() after it.
  void begin_row(int frame, int y) {
    std::int16_t* r = row(frame, y);
    std::fill_n(r - kMargin, kMargin, neighbour(frame, y, 0, -1)[0]);
    std::uint16_t* e = errors(frame, y);
    std::fill_n(e - kMargin, kMargin, std::uint16_t{0});
  }
  void end_row(int frame, int y) {
    std::int16_t* r = row(frame, y);
    std::fill_n(r + width_, kMargin, r[width_ - 1]);
    errors(frame, y)[width_] = 0;
  }

  const std::int16_t* zeros() const { return &numbers_[kBefore]; }
  const std::uint16_t* no_errors() const { return &errors_[kBefore]; }
  int height() const { return height_; }
  int width() const { return width_; }

 private:
  static constexpr std::size_t kBefore = kMargin + kKernelPadding;
  std::size_t place(int slot, int y) const {
    return (static_cast<std::size_t>(slot) * static_cast<std::size_t>(height_) + static_cast<std::size_t>(y) + 1) *
               stride_ +
           kBefore;
  }

  std::array<std::uint8_t, kMostFrames> slots_{};   // slot of each frame
  std::array<std::uint8_t, kMostFrames> before_{};  // slot of the previous frame as each frame sees it
  std::array<std::uint8_t, kMostFrames> moved_{};   // whether that slot holds a compensated frame
  int used_ = 0;                                    // slots in use
  int height_ = 0;
  int width_ = 0;
  std::size_t stride_ = 0;
  LargeVector<std::int16_t> numbers_;  // the first row is zeros
  LargeVector<std::uint16_t> errors_;  // of two frames and one compensated frame; the first row is zeros
};

/// The rows of taps, each from the column of its tap on.
struct TapRows {
  std::array<const std::int16_t*, kMaxTaps> at;  ///< only those found are set

  /// Of the taps from number `first` on, of `taps` in all. Returns how many these are.
  int find(History& history, int frame, int y, int first, int taps) {
    const std::int16_t* row = nullptr;
    for (int i = first; i < taps; ++i) {
      const Tap& t = kTaps[static_cast<std::size_t>(i)];
      const Tap& last = kTaps[static_cast<std::size_t>(std::max(i - 1, 0))];
      if (i == first || t.frame != last.frame || t.row != last.row) row = history.neighbour(frame, y, t.frame, t.row);
      at[static_cast<std::size_t>(i - first)] = row + t.column;
    }
    return taps - first;
  }
};

/// The rows around row y that tell its contexts.
NumberRows number_rows(History& history, int frame, int y);
ErrorRows error_rows(History& history, int frame, int y);

/// The weights of a class, in the order of kTaps.
using Weights = std::vector<std::int16_t>;

/// The fields of a block's header.
struct BlockHead {
  int tap_set = 0;
  int log2_edge = 4;
  int log2_frames = 2;
  Weights first;                 ///< of the first frame
  std::vector<Weights> classes;  ///< of the other frames
  BlockMotion motion;            ///< only in streams with inter frames
};

/// What a row needs before its first sample: weighted sums of the taps above and in previous frames, sums of errors,
/// and where all of these neighbours are equal.
class RowAhead {
 public:
  explicit RowAhead(const Kernels& k) : kernels_(k) {}

  void start(const BlockHead& head, const Tiles& tiles, const std::uint8_t* map, int width) {
    head_ = &head;
    tiles_ = tiles;
    map_ = map;
    const std::size_t size = static_cast<std::size_t>(width) + kKernelPadding;
    sums.resize(size);
    around.resize(size);
    flat.resize(size);
  }

  /// `known`: the numbers of the row are, and `sums` become those of all taps.
  void prepare(History& history, int frame, int y, bool known = false);
  /// The static contexts of a prepared row (FORMAT.md "Known ahead").
  void contexts(bool first_frame, int width, std::uint8_t* out) const;

  /// Calls f(from, to, weights) for each stretch of the row that has one class.
  template <class F>
  void for_runs(int frame, int y, int width, const F& f) const {
    if (frame == 0) return f(0, width, head_->first);
    const std::uint8_t* map =
        map_ + (frame >> tiles_.log2_frames) * tiles_.tiles_per_group() + (y >> tiles_.log2_edge) * tiles_.columns;
    for (int t = 0; t < tiles_.columns;) {
      int end = t + 1;
      while (end < tiles_.columns && map[end] == map[t]) ++end;
      f(t << tiles_.log2_edge, std::min(end << tiles_.log2_edge, width), head_->classes[map[t]]);
      t = end;
    }
  }

  std::vector<std::int32_t> sums;     ///< of all taps, except those in the row unless it is known
  std::vector<std::uint16_t> around;  ///< sums of the errors above and in the previous frame
  std::vector<std::uint8_t> flat;  ///< 0 = not flat, else 1 + context; flat also requires an equal sample to the left

 private:
  const Kernels& kernels_;
  const BlockHead* head_ = nullptr;
  Tiles tiles_;
  const std::uint8_t* map_ = nullptr;
};

/// Loads the numbers of all frames of a block. Returns false if all are 0.
bool load(const BlockSamples<VolumeView>& block, History& history);
/// Turns the numbers of a row into samples.
void store_row(const History& history, int frame, int y, const BlockSamples<MutableVolumeView>& block);

/// The prediction in sixteenths of a sample.
inline int prediction_of(std::int32_t sum, int low, int high) {
  constexpr int kShift = kWeightBits - kFractionBits;
  return std::clamp((sum + (1 << (kShift - 1))) >> kShift, low << kFractionBits, high << kFractionBits);
}
inline int error_of_prediction(int number, int prediction) {
  const int d = (number << kFractionBits) - prediction;
  return std::min((d < 0 ? -d : d) >> (kFractionBits - 2), kMaxError);
}
/// The context of a sample that is not flat. `fraction`: of the prediction, -8..7.
inline std::size_t context_of(const LevelEntry& level, int fraction) {
  const int f = std::min((fraction < 0 ? -fraction : fraction) >> 1, 3);
  return level.context + static_cast<std::size_t>(f & level.fractions);
}

}  // namespace trivelet::prediction
