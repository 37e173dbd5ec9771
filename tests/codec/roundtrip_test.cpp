// Properties of the whole codec over tables of shapes, depths and modes: lossless is exact, lossy is close, all
// instruction sets and numbers of threads give the same bytes, reductions match, and smaller requests read fewer bytes.

#include <gtest/gtest.h>

#include "codec/transform/dwt.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using namespace test;

struct Size {
  int width, height, frames;
};

const Size kSizes[] = {{1, 1, 1},     {2, 1, 3},   {1, 2, 2},   {3, 3, 1},    {5, 7, 5},   {8, 8, 8},
                       {16, 16, 16},  {17, 31, 9}, {33, 17, 4}, {64, 32, 25}, {65, 63, 7}, {127, 129, 3},
                       {130, 66, 13}, {1, 200, 4}, {200, 1, 4}, {257, 24, 9}};

// The entropy coders.
struct Coder {
  const char* name;
  Profile profile;
};

const Coder kCoders[] = {{"dense", Profile::kDense}, {"fast", Profile::kFast}};

CodingParams small_gops(int frames, const Coder& coder = kCoders[0]) {
  CodingParams p;
  p.motion = Motion::kOff;
  p.gop_frames = frames;
  p.threads = 2;
  p.profile = coder.profile;
  return p;
}

TEST(RoundTrip, LosslessIsExactForAllSizes) {
  OneOf chosen(5);
  for (const Size& s : kSizes)
    for (const char* format : {"gray", "yuv420p"})
      for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
        for (const Coder& coder : kCoders) {
          if (!chosen()) continue;
          SCOPED_TRACE(testing::Message() << s.width << "x" << s.height << "x" << s.frames << " " << format
                                          << " layout " << static_cast<int>(layout) << " " << coder.name);
          const Clip clip = make_clip(video(s.width, s.height, format), s.frames, 8, Pattern::kTexture, 1);
          CodingParams p = small_gops(8, coder);
          p.lossless = true;
          p.layout = layout;
          p.block_size = 32;
          const auto stream = encode(clip, p);
          const auto out = decode(stream, {});
          ASSERT_EQ(out.size(), clip.gops.size());
          for (std::size_t i = 0; i < out.size(); ++i) {
            ASSERT_EQ(out[i].frames(), clip.gops[i].frames());
            ASSERT_EQ(compare(out[i], clip.gops[i]).largest, 0);
            EXPECT_EQ(out[i].times()[0].pts, clip.gops[i].times()[0].pts);
          }
        }
}

TEST(RoundTrip, LosslessIsExactForAllFormatsAndPatterns) {
  OneOf chosen(11);
  for (const char* format : {"gray", "gray1", "gray9", "gray16", "yuv420p10", "yuv422p12", "yuv444p16", "yuv411p",
                             "gbrp", "gbrp12", "gbrap16", "yuva420p", "ya8"})
    for (const Pattern pattern : {Pattern::kSmooth, Pattern::kNoise, Pattern::kExtremes, Pattern::kZero})
      for (const Wavelet w : {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kRev137})
        for (const Coder& coder : kCoders) {
          if (!chosen()) continue;
          SCOPED_TRACE(testing::Message() << format << " pattern " << static_cast<int>(pattern) << " wavelet "
                                          << static_cast<int>(w) << " " << coder.name);
          const Clip clip = make_clip(video(45, 38, format), 5, 5, pattern, 7);
          CodingParams p = small_gops(5, coder);
          p.lossless = true;
          p.spatial = p.temporal = w;
          p.block_size = 32;
          const auto out = decode(encode(clip, p), {});
          ASSERT_EQ(out.size(), 1u);
          ASSERT_EQ(compare(out[0], clip.gops[0]).largest, 0);
        }
}

TEST(RoundTrip, SignedSamples) {
  for (const int bits : {8, 12, 16})
    for (const Coder& coder : kCoders) {
      VideoInfo info = video(40, 30, "gray");
      info.format.bits = bits;
      info.format.is_signed = true;
      const Clip clip = make_clip(info, 4, 4, Pattern::kNoise, 3);
      CodingParams p = small_gops(4, coder);
      p.lossless = true;
      const auto out = decode(encode(clip, p), {});
      ASSERT_EQ(compare(out.at(0), clip.gops[0]).largest, 0) << bits << " " << coder.name;
    }
}

TEST(RoundTrip, LossyErrorFollowsTheStep) {
  OneOf chosen(13);
  for (const Size& s : kSizes)
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
      for (const Wavelet w : {Wavelet::kCdf97, Wavelet::kCdf53, Wavelet::kHaar})
        for (const double step : {0.5, 8.0, 64.0})
          for (const Coder& coder : kCoders) {
            if (!chosen()) continue;
            SCOPED_TRACE(testing::Message()
                         << s.width << "x" << s.height << "x" << s.frames << " layout " << static_cast<int>(layout)
                         << " wavelet " << static_cast<int>(w) << " step " << step << " " << coder.name);
            const Clip clip = make_clip(video(s.width, s.height, "gray"), s.frames, 16, Pattern::kTexture, 5);
            CodingParams p = small_gops(16, coder);
            p.layout = layout;
            p.spatial = p.temporal = w;
            p.step = step;
            const auto out = decode(encode(clip, p), {});
            ASSERT_EQ(out.size(), clip.gops.size());
            for (std::size_t i = 0; i < out.size(); ++i) {
              // A dead-zone quantiser of step d leaves at most d in a coefficient, so about d in the mean of samples.
              ASSERT_LE(std::sqrt(compare(out[i], clip.gops[i]).mse()), 1.3 * step + 0.6);
            }
          }
}

TEST(RoundTrip, SameBytesForEveryThreadCountAndInstructionSet) {
  OneOf chosen(kSanitized ? 29 : 7);
  int turn = 0;
  for (const Size& s : kSizes)
    for (const bool lossless : {false, true})
      for (const char* format : {"yuv420p", "gbrp10", "gray16"})
        for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
          for (const Coder& coder : kCoders) {
            if (!chosen()) continue;
            SCOPED_TRACE(testing::Message() << s.width << "x" << s.height << "x" << s.frames << " " << format
                                            << " lossless " << lossless << " " << coder.name);
            const Clip clip = make_clip(video(s.width, s.height, format), s.frames, 12, Pattern::kTexture, 11);
            CodingParams p = small_gops(12, coder);
            p.layout = layout;
            p.lossless = lossless;
            p.block_size = 64;
            p.simd = SimdLevel::kScalar;
            p.threads = 1;
            const auto reference = encode(clip, p);
            DecoderParams dp;
            dp.simd = SimdLevel::kScalar;
            dp.threads = 1;
            const auto decoded = decode(reference, dp);
            for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
              const int threads = 1 << turn++ % 3;
              if (simd > detected_simd()) continue;
              p.simd = dp.simd = simd;
              p.threads = dp.threads = threads;
              ASSERT_TRUE(encode(clip, p) == reference) << to_string(simd) << " " << threads;
              const auto again = decode(reference, dp);
              ASSERT_EQ(again.size(), decoded.size());
              for (std::size_t i = 0; i < again.size(); ++i)
                ASSERT_EQ(compare(again[i], decoded[i]).largest, 0) << to_string(simd) << " " << threads;
            }
            ++turn;  // another number of threads for each instruction set
          }
}

TEST(RoundTrip, QualityRisesWithLayersPlanesAndBytes) {
  if (kSanitized && !full()) GTEST_SKIP() << "errors and sizes, which are looked at in the release build";
  const Clip clip = make_clip(video(160, 96, "yuv420p"), 16, 16, Pattern::kTexture, 2);
  for (const bool lossless : {false, true})
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
      for (const Coder& coder : kCoders) {
        // The dense profile in two of the four, the fast one in the others.
        if (!full() && (coder.profile == Profile::kDense) != (lossless == (layout == Layout::kT2d))) continue;
        SCOPED_TRACE(testing::Message() << "lossless " << lossless << " layout " << static_cast<int>(layout) << " "
                                        << coder.name);
        CodingParams p = small_gops(16, coder);
        p.quality = 85;
        p.lossless = lossless;
        p.layout = layout;
        const auto stream = encode(clip, p);
        double before = 1e30;
        std::uint64_t read_before = 0;
        for (int layers = 1; layers <= 4; layers += full() ? 1 : 3) {
          DecoderParams dp;
          dp.max_layers = layers;
          CodecStats stats;
          const auto out = decode(stream, dp, &stats);
          const double mse = compare(out.at(0), clip.gops[0]).mse();
          EXPECT_LT(mse, before) << layers;
          EXPECT_GT(stats.stream_bytes, read_before) << layers;
          before = mse;
          read_before = stats.stream_bytes;
        }
        before = 1e30;
        read_before = 0;
        for (int planes = 1; planes <= 30; ++planes) {
          if (!full() && planes % 10 != 0) continue;
          DecoderParams dp;
          dp.max_planes = planes;
          CodecStats stats;
          const auto out = decode(stream, dp, &stats);
          const double mse = compare(out.at(0), clip.gops[0]).mse();
          EXPECT_LE(mse, before * 1.001) << planes;
          EXPECT_GE(stats.stream_bytes, read_before) << planes;
          before = mse;
          read_before = stats.stream_bytes;
        }
        if (lossless) {
          EXPECT_EQ(before, 0);
        }
      }
}

// A reduced picture must look like the original filtered down: compared with the mean over 2x2 (or 2 frames) loosely.
TEST(RoundTrip, ReducedDecodingIsSmallerAndReadsFewerBytes) {
  std::size_t turn = 0;
  for (const bool lossless : {false, true})
    for (const Size& s : {Size{128, 96, 16}, Size{33, 18, 5}, Size{135, 77, 13}, Size{34, 18, 6}}) {
      const Coder& coder = kCoders[turn++ % std::size(kCoders)];
      SCOPED_TRACE(testing::Message() << s.width << "x" << s.height << "x" << s.frames << " lossless " << lossless
                                      << " " << coder.name);
      const Clip clip = make_clip(video(s.width, s.height, "yuv420p"), s.frames, 16, Pattern::kSmooth, 2);
      CodingParams p = small_gops(16, coder);
      p.quality = 90;
      p.lossless = lossless;
      const auto stream = encode(clip, p);
      CodecStats full;
      decode(stream, {}, &full);
      for (int reduce = 0; reduce <= 2; ++reduce)
        for (int temporal = 0; temporal <= 2; ++temporal) {
          DecoderParams dp;
          dp.reduce = reduce;
          dp.temporal_reduce = temporal;
          CodecStats stats;
          const auto out = decode(stream, dp, &stats);
          ASSERT_EQ(out.size(), 1u);
          EXPECT_EQ(out[0].frames(), low_length(s.frames, temporal));
          EXPECT_EQ(out[0].plane(0).shape.width, low_length(s.width, reduce));
          EXPECT_EQ(out[0].plane(1).shape.height, low_length((s.height + 1) / 2, reduce));
          if (reduce + temporal > 0) {
            EXPECT_LT(stats.stream_bytes, full.stream_bytes);
          }
          // The pattern is smooth: a low-pass sample is close to the original at the same place.
          double squared = 0;
          const VolumeView small = out[0].plane(0);
          const VolumeView large = clip.gops[0].plane(0);
          for (int f = 0; f < small.shape.frames; ++f)
            for (int y = 0; y < small.shape.height; ++y)
              for (int x = 0; x < small.shape.width; ++x) {
                const double e = sample(small, f, y, x) - sample(large, f << temporal, y << reduce, x << reduce);
                squared += e * e;
              }
          EXPECT_LT(std::sqrt(squared / static_cast<double>(small.shape.samples())), 12) << reduce << " " << temporal;
        }
    }
}

// Splits that find a single sample amplify nothing, so a reduced flat picture keeps its level whatever its size.
TEST(RoundTrip, ReducedFlatPicturesKeepTheirLevel) {
  for (const Size& s : {Size{1, 40, 9}, Size{40, 1, 9}, Size{3, 3, 1}, Size{24, 16, 9}, Size{1, 1, 3}})
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic}) {
      SCOPED_TRACE(testing::Message() << s.width << "x" << s.height << "x" << s.frames << " layout "
                                      << static_cast<int>(layout));
      Clip clip = make_clip(video(s.width, s.height, "gray"), s.frames, 8, Pattern::kZero, 1);
      for (Gop& g : clip.gops)
        for (int f = 0; f < g.frames(); ++f)
          std::memset(g.plane(0).row(f, 0), 200, static_cast<std::size_t>(s.width * s.height));
      CodingParams p = small_gops(8);
      p.quality = 95;
      p.layout = layout;
      p.temporal_levels = p.spatial_levels = 3;
      const auto stream = encode(clip, p);
      for (int reduce = 0; reduce <= 3; ++reduce)
        for (int temporal = 0; temporal <= (layout == Layout::kT2d ? 3 : 0); ++temporal) {
          DecoderParams dp;
          dp.reduce = reduce;
          dp.temporal_reduce = temporal;
          for (const Gop& g : decode(stream, dp))
            for (int f = 0; f < g.frames(); ++f)
              ASSERT_NEAR(sample(g.plane(0), f, 0, 0), 200, 2) << reduce << " " << temporal;
        }
    }
}

TEST(RoundTrip, DyadicReducesTimeAndPictureTogether) {
  const Clip clip = make_clip(video(96, 64, "gray"), 16, 16, Pattern::kSmooth, 2);
  for (const int spatial : {3, 5}) {
    CodingParams p = small_gops(16);
    p.layout = Layout::kDyadic;
    p.temporal_levels = 3;
    p.spatial_levels = spatial;
    const auto stream = encode(clip, p);
    for (int reduce = 0; reduce <= spatial; ++reduce) {
      DecoderParams dp;
      dp.reduce = reduce;
      const auto out = decode(stream, dp);
      EXPECT_EQ(out.at(0).frames(), low_length(16, std::min(3, reduce)));
      EXPECT_EQ(out.at(0).plane(0).shape.width, low_length(96, reduce));
    }
    DecoderParams dp;
    dp.temporal_reduce = 1;
    EXPECT_THROW(decode(stream, dp), Error);
  }
}

TEST(RoundTrip, FramesAreSelectedExactly) {
  const Clip clip = make_clip(video(40, 24, "gray"), 30, 8, Pattern::kTexture, 2);
  CodingParams p = small_gops(8);
  p.lossless = true;
  const auto stream = encode(clip, p);
  CodecStats full;
  decode(stream, {}, &full);
  for (const auto& [first, end] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 1}, {7, 9}, {8, 16}, {29, 100}, {3, 27}}) {
    DecoderParams dp;
    dp.first_frame = first;
    dp.end_frame = end;
    CodecStats stats;
    const auto out = decode(stream, dp, &stats);
    std::uint64_t frame = first;
    for (const Gop& g : out)
      for (int f = 0; f < g.frames(); ++f, ++frame) {
        EXPECT_EQ(g.times()[static_cast<std::size_t>(f)].pts, static_cast<std::int64_t>(frame));
        const Gop& original = clip.gops[frame / 8];
        for (int y = 0; y < 24; ++y)
          EXPECT_EQ(std::memcmp(g.plane(0).row(f, y), original.plane(0).row(static_cast<int>(frame % 8), y), 40), 0);
      }
    EXPECT_EQ(frame, std::min<std::uint64_t>(end, 30));
    if (end - first < 10) {
      EXPECT_LT(stats.stream_bytes, full.stream_bytes);
    }
  }
}

TEST(RoundTrip, CoefficientsStandBetweenTransformAndCoder) {
  const Clip clip = make_clip(video(64, 48, "yuv420p"), 8, 8, Pattern::kTexture, 4);
  CodingParams p = small_gops(8);
  p.quality = 80;
  p.measure_errors = false;  // that takes the samples
  const auto direct = encode(clip, p);
  MemorySink sink;
  Encoder encoder(clip.info, p, sink);
  CoefficientGop c = encoder.transform(clip.gops[0]);
  std::size_t samples = 0;
  for (const SubbandView& v : c.subbands) {
    ASSERT_NE(v.real, nullptr);
    samples += v.shape.samples();
  }
  EXPECT_EQ(samples, 64u * 48 * 8 * 3 / 2);
  encoder.push_coefficients(c);
  encoder.finish();
  EXPECT_TRUE(sink.bytes == direct);

  MemorySource source(direct.data(), direct.size());
  Decoder decoder(source, {});
  CoefficientGop d;
  ASSERT_TRUE(decoder.pull_coefficients(d));
  Gop gop = decoder.make_gop();
  decoder.inverse(d, gop);
  EXPECT_EQ(compare(gop, decode(direct, {}).at(0)).largest, 0);
}

TEST(RoundTrip, RefusesWhatMeansNothing) {
  const VideoInfo info = video(16, 16, "gray");
  MemorySink sink;
  auto refused = [&](auto change, const VideoInfo& v) {
    EncoderParams p;
    change(p);
    try {
      Encoder e(v, p, sink);
    } catch (const Error& error) {
      return error.kind() == ErrorKind::kBadArgument;
    }
    return false;
  };
  EXPECT_TRUE(refused([](EncoderParams& p) { p.gop_frames = -1; }, info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.gop_frames = 129; }, info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.quality = 101; }, info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.layers = 17; }, info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.block_size = 100; }, info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.spatial = Wavelet::kRev137; }, info));
  EXPECT_TRUE(refused(
      [](EncoderParams& p) {
        p.lossless = true;
        p.step = 3;
      },
      info));
  EXPECT_TRUE(refused([](EncoderParams& p) { p.temporal_levels = 9; }, info));
  EXPECT_TRUE(refused([](EncoderParams&) {}, video(70000, 16, "gray")));
  Encoder e(info, EncoderParams{}, sink);
  Gop wrong(video(17, 16, "gray"), 4);
  wrong.set_frames(4);
  EXPECT_THROW(e.push(wrong), Error);
}

}  // namespace
}  // namespace trivelet
