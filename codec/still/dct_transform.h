// The two-dimensional orthonormal DCT-II of a whole picture in binary64, and its inverse.
#pragma once

#include <memory>

#include "codec/parallel.h"

namespace trivelet::dct {

/// Transforms planes of width x height: in place, row-major.
class Transform {
 public:
  virtual ~Transform() = default;
  virtual const char* name() const = 0;
  virtual void forward(double* plane, int width, int height) = 0;
  virtual void inverse(double* plane, int width, int height) = 0;
};

/// By fast transforms of O(n log n): FFTW where the build has it, else our own FFT. `pool` must live as long.
std::unique_ptr<Transform> make_fast_transform(ThreadPool& pool);
/// Our own FFT, always there: the mirror extension of a row in half the length (Makhoul 1980), radix 2, other lengths
/// by Bluestein's convolution.
std::unique_ptr<Transform> make_own_transform(ThreadPool& pool);
/// The definition: sums of O(n) per value and axis on one thread. The baseline of the paper.
std::unique_ptr<Transform> make_direct_transform();

/// out (height columns, width rows) = in turned; used between the axes.
void transpose(const double* in, int width, int height, double* out, ThreadPool& pool);

}  // namespace trivelet::dct
