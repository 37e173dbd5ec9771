// Rate control and what is done with its layers: targets are kept, truncated and extracted streams are valid, smaller,
// and as good as they say.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <tuple>

#include "codec/backend.h"
#include "codec/container.h"
#include "codec/dwt.h"
#include "codec/encoder_params.h"
#include "codec/frame_gains.h"
#include "codec/rate_control.h"
#include "codec/rewrite.h"
#include "codec/sample_error.h"
#include "codec/step_sample.h"
#include "codec/stopwatch.h"
#include "tests/boxes.h"
#include "tests/one_of.h"
#include "tests/support.h"

namespace trivelet {
namespace {

using namespace test;

using Stream = std::vector<std::byte>;

Clip clip_of(const std::string& format, int frames = 20, int gop = 9) {
  return make_clip(video(70, 50, format, static_cast<std::uint64_t>(frames)), frames, gop, Pattern::kTexture, 5);
}

EncoderParams params_of(Profile profile, int gop = 9) {
  EncoderParams p;
  p.profile = profile;
  p.gop_frames = gop;
  p.temporal_levels = 2;
  p.spatial_levels = 3;
  p.block_size = 32;
  p.quality = 75;
  return p;
}

double mse_of(const Clip& clip, const Stream& stream) {
  const std::vector<Gop> decoded = decode(stream, {});
  EXPECT_EQ(decoded.size(), clip.gops.size());
  double sum = 0;
  double samples = 0;
  for (std::size_t i = 0; i < decoded.size(); ++i) {
    const Difference d = compare(clip.gops[i], decoded[i]);
    sum += d.squared;
    samples += static_cast<double>(d.samples);
  }
  return sum / samples;
}

double decibels(double ratio) { return 10 * std::log10(ratio); }

Stream rewritten(const Stream& stream, const RewriteParams& params, RewriteResult* result = nullptr) {
  MemorySource source(stream.data(), stream.size());
  MemorySink sink;
  const RewriteResult r = rewrite(source, params, sink);
  EXPECT_EQ(r.bytes, sink.bytes.size());
  if (result) *result = r;
  return std::move(sink.bytes);
}

StreamInfo info_of(const Stream& stream) {
  MemorySource source(stream.data(), stream.size());
  return Decoder(source, {}).info();
}

ErrorKind kind_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind();
  }
  return ErrorKind::kInternal;
}

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

// The heart of it: any size gives a valid stream of at most that size; more bytes are never worse; the index knows.
TEST_P(Rate, TruncatedToAnySize) {
  for (const bool lossless : {false, true}) {
    const Clip clip = clip_of("yuv420p", 27);
    EncoderParams p = params_of(GetParam());
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

// A coded GOP, its cuts at a row of slopes, and what a decoder makes of each.
class CutErrors : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Kinds, CutErrors,
                         testing::Combine(testing::Values("yuv420p", "gbrp", "gray12", "yuva444p10"),
                                          testing::Values(0, 1, 2, 3)));

TEST_P(CutErrors, AreThoseOfTheDecoder) {
  const auto [format, kind] = GetParam();
  Clip clip = clip_of(format, 9);
  EncoderParams p = params_of(kind == 1 ? Profile::kFast : Profile::kDense);
  p.lossless = kind == 2;
  p.even_ends = kind == 0;
  if (kind == 3) p.layout = Layout::kDyadic;
  p = resolve(clip.info, p);
  const StreamHeader header = make_header(clip.info, p);
  const Gop& gop = clip.gops[0];
  const auto encoder = cpu_backend().make_encoder(header, {2, SimdLevel::kBest});
  const auto decoder = cpu_backend().make_decoder(header, {}, {});
  GopChoices choices;
  choices.step = 3;
  choices.passes = true;
  if (kind == 0) choices.frame_gains = even_frame_gains(gop.frames(), header.temporal_levels, header.temporal);
  encoder->push(gop, choices);
  CodedGop coded;
  ASSERT_TRUE(encoder->pull(coded));
  RateControl control(header, coded);
  for (const double slope : {0.0, 1.0, 40.0, 3000.0, 1e12}) {
    const Cuts cuts = control.at(slope);
    LayeredGop layers;
    layers.frames = gop.frames();
    layers.step = choices.step;
    layers.frame_gains = choices.frame_gains;
    control.divide({cuts}, layers);
    std::vector<std::vector<std::uint8_t>> padded;  // decoders read a little behind every part
    for (auto& c : layers.components)
      for (auto& block : c.blocks)
        for (auto& segment : block)
          for (auto& part : segment.parts) {
            padded.emplace_back(part.data, part.data + part.size);
            padded.back().resize(part.size + kChunkPadding);
            part.data = padded.back().data();
          }
    Gop decoded(clip.info, gop.frames());
    decoder->push(layers, nullptr);
    ASSERT_TRUE(decoder->pull(decoded));
    const Difference d = compare(gop, decoded);
    const double expected = d.squared / static_cast<double>(d.samples);
    EXPECT_EQ(encoder->squared_error(gop, choices, cuts), expected) << slope;
    if (slope == 0 && header.lossless) {
      EXPECT_EQ(expected, 0);
    }
    if (slope > 1e9) {
      EXPECT_GT(expected, 0);
    }
  }
}

// The errors in the index, which come from a few blocks, beside what a decoder makes of every layer.
struct Sampled {
  const char* name;
  int width, height, frames;
  const char* format;
  Pattern pattern;
  void (*set)(EncoderParams&);
  friend void PrintTo(const Sampled& s, std::ostream* out) { *out << s.name; }
};
class SampledErrors : public testing::TestWithParam<Sampled> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, SampledErrors,
    testing::Values(
        Sampled{"plain", 200, 150, 9, "yuv420p", Pattern::kTexture, [](auto&) {}},
        Sampled{"smooth", 200, 150, 9, "gray12", Pattern::kSmooth, [](auto&) {}},
        Sampled{"noise", 130, 97, 9, "yuv420p", Pattern::kNoise, [](auto&) {}},
        Sampled{"extremes", 100, 97, 9, "gray", Pattern::kExtremes, [](auto&) {}},
        Sampled{"flat", 64, 64, 9, "yuv420p", Pattern::kZero, [](auto&) {}},
        Sampled{"pixel", 1, 1, 3, "gray", Pattern::kNoise, [](auto&) {}},
        Sampled{"row", 160, 1, 9, "gray", Pattern::kTexture, [](auto&) {}},
        Sampled{"colours", 130, 97, 9, "gbrp", Pattern::kTexture, [](auto&) {}},
        Sampled{"alpha", 130, 97, 9, "yuva444p10", Pattern::kTexture, [](auto&) {}},
        Sampled{"still", 200, 150, 1, "yuv420p", Pattern::kTexture, [](auto& p) { p.gop_frames = 1; }},
        Sampled{"dyadic", 130, 97, 9, "yuv420p", Pattern::kTexture, [](auto& p) { p.layout = Layout::kDyadic; }},
        Sampled{"haar", 130, 97, 9, "yuv420p", Pattern::kTexture, [](auto& p) { p.temporal = Wavelet::kHaar; }},
        Sampled{"lossless", 130, 97, 9, "yuv420p", Pattern::kTexture, [](auto& p) { p.lossless = true; }},
        Sampled{"coarse", 200, 150, 9, "yuv420p", Pattern::kTexture,
                [](auto& p) {
                  p.quality = 30;
                  p.block_size = 64;
                }},
        Sampled{"fine", 200, 150, 9, "yuv420p", Pattern::kTexture, [](auto& p) { p.quality = 90; }}),
    [](const auto& i) { return i.param.name; });

TEST_P(SampledErrors, AreThoseOfTheDecoder) {
  const Sampled& kind = GetParam();
  const Clip clip = make_clip(video(kind.width, kind.height, kind.format, static_cast<std::uint64_t>(kind.frames)),
                              kind.frames, 9, kind.pattern, 7);
  EncoderParams p = params_of(Profile::kDense);
  p.layers = 6;
  kind.set(p);
  if (p.lossless) p.spatial = p.temporal = Wavelet::kCdf53;
  const Stream stream = encode(clip, p);
  const StreamInfo info = info_of(stream);
  for (int layers = 1; layers <= 6; ++layers) {
    if (!test::full() && layers % 3 == 2) continue;
    const double said = error_of(info.gops[0].layers[static_cast<std::size_t>(layers - 1)].error);
    const std::vector<Gop> decoded = decode(stream, {.max_layers = layers});
    const Difference d = compare(clip.gops[0], decoded[0]);
    const double mse = d.squared / static_cast<double>(d.samples);
    if (d.samples < 10 && layers < 6) continue;  // one of them more or less is no curve
    if (mse < 1e-3)
      EXPECT_LT(said, 2e-3) << layers;
    else
      EXPECT_NEAR(decibels(said / mse), 0, 0.3) << layers << ": " << said << " instead of " << mse;
  }
  // Threads, instruction sets and where frames lie do not matter.
  static test::OneOf chosen(3);
  if (!chosen()) return;
  p.threads = 3;
  p.simd = SimdLevel::kScalar;
  EXPECT_EQ(encode(clip, p), stream);
  MemorySink sink;
  Encoder encoder(clip.info, p, sink);
  std::vector<FrameView> frames;
  const Gop& gop = clip.gops[0];
  for (int f = 0; f < gop.frames(); ++f) {
    frames.emplace_back();
    frames.back().time = gop.times()[static_cast<std::size_t>(f)];
    for (int c = 0; c < gop.components(); ++c)
      frames.back().planes[static_cast<std::size_t>(c)] = {gop.plane(c).row(f, 0), gop.plane(c).row_stride};
  }
  encoder.push(frames);
  encoder.finish();
  EXPECT_EQ(sink.bytes, stream);
}

// Pictures of so many blocks that targets begin with a sample of them: it tells about what all of them take, and the
// targets are met, by any number of threads and any instruction set alike.
TEST(StepSample, IsLikeTheWhole) {
  Clip clip = make_clip(video(400, 260, "yuv420p", 9), 9, 9, Pattern::kTexture, 5);
  for (int c = 0; c < 3; ++c) {  // half of it is still and of one colour
    const MutableVolumeView v = clip.gops[0].plane(c);
    for (int t = 0; t < v.shape.frames; ++t)
      for (int y = 0; y < v.shape.height; ++y) std::fill_n(v.row(t, y), v.shape.width / 2, std::byte{90});
  }
  EncoderParams p = params_of(Profile::kDense);
  const EncoderParams resolved = resolve(clip.info, p);
  const StreamHeader header = make_header(clip.info, resolved);
  ThreadPool pool(2);
  StepSample sample(header, clip.gops[0], SimdLevel::kBest);
  ASSERT_TRUE(sample.worth_it());
  const auto encoder = cpu_backend().make_encoder(header, {});
  for (const float step : {8.0f, 2.0f}) {
    GopChoices choices;
    choices.step = step;
    choices.passes = true;
    encoder->push(clip.gops[0], choices);
    CodedGop coded;
    ASSERT_TRUE(encoder->pull(coded));
    const RateControl control(header, coded);
    const StepAmounts a = sample.at(choices, pool);
    for (const int planes : {0, 1}) {
      const auto i = static_cast<std::size_t>(planes);
      const Cuts cuts = control.planes(planes);
      EXPECT_NEAR(a.bytes[i] / static_cast<double>(control.body_bytes(cuts)), 1, 0.25) << step << ", " << planes;
      EXPECT_NEAR(a.errors[i] / control.error(cuts), 1, 0.3) << step << ", " << planes;
      const double excess = encoder->squared_error(clip.gops[0], choices, cuts) *
                            static_cast<double>(control.samples()) / control.error(cuts);
      EXPECT_NEAR(sample.excess(choices, std::ldexp(static_cast<double>(step), planes), pool) / excess, 1, 0.3) << step;
    }
    // A plane less is a step twice as large, and between them there is one for any amount.
    const StepAmounts whole(control, static_cast<double>(step));
    const StepAmounts less(control, static_cast<double>(step), 1);
    EXPECT_EQ(less.step, 2 * whole.step);
    EXPECT_EQ(less.bytes[0], whole.bytes[1]);
    EXPECT_NEAR(whole.at(whole.errors, less.step) / less.errors[0], 1, 1e-9);
    for (const double octaves : {-0.5, 0.0, 0.4, 1.3}) {
      const double wanted = static_cast<double>(step) * std::exp2(octaves);
      EXPECT_NEAR(whole.step_for(whole.bytes, whole.at(whole.bytes, wanted)) / wanted, 1, 1e-3);
      EXPECT_NEAR(whole.step_for(whole.errors, whole.at(whole.errors, wanted)) / wanted, 1, 1e-3);
    }
  }
  for (const bool psnr : {false, true}) {
    (psnr ? p.psnr : p.bits_per_pixel) = psnr ? 38 : 0.7;
    if (psnr) p.bits_per_pixel = 0;
    p.threads = 3;
    p.simd = SimdLevel::kBest;
    const Stream one = encode(clip, p);
    if (psnr || test::full()) {  // the sample is the same for both
      p.threads = 1;
      p.simd = SimdLevel::kScalar;
      EXPECT_TRUE(encode(clip, p) == one);
    }
    if (psnr) {
      EXPECT_NEAR(decibels(255 * 255 / mse_of(clip, one)), 38, 0.1);
    } else {
      const double wanted = 0.7 * 400 * 260 * 9 / 8;
      EXPECT_LE(static_cast<double>(one.size()), wanted);
      EXPECT_GE(static_cast<double>(one.size()), 0.995 * wanted);
    }
  }
}

// Of pictures of many large blocks a sample tells the error, too.
TEST(StepSample, TellsTheError) {
  const Clip clip = make_clip(video(768, 512, "yuv420p", 8), 8, 4, Pattern::kTexture, 5);
  EncoderParams p = params_of(Profile::kDense, 4);
  p.block_size = 128;
  p.psnr = 38;
  p.threads = 3;
  const Stream one = encode(clip, p);
  EXPECT_NEAR(decibels(255 * 255 / mse_of(clip, one)), 38, 0.1);
  p.threads = 1;
  p.simd = SimdLevel::kScalar;
  EXPECT_TRUE(encode(clip, p) == one);
}

// GOPs of a film differ: what one takes says little about the next, and a target is met all the same.
TEST(StepSample, GopsThatDiffer) {
  const VideoInfo info = video(320, 200, "gray", 15);
  Clip clip = make_clip(info, 15, 5, Pattern::kTexture, 5);
  const auto dim = [&](std::size_t gop, int part) {  // to a part of its contrast
    const MutableVolumeView v = clip.gops[gop].plane(0);
    for (int t = 0; t < v.shape.frames; ++t)
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x)
          v.row(t, y)[x] = static_cast<std::byte>(100 + static_cast<int>(v.row(t, y)[x]) / part);
  };
  for (const bool begins_dim : {true, false}) {
    dim(begins_dim ? 0 : 1, 5);
    EncoderParams p = params_of(Profile::kDense, 5);
    p.bits_per_pixel = 0.8;
    const Stream s = encode(clip, p);
    const double wanted = 0.8 * 320 * 200 * 15 / 8;
    EXPECT_LE(static_cast<double>(s.size()), wanted);
    EXPECT_GE(static_cast<double>(s.size()), 0.995 * wanted);
    p.bits_per_pixel = 0;
    p.psnr = 37;
    const Stream t = encode(clip, p);
    EXPECT_NEAR(decibels(255 * 255 / mse_of(clip, t)), 37, 0.15);
    Clip unknown = clip;  // how many frames there are
    unknown.info.frames = 0;
    p.psnr = 0;
    p.bits_per_pixel = 0.8;
    const Stream u = encode(unknown, p);
    EXPECT_LE(static_cast<double>(u.size()), wanted);
    EXPECT_GE(static_cast<double>(u.size()), 0.98 * wanted);
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

// What an encoder does has a name, in every mode, with one thread and with two. Other programs may come in between,
// where it is nobody's: the best of some runs counts.
TEST(Stages, TakeNearlyAllOfTheTime) {
  constexpr int kMostRuns = 8;
  constexpr double kNamed = 0.95;
  const Clip clip = make_clip(video(320, 240, "yuv420p", 18), 18, 9, Pattern::kTexture, 5);
  for (const int threads : {1, 2})
    for (const int mode : {0, 1, 2, 3, 4}) {
      EncoderParams p = params_of(mode == 1 ? Profile::kFast : Profile::kDense);
      p.block_size = 64;
      p.threads = threads;
      p.lossless = mode == 2;
      if (mode == 3) p.psnr = 36;
      if (mode == 4) p.bits_per_pixel = 0.5;
      double encoding = 0;
      for (int run = 0; run < kMostRuns && encoding <= kNamed; ++run) {
        MemorySink sink;
        Encoder encoder(clip.info, p, sink);
        const Stopwatch watch;
        for (const Gop& gop : clip.gops) encoder.push(gop);
        encoder.finish();
        const double seconds = watch.seconds();
        const EncoderStages& s = encoder.stats().stages;
        double named = 0;
        for (const StageTime& stage : {s.hash, s.transform, s.coder, s.layers, s.measure, s.pack, s.write, s.wait}) {
          named += stage.seconds;
          EXPECT_GE(stage.seconds, 0) << mode;
          EXPECT_GE(stage.busy, 0) << mode;
        }
        EXPECT_LE(named, seconds) << mode;
        EXPECT_EQ(s.hash.seconds > 0 && s.pack.seconds > 0 && s.coder.seconds > 0, true) << mode;
        EXPECT_EQ(s.measure.seconds > 0, mode != 1) << mode;
        encoding = std::max(encoding, named / seconds);
      }
      EXPECT_GT(encoding, kNamed) << mode << ", " << threads << " threads";
    }
}

// The same of decoders; whichever run was disturbed least.
TEST(Stages, OfDecodingTakeNearlyAllOfTheTime) {
  constexpr int kMostRuns = 8;
  constexpr double kNamed = 0.95;
  const Clip clip = make_clip(video(320, 240, "yuv420p", 9), 9, 9, Pattern::kTexture, 5);
  for (const Profile profile : {Profile::kDense, Profile::kFast, Profile::kPredictive}) {
    EncoderParams p = params_of(profile);
    p.block_size = 64;
    p.lossless = profile == Profile::kPredictive;
    if (p.lossless) p.spatial_levels = p.temporal_levels = -1;
    const Stream stream = encode(clip, p);
    for (const int threads : {1, 2})
      for (const bool is_pipe : {false, true}) {
        SCOPED_TRACE(std::to_string(static_cast<int>(profile)) + ", " + std::to_string(threads) +
                     (is_pipe ? ", pipe" : ""));
        double decoding = 0;
        for (int run = 0; run < kMostRuns && decoding <= kNamed; ++run) {
          MemorySource memory(stream.data(), stream.size());
          test::Pipe pipe(stream.data(), stream.size(), stream.size());
          Decoder decoder(is_pipe ? static_cast<ByteSource&>(pipe) : memory, {.threads = threads});
          Gop gop = decoder.make_gop();
          const Stopwatch watch;
          while (decoder.pull(gop)) {
          }
          const double seconds = watch.seconds();
          const DecoderStages& s = decoder.stats().decoding;
          double named = 0;
          for (const StageTime& stage : {s.read, s.coder, s.transform, s.hash, s.wait}) {
            named += stage.seconds;
            EXPECT_GE(stage.seconds, 0);
            EXPECT_GE(stage.busy, 0);
          }
          EXPECT_LE(named, seconds);
          EXPECT_GT(s.coder.seconds, 0);
          EXPECT_EQ(s.read.seconds > 0, is_pipe);
          EXPECT_EQ(s.wait.seconds > 0, !is_pipe);
          EXPECT_EQ(s.transform.seconds > 0, profile != Profile::kPredictive);
          decoding = std::max(decoding, named / seconds);
        }
        EXPECT_GT(decoding, kNamed);
      }
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

TEST(Rewrite, TruncatedToAPsnr) {
  const Clip clip = clip_of("yuv420p", 27);
  EncoderParams p = params_of(Profile::kDense);
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
          EncoderParams p = params_of(profile);
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
  EncoderParams p = params_of(Profile::kDense, 8);
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

}  // namespace
}  // namespace trivelet
