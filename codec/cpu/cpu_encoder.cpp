// Encoding on the CPU: the transform (gop_transform.h), then all code blocks of all components in parallel
// (block_coding.h). Where a GOP may be coded again or has motion, the coefficients of all components are kept;
// otherwise components are transformed and coded in groups, so that less memory is used.

#include <utility>

#include "codec/base/limits.h"
#include "codec/cpu/block_coding.h"
#include "codec/cpu/component_groups.h"
#include "codec/cpu/cpu_backend.h"
#include "codec/cpu/cpu_context.h"
#include "codec/cpu/cut_error.h"
#include "codec/cpu/gop_transform.h"
#include "codec/cpu/motion_decisions.h"
#include "codec/cpu/motion_rounding.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/threads/stage_timer.h"

namespace trivelet {

namespace {

class CpuEncoder final : public GopEncoder, public MotionDecisions {
 public:
  CpuEncoder(const StreamHeader& header, const BackendOptions& options, MotionSearcher* searcher = nullptr)
      : context_(header, options),
        transform_(context_, searcher),
        groups_(context_.header),
        coding_(context_),
        error_(context_, transform_.motion(), groups_) {}

  int depth() const override { return 1; }

  void transform(const Gop& gop, const GopChoices& choices, CoefficientGop& out) override {
    transform_.transform_alone(gop, choices, out);
  }

  void push(const Gop& gop, const GopChoices& choices) override {
    next_gop();
    estimated_ = 0;
    push_gop(gop, transform_.with_possible_key(choices));
  }

  void push_again(const Gop& gop, const GopChoices& wanted) override {
    const GopChoices choices = transform_.with_possible_key(wanted);
    if (estimated_ > 0 || needs_new_search(gop, choices)) return push_gop(gop, choices);
    round_again(gop, choices);
    push(coefficients_, choices);
  }

  SizeEstimate estimate_sizes(const Gop& gop, const GopChoices& choices, bool again) override {
    const StreamHeader& header = context_.header;
    const std::vector<Shape> shapes = component_shapes(header, gop.frames());
    const int end = estimated_components(header);
    const std::vector<Field<float>> fields = groups_.fields<float>(0, end, shapes);
    if (!again) {
      next_gop();
      transform_.transform_group<float>(gop, choices.frame_gains, 0, fields);
      estimated_ = end;
    }
    const StageTimer timer(other_time_, context_.pool_times());
    SizeEstimate estimate;
    estimate.step = static_cast<double>(choices.step);
    for (int c = 0; c < end; ++c) {
      const BlockGrid& grid = context_.geometry(gop.frames(), nullptr).grid(c);
      trivelet::estimate_sizes(fields[static_cast<std::size_t>(c)], grid.table(), context_.steps(grid, c, choices.step),
                               context_.pool, context_.simd, estimate);
    }
    return estimate;
  }

  std::shared_ptr<const GopMotion> decide(const Gop& gop, const GopChoices& wanted, bool again) override {
    if (!again) next_gop();
    const GopChoices choices = transform_.with_possible_key(wanted);
    if (again && !needs_new_search(gop, choices)) {
      round_again(gop, choices);
      return coefficients_.motion;
    }
    // Only motion is asked for, so the search alone is enough. Whether keys are predicted depends on decoded ones.
    const bool vectors_alone = !choices.passes && choices.motion == Motion::kOn && may_have_motion(gop, choices) &&
                               !context_.header.predicted_keys;
    if (vectors_alone)
      transform_.find_motion(gop, choices, coefficients_);
    else
      prepare(gop, choices);
    return coefficients_.motion;
  }

  void push(CoefficientGop& coefficients, const GopChoices& choices) override {
    const StreamHeader& header = context_.header;
    require(coefficients.lossless == header.lossless, ErrorKind::kBadArgument,
            "coefficients of another kind than the stream's");
    require(coefficients.frames >= 1 && coefficients.frames <= header.gop_frames, ErrorKind::kBadArgument,
            "coefficients of " + count_of(coefficients.frames, "frame") + "; GOPs hold 1.." +
                std::to_string(header.gop_frames));
    require(!coefficients.motion || (header.motion && coefficients.motion->places.frames() == coefficients.frames),
            ErrorKind::kBadArgument, "the motion of other coefficients");
    const GopChoices own = coefficients.motion ? choices : choices.without_motion();
    header.lossless ? code_all<std::int32_t>(coefficients, own) : code_all<float>(coefficients, own);
  }

  double squared_error(const Gop& gop, const GopChoices& choices, const std::vector<std::uint8_t>& cuts) override {
    return error_.measure(gop, choices, cuts, coefficients_, transform_.key(), transform_.key_before());
  }

  bool pull(CodedGop& out) override {
    if (!pending_) return false;
    pending_ = false;
    out = coding_.take();
    return true;
  }

  double seconds_transform() const override { return transform_.time().seconds; }
  double seconds_coder() const override { return coding_.time().seconds + other_time_.seconds; }
  double busy_transform() const override { return transform_.time().busy; }
  double busy_coder() const override { return coding_.time().busy + other_time_.busy; }
  const ThreadPool* pool() const override { return &context_.pool; }

 private:
  void next_gop() {
    // Frees the memory of error measurements: the search needs as much for its pictures.
    if (context_.header.motion) groups_.release();
    transform_.next_gop();
    error_.next_gop();
  }

  bool may_have_motion(const Gop& gop, const GopChoices& choices) const {
    return may_move(context_.header, gop.frames(), choices);
  }

  // A much finer or coarser step would lead to other motion, so the search must be repeated.
  bool needs_new_search(const Gop& gop, const GopChoices& choices) const {
    constexpr float kMuch = 1.5f;
    return may_have_motion(gop, choices) &&
           (choices.step > kMuch * motion_step_ || kMuch * choices.step < motion_step_);
  }

  // Makes the coefficients of all components, if they are needed at once: for coding them again, for rounding, or for
  // motion.
  bool prepare(const Gop& gop, const GopChoices& choices) {
    coefficients_.motion = nullptr;
    if (!choices.passes && choices.rounding_step == 0 && !may_have_motion(gop, choices)) {
      transform_.clear_key();
      return false;
    }
    transform_.transform(gop, choices, coefficients_);
    motion_step_ = choices.step;
    const GopChoices own = coefficients_.motion ? choices : choices.without_motion();
    round(own);
    transform_.keep_low_key(coefficients_, own.step);
    return true;
  }

  void round(const GopChoices& choices) {
    rounding_step_ = choices.rounding_step;
    if (rounding_step_ == 0) return;
    const StageTimer timer(other_time_, context_.pool_times());
    const StreamHeader& header = context_.headers.of(coefficients_.motion.get());
    // All predicted keys but the last one are rounded, because the next ones refer to them.
    const int rounded =
        coefficients_.motion && coefficients_.motion->predicts_keys ? coefficients_.motion->places.keys() - 1 : 0;
    if (context_.effort == Effort::kSlow && coefficients_.motion)
      round_along_motion(header, transform_.motion(), coefficients_, rounding_step_, rounded, context_.pool,
                         context_.simd);
    else
      round_by_cost(header, coefficients_, rounding_step_, context_.pool, rounded);
  }

  // The kept coefficients may be rounded for another step. Makes them again then, along the same motion.
  void round_again(const Gop& gop, const GopChoices& choices) {
    if (choices.rounding_step == rounding_step_) return;
    transform_.transform_again(gop, choices, coefficients_);
    round(choices);
  }

  void push_gop(const Gop& gop, const GopChoices& choices) {
    if (prepare(gop, choices)) return push(coefficients_, choices);
    const GopChoices still = choices.without_motion();
    context_.header.lossless ? code_in_groups<std::int32_t>(gop, still) : code_in_groups<float>(gop, still);
  }

  template <class T>
  void code_in_groups(const Gop& gop, const GopChoices& choices) {
    coding_.begin(gop.frames(), choices.frame_gains, nullptr, choices);
    const std::vector<Shape> shapes = component_shapes(context_.header, gop.frames());
    const int transformed = std::exchange(estimated_, 0);
    for (int first = 0; first < context_.components();) {
      const int end = first < transformed ? transformed : groups_.end(first, shapes);
      const std::vector<Field<T>> fields = groups_.fields<T>(first, end, shapes);
      if (first >= transformed) transform_.transform_group<T>(gop, choices.frame_gains, first, fields);
      coding_.code<T>(first, fields);
      first = end;
    }
    pending_ = true;
  }

  template <class T>
  void code_all(CoefficientGop& in, const GopChoices& choices) {
    const Reduced r(context_.headers.of(in.motion.get()), {}, in.frames);
    coding_.begin(in.frames, in.frame_gains, in.motion, choices);
    coding_.code<T>(0, context_.fields<T>(in, r));
    pending_ = true;
  }

  CpuContext context_;
  GopTransform transform_;
  ComponentGroups groups_;
  BlockCoding coding_;
  CutError error_;
  CoefficientGop coefficients_;  // of the last GOP, all components, if it may be coded again or has motion
  float motion_step_ = 0;        // for which the motion was chosen
  float rounding_step_ = 0;      // for which coefficients_ were rounded; 0: they were not
  bool pending_ = false;
  int estimated_ = 0;     // components that were transformed for an estimate, in the memory of groups_
  StageTime other_time_;  // of estimates and rounding
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
