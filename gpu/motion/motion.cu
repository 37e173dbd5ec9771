// Motion on the device. Bound: what is read and written of values, 4 bytes each, but for blocks at places between
// samples, where the filters' arithmetic counts as much.
//
//   predict   a group of lanes per tile, the samples around a corner of four cells; a warp where cells have 8x8
//   samples.
//             Rows are filtered into shared memory, columns from there; cells that move alike are looked up once.
//   scatter   a group of lanes per cell and reference: each place it gives something back to gets one atomic addition.
//   update    a thread per sample: what arrived, limited.
#include "gpu/motion/motion.h"

#include <algorithm>
#include <cstring>

#include "codec/motion/motion_arithmetic.h"
#include "codec/threads/parallel.h"
#include "gpu/transform/colour.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu {
namespace {

constexpr unsigned kMotionThreads = 128;

unsigned motion_blocks(std::size_t count, unsigned per_block) {
  return static_cast<unsigned>((count + per_block - 1) / per_block);
}

}  // namespace

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

namespace {

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

/// Adds the update contributions of the cells of the high frames of a level. Each place is one number: the weights in
/// the low bits, the sum above, which wraps around. At most 2^18 cells reach a place, each with weights of 128, so no
/// sum of weights leaves its 32 bits.
template <unsigned kLanes, int kSide>
__global__ void __launch_bounds__(kMotionThreads)
    scatter_kernel(DeviceMotionComponent c, int level, int cell_columns, int cell_rows) {
  const unsigned number = blockIdx.x * (kMotionThreads / kLanes) + threadIdx.x / kLanes;
  const int lane = static_cast<int>(threadIdx.x % kLanes);
  const int cy = static_cast<int>(number / static_cast<unsigned>(cell_columns)),
            cx = static_cast<int>(number % static_cast<unsigned>(cell_columns));
  if (cy >= cell_rows) return;
  const int t = static_cast<int>(blockIdx.y * 2 + 1) << level;
  const MotionReferences references = motion_references(t, level, c.places);
  const DeviceMotionCell cell = cell_of(c, t, cy, cx);
  const int y0 = cy * c.cell_y, x0 = cx * c.cell_x;
  const int rows = y0 + c.cell_y < c.height ? c.cell_y : c.height - y0;
  const int columns = x0 + c.cell_x < c.width ? c.cell_x : c.width - x0;
  const std::int32_t* high = picture_at(c, t) + y0 * static_cast<std::ptrdiff_t>(c.width) + x0;
  const int first = first_place(c.places.key);
  for (int r = 0; r < 2; ++r) {
    const int low = r == 0 ? references.past : references.other;
    // Frames outside this GOP, and frames that are not adjacent, get no update.
    if (!uses(cell, r) || low < first || (r == 1 && references.older)) continue;
    unsigned long long* sums = c.sums + ((low >> (level + 1)) - first) * c.frame;
    const int ey = eighths(cell.y[r], c.scale.shift_y), ex = eighths(cell.x[r], c.scale.shift_x);
    const int share = cell.mode == MotionMode::kBoth ? 1 : 2;
    const auto add = [&](int y, int x, std::uint32_t sum, std::uint32_t total) {
      atomicAdd(sums + y * static_cast<std::ptrdiff_t>(c.width) + x,
                static_cast<unsigned long long>(sum) << 32 | total);
    };
    if constexpr (kSide > 0) {
      // From samples to samples: one place each.
      const int y = y0 + (ey >> 3), x = x0 + (ex >> 3);
      if (((ey | ex) & 7) == 0 && rows == kSide && columns == kSide && y >= 0 && x >= 0 && y + kSide <= c.height &&
          x + kSide <= c.width) {
        const auto weight = static_cast<std::uint32_t>(64 * share);
        TRIVELET_UNROLL
        for (int i = lane; i < kSide * kSide; i += static_cast<int>(kLanes))
          add(y + i / kSide, x + i % kSide,
              weight * static_cast<std::uint32_t>(high[i / kSide * static_cast<std::ptrdiff_t>(c.width) + i % kSide]),
              weight);
        continue;
      }
    }
    const bool whole = kSide > 0 && rows == kSide && columns == kSide;
    for (int i = lane; i < (rows + 1) * (columns + 1); i += static_cast<int>(kLanes)) {
      const int y = whole ? i / (kSide + 1) : i / (columns + 1);  // a constant divides quickly
      const int x = i - y * (columns + 1);
      const int to_y = y0 + (ey >> 3) + y, to_x = x0 + (ex >> 3) + x;
      if (to_y < 0 || to_y >= c.height || to_x < 0 || to_x >= c.width) continue;
      std::uint32_t sum = 0, total = 0;
      for (int k = 0; k < 4; ++k) {
        const int from_y = y - (k >> 1), from_x = x - (k & 1);
        if (from_y < 0 || from_y >= rows || from_x < 0 || from_x >= columns) continue;
        const auto weight =
            static_cast<std::uint32_t>(share * (k >> 1 ? ey & 7 : 8 - (ey & 7)) * (k & 1 ? ex & 7 : 8 - (ex & 7)));
        sum += weight * static_cast<std::uint32_t>(high[from_y * static_cast<std::ptrdiff_t>(c.width) + from_x]);
        total += weight;
      }
      if (total != 0) add(to_y, to_x, sum, total);
    }
  }
}

/// Low frames of a level; blockIdx.y counts those of this GOP.
__global__ void update_kernel(DeviceMotionComponent c, int level, bool inverse) {
  const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= c.frame) return;
  const unsigned long long all = c.sums[blockIdx.y * c.frame + i];
  if (all == 0) return;
  const int place = (static_cast<int>(blockIdx.y) + first_place(c.places.key)) << (level + 1);
  std::int32_t& x = picture_at(c, place)[i];
  const std::int32_t v = motion_update(static_cast<std::int32_t>(all >> 32), static_cast<std::uint32_t>(all), c.limit);
  x = inverse ? wrap_sub(x, v) : wrap_add(x, v);
}

__global__ void to_integers_kernel(std::int32_t* values, std::size_t count, float gain) {
  constexpr float kLargest = 4194303.0f;  // 2^22 - 1 sixteenths of a grey level: the limit of clamp_round()
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = clamp_round(__int_as_float(values[i]) * gain, -kLargest, kLargest);
}

__device__ __forceinline__ std::int32_t grey_level(std::int32_t v, int fraction) {
  return fraction == 0 ? v : wrap_add(v, 1 << (fraction - 1)) >> fraction;
}

__global__ void to_grey_levels_kernel(std::int32_t* values, std::size_t count, int fraction) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = grey_level(values[i], fraction);
}

template <class Sample>
__global__ void to_samples_kernel(const std::int32_t* values, std::size_t count, int fraction, SampleRange range,
                                  Sample* samples) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  samples[i] = static_cast<Sample>(
      clamp_int(grey_level(values[i], fraction), range.min_sample - range.offset, range.max_sample - range.offset) +
      range.offset);
}

__global__ void to_places_kernel(std::int32_t* values, std::size_t count, int fraction) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = values[i] * (1 << fraction);
}

template <class Sample>
__global__ void from_samples_kernel(const Sample* samples, std::size_t count, std::int32_t offset, int fraction,
                                    std::int32_t* values) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = (static_cast<std::int32_t>(samples[i]) - offset) * (1 << fraction);
}

__global__ void to_floats_kernel(std::int32_t* values, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = __float_as_int(static_cast<float>(values[i]) * (1.0f / (1 << kMotionFraction)));
}

// Starts a kernel of a thread per value.
template <class... Parameters, class... Arguments>
void launch_each(const char* name, void (*kernel)(Parameters...), std::size_t count, const Stream& stream,
                 const Arguments&... arguments) {
  if (count > 0)
    launch(name, kernel, dim3(motion_blocks(count, kMotionThreads)), dim3(kMotionThreads), 0, stream.get(),
           arguments...);
}

/// Calls f(lanes), with a number known at compile time: the size of the group for cells of this many samples.
template <class F>
void with_lanes(int samples, const F& f) {
  if (samples > 32) return f(std::integral_constant<unsigned, 32>());
  if (samples > 16) return f(std::integral_constant<unsigned, 16>());
  f(std::integral_constant<unsigned, 8>());
}

}  // namespace

// -------------------------------------------------------------------------------------------------------------- upload

void MotionUpload::reserve(const GopMotion& motion) {
  const std::size_t size = checked_mul(static_cast<std::size_t>(motion.places.count), motion.grid.cells());
  if (host_.size() >= size) return;
  host_ = {};
  cells_ = {};
  host_ = PinnedBuffer<DeviceMotionCell>(size);
  cells_ = DeviceBuffer<DeviceMotionCell>(size);
}

void MotionUpload::submit(const GopMotion& motion, int first_level, ThreadPool* pool, const Stream& stream) {
  reserve(motion);
  const std::size_t cells = motion.grid.cells();
  const int apart = 1 << first_level;
  const int frames = (motion.places.count + apart - 1) / apart;
  const auto convert = [&](int i) {
    const auto place = static_cast<std::size_t>(i) * static_cast<std::size_t>(apart);
    const MotionField& field = motion.fields[place];
    DeviceMotionCell* to = host_.data() + place * cells;
    for (const MotionCell& c : field) {
      DeviceMotionCell& d = *to++;
      d = {};
      d.mode = c.mode;
      if (c.mode == MotionMode::kPlain) {
        std::copy(c.plain.begin(), c.plain.end(), d.plain);
        continue;
      }
      for (int r = 0; r < 2; ++r) {
        if (!c.uses(r)) continue;
        d.x[r] = c.vector[static_cast<std::size_t>(r)].x;
        d.y[r] = c.vector[static_cast<std::size_t>(r)].y;
      }
    }
  };
  if (pool)
    pool->parallel_for(frames, [&](int i, int) { convert(i); });
  else
    for (int i = 0; i < frames; ++i) convert(i);
  for (int i = 0; i < frames; ++i) {
    const auto place = static_cast<std::size_t>(i) * static_cast<std::size_t>(apart);
    if (!motion.fields[place].empty())
      copy(cells_.data() + place * cells, host_.data() + place * cells, cells, cudaMemcpyHostToDevice, stream);
  }
}

// ------------------------------------------------------------------------------------------------------------- lifting

DeviceMotion::DeviceMotion(const StreamHeader& header, const Reduction& reduction, bool again)
    : header_(header),
      reduction_(reduction),
      grid_(header.video.width, header.video.height),
      key_sets_(again ? 2 : 1),
      key_states_(header.temporal_levels + (header.predicted_keys ? 1 : 0)) {
  const int least = reduction.clamped(header.least_levels()).temporal;
  const auto places = static_cast<std::size_t>(low_length(header.gop_frames + 1, least));
  std::size_t most = 0;
  key_origin_.push_back(0);
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape s = header.component_shape(c, 1);
    const std::size_t samples = checked_mul(static_cast<std::size_t>(low_length(s.height, reduction.spatial)),
                                            static_cast<std::size_t>(low_length(s.width, reduction.spatial)));
    most = std::max(most, samples);
    key_origin_.push_back(key_origin_.back() + samples);
  }
  values_ = DeviceBuffer<std::int32_t>(checked_mul(key_origin_.back(), places));
  sums_ = DeviceBuffer<unsigned long long>(checked_mul(most, (places + 1) / 2));
  keys_ = DeviceBuffer<std::int32_t>(checked_mul(key_origin_.back(), key_sets_ * key_states_));
}

std::size_t DeviceMotion::device_bytes() const {
  return values_.size() * sizeof(std::int32_t) + sums_.size() * sizeof(unsigned long long) +
         keys_.size() * sizeof(std::int32_t);
}

void DeviceMotion::begin(const Stream& stream) { done_.hold(stream); }
void DeviceMotion::end(const Stream& stream) { done_.record(stream); }

std::size_t DeviceMotion::value_origin(const GopShape& shape, int component) const {
  return key_origin_[static_cast<std::size_t>(component)] * static_cast<std::size_t>(shape.shapes[0].frames);
}

DeviceMotionComponent DeviceMotion::component(const GopShape& shape, const MotionOfGop& motion, int c) const {
  const auto n = static_cast<std::size_t>(c);
  const PixelFormat& f = header_.video.format;
  const bool chroma = f.is_chroma(c);
  DeviceMotionComponent d;
  d.values = values_.data() + value_origin(shape, c);
  d.sums = sums_.data();
  d.key_stride = static_cast<std::ptrdiff_t>(key_origin_.back());
  const std::ptrdiff_t set = key_states_ * d.key_stride;
  d.keys = keys_.data() + keys_own_ * set + key_origin_[n];
  d.before = keys_.data() + (key_sets_ - 1 - keys_own_) * set + key_origin_[n];
  d.frame = static_cast<std::ptrdiff_t>(key_origin_[n + 1] - key_origin_[n]);
  d.cells = motion.cells;
  d.places = motion.places;
  d.height = shape.shapes[n].height;
  d.width = shape.shapes[n].width;
  d.rows = grid_.rows;
  d.columns = grid_.columns;
  d.scale = {(chroma ? f.log2_chroma_w : 0) + reduction_.spatial, (chroma ? f.log2_chroma_h : 0) + reduction_.spatial};
  d.cell_y = cell_size(d.scale.shift_y);
  d.cell_x = cell_size(d.scale.shift_x);
  d.dropped = reduction_.clamped(d.places.levels).temporal;
  d.index = c;
  d.fraction = header_.lossless ? 0 : kMotionFraction;
  d.bits = f.bits;
  d.limit = motion_update_limit(d.fraction, d.bits);
  return d;
}

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

void DeviceMotion::update(const DeviceMotionComponent& c, int level, bool inverse, const Stream& stream) {
  const auto high = static_cast<unsigned>(motion_frames(level, c.places).size());
  const int apart = 2 << level;
  const int low = (c.places.count + apart - 1) / apart - first_place(c.places.key);
  if (high == 0 || low <= 0) return;
  check(cudaMemsetAsync(c.sums, 0, static_cast<std::size_t>(low) * static_cast<std::size_t>(c.frame) * sizeof *c.sums,
                        stream.get()),
        "cudaMemsetAsync");
  const int cell_rows = (c.height + c.cell_y - 1) / c.cell_y, cell_columns = (c.width + c.cell_x - 1) / c.cell_x;
  const std::size_t cells = static_cast<std::size_t>(cell_rows) * static_cast<std::size_t>(cell_columns);
  const auto start = [&](auto kernel, unsigned lanes) {
    launch("scatter_kernel", kernel, dim3(motion_blocks(cells, kMotionThreads / lanes), high), dim3(kMotionThreads), 0,
           stream.get(), c, level, cell_columns, cell_rows);
  };
  if (c.cell_y == 8 && c.cell_x == 8)
    start(scatter_kernel<32, 8>, 32);
  else if (c.cell_y == 4 && c.cell_x == 4)
    start(scatter_kernel<8, 4>, 8);
  else
    with_lanes(c.cell_y * c.cell_x, [&](auto lanes) { start(scatter_kernel<lanes(), 0>, lanes()); });
  launch("update_kernel", update_kernel,
         dim3(motion_blocks(static_cast<std::size_t>(c.frame), kMotionThreads), static_cast<unsigned>(low)),
         dim3(kMotionThreads), 0, stream.get(), c, level, inverse);
}

// Moves the key frame of the GOP before to place 0, and this GOP's own key, if needed, to the old place, both as level
// `level` predicts from them.
void DeviceMotion::pass_keys(const DeviceMotionComponent& c, int level, bool follows, const Stream& stream) {
  const auto samples = static_cast<std::size_t>(c.frame);
  const auto move = [&](std::int32_t* to, const std::int32_t* from) {
    copy(to, from, samples, cudaMemcpyDeviceToDevice, stream);
  };
  const int last = c.places.count - 1;
  const int substitute = 1 << c.places.levels;
  if (c.places.key == GopKey::kOpen) {
    if (follows)
      move(c.values, c.before + level * c.key_stride);
    else if (substitute <= last)
      move(c.values, c.values + c.frame_at(substitute));
    else
      check(cudaMemsetAsync(c.values, 0, samples * sizeof *c.values, stream.get()), "cudaMemsetAsync");
  }
  if (c.places.ends_with_key()) move(c.keys + level * c.key_stride, c.values + c.frame_at(last));
}

// Adds the predictions of keys, each from the one before.
void DeviceMotion::add_to_keys(const DeviceMotionComponent& c, const Stream& stream) {
  const auto samples = static_cast<std::size_t>(c.frame);
  if (c.places.key == GopKey::kOpen) {
    if (has_low_key_)
      copy(c.values, c.before + header_.temporal_levels * c.key_stride, samples, cudaMemcpyDeviceToDevice, stream);
    else
      check(cudaMemsetAsync(c.values, 0, samples * sizeof *c.values, stream.get()), "cudaMemsetAsync");
  }
  for (const int t : motion_frames(c.places.levels, c.places)) predict(c, c.places.levels, t, 1, true, stream);
}

// This GOP's own key frame for levels of the next GOP that this one does not have; with predicted keys, the last one of
// these is the low key.
void DeviceMotion::keep_coarser_keys(const DeviceMotionComponent& c, const Stream& stream) {
  for (int level = c.places.levels; level < key_states_ && c.places.ends_with_key(); ++level)
    copy(c.keys + level * c.key_stride, c.values + c.frame_at(c.places.count - 1), static_cast<std::size_t>(c.frame),
         cudaMemcpyDeviceToDevice, stream);
}

// ------------------------------------------------------------------------------------------------------------- samples

template <class T>
void DeviceMotion::to_samples(const GopShape& shape, const MotionOfGop& motion, const float* gain, std::byte* samples,
                              const Stream& stream) {
  const PixelFormat& f = header_.video.format;
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  const int components = static_cast<int>(shape.shapes.size());
  const int first = first_place(motion.places.key);
  const auto frames = static_cast<std::size_t>(shape.shapes[0].frames - first);
  const auto is_colour = [&](int c) { return header_.colour_transform && c < 3; };
  std::vector<const std::int32_t*> from;
  for (int c = 0; c < components; ++c) {
    const auto n = static_cast<std::size_t>(c);
    const DeviceMotionComponent d = component(shape, motion, c);
    if constexpr (std::is_same_v<T, float>)
      launch_each("to_integers_kernel", to_integers_kernel, shape.shapes[n].samples(), stream, d.values,
                  shape.shapes[n].samples(), gain[n] * (1 << kMotionFraction));
    if (motion.predicts_keys) add_to_keys(d, stream);
    keep_coarser_keys(d, stream);
    if (motion.only_keys) continue;
    for (int level = d.places.levels - 1; level >= d.dropped; --level) {
      update(d, level, true, stream);
      pass_keys(d, level, motion.follows, stream);
      predict(d, level, true, stream);
    }
    from.push_back(d.values + first * d.frame);
    const std::size_t count = frames * static_cast<std::size_t>(d.frame);
    if (is_colour(c)) {
      if (fraction > 0)
        launch_each("to_grey_levels_kernel", to_grey_levels_kernel, count, stream, d.values + first * d.frame, count,
                    fraction);
      continue;
    }
    SampleRange range;
    range.offset = header_.components[n].offset;
    range.min_sample = lowest_sample(f);
    range.max_sample = highest_sample(f);
    const auto store = [&](auto kind) {
      using Sample = decltype(kind);
      launch_each("to_samples_kernel", to_samples_kernel<Sample>, count, stream, from.back(), count, fraction, range,
                  reinterpret_cast<Sample*>(samples + shape.sample_origin[n]));
    };
    f.bytes_per_sample() == 1 ? store(std::uint8_t{}) : store(std::uint16_t{});
  }
  has_low_key_ = has_low_key_ || motion.places.ends_with_key();
  if (!header_.colour_transform || frames == 0 || motion.only_keys) return;
  std::byte* const out[3] = {samples + shape.sample_origin[0], samples + shape.sample_origin[1],
                             samples + shape.sample_origin[2]};
  const std::int32_t* const in[3] = {from[0], from[1], from[2]};
  inverse_colour<std::int32_t>(in, frames * shape.shapes[0].height * static_cast<std::size_t>(shape.shapes[0].width),
                               1.0f, header_.components[0].offset, highest_sample(f), out,
                               sample_format(f.bytes_per_sample(), f.is_signed), stream);
}

void integers_from_samples(const StreamHeader& header, const std::vector<const std::byte*>& samples,
                           const std::vector<std::size_t>& counts, int fraction,
                           const std::vector<std::int32_t*>& integers, const Stream& stream) {
  const PixelFormat& f = header.video.format;
  const SampleFormat format = sample_format(f.bytes_per_sample(), f.is_signed);
  if (header.colour_transform) {
    const std::byte* const in[3] = {samples[0], samples[1], samples[2]};
    std::int32_t* const out[3] = {integers[0], integers[1], integers[2]};
    forward_colour<std::int32_t>(in, format, counts[0], header.components[0].offset, out, stream);
  }
  for (std::size_t c = 0; c < samples.size(); ++c) {
    const auto load = [&](auto kind) {
      using Sample = decltype(kind);
      launch_each("from_samples_kernel", from_samples_kernel<Sample>, counts[c], stream,
                  reinterpret_cast<const Sample*>(samples[c]), counts[c], header.components[c].offset, fraction,
                  integers[c]);
    };
    if (header.colour_transform && c < 3) {
      if (fraction > 0)
        launch_each("to_places_kernel", to_places_kernel, counts[c], stream, integers[c], counts[c], fraction);
      continue;
    }
    switch (format) {
      case SampleFormat::kU8: load(std::uint8_t{}); break;
      case SampleFormat::kS8: load(std::int8_t{}); break;
      case SampleFormat::kU16: load(std::uint16_t{}); break;
      default: load(std::int16_t{}); break;
    }
  }
}

template <class T>
void DeviceMotion::from_samples(const GopShape& shape, const MotionOfGop& motion, const std::byte* samples,
                                const Stream& stream, std::int32_t* low) {
  const int components = static_cast<int>(shape.shapes.size());
  const int first = first_place(motion.places.key);
  const auto frames = static_cast<std::size_t>(shape.frames_left());
  std::vector<DeviceMotionComponent> all;
  std::vector<const std::byte*> from;
  std::vector<std::size_t> counts;
  std::vector<std::int32_t*> to;
  for (int c = 0; c < components; ++c) {
    all.push_back(component(shape, motion, c));
    from.push_back(samples + shape.sample_origin[static_cast<std::size_t>(c)]);
    counts.push_back(frames * static_cast<std::size_t>(all.back().frame));
    to.push_back(all.back().values + first * all.back().frame);
  }
  integers_from_samples(header_, from, counts, header_.lossless ? 0 : kMotionFraction, to, stream);
  for (const DeviceMotionComponent& d : all) {
    const auto n = static_cast<std::size_t>(d.index);
    for (int level = 0; level < d.places.levels; ++level) {
      pass_keys(d, level, motion.follows, stream);
      predict(d, level, false, stream);
      update(d, level, false, stream);
    }
    keep_coarser_keys(d, stream);
    for (int i = 0; low && i < d.places.keys(); ++i)
      copy(low + static_cast<std::size_t>(i) * key_origin_.back() + key_origin_[n],
           d.values + d.frame_at(d.places.key_place(i)), static_cast<std::size_t>(d.frame), cudaMemcpyDeviceToDevice,
           stream);
    if (first > 0)  // values that are not coded
      check(cudaMemsetAsync(d.values, 0, static_cast<std::size_t>(d.frame) * sizeof *d.values, stream.get()),
            "cudaMemsetAsync");
    if constexpr (std::is_same_v<T, float>) to_floats(d.values, shape.shapes[n].samples(), stream);
  }
}

void DeviceMotion::to_floats(std::int32_t* values, std::size_t count, const Stream& stream) {
  launch_each("to_floats_kernel", to_floats_kernel, count, stream, values, count);
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

void DeviceMotion::set_frame(const GopShape& shape, const MotionOfGop& motion, int component, int place,
                             const std::int32_t* from, const Stream& stream) const {
  const DeviceMotionComponent d = this->component(shape, motion, component);
  std::int32_t* const to = d.values + d.frame_at(place);
  copy(to, from, static_cast<std::size_t>(d.frame), cudaMemcpyDeviceToDevice, stream);
  if (!header_.lossless) to_floats(to, static_cast<std::size_t>(d.frame), stream);
}

template void DeviceMotion::from_samples<float>(const GopShape&, const MotionOfGop&, const std::byte*, const Stream&,
                                                std::int32_t*);
template void DeviceMotion::from_samples<std::int32_t>(const GopShape&, const MotionOfGop&, const std::byte*,
                                                       const Stream&, std::int32_t*);
template void DeviceMotion::to_samples<float>(const GopShape&, const MotionOfGop&, const float*, std::byte*,
                                              const Stream&);
template void DeviceMotion::to_samples<std::int32_t>(const GopShape&, const MotionOfGop&, const float*, std::byte*,
                                                     const Stream&);

}  // namespace trivelet::gpu
