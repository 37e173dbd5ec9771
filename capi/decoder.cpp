// tvl_decoder of trivelet.h: video by frames; volumes in capi/volume.cpp.
#include "capi/decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "capi/encoder.h"
#include "capi/request.h"
#include "capi/video.h"

namespace trivelet::capi {

namespace {

tvl_decode_params default_decode_params() {
  const DecoderParams d;
  tvl_decode_params p{};
  p.struct_size = sizeof p;
  p.end_frame = d.end_frame;
  p.verify_hash = d.verify_hash;
  p.device = TVL_CPU;
  p.max_memory = d.limits.memory;
  p.max_samples = d.limits.samples;
  p.max_frames = d.limits.frames;
  p.max_samples_per_byte = d.limits.samples_per_byte;
  return p;
}

DecoderParams to_params(const tvl_decode_params& p) {
  DecoderParams out;
  out.reduce = p.reduce;
  out.temporal_reduce = p.temporal_reduce;
  out.max_layers = p.max_layers;
  out.max_planes = p.max_planes;
  out.max_bytes = p.max_bytes;
  out.max_bits_per_pixel = p.max_bits_per_pixel;
  out.first_frame = p.first_frame;
  out.end_frame = p.end_frame;
  out.region = {p.x, p.y, p.region_width, p.region_height};
  out.keep_partial = p.keep_partial != 0;
  out.verify_hash = p.verify_hash != 0;
  out.threads = p.threads;
  out.limits.memory = p.max_memory;
  out.limits.samples = p.max_samples;
  out.limits.frames = p.max_frames;
  out.limits.samples_per_byte = p.max_samples_per_byte;
  return out;
}

void check_open(const tvl_decoder& d) {
  require(d.is_open(), ErrorKind::kBadArgument, "no stream is open; call tvl_decoder_open");
}

// Frames of a region have its size.
void take_region(tvl_decoder& d, const PictureRegion& region) {
  d.region = region;
  d.output = d.decoder->output();
  const PixelFormat& f = d.output.format;
  require(region.width >= 0 && region.height >= 0 && (region.width > 0) == (region.height > 0), ErrorKind::kBadArgument,
          "a region of " + std::to_string(region.width) + "x" + std::to_string(region.height));
  if (region.width == 0) return;
  const int across = f.model == ColourModel::kYuv ? 1 << f.log2_chroma_w : 1;
  const int down = f.model == ColourModel::kYuv ? 1 << f.log2_chroma_h : 1;
  require(region.x % across == 0 && region.y % down == 0, ErrorKind::kBadArgument,
          "a region at " + std::to_string(region.x) + "," + std::to_string(region.y) +
              " begins inside a chroma sample; x must be a multiple of " + std::to_string(across) + ", y of " +
              std::to_string(down));
  d.output.width = region.width;
  d.output.height = region.height;
}

void say_damage(tvl_decoder& d) {
  const std::vector<std::string>& damage = d.decoder->stats().damage;
  while (d.damage_said < damage.size()) d.say(1, damage[d.damage_said++]);
}

void open(tvl_decoder& d, std::unique_ptr<ByteSource> source, const tvl_decode_params* given) {
  const tvl_decode_params p = read_struct(given, default_decode_params(), "tvl_decode_params");
  d.backend = backend_for(p.device, p.device_memory);
  d.source = std::move(source);
  DecoderParams params = to_params(p);
  params.workers = d.workers();
  d.decoder = std::make_unique<Decoder>(*d.source, params, d.backend.get());
  take_region(d, params.region);
  if (const std::string& lost = d.decoder->info().index_damage; !lost.empty()) d.say(1, lost);
  say_damage(d);
}

// Frames of the caller are decoded into where a whole GOP of them can be borrowed, else copied.
void read_frames(tvl_decoder& d, std::span<tvl_frame> frames, std::uint64_t& count) {
  const CallerMemory memory(d);
  const auto length = static_cast<std::size_t>(tvl_decoder_gop_frames(&d));
  while (count < frames.size()) {
    const std::span<tvl_frame> rest = frames.subspan(static_cast<std::size_t>(count));
    if (d.held && d.next_held < d.held->frames()) {
      copy_out(d.output, *d.held, d.next_held, d.region.x, d.region.y, rest[0], memory);
      ++d.next_held;
      ++count;
      if (count == frames.size() || d.next_held == d.held->frames()) memory.wait();
      continue;
    }
    d.check_cancelled();
    if (!memory.on_device() && d.region.width == 0 && rest.size() >= length &&
        can_borrow(d.output, rest.first(length))) {
      std::vector<MutableFrameView> views = mutable_views_of(d.output, rest.first(length));
      const int n = d.decoder->pull(views);
      say_damage(d);
      if (n == 0) return;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        rest[i].pts = views[i].time.pts;
        rest[i].duration = views[i].time.duration;
      }
      count += static_cast<std::uint64_t>(n);
      continue;
    }
    if (!d.held) d.held.emplace(d.decoder->make_gop());
    d.next_held = 0;
    d.held->set_frames(0);
    const bool more = d.decoder->pull(*d.held);
    say_damage(d);
    if (!more) {
      d.held->set_frames(0);
      return;
    }
  }
}

tvl_stream_info to_stream(const StreamInfo& s) {
  tvl_stream_info out{};
  out.struct_size = sizeof out;
  out.format_version = 256 * s.format_major + s.format_minor;
  out.profile = static_cast<std::int32_t>(s.profile);
  out.lossless = s.lossless;
  out.motion = s.motion;
  out.gop_frames = s.gop_frames;
  out.block_size = s.block_size;
  out.layers = s.layers;
  out.temporal_levels = s.decomposition.temporal_levels;
  out.spatial_levels = s.decomposition.spatial_levels;
  out.layout = static_cast<std::int32_t>(s.decomposition.layout);
  out.is_volume = std::any_of(s.boxes.begin(), s.boxes.end(), [](const ExtraBox& b) { return b.type == "Volm"; });
  out.has_index = s.has_index;
  out.index_rebuilt = s.has_index && !s.index_damage.empty();
  out.complete = s.complete;
  out.gops = s.gops.size();
  out.bytes = s.file_bytes;
  return out;
}

// As FORMAT.md "Indx" codes it.
double error_of_code(std::uint16_t code) {
  if (code == 0 || code == 65535) return code == 0 ? 0 : -1;
  return std::exp2(code / 512.0 - 32);
}

tvl_gop to_gop(const GopInfo& g) {
  tvl_gop out{};
  out.struct_size = sizeof out;
  out.offset = g.offset;
  out.bytes = g.bytes;
  out.first_frame = g.first_frame;
  out.frames = static_cast<std::uint64_t>(g.frames);
  for (std::size_t l = 0; l < std::size(out.layer_bytes); ++l) {
    out.layer_bytes[l] = l < g.layers.size() ? g.layers[l].bytes : 0;
    out.layer_error[l] = l < g.layers.size() ? error_of_code(g.layers[l].error) : -1;
  }
  return out;
}

}  // namespace

DecoderParams decoder_params(const tvl_decode_params* params) {
  return to_params(read_struct(params, default_decode_params(), "tvl_decode_params"));
}

}  // namespace trivelet::capi

using namespace trivelet;
using namespace trivelet::capi;

extern "C" {

void tvl_decode_params_init(tvl_decode_params* params, uint64_t struct_size) {
  init_struct(params, struct_size, default_decode_params());
}

void tvl_decode_stats_init(tvl_decode_stats* stats, uint64_t struct_size) {
  init_struct(stats, struct_size, tvl_decode_stats{});
}

void tvl_source_init(tvl_source* source, uint64_t struct_size) { init_struct(source, struct_size, default_source()); }

void tvl_stream_info_init(tvl_stream_info* info, uint64_t struct_size) {
  init_struct(info, struct_size, tvl_stream_info{});
}

void tvl_gop_init(tvl_gop* gop, uint64_t struct_size) { init_struct(gop, struct_size, tvl_gop{}); }

tvl_decoder* tvl_decoder_new(void) { return new (std::nothrow) tvl_decoder; }

void tvl_decoder_free(tvl_decoder* decoder) { delete decoder; }

const char* tvl_decoder_error(const tvl_decoder* decoder) { return decoder ? decoder->error : "the decoder is NULL"; }

void tvl_decoder_set_log(tvl_decoder* decoder, tvl_log log, void* user) {
  if (!decoder) return;
  decoder->log = log;
  decoder->log_user = user;
}

void tvl_decoder_set_runner(tvl_decoder* decoder, tvl_runner run, void* user) {
  if (!decoder) return;
  decoder->runner = run;
  decoder->runner_user = user;
}

void tvl_decoder_cancel(tvl_decoder* decoder) {
  if (decoder) decoder->cancelled.store(true, std::memory_order_relaxed);
}

tvl_result tvl_decoder_set_memory(tvl_decoder* decoder, int32_t device, void* cuda_stream) {
  return call(decoder, [&] { set_memory(*decoder, device, cuda_stream); });
}

tvl_result tvl_decoder_open(tvl_decoder* decoder, const tvl_source* source, const tvl_decode_params* params) {
  return call_or_close(
      decoder, [] {},
      [&] {
        decoder->close();
        open(*decoder, open_source(*decoder, source), params);
      });
}

void tvl_decoder_close(tvl_decoder* decoder) {
  if (decoder) decoder->close();
}

tvl_result tvl_decoder_stream(tvl_decoder* decoder, tvl_stream_info* info) {
  return call(decoder, [&] {
    check_open(*decoder);
    write_struct(info, to_stream(decoder->stream()), "tvl_stream_info");
  });
}

const char* tvl_decoder_settings(const tvl_decoder* decoder) {
  return decoder && decoder->is_open() ? decoder->stream().settings.c_str() : nullptr;
}

const char* tvl_decoder_writer(const tvl_decoder* decoder) {
  return decoder && decoder->is_open() ? decoder->stream().writer.c_str() : nullptr;
}

void tvl_metadata_init(tvl_metadata* metadata, uint64_t struct_size) {
  init_struct(metadata, struct_size, default_metadata());
}

tvl_result tvl_decoder_metadata(tvl_decoder* decoder, tvl_metadata* metadata) {
  return call(decoder, [&] {
    check_open(*decoder);
    give_metadata(decoder->stream().metadata, decoder->metadata);
    write_struct(metadata, decoder->metadata.all, "tvl_metadata");
  });
}

tvl_result tvl_decoder_gop(tvl_decoder* decoder, uint64_t number, tvl_gop* gop) {
  return call(decoder, [&] {
    check_open(*decoder);
    const std::vector<GopInfo>& gops = decoder->stream().gops;
    require(number < gops.size(), ErrorKind::kBadArgument,
            "GOP " + std::to_string(number) + " of " + std::to_string(gops.size()));
    write_struct(gop, to_gop(gops[static_cast<std::size_t>(number)]), "tvl_gop");
  });
}

tvl_result tvl_decoder_video(tvl_decoder* decoder, tvl_video* video) {
  return call(decoder, [&] {
    require(decoder->decoder != nullptr, ErrorKind::kBadArgument, "no stream is open by tvl_decoder_open");
    write_struct(video, to_video(decoder->output), "tvl_video");
  });
}

int32_t tvl_decoder_gop_frames(const tvl_decoder* decoder) {
  return decoder && decoder->decoder ? decoder->decoder->gop_frames() : 0;
}

tvl_result tvl_decoder_read(tvl_decoder* decoder, tvl_frame* frames, uint64_t capacity, uint64_t* count) {
  if (count) *count = 0;
  return call_or_close_cancelled(decoder, [&] {
    (void)not_null(count, "count");
    require(decoder->decoder != nullptr, ErrorKind::kBadArgument, "no stream is open by tvl_decoder_open");
    if (capacity == 0) return;
    read_frames(*decoder, {not_null(frames, "frames"), static_cast<std::size_t>(capacity)}, *count);
  });
}

tvl_result tvl_decoder_stats(tvl_decoder* decoder, tvl_decode_stats* stats) {
  return call(decoder, [&] {
    check_open(*decoder);
    const CodecStats& s = decoder->volume ? decoder->volume->stats() : decoder->decoder->stats();
    write_struct(stats, {sizeof *stats, s.frames, s.gops, s.stream_bytes, s.damaged_gops}, "tvl_decode_stats");
  });
}

tvl_result tvl_decode(tvl_decoder* decoder, const void* stream, uint64_t size, const tvl_decode_params* params,
                      tvl_frame* frames, uint64_t capacity, uint64_t* count) {
  if (count) *count = 0;
  const tvl_result result = call(decoder, [&] {
    (void)not_null(count, "count");
    decoder->close();
    tvl_source source = default_source();
    source.data = not_null(stream, "stream");
    source.size = size;
    open(*decoder, open_source(*decoder, &source), params);
    const std::uint64_t wanted = decoder->output.frames;
    if (wanted > capacity) {
      *count = wanted;
      throw BufferTooSmall("frames", capacity, wanted);
    }
    if (wanted == 0) return;
    read_frames(*decoder, {not_null(frames, "frames"), static_cast<std::size_t>(wanted)}, *count);
  });
  if (decoder) decoder->close();
  return result;
}

}  // extern "C"
