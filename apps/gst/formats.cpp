// Tables of pixel formats and colours between the codec and GStreamer.

#include "apps/gst/formats.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>

namespace trivelet::gst {

namespace {

struct Known {
  GstVideoFormat format;
  PixelFormat samples;
};

constexpr PixelFormat grey(int bits) { return {.model = ColourModel::kGrey, .bits = bits}; }
constexpr PixelFormat yuv(int w, int h, int bits, bool alpha = false) {
  return {.bits = bits, .log2_chroma_w = w, .log2_chroma_h = h, .alpha = alpha};
}
constexpr PixelFormat rgb(int bits, bool alpha = false) {
  return {.model = ColourModel::kRgb, .bits = bits, .alpha = alpha};
}

// Planes in our order: luma and chroma, or G, B, R; then alpha.
constexpr Known kKnown[] = {
    {GST_VIDEO_FORMAT_GRAY8, grey(8)},
    {GST_VIDEO_FORMAT_GRAY16_LE, grey(16)},
    {GST_VIDEO_FORMAT_I420, yuv(1, 1, 8)},
    {GST_VIDEO_FORMAT_I420_10LE, yuv(1, 1, 10)},
    {GST_VIDEO_FORMAT_I420_12LE, yuv(1, 1, 12)},
    {GST_VIDEO_FORMAT_Y42B, yuv(1, 0, 8)},
    {GST_VIDEO_FORMAT_I422_10LE, yuv(1, 0, 10)},
    {GST_VIDEO_FORMAT_I422_12LE, yuv(1, 0, 12)},
    {GST_VIDEO_FORMAT_Y444, yuv(0, 0, 8)},
    {GST_VIDEO_FORMAT_Y444_10LE, yuv(0, 0, 10)},
    {GST_VIDEO_FORMAT_Y444_12LE, yuv(0, 0, 12)},
    {GST_VIDEO_FORMAT_Y444_16LE, yuv(0, 0, 16)},
    {GST_VIDEO_FORMAT_Y41B, yuv(2, 0, 8)},
    {GST_VIDEO_FORMAT_YUV9, yuv(2, 2, 8)},
    {GST_VIDEO_FORMAT_A420, yuv(1, 1, 8, true)},
    {GST_VIDEO_FORMAT_A420_10LE, yuv(1, 1, 10, true)},
    {GST_VIDEO_FORMAT_A422_10LE, yuv(1, 0, 10, true)},
    {GST_VIDEO_FORMAT_A444_10LE, yuv(0, 0, 10, true)},
    {GST_VIDEO_FORMAT_GBR, rgb(8)},
    {GST_VIDEO_FORMAT_GBR_10LE, rgb(10)},
    {GST_VIDEO_FORMAT_GBR_12LE, rgb(12)},
    {GST_VIDEO_FORMAT_GBRA, rgb(8, true)},
    {GST_VIDEO_FORMAT_GBRA_10LE, rgb(10, true)},
    {GST_VIDEO_FORMAT_GBRA_12LE, rgb(12, true)},
};

// Luma, then U and V in turns.
constexpr Known kInterleaved[] = {
    {GST_VIDEO_FORMAT_NV12, yuv(1, 1, 8)},
    {GST_VIDEO_FORMAT_P010_10LE, yuv(1, 1, 10)},
};

bool is_interleaved(GstVideoFormat format) {
  return std::any_of(std::begin(kInterleaved), std::end(kInterleaved),
                     [&](const Known& known) { return known.format == format; });
}

/// Samples of a component in a frame: they begin at `data`, and stand `step` samples apart.
struct Samples {
  std::uint8_t* data;
  std::ptrdiff_t stride;
  int step;
};

Samples samples_of(const GstVideoFrame& frame, int component) {
  const bool interleaved = is_interleaved(GST_VIDEO_FRAME_FORMAT(&frame)) && component > 0;
  const int plane = interleaved ? 1 : component;
  const bool wide = pixel_format_of(GST_VIDEO_FRAME_FORMAT(&frame))->bits > 8;
  return {static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, plane)) +
              (interleaved ? (component - 1) * (wide ? 2 : 1) : 0),
          GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane), interleaved ? 2 : 1};
}

/// By how many bits the samples of a frame are shifted to the left.
int shift_of(const GstVideoFrame& frame) {
  return GST_VIDEO_FRAME_FORMAT(&frame) == GST_VIDEO_FORMAT_P010_10LE ? 6 : 0;
}

template <class From, class To>
void copy_row(const From* from, int from_step, To* to, int to_step, int count, int shift) {
  for (int x = 0; x < count; ++x) {
    const int v = from[x * from_step];
    to[x * to_step] = static_cast<To>(shift > 0 ? v << shift : v >> -shift);
  }
}

bool same_planes(PixelFormat a, const PixelFormat& b) {
  a.bits = b.bits;
  return a == b;
}

}  // namespace

std::optional<PixelFormat> pixel_format_of(GstVideoFormat format) {
  for (const Known& known : kKnown)
    if (known.format == format) return known.samples;
  for (const Known& known : kInterleaved)
    if (known.format == format) return known.samples;
  return std::nullopt;
}

GstVideoFormat format_for(const PixelFormat& format) {
  const Known* best = nullptr;
  for (const Known& known : kKnown) {
    if (!same_planes(known.samples, format)) continue;
    if (best == nullptr || best->samples.bits < format.bits) best = &known;  // they come with more and more bits
  }
  return best != nullptr ? best->format : GST_VIDEO_FORMAT_UNKNOWN;
}

GstVideoFormat interleaved_format_for(const PixelFormat& format) {
  for (const Known& known : kInterleaved)
    if (known.samples == format) return known.format;
  return GST_VIDEO_FORMAT_UNKNOWN;
}

const char* raw_caps() {
  static const std::string caps = [] {
    std::string others;
    for (const auto* known = std::begin(kInterleaved); known != std::end(kInterleaved); ++known)
      others += std::string(", ") + gst_video_format_to_string(known->format);
    for (const Known& known : kKnown)
      if (known.format != GST_VIDEO_FORMAT_I420) others += std::string(", ") + gst_video_format_to_string(known.format);
    // The order counts between structures, not between the formats of one.
    return "video/x-raw, format=I420; video/x-raw, format={" + others.substr(1) + " }";
  }();
  return caps.c_str();
}

void copy_out(const Gop& gop, int index, const PixelFormat& format, GstVideoFrame& frame) {
  const PixelFormat to = *pixel_format_of(GST_VIDEO_FRAME_FORMAT(&frame));
  const int shift = to.bits - format.bits + shift_of(frame);
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView from = gop.plane(c);
    const auto [data, stride, step] = samples_of(frame, c);
    for (int y = 0; y < from.shape.height; ++y) {
      const auto* in = reinterpret_cast<const std::uint8_t*>(from.row(index, y));
      const auto* wide_in = reinterpret_cast<const std::uint16_t*>(in);
      std::uint8_t* out = data + y * stride;
      auto* wide_out = reinterpret_cast<std::uint16_t*>(out);
      const int width = from.shape.width;
      if (shift == 0 && step == 1)
        std::memcpy(out, in, from.row_bytes());
      else if (to.bits <= 8 && from.bytes_per_sample == 1)
        copy_row(in, 1, out, step, width, shift);
      else if (to.bits <= 8)
        copy_row(wide_in, 1, out, step, width, shift);
      else if (from.bytes_per_sample == 1)
        copy_row(in, 1, wide_out, step, width, shift);
      else
        copy_row(wide_in, 1, wide_out, step, width, shift);
    }
  }
}

void copy_in(const GstVideoFrame& frame, Gop& gop, int index) {
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView to = gop.plane(c);
    const auto [data, stride, step] = samples_of(frame, c);
    for (int y = 0; y < to.shape.height; ++y) {
      const std::uint8_t* in = data + y * stride;
      auto* out = reinterpret_cast<std::uint8_t*>(to.row(index, y));
      if (step == 1 && shift_of(frame) == 0)
        std::memcpy(out, in, to.row_bytes());
      else if (to.bytes_per_sample == 1)
        copy_row(in, step, out, 1, to.shape.width, 0);
      else
        copy_row(reinterpret_cast<const std::uint16_t*>(in), step, reinterpret_cast<std::uint16_t*>(out), 1,
                 to.shape.width, -shift_of(frame));
    }
  }
}

bool describe(const VideoInfo& from, GstVideoFormat format, GstVideoInfo& to) {
  if (!gst_video_info_set_format(&to, format, static_cast<guint>(from.width), static_cast<guint>(from.height)))
    return false;
  if (from.frame_rate.num > 0) {
    to.fps_n = from.frame_rate.num;
    to.fps_d = from.frame_rate.den;
  }
  if (from.sample_aspect.num > 0) {
    to.par_n = from.sample_aspect.num;
    to.par_d = from.sample_aspect.den;
  }
  if (from.field_order != 0) {
    to.interlace_mode = GST_VIDEO_INTERLACE_MODE_INTERLEAVED;
    GST_VIDEO_INFO_FIELD_ORDER(&to) =
        from.field_order == 1 ? GST_VIDEO_FIELD_ORDER_TOP_FIELD_FIRST : GST_VIDEO_FIELD_ORDER_BOTTOM_FIELD_FIRST;
  }
  GstVideoColorimetry& colour = to.colorimetry;  // unspecified code points leave the defaults for the size
  if (from.colour.range == 1) colour.range = GST_VIDEO_COLOR_RANGE_16_235;
  if (from.colour.range == 2) colour.range = GST_VIDEO_COLOR_RANGE_0_255;
  if (from.colour.matrix != 2 && from.format.model == ColourModel::kYuv)
    colour.matrix = gst_video_color_matrix_from_iso(from.colour.matrix);
  if (from.colour.transfer != 2) colour.transfer = gst_video_transfer_function_from_iso(from.colour.transfer);
  if (from.colour.primaries != 2) colour.primaries = gst_video_color_primaries_from_iso(from.colour.primaries);
  return true;
}

VideoInfo describe(const GstVideoInfo& from) {
  VideoInfo to;
  to.width = GST_VIDEO_INFO_WIDTH(&from);
  to.height = GST_VIDEO_INFO_HEIGHT(&from);
  to.format = pixel_format_of(GST_VIDEO_INFO_FORMAT(&from)).value_or(PixelFormat{});
  if (from.fps_n > 0 && from.fps_d > 0) to.frame_rate = {from.fps_n, from.fps_d};
  if (from.par_n > 0 && from.par_d > 0) to.sample_aspect = {from.par_n, from.par_d};
  if (from.interlace_mode == GST_VIDEO_INTERLACE_MODE_INTERLEAVED)
    to.field_order = GST_VIDEO_INFO_FIELD_ORDER(&from) == GST_VIDEO_FIELD_ORDER_BOTTOM_FIELD_FIRST ? 2 : 1;
  const GstVideoColorimetry& colour = from.colorimetry;
  const auto code = [](guint value) { return static_cast<std::uint8_t>(value > 0 && value < 256 ? value : 2); };
  to.colour.matrix =
      to.format.model == ColourModel::kRgb ? std::uint8_t{0} : code(gst_video_color_matrix_to_iso(colour.matrix));
  to.colour.transfer = code(gst_video_transfer_function_to_iso(colour.transfer));
  to.colour.primaries = code(gst_video_color_primaries_to_iso(colour.primaries));
  to.colour.range = colour.range == GST_VIDEO_COLOR_RANGE_16_235  ? std::uint8_t{1}
                    : colour.range == GST_VIDEO_COLOR_RANGE_0_255 ? std::uint8_t{2}
                                                                  : std::uint8_t{0};
  return to;
}

}  // namespace trivelet::gst
