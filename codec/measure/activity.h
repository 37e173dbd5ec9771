// Estimates the bits of samples from their differences along rows and time, in some rows of some frames.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "trivelet/types.h"

namespace trivelet {

/// In the first frame differences are along rows alone: what does not change costs bits only once, but in pictures that
/// stand it costs most.
class Activity {
 public:
  Activity(const VolumeView& v, int bits) : view_(v), unit_(std::exp2(bits - 7)) {
    for (std::size_t d = 0; d < bits_of_.size(); ++d) bits_of_[d] = difference_bits(static_cast<int>(d));
  }
  double window_bits(int y0, int x0, int height, int width) const {
    std::uint64_t bits = 0;
    if (view_.bytes_per_sample == 1)
      bits = view_.is_signed ? sum<std::int8_t>(y0, x0, height, width) : sum<std::uint8_t>(y0, x0, height, width);
    else
      bits = view_.is_signed ? sum<std::int16_t>(y0, x0, height, width) : sum<std::uint16_t>(y0, x0, height, width);
    return static_cast<double>(bits) / kBit;
  }

 private:
  static constexpr double kBit = 1 << 16;  // sums of whole numbers do not wait for each other as those of reals do

  std::uint32_t difference_bits(int d) const { return static_cast<std::uint32_t>(kBit * std::log2(1 + d / unit_)); }

  template <class Sample>
  std::uint64_t sum(int y0, int x0, int height, int width) const {
    constexpr int kFrames = 4;
    constexpr int kRows = 8;  // of a window
    const int step = std::max(1, height / kRows);
    std::uint64_t sum = 0;
    for (int t = 0; t < view_.shape.frames; t += kFrames)
      for (int y = y0; y < y0 + height; y += step) {
        const auto* now = reinterpret_cast<const Sample*>(view_.row(t, y)) + x0;
        const bool is_alone = t == 0 || t + 1 == view_.shape.frames;
        const auto* next = is_alone ? nullptr : reinterpret_cast<const Sample*>(view_.row(t + 1, y)) + x0;
        for (int x = 0; x + 1 < width; ++x) {
          int d = now[x] - now[x + 1];
          if (next) d -= next[x] - next[x + 1];
          const auto size = static_cast<std::size_t>(std::abs(d));
          sum += size < bits_of_.size() ? bits_of_[size] : difference_bits(std::abs(d));
        }
      }
    return sum;
  }

  const VolumeView view_;
  const double unit_;
  std::array<std::uint32_t, 1024> bits_of_{};  // by the difference; larger ones are rare
};

}  // namespace trivelet
