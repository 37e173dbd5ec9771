// One code block in the dense coder: padded arrays of known magnitudes and signs in raster order, and the active groups
// of siblings per plane. Groups and trees are those of tree.h: group (t, y, x) of level k >= 2 holds the children of
// coefficient (t, y, x) of level k - 1.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/entropy/coded_block.h"
#include "codec/transform/quantiser.h"
#include "codec/transform/tree.h"

namespace trivelet::dense {

inline constexpr int kMaxPlanes = 30;
inline constexpr int kMaxOrientations = 7;

inline constexpr std::uint32_t kSignBit = 0x80000000u;  ///< magnitudes are below 2^30

struct Box {
  int t = 0;
  int y = 0;
  int x = 0;
  bool empty() const { return t <= 0 || y <= 0 || x <= 0; }
};

/// A level of a family. All orientations share it but for their borders.
struct Level {
  // Geometry
  int arity = 4;
  int orientations = 1;
  int groups_t = 0;  ///< allocated groups along time, rows, columns
  int groups_y = 0;
  int groups_x = 0;
  int frames = 0;             ///< allocated frames of coefficients
  int words = 0;              ///< 64-bit words per row of groups
  std::ptrdiff_t stride = 0;  ///< of coefficients, with a border of one
  std::ptrdiff_t frame = 0;
  std::ptrdiff_t span = 0;          ///< coefficients of an orientation
  std::ptrdiff_t group_stride = 0;  ///< of the padded arrays of groups
  std::ptrdiff_t group_frame = 0;
  std::ptrdiff_t group_span = 0;
  Box valid[kMaxOrientations];   ///< coefficients inside the picture
  Box exists[kMaxOrientations];  ///< groups with a coefficient or a descendant inside the picture

  // Encoder: the true values
  std::vector<std::uint32_t> magnitude;    ///< index as in `known`; written where valid; negative values have kSignBit
  std::vector<std::uint8_t> planes;        ///< per group: planes of its set (its coefficients and all descendants)
  std::vector<std::uint8_t> planes_below;  ///< per group: planes of its descendants

  // Known so far (encoder and decoder)
  std::vector<std::uint32_t> known;  ///< magnitudes, zeros below the plane reached
  std::vector<std::int8_t> sign;     ///< -1, 0, 1
  std::vector<std::uint8_t> active;  ///< padded groups: 1 = active
  std::vector<std::uint8_t> open;    ///< padded groups: 1 = a child group is active
  std::vector<std::uint64_t> mask;   ///< [plane][row of groups][word]: active groups after `plane`
  std::vector<std::uint64_t> done;   ///< [row of groups][word]: all child groups active
  std::vector<std::uint64_t> some;   ///< [row of quads][word]: quads with a significant coefficient
  std::vector<std::uint64_t> all;    ///< quads without an insignificant coefficient
  int top = 0;                       ///< planes of the segment; masks exist below it

  std::ptrdiff_t at(int o, int t, int y, int x) const { return o * span + (t + 1) * frame + (y + 1) * stride + x + 1; }
  std::ptrdiff_t group_at(int o, int t, int y, int x) const {
    return o * group_span + (t + 1) * group_frame + (y + 1) * group_stride + x + 1;
  }
  std::size_t group(int o, int t, int y, int x) const {
    return static_cast<std::size_t>(((o * groups_t + t) * groups_y + y) * groups_x + x);
  }
  std::size_t row(int o, int t, int y) const {
    return static_cast<std::size_t>(((o * groups_t + t) * groups_y + y) * words);
  }
  std::size_t quad_row(int o, int t, int y) const {
    return static_cast<std::size_t>(((o * frames + t) * groups_y + y) * words);
  }
  std::size_t rows() const { return static_cast<std::size_t>(orientations * groups_t * groups_y * words); }
  const std::uint64_t* mask_of(int plane) const { return mask.data() + static_cast<std::size_t>(plane) * rows(); }
  std::uint64_t* mask_of(int plane) { return mask.data() + static_cast<std::size_t>(plane) * rows(); }

  /// Clears all known values and makes space for `planes` planes.
  void reset(int planes);
};

struct BlockFamily {
  int parent = -1;
  bool used = false;
  std::vector<int> parent_frame;
  std::vector<Level> levels;
};

/// All levels of all families of a block.
struct Block {
  std::vector<BlockFamily> families;
  void lay_out(const BlockGrid& grid, int by, int bx);
  /// Quantises the block's coefficients and finds the planes of all sets. `top` gets the planes of every segment,
  /// `energy` the weighted sum of squares of its coefficients (null weights: 1).
  template <class T>
  void load(const BlockGrid& grid, int by, int bx, const Field<T>& field, const float* inverse_steps,
            const ErrorWeights* weights, SimdLevel simd, std::vector<std::uint8_t>& top, std::vector<double>& energy);
};

}  // namespace trivelet::dense
