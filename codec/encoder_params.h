// From what a caller asks of an encoder to the header of its stream.
#pragma once

#include "trivelet/codec.h"
#include "codec/container.h"

namespace trivelet {

/// Parameters with every default resolved, checked against each other and the video. Throws BadArgument.
EncoderParams resolve(const VideoInfo& video, EncoderParams params);

/// Whether coefficients are rounded by what they cost (rounding.h): at constant quality, in streams that may have motion.
bool rounds_by_cost(const EncoderParams& resolved);

/// The header of a stream with resolved parameters.
StreamHeader make_header(const VideoInfo& video, const EncoderParams& params);

/// Bytes that a target leaves for so many frames; 0 without one, or while it says nothing about a part of the video.
double target_share(const VideoInfo& video, const EncoderParams& params, double frames);

}  // namespace trivelet
