// Pieces of VSTC's search on a device: the position of a node of the prediction tree and of its neighbours' samples,
// references, prediction, forward transforms, costs of levels. Arithmetic as in vstc_search.cpp and vstc_kernels.cpp.
#pragma once

#include "codec/still/vstc/vstc_syntax.h"
#include "gpu/still/vstc_args.h"
#include "gpu/transform/dwt.cuh"

namespace trivelet::gpu::vstc_search {

/// A node at this slot. Coordinates are those of the plane.
struct Node {
  const Path* path;
  int job, root_x, root_y, x, y, w, h;
  bool reached;  ///< the halvings on the way are possible and it begins inside the plane
  bool whole;    ///< all of it is inside
};

__device__ __forceinline__ int half_of(const TreeArgs& a, int level) { return a.slot >> (a.log2_slots - level) & 1; }
__device__ __forceinline__ bool is_across(const Path& p, int level) { return p.widths[level] < p.widths[level - 1]; }

__device__ inline Node find_node(const TreeArgs& a, int path, int job) {
  Node n;
  n.path = a.paths + path;
  n.job = job;
  n.x = n.root_x = a.jobs[2 * job] << a.log2_block;
  n.y = n.root_y = a.jobs[2 * job + 1] << a.log2_block;
  n.w = 1 << n.path->log2_w;
  n.h = 1 << n.path->log2_h;
  n.reached = true;
  for (int level = 1; level <= n.path->depth; ++level) {
    const bool across = is_across(*n.path, level);
    const bool must_across = n.x + (1 << n.path->widths[level - 1]) > a.width;
    const bool must_down = !must_across && n.y + (1 << n.path->heights[level - 1]) > a.height;
    if (must_across ? !across : must_down && across) n.reached = false;
    if (across)
      n.x += half_of(a, level) << n.path->widths[level];
    else
      n.y += half_of(a, level) << n.path->heights[level];
  }
  if (n.x >= a.width || n.y >= a.height) n.reached = false;
  n.whole = n.reached && n.x + n.w <= a.width && n.y + n.h <= a.height;
  return n;
}

/// The holder of (x, y) as the node sees it: 0 the picture, a path its canvas, -1 none yet.
__device__ inline int holder_of(const TreeArgs& a, const Node& n, int x, int y) {
  if (x < 0 || y < 0 || x >= a.width || y >= a.height) return -1;
  const int rx = x - n.root_x, ry = y - n.root_y;
  if (rx < 0 || ry < 0 || rx >> a.log2_block || ry >> a.log2_block)
    return a.cells[(y >> 2) * a.cells_wide + (x >> 2)].coded ? 0 : -1;
  for (int level = 1; level <= n.path->depth; ++level) {
    const int theirs = (is_across(*n.path, level) ? rx >> n.path->widths[level] : ry >> n.path->heights[level]) & 1;
    const int ours = half_of(a, level);
    if (theirs != ours) return theirs < ours ? n.path->ancestor[level] : -1;
  }
  return -1;
}
/// Index of (x, y) in the canvas of a path, in samples.
__device__ __forceinline__ int canvas_index(const TreeArgs& a, const Node& n, int path, int x, int y) {
  const Path& p = a.paths[path];
  const int kw = p.widths[p.depth - 1], kh = p.heights[p.depth - 1];
  return ((y - n.root_y) & ((1 << kh) - 1)) << kw | ((x - n.root_x) & ((1 << kw) - 1));
}
__device__ inline Sample sample_at(const TreeArgs& a, const Node& n, int plane, int holder, int x, int y) {
  if (holder == 0) return a.plane[plane].picture[static_cast<std::ptrdiff_t>(y) * a.plane[plane].pitch + x];
  return a.canvas[(static_cast<std::size_t>(n.job) * a.planes + plane) * a.canvas_size + a.paths[holder].canvas +
                  canvas_index(a, n, holder, x, y)];
}
/// The cell over a sample that there is.
__device__ inline Cell cell_at(const TreeArgs& a, const Node& n, int x, int y) {
  const int holder = holder_of(a, n, x, y);
  if (holder <= 0) return a.cells[(y >> 2) * a.cells_wide + (x >> 2)];
  const Path& p = a.paths[holder];
  const int kw = p.widths[p.depth - 1], at = canvas_index(a, n, holder, x, y);
  const int cx = (at & ((1 << kw) - 1)) >> 2, cy = at >> kw >> 2;
  return a.canvas_cells[static_cast<std::size_t>(n.job) * a.canvas_cell_size + p.canvas_cells + (cy << (kw - 2)) + cx];
}

// ------------------------------------------------------------------------------------------------------ references

struct Refs {
  std::int16_t holder[2 * 32 + 1];
  Sample plain[4 * 64 + 1], smooth[4 * 64 + 1];
};

/// Called by all threads of the block; ends with a barrier.
__device__ inline void gather_references(const TreeArgs& a, const Node& n, int plane, Refs& refs) {
  const int side = n.w + n.h, units = side / 4, tid = static_cast<int>(threadIdx.x);
  for (int u = tid; u <= 2 * units; u += kThreads)
    refs.holder[u] = static_cast<std::int16_t>(u < units    ? holder_of(a, n, n.x - 1, n.y + 4 * (units - 1 - u))
                                               : u == units ? holder_of(a, n, n.x - 1, n.y - 1)
                                                            : holder_of(a, n, n.x + 4 * (u - units - 1), n.y - 1));
  __syncthreads();
  // Units run from the lowest on the left over the corner to the right. Missing ones take the last sample before them,
  // missing first ones the first existing one.
  for (int i = tid - side; i <= side; i += kThreads) {
    const int unit = i < 0 ? units - 1 - (-1 - i) / 4 : i == 0 ? units : units + 1 + (i - 1) / 4;
    int from = i, u = unit;
    if (refs.holder[unit] < 0) {
      while (u >= 0 && refs.holder[u] < 0) --u;
      if (u >= 0) {
        from = u < units ? -1 - 4 * (units - 1 - u) : u == units ? 0 : 4 * (u - units);
      } else {
        u = unit;
        while (u <= 2 * units && refs.holder[u] < 0) ++u;
        from = u < units ? -4 * (units - u) : u == units ? 0 : 1 + 4 * (u - units - 1);
      }
    }
    Sample v = static_cast<Sample>(1 << (a.bits - 1));
    if (u <= 2 * units)
      v = sample_at(a, n, plane, refs.holder[u], from <= 0 ? n.x - 1 : n.x + from - 1,
                    from < 0 ? n.y - 1 - from : n.y - 1);
    refs.plain[side + i] = v;
  }
  __syncthreads();
  for (int i = tid; i <= 2 * side; i += kThreads)
    refs.smooth[i] = i == 0 || i == 2 * side
                         ? refs.plain[i]
                         : static_cast<Sample>((refs.plain[i - 1] + 2 * refs.plain[i] + refs.plain[i + 1] + 2) >> 2);
  __syncthreads();
}

/// One mode's samples.
struct Prediction {
  const Sample* r;  ///< the corner
  int mode, log2_w, log2_h, bits, angle, inverse, dc;
  bool edges;

  __device__ Prediction(const TreeArgs& a, const Node& n, const Refs& refs, int mode_in)
      : mode(mode_in), log2_w(n.path->log2_w), log2_h(n.path->log2_h), bits(a.bits) {
    const bool smoothed = a.may_smooth && vstc::smooths(mode, log2_w, log2_h);
    r = (smoothed ? refs.smooth : refs.plain) + n.w + n.h;
    angle = a.tables->angle[mode];
    inverse = angle < 0 ? (8192 + (-angle >> 1)) / -angle : 0;
    edges = a.set == 0 && log2_w < 5 && log2_h < 5;
    dc = 0;
    if (mode == 1) {
      dc = (n.w + n.h) >> 1;
      for (int i = 0; i < n.w; ++i) dc += r[1 + i];
      for (int i = 0; i < n.h; ++i) dc += r[-1 - i];
      dc /= n.w + n.h;
    }
  }
  __device__ __forceinline__ int main(int side, int i) const {
    return i >= 0 ? r[side * i] : r[-side * ((-i * inverse + 128) >> 8)];
  }
  __device__ int at(int x, int y) const {
    const int w = 1 << log2_w, h = 1 << log2_h;
    if (mode == 0)
      return (((w - 1 - x) * r[-1 - y] + (x + 1) * r[1 + w]) * h + ((h - 1 - y) * r[1 + x] + (y + 1) * r[-1 - h]) * w +
              w * h) >>
             (log2_w + log2_h + 1);
    if (mode == 1) {
      if (!edges || (x > 0 && y > 0)) return dc;
      if (x == 0 && y == 0) return (r[-1] + 2 * dc + r[1] + 2) >> 2;
      return ((y == 0 ? r[1 + x] : r[-1 - y]) + 3 * dc + 2) >> 2;
    }
    const int side = mode >= 18 ? 1 : -1, along = mode >= 18 ? x : y, away = mode >= 18 ? y : x;
    if (angle == 0 && edges && along == 0) {
      const int v = main(side, 1) + ((r[-side * (away + 1)] - r[0]) >> 1), most = (1 << bits) - 1;
      return v < 0 ? 0 : v > most ? most : v;
    }
    const int i = (((away + 1) * angle) >> 5) + 1 + along, f = ((away + 1) * angle) & 31;
    return f == 0 ? main(side, i) : ((32 - f) * main(side, i) + f * main(side, i + 1) + 16) >> 5;
  }
};

/// Source minus prediction, by all threads; no barrier.
__device__ inline void make_residual(const TreeArgs& a, const Node& n, int plane, const Prediction& p,
                                     std::int16_t* out) {
  for (int i = static_cast<int>(threadIdx.x); i < n.w * n.h; i += kThreads) {
    const int x = i & (n.w - 1), y = i >> n.path->log2_w;
    const Sample s = a.plane[plane].source[static_cast<std::ptrdiff_t>(n.y + y) * a.plane[plane].pitch + n.x + x];
    out[i] = static_cast<std::int16_t>(s - p.at(x, y));
  }
}

// -------------------------------------------------------------------------------------------------------- transforms

/// Value (x, y) of the vertical transform of sub-blocks of 2^b rows; `pitch` values a row.
__device__ inline std::int16_t vertical_at(const TreeArgs& a, const std::int16_t* in, int pitch, int x, int y, int b,
                                           bool sine) {
  if (b == 0) return static_cast<std::int16_t>(in[y * pitch + x] << (15 - a.bits));
  const int n = 1 << b, k = y & (n - 1), shift = b + a.bits - 9;
  const std::int16_t* m = a.tables->turned[sine][b] + k;
  const std::int16_t* v = in + (y - k) * pitch + x;
  int sum = shift > 0 ? 1 << (shift - 1) : 0;
  for (int j = 0; j < n; ++j) sum += m[j << b] * v[j * pitch];
  return static_cast<std::int16_t>(sum >> shift);
}
__device__ inline std::int16_t horizontal_at(const TreeArgs& a, const std::int16_t* in, int pitch, int x, int y, int c,
                                             bool sine) {
  if (c == 0) return in[y * pitch + x];
  const int n = 1 << c, k = x & (n - 1), shift = c + 6;
  const std::int16_t* m = a.tables->turned[sine][c] + k;
  const std::int16_t* v = in + y * pitch + x - k;
  int sum = 1 << (shift - 1);
  for (int j = 0; j < n; ++j) sum += m[j << c] * v[j];
  return static_cast<std::int16_t>(sum >> shift);
}
/// Whether the first sub-blocks of 2^k values take the sine transform.
__device__ __forceinline__ bool takes_sine(int k, int position, bool mode_asks) {
  return mode_asks && position >> k == 0 && k > 0 && k <= vstc::kMaxSineLog2;
}

__device__ inline std::int64_t dequantised(const TreeArgs& a, int level, int log2_area) {
  const std::int64_t product = (std::int64_t{level} * a.scale[log2_area & 1]) << (a.qp / 6);
  const int shift = 3 + (log2_area >> 1);
  const std::int64_t v = (product + (std::int64_t{1} << (shift - 1))) >> shift;
  return v < -32768 ? -32768 : v > 32767 ? 32767 : v;
}

// ------------------------------------------------------------------------------------------------------------- costs

/// The frozen costs of a job in one set of contexts.
struct Costs {
  const Cost* of;
  const Cost* runs;
  __device__ Costs(const TreeArgs& a, int job)
      : of(a.costs + (2 * job + a.set) * 2 * kContexts),
        runs(a.runs + static_cast<std::size_t>(2 * job + a.set) * a.runs_per_set) {}
  __device__ __forceinline__ Cost bit(int context, bool value) const { return of[2 * context + value]; }
};

/// Levels of the five neighbours that determine contexts, from magnitudes of a block of 2^c x 2^b.
template <class Magnitude>
__device__ __forceinline__ std::uint32_t terms_around(int x, int y, int c, int b, const Magnitude& magnitude) {
  const int w = 1 << c, h = 1 << b;
  std::uint32_t sum = 0;
  const auto add = [&](int px, int py) {
    if (px >= w || py >= h) return;
    const int m = magnitude(px, py);
    if (m) sum += vstc::neighbour_term(m);
  };
  add(x + 1, y);
  add(x + 2, y);
  add(x, y + 1);
  add(x, y + 2);
  add(x + 1, y + 1);
  return sum;
}

__device__ inline Cost magnitude_cost(const Costs& cost, int log2_area, int x, int y, std::uint32_t around,
                                      int magnitude) {
  const int c = vstc::above_context(log2_area, x, y, around);
  if (magnitude == 1) return cost.bit(vstc::kAbove1 + c, false);
  if (magnitude == 2) return cost.bit(vstc::kAbove1 + c, true) + cost.bit(vstc::kAbove2 + c, false);
  int order = vstc::rest_order(around), value = magnitude - 3, bits = 0;
  while (bits < vstc::kMaxRestOnes && value >= 1 << order) {
    value -= 1 << order++;
    ++bits;
  }
  if (bits < vstc::kMaxRestOnes) ++bits;
  return cost.bit(vstc::kAbove1 + c, true) + cost.bit(vstc::kAbove2 + c, true) + (bits + order) * vstc::kBit;
}

/// Of the place of the last level.
__device__ inline Cost last_cost(const Costs& cost, int c, int b, int at) {
  Cost sum = 0;
  const auto place = [&](int context, int log2_side, int value) {
    const int groups = vstc::last_groups(log2_side), group = vstc::last_group(value);
    for (int g = 0; g < group; ++g) sum += cost.bit(context + log2_side * 11 + g, true);
    if (group + 1 < groups) sum += cost.bit(context + log2_side * 11 + group, false);
    sum += vstc::last_group_bits(group) * vstc::kBit;
  };
  place(vstc::kLastX, c, at & ((1 << c) - 1));
  place(vstc::kLastY, b, at >> c);
  return sum;
}

/// What (x, y) adds to the cost of zeros with nothing around them.
__device__ inline Cost level_cost(const Costs& cost, int log2_area, int x, int y, std::uint32_t around, int magnitude) {
  if (magnitude == 0 && around == 0) return 0;
  const Cost plain = cost.bit(vstc::significant_context(log2_area, x, y, 0), false);
  const Cost here = cost.bit(vstc::significant_context(log2_area, x, y, around), magnitude != 0);
  return here - plain + (magnitude ? vstc::kBit + magnitude_cost(cost, log2_area, x, y, around, magnitude) : 0);
}
/// Turns the sum of level_cost() over a block whose last level is at `rank` into the cost of the block: the last
/// level's significance is implied, the zeros before it are coded.
__device__ inline Cost block_cost(const TreeArgs& a, const Costs& cost, int c, int b, int rank) {
  const int size = c * 7 + b, at = a.tables->position[size][rank];
  const int context = vstc::significant_context(c + b, at & ((1 << c) - 1), at >> c, 0);
  return cost.runs[a.tables->run_offset[size] + rank] + last_cost(cost, c, b, at) - cost.bit(context, true) +
         cost.bit(context, false);
}

// ------------------------------------------------------------------------------------------------------------- modes

__device__ inline void known_modes(const TreeArgs& a, const Node& n, int (&out)[3]) {
  const int left = n.x > 0 ? cell_at(a, n, n.x - 1, n.y + n.h - 1).mode : 1;
  const int above = n.y > 0 ? cell_at(a, n, n.x + n.w - 1, n.y - 1).mode : 1;
  int luma = -1;
  if (a.set > 0) {
    const int x = (n.x + n.w / 2) << a.shift_x, y = (n.y + n.h / 2) << a.shift_y;
    luma = a.luma_cells[((y < a.luma_height ? y : a.luma_height - 1) >> 2) * a.luma_cells_wide +
                        ((x < a.luma_width ? x : a.luma_width - 1) >> 2)]
               .mode;
  }
  vstc::known_modes_of(left, above, luma, out);
}

__device__ inline Cost mode_cost(const Costs& cost, const int (&known)[3], int mode) {
  for (int i = 0; i < 3; ++i)
    if (known[i] == mode) {
      Cost sum = cost.bit(vstc::kKnown, true) + cost.bit(vstc::kWhich, i > 0);
      return i > 0 ? sum + cost.bit(vstc::kWhich + 1, i > 1) : sum;
    }
  int index = mode, node = 1;
  for (int i = 0; i < 3; ++i) index -= known[i] < mode;
  Cost sum = cost.bit(vstc::kKnown, false);
  for (int i = 4; i >= 0; --i) {
    sum += cost.bit(vstc::kModeTree + node, index >> i & 1);
    node = 2 * node + (index >> i & 1);
  }
  return sum;
}

/// The modes that get a full trial, in order, and the bits to signal them.
struct Modes {
  int known[3];
  int count;
  std::uint8_t mode[vstc::kModes];
  Cost cost[vstc::kModes];  ///< by mode
  std::int64_t joint[vstc::kModes];
  bool chosen[vstc::kModes];
};
/// Called by all threads of the block; ends with a barrier.
__device__ inline void choose_modes(const TreeArgs& a, const Node& n, int path, Modes& m) {
  const int tid = static_cast<int>(threadIdx.x);
  const Costs costs(a, n.job);
  if (tid == 0) known_modes(a, n, m.known);
  __syncthreads();
  const int kw = n.path->log2_w < 3 ? n.path->log2_w : 3, kh = n.path->log2_h < 3 ? n.path->log2_h : 3;
  if (tid < vstc::kModes) {
    m.cost[tid] = mode_cost(costs, m.known, tid);
    m.joint[tid] = a.candidates == vstc::kModes
                       ? 0
                       : std::int64_t{a.sums[(n.job * a.path_count + path) * vstc::kModes + tid]} * 65536 +
                             a.mode_root[kw + kh] * m.cost[tid];
  }
  __syncthreads();
  if (tid < vstc::kModes) {
    int better = 0;
    for (int i = 0; i < vstc::kModes; ++i)
      better += m.joint[i] < m.joint[tid] || (m.joint[i] == m.joint[tid] && i < tid);
    m.chosen[tid] = better < a.candidates || tid == m.known[0];
  }
  __syncthreads();
  if (tid == 0) {
    m.count = 0;
    for (int i = 0; i < vstc::kModes; ++i)
      if (m.chosen[a.tables->mode_order[i]]) m.mode[m.count++] = a.tables->mode_order[i];
  }
  __syncthreads();
}

}  // namespace trivelet::gpu::vstc_search
