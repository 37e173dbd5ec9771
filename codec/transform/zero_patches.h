// Patches of detail subbands that are zero and were not written, which at usual rates are most of them. The inverse
// transform clears them row by row just before it reads a row, so that zeros do not go through memory twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/transform/tree.h"

namespace trivelet {

class ZeroPatches {
 public:
  /// For a field of `target`'s shape (t+2D) that blocks of `grid` are decoded into. No patch is marked yet.
  ZeroPatches(const BlockGrid& grid, const SubbandTable& target);

  /// Marks the patch of block (by, bx) in this frame of a detail subband. Threads may set different blocks at once.
  void set(const Subband& band, int frame_of_band, int by, int bx, bool left_out) {
    const int frame = band.frame_origin + frame_of_band * band.frame_step;
    flags_[row(frame, levels_ - band.resolution, band.orientation, by) + static_cast<std::size_t>(bx)] = left_out;
  }

  /// Whether set() marked it.
  bool is_left_out(const Subband& band, int frame_of_band, int by, int bx) const {
    const int frame = band.frame_origin + frame_of_band * band.frame_step;
    return flags_[row(frame, levels_ - band.resolution, band.orientation, by) + static_cast<std::size_t>(bx)] != 0;
  }
  /// The patches of one frame, as of a field of that frame alone, which has neither the `dropped` finest levels nor the
  /// rows of the frame before `first_row`.
  ZeroPatches select(int frame, int dropped, int first_row) const;

  /// Writes the zeros of row y of the `width` columns that are low after `level` splits. `values` is the row's first
  /// value.
  template <class T>
  void clear_row(int frame, int level, int y, int width, T* values) const;

 private:
  // Without flags.
  ZeroPatches(const ZeroPatches& all, int dropped, int first_row)
      : levels_(all.levels_),
        rows_(all.rows_),
        columns_(all.columns_),
        dropped_(dropped),
        first_row_(first_row),
        sides_(all.sides_) {}
  std::size_t row(int frame, int level, int orientation, int by) const {
    return static_cast<std::size_t>((((frame * levels_ + level) * 3 + orientation - 1) * rows_ + by) * columns_);
  }

  int levels_, rows_, columns_;
  int dropped_ = 0;                  // finest levels that the field lacks
  int first_row_ = 0;                // row of the frame where the field begins
  std::vector<int> sides_;           // side of a patch, by level
  std::vector<std::uint8_t> flags_;  // [frame][level][orientation - 1][block row][block column]
};

}  // namespace trivelet
