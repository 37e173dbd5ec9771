// Reconstruction of a block's coefficients from what its decoder knows, as those that are not zero alone: of each row a
// bit for each coefficient, in words of 32, then of all rows the coefficients that are not zero (patch_store.h). A film
// at a usual rate has few of them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/entropy/dense/dense_block.h"

namespace trivelet {

struct Subband;

/// Gets the patches of a block. T: float or std::int32_t.
template <class T>
class PackedSink {
 public:
  virtual ~PackedSink() = default;
  /// A patch of one frame of a subband. Patches of detail subbands that are zero are not given.
  virtual void add(const Subband& band, int frame_of_band, int by, int bx, const std::uint32_t* packed,
                   std::size_t words) = 0;
};

namespace dense {

/// How the known bits of a magnitude become a coefficient.
template <class T>
struct Restoring {
  T offset[2] = {};  // in steps; the second one of magnitudes from `older` on
  std::uint32_t older = 0xffffffffu;
  T step = 1;
  T value(std::uint32_t known, std::int8_t sign) const {
    const T v = (static_cast<T>(static_cast<std::int32_t>(known)) + offset[known >= older]) * step;
    return sign == 0 ? T{0} : sign < 0 ? -v : v;
  }
};

/// Packs frame t of a patch. `level`: null if nothing of it is known.
template <class T>
void pack_patch(const Level* level, int o, int t, int height, int width, const Restoring<T>& how,
                std::vector<std::uint32_t>& out) {
  const std::size_t words = (static_cast<std::size_t>(width) + 31) / 32;
  out.assign(words * static_cast<std::size_t>(height), 0);
  for (int y = 0; level && y < height; ++y) {
    const std::ptrdiff_t at = level->at(o, t, y, 0);
    const std::size_t row = static_cast<std::size_t>(y) * words, quads = level->quad_row(o, t, y / 2);
    for (int w = 0; w < level->words; ++w)
      for (std::uint64_t m = level->some[quads + static_cast<std::size_t>(w)]; m != 0; m &= m - 1) {
        const int first = 2 * (64 * w + std::countr_zero(m));
        for (int x = first; x < first + 2 && x < width; ++x) {
          const auto i = static_cast<std::size_t>(at + x);
          if (level->sign[i] == 0) continue;
          out[row + static_cast<std::size_t>(x / 32)] |= std::uint32_t{1} << (x % 32);
          out.push_back(std::bit_cast<std::uint32_t>(how.value(level->known[i], level->sign[i])));
        }
      }
  }
}

}  // namespace dense
}  // namespace trivelet
