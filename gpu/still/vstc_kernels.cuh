// Kernels of a slot: try_modes, cost_residual, merge_nodes (see vstc.cu); finish_leaves is in vstc_leaf.cuh.
#pragma once

#include "gpu/still/vstc_block.cuh"

namespace trivelet::gpu::vstc_search {

/// Sums a value over the threads of a block; the result is for thread 0. Ends with a barrier.
template <class T>
__device__ T block_sum(T value, T* shared) {
  const int tid = static_cast<int>(threadIdx.x);
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAllLanes, value, offset);
  if (tid % 32 == 0) shared[tid / 32] = value;
  __syncthreads();
  T sum = 0;
  for (int i = 0; i < kThreads / 32; ++i) sum += shared[i];
  __syncthreads();
  return sum;
}

/// Grid: paths, jobs, modes. Sums of magnitudes of 8x8 (or smaller) transforms.
template <int kUnused = 0>
__global__ void __launch_bounds__(kThreads) try_modes(TreeArgs a) {
  __shared__ Refs refs;
  __shared__ int partial[kThreads / 32];
  const int path = a.first_path + static_cast<int>(blockIdx.x), job = static_cast<int>(blockIdx.y);
  const int mode = static_cast<int>(blockIdx.z), tid = static_cast<int>(threadIdx.x);
  const Node n = find_node(a, path, job);
  if (!n.whole) return;
  const int area = n.w * n.h, kw = n.path->log2_w < 3 ? n.path->log2_w : 3,
            kh = n.path->log2_h < 3 ? n.path->log2_h : 3;
  std::int16_t* residual = dynamic_shared<std::int16_t>();
  std::int16_t* down = residual + area;
  int sum = 0;
  for (int p = 0; p < a.planes; ++p) {
    gather_references(a, n, p, refs);
    make_residual(a, n, p, Prediction(a, n, refs, mode), residual);
    __syncthreads();
    for (int i = tid; i < area; i += kThreads)
      down[i] = vertical_at(a, residual, n.w, i & (n.w - 1), i >> n.path->log2_w, kh, false);
    __syncthreads();
    for (int i = tid; i < area; i += kThreads) {
      const int v = horizontal_at(a, down, n.w, i & (n.w - 1), i >> n.path->log2_w, kw, false);
      sum += v < 0 ? -v : v;
    }
    __syncthreads();
  }
  sum = block_sum(sum, partial);
  if (tid == 0) a.sums[(job * a.path_count + path) * vstc::kModes + mode] = sum;
}

/// First node of a candidate and plane of a job and path.
__device__ __forceinline__ std::size_t nodes_of(const TreeArgs& a, const Node& n, int candidate, int plane) {
  return (static_cast<std::size_t>(n.job) * a.most_candidates + candidate) * a.planes * a.node_size +
         static_cast<std::size_t>(plane) * a.node_size + n.path->nodes;
}
__device__ __forceinline__ int node_at(const TreeArgs& a, const Node& n, int c, int b, int tx, int ty) {
  return a.tables->node_offset[n.path->log2_w * 7 + n.path->log2_h][c * 7 + b] + (ty << (n.path->log2_w - c)) + tx;
}

/// Cost of the levels of every sub-block of one size. values, magnitudes: w x h.
__device__ inline void cost_levels(const TreeArgs& a, const Node& n, const Costs& cost, int c, int b,
                                   const std::int16_t* values, const std::int16_t* magnitudes, int* rates,
                                   long long* distortions, int* lasts, Joint* out) {
  const int tid = static_cast<int>(threadIdx.x), lane = tid % 32, log2_area = c + b, count = 1 << log2_area;
  const int area = n.w * n.h, log2_columns = n.path->log2_w - c, blocks = area >> log2_area;
  const int unit = log2_area + 2 * a.bits - 14, size = c * 7 + b;
  const bool small = log2_area <= 5;
  const auto finish = [&](int block, int rate, long long distortion, int last) {
    const int tx = block & ((1 << log2_columns) - 1), ty = block >> log2_columns;
    out[node_at(a, n, c, b, tx, ty)] =
        last < 0 ? vstc::kNever
                 : a.lambda * (rate + block_cost(a, cost, c, b, last)) + (static_cast<Joint>(distortion) << unit);
  };
  if (!small) {
    for (int i = tid; i < blocks; i += kThreads) {
      rates[i] = 0;
      distortions[i] = 0;
      lasts[i] = -1;
    }
    __syncthreads();
  }
  for (int base = tid - lane; base < area; base += kThreads) {
    const int i = base + lane, block = i >> log2_area, p = i & (count - 1), px = p & ((1 << c) - 1), py = p >> c;
    int rate = 0, last = -1;
    long long distortion = 0;
    if (i < area) {
      const int x0 = (block & ((1 << log2_columns) - 1)) << c, y0 = block >> log2_columns << b;
      const int at = (y0 + py) * n.w + x0 + px, m = magnitudes[at];
      const std::uint32_t around =
          terms_around(px, py, c, b, [&](int x, int y) { return magnitudes[(y0 + y) * n.w + x0 + x]; });
      rate = level_cost(cost, log2_area, px, py, around, m);
      const int v = values[at] < 0 ? -values[at] : values[at];
      const std::int64_t off = v - (m ? dequantised(a, m, log2_area) : 0);
      distortion = off * off;
      if (m) {
        last = a.tables->rank[size][p];
      }
    }
    for (int offset = (small ? count : 32) / 2; offset > 0; offset /= 2) {
      rate += __shfl_xor_sync(kAllLanes, rate, offset);
      distortion += __shfl_xor_sync(kAllLanes, distortion, offset);
      const int other = __shfl_xor_sync(kAllLanes, last, offset);
      last = other > last ? other : last;
    }
    if (small) {
      if (p == 0 && i < area) finish(block, rate, distortion, last);
    } else if (lane == 0) {
      atomicAdd(&rates[block], rate);
      atomicAdd(reinterpret_cast<unsigned long long*>(&distortions[block]),
                static_cast<unsigned long long>(distortion));
      atomicMax(&lasts[block], last);
    }
  }
  __syncthreads();
  if (!small) {
    for (int i = tid; i < blocks; i += kThreads) finish(i, rates[i], distortions[i], lasts[i]);
    __syncthreads();
  }
}

/// Costs of both halves of a residual node.
struct Halves {
  int c, b, x0, y0, x1, y1;  ///< size and places of the halves
  Joint no, yes, coded0, coded1, zero0, zero1;
  __device__ Halves(const TreeArgs& a, const Node& n, const Costs& cost, const Joint* coded, const Joint* energy,
                    int log2_w, int log2_h, int tx, int ty, bool across)
      : c(log2_w - across), b(log2_h - !across) {
    x0 = across ? 2 * tx : tx;
    y0 = across ? ty : 2 * ty;
    x1 = x0 + across;
    y1 = y0 + !across;
    const int context = vstc::coded_context(c + b);
    no = a.lambda * cost.bit(context, false);
    yes = a.lambda * cost.bit(context, true);
    const int first = node_at(a, n, c, b, x0, y0), second = node_at(a, n, c, b, x1, y1);
    coded0 = coded[first];
    coded1 = coded[second];
    zero0 = energy[first] << 16;
    zero1 = energy[second] << 16;
  }
  __device__ static Joint less(Joint p, Joint q) { return p < q ? p : q; }
  __device__ bool first_coded() const { return yes + coded0 + less(no + zero1, yes + coded1) <= no + zero0 + coded1; }
  __device__ bool second_coded() const { return !first_coded() || yes + coded1 < no + zero1; }
};

/// Best cost of a coded node; on entry coded[node] is that of its levels.
__device__ inline void cost_node(const TreeArgs& a, const Node& n, const Costs& cost, Joint* coded, Joint* energy,
                                 std::uint8_t* choices, int c, int b, int tx, int ty) {
  const int at = node_at(a, n, c, b, tx, ty);
  if (c > 0)
    energy[at] = energy[node_at(a, n, c - 1, b, 2 * tx, ty)] + energy[node_at(a, n, c - 1, b, 2 * tx + 1, ty)];
  else if (b > 0)
    energy[at] = energy[node_at(a, n, c, b - 1, tx, 2 * ty)] + energy[node_at(a, n, c, b - 1, tx, 2 * ty + 1)];
  const Joint zero = energy[at] << 16;
  Joint best = coded[at];
  int choice = 1;
  if (c + b > 0) {
    const int divided = vstc::divided_context(c, b), across_context = vstc::across_context(c, b);
    if (best < vstc::kNever) best += a.lambda * cost.bit(divided, false);
    const bool worth = best < vstc::kNever ? best > a.lambda * (cost.bit(divided, true) + 2 * vstc::kBit)
                                           : zero > a.lambda * vstc::kLeastGain;
    for (int split = 2; worth && split <= 3; ++split) {
      const bool across = split == 3;
      if ((across ? c : b) == 0) continue;
      const Halves h(a, n, cost, coded, energy, c, b, tx, ty, across);
      const Joint symbols =
          a.lambda * (cost.bit(divided, true) + (c > 0 && b > 0 ? cost.bit(across_context, across) : 0));
      if (symbols + Halves::less(h.yes + h.coded0, h.no + h.zero0) >= best) continue;
      const Joint joint = symbols + Halves::less(h.yes + h.coded0 + Halves::less(h.no + h.zero1, h.yes + h.coded1),
                                                 h.no + h.zero0 + h.coded1);
      if (joint < best) {
        best = joint;
        choice = split;
      }
    }
  }
  coded[at] = best < vstc::kNever ? best : vstc::kNever;
  choices[at] = static_cast<std::uint8_t>(choice);
}

/// Grid: paths, jobs, candidates times planes. All costs of one residual tree.
template <int kUnused = 0>
__global__ void __launch_bounds__(kThreads) cost_residual(TreeArgs a) {
  __shared__ Refs refs;
  __shared__ Modes modes;
  __shared__ int rates[kMaxArea / 64], lasts[kMaxArea / 64];
  __shared__ long long distortions[kMaxArea / 64];
  const int path = a.first_path + static_cast<int>(blockIdx.x), job = static_cast<int>(blockIdx.y);
  const int candidate = static_cast<int>(blockIdx.z) / a.planes, plane = static_cast<int>(blockIdx.z) % a.planes;
  const int tid = static_cast<int>(threadIdx.x);
  const Node n = find_node(a, path, job);
  if (!n.whole) return;
  choose_modes(a, n, path, modes);
  if (candidate >= modes.count) return;
  const int mode = modes.mode[candidate], area = n.w * n.h, log2_w = n.path->log2_w, log2_h = n.path->log2_h;
  const Costs cost(a, job);
  const std::size_t first = nodes_of(a, n, candidate, plane);
  Joint* coded = a.node_costs + first;
  Joint* energy = a.node_energies + first;
  std::int16_t* residual = dynamic_shared<std::int16_t>();
  std::int16_t *down = residual + area, *values = down + area, *magnitudes = values + area;

  gather_references(a, n, plane, refs);
  make_residual(a, n, plane, Prediction(a, n, refs, mode), residual);
  __syncthreads();
  for (int i = tid; i < area; i += kThreads)
    energy[node_at(a, n, 0, 0, i & (n.w - 1), i >> log2_w)] = std::int64_t{residual[i]} * residual[i];
  for (int b = 0; b <= log2_h; ++b) {
    for (int i = tid; i < area; i += kThreads) {
      const int x = i & (n.w - 1), y = i >> log2_w;
      down[i] = vertical_at(a, residual, n.w, x, y, b, takes_sine(b, y, vstc::sine_down(mode)));
    }
    __syncthreads();
    for (int c = 0; c <= log2_w; ++c) {
      for (int i = tid; i < area; i += kThreads) {
        const int x = i & (n.w - 1), y = i >> log2_w;
        const int v = horizontal_at(a, down, n.w, x, y, c, takes_sine(c, x, vstc::sine_across(mode)));
        values[i] = static_cast<std::int16_t>(v);
        const int m = v < 0 ? -v : v;
        magnitudes[i] = static_cast<std::int16_t>(
            m < a.threshold[c + b] ? 0 : (m * a.step_inverse[c + b] + vstc::kRound) >> vstc::kRoundBits);
      }
      __syncthreads();
      cost_levels(a, n, cost, c, b, values, magnitudes, rates, distortions, lasts, coded);
    }
  }
  // From single samples to the whole block.
  for (int log2_area = 0; log2_area <= log2_w + log2_h; ++log2_area) {
    const int sub_blocks = area >> log2_area;
    for (int c = 0; c <= log2_w && c <= log2_area; ++c) {
      const int b = log2_area - c;
      if (b > log2_h) continue;
      for (int i = tid; i < sub_blocks; i += kThreads)
        cost_node(a, n, cost, coded, energy, a.node_choices + first, c, b, i & ((1 << (log2_w - c)) - 1),
                  i >> (log2_w - c));
    }
    __syncthreads();
  }
}

/// Grid: jobs; a warp per path. Nodes that end with this slot choose between their leaf and both halvings, and are
/// written where the node above, or the picture, has them.
template <int kUnused = 0>
__global__ void __launch_bounds__(kThreads) merge_nodes(TreeArgs a) {
  const int job = static_cast<int>(blockIdx.x), lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const Costs cost(a, job);
  for (int depth = a.depth; depth >= 0; --depth) {
    if ((a.slot + 1) & ((1 << (a.log2_slots - depth)) - 1)) break;
    for (int path = warp; path < a.path_count; path += kThreads / 32) {
      if (a.paths[path].depth != depth) continue;
      const Node n = find_node(a, path, job);
      const Path& p = *n.path;
      const std::size_t index = static_cast<std::size_t>(job) * a.path_count + path;
      // The winner: -1 the leaf, otherwise a halving.
      int winner = -1;
      Joint best = 0;
      bool symbol = false;
      if (n.reached && !n.whole) {
        winner = n.x + n.w > a.width ? 1 : 0;
        best = a.canvas_costs[static_cast<std::size_t>(job) * a.path_count + p.child[winner]];
      } else if (n.reached) {
        best = a.leaf_costs[index];
        symbol = p.log2_w > 2 || p.log2_h > 2;
        if (symbol) {
          const int smaller = (n.x > 0 && cell_at(a, n, n.x - 1, n.y).log2_h < p.log2_h ? 1 : 0) +
                              (n.y > 0 && cell_at(a, n, n.x, n.y - 1).log2_w < p.log2_w ? 1 : 0);
          const int any = vstc::split_context(p.log2_w, p.log2_h, smaller);
          best += a.lambda * cost.bit(any, false);
          const Cost known0 = cost.bit(vstc::kKnown, false), known1 = cost.bit(vstc::kKnown, true);
          const Joint least = a.lambda * (cost.bit(any, true) + 2 * (known0 < known1 ? known0 : known1));
          const bool halve = best > least && !(a.fast && !a.leaf_coded[index]);
          for (int across = 0; halve && across < 2; ++across) {
            if (p.child[across] < 0) continue;
            const Cost direction =
                p.log2_w > 2 && p.log2_h > 2 ? cost.bit(vstc::direction_context(p.log2_w, p.log2_h), across) : 0;
            const Joint joint = a.lambda * (cost.bit(any, true) + direction) +
                                a.canvas_costs[static_cast<std::size_t>(job) * a.path_count + p.child[across]];
            if (joint < best) {
              best = joint;
              winner = across;
            }
          }
        }
      }
      // The destination: after the contents of this path's canvas, or in the picture.
      const bool again = depth > 0 && half_of(a, depth) == 1;
      const int before = again ? a.canvas_counts[index] : 0;
      const Joint spent = again ? a.canvas_costs[index] : 0;
      int count = 0;
      if (n.reached) {
        Token* to = depth > 0 ? a.canvas_tokens + static_cast<std::size_t>(job) * a.canvas_token_size + p.canvas_tokens
                              : a.root_tokens + static_cast<std::size_t>(job) * a.root_token_size;
        to += before;
        const Path& q = winner < 0 ? p : a.paths[p.child[winner]];
        const std::size_t q_index = winner < 0 ? index : static_cast<std::size_t>(job) * a.path_count + p.child[winner];
        const Token* from =
            winner < 0 ? a.leaf_tokens + static_cast<std::size_t>(job) * a.leaf_token_size + p.leaf_tokens
                       : a.canvas_tokens + static_cast<std::size_t>(job) * a.canvas_token_size + q.canvas_tokens;
        const int tokens = winner < 0 ? a.leaf_counts[index] : a.canvas_counts[q_index];
        if (symbol && lane == 0) to[0] = static_cast<Token>(winner + 1);
        for (int i = lane; i < tokens; i += 32) to[symbol + i] = from[i];
        count = symbol + tokens;

        const int up_w = depth > 0 ? p.widths[depth - 1] : 0, up_h = depth > 0 ? p.heights[depth - 1] : 0;
        const auto place = [&](int x, int y) {
          return ((n.y - n.root_y + y) & ((1 << up_h) - 1)) << up_w | ((n.x - n.root_x + x) & ((1 << up_w) - 1));
        };
        for (int plane = 0; plane < a.planes; ++plane) {
          const Sample* samples =
              winner < 0 ? a.leaf + (static_cast<std::size_t>(job) * a.planes + plane) * a.leaf_size + p.leaf
                         : a.canvas + (static_cast<std::size_t>(job) * a.planes + plane) * a.canvas_size + q.canvas;
          Sample* canvas = a.canvas + (static_cast<std::size_t>(job) * a.planes + plane) * a.canvas_size + p.canvas;
          for (int i = lane; i < n.w * n.h; i += 32) {
            const int x = i & (n.w - 1), y = i >> p.log2_w;
            if (n.x + x >= a.width || n.y + y >= a.height) continue;
            if (depth > 0)
              canvas[place(x, y)] = samples[i];
            else
              a.plane[plane].picture[static_cast<std::ptrdiff_t>(n.y + y) * a.plane[plane].pitch + n.x + x] =
                  samples[i];
          }
        }
        Cell* canvas_cells = a.canvas_cells + static_cast<std::size_t>(job) * a.canvas_cell_size;
        const Cell own{1, static_cast<std::uint8_t>(p.log2_w), static_cast<std::uint8_t>(p.log2_h),
                       a.leaf_modes[index]};
        for (int i = lane; i < n.w * n.h / 16; i += 32) {
          const int x = i & (n.w / 4 - 1), y = i >> (p.log2_w - 2);
          if (n.x + 4 * x >= a.width || n.y + 4 * y >= a.height) continue;
          const Cell cell = winner < 0 ? own : canvas_cells[q.canvas_cells + i];
          if (depth > 0) {
            const int at = place(4 * x, 4 * y);
            canvas_cells[p.canvas_cells + ((at >> up_w >> 2) << (up_w - 2)) + ((at & ((1 << up_w) - 1)) >> 2)] = cell;
          } else {
            a.cells[((n.y >> 2) + y) * a.cells_wide + (n.x >> 2) + x] = cell;
          }
        }
      }
      __syncwarp();
      if (lane == 0) {
        if (depth > 0) {
          a.canvas_counts[index] = before + count;
          a.canvas_costs[index] = spent + best;
        } else {
          a.root_counts[job] = count;
        }
      }
    }
    __syncthreads();
  }
}

}  // namespace trivelet::gpu::vstc_search
