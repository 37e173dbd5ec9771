// Reduces decoding if there is not enough time for all of it: first fewer layers, then smaller pictures, then fewer
// pictures. The clock never slows down.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "apps/play/player.h"

namespace trivelet::play {

class Budget {
 public:
  /// What the stream has: quality layers, and how often its size and rate can be halved.
  Budget(bool on, int layers, int most_reduce, int most_temporal)
      : on_(on), layers_(layers), most_reduce_(most_reduce), most_temporal_(most_temporal) {}

  /// What is decoded instead of `q`.
  Quality apply(Quality q) const {
    const int layers = q.layers > 0 ? q.layers : layers_;
    if (level_ >= 1) q.layers = std::max(1, layers * 3 / 4);
    if (level_ >= 2) q.layers = std::max(1, layers / 2);
    if (level_ >= 3) q.reduce = std::max(q.reduce, std::min(q.reduce + std::min(level_ - 2, 2), most_reduce_));
    if (level_ >= 5) q.temporal = std::max(q.temporal, std::min(q.temporal + std::min(level_ - 4, 2), most_temporal_));
    return q;
  }

  /// Decoding a GOP that is shown for `length` seconds took `seconds`; `ahead`: the buffer of decoded GOPs is full.
  void decoded(double seconds, double length, bool ahead) {
    if (!on_ || length <= 0) return;
    if (seconds > kMost * length) {
      const double affordable = kGoal * length / seconds * kCost[static_cast<std::size_t>(level_)];
      while (level_ < kLevels - 1) {
        ++level_;
        if (kCost[static_cast<std::size_t>(level_)] <= affordable) break;
      }
      calm_ = 0;
      return;
    }
    if (level_ == 0) return;
    const auto at = static_cast<std::size_t>(level_);
    calm_ = ahead && seconds * kCost[at - 1] / kCost[at] < kGoal * length ? calm_ + 1 : 0;
    if (calm_ < kCalm) return;
    --level_;
    calm_ = 0;
  }
  int level() const { return level_; }

 private:
  static constexpr int kLevels = 7;
  static constexpr int kCalm = 2;  // GOPs, so that it does not go to and fro
  static constexpr double kMost = 0.9;
  static constexpr double kGoal = 0.7;
  /// Relative cost of decoding by level: rounded from 1080p with motion, whose compensation costs most.
  static constexpr std::array<double, kLevels> kCost = {1, 0.85, 0.75, 0.4, 0.25, 0.17, 0.12};

  bool on_;
  int layers_;
  int most_reduce_;
  int most_temporal_;
  int level_ = 0;
  int calm_ = 0;
};

}  // namespace trivelet::play
