// Sums of squared differences, for 8 and 16 bits, with signed and unsigned samples.
#include "codec/base/squared_error.h"

namespace trivelet {

namespace {

template <class S>
std::uint64_t row_error(const std::byte* a, const std::byte* b, int n) {
  const auto* p = reinterpret_cast<const S*>(a);
  const auto* q = reinterpret_cast<const S*>(b);
  std::uint64_t sum = 0;
  for (int x = 0; x < n; ++x) {
    const auto d = static_cast<std::uint32_t>(p[x] - q[x]);  // the square modulo 2^32 is exact, because |d| < 2^16
    sum += d * d;
  }
  return sum;
}

}  // namespace

std::uint64_t squared_row_error(const VolumeView& like, const std::byte* a, const std::byte* b, int n) {
  if (like.bytes_per_sample == 1)
    return like.is_signed ? row_error<std::int8_t>(a, b, n) : row_error<std::uint8_t>(a, b, n);
  return like.is_signed ? row_error<std::int16_t>(a, b, n) : row_error<std::uint16_t>(a, b, n);
}

// Rows are summed in integers; only the sum over the rows is rounded.
double squared_error(const VolumeView& a, const VolumeView& b) {
  double sum = 0;
  for (int f = 0; f < a.shape.frames; ++f)
    for (int y = 0; y < a.shape.height; ++y)
      sum += static_cast<double>(squared_row_error(a, a.row(f, y), b.row(f, y), a.shape.width));
  return sum;
}

}  // namespace trivelet
