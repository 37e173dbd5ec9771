// Codec dct: the transforms against their definition, round trips, the error of dropped and quantised coefficients,
// damage.
#include <gtest/gtest.h>

#include <cmath>

#include "codec/base/hash.h"
#include "codec/still/dct/dct.h"
#include "codec/still/dct/dct_scan.h"
#include "tests/support/still_support.h"

using namespace trivelet;
using still::Image;
using test::picture;

namespace {

std::vector<double> noise(int width, int height) {
  std::vector<double> v(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
  std::uint32_t state = 5;
  for (double& x : v) {
    state = state * 1664525U + 1013904223U;
    x = static_cast<double>(state >> 16) / 256 - 128;
  }
  return v;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

double mean_square(const Image& a, const Image& b) {
  double sum = 0, count = 0;
  for (int c = 0; c < a.components(); ++c)
    for (int y = 0; y < a.format.component_height(a.height, c); ++y)
      for (int x = 0; x < a.format.component_width(a.width, c); ++x, ++count)
        sum += std::pow(a.sample(c, x, y) - b.sample(c, x, y), 2);
  return sum / count;
}

TEST(DctScan, GoesThroughAllDiagonalsThereAndBack) {
  for (const auto& [w, h] : {std::pair{1, 1}, {5, 1}, {1, 4}, {4, 4}, {7, 3}, {3, 8}, {6, 5}}) {
    std::uint64_t place = 0;
    for (int d = 0; d < w + h - 1; ++d)
      for (int i = 0; i <= d; ++i) {
        const int x = d % 2 == 0 ? i : d - i, y = d - x;
        if (x >= w || y >= h) continue;
        EXPECT_EQ(dct::scan_place(x, y, w, h), place) << x << "," << y << " of " << w << "x" << h;
        ++place;
      }
    EXPECT_EQ(place, static_cast<std::uint64_t>(w * h));
  }
}

TEST(DctTransform, FastOnesEqualTheDefinition) {
  ThreadPool pool(2);
  const auto direct = dct::make_direct_transform();
  std::vector<std::unique_ptr<dct::Transform>> fast;
  fast.push_back(dct::make_own_transform(pool));
  fast.push_back(dct::make_fast_transform(pool));
  for (const auto& [w, h] :
       {std::pair{1, 1}, {1, 7}, {2, 2}, {3, 5}, {8, 64}, {17, 16}, {100, 33}, {64, 127}, {97, 3}}) {
    const std::vector<double> in = noise(w, h);
    std::vector<double> reference = in;
    direct->forward(reference.data(), w, h);
    double energy_in = 0, energy_out = 0;
    for (const double v : in) energy_in += v * v;
    for (const double v : reference) energy_out += v * v;
    EXPECT_NEAR(energy_out / energy_in, 1, 1e-12);  // orthonormal
    for (const auto& t : fast) {
      std::vector<double> out = in;
      t->forward(out.data(), w, h);
      EXPECT_LT(largest_difference(out, reference), 1e-9) << t->name() << " " << w << "x" << h;
      t->inverse(out.data(), w, h);
      EXPECT_LT(largest_difference(out, in), 1e-9) << t->name() << " " << w << "x" << h;
    }
    direct->inverse(reference.data(), w, h);
    EXPECT_LT(largest_difference(reference, in), 1e-9);
  }
}

TEST(DctTransform, ThreadsChangeNothing) {
  const std::vector<double> in = noise(123, 77);
  std::vector<double> one = in, four = in;
  ThreadPool a(1), b(4);
  dct::make_fast_transform(a)->forward(one.data(), 123, 77);
  dct::make_fast_transform(b)->forward(four.data(), 123, 77);
  EXPECT_EQ(one, four);
}

TEST(Dct, EverySizeAndFormatComesBack) {
  ThreadPool pool(1);
  const auto transform = dct::make_fast_transform(pool), other = dct::make_own_transform(pool);
  for (const auto& [w, h] : {std::pair{1, 1}, {5, 3}, {64, 64}, {61, 90}})
    for (const auto& [model, bits, sub] : {std::tuple{ColourModel::kGrey, 8, 0},
                                           {ColourModel::kGrey, 16, 0},
                                           {ColourModel::kYuv, 8, 1},
                                           {ColourModel::kYuv, 10, 0},
                                           {ColourModel::kRgb, 8, 0}}) {
      const Image image = picture(w, h, model, bits, sub);
      double before = 0;
      std::size_t size_before = std::size_t{1} << 40;
      for (const int qp : {4, 16, 34}) {
        const std::vector<std::byte> bytes = dct::encode(image, {.qp = qp}, *transform);
        const Image back = dct::decode(bytes, {}, *transform);
        ASSERT_EQ(back.format, image.format);
        const double step = std::exp2((qp - 4) / 6.0 + bits - 8), error = mean_square(image, back);
        EXPECT_LT(error, step * step / 4 + 0.5) << w << "x" << h << " " << bits << " QP " << qp;
        EXPECT_GE(error, before);
        EXPECT_LE(bytes.size(), size_before);
        before = error;
        size_before = bytes.size();
        // Another FFT: the same but for roundings of halves.
        const Image again = dct::decode(bytes, {}, *other);
        for (int y = 0; y < h; ++y)
          for (int x = 0; x < w; ++x) ASSERT_LE(std::abs(again.sample(0, x, y) - back.sample(0, x, y)), 1);
      }
    }
}

TEST(Dct, KeepingLessCostsQualityAndSavesBytes) {
  ThreadPool pool(1);
  const auto transform = dct::make_fast_transform(pool);
  const Image image = picture(96, 80, ColourModel::kGrey, 8, 0);
  std::size_t size = 0;
  double error = 1e9;
  for (const double keep : {0.0, 0.05, 0.5, 1.0}) {
    const std::vector<std::byte> bytes = dct::encode(image, {.qp = 10, .keep = keep}, *transform);
    const double e = mean_square(image, dct::decode(bytes, {}, *transform));
    EXPECT_LE(e, error) << keep;
    EXPECT_GE(bytes.size(), size) << keep;
    error = e;
    size = bytes.size();
  }
  // Nothing kept: the mean of the sample range everywhere.
  const Image grey = dct::decode(dct::encode(image, {.qp = 10, .keep = 0}, *transform), {}, *transform);
  EXPECT_EQ(grey.sample(0, 40, 40), 128);
}

TEST(Dct, DamageIsNoticedOrHarmless) {
  ThreadPool pool(1);
  const auto transform = dct::make_fast_transform(pool);
  const std::vector<std::byte> bytes = dct::encode(picture(40, 30, ColourModel::kYuv, 8, 1), {.qp = 24}, *transform);
  const auto outcome = [&](const std::vector<std::byte>& b) {
    try {
      dct::decode(b, {}, *transform);
    } catch (const Error& e) {
      return static_cast<int>(e.kind());
    }
    return -1;
  };
  const int bad = static_cast<int>(ErrorKind::kBadStream), unsupported = static_cast<int>(ErrorKind::kUnsupported);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::vector<std::byte> b = bytes;
    b[i] ^= std::byte{4};
    const int plain = outcome(b);
    EXPECT_TRUE(plain == bad || plain == unsupported) << i;
    const std::uint32_t crc = crc32c(b.data(), b.size() - 4);
    for (std::size_t k = 0; k < 4; ++k) b[b.size() - 4 + k] = static_cast<std::byte>(crc >> 8 * k);
    const int sealed = outcome(b);
    EXPECT_TRUE(sealed == -1 || sealed == bad || sealed == unsupported) << i;
  }
}

}  // namespace
