// The passes of the dense profile over one segment, written once for both directions: a Coder turns a decision and its
// context into bits or bits into the decision.
//
//   struct Coder {
//     static constexpr bool kDecoding;
//     bool code(State& context, bool truth);               // returns the decision; a decoder ignores `truth`
//     bool negative(int t, int y, int x);                  // encoders only: the sign of a coefficient
//     void orientation(int index);                         // before coefficients of another subband
//     void row();                                          // before each row of groups
//     void became_significant(int t, int y, int x, int plane);
//     void refined(int t, int y, int x, int plane, std::uint32_t before, std::uint32_t known);
//   };
//
// Per plane: (sets, coefficients that become significant, with their signs), then (refinement of those that were
// significant before). Nothing in the first pass of a plane depends on refinement bits of the same plane, neither of
// this segment nor of those it depends on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "codec/dense_block.h"
#include "codec/dense_model.h"

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

inline std::size_t octave_class(std::uint32_t n) { return n == 0 ? 0 : n < 2 ? 1 : n < 4 ? 2 : n < 8 ? 3 : 4; }

/// 0: insignificant after the first pass of the plane, 1: significant since, 2: significant before.
inline std::uint32_t stage(std::uint32_t known, int plane) {
  const std::uint32_t v = known >> plane;
  return v < 2 ? v : 2;
}

/// Sign contexts: signs of horizontal, vertical and temporal neighbours; a pattern and its negative share a context.
struct SignTable {
  std::uint8_t context[27] = {};
  bool flip[27] = {};
  constexpr SignTable() {
    for (int i = 0; i < 27; ++i) {
      flip[i] = i > 13;
      context[i] = static_cast<std::uint8_t>(i > 13 ? 26 - i : i);
    }
  }
};
inline constexpr SignTable kSignTable;

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
    State* states = states_[0] + kRoot;
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
            if (coder_.code(states[near * 2 + (fresh >> bit & 1)],
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
      State* states = states_[o] + kChild;
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
                  (((stage(most, plane) * 2 + (fresh >> bit & 1)) * 5 + near) * 5 + std::min(others, 4u)) * 2;
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
      State* any = states_[o] + kAny;
      State* child = states_[o] + kChild;
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
              if (children(o, t, y, 64 * w + bit, !(before >> bit & 1), octets, plane, any, child))
                up.done[word] |= std::uint64_t{1} << bit;
            }
          }
        }
    }
  }

  // The child groups of one group; true when all are active now.
  bool children(int o, int t, int y, int x, bool fresh, bool octets, int plane, State* any, State* child) {
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
        const std::size_t context = ((std::min(significant, 3u) * 2 + fresh) * 5 + near) * 2 + (most > 1);
        if (!coder_.code(any[context], truth(up.planes_below, up.group(o, t, y, x), plane))) return false;
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
        const std::size_t context =
            (((stages[j] * 2 + first) * 5 + near) * 5 + octave_class(near_parent)) * 2 + (first && !found);
        yes = coder_.code(child[context], truth(l.planes, l.group(o, ct, cy, cx), plane));
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

  struct Weights {
    std::uint32_t horizontal, vertical;
  };
  Weights weights(int o) const {
    const int direction = k_ == 0 ? 0 : (o + 1) & 3;
    return {direction == 2 ? 3u : 2u, direction == 1 ? 3u : 2u};
  }

  // Coefficients of active groups that are not significant yet.
  void coefficients(int o, int plane) {
    Level& l = level_;
    const Box& v = l.valid[o];
    if (v.empty()) return;
    coder_.orientation(o);
    const bool octets = l.arity == 8;
    const Weights weight = weights(o);
    State* states = states_[o] + kSignificance;
    State* signs = states_[o] + kSigns;
    const int quads_y = (v.y + 1) / 2;
    const int quads_x = (v.x + 1) / 2;
    const std::ptrdiff_t s = l.stride;
    const std::uint32_t one = std::uint32_t{1} << plane;
    for (int t = 0; t < v.t; ++t) {
      const int gt = octets ? t >> 1 : t;
      const bool second_half = octets && (t & 1);
      const bool last_half = !octets || (t & 1) || t + 1 == v.t;
      const std::uint32_t* parents =
          k_ >= 2 ? &parent_->known[static_cast<std::size_t>(parent_->at(o, octets ? t >> 1 : t, 0, 0))] : nullptr;
      for (int y = 0; y < quads_y; ++y) {
        coder_.row();
        for (int w = 0; w < l.words; ++w) {
          const std::size_t word = l.row(o, gt, y) + static_cast<std::size_t>(w);
          const std::size_t quad_word = l.quad_row(o, t, y) + static_cast<std::size_t>(w);
          const std::uint64_t was_active = word_before(l, word, plane);
          std::uint64_t m = l.mask_of(plane)[word] & ~l.all[quad_word] & row_mask(quads_x, w);
          for (; m; m &= m - 1) {
            const int bit = std::countr_zero(m);
            const int x = 64 * w + bit;
            const bool fresh = !(was_active >> bit & 1);
            const int last = (2 * y + 1 < v.y ? 2 : 0) + (2 * x + 1 < v.x ? 1 : 0);
            const std::ptrdiff_t origin = l.at(o, t, 2 * y, 2 * x);
            std::uint32_t* const q = &l.known[static_cast<std::size_t>(origin)];
            std::int8_t* const sq = &l.sign[static_cast<std::size_t>(origin)];
            const std::uint32_t parent = parents ? stage(parents[y * parent_->stride + x], plane) : 0;
            bool found = false;
            if (second_half && fresh) {
              const std::uint32_t* f = q - l.frame;
              found = (f[0] | f[1] | f[s] | f[s + 1]) != 0;
            }
            unsigned insignificant = 0;
            for (int j = 0; j <= last; ++j) {
              const std::ptrdiff_t at = (j >> 1) * s + (j & 1);
              if ((j & 1) && 2 * x + 1 >= v.x) continue;
              std::uint32_t* const c = q + at;
              if (*c) continue;
              bool yes = finest_ && fresh && last_half && j == last && !found;
              if (!yes) {
                const std::uint32_t sum = weight.horizontal * (c[-1] + c[1]) + weight.vertical * (c[-s] + c[s]) +
                                          (c[-s - 1] + c[-s + 1] + c[s - 1] + c[s + 1]);
                const std::size_t time = octave_class((c[-l.frame] + c[l.frame]) >> plane);
                const std::size_t place = !fresh ? 0 : found ? 3 : j == 3 ? 2 : 1;
                const std::size_t context =
                    ((energy_class(sum >> plane) * kTimes + time) * kParents + parent) * kPlaces + place;
                bool is = false;
                if constexpr (!Coder::kDecoding) is = l.magnitude[static_cast<std::size_t>(origin + at)] >> plane & 1;
                yes = coder_.code(states[context], is);
              }
              if (yes) {
                found = true;
                const std::int8_t* g = sq + at;
                auto direction = [](int n) { return n < 0 ? 0 : n > 0 ? 2 : 1; };
                const int pattern =
                    direction(g[-1] + g[1]) * 9 + direction(g[-s] + g[s]) * 3 + direction(g[-l.frame] + g[l.frame]);
                const bool flip = kSignTable.flip[pattern];
                bool negative = false;
                if constexpr (!Coder::kDecoding) negative = coder_.negative(t, 2 * y + (j >> 1), 2 * x + (j & 1));
                negative = coder_.code(signs[kSignTable.context[pattern]], negative != flip) != flip;
                *c = one;
                sq[at] = negative ? -1 : 1;
                coder_.became_significant(t, 2 * y + (j >> 1), 2 * x + (j & 1), plane);
                l.some[quad_word] |= std::uint64_t{1} << bit;
              } else {
                ++insignificant;
              }
            }
            if (insignificant == 0) l.all[quad_word] |= std::uint64_t{1} << bit;
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
    const Weights weight = weights(o);
    State* states = states_[o] + kRefinement;
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
              const std::uint32_t sum = weight.horizontal * (c[-1] + c[1]) + weight.vertical * (c[-s] + c[s]) +
                                        (c[-s - 1] + c[-s + 1] + c[s - 1] + c[s + 1]);
              const std::size_t size = value < 4 ? 0 : value < 8 ? 1 : 2;
              bool is = false;
              if constexpr (!Coder::kDecoding) is = l.magnitude[static_cast<std::size_t>(origin + at)] >> plane & 1;
              const std::uint32_t before = *c;
              if (coder_.code(states[size * kEnergies + energy_class(sum >> plane)], is)) *c = before | one;
              coder_.refined(t, 2 * y + (j >> 1), 2 * x + (j & 1), plane, before, *c);
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
