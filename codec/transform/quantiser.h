// The dead-zone quantiser (FORMAT.md "Quantiser"): coefficient -> magnitude in steps, and known bits of a magnitude ->
// coefficient. Arithmetic of one value, shared by all backends and both profiles (base/host_device.h).
#pragma once

#include <cstdint>
#include <type_traits>

#include "codec/base/host_device.h"

namespace trivelet {

/// |c| in quantiser steps, not rounded, limited to below 2^30: magnitudes have 30 bit planes. NaN gives the limit.
TRIVELET_HOST_DEVICE static inline float limited_magnitude(float c, float inverse_step) {
  const float m = (c < 0 ? -c : c) * inverse_step;
  constexpr float kLimit = 1073741760.0f;  // the largest float below 2^30
  return m < kLimit ? m : kLimit;
}
/// The same for coefficients that are integers already.
TRIVELET_HOST_DEVICE static inline std::int32_t limited_magnitude(std::int32_t c, float) {
  constexpr std::int32_t kLimit = (1 << 30) - 1;
  return c > kLimit || c < -kLimit ? kLimit : c < 0 ? -c : c;
}

/// Offset from the known bits of a magnitude to its reconstruction point, in steps: centroid / 256 of the interval that
/// remains when `plane` is the last known bit plane.
TRIVELET_HOST_DEVICE static inline float reconstruction_offset(int centroid, int plane) {
  return static_cast<float>(centroid) / 256.0f * static_cast<float>(std::int64_t{1} << plane);
}
/// The same for integers, which are exact when all planes are known.
TRIVELET_HOST_DEVICE static inline std::int32_t integer_reconstruction_offset(int centroid, int plane) {
  return plane == 0 ? 0 : static_cast<std::int32_t>((static_cast<std::int64_t>(centroid) << plane) >> 8);
}

/// One of the two, by the type of the coefficients.
template <class T>
T reconstruction_offset_of(int centroid, int plane) {
  if constexpr (std::is_same_v<T, float>)
    return reconstruction_offset(centroid, plane);
  else
    return integer_reconstruction_offset(centroid, plane);
}

}  // namespace trivelet
