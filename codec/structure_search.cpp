#include "apps/video/preset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "apps/cli/log.h"
#include "apps/video/metrics.h"
#include "codec/parallel.h"

namespace trivelet::cli {

namespace {

constexpr int kFrames = 65;  // of the beginning that are coded: two GOPs of 33 and 32, or one
constexpr int kWidth = 960;  // and of them the middle
constexpr int kHeight = 544;

/// What is chosen.
struct Structure {
  Wavelet temporal;
  Wavelet spatial;
  int temporal_levels;
  int spatial_levels;
  int gop;
  friend bool operator<(const Structure& a, const Structure& b) {
    return std::tie(a.temporal, a.spatial, a.temporal_levels, a.spatial_levels, a.gop) <
           std::tie(b.temporal, b.spatial, b.temporal_levels, b.spatial_levels, b.gop);
  }
};

/// Frames first … first + frames - 1 of `all`, the middle of them if they are larger than `info` says.
Gop part_of(const Gop& all, const VideoInfo& info, int first, int frames) {
  Gop gop(info, frames);
  gop.set_frames(frames);
  for (int c = 0; c < all.components(); ++c) {
    const VolumeView in = all.plane(c);
    const MutableVolumeView out = gop.plane(c);
    const int top = (in.shape.height - out.shape.height) / 2;
    const auto sample = static_cast<std::size_t>(in.bytes_per_sample);
    const std::size_t left = static_cast<std::size_t>((in.shape.width - out.shape.width) / 2) * sample;
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < out.shape.height; ++y)
        std::memcpy(out.row(f, y), static_cast<const std::byte*>(in.row(first + f, top + y)) + left,
                    static_cast<std::size_t>(out.shape.width) * sample);
  }
  return gop;
}

class Trials {
 public:
  Trials(EncoderParams params, const Gop& frames, const VideoInfo& info)
      : params_(std::move(params)), frames_(frames), info_(info), target_(params_), pool_(params_.threads) {
    info_.width = std::min(info.width, kWidth);
    info_.height = std::min(info.height, kHeight);
    info_.frames = static_cast<std::uint64_t>(frames.frames());
    // At constant quality, whatever the target: structures are compared at one step.
    params_.target_bytes = 0;
    params_.bits_per_pixel = params_.bit_rate = params_.psnr = 0;
    params_.layers = 1;
    if (params_.lossless) return;
    if (params_.step == 0) params_.step = std::exp2((100 - params_.quality) / 12 - 1 + (info.format.bits - 8));
  }

  /// Finds the step that is about right for the target, and what a change of quality is worth there.
  void aim(const Structure& structure, const VideoInfo& whole) {
    if (params_.lossless) return;
    std::optional<double> wanted;  // log2 of bytes or of the mean squared error
    const double pixels = static_cast<double>(info_.width) * info_.height * frames_.frames();
    const double share = pixels / (static_cast<double>(whole.width) * whole.height);
    if (target_.psnr > 0)
      wanted = 2 * info_.format.bits - target_.psnr / (10 * std::log10(2.0));
    else if (target_.bits_per_pixel > 0)
      wanted = std::log2(target_.bits_per_pixel * pixels / 8);
    else if (target_.bit_rate > 0)
      wanted = std::log2(target_.bit_rate / 8 / whole.frame_rate.value() * share);
    else if (target_.target_bytes > 0 && whole.frames > 0)
      wanted = std::log2(static_cast<double>(target_.target_bytes) / static_cast<double>(whole.frames) * share);
    if (target_.has_byte_target()) params_.step = std::exp2(info_.format.bits - 4);
    const auto amount = [&] {
      const Outcome o = code(structure);
      return target_.psnr > 0 ? o.log2_error : o.log2_bytes;
    };
    if (wanted) {
      const double octave = target_.psnr > 0 ? 1.5 : -1;  // what doubling the step does to it
      for (int i = 0; i < 3; ++i)
        params_.step = std::clamp(params_.step * std::exp2((*wanted - amount()) / octave), 0.05, 1e6);
    }
    const Outcome here = code(structure);
    params_.step *= 1.4;
    const Outcome coarser = code(structure);
    params_.step /= 1.4;
    const double exchange =
        (here.log2_bytes - coarser.log2_bytes) / std::max(0.05, coarser.log2_error - here.log2_error);
    bytes_per_error_ = std::clamp(exchange, 0.2, 3.0);
    log::debug("trials at step {:.2f}, {:.2f} octaves of bytes for one of squared error", params_.step,
               bytes_per_error_);
  }

  /// log2 of the bytes for a picture of the same quality; lower is better.
  double cost(const Structure& s) {
    const auto [known, is_new] = costs_.try_emplace(s, 0);
    if (is_new) {
      const Outcome o = code(s);
      known->second = o.log2_bytes + bytes_per_error_ * o.log2_error;
      log::debug("temporal {} x{}, spatial {} x{}, GOPs of {}: cost {:.4f}", to_string(s.temporal), s.temporal_levels,
                 to_string(s.spatial), s.spatial_levels, s.gop, known->second);
    }
    return known->second;
  }

 private:
  struct Outcome {
    double log2_bytes = 0;
    double log2_error = 0;  // of the mean squared error
  };

  Outcome code(const Structure& s) {
    EncoderParams p = params_;
    p.temporal = s.temporal;
    p.spatial = s.spatial;
    p.temporal_levels = s.temporal_levels;
    p.spatial_levels = s.spatial_levels;
    p.gop_frames = s.gop;
    MemorySink sink;
    Encoder encoder(info_, p, sink);
    for (int first = 0; first < frames_.frames(); first += s.gop)
      encoder.push(part_of(frames_, info_, first, std::min(s.gop, frames_.frames() - first)));
    encoder.finish();
    Outcome o;
    o.log2_bytes = std::log2(static_cast<double>(sink.bytes.size()));
    if (p.lossless) return o;
    MemorySource source(sink.bytes.data(), sink.bytes.size());
    DecoderParams reading;
    reading.threads = p.threads;
    Decoder decoder(source, reading);
    Gop decoded = decoder.make_gop();
    VideoError error(info_);
    for (int first = 0; decoder.pull(decoded); first += decoded.frames())
      error.add(part_of(frames_, info_, first, decoded.frames()), decoded, pool_);
    const PlaneError total = error.total();
    o.log2_error = std::log2(std::max(1e-6, total.squared / static_cast<double>(total.samples)));
    return o;
  }

  EncoderParams params_;
  const Gop& frames_;
  VideoInfo info_;
  EncoderParams target_;
  ThreadPool pool_;
  double bytes_per_error_ = 1;
  std::map<Structure, double> costs_;
};

}  // namespace

EncoderParams best_transform(const Command& app, EncoderParams params, VideoInput& video) {
  Gop frames(video.info(), kFrames);
  if (!video.read(frames)) return params;
  EncoderParams resolved;
  {
    MemorySink nowhere;
    resolved = Encoder(video.info(), params, nowhere).params();
  }
  const auto typed = [&app](const char* name) { return app.typed(name); };
  const bool fixed_levels = typed("--levels") || params.layout == Layout::kDyadic;
  Structure best{resolved.temporal, resolved.spatial, resolved.temporal_levels, resolved.spatial_levels,
                 resolved.gop_frames};
  Trials trials(params, frames, video.info());
  trials.aim(best, video.info());
  const auto better = [&](const Structure& s) {
    if (!(trials.cost(s) < trials.cost(best))) return false;
    best = s;
    return true;
  };
  // One thing after the other; what is worth trying next follows from what was best before.
  if (!typed("--temporal-wavelet"))
    for (const Wavelet w : {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kRev137}) {
      if (w == Wavelet::kRev137 && !params.lossless) continue;
      Structure s = best;
      s.temporal = w;
      better(s);
    }
  if (!typed("--wavelet") && params.lossless) {
    Structure s = best;
    s.spatial = Wavelet::kRev137;
    better(s);
  }
  const auto climb = [&](int Structure::*levels, int by, int least, int most) {
    bool any = false;
    for (;;) {
      Structure s = best;
      s.*levels += by;
      if (s.*levels < least || s.*levels > most || !better(s)) return any;
      any = true;
    }
  };
  if (!fixed_levels) {
    const int most = static_cast<int>(std::log2(std::max(1, best.gop)));
    if (!climb(&Structure::temporal_levels, -1, 0, most)) climb(&Structure::temporal_levels, 1, 0, most);
    if (best.temporal != Wavelet::kHaar && best.temporal_levels < resolved.temporal_levels &&
        !typed("--temporal-wavelet")) {
      Structure s = best;  // with fewer levels it may pay
      s.temporal = Wavelet::kHaar;
      if (better(s)) climb(&Structure::temporal_levels, -1, 0, most);
    }
  }
  if (!typed("--gop") && best.temporal_levels > 0 && frames.frames() > best.gop) {
    Structure s = best;
    s.gop = frames.frames();
    better(s);
    ++s.temporal_levels;
    if (!fixed_levels) better(s);
  }
  if (!fixed_levels && !climb(&Structure::spatial_levels, -1, 1, 8)) climb(&Structure::spatial_levels, 1, 1, 8);
  params.temporal = best.temporal;
  params.spatial = best.spatial;
  params.temporal_levels = best.temporal_levels;
  params.spatial_levels = best.spatial_levels;
  params.gop_frames = best.gop;
  log::info("--preset slow: temporal wavelet {}, spatial {}, {}x{} levels, GOPs of {}", to_string(best.temporal),
            to_string(best.spatial), best.temporal_levels, best.spatial_levels, best.gop);
  return params;
}

}  // namespace trivelet::cli
