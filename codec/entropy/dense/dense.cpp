// The dense coder of a block (dense.h): codewords of segments, their truncation points with rate and distortion, and
// the reconstruction. The passes are in dense_passes.h.
#include "codec/entropy/dense/dense.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <type_traits>

#include "codec/base/lane_sums.h"
#include "codec/base/limits.h"
#include "codec/entropy/dense/dense_passes.h"
#include "codec/entropy/dense/packed_patch.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/transform/zero_patches.h"

namespace trivelet {

using namespace dense;

namespace {

TableSet table_set(const BlockGrid& grid, bool integer) {
  const bool dyadic = grid.table().decomposition().layout == Layout::kDyadic;
  return dyadic ? integer ? kDyadicInteger : kDyadicReal : integer ? kT2dInteger : kT2dReal;
}

// The context states of one segment: kContexts per orientation, set from the start tables.
struct SegmentStates {
  std::vector<dense::State> memory;
  dense::State* of[kMaxOrientations] = {};
  void start(const StartTables& tables, const BlockGrid& grid, int b, int k) {
    const int n = k == 0 ? 1 : grid.table().orientations();
    // Never shrink: resize() would clear the new part before start() overwrites it.
    const std::size_t needed = static_cast<std::size_t>(n) * kContexts;
    if (memory.size() < needed) memory.resize(needed);
    const int rc = resolution_class(k, grid.resolutions());
    for (int i = 0; i < n; ++i) {
      const int c = rc * kOrientationClasses + orientation_class(b, BlockGrid::orientation(k, i));
      of[i] = memory.data() + static_cast<std::size_t>(i) * kContexts;
      std::copy_n(tables.data() + static_cast<std::size_t>(c) * kContexts, kContexts, of[i]);
    }
  }
};

// ------------------------------------------------------------------------------------------------------------ encoder

template <class T>
struct EncodingCoder {
  static constexpr bool kDecoding = false;
  RangeEncoder* range;
  const BlockGrid* grid;
  const Field<T>* field;
  const float* inverse_steps;
  const ErrorWeights* weights;
  double offset[kMaxPlanes + 1];
  int by, bx, b, k;
  Field<T> source;
  float inverse_step = 1;
  double weight = 1;
  const double* frame_weight = nullptr;
  LaneSums sums;  // of the current frame of a subband
  int frame = -1;
  double gain = 0;  // of the frames before it
  // Changes of the coefficients of a row. The unrounded value of a float coefficient is far away in memory: it is
  // prefetched at once and read when the row is done.
  struct Change {
    const T* at;
    int x;
    double old, now;
  };
  static constexpr int kMostChanges = 512;
  Change changes[kMostChanges];
  int waiting = 0;

  bool code(dense::State& s, bool truth) {
    range->put(truth, probability(s));
    update(s, truth);
    return truth;
  }
  void row() {
    add_changes();
    range->reserve(2048);
  }
  void orientation(int i) {
    join();
    source = patch_view(*grid, by, bx, *field, grid->table().at(b, k, BlockGrid::orientation(k, i)));
    const std::size_t slot = subband_slot(*grid, b, k, i);
    if (inverse_steps) inverse_step = inverse_steps[slot];
    if (weights) {
      weight = weights->subband[slot];
      if (!weights->frame.empty()) frame_weight = weights->frame[static_cast<std::size_t>(b)].data();
    }
  }
  double weight_of(int t) const { return frame_weight ? weight * frame_weight[t] : weight; }
  void add_changes() {
    for (const Change* c = changes; c < changes + waiting; ++c)
      add(c->x, c->old, c->now, static_cast<double>(limited_magnitude(*c->at, inverse_step)));
    waiting = 0;
  }
  void join() {
    add_changes();
    if (frame >= 0) gain += weight_of(frame) * sums.take();
    frame = -1;
  }
  double take_gain() {
    join();
    const double all = gain;
    gain = 0;
    return all;
  }
  void add(int x, double old, double now, double exact) { sums.add(x, (now - old) * (2 * exact - old - now)); }
  void changed(int t, int y, int x, double old, double now, [[maybe_unused]] std::uint32_t magnitude) {
    if (t != frame) join();
    frame = t;
    if constexpr (std::is_same_v<T, float>) {
      if (waiting == kMostChanges) add_changes();
      const T* at = source.row(t, y) + x;
      __builtin_prefetch(at);
      changes[waiting++] = {at, x, old, now};
    } else {
      add(x, old, now, magnitude);
    }
  }
  void became_significant(int t, int y, int x, int plane, std::uint32_t magnitude) {
    changed(t, y, x, 0, static_cast<double>(std::uint32_t{1} << plane) + offset[plane], magnitude);
  }
  void refined(int t, int y, int x, int plane, std::uint32_t before, std::uint32_t known, std::uint32_t magnitude) {
    changed(t, y, x, static_cast<double>(before) + offset[plane + 1], static_cast<double>(known) + offset[plane],
            magnitude);
  }
};

}  // namespace

struct DenseEncoder::State {
  const StartTables* tables;
  SimdLevel simd;
  bool spares = false;
  Block block;
  SegmentStates states;
  RangeEncoder range;
  std::vector<RangeEncoder::Mark> marks;

  template <class T>
  void encode(const BlockGrid& grid, int by, int bx, const Field<T>& field, const float* inverse_steps, int centroid,
              const ErrorWeights* weights, CodedBlock& out, PassTable& table);
};

DenseEncoder::DenseEncoder(const StartTables* tables, SimdLevel simd) : state_(std::make_unique<State>()) {
  state_->tables = tables;
  state_->simd = simd;
}
DenseEncoder::~DenseEncoder() = default;
void DenseEncoder::spare_last_pass(bool spare) { state_->spares = spare; }

void DenseEncoder::encode(const BlockGrid& grid, int by, int bx, const Field<float>& field, const StepTable& steps,
                          int centroid, const ErrorWeights* weights, CodedBlock& out, PassTable& table) {
  state_->encode(grid, by, bx, field, steps.inverse.data(), centroid, weights, out, table);
}
void DenseEncoder::encode(const BlockGrid& grid, int by, int bx, const Field<std::int32_t>& field, int centroid,
                          const ErrorWeights* weights, CodedBlock& out, PassTable& table) {
  state_->encode(grid, by, bx, field, nullptr, centroid, weights, out, table);
}

template <class T>
void DenseEncoder::State::encode(const BlockGrid& grid, int by, int bx, const Field<T>& field,
                                 const float* inverse_steps, int centroid, const ErrorWeights* weights, CodedBlock& out,
                                 PassTable& table) {
  const StartTables& start = tables ? *tables : start_tables(table_set(grid, std::is_same_v<T, std::int32_t>));
  block.lay_out(grid, by, bx);
  block.load(grid, by, bx, field, inverse_steps, weights, simd, out.top, table.energy);
  const std::size_t segments = out.top.size();
  out.size.assign(segments, 0);
  out.offset.assign(segments, 0);
  out.bytes.clear();
  table.first.assign(segments, 0);
  table.passes.clear();
  table.spared = spares ? 1 : 0;

  EncodingCoder<T> coder;
  coder.range = &range;
  coder.grid = &grid;
  coder.field = &field;
  coder.inverse_steps = inverse_steps;
  coder.weights = weights;
  coder.by = by;
  coder.bx = bx;
  for (int p = 0; p <= kMaxPlanes; ++p) coder.offset[p] = static_cast<double>(reconstruction_offset_of<T>(centroid, p));

  for (int b = 0; b < static_cast<int>(block.families.size()); ++b)
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      const int top = out.top[s];
      out.offset[s] = out.bytes.size();
      table.first[s] = static_cast<std::uint32_t>(table.passes.size());
      if (!block.families[static_cast<std::size_t>(b)].used) continue;
      Level& level = block.families[static_cast<std::size_t>(b)].levels[static_cast<std::size_t>(k)];
      level.top = 0;
      coder.b = b;
      coder.k = k;
      if (top == 0) continue;
      level.reset(top);
      states.start(start, grid, b, k);
      range.start();
      marks.clear();
      SegmentCoder<EncodingCoder<T>> segment(block, b, k, states.of, coder);
      for (int p = top - 1; p >= 0; --p) {
        segment.significance_pass(p);
        marks.push_back(range.mark());
        table.passes.push_back({0, coder.take_gain()});
        if (p == 0 && spares) break;
        segment.refinement_pass(p);
        marks.push_back(range.mark());
        table.passes.push_back({0, coder.take_gain()});
      }
      range.finish();
      std::size_t bytes = 0;
      for (std::size_t i = 0; i < marks.size(); ++i) {
        bytes = std::max(bytes, range.bytes_until(marks[i]));
        table.passes[table.first[s] + i].bytes = static_cast<std::uint32_t>(bytes);
      }
      out.size[s] = static_cast<std::uint32_t>(range.size());
      out.bytes.insert(out.bytes.end(), range.data(), range.data() + range.size());
    }
}

// ------------------------------------------------------------------------------------------------------------ decoder

namespace {

struct DecodingCoder {
  static constexpr bool kDecoding = true;
  RangeDecoder range;
  std::atomic<std::int64_t>* allowance = nullptr;
  std::int64_t charged = 0;  // bits charged to the allowance for this codeword

  bool code(dense::State& s, bool) {
    const bool bit = range.get(probability(s));
    update(s, bit);
    return bit;
  }
  void row() {
    const std::int64_t beyond = range.beyond_end();
    if (beyond > charged) charge(beyond);
  }
  void charge(std::int64_t beyond) {
    if (!allowance) return;
    if (allowance->fetch_sub(beyond - charged) < beyond - charged)
      fail(ErrorKind::kUnsupported,
           "code blocks hold far more than their few bytes could say; such a stream is made to "
           "take time, and is not decoded");
    charged = beyond;
  }
  void orientation(int) {}
  void became_significant(int, int, int, int, std::uint32_t) {}
  void refined(int, int, int, int, std::uint32_t, std::uint32_t, std::uint32_t) {}
};

}  // namespace

namespace {

// Where to mark zero patches of a block that are not written; null: nowhere.
struct LeaveOut {
  ZeroPatches* here;
  int by, bx;
};

}  // namespace

struct DenseDecoder::State {
  const StartTables* tables;
  Block block;
  SegmentStates states;
  DecodingCoder coder;
  std::vector<int> cut;  // per segment; kNone when it is not decoded
  std::vector<std::uint8_t> joined;
  std::vector<std::uint32_t> packed;  // a patch

  static constexpr int kNone = 2 * kMaxPlanes + 2;
  // Free bits after the end of a codeword, because an encoder omits trailing zeros.
  static constexpr std::int64_t kFreeBits = 16;
  void plan(const BlockGrid& grid, const SubbandTable& target, const std::vector<LayeredSegment>& segments,
            int stop_plane);
  void start(const LayeredSegment& segment, int last_cut);
  void decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
              const std::vector<LayeredSegment>& segments, int stop_plane, bool integer);
  // What is known of a patch, and how it is restored.
  template <class T>
  struct Known {
    const Level* level;  // null: nothing
    int o;
    Restoring<T> how;
    bool is_used(int t, int y) const {
      bool any = false;
      for (int w = 0; level && w < level->words; ++w)
        any |= level->some[level->quad_row(o, t, y / 2) + static_cast<std::size_t>(w)] != 0;
      return any;
    }
    bool is_used(int t, const Shape& shape) const {
      bool any = false;
      for (int y = 0; y < shape.height && !any; y += 2) any = is_used(t, y);
      return any;
    }
  };
  template <class T>
  Known<T> known(const BlockGrid& grid, const Subband& band, int centroid, const float* steps) const;
  template <class T>
  void restore(const Subband& band, const Known<T>& what, Field<T> out, const LeaveOut& leave_out);
};

DenseDecoder::DenseDecoder(const StartTables* tables) : state_(std::make_unique<State>()) { state_->tables = tables; }
DenseDecoder::~DenseDecoder() = default;
void DenseDecoder::set_allowance(std::atomic<std::int64_t>* bits) { state_->coder.allowance = bits; }

// Finds the cut of every segment: the maximum of the end of its own parts, the cut that its parents allow, and the
// caller's.
void DenseDecoder::State::plan(const BlockGrid& grid, const SubbandTable& target,
                               const std::vector<LayeredSegment>& segments, int stop_plane) {
  cut.assign(segments.size(), kNone);
  for (int b = 0; b < target.temporal_bands(); ++b)
    for (int k = 0; k < target.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      const LayeredSegment& r = segments[s];
      require(r.top <= kMaxPlanes, ErrorKind::kBadStream,
              "a segment of " + count_of(r.top, "plane") + ", at most 30 are possible");
      int own = r.parts.empty() ? 2 * r.top : r.parts.back().low;
      const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
      const auto depend = [&](std::size_t on) {
        require(r.top <= segments[on].top, ErrorKind::kBadStream,
                "a segment has more planes than the one it depends on");
        own = std::max(own, lowest_dense_cut(cut[on]));
      };
      if (k > 0) depend(s - 1);
      if (k == 0 && parent >= 0) depend(static_cast<std::size_t>(segment_index(grid, parent, 0)));
      cut[s] = std::max(own, 2 * stop_plane);
    }
}

// Concatenates the parts that a cut needs.
void DenseDecoder::State::start(const LayeredSegment& segment, int last_cut) {
  coder.charged = kFreeBits;
  std::size_t n = 0;
  while (n + 1 < segment.parts.size() && segment.parts[n].low > last_cut) ++n;
  if (n == 0) {
    coder.range.start(segment.parts[0].data, segment.parts[0].size);
    return;
  }
  joined.clear();
  for (std::size_t i = 0; i <= n; ++i)
    joined.insert(joined.end(), segment.parts[i].data, segment.parts[i].data + segment.parts[i].size);
  coder.range.start(joined.data(), joined.size());
}

template <class T>
DenseDecoder::State::Known<T> DenseDecoder::State::known(const BlockGrid& grid, const Subband& band, int centroid,
                                                         const float* steps) const {
  const int b = band.temporal_band;
  const int k = band.resolution;
  const BlockFamily& family = block.families[static_cast<std::size_t>(b)];
  const int last = cut[static_cast<std::size_t>(segment_index(grid, b, k))];
  const int low = last >> 1;
  Known<T> what{
      family.used ? &family.levels[static_cast<std::size_t>(k)] : nullptr, std::max(0, band.orientation - 1), {}};
  if (what.level && low >= what.level->top) what.level = nullptr;
  if (what.level) {
    // After a first pass, coefficients that were significant before it still have an interval twice as wide.
    if (last & 1) what.how.older = std::uint32_t{2} << low;
    what.how.offset[0] = reconstruction_offset_of<T>(centroid, low);
    what.how.offset[1] = reconstruction_offset_of<T>(centroid, low + 1);
  }
  if (steps) what.how.step = static_cast<T>(steps[subband_slot(grid, b, k, what.o)]);
  return what;
}

template <class T>
void DenseDecoder::State::restore(const Subband& band, const Known<T>& what, Field<T> out, const LeaveOut& leave_out) {
  for (int t = 0; t < out.shape.frames; ++t) {
    if (leave_out.here && band.resolution > 0) {
      const bool any = what.is_used(t, out.shape);
      leave_out.here->set(band, t, leave_out.by, leave_out.bx, !any);
      if (!any) continue;
    }
    for (int y = 0; y < out.shape.height; ++y) {
      T* to = out.row(t, y);
      if (!what.is_used(t, y)) {
        std::memset(to, 0, sizeof(T) * static_cast<std::size_t>(out.shape.width));
        continue;
      }
      const std::ptrdiff_t at = what.level->at(what.o, t, y, 0);
      const std::uint32_t* m = what.level->known.data() + at;
      const std::int8_t* s = what.level->sign.data() + at;
      for (int x = 0; x < out.shape.width; ++x) to[x] = what.how.value(m[x], s[x]);
    }
  }
}

void DenseDecoder::State::decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                                 const std::vector<LayeredSegment>& segments, int stop_plane, bool integer) {
  const StartTables& from = tables ? *tables : start_tables(table_set(grid, integer));
  plan(grid, target, segments, stop_plane);
  block.lay_out(grid, by, bx);
  for (int b = 0; b < static_cast<int>(block.families.size()); ++b)
    for (int k = 0; k < grid.resolutions(); ++k) {
      const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
      BlockFamily& family = block.families[static_cast<std::size_t>(b)];
      if (!family.used) continue;
      Level& level = family.levels[static_cast<std::size_t>(k)];
      level.top = 0;
      const int top = segments[s].top;
      if (top == 0 || cut[s] >= 2 * top || segments[s].parts.empty()) continue;
      level.reset(top);
      states.start(from, grid, b, k);
      start(segments[s], cut[s]);
      SegmentCoder<DecodingCoder> segment(block, b, k, states.of, coder);
      for (int p = top - 1; 2 * p + 1 >= cut[s]; --p) {
        segment.significance_pass(p);
        if (2 * p >= cut[s]) segment.refinement_pass(p);
        if (p == 0) break;
      }
    }
}

template <class T>
void DenseDecoder::decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                          const std::vector<LayeredSegment>& segments, int stop_plane, int centroid,
                          const StepTable* steps, const BlockMemory<T>& memory, ZeroPatches* left_out) {
  State& st = *state_;
  st.decode(grid, target, by, bx, segments, stop_plane, std::is_same_v<T, std::int32_t>);
  for (const Subband& band : target.all())
    st.restore(band, st.known<T>(grid, band, centroid, steps ? steps->step.data() : nullptr),
               patch_view(grid, by, bx, memory, band), {left_out, by, bx});
}

template <class T>
void DenseDecoder::decode(const BlockGrid& grid, const SubbandTable& target, int by, int bx,
                          const std::vector<LayeredSegment>& segments, int stop_plane, int centroid,
                          const StepTable* steps, PackedSink<T>& sink, ZeroPatches& left_out) {
  State& st = *state_;
  st.decode(grid, target, by, bx, segments, stop_plane, std::is_same_v<T, std::int32_t>);
  for (const Subband& band : target.all()) {
    const BlockGrid::Patch p = grid.patch(band, by, bx);
    if (p.height <= 0 || p.width <= 0) continue;
    const State::Known<T> what = st.known<T>(grid, band, centroid, steps ? steps->step.data() : nullptr);
    for (int t = 0; t < band.shape.frames; ++t) {
      if (band.resolution > 0) {
        const bool any = what.is_used(t, {1, p.height, p.width});
        left_out.set(band, t, by, bx, !any);
        if (!any) continue;
      }
      pack_patch(what.level, what.o, t, p.height, p.width, what.how, st.packed);
      sink.add(band, t, by, bx, st.packed.data(), st.packed.size());
    }
  }
}

template void DenseDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, const BlockMemory<float>&, ZeroPatches*);
template void DenseDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, const BlockMemory<std::int32_t>&, ZeroPatches*);

template void DenseDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, PackedSink<float>&, ZeroPatches&);
template void DenseDecoder::decode(const BlockGrid&, const SubbandTable&, int, int, const std::vector<LayeredSegment>&,
                                   int, int, const StepTable*, PackedSink<std::int32_t>&, ZeroPatches&);

}  // namespace trivelet
