// Pictures that the search for motion on the device looks at, of all frames at once.
//
//   load         samples to pictures of 16 bits with a frame around them, and sums of each cell
//   interpolate  pictures at all quarters of a sample
//   coarse       blocks among smaller pictures, a warp each
#include "codec/motion/sad_kernels.h"
#include "gpu/motion/motion_parts.h"

namespace trivelet::gpu::motion_parts {
namespace {

template <class T>
__global__ void load_kernel(const std::int32_t* from, int down, int bits, Padded p, T* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = i / p.columns(), x = i % p.columns();
  if (y >= p.rows()) return;
  const int from_y = std::clamp(y - kPad, 0, p.height - 1), from_x = std::clamp(x - kPad, 0, p.width - 1);
  to[y * p.stride + x] = static_cast<T>(
      bias_of(T{}) + searched(from[from_y * static_cast<std::ptrdiff_t>(p.width) + from_x] >> down, bits, T{}));
}

/// Sums of the samples of each cell; `cell_y` and `cell_x` are its size.
__global__ void sums_kernel(const std::int32_t* from, int height, int width, int cell_y, int cell_x, MotionGrid grid,
                            std::int32_t* sums) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int cy = i / grid.columns, cx = i % grid.columns;
  if (cy >= grid.rows) return;
  std::int32_t sum = 0;
  for (int y = cy * cell_y; y < std::min(height, (cy + 1) * cell_y); ++y)
    for (int x = cx * cell_x; x < std::min(width, (cx + 1) * cell_x); ++x)
      sum += from[y * static_cast<std::ptrdiff_t>(width) + x];
  sums[i] = sum;
}

template <class T>
__device__ __forceinline__ T filtered(const T* in, std::ptrdiff_t stride, int phase) {
  constexpr int kLeast = sizeof(T) == 1 ? 0 : kBias - 4096, kMost = sizeof(T) == 1 ? 255 : kBias + 4095;
  std::int32_t sum = 32;  // taps add up to one, so that the bias stays
  TRIVELET_UNROLL
  for (int i = 0; i < kMotionTaps; ++i) sum += motion_tap(phase, i) * in[(i - kMotionTapsBefore) * stride];
  return static_cast<T>(std::clamp(sum >> 6, kLeast, kMost));
}

/// A picture at all quarters of a sample. The row of each of its planes, [y quarter * 4 + x quarter], comes before the
/// next row of any, so that a region uses few pages of memory. This kernel computes the planes of blockIdx.y quarters
/// between columns.
template <class T>
__global__ void columns_kernel(const T* whole, Padded p, T* planes) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = i / p.columns(), x = i % p.columns();
  if (y >= p.rows()) return;
  const auto quarter = static_cast<int>(blockIdx.y);
  const T* in = whole + y * p.stride + x;
  planes[(y * kPlanes + quarter) * p.stride + x] =
      quarter == 0 || x < kWhole || x >= p.columns() - kWhole ? *in : filtered(in, 1, 2 * quarter);
}

/// Those of blockIdx.y + 1 quarters between rows and blockIdx.z between columns.
template <class T>
__global__ void rows_kernel(Padded p, T* planes) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = i / p.columns(), x = i % p.columns();
  if (y >= p.rows()) return;
  const auto quarter = static_cast<int>(blockIdx.y) + 1, column = static_cast<int>(blockIdx.z);
  const T* in = planes + (y * kPlanes + column) * p.stride + x;
  planes[(y * kPlanes + quarter * kQuarters + column) * p.stride + x] =
      y < kWhole || y >= p.rows() - kWhole ? *in : filtered(in, kPlanes * p.stride, 2 * quarter);
}

template <class T>
__global__ void shrink_kernel(const T* whole, Padded p, int factor, int height, int width, T* small) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = i / width, x = i % width;
  if (y >= height) return;
  const T* picture = whole + blockIdx.y * p.plane + kPad * p.stride + kPad;
  int sum = 0, count = 0;
  for (int j = y * factor; j < std::min(p.height, (y + 1) * factor); ++j)
    for (int k = x * factor; k < std::min(p.width, (x + 1) * factor); ++k, ++count)
      sum += picture[j * p.stride + k] - bias_of(T{});
  small[blockIdx.y * (static_cast<std::ptrdiff_t>(height) * width) + i] = static_cast<T>(sum / count);
}

// -------------------------------------------------------------------------------------------------------------- coarse

template <class T>
__device__ __forceinline__ int small_difference(const T* a, const T* b, int stride) {
  int sum = 0;
  for (int y = 0; y < kSmallSide; ++y) {
    TRIVELET_UNROLL
    for (int x = 0; x < kSmallSide; ++x) sum += abs(a[y * stride + x] - b[y * stride + x]);
  }
  return sizeof(T) == 1 ? sum : sum >> kDeepShift;
}

/// A warp for each block: blockIdx.x is its number, y the reference, z the place of the frame.
template <class T>
__global__ void __launch_bounds__(kWarp)
    coarse_kernel(const T* small, MotionPlaces places, CoarseBlocks blocks, CoarseFrames frames, MotionVector* coarse) {
  const int t = static_cast<int>(blockIdx.z);
  int level = 0;
  while (level < places.levels && (t >> level & 1) == 0) ++level;
  if (t == 0 || (frames == CoarseFrames::kFirstOfLevels && t != 1 << level)) return;
  if (level == places.levels && !(frames == CoarseFrames::kAllAndKeys && places.has(t - (1 << level)))) return;
  const MotionReferences references = motion_references(t, level, places);
  const int from = blockIdx.y == 0 ? references.past : references.other;
  if (from < 0) return;
  const int y = static_cast<int>(blockIdx.x) / blocks.columns * kSmallSide,
            x = static_cast<int>(blockIdx.x) % blocks.columns * kSmallSide;
  MotionVector best;
  if (y + kSmallSide <= blocks.height && x + kSmallSide <= blocks.width) {
    const std::ptrdiff_t samples = static_cast<std::ptrdiff_t>(blocks.height) * blocks.width;
    const T* current = small + t * samples + y * static_cast<std::ptrdiff_t>(blocks.width) + x;
    const T* reference = small + from * samples;
    constexpr int kNowhere = 1 << 30;
    const auto cost_at = [&](int dy, int dx) {
      const int j = y + dy, i = x + dx;
      if (j < 0 || i < 0 || j + kSmallSide > blocks.height || i + kSmallSide > blocks.width) return kNowhere;
      return small_cost(
          small_difference(current, reference + j * static_cast<std::ptrdiff_t>(blocks.width) + i, blocks.width), dy,
          dx);
    };
    const auto lane = static_cast<int>(threadIdx.x);
    constexpr int kAcross = kSmallReach + 1;  // every other place
    int least = kNowhere, place = 1 << 20;
    for (int n = lane; n < kAcross * kAcross; n += kWarp) {
      const int cost = cost_at(n / kAcross * 2 - kSmallReach, n % kAcross * 2 - kSmallReach);
      if (cost < least) {
        least = cost;
        place = n;
      }
    }
    least_of_warp(least, place);
    const int by = place / kAcross * 2 - kSmallReach, bx = place % kAcross * 2 - kSmallReach;
    int near = lane < 9 ? cost_at(by + lane / 3 - 1, bx + lane % 3 - 1) : kNowhere, near_place = lane;
    least_of_warp(near, near_place);
    const bool nearer = near < least;
    best = limited_vector(kQuarters * blocks.factor * (bx + (nearer ? near_place % 3 - 1 : 0)),
                          kQuarters * blocks.factor * (by + (nearer ? near_place / 3 - 1 : 0)));
  }
  if (threadIdx.x == 0)
    coarse[(t * 2 + static_cast<int>(blockIdx.y)) * static_cast<std::ptrdiff_t>(blocks.rows * blocks.columns) +
           blockIdx.x] = best;
}

unsigned blocks_of(std::size_t count) { return static_cast<unsigned>((count + kEachThreads - 1) / kEachThreads); }
unsigned blocks_of(const Padded& p) {
  return blocks_of(static_cast<std::size_t>(p.rows()) * static_cast<std::size_t>(p.columns()));
}

}  // namespace

template <class T>
void load_picture(const std::int32_t* from, int down, int bits, const Padded& p, T* to, const Stream& stream) {
  launch("load_kernel", load_kernel<T>, dim3(blocks_of(p)), dim3(kEachThreads), 0, stream.get(), from, down, bits, p,
         to);
}

void sum_cells(const std::int32_t* from, int height, int width, int cell_y, int cell_x, const MotionGrid& grid,
               std::int32_t* sums, const Stream& stream) {
  launch("sums_kernel", sums_kernel, dim3(blocks_of(grid.cells())), dim3(kEachThreads), 0, stream.get(), from, height,
         width, cell_y, cell_x, grid, sums);
}

template <class T>
void interpolate(const T* whole, const Padded& p, T* planes, const Stream& stream) {
  launch("columns_kernel", columns_kernel<T>, dim3(blocks_of(p), kQuarters), dim3(kEachThreads), 0, stream.get(), whole,
         p, planes);
  launch("rows_kernel", rows_kernel<T>, dim3(blocks_of(p), kQuarters - 1, kQuarters), dim3(kEachThreads), 0,
         stream.get(), p, planes);
}

template <class T>
void shrink(const T* whole, int count, const Padded& p, int factor, int height, int width, T* small,
            const Stream& stream) {
  const std::size_t samples = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  launch("shrink_kernel", shrink_kernel<T>, dim3(blocks_of(samples), static_cast<unsigned>(count)), dim3(kEachThreads),
         0, stream.get(), whole, p, factor, height, width, small);
}

template <class T>
void search_coarsely(const T* small, const MotionPlaces& places, const CoarseBlocks& blocks, CoarseFrames frames,
                     MotionVector* coarse, const Stream& stream) {
  launch("coarse_kernel", coarse_kernel<T>,
         dim3(static_cast<unsigned>(blocks.rows * blocks.columns), 2, static_cast<unsigned>(places.count)), dim3(kWarp),
         0, stream.get(), small, places, blocks, frames, coarse);
}

#define TRIVELET_PICTURES(T)                                                                                     \
  template void load_picture(const std::int32_t*, int, int, const Padded&, T*, const Stream&);                   \
  template void interpolate(const T*, const Padded&, T*, const Stream&);                                         \
  template void shrink(const T*, int, const Padded&, int, int, int, T*, const Stream&);                          \
  template void search_coarsely(const T*, const MotionPlaces&, const CoarseBlocks&, CoarseFrames, MotionVector*, \
                                const Stream&);
TRIVELET_PICTURES(std::uint8_t)
TRIVELET_PICTURES(std::int16_t)
#undef TRIVELET_PICTURES

}  // namespace trivelet::gpu::motion_parts
