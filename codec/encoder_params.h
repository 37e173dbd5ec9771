// From what a caller asks of an encoder to the header of its stream.
#pragma once

#include "codec/container.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Parameters with every default resolved, checked against each other and the video. Throws BadArgument.
EncoderParams resolve(const VideoInfo& video, EncoderParams params);

/// Whether coefficients are rounded by what they cost (rounding.h): at constant quality, in streams that may have motion.
bool rounds_by_cost(const EncoderParams& resolved);

/// The header of a stream with resolved parameters.
StreamHeader make_header(const VideoInfo& video, const EncoderParams& params);

/// Bytes that a target leaves for so many frames; 0 without one, or while it says nothing about a part of the video.
double target_share(const VideoInfo& video, const EncoderParams& params, double frames);

/// Where GOPs of a stream begin anew: such a GOP does not lean on the one before, and what is learnt from GOP to GOP is
/// forgotten. Only lengths and scenes decide, so that it is known before anything is coded. Without motion each does.
class KeySchedule {
 public:
  KeySchedule(const StreamHeader& header, int key_interval)
      : motion_(header.motion),
        levels_(header.temporal_levels),
        gop_frames_(header.gop_frames),
        interval_(key_interval) {}
  /// Of the next GOP; to be asked of each in order.
  bool begins_anew(int frames, bool begins_scene);

 private:
  bool motion_;
  int levels_;
  int gop_frames_;
  int interval_;
  bool first_ = true;
  std::uint64_t since_ = 0;  ///< frames from the last one that did
};

}  // namespace trivelet
