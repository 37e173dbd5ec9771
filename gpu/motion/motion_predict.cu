// Prediction along motion. A group of lanes per tile, the samples around a corner of four cells; a warp where cells
// have 8x8 samples. Rows are filtered into shared memory, columns from there; cells that move alike are looked up once.
#include <algorithm>
#include <cstring>

#include "gpu/motion/motion_component.cuh"

namespace trivelet::gpu {
namespace {

__device__ __forceinline__ int log2_of_cell(int size) { return size == 8 ? 3 : size == 4 ? 2 : size == 2 ? 1 : 0; }
__device__ __forceinline__ int clamped(int i, int n) { return i < 0 ? 0 : i < n ? i : n - 1; }

/// Normalises a sum of taps, which have a sum of 64.
__device__ __forceinline__ std::int32_t rounded(std::uint32_t sum) { return static_cast<std::int32_t>(sum + 32) >> 6; }

/// Sample (y, x) of a picture between its columns, `phase` eighths to the right of x; edge samples stand in for those
/// outside.
__device__ __forceinline__ std::int32_t between_columns(const DeviceMotionComponent& c, const std::int32_t* picture,
                                                        int y, int x, int phase, const int* taps, int up) {
  const std::int32_t* line = picture + clamped(y, c.height) * static_cast<std::ptrdiff_t>(c.width);
  if (phase == 0) return static_cast<std::int32_t>(static_cast<std::uint32_t>(line[clamped(x, c.width)]) << up);
  std::uint32_t sum = 0;
  const int first = x - kMotionTapsBefore;
  if (first >= 0 && first + kMotionTaps <= c.width) {
    for (int i = 0; i < kMotionTaps; ++i)
      sum += static_cast<std::uint32_t>(taps[i]) * static_cast<std::uint32_t>(line[first + i]);
  } else {
    for (int i = 0; i < kMotionTaps; ++i)
      sum += static_cast<std::uint32_t>(taps[i]) * static_cast<std::uint32_t>(line[clamped(first + i, c.width)]);
  }
  return rounded(sum << up);
}

constexpr int kMostOfGroup = 2;  // samples of a tile for each lane
constexpr int kMostFiltered = (kMotionCell + kMotionTaps - 1) * kMotionCell;

/// Samples that are read and written at once.
struct alignas(16) FourSamples {
  std::int32_t v[4];
};

/// Shared memory for tiles of kSide x kSide samples whose references lie inside the picture: what they look at, and its
/// rows filtered. Strides keep lanes in different banks.
template <int kSide>
struct TileMemory {
  static constexpr int kWindow = kSide + kMotionTaps - 1;
  static constexpr int kRead = kSide + kMotionTaps;  // columns that are read: a multiple of 4
  static constexpr int kStride = kSide == 8 ? 24 : 12;
  static constexpr int kFilteredStride = kSide == 8 ? 12 : 4;
  alignas(16) std::int32_t window[kWindow * kStride];
  alignas(16) std::int32_t filtered[kWindow * kFilteredStride + (kSide == 8 ? 0 : 4)];
};
template <>
struct TileMemory<0> {};

/// Copies what a tile looks at from `corner` on.
template <int kSide, int kLanes>
__device__ __forceinline__ void read_window(TileMemory<kSide>& m, const std::int32_t* corner, int width, int lane) {
  using M = TileMemory<kSide>;
  constexpr int kAcross = 16, kRows = kLanes / kAcross;
  static_assert(M::kRead <= kAcross);
  const int column = lane % kAcross, row = lane / kAcross;
  const std::int32_t* from = corner + row * static_cast<std::ptrdiff_t>(width) + column;
  std::int32_t* to = m.window + row * M::kStride + column;
  if (column >= M::kRead) return;
  TRIVELET_UNROLL
  for (int y = 0; y < M::kWindow; y += kRows)
    if (y + row < M::kWindow) to[y * M::kStride] = from[y * static_cast<std::ptrdiff_t>(width)];
}

/// Filters the rows of the window, four samples a lane.
template <int kSide>
__device__ __forceinline__ void filter_rows(TileMemory<kSide>& m, int phase, const int* all_taps, int up, int lane) {
  using M = TileMemory<kSide>;
  constexpr int kParts = kSide / 4;  // of a row
  const int row = lane / kParts, first = lane % kParts * 4;
  if (row >= M::kWindow) return;
  FourSamples in[3];
  TRIVELET_UNROLL
  for (int i = 0; i < 3; ++i)
    in[i] = *reinterpret_cast<const FourSamples*>(m.window + row * M::kStride + first + 4 * i);
  const auto sample = [&](int i) { return static_cast<std::uint32_t>(in[i / 4].v[i % 4]); };
  FourSamples out;
  if (phase == 0) {
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) out.v[i] = static_cast<std::int32_t>(sample(i + kMotionTapsBefore) << up);
  } else {
    std::uint32_t sum[4] = {};
    TRIVELET_UNROLL
    for (int j = 0; j < kMotionTaps; ++j) {
      const auto tap = static_cast<std::uint32_t>(all_taps[phase * kMotionTaps + j]);
      TRIVELET_UNROLL
      for (int i = 0; i < 4; ++i) sum[i] += tap * sample(i + j);
    }
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) out.v[i] = rounded(sum[i] << up);
  }
  *reinterpret_cast<FourSamples*>(m.filtered + row * M::kFilteredStride + first) = out;
}

/// The prediction of kMostOfGroup (one in small tiles) samples below each other, from `row` on.
template <int kSide>
__device__ __forceinline__ void filter_columns(const TileMemory<kSide>& m, int phase, const int* all_taps, int row,
                                               int column, std::int32_t value[kMostOfGroup]) {
  using M = TileMemory<kSide>;
  constexpr int kCount = kSide == 8 ? 2 : 1;
  const std::int32_t* at = m.filtered + row * M::kFilteredStride + column;
  if (phase == 0) {
    TRIVELET_UNROLL
    for (int n = 0; n < kCount; ++n) value[n] = at[(n + kMotionTapsBefore) * M::kFilteredStride];
    return;
  }
  std::uint32_t sum[kCount] = {};
  TRIVELET_UNROLL
  for (int i = 0; i < kMotionTaps + kCount - 1; ++i) {
    const auto v = static_cast<std::uint32_t>(at[i * M::kFilteredStride]);
    TRIVELET_UNROLL
    for (int n = 0; n < kCount; ++n)
      if (i - n >= 0 && i - n < kMotionTaps)
        sum[n] += static_cast<std::uint32_t>(all_taps[phase * kMotionTaps + i - n]) * v;
  }
  TRIVELET_UNROLL
  for (int n = 0; n < kCount; ++n) value[n] = rounded(sum[n]);
}

/// High frames of a level: blockIdx.y counts them. kSide: of cells with a quicker way, 8 or 4; else 0.
template <unsigned kLanes, int kSide>
__global__ void __launch_bounds__(kMotionThreads)
    predict_kernel(DeviceMotionComponent c, int level, int first, bool inverse, int tile_rows, int tile_columns) {
  constexpr unsigned kGroups = kMotionThreads / kLanes;
  __shared__ std::int32_t filtered_of_group[kGroups][kMostFiltered];
  __shared__ TileMemory<kSide> memory_of_group[kGroups];
  __shared__ int all_taps[8 * kMotionTaps];
  if (threadIdx.x < 8 * kMotionTaps)
    all_taps[threadIdx.x] =
        motion_tap(static_cast<int>(threadIdx.x) / kMotionTaps, static_cast<int>(threadIdx.x) % kMotionTaps);
  __syncthreads();
  const unsigned group = threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  std::int32_t* filtered = filtered_of_group[group];
  const unsigned number = blockIdx.x * kGroups + group;
  const int tile_y = static_cast<int>(number / static_cast<unsigned>(tile_columns)),
            tile_x = static_cast<int>(number % static_cast<unsigned>(tile_columns));
  const int t = first + (static_cast<int>(blockIdx.y * 2) << level);
  const MotionReferences references = motion_references(t, level, c.places);
  // The tile, and its part inside the picture.
  const int top = tile_y * c.cell_y - c.cell_y / 2, left = tile_x * c.cell_x - c.cell_x / 2;
  const int y0 = top > 0 ? top : 0, x0 = left > 0 ? left : 0;
  const int y1 = top + c.cell_y < c.height ? top + c.cell_y : c.height;
  const int x1 = left + c.cell_x < c.width ? left + c.cell_x : c.width;
  const bool inside = tile_y < tile_rows && y0 < y1 && x0 < x1;
  const int log2_columns = log2_of_cell(c.cell_x);
  const int column_mask = (1 << log2_columns) - 1;
  const int rows = y1 - y0, columns = x1 - x0;
  // The samples of a lane: below each other where a tile has 8x8.
  const auto row_of = [&](int n) {
    return kSide == 8 ? 2 * (lane >> 3) + n : (lane + n * static_cast<int>(kLanes)) >> log2_columns;
  };
  const int column = lane & column_mask;
  const auto is_inside = [&](int n) { return row_of(n) < rows && column < columns; };

  DeviceMotionCell cells[4];
  bool one = true;
  TRIVELET_UNROLL
  for (int k = 0; k < 4; ++k) {
    cells[k] = cell_of(c, t, inside ? tile_y - 1 + (k >> 1) : 0, inside ? tile_x - 1 + (k & 1) : 0);
    one = one && alike(cells[k], cells[0]);
  }
  std::int32_t sum[kMostOfGroup] = {};
  unsigned done = inside ? 0 : 15;
  for (int k = 0; k < 4; ++k) {
    const bool mine = (done >> k & 1) == 0;
    if (!__any_sync(kAllLanes, mine)) continue;
    const DeviceMotionCell cell = k == 0 ? cells[0] : k == 1 ? cells[1] : k == 2 ? cells[2] : cells[3];
    unsigned same = 0;
    TRIVELET_UNROLL
    for (int j = 0; j < 4; ++j)
      if (mine && j >= k && (done >> j & 1) == 0 && (one || alike(cells[j], cell))) same |= 1u << j;
    done |= same;

    std::int32_t value[kMostOfGroup] = {};
    const bool plain = cell.mode == MotionMode::kPlain;
    const bool looks[2] = {!plain && (uses(cell, 0) || references.other < 0),
                           !plain && uses(cell, 1) && references.other >= 0};
    if (plain)
      for (std::int32_t& v : value) v = motion_plain(cell.plain[c.index], c.bits);
    const int up = kMotionFraction - c.fraction;
    TRIVELET_UNROLL
    for (int r = 0; r < 2; ++r) {
      const bool look = mine && looks[r];
      if (!__any_sync(kAllLanes, look)) continue;
      const int ey = eighths(cell.y[r], c.scale.shift_y), ex = eighths(cell.x[r], c.scale.shift_x);
      const int y = y0 + (ey >> 3), x = x0 + (ex >> 3);
      const std::int32_t* picture = picture_at(c, r == 0 ? references.past : references.other);
      bool quick = false;
      if constexpr (kSide > 0) {
        using M = TileMemory<kSide>;
        constexpr int kCount = kSide == 8 ? 2 : 1;  // samples of a lane
        const auto found = [&](int n, std::int32_t v) {
          value[n] = r == 1 && looks[0] ? motion_mean_of(value[n], v) : v;
        };
        const bool whole = look && rows == kSide && columns == kSide;
        const bool at_sample =
            whole && ((ey | ex) & 7) == 0 && y >= 0 && x >= 0 && y + kSide <= c.height && x + kSide <= c.width;
        if (at_sample) {
          const std::int32_t* from = picture + (y + row_of(0)) * static_cast<std::ptrdiff_t>(c.width) + x + column;
          TRIVELET_UNROLL
          for (int n = 0; n < kCount; ++n)
            found(n, static_cast<std::int32_t>(
                         static_cast<std::uint32_t>(from[n * static_cast<std::ptrdiff_t>(c.width)]) << up));
        }
        if (!__any_sync(kAllLanes, look && !at_sample)) continue;
        const int first_y = y - kMotionTapsBefore, first_x = x - kMotionTapsBefore;
        const bool windowed = whole && !at_sample && first_y >= 0 && first_x >= 0 && first_y + M::kWindow <= c.height &&
                              first_x + M::kRead <= c.width;
        quick = at_sample || windowed;
        TileMemory<kSide>& m = memory_of_group[group];
        if (windowed)
          read_window<kSide, static_cast<int>(kLanes)>(
              m, picture + first_y * static_cast<std::ptrdiff_t>(c.width) + first_x, c.width, lane);
        __syncwarp();
        if (windowed) filter_rows<kSide>(m, ex & 7, all_taps, up, lane);
        __syncwarp();
        if (windowed) {
          std::int32_t filtered_there[kMostOfGroup];
          filter_columns<kSide>(m, ey & 7, all_taps, row_of(0), column, filtered_there);
          TRIVELET_UNROLL
          for (int n = 0; n < kCount; ++n) found(n, filtered_there[n]);
        }
        if (!__any_sync(kAllLanes, look && !quick)) continue;
      }
      const bool slow = look && !quick;
      const int* taps_y = all_taps + (ey & 7) * kMotionTaps;
      const int* taps_x = all_taps + (ex & 7) * kMotionTaps;
      const bool rows_between = slow && (ey & 7) != 0;
      if (rows_between)
        for (int i = lane; i < (rows + kMotionTaps - 1) << log2_columns; i += static_cast<int>(kLanes))
          if ((i & column_mask) < columns)
            filtered[i] = between_columns(c, picture, y + (i >> log2_columns) - kMotionTapsBefore,
                                          x + (i & column_mask), ex & 7, taps_x, up);
      __syncwarp();
      if (slow)
        for (int n = 0; n < kMostOfGroup; ++n) {
          if (!is_inside(n)) continue;
          const int row = row_of(n);
          std::int32_t v = 0;
          if (rows_between) {
            std::uint32_t all = 0;
            for (int j = 0; j < kMotionTaps; ++j)
              all += static_cast<std::uint32_t>(taps_y[j]) *
                     static_cast<std::uint32_t>(filtered[((row + j) << log2_columns) + column]);
            v = rounded(all);
          } else {
            v = between_columns(c, picture, y + row, x + column, ex & 7, taps_x, up);
          }
          value[n] = r == 1 && looks[0] ? motion_mean_of(value[n], v) : v;
        }
      __syncwarp();
    }
    for (int n = 0; n < kMostOfGroup && mine; ++n) {
      if (!is_inside(n)) continue;
      if (one) {
        sum[n] = value[n];
        continue;
      }
      const int down = motion_weight(c.cell_y, y0 - top + row_of(n)),
                right = motion_weight(c.cell_x, x0 - left + column);
      std::uint32_t weight = 0;
      for (unsigned j = 0; j < 4; ++j)
        if (same >> j & 1)
          weight += static_cast<std::uint32_t>((j >> 1 ? down : kMotionWeight - down) *
                                               (j & 1 ? right : kMotionWeight - right));
      sum[n] = wrap_add(sum[n], static_cast<std::int32_t>(weight * static_cast<std::uint32_t>(value[n])));
    }
  }
  if (!inside) return;
  std::int32_t* to = picture_at(c, t);
  for (int n = 0; n < kMostOfGroup; ++n) {
    if (!is_inside(n)) continue;
    std::int32_t& v = to[(y0 + row_of(n)) * static_cast<std::ptrdiff_t>(c.width) + x0 + column];
    const std::int32_t p = (one ? sum[n] : motion_mean(sum[n])) >> (kMotionFraction - c.fraction);
    v = inverse ? wrap_add(v, p) : wrap_sub(v, p);
  }
}

}  // namespace

void DeviceMotion::predict(const DeviceMotionComponent& c, int level, bool inverse, const Stream& stream) {
  predict(c, level, 1 << level, motion_frames(level, c.places).size(), inverse, stream);
}

void DeviceMotion::predict(const DeviceMotionComponent& c, int level, int first, std::size_t count, bool inverse,
                           const Stream& stream) {
  const auto high = static_cast<unsigned>(count);
  if (high == 0) return;
  const int tile_rows = (c.height + c.cell_y / 2 + c.cell_y - 1) / c.cell_y;
  const int tile_columns = (c.width + c.cell_x / 2 + c.cell_x - 1) / c.cell_x;
  const std::size_t tiles = static_cast<std::size_t>(tile_rows) * static_cast<std::size_t>(tile_columns);
  const auto start = [&](auto kernel, unsigned lanes) {
    launch("predict_kernel", kernel, dim3(motion_blocks(tiles, kMotionThreads / lanes), high), dim3(kMotionThreads), 0,
           stream.get(), c, level, first, inverse, tile_rows, tile_columns);
  };
  if (c.cell_y == 8 && c.cell_x == 8) return start(predict_kernel<32, 8>, 32);
  if (c.cell_y == 4 && c.cell_x == 4) return start(predict_kernel<16, 4>, 16);
  with_lanes(c.cell_y * c.cell_x, [&](auto lanes) { start(predict_kernel<lanes(), 0>, lanes()); });
}

// Both frames are those of a GOP of their own, and the second one's cells are at its place.
void DeviceMotion::predict_key(const GopShape& shape, const MotionOfGop& motion, int component, int place,
                               std::int32_t* pair, const Stream& stream) const {
  DeviceMotionComponent d = this->component(shape, motion, component);
  d.values = pair;
  d.cells += static_cast<std::size_t>(place - 1) * grid_.cells();
  d.places = {2, GopKey::kFirst, 0};
  d.dropped = 0;
  predict(d, 0, 1, 1, false, stream);
}

}  // namespace trivelet::gpu
