// Coefficients in memory of their own, for the tests of coders of blocks.
#pragma once

#include <cstddef>
#include <vector>

#include "codec/transform/subband.h"

namespace trivelet::test {

template <class T>
struct Volume {
  std::vector<T> memory;
  Field<T> field;
  explicit Volume(const Shape& s, T value = 0) : memory(s.samples(), value) {
    field.data = memory.data();
    field.shape = s;
    field.row_stride = s.width;
    field.frame_stride = static_cast<std::ptrdiff_t>(s.width) * s.height;
  }
};

}  // namespace trivelet::test
