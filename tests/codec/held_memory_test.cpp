// What a decoder holds at once, of which there is little where memory is never given back (WebAssembly): GOPs of other
// lengths use the same memory, and samples take the place of the frames that they are made of.
#include <gtest/gtest.h>

#include "tests/support/held_memory.h"
#include "tests/support/motion_support.h"
#include "trivelet/codec.h"

namespace trivelet {
namespace {

using namespace test;

constexpr std::size_t kMiB = std::size_t{1} << 20;

DecoderParams one_by_one(std::uint64_t first_frame = 0) {
  DecoderParams p;
  p.first_frame = first_frame;
  p.threads = 1;
  p.reads_ahead = false;
  return p;
}

// The most that is held while f() runs, beyond what is held before.
template <class F>
std::size_t most_during(const F& f) {
  const std::size_t before = held;
  most_held = before;
  f();
  return most_held - before;
}

// GOPs of 33 and then of 21 frames of 1080p: luma in fewer strips, chroma in none.
TEST(Memory, StaysForShorterGops) {
  const VideoInfo info = video(1920, 1080, "yuv420p", 54);
  EncoderParams p;
  p.profile = Profile::kFast;
  p.motion = Motion::kOff;
  p.gop_frames = 33;
  p.threads = 2;
  MemorySink sink;
  {
    Encoder encoder(info, p, sink);
    Gop gop(info, 33);
    for (const int frames : {33, 21}) {
      gop.set_frames(frames);
      for (int c = 0; c < gop.components(); ++c) {
        const MutableVolumeView v = gop.plane(c);
        for (int f = 0; f < frames; ++f)
          for (int y = 0; y < v.shape.height; ++y)
            for (int x = 0; x < v.shape.width; ++x) v.row(f, y)[x] = static_cast<std::byte>(((x + y) >> 3) + f);
      }
      encoder.push(gop);
    }
    encoder.finish();
  }
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  Decoder decoder(source, one_by_one());
  Gop gop = decoder.make_gop();
  const std::size_t before = held;
  const std::size_t first = most_during([&] { ASSERT_TRUE(decoder.pull(gop)); });
  EXPECT_LT(first, 100 * kMiB) << "60 MiB for a strip, 16 for low rows, and what is not zero";
  const std::size_t between = held;
  const std::size_t second = most_during([&] { ASSERT_TRUE(decoder.pull(gop)); });
  EXPECT_EQ(gop.frames(), 21);
  EXPECT_LE(between + second, before + first + kMiB);
}

class MemoryWithMotion : public testing::Test {
 protected:
  static constexpr int kFrames = 17;
  static constexpr std::size_t kSamples = std::size_t{320} * 256 * kFrames;  // bytes of a GOP

  MemoryWithMotion() {
    const Clip clip = moving_clip(320, 256, "gray", 2 * kFrames, kFrames);
    EncoderParams p = with_motion(kFrames);
    stream_ = encode(clip, p);
  }
  std::size_t most_of(std::uint64_t first_frame, bool releases) const {
    MemorySource source(stream_.data(), stream_.size());
    Decoder decoder(source, one_by_one(first_frame));
    Gop gop = decoder.make_gop();
    if (releases) gop.release();
    const std::size_t most = most_during([&] { EXPECT_TRUE(decoder.pull(gop)); });
    EXPECT_EQ(decoder.stats().passed_gops, first_frame == 0 ? 0u : 1u);
    return most;
  }

  std::vector<std::byte> stream_;
};

TEST_F(MemoryWithMotion, SamplesTakeThePlaceOfFrames) {
  EXPECT_LT(most_of(0, true), most_of(0, false) + kSamples / 3) << "frames of 16 bits are freed for samples";
}

// Of two GOPs the second one is decoded into what the first one left.
TEST_F(MemoryWithMotion, SamplesThatAreExchangedTakeThePlaceOfFrames) {
  const auto most_of_both = [&](bool exchanges) {
    MemorySource source(stream_.data(), stream_.size());
    Decoder decoder(source, one_by_one());
    Gop gop = decoder.make_gop();
    return most_during([&] {
      for (int i = 0; i < 2; ++i) EXPECT_TRUE(exchanges ? decoder.exchange(gop) : decoder.pull(gop));
    });
  };
  EXPECT_LT(most_of_both(true), most_of_both(false) + kSamples / 3) << "before, samples had memory of their own";
}

TEST_F(MemoryWithMotion, NothingIsHeldForSamplesThatAreNotWanted) {
  ASSERT_EQ(info_of(stream_).gops.at(1).key, GopKey::kOpen);
  EXPECT_LT(most_of(kFrames, true), most_of(kFrames, false) + kSamples / 3);
}

}  // namespace
}  // namespace trivelet
