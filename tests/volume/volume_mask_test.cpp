// Voxels without a numeric value: NaN, infinities and fill values are exact and in place whatever the loss of others,
// in regions, reduced sizes and layers. A volume without them has no cost, and a damaged mask is detected.
#include "codec/volume/volume_mask.h"
#include "codec/format/container.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>

#include "codec/volume/volume_fill.h"
#include "codec/volume/volume_map.h"
#include "tests/support/boxes.h"
#include "tests/support/one_of.h"
#include "tests/support/volume_coding_support.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using Marks = std::vector<std::uint8_t>;
using Voxels = test::VolumeBytes;

using test::Coded;
using test::decode;
using test::Decoded;
using test::encode;

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

/// Marks of some slices: discs that move, or noise.
std::vector<Marks> make_marks(const VolumeDescription& v, int values, bool noise, std::mt19937& random) {
  std::vector<Marks> all;
  for (std::uint64_t s = 0; s < v.all_slices(); ++s) {
    Marks marks;
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x)
        for (int c = 0; c < v.voxel.channels; ++c) {
          const int dx = x - v.width / 3 - static_cast<int>(s), dy = y - v.height / 2 + c;
          const bool set = noise ? random() % 3 == 0 : 9 * (dx * dx + dy * dy) < v.width * v.height;
          const unsigned which = noise ? static_cast<unsigned>(random()) : static_cast<unsigned>(y < v.height / 2);
          marks.push_back(set ? static_cast<std::uint8_t>(1 + which % static_cast<unsigned>(values)) : std::uint8_t{0});
        }
    all.push_back(s % 40 == 3 ? Marks(marks.size(), 0) : s % 40 == 4 ? Marks(marks.size(), 1) : marks);
  }
  return all;
}

TEST(Mask, marks_come_back) {
  std::mt19937 random(5);
  for (const auto& [width, height, channels, slices] :
       {std::array{1, 1, 1, 1}, {7, 1, 2, 3}, {1, 9, 3, 2}, {31, 17, 1, 70}, {8, 8, 4, 33}})
    for (const int values : {1, 2, 255})
      for (const bool noise : {false, true}) {
        VolumeDescription v{{VoxelType::kF32, false, channels}, width, height, static_cast<std::uint64_t>(slices), 1};
        const std::vector<Marks> all = make_marks(v, values, noise, random);
        MaskEncoder encoder(v);
        for (const Marks& marks : all) encoder.add(marks);
        if (!encoder.any()) continue;
        std::vector<std::uint64_t> table(static_cast<std::size_t>(values));
        for (std::size_t i = 0; i < table.size(); ++i) table[i] = 0x7fc00000u + i;
        const std::vector<std::uint8_t> box = encoder.finish(table);
        MaskDecoder decoder(v, box.data(), box.size());
        EXPECT_EQ(decoder.values(), table);
        const auto expect_slice = [&](std::uint64_t s) {
          const auto got = decoder.marks(s);
          const Marks& wanted = all[static_cast<std::size_t>(s)];
          EXPECT_TRUE(got.empty() ? wanted == Marks(wanted.size(), 0)
                                  : std::equal(got.begin(), got.end(), wanted.begin(), wanted.end()))
              << s;
        };
        for (std::uint64_t s = 0; s < v.slices; ++s) expect_slice(s);
        for (int i = 0; i < 5; ++i) expect_slice(random() % v.slices);
      }
}

TEST(Mask, large_areas_cost_little) {
  const VolumeDescription v{{VoxelType::kF32, false, 1}, 300, 200, 64, 1};
  Marks marks(300 * 200);
  for (int y = 0; y < 200; ++y)
    for (int x = 0; x < 300; ++x)
      marks[static_cast<std::size_t>(y * 300 + x)] = (x - 150) * (x - 150) + (y - 100) * (y - 100) > 9000;
  MaskEncoder encoder(v);
  for (int s = 0; s < 64; ++s) encoder.add(marks);
  EXPECT_LT(encoder.finish({1}).size(), 400u);  // two outlines
  MaskEncoder none(v);
  none.add(Marks(marks.size(), 0));
  EXPECT_FALSE(none.any());
}

/// Waves of floats with holes: a disc of NaN, a column of infinity, a fill value at the border.
Voxels make_voxels(const VolumeDescription& v, double fill) {
  Voxels out;
  for (std::uint64_t s = 0; s < v.all_slices(); ++s)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x)
        for (int c = 0; c < v.voxel.channels; ++c) {
          const double at = static_cast<double>(s % v.slices) + 0.3 * static_cast<double>(s / v.slices);
          double value = 100 + 20 * std::sin(0.3 * x + 0.1 * at + c) * std::cos(0.2 * y - 0.2 * at);
          const int dx = x - 12 - static_cast<int>(s % v.slices), dy = y - 8;
          if (is_real(v.voxel.type)) {
            if (dx * dx + dy * dy < 30) value = std::numeric_limits<double>::quiet_NaN();
            if (x == 3 && c == 0) value = y % 2 ? std::numeric_limits<double>::infinity() : -INFINITY;
          }
          if (y < 2) value = fill;
          out.resize(out.size() + static_cast<std::size_t>(bytes_of(v.voxel.type)));
          store_scalar(scalar_bits_of(value, v.voxel.type), v.voxel, out.data() + out.size() - bytes_of(v.voxel.type));
        }
  return out;
}

/// Every marked scalar of what was decoded is that of the original at its place, bit for bit, and no other is marked;
/// others are within `bound` of it where that is >= 0. `slab`: slices of a GOP.
void expect_marks(const VolumeDescription& v, const Voxels& original, const Decoded& d, std::uint64_t slab, double fill,
                  double bound) {
  const auto scalar = static_cast<std::size_t>(bytes_of(v.voxel.type));
  const auto marked = [&](double value) { return !std::isfinite(value) || value == fill; };
  const std::uint64_t left = (slab + d.step[2] - 1) / d.step[2];
  std::size_t at = 0, wrong = 0, found = 0;
  for (std::uint64_t t = 0; t < d.output.volumes; ++t)
    for (std::uint64_t z = d.selection.z; z < d.selection.z + d.selection.depth; ++z)
      for (std::uint64_t y = d.selection.y; y < d.selection.y + d.selection.height; ++y)
        for (std::uint64_t x = d.selection.x; x < d.selection.x + d.selection.width; ++x)
          for (int c = 0; c < v.voxel.channels; ++c, ++at) {
            const std::uint64_t full_z = d.step[2] == 1 ? z : z / left * slab + z % left * d.step[2];
            const std::uint64_t from =
                (((t * v.slices + full_z) * static_cast<std::uint64_t>(v.height) + y * d.step[1]) *
                     static_cast<std::uint64_t>(v.width) +
                 x * d.step[0]) *
                    static_cast<std::uint64_t>(v.voxel.channels) +
                static_cast<std::uint64_t>(c);
            const std::byte* wanted = original.data() + static_cast<std::size_t>(from) * scalar;
            const std::byte* got = d.voxels.data() + at * scalar;
            const double a = scalar_value(wanted, v.voxel.type, v.voxel.big_endian);
            const double b = scalar_value(got, v.voxel.type, v.voxel.big_endian);
            found += marked(a);
            if (marked(a) ? std::memcmp(wanted, got, scalar) != 0
                          : marked(b) || (bound >= 0 && std::fabs(a - b) > bound))
              ++wrong;
          }
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 0u);
}

TEST(Mask, marked_values_are_exact_in_every_part) {
  constexpr double kFill = -9999;
  for (const VoxelFormat& f : {VoxelFormat{VoxelType::kF32, false, 1}, VoxelFormat{VoxelType::kF64, true, 1},
                               VoxelFormat{VoxelType::kF32, true, 3}, VoxelFormat{VoxelType::kI16, false, 1},
                               VoxelFormat{VoxelType::kI32, true, 2}})
    for (const bool bounded : {true, false}) {
      SCOPED_TRACE(to_string(f.type) + (bounded ? ", bounded" : ", lossy"));
      const VolumeDescription v{f, 37, 29, 7, 1};
      const Voxels voxels = make_voxels(v, kFill);
      VolumeEncoderParams params;
      params.threads = 1;
      params.layers = 3;
      params.slab = 4;
      params.block_size = 32;
      params.slice_levels = params.depth_levels = 2;
      params.fill_values = {kFill};
      if (bounded)
        params.max_error = 1.5;
      else
        params.quality = 70;
      const Coded coded = encode(v, voxels, params);
      EXPECT_TRUE(coded.result.verified);
      EXPECT_TRUE(std::isfinite(coded.result.cuts.cuts.back().max_error));
      const double bound = bounded ? 1.5 : 12;
      const Decoded whole = decode(coded.bytes);
      expect_marks(v, voxels, whole, 4, kFill, bound);
      EXPECT_EQ(whole.info.marked.size(), is_real(f.type) ? 4u : 1u);
      EXPECT_LT(whole.info.largest, 200);  // the map is of the others
      VolumeDecoderParams part;
      part.region = VoxelRegion{5, 1, 3, 20, 11, 3};
      expect_marks(v, voxels, decode(coded.bytes, part), 4, kFill, bound);
      part.reduce = 1;
      expect_marks(v, voxels, decode(coded.bytes, part), 4, kFill, -1);
      part.region.reset();
      expect_marks(v, voxels, decode(coded.bytes, part), 4, kFill, -1);
      part.reduce = 2;
      expect_marks(v, voxels, decode(coded.bytes, part), 4, kFill, -1);
      part.reduce = 0;
      part.max_layers = 1;
      expect_marks(v, voxels, decode(coded.bytes, part), 4, kFill, -1);
      MemorySource source(coded.bytes.data(), coded.bytes.size());
      EXPECT_TRUE(verify_stream(source, {.threads = 1}).damage.empty());
    }
}

TEST(Mask, prediction_and_four_axes) {
  const VolumeDescription v{{VoxelType::kF32, false, 1}, 26, 20, 5, 3};
  const Voxels voxels = make_voxels(v, NAN);
  for (const bool fourth_axis : {false, true})
    for (const VolumeTransform transform : {VolumeTransform::kWavelet, VolumeTransform::kPrediction}) {
      VolumeEncoderParams params;
      params.threads = 1;
      params.effort = VolumeEffort::kFast;
      params.max_error = 0.5;
      params.transform = transform;
      params.fourth_axis_first = fourth_axis;
      const Coded coded = encode(v, voxels, params);
      expect_marks(v, voxels, decode(coded.bytes), 1, NAN, 0.5);
      VolumeDecoderParams part;
      part.region = VoxelRegion{5, 1, 1, 20, 11, 3};
      expect_marks(v, voxels, decode(coded.bytes, part), 1, NAN, 0.5);
    }
}

TEST(Mask, costs_nothing_without_marks_and_little_with) {
  const VolumeDescription v{{VoxelType::kF32, false, 1}, 60, 50, 8, 1};
  Voxels voxels = make_voxels(v, 100);
  const auto scalar = [&](std::size_t i) { return scalar_value(voxels.data() + 4 * i, VoxelType::kF32, false); };
  for (std::size_t i = 0; i < voxels.size() / 4; ++i)
    if (!std::isfinite(scalar(i))) store_scalar(scalar_bits_of(100, VoxelType::kF32), v.voxel, voxels.data() + 4 * i);
  VolumeEncoderParams params;
  params.threads = 1;
  params.quality = 60;
  const Coded plain = encode(v, voxels, params);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(plain.bytes.data()), plain.bytes.size()).find("Mask"),
            std::string::npos);
  EXPECT_TRUE(decode(plain.bytes).info.marked.empty());
  // Far off values in a disc: as fill values they cost less than without being named, by far.
  for (std::size_t i = 0; i < voxels.size() / 4; ++i)
    if (const int x = static_cast<int>(i % 60) - 30, y = static_cast<int>(i / 60 % 50) - 25; x * x + y * y < 200)
      store_scalar(scalar_bits_of(1e20, VoxelType::kF32), v.voxel, voxels.data() + 4 * i);
  params.quality.reset();
  params.max_error = 1;
  params.fill_values = {1e20};
  const Coded named = encode(v, voxels, params);
  EXPECT_LT(named.bytes.size(), plain.bytes.size() * 2);
  params.fill_values.clear();
  EXPECT_NE(message_of([&] { encode(v, voxels, params); }).find("resolution of float32"), std::string::npos);
}

TEST(Mask, what_cannot_be_is_refused) {
  const VolumeDescription v{{VoxelType::kF32, false, 1}, 20, 20, 2, 1};
  Voxels nan(v.bytes());
  std::memset(nan.data(), 0xFF, nan.size());
  VolumeEncoderParams lossy;
  lossy.threads = 1;
  lossy.quality = 50;
  const auto refusal = [&](const VolumeDescription& volume, const Voxels& voxels, const VolumeEncoderParams& params) {
    return message_of([&] { encode(volume, voxels, params); });
  };
  EXPECT_NE(refusal(v, nan, lossy).find("no voxel has a value of its own"), std::string::npos);
  for (std::size_t i = 0; i < 300; ++i) store_scalar(0x7fc00000u + i, v.voxel, nan.data() + 4 * i);
  EXPECT_NE(refusal(v, nan, lossy).find("more than 255"), std::string::npos);
  VolumeEncoderParams fills;
  fills.threads = 1;
  fills.fill_values = {1};
  EXPECT_NE(refusal(v, Voxels(v.bytes()), fills).find("fill values are for coding with loss"), std::string::npos);
  fills.max_error = 2;
  fills.fill_values = {0.5};
  const VolumeDescription u8{{}, 20, 20, 2, 1};
  EXPECT_NE(refusal(u8, Voxels(u8.bytes()), fills).find("uint8 cannot hold"), std::string::npos);
}

TEST(Mask, damage_is_found) {
  const VolumeDescription v{{VoxelType::kF32, false, 1}, 26, 20, 5, 1};
  VolumeEncoderParams params;
  params.threads = 1;
  params.effort = VolumeEffort::kFast;
  params.quality = 40;
  params.layers = 1;
  const Coded coded = encode(v, make_voxels(v, NAN), params);
  const auto* first = reinterpret_cast<const std::uint8_t*>(coded.bytes.data());
  const test::Bytes stream(first, first + coded.bytes.size());
  const std::vector<test::BoxAt> boxes = test::list_boxes(stream.data(), stream.size());
  const auto mask = std::find_if(boxes.begin(), boxes.end(), [](const test::BoxAt& b) { return b.type == "Mask"; });
  ASSERT_NE(mask, boxes.end());
  const auto decode_all = [&](const test::Bytes& s) {
    decode({reinterpret_cast<const std::byte*>(s.data()), reinterpret_cast<const std::byte*>(s.data()) + s.size()});
  };
  test::OneOf sample(7);
  std::size_t refused = 0;
  for (std::size_t at = mask->payload(); at < mask->end() - kBoxCrcBytes; ++at) {
    test::Bytes damaged = stream;
    damaged[at] ^= static_cast<std::uint8_t>(1u << at % 8);
    if (sample()) {
      EXPECT_NE(message_of([&] { decode_all(damaged); }).find("'Mask'"), std::string::npos) << at;
    }
    // With a checksum that fits: refused, or other marks.
    test::repair_crc(damaged.data() + mask->payload(), mask->length);
    refused += !message_of([&] { decode_all(damaged); }).empty();
  }
  EXPECT_GT(refused, 5u);
  // One that is cut short is never taken for a whole one without marks at its end.
  const test::Bytes box(stream.begin() + static_cast<std::ptrdiff_t>(mask->payload()),
                        stream.begin() + static_cast<std::ptrdiff_t>(mask->end() - kBoxCrcBytes));
  for (std::size_t n = 0; n < box.size(); ++n) EXPECT_NE(message_of([&] { MaskDecoder(v, box.data(), n); }), "") << n;
  // Without the map of a volume it means nothing.
  test::Bytes alone = stream;
  std::memcpy(alone.data() + boxes[1].at, "note", 4);
  test::repair(alone);
  ASSERT_EQ(boxes[1].type, "Volm");
  EXPECT_NE(message_of([&] {
              MemorySource source(alone.data(), alone.size());
              probe(source);
            }).find("'Mask'"),
            std::string::npos);
}

}  // namespace
}  // namespace trivelet
