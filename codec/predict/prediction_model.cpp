// Least squares over sums of products. All sums are added in a fixed order, so that every instruction set chooses the
// same weights.
#include "codec/predict/prediction_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numeric>

namespace trivelet::prediction {

namespace {

constexpr int kRowSamples = 256;  // of a tile at a time, so that the sums of their products fit 32 bits
constexpr int kRowStride = kRowSamples + static_cast<int>(kKernelPadding);
constexpr float kLeastError = 0.05f;  // mean squared error of a tile; below it no code gets shorter
constexpr float kSwitch = 0.97f;      // a tile leaves the class before it for an error smaller by this factor
constexpr std::size_t kLanes = 8;
constexpr int kTilesForClass = 48;  // tiles per class at least, because the weights of a class take bits
constexpr int kSamePlace = 14;      // index of the tap at the same position in the frame before
constexpr int kPartForSingle = 16;  // tiles have one frame if more than 1/16 of the tiles are still at times
constexpr double kStillGain = 0.1;  // by which the log2 of the error must fall before a class copies the frame before
constexpr double kStillGainAlone = 4;  // the same for a single class, which also predicts tiles that it does not fit

std::size_t pairs(int rows) { return static_cast<std::size_t>(rows * (rows + 1) / 2); }

/// The sum of a * b in kLanes lanes, which is the same for every instruction set.
float dot(const float* a, const float* b, std::size_t n) {
  float lanes[kLanes] = {};
  for (std::size_t i = 0; i < n; i += kLanes)
    for (std::size_t l = 0; l < kLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) + ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

/// Solves the symmetric system in place (Cholesky). Returns false if it is not safely positive definite.
bool solve_symmetric(std::vector<double>& a, std::vector<double>& b, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j) {
    double diagonal = a[j * n + j];
    for (std::size_t k = 0; k < j; ++k) diagonal -= a[j * n + k] * a[j * n + k];
    if (!(diagonal > 1e-9)) return false;
    diagonal = std::sqrt(diagonal);
    a[j * n + j] = diagonal;
    for (std::size_t i = j + 1; i < n; ++i) {
      double v = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) v -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = v / diagonal;
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

Weights left_alone(int taps) {
  Weights w(static_cast<std::size_t>(taps), 0);
  w[0] = 1 << kWeightBits;
  return w;
}
Weights frame_before(int taps) {
  Weights w(static_cast<std::size_t>(taps), 0);
  w[kSamePlace] = 1 << kWeightBits;
  return w;
}

/// The logarithm to base 2, linear between powers of two, so that it is the same on every machine.
double logarithm(float v) { return static_cast<double>(std::bit_cast<std::uint32_t>(v)) / (1 << 23) - 127; }

/// The error of weights in a tile is a linear form of the tile's products. This writes the factors of the form.
void error_form(const Weights& weights, float* form) {
  const auto factor = [&weights](std::size_t i) {  // of tap 1 + i; behind the taps, of the sample
    return i + 1 < weights.size() ? static_cast<float>(weights[i + 1]) / (1 << kWeightBits) : -1.0f;
  };
  for (std::size_t i = 0; i < weights.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j) *form++ = factor(i) * factor(j) * (i == j ? 1.0f : 2.0f);
}

}  // namespace

void Model::choose_shift(History& history, int frames) {
  std::uint64_t sum = 0;
  std::uint64_t count = 1;
  for (int z = 0; z < frames; z += 4)
    for (int y = 0; y < history.height(); y += 4) {
      const std::int16_t* r = history.row(z, y);
      for (int x = 1; x < history.width(); ++x) sum += static_cast<std::uint64_t>(std::abs(r[x] - r[x - 1]));
      count += static_cast<std::uint64_t>(history.width());
    }
  shift_ = 0;
  while ((sum / count >> shift_) >= 256) ++shift_;
}

/// Stores the differences of taps 1.. and of the samples to the left neighbour in rows_, from `at` on. Returns the
/// position behind them.
int Model::gather(History& history, int frame, int y, int x, int width, int taps, int at) {
  const std::int16_t* left = history.row(frame, y) + x - 1;
  for (int i = 1; i <= taps; ++i) {
    const std::int16_t* from = left + 1;
    if (i < taps) {
      const Tap& t = kTaps[static_cast<std::size_t>(i)];
      from = history.neighbour(frame, y, t.frame, t.row) + x + t.column;
    }
    kernels_.differences(from, left, shift_, width, &rows_[static_cast<std::size_t>((i - 1) * kRowStride + at)]);
  }
  return at + width;
}

/// The mean products of the gathered samples of a tile. They are zeros if nothing was gathered.
void Model::sum_tile(History& history, int frames, int tile, float* out) {
  const int group = tile / tiles.tiles_per_group();
  const int x = tile % tiles.columns << tiles.log2_edge;
  const int y = tile % tiles.tiles_per_group() / tiles.columns << tiles.log2_edge;
  const int width = std::min(1 << tiles.log2_edge, history.width() - x);
  const int y_end = std::min(y + (1 << tiles.log2_edge), history.height());
  const int z_end = std::min((group + 1) << tiles.log2_frames, frames);
  std::fill_n(out, products_, 0.0f);
  int at = 0;
  int all = 0;
  const auto flush = [&] {
    const int padded = (at + 15) / 16 * 16;
    for (int i = 0; i < taps_; ++i)
      std::fill_n(&rows_[static_cast<std::size_t>(i * kRowStride + at)], padded - at, std::int16_t{0});
    kernels_.products(rows_.data(), kRowStride, taps_, padded, summed_.data());
    for (std::size_t i = 0; i < pairs(taps_); ++i) out[i] += static_cast<float>(summed_[i]);
    all += at;
    at = 0;
  };
  for (int z = std::max(1, group << tiles.log2_frames); z < z_end; ++z) {
    if (z % effort_.frame_step != 0 && z != z_end - 1) continue;
    for (int row = y + z % effort_.row_step; row < y_end; row += effort_.row_step)
      for (int from = 0; from < width; from += kRowSamples) {
        const int n = std::min(width - from, kRowSamples);
        if (at + n > kRowSamples) flush();
        at = gather(history, z, row, x + from, n, taps_, at);
      }
  }
  if (at > 0) flush();
  samples_[static_cast<std::size_t>(tile)] = static_cast<float>(all);
  if (all == 0) return;
  for (std::size_t i = 0; i < pairs(taps_); ++i) out[i] /= static_cast<float>(all);
}

/// Solves for the weights of taps. Rows 0.. of the sums belong to taps 1.., and the last row to the sample.
Weights Model::solve(const std::vector<double>& sums, int taps) const {
  const auto n = static_cast<std::size_t>(taps - 1);
  double trace = 0;
  for (std::size_t i = 0; i < n; ++i) trace += sums[pairs(static_cast<int>(i)) + i];
  for (double ridge = 1e-4; ridge < 10; ridge *= 30) {
    std::vector<double> a(n * n);
    std::vector<double> b(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j <= i; ++j) a[i * n + j] = sums[pairs(static_cast<int>(i)) + j];
      a[i * n + i] += ridge * (trace / static_cast<double>(n)) + 1e-6;
      b[i] = sums[pairs(taps - 1) + i];
    }
    if (!solve_symmetric(a, b, n)) continue;
    Weights w(n + 1);
    double magnitude = 0;
    for (const double v : b) magnitude += std::fabs(v);
    if (!(magnitude < 3)) continue;  // with this bound and the left tap, sums stay within 32 bits
    int rest = 1 << kWeightBits;
    for (std::size_t i = 0; i < n; ++i) {
      w[i + 1] = static_cast<std::int16_t>(std::lround(b[i] * (1 << kWeightBits)));
      rest -= w[i + 1];
    }
    if (rest > kMaxWeight) continue;  // the other weights add up to -3, rounded
    w[0] = static_cast<std::int16_t>(rest);
    return w;
  }
  return left_alone(taps);
}

void Model::fit_first(History& history) {
  const int taps = kFirstFrameTaps;
  std::vector<double> sums(pairs(taps));
  for (int y = 0; y < history.height(); y += effort_.row_step)
    for (int x = 0; x < history.width(); x += kRowSamples) {
      const int n = gather(history, 0, y, x, std::min(kRowSamples, history.width() - x), taps, 0);
      const int padded = (n + 15) / 16 * 16;
      for (int i = 0; i < taps; ++i)
        std::fill_n(&rows_[static_cast<std::size_t>(i * kRowStride + n)], padded - n, std::int16_t{0});
      kernels_.products(rows_.data(), kRowStride, taps, padded, summed_.data());
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += summed_[i];
    }
  head.first = solve(sums, taps);
}

/// Sets classes whose tiles mostly do not change to copy the frame before. There least squares follow the few tiles
/// that change.
void Model::copy_where_still(std::vector<float>& forms) {
  if (taps_ <= kSamePlace) return;
  constexpr std::size_t kBefore = kSamePlace - 1;
  const std::size_t own = static_cast<std::size_t>(taps_) - 1;
  const std::size_t before_before = pairs(kSamePlace - 1) + kBefore, own_own = pairs(taps_ - 1) + own;
  const std::size_t before_own = pairs(taps_ - 1) + kBefore;
  std::vector<double> gain(head.classes.size());
  const double least = gain.size() > 1 ? kStillGain : kStillGainAlone;
  for (std::size_t t = 0; t < map.size(); ++t) {
    const float* products = &tile_products_[t * products_];
    if (samples_[t] == 0 || products[own_own] == 0) continue;
    const float solved = dot(products, &forms[map[t] * products_], products_);
    const float copied = products[before_before] - 2 * products[before_own] + products[own_own];
    gain[map[t]] += static_cast<double>(samples_[t]) *
                    (logarithm(std::max(solved, kLeastError)) - logarithm(std::max(copied, kLeastError)) - least);
  }
  for (std::size_t c = 0; c < gain.size(); ++c) {
    if (gain[c] <= 0) continue;
    head.classes[c] = frame_before(taps_);
    error_form(head.classes[c], &forms[c * products_]);
  }
}

void Model::fit_classes(int rounds) {
  const auto count = static_cast<std::size_t>(tiles.count());
  const std::size_t n = pairs(taps_);
  // Tiles are ordered by the error of a prediction from the left neighbour. Flat tiles are left out.
  std::vector<float> error(count);
  std::vector<std::uint32_t> order;
  for (std::size_t t = 0; t < count; ++t) {
    error[t] = tile_products_[t * products_ + n - 1];
    if (error[t] > 0) order.push_back(static_cast<std::uint32_t>(t));
  }
  map.assign(count, 0);
  const auto classes = static_cast<std::size_t>(
      std::clamp(static_cast<int>(order.size()) / kTilesForClass, 1, std::min(effort_.classes, kMaxClasses)));
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return error[a] < error[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) map[order[i]] = static_cast<std::uint8_t>(i * classes / order.size());
  head.classes.assign(classes, left_alone(taps_));

  const auto group = static_cast<std::size_t>(tiles.tiles_per_group());
  std::vector<float> forms(classes * products_);
  for (int round = 0; round <= rounds; ++round) {
    std::vector<std::vector<double>> sums(classes, std::vector<double>(n));
    for (std::size_t t = 0; t < count; ++t) {
      if (samples_[t] == 0) continue;
      const double weight = samples_[t] / static_cast<double>(std::max(error[t], kLeastError));
      double* to = sums[map[t]].data();
      const float* from = &tile_products_[t * products_];
      for (std::size_t i = 0; i < n; ++i) to[i] += weight * static_cast<double>(from[i]);
    }
    for (std::size_t c = 0; c < classes; ++c) {
      head.classes[c] = solve(sums[c], taps_);
      error_form(head.classes[c], &forms[c * products_]);
    }
    copy_where_still(forms);
    if (round == rounds) break;
    std::vector<float> class_errors(classes);
    for (std::size_t t = 0; t < count; ++t) {
      const std::size_t before = t >= group ? map[t - group] : t > 0 ? map[t - 1] : 0;
      map[t] = static_cast<std::uint8_t>(before);
      if (samples_[t] == 0 || tile_products_[t * products_ + n - 1] == 0) continue;
      for (std::size_t c = 0; c < classes; ++c)
        class_errors[c] = dot(&tile_products_[t * products_], &forms[c * products_], products_);
      const auto best = std::min_element(class_errors.begin(), class_errors.end());
      if (std::max(*best, kLeastError) < kSwitch * class_errors[before])
        map[t] = static_cast<std::uint8_t>(best - class_errors.begin());
      error[t] = class_errors[map[t]];
    }
  }
}

/// Whether many tiles of one frame equal the frame before while other frames of their group differ.
bool Model::stands_still_at_times(History& history, int frames) const {
  const Tiles single(head.log2_edge, 0, frames, history.height(), history.width());
  const int group = 1 << head.log2_frames;
  int mixed = 0;
  for (int tile = 0; tile < single.tiles_per_group(); ++tile) {
    const int x = tile % single.columns << single.log2_edge;
    const int y = tile / single.columns << single.log2_edge;
    const auto bytes =
        static_cast<std::size_t>(std::min(1 << single.log2_edge, history.width() - x)) * sizeof(std::int16_t);
    const int end = std::min(y + (1 << single.log2_edge), history.height());
    int still = 0;
    int seen = 0;
    for (int z = 1; z < frames; ++z) {
      int row = y;
      bool flat = true;  // flat tiles cost nothing in any case
      for (; row < end; ++row) {
        const std::int16_t* r = history.row(z, row) + x;
        if (std::memcmp(r, history.neighbour(z, row, 1, 0) + x, bytes) != 0) break;
        flat = flat && std::memcmp(r, r + 1, bytes - sizeof *r) == 0;
      }
      still += row == end && !flat;
      ++seen;
      if ((z + 1) % group != 0 && z + 1 < frames) continue;
      if (still < seen) mixed += still;
      still = seen = 0;
    }
  }
  return mixed > single.count() / kPartForSingle;
}

void Model::fit(History& history, int frames, const Effort& effort) {
  effort_ = effort;
  head.tap_set = effort.tap_set;
  head.log2_edge = effort.log2_edge;
  head.log2_frames = effort.log2_frames;
  if (effort.classes > 1 && head.log2_frames > 0 && stands_still_at_times(history, frames)) head.log2_frames = 0;
  tiles = Tiles(head.log2_edge, head.log2_frames, frames, history.height(), history.width());
  taps_ = kTapSets[static_cast<std::size_t>(effort.tap_set)];
  products_ = (pairs(taps_) + kLanes - 1) / kLanes * kLanes;
  rows_.resize(static_cast<std::size_t>(kMaxTaps * kRowStride));
  summed_.resize(pairs(kMaxTaps));
  choose_shift(history, frames);
  fit_first(history);
  map.assign(static_cast<std::size_t>(tiles.count()), 0);
  if (frames == 1) {
    head.classes.assign(1, {});
    return;
  }
  tile_products_.resize(static_cast<std::size_t>(tiles.count()) * products_);
  samples_.resize(static_cast<std::size_t>(tiles.count()));
  for (int t = 0; t < tiles.count(); ++t)
    sum_tile(history, frames, t, &tile_products_[static_cast<std::size_t>(t) * products_]);
  fit_classes(effort.rounds);
}

}  // namespace trivelet::prediction
