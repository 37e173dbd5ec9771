// Blocks of labels: exact round trips, what they cost in regions, damaged codewords; streams with such blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>

#include "codec/entropy/labels/label_block.h"
#include "tests/support/predictive_support.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

using test::block_of;
using test::block_video;

std::vector<std::uint8_t> encode_labels(const Gop& gop, const VideoInfo& info, SimdLevel simd = SimdLevel::kBest) {
  std::vector<std::uint8_t> out;
  labels::LabelEncoder(simd).encode(block_of(gop, info), out);
  return out;
}

Gop decode_labels(const std::vector<std::uint8_t>& codeword, const VideoInfo& info, int frames,
                  SimdLevel simd = SimdLevel::kBest) {
  return test::decoded_block(codeword, info, frames,
                             [simd](const auto& block, const std::uint8_t* bytes, std::size_t size) {
                               labels::LabelDecoder(simd).decode(block, bytes, size);
                             });
}

void set(const MutableVolumeView& plane, int frame, int y, int x, int value) {
  std::byte* row = plane.row(frame, y);
  if (plane.bytes_per_sample == 1)
    row[x] = static_cast<std::byte>(value);
  else
    reinterpret_cast<std::uint16_t*>(row)[x] = static_cast<std::uint16_t>(value);
}

/// Regions around points that move from frame to frame, of values of all bits.
Gop regions(const VideoInfo& info, int frames, int count, std::uint32_t seed) {
  std::mt19937 random(seed);
  struct Point {
    int y, x, dy, dx, value;
  };
  std::vector<Point> points;
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint32_t>(n)); };
  for (int i = 0; i < count; ++i)
    points.push_back({below(info.height), below(info.width), below(3) - 1, below(3) - 1, below(1 << info.format.bits)});
  Gop gop(info, frames);
  gop.set_frames(frames);
  const auto plane = gop.plane(0);
  for (int z = 0; z < frames; ++z)
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x) {
        const auto distance = [&](const Point& p) {
          const int dy = y - p.y - z * p.dy, dx = x - p.x - z * p.dx;
          return dy * dy + dx * dx;
        };
        const auto nearest = std::min_element(
            points.begin(), points.end(), [&](const Point& a, const Point& b) { return distance(a) < distance(b); });
        set(plane, z, y, x, nearest->value);
      }
  return gop;
}

TEST(Labels, BlocksComeBack) {
  const std::tuple<int, int, int> shapes[] = {{1, 1, 1}, {1, 5, 3}, {2, 1, 40}, {3, 9, 17}, {5, 33, 65}, {9, 70, 50}};
  std::uint32_t seed = 1;
  for (const auto& [frames, height, width] : shapes)
    for (const int bits : {1, 2, 8, 9, 16}) {
      const VideoInfo info = block_video(width, height, bits);
      const Gop label_gop = regions(info, frames, 7, ++seed);
      EXPECT_EQ(test::compare(decode_labels(encode_labels(label_gop, info), info, frames), label_gop).largest, 0)
          << frames << "x" << height << "x" << width << ", " << bits << " bits";
      for (const test::Pattern pattern : {test::Pattern::kNoise, test::Pattern::kZero, test::Pattern::kExtremes}) {
        Gop gop(info, frames);
        test::fill(gop, frames, info.format, pattern, ++seed);
        EXPECT_EQ(test::compare(decode_labels(encode_labels(gop, info), info, frames), gop).largest, 0)
            << frames << "x" << height << "x" << width << ", " << bits << " bits";
      }
    }
}

/// Samples of so few values that most neighbours have several in common, and candidates are worth the same.
Gop few_values(const VideoInfo& info, int frames, int values, std::uint32_t seed) {
  std::mt19937 random(seed);
  Gop gop(info, frames);
  gop.set_frames(frames);
  for (int z = 0; z < frames; ++z)
    for (int y = 0; y < info.height; ++y)
      for (int x = 0; x < info.width; ++x)
        set(gop.plane(0), z, y, x, static_cast<int>(random() % static_cast<std::uint32_t>(values)));
  return gop;
}

TEST(Labels, InstructionSetsAgree) {
  std::uint32_t seed = 60;
  for (const auto& [frames, height, width] : {std::tuple{1, 6, 3}, {2, 9, 17}, {4, 20, 31}, {3, 12, 70}})
    for (const int bits : {3, 8, 16}) {
      const VideoInfo info = block_video(width, height, bits);
      for (const Gop& gop : {regions(info, frames, 9, ++seed), few_values(info, frames, 2, seed),
                             few_values(info, frames, 5, seed), few_values(info, frames, 1 << bits, seed)}) {
        const std::vector<std::uint8_t> codeword = encode_labels(gop, info, SimdLevel::kScalar);
        for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
          if (simd > detected_simd()) continue;
          EXPECT_EQ(encode_labels(gop, info, simd), codeword) << static_cast<int>(simd);
          EXPECT_EQ(test::compare(decode_labels(codeword, info, frames, simd), gop).largest, 0)
              << static_cast<int>(simd);
        }
      }
    }
}

TEST(Labels, EncoderFindsWrongBitsInItsCodeword) {
  const VideoInfo info = block_video(37, 30, 8);
  const Gop gop = regions(info, 4, 25, 9);
  labels::LabelEncoder coder;
  std::vector<std::uint8_t> codeword;
  coder.encode(block_of(gop, info), codeword);
  const std::vector<std::uint8_t> right = codeword;
  EXPECT_TRUE(coder.says_what_was_coded(codeword.data(), codeword.size()));
  // The last bits may be others of the last interval, which mean the same decisions.
  constexpr std::size_t kLast = 4;
  ASSERT_GT(codeword.size(), 10 * kLast);
  test::OneOf some(7);
  for (std::size_t bit = 0; bit < 8 * (codeword.size() - kLast); ++bit) {
    if (!some()) continue;
    codeword[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
    EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), codeword.size())) << "bit " << bit;
    codeword[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
  }
  for (std::size_t size = 0; size + kLast < codeword.size(); size += test::full() ? 1 : 5)
    EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), size)) << size << " bytes";
  codeword.resize(codeword.size() + 12, 0);
  EXPECT_FALSE(coder.says_what_was_coded(codeword.data(), codeword.size()));
  codeword.clear();
  const Gop other = regions(info, 4, 25, 10);
  coder.encode(block_of(other, info), codeword);
  EXPECT_FALSE(coder.says_what_was_coded(right.data(), right.size()));
}

TEST(Labels, BytesOfTheFirstFrames) {
  const VideoInfo info = block_video(60, 50, 8);
  const Gop gop = regions(info, 6, 20, 4);
  labels::LabelEncoder coder;
  std::vector<std::uint8_t> codeword;
  coder.encode(block_of(gop, info), codeword);
  EXPECT_GT(coder.bytes_until(1), 0u);
  for (int frames = 2; frames <= 6; ++frames) EXPECT_GE(coder.bytes_until(frames), coder.bytes_until(frames - 1));
  EXPECT_LE(coder.bytes_until(6), codeword.size());
}

TEST(Labels, RegionsTakeAFractionOfAPrediction) {
  const VideoInfo info = block_video(128, 96, 8);
  const Gop gop = regions(info, 12, 40, 3);
  EXPECT_LT(4 * encode_labels(gop, info).size(), test::encode_block(gop, info, {}).size());
}

TEST(Labels, SomethingConstantTakesNoBytesToSpeakOf) {
  const VideoInfo info = block_video(256, 256, 8);
  Gop gop(info, 64);
  gop.set_frames(64);
  for (int z = 0; z < 64; ++z)
    for (int y = 0; y < 256; ++y)
      for (int x = 0; x < 256; ++x) set(gop.plane(0), z, y, x, 77);
  EXPECT_LT(encode_labels(gop, info).size(), 64u);
}

TEST(Labels, DamageIsFoundOrGivesSamples) {
  const VideoInfo info = block_video(60, 50, 8);
  const std::vector<std::uint8_t> whole = encode_labels(regions(info, 5, 20, 4), info);
  ASSERT_GT(whole.size(), 100u);
  for (std::size_t size = 1; size + 8 < whole.size(); size += 7) {
    const std::vector<std::uint8_t> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    try {
      (void)decode_labels(cut, info, 5);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
    }
  }
  std::vector<std::uint8_t> longer = whole;
  longer.resize(whole.size() + 20, 0x55);
  EXPECT_THROW((void)decode_labels(longer, info, 5), Error);
  std::mt19937 random(5);
  for (int i = 0; i < 300; ++i) {
    std::vector<std::uint8_t> changed = whole;
    changed[random() % changed.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    try {
      (void)decode_labels(changed, info, 5);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
    }
  }
}

}  // namespace
}  // namespace trivelet
