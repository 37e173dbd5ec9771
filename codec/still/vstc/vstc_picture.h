// The state of a picture during coding: reconstructed planes, cells of 4x4 samples that describe the covering blocks,
// the references of a block, and reconstruction from levels. Shared by encoder and decoder.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/still/vstc/vstc_kernels.h"
#include "trivelet/still.h"

namespace trivelet::vstc {

using Sample = std::uint16_t;
/// Decisions of a block in stream order, as small numbers: split (0 none, 1 upper and lower, 2 left and right), mode,
/// nodes of the residual tree (0 not coded, 1 levels follow, 2 upper and lower, 3 left and right), levels in raster
/// order. Splits without a symbol do not appear.
using Token = std::int16_t;

struct Plane {
  int width = 0;  ///< width of the picture
  int height = 0;
  int coded_width = 0;  ///< rounded up to a multiple of 4
  int coded_height = 0;
  std::vector<Sample> samples;  ///< coded_width x coded_height

  Sample* at(int x, int y) { return samples.data() + static_cast<std::ptrdiff_t>(y) * coded_width + x; }
  const Sample* at(int x, int y) const { return samples.data() + static_cast<std::ptrdiff_t>(y) * coded_width + x; }
};

struct Cell {
  std::uint8_t coded = 0;
  std::uint8_t log2_w = 0;
  std::uint8_t log2_h = 0;
  std::uint8_t mode = 1;
};

/// One of the two prediction trees of a block: luma, or both chroma planes.
struct Tree {
  int first_plane = 0;
  int planes = 1;
  int log2_block = 6;
  int width = 0;  ///< coded size of its planes
  int height = 0;
  int cells_wide = 0;
  std::vector<Cell> cells;

  Cell& cell(int x, int y) { return cells[static_cast<std::size_t>((y >> 2) * cells_wide + (x >> 2))]; }
  const Cell& cell(int x, int y) const { return cells[static_cast<std::size_t>((y >> 2) * cells_wide + (x >> 2))]; }
  void fill(int x, int y, int log2_w, int log2_h, Cell value);
};

struct Picture {
  /// Planes are allocated and zeroed; no cell is coded.
  Picture(int width, int height, const PixelFormat& format, int log2_block);

  PixelFormat format;
  int log2_block;
  int blocks_wide;
  int blocks_high;
  std::vector<Plane> planes;
  std::vector<Tree> trees;

  /// Crops the planes to the size of the picture.
  still::Image image(int width, int height) const;
};

/// Reference samples of a block: index -1 - y left of row y, 0 the corner, 1 + x above column x.
struct References {
  Sample memory[4 * kMaxSide + 1 + 64];
  Sample* corner = memory + 2 * kMaxSide;
};

/// Gathers the references of a block and substitutes unavailable ones; `smooth` receives the smoothed references.
void gather_references(const Plane& plane, const Tree& tree, int bits, int x, int y, int log2_w, int log2_h,
                       References& plain, References& smooth);

/// Whether the edge filters apply (VSTC.md, section 3).
inline bool filters_edges(const Tree& tree, int log2_w, int log2_h) {
  return tree.first_plane == 0 && log2_w < 5 && log2_h < 5;
}
/// Whether a plane's references may be smoothed at all.
inline bool may_smooth(const Picture& picture, const Tree& tree) {
  return tree.first_plane == 0 || picture.format.log2_chroma_w == 0;
}

/// Converts levels to values.
struct Dequantiser {
  explicit Dequantiser(int qp_in) : qp(qp_in) {}
  int qp;
  int value(int level, int log2_area) const {
    static constexpr int kScale[2][6] = {{645, 724, 813, 912, 1024, 1149}, {456, 512, 575, 645, 724, 813}};
    const std::int64_t product = (std::int64_t{level} * kScale[log2_area & 1][qp % 6]) << (qp / 6);
    const int shift = 3 + (log2_area >> 1);
    const std::int64_t v = (product + (std::int64_t{1} << (shift - 1))) >> shift;
    return static_cast<int>(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
  }
};

/// The transform matrices of a residual block at (x, y) within its prediction block.
inline const Coefficient* horizontal_matrix(int mode, int x, int log2_w) {
  return matrix_of(log2_w, x == 0 && log2_w > 0 && log2_w <= kMaxSineLog2 && sine_across(mode));
}
inline const Coefficient* vertical_matrix(int mode, int y, int log2_h) {
  return matrix_of(log2_h, y == 0 && log2_h > 0 && log2_h <= kMaxSineLog2 && sine_down(mode));
}

/// Reconstructs samples and cells from the tokens of prediction trees.
class Reconstructor {
 public:
  Reconstructor(Picture& picture, int qp, const Kernels& kernels)
      : picture_(picture), dequantiser_(qp), kernels_(kernels) {}

  /// The tree of the block at (x, y) of 2^log2_w x 2^log2_h samples; returns the first unused token.
  const Token* tree(Tree& tree, int x, int y, int log2_w, int log2_h, const Token* tokens);
  /// A leaf: mode, then one residual tree per plane.
  const Token* leaf(Tree& tree, int x, int y, int log2_w, int log2_h, const Token* tokens);

 private:
  const Token* residual(int mode, int x, int y, int log2_w, int log2_h, const Token* tokens);

  Picture& picture_;
  Dequantiser dequantiser_;
  const Kernels& kernels_;
  int stride_ = 0;
  std::int16_t residual_[kMaxSide * kMaxSide];
  std::int16_t predicted_[kMaxSide * kMaxSide];
};

/// How a node of the prediction tree may be split, and whether that needs a symbol.
struct Halving {
  bool forced_down = false;    ///< upper and lower, without a symbol
  bool forced_across = false;  ///< left and right, without a symbol
  bool down = false;           ///< may be halved into upper and lower
  bool across = false;
};
inline Halving halving_of(const Tree& tree, int x, int y, int log2_w, int log2_h) {
  Halving h;
  h.forced_across = x + (1 << log2_w) > tree.width;
  h.forced_down = !h.forced_across && y + (1 << log2_h) > tree.height;
  h.across = log2_w > 2;
  h.down = log2_h > 2;
  return h;
}

}  // namespace trivelet::vstc
