// The encoder of the dense profile.
//
//   load      per resolution, fine to coarse: coefficients -> magnitudes block by block, planes of groups and quads;
//             what every plane gains, by frame
//   join      per block: root groups take over their temporal children's planes; tops of the lowest bands
//   weigh     per segment: gains of the passes
//   code      per segment a block of two warps: one lists decisions with their contexts, a batch of quads at once; a
//             lane of the other updates probabilities and narrows the range. Two buffers of decisions in shared memory
//             lie between them.
//   place, gather   codewords one behind the other
//
// A codeword grows in pages of 512, 1024, 2048 ... bytes from a pool, so nothing need be known of its length. Bytes
// that must move per sample: coefficients once (2 or 4), magnitudes twice (2 or 4 each) and, of what is not zero, once
// per plane from cache. Bound: the chain of dependent instructions per decision of the longest segments, hidden by
// those of other segments and GOPs.
#include <algorithm>

#include "gpu/entropy/dense.h"
#include "gpu/entropy/dense_batches.cuh"
#include "gpu/entropy/dense_codeword.cuh"
#include "gpu/entropy/measure.cuh"

namespace trivelet::gpu {

struct DenseEncodeArgs {
  TreeTables t;
  DenseTables dense;
  DenseMeasure measure;
  int planes;
  double offset[31];  // reconstruction offset by plane
  u8 *group, *open, *closed, *any, *all;
  double* frame_sum;  // [frame of an orientation][2 * planes + 1]: passes by
                      // plane from 0 on, then the energy
  u32 *top, *size, *pass_bytes;
  double *gain, *energy;
  u64 *total, *pool_used;
  u8* pool;
  u64 pool_size;
  u32* pages;  // [segment][kPages], in kPage bytes
  u32* output;
  u64 capacity;
};

namespace {

using EncodeArgs = DenseEncodeArgs;
constexpr int kLoadWarps = 4;
constexpr int kRing = 1024, kMostDecisions = 9;  // of a lane in a row
enum RingEnd : u32 { kGoesOn, kPass, kLast };    // ends a buffer of decisions

template <class V>
__device__ __forceinline__ DenseArrays<V> arrays(const EncodeArgs& a, V* values) {
  return {values, a.group, a.open, a.closed, a.any, a.all};
}

// ---------------------------------------------------------------------------------------------------------------- load

__device__ __forceinline__ double* frame_sums(const EncodeArgs& a, const DenseLevel& d, u32 block, int frame) {
  return a.frame_sum + (d.frame_sum + static_cast<u64>(block) * d.frame_sum_span + static_cast<u64>(frame)) *
                           static_cast<u64>(2 * a.planes + 1);
}

/// A warp per frame of groups of an orientation of a block. Sums are those of codec/base/lane_sums.h: lanes are
/// columns.
template <class C, class V>
__global__ void __launch_bounds__(kLoadWarps * 32)
    load_kernel(EncodeArgs a, const C* coefficients, V* values, u32 first_level) {
  const u32 level = a.dense.levels_by_resolution[first_level + blockIdx.y];
  const DeviceLevel& l = a.t.levels[level];
  const DenseLevel& d = a.dense.levels[level];
  const u32 task = blockIdx.x * kLoadWarps + threadIdx.x / 32;
  const u32 per_block = static_cast<u32>(l.orientations * d.groups_t);
  if (per_block == 0 || task >= per_block * static_cast<u32>(l.rows * l.columns)) return;
  const u32 block = task / per_block;
  const int o = static_cast<int>(task % per_block) / d.groups_t, gt = static_cast<int>(task % per_block) % d.groups_t;
  const int lane = static_cast<int>(threadIdx.x % 32), passes = 2 * a.planes;
  double* gains = dynamic_shared<double>() + static_cast<std::ptrdiff_t>(threadIdx.x / 32) * passes * 32 + lane;
  const DenseSegment<V> s = dense_segment(a.t, a.dense, arrays(a, values), level, block);
  const Patch<C> patch = patch_of(a.t, a.dense, a.measure.inverse_steps, coefficients, level, block, o);
  const DenseBox valid = s.valid[o];
  const int n = d.groups, side = 2 * n;
  for (int i = 0; i < passes; ++i) gains[32 * i] = 0;

  for (int f = 0; f < d.depth; ++f) {
    const int t = gt * d.depth + f;
    V* out = s.value + static_cast<std::ptrdiff_t>(o * d.frames + t) * side * side;
    u8* any = s.any + static_cast<std::ptrdiff_t>(o * d.frames + t) * n * n;
    u8* all = s.all + static_cast<std::ptrdiff_t>(o * d.frames + t) * n * n;
    double energy = 0;
    int most = 0;
    for (int y = 0; y < n; ++y)
      for (int x = lane; x < n; x += 32) {
        int bits = 0, least = 255;
        TRIVELET_UNROLL
        for (int j = 0; j < 4; ++j) {
          const int cy = 2 * y + (j >> 1), cx = 2 * x + (j & 1);
          u32 v = 0;
          if (t < valid.t && cy < valid.y && cx < valid.x) {
            const C c = patch.at(t, cy, cx);
            const auto limit = limited(c, patch.inverse_step);
            const double m = static_cast<double>(limit);
            energy += m * m;
            const u32 known = static_cast<u32>(static_cast<i32>(limit));
            v = known;
            if (c < 0) v |= 1u << kSignBit<V>;
            const int planes = 32 - __clz(static_cast<int>(known));
            bits = planes > bits ? planes : bits;
            least = planes < least ? planes : least;
            if (planes > 0) {
              double old = static_cast<double>(1u << (planes - 1)) + a.offset[planes - 1];
              gains[64 * (planes - 1)] += old * (2 * m - old);
              for (int p = planes - 2; p >= 0; --p) {
                const double now = static_cast<double>(known >> p << p) + a.offset[p];
                gains[64 * p + 32] += (now - old) * (2 * m - old - now);
                old = now;
              }
            }
          }
          out[cy * side + cx] = static_cast<V>(v);
        }
        any[y * n + x] = static_cast<u8>(bits);
        all[y * n + x] = static_cast<u8>(least);
        most = bits > most ? bits : most;
      }
    most = 2 * warp_max(most);
    double* sums = frame_sums(a, d, block, o * d.frames + t);
    energy = warp_tree(energy);
    if (lane == 0) sums[passes] = energy;
    for (int i = 0; i < passes; ++i) {
      const double sum = i < most ? warp_tree(gains[32 * i]) : 0;
      if (lane == 0) sums[i] = sum;
      gains[32 * i] = 0;
    }
  }

  const bool has_children = l.child >= 0;
  const DenseLevel& cd = a.dense.levels[has_children ? l.child : 0];
  const int child_orientations = has_children ? a.t.levels[l.child].orientations : 0;
  const DenseBox exists =
      has_children && l.k > 0 ? cd.exists[block_class(l, block)][o] : DenseBox{0, 0, 0};  // of children
  const u8* child = a.group + cd.group + static_cast<u64>(block) * cd.group_span;
  int most = 0;
  for (int y = 0; y < n; ++y)
    for (int x = lane; x < n; x += 32) {
      int planes = 0, below = 0, closed = 255;
      for (int f = 0; f < d.depth; ++f) {
        const int bits = s.any[(static_cast<std::ptrdiff_t>(o * d.frames + gt * d.depth + f) * n + y) * n + x];
        planes = bits > planes ? bits : planes;
      }
      if (has_children && l.k == 0) {
        for (int i = 0; i < child_orientations; ++i) {
          const int p = child[(static_cast<std::ptrdiff_t>(i * cd.groups_t + gt) * n + y) * n + x];
          below = p > below ? p : below;
        }
      } else if (has_children) {
        for (int j = 0; j < 4 * d.depth; ++j) {
          const int ct = gt * d.depth + (j >> 2), cy = 2 * y + (j >> 1 & 1), cx = 2 * x + (j & 1);
          if (ct >= exists.t || cy >= exists.y || cx >= exists.x) continue;
          const int p = child[(static_cast<std::ptrdiff_t>(o * cd.groups_t + ct) * side + cy) * side + cx];
          below = p > below ? p : below;
          closed = p < closed ? p : closed;
        }
      }
      planes = below > planes ? below : planes;
      const std::ptrdiff_t at = (static_cast<std::ptrdiff_t>(o * d.groups_t + gt) * n + y) * n + x;
      s.group[at] = static_cast<u8>(planes);
      (a.open + d.group + static_cast<u64>(block) * d.group_span)[at] = static_cast<u8>(below);
      (a.closed + d.group + static_cast<u64>(block) * d.group_span)[at] = static_cast<u8>(closed);
      most = planes > most ? planes : most;
    }
  most = warp_max(most);
  if (lane == 0 && most) atomicMax(&a.top[l.first_segment + block], static_cast<u32>(most));
}

// ---------------------------------------------------------------------------------------------------------------- join

constexpr unsigned kJoinThreads = 128;

/// A block of threads per code block.
__global__ void join_kernel(EncodeArgs a) {
  u32 c = 0;
  while (blockIdx.x >= a.t.root_block[c + 1]) ++c;
  const u32 block = blockIdx.x - a.t.root_block[c];
  const u32* roots = a.t.roots + c * static_cast<u32>(a.t.families);
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const auto groups_of = [&](const DenseLevel& d) {
    return a.group + d.group + static_cast<u64>(block) * d.group_span;
  };

  for (int b = a.t.families - 1; b > 0; --b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    const DenseLevel& d = a.dense.levels[roots[b]];
    if (d.groups_t == 0 || l.temporal < 0) continue;
    const DeviceLevel& parent = a.t.levels[l.temporal];
    const DenseLevel& pd = a.dense.levels[l.temporal];
    const int per_frame = d.groups * d.groups, doubling = parent.family == 0 ? 0 : 1;
    for (int g = thread; g < pd.groups_t * per_frame; g += threads) {
      const int t = g / per_frame, i = g % per_frame, first = t << doubling;
      const int end = t == pd.groups_t - 1 ? d.groups_t : (t + 1) << doubling;
      u8* own = groups_of(pd) + g;
      u8 most = *own;
      for (int f = first; f < end && f < d.groups_t; ++f) {
        const u8 n = groups_of(d)[f * per_frame + i];
        most = n > most ? n : most;
      }
      *own = most;
    }
    __syncthreads();
  }
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    const DenseLevel& d = a.dense.levels[roots[b]];
    const u8* groups = groups_of(d);
    int most = 0;
    for (int g = thread; g < d.groups_t * d.groups * d.groups; g += threads) most = groups[g] > most ? groups[g] : most;
    if (most) atomicMax(&a.top[l.first_segment + block], static_cast<u32>(most));
  }
  __syncthreads();
  // Root groups without a temporal parent are active from the top.
  for (int b = 0; b < a.t.families; ++b) {
    const DeviceLevel& l = a.t.levels[roots[b]];
    const DenseLevel& d = a.dense.levels[roots[b]];
    if (l.temporal >= 0) continue;
    const DenseBox e = d.exists[block_class(l, block)][0];
    const u8 top = static_cast<u8>(a.top[l.first_segment + block]);
    for (int g = thread; g < d.groups_t * d.groups * d.groups; g += threads) {
      const Place p = place(static_cast<u32>(g), d.log2_groups, d.groups_t);
      groups_of(d)[g] = p.t < e.t && p.y < e.y && p.x < e.x ? top : 0;
    }
  }
}

// --------------------------------------------------------------------------------------------------------------- weigh

constexpr u32 kWeighWarps = 4;

/// A warp per segment.
__global__ void __launch_bounds__(kWeighWarps * 32) weigh_kernel(EncodeArgs a) {
  const u32 segment = blockIdx.x * kWeighWarps + threadIdx.x / 32;
  if (segment >= a.t.segment_count) return;
  const DeviceSegment at = a.t.segments[segment];
  const int top = static_cast<int>(a.top[segment]);
  // Pass i, starting with the top plane's first; after the last one the energy.
  for (int i = static_cast<int>(threadIdx.x % 32); i <= 2 * top; i += 32) {
    const int from = i == 2 * top ? 2 * a.planes : 2 * (top - 1 - i / 2) + i % 2;
    const double sum = weighted_sum(a.t, a.dense, a.measure, a.frame_sum, 2 * a.planes + 1, at, from);
    if (i == 2 * top)
      a.energy[segment] = sum;
    else
      a.gain[static_cast<u64>(segment) * static_cast<u64>(2 * a.planes) + static_cast<u64>(i)] = sum;
  }
}

// ---------------------------------------------------------------------------------------------------------------- code

struct CodeShared {
  Queue queue;
  u16 ring[2][kRing + 2];  // two more may be read
  u16 staged[kMostDecisions][32];
  u32 count[2];
  u32 end[2];
  typename RangeWriter::Mark marks[60];
  u32 size;
  u16 rates[dense::kSeenLimit + 2];
  u8 energy_class[256];
};

/// Lists decisions instead of coding them: this lane's.
struct Lister {
  u16* staged;  // [kMostDecisions][32], this lane's column
  const u8* classes;
  int count;
  __device__ __forceinline__ u32 energy_class(u32 energy) const { return classes[energy]; }
  __device__ __forceinline__ bool code(u32 context, bool truth) {
    staged[32 * count++] = static_cast<u16>(context | static_cast<u32>(truth) << 15);
    return truth;
  }
};

/// The warp that lists: decisions into the ring.
template <class V>
struct Modeller {
  static constexpr bool kByFrame = false;
  CodeShared& shared;
  const DenseSegment<V>& s;
  int lane, plane = 0;
  u32 buffer = 0, filled = 0;
  u32 mask = 255;

  __device__ void publish(RingEnd end) {
    __syncwarp();
    if (lane == 0) {
      shared.count[buffer] = filled;
      shared.end[buffer] = end;
    }
    __syncthreads();
    buffer ^= 1;
    filled = 0;
  }
  __device__ void append(int count) {
    const u32 n = static_cast<u32>(count);
    u32 at = sum_before(n, lane);
    const u32 all = __shfl_sync(kAllLanes, at + n, 31);
    if (all == 0) return;
    if (filled + all > kRing) publish(kGoesOn);
    at += filled;
    for (int i = 0; i < count; ++i) shared.ring[buffer][at + static_cast<u32>(i)] = shared.staged[i][lane];
    filled += all;
  }

  __device__ void begin() {}
  /// A batch: this lane's place, packed by `pack` and listed by `code`.
  template <class Pack, class Code>
  __device__ __forceinline__ void batch(const u32* indices, u32 n, int log2_groups, int frames, Pack pack, Code code) {
    Lister list{&shared.staged[0][lane], shared.energy_class, 0};
    if (static_cast<u32>(lane) < n) {
      const Place p = place(indices[lane], log2_groups, frames);
      QuadPack q;
      QuadTruth truth;
      if (pack(p, q, truth)) code(list, p, q, truth, static_cast<u32>(p.o * dense::kContexts));
    }
    append(list.count);
  }
  __device__ void children(const u32* indices, u32 n) {
    batch(
        indices, n, s.up_d->log2_groups, s.up_d->groups_t,
        [&](const Place& p, QuadPack& q, QuadTruth& truth) {
          return pack_children(s, p.o, p.t, p.y, p.x, plane, q, truth);
        },
        [&](Lister& list, const Place&, const QuadPack& q, const QuadTruth& truth, u32 context) {
          code_children(list, q, truth.left, 0, truth.own, context);
        });
  }
  __device__ void singles(const u32* indices, u32 n) {
    batch(
        indices, n, s.d->log2_groups, s.d->groups_t,
        [&](const Place& p, QuadPack& q, QuadTruth& truth) {
          return pack_single(s, p.o, p.t, p.y, p.x, plane, q, truth);
        },
        [&](Lister& list, const Place&, const QuadPack& q, const QuadTruth& truth, u32 context) {
          code_single(list, q, truth.left, 0, truth.own, context, s.k);
        });
  }
  __device__ void significance(const u32* indices, u32 n) {
    batch(
        indices, n, s.d->log2_groups, s.d->frames,
        [&](const Place& p, QuadPack& q, QuadTruth& truth) {
          return pack_significance(s, p.o, p.t, p.y, p.x, plane, q, truth);
        },
        [&](Lister& list, const Place& p, const QuadPack& q, const QuadTruth& truth, u32 context) {
          code_significance<V>(list, q, truth.left, 0, truth.own, context, context, dense::neighbour_weights(s.k, p.o),
                               mask);
        });
  }
  __device__ void refinement(const u32* indices, u32 n) {
    batch(
        indices, n, s.d->log2_groups, s.d->frames,
        [&](const Place& p, QuadPack& q, QuadTruth& truth) {
          return pack_refinement(s, p.o, p.t, p.y, p.x, plane, q, truth);
        },
        [&](Lister& list, const Place& p, const QuadPack& q, const QuadTruth& truth, u32 context) {
          code_refinement<V>(list, q, truth.left, 0, truth.own, context, dense::neighbour_weights(s.k, p.o), mask);
        });
  }
};

/// One lane's work. The state of a decision is loaded while the one before is coded.
__device__ __forceinline__ void code_decisions(RangeWriter& range, const u16* decisions, u32 count, u32* states,
                                               const u16* rates) {
  if (count == 0) return;
  u32 decision = decisions[0], next = decisions[1];
  u32 state = states[decision & 0x7fff];
  for (u32 i = 0; i < count; ++i) {
    const u32 after = decisions[i + 2];
    const bool more = i + 1 < count;
    const u32 context = decision & 0x7fff, next_context = more ? next & 0x7fff : context;
    u32 next_state = states[next_context];
    const bool bit = decision >> 15;
    const u32 one = state & 0xffff, seen = state >> 16;
    const i32 rate = rates[seen];
    range.put(bit, dense::limited_probability(one));
    state = static_cast<u32>(dense::moved_estimate(static_cast<i32>(one), bit, rate)) |
            (seen + (seen < dense::kSeenLimit)) << 16;
    states[context] = state;
    if (next_context != context) state = next_state;
    decision = next;
    next = after;
  }
}

template <class V>
__global__ void __launch_bounds__(64) code_kernel(EncodeArgs a, V* values) {
  __shared__ CodeShared shared;
  u32* states = dynamic_shared<u32>();
  const u32 segment = a.dense.order[blockIdx.x];
  const DeviceSegment at = a.t.segments[segment];
  const DenseSegment<V> s = dense_segment(a.t, a.dense, arrays(a, values), at.level, at.block);
  const int top = static_cast<int>(a.top[segment]);
  const int lane = static_cast<int>(threadIdx.x % 32);
  u32* pass_bytes = a.pass_bytes + static_cast<u64>(segment) * static_cast<u64>(2 * a.planes);
  if (top == 0) {
    if (threadIdx.x == 0) a.size[segment] = 0;
    return;
  }
  for (int i = static_cast<int>(threadIdx.x); i < s.orientations * dense::kContexts; i += 64)
    states[i] = a.dense.start[s.d->table[i / dense::kContexts] + static_cast<u32>(i % dense::kContexts)];
  for (u32 i = threadIdx.x; i <= dense::kSeenLimit; i += 64) shared.rates[i] = a.dense.rates[i];
  for (u32 i = threadIdx.x; i < 256; i += 64) shared.energy_class[i] = a.dense.energy_class[i];
  __syncthreads();

  if (threadIdx.x >= 32) {
    Modeller<V> model{shared, s, lane};
    for (int p = top - 1; p >= 0; --p) {
      model.plane = p;
      model.mask = energy_mask<V>(p);
      first_pass(s, p, lane, shared.queue, model);
      model.publish(kPass);
      if (p + 1 < top && (p > 0 || !a.measure.spare_last_pass)) second_pass(s, p, lane, shared.queue, model);
      model.publish(p > 0 ? kPass : kLast);
    }
    return;
  }

  u32* page = a.pages + static_cast<u64>(segment) * kPages;
  RangeWriter range(a.pool, a.pool_size, a.pool_used, page);
  int marks = 0;
  for (u32 buffer = 0;; buffer ^= 1) {
    __syncthreads();
    const u32 end = shared.end[buffer];
    if (lane == 0) {
      code_decisions(range, shared.ring[buffer], shared.count[buffer], states, shared.rates);
      if (end != kGoesOn) shared.marks[marks++] = range.mark();
    }
    __syncwarp();
    if (end == kLast) break;
  }
  if (lane == 0) {
    shared.size = range.finish();
    a.size[segment] = shared.size;
    if (range.lost()) shared.size = 0;
  }
  __syncwarp();
  const Pages pages{page, a.pool};
  for (int i = lane; i < 2 * top; i += 32)
    pass_bytes[i] = RangeWriter::bytes_until(shared.marks[i], pages, shared.size);
  __syncwarp();
  if (lane == 0)
    for (int i = 1; i < 2 * top; ++i)
      pass_bytes[i] = pass_bytes[i] < pass_bytes[i - 1] ? pass_bytes[i - 1] : pass_bytes[i];
}

// -------------------------------------------------------------------------------------------------------------- gather

constexpr u32 kPlaceThreads = 1024;

/// One block of threads: words of output before every segment, into pages[segment][kPages - 1], which no codeword of
/// less than 256 MiB needs.
__global__ void place_kernel(EncodeArgs a) {
  __shared__ u64 sums[kPlaceThreads / 32];
  __shared__ u64 before;
  const int lane = static_cast<int>(threadIdx.x % 32), warp = static_cast<int>(threadIdx.x / 32);
  if (threadIdx.x == 0) before = 0;
  for (u32 base = 0; base < a.t.segment_count; base += kPlaceThreads) {
    const u32 segment = base + threadIdx.x;
    const u64 words = segment < a.t.segment_count ? (static_cast<u64>(a.size[segment]) + 3) / 4 : 0;
    u64 at = sum_before(words, lane);
    if (lane == 31) sums[warp] = at + words;
    __syncthreads();
    at += before;
    for (int w = 0; w < warp; ++w) at += sums[w];
    if (segment < a.t.segment_count) a.pages[static_cast<u64>(segment) * kPages + kPages - 1] = static_cast<u32>(at);
    __syncthreads();
    if (threadIdx.x == kPlaceThreads - 1) before = at + words;
    __syncthreads();
  }
  if (threadIdx.x == 0) *a.total = before * 4;
}

constexpr u32 kGatherWarps = 4;

__global__ void __launch_bounds__(kGatherWarps * 32) gather_kernel(EncodeArgs a) {
  const u32 segment = blockIdx.x * kGatherWarps + threadIdx.x / 32;
  if (segment >= a.t.segment_count || *a.total > a.capacity || *a.pool_used > a.pool_size) return;
  const Pages pages{a.pages + static_cast<u64>(segment) * kPages, a.pool};
  const u32 size = a.size[segment];
  u32* out = a.output + pages.page[kPages - 1];
  for (u32 n = 4 * (threadIdx.x % 32); n < size; n += 128) {
    u32 word = *reinterpret_cast<const u32*>(pages.at(n));
    if (size - n < 4) word &= (1u << (8 * (size - n))) - 1;
    out[n / 4] = word;
  }
}

// Sections of meta, in bytes.
struct Sections {
  std::size_t gains, energy, tops, sizes, bytes, all;
  Sections(std::size_t segments, int planes) {
    const std::size_t passes = segments * 2 * static_cast<std::size_t>(planes);
    gains = 16;
    energy = gains + 8 * passes;
    tops = energy + 8 * segments;
    sizes = tops + 4 * segments;
    bytes = sizes + 4 * segments;
    all = bytes + 4 * passes;
  }
};

std::size_t pool_for(std::size_t capacity, std::size_t segments) { return 2 * capacity + segments * kPage; }

}  // namespace

DenseGopEncoder::DenseGopEncoder(const TreePlan& tree, const DensePlan& plan, int planes, int centroid,
                                 std::size_t capacity)
    : tree_(&tree),
      plan_(&plan),
      planes_(planes),
      centroid_(centroid),
      capacity_(capacity),
      values_(plan.values() * (planes > 15 ? 4 : 2)),
      meta_(Sections(tree.segments(), planes).all),
      bytes_(3 * plan.groups() + 2 * plan.quads()),
      frame_sums_(plan.frame_sums() * static_cast<std::size_t>(2 * planes + 1)),
      pool_(pool_for(capacity, tree.segments())),
      pages_(static_cast<std::size_t>(tree.segments()) * kPages),
      output_((capacity + 3) / 4) {}

std::size_t DenseGopEncoder::device_bytes() const {
  return values_.size() + meta_.size() + bytes_.size() + frame_sums_.size() * 8 + pool_.size() +
         (pages_.size() + output_.size()) * 4;
}

DenseEncodeArgs DenseGopEncoder::args() const {
  DenseEncodeArgs a{};
  a.t = tree_->tables();
  a.dense = plan_->tables();
  a.planes = planes_;
  a.group = bytes_.data();
  a.open = a.group + plan_->groups();
  a.closed = a.open + plan_->groups();
  a.any = a.closed + plan_->groups();
  a.all = a.any + plan_->quads();
  a.frame_sum = frame_sums_.data();
  const Sections s(tree_->segments(), planes_);
  std::byte* meta = meta_.data();
  a.total = reinterpret_cast<u64*>(meta);
  a.pool_used = a.total + 1;
  a.gain = reinterpret_cast<double*>(meta + s.gains);
  a.energy = reinterpret_cast<double*>(meta + s.energy);
  a.top = reinterpret_cast<u32*>(meta + s.tops);
  a.size = reinterpret_cast<u32*>(meta + s.sizes);
  a.pass_bytes = reinterpret_cast<u32*>(meta + s.bytes);
  a.pool = pool_.data();
  a.pool_size = pool_.size();
  a.pages = pages_.data();
  a.output = output_.data();
  a.capacity = capacity_;
  return a;
}

DenseGopEncoder::Meta DenseGopEncoder::view(const std::byte* meta) const {
  const Sections s(tree_->segments(), planes_);
  const auto* head = reinterpret_cast<const u64*>(meta);
  return {head[0],
          head[1],
          reinterpret_cast<const u32*>(meta + s.tops),
          reinterpret_cast<const u32*>(meta + s.sizes),
          reinterpret_cast<const u32*>(meta + s.bytes),
          reinterpret_cast<const double*>(meta + s.gains),
          reinterpret_cast<const double*>(meta + s.energy),
          2 * planes_};
}

template <class C, class V>
void DenseGopEncoder::run(const C* coefficients, const DenseMeasure& measure, const Stream& stream) {
  DenseEncodeArgs a = args();
  a.measure = measure;
  for (int p = 0; p <= 30; ++p)
    a.offset[p] = measure.inverse_steps ? static_cast<double>(reconstruction_offset(centroid_, p))
                                        : static_cast<double>(integer_reconstruction_offset(centroid_, p));
  V* values = reinterpret_cast<V*>(values_.data());
  check(cudaMemsetAsync(meta_.data(), 0, meta_.size(), stream.get()), "cudaMemsetAsync");
  const auto gains = static_cast<std::size_t>(kLoadWarps * 2 * planes_ * 32) * sizeof(double);
  check(cudaFuncSetAttribute(load_kernel<C, V>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(gains)),
        "cudaFuncSetAttribute");
  int orientations = 1;
  for (int k = tree_->resolutions() - 1; k >= 0; --k) {
    orientations = std::max(orientations, plan_->orientations(k));
    const u32 levels = plan_->first_level(k + 1) - plan_->first_level(k), frames = plan_->most_frames(k, true);
    if (levels == 0 || frames == 0) continue;
    launch("load_kernel", load_kernel<C, V>, dim3((frames + kLoadWarps - 1) / kLoadWarps, levels),
           dim3(kLoadWarps * 32), gains, stream.get(), a, coefficients, values, plan_->first_level(k));
  }
  launch("join_kernel", join_kernel, dim3(tree_->blocks()), dim3(kJoinThreads), 0, stream.get(), a);
  launch("weigh_kernel", weigh_kernel, dim3((tree_->segments() + kWeighWarps - 1) / kWeighWarps),
         dim3(kWeighWarps * 32), 0, stream.get(), a);
  const std::size_t states = static_cast<std::size_t>(orientations * dense::kContexts) * 4;
  check(cudaFuncSetAttribute(code_kernel<V>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(states)),
        "cudaFuncSetAttribute");
  launch("code_kernel", code_kernel<V>, dim3(tree_->segments()), dim3(64), states, stream.get(), a, values);
  launch("place_kernel", place_kernel, dim3(1), dim3(kPlaceThreads), 0, stream.get(), a);
  launch("gather_kernel", gather_kernel, dim3((tree_->segments() + kGatherWarps - 1) / kGatherWarps),
         dim3(kGatherWarps * 32), 0, stream.get(), a);
}

template <class C>
void DenseGopEncoder::encode(const C* coefficients, const DenseMeasure& measure, const Stream& stream) {
  wide() ? run<C, u32>(coefficients, measure, stream) : run<C, u16>(coefficients, measure, stream);
}

template <class C>
void DenseGopEncoder::encode_larger(std::size_t bytes, const C* coefficients, const DenseMeasure& measure,
                                    const Stream& stream) {
  stream.synchronize();
  pool_ = {};
  output_ = {};
  capacity_ = bytes;
  pool_ = DeviceBuffer<u8>(pool_for(bytes, tree_->segments()));
  output_ = DeviceBuffer<u32>((bytes + 3) / 4);
  encode(coefficients, measure, stream);
}

#define TRIVELET_INSTANTIATE(C)                                                        \
  template void DenseGopEncoder::encode(const C*, const DenseMeasure&, const Stream&); \
  template void DenseGopEncoder::encode_larger(std::size_t, const C*, const DenseMeasure&, const Stream&);
TRIVELET_INSTANTIATE(float)
TRIVELET_INSTANTIATE(std::int16_t)
TRIVELET_INSTANTIATE(std::int32_t)
#undef TRIVELET_INSTANTIATE

}  // namespace trivelet::gpu
