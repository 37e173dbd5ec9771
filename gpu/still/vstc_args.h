// What the kernels of VSTC's search share with the host (see vstc.cu).
#pragma once

#include <cstdint>
#include <vector>

#include "codec/still/vstc/vstc_search.h"

namespace trivelet::gpu::vstc_search {

using vstc::Cell;
using vstc::Cost;
using vstc::Joint;
using vstc::Sample;
using vstc::Token;

inline constexpr int kThreads = 128;
inline constexpr int kMaxDepth = 8;  ///< halvings from 64x64 to 4x4
inline constexpr int kMaxArea = 64 * 64;
inline constexpr int kContexts = vstc::kContexts;

/// A sequence of directions in which a block is halved, and the consecutive nodes of the prediction tree at its end.
struct Path {
  int depth = 0;
  int log2_w = 0, log2_h = 0;  ///< of its nodes
  int child[2] = {-1, -1};     ///< path that halves once more: 0 into upper and lower, 1 left and right
  std::uint8_t widths[kMaxDepth + 1] = {}, heights[kMaxDepth + 1] = {};  ///< log2, of the nodes on the way
  std::int16_t ancestor[kMaxDepth + 1] = {};                             ///< paths on the way, itself last
  // Offsets into the memory of a job, in units of their arrays.
  int leaf = 0;  ///< samples of a node, per plane
  int leaf_tokens = 0;
  int canvas = 0;  ///< samples of the node above, per plane
  int canvas_cells = 0;
  int canvas_tokens = 0;
  int nodes = 0;  ///< residual nodes of a node of this path, per candidate and plane
  int node_count = 0;
};

/// All paths of a tree and the memory of a job.
struct Plan {
  Plan(int log2_block, int planes);
  std::vector<Path> paths;  ///< by depth
  int log2_slots;           ///< blocks of 4x4 in the tree, one after the other
  int depth;
  int leaf = 0, leaf_tokens = 0, canvas = 0, canvas_cells = 0, canvas_tokens = 0, nodes = 0, root_tokens = 0;
};
/// More tokens than an area of a tree can have.
inline int most_tokens(int area, int planes) { return planes * (3 * area + 8) + area + 8; }

/// Levels of residual trees by size; positions and ranks of scans; angles.
struct Tables {
  const std::int16_t* matrix[2][7];  ///< cosine, sine
  const std::int16_t* turned[2][7];  ///< rows and columns exchanged: neighbouring lanes read neighbouring values
  const std::uint16_t* position[49];
  const std::uint16_t* rank[49];
  int run_offset[49];  ///< of zero runs
  std::int16_t angle[vstc::kModes];
  std::uint8_t mode_order[vstc::kModes];
  int node_offset[49][49];  ///< [size of the prediction block][size of a residual block]
};

struct PlaneArgs {
  Sample* picture = nullptr;
  const Sample* source = nullptr;
  int pitch = 0;
};

/// A tree of all jobs of a wave at one slot.
struct TreeArgs {
  const Tables* tables = nullptr;
  const Path* paths = nullptr;
  int path_count = 0, first_path = 0;  ///< nodes of the paths from first_path on begin at this slot
  int depth = 0, log2_slots = 0, slot = 0;
  int log2_block = 0, planes = 1, set = 0;
  int width = 0, height = 0, cells_wide = 0;  ///< coded size of the planes
  int bits = 8, qp = 27;
  int candidates = 4;  ///< modes with a full trial, kModes for all
  int most_candidates = 5;
  bool may_smooth = true, fast = false, optimise = true;
  PlaneArgs plane[2];
  Cell* cells = nullptr;
  // Chroma: the luma tree.
  const Cell* luma_cells = nullptr;
  int luma_cells_wide = 0, luma_width = 0, luma_height = 0, shift_x = 0, shift_y = 0;

  // By job.
  const int* jobs = nullptr;    ///< bx, by
  const Cost* costs = nullptr;  ///< [job][set][context][value]
  const Cost* runs = nullptr;   ///< [job][set][size][rank]
  int runs_per_set = 0;
  // The memory of a job, times jobs.
  Sample *leaf = nullptr, *canvas = nullptr;
  Cell* canvas_cells = nullptr;
  Token *leaf_tokens = nullptr, *canvas_tokens = nullptr, *root_tokens = nullptr;
  int *leaf_counts = nullptr, *canvas_counts = nullptr, *root_counts = nullptr;  ///< [job][path], [job]
  Joint *leaf_costs = nullptr, *canvas_costs = nullptr;
  std::uint8_t *leaf_modes = nullptr, *leaf_coded = nullptr;  ///< [job][path]
  int* sums = nullptr;                                        ///< [job][path][mode]
  Joint *node_costs = nullptr, *node_energies = nullptr;      ///< [job][candidate][plane][node]
  std::uint8_t* node_choices = nullptr;
  Joint* scratch = nullptr;  ///< [job][2][leaf sample]
  int leaf_size = 0, canvas_size = 0, canvas_cell_size = 0, leaf_token_size = 0, canvas_token_size = 0,
      root_token_size = 0, node_size = 0;

  // Arithmetic.
  Joint lambda = 1;
  std::int64_t mode_root[7] = {}, step_inverse[13] = {};
  int threshold[13] = {};
  int scale[2] = {};
};

}  // namespace trivelet::gpu::vstc_search
