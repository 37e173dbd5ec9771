// Prediction by rectangles of cells with equal motion (motion_predict.h).
#include "codec/motion/motion_predict.h"

#include <algorithm>
#include <utility>

namespace trivelet {

namespace {

constexpr int kTapsAhead = kMotionTapsBefore;
constexpr int kTapsBehind = kMotionTaps - kTapsAhead - 1;

bool takes_past(const MotionCell& c, const MotionReferences& references) { return c.uses(0) || references.other < 0; }
bool takes_other(const MotionCell& c, const MotionReferences& references) { return c.uses(1) && references.other >= 0; }

}  // namespace

template <class S>
MotionPredictor<S>::Ramp::Ramp(int size) {
  for (int i = 0; i < size; ++i) {
    of[kFlat][i] = kMotionWeight;
    of[kRises][i] = motion_weight(size, i);
    of[kFalls][i] = kMotionWeight - motion_weight(size, i);
  }
}

template <class S>
MotionPredictor<S>::MotionPredictor(const LiftedComponent<S>& lifted)
    : lifted_(lifted),
      kernels_(lifted.kernels.template of<S>()),
      narrow_kernels_(narrow_kernels(lifted.simd)),
      ramp_y_(lifted.cell_y),
      ramp_x_(lifted.cell_x),
      up_(kMotionFraction - lifted.component.fraction),
      shift_(lifted.component.fraction == 0 ? up_ : 0),
      band_tiles_(kBandRows / lifted.cell_y),
      scratch_(static_cast<std::size_t>(lifted.pool.threads())) {}

template <class S>
int MotionPredictor<S>::tile_top(int i) const {
  return std::clamp(i * lifted_.cell_y - lifted_.cell_y / 2, 0, lifted_.height());
}
template <class S>
int MotionPredictor<S>::tile_left(int i) const {
  return std::clamp(i * lifted_.cell_x - lifted_.cell_x / 2, 0, lifted_.width());
}

template <class S>
void MotionPredictor<S>::run(int level, bool add) {
  run(level, motion_frames(level, lifted_.motion.places), add);
}

template <class S>
void MotionPredictor<S>::run(int level, const std::vector<int>& frames, bool add) {
  const int bands = (tile_rows() + band_tiles_ - 1) / band_tiles_;
  const int count = static_cast<int>(frames.size());
  // A band of all frames before the next one: what two frames refer to is in the cache for the second one.
  lifted_.pool.parallel_for(count * bands, [&](int i, int worker) {
    const int t = frames[static_cast<std::size_t>(i % count)];
    const int first = i / count * band_tiles_;
    predict_band({t, motion_references(t, level, lifted_.motion.places), first,
                  std::min(band_tiles_, tile_rows() - first), add, scratch_[static_cast<std::size_t>(worker)]});
  });
}

// Rectangles of cells with equal motion predict what their windows reach. Tiles in which only one motion arrives are
// lifted directly, because their sums by weight could overflow; the others when all cells were there.
template <class S>
void MotionPredictor<S>::predict_band(const Band& band) {
  Scratch& s = band.s;
  const int samples = (tile_top(band.first + band.rows) - tile_top(band.first)) * lifted_.width();
  if (samples <= 0) return;
  find_keys(band);
  find_uniform(band);
  clear_sums(band);
  const int columns = tile_columns() + 1;
  s.taken.assign(static_cast<std::size_t>((band.rows + 1) * columns), 0);
  for (int r = 0; r <= band.rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (!s.taken[static_cast<std::size_t>(r * columns + c)]) predict_rectangle(band, take_rectangle(band, r, c));
  lift_sums(band);
}

template <class S>
void MotionPredictor<S>::find_keys(const Band& band) const {
  const int columns = tile_columns() + 1;
  band.s.keys.resize(static_cast<std::size_t>((band.rows + 1) * columns));
  std::uint64_t* to = band.s.keys.data();
  for (int r = 0; r <= band.rows; ++r, to += columns) {
    const MotionCell* const from = &cell(band, r, 0) - lifted_.cell_column(-1);
    for (int c = 0; c < columns; ++c) to[c] = from[lifted_.cell_column(c - 1)].prediction_key();
  }
}

template <class S>
void MotionPredictor<S>::find_uniform(const Band& band) const {
  const int columns = tile_columns();
  band.s.uniform.resize(static_cast<std::size_t>(band.rows * columns));
  const std::uint64_t* above = band.s.keys.data();
  std::uint8_t* to = band.s.uniform.data();
  for (int j = 0; j < band.rows; ++j, above += columns + 1, to += columns) {
    const std::uint64_t* const here = above + columns + 1;
    for (int i = 0; i < columns; ++i)
      to[i] = ((above[i] ^ above[i + 1]) | (above[i] ^ here[i]) | (above[i] ^ here[i + 1])) == 0;
  }
}

// Calls f(row of tiles, first column, end, uniform) for runs of tiles beside each other that are uniform or not.
template <class S>
template <class F>
void MotionPredictor<S>::for_runs(const Band& band, const Rectangle& tiles, const F& f) const {
  const std::uint8_t* uniform = band.s.uniform.data() + tiles.top * tile_columns();
  for (int j = tiles.top; j < tiles.bottom; ++j, uniform += tile_columns())
    for (int i = tiles.left, end = 0; i < tiles.right; i = end) {
      for (end = i + 1; end < tiles.right && uniform[end] == uniform[i];) ++end;
      f(j, i, end, uniform[i] != 0);
    }
}

template <class S>
void MotionPredictor<S>::clear_sums(const Band& band) const {
  const int top = tile_top(band.first), width = lifted_.width();
  Scratch& s = band.s;
  const auto samples = static_cast<std::size_t>((tile_top(band.first + band.rows) - top) * width);
  if (s.sums.size() < samples) s.sums.resize(samples);
  for_runs(band, {0, band.rows, 0, tile_columns()}, [&](int j, int i, int end, bool uniform) {
    if (uniform) return;
    const int x = tile_left(i), columns = tile_left(end) - x;
    for (int y = tile_top(band.first + j); y < tile_top(band.first + j + 1); ++y)
      std::fill_n(s.sums.data() + (y - top) * width + x, columns, 0);
  });
}

// The largest rectangle of cells with equal motion whose first one is (r, c): as wide as possible, then as high.
template <class S>
typename MotionPredictor<S>::Rectangle MotionPredictor<S>::take_rectangle(const Band& band, int r, int c) const {
  Scratch& s = band.s;
  const int columns = tile_columns() + 1;
  const std::uint64_t own = s.keys[static_cast<std::size_t>(r * columns + c)];
  const auto is_free = [&](int row, int column) {
    const auto at = static_cast<std::size_t>(row * columns + column);
    return !s.taken[at] && s.keys[at] == own;
  };
  const int most = std::min(columns, c + kMostRun / lifted_.cell_x - 1);
  Rectangle found{r, r + 1, c, c + 1};
  while (found.right < most && is_free(r, found.right)) ++found.right;
  for (bool all = true; found.bottom <= band.rows; ++found.bottom) {
    for (int i = c; i < found.right && all; ++i) all = is_free(found.bottom, i);
    if (!all) break;
  }
  for (int row = found.top; row < found.bottom; ++row)
    std::fill_n(s.taken.begin() + row * columns + c, found.right - c, std::uint8_t{1});
  return found;
}

// The tiles that a rectangle of cells predicts, without those at its upper and left border that another one lifts.
template <class S>
typename MotionPredictor<S>::Rectangle MotionPredictor<S>::reached_tiles(const Band& band,
                                                                         const Rectangle& cells) const {
  const int columns = tile_columns();
  Rectangle tiles{std::max(0, cells.top - 1), std::min(band.rows, cells.bottom), std::max(0, cells.left - 1),
                  std::min(columns, cells.right)};
  const auto is_mixed = [&](int j, int i) { return !band.s.uniform[static_cast<std::size_t>(j * columns + i)]; };
  bool wanted = tiles.top == cells.top;
  for (int i = tiles.left; i < tiles.right && !wanted; ++i) wanted = is_mixed(tiles.top, i);
  if (!wanted) ++tiles.top;
  wanted = tiles.left == cells.left;
  for (int j = tiles.top; j < tiles.bottom && !wanted; ++j) wanted = is_mixed(j, tiles.left);
  if (!wanted) ++tiles.left;
  return tiles;
}

template <class S>
void MotionPredictor<S>::set_windows(const Band& band, const Rectangle& cells, const Rectangle& tiles,
                                     Windows& out) const {
  std::int32_t* x = out.x;
  for (int i = tiles.left; i < tiles.right; ++i) {
    const int from = tile_left(i), behind = from - (i * lifted_.cell_x - lifted_.cell_x / 2);
    const std::int32_t* const weights = ramp_x_.of[i < cells.left ? kRises : i == cells.right - 1 ? kFalls : kFlat];
    x = std::copy_n(weights + behind, tile_left(i + 1) - from, x);
  }
  std::int32_t* y = out.y;
  for (int j = tiles.top; j < tiles.bottom; ++j) {
    const int tile = band.first + j;
    const int from = tile_top(tile), behind = from - (tile * lifted_.cell_y - lifted_.cell_y / 2);
    const std::int32_t* const weights = ramp_y_.of[j < cells.top ? kRises : j == cells.bottom - 1 ? kFalls : kFlat];
    y = std::copy_n(weights + behind, tile_top(tile + 1) - from, y);
  }
}

template <class S>
void MotionPredictor<S>::predict_rectangle(const Band& band, const Rectangle& cells) {
  const Rectangle tiles = reached_tiles(band, cells);
  const int y0 = tile_top(band.first + tiles.top), x0 = tile_left(tiles.left);
  const Block block{y0, x0, tile_top(band.first + tiles.bottom) - y0, tile_left(tiles.right) - x0};
  if (block.rows <= 0 || block.columns <= 0) return;
  if constexpr (LiftedComponent<S>::kNarrow)
    if (predict_tiles<std::int16_t>(band, cells, tiles, block)) return;
  (void)predict_tiles<std::int32_t>(band, cells, tiles, block);
}

template <class S>
template <class P>
bool MotionPredictor<S>::predict_tiles(const Band& band, const Rectangle& cells, const Rectangle& tiles,
                                       const Block& block) {
  Scratch& s = band.s;
  Samples<P> p[2];
  const int count = predict_cell(cell(band, cells.top, cells.left), band.references, block, s, p);
  if (count == 0) return false;
  Windows windows;
  bool has_windows = false;
  for_runs(band, tiles, [&](int j, int i, int end, bool uniform) {
    const int from = uniform ? std::max(i, cells.left) : i;
    const int y = tile_top(band.first + j), x = tile_left(from);
    const int rows = tile_top(band.first + j + 1) - y, columns = tile_left(end) - x;
    if (rows <= 0 || columns <= 0 || (uniform && j < cells.top)) return;
    Samples<P> at[2];
    for (int k = 0; k < count; ++k) at[k] = {p[k].data + (y - block.y) * p[k].stride + (x - block.x), p[k].stride};
    if (uniform) return lifted_.note(lift(lifted_.row(band.t, y) + x, at, count, rows, columns, band.add));
    if (!std::exchange(has_windows, true)) set_windows(band, cells, tiles, windows);
    lifted_.kernels.template of<P>().accumulate(
        at[0].data, at[0].stride, at[1].data, at[1].stride, rows, columns, windows.x + (x - block.x),
        windows.y + (y - block.y), s.sums.data() + (y - tile_top(band.first)) * lifted_.width() + x, lifted_.width());
  });
  return true;
}

// Lifts samples by one prediction or by the mean of two.
template <class S>
template <class P>
bool MotionPredictor<S>::lift(S* x, const Samples<P>* p, int count, int rows, int columns, bool add) const {
  const auto with = [&](const auto& kernels) {
    return count == 1 ? kernels.lift(x, lifted_.row_stride, p[0].data, p[0].stride, rows, columns, shift_, add)
                      : kernels.lift_mean(x, lifted_.row_stride, p[0].data, p[0].stride, p[1].data, p[1].stride, rows,
                                          columns, shift_, add);
  };
  if constexpr (std::is_same_v<P, std::int16_t>)
    return with(narrow_kernels_);
  else
    return with(kernels_);
}

template <class S>
void MotionPredictor<S>::lift_sums(const Band& band) {
  for_runs(band, {0, band.rows, 0, tile_columns()}, [&](int j, int i, int end, bool uniform) {
    if (uniform) return;
    const int y = tile_top(band.first + j), x = tile_left(i);
    const int rows = tile_top(band.first + j + 1) - y;
    const std::int32_t* sums = band.s.sums.data() + (y - tile_top(band.first)) * lifted_.width() + x;
    lifted_.note(kernels_.lift_sum(lifted_.row(band.t, y) + x, lifted_.row_stride, sums, lifted_.width(), rows,
                                   tile_left(end) - x, shift_, band.add));
  });
}

// The prediction of a block by a cell, in 1/16 of a grey level: one prediction, or two whose mean is used. Returns
// their number; 0 if P does not hold them.
template <class S>
template <class P>
int MotionPredictor<S>::predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block,
                                     Scratch& s, Samples<P> p[2]) {
  if (c.mode == MotionMode::kPlain) {
    const auto index = static_cast<std::size_t>(lifted_.component.index);
    const std::int32_t plain = lifted_.differences ? 0 : motion_plain(c.plain[index], lifted_.component.bits);
    if (plain != static_cast<P>(plain)) return 0;
    std::fill_n(s.template prediction<P>(0), block.columns, static_cast<P>(plain));
    p[0] = {s.template prediction<P>(0), 0};
    return 1;
  }
  const bool past = takes_past(c, references);
  const bool other = takes_other(c, references);
  int n = 0;
  if (past) p[n] = look_up(references.past, c.vector[0], block, s, s.template prediction<P>(n)), ++n;
  if (other) p[n] = look_up(references.other, c.vector[1], block, s, s.template prediction<P>(n)), ++n;
  for (int i = 0; i < n; ++i)
    if (!p[i].data) return 0;
  return n;
}

template <class S>
template <class P>
bool MotionPredictor<S>::interpolate(const S* in, std::ptrdiff_t stride, P* out, const Block& block, int phase_x,
                                     int phase_y) const {
  if constexpr (std::is_same_v<P, std::int16_t>) {
    return narrow_kernels_.interpolate(in, stride, out, kStride, block.rows, block.columns, phase_x, phase_y, up_);
  } else {
    kernels_.interpolate(in, stride, out, kStride, block.rows, block.columns, phase_x, phase_y, up_);
    return true;
  }
}

// The block of a reference at the other end of a vector; none where P does not hold it. Outside the picture the border
// samples repeat.
template <class S>
template <class P>
typename MotionPredictor<S>::template Samples<P> MotionPredictor<S>::look_up(int t, MotionVector v, const Block& block,
                                                                             Scratch& s, P* out) const {
  const int rows = block.rows, columns = block.columns;
  const int ex = eighths(v.x, lifted_.component.scale.shift_x);
  const int ey = eighths(v.y, lifted_.component.scale.shift_y);
  const int phase_x = ex & 7, phase_y = ey & 7;
  const int left = phase_x != 0 ? kTapsAhead : 0, right = phase_x != 0 ? kTapsBehind : 0;
  const int above = phase_y != 0 ? kTapsAhead : 0, below = phase_y != 0 ? kTapsBehind : 0;
  const int x = block.x + (ex >> 3);
  const int y = block.y + (ey >> 3);
  const bool inside =
      x >= left && y >= above && x + columns + right <= lifted_.width() && y + rows + below <= lifted_.height();
  if (inside) {
    const S* from = lifted_.row(t, y) + x;
    if constexpr (std::is_same_v<S, P>)
      if (phase_x == 0 && phase_y == 0 && up_ == 0) return {from, lifted_.row_stride};
    if (!interpolate(from, lifted_.row_stride, out, block, phase_x, phase_y)) return {};
    return {out, kStride};
  }
  const int all = left + columns + right;
  const int before = std::clamp(left - x, 0, all);  // columns left of the picture
  const int behind = std::clamp(x + columns + right - lifted_.width(), 0, all - before);
  for (int j = 0; j < above + rows + below; ++j) {
    const S* line = lifted_.row(t, std::clamp(y + j - above, 0, lifted_.height() - 1));
    S* to = s.patch + j * Scratch::kColumns;
    std::fill_n(to, before, line[0]);
    std::copy_n(line + std::clamp(x - left, 0, lifted_.width() - 1), all - before - behind, to + before);
    std::fill_n(to + all - behind, behind, line[lifted_.width() - 1]);
  }
  if (!interpolate(s.patch + above * Scratch::kColumns + left, Scratch::kColumns, out, block, phase_x, phase_y))
    return {};
  return {out, kStride};
}

template class MotionPredictor<std::int32_t>;
template class MotionPredictor<std::int16_t>;

}  // namespace trivelet
