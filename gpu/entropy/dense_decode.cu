// The decoder of the dense profile.
//
//   gather    per part: its bytes to the other parts of its segment
//   decode    a warp per segment, all at once: plane by plane it waits until the segment it depends on is there. All
//             lanes gather what is known around a batch of quads; one lane decodes quad after quad and holds the range;
//             all write what came out
//   restore   magnitudes -> coefficients
//
// Bound: the chain of dependent instructions from one decision to the next, hidden by other segments and GOPs: as many
// warps as registers and the shared memory of their probabilities allow. That is why only those of one orientation and
// kind are in it at a time (7 KiB instead of 19 a warp). Bytes that must move per sample: the magnitudes' zeros once,
// what is not zero once per plane from cache, coefficients once; per segment and plane its probabilities, 15 KiB to
// and fro.
#include <algorithm>

#include "codec/transform/quantiser.h"
#include "gpu/entropy/dense.h"
#include "gpu/entropy/dense_batches.cuh"

namespace trivelet::gpu {

struct DenseDecodeArgs {
  TreeTables t;
  DenseTables dense;
  u8 *group, *open, *closed, *any, *all;
  const DenseSegmentInput* segment;
  const u32* codewords;
  u32* states;    // [segment][orientation][kSavedStates]
  u32* progress;  // [segment]: the lowest plane whose first pass is done; one more: tickets given out
  u32 orientations;
};

namespace {

using DecodeArgs = DenseDecodeArgs;

template <class V>
__device__ __forceinline__ DenseArrays<V> arrays(const DecodeArgs& a, V* values) {
  return {values, a.group, a.open, a.closed, a.any, a.all};
}

constexpr u32 kGatherWarps = 4;

__global__ void __launch_bounds__(kGatherWarps * 32)
    gather_kernel(const u8* bytes, const DensePartInput* parts, u32 count, u8* codewords) {
  const u32 i = blockIdx.x * kGatherWarps + threadIdx.x / 32;
  if (i >= count) return;
  const DensePartInput part = parts[i];
  for (u32 n = threadIdx.x % 32; n < part.size; n += 32) codewords[part.to + n] = bytes[part.from + n];
}

// -------------------------------------------------------------------------------------------------------------- decode

constexpr int kMostGroups = 128;  // along a row
constexpr int kResultBits = 9;

struct DecodeShared {
  QuadPack quad[32];
  u32 result[32];
  u32 trail[2][kMostGroups + 2];  // by column, of a row and the one before it: its tag and the quad's result
  Queue queue;
  u16 rates[dense::kSeenLimit + 2];
  u8 energy_class[256];
};

// Contexts whose probabilities are in shared memory for one orientation at a time (those of significance, or those of
// groups), and the others, which are always there.
constexpr u32 kSignificanceWindow = dense::kRefinement, kGroupWindow = dense::kContexts - dense::kAny,
              kKept = dense::kAny - dense::kRefinement;
constexpr u32 kWindowStates = std::max(kSignificanceWindow, kGroupWindow),
              kSavedStates = kSignificanceWindow + kGroupWindow;
static_assert(kSignificanceWindow % 4 == 0 && kGroupWindow % 4 == 0, "windows are copied by 16 bytes");

enum class Window : u32 { kSignificance, kGroups };

struct alignas(16) FourStates {
  u32 state[4];
};

/// The probabilities of a segment.
class SegmentStates {
 public:
  u32* states;  ///< shared: the window, then the probabilities of each orientation

  __device__ SegmentStates(u32* shared, u32* saved, const u32* start, const u32* tables, u32 orientations, u32 lane)
      : states(shared), saved_(saved), start_(start), tables_(tables), lane_(lane) {
    for (u32 i = lane; i < orientations * kKept; i += 32)
      states[kWindowStates + i] = start[tables[i / kKept] + dense::kRefinement + i % kKept];
  }
  /// What to add to the number of a context to find it in `states`, modulo 2^32.
  static __device__ __forceinline__ u32 at(Window window) {
    return window == Window::kSignificance ? 0u : 0u - dense::kAny;
  }
  static __device__ __forceinline__ u32 kept_at(int orientation) {
    return kWindowStates + static_cast<u32>(orientation) * kKept - dense::kRefinement;
  }
  /// By all lanes: makes this window the one that is there.
  __device__ void open(Window window, u32 orientation) {
    const u32 next = 2 * orientation + static_cast<u32>(window);
    if (next == open_) return;
    FourStates* here = reinterpret_cast<FourStates*>(states);
    if (open_ != kNone) {
      FourStates* to = place(open_);
      for (u32 i = lane_; i < size(open_) / 4; i += 32) to[i] = here[i];
      __syncwarp();
    }
    if (been_ >> next & 1) {
      const FourStates* from = place(next);
      for (u32 i = lane_; i < size(next) / 4; i += 32) here[i] = from[i];
    } else {
      const u32* from = start_ + tables_[orientation] + (window == Window::kGroups ? dense::kAny : 0);
      for (u32 i = lane_; i < size(next); i += 32) states[i] = from[i];
    }
    open_ = next;
    been_ |= 1u << next;
    __syncwarp();
  }

 private:
  static constexpr u32 kNone = ~0u;
  static __device__ __forceinline__ u32 size(u32 number) { return number & 1 ? kGroupWindow : kSignificanceWindow; }
  __device__ __forceinline__ FourStates* place(u32 number) const {
    return reinterpret_cast<FourStates*>(saved_ + (number >> 1) * kSavedStates + (number & 1) * kSignificanceWindow);
  }

  u32* saved_;  // by the same lanes that take them back
  const u32* start_;
  const u32* tables_;
  u32 lane_, open_ = kNone;
  u32 been_ = 0;  // which windows were there
};

/// codec/entropy/dense/range_coder.h's decoder, with the probabilities of a segment.
struct RangeReader {
  u32* states;
  const u16* rates;
  const u8* classes;
  const u32* words;
  u32 count, next = 0, ahead = 0;
  u64 value = 0;
  int spare = -32;
  u32 range = 0xffffffffu;

  __device__ void start() {
    load();
    fill();
    fill();
  }
  __device__ __forceinline__ void load() {
    const u32 w = next < count ? words[next] : 0;
    ahead = w << 24 | (w & 0xff00) << 8 | (w >> 8 & 0xff00) | w >> 24;
    ++next;
  }
  __device__ __forceinline__ void fill() {
    value |= static_cast<u64>(ahead) << -spare;
    spare += 32;
    load();
  }
  __device__ __forceinline__ u32 energy_class(u32 energy) const { return classes[energy]; }
  __device__ __forceinline__ bool code(u32 context, bool) {
    const u32 state = states[context], one = state & 0xffff, seen = state >> 16;
    const u32 split = dense::split_range(range, dense::limited_probability(one));
    const bool bit = static_cast<u32>(value >> 32) < split;
    value -= bit ? 0 : static_cast<u64>(split) << 32;
    range = bit ? split : range - split;
    const int shift = __clz(static_cast<int>(range));
    range <<= shift;
    value <<= shift;
    spare -= shift;
    if (spare < 0) fill();
    states[context] = static_cast<u32>(dense::moved_estimate(static_cast<i32>(one), bit, rates[seen])) |
                      (seen + (seen < dense::kSeenLimit)) << 16;
    return bit;
  }
};

/// The batches of a segment: decoded by lane 0, written by all.
template <class V>
struct BatchDecoder {
  static constexpr bool kByFrame = true;
  DecodeShared& shared;
  const DenseSegment<V>& s;
  SegmentStates& states;
  RangeReader range;
  int lane, plane = 0;
  u32 mask = 255;
  u32 tag = 0;                   // of the row that is being decoded; never used twice
  u32 left_index = 0, left = 0;  // the quad decoded last

  __device__ void begin() { left_index = ~u32{0} - 1; }

  /// What the quads above, in the same batch, came to: those at columns x - 1, x and x + 1.
  __device__ __forceinline__ u32 trail(u32 row_tag, u32 column) const {
    const u32 entry = shared.trail[row_tag & 1][column];
    return entry >> kResultBits == row_tag ? entry & ((1u << kResultBits) - 1) : 0;
  }
  /// pack(place, q) of every lane, then prepare(o) for the orientation of the first, then code(q, o, left, above) in
  /// order by one of them. `around`: turns the results of the row above into code's `above`. Returns the result of this
  /// lane.
  template <class Pack, class Prepare, class Around, class Code>
  __device__ __forceinline__ u32 batch(const u32* indices, u32 n, int log2_groups, int frames, Place& p, QuadPack& q,
                                       Pack pack, Prepare prepare, Around around, Code code) {
    bool busy = static_cast<u32>(lane) < n;
    if (busy) {
      q.index = indices[lane];
      p = place(q.index, log2_groups, frames);
      busy = pack(p, q);
      q.info |= static_cast<u32>(p.o) << kOrientationAt;
    }
    const u32 todo = __ballot_sync(kAllLanes, busy);
    if (todo == 0) return 0;
    prepare(static_cast<u32>(__shfl_sync(kAllLanes, p.o, __ffs(static_cast<int>(todo)) - 1)));
    if (busy) shared.quad[lane] = q;
    __syncwarp();
    if (lane == 0) {
      const u32 columns = (1u << log2_groups) - 1;
      u32 row = ~u32{0}, above_tag = 0;
      for (u32 m = todo; m; m &= m - 1) {
        const int i = __ffs(static_cast<int>(m)) - 1;
        const QuadPack quad = shared.quad[i];
        const u32 x = quad.index & columns;
        if (quad.index >> log2_groups != row) {
          const u32 next = quad.index >> log2_groups;
          above_tag = next == row + 1 && (next & columns) != 0 ? tag : 0;
          row = next;
          ++tag;
        }
        const u32 above = above_tag ? around(above_tag, x) : 0;
        left = code(quad, static_cast<int>(quad.info >> kOrientationAt),
                    quad.index == left_index + 1 && x > 0 ? left : 0, above);
        left_index = quad.index;
        shared.trail[tag & 1][x + 1] = tag << kResultBits | left;
        shared.result[i] = left;
      }
    }
    __syncwarp();
    return busy ? shared.result[lane] : 0;
  }

  __device__ void children(const u32* indices, u32 n) {
    const auto frame_of = [&](u32 index) { return static_cast<int>(index >> (2 * s.up_d->log2_groups)); };
    while (n > 0) {  // one orientation at a time
      const int o = frame_of(indices[0]) / s.up_d->groups_t;
      const u32 same = count_bits(
          __ballot_sync(kAllLanes, static_cast<u32>(lane) < n && frame_of(indices[lane]) < (o + 1) * s.up_d->groups_t));
      children_of_orientation(indices, same);
      indices += same;
      n -= same;
    }
  }
  __device__ void children_of_orientation(const u32* indices, u32 n) {
    const DenseLevel &d = *s.d, &u = *s.up_d;
    Place p{};
    QuadPack q{};
    const u32 got = batch(
        indices, n, u.log2_groups, u.groups_t, p, q,
        [&](const Place& at, QuadPack& quad) {
          QuadTruth none;
          return pack_children(s, at.o, at.t, at.y, at.x, plane, quad, none);
        },
        [&](u32 o) { states.open(Window::kGroups, o); }, [&](u32 row_tag, u32 x) { return trail(row_tag, x + 1); },
        [&](const QuadPack& quad, int, u32 before, u32 above) {
          return code_children(range, quad, before, above, 0, SegmentStates::at(Window::kGroups));
        });
    if (got) {
      const u8 planes = static_cast<u8>(plane + 1);
      if (got >> kNewlyOpenAt & 1) s.up_open[q.index] = planes;
      if (((q.info | got) & 255) == (q.info >> 8 & 255)) s.up_closed[q.index] = planes;
      for (u32 m = got & 255; m; m &= m - 1) {
        const int j = __ffs(static_cast<int>(m)) - 1, t = p.t * u.depth + (j >> 2);
        s.group[(static_cast<std::ptrdiff_t>(p.o * d.groups_t + t) * d.groups + 2 * p.y + (j >> 1 & 1)) * d.groups +
                2 * p.x + (j & 1)] = planes;
      }
    }
    __syncwarp();
  }
  __device__ void singles(const u32* indices, u32 n) {
    Place p{};
    QuadPack q{};
    const u32 got = batch(
        indices, n, s.d->log2_groups, s.d->groups_t, p, q,
        [&](const Place& at, QuadPack& quad) {
          QuadTruth none;
          return pack_single(s, at.o, at.t, at.y, at.x, plane, quad, none);
        },
        [&](u32 o) { states.open(Window::kGroups, o); }, [&](u32 row_tag, u32 x) { return trail(row_tag, x + 1); },
        [&](const QuadPack& quad, int, u32 before, u32 above) {
          return code_single(range, quad, before, above, 0, SegmentStates::at(Window::kGroups), s.k);
        });
    if (got) s.group[q.index] = static_cast<u8>(plane + 1);
    __syncwarp();
  }

  /// For quads of coefficients; see kAboveLeft.
  __device__ __forceinline__ u32 above_quad(u32 row_tag, u32 x) const {
    const u32 last = trail(row_tag, x), same = trail(row_tag, x + 1), next = trail(row_tag, x + 2);
    return (same >> 2 & 1) << kAboveLeft | (next >> 2 & 1) << kAboveLeftOfNext | (last >> 3 & 1) << kAboveRightOfLast |
           (same >> 3 & 1) << kAboveRight | (same >> 6 & 3) << kAboveSigns;
  }
  __device__ void significance(const u32* indices, u32 n) {
    const DenseLevel& d = *s.d;
    const u32 step = d.log2_groups > 0 ? n : 1;  // frames of a single quad look at each other: one at a time
    for (u32 first = 0; first < n; first += step) {
      Place p{};
      QuadPack q{};
      const u32 got = batch(
          indices + first, step, d.log2_groups, d.frames, p, q,
          [&](const Place& at, QuadPack& quad) {
            QuadTruth none;
            return pack_significance(s, at.o, at.t, at.y, at.x, plane, quad, none);
          },
          [&](u32 o) { states.open(Window::kSignificance, o); },
          [&](u32 row_tag, u32 x) { return above_quad(row_tag, x); },
          [&](const QuadPack& quad, int o, u32 before, u32 above) {
            return code_significance<V>(range, quad, before, above, 0, SegmentStates::at(Window::kSignificance),
                                        SegmentStates::kept_at(o), dense::neighbour_weights(s.k, o), mask);
          });
      if (got) {
        const int side = 2 * d.groups;
        V* to = s.value + (static_cast<std::ptrdiff_t>(p.o * d.frames + p.t) * side + 2 * p.y) * side + 2 * p.x;
        TRIVELET_UNROLL
        for (int j = 0; j < 4; ++j)
          if (got >> j & 1)
            to[(j >> 1) * side + (j & 1)] = static_cast<V>(1u << plane | (got >> (4 + j) & 1) << kSignBit<V>);
        const u32 significant = q.info >> kSignificantAt & 15, valid = q.info >> kValidAt & 15;
        if (significant == 0) s.any[q.index] = static_cast<u8>(plane + 1);
        if (((significant | got) & valid) == valid) s.all[q.index] = static_cast<u8>(plane + 1);
      }
      __syncwarp();
    }
  }
  __device__ void refinement(const u32* indices, u32 n) {
    const DenseLevel& d = *s.d;
    Place p{};
    QuadPack q{};
    const u32 got = batch(
        indices, n, d.log2_groups, d.frames, p, q,
        [&](const Place& at, QuadPack& quad) {
          QuadTruth none;
          return pack_refinement(s, at.o, at.t, at.y, at.x, plane, quad, none);
        },
        [](u32) {}, [&](u32 row_tag, u32 x) { return above_quad(row_tag, x); },
        [&](const QuadPack& quad, int o, u32 before, u32 above) {
          return code_refinement<V>(range, quad, before, above, 0, SegmentStates::kept_at(o),
                                    dense::neighbour_weights(s.k, o), mask);
        });
    if (got) {
      const int side = 2 * d.groups;
      V* to = s.value + (static_cast<std::ptrdiff_t>(p.o * d.frames + p.t) * side + 2 * p.y) * side + 2 * p.x;
      TRIVELET_UNROLL
      for (int j = 0; j < 4; ++j) {
        V& v = to[(j >> 1) * side + (j & 1)];
        if (got >> j & 1) v = static_cast<V>(v | 1u << plane);
      }
    }
    __syncwarp();
  }
};

/// Waits until the first pass of a plane of the parent segment is done and its results are visible.
__device__ __forceinline__ void wait_for(const u32* progress, int plane, int lane) {
  if (lane == 0)
    while (*static_cast<const volatile u32*>(progress) > static_cast<u32>(plane)) __nanosleep(500);
  __syncwarp();
  __threadfence();
}

// On a multiprocessor, as the registers are divided; BENCHMARKS.md has other numbers. Some allow no more than 16
// blocks.
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 750 || __CUDA_ARCH__ == 860 || __CUDA_ARCH__ == 870)
constexpr int kWarpsAtATime = 16;
#else
constexpr int kWarpsAtATime = 24;
#endif

/// Blocks of threads take segments in an order in which those depended on come first, so that they are at work already.
template <class V>
__global__ void __launch_bounds__(32, kWarpsAtATime) decode_kernel(DecodeArgs a, V* values) {
  __shared__ DecodeShared shared;
  const int lane = static_cast<int>(threadIdx.x);
  u32 ticket = lane == 0 ? atomicAdd(&a.progress[a.t.segment_count], 1u) + 1 : 0;
  ticket = __shfl_sync(kAllLanes, ticket, 0);
  const u32 segment = a.dense.parents_first[ticket];
  const DenseSegmentInput input = a.segment[segment];
  const int top = input.top, cut = input.cut;
  if (cut >= 2 * top) return;
  const DeviceSegment at = a.t.segments[segment];
  const DeviceLevel& l = a.t.levels[at.level];
  const DenseSegment<V> s = dense_segment(a.t, a.dense, arrays(a, values), at.level, at.block);
  const DenseLevel& d = *s.d;
  SegmentStates states(dynamic_shared<u32>(), a.states + static_cast<u64>(segment) * a.orientations * kSavedStates,
                       a.dense.start, d.table, static_cast<u32>(s.orientations), threadIdx.x);
  for (u32 i = threadIdx.x; i <= dense::kSeenLimit; i += 32) shared.rates[i] = a.dense.rates[i];
  for (u32 i = threadIdx.x; i < 256; i += 32) shared.energy_class[i] = a.dense.energy_class[i];
  for (u32 i = threadIdx.x; i < kMostGroups + 2; i += 32) shared.trail[0][i] = shared.trail[1][i] = 0;
  const int up = l.k > 0 ? l.up : l.temporal;
  if (up < 0) {  // root groups without a temporal parent are active from the top
    const DenseBox e = s.exists[0];
    for (u32 i = threadIdx.x; i < static_cast<u32>(d.groups_t) << (2 * d.log2_groups); i += 32) {
      const Place p = place(i, d.log2_groups, d.groups_t);
      if (p.t < e.t && p.y < e.y && p.x < e.x) s.group[i] = static_cast<u8>(top);
    }
  }
  __syncwarp();
  const u32* depended_on = up < 0 ? nullptr : &a.progress[a.t.levels[up].first_segment + at.block];
  RangeReader range{states.states, shared.rates, shared.energy_class, a.codewords + input.offset / 4,
                    (input.size + 3) / 4};
  if (lane == 0) range.start();
  BatchDecoder<V> decoder{shared, s, states, range, lane};
  for (int p = top - 1; 2 * p + 1 >= cut && p >= 0; --p) {
    decoder.plane = p;
    decoder.mask = energy_mask<V>(p);
    if (depended_on) wait_for(depended_on, p, lane);
    first_pass(s, p, lane, shared.queue, decoder);
    if (lane == 0) {
      __threadfence();
      *static_cast<volatile u32*>(&a.progress[segment]) = static_cast<u32>(p);
    }
    if (2 * p >= cut && p + 1 < top) second_pass(s, p, lane, shared.queue, decoder);
  }
}

// ------------------------------------------------------------------------------------------------------------- restore

constexpr u32 kRestoreWarps = 4;

__device__ __forceinline__ float restored(u32 m, bool negative, float step, float offset, i32, const float*) {
  const float v = (static_cast<float>(static_cast<i32>(m)) + offset) * step;
  return negative ? -v : v;
}
template <class C>
__device__ __forceinline__ C restored(u32 m, bool negative, float, float, i32 offset, const C*) {
  const i32 v = static_cast<i32>(m) + offset;
  return static_cast<C>(negative ? -v : v);
}

/// A warp for each frame of an orientation of a block; writes the non-zero coefficients.
template <class C, class V>
__global__ void __launch_bounds__(kRestoreWarps * 32)
    restore_kernel(DecodeArgs a, V* values, C* coefficients, const float* steps, int centroid, u32 first_level) {
  const u32 level = a.dense.levels_by_resolution[first_level + blockIdx.y];
  const DeviceLevel& l = a.t.levels[level];
  const DenseLevel& d = a.dense.levels[level];
  const u32 task = blockIdx.x * kRestoreWarps + threadIdx.x / 32,
            per_block = static_cast<u32>(l.orientations * d.frames);
  if (per_block == 0 || !l.wanted || task >= per_block * static_cast<u32>(l.rows * l.columns)) return;
  const u32 block = task / per_block;
  const int o = static_cast<int>(task % per_block) / d.frames, t = static_cast<int>(task % per_block) % d.frames;
  const DenseSegmentInput input = a.segment[l.first_segment + block];
  if (input.cut >= 2 * input.top) return;
  const DenseSegment<V> s = dense_segment(a.t, a.dense, arrays(a, values), level, block);
  const DenseBox valid = s.valid[o];
  if (t >= valid.t) return;
  const int lane = static_cast<int>(threadIdx.x % 32), side = 2 * d.groups, low = input.cut >> 1;
  const DeviceBand band = a.t.bands[l.band + static_cast<u32>(o)];
  const int by = static_cast<int>(block) / l.columns, bx = static_cast<int>(block) % l.columns;
  C* out = coefficients + band.origin + static_cast<u64>(t) * band.frame_stride +
           static_cast<u64>(by * l.side) * band.row_stride + static_cast<u64>(bx * l.side);
  const V* in = s.value + static_cast<std::ptrdiff_t>(o * d.frames + t) * side * side;
  const float step = steps ? steps[d.slot + static_cast<u32>(o)] : 1.0f;
  // After a first pass alone, coefficients that are older than it still have an interval twice as wide.
  const u32 older = input.cut & 1 ? 2u << low : 0xffffffffu;
  const float fine = reconstruction_offset(centroid, low), wide = reconstruction_offset(centroid, low + 1);
  const i32 integer_fine = integer_reconstruction_offset(centroid, low),
            integer_wide = integer_reconstruction_offset(centroid, low + 1);
  for (int y = 0; y < valid.y; ++y) {
    for (int x = lane; x < valid.x; x += 32) {
      const u32 v = in[y * side + x], m = magnitude_bits<V>(v);
      if (m == 0) continue;
      const bool is_older = m >= older;
      out[static_cast<u64>(y) * band.row_stride + static_cast<u64>(x)] =
          restored(m, is_negative<V>(v), step, is_older ? wide : fine, is_older ? integer_wide : integer_fine,
                   static_cast<const C*>(nullptr));
    }
  }
}

}  // namespace

DenseGopDecoder::DenseGopDecoder(const TreePlan& tree, const DensePlan& plan, int planes)
    : tree_(&tree),
      plan_(&plan),
      planes_(planes),
      orientations_(1),
      values_(plan.values() * (planes > 15 ? 4 : 2)),
      bytes_(3 * plan.groups() + 2 * plan.quads()),
      segments_(tree.segments()),
      progress_(tree.segments() + 1) {
  for (int k = 0; k < tree.resolutions(); ++k) orientations_ = std::max(orientations_, plan.orientations(k));
  states_ = DeviceBuffer<u32>(static_cast<std::size_t>(tree.segments()) * static_cast<std::size_t>(orientations_) *
                              kSavedStates);
}

std::size_t DenseGopDecoder::device_bytes() const {
  return values_.size() + bytes_.size() + segments_.size() * sizeof(DenseSegmentInput) +
         (codewords_.size() + states_.size() + progress_.size()) * 4;
}

DenseDecodeArgs DenseGopDecoder::args() const {
  DecodeArgs a{};
  a.t = tree_->tables();
  a.dense = plan_->tables();
  a.group = bytes_.data();
  a.open = a.group + plan_->groups();
  a.closed = a.open + plan_->groups();
  a.any = a.closed + plan_->groups();
  a.all = a.any + plan_->quads();
  a.segment = segments_.data();
  a.codewords = codewords_.data();
  a.states = states_.data();
  a.orientations = static_cast<u32>(orientations_);
  a.progress = progress_.data();
  return a;
}

template <class V>
void DenseGopDecoder::run(const Stream& stream) {
  const std::size_t states = (kWindowStates + static_cast<std::size_t>(orientations_) * kKept) * sizeof(u32);
  check(cudaFuncSetAttribute(decode_kernel<V>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(states)),
        "cudaFuncSetAttribute");
  launch("decode_kernel", decode_kernel<V>, dim3(tree_->segments()), dim3(32), states, stream.get(), args(),
         reinterpret_cast<V*>(values_.data()));
}

void DenseGopDecoder::decode(const std::uint8_t* bytes, const DensePartInput* parts, std::uint32_t part_count,
                             std::size_t codeword_bytes, const Stream& stream) {
  const std::size_t words = (codeword_bytes + 3) / 4;
  if (codewords_.size() < words) {
    stream.synchronize();
    codewords_ = {};
    codewords_ = DeviceBuffer<u32>(words + words / 4);
  }
  const auto clear = [&](auto& buffer, std::size_t bytes_used) {
    if (bytes_used) check(cudaMemsetAsync(buffer.data(), 0, bytes_used, stream.get()), "cudaMemsetAsync");
  };
  clear(codewords_, words * 4);
  clear(values_, values_.size());
  clear(bytes_, bytes_.size());
  check(cudaMemsetAsync(progress_.data(), 0xff, progress_.size() * 4, stream.get()), "cudaMemsetAsync");
  if (part_count)
    launch("gather_kernel", gather_kernel, dim3((part_count + kGatherWarps - 1) / kGatherWarps),
           dim3(kGatherWarps * 32), 0, stream.get(), bytes, parts, part_count,
           reinterpret_cast<u8*>(codewords_.data()));
  wide() ? run<u32>(stream) : run<u16>(stream);
}

template <class C>
void DenseGopDecoder::restore(C* coefficients, const float* steps, int centroid, const Stream& stream) {
  for (int k = 0; k < tree_->resolutions(); ++k) {
    const u32 levels = plan_->first_level(k + 1) - plan_->first_level(k), frames = plan_->most_frames(k, false);
    if (levels == 0 || frames == 0) continue;
    const dim3 grid((frames + kRestoreWarps - 1) / kRestoreWarps, levels), threads(kRestoreWarps * 32);
    if (wide())
      launch("restore_kernel", restore_kernel<C, u32>, grid, threads, 0, stream.get(), args(),
             reinterpret_cast<u32*>(values_.data()), coefficients, steps, centroid, plan_->first_level(k));
    else
      launch("restore_kernel", restore_kernel<C, u16>, grid, threads, 0, stream.get(), args(),
             reinterpret_cast<u16*>(values_.data()), coefficients, steps, centroid, plan_->first_level(k));
  }
}

template void DenseGopDecoder::restore(float*, const float*, int, const Stream&);
template void DenseGopDecoder::restore(std::int16_t*, const float*, int, const Stream&);
template void DenseGopDecoder::restore(std::int32_t*, const float*, int, const Stream&);

}  // namespace trivelet::gpu
