// Predicted keys on every backend against the CPU: the same streams and samples.
//
// Built twice, like backends_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "codec/encoder/encoder_params.h"
#include "gpu/motion/motion_ahead.h"
#include "tests/support/backends_support.h"
#include "tests/support/motion_support.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"
#include "trivelet/packet_decoder.h"

namespace trivelet {
namespace {

using namespace test;

/// Tests that take a case emulated without TRIVELET_FULL, too; together they are a sample of all.
enum Sample : unsigned { kStreams = 1, kSamples = 2, kDamage = 4, kPackets = 8 };

struct KeyCase {
  std::string name;
  int width, height, frames, gop, levels;
  const char* format;
  Profile profile;
  double quality;       // 0: lossless
  unsigned sample = 0;  // of Sample
  bool large = false;
  bool in_place = false;  // of a still scene
};

const std::vector<KeyCase>& key_cases() {
  static const std::vector<KeyCase> cases = {
      {"a long chain", 48, 32, 40, 8, 3, "yuv420p", Profile::kDense, 60, kStreams | kSamples},
      {"dense", 40, 32, 24, 4, 2, "yuv420p", Profile::kDense, 50, kStreams | kDamage},
      {"fast", 37, 29, 24, 4, 2, "yuv420p", Profile::kFast, 60, kStreams | kPackets},
      {"several keys", 34, 26, 19, 6, 1, "yuv444p10le", Profile::kDense, 60, kStreams | kSamples},
      {"colours", 64, 48, 16, 4, 1, "gbrp", Profile::kDense, 40},
      {"alpha", 26, 22, 16, 4, 2, "yuva420p", Profile::kFast, 60},
      {"smallest cells", 40, 36, 16, 4, 1, "yuv410p", Profile::kFast, 60},
      {"lossless", 41, 27, 16, 4, 2, "yuv420p", Profile::kFast, 0},
      {"lossless colours", 24, 18, 19, 5, 1, "gbrp", Profile::kDense, 0, kStreams},
      {"lossless sixteen bits", 30, 26, 16, 4, 1, "gray16le", Profile::kFast, 0},
      {"in place", 48, 32, 24, 8, 3, "yuv420p", Profile::kDense, 45, kStreams | kDamage | kPackets, false, true},
      {"in place, fast", 37, 29, 24, 4, 2, "yuv420p", Profile::kFast, 45, kStreams, false, true},
      {"in place, lossless", 41, 27, 19, 6, 1, "gbrp", Profile::kDense, 0, kStreams | kSamples, false, true},
      {"720p", 1280, 720, 64, 8, 3, "yuv420p", Profile::kDense, 50, 0, true},
      {"720p lossless", 1282, 722, 16, 4, 1, "yuv420p10le", Profile::kFast, 0, 0, true},
  };
  return cases;
}

class KeyBackends : public ::testing::TestWithParam<KeyCase> {
 protected:
  void SetUp() override {
    if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
    if (kEmulated && GetParam().large) GTEST_SKIP() << "too large to be emulated";
  }
  static bool is_left_out(Sample test) { return is_sampled() && (GetParam().sample & test) == 0; }
  static bool is_sampled() { return kEmulated && !full(); }
  Clip clip() const {
    const KeyCase& c = GetParam();
    // Of three GOPs the last has a key that is predicted from a predicted one; short GOPs predict later.
    const int frames = is_sampled() ? std::min(c.frames, (c.gop > 5 ? 3 : 4) * c.gop) : c.frames;
    return moving_clip(c.width, c.height, c.format, frames, c.gop, c.in_place ? 0 : 1);
  }
  EncoderParams params() const {
    const KeyCase& c = GetParam();
    EncoderParams p = with_motion(c.gop);
    p.key_prediction = c.in_place ? KeyPrediction::kAuto : KeyPrediction::kOn;
    p.key_interval = 4 * c.gop;
    p.temporal_levels = c.levels;
    p.profile = c.profile;
    p.lossless = c.quality == 0;
    if (!p.lossless) p.quality = c.quality;
    return p;
  }
  std::vector<std::byte> stream() const {
    std::vector<std::byte> bytes = encode_with(nullptr, clip(), params());
    EXPECT_TRUE(predicts_keys(bytes));
    return bytes;
  }
  static bool predicts_keys(const std::vector<std::byte>& bytes) {
    const StreamInfo info = info_of(bytes);
    return std::any_of(info.gops.begin(), info.gops.end(), [](const GopInfo& g) { return g.predicts_keys; });
  }
};

TEST_P(KeyBackends, StreamsAreTheSame) {
  if (is_left_out(kStreams)) GTEST_SKIP() << "not of the sample";
  const auto cuda = gpu::cuda_backend(0, 0);
  for (const Motion motion : {Motion::kOn, Motion::kAuto}) {
    if (is_sampled() && GetParam().in_place == (motion == Motion::kOn)) continue;
    EncoderParams p = params();
    p.motion = motion;
    const Clip film = clip();
    const std::vector<std::byte> expected = encode_with(nullptr, film, p);
    EXPECT_TRUE(predicts_keys(expected) || motion == (GetParam().in_place ? Motion::kOn : Motion::kAuto));
    EXPECT_TRUE(expected == encode_with(cuda.get(), film, p)) << static_cast<int>(motion);
  }
}

// Whole, with all that can be left out, and from the middle of a chain.
TEST_P(KeyBackends, SamplesAreTheSame) {
  if (is_left_out(kSamples)) GTEST_SKIP() << "not of the sample";
  const auto cuda = gpu::cuda_backend(0, 0);
  const std::vector<std::byte> bytes = stream();
  const KeyCase& c = GetParam();
  const Decomposition d = info_of(bytes).decomposition;
  const auto frame = [&](int gop, int number) { return static_cast<std::uint64_t>(gop * c.gop + number); };
  const int small = std::min(1, d.spatial_levels), slow = std::min(1, d.temporal_levels);
  const std::vector<DecoderParams> ways = {
      {.threads = 2},
      {.reduce = small, .threads = 2},
      {.temporal_reduce = slow, .threads = 2},
      {.reduce = std::min(2, d.spatial_levels), .temporal_reduce = d.temporal_levels, .threads = 2},
      {.max_planes = 3, .threads = 2},
      {.max_layers = 1, .threads = 2},
      {.first_frame = frame(2, 1), .end_frame = frame(2, 3), .threads = 2},
      {.first_frame = frame(1, 0), .threads = 2},
      {.reduce = small, .temporal_reduce = slow, .first_frame = frame(2, 0), .threads = 2},
  };
  for (std::size_t way = 0; way < ways.size(); ++way) {
    if (is_sampled() && (way + bytes.size()) % 3 != 0) continue;
    SCOPED_TRACE("way " + std::to_string(way));
    const Decoded expected = decode_with(nullptr, bytes, ways[way]);
    EXPECT_TRUE(expected.error.empty() && !expected.gops.empty()) << expected.error;
    expect_equal(expected, decode_with(cuda.get(), bytes, ways[way]));
  }
}

// A GOP that is lost, and one that is damaged: the keys behind them refer to what is there.
TEST_P(KeyBackends, DamageIsTheSame) {
  if (is_left_out(kDamage)) GTEST_SKIP() << "not of the sample";
  const auto cuda = gpu::cuda_backend(0, 0);
  const std::vector<std::byte> bytes = stream();
  const StreamInfo info = info_of(bytes);
  std::mt19937 random(3);
  for (std::size_t gop = 0; gop < 2; ++gop)
    for (const bool head : {true, false}) {
      const auto begin = static_cast<std::size_t>(info.gops[gop].offset);
      const auto size = static_cast<std::size_t>(info.gops[gop].bytes);
      std::vector<std::byte> damaged = bytes;
      damaged[head ? begin + 9 : begin + size / 2 + random() % (size / 2)] ^= std::byte{0x55};
      for (const bool keep : {true, false}) {
        SCOPED_TRACE(std::to_string(gop) + (head ? " lost" : " damaged") + (keep ? ", kept" : ""));
        const DecoderParams p{.keep_partial = keep, .threads = 2};
        expect_equal(decode_with(nullptr, damaged, p), decode_with(cuda.get(), damaged, p));
      }
    }
}

// Packet by packet, with a jump, and a part of the chain decoded again at another size.
TEST_P(KeyBackends, PacketsAreTheSame) {
  if (is_left_out(kPackets)) GTEST_SKIP() << "not of the sample";
  const auto cuda = gpu::cuda_backend(0, 0);
  const std::vector<std::byte> bytes = stream();
  const StreamInfo info = info_of(bytes);
  PacketDecoder host, device({}, cuda.get());
  PacketDecoder::Decoded on_host, on_device;
  for (PacketDecoder* d : {&host, &device}) d->set_header(bytes.data(), static_cast<std::size_t>(info.gops[0].offset));
  for (const std::size_t i : {0u, 1u, 2u, 0u, 1u}) {
    const DecoderParams p{.reduce = i == 2 ? std::min(1, info.decomposition.spatial_levels) : 0, .threads = 2};
    const void* data = bytes.data() + info.gops[i].offset;
    const auto size = static_cast<std::size_t>(info.gops[i].bytes);
    ASSERT_TRUE(host.add(data, size) && device.add(data, size)) << i;
    ASSERT_TRUE(host.decode(p, on_host) && device.decode(p, on_device)) << i;
    ASSERT_EQ(on_host.gop.frames(), on_device.gop.frames()) << i;
    EXPECT_EQ(compare(on_host.gop, on_device.gop).largest, 0) << i;
  }
}

// Down to where the device has room for no two searches, for none, and for no GOP.
TEST(KeyCoding, FindsRoomOrLeavesTheHostWhatItMust) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const bool sampled = kEmulated && !full();
  const Clip clip = moving_clip(40, 32, "yuv420p", sampled ? 8 : 15, 4);
  EncoderParams p = with_motion(4);
  p.key_prediction = KeyPrediction::kOn;
  p.temporal_levels = 2;
  p.quality = 50;
  const std::vector<std::byte> expected = encode_with(nullptr, clip, p);
  const StreamHeader header = make_header(clip.info, resolve(clip.info, p));
  bool ahead = false, alone = false;
  for (std::size_t memory = std::size_t{sampled ? 8u : 64u} << 20; memory > 0; memory /= sampled ? 4u : 2u) {
    try {
      EXPECT_TRUE(expected == encode_with(gpu::cuda_backend(0, memory).get(), clip, p)) << memory;
      (gpu::MotionAhead(header, {}, 0, memory / 2).most() > 0 ? ahead : alone) = true;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
      break;
    }
  }
  EXPECT_TRUE(ahead && alone) << ahead << alone;
}

INSTANTIATE_TEST_SUITE_P(All, KeyBackends, ::testing::ValuesIn(key_cases()), [](const auto& of) {
  std::string name;
  for (const char c : of.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace trivelet
