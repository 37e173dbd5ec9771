// A thread per coefficient, with its eight neighbours from the cache. Bound: memory, 4 bytes in and 4 out.
#include "gpu/pipeline/rounding.h"

#include <algorithm>

#include "codec/entropy/dense/rounding.h"

namespace trivelet::gpu {
namespace {

constexpr unsigned kRoundingThreads = 128;

struct RoundedBand {
  const float* from;
  float* to;
  std::size_t frame_stride, row_stride;
  int height, width;
  float step, inverse_step, lambda;
};

// A frame for each blockIdx.z. Borders are repeated outside.
__global__ void round_kernel(RoundedBand b) {
  const int x = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (x >= b.width) return;
  const std::size_t frame = blockIdx.z * b.frame_stride;
  const int left = x > 0 ? x - 1 : 0, right = x + 1 < b.width ? x + 1 : x;
  for (int y = static_cast<int>(blockIdx.y); y < b.height; y += static_cast<int>(gridDim.y)) {
    const float* here = b.from + frame + y * b.row_stride;
    const float* above = y > 0 ? here - b.row_stride : here;
    const float* below = y + 1 < b.height ? here + b.row_stride : here;
    const auto counted = [&](const float* row, int i) { return counted_magnitude(row[i], b.inverse_step); };
    const float beside = (counted(here, left) + counted(here, right)) + (counted(above, x) + counted(below, x));
    const float diagonal =
        (counted(above, left) + counted(above, right)) + (counted(below, left) + counted(below, right));
    b.to[frame + y * b.row_stride + static_cast<std::size_t>(x)] =
        rounded_by_cost(here[x], kBesideWeight * beside + diagonal, b.step, b.inverse_step, b.lambda);
  }
}

void round_frames(const CoefficientLayout::Band& band, int frames, const float* from, float* to, float step,
                  float inverse_step, float lambda, const Stream& stream) {
  const RoundedBand rounded{from + band.origin,
                            to + band.origin,
                            band.frame_stride,
                            band.row_stride,
                            band.shape.height,
                            band.shape.width,
                            step,
                            inverse_step,
                            lambda};
  const dim3 grid((static_cast<unsigned>(band.shape.width) + kRoundingThreads - 1) / kRoundingThreads,
                  static_cast<unsigned>(std::min(band.shape.height, 65535)), static_cast<unsigned>(frames));
  launch("round_kernel", round_kernel, grid, dim3(kRoundingThreads), 0, stream.get(), rounded);
}

}  // namespace

void round_band(const CoefficientLayout::Band& band, const float* from, float* to, float step, float inverse_step,
                float lambda, const Stream& stream) {
  round_frames(band, 1, from, to, step, inverse_step, lambda, stream);
}

void round_by_cost(const GopShape& shape, float step, const float* from, float* to, const Stream& stream) {
  for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
    const SubbandTable& table = shape.geometry->grid(static_cast<int>(c)).table();
    const StepTable steps(table, step, shape.header.components[c]);
    for (std::size_t i = 0; i < table.all().size(); ++i) {
      const CoefficientLayout::Band band = shape.layouts[c].band(table.all()[i]);
      if (band.shape.samples() == 0) continue;
      round_frames(band, band.shape.frames, from + shape.coefficient_origin[c], to + shape.coefficient_origin[c],
                   steps.step[i], steps.inverse[i], rounding_lambda(table.all()[i], table.decomposition()), stream);
    }
  }
}

}  // namespace trivelet::gpu
