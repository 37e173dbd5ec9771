// Tables of pixel formats and colours between the codec and GStreamer.

#include "apps/gst/formats.h"

#include <algorithm>
#include <cstring>
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

bool same_planes(PixelFormat a, const PixelFormat& b) {
  a.bits = b.bits;
  return a == b;
}

}  // namespace

std::optional<PixelFormat> pixel_format_of(GstVideoFormat format) {
  for (const Known& known : kKnown)
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

const char* format_names() {
  static const std::string names = [] {
    std::string all;
    for (const Known& known : kKnown)
      all += (all.empty() ? "{ " : ", ") + std::string(gst_video_format_to_string(known.format));
    return all + " }";
  }();
  return names.c_str();
}

void copy_out(const Gop& gop, int index, const PixelFormat& format, GstVideoFrame& frame) {
  const PixelFormat to = *pixel_format_of(GST_VIDEO_FRAME_FORMAT(&frame));
  const int shift = to.bits - format.bits;
  for (int c = 0; c < gop.components(); ++c) {
    const VolumeView from = gop.plane(c);
    auto* data = static_cast<std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, c));
    const std::ptrdiff_t stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, c);
    for (int y = 0; y < from.shape.height; ++y) {
      const std::byte* in = from.row(index, y);
      std::uint8_t* out = data + y * stride;
      if (shift == 0) {
        std::memcpy(out, in, from.row_bytes());
        continue;
      }
      for (int x = 0; x < from.shape.width; ++x) {
        int v = from.bytes_per_sample == 1 ? static_cast<int>(in[x]) : reinterpret_cast<const std::uint16_t*>(in)[x];
        v = shift > 0 ? v << shift : v >> -shift;
        if (to.bits <= 8)
          out[x] = static_cast<std::uint8_t>(v);
        else
          reinterpret_cast<std::uint16_t*>(out)[x] = static_cast<std::uint16_t>(v);
      }
    }
  }
}

void copy_in(const GstVideoFrame& frame, Gop& gop, int index) {
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView to = gop.plane(c);
    const auto* data = static_cast<const std::uint8_t*>(GST_VIDEO_FRAME_PLANE_DATA(&frame, c));
    const std::ptrdiff_t stride = GST_VIDEO_FRAME_PLANE_STRIDE(&frame, c);
    for (int y = 0; y < to.shape.height; ++y) std::memcpy(to.row(index, y), data + y * stride, to.row_bytes());
  }
}

bool describe(const VideoInfo& from, GstVideoInfo& to) {
  if (!gst_video_info_set_format(&to, format_for(from.format), static_cast<guint>(from.width),
                                 static_cast<guint>(from.height)))
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
