// The state that the parts of an encoder share: parameters, stream header, backend, and times of the stages.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "codec/backend.h"
#include "codec/base/stream_header.h"
#include "codec/encoder/encoder_params.h"
#include "codec/encoder/gop_work.h"
#include "codec/rate/rate_control.h"
#include "codec/threads/parallel.h"
#include "codec/threads/stage_timer.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Constant after construction except for `coder` and `pool`, which only the calling thread of the encoder uses, and
/// the times, which any thread may add to.
class EncoderContext {
 public:
  /// A null backend means the CPU. `keeps_samples` is BackendOptions::keeps_samples, used where errors are measured.
  EncoderContext(const VideoInfo& video, const CodingParams& asked, const Backend* given, bool keeps_samples);

  const CodingParams params;  ///< with every default resolved
  const StreamHeader header;
  const bool fewer_layers;  ///< a GOP too small for all layers may leave some empty
  const Backend& backend;
  std::unique_ptr<GopEncoder> coder;
  ThreadPool pool;  ///< for rate control and chunks

  bool has_target() const { return params.has_byte_target() || params.psnr > 0; }
  /// Whether bytes are limited with the sizes of planes alone (RateControl::RateControl with a step). Nothing
  /// is measured then: at equal bytes a GOP cut near the end of its last plane is as good as one cut by its errors.
  bool cuts_by_plane() const { return limits_bytes() && header.profile == Profile::kFast && !header.motion; }
  /// Whether GOPs are cut to a number of bytes.
  bool limits_bytes() const { return params.has_byte_target() || params.max_rate > 0; }
  /// Whether errors of layers are measured at constant quality.
  bool measures() const { return header.profile == Profile::kDense && params.measure_errors; }
  std::vector<std::uint8_t> gains(int gop_frames) const;
  GopChoices choices(const PendingGop& p, double step) const;
  /// Sets what follows from `gop` alone about its motion: PendingGop::levels and moves.
  void look_at_motion(const Gop& gop, PendingGop& p);
  int layers_for(const RateControl& control, const Cuts& final, double lambda) const {
    return fewer_layers ? control.layers_worth(final, lambda) : header.layers;
  }

  /// Runs f() and adds its time to a stage. `alone`: f runs in the calling thread without a pool; any thread may then
  /// call this.
  template <class F>
  auto timed(StageTime EncoderStages::*stage, bool alone, const F& f) const {
    struct Add {
      const EncoderContext& context;
      StageTime EncoderStages::*stage;
      StageTime time{};
      ~Add() { context.add_time(stage, time); }
    } add{*this, stage};
    const StageTimer timer(add.time, [this, alone] { return alone ? ThreadPool::Times() : pool_times(); });
    return f();
  }
  /// Runs f(), which calls the backend, and divides its time among the backend's stages.
  template <class F>
  void code(const F& f) const {
    const StageTime before{coder->seconds_transform(), coder->busy_transform()};
    const double busy_coder_before = coder->busy_coder();
    StageTime all;
    {
      const StageTimer timer(all, [this] { return pool_times(); });
      f();
    }
    add_coded(before, busy_coder_before, all);
  }
  EncoderStages stages() const;

 private:
  void add_coded(const StageTime& transform_before, double busy_coder_before, const StageTime& all) const;
  void add_time(StageTime EncoderStages::*stage, const StageTime& time) const;
  ThreadPool::Times pool_times() const;

  mutable std::mutex mutex_;
  mutable EncoderStages stages_;
};

}  // namespace trivelet
