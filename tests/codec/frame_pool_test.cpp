// Memory that frames and samples share.
#include "codec/base/frame_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "trivelet/types.h"

namespace trivelet {
namespace {

TEST(FramePool, PiecesOfOneSizeShareBlocks) {
  FramePool pool(1024);
  const auto a = pool.take(500), b = pool.take(512), c = pool.take(512);
  EXPECT_EQ(a.get() + 512, b.get());
  EXPECT_NE(c.get(), a.get() + 1024);
}

TEST(FramePool, MemoryIsUsedAgain) {
  FramePool pool(1024);
  std::set<std::byte*> places;
  std::vector<std::shared_ptr<std::byte>> large;
  for (int i = 0; i < 4; ++i) large.push_back(pool.take(1000));
  for (const auto& p : large) places.insert(p.get());
  large.erase(large.begin(), large.begin() + 2);
  std::vector<std::shared_ptr<std::byte>> small;
  for (int i = 0; i < 4; ++i) small.push_back(pool.take(512));
  for (const auto& p : small) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p.get()) % 64, 0u);
    EXPECT_TRUE(places.contains(p.get()) || places.contains(p.get() - 512)) << "halves of what was freed";
  }
  small.pop_back();
  EXPECT_FALSE(places.contains(pool.take(1000).get())) << "a half of each block is in use";
  small.clear();
  pool.trim();
}

// Pieces never overlap, whatever is taken and freed.
TEST(FramePool, PiecesAreApart) {
  std::mt19937 random(5);
  auto pool = std::make_unique<FramePool>(4096);
  std::vector<std::pair<std::shared_ptr<std::byte>, std::size_t>> taken;
  for (int i = 0; i < 2000; ++i) {
    if (taken.empty() || random() % 5 < 3) {
      const std::size_t bytes = std::size_t{1} << random() % 13;
      taken.emplace_back(pool->take(bytes), bytes);
      std::memset(taken.back().first.get(), static_cast<int>(taken.back().second % 251), bytes);
    } else {
      std::swap(taken[random() % taken.size()], taken.back());
      taken.pop_back();
    }
    if (i % 100 == 0) pool->trim();
  }
  pool.reset();
  for (const auto& [piece, bytes] : taken)
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(piece.get()[i], static_cast<std::byte>(bytes % 251));
}

TEST(FramePool, GivesMemoryOfReleasedSamples) {
  VideoInfo info;
  info.width = 64, info.height = 4;
  info.format = parse_pixel_format("gray");
  Gop gop(info, 2);
  gop.set_frames(2);
  FramePool pool(256);
  const SampleAllocator allocate = [&](std::size_t bytes) { return pool.take(bytes); };
  const std::byte* const own = std::as_const(gop).plane(0).data;
  EXPECT_EQ(gop.plane_frame(0, 0, allocate).data, own) << "nothing was released";
  gop.release();
  const std::byte* const first = gop.plane_frame(0, 0, allocate).data;
  EXPECT_EQ(gop.plane_frame(0, 0, allocate).data, first);
  EXPECT_NE(gop.plane_frame(0, 1, allocate).data, first);
  gop.release();
  EXPECT_TRUE(pool.take(256).get() == first || pool.take(256).get() == first);
}

}  // namespace
}  // namespace trivelet
