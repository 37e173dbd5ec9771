// The 2D 9/7 transforms of the comparison: every method and number of threads against binary64, and known properties.
#include <gtest/gtest.h>

#include "apps/bench/papers_dwt2d.h"
#include "tests/support/still_support.h"
#include "trivelet/error.h"

using namespace trivelet;
using papers_dwt2d::Method;
using test::texture;

namespace {

TEST(Study97, EveryMethodGivesTheReferencesCoefficients) {
  for (const auto& [w, h, levels] :
       {std::tuple{2, 2, 1}, {4, 8, 2}, {16, 6, 1}, {64, 48, 3}, {40, 96, 3}, {128, 128, 5}}) {
    const std::vector<double> in = texture(w, h), expected = papers_dwt2d::reference(in, w, h, levels);
    for (const Method m : {Method::kConvolution, Method::kLifting, Method::kMasks, Method::kMasksLow})
      for (const int threads : {1, 3}) {
        ThreadPool pool(threads);
        std::vector<float> data(in.begin(), in.end());
        papers_dwt2d::transform(m, data.data(), w, h, levels, pool);
        std::vector<float> in_runs(in.begin(), in.end());
        papers_dwt2d::transform(m, in_runs.data(), w, h, levels, pool, papers_dwt2d::Schedule::kStatic);
        ASSERT_EQ(in_runs, data) << papers_dwt2d::name_of(m) << " " << w << "x" << h << ", " << threads << " threads";
        const bool low = m == Method::kMasksLow;
        for (int y = 0; y < (low ? h >> levels : h); ++y)
          for (int x = 0; x < (low ? w >> levels : w); ++x)
            ASSERT_NEAR(data[static_cast<std::size_t>(y * w + x)], expected[static_cast<std::size_t>(y * w + x)], 1e-5)
                << papers_dwt2d::name_of(m) << " " << w << "x" << h << " at " << x << "," << y;
      }
  }
}

TEST(Study97, ConstantsLiveInTheLowBandAndSlopesVanishInside) {
  ThreadPool pool(1);
  std::vector<float> flat(64 * 64, 0.75f), slope(64 * 64);
  for (int i = 0; i < 64 * 64; ++i) slope[static_cast<std::size_t>(i)] = 0.01f * static_cast<float>(i % 64);
  papers_dwt2d::transform(Method::kLifting, flat.data(), 64, 64, 1, pool);
  papers_dwt2d::transform(Method::kLifting, slope.data(), 64, 64, 1, pool);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x) {
      EXPECT_NEAR(flat[static_cast<std::size_t>(y * 64 + x)], x < 32 && y < 32 ? 0.75f : 0.0f, 1e-5);
      if (x >= 34 && x < 62) {
        EXPECT_NEAR(slope[static_cast<std::size_t>(y * 64 + x)], 0, 1e-5);
      }
    }
}

TEST(Study97, ExtraMemoryIsThatOfTheMethod) {
  EXPECT_EQ(papers_dwt2d::extra_samples(Method::kMasks, 512, 512, 4), 512u * 512u);
  EXPECT_EQ(papers_dwt2d::extra_samples(Method::kLifting, 512, 256, 3), 3u * 16u * 256u);
  EXPECT_EQ(papers_dwt2d::extra_samples(Method::kConvolution, 512, 512, 2),
            2 * papers_dwt2d::extra_samples(Method::kConvolution, 512, 512, 1));
}

TEST(Study97, SidesThatDoNotDivideAreRefused) {
  ThreadPool pool(1);
  std::vector<float> data(12 * 12);
  EXPECT_THROW(papers_dwt2d::transform(Method::kLifting, data.data(), 12, 12, 3, pool), Error);
  EXPECT_THROW(papers_dwt2d::transform(Method::kMasks, data.data(), 12, 12, 0, pool), Error);
}

}  // namespace
