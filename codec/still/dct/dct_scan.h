// The scan order of coefficients in a dct stream: along diagonals of the whole plane. Shared by CPU and CUDA.
#pragma once

#include <cstdint>

#include "codec/transform/lifting.h"

namespace trivelet::dct {

/// The number of positions of a width x height plane on the diagonals x + y < d.
TRIVELET_HOST_DEVICE static inline std::uint64_t positions_before(std::uint64_t d, std::uint64_t width,
                                                                  std::uint64_t height) {
  const std::uint64_t low = width < height ? width : height, high = width < height ? height : width;
  if (d <= low) return d * (d + 1) / 2;
  if (d <= high) return low * (low + 1) / 2 + (d - low) * low;
  const std::uint64_t left = width + height - 1 - d;
  return width * height - left * (left + 1) / 2;
}

/// The place of (x, y) in the scan: x rises along even diagonals and falls along odd ones.
TRIVELET_HOST_DEVICE static inline std::uint64_t scan_place(int x, int y, int width, int height) {
  const int d = x + y, first = d < height ? 0 : d - height + 1, last = d < width ? d : width - 1;
  const int along = d % 2 == 0 ? x - first : last - x;
  return positions_before(static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(width),
                          static_cast<std::uint64_t>(height)) +
         static_cast<std::uint64_t>(along);
}

/// Quantises with a rounding offset of 0.4, below one half because the distribution within a step falls.
TRIVELET_HOST_DEVICE static inline std::int32_t level_of(double coefficient, double step) {
  const double v = coefficient / step;
  return v < 0 ? -static_cast<std::int32_t>(-v + 0.4) : static_cast<std::int32_t>(v + 0.4);
}

/// The sample for a value of the inverse transform.
TRIVELET_HOST_DEVICE static inline int sample_of(double value, double middle, double most) {
  const double v = value + middle;
  return static_cast<int>((v < 0 ? 0 : v > most ? most : v) + 0.5);
}

}  // namespace trivelet::dct
