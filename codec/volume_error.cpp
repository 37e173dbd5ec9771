// How far the scalars of one volume are from those of another (volume.h).

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "trivelet/volume.h"

namespace trivelet {

void VolumeError::add(const VolumeError& e) {
  if (e.scalars == 0) return;
  least = scalars == 0 ? e.least : std::min(least, e.least);
  largest = scalars == 0 ? e.largest : std::max(largest, e.largest);
  scalars += e.scalars;
  different += e.different;
  squared += e.squared;
  max = std::max(max, e.max);
}

double VolumeError::psnr() const {
  if (squared == 0 && max == 0) return std::numeric_limits<double>::infinity();
  const double peak = largest - least;
  return 10 * std::log10(peak * peak * static_cast<double>(scalars) / squared);
}

namespace {

/// Of two 64-bit integers, whose values a double does not hold.
double distance_of_wide(const std::byte* a, bool big_a, const std::byte* b, bool big_b, bool is_signed) {
  const auto key = [is_signed](const std::byte* stored, bool big) {  // in the order of the values
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | std::to_integer<std::uint64_t>(stored[big ? i : 7 - i]);
    return is_signed ? bits ^ std::uint64_t{1} << 63 : bits;
  };
  const std::uint64_t x = key(a, big_a);
  const std::uint64_t y = key(b, big_b);
  return static_cast<double>(x > y ? x - y : y - x);
}

}  // namespace

VolumeError compare_scalars(const std::byte* a, const VoxelFormat& fa, const std::byte* b, const VoxelFormat& fb,
                            std::size_t scalars) {
  VolumeError e;
  e.scalars = scalars;
  const auto step_a = static_cast<std::size_t>(bytes_of(fa.type));
  const auto step_b = static_cast<std::size_t>(bytes_of(fb.type));
  const bool same_format = fa == fb;
  const bool wide = fa.type == fb.type && step_a == 8 && !is_real(fa.type);
  bool first = true;
  for (std::size_t i = 0; i < scalars; ++i, a += step_a, b += step_b) {
    const double va = scalar_value(a, fa.type, fa.big_endian);
    if (std::isfinite(va)) {
      e.least = first ? va : std::min(e.least, va);
      e.largest = first ? va : std::max(e.largest, va);
      first = false;
    }
    if (same_format && std::memcmp(a, b, step_a) == 0) continue;
    const double vb = scalar_value(b, fb.type, fb.big_endian);
    const bool alike = va == vb && !same_format;
    if (alike && !wide) continue;
    const double d =
        wide ? distance_of_wide(a, fa.big_endian, b, fb.big_endian, is_signed(fa.type)) : std::fabs(va - vb);
    if (alike && d == 0) continue;
    ++e.different;
    if (d == 0) continue;  // the two zeros of floats
    if (std::isnan(d)) {
      e.max = e.squared = std::numeric_limits<double>::infinity();
    } else {
      e.max = std::max(e.max, d);
      e.squared += d * d;
    }
  }
  return e;
}

}  // namespace trivelet
