// Encoding on the CPU: the transform, then all code blocks of all components in parallel. Where a GOP may be coded
// again or has motion, the coefficients of all components are kept; otherwise components are transformed and coded in
// groups, so that less memory is used.

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "codec/base/simd.h"
#include "codec/base/squared_error.h"
#include "codec/cpu/cpu_backend.h"
#include "codec/cpu/cpu_fields.h"
#include "codec/cpu/motion_decisions.h"
#include "codec/cpu/motion_gop.h"
#include "codec/cpu/motion_rounding.h"
#include "codec/entropy/dense/dense.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/entropy/fast/fast_pass_table.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/rate/block_cut.h"
#include "codec/rate/coding_cost.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_timer.h"
#include "codec/transform/colour.h"
#include "codec/transform/dwt.h"

namespace trivelet {

namespace {

class CpuEncoder final : public GopEncoder, public MotionDecisions {
 public:
  CpuEncoder(const StreamHeader& header, const BackendOptions& options, MotionSearcher* searcher = nullptr)
      : header_(header),
        headers_(header),
        simd_(resolve_simd(options.simd)),
        effort_(options.effort),
        pool_(options.threads, options.workers),
        motion_(header_, pool_, simd_, options.effort),
        searcher_(searcher) {
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
    search_key_ = choices.key;
    transform(gop, choices, {nullptr, &unused, nullptr}, out);
  }

  void push(const Gop& gop, const GopChoices& choices) override {
    next_gop();
    push_gop(gop, placed(choices));
  }

  void push_again(const Gop& gop, const GopChoices& wanted) override {
    const GopChoices choices = placed(wanted);
    if (moves_otherwise(gop, choices)) return push_gop(gop, choices);
    round_otherwise(gop, choices);
    push(coefficients_, choices);
  }

  std::shared_ptr<const GopMotion> decide(const Gop& gop, const GopChoices& wanted, bool again) override {
    if (!again) next_gop();
    const GopChoices choices = placed(wanted);
    if (again && !moves_otherwise(gop, choices)) {
      round_otherwise(gop, choices);
      return coefficients_.motion;
    }
    // Only motion is asked for, so the search alone is enough.
    const bool vectors_alone =
        !choices.passes && choices.motion == Motion::kOn && may_move(header_, gop.frames(), choices);
    if (!vectors_alone) {
      prepare(gop, choices);
    } else if (searcher_) {
      coefficients_.motion = search_elsewhere(gop, choices);
      key_ = motion_.last_frame_of(gop, places_of(gop, choices));
    } else {
      search(gop, choices, coefficients_);
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
  double busy_coder() const override { return coder_time_.busy; }
  const ThreadPool* pool() const override { return &pool_; }

 private:
  // The coder's settings for a GOP, per component.
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
    const int levels = motion ? motion->places.levels : 0;
    auto& geometry = geometries_[GopKind(frames, levels, motion ? motion->places.key : GopKey::kFirst)];
    if (!geometry) geometry = std::make_unique<StreamGeometry>(headers_.of(motion), frames);
    return *geometry;
  }

  void next_gop() {
    // Frees the memory of error measurements: the search needs as much for its pictures.
    if (header_.motion) LargeVector<float>().swap(real_);
    std::swap(key_before_, key_);
    std::swap(decoded_before_, decoded_key_);
    decoded_key_ = {};
    std::swap(last_before_, last_);
    last_ = {};
  }

  // Replaces the key by one that is possible, given what the GOP before has left.
  GopChoices placed(GopChoices choices) {
    const bool left_key = !key_before_.empty();
    search_key_ = choices.search_key(left_key);
    choices.key = choices.key_behind(left_key);
    return choices;
  }

  static MotionPlaces places_of(const Gop& gop, const GopChoices& choices) {
    return {gop.frames(), choices.key, choices.levels};
  }

  // A much finer or coarser step would lead to other motion, so the search must be repeated.
  bool moves_otherwise(const Gop& gop, const GopChoices& choices) const {
    constexpr float kMuch = 1.5f;
    return may_move(header_, gop.frames(), choices) &&
           (choices.step > kMuch * motion_step_ || kMuch * choices.step < motion_step_);
  }

  // Makes the coefficients of all components, if they are needed at once: for coding them again, for rounding, or for
  // motion.
  bool prepare(const Gop& gop, const GopChoices& choices) {
    key_ = {};
    last_ = {};
    coefficients_.motion = nullptr;
    if (!choices.passes && choices.rounding_step == 0 && !may_move(header_, gop.frames(), choices)) return false;
    transform(gop, choices, {&key_before_, &key_, nullptr}, coefficients_);
    if (!coefficients_.motion && may_move(header_, gop.frames(), choices))
      last_ = motion_.last_frame_of(gop, places_of(gop, choices));
    motion_step_ = choices.step;
    round(choices);
    return true;
  }

  void round(const GopChoices& choices) {
    rounding_step_ = choices.rounding_step;
    if (rounding_step_ == 0) return;
    const StageTimer timer(coder_time_, pool_times());
    const StreamHeader& header = headers_.of(coefficients_.motion.get());
    if (effort_ == Effort::kSlow && coefficients_.motion)
      round_along_motion(header, motion_, coefficients_, rounding_step_, pool_, simd_);
    else
      round_by_cost(header, coefficients_, rounding_step_, pool_);
  }

  // The kept coefficients were rounded for another step. Makes them again, along the same motion.
  void round_otherwise(const Gop& gop, const GopChoices& choices) {
    if (choices.rounding_step == rounding_step_) return;
    if (coefficients_.motion) {
      const StageTimer timer(transform_time_, pool_times());
      const std::shared_ptr<const GopMotion> motion = coefficients_.motion;
      load(gop, choices, key_before_, coefficients_);
      coefficients_.motion = motion;
      move({&key_before_, &key_, nullptr}, coefficients_);
    } else {
      transform_still(gop, coefficients_);
    }
    round(choices);
  }

  void push_gop(const Gop& gop, const GopChoices& choices) {
    if (prepare(gop, choices)) return push(coefficients_, choices);
    header_.lossless ? push_as<std::int32_t>(gop, choices) : push_as<float>(gop, choices);
  }

  void transform(const Gop& gop, const GopChoices& choices, const MotionKeys& keys, CoefficientGop& out) {
    out.frame_gains = choices.frame_gains;
    out.motion = nullptr;
    const bool moves = may_move(header_, gop.frames(), choices);
    if (!moves || choices.motion == Motion::kAuto) transform_still(gop, out);
    if (!moves) return;
    const double still = choices.motion == Motion::kAuto ? coding_cost(header_, out, choices.step, pool_) : 0;
    transform_moving(gop, choices, keys, out);
    if (choices.motion == Motion::kOn || still > coding_cost(headers_.of(out.motion.get()), out, choices.step, pool_) +
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
    out.frame_gains.clear();
    search(gop, choices, out);
    move(keys, out);
  }

  void load(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
    header_.lossless ? load_as<std::int32_t>(gop, choices, before, out) : load_as<float>(gop, choices, before, out);
  }

  void move(const MotionKeys& keys, CoefficientGop& out) {
    header_.lossless ? move_as<std::int32_t>(keys, out) : move_as<float>(keys, out);
  }

  // Finds the motion of a GOP. Its samples are in the memory of the coefficients.
  void search(const Gop& gop, const GopChoices& choices, CoefficientGop& out) {
    GopChoices searched = choices;
    searched.key = search_key_;
    load(gop, searched, searched_behind(), out);
    out.motion = searcher_ ? search_elsewhere(gop, choices) : motion_.search(choices.step, search_key_ != choices.key);
  }
  std::shared_ptr<const GopMotion> search_elsewhere(const Gop& gop, const GopChoices& choices) const {
    const MotionPlaces places(gop.frames(), search_key_, choices.levels);
    return motion_.search(gop, places, searched_behind(), choices.step, search_key_ != choices.key, *searcher_);
  }
  // The frame before an open GOP, or before one that is searched as an open one.
  const MotionKey& searched_behind() const {
    const MotionKey& before = key_before_.empty() ? last_before_ : key_before_;
    require(search_key_ != GopKey::kOpen || !before.empty(), ErrorKind::kInternal,
            "an open GOP behind one without a key");
    return before;
  }

  template <class T>
  void load_as(const Gop& gop, const GopChoices& choices, const MotionKey& before, CoefficientGop& out) {
    const MotionPlaces places = places_of(gop, choices);
    const Reduced r(headers_.of(places), {}, gop.frames());
    lay_out<T>(r, gop.frames(), 0, out);
    set_times(gop, out);
    std::vector<Field<std::int32_t>> integers;
    for (const Field<T>& field : fields_of<T>(out, r)) integers.push_back(as_integers(field));
    motion_.load(gop, places, before, integers);
  }

  // Transforms what was loaded, along the motion that was found.
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

  // Returns the end of the group of components that begins with `first`. A group's coefficients are in memory at once:
  // as many components as fit into the memory of the largest one, or the three of a colour transform.
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

  // Fields for the components [first, end), one after the other in `memory`.
  template <class T>
  std::vector<Field<T>> fields_in(LargeVector<T>& memory, int first, int end, int frames) const {
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
  LargeVector<T>& group_memory() {
    if constexpr (std::is_same_v<T, float>)
      return real_;
    else
      return integer_;
  }

  // Transforms the components from `first` on, one for each field.
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

  // Codes the blocks of the components from `first` on.
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

  // Uses the key frame of the GOP before as it was measured last. If it was not measured, its error is taken to be that
  // of this GOP's key frame.
  MotionKeys measuring_keys() {
    MotionKeys keys;
    const bool has_key = !key_.empty();
    if (has_key) keys.own = &decoded_key_;
    keys.before = decoded_before_.empty() ? &key_before_ : &decoded_before_;
    if (decoded_before_.empty() && has_key) keys.own_exact = &key_;
    return keys;
  }

  // The same for a GOP with motion, whose coefficients are kept.
  template <class T>
  double moving_error_as(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) {
    const int frames = gop.frames();
    const GopMotion* motion = coefficients_.motion.get();
    const StreamGeometry& geometry = geometry_of(frames, motion);
    const Reduced r(headers_.of(motion), {}, frames);
    const MotionKeys keys = measuring_keys();
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

  // Adds the squared errors of the components from `first` on to `sum`, one after the other.
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
  Effort effort_;
  ThreadPool pool_;
  MotionTransform motion_;
  MotionSearcher* searcher_;                // null: motion_ searches
  MotionKey key_, key_before_;              // of the GOP pushed last and of the one before; not quantised
  MotionKey decoded_key_, decoded_before_;  // the same as measured last
  MotionKey last_, last_before_;            // the last frames of GOPs that could have motion and have none
  GopKey search_key_ = GopKey::kFirst;      // of the GOP pushed last
  std::vector<std::unique_ptr<BlockEncoder>> fast_;
  std::vector<std::unique_ptr<DenseEncoder>> dense_;
  // Few kinds occur. Results refer to them.
  std::map<GopKind, std::unique_ptr<StreamGeometry>> geometries_;
  LargeVector<float> real_;  // a group of components
  LargeVector<std::int32_t> integer_;
  CoefficientGop coefficients_;  // of the last GOP, all components, if it may be coded again or has motion
  float motion_step_ = 0;        // for which the motion was chosen
  float rounding_step_ = 0;      // for which coefficients_ were rounded; 0: they were not
  CodedGop coded_;
  bool pending_ = false;
  StageTime transform_time_;
  StageTime coder_time_;
};

}  // namespace

std::unique_ptr<GopEncoder> make_transform_encoder(const StreamHeader& header, const BackendOptions& options) {
  return std::make_unique<CpuEncoder>(header, options);
}

std::unique_ptr<MotionDecisions> make_motion_decisions(const StreamHeader& header, const BackendOptions& options,
                                                       MotionSearcher* searcher) {
  return std::make_unique<CpuEncoder>(header, options, searcher);
}

}  // namespace trivelet
