// The gain of motion compensation: streams with motion take fewer bytes and meet their targets, and the index states
// their errors.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codec/format/container.h"
#include "tests/support/motion_support.h"
#include "tests/support/one_of.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;

TEST(MotionQuality, IsBetterThanWithoutInEveryFormat) {
  OneOf chosen(5);
  for (const char* format : {"yuv420p", "gray", "yuv422p", "gbrp", "yuv444p", "yuva420p", "yuv420p10", "gray16"}) {
    if (!chosen()) continue;
    const Clip clip = moving_clip(112, 80, format, 16, 16);
    EncoderParams p = with_motion(16);
    p.psnr = 38;
    const auto moving = encode(clip, p);
    p.motion = Motion::kOff;
    const auto still = encode(clip, p);
    EXPECT_LT(moving.size() * 10, still.size() * 9) << format;
    EXPECT_NEAR(psnr(clip, decode(moving, {.threads = 2})), 38, 0.2) << format;
  }
}

// A search that is content with less takes other vectors, at about the same size and quality.
TEST(MotionQuality, EffortIsThatOfTheSearch) {
  const Clip clip = moving_clip(160, 96, "yuv420p", 8, 8);
  EncoderParams p = with_motion(8);
  p.step = 24;
  const auto medium = encode(clip, p);
  p.effort = Effort::kFast;
  const auto fast = encode(clip, p);
  EXPECT_NE(fast, medium);
  EXPECT_NEAR(static_cast<double>(fast.size()), static_cast<double>(medium.size()),
              0.1 * static_cast<double>(medium.size()));
  EXPECT_NEAR(psnr(clip, decode(fast, {.threads = 2})), psnr(clip, decode(medium, {.threads = 2})), 1);
}

// Noise has no motion: `auto` leaves it out, and costs next to nothing.
TEST(MotionQuality, AutoLeavesOutWhatDoesNotPay) {
  const Clip noise = make_clip(video(96, 64, "gray", 16), 16, 16, Pattern::kNoise, 3);
  EncoderParams p = with_motion(16, Motion::kOff);
  p.psnr = 36;
  const auto still = encode(noise, p).size();
  p.motion = Motion::kAuto;
  EXPECT_LE(encode(noise, p).size(), still + 16);
  const Clip clip = moving_clip(96, 64, "gray", 16, 16);
  EXPECT_EQ(encode(clip, with_motion(16, Motion::kAuto)).size(), encode(clip, with_motion(16)).size());
}

TEST(MotionQuality, MeetsTargets) {
  const Clip clip = moving_clip(96, 64, "yuv420p", 32, 16);
  for (const double bpp : {0.2, 0.6}) {
    EncoderParams p = with_motion(16);
    p.bits_per_pixel = bpp;
    const double wanted = bpp * 96 * 64 * 32 / 8;
    const auto size = static_cast<double>(encode(clip, p).size());
    EXPECT_LE(size, wanted);
    EXPECT_GE(size, 0.97 * wanted);
  }
}

// What the index says of a layer is what its pictures have.
TEST(MotionQuality, ErrorsInTheIndexAreTrue) {
  const Clip clip = moving_clip(192, 128, "yuv420p", 16, 16);
  EncoderParams p = with_motion(16);
  p.quality = 50;
  p.layers = 6;
  const auto stream = encode(clip, p);
  MemorySource source(stream.data(), stream.size());
  const StreamInfo info = probe(source);
  for (int layers = 3; layers <= 6; ++layers) {
    const double error = error_of(info.gops[0].layers[static_cast<std::size_t>(layers - 1)].error);
    const double said = 10 * std::log10(255 * 255 / error);
    EXPECT_NEAR(said, psnr(clip, decode(stream, {.max_layers = layers, .threads = 2})), 0.3) << layers;
  }
}

// Random textures of several scales, which move.
Clip textured_clip(int width, int height, const std::string& format, int frames, int gop_frames) {
  Clip clip = moving_clip(width, height, format, frames, gop_frames);
  const auto lattice = [](int y, int x, int octave) {
    std::uint32_t h = static_cast<std::uint32_t>(y) * 73856093u ^ static_cast<std::uint32_t>(x) * 19349663u ^
                      static_cast<std::uint32_t>(octave) * 83492791u;
    h = (h ^ h >> 13) * 1274126177u;
    return static_cast<double>((h ^ h >> 16) & 0xffff) / 65535;
  };
  const auto texture = [&](double y, double x) {
    double sum = 0;
    for (int octave = 1; octave <= 5; ++octave) {
      const double at_y = std::ldexp(y, -octave) + 1000, at_x = std::ldexp(x, -octave) + 1000;
      const int j = static_cast<int>(at_y), i = static_cast<int>(at_x);
      const double v = at_y - j, u = at_x - i;
      sum += (0.02 + 0.03 * octave) * ((1 - v) * ((1 - u) * lattice(j, i, octave) + u * lattice(j, i + 1, octave)) +
                                       v * ((1 - u) * lattice(j + 1, i, octave) + u * lattice(j + 1, i + 1, octave)));
    }
    return sum;
  };
  const PixelFormat& f = clip.info.format;
  for (Gop& gop : clip.gops)
    for (int c = 0; c < gop.components(); ++c) {
      const MutableVolumeView v = gop.plane(c);
      const double sy = f.is_chroma(c) ? 1 << f.log2_chroma_h : 1, sx = f.is_chroma(c) ? 1 << f.log2_chroma_w : 1;
      for (int t = 0; t < v.shape.frames; ++t)
        for (int y = 0; y < v.shape.height; ++y)
          for (int x = 0; x < v.shape.width; ++x) {
            const double time = static_cast<double>(gop.times()[static_cast<std::size_t>(t)].pts);
            const auto q = static_cast<std::uint16_t>(
                std::lround(((1 << f.bits) - 1) * texture(sy * y + 0.5 * time, sx * x - 1.75 * time)));
            std::memcpy(v.row(t, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample, &q,
                        static_cast<std::size_t>(v.bytes_per_sample));
          }
    }
  return clip;
}

// Of larger pictures a few windows are measured, the same by any number of threads and any instruction set; open GOPs with
// the key frame before.
TEST(MotionQuality, ErrorsInTheIndexComeFromWindows) {
  OneOf chosen(2);
  for (const char* format : {"yuv420p", "gbrp", "gray12"}) {
    if (!chosen()) continue;
    for (const bool lossless : {false, true}) {
      const Clip clip = textured_clip(264, 200, format, 16, 8);
      EncoderParams p = with_motion(8);
      p.layers = 5;
      p.quality = 50;
      p.lossless = lossless;
      const auto stream = encode(clip, p);
      const StreamInfo info = info_of(stream);
      const double peak = (1 << clip.info.format.bits) - 1;
      for (int layers = 3; layers <= (lossless ? 4 : 5); ++layers) {
        double error = 0;
        for (const GopInfo& g : info.gops) error += error_of(g.layers[static_cast<std::size_t>(layers - 1)].error) / 2;
        const double said = 10 * std::log10(peak * peak / error);
        const double reached = psnr(clip, decode(stream, {.max_layers = layers, .threads = 2}));
        if (reached > 60)  // a few samples that are wrong by one
          EXPECT_GT(said, 60) << format << " " << layers;
        else
          EXPECT_NEAR(said, reached, 0.5) << format << " " << lossless << " " << layers;
      }
      p.threads = 3;
      p.simd = SimdLevel::kScalar;
      EXPECT_EQ(encode(clip, p), stream) << format << " " << lossless;
    }
  }
}

// 20 frames in GOPs of 8, at a third of the rates: evenly spaced, and what an extract delivers.

// The mean of squares of 2x2 samples, which a picture of half the size comes near to.
double distance_from_half(const Gop& full, const Gop& half) {
  const VolumeView a = full.plane(0), b = half.plane(0);
  double sum = 0;
  for (int f = 0; f < b.shape.frames; ++f)
    for (int y = 0; y + 1 < b.shape.height; ++y)
      for (int x = 0; x + 1 < b.shape.width; ++x) {
        const double mean = (sample(a, f, 2 * y, 2 * x) + sample(a, f, 2 * y, 2 * x + 1) +
                             sample(a, f, 2 * y + 1, 2 * x) + sample(a, f, 2 * y + 1, 2 * x + 1)) /
                            4.0;
        sum += std::pow(sample(b, f, y, x) - mean, 2);
      }
  return sum / static_cast<double>(b.shape.samples());
}

// Half the size follows the same motion; how far it strays is bounded by what half the size without motion does.
TEST(MotionQuality, SmallerPicturesFollowTheSameMotion) {
  OneOf chosen(2);
  for (const char* format : {"yuv420p", "gray", "gbrp"}) {
    if (!chosen()) continue;
    const Clip clip = moving_clip(96, 64, format, 16, 16);
    EncoderParams p = with_motion(16);
    p.quality = 70;
    const auto moving = encode(clip, p);
    p.motion = Motion::kOff;
    const auto still = encode(clip, p);
    const double strays = distance_from_half(clip.gops[0], decode(moving, {.reduce = 1, .threads = 2})[0]);
    const double plain = distance_from_half(clip.gops[0], decode(still, {.reduce = 1, .threads = 2})[0]);
    EXPECT_LT(strays, 1.5 * plain + 4) << format;
    for (int reduce = 1; reduce <= 3; ++reduce) {
      MemorySource source(moving.data(), moving.size());
      MemorySink sink;
      rewrite(source, {.reduce = reduce}, sink);
      const std::vector<Gop> direct = decode(moving, {.reduce = reduce, .threads = 2});
      const std::vector<Gop> extracted = decode(sink.bytes, {.threads = 2});
      EXPECT_EQ(compare(direct[0], extracted[0]).largest, 0) << format << " " << reduce;
    }
  }
}

TEST(MotionQuality, TruncationKeepsTheMotion) {
  const Clip clip = moving_clip(160, 96, "yuv420p", 16, 8);
  EncoderParams p = with_motion(8);
  p.layers = 6;
  const auto stream = encode(clip, p);
  double before = 0;
  for (const std::uint64_t size : {stream.size() / 2, stream.size() * 3 / 4, stream.size() * 9 / 10}) {
    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    rewrite(source, {.target_bytes = size}, sink);
    EXPECT_LE(sink.bytes.size(), size);
    EXPECT_GE(sink.bytes.size(), size * 9 / 10);
    const double now = psnr(clip, decode(sink.bytes, {.threads = 2}));
    EXPECT_GT(now, before + 0.2);
    before = now;
  }
  EXPECT_GT(before, 30);
}

// What rounding by cost is for, and that the index knows of it.
TEST(MotionQuality, RoundingByCostSavesBytes) {
  const Clip clip = moving_clip(144, 96, "yuv420p", 16, 16);
  EncoderParams p = with_motion(16);
  p.layers = 1;
  p.quality = 51.4;
  const auto rounded = encode(clip, p);
  const double reached = psnr(clip, decode(rounded, {.threads = 2}));
  EXPECT_NEAR(10 * std::log10(255 * 255 / error_of(info_of(rounded).gops[0].layers[0].error)), reached, 0.1);
  // Targets have it, too.
  p.psnr = reached;
  const auto at_psnr = encode(clip, p);
  EXPECT_NEAR(psnr(clip, decode(at_psnr, {.threads = 2})), reached, 0.1);
  EXPECT_LT(at_psnr.size() * 100, rounded.size() * 108) << "109 if all are rounded down";
  p.psnr = 0;
  p.target_bytes = rounded.size();
  const auto at_size = encode(clip, p);
  EXPECT_LE(at_size.size(), rounded.size());
  EXPECT_GT(psnr(clip, decode(at_size, {.threads = 2})), reached - 0.36) << "0.44 less if all are rounded down";
}

// What rounding along motion is for: fewer bytes at the same error, whatever the threads and instructions, in closed and
// open GOPs; with targets, too.
TEST(MotionQuality, RoundingAlongMotionSavesBytes) {
  const Clip clip = moving_clip(144, 96, "yuv420p", 24, 16);
  EncoderParams p = with_motion(16);
  p.block_size = 128;
  p.layers = 1;
  const auto curve = [&](Effort effort, double quality) {
    p.effort = effort;
    p.quality = quality;
    const auto stream = encode(clip, p);
    return std::pair(std::log2(static_cast<double>(stream.size())), psnr(clip, decode(stream, {.threads = 2})));
  };
  const auto [fine_bytes, fine] = curve(Effort::kMedium, 50);
  const auto [coarse_bytes, coarse] = curve(Effort::kMedium, 38);
  const auto [bytes, reached] = curve(Effort::kSlow, 44);
  const double as_good = coarse_bytes + (fine_bytes - coarse_bytes) * (reached - coarse) / (fine - coarse);
  EXPECT_LT(bytes, as_good - 0.015);
  const auto reference = encode(clip, p);
  p.threads = 1;
  p.simd = SimdLevel::kScalar;
  EXPECT_EQ(encode(clip, p), reference);
  p.psnr = 38;
  EXPECT_NEAR(psnr(clip, decode(encode(clip, p), {.threads = 2})), 38, 0.2);
}

// Errors that the index states hold for open GOPs, too.
TEST(MotionQuality, OpenGopsKnowTheirErrors) {
  const Clip clip = moving_clip(160, 96, "yuv420p", 28, 8);
  EncoderParams p = with_motion(8);
  p.layers = 6;
  p.psnr = 37;
  const auto lossy = encode(clip, p);
  const StreamInfo info = info_of(lossy);
  EXPECT_NEAR(psnr(clip, decode(lossy, {.threads = 2})), 37, 0.1);
  // Those of the lowest, which not all GOPs are measured at, less well.
  for (int layers = 1; layers <= 6; ++layers) {
    double error = 0;
    for (const GopInfo& g : info.gops)
      error += g.frames * error_of(g.layers[static_cast<std::size_t>(layers - 1)].error);
    const double said = 10 * std::log10(255 * 255 * 28 / error);
    EXPECT_NEAR(said, psnr(clip, decode(lossy, {.max_layers = layers, .threads = 2})), layers < 4 ? 0.8 : 0.4)
        << layers;
  }
}

}  // namespace
}  // namespace trivelet
