// From what a caller asks of an encoder to the header of its stream.
#pragma once

#include "codec/base/stream_header.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Parameters with every default resolved, checked against each other and the video. Throws BadArgument.
EncoderParams resolve(const VideoInfo& video, EncoderParams params);

/// Frames of a GOP with motion, where nobody says how many: whole pyramids, each of which can be halved evenly. Two of
/// them learn more and have fewer heads; in large pictures, where that is little, they take much memory.
int moving_gop_frames(const VideoInfo& video, Effort effort);
/// The same of the predictive profile. Every first frame costs several times what others do, so that twice as many
/// frames as usual save up to a fifth of the bytes of what moves little, and 2 % of others; large pictures have as many
/// as memory is to be had for, the usual ones at least, and so has the fast form, whose one set of weights a GOP is for
/// what moves and what stands still.
int predicted_gop_frames(const VideoInfo& video, Effort effort);

/// Whether coefficients are rounded by what they cost (rounding.h): at constant quality, in streams that may have
/// motion.
bool rounds_by_cost(const EncoderParams& resolved);

/// Whether that is done to GOPs with motion by what decoding leaves (motion_rounding.h), which the CPU alone does.
bool rounds_along_motion(const EncoderParams& params);

/// Whether GOPs may have motion and each is coded once: backends may then begin with the next ones (GopChoices::key).
bool uses_lookahead(const EncoderParams& resolved);

/// The header of a stream with resolved parameters.
StreamHeader make_header(const VideoInfo& video, const EncoderParams& params);

/// Bytes that a target leaves for so many frames; 0 without one, or while it says nothing about a part of the video.
double target_share(const VideoInfo& video, const EncoderParams& params, double frames);

/// Bytes that the target asks of frames from `first` to `last`; of so many, with target_bytes of a video of so many.
double bytes_wanted(const VideoInfo& video, const EncoderParams& params, double frames, FrameTime first,
                    FrameTime last);

/// GOPs after which an encoder with a target begins a new run. What it learns about the steps from GOP to GOP is worth
/// a coding of one of them; runs are coded side by side.
inline constexpr int kRunGops = 8;

/// Where GOPs of a stream begin anew: such a GOP does not depend on the one before. And where runs begin: what is
/// learnt from GOP to GOP is forgotten there, but for what the first GOP of all told. Only lengths and scenes decide,
/// so that it is known before anything is coded. Without motion each GOP begins anew, and without a target each of
/// these a run.
class KeySchedule {
 public:
  KeySchedule(const StreamHeader& header, const EncoderParams& resolved)
      : motion_(header.motion),
        levels_(header.temporal_levels),
        gop_frames_(header.gop_frames),
        interval_(resolved.key_interval),
        target_(resolved.has_byte_target() || resolved.psnr > 0) {}
  struct Begins {
    bool anew = true;
    bool run = true;
  };
  /// What the next GOP begins; to be asked of each in order.
  Begins next(int frames, bool begins_scene);

 private:
  bool begins_anew(int frames, bool begins_scene);

  bool motion_;
  int levels_;
  int gop_frames_;
  int interval_;
  bool target_;
  bool first_ = true;
  std::uint64_t since_ = 0;  ///< frames from the last one that began anew
  int run_ = 0;              ///< GOPs of this run
};

}  // namespace trivelet
