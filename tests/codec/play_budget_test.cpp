// The player's budget: what it drops and in which order, that it reaches the time available, and that it recovers.
#include "apps/play/budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace trivelet::play {
namespace {

constexpr int kLayers = 16;
constexpr double kLength = 4.0 / 3;  // seconds that a GOP is shown

/// Seconds for a GOP on a machine that needs `whole` for all of it.
double cost(const Quality& q, double whole) {
  const double layers = q.layers == 0 ? 1 : 0.7 + 0.3 * q.layers / kLayers;
  return whole * layers * std::pow(0.5, q.reduce) * std::pow(0.6, q.temporal);
}

/// Decodes so many GOPs; how many of them took longer than they are shown.
int play(Budget& budget, double whole, int gops) {
  int late = 0;
  for (int i = 0; i < gops; ++i) {
    const double seconds = cost(budget.apply({}), whole);
    late += seconds > kLength;
    budget.decoded(seconds, kLength, true);
  }
  return late;
}

TEST(Budget, LeavesOutLayersThenSizeThenFrames) {
  Budget budget(true, kLayers, 5, 5);
  Quality before = budget.apply({});
  EXPECT_EQ(before, Quality());
  for (int i = 0; i < 10; ++i) {
    budget.decoded(100, 1, false);
    const Quality now = budget.apply({});
    EXPECT_TRUE(now.reduce == before.reduce || now.layers < kLayers);
    EXPECT_TRUE(now.temporal == before.temporal || now.reduce > 0);
    EXPECT_GE(now.reduce, before.reduce);
    EXPECT_GE(now.temporal, before.temporal);
    before = now;
  }
  EXPECT_EQ(before, (Quality{kLayers / 2, 2, 2}));
}

TEST(Budget, ComesToWhatThereIsTimeFor) {
  for (const double whole : {0.5, 1.1, 1.5, 2.0, 3.0, 5.0, 8.0}) {
    Budget budget(true, kLayers, 5, 5);
    EXPECT_LE(play(budget, whole, 4), 2) << whole;  // of the first ones only
    EXPECT_EQ(play(budget, whole, 100), 0) << whole;
    EXPECT_EQ(budget.level() > 0, whole > 0.9 * kLength) << whole;
  }
}

TEST(Budget, ComesBackWhenThereIsTime) {
  Budget budget(true, kLayers, 5, 5);
  play(budget, 5, 5);
  EXPECT_GT(budget.level(), 3);
  play(budget, 0.5, 40);
  EXPECT_EQ(budget.level(), 0);
}

TEST(Budget, StaysWithinTheStream) {
  Budget budget(true, 1, 1, 0);
  play(budget, 100, 10);
  EXPECT_EQ(budget.apply({}), (Quality{1, 1, 0}));
  EXPECT_EQ(budget.apply({0, 1, 0}), (Quality{1, 1, 0}));
}

TEST(Budget, DoesNothingUnlessItIsWanted) {
  Budget budget(false, kLayers, 5, 5);
  play(budget, 100, 10);
  EXPECT_EQ(budget.apply({}), Quality());
}

}  // namespace
}  // namespace trivelet::play
