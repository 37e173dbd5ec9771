// Encoder of codec.h: GOPs -> backend -> chunks -> packets; index and end.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "codec/base/gop_hash.h"
#include "codec/base/hash.h"
#include "codec/cpu/gop_lanes.h"
#include "codec/cpu/motion_gop.h"
#include "codec/encoder/encoder_params.h"
#include "codec/encoder/encoder_state.h"
#include "codec/format/metadata.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"
#include "codec/transform/frame_gains.h"

namespace trivelet {

Encoder::State::State(const VideoInfo& video, const EncoderParams& p, ByteSink& s, const Backend& b, bool parts)
    : params(resolve(video, p)),
      header(make_header(video, params)),
      sink(s),
      backend(b),
      of_parts(parts),
      pool(params.threads, params.workers),
      sample(header, params.simd),
      moving_sample(header, params.simd),
      measured(header.lossless),
      plan(header),
      fewer_layers(p.layers == 0),
      schedule(header, params),
      step(params.step) {
  if (params.psnr > 0) {
    const double peak = (1 << video.format.bits) - 1;
    target_error = peak * peak / std::pow(10.0, params.psnr / 10);
    // Where to begin; push_to_psnr() finds the step. Uniform errors of a step have step^2 / 12; the dead zone, and planes
    // that are left out behind it, allow a finer one.
    step = std::clamp(std::sqrt(5 * target_error), 0.05, 1e6);
  }
  if (params.has_byte_target())
    step = std::exp2(video.format.bits - 4);  // 16 of 8 bits: halved until it is fine enough
}

void Encoder::State::write(const void* data, std::size_t size) {
  timed(&EncoderStages::write, true, [&] { sink.write(data, size); });
  position += size;
  const std::lock_guard lock(written_mutex);
  written.stream_bytes += size;
}

void Encoder::State::write_box(const char* type, const std::vector<std::uint8_t>& payload) {
  std::uint8_t head[kBoxHeaderBytes];
  write_box_header(type, payload.size(), head);
  write(head, sizeof head);
  write(payload.data(), payload.size());
}

Encoder::State::Pending Encoder::State::accept(int gop_frames) {
  require(!finished, ErrorKind::kBadArgument, "push after finish");
  if (finisher) finisher->wait(static_cast<std::size_t>(coder->lends()));  // what went wrong there is told here
  require(
      gop_frames >= 1 && gop_frames <= header.gop_frames, ErrorKind::kBadArgument,
      "a GOP of " + std::to_string(gop_frames) + " frames; this stream's hold 1.." + std::to_string(header.gop_frames));
  Pending p;
  p.number = pushed++;
  p.first_frame = stats.frames;
  p.frames = gop_frames;
  p.step = static_cast<float>(step);
  stats.frames += static_cast<std::uint64_t>(gop_frames);
  stats.samples += header.samples(gop_frames);
  return p;
}

GopChoices Encoder::State::choices(const Pending& p) const {
  GopChoices c;
  c.step = static_cast<float>(step);
  c.frame_gains = gains(p.frames);
  c.motion = params.motion;
  c.key = p.wanted_key;
  c.key_if_closed = closed_key(p.frames);
  c.passes = params.has_byte_target() || params.psnr > 0;
  // Towards a target a plane more is coded than is sent, about (encoder_targets.cpp).
  if (rounds_by_cost(params)) c.rounding_step = c.passes ? 2 * c.step : c.step;
  return c;
}

void Encoder::State::take_motion(const CodedGop& coded, Pending& p) {
  p.motion = coded.motion;
  if (p.motion) p.frame_gains.clear();
}

// A GOP that is closed whatever stands before it has its key last where it may: others can follow then, and one that is
// longer has its key in the middle, with frames on both sides, instead of a second one at its beginning. Only with a frame
// more than whole pyramids it has both, so that others can follow, if it is not the whole stream: most clips of 3, 5, 9,
// 17 or 33 frames take 5 to 40 % fewer bytes with one key (tests/bench/RESULTS.md).
GopKey Encoder::State::next_key(int gop_frames, bool anew) const {
  if (!header.motion) return GopKey::kFirst;
  if (has_key && coder_has_key && !anew) return GopKey::kOpen;
  const bool may_be_last = gop_frames >= (1 << header.temporal_levels);
  const bool is_all = header.video.frames == static_cast<std::uint64_t>(gop_frames);
  const bool has_both = MotionPlaces(gop_frames, GopKey::kFirst).ends_with_key(header.temporal_levels) && !is_all;
  return may_be_last && !has_both ? GopKey::kLast : GopKey::kFirst;
}

// Of a GOP that was searched to be open: what was found for a closed one is found for whole pyramids.

GopKey Encoder::State::closed_key(int gop_frames) const {
  const bool whole = MotionPlaces(gop_frames, GopKey::kLast).ends_with_key(header.temporal_levels);
  return whole ? GopKey::kLast : GopKey::kFirst;
}

void Encoder::State::pass_on(const MotionPlaces* places) {
  coder_has_key = true;
  has_key = places && places->ends_with_key(header.temporal_levels);
}

std::uint64_t Encoder::State::Pending::motion_bytes() const {
  std::uint64_t bytes = 0;
  if (motion)
    for (const auto& section : motion->sections) bytes += section.size();
  return bytes;
}

std::vector<std::uint8_t> Encoder::State::gains(int gop_frames) const {
  if (header.lossless || !params.even_ends || header.layout != Layout::kT2d) return {};
  return even_frame_gains(gop_frames, header.temporal_levels, header.temporal);
}

int Encoder::State::layers_for(const RateControl& control, const Cuts& final, double lambda) const {
  return fewer_layers ? control.layers_worth(final, lambda) : header.layers;
}

namespace {

/// The predictive profile and rounding along motion are the CPU's, whatever other backend there is.
const Backend& backend_for(const EncoderParams& params, const Backend* backend) {
  const bool needs_cpu = params.profile == Profile::kPredictive || rounds_along_motion(params);
  const bool fits = backend && (!needs_cpu || std::strcmp(backend->name, cpu_backend().name) == 0);
  return fits ? *backend : cpu_backend();
}

}  // namespace

Encoder::Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend)
    : Encoder(info, params, sink, backend, false) {}

Encoder::Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend,
                 bool of_parts)
    : state_(std::make_unique<State>(info, params, sink, backend_for(params, backend), of_parts)) {
  State& s = *state_;
  const std::vector<std::uint8_t> head = serialise(s.header);
  (void)parse_stream_header(head.data(), head.size());  // what a decoder would refuse is refused here
  BackendOptions options{s.params.threads, s.params.simd, s.params.effort, s.params.workers, tells_ahead(s.params)};
  const bool measures = s.header.profile == Profile::kDense && s.params.measure_errors;
  options.keeps_samples = of_parts && measures && !s.header.motion;
  const bool has_target = s.params.has_byte_target() || s.params.psnr > 0;  // a GOP may be coded again
  const auto of_gop = static_cast<std::uint64_t>(s.header.gop_frames);
  if (!has_target)
    options.lanes =
        lanes_for(s.header, options, encoding_memory(s.header), info.frames / of_gop + (info.frames % of_gop > 0));
  s.coder = s.backend.make_encoder(s.header, options);
  s.begin_finishing();
  if (s.params.has_byte_target()) s.spool = std::make_unique<Spool>(s.params.spool_path);
  s.write(kSignature, sizeof kSignature);
  s.write_box("Head", head);
  std::vector<ExtraBox> boxes = metadata_boxes(s.params.metadata);
  boxes.insert(boxes.end(), s.params.boxes.begin(), s.params.boxes.end());
  for (auto box = boxes.begin(); box != boxes.end(); ++box)
    require(!is_known_extra_box(box->type) ||
                std::none_of(boxes.begin(), box, [&](const ExtraBox& before) { return before.type == box->type; }),
            ErrorKind::kBadArgument, "two boxes '" + box->type + "'; a stream has one");
  for (const ExtraBox& box : boxes) {
    require(box.type.size() == 4 && !is_stream_box(box.type) && box.type != "part" &&
                box.payload.size() <= kMaxExtraBytes - kBoxCrcBytes,
            ErrorKind::kBadArgument,
            "an extra box '" + box.type + "' of " + std::to_string(box.payload.size()) + " bytes");
    const BoxEnds ends = box_around(box.type.c_str(), box.payload);
    s.write(ends.header, sizeof ends.header);
    s.write(box.payload.data(), box.payload.size());
    s.write(ends.crc, sizeof ends.crc);
  }
  s.add_written();  // stats() counts the head from the beginning
}

Encoder::~Encoder() = default;

int Encoder::gop_frames() const { return state_->header.gop_frames; }

Gop Encoder::make_gop() const { return Gop(state_->header.video, state_->header.gop_frames, state_->backend.allocate); }

void Encoder::push(std::span<const FrameView> frames) {
  require(!frames.empty(), ErrorKind::kBadArgument, "a GOP of 0 frames");
  push(Gop(state_->header.video, frames));
}

void Encoder::push(const Gop& gop) {
  State::Pending p = state_->accept(gop.frames());
  const KeySchedule::Begins begins = state_->schedule.next(gop.frames(), gop.begins_scene());
  p.anew = begins.anew;
  p.run = begins.run;
  state_->push(gop, std::move(p));
}

void Encoder::State::push(const Gop& gop, Pending p) {
  // Samples may be on their way to a device while earlier GOPs are written, but not any longer.
  struct Reading {
    const State& state;
    ~Reading() {
      if (state.of_parts && state.finisher) return;  // PartEncoder waits, before the next one
      const trace::Span span("wait for samples");
      state.timed(&EncoderStages::wait, true, [this] { state.coder->wait_for_samples(); });
    }
  } const reading{*this};
  require(gop.components() == header.video.format.components(), ErrorKind::kBadArgument,
          "a GOP of " + std::to_string(gop.components()) + " components in a stream of " +
              std::to_string(header.video.format.components()));
  for (int c = 0; c < gop.components(); ++c)
    require(gop.plane(c).shape == header.component_shape(c, gop.frames()) &&
                gop.plane(c).bytes_per_sample == header.video.format.bytes_per_sample(),
            ErrorKind::kBadArgument,
            "component " + std::to_string(c) + " of the GOP has another size than the stream's");
  begin_run(p);
  make_spare_samples();
  p.step = static_cast<float>(step);
  p.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
  p.frame_gains = gains(p.frames);
  p.wanted_key = next_key(p.frames, p.anew);
  p.has_hash = header.lossless;
  p.measures = (header.profile == Profile::kDense && params.measure_errors) || params.psnr > 0 || spool;
  timed(&EncoderStages::hash, !header.lossless, [&] {
    if (!header.lossless) return check_samples(gop, header.video.format.bits);
    const ScopeTimer timer(stats.seconds_container);
    pool.parallel_for(2, [&](int i, int) {
      if (i == 0)
        p.hash = hash_samples(gop);
      else
        check_samples(gop, header.video.format.bits);
    });
  });
  if (params.psnr > 0) return push_to_psnr(gop, std::move(p));
  if (spool) return push_to_spool(gop, std::move(p));
  const GopChoices chosen = choices(p);
  p.rounding_step = chosen.rounding_step;
  {
    const trace::Span span("submit");
    code([&] { coder->push(gop, chosen); });
  }
  if (tells_ahead(params)) {  // as if it moved
    const MotionPlaces places(p.frames, p.wanted_key);
    pass_on(may_move(header, p.frames, chosen) ? &places : nullptr);
    p.passed_on = true;
  }
  if (coder->depth() == 1) p.samples = &gop;  // else the backend has them still
  pending.push_back(std::move(p));
  drain(in_backend());
}

void Encoder::push_coefficients(CoefficientGop& coefficients) {
  State& s = *state_;
  require(!s.header.lossless, ErrorKind::kUnsupported,
          "coefficients can be pushed into lossy streams only: a lossless one carries the hash of its samples");
  require(!s.spool && s.params.psnr == 0, ErrorKind::kUnsupported,
          "coefficients can be pushed at constant quality only, not towards a target");
  State::Pending p = s.accept(coefficients.frames);
  p.times = coefficients.times;
  p.times.resize(static_cast<std::size_t>(p.frames));
  p.frame_gains = coefficients.frame_gains;
  require(!coefficients.motion || s.header.motion, ErrorKind::kBadArgument,
          "coefficients along a motion in a stream without: encode with EncoderParams::motion");
  require(!coefficients.motion || coefficients.motion->places.key != GopKey::kOpen || s.left_key,
          ErrorKind::kBadArgument, "coefficients of a GOP that leans on the one before, which was not pushed");
  p.anew = s.schedule.next(p.frames, !coefficients.motion || coefficients.motion->places.key != GopKey::kOpen).anew;
  s.code([&] { s.coder->push(coefficients, s.choices(p)); });
  s.pending.push_back(std::move(p));
  s.drain(s.in_backend());
  s.coder_has_key = false;
}

CoefficientGop Encoder::transform(const Gop& gop) {
  State& s = *state_;
  CoefficientGop out;
  State::Pending p;
  p.frames = gop.frames();
  p.wanted_key = s.next_key(p.frames, true);  // of this GOP alone
  s.coder->transform(gop, s.choices(p), out);
  if (s.header.lossless) return out;
  for (SubbandView& v : out.subbands) {
    const ComponentHeader& c = s.header.components[static_cast<std::size_t>(v.component)];
    const int resolution = v.orientation == 0 ? 0 : c.spatial_levels - v.level + 1;
    v.step = subband_step(c, static_cast<float>(s.step), v.norm, resolution);
  }
  return out;
}

void Encoder::finish() {
  State& s = *state_;
  require(!s.finished, ErrorKind::kBadArgument, "finish called twice");
  s.drain(0);
  if (s.finisher) s.finisher->finish();
  s.write_judged();
  if (s.spool) s.write_spooled();
  s.finished = true;
  StreamEnd end;
  end.frames = s.frames;
  end.index_offset = s.position;
  s.write_box("Indx", serialise_index(s.index));
  s.write_box("Done", serialise(end));
  s.add_written();
}

const CodecStats& Encoder::stats() const { return state_->stats; }
const EncoderParams& Encoder::params() const { return state_->params; }

}  // namespace trivelet
