// For tests of decoders that do not write zero patches.
#pragma once

#include "codec/transform/zero_patches.h"

namespace trivelet::test {

/// Writes the omitted zeros of a field whose picture has `levels` levels.
template <class T>
void write_zeros(const ZeroPatches& left_out, const Field<T>& field, int levels) {
  for (int t = 0; t < field.shape.frames; ++t)
    for (int l = 0; l < levels; ++l)
      for (int y = 0; y < low_length(field.shape.height, l); ++y)
        left_out.clear_row(t, l, y, low_length(field.shape.width, l), field.row(t, y << l));
}

}  // namespace trivelet::test
