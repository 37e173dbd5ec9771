#include "codec/motion/motion_lift.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/motion/motion_kernels.h"

namespace trivelet {

namespace {

constexpr int kTaps = kMotionTaps;
constexpr int kBefore = kMotionTapsBefore;
constexpr int kBehind = kTaps - kBefore - 1;
constexpr int kMostRun =
    64;  // samples of a row predicted in one go through memory of our own, where neighbours move alike
static_assert(kMotionPartColumns == kMotionCell);
constexpr std::int32_t kNoLimit = 1 << 30;  // of an update
constexpr int kBandTiles = 4;  // rows of tiles that are predicted in one go where that saves filtering rows twice

/// Samples of a prediction, wherever they lie.
struct Samples {
  const std::int32_t* data = nullptr;
  std::ptrdiff_t stride = 0;
};

/// Memory of one worker.
struct Scratch {
  static constexpr int kRows = kBandTiles * kMotionCell;
  static constexpr int kColumns = kMostRun + kTaps;
  std::int32_t patch[(kRows + kTaps) * kColumns];  // of a reference, where it reaches beyond the picture
  std::int32_t first[kRows * kMostRun];            // a prediction, or those of the four cells around a corner
  std::int32_t second[kRows * kMostRun];
  std::vector<std::uint8_t> tiles;   // of a band: Tile
  std::vector<std::int32_t> update;  // sums of a stripe, then totals
};

enum Tile : std::uint8_t { kMixed, kUniform, kDone };  // whether the four cells that meet in it move alike

/// Cells of a row that give back alike: samples of [begin, end) by so many eighths, a quarter of them if they have two
/// references.
struct UpdateRun {
  std::int32_t begin = 0, end = 0;
  std::int32_t right = 0, down = 0;
  std::int32_t share = 0;
};

/// What a high frame gives back to one of its references, by rows of cells.
struct UpdateField {
  struct Row {
    std::size_t begin = 0, end = 0;  // of runs
    int top = 0, bottom = 0;         // rows of the reference that they reach
  };
  std::vector<UpdateRun> runs;
  std::vector<Row> rows;
};

class MotionLift {
 public:
  MotionLift(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component, int dropped,
             const MotionBorders& borders, ThreadPool& pool, SimdLevel simd)
      : field_(field),
        motion_(motion),
        component_(component),
        dropped_(dropped),
        borders_(borders),
        pool_(pool),
        kernels_(motion_kernels(resolve_simd(simd))),
        up_(kMotionFraction - component.fraction),
        limit_(motion_update_limit(component.fraction, component.bits)),
        cell_x_(cell_size(component.scale.shift_x)),
        cell_y_(cell_size(component.scale.shift_y)),
        scratch_(static_cast<std::size_t>(pool.threads())) {
    for (int set = 0; set < 1 << 4; ++set)
      for (int y = 0; y < cell_y_; ++y)
        for (int x = 0; x < cell_x_; ++x) {
          const int behind_y = motion_weight(cell_y_, y), behind_x = motion_weight(cell_x_, x);
          std::int32_t& weight = weights_[set][y * kMotionCell + x];
          for (int k = 0; k < 4; ++k)
            if (set >> k & 1)
              weight += (k >> 1 ? behind_y : kMotionWeight - behind_y) * (k & 1 ? behind_x : kMotionWeight - behind_x);
        }
    require(component.fraction == 0 || component.fraction == kMotionFraction, ErrorKind::kInternal,
            "an unknown number of binary places");
    require(field.shape.frames == low_length(motion.places.count, dropped), ErrorKind::kBadArgument,
            "motion of another number of frames than the field's");
  }

  void forward() {
    for (int l = dropped_; l < motion_.places.levels; ++l) {
      pass_keys(l);
      predict_level(l, false);
      update_level(l, false);
    }
    keep_coarser_keys();
  }
  // Of differences, both times.
  void inverse_and_transposed() {
    differences_ = true;
    limit_ = kNoLimit;
    inverse();
    for (int l = 0; l < motion_.places.levels; ++l) {
      scale_high(l, [](std::int32_t v) { return wrap_add(v, v); });
      update_level(l, false);
      predict_level(l, false);
      scale_high(l, [](std::int32_t v) { return v / 2; });
    }
  }
  void inverse() {
    keep_coarser_keys();
    for (int l = motion_.places.levels - 1; l >= dropped_; --l) {
      update_level(l, true);
      pass_keys(l);
      predict_level(l, true);
    }
  }

 private:
  template <class F>
  void scale_high(int level, const F& scaled) {
    const std::vector<int> frames = motion_frames(level, motion_.places);
    pool_.parallel_for(static_cast<int>(frames.size()), [&](int i, int) {
      for (int y = 0; y < height(); ++y) {
        std::int32_t* x = row(frames[static_cast<std::size_t>(i)], y);
        std::transform(x, x + width(), x, scaled);
      }
    });
  }

  bool leaves_key() const { return borders_.own && motion_.places.ends_with_key(); }

  // Keeps the own key frame as level l predicts from it.
  void keep_key(std::size_t l) {
    const auto row_samples = static_cast<std::size_t>(width());
    std::vector<std::int32_t>& to = (*borders_.own)[l];
    to.resize(row_samples * static_cast<std::size_t>(height()));
    for (int y = 0; y < height(); ++y)
      std::copy_n(row(motion_.places.count - 1, y), row_samples, to.data() + static_cast<std::size_t>(y) * row_samples);
  }

  // The GOP behind may have more levels, which see the key frame as the coarsest one leaves it.
  void keep_coarser_keys() {
    if (!leaves_key()) return;
    for (auto l = static_cast<std::size_t>(motion_.places.levels); l < borders_.own->size(); ++l) keep_key(l);
  }

  // Keeps the own key frame, and brings that of the GOP before to place 0, both as level l predicts from them.
  void pass_keys(int l) {
    const auto i = static_cast<std::size_t>(l);
    const auto row_samples = static_cast<std::size_t>(width());
    const int last = motion_.places.count - 1;
    if (leaves_key()) keep_key(i);
    if (motion_.places.key != GopKey::kOpen) return;
    const int substitute = 1 << motion_.places.levels;
    for (int y = 0; y < height(); ++y) {
      const std::size_t at = static_cast<std::size_t>(y) * row_samples;
      if (borders_.before)
        std::copy_n((*borders_.before)[i].data() + at, row_samples, row(0, y));
      else if (substitute <= last && !differences_)
        std::copy_n(row(substitute, y), row_samples, row(0, y));
      else
        std::fill_n(row(0, y), row_samples, 0);
    }
    if (borders_.own_exact && motion_.places.ends_with_key()) add_error((*borders_.own_exact)[i], row(last, 0));
  }

  // The error of one key frame for that of another, with alternating signs in a chessboard: as it stands it would add
  // up with itself where a frame is predicted from both.
  void add_error(const std::vector<std::int32_t>& exact, const std::int32_t* decoded) {
    constexpr int kSquare = 5;  // log2
    for (int y = 0; y < height(); ++y)
      for (int x = 0; x < width(); ++x) {
        const std::int32_t error =
            decoded[y * field_.row_stride + x] -
            exact[static_cast<std::size_t>(y) * static_cast<std::size_t>(width()) + static_cast<std::size_t>(x)];
        row(0, y)[x] += ((x ^ y) >> kSquare & 1) != 0 ? -error : error;
      }
  }

  std::int32_t* row(int t, int y) const { return field_.row(t >> dropped_, y); }
  int width() const { return field_.shape.width; }
  int height() const { return field_.shape.height; }
  int cell_row(int i) const { return cell_at(i, component_.scale.shift_y, motion_.grid.rows); }
  int cell_column(int i) const { return cell_at(i, component_.scale.shift_x, motion_.grid.columns); }
  const MotionCell& cell(const MotionField& f, int y, int x) const {
    return f[motion_.grid.index(cell_row(y), cell_column(x))];
  }

  // ---------------------------------------------------------------------------------------------------- prediction

  // A tile: the samples around the corner of four cells, which all predict them.
  int tile_rows() const { return height() / cell_y_ + 2; }  // the last ones may be empty
  int tile_columns() const { return width() / cell_x_ + 2; }
  int tile_top(int i) const { return std::clamp(i * cell_y_ - cell_y_ / 2, 0, height()); }
  int tile_left(int i) const { return std::clamp(i * cell_x_ - cell_x_ / 2, 0, width()); }

  void predict_level(int level, bool add) {
    const std::vector<int> frames = motion_frames(level, motion_.places);
    const int bands = (tile_rows() + kBandTiles - 1) / kBandTiles;
    pool_.parallel_for(static_cast<int>(frames.size()) * bands, [&](int i, int worker) {
      const int t = frames[static_cast<std::size_t>(i / bands)];
      predict_band(t, motion_references(t, level, motion_.places), i % bands * kBandTiles, add,
                   scratch_[static_cast<std::size_t>(worker)]);
    });
  }

  // Rows of tiles from `first` on: rectangles of tiles that move alike in one go, others one by one.
  void predict_band(int t, const MotionReferences& references, int first, bool add, Scratch& s) {
    const int rows = std::min(kBandTiles, tile_rows() - first);
    const int columns = tile_columns();
    const MotionField& f = motion_.fields[static_cast<std::size_t>(t)];
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
          const Reach reach = reach_of(c, references);
          while (end < columns && row_tiles[end] == kUniform && tile_left(end + 1) - tile_left(i) <= reach.columns)
            ++end;
          for (; below < rows && reach.down; ++below) {
            std::uint8_t* const more = tiles + below * columns;
            if (!std::all_of(more + i, more + end, [](std::uint8_t x) { return x == kUniform; })) break;
            std::fill(more + i, more + end, static_cast<std::uint8_t>(kDone));
          }
        }
        const int y0 = tile_top(first + j), y1 = tile_top(first + below);
        const int x0 = tile_left(i), x1 = tile_left(end);
        if (y0 >= y1 || x0 >= x1) continue;
        if (row_tiles[i] == kUniform)
          predict_alike(t, c, references, y0, x0, y1 - y0, x1 - x0, add, s);
        else
          predict_corner(t, f, references, first + j, i, y0, x0, y1 - y0, x1 - x0, add, s);
      }
  }

  // Uniform tiles beside or below each other have cells in common, so all of a rectangle of them move alike.
  void find_uniform(const MotionField& f, int first, int rows, std::vector<std::uint8_t>& tiles) const {
    const int columns = tile_columns();
    tiles.resize(static_cast<std::size_t>(kBandTiles * columns));
    for (int j = 0; j < rows; ++j) {
      const MotionCell* above = f.data() + motion_.grid.index(cell_row(first + j - 1), 0);
      const MotionCell* here = f.data() + motion_.grid.index(cell_row(first + j), 0);
      bool left = false;
      int before = 0;
      for (int i = 0; i < columns; ++i) {
        const int at = cell_column(i);
        const bool right = above == here || above[at].predicts_as(here[at]);
        if (i == 0) left = above == here || above[cell_column(-1)].predicts_as(here[cell_column(-1)]);
        tiles[static_cast<std::size_t>(j * columns + i)] =
            left && right && (at == before || here[before].predicts_as(here[at])) ? kUniform : kMixed;
        left = right;
        before = at;
      }
    }
  }

  static bool takes_past(const MotionCell& c, const MotionReferences& references) {
    return c.uses(0) || references.other < 0;
  }
  static bool takes_other(const MotionCell& c, const MotionReferences& references) {
    return c.uses(1) && references.other >= 0;
  }

  // How far a prediction of samples that move alike may go: where they come as they are, no memory bounds it.
  struct Reach {
    int columns;
    bool down;
  };
  Reach reach_of(const MotionCell& c, const MotionReferences& references) const {
    if (c.mode == MotionMode::kPlain) return {kMostRun, true};
    bool still = up_ == 0, down = false;
    for (int k = 0; k < 2; ++k) {
      if (!(k == 0 ? takes_past(c, references) : takes_other(c, references))) continue;
      const MotionVector v = c.vector[static_cast<std::size_t>(k)];
      still = still && v == MotionVector{};
      down = down || (eighths(v.y, component_.scale.shift_y) & 7) != 0;
    }
    return {still ? width() : kMostRun, down};
  }

  void predict_alike(int t, const MotionCell& c, const MotionReferences& references, int y0, int x0, int rows,
                     int columns, bool add, Scratch& s) {
    const int shift = component_.fraction == 0 ? up_ : 0;
    std::int32_t* to = row(t, y0) + x0;
    Samples p[2];
    if (predict_cell(c, references, y0, x0, rows, columns, s, s.first, p) == 1)
      kernels_.lift(to, field_.row_stride, p[0].data, p[0].stride, rows, columns, shift, add);
    else
      kernels_.lift_mean(to, field_.row_stride, p[0].data, p[0].stride, p[1].data, p[1].stride, rows, columns, shift,
                         add);
  }

  // A tile whose cells do not all move alike.
  void predict_corner(int t, const MotionField& f, const MotionReferences& references, int tile_y, int tile_x, int y0,
                      int x0, int rows, int columns, bool add, Scratch& s) {
    constexpr int kTile = kMotionCell * kMotionCell;
    const MotionCell* cells[4];
    for (int k = 0; k < 4; ++k) cells[k] = &cell(f, tile_y - 1 + (k >> 1), tile_x - 1 + (k & 1));
    const int inside = (y0 - (tile_y * cell_y_ - cell_y_ / 2)) * kMotionCell + x0 - (tile_x * cell_x_ - cell_x_ / 2);
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
      if (predict_cell(*cells[k], references, y0, x0, rows, columns, s, out, p) == 2) {
        kernels_.average(p[0].data, p[0].stride, p[1].data, p[1].stride, out, kMotionCell, rows, columns);
        p[0] = {out, kMotionCell};
      }
      parts[n++] = {p[0].data, p[0].stride, weights_[set] + inside};
    }
    kernels_.lift_blended(row(t, y0) + x0, field_.row_stride, parts, n, rows, columns,
                          component_.fraction == 0 ? up_ : 0, add);
  }

  // What a cell's motion makes of some samples, in sixteenths of a grey level: the first prediction, or the mean of
  // two. `out` is where the first one may be put.
  int predict_cell(const MotionCell& c, const MotionReferences& references, int y0, int x0, int rows, int columns,
                   Scratch& s, std::int32_t* out, Samples p[2]) {
    if (c.mode == MotionMode::kPlain) {
      const std::int32_t value =
          differences_ ? 0 : motion_plain(c.plain[static_cast<std::size_t>(component_.index)], component_.bits);
      std::fill_n(out, columns, value);
      p[0] = {out, 0};
      return 1;
    }
    const bool past = takes_past(c, references);
    const bool other = takes_other(c, references);
    const std::ptrdiff_t stride = columns <= kMotionCell ? kMotionCell : kMostRun;
    int n = 0;
    if (past) p[n++] = look_up(references.past, c.vector[0], y0, x0, rows, columns, s, out, stride);
    if (other) p[n++] = look_up(references.other, c.vector[1], y0, x0, rows, columns, s, past ? s.second : out, stride);
    return n;
  }

  // A block of a reference at a vector's other end. Outside the picture stand its border samples.
  Samples look_up(int t, MotionVector v, int y0, int x0, int rows, int columns, Scratch& s, std::int32_t* out,
                  std::ptrdiff_t out_stride) const {
    const int ex = eighths(v.x, component_.scale.shift_x);
    const int ey = eighths(v.y, component_.scale.shift_y);
    const int phase_x = ex & 7, phase_y = ey & 7;
    const int left = phase_x != 0 ? kBefore : 0, right = phase_x != 0 ? kBehind : 0;
    const int above = phase_y != 0 ? kBefore : 0, below = phase_y != 0 ? kBehind : 0;
    const int x = x0 + (ex >> 3);
    const int y = y0 + (ey >> 3);
    Samples from;
    if (x >= left && y >= above && x + columns + right <= width() && y + rows + below <= height()) {
      from = {row(t, y) + x, field_.row_stride};
    } else {
      const int before = std::clamp(left - x, 0, left + columns + right);  // columns beside the picture
      const int behind = std::clamp(x + columns + right - width(), 0, left + columns + right - before);
      for (int j = 0; j < above + rows + below; ++j) {
        const std::int32_t* line = row(t, std::clamp(y + j - above, 0, height() - 1));
        std::int32_t* to = s.patch + j * Scratch::kColumns;
        const int inside = left + columns + right - before - behind;
        std::fill_n(to, before, line[0]);
        std::copy_n(line + std::clamp(x - left, 0, width() - 1), inside, to + before);
        std::fill_n(to + before + inside, behind, line[width() - 1]);
      }
      from = {s.patch + above * Scratch::kColumns + left, Scratch::kColumns};
      if (phase_x == 0 && phase_y == 0 && up_ == 0) {  // another look-up may need the patch
        for (int j = 0; j < rows; ++j) std::copy_n(from.data + j * from.stride, columns, out + j * out_stride);
        return {out, out_stride};
      }
    }
    if (phase_x == 0 && phase_y == 0 && up_ == 0) return from;
    kernels_.interpolate(from.data, from.stride, out, out_stride, rows, columns, phase_x, phase_y, up_);
    return {out, out_stride};
  }

  // -------------------------------------------------------------------------------------------------------- update

  void update_level(int level, bool inverse) {
    constexpr int kStripe = 16;
    const int s = 1 << level;
    const int first = first_place(motion_.places.key);  // nothing is given back to what is not of this GOP
    const int targets = (motion_.places.count + 2 * s - 1) / (2 * s) - first;
    const std::vector<int> frames = motion_frames(level, motion_.places);
    std::vector<UpdateField> fields(2 * frames.size());
    pool_.parallel_for(static_cast<int>(fields.size()), [&](int i, int) {
      const int high = frames[static_cast<std::size_t>(i / 2)];
      const MotionReferences references = motion_references(high, level, motion_.places);
      if (i % 2 == 0 || (references.other >= 0 && !references.older))
        find_runs(motion_.fields[static_cast<std::size_t>(high)], i % 2, fields[static_cast<std::size_t>(i)]);
    });
    const int stripes = (height() + kStripe - 1) / kStripe;
    pool_.parallel_for(targets * stripes, [&](int i, int worker) {
      const int t = (i / stripes + first) * 2 * s;
      const int y0 = i % stripes * kStripe;
      const int y1 = std::min(height(), y0 + kStripe);
      std::vector<std::int32_t>& update = scratch_[static_cast<std::size_t>(worker)].update;
      const std::size_t samples = static_cast<std::size_t>(y1 - y0) * static_cast<std::size_t>(width());
      bool any = false;
      for (const int high : {t - s, t + s}) {
        if (high < 0 || high >= motion_.places.count) continue;
        const int reference = motion_references(high, level, motion_.places).number_of(t);
        if (reference < 0) continue;
        const UpdateField& f = fields[static_cast<std::size_t>((high - s) / (2 * s) * 2 + reference)];
        if (f.runs.empty()) continue;
        if (!any) update.assign(2 * samples, 0);
        any = true;
        scatter_frame(high, f, y0, y1, update.data(), update.data() + samples);
      }
      if (any) apply(t, y0, y1, update.data(), update.data() + samples, inverse);
    });
  }

  // Of the cells of a high frame that use a reference.
  void find_runs(const MotionField& f, int reference, UpdateField& out) const {
    const auto r = static_cast<std::size_t>(reference);
    for (int cy = 0; cy * cell_y_ < height(); ++cy) {
      UpdateField::Row line{out.runs.size(), 0, height(), 0};
      const MotionCell* const cells = f.data() + motion_.grid.index(cell_row(cy), 0);
      for (int cx = 0, end = 0; cx * cell_x_ < width(); cx = end) {
        const MotionCell& c = cells[cell_column(cx)];
        end = cx + 1;
        if (!c.uses(reference)) continue;
        const bool both = c.mode == MotionMode::kBoth;
        const MotionVector v = c.vector[r];
        for (; end * cell_x_ < width(); ++end) {
          const MotionCell& o = cells[cell_column(end)];
          if (!o.uses(reference) || o.vector[r] != v || (o.mode == MotionMode::kBoth) != both) break;
        }
        const int right = eighths(v.x, component_.scale.shift_x), down = eighths(v.y, component_.scale.shift_y);
        const int top = cy * cell_y_ + (down >> 3);
        const int bottom = std::min(height(), (cy + 1) * cell_y_) + (down >> 3) + ((down & 7) != 0 ? 1 : 0);
        if (top >= height() || bottom <= 0) continue;
        line.top = std::min(line.top, top);
        line.bottom = std::max(line.bottom, bottom);
        out.runs.push_back({cx * cell_x_, std::min(width(), end * cell_x_), right, down, both ? 1 : 2});
      }
      line.end = out.runs.size();
      out.rows.push_back(line);
    }
  }

  // Adds what a high frame gives back to rows [y0, y1) of the reference that it was predicted from.
  void scatter_frame(int high, const UpdateField& f, int y0, int y1, std::int32_t* sum, std::int32_t* total) const {
    for (std::size_t cy = 0; cy < f.rows.size(); ++cy) {
      const UpdateField::Row& line = f.rows[cy];
      if (line.top >= y1 || line.bottom <= y0) continue;
      for (std::size_t i = line.begin; i < line.end; ++i)
        scatter_run(high, static_cast<int>(cy) * cell_y_, f.runs[i], y0, y1, sum, total);
    }
  }

  // Of the cells that begin in row y.
  void scatter_run(int high, int y, const UpdateRun& run, int y0, int y1, std::int32_t* sum,
                   std::int32_t* total) const {
    const int bottom = std::min(height(), y + cell_y_);
    const int down = run.down >> 3, far_y = run.down & 7, near_y = 8 - far_y;
    const int far_x = run.right & 7, near_x = 8 - far_x;
    const std::int32_t near[2] = {run.share * near_y * near_x, run.share * near_y * far_x};
    const std::int32_t far[2] = {run.share * far_y * near_x, run.share * far_y * far_x};
    const int end = std::min(y1, bottom + down + (far_y != 0 ? 1 : 0));
    for (int to = std::max(y0, y + down); to < end; ++to) {
      const int from = to - down;
      const bool has_near = from < bottom, has_far = far_y != 0 && from > y;
      const std::int32_t weight[4] = {has_near ? near[0] : far[0], has_near ? near[1] : far[1],
                                      has_near && has_far ? far[0] : 0, has_near && has_far ? far[1] : 0};
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(to - y0) * width();
      scatter_row(row(high, has_near ? from : from - 1) + run.begin,
                  has_near && has_far ? row(high, from - 1) + run.begin : nullptr, run.end - run.begin,
                  run.begin + (run.right >> 3), weight, sum + at, total + at);
    }
  }

  // MotionKernels::scatter() of n samples to place x and those behind it, as far as they are inside.
  void scatter_row(const std::int32_t* h, const std::int32_t* g, int n, int x, const std::int32_t weight[4],
                   std::int32_t* sum, std::int32_t* total) const {
    const int beside = weight[1] != 0 || weight[3] != 0 ? 1 : 0;
    const int first = std::clamp(-x, 0, n);
    const int end = std::clamp(width() - beside - x, first, n);
    if (end > first)
      kernels_.scatter(h + first, g ? g + first : nullptr, end - first, weight, sum + x + first, total + x + first);
    // Samples next to these may reach the picture with one of their weights.
    for (const int i : {first - 1, end})
      for (int k = 0; k < 2 && i >= 0 && i < n; ++k) {
        const int to = x + i + k;
        if (to < 0 || to >= width()) continue;
        const std::uint32_t of_g = g ? static_cast<std::uint32_t>(weight[2 + k]) * static_cast<std::uint32_t>(g[i]) : 0;
        sum[to] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[to]) + of_g +
                                            static_cast<std::uint32_t>(weight[k]) * static_cast<std::uint32_t>(h[i]));
        total[to] = wrap_add(total[to], wrap_add(weight[k], g ? weight[2 + k] : 0));
      }
  }

  void apply(int t, int y0, int y1, const std::int32_t* sum, const std::int32_t* total, bool inverse) const {
    static const std::vector<std::int32_t> shares = [] {
      std::vector<std::int32_t> of;
      for (std::uint32_t n = 0; n < kMotionShares; ++n) of.push_back(motion_share(n));
      return of;
    }();
    for (int y = y0; y < y1; ++y, sum += width(), total += width())
      kernels_.update(row(t, y), sum, total, width(), shares.data(), limit_, inverse);
  }

  const Field<std::int32_t>& field_;
  const GopMotion& motion_;
  MotionComponent component_;
  int dropped_;
  MotionBorders borders_;
  ThreadPool& pool_;
  const MotionKernels& kernels_;
  int up_;                    // places by which the field's integers lack those of a prediction
  std::int32_t limit_;        // of an update
  bool differences_ = false;  // of coefficients are lifted: constants cancel out
  int cell_x_;
  int cell_y_;
  std::int32_t weights_[1 << 4][kMotionCell * kMotionCell] = {};  // of a tile's samples, by the set of its cells
  std::vector<Scratch> scratch_;
};

}  // namespace

void forward_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, 0, borders, pool, simd).forward();
}

void inverse_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                    int dropped, const MotionBorders& borders, ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, dropped, borders, pool, simd).inverse();
}

void correlate_motion(const Field<std::int32_t>& field, const GopMotion& motion, const MotionComponent& component,
                      ThreadPool& pool, SimdLevel simd) {
  MotionLift(field, motion, component, 0, {}, pool, simd).inverse_and_transposed();
}

}  // namespace trivelet
