// Small volumes of many kinds: more effort is never larger, and what is coded comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/volume_coding_support.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

using test::decode;
using test::encode;
using test::make_body;
using test::put_scalar;
using test::VolumeBytes;

struct Kind {
  std::string name;
  VolumeDescription volume;
  std::function<int(int z, int y, int x, std::mt19937& random)> value;
};

int region(int z, int y, int x) {
  const double wave = std::sin(0.11 * x + 0.05 * z) + std::cos(0.13 * y - 0.07 * z) + std::sin(0.05 * (x + y));
  return static_cast<int>(std::floor(3 * wave)) + 9;
}

int tissue(int z, int y, int x, std::mt19937& random, int noise) {
  const int edge = region(z, y, x) > 9 ? 300 : 0;
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += static_cast<int>(random() % static_cast<unsigned>(noise));
  return 900 + edge + static_cast<int>(200 * std::sin(0.03 * x + 0.04 * y + 0.1 * z)) + sum / 2;
}

std::vector<Kind> kinds() {
  const VoxelFormat u8{VoxelType::kU8, false, 1};
  const VoxelFormat u16{VoxelType::kU16, false, 1};
  return {{"scan", {u16, 40, 36, 12, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 9); }},
          {"small", {u16, 20, 24, 5, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 9); }},
          {"one slice", {u16, 96, 80, 1, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 9); }},
          {"two slices", {u16, 72, 64, 2, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 9); }},
          {"grid", {u16, 40, 36, 8, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 9) / 16 * 257; }},
          {"noisy", {u16, 40, 36, 8, 1}, [](int z, int y, int x, auto& r) { return tissue(z, y, x, r, 400); }},
          {"labels", {u8, 48, 40, 10, 1}, [](int z, int y, int x, auto&) { return region(z, y, x); }},
          {"labels, far apart", {u8, 80, 72, 2, 1}, [](int z, int y, int x, auto&) { return 11 * region(z, y, x); }},
          {"mask", {u8, 48, 40, 10, 1}, [](int z, int y, int x, auto&) { return region(z, y, x) > 9 ? 255 : 0; }},
          {"white", {u8, 40, 36, 6, 1}, [](int, int, int, auto& r) { return static_cast<int>(r() % 256); }},
          {"sparse", {u16, 40, 36, 8, 1}, [](int, int, int, auto& r) { return r() % 300 == 0 ? int(r() % 4000) : 0; }},
          {"constant", {u8, 32, 32, 8, 1}, [](int, int, int, auto&) { return 7; }}};
}

VolumeBytes voxels_of(const Kind& kind) {
  std::mt19937 random(5);
  VolumeBytes out;
  const VolumeDescription& v = kind.volume;
  for (int z = 0; z < static_cast<int>(v.slices); ++z)
    for (int y = 0; y < v.height; ++y)
      for (int x = 0; x < v.width; ++x)
        put_scalar(out, static_cast<std::uint64_t>(kind.value(z, y, x, random)), v.voxel);
  return out;
}

// Independent voxels take their entropy, up to 2 % and what any stream takes.
TEST(VolumeEffort, noise_takes_its_entropy) {
  const VoxelFormat u8{VoxelType::kU8, false, 1};
  const VoxelFormat u16{VoxelType::kU16, false, 1};
  const auto any = [](int, int, int, auto& r) { return static_cast<int>(r() & 0xFFFF); };
  const double tenth = -0.1 * std::log2(0.1) - 0.9 * std::log2(0.9);
  const std::vector<std::pair<Kind, double>> cases{
      {{"bytes", {u8, 128, 128, 2, 1}, [](int, int, int, auto& r) { return static_cast<int>(r() & 255); }}, 8},
      {{"numbers", {u16, 128, 128, 2, 1}, any}, 16},
      {{"points", {u8, 128, 128, 6, 1}, [](int, int, int, auto& r) { return r() % 10 == 0 ? 1 : 0; }}, tenth}};
  for (const auto& [kind, bits] : cases) {
    VolumeEncoderParams params;
    params.threads = 1;
    const double entropy = bits / 8 * static_cast<double>(kind.volume.voxels());
    EXPECT_LT(static_cast<double>(encode(kind.volume, voxels_of(kind), params).bytes.size()), 1.02 * entropy + 400)
        << kind.name;
  }
}

/// A scan of smooth tissue and noise in air.
int in_air(int z, int y, int x, std::mt19937& random) {
  const double smooth = 90 * (std::sin(0.03 * x + 0.02 * z) + std::cos(0.04 * y)) - 70;
  return std::max(0, static_cast<int>(smooth) + static_cast<int>(random() % 12));
}

/// What is said while a volume of 160x128x56 is coded.
std::string remarks_of(const Kind& kind, VolumeEffort effort, double max_error) {
  VolumeEncoderParams params;
  params.effort = effort;
  if (effort == VolumeEffort::kFast) params.profile = Profile::kFast;
  params.max_error = max_error;
  params.threads = 1;
  std::string remarks;
  params.on_remark = [&](const std::string& remark) { remarks += remark + "\n"; };
  const test::Coded coded = encode(kind.volume, voxels_of(kind), params);
  return remarks;
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

// Of large volumes an estimate decides whether blocks are coded as labels, without a trial: not of a scan in air.
TEST(VolumeEffort, labels_are_estimated) {
  const VolumeDescription volume{{VoxelType::kU8, false, 1}, 160, 128, 56, 1};
  const auto regions = [](int z, int y, int x, auto&) { return region(z, y, x); };
  const auto enlarged = [](int z, int y, int x, auto&) { return region(z / 2 * 2, y / 2 * 2, x / 2 * 2); };
  const auto half = [](int z, int y, int x, auto& r) { return x < 128 ? in_air(z, y, x, r) : 17 * region(z, y, x); };
  const std::vector<std::pair<Kind, bool>> cases{{{"scan in air", volume, in_air}, false},
                                                 {{"labels", volume, regions}, true},
                                                 {{"labels, enlarged", volume, enlarged}, true},
                                                 {{"labels beside a scan", volume, half}, true}};
  for (const auto& [kind, labels] : cases) {
    const std::string remarks = remarks_of(kind, VolumeEffort::kFast, 0);
    EXPECT_FALSE(has(remarks, "tried")) << kind.name << ":\n" << remarks;
    EXPECT_EQ(has(remarks, "chosen: labels"), labels) << kind.name << ":\n" << remarks;
  }
}

// Where a bound plainly saves, nothing is coded to learn whether a stream without loss is smaller.
TEST(VolumeEffort, a_bound_that_saves_needs_no_trial) {
  const Kind scan{"scan in air", {{VoxelType::kU8, false, 1}, 160, 128, 56, 1}, in_air};
  const std::string remarks = remarks_of(scan, VolumeEffort::kMedium, 2);
  EXPECT_FALSE(has(remarks, "tried")) << remarks;
}

TEST(VolumeEffort, more_is_never_larger) {
  for (const Kind& kind : kinds()) {
    const VolumeBytes voxels = voxels_of(kind);
    std::size_t before = ~std::size_t{0};
    for (const VolumeEffort effort : {VolumeEffort::kFast, VolumeEffort::kMedium, VolumeEffort::kSlow}) {
      VolumeEncoderParams params;
      params.effort = effort;
      params.profile = effort == VolumeEffort::kFast ? Profile::kFast : Profile::kDense;  // as the program does
      params.threads = 1;
      const test::Coded coded = encode(kind.volume, voxels, params);
      EXPECT_EQ(decode(coded.bytes).voxels, voxels) << kind.name;
      EXPECT_LE(coded.bytes.size(), before) << kind.name << ", effort " << static_cast<int>(effort);
      before = coded.bytes.size();
    }
  }
}

}  // namespace
}  // namespace trivelet
