// Volumes: the map from scalars to samples, and prediction.
#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "codec/volume/volume_map.h"
#include "codec/volume/volume_predict.h"
#include "tests/support/support.h"
#include "tests/support/volume_support.h"

namespace trivelet {
namespace {

using test::Content;
using test::make_scalars;
using test::put_scalar;
using test::VolumeBytes;

/// Through the samples of a picture and back.
VolumeBytes through(const VolumeMap& map, const VolumeBytes& stored, int width, int height) {
  VideoInfo info;
  info.width = width;
  info.height = height;
  info.format = map.pixel_format();
  Gop gop(info, 1);
  gop.set_frames(1);
  const VolumeMapper mapper(map);
  mapper.to_samples(stored.data(), gop, 0);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = std::as_const(gop).plane(c);
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) EXPECT_LT(test::sample(v, 0, y, x), 1 << info.format.bits);
  }
  VolumeBytes back(stored.size());
  mapper.to_stored(gop, 0, back.data());
  return back;
}

TEST(VolumeMap, exact_for_every_type) {
  constexpr int kWidth = 37;
  constexpr int kHeight = 29;
  int palettes = 0;
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const bool big : {false, true})
      for (const int channels : {1, 2, 3, 4})
        for (const Content content :
             {Content::kConstant, Content::kEvery, Content::kMultiples, Content::kSparse, Content::kRandom}) {
          const VoxelFormat f{static_cast<VoxelType>(t), big, channels};
          const VolumeBytes stored = make_scalars(content, f, kWidth * kHeight, 5u + static_cast<std::uint32_t>(t));
          VolumeAnalysis analysis(f);
          analysis.add(stored.data(), kWidth * 10);
          analysis.add(stored.data() + f.bytes() * kWidth * 10, kWidth * (kHeight - 10));
          VolumeAnalysis joined(f);  // seen by several, put together
          for (const auto& [first, rows] : {std::pair{0, 0}, std::pair{9, kHeight - 9}, std::pair{0, 9}}) {
            VolumeAnalysis part(f);
            part.add(stored.data() + f.bytes() * static_cast<std::size_t>(kWidth * first),
                     static_cast<std::size_t>(kWidth * rows));
            joined.add(part);
          }
          EXPECT_EQ(joined.distinct(), analysis.distinct());
          EXPECT_EQ(joined.not_finite(), analysis.not_finite());
          for (const bool palette : {false, true}) {
            if (palette && analysis.distinct() == 0) continue;
            const VolumeMap map = exact_map(analysis, palette);
            EXPECT_EQ(exact_map(joined, palette), map);
            palettes += palette;
            if (map.planes() * channels > 4) {
              EXPECT_THROW((void)map.pixel_format(), Error);
              continue;
            }
            const auto packed = serialise(map);
            EXPECT_EQ(parse_volume_map(packed.data(), packed.size()), map) << to_string(f.type);
            EXPECT_EQ(through(map, stored, kWidth, kHeight), stored)
                << to_string(f.type) << " x" << channels << " big " << big << " content " << static_cast<int>(content)
                << " palette " << palette;
          }
        }
  EXPECT_GT(palettes, 300);
}

TEST(VolumeMap, unused_bits_cost_nothing) {
  const VoxelFormat f{VoxelType::kI16, false, 1};
  // 12 bits in 16, shifted up, with padding far below
  VolumeBytes stored;
  for (int i = 0; i < 4096; ++i) put_scalar(stored, static_cast<std::uint16_t>(i * 16 - 32768), f);
  VolumeAnalysis a(f);
  a.add(stored.data(), 4096);
  EXPECT_EQ(exact_map(a, false).bits(), 12);
  VolumeBytes padded;
  for (int i = 0; i < 100; ++i) put_scalar(padded, static_cast<std::uint16_t>(i == 0 ? -2000 : i + 30), f);
  VolumeAnalysis b(f);
  b.add(padded.data(), 100);
  EXPECT_EQ(exact_map(b, true).bits(), 7);
  EXPECT_EQ(exact_map(b, false).bits(), 12);
}

TEST(VolumeMap, no_value_errs_by_more_than_the_bound) {
  constexpr int kSide = 64;
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const double bound : {0.0, 0.5, 1.0, 2.0, 5.0, 20.0, 300.0})
      for (const Content content : {Content::kEvery, Content::kMultiples, Content::kRandom}) {
        const VoxelFormat f{static_cast<VoxelType>(t), t % 3 == 0, 1};
        if (is_real(f.type) && content == Content::kRandom) continue;  // NaNs, see below
        if (bytes_of(f.type) > 4 && content == Content::kRandom) continue;
        const VolumeBytes stored = make_scalars(content, f, kSide * kSide, 3);
        VolumeAnalysis a(f);
        a.add(stored.data(), kSide * kSide);
        const VolumeMap map = bounded_map(a, bound);
        EXPECT_LE(map.max_error, bound);
        const auto packed = serialise(map);
        EXPECT_EQ(parse_volume_map(packed.data(), packed.size()), map);
        const VolumeBytes back = through(map, stored, kSide, kSide);
        double worst = 0;
        for (std::size_t i = 0; i < stored.size(); i += f.bytes())
          worst = std::max(worst, std::fabs(scalar_value(stored.data() + i, f.type, f.big_endian) -
                                            scalar_value(back.data() + i, f.type, f.big_endian)));
        EXPECT_LE(worst, bound) << to_string(f.type) << " content " << static_cast<int>(content);
        if (bound >= 2 && content == Content::kEvery && !is_real(f.type)) {
          EXPECT_GT(worst, 0);
        }
      }
}

TEST(VolumeMap, a_palette_within_a_bound_keeps_few_of_the_values) {
  for (int t = 0; t < kVoxelTypes; ++t) {
    const VoxelFormat f{static_cast<VoxelType>(t), t % 2 == 1, 1};
    const bool real = is_real(f.type);
    VolumeBytes stored;
    for (int i = 0; i < 64; ++i) {  // groups of four values around multiples of 16
      const int value = 16 * (i / 8 % 4) + i % 4;
      const auto bits = f.type == VoxelType::kF32   ? std::bit_cast<std::uint32_t>(static_cast<float>(value))
                        : f.type == VoxelType::kF64 ? std::bit_cast<std::uint64_t>(static_cast<double>(value))
                                                    : static_cast<std::uint64_t>(value);
      put_scalar(stored, bits, f);
    }
    VolumeAnalysis a(f);
    a.add(stored.data(), 64);
    for (const auto& [bound, values, error] : {std::tuple{0.5, 16u, 0.0}, {1.0, 8u, 1.0}, {2.5, 4u, 2.0}}) {
      const std::optional<VolumeMap> map = bounded_palette(a, bound);
      ASSERT_TRUE(map.has_value());
      EXPECT_EQ(map->last + 1, values) << to_string(f.type) << ", " << bound;
      EXPECT_EQ(map->max_error, error) << to_string(f.type) << ", " << bound;
      const auto packed = serialise(*map);
      EXPECT_EQ(parse_volume_map(packed.data(), packed.size()), *map);
      const VolumeBytes back = through(*map, stored, 8, 8);
      const VolumeError found = compare_scalars(stored.data(), f, back.data(), f, 64);
      EXPECT_EQ(found.max, error) << to_string(f.type) << ", " << bound;
    }
    if (!real) continue;
    put_scalar(stored, f.type == VoxelType::kF32 ? 0x7FC00000u : 0x7FF8000000000000u, f);
    VolumeAnalysis nan(f);
    nan.add(stored.data(), 65);
    EXPECT_FALSE(bounded_palette(nan, 1).has_value());
  }
}

TEST(VolumeMap, refuses_bounds_that_mean_nothing) {
  const VoxelFormat f{VoxelType::kF32, false, 1};
  VolumeBytes nan;
  put_scalar(nan, 0x7FC00000, f);
  put_scalar(nan, 0x3F800000, f);
  VolumeAnalysis a(f);
  a.add(nan.data(), 2);
  EXPECT_EQ(a.not_finite(), 1u);
  EXPECT_THROW(bounded_map(a, 1), Error);
  EXPECT_EQ(through(exact_map(a, true), nan, 2, 1), nan);
  VolumeBytes large;
  put_scalar(large, 0x4B800000, f);  // 2^24: neighbours are 2 apart
  put_scalar(large, 0, f);
  VolumeAnalysis b(f);
  b.add(large.data(), 2);
  EXPECT_THROW(bounded_map(b, 1), Error);
  EXPECT_NO_THROW(bounded_map(b, 10));
}

TEST(VolumePrediction, differences_are_signed_and_reversible) {
  for (const int bits : {1, 2, 7, 8, 9, 12, 16})
    for (const auto& [width, height] : {std::pair{1, 1}, std::pair{1, 9}, std::pair{13, 1}, std::pair{17, 11}})
      for (const test::Pattern pattern : {test::Pattern::kSmooth, test::Pattern::kNoise, test::Pattern::kExtremes})
        for (const auto prediction : {VolumeMap::Prediction::kInSlice, VolumeMap::Prediction::kAcross})
          for (const bool planes : {false, true}) {
            VideoInfo info = test::video(width, height, planes ? "ya8" : "gray");
            info.format.bits = bits;
            Gop gop(info, 4);
            test::fill(gop, 4, info.format, pattern, 7);
            const Gop wanted = gop;
            predict(prediction, bits, gop);
            for (int c = 0; c < gop.components(); ++c) {
              VolumeView v = std::as_const(gop).plane(c);
              v.is_signed = true;
              for (int f = 0; f < 4; ++f)
                for (int y = 0; y < height; ++y)
                  for (int x = 0; x < width; ++x) {
                    const int d = test::sample(v, f, y, x);
                    ASSERT_GE(d, -(1 << (bits - 1)));
                    ASSERT_LT(d, 1 << (bits - 1));
                  }
            }
            if (pattern == test::Pattern::kSmooth && bits >= 8 && width > 2) {
              EXPECT_NE(test::compare(gop, wanted).largest, 0);
            }
            unpredict(prediction, bits, gop);
            EXPECT_EQ(test::compare(gop, wanted).largest, 0) << bits << " bits, " << width << "x" << height;
          }
}

TEST(VolumePrediction, the_definition) {
  // a row above 10 20 5, left 12: c = 10, b = 20, a = 12 -> a + b - c = 22 > max is c <= min -> 20
  VideoInfo info = test::video(3, 2, "gray");
  Gop gop(info, 2);
  gop.set_frames(2);
  const std::uint8_t slices[2][6] = {{10, 20, 5, 12, 19, 100}, {11, 21, 6, 13, 20, 1}};
  for (int f = 0; f < 2; ++f) std::memcpy(gop.plane(0).row(f, 0), slices[f], 6);
  predict(VolumeMap::Prediction::kAcross, 8, gop);
  const std::int8_t first[6] = {10, 10, -15, 2, -1, 95};  // 0, a, a; b, 20, P(19, 5, 20) = 5
  const std::int8_t second[6] = {1, 0, 0, 0, 0, -100};    // one more everywhere, then 100 + 1 - 100 off
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(static_cast<std::int8_t>(gop.plane(0).row(0, 0)[i]), first[i]) << i;
    EXPECT_EQ(static_cast<std::int8_t>(gop.plane(0).row(1, 0)[i]), second[i]) << i;
  }
}

TEST(VolumeMap, damaged_maps_are_refused) {
  const VoxelFormat f{VoxelType::kU16, false, 1};
  const VolumeBytes stored = make_scalars(Content::kSparse, f, 100, 1);
  VolumeAnalysis a(f);
  a.add(stored.data(), 100);
  for (const bool palette : {false, true}) {
    const auto good = serialise(exact_map(a, palette));
    for (std::size_t n = 0; n < good.size(); ++n) EXPECT_THROW(parse_volume_map(good.data(), n), Error);
    auto longer = good;
    longer.push_back(0);  // room for later versions
    EXPECT_EQ(serialise(parse_volume_map(longer.data(), longer.size())), good);
  }
}

}  // namespace
}  // namespace trivelet
