// Motion search on the CPU: reduced pictures, pictures at all quarters of a sample, and what measures candidates for
// the search of a frame's blocks (motion_tree.h).
#include "codec/motion/motion_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>

#include "codec/motion/motion_choice.h"
#include "codec/motion/motion_tree.h"
#include "codec/motion/sad_kernels.h"
#include "codec/transform/subband.h"

namespace trivelet {

namespace {

using namespace motion_choice;

constexpr std::size_t kPictureMemory = std::size_t{168} << 20;  // limit for interpolated pictures; two are always kept

// Cost of a bit in 1/16 of the sum of magnitudes of Hadamard transforms of samples of 12 bits, divided by 5, for a
// quantiser step of one grey level at 8 bits. The optimum over CIF clips at steps of 12 to 72 is flat.
constexpr double kLambda = 0.35 * 1.5 * 16;
constexpr double kOfLambda = 2.5;  // in units of kSatdUnit
constexpr double kMostLambda = 1 << 15;
// Factors of the cost by level, finest first; further levels have the last one. BD-rate against 1 everywhere (-q 5, 25,
// 45, 60): -0.3 % on the five clips used for tuning, -0.6 % on five others (worst 0.0). Factors twice as far from 1
// give -0.2 %.
constexpr double kOfLevel[] = {0.85, 1, 1.1, 1.4, 1.6};

/// A padded picture at all quarters of a sample.
template <class T>
struct SearchPicture {
  int width = 0, height = 0;
  std::ptrdiff_t stride = 0;
  std::unique_ptr<T[]> planes[kQuarters * kQuarters];  // [y quarter * 4 + x quarter]

  /// Memory of a plane. A reused picture has the same size and keeps it.
  T* make_plane(int i) {
    const auto rows = static_cast<std::size_t>(height + 2 * kPad);
    if (!planes[i]) planes[i] = std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(stride) * rows);
    return planes[i].get();
  }

  const T* at(int y, int x, MotionVector v) const {
    const int py = y + (v.y >> 2) + kPad;
    const int px = x + (v.x >> 2) + kPad;
    return planes[(v.y & 3) * kQuarters + (v.x & 3)].get() + py * stride + px;
  }
};

/// A reduced picture; each sample is the mean of a square.
template <class T>
struct SmallPicture {
  int width = 0, height = 0;
  std::vector<T> samples;
};

// ------------------------------------------------------------------------------------------------------------ pictures

template <class T>
void load_row(const Field<std::int32_t>& f, int t, int y, int bits, T* out) {
  const std::int32_t* in = f.row(t, y);
  const int n = f.shape.width;
  if (bits == 8)  // a loop of its own, because the shift is constant
    for (int x = 0; x < n; ++x) out[x] = searched(in[x], 8, T{});
  else
    for (int x = 0; x < n; ++x) out[x] = searched(in[x], bits, T{});
}

// Samples beside a row are those at its ends.
template <class T>
void pad_row(T* row, int width) {
  std::fill_n(row, kPad, row[kPad]);
  std::fill_n(row + kPad + width, kPad, row[kPad + width - 1]);
}

// Rows above and below a picture, but for `beyond` next to it, are the nearest of these. Plane i.
template <class T>
void pad_rows(SearchPicture<T>& p, int i, int beyond) {
  const auto bytes = static_cast<std::size_t>(p.stride) * sizeof(T);
  T* const plane = p.planes[i].get();
  const T* const first = plane + (kPad - beyond) * p.stride;
  const T* const last = plane + (kPad + p.height + beyond - 1) * p.stride;
  for (int y = 0; y < kPad - beyond; ++y) std::memcpy(plane + y * p.stride, first, bytes);
  for (int y = kPad + p.height + beyond; y < p.height + 2 * kPad; ++y) std::memcpy(plane + y * p.stride, last, bytes);
}

template <class T>
void load_picture(const Field<std::int32_t>& f, int t, int bits, SearchPicture<T>& p) {
  p.width = f.shape.width;
  p.height = f.shape.height;
  p.stride = p.width + 2 * kPad;
  T* const first = p.make_plane(0) + kPad * p.stride;
  for (int y = 0; y < p.height; ++y) {
    load_row(f, t, y, bits, first + y * p.stride + kPad);
    pad_row(first + y * p.stride, p.width);
  }
  pad_rows(p, 0, 0);
}

constexpr int kNear = 4;  // samples around a picture from which taps may reach into it

// Planes of three quarters between columns, or between rows of the plane of a quarter between columns. In the padding,
// but for kNear samples around the picture, all taps have one sample, which thus is the result.
template <class T>
void interpolate(SearchPicture<T>& p, bool rows, int of, const SadKernels<T>& kernels) {
  static_assert(kNear >= kMotionTapsBefore && kNear >= kMotionTaps - kMotionTapsBefore - 1);
  const std::ptrdiff_t step = rows ? p.stride : 1;
  const int beyond = rows ? kNear : 0, left = kPad - kNear, n = p.width + 2 * kNear;
  const T* const from = p.planes[of].get() + kPad * p.stride;
  T* planes[kQuarters - 1];
  for (int q = 1; q < kQuarters; ++q) planes[q - 1] = p.make_plane(rows ? q * kQuarters + of : q) + kPad * p.stride;
  for (int y = -beyond; y < p.height + beyond; ++y) {
    const std::ptrdiff_t row = y * p.stride, at = row + left;
    T* const out[kQuarters - 1] = {planes[0] + at, planes[1] + at, planes[2] + at};
    kernels.interpolate(from + at, step, out, n);
    for (T* plane : planes) {
      std::fill_n(plane + row, left, plane[at]);
      std::fill_n(plane + at + n, left, plane[at + n - 1]);
    }
  }
  for (int q = 1; q < kQuarters; ++q) pad_rows(p, rows ? q * kQuarters + of : q, beyond);
}

template <class T>
void shrink(const Field<std::int32_t>& f, int t, int bits, int factor, SmallPicture<T>& p) {
  p.width = (f.shape.width + factor - 1) / factor;
  p.height = (f.shape.height + factor - 1) / factor;
  p.samples.assign(static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height), 0);
  std::vector<T> row(static_cast<std::size_t>(f.shape.width));
  std::vector<int> sums(static_cast<std::size_t>(p.width));
  for (int y = 0; y < p.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    const int rows = std::min(f.shape.height, (y + 1) * factor) - y * factor;
    for (int j = 0; j < rows; ++j) {
      load_row(f, t, y * factor + j, bits, row.data());
      for (int x = 0, i = 0; i < p.width; ++i) {
        int sum = 0;
        for (const int end = std::min(f.shape.width, x + factor); x < end; ++x) sum += row[static_cast<std::size_t>(x)];
        sums[static_cast<std::size_t>(i)] += sum;
      }
    }
    for (int x = 0; x < p.width; ++x)
      p.samples[static_cast<std::size_t>(y * p.width + x)] = static_cast<T>(
          sums[static_cast<std::size_t>(x)] / (rows * (std::min(f.shape.width, (x + 1) * factor) - x * factor)));
  }
}

// The best place of a block of a reduced picture in another one: every second place, then those beside the best.
template <class T>
MotionVector find_coarse(const SmallPicture<T>& current, const SmallPicture<T>& reference, int y, int x, int factor,
                         const SadKernels<T>& kernels) {
  MotionVector best;
  if (y + kSmallSide > current.height || x + kSmallSide > current.width) return best;
  const T* from = current.samples.data() + y * current.width + x;
  int least = 1 << 30, by = 0, bx = 0;
  const auto look = [&](int dy, int dx) {
    const int j = y + dy, i = x + dx;
    if (j < 0 || i < 0 || j + kSmallSide > reference.height || i + kSmallSide > reference.width) return;
    const int cost = small_cost(
        kernels.sad(from, reference.samples.data() + j * reference.width + i, reference.width, kSmallSide), dy, dx);
    if (cost >= least) return;
    least = cost;
    by = dy;
    bx = dx;
  };
  for (int dy = -kSmallReach; dy <= kSmallReach; dy += 2)
    for (int dx = -kSmallReach; dx <= kSmallReach; dx += 2) look(dy, dx);
  const int near_y = by, near_x = bx;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx) look(near_y + dy, near_x + dx);
  return limited_vector(kQuarters * factor * bx, kQuarters * factor * by);
}

// -------------------------------------------------------------------------------------------------------------- frame

/// A frame to search.
template <class T>
struct SearchedFrame {
  int t = 0;
  const SearchPicture<T>* current = nullptr;
  const SearchPicture<T>* references[2] = {};
  std::vector<MotionVector> coarse[2];  // of blocks of reduced pictures, in rows
  int coarse_rows = 0, coarse_columns = 0;
  std::vector<NodeMotion> nodes;  // of all root blocks, in rows
};

/// Measures candidates (motion_tree.h). Costs of cells of the current largest block are kept by vector.
template <class T>
class Measurer {
 public:
  SearchWork work;

  Measurer(const SearchedFrame<T>& frame, const std::vector<MotionPlane>& components, int bits,
           const SadKernels<T>& kernels)
      : frame_(frame), components_(components), bits_(bits), kernels_(kernels), stride_(frame.current->stride) {}

  static int first() { return 0; }
  static int step() { return 1; }
  static void sync() {}

  void compare(int n, int y, int x, int size) {
    for (int i = 0; i < n; ++i)
      work.cost[i] = kSadUnit * kernels_.sad(target(y, x), predicted(i, reference_of(i), y, x), stride_, size);
  }

  void enter(int y, int x) {
    if (y == root_y_ && x == root_x_) return;
    root_y_ = y;
    root_x_ = x;
    for (auto& kept : kept_)
      for (Kept& k : kept) k.has = 0;
  }

  void compare_starts(int y, int x) {
    for (int k = 0; k < (frame_.references[1] ? 2 : 1); ++k)
      for (int i = 0; i < work.starts[k]; ++i)
        kernels_.sad_of_cells(target(y, x), frame_.references[k]->at(y, x, work.start[k][static_cast<std::size_t>(i)]),
                              stride_, work.started[k][i]);
  }

  void measure(int n, int y, int x, int size) {
    if (size == kMotionCell) measure_cells(n, y, x);
    for (int i = 0; i < n; ++i) {
      const Tried& t = work.tried[i];
      if (t.uses == 0)
        work.cost[i] = kSatdUnit * kernels_.satd_of_plain(target(y, x), searched_plain(t.plain, T{}), stride_, size);
      else if (t.uses == 3)
        work.cost[i] = kSatdUnit *
                       kernels_.satd_of_mean(target(y, x), predicted(i, 0, y, x), predicted(i, 1, y, x), stride_, size);
      else if (size > kMotionCell)
        work.cost[i] = kSatdUnit * cost_of(i, y, x, size);
    }
  }

  MotionVector coarse(int reference, int row, int column) const {
    if (row < 0 || column < 0 || row >= frame_.coarse_rows || column >= frame_.coarse_columns) return {};
    return frame_.coarse[reference][static_cast<std::size_t>(row * frame_.coarse_columns + column)];
  }

  void plain(int cy, int cx, int log2, std::int8_t* out) const {
    for (std::size_t i = 0; i < components_.size(); ++i) {
      const MotionPlane& p = components_[i];
      const int y0 = cy * cell_size(p.scale.shift_y), x0 = cx * cell_size(p.scale.shift_x);
      const int y1 = std::min(p.samples.shape.height, y0 + (cell_size(p.scale.shift_y) << log2));
      const int x1 = std::min(p.samples.shape.width, x0 + (cell_size(p.scale.shift_x) << log2));
      std::int64_t sum = 0;
      for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) sum += p.samples.row(frame_.t, y)[x];
      out[i] = plain_of(sum, std::max(1, (y1 - y0) * (x1 - x0)), bits_);
    }
  }

 private:
  static constexpr int kCells = kMotionRoot * kMotionRoot;
  struct Kept {
    MotionVector v;
    std::uint64_t has = 0;  // of the cells
    std::int32_t of[kCells];
  };

  const T* target(int y, int x) const { return frame_.current->planes[0].get() + (y + kPad) * stride_ + x + kPad; }
  int reference_of(int i) const { return work.tried[i].uses >> 1; }
  const T* predicted(int i, int reference, int y, int x) const {
    return frame_.references[reference]->at(y, x, work.tried[i].v[static_cast<std::size_t>(reference)]);
  }

  Kept& kept_for(int i) {
    const int reference = reference_of(i);
    const MotionVector v = work.tried[i].v[static_cast<std::size_t>(reference)];
    Kept& k = kept_[reference][(v.x & 7) + 8 * (v.y & 7)];
    if (k.v != v) k.has = 0;
    k.v = v;
    return k;
  }

  // Blocks of one cell.
  void measure_cells(int n, int y, int x) {
    const int cell = (y - root_y_) / kMotionCell * kMotionRoot + (x - root_x_) / kMotionCell;
    const T* from[kMostTried] = {};
    std::int32_t cost[kMostTried];
    int number[kMostTried], count = 0;
    for (int i = 0; i < n; ++i) {
      if (work.tried[i].uses == 0 || work.tried[i].uses == 3) continue;
      const Kept& k = kept_for(i);
      if (k.has >> cell & 1) {
        work.cost[i] = kSatdUnit * k.of[cell];
        continue;
      }
      from[count] = predicted(i, reference_of(i), y, x);
      number[count++] = i;
    }
    kernels_.satd_of_many(target(y, x), from, stride_, count, cost);
    for (int j = 0; j < count; ++j) {
      work.cost[number[j]] = kSatdUnit * cost[j];
      Kept& k = kept_for(number[j]);
      k.of[cell] = cost[j];
      k.has |= std::uint64_t{1} << cell;
    }
  }

  int cost_of(int i, int y, int x, int size) {
    Kept& k = kept_for(i);
    const int cells = size / kMotionCell, top = (y - root_y_) / kMotionCell, left = (x - root_x_) / kMotionCell;
    const T* const from = predicted(i, reference_of(i), y, x);
    int sum = 0;
    for (int row = 0; row < cells; ++row) {
      const int first = (top + row) * kMotionRoot + left;
      const std::uint64_t all = ((std::uint64_t{1} << cells) - 1) << first;
      if ((k.has & all) != all) {
        const std::ptrdiff_t at = row * kMotionCell * stride_;
        kernels_.satd_of_cells(target(y, x) + at, from + at, stride_, cells, k.of + first);
        k.has |= all;
      }
      for (int c = first; c < first + cells; ++c) sum += k.of[c];
    }
    return sum;
  }

  const SearchedFrame<T>& frame_;
  const std::vector<MotionPlane>& components_;
  int bits_;
  const SadKernels<T>& kernels_;
  std::ptrdiff_t stride_;
  int root_y_ = -1, root_x_ = -1;
  Kept kept_[2][64];
};

// ----------------------------------------------------------------------------------------------------------------- GOP

/// Interpolated pictures of the frames that a batch of searches uses.
template <class T>
class PictureCache {
 public:
  PictureCache(const Field<std::int32_t>& luma, int bits, const SadKernels<T>& kernels, ThreadPool& pool)
      : luma_(luma),
        bits_(bits),
        kernels_(kernels),
        pool_(pool),
        pictures_(static_cast<std::size_t>(luma.shape.frames)) {
    const std::size_t plane = static_cast<std::size_t>(luma.shape.width + 2 * kPad) *
                              static_cast<std::size_t>(luma.shape.height + 2 * kPad) * sizeof(T);
    most_ = std::max<std::size_t>(2, kPictureMemory / (plane * kQuarters * kQuarters));
  }
  /// Limit of pictures at a time.
  std::size_t most() const { return most_; }
  /// Makes the pictures of `wanted` and drops all others.
  void hold(const std::vector<int>& wanted) {
    std::vector<int> missing;
    std::vector<std::unique_ptr<SearchPicture<T>>> kept(pictures_.size());
    for (const int t : wanted) {
      const auto i = static_cast<std::size_t>(t);
      if (!kept[i] && pictures_[i])
        kept[i] = std::move(pictures_[i]);
      else if (!kept[i] && std::find(missing.begin(), missing.end(), t) == missing.end())
        missing.push_back(t);
    }
    auto unused = pictures_.begin();
    for (const int t : missing) {
      unused = std::find_if(unused, pictures_.end(), [](const auto& p) { return p != nullptr; });
      kept[static_cast<std::size_t>(t)] =
          unused != pictures_.end() ? std::move(*unused) : std::make_unique<SearchPicture<T>>();
    }
    pictures_ = std::move(kept);
    pool_.parallel_for(static_cast<int>(missing.size()), [&](int i, int) {
      const int t = missing[static_cast<std::size_t>(i)];
      load_picture(luma_, t, bits_, *pictures_[static_cast<std::size_t>(t)]);
    });
    const auto missed = [&](int i) -> SearchPicture<T>& {
      return *pictures_[static_cast<std::size_t>(missing[static_cast<std::size_t>(i)])];
    };
    pool_.parallel_for(static_cast<int>(missing.size()),
                       [&](int i, int) { interpolate(missed(i), false, 0, kernels_); });
    pool_.parallel_for(static_cast<int>(missing.size()) * kQuarters,
                       [&](int i, int) { interpolate(missed(i / kQuarters), true, i % kQuarters, kernels_); });
  }
  const SearchPicture<T>* at(int t) const { return t < 0 ? nullptr : pictures_[static_cast<std::size_t>(t)].get(); }

 private:
  const Field<std::int32_t>& luma_;
  int bits_;
  const SadKernels<T>& kernels_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<SearchPicture<T>>> pictures_;
  std::size_t most_;
};

/// The search of a GOP in pictures of some type of samples.
template <class T>
class GopSearch {
 public:
  GopSearch(const std::vector<MotionPlane>& components, const MotionSearchParams& params, ThreadPool& pool,
            SimdLevel simd)
      : components_(components),
        luma_(components[0].samples),
        params_(params),
        pool_(pool),
        kernels_(sad_kernels(resolve_simd(simd), T{})),
        factor_(small_factor(luma_.shape.height, luma_.shape.width)),
        small_(static_cast<std::size_t>(luma_.shape.frames)),
        pictures_(luma_, params.bits, kernels_, pool) {
    pool_.parallel_for(luma_.shape.frames, [&](int t, int) {
      shrink(luma_, t, params_.bits, factor_, small_[static_cast<std::size_t>(t)]);
    });
  }

  /// Searches frames of a level; coarser levels are there.
  void run(GopMotion& of, int level, const std::vector<int>& high) {
    for (std::size_t first = 0; first < high.size();) {
      std::size_t end = first;
      pictures_.hold(references_of(high, level, of.places, pictures_.most(), end));
      const int count = static_cast<int>(end - first);
      if (current_.size() < end - first) current_.resize(end - first);
      std::vector<SearchedFrame<T>> frames(end - first);
      pool_.parallel_for(count, [&](int i, int) {
        const auto k = static_cast<std::size_t>(i);
        load_picture(luma_, high[first + k], params_.bits, current_[k]);
        SearchedFrame<T>& f = frames[k];
        const MotionReferences r = motion_references(high[first + k], level, of.places);
        f.t = high[first + k];
        f.current = &current_[k];
        f.references[0] = pictures_.at(r.past);
        f.references[1] = pictures_.at(r.other);
        find_coarse_vectors(f, of.grid, r);
      });
      const int regions = of.grid.regions();
      pool_.parallel_for(count * regions, [&](int i, int) {
        search_region(of, level, i % regions, frames[static_cast<std::size_t>(i / regions)]);
      });
      first = end;
    }
  }

 private:
  int coarse_blocks() const { return std::max(1, kBlock / (kSmallSide * factor_)); }

  void find_coarse_vectors(SearchedFrame<T>& f, const MotionGrid& grid, const MotionReferences& r) {
    f.coarse_rows = (grid.rows + kMotionRoot - 1) / kMotionRoot * coarse_blocks();
    f.coarse_columns = (grid.columns + kMotionRoot - 1) / kMotionRoot * coarse_blocks();
    f.nodes.resize(static_cast<std::size_t>(f.coarse_rows / coarse_blocks() * (f.coarse_columns / coarse_blocks())) *
                   kNodes);
    for (int k = 0; k < (r.other < 0 ? 1 : 2); ++k)
      for (int y = 0; y < f.coarse_rows; ++y)
        for (int x = 0; x < f.coarse_columns; ++x)
          f.coarse[k].push_back(find_coarse(small_[static_cast<std::size_t>(f.t)],
                                            small_[static_cast<std::size_t>(k == 0 ? r.past : r.other)], y * kSmallSide,
                                            x * kSmallSide, factor_, kernels_));
  }

  void search_region(GopMotion& of, int level, int number, SearchedFrame<T>& f) {
    MotionContexts contexts;
    const TreeSetting s{luma_.shape.height,
                        luma_.shape.width,
                        factor_,
                        coarse_blocks(),
                        search_lambda(params_, level),
                        enough_per_cell(params_.effort),
                        bit_prices().data(),
                        &contexts};
    MotionRegion r(of, f.t, level, number, static_cast<int>(components_.size()));
    const auto measurer = std::make_unique<Measurer<T>>(f, components_, params_.bits, kernels_);
    RootSearch<Measurer<T>> search(*measurer, s, r);
    RegionChoice<Measurer<T>> choice(*measurer, s, r);
    const auto each_root = [&](const auto& act) {
      for (int y = r.y0; y < r.y1; y += kMotionRoot)
        for (int x = r.x0; x < r.x1; x += kMotionRoot) act(y, x);
    };
    const int columns = (of.grid.columns + kMotionRoot - 1) / kMotionRoot;
    NodeMotion* const nodes = f.nodes.data();
    each_root([&](int y, int x) { search.run(y, x, nodes, true); });
    each_root([&](int y, int x) {
      search.run(y, x, nodes, false);
      choice.run(y, x, nodes + (y / kMotionRoot * columns + x / kMotionRoot) * kNodes);
    });
  }

  const std::vector<MotionPlane>& components_;
  const Field<std::int32_t>& luma_;
  const MotionSearchParams& params_;
  ThreadPool& pool_;
  const SadKernels<T>& kernels_;
  int factor_;
  std::vector<SmallPicture<T>> small_;
  PictureCache<T> pictures_;
  std::vector<SearchPicture<T>> current_;
};

template <class T>
GopMotion search_with(const std::vector<MotionPlane>& components, const MotionSearchParams& params, GopKey key,
                      ThreadPool& pool, SimdLevel simd) {
  const Shape shape = components[0].samples.shape;
  const int levels = params.levels;
  GopMotion motion(MotionPlaces(shape.frames - first_place(key), key, levels), shape.width, shape.height);
  motion.step = static_cast<float>(params.step);
  GopSearch<T> search(components, params, pool, simd);
  for (int level = levels - 1; level >= 0; --level) search.run(motion, level, motion_frames(level, motion.places));
  if (params.keys) motion.predict_keys();
  motion.keys_in_place = params.keys_in_place;
  if (motion.predicts_keys && searches_keys(params)) search.run(motion, levels, motion_frames(levels, motion.places));
  if (!finds_closed(params, motion.places)) return motion;
  GopMotion closed(MotionPlaces(motion.places.frames(), GopKey::kLast, levels), shape.width, shape.height);
  for (int level = levels - 1; level >= 0; --level) search.run(closed, level, {1 << level});
  for (int level = 0; level < levels; ++level)
    motion.closed.push_back(std::move(closed.fields[std::size_t{1} << level]));
  return motion;
}

}  // namespace

const std::array<int, 256>& bit_prices() {
  static const std::array<int, 256> of = [] {
    std::array<int, 256> table;
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<int>(std::lround(-256 * std::log2((static_cast<double>(i) + 0.5) / 256)));
    return table;
  }();
  return of;
}

int search_lambda(const MotionSearchParams& params, int level) {
  constexpr int kMostLevels = 8;
  // From the second level on, the low frames of a level have the norm of the next level's high ones.
  const double norm = level < kMostLevels ? synthesis_norm(Wavelet::kMotion, false, true, level + 1)
                                          : synthesis_norm(Wavelet::kMotion, false, false, level);
  const double step = params.step * std::exp2(8 - params.bits) / norm;
  const double by_level = kOfLevel[std::min<std::size_t>(static_cast<std::size_t>(level), std::size(kOfLevel) - 1)];
  return static_cast<int>(std::lround(std::clamp(kOfLambda * kLambda * by_level * step, 1.0, kMostLambda)));
}

std::vector<int> references_of(const std::vector<int>& high, int level, const MotionPlaces& places, std::size_t most,
                               std::size_t& end) {
  std::vector<int> wanted;
  for (const std::size_t first = end; end < high.size(); ++end) {
    const MotionReferences r = motion_references(high[end], level, places);
    std::vector<int> with = wanted;
    for (const int t : {r.past, r.other})
      if (t >= 0 && std::find(with.begin(), with.end(), t) == with.end()) with.push_back(t);
    if (end > first && with.size() > most) break;
    wanted = std::move(with);
  }
  return wanted;
}

int small_factor(int height, int width) { return height >= 720 || width >= 1280 ? 8 : 4; }

GopMotion search_motion(const std::vector<MotionPlane>& components, const MotionSearchParams& params, GopKey key,
                        ThreadPool& pool, SimdLevel simd) {
  return params.bits <= kByteBits ? search_with<std::uint8_t>(components, params, key, pool, simd)
                                  : search_with<std::int16_t>(components, params, key, pool, simd);
}

GopMotion without_before(GopMotion open) {
  require(open.closed.size() == static_cast<std::size_t>(open.places.levels), ErrorKind::kInternal,
          "an open GOP that was not searched to become a closed one");
  open.places = {open.places.frames(), GopKey::kLast, open.places.levels};
  if (open.predicts_keys) {  // the first one is no longer predicted
    open.fields[std::size_t{1} << open.places.levels].clear();
    open.predicts_keys = !motion_frames(open.places.levels, open.places).empty();
  }
  for (std::size_t level = 0; level < open.closed.size(); ++level)
    open.fields[std::size_t{1} << level] = std::move(open.closed[level]);
  open.closed.clear();
  open.sections.clear();
  return open;
}

}  // namespace trivelet
