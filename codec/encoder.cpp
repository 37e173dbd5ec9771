// Encoder of codec.h: parameters -> stream header; GOPs -> backend -> chunks -> packets; index and end.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "codec/backend.h"
#include "codec/codec.h"
#include "codec/colour.h"
#include "codec/container.h"
#include "codec/error_curve.h"
#include "codec/gop_hash.h"
#include "codec/hash.h"
#include "codec/rate_control.h"
#include "codec/region.h"
#include "codec/spool.h"
#include "codec/temporal_weights.h"

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

// Bytes that a target leaves for so many frames; 0 without one, or while it says nothing about a part of the video.
double target_share(const VideoInfo& video, const EncoderParams& p, double frames) {
  if (p.target_bytes > 0)
    return video.frames > 0 ? static_cast<double>(p.target_bytes) * frames / static_cast<double>(video.frames) : 0;
  if (p.bits_per_pixel > 0) return p.bits_per_pixel * static_cast<double>(video.width) * video.height * frames / 8;
  return p.bit_rate > 0 ? p.bit_rate / 8 * frames / video.frame_rate.value() : 0;
}

// Empty chunks still take a byte each: as many layers as cost about a hundredth.
int affordable_layers(const VideoInfo& video, const EncoderParams& p) {
  if (p.profile == Profile::kFast && !p.has_byte_target() && p.psnr == 0) return 4;
  const double pixels = static_cast<double>(video.width) * video.height * p.gop_frames;
  double bytes = target_share(video, p, p.gop_frames);
  if (p.target_bytes > 0 && bytes == 0) bytes = static_cast<double>(p.target_bytes) / 4;  // frames unknown: a few GOPs
  if (bytes > 0) {
    const int chunks = (p.temporal_levels + 1) * (p.spatial_levels + 1);
    return static_cast<int>(std::clamp(0.01 * bytes / chunks, 1.0, static_cast<double>(kMaxLayers)));
  }
  return pixels < 3e5 ? 4 : pixels < 1e6 ? 6 : pixels < 2e6 ? 12 : kMaxLayers;
}

// Parameters with every default resolved, checked against each other.
EncoderParams resolve(const VideoInfo& video, EncoderParams p) {
  check_video(video);
  if (p.gop_frames < 1 || p.gop_frames > kMaxGopFrames)
    refuse("GOPs hold 1.." + std::to_string(kMaxGopFrames) + " frames, not " + std::to_string(p.gop_frames));
  if (video.frames > 0)
    p.gop_frames = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(p.gop_frames), video.frames));
  const int targets = (p.target_bytes > 0) + (p.bits_per_pixel > 0) + (p.bit_rate > 0) + (p.psnr > 0);
  if (targets > 1) refuse("a stream has one target: a size, bits per pixel, a bit rate or a PSNR");
  if (targets > 0 && p.lossless) refuse("a lossless stream has no target for its size or PSNR");
  if (p.part_checks && p.has_byte_target())
    refuse("checks of parts are not written into streams with a target for their bytes: they are not known in advance");
  if (p.bits_per_pixel < 0 || p.bit_rate < 0 || p.psnr < 0) refuse("a target must be positive");
  if (p.bit_rate > 0 && video.frame_rate.num == 0) refuse("a bit rate needs a frame rate, and the input has none");
  if (p.psnr > 120) refuse("a PSNR of " + std::to_string(p.psnr) + " dB; the limit is 120, lossless is beyond it");
  const bool default_layers = p.layers == 0;
  if (default_layers) p.layers = kMaxLayers;
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
  if (default_layers) p.layers = affordable_layers(video, p);
  return p;
}

// Contrast sensitivity falls towards fine detail, and more so in chroma: steps grow accordingly. A stand-in for viewing
// at about three picture heights; the coarse levels keep what PSNR would give them.
std::vector<std::uint8_t> visual_scales(const PixelFormat& format, int component, int levels) {
  static constexpr std::uint8_t kLuma[] = {36, 52, 64};  // finest, next, others
  static constexpr std::uint8_t kChroma[] = {28, 40, 54};
  std::vector<std::uint8_t> scales;
  for (int k = 0; k <= levels; ++k) {
    const bool chroma = format.model != ColourModel::kGrey && (component == 1 || component == 2);
    const int distance = std::min(2, k == 0 ? 2 : levels - k);
    scales.push_back((chroma ? kChroma : kLuma)[distance]);
  }
  return scales;
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
    ch.scale.assign(ch.spatial_levels + std::size_t{1}, 64);
    if (p.visual && !p.lossless) ch.scale = visual_scales(f, c, ch.spatial_levels);
    h.components.push_back(ch);
  }
  return h;
}

}  // namespace

namespace {

double squared_error(const VolumeView& a, const VolumeView& b) {
  double sum = 0;
  for (int t = 0; t < a.shape.frames; ++t)
    for (int y = 0; y < a.shape.height; ++y) {
      std::int64_t row = 0;
      for (int x = 0; x < a.shape.width; ++x) {
        std::int64_t d = 0;
        if (a.bytes_per_sample == 1 && a.is_signed)
          d = reinterpret_cast<const std::int8_t*>(a.row(t, y))[x] -
              reinterpret_cast<const std::int8_t*>(b.row(t, y))[x];
        else if (a.bytes_per_sample == 1)
          d = reinterpret_cast<const std::uint8_t*>(a.row(t, y))[x] -
              reinterpret_cast<const std::uint8_t*>(b.row(t, y))[x];
        else if (a.is_signed)
          d = reinterpret_cast<const std::int16_t*>(a.row(t, y))[x] -
              reinterpret_cast<const std::int16_t*>(b.row(t, y))[x];
        else
          d = reinterpret_cast<const std::uint16_t*>(a.row(t, y))[x] -
              reinterpret_cast<const std::uint16_t*>(b.row(t, y))[x];
        row += d * d;
      }
      sum += static_cast<double>(row);
    }
  return sum;
}

}  // namespace

struct Encoder::State {
  EncoderParams params;
  StreamHeader header;
  ByteSink& sink;
  const Backend& backend;
  std::unique_ptr<GopEncoder> coder;
  std::unique_ptr<GopDecoder> decoder;  // for a target PSNR
  CodecStats stats;
  std::vector<GopInfo> index;
  std::uint64_t position = 0;
  std::uint64_t frames = 0;  // written
  bool finished = false;
  ErrorCurve measured;   // of the GOP measured last
  int measured_age = 0;  // GOPs since
  bool fewer_layers;     // layers of GOPs that are too small for so many may be empty
  struct Pending {
    std::vector<FrameTime> times;
    int frames = 0;
    bool has_hash = false;
    std::uint64_t hash = 0;
    float step = 0;
    std::vector<std::uint8_t> frame_gains;
    std::shared_ptr<const Gop> samples;  // until it is drained, where errors are to be measured
  };
  std::vector<Pending> pending;

  // With a target
  double step;                 // of the next GOP
  double aligned_slope = 2.7;  // log2 of the slope at which all planes but the last are sent, over that of the step
  double correction = 1;       // target PSNR: measured error over the predicted one
  std::unique_ptr<Spool> spool;
  struct Spooled {
    Pending gop;
    RateCurve curve;
    ErrorCurve errors;
  };
  std::vector<Spooled> spooled;

  State(const VideoInfo& video, const EncoderParams& p, ByteSink& s, const Backend& b)
      : params(resolve(video, p)),
        header(make_header(video, params)),
        sink(s),
        backend(b),
        measured(header.lossless),
        fewer_layers(p.layers == 0),
        step(params.step) {
    if (params.psnr > 0) {
      const double peak = (1 << video.format.bits) - 1;
      target_error = peak * peak / std::pow(10.0, params.psnr / 10);
      step = std::clamp(std::sqrt(5 * target_error), 0.05, 1e6);
    }
    if (params.has_byte_target()) step = std::exp2(video.format.bits - 4);
  }

  double target_error = 0;  // mean squared

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
    require(gop_frames >= 1 && gop_frames <= header.gop_frames, ErrorKind::kBadArgument,
            "a GOP of " + std::to_string(gop_frames) + " frames; this stream's hold 1.." +
                std::to_string(header.gop_frames));
    stats.frames += static_cast<std::uint64_t>(gop_frames);
    for (int c = 0; c < header.video.format.components(); ++c)
      stats.samples += header.component_shape(c, gop_frames).samples();
  }
  GopChoices choices(int gop_frames) const {
    GopChoices c;
    c.step = static_cast<float>(step);
    c.frame_gains = gains(gop_frames);
    c.passes = params.has_byte_target() || params.psnr > 0;
    return c;
  }
  std::vector<std::uint8_t> gains(int gop_frames) const {
    if (header.lossless || !params.even_ends || header.layout != Layout::kT2d) return {};
    return temporal_gains(gop_frames, header.temporal_levels, header.temporal);
  }

  int layers_for(RateControl& control, const Cuts& final, double lambda) const {
    return fewer_layers ? control.layers_worth(final, lambda) : header.layers;
  }
  void drain(int in_flight);
  void write_layers(const Pending& p, const LayeredGop& layers, const std::vector<double>& errors);
  void write_controlled(const Pending& p, RateControl& control, const std::vector<Cuts>& layers,
                        const ErrorCurve& curve, LayeredGop& divided);

  void push_to_psnr(const Gop& gop, Pending p);
  double measured_error(const Gop& gop, const LayeredGop& layers);
  void measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers);
  void push_to_spool(const Gop& gop, Pending p);
  double target_bytes(std::uint64_t frame_count) const;
  double slope_for(double bytes) const;
  void write_spooled();
};

void Encoder::State::drain(int in_flight) {
  CodedGop coded;
  while (static_cast<int>(pending.size()) > in_flight && coder->pull(coded)) {
    const Pending p = std::move(pending.front());
    pending.erase(pending.begin());
    LayeredGop layers;
    layers.frames = p.frames;
    if (header.profile == Profile::kDense) {
      RateControl control(header, coded);
      const double unit = header.lossless ? 1 : static_cast<double>(p.step);
      const Cuts final = control.complete();
      const double lambda = unit * unit;
      const std::vector<Cuts> cuts = control.layers(final, lambda, layers_for(control, final, lambda));
      if (p.samples) measure(*p.samples, p, control, cuts);
      write_controlled(p, control, cuts, measured, layers);
    } else {
      divide_by_plan(coded, layers);
      write_layers(p, layers, {});
    }
  }
}

void Encoder::State::write_controlled(const Pending& p, RateControl& control, const std::vector<Cuts>& layers,
                                      const ErrorCurve& curve, LayeredGop& divided) {
  control.divide(layers, divided);
  std::vector<double> errors;
  for (const Cuts& cuts : layers) {
    const bool exact = header.lossless && cuts == control.complete();
    errors.push_back(exact ? 0 : curve.actual(control.mean_error(cuts)));
  }
  write_layers(p, divided, errors);
}

void Encoder::State::write_layers(const Pending& p, const LayeredGop& layers, const std::vector<double>& errors) {
  const auto start = std::chrono::steady_clock::now();
  GopHeader g;
  g.index = index.size();
  g.first_frame = frames;
  g.frames = p.frames;
  g.step = p.step;
  g.has_hash = p.has_hash;
  g.hash = p.hash;
  g.times = p.times;
  g.frame_gains = p.frame_gains;
  set_planes(header, layers, g);
  GopInfo info;
  std::vector<std::vector<std::uint8_t>> chunks;
  for (int l = 0; l < header.layers; ++l) {
    LayerInfo layer;
    for (int b = 0; b < header.temporal_bands(); ++b)
      for (int d = header.spatial_levels; d >= 0; --d) {
        chunks.push_back(write_chunk(header, layers, l, b, d));
        ChunkEntry e;
        e.size = chunks.back().size();
        e.crc = crc32c(chunks.back().data(), chunks.back().size());
        g.chunks.push_back(e);
        g.body_bytes += e.size;
        layer.bytes += e.size;
      }
    if (!errors.empty()) layer.error = error_code(errors[static_cast<std::size_t>(l)]);
    info.layers.push_back(layer);
  }
  if (header.lossless && errors.empty()) info.layers.back().error = 0;  // exact, if nothing else is known
  const std::vector<std::uint8_t> head = serialise(header, g);
  info.offset = position;
  info.first_frame = frames;
  info.frames = p.frames;
  std::uint8_t box[kBoxHeaderBytes];
  write_box_header("Gop ", head.size() + g.body_bytes, box);
  write(box, sizeof box);
  write(head.data(), head.size());
  for (const auto& c : chunks) write(c.data(), c.size());
  info.bytes = position - info.offset;
  const bool divided = std::any_of(layers.components.begin(), layers.components.end(),
                                   [](const auto& c) { return c.blocks.size() > 1; });
  if (params.part_checks && divided) write_box("part", serialise_checks(header, g.index, layers, chunks));
  index.push_back(info);
  frames += static_cast<std::uint64_t>(p.frames);
  stats.gops += 1;
  stats.seconds_transform = coder->seconds_transform();
  stats.seconds_coder = coder->seconds_coder();
  stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// ------------------------------------------------------------------------------------------------------- target: PSNR

// What the decoder would really make of it.
double Encoder::State::measured_error(const Gop& gop, const LayeredGop& layers) {
  if (!decoder) decoder = backend.make_decoder(header, {}, {params.threads, params.simd});
  // Decoders read a little behind every part.
  LayeredGop padded = layers;
  std::size_t total = 0;
  for (const auto& c : layers.components)
    for (const auto& block : c.blocks)
      for (const auto& segment : block)
        for (const auto& part : segment.parts) total += part.size + 16;
  std::vector<std::uint8_t> memory(total, 0);
  std::size_t at = 0;
  for (auto& c : padded.components)
    for (auto& block : c.blocks)
      for (auto& segment : block)
        for (auto& part : segment.parts) {
          std::copy_n(part.data, part.size, memory.data() + at);
          part.data = memory.data() + at;
          at += part.size + 16;
        }
  Gop decoded(header.video, gop.frames());
  decoder->push(padded, nullptr);
  require(decoder->pull(decoded), ErrorKind::kInternal, "the backend lost a GOP");
  double sum = 0;
  double samples = 0;
  for (int c = 0; c < gop.components(); ++c) {
    sum += squared_error(gop.plane(c), std::as_const(decoded).plane(c));
    samples += static_cast<double>(gop.plane(c).shape.samples());
  }
  return sum / samples;
}

// Decodes the GOP at some of these cuts, if what was measured before is too long ago or does not apply.
void Encoder::State::measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers) {
  constexpr int kMostPoints = 4;
  constexpr int kMostAge = 16;
  std::vector<const Cuts*> chosen;  // from the finest
  double last = 0;
  for (auto cuts = layers.rbegin(); cuts != layers.rend() && chosen.size() < kMostPoints; ++cuts) {
    if (header.lossless && *cuts == control.complete()) continue;
    const double error = control.mean_error(*cuts);
    const double apart = last < 0.5 ? 3 : last < 8 ? 4 : 8;  // rounding changes small errors most
    if (!chosen.empty() && error < apart * last) continue;
    chosen.push_back(&*cuts);
    last = error;
  }
  if (chosen.empty() || (measured.covers(control.mean_error(*chosen.front())) && ++measured_age < kMostAge)) return;
  measured = ErrorCurve(header.lossless);
  measured_age = 0;
  LayeredGop divided;
  divided.frames = p.frames;
  divided.step = p.step;
  divided.frame_gains = p.frame_gains;
  for (auto cuts = chosen.rbegin(); cuts != chosen.rend(); ++cuts) {
    control.divide({**cuts}, divided);
    measured.add(control.mean_error(**cuts), measured_error(gop, divided));
  }
}

// Cuts cost least where a plane ends everywhere: half a plane away the same bytes bring up to 0.4 dB less (luma of
// mobile CIF at 1 bit per pixel). So with a target the step is chosen such that all planes but the last one just meet
// it.
constexpr double kNear = 0.03;  // octaves

// By how many octaves the step should grow for `of_planes`, the amount with plane 1 as the last, to become `wanted`;
// `of_all` is the amount with plane 0. Amounts are bytes or errors.
double octaves_off(double of_planes, double of_all, double wanted) {
  const double per_octave = std::log2(std::max(of_planes, 1e-9) / std::max(of_all, 1e-9));
  const double limited = per_octave < 0 ? std::min(per_octave, -0.25) : std::max(per_octave, 0.25);
  return std::clamp(std::log2(wanted / std::max(of_planes, 1e-9)) / limited, -2.0, 2.0);
}

void Encoder::State::push_to_psnr(const Gop& gop, Pending p) {
  for (int alignments = 0;;) {
    p.step = static_cast<float>(step);
    coder->push(gop, choices(gop.frames()));
    CodedGop coded;
    require(coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
    RateControl control(header, coded);
    const auto samples = static_cast<double>(control.samples());
    LayeredGop divided;
    divided.frames = p.frames;
    divided.step = p.step;
    divided.frame_gains = p.frame_gains;
    // The error predicted is that of coefficients; what the samples really have is measured and made good for.
    double best_distance = 1e9;
    std::vector<Cuts> best;
    bool too_coarse = false;
    double before = -1;
    for (int attempt = 0; attempt < 8; ++attempt) {
      const double wanted = target_error / correction * samples;
      double low = 0;
      const Cuts final = control.with_error(wanted, low);
      const bool all = low < -39;
      const double lambda = std::exp2(low);
      const std::vector<Cuts> layers = control.layers(final, lambda, layers_for(control, final, lambda));
      control.divide(layers, divided);
      const double actual = std::max(1e-9, measured_error(gop, divided));
      const double distance = std::abs(10 * std::log10(actual / target_error));
      if (distance < best_distance) {
        best_distance = distance;
        best = layers;
      }
      too_coarse = all && actual > target_error * 1.005;
      if (distance < 0.02 || too_coarse || distance == before) break;
      before = distance;
      correction = std::clamp(actual / std::max(1e-9, control.error(final) / samples), 0.01, 1e6);
    }
    if (too_coarse && step > 0.06) {
      step = std::max(0.05, step / 2);
      correction = 1;
      continue;
    }
    const double octaves = octaves_off(control.error(control.planes(1)), control.error(control.complete()),
                                       target_error / correction * samples);
    const double aligned = std::clamp(step * std::exp2(octaves), 0.05, 1e6);
    if (std::abs(octaves) > 2 * kNear && ++alignments < 4 && index.empty()) {
      step = aligned;
      continue;
    }
    measure(gop, p, control, best);
    write_controlled(p, control, best, measured, divided);
    step = aligned;  // the next one's
    return;
  }
}

// ------------------------------------------------------------------------------------------------------ target: bytes

// A slope for the whole video is found when all of it is known; until then what was coded, more finely than will be
// needed, waits in a file.

double Encoder::State::target_bytes(std::uint64_t frame_count) const {
  if (params.target_bytes > 0) return static_cast<double>(params.target_bytes);
  return target_share(header.video, params, static_cast<double>(frame_count));
}

// log2 of the slope at which everything spooled so far takes so many bytes.
double Encoder::State::slope_for(double bytes) const {
  double low = RateCurve::kLeast;
  double high = RateCurve::kMost;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    double sum = 0;
    for (const Spooled& s : spooled) sum += s.curve.bytes(middle);
    (sum > bytes ? low : high) = middle;
  }
  return high;
}

void Encoder::State::push_to_spool(const Gop& gop, Pending p) {
  // Bytes this GOP may expect, while only part of the video is known.
  const std::uint64_t all = header.video.frames > 0 ? std::max(header.video.frames, stats.frames) : 0;
  double share = 0;
  if (params.target_bytes == 0)
    share = target_bytes(static_cast<std::uint64_t>(gop.frames()));
  else if (all > 0)
    share = target_bytes(all) * gop.frames() / static_cast<double>(all);
  for (int attempt = 0;; ++attempt) {
    p.step = static_cast<float>(step);
    coder->push(gop, choices(gop.frames()));
    CodedGop coded;
    require(coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
    RateControl control(header, coded);
    spooled.push_back({p, RateCurve(control), ErrorCurve()});
    const double finest = spooled.back().curve.bytes(RateCurve::kLeast);
    // Once there is something to compare with, what counts is the slope of the whole.
    double known = 0;
    for (const Spooled& s : spooled) known += s.gop.frames;
    const double budget = share > 0 ? share * known / gop.frames() : 0;
    const double finest_slope = 2 * std::log2(step);
    double expected_slope = finest_slope;
    if (budget == 0) {  // nothing is known about the rate: as fine as makes sense
      if (step > 1 && attempt == 0) {
        spooled.pop_back();
        step = 1;
        continue;
      }
    } else {
      const double slope = slope_for(budget);
      const bool too_coarse = slope < finest_slope + 0.3 && finest < 40 * share;
      const double octaves =
          octaves_off(static_cast<double>(control.body_bytes(control.planes(1))), finest, 0.97 * budget);
      if (too_coarse && attempt < 12 && step > 0.02) {
        spooled.pop_back();
        step /= 2;
        continue;
      }
      if (spooled.size() == 1) {
        if (std::abs(octaves) > kNear && attempt < 6) {
          spooled.pop_back();
          step = std::clamp(step * std::exp2(octaves), 0.02, 1e6);
          continue;
        }
        aligned_slope = slope - finest_slope;
      }
      expected_slope = slope;
      step = std::clamp(std::exp2((slope - aligned_slope) / 2), 0.02, 1e6);  // the next one's
    }
    const double lambda = std::exp2(expected_slope);
    measure(gop, p, control, control.layers(control.at(lambda), lambda, header.layers));
    spooled.back().errors = measured;
    control.save(spool->file());
    return;
  }
}

void Encoder::State::write_spooled() {
  if (spooled.empty()) return;
  spool->rewind();
  std::uint64_t all = 0;
  for (const Spooled& s : spooled) all += static_cast<std::uint64_t>(s.gop.frames);
  const auto total = static_cast<std::uint64_t>(target_bytes(all));
  double slope = slope_for(static_cast<double>(total) * 0.97);
  double left = 0;
  for (const Spooled& s : spooled) left += s.curve.bytes(slope);
  std::map<int, std::unique_ptr<StreamGeometry>> geometries;
  for (std::size_t i = 0; i < spooled.size(); ++i) {
    const Pending& p = spooled[i].gop;
    auto& geometry = geometries[p.frames];
    if (!geometry) geometry = std::make_unique<StreamGeometry>(header, p.frames);
    std::vector<const BlockGrid*> grids;
    for (int c = 0; c < geometry->components(); ++c) grids.push_back(&geometry->grid(c));
    RateControl control(header, grids, spool->file());

    // What the end of the stream and the heads of the GOPs to come will take.
    std::vector<GopInfo> so_far = index;
    GopInfo worst;
    worst.offset = position;
    worst.bytes = std::uint64_t{1} << 40;
    worst.first_frame = frames;
    worst.frames = p.frames;
    worst.layers.assign(header.layers, {std::uint64_t{1} << 20, 0});
    so_far.push_back(worst);
    std::uint64_t tail = serialise_index(so_far).size() + 2 * kBoxHeaderBytes + kEndPayloadBytes;
    tail += (spooled.size() - i - 1) * (12 + 5 * header.layers);
    GopHeader head;
    head.index = index.size();
    head.first_frame = frames;
    head.frames = p.frames;
    head.times = p.times;
    head.frame_gains = p.frame_gains;
    head.layer_top.assign(header.layers, 0);
    const std::uint64_t own = serialise(header, head).size() + kBoxHeaderBytes;
    require(total > position + tail + own, ErrorKind::kBadArgument,
            "a target of " + std::to_string(total) + " bytes is too small: " + std::to_string(position + tail + own) +
                " are needed before GOP " + std::to_string(i) + " says anything; raise the target or lower --layers");
    const double room = static_cast<double>(total - position - tail);
    const double mine = spooled[i].curve.bytes(slope);
    const double share = i + 1 == spooled.size() ? 1.0 : left > 0 ? mine / left : 1.0;
    const auto budget = static_cast<std::uint64_t>(std::max(0.0, room * share - static_cast<double>(own)));
    left -= mine;
    double lambda = std::exp2(slope);
    LayeredGop divided;
    divided.frames = p.frames;
    Cuts final = control.at(lambda);
    const int layers = layers_for(control, final, lambda);
    require(control.fit(budget, layers, lambda, divided, final), ErrorKind::kBadArgument,
            "a target of " + std::to_string(total) + " bytes is too small: GOP " + std::to_string(i) +
                " cannot be coded in " + std::to_string(budget) + "; raise the target or lower --layers");
    write_controlled(p, control, control.layers(final, lambda, layers), spooled[i].errors, divided);
  }
}

Encoder::Encoder(const VideoInfo& info, const EncoderParams& params, ByteSink& sink, const Backend* backend)
    : state_(std::make_unique<State>(info, params, sink, backend ? *backend : cpu_backend())) {
  State& s = *state_;
  const std::vector<std::uint8_t> head = serialise(s.header);
  (void)parse_stream_header(head.data(), head.size());  // what a decoder would refuse is refused here
  s.coder = s.backend.make_encoder(s.header, {s.params.threads, s.params.simd});
  if (s.params.has_byte_target()) s.spool = std::make_unique<Spool>(s.params.spool_path);
  s.write(kSignature, sizeof kSignature);
  s.write_box("Head", head);
  for (const ExtraBox& box : s.params.boxes) {
    require(box.type.size() == 4 && !is_stream_box(box.type) && box.payload.size() <= kMaxExtraBytes,
            ErrorKind::kBadArgument,
            "an extra box '" + box.type + "' of " + std::to_string(box.payload.size()) + " bytes");
    s.write_box(box.type.c_str(), box.payload);
  }
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
  p.step = static_cast<float>(s.step);
  p.frame_gains = s.gains(p.frames);
  p.has_hash = s.header.lossless;
  if (s.header.lossless) {
    const auto start = std::chrono::steady_clock::now();
    p.hash = hash_samples(gop);
    s.stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  if (s.params.psnr > 0) return s.push_to_psnr(gop, std::move(p));
  if (s.spool) return s.push_to_spool(gop, std::move(p));
  s.coder->push(gop, s.choices(p.frames));
  if (s.header.profile == Profile::kDense && s.params.measure_errors) {
    const bool at_once = s.coder->depth() == 1;  // then no copy is needed
    p.samples = at_once ? std::shared_ptr<const Gop>(std::shared_ptr<void>(), &gop) : std::make_shared<Gop>(gop);
  }
  s.pending.push_back(std::move(p));
  s.drain(s.coder->depth() - 1);
}

void Encoder::push_coefficients(CoefficientGop& coefficients) {
  State& s = *state_;
  require(!s.header.lossless, ErrorKind::kUnsupported,
          "coefficients can be pushed into lossy streams only: a lossless one carries the hash of its samples");
  require(!s.spool && s.params.psnr == 0, ErrorKind::kUnsupported,
          "coefficients can be pushed at constant quality only, not towards a target");
  s.accept(coefficients.frames);
  State::Pending p;
  p.frames = coefficients.frames;
  p.times = coefficients.times;
  p.times.resize(static_cast<std::size_t>(p.frames));
  p.step = static_cast<float>(s.step);
  p.frame_gains = coefficients.frame_gains;
  s.coder->push(coefficients, s.choices(p.frames));
  s.pending.push_back(std::move(p));
  s.drain(s.coder->depth() - 1);
}

CoefficientGop Encoder::transform(const Gop& gop) {
  State& s = *state_;
  CoefficientGop out;
  s.coder->transform(gop, s.gains(gop.frames()), out);
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
  if (s.spool) s.write_spooled();
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
