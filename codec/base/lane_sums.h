// A sum of doubles that is the same on every backend. Each term is added to one of 32 partial sums, and the order of
// additions is fixed within a partial sum only. The partial sums are added as a tree. A warp of a GPU keeps one partial
// sum per lane, a CPU keeps a vector of them.
#pragma once

#include <cstddef>

namespace trivelet {

class LaneSums {
 public:
  static constexpr std::size_t kLanes = 32;

  /// `column`: the column of a coefficient in its patch. The two columns of a 2x2 group share a partial sum.
  void add(int column, double term) { of_[static_cast<std::size_t>(column >> 1) % kLanes] += term; }

  /// The kLanes partial sums, for loops that add many terms at once.
  double* lanes() { return of_; }

  /// Returns the sum of all terms since the last call, and starts a new sum.
  double take() {
    for (std::size_t d = kLanes / 2; d > 0; d /= 2)
      for (std::size_t i = 0; i < d; ++i) of_[i] += of_[i + d];
    const double sum = of_[0];
    for (double& s : of_) s = 0;
    return sum;
  }

 private:
  double of_[kLanes] = {};
};

}  // namespace trivelet
