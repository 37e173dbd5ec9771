// Measuring threads, their memory for samples, and measurements for targets (error_measurer.h).
#include "codec/encoder/error_measurer.h"

#include <algorithm>
#include <utility>

#include "codec/base/squared_error.h"
#include "codec/format/container.h"
#include "codec/threads/trace.h"

namespace trivelet {

namespace {

// Number of GOPs, some megabytes each, that may be written while an earlier one is measured.
constexpr std::size_t kMostTasks = 48;
// A GOP of 1080p has five windows, which take unequally long: more threads wait for the last one (gpu/BENCHMARKS.md,
// "With motion").
constexpr int kThreadsPerGop = 2;
constexpr int kMostGops = 12;  // measured at once
// Number of GOPs, in measurement or waiting for it, with page-locked memory if the backend has it. Others use ordinary
// memory: locking takes time at the start.
constexpr std::uint64_t kSpareSamples = 8;

// Copies the parts of a GOP with padding, because decoders read slightly past every part.
std::vector<std::uint8_t> copy_padded(LayeredGop& layers) {
  const auto for_parts = [&](const auto& f) {
    for (auto& c : layers.components)
      for (auto& block : c.blocks)
        for (auto& segment : block)
          for (auto& part : segment.parts) f(part);
  };
  std::size_t total = 0;
  for_parts([&](const auto& part) { total += part.size + kChunkPadding; });
  std::vector<std::uint8_t> memory(total, 0);
  std::size_t at = 0;
  for_parts([&](auto& part) {
    std::copy_n(part.data, part.size, memory.data() + at);
    part.data = memory.data() + at;
    at += part.size + kChunkPadding;
  });
  return memory;
}

}  // namespace

ErrorMeasurer::ErrorMeasurer(EncoderContext& context, EncoderObserver* observer)
    : context_(context),
      observer_(observer),
      sample_(context.header, context.params.simd),
      moving_sample_(context.header, context.params.simd),
      plan_(context.header),
      measured_(context.header.lossless),
      tasks_(kMostTasks) {}

ErrorMeasurer::~ErrorMeasurer() { stop_threads(); }

// ------------------------------------------------------------------------------------------------------------- threads

void ErrorMeasurer::start_threads() {
  threaded_ = true;
  if (context_.header.profile != Profile::kDense) return;
  // With motion most GOPs are measured, in fewer windows than there are cores; without, about every fourth GOP of a
  // film.
  const int all = context_.pool.threads();
  const int gops = std::clamp(all / kThreadsPerGop, 1, context_.header.motion ? kMostGops : 2);
  for (int i = 0; i < gops; ++i)
    workers_.emplace_back("errors").begin([this, all, gops] { run(std::max(1, all / gops)); });
}

void ErrorMeasurer::stop_threads() {
  tasks_.stop();
  workers_.clear();
  threaded_ = false;
}

void ErrorMeasurer::run(int threads) try {
  ThreadPool with(threads, context_.params.workers);
  while (std::optional<MeasureTask> task = tasks_.pop()) measure(*task, with);
} catch (...) {
  const std::lock_guard lock(error_mutex_);
  error_ = std::current_exception();
  tasks_.stop();
}

void ErrorMeasurer::check() {
  const std::lock_guard lock(error_mutex_);
  if (error_) std::rethrow_exception(error_);
}

void ErrorMeasurer::finish() {
  const trace::Span span("wait for errors");
  tasks_.close();
  workers_.clear();
  check();
}

void ErrorMeasurer::begin(MeasureTask task) {
  if (threaded_)
    (void)tasks_.push(std::move(task));
  else
    measure(task, context_.pool);
}

// ------------------------------------------------------------------------------------------------------------- samples

// Memory for the last `frames` frames of a GOP: all of a measured GOP, or a key frame. `spare`: it is one of the spare
// ones, or becomes one (GOPs without motion).
Gop ErrorMeasurer::take_samples(int frames, bool& spare) {
  const StreamHeader& header = context_.header;
  std::optional<Gop> samples;
  const std::lock_guard lock(spare_mutex_);
  const auto fits = [&](const Gop& s) { return s.capacity() == (frames == 1 ? 1 : header.gop_frames); };
  const auto found = std::find_if(spare_samples_.begin(), spare_samples_.end(), fits);
  spare = found != spare_samples_.end();
  if (spare) {
    samples = std::move(*found);
    spare_samples_.erase(found);
  } else if (header.motion) {
    samples.emplace(header.video, frames);
  } else {
    samples.emplace(header.video, header.gop_frames, context_.backend.allocate);
    spare = true;
  }
  samples->set_frames(frames);
  return std::move(*samples);
}

void ErrorMeasurer::give_back_samples(MeasureTask& task) {
  if (task.samples && task.spare) {
    const std::lock_guard lock(spare_mutex_);
    if (spare_samples_.size() <= kSpareSamples) spare_samples_.push_back(std::move(*task.samples));
  }
  task.samples.reset();
}

void ErrorMeasurer::make_spare_samples() try {
  const StreamHeader& header = context_.header;
  if (std::exchange(has_spare_samples_, true) || !threaded_ || !header.motion || !context_.measures()) return;
  const auto gop_frames = static_cast<std::uint64_t>(header.gop_frames);
  const std::uint64_t gops =
      header.video.frames == 0 ? kSpareSamples : (header.video.frames + gop_frames - 1) / gop_frames;
  spare_samples_.reserve(kSpareSamples + 1);
  if (gop_frames > 1) spare_samples_.emplace_back(header.video, 1, context_.backend.allocate);  // for keys
  for (std::uint64_t i = 0; i < std::min(gops, kSpareSamples); ++i)
    spare_samples_.emplace_back(header.video, header.gop_frames, context_.backend.allocate);
} catch (const Error& e) {
  if (e.kind() != ErrorKind::kUnsupported) throw;  // no more page-locked memory
}

// --------------------------------------------------------------------------------------- errors that follow their GOP

MeasureTask ErrorMeasurer::task_for(GopWork& work, bool& later) {
  auto fetch = std::exchange(work.coded.samples, nullptr);
  MeasureTask task;
  task.predicted = predicted_errors(context_.header, *work.control, work.cuts);
  // The observer cannot decide with motion: the key frame before must be at hand here.
  later = observer_ && !context_.header.motion && work.gop.measures;
  if (work.gop.measures && !later) task.layers = plan_.layers(task.predicted, work.gop.open(), work.gop.must_close);
  task.before = key_before_;
  const bool whole = !task.layers.empty(), key = leaves_key(work.gop);
  if ((whole || key) && !work.gop.samples) {
    const trace::Span fetching("fetch samples");
    task.samples = take_samples(whole ? work.gop.frames : 1, task.spare);
    fetch(*task.samples, work.gop.frames - task.samples->frames());
  }
  if (later && !work.gop.samples) task.fetch = std::move(fetch);
  const trace::Span keeping("keep a key");
  if (key) keep_key(task.samples ? *task.samples : *work.gop.samples, work.gop, *work.control, work.cuts);
  if (!whole) give_back_samples(task);
  task.gop = std::move(work.gop);
  task.control = std::move(work.control);
  task.cuts = std::move(work.cuts);
  return task;
}

// The errors of a GOP's layers, by its own measurement or an earlier one.
void ErrorMeasurer::measure(MeasureTask& task, ThreadPool& with) {
  if (task.fetch) {
    const trace::Span span("fetch samples");
    task.samples = take_samples(task.gop.frames, task.spare);
    std::exchange(task.fetch, nullptr)(*task.samples, 0);
  }
  std::vector<double> errors;
  if (!task.layers.empty())
    errors = measured_errors(task.layers, task.samples ? *task.samples : *task.gop.samples, task.gop, *task.control,
                             task.cuts, task.before.get(), with);
  give_back_samples(task);
  if (observer_) return observer_->errors_measured(task.gop.number, std::move(errors));
  Result result{{}, measured_model(context_.header, task.predicted, task.layers, errors, task.gop.must_close)};
  result.predicted = std::move(task.predicted);
  const std::lock_guard lock(results_mutex_);
  const auto number = static_cast<std::size_t>(task.gop.number);
  if (results_.size() <= number) results_.resize(number + 1);
  results_[number] = std::move(result);
}

void ErrorMeasurer::write_errors(std::vector<GopInfo>& index) {
  for (std::size_t g = 0; g < results_.size(); ++g) {
    if (results_[g].measured) measured_.add(*results_[g].measured);
    const std::vector<double> errors = layer_errors(results_[g].predicted, measured_);
    for (std::size_t l = 0; l < errors.size(); ++l) index[g].layers[l].error = error_code(errors[l]);
  }
}

// ---------------------------------------------------------------------------------------------------------- one GOP

void ErrorMeasurer::begin_run() {
  plan_ = MeasuringPlan(context_.header);
  measured_ = MeasuredErrors(context_.header.lossless);
}

void ErrorMeasurer::measure(const Gop& gop, const PendingGop& p, RateControl& control,
                            const std::vector<Cuts>& layers) {
  const std::vector<double> predicted = predicted_errors(context_.header, control, layers);
  const std::vector<std::size_t> points = plan_.layers(predicted, p.open(), p.must_close);
  std::vector<double> errors;
  if (!points.empty()) errors = measured_errors(points, gop, p, control, layers, key_before_.get(), context_.pool);
  if (std::optional<SampleErrorModel> model = measured_model(context_.header, predicted, points, errors, p.must_close))
    measured_.add(std::move(*model));
  if (leaves_key(p)) keep_key(gop, p, control, layers);
}

double ErrorMeasurer::decoded_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts) {
  const GopChoices coded = context_.choices(p, static_cast<double>(p.step));
  return context_.timed(&EncoderStages::measure, !context_.coder->pool(), [&] {
    const double error = context_.coder->squared_error(gop, coded, cuts);
    return error >= 0 ? error : error_of_decoder(gop, p, control, cuts);
  });
}

double ErrorMeasurer::error_of_decoder(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts) {
  const StreamHeader& header = context_.header;
  if (!decoder_) decoder_ = context_.backend.make_decoder(header, {}, {context_.params.threads, context_.params.simd});
  LayeredGop layers;
  layers.frames = p.frames;
  layers.step = p.step;
  layers.frame_gains = p.frame_gains;
  layers.motion = p.motion;
  control.divide({cuts}, layers);
  const std::vector<std::uint8_t> memory = copy_padded(layers);
  Gop decoded(header.video, gop.frames());
  decoder_->push(layers, nullptr);
  require(decoder_->pull(decoded), ErrorKind::kInternal, "the backend lost a GOP");
  double sum = 0;
  double samples = 0;
  for (int c = 0; c < gop.components(); ++c) {
    sum += squared_error(gop.plane(c), std::as_const(decoded).plane(c));
    samples += static_cast<double>(gop.plane(c).shape.samples());
  }
  return sum / samples;
}

double ErrorMeasurer::likely_error(const Gop& gop, const PendingGop& p, RateControl& control, const Cuts& cuts) {
  constexpr double kUnsure = 0.017;  // limit of the relative deviation of a sample
  // Decoding gives 0.02 to 0.06 dB more than samples predict (seven clips of 720x576 to 1080p, 36 to 46 dB).
  constexpr double kUnseen = 1.008;
  const SampledError sampled = sampled_errors(gop, p, control, {cuts}, {0}, key_before_.get(), context_.pool)[0];
  if (sampled.deviation > kUnsure * sampled.error)
    return context_.timed(&EncoderStages::measure, !context_.coder->pool(),
                          [&] { return error_of_decoder(gop, p, control, cuts); });
  return kUnseen * sampled.error / static_cast<double>(control.samples());
}

std::vector<SampledError> ErrorMeasurer::sampled_errors(const Gop& gop, const PendingGop& p, const RateControl& control,
                                                        const std::vector<Cuts>& layers,
                                                        const std::vector<std::size_t>& points, const CodedKey* before,
                                                        ThreadPool& with) {
  GopChoices coded;
  coded.step = p.step;
  coded.rounding_step = p.rounding_step;
  coded.frame_gains = p.frame_gains;
  return context_.timed(&EncoderStages::measure, threaded_, [&] {
    require(!p.open() || before, ErrorKind::kInternal, "a GOP is measured whose key frame before it is not known");
    if (p.motion)
      return moving_sample_.errors(gop, coded, *p.motion, p.open() ? before : nullptr, control, layers, points, with);
    std::vector<const Cuts*> cuts;
    for (const std::size_t l : points) cuts.push_back(&layers[l]);
    return sample_.errors(gop, coded, control, cuts, with);
  });
}

std::vector<double> ErrorMeasurer::measured_errors(const std::vector<std::size_t>& points, const Gop& gop,
                                                   const PendingGop& p, const RateControl& control,
                                                   const std::vector<Cuts>& layers, const CodedKey* before,
                                                   ThreadPool& with) {
  const trace::Span span("measure errors");
  std::vector<double> errors;
  for (const SampledError& e : sampled_errors(gop, p, control, layers, points, before, with))
    errors.push_back(e.error / static_cast<double>(control.samples()));
  return errors;
}

void ErrorMeasurer::keep_key(const Gop& gop, const PendingGop& p, const RateControl& control,
                             const std::vector<Cuts>& layers) {
  GopChoices coded;
  coded.step = p.step;
  coded.rounding_step = p.rounding_step;
  coded.levels = p.motion->places.levels;
  context_.timed(&EncoderStages::measure, true,
                 [&] { key_before_ = std::make_shared<CodedKey>(context_.header, gop, coded, control, layers); });
}

}  // namespace trivelet
