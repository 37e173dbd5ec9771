// One level of the dyadic transform, time and both axes of the frames in one kernel: CDF 9/7, floats in and out.
//
// A block owns a tile of 128 columns (of which the outer ones belong to its neighbours) and streams through a segment
// of the frames, a pair a step. Lifting needs only four values of a line that streams past, so lines in time are in
// registers, four columns a lane. Along rows lanes exchange values by shuffles. Between rows and columns frames go
// through shared memory, where a thread streams down one column. The next frames are loaded to shared memory meanwhile,
// because as many loads to registers would spill. At the borders of the volume mirrored samples are loaded; at those of
// tiles and segments neighbouring ones are lifted again.
//
// Bytes a sample: 8, of which an eighth is read again by the next level; the two kernels move 16. Bound: in theory
// memory; measured, waiting for loads and for shared memory (gpu/BENCHMARKS.md, "A level in one kernel").
#include "gpu/transform/dwt_joint.cuh"

#include <algorithm>

#if !defined(TRIVELET_CUDA_EMULATION)
#include <cuda_pipeline_primitives.h>
#endif

namespace trivelet::gpu {
namespace {

constexpr int kTileWide = 128;                     // four columns a lane
constexpr int kTileOwnWide = kTileColumns<Cdf97>;  // columns whose results a tile keeps
constexpr int kTileHalfWide = kTileWide / 2;       // of a row split: the low half, then the high one
constexpr int kBorder = kHalo<Cdf97>;              // rows and columns beyond
constexpr int kPairsLate = kBorder / 2;            // pairs from one that comes to the one that is finished by it

struct JointArgs {
  PlaneArgs<float, float> level;
  int tiles = 0;    // beside each other
  int segment = 0;  // pairs of frames of a block
};

/// What a thread works on.
struct JointPlace {
  int lane, warp;
  int tile;        // of those beside each other
  int x, top;      // the lane's first column, the tile's first row
  int first, end;  // pairs of frames
  int pairs;       // of the volume
  __device__ __forceinline__ JointPlace(const JointArgs& f, int own_rows)
      : lane(static_cast<int>(threadIdx.x % 32)),
        warp(static_cast<int>(threadIdx.x / 32)),
        tile(static_cast<int>(blockIdx.x) % f.tiles),
        x(tile * kTileOwnWide + (lane - kHaloLanes<Cdf97>)*4),
        top(static_cast<int>(blockIdx.x) / f.tiles * own_rows),
        first(static_cast<int>(blockIdx.y) * f.segment),
        pairs((f.level.frames + 1) / 2) {
    end = first + f.segment < pairs ? first + f.segment : pairs;
  }
};

// ------------------------------------------------------------------------------------------------------------ forward

/// 12 warps of 6 rows: of the measured tiles the one with most registers (168) and few rows lifted twice. One block
/// fits a multiprocessor.
struct ForwardTile {
  static constexpr int kWarps = 12, kRows = 6;  // of a warp
  static constexpr int kHigh = kWarps * kRows;
  static constexpr int kOwnHigh = kHigh - 2 * kBorder;
  static constexpr int kRuns = 2, kRun = kOwnHigh / kRuns;  // rows that a thread lifts down a column
  static constexpr int kFrame = kHigh * kTileWide;          // values
  // The pair that comes, and split along rows the pairs of two steps: one barrier a step is enough.
  static constexpr std::size_t kSharedBytes = 3 * 2 * kFrame * sizeof(float);
  static_assert(kRun % 2 == 0 && kRun * kRuns == kOwnHigh);
};

/// The samples (2k - 1, 2k) complete the coefficients (2k - 3, 2k - 4), high and low. Fields: the partial results of
/// the samples 2k .. 2k - 3.
struct ForwardLine {
  float even, high1, low1, high2;
  __device__ __forceinline__ void push(float& odd, float& next_even) {
    const float new_high1 = lift(odd, even, next_even, kLift97Alpha);
    const float new_low1 = lift(even, high1, new_high1, kLift97Beta);
    const float new_high2 = lift(high1, low1, new_low1, kLift97Gamma);
    const float new_low2 = lift(low1, high2, new_high2, kLift97Delta);
    *this = {next_even, new_high1, new_low1, new_high2};
    odd = new_high2;
    next_even = new_low2;
  }
};

/// The rows of a warp in the frames it reads.
struct SampleRows {
  int row[ForwardTile::kRows];
  int x, width;
  bool inside, useful;

  __device__ __forceinline__ SampleRows(const PlaneArgs<float, float>& a, const JointPlace& p)
      : x(p.x), width(a.width), inside(p.x >= 0 && p.x + 4 <= a.width), useful(p.x < a.width + kBorder) {
    TRIVELET_UNROLL
    for (int r = 0; r < ForwardTile::kRows; ++r)
      row[r] = mirror_near(p.top - kBorder + p.warp * ForwardTile::kRows + r, a.height) * a.plane_pitch;
  }
  __device__ __forceinline__ void load(const float* frame, int r, float (&v)[4]) const {
    if (inside) {
      const Pack<float, 4> p = load_pack<float, 4>(frame + row[r] + x);
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c) v[c] = p.v[c];
    } else {
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c) v[c] = useful ? frame[row[r] + mirror(x + c, width)] : 0.0f;
    }
  }
  /// The same on its way to shared memory.
  __device__ __forceinline__ void begin(const float* frame, int r, float* to) const {
    if (inside) {
      __pipeline_memcpy_async(to, frame + row[r] + x, 16);
    } else if (useful) {
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c) __pipeline_memcpy_async(to + c, frame + row[r] + mirror(x + c, width), 4);
    }
  }
};

/// Lifts a run down a column of a frame, which begins kBorder rows before it, and stores its bands. kChecked: only
/// `rows` of the run are in the picture.
template <bool kChecked>
__device__ __forceinline__ void split_run(const float* from, float* lows, int low_pitch, float* highs, int high_pitch,
                                          int rows) {
  ForwardLine line{from[0], 0, 0, 0};
  TRIVELET_UNROLL
  for (int j = 1; j < ForwardTile::kRun / 2 + 2 * kPairsLate; ++j) {
    float odd = from[(2 * j - 1) * kTileWide], even = from[2 * j * kTileWide];
    line.push(odd, even);
    const int i = j - 2 * kPairsLate;
    if (i >= 0) {
      if (!kChecked || 2 * i < rows) lows[i * static_cast<std::ptrdiff_t>(low_pitch)] = even;
      if (!kChecked || 2 * i + 1 < rows) highs[i * static_cast<std::ptrdiff_t>(high_pitch)] = odd;
    }
  }
}

/// The bands of the frames 2 * pair (low in time) and 2 * pair + 1, which `frames` has, split along rows.
__device__ __forceinline__ void split_columns(const PlaneArgs<float, float>& a, const JointPlace& p, int pair,
                                              const float* frames) {
  using Tile = ForwardTile;
  constexpr int kGroups = kTileWide / 32;
  TRIVELET_UNROLL_BY(1)
  for (int unit = p.warp; unit < 2 * kGroups * Tile::kRuns; unit += Tile::kWarps) {
    const int group = unit % kGroups, high_time = unit / kGroups % 2, run = unit / kGroups / 2;
    const bool high = group >= kGroups / 2;
    const int column = group * 32 + p.lane, index = column % kTileHalfWide - kBorder / 2;
    const int at = p.tile * (kTileOwnWide / 2) + index, t = 2 * pair + high_time, y = p.top + run * Tile::kRun;
    if (index < 0 || index >= kTileOwnWide / 2 || at >= (high ? a.width / 2 : (a.width + 1) / 2) || t >= a.frames)
      continue;
    const float* from = frames + high_time * Tile::kFrame + run * Tile::kRun * kTileWide + column;
    const bool to_low = !high && a.low && !high_time;
    float* field = a.field + t * a.field_frame + (high ? a.high_column : 0) + at;
    float* lows = to_low ? a.low + pair * a.low_frame + y / 2 * static_cast<std::ptrdiff_t>(a.low_pitch) + at
                         : field + y / 2 * static_cast<std::ptrdiff_t>(a.pitch);
    float* highs = field + (y / 2 + (a.height + 1) / 2) * static_cast<std::ptrdiff_t>(a.pitch);
    const int low_pitch = to_low ? a.low_pitch : a.pitch;
    if (y + Tile::kRun <= a.height)
      split_run<false>(from, lows, low_pitch, highs, a.pitch, Tile::kRun);
    else
      split_run<true>(from, lows, low_pitch, highs, a.pitch, a.height - y);
  }
}

/// Time, rows, columns.
__global__ void __launch_bounds__(32 * ForwardTile::kWarps, 1) forward_joint_kernel(JointArgs f) {
  using Tile = ForwardTile;
  const PlaneArgs<float, float>& a = f.level;
  const JointPlace p(f, Tile::kOwnHigh);
  const SampleRows rows(a, p);
  float* const split = dynamic_shared<float>();
  float* const next = split + 2 * 2 * Tile::kFrame + p.warp * Tile::kRows * kTileWide + p.lane * 4;  // the lane's own
  const auto frame_at = [&](int t) { return a.plane + mirror_near(t, a.frames) * a.plane_frame; };
  const auto begin = [&](int pair, int r) {
    rows.begin(frame_at(2 * pair - 1), r, next + r * kTileWide);
    rows.begin(frame_at(2 * pair), r, next + r * kTileWide + Tile::kFrame);
  };

  ForwardLine line[Tile::kRows][4] = {};
  TRIVELET_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    float v[4];
    rows.load(frame_at(2 * (p.first - kPairsLate)), r, v);
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c) line[r][c].even = v[c];
    begin(p.first - kPairsLate + 1, r);
  }
  __pipeline_commit();

  for (int k = p.first - kPairsLate + 1; k < p.end + kPairsLate; ++k) {
    const int pair = k - kPairsLate;
    float* const out = split + (k & 1) * 2 * Tile::kFrame;
    __pipeline_wait_prior(0);
    TRIVELET_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      const Pack<float, 4> odds = load_pack<float, 4>(next + r * kTileWide),
                           evens = load_pack<float, 4>(next + r * kTileWide + Tile::kFrame);
      float high[4], low[4];
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c) {
        high[c] = odds.v[c], low[c] = evens.v[c];
        line[r][c].push(high[c], low[c]);
      }
      begin(k + 1, r);
      if (pair >= p.first) {
        lift_lanes<Cdf97, false>(low, -1);
        lift_lanes<Cdf97, false>(high, -1);
        float* to = out + (p.warp * Tile::kRows + r) * kTileWide + p.lane * 2;
        store_pack<float, 2>(to, {{low[0], low[2]}});
        store_pack<float, 2>(to + kTileHalfWide, {{low[1], low[3]}});
        store_pack<float, 2>(to + Tile::kFrame, {{high[0], high[2]}});
        store_pack<float, 2>(to + Tile::kFrame + kTileHalfWide, {{high[1], high[3]}});
      }
    }
    __pipeline_commit();
    if (pair < p.first) continue;
    __syncthreads();
    split_columns(a, p, pair, out);
  }
  __pipeline_wait_prior(0);
}

// ------------------------------------------------------------------------------------------------------------ inverse

/// 8 warps of 4 rows, two blocks a multiprocessor: while one waits at its barriers the other one computes. A warp lifts
/// 32 columns of one of the two frames, then its rows of both.
struct InverseTile {
  static constexpr int kWarps = 8, kRows = 4, kBlocks = 2;
  static constexpr int kHigh = kWarps * kRows;
  static constexpr int kFrame = kHigh * kTileWide;
  static constexpr int kPairs = kHigh / 2 + 3;  // of rows of a column that are lifted
  static constexpr int kRaw = 2 * kPairs + 1;   // of its coefficients, the first one a high one
  static constexpr std::size_t kSharedBytes = (2 * kFrame + kWarps * 32 * kRaw) * sizeof(float);
  static_assert(kWarps * 32 == 2 * kTileWide);
};

/// The coefficients (2k, 2k + 1), low and high, complete the samples (2k - 4, 2k - 3). Fields: the partial results of
/// the coefficients 2k + 1 .. 2k - 2.
struct InverseLine {
  float high, low1, high1, even;
  __device__ __forceinline__ void push(float& low, float& next_high) {
    const float new_low1 = lift(low, high, next_high, -kLift97Delta);
    const float new_high1 = lift(high, low1, new_low1, -kLift97Gamma);
    const float new_even = lift(low1, high1, new_high1, -kLift97Beta);
    const float new_odd = lift(high1, even, new_even, -kLift97Alpha);
    low = even;
    *this = {next_high, new_low1, new_high1, new_even};
    next_high = new_odd;
  }
};

/// A thread's column of one of the frames of a pair: its coefficients, which are copied to its own shared memory.
struct CoefficientColumn {
  int high_time, at, y;
  bool high, inside;
  float* raw;

  __device__ __forceinline__ CoefficientColumn(const PlaneArgs<float, float>& a, const JointPlace& p, int column,
                                               int frame_of_pair, float* memory)
      : high_time(frame_of_pair),
        // The tile's first row: warp / kWarps is 0, but this form hides from the compiler that it is equal in all
        // threads. Otherwise it keeps the mirrored addresses of begin() in registers that do not exist: 284 bytes spilt
        // instead of 4.
        y(p.top + p.warp / InverseTile::kWarps * InverseTile::kHigh),
        high(column >= kTileHalfWide),
        raw(memory) {
    const int x = 2 * (p.tile * (kTileOwnWide / 2) + column % kTileHalfWide - kBorder / 2) + (high ? 1 : 0);
    at = x < a.width + kBorder ? mirror(x, a.width) / 2 : 0;
    inside = y >= kBorder && y + InverseTile::kHigh + kBorder + 2 <= a.height;
  }
  __device__ __forceinline__ void begin(const PlaneArgs<float, float>& a, int pair) const {
    const int t = mirror_near(2 * pair + high_time, a.frames);
    const float* field = a.field + t * a.field_frame + (high ? a.high_column : 0) + at;
    const bool from_low = !high && a.low && !high_time;
    const float* lows = from_low ? a.low + t / 2 * a.low_frame + at : field;
    const float* highs = field + (a.height + 1) / 2 * static_cast<std::ptrdiff_t>(a.pitch);
    const int low_pitch = from_low ? a.low_pitch : a.pitch;
    const auto rows = [](int n, int pitch) { return n * static_cast<std::ptrdiff_t>(pitch); };
    const auto fetch = [&](int i, const float* from) { __pipeline_memcpy_async(raw + i * 32, from, 4); };
    if (inside) {
      lows += rows(y / 2 - 1, low_pitch);
      highs += rows(y / 2 - 1, a.pitch);
      fetch(0, highs - a.pitch);
      TRIVELET_UNROLL
      for (int j = 0; j < InverseTile::kPairs; ++j) {
        fetch(2 * j + 1, lows + rows(j, low_pitch));
        fetch(2 * j + 2, highs + rows(j, a.pitch));
      }
    } else {
      const auto row = [&](int i) { return mirror_near(y - 3 + i, a.height) / 2; };
      fetch(0, highs + rows(row(0), a.pitch));
      TRIVELET_UNROLL
      for (int j = 0; j < InverseTile::kPairs; ++j) {
        fetch(2 * j + 1, lows + rows(row(2 * j + 1), low_pitch));
        fetch(2 * j + 2, highs + rows(row(2 * j + 2), a.pitch));
      }
    }
    __pipeline_commit();
  }
  /// `to`: the column in the tile's first row.
  __device__ __forceinline__ void join(float* to) const {
    __pipeline_wait_prior(0);
    InverseLine line{raw[0], 0, 0, 0};
    TRIVELET_UNROLL
    for (int j = 0; j < InverseTile::kPairs; ++j) {
      float even = raw[(2 * j + 1) * 32], odd = raw[(2 * j + 2) * 32];
      line.push(even, odd);
      if (j >= 3) {
        to[(2 * j - 6) * kTileWide] = even;
        to[(2 * j - 5) * kTileWide] = odd;
      }
    }
  }
};

/// Lifts along a row whose low half is at `from`.
__device__ __forceinline__ void join_row(const float* from, float (&v)[4]) {
  const Pack<float, 2> low = load_pack<float, 2>(from), high = load_pack<float, 2>(from + kTileHalfWide);
  v[0] = low.v[0], v[1] = high.v[0], v[2] = low.v[1], v[3] = high.v[1];
  lift_lanes<Cdf97, true>(v, -1);
}

/// Four columns of a lane, as far as they are in the picture.
__device__ __forceinline__ void store_columns(float* to, int x, int width, const float (&v)[4]) {
  if (x + 4 <= width) {
    store_pack<float, 4>(to, {{v[0], v[1], v[2], v[3]}});
  } else {
    TRIVELET_UNROLL
    for (int c = 0; c < 4; ++c)
      if (x + c < width) to[c] = v[c];
  }
}

/// The last two pairs of an even number of frames, whose lines mirror their own values after `last`. `only`: there is
/// no pair before. `to`: of the pair before the last.
__device__ __forceinline__ void finish_row(const PlaneArgs<float, float>& a, const InverseLine (&line)[4], int x,
                                           bool only, bool both, float* to) {
  float even[4], odd[4], last_even[4], last_odd[4];
  TRIVELET_UNROLL
  for (int c = 0; c < 4; ++c) {
    const InverseLine& s = line[c];
    const float high1 = lift(s.high, s.low1, s.low1, -kLift97Gamma);
    last_even[c] = lift(s.low1, only ? high1 : s.high1, high1, -kLift97Beta);
    even[c] = s.even;
    odd[c] = lift(s.high1, s.even, last_even[c], -kLift97Alpha);
    last_odd[c] = lift(high1, last_even[c], last_even[c], -kLift97Alpha);
  }
  if (both) {
    store_columns(to, x, a.width, even);
    store_columns(to + a.plane_frame, x, a.width, odd);
  }
  store_columns(to + 2 * a.plane_frame, x, a.width, last_even);
  store_columns(to + 3 * a.plane_frame, x, a.width, last_odd);
}

/// Columns, rows, time.
__global__ void __launch_bounds__(32 * InverseTile::kWarps, InverseTile::kBlocks) inverse_joint_kernel(JointArgs f) {
  using Tile = InverseTile;
  const PlaneArgs<float, float>& a = f.level;
  const JointPlace p(f, Tile::kHigh);
  float* const joined = dynamic_shared<float>();  // a pair of frames, joined down the columns
  const int column = p.warp % 4 * 32 + p.lane, frame_of_pair = p.warp / 4;
  const CoefficientColumn coefficients(a, p, column, frame_of_pair,
                                       joined + 2 * Tile::kFrame + p.warp * Tile::kRaw * 32 + p.lane);
  const bool keeps = p.lane >= kHaloLanes<Cdf97> && p.lane < 32 - kHaloLanes<Cdf97> && p.x < a.width;
  const int top = p.top + p.warp * Tile::kRows, rows_kept = keeps ? a.height - top : 0;
  float* const plane = a.plane + top * static_cast<std::ptrdiff_t>(a.plane_pitch) + p.x;

  // At the ends of the volume lines mirror their own values; elsewhere neighbouring pairs are lifted, too.
  const int first = p.first == 0 ? 0 : p.first - kPairsLate;
  const bool finishes = p.end == p.pairs && a.frames % 2 == 0;
  const int end = finishes ? p.end : p.end + kPairsLate;
  InverseLine line[Tile::kRows][4] = {};
  coefficients.begin(a, first);
  for (int k = first; k < end; ++k) {
    coefficients.join(joined + frame_of_pair * Tile::kFrame + column);
    if (k + 1 < end) coefficients.begin(a, k + 1);
    __syncthreads();
    const int t = 2 * (k - kPairsLate);
    float* const out = plane + t * a.plane_frame;
    TRIVELET_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      float low[4], high[4];
      const float* from = joined + (p.warp * Tile::kRows + r) * kTileWide + p.lane * 2;
      join_row(from, low);
      join_row(from + Tile::kFrame, high);
      if (k <= 1) {
        TRIVELET_UNROLL
        for (int c = 0; c < 4; ++c) {
          InverseLine& s = line[r][c];
          if (k == 0) s.high = high[c];
          if (k == 1 && first == 0)
            s.high1 = lift(s.high, s.low1, lift(low[c], s.high, high[c], -kLift97Delta), -kLift97Gamma);
        }
      }
      TRIVELET_UNROLL
      for (int c = 0; c < 4; ++c) line[r][c].push(low[c], high[c]);
      if (k >= p.first + kPairsLate && r < rows_kept) {
        float* const to = out + r * static_cast<std::ptrdiff_t>(a.plane_pitch);
        store_columns(to, p.x, a.width, low);
        if (t + 1 < a.frames) store_columns(to + a.plane_frame, p.x, a.width, high);
      }
    }
    __syncthreads();
  }
  if (finishes) {
    const int before = p.end - kPairsLate;
    float* const out = plane + 2 * before * a.plane_frame;
    TRIVELET_UNROLL
    for (int r = 0; r < Tile::kRows; ++r)
      if (r < rows_kept)
        finish_row(a, line[r], p.x, p.pairs == 1, before >= p.first,
                   out + r * static_cast<std::ptrdiff_t>(a.plane_pitch));
  }
}

// ----------------------------------------------------------------------------------------------------------- launchers

/// Limits measured on an H100 (gpu/BENCHMARKS.md); sizes are for each multiprocessor.
struct JointLimits {
  int own_rows;              // of a tile
  std::size_t shared_bytes;  // of a block
  int enough_samples;        // of a level, from which on one kernel is the faster way
  double enough_blocks;      // segments become shorter until there are this many
  int shortest, longest;     // segment, in pairs
};
/// At 60,000 samples one kernel is as fast as two, at 240,000 1.2 times as fast. In longer segments blocks that share
/// rows drift apart, and shared rows are read twice.
constexpr JointLimits kForwardLimits{ForwardTile::kOwnHigh, ForwardTile::kSharedBytes, 120'000, 3.5, 4, 16};
/// At 30,000 samples two kernels are faster, at 60,000 one is, 1.4 times. A segment's ends cost four pairs.
constexpr JointLimits kInverseLimits{InverseTile::kHigh, InverseTile::kSharedBytes, 45'000, 1, 8, 32};

bool is_possible(const PlaneArgs<float, float>& a, const JointLimits& limits, const JointChoice& choice) {
  return choice.levels != JointLevels::kNone && a.frames > 1 && a.height > 1 && a.width > 1 &&
         limits.shared_bytes <= static_cast<std::size_t>(choice.shared_bytes) &&
         // samples are read and written four at a time, rows found with 32 bits
         reinterpret_cast<std::uintptr_t>(a.plane) % 16 == 0 && a.plane_pitch % 4 == 0 && a.plane_frame % 4 == 0 &&
         a.plane_pitch >= 0 && std::int64_t{a.plane_pitch} * a.height < (std::int64_t{1} << 31);
}

bool is_faster(const PlaneArgs<float, float>& a, const JointLimits& limits, int row_tiles, int processors) {
  return std::int64_t{a.frames} * a.height * a.width >= std::int64_t{limits.enough_samples} * processors &&
         a.height * std::int64_t{4} >=
             std::int64_t{row_tiles} * limits.own_rows * 3;  // of a tile's rows most are there
}

template <class Kernel>
bool run_joint(const char* name, Kernel kernel, int threads, const PlaneArgs<float, float>& a,
               const JointLimits& limits, const JointChoice& choice, const Stream& stream) {
  const int row_tiles = (a.height + limits.own_rows - 1) / limits.own_rows, pairs = (a.frames + 1) / 2;
  if (!is_possible(a, limits, choice) ||
      (choice.levels == JointLevels::kWhereFaster && !is_faster(a, limits, row_tiles, choice.processors)))
    return false;
  JointArgs f{a, (a.width + kTileOwnWide - 1) / kTileOwnWide, limits.longest};
  const double tiles = static_cast<double>(f.tiles) * row_tiles;
  const auto segments = [&] { return (pairs + f.segment - 1) / f.segment; };
  while (f.segment > limits.shortest && tiles * segments() < limits.enough_blocks * choice.processors) f.segment /= 2;
  while (segments() > 65535) f.segment *= 2;  // the limit of a grid
  check(
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(limits.shared_bytes)),
      "cudaFuncSetAttribute");
  launch(name, kernel, dim3(static_cast<unsigned>(f.tiles * row_tiles), static_cast<unsigned>(segments())),
         dim3(static_cast<unsigned>(threads)), limits.shared_bytes, stream.get(), f);
  return true;
}

}  // namespace

bool forward_joint(const PlaneArgs<float, float>& a, const JointChoice& choice, const Stream& stream) {
  return run_joint("forward_joint_kernel", forward_joint_kernel, 32 * ForwardTile::kWarps, a, kForwardLimits, choice,
                   stream);
}

bool inverse_joint(const PlaneArgs<float, float>& a, const JointChoice& choice, const Stream& stream) {
  return run_joint("inverse_joint_kernel", inverse_joint_kernel, 32 * InverseTile::kWarps, a, kInverseLimits, choice,
                   stream);
}

}  // namespace trivelet::gpu
