// Block motion search of one region: coarse search in reduced pictures, downhill search to quarter samples, and the
// choice of modes and block sizes. The pictures of a batch of frames are kept at all quarters of a sample.
#include "codec/motion/motion_search.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <memory>

#include "codec/motion/motion_choice.h"
#include "codec/motion/motion_kernels.h"
#include "codec/motion/motion_syntax.h"
#include "codec/transform/subband.h"

namespace trivelet {

namespace {

using namespace motion_choice;

constexpr std::size_t kPictureMemory = std::size_t{168} << 20;  // limit for interpolated pictures; two are always kept
constexpr int kNoLimit = 1 << 30;
constexpr float kAnyCost = 1e30f;

// Cost of a bit in units of MotionKernels::satd, for a quantiser step of one grey level at 8 bits. The optimum over CIF
// clips at steps of 12 to 72 is flat.
constexpr double kLambda = 0.35 * 1.5 * 16;
// Factors of the cost by level, finest first; further levels have the last one. BD-rate against 1 everywhere (-q 5, 25,
// 45, 60): -0.3 % on the five clips used for tuning, -0.6 % on five others (worst 0.0). Factors twice as far from 1
// give -0.2 %.
constexpr double kOfLevel[] = {0.85, 1, 1.1, 1.4, 1.6};

/// A padded picture at all quarters of a sample.
struct SearchPicture {
  int width = 0, height = 0;
  std::ptrdiff_t stride = 0;
  std::unique_ptr<std::int16_t[]> planes[kQuarters * kQuarters];  // [y quarter * 4 + x quarter]

  /// Memory of a plane. A reused picture has the same size and keeps it.
  std::int16_t* make_plane(int i) {
    const auto rows = static_cast<std::size_t>(height + 2 * kPad);
    if (!planes[i]) planes[i] = std::make_unique_for_overwrite<std::int16_t[]>(static_cast<std::size_t>(stride) * rows);
    return planes[i].get();
  }

  const std::int16_t* at(int y, int x, MotionVector v) const {
    const int py = y + (v.y >> 2) + kPad;
    const int px = x + (v.x >> 2) + kPad;
    return planes[(v.y & 3) * kQuarters + (v.x & 3)].get() + py * stride + px;
  }
};

/// A reduced picture; each sample is the mean of a square.
struct SmallPicture {
  int width = 0, height = 0;
  std::vector<std::int16_t> samples;
};

// ------------------------------------------------------------------------------------------------------------ pictures

void load_row(const Field<std::int32_t>& f, int t, int y, int bits, std::int16_t* out) {
  const std::int32_t* in = f.row(t, y);
  const int n = f.shape.width;
  if (bits == 8)  // a loop of its own, because the shift is constant
    for (int x = 0; x < n; ++x) out[x] = searched(in[x], 8);
  else
    for (int x = 0; x < n; ++x) out[x] = searched(in[x], bits);
}

void load_picture(const Field<std::int32_t>& f, int t, int bits, SearchPicture& p) {
  p.width = f.shape.width;
  p.height = f.shape.height;
  p.stride = p.width + 2 * kPad;
  std::int16_t* const plane = p.make_plane(0);
  for (int y = -kPad; y < p.height + kPad; ++y) {
    std::int16_t* row = plane + (y + kPad) * p.stride;
    if (y > 0 && y >= p.height) {
      std::memcpy(row, row - p.stride, static_cast<std::size_t>(p.stride) * 2);
      continue;
    }
    load_row(f, t, std::max(0, y), bits, row + kPad);
    std::fill_n(row, kPad, row[kPad]);
    std::fill_n(row + kPad + p.width, kPad, row[kPad + p.width - 1]);
  }
}

// Planes of one quarter along x and all quarters along y. Near the outer edge, where no block is searched, they hold
// whole samples.
void interpolate_columns(SearchPicture& p, int x_quarter, const MotionKernels& kernels) {
  const int rows = p.height + 2 * kPad;
  const auto n = static_cast<int>(p.stride);
  const std::int16_t* whole = p.planes[0].get();
  if (x_quarter > 0) {
    std::int16_t* const out = p.make_plane(x_quarter);
    for (int y = 0; y < rows; ++y) {
      const std::ptrdiff_t at = y * p.stride;
      std::memcpy(out + at, whole + at, static_cast<std::size_t>(n) * 2);
      kernels.filter_rows16(whole + at + kWhole, out + at + kWhole, n - 2 * kWhole, 2 * x_quarter);
    }
  }
  const std::int16_t* from = p.planes[x_quarter].get();
  std::int16_t* planes[kQuarters - 1];
  for (int q = 1; q < kQuarters; ++q) planes[q - 1] = p.make_plane(q * kQuarters + x_quarter);
  for (int y = 0; y < rows; ++y) {
    const std::ptrdiff_t at = y * p.stride;
    std::int16_t* const out[kQuarters - 1] = {planes[0] + at, planes[1] + at, planes[2] + at};
    if (y < kWhole || y >= rows - kWhole)
      for (std::int16_t* row : out) std::memcpy(row, from + at, static_cast<std::size_t>(n) * 2);
    else
      kernels.filter_columns16(from + at, p.stride, out, n);
  }
}

void shrink(const Field<std::int32_t>& f, int t, int bits, int factor, SmallPicture& p) {
  p.width = (f.shape.width + factor - 1) / factor;
  p.height = (f.shape.height + factor - 1) / factor;
  // Padded by a block, because it is compared with 8x8 blocks.
  p.samples.assign(static_cast<std::size_t>(p.width) * static_cast<std::size_t>(p.height), 0);
  std::vector<std::int16_t> row(static_cast<std::size_t>(f.shape.width));
  std::vector<int> sums(static_cast<std::size_t>(p.width));
  std::vector<int> counts(sums.size());
  for (int y = 0; y < p.height; ++y) {
    std::fill(sums.begin(), sums.end(), 0);
    std::fill(counts.begin(), counts.end(), 0);
    for (int j = y * factor; j < std::min(f.shape.height, (y + 1) * factor); ++j) {
      load_row(f, t, j, bits, row.data());
      for (int x = 0; x < f.shape.width; ++x) {
        sums[static_cast<std::size_t>(x / factor)] += row[static_cast<std::size_t>(x)];
        ++counts[static_cast<std::size_t>(x / factor)];
      }
    }
    for (std::size_t x = 0; x < sums.size(); ++x)
      p.samples[static_cast<std::size_t>(y * p.width) + x] = static_cast<std::int16_t>(sums[x] / counts[x]);
  }
}

// -------------------------------------------------------------------------------------------------------------- region

/// The search of one region of a frame.
class RegionSearch {
 public:
  RegionSearch(GopMotion& motion, int t, int level, int region, const std::vector<MotionPlane>& components, int bits,
               const MotionKernels& kernels, const SearchPicture* past, const SearchPicture* other,
               const std::vector<SmallPicture>& small, int factor, float lambda, float enough)
      : r_(motion, t, level, region, static_cast<int>(components.size())),
        references_(motion_references(t, level, motion.places)),
        components_(components),
        t_(t),
        bits_(bits),
        kernels_(kernels),
        pictures_{past, other},
        small_(small),
        factor_(factor),
        lambda_(lambda),
        enough_per_cell_(enough) {}

  void run(const SearchPicture& current) {
    current_ = &current;
    for (int y = r_.y0; y < r_.y1; y += kMotionRoot)
      for (int x = r_.x0; x < r_.x1; x += kMotionRoot) {
        find_coarse(y, x);
        decide(y, x, 3, {});
      }
  }

 private:
  struct Best {
    float cost = 1e30f;
    MotionCell cell;
  };
  using Pair = std::array<MotionVector, 2>;
  struct Hints {  // vectors found for the enclosing block
    Pair v{};
    bool any = false;
  };

  int width() const { return current_->width; }
  int height() const { return current_->height; }
  int references() const { return r_.has_other ? 2 : 1; }

  MotionVector inside(MotionVector v, int y, int x, int size) const {
    return motion_choice::inside(v, y, x, size, height(), width());
  }

  // The best place of each quarter of a root block in reduced pictures: every second place, then those beside the best.
  void find_coarse(int cy, int cx) {
    constexpr int kSide = kSmallSide, kReach = kSmallReach;
    const int span = kSide * factor_;
    coarse_span_ = span;
    coarse_y_ = cy * kMotionCell;
    coarse_x_ = cx * kMotionCell;
    const int blocks = std::max(1, kBlock / span);
    coarse_blocks_ = blocks;
    const SmallPicture& current = small_[static_cast<std::size_t>(t_)];
    for (int k = 0; k < references(); ++k) {
      const SmallPicture& reference = small_[static_cast<std::size_t>(k == 0 ? references_.past : references_.other)];
      for (int b = 0; b < blocks * blocks; ++b) {
        const int y = coarse_y_ / factor_ + b / blocks * kSide;
        const int x = coarse_x_ / factor_ + b % blocks * kSide;
        MotionVector& best = coarse_[b][k];
        best = {};
        if (y + kSide > current.height || x + kSide > current.width) continue;
        const std::int16_t* from = current.samples.data() + y * current.width + x;
        int least = 1 << 30;
        const auto look = [&](int dy, int dx) {
          const int j = y + dy;
          const int i = x + dx;
          if (j < 0 || i < 0 || j + kSide > reference.height || i + kSide > reference.width) return;
          const int d = kernels_.sad(from, current.width, reference.samples.data() + j * reference.width + i,
                                     reference.width, kSide, kSide, kNoLimit) +
                        small_penalty(dy, dx);
          if (d >= least) return;
          least = d;
          best = limited_vector(kQuarters * factor_ * dx, kQuarters * factor_ * dy);
        };
        for (int dy = -kReach; dy <= kReach; dy += 2)
          for (int dx = -kReach; dx <= kReach; dx += 2) look(dy, dx);
        const int by = best.y / (kQuarters * factor_);
        const int bx = best.x / (kQuarters * factor_);
        for (int dy = -1; dy <= 1; ++dy)
          for (int dx = -1; dx <= 1; ++dx) look(by + dy, bx + dx);
      }
    }
  }
  MotionVector coarse(int y, int x, int size, int reference) const {
    const int j = std::min(coarse_blocks_ - 1, (y + size / 2 - coarse_y_) / coarse_span_);
    const int i = std::min(coarse_blocks_ - 1, (x + size / 2 - coarse_x_) / coarse_span_);
    return coarse_[j * coarse_blocks_ + i][reference];
  }

  bool good_enough(float cost, int log2) const {
    return motion_choice::good_enough(cost, log2, lambda_, enough_per_cell_);
  }

  // In large blocks every other row of transforms represents all. The result may be inexact from `limit` on.
  int distortion(const std::int16_t* a, std::ptrdiff_t a_stride, const std::int16_t* b, std::ptrdiff_t b_stride,
                 int size, bool transform, int limit) const {
    if (!transform) return kernels_.sad(a, a_stride, b, b_stride, size, size, limit);
    if (size < 32) return kernels_.satd(a, a_stride, b, b_stride, size, size, limit);
    int sum = 0;
    for (int y = 0; y < size && sum < limit; y += 2 * kMotionCell)
      sum += 2 * kernels_.satd(a + y * a_stride, a_stride, b + y * b_stride, b_stride, kMotionCell, size, limit);
    return sum;
  }

  // A distortion from which on the cost with `bits` is not below `least`, with a margin for rounding.
  static int limit_of(float least, float bits) {
    const double limit = (static_cast<double>(least) - static_cast<double>(bits)) * (1 + 1e-6) + 2;
    return limit < kNoLimit ? static_cast<int>(limit) : kNoLimit;
  }

  // Searches the vector of a block in one reference: from the best of some guesses downhill in decreasing steps.
  float search_vector(int reference, const std::int16_t* target, std::ptrdiff_t target_stride, int y, int x, int size,
                      MotionVector expected, const MotionVector* guesses, int count, float lambda, bool near,
                      float known, MotionVector& best) const {
    const SearchPicture& p = *pictures_[reference];
    float least = 1e30f;
    bool fine = false;
    const auto is_better = [&](MotionVector v, int d, float bits) {
      const float cost = static_cast<float>(d) + bits;
      if (!(cost < least)) return false;
      least = cost;
      best = v;
      return true;
    };
    const auto look = [&](int vx, int vy) {
      const MotionVector v = inside(limited_vector(vx, vy), y, x, size);
      const float bits = lambda * vector_bits(v, expected);
      if (!(bits < least)) return false;
      return is_better(v, distortion(target, target_stride, p.at(y, x, v), p.stride, size, fine, limit_of(least, bits)),
                       bits);
    };
    // The smallest blocks are compared in pairs.
    MotionVector waiting[8];
    int waits = 0;
    const auto look_at_pairs = [&] {
      bool moved = false;
      for (int i = 0; i < waits; i += 2) {
        const MotionVector v[2] = {waiting[i], waiting[std::min(i + 1, waits - 1)]};
        const std::int16_t* from[2] = {p.at(y, x, v[0]), p.at(y, x, v[1])};
        int d[2];
        kernels_.satd_pair(target, target_stride, from, p.stride, d);
        for (int k = 0; k < 2; ++k) moved = is_better(v[k], d[k], lambda * vector_bits(v[k], expected)) || moved;
      }
      waits = 0;
      return moved;
    };
    for (int i = 0; i < count; ++i) {
      bool seen = false;
      for (int j = 0; j < i; ++j) seen = seen || guesses[j] == guesses[i];
      if (!seen) look(guesses[i].x, guesses[i].y);
    }
    static constexpr int kSteps[8][2] = {{-1, 0}, {1, 0}, {0, -1}, {0, 1}, {-1, -1}, {1, 1}, {-1, 1}, {1, -1}};
    for (int s = first_step(size, factor_, near); s >= 1; s /= 2) {
      if (s < kQuarters && !fine) {
        fine = true;
        const MotionVector v = best;
        least = 1e30f;
        look(v.x, v.y);
        if (!worth_refining(least, known, factor_)) return least;
      }
      // Places compared in the round before are skipped.
      MotionVector before;
      for (int round = 0; round < (s < kQuarters ? kFineRounds : kRounds); ++round) {
        const MotionVector from = best;
        bool moved = false;
        for (int i = 0; i < (s < kQuarters ? 8 : 4); ++i) {
          const int vx = from.x + s * kSteps[i][0], vy = from.y + s * kSteps[i][1];
          const int dx = std::abs(vx - before.x), dy = std::abs(vy - before.y);
          const bool seen = dx + dy == 0 || (s < kQuarters ? std::max(dx, dy) == s : dx + dy == s);
          if (round > 0 && seen) continue;
          if (fine && size == kMotionCell)
            waiting[waits++] = inside(limited_vector(vx, vy), y, x, size);
          else
            moved = look(vx, vy) || moved;
        }
        moved = look_at_pairs() || moved;
        if (!moved) break;
        before = from;
      }
    }
    return least;
  }

  const std::int16_t* predicted(int reference, const MotionCell& c, int y, int x, int size) const {
    return pictures_[reference]->at(y, x, inside(c.vector[static_cast<std::size_t>(reference)], y, x, size));
  }

  // SATD of a prediction against a target.
  int distance_of(const MotionCell& c, const std::int16_t* target, std::ptrdiff_t stride, int y, int x, int size,
                  int limit) {
    if (c.mode == MotionMode::kPlain) {
      std::int16_t* row = rest_.get();
      std::fill_n(row, size, static_cast<std::int16_t>(c.plain[0] * (1 << (kSearchBits - kMotionPlainBits))));
      return kernels_.satd(target, stride, row, 0, size, size, limit);
    }
    const std::ptrdiff_t of_reference = pictures_[0]->stride;
    if (c.mode == MotionMode::kBoth)
      return kernels_.satd_mean(target, stride, predicted(0, c, y, x, size), predicted(1, c, y, x, size), of_reference,
                                size, size, limit);
    return kernels_.satd(target, stride, predicted(c.mode == MotionMode::kPast ? 0 : 1, c, y, x, size), of_reference,
                         size, size, limit);
  }

  void plain_of(int cy, int cx, int log2, MotionCell& c) const {
    c.mode = MotionMode::kPlain;
    for (std::size_t i = 0; i < components_.size(); ++i) {
      const MotionPlane& p = components_[i];
      const int y0 = cy * cell_size(p.scale.shift_y), x0 = cx * cell_size(p.scale.shift_x);
      const int y1 = std::min(p.samples.shape.height, y0 + (cell_size(p.scale.shift_y) << log2));
      const int x1 = std::min(p.samples.shape.width, x0 + (cell_size(p.scale.shift_x) << log2));
      std::int64_t sum = 0;
      for (int y = y0; y < y1; ++y)
        for (int x = x0; x < x1; ++x) sum += p.samples.row(t_, y)[x];
      c.plain[i] = motion_choice::plain_of(sum, std::max(1, (y1 - y0) * (x1 - x0)), bits_);
    }
    complete_cell(c, r_.older);
  }

  // The best motion of a block as a whole.
  Best leaf(int cy, int cx, int log2, const Hints& around, Pair& found) {
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    const MotionGuesses guesses(r_, cy, cx, log2);
    const std::int16_t* target = current_->planes[0].get() + (y + kPad) * current_->stride + x + kPad;
    const std::ptrdiff_t stride = current_->stride;
    Best best;
    const auto consider = [&](const MotionCell& c, int guess) {
      BitCounter counter(prices_);
      MotionCell coded = c;
      code_motion_block(counter, contexts_, r_, cy, cx, log2, guesses, guess, coded);
      const float bits = lambda_ * counter.bits;
      if (!(bits < best.cost)) return;
      const float cost =
          static_cast<float>(distance_of(c, target, stride, y, x, size, limit_of(best.cost, bits))) + bits;
      if (!(cost < best.cost)) return;
      best.cost = cost;
      best.cell = coded;
    };
    for (int i = 0; i < guesses.count; ++i) consider(guesses.cell[static_cast<std::size_t>(i)], i);
    // If a neighbour's motion is good enough, nothing else is tried.
    if (good_enough(best.cost, log2)) {
      found = best.cell.vector;
      return best;
    }
    const float known = best.cost;
    float cost[2] = {1e30f, 1e30f};
    Pair expected{};
    for (int k = 0; k < references(); ++k) {
      const auto kk = static_cast<std::size_t>(k);
      expected[kk] = expected_vector(r_, cy, cx, log2, k);
      MotionVector tries[kMotionGuesses + 4];
      int n = 0;
      tries[n++] = expected[kk];
      tries[n++] = {};
      tries[n++] = coarse(y, x, size, k);
      if (around.any) tries[n++] = around.v[kk];
      for (int i = 0; i < guesses.count; ++i) tries[n++] = guesses.cell[static_cast<std::size_t>(i)].vector[kk];
      cost[k] = search_vector(k, target, stride, y, x, size, expected[kk], tries, n, lambda_, false, known, found[kk]);
      MotionCell c;
      c.mode = k == 0 ? MotionMode::kPast : MotionMode::kOther;
      c.vector[kk] = found[kk];
      complete_cell(c, r_.older);
      consider(c, -1);
    }
    MotionCell both;
    both.mode = MotionMode::kBoth;
    both.vector = found;
    if (r_.has_other) consider(both, -1);
    MotionCell plain;
    plain_of(cy, cx, log2, plain);
    consider(plain, -1);
    if (refines_both(best.cell.mode, size))
      refine_both(target, stride, y, x, size, expected, both, cost[0] < cost[1] ? 0 : 1, consider);
    return best;
  }

  // Two references: each vector of `c` in turn is refined against what the other one leaves.
  template <class F>
  void refine_both(const std::int16_t* target, std::ptrdiff_t stride, int y, int x, int size, const Pair& expected,
                   MotionCell c, int better, const F& consider) {
    for (const int k : {1 - better, better}) {
      const auto kk = static_cast<std::size_t>(k);
      std::int16_t* rest = rest_.get();
      kernels_.remainder(target, stride, predicted(1 - k, c, y, x, size), pictures_[0]->stride, rest, kBlock, size,
                         size);
      const MotionVector tries[2] = {c.vector[kk], expected[kk]};
      MotionVector v = c.vector[kk];
      search_vector(k, rest, kBlock, y, x, size, expected[kk], tries, 2, 2 * lambda_, true, kAnyCost, v);
      c.vector[kk] = v;
      consider(c, -1);
    }
  }

  // Finds the cheapest division of a block into blocks with their own motion and sets its cells. Returns the cost.
  float decide(int cy, int cx, int log2, const Hints& around) {
    if (cy >= r_.y1 || cx >= r_.x1) return 0;
    const bool must = must_split(r_, cy, cx, log2);
    Best whole;
    Hints hints = around;
    float split_price = 0;
    if (!must) {
      if (log2 > 0) {
        const dense::State& s = split_context(contexts_, r_, cy, cx, log2);
        split_price = lambda_ * BitCounter::price(prices_, s, true);
        whole = leaf(cy, cx, log2, around, hints.v);
        whole.cost += lambda_ * BitCounter::price(prices_, s, false);
        hints.any = true;
      } else {
        whole = leaf(cy, cx, log2, around, hints.v);
      }
      whole.cell.log2_cells = static_cast<std::uint8_t>(log2);
    }
    if (must || (log2 > 0 && !good_enough(whole.cost, log2))) {
      const int half = 1 << (log2 - 1);
      float cost = split_price;
      for (int k = 0; k < 4 && (must || cost < whole.cost); ++k)
        cost += decide(cy + (k >> 1) * half, cx + (k & 1) * half, log2 - 1, hints);
      if (must || cost < whole.cost) return cost;
    }
    r_.set(cy, cx, log2, whole.cell);
    return whole.cost;
  }

  MotionRegion r_;
  MotionReferences references_;
  const std::vector<MotionPlane>& components_;
  int t_;
  int bits_;
  const MotionKernels& kernels_;
  const SearchPicture* pictures_[2];
  const SearchPicture* current_ = nullptr;
  const std::vector<SmallPicture>& small_;
  int factor_;
  float lambda_;
  float enough_per_cell_;
  MotionContexts contexts_;
  const float* prices_ = bit_prices().data();
  int coarse_span_ = 1, coarse_y_ = 0, coarse_x_ = 0, coarse_blocks_ = 1;
  MotionVector coarse_[4][2];
  std::unique_ptr<std::int16_t[]> rest_ = std::make_unique<std::int16_t[]>(kBlock * kBlock);
};

// ----------------------------------------------------------------------------------------------------------------- GOP

/// Interpolated pictures of the frames that a batch of searches uses.
class PictureCache {
 public:
  PictureCache(const Field<std::int32_t>& luma, int bits, const MotionKernels& kernels, ThreadPool& pool)
      : luma_(luma),
        bits_(bits),
        kernels_(kernels),
        pool_(pool),
        pictures_(static_cast<std::size_t>(luma.shape.frames)) {
    const std::size_t plane = static_cast<std::size_t>(luma.shape.width + 2 * kPad) *
                              static_cast<std::size_t>(luma.shape.height + 2 * kPad) * sizeof(std::int16_t);
    most_ = std::max<std::size_t>(2, kPictureMemory / (plane * kQuarters * kQuarters));
  }
  /// Limit of pictures at a time.
  std::size_t most() const { return most_; }
  /// Makes the pictures of `wanted` and drops all others.
  void hold(const std::vector<int>& wanted) {
    std::vector<int> missing;
    std::vector<std::unique_ptr<SearchPicture>> kept(pictures_.size());
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
          unused != pictures_.end() ? std::move(*unused) : std::make_unique<SearchPicture>();
    }
    pictures_ = std::move(kept);
    pool_.parallel_for(static_cast<int>(missing.size()), [&](int i, int) {
      const int t = missing[static_cast<std::size_t>(i)];
      load_picture(luma_, t, bits_, *pictures_[static_cast<std::size_t>(t)]);
    });
    pool_.parallel_for(static_cast<int>(missing.size()) * kQuarters, [&](int i, int) {
      interpolate_columns(*pictures_[static_cast<std::size_t>(missing[static_cast<std::size_t>(i / kQuarters)])],
                          i % kQuarters, kernels_);
    });
  }
  const SearchPicture* at(int t) const { return t < 0 ? nullptr : pictures_[static_cast<std::size_t>(t)].get(); }

 private:
  const Field<std::int32_t>& luma_;
  int bits_;
  const MotionKernels& kernels_;
  ThreadPool& pool_;
  std::vector<std::unique_ptr<SearchPicture>> pictures_;
  std::size_t most_;
};

}  // namespace

const std::array<float, 256>& bit_prices() {
  static const std::array<float, 256> of = [] {
    std::array<float, 256> table;
    for (std::size_t i = 0; i < table.size(); ++i)
      table[i] = static_cast<float>(-std::log2((static_cast<double>(i) + 0.5) / 256));
    return table;
  }();
  return of;
}

float search_lambda(const MotionSearchParams& params, int level) {
  const double step =
      params.step * std::exp2(8 - params.bits) / synthesis_norm(Wavelet::kMotion, false, true, level + 1);
  return static_cast<float>(
      kLambda * kOfLevel[std::min<std::size_t>(static_cast<std::size_t>(level), std::size(kOfLevel) - 1)] * step);
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
  const Field<std::int32_t>& luma = components[0].samples;
  const MotionKernels& kernels = motion_kernels(resolve_simd(simd));
  const int count = luma.shape.frames;
  const int levels = params.levels;
  GopMotion motion(MotionPlaces(count - first_place(key), key, levels), luma.shape.width, luma.shape.height);
  motion.step = static_cast<float>(params.step);
  const int factor = small_factor(luma.shape.height, luma.shape.width);
  std::vector<SmallPicture> small(static_cast<std::size_t>(count));
  pool.parallel_for(count,
                    [&](int t, int) { shrink(luma, t, params.bits, factor, small[static_cast<std::size_t>(t)]); });
  PictureCache pictures(luma, params.bits, kernels, pool);
  std::vector<SearchPicture> current;
  // Searches frames of a level.
  const auto search_frames = [&](GopMotion& of, int level, const std::vector<int>& high) {
    const float lambda = search_lambda(params, level);
    for (std::size_t first = 0; first < high.size();) {
      std::size_t end = first;
      const std::vector<int> wanted = references_of(high, level, of.places, pictures.most(), end);
      pictures.hold(wanted);
      if (current.size() < end - first) current.resize(end - first);
      pool.parallel_for(static_cast<int>(end - first), [&](int i, int) {
        load_picture(luma, high[first + static_cast<std::size_t>(i)], params.bits,
                     current[static_cast<std::size_t>(i)]);
      });
      const int regions = of.grid.regions();
      pool.parallel_for(static_cast<int>(end - first) * regions, [&](int i, int) {
        const auto k = static_cast<std::size_t>(i / regions);
        const int t = high[first + k];
        const MotionReferences r = motion_references(t, level, of.places);
        RegionSearch search(of, t, level, i % regions, components, params.bits, kernels, pictures.at(r.past),
                            pictures.at(r.other), small, factor, lambda, enough_per_cell(params.effort));
        search.run(current[k]);
      });
      first = end;
    }
  };
  for (int level = levels - 1; level >= 0; --level) search_frames(motion, level, motion_frames(level, motion.places));
  if (!finds_closed(params, motion.places)) return motion;
  GopMotion closed(MotionPlaces(motion.places.frames(), GopKey::kLast, levels), luma.shape.width, luma.shape.height);
  for (int level = levels - 1; level >= 0; --level) search_frames(closed, level, {1 << level});
  for (int level = 0; level < levels; ++level)
    motion.closed.push_back(std::move(closed.fields[std::size_t{1} << level]));
  return motion;
}

GopMotion without_before(GopMotion open) {
  require(open.closed.size() == static_cast<std::size_t>(open.places.levels), ErrorKind::kInternal,
          "an open GOP that was not searched to become a closed one");
  open.places = {open.places.frames(), GopKey::kLast, open.places.levels};
  for (std::size_t level = 0; level < open.closed.size(); ++level)
    open.fields[std::size_t{1} << level] = std::move(open.closed[level]);
  open.closed.clear();
  open.sections.clear();
  return open;
}

}  // namespace trivelet
