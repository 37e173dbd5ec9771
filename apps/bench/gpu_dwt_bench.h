// How fast the transform is on a GPU, beside the convolutions it replaces.
#pragma once

#include <string>
#include <vector>

#include "trivelet/types.h"

namespace trivelet::gpu {

inline constexpr const char* kSequential = "sequential CPU convolution";
inline constexpr const char* kUploadFloats = "upload of floats";
inline constexpr const char* kDownloadFloats = "download of floats";
inline constexpr const char* kConvolutionGlobal = "papers: convolution, global memory";
inline constexpr const char* kConvolutionShared = "papers: convolution, shared memory";
inline constexpr const char* kOursDyadic = "dyadic f32 -> f32 forward";

struct TransformFigure {
  std::string what;
  Shape shape;
  double milliseconds = 0;  ///< median
  double gigasamples() const { return static_cast<double>(shape.samples()) / milliseconds / 1e6; }
};

/// CDF 9/7, three levels, on the current device: the papers' convolutions, our transform in both layouts and number
/// formats, and with `sequential` the times of a sequential program on the CPU and of transfers.
std::vector<TransformFigure> bench_transforms(const std::vector<Shape>& shapes, bool sequential);

/// The papers' table for one size: milliseconds of the transform by convolution in global and in shared memory and by
/// ours (dyadic, float, three levels), and of floats up and down.
struct Dwt3dFigure {
  double global = 0, shared = 0, ours = 0, up = 0, down = 0;
};
Dwt3dFigure bench_dwt3d(const Shape& shape);

/// The whole table on standard output; `mode`: "", "quick" or "profile".
int bench(const std::string& mode);

}  // namespace trivelet::gpu
