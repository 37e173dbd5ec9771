// GStreamer's names of planes, and samples to and from its frames.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "trivelet/types.h"

namespace trivelet::gst {

/// Formats whose samples are ours, in the lower bits of bytes or words.
std::optional<PixelFormat> pixel_format_of(GstVideoFormat format);
/// The format of the same planes with the fewest bits that suffice; where none suffices, the one with the most.
/// UNKNOWN where GStreamer has no such planes.
GstVideoFormat format_for(const PixelFormat& format);
/// All names, for caps: "{ GRAY8, I420, ... }".
const char* format_names();

/// Frame `index` of `gop` into `frame`, whose format is format_for(): shifted to its bits.
void copy_out(const Gop& gop, int index, const PixelFormat& format, GstVideoFrame& frame);
/// `frame` into frame `index` of `gop`, exactly.
void copy_in(const GstVideoFrame& frame, Gop& gop, int index);

/// What GStreamer knows of a video, and back. False where it has no numbers for the bytes of such pictures: `to` is
/// then nothing that may be used.
bool describe(const VideoInfo& from, GstVideoInfo& to);
VideoInfo describe(const GstVideoInfo& from);

}  // namespace trivelet::gst
