// Temporal levels per GOP with motion: the choice, and streams whose GOPs have different levels.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "codec/base/simd.h"
#include "codec/format/container.h"
#include "codec/motion/level_choice.h"
#include "tests/support/boxes.h"
#include "tests/support/container_support.h"
#include "tests/support/motion_support.h"
#include "tests/support/one_of.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;

constexpr int kFramesOfGop = 8;

/// Pictures that move, and in every second GOP pictures that nothing predicts. The last GOP is shorter.
Clip partly_moving_clip(int width, int height, const char* format, int gops) {
  Clip clip = moving_clip(width, height, format, gops * kFramesOfGop - 3, kFramesOfGop);
  for (std::size_t i = 1; i < clip.gops.size(); i += 2) {
    Gop& gop = clip.gops[i];
    const std::vector<FrameTime> times = gop.times();
    fill(gop, gop.frames(), clip.info.format, Pattern::kNoise, static_cast<std::uint32_t>(i));
    gop.times() = times;
  }
  return clip;
}

/// Made once, for several tests take it: GOPs of three levels and of one take turns.
const std::vector<std::byte>& stream_of_turns() {
  static const std::vector<std::byte> stream =
      encode(partly_moving_clip(48, 40, "yuv420p", 4), with_motion(kFramesOfGop));
  return stream;
}

/// The headers of a stream and of its GOPs.
struct HeadersOfStream {
  StreamHeader stream;
  std::vector<GopHeader> gops;
  explicit HeadersOfStream(const std::vector<std::byte>& bytes) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(bytes.data());
    for (const BoxAt& box : list_boxes(p, bytes.size())) {
      const std::uint8_t* payload = p + box.payload();
      if (box.type == "Head") stream = parse_stream_header(payload, box.length);
      if (box.type == "Gop ") gops.push_back(parse_gop_header(stream, payload, load(payload, 4)));
    }
  }
  std::vector<int> levels() const {
    std::vector<int> all;
    for (const GopHeader& g : gops) all.push_back(g.motion_levels());
    return all;
  }
};

LevelChoice chosen_levels(const Gop& gop, const VideoInfo& info, int most, int threads, SimdLevel simd) {
  ThreadPool pool(threads);
  return choose_levels(gop, info.format.bits, most, pool, simd);
}

TEST(LevelChoice, FollowsWhatCanBePredicted) {
  for (const char* format : {"gray", "yuv420p10", "gray16", "gbrp"}) {
    const Clip clip = partly_moving_clip(96, 64, format, 2);
    const LevelChoice moving = chosen_levels(clip.gops[0], clip.info, 5, 1, SimdLevel::kScalar);
    EXPECT_EQ(moving.levels, 3) << format << ": eight frames have no further distance";
    EXPECT_TRUE(moving.moves) << format;
    EXPECT_EQ(chosen_levels(clip.gops[0], clip.info, 2, 1, SimdLevel::kScalar).levels, 2) << format;
    const LevelChoice noise = chosen_levels(clip.gops[1], clip.info, 5, 1, SimdLevel::kScalar);
    EXPECT_EQ(noise.levels, 1) << format;
    EXPECT_FALSE(noise.moves) << format;
  }
}

// A camera that stands still before a flat wall: noise on most of the picture, which nothing predicts, and a pattern.
TEST(LevelChoice, NoiseOfFlatBlocksCountsLittle) {
  constexpr int kFrames = 16;
  Clip clip = moving_clip(96, 64, "gray", kFrames, kFrames);
  std::mt19937 random(7);
  const MutableVolumeView v = clip.gops[0].plane(0);
  const auto fill = [&](bool has_pattern) {
    for (int f = 0; f < kFrames; ++f)
      for (int y = 0; y < 64; ++y)
        for (int x = 0; x < 96; ++x) {
          const bool inside = has_pattern && x < 32 && y < 32;
          const unsigned at_rest = inside ? static_cast<unsigned>((x * x * 5 + y * x * 3) % 160) : 100;
          v.row(f, y)[x] = static_cast<std::byte>(at_rest + random() % 3);
        }
  };
  fill(true);
  const LevelChoice pattern = chosen_levels(clip.gops[0], clip.info, 4, 1, SimdLevel::kScalar);
  EXPECT_EQ(pattern.levels, 4);
  EXPECT_TRUE(pattern.moves);
  for (const int lost : pattern.lost) EXPECT_LT(lost, 20);
  fill(false);
  EXPECT_EQ(chosen_levels(clip.gops[0], clip.info, 4, 1, SimdLevel::kScalar).levels, 1) << "noise alone";
}

TEST(LevelChoice, DependsNeitherOnThreadsNorOnInstructions) {
  const Clip clip = partly_moving_clip(400, 390, "yuv420p", 2);  // looked at in pictures of a quarter of the size
  for (const Gop& gop : clip.gops) {
    const LevelChoice wanted = chosen_levels(gop, clip.info, 5, 1, SimdLevel::kScalar);
    for (const SimdLevel simd : {SimdLevel::kAvx2, SimdLevel::kAvx512}) {
      if (simd > detected_simd()) continue;
      const LevelChoice got = chosen_levels(gop, clip.info, 5, 3, simd);
      EXPECT_EQ(got.levels, wanted.levels) << to_string(simd);
      EXPECT_EQ(got.moves, wanted.moves) << to_string(simd);
      EXPECT_EQ(got.lost, wanted.lost) << to_string(simd);
    }
  }
}

TEST(LevelChoice, TakesPicturesAndGopsOfAnySize) {
  for (const auto& [width, height] : {std::pair{1, 1}, {7, 90}, {8, 8}, {2100, 9}})
    for (const int frames : {1, 2, 3}) {
      const Clip clip = moving_clip(width, height, "gray", frames, frames);
      const LevelChoice choice = chosen_levels(clip.gops[0], clip.info, 4, 2, SimdLevel::kBest);
      EXPECT_GE(choice.levels, 1) << width << "x" << height;
      EXPECT_LE(choice.levels, 4) << width << "x" << height;
    }
}

TEST(MotionLevels, EachGopHasItsOwn) {
  const Clip clip = partly_moving_clip(48, 40, "yuv420p", 4);
  const HeadersOfStream by_gop(stream_of_turns());
  EXPECT_TRUE(by_gop.stream.levels_by_gop);
  EXPECT_EQ(by_gop.levels(), (std::vector<int>{3, 1, 3, 1}));
  // A GOP refers to the one before whatever levels that one has.
  for (std::size_t i = 1; i < by_gop.gops.size(); ++i) EXPECT_EQ(by_gop.gops[i].key, GopKey::kOpen) << i;
  EncoderParams typed = with_motion(kFramesOfGop);
  typed.temporal_levels = 3;
  const HeadersOfStream same(encode(clip, typed));
  EXPECT_FALSE(same.stream.levels_by_gop);
  EXPECT_EQ(same.levels(), (std::vector<int>{3, 3, 3, 3}));
}

TEST(MotionLevels, LosslessIsExact) {
  OneOf chosen(2);
  for (const char* format : {"yuv420p", "gray16", "gbrp"})
    for (const Profile profile : {Profile::kDense, Profile::kFast}) {
      if (!chosen()) continue;
      const Clip clip = partly_moving_clip(37, 26, format, 4);
      EncoderParams p = with_motion(kFramesOfGop);
      p.lossless = true;
      p.profile = profile;
      const std::vector<Gop> decoded = decode(encode(clip, p), {.threads = 2});
      ASSERT_EQ(decoded.size(), clip.gops.size());
      for (std::size_t i = 0; i < decoded.size(); ++i)
        EXPECT_EQ(compare(clip.gops[i], decoded[i]).largest, 0) << format << ", GOP " << i;
    }
}

TEST(MotionLevels, StreamsDependNeitherOnThreadsNorOnInstructions) {
  const Clip clip = partly_moving_clip(64, 48, "yuv420p", 3);
  EncoderParams p = with_motion(kFramesOfGop, Motion::kAuto);
  p.threads = 1;
  p.simd = SimdLevel::kScalar;
  const auto wanted = encode(clip, p);
  const std::vector<Gop> decoded = decode(wanted, {.threads = 1, .simd = SimdLevel::kScalar});
  p.threads = 3;
  p.simd = SimdLevel::kBest;
  EXPECT_EQ(encode(clip, p), wanted);
  const std::vector<Gop> again = decode(wanted, {.threads = 3});
  for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(compare(decoded[i], again[i]).largest, 0) << i;
}

// Frames at places that are multiples of 2^n remain, of GOPs with fewer levels than n, too: all are evenly spaced.
TEST(MotionLevels, LowerFrameRatesAreEven) {
  const Clip clip = partly_moving_clip(48, 40, "yuv420p", 4);
  const std::vector<std::byte>& stream = stream_of_turns();
  for (const int reduce : {0, 1}) {
    const std::vector<Gop> whole = decode(stream, {.reduce = reduce, .threads = 2});
    for (int n = 1; n <= 3; ++n) {
      const std::vector<Gop> slower = decode(stream, {.reduce = reduce, .temporal_reduce = n, .threads = 2});
      std::int64_t wanted = 0;  // the first frame has a place of its own
      std::size_t frames = 0;
      for (const Gop& gop : slower)
        for (int f = 0; f < gop.frames(); ++f, ++frames) {
          wanted += 1 << n;
          EXPECT_EQ(gop.times()[static_cast<std::size_t>(f)].pts, wanted - 1) << n;
        }
      EXPECT_EQ(frames, (4 * kFramesOfGop - 3u) >> n) << n;
    }
    // Of GOPs of one level the frames of a quarter of the rate are some of those of half of it.
    const std::vector<Gop> half = decode(stream, {.reduce = reduce, .temporal_reduce = 1, .threads = 2});
    const std::vector<Gop> quarter = decode(stream, {.reduce = reduce, .temporal_reduce = 2, .threads = 2});
    for (int c = 0; c < half[1].components(); ++c)
      for (int f = 0; f < quarter[1].frames(); ++f)
        for (int y = 0; y < half[1].plane(c).shape.height; ++y)
          ASSERT_EQ(std::memcmp(half[1].plane(c).row(2 * f + 1, y), quarter[1].plane(c).row(f, y),
                                half[1].plane(c).row_bytes()),
                    0);
    EXPECT_EQ(whole.size(), clip.gops.size());
  }
}

// What is left of a stream without its finest levels decodes to what the whole one decodes to without them.
TEST(MotionLevels, ExtractsLeaveOutTheLevelsThatEachGopHas) {
  const std::vector<std::byte>& stream = stream_of_turns();
  for (int n = 1; n <= 3; ++n) {
    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    RewriteParams params;
    params.temporal_reduce = n;
    (void)rewrite(source, params, sink);
    EXPECT_LT(sink.bytes.size(), stream.size());
    const std::vector<Gop> wanted = decode(stream, {.temporal_reduce = n, .threads = 2});
    const std::vector<Gop> got = decode(sink.bytes, {.threads = 2});
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(compare(wanted[i], got[i]).largest, 0) << n << ", GOP " << i;
  }
}

TEST(MotionLevels, TargetsAreMet) {
  const Clip clip = partly_moving_clip(48, 40, "yuv420p", 4);
  EncoderParams p = with_motion(kFramesOfGop);
  p.psnr = 36;
  EXPECT_NEAR(psnr(clip, decode(encode(clip, p), {.threads = 2})), 36, 0.3);
  p.psnr = 0;
  p.bits_per_pixel = 2;
  const std::size_t most = 2 * 48 * 40 * (4 * kFramesOfGop - 3) / 8;
  const std::size_t size = encode(clip, p).size();
  EXPECT_LE(size, most);
  EXPECT_GT(size, most * 9 / 10);
}

TEST(MotionLevels, HeadersAreChecked) {
  const Clip clip = partly_moving_clip(48, 40, "gray", 2);
  const HeadersOfStream headers(encode(clip, with_motion(kFramesOfGop)));
  const auto kind = [&](const StreamHeader& stream, const GopHeader& g) {
    const Bytes bytes = serialise(stream, g);
    return kind_of([&] { parse_gop_header(stream, bytes.data(), bytes.size()); });
  };
  const StreamHeader& stream = headers.stream;
  EXPECT_EQ(kind(stream, headers.gops[1]), ErrorKind::kInternal);
  GopHeader g = headers.gops[1];
  g.motion.resize(4);
  EXPECT_EQ(kind(stream, g), ErrorKind::kBadStream) << "more levels than the stream";
  g = headers.gops[0];
  g.key = GopKey::kLast;
  g.motion.resize(3);
  g.frames = 7;
  g.times.resize(7);
  EXPECT_EQ(kind(stream, g), ErrorKind::kBadStream) << "too few frames for a last key of three levels";
  StreamHeader still = stream;
  still.motion = false;
  const Bytes bytes = serialise(still);
  EXPECT_EQ(kind_of([&] { parse_stream_header(bytes.data(), bytes.size()); }), ErrorKind::kBadStream);
}

}  // namespace
}  // namespace trivelet
