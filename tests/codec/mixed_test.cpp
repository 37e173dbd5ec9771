// Codewords with mixed contexts: exact round trips, what they save, damaged codewords; streams with such blocks.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <tuple>
#include <vector>

#include "codec/entropy/mixed/mixed_block.h"
#include "codec/entropy/mixed/mixing.h"
#include "tests/support/predictive_support.h"

namespace trivelet {
namespace {

using test::block_of;
using test::block_video;

std::vector<std::uint8_t> encode_mixed(const Gop& gop, const VideoInfo& info) {
  std::vector<std::uint8_t> out;
  mixed::MixedEncoder().encode(block_of(gop, info), out);
  return out;
}

Gop decode_mixed(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames) {
  return test::decoded_block(codeword, info, frames,
                             [](const auto& block, const std::uint8_t* bytes, std::size_t size) {
                               mixed::MixedDecoder().decode(block, bytes, size);
                             });
}

/// Waves with noise, which only adaptive contexts follow: it grows with the value.
Gop noisy(const VideoInfo& info, int frames) {
  std::mt19937 random(7);
  Gop gop(info, frames);
  gop.set_frames(frames);
  const auto plane = gop.plane(0);
  const double top = (1 << info.format.bits) - 1;
  for (int z = 0; z < frames; ++z)
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x) {
        const double mean = 0.25 + 0.15 * std::sin(0.2 * x + 0.1 * z) + 0.1 * std::cos(0.3 * y);
        const double noise = 0.05 * mean * (static_cast<double>(random() % 2048) / 1024 - 1);
        const auto value = static_cast<int>(top * (mean + noise));
        std::byte* row = plane.row(z, y);
        if (plane.bytes_per_sample == 1)
          row[x] = static_cast<std::byte>(value);
        else
          reinterpret_cast<std::uint16_t*>(row)[x] = static_cast<std::uint16_t>(value);
      }
  return gop;
}

TEST(Mixed, SquashAndStretchAreInverse) {
  const auto& stretch = mixed::stretch_table();
  for (int p = 1; p < 4095; ++p) {
    const int x = stretch[static_cast<std::size_t>(p)];
    EXPECT_GE(mixed::squash(x), p);
    if (x > -mixed::kLargestStretch) {
      EXPECT_LT(mixed::squash(x - 1), p);
    }
  }
  EXPECT_EQ(stretch[4095], mixed::kLargestStretch);
}

TEST(Mixed, BlocksComeBack) {
  for (const int bits : {1, 2, 8, 12, 16})
    for (const auto& [height, width, frames] : {std::tuple{1, 1, 1}, {1, 7, 2}, {9, 1, 3}, {33, 20, 1}, {24, 31, 5}}) {
      const VideoInfo info = block_video(width, height, bits);
      const Gop gop = noisy(info, frames);
      const std::vector<std::uint8_t> codeword = encode_mixed(gop, info);
      if (codeword.empty()) continue;  // all numbers are 0
      EXPECT_EQ(test::compare(decode_mixed(codeword, info, frames), gop).largest, 0)
          << width << "x" << height << "x" << frames << " of " << bits << " bits";
    }
}

TEST(Mixed, NumbersAtTheirLimitsComeBack) {
  for (const int bits : {8, 16}) {
    const VideoInfo info = block_video(24, 20, bits);
    Gop gop(info, 3);
    for (const test::Pattern pattern : {test::Pattern::kNoise, test::Pattern::kExtremes}) {
      test::fill(gop, 3, info.format, pattern, 5);
      EXPECT_EQ(test::compare(decode_mixed(encode_mixed(gop, info), info, 3), gop).largest, 0);
    }
  }
}

TEST(Mixed, SmallBlocksTakeLessThanWithFrequencies) {
  const VideoInfo info = block_video(24, 20, 12);
  const Gop gop = noisy(info, 5);
  EXPECT_LT(10 * encode_mixed(gop, info).size(), 9 * test::encode_block(gop, info, {}).size());
}

TEST(Mixed, NothingIsWrittenAboveALimit) {
  const VideoInfo info = block_video(24, 31, 12);
  const Gop gop = noisy(info, 3);
  const std::vector<std::uint8_t> whole = encode_mixed(gop, info);
  std::vector<std::uint8_t> out;
  mixed::MixedEncoder().encode(block_of(gop, info), out, whole.size());
  EXPECT_EQ(out, whole);
  for (const std::size_t most : {whole.size() - 1, whole.size() / 2, std::size_t{0}}) {
    out.clear();
    mixed::MixedEncoder().encode(block_of(gop, info), out, most);
    EXPECT_TRUE(out.empty()) << most;
  }
}

TEST(Mixed, WhiteNoiseTakesItsBitsAlone) {
  for (const int bits : {8, 16}) {
    const VideoInfo info = block_video(128, 128, bits);
    Gop gop(info, 2);
    test::fill(gop, 2, info.format, test::Pattern::kNoise, 5);
    const auto raw = static_cast<std::size_t>(2 * 128 * 128 * bits / 8);
    EXPECT_LT(encode_mixed(gop, info).size(), raw + raw / 100);
  }
}

TEST(Mixed, DamageIsFoundOrGivesSamples) {
  const VideoInfo info = block_video(20, 24, 8);
  const std::vector<std::uint8_t> whole = encode_mixed(noisy(info, 5), info);
  for (std::size_t size = 1; size + 8 < whole.size(); size += 1 + size / 7) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THROW((void)decode_mixed(cut, info, 5), Error) << size;
  }
  std::vector<std::uint8_t> longer = whole;
  longer.resize(longer.size() + 16);
  EXPECT_THROW((void)decode_mixed(longer, info, 5), Error);
  int refused = 0;
  std::mt19937 random(9);
  for (int i = 0; i < 200; ++i) {
    std::vector<std::uint8_t> changed = whole;
    changed[random() % changed.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    try {
      (void)decode_mixed(changed, info, 5);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream);
      ++refused;
    }
  }
  EXPECT_GT(refused, 20);
}

}  // namespace
}  // namespace trivelet
