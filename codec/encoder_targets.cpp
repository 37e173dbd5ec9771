// Encoding towards a target (encoder_state.h): a PSNR, GOP by GOP, or bytes, for the whole video at the end. Also the
// errors that both, and streams without a target, state in their index: measured at some cuts, predicted at the others.

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "codec/byte_plan.h"
#include "codec/encoder_params.h"
#include "codec/encoder_state.h"
#include "codec/frame_times.h"
#include "codec/squared_error.h"
#include "codec/step_sample.h"
#include "codec/trace.h"

namespace trivelet {

namespace {

// Cuts cost least where a plane ends everywhere: half a plane away the same bytes bring up to 0.4 dB less (luma of
// mobile CIF at 1 bit per pixel). So with a target the step is chosen such that all planes but the last one just meet
// it, this near, in octaves.
constexpr double kAligned = 0.03;

// And where the step comes from a sample of the GOP: about as near as that tells.
constexpr double kSampledAligned = 0.12;

// The finest and coarsest step that a target is tried with. Samples are integers, so errors below those of a step of
// 0.05 (a variance of 0.0002) vanish in rounding. With a target in bytes it may be finer still: what is coded too finely
// is cut again, what is coded too coarsely takes fewer bytes than there are.
constexpr double kFinestStep = 0.05;
constexpr double kFinestStepForBytes = 0.02;
constexpr double kCoarsestStep = 1e6;  // larger than any coefficient

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
double Encoder::State::measured_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts,
                                      bool as_before) {
  GopChoices coded = choices(p);
  coded.step = p.step;
  coded.cut_as_before = as_before;
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

void Encoder::State::measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers) {
  const std::vector<const Cuts*> points = measuring_points(p, predicted_errors(control, layers), layers);
  if (!points.empty()) return measure_at(points, gop, p, control);
  if (header.motion && p.anew) measured = SampleErrorModel(header.lossless);
}

std::vector<const Cuts*> Encoder::State::measuring_points(const Pending& p, const std::vector<double>& predicted,
                                                          const std::vector<Cuts>& layers) {
  std::vector<const Cuts*> points;
  for (const std::size_t l : plan.layers(predicted, p.open(), p.anew)) points.push_back(&layers[l]);
  return points;
}

std::vector<double> Encoder::State::sampled_errors(const Gop& gop, const Pending& p, const RateControl& control,
                                                   const std::vector<const Cuts*>& points) {
  return timed(&EncoderStages::measure, finisher.has_value(), [&] {
    return sample.errors(gop, p.step, p.frame_gains, control, points, sampling_pool ? *sampling_pool : pool);
  });
}

void Encoder::State::measure_at(const std::vector<const Cuts*>& points, const Gop& gop, const Pending& p,
                                RateControl& control) {
  const trace::Span span("measure errors");
  measured = SampleErrorModel(header.lossless);
  if (p.motion || rounds_by_cost(params)) {  // no block of it can be decoded alone; or its rounding is in no sample
    for (const Cuts* cuts : points) measured.add(control.mean_error(*cuts), measured_error(gop, p, control, *cuts));
    return;
  }
  const std::vector<double> errors = sampled_errors(gop, p, control, points);
  for (std::size_t i = 0; i < points.size(); ++i)
    measured.add(control.mean_error(*points[i]), errors[i] / static_cast<double>(control.samples()));
}

// ---------------------------------------------------------------------------------------------------------------- runs

void Encoder::State::begin_run(const Pending& p) {
  if (!p.run || p.number == 0 || (params.psnr == 0 && !params.has_byte_target())) return;
  require(seed.has_value(), ErrorKind::kInternal, "a run of GOPs begins before the first GOP told anything");
  step = seed->step;
  correction = seed->correction;
  aligned_slope = seed->aligned_slope;
  run.assign(1, seed->curve);
  plan = MeasuringPlan(header);
  measured = SampleErrorModel(header.lossless);
}

// ------------------------------------------------------------------------------------------------------- target: PSNR

template <class Off>
bool Encoder::State::sample_first_step(const Gop& gop, double finest, const Off& octaves_off_of) {
  if (header.motion) return false;  // it is of whole pictures
  StepSample windows(header, gop, params.simd);
  if (!windows.worth_it()) return false;
  constexpr int kMostRounds = 8;
  Pending p;
  p.frames = gop.frames();
  timed(&EncoderStages::coder, false, [&] {
    for (int round = 0; round < kMostRounds; ++round) {
      const double octaves = octaves_off_of(windows.at(choices(p), pool));
      step = std::clamp(step * std::exp2(octaves), finest, kCoarsestStep);
      if (std::abs(octaves) < kAligned) break;
    }
  });
  return true;
}

// A GOP through the backend; `again`: the one before, with another step.
RateControl Encoder::State::coded_at_once(const Gop& gop, bool again, Pending& p) {
  const GopChoices choice = choices(p);
  CodedGop coded;
  code([&] {
    again ? coder->push_again(gop, choice) : coder->push(gop, choice);
    require(coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
  });
  p.frame_gains = choice.frame_gains;
  take_motion(coded, p);
  return timed(&EncoderStages::layers, false, [&] { return RateControl(header, coded, &pool); });
}

void Encoder::State::push_to_psnr(const Gop& gop, Pending p) {
  constexpr double kNear = 0.03;      // dB from the target that are good enough
  constexpr int kMostAttempts = 8;    // each a decoding
  constexpr int kMostAlignments = 4;  // each a coding, of the first GOP
  constexpr double kFarOff = 0.25;    // octaves that are worth a coding of the first GOP of another run
  constexpr double kFewer = 1.005;    // of the error wanted: above it, with all that was coded, the step is at fault
  bool again = false;
  const double all_samples = static_cast<double>(header.samples(gop.frames()));
  const bool first = p.number == 0;
  const bool sampled = first && sample_first_step(gop, kFinestStep, [&](const StepSample::Amounts& a) {
                         return octaves_off(a.error_without_last, a.error, target_error * all_samples);
                       });
  const double near_enough = !first ? kFarOff : sampled ? kSampledAligned : 2 * kAligned;
  const int most_alignments = first ? kMostAlignments : p.run ? 2 : 1;
  for (int alignments = 0;; again = true) {
    p.step = static_cast<float>(step);
    RateControl control = coded_at_once(gop, again, p);
    const auto samples = static_cast<double>(control.samples());
    // The error predicted is that of coefficients; what the samples really have is measured and made good for.
    double best_distance = 1e9;
    std::vector<Cuts> best;
    bool too_coarse = false;
    double before = -1;
    for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
      const double wanted = target_error / correction * samples;
      double low = 0;
      Cuts final;
      const std::vector<Cuts> layers = timed(&EncoderStages::layers, false, [&] {
        final = control.with_error(wanted, low);
        const double lambda = std::exp2(low);
        return control.layers(final, lambda, layers_for(control, final, lambda));
      });
      const bool all = low < RateControl::kEverything;
      const bool roughly = sampled && attempt == 0;  // a first correction need not be exact
      const double actual = std::max(1e-9, roughly ? sampled_errors(gop, p, control, {&final})[0] / samples
                                                   : measured_error(gop, p, control, final, true));
      const double distance = roughly ? 1e3 : std::abs(10 * std::log10(actual / target_error));
      if (distance < best_distance) {
        best_distance = distance;
        best = layers;
      }
      too_coarse = !roughly && all && actual > target_error * kFewer;
      if (distance < kNear || too_coarse || distance == before) break;
      before = distance;
      correction = std::clamp(actual / std::max(1e-9, control.error(final) / samples), 0.01, 1e6);
    }
    if (too_coarse && step > 1.2 * kFinestStep) {
      step = std::max(kFinestStep, step / 2);
      correction = 1;
      continue;
    }
    const double octaves = octaves_off(control.error(control.planes(1)), control.error(control.complete()),
                                       target_error / correction * samples);
    const double aligned = std::clamp(step * std::exp2(octaves), kFinestStep, kCoarsestStep);
    if (std::abs(octaves) > near_enough && ++alignments < most_alignments) {
      step = aligned;
      continue;
    }
    measure(gop, p, control, best);
    pass_on(p);
    LayeredGop divided;
    divided.frames = p.frames;
    step = aligned;  // the next one's
    if (first) seed = {step, correction, aligned_slope, {}};
    write_controlled(p, control, best, measured, divided);
    return;
  }
}

// ------------------------------------------------------------------------------------------------------ target: bytes

// A slope for the whole video is found when all of it is known; until then what was coded, more finely than will be
// needed, waits in a file.

void Encoder::State::push_to_spool(const Gop& gop, Pending p) {
  constexpr int kMostHalvings = 12;    // of the step, for a GOP: 72 dB
  constexpr int kMostAlignments = 6;   // of the first GOP; the next ones follow it
  constexpr double kFinerSlope = 0.3;  // octaves between the finest slope coded and the one needed: some cuts to choose
  constexpr double kPlenty = 40;       // times the GOP's share: what takes more is fine enough for any slope
  // Bytes this GOP may expect, while only part of the video is known.
  const std::uint64_t so_far = p.first_frame + static_cast<std::uint64_t>(p.frames);
  const std::uint64_t all = header.video.frames > 0 ? std::max(header.video.frames, so_far) : 0;
  const FrameTime first = p.times.front();
  const FrameTime last{end_of(p.times), 0};
  double share = 0;
  if (params.target_bytes == 0)
    share = bytes_wanted(header.video, params, gop.frames(), first, last);
  else if (all > 0)
    share = bytes_wanted(header.video, params, static_cast<double>(all), first, last) * gop.frames() /
            static_cast<double>(all);
  const bool sampled =
      share > 0 && p.number == 0 && sample_first_step(gop, kFinestStepForBytes, [&](const StepSample::Amounts& a) {
        return octaves_off(a.bytes_without_last, a.bytes, kBodyShare * share);
      });
  for (int attempt = 0;; ++attempt) {
    p.step = static_cast<float>(step);
    RateControl control = coded_at_once(gop, attempt > 0, p);
    run.push_back(timed(&EncoderStages::layers, false, [&] { return RateCurve(control, p.motion_bytes(), p.frames); }));
    const double finest = run.back().bytes(RateCurve::kLeast);
    // Once there is something to compare with, what counts is the slope of the whole.
    double known = 0;
    for (const RateCurve& c : run) known += c.frames();
    const double budget = share > 0 ? share * known / gop.frames() : 0;
    const double finest_slope = 2 * std::log2(step);
    double expected_slope = finest_slope;
    if (budget == 0) {  // nothing is known about the rate: as fine as makes sense
      if (step > 1 && attempt == 0) {
        run.pop_back();
        step = 1;
        continue;
      }
    } else {
      const double slope = slope_for(run, budget);
      const bool too_coarse = slope < finest_slope + kFinerSlope && finest < kPlenty * share;
      const double octaves = octaves_off(static_cast<double>(control.body_bytes(control.planes(1)) + p.motion_bytes()),
                                         finest, kBodyShare * budget);
      if (too_coarse && attempt < kMostHalvings && step > kFinestStepForBytes) {
        run.pop_back();
        step /= 2;
        continue;
      }
      if (p.number == 0) {
        if (std::abs(octaves) > (sampled ? kSampledAligned : kAligned) && attempt < kMostAlignments) {
          run.pop_back();
          step = std::clamp(step * std::exp2(octaves), kFinestStepForBytes, kCoarsestStep);
          continue;
        }
        aligned_slope = slope - finest_slope;
      }
      expected_slope = slope;
      step = std::clamp(std::exp2((slope - aligned_slope) / 2), kFinestStepForBytes, kCoarsestStep);  // the next one's
    }
    const double lambda = std::exp2(expected_slope);
    const std::vector<Cuts> layers =
        timed(&EncoderStages::layers, false, [&] { return control.layers(control.at(lambda), lambda, header.layers); });
    measure(gop, p, control, layers);
    pass_on(p);
    if (p.number == 0) seed = {step, correction, aligned_slope, run.front()};
    spooled.push_back({p, std::ftell(spool->file()), run.back(), measured});
    timed(&EncoderStages::pack, true, [&] { control.save(spool->file()); });
    add_written();
    return;
  }
}

WaitingGop Encoder::State::waiting(const Spooled& s) const {
  WaitingGop w;
  w.curve = s.curve;
  GopHeader head = head_of(s.gop);
  head.layer_top.assign(header.layers, 0);
  w.head = serialise(header, head).size() + kBoxHeaderBytes + s.gop.motion_bytes();
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
