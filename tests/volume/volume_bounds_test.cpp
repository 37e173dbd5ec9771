// Lossy volumes: error bounds and targets are met, and layers have the stated errors.
#include "trivelet/volume.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "tests/support/one_of.h"
#include "tests/support/volume_coding_support.h"

namespace trivelet {
namespace {

using test::Coded;
using test::Content;
using test::decode;
using test::Decoded;
using test::distance;
using test::encode;
using test::make_body;
using test::make_scalars;
using test::VolumeBytes;

TEST(VolumeBounds, errors_stay_within_the_bound) {
  test::OneOf some(test::kSanitized ? 3 : 1);
  for (int t = 0; t < kVoxelTypes; ++t)
    for (const double bound : {1.0, 7.0}) {
      const VolumeDescription v{{static_cast<VoxelType>(t), t % 2 == 0, 1}, 24, 20, 6, 1};
      const VolumeBytes voxels = make_body(v, is_signed(v.voxel.type) ? -100 : 3, 110);
      for (const VolumeTransform transform : {VolumeTransform::kWavelet, VolumeTransform::kPrediction}) {
        if (!some()) continue;
        VolumeEncoderParams params;
        params.max_error = bound;
        params.transform = transform;
        params.palette = false;
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
    const double any_magnitude = sign * std::pow(10.0, static_cast<double>(random() % 40) - 20 - (most > 38 ? 100 : 0));
    const double value = random() % 4 == 0 ? 0
                         : random() % 2    ? any_magnitude
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

TEST(VolumeBounds, bounds_hold_in_random_volumes_with_hostile_ranges) {
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
    VolumeBytes voxels;
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

TEST(VolumeBounds, lossy_targets_are_kept) {
  for (const VoxelType type : {VoxelType::kU8, VoxelType::kI32, VoxelType::kF32}) {
    const VolumeDescription v{{type, true, 1}, 40, 32, 6, 1};
    const double low = is_signed(type) ? -50 : 5;
    const VolumeBytes voxels = make_body(v, low, type == VoxelType::kI32 ? 2e9 : 200);
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
    EXPECT_LE(with([](auto& p) { p.total_bytes = 1500; }).first, 1500u);
    EXPECT_LE(with([](auto& p) { p.ratio = 8; }).first * 8, v.bytes());
    const double psnr = with([](auto& p) { p.psnr = 42; }).second;
    EXPECT_GT(psnr, 41.8);
    EXPECT_LT(psnr, 48);
    EXPECT_GT(with([](auto& p) { p.quality = 80; }).second, with([](auto& p) { p.quality = 40; }).second + 6);
    const double step = type == VoxelType::kU8 ? 2 : 500;  // of 8 and of 16 bits
    EXPECT_GT(with([&](auto& p) { p.step = step; }).second, with([&](auto& p) { p.step = 10 * step; }).second + 6);
  }
}

TEST(VolumeBounds, loss_never_takes_more_bytes_than_none) {
  const VolumeDescription v{{VoxelType::kU16, false, 1}, 36, 32, 3, 1};
  std::mt19937_64 random(7);
  VolumeBytes few;  // 40 values far from each other, in no order
  for (std::uint64_t i = 0; i < v.voxels(); ++i) test::put_scalar(few, random() % 40 * 1621, v.voxel);
  for (const VolumeEffort effort : {VolumeEffort::kFast, VolumeEffort::kMedium, VolumeEffort::kSlow}) {
    const auto coded_with = [&](const auto& set) {
      VolumeEncoderParams params;
      params.threads = 1;
      params.effort = effort;
      set(params);
      const Coded coded = encode(v, few, params);
      const VolumeError error = distance(v, few, decode(coded.bytes).voxels);
      EXPECT_EQ(coded.result.exact(), error.different == 0);
      if (params.max_error > 0) {
        EXPECT_LE(error.max, params.max_error);
      }
      return coded;
    };
    const Coded exact = coded_with([](auto&) {});
    EXPECT_FALSE(exact.result.spared_loss);
    const auto spared = [&](const auto& set) {
      const Coded coded = coded_with(set);
      EXPECT_TRUE(coded.result.spared_loss);
      EXPECT_TRUE(coded.result.exact());
      EXPECT_LE(coded.bytes.size(), exact.bytes.size());
    };
    spared([](auto& p) { p.max_error = 1; });
    spared([](auto& p) { p.max_error = 1000; });
    spared([](auto& p) { p.quality = 95; });
    spared([&](auto& p) { p.total_bytes = exact.bytes.size(); });
    spared([](auto& p) { p.bits_per_voxel = 12; });
    const Coded less = coded_with([&](auto& p) { p.total_bytes = exact.bytes.size() - 1; });
    EXPECT_FALSE(less.result.spared_loss);
    EXPECT_LT(less.bytes.size(), exact.bytes.size());
    const Coded wide = coded_with([](auto& p) { p.max_error = 1621; });
    EXPECT_FALSE(wide.result.spared_loss);
    EXPECT_LT(wide.bytes.size(), exact.bytes.size() * 4 / 5);
  }
}

TEST(VolumeBounds, lossy_floats_and_multiples_of_any_range_have_one_plane) {
  for (const double low : {-50.0, 300.0, 100000.0}) {
    const VolumeDescription v{{VoxelType::kF32, false, 1}, 40, 30, 4, 1};
    VolumeBytes voxels = make_body(v, low, 40);
    VolumeEncoderParams params;
    params.threads = 1;
    params.quality = 90;
    const Decoded d = decode(encode(v, voxels, params).bytes);
    EXPECT_LE(d.info.bits, 16) << low;
    EXPECT_GT(distance(v, voxels, d.voxels).psnr(), 50) << low;
  }
  const VolumeDescription v{{VoxelType::kI32, false, 1}, 400, 300, 1, 1};
  VolumeBytes tens;
  for (std::uint64_t i = 0; i < v.voxels(); ++i) test::put_scalar(tens, i * 10, v.voxel);
  VolumeEncoderParams params;
  params.threads = 1;
  params.quality = 90;
  EXPECT_LE(decode(encode(v, tens, params, false).bytes).info.bits, 16);
}

// Integers of 8 and 16 bits are compared by loops of their own.
TEST(VolumeBounds, distances_are_those_of_the_values) {
  for (const VoxelType type : {VoxelType::kU8, VoxelType::kI8, VoxelType::kU16, VoxelType::kI16, VoxelType::kI32})
    for (const bool big : {false, true})
      for (const std::size_t n : {1, 7, 4096, 10001}) {
        const VoxelFormat format{type, big, 1};
        const VolumeBytes a = make_scalars(Content::kRandom, format, n, 1);
        VolumeBytes b = make_scalars(Content::kRandom, format, n, 2);
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

TEST(VolumeBounds, layers_are_worth_what_the_stream_says) {
  const VolumeDescription v{{VoxelType::kI16, false, 2}, 40, 30, 9, 1};
  const VolumeBytes voxels = make_body(v, -200, 2000);
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

}  // namespace
}  // namespace trivelet
