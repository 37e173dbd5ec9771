// The parts of the search for motion on the device: pictures (motion_pictures.cu) and regions (motion_regions.cu).
// motion_search.cu combines them for a GOP.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "codec/motion/motion_tree.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu::motion_parts {

using namespace motion_choice;

inline constexpr int kWarp = 32;
inline constexpr unsigned kEachThreads = 256;
inline constexpr int kPlanes = kQuarters * kQuarters;  // of a picture
inline constexpr int kMostPlaces = 129;

/// Added to the samples of pictures of 16 bits: with it they are positive and less than 2^14, so that two of them are
/// added and subtracted in one word.
inline constexpr int kBias = 1 << 13;
__host__ __device__ constexpr int bias_of(std::uint8_t) { return 0; }
__host__ __device__ constexpr int bias_of(std::int16_t) { return kBias; }

inline constexpr std::uint32_t both_halves(int v) { return static_cast<std::uint32_t>(v) * 0x10001u; }

/// The least of all lanes' costs, and of equal ones the first place.
__device__ __forceinline__ void least_of_warp(int& cost, int& place) {
  for (unsigned d = kWarp / 2; d > 0; d /= 2) {
    const int other = __shfl_xor_sync(kAllLanes, cost, d), other_place = __shfl_xor_sync(kAllLanes, place, d);
    if (other < cost || (other == cost && other_place < place)) {
      cost = other;
      place = other_place;
    }
  }
}

/// A picture with a frame around it.
struct Padded {
  int height = 0, width = 0;
  std::ptrdiff_t stride = 0;
  std::ptrdiff_t plane = 0;
  __host__ __device__ int rows() const { return height + 2 * kPad; }
  __host__ __device__ int columns() const { return width + 2 * kPad; }
};

/// The blocks of smaller pictures that vectors were looked for first.
struct CoarseBlocks {
  int height = 0, width = 0;  // of the smaller pictures
  int factor = 1;
  int per_root = 1;  // along a side of a root block
  int rows = 0, columns = 0;
};

/// What the search of a level works with. Pictures have the samples of motion_choice::searched().
struct SearchOfLevel {
  MotionPlaces places;
  MotionGrid grid;
  int level = 0;
  int first = 0;  // number of the high frame that blockIdx.y counts from
  int count = 0;  // of high frames; if there is one more after them, it is that of a GOP that may close
  Padded picture;
  const std::byte* whole = nullptr;
  const std::byte* quarters = nullptr;
  std::int16_t held[kMostPlaces] = {};  // which of these are of a place
  CoarseBlocks blocks;
  const MotionVector* coarse = nullptr;
  const std::int32_t* sums = nullptr;
  int sums_places = 0;
  int components = 1, bits = 8;
  int component_height[4] = {}, component_width[4] = {};
  MotionScale scale[4] = {};
  MotionCell* cells = nullptr;
  NodeMotion* nodes = nullptr;  // of these frames' root blocks
  TreeSetting tree;
  // For MotionSearchParams::may_close: the places, and the results for them.
  MotionPlaces closed;
  const MotionVector* closed_coarse = nullptr;
  MotionCell* closed_cells = nullptr;

  /// The place of one of the level's high frames.
  __host__ __device__ int place(int number) const {
    return (level < places.levels ? 2 * number + 1 : number + (places.has(0) ? 1 : 2)) << level;
  }
  __host__ __device__ int root_columns() const { return (grid.columns + kMotionRoot - 1) / kMotionRoot; }
  __host__ __device__ int roots() const { return (grid.rows + kMotionRoot - 1) / kMotionRoot * root_columns(); }
};

/// Sums of the samples of each cell; `cell_y` and `cell_x` are its size.
void sum_cells(const std::int32_t* from, int height, int width, int cell_y, int cell_x, const MotionGrid& grid,
               std::int32_t* sums, const Stream& stream);
/// What follows is there for samples of 8 and of 16 bits.
/// A picture of the first of these integers.
template <class T>
void load_picture(const std::int32_t* from, int down, int bits, const Padded& p, T* to, const Stream& stream);
/// A picture at all quarters of a sample, in the layout of columns_kernel().
template <class T>
void interpolate(const T* whole, const Padded& p, T* planes, const Stream& stream);
/// `count` pictures without gaps.
template <class T>
void shrink(const T* whole, int count, const Padded& p, int factor, int height, int width, T* small,
            const Stream& stream);
/// Which high frames are searched in reduced pictures.
enum class CoarseFrames { kAll, kAllAndKeys, kFirstOfLevels };
/// The vectors of all blocks in reduced pictures.
template <class T>
void search_coarsely(const T* small, const MotionPlaces& places, const CoarseBlocks& blocks, CoarseFrames frames,
                     MotionVector* coarse, const Stream& stream);
/// The cells of this many frames of a level, from s.first on; `closed`: and those of the first one if the GOP closes.
template <class T>
void search_frames(const SearchOfLevel& s, bool closed, const Stream& stream);

}  // namespace trivelet::gpu::motion_parts
