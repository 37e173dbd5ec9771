// The inverse transform in strips of packed coefficients gives what it gives in one piece.
#include "codec/cpu/strip_inverse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "codec/cpu/cpu_fields.h"
#include "codec/entropy/fast/zerotree.h"
#include "tests/support/one_of.h"

namespace trivelet {
namespace {

struct StripCase {
  Shape shape;
  Wavelet spatial;
  int levels, temporal_levels, strips, threads;
  bool tiles = false;  // as of the fast profile
  SimdLevel simd = SimdLevel::kBest;
};

std::string describe_strips(const StripCase& c) {
  return std::to_string(c.shape.frames) + "x" + std::to_string(c.shape.height) + "x" + std::to_string(c.shape.width) +
         ", wavelet " + std::to_string(static_cast<int>(c.spatial)) + ", " + std::to_string(c.strips) + " strips" +
         (c.tiles ? ", tiles" : "");
}

// A patch of one frame as the fast profile gives it.
template <class T>
void give_tiles(const BlockGrid& grid, const Subband& band, int t, int by, int bx, const Field<T>& patch,
                TileSink<T>& tiles) {
  const TreeLevel& level =
      grid.families()[static_cast<std::size_t>(band.temporal_band)].levels[static_cast<std::size_t>(band.resolution)];
  std::vector<std::uint64_t> words;
  std::vector<T> values;
  for (const WordBase& base : level.base) {
    if (base.t != t) continue;
    words.push_back(0);
    for (std::size_t i = 0; i < 64; ++i) {
      const int y = base.y + level.slot[i].y, x = base.x + level.slot[i].x;
      if (y >= patch.shape.height || x >= patch.shape.width || patch.row(t, y)[x] == T{}) continue;
      words.back() |= std::uint64_t{1} << i;
      values.push_back(patch.row(t, y)[x]);
    }
  }
  EXPECT_EQ(words.size(), tiles_of(grid, band));
  tiles.add(band, t, by, bx, words, values.data(), values.size());
}

// Random coefficients in `field` and in `patches`: patches that are left out, rows of zeros, single zeros.
template <class T>
void fill_patches(const BlockGrid& grid, const Field<T>& field, PatchStore<T>& patches, bool tiles,
                  std::mt19937& random) {
  const auto value = [&]() -> T {
    return random() % 3 != 0 ? T{} : static_cast<T>(static_cast<int>(random() % 2001) - 1000) / T{2};
  };
  const int side = grid.block_side(patches.target().decomposition().spatial_levels);
  const Shape shape{field.shape.frames, side, side};
  std::vector<T> own(shape.samples(), T{9});
  const BlockMemory<T> block{packed_field(own.data(), shape), true, tiles ? &patches : nullptr};
  for (int by = 0; by < grid.rows(); ++by)
    for (int bx = 0; bx < grid.columns(); ++bx) {
      if (by == 0 && bx == 0 && tiles) {  // as after damage
        for (const Subband& band : patches.target().all()) {
          const Field<T> to = patch_view(grid, by, bx, field, band);
          for (int t = 0; t < to.shape.frames; ++t)
            for (int y = 0; y < to.shape.height; ++y) std::fill_n(to.row(t, y), to.shape.width, T{});
        }
        BlockDecoder::clear(grid, patches.target(), by, bx, block, &patches.zeros());
        patches.add(by, bx, block);
        continue;
      }
      for (const Subband& band : patches.target().all()) {
        const Field<T> to = patch_view(grid, by, bx, field, band), copy = patch_view(grid, by, bx, block, band);
        for (int t = 0; t < to.shape.frames; ++t) {
          const bool left_out = band.resolution > 0 && random() % 2 != 0;
          if (band.resolution > 0) patches.zeros().set(band, t, by, bx, left_out);
          for (int y = 0; y < to.shape.height; ++y)
            for (int x = 0; x < to.shape.width; ++x)
              to.row(t, y)[x] = copy.row(t, y)[x] = left_out || y % 5 == 3 ? T{} : value();
          if (tiles && has_tiles(grid, band) && !left_out) give_tiles(grid, band, t, by, bx, to, patches);
        }
      }
      patches.add(by, bx, block);
    }
}

template <class T>
void check_strips(const StripCase& c, int bytes) {
  SCOPED_TRACE(describe_strips(c));
  std::mt19937 random(7);
  Decomposition d;
  d.layout = Layout::kT2d;
  d.spatial = d.temporal = c.spatial;
  d.spatial_levels = c.levels;
  d.temporal_levels = c.temporal_levels;
  const BlockGrid grid(c.shape, d, std::is_integral_v<T>, 64);
  PatchStore<T> patches(grid, grid.table(), c.tiles, c.simd);
  std::vector<T> memory(c.shape.samples());
  const Field<T> field = packed_field(memory.data(), c.shape);
  fill_patches(grid, field, patches, c.tiles, random);

  ThreadPool pool(c.threads);
  std::vector<float> gains;
  for (int t = 0; std::is_floating_point_v<T> && t < c.shape.frames; ++t)
    gains.push_back(1.0f + 0.01f * static_cast<float>(t));
  const std::int32_t most = (1 << (8 * bytes)) - 1;
  std::vector<std::byte> one(c.shape.samples() * static_cast<std::size_t>(bytes)), many(one.size());
  MutableVolumeView view;
  view.shape = c.shape;
  view.bytes_per_sample = bytes;
  view.row_stride = c.shape.width * bytes;
  view.frame_stride = view.row_stride * c.shape.height;
  LargeVector<T> low, strip;
  view.data = many.data();
  std::vector<std::byte*> frames;
  for (int t = 0; t < c.shape.frames; ++t) frames.push_back(view.row(t, 0));
  MutableVolumeView scattered = view;
  scattered.frames = frames.data();
  inverse_in_strips<T>(patches, c.strips, 1.0f, most / 2, 0, most, bytes == 1 ? view : scattered, pool,
                       SimdLevel::kBest, gains, {low, strip});
  view.data = one.data();
  inverse_transform<T>(field, d, 1.0f, most / 2, 0, most, view, pool, SimdLevel::kBest, gains);
  EXPECT_EQ(one, many);

  // And whole frames, which are freed.
  std::vector<T> frame(static_cast<std::size_t>(c.shape.height) * static_cast<std::size_t>(c.shape.width));
  fill_patches(grid, field, patches, c.tiles, random);
  for (int t = 0; t < c.shape.frames; ++t) {
    const Field<T> at = packed_field(frame.data(), {1, c.shape.height, c.shape.width});
    Field<T> same = field;
    same.data = field.row(t, 0);
    same.shape.frames = 1;
    const ZeroPatches left_out = patches.take(t, at);
    inverse_transform<T>(at, in_space(d), pool, SimdLevel::kBest, {}, &left_out);
    inverse_transform<T>(same, in_space(d), pool, SimdLevel::kBest);
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), same.data)) << "frame " << t;
  }
}

TEST(StripInverse, GivesWhatOnePieceGives) {
  test::OneOf is_tried(test::kSanitized ? 11 : 5);
  for (const Shape& shape : {Shape{5, 300, 97}, Shape{3, 203, 64}, Shape{1, 130, 33}, Shape{9, 257, 200}})
    for (const int levels : {2, 3, 5})
      for (const int strips : {1, 2, 3, 7}) {
        const int threads = strips % 3 + 1;
        const bool tiles = strips != 2;
        const SimdLevel simd = strips == 3 ? SimdLevel::kScalar : SimdLevel::kBest;
        if (is_tried()) check_strips<float>({shape, Wavelet::kCdf97, levels, 2, strips, threads, tiles, simd}, 1);
        if (is_tried()) check_strips<float>({shape, Wavelet::kHaar, levels, 1, strips, threads}, 2);
        if (is_tried())
          check_strips<std::int32_t>({shape, Wavelet::kRev137, levels, 2, strips, threads, tiles, simd}, 2);
        if (is_tried()) check_strips<std::int32_t>({shape, Wavelet::kCdf53, levels, 0, strips, threads}, 1);
      }
}

TEST(StripInverse, IsForLargeComponents) {
  Decomposition d;
  d.layout = Layout::kT2d;
  d.spatial_levels = 5;
  EXPECT_EQ(strips_of({33, 1080, 1920}, d), 5);
  EXPECT_EQ(strips_of({33, 540, 960}, d), 2);
  EXPECT_EQ(strips_of({33, 288, 352}, d), 1);
  EXPECT_EQ(strips_of({21, 1080, 1920}, d), 3);
  EXPECT_EQ(strips_of({33, 2160, 3840}, d), 20);  // larger strips
  EXPECT_EQ(strips_of({65535, 8, 1920}, d), 1);   // of few rows all would be overlap
  d.spatial_levels = 1;
  EXPECT_EQ(strips_of({33, 1080, 1920}, d), 1);
  d.spatial_levels = 5;
  d.layout = Layout::kDyadic;
  EXPECT_EQ(strips_of({33, 1080, 1920}, d), 1);
}

// Of any number of frames, strips of 1080p fit into the memory that is there for them.
TEST(StripInverse, NeedsNoMoreForOtherNumbersOfFrames) {
  Decomposition d;
  d.layout = Layout::kT2d;
  d.spatial_levels = 2;
  d.temporal_levels = 0;
  ThreadPool pool(2);
  for (const int frames : {9, 21}) {
    const Shape shape{frames, 1080, 1920};
    const BlockGrid grid(shape, d, false, 256);
    const PatchStore<float> patches(grid, grid.table(), false, SimdLevel::kBest);
    std::vector<std::byte> samples(shape.samples());
    MutableVolumeView view;
    view.data = samples.data();
    view.shape = shape;
    view.row_stride = shape.width;
    view.frame_stride = view.row_stride * shape.height;
    LargeVector<float> low, strip;
    inverse_in_strips<float>(patches, strips_of(shape, d), 1.0f, 0, 0, 255, view, pool, SimdLevel::kBest, {},
                             {low, strip});
    EXPECT_EQ(strip.size(), kStripValues) << frames << " frames";
  }
}

TEST(Gop, ReleasedFramesComeBackOneByOne) {
  VideoInfo info;
  info.width = 5, info.height = 4;
  info.format = parse_pixel_format("yuv420p10");
  Gop gop(info, 3);
  gop.set_frames(2);
  gop.plane_frame(0, 1).row(0, 3)[8] = std::byte{9};
  EXPECT_EQ(std::as_const(gop).plane(0).row(1, 3)[8], std::byte{9});
  EXPECT_EQ(std::as_const(gop).plane(0).frames, nullptr) << "one plane";
  gop.release();
  const MutableVolumeView frame = gop.plane_frame(0, 1);
  EXPECT_EQ(frame.shape.frames, 1);
  EXPECT_EQ(frame.row_bytes(), 10u);
  frame.row(0, 3)[8] = std::byte{7};
  const VolumeView plane = std::as_const(gop).plane(0);
  EXPECT_EQ(plane.row(1, 3), frame.row(0, 3));
  EXPECT_EQ(plane.row(0, 0), nullptr) << "not there yet";
  const Gop copy = gop;
  EXPECT_EQ(copy.plane(0).row(1, 3)[8], std::byte{7});
  EXPECT_EQ(gop.plane(0).row(0, 0)[0], std::byte{0}) << "with the others that are written";
  EXPECT_EQ(plane.row(1, 3)[8], std::byte{7});
  EXPECT_EQ(plane.row(2, 0), nullptr);
  gop.set_frames(3);
  gop.plane(0).row(2, 3)[8] = std::byte{5};
  const Gop moved = std::move(gop);
  EXPECT_EQ(moved.plane(0).row(1, 3)[8], std::byte{7});
  gop = moved;
  gop.release();
  EXPECT_EQ(std::as_const(gop).plane(0).data, nullptr);
  EXPECT_THROW((void)gop.plane_frame(0, 3), Error);
}

TEST(Gop, ReleasedMemoryComesBack) {
  VideoInfo info;
  info.width = 5, info.height = 4;
  info.format = parse_pixel_format("yuv420p");
  Gop gop(info, 3);
  gop.set_frames(2);
  gop.plane(0).row(1, 3)[4] = std::byte{9};
  gop.release();
  EXPECT_EQ(std::as_const(gop).plane(0).data, nullptr);
  EXPECT_EQ(gop.frames(), 2);
  EXPECT_EQ(gop.plane(0).row(1, 3)[4], std::byte{0});
  gop.plane(0).row(1, 3)[4] = std::byte{7};
  EXPECT_EQ(std::as_const(gop).plane(0).row(1, 3)[4], std::byte{7});
  EXPECT_EQ(std::as_const(gop).plane(1).data, nullptr);
  gop.plane(2).row(1, 1)[2] = std::byte{1};
}

}  // namespace
}  // namespace trivelet
