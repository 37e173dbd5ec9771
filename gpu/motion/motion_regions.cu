// The search for motion in frames on the device: codec/motion/motion_tree.h with candidates measured by warps.
//
//   roots    a warp for each largest block of all frames at once
//   choice   a block of threads for each region; its root blocks follow one another, as each depends on those before
#include <cstring>
#include <new>

#include "codec/motion/sad_kernels.h"
#include "gpu/motion/motion_parts.h"

namespace trivelet::gpu::motion_parts {
namespace {

constexpr int kRootWarps = 4;    // root blocks of a block of threads
constexpr int kSearchWarps = 2;  // of a region: each has every other row of its root blocks
constexpr int kLanesOfCell = 4;  // each has two rows, four apart

/// A barrier of a thread block for two warps: one arrives, the other one waits for it. Earlier writes are visible after
/// it. Its number is a constant in the instruction, because a barrier with a number in a register reserves all 16 of a
/// block; a multiprocessor has 64, so no more than four blocks would fit.
constexpr unsigned kThreadsAtBarrier = 2 * kWarp;
constexpr int kBarriersOfRow = kMotionRegion / kMotionRoot - 1;
template <unsigned kBarrier = 1>
__device__ __forceinline__ void at_barrier(unsigned barrier, bool wait) {
  if (barrier != kBarrier) {
    if constexpr (kBarrier < kSearchWarps * kBarriersOfRow) at_barrier<kBarrier + 1>(barrier, wait);
    return;
  }
#if defined(TRIVELET_CUDA_EMULATION)
  if (wait)
    emu::block.arrive_and_wait(barrier, kThreadsAtBarrier);
  else
    emu::block.arrive(barrier, kThreadsAtBarrier);
#else
  if (wait)
    asm volatile("bar.sync %0, %1;" ::"n"(kBarrier), "n"(kThreadsAtBarrier) : "memory");
  else
    asm volatile("bar.arrive %0, %1;" ::"n"(kBarrier), "n"(kThreadsAtBarrier) : "memory");
#endif
}
__device__ __forceinline__ void arrive_at(unsigned barrier) {
  __threadfence_block();
  at_barrier(barrier, false);
}
__device__ __forceinline__ void wait_at(unsigned barrier) { at_barrier(barrier, true); }
/// The barrier after a root block: never the first of several in a row. Rows of the same warp share theirs: before it
/// arrives at one again it has waited for the other warp's work after it.
__device__ __forceinline__ unsigned done_barrier(int row, int column) {
  return static_cast<unsigned>(1 + row % kSearchWarps * kBarriersOfRow + std::max(0, column - 1));
}

/// Eight samples, two in a word: a word is the sum of one number and of 2^16 times another one, with signs.
struct Row {
  std::uint32_t of[4];
};
__device__ __forceinline__ std::uint32_t load_word(const std::uint32_t* p) {
#if defined(TRIVELET_CUDA_EMULATION)
  return *p;
#else
  std::uint32_t v;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
#endif
}
/// `kWords` words from any place on.
template <int kWords>
__device__ __forceinline__ void load_words(const void* p, std::uint32_t* out) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const auto shift = static_cast<unsigned>(address & 3) * 8;
  std::uint32_t low = load_word(words);
  TRIVELET_UNROLL
  for (int i = 0; i < kWords; ++i) {
    const std::uint32_t high = load_word(words + i + 1);
    out[i] = __funnelshift_r(low, high, shift);
    low = high;
  }
}

/// Rows of eight samples, two words of bytes or four of 16 bits, and what is done with them.
template <class T>
struct Samples;
template <>
struct Samples<std::uint8_t> {
  static constexpr int kWords = 2;
  __device__ static std::uint32_t both(std::uint8_t v) { return v * 0x1010101u; }
  __device__ static std::uint32_t mean(std::uint32_t a, std::uint32_t b) {
    return (a | b) - (((a ^ b) & 0xfefefefeu) >> 1);
  }
  __device__ static Row difference(const std::uint32_t* a, const std::uint32_t* b) {
    Row r;
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      const unsigned pair = i % 2 == 0 ? 0x4140 : 0x4342;
      r.of[i] = __byte_perm(a[i / 2], 0, pair) - __byte_perm(b[i / 2], 0, pair);
    }
    return r;
  }
  __device__ static unsigned magnitudes(const std::uint32_t* a, const std::uint32_t* b) {
    unsigned sum = 0;
    TRIVELET_UNROLL
    for (int i = 0; i < kWords; ++i) {
#if defined(TRIVELET_CUDA_EMULATION)
      for (int j = 0; j < 32; j += 8)
        sum += static_cast<unsigned>(std::abs(static_cast<int>(a[i] >> j & 255) - static_cast<int>(b[i] >> j & 255)));
#else
      sum += __vsadu4(a[i], b[i]);
#endif
    }
    return sum;
  }
};
template <>
struct Samples<std::int16_t> {
  static constexpr int kWords = 4;
  static constexpr std::uint32_t kHigh = both_halves(1 << 15), kRounding = both_halves(1 << (kDeepShift - 1));
  __device__ static std::uint32_t both(std::int16_t v) { return both_halves(v + kBias); }
  __device__ static std::uint32_t mean(std::uint32_t a, std::uint32_t b) {
    return (a + b + both_halves(1)) >> 1 & both_halves(0x7fff);
  }
  __device__ static Row difference(const std::uint32_t* a, const std::uint32_t* b) {
    Row r;
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i)
      r.of[i] = (((a[i] | kHigh) - b[i] + kRounding) >> kDeepShift & both_halves(0xffff >> kDeepShift)) -
                both_halves(1 << (15 - kDeepShift));
    return r;
  }
  __device__ static unsigned magnitudes(const std::uint32_t* a, const std::uint32_t* b) {
    unsigned sum = 0;
    TRIVELET_UNROLL
    for (int i = 0; i < kWords; ++i)
      sum += static_cast<unsigned>(abs(static_cast<int>(a[i] & 0xffff) - static_cast<int>(b[i] & 0xffff)) +
                                   abs(static_cast<int>(a[i] >> 16) - static_cast<int>(b[i] >> 16)));
    return sum;
  }
};

/// Of the magnitudes of two numbers in a word.
__device__ __forceinline__ unsigned larger(std::uint32_t v) {
  const int low = static_cast<std::int16_t>(v), high = static_cast<std::int32_t>(v - static_cast<unsigned>(low)) >> 16;
  return static_cast<unsigned>(std::max(abs(low), abs(high)));
}
__device__ __forceinline__ unsigned larger_of_row(const Row& m) {
  const std::uint32_t a = m.of[0] + m.of[2], b = m.of[1] + m.of[3], c = m.of[0] - m.of[2], d = m.of[1] - m.of[3];
  return larger(a + b) + larger(a - b) + larger(c + d) + larger(c - d);
}
/// This lane's share of half the sum of magnitudes of a cell's transform: it has two rows, four apart. Rows come first,
/// because the last stage, along rows, is the maximum.
__device__ __forceinline__ unsigned transform_share(Row p, Row q) {
  TRIVELET_UNROLL
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t u = p.of[i], v = q.of[i];
    p.of[i] = u + v;
    q.of[i] = u - v;
  }
  TRIVELET_UNROLL
  for (unsigned d = 2; d > 0; d /= 2) {
    const std::uint32_t sign = (threadIdx.x & d) ? ~0u : 1;
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      p.of[i] = __shfl_xor_sync(kAllLanes, p.of[i], d) + sign * p.of[i];
      q.of[i] = __shfl_xor_sync(kAllLanes, q.of[i], d) + sign * q.of[i];
    }
  }
  return larger_of_row(p) + larger_of_row(q);
}

/// What measures candidates for a warp, in shared memory. All lanes call all members together.
template <class T>
class Measurer {
  using Of = Samples<T>;

 public:
  SearchWork work;

  __device__ Measurer(const SearchOfLevel& s, int t, const MotionReferences& references, const MotionVector* coarse)
      : s_(s), t_(t), coarse_(coarse), current_(reinterpret_cast<const T*>(s.whole) + t * s.picture.plane) {
    const int place[2] = {references.past, references.other};
    for (int k = 0; k < 2; ++k)
      pictures_[k] = reinterpret_cast<const T*>(s.quarters) +
                     s.held[place[k] < 0 ? place[0] : place[k]] * (kPlanes * s.picture.plane);
  }

  __device__ static int first() { return static_cast<int>(threadIdx.x); }
  __device__ static int step() { return kWarp; }
  __device__ static void sync() { __syncwarp(); }
  __device__ static void enter(int, int) {}

  __device__ TRIVELET_NOINLINE void compare(int n, int y, int x, int size) { each<false>(n, y, x, size); }
  __device__ TRIVELET_NOINLINE void measure(int n, int y, int x, int size) { each<true>(n, y, x, size); }

  __device__ TRIVELET_NOINLINE void compare_starts(int y, int x) {
    for (int k = 0; k < 2; ++k) {
      for (int i = first(); i < work.starts[k] * kMotionRoot * kMotionRoot; i += kWarp) {
        const int start = i / (kMotionRoot * kMotionRoot), cell = i % (kMotionRoot * kMotionRoot);
        const int top = y + cell / kMotionRoot * kMotionCell, left = x + cell % kMotionRoot * kMotionCell;
        const T* a = target(top, left);
        const T* b = predicted(k, work.start[k][static_cast<std::size_t>(start)], top, left);
        unsigned sum = 0;
        TRIVELET_UNROLL
        for (int row = 0; row < kMotionCell; ++row) {
          std::uint32_t p[Of::kWords], q[Of::kWords];
          load_words<Of::kWords>(a + row * s_.picture.stride, p);
          load_words<Of::kWords>(b + row * (kPlanes * s_.picture.stride), q);
          sum += Of::magnitudes(p, q);
        }
        work.started[k][start][cell] = static_cast<std::uint16_t>(sizeof(T) == 1 ? sum : sum >> kDeepShift);
      }
    }
    sync();
  }

  __device__ MotionVector coarse(int reference, int row, int column) const {
    const CoarseBlocks& b = s_.blocks;
    if (row < 0 || column < 0 || row >= b.rows || column >= b.columns) return {};
    return coarse_[(t_ * 2 + reference) * static_cast<std::ptrdiff_t>(b.rows * b.columns) + row * b.columns + column];
  }

  __device__ TRIVELET_NOINLINE void plain(int cy, int cx, int log2, std::int8_t* out) const {
    const int n = 1 << log2;
    for (int i = 0; i < s_.components; ++i) {
      const int cell_y = cell_size(s_.scale[i].shift_y), cell_x = cell_size(s_.scale[i].shift_x);
      const int y0 = cy * cell_y, x0 = cx * cell_x;
      const int y1 = std::min(s_.component_height[i], y0 + (cell_y << log2)),
                x1 = std::min(s_.component_width[i], x0 + (cell_x << log2));
      const std::int32_t* sums =
          s_.sums + (i * s_.sums_places + t_) * (static_cast<std::ptrdiff_t>(s_.grid.rows) * s_.grid.columns);
      std::int32_t sum = 0;
      for (int k = first(); k < n * n; k += kWarp)
        sum += sums[(cy + (k >> log2)) * static_cast<std::ptrdiff_t>(s_.grid.columns) + cx + (k & (n - 1))];
      for (unsigned d = kWarp / 2; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
      out[i] = plain_of(sum, std::max(1, (y1 - y0) * (x1 - x0)), s_.bits);
    }
  }

 private:
  __device__ const T* target(int y, int x) const { return current_ + (y + kPad) * s_.picture.stride + (x + kPad); }
  __device__ const T* predicted(int reference, MotionVector v, int y, int x) const {
    const int plane = (v.y & 3) * kQuarters + (v.x & 3);
    return pictures_[reference] + ((y + (v.y >> 2) + kPad) * kPlanes + plane) * s_.picture.stride +
           (x + (v.x >> 2) + kPad);
  }

  // What a candidate predicts a row of eight samples by.
  struct Sources {
    const T *one, *other;  // null: a constant; only one
    std::uint32_t plain;
  };
  __device__ __forceinline__ void load_prediction(const Sources& from, std::ptrdiff_t at, std::uint32_t* out) const {
    if (!from.one) {
      TRIVELET_UNROLL
      for (int i = 0; i < Of::kWords; ++i) out[i] = from.plain;
      return;
    }
    load_words<Of::kWords>(from.one + at, out);
    if (!from.other) return;
    std::uint32_t more[Of::kWords];
    load_words<Of::kWords>(from.other + at, more);
    TRIVELET_UNROLL
    for (int i = 0; i < Of::kWords; ++i) out[i] = Of::mean(out[i], more[i]);
  }

  // Measures the first n candidates: four lanes a cell.
  template <bool kTransforms>
  __device__ __forceinline__ void each(int n, int y, int x, int size) {
    sync();
    const int log2_columns = 31 - __clz(size / kMotionCell), log2_lanes = std::min(5, 2 + 2 * log2_columns);
    const int lanes = 1 << log2_lanes, lane = first();
    const T* const block = target(y, x);
    const std::ptrdiff_t stride = s_.picture.stride;
    for (int begin = 0; begin < n; begin += kWarp >> log2_lanes) {
      const int wanted = begin + (lane >> log2_lanes);
      const Tried& t = work.tried[std::min(wanted, n - 1)];
      const int k = t.uses >> 1 & ~t.uses;  // the only reference, or the first of both
      Sources from{t.uses == 0 ? nullptr : predicted(k, t.v[static_cast<std::size_t>(k)], y, x),
                   t.uses == 3 ? predicted(1, t.v[1], y, x) : nullptr, Of::both(searched_plain(t.plain, T{}))};
      unsigned sum = 0;
      for (int cell = (lane & (lanes - 1)) / kLanesOfCell; cell < 1 << 2 * log2_columns; cell += lanes / kLanesOfCell) {
        const int row = (cell >> log2_columns) * kMotionCell + lane % kLanesOfCell;
        const int column = (cell & ((1 << log2_columns) - 1)) * kMotionCell;
        std::uint32_t a[2][Of::kWords], b[2][Of::kWords];
        TRIVELET_UNROLL
        for (int i = 0; i < 2; ++i) {
          load_words<Of::kWords>(block + (row + 4 * i) * stride + column, a[i]);
          load_prediction(from, (row + 4 * i) * (kPlanes * stride) + column, b[i]);
        }
        unsigned share = kTransforms ? transform_share(Of::difference(a[0], b[0]), Of::difference(a[1], b[1]))
                                     : Of::magnitudes(a[0], b[0]) + Of::magnitudes(a[1], b[1]);
        if (!kTransforms && sizeof(T) > 1) {  // rounded in each cell
          share += __shfl_xor_sync(kAllLanes, share, 1u);
          share += __shfl_xor_sync(kAllLanes, share, 2u);
          share = lane % kLanesOfCell == 0 ? share >> kDeepShift : 0;
        }
        sum += share;
      }
      TRIVELET_UNROLL
      for (int d = 1; d < kWarp; d *= 2) {
        const unsigned other = __shfl_xor_sync(kAllLanes, sum, static_cast<unsigned>(d));
        if (d < lanes) sum += other;
      }
      if (wanted < n && (lane & (lanes - 1)) == 0)
        work.cost[wanted] = static_cast<int>(sum) * (kTransforms ? kSatdUnit : kSadUnit);
    }
    sync();
  }

  const SearchOfLevel& s_;
  int t_;
  const MotionVector* coarse_;
  const T* current_;
  const T* pictures_[2];
};

/// The frame of blockIdx.y.
struct FrameOfSearch {
  MotionPlaces places;
  MotionCell* cells;
  const MotionVector* coarse;
  int t;
  __device__ explicit FrameOfSearch(const SearchOfLevel& s) {
    const int number = static_cast<int>(blockIdx.y);
    const bool closed = number == s.count;
    places = closed ? s.closed : s.places;
    cells = closed ? s.closed_cells : s.cells;
    coarse = closed ? s.closed_coarse : s.coarse;
    t = closed ? 1 << s.level : s.place(number + s.first);
  }
  __device__ MotionRegion region(const SearchOfLevel& s, int number) const {
    const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(s.grid.rows) * s.grid.columns;
    const MotionParent parent = motion_parent(t, s.level, places);
    return MotionRegion(s.grid, places, t, s.level, number, s.components, cells + t * count, parent,
                        parent.place < 0 ? nullptr : cells + parent.place * count);
  }
};
__device__ __forceinline__ NodeMotion* nodes_of(const SearchOfLevel& s, int root) {
  return s.nodes + (static_cast<std::ptrdiff_t>(blockIdx.y) * s.roots() + root) * kNodes;
}

template <class T>
struct SearchOfRoot {
  MotionRegion region;
  Measurer<T> measurer;
  __device__ SearchOfRoot(const SearchOfLevel& s, const FrameOfSearch& f, int number)
      : region(f.region(s, number)), measurer(s, f.t, motion_references(f.t, s.level, f.places), f.coarse) {}
};

/// A warp for each root block; `largest`: for its largest block, which others beside it look at.
template <class T>
__global__ void __launch_bounds__(kRootWarps* kWarp)
    roots_kernel(const __grid_constant__ SearchOfLevel s, bool largest) {
  alignas(SearchOfRoot<T>) __shared__ unsigned char memory[kRootWarps][sizeof(SearchOfRoot<T>)];
  const int root = static_cast<int>(blockIdx.x) * kRootWarps + static_cast<int>(threadIdx.y);
  if (root >= s.roots()) return;
  auto& search = *reinterpret_cast<SearchOfRoot<T>*>(memory[threadIdx.y]);
  const int cy = root / s.root_columns() * kMotionRoot, cx = root % s.root_columns() * kMotionRoot;
  if (threadIdx.x == 0)
    new (&search)
        SearchOfRoot<T>(s, FrameOfSearch(s), cy / kMotionRegion * s.grid.region_columns() + cx / kMotionRegion);
  __syncwarp();
  RootSearch<Measurer<T>>(search.measurer, s.tree, search.region).run(cy, cx, nodes_of(s, 0), largest);
}

template <class T>
struct ChoiceOfRegion {
  MotionRegion region;
  Measurer<T> measurer[kSearchWarps];
  __device__ ChoiceOfRegion(const SearchOfLevel& s, const FrameOfSearch& f, int number,
                            const MotionReferences& references)
      : region(f.region(s, number)), measurer{{s, f.t, references, f.coarse}, {s, f.t, references, f.coarse}} {}
};

/// blockIdx.x is a region; threadIdx.y is a warp. Root blocks depend on those above, up to the one beyond the next
/// column.
template <class T>
__global__ void __launch_bounds__(kSearchWarps* kWarp) choice_kernel(const __grid_constant__ SearchOfLevel s) {
  alignas(ChoiceOfRegion<T>) __shared__ unsigned char memory[sizeof(ChoiceOfRegion<T>)];
  auto& search = *reinterpret_cast<ChoiceOfRegion<T>*>(memory);
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    const FrameOfSearch f(s);
    new (&search) ChoiceOfRegion<T>(s, f, static_cast<int>(blockIdx.x), motion_references(f.t, s.level, f.places));
  }
  __syncthreads();
  MotionRegion& r = search.region;
  RegionChoice<Measurer<T>> choice(search.measurer[threadIdx.y], s.tree, r);
  const int rows = (r.y1 - r.y0 + kMotionRoot - 1) / kMotionRoot;
  const int columns = (r.x1 - r.x0 + kMotionRoot - 1) / kMotionRoot;
  for (int row = static_cast<int>(threadIdx.y); row < rows; row += kSearchWarps)
    for (int column = 0; column < columns; ++column) {
      if (row > 0 && (column == 0 || column + 1 < columns))
        wait_at(done_barrier(row - 1, std::min(column + 1, columns - 1)));
      const int root_y = r.y0 / kMotionRoot + row, root_x = r.x0 / kMotionRoot + column;
      choice.run(root_y * kMotionRoot, root_x * kMotionRoot, nodes_of(s, root_y * s.root_columns() + root_x));
      if (row + 1 < rows && (column > 0 || columns == 1)) arrive_at(done_barrier(row, column));
    }
}

}  // namespace

template <class T>
void search_frames(const SearchOfLevel& s, bool closed, const Stream& stream) {
  const auto frames = static_cast<unsigned>(s.count + (closed ? 1 : 0));
  for (const bool largest : {true, false})
    launch("roots_kernel", roots_kernel<T>,
           dim3((static_cast<unsigned>(s.roots()) + kRootWarps - 1) / kRootWarps, frames), dim3(kWarp, kRootWarps), 0,
           stream.get(), s, largest);
  launch("choice_kernel", choice_kernel<T>, dim3(static_cast<unsigned>(s.grid.regions()), frames),
         dim3(kWarp, kSearchWarps), 0, stream.get(), s);
}
template void search_frames<std::uint8_t>(const SearchOfLevel&, bool, const Stream&);
template void search_frames<std::int16_t>(const SearchOfLevel&, bool, const Stream&);

}  // namespace trivelet::gpu::motion_parts
