// The decisions of a block in stream order (VSTC.md, sections 2 and 5), written once for encoding, decoding and
// counting.
//
// An Io has: kDecodes; bool bit(int set, int context, bool value); unsigned plain(int count, unsigned value). A
// decoding Io ignores the given values and returns those it has read; others return the given values. An encoder passes
// the cells of the finished picture; a decoder fills them on the way.
#pragma once

#include <algorithm>
#include <vector>

#include "codec/still/vstc/vstc_model.h"
#include "codec/still/vstc/vstc_picture.h"

namespace trivelet::vstc {

/// Reads tokens (encoder) or appends them (decoder).
struct TokenReader {
  const Token* at;
  Token visit(Token) { return *at++; }
};
struct TokenWriter {
  std::vector<Token>& out;
  Token visit(Token value) {
    out.push_back(value);
    return value;
  }
};

/// The three modes with short codes, from the modes of the cells left (a) and above (b) and, for chroma, of the
/// collocated luma (else -1).
TRIVELET_HOST_DEVICE inline void known_modes_of(int a, int b, int luma, int (&out)[3]) {
  const auto set = [&](int p, int q, int r) {
    out[0] = p;
    out[1] = q;
    out[2] = r;
  };
  if (luma < 0) {
    if (a != b)
      set(a, b, a != 0 && b != 0 ? 0 : a != 1 && b != 1 ? 1 : 26);
    else if (a < 2)
      set(0, 1, 26);
    else
      set(a, 2 + (a + 29) % 32, 2 + (a - 1) % 32);
    return;
  }
  // The first three distinct entries.
  const int list[7] = {luma, a, b, 0, 1, 26, 10};
  int count = 0;
  for (int i = 0; i < 7 && count < 3; ++i) {
    bool fresh = true;
    for (int j = 0; j < count; ++j) fresh = fresh && out[j] != list[i];
    if (fresh) out[count++] = list[i];
  }
}

inline std::array<int, 3> known_modes(const Picture& picture, const Tree& tree, int x, int y, int log2_w, int log2_h) {
  const int w = 1 << log2_w, h = 1 << log2_h;
  const int a = x > 0 ? tree.cell(x - 1, y + h - 1).mode : 1;
  const int b = y > 0 ? tree.cell(x + w - 1, y - 1).mode : 1;
  int mode = -1;
  if (tree.first_plane > 0) {
    const Tree& luma = picture.trees[0];
    const int shift_x = picture.format.log2_chroma_w, shift_y = picture.format.log2_chroma_h;
    mode =
        luma.cell(std::min((x + w / 2) << shift_x, luma.width - 1), std::min((y + h / 2) << shift_y, luma.height - 1))
            .mode;
  }
  int out[3];
  known_modes_of(a, b, mode, out);
  return {out[0], out[1], out[2]};
}

/// The number of neighbours smaller than the block: 0, 1, 2.
inline int smaller_neighbours(const Tree& tree, int x, int y, int log2_w, int log2_h) {
  return (x > 0 && tree.cell(x - 1, y).log2_h < log2_h ? 1 : 0) +
         (y > 0 && tree.cell(x, y - 1).log2_w < log2_w ? 1 : 0);
}

template <class Io>
class Syntax {
 public:
  Syntax(Io& io, Picture& picture) : io_(io), picture_(picture) {}

  /// Selects the set of contexts for the following decisions; block() does so itself.
  void set(int which) { set_ = which; }

  /// All trees of block (bx, by).
  template <class Tokens>
  void block(int bx, int by, Tokens& tokens) {
    for (Tree& tree : picture_.trees) {
      set_ = tree.first_plane == 0 ? 0 : 1;
      this->tree(tree, bx << tree.log2_block, by << tree.log2_block, tree.log2_block, tree.log2_block, tokens);
    }
  }

  template <class Tokens>
  void tree(Tree& tree, int x, int y, int log2_w, int log2_h, Tokens& tokens) {
    if (x >= tree.width || y >= tree.height) return;
    const Halving halving = halving_of(tree, x, y, log2_w, log2_h);
    int split = halving.forced_across ? 2 : halving.forced_down ? 1 : 0;
    if (split == 0 && (halving.across || halving.down)) {
      if constexpr (!Io::kDecodes) split = tokens.visit(0);
      const bool any =
          io_.bit(set_, split_context(log2_w, log2_h, smaller_neighbours(tree, x, y, log2_w, log2_h)), split != 0);
      if (any) {
        bool across = halving.across;
        if (halving.across && halving.down) across = io_.bit(set_, direction_context(log2_w, log2_h), split == 2);
        split = across ? 2 : 1;
      } else {
        split = 0;
      }
      if constexpr (Io::kDecodes) tokens.visit(static_cast<Token>(split));
    }
    if (split == 1) {
      this->tree(tree, x, y, log2_w, log2_h - 1, tokens);
      this->tree(tree, x, y + (1 << (log2_h - 1)), log2_w, log2_h - 1, tokens);
    } else if (split == 2) {
      this->tree(tree, x, y, log2_w - 1, log2_h, tokens);
      this->tree(tree, x + (1 << (log2_w - 1)), y, log2_w - 1, log2_h, tokens);
    } else {
      leaf(tree, x, y, log2_w, log2_h, tokens);
    }
  }

  template <class Tokens>
  void leaf(Tree& tree, int x, int y, int log2_w, int log2_h, Tokens& tokens) {
    int value = 0;
    if constexpr (!Io::kDecodes) value = tokens.visit(0);
    value = mode(known_modes(picture_, tree, x, y, log2_w, log2_h), value);
    if constexpr (Io::kDecodes) {
      tokens.visit(static_cast<Token>(value));
      tree.fill(
          x, y, log2_w, log2_h,
          {1, static_cast<std::uint8_t>(log2_w), static_cast<std::uint8_t>(log2_h), static_cast<std::uint8_t>(value)});
    }
    int before = -1;
    for (int p = 0; p < tree.planes; ++p)
      before = residual(coded_root_context(log2_w + log2_h, before), log2_w, log2_h, false, tokens) ? 1 : 0;
  }

  int mode(std::array<int, 3> known, int value) {
    const auto found = std::find(known.begin(), known.end(), value);
    if (io_.bit(set_, kKnown, found != known.end())) {
      const auto index = found - known.begin();
      if (!io_.bit(set_, kWhich, index > 0)) return known[0];
      return known[io_.bit(set_, kWhich + 1, index > 1) ? 2 : 1];
    }
    std::sort(known.begin(), known.end());
    int index = value;
    for (const int k : known) index -= k < value;
    int node = 1;
    for (int i = 4; i >= 0; --i) node = 2 * node + io_.bit(set_, kModeTree + node, index >> i & 1);
    index = node - 32;
    for (const int k : known) index += k <= index;
    return index;
  }

  /// `sure`: the block is known to be coded, without a symbol. Returns whether it is.
  template <class Tokens>
  bool residual(int coded_context_of, int log2_w, int log2_h, bool sure, Tokens& tokens) {
    int node = 1;
    if constexpr (!Io::kDecodes) node = tokens.visit(0);
    if (!sure && !io_.bit(set_, coded_context_of, node != 0)) {
      if constexpr (Io::kDecodes) tokens.visit(0);
      return false;
    }
    if (log2_w + log2_h > 0) {
      if (io_.bit(set_, divided_context(log2_w, log2_h), node > 1)) {
        bool across = log2_w > 0;
        if (log2_w > 0 && log2_h > 0) across = io_.bit(set_, across_context(log2_w, log2_h), node == 3);
        node = across ? 3 : 2;
      } else {
        node = 1;
      }
    }
    if constexpr (Io::kDecodes) tokens.visit(static_cast<Token>(node));
    if (node == 1) {
      levels(log2_w, log2_h, tokens);
    } else {
      const int kw = log2_w - (node == 3), kh = log2_h - (node == 2);
      const int context = coded_context(kw + kh);
      const bool first = residual(context, kw, kh, false, tokens);
      residual(context, kw, kh, !first, tokens);
    }
    return true;
  }

  template <class Tokens>
  void levels(int log2_w, int log2_h, Tokens& tokens) {
    const int n = 1 << (log2_w + log2_h);
    if constexpr (Io::kDecodes) {
      tokens.out.resize(tokens.out.size() + static_cast<std::size_t>(n));
      code_levels(log2_w, log2_h, tokens.out.data() + tokens.out.size() - n);
    } else {
      code_levels(log2_w, log2_h, const_cast<Token*>(tokens.at));
      tokens.at += n;
    }
  }

  /// Codes the levels of a block in raster order; they must be 0 before decoding.
  void code_levels(int log2_w, int log2_h, Token* level) {
    const int w = 1 << log2_w, h = 1 << log2_h, log2_area = log2_w + log2_h;
    const Scan& scan = scan_of(log2_w, log2_h);
    int last = 0;
    if constexpr (!Io::kDecodes) {
      last = w * h - 1;
      while (level[scan.position[last]] == 0) --last;
    }
    const int lx = last_place(kLastX, log2_w, scan.position[last] & (w - 1));
    const int ly = last_place(kLastY, log2_h, scan.position[last] >> log2_w);
    last = scan.rank[ly * w + lx];
    std::uint32_t around[kMaxSide * kMaxSide];
    std::fill_n(around, w * h, 0u);
    for (int rank = last; rank >= 0; --rank) {
      const int at = scan.position[rank], x = at & (w - 1), y = at >> log2_w;
      const std::uint32_t a = around[at];
      int m = std::abs(level[at]);
      if (rank != last && !io_.bit(set_, significant_context(log2_area, x, y, a), m != 0)) continue;
      const int c = above_context(log2_area, x, y, a);
      if (!io_.bit(set_, kAbove1 + c, m > 1)) {
        m = 1;
      } else if (!io_.bit(set_, kAbove2 + c, m > 2)) {
        m = 2;
      } else {
        m = 3 + rest(rest_order(a), m - 3);
      }
      const bool negative = io_.plain(1, level[at] < 0);
      if constexpr (Io::kDecodes) level[at] = static_cast<Token>(negative ? -m : m);
      const std::uint32_t term = neighbour_term(m);
      if (x > 0) around[at - 1] += term;
      if (x > 1) around[at - 2] += term;
      if (y > 0) around[at - w] += term;
      if (y > 1) around[at - 2 * w] += term;
      if (x > 0 && y > 0) around[at - w - 1] += term;
    }
  }

 private:
  int last_place(int context, int log2_side, int value) {
    const int groups = last_groups(log2_side), wanted = last_group(value);
    int group = 0;
    while (group + 1 < groups && io_.bit(set_, context + log2_side * 11 + group, wanted > group)) ++group;
    const int bits = last_group_bits(group);
    if (bits == 0) return last_group_start(group);
    return last_group_start(group) +
           static_cast<int>(io_.plain(bits, static_cast<unsigned>(value - last_group_start(group))));
  }

  int rest(int order, int value) {
    int base = 0, ones = 0;
    while (ones < kMaxRestOnes && io_.plain(1, value - base >= 1 << order)) {
      base += 1 << order++;
      ++ones;
    }
    const int out = base + static_cast<int>(io_.plain(order, static_cast<unsigned>(value - base)));
    return std::min(out, 32767 - 3);
  }

  Io& io_;
  Picture& picture_;
  int set_ = 0;
};

}  // namespace trivelet::vstc
