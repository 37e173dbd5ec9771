// Errors stated or targeted by the encoder against errors of decoded samples: of cuts, of layers in the index (measured
// in a few blocks), and of targets that start from a sample of blocks.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "codec/backend.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/container.h"
#include "codec/measure/step_sample.h"
#include "codec/rate/rate_control.h"
#include "codec/transform/frame_gains.h"
#include "tests/support/one_of.h"
#include "tests/support/rate_support.h"

namespace trivelet {
namespace {

using namespace test;

// A coded GOP, its cuts at a row of slopes, and what a decoder makes of each.
class CutErrors : public testing::TestWithParam<std::tuple<const char*, int>> {};
INSTANTIATE_TEST_SUITE_P(Kinds, CutErrors,
                         testing::Combine(testing::Values("yuv420p", "gbrp", "gray12", "yuva444p10"),
                                          testing::Values(0, 1, 2, 3)));

TEST_P(CutErrors, AreThoseOfTheDecoder) {
  const auto [format, kind] = GetParam();
  Clip clip = clip_of(format, 9);
  CodingParams p = params_of(kind == 1 ? Profile::kFast : Profile::kDense);
  p.lossless = kind == 2;
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
  void (*set)(CodingParams&);
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
  CodingParams p = params_of(Profile::kDense);
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
  CodingParams p = params_of(Profile::kDense);
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
    for (int planes = 0; planes < StepAmounts::kSteps; ++planes) {
      const auto i = static_cast<std::size_t>(planes);
      const Cuts cuts = control.planes(planes);
      EXPECT_EQ(whole.bytes[i], static_cast<double>(control.body_bytes(cuts))) << planes;
      EXPECT_EQ(whole.errors[i], control.error(cuts)) << planes;
    }
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
  CodingParams p = params_of(Profile::kDense, 4);
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
    CodingParams p = params_of(Profile::kDense, 5);
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

}  // namespace
}  // namespace trivelet
