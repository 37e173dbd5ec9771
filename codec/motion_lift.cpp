#include "codec/motion_lift.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "codec/motion_kernels.h"

namespace trivelet {

const MotionKernels& motion_kernels([[maybe_unused]] SimdLevel simd) {
#if defined(TRIVELET_HAVE_X86_KERNELS)
  if (simd == SimdLevel::kAvx512) return kMotionKernelsAvx512;
  if (simd == SimdLevel::kAvx2) return kMotionKernelsAvx2;
#endif
  return kMotionKernelsScalar;
}

namespace {

constexpr int kTaps = kMotionTaps;
constexpr int kBefore = kMotionTapsBefore;
constexpr int kMostRun = 64;  // samples predicted in one go, where neighbours move alike

/// Memory of one worker.
struct Scratch {
  static constexpr int kRows = kMotionCell + kTaps;
  static constexpr int kColumns = kMostRun + 2 * kTaps;
  std::int32_t patch[kRows * kColumns];     // of a reference, where it reaches beyond the picture
  std::int32_t filtered[kRows * kColumns];  // along rows
  std::int32_t first[kMotionCell * kMostRun];
  std::int32_t second[kMotionCell * kMostRun];
  std::int32_t sum[kMotionCell * kMotionCell];
  std::int32_t weight[kMotionCell * kMotionCell];
  std::vector<std::int32_t> update;  // sums of a stripe, then totals
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
    require(component.fraction == 0 || component.fraction == kMotionFraction, ErrorKind::kInternal,
            "an unknown number of binary places");
    require(field.shape.frames == low_length(motion.places.count, dropped), ErrorKind::kBadArgument,
            "motion of another number of frames than the field's");
  }

  void forward() {
    for (int l = dropped_; l < motion_.levels; ++l) {
      pass_keys(l);
      predict_level(l, false);
      update_level(l, false);
    }
  }
  void inverse() {
    for (int l = motion_.levels - 1; l >= dropped_; --l) {
      update_level(l, true);
      pass_keys(l);
      predict_level(l, true);
    }
  }

 private:
  // Keeps the own key frame as level l predicts from it, and brings that of the GOP before to place 0.
  void pass_keys(int l) {
    const auto i = static_cast<std::size_t>(l);
    const auto row_samples = static_cast<std::size_t>(width());
    const int last = motion_.places.count - 1;
    const bool has_key = motion_.places.ends_with_key(motion_.levels);
    if (borders_.own && has_key) {
      std::vector<std::int32_t>& to = (*borders_.own)[i];
      to.resize(row_samples * static_cast<std::size_t>(height()));
      for (int y = 0; y < height(); ++y)
        std::copy_n(row(last, y), row_samples, to.data() + static_cast<std::size_t>(y) * row_samples);
    }
    if (motion_.places.key != GopKey::kOpen) return;
    const int substitute = 1 << motion_.levels;
    for (int y = 0; y < height(); ++y) {
      const std::size_t at = static_cast<std::size_t>(y) * row_samples;
      if (borders_.before)
        std::copy_n((*borders_.before)[i].data() + at, row_samples, row(0, y));
      else if (substitute <= last)
        std::copy_n(row(substitute, y), row_samples, row(0, y));
      else
        std::fill_n(row(0, y), row_samples, 0);
    }
    if (borders_.own_exact && has_key) add_error((*borders_.own_exact)[i], row(last, 0));
  }

  // The error of one key frame for that of another, with alternating signs in a chessboard: as it stands it would add up
  // with itself where a frame is predicted from both.
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

  void predict_level(int level, bool add) {
    const std::vector<int> frames = motion_frames(level, motion_.places);
    const int tile_rows = height() / cell_y_ + 2;  // the last ones may be empty
    pool_.parallel_for(static_cast<int>(frames.size()) * tile_rows, [&](int i, int worker) {
      const int t = frames[static_cast<std::size_t>(i / tile_rows)];
      predict_tiles(t, motion_references(t, level, motion_.places), i % tile_rows, add,
                    scratch_[static_cast<std::size_t>(worker)]);
    });
  }

  // A row of tiles: the samples around the corners of cells, each predicted by the four cells that meet there.
  void predict_tiles(int t, const MotionReferences& references, int tile, bool add, Scratch& s) {
    const int y0 = std::max(0, tile * cell_y_ - cell_y_ / 2);
    const int y1 = std::min(height(), tile * cell_y_ + (cell_y_ + 1) / 2);
    if (y0 >= y1) return;
    const MotionField& f = motion_.fields[static_cast<std::size_t>(t)];
    const int shift = component_.fraction == 0 ? up_ : 0;
    const auto alike = [&](int i) {  // the four cells of tile i, compared with the one behind it
      const MotionCell& c = cell(f, tile, i);
      return c.predicts_as(cell(f, tile - 1, i - 1)) && c.predicts_as(cell(f, tile - 1, i)) &&
             c.predicts_as(cell(f, tile, i - 1));
    };
    for (int i = 0; i * cell_x_ - cell_x_ / 2 < width();) {
      const int x0 = std::max(0, i * cell_x_ - cell_x_ / 2);
      int end = i + 1;
      const bool one = alike(i);
      const MotionCell& c = cell(f, tile, i);
      const auto end_of = [&](int e) { return std::min(width(), e * cell_x_ - cell_x_ / 2); };
      if (one)
        while (end_of(end) < width() && end_of(end + 1) - x0 <= kMostRun && alike(end) &&
               c.predicts_as(cell(f, tile, end)))
          ++end;
      const int columns = end_of(end) - x0;
      const std::int32_t* p = s.first;
      std::ptrdiff_t stride = kMostRun;
      if (columns > 0) {
        if (one) {
          predict_cell(c, references, y0, x0, y1 - y0, columns, s);
        } else {
          predict_corner(f, references, tile, i, y0, x0, y1 - y0, columns, s);
          p = s.sum;
          stride = kMotionCell;
        }
        for (int y = y0; y < y1; ++y) kernels_.lift(row(t, y) + x0, p + (y - y0) * stride, columns, shift, add);
      }
      i = end;
    }
  }

  // The samples around a corner of four cells that do not all move alike, into s.sum.
  void predict_corner(const MotionField& f, const MotionReferences& references, int tile_y, int tile_x, int y0, int x0,
                      int rows, int columns, Scratch& s) {
    const MotionCell* cells[4];
    bool done[4] = {};
    for (int k = 0; k < 4; ++k) cells[k] = &cell(f, tile_y - 1 + (k >> 1), tile_x - 1 + (k & 1));
    int ramp_y[kMotionCell], ramp_x[kMotionCell];
    for (int y = 0; y < rows; ++y) ramp_y[y] = motion_weight(cell_y_, y0 + y - (tile_y * cell_y_ - cell_y_ / 2));
    for (int x = 0; x < columns; ++x) ramp_x[x] = motion_weight(cell_x_, x0 + x - (tile_x * cell_x_ - cell_x_ / 2));
    bool first = true;
    for (int k = 0; k < 4; ++k) {
      if (done[k]) continue;
      std::memset(s.weight, 0, sizeof s.weight);
      for (int j = k; j < 4; ++j) {
        if (done[j] || !cells[j]->predicts_as(*cells[k])) continue;
        done[j] = true;
        for (int y = 0; y < rows; ++y)
          for (int x = 0; x < columns; ++x)
            s.weight[y * kMotionCell + x] +=
                (j >> 1 ? ramp_y[y] : kMotionWeight - ramp_y[y]) * (j & 1 ? ramp_x[x] : kMotionWeight - ramp_x[x]);
      }
      predict_cell(*cells[k], references, y0, x0, rows, columns, s);
      for (int y = 0; y < rows; ++y)
        kernels_.weigh(s.first + y * kMostRun, s.weight + y * kMotionCell, s.sum + y * kMotionCell, columns, first);
      first = false;
    }
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < columns; ++x) {
        std::int32_t& v = s.sum[y * kMotionCell + x];
        v = motion_mean(v);
      }
  }

  // What a cell's motion makes of some samples, in sixteenths of a grey level, into s.first.
  void predict_cell(const MotionCell& c, const MotionReferences& references, int y0, int x0, int rows, int columns,
                    Scratch& s) {
    if (c.mode == MotionMode::kPlain) {
      const std::int32_t value = motion_plain(c.plain[static_cast<std::size_t>(component_.index)], component_.bits);
      for (int y = 0; y < rows; ++y) std::fill_n(s.first + y * kMostRun, columns, value);
      return;
    }
    const bool past = c.uses(0) || references.other < 0;
    const bool other = c.uses(1) && references.other >= 0;
    if (past) look_up(references.past, c.vector[0], y0, x0, rows, columns, s, s.first);
    if (other) look_up(references.other, c.vector[1], y0, x0, rows, columns, s, past ? s.second : s.first);
    if (past && other)
      for (int y = 0; y < rows; ++y) kernels_.average(s.first + y * kMostRun, s.second + y * kMostRun, columns);
  }

  // A block of a reference at a vector's other end. Outside the picture stand its border samples.
  void look_up(int t, MotionVector v, int y0, int x0, int rows, int columns, Scratch& s, std::int32_t* out) const {
    const int ex = eighths(v.x, component_.scale.shift_x);
    const int ey = eighths(v.y, component_.scale.shift_y);
    const int x = x0 + (ex >> 3);
    const int y = y0 + (ey >> 3);
    const std::int32_t* from;
    std::ptrdiff_t stride;
    if (x >= kBefore && y >= kBefore && x + columns + kTaps - kBefore <= width() &&
        y + rows + kTaps - kBefore <= height()) {
      from = row(t, y) + x;
      stride = field_.row_stride;
    } else {
      for (int j = 0; j < rows + kTaps; ++j) {
        const std::int32_t* line = row(t, std::clamp(y + j - kBefore, 0, height() - 1));
        std::int32_t* to = s.patch + j * Scratch::kColumns;
        for (int i = 0; i < columns + kTaps; ++i) to[i] = line[std::clamp(x + i - kBefore, 0, width() - 1)];
      }
      from = s.patch + kBefore * Scratch::kColumns + kBefore;
      stride = Scratch::kColumns;
    }
    if ((ey & 7) == 0) {
      kernels_.filter_rows(from, stride, out, kMostRun, rows, columns, ex & 7, up_);
      return;
    }
    kernels_.filter_rows(from - kBefore * stride, stride, s.filtered, Scratch::kColumns, rows + kTaps - 1, columns,
                         ex & 7, up_);
    kernels_.filter_columns(s.filtered + kBefore * Scratch::kColumns, Scratch::kColumns, out, kMostRun, rows, columns,
                            ey & 7);
  }

  // -------------------------------------------------------------------------------------------------------- update

  void update_level(int level, bool inverse) {
    const int s = 1 << level;
    const int first = first_place(motion_.places.key);  // nothing is given back to what is not of this GOP
    const int targets = (motion_.places.count + 2 * s - 1) / (2 * s) - first;
    const int stripe = 32;
    const int stripes = (height() + stripe - 1) / stripe;
    pool_.parallel_for(targets * stripes, [&](int i, int worker) {
      const int t = (i / stripes + first) * 2 * s;
      const int y0 = i % stripes * stripe;
      const int y1 = std::min(height(), y0 + stripe);
      Scratch& scratch = scratch_[static_cast<std::size_t>(worker)];
      const std::size_t samples = static_cast<std::size_t>(y1 - y0) * static_cast<std::size_t>(width());
      bool any = false;
      for (const int high : {t - s, t + s}) {
        if (high < 0 || high >= motion_.places.count) continue;
        const MotionReferences references = motion_references(high, level, motion_.places);
        const int reference = references.number_of(t);
        if (reference < 0 || (reference == 1 && references.older)) continue;
        if (!any) scratch.update.assign(2 * samples, 0);
        any = true;
        scatter_frame(high, reference, y0, y1, scratch.update.data(), scratch.update.data() + samples);
      }
      if (any) apply(t, y0, y1, scratch.update.data(), scratch.update.data() + samples, inverse);
    });
  }

  // Adds what the cells of a high frame give back to rows [y0, y1) of the reference they were predicted from.
  void scatter_frame(int high, int reference, int y0, int y1, std::int32_t* sum, std::int32_t* total) const {
    const MotionField& f = motion_.fields[static_cast<std::size_t>(high)];
    const auto r = static_cast<std::size_t>(reference);
    for (int cy = 0; cy * cell_y_ < height(); ++cy)
      for (int cx = 0, end = 0; cx * cell_x_ < width(); cx = end) {
        const MotionCell& c = cell(f, cy, cx);
        end = cx + 1;
        if (!c.uses(reference)) continue;
        const bool both = c.mode == MotionMode::kBoth;
        const MotionVector v = c.vector[r];
        const auto alike = [&](const MotionCell& o) {
          return o.uses(reference) && o.vector[r] == v && (o.mode == MotionMode::kBoth) == both;
        };
        while (end * cell_x_ < width() && alike(cell(f, cy, end))) ++end;
        const int ey = eighths(v.y, component_.scale.shift_y);
        const int top = cy * cell_y_ + (ey >> 3);
        if (top >= y1 || top + cell_y_ < y0) continue;
        scatter_cells(high, cy, cx, end, both ? 1 : 2, ey, eighths(v.x, component_.scale.shift_x), y0, y1, sum, total);
      }
  }

  // Those of a row from cx up to `end`, which move alike.
  void scatter_cells(int high, int cy, int cx, int end, int share, int ey, int ex, int y0, int y1, std::int32_t* sum,
                     std::int32_t* total) const {
    const int bottom = std::min(height(), (cy + 1) * cell_y_);
    const int left = cx * cell_x_;
    const int columns = std::min(width(), end * cell_x_) - left;
    for (int y = cy * cell_y_; y < bottom; ++y)
      for (int k = 0; k < 2; ++k) {
        const int to = y + (ey >> 3) + k;
        const int weight = share * (k == 0 ? 8 - (ey & 7) : ey & 7);
        if (weight == 0 || to < y0 || to >= y1) continue;
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(to - y0) * width();
        scatter_row(row(high, y) + left, columns, left + (ex >> 3), weight * (8 - (ex & 7)), weight * (ex & 7),
                    sum + at, total + at);
      }
  }

  // `near` of each sample goes to place x + i, `far` to the one behind, as far as they are inside.
  void scatter_row(const std::int32_t* h, int n, int x, int near, int far, std::int32_t* sum,
                   std::int32_t* total) const {
    const int first = std::clamp(-x, 0, n);
    const int end = std::clamp(width() - 1 - x, first, n);
    if (end > first) kernels_.scatter(h + first, end - first, near, far, sum + x + first, total + x + first);
    const auto add = [&](int to, int weight, std::int32_t value) {
      if (to < 0 || to >= width()) return;
      sum[to] = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum[to]) +
                                          static_cast<std::uint32_t>(weight) * static_cast<std::uint32_t>(value));
      total[to] = wrap_add(total[to], weight);
    };
    const auto add_one_by_one = [&](int from, int until) {
      for (int i = from; i < until; ++i) {
        add(x + i, near, h[i]);
        add(x + i + 1, far, h[i]);
      }
    };
    add_one_by_one(0, first);
    add_one_by_one(end, n);
  }

  void apply(int t, int y0, int y1, const std::int32_t* sum, const std::int32_t* total, bool inverse) const {
    constexpr std::uint32_t kKnown = 1024;  // totals beyond, of many places that lead to one, are rare
    static const std::vector<std::int32_t> shares = [] {
      std::vector<std::int32_t> of;
      for (std::uint32_t n = 0; n < kKnown; ++n) of.push_back(motion_share(n));
      return of;
    }();
    for (int y = y0; y < y1; ++y, sum += width(), total += width()) {
      std::int32_t* line = row(t, y);
      for (int x = 0; x < width(); ++x) {
        const auto n = static_cast<std::uint32_t>(total[x]);
        const std::int32_t v = motion_update_by(sum[x], n < kKnown ? shares[n] : motion_share(n), limit_);
        line[x] = inverse ? wrap_sub(line[x], v) : wrap_add(line[x], v);
      }
    }
  }

  const Field<std::int32_t>& field_;
  const GopMotion& motion_;
  MotionComponent component_;
  int dropped_;
  MotionBorders borders_;
  ThreadPool& pool_;
  const MotionKernels& kernels_;
  int up_;              // places by which the field's integers lack those of a prediction
  std::int32_t limit_;  // of an update
  int cell_x_;
  int cell_y_;
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

}  // namespace trivelet
