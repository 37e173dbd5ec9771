// Encoder of codec.h: parameters -> stream header; GOPs -> backend -> chunks -> packets; index and end.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "codec/backend.h"
#include "codec/codec.h"
#include "codec/colour.h"
#include "codec/container.h"
#include "codec/gop_hash.h"
#include "codec/hash.h"

namespace trivelet {

namespace {

int log2_floor(int v) {
  int n = 0;
  while (v > 1) {
    v >>= 1;
    ++n;
  }
  return n;
}

[[noreturn]] void refuse(const std::string& message) { fail(ErrorKind::kBadArgument, message); }

void check_video(const VideoInfo& v) {
  const PixelFormat& f = v.format;
  if (v.width < 1 || v.height < 1 || v.width > kMaxDimension || v.height > kMaxDimension)
    refuse("pictures of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "; sizes must be 1.." +
           std::to_string(kMaxDimension));
  if (f.bits < 1 || f.bits > 16) refuse(std::to_string(f.bits) + " bits per sample; must be 1..16");
  if (f.log2_chroma_w < 0 || f.log2_chroma_w > 2 || f.log2_chroma_h < 0 || f.log2_chroma_h > 2)
    refuse("chroma subsampling above 4");
  if (f.model == ColourModel::kRgb && f.is_signed) refuse("signed RGB samples are not supported");
  if (v.time_base.num < 1 || v.time_base.den < 1)
    refuse("time base " + std::to_string(v.time_base.num) + "/" + std::to_string(v.time_base.den) + " is not positive");
}

// Parameters with every default resolved, checked against each other.
EncoderParams resolve(const VideoInfo& video, EncoderParams p) {
  check_video(video);
  if (p.gop_frames < 1 || p.gop_frames > kMaxGopFrames)
    refuse("GOPs hold 1.." + std::to_string(kMaxGopFrames) + " frames, not " + std::to_string(p.gop_frames));
  if (video.frames > 0)
    p.gop_frames = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(p.gop_frames), video.frames));
  if (p.layers < 1 || p.layers > kMaxLayers)
    refuse("layers must be 1.." + std::to_string(kMaxLayers) + ", not " + std::to_string(p.layers));
  if (p.lossless) {
    if (p.step != 0) refuse("a quantiser step means nothing in a lossless stream");
    if (p.spatial == Wavelet::kCdf97) p.spatial = Wavelet::kCdf53;
    if (p.temporal == Wavelet::kCdf97) p.temporal = Wavelet::kCdf53;
  } else {
    if (p.spatial == Wavelet::kRev137 || p.temporal == Wavelet::kRev137)
      refuse("the 13/7 wavelet is for lossless streams; lossy ones use 9/7, 5/3 or haar");
    if (!(p.quality >= 0 && p.quality <= 100)) refuse("quality must be 0..100");
    if (p.step == 0) p.step = std::exp2((100 - p.quality) / 12 - 1 + (video.format.bits - 8));
    if (!(p.step >= 1e-4 && p.step <= 1e7))
      refuse("quantiser step " + std::to_string(p.step) + " is outside 0.0001..10000000");
  }
  const bool auto_spatial = p.spatial_levels < 0;
  if (auto_spatial) {
    p.spatial_levels = video.height >= 720 || video.width >= 1280 ? 5 : 4;
    const int smallest = std::min(video.width, video.height);
    p.spatial_levels = std::clamp(p.spatial_levels, 0, std::max(0, log2_floor(smallest) - 1));
  }
  if (p.temporal_levels < 0) {
    p.temporal_levels = std::min(4, log2_floor(p.gop_frames));
    if (p.layout == Layout::kDyadic) p.temporal_levels = std::min(p.temporal_levels, p.spatial_levels);
  }
  if (p.temporal_levels > 8 || p.spatial_levels > 8)
    refuse("levels must be 0..8, not " + std::to_string(p.temporal_levels) + "x" + std::to_string(p.spatial_levels));
  if (p.layout == Layout::kDyadic && p.temporal_levels > p.spatial_levels)
    refuse("a dyadic layout needs at least as many spatial as temporal levels, not " +
           std::to_string(p.temporal_levels) + "x" + std::to_string(p.spatial_levels));
  if (p.block_size != 32 && p.block_size != 64 && p.block_size != 128 && p.block_size != 256)
    refuse("block size must be 32, 64, 128 or 256, not " + std::to_string(p.block_size));
  return p;
}

StreamHeader make_header(const VideoInfo& video, const EncoderParams& p) {
  StreamHeader h;
  h.profile = p.profile;
  h.fast_mode = p.fast_mode;
  h.lossless = p.lossless;
  h.layout = p.layout;
  h.temporal = p.temporal;
  h.spatial = p.spatial;
  h.temporal_levels = static_cast<std::uint8_t>(p.temporal_levels);
  h.spatial_levels = static_cast<std::uint8_t>(p.spatial_levels);
  h.log2_block = static_cast<std::uint8_t>(log2_floor(p.block_size));
  h.layers = static_cast<std::uint8_t>(p.layers);
  h.gop_frames = static_cast<std::uint16_t>(p.gop_frames);
  h.colour_transform = video.format.model == ColourModel::kRgb ? 1 : 0;
  h.video = video;
  h.writer = std::string("Trivelet ") + kLibraryVersion;
  h.settings = p.settings;
  const PixelFormat& f = video.format;
  for (int c = 0; c < f.components(); ++c) {
    ComponentHeader ch;
    const bool difference = h.colour_transform && (c == 1 || c == 2);
    ch.offset = f.is_signed || difference ? 0 : 1 << (f.bits - 1);
    if (h.colour_transform && c < 3) ch.weight = static_cast<float>(1 / kColourNorm[c]);
    int levels = p.spatial_levels;
    if (f.is_chroma(c) && (f.log2_chroma_w > 0 || f.log2_chroma_h > 0))
      levels -= std::max(f.log2_chroma_w, f.log2_chroma_h);
    if (p.layout == Layout::kDyadic) levels = std::max(levels, p.temporal_levels);
    ch.spatial_levels = static_cast<std::uint8_t>(std::max(0, levels));
    h.components.push_back(ch);
  }
  return h;
}

}  // namespace

struct Encoder::State {
  EncoderParams params;
  StreamHeader header;
  ByteSink& sink;
  std::unique_ptr<GopEncoder> backend;
  CodecStats stats;
  std::vector<GopInfo> index;
  CodedGop coded;
  std::uint64_t position = 0;
  std::uint64_t frames = 0;
  bool short_gop = false;  // a GOP with fewer frames came: it was the last one
  bool finished = false;
  struct Pending {
    std::vector<FrameTime> times;
    int frames = 0;
    std::uint64_t hash = 0;
  };
  std::vector<Pending> pending;

  State(const VideoInfo& video, const EncoderParams& p, ByteSink& s)
      : params(resolve(video, p)), header(make_header(video, params)), sink(s) {}

  void write(const void* data, std::size_t size) {
    sink.write(data, size);
    position += size;
    stats.stream_bytes += size;
  }
  void write_box(const char* type, const std::vector<std::uint8_t>& payload) {
    std::uint8_t head[kBoxHeaderBytes];
    write_box_header(type, payload.size(), head);
    write(head, sizeof head);
    write(payload.data(), payload.size());
  }
  void accept(int gop_frames) {
    require(!finished, ErrorKind::kBadArgument, "push after finish");
    require(!short_gop, ErrorKind::kBadArgument,
            "only the last GOP may be shorter than " + std::to_string(header.gop_frames) + " frames");
    require(gop_frames >= 1 && gop_frames <= header.gop_frames, ErrorKind::kBadArgument,
            "a GOP of " + std::to_string(gop_frames) + " frames; this stream's hold 1.." +
                std::to_string(header.gop_frames));
    short_gop = gop_frames < header.gop_frames;
  }
  void drain(int in_flight) {
    while (static_cast<int>(pending.size()) > in_flight && backend->pull(coded)) {
      write_gop(pending.front());
      pending.erase(pending.begin());
    }
  }
  void write_gop(const Pending& p);
};

void Encoder::State::write_gop(const Pending& p) {
  const auto start = std::chrono::steady_clock::now();
  GopHeader g;
  g.index = index.size();
  g.first_frame = frames;
  g.frames = p.frames;
  g.step = static_cast<float>(params.step);
  g.has_hash = header.lossless;
  g.hash = p.hash;
  g.times = p.times;
  g.layer_top.assign(header.layers, 0);
  for (const auto& c : coded.components) {
    const int segments = segment_count(*c.grid);
    for (const CodedBlock& b : c.blocks)
      for (int s = 0; s < segments; ++s) {
        const int top = b.top[static_cast<std::size_t>(s)];
        g.planes = std::max<std::uint8_t>(g.planes, static_cast<std::uint8_t>(top));
        int from = top;
        for (int l = 0; l < header.layers; ++l) {
          const int to = std::min<int>(from, c.plan.low[static_cast<std::size_t>(l * segments + s)]);
          auto& layer_top = g.layer_top[static_cast<std::size_t>(l)];
          if (to < from) layer_top = std::max<std::uint8_t>(layer_top, static_cast<std::uint8_t>(from));
          from = to;
        }
      }
  }
  std::vector<std::vector<std::uint8_t>> chunks;
  for (int l = 0; l < header.layers; ++l)
    for (int b = 0; b < header.temporal_bands(); ++b)
      for (int d = header.spatial_levels; d >= 0; --d) {
        chunks.push_back(write_chunk(header, coded, l, b, d));
        ChunkEntry e;
        e.size = chunks.back().size();
        e.crc = crc32c(chunks.back().data(), chunks.back().size());
        g.chunks.push_back(e);
        g.body_bytes += e.size;
      }
  const std::vector<std::uint8_t> head = serialise(header, g);
  GopInfo info;
  info.offset = position;
  info.first_frame = frames;
  info.frames = p.frames;
  std::uint8_t box[kBoxHeaderBytes];
  write_box_header("Gop ", head.size() + g.body_bytes, box);
  write(box, sizeof box);
  write(head.data(), head.size());
  for (const auto& c : chunks) write(c.data(), c.size());
  info.bytes = position - info.offset;
  index.push_back(info);
  frames += static_cast<std::uint64_t>(p.frames);
  stats.gops += 1;
  stats.frames += static_cast<std::uint64_t>(p.frames);
  for (int c = 0; c < header.video.format.components(); ++c)
    stats.samples += header.component_shape(c, p.frames).samples();
  stats.seconds_transform = backend->seconds_transform();
  stats.seconds_coder = backend->seconds_coder();
  stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Encoder::Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend)
    : state_(std::make_unique<State>(info, params, sink)) {
  State& s = *state_;
  const Backend& b = backend ? *backend : cpu_backend();
  const std::vector<std::uint8_t> head = serialise(s.header);
  (void)parse_stream_header(head.data(), head.size());  // what a decoder would refuse is refused here
  s.backend = b.make_encoder(s.header, {s.params.threads, s.params.simd});
  s.write(kSignature, sizeof kSignature);
  s.write_box("Head", head);
}

Encoder::~Encoder() = default;

int Encoder::gop_frames() const { return state_->header.gop_frames; }

void Encoder::push(const Gop& gop) {
  State& s = *state_;
  s.accept(gop.frames());
  require(gop.components() == s.header.video.format.components(), ErrorKind::kBadArgument,
          "a GOP of " + std::to_string(gop.components()) + " components in a stream of " +
              std::to_string(s.header.video.format.components()));
  for (int c = 0; c < gop.components(); ++c)
    require(gop.plane(c).shape == s.header.component_shape(c, gop.frames()) &&
                gop.plane(c).bytes_per_sample == s.header.video.format.bytes_per_sample(),
            ErrorKind::kBadArgument,
            "component " + std::to_string(c) + " of the GOP has another size than the stream's");
  check_samples(gop, s.header.video.format.bits);
  State::Pending p;
  p.frames = gop.frames();
  p.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
  if (s.header.lossless) {
    const auto start = std::chrono::steady_clock::now();
    p.hash = hash_samples(gop);
    s.stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  s.backend->push(gop, static_cast<float>(s.params.step));
  s.pending.push_back(std::move(p));
  s.drain(s.backend->depth() - 1);
}

void Encoder::push_coefficients(CoefficientGop& coefficients) {
  State& s = *state_;
  require(!s.header.lossless, ErrorKind::kUnsupported,
          "coefficients can be pushed into lossy streams only: a lossless one carries the hash of its samples");
  s.accept(coefficients.frames);
  State::Pending p;
  p.frames = coefficients.frames;
  p.times = coefficients.times;
  p.times.resize(static_cast<std::size_t>(p.frames));
  s.backend->push(coefficients, static_cast<float>(s.params.step));
  s.pending.push_back(std::move(p));
  s.drain(s.backend->depth() - 1);
}

CoefficientGop Encoder::transform(const Gop& gop) {
  CoefficientGop out;
  state_->backend->transform(gop, out);
  for (SubbandView& v : out.subbands)
    if (!state_->header.lossless)
      v.step = static_cast<float>(
          static_cast<double>(static_cast<float>(state_->params.step)) *
          static_cast<double>(state_->header.components[static_cast<std::size_t>(v.component)].weight) / v.norm);
  return out;
}

void Encoder::finish() {
  State& s = *state_;
  require(!s.finished, ErrorKind::kBadArgument, "finish called twice");
  s.drain(0);
  s.finished = true;
  StreamEnd end;
  end.frames = s.frames;
  end.index_offset = s.position;
  s.write_box("Indx", serialise_index(s.index));
  s.write_box("Done", serialise(end));
}

const CodecStats& Encoder::stats() const { return state_->stats; }
const EncoderParams& Encoder::params() const { return state_->params; }

}  // namespace trivelet
