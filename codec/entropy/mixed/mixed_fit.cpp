// Reweighted least squares: each round weights a sample by the inverse of the squared residual that the round before
// left, so that the weights serve the many small residuals rather than the few large ones at edges.
#include "codec/entropy/mixed/mixed_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace trivelet::mixed {

namespace {

using prediction::History;
using prediction::kMaxTaps;
using prediction::kTaps;
using prediction::Weights;

constexpr int kRounds = 3;
constexpr int kMostFitted = 1 << 15;  // samples; more change the weights by less than their precision
constexpr double kSoftening = 100;    // squared residual at which a weight is half that of no residual
constexpr double kRidge = 1e-4;       // relative to the mean of the diagonal
constexpr double kOne = 1 << prediction::kWeightBits;

/// Differences of taps 1.. and of the sample to the left neighbour, which has the weight that is left to 1.
class Sums {
 public:
  explicit Sums(int unknowns) : n_(static_cast<std::size_t>(unknowns)), sums_(n_ * (n_ + 1)) {}

  void add(const double* differences, double weight) {
    for (std::size_t i = 0; i < n_; ++i) {
      const double d = weight * differences[i];
      double* to = &sums_[i * (n_ + 1)];
      for (std::size_t j = i; j <= n_; ++j) to[j] += d * differences[j];
    }
  }
  /// Gaussian elimination of the symmetric system, made definite by a ridge.
  std::vector<double> solve() {
    double trace = 0;
    for (std::size_t i = 0; i < n_; ++i) trace += at(i, i);
    for (std::size_t i = 0; i < n_; ++i) at(i, i) += kRidge * trace / static_cast<double>(n_) + 1e-6;
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t k = i + 1; k < n_; ++k) {
        const double f = at(i, k) / at(i, i);
        for (std::size_t j = k; j <= n_; ++j) at(k, j) -= f * at(i, j);
      }
    std::vector<double> x(n_);
    for (std::size_t i = n_; i-- > 0;) {
      double s = at(i, n_);
      for (std::size_t j = i + 1; j < n_; ++j) s -= at(i, j) * x[j];
      x[i] = s / at(i, i);
    }
    return x;
  }

 private:
  double& at(std::size_t i, std::size_t j) { return sums_[i * (n_ + 1) + j]; }
  std::size_t n_;
  std::vector<double> sums_;  // upper triangle, then the right side
};

/// Calls f(differences, left neighbour) for rows of the frames that have the weights, and not more samples than needed.
template <class F>
void for_samples(History& history, int frames, bool first, int taps, const F& f) {
  const int begin = first ? 0 : 1;
  const int end = first ? 1 : frames;
  const std::int64_t samples = std::int64_t{end - begin} * history.height() * history.width();
  const int step = static_cast<int>((samples + kMostFitted - 1) / kMostFitted);
  std::array<const std::int16_t*, kMaxTaps> rows{};
  std::array<double, kMaxTaps> differences{};
  for (int z = begin; z < end; ++z)
    for (int y = z % step; y < history.height(); y += step) {
      for (int i = 0; i < taps; ++i) {
        const prediction::Tap& t = kTaps[static_cast<std::size_t>(i)];
        rows[static_cast<std::size_t>(i)] = history.neighbour(z, y, t.frame, t.row) + t.column;
      }
      rows[0] = history.row(z, y) - 1;
      rows[1] = history.row(z, y) - 2;
      const std::int16_t* row = history.row(z, y);
      for (int x = 0; x < history.width(); ++x) {
        const int left = rows[0][x];
        for (std::size_t i = 1; i < static_cast<std::size_t>(taps); ++i) differences[i - 1] = rows[i][x] - left;
        differences[static_cast<std::size_t>(taps) - 1] = row[x] - left;
        f(differences.data(), left);
      }
    }
}

/// In fixed point, if they are within the limits of the format; else the left neighbour alone, or the frame before.
Weights in_fixed_point(const std::vector<double>& x, bool first) {
  constexpr int kSamePlace = 14;  // tap at the same place in the frame before
  Weights w(x.size() + 1);
  double rest = kOne;
  double sum = 0;
  bool fits = true;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = std::nearbyint(x[i] * kOne);
    fits = fits && std::fabs(v) <= prediction::kMaxWeight;
    if (!fits) break;
    w[i + 1] = static_cast<std::int16_t>(v);
    rest -= v;
    sum += std::fabs(v);
  }
  if (fits && std::fabs(rest) <= prediction::kMaxWeight && sum + std::fabs(rest) <= prediction::kWeightSum) {
    w[0] = static_cast<std::int16_t>(rest);
    return w;
  }
  std::fill(w.begin(), w.end(), std::int16_t{0});
  w[first ? 0 : kSamePlace] = static_cast<std::int16_t>(kOne);
  return w;
}

}  // namespace

Weights fit_weights(History& history, int frames, bool first, int taps) {
  const auto unknowns = static_cast<std::size_t>(taps) - 1;
  std::vector<double> x;
  double squares = 0;    // of samples
  double residuals = 0;  // squared
  for (int round = 0; round < kRounds; ++round) {
    Sums sums(taps - 1);
    squares = residuals = 0;
    for_samples(history, frames, first, taps, [&](const double* differences, int left) {
      double weight = 1;
      if (round > 0) {
        double residual = -differences[unknowns];
        for (std::size_t i = 0; i < unknowns; ++i) residual += differences[i] * x[i];
        weight = 1 / (residual * residual + kSoftening);
        residuals += residual * residual;
        squares += (left + differences[unknowns]) * (left + differences[unknowns]);
      }
      sums.add(differences, weight);
    });
    x = sums.solve();
  }
  // White noise is best predicted by nothing: the residuals of an even distribution are not even.
  if (squares < residuals) return Weights(unknowns + 1);
  return in_fixed_point(x, first);
}

}  // namespace trivelet::mixed
