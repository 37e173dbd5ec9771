// Encoding towards a target (encoder_state.h): a PSNR, GOP by GOP, or bytes, for the whole video at the end. Also the
// errors that both, and streams without a target, state in their index: measured at some cuts, predicted at the others.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "codec/base/frame_times.h"
#include "codec/base/squared_error.h"
#include "codec/encoder/encoder_params.h"
#include "codec/encoder/encoder_state.h"
#include "codec/measure/step_sample.h"
#include "codec/rate/byte_plan.h"
#include "codec/threads/trace.h"

namespace trivelet {

namespace {

// Cuts cost least where a plane ends everywhere: half a plane away the same bytes bring up to 0.4 dB less (luma of
// mobile CIF at 1 bit per pixel). So with a target the step is chosen such that all planes but the last one just meet
// it, this near, in octaves.
constexpr double kAligned = 0.03;

// The finest and coarsest step that a target is tried with. Samples are integers, so errors below those of a step of
// 0.05 (a variance of 0.0002) vanish in rounding. With a target in bytes it may be finer still: what is coded too finely
// is cut again, what is coded too coarsely takes fewer bytes than there are.
constexpr double kFinestStep = 0.05;
constexpr double kFinestStepForBytes = 0.02;
constexpr double kCoarsestStep = 1e6;  // larger than any coefficient

// The slope at which no byte is worth anything.
constexpr double kWorthless = 1e30;

// By how many octaves the step should grow for `of_planes`, the amount with plane 1 as the last, to become `wanted`;
// `of_all` is the amount with plane 0. Amounts are bytes or errors.
double octaves_off(double of_planes, double of_all, double wanted) {
  const double per_octave = std::log2(std::max(of_planes, 1e-9) / std::max(of_all, 1e-9));
  // A plane that changes next to nothing tells nothing about the way to go: no slope is taken to be flatter than this,
  // and no step is longer than two planes; the caller looks again after it.
  constexpr double kLeastPerOctave = 0.25;
  constexpr double kLongest = 2.0;
  const double limited =
      per_octave < 0 ? std::min(per_octave, -kLeastPerOctave) : std::max(per_octave, kLeastPerOctave);
  return std::clamp(std::log2(wanted / std::max(of_planes, 1e-9)) / limited, -kLongest, kLongest);
}

}  // namespace

// ----------------------------------------------------------------------------------------------------- measured errors

// What the decoder would really make of it.
double Encoder::State::measured_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts) {
  GopChoices coded = choices(p);
  coded.step = p.step;
  return timed(&EncoderStages::measure, !coder->pool(), [&] {
    const double error = coder->squared_error(gop, coded, cuts);
    return error >= 0 ? error : decoded_error(gop, p, control, cuts);
  });
}

double Encoder::State::decoded_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts) {
  if (!decoder) decoder = backend.make_decoder(header, {}, {params.threads, params.simd});
  LayeredGop layers;
  layers.frames = p.frames;
  layers.step = p.step;
  layers.frame_gains = p.frame_gains;
  layers.motion = p.motion;
  control.divide({cuts}, layers);
  // Decoders read a little behind every part.
  std::size_t total = 0;
  for (const auto& c : layers.components)
    for (const auto& block : c.blocks)
      for (const auto& segment : block)
        for (const auto& part : segment.parts) total += part.size + kChunkPadding;
  std::vector<std::uint8_t> memory(total, 0);
  std::size_t at = 0;
  for (auto& c : layers.components)
    for (auto& block : c.blocks)
      for (auto& segment : block)
        for (auto& part : segment.parts) {
          std::copy_n(part.data, part.size, memory.data() + at);
          part.data = memory.data() + at;
          at += part.size + kChunkPadding;
        }
  Gop decoded(header.video, gop.frames());
  decoder->push(layers, nullptr);
  require(decoder->pull(decoded), ErrorKind::kInternal, "the backend lost a GOP");
  double sum = 0;
  double samples = 0;
  for (int c = 0; c < gop.components(); ++c) {
    sum += squared_error(gop.plane(c), std::as_const(decoded).plane(c));
    samples += static_cast<double>(gop.plane(c).shape.samples());
  }
  return sum / samples;
}

double Encoder::State::likely_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts) {
  constexpr double kUnsure = 0.017;  // of the error, a deviation
  // Decoding brings 0.02 to 0.06 dB more than samples say: seven clips of 720x576 to 1080p, 36 to 46 dB.
  constexpr double kUnseen = 1.008;
  const SampledError sampled = sampled_errors(gop, p, control, {cuts}, {0}, key_before.get(), pool)[0];
  if (sampled.deviation > kUnsure * sampled.error)
    return timed(&EncoderStages::measure, !coder->pool(), [&] { return decoded_error(gop, p, control, cuts); });
  return kUnseen * sampled.error / static_cast<double>(control.samples());
}

void Encoder::State::measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers) {
  const std::vector<double> predicted = predicted_errors(control, layers);
  const std::vector<std::size_t> points = measuring_points(p, predicted);
  std::vector<double> errors;
  if (!points.empty()) errors = measured_errors(points, gop, p, control, layers, key_before.get(), pool);
  if (std::optional<SampleErrorModel> model = measured_model(header, predicted, points, errors, p.anew))
    measured.add(std::move(*model));
  if (leaves_key(p)) keep_key(gop, p, control, layers);
}

std::vector<std::size_t> Encoder::State::measuring_points(const Pending& p, const std::vector<double>& predicted) {
  return plan.layers(predicted, p.open(), p.anew);
}

std::vector<SampledError> Encoder::State::sampled_errors(const Gop& gop, const Pending& p, const RateControl& control,
                                                         const std::vector<Cuts>& layers,
                                                         const std::vector<std::size_t>& points, const CodedKey* before,
                                                         ThreadPool& with) {
  GopChoices coded;
  coded.step = p.step;
  coded.rounding_step = p.rounding_step;
  coded.frame_gains = p.frame_gains;
  return timed(&EncoderStages::measure, finisher.has_value(), [&] {
    require(!p.open() || before, ErrorKind::kInternal, "a GOP is measured whose key frame before it is not known");
    if (p.motion)
      return moving_sample.errors(gop, coded, *p.motion, p.open() ? before : nullptr, control, layers, points, with);
    std::vector<const Cuts*> cuts;
    for (const std::size_t l : points) cuts.push_back(&layers[l]);
    return sample.errors(gop, coded, control, cuts, with);
  });
}

std::vector<double> Encoder::State::measured_errors(const std::vector<std::size_t>& points, const Gop& gop,
                                                    const Pending& p, const RateControl& control,
                                                    const std::vector<Cuts>& layers, const CodedKey* before,
                                                    ThreadPool& with) {
  const trace::Span span("measure errors");
  std::vector<double> errors;
  for (const SampledError& e : sampled_errors(gop, p, control, layers, points, before, with))
    errors.push_back(e.error / static_cast<double>(control.samples()));
  return errors;
}

void Encoder::State::keep_key(const Gop& gop, const Pending& p, const RateControl& control,
                              const std::vector<Cuts>& layers) {
  GopChoices coded;
  coded.step = p.step;
  coded.rounding_step = p.rounding_step;
  timed(&EncoderStages::measure, true,
        [&] { key_before = std::make_shared<CodedKey>(header, gop, coded, control, layers); });
}

// ---------------------------------------------------------------------------------------------------------------- runs

void Encoder::State::begin_run(const Pending& p) {
  if (!p.run || p.number == 0 || (params.psnr == 0 && !params.has_byte_target())) return;
  require(seed.has_value(), ErrorKind::kInternal, "a run of GOPs begins before the first GOP told anything");
  step = seed->step;
  correction = seed->correction;
  aligned_slope = seed->aligned_slope;
  run.assign(1, seed->curve);
  needed_slope = seed->needed_slope;
  amounts_before.reset();
  plan = MeasuringPlan(header);
  measured = MeasuredErrors(header.lossless);
}

// ----------------------------------------------------------------------------------------------------- step of a GOP

// A target finds the step before a GOP is coded: from what the GOP before took, if this one is like it, else from a
// sample. Then next to nothing is coded that the target does not need. Only as long as the rest of the video may turn out
// to be quite another is a plane coded in reserve, but for its refinement.

// `needed_for` tells of amounts with which step all that is coded meets the target. `alike`: octaves between the
// activities of GOPs of which one tells about the other. False where nothing is to be known before coding.
template <class Needed>
bool Encoder::State::find_step(const Gop& gop, double finest, double alike, const Needed& needed_for) {
  constexpr int kMostRounds = 6;
  constexpr double kFarthest = 2;    // octaves that a step is changed by at most
  constexpr double kReliable = 0.5;  // octaves finer than what was coded that its amounts still tell about
  constexpr double kFiner = 0.3;     // octaves that the next try is finer than it should be, for then it is reliable
  like_before = false;
  if (header.motion) return false;  // the sample is of whole pictures
  StepSample windows = timed(&EncoderStages::coder, true, [&] { return StepSample(header, gop, params.simd); });
  if (!windows.worth_it()) return false;
  constexpr double kNoActivity = 1e-4;  // as good as
  const double activity = std::max(windows.activity(), kNoActivity);
  const auto keep = [&](double wanted) { step = std::clamp(wanted, finest, kCoarsestStep); };
  if (amounts_before) {
    const double more = activity / activity_before;
    StepAmounts likely;
    likely.add(*amounts_before, more * gop.frames() / frames_before);
    const double wanted = needed_for(likely);
    keep(wanted);
    like_before = std::abs(std::log2(more)) < alike;
  }
  activity_before = activity;
  if (like_before && step > amounts_before->step * std::exp2(-kReliable)) return true;
  Pending p;
  p.frames = gop.frames();
  timed(&EncoderStages::coder, false, [&] {
    for (int round = 0; round < kMostRounds; ++round) {
      const double tried = step;
      const StepAmounts amounts = windows.at(choices(p), pool);
      const double octaves = std::log2(needed_for(amounts) / tried);
      keep(tried * std::exp2(std::max(octaves, -kFarthest) - (octaves < -kReliable ? kFiner : 0)));
      if (octaves < -kReliable && step != tried) continue;
      if (params.psnr > 0 && sample_tells_errors()) {
        GopChoices coded_with = choices(p);
        coded_with.step = static_cast<float>(tried);
        correction = windows.excess(coded_with, step, pool);
        keep(needed_for(amounts));
      }
      break;
    }
  });
  return true;
}

// A GOP through the backend, with State::step; `again`: the one before, with another step, its coefficients were kept.
RateControl Encoder::State::coded_at_once(const Gop& gop, bool again, Pending& p) {
  return coded_as(gop, choices(p), again, p);
}

// … once, as it seems.
RateControl Encoder::State::coded_once(const Gop& gop, bool spare, bool measured_whole, Pending& p) {
  GopChoices choice = choices(p);
  if (header.profile == Profile::kDense) {
    choice.passes = measured_whole;  // else no coefficients need be kept
    choice.spare_last_pass = spare;
  }
  return coded_as(gop, choice, false, p);
}

RateControl Encoder::State::coded_as(const Gop& gop, const GopChoices& choice, bool again, Pending& p) {
  CodedGop coded;
  code([&] {
    again ? coder->push_again(gop, choice) : coder->push(gop, choice);
    require(coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
  });
  p.step = choice.step;
  p.rounding_step = choice.rounding_step;
  p.frame_gains = choice.frame_gains;
  take_motion(coded, p);
  return timed(&EncoderStages::layers, false, [&] { return RateControl(header, coded, &pool); });
}

// Of a GOP that was coded with State::step and so many planes more than are needed.
void Encoder::State::keep_amounts(const RateControl& control, int frames_of, int more_planes) {
  amounts_before = StepAmounts(control, step, more_planes);
  frames_before = frames_of;
}

// ------------------------------------------------------------------------------------------------------- target: PSNR

// The cuts with which the GOP has the error wanted, and their slope. The error predicted is that of coefficients; what
// the samples really have is measured, and made good for. kNot: it is as that of the GOPs before. False: even all that
// was coded errs more.
bool Encoder::State::cut_to_error(const Gop& gop, const Pending& p, RateControl& control, Measured how, Cuts& best,
                                  double& best_slope) {
  constexpr double kNear = 0.03;                                       // dB from the target that are good enough
  const double surely_near = how == Measured::kBySample ? 0.1 : 0.25;  // dB that one correction makes good
  constexpr int kMostAttempts = 8;                                     // each a decoding
  constexpr double kFewer = 1.005;  // of the error wanted: above it the step is at fault
  const auto samples = static_cast<double>(control.samples());
  double best_distance = 1e9;
  double before = -1;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    Cuts cuts;
    double slope = 0;
    timed(&EncoderStages::layers, false,
          [&] { cuts = control.with_error(target_error / correction * samples, slope); });
    const bool all = slope < RateControl::kEverything;
    if (how == Measured::kNot || (attempt > 0 && before < surely_near && !all && !p.motion)) {
      best = std::move(cuts);
      best_slope = slope;
      return !all || control.error(best) * correction <= target_error * kFewer * samples;
    }
    const double actual = std::max(
        1e-9, how == Measured::kBySample ? likely_error(gop, p, control, cuts) : measured_error(gop, p, control, cuts));
    const double distance = std::abs(10 * std::log10(actual / target_error));
    const auto correct = [&] {
      correction = std::clamp(actual / std::max(1e-9, control.error(cuts) / samples), 0.01, 1e6);
    };
    if (distance < best_distance) {
      best_distance = distance;
      best = cuts;
      best_slope = slope;
    }
    if (all && actual > target_error * kFewer) {
      correct();
      return false;
    }
    if (distance < kNear || distance == before) return true;
    before = distance;
    correct();
  }
  return true;
}

void Encoder::State::push_to_psnr(const Gop& gop, Pending p) {
  constexpr double kAlike = 0.3;
  constexpr int kMostAge = 8;         // GOPs
  constexpr int kMostAlignments = 4;  // each a coding, of the first GOP
  constexpr double kFarOff = 0.25;    // octaves that are worth a coding of the first GOP of another run
  constexpr double kReserve = 0.12;   // octaves finer than needed, for what is not known exactly
  const double all_samples = static_cast<double>(header.samples(gop.frames()));
  const auto needed_for = [&](const StepAmounts& a) {
    return a.step_for(a.errors, target_error / correction * all_samples) * std::exp2(-kReserve);
  };
  const bool found = find_step(gop, kFinestStep, kAlike, needed_for);
  const bool by_sample = found && sample_tells_errors();
  const bool first = p.number == 0;
  const double near_enough = first ? 2 * kAligned : kFarOff;
  const int most_alignments = first ? kMostAlignments : p.run ? 2 : 1;
  for (int alignments = 0, codings = 0;; ++codings) {
    // What the samples err more is much the same in all GOPs of a scene.
    const bool measures = !found || !like_before || ++corrected_age >= kMostAge || codings > 0;
    if (measures) corrected_age = 0;
    const Measured how = !measures ? Measured::kNot : by_sample ? Measured::kBySample : Measured::kWhole;
    RateControl control =
        found ? coded_once(gop, false, how == Measured::kWhole, p) : coded_at_once(gop, codings > 0, p);
    const auto samples = static_cast<double>(control.samples());
    Cuts best;
    double slope = 0;
    if (!cut_to_error(gop, p, control, how, best, slope) && step > 1.2 * kFinestStep) {
      if (!found) correction = 1;
      const double finer = found ? std::min(needed_for({control, step}), step * std::exp2(-kReserve)) : step / 2;
      step = std::max(kFinestStep, finer);
      continue;
    }
    const double octaves = octaves_off(control.error(control.planes(1)), control.error(control.complete()),
                                       target_error / correction * samples);
    const double aligned = std::clamp(step * std::exp2(octaves), kFinestStep, kCoarsestStep);
    if (!found && std::abs(octaves) > near_enough && ++alignments < most_alignments) {
      step = aligned;
      continue;
    }
    const std::vector<Cuts> layers = timed(&EncoderStages::layers, false, [&] {
      const double lambda = std::exp2(slope);
      return control.layers(best, lambda, layers_for(control, best, lambda));
    });
    measure(gop, p, control, layers);
    keep_amounts(control, p.frames, 0);
    pass_on(p);
    LayeredGop divided;
    divided.frames = p.frames;
    if (!found) step = aligned;  // the next one's
    if (first) seed = {step, correction, aligned_slope, needed_slope, {}};
    write_controlled(p, control, layers, measured, divided);
    return;
  }
}

// ------------------------------------------------------------------------------------------------------ target: bytes

// A slope for the whole video is found when all of it is known; until then what was coded, more finely than will be
// needed, waits in a file.

double Encoder::State::run_bytes(double log2_slope) const {
  double sum = 0;
  for (const RateCurve& c : run) sum += c.bytes(log2_slope);
  return sum;
}

// What the GOPs up to this one may take, while only part of the video is known.
Encoder::State::Budget Encoder::State::budget_of(const Pending& p) const {
  const std::uint64_t so_far = p.first_frame + static_cast<std::uint64_t>(p.frames);
  const std::uint64_t all = header.video.frames > 0 ? std::max(header.video.frames, so_far) : 0;
  const FrameTime first = p.times.front();
  const FrameTime last{end_of(p.times), 0};
  Budget b;
  if (params.target_bytes == 0)
    b.share = bytes_wanted(header.video, params, p.frames, first, last);
  else if (all > 0)
    b.share =
        bytes_wanted(header.video, params, static_cast<double>(all), first, last) * p.frames / static_cast<double>(all);
  double known = p.frames;
  for (const RateCurve& c : run) known += c.frames();
  b.known = b.share * known / p.frames;
  b.may_be_last = all <= so_far;
  const double rest = all == 0 ? 1 : 1 - static_cast<double>(so_far) / static_cast<double>(all);
  b.unknown = rest / (1 + static_cast<double>(run.size()));
  return b;
}

// With which step a GOP would take these amounts such that it and those before, all at one slope, take what they may.
double Encoder::State::step_within(const Budget& budget, const StepAmounts& amounts) const {
  double low = std::log2(kFinestStepForBytes);
  double high = std::log2(kCoarsestStep);
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    const double bytes = run_bytes(2 * middle + needed_slope) + amounts.at(amounts.bytes, std::exp2(middle));
    (bytes > kBodyShare * budget.known ? low : high) = middle;
  }
  if (budget.may_be_last) return std::exp2(high);
  // Films begin with little to see, which would take all the bytes of its time: as long as next to nothing is known about
  // the rest, steps that are finer than the eye needs are not believed in.
  const double doubted = header.video.format.bits - 7;
  const double trust = (1 - budget.unknown) * (1 - budget.unknown);
  return std::exp2(high < doubted ? doubted + trust * (high - doubted) : high);
}

void Encoder::State::push_to_spool(const Gop& gop, Pending p) {
  constexpr double kFirstTry = 4;  // of samples of 8 bits: coarser steps are known with it, finer ones are not
  Budget budget = budget_of(p);
  if (budget.share > 0) {
    const double before = step;
    if (p.number == 0) step = kFirstTry * std::exp2(header.video.format.bits - 8);
    // What the last one takes wrongly no other makes good.
    const double alike = budget.may_be_last ? 0.2 : 0.8;
    if (find_step(gop, kFinestStepForBytes, alike, [&](const StepAmounts& a) { return step_within(budget, a); }))
      return push_found(gop, std::move(p), budget);
    step = before;
  }
  constexpr int kMostHalvings = 12;    // of the step, for a GOP: 72 dB
  constexpr int kMostAlignments = 6;   // of the first GOP; the next ones follow it
  constexpr double kFinerSlope = 0.3;  // octaves between the finest slope coded and the one needed: some cuts to choose
  constexpr double kPlenty = 40;       // times the GOP's share: what takes more is fine enough for any slope
  for (int attempt = 0;; ++attempt) {
    RateControl control = coded_at_once(gop, attempt > 0, p);
    add_to_run(control, p);
    const double finest = run.back().bytes(RateCurve::kLeast);
    // Once there is something to compare with, what counts is the slope of the whole.
    const double finest_slope = 2 * std::log2(step);
    double expected_slope = finest_slope;
    if (budget.share == 0) {  // nothing is known about the rate: as fine as makes sense
      if (step > 1 && attempt == 0) {
        run.pop_back();
        step = 1;
        continue;
      }
    } else {
      const double slope = slope_for(run, budget.known);
      const bool too_coarse = slope < finest_slope + kFinerSlope && finest < kPlenty * budget.share;
      const double octaves = octaves_off(static_cast<double>(control.body_bytes(control.planes(1)) + p.motion_bytes()),
                                         finest, kBodyShare * budget.known);
      if (too_coarse && attempt < kMostHalvings && step > kFinestStepForBytes) {
        run.pop_back();
        step /= 2;
        continue;
      }
      if (p.number == 0) {
        if (std::abs(octaves) > kAligned && attempt < kMostAlignments) {
          run.pop_back();
          step = std::clamp(step * std::exp2(octaves), kFinestStepForBytes, kCoarsestStep);
          continue;
        }
        aligned_slope = slope - finest_slope;
      }
      expected_slope = slope;
      step = std::clamp(std::exp2((slope - aligned_slope) / 2), kFinestStepForBytes, kCoarsestStep);  // the next one's
    }
    return put_off(gop, p, control, expected_slope);
  }
}

// With the step that find_step() found.
void Encoder::State::push_found(const Gop& gop, Pending p, const Budget& budget) {
  constexpr double kUncertain = 0.5;  // above it a plane in reserve
  constexpr double kReserve = 0.1;    // octaves finer than needed, for what is not known exactly
  constexpr double kReserveOfUnknown = 0.4;
  constexpr double kReserveOfLast = 0.15;  // what others would make good
  constexpr int kMostCodings = 4;
  const bool plane_more = budget.unknown > kUncertain;
  const double reserve = kReserve + kReserveOfUnknown * budget.unknown;
  step = plane_more ? step / 2 : step * std::exp2(budget.may_be_last ? -kReserveOfLast : -reserve);
  for (int coding = 1;; ++coding) {
    step = std::max(step, kFinestStepForBytes);
    RateControl control = coded_once(gop, plane_more, false, p);
    add_to_run(control, p);
    keep_amounts(control, p.frames, plane_more ? 1 : 0);
    if (budget.may_be_last && coding < kMostCodings && run_bytes(RateCurve::kLeast) < budget.known &&
        step > kFinestStepForBytes) {
      run.pop_back();
      step = std::min(step / 1.2, step_within(budget, *amounts_before) * std::exp2(-kReserveOfLast));
      continue;
    }
    if (plane_more && p.number == 0)
      needed_slope = slope_for(run, amounts_before->bytes[0]) - 2 * std::log2(amounts_before->step);
    const double expected_slope = std::max(slope_for(run, budget.known), 2 * std::log2(step));
    step = amounts_before->step;  // if nothing else is known about the next one
    return put_off(gop, p, control, expected_slope);
  }
}

void Encoder::State::add_to_run(const RateControl& control, const Pending& p) {
  run.push_back(timed(&EncoderStages::layers, false, [&] { return RateCurve(control, p.motion_bytes(), p.frames); }));
}

// The GOP waits for the others. Its errors are measured where it will probably be cut.
void Encoder::State::put_off(const Gop& gop, const Pending& p, RateControl& control, double expected_slope) {
  const double lambda = std::exp2(expected_slope);
  const std::vector<Cuts> layers =
      timed(&EncoderStages::layers, false, [&] { return control.layers(control.at(lambda), lambda, header.layers); });
  measure(gop, p, control, layers);
  pass_on(p);
  if (p.number == 0) seed = {step, correction, aligned_slope, needed_slope, run.front()};
  const std::vector<Cuts> nothing(static_cast<std::size_t>(header.layers), control.at(kWorthless));
  spooled.push_back({p, std::ftell(spool->file()), run.back(), control.chunk_bytes(nothing), measured});
  timed(&EncoderStages::pack, true, [&] { control.save(spool->file()); });
  add_written();
}

WaitingGop Encoder::State::waiting(const Spooled& s) const {
  WaitingGop w;
  w.curve = s.curve;
  GopHeader head = head_of(s.gop);
  head.layer_top.assign(header.layers, 0);
  w.head = serialise(header, head).size() + kBoxHeaderBytes + s.gop.motion_bytes();
  w.least = s.least;
  w.info.first_frame = s.gop.first_frame;
  w.info.frames = s.gop.frames;
  w.info.begin_pts = s.gop.times[0].pts;
  w.info.end_pts = end_of(s.gop.times);
  return w;
}

void Encoder::State::write_spooled() {
  if (spooled.empty()) return;
  const FrameTime begin = spooled.front().gop.times.front();
  const FrameTime end{end_of(spooled.back().gop.times), 0};
  std::vector<WaitingGop> all;
  std::uint64_t count = 0;
  for (const Spooled& s : spooled) {
    all.push_back(waiting(s));
    count += static_cast<std::uint64_t>(s.gop.frames);
  }
  const auto total =
      static_cast<std::uint64_t>(bytes_wanted(header.video, params, static_cast<double>(count), begin, end));
  const BytePlan bytes(header, std::move(all), total);
  spool->rewind();
  for (auto budgets = bytes.next(index, position); !budgets.empty(); budgets = bytes.next(index, position))
    for (const std::uint64_t budget : budgets) write_fitted(spooled[index.size()], budget, bytes.slope());
}

void Encoder::State::write_fitted(const Spooled& s, std::uint64_t budget, double slope) {
  const Pending& p = s.gop;
  const bool moves = p.motion != nullptr;
  const GopKey key = moves ? p.motion->places.key : GopKey::kFirst;
  auto& geometry = geometries[{p.frames, moves, key}];
  if (!geometry) geometry = std::make_unique<StreamGeometry>(header.of_gop(moves, key), p.frames);
  std::vector<const BlockGrid*> grids;
  for (int c = 0; c < geometry->components(); ++c) grids.push_back(&geometry->grid(c));
  RateControl control = timed(&EncoderStages::pack, true, [&] {
    spool->seek(s.offset);
    return RateControl(header, grids, spool->file(), &pool);
  });
  double lambda = std::exp2(slope);
  LayeredGop divided;
  divided.frames = p.frames;
  Cuts final;
  int layers = 0;
  const bool fits = timed(&EncoderStages::layers, false, [&] {
    final = control.at(lambda);
    layers = layers_for(control, final, lambda);
    return control.fit(budget, layers, lambda, divided, final);
  });
  require(fits, ErrorKind::kBadArgument,
          "the target is too small: GOP " + std::to_string(p.number) + " cannot be coded in the " +
              std::to_string(budget) + " bytes that are its share; raise it or lower EncoderParams::layers");
  write_controlled(p, control, control.layers(final, lambda, layers), s.errors, divided);
}

}  // namespace trivelet
