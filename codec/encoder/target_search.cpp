// Search for steps: by samples before coding, by codings, and by the slope of the whole video (target_search.h).
#include "codec/encoder/target_search.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codec/base/frame_times.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/container.h"
#include "codec/measure/size_sample.h"
#include "codec/rate/byte_plan.h"

namespace trivelet {

namespace {

// A cut costs least where a plane ends everywhere: half a plane away the same bytes give up to 0.4 dB less (luma of
// mobile CIF at 1 bit per pixel). So with a target the step is chosen such that all planes but the last one meet it,
// within this number of octaves.
constexpr double kAligned = 0.03;

// The finest and coarsest step tried for a target. Samples are integers, so errors of a step below 0.05 (a variance of
// 0.0002) vanish in rounding. A target for bytes allows finer steps: a GOP coded too finely is cut later, one coded too
// coarsely cannot use its bytes.
constexpr double kFinestStep = 0.05;
constexpr double kFinestStepForBytes = 0.02;
constexpr double kCoarsestStep = 1e6;  // larger than any coefficient

// TargetSearch::needed_slope_ where GOPs are cut by their planes (RateControl::RateControl with a step). Only parts of
// less than about 0.03 bits a coefficient have a lower slope. With a higher one the GOPs before would seem to give less
// than they do, and each GOP would be coded more finely than the one before.
constexpr double kNeededSlopeByPlane = -0.3;

constexpr int kMostRounds = 6;     // of samples or estimates of a GOP
constexpr double kReliable = 0.5;  // octaves finer than the coded step for which its amounts are reliable
constexpr double kFiner = 0.3;     // octaves that the next try is finer, so that it is reliable

// Octaves by which the step should grow to change `without_last`, the amount down to plane 1, to `wanted`. `complete`
// is the amount down to plane 0. Amounts are bytes or errors.
double octaves_off(double without_last, double complete, double wanted) {
  const double per_octave = std::log2(std::max(without_last, 1e-9) / std::max(complete, 1e-9));
  // A plane that changes almost nothing gives no slope: slopes are limited from below and the change of step to two
  // planes. The caller tries again after it.
  constexpr double kLeastPerOctave = 0.25;
  constexpr double kLongest = 2.0;
  const double limited =
      per_octave < 0 ? std::min(per_octave, -kLeastPerOctave) : std::max(per_octave, kLeastPerOctave);
  return std::clamp(std::log2(wanted / std::max(without_last, 1e-9)) / limited, -kLongest, kLongest);
}

}  // namespace

TargetSearch::TargetSearch(EncoderContext& context, ErrorMeasurer& measurer, KeyPlan& keys)
    : context_(context), measurer_(measurer), keys_(keys), step_(context.params.step) {
  const int bits = context.header.video.format.bits;
  if (context.params.psnr > 0) {
    const double peak = (1 << bits) - 1;
    target_error_ = peak * peak / std::pow(10.0, context.params.psnr / 10);
    // A starting point; code_to_psnr() finds the step. Uniform errors of a step have step^2 / 12; the dead zone and the
    // planes cut later allow a finer step.
    step_ = std::clamp(std::sqrt(5 * target_error_), 0.05, 1e6);
  }
  if (context.params.has_byte_target()) step_ = std::exp2(bits - 4);  // 16 at 8 bits; halved until it is fine enough
  if (context.cuts_by_plane()) needed_slope_ = kNeededSlopeByPlane;
}

// ---------------------------------------------------------------------------------------------------------------- runs

void TargetSearch::begin_run(const PendingGop& p) {
  if (!p.run || p.number == 0 || !context_.has_target()) return;
  require(seed_.has_value(), ErrorKind::kInternal, "a run of GOPs begins before the first GOP told anything");
  step_ = seed_->step;
  correction_ = seed_->correction;
  aligned_slope_ = seed_->aligned_slope;
  run_.assign(1, seed_->curve);
  needed_slope_ = seed_->needed_slope;
  amounts_before_.reset();
  measurer_.begin_run();
}

// ----------------------------------------------------------------------------------------------------- step of a GOP

// With a target the step is found before a GOP is coded: from the GOP before if it is similar, else from a sample.
// Almost nothing is then coded in vain. While the rest of the video is unknown, one plane without its refinement is
// coded in reserve.

// Whether the step follows from the GOP before, because this one is like it. `needed_for` maps amounts to the step with
// which everything that is coded meets the target. `alike`: limit in octaves between the activities of similar GOPs.
template <class Needed>
bool TargetSearch::follows_before(const Gop& gop, const StepSample& sample, double finest, double alike,
                                  const Needed& needed_for) {
  constexpr double kNoActivity = 1e-4;  // lower limit, for pictures without any
  const double activity = std::max(sample.activity(), kNoActivity);
  like_before_ = false;
  if (amounts_before_) {
    const double more = activity / activity_before_;
    StepAmounts likely;
    likely.add(*amounts_before_, more * gop.frames() / frames_before_);
    step_ = std::clamp(needed_for(likely), finest, kCoarsestStep);
    like_before_ = std::abs(std::log2(more)) < alike;
  }
  activity_before_ = activity;
  return like_before_ && step_ > amounts_before_->step * std::exp2(-kReliable);
}

// False if the step cannot be found before coding.
template <class Needed>
bool TargetSearch::find_step(const Gop& gop, double finest, double alike, const Needed& needed_for) {
  constexpr double kFarthest = 2;  // limit of the change of a step, in octaves
  like_before_ = false;
  if (context_.header.motion) return false;  // a sample is of whole pictures
  StepSample windows = context_.timed(&EncoderStages::coder, true,
                                      [&] { return StepSample(context_.header, gop, context_.params.simd); });
  if (!windows.worth_it()) return false;
  if (follows_before(gop, windows, finest, alike, needed_for)) return true;
  const auto keep = [&](double wanted) { step_ = std::clamp(wanted, finest, kCoarsestStep); };
  PendingGop p;
  p.frames = gop.frames();
  context_.timed(&EncoderStages::coder, false, [&] {
    for (int round = 0; round < kMostRounds; ++round) {
      const double tried = step_;
      const StepAmounts amounts = windows.at(context_.choices(p, step_), context_.pool);
      const double octaves = std::log2(needed_for(amounts) / tried);
      keep(tried * std::exp2(std::max(octaves, -kFarthest) - (octaves < -kReliable ? kFiner : 0)));
      if (octaves < -kReliable && step_ != tried) continue;
      if (context_.params.psnr > 0 && measurer_.sample_tells_errors()) {
        GopChoices coded_with = context_.choices(p, step_);
        coded_with.step = static_cast<float>(tried);
        correction_ = windows.excess(coded_with, step_, context_.pool);
        keep(needed_for(amounts));
      }
      break;
    }
  });
  return true;
}

// Where GOPs are cut by their planes, sizes are estimated from the coefficients with which the GOP is then coded.
void TargetSearch::estimate_step(const Gop& gop, const PendingGop& p, const Budget& budget, double alike) {
  const StepSample sample = context_.timed(&EncoderStages::coder, true,
                                           [&] { return StepSample(context_.header, gop, context_.params.simd); });
  const auto needed_for = [&](const StepAmounts& a) { return step_within(budget, a); };
  if (follows_before(gop, sample, kFinestStepForBytes, alike, needed_for)) return;
  if (amounts_before_) step_ /= 2;  // estimates are of coarser steps
  for (int round = 0; round < kMostRounds; ++round) {
    const double tried = step_ = std::max(step_, kFinestStepForBytes);
    const GopChoices choices = context_.choices(p, tried);
    SizeCurve curve;
    context_.code([&] { curve.add(context_.coder->estimate_sizes(gop, choices, round > 0), 1); });
    is_estimated_ = true;
    context_.timed(&EncoderStages::coder, false, [&] {
      sample_sizes(context_.header, gop, choices, context_.params.simd, context_.pool, curve);
      step_ = step_within(budget, [&](double step) { return curve.bytes(step); });
    });
    if (step_ >= tried * std::exp2(-kReliable) || tried <= kFinestStepForBytes) return;
    step_ *= std::exp2(-kFiner);
  }
}

// Codes a GOP with the current step. `again`: the same GOP as the last one with another step, whose coefficients were
// kept.
RateControl TargetSearch::coded_at_once(const Gop& gop, bool again, PendingGop& p) {
  const GopChoices choice = context_.choices(p, step_);
  return coded_as(gop, choice, again && choice.passes, p);
}

// Codes a GOP that probably needs no second coding.
RateControl TargetSearch::coded_once(const Gop& gop, bool spare, bool measured_whole, PendingGop& p) {
  GopChoices choice = context_.choices(p, step_);
  if (context_.header.profile == Profile::kDense) {
    choice.passes = measured_whole;  // else no coefficients need be kept
    choice.spare_last_pass = spare;
  }
  return coded_as(gop, choice, std::exchange(is_estimated_, false), p);
}

RateControl TargetSearch::coded_as(const Gop& gop, const GopChoices& choice, bool again, PendingGop& p) {
  CodedGop coded;
  context_.code([&] {
    again ? context_.coder->push_again(gop, choice) : context_.coder->push(gop, choice);
    require(context_.coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
  });
  p.step = choice.step;
  p.rounding_step = choice.rounding_step;
  p.frame_gains = choice.frame_gains;
  p.take_motion(coded);
  return context_.timed(&EncoderStages::layers, false, [&] {
    return choice.by_plane ? RateControl(context_.header, coded, choice.step, choice.frame_gains, &context_.pool)
                           : RateControl(context_.header, coded, &context_.pool);
  });
}

// Keeps the amounts of a GOP that was coded with the current step and `more_planes` planes more than needed.
void TargetSearch::keep_amounts(const RateControl& control, int frames, int more_planes) {
  amounts_before_ = StepAmounts(control, step_, more_planes);
  frames_before_ = frames;
}

// ------------------------------------------------------------------------------------------------------- target: PSNR

// Finds the cuts with the wanted error and their slope. The predicted error is that of coefficients; the error of
// samples is measured and the prediction corrected. kNot: uses the correction of earlier GOPs. Returns false if the
// error is too large even with everything that was coded.
bool TargetSearch::cut_to_error(const Gop& gop, const PendingGop& p, RateControl& control, Measured how, Cuts& best,
                                double& best_slope) {
  constexpr double kNear = 0.03;                                       // dB from the target that are accepted
  const double surely_near = how == Measured::kBySample ? 0.1 : 0.25;  // dB that one correction removes
  constexpr int kMostAttempts = 8;                                     // one decoding each
  constexpr double kFewer = 1.005;  // times the wanted error: above it the step is too coarse
  const auto samples = static_cast<double>(control.samples());
  double best_distance = 1e9;
  double before = -1;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Cuts cuts;
    double slope = 0;
    context_.timed(&EncoderStages::layers, false,
                   [&] { cuts = control.with_error(target_error_ / correction_ * samples, slope); });
    const bool all = slope < RateControl::kEverything;
    if (how == Measured::kNot || (attempt > 0 && before < surely_near && !all && !p.motion)) {
      best = std::move(cuts);
      best_slope = slope;
      return !all || control.error(best) * correction_ <= target_error_ * kFewer * samples;
    }
    const double actual = std::max(1e-9, how == Measured::kBySample ? measurer_.likely_error(gop, p, control, cuts)
                                                                    : measurer_.decoded_error(gop, p, control, cuts));
    const double distance = std::abs(10 * std::log10(actual / target_error_));
    const auto correct = [&] {
      correction_ = std::clamp(actual / std::max(1e-9, control.error(cuts) / samples), 0.01, 1e6);
    };
    if (distance < best_distance) {
      best_distance = distance;
      best = cuts;
      best_slope = slope;
    }
    if (all && actual > target_error_ * kFewer) {
      correct();
      return false;
    }
    if (distance < kNear || distance == before) return true;
    before = distance;
    correct();
  }
  return true;
}

TargetSearch::Coded TargetSearch::code_to_psnr(const Gop& gop, PendingGop& p) {
  constexpr double kAlike = 0.3;
  constexpr int kMostAge = 8;         // GOPs
  constexpr int kMostAlignments = 4;  // codings of the first GOP
  constexpr double kFarOff = 0.25;    // octaves that are worth another coding of the first GOP of a run
  constexpr double kReserve = 0.12;   // octaves finer than needed, as a margin
  const double all_samples = static_cast<double>(context_.header.samples(gop.frames()));
  const auto needed_for = [&](const StepAmounts& a) {
    return a.step_for(a.errors, target_error_ / correction_ * all_samples) * std::exp2(-kReserve);
  };
  const bool found = find_step(gop, kFinestStep, kAlike, needed_for);
  const bool by_sample = found && measurer_.sample_tells_errors();
  const bool first = p.number == 0;
  const double near_enough = first ? 2 * kAligned : kFarOff;
  const int most_alignments = first ? kMostAlignments : p.run ? 2 : 1;
  for (int alignments = 0, codings = 0;; ++codings) {
    // The correction is about the same in all GOPs of a scene.
    const bool measures = !found || !like_before_ || ++corrected_age_ >= kMostAge || codings > 0;
    if (measures) corrected_age_ = 0;
    const Measured how = !measures ? Measured::kNot : by_sample ? Measured::kBySample : Measured::kWhole;
    RateControl control =
        found ? coded_once(gop, false, how == Measured::kWhole, p) : coded_at_once(gop, codings > 0, p);
    const auto samples = static_cast<double>(control.samples());
    Cuts best;
    double slope = 0;
    if (!cut_to_error(gop, p, control, how, best, slope) && step_ > 1.2 * kFinestStep) {
      if (!found) correction_ = 1;
      const double finer = found ? std::min(needed_for({control, step_}), step_ * std::exp2(-kReserve)) : step_ / 2;
      step_ = std::max(kFinestStep, finer);
      continue;
    }
    const double octaves = octaves_off(control.error(control.planes(1)), control.error(control.complete()),
                                       target_error_ / correction_ * samples);
    const double aligned = std::clamp(step_ * std::exp2(octaves), kFinestStep, kCoarsestStep);
    if (!found && std::abs(octaves) > near_enough && ++alignments < most_alignments) {
      step_ = aligned;
      continue;
    }
    std::vector<Cuts> layers = context_.timed(&EncoderStages::layers, false, [&] {
      const double lambda = std::exp2(slope);
      return control.layers(best, lambda, context_.layers_for(control, best, lambda));
    });
    measurer_.measure(gop, p, control, layers);
    keep_amounts(control, p.frames, 0);
    keys_.coded(p.places());
    if (!found) step_ = aligned;  // for the next GOP
    if (first) seed_ = {step_, correction_, aligned_slope_, needed_slope_, {}};
    return {std::move(control), std::move(layers), {}};
  }
}

// ------------------------------------------------------------------------------------------------------ target: bytes

// The slope of the whole video is known at its end. Until then the GOPs, coded more finely than needed, wait in a file.

double TargetSearch::run_bytes(double log2_slope) const {
  double sum = 0;
  for (const RateCurve& c : run_) sum += c.bytes(log2_slope);
  return sum;
}

// The bytes for the GOPs up to this one while only part of the video is known.
TargetSearch::Budget TargetSearch::budget_for(const PendingGop& p) const {
  const std::uint64_t so_far = p.first_frame + static_cast<std::uint64_t>(p.frames);
  const std::uint64_t all = context_.header.video.frames > 0 ? std::max(context_.header.video.frames, so_far) : 0;
  const FrameTime first = p.times.front();
  const FrameTime last{end_of(p.times), 0};
  Budget b;
  if (context_.params.target_bytes == 0)
    b.share = bytes_wanted(context_.header.video, context_.params, p.frames, first, last);
  else if (all > 0)
    b.share = bytes_wanted(context_.header.video, context_.params, static_cast<double>(all), first, last) * p.frames /
              static_cast<double>(all);
  double known = p.frames;
  for (const RateCurve& c : run_) known += c.frames();
  b.known = b.share * known / p.frames;
  b.may_be_last = all <= so_far;
  const double rest = all == 0 ? 1 : 1 - static_cast<double>(so_far) / static_cast<double>(all);
  b.unknown = rest / (1 + static_cast<double>(run_.size()));
  return b;
}

double TargetSearch::step_within(const Budget& budget, const StepAmounts& amounts) const {
  return step_within(budget, [&](double step) { return amounts.at(amounts.bytes, step); });
}

// The step at which this GOP, which takes bytes_at(step), and those before, all at one slope, take the bytes allowed.
template <class Bytes>
double TargetSearch::step_within(const Budget& budget, const Bytes& bytes_at) const {
  double low = std::log2(kFinestStepForBytes);
  double high = std::log2(kCoarsestStep);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    const double bytes = run_bytes(2 * middle + needed_slope_) + bytes_at(std::exp2(middle));
    (bytes > kBodyShare * budget.known ? low : high) = middle;
  }
  if (budget.may_be_last) return std::exp2(high);
  // Films often begin with little detail, which would take all bytes of its time. While the rest is unknown, steps
  // finer than the eye needs are limited.
  const double doubted = context_.header.video.format.bits - 7;
  const double trust = (1 - budget.unknown) * (1 - budget.unknown);
  return std::exp2(high < doubted ? doubted + trust * (high - doubted) : high);
}

TargetSearch::Coded TargetSearch::code_to_bytes(const Gop& gop, PendingGop& p) {
  constexpr double kFirstTry = 4;  // at 8 bits: its sample also gives coarser steps, but not finer ones
  constexpr double kFirstTryByPlane = 2;
  Budget budget = budget_for(p);
  if (budget.share > 0) {
    const double before = step_;
    const double first_try = context_.cuts_by_plane() ? kFirstTryByPlane : kFirstTry;
    if (p.number == 0) step_ = first_try * std::exp2(context_.header.video.format.bits - 8);
    // Later GOPs cannot correct an error of the last one.
    const double alike = budget.may_be_last ? 0.2 : 0.8;
    if (context_.cuts_by_plane()) {
      estimate_step(gop, p, budget, alike);
      return code_found(gop, p, budget);
    }
    if (find_step(gop, kFinestStepForBytes, alike, [&](const StepAmounts& a) { return step_within(budget, a); }))
      return code_found(gop, p, budget);
    step_ = before;
  }
  constexpr int kMostHalvings = 12;    // of the step for a GOP: 72 dB
  constexpr int kMostAlignments = 6;   // codings of the first GOP; later GOPs follow it
  constexpr double kFinerSlope = 0.3;  // octaves from the finest slope coded to the one needed, for a choice of cuts
  constexpr double kPlenty = 40;       // times the GOP's share: more bytes are fine enough for any slope
  for (int attempt = 0;; ++attempt) {
    RateControl control = coded_at_once(gop, attempt > 0, p);
    add_to_run(control, p);
    const double finest = run_.back().bytes(RateCurve::kLeast);
    // After the first GOP the slope of the whole video counts.
    const double finest_slope = 2 * std::log2(step_);
    double expected_slope = finest_slope;
    if (budget.share == 0) {  // unknown rate: as fine as makes sense
      if (step_ > 1 && attempt == 0) {
        run_.pop_back();
        step_ = 1;
        continue;
      }
    } else {
      const double slope = slope_for(run_, budget.known);
      const bool too_coarse = slope < finest_slope + kFinerSlope && finest < kPlenty * budget.share;
      const double octaves = octaves_off(static_cast<double>(control.body_bytes(control.planes(1)) + p.motion_bytes()),
                                         finest, kBodyShare * budget.known);
      if (too_coarse && attempt < kMostHalvings && step_ > kFinestStepForBytes) {
        run_.pop_back();
        step_ /= 2;
        continue;
      }
      if (p.number == 0) {
        if (std::abs(octaves) > kAligned && attempt < kMostAlignments) {
          run_.pop_back();
          step_ = std::clamp(step_ * std::exp2(octaves), kFinestStepForBytes, kCoarsestStep);
          continue;
        }
        aligned_slope_ = slope - finest_slope;
      }
      expected_slope = slope;
      step_ =
          std::clamp(std::exp2((slope - aligned_slope_) / 2), kFinestStepForBytes, kCoarsestStep);  // for the next GOP
    }
    return held(gop, p, std::move(control), expected_slope);
  }
}

// Codes the GOP with the step of find_step().
TargetSearch::Coded TargetSearch::code_found(const Gop& gop, PendingGop& p, const Budget& budget) {
  constexpr double kUncertain = 0.5;  // above it one plane is coded in reserve
  constexpr double kReserve = 0.1;    // octaves finer than needed, as a margin
  constexpr double kReserveOfUnknown = 0.4;
  constexpr double kReserveOfUnknownByPlane = 0.1;
  constexpr double kReserveOfLast = 0.15;  // later GOPs cannot correct it
  constexpr double kReserveOfLastByPlane = 0.11;
  constexpr double kReserveOfEstimate = 0.14;  // of the last, too: more than nearly all estimates are wrong by
  constexpr double kReserveOfKnown = 0.05;     // of the last, where its sizes are known
  constexpr double kNothing = 0.001;           // bytes that are not worth another coding
  constexpr int kMostCodings = 4;
  // Planes cut without errors are cut best near the end of the last one.
  const bool by_plane = context_.cuts_by_plane();
  const bool plane_more = budget.unknown > kUncertain && !by_plane;
  const double reserve_of_last = !by_plane       ? kReserveOfLast
                                 : is_estimated_ ? kReserveOfEstimate
                                                 : kReserveOfLastByPlane;
  const double reserve = kReserve + (by_plane ? kReserveOfUnknownByPlane : kReserveOfUnknown) * budget.unknown;
  step_ = plane_more ? step_ / 2 : step_ * std::exp2(budget.may_be_last ? -reserve_of_last : -reserve);
  for (int coding = 1;; ++coding) {
    step_ = std::max(step_, kFinestStepForBytes);
    RateControl control = coded_once(gop, plane_more, false, p);
    add_to_run(control, p);
    keep_amounts(control, p.frames, plane_more ? 1 : 0);
    const double less = budget.may_be_last ? missing(budget.known, control) : 0;
    if (less > (by_plane ? kNothing * budget.known : 0) && coding < kMostCodings && step_ > kFinestStepForBytes) {
      run_.pop_back();
      const StepAmounts& a = *amounts_before_;
      step_ = by_plane ? a.step_for(a.bytes, a.bytes[0] + less) * std::exp2(-kReserveOfKnown)
                       : std::min(step_ / 1.2, step_within(budget, a) * std::exp2(-reserve_of_last));
      continue;
    }
    if (plane_more && p.number == 0)
      needed_slope_ = slope_for(run_, amounts_before_->bytes[0]) - 2 * std::log2(amounts_before_->step);
    const double expected_slope = std::max(slope_for(run_, budget.known), 2 * std::log2(step_));
    step_ = amounts_before_->step;  // if the next GOP gives no other
    return held(gop, p, std::move(control), expected_slope);
  }
}

// The bytes that the GOPs of this run, of which the last one is `control`, lack with their headers. Those of the last
// one are counted as if it had one layer, which is less than they take.
double TargetSearch::missing(double wanted, const RateControl& control) const {
  const double bodies = run_bytes(RateCurve::kLeast);
  if (bodies >= wanted || bodies < kBodyShare * wanted) return wanted - bodies;
  return context_.timed(&EncoderStages::layers, false, [&] {
    const Cuts all = control.complete();
    return wanted - bodies -
           static_cast<double>(control.chunk_bytes(control.layers(all, 1, 1)) - control.body_bytes(all));
  });
}

void TargetSearch::add_to_run(const RateControl& control, const PendingGop& p) {
  run_.push_back(
      context_.timed(&EncoderStages::layers, false, [&] { return RateCurve(control, p.motion_bytes(), p.frames); }));
}

// The GOP waits for the others. Its errors are measured at its probable cuts.
TargetSearch::Coded TargetSearch::held(const Gop& gop, const PendingGop& p, RateControl control,
                                       double expected_slope) {
  const double lambda = std::exp2(expected_slope);
  if (!context_.cuts_by_plane()) {
    const std::vector<Cuts> layers = context_.timed(&EncoderStages::layers, false, [&] {
      return control.layers(control.at(lambda), lambda, context_.header.layers);
    });
    measurer_.measure(gop, p, control, layers);
  }
  keys_.coded(p.places());
  if (p.number == 0) seed_ = {step_, correction_, aligned_slope_, needed_slope_, run_.front()};
  return {std::move(control), {}, run_.back()};
}

}  // namespace trivelet
