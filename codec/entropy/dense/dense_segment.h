// The data that the passes over a segment of the dense profile share: the segment, its parent and its coder.
#pragma once

#include <cstdint>

#include "codec/entropy/dense/dense_block.h"
#include "codec/entropy/dense/dense_model.h"

namespace trivelet::dense {

struct EnergyTable {
  std::uint8_t of[129] = {};
  constexpr EnergyTable() {
    constexpr std::uint8_t first[32] = {0, 1,  2,  3,  4,  5,  6,  6,  7,  7,  8,  8,  8,  9,  9,  9,
                                        9, 10, 10, 10, 10, 10, 10, 10, 10, 11, 11, 11, 11, 11, 11, 11};
    for (int i = 0; i < 128; ++i) of[i] = i < 32 ? first[i] : i < 40 ? 11 : i < 64 ? 12 : 13;
    of[128] = 14;
  }
};
inline constexpr EnergyTable kEnergyTable;
inline std::size_t energy_class(std::uint32_t sum) { return kEnergyTable.of[sum < 128 ? sum : 128]; }

inline std::uint32_t stage(std::uint32_t known, int plane) { return stage(known >> plane); }

/// Bits [0, n) of a row from word `w` on.
inline std::uint64_t row_mask(int n, int w) {
  const int bits = n - 64 * w;
  return bits >= 64 ? ~std::uint64_t{0} : bits <= 0 ? 0 : (std::uint64_t{1} << bits) - 1;
}

/// Word `at` of a level's mask as it was before `plane`.
inline std::uint64_t word_before(const Level& l, std::size_t at, int plane) {
  return plane + 1 < l.top ? l.mask_of(plane + 1)[at] : 0;
}

/// Segment (b, k) of a block, with its coder.
template <class Coder>
struct Segment {
  Segment(Block& whole, int b, int segment, State* const* all_states, Coder& with)
      : block(whole),
        family(whole.families[static_cast<std::size_t>(b)]),
        level(family.levels[static_cast<std::size_t>(segment)]),
        parent(segment > 0 ? &family.levels[static_cast<std::size_t>(segment) - 1] : nullptr),
        k(segment),
        states(all_states),
        coder(with) {}

  Block& block;
  BlockFamily& family;
  Level& level;
  Level* const parent;  ///< null for k = 0
  const int k;
  State* const* const states;  ///< states[i] points to the kContexts states of orientation index i
  Coder& coder;
};

}  // namespace trivelet::dense
