// The estimate of what a GOP costs: the terms of a coefficient, and the same sums for every instruction set.
#include "codec/rate/coding_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <type_traits>
#include <vector>

namespace trivelet {
namespace {

TEST(CodingCost, TermsAreLogarithmsAndErrors) {
  for (const float q : {0.0f, 0.1f, 0.49f, 0.99f, 1.0f, 1.5f, 3.0f, 100.0f, 65535.0f, 1e15f}) {
    const double bits = coding_bits(q) / static_cast<double>(1 << kBitsFraction);
    EXPECT_NEAR(bits, std::log2(1 + 12 * static_cast<double>(q) * static_cast<double>(q)), 0.01) << q;
    const double error = coding_error(q) / static_cast<double>(1 << kErrorFraction);
    EXPECT_NEAR(error, q < 1 ? static_cast<double>(q) * static_cast<double>(q) : 1.0 / 12, 1e-4) << q;
  }
}

// What the sums are to be: every second row, one coefficient after the other.
template <class T>
CodingSums expected_sums(const std::vector<T>& values, int width, int height, float inverse_step) {
  CodingSums sums;
  for (int y = 0; y < height; y += kCodingRows)
    for (int x = 0; x < width; ++x) {
      const float q = coding_steps(values[static_cast<std::size_t>(y * width + x)], inverse_step);
      sums.bits += coding_bits(q);
      sums.error += coding_error(q);
    }
  return sums;
}

template <class T>
void check_sums(int width, int height, double most, float inverse_step) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> draw(-most, most);
  std::vector<T> values(static_cast<std::size_t>(width * height));
  for (T& v : values) v = static_cast<T>(random() % 3 == 0 ? 0 : draw(random));
  Field<T> band;
  band.data = values.data();
  band.shape = {1, height, width};
  band.row_stride = width;
  band.frame_stride = static_cast<std::ptrdiff_t>(values.size());
  const CodingSums expected = expected_sums(values, width, height, inverse_step);
  for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kBest}) {
    const CodingSums sums = coding_sums(band, 0, inverse_step, simd);
    EXPECT_EQ(sums.bits, expected.bits) << width << "x" << height << ", up to " << most;
    EXPECT_EQ(sums.error, expected.error) << width << "x" << height << ", up to " << most;
  }
}

TEST(CodingCost, SumsAreTheSameForAllInstructions) {
  for (const int width : {1, 7, 16, 33, 250, kCodingTerms + 21})
    for (const int height : {1, 2, 5})
      for (const double most : {0.5, 20.0, 30000.0, 1e8}) {
        check_sums<float>(width, height, most, 0.37f);
        check_sums<std::int32_t>(width, height, most, 1);
      }
}

}  // namespace
}  // namespace trivelet
