// GStreamer's names of planes, and samples to and from its frames.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "trivelet/types.h"

namespace trivelet::gst {

/// Formats with the same samples as ours, in the lower bits of bytes or words.
std::optional<PixelFormat> pixel_format_of(GstVideoFormat format);
/// The format of the same planes with the fewest sufficient bits; if none suffices, the one with the most. UNKNOWN if
/// GStreamer has no such planes.
GstVideoFormat format_for(const PixelFormat& format);
/// All names, for caps: "{ GRAY8, I420, ... }".
const char* format_names();

/// Copies frame `index` of `gop` into `frame`, whose format is format_for(): shifted to its bits.
void copy_out(const Gop& gop, int index, const PixelFormat& format, GstVideoFrame& frame);
/// `frame` into frame `index` of `gop`, exactly.
void copy_in(const GstVideoFrame& frame, Gop& gop, int index);

/// Converts to GStreamer's description of a video, and back. False if its numbers cannot hold the sizes of such
/// pictures: `to` must then not be used.
bool describe(const VideoInfo& from, GstVideoInfo& to);
VideoInfo describe(const GstVideoInfo& from);

}  // namespace trivelet::gst
