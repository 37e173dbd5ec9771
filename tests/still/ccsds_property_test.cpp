// CCSDS 122.0: properties over random pictures and all options. Lossless streams decode exactly, limits hold, and the
// bytes and pictures do not depend on instruction set, threads or a side index.
#include <gtest/gtest.h>

#include <chrono>

#include "codec/still/ccsds122/ccsds122.h"
#include "tests/support/ccsds_support.h"
#include "tests/support/one_of.h"

using namespace trivelet;
using namespace ccsds_test;
using ccsds122::Dwt;

namespace {

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> out;
  for (const SimdLevel l : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) out.push_back(l);
  return out;
}

TEST(Ccsds122Properties, RandomPicturesAndOptions) {
  std::mt19937 rng(20170901);
  ThreadPool one(1), three(3);
  int lossless = 0, skipped = 0;
  const int few = trivelet::test::kSanitized && !trivelet::test::full() ? 1000 : 4000;
  const int cases = std::getenv("CCSDS_CASES") ? std::atoi(std::getenv("CCSDS_CASES")) : few;
  const std::vector<SimdLevel> all = levels();
  for (int i = 0; i < cases; ++i) {
    Case c = make_case(rng);
    SCOPED_TRACE("case " + std::to_string(i) + ": " + describe(c));
    const VolumeView view = c.picture.view();
    ccsds122::Params p = c.params;
    p.simd = all[static_cast<std::size_t>(i) % all.size()];
    ccsds122::Encoded e;
    try {
      e = ccsds122::encode(view, p, one);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kBadArgument);
      ASSERT_TRUE(p.total_bytes != 0) << error.what();  // only a budget may turn out too small
      ++skipped;
      continue;
    }
    if (i % 4 == 0) {
      for (const SimdLevel l : all) {
        p.simd = l;
        ASSERT_TRUE(ccsds122::encode(view, p, three).bytes == e.bytes) << to_string(l);
      }
    }
    std::uint64_t sum = 0;
    for (const std::uint32_t n : e.segment_bytes) {
      sum += n;
      ASSERT_EQ(n % static_cast<std::uint32_t>(p.word_bytes), 0U);
    }
    ASSERT_EQ(sum, e.bytes.size());
    if (p.total_bytes) {
      ASSERT_LE(e.bytes.size(), p.total_bytes);
    }

    ccsds122::DecodeParams d;
    d.simd = all[static_cast<std::size_t>(i + 1) % all.size()];
    d.keep_damaged = false;
    const ccsds122::Decoded out = ccsds122::decode(e.bytes, d, one);
    ASSERT_TRUE(out.intact());
    ASSERT_EQ(out.segments.size(), e.segment_bytes.size());
    for (std::size_t s = 0; s < out.segments.size(); ++s) {
      const auto& r = out.segments[s];
      ASSERT_EQ(r.bytes, e.segment_bytes[s]);
      if (r.header.byte_limit) {
        ASSERT_LE(r.bytes, r.header.byte_limit);
      }
      if (p.use_fill) {
        ASSERT_EQ(r.bytes, r.header.byte_limit);
      }
    }
    ASSERT_EQ(out.width, c.picture.width);
    ASSERT_EQ(out.height, c.picture.height);
    ASSERT_EQ(out.bits, p.bits);
    ASSERT_EQ(out.is_signed, p.is_signed);
    if (c.lossless) {
      ASSERT_TRUE(of(out).samples == c.picture.samples);
      ++lossless;
    }
    if (i % 4 == 1) {
      d.segment_bytes = e.segment_bytes;
      for (const SimdLevel l : all) {
        d.simd = l;
        ASSERT_TRUE(ccsds122::decode(e.bytes, d, three).samples == out.samples) << to_string(l);
      }
    }
  }
  EXPECT_GT(lossless, cases / 5);
  EXPECT_LT(skipped, cases / 20);
}

// Quality grows with the rate, and sharing bytes by need beats equal shares on uneven pictures.
TEST(Ccsds122Properties, RateControl) {
  std::mt19937 rng(3);
  Picture p = random_picture(rng, 256, 256, 8, false, Content::kSmooth);
  for (int y = 0; y < 64; ++y)  // a busy quarter
    for (int x = 0; x < 256; ++x) p.samples[static_cast<std::size_t>(y * 256 + x)] = static_cast<int>(rng() & 255);
  ThreadPool pool(2);
  ccsds122::Params params;
  params.dwt = Dwt::kFloat;
  params.segment_blocks = 64;
  double before = 0;
  for (const double bpp : {0.5, 1.0, 2.0, 4.0}) {
    params.segment_bytes = 0;
    params.total_bytes = static_cast<std::uint64_t>(bpp * 256 * 256 / 8);
    const auto shared = ccsds122::encode(p.view(), params, pool);
    EXPECT_LE(shared.bytes.size(), params.total_bytes);
    EXPECT_GE(shared.bytes.size() + 2, params.total_bytes);
    params.total_bytes = 0;
    params.segment_bytes = static_cast<std::uint32_t>(bpp * 64 * 64 / 8);
    const auto equal = ccsds122::encode(p.view(), params, pool);
    const double a = psnr(p, of(ccsds122::decode(shared.bytes, {}, pool)));
    const double b = psnr(p, of(ccsds122::decode(equal.bytes, {}, pool)));
    EXPECT_GT(a, b) << bpp;
    EXPECT_GT(a, before) << bpp;
    before = a;
  }
}

// All-zero 64x64: the whole stream, worked out by hand.
TEST(Ccsds122Properties, ZeroPicture) {
  Picture p{64, 64, 8, false, std::vector<std::int32_t>(64 * 64, 0), {}};
  ccsds122::Params params;
  params.segment_blocks = 16;
  ThreadPool pool(1);
  const int expected[] = {0x80, 2, 7, 0,    0, 0, 0, 0x60, 0,    1, 0x0c, 0x88, 0,    4,    0, 0, 0, 0, 0,
                          0,    0, 0, 0x42, 0, 0, 0, 0,    0x82, 0, 0,    0,    0x40, 0xc2, 0, 0, 0, 0};
  const auto e = ccsds122::encode(p.view(), params, pool);
  ASSERT_EQ(e.bytes.size(), std::size(expected));
  for (std::size_t i = 0; i < e.bytes.size(); ++i) EXPECT_EQ(std::to_integer<int>(e.bytes[i]), expected[i]) << i;
}

TEST(Ccsds122Properties, HeadersKeepEveryField) {
  std::mt19937 rng(11);
  for (int i = 0; i < 2000; ++i) {
    ccsds122::SegmentHeader h;
    h.start = rng() & 1;
    h.end = rng() & 1;
    h.count = static_cast<std::uint8_t>(rng());
    h.dc_depth = static_cast<int>(rng() % 32) + 1;
    h.ac_depth = static_cast<int>(rng() % 32);
    h.part2 = h.part3 = h.part4 = true;
    h.pad_rows = h.end ? static_cast<int>(rng() % 8) : 0;
    h.byte_limit = rng() % ccsds122::kMaxSegmentBytes;
    h.dc_stop = rng() & 1;
    h.bit_plane_stop = static_cast<int>(rng() % 32);
    h.stage_stop = static_cast<int>(rng() % 4);
    h.use_fill = rng() & 1;
    h.blocks = rng() % ccsds122::kMaxSegmentBlocks + 1;
    h.optimal_dc = rng() & 1;
    h.optimal_ac = rng() & 1;
    h.dwt = rng() & 1 ? Dwt::kInteger : Dwt::kFloat;
    h.is_signed = rng() & 1;
    h.bits = static_cast<int>(rng() % 25) + 1;
    h.width = static_cast<int>(rng() % (1 << 20)) + 1;
    if (h.width < 17) h.width = 1 << 20;
    h.transpose = rng() & 1;
    h.word_bytes = static_cast<int>(rng() % 8) + 1;
    h.custom_weights = true;
    for (auto& w : h.weights) w = static_cast<std::uint8_t>(rng() % 4);
    const auto bytes = ccsds122::write_header(h);
    ASSERT_EQ(static_cast<int>(bytes.size()), h.bytes());
    const auto back = ccsds122::read_header(bytes, {});
    ASSERT_TRUE(ccsds122::write_header(back) == bytes);
    EXPECT_EQ(back.bits, h.bits);
    EXPECT_EQ(back.width, h.width);
    EXPECT_EQ(back.blocks, h.blocks);
    EXPECT_EQ(back.word_bytes, h.word_bytes);
    EXPECT_EQ(back.dc_depth, h.dc_depth);
  }
}

TEST(Ccsds122Properties, RefusesWhatTheStandardDoesNotAllow) {
  std::mt19937 rng(5);
  ThreadPool pool(1);
  Picture good = random_picture(rng, 40, 40, 8, false, Content::kNoise);
  const auto refuses = [&](Picture& picture, auto change) {
    ccsds122::Params p;
    change(p);
    EXPECT_THROW(ccsds122::encode(picture.view(), p, pool), Error);
  };
  refuses(good, [](auto& p) { p.segment_blocks = 15; });
  refuses(good, [](auto& p) { p.word_bytes = 9; });
  refuses(good, [](auto& p) { p.bits = 26; });
  refuses(good, [](auto& p) { p.bits = 7; });  // samples beyond 7 bits
  refuses(good, [](auto& p) { p.bit_plane_stop = 32; });
  refuses(good, [](auto& p) { p.use_fill = true; });
  refuses(good, [](auto& p) { p.total_bytes = 10; });
  refuses(good, [](auto& p) { p.weights[3] = 4; });
  Picture small = random_picture(rng, 16, 40, 8, false, Content::kNoise);
  refuses(small, [](auto&) {});
}

}  // namespace
