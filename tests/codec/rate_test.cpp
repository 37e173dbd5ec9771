// Rate control: targets are met, the result does not depend on threads and instruction set, and layers have the stated
// errors.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "codec/backend.h"
#include "codec/base/stream_header.h"
#include "codec/encoder/encoder_params.h"
#include "codec/measure/measuring_plan.h"
#include "codec/measure/sample_error.h"
#include "codec/rate/bit_copy.h"
#include "codec/rate/byte_plan.h"
#include "codec/rate/rate_control.h"
#include "tests/support/one_of.h"
#include "tests/support/rate_support.h"

namespace trivelet {
namespace {

using namespace test;

class Rate : public testing::TestWithParam<Profile> {};
INSTANTIATE_TEST_SUITE_P(Profiles, Rate, testing::Values(Profile::kFast, Profile::kDense),
                         [](const auto& i) { return i.param == Profile::kFast ? "fast" : "dense"; });

TEST_P(Rate, SizesAreKept) {
  test::OneOf chosen(2);
  for (const char* format : {"yuv420p", "gray12", "gbrp"}) {
    if (!chosen()) continue;
    const Clip clip = clip_of(format);
    double before = 1e18;
    for (const std::uint64_t target : {6000u, 12000u, 24000u}) {
      EncoderParams p = params_of(GetParam());
      p.target_bytes = target;
      const Stream s = encode(clip, p);
      EXPECT_LE(s.size(), target) << format;
      EXPECT_GE(static_cast<double>(s.size()), static_cast<double>(target) * 0.99 - 20) << format;
      const double mse = mse_of(clip, s);
      EXPECT_LT(mse, before) << format;
      before = mse;
    }
  }
}

TEST_P(Rate, OtherTargetsForBytes) {
  const Clip clip = clip_of("yuv420p");
  EncoderParams p = params_of(GetParam());
  p.bits_per_pixel = 1;
  const auto limit = static_cast<std::size_t>(70 * 50 * 20 / 8);
  Stream s = encode(clip, p);
  EXPECT_LE(s.size(), limit);
  EXPECT_GE(s.size(), limit * 98 / 100);
  p.bits_per_pixel = 0;
  Clip timed = clip;
  timed.info.frame_rate = {10, 1};
  timed.info.time_base = {1, 10};
  p.bit_rate = 8.0 * static_cast<double>(limit) / 2;  // two seconds
  const Stream t = encode(timed, p);
  EXPECT_LE(t.size(), limit);
  EXPECT_GE(t.size(), limit * 98 / 100);
  // Seconds are those of the frames, whatever their rate is said to be: here every other one lasts three ticks.
  EncoderParams half = p;
  half.bit_rate /= 2;
  std::int64_t now = 0;
  for (Gop& gop : timed.gops)
    for (FrameTime& time : gop.times()) {
      time = {now, now % 4 == 0 ? 1 : 3};
      now += time.duration;
    }
  const Stream uneven = encode(timed, half);
  EXPECT_LE(uneven.size(), limit);
  EXPECT_GE(uneven.size(), limit * 98 / 100);
  EXPECT_EQ(kind_of([&] {
              Clip untimed = clip;
              untimed.info.frame_rate = {0, 1};
              encode(untimed, p);
            }),
            ErrorKind::kBadArgument);
}

TEST_P(Rate, PsnrIsReached) {
  for (const char* format : {"yuv420p", "gray12"}) {
    const Clip clip = clip_of(format);
    const double peak = (1 << clip.info.format.bits) - 1;
    for (const double wanted : {30.0, 40.0}) {
      EncoderParams p = params_of(GetParam());
      p.psnr = wanted;
      EXPECT_NEAR(decibels(peak * peak / mse_of(clip, encode(clip, p))), wanted,
                  GetParam() == Profile::kFast ? 0.3 : 0.15)
          << format;  // few planes of few blocks
    }
  }
}

// Pictures of so many blocks that targets begin with a sample of them; sampled_errors_test says how near that comes.
TEST_P(Rate, PicturesOfManyBlocks) {
  const Clip clip = make_clip(video(400, 260, "gray", 4), 4, 4, Pattern::kTexture, 5);
  EncoderParams p = params_of(GetParam(), 4);
  p.psnr = 36;
  EXPECT_NEAR(decibels(255 * 255 / mse_of(clip, encode(clip, p))), 36, 0.3);
}

// With a target GOPs that are alike are all coded about as finely as with the quality that gives as many bytes. Coded
// more and more finely and then cut they would be 0.15 dB worse.
TEST(Targets, GopsThatAreAlike) {
  const Clip clip = make_clip(video(400, 260, "gray", 16), 16, 4, Pattern::kTexture, 5);
  CodingParams p = params_of(Profile::kFast, 4);
  p.quality = 50;
  const Stream wanted = encode(clip, p);
  p.target_bytes = wanted.size();
  const Stream s = encode(clip, p);
  EXPECT_LE(s.size(), wanted.size());
  EXPECT_GE(static_cast<double>(s.size()), 0.998 * static_cast<double>(wanted.size()));
  EXPECT_LT(decibels(mse_of(clip, s) / mse_of(clip, wanted)), -0.2);
}

// Of which no block has a bit: the sanitizers see what is done with tables of nothing.
TEST_P(Rate, FlatPicturesMeetAnyTarget) {
  const Clip clip = make_clip(video(96, 64, "yuv420p", 0), 10, 4, Pattern::kZero, 1);
  EncoderParams p = params_of(GetParam());
  p.target_bytes = 4000;
  const Stream s = encode(clip, p);
  EXPECT_LE(s.size(), p.target_bytes);
  EXPECT_EQ(mse_of(clip, s), 0);
}

TEST_P(Rate, TargetsThatCannotBe) {
  const Clip clip = clip_of("gray");
  EncoderParams p = params_of(GetParam());
  p.target_bytes = 100;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
  p.target_bytes = 5000;
  p.psnr = 40;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
  p.psnr = 0;
  p.lossless = true;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
}

// What a GOP takes whatever its quality is set aside before the others are given theirs: a target is refused when it is
// too small for that, and met when it is one byte larger, however short the last GOP is.
TEST_P(Rate, TheLeastTargetIsMet) {
  const Clip known = make_clip(video(48, 40, "yuv420p", 0), 10, 4, Pattern::kTexture, 3);
  for (const bool moves : {false, true}) {
    EncoderParams p = params_of(GetParam());
    p.gop_frames = 4;
    p.temporal_levels = 2;
    if (moves) p.motion = Motion::kOn;
    for (const bool is_known : {false, true}) {
      if (test::kSanitized && !test::full() && moves != is_known) continue;
      SCOPED_TRACE(moves * 2 + is_known);
      Clip clip = known;
      clip.info.frames = is_known ? 10 : 0;
      const auto needed = [&](std::uint64_t target) -> std::uint64_t {
        p.target_bytes = target;
        try {
          const Stream s = encode(clip, p);
          EXPECT_LE(s.size(), target);
          return 0;
        } catch (const Error& e) {
          const std::string what = e.what();
          const std::size_t at = what.find("too small: ");
          EXPECT_NE(at, std::string::npos) << what;
          return at == std::string::npos ? 1 : std::stoull(what.substr(at + 11));
        }
      };
      const std::uint64_t least = needed(300);
      ASSERT_GT(least, 300u);
      // With another target another step is tried first, and along with it another motion.
      std::uint64_t target = least;
      for (std::uint64_t more = needed(target); more > target; more = needed(target)) target = more;
      EXPECT_LE(target, least * 3 / 2);
      EXPECT_EQ(needed(target * 3 / 2), 0u);
    }
  }
}

/// The most bits per second over `window` seconds or more, and of a shorter stretch over a window.
double highest_rate(const Stream& stream, double window) {
  const StreamInfo info = info_of(stream);
  double highest = 0;
  for (auto first = info.gops.begin(); first != info.gops.end(); ++first) {
    double bits = 0;
    for (auto last = first; last != info.gops.end(); ++last) {
      bits += 8 * static_cast<double>(last->bytes);
      const double seconds = static_cast<double>(last->end_pts - first->begin_pts) * info.video.time_base.value();
      highest = std::max(highest, bits / std::max(seconds, window));
    }
  }
  return highest;
}

/// Smooth, but for noise in the middle.
Clip uneven_clip(int width = 96, int height = 64) {
  Clip clip = make_clip(video(width, height, "yuv420p", 60), 60, 4, Pattern::kSmooth, 3);
  for (std::size_t i = 5; i < 9; ++i) {
    fill(clip.gops[i], clip.gops[i].frames(), clip.info.format, Pattern::kNoise, 9);
    for (auto& t : clip.gops[i].times()) t.pts += 4 * static_cast<int>(i);
  }
  return clip;
}

TEST_P(Rate, AnyStretchKeepsWithinItsBound) {
  const bool small = test::kSanitized && !test::full();
  const Clip clip = small ? uneven_clip(64, 32) : uneven_clip();
  for (const Motion motion : {Motion::kOff, Motion::kOn}) {
    EncoderParams p = params_of(GetParam(), 4);
    p.motion = motion;
    p.max_rate = 1e12;
    const Stream free = encode(clip, p);
    for (const double window : {1.0, 0.01}) {
      if (motion == Motion::kOn && window < 1) continue;
      SCOPED_TRACE(std::to_string(static_cast<int>(motion)) + ", " + std::to_string(window));
      p.rate_window = window;
      p.max_rate = 0.5 * highest_rate(free, std::max(window, 0.16));
      const Stream bounded = encode(clip, p);
      EXPECT_LE(highest_rate(bounded, window), p.max_rate);
      EXPECT_GT(highest_rate(bounded, window), 0.75 * p.max_rate);  // 0.64 seconds are above the bound
      if (!small || motion == Motion::kOn || window < 1) {
        EXPECT_EQ(bounded, (p.threads = 5, encode(clip, p)));
      }
      p.threads = 0;
      // What fits is left as it is, and what is cut has at least 3/4 of the rate.
      const std::vector<GopInfo> before = info_of(free).gops;
      const std::vector<GopInfo> after = info_of(bounded).gops;
      ASSERT_EQ(after.size(), before.size());
      int cut = 0;
      for (std::size_t i = 0; i < before.size(); ++i) {
        cut += after[i].bytes < before[i].bytes;
        EXPECT_LE(after[i].bytes, before[i].bytes);
        if (after[i].bytes < before[i].bytes) {
          EXPECT_GT(8 * static_cast<double>(after[i].bytes), 0.74 * p.max_rate * before[i].frames / 25) << i;
        }
      }
      EXPECT_GT(cut, 0);
      EXPECT_LT(cut, static_cast<int>(before.size()));
      EXPECT_LT(mse_of(clip, bounded), 3000);
      EXPECT_GT(mse_of(clip, bounded), mse_of(clip, free));
    }
  }
}

TEST_P(Rate, ABoundHoldsBesideATargetForBytes) {
  const Clip clip = uneven_clip();
  EncoderParams p = params_of(GetParam(), 4);
  p.target_bytes = 30000;
  const Stream free = encode(clip, p);
  p.max_rate = 0.6 * highest_rate(free, 1);
  const Stream bounded = encode(clip, p);
  EXPECT_LE(bounded.size(), p.target_bytes);
  EXPECT_LE(highest_rate(bounded, 1), p.max_rate);
}

TEST_P(Rate, BoundsThatCannotBe) {
  const Clip clip = uneven_clip();
  EncoderParams p = params_of(GetParam(), 4);
  p.max_rate = 3000;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
  p.max_rate = 1e6;
  p.psnr = 40;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
  p.psnr = 0;
  p.lossless = true;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
  p.lossless = false;
  p.rate_window = 0;
  EXPECT_EQ(kind_of([&] { encode(clip, p); }), ErrorKind::kBadArgument);
}

TEST_P(Rate, ThreadsAndInstructionSetsDoNotMatter) {
  const Clip clip = clip_of("yuv420p");
  for (const bool psnr : {false, true}) {
    EncoderParams p = params_of(GetParam());
    (psnr ? p.psnr : p.bits_per_pixel) = psnr ? 36 : 0.8;
    p.threads = 1;
    p.simd = SimdLevel::kScalar;
    const Stream one = encode(clip, p);
    p.threads = 3;
    p.simd = SimdLevel::kBest;
    EXPECT_TRUE(encode(clip, p) == one);
  }
}

TEST(RateControl, KnowsTheSizeOfChunks) {
  for (const Profile profile : {Profile::kDense, Profile::kFast})
    for (const char* format : {"yuv420p", "gray"}) {
      const Clip clip = clip_of(format, 9);
      EncoderParams p = params_of(profile);
      p.layers = 5;
      p = resolve(clip.info, p);
      const StreamHeader header = make_header(clip.info, p);
      const auto encoder = cpu_backend().make_encoder(header, {});
      GopChoices choices;
      choices.step = 2;
      choices.passes = true;
      encoder->push(clip.gops[0], choices);
      CodedGop coded;
      ASSERT_TRUE(encoder->pull(coded));
      ThreadPool pool(3);
      RateControl control(header, coded);
      RateControl shared(header, coded, &pool);
      for (const int layers : {1, 3, 5}) {
        const std::vector<Cuts> cuts = control.layers(control.complete(), 4, layers);
        EXPECT_EQ(cuts, shared.layers(shared.complete(), 4, layers));
        // One layer is not divided: its heads are there once.
        EXPECT_EQ(cuts.front() == control.complete(), layers == 1);
        LayeredGop divided;
        control.divide(cuts, divided);
        std::uint64_t expected = 0;
        for (int l = 0; l < header.layers; ++l)
          for (int b = 0; b < header.temporal_bands(); ++b)
            for (int d = header.spatial_levels; d >= 0; --d) {
              const std::size_t size = write_chunk(header, divided, l, b, d).size();
              expected += size + 1 + (size >= 128) + (size >= 16384) + (size > 0 ? 4 : 0);
            }
        EXPECT_EQ(control.chunk_bytes(cuts), expected);
        EXPECT_EQ(shared.chunk_bytes(cuts), expected);
      }
      const std::vector<double> slopes = {0.5, 4, 100, 1e5};
      const std::vector<std::uint64_t> bytes = shared.body_bytes_at(slopes);
      for (std::size_t i = 0; i < slopes.size(); ++i) EXPECT_EQ(bytes[i], control.body_bytes(control.at(slopes[i])));
    }
}

// What a GOP gets beyond all that it has, those behind it might not need, either.
TEST(BytePlan, GivesNoGopMoreThanItHas) {
  const Clip clip = make_clip(video(400, 260, "gray", 4), 4, 4, Pattern::kTexture, 5);
  CodingParams asked = params_of(Profile::kFast, 4);
  asked.block_size = 64;
  asked.layers = 1;
  const EncoderParams p = resolve(clip.info, asked);
  const StreamHeader header = make_header(clip.info, p);
  const auto encoder = cpu_backend().make_encoder(header, {});
  std::vector<WaitingGop> gops;
  std::vector<std::uint64_t> most;  // of the chunks' bytes
  std::uint64_t total = 1000;
  for (const float step : {0.5f, 4.0f, 4.0f, 4.0f, 4.0f, 4.0f, 4.0f, 4.0f}) {
    GopChoices choices;
    choices.step = step;
    choices.by_plane = true;
    encoder->push(clip.gops[0], choices);
    CodedGop coded;
    ASSERT_TRUE(encoder->pull(coded));
    const RateControl control(header, coded, step, {});
    const auto bytes_of = [&](const Cuts& cuts) { return control.chunk_bytes(control.layers(cuts, 1, 1)); };
    WaitingGop w;
    w.curve = RateCurve(control, 0, 4);
    w.head = 50;
    w.least = bytes_of(control.at(1e30));
    w.info.first_frame = 4 * gops.size();
    w.info.frames = 4;
    w.info.begin_pts = static_cast<std::int64_t>(w.info.first_frame);
    w.info.end_pts = w.info.begin_pts + 4;
    most.push_back(bytes_of(control.complete()));
    total += w.head + (gops.empty() ? most[0] / 2 : most.back());
    gops.push_back(w);
  }
  const BytePlan plan(header, gops, total);
  std::vector<GopInfo> index;
  std::uint64_t position = 500;
  for (auto next = plan.next(index, position); !next.empty(); next = plan.next(index, position))
    for (const std::uint64_t bytes : next) {
      GopInfo info = gops[index.size()].info;
      info.offset = position;
      info.bytes = gops[index.size()].head + std::min(bytes, most[index.size()]);
      info.layers.resize(header.layers);
      position += info.bytes;
      index.push_back(info);
    }
  EXPECT_LE(position, total);
  EXPECT_GE(static_cast<double>(position), 0.995 * static_cast<double>(total));
}

TEST(CopyBits, AnyBitsToAnyNumber) {
  std::vector<std::uint8_t> from(40);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::uint8_t>(137 * i + (i >> 2) + 71);
  const auto bit = [](const std::vector<std::uint8_t>& bytes, std::size_t i) { return bytes[i / 8] >> (i % 8) & 1; };
  for (unsigned first = 0; first < 8; ++first)
    for (std::size_t bits = 0; bits <= 200; ++bits) {
      const std::vector<std::uint8_t> held(from.begin(),
                                           from.begin() + static_cast<std::ptrdiff_t>((first + bits + 7) / 8));
      std::vector<std::uint8_t> to((bits + 7) / 8, 0xff);  // the sanitizers see what is beside them
      copy_bits(held.data(), first, bits, to.data());
      for (std::size_t i = 0; i < 8 * to.size(); ++i)
        ASSERT_EQ(bit(to, i), i < bits ? bit(from, first + i) : 0) << first << ", " << bits << ", " << i;
    }
}

TEST(SampleErrorModel, PassesThroughWhatWasMeasured) {
  SampleErrorModel curve;
  // Large errors grow by a twelfth, small ones vanish in rounding.
  EXPECT_NEAR(curve.actual(100), 104, 0.2);
  EXPECT_LT(curve.actual(0.01), 0.001);
  EXPECT_FALSE(curve.covers(2));
  curve.add(32, 40);
  curve.add(8, 9);
  curve.add(2, 1.5);
  EXPECT_NEAR(curve.actual(8), 9, 1e-9);
  EXPECT_NEAR(curve.actual(16), std::sqrt(40.0 * 9.0), 0.1);
  EXPECT_NEAR(curve.actual(64) / curve.actual(32), 2, 0.01);
  EXPECT_LT(curve.actual(1), 1.5);
  EXPECT_TRUE(curve.covers(2.2));
  EXPECT_FALSE(curve.covers(4));
}

TEST(Layers, FewInSmallGops) {
  const Clip clip = clip_of("yuv420p", 27);
  EncoderParams p = params_of(Profile::kDense);
  p.step = 8;
  const auto with_layers = [&](int layers) {
    p.layers = layers;
    return encode(clip, p);
  };
  const Stream chosen = with_layers(0);
  const Stream one = with_layers(1);
  const Stream all = with_layers(16);
  EXPECT_EQ(mse_of(clip, chosen), mse_of(clip, one));
  EXPECT_LT(static_cast<double>(chosen.size()), 1.03 * static_cast<double>(one.size()) + 60);
  EXPECT_GT(static_cast<double>(all.size()), 1.06 * static_cast<double>(one.size()));
}

TEST(Decoder, ReadsNoMoreThanItMay) {
  const Clip clip = clip_of("yuv420p", 27);
  const Stream whole = encode(clip, params_of(Profile::kDense));
  double before = 1e18;
  for (const double share : {0.2, 0.4, 0.7, 1.0}) {
    DecoderParams p;
    p.max_bytes = static_cast<std::uint64_t>(share * static_cast<double>(whole.size()));
    CodecStats stats;
    const std::vector<Gop> decoded = decode(whole, p, &stats);
    double sum = 0;
    for (std::size_t i = 0; i < decoded.size(); ++i) sum += compare(clip.gops[i], decoded[i]).squared;
    EXPECT_LE(sum, before);
    before = sum;
    EXPECT_LT(static_cast<double>(stats.stream_bytes), static_cast<double>(p.max_bytes) + 3000);
  }
}

// GOPs of any length: scene cuts.
TEST(Encoder, ShortGopsAnywhere) {
  Clip clip;
  clip.info = video(40, 30, "yuv420p", 0);
  int at = 0;
  for (const int n : {9, 2, 5, 1, 9}) {
    clip.gops.emplace_back(clip.info, 9);
    fill(clip.gops.back(), n, clip.info.format, Pattern::kTexture, static_cast<std::uint32_t>(at));
    for (auto& t : clip.gops.back().times()) t.pts += at;
    at += n;
  }
  for (const bool target : {false, true}) {
    EncoderParams p = params_of(Profile::kDense);
    if (target) p.target_bytes = 9000;
    const Stream s = encode(clip, p);
    const std::vector<Gop> got = decode(s, {});
    ASSERT_EQ(got.size(), 5u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(got[i].frames(), clip.gops[i].frames());
    EXPECT_LT(mse_of(clip, s), 60);
  }
}
// A film that goes to and fro between scenes has each of them measured, not every GOP; and what a GOP is said to be like is
// the scene that it belongs to.
TEST(Measuring, RemembersScenes) {
  const VideoInfo info = test::video(64, 64, "gray");
  MeasuringPlan plan(make_header(info, resolve(info, params_of(Profile::kDense))));
  MeasuredErrors measured;
  const std::vector<double> scenes[] = {{400, 100, 20}, {90, 25, 5}, {30, 4, 1.5}};
  int asked = 0;
  for (int g = 0; g < 96; ++g) {
    const auto scene = static_cast<std::size_t>(g % 3);
    const std::vector<double>& predicted = scenes[scene];
    const double factor = 1.1 + 0.1 * static_cast<double>(scene);  // what decoding brings, scene by scene
    const std::vector<std::size_t> points = plan.layers(predicted, false, false);
    if (!points.empty()) {
      ++asked;
      SampleErrorModel model;
      for (const std::size_t l : points) model.add(predicted[l], factor * predicted[l]);
      measured.add(model);
    }
    const std::vector<double> errors = layer_errors(predicted, measured);
    EXPECT_NEAR(errors.back(), factor * predicted.back(), 1e-3) << g;
  }
  EXPECT_GE(asked, 3 * 96 / 16) << "what is long ago is measured again";
  EXPECT_LE(asked, 3 * (96 / 15 + 1));
}

}  // namespace
}  // namespace trivelet
