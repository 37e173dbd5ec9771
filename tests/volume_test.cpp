// Volumes through the public header: every kind of scalar, map, transform and order comes back, bounds and targets are
// kept, parts are parts of the whole, and what means nothing is refused.
#include "trivelet/volume.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <utility>

#include "codec/backend.h"
#include "tests/one_of.h"
#include "tests/volume_support.h"

namespace trivelet {
namespace {

using test::Bytes;
using test::Content;
using test::make_scalars;

/// Waves and a little noise, air at the sides: what volumes are like. Values from `low` up.
Bytes make_body(const VolumeDescription& v, double low, double range) {
  std::mt19937 random(3);
  Bytes out;
  for (std::uint64_t s = 0; s < v.all_slices(); ++s)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x)
        for (int c = 0; c < v.voxel.channels; ++c) {
          const double at = static_cast<double>(s % v.slices) + 0.3 * static_cast<double>(s / v.slices);
          const bool air = 2 * std::abs(2 * x - v.width) > 2 * v.width - 6;
          const double wave = 0.5 + 0.4 * std::sin(0.3 * x + 0.1 * at + c) * std::cos(0.2 * y - 0.2 * at);
          const double value =
              air ? low : std::floor(low + range * (wave + 1e-10 * static_cast<double>(random() % 400000000)));
          std::uint64_t bits = 0;
          if (v.voxel.type == VoxelType::kF64) {
            std::memcpy(&bits, &value, 8);
          } else if (v.voxel.type == VoxelType::kF32) {
            const auto f = static_cast<float>(value);
            std::memcpy(&bits, &f, 4);
          } else {
            bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
          }
          test::put_scalar(out, bits, v.voxel);
        }
  return out;
}

struct Coded {
  VolumeResult result;
  std::vector<std::byte> bytes;
};

Coded encode(const VolumeDescription& v, const Bytes& voxels, const VolumeEncoderParams& params, bool verified = true) {
  MemorySlices slices(v, voxels.data());
  MemorySink sink;
  MemoryReadBack again(sink);
  Coded coded;
  coded.result = encode_volume(slices, params, sink, verified ? &again : nullptr);
  coded.bytes = std::move(sink.bytes);
  return coded;
}

struct Decoded {
  VolumeStreamInfo info;
  VolumeDescription output;
  VoxelRegion selection;
  std::array<std::uint64_t, 3> step;
  std::uint64_t bytes_read = 0;
  Bytes voxels{};
};

Decoded decode(const std::vector<std::byte>& stream, VolumeDecoderParams params = {}) {
  params.threads = 1;
  MemorySource source(stream.data(), stream.size());
  VolumeDecoder decoder(source, params);
  Decoded d{decoder.info(), decoder.output(), decoder.selection(), decoder.step()};
  Bytes slice(d.output.slice_bytes());
  while (decoder.read(slice.data())) d.voxels.insert(d.voxels.end(), slice.begin(), slice.end());
  EXPECT_EQ(d.voxels.size(), d.output.bytes());
  d.bytes_read = decoder.stats().stream_bytes;
  return d;
}

/// A box of a volume in memory.
Bytes cut(const VolumeDescription& v, const Bytes& voxels, const VoxelRegion& r) {
  Bytes out;
  const std::size_t voxel = v.voxel.bytes();
  for (std::uint64_t t = 0; t < v.volumes; ++t)
    for (std::uint64_t z = r.z; z < r.z + r.depth; ++z)
      for (std::uint64_t y = r.y; y < r.y + r.height; ++y) {
        const std::uint64_t row = ((t * v.slices + z) * static_cast<std::uint64_t>(v.height) + y);
        const auto from = static_cast<std::size_t>(row * static_cast<std::uint64_t>(v.width) + r.x) * voxel;
        const auto size = static_cast<std::size_t>(r.width) * voxel;
        out.insert(out.end(), voxels.begin() + static_cast<std::ptrdiff_t>(from),
                   voxels.begin() + static_cast<std::ptrdiff_t>(from + size));
      }
  return out;
}

VolumeError distance(const VolumeDescription& v, const Bytes& a, const Bytes& b) {
  return compare_scalars(a.data(), v.voxel, b.data(), v.voxel,
                         a.size() / static_cast<std::size_t>(bytes_of(v.voxel.type)));
}

void expect_error(ErrorKind kind, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "nothing was refused; expected: " << part;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
  }
}

/// The ways to code, fixed so that all of them are seen.
struct Way {
  const char* name;
  VolumeTransform transform;
  bool palette;
  bool fourth_axis;
};
constexpr Way kWays[] = {
    {"wavelet", VolumeTransform::kWavelet, false, false},
    {"prediction in the slice", VolumeTransform::kPredictionInSlice, false, false},
    {"prediction across slices", VolumeTransform::kPredictionAcross, false, false},
    {"palette", VolumeTransform::kWavelet, true, false},
    {"fourth axis", VolumeTransform::kWavelet, false, true},
    {"fourth axis, prediction across, palette", VolumeTransform::kPredictionAcross, true, true},
};

VolumeEncoderParams params_of(const Way& way) {
  VolumeEncoderParams p;
  p.effort = VolumeEffort::kFast;
  p.transform = way.transform;
  p.palette = way.palette;
  p.fourth_axis_first = way.fourth_axis;
  p.threads = 1;
  p.layers = 2;
  p.block_size = 32;
  return p;
}

TEST(Volume, every_kind_comes_back) {
  int kinds = 0;
  int too_wide = 0;
  int turn = 0;
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const bool big : {false, true})
      for (const int channels : {1, 2, 3, 4})
        for (const Content content : {Content::kSparse, Content::kRandom}) {
          const VolumeDescription v{{static_cast<VoxelType>(t), big, channels}, 19, 13, 4, 3};
          const Bytes voxels = make_scalars(content, v.voxel, static_cast<std::size_t>(v.voxels()), 7);
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
            EXPECT_EQ(d.info.cuts, coded.result.cuts);
            EXPECT_EQ(coded.result.cuts.cuts.back().max_error, 0);
            EXPECT_EQ(coded.result.stats.stream_bytes, coded.bytes.size());
          }
        }
  EXPECT_GT(kinds, test::full() ? 450 : 75);
  EXPECT_GT(too_wide, test::full() ? 120 : 20);
}

TEST(Volume, errors_stay_within_the_bound) {
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const double bound : {1.0, 7.0}) {
      const VolumeDescription v{{static_cast<VoxelType>(t), t % 2 == 0, 1}, 24, 20, 6, 1};
      const Bytes voxels = make_body(v, is_signed(v.voxel.type) ? -100 : 3, 110);
      for (const VolumeTransform transform : {VolumeTransform::kWavelet, VolumeTransform::kPrediction}) {
        VolumeEncoderParams params;
        params.max_error = bound;
        params.transform = transform;
        params.threads = 1;
        const Coded coded = encode(v, voxels, params);
        const Decoded d = decode(coded.bytes);
        const VolumeError error = distance(v, voxels, d.voxels);
        SCOPED_TRACE(to_string(v.voxel.type) + " within " + std::to_string(bound));
        EXPECT_LE(error.max, bound);
        EXPECT_GT(error.max, 0);
        EXPECT_EQ(error.max, coded.result.cuts.cuts.back().max_error);
        EXPECT_LE(coded.result.promised_error, bound);
        EXPECT_EQ(d.info.max_error, coded.result.promised_error);
        EXPECT_TRUE(d.info.has_bound && !d.info.exact());
        EXPECT_EQ(d.info.map == VolumeMapKind::kReal, is_real(v.voxel.type));
      }
    }
}

/// A type's least and largest values, steps next to them, zeros, and what is far apart.
std::uint64_t hostile_bits(VoxelType type, std::mt19937_64& random) {
  const int bits = 8 * bytes_of(type);
  const std::uint64_t all = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  if (is_real(type)) {
    const double sign = random() % 2 ? 1 : -1;
    const int most = type == VoxelType::kF32 ? 38 : 300;
    const double of_any_size = sign * std::pow(10.0, static_cast<double>(random() % 40) - 20 - (most > 38 ? 100 : 0));
    const double value = random() % 4 == 0 ? 0
                         : random() % 2    ? of_any_size
                                           : sign * static_cast<double>(random() % 1000);
    std::uint64_t b = 0;
    if (type == VoxelType::kF64) {
      std::memcpy(&b, &value, 8);
    } else {
      const auto f = static_cast<float>(value);
      std::memcpy(&b, &f, 4);
    }
    return b;
  }
  switch (random() % 6) {
    case 0: return random() % 3;
    case 1: return all - random() % 3;
    case 2: return (all >> 1) + random() % 3;
    case 3: return (random() & all) >> random() % static_cast<unsigned>(bits);
    default: return random() & all;
  }
}

TEST(Volume, bounds_hold_in_random_volumes_with_hostile_ranges) {
  std::mt19937_64 random(20);
  const int volumes = test::full() ? 2000 : test::kSanitized ? 40 : 120;
  int coded_with_loss = 0;
  for (int i = 0; i < volumes; ++i) {
    VolumeDescription v;
    v.voxel = {static_cast<VoxelType>(i % kVoxelTypes), random() % 2 == 0, 1};
    v.width = 1 + static_cast<int>(random() % 14);
    v.height = 1 + static_cast<int>(random() % 9);
    v.slices = 1 + random() % 6;
    const bool narrow = random() % 3 == 0;  // few values, near each other
    const std::uint64_t middle = hostile_bits(v.voxel.type, random);
    Bytes voxels;
    for (std::uint64_t n = 0; n < v.voxels(); ++n)
      test::put_scalar(voxels, narrow ? middle ^ random() % 8 : hostile_bits(v.voxel.type, random), v.voxel);
    double largest = 0;
    for (std::size_t at = 0; at < voxels.size(); at += v.voxel.bytes())
      largest = std::max(largest, std::fabs(scalar_value(&voxels[at], v.voxel.type, v.voxel.big_endian)));
    VolumeEncoderParams params;
    params.max_error = std::exp2(static_cast<double>(random() % 16) - 4);
    if (random() % 3 == 0) params.max_error = largest / static_cast<double>(2 + random() % 1000);
    if (!(params.max_error > 0)) params.max_error = 1;
    params.transform = random() % 2 ? VolumeTransform::kPrediction : VolumeTransform::kWavelet;
    if (params.transform == VolumeTransform::kWavelet && random() % 2) params.profile = Profile::kFast;
    params.verification = random() % 2 ? VolumeVerify::kRunning : VolumeVerify::kFull;
    params.threads = 1;
    params.layers = 1;
    SCOPED_TRACE("volume " + std::to_string(i) + ", " + to_string(v.voxel.type) + ", " + std::to_string(v.width) + "x" +
                 std::to_string(v.height) + "x" + std::to_string(v.slices) + " within " +
                 std::to_string(params.max_error));
    std::optional<Coded> coded;
    try {
      coded = encode(v, voxels, params);
    } catch (const Error& e) {  // more than a stream can hold is refused, never coded with larger errors
      EXPECT_TRUE(e.kind() == ErrorKind::kBadArgument || e.kind() == ErrorKind::kUnsupported) << e.what();
      continue;
    }
    const VolumeError error = distance(v, voxels, decode(coded->bytes).voxels);
    EXPECT_LE(error.max, params.max_error);
    EXPECT_LE(error.max, coded->result.promised_error);
    EXPECT_EQ(error.max, coded->result.cuts.cuts.back().max_error);
    coded_with_loss += error.different > 0 ? 1 : 0;
  }
  EXPECT_GT(coded_with_loss, volumes / 4);
}

TEST(Volume, lossy_targets_are_kept) {
  for (const VoxelType type : {VoxelType::kU8, VoxelType::kI32, VoxelType::kF32}) {
    const VolumeDescription v{{type, true, 1}, 50, 40, 10, 1};
    const double low = is_signed(type) ? -50 : 5;
    const Bytes voxels = make_body(v, low, type == VoxelType::kI32 ? 2e9 : 200);
    const auto with = [&](const auto& set) {
      VolumeEncoderParams params;
      params.threads = 1;
      params.effort = VolumeEffort::kFast;
      params.layers = 2;
      params.block_size = 32;
      set(params);
      const Coded coded = encode(v, voxels, params);
      const VolumeError error = distance(v, voxels, decode(coded.bytes).voxels);
      EXPECT_FALSE(coded.result.exact());
      EXPECT_NEAR(psnr_of(coded.result.cuts, coded.result.cuts.cuts.size() - 1), error.psnr(), 1e-6);
      return std::pair{coded.bytes.size(), error.psnr()};
    };
    SCOPED_TRACE(to_string(type));
    EXPECT_LE(with([](auto& p) { p.bits_per_voxel = 1.5; }).first * 8, 1.5 * static_cast<double>(v.voxels()));
    EXPECT_LE(with([](auto& p) { p.total_bytes = 4000; }).first, 4000u);
    EXPECT_LE(with([](auto& p) { p.ratio = 8; }).first * 8, v.bytes());
    const double psnr = with([](auto& p) { p.psnr = 42; }).second;
    EXPECT_GT(psnr, 41.8);
    EXPECT_LT(psnr, 48);
    EXPECT_GT(with([](auto& p) { p.quality = 80; }).second, with([](auto& p) { p.quality = 40; }).second + 6);
    EXPECT_GT(with([](auto& p) { p.step = 2; }).second, with([](auto& p) { p.step = 20; }).second + 6);
  }
}

TEST(Volume, lossy_floats_and_multiples_of_any_range_have_one_plane) {
  for (const double low : {-50.0, 300.0, 100000.0}) {
    const VolumeDescription v{{VoxelType::kF32, false, 1}, 40, 30, 4, 1};
    Bytes voxels = make_body(v, low, 40);
    VolumeEncoderParams params;
    params.threads = 1;
    params.quality = 90;
    const Decoded d = decode(encode(v, voxels, params).bytes);
    EXPECT_LE(d.info.bits, 16) << low;
    EXPECT_GT(distance(v, voxels, d.voxels).psnr(), 50) << low;
  }
  const VolumeDescription v{{VoxelType::kI32, false, 1}, 400, 300, 1, 1};
  Bytes tens;
  for (std::uint64_t i = 0; i < v.voxels(); ++i) test::put_scalar(tens, i * 10, v.voxel);
  VolumeEncoderParams params;
  params.threads = 1;
  params.quality = 90;
  EXPECT_LE(decode(encode(v, tens, params, false).bytes).info.bits, 16);
}

TEST(Volume, a_region_is_a_part_of_the_whole) {
  for (const std::uint64_t volumes : {1u, 3u}) {
    const VolumeDescription v{{VoxelType::kI16, false, 1}, 80, 70, 8, volumes};
    const Bytes voxels = make_body(v, -1000, 3000);
    for (std::size_t w = 0; w < std::size(kWays); ++w) {
      if (!test::full() && (w % 2 == 0) != (volumes == 3)) continue;  // a fourth axis for half of the ways
      const Way& way = kWays[w];
      VolumeEncoderParams params = params_of(way);
      params.slab = 4;
      const Coded coded = encode(v, voxels, params, false);
      const std::uint64_t all = decode(coded.bytes).bytes_read;
      for (const VoxelRegion& r : {VoxelRegion{0, 0, 0, 20, 20, 8}, VoxelRegion{40, 33, 3, 40, 31, 3},
                                   VoxelRegion{0, 69, 7, 80, 1, 1}, VoxelRegion{0, 0, 2, 80, 70, 2}}) {
        VolumeDecoderParams part;
        part.region = r;
        const Decoded d = decode(coded.bytes, part);
        SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(volumes) + " volumes, region at " +
                     std::to_string(r.x));
        EXPECT_EQ(d.voxels, cut(v, voxels, r));
        EXPECT_EQ(d.selection.z, r.z);
        if (r.width == 20) {
          EXPECT_LT(d.bytes_read, all);
        }
        if (volumes == 1 || r.width != 40) continue;
        // Some of the volumes.
        for (const std::uint64_t n : {0u, 1u}) {
          part.first_volume = 1;
          part.volumes = n;
          const Decoded some = decode(coded.bytes, part);
          const auto first = static_cast<std::ptrdiff_t>(d.voxels.size() / 3);
          EXPECT_EQ(some.output.volumes, n == 0 ? 2U : 1U);
          EXPECT_EQ(some.voxels,
                    Bytes(d.voxels.begin() + first, n == 0 ? d.voxels.end() : d.voxels.begin() + 2 * first));
          EXPECT_LE(some.bytes_read, d.bytes_read);
        }
        part.volumes = 3;
        expect_error(ErrorKind::kBadArgument, "volumes 1 to 4 of 3", [&] { decode(coded.bytes, part); });
      }
    }
  }
}

TEST(Volume, a_reduced_region_is_a_part_of_the_reduced_whole) {
  for (const std::uint64_t volumes : {1u, 2u}) {
    const VolumeDescription v{{VoxelType::kU16, true, 1}, 70, 61, 16, volumes};
    const Bytes voxels = make_body(v, 10, 900);
    for (const bool lossy : {false, true}) {
      VolumeEncoderParams params;
      if (lossy) params.quality = 60;
      params.slice_levels = 3;
      params.depth_levels = 2;
      params.slab = 8;
      params.threads = 1;
      const Coded coded = encode(v, voxels, params, false);
      for (const int reduce : {1, 3}) {
        VolumeDecoderParams small;
        small.reduce = reduce;
        const Decoded whole = decode(coded.bytes, small);
        const int step = 1 << reduce;
        EXPECT_EQ(whole.output.width, (v.width + step - 1) / step);
        EXPECT_EQ(whole.output.height, (v.height + step - 1) / step);
        const std::uint64_t z_step = reduce == 1 ? 2 : 4;
        EXPECT_EQ(whole.step, (std::array<std::uint64_t, 3>{static_cast<std::uint64_t>(step),
                                                            static_cast<std::uint64_t>(step), z_step}));
        EXPECT_EQ(whole.output.slices, v.slices / z_step);
        small.region = VoxelRegion{17, 9, 4, 30, 40, 8};
        const Decoded part = decode(coded.bytes, small);
        EXPECT_EQ(part.voxels, cut(whole.output, whole.voxels, part.selection));
        EXPECT_LE(part.selection.x * static_cast<std::uint64_t>(step), 17u);
        EXPECT_GE((part.selection.x + part.selection.width) * static_cast<std::uint64_t>(step), 47u);
        if (volumes == 2) {
          small.first_volume = 1;
          const Decoded second = decode(coded.bytes, small);
          EXPECT_EQ(second.voxels,
                    Bytes(part.voxels.end() - static_cast<std::ptrdiff_t>(part.voxels.size() / 2), part.voxels.end()));
          EXPECT_LT(second.bytes_read, part.bytes_read);
        }
        // It looks like the volume.
        double off = 0;
        for (int x = 0; x < whole.output.width; ++x)
          off += std::fabs(scalar_value(whole.voxels.data() + 2 * x, v.voxel.type, true) -
                           scalar_value(voxels.data() + 2 * x * step, v.voxel.type, true));
        EXPECT_LT(off / whole.output.width, 200);
      }
    }
  }
}

TEST(Volume, several_slices_at_once_are_those_one_by_one) {
  const VolumeDescription v{{VoxelType::kI16, true, 1}, 21, 13, 30, 2};
  const Bytes voxels = make_scalars(Content::kEvery, v.voxel, static_cast<std::size_t>(v.voxels()), 3);
  for (const bool fourth_first : {false, true}) {
    VolumeEncoderParams params;
    params.transform = VolumeTransform::kWavelet;
    params.slab = 8;
    params.fourth_axis_first = fourth_first;
    MemorySlices slices(v, voxels.data());
    MemorySink sink;
    encode_volume(slices, params, sink);
    for (int part = 0; part < 4; ++part)
      for (const std::uint64_t most : {1, 3, 100}) {
        VolumeDecoderParams reading;
        reading.threads = 3;
        if (part == 1) reading.region = {0, 0, 5, 21, 13, 17};
        if (part == 2) reading.region = {2, 3, 1, 9, 8, 20};
        if (part == 3) reading.max_layers = 1;
        MemorySource one(sink.bytes.data(), sink.bytes.size()), several(sink.bytes.data(), sink.bytes.size());
        VolumeDecoder a(one, reading), b(several, reading);
        Bytes wanted(a.output().slice_bytes()), given(wanted.size() * most);
        std::uint64_t count = 0;
        while (const std::uint64_t n = b.read(given.data(), most)) {
          ASSERT_LE(n, most);
          for (std::uint64_t i = 0; i < n; ++i, ++count) {
            ASSERT_TRUE(a.read(wanted.data()));
            EXPECT_EQ(0, std::memcmp(wanted.data(), &given[i * wanted.size()], wanted.size())) << count;
          }
        }
        EXPECT_EQ(count, a.output().all_slices());
        EXPECT_FALSE(a.read(wanted.data()));
        EXPECT_THROW(b.read(given.data(), 0), Error);
      }
  }
}

// Integers of 8 and 16 bits are compared by loops of their own.
TEST(Volume, distances_are_those_of_the_values) {
  for (const VoxelType type : {VoxelType::kU8, VoxelType::kI8, VoxelType::kU16, VoxelType::kI16, VoxelType::kI32})
    for (const bool big : {false, true})
      for (const std::size_t n : {1, 7, 4096, 10001}) {
        const VoxelFormat format{type, big, 1};
        const Bytes a = make_scalars(Content::kRandom, format, n, 1);
        Bytes b = make_scalars(Content::kRandom, format, n, 2);
        const auto step = static_cast<std::size_t>(bytes_of(type));
        std::copy(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n / 3 * step), b.begin());
        VolumeError wanted;
        for (std::size_t i = 0; i < n; ++i) {
          const double x = scalar_value(&a[i * step], type, big), y = scalar_value(&b[i * step], type, big);
          const VolumeError one{1, x != y ? 1u : 0u, (x - y) * (x - y), std::fabs(x - y), x, x};
          wanted.add(one);
        }
        const VolumeError e = compare_scalars(a.data(), format, b.data(), format, n);
        EXPECT_EQ(e.scalars, wanted.scalars);
        EXPECT_EQ(e.different, wanted.different);
        EXPECT_NEAR(e.squared, wanted.squared, 1e-12 * wanted.squared);
        EXPECT_EQ(e.max, wanted.max);
        EXPECT_EQ(e.least, wanted.least);
        EXPECT_EQ(e.largest, wanted.largest);
      }
}

TEST(Volume, layers_are_worth_what_the_stream_says) {
  const VolumeDescription v{{VoxelType::kI16, false, 2}, 40, 30, 9, 1};
  const Bytes voxels = make_body(v, -200, 2000);
  for (const Profile profile : {Profile::kDense, Profile::kFast}) {
    VolumeEncoderParams params;
    params.profile = profile;
    params.transform = VolumeTransform::kWavelet;
    params.threads = 1;
    const std::vector<std::byte> stream = encode(v, voxels, params).bytes;
    const Decoded all = decode(stream);
    ASSERT_EQ(all.info.cuts.cuts.size(), profile == Profile::kDense ? 9u : 4u);
    for (int n = 1; n <= static_cast<int>(all.info.cuts.cuts.size()); ++n) {
      VolumeDecoderParams fewer;
      fewer.max_layers = n;
      const VolumeError error = distance(v, voxels, decode(stream, fewer).voxels);
      const VolumeCuts::Cut& said = all.info.cuts.cuts[static_cast<std::size_t>(n) - 1];
      EXPECT_EQ(error.max, said.max_error) << n;
      EXPECT_NEAR(error.squared / static_cast<double>(error.scalars), said.mean_squared_error, 1e-9) << n;
    }
    EXPECT_GT(all.info.cuts.cuts[0].max_error, 0);
    VolumeDecoderParams planes;
    planes.max_planes = 4;
    EXPECT_GT(distance(v, voxels, decode(stream, planes).voxels).max, 0);
  }
}

TEST(Volume, trials_choose_what_is_smaller) {
  // Sharp steps between few values: nothing for a wavelet, and a table pays.
  const VolumeDescription steps{{VoxelType::kI16, false, 1}, 48, 48, 8, 1};
  Bytes labels;
  for (std::uint64_t i = 0; i < steps.voxels(); ++i)
    test::put_scalar(labels, static_cast<std::uint64_t>((i / 8 * 7 + i / (48 * 12)) % 5 * 977), steps.voxel);
  const VolumeDescription waves{{VoxelType::kI16, false, 1}, 40, 32, 4, 12};
  const Bytes body = make_body(waves, 0, 3000);
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
  const Bytes voxels = make_body(v, 0, 5000);
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
  EXPECT_LT(plain.bytes.size(), one.bytes.size());
}

/// Has something to keep, and may say something else when it is read again.
class OtherSlices final : public SliceSource {
 public:
  OtherSlices(const VolumeDescription& v, const Bytes& voxels) : slices_(v, voxels.data()) {}
  const VolumeDescription& description() const override { return slices_.description(); }
  void read(std::byte* slice) override {
    slices_.read(slice);
    if (passes >= bad_pass) slice[0] ^= std::byte{1};
  }
  void rewind() override {
    ++passes;
    slices_.rewind();
  }
  std::vector<std::uint8_t> envelope() override {
    EXPECT_EQ(passes, 0);
    return {1, 2, 3, 0, 255};
  }
  int passes = 0;
  int bad_pass = 100;

 private:
  MemorySlices slices_;
};

class SlicesInOrder final : public SliceSource {
 public:
  SlicesInOrder(const VolumeDescription& v, const Bytes& voxels) : slices_(v, voxels.data()) {}
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
      const Bytes voxels = make_body(v, 0, 200);
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

TEST(Volume, the_envelope_passes_through_and_a_wrong_stream_does_not) {
  const VolumeDescription v{{VoxelType::kU8, false, 1}, 20, 20, 3, 1};
  const Bytes voxels = make_body(v, 0, 200);
  for (const int bad : {100, 2}) {
    OtherSlices slices(v, voxels);
    slices.bad_pass = bad;
    MemorySink sink;
    MemoryReadBack again(sink);
    VolumeEncoderParams params;
    params.threads = 1;
    if (bad == 2) {
      expect_error(ErrorKind::kMismatch, "values differ", [&] { encode_volume(slices, params, sink, &again); });
      continue;
    }
    encode_volume(slices, params, sink, &again);
    EXPECT_EQ(decode(sink.bytes).info.envelope, (std::vector<std::uint8_t>{1, 2, 3, 0, 255}));
  }
}

/// The CPU's, with a byte of every 60 coded ones turned over: a coder in a wrong state.
class FaultyEncoder final : public GopEncoder {
 public:
  explicit FaultyEncoder(std::unique_ptr<GopEncoder> right) : right_(std::move(right)) {}
  int depth() const override { return right_->depth(); }
  void push(const Gop& gop, const GopChoices& choices) override { right_->push(gop, choices); }
  void push(CoefficientGop& coefficients, const GopChoices& choices) override { right_->push(coefficients, choices); }
  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    right_->transform(gop, choices, out);
  }
  bool pull(CodedGop& out) override {
    if (!right_->pull(out)) return false;
    for (auto& component : out.components)
      for (CodedBlock& block : component.blocks)
        for (std::size_t i = block.bytes.size(); i > 100; i -= 60) block.bytes[i - 8] ^= 0x10;
    return true;
  }
  double seconds_transform() const override { return right_->seconds_transform(); }
  double seconds_coder() const override { return right_->seconds_coder(); }

 private:
  std::unique_ptr<GopEncoder> right_;
};

TEST(Volume, verifying_in_full_finds_a_wrong_coder) {
  const VolumeDescription v{{VoxelType::kI16, false, 1}, 40, 30, 8, 1};
  const Bytes voxels = make_body(v, -100, 900);
  Backend faulty = cpu_backend();
  faulty.make_encoder = [](const StreamHeader& header, const BackendOptions& options) -> std::unique_ptr<GopEncoder> {
    return std::make_unique<FaultyEncoder>(cpu_backend().make_encoder(header, options));
  };
  for (const VolumeTransform transform : {VolumeTransform::kPrediction, VolumeTransform::kWavelet}) {
    VolumeEncoderParams params;
    params.transform = transform;
    params.threads = 1;
    EXPECT_TRUE(encode(v, voxels, params).result.verified);
    params.backend = [&faulty](Profile) { return &faulty; };
    MemorySlices slices(v, voxels.data());
    MemorySink sink;
    MemoryReadBack again(sink);
    expect_error(ErrorKind::kMismatch, "", [&] { encode_volume(slices, params, sink, &again); });
  }
}

/// Gives back other bytes than were written.
class WrongReadBack final : public ReadBack {
 public:
  explicit WrongReadBack(MemorySink& sink) : sink_(sink) {}
  std::unique_ptr<ByteSource> open() override {
    bytes_ = sink_.bytes;
    bytes_[bytes_.size() / 2] ^= std::byte{1};
    return std::make_unique<MemorySource>(bytes_.data(), bytes_.size());
  }
  void replace(std::uint64_t, const void*, std::size_t) override { ADD_FAILURE() << "a wrong stream was finished"; }

 private:
  MemorySink& sink_;
  std::vector<std::byte> bytes_;
};

TEST(Volume, verifying_while_coding_finds_what_it_says) {
  for (const double max_error : {0.0, 3.0}) {
    const VolumeDescription v{{VoxelType::kI16, true, 1}, 40, 30, 8, 3};
    const Bytes voxels = make_body(v, -100, 900);
    VolumeEncoderParams params;
    params.threads = 1;
    params.max_error = max_error;
    const Coded full = encode(v, voxels, params);
    params.verification = VolumeVerify::kRunning;
    const Coded running = encode(v, voxels, params);
    EXPECT_TRUE(running.result.verified && running.bytes == full.bytes);
    EXPECT_EQ(running.result.cuts, full.result.cuts);
    EXPECT_EQ(running.result.cuts.cuts.size(), 1u);

    OtherSlices changing(v, voxels);
    changing.bad_pass = 1;
    MemorySink sink;
    MemoryReadBack again(sink);
    expect_error(ErrorKind::kMismatch, "other values when it was read again",
                 [&] { encode_volume(changing, params, sink, &again); });
    MemorySlices slices(v, voxels.data());
    MemorySink other;
    WrongReadBack wrong(other);
    expect_error(ErrorKind::kMismatch, "reads back as something else",
                 [&] { encode_volume(slices, params, other, &wrong); });
  }
}

TEST(Volume, pictures_are_numbers_unless_they_are_differences) {
  const VolumeDescription v{{VoxelType::kI16, true, 1}, 21, 17, 5, 1};
  Bytes voxels;  // steps of 4 from -100 on
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
  const Bytes voxels = make_body(v, 0, 900);
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
  refuse(
      "a palette needs", [](auto& p) { p.palette = true, p.max_error = 2; }, v);
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
  // Of a volume of uint8 in one slice, whose map was told otherwise.
  std::vector<std::uint8_t> map = {1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 255, 1, 0, 1, 255, 1};
  EXPECT_EQ(decode(stream({{"Volm", map}})).output, (VolumeDescription{{}, 16, 16, 1, 1}));
  auto changed = [&](std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> other = map;
    other[at] = value;
    return stream({{"Volm", other}});
  };
  expect_error(ErrorKind::kUnsupported, "version 2", [&] { decode(changed(0, 2)); });
  expect_error(ErrorKind::kBadStream, "1 pictures, its volume 2 slices", [&] { decode(changed(7, 2)); });
  expect_error(ErrorKind::kBadStream, "its map of the volume", [&] { decode(changed(3, 2)); });
  map.pop_back();
  expect_error(ErrorKind::kBadStream, "ends too early", [&] { decode(stream({{"Volm", map}})); });
}

}  // namespace
}  // namespace trivelet
