// Prediction of tiles with one or several motions (motion_predict.h).
#include "codec/motion/motion_predict.h"

#include <algorithm>

namespace trivelet {

namespace {

constexpr int kTapsAhead = kMotionTapsBefore;
constexpr int kTapsBehind = kMotionTaps - kTapsAhead - 1;
static_assert(kMotionPartColumns == kMotionCell);

bool takes_past(const MotionCell& c, const MotionReferences& references) { return c.uses(0) || references.other < 0; }
bool takes_other(const MotionCell& c, const MotionReferences& references) { return c.uses(1) && references.other >= 0; }

}  // namespace

MotionPredictor::MotionPredictor(const LiftedComponent& lifted)
    : lifted_(lifted),
      up_(kMotionFraction - lifted.component.fraction),
      shift_(lifted.component.fraction == 0 ? up_ : 0),
      scratch_(static_cast<std::size_t>(lifted.pool.threads())) {
  for (int set = 0; set < 1 << 4; ++set)
    for (int y = 0; y < lifted.cell_y; ++y)
      for (int x = 0; x < lifted.cell_x; ++x) {
        const int behind_y = motion_weight(lifted.cell_y, y), behind_x = motion_weight(lifted.cell_x, x);
        std::int32_t& weight = weights_[set][y * kMotionCell + x];
        for (int k = 0; k < 4; ++k)
          if (set >> k & 1)
            weight += (k >> 1 ? behind_y : kMotionWeight - behind_y) * (k & 1 ? behind_x : kMotionWeight - behind_x);
      }
}

int MotionPredictor::tile_top(int i) const {
  return std::clamp(i * lifted_.cell_y - lifted_.cell_y / 2, 0, lifted_.height());
}
int MotionPredictor::tile_left(int i) const {
  return std::clamp(i * lifted_.cell_x - lifted_.cell_x / 2, 0, lifted_.width());
}

void MotionPredictor::run(int level, bool add) {
  const std::vector<int> frames = motion_frames(level, lifted_.motion.places);
  const int bands = (tile_rows() + kBandTiles - 1) / kBandTiles;
  lifted_.pool.parallel_for(static_cast<int>(frames.size()) * bands, [&](int i, int worker) {
    const int t = frames[static_cast<std::size_t>(i / bands)];
    predict_band(t, motion_references(t, level, lifted_.motion.places), i % bands * kBandTiles, add,
                 scratch_[static_cast<std::size_t>(worker)]);
  });
}

// Predicts rows of tiles from `first` on: rectangles of tiles with equal motion at once, others one by one.
void MotionPredictor::predict_band(int t, const MotionReferences& references, int first, bool add, Scratch& s) {
  const int rows = std::min(kBandTiles, tile_rows() - first);
  const int columns = tile_columns();
  const MotionField& f = lifted_.motion.fields[static_cast<std::size_t>(t)];
  find_uniform(f, first, rows, s.tiles);
  std::uint8_t* const tiles = s.tiles.data();
  for (int j = 0; j < rows; ++j)
    for (int i = 0, end = 0; i < columns; i = end) {
      end = i + 1;
      std::uint8_t* const row_tiles = tiles + j * columns;
      if (row_tiles[i] == kDone) continue;
      const MotionCell& c = cell(f, first + j, i);
      int below = j + 1;
      if (row_tiles[i] == kUniform) {
        const Reach limit = reach(c, references);
        while (end < columns && row_tiles[end] == kUniform && tile_left(end + 1) - tile_left(i) <= limit.columns) ++end;
        for (; below < rows && limit.down; ++below) {
          std::uint8_t* const more = tiles + below * columns;
          if (!std::all_of(more + i, more + end, [](std::uint8_t x) { return x == kUniform; })) break;
          std::fill(more + i, more + end, static_cast<std::uint8_t>(kDone));
        }
      }
      const int y = tile_top(first + j), x = tile_left(i);
      const Block block{y, x, tile_top(first + below) - y, tile_left(end) - x};
      if (block.rows <= 0 || block.columns <= 0) continue;
      if (row_tiles[i] == kUniform)
        predict_alike(t, c, references, block, add, s);
      else
        predict_corner(t, f, references, first + j, i, block, add, s);
    }
}

// Adjacent uniform tiles share cells, so all tiles of such a rectangle have the same motion.
void MotionPredictor::find_uniform(const MotionField& f, int first, int rows, std::vector<std::uint8_t>& tiles) const {
  const int columns = tile_columns();
  tiles.resize(static_cast<std::size_t>(kBandTiles * columns));
  for (int j = 0; j < rows; ++j) {
    const MotionCell* above = f.data() + lifted_.motion.grid.index(lifted_.cell_row(first + j - 1), 0);
    const MotionCell* here = f.data() + lifted_.motion.grid.index(lifted_.cell_row(first + j), 0);
    bool left = false;
    int before = 0;
    for (int i = 0; i < columns; ++i) {
      const int at = lifted_.cell_column(i);
      const bool right = above == here || above[at].predicts_as(here[at]);
      if (i == 0) left = above == here || above[lifted_.cell_column(-1)].predicts_as(here[lifted_.cell_column(-1)]);
      tiles[static_cast<std::size_t>(j * columns + i)] =
          left && right && (at == before || here[before].predicts_as(here[at])) ? kUniform : kMixed;
      left = right;
      before = at;
    }
  }
}

// Samples that are used without interpolation need no scratch, so their number has no limit.
MotionPredictor::Reach MotionPredictor::reach(const MotionCell& c, const MotionReferences& references) const {
  if (c.mode == MotionMode::kPlain) return {kMostRun, true};
  bool still = up_ == 0, down = false;
  for (int k = 0; k < 2; ++k) {
    if (!(k == 0 ? takes_past(c, references) : takes_other(c, references))) continue;
    const MotionVector v = c.vector[static_cast<std::size_t>(k)];
    still = still && v == MotionVector{};
    down = down || (eighths(v.y, lifted_.component.scale.shift_y) & 7) != 0;
  }
  return {still ? lifted_.width() : kMostRun, down};
}

void MotionPredictor::predict_alike(int t, const MotionCell& c, const MotionReferences& references, const Block& block,
                                    bool add, Scratch& s) {
  std::int32_t* to = lifted_.row(t, block.y) + block.x;
  const std::ptrdiff_t stride = lifted_.field.row_stride;
  Samples p[2];
  if (predict_cell(c, references, block, s, s.first, p) == 1)
    lifted_.kernels.lift(to, stride, p[0].data, p[0].stride, block.rows, block.columns, shift_, add);
  else
    lifted_.kernels.lift_mean(to, stride, p[0].data, p[0].stride, p[1].data, p[1].stride, block.rows, block.columns,
                              shift_, add);
}

// A tile whose cells have different motion.
void MotionPredictor::predict_corner(int t, const MotionField& f, const MotionReferences& references, int tile_y,
                                     int tile_x, const Block& block, bool add, Scratch& s) {
  constexpr int kTile = kMotionCell * kMotionCell;
  const MotionCell* cells[4];
  for (int k = 0; k < 4; ++k) cells[k] = &cell(f, tile_y - 1 + (k >> 1), tile_x - 1 + (k & 1));
  const int inside_y = block.y - (tile_y * lifted_.cell_y - lifted_.cell_y / 2);
  const int inside_x = block.x - (tile_x * lifted_.cell_x - lifted_.cell_x / 2);
  const int inside = inside_y * kMotionCell + inside_x;
  MotionPart parts[4];
  int n = 0;
  for (int k = 0, done = 0; k < 4; ++k) {
    if (done >> k & 1) continue;
    int set = 0;
    for (int j = k; j < 4; ++j)
      if (!(done >> j & 1) && cells[j]->predicts_as(*cells[k])) set |= 1 << j;
    done |= set;
    std::int32_t* out = s.first + n * kTile;
    Samples p[2];
    if (predict_cell(*cells[k], references, block, s, out, p) == 2) {
      lifted_.kernels.average(p[0].data, p[0].stride, p[1].data, p[1].stride, out, kMotionCell, block.rows,
                              block.columns);
      p[0] = {out, kMotionCell};
    }
    parts[n++] = {p[0].data, p[0].stride, weights_[set] + inside};
  }
  lifted_.kernels.lift_blended(lifted_.row(t, block.y) + block.x, lifted_.field.row_stride, parts, n, block.rows,
                               block.columns, shift_, add);
}

// The prediction of a block by a cell, in 1/16 of a grey level: one prediction, or two whose mean is used. Returns
// their number. `out` is memory for the first one.
int MotionPredictor::predict_cell(const MotionCell& c, const MotionReferences& references, const Block& block,
                                  Scratch& s, std::int32_t* out, Samples p[2]) {
  if (c.mode == MotionMode::kPlain) {
    const auto index = static_cast<std::size_t>(lifted_.component.index);
    std::fill_n(out, block.columns, lifted_.differences ? 0 : motion_plain(c.plain[index], lifted_.component.bits));
    p[0] = {out, 0};
    return 1;
  }
  const bool past = takes_past(c, references);
  const bool other = takes_other(c, references);
  const std::ptrdiff_t stride = block.columns <= kMotionCell ? kMotionCell : kMostRun;
  int n = 0;
  if (past) p[n++] = look_up(references.past, c.vector[0], block, s, out, stride);
  if (other) p[n++] = look_up(references.other, c.vector[1], block, s, past ? s.second : out, stride);
  return n;
}

// The block of a reference at the other end of a vector. Outside the picture the border samples repeat.
MotionPredictor::Samples MotionPredictor::look_up(int t, MotionVector v, const Block& block, Scratch& s,
                                                  std::int32_t* out, std::ptrdiff_t out_stride) const {
  const int rows = block.rows, columns = block.columns;
  const int ex = eighths(v.x, lifted_.component.scale.shift_x);
  const int ey = eighths(v.y, lifted_.component.scale.shift_y);
  const int phase_x = ex & 7, phase_y = ey & 7;
  const int left = phase_x != 0 ? kTapsAhead : 0, right = phase_x != 0 ? kTapsBehind : 0;
  const int above = phase_y != 0 ? kTapsAhead : 0, below = phase_y != 0 ? kTapsBehind : 0;
  const int x = block.x + (ex >> 3);
  const int y = block.y + (ey >> 3);
  Samples from;
  if (x >= left && y >= above && x + columns + right <= lifted_.width() && y + rows + below <= lifted_.height()) {
    from = {lifted_.row(t, y) + x, lifted_.field.row_stride};
  } else {
    const int before = std::clamp(left - x, 0, left + columns + right);  // columns left of the picture
    const int behind = std::clamp(x + columns + right - lifted_.width(), 0, left + columns + right - before);
    for (int j = 0; j < above + rows + below; ++j) {
      const std::int32_t* line = lifted_.row(t, std::clamp(y + j - above, 0, lifted_.height() - 1));
      std::int32_t* to = s.patch + j * Scratch::kColumns;
      const int inside = left + columns + right - before - behind;
      std::fill_n(to, before, line[0]);
      std::copy_n(line + std::clamp(x - left, 0, lifted_.width() - 1), inside, to + before);
      std::fill_n(to + before + inside, behind, line[lifted_.width() - 1]);
    }
    from = {s.patch + above * Scratch::kColumns + left, Scratch::kColumns};
    if (phase_x == 0 && phase_y == 0 && up_ == 0) {  // the other prediction may need the patch
      for (int j = 0; j < rows; ++j) std::copy_n(from.data + j * from.stride, columns, out + j * out_stride);
      return {out, out_stride};
    }
  }
  if (phase_x == 0 && phase_y == 0 && up_ == 0) return from;
  lifted_.kernels.interpolate(from.data, from.stride, out, out_stride, rows, columns, phase_x, phase_y, up_);
  return {out, out_stride};
}

}  // namespace trivelet
