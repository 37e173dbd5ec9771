// The sequential 3D 9/7 transform by convolution. The header names the paper.

#include "apps/bench/papers_dwt3d.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include "apps/bench/papers_filters.h"
#include "trivelet/error.h"

namespace trivelet::papers_dwt3d {

namespace {

/// Both filters along lines; the results go to another place.
class Filter {
 public:
  explicit Filter(int longest) : padded_(static_cast<std::size_t>(longest) + 8) {}

  /// A line of n samples.
  void line(const float* from, float* to, int n, std::ptrdiff_t stride) {
    float* p = padded_.data() + 4;
    for (int i = -4; i < n + 4; ++i) p[i] = from[papers::mirrored(i, n) * stride];
    for (int i = 0; i < n / 2; ++i) {
      float low = 0, high = 0;
      for (int m = 0; m < 9; ++m) low += taps_.low[m] * p[2 * i - 4 + m];
      for (int m = 0; m < 7; ++m) high += taps_.high[m] * p[2 * i - 2 + m];
      to[i * stride] = low;
      to[(n / 2 + i) * stride] = high;
    }
  }

  /// `width` lines beside each other.
  void rows(const float* from, float* to, int n, std::ptrdiff_t stride, int width) const {
    for (int i = 0; i < n / 2; ++i) {
      float* low = to + i * stride;
      float* high = to + (n / 2 + i) * stride;
      const float* l[9];
      const float* h[7];
      for (int m = 0; m < 9; ++m) l[m] = from + papers::mirrored(2 * i - 4 + m, n) * stride;
      for (int m = 0; m < 7; ++m) h[m] = from + papers::mirrored(2 * i - 2 + m, n) * stride;
      for (int x = 0; x < width; ++x) {
        float u = 0, v = 0;
        for (int m = 0; m < 9; ++m) u += taps_.low[m] * l[m][x];
        for (int m = 0; m < 7; ++m) v += taps_.high[m] * h[m][x];
        low[x] = u;
        high[x] = v;
      }
    }
  }

  /// The same in either order.
  void lines(Order order, const float* from, float* to, int n, std::ptrdiff_t stride, int width) {
    if (order == Order::kRows) return rows(from, to, n, stride, width);
    for (int x = 0; x < width; ++x) line(from + x, to + x, n, stride);
  }

 private:
  papers::Taps<float> taps_ = papers::make_taps<float>();
  std::vector<float> padded_;
};

}  // namespace

void transform(std::vector<float>& data, std::vector<float>& scratch, const Shape& s, int levels, Order order) {
  const auto divides = [&](int extent) { return extent >= 1 << levels && extent % (1 << levels) == 0; };
  require(levels >= 1 && levels <= 8 && divides(s.frames) && divides(s.height) && divides(s.width),
          ErrorKind::kBadArgument,
          "extents of " + std::to_string(s.width) + "x" + std::to_string(s.height) + "x" + std::to_string(s.frames) +
              " are not divisible by 2^" + std::to_string(levels));
  scratch.resize(data.size());
  Filter filter(std::max({s.width, s.height, s.frames}));
  const std::ptrdiff_t pitch = s.width, frame = static_cast<std::ptrdiff_t>(s.width) * s.height;
  float* const a = data.data();
  float* const b = scratch.data();
  for (int level = 0; level < levels; ++level) {
    const int w = s.width >> level, h = s.height >> level, n = s.frames >> level;
    for (int f = 0; f < n; ++f)
      for (int y = 0; y < h; ++y) filter.line(a + f * frame + y * pitch, b + f * frame + y * pitch, w, 1);
    for (int f = 0; f < n; ++f) filter.lines(order, b + f * frame, a + f * frame, h, pitch, w);
    for (int y = 0; y < h; ++y) filter.lines(order, a + y * pitch, b + y * pitch, n, frame, w);
    for (int f = 0; f < n; ++f)
      for (int y = 0; y < h; ++y) std::copy_n(b + f * frame + y * pitch, w, a + f * frame + y * pitch);
  }
}

}  // namespace trivelet::papers_dwt3d
