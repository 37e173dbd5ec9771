// Codes the coefficients of a segment in the dense profile: those that become significant at a plane, their signs, and
// the refinement of those that were significant before (dense_passes.h).
#pragma once

#include <bit>
#include <cstdint>

#include "codec/entropy/dense/dense_segment.h"

namespace trivelet::dense {

template <class Coder>
class CoefficientCoder {
 public:
  explicit CoefficientCoder(const Segment<Coder>& segment)
      : segment_(segment),
        finest_(segment.k > 0 && static_cast<std::size_t>(segment.k) + 1 == segment.family.levels.size()) {}

  /// Codes the coefficients of active groups in an orientation that are not significant yet. Not inlined, because
  /// registers run short together with the loops over groups.
  [[gnu::noinline]] void code_significance(int o, int plane) {
    Level& l = segment_.level;
    const Box& v = l.valid[o];
    if (v.empty()) return;
    segment_.coder.orientation(o);
    const bool octets = l.arity == 8;
    const int quads_y = (v.y + 1) / 2;
    const int quads_x = (v.x + 1) / 2;
    QuadRow row{v, segment_.states[o], neighbour_weights(segment_.k, o), o, 0, 0, false, false, nullptr};
    for (row.t = 0; row.t < v.t; ++row.t) {
      const int gt = octets ? row.t >> 1 : row.t;
      row.second_half = octets && (row.t & 1);
      row.last_half = !octets || (row.t & 1) || row.t + 1 == v.t;
      for (row.y = 0; row.y < quads_y; ++row.y) {
        segment_.coder.row();
        if (segment_.k >= 2)
          row.parents = &segment_.parent->known[static_cast<std::size_t>(segment_.parent->at(o, gt, row.y, 0))];
        for (int w = 0; w < l.words; ++w) {
          const std::size_t word = l.row(o, gt, row.y) + static_cast<std::size_t>(w);
          const std::size_t quad_word = l.quad_row(o, row.t, row.y) + static_cast<std::size_t>(w);
          const std::uint64_t was_active = word_before(l, word, plane);
          std::uint64_t m = l.mask_of(plane)[word] & ~l.all[quad_word] & row_mask(quads_x, w);
          for (; m; m &= m - 1) {
            const int bit = std::countr_zero(m);
            quad(row, 64 * w + bit, quad_word, !(was_active >> bit & 1), plane);
          }
        }
      }
    }
  }

  /// Codes the next bit of the coefficients that were significant before.
  void refine(int o, int plane) {
    Level& l = segment_.level;
    const Box& v = l.valid[o];
    if (v.empty()) return;
    segment_.coder.orientation(o);
    const NeighbourWeights weight = neighbour_weights(segment_.k, o);
    State* states = segment_.states[o];
    const int quads_y = (v.y + 1) / 2;
    const std::ptrdiff_t s = l.stride;
    const std::uint32_t one = std::uint32_t{1} << plane;
    for (int t = 0; t < v.t; ++t)
      for (int y = 0; y < quads_y; ++y) {
        segment_.coder.row();
        for (int w = 0; w < l.words; ++w)
          for (std::uint64_t m = l.some[l.quad_row(o, t, y) + static_cast<std::size_t>(w)]; m; m &= m - 1) {
            const int x = 64 * w + std::countr_zero(m);
            const std::ptrdiff_t origin = l.at(o, t, 2 * y, 2 * x);
            std::uint32_t* const q = &l.known[static_cast<std::size_t>(origin)];
            for (int j = 0; j < 4; ++j) {
              const std::ptrdiff_t at = (j >> 1) * s + (j & 1);
              std::uint32_t* const c = q + at;
              const std::uint32_t value = *c >> plane;
              if (value < 2) continue;
              const std::size_t context = refinement_context(
                  size_class(value), static_cast<std::uint32_t>(energy_class(energy_around(c, s, weight) >> plane)));
              const std::uint32_t truth = truth_at(origin + at);
              const std::uint32_t before = *c;
              if (segment_.coder.code(states[context], truth >> plane & 1)) *c = before | one;
              segment_.coder.refined(t, 2 * y + (j >> 1), 2 * x + (j & 1), plane, before, *c, truth & ~kSignBit);
            }
          }
      }
  }

 private:
  /// Encoders: a coefficient of this segment, in the form of Level::magnitude.
  std::uint32_t truth_at([[maybe_unused]] std::ptrdiff_t at) const {
    if constexpr (Coder::kDecoding)
      return 0;
    else
      return segment_.level.magnitude[static_cast<std::size_t>(at)];
  }

  /// Energy of the known neighbours of a coefficient in its own frame.
  static std::uint32_t energy_around(const std::uint32_t* c, std::ptrdiff_t s, NeighbourWeights weight) {
    return weight.horizontal * (c[-1] + c[1]) + weight.vertical * (c[-s] + c[s]) +
           (c[-s - 1] + c[-s + 1] + c[s - 1] + c[s + 1]);
  }
  static std::uint32_t pattern_around(const std::int8_t* g, std::ptrdiff_t s, std::ptrdiff_t frame) {
    const auto direction = [](int n) { return n < 0 ? 0u : n > 0 ? 2u : 1u; };
    return sign_pattern(direction(g[-1] + g[1]), direction(g[-s] + g[s]), direction(g[-frame] + g[frame]));
  }

  // The common data of the quads of a row.
  struct QuadRow {
    const Box& valid;
    State* states;
    NeighbourWeights weight;
    int o, t, y;
    bool second_half,
        last_half;                 // of groups that hold two frames; a frame that is a group of its own is a last half
    const std::uint32_t* parents;  // of coefficients (t, y, 0) and on; null: none
  };

  // Codes the coefficients of quad x of a row that are not significant yet. `fresh`: the group became active at this
  // plane. Inlined, because its state stays in registers during the loop over a row.
  [[gnu::always_inline]] void quad(const QuadRow& row, int x, std::size_t quad_word, bool fresh, int plane) {
    Level& l = segment_.level;
    const std::ptrdiff_t s = l.stride;
    const int last = (2 * row.y + 1 < row.valid.y ? 2 : 0) + (2 * x + 1 < row.valid.x ? 1 : 0);
    const std::ptrdiff_t origin = l.at(row.o, row.t, 2 * row.y, 2 * x);
    std::uint32_t* const q = &l.known[static_cast<std::size_t>(origin)];
    std::int8_t* const sq = &l.sign[static_cast<std::size_t>(origin)];
    const std::uint32_t parent = row.parents ? stage(row.parents[x], plane) : 0;
    bool found = false;
    if (row.second_half && fresh) {
      const std::uint32_t* f = q - l.frame;
      found = (f[0] | f[1] | f[s] | f[s + 1]) != 0;
    }
    unsigned insignificant = 0;
    for (int j = 0; j <= last; ++j) {
      const std::ptrdiff_t at = (j >> 1) * s + (j & 1);
      if ((j & 1) && 2 * x + 1 >= row.valid.x) continue;
      std::uint32_t* const c = q + at;
      if (*c) continue;
      bool yes = finest_ && fresh && row.last_half && j == last && !found;
      if (!yes) {
        const std::size_t context = significance_context(
            static_cast<std::uint32_t>(energy_class(energy_around(c, s, row.weight) >> plane)),
            octave_class((c[-l.frame] + c[l.frame]) >> plane), parent, place_class(fresh, found, j));
        yes = segment_.coder.code(row.states[context], truth_at(origin + at) >> plane & 1);
      }
      if (yes) {
        found = true;
        const std::uint32_t pattern = pattern_around(sq + at, s, l.frame);
        const bool flip = sign_flips(pattern);
        const std::uint32_t truth = truth_at(origin + at);
        const bool negative =
            segment_.coder.code(row.states[sign_context(pattern)], ((truth >> 31) != 0) != flip) != flip;
        *c = std::uint32_t{1} << plane;
        sq[at] = negative ? -1 : 1;
        segment_.coder.became_significant(row.t, 2 * row.y + (j >> 1), 2 * x + (j & 1), plane, truth & ~kSignBit);
        l.some[quad_word] |= std::uint64_t{1} << (x & 63);
      } else {
        ++insignificant;
      }
    }
    if (insignificant == 0) l.all[quad_word] |= std::uint64_t{1} << (x & 63);
  }

  const Segment<Coder> segment_;
  const bool finest_;
};

}  // namespace trivelet::dense
