// From coded GOPs to the stream (encoder_state.h): layers, chunks, packets. Where the backend has several GOPs in
// flight, some of them are divided into layers and chunks at once, a thread each, while it codes others; one thread then
// does what has to be done in their order, and writes; one more finds the errors for the index.

#include <algorithm>
#include <system_error>
#include <utility>

#include "codec/encoder/encoder_params.h"
#include "codec/encoder/encoder_state.h"
#include "codec/format/chunk_check.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"

namespace trivelet {

namespace {

// GOPs, some megabytes each, that may be written while the errors of one before are measured.
constexpr std::size_t kMostJudgements = 48;
constexpr int kThreadsOfJudge = 5;  // the windows of a GOP of 1080p
constexpr int kMostJudges = 6;
// GOPs measured and waiting for that which have page-locked memory, where the backend makes such; others have their own.
constexpr std::uint64_t kSpareSamples = kMostJudges + 2;

}  // namespace

// ------------------------------------------------------------------------------------------------- one GOP, two steps

void Encoder::State::divide_gop(Work& work, ThreadPool* with) const {
  const trace::Span span("layers and chunks");
  work.layers.frames = work.gop.frames;
  if (header.profile == Profile::kDense) {
    timed(&EncoderStages::layers, !with, [&] {
      work.control = std::make_unique<RateControl>(header, work.coded, with);
      const RateControl& control = *work.control;
      const double unit = header.lossless ? 1 : static_cast<double>(work.gop.step);
      const Cuts final = control.complete();
      work.cuts = control.layers(final, unit * unit, layers_for(control, final, unit * unit));
    });
  }
  timed(&EncoderStages::pack, !with, [&] {
    work.control ? work.control->divide(work.cuts, work.layers) : divide_by_plan(work.coded, work.layers);
    make_chunks(work.layers, work.chunks, with);
  });
}

void Encoder::State::write_gop(Work& work) {
  const trace::Span span("write");
  write_chunks(work.gop, work.layers, work.chunks, {});
  auto samples = std::exchange(work.coded.samples, nullptr);
  if (!work.control) return hand_over ? hand_over(work, nullptr) : void();
  Judgement j;
  j.predicted = predicted_errors(*work.control, work.cuts);
  const bool later = is_told_later(work.gop);
  if (work.gop.measures && !later) j.measured_at = measuring_points(work.gop, j.predicted);
  j.before = key_before;
  const bool whole = !j.measured_at.empty(), key = leaves_key(work.gop);
  if ((whole || key) && !work.gop.samples) {
    const trace::Span fetching("fetch samples");
    j.samples = samples_of(whole ? work.gop.frames : 1, j.spare);
    samples(*j.samples, work.gop.frames - j.samples->frames());
  }
  if (later && !work.gop.samples) j.fetch = std::move(samples);
  const trace::Span keeping("keep a key");
  if (key) keep_key(j.samples ? *j.samples : *work.gop.samples, work.gop, *work.control, work.cuts);
  if (!whole) let_go(j);
  j.gop = std::move(work.gop);
  j.control = std::move(work.control);
  j.cuts = std::move(work.cuts);
  hand_over ? hand_over(work, &j) : begin_judging(std::move(j));
}

void Encoder::State::begin_judging(Judgement j) { finisher ? finisher->judge_later(std::move(j)) : judge(j, pool); }

// Memory for so many frames at the end of a GOP, which are measured, or a key. `spare`: it is one of spare_samples, or, of
// GOPs without motion, is to be.
Gop Encoder::State::samples_of(int frames_of, bool& spare) {
  std::optional<Gop> samples;
  const std::lock_guard lock(spare_mutex);
  const auto fits = [&](const Gop& s) { return s.capacity() == (frames_of == 1 ? 1 : header.gop_frames); };
  const auto found = std::find_if(spare_samples.begin(), spare_samples.end(), fits);
  spare = found != spare_samples.end();
  if (spare) {
    samples = std::move(*found);
    spare_samples.erase(found);
  } else if (header.motion) {
    samples.emplace(header.video, frames_of);
  } else {
    samples.emplace(header.video, header.gop_frames, backend.allocate);
    spare = true;
  }
  samples->set_frames(frames_of);
  return std::move(*samples);
}

void Encoder::State::let_go(Judgement& j) {
  if (j.samples && j.spare) {
    const std::lock_guard lock(spare_mutex);
    if (spare_samples.size() <= kSpareSamples) spare_samples.push_back(std::move(*j.samples));
  }
  j.samples.reset();
}

// Pages are not locked beside searches for motion, the end of which that would wait for, but before; a copy to others takes
// many times as long.
void Encoder::State::make_spare_samples() try {
  const bool measures = header.profile == Profile::kDense && params.measure_errors;
  if (std::exchange(has_spare_samples, true) || !finisher || !header.motion || !measures) return;
  const auto of_gop = static_cast<std::uint64_t>(header.gop_frames);
  const std::uint64_t gops = header.video.frames == 0 ? kSpareSamples : (header.video.frames + of_gop - 1) / of_gop;
  spare_samples.reserve(kSpareSamples + 1);
  if (of_gop > 1) spare_samples.emplace_back(header.video, 1, backend.allocate);  // for keys
  for (std::uint64_t i = 0; i < std::min(gops, kSpareSamples); ++i)
    spare_samples.emplace_back(header.video, header.gop_frames, backend.allocate);
} catch (const Error& e) {
  if (e.kind() != ErrorKind::kUnsupported) throw;  // there is no more such memory
}

// The errors of a GOP's layers: by what is measured of it, or of one before.
void Encoder::State::judge(Judgement& j, ThreadPool& with) {
  if (j.fetch) {
    const trace::Span span("fetch samples");
    j.samples = samples_of(j.gop.frames, j.spare);
    std::exchange(j.fetch, nullptr)(*j.samples, 0);
  }
  std::vector<double> errors;
  if (!j.measured_at.empty())
    errors = measured_errors(j.measured_at, j.samples ? *j.samples : *j.gop.samples, j.gop, *j.control, j.cuts,
                             j.before.get(), with);
  let_go(j);
  if (hand_over_errors) return hand_over_errors(j.gop.number, std::move(errors));
  Judged judgement{{}, measured_model(header, j.predicted, j.measured_at, errors, j.gop.anew)};
  judgement.predicted = std::move(j.predicted);
  const std::lock_guard lock(judged_mutex);
  const auto number = static_cast<std::size_t>(j.gop.number);
  if (judged.size() <= number) judged.resize(number + 1);
  judged[number] = std::move(judgement);
}

void Encoder::State::write_judged() {
  for (std::size_t g = 0; g < judged.size(); ++g) {
    if (judged[g].measured) measured.add(*judged[g].measured);
    const std::vector<double> errors = layer_errors(judged[g].predicted, measured);
    for (std::size_t l = 0; l < errors.size(); ++l) index[g].layers[l].error = error_code(errors[l]);
  }
}

void Encoder::State::make_chunks(const LayeredGop& layers, Chunks& out, ThreadPool* with) const {
  const int distances = header.spatial_levels + 1;
  const int of_layer = header.temporal_bands() * distances;
  out.bytes.resize(static_cast<std::size_t>(header.layers * of_layer));
  out.entries.resize(out.bytes.size());
  const auto make = [&](int i) {
    const auto n = static_cast<std::size_t>(i);
    out.bytes[n] =
        write_chunk(header, layers, i / of_layer, i % of_layer / distances, header.spatial_levels - i % distances);
    out.entries[n] = chunk_entry(out.bytes[n]);
  };
  if (with) return with->parallel_for(header.layers * of_layer, [&](int i, int) { make(i); });
  for (int i = 0; i < header.layers * of_layer; ++i) make(i);
}

std::vector<double> Encoder::State::predicted_errors(const RateControl& control,
                                                     const std::vector<Cuts>& layers) const {
  std::vector<double> errors;
  for (const Cuts& cuts : layers) {
    const bool exact = header.lossless && cuts == control.complete();
    errors.push_back(exact ? kExactLayer : control.mean_error(cuts));
  }
  return errors;
}

void Encoder::State::write_controlled(const Pending& p, RateControl& control, const std::vector<Cuts>& layers,
                                      const MeasuredErrors& measured_before, LayeredGop& divided) {
  Chunks chunks;
  timed(&EncoderStages::pack, false, [&] {
    control.divide(layers, divided);
    make_chunks(divided, chunks, &pool);
  });
  write_chunks(p, divided, chunks, layer_errors(predicted_errors(control, layers), measured_before));
  add_written();
  if (hand_over_written) hand_over_written(p);
}

GopHeader Encoder::State::head_of(const Pending& p) const {
  GopHeader g;
  g.index = p.number;
  g.first_frame = p.first_frame;
  g.frames = p.frames;
  g.step = p.step;
  g.has_hash = p.has_hash;
  g.hash = p.hash;
  g.times = p.times;
  g.frame_gains = p.frame_gains;
  if (p.motion) {
    g.key = p.motion->places.key;
    for (const auto& section : p.motion->sections) g.motion.push_back(chunk_entry(section));
  }
  g.body_bytes = p.motion_bytes();
  return g;
}

void Encoder::State::write_chunks(const Pending& p, const LayeredGop& layers, const Chunks& chunks,
                                  const std::vector<double>& errors) {
  const Stopwatch watch;
  GopHeader g = head_of(p);
  set_planes(header, layers, g);
  g.chunks = chunks.entries;
  GopInfo info;
  info.layers.resize(header.layers);
  const std::size_t of_layer = chunks.bytes.size() / header.layers;
  for (std::size_t i = 0; i < chunks.bytes.size(); ++i) {
    g.body_bytes += chunks.bytes[i].size();
    info.layers[i / of_layer].bytes += chunks.bytes[i].size();
  }
  for (std::size_t l = 0; l < errors.size(); ++l) info.layers[l].error = error_code(errors[l]);
  if (header.lossless && errors.empty()) info.layers.back().error = 0;  // exact, if nothing else is known
  const std::vector<std::uint8_t> head = serialise(header, g);
  info.offset = position;
  info.first_frame = p.first_frame;
  info.frames = p.frames;
  info.key = g.key;
  info.begin_pts = g.times[0].pts;
  info.end_pts = end_of(g.times);
  std::uint8_t box[kBoxHeaderBytes];
  write_box_header("Gop ", head.size() + g.body_bytes, box);
  write(box, sizeof box);
  write(head.data(), head.size());
  if (p.motion)
    for (const auto& section : p.motion->sections) write(section.data(), section.size());
  for (const auto& c : chunks.bytes) write(c.data(), c.size());
  info.bytes = position - info.offset;
  const bool divided = std::any_of(layers.components.begin(), layers.components.end(),
                                   [](const auto& c) { return c.blocks.size() > 1; });
  if (params.part_checks && divided)
    write_box("part", timed(&EncoderStages::pack, true,
                            [&] { return serialise_checks(header, g.index, layers, chunks.bytes); }));
  index.push_back(info);
  frames += static_cast<std::uint64_t>(p.frames);
  const std::lock_guard lock(written_mutex);
  written.gops += 1;
  written.seconds_container += watch.seconds();
}

void Encoder::State::add_written() {
  const std::lock_guard lock(written_mutex);
  stats.gops = written.gops;
  stats.stream_bytes = written.stream_bytes;
  stats.seconds_container += std::exchange(written.seconds_container, 0);
  stats.stages = times;
}

void Encoder::State::add_time(StageTime EncoderStages::*stage, const StageTime& time) const {
  const std::lock_guard lock(written_mutex);
  (times.*stage).seconds += time.seconds;
  (times.*stage).busy += time.busy;
}

// Of the pools that the caller's thread uses.
ThreadPool::Times Encoder::State::pool_times() const {
  const ThreadPool::Times own = pool.times();
  if (!coder->pool()) return own;
  const ThreadPool::Times of_coder = coder->pool()->times();
  return {own.seconds + of_coder.seconds, own.busy + of_coder.busy};
}

// ------------------------------------------------------------------------------------------------ GOPs in their order

void Encoder::State::begin_finishing() {
  // A target looks at a GOP's size before the next is coded.
  if (params.has_byte_target() || params.psnr > 0 || coder->lends() == 0 || params.workers.run) return;
  try {
    finisher.emplace(*this, std::min(coder->lends(), std::max(2, pool.threads())));
  } catch (const std::system_error&) {  // the system starts no more threads
  }
}

// A backend with little memory keeps half of what it has.
int Encoder::State::lent() const { return finisher ? std::min(coder->lends(), coder->depth() / 2) : 0; }

int Encoder::State::in_backend() const { return std::max(0, coder->depth() - 1 - lent()); }

// What the backend has done already is divided and written beside what it still does.
bool Encoder::State::can_take_early() const {
  return finisher && !pending.empty() && finisher->unfinished() < static_cast<std::size_t>(lent()) && coder->is_ready();
}

void Encoder::State::drain(int in_flight) {
  while (static_cast<int>(pending.size()) > in_flight || can_take_early()) {
    if (finisher) {
      timed(&EncoderStages::wait, true, [&] { finisher->wait(static_cast<std::size_t>(std::max(0, lent() - 1))); });
      current = finisher->used();
    }
    {
      const trace::Span span("wait for the backend");
      bool more = false;
      code([&] { more = coder->pull(current.coded); });
      if (!more) return;
    }
    stats.seconds_transform = coder->seconds_transform();
    stats.seconds_coder = coder->seconds_coder();
    current.gop = std::move(pending.front());
    pending.erase(pending.begin());
    take_motion(current.coded, current.gop);
    if (current.coded.held && !finisher && !current.gop.samples) current.gop.samples = current.coded.held;
    if (!current.gop.passed_on) pass_on(current.gop);
    left_key = current.gop.motion && current.gop.motion->places.ends_with_key(header.temporal_levels);
    if (finisher) {
      finisher->hand_over(std::move(current));
    } else {
      divide_gop(current, &pool);
      write_gop(current);
    }
  }
  // The backend may have found less memory than it hoped for.
  const int left = std::max(0, coder->depth() - 1 - static_cast<int>(pending.size()));
  if (finisher)
    timed(&EncoderStages::wait, true,
          [&] { finisher->wait(static_cast<std::size_t>(std::min(coder->lends(), left))); });
  add_written();
}

Encoder::State::Finisher::Finisher(State& s, int threads)
    : divided_(static_cast<std::size_t>(threads)),
      work_(static_cast<std::size_t>(s.coder->lends())),
      done_(static_cast<std::size_t>(s.coder->lends()) + 1),
      judgements_(kMostJudgements) {
  // They end by themselves when the queues do; what could not be started is done by those that were.
  try {
    for (int i = 0; i < threads; ++i) workers_.emplace_back("layers and chunks").begin([this, &s] { divide(s); });
    workers_.emplace_back("write").begin([this, &s] { write(s); });
    if (s.header.profile != Profile::kDense) return;
    // With motion most GOPs are measured, in fewer windows than there are cores; without, about every fourth of a film.
    const int judges = std::clamp(s.pool.threads() / kThreadsOfJudge, 1, s.header.motion ? kMostJudges : 2);
    for (int i = 0; i < judges; ++i)
      workers_.emplace_back("errors").begin([this, &s, judges] { judge(s, std::max(1, s.pool.threads() / judges)); });
  } catch (...) {
    stop();
    throw;
  }
}

Encoder::State::Finisher::~Finisher() { stop(); }

void Encoder::State::Finisher::stop() {
  work_.stop();
  done_.stop();
  divided_.stop();
  judgements_.stop();
  workers_.clear();
}

void Encoder::State::Finisher::divide(State& s) {
  while (std::optional<Work> work = work_.pop()) {
    try {
      s.divide_gop(*work, nullptr);
    } catch (...) {
      work->error = std::current_exception();
    }
    const std::uint64_t number = work->number;
    if (!divided_.put(number, std::move(*work))) return;
  }
}

void Encoder::State::Finisher::write(State& s) try {
  for (std::uint64_t next = 0; std::optional<Work> work = divided_.take(next); ++next) {
    if (work->error) std::rethrow_exception(work->error);
    s.write_gop(*work);
    if (!done_.push(std::move(*work))) return;
  }
} catch (...) {
  work_.stop();
  divided_.stop();
  done_.close(std::current_exception());
}

void Encoder::State::Finisher::judge(State& s, int threads) try {
  ThreadPool with(threads, s.params.workers);
  while (std::optional<Judgement> judgement = judgements_.pop()) s.judge(*judgement, with);
} catch (...) {
  const std::lock_guard lock(misjudged_mutex_);
  misjudged_ = std::current_exception();
  judgements_.stop();
}

void Encoder::State::Finisher::check_judges() {
  const std::lock_guard lock(misjudged_mutex_);
  if (misjudged_) std::rethrow_exception(misjudged_);
}

void Encoder::State::Finisher::finish() {
  wait(0);
  judgements_.close();
  const trace::Span span("wait for errors");
  // All have nothing left to do, but for the errors.
  work_.stop();
  divided_.stop();
  workers_.clear();
  check_judges();
}

void Encoder::State::Finisher::hand_over(Work work) {
  work.number = handed_over_++;
  ++unfinished_;
  (void)work_.push(std::move(work));
}

void Encoder::State::Finisher::wait(std::size_t unfinished) {
  const trace::Span span("wait for layers");
  for (;;) {
    std::optional<Work> done = unfinished_ > unfinished ? done_.pop() : done_.try_pop();
    if (!done) return;
    --unfinished_;
    used_.push_back(std::move(*done));
  }
}

Encoder::State::Work Encoder::State::Finisher::used() {
  if (used_.empty()) return {};
  Work work = std::move(used_.back());
  used_.pop_back();
  return work;
}

}  // namespace trivelet
