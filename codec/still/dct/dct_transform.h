// The two-dimensional orthonormal DCT-II of a whole picture in binary64, and its inverse.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/threads/parallel.h"
#include "trivelet/still.h"

namespace trivelet::dct {

/// Transforms width x height planes in place, row-major.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual const char* name() const = 0;
  virtual void forward(double* plane, int width, int height) = 0;
  virtual void inverse(double* plane, int width, int height) = 0;

  /// Everything before the entropy coder: subtracts half the range, transforms, divides by `step`, rounds, and returns
  /// the first `kept` levels in scan order. Devices override it to do all of it where the samples are.
  virtual std::vector<std::int32_t> levels(const still::Image& image, int component, double step, std::uint64_t kept);
  /// The inverse; levels beyond those given are 0. Writes the samples of one plane of `image`.
  virtual void samples(std::span<const std::int32_t> levels, double step, still::Image& image, int component);
};

/// In O(n log n): FFTW if the build has it, else our own FFT. `pool` must outlive the transform.
std::unique_ptr<Transform> make_fast_transform(ThreadPool& pool);
/// Our own FFT, always available: the symmetric extension of a row in half the length (Makhoul 1980), radix 2; other
/// lengths by Bluestein's convolution.
std::unique_ptr<Transform> make_own_transform(ThreadPool& pool);
/// The definition: O(n) sums per value and axis, on one thread. The baseline of the paper.
std::unique_ptr<Transform> make_direct_transform();

/// `out` (height columns, width rows) = transposed in; used between the axes.
void transpose(const double* in, int width, int height, double* out, ThreadPool& pool);

}  // namespace trivelet::dct
