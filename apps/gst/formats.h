// GStreamer's names of planes, and samples to and from its frames.
#pragma once

#include <gst/video/video.h>

#include <optional>

#include "trivelet/types.h"

namespace trivelet::gst {

/// Formats with the same samples as ours: in the lower bits of bytes or words, or like P010 in the upper ones.
std::optional<PixelFormat> pixel_format_of(GstVideoFormat format);
/// The planar format with the fewest sufficient bits; if none suffices, the one with the most. UNKNOWN if GStreamer has
/// no such planes.
GstVideoFormat format_for(const PixelFormat& format);
/// The same samples with U and V in one plane, NV12 or P010; UNKNOWN if there is no such format.
GstVideoFormat interleaved_format_for(const PixelFormat& format);
/// Caps of all formats. Plain YUV comes first: a source that can do everything takes it.
const char* raw_caps();

/// Copies frame `index` of `gop` into `frame`, whose format is format_for() or interleaved_format_for(): shifted to its
/// bits.
void copy_out(const Gop& gop, int index, const PixelFormat& format, GstVideoFrame& frame);
/// `frame` into frame `index` of `gop`, exactly.
void copy_in(const GstVideoFrame& frame, Gop& gop, int index);

/// Converts to GStreamer's description of a video in `format`, and back. False if its numbers cannot hold the sizes of
/// such pictures: `to` must then not be used.
bool describe(const VideoInfo& from, GstVideoFormat format, GstVideoInfo& to);
VideoInfo describe(const GstVideoInfo& from);

}  // namespace trivelet::gst
