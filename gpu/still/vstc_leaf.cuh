// The end of a prediction block: the best mode's residual tree as tokens, levels by rate and distortion, samples, and
// the true cost. As Search::leaf, emit, optimise and Reconstructor::leaf.
#pragma once

#include "gpu/still/vstc_kernels.cuh"

namespace trivelet::gpu::vstc_search {

/// A residual block with levels: place and size, packed.
struct Piece {
  std::uint32_t packed;
  __device__ static Piece of(int x, int y, int c, int b) {
    return {static_cast<std::uint32_t>(x | y << 6 | c << 12 | b << 15)};
  }
  __device__ int x() const { return packed & 63; }
  __device__ int y() const { return packed >> 6 & 63; }
  __device__ int c() const { return packed >> 12 & 7; }
  __device__ int b() const { return packed >> 15 & 7; }
};

/// Scratch of a plane in shared memory, 14 bytes a sample.
struct Work {
  std::int16_t *residual, *down, *values, *levels;
  std::uint16_t* piece_of;  ///< 0: none, otherwise index + 1
  Piece* pieces;
  __device__ Work(void* memory, int area) {
    pieces = static_cast<Piece*>(memory);
    residual = reinterpret_cast<std::int16_t*>(pieces + area);
    down = residual + area;
    values = down + area;
    levels = values + area;
    piece_of = reinterpret_cast<std::uint16_t*>(levels + area);
  }
  /// After the transforms: rank of the last level of a piece, -1 without; after the choice of levels: its tokens.
  __device__ std::int16_t* last() const { return down; }
  __device__ std::uint16_t* offset() const { return reinterpret_cast<std::uint16_t*>(values); }
};

struct Frame {
  std::uint8_t c, b, stage;
  bool any;
  std::int16_t tx, ty;
  std::int32_t start;
};

/// What a residual tree's decisions come from.
struct Decisions {
  const Joint *coded, *energy;
  const std::uint8_t* choices;
};

/// Lists the coded undivided blocks in their order. One thread.
__device__ inline int list_pieces(const TreeArgs& a, const Node& n, const Costs& cost, const Decisions& d,
                                  Piece* pieces) {
  Frame stack[2 * 12 + 2];
  int top = 0, count = 0;
  stack[top++] = {
      static_cast<std::uint8_t>(n.path->log2_w), static_cast<std::uint8_t>(n.path->log2_h), 0, false, 0, 0, 0};
  while (top > 0) {
    const Frame f = stack[--top];
    const int choice = d.choices[node_at(a, n, f.c, f.b, f.tx, f.ty)];
    if (choice == 1) {
      pieces[count++] = Piece::of(f.tx << f.c, f.ty << f.b, f.c, f.b);
      continue;
    }
    const Halves h(a, n, cost, d.coded, d.energy, f.c, f.b, f.tx, f.ty, choice == 3);
    const auto push = [&](int x, int y) {
      stack[top++] = {static_cast<std::uint8_t>(h.c), static_cast<std::uint8_t>(h.b), 0, false,
                      static_cast<std::int16_t>(x),   static_cast<std::int16_t>(y),   0};
    };
    if (h.second_coded()) push(h.x1, h.y1);
    if (h.first_coded()) push(h.x0, h.y0);
  }
  return count;
}

/// The tokens of a coded root, without the levels, for which it leaves room; halves without levels become one 0. One
/// thread. Returns how many.
__device__ inline int write_tree(const TreeArgs& a, const Node& n, const Costs& cost, const Decisions& d,
                                 const Work& work, Token* tokens) {
  Frame stack[14];
  int top = 0, at = 0, piece = 0;
  bool result = false;
  stack[top++] = {
      static_cast<std::uint8_t>(n.path->log2_w), static_cast<std::uint8_t>(n.path->log2_h), 0, false, 0, 0, 0};
  while (top > 0) {
    Frame& f = stack[top - 1];
    const int choice = d.choices[node_at(a, n, f.c, f.b, f.tx, f.ty)];
    if (f.stage == 0) {
      f.start = at;
      tokens[at++] = static_cast<Token>(choice);
      if (choice == 1) {
        result = work.last()[piece] >= 0;
        if (result) {
          work.offset()[piece] = static_cast<std::uint16_t>(at);
          at += 1 << (f.c + f.b);
        } else {
          tokens[f.start] = 0;
        }
        ++piece;
        --top;
        continue;
      }
    } else if (f.stage == 1) {
      f.any = result;
    } else {
      result = result || f.any;
      if (!result) {
        at = f.start;
        tokens[at++] = 0;
      }
      --top;
      continue;
    }
    const bool second = f.stage == 1;
    ++f.stage;
    const Halves h(a, n, cost, d.coded, d.energy, f.c, f.b, f.tx, f.ty, choice == 3);
    if (second ? h.second_coded() : h.first_coded()) {
      stack[top++] = {static_cast<std::uint8_t>(h.c),
                      static_cast<std::uint8_t>(h.b),
                      0,
                      false,
                      static_cast<std::int16_t>(second ? h.x1 : h.x0),
                      static_cast<std::int16_t>(second ? h.y1 : h.y0),
                      0};
    } else {
      tokens[at++] = 0;
      result = false;
    }
  }
  return at;
}

/// The cost of the symbols of a residual tree, without its levels. One thread.
__device__ inline Cost tree_cost(const Costs& cost, const Token* tokens, int log2_w, int log2_h, int root_context) {
  struct Pending {
    std::uint8_t c, b;
    bool first, sure;
  };
  Pending stack[14];
  int top = 0;
  stack[top++] = {static_cast<std::uint8_t>(log2_w), static_cast<std::uint8_t>(log2_h), false, false};
  int context = root_context;
  Cost sum = 0;
  while (top > 0) {
    const Pending f = stack[--top];
    const int node = *tokens++;
    if (!f.sure) sum += cost.bit(context >= 0 ? context : vstc::coded_context(f.c + f.b), node != 0);
    context = -1;
    if (f.first) stack[top - 1].sure = node == 0;
    if (node == 0) continue;
    if (f.c + f.b > 0) {
      sum += cost.bit(vstc::divided_context(f.c, f.b), node > 1);
      if (node > 1 && f.c > 0 && f.b > 0) sum += cost.bit(vstc::across_context(f.c, f.b), node == 3);
    }
    if (node == 1) {
      tokens += 1 << (f.c + f.b);
    } else {
      const auto c = static_cast<std::uint8_t>(f.c - (node == 3)), b = static_cast<std::uint8_t>(f.b - (node == 2));
      stack[top++] = {c, b, false, false};
      stack[top++] = {c, b, true, false};
    }
  }
  return sum;
}

/// Levels of one piece in coding order, each the cheapest of the two around the value and 0; then the best last one.
/// One thread. inside, ending: by position of the plane.
__device__ inline int choose_levels(const TreeArgs& a, const Node& n, const Costs& cost, const Work& work, Piece piece,
                                    Joint* inside, Joint* ending) {
  const int c = piece.c(), b = piece.b(), log2_area = c + b, size = c * 7 + b, w = 1 << c;
  const int unit = log2_area + 2 * a.bits - 14;
  const std::uint16_t* position = a.tables->position[size];
  const auto place = [&](int at) { return ((piece.y() + (at >> c)) << n.path->log2_w) + piece.x() + (at & (w - 1)); };
  const auto magnitude_of = [&](int at) {
    const int v = work.values[place(at)];
    return v < 0 ? -v : v;
  };
  const auto nearest = [&](int v) {
    return static_cast<int>((v * a.step_inverse[log2_area] + (std::int64_t{1} << (vstc::kRoundBits - 1))) >>
                            vstc::kRoundBits);
  };
  int top = (1 << log2_area) - 1;
  while (top >= 0 && nearest(magnitude_of(position[top])) == 0) --top;
  for (int rank = top; rank >= 0; --rank) {
    const int at = position[rank], x = at & (w - 1), y = at >> c, here = place(at);
    const std::uint32_t around =
        terms_around(x, y, c, b, [&](int px, int py) { return work.levels[place(py << c | px)]; });
    const int sig = vstc::significant_context(log2_area, x, y, around);
    const int v = magnitude_of(at), high = nearest(v);
    Joint best = a.lambda * cost.bit(sig, false), end = vstc::kNever;
    int level = 0;
    for (int k = high; high > 0 && k >= (high > 1 ? high - 1 : 1); --k) {
      const std::int64_t d = dequantised(a, k, log2_area);
      const Joint joint =
          -((d * (2 * v - d)) << unit) + a.lambda * (vstc::kBit + magnitude_cost(cost, log2_area, x, y, around, k));
      const Joint with = joint + a.lambda * cost.bit(sig, true);
      if (with < best) {
        best = with;
        level = k;
        end = joint;
      }
    }
    inside[here] = best;
    ending[here] = end;
    work.levels[here] = static_cast<std::int16_t>(level);
  }
  Joint below = 0, best = vstc::kNever;
  int last = -1;
  for (int rank = 0; rank <= top; ++rank) {
    const int at = position[rank], here = place(at);
    if (work.levels[here] != 0) {
      const Joint joint = below + ending[here] + a.lambda * last_cost(cost, c, b, at);
      if (joint < best) {
        best = joint;
        last = rank;
      }
    }
    below += inside[here];
  }
  for (int rank = 0; rank <= top; ++rank) {
    const int here = place(position[rank]);
    if (rank > last) work.levels[here] = 0;
    if (work.values[here] < 0) work.levels[here] = static_cast<std::int16_t>(-work.levels[here]);
  }
  return last;
}

/// The same by plain rounding.
__device__ inline int round_levels(const TreeArgs& a, const Node& n, const Work& work, Piece piece) {
  const int c = piece.c(), b = piece.b(), size = c * 7 + b;
  int last = -1;
  for (int i = 0; i < 1 << (c + b); ++i) {
    const int here = ((piece.y() + (i >> c)) << n.path->log2_w) + piece.x() + (i & ((1 << c) - 1));
    const int v = work.values[here], m = v < 0 ? -v : v;
    const int level = static_cast<int>((m * a.step_inverse[c + b] + vstc::kRound) >> vstc::kRoundBits);
    work.levels[here] = static_cast<std::int16_t>(v < 0 ? -level : level);
    if (level && a.tables->rank[size][i] > last) last = a.tables->rank[size][i];
  }
  return last;
}

/// Grid: paths, jobs.
template <int kUnused = 0>
__global__ void __launch_bounds__(kThreads) finish_leaves(TreeArgs a) {
  __shared__ Refs refs;
  __shared__ Modes modes;
  __shared__ int best_candidate, coded_planes, piece_count, token_count;
  __shared__ int rate_parts[kThreads / 32];
  __shared__ long long square_parts[kThreads / 32];
  const int path = a.first_path + static_cast<int>(blockIdx.x), job = static_cast<int>(blockIdx.y);
  const int tid = static_cast<int>(threadIdx.x);
  const Node n = find_node(a, path, job);
  if (!n.whole) return;
  choose_modes(a, n, path, modes);
  const int log2_w = n.path->log2_w, log2_h = n.path->log2_h, area = n.w * n.h;
  const Costs cost(a, job);
  const auto decisions = [&](int candidate, int plane) {
    const std::size_t first = nodes_of(a, n, candidate, plane);
    return Decisions{a.node_costs + first, a.node_energies + first, a.node_choices + first};
  };
  if (tid == 0) {
    Joint best = vstc::kNever;
    best_candidate = 0;
    coded_planes = 0;
    const int root = node_at(a, n, log2_w, log2_h, 0, 0);
    for (int i = 0; i < modes.count; ++i) {
      Joint joint = a.lambda * modes.cost[modes.mode[i]];
      int before = -1, planes = 0;
      for (int p = 0; p < a.planes; ++p) {
        const Decisions d = decisions(i, p);
        const int context = vstc::coded_root_context(log2_w + log2_h, before);
        const Joint zero = a.lambda * cost.bit(context, false) + (d.energy[root] << 16);
        const Joint some = zero <= a.lambda * (cost.bit(context, true) + 2 * vstc::kBit)
                               ? vstc::kNever
                               : a.lambda * cost.bit(context, true) + d.coded[root];
        before = some < zero;
        planes |= before << p;
        joint += Halves::less(zero, some);
        // Behind the first plane, not before: the estimated distortion can be a little below 0.
        if (joint >= best) break;
      }
      if (joint < best) {
        best = joint;
        best_candidate = i;
        coded_planes = planes;
      }
    }
    token_count = 1;
  }
  __syncthreads();
  const int mode = modes.mode[best_candidate];
  Token* tokens = a.leaf_tokens + static_cast<std::size_t>(job) * a.leaf_token_size + n.path->leaf_tokens;
  const Work work(dynamic_shared<Piece>(), area);
  int rate = tid == 0 ? modes.cost[mode] : 0, before = -1;
  bool any_plane = false;
  long long squares = 0;
  for (int p = 0; p < a.planes; ++p) {
    const Decisions d = decisions(best_candidate, p);
    gather_references(a, n, p, refs);
    const Prediction prediction(a, n, refs, mode);
    make_residual(a, n, p, prediction, work.residual);
    for (int i = tid; i < area; i += kThreads) {
      work.levels[i] = 0;
      work.piece_of[i] = 0;
    }
    if (tid == 0) piece_count = coded_planes >> p & 1 ? list_pieces(a, n, cost, d, work.pieces) : 0;
    __syncthreads();
    const int pieces = piece_count, warp = tid / 32, lane = tid % 32;
    for (int i = warp; i < pieces; i += kThreads / 32) {
      const Piece q = work.pieces[i];
      for (int k = lane; k < 1 << (q.c() + q.b()); k += 32)
        work.piece_of[((q.y() + (k >> q.c())) << log2_w) + q.x() + (k & ((1 << q.c()) - 1))] =
            static_cast<std::uint16_t>(i + 1);
    }
    __syncthreads();
    for (int i = tid; i < area; i += kThreads)
      if (work.piece_of[i]) {
        const int b = work.pieces[work.piece_of[i] - 1].b(), y = i >> log2_w;
        work.down[i] = vertical_at(a, work.residual, n.w, i & (n.w - 1), y, b, takes_sine(b, y, vstc::sine_down(mode)));
      }
    __syncthreads();
    for (int i = tid; i < area; i += kThreads)
      if (work.piece_of[i]) {
        const int c = work.pieces[work.piece_of[i] - 1].c(), x = i & (n.w - 1);
        work.values[i] = horizontal_at(a, work.down, n.w, x, i >> log2_w, c, takes_sine(c, x, vstc::sine_across(mode)));
      }
    __syncthreads();
    Joint* scratch = a.scratch + 2 * (static_cast<std::size_t>(job) * a.leaf_size + n.path->leaf);
    for (int i = tid; i < pieces; i += kThreads)
      work.last()[i] = static_cast<std::int16_t>(
          a.optimise ? choose_levels(a, n, cost, work, work.pieces[i], scratch, scratch + area)
                     : round_levels(a, n, work, work.pieces[i]));
    __syncthreads();
    // Tokens and their cost.
    Token* tree = tokens + token_count;
    __syncthreads();
    if (tid == 0) {
      int count = 1;
      if (pieces > 0)
        count = write_tree(a, n, cost, d, work, tree);
      else
        tree[0] = 0;
      token_count += count;
    }
    __syncthreads();
    for (int i = tid; i < area; i += kThreads) {
      const int index = work.piece_of[i] - 1;
      if (index < 0 || work.last()[index] < 0) continue;
      const Piece q = work.pieces[index];
      const int x = (i & (n.w - 1)) - q.x(), y = (i >> log2_w) - q.y();
      tree[work.offset()[index] + (y << q.c()) + x] = work.levels[i];
      const auto magnitude = [&](int px, int py) {
        const int v = work.levels[((q.y() + py) << log2_w) + q.x() + px];
        return v < 0 ? -v : v;
      };
      const std::uint32_t around = terms_around(x, y, q.c(), q.b(), magnitude);
      rate += level_cost(cost, q.c() + q.b(), x, y, around, magnitude(x, y));
      if (a.tables->rank[q.c() * 7 + q.b()][(y << q.c()) + x] == work.last()[index])
        rate += block_cost(a, cost, q.c(), q.b(), work.last()[index]);
    }
    __syncthreads();
    if (tid == 0) rate += tree_cost(cost, tree, log2_w, log2_h, vstc::coded_root_context(log2_w + log2_h, before));
    before = tree[0] != 0;
    any_plane = any_plane || before;
    // Samples. Values become those of the decoder; the columns' transform goes into `down`.
    __syncthreads();
    for (int i = tid; i < area; i += kThreads) {
      const int level = work.levels[i], index = work.piece_of[i] - 1;
      if (index < 0) continue;
      const Piece q = work.pieces[index];
      const std::int64_t v = level == 0 ? 0 : dequantised(a, level, q.c() + q.b());
      work.values[i] = static_cast<std::int16_t>(v);
    }
    __syncthreads();
    for (int i = tid; i < area; i += kThreads) {
      const int index = work.piece_of[i] - 1;
      if (index < 0) continue;
      const Piece q = work.pieces[index];
      const int h = 1 << q.b(), x = i & (n.w - 1), j = (i >> log2_w) - q.y();
      const std::int16_t* m = a.tables->matrix[takes_sine(q.b(), q.y(), vstc::sine_down(mode))][q.b()] + j;
      int sum = 64;
      for (int k = 0; k < h; ++k) sum += m[k << q.b()] * work.values[((q.y() + k) << log2_w) + x];
      sum >>= 7;
      work.down[i] = static_cast<std::int16_t>(sum < -32768 ? -32768 : sum > 32767 ? 32767 : sum);
    }
    __syncthreads();
    const int most = (1 << a.bits) - 1, shift = 20 - a.bits;
    Sample* out = a.leaf + (static_cast<std::size_t>(job) * a.planes + p) * a.leaf_size + n.path->leaf;
    for (int i = tid; i < area; i += kThreads) {
      const int index = work.piece_of[i] - 1, x = i & (n.w - 1), y = i >> log2_w;
      int residual = 0;
      if (index >= 0) {
        const Piece q = work.pieces[index];
        const int w = 1 << q.c(), j = x - q.x();
        const std::int16_t* m = a.tables->matrix[takes_sine(q.c(), q.x(), vstc::sine_across(mode))][q.c()] + j;
        residual = 1 << (shift - 1);
        for (int k = 0; k < w; ++k) residual += m[k << q.c()] * work.down[(y << log2_w) + q.x() + k];
        residual >>= shift;
        residual = residual < -32768 ? -32768 : residual > 32767 ? 32767 : residual;
      }
      // The source is the prediction and the residual that was to be coded.
      const int source = a.plane[p].source[static_cast<std::ptrdiff_t>(n.y + y) * a.plane[p].pitch + n.x + x];
      int v = source - work.residual[i] + residual;
      v = v < 0 ? 0 : v > most ? most : v;
      out[i] = static_cast<Sample>(v);
      squares += static_cast<long long>(source - v) * (source - v);
    }
    __syncthreads();
  }
  rate = block_sum(rate, rate_parts);
  squares = block_sum(squares, square_parts);
  if (tid == 0) {
    const std::size_t index = static_cast<std::size_t>(job) * a.path_count + path;
    tokens[0] = static_cast<Token>(mode);
    a.leaf_counts[index] = token_count;
    a.leaf_modes[index] = static_cast<std::uint8_t>(mode);
    a.leaf_coded[index] = any_plane;
    a.leaf_costs[index] = (static_cast<Joint>(squares) << 16) + a.lambda * rate;
  }
}

}  // namespace trivelet::gpu::vstc_search
