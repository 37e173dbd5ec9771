// Decides which GOPs are closed and which begin a run, before any of them is coded.
#pragma once

#include <cstdint>

#include "codec/base/stream_header.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Number of GOPs after which an encoder with a target begins a new run. Starting without the previous GOP's step costs
/// about one coding of a GOP; runs are coded in parallel.
inline constexpr int kRunGops = 8;

/// Decides which GOPs must be closed and which begin a run. A run forgets everything learnt from earlier GOPs
/// except what the first GOP of the stream gave. The decisions depend on lengths and scenes only, so they are known
/// before coding. Without motion every GOP is closed; without a target every closed GOP begins a run.
class KeySchedule {
 public:
  KeySchedule(const StreamHeader& header, const EncoderParams& resolved)
      : motion_(header.motion),
        levels_(header.temporal_levels),
        gop_frames_(header.gop_frames),
        interval_(resolved.key_interval),
        target_(resolved.has_byte_target() || resolved.psnr > 0) {}
  struct Start {
    bool must_close = true;
    bool run = true;
  };
  /// How the next GOP starts. Call it once per GOP in order.
  Start next(int frames, bool begins_scene);

 private:
  bool must_close(int frames, bool begins_scene);

  bool motion_;
  int levels_;
  int gop_frames_;
  int interval_;
  bool target_;
  bool first_ = true;
  std::uint64_t since_ = 0;  ///< frames since the last GOP with `must_close`
  int run_ = 0;              ///< GOPs of this run
};

}  // namespace trivelet
