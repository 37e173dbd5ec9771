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

void check_gives_frames(const tvl_decoder& d) {
  require(d.gives_frames(), ErrorKind::kBadArgument,
          "no stream is open by tvl_decoder_open or tvl_decoder_open_packets");
}

PacketDecoder& packets_of(tvl_decoder& d) {
  require(d.packets != nullptr, ErrorKind::kBadArgument, "no stream is open by tvl_decoder_open_packets");
  return *d.packets;
}

// Frames of a region have its size.
void take_region(tvl_decoder& d, const VideoInfo& output, const PictureRegion& region) {
  d.region = region;
  d.output = output;
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

CodecStats stats_of(const tvl_decoder& d) {
  return d.volume ? d.volume->stats() : d.packets ? d.packets->stats() : d.decoder->stats();
}

void say_damage(tvl_decoder& d) {
  const std::vector<std::string> damage = stats_of(d).damage;
  while (d.damage_said < damage.size()) d.say(1, damage[d.damage_said++]);
}

void open(tvl_decoder& d, std::unique_ptr<ByteSource> source, const tvl_decode_params* given) {
  const tvl_decode_params p = read_struct(given, default_decode_params(), "tvl_decode_params");
  d.backend = backend_for(p.device, p.device_memory);
  d.source = std::move(source);
  DecoderParams params = to_params(p);
  params.workers = d.workers();
  d.decoder = std::make_unique<Decoder>(*d.source, params, d.backend.get());
  take_region(d, d.decoder->output(), params.region);
  if (const std::string& lost = d.decoder->info().index_damage; !lost.empty()) d.say(1, lost);
  say_damage(d);
}

void open_packets(tvl_decoder& d, const void* head, std::uint64_t size, const tvl_decode_params* given) {
  const tvl_decode_params p = read_struct(given, default_decode_params(), "tvl_decode_params");
  d.backend = backend_for(p.device, p.device_memory);
  d.packet_params = to_params(p);
  d.packet_params.workers = d.workers();
  auto packets = std::make_unique<PacketDecoder>(nullptr, d.backend.get());
  packets->set_header(not_null(head, "head"), static_cast<std::size_t>(size));
  const PacketDecoder::Output output = packets->output(d.packet_params);
  d.packets = std::move(packets);
  d.packet_frames = output.gop_frames;
  take_region(d, output.video, d.packet_params.region);
}

// The next GOP, or the one of the packet, into what is held. False at the end.
bool pull(tvl_decoder& d) {
  if (d.packets) return d.packets->decode(d.packet_params, d.held);
  if (d.held.gop.capacity() == 0) d.held.gop = d.decoder->make_gop();
  return d.decoder->pull(d.held.gop);
}

int pull(tvl_decoder& d, std::span<MutableFrameView> frames) {
  return d.packets ? d.packets->decode(d.packet_params, frames) : d.decoder->pull(frames);
}

void drop_held(tvl_decoder& d) {
  d.next_held = 0;
  if (d.held.gop.capacity() > 0) d.held.gop.set_frames(0);
}

// Frames of the caller are decoded into where a whole GOP of them can be borrowed, else copied.
void read_frames(tvl_decoder& d, std::span<tvl_frame> frames, std::uint64_t& count) {
  const CallerMemory memory(d);
  const auto length = static_cast<std::size_t>(tvl_decoder_gop_frames(&d));
  while (count < frames.size()) {
    const std::span<tvl_frame> rest = frames.subspan(static_cast<std::size_t>(count));
    if (d.next_held < d.held.gop.frames()) {
      copy_out(d.output, d.held.gop, d.next_held, d.region.x, d.region.y, rest[0], memory);
      ++d.next_held;
      ++count;
      if (count == frames.size() || d.next_held == d.held.gop.frames()) memory.wait();
      continue;
    }
    d.check_cancelled();
    if (!memory.on_device() && d.region.width == 0 && rest.size() >= length &&
        can_borrow(d.output, rest.first(length))) {
      std::vector<MutableFrameView> views = mutable_views_of(d.output, rest.first(length));
      const int n = pull(d, views);
      say_damage(d);
      if (n == 0) return;
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
        rest[i].pts = views[i].time.pts;
        rest[i].duration = views[i].time.duration;
      }
      count += static_cast<std::uint64_t>(n);
      continue;
    }
    drop_held(d);
    const bool more = pull(d);
    say_damage(d);
    if (!more) return drop_held(d);
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
  out.pts = g.begin_pts;
  out.duration = ticks_between(g.begin_pts, g.end_pts);
  out.key = g.key != GopKey::kOpen;
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

void tvl_packet_init(tvl_packet* packet, uint64_t struct_size) { init_struct(packet, struct_size, tvl_packet{}); }

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

tvl_result tvl_decoder_open_packets(tvl_decoder* decoder, const void* head, uint64_t size,
                                    const tvl_decode_params* params) {
  return call_or_close(
      decoder, [] {},
      [&] {
        decoder->close();
        open_packets(*decoder, head, size, params);
      });
}

tvl_result tvl_decoder_look_at_packet(tvl_decoder* decoder, const void* data, uint64_t size, tvl_packet* info) {
  return call(decoder, [&] {
    const PacketInfo packet =
        packets_of(*decoder).look(size > 0 ? not_null(data, "data") : data, static_cast<std::size_t>(size));
    write_struct(info, to_packet(packet), "tvl_packet");
  });
}

tvl_result tvl_decoder_packet(tvl_decoder* decoder, const void* data, uint64_t size, uint64_t* frames) {
  if (frames) *frames = 0;
  return call(decoder, [&] {
    (void)not_null(frames, "frames");
    PacketDecoder& packets = packets_of(*decoder);
    drop_held(*decoder);
    if (!packets.add(size > 0 ? not_null(data, "data") : data, static_cast<std::size_t>(size))) return;
    const int wanted = packets.frames(decoder->packet_params);
    *frames = static_cast<std::uint64_t>(wanted >= 0 ? wanted : decoder->packet_frames);
  });
}

tvl_result tvl_decoder_flush(tvl_decoder* decoder) {
  return call(decoder, [&] {
    packets_of(*decoder).clear();
    drop_held(*decoder);
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
    check_gives_frames(*decoder);
    write_struct(video, to_video(decoder->output), "tvl_video");
  });
}

int32_t tvl_decoder_gop_frames(const tvl_decoder* decoder) {
  if (!decoder || !decoder->gives_frames()) return 0;
  return decoder->packets ? decoder->packet_frames : decoder->decoder->gop_frames();
}

tvl_result tvl_decoder_read(tvl_decoder* decoder, tvl_frame* frames, uint64_t capacity, uint64_t* count) {
  if (count) *count = 0;
  return call_or_close_cancelled(decoder, [&] {
    (void)not_null(count, "count");
    check_gives_frames(*decoder);
    if (capacity == 0) return;
    read_frames(*decoder, {not_null(frames, "frames"), static_cast<std::size_t>(capacity)}, *count);
  });
}

tvl_result tvl_decoder_stats(tvl_decoder* decoder, tvl_decode_stats* stats) {
  return call(decoder, [&] {
    check_open(*decoder);
    const CodecStats s = stats_of(*decoder);
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
