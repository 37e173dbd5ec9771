// The paper's quantiser table and run lengths: steps, long runs, round trips, what is dropped, damage.
#include <gtest/gtest.h>

#include <cmath>

#include "apps/bench/papers_dct.h"
#include "tests/support/still_support.h"
#include "trivelet/error.h"

using namespace trivelet;
using test::picture;

namespace {

double mean_square(const still::Image& a, const still::Image& b) {
  double sum = 0;
  for (int y = 0; y < a.height; ++y)
    for (int x = 0; x < a.width; ++x) sum += std::pow(a.sample(0, x, y) - b.sample(0, x, y), 2);
  return sum / (double{1} * a.width * a.height);
}

still::Image blank(const still::Image& like) {
  still::Image image = like;
  image.samples.assign(like.samples.size(), std::byte{0});
  return image;
}

TEST(PapersDct, StepsFollowTheTable) {
  EXPECT_DOUBLE_EQ(papers_dct::step_of(0, 0, 8, 8, 4, 8), 1);
  EXPECT_DOUBLE_EQ(papers_dct::step_of(7, 0, 8, 8, 4, 8), 61 / 16.0);
  EXPECT_DOUBLE_EQ(papers_dct::step_of(0, 7, 8, 8, 4, 8), 72 / 16.0);
  EXPECT_DOUBLE_EQ(papers_dct::step_of(63, 63, 64, 64, 4, 8), 99 / 16.0);
  EXPECT_DOUBLE_EQ(papers_dct::step_of(1, 1, 64, 64, 10, 8), 2);
  EXPECT_DOUBLE_EQ(papers_dct::step_of(0, 0, 8, 8, 4, 12), 16);
}

TEST(PapersDct, PicturesComeBack) {
  ThreadPool pool(1);
  const auto transform = dct::make_own_transform(pool);
  for (const auto& [w, h, bits] : {std::tuple{64, 48, 8}, {1, 1, 8}, {37, 21, 12}, {300, 5, 16}}) {
    const still::Image image = picture(w, h, ColourModel::kGrey, bits, 0);
    still::Image back = blank(image);
    papers_dct::decode(papers_dct::encode(image, 4, 1, *transform), 4, *transform, back);
    // A coefficient errs by at most 0.6 of its step, the largest of which is 121 / 16.
    EXPECT_LT(mean_square(image, back), std::pow(0.6 * 121 / 16 * std::exp2(bits - 8), 2) + 1) << w << "x" << h;
  }
}

TEST(PapersDct, CoarserStepsAndDroppedCoefficientsTakeFewerBytes) {
  ThreadPool pool(1);
  const auto transform = dct::make_own_transform(pool);
  const still::Image image = picture(96, 80, ColourModel::kGrey, 8, 0);
  const std::size_t fine = papers_dct::encode(image, 4, 1, *transform).size();
  EXPECT_LT(papers_dct::encode(image, 28, 1, *transform).size(), fine);
  EXPECT_LT(papers_dct::encode(image, 4, 0.25, *transform).size(), fine);
  EXPECT_TRUE(papers_dct::encode(image, 4, 0, *transform).empty());
}

TEST(PapersDct, RunsLongerThanAByteAndDamage) {
  ThreadPool pool(1);
  const auto transform = dct::make_own_transform(pool);
  still::Image image = picture(32, 32, ColourModel::kGrey, 8, 0);
  const auto bytes = [](std::initializer_list<int> values) {
    std::vector<std::byte> out;
    for (const int v : values) out.push_back(static_cast<std::byte>(v));
    return out;
  };
  // 255 + 255 + 3 zeros, then a level of -1, twice.
  const std::vector<std::byte> runs = bytes({255, 255, 3, 1, 255, 254, 1});
  EXPECT_NO_THROW(papers_dct::decode(runs, 4, *transform, image));
  EXPECT_EQ(papers_dct::encode(image, 4, 1, *transform).empty(), false);
  EXPECT_THROW(papers_dct::decode(bytes({255, 255, 255, 255, 4, 1}), 4, *transform, image), Error);
  EXPECT_THROW(papers_dct::decode(bytes({1}), 4, *transform, image), Error);
  EXPECT_THROW(papers_dct::decode(bytes({0, 128, 128, 128, 128, 128, 0}), 4, *transform, image), Error);
}

}  // namespace
