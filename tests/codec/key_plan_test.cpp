// Places of key frames (key_plan.h): the states of the GOP before and what each allows.

#include "codec/encoder/key_plan.h"
#include "codec/encoder/encoder_params.h"

#include <gtest/gtest.h>

namespace trivelet {
namespace {

using KeyBefore = KeyPlan::KeyBefore;

EncoderParams moving() {
  EncoderParams p;
  p.motion = Motion::kOn;
  p.gop_frames = 16;
  p.temporal_levels = 3;
  return p;
}

VideoInfo video(std::uint64_t frames) {
  VideoInfo v;
  v.width = 64;
  v.height = 48;
  v.frames = frames;
  return v;
}

struct Fixture {
  explicit Fixture(EncoderParams asked = moving(), std::uint64_t frames = 160)
      : params(resolve(video(frames), asked)), header(make_header(video(frames), params)), keys(header, params) {}
  EncoderParams params;
  StreamHeader header;
  KeyPlan keys;
  const MotionPlaces with_key{16, GopKey::kLast, 3};
  const MotionPlaces without{15, GopKey::kFirst, 3};
};

TEST(KeyPlan, AGopIsOpenBehindAKeyFrameAlone) {
  Fixture f;
  ASSERT_TRUE(f.with_key.ends_with_key());
  ASSERT_FALSE(f.without.ends_with_key());
  EXPECT_EQ(f.keys.before(), KeyBefore::kNone);
  EXPECT_EQ(f.keys.next(16, false, 3), GopKey::kLast);
  f.keys.coded(&f.with_key);
  EXPECT_EQ(f.keys.before(), KeyBefore::kSamples);
  EXPECT_EQ(f.keys.next(16, false, 3), GopKey::kOpen);
  EXPECT_EQ(f.keys.next(16, true, 3), GopKey::kLast) << "the schedule closes it";
  f.keys.coded(&f.without);
  EXPECT_EQ(f.keys.before(), KeyBefore::kNone);
  f.keys.coded(&f.with_key);
  f.keys.coded(nullptr);
  EXPECT_EQ(f.keys.before(), KeyBefore::kNone) << "it turned out not to move";
}

TEST(KeyPlan, CoefficientsLeaveNoSamples) {
  Fixture f;
  f.keys.coefficients_pushed();
  EXPECT_EQ(f.keys.before(), KeyBefore::kNone);
  f.keys.coded(&f.with_key);
  f.keys.coefficients_pushed();
  EXPECT_EQ(f.keys.before(), KeyBefore::kCoefficients);
  EXPECT_NE(f.keys.next(16, false, 3), GopKey::kOpen);
  f.keys.coded(&f.with_key);
  EXPECT_EQ(f.keys.next(16, false, 3), GopKey::kOpen);
}

TEST(KeyPlan, WhatWasDrainedIsKnownApart) {
  Fixture f;
  f.keys.coded(&f.with_key);
  EXPECT_FALSE(f.keys.drained_key());
  f.keys.drained(&f.with_key);
  EXPECT_TRUE(f.keys.drained_key());
  f.keys.coded(nullptr);
  EXPECT_TRUE(f.keys.drained_key());
  f.keys.drained(nullptr);
  EXPECT_FALSE(f.keys.drained_key());
}

TEST(KeyPlan, ShortGopsBeginWithTheirKey) {
  Fixture f;
  EXPECT_EQ(f.keys.next(7, true, 3), GopKey::kFirst);
  EXPECT_EQ(KeyPlan::closed(16, 3), GopKey::kLast);
  EXPECT_EQ(KeyPlan::closed(15, 3), GopKey::kFirst);
  EXPECT_EQ(f.keys.next(7, true, 2), GopKey::kLast) << "of fewer levels";
  EXPECT_EQ(KeyPlan::closed(8, 2), GopKey::kLast);
}

// Also where nobody says how many frames there are.
TEST(KeyPlan, GopsOfLargePicturesHaveFewerFrames) {
  for (const int side : {1080, 9000, 16384, 32768})
    for (const bool lossless : {false, true})
      for (const Motion motion : {Motion::kOff, Motion::kOn}) {
        VideoInfo v = video(0);
        v.width = v.height = side;
        v.format = parse_pixel_format("gbrap");
        EncoderParams p;
        p.motion = motion;
        p.lossless = lossless;
        p = resolve(v, p);
        EXPECT_EQ(make_header(v, p).gop_frames, p.gop_frames) << side;
        EXPECT_EQ(p.gop_frames >= kStillGopFrames - 1, side < 9000) << side << ": " << p.gop_frames;
      }
}

TEST(KeyPlan, WithoutMotionNoGopIsOpen) {
  EncoderParams p = moving();
  p.motion = Motion::kOff;
  Fixture f(p);
  f.keys.coded(&f.with_key);
  EXPECT_EQ(f.keys.next(16, false, 3), GopKey::kFirst);
}

}  // namespace
}  // namespace trivelet
