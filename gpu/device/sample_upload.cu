// Uploads samples of GOPs, from page-locked memory in place or through a copy, or takes them from device memory.

#include "gpu/device/sample_upload.h"

#include <cstddef>
#include <vector>

namespace trivelet::gpu {
namespace {

// Calls f(first row, frames) for the runs of frames that follow each other without a gap.
template <class F>
void for_runs(const VolumeView& v, const F& f) {
  const bool one = !v.frames && v.row_stride == static_cast<std::ptrdiff_t>(v.row_bytes()) &&
                   v.frame_stride == v.row_stride * v.shape.height;
  const int frames = one ? v.shape.frames : 1;
  for (int i = 0; i < v.shape.frames; i += frames) f(v.row(i, 0), frames);
}

bool is_locked_at(const void* p) {
  cudaPointerAttributes attributes{};
  const cudaError_t result = cudaPointerGetAttributes(&attributes, p);
  forget(result);
  return result == cudaSuccess && attributes.type == cudaMemoryTypeHost;
}

}  // namespace

void upload(const Gop& gop, const std::vector<std::size_t>& sample_origin, std::byte* samples, const Stream& stream) {
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    const std::size_t row = v.row_bytes(), height = static_cast<std::size_t>(v.shape.height);
    const auto pitch = static_cast<std::size_t>(v.row_stride);
    std::byte* to = samples + sample_origin[static_cast<std::size_t>(c)];
    for_runs(v, [&](const std::byte* from, int frames) {
      const std::size_t bytes = row * height * static_cast<std::size_t>(frames);
      if (pitch == row)
        copy(to, from, bytes, cudaMemcpyDefault, stream);
      else if (v.row_stride < static_cast<std::ptrdiff_t>(row))  // upside down
        for (std::size_t y = 0; y < height; ++y)
          copy(to + y * row, from + static_cast<std::ptrdiff_t>(y) * v.row_stride, row, cudaMemcpyDefault, stream);
      else
        check(cudaMemcpy2DAsync(to, row, from, pitch, row, height, cudaMemcpyDefault, stream.get()),
              "cudaMemcpy2DAsync");
      to += bytes;
    });
  }
}

bool is_page_locked(const Gop& gop) {
  bool all = true;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView v = gop.plane(c);
    if (v.row_stride < static_cast<std::ptrdiff_t>(v.row_bytes())) return false;  // upside down
    for_runs(v, [&](const std::byte* first, int frames) {
      const std::ptrdiff_t rows = static_cast<std::ptrdiff_t>(v.shape.height) * frames;
      const std::byte* last = first + (rows - 1) * v.row_stride + static_cast<std::ptrdiff_t>(v.row_bytes()) - 1;
      all = all && is_locked_at(first) && is_locked_at(last);
    });
  }
  return all;
}

}  // namespace trivelet::gpu
