// Pictures for the tests of still codecs, on the CPU and on a GPU.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "trivelet/still.h"

namespace trivelet::test {

/// A picture with two waves in every component.
inline still::Image picture(int width, int height, ColourModel model, int bits, int subsampled) {
  still::Image image;
  image.width = width;
  image.height = height;
  image.format.model = model;
  image.format.bits = bits;
  image.format.log2_chroma_w = image.format.log2_chroma_h = subsampled;
  image.allocate();
  for (int c = 0; c < image.components(); ++c)
    for (int y = 0; y < image.format.component_height(height, c); ++y)
      for (int x = 0; x < image.format.component_width(width, c); ++x) {
        const double v = 0.5 + 0.3 * std::sin(0.07 * x + 0.11 * y + c) + 0.1 * std::sin(0.9 * x - 0.5 * y);
        image.set_sample(c, x, y, static_cast<int>(v * ((1 << bits) - 1)));
      }
  return image;
}

/// A wave with noise, in 0..1.
inline std::vector<double> texture(int width, int height) {
  std::vector<double> v;
  std::uint32_t state = 11;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      state = state * 1664525U + 1013904223U;
      v.push_back(0.5 + 0.3 * std::sin(0.1 * x + 0.07 * y) + static_cast<double>(state >> 24) / 1280);
    }
  return v;
}

}  // namespace trivelet::test
