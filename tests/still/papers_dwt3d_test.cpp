// The sequential 3D transform of the papers: both orders against binary64 by the definition of the filters.
#include <gtest/gtest.h>

#include "apps/bench/papers_dwt3d.h"
#include "apps/bench/papers_filters.h"
#include "trivelet/error.h"

using namespace trivelet;
using papers_dwt3d::Order;

namespace {

/// One axis after the other, level by level, with double-precision taps.
std::vector<double> by_definition(std::vector<double> v, const Shape& s, int levels) {
  const papers::Taps<double> t = papers::make_taps<double>();
  const std::size_t strides[3] = {1, static_cast<std::size_t>(s.width),
                                  static_cast<std::size_t>(s.width) * static_cast<std::size_t>(s.height)};
  for (int level = 0; level < levels; ++level) {
    const int extents[3] = {s.width >> level, s.height >> level, s.frames >> level};
    for (int axis = 0; axis < 3; ++axis) {
      const int n = extents[axis], others[2] = {(axis + 1) % 3, (axis + 2) % 3};
      for (int i = 0; i < extents[others[0]]; ++i)
        for (int j = 0; j < extents[others[1]]; ++j) {
          const std::size_t at =
              static_cast<std::size_t>(i) * strides[others[0]] + static_cast<std::size_t>(j) * strides[others[1]];
          std::vector<double> line;
          for (int k = 0; k < n; ++k) line.push_back(v[at + static_cast<std::size_t>(k) * strides[axis]]);
          for (int k = 0; k < n / 2; ++k) {
            double low = 0, high = 0;
            for (int m = -4; m <= 4; ++m)
              low += t.low[m + 4] * line[static_cast<std::size_t>(papers::mirrored(2 * k + m, n))];
            for (int m = -3; m <= 3; ++m)
              high += t.high[m + 3] * line[static_cast<std::size_t>(papers::mirrored(2 * k + 1 + m, n))];
            v[at + static_cast<std::size_t>(k) * strides[axis]] = low;
            v[at + static_cast<std::size_t>(n / 2 + k) * strides[axis]] = high;
          }
        }
    }
  }
  return v;
}

TEST(Papers3d, BothOrdersGiveTheDefinitionsCoefficients) {
  for (const auto& [shape, levels] : {std::pair{Shape{8, 16, 24}, 3}, {Shape{4, 4, 4}, 2}, {Shape{2, 6, 10}, 1}}) {
    std::vector<double> in(shape.samples());
    std::uint32_t state = 7;
    for (double& v : in) {
      state = state * 1664525U + 1013904223U;
      v = static_cast<double>(state >> 24) - 128;
    }
    const std::vector<double> expected = by_definition(in, shape, levels);
    std::vector<float> lines(in.begin(), in.end()), rows = lines, scratch;
    papers_dwt3d::transform(lines, scratch, shape, levels, Order::kLines);
    papers_dwt3d::transform(rows, scratch, shape, levels, Order::kRows);
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(lines[i], expected[i], 2e-3) << i;
    for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(rows[i], expected[i], 2e-3) << i;
  }
}

TEST(Papers3d, ExtentsThatDoNotDivideAreRefused) {
  std::vector<float> data(12 * 16 * 16), scratch;
  EXPECT_THROW(papers_dwt3d::transform(data, scratch, {12, 16, 16}, 3, Order::kRows), Error);
  EXPECT_THROW(papers_dwt3d::transform(data, scratch, {12, 16, 16}, 0, Order::kRows), Error);
}

}  // namespace
