// A block for a cell: it counts magnitudes in shared memory, then a thread for each step sums their bits. Bound:
// memory, 4 bytes in for each coefficient of a third of the rows.
#include "gpu/entropy/size_estimate.h"

#include <algorithm>

namespace trivelet::gpu {
namespace {

constexpr unsigned kCellThreads = 128;
constexpr int kMostOrientations = 7;

/// The subbands of a temporal band and resolution.
struct SizeBands {
  struct Band {
    std::uint64_t origin, row_stride, frame_stride;
    int frames, height, width;
    float inverse_step;
  } bands[kMostOrientations];
  int count;
  int side;  ///< of a cell
};

__global__ void __launch_bounds__(kCellThreads)
    cell_kernel(SizeBands of, const float* coefficients, const std::uint32_t* entropy, unsigned long long* sums) {
  __shared__ std::uint32_t counts[kMagnitudeClasses];
  __shared__ std::uint32_t all;
  for (unsigned i = threadIdx.x; i < kMagnitudeClasses; i += kCellThreads) counts[i] = 0;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  const int every = size_rows(of.side), first_y = static_cast<int>(blockIdx.y) * of.side,
            first_x = static_cast<int>(blockIdx.x) * of.side;
  std::uint32_t seen = 0;
  for (int o = 0; o < of.count; ++o) {
    const SizeBands::Band& band = of.bands[o];
    const int end_y = first_y + of.side < band.height ? first_y + of.side : band.height;
    const int per_frame = kCellRows * of.side;
    for (int i = static_cast<int>(threadIdx.x); i < band.frames * per_frame; i += static_cast<int>(kCellThreads)) {
      const int t = i / per_frame;
      const int y = first_y + first_size_row(t, o, every) + i % per_frame / of.side * every;
      const int x = first_x + i % of.side;
      if (y >= end_y || x >= band.width) continue;
      ++seen;
      const std::uint32_t number =
          magnitude_class(coefficients[band.origin + static_cast<std::uint64_t>(t) * band.frame_stride +
                                       static_cast<std::uint64_t>(y) * band.row_stride + static_cast<std::uint64_t>(x)],
                          band.inverse_step);
      if (number > 0) atomicAdd(&counts[number], 1u);
    }
  }
  if (seen > 0) atomicAdd(&all, seen);
  __syncthreads();
  if (threadIdx.x >= SizeEstimate::kSteps) return;
  const unsigned long long bits =
      static_cast<unsigned>(every) * cell_bits(counts, kMagnitudeClasses, all, static_cast<int>(threadIdx.x), entropy);
  if (bits > 0) atomicAdd(sums + threadIdx.x, bits);
}

}  // namespace

void DeviceSizeEstimate::prepare(const GopShape& shape, const Stream& stream) {
  make_room(sums_, host_sums_, SizeEstimate::kSteps);
  std::uint32_t most = 0;
  for (int c = 0; c < estimated_components(shape.header); ++c)
    most = std::max(most, most_of_a_cell(shape.geometry->grid(c).table()));
  if (most <= most_) return;
  const std::vector<std::uint32_t> table = entropy_table(most);
  make_room(entropy_, host_entropy_, table.size());
  std::copy(table.begin(), table.end(), host_entropy_.data());
  copy(entropy_.data(), host_entropy_.data(), table.size(), cudaMemcpyHostToDevice, stream);
  most_ = most;
}

SizeEstimate DeviceSizeEstimate::estimate(const GopShape& shape, const float* coefficients, double step,
                                          const Stream& stream) {
  prepare(shape, stream);
  check(cudaMemsetAsync(sums_.data(), 0, SizeEstimate::kSteps * sizeof(unsigned long long), stream.get()),
        "cudaMemsetAsync");
  for (int c = 0; c < estimated_components(shape.header); ++c) {
    const auto n = static_cast<std::size_t>(c);
    const SubbandTable& table = shape.geometry->grid(c).table();
    const StepTable steps(table, static_cast<float>(step), shape.header.components[n]);
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k) {
        SizeBands of{};
        of.side = cell_side(k, table.resolutions());
        int height = 0, width = 0;
        for (const Subband* band : orientations_of(table, b, k)) {
          const CoefficientLayout::Band at = shape.layouts[n].band(*band);
          of.bands[of.count++] = {shape.coefficient_origin[n] + at.origin,
                                  at.row_stride,
                                  at.frame_stride,
                                  at.shape.frames,
                                  at.shape.height,
                                  at.shape.width,
                                  steps.inverse[number_of(table, *band)]};
          height = std::max(height, at.shape.height);
          width = std::max(width, at.shape.width);
        }
        if (height == 0 || width == 0) continue;
        launch("cell_kernel", cell_kernel,
               dim3(static_cast<unsigned>(ceil_div(width, of.side)), static_cast<unsigned>(ceil_div(height, of.side))),
               dim3(kCellThreads), 0, stream.get(), of, coefficients,
               static_cast<const std::uint32_t*>(entropy_.data()), sums_.data());
      }
  }
  copy(host_sums_.data(), sums_.data(), SizeEstimate::kSteps, cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  check(cudaGetLastError(), "a kernel that estimates sizes");
  SizeEstimate out;
  out.step = step;
  std::copy(host_sums_.data(), host_sums_.data() + SizeEstimate::kSteps, out.bits.begin());
  return out;
}

}  // namespace trivelet::gpu
