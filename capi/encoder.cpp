// tvl_encoder of trivelet.h: video by frames; volumes in capi/volume.cpp.
#include "capi/encoder.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "capi/metadata.h"
#include "capi/video.h"

namespace trivelet::capi {

namespace {

tvl_encode_params default_encode_params() {
  const EncoderParams d;
  tvl_encode_params p{};
  p.struct_size = sizeof p;
  p.profile = static_cast<std::int32_t>(d.profile);
  p.quality = d.quality;
  p.gop_frames = d.gop_frames;
  p.temporal_levels = d.temporal_levels;
  p.motion = static_cast<std::int32_t>(d.motion);
  p.key_prediction = static_cast<std::int32_t>(d.key_prediction);
  p.spatial_levels = d.spatial_levels;
  p.rate_window = d.rate_window;
  p.temporal_wavelet = static_cast<std::int32_t>(d.temporal);
  p.spatial_wavelet = static_cast<std::int32_t>(d.spatial);
  p.reserved_layout = TVL_T2D;
  p.reserved_staged = 1;
  p.block_size = d.block_size;
  p.layers = d.layers;
  p.reserved_even_ends = 1;
  p.measure_errors = d.measure_errors;
  p.device = TVL_CPU;
  return p;
}

// Programs that were compiled with an earlier header may ask for what is no longer written.
void check_reserved(const char* name, std::int32_t value, std::int32_t only) {
  require(value == only, ErrorKind::kUnsupported,
          std::string(name) + " is " + std::to_string(value) + "; only " + std::to_string(only) +
              " is written, as tvl_encode_params_init sets it");
}

EncoderParams to_params(const tvl_encode_params& p) {
  check_reserved("layout", p.reserved_layout, TVL_T2D);
  check_reserved("staged", p.reserved_staged, 1);
  check_reserved("even_ends", p.reserved_even_ends, 1);
  EncoderParams out;
  out.lossless = p.lossless != 0;
  if (!out.lossless) {
    out.quality = p.quality;
    out.step = p.step;
    out.target_bytes = p.target_bytes;
    out.bits_per_pixel = p.bits_per_pixel;
    out.bit_rate = p.bit_rate;
    out.psnr = p.psnr;
    out.max_rate = p.max_rate;
    out.rate_window = p.rate_window;
  }
  out.gop_frames = p.gop_frames;
  out.temporal_levels = p.temporal_levels;
  out.spatial_levels = p.spatial_levels;
  out.temporal = to_enum<Wavelet>(p.temporal_wavelet, TVL_REV137, "temporal_wavelet");
  out.spatial = to_enum<Wavelet>(p.spatial_wavelet, TVL_REV137, "spatial_wavelet");
  out.motion = to_enum<Motion>(p.motion, TVL_MOTION_DEFAULT, "motion");
  out.key_prediction = to_enum<KeyPrediction>(p.key_prediction, TVL_KEY_PREDICTION_AUTO, "key_prediction");
  out.profile = to_enum<Profile>(p.profile, TVL_PROFILE_PREDICTIVE, "profile");
  out.block_size = p.block_size;
  out.layers = p.layers;
  out.visual = p.visual != 0;
  out.part_checks = p.part_checks != 0;
  out.measure_errors = p.measure_errors != 0;
  out.threads = p.threads;
  if (p.settings) out.settings = p.settings;
  if (p.spool_path) out.spool_path = p.spool_path;
  require(p.key_interval >= 0 && p.key_interval <= 1000000, ErrorKind::kBadArgument,
          "key_interval is " + std::to_string(p.key_interval) + "; must be 0..1000000 frames");
  out.key_interval = static_cast<int>(p.key_interval);
  out.metadata = to_metadata(p.metadata);
  return out;
}

// A GOP of the caller's frames, or of those that wait.
void push_waiting(tvl_encoder& e) {
  if (!e.waiting || e.waiting->frames() == 0) return;
  e.check_cancelled();
  e.encoder->push(*e.waiting);
  e.waiting->set_frames(0);
}

// `all`: nothing will follow, so that the last frames need not wait.
void write_frames(tvl_encoder& e, std::span<const tvl_frame> frames, bool all) {
  const CallerMemory memory(e);
  const auto length = static_cast<std::size_t>(e.encoder->gop_frames());
  while (!frames.empty()) {
    const bool waits = e.waiting && e.waiting->frames() > 0;
    const std::span<const tvl_frame> gop = frames.first(std::min(length, frames.size()));
    if (!memory.on_device() && !waits && (gop.size() == length || all) && can_borrow(e.info, gop)) {
      e.check_cancelled();
      e.encoder->push(views_of(e.info, gop));
      frames = frames.subspan(gop.size());
      continue;
    }
    if (!e.waiting) e.waiting.emplace(e.encoder->make_gop());
    const int at = e.waiting->frames();
    e.waiting->set_frames(at + 1);
    copy_in(e.info, frames[0], *e.waiting, at, memory);
    frames = frames.subspan(1);
    if (frames.empty() || static_cast<std::size_t>(at) + 1 == length) memory.wait();
    if (static_cast<std::size_t>(at) + 1 == length) push_waiting(e);
  }
  if (all) push_waiting(e);
}

void finish(tvl_encoder& e) {
  push_waiting(e);
  e.encoder->finish();
  const CodecStats& s = e.encoder->stats();
  e.done = {sizeof e.done, s.gops, s.frames, s.stream_bytes};
  e.encoder.reset();
  e.output->commit();
  e.has_stream = true;
}

void begin(tvl_encoder& e, const tvl_video* video, const tvl_encode_params* given, std::unique_ptr<Output> output) {
  const tvl_encode_params p = read_struct(given, default_encode_params(), "tvl_encode_params");
  e.info = to_info(video);
  e.backend = backend_for(p.device, p.device_memory);
  e.output = std::move(output);
  EncoderParams params = to_params(p);
  params.workers = e.workers();
  e.encoder = std::make_unique<Encoder>(e.info, params, *e.output, e.backend.get());
}

void check_open(const tvl_encoder& e) {
  require(e.encoder != nullptr, ErrorKind::kBadArgument, "no stream is open; call tvl_encoder_open");
}

// Frames whose planes are said before anything is coded, so that a bad argument loses no stream.
std::span<const tvl_frame> checked(const tvl_encoder& e, const tvl_frame* frames, std::uint64_t count) {
  check_open(e);
  if (count == 0) return {};
  const std::span<const tvl_frame> all(not_null(frames, "frames"), static_cast<std::size_t>(count));
  for (const tvl_frame& frame : all) (void)explicit_strides(e.info, frame);
  return all;
}

}  // namespace

}  // namespace trivelet::capi

using namespace trivelet;
using namespace trivelet::capi;

void tvl_encoder::close() {
  encoder.reset();
  waiting.reset();
  output.reset();
  backend.reset();
}

extern "C" {

void tvl_encode_params_init(tvl_encode_params* params, uint64_t struct_size) {
  init_struct(params, struct_size, default_encode_params());
}

void tvl_encode_stats_init(tvl_encode_stats* stats, uint64_t struct_size) {
  init_struct(stats, struct_size, tvl_encode_stats{});
}

void tvl_sink_init(tvl_sink* sink, uint64_t struct_size) { init_struct(sink, struct_size, default_sink()); }

tvl_encoder* tvl_encoder_new(void) { return new (std::nothrow) tvl_encoder; }

void tvl_encoder_free(tvl_encoder* encoder) { delete encoder; }

const char* tvl_encoder_error(const tvl_encoder* encoder) { return encoder ? encoder->error : "the encoder is NULL"; }

void tvl_encoder_set_log(tvl_encoder* encoder, tvl_log log, void* user) {
  if (!encoder) return;
  encoder->log = log;
  encoder->log_user = user;
}

void tvl_encoder_set_runner(tvl_encoder* encoder, tvl_runner run, void* user) {
  if (!encoder) return;
  encoder->runner = run;
  encoder->runner_user = user;
}

void tvl_encoder_cancel(tvl_encoder* encoder) {
  if (encoder) encoder->cancelled.store(true, std::memory_order_relaxed);
}

tvl_result tvl_encoder_set_memory(tvl_encoder* encoder, int32_t device, void* cuda_stream) {
  return call(encoder, [&] { set_memory(*encoder, device, cuda_stream); });
}

tvl_result tvl_encoder_open(tvl_encoder* encoder, const tvl_video* video, const tvl_encode_params* params,
                            const tvl_sink* sink) {
  return call_or_close(
      encoder, [] {},
      [&] {
        encoder->reset();
        begin(*encoder, video, params, open_output(*encoder, sink, encoder->kept));
      });
}

int32_t tvl_encoder_gop_frames(const tvl_encoder* encoder) {
  return encoder && encoder->encoder ? encoder->encoder->gop_frames() : 0;
}

tvl_result tvl_encoder_write(tvl_encoder* encoder, const tvl_frame* frames, uint64_t count) {
  std::span<const tvl_frame> all;
  return call_or_close(
      encoder, [&] { all = checked(*encoder, frames, count); }, [&] { write_frames(*encoder, all, false); });
}

tvl_result tvl_encoder_end_gop(tvl_encoder* encoder) {
  return call_or_close(
      encoder, [&] { check_open(*encoder); }, [&] { push_waiting(*encoder); });
}

tvl_result tvl_encoder_finish(tvl_encoder* encoder) {
  return call_or_close(
      encoder, [&] { check_open(*encoder); },
      [&] {
        finish(*encoder);
        encoder->close();
      });
}

tvl_result tvl_encoder_stream(tvl_encoder* encoder, const void** data, uint64_t* size) {
  return call(encoder, [&] {
    require(encoder->has_stream, ErrorKind::kBadArgument, "no stream was finished");
    *not_null(data, "data") = encoder->kept.data();
    *not_null(size, "size") = encoder->kept.size();
  });
}

tvl_result tvl_encoder_stats(tvl_encoder* encoder, tvl_encode_stats* stats) {
  return call(encoder, [&] {
    tvl_encode_stats s = encoder->done;
    if (encoder->encoder) {
      const CodecStats& now = encoder->encoder->stats();
      s = {sizeof s, now.gops, now.frames, now.stream_bytes};
    }
    write_struct(stats, s, "tvl_encode_stats");
  });
}

tvl_result tvl_encode(tvl_encoder* encoder, const tvl_video* video, const tvl_encode_params* params,
                      const tvl_frame* frames, uint64_t count, void* stream, uint64_t capacity, uint64_t* size) {
  if (size) *size = 0;
  const tvl_result result = call(encoder, [&] {
    (void)not_null(size, "size");
    encoder->reset();
    VideoInfo info = to_info(video);  // how many there are is known here
    info.frames = count;
    const tvl_video known = to_video(info);
    begin(*encoder, &known, params, open_output(*encoder, stream, capacity));
    write_frames(*encoder, checked(*encoder, frames, count), true);
    try {
      finish(*encoder);
    } catch (const BufferTooSmall&) {
      *size = encoder->output->size();
      throw;
    }
    *size = encoder->output->size();
  });
  if (encoder) encoder->close();
  return result;
}

uint64_t tvl_encode_bound(const tvl_video* video, const tvl_encode_params* params, uint64_t count) {
  char ignored[64];
  std::uint64_t bound = 0;
  (void)to_result(ignored, [&] {
    const tvl_encode_params p = read_struct(params, default_encode_params(), "tvl_encode_params");
    require(p.gop_frames >= 0, ErrorKind::kBadArgument,
            "gop_frames is " + std::to_string(p.gop_frames) + "; must be 1..128, or 0");
    const VideoInfo info = to_info(video);
    std::uint64_t samples = 0;
    for (int c = 0; c < info.format.components(); ++c)
      samples += Shape{1, info.component_height(c), info.component_width(c)}.samples();
    constexpr std::uint64_t kLeastByDefault = 32;
    const std::uint64_t length = p.gop_frames > 0 ? static_cast<std::uint64_t>(p.gop_frames) : kLeastByDefault;
    bound = stream_bound(checked_mul(samples, count), (count + length - 1) / length);
    bound += metadata_bytes(to_metadata(p.metadata));
  });
  return bound;
}

}  // extern "C"
