// The search for motion in the regions of frames on the device. Inside a region every choice depends on those before
// it, so its blocks are searched one after the other, and a warp measures all candidates of a block at a time. All
// lanes follow the same decisions. Choices use the same integers and floats in the same order as on the CPU
// (codec/motion/motion_search.cpp), so they are the same.
#include <cstring>
#include <new>

#include "gpu/motion/motion_parts.h"

namespace trivelet::gpu::motion_parts {
namespace {

constexpr int kSearchWarps = 2;    // of a region: each has every other row of its root blocks
constexpr int kRegionsAtOnce = 8;  // on a multiprocessor; with registers for more, fewer of them, each takes longer
constexpr int kLanesOfBlock = 4;   // of 8x8 samples; each has two rows, four apart
constexpr int kHalf = kWarp / 2;   // lanes that search for a vector: both references at once
constexpr int kMostTries = kMotionGuesses + 4;
static_assert(kMostTries <= kHalf);
constexpr int kMostCandidates = 2 * kMostTries;
constexpr int kMostStrips = kBlock / (2 * kMotionCell);
constexpr int kMostConsidered = 6;

/// What is measured of something to predict a block by.
enum class Compared : std::uint8_t {
  kOne,    ///< with one reference: the prediction of a vector
  kBoth,   ///< with the mean of both
  kPlain,  ///< with a constant
  kRest,   ///< twice the block less the other reference's prediction, with one reference
};
struct Candidate {
  const std::int16_t *reference, *other;  ///< their addresses; kPlain: null, and other if there are not two
  std::uint32_t plain;
  Compared how;
  MotionVector v;  ///< of look()
};

/// What vectors are looked for.
struct Looking {
  int y, x, size;
  float lambda;
  bool near, fine;      ///< beside the prediction of the other reference; by transforms
  MotionVector beside;  ///< near: that of the other reference
  float known;          ///< cost of the best of the neighbours' motions
};

/// What the lanes of a warp have in common.
struct SearchWork {
  MotionGuesses guesses;
  MotionCell considered[kMostConsidered];
  Candidate candidate[kMostCandidates];
  int partial[kMostCandidates][kMostStrips];
  float cost[kMostCandidates];
  Looking looking;
};

struct Best {
  float cost = 1e30f;
  MotionCell cell;
};
struct VectorPair {
  MotionVector v[2];
};

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

/// Eight samples, two in a word.
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
/// From a multiple of eight on.
__device__ __forceinline__ Row load_row8(const std::int16_t* p) {
  Row r;
#if defined(TRIVELET_CUDA_EMULATION)
  std::memcpy(r.of, p, sizeof r.of);
#else
  asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(r.of[0]), "=r"(r.of[1]), "=r"(r.of[2]), "=r"(r.of[3])
      : "l"(p));
#endif
  return r;
}
/// From any place on.
__device__ __forceinline__ Row load_any_row8(const std::int16_t* p) {
  const auto address = reinterpret_cast<std::uintptr_t>(p);
  const auto* words = reinterpret_cast<const std::uint32_t*>(address & ~std::uintptr_t{3});
  const auto shift = static_cast<unsigned>(address & 2) * 8;
  Row r;
  std::uint32_t low = load_word(words);
  TRIVELET_UNROLL
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t high = load_word(words + i + 1);
    r.of[i] = __funnelshift_r(low, high, shift);
    low = high;
  }
  return r;
}

/// The search of a region, in shared memory. All lanes call all members together, with the same arguments. Long members
/// that are used in several places are not inlined: the copies would exceed the instruction caches, and every region is
/// at another place of the code.
class RegionSearch {
 public:
  __device__ RegionSearch(const SearchOfLevel& s, MotionRegion& region, int t, const MotionReferences& references)
      : s_(s), r_(region), t_(t), current_(s.whole + t * s.picture.plane) {
    const int place[2] = {references.past, references.other};
    for (int k = 0; k < 2; ++k) {
      pictures_[k] = s.quarters + s.held[place[k] < 0 ? place[0] : place[k]] * (kPlanes * s.picture.plane);
    }
  }

  /// The root blocks of some rows. They depend on those above, up to the one beyond the next column.
  __device__ void run(int warp) {
    const int rows = (r_.y1 - r_.y0 + kMotionRoot - 1) / kMotionRoot;
    const int columns = (r_.x1 - r_.x0 + kMotionRoot - 1) / kMotionRoot;
    for (int row = warp; row < rows; row += kSearchWarps)
      for (int column = 0; column < columns; ++column) {
        if (row > 0 && (column == 0 || column + 1 < columns))
          wait_at(done_barrier(row - 1, std::min(column + 1, columns - 1)));
        decide(r_.y0 + row * kMotionRoot, r_.x0 + column * kMotionRoot);
        if (row + 1 < rows && (column > 0 || columns == 1)) arrive_at(done_barrier(row, column));
      }
  }

 private:
  // Finds the cheapest division of a root block into blocks with their own motion, and sets its cells. The CPU's
  // version is recursive.
  __device__ void decide(int root_y, int root_x) {
    struct Node {
      int cy, cx;
      int child;  // that comes next, -1: the block as a whole
      bool must, any;
      float cost;
      Best whole;
      VectorPair found;
    };
    Node nodes[4];
    int depth = 0;
    nodes[0] = {root_y, root_x, -1, false, false, 0, {}, {}};
    while (depth >= 0) {
      Node& n = nodes[depth];
      const int log2 = 3 - depth;
      float cost = 0;
      bool done = n.cy >= r_.y1 || n.cx >= r_.x1;
      if (!done && n.child < 0) {
        n.must = must_split(r_, n.cy, n.cx, log2);
        n.cost = 0;
        if (!n.must) {
          float whole_price = 0;
          if (log2 > 0) {
            const dense::State& s = split_context(*s_.contexts, r_, n.cy, n.cx, log2);
            n.cost = s_.lambda * BitCounter::price(s_.prices, s, true);
            whole_price = s_.lambda * BitCounter::price(s_.prices, s, false);
          }
          n.whole = leaf(n.cy, n.cx, log2, n.any, n.found);
          if (log2 > 0) n.whole.cost += whole_price;
          n.any = true;
          n.whole.cell.log2_cells = static_cast<std::uint8_t>(log2);
        }
        n.child = n.must || (log2 > 0 && !good_enough(n.whole.cost, log2, s_.lambda, s_.enough_per_cell)) ? 0 : 5;
      }
      if (!done && n.child < 4 && (n.must || n.cost < n.whole.cost)) {
        const int half = 1 << (log2 - 1), k = n.child++;
        nodes[depth + 1] = {n.cy + (k >> 1) * half, n.cx + (k & 1) * half, -1, false, n.any, 0, {}, n.found};
        ++depth;
        continue;
      }
      if (!done) {
        const bool divided = n.child < 5 && (n.must || n.cost < n.whole.cost);
        if (!divided) set(n.cy, n.cx, log2, n.whole.cell);
        cost = divided ? n.cost : n.whole.cost;
      }
      if (--depth >= 0) nodes[depth].cost += cost;
    }
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x); }
  __device__ int height() const { return s_.picture.height; }
  __device__ int width() const { return s_.picture.width; }
  __device__ int references() const { return r_.has_other ? 2 : 1; }

  __device__ void set(int cy, int cx, int log2, const MotionCell& c) {
    __syncwarp();
    for (int i = lane(); i < 1 << 2 * log2; i += kWarp) {
      const int y = cy + (i >> log2), x = cx + (i & ((1 << log2) - 1));
      if (y < r_.y1 && x < r_.x1) r_.set(y, x, c);
    }
    __syncwarp();
  }

  __device__ const std::int16_t* at(int reference, int y, int x, MotionVector v) const {
    const int plane = (v.y & 3) * kQuarters + (v.x & 3);
    return pictures_[reference] + ((y + (v.y >> 2) + kPad) * kPlanes + plane) * s_.picture.stride +
           (x + (v.x >> 2) + kPad);
  }

  // A row of a block less the same row of a candidate's prediction, and 2^15.
  static constexpr int kZero = 1 << 15;
  __device__ __forceinline__ Row difference(const std::int16_t* block, const Candidate& c, int row, int column) const {
    const std::ptrdiff_t stride = s_.picture.stride;
    Row a = load_row8(block + row * stride + column);
    if (c.how == Compared::kPlain) {
      TRIVELET_UNROLL
      for (std::uint32_t& v : a.of) v = (v | both_halves(kZero)) - c.plain;
      return a;
    }
    const std::ptrdiff_t to = row * (kPlanes * stride) + column;
    Row b = load_any_row8(c.reference + to);
    if (c.how != Compared::kOne) {
      const Row o = load_any_row8(c.other + to);
      TRIVELET_UNROLL
      for (int i = 0; i < 4; ++i) {
        if (c.how == Compared::kBoth)
          b.of[i] = (b.of[i] + o.of[i] + both_halves(1)) >> 1 & both_halves(0x7fff);
        else  // the bias of one sample becomes that of two, because the other reference has one
          b.of[i] = b.of[i] + o.of[i] - a.of[i];
      }
    }
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) a.of[i] = (a.of[i] | both_halves(kZero)) - b.of[i];
    return a;
  }

  // Half the sum of magnitudes of a transform, of which this lane has two rows, four apart; MotionKernels::satd with
  // its 16 bits. Rows come first, because the last stage, along rows, is the maximum. Two numbers in a word are added
  // and subtracted as if it were one; the carry of the low one is removed at the end.
  __device__ __forceinline__ unsigned satd_share(Row p, Row q) const {
    constexpr int kEighth = kZero >> 3, kSafe = 1 << 9;  // the range on either side of 0: no sum of 64 is too large
    std::uint32_t beyond = 0;
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint32_t &u = p.of[i], &v = q.of[i];
      u = u >> 3 & both_halves(0x1fff);
      v = v >> 3 & both_halves(0x1fff);
      beyond |= (u - both_halves(kEighth - kSafe)) | (v - both_halves(kEighth - kSafe));
    }
    if (__any_sync(kAllLanes, (beyond & ~both_halves(2 * kSafe - 1)) != 0)) return extreme_share(p, q);
    TRIVELET_UNROLL
    for (int i = 0; i < 4; ++i) {
      const std::uint32_t u = p.of[i], v = q.of[i];
      p.of[i] = u + v;
      q.of[i] = u - v;
    }
    TRIVELET_UNROLL
    for (unsigned d = 2; d > 0; d /= 2) {
      const std::uint32_t sign = (static_cast<unsigned>(lane()) & d) ? ~0u : 1;
      TRIVELET_UNROLL
      for (int i = 0; i < 4; ++i) {
        p.of[i] = __shfl_xor_sync(kAllLanes, p.of[i], d) + sign * p.of[i];
        q.of[i] = __shfl_xor_sync(kAllLanes, q.of[i], d) + sign * q.of[i];
      }
    }
    // The sum of all rows has 2^12 in each of its samples, 32 of them in a number: 2^17, and the carry of the low one.
    const std::uint32_t carried = lane() % kLanesOfBlock == 0 ? 1u << 17 : 0;
    return of_row(p, carried) + of_row(q, 0);
  }
  __device__ static __forceinline__ unsigned of_row(const Row& m, std::uint32_t carried) {
    const std::uint32_t a = m.of[0] + m.of[2], b = m.of[1] + m.of[3], c = m.of[0] - m.of[2], d = m.of[1] - m.of[3];
    return larger(a + b - carried) + larger(a - b) + larger(c + d) + larger(c - d);
  }
  // Of the magnitudes of two numbers in a word.
  __device__ static __forceinline__ unsigned larger(std::uint32_t v) {
    const int low = static_cast<std::int16_t>(v),
              high = static_cast<std::int32_t>(v - static_cast<unsigned>(low)) >> 16;
    return static_cast<unsigned>(std::max(abs(low), abs(high)));
  }

  // The same of contrasts for which 16 bits are too few: numbers wrap around.
  __device__ TRIVELET_NOINLINE unsigned extreme_share(Row first, Row second) const {
    int p[8], q[8];
    TRIVELET_UNROLL
    for (int i = 0; i < 8; ++i) {
      const int u = (first.of[i / 2] >> 16 * (i % 2) & 0xffff) - (kZero >> 3),
                v = (second.of[i / 2] >> 16 * (i % 2) & 0xffff) - (kZero >> 3);
      p[i] = u + v;
      q[i] = u - v;
    }
    TRIVELET_UNROLL
    for (unsigned d = 2; d > 0; d /= 2) {
      const int sign = (static_cast<unsigned>(lane()) & d) ? -1 : 1;
      TRIVELET_UNROLL
      for (int i = 0; i < 8; ++i) {
        p[i] = __shfl_xor_sync(kAllLanes, p[i], d) + sign * p[i];
        q[i] = __shfl_xor_sync(kAllLanes, q[i], d) + sign * q[i];
      }
    }
    return of_extreme_row(p) + of_extreme_row(q);
  }
  __device__ static __forceinline__ unsigned of_extreme_row(int (&m)[8]) {
    TRIVELET_UNROLL
    for (int s = 4; s > 1; s >>= 1) {
      TRIVELET_UNROLL
      for (int j = 0; j < 8; ++j)
        if (!(j & s)) {
          const int u = m[j], v = m[j + s];
          m[j] = u + v;
          m[j + s] = u - v;
        }
    }
    unsigned sum = 0;
    TRIVELET_UNROLL
    for (int j = 0; j < 8; j += 2)
      sum += static_cast<std::uint16_t>(std::max(magnitude16(m[j]), magnitude16(m[j + 1])));
    return sum;
  }
  __device__ static __forceinline__ int magnitude16(int v) {
    return static_cast<std::int16_t>(abs(static_cast<std::int16_t>(v)));
  }
  __device__ static __forceinline__ unsigned sum_of_magnitudes(const Row& r) {
    unsigned sum = 0;
    TRIVELET_UNROLL
    for (const std::uint32_t v : r.of)
      sum += static_cast<unsigned>(abs(static_cast<int>(v & 0xffff) - kZero) + abs(static_cast<int>(v >> 16) - kZero));
    return sum;
  }

  // SATD or SAD of n candidates of a block. `strips`: in large blocks every other row of transforms stands for all.
  // Sizes are powers of two.
  __device__ TRIVELET_NOINLINE void measure(int n, int y, int x, int size, bool transforms, bool strips) {
    __syncwarp();
    const int log2_columns = 31 - __clz(size / kMotionCell);
    const bool few = transforms && strips && size >= 32;
    const int log2_of_strip = few ? log2_columns : 2 * log2_columns;  // blocks
    const int log2_strips = few ? log2_columns - 1 : 0;
    const int log2_lanes = std::min(5, 2 + log2_of_strip);
    const int units = n << log2_strips, lanes = 1 << log2_lanes;
    const std::int16_t* block = current_ + (y + kPad) * s_.picture.stride + (x + kPad);
    for (int first = 0; first < units; first += kWarp >> log2_lanes) {
      const int wanted = first + (lane() >> log2_lanes);
      const int unit = std::min(wanted, units - 1);
      const int strip = unit & ((1 << log2_strips) - 1);
      const Candidate c = w_.candidate[unit >> log2_strips];
      unsigned sum = 0;
      for (int b = (lane() & (lanes - 1)) / kLanesOfBlock; b < 1 << log2_of_strip; b += lanes / kLanesOfBlock) {
        const int row =
            (b >> log2_columns) * (few ? 1 : kMotionCell) + strip * 2 * kMotionCell + lane() % kLanesOfBlock;
        const int column = (b & ((1 << log2_columns) - 1)) * kMotionCell;
        const Row p = difference(block, c, row, column), q = difference(block, c, row + kMotionCell / 2, column);
        sum += transforms ? satd_share(p, q) : sum_of_magnitudes(p) + sum_of_magnitudes(q);
      }
      TRIVELET_UNROLL
      for (int d = 1; d < kWarp; d *= 2) {
        const unsigned other = __shfl_xor_sync(kAllLanes, sum, static_cast<unsigned>(d));
        if (d < lanes) sum += other;
      }
      if (wanted < units && (lane() & (lanes - 1)) == 0)
        w_.partial[unit >> log2_strips][strip] = transforms ? static_cast<int>(16 * sum) / 5 : static_cast<int>(sum);
    }
    __syncwarp();
  }
  // Of a candidate, once they are measured.
  __device__ int distortion(int i, int size, bool strips) const {
    if (!strips || size < 32) return w_.partial[i][0];
    int sum = 0;
    for (int s = 0; s < size / (2 * kMotionCell); ++s) sum += w_.partial[i][s];
    return 2 * sum;
  }

  // Measures the vectors around a place, by w_.looking in each half of the lanes: one vector for each active lane, in
  // order. Returns true if one of them is better than `best`, which costs `least`.
  struct Looked {
    float least;
    MotionVector best;
    bool better;
  };
  __device__ TRIVELET_NOINLINE Looked look(bool mine, int reference, MotionVector expected, int vx, int vy, float least,
                                           MotionVector best) {
    const Looking& l = w_.looking;
    const unsigned looking = __ballot_sync(kAllLanes, mine);
    const int number = __popc(looking & ((1u << lane()) - 1));
    MotionVector v;
    if (mine) {
      v = inside(limited_vector(vx, vy), l.y, l.x, l.size, height(), width());
      w_.candidate[number] = {at(reference, l.y, l.x, v), l.near ? at(1 - reference, l.y, l.x, l.beside) : nullptr, 0,
                              l.near ? Compared::kRest : Compared::kOne, v};
    }
    measure(__popc(looking), l.y, l.x, l.size, l.fine, true);
    if (mine)
      w_.cost[number] = static_cast<float>(distortion(number, l.size, l.fine)) + l.lambda * vector_bits(v, expected);
    __syncwarp();
    constexpr unsigned kFirstHalf = (1u << kHalf) - 1;
    const int of_first = __popc(looking & kFirstHalf);
    const int begin = lane() < kHalf ? 0 : of_first, end = lane() < kHalf ? of_first : __popc(looking);
    int chosen = -1;
    for (int i = begin; i < end; ++i)
      if (w_.cost[i] < least) {
        least = w_.cost[i];
        chosen = i;
      }
    if (chosen >= 0) best = w_.candidate[chosen].v;
    __syncwarp();
    return {least, best, chosen >= 0};
  }

  // Searches the vector of a block in one reference, in each half of the lanes: from the best of some candidates, one a
  // lane, downhill in steps that become smaller. Both halves take the same steps, or wait.
  struct Vector {
    float least;
    MotionVector best;
  };
  __device__ TRIVELET_NOINLINE Vector search_vectors(const Looking& looking, bool searches, int reference,
                                                     MotionVector expected, bool has_guess, MotionVector guess,
                                                     MotionVector best) {
    __syncwarp();
    if (lane() == 0) w_.looking = looking;
    __syncwarp();
    const int place = lane() % kHalf;
    // Those that another lane has before are left out.
    const int packed = guess.x * (1 << 16) + guess.y;
    bool seen = false;
    for (int i = 0; i < kMostTries; ++i)
      seen = (__shfl_sync(kAllLanes, packed, lane() - place + i) == packed && i < place) || seen;
    Looked at = look(searches && has_guess && !seen, reference, expected, guess.x, guess.y, 1e30f, best);
    bool fine = false;
    for (int s = first_step(looking.size, s_.blocks.factor, looking.near); s >= 1; s /= 2) {
      if (s < kQuarters && !fine) {
        fine = true;
        if (lane() == 0) w_.looking.fine = true;
        __syncwarp();
        at = look(searches && place == 0, reference, expected, at.best.x, at.best.y, 1e30f, at.best);
        searches = searches && worth_refining(at.least, looking.known, s_.blocks.factor);
      }
      // What the round before has looked at is not looked at again.
      MotionVector before;
      bool moves = searches;
      for (int round = 0; round < (s < kQuarters ? kFineRounds : kRounds) && __any_sync(kAllLanes, moves); ++round) {
        const MotionVector from = at.best;
        // Left, right, up, down, and the corners.
        const int to_x = place == 0 || place == 4 || place == 6 ? -1 : place == 2 || place == 3 ? 0 : 1;
        const int to_y = place < 2 ? 0 : place == 2 || place == 4 || place == 7 ? -1 : 1;
        const int vx = from.x + s * to_x, vy = from.y + s * to_y;
        const int dx = abs(vx - before.x), dy = abs(vy - before.y);
        const bool again = dx + dy == 0 || (s < kQuarters ? std::max(dx, dy) == s : dx + dy == s);
        const bool mine = moves && place < (s < kQuarters ? 8 : 4) && (round == 0 || !again);
        at = look(mine, reference, expected, vx, vy, at.least, at.best);
        moves = moves && at.better;
        before = from;
      }
    }
    return {at.least, at.best};
  }

  // Measures w_.considered, of which the first ones are candidates of neighbours, and takes the cheapest if it is
  // cheaper than `best`.
  __device__ TRIVELET_NOINLINE void consider(int n, int guesses, int cy, int cx, int log2, Best& best) {
    __syncwarp();
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    if (lane() < n) {
      const MotionCell& cell = w_.considered[lane()];
      const bool both = cell.mode == MotionMode::kBoth, plain = cell.mode == MotionMode::kPlain;
      const std::size_t k = cell.mode == MotionMode::kOther ? 1 : 0;
      const auto predicted = [&](std::size_t i) {
        return at(static_cast<int>(i), y, x, inside(cell.vector[i], y, x, size, height(), width()));
      };
      w_.candidate[lane()] = {plain ? nullptr : predicted(k),
                              both ? predicted(1) : nullptr,
                              both_halves(kBias + cell.plain[0] * (1 << (kSearchBits - kMotionPlainBits))),
                              plain  ? Compared::kPlain
                              : both ? Compared::kBoth
                                     : Compared::kOne,
                              {}};
    }
    measure(n, y, x, size, true, false);
    if (lane() < n) {
      BitCounter counter(s_.prices);
      MotionCell coded = w_.considered[lane()];
      code_motion_block(counter, *s_.contexts, r_, cy, cx, log2, w_.guesses, lane() < guesses ? lane() : -1, coded);
      w_.considered[lane()] = coded;
      w_.cost[lane()] = static_cast<float>(distortion(lane(), size, false)) + s_.lambda * counter.bits;
    }
    __syncwarp();
    for (int i = 0; i < n; ++i)
      if (w_.cost[i] < best.cost) {
        best.cost = w_.cost[i];
        best.cell = w_.considered[i];
      }
    __syncwarp();
  }

  __device__ MotionVector coarse(int y, int x, int size, int reference) const {
    const CoarseBlocks& b = s_.blocks;
    const int span = kSmallSide * b.factor, root = b.of_root;
    const auto place = [&](int at) {
      const int of_root = at / kBlock;
      return of_root * root + std::min(root - 1, (at + size / 2 - of_root * kBlock) / span);
    };
    return s_.coarse[(t_ * 2 + reference) * static_cast<std::ptrdiff_t>(b.rows * b.columns) + place(y) * b.columns +
                     place(x)];
  }

  // The constants of a block that nothing predicts.
  __device__ TRIVELET_NOINLINE MotionCell plain(int cy, int cx, int log2) const {
    MotionCell c;
    c.mode = MotionMode::kPlain;
    const int n = 1 << log2;
    for (int i = 0; i < s_.components; ++i) {
      const int cell_y = cell_size(s_.scale[i].shift_y), cell_x = cell_size(s_.scale[i].shift_x);
      const int y0 = cy * cell_y, x0 = cx * cell_x;
      const int y1 = std::min(s_.component_height[i], y0 + (cell_y << log2)),
                x1 = std::min(s_.component_width[i], x0 + (cell_x << log2));
      const std::int32_t* sums =
          s_.sums + (i * s_.sums_places + t_) * (static_cast<std::ptrdiff_t>(s_.grid.rows) * s_.grid.columns);
      std::int32_t sum = 0;
      for (int k = lane(); k < n * n; k += kWarp)
        sum += sums[(cy + (k >> log2)) * static_cast<std::ptrdiff_t>(s_.grid.columns) + cx + (k & (n - 1))];
      for (unsigned d = kWarp / 2; d > 0; d /= 2) sum += __shfl_xor_sync(kAllLanes, sum, d);
      c.plain[static_cast<std::size_t>(i)] = plain_of(sum, std::max(1, (y1 - y0) * (x1 - x0)), s_.bits);
    }
    complete_cell(c, r_.older);
    return c;
  }

  // The best motion of a block as a whole. `found`: the vectors of the enclosing block, if there are any, and
  // afterwards those of this one.
  __device__ TRIVELET_NOINLINE Best leaf(int cy, int cx, int log2, bool any, VectorPair& found) {
    const int y = cy * kMotionCell, x = cx * kMotionCell, size = kMotionCell << log2;
    const VectorPair around = found;
    __syncwarp();
    if (lane() == 0) {
      w_.guesses = MotionGuesses(r_, cy, cx, log2);
      for (int i = 0; i < w_.guesses.count; ++i) w_.considered[i] = w_.guesses.cell[static_cast<std::size_t>(i)];
    }
    __syncwarp();
    const int guesses = w_.guesses.count;
    Best best;
    consider(guesses, guesses, cy, cx, log2, best);
    // The motion of neighbours may be good enough: then nothing else is tried.
    if (good_enough(best.cost, log2, s_.lambda, s_.enough_per_cell)) {
      found = {{best.cell.vector[0], best.cell.vector[1]}};
      return best;
    }
    const int k = lane() / kHalf, place = lane() % kHalf;
    const auto kk = static_cast<std::size_t>(k);
    const bool searches = k < references();
    const MotionVector own = searches ? expected_vector(r_, cy, cx, log2, k) : MotionVector{};
    MotionVector guess;
    const int with_around = any ? 4 : 3;
    if (place == 0) guess = own;
    if (place == 2 && searches) guess = coarse(y, x, size, k);
    if (place == 3 && any) guess = around.v[k];
    if (place >= with_around && place < with_around + guesses)
      guess = w_.guesses.cell[static_cast<std::size_t>(place - with_around)].vector[kk];
    const Vector v = search_vectors({y, x, size, s_.lambda, false, false, {}, best.cost}, searches, k, own,
                                    place < with_around + guesses, guess, found.v[k]);
    const auto of_half = [](MotionVector of, int half) {
      return MotionVector{static_cast<std::int16_t>(__shfl_sync(kAllLanes, static_cast<int>(of.x), half * kHalf)),
                          static_cast<std::int16_t>(__shfl_sync(kAllLanes, static_cast<int>(of.y), half * kHalf))};
    };
    const VectorPair expected{{of_half(own, 0), of_half(own, 1)}};
    found.v[0] = of_half(v.best, 0);
    found.v[1] = of_half(v.best, 1);
    const int better = __shfl_sync(kAllLanes, v.least, 0) < __shfl_sync(kAllLanes, v.least, kHalf) ? 0 : 1;
    MotionCell last;
    last.mode = MotionMode::kBoth;
    last.vector = {found.v[0], found.v[1]};
    const MotionCell constant = plain(cy, cx, log2);
    if (lane() == 0)
      for (int i = 0; i < references(); ++i) {
        MotionCell c;
        c.mode = i == 0 ? MotionMode::kPast : MotionMode::kOther;
        c.vector[static_cast<std::size_t>(i)] = found.v[i];
        complete_cell(c, r_.older);
        w_.considered[i] = c;
      }
    const int n = r_.has_other ? 4 : 2;
    if (lane() == 0) {
      if (r_.has_other) w_.considered[2] = last;
      w_.considered[n - 1] = constant;
    }
    consider(n, 0, cy, cx, log2, best);
    if (refines_both(best.cell.mode, size)) {
      refine_both(y, x, size, expected, better, last);
      consider(2, 0, cy, cx, log2, best);
    }
    return best;
  }

  // Both references: each vector in turn against the residual of the other.
  __device__ TRIVELET_NOINLINE void refine_both(int y, int x, int size, const VectorPair& expected, int better,
                                                MotionCell& c) {
    for (int i = 0; i < 2; ++i) {
      const int k = i == 0 ? 1 - better : better;
      const auto kk = static_cast<std::size_t>(k);
      const MotionVector other = inside(c.vector[1 - kk], y, x, size, height(), width());
      const MotionVector v = c.vector[kk];
      const Looking looking{y, x, size, 2 * s_.lambda, true, false, other, 1e30f};
      const MotionVector best =
          search_vectors(looking, lane() < kHalf, k, expected.v[k], lane() < 2, lane() == 0 ? v : expected.v[k], v)
              .best;
      c.vector[kk] = {static_cast<std::int16_t>(__shfl_sync(kAllLanes, static_cast<int>(best.x), 0)),
                      static_cast<std::int16_t>(__shfl_sync(kAllLanes, static_cast<int>(best.y), 0))};
      if (lane() == 0) w_.considered[i] = c;
    }
  }

  const SearchOfLevel& s_;
  MotionRegion& r_;
  SearchWork w_;
  int t_;
  const std::int16_t* current_;
  const std::int16_t* pictures_[2];
};

/// In shared memory, made by the first thread.
struct SearchOfRegion {
  SearchOfLevel level;
  MotionRegion region;
  RegionSearch warp[kSearchWarps];
  __device__ SearchOfRegion(const SearchOfLevel& s, const MotionRegion& r, int t, const MotionReferences& references,
                            const MotionVector* coarse)
      : level(s), region(r), warp{{level, region, t, references}, {level, region, t, references}} {
    level.coarse = coarse;
  }
};

/// blockIdx.x is a region, y the number of a high frame; threadIdx.y is a warp.
__global__ void __launch_bounds__(kSearchWarps* kWarp, kRegionsAtOnce)
    search_kernel(const __grid_constant__ SearchOfLevel s) {
  alignas(SearchOfRegion) __shared__ unsigned char memory[sizeof(SearchOfRegion)];
  SearchOfRegion& search = *reinterpret_cast<SearchOfRegion*>(memory);
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    const int number = static_cast<int>(blockIdx.y);
    const bool closed = number == s.count;
    const MotionPlaces places = closed ? s.closed : s.places;
    MotionCell* const of_places = closed ? s.closed_cells : s.cells;
    const int t = (closed ? 1 : 2 * (number + s.first) + 1) << s.level;
    const std::ptrdiff_t cells = static_cast<std::ptrdiff_t>(s.grid.rows) * s.grid.columns;
    const MotionParent parent = motion_parent(t, s.level, places);
    const MotionRegion region(s.grid, places, t, s.level, static_cast<int>(blockIdx.x), s.components,
                              of_places + t * cells, parent,
                              parent.place < 0 ? nullptr : of_places + parent.place * cells);
    new (&search)
        SearchOfRegion(s, region, t, motion_references(t, s.level, places), closed ? s.closed_coarse : s.coarse);
  }
  __syncthreads();
  search.warp[threadIdx.y].run(static_cast<int>(threadIdx.y));
}

}  // namespace

void prepare_regions() {
  // Else the driver leaves shared memory for four regions on a multiprocessor.
  constexpr std::size_t kReserved = 1024, kOfMultiprocessor = 228 << 10;
  check(cudaFuncSetAttribute(
            search_kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
            static_cast<int>(100 * kRegionsAtOnce * (sizeof(SearchOfRegion) + kReserved) / kOfMultiprocessor)),
        "cudaFuncSetAttribute");
}

void search_regions(const SearchOfLevel& s, bool closed, const Stream& stream) {
  launch("search_kernel", search_kernel,
         dim3(static_cast<unsigned>(s.grid.regions()), static_cast<unsigned>(s.count + (closed ? 1 : 0))),
         dim3(kWarp, kSearchWarps), 0, stream.get(), s);
}

}  // namespace trivelet::gpu::motion_parts
