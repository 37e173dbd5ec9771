// References, cells and reconstruction of VSTC pictures (VSTC.md, sections 3 and 4).
#include "codec/still/vstc/vstc_picture.h"

#include <algorithm>
#include <cstring>

namespace trivelet::vstc {

void Tree::fill(int x, int y, int log2_w, int log2_h, Cell value) {
  for (int cy = y; cy < y + (1 << log2_h); cy += 4)
    for (int cx = x; cx < x + (1 << log2_w); cx += 4) cell(cx, cy) = value;
}

Picture::Picture(int width, int height, const PixelFormat& format_in, int log2_block_in)
    : format(format_in),
      log2_block(log2_block_in),
      blocks_wide((width + (1 << log2_block) - 1) >> log2_block),
      blocks_high((height + (1 << log2_block) - 1) >> log2_block) {
  planes.resize(static_cast<std::size_t>(format.components()));
  for (int c = 0; c < format.components(); ++c) {
    Plane& p = planes[static_cast<std::size_t>(c)];
    p.width = format.component_width(width, c);
    p.height = format.component_height(height, c);
    p.coded_width = (p.width + 3) & ~3;
    p.coded_height = (p.height + 3) & ~3;
    p.samples.resize(checked_mul(static_cast<std::size_t>(p.coded_width), static_cast<std::size_t>(p.coded_height)));
  }
  trees.resize(format.components() > 1 ? 2 : 1);
  for (std::size_t t = 0; t < trees.size(); ++t) {
    Tree& tree = trees[t];
    tree.first_plane = static_cast<int>(t);
    tree.planes = t == 0 ? 1 : 2;
    tree.log2_block = log2_block - (t == 0 ? 0 : format.log2_chroma_w);
    tree.width = planes[t].coded_width;
    tree.height = planes[t].coded_height;
    tree.cells_wide = tree.width / 4;
    tree.cells.resize(static_cast<std::size_t>(tree.cells_wide) * static_cast<std::size_t>(tree.height / 4));
  }
}

still::Image Picture::image(int width, int height) const {
  still::Image out;
  out.width = width;
  out.height = height;
  out.format = format;
  out.allocate();
  const bool narrow = format.bytes_per_sample() == 1;
  std::byte* to = out.samples.data();
  for (const Plane& p : planes)
    for (int y = 0; y < p.height; ++y) {
      const Sample* row = p.at(0, y);
      if (narrow) {
        for (int x = 0; x < p.width; ++x) to[x] = static_cast<std::byte>(row[x]);
        to += p.width;
      } else {
        std::memcpy(to, row, 2 * static_cast<std::size_t>(p.width));
        to += 2 * p.width;
      }
    }
  return out;
}

void gather_references(const Plane& plane, const Tree& tree, int bits, int x, int y, int log2_w, int log2_h,
                       References& plain, References& smooth) {
  const int w = 1 << log2_w, h = 1 << log2_h, side = w + h;
  Sample* r = plain.corner;
  const auto available = [&](int cx, int cy) {
    return cx >= 0 && cy >= 0 && cx < tree.width && cy < tree.height && tree.cell(cx, cy).coded;
  };
  // From bottom left upwards, then to the right; `known` is the last available sample.
  int known = -1;
  int missing_from = -side;                    // first index without a value
  const auto supply = [&](int from, int to) {  // indices [from, to) now have values
    if (known < 0)
      for (int i = missing_from; i < from; ++i) r[i] = r[from];
    known = r[to];
    missing_from = to + 1;
  };
  const auto lack = [&](int from, int to) {
    if (known >= 0)
      for (int i = from; i <= to; ++i) r[i] = static_cast<Sample>(known);
  };
  for (int cy = side - 4; cy >= 0; cy -= 4) {
    const int from = -(cy + 4), to = -(cy + 1);
    if (available(x - 1, y + cy)) {
      const Sample* p = plane.at(x - 1, y + cy);
      for (int i = 0; i < 4; ++i) r[-1 - cy - i] = p[static_cast<std::ptrdiff_t>(i) * plane.coded_width];
      supply(from, to);
    } else {
      lack(from, to);
    }
  }
  if (available(x - 1, y - 1)) {
    r[0] = *plane.at(x - 1, y - 1);
    supply(0, 0);
  } else {
    lack(0, 0);
  }
  for (int cx = 0; cx < side; cx += 4) {
    if (available(x + cx, y - 1)) {
      std::memcpy(r + 1 + cx, plane.at(x + cx, y - 1), 4 * sizeof(Sample));
      supply(1 + cx, 4 + cx);
    } else {
      lack(1 + cx, 4 + cx);
    }
  }
  if (known < 0) std::fill(r - side, r + side + 1, static_cast<Sample>(1 << (bits - 1)));

  Sample* s = smooth.corner;
  s[-side] = r[-side];
  s[side] = r[side];
  for (int i = 1 - side; i < side; ++i) s[i] = static_cast<Sample>((r[i - 1] + 2 * r[i] + r[i + 1] + 2) >> 2);
}

const Token* Reconstructor::tree(Tree& tree, int x, int y, int log2_w, int log2_h, const Token* tokens) {
  if (x >= tree.width || y >= tree.height) return tokens;
  const Halving halving = halving_of(tree, x, y, log2_w, log2_h);
  const int split = halving.forced_across            ? 2
                    : halving.forced_down            ? 1
                    : halving.across || halving.down ? *tokens++
                                                     : 0;
  if (split == 1) {
    tokens = this->tree(tree, x, y, log2_w, log2_h - 1, tokens);
    return this->tree(tree, x, y + (1 << (log2_h - 1)), log2_w, log2_h - 1, tokens);
  }
  if (split == 2) {
    tokens = this->tree(tree, x, y, log2_w - 1, log2_h, tokens);
    return this->tree(tree, x + (1 << (log2_w - 1)), y, log2_w - 1, log2_h, tokens);
  }
  return leaf(tree, x, y, log2_w, log2_h, tokens);
}

const Token* Reconstructor::leaf(Tree& tree, int x, int y, int log2_w, int log2_h, const Token* tokens) {
  const int w = 1 << log2_w, h = 1 << log2_h, mode = *tokens++;
  const int most = (1 << picture_.format.bits) - 1;
  stride_ = w;
  const bool smoothed = may_smooth(picture_, tree) && smooths(mode, log2_w, log2_h);
  for (int p = 0; p < tree.planes; ++p) {
    Plane& plane = picture_.planes[static_cast<std::size_t>(tree.first_plane + p)];
    References plain, smooth;
    gather_references(plane, tree, picture_.format.bits, x, y, log2_w, log2_h, plain, smooth);
    kernels_.predict((smoothed ? smooth : plain).corner, mode, log2_w, log2_h, picture_.format.bits,
                     filters_edges(tree, log2_w, log2_h), predicted_, w);
    const bool coded = *tokens != 0;
    tokens = residual(mode, 0, 0, log2_w, log2_h, tokens);
    for (int j = 0; j < h; ++j) {
      Sample* row = plane.at(x, y + j);
      for (int i = 0; i < w; ++i) {
        const int v = predicted_[j * w + i] + (coded ? residual_[j * w + i] : 0);
        row[i] = static_cast<Sample>(std::clamp(v, 0, most));
      }
    }
  }
  tree.fill(x, y, log2_w, log2_h,
            {1, static_cast<std::uint8_t>(log2_w), static_cast<std::uint8_t>(log2_h), static_cast<std::uint8_t>(mode)});
  return tokens;
}

const Token* Reconstructor::residual(int mode, int x, int y, int log2_w, int log2_h, const Token* tokens) {
  const int w = 1 << log2_w, h = 1 << log2_h;
  switch (*tokens++) {
    case 0:
      for (int j = 0; j < h; ++j) std::fill_n(residual_ + (y + j) * stride_ + x, w, std::int16_t{0});
      return tokens;
    case 2:
      tokens = residual(mode, x, y, log2_w, log2_h - 1, tokens);
      return residual(mode, x, y + h / 2, log2_w, log2_h - 1, tokens);
    case 3:
      tokens = residual(mode, x, y, log2_w - 1, log2_h, tokens);
      return residual(mode, x + w / 2, y, log2_w - 1, log2_h, tokens);
    default: break;
  }
  std::int16_t values[kMaxSide * kMaxSide];
  for (int i = 0; i < w * h; ++i)
    values[i] = static_cast<std::int16_t>(tokens[i] == 0 ? 0 : dequantiser_.value(tokens[i], log2_w + log2_h));
  kernels_.inverse(values, log2_w, log2_h, horizontal_matrix(mode, x, log2_w), vertical_matrix(mode, y, log2_h),
                   picture_.format.bits, residual_ + y * stride_ + x, stride_);
  return tokens + w * h;
}

}  // namespace trivelet::vstc
