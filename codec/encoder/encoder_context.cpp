// Construction of the context, choices for a GOP, and the sums of times (encoder_context.h).
#include "codec/encoder/encoder_context.h"

#include <cstring>
#include <optional>

#include "codec/cpu/gop_lanes.h"
#include "codec/cpu/motion_gop.h"
#include "codec/encoder/encoder_params.h"
#include "codec/encoder/key_plan.h"
#include "codec/format/container.h"
#include "codec/motion/level_choice.h"
#include "codec/threads/trace.h"
#include "codec/transform/frame_gains.h"

namespace trivelet {

namespace {

/// What exists on the CPU alone overrides the given backend.
const Backend& backend_for(const EncoderParams& params, const Backend* backend) {
  const bool fits = backend && (!needs_cpu(params) || std::strcmp(backend->name, cpu_backend().name) == 0);
  return fits ? *backend : cpu_backend();
}

}  // namespace

EncoderContext::EncoderContext(const VideoInfo& video, const CodingParams& asked, const Backend* given,
                               bool keeps_samples)
    : params(resolve(video, asked)),
      header(make_header(video, params)),
      fewer_layers(asked.layers == 0),
      backend(backend_for(asked, given)),
      pool(params.threads, params.workers) {
  const std::vector<std::uint8_t> head = serialise(header);
  (void)parse_stream_header(head.data(), head.size());  // an encoder refuses what a decoder would
  BackendOptions options{params.threads, params.simd, params.effort, params.workers};
  options.keys_in_place = params.key_prediction == KeyPrediction::kAuto;
  options.lookahead = uses_lookahead(params);
  options.keeps_samples = keeps_samples && measures() && !header.motion;
  const auto gop_frames = static_cast<std::uint64_t>(header.gop_frames);
  const std::uint64_t gops = video.frames / gop_frames + (video.frames % gop_frames > 0);
  if (!has_target()) options.lanes = lanes_for(header, options, encoding_memory(header), gops);  // each is coded once
  coder = backend.make_encoder(header, options);
}

std::vector<std::uint8_t> EncoderContext::gains(int gop_frames) const {
  if (header.lossless || params.is_volume || header.layout != Layout::kT2d) return {};
  return even_frame_gains(gop_frames, header.temporal_levels, header.temporal);
}

GopChoices EncoderContext::choices(const PendingGop& p, double step) const {
  GopChoices c;
  c.step = static_cast<float>(step);
  if (header.motion && !has_target()) c.still_step = static_cast<float>(params.still_step);
  c.frame_gains = gains(p.frames);
  c.motion = params.motion == Motion::kAuto && p.moves ? Motion::kOn : params.motion;
  c.key = p.wanted_key;
  c.levels = p.levels;
  c.key_if_closed = KeyPlan::closed(p.frames, p.levels);
  c.by_plane = cuts_by_plane();
  c.passes = !c.by_plane && (has_target() || (limits_bytes() && header.profile == Profile::kFast));
  // With a target about one plane more is coded than is sent (target_search.cpp).
  if (rounds_by_cost(params)) c.rounding_step = has_target() ? 2 * c.step : c.step;
  return c;
}

void EncoderContext::look_at_motion(const Gop& gop, PendingGop& p) {
  p.levels = header.temporal_levels;
  if (!header.levels_by_gop && params.motion != Motion::kAuto) return;
  const trace::Span span("choose levels");
  const LevelChoice choice = timed(&EncoderStages::transform, false, [&] {
    if (const std::optional<LevelChoice> made = coder->choose_levels(gop, header.temporal_levels)) return *made;
    return choose_levels(gop, header.video.format.bits, header.temporal_levels, pool, params.simd);
  });
  if (header.levels_by_gop) p.levels = choice.levels;
  p.moves = choice.moves;
}

EncoderStages EncoderContext::stages() const {
  const std::lock_guard lock(mutex_);
  return stages_;
}

void EncoderContext::add_coded(const StageTime& transform_before, double busy_coder_before,
                               const StageTime& all) const {
  if (!coder->pool()) {
    if (!coder->has_lanes()) return add_time(&EncoderStages::wait, all);
    const auto [transform, code_blocks] = shared_out(all.seconds, coder->busy_transform() - transform_before.busy,
                                                     coder->busy_coder() - busy_coder_before);
    add_time(&EncoderStages::transform, transform);
    return add_time(&EncoderStages::coder, code_blocks);
  }
  const StageTime transform{coder->seconds_transform() - transform_before.seconds,
                            coder->busy_transform() - transform_before.busy};
  add_time(&EncoderStages::transform, transform);
  add_time(&EncoderStages::coder, {all.seconds - transform.seconds, all.busy - transform.busy});
}

void EncoderContext::add_time(StageTime EncoderStages::*stage, const StageTime& time) const {
  const std::lock_guard lock(mutex_);
  (stages_.*stage).seconds += time.seconds;
  (stages_.*stage).busy += time.busy;
}

// Of the pools that the calling thread uses.
ThreadPool::Times EncoderContext::pool_times() const {
  const ThreadPool::Times own = pool.times();
  if (!coder->pool()) return own;
  const ThreadPool::Times backends = coder->pool()->times();
  return {own.seconds + backends.seconds, own.busy + backends.busy};
}

}  // namespace trivelet
