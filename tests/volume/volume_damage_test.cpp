// Damaged volumes with keep_partial: slices of damaged slabs are 0 and named, all others are as they were.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>

#include "tests/support/volume_coding_support.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

using test::Coded;
using test::encode;
using test::make_body;
using test::VolumeBytes;

struct Kept {
  VolumeBytes voxels;
  VolumeDescription output;
  std::vector<LostSlices> lost;
};

Kept decode_kept(const std::vector<std::byte>& stream, VolumeDecoderParams params) {
  params.threads = 1;
  params.keep_partial = true;
  MemorySource source(stream.data(), stream.size());
  VolumeDecoder decoder(source, params);
  Kept kept{{}, decoder.output(), {}};
  std::vector<std::byte> slice(kept.output.slice_bytes());
  for (int slices = 0; slices % 2 == 0 ? decoder.read(slice.data()) : decoder.read(slice.data(), 1) == 1; ++slices)
    kept.voxels.insert(kept.voxels.end(), slice.begin(), slice.end());
  kept.lost = decoder.lost();
  return kept;
}

/// The stream with a byte of the chunks of these GOPs changed.
std::vector<std::byte> damaged(const Coded& coded, const std::set<std::size_t>& gops) {
  std::vector<std::byte> bytes = coded.bytes;
  MemorySource source(coded.bytes.data(), coded.bytes.size());
  const StreamInfo info = probe(source);
  for (const std::size_t g : gops)
    bytes[static_cast<std::size_t>(info.gops[g].offset + info.gops[g].bytes * 3 / 4)] ^= std::byte{0x55};
  return bytes;
}

/// `voxels` with the slices at these places of the output 0.
VolumeBytes without(const VolumeDescription& v, VolumeBytes voxels, const std::set<std::uint64_t>& slices) {
  for (const std::uint64_t s : slices) {
    const auto first = voxels.begin() + static_cast<std::ptrdiff_t>(s * v.slice_bytes());
    std::fill(first, first + static_cast<std::ptrdiff_t>(v.slice_bytes()), std::byte{0});
  }
  return voxels;
}

void expect_lost(const LostSlices& lost, std::array<std::uint64_t, 5> due) {
  EXPECT_EQ((std::array{lost.first_slice, lost.first_volume, lost.last_slice, lost.last_volume, lost.delivered}), due);
  EXPECT_NE(lost.why.find("wrong checksum"), std::string::npos) << lost.why;
}

TEST(DamagedVolumes, slabs_of_slices) {
  const VolumeDescription v{{VoxelType::kU16, false, 1}, 30, 20, 10, 2};
  const VolumeBytes voxels = make_body(v, 10, 900);
  for (const VolumeTransform transform : {VolumeTransform::kPrediction, VolumeTransform::kWavelet}) {
    VolumeEncoderParams params;
    params.transform = transform;
    params.fourth_axis_first = false;
    params.effort = VolumeEffort::kFast;
    params.slab = 4;
    const Coded coded = encode(v, voxels, params);
    const Kept none = decode_kept(coded.bytes, {});
    EXPECT_EQ(none.voxels, voxels);
    EXPECT_TRUE(none.lost.empty());
    const Kept one = decode_kept(damaged(coded, {2}), {});  // frames 8 to 11
    EXPECT_EQ(one.voxels, without(v, voxels, {8, 9, 10, 11}));
    ASSERT_EQ(one.lost.size(), 1u);
    expect_lost(one.lost[0], {8, 0, 1, 1, 4});
    // Damaged slabs side by side are one place; others are not.
    const Kept more = decode_kept(damaged(coded, {0, 3, 4}), {});
    EXPECT_EQ(more.voxels, without(v, voxels, {0, 1, 2, 3, 12, 13, 14, 15, 16, 17, 18, 19}));
    ASSERT_EQ(more.lost.size(), 2u);
    expect_lost(more.lost[0], {0, 0, 3, 0, 4});
    expect_lost(more.lost[1], {2, 1, 9, 1, 8});
    // A part: what is damaged beside it does not matter.
    VolumeDecoderParams part;
    part.region = VoxelRegion{5, 6, 9, 20, 10, 1};
    const Kept region = decode_kept(damaged(coded, {0, 4}), part);
    EXPECT_EQ(region.voxels, without(region.output, test::cut(v, voxels, *part.region), {1}));
    ASSERT_EQ(region.lost.size(), 1u);
    expect_lost(region.lost[0], {9, 1, 9, 1, 1});
    // A stream that was cut.
    MemorySource source(coded.bytes.data(), coded.bytes.size());
    std::vector<std::byte> cut = coded.bytes;
    cut.resize(static_cast<std::size_t>(probe(source).gops[4].offset + 40));
    const Kept begun = decode_kept(cut, {});
    EXPECT_EQ(begun.voxels, without(v, voxels, {16, 17, 18, 19}));
    ASSERT_EQ(begun.lost.size(), 1u);
    EXPECT_EQ(begun.lost[0].delivered, 4u);
  }
}

TEST(DamagedVolumes, slabs_of_all_volumes) {
  const VolumeDescription v{{VoxelType::kU16, false, 1}, 30, 20, 6, 4};
  const VolumeBytes voxels = make_body(v, 10, 900);
  VolumeEncoderParams params;
  params.fourth_axis_first = true;
  params.effort = VolumeEffort::kFast;
  params.slab = 6;
  for (const VolumeTransform transform : {VolumeTransform::kPrediction, VolumeTransform::kWavelet}) {
    params.transform = transform;
    const Coded coded = encode(v, voxels, params);
    ASSERT_EQ(decode_kept(coded.bytes, {}).voxels, voxels);
    // Frames 6 to 11, slice 1 of volumes 2 and 3 and slice 2 of all.
    const Kept kept = decode_kept(damaged(coded, {1}), {});
    EXPECT_EQ(kept.voxels, without(v, voxels, {2, 8, 13, 14, 19, 20}));
    ASSERT_EQ(kept.lost.size(), 1u);
    expect_lost(kept.lost[0], {1, 2, 2, 3, 6});
    VolumeDecoderParams last;
    last.first_volume = 1;
    last.volumes = 2;
    last.region = VoxelRegion{0, 0, 2, 30, 20, 4};
    const Kept part = decode_kept(damaged(coded, {1}), last);
    const auto all = VolumeDescription{v.voxel, v.width, v.height, 4, 4};
    const VolumeBytes due = test::cut(v, voxels, *last.region);
    const auto size = static_cast<std::ptrdiff_t>(4 * all.slice_bytes());
    EXPECT_EQ(part.voxels, without(all, VolumeBytes(due.begin() + size, due.begin() + 3 * size), {0, 4}));
    ASSERT_EQ(part.lost.size(), 1u);
    expect_lost(part.lost[0], {2, 1, 2, 2, 2});
  }
  // Marked values of damaged slices are not put back.
  std::vector<float> numbers;
  for (int i = 0; i < 30 * 20 * 24; ++i) numbers.push_back(i % 7 == 0 ? NAN : static_cast<float>(i % 30 + i / 600));
  VolumeBytes floats(numbers.size() * 4);
  std::memcpy(floats.data(), numbers.data(), floats.size());
  const VolumeDescription f{{VoxelType::kF32, false, 1}, 30, 20, 6, 4};
  params.transform.reset();
  params.max_error = 0.25;
  const Coded coded = encode(f, floats, params);
  const Kept whole = decode_kept(coded.bytes, {});
  EXPECT_EQ(decode_kept(damaged(coded, {0}), {}).voxels, without(f, whole.voxels, {0, 6, 12, 18, 1, 7}));
}

TEST(DamagedVolumes, with_fewer_slices) {
  const VolumeDescription v{{VoxelType::kU16, false, 1}, 32, 24, 22, 1};
  const VolumeBytes voxels = make_body(v, 10, 900);
  VolumeEncoderParams params;
  params.slice_levels = 3;
  params.depth_levels = 2;
  params.slab = 8;
  const Coded coded = encode(v, voxels, params);
  VolumeDecoderParams small;
  small.reduce = 1;
  const Kept whole = decode_kept(coded.bytes, small);
  ASSERT_EQ(whole.output.slices, 11u);
  std::vector<std::byte> inner = coded.bytes;
  std::vector<std::byte> last = coded.bytes;
  MemorySource source(coded.bytes.data(), coded.bytes.size());
  const StreamInfo info = probe(source);
  inner[static_cast<std::size_t>(info.gops[1].offset + 20)] ^= std::byte{1};  // headers, which all sizes need
  last[static_cast<std::size_t>(info.gops[2].offset + 20)] ^= std::byte{1};
  const auto check = [&](const std::vector<std::byte>& stream, const std::set<std::uint64_t>& slices,
                         std::array<std::uint64_t, 3> place) {
    const Kept kept = decode_kept(stream, small);
    EXPECT_EQ(kept.voxels, without(whole.output, whole.voxels, slices));
    ASSERT_EQ(kept.lost.size(), 1u);
    EXPECT_EQ((std::array{kept.lost[0].first_slice, kept.lost[0].last_slice, kept.lost[0].delivered}), place);
  };
  check(inner, {4, 5, 6, 7}, {8, 15, 4});
  check(last, {8, 9, 10}, {16, 21, 3});
}

}  // namespace
}  // namespace trivelet
