#include "codec/squared_error.h"

#include <cstdint>

namespace trivelet {

namespace {

// Rows are summed in integers, so that only the sum over rows rounds.
template <class S>
double sum_of(const VolumeView& a, const VolumeView& b) {
  double sum = 0;
  for (int f = 0; f < a.shape.frames; ++f)
    for (int y = 0; y < a.shape.height; ++y) {
      const auto* p = reinterpret_cast<const S*>(a.row(f, y));
      const auto* q = reinterpret_cast<const S*>(b.row(f, y));
      std::uint64_t row = 0;
      for (int x = 0; x < a.shape.width; ++x) {
        const auto d = static_cast<std::uint32_t>(p[x] - q[x]);  // its square modulo 2^32 is exact: |d| < 2^16
        row += d * d;
      }
      sum += static_cast<double>(row);
    }
  return sum;
}

}  // namespace

double squared_error(const VolumeView& a, const VolumeView& b) {
  if (a.bytes_per_sample == 1) return a.is_signed ? sum_of<std::int8_t>(a, b) : sum_of<std::uint8_t>(a, b);
  return a.is_signed ? sum_of<std::int16_t>(a, b) : sum_of<std::uint16_t>(a, b);
}

}  // namespace trivelet
