// Streams with motion: exact if lossless, identical on every path through the library, and cut, damaged and reduced
// like others.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/backend.h"
#include "codec/base/simd.h"
#include "codec/encoder/encoder_params.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/format/container.h"
#include "codec/motion/motion.h"
#include "tests/support/motion_support.h"
#include "tests/support/one_of.h"
#include "trivelet/edit.h"
#include "trivelet/scene_cuts.h"

namespace trivelet {
namespace {

using namespace test;

TEST(MotionStream, LosslessIsExactInEveryFormat) {
  int number = 0;
  OneOf chosen(3);
  for (const char* format : {"gray", "yuv420p", "yuv422p", "yuv444p", "gbrp", "yuva420p", "gray16", "yuv420p10",
                             "gbrp12", "yuv411p", "yuv410p"})
    for (const auto& [width, height] : {std::pair{1, 1}, {5, 3}, {37, 23}, {64, 48}}) {
      if (!chosen()) continue;
      const int frames = 1 + (number++ * 3) % 11;
      const Clip clip = moving_clip(width, height, format, frames, 8);
      EncoderParams p = with_motion(8);
      p.lossless = true;
      p.profile = number % 2 ? Profile::kDense : Profile::kFast;
      const std::vector<Gop> decoded = decode(encode(clip, p), {.threads = 2});
      ASSERT_EQ(decoded.size(), clip.gops.size());
      for (std::size_t i = 0; i < decoded.size(); ++i)
        ASSERT_EQ(compare(clip.gops[i], decoded[i]).largest, 0) << format << " " << width << "x" << height;
    }
}

// Of any number of planes: motion_quality_test says what it is good for.
TEST(MotionStream, TargetsInEveryFormat) {
  OneOf chosen(3);
  for (const char* format :
       {"yuv420p", "gray", "yuv422p", "gbrp", "yuv444p", "yuva420p", "gbrap", "yuv420p10", "gray16"}) {
    if (!chosen()) continue;
    const Clip clip = moving_clip(48, 40, format, 12, 8);
    EncoderParams p = with_motion(8);
    p.psnr = 38;
    EXPECT_NEAR(psnr(clip, decode(encode(clip, p), {.threads = 2})), 38, 0.3) << format;
  }
}

TEST(MotionStream, DependsNeitherOnThreadsNorOnInstructions) {
  const Clip clip = moving_clip(270, 40, "yuv420p", 9, 9);
  EncoderParams p = with_motion(9);
  p.threads = 1;
  p.simd = SimdLevel::kScalar;
  const auto reference = encode(clip, p);
  const std::vector<Gop> decoded = decode(reference, {.threads = 1, .simd = SimdLevel::kScalar});
  OneOf chosen(3);  // both numbers of threads and, on most processors, all instruction sets
  for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    for (const int threads : {2, 4}) {
      if (simd > detected_simd() || !chosen()) continue;
      p.threads = threads;
      p.simd = simd;
      EXPECT_EQ(encode(clip, p), reference) << to_string(simd) << ", " << threads << " threads";
      const std::vector<Gop> other = decode(reference, {.threads = threads, .simd = simd});
      ASSERT_EQ(compare(other[0], decoded[0]).largest, 0) << to_string(simd) << ", " << threads << " threads";
    }
}

// Small pictures have few bytes for each block and layer.
TEST(MotionStream, BlocksAndLayersFitThePicture) {
  const auto chosen = [](int width, int height, Motion motion, Profile profile = Profile::kDense,
                         Effort effort = Effort::kMedium) {
    EncoderParams p;
    p.motion = motion;
    p.profile = profile;
    p.effort = effort;
    p.gop_frames = 32;
    p.quality = 45;
    return resolve(video(width, height, "yuv420p", 64), p);
  };
  EXPECT_EQ(chosen(720, 576, Motion::kOn).block_size, 256);
  EXPECT_EQ(chosen(720, 576, Motion::kAuto).block_size, 256);
  EXPECT_EQ(chosen(720, 576, Motion::kOff).block_size, 128);
  EXPECT_EQ(chosen(720, 577, Motion::kOn).block_size, 128);
  EXPECT_EQ(chosen(720, 576, Motion::kOn, Profile::kFast).block_size, 128);
  EXPECT_EQ(chosen(1920, 1080, Motion::kOn, Profile::kDense, Effort::kSlow).block_size, 256);
  EXPECT_EQ(chosen(176, 144, Motion::kOn).layers, 1);
  EXPECT_EQ(chosen(416, 240, Motion::kOn).layers, 3);
  EXPECT_EQ(chosen(1920, 1080, Motion::kOn).layers, 16);
}

// The features that a stream needs, in its header behind the version.
std::uint8_t required(const std::vector<std::byte>& stream) {
  return std::to_integer<std::uint8_t>(stream[sizeof kSignature + kBoxHeaderBytes + 2]);
}

TEST(MotionStream, OnlyStreamsWithMotionNeedTheFeature) {
  const Clip clip = moving_clip(40, 24, "gray", 4, 4);
  EncoderParams p = with_motion(4);
  p.temporal_levels = 2;
  EXPECT_EQ(required(encode(clip, p)), 1);
  EXPECT_EQ(required(encode(clip, with_motion(4))), 1 | 8) << "levels by GOP";
  EXPECT_EQ(required(encode(clip, with_motion(4, Motion::kAuto))), 1 | 8);
  EXPECT_EQ(required(encode(clip, with_motion(4, Motion::kOff))), 0);
}

// A single frame has no motion, whatever was asked for, and thus the step of streams without.
TEST(MotionStream, StepsOfAQualityAreThoseOfWhatIsCoded) {
  const auto step = [](Motion motion, std::uint64_t frames, double quality) {
    EncoderParams p;
    p.motion = motion;
    p.quality = quality;
    return resolve(video(64, 48, "gray", frames), p).step;
  };
  EXPECT_DOUBLE_EQ(step(Motion::kOff, 64, 64), 4);
  EXPECT_GT(step(Motion::kAuto, 64, 64), 4.5);
  EXPECT_DOUBLE_EQ(step(Motion::kOn, 64, 64), step(Motion::kDefault, 64, 64));
  EXPECT_DOUBLE_EQ(step(Motion::kOn, 1, 64), 4);
  EXPECT_DOUBLE_EQ(step(Motion::kAuto, 64, 100), step(Motion::kOff, 64, 100));
}

TEST(MotionStream, FrameRatesAreHalvedEvenly) {
  const Clip clip = moving_clip(64, 48, "yuv420p", 20, 8);
  const auto stream = encode(clip, with_motion(8));
  for (const int halvings : {1, 2, 3}) {
    std::vector<std::int64_t> times;
    const std::vector<Gop> slow = decode(stream, {.temporal_reduce = halvings, .threads = 2});
    for (const Gop& g : slow)
      for (int f = 0; f < g.frames(); ++f) times.push_back(g.times()[static_cast<std::size_t>(f)].pts);
    for (std::size_t i = 0; i < times.size(); ++i)
      EXPECT_EQ(times[i], (static_cast<std::int64_t>(i + 1) << halvings) - 1);
    EXPECT_EQ(times.size(), static_cast<std::size_t>(20 >> halvings));

    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    rewrite(source, {.temporal_reduce = halvings}, sink);
    EXPECT_LT(sink.bytes.size(), stream.size());
    const std::vector<Gop> extracted = decode(sink.bytes, {.threads = 2});
    ASSERT_EQ(extracted.size(), slow.size());
    for (std::size_t i = 0; i < slow.size(); ++i) EXPECT_EQ(compare(slow[i], extracted[i]).largest, 0);
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(verify_stream(again, {.threads = 2}).damage.empty());
  }
}

TEST(MotionStream, RegionsAndRangesAreThoseOfTheWhole) {
  const Clip clip = moving_clip(160, 96, "yuv420p", 16, 8);
  EncoderParams p = with_motion(8);
  p.part_checks = true;
  const auto stream = encode(clip, p);
  const std::vector<Gop> whole = decode(stream, {.threads = 2});
  DecoderParams part;
  part.threads = 2;
  part.region = {64, 32, 40, 30};
  const std::vector<Gop> region = decode(stream, part);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (int f = 0; f < 8; ++f)
      for (int y = 32; y < 62; ++y)
        for (int x = 64; x < 104; ++x)
          ASSERT_EQ(sample(std::as_const(region[i]).plane(0), f, y, x),
                    sample(std::as_const(whole[i]).plane(0), f, y, x));
  const std::vector<Gop> range = decode(stream, {.first_frame = 10, .end_frame = 13, .threads = 2});
  ASSERT_EQ(range.size(), 1u);
  ASSERT_EQ(range[0].frames(), 3);
  EXPECT_EQ(sample(range[0].plane(0), 0, 5, 5), sample(whole[1].plane(0), 2, 5, 5));
}

std::string keys_of(const std::vector<std::byte>& stream) {
  std::string keys;
  for (const GopInfo& g : info_of(stream).gops) keys += "FLO"[static_cast<int>(g.key)];
  return keys;
}

// One that is longer than a pyramid has its key in the middle, unless a frame more lets others follow, where they may.
TEST(MotionStream, ClosedGopsHaveOneKey) {
  const std::vector<std::pair<int, std::string>> wanted = {{3, "F"}, {4, "L"}, {5, "L"}, {6, "L"}, {7, "L"}};
  for (const auto& [frames, keys] : wanted) {
    Clip clip = moving_clip(40, 24, "gray", frames, frames);
    EncoderParams p = with_motion(frames);
    p.temporal_levels = 2;
    const auto stream = encode(clip, p);
    EXPECT_EQ(keys_of(stream), keys) << frames;
    clip.info.frames = 0;  // more may come
    EXPECT_EQ(keys_of(encode(clip, p)), frames == 5 ? "F" : keys) << frames;
    for (const int reduce : {1, 2}) {
      const std::vector<Gop> decoded = decode(stream, {.temporal_reduce = reduce, .threads = 2});
      const int kept = keys == "L" ? frames >> reduce : ((frames - 1) >> reduce) + 1;
      ASSERT_EQ(decoded.size(), 1u);
      EXPECT_EQ(decoded[0].frames(), kept) << frames << " " << reduce;
    }
  }
}

TEST(MotionStream, GopsAndWhatIsBetweenClosedOnesFitThePictures) {
  const VideoInfo small = video(720, 576, "yuv420p", 0), large = video(722, 576, "yuv420p", 0);
  EncoderParams usual;
  EXPECT_EQ(resolve(small, usual).gop_frames, 64);
  EXPECT_EQ(resolve(large, usual).gop_frames, 32);
  usual.effort = Effort::kSlow;
  EXPECT_EQ(resolve(large, usual).gop_frames, 64);
  usual.motion = Motion::kOff;
  EXPECT_EQ(resolve(large, usual).gop_frames, kStillGopFrames);
  for (const auto& [rate, frames, interval] : {std::tuple{25, 64, 128}, {25, 32, 96}, {30, 32, 128}, {12, 64, 64}}) {
    VideoInfo info = small;
    info.frame_rate = {rate, 1};
    EXPECT_EQ(resolve(info, with_motion(frames)).key_interval, interval) << rate << " " << frames;
  }
  EncoderParams typed = with_motion(64);
  typed.key_interval = 100;
  EXPECT_EQ(resolve(small, typed).key_interval, 100);
}

TEST(MotionStream, IsTheDefaultOfTheDenseProfileAlone) {
  const VideoInfo info = video(64, 48, "yuv420p", 0);
  const auto motion = [&](EncoderParams p) { return resolve(info, p).motion; };
  EXPECT_EQ(motion({}), Motion::kAuto);
  EXPECT_EQ(motion({.lossless = true}), Motion::kAuto);
  EXPECT_EQ(motion({.profile = Profile::kFast}), Motion::kOff);
  EXPECT_EQ(motion({.motion = Motion::kOn, .profile = Profile::kFast}), Motion::kOn);
  EXPECT_EQ(motion({.lossless = true, .profile = Profile::kPredictive}), Motion::kOff);
  EXPECT_EQ(motion({.temporal = Wavelet::kHaar}), Motion::kOff);
  EXPECT_EQ(motion({.temporal = Wavelet::kHaar, .motion = Motion::kAuto}), Motion::kAuto);
  EXPECT_EQ(motion({.gop_frames = 1}), Motion::kOff);
  EXPECT_EQ(motion({.temporal_levels = 0}), Motion::kOff);
  CodingParams slices;
  slices.is_volume = true;
  EXPECT_EQ(resolve(info, slices).motion, Motion::kOff);
}

// Every coefficient that is moved ends in the interval next to its own, nothing else is touched, and the same is done
// by any number of threads.
TEST(MotionStream, RoundsByCostToTheNextInterval) {
  const Clip clip = moving_clip(160, 112, "yuv420p", 8, 8);
  EncoderParams p = with_motion(8);
  p.step = 9;
  MemorySink unused;
  Encoder encoder(clip.info, p, unused);
  const CoefficientGop exact = encoder.transform(clip.gops[0]);
  const StreamHeader header =
      make_header(clip.info, resolve(clip.info, p)).describe_gop(exact.motion->places.levels, exact.motion->places.key);
  EXPECT_EQ(header.centroid, kCostCentroid);
  std::vector<std::vector<LargeVector<float>>> results;
  int up = 0, down = 0;
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    CoefficientGop moved = encoder.transform(clip.gops[0]);
    round_by_cost(header, moved, 9, pool);
    for (std::size_t i = 0; i < moved.subbands.size(); ++i) {
      const SubbandView &a = exact.subbands[i], &b = moved.subbands[i];
      const float inverse = 1 / a.step;
      for (int t = 0; t < a.shape.frames; ++t)
        for (int y = 0; y < a.shape.height; ++y)
          for (int x = 0; x < a.shape.width; ++x) {
            const std::ptrdiff_t at = t * a.frame_stride + y * a.row_stride + x;
            const float was = a.real[at] * inverse, is = b.real[at] * inverse;
            if (a.real[at] == b.real[at]) continue;
            ASSERT_GT(was * is, 0);
            const float change = std::abs(is) - std::abs(was);
            (change > 0 ? up : down) += 1;
            ASSERT_LT(std::abs(change), 2.5f) << was << " became " << is;
            ASSERT_NE(std::floor(std::abs(was)), std::floor(std::abs(is))) << was << " became " << is;
            ASSERT_LT(std::abs(std::abs(is) - std::round(std::abs(is))), 0.02f);
          }
    }
    results.push_back(moved.real);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_GT(up, 50);
  EXPECT_GT(down, 50);
}

// A GOP that is coded again is rounded again, from what it was before.
TEST(MotionStream, RoundsAnewWhatIsCodedAgain) {
  const Clip clip = moving_clip(96, 64, "yuv420p", 8, 8);
  for (const Motion motion : {Motion::kOn, Motion::kOff}) {
    EncoderParams p = with_motion(8);
    p.psnr = 40;
    const auto encoder = cpu_backend().make_encoder(make_header(clip.info, resolve(clip.info, p)), {2});
    std::vector<std::vector<std::uint8_t>> codewords;
    for (const float step : {8.0f, 9.0f, 8.0f}) {
      GopChoices choices;
      choices.motion = motion;
      choices.step = step;
      choices.rounding_step = 2 * step;
      choices.passes = true;
      codewords.empty() ? encoder->push(clip.gops[0], choices) : encoder->push_again(clip.gops[0], choices);
      CodedGop coded;
      ASSERT_TRUE(encoder->pull(coded));
      auto& bytes = codewords.emplace_back();
      for (const auto& component : coded.components)
        for (const CodedBlock& block : component.blocks)
          bytes.insert(bytes.end(), block.bytes.begin(), block.bytes.end());
    }
    EXPECT_NE(codewords[0], codewords[1]);
    EXPECT_EQ(codewords[0], codewords[2]);
  }
}

// Coefficients and their motion, taken out of one stream and put into another.
TEST(MotionStream, CoefficientsKeepTheirMotion) {
  const Clip clip = moving_clip(64, 48, "yuv420p", 8, 8);
  EncoderParams p = with_motion(8);
  p.profile = Profile::kFast;  // the dense one rounds what it transforms itself by what it costs
  MemorySink direct, again;
  {
    Encoder encoder(clip.info, p, direct);
    CoefficientGop c = encoder.transform(clip.gops[0]);
    ASSERT_TRUE(c.motion);
    encoder.push_coefficients(c);
    encoder.finish();
  }
  const std::vector<Gop> decoded = decode(direct.bytes, {.threads = 2});
  EXPECT_EQ(compare(decoded[0], decode(encode(clip, p), {.threads = 2})[0]).largest, 0);
  MemorySource source(direct.bytes.data(), direct.bytes.size());
  Decoder decoder(source, {.threads = 2});
  CoefficientGop c;
  ASSERT_TRUE(decoder.pull_coefficients(c));
  Gop gop = decoder.make_gop();
  CoefficientGop copy = c;
  decoder.inverse(copy, gop);
  EXPECT_EQ(compare(decoded[0], gop).largest, 0);
  // Open ones, too, one after the other.
  p.profile = Profile::kDense;
  const Clip longer = moving_clip(64, 48, "yuv420p", 20, 8);
  const auto open = encode(longer, p);
  ASSERT_EQ(keys_of(open), "LOO");
  MemorySource from(open.data(), open.size());
  Decoder taken(from, {.threads = 2});
  MemorySink copied;
  {
    Encoder encoder(longer.info, p, copied);
    while (taken.pull_coefficients(c)) encoder.push_coefficients(c);
    encoder.finish();
  }
  const std::vector<Gop> wanted = decode(open, {.threads = 2}), found = decode(copied.bytes, {.threads = 2});
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(compare(wanted[i], found[i]).largest, 0) << i;
  MemorySource late(open.data(), open.size());
  Decoder begins(late, {.first_frame = 8, .threads = 2});
  EXPECT_THROW(begins.pull_coefficients(c), Error);
  Encoder alone(longer.info, p, again);
  EXPECT_THROW(alone.push_coefficients(c), Error);
  again.bytes.clear();
  Encoder without(clip.info, with_motion(8, Motion::kOff), again);
  EXPECT_THROW(without.push_coefficients(c), Error);
}

// A scene that begins with a GOP is seen as one that begins inside.
TEST(MotionStream, ScenesMayBeginWithAGop) {
  for (const int cut : {8, 11, 16, 40}) {
    const VideoInfo info = video(64, 48, "yuv420p", 24);
    Clip clip = moving_clip(64, 48, "yuv420p", 24, 24);
    const MutableVolumeView luma = clip.gops[0].plane(0);
    for (int f = cut; f < 24; ++f)
      for (int y = 0; y < 48; ++y)
        for (int x = 0; x < 64; ++x) {
          std::byte& sample = luma.row(f, y)[x];
          sample = static_cast<std::byte>(static_cast<int>(sample) / 8 + (x > 40 ? 200 : 0));
        }
    int next = 0;
    SceneReader reader(info, [&](Gop& gop, int index) {
      if (next == 24) return false;
      for (int c = 0; c < gop.components(); ++c) {
        const VolumeView from = std::as_const(clip.gops[0]).plane(c);
        for (int y = 0; y < from.shape.height; ++y)
          std::memcpy(gop.plane(c).row(index, y), from.row(next, y), static_cast<std::size_t>(from.shape.width));
      }
      ++next;
      return true;
    });
    Gop gop(info, 8);
    int at = 0, scenes = 0;
    for (; reader.read(gop); at += gop.frames()) {
      EXPECT_EQ(gop.begins_scene(), at == cut) << at << " of " << cut;
      scenes += gop.begins_scene();
    }
    EXPECT_EQ(at, 24);
    EXPECT_EQ(scenes, cut < 24);
    EXPECT_EQ(reader.cuts(), cut < 24);
  }
}

// GOPs refer to the one before, except where a scene begins, after so many frames, and behind one that is cut short.
TEST(MotionStream, GopsAreOpenWhereTheyMayBe) {
  Clip clip = moving_clip(32, 24, "yuv420p", 52, 8);
  EncoderParams p = with_motion(8);
  const auto open = encode(clip, p);
  EXPECT_EQ(keys_of(open), "LOOOOOO");
  p.key_interval = 24;
  EXPECT_EQ(keys_of(encode(clip, p)), "LOOLOOO");  // the last is too short to have its key alone
  p.key_interval = 1;
  const auto closed = encode(clip, p);
  EXPECT_EQ(keys_of(closed), "LLLLLLL");
  EXPECT_LT(open.size(), closed.size());
  p.key_interval = 0;
  clip.gops[2].set_begins_scene(true);
  clip.gops[6].set_begins_scene(true);
  EXPECT_EQ(keys_of(encode(clip, p)), "LOLOOOL");
  clip.gops[4].set_frames(5);
  EXPECT_EQ(keys_of(encode(clip, p)), "LOLOOLL");
  clip.gops[1].set_frames(1);
  const auto cut = encode(clip, p);
  EXPECT_EQ(keys_of(cut), "LOLOOLL");
  for (const int reduce : {0, 1, 3}) {
    std::size_t kept = 0;
    for (const Gop& g : decode(cut, {.temporal_reduce = reduce, .threads = 2}))
      kept += static_cast<std::size_t>(g.frames());
    MemorySource source(cut.data(), cut.size());
    EXPECT_EQ(Decoder(source, {.temporal_reduce = reduce}).output().frames, kept) << reduce;
  }
}

/// A source that cannot go back.
class PipeSource final : public ByteSource {
 public:
  explicit PipeSource(ByteSource& source) : source_(source) {}
  std::size_t read(void* data, std::size_t size) override { return source_.read(data, size); }
  bool seekable() const override { return false; }
  void seek(std::uint64_t) override { FAIL() << "a pipe"; }
  std::uint64_t size() const override { return 0; }

 private:
  ByteSource& source_;
};

std::size_t sum_of_frames(const std::vector<Gop>& gops) {
  std::size_t n = 0;
  for (const Gop& g : gops) n += static_cast<std::size_t>(g.frames());
  return n;
}

// Frames of any range are those of the whole, from a file and from a pipe, and so is an extract of them.
TEST(MotionStream, OpenGopsAreReachedAtRandom) {
  const Clip clip = moving_clip(64, 48, "yuv420p", 40, 8);
  EncoderParams p = with_motion(8);
  p.key_interval = 24;
  p.lossless = true;  // hashes are looked at where they can be, not elsewhere
  const auto stream = encode(clip, p);
  ASSERT_EQ(keys_of(stream), "LOOLO");
  const std::vector<Gop> whole = decode(stream, {.threads = 2});
  for (const bool seekable : {true, false})
    for (std::uint64_t first = 0; first < 40; first += 3) {
      MemorySource memory(stream.data(), stream.size());
      PipeSource pipe(memory);
      Decoder decoder(seekable ? static_cast<ByteSource&>(memory) : pipe,
                      {.first_frame = first, .end_frame = first + 3, .threads = 2});
      Gop gop = decoder.make_gop();
      std::uint64_t at = first;
      while (decoder.pull(gop))
        for (int f = 0; f < gop.frames(); ++f, ++at)
          for (int y = 0; y < 48; ++y)
            ASSERT_EQ(std::memcmp(std::as_const(gop).plane(0).row(f, y),
                                  whole[at / 8].plane(0).row(static_cast<int>(at % 8), y), 64),
                      0)
                << at;
      EXPECT_EQ(at, std::min<std::uint64_t>(40, first + 3));
    }
  for (const std::uint64_t first : {0, 12, 18, 25}) {
    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    const RewriteResult r = rewrite(source, {.first_frame = first, .end_frame = first + 2}, sink);
    EXPECT_EQ(r.first_frame, first / 24 * 24) << "a closed one";
    const std::vector<Gop> part = decode(sink.bytes, {.threads = 2});
    for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(compare(whole[r.first_frame / 8 + i], part[i]).largest, 0);
  }
}

// Lossless comes back, whatever is open.
TEST(MotionStream, OpenGopsAreExact) {
  const Clip clip = moving_clip(96, 64, "yuv420p", 28, 8);
  EncoderParams p = with_motion(8);
  p.lossless = true;
  const auto exact = encode(clip, p);
  EXPECT_EQ(keys_of(exact), "LOOO");
  const std::vector<Gop> decoded = decode(exact, {.threads = 2});
  for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(compare(clip.gops[i], decoded[i]).largest, 0);
}

// Damage of a GOP affects it and the one open GOP that depends on it.
TEST(MotionStream, DamageEndsBehindTheNextOpenGop) {
  const Clip clip = moving_clip(64, 48, "gray", 40, 8);
  const auto stream = encode(clip, with_motion(8));
  const std::vector<Gop> whole = decode(stream, {.threads = 2});
  const StreamInfo info = info_of(stream);
  auto bytes = stream;
  bytes[static_cast<std::size_t>(info.gops[1].offset + info.gops[1].bytes) - 40] ^= std::byte{255};
  EXPECT_THROW(decode(bytes, {.threads = 2}), Error);
  CodecStats stats;
  const std::vector<Gop> partial = decode(bytes, {.keep_partial = true, .threads = 2}, &stats);
  ASSERT_EQ(partial.size(), 5u);
  EXPECT_EQ(stats.damaged_gops, 2u);
  for (const std::size_t i : {0, 3, 4}) EXPECT_EQ(compare(partial[i], whole[i]).largest, 0) << i;
  EXPECT_NE(std::find_if(stats.damage.begin(), stats.damage.end(),
                         [](const std::string& s) { return s.find("key frame before") != std::string::npos; }),
            stats.damage.end());

  // Without the whole packet.
  auto lost = stream;
  lost[static_cast<std::size_t>(info.gops[1].offset)] ^= std::byte{255};
  const std::vector<Gop> fewer = decode(lost, {.keep_partial = true, .threads = 2}, &stats);
  EXPECT_EQ(sum_of_frames(fewer), 32u);
  EXPECT_GT(stats.damaged_gops, 0u);
  EXPECT_EQ(compare(fewer[2], whole[3]).largest, 0);
  MemorySource source(lost.data(), lost.size());
  MemorySink sink;
  EXPECT_EQ(rewrite(source, {.keep_partial = true}, sink).frames, 8u) << "what depends on what is lost goes with it";
}

// An extract leaves out what is damaged and the open GOPs behind it, up to the next closed one; and GOPs before the range
// that lead to nothing in it any more.
TEST(MotionStream, ExtractsAroundDamageBetweenClosedGops) {
  const Clip clip = moving_clip(64, 48, "gray", 40, 8);
  EncoderParams params = with_motion(8);
  params.key_interval = 24;
  const auto stream = encode(clip, params);
  ASSERT_EQ(keys_of(stream), "LOOLO");
  const std::vector<Gop> whole = decode(stream, {.threads = 2});
  const StreamInfo info = info_of(stream);
  const auto damaged_in = [&](std::size_t gop) {
    auto bytes = stream;
    bytes[static_cast<std::size_t>(info.gops[gop].offset + info.gops[gop].bytes) - 40] ^= std::byte{255};
    return bytes;
  };
  const auto expect = [&](const std::vector<std::byte>& bytes, RewriteParams range,
                          const std::vector<std::size_t>& left, const std::string& keys) {
    MemorySource source(bytes.data(), bytes.size());
    MemorySink sink;
    EXPECT_THROW(rewrite(source, range, sink), Error);
    range.keep_partial = true;
    MemorySource again(bytes.data(), bytes.size());
    sink.bytes.clear();
    const RewriteResult r = rewrite(again, range, sink);
    EXPECT_EQ(r.frames, 8 * left.size());
    EXPECT_EQ(r.first_frame, 8 * left.front());
    EXPECT_EQ(keys_of(sink.bytes), keys);
    const std::vector<Gop> part = decode(sink.bytes, {.threads = 2});
    ASSERT_EQ(part.size(), left.size());
    for (std::size_t i = 0; i < left.size(); ++i) EXPECT_EQ(compare(whole[left[i]], part[i]).largest, 0) << i;
  };
  expect(damaged_in(1), {}, {0, 3, 4}, "LLO");
  expect(damaged_in(2), {}, {0, 1, 3, 4}, "LOLO");
  expect(damaged_in(3), {}, {0, 1, 2}, "LOO");
  expect(damaged_in(1), {.first_frame = 18, .end_frame = 30}, {3}, "L");
  const auto last = damaged_in(4);
  MemorySource source(last.data(), last.size());
  MemorySink sink;
  EXPECT_THROW(rewrite(source, {.first_frame = 34, .keep_partial = true}, sink), Error) << "nothing of it is left";
}

// A damaged section costs its level and finer ones, in its GOP only, and is reported.
TEST(MotionStream, DamagedMotionIsFoundAndContained) {
  const Clip clip = moving_clip(64, 48, "gray", 24, 8);
  EncoderParams params = with_motion(8);
  params.key_interval = 8;
  const auto stream = encode(clip, params);
  const std::vector<Gop> whole = decode(stream, {.threads = 2});
  MemorySource intact(stream.data(), stream.size());
  const StreamInfo info = probe(intact);
  auto bytes = stream;
  const std::size_t packet = static_cast<std::size_t>(info.gops[1].offset) + kBoxHeaderBytes;
  std::uint32_t head = 0;
  std::memcpy(&head, bytes.data() + packet, 4);
  bytes[packet + head + 3] ^= std::byte{255};
  EXPECT_THROW(decode(bytes, {.threads = 2}), Error);
  CodecStats stats;
  const std::vector<Gop> partial = decode(bytes, {.keep_partial = true, .threads = 2}, &stats);
  ASSERT_EQ(partial.size(), 3u);
  EXPECT_EQ(stats.damaged_gops, 1u);
  ASSERT_FALSE(stats.damage.empty());
  EXPECT_NE(stats.damage[0].find("motion"), std::string::npos) << stats.damage[0];
  EXPECT_EQ(compare(partial[0], whole[0]).largest, 0);
  EXPECT_EQ(compare(partial[2], whole[2]).largest, 0);
  EXPECT_GT(compare(partial[1], whole[1]).largest, 0);
  MemorySource source(bytes.data(), bytes.size());
  EXPECT_FALSE(verify_stream(source, {.threads = 2}).damage.empty());
}

TEST(MotionStream, RefusesWhatItCannotDo) {
  const VideoInfo info = video(64, 48, "gray");
  MemorySink sink;
  EncoderParams p = with_motion(8);
  p.motion = Motion::kOff;
  p.temporal = Wavelet::kMotion;
  EXPECT_THROW(Encoder(info, p, sink), Error);
}

}  // namespace
}  // namespace trivelet
