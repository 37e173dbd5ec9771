// Statistics of stages: the stages of an encoder and a decoder add up to nearly all of their time.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codec/threads/stopwatch.h"
#include "tests/support/boxes.h"
#include "tests/support/rate_support.h"

namespace trivelet {
namespace {

using namespace test;

// The stages account for nearly all of an encoder's time, in every mode, with one thread and with two. Time taken by
// other programs belongs to no stage, so the best of some runs counts.
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

}  // namespace
}  // namespace trivelet
