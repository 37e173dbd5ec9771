// Predicted keys: chosen where they pay, the same on every path through the library, and cut, damaged and reduced like
// others.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "codec/base/simd.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/container.h"
#include "codec/motion/motion.h"
#include "tests/support/boxes.h"
#include "tests/support/container_support.h"
#include "tests/support/motion_support.h"
#include "tests/support/one_of.h"
#include "trivelet/edit.h"
#include "trivelet/packet_decoder.h"

namespace trivelet {
namespace {

using namespace test;

constexpr int kChainGop = 8;
constexpr int kChainGops = 6;  // the fifth one is closed

EncoderParams with_predicted_keys() {
  EncoderParams p = with_motion(kChainGop);
  p.key_interval = 4 * kChainGop;
  p.key_prediction = KeyPrediction::kOn;
  return p;
}

// Under sanitizers pictures have half the samples where no number of theirs is asked for.
const bool kSmall = kSanitized && !full();
const int kFilmWidth = kSmall ? 48 : 64, kFilmHeight = kSmall ? 32 : 48;

Clip film(const char* format = "yuv420p", int gops = kChainGops) {
  return moving_clip(64, 48, format, gops * kChainGop, kChainGop);
}

/// Made once, for most tests take it.
const std::vector<std::byte>& stream_of_film() {
  static const std::vector<std::byte> stream = encode(film(), with_predicted_keys());
  return stream;
}

const std::vector<Gop>& decoded_film() {
  static const std::vector<Gop> gops = decode(stream_of_film(), {.threads = 2});
  return gops;
}

std::vector<GopHeader> gops_of(const std::vector<std::byte>& stream) {
  std::vector<GopHeader> gops;
  StreamHeader header;
  const auto* p = reinterpret_cast<const std::uint8_t*>(stream.data());
  for (const BoxAt& box : list_boxes(p, stream.size())) {
    const std::uint8_t* payload = p + box.payload();
    if (box.type == "Head") header = parse_stream_header(payload, box.length);
    if (box.type == "Gop ") gops.push_back(parse_gop_header(header, payload, load(payload, 4)));
  }
  return gops;
}

// L, O: closed and open GOPs with the key last; P: open, with predicted keys.
std::string chain_of(const std::vector<std::byte>& stream) {
  std::string chain;
  for (const GopHeader& g : gops_of(stream))
    chain += g.key == GopKey::kOpen ? (g.predicts_keys ? 'P' : 'O') : g.predicts_keys ? 'p' : 'L';
  return chain;
}

void expect_same(const std::vector<Gop>& a, const std::vector<Gop>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].frames(), b[i].frames()) << i;
    EXPECT_EQ(compare(a[i], b[i]).largest, 0) << i;
  }
}

TEST(PredictedKeys, AreChosenWhereTheyPay) {
  const Clip clip = film();
  EncoderParams p = with_predicted_keys();
  const auto& predicted = stream_of_film();
  EXPECT_EQ(chain_of(predicted), "LPPPLP");
  p.key_prediction = KeyPrediction::kOff;
  const auto alone = encode(clip, p);
  EXPECT_EQ(chain_of(alone), "LOOOLO");
  EXPECT_LT(predicted.size(), alone.size() * 19 / 20);
  EXPECT_NEAR(psnr(clip, decoded_film()), psnr(clip, decode(alone, {.threads = 2})), 0.3);

  Clip noise = film();
  for (std::size_t i = 0; i < noise.gops.size(); ++i) {
    const std::vector<FrameTime> times = noise.gops[i].times();
    fill(noise.gops[i], kChainGop, noise.info.format, Pattern::kNoise, static_cast<std::uint32_t>(i));
    noise.gops[i].times() = times;
  }
  p.key_prediction = KeyPrediction::kOn;
  EXPECT_EQ(chain_of(encode(noise, p)), "LOOOLO");
}

// The encoder predicts from what decoders have: else errors would grow from GOP to GOP.
TEST(PredictedKeys, DoNotDriftInAWholeDecoder) {
  OneOf some(kSanitized ? 3 : 1);
  for (const Profile profile : {Profile::kDense, Profile::kFast})
    for (const Effort effort : {Effort::kMedium, Effort::kSlow}) {
      if (!some()) continue;
      const Clip clip = moving_clip(64, 48, "yuv420p", 10 * kChainGop, kChainGop);
      EncoderParams p = with_predicted_keys();
      p.key_interval = 1000;
      p.quality = 40;
      p.profile = profile;
      p.effort = effort;
      const auto stream = encode(clip, p);
      EXPECT_EQ(chain_of(stream), "LPPPPPPPPP");
      const std::vector<Gop> decoded = decode(stream, {.threads = 2});
      const auto psnr_of = [&](std::size_t i) {
        Difference d = compare(clip.gops[i], decoded[i]);
        return 10 * std::log10(255.0 * 255 * static_cast<double>(d.samples) / d.squared);
      };
      EXPECT_GT(psnr_of(9), psnr_of(0) - 0.5);
    }
}

TEST(PredictedKeys, LosslessIsExact) {
  for (const char* format : {"yuv420p", "gbrp", "gray16"}) {
    const int gops = kSanitized ? 3 : kChainGops;
    const Clip clip = moving_clip(kFilmWidth, kFilmHeight, format, gops * kChainGop, kChainGop);
    EncoderParams p = with_predicted_keys();
    p.lossless = true;
    const auto stream = encode(clip, p);
    EXPECT_NE(chain_of(stream).find('P'), std::string::npos) << format;
    const std::vector<Gop> decoded = decode(stream, {.threads = 2});
    for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(compare(clip.gops[i], decoded[i]).largest, 0) << format;
    MemorySource source(stream.data(), stream.size());
    EXPECT_TRUE(verify_stream(source, {.threads = 2}).damage.empty());
  }
}

// Of GOPs with few levels several frames are keys, each predicted from the one before.
TEST(PredictedKeys, ManyInAGop) {
  OneOf some(kSanitized ? 3 : 1);
  for (const bool lossless : {false, true})
    for (const Effort effort : {Effort::kMedium, Effort::kSlow}) {
      if (!some()) continue;
      const Clip clip = moving_clip(kFilmWidth, kFilmHeight, "yuv420p", 29, 9);
      EncoderParams p = with_predicted_keys();
      p.gop_frames = 9;
      p.temporal_levels = 1;
      p.quality = 65;
      p.lossless = lossless;
      p.effort = effort;
      const auto stream = encode(clip, p);
      const std::vector<GopHeader> gops = gops_of(stream);
      EXPECT_TRUE(gops[0].predicts_keys) << "a closed one";
      const std::vector<Gop> decoded = decode(stream, {.threads = 2});
      for (std::size_t i = 0; lossless && i < decoded.size(); ++i)
        EXPECT_EQ(compare(clip.gops[i], decoded[i]).largest, 0);
      p.key_prediction = KeyPrediction::kOff;
      const auto alone = encode(clip, p);
      EXPECT_LT(stream.size(), alone.size());
      if (!lossless) {
        EXPECT_NEAR(psnr(clip, decoded), psnr(clip, decode(alone, {.threads = 2})), 0.4);
      }
      const std::vector<Gop> slow = decode(stream, {.temporal_reduce = 1, .threads = 2});
      EXPECT_LT(slow[0].frames(), decoded[0].frames());
    }
}

TEST(PredictedKeys, DependNeitherOnThreadsNorOnInstructions) {
  const Clip clip = moving_clip(270, 16, "yuv420p", 2 * kChainGop, kChainGop);
  OneOf some(kSanitized ? 3 : 1);  // with medium effort the one, with slow the other
  for (const Effort effort : {Effort::kMedium, Effort::kSlow}) {
    EncoderParams p = with_predicted_keys();
    p.effort = effort;
    p.threads = 1;
    p.simd = SimdLevel::kScalar;
    const auto reference = encode(clip, p);
    EXPECT_EQ(chain_of(reference), "LP");
    const std::vector<Gop> decoded = decode(reference, {.threads = 1, .simd = SimdLevel::kScalar});
    for (const SimdLevel simd : {SimdLevel::kAvx2, SimdLevel::kAvx512}) {
      if (!some() || simd > detected_simd()) continue;
      p.threads = 3;
      p.simd = simd;
      EXPECT_EQ(encode(clip, p), reference) << to_string(simd);
      expect_same(decode(reference, {.threads = 3, .simd = simd}), decoded);
    }
  }
}

// Frames of any range are those of the whole, from a file and from a pipe, whatever is asked for.
TEST(PredictedKeys, AreReachedAtRandom) {
  const auto& stream = stream_of_film();
  ASSERT_EQ(chain_of(stream), "LPPPLP");
  OneOf some(kSanitized ? 3 : 1);
  for (const DecoderParams& request :
       {DecoderParams{.threads = 2}, DecoderParams{.reduce = 1, .threads = 2},
        DecoderParams{.temporal_reduce = 2, .threads = 2}, DecoderParams{.max_layers = 1, .threads = 2}}) {
    const std::vector<Gop> whole = decode(stream, request);
    const std::uint64_t step = 1u << request.temporal_reduce;
    for (const bool seekable : {true, false})
      for (const std::uint64_t first : {4, 9, 19, 27, 30, 37, 43}) {
        if (!some()) continue;
        MemorySource memory(stream.data(), stream.size());
        Pipe pipe(stream.data(), stream.size());
        DecoderParams part = request;
        part.first_frame = first;
        part.end_frame = first + 8;
        Decoder decoder(seekable ? static_cast<ByteSource&>(memory) : pipe, part);
        Gop gop = decoder.make_gop();
        std::uint64_t frames = 0;
        while (decoder.pull(gop)) {
          for (int f = 0; f < gop.frames(); ++f, ++frames) {
            const auto number = static_cast<std::uint64_t>(gop.times()[static_cast<std::size_t>(f)].pts);
            const Gop& wanted = whole[number / kChainGop];
            const int row = static_cast<int>(number % kChainGop / step);
            for (int c = 0; c < gop.components(); ++c)
              for (int y = 0; y < gop.plane(c).shape.height; ++y)
                ASSERT_EQ(std::memcmp(std::as_const(gop).plane(c).row(f, y), wanted.plane(c).row(row, y),
                                      gop.plane(c).row_bytes()),
                          0)
                    << number;
          }
        }
        const std::uint64_t end = std::min<std::uint64_t>(first + 8, kChainGops * kChainGop);
        EXPECT_EQ(frames, end / step - first / step) << first;
      }
  }
}

// A seek reads no more of the GOPs before than their keys take.
TEST(PredictedKeys, SeekingReadsKeysAlone) {
  const auto& stream = stream_of_film();
  MemorySource all(stream.data(), stream.size()), some(stream.data(), stream.size());
  Decoder from_start(all, {.end_frame = 4 * kChainGop, .threads = 2});
  Decoder seeking(some, {.first_frame = 3 * kChainGop, .end_frame = 4 * kChainGop, .threads = 2});
  Gop gop = from_start.make_gop();
  while (from_start.pull(gop)) {
  }
  while (seeking.pull(gop)) {
  }
  EXPECT_EQ(seeking.stats().passed_gops, 3u);
  EXPECT_LT(seeking.stats().stream_bytes, from_start.stats().stream_bytes);
}

TEST(PredictedKeys, LowerFrameRatesAreExact) {
  const Clip clip = film();
  const auto& stream = stream_of_film();
  const std::vector<Gop> slow = decode(stream, {.temporal_reduce = 3, .threads = 2});
  // The same frames with the whole transform: no error grows from key to key.
  for (std::size_t i = 0; i < slow.size(); ++i) ASSERT_EQ(slow[i].frames(), 1);
  MemorySource source(stream.data(), stream.size());
  MemorySink sink;
  rewrite(source, {.temporal_reduce = 3}, sink);
  expect_same(decode(sink.bytes, {.threads = 2}), slow);
  const auto loss = [&](std::size_t i) {
    double sum = 0;
    for (int y = 0; y < 48; ++y)
      for (int x = 0; x < 64; ++x) {
        const int d = std::to_integer<int>(slow[i].plane(0).row(0, y)[x]) -
                      std::to_integer<int>(clip.gops[i].plane(0).row(kChainGop - 1, y)[x]);
        sum += d * d;
      }
    return sum;
  };
  EXPECT_LT(loss(3), 2 * loss(0)) << "of the last key of a chain";
}

// Extracts deliver what decoding less delivers.
TEST(PredictedKeys, ExtractsAreAsDecodingLess) {
  const auto& stream = stream_of_film();
  for (const auto& [cut, request] :
       {std::pair{RewriteParams{.layers = 1}, DecoderParams{.max_layers = 1, .threads = 2}},
        std::pair{RewriteParams{.reduce = 1}, DecoderParams{.reduce = 1, .threads = 2}},
        std::pair{RewriteParams{.reduce = 1, .temporal_reduce = 1},
                  DecoderParams{.reduce = 1, .temporal_reduce = 1, .threads = 2}}}) {
    MemorySource source(stream.data(), stream.size());
    MemorySink sink;
    rewrite(source, cut, sink);
    EXPECT_EQ(chain_of(sink.bytes), "LPPPLP");
    expect_same(decode(sink.bytes, {.threads = 2}), decode(stream, request));
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(verify_stream(again, {.threads = 2}).damage.empty());
  }
}

// Damage ends with the chain, and is told of all its GOPs.
TEST(PredictedKeys, DamageLastsToTheNextClosedGop) {
  const auto& stream = stream_of_film();
  const std::vector<Gop>& whole = decoded_film();
  const StreamInfo info = info_of(stream);
  const auto flipped = [&](std::size_t at) {
    auto bytes = stream;
    bytes[at] ^= std::byte{255};
    return bytes;
  };
  const auto begin = static_cast<std::size_t>(info.gops[1].offset);
  std::uint32_t head = 0;
  std::memcpy(&head, stream.data() + begin + kBoxHeaderBytes, 4);
  struct Place {
    const char* name;
    std::size_t at;
    std::uint64_t gops;  // that are damaged
  };
  for (const Place& place : {Place{"the motion of keys", begin + kBoxHeaderBytes + head + 2, 3},
                             Place{"a chunk", begin + static_cast<std::size_t>(info.gops[1].bytes) - 40, 3}}) {
    const auto bytes = flipped(place.at);
    EXPECT_THROW(decode(bytes, {.threads = 2}), Error) << place.name;
    CodecStats stats;
    const std::vector<Gop> partial = decode(bytes, {.keep_partial = true, .threads = 2}, &stats);
    ASSERT_EQ(partial.size(), whole.size());
    EXPECT_EQ(stats.damaged_gops, place.gops) << place.name;
    for (const std::size_t i : {0, 4, 5}) EXPECT_EQ(compare(partial[i], whole[i]).largest, 0) << place.name << i;
    // Also when only frames behind it are asked for.
    MemorySource source(bytes.data(), bytes.size());
    Decoder late(source, {.first_frame = 3 * kChainGop, .end_frame = 4 * kChainGop, .threads = 2});
    Gop gop = late.make_gop();
    if (place.at == begin + kBoxHeaderBytes + head + 2) {
      EXPECT_THROW(late.pull(gop), Error) << place.name;
    }
  }
  CodecStats stats;
  const std::vector<Gop> lost = decode(flipped(begin), {.keep_partial = true, .threads = 2}, &stats);
  ASSERT_EQ(lost.size(), whole.size() - 1);
  EXPECT_EQ(stats.damaged_gops, 2u);
  for (const std::size_t i : {3, 4}) EXPECT_EQ(compare(lost[i], whole[i + 1]).largest, 0);
}

// A lost index is rebuilt with what it said.
TEST(PredictedKeys, IndexIsRebuilt) {
  const auto& stream = stream_of_film();
  const StreamInfo info = info_of(stream);
  auto bytes = stream;
  bytes[static_cast<std::size_t>(info.gops.back().offset + info.gops.back().bytes) + kBoxHeaderBytes + 2] ^=
      std::byte{255};
  const StreamInfo again = info_of(bytes);
  EXPECT_FALSE(again.index_damage.empty());
  ASSERT_EQ(again.gops.size(), info.gops.size());
  for (std::size_t i = 0; i < info.gops.size(); ++i) {
    EXPECT_EQ(info.gops[i].predicts_keys, i % 4 != 0) << i;
    EXPECT_EQ(again.gops[i].predicts_keys, info.gops[i].predicts_keys) << i;
  }
}

// A player jumps to closed GOPs, and decodes again from one where it asks for something else.
TEST(PredictedKeys, PacketsAreDecodedInChains) {
  const auto& stream = stream_of_film();
  const std::vector<Gop>& whole = decoded_film();
  const std::vector<Gop> small = decode(stream, {.reduce = 1, .threads = 2});
  const StreamInfo info = info_of(stream);
  PacketDecoder decoder;
  decoder.set_header(stream.data(), static_cast<std::size_t>(info.gops[0].offset));
  PacketDecoder::Decoded decoded;
  const auto add = [&](std::size_t i) {
    return decoder.add(stream.data() + info.gops[i].offset, static_cast<std::size_t>(info.gops[i].bytes));
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const bool smaller = i == 3;  // which begins again with the first GOP
    ASSERT_TRUE(add(i));
    ASSERT_TRUE(decoder.decode({.reduce = smaller ? 1 : 0, .threads = 2}, decoded)) << i;
    EXPECT_EQ(compare(decoded.gop, smaller ? small[i] : whole[i]).largest, 0) << i;
  }
  decoder.clear();
  EXPECT_FALSE(add(1));
  EXPECT_FALSE(add(2)) << "the key before it cannot be made";
  EXPECT_FALSE(add(3));
  ASSERT_TRUE(add(4));
  ASSERT_TRUE(decoder.decode({.threads = 2}, decoded));
  EXPECT_EQ(compare(decoded.gop, whole[4]).largest, 0);
}

// ------------------------------------------------------------------------------------------------------------ in place

Clip still_film(const char* format = "yuv420p", int gops = kChainGops) {
  return moving_clip(64, 48, format, gops * kChainGop, kChainGop, 0);
}

EncoderParams with_keys_in_place() {
  EncoderParams p = with_predicted_keys();
  p.key_prediction = EncoderParams{}.key_prediction;
  p.quality = 45;
  return p;
}

TEST(KeysInPlace, AreTheDefaultOfStillScenes) {
  EncoderParams p = with_keys_in_place();
  ASSERT_EQ(p.key_prediction, KeyPrediction::kAuto);
  const Clip still = moving_clip(kFilmWidth, kFilmHeight, "yuv420p", kChainGops * kChainGop, kChainGop, 0);
  const auto stream = encode(still, p), moving = encode(film(), p);
  EXPECT_EQ(chain_of(stream), "LPPPLP");
  EXPECT_EQ(chain_of(moving), "LOOOLO");
  p.key_prediction = KeyPrediction::kOff;
  const auto alone = encode(still, p);
  EXPECT_LT(stream.size(), alone.size() * 7 / 10);
  EXPECT_GT(psnr(still, decode(stream, {.threads = 2})), psnr(still, decode(alone, {.threads = 2})) - 0.3);
}

// What the last GOP of a chain loses in dB, at half the size, because its keys are predicted.
double loss_of_smaller_pictures(const Clip& clip, KeyPrediction prediction) {
  EncoderParams p = with_keys_in_place();
  const auto last_of = [&](KeyPrediction way, double quality) {
    p.key_prediction = way;
    p.quality = quality;
    const auto stream = encode(clip, p);
    EXPECT_EQ(chain_of(stream), way == KeyPrediction::kOff ? "LOOO" : "LPPP");
    return decode(stream, {.reduce = 1, .threads = 2})[3];
  };
  Clip exact;
  exact.info = clip.info;
  exact.gops.push_back(last_of(KeyPrediction::kOff, 90));
  return psnr(exact, {last_of(KeyPrediction::kOff, 45)}) - psnr(exact, {last_of(prediction, 45)});
}

TEST(KeysInPlace, SmallerPicturesDoNotDrift) {
  EXPECT_LT(loss_of_smaller_pictures(still_film("yuv420p", 4), KeyPrediction::kAuto), 1);
  EXPECT_GT(loss_of_smaller_pictures(film("yuv420p", 4), KeyPrediction::kOn), 3);
}

TEST(KeysInPlace, LosslessIsExact) {
  const Clip clip = moving_clip(kFilmWidth, kFilmHeight, "gbrp", 4 * kChainGop, kChainGop, 0);
  EncoderParams p = with_keys_in_place();
  p.lossless = true;
  const auto stream = encode(clip, p);
  const std::vector<Gop> decoded = decode(stream, {.threads = 2});
  for (std::size_t i = 0; i < decoded.size(); ++i) EXPECT_EQ(compare(clip.gops[i], decoded[i]).largest, 0);
}

TEST(KeysInPlace, AreLeftWhereNoneCanBePredicted) {
  const VideoInfo film = video(64, 48, "gray", 48), one_gop = video(64, 48, "gray", kChainGop);
  const auto predicts = [](const VideoInfo& of, const EncoderParams& p) {
    return make_header(of, resolve(of, p)).predicted_keys;
  };
  const EncoderParams p = with_keys_in_place();
  EXPECT_TRUE(predicts(film, p));
  EXPECT_FALSE(predicts(one_gop, p));
  EncoderParams closed = p, bounded = p, sized = p, exact = p, still = p;
  closed.key_interval = kChainGop;
  bounded.max_rate = 1e6;
  sized.bits_per_pixel = 0.5;
  exact.psnr = 40;
  still.motion = Motion::kOff;
  for (const EncoderParams& without : {closed, bounded, sized, exact, still}) EXPECT_FALSE(predicts(film, without));
}

TEST(PredictedKeys, ChooseNoTargets) {
  MemorySink sink;
  EncoderParams p = with_predicted_keys();
  p.psnr = 40;
  EXPECT_THROW(Encoder(video(64, 48, "gray"), p, sink), Error);
}

// Coefficients of predicted keys stay with the keys that they were predicted from.
TEST(PredictedKeys, CoefficientsCanBeDecodedNotPushed) {
  const Clip clip = film();
  const auto& stream = stream_of_film();
  const std::vector<Gop>& whole = decoded_film();
  MemorySource source(stream.data(), stream.size());
  Decoder decoder(source, {.threads = 2});
  CoefficientGop coefficients;
  Gop gop = decoder.make_gop();
  MemorySink sink;
  Encoder encoder(clip.info, with_predicted_keys(), sink);
  for (const Gop& wanted : whole) {
    ASSERT_TRUE(decoder.pull_coefficients(coefficients));
    if (coefficients.motion->predicts_keys) {
      EXPECT_THROW(encoder.push_coefficients(coefficients), Error);
    }
    decoder.inverse(coefficients, gop);
    EXPECT_EQ(compare(gop, wanted).largest, 0);
  }
}

}  // namespace
}  // namespace trivelet
