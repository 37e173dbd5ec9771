// A cell tries vectors of its neighbours, of the frame before, of the reduced picture and of the whole block. It then
// moves in steps of a sample, of a half and of a quarter while the estimated bits fall. Every estimate is exact or
// linear between powers of two, so that all machines choose the same vectors.
#include "codec/predict/prediction_motion_search.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <utility>

namespace trivelet::prediction {

namespace {

constexpr int kSmall = 4;           // edge of the square of samples that one sample of the reduced picture stands for
constexpr int kRegion = 16;         // edge of a search region, in samples of the reduced picture
constexpr int kSmallReach = 8;      // search range in the reduced picture
constexpr int kPad = 24;            // margin around a frame; a vector further out would see repeated edge samples only
constexpr int kFilterReach = 4;     // of the interpolation filter
constexpr int kSteps = 16;          // whole-sample steps, at most
constexpr int kRangeOfShifts = 64;  // shifts are searched if samples change by more than 1/64 of their range

struct WholePlace {
  int y = 0;
  int x = 0;
};

/// An estimate of the bits of a vector, from its difference to the guess.
float bits_of(MotionVector v, MotionVector guess) {
  const auto of = [](int d) { return d == 0 ? 1 : 2 * std::bit_width(static_cast<unsigned>(std::abs(d))) + 1; };
  return static_cast<float>(of(v.x - guess.x) + of(v.y - guess.y));
}

/// An estimate of the bits of n samples with this SAD. Neighbours in the frame predict most of what the frame before
/// leaves, so a gain here counts less than a third.
float bits_of(std::uint32_t sad, int n) {
  constexpr float kPart = 0.3f;
  constexpr float kNoise = 0.2f;  // below it no code gets shorter
  const float v = static_cast<float>(sad) / static_cast<float>(n) + kNoise;
  // The logarithm is linear between powers of two, so that it is the same on every machine.
  return kPart * static_cast<float>(n) * (static_cast<float>(std::bit_cast<std::uint32_t>(v)) * 0x1p-23f - 127);
}

/// The shift with the smallest mean difference between the n means of `now` and of `before`.
int shift_of(const std::int32_t* now, const std::int32_t* before, int n) {
  const int least_overlap = std::max(n / 4, 1);
  float least = 0;
  int best = 0;
  for (int shift = 0; shift <= n - least_overlap; shift = shift > 0 ? -shift : 1 - shift) {  // 0, 1, -1, 2 …
    const int overlap = n - std::abs(shift);
    const std::int32_t* a = now + std::max(0, -shift);
    const std::int32_t* b = before + std::max(0, shift);
    std::int32_t sum = 0;
    for (int i = 0; i < overlap; ++i) sum += std::abs(a[i] - b[i]);
    const float mean = static_cast<float>(sum) / static_cast<float>(overlap);
    if (shift != 0 && mean >= least) continue;
    least = mean;
    best = shift;
  }
  return best;
}

}  // namespace

MotionSearch::Cell MotionSearch::cell(const BlockMotion& motion, int row, int column) const {
  const int edge = 1 << motion.log2_cell;
  Cell c{row, column, row * edge, column * edge, 0, 0};
  c.height = std::min(edge, height_ - c.y);
  c.width = std::min(edge, width_ - c.x);
  return c;
}

void MotionSearch::shrink(const History& history, int frame, std::vector<std::int16_t>& out) const {
  out.resize(static_cast<std::size_t>(small_height_) * static_cast<std::size_t>(small_width_));
  std::int16_t* to = out.data();
  for (int y = 0; y < small_height_; ++y, to += small_width_)
    for (int x = 0; x < small_width_; ++x) {
      int sum = 0;
      for (int r = 0; r < kSmall; ++r) {
        const std::int16_t* from = history.row(frame, kSmall * y + r) + kSmall * x;
        for (int c = 0; c < kSmall; ++c) sum += from[c];
      }
      to[x] = static_cast<std::int16_t>(sum / (kSmall * kSmall));
    }
}

/// Full search of a region in the reduced picture.
MotionVector MotionSearch::search_small(int region_row, int region_column) const {
  const int y = region_row * kRegion, x = region_column * kRegion;
  const int h = std::min(kRegion, small_height_ - y), w = std::min(kRegion, small_width_ - x);
  const Patch now = Patch{small_.data(), small_width_}.moved(y, x);
  const Patch before = Patch{small_before_.data(), small_width_}.moved(y, x);
  std::uint32_t least = kernels_.sad(now, before, w, h);
  MotionVector best;
  if (least == 0) return best;
  for (int dy = std::max(-kSmallReach, -y); dy <= std::min(kSmallReach, small_height_ - h - y); ++dy)
    for (int dx = std::max(-kSmallReach, -x); dx <= std::min(kSmallReach, small_width_ - w - x); ++dx) {
      const std::uint32_t d =
          kernels_.sad(now, before.moved(dy, dx), w, h) + static_cast<std::uint32_t>(std::abs(dx) + std::abs(dy));
      if (d >= least) continue;
      least = d;
      best = {static_cast<std::int16_t>(4 * kSmall * dx), static_cast<std::int16_t>(4 * kSmall * dy)};
    }
  return best;
}

void MotionSearch::search_small() {
  region_vectors_.clear();
  for (int r = 0; r * kRegion < small_height_; ++r)
    for (int c = 0; c < regions_; ++c) region_vectors_.push_back(search_small(r, c));
}

/// Finds how far the whole block moved down and across, from the means of rows and columns. This finds pages that were
/// scrolled far.
void MotionSearch::find_shifts(const History& history, int frame) {
  constexpr int kFine = 16;  // fixed point of the means
  const auto height = static_cast<std::size_t>(height_), width = static_cast<std::size_t>(width_);
  means_.assign(2 * (height + width), 0);
  for (int f = 0; f < 2; ++f) {
    std::int32_t* rows = &means_[f == 0 ? 0 : height];
    std::int32_t* columns = &means_[2 * height + (f == 0 ? 0 : width)];
    for (int y = 0; y < height_; ++y) {
      const std::int16_t* from = history.row(frame - f, y);
      std::int32_t sum = 0;
      for (int x = 0; x < width_; ++x) {
        sum += from[x];
        columns[x] += from[x];
      }
      rows[y] = kFine * sum / width_;
    }
    for (int x = 0; x < width_; ++x) columns[x] = kFine * columns[x] / height_;
  }
  const std::int32_t* rows = means_.data();
  const std::int32_t* columns = &means_[2 * height];
  shifts_[0].y = static_cast<std::int16_t>(4 * shift_of(rows, rows + height, height_));
  shifts_[1].x = static_cast<std::int16_t>(4 * shift_of(columns, columns + width, width_));
}

void MotionSearch::pad(const History& history, int frame) {
  const std::ptrdiff_t stride = width_ + 2 * kPad;
  padded_.resize(static_cast<std::size_t>(stride) * static_cast<std::size_t>(height_ + 2 * kPad));
  std::int16_t* to = padded_.data();
  for (int y = -kPad; y < height_ + kPad; ++y) {
    const std::int16_t* from = history.row(frame, std::clamp(y, 0, height_ - 1));
    to = std::fill_n(to, kPad, from[0]);
    to = std::copy_n(from, width_, to);
    to = std::fill_n(to, kPad, from[width_ - 1]);
  }
  before_ = Patch{padded_.data(), stride}.moved(kPad, kPad);
}

/// Whether all samples that the refinement reads lie inside the padded frame.
bool MotionSearch::is_inside(const Cell& c, int dy, int dx) const {
  constexpr int kRoom = kPad - kFilterReach;
  return c.x + dx >= -kRoom && c.y + dy >= -kRoom && c.x + dx + c.width <= width_ + kRoom &&
         c.y + dy + c.height <= height_ + kRoom;
}

bool MotionSearch::try_whole(const Cell& c, MotionVector guess, int dy, int dx, Found& best) const {
  if (!is_inside(c, dy, dx)) return false;
  const MotionVector v{static_cast<std::int16_t>(4 * dx), static_cast<std::int16_t>(4 * dy)};
  const std::uint32_t d = kernels_.sad(now_.moved(c.y, c.x), before_.moved(c.y + dy, c.x + dx), c.width, c.height);
  const float bits = bits_of(d, c.width * c.height) + bits_of(v, guess);
  if (bits >= best.bits) return false;
  best = {v, bits};
  return true;
}

/// Searches half positions and then quarter positions around the best whole vector.
void MotionSearch::refine(const Cell& c, MotionVector guess, Found& best) {
  const int whole_x = best.vector.x >> 2, whole_y = best.vector.y >> 2;
  const Patch whole = before_.moved(c.y + whole_y, c.x + whole_x);
  const Patch now = now_.moved(c.y, c.x);
  // One row and one column more than the cell, on all sides.
  const int w = c.width + 2, h = c.height + 2;
  for (auto& p : halves_) p.resize(std::max(p.size(), static_cast<std::size_t>(w * h)));
  scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(w * (h + 5))));
  kernels_.half_x(whole.moved(-1, -1), w, h, limits_, halves_[0].data());
  kernels_.half_y(whole.moved(-1, -1), w, h, limits_, halves_[1].data());
  kernels_.half_xy(whole.moved(-1, -1), w, h, limits_, scratch_.data(), halves_[2].data());
  const auto at = [&](HalfPlace p) {
    const bool half_y = (p.y & 1) != 0, half_x = (p.x & 1) != 0;
    if (!half_y && !half_x) return whole.moved(p.y >> 1, p.x >> 1);
    return Patch{halves_[!half_y ? 0 : !half_x ? 1 : 2].data(), w}.moved((p.y >> 1) + 1, (p.x >> 1) + 1);
  };
  const auto try_quarters = [&](int y, int x) {
    const MotionVector v{static_cast<std::int16_t>(4 * whole_x + x), static_cast<std::int16_t>(4 * whole_y + y)};
    std::uint32_t d = 0;
    if ((y & 1) == 0 && (x & 1) == 0) {
      d = kernels_.sad(now, at({y / 2, x / 2}), c.width, c.height);
    } else {
      const HalfPlaces p = halves_around(y, x);
      d = kernels_.sad_to_average(now, at(p.first), at(p.second), c.width, c.height);
    }
    const float bits = bits_of(d, c.width * c.height) + bits_of(v, guess);
    if (bits < best.bits) best = {v, bits};
  };
  for (int step = 2; step > 0; --step) {
    const int from_y = best.vector.y - 4 * whole_y, from_x = best.vector.x - 4 * whole_x;
    for (int y = -step; y <= step; y += step)
      for (int x = -step; x <= step; x += step)
        if (y != 0 || x != 0) try_quarters(from_y + y, from_x + x);
  }
}

MotionSearch::Found MotionSearch::search(int frame, const Cell& c, const BlockMotion& motion) {
  const MotionVector guess = motion.guess(frame, c.row, c.column).vector;
  Found best{{}, std::numeric_limits<float>::max()};
  std::array<WholePlace, 11> tried;  // whole positions that were tried, because candidates often repeat
  std::size_t tried_end = 0;
  const auto try_rounded = [&](MotionVector v) {
    const WholePlace p{(v.y + 2) >> 2, (v.x + 2) >> 2};
    for (std::size_t i = 0; i < tried_end; ++i)
      if (tried[i].y == p.y && tried[i].x == p.x) return;
    tried[tried_end++] = p;
    try_whole(c, guess, p.y, p.x, best);
  };
  const int columns = motion.columns;
  const MotionVector* v = motion.of(frame) + c.row * columns + c.column;
  const bool is_last_column = c.column + 1 == columns;
  try_rounded({});
  try_rounded(guess);
  if (c.column > 0) try_rounded(v[-1]);
  if (c.row > 0) try_rounded(v[-columns]);
  if (c.row > 0 && !is_last_column) try_rounded(v[1 - columns]);
  if (motion.moves_in(frame - 1)) {
    const MotionVector* b = motion.of(frame - 1) + c.row * columns + c.column;
    try_rounded(b[0]);
    if (!is_last_column) try_rounded(b[1]);
    if (c.row + 1 < motion.rows) try_rounded(b[columns]);
  }
  if (!region_vectors_.empty()) {
    constexpr int kEdge = kSmall * kRegion;
    const int row = std::min(c.y / kEdge, (small_height_ - 1) / kRegion), column = std::min(c.x / kEdge, regions_ - 1);
    try_rounded(region_vectors_[static_cast<std::size_t>(row * regions_ + column)]);
  }
  for (const MotionVector shift : shifts_) try_rounded(shift);
  for (int step = 0; step < kSteps; ++step) {
    const int x = best.vector.x >> 2, y = best.vector.y >> 2;
    bool any = false;
    for (const auto& [dy, dx] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}})
      any |= try_whole(c, guess, y + dy, x + dx, best);
    if (!any) break;
  }
  refine(c, guess, best);
  return best;
}

/// Whether motion saves bits in this frame.
bool MotionSearch::search_frame(const History& history, int frame, BlockMotion& motion) {
  now_ = {history.row(frame, 0), history.stride()};
  const Patch same{history.row(frame - 1, 0), history.stride()};
  still_.clear();
  std::uint64_t all_still = 0;
  for (int r = 0; r < motion.rows; ++r)
    for (int i = 0; i < motion.columns; ++i) {
      const Cell c = cell(motion, r, i);
      still_.push_back(kernels_.sad(now_.moved(c.y, c.x), same.moved(c.y, c.x), c.width, c.height));
      all_still += still_.back();
    }
  if (all_still == 0) return false;
  pad(history, frame - 1);
  search_small();
  shifts_ = {};
  const auto samples = static_cast<std::uint64_t>(height_) * static_cast<std::uint64_t>(width_);
  if (all_still > samples * static_cast<std::uint64_t>(limits_.high - limits_.low) / kRangeOfShifts)
    find_shifts(history, frame);
  float gain = 0;
  const std::uint32_t* still = still_.data();
  MotionVector* v = motion.of(frame);
  for (int r = 0; r < motion.rows; ++r)
    for (int i = 0; i < motion.columns; ++i, ++still, ++v) {
      const Cell c = cell(motion, r, i);
      const int n = c.width * c.height;
      Found found{{}, bits_of(0, n) + bits_of({}, motion.guess(frame, r, i).vector)};
      if (*still > 0) found = search(frame, c, motion);
      *v = found.vector;
      gain += bits_of(*still, n) - found.bits;
    }
  return gain > 0;
}

void MotionSearch::find(const History& history, int frames, Limits limits, BlockMotion& motion) {
  limits_ = limits;
  height_ = history.height();
  width_ = history.width();
  small_height_ = height_ / kSmall;
  small_width_ = width_ / kSmall;
  regions_ = (small_width_ + kRegion - 1) / kRegion;
  motion.moves.assign(static_cast<std::size_t>(frames), 0);
  motion.start(frames, height_, width_);
  bool any = false;
  shrink(history, 0, small_);
  for (int z = 1; z < frames; ++z) {
    small_.swap(small_before_);
    shrink(history, z, small_);
    if (search_frame(history, z, motion)) {
      any = true;
      motion.moves[static_cast<std::size_t>(z)] = 1;
    } else {
      std::fill_n(motion.of(z), motion.rows * motion.columns, MotionVector{});
    }
  }
  if (!any) motion.moves.clear();
}

}  // namespace trivelet::prediction
