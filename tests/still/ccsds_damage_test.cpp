// Damaged CCSDS 122.0 streams: any prefix decodes, no flipped bit crashes, and damage stays in its segment.
#include <gtest/gtest.h>

#include "codec/still/ccsds122/ccsds122.h"
#include "tests/support/ccsds_support.h"
#include "tests/support/one_of.h"

using namespace trivelet;
using namespace ccsds_test;
using ccsds122::Dwt;
using ccsds122::SegmentState;

namespace {

/// Decodes anything; only Errors may come out.
void try_decode(const std::vector<std::byte>& bytes, ThreadPool& pool, std::span<const std::uint32_t> lengths = {}) {
  ccsds122::DecodeParams p;
  p.limits.memory = std::size_t{64} << 20;
  p.limits.samples = 1 << 20;
  p.segment_bytes = lengths;
  try {
    const auto d = ccsds122::decode(bytes, p, pool);
    ASSERT_EQ(d.samples.size(), static_cast<std::size_t>(d.width) * static_cast<std::size_t>(d.height) *
                                    static_cast<std::size_t>(d.bytes_per_sample));
    for (const auto& s : d.segments) ASSERT_TRUE((s.state == SegmentState::kComplete) == s.message.empty());
  } catch (const Error&) {
  }
}

std::vector<ccsds122::Params> kinds() {
  std::vector<ccsds122::Params> out(5);
  out[1].dwt = Dwt::kFloat;
  out[1].segment_bytes = 150;
  out[2].segment_bytes = 200;
  out[2].use_fill = true;
  out[3].optimal_ac = out[3].optimal_dc = false;
  out[3].custom_weights = true;
  out[3].weights = {2, 3, 0, 1, 3, 2, 2, 3, 1, 1};
  out[4].bit_plane_stop = 1;
  out[4].stage_stop = 2;
  out[4].word_bytes = 3;
  for (auto& p : out) p.segment_blocks = 16;
  return out;
}

TEST(Ccsds122Damage, EveryPrefixDecodes) {
  std::mt19937 rng(1);
  ThreadPool pool(1);
  Picture picture = random_picture(rng, 60, 41, 8, false, Content::kSmooth);
  for (const ccsds122::Params& p : kinds()) {
    const auto e = ccsds122::encode(picture.view(), p, pool);
    for (std::size_t n = 0; n <= e.bytes.size(); ++n) {
      const std::vector<std::byte> prefix(e.bytes.begin(), e.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      try_decode(prefix, pool);
      if (n % 5 == 0) try_decode(prefix, pool, e.segment_bytes);
    }
  }
}

TEST(Ccsds122Damage, PrefixesGetBetter) {
  std::mt19937 rng(2);
  ThreadPool pool(1);
  Picture picture = random_picture(rng, 64, 64, 8, false, Content::kSmooth);
  ccsds122::Params p;
  p.segment_blocks = 64;
  const auto e = ccsds122::encode(picture.view(), p, pool);
  double worst_drop = 0, before = 0;
  for (std::size_t n = 80; n <= e.bytes.size(); n += 7) {
    const std::vector<std::byte> prefix(e.bytes.begin(), e.bytes.begin() + static_cast<std::ptrdiff_t>(n));
    const auto d = ccsds122::decode(prefix, {}, pool);
    ASSERT_EQ(d.segments.size(), 1U);
    EXPECT_EQ(d.segments[0].state == SegmentState::kCut, n < e.bytes.size());
    const double now = psnr(picture, of(d));
    worst_drop = std::max(worst_drop, before - now);
    before = now;
  }
  EXPECT_LT(worst_drop, 0.3);
}

TEST(Ccsds122Damage, EveryFlippedBit) {
  std::mt19937 rng(4);
  ThreadPool pool(1);
  Picture picture = random_picture(rng, 50, 35, 8, false, Content::kSmooth);
  for (const ccsds122::Params& p : kinds()) {
    const auto e = ccsds122::encode(picture.view(), p, pool);
    std::vector<std::byte> bytes = e.bytes;
    test::OneOf chosen(test::kSanitized ? 7 : 3);
    for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
      if (!chosen()) continue;
      bytes[i / 8] ^= std::byte{1} << (i % 8);
      try_decode(bytes, pool);
      if (i % 7 == 0) try_decode(bytes, pool, e.segment_bytes);
      bytes[i / 8] ^= std::byte{1} << (i % 8);
    }
  }
}

TEST(Ccsds122Damage, StaysInItsSegment) {
  std::mt19937 rng(6);
  ThreadPool pool(2);
  Picture picture = random_picture(rng, 256, 256, 8, false, Content::kSmooth);
  ccsds122::Params p;
  p.segment_blocks = 64;
  const auto e = ccsds122::encode(picture.view(), p, pool);
  int reported = 0, confined = 0, resumed = 0;
  const int trials = test::full() ? 200 : 60;
  for (int t = 0; t < trials; ++t) {
    std::vector<std::byte> bytes = e.bytes;
    const std::size_t victim = 2 + rng() % (e.segment_bytes.size() - 4);
    std::size_t at = 0;
    for (std::size_t i = 0; i < victim; ++i) at += e.segment_bytes[i];
    // A burst in its middle.
    for (std::size_t i = 0; i < 8; ++i) bytes[at + 20 + i] ^= static_cast<std::byte>(1 + rng() % 255);
    for (const bool with_index : {false, true}) {
      ccsds122::DecodeParams d;
      if (with_index) d.segment_bytes = e.segment_bytes;
      const auto out = ccsds122::decode(bytes, d, pool);
      if (with_index) {
        ASSERT_EQ(out.height, 256);
        reported += out.segments[victim].state != SegmentState::kComplete;
        // Rows far from the segment (8 rows of 256) are untouched.
        const Picture got = of(out);
        bool same = true;
        for (int y = 0; y < 256; ++y)
          if (std::abs(y - static_cast<int>(victim) * 16 - 8) > 48)
            for (int x = 0; x < 256; ++x)
              same = same && got.samples[static_cast<std::size_t>(y * 256 + x)] ==
                                 picture.samples[static_cast<std::size_t>(y * 256 + x)];
        confined += same;
      } else {
        resumed += out.height == 256 && out.segments.size() == e.segment_bytes.size() && out.ended;
      }
    }
  }
  EXPECT_EQ(confined, trials);
  EXPECT_GE(reported, trials * 90 / 100);
  EXPECT_GE(resumed, trials * 95 / 100);
}

TEST(Ccsds122Damage, LostSegmentsAreFilled) {
  std::mt19937 rng(7);
  ThreadPool pool(1);
  Picture picture = random_picture(rng, 128, 128, 8, false, Content::kSmooth);
  ccsds122::Params p;
  p.segment_blocks = 16;
  const auto e = ccsds122::encode(picture.view(), p, pool);
  std::size_t from = 0;
  for (int i = 0; i < 5; ++i) from += e.segment_bytes[static_cast<std::size_t>(i)];
  std::vector<std::byte> bytes = e.bytes;
  bytes.erase(bytes.begin() + static_cast<std::ptrdiff_t>(from),
              bytes.begin() + static_cast<std::ptrdiff_t>(from + e.segment_bytes[5] + e.segment_bytes[6]));
  const auto d = ccsds122::decode(bytes, {}, pool);
  ASSERT_EQ(d.segments.size(), e.segment_bytes.size());
  EXPECT_EQ(d.height, 128);
  EXPECT_EQ(d.segments[5].state, SegmentState::kMissing);
  EXPECT_EQ(d.segments[6].state, SegmentState::kMissing);
  EXPECT_EQ(d.segments[7].state, SegmentState::kComplete);
  EXPECT_FALSE(d.intact());
}

// A header of 20 bytes promises a million blocks.
TEST(Ccsds122Damage, WorkIsBoundedByTheBytesThatAreThere) {
  ThreadPool pool(1);
  Picture picture = [] {
    std::mt19937 rng(8);
    return random_picture(rng, 32, 32, 8, false, Content::kSmooth);
  }();
  std::vector<std::byte> bytes = ccsds122::encode(picture.view(), {}, pool).bytes;
  const auto refused = [&](const ccsds122::DecodeParams& d) {
    try {
      (void)ccsds122::decode(bytes, d, pool);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused({}), "");
  ccsds122::SegmentHeader h = ccsds122::read_header(bytes, {});
  h.blocks = 1 << 20;
  const std::vector<std::byte> header = ccsds122::write_header(h);
  std::copy(header.begin(), header.end(), bytes.begin());
  EXPECT_NE(refused({}).find("Limits::samples_per_byte"), std::string::npos);
  ccsds122::DecodeParams with_index;
  const std::vector<std::uint32_t> lengths = {static_cast<std::uint32_t>(bytes.size())};
  with_index.segment_bytes = lengths;
  EXPECT_NE(refused(with_index).find("Limits::samples_per_byte"), std::string::npos);
}

TEST(Ccsds122Damage, IndexIsChecked) {
  const std::vector<std::uint32_t> lengths = {100, 7, 123456};
  std::vector<std::byte> bytes = ccsds122::write_index(lengths);
  EXPECT_EQ(ccsds122::read_index(bytes), lengths);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{4};
    EXPECT_THROW(ccsds122::read_index(bytes), Error);
    bytes[i] ^= std::byte{4};
  }
  bytes.pop_back();
  EXPECT_THROW(ccsds122::read_index(bytes), Error);
}

}  // namespace
