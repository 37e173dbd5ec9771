// Streams rewritten without coding: truncated and extracted streams are valid, smaller, and have the stated quality.

#include <gtest/gtest.h>

#include "codec/transform/dwt.h"
#include "tests/support/one_of.h"
#include "tests/support/rate_support.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;

class Truncated : public testing::TestWithParam<Profile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, Truncated, testing::Values(Profile::kFast, Profile::kDense),
                         [](const auto& i) { return i.param == Profile::kFast ? "fast" : "dense"; });

// The heart of it: any size gives a valid stream of at most that size; more bytes are never worse; the index knows.
TEST_P(Truncated, ToAnySize) {
  for (const bool lossless : {false, true}) {
    const Clip clip = clip_of("yuv420p", 27);
    CodingParams p = params_of(GetParam());
    p.lossless = lossless;
    if (lossless) p.spatial = p.temporal = Wavelet::kCdf53;
    p.layers = 7;
    if (GetParam() == Profile::kFast && !lossless) {  // only with a target the fast profile looks at errors
      p.psnr = 45;
    }
    const Stream whole = encode(clip, p);
    double before = 1e18;
    test::OneOf chosen(3);
    for (const int percent : {10, 20, 30, 45, 60, 75, 90}) {
      if (!chosen()) continue;
      RewriteParams r;
      r.target_bytes = whole.size() * static_cast<std::size_t>(percent) / 100;
      RewriteResult result;
      const Stream s = rewritten(whole, r, &result);
      EXPECT_LE(s.size(), r.target_bytes) << percent;
      const double mse = mse_of(clip, s);
      EXPECT_LE(mse, before * 1.02) << percent;
      before = mse;
      if (result.mean_squared_error > 0 && !lossless) {
        EXPECT_NEAR(decibels(result.mean_squared_error / mse), 0, 0.4) << percent;
      }
      // Once more, to the same and to a smaller size.
      EXPECT_LE(rewritten(s, r).size(), r.target_bytes);
      r.target_bytes = s.size() * 2 / 3;
      EXPECT_LE(rewritten(s, r).size(), r.target_bytes);
    }
    RewriteParams all;
    EXPECT_EQ(rewritten(whole, all).size(), whole.size());
    EXPECT_EQ(mse_of(clip, rewritten(whole, all)), mse_of(clip, whole));
    RewriteParams none;
    none.target_bytes = 60;
    EXPECT_EQ(kind_of([&] { rewritten(whole, none); }), ErrorKind::kBadArgument);
  }
}

TEST(Rewrite, TruncatedToAPsnr) {
  const Clip clip = clip_of("yuv420p", 27);
  CodingParams p = params_of(Profile::kDense);
  p.layers = 9;
  const Stream whole = encode(clip, p);
  for (const double psnr : {28.0, 34.0}) {
    RewriteParams r;
    r.psnr = psnr;
    EXPECT_NEAR(decibels(255 * 255 / mse_of(clip, rewritten(whole, r))), psnr, 0.7);
  }
  p = params_of(Profile::kFast);
  RewriteParams r;
  r.psnr = 30;
  EXPECT_EQ(kind_of([&] { rewritten(encode(clip, p), r); }), ErrorKind::kBadArgument);  // knows no errors
}

TEST(Rewrite, ExtractsDecodeLikeReducedDecoding) {
  test::OneOf chosen(5);
  for (const Profile profile : {Profile::kFast, Profile::kDense})
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
      for (const bool lossless : {false, true})
        for (const char* format : {"yuv420p", "gbrp"}) {
          if (!chosen()) continue;
          const Clip clip = make_clip(video(71, 53, format, 20), 20, 9, Pattern::kTexture, 3);
          CodingParams p = params_of(profile);
          p.layout = layout;
          p.lossless = lossless;
          if (lossless) p.spatial = p.temporal = Wavelet::kCdf53;
          const Stream whole = encode(clip, p);
          for (int reduce = 0; reduce <= 2; ++reduce)
            for (int slower = 0; slower <= (layout == Layout::kT2d ? 2 : 0); ++slower) {
              RewriteParams r;
              r.reduce = reduce;
              r.temporal_reduce = slower;
              const Stream s = rewritten(whole, r);
              if (reduce + slower > 0) {
                EXPECT_LT(s.size(), whole.size());
              }
              DecoderParams less;
              less.reduce = reduce;
              less.temporal_reduce = slower;
              const std::vector<Gop> want = decode(whole, less);
              const std::vector<Gop> got = decode(s, {});
              ASSERT_EQ(want.size(), got.size());
              for (std::size_t i = 0; i < got.size(); ++i) {
                ASSERT_EQ(want[i].frames(), got[i].frames());
                ASSERT_TRUE(want[i].plane(0).shape == got[i].plane(0).shape);
                EXPECT_EQ(compare(want[i], got[i]).squared, 0);
              }
              const StreamInfo info = info_of(s);
              EXPECT_EQ(info.video.width, low_length(71, reduce));
              EXPECT_EQ(info.video.height, low_length(53, reduce));
              if (reduce == 1 && slower == 0) {  // and once more
                const std::vector<Gop> twice = decode(rewritten(s, r), {});
                DecoderParams two;
                two.reduce = 2;
                const std::vector<Gop> direct = decode(whole, two);
                for (std::size_t i = 0; i < twice.size(); ++i) EXPECT_EQ(compare(twice[i], direct[i]).squared, 0);
              }
            }
          RewriteParams too_far;
          too_far.reduce = 4;
          EXPECT_EQ(kind_of([&] { rewritten(whole, too_far); }), ErrorKind::kBadArgument);
        }
}

TEST(Rewrite, ExtractedGops) {
  const Clip clip = clip_of("gray", 31, 8);
  CodingParams p = params_of(Profile::kDense, 8);
  p.lossless = true;
  p.spatial = p.temporal = Wavelet::kCdf53;
  const Stream whole = encode(clip, p);
  RewriteParams r;
  r.first_frame = 10;
  r.end_frame = 17;
  RewriteResult result;
  const std::vector<Gop> got = decode(rewritten(whole, r, &result), {});
  EXPECT_EQ(result.first_frame, 8u);
  EXPECT_EQ(result.frames, 16u);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(compare(got[0], clip.gops[1]).squared, 0);
  EXPECT_EQ(compare(got[1], clip.gops[2]).squared, 0);
  EXPECT_EQ(got[0].times()[0].pts, 8);
  r.first_frame = 31;
  r.end_frame = 40;
  EXPECT_EQ(kind_of([&] { rewritten(whole, r); }), ErrorKind::kBadArgument);
}

TEST(Rewrite, KeepsOrRefusesTinyTargets) {
  for (const Profile profile : {Profile::kFast, Profile::kDense}) {
    const Stream s = encode(make_clip(video(8, 8, "gray"), 4, 2, Pattern::kTexture, 9), params_of(profile, 2));
    bool kept = false, refused = false;
    for (std::uint64_t target = 200; target < s.size(); ++target) {
      try {
        EXPECT_LE(rewritten(s, {.target_bytes = target}).size(), target);
        kept = true;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kBadArgument) << e.what();
        EXPECT_FALSE(kept) << target << ": " << e.what();
        refused = true;
      }
    }
    EXPECT_TRUE(kept && refused);
  }
}

TEST(Rewrite, DamageIsNotCopied) {
  const Clip clip = clip_of("gray");
  Stream s = encode(clip, params_of(Profile::kDense));
  s[s.size() / 2] ^= std::byte{1};
  EXPECT_EQ(kind_of([&] { rewritten(s, {}); }), ErrorKind::kBadStream);
}

}  // namespace
}  // namespace trivelet
