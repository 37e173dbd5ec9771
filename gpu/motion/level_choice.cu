// Sums the contrast of blocks that nothing predicts at the distance of each level, a warp each (level_choice.h).

#include "gpu/motion/level_choice.h"

#include <algorithm>

#include "gpu/motion/motion_parts.h"
#include "gpu/transform/dwt.cuh"
#include "trivelet/cuda.h"

namespace trivelet::gpu {
namespace {

using namespace level_estimate;
using motion_parts::kWarp;
using motion_parts::least_of_warp;

constexpr int kFramesAtOnce = 4;  // on their way to the device

struct Reduced {
  const std::int16_t* pictures;
  int height, width;
  __device__ const std::int16_t* at(int frame, int y, int x) const {
    return pictures + (static_cast<std::ptrdiff_t>(frame) * height + y) * width + x;
  }
};

/// A thread for each sample of the reduced picture.
template <class T>
__global__ void reduce_kernel(const T* from, int from_width, int factor, int bits, int height, int width,
                              std::int16_t* to) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  const int y = i / width, x = i % width;
  if (y >= height) return;
  std::int32_t sum = 0;
  for (int j = 0; j < factor; ++j)
    for (int k = 0; k < factor; ++k)
      sum += from[static_cast<std::ptrdiff_t>(y * factor + j) * from_width + x * factor + k];
  to[i] = reduced_sample(sum, factor, bits);
}

/// FineSadKernels::satd; `difference(row, column)`.
template <class F>
__device__ int satd_of(const F& difference) {
  int m[kBlockSide][kBlockSide];
  TRIVELET_UNROLL
  for (int j = 0; j < kBlockSide; ++j) {
    TRIVELET_UNROLL
    for (int i = 0; i < kBlockSide; ++i) m[j][i] = difference(j, i) >> 3;
    TRIVELET_UNROLL
    for (int s = 4; s > 0; s /= 2) TRIVELET_UNROLL
    for (int i = 0; i < kBlockSide; ++i)
      if (!(i & s)) {
        const int u = m[j][i], v = m[j][i + s];
        m[j][i] = u + v;
        m[j][i + s] = u - v;
      }
  }
  int sum = 0;
  TRIVELET_UNROLL
  for (int i = 0; i < kBlockSide; ++i) {
    TRIVELET_UNROLL
    for (int s = 4; s > 0; s /= 2) TRIVELET_UNROLL
    for (int j = 0; j < kBlockSide; ++j)
      if (!(j & s)) {
        const int u = m[j][i], v = m[j + s][i];
        m[j][i] = u + v;
        m[j + s][i] = u - v;
      }
    TRIVELET_UNROLL
    for (int j = 0; j < kBlockSide; ++j) sum += abs(m[j][i]);
  }
  return 8 * sum / 5;
}

/// The place in another picture that predicts a block.
struct Place {
  int frame = 0, y = 0, x = 0, half_y = 0, half_x = 0;
  int cost = 0;  ///< SATD
  __device__ std::int16_t sample(const Reduced& r, int j, int i) const {
    const std::int16_t* s = r.at(frame, y + j, x + i);
    return half_y == 0 && half_x == 0 ? *s : between(s, r.width, half_y, half_x);
  }
};

/// The best place for the block of `frame` at (y, x), to half a sample. All lanes get it.
__device__ Place find_place(const Reduced& r, int frame, int y, int x, int from) {
  const auto lane = static_cast<int>(threadIdx.x);
  const std::int16_t* block = r.at(frame, y, x);
  const auto cost_at = [&](int dy, int dx) {
    const int j = y + dy, i = x + dx;
    if (j < 0 || i < 0 || j + kBlockSide > r.height || i + kBlockSide > r.width) return kEndlessCost;
    const std::int16_t* other = r.at(from, j, i);
    int sum = 0;
    for (int row = 0; row < kBlockSide; ++row)
      for (int column = 0; column < kBlockSide; ++column)
        sum += abs(block[row * r.width + column] - other[row * r.width + column]);
    return cost_of_place(sum, dy, dx);
  };
  // No motion comes first, then rows of places, then those beside the best. The first of equal ones is taken.
  constexpr int kAcross = kSearchReach + 1;
  int least = lane == 0 ? cost_at(0, 0) : kEndlessCost, number = lane == 0 ? -1 : 1 << 20;
  for (int n = lane; n < kAcross * kAcross; n += kWarp) {
    const int cost = cost_at(n / kAcross * 2 - kSearchReach, n % kAcross * 2 - kSearchReach);
    if (cost < least) {
      least = cost;
      number = n;
    }
  }
  least_of_warp(least, number);
  const int cy = number < 0 ? 0 : number / kAcross * 2 - kSearchReach,
            cx = number < 0 ? 0 : number % kAcross * 2 - kSearchReach;
  int near = lane < 9 ? cost_at(cy + lane / 3 - 1, cx + lane % 3 - 1) : kEndlessCost, near_number = lane;
  least_of_warp(near, near_number);
  const bool nearer = near < least;
  Place place{from, y + cy + (nearer ? near_number / 3 - 1 : 0), x + cx + (nearer ? near_number % 3 - 1 : 0)};
  // Lane 0 looks at this place, the next eight between it and those around it.
  const bool inside = place.y >= 1 && place.x >= 1 && place.y + kBlockSide < r.height && place.x + kBlockSide < r.width;
  Place tried = place;
  if (lane > 0 && lane < 9) {
    const int n = lane <= 4 ? lane - 1 : lane;
    tried.half_y = n / 3 - 1;
    tried.half_x = n % 3 - 1;
  }
  int cost = kEndlessCost, best = lane;
  if (lane == 0 || (inside && lane < 9))
    cost = satd_of([&](int j, int i) { return block[j * r.width + i] - tried.sample(r, j, i); });
  least_of_warp(cost, best);
  place.cost = cost;
  place.half_y = __shfl_sync(kAllLanes, tried.half_y, best);
  place.half_x = __shfl_sync(kAllLanes, tried.half_x, best);
  return place;
}

/// blockIdx.x is the number of the block, y that of the compared frame, z the level.
__global__ void __launch_bounds__(kWarp) lost_kernel(Reduced r, int columns, int frames, LostContrast* sums) {
  const ComparedFrames compared(1 << blockIdx.z, frames);
  const auto i = static_cast<int>(blockIdx.y);
  if (i >= compared.count) return;
  const int y = static_cast<int>(blockIdx.x) / columns * kBlockSide,
            x = static_cast<int>(blockIdx.x) % columns * kBlockSide, frame = compared.frame(i);
  const Place past = find_place(r, frame, y, x, compared.past(i)),
              other = find_place(r, frame, y, x, compared.other(i, frames));
  if (threadIdx.x != 0) return;
  const std::int16_t* block = r.at(frame, y, x);
  int sum = 0;
  for (int j = 0; j < kBlockSide; ++j)
    for (int k = 0; k < kBlockSide; ++k) sum += block[j * r.width + k];
  const auto mean = static_cast<std::int16_t>((sum + kBlockSide * kBlockSide / 2) >> 6);
  const int contrast = satd_of([&](int j, int k) { return block[j * r.width + k] - mean; });
  const int limit = contrast * kLostShare / 100;
  const auto add = [&](std::uint64_t& to) {
    atomicAdd(reinterpret_cast<unsigned long long*>(&to), static_cast<unsigned long long>(contrast));
  };
  add(sums[blockIdx.z].all);
  if (past.cost <= limit || other.cost <= limit) return;
  const int mean_cost = satd_of(
      [&](int j, int k) { return block[j * r.width + k] - ((past.sample(r, j, k) + other.sample(r, j, k) + 1) >> 1); });
  if (mean_cost > limit) add(sums[blockIdx.z].lost);
}

}  // namespace

DeviceLevelChoice::Sizes::Sizes(const StreamHeader& header) {
  const Shape s = header.component_shape(0, 1);
  factor = reduction_of(s.width, s.height);
  height = s.height / factor;
  width = s.width / factor;
  rows = height / kBlockSide;
  columns = width / kBlockSide;
  frame_bytes = checked_mul(s.samples(), static_cast<std::size_t>(header.video.format.bytes_per_sample()));
  reduced_samples = static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  levels = 1;
  while (1 << levels < static_cast<int>(header.gop_frames)) ++levels;
}

std::size_t DeviceLevelChoice::device_bytes(const StreamHeader& header) {
  const Sizes s(header);
  return kFramesAtOnce * s.frame_bytes +
         sizeof(std::int16_t) * checked_mul(s.reduced_samples, static_cast<std::size_t>(header.gop_frames)) +
         sizeof(LostContrast) * static_cast<std::size_t>(s.levels);
}

DeviceLevelChoice::DeviceLevelChoice(const StreamHeader& header, int device)
    : header_(header), device_(device), sizes_(header) {
  if (sizes_.rows == 0 || sizes_.columns == 0) return;
  samples_ = DeviceBuffer<std::byte>(kFramesAtOnce * sizes_.frame_bytes);
  pictures_ =
      DeviceBuffer<std::int16_t>(checked_mul(sizes_.reduced_samples, static_cast<std::size_t>(header.gop_frames)));
  lost_ = DeviceBuffer<LostContrast>(static_cast<std::size_t>(sizes_.levels));
  host_lost_ = PinnedBuffer<LostContrast>(static_cast<std::size_t>(sizes_.levels));
}

template <class T>
void DeviceLevelChoice::reduce(int frame, int of, const Gop& gop) {
  const VolumeView v = gop.plane(0);
  std::byte* at = samples_.data() + static_cast<std::size_t>(of % kFramesAtOnce) * sizes_.frame_bytes;
  copy_to_device(device_, {at, static_cast<std::ptrdiff_t>(v.row_bytes())},
                 {const_cast<std::byte*>(v.row(frame, 0)), v.row_stride}, v.row_bytes(),
                 static_cast<std::size_t>(v.shape.height), stream_.get());
  const auto blocks =
      static_cast<unsigned>((sizes_.reduced_samples + motion_parts::kEachThreads - 1) / motion_parts::kEachThreads);
  launch("reduce_kernel", reduce_kernel<T>, dim3(blocks), dim3(motion_parts::kEachThreads), 0, stream_.get(),
         reinterpret_cast<const T*>(at), v.shape.width, sizes_.factor, header_.video.format.bits, sizes_.height,
         sizes_.width, pictures_.data() + static_cast<std::size_t>(frame) * sizes_.reduced_samples);
}

void DeviceLevelChoice::reduce(int frame, int of, const Gop& gop) {
  const VolumeView v = gop.plane(0);
  if (v.bytes_per_sample == 1)
    v.is_signed ? reduce<std::int8_t>(frame, of, gop) : reduce<std::uint8_t>(frame, of, gop);
  else
    v.is_signed ? reduce<std::int16_t>(frame, of, gop) : reduce<std::uint16_t>(frame, of, gop);
}

LevelChoice DeviceLevelChoice::choose(const Gop& gop, int most) {
  if (sizes_.rows == 0 || sizes_.columns == 0) return {most, false, {}};
  check(cudaSetDevice(device_), "cudaSetDevice");
  const int frames = gop.frames();
  int levels = 0;
  while (levels < std::min(most, sizes_.levels) && 1 << levels < frames) ++levels;
  std::vector<bool> needed(static_cast<std::size_t>(frames));
  int most_frames = 0;
  for (int level = 0; level < levels; ++level) {
    const ComparedFrames compared(1 << level, frames);
    most_frames = std::max(most_frames, compared.count);
    for (int i = 0; i < compared.count; ++i)
      for (const int frame : {compared.past(i), compared.frame(i), compared.other(i, frames)})
        needed[static_cast<std::size_t>(frame)] = true;
  }
  if (levels > 0) {
    check(cudaMemsetAsync(lost_.data(), 0, sizeof(LostContrast) * lost_.size(), stream_.get()), "cudaMemsetAsync");
    for (int frame = 0, n = 0; frame < frames; ++frame)
      if (needed[static_cast<std::size_t>(frame)]) reduce(frame, n++, gop);
    launch("lost_kernel", lost_kernel,
           dim3(static_cast<unsigned>(sizes_.rows * sizes_.columns), static_cast<unsigned>(most_frames),
                static_cast<unsigned>(levels)),
           dim3(kWarp), 0, stream_.get(), Reduced{pictures_.data(), sizes_.height, sizes_.width}, sizes_.columns,
           frames, lost_.data());
    copy(host_lost_.data(), lost_.data(), static_cast<std::size_t>(levels), cudaMemcpyDeviceToHost, stream_);
  }
  stream_.synchronize();
  return levels_by_losses(frames, most, [&](int level) { return host_lost_.data()[level].percentage(); });
}

}  // namespace trivelet::gpu
