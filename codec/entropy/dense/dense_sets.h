// Codes the sets of a segment in the dense profile: the groups of coefficients that are active at a plane
// (dense_passes.h).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "codec/entropy/dense/dense_segment.h"

namespace trivelet::dense {

template <class Coder>
class SetCoder {
 public:
  explicit SetCoder(const Segment<Coder>& segment) : segment_(segment) {}

  /// Codes the groups that become active at `plane`. Groups active at the plane before stay active.
  void code(int plane) {
    const std::size_t rows = segment_.level.rows();
    std::uint64_t* mask = segment_.level.mask_of(plane);
    if (plane + 1 < segment_.level.top)
      std::copy_n(segment_.level.mask_of(plane + 1), rows, mask);
    else
      std::fill_n(mask, rows, std::uint64_t{0});
    if (segment_.k == 0)
      roots(plane);
    else if (segment_.k == 1)
      sets_below_roots(plane);
    else
      sets(plane);
  }

 private:
  static bool truth(const std::vector<std::uint8_t>& planes, std::size_t group, int plane) {
    if constexpr (Coder::kDecoding)
      return false;
    else
      return planes[group] > plane;
  }
  static unsigned around(const std::uint8_t* p, std::ptrdiff_t stride) {
    return unsigned{p[-1]} + p[1] + p[-stride] + p[stride];
  }

  void activate(Level& l, std::size_t word, int bit, std::ptrdiff_t padded, int plane) {
    l.mask_of(plane)[word] |= std::uint64_t{1} << bit;
    l.active[static_cast<std::size_t>(padded)] = 1;
  }

  // Root groups are all active from the top; with a temporal parent a bit says when they become active.
  void roots(int plane) {
    Level& l = segment_.level;
    const Box& e = l.exists[0];
    if (segment_.family.parent < 0) {
      if (plane + 1 < l.top) return;
      for (int t = 0; t < e.t; ++t)
        for (int y = 0; y < e.y; ++y)
          for (int x = 0; x < e.x; ++x)
            activate(l, l.row(0, t, y) + static_cast<std::size_t>(x / 64), x & 63, l.group_at(0, t, y, x), plane);
      return;
    }
    const Level& up = segment_.block.families[static_cast<std::size_t>(segment_.family.parent)].levels[0];
    if (plane >= up.top) return;
    State* states = segment_.states[0];
    for (int t = 0; t < e.t; ++t) {
      const int ut = segment_.family.parent_frame[static_cast<std::size_t>(t)];
      for (int y = 0; y < e.y; ++y) {
        segment_.coder.row();
        for (int w = 0; w < l.words; ++w) {
          const std::size_t word = l.row(0, t, y) + static_cast<std::size_t>(w);
          const std::size_t up_word = up.row(0, ut, y) + static_cast<std::size_t>(w);
          const std::uint64_t fresh = ~word_before(up, up_word, plane);
          for (std::uint64_t m = up.mask_of(plane)[up_word] & ~l.mask_of(plane)[word] & row_mask(e.x, w); m;
               m &= m - 1) {
            const int bit = std::countr_zero(m);
            const std::ptrdiff_t at = l.group_at(0, t, y, 64 * w + bit);
            const unsigned near = std::min(3u, around(&l.active[static_cast<std::size_t>(at)], l.group_stride));
            if (segment_.coder.code(states[root_context(near, fresh >> bit & 1)],
                                    truth(l.planes, l.group(0, t, y, 64 * w + bit), plane)))
              activate(l, word, bit, at, plane);
          }
        }
      }
    }
  }

  // Level 1: a root group has a child group of its own shape in every orientation.
  void sets_below_roots(int plane) {
    Level& l = segment_.level;
    Level& up = *segment_.parent;
    const int depth = up.arity == 8 ? 2 : 1;
    for (int o = 0; o < l.orientations; ++o) {
      const Box& e = l.exists[o];
      State* states = segment_.states[o];
      for (int t = 0; t < e.t; ++t)
        for (int y = 0; y < e.y; ++y) {
          segment_.coder.row();
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
              if (segment_.coder.code(states[context], truth(l.planes, l.group(o, t, y, x), plane)))
                activate(l, word, bit, at, plane);
            }
          }
        }
    }
  }

  // From level 2 on: "any child group active" per group of the parent level, then which ones.
  void sets(int plane) {
    Level& l = segment_.level;
    Level& up = *segment_.parent;
    const bool octets = up.arity == 8;
    for (int o = 0; o < l.orientations; ++o) {
      const Box& e = l.exists[o];
      if (e.empty()) continue;
      State* states = segment_.states[o];
      const int rows_t = octets ? (e.t + 1) / 2 : e.t;
      for (int t = 0; t < rows_t; ++t)
        for (int y = 0; y < (e.y + 1) / 2; ++y) {
          segment_.coder.row();
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

  // Codes the child groups of one group. Returns true when all are active now.
  bool children(int o, int t, int y, int x, bool fresh, bool octets, int plane, State* states) {
    Level& l = segment_.level;
    Level& up = *segment_.parent;
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
      // A group that has just become active without a significant coefficient must have an active child.
      if (!(fresh && significant == 0)) {
        const unsigned near = around(open, up.group_stride);
        const std::size_t context = any_child_context(std::min(significant, 3u), fresh, near, most > 1);
        if (!segment_.coder.code(states[context], truth(up.planes_below, up.group(o, t, y, x), plane))) return false;
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
        yes = segment_.coder.code(states[context], truth(l.planes, l.group(o, ct, cy, cx), plane));
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

  const Segment<Coder> segment_;
};

}  // namespace trivelet::dense
