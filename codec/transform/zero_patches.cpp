// Marks and clears zero patches; zero_patches.h says why.
#include "codec/transform/zero_patches.h"

#include <algorithm>

namespace trivelet {

ZeroPatches::ZeroPatches(const BlockGrid& grid, const SubbandTable& target)
    : levels_(target.decomposition().spatial_levels), rows_(grid.rows()), columns_(grid.columns()) {
  for (int level = 0; level < levels_; ++level) sides_.push_back(grid.side(levels_ - level));
  flags_.resize(row(target.shape().frames, 0, 1, 0));
}

ZeroPatches ZeroPatches::select(int frame, int dropped, int first_row) const {
  ZeroPatches one(*this, dropped, first_row);
  const auto at = [&](int f) { return flags_.begin() + static_cast<std::ptrdiff_t>(row(f, 0, 1, 0)); };
  one.flags_.assign(at(frame), at(frame + 1));
  return one;
}

template <class T>
void ZeroPatches::clear_row(int frame, int level, int y, int width, T* values) const {
  y += first_row_ >> level;
  level += dropped_;
  const int side = sides_[static_cast<std::size_t>(level)];
  const int by = y / 2 / side;
  const auto clear = [&](int orientation, T* part, int columns) {
    const std::uint8_t* left_out = &flags_[row(frame, level, orientation, by)];
    for (int bx = 0, end; bx * side < columns; bx = end) {
      for (end = bx + 1; end * side < columns && left_out[end] == left_out[bx];) ++end;
      if (left_out[bx]) std::fill(part + bx * side, part + std::min(end * side, columns), T{});
    }
  };
  const int low = (width + 1) / 2;
  if (y % 2 != 0) clear(2, values, low);
  clear(y % 2 != 0 ? 3 : 1, values + low, width - low);
}

template void ZeroPatches::clear_row(int, int, int, int, float*) const;
template void ZeroPatches::clear_row(int, int, int, int, std::int32_t*) const;

}  // namespace trivelet
