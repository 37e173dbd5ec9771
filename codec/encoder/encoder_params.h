// From a caller's parameters to the header of the stream.
#pragma once

#include "codec/base/stream_header.h"
#include "trivelet/codec.h"

namespace trivelet {

/// What an encoder is asked for: of videos EncoderParams, of volumes what is here as well.
struct CodingParams : EncoderParams {
  CodingParams() = default;
  CodingParams(const EncoderParams& video) : EncoderParams(video) {}
  bool is_volume = false;  ///< of the frames at the ends of GOPs none is worth more than others
  Layout layout = Layout::kT2d;
  bool mixed = false;     ///< predictive profile: each block is also coded with mixed contexts, the smaller is taken
  double still_step = 0;  ///< resolved: `step` of GOPs without motion, at constant quality
};

/// An encoder of slices, or of frames.
Encoder make_encoder(const VideoInfo& info, const CodingParams& params, ByteSink& sink,
                     const Backend* backend = nullptr);

/// Parameters with every default resolved, checked against each other and the video. Throws BadArgument.
CodingParams resolve(const VideoInfo& video, CodingParams params);

/// What Motion::kDefault means with these parameters; else `params.motion`.
Motion chosen_motion(const EncoderParams& params);

/// Frames of a GOP without motion: one more than a multiple of 2^4, so that quality is even at both ends.
inline constexpr int kStillGopFrames = 33;
/// The quantiser step of EncoderParams::quality. `params.motion`: as chosen.
double step_of_quality(const EncoderParams& params, int bits);

/// What EncoderParams::gop_frames = 0 means, once motion and profile are chosen.
int usual_gop_frames(const VideoInfo& video, const EncoderParams& params);

/// Whether coefficients are rounded by rate and distortion (rounding.h): at constant quality, in streams that may have
/// motion.
bool rounds_by_cost(const EncoderParams& resolved);

/// Whether GOPs with motion are rounded by the decoded error (motion_rounding.h), which exists on the CPU alone.
bool rounds_along_motion(const EncoderParams& params);

/// Whether streams are coded on the CPU alone.
bool needs_cpu(const EncoderParams& params);

/// Whether backends may begin with later GOPs (GopChoices::key): GOPs may have motion and each is coded once.
bool uses_lookahead(const EncoderParams& resolved);

/// The header of a stream with resolved parameters.
StreamHeader make_header(const VideoInfo& video, const CodingParams& params);

/// The target's bytes for this number of frames; 0 without a target, or if the target does not define a part of the
/// video.
double target_share(const VideoInfo& video, const EncoderParams& params, double frames);

/// The target's bytes for frames from `first` to `last`. With target_bytes, `frames` is the length of the video.
double bytes_wanted(const VideoInfo& video, const EncoderParams& params, double frames, FrameTime first,
                    FrameTime last);

}  // namespace trivelet
