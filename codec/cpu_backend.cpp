// The backend on the CPU: transform, then all code blocks of all components in parallel. One GOP at a time.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

#include "codec/backend.h"
#include "codec/block_cut.h"
#include "codec/colour.h"
#include "codec/dense.h"
#include "codec/dense_block.h"
#include "codec/dwt.h"
#include "codec/fast_pass_table.h"
#include "codec/motion_decisions.h"
#include "codec/motion_gop.h"
#include "codec/parallel.h"
#include "codec/prediction_backend.h"
#include "codec/rate_control.h"
#include "codec/rounding.h"
#include "codec/simd.h"
#include "codec/squared_error.h"
#include "codec/stage_timer.h"
#include "codec/stopwatch.h"
#include "codec/zerotree.h"

namespace trivelet {

// -------------------------------------------------------------------------------------------------- shared with others

StreamGeometry::StreamGeometry(const StreamHeader& header, int frames) : frames_(frames) {
  std::vector<std::pair<Shape, int>> known;
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const std::pair<Shape, int> key{header.component_shape(c, frames),
                                    header.components[static_cast<std::size_t>(c)].spatial_levels};
    const auto at = std::find(known.begin(), known.end(), key);
    grid_of_.push_back(static_cast<std::size_t>(at - known.begin()));
    if (at == known.end()) {
      known.push_back(key);
      grids_.emplace_back(key.first, header.decomposition(c), header.lossless, header.block_size());
    }
  }
}

std::uint64_t geometry_memory(const StreamHeader& header) {
  constexpr std::uint64_t kMaskBytes = 4 * 16 + 8;  // of a word
  const std::uint64_t segment = sizeof(LayeredSegment) + header.layers * sizeof(LayerPart);
  std::uint64_t bytes = 0;
  std::vector<std::pair<Shape, int>> known;  // components of equal shape share their masks
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape s = header.component_shape(c, header.gop_frames);
    const Decomposition d = header.decomposition(c);
    const GridSize grid = grid_size(s, d, header.block_size());
    bytes += grid.blocks * static_cast<std::uint64_t>(grid.segments) * segment;
    const std::pair<Shape, int> key{s, d.spatial_levels};
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    known.push_back(key);
    bytes += grid.words * kMaskBytes;
  }
  return bytes;
}

void StreamGeometry::clear(LayeredGop& gop) const {
  gop.components.resize(static_cast<std::size_t>(components()));
  for (int c = 0; c < components(); ++c) {
    LayeredGop::Component& component = gop.components[static_cast<std::size_t>(c)];
    component.grid = &grid(c);
    component.blocks.resize(static_cast<std::size_t>(component.grid->blocks()));
    for (auto& block : component.blocks) {
      block.resize(static_cast<std::size_t>(segment_count(*component.grid)));
      for (LayeredSegment& s : block) {
        s.top = 0;
        s.parts.clear();
      }
    }
  }
}

LayerPlan layer_plan(const StreamHeader& header, const BlockGrid& grid) {
  const SubbandTable& table = grid.table();
  const int segments = segment_count(grid);
  // Lossy subbands are quantised in proportion to their weight, so a plane means the same everywhere. Integer
  // transforms are not scaled: there a subband of weight 2^n keeps n planes more.
  std::vector<int> shift(static_cast<std::size_t>(segments), 0);
  if (header.lossless) {
    double least = 1e30;
    auto norm = [&](int b, int k) { return table.at(b, k, k == 0 ? 0 : 1).norm; };
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k) least = std::min(least, norm(b, k));
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k)
        shift[static_cast<std::size_t>(segment_index(grid, b, k))] =
            static_cast<int>(std::lround(std::log2(norm(b, k) / least)));
  }
  LayerPlan plan;
  plan.layers = header.layers;
  plan.low.assign(static_cast<std::size_t>(plan.layers * segments), 0);
  for (int l = 0; l + 1 < plan.layers; ++l)
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k) {
        const int s = segment_index(grid, b, k);
        int low = std::max(0, plan.layers - 1 - l - shift[static_cast<std::size_t>(s)]);
        // A child is never cut lower than its parent.
        const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
        if (k > 0) low = std::max<int>(low, plan.low[static_cast<std::size_t>(l * segments + s - 1)]);
        if (k == 0 && parent >= 0)
          low = std::max<int>(low, plan.low[static_cast<std::size_t>(l * segments + segment_index(grid, parent, 0))]);
        plan.low[static_cast<std::size_t>(l * segments + s)] = static_cast<std::uint8_t>(low);
      }
  return plan;
}

LayerPlan plane_plan(const BlockGrid& grid) {
  LayerPlan plan;
  plan.layers = dense::kMaxPlanes;
  for (int l = 0; l < plan.layers; ++l)
    plan.low.insert(plan.low.end(), static_cast<std::size_t>(segment_count(grid)),
                    static_cast<std::uint8_t>(dense::kMaxPlanes - 1 - l));
  return plan;
}

namespace {

template <class T>
std::vector<std::vector<T>>& memory(CoefficientGop& c);
template <>
std::vector<std::vector<float>>& memory<float>(CoefficientGop& c) {
  return c.real;
}
template <>
std::vector<std::vector<std::int32_t>>& memory<std::int32_t>(CoefficientGop& c) {
  return c.integer;
}

template <class T>
Field<T> packed_field(T* data, const Shape& shape) {
  Field<T> f;
  f.data = data;
  f.shape = shape;
  f.row_stride = shape.width;
  f.frame_stride = static_cast<std::ptrdiff_t>(shape.width) * shape.height;
  return f;
}

template <class T>
Field<T> field_of(CoefficientGop& c, int component, const Shape& shape) {
  auto& m = memory<T>(c)[static_cast<std::size_t>(component)];
  if (m.size() < shape.samples()) m.resize(shape.samples());
  return packed_field(m.data(), shape);
}

void set_pointer(SubbandView& v, float* p) { v.real = p; }
void set_pointer(SubbandView& v, std::int32_t* p) { v.integer = p; }

// Shapes and decompositions of the components after a reduction.
struct Reduced {
  VideoInfo video;
  int frames;  // of the GOP itself
  const StreamHeader& header;
  Reduction reduction;

  Reduced(const StreamHeader& h, const Reduction& r, int full_frames)
      : video(h.video),
        frames(low_length(h.component_shape(0, full_frames).frames, r.temporal) - (h.key_last ? 1 : 0)),
        header(h),
        reduction(r) {
    video.width = low_length(h.video.width, r.spatial);
    video.height = low_length(h.video.height, r.spatial);
  }
  Shape shape(int c) const {
    const Shape full = header.component_shape(c, frames);
    return {full.frames, low_length(full.height, reduction.spatial), low_length(full.width, reduction.spatial)};
  }
  Decomposition decomposition(int c) const {
    Decomposition d = header.decomposition(c);
    d.spatial_levels -= reduction.spatial;
    d.temporal_levels = std::max(0, d.temporal_levels - reduction.temporal);
    return d;
  }
};

// Allocates the fields of a GOP and lists its subbands.
template <class T>
void lay_out(const Reduced& r, int full_frames, float step, CoefficientGop& out) {
  const auto components = r.header.components.size();
  out.lossless = r.header.lossless;
  out.subbands.clear();
  memory<T>(out).resize(components);
  for (int c = 0; c < static_cast<int>(components); ++c) {
    const Shape shape = r.shape(c);
    const Field<T> field = field_of<T>(out, c, shape);
    const Decomposition d = r.decomposition(c);
    const SubbandTable table(shape, d, r.header.lossless);
    const SubbandTable full(r.header.component_shape(c, full_frames), r.header.decomposition(c), r.header.lossless);
    for (const Subband& s : table.all()) {
      if (s.shape.samples() == 0) continue;
      SubbandView v;
      v.component = c;
      v.temporal_band = s.temporal_band;
      v.level = s.resolution == 0 ? d.spatial_levels : d.spatial_levels - s.resolution + 1;
      v.level += r.reduction.spatial;
      v.orientation = s.orientation;
      v.norm = full.at(s.temporal_band, s.resolution, s.orientation).norm;
      v.step = r.header.lossless
                   ? 1.0f
                   : subband_step(r.header.components[static_cast<std::size_t>(c)], step, v.norm, s.resolution);
      const Field<T> view = subband_view(field, s);
      v.shape = view.shape;
      v.row_stride = view.row_stride;
      v.frame_stride = view.frame_stride;
      set_pointer(v, view.data);
      out.subbands.push_back(v);
    }
  }
}

// Low bands of the unscaled 9/7 are amplified by dc_gain once per split and axis that has more than one sample.
template <class T>
float synthesis_gain(const StreamHeader& header, const Reduction& reduction, int c, int source_frames) {
  if (std::is_integral_v<T>) return 1.0f;
  const Shape full = header.component_shape(c, source_frames);
  const int times = effective_levels(full.frames, std::min<int>(reduction.temporal, header.temporal_levels));
  const int spaces = effective_levels(full.width, reduction.spatial) + effective_levels(full.height, reduction.spatial);
  double amplified = 1;
  for (int i = 0; i < times; ++i) amplified *= dc_gain(header.temporal);
  for (int i = 0; i < spaces; ++i) amplified *= dc_gain(header.spatial);
  return static_cast<float>(1.0 / amplified);
}

// Without what happens along time.
Decomposition in_space(Decomposition d) {
  d.temporal_levels = 0;
  return d;
}

// The inverse ones, of the frames that are left.
std::vector<float> inverse_gains(const std::vector<std::uint8_t>& frame_gains, int temporal_reduction) {
  std::vector<float> gains;
  for (std::size_t t = 0; t < frame_gains.size(); t += std::size_t{1} << temporal_reduction)
    gains.push_back(static_cast<float>(64.0 / frame_gains[t]));
  return gains;
}

// ------------------------------------------------------------------------------------------------------------ encoder

// Headers that describe the GOPs of a stream: without motion, and with it by the place of their key.
class GopHeaders {
 public:
  explicit GopHeaders(const StreamHeader& header)
      : still_(header),
        key_first_(header.of_gop(true, GopKey::kFirst)),
        key_last_(header.of_gop(true, GopKey::kLast)) {}
  const StreamHeader& of(const GopMotion* motion) const { return motion ? of(motion->places.key) : still_; }
  const StreamHeader& of(GopKey key) const { return key == GopKey::kFirst ? key_first_ : key_last_; }

 private:
  StreamHeader still_, key_first_, key_last_;
};

class CpuEncoder final : public GopEncoder, public MotionDecisions {
 public:
  CpuEncoder(const StreamHeader& header, const BackendOptions& options)
      : header_(header),
        headers_(header),
        simd_(resolve_simd(options.simd)),
        pool_(options.threads, options.workers),
        motion_(header_, pool_, simd_, options.effort) {
    for (int i = 0; i < pool_.threads(); ++i) {
      if (header.profile == Profile::kDense)
        dense_.push_back(std::make_unique<DenseEncoder>(nullptr, simd_));
      else
        fast_.push_back(std::make_unique<BlockEncoder>(header.fast_mode, simd_));
    }
  }

  int depth() const override { return 1; }

  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    MotionKey unused;
    transform(gop, choices, {nullptr, &unused, nullptr}, out);
  }

  void push(const Gop& gop, const GopChoices& choices) override {
    next_gop();
    push_gop(gop, choices);
  }

  void push_again(const Gop& gop, const GopChoices& choices) override {
    moves_otherwise(gop, choices) ? push_gop(gop, choices) : push(coefficients_, choices);
  }

  std::shared_ptr<const GopMotion> decide(const Gop& gop, const GopChoices& choices, bool again) override {
    if (!again) next_gop();
    if (again && !moves_otherwise(gop, choices)) return coefficients_.motion;
    // Where nothing else is asked, vectors are enough.
    const bool vectors_alone =
        header_.profile == Profile::kFast && !choices.passes && choices.motion == Motion::kOn && may_move(gop, choices);
    if (!vectors_alone) {
      prepare(gop, choices);
    } else {
      search(gop, choices, key_before_, coefficients_);
      key_ = motion_.last_frame();
    }
    return coefficients_.motion;
  }

  void push(CoefficientGop& coefficients, const GopChoices& choices) override {
    require(coefficients.lossless == header_.lossless, ErrorKind::kBadArgument,
            "coefficients of another kind than the stream's");
    require(coefficients.frames >= 1 && coefficients.frames <= header_.gop_frames, ErrorKind::kBadArgument,
            "coefficients of " + std::to_string(coefficients.frames) + " frames; GOPs hold 1.." +
                std::to_string(header_.gop_frames));
    require(!coefficients.motion || (header_.motion && coefficients.motion->places.frames() == coefficients.frames),
            ErrorKind::kBadArgument, "the motion of other coefficients");
    header_.lossless ? code_all<std::int32_t>(coefficients, choices) : code_all<float>(coefficients, choices);
  }

  double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) override {
    if (coefficients_.motion)
      return header_.lossless ? moving_error_as<std::int32_t>(gop, choices, cuts)
                              : moving_error_as<float>(gop, choices, cuts);
    return header_.lossless ? squared_error_as<std::int32_t>(gop, choices, cuts)
                            : squared_error_as<float>(gop, choices, cuts);
  }

  bool pull(CodedGop& out) override {
    if (!pending_) return false;
    pending_ = false;
    out = std::move(coded_);
    coded_ = {};
    return true;
  }

  double seconds_transform() const override { return transform_time_.seconds; }
  double seconds_coder() const override { return coder_time_.seconds; }
  double busy_transform() const override { return transform_time_.busy; }
  const ThreadPool* pool() const override { return &pool_; }

 private:
  // How a GOP is coded, component by component.
  struct Coding {
    const GopChoices& choices;
    bool dense;
    std::vector<StepTable> steps;
    std::vector<ErrorWeights> weights;
  };

  auto pool_times() const {
    return [this] { return pool_.times(); };
  }

  int components() const { return static_cast<int>(header_.components.size()); }

  const StreamGeometry& geometry_of(int frames, const GopMotion* motion) {
    const StreamHeader& header = headers_.of(motion);
    auto& geometry = geometries_[{frames, &header}];
    if (!geometry) geometry = std::make_unique<StreamGeometry>(header, frames);
    return *geometry;
  }

  bool may_move(const Gop& gop, const GopChoices& choices) const {
    return header_.motion && choices.motion != Motion::kOff && (gop.frames() > 1 || choices.key == GopKey::kOpen);
  }

  void next_gop() {
    // The search needs as much memory for its pictures as measuring errors did.
    if (header_.motion) std::vector<float>().swap(real_);
    std::swap(key_before_, key_);
    std::swap(decoded_before_, decoded_key_);
    decoded_key_ = {};
  }

  // Motion that was chosen for a much finer or coarser step would not be chosen for this one.
  bool moves_otherwise(const Gop& gop, const GopChoices& choices) const {
    constexpr float kMuch = 1.5f;
    return may_move(gop, choices) && (choices.step > kMuch * motion_step_ || kMuch * choices.step < motion_step_);
  }

  // The coefficients of all components, where more is done to them than to code them component by component.
  bool prepare(const Gop& gop, const GopChoices& choices) {
    key_ = {};
    coefficients_.motion = nullptr;
    if (!choices.passes && !choices.round_by_cost && !may_move(gop, choices)) return false;
    transform(gop, choices, {&key_before_, &key_, nullptr}, coefficients_);
    motion_step_ = choices.step;
    if (choices.round_by_cost) {
      const StageTimer timer(coder_time_, pool_times());
      trivelet::round_by_cost(headers_.of(coefficients_.motion.get()), coefficients_, choices.step, pool_);
    }
    return true;
  }

  void push_gop(const Gop& gop, const GopChoices& choices) {
    if (prepare(gop, choices)) return push(coefficients_, choices);
    header_.lossless ? push_as<std::int32_t>(gop, choices) : push_as<float>(gop, choices);
  }

  void transform(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
    out.frame_gains = choices.frame_gains;
    out.motion = nullptr;
    const bool moves = may_move(gop, choices);
    if (!moves || choices.motion == Motion::kAuto) transform_still(gop, out);
    if (!moves) return;
    const double still = choices.motion == Motion::kAuto ? coding_cost(header_, out, choices.step) : 0;
    transform_moving(gop, choices, keys, out);
    if (choices.motion == Motion::kOn || still > coding_cost(headers_.of(out.motion.get()), out, choices.step) +
                                                     motion_cost(header_, *out.motion, choices.step))
      return;
    *keys.own = {};
    out.frame_gains = choices.frame_gains;
    out.motion = nullptr;
    transform_still(gop, out);
  }

  void transform_still(const Gop& gop, CoefficientGop& out) {
    header_.lossless ? transform_as<std::int32_t>(gop, out) : transform_as<float>(gop, out);
  }

  void transform_moving(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
    const StageTimer timer(transform_time_, pool_times());
    const MotionKey none;
    out.frame_gains.clear();
    search(gop, choices, keys.before ? *keys.before : none, out);
    header_.lossless ? move_as<std::int32_t>(keys, out) : move_as<float>(keys, out);
  }

  // The motion of a GOP; its samples stand where its coefficients will.
  void search(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
    require(choices.key != GopKey::kOpen || !before.empty(), ErrorKind::kInternal,
            "an open GOP behind one without a key");
    header_.lossless ? load_as<std::int32_t>(gop, choices, before, out) : load_as<float>(gop, choices, before, out);
    out.motion = motion_.search(choices.step);
  }

  template <class T>
  void load_as(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
    const Reduced r(headers_.of(choices.key), {}, gop.frames());
    lay_out<T>(r, gop.frames(), 0, out);
    set_times(gop, out);
    std::vector<Field<std::int32_t>> integers;
    for (const Field<T>& field : fields_of<T>(out, r)) integers.push_back(as_integers(field));
    motion_.load(gop, choices.key, before, integers);
  }

  // What was loaded and searched.
  template <class T>
  void move_as(const MotionKeys& keys, CoefficientGop& out) {
    const Reduced r(headers_.of(out.motion.get()), {}, out.frames);
    for (int c = 0; c < components(); ++c) {
      motion_.forward(*out.motion, c, keys, std::is_floating_point_v<T>);
      forward_transform<T>(field_of<T>(out, c, r.shape(c)), in_space(r.decomposition(c)), pool_, simd_);
    }
  }

  static void set_times(const Gop& gop, CoefficientGop& out) {
    out.frames = gop.frames();
    out.source_frames = gop.frames();
    out.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
  }

  // Components whose coefficients are in memory at once: as many as find room in that of the largest, three of a colour
  // transform. Returns the end of the group that begins with `first`.
  int group_end(int first, int frames) const {
    if (first == 0 && header_.colour_transform) return 3;
    std::size_t room = 0;
    for (int c = 0; c < components(); ++c) room = std::max(room, header_.component_shape(c, frames).samples());
    int end = first;
    for (std::size_t used = 0; end < components(); ++end) {
      used += header_.component_shape(end, frames).samples();
      if (end > first && used > room) break;
    }
    return end;
  }

  // Fields for the components [first, end), one behind the other in `memory`.
  template <class T>
  std::vector<Field<T>> fields_in(std::vector<T>& memory, int first, int end, int frames) const {
    std::size_t samples = 0;
    for (int c = first; c < end; ++c) samples += header_.component_shape(c, frames).samples();
    if (memory.size() < samples) memory.resize(samples);
    std::vector<Field<T>> fields;
    T* at = memory.data();
    for (int c = first; c < end; ++c) {
      fields.push_back(packed_field(at, header_.component_shape(c, frames)));
      at += fields.back().shape.samples();
    }
    return fields;
  }

  template <class T>
  std::vector<T>& group_memory() {
    if constexpr (std::is_same_v<T, float>)
      return real_;
    else
      return integer_;
  }

  // The components from `first` on that `fields` are for.
  template <class T>
  void transform_group(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                       const std::vector<Field<T>>& fields) {
    std::vector<float> gains;
    for (const std::uint8_t g : frame_gains) gains.push_back(static_cast<float>(g) / 64.0f);
    std::size_t i = 0;
    if (first == 0 && header_.colour_transform) {
      forward_colour<T>(gop, header_.components[0].offset, fields[0], fields[1], fields[2], pool_);
      for (; i < 3; ++i)
        forward_transform<T>(fields[i], header_.decomposition(static_cast<int>(i)), pool_, simd_, gains);
    }
    for (; i < fields.size(); ++i) {
      const int c = first + static_cast<int>(i);
      forward_transform<T>(gop.plane(c), header_.components[static_cast<std::size_t>(c)].offset, fields[i],
                           header_.decomposition(c), pool_, simd_, gains);
    }
  }

  template <class T>
  void transform_as(const Gop& gop, CoefficientGop& out) {
    const StageTimer timer(transform_time_, pool_times());
    const Reduced r(header_, {}, gop.frames());
    lay_out<T>(r, gop.frames(), 0, out);
    set_times(gop, out);
    transform_group<T>(gop, out.frame_gains, 0, fields_of<T>(out, r));
  }

  template <class T>
  std::vector<Field<T>> fields_of(CoefficientGop& in, const Reduced& r) const {
    std::vector<Field<T>> fields;
    for (int c = 0; c < components(); ++c) fields.push_back(field_of<T>(in, c, r.shape(c)));
    return fields;
  }

  Coding start_coding(int frames, const std::vector<std::uint8_t>& frame_gains,
                      const std::shared_ptr<const GopMotion>& motion, const GopChoices& choices) {
    const StreamGeometry& geometry = geometry_of(frames, motion.get());
    coded_.motion = motion;
    Coding coding{choices, header_.profile == Profile::kDense, {}, {}};
    coded_.components.resize(static_cast<std::size_t>(components()));
    for (int c = 0; c < components(); ++c) {
      const BlockGrid& grid = geometry.grid(c);
      auto& coded = coded_.components[static_cast<std::size_t>(c)];
      coded.grid = &grid;
      coded.blocks.resize(static_cast<std::size_t>(grid.blocks()));
      coding.steps.push_back(steps_of(grid, c, choices));
      if (!coding.dense) coded.plan = choices.passes ? plane_plan(grid) : layer_plan(header_, grid);
      if (coding.dense || choices.passes) {
        coded.passes.resize(coded.blocks.size());
        coding.weights.push_back(error_weights(headers_.of(motion.get()), c, grid.table(), choices.step, frame_gains));
      }
    }
    return coding;
  }

  StepTable steps_of(const BlockGrid& grid, int c, const GopChoices& choices) const {
    return {grid.table(), header_.lossless ? 1.0f : choices.step, header_.components[static_cast<std::size_t>(c)]};
  }

  template <class T>
  void push_as(const Gop& gop, const GopChoices& choices) {
    const Coding coding = start_coding(gop.frames(), choices.frame_gains, nullptr, choices);
    for (int first = 0; first < components();) {
      const int end = group_end(first, gop.frames());
      const std::vector<Field<T>> fields = fields_in(group_memory<T>(), first, end, gop.frames());
      {
        const StageTimer timer(transform_time_, pool_times());
        transform_group<T>(gop, choices.frame_gains, first, fields);
      }
      code_group<T>(coding, first, fields);
      first = end;
    }
    pending_ = true;
  }

  template <class T>
  void code_all(CoefficientGop& in, const GopChoices& choices) {
    const Reduced r(headers_.of(in.motion.get()), {}, in.frames);
    code_group<T>(start_coding(in.frames, in.frame_gains, in.motion, choices), 0, fields_of<T>(in, r));
    pending_ = true;
  }

  // The blocks of the components from `first` on.
  template <class T>
  void code_group(const Coding& coding, int first, const std::vector<Field<T>>& fields) {
    const StageTimer timer(coder_time_, pool_times());
    for_blocks(first, static_cast<int>(fields.size()), [&](int component, int block, int worker) {
      const auto c = static_cast<std::size_t>(component);
      auto& coded = coded_.components[c];
      code_block(coding, c, block / coded.grid->columns(), block % coded.grid->columns(),
                 fields[static_cast<std::size_t>(component - first)], worker);
    });
  }

  // Calls f(component, block, worker) for the blocks of `count` components from `first` on, in parallel.
  template <class F>
  void for_blocks(int first, int count, const F& f) {
    std::vector<std::pair<int, int>> tasks;
    for (int c = first; c < first + count; ++c)
      for (int i = 0; i < coded_grid(c).blocks(); ++i) tasks.emplace_back(c, i);
    pool_.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
      f(tasks[static_cast<std::size_t>(i)].first, tasks[static_cast<std::size_t>(i)].second, worker);
    });
  }

  template <class T>
  void code_block(const Coding& coding, std::size_t c, int by, int bx, const Field<T>& field, int worker) {
    auto& coded = coded_.components[c];
    const auto block = static_cast<std::size_t>(by * coded.grid->columns() + bx);
    CodedBlock& out = coded.blocks[block];
    if (coding.dense) {
      DenseEncoder& coder = *dense_[static_cast<std::size_t>(worker)];
      coder.spare_last_pass(coding.choices.spare_last_pass);
      if constexpr (std::is_same_v<T, float>)
        coder.encode(*coded.grid, by, bx, field, coding.steps[c], header_.centroid, &coding.weights[c], out,
                     coded.passes[block]);
      else
        coder.encode(*coded.grid, by, bx, field, header_.centroid, &coding.weights[c], out, coded.passes[block]);
      return;
    }
    BlockEncoder& coder = *fast_[static_cast<std::size_t>(worker)];
    if constexpr (std::is_same_v<T, float>)
      coder.encode(*coded.grid, by, bx, field, coding.steps[c], coded.plan, out);
    else
      coder.encode(*coded.grid, by, bx, field, coded.plan, out);
    if (coding.choices.passes)
      fill_fast_pass_table(*coded.grid, by, bx, field, header_.lossless ? nullptr : &coding.steps[c], header_.centroid,
                           coding.weights[c], coded.plan, out, coded.passes[block]);
  }

  template <class T>
  double squared_error_as(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) {
    const int frames = gop.frames();
    const StreamGeometry& geometry = geometry_of(frames, nullptr);
    const Reduced r(header_, {}, frames);
    double sum = 0;
    double samples = 0;
    std::size_t at = 0;
    for (int first = 0; first < components();) {
      const int end = group_end(first, frames);
      const std::vector<Field<T>> fields = fields_in(group_memory<T>(), first, end, frames);
      for (int c = first; c < end; ++c) {
        const BlockGrid& grid = geometry.grid(c);
        const StepTable steps = steps_of(grid, c, choices);
        const auto segments = static_cast<std::size_t>(segment_count(grid));
        const auto i = static_cast<std::size_t>(c - first);
        cut_coefficients(header_.profile, grid, cuts.data() + at, header_.centroid, header_.lossless ? nullptr : &steps,
                         field_of<T>(coefficients_, c, r.shape(c)), fields[i], pool_, simd_);
        at += static_cast<std::size_t>(grid.blocks()) * segments;
        samples += static_cast<double>(fields[i].shape.samples());
      }
      sum = add_group_error<T>(gop, choices.frame_gains, first, fields, sum);
      first = end;
    }
    return sum / samples;
  }

  // The key frame of the GOP before is taken as it was measured last, if that was at cuts like these or there is nothing
  // better; else its error is about that of the key frame of this GOP.
  MotionKeys measuring_keys(const GopChoices& choices) {
    const bool has_key = !key_.empty();
    const bool known = !decoded_before_.empty() && (choices.cut_as_before || !has_key);
    return {known ? &decoded_before_ : &key_before_, has_key ? &decoded_key_ : nullptr,
            has_key && !known ? &key_ : nullptr};
  }

  // The same of a GOP with motion, whose coefficients are kept.
  template <class T>
  double moving_error_as(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) {
    const int frames = gop.frames();
    const GopMotion* motion = coefficients_.motion.get();
    const StreamGeometry& geometry = geometry_of(frames, motion);
    const Reduced r(headers_.of(motion), {}, frames);
    const MotionKeys keys = measuring_keys(choices);
    std::size_t at = 0;
    double sum = 0;
    double samples = 0;
    for (int first = 0; first < components();) {
      const int end = group_end(first, motion->places.count);
      const std::vector<Field<T>> fields = fields_in(group_memory<T>(), first, end, motion->places.count);
      for (int c = first; c < end; ++c) {
        const BlockGrid& grid = geometry.grid(c);
        const StepTable steps = steps_of(grid, c, choices);
        const Field<T>& field = fields[static_cast<std::size_t>(c - first)];
        cut_coefficients(header_.profile, grid, cuts.data() + at, header_.centroid, header_.lossless ? nullptr : &steps,
                         field_of<T>(coefficients_, c, r.shape(c)), field, pool_, simd_);
        inverse_transform<T>(field, in_space(r.decomposition(c)), pool_, simd_);
        at += static_cast<std::size_t>(grid.blocks()) * static_cast<std::size_t>(segment_count(grid));
        samples += static_cast<double>(gop.plane(c).shape.samples());
      }
      sum = motion_.inverse_error<T>(fields, first, *motion, keys, gop, sum);
      first = end;
    }
    return sum / samples;
  }

  // `sum` and the squared errors of the components from `first` on, one after the other.
  template <class T>
  double add_group_error(const Gop& gop, const std::vector<std::uint8_t>& frame_gains, int first,
                         const std::vector<Field<T>>& fields, double sum) {
    const std::vector<float> gains = inverse_gains(frame_gains, 0);
    const PixelFormat& f = header_.video.format;
    std::size_t i = 0;
    if (first == 0 && header_.colour_transform) {
      for (; i < 3; ++i)
        inverse_transform<T>(fields[i], header_.decomposition(static_cast<int>(i)), pool_, simd_, gains);
      Gop decoded(header_.video, gop.frames());
      decoded.set_frames(gop.frames());
      inverse_colour<T>(fields[0], fields[1], fields[2], synthesis_gain<T>(header_, {}, 0, gop.frames()),
                        header_.components[0].offset, highest_sample(f), decoded, pool_);
      for (int c = 0; c < 3; ++c) sum += trivelet::squared_error(gop.plane(c), std::as_const(decoded).plane(c));
    }
    for (; i < fields.size(); ++i) {
      const int c = first + static_cast<int>(i);
      sum += inverse_transform_error<T>(fields[i], header_.decomposition(c),
                                        synthesis_gain<T>(header_, {}, c, gop.frames()),
                                        header_.components[static_cast<std::size_t>(c)].offset, lowest_sample(f),
                                        highest_sample(f), gop.plane(c), pool_, simd_, gains);
    }
    return sum;
  }

  const BlockGrid& coded_grid(int c) const { return *coded_.components[static_cast<std::size_t>(c)].grid; }

  StreamHeader header_;
  GopHeaders headers_;
  SimdLevel simd_;
  ThreadPool pool_;
  MotionTransform motion_;
  MotionKey key_, key_before_;              // of the GOP pushed last, and the one before, not quantised
  MotionKey decoded_key_, decoded_before_;  // as they were when errors were measured last
  std::vector<std::unique_ptr<BlockEncoder>> fast_;
  std::vector<std::unique_ptr<DenseEncoder>> dense_;
  // By frames, and motion: few lengths occur, results refer to them.
  std::map<std::pair<int, const StreamHeader*>, std::unique_ptr<StreamGeometry>> geometries_;
  std::vector<float> real_;  // of a group of components
  std::vector<std::int32_t> integer_;
  CoefficientGop coefficients_;  // of the last GOP, all components, if it may be coded again or has motion
  float motion_step_ = 0;        // of which they are
  CodedGop coded_;
  bool pending_ = false;
  StageTime transform_time_;
  StageTime coder_time_;
};

// ------------------------------------------------------------------------------------------------------------ decoder

class CpuDecoder final : public GopDecoder {
 public:
  CpuDecoder(const StreamHeader& header, const Reduction& reduction, const BackendOptions& options)
      : header_(header),
        headers_(header),
        reduction_(reduction),
        simd_(resolve_simd(options.simd)),
        pool_(options.threads, options.workers),
        motion_(header_, pool_, simd_) {
    for (int i = 0; i < pool_.threads(); ++i) {
      if (header.profile == Profile::kDense)
        dense_.push_back(std::make_unique<DenseDecoder>());
      else
        fast_.push_back(std::make_unique<BlockDecoder>(header.fast_mode, simd_));
    }
  }

  int depth() const override { return 1; }

  void push(const LayeredGop& received, std::vector<std::string>* damage) override {
    received_ = &received;
    damage_ = damage;
  }

  bool pull(Gop& gop) override {
    if (received_ && !received_->motion && says_nothing(*received_)) {
      fill(*received_, gop);
      ++number_;
      received_ = nullptr;
      return true;
    }
    if (!pull(coefficients_)) return false;
    inverse(coefficients_, gop);
    return true;
  }

  bool pull(CoefficientGop& out) override {
    if (!received_) return false;
    const LayeredGop& in = *received_;
    received_ = nullptr;
    header_.lossless ? decode_as<std::int32_t>(in, out) : decode_as<float>(in, out);
    return true;
  }

  void inverse(CoefficientGop& coefficients, Gop& gop) override {
    header_.lossless ? inverse_as<std::int32_t>(coefficients, gop) : inverse_as<float>(coefficients, gop);
  }

  double seconds_transform() const override { return seconds_transform_; }
  double seconds_coder() const override { return seconds_coder_; }

 private:
  // A GOP without a plane of any segment is of one colour, and costs no more than that.
  bool says_nothing(const LayeredGop& in) const {
    const int unit = cuts_per_plane(header_.profile);
    for (const auto& component : in.components)
      for (const auto& block : component.blocks)
        for (const LayeredSegment& s : block)
          if (!s.parts.empty() && s.parts.back().low < unit * s.top) return false;
    return true;
  }

  void fill(const LayeredGop& in, Gop& gop) {
    const ScopeTimer timer(seconds_transform_);
    gop.set_frames(Reduced(header_, reduction_, in.frames).frames);
    const PixelFormat& f = header_.video.format;
    for (int c = 0; c < gop.components(); ++c) {
      const std::size_t offset_of = header_.colour_transform && c < 3 ? 0 : static_cast<std::size_t>(c);
      const int value = std::clamp(header_.components[offset_of].offset, lowest_sample(f), highest_sample(f));
      const MutableVolumeView v = gop.plane(c);
      pool_.parallel_for(gop.frames(), [&](int frame, int) {
        for (int y = 0; y < v.shape.height; ++y) {
          std::byte* row = v.row(frame, y);
          if (v.bytes_per_sample == 1)
            std::memset(row, value & 0xff, static_cast<std::size_t>(v.shape.width));
          else
            std::fill_n(reinterpret_cast<std::uint16_t*>(row), v.shape.width, static_cast<std::uint16_t>(value));
        }
      });
    }
  }

  // What codewords may ask for behind their ends is what the stream itself holds, and a little more.
  void allow(const LayeredGop& in) {
    std::int64_t bytes = 0;
    for (const auto& component : in.components)
      for (const auto& block : component.blocks)
        for (const LayeredSegment& s : block)
          for (const LayerPart& part : s.parts) bytes += part.size;
    allowance_ += 8 * bytes;
    for (const auto& decoder : dense_) decoder->set_allowance(&allowance_);
  }

  template <class T>
  void decode_as(const LayeredGop& in, CoefficientGop& out) {
    const ScopeTimer timer(seconds_coder_);
    allow(in);
    const Reduced r(headers_.of(in.motion.get()), reduction_, in.frames);
    lay_out<T>(r, in.frames, in.step, out);
    out.motion = in.motion;
    out.follows = in.follows;
    out.number = ++number_;
    out.frames = r.frames;
    out.source_frames = in.frames;
    out.frame_gains = in.frame_gains;
    struct Task {
      int component, by, bx;
    };
    std::vector<Task> tasks;
    std::vector<StepTable> steps;
    std::vector<SubbandTable> targets;
    for (int c = 0; c < static_cast<int>(in.components.size()); ++c) {
      const BlockGrid& grid = *in.components[static_cast<std::size_t>(c)].grid;
      targets.emplace_back(r.shape(c), r.decomposition(c), header_.lossless);
      steps.emplace_back(grid.table(), header_.lossless ? 1.0f : in.step,
                         header_.components[static_cast<std::size_t>(c)]);
      for (int by = 0; by < grid.rows(); ++by)
        for (int bx = 0; bx < grid.columns(); ++bx) tasks.push_back({c, by, bx});
    }
    std::mutex mutex;
    pool_.parallel_for(static_cast<int>(tasks.size()), [&](int i, int worker) {
      const Task& t = tasks[static_cast<std::size_t>(i)];
      const auto c = static_cast<std::size_t>(t.component);
      const auto& component = in.components[c];
      const auto& segments = component.blocks[static_cast<std::size_t>(t.by * component.grid->columns() + t.bx)];
      const Field<T> field = field_of<T>(out, t.component, r.shape(t.component));
      try {
        const StepTable* step = header_.lossless ? nullptr : &steps[c];
        if (header_.profile == Profile::kDense)
          dense_[static_cast<std::size_t>(worker)]->decode(*component.grid, targets[c], t.by, t.bx, segments,
                                                           in.stop_plane, header_.centroid, step, field);
        else
          fast_[static_cast<std::size_t>(worker)]->decode(*component.grid, targets[c], t.by, t.bx, segments,
                                                          in.stop_plane, header_.centroid, step, field);
      } catch (const Error& e) {
        if (e.kind() != ErrorKind::kBadStream || !damage_) throw;
        BlockDecoder::clear(*component.grid, targets[c], t.by, t.bx, field);
        const std::lock_guard lock(mutex);
        damage_->push_back("component " + std::to_string(t.component) + ", " + e.what());
      }
    });
  }

  template <class T>
  void inverse_as(CoefficientGop& in, Gop& gop) {
    const ScopeTimer timer(seconds_transform_);
    const StreamHeader& header = headers_.of(in.motion.get());
    const Reduced r(header, reduction_, 1);
    gop.set_frames(in.frames);
    if (in.frames == 0) return;  // of a few frames none is left when their rate is reduced
    const PixelFormat& f = header_.video.format;
    const auto gain_of = [&](int c) { return synthesis_gain<T>(header, reduction_, c, in.source_frames); };
    auto shape = [&](int c) {
      Shape s = r.shape(c);
      s.frames = header.component_shape(c, in.frames).frames;
      return s;
    };
    if (in.motion) {
      std::vector<Field<T>> fields;
      std::vector<float> field_gains;
      const int first = first_place(in.motion->places.key);
      for (int k = 0; k < gop.components(); ++k) {
        fields.push_back(field_of<T>(in, k, shape(k)));
        field_gains.push_back(gain_of(k));
        std::fill_n(fields.back().data, first * fields.back().frame_stride, T{});  // which is not coded
        inverse_transform<T>(fields.back(), in_space(r.decomposition(k)), pool_, simd_);
      }
      const bool open = in.motion->places.key == GopKey::kOpen && in.follows;
      require(!open || (key_number_ + 1 == in.number && !key_.empty()), ErrorKind::kBadStream,
              "a GOP is predicted from the one before, of which no samples were made");
      const MotionKey before = open ? std::exchange(key_, {}) : MotionKey();
      key_number_ = in.number;
      return motion_.inverse<T>(fields, field_gains, *in.motion, reduction_, {&before, &key_, nullptr}, gop);
    }
    const std::vector<float> gains = inverse_gains(in.frame_gains, reduction_.temporal);
    int c = 0;
    if (header_.colour_transform) {
      Field<T> fields[3];
      for (; c < 3; ++c) {
        fields[c] = field_of<T>(in, c, shape(c));
        inverse_transform<T>(fields[c], r.decomposition(c), pool_, simd_, gains);
      }
      inverse_colour<T>(fields[0], fields[1], fields[2], gain_of(0), header_.components[0].offset, highest_sample(f),
                        gop, pool_);
    }
    for (; c < gop.components(); ++c)
      inverse_transform<T>(field_of<T>(in, c, shape(c)), r.decomposition(c), gain_of(c),
                           header_.components[static_cast<std::size_t>(c)].offset, lowest_sample(f), highest_sample(f),
                           gop.plane(c), pool_, simd_, gains);
  }

  StreamHeader header_;
  GopHeaders headers_;
  Reduction reduction_;
  SimdLevel simd_;
  ThreadPool pool_;
  MotionTransform motion_;
  MotionKey key_;  // of the GOP with motion whose samples were made last
  std::uint64_t key_number_ = 0;
  std::uint64_t number_ = 0;  // of GOPs decoded
  std::vector<std::unique_ptr<BlockDecoder>> fast_;
  std::vector<std::unique_ptr<DenseDecoder>> dense_;
  std::atomic<std::int64_t> allowance_{8 * 4096};  // bits
  CoefficientGop coefficients_;
  const LayeredGop* received_ = nullptr;
  std::vector<std::string>* damage_ = nullptr;
  double seconds_transform_ = 0;
  double seconds_coder_ = 0;
};

std::unique_ptr<GopEncoder> make_cpu_encoder(const StreamHeader& h, const BackendOptions& o) {
  if (h.profile == Profile::kPredictive) return make_predictive_encoder(h, o);
  return std::make_unique<CpuEncoder>(h, o);
}
std::unique_ptr<GopDecoder> make_cpu_decoder(const StreamHeader& h, const Reduction& r, const BackendOptions& o) {
  if (h.profile == Profile::kPredictive) return make_predictive_decoder(h, o);
  return std::make_unique<CpuDecoder>(h, r, o);
}

}  // namespace

std::unique_ptr<MotionDecisions> make_motion_decisions(const StreamHeader& header, const BackendOptions& options) {
  return std::make_unique<CpuEncoder>(header, options);
}

const Backend& cpu_backend() {
  static const Backend backend{"cpu", make_cpu_encoder, make_cpu_decoder};
  return backend;
}

}  // namespace trivelet
