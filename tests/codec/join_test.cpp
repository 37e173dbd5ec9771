// Joined streams: parts encoded with the same parameters give the bytes of the whole; others are refused with a reason.
#include "trivelet/edit.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "codec/format/front_table.h"
#include "tests/support/boxes.h"
#include "tests/support/support.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

using namespace test;
using Stream = std::vector<std::byte>;

constexpr int kGop = 4;

CodingParams params_of(const CodingParams& given) {
  CodingParams p = given;
  p.gop_frames = kGop;
  p.spatial_levels = 2;
  p.temporal_levels = 2;
  p.measure_errors = false;
  return p;
}

Clip part_of(const Clip& clip, std::size_t first, std::size_t end) {
  Clip part;
  part.info = clip.info;
  part.gops.assign(clip.gops.begin() + static_cast<std::ptrdiff_t>(first),
                   clip.gops.begin() + static_cast<std::ptrdiff_t>(end));
  if (part.info.frames > 0) {
    part.info.frames = 0;
    for (const Gop& g : part.gops) part.info.frames += static_cast<std::uint64_t>(g.frames());
  }
  return part;
}

Stream joined(const std::vector<Stream>& streams, const Limits& limits = {}) {
  std::vector<MemorySource> sources;
  for (const Stream& s : streams) sources.emplace_back(s.data(), s.size());
  std::vector<JoinInput> inputs;
  for (std::size_t i = 0; i < sources.size(); ++i)
    inputs.push_back({std::string(1, static_cast<char>('a' + i)), &sources[i]});
  MemorySink sink;
  const JoinResult result = join(inputs, sink, limits);
  EXPECT_EQ(result.bytes, sink.bytes.size());
  return std::move(sink.bytes);
}

// What it says when it refuses; empty when it does not.
std::string refusal(const std::vector<Stream>& streams, ErrorKind kind, const Limits& limits = {}) {
  try {
    (void)joined(streams, limits);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.what();
  }
  return {};
}

TEST(Join, PartsAreTheWhole) {
  const CodingParams dense = EncoderParams{.motion = Motion::kOff};
  const CodingParams lossless = EncoderParams{.lossless = true, .motion = Motion::kOff};
  const CodingParams fast = EncoderParams{.profile = Profile::kFast};
  CodingParams parts = lossless;
  parts.block_size = 32;
  parts.part_checks = true;
  CodingParams dyadic;
  dyadic.motion = Motion::kOff;
  dyadic.layout = Layout::kDyadic;
  const CodingParams motion = EncoderParams{.motion = Motion::kOn, .key_interval = 1};
  const CodingParams visual = EncoderParams{.quality = 80, .motion = Motion::kOff, .visual = true};
  int i = 0;
  for (const CodingParams& given : {dense, lossless, fast, parts, dyadic, motion, visual})
    for (const std::uint64_t known : {0, 11}) {
      SCOPED_TRACE(i++);
      const Clip clip = make_clip(video(70, 50, "yuv420p", known), 11, kGop, Pattern::kTexture, 7);
      const CodingParams p = params_of(given);
      const Stream whole = encode(clip, p);
      EXPECT_TRUE(joined({encode(part_of(clip, 0, 1), p), encode(part_of(clip, 1, 3), p)}) == whole);
      EXPECT_TRUE(joined({encode(part_of(clip, 0, 2), p), encode(part_of(clip, 2, 3), p)}) == whole);
      EXPECT_TRUE(joined({whole}) == whole);
    }
}

TEST(Join, TimesGoOn) {
  const Clip clip = make_clip(video(24, 18, "gray"), 6, kGop, Pattern::kSmooth, 3);
  const Stream one = encode(clip, params_of({}));
  const Stream twice = joined({one, one, one});
  std::int64_t next = 0;
  int frames = 0;
  for (const Gop& gop : test::decode(twice, {}))
    for (int f = 0; f < gop.frames(); ++f, ++frames) {
      EXPECT_EQ(gop.times()[static_cast<std::size_t>(f)].pts, next);
      next += gop.times()[static_cast<std::size_t>(f)].duration;
    }
  EXPECT_EQ(frames, 18);
  MemorySource source(twice.data(), twice.size());
  EXPECT_TRUE(verify_stream(source, {}).damage.empty());
}

TEST(Join, RefusesByName) {
  const auto stream = [](int width, const char* format, EncoderParams given, std::uint64_t frames = 0) {
    if (given.motion == Motion::kDefault) given.motion = Motion::kOff;
    return encode(make_clip(video(width, 40, format, frames), 5, kGop, Pattern::kSmooth, 3), params_of(given));
  };
  const Stream a = stream(48, "gray", {});
  const ErrorKind kind = ErrorKind::kBadArgument;
  EXPECT_NE(refusal({a, stream(52, "gray", {})}, kind).find("'b' does not fit 'a': width 48 and 52"),
            std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray10", {})}, kind).find("pixel format gray and gray10le"), std::string::npos);
  EXPECT_NE(
      refusal({a, a, stream(48, "gray", {.lossless = true})}, kind).find("'c' does not fit 'a': lossless 0 and 1"),
      std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray", {.profile = Profile::kFast})}, kind).find("profile"), std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray", {.spatial = Wavelet::kCdf53})}, kind).find("spatial wavelet 2 and 1"),
            std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray", {.block_size = 64})}, kind).find("block size 128 and 64"),
            std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray", {.layers = 2})}, kind).find("layers"), std::string::npos);
  EXPECT_NE(refusal({a, stream(48, "gray", {.motion = Motion::kOn})}, kind).find("motion 0 and 1"), std::string::npos);
  EncoderParams boxes;
  boxes.motion = Motion::kOff;
  boxes.boxes = {{"note", {1, 2}}};
  EXPECT_NE(refusal({a, stream(48, "gray", boxes)}, kind).find("boxes 'note'"), std::string::npos);
  EXPECT_EQ(refusal({a, stream(48, "gray", {.quality = 20})}, kind), "");  // a GOP has the step it has
  EXPECT_NE(refusal({}, kind), "");

  const ErrorKind bad = ErrorKind::kBadStream;
  Stream cut(a.begin(), a.end() - 10);
  EXPECT_NE(refusal({a, cut}, bad).find("'b': the stream is not complete"), std::string::npos);
  Stream damaged = a;
  MemorySource source(a.data(), a.size());
  const GopInfo gop = probe(source).gops[1];
  damaged[gop.offset + gop.bytes - 3] ^= std::byte{4};
  EXPECT_NE(refusal({a, damaged}, bad).find("wrong checksum"), std::string::npos);

  const ErrorKind much = ErrorKind::kUnsupported;
  MemorySource again(a.data(), a.size());
  std::uint64_t frames = 0;
  for (const GopInfo& g : probe(again).gops) frames += static_cast<std::uint64_t>(g.frames);
  Limits limits;
  limits.frames = 2 * frames;
  EXPECT_EQ(refusal({a, a}, much, limits), "");
  EXPECT_NE(refusal({a, a, a}, much, limits).find("'c' is the end of " + std::to_string(3 * frames) + " frames"),
            std::string::npos);
  limits = {};
  limits.samples = 1000;
  EXPECT_NE(refusal({a, a}, much, limits).find("Limits::samples"), std::string::npos);

  VolumeDescription v{.voxel = {VoxelType::kU8}, .width = 16, .height = 16, .slices = 4};
  const std::vector<std::byte> voxels(v.bytes());
  MemorySlices slices(v, voxels.data());
  MemorySink sink;
  encode_volume(slices, {}, sink);
  EXPECT_NE(refusal({sink.bytes, sink.bytes}, ErrorKind::kUnsupported).find("volume"), std::string::npos);
}

// A front table is of one stream; the whole gets its own if the first part has one and there is a way back.
TEST(Join, AFrontTableIsMadeAnew) {
  const Clip clip = make_clip(video(70, 50, "yuv420p"), 8, kGop, Pattern::kTexture, 7);
  std::vector<Stream> parts;
  for (std::size_t i = 0; i < 2; ++i) {
    EncoderParams p = params_of(EncoderParams{.lossless = true, .motion = Motion::kOff});
    p.boxes.push_back(empty_front_table(400));
    MemorySink sink;
    sink.bytes = encode(part_of(clip, i, i + 1), p);
    MemoryReadBack again(sink);
    write_front_table(again, 400);
    parts.push_back(sink.bytes);
  }
  MemorySource a(parts[0].data(), parts[0].size()), b(parts[1].data(), parts[1].size());
  const JoinInput inputs[] = {{"a", &a}, {"b", &b}};
  MemorySink sink;
  MemoryReadBack again(sink);
  const JoinResult result = join(inputs, sink, {}, &again);
  EXPECT_EQ(result.bytes, sink.bytes.size());
  MemorySource whole(sink.bytes.data(), sink.bytes.size());
  EXPECT_EQ(verify_stream(whole, {}).damage, std::vector<std::string>());  // that the table is right, too
  const FrontTable table = [&] {
    const std::vector<test::BoxAt> boxes =
        list_boxes(reinterpret_cast<const std::uint8_t*>(sink.bytes.data()), sink.bytes.size());
    EXPECT_EQ(boxes[1].type, "tocF");
    return parse_front_table(reinterpret_cast<const std::uint8_t*>(sink.bytes.data()) + boxes[1].payload(),
                             boxes[1].length)
        .value();
  }();
  EXPECT_EQ(table.copies.size(), 3U);
  const Stream without = joined(parts);
  EXPECT_LT(without.size(), sink.bytes.size());
  MemorySource plain(without.data(), without.size());
  EXPECT_EQ(verify_stream(plain, {}).damage, std::vector<std::string>());
}

}  // namespace
}  // namespace trivelet
