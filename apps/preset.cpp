#include "apps/preset.h"

#include <spdlog/spdlog.h>

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "codec/container.h"

namespace trivelet::cli {

namespace {

constexpr int kFrames = 66;          // of the beginning that are coded: two GOPs of 33, or one of 65
constexpr double kGainOfOctave = 5;  // dB that twice the bytes bring, about: it weighs small differences only

std::vector<Gop> cut_into(const Gop& all, const VideoInfo& info, int length) {
  std::vector<Gop> gops;
  for (int first = 0; first < all.frames(); first += length) {
    const int n = std::min(length, all.frames() - first);
    gops.emplace_back(info, n);
    Gop& gop = gops.back();
    gop.set_frames(n);
    for (int c = 0; c < all.components(); ++c) {
      const VolumeView in = all.plane(c);
      const MutableVolumeView out = gop.plane(c);
      const std::size_t bytes =
          static_cast<std::size_t>(in.shape.width) * static_cast<std::size_t>(in.bytes_per_sample);
      for (int f = 0; f < n; ++f)
        for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(f, y), in.row(first + f, y), bytes);
    }
  }
  return gops;
}

/// log2 of the bytes for a picture of the same quality; lower is better.
double cost_of(const EncoderParams& params, const Gop& frames, VideoInfo info) {
  info.frames = static_cast<std::uint64_t>(frames.frames());
  EncoderParams p = params;
  p.layers = 1;
  MemorySink sink;
  Encoder encoder(info, p, sink);
  for (const Gop& gop : cut_into(frames, info, encoder.gop_frames())) encoder.push(gop);
  encoder.finish();
  double cost = std::log2(static_cast<double>(sink.bytes.size()));
  if (params.lossless) return cost;
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  const Decoder decoder(source, {});
  double error = 0;
  for (const GopInfo& gop : decoder.info().gops) error += error_of(gop.layers.back().error) * gop.frames;
  return cost + 10 * std::log10(error) / kGainOfOctave;
}

}  // namespace

EncoderParams best_transform(const CLI::App& app, EncoderParams params, VideoInput& video) {
  Gop frames(video.info(), kFrames);
  if (!video.read(frames)) return params;
  EncoderParams trial = params;  // at constant quality, whatever the target: transforms are compared at one step
  trial.target_bytes = 0;
  trial.bits_per_pixel = trial.bit_rate = trial.psnr = 0;
  trial.profile = Profile::kDense;

  std::vector<std::pair<Wavelet, int>> choices;  // temporal wavelet, GOP
  const bool wavelet_typed = app.count("--temporal-wavelet") > 0;
  const bool gop_typed = app.count("--gop") > 0;
  for (const int gop : {params.gop_frames, 65}) {
    if (gop != params.gop_frames && (gop_typed || frames.frames() <= params.gop_frames)) continue;
    for (const Wavelet w : {params.temporal, Wavelet::kCdf53, Wavelet::kHaar}) {
      if (w != params.temporal && wavelet_typed) continue;
      choices.emplace_back(w, gop);
    }
  }
  double least = 1e30;
  for (const auto& [wavelet, gop] : choices) {
    trial.temporal = wavelet;
    trial.gop_frames = gop;
    const double cost = cost_of(trial, frames, video.info());
    spdlog::debug("temporal {}, GOPs of {}: cost {:.4f}", to_string(wavelet), gop, cost);
    if (cost >= least) continue;
    least = cost;
    params.temporal = wavelet;
    params.gop_frames = gop;
  }
  spdlog::debug("--preset slow: temporal wavelet {}, GOPs of {}", to_string(params.temporal), params.gop_frames);
  return params;
}

}  // namespace trivelet::cli
