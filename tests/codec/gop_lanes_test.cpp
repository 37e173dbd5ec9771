// GOPs coded and decoded in parallel by lanes of threads give the bytes, samples and errors of serial coding.

#include "codec/cpu/gop_lanes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "codec/encoder/encoder_params.h"
#include "tests/support/one_of.h"
#include "tests/support/short_gops.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using test::Clip;
using test::Pattern;
using test::short_gop_params;
using test::short_gops;

constexpr int kMany = 16;  // threads, for five lanes

struct Case {
  Profile profile;
  bool lossless;
};
constexpr Case kCases[] = {
    {Profile::kFast, false}, {Profile::kFast, true}, {Profile::kDense, false}, {Profile::kDense, true}};

TEST(GopLanes, AreWhereThreadsAreMany) {
  const VideoInfo info = short_gops(43).info;
  const StreamHeader h = make_header(info, resolve(info, short_gop_params(1)));
  const auto lanes = [&h](int threads, std::uint64_t bytes, std::uint64_t gops = 0) {
    BackendOptions options;
    options.threads = threads;
    return lanes_for(h, options, bytes, gops);
  };
  EXPECT_EQ(lanes(1, 1), 1);
  EXPECT_EQ(lanes(7, 1), 1);
  EXPECT_EQ(lanes(8, 1), 3);
  EXPECT_EQ(lanes(kMany, 1), 5);
  EXPECT_EQ(lanes(kMany, kMany * kLaneBytes / 3), 3) << "as many as the memory is for";
  EXPECT_EQ(lanes(kMany, kMany * kLaneBytes * 2), 1);
  EXPECT_EQ(lanes(kMany, 1, 100), 5);
  EXPECT_EQ(lanes(kMany, 1, 2), 2) << "as many as there are GOPs";
  BackendOptions given;
  given.threads = kMany;
  given.workers.run = [](int, const std::function<void(int)>&) {};
  EXPECT_EQ(lanes_for(h, given, 1, 0), 1) << "the library is to start no threads";
}

TEST(GopLanes, WriteTheSameBytes) {
  for (const char* format : {"yuv420p", "gray16"})
    for (const Case& c : kCases) {
      const Clip clip = short_gops(43, format);
      const auto expected = test::encode(clip, short_gop_params(1, c.profile, c.lossless));
      EXPECT_TRUE(test::encode(clip, short_gop_params(kMany, c.profile, c.lossless)) == expected)
          << format << c.lossless;
    }
  // Blocks from which a sample of errors is drawn, and the errors of all layers.
  const Clip large = test::make_clip(test::video(200, 150, "yuv420p", 20), 20, 4, Pattern::kTexture, 5);
  EncoderParams p = short_gop_params(1);
  p.block_size = 128;
  const auto expected = test::encode(large, p);
  p.threads = kMany;
  EXPECT_TRUE(test::encode(large, p) == expected);
}

TEST(GopLanes, CoefficientsGoThroughThem) {
  const Clip clip = short_gops(43);
  const auto coded = [&clip](int threads) {
    MemorySink sink;
    Encoder encoder(clip.info, short_gop_params(threads), sink);
    for (std::size_t i = 0; i < clip.gops.size(); ++i) {
      if (i % 3 != 1) {
        encoder.push(clip.gops[i]);
        continue;
      }
      CoefficientGop coefficients = encoder.transform(clip.gops[i]);
      encoder.push_coefficients(coefficients);
    }
    encoder.finish();
    return std::move(sink.bytes);
  };
  EXPECT_TRUE(coded(kMany) == coded(1));
}

TEST(GopLanes, DeliverTheSameSamples) {
  for (const Case& c : kCases) {
    const std::vector<std::byte> stream = test::encode(short_gops(43), short_gop_params(2, c.profile, c.lossless));
    for (const int reduce : {0, 1}) {
      DecoderParams p{.threads = 1};
      p.reduce = p.temporal_reduce = reduce;
      const std::vector<Gop> expected = test::decode(stream, p);
      p.threads = kMany;
      const std::vector<Gop> pulled = test::decode(stream, p);
      ASSERT_EQ(pulled.size(), expected.size());
      MemorySource source(stream.data(), stream.size());
      Decoder decoder(source, p);
      Gop gop = decoder.make_gop(), other;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        EXPECT_EQ(test::compare(pulled[i], expected[i]).largest, 0);
        ASSERT_TRUE(decoder.exchange(gop));
        ASSERT_EQ(gop.frames(), expected[i].frames());
        EXPECT_EQ(gop.times()[0].pts, expected[i].times()[0].pts);
        EXPECT_EQ(test::compare(gop, expected[i]).largest, 0);
      }
      EXPECT_FALSE(decoder.exchange(gop));
    }
  }
}

// Coefficients can be pulled at any time, also when the GOP was already decoded to samples.
TEST(GopLanes, SamplesAndCoefficientsByTurns) {
  const std::vector<std::byte> stream = test::encode(short_gops(43), short_gop_params(2));
  const std::vector<Gop> expected = test::decode(stream, DecoderParams{.threads = 1});
  MemorySource source(stream.data(), stream.size());
  Decoder decoder(source, {.threads = kMany});
  Gop gop = decoder.make_gop();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (i % 4 < 2) {
      CoefficientGop coefficients;
      ASSERT_TRUE(decoder.pull_coefficients(coefficients));
      decoder.inverse(coefficients, gop);
    } else {
      ASSERT_TRUE(decoder.pull(gop));
    }
    EXPECT_EQ(test::compare(gop, expected[i]).largest, 0) << i;
  }
}

// Every byte of a stream in turn, or nearly: what is delivered, what is said, and where it ends.
TEST(GopLanes, DamageIsWhatItIsWithoutThem) {
  struct Outcome {
    std::vector<Gop> gops;
    int error = -1;
    std::vector<std::string> damage;
  };
  const auto outcome = [](const std::vector<std::byte>& stream, bool keep, int threads) {
    Outcome o;
    try {
      MemorySource source(stream.data(), stream.size());
      DecoderParams p{.threads = threads};
      p.keep_partial = keep;
      Decoder decoder(source, p);
      Gop gop = decoder.make_gop();
      for (;;) {
        const bool more = decoder.pull(gop);
        o.damage = decoder.stats().damage;
        if (!more) break;
        o.gops.push_back(gop);
      }
    } catch (const Error& e) {
      o.error = static_cast<int>(e.kind());
    }
    return o;
  };
  std::size_t errors = 0, damaged = 0;
  for (const Profile profile : {Profile::kFast, Profile::kDense}) {
    const Clip clip = test::make_clip(test::video(40, 30, "gray", 24), 24, 4, Pattern::kTexture, 3);
    const std::vector<std::byte> stream = test::encode(clip, short_gop_params(1, profile));
    for (std::size_t at = 0; at < stream.size(); at += test::kSanitized ? 499 : 251)
      for (const bool keep : {false, true}) {
        std::vector<std::byte> flipped = stream;
        flipped[at] ^= std::byte{0x40};
        const Outcome expected = outcome(flipped, keep, 1), lanes = outcome(flipped, keep, 8);
        EXPECT_EQ(lanes.error, expected.error) << at;
        EXPECT_EQ(lanes.damage, expected.damage) << at;
        ASSERT_EQ(lanes.gops.size(), expected.gops.size()) << at;
        for (std::size_t i = 0; i < lanes.gops.size(); ++i)
          EXPECT_EQ(test::compare(lanes.gops[i], expected.gops[i]).largest, 0) << at;
        errors += expected.error >= 0;
        damaged += !expected.damage.empty();
      }
  }
  EXPECT_GT(errors, 5u);
  EXPECT_GT(damaged, 5u);
}

TEST(GopLanes, MayBeLeftAtAnyTime) {
  const Clip clip = short_gops(43);
  const std::vector<std::byte> stream = test::encode(clip, short_gop_params(2));
  for (std::size_t n = 0; n < 7; ++n) {
    MemorySink sink;
    Encoder encoder(clip.info, short_gop_params(kMany), sink);
    for (std::size_t i = 0; i < n; ++i) encoder.push(clip.gops[i]);
    MemorySource source(stream.data(), stream.size());
    Decoder decoder(source, {.threads = kMany});
    Gop gop = decoder.make_gop();
    for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(decoder.pull(gop));
  }
}

// The caller's check is asked in lanes, too; what it throws arrives, and ends them.
TEST(GopLanes, AreEndedByTheCheck) {
  const Clip clip = short_gops(43);
  const std::vector<std::byte> stream = test::encode(clip, short_gop_params(2));
  std::atomic<int> left = 0;
  Workers workers;
  workers.check = [&left] {
    if (left.fetch_sub(1) <= 0) fail(ErrorKind::kIo, "enough");
  };
  int ended = 0;
  for (const int calls : {0, 1, 20, 100, 200}) {
    left = calls;
    EncoderParams p = short_gop_params(kMany);
    p.workers = workers;
    MemorySink sink;
    try {
      Encoder encoder(clip.info, p, sink);
      for (const Gop& g : clip.gops) encoder.push(g);
      encoder.finish();
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "enough");
      ++ended;
    }
    left = calls;
    DecoderParams d{.threads = kMany};
    d.workers = workers;
    try {
      MemorySource source(stream.data(), stream.size());
      Decoder decoder(source, d);
      Gop gop = decoder.make_gop();
      while (decoder.pull(gop)) {
      }
    } catch (const Error& e) {
      EXPECT_STREQ(e.what(), "enough");
      ++ended;
    }
  }
  EXPECT_GT(ended, 7);
}

}  // namespace
}  // namespace trivelet
