// Volumes through the public header: every scalar type, map, transform and order round-trips, for any number of threads
// and reading order, and invalid requests are refused.
#include "trivelet/volume.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/one_of.h"
#include "tests/support/volume_coding_support.h"

namespace trivelet {
namespace {

using test::Coded;
using test::Content;
using test::decode;
using test::Decoded;
using test::encode;
using test::expect_error;
using test::kWays;
using test::make_body;
using test::make_scalars;
using test::params_of;
using test::put_scalar;
using test::VolumeBytes;
using test::Way;

/// Of four labels, each a ball: 255 where it is sure, in between at its skin. A voxel's values sum up to 255.
VolumeBytes make_probabilities(const VolumeDescription& v) {
  VolumeBytes out;
  for (std::uint64_t z = 0; z < v.slices; ++z)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x) {
        int left = 255;
        for (int c = 0; c < 3; ++c) {
          const double far = std::hypot(x - 20 - 15 * c, y - 25 - 5 * c, static_cast<double>(z) - 8);
          const int part = std::clamp(static_cast<int>(40 * (14 - far)), 0, left);
          put_scalar(out, static_cast<std::uint64_t>(part), v.voxel);
          left -= part;
        }
        put_scalar(out, static_cast<std::uint64_t>(left), v.voxel);
      }
  return out;
}

// Colours that do not resemble each other are predicted, where the colour transform of the wavelet only mixes them.
TEST(Volume, colours_are_coded_as_is_smaller) {
  const auto bytes_of_way = [](const VolumeDescription& v, const VolumeBytes& voxels, auto transform) {
    VolumeEncoderParams params;
    params.transform = transform;
    const Coded coded = encode(v, voxels, params);
    EXPECT_EQ(decode(coded.bytes).voxels, voxels);
    EXPECT_TRUE(coded.result.verified);
    return coded.bytes.size();
  };
  const VolumeDescription labels{{VoxelType::kU8, false, 4}, 40, 36, 8, 1};
  const VolumeBytes probabilities = make_probabilities(labels);
  const std::size_t by_trial = bytes_of_way(labels, probabilities, std::nullopt);
  EXPECT_EQ(by_trial, bytes_of_way(labels, probabilities, std::optional(VolumeTransform::kPrediction)));
  EXPECT_LT(3 * by_trial, 2 * bytes_of_way(labels, probabilities, std::optional(VolumeTransform::kWavelet)));
  const VolumeDescription photo{{VoxelType::kU8, false, 3}, 44, 40, 9, 1};
  VolumeBytes grey = make_body({{VoxelType::kU8, false, 1}, 44, 40, 9, 1}, 0, 250);
  VolumeBytes colours;
  for (const std::byte b : grey) colours.insert(colours.end(), 3, b);
  EXPECT_EQ(bytes_of_way(photo, colours, std::nullopt),
            bytes_of_way(photo, colours, std::optional(VolumeTransform::kWavelet)));
}

TEST(Volume, every_kind_comes_back) {
  int kinds = 0;
  int too_wide = 0;
  int turn = 0;
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const bool big : {false, true})
      for (const int channels : {1, 2, 3, 4})
        for (const Content content : {Content::kSparse, Content::kRandom}) {
          const VolumeDescription v{{static_cast<VoxelType>(t), big, channels}, 13, 9, 4, 3};
          const VolumeBytes voxels = make_scalars(content, v.voxel, static_cast<std::size_t>(v.voxels()), 7);
          // So that every type meets every way, and every way both contents.
          const std::size_t first = static_cast<std::size_t>(turn + turn / 6) % std::size(kWays);
          ++turn;
          for (std::size_t w = first; w < std::size(kWays); w += test::full() ? 1 : std::size(kWays)) {
            const Way& way = kWays[w];
            VolumeEncoderParams params = params_of(way);
            if (way.transform != VolumeTransform::kWavelet && channels > 2)
              params.transform = VolumeTransform::kWavelet;
            SCOPED_TRACE(to_string(v.voxel.type) + (big ? " big-endian x" : " x") + std::to_string(channels) + " " +
                         way.name);
            // Up to four planes of 16 bits: what does not fit without a table of the values does not fit.
            const int planes = content == Content::kSparse && way.palette ? 1 : (bytes_of(v.voxel.type) + 1) / 2;
            if (content == Content::kRandom && planes * channels > 4) {
              expect_error(ErrorKind::kUnsupported, "at most 4 planes", [&] { encode(v, voxels, params); });
              ++too_wide;
              continue;
            }
            if (content == Content::kSparse && (bytes_of(v.voxel.type) + 1) / 2 * channels > 4) continue;
            const Coded coded = encode(v, voxels, params);
            const Decoded d = decode(coded.bytes);
            ++kinds;
            EXPECT_EQ(d.voxels, voxels);
            EXPECT_EQ(d.info.volume, v);
            EXPECT_EQ(d.output, v);
            EXPECT_TRUE(coded.result.exact() && coded.result.verified && d.info.exact());
            EXPECT_EQ(d.info.map, way.palette ? VolumeMapKind::kPalette : VolumeMapKind::kAffine);
            EXPECT_EQ(d.info.order, way.fourth_axis ? VolumeOrder::kFourthAxis : VolumeOrder::kFile);
            EXPECT_EQ(d.info.prediction == VolumePrediction::kNone, *params.transform == VolumeTransform::kWavelet);
            // A single layer without errors has no box that says so.
            EXPECT_EQ(d.info.cuts, coded.result.cuts.cuts.size() > 1 ? coded.result.cuts : VolumeCuts{});
            EXPECT_EQ(coded.result.cuts.cuts.back().max_error, 0);
            EXPECT_EQ(coded.result.stats.stream_bytes, coded.bytes.size());
          }
        }
  EXPECT_GT(kinds, test::full() ? 450 : 75);
  EXPECT_GT(too_wide, test::full() ? 120 : 20);
}

TEST(Volume, trials_choose_what_is_smaller) {
  // Sharp steps between few values: nothing for a wavelet, and a table pays.
  const VolumeDescription steps{{VoxelType::kI16, false, 1}, 48, 48, 8, 1};
  VolumeBytes labels;
  for (std::uint64_t i = 0; i < steps.voxels(); ++i)
    test::put_scalar(labels, static_cast<std::uint64_t>((i / 8 * 7 + i / (48 * 12)) % 5 * 977), steps.voxel);
  const VolumeDescription waves{{VoxelType::kI16, false, 1}, 40, 32, 4, 12};
  const VolumeBytes body = make_body(waves, 0, 3000);
  VolumeEncoderParams params;
  params.threads = 1;
  std::vector<std::string> remarks;
  params.on_remark = [&](const std::string& text) { remarks.push_back(text); };
  std::size_t size[3];
  for (const VolumeEffort effort : {VolumeEffort::kFast, VolumeEffort::kMedium, VolumeEffort::kSlow}) {
    params.effort = effort;
    remarks.clear();
    const Coded coded = encode(steps, labels, params);
    size[static_cast<int>(effort)] = coded.bytes.size();
    EXPECT_NE(coded.result.transform.find("prediction"), std::string::npos) << coded.result.transform;
    EXPECT_EQ(decode(coded.bytes).voxels, labels);
  }
  EXPECT_LT(size[1], size[0]);
  EXPECT_LE(size[2], size[1] + size[1] / 50);
  params.effort = VolumeEffort::kMedium;
  remarks.clear();
  const Coded coded = encode(waves, body, params);
  EXPECT_GT(remarks.size(), 3u);  // what occurs, along either axis, the choice
  EXPECT_EQ(decode(coded.bytes).voxels, body);
  EXPECT_LT(coded.bytes.size(), encode(waves, body, params_of(kWays[0])).bytes.size());
}

TEST(Volume, bytes_do_not_depend_on_threads_or_reading_back) {
  const VolumeDescription v{{VoxelType::kU16, false, 1}, 60, 50, 10, 2};
  const VolumeBytes voxels = make_body(v, 0, 5000);
  VolumeEncoderParams params;
  params.effort = VolumeEffort::kFast;
  params.slab = 5;
  params.threads = 1;
  std::uint64_t last = 0;
  params.progress = [&](std::uint64_t slices) {
    EXPECT_GT(slices, last);
    last = slices;
  };
  const Coded one = encode(v, voxels, params);
  EXPECT_EQ(last, v.all_slices());
  params.progress = nullptr;
  params.threads = 3;
  EXPECT_EQ(encode(v, voxels, params).bytes, one.bytes);
  const Coded plain = encode(v, voxels, params, false);
  EXPECT_TRUE(plain.result.cuts.cuts.empty() && !plain.result.verified);
  const Decoded d = decode(plain.bytes);
  EXPECT_TRUE(d.info.cuts.cuts.empty());
  EXPECT_EQ(d.voxels, voxels);
  EXPECT_LE(plain.bytes.size(), one.bytes.size());
}

class SlicesInOrder final : public SliceSource {
 public:
  SlicesInOrder(const VolumeDescription& v, const VolumeBytes& voxels) : slices_(v, voxels.data()) {}
  const VolumeDescription& description() const override { return slices_.description(); }
  void read(std::byte* slice) override { slices_.read(slice); }
  void rewind() override { slices_.rewind(); }

 private:
  MemorySlices slices_;
};

TEST(Volume, slices_in_their_order_and_from_anywhere_give_the_same_stream) {
  for (const VoxelType type : {VoxelType::kU8, VoxelType::kI16, VoxelType::kF32})
    for (const bool fourth_axis_first : {false, true}) {
      const VolumeDescription v{{type, true, 1}, 20, 20, 5, 3};
      const VolumeBytes voxels = make_body(v, 0, 200);
      VolumeEncoderParams params;
      params.threads = 3;
      params.fourth_axis_first = fourth_axis_first;
      SlicesInOrder in_order(v, voxels);
      MemorySlices anywhere(v, voxels.data());
      MemorySink a;
      MemorySink b;
      encode_volume(in_order, params, a, nullptr);
      encode_volume(anywhere, params, b, nullptr);
      EXPECT_EQ(a.bytes, b.bytes);
      EXPECT_EQ(decode(a.bytes).voxels, voxels);
    }
}

TEST(Volume, pictures_are_numbers_unless_they_are_differences) {
  const VolumeDescription v{{VoxelType::kI16, true, 1}, 21, 17, 5, 1};
  VolumeBytes voxels;  // steps of 4 from -100 on
  for (std::uint64_t i = 0; i < v.voxels(); ++i) test::put_scalar(voxels, (i * i % 50) * 4 - 100, v.voxel);
  for (const Way& way : {kWays[0], kWays[1], kWays[2]}) {
    const Coded coded = encode(v, voxels, params_of(way));
    MemorySource source(coded.bytes.data(), coded.bytes.size());
    Decoder decoder(source, {});
    EXPECT_EQ(decoder.info().video.width, 21);
    Gop gop = decoder.make_gop();
    if (way.transform != VolumeTransform::kWavelet) {
      expect_error(ErrorKind::kUnsupported, "VolumeDecoder", [&] { decoder.pull(gop); });
      CoefficientGop coefficients;
      expect_error(ErrorKind::kUnsupported, "VolumeDecoder", [&] { decoder.pull_coefficients(coefficients); });
      source.seek(0);
      DecoderParams params;
      params.differences = true;
      Decoder raw(source, params);
      EXPECT_TRUE(raw.pull(gop));
      EXPECT_TRUE(raw.output().format.is_signed);
      continue;
    }
    ASSERT_TRUE(decoder.pull(gop));
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x) {
        const auto at = static_cast<std::size_t>(y * v.width + x);
        EXPECT_EQ(std::to_integer<int>(gop.plane(0).row(0, y)[x]) * 4 - 100,
                  scalar_value(voxels.data() + 2 * at, v.voxel.type, true));
      }
  }
}

TEST(Volume, requests_without_meaning_are_refused) {
  const VolumeDescription v{{VoxelType::kI16, false, 1}, 20, 20, 5, 1};
  const VolumeBytes voxels = make_body(v, 0, 900);
  const auto refuse = [&](const std::string& why, const auto& set, const VolumeDescription& volume) {
    VolumeEncoderParams params;
    params.threads = 1;
    set(params);
    expect_error(ErrorKind::kBadArgument, why, [&] { encode(volume, voxels, params); });
  };
  refuse(
      "one target", [](auto& p) { p.max_error = 1, p.quality = 50; }, v);
  refuse(
      "one target", [](auto& p) { p.ratio = 9, p.psnr = 50; }, v);
  refuse(
      "PSNR", [](auto& p) { p.psnr = -1; }, v);
  refuse(
      "maximum error", [](auto& p) { p.max_error = -1; }, v);
  refuse(
      "maximum error", [](auto& p) { p.max_error = std::numeric_limits<double>::quiet_NaN(); }, v);
  refuse(
      "no bytes", [](auto& p) { p.total_bytes = 0; }, v);
  refuse(
      "128 slices", [](auto& p) { p.slab = 129; }, v);
  refuse(
      "prediction needs", [](auto& p) { p.transform = VolumeTransform::kPrediction, p.quality = 50; }, v);
  refuse(
      "prediction needs", [](auto& p) { p.transform = VolumeTransform::kPrediction, p.profile = Profile::kFast; }, v);
  refuse(
      "neither levels", [](auto& p) { p.transform = VolumeTransform::kPrediction, p.slice_levels = 2; }, v);
  refuse(
      "a palette needs", [](auto& p) { p.palette = true, p.bits_per_voxel = 2; }, v);
  const auto nothing = [](auto&) {};
  refuse("volume of 0x20x5x1", nothing, {v.voxel, 0, 20, 5, 1});
  refuse("volume of 20x20x0x1", nothing, {v.voxel, 20, 20, 0, 1});
  refuse("5 channels", nothing, {{VoxelType::kU8, false, 5}, 4, 4, 5, 1});
  refuse("pictures of 70000x1", nothing, {{VoxelType::kU8, false, 1}, 70000, 1, 1, 1});

  const Coded coded = encode(v, voxels, params_of(kWays[1]));
  const auto refuse_decoding = [&](ErrorKind kind, const std::string& why, const auto& set) {
    VolumeDecoderParams params;
    set(params);
    expect_error(kind, why, [&] { decode(coded.bytes, params); });
  };
  const ErrorKind bad = ErrorKind::kBadArgument;
  refuse_decoding(bad, "leaves the volume", [](auto& p) { p.region = VoxelRegion{0, 0, 4, 20, 20, 2}; });
  refuse_decoding(bad, "leaves the volume", [](auto& p) { p.region = VoxelRegion{0, 0, 0, 20, 0, 2}; });
  refuse_decoding(bad, "leaves the volume", [](auto& p) { p.region = VoxelRegion{~std::uint64_t{0}, 0, 0, 20, 2, 2}; });
  for (const int what : {0, 1, 2})
    refuse_decoding(ErrorKind::kUnsupported, "prediction", [what](auto& p) {
      (what == 0 ? p.reduce : what == 1 ? p.max_layers : p.max_planes) = 1;
    });
  refuse_decoding(ErrorKind::kUnsupported, "limit", [](auto& p) { p.limits.memory = 1000; });
}

TEST(Volume, other_streams_are_refused) {
  VideoInfo video;
  video.width = video.height = 16;
  video.format.model = ColourModel::kGrey;
  video.frames = 1;
  const auto stream = [&](std::vector<ExtraBox> boxes) {
    EncoderParams params;
    params.lossless = true;
    params.boxes = std::move(boxes);
    MemorySink sink;
    Encoder encoder(video, params, sink);
    Gop gop(video, 1);
    gop.set_frames(1);
    encoder.push(gop);
    encoder.finish();
    return sink.bytes;
  };
  expect_error(ErrorKind::kBadArgument, "a video", [&] { decode(stream({})); });
  // A stream of a uint8 volume in one slice, with a map that describes something else.
  std::vector<std::uint8_t> map = {1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 1, 0, 1, 255, 1};
  EXPECT_EQ(decode(stream({{"Volm", map}})).output, (VolumeDescription{{}, 16, 16, 1, 1}));
  auto changed = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> other = map;
    other[at] = value;
    return stream({{"Volm", other}});
  };
  expect_error(ErrorKind::kUnsupported, "version 2", [&] { decode(changed(0, 2)); });
  expect_error(ErrorKind::kBadStream, "1 picture, its volume 2 slices", [&] { decode(changed(7, 2)); });
  expect_error(ErrorKind::kBadStream, "its map of the volume", [&] { decode(changed(3, 2)); });
  map.pop_back();
  expect_error(ErrorKind::kBadStream, "ends too early", [&] { decode(stream({{"Volm", map}})); });
}

}  // namespace
}  // namespace trivelet
