// The passes of the dense profile over one segment, written once for both directions: a Coder turns a decision and its
// context into bits or bits into the decision.
//
//   struct Coder {
//     static constexpr bool kDecoding;
//     bool code(State& context, bool truth);               // returns the decision; a decoder ignores `truth`
//     void orientation(int index);                         // before coefficients of another subband
//     void row();                                          // before each row of groups
//     void became_significant(int t, int y, int x, int plane, std::uint32_t magnitude);  // which encoders know
//     void refined(int t, int y, int x, int plane, std::uint32_t before, std::uint32_t known, std::uint32_t magnitude);
//   };
//
// Per plane: (sets, coefficients that become significant, with their signs), then (refinement of those that were
// significant before). Nothing in the first pass of a plane depends on refinement bits of the same plane, neither of
// this segment nor of those it depends on.
#pragma once

#include <algorithm>
#include <bit>
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

template <class Coder>
class SegmentCoder {
 public:
  /// Segment (b, k) of `block`; states[i] points to the kContexts states of orientation index i.
  SegmentCoder(Block& block, int b, int k, State* const* states, Coder& coder)
      : block_(block),
        family_(block.families[static_cast<std::size_t>(b)]),
        level_(family_.levels[static_cast<std::size_t>(k)]),
        k_(k),
        finest_(k > 0 && static_cast<std::size_t>(k) + 1 == family_.levels.size()),
        states_(states),
        coder_(coder) {
    if (k > 0) parent_ = &family_.levels[static_cast<std::size_t>(k) - 1];
  }

  /// The first pass of `plane`.
  void significance_pass(int plane) {
    const std::size_t rows = level_.rows();
    std::uint64_t* mask = level_.mask_of(plane);
    if (plane + 1 < level_.top)
      std::copy_n(level_.mask_of(plane + 1), rows, mask);
    else
      std::fill_n(mask, rows, std::uint64_t{0});
    if (k_ == 0)
      roots(plane);
    else if (k_ == 1)
      sets_below_roots(plane);
    else
      sets(plane);
    for (int o = 0; o < level_.orientations; ++o) coefficients(o, plane);
  }

  void refinement_pass(int plane) {
    if (plane + 1 >= level_.top) return;
    for (int o = 0; o < level_.orientations; ++o) refine(o, plane);
  }

 private:
  static bool truth(const std::vector<std::uint8_t>& planes, std::size_t group, int plane) {
    if constexpr (Coder::kDecoding)
      return false;
    else
      return planes[group] > plane;
  }
  static std::uint64_t word_before(const Level& l, std::size_t at, int plane) {
    return plane + 1 < l.top ? l.mask_of(plane + 1)[at] : 0;
  }
  static unsigned around(const std::uint8_t* p, std::ptrdiff_t stride) {
    return unsigned{p[-1]} + p[1] + p[-stride] + p[stride];
  }

  void activate(Level& l, std::size_t word, int bit, std::ptrdiff_t padded, int plane) {
    l.mask_of(plane)[word] |= std::uint64_t{1} << bit;
    l.active[static_cast<std::size_t>(padded)] = 1;
  }

  // Root groups: all active from the top, or, with a temporal parent, when a bit says so.
  void roots(int plane) {
    Level& l = level_;
    const Box& e = l.exists[0];
    if (family_.parent < 0) {
      if (plane + 1 < l.top) return;
      for (int t = 0; t < e.t; ++t)
        for (int y = 0; y < e.y; ++y)
          for (int x = 0; x < e.x; ++x)
            activate(l, l.row(0, t, y) + static_cast<std::size_t>(x / 64), x & 63, l.group_at(0, t, y, x), plane);
      return;
    }
    const Level& up = block_.families[static_cast<std::size_t>(family_.parent)].levels[0];
    if (plane >= up.top) return;
    State* states = states_[0];
    for (int t = 0; t < e.t; ++t) {
      const int ut = family_.parent_frame[static_cast<std::size_t>(t)];
      for (int y = 0; y < e.y; ++y) {
        coder_.row();
        for (int w = 0; w < l.words; ++w) {
          const std::size_t word = l.row(0, t, y) + static_cast<std::size_t>(w);
          const std::size_t up_word = up.row(0, ut, y) + static_cast<std::size_t>(w);
          const std::uint64_t fresh = ~word_before(up, up_word, plane);
          for (std::uint64_t m = up.mask_of(plane)[up_word] & ~l.mask_of(plane)[word] & row_mask(e.x, w); m;
               m &= m - 1) {
            const int bit = std::countr_zero(m);
            const std::ptrdiff_t at = l.group_at(0, t, y, 64 * w + bit);
            const unsigned near = std::min(3u, around(&l.active[static_cast<std::size_t>(at)], l.group_stride));
            if (coder_.code(states[root_context(near, fresh >> bit & 1)],
                            truth(l.planes, l.group(0, t, y, 64 * w + bit), plane)))
              activate(l, word, bit, at, plane);
          }
        }
      }
    }
  }

  // Level 1: a root group has a child group of its own shape in every orientation.
  void sets_below_roots(int plane) {
    Level& l = level_;
    Level& up = *parent_;
    const int depth = up.arity == 8 ? 2 : 1;
    for (int o = 0; o < l.orientations; ++o) {
      const Box& e = l.exists[o];
      State* states = states_[o];
      for (int t = 0; t < e.t; ++t)
        for (int y = 0; y < e.y; ++y) {
          coder_.row();
          for (int w = 0; w < l.words; ++w) {
            const std::size_t word = l.row(o, t, y) + static_cast<std::size_t>(w);
            const std::size_t up_word = up.row(0, t, y) + static_cast<std::size_t>(w);
            const std::uint64_t fresh = ~word_before(up, up_word, plane);
            for (std::uint64_t m = up.mask_of(plane)[up_word] & ~l.mask_of(plane)[word] & row_mask(e.x, w); m;
                 m &= m - 1) {
              const int bit = std::countr_zero(m);
              const int x = 64 * w + bit;
              const std::ptrdiff_t at = l.group_at(o, t, y, x);
              std::uint32_t most = 0;
              for (int d = 0; d < depth; ++d) {
                const std::uint32_t* q = &up.known[static_cast<std::size_t>(up.at(0, t * depth + d, 2 * y, 2 * x))];
                most = std::max({most, q[0], q[1], q[up.stride], q[up.stride + 1]});
              }
              unsigned others = 0;
              for (int i = 0; i < o; ++i) others += l.active[static_cast<std::size_t>(l.group_at(i, t, y, x))];
              const unsigned near = around(&l.active[static_cast<std::size_t>(at)], l.group_stride);
              const std::size_t context =
                  child_context(stage(most, plane), fresh >> bit & 1, near, std::min(others, 4u), false);
              if (coder_.code(states[context], truth(l.planes, l.group(o, t, y, x), plane)))
                activate(l, word, bit, at, plane);
            }
          }
        }
    }
  }

  // Levels from 2 on: "any child group active" per group of the parent level, then which.
  void sets(int plane) {
    Level& l = level_;
    Level& up = *parent_;
    const bool octets = up.arity == 8;
    for (int o = 0; o < l.orientations; ++o) {
      const Box& e = l.exists[o];
      if (e.empty()) continue;
      State* states = states_[o];
      const int rows_t = octets ? (e.t + 1) / 2 : e.t;
      for (int t = 0; t < rows_t; ++t)
        for (int y = 0; y < (e.y + 1) / 2; ++y) {
          coder_.row();
          for (int w = 0; w < up.words; ++w) {
            const std::size_t word = up.row(o, t, y) + static_cast<std::size_t>(w);
            const std::uint64_t before = word_before(up, word, plane);
            for (std::uint64_t m = up.mask_of(plane)[word] & ~up.done[word] & row_mask((e.x + 1) / 2, w); m;
                 m &= m - 1) {
              const int bit = std::countr_zero(m);
              if (children(o, t, y, 64 * w + bit, !(before >> bit & 1), octets, plane, states))
                up.done[word] |= std::uint64_t{1} << bit;
            }
          }
        }
    }
  }

  // The child groups of one group; true when all are active now.
  bool children(int o, int t, int y, int x, bool fresh, bool octets, int plane, State* states) {
    Level& l = level_;
    Level& up = *parent_;
    const Box& e = l.exists[o];
    const std::uint32_t* q = &up.known[static_cast<std::size_t>(up.at(o, octets ? 2 * t : t, 2 * y, 2 * x))];
    const std::ptrdiff_t s = up.stride;
    std::uint32_t stages[8] = {
        stage(q[0], plane), stage(q[1], plane), stage(q[s], plane), stage(q[s + 1], plane), 0, 0, 0, 0};
    int last = (2 * y + 1 < e.y ? 2 : 0) + (2 * x + 1 < e.x ? 1 : 0);  // slot of the last existing child
    if (octets) {
      for (int j = 0; j < 4; ++j) stages[4 + j] = stage(q[up.frame + (j >> 1) * s + (j & 1)], plane);
      if (2 * t + 1 < e.t) last += 4;
    }
    unsigned significant = 0;
    std::uint32_t most = 0;
    for (int j = 0; j < (octets ? 8 : 4); ++j) {
      significant += stages[j] > 0;
      most = std::max(most, stages[j]);
    }
    std::uint8_t* open = &up.open[static_cast<std::size_t>(up.group_at(o, t, y, x))];
    const bool first = !*open;
    if (first) {
      // A group that has just become active without a significant coefficient has an active child.
      if (!(fresh && significant == 0)) {
        const unsigned near = around(open, up.group_stride);
        const std::size_t context = any_child_context(std::min(significant, 3u), fresh, near, most > 1);
        if (!coder_.code(states[context], truth(up.planes_below, up.group(o, t, y, x), plane))) return false;
      }
      *open = 1;
    }
    bool found = false;
    bool complete = true;
    for (int j = 0; j <= last; ++j) {
      const int ct = octets ? 2 * t + (j >> 2) : t;
      const int cy = 2 * y + (j >> 1 & 1);
      const int cx = 2 * x + (j & 1);
      if (cx >= e.x || cy >= e.y || ct >= e.t) continue;
      const std::ptrdiff_t at = l.group_at(o, ct, cy, cx);
      if (l.active[static_cast<std::size_t>(at)]) {
        found = true;
        continue;
      }
      bool yes = first && !found && j == last;
      if (!yes) {
        const std::uint32_t* c = q + (j >> 2) * up.frame + (j >> 1 & 1) * s + (j & 1);
        const std::uint32_t near_parent =
            stage(c[-1], plane) + stage(c[1], plane) + stage(c[-s], plane) + stage(c[s], plane);
        const unsigned near = around(&l.active[static_cast<std::size_t>(at)], l.group_stride);
        const std::size_t context = child_context(stages[j], first, near, octave_class(near_parent), first && !found);
        yes = coder_.code(states[context], truth(l.planes, l.group(o, ct, cy, cx), plane));
      }
      if (yes) {
        found = true;
        activate(l, l.row(o, ct, cy) + static_cast<std::size_t>(cx >> 6), cx & 63, at, plane);
      } else {
        complete = false;
      }
    }
    return complete;
  }

  /// Encoders: a coefficient of this segment, as in Level::magnitude.
  std::uint32_t truth_at([[maybe_unused]] std::ptrdiff_t at) const {
    if constexpr (Coder::kDecoding)
      return 0;
    else
      return level_.magnitude[static_cast<std::size_t>(at)];
  }

  /// What is known around a coefficient of its own frame.
  static std::uint32_t energy_around(const std::uint32_t* c, std::ptrdiff_t s, NeighbourWeights weight) {
    return weight.horizontal * (c[-1] + c[1]) + weight.vertical * (c[-s] + c[s]) +
           (c[-s - 1] + c[-s + 1] + c[s - 1] + c[s + 1]);
  }
  static std::uint32_t pattern_around(const std::int8_t* g, std::ptrdiff_t s, std::ptrdiff_t frame) {
    const auto direction = [](int n) { return n < 0 ? 0u : n > 0 ? 2u : 1u; };
    return sign_pattern(direction(g[-1] + g[1]), direction(g[-s] + g[s]), direction(g[-frame] + g[frame]));
  }

  // What the quads of a row have in common.
  struct QuadRow {
    const Box& valid;
    State* states;
    NeighbourWeights weight;
    int o, t, y;
    bool second_half,
        last_half;  // of groups that hold two frames; frames that are a group of their own are a last half
    const std::uint32_t* parents;  // of coefficients (t, y, 0) and on; null: there are none
  };

  // The coefficients of quad x of a row that are not significant yet. `fresh`: its group is active since this plane.
  // Inlined: its state lives in the registers of the loop over a row.
  [[gnu::always_inline]] void quad(const QuadRow& row, int x, std::size_t quad_word, bool fresh, int plane) {
    Level& l = level_;
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
        yes = coder_.code(row.states[context], truth_at(origin + at) >> plane & 1);
      }
      if (yes) {
        found = true;
        const std::uint32_t pattern = pattern_around(sq + at, s, l.frame);
        const bool flip = sign_flips(pattern);
        const std::uint32_t truth = truth_at(origin + at);
        const bool negative = coder_.code(row.states[sign_context(pattern)], ((truth >> 31) != 0) != flip) != flip;
        *c = std::uint32_t{1} << plane;
        sq[at] = negative ? -1 : 1;
        coder_.became_significant(row.t, 2 * row.y + (j >> 1), 2 * x + (j & 1), plane, truth & ~kSignBit);
        l.some[quad_word] |= std::uint64_t{1} << (x & 63);
      } else {
        ++insignificant;
      }
    }
    if (insignificant == 0) l.all[quad_word] |= std::uint64_t{1} << (x & 63);
  }

  // Coefficients of active groups that are not significant yet. Not inlined: with the groups' loops around it there are
  // not enough registers.
  [[gnu::noinline]] void coefficients(int o, int plane) {
    Level& l = level_;
    const Box& v = l.valid[o];
    if (v.empty()) return;
    coder_.orientation(o);
    const bool octets = l.arity == 8;
    const int quads_y = (v.y + 1) / 2;
    const int quads_x = (v.x + 1) / 2;
    QuadRow row{v, states_[o], neighbour_weights(k_, o), o, 0, 0, false, false, nullptr};
    for (row.t = 0; row.t < v.t; ++row.t) {
      const int gt = octets ? row.t >> 1 : row.t;
      row.second_half = octets && (row.t & 1);
      row.last_half = !octets || (row.t & 1) || row.t + 1 == v.t;
      for (row.y = 0; row.y < quads_y; ++row.y) {
        coder_.row();
        if (k_ >= 2) row.parents = &parent_->known[static_cast<std::size_t>(parent_->at(o, gt, row.y, 0))];
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

  void refine(int o, int plane) {
    Level& l = level_;
    const Box& v = l.valid[o];
    if (v.empty()) return;
    coder_.orientation(o);
    const NeighbourWeights weight = neighbour_weights(k_, o);
    State* states = states_[o];
    const int quads_y = (v.y + 1) / 2;
    const std::ptrdiff_t s = l.stride;
    const std::uint32_t one = std::uint32_t{1} << plane;
    for (int t = 0; t < v.t; ++t)
      for (int y = 0; y < quads_y; ++y) {
        coder_.row();
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
              if (coder_.code(states[context], truth >> plane & 1)) *c = before | one;
              coder_.refined(t, 2 * y + (j >> 1), 2 * x + (j & 1), plane, before, *c, truth & ~kSignBit);
            }
          }
      }
  }

  Block& block_;
  BlockFamily& family_;
  Level& level_;
  int k_;
  bool finest_;
  State* const* states_;
  Coder& coder_;
  Level* parent_ = nullptr;
};

}  // namespace trivelet::dense
