// What an Encoder holds: shared by encoder.cpp, which codes GOPs and writes them, and encoder_targets.cpp, which finds
// the steps and cuts that meet a target.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/backend.h"
#include "codec/container.h"
#include "codec/rate_control.h"
#include "codec/sample_error.h"
#include "codec/spool.h"
#include "trivelet/codec.h"

namespace trivelet {

struct Encoder::State {
  /// A GOP on its way to the stream.
  struct Pending {
    std::vector<FrameTime> times;
    int frames = 0;
    bool has_hash = false;
    std::uint64_t hash = 0;
    float step = 0;
    std::vector<std::uint8_t> frame_gains;
    std::shared_ptr<const Gop> samples;  ///< until it is drained, where errors are to be measured
  };
  struct Spooled {
    Pending gop;
    RateCurve curve;
    SampleErrorModel errors;
  };

  EncoderParams params;
  StreamHeader header;
  ByteSink& sink;
  const Backend& backend;
  std::unique_ptr<GopEncoder> coder;
  std::unique_ptr<GopDecoder> decoder;  ///< measures errors, where the backend does not
  ThreadPool pool;                      ///< of rate control
  CodecStats stats;
  std::vector<GopInfo> index;
  std::uint64_t position = 0;
  std::uint64_t frames = 0;  ///< written
  bool finished = false;
  SampleErrorModel measured;  ///< of the GOP measured last
  int measured_age = 0;       ///< GOPs since
  bool fewer_layers;          ///< layers of GOPs that are too small for so many may be empty
  std::vector<Pending> pending;

  // With a target
  double step;                 ///< of the next GOP
  double target_error = 0;     ///< mean squared
  double aligned_slope = 2.7;  ///< log2 of the slope at which all planes but the last are sent, over that of the step
  double correction = 1;       ///< target PSNR: measured error over the predicted one
  std::unique_ptr<Spool> spool;
  std::vector<Spooled> spooled;

  State(const VideoInfo& video, const EncoderParams& p, ByteSink& s, const Backend& b);

  // encoder.cpp
  void write(const void* data, std::size_t size);
  void write_box(const char* type, const std::vector<std::uint8_t>& payload);
  void accept(int gop_frames);
  GopChoices choices(int gop_frames) const;
  std::vector<std::uint8_t> gains(int gop_frames) const;
  int layers_for(const RateControl& control, const Cuts& final, double lambda) const;
  /// Writes GOPs that the backend has done, until so many are left in it.
  void drain(int in_flight);
  /// The header of the GOP that is written next, but for what its layers say.
  GopHeader head_of(const Pending& p) const;
  void write_layers(const Pending& p, const LayeredGop& layers, const std::vector<double>& errors);
  void write_controlled(const Pending& p, RateControl& control, const std::vector<Cuts>& layers,
                        const SampleErrorModel& curve, LayeredGop& divided);

  // encoder_targets.cpp
  /// Decodes the GOP at some of these cuts, if what was measured before is too long ago or does not apply.
  void measure(const Gop& gop, const Pending& p, RateControl& control, const std::vector<Cuts>& layers);
  double measured_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts);
  double decoded_error(const Gop& gop, const Pending& p, RateControl& control, const Cuts& cuts);
  void push_to_psnr(const Gop& gop, Pending p);
  void push_to_spool(const Gop& gop, Pending p);
  void write_spooled();
  double target_bytes(std::uint64_t frame_count) const;
  double slope_for(double bytes) const;
};

}  // namespace trivelet
