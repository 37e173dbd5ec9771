// A block for a tile of some rows of a subband, a warp for a row at a time. Bound: memory, 4 bytes in for each
// coefficient of every other row.
#include "gpu/pipeline/coding_cost.h"

#include <algorithm>

namespace trivelet::gpu {
namespace {

constexpr unsigned kCodingThreads = 256;
constexpr unsigned kWarp = 32;
// Coefficients of a tile, of which a thread sums kTile / kCodingThreads; a row is not divided.
constexpr std::size_t kTile = 32768;
static_assert(kTile / kCodingThreads <= kCodingTerms);

template <class T>
__global__ void coding_cost_kernel(const CodingTile* tiles, const T* coefficients, unsigned long long* sums) {
  const CodingTile tile = tiles[blockIdx.x];
  const unsigned lane = threadIdx.x % kWarp;
  std::uint32_t bits = 0, error = 0;
  for (unsigned y = threadIdx.x / kWarp; y < tile.rows; y += kCodingThreads / kWarp) {
    const T* row = coefficients + tile.origin + static_cast<std::uint64_t>(y) * tile.row_stride;
    for (unsigned x = lane; x < tile.width; x += kWarp) {
      const float q = coding_steps(row[x], tile.inverse_step);
      bits += coding_bits(q);
      error += coding_error(q);
    }
  }
  unsigned long long all_bits = bits, all_error = error;
  for (unsigned d = kWarp / 2; d; d >>= 1) {
    all_bits += __shfl_down_sync(0xffffffffu, all_bits, d);
    all_error += __shfl_down_sync(0xffffffffu, all_error, d);
  }
  if (lane != 0) return;
  atomicAdd(sums + 2 * static_cast<std::size_t>(tile.sum), all_bits);
  atomicAdd(sums + 2 * static_cast<std::size_t>(tile.sum) + 1, all_error);
}

}  // namespace

void add_coding_tiles(const CoefficientLayout::Band& band, std::size_t origin, float inverse_step, std::size_t sum,
                      std::vector<CodingTile>& tiles) {
  const auto width = static_cast<std::size_t>(band.shape.width);
  const auto rows = static_cast<std::size_t>(coding_rows(band.shape.height));
  const std::size_t together = std::max<std::size_t>(1, kTile / width);
  for (std::size_t y = 0; y < rows; y += together)
    tiles.push_back({origin + kCodingRows * y * band.row_stride,
                     static_cast<std::uint32_t>(kCodingRows * band.row_stride),
                     static_cast<std::uint32_t>(std::min(together, rows - y)), static_cast<std::uint32_t>(width),
                     inverse_step, static_cast<std::uint32_t>(sum)});
}

template <class T>
void sum_coding_tiles(const CodingTile* tiles, std::size_t count, const T* coefficients, unsigned long long* sums,
                      const Stream& stream) {
  if (count > 0)
    launch("coding_cost_kernel", coding_cost_kernel<T>, dim3(static_cast<unsigned>(count)), dim3(kCodingThreads), 0,
           stream.get(), tiles, coefficients, sums);
}

void DeviceCodingCost::prepare(const GopShape& shape, float step, const Stream& stream) {
  if (shape_ == &shape && step_ == step) return;
  shape_ = nullptr;
  std::vector<CodingTile> tiles;
  count_ = 0;
  int component = -1;
  std::vector<float> inverse;
  for_coding_bands(shape.header, shape.frames, [&](int c, const SubbandTable& table, std::size_t i) {
    const auto n = static_cast<std::size_t>(c);
    if (c != component)
      inverse = StepTable(table, shape.header.lossless ? 1.0f : step, shape.header.components[n]).inverse;
    component = c;
    const CoefficientLayout::Band band = shape.layouts[n].band(table.all()[i]);
    for (int t = 0; t < band.shape.frames; ++t, ++count_)
      add_coding_tiles(band,
                       shape.coefficient_origin[n] + band.origin + static_cast<std::size_t>(t) * band.frame_stride,
                       inverse[i], count_, tiles);
  });
  tile_count_ = tiles.size();
  make_room(tiles_, host_tiles_, tiles.size());
  make_room(sums_, host_sums_, 2 * count_);
  std::copy(tiles.begin(), tiles.end(), host_tiles_.data());
  copy(tiles_.data(), host_tiles_.data(), tile_count_, cudaMemcpyHostToDevice, stream);
  shape_ = &shape;
  step_ = step;
}

template <class T>
void DeviceCodingCost::begin(const T* coefficients, const Stream& stream) {
  check(cudaMemsetAsync(sums_.data(), 0, 2 * count_ * sizeof *sums_.data(), stream.get()), "cudaMemsetAsync");
  sum_coding_tiles(tiles_.data(), tile_count_, coefficients, sums_.data(), stream);
  copy(host_sums_.data(), sums_.data(), 2 * count_, cudaMemcpyDeviceToHost, stream);
}

std::vector<CodingSums> DeviceCodingCost::sums() const {
  std::vector<CodingSums> sums(count_);
  for (std::size_t i = 0; i < count_; ++i) sums[i] = {host_sums_.data()[2 * i], host_sums_.data()[2 * i + 1]};
  return sums;
}

double DeviceCodingCost::cost(const std::vector<std::uint8_t>& frame_gains, const std::vector<CodingSums>& sums) const {
  return coding_cost(shape_->header, shape_->frames, frame_gains, step_, sums);
}

std::size_t DeviceCodingCost::device_bytes() const {
  return tiles_.size() * sizeof(CodingTile) + sums_.size() * sizeof(unsigned long long);
}

template void sum_coding_tiles(const CodingTile*, std::size_t, const float*, unsigned long long*, const Stream&);
template void sum_coding_tiles(const CodingTile*, std::size_t, const std::int32_t*, unsigned long long*, const Stream&);
template void DeviceCodingCost::begin(const float*, const Stream&);
template void DeviceCodingCost::begin(const std::int32_t*, const Stream&);

}  // namespace trivelet::gpu
