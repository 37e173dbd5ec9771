// A component of a GOP with motion, as the kernels of lifting see it, and how these are started.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "codec/motion/motion_arithmetic.h"
#include "gpu/motion/motion.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {

constexpr unsigned kMotionThreads = 128;

inline unsigned motion_blocks(std::size_t count, unsigned per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

/// A component of a GOP, as kernels see it.
struct DeviceMotionComponent {
  std::int32_t* values = nullptr;
  unsigned long long* sums = nullptr;
  std::int32_t* keys = nullptr;          // that this GOP leaves, of level 0
  const std::int32_t* before = nullptr;  // the same of the GOP before
  std::ptrdiff_t key_stride = 0;
  std::ptrdiff_t frame = 0;  // samples of a frame
  const DeviceMotionCell* cells = nullptr;
  MotionPlaces places;
  int height = 0, width = 0;
  int rows = 0, columns = 0;  // of the grid of cells
  MotionScale scale;
  int cell_y = 1, cell_x = 1;  // samples of a cell
  int dropped = 0;
  int index = 0, fraction = 0, bits = 8;
  std::int32_t limit = 0;  // of an update

  std::ptrdiff_t frame_at(int place) const { return (place >> dropped) * frame; }
};

__device__ __forceinline__ std::int32_t* picture_at(const DeviceMotionComponent& c, int place) {
  return c.values + (place >> c.dropped) * c.frame;
}

/// The cell at (y, x), counted in cells of the component.
__device__ __forceinline__ DeviceMotionCell cell_of(const DeviceMotionComponent& c, int place, int y, int x) {
  const std::ptrdiff_t at = cell_at(y, c.scale.shift_y, c.rows) * static_cast<std::ptrdiff_t>(c.columns) +
                            cell_at(x, c.scale.shift_x, c.columns);
  return c.cells[place * (static_cast<std::ptrdiff_t>(c.rows) * c.columns) + at];
}

__device__ __forceinline__ bool uses(const DeviceMotionCell& c, int reference) {
  return c.mode == MotionMode::kBoth || c.mode == (reference == 0 ? MotionMode::kPast : MotionMode::kOther);
}

__device__ __forceinline__ bool alike(const DeviceMotionCell& a, const DeviceMotionCell& b) {
  std::uint32_t words_a[4], words_b[4];
  static_assert(sizeof words_a == sizeof a);
  memcpy(words_a, &a, sizeof a);
  memcpy(words_b, &b, sizeof b);
  return ((words_a[0] ^ words_b[0]) | (words_a[1] ^ words_b[1]) | (words_a[2] ^ words_b[2]) |
          (words_a[3] ^ words_b[3])) == 0;
}

/// Calls f(lanes), with a number known at compile time: the size of the group for cells of this many samples.
template <class F>
void with_lanes(int samples, const F& f) {
  if (samples > 32) return f(std::integral_constant<unsigned, 32>());
  if (samples > 16) return f(std::integral_constant<unsigned, 16>());
  f(std::integral_constant<unsigned, 8>());
}

}  // namespace trivelet::gpu
