// Flow of GOPs from push() through backend, target search and output stage to the stream (encoder_core.h).
#include "codec/encoder/encoder_core.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "codec/base/gop_hash.h"
#include "codec/base/limits.h"
#include "codec/cpu/motion_gop.h"
#include "codec/encoder/encoder_params.h"
#include "codec/threads/trace.h"

namespace trivelet {

EncoderCore::EncoderCore(const VideoInfo& info, const CodingParams& params, ByteSink& sink, const Backend* backend,
                         EncoderObserver* observer)
    : context_(info, params, backend, observer != nullptr),
      observer_(observer),
      writer_(context_, sink),
      keys_(context_.header, context_.params),
      measurer_(context_, observer),
      search_(context_, measurer_, keys_) {
  require(!observer || context_.params.max_rate == 0, ErrorKind::kUnsupported,
          "a bound on the rate needs the GOPs in order, but several encoders share this stream");
  start_threads();
  if (context_.params.has_byte_target()) spooled_.emplace(context_, writer_, context_.params.spool_path);
  writer_.write_head();
  update_stats();  // stats() includes the header from the start
}

// The measuring threads stop first, because the writing thread may wait for them.
EncoderCore::~EncoderCore() { measurer_.stop_threads(); }

// ------------------------------------------------------------------------------------------------------------- threads

void EncoderCore::start_threads() {
  // With a target the size of a GOP must be known before the next is coded.
  if (context_.has_target() || context_.coder->outstanding() == 0 || context_.params.workers.run) return;
  try {
    measurer_.start_threads();
    output_.emplace(
        std::min(context_.coder->outstanding(), std::max(2, context_.pool.threads())), context_.coder->outstanding(),
        [this](GopWork& work) { divide_gop(context_, work, nullptr); }, [this](GopWork& work) { write(work); });
  } catch (const std::system_error&) {  // the system starts no more threads
    measurer_.stop_threads();
  }
}

// Number of GOPs, out of the backend's depth, that may be in the output stage. With little memory the backend keeps
// half.
int EncoderCore::outstanding() const {
  return output_ ? std::min(context_.coder->outstanding(), context_.coder->depth() / 2) : 0;
}

// Number of GOPs that may stay in the backend when another one is pushed.
int EncoderCore::in_backend() const { return std::max(0, context_.coder->depth() - 1 - outstanding()); }

// True if a GOP that the backend has finished can be divided and written while it codes others.
bool EncoderCore::can_take_early() const {
  return output_ && !pending_.empty() && output_->unfinished() < static_cast<std::size_t>(outstanding()) &&
         context_.coder->is_ready();
}

// ---------------------------------------------------------------------------------------------------------------- push

PendingGop EncoderCore::accept(int gop_frames) {
  const StreamHeader& header = context_.header;
  require(!finished_, ErrorKind::kBadArgument, "push after finish");
  // Errors of its threads are thrown here.
  if (output_) output_->wait(static_cast<std::size_t>(context_.coder->outstanding()));
  require(gop_frames >= 1 && gop_frames <= header.gop_frames, ErrorKind::kBadArgument,
          "a GOP of " + count_of(gop_frames, "frame") + "; this stream's hold 1.." + std::to_string(header.gop_frames));
  PendingGop p;
  p.number = pushed_++;
  p.first_frame = stats_.frames;
  p.frames = gop_frames;
  p.step = static_cast<float>(search_.step());
  stats_.frames += static_cast<std::uint64_t>(gop_frames);
  stats_.samples += header.samples(gop_frames);
  return p;
}

void EncoderCore::check(const Gop& gop) const {
  const StreamHeader& header = context_.header;
  require(gop.components() == header.video.format.components(), ErrorKind::kBadArgument,
          "a GOP of " + count_of(gop.components(), "component") + " in a stream of " +
              std::to_string(header.video.format.components()));
  for (int c = 0; c < gop.components(); ++c)
    require(gop.plane(c).shape == header.component_shape(c, gop.frames()) &&
                gop.plane(c).bytes_per_sample == header.video.format.bytes_per_sample(),
            ErrorKind::kBadArgument,
            "component " + std::to_string(c) + " of the GOP has another size than the stream's");
}

void EncoderCore::prepare(const Gop& gop, PendingGop& p) {
  check(gop);
  search_.begin_run(p);
  measurer_.make_spare_samples();
  p.step = static_cast<float>(search_.step());
  p.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
  p.frame_gains = context_.gains(p.frames);
  if (context_.header.motion) context_.look_at_motion(gop, p);
  p.wanted_key = keys_.next(p.frames, p.must_close, p.levels);
  p.has_hash = context_.header.lossless;
  p.measures = context_.measures() || (context_.has_target() && !context_.cuts_by_plane());
  hash(gop, p);
}

void EncoderCore::hash(const Gop& gop, PendingGop& p) {
  if (context_.backend.hash) return;  // pull() asks for it
  const int bits = context_.header.video.format.bits;
  context_.timed(&EncoderStages::hash, !p.has_hash, [&] {
    if (!p.has_hash) return check_samples(gop, bits);
    context_.pool.parallel_for(2, [&](int i, int) {
      if (i == 0)
        p.hash = hash_samples(gop);
      else
        check_samples(gop, bits);
    });
  });
}

void EncoderCore::push(const Gop& gop, PendingGop p) {
  // Waits at the end of push() for the upload of samples, which overlaps the writing of earlier GOPs.
  struct Reading {
    const EncoderCore& core;
    ~Reading() {
      if (core.observer_ && core.output_) return;  // the observer waits before the next push
      const trace::Span span("wait for samples");
      core.context_.timed(&EncoderStages::wait, true, [this] { core.context_.coder->wait_for_samples(); });
    }
  } const reading{*this};
  prepare(gop, p);
  if (context_.params.psnr > 0) return push_to_psnr(gop, std::move(p));
  if (spooled_) return push_to_bytes(gop, std::move(p));
  push_at_step(gop, std::move(p));
}

void EncoderCore::push_to_psnr(const Gop& gop, PendingGop p) {
  TargetSearch::Coded coded = search_.code_to_psnr(gop, p);
  LayeredGop divided;
  divided.frames = p.frames;
  context_.timed(&EncoderStages::pack, false, [&] { coded.control.divide(coded.layers, divided); });
  writer_.write_divided(
      p, divided, layer_errors(predicted_errors(context_.header, coded.control, coded.layers), measurer_.measured()));
  tell_observer(p);
}

void EncoderCore::push_to_bytes(const Gop& gop, PendingGop p) {
  TargetSearch::Coded coded = search_.code_to_bytes(gop, p);
  spooled_->add(p, coded.control, coded.curve, measurer_.measured());
  update_stats();
}

void EncoderCore::push_at_step(const Gop& gop, PendingGop p) {
  const GopChoices chosen = context_.choices(p, search_.step());
  p.rounding_step = chosen.rounding_step;
  p.still_step = chosen.still_step;
  {
    const trace::Span span("submit");
    context_.code([&] { context_.coder->push(gop, chosen); });
  }
  if (uses_lookahead(context_.params)) {  // planned as if the GOP had motion
    const MotionPlaces places(p.frames, p.wanted_key, p.levels);
    keys_.coded(may_move(context_.header, p.frames, chosen) ? &places : nullptr);
    p.key_is_planned = true;
  }
  if (context_.coder->depth() == 1) p.samples = &gop;  // else the backend has the samples
  pending_.push_back(std::move(p));
  drain(in_backend());
}

void EncoderCore::push(CoefficientGop& coefficients) {
  const StreamHeader& header = context_.header;
  require(!header.lossless, ErrorKind::kUnsupported,
          "coefficients can be pushed into lossy streams only: a lossless one carries the hash of its samples");
  require(!context_.has_target(), ErrorKind::kUnsupported,
          "coefficients can be pushed at constant quality only, not towards a target");
  PendingGop p = accept(coefficients.frames);
  p.times = coefficients.times;
  p.times.resize(static_cast<std::size_t>(p.frames));
  p.frame_gains = coefficients.frame_gains;
  require(
      !coefficients.motion || !coefficients.motion->predicts_keys, ErrorKind::kUnsupported,
      "coefficients of predicted key frames belong to the decoded ones before them, which other steps would change; "
      "encode with KeyPrediction::kOff");
  require(!coefficients.motion || header.motion, ErrorKind::kBadArgument,
          "coefficients along a motion in a stream without: encode with EncoderParams::motion");
  const int levels = coefficients.motion ? coefficients.motion->places.levels : header.temporal_levels;
  require(levels == header.temporal_levels || (header.levels_by_gop && levels < header.temporal_levels),
          ErrorKind::kBadArgument,
          "coefficients of " + std::to_string(levels) + " temporal levels; this stream's have " +
              std::to_string(header.temporal_levels));
  p.levels = levels;
  const bool open = coefficients.motion && coefficients.motion->places.key == GopKey::kOpen;
  require(!open || keys_.drained_key(), ErrorKind::kBadArgument,
          "coefficients of a GOP that depends on the one before, which was not pushed");
  p.must_close = keys_.start_next(p.frames, !open).must_close;
  const GopChoices chosen = context_.choices(p, search_.step());
  p.still_step = chosen.still_step;
  context_.code([&] { context_.coder->push(coefficients, chosen); });
  pending_.push_back(std::move(p));
  drain(in_backend());
  keys_.coefficients_pushed();
}

CoefficientGop EncoderCore::transform(const Gop& gop) {
  CoefficientGop out;
  PendingGop p;
  p.frames = gop.frames();
  if (context_.header.motion) context_.look_at_motion(gop, p);
  p.wanted_key = keys_.next(p.frames, true, p.levels);  // of this GOP alone
  GopChoices chosen = context_.choices(p, search_.step());
  context_.coder->transform(gop, chosen, out);
  if (context_.header.lossless) return out;
  if (!out.motion) chosen = chosen.without_motion();
  for (SubbandView& v : out.subbands) {
    const ComponentHeader& c = context_.header.components[static_cast<std::size_t>(v.component)];
    const int resolution = v.orientation == 0 ? 0 : c.spatial_levels - v.level + 1;
    v.step = subband_step(c, chosen.step, v.norm, resolution);
  }
  return out;
}

// --------------------------------------------------------------------------------------------------------------- write

// Pulls the next GOP of the backend into current_; false if there is none.
bool EncoderCore::pull() {
  bool more = false;
  {
    const trace::Span span("wait for the backend");
    context_.code([&] { more = context_.coder->pull(current_.coded); });
  }
  if (!more) return false;
  current_.gop = std::move(pending_.front());
  pending_.erase(pending_.begin());
  PendingGop& p = current_.gop;
  if (p.has_hash && context_.backend.hash) p.hash = context_.backend.hash(p.number);
  p.take_motion(current_.coded);
  if (current_.coded.held && !output_ && !p.samples) p.samples = current_.coded.held;
  if (!p.key_is_planned) keys_.coded(p.places());
  keys_.drained(p.places());
  return true;
}

void EncoderCore::drain(int in_flight) {
  while (static_cast<int>(pending_.size()) > in_flight || can_take_early()) {
    if (output_) {
      context_.timed(&EncoderStages::wait, true,
                     [&] { output_->wait(static_cast<std::size_t>(std::max(0, outstanding() - 1))); });
      current_ = output_->used();
    }
    if (!pull()) return;
    if (output_) {
      output_->hand_over(std::move(current_));
    } else {
      divide_gop(context_, current_, &context_.pool);
      write(current_);
    }
  }
  // The backend may have less memory than it planned for.
  const int left = std::max(0, context_.coder->depth() - 1 - static_cast<int>(pending_.size()));
  if (output_)
    context_.timed(&EncoderStages::wait, true,
                   [&] { output_->wait(static_cast<std::size_t>(std::min(context_.coder->outstanding(), left))); });
  update_stats();
}

void EncoderCore::write(GopWork& work) {
  const trace::Span span("write");
  cut_gop(context_, writer_.bytes_allowed(work.gop), work, output_ ? nullptr : &context_.pool);
  writer_.write_packet(work.gop, work.layers, work.chunks, {});
  if (context_.header.profile != Profile::kDense) {
    work.coded.samples = nullptr;
    if (observer_) observer_->gop_written({work.gop.number, work.gop.must_close, writer_.take_entry(), {}, {}, {}});
    return;
  }
  bool later = false;
  MeasureTask task = measurer_.task_for(work, later);
  if (observer_) {
    WrittenGop written{task.gop.number, task.gop.must_close, writer_.take_entry(), task.predicted, task.layers, {}};
    if (later) written.undecided = std::move(task);
    const bool measured = !written.measured_at.empty();
    observer_->gop_written(std::move(written));
    if (!measured) return;
  }
  measurer_.begin(std::move(task));
}

void EncoderCore::tell_observer(const PendingGop& p) {
  update_stats();
  if (observer_) observer_->gop_written({p.number, p.must_close, writer_.take_entry(), {}, {}, {}});
}

void EncoderCore::write_spooled(std::size_t n, std::uint64_t bytes, double slope) {
  spooled_->rewind();
  spooled_->write(n, bytes, slope);
  tell_observer(spooled_->gop(n));
}

void EncoderCore::flush() {
  drain(0);
  if (output_) output_->wait(0);
}

void EncoderCore::finish() {
  require(!finished_, ErrorKind::kBadArgument, "finish called twice");
  drain(0);
  if (output_) {
    output_->finish();
    measurer_.finish();
  }
  measurer_.write_errors(writer_.index());
  if (spooled_) spooled_->write_all();
  finished_ = true;
  writer_.write_end();
  update_stats();
}

void EncoderCore::update_stats() {
  const PacketWriter::Counts counts = writer_.counts();
  stats_.gops = counts.gops;
  stats_.stream_bytes = counts.bytes;
  stats_.stages = context_.stages();
}

}  // namespace trivelet
