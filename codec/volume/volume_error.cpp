// Error statistics between two volumes (compare_scalars() of volume.h).

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

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

/// The distance of two 64-bit integers, which a double cannot represent.
double distance_of_wide(const std::byte* a, bool big_a, const std::byte* b, bool big_b, bool is_signed) {
  const auto key = [is_signed](const std::byte* stored, bool big) {  // ascending with the value
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < 8; ++i) bits = bits << 8 | std::to_integer<std::uint64_t>(stored[big ? i : 7 - i]);
    return is_signed ? bits ^ std::uint64_t{1} << 63 : bits;
  };
  const std::uint64_t x = key(a, big_a);
  const std::uint64_t y = key(b, big_b);
  return static_cast<double>(x > y ? x - y : y - x);
}

/// Compares integers T of 8 or 16 bits in the same format. The sums of a piece are exact integers, so the loops
/// vectorise.
template <class T>
VolumeError compare_small(const std::byte* a, const std::byte* b, bool swap, std::size_t scalars) {
  constexpr std::size_t kPiece = 4096;
  const auto value = [swap](const std::byte* stored) {
    std::make_unsigned_t<T> bits;
    std::memcpy(&bits, stored, sizeof bits);
    if (sizeof bits == 2 && swap) bits = static_cast<decltype(bits)>(bits << 8 | bits >> 8);
    return static_cast<int>(static_cast<T>(bits));
  };
  VolumeError e;
  e.scalars = scalars;
  int least = std::numeric_limits<int>::max(), largest = std::numeric_limits<int>::min(), most = 0;
  for (std::size_t begin = 0; begin < scalars; begin += kPiece) {
    const std::size_t end = std::min(scalars, begin + kPiece);
    std::uint64_t squared = 0;
    std::uint32_t different = 0;
    for (std::size_t i = begin; i < end; ++i) {
      const int x = value(a + i * sizeof(T)), y = value(b + i * sizeof(T));
      const int d = x > y ? x - y : y - x;
      least = std::min(least, x);
      largest = std::max(largest, x);
      most = std::max(most, d);
      different += d != 0 ? 1 : 0;
      squared += static_cast<std::uint32_t>(d) * static_cast<std::uint32_t>(d);  // d^2 < 2^32
    }
    e.squared += static_cast<double>(squared);
    e.different += different;
  }
  if (scalars > 0) e.least = least, e.largest = largest;
  e.max = most;
  return e;
}

}  // namespace

VolumeError compare_scalars(const std::byte* a, const VoxelFormat& fa, const std::byte* b, const VoxelFormat& fb,
                            std::size_t scalars) {
  if (fa == fb && bytes_of(fa.type) <= 2) {
    const bool swap = fa.big_endian != (std::endian::native == std::endian::big);
    switch (fa.type) {
      case VoxelType::kU8: return compare_small<std::uint8_t>(a, b, swap, scalars);
      case VoxelType::kI8: return compare_small<std::int8_t>(a, b, swap, scalars);
      case VoxelType::kU16: return compare_small<std::uint16_t>(a, b, swap, scalars);
      default: return compare_small<std::int16_t>(a, b, swap, scalars);
    }
  }
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
    if (d == 0) continue;  // +0 and -0
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
