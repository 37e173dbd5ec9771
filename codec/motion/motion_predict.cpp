// Prediction by rectangles of cells with equal motion (motion_predict.h).
#include "codec/motion/motion_predict.h"

#include <algorithm>

namespace trivelet {

namespace {

constexpr int kTapsAhead = kMotionTapsBefore;
constexpr int kTapsBehind = kMotionTaps - kTapsAhead - 1;

bool takes_past(const MotionCell& c, const MotionReferences& references) { return c.uses(0) || references.other < 0; }
bool takes_other(const MotionCell& c, const MotionReferences& references) { return c.uses(1) && references.other >= 0; }

}  // namespace

template <class S>
MotionPredictor<S>::MotionPredictor(const LiftedComponent<S>& lifted)
    : lifted_(lifted),
      kernels_(lifted.kernels.template of<S>()),
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
  lifted_.pool.parallel_for(static_cast<int>(frames.size()) * bands, [&](int i, int worker) {
    const int t = frames[static_cast<std::size_t>(i / bands)];
    const int first = i % bands * band_tiles_;
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
  const MotionField& f = lifted_.motion.fields[static_cast<std::size_t>(band.t)];
  s.cells.clear();
  for (int r = 0; r <= band.rows; ++r)
    s.cells.push_back(f.data() + lifted_.motion.grid.index(lifted_.cell_row(band.first + r - 1), 0));
  find_uniform(band);
  s.sums.assign(static_cast<std::size_t>(samples), 0);
  const int columns = tile_columns() + 1;
  s.taken.assign(static_cast<std::size_t>((band.rows + 1) * columns), 0);
  for (int r = 0; r <= band.rows; ++r)
    for (int c = 0; c < columns; ++c)
      if (!s.taken[static_cast<std::size_t>(r * columns + c)]) predict_rectangle(band, take_rectangle(band, r, c));
  lift_sums(band);
}

template <class S>
void MotionPredictor<S>::find_uniform(const Band& band) const {
  const int columns = tile_columns();
  band.s.uniform.resize(static_cast<std::size_t>(band.rows * columns));
  for (int j = 0; j < band.rows; ++j) {
    const MotionCell* above = band.s.cells[static_cast<std::size_t>(j)];
    const MotionCell* here = band.s.cells[static_cast<std::size_t>(j) + 1];
    bool left = false;
    int before = 0;
    for (int i = 0; i < columns; ++i) {
      const int at = lifted_.cell_column(i);
      const bool right = above == here || above[at].predicts_as(here[at]);
      if (i == 0) left = above == here || above[lifted_.cell_column(-1)].predicts_as(here[lifted_.cell_column(-1)]);
      band.s.uniform[static_cast<std::size_t>(j * columns + i)] =
          left && right && (at == before || here[before].predicts_as(here[at]));
      left = right;
      before = at;
    }
  }
}

// The largest rectangle of cells with equal motion whose first one is (r, c): as wide as possible, then as high.
template <class S>
typename MotionPredictor<S>::Rectangle MotionPredictor<S>::take_rectangle(const Band& band, int r, int c) const {
  Scratch& s = band.s;
  const int columns = tile_columns() + 1;
  const MotionCell& own = cell(s, r, c);
  const auto is_free = [&](int row, int column) {
    return !s.taken[static_cast<std::size_t>(row * columns + column)] && cell(s, row, column).predicts_as(own);
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
void MotionPredictor<S>::predict_rectangle(const Band& band, const Rectangle& cells) {
  Scratch& s = band.s;
  const Rectangle tiles = reached_tiles(band, cells);
  const int y0 = tile_top(band.first + tiles.top), x0 = tile_left(tiles.left);
  const Block block{y0, x0, tile_top(band.first + tiles.bottom) - y0, tile_left(tiles.right) - x0};
  if (block.rows <= 0 || block.columns <= 0) return;
  Samples p[2];
  const int count = predict_cell(cell(s, cells.top, cells.left), band.references, block, s, p);
  const auto set_window = [](std::int32_t* weight, int from, int to, int before, int size, bool rises, bool falls) {
    for (int i = from; i < to; ++i) {
      const int behind = motion_weight(size, i - before);
      *weight++ = rises ? behind : falls ? kMotionWeight - behind : kMotionWeight;
    }
  };
  std::int32_t weight_x[kMostRun], weight_y[kBandRows];
  for (int i = tiles.left; i < tiles.right; ++i)
    set_window(weight_x + (tile_left(i) - x0), tile_left(i), tile_left(i + 1), i * lifted_.cell_x - lifted_.cell_x / 2,
               lifted_.cell_x, i < cells.left, i == cells.right - 1);
  for (int j = tiles.top; j < tiles.bottom; ++j) {
    const int tile = band.first + j;
    set_window(weight_y + (tile_top(tile) - y0), tile_top(tile), tile_top(tile + 1),
               tile * lifted_.cell_y - lifted_.cell_y / 2, lifted_.cell_y, j < cells.top, j == cells.bottom - 1);
  }
  const std::uint8_t* uniform = s.uniform.data() + tiles.top * tile_columns();
  for (int j = tiles.top; j < tiles.bottom; ++j, uniform += tile_columns())
    for (int i = tiles.left, end = 0; i < tiles.right; i = end) {
      for (end = i + 1; end < tiles.right && uniform[end] == uniform[i];) ++end;
      const int from = uniform[i] ? std::max(i, cells.left) : i;
      const int y = tile_top(band.first + j), x = tile_left(from);
      const int rows = tile_top(band.first + j + 1) - y, columns = tile_left(end) - x;
      if (rows <= 0 || columns <= 0 || (uniform[i] && j < cells.top)) continue;
      Samples at[2];
      for (int k = 0; k < count; ++k) at[k] = {p[k].data + (y - y0) * p[k].stride + (x - x0), p[k].stride};
      if (!uniform[i]) {
        lifted_.kernels.accumulate(at[0].data, at[0].stride, at[1].data, at[1].stride, rows, columns,
                                   weight_x + (x - x0), weight_y + (y - y0),
                                   s.sums.data() + (y - tile_top(band.first)) * lifted_.width() + x, lifted_.width());
        continue;
      }
      S* const to = lifted_.row(band.t, y) + x;
      lifted_.note(
          count == 1 ? kernels_.lift(to, lifted_.row_stride, at[0].data, at[0].stride, rows, columns, shift_, band.add)
                     : kernels_.lift_mean(to, lifted_.row_stride, at[0].data, at[0].stride, at[1].data, at[1].stride,
                                          rows, columns, shift_, band.add));
    }
}

template <class S>
void MotionPredictor<S>::lift_sums(const Band& band) {
  const std::uint8_t* uniform = band.s.uniform.data();
  const int columns = tile_columns();
  for (int j = 0; j < band.rows; ++j, uniform += columns)
    for (int i = 0, end = 0; i < columns; i = end) {
      for (end = i + 1; end < columns && uniform[end] == uniform[i];) ++end;
      if (uniform[i]) continue;
      const int y = tile_top(band.first + j), x = tile_left(i);
      const int rows = tile_top(band.first + j + 1) - y;
      const std::int32_t* sums = band.s.sums.data() + (y - tile_top(band.first)) * lifted_.width() + x;
      lifted_.note(kernels_.lift_sum(lifted_.row(band.t, y) + x, lifted_.row_stride, sums, lifted_.width(), rows,
                                     tile_left(end) - x, shift_, band.add));
    }
}

// The prediction of a block by a cell, in 1/16 of a grey level: one prediction, or two whose mean is used. Returns
// their number.
template <class S>
int MotionPredictor<S>::predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block,
                                     Scratch& s, Samples p[2]) {
  if (c.mode == MotionMode::kPlain) {
    const auto index = static_cast<std::size_t>(lifted_.component.index);
    std::fill_n(s.first, block.columns, lifted_.differences ? 0 : motion_plain(c.plain[index], lifted_.component.bits));
    p[0] = {s.first, 0};
    return 1;
  }
  const bool past = takes_past(c, references);
  const bool other = takes_other(c, references);
  int n = 0;
  if (past) p[n++] = look_up(references.past, c.vector[0], block, s, s.first);
  if (other) p[n++] = look_up(references.other, c.vector[1], block, s, past ? s.second : s.first);
  return n;
}

// The block of a reference at the other end of a vector. Outside the picture the border samples repeat.
template <class S>
typename MotionPredictor<S>::Samples MotionPredictor<S>::look_up(int t, MotionVector v, const Block& block, Scratch& s,
                                                                 std::int32_t* out) const {
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
    if constexpr (!LiftedComponent<S>::kNarrow)
      if (phase_x == 0 && phase_y == 0 && up_ == 0) return {from, lifted_.row_stride};
    kernels_.interpolate(from, lifted_.row_stride, out, kMostRun, rows, columns, phase_x, phase_y, up_);
    return {out, kMostRun};
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
  kernels_.interpolate(s.patch + above * Scratch::kColumns + left, Scratch::kColumns, out, kMostRun, rows, columns,
                       phase_x, phase_y, up_);
  return {out, kMostRun};
}

template class MotionPredictor<std::int32_t>;
template class MotionPredictor<std::int16_t>;

}  // namespace trivelet
