// Parts of volumes: regions, reduced regions and several slices at once have the voxels of the whole.
#include "trivelet/volume.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "tests/support/one_of.h"
#include "tests/support/volume_coding_support.h"
#include "trivelet/plan.h"

namespace trivelet {
namespace {

using test::Coded;
using test::Content;
using test::cut;
using test::decode;
using test::Decoded;
using test::encode;
using test::expect_error;
using test::kWays;
using test::make_body;
using test::make_scalars;
using test::params_of;
using test::VolumeBytes;
using test::Way;

/// Rounds and share of the bytes that a region takes by a plan.
struct Taken {
  int rounds = 0;
  double share = 0;
};

Taken taken(const VolumeBytes& stream, const VoxelRegion& region) {
  VolumeDecoderParams part;
  part.region = region;
  ReadPlan plan(stream.size(), part);
  Taken t;
  std::uint64_t bytes = 0;
  for (std::vector<ByteRange> wanted = plan.next(); !wanted.empty(); wanted = plan.next(), ++t.rounds)
    for (const ByteRange& r : wanted) {
      plan.give(r.offset, stream.data() + r.offset, r.size);
      bytes += r.size;
    }
  t.share = static_cast<double>(bytes) / static_cast<double>(stream.size());
  return t;
}

// Blocks and slabs by what readers do; what is given stays. Small boxes are then read in two rounds.
TEST(VolumeRegions, access_chooses_blocks_and_slabs) {
  const VolumeDescription v{{VoxelType::kU8, false, 1}, 192, 192, 20, 1};
  const VolumeBytes voxels = make_body(v, 0, 255);
  struct Case {
    VolumeAccess access;
    VolumeEffort effort;
    int block, slab;     // given; 0: not
    int blocks, slices;  // expected
  };
  const Case cases[] = {{VolumeAccess::kWhole, VolumeEffort::kFast, 0, 0, 128, 20},
                        {VolumeAccess::kSlices, VolumeEffort::kFast, 0, 0, 256, 4},
                        {VolumeAccess::kRegion, VolumeEffort::kMedium, 0, 0, 64, 5},
                        {VolumeAccess::kRegion, VolumeEffort::kFast, 0, 0, 64, 7},
                        {VolumeAccess::kRegion, VolumeEffort::kFast, 128, 0, 128, 7},
                        {VolumeAccess::kRegion, VolumeEffort::kFast, 0, 20, 64, 20}};
  std::vector<Taken> box;
  for (const Case& c : cases) {
    // Sanitized those alone whose blocks nobody gave.
    if (test::kSanitized && !test::full() && c.block + c.slab > 0) continue;
    VolumeEncoderParams params;
    params.access = c.access;
    params.effort = c.effort;
    params.block_size = c.block;
    if (c.slab > 0) params.slab = c.slab;
    const Coded coded = encode(v, voxels, params, true);
    MemorySource source(coded.bytes.data(), coded.bytes.size());
    const StreamInfo info = VolumeDecoder(source, VolumeDecoderParams{}).stream();
    EXPECT_EQ(info.block_size, c.blocks);
    EXPECT_EQ(info.gop_frames, c.slices);
    if (!test::kSanitized || (c.effort == VolumeEffort::kFast && c.access == VolumeAccess::kRegion) || test::full()) {
      EXPECT_EQ(decode(coded.bytes).voxels, voxels);
    }
    box.push_back(taken(coded.bytes, {70, 70, 6, 48, 48, 5}));
    EXPECT_LE(box.back().rounds, 2);
  }
  EXPECT_GT(box[0].share, 0.2);
  EXPECT_LT(box[2].share, 0.12);
}

TEST(VolumeRegions, a_region_is_a_part_of_the_whole) {
  for (const std::uint64_t volumes : {1u, 3u}) {
    const VolumeDescription v{{VoxelType::kI16, false, 1}, 80, 70, 8, volumes};
    const VolumeBytes voxels = make_body(v, -1000, 3000);
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
                    VolumeBytes(d.voxels.begin() + first, n == 0 ? d.voxels.end() : d.voxels.begin() + 2 * first));
          EXPECT_LE(some.bytes_read, d.bytes_read);
        }
        part.volumes = 3;
        expect_error(ErrorKind::kBadArgument, "volumes 1 to 4 of 3", [&] { decode(coded.bytes, part); });
      }
    }
  }
}

TEST(VolumeRegions, a_reduced_region_is_a_part_of_the_reduced_whole) {
  for (const std::uint64_t volumes : {1u, 2u}) {
    const VolumeDescription v{{VoxelType::kU16, true, 1}, 70, 61, 16, volumes};
    const VolumeBytes voxels = make_body(v, 10, 900);
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
          EXPECT_EQ(second.voxels, VolumeBytes(part.voxels.end() - static_cast<std::ptrdiff_t>(part.voxels.size() / 2),
                                               part.voxels.end()));
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

TEST(VolumeRegions, several_slices_at_once_are_those_one_by_one) {
  const VolumeDescription v{{VoxelType::kI16, true, 1}, 21, 13, 30, 2};
  const VolumeBytes voxels = make_scalars(Content::kEvery, v.voxel, static_cast<std::size_t>(v.voxels()), 3);
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
        VolumeBytes wanted(a.output().slice_bytes()), given(wanted.size() * most);
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

}  // namespace
}  // namespace trivelet
