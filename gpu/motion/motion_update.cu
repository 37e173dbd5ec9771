// The update step along motion. scatter: a group of lanes per cell and reference; each place it gives something back to
// gets one atomic addition. update: a thread per sample, which takes what arrived, limited.
#include "gpu/motion/motion_component.cuh"

namespace trivelet::gpu {
namespace {

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

}  // namespace

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

}  // namespace trivelet::gpu
