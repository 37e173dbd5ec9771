// The loops of lifting in 16 bits against those in 32 bits, in every instruction set.
#include "codec/motion/narrow_kernels.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codec/base/simd.h"
#include "codec/motion/motion_kernels.h"
#include "codec/transform/dwt_kernels.h"

namespace trivelet {
namespace {

std::vector<SimdLevel> possible_levels() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (simd <= detected_simd()) levels.push_back(simd);
  return levels;
}

// Interpolation in 16 bits is that in 32 bits up to the limit that it names, and refuses what is beyond.
TEST(NarrowKernels, InterpolateAsThoseOf32Bits) {
  constexpr int kRows = 21, kColumns = 100, kBorder = 8, kRowSamples = kColumns + 2 * kBorder + kNarrowSlack;
  std::mt19937 random(11);
  std::vector<std::int16_t> in(static_cast<std::size_t>((kRows + 2 * kBorder + 1) * kRowSamples));
  std::vector<std::int32_t> wide(in.size());
  for (const SimdLevel simd : possible_levels())
    for (int round = 0; round < 300; ++round) {
      const int up = random() % 3 == 0 ? kMotionFraction : 0, limit = kNarrowInput >> up;
      const int phase_x = static_cast<int>(random() % 8), phase_y = static_cast<int>(random() % 8);
      const int rows = 1 + static_cast<int>(random() % kRows), columns = 1 + static_cast<int>(random() % kColumns);
      // Extremes side by side give the largest sums.
      for (auto& x : in)
        x = static_cast<std::int16_t>(round % 2 == 0      ? std::uniform_int_distribution<int>(-limit, limit)(random)
                                      : random() % 2 == 0 ? limit
                                                          : -limit);
      std::int16_t* const at = in.data() + kBorder * kRowSamples + kBorder;
      motion_kernels(SimdLevel::kScalar)
          .narrow.interpolate(at, kRowSamples, wide.data(), kRowSamples, rows, columns, phase_x, phase_y, up);
      std::vector<std::int16_t> out(in.size());
      const NarrowKernels& kernels = narrow_kernels(simd);
      ASSERT_TRUE(kernels.interpolate(at, kRowSamples, out.data(), kRowSamples, rows, columns, phase_x, phase_y, up));
      for (int y = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x)
          ASSERT_EQ(out[static_cast<std::size_t>(y * kRowSamples + x)],
                    wide[static_cast<std::size_t>(y * kRowSamples + x)])
              << to_string(simd) << ", phases " << phase_x << ", " << phase_y << ", up " << up << ", " << y << ", "
              << x;
      const int y = static_cast<int>(random() % static_cast<unsigned>(rows)) +
                    (phase_y != 0 ? static_cast<int>(random() % 8) - 3 : 0);
      const int x = static_cast<int>(random() % static_cast<unsigned>(columns)) +
                    (phase_x != 0 ? static_cast<int>(random() % 8) - 3 : 0);
      at[y * kRowSamples + x] = static_cast<std::int16_t>(random() % 2 == 0 ? limit + 1 : -limit - 1);
      EXPECT_FALSE(kernels.interpolate(at, kRowSamples, out.data(), kRowSamples, rows, columns, phase_x, phase_y, up))
          << to_string(simd) << ", " << y << ", " << x;
    }
}

TEST(NarrowKernels, LiftAsThoseOf32Bits) {
  constexpr int kRows = 3, kColumns = 77;
  constexpr std::size_t kSamples = kRows * kColumns;
  std::mt19937 random(12);
  int fitted = 0;
  for (const SimdLevel simd : possible_levels())
    for (int round = 0; round < 400; ++round) {
      const int columns = 1 + static_cast<int>(random() % kColumns), shift = random() % 2 == 0 ? 0 : 4;
      const int limit = random() % 2 == 0 ? 10000 : 32767;
      std::vector<std::int16_t> x(kSamples), p[2];
      std::vector<std::int32_t> wide[2];
      const auto set = [&](std::vector<std::int16_t>& v) {
        v.resize(kSamples);
        for (auto& n : v)
          n = static_cast<std::int16_t>(std::uniform_int_distribution<int>(-limit - 1, limit)(random) /
                                        (random() % 40 == 0 ? 1 : 4));
      };
      set(x);
      for (int i = 0; i < 2; ++i) set(p[i]), wide[i].assign(p[i].begin(), p[i].end());
      std::vector<std::int16_t> expected = x;
      const bool add = random() % 2 == 0, mean = random() % 2 == 0;
      const LiftKernels<std::int16_t>& reference = motion_kernels(SimdLevel::kScalar).narrow;
      const NarrowKernels& kernels = narrow_kernels(simd);
      const bool fits =
          mean ? reference.lift_mean(expected.data(), kColumns, wide[0].data(), kColumns, wide[1].data(), kColumns,
                                     kRows, columns, shift, add)
               : reference.lift(expected.data(), kColumns, wide[0].data(), kColumns, kRows, columns, shift, add);
      ASSERT_EQ(mean ? kernels.lift_mean(x.data(), kColumns, p[0].data(), kColumns, p[1].data(), kColumns, kRows,
                                         columns, shift, add)
                     : kernels.lift(x.data(), kColumns, p[0].data(), kColumns, kRows, columns, shift, add),
                fits);
      ASSERT_EQ(x, expected) << to_string(simd);
      fitted += fits;
    }
  EXPECT_GT(fitted, 100);
  EXPECT_LT(fitted, 400 * static_cast<int>(possible_levels().size()) - 20);
}

TEST(NarrowKernels, ConvertAsThoseOf32Bits) {
  std::mt19937 random(13);
  const MotionKernels& reference = motion_kernels(SimdLevel::kScalar);
  for (const SimdLevel simd : possible_levels())
    for (int round = 0; round < 200; ++round) {
      const auto n = static_cast<std::size_t>(1 + random() % 100);
      const float gain = static_cast<float>(random() % 1000) / 100.0f, limit = round % 4 == 0 ? 1e9f : 30000.0f;
      std::vector<float> values(n);
      for (auto& v : values) v = std::uniform_real_distribution<float>(-limit, limit)(random) / (gain + 0.1f);
      if (round % 7 == 0) values[random() % n] = std::numeric_limits<float>::quiet_NaN();
      std::vector<std::int32_t> integers(n);
      std::memcpy(integers.data(), values.data(), n * sizeof(float));
      reference.from_real(integers.data(), static_cast<int>(n), gain);
      std::vector<std::int16_t> expected(n), narrow(n);
      const bool fits = reference.to_narrow(integers.data(), expected.data(), static_cast<int>(n));
      const NarrowKernels& kernels = narrow_kernels(simd);
      ASSERT_EQ(kernels.from_real(values.data(), narrow.data(), static_cast<int>(n), gain), fits);
      if (!fits) continue;
      ASSERT_EQ(narrow, expected);
      for (const int fraction : {0, kMotionFraction}) {
        integers.assign(expected.begin(), expected.end());
        if (fraction > 0) reference.round(integers.data(), static_cast<int>(n));
        for (int format = 0; format < 4; ++format) {
          const int least = format == 0 ? 0 : format == 1 ? -100 : format == 2 ? 16 : -2000, most = least + 200;
          std::vector<std::byte> samples(2 * n), same(2 * n);
          dwt_kernels<std::int32_t>(SimdLevel::kScalar)
              .store[format](integers.data(), 1.0f, 90, least, most, same.data(), static_cast<int>(n));
          kernels.store[format](narrow.data(), fraction, 90, least, most, samples.data(), static_cast<int>(n));
          ASSERT_EQ(samples, same) << to_string(simd) << ", format " << format << ", fraction " << fraction;
        }
      }
    }
}

}  // namespace
}  // namespace trivelet
