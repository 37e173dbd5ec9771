// Samples between FFmpeg's pixel layouts and planes, without loss.
//
// FFmpeg describes a layout per component: which plane, bytes from pixel to pixel (step), offset, shift and depth.
// Three cases cover everything but floating point, Bayer patterns and hardware surfaces:
//   aligned   8 or 16 bits a sample at a constant step: planar formats (copied row by row), nv12, p010, rgb24, yuyv422
//   … small     fewer than 8 bits somewhere (monochrome, rgb565, rgb8): stretched to 8 bits by v -> round(255 v / max),
//             which is one to one
//   palette   looked up; gbrap if a colour in use is not opaque, else gbrp
// RGB goes into the plane order G, B, R of types.h; big-endian samples become native.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

extern "C" {
#include <libavutil/imgutils.h>
}

namespace trivelet::io {

namespace {

enum class Layout { kNone, kAligned, kSmall, kPalette };

/// FFmpeg's component for ours: RGB is R, G, B there and G, B, R here.
int av_component(const AVPixFmtDescriptor& desc, int component) {
  constexpr std::array<int, 4> kFromRgb = {1, 2, 0, 3};
  return (desc.flags & AV_PIX_FMT_FLAG_RGB) ? kFromRgb[static_cast<std::size_t>(component)] : component;
}

Layout layout_of(AVPixelFormat format) {
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(format);
  if (desc == nullptr || (desc->flags & (AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT)))
    return Layout::kNone;
  // X, Y, Z of digital cinema are not a colour model of ours; the luma of uyyvyy411 has no constant step.
  if (format == AV_PIX_FMT_XYZ12LE || format == AV_PIX_FMT_XYZ12BE || format == AV_PIX_FMT_UYYVYY411)
    return Layout::kNone;
  if (desc->flags & AV_PIX_FMT_FLAG_PAL) return Layout::kPalette;
  if (desc->nb_components == 0) return Layout::kNone;
  bool equal = true;
  int least = 16;
  for (int c = 0; c < desc->nb_components; ++c) {
    const int depth = desc->comp[c].depth;
    if (depth > 16) return Layout::kNone;
    equal = equal && depth == desc->comp[0].depth;
    least = std::min(least, depth);
  }
  if (least < 8) {
    const bool known_model = desc->nb_components == 1 || (desc->flags & AV_PIX_FMT_FLAG_RGB);
    return known_model && !(desc->flags & AV_PIX_FMT_FLAG_ALPHA) ? Layout::kSmall : Layout::kNone;
  }
  return equal && !(desc->flags & AV_PIX_FMT_FLAG_BITSTREAM) ? Layout::kAligned : Layout::kNone;
}

template <class T, bool kSwap>
void gather(const std::uint8_t* src, int step, int shift, unsigned mask, T* dst, int width) {
  for (int x = 0; x < width; ++x, src += step) {
    unsigned value;
    if constexpr (sizeof(T) == 1)
      value = src[0];
    else
      value = kSwap ? (unsigned{src[0]} << 8 | src[1]) : (unsigned{src[1]} << 8 | src[0]);
    dst[x] = static_cast<T>((value >> shift) & mask);
  }
}

template <class T, bool kSwap>
void scatter(const T* src, std::uint8_t* dst, int step, int width) {
  for (int x = 0; x < width; ++x, dst += step) {
    if constexpr (sizeof(T) == 1) {
      dst[0] = src[x];
    } else {
      dst[kSwap ? 0 : 1] = static_cast<std::uint8_t>(src[x] >> 8);
      dst[kSwap ? 1 : 0] = static_cast<std::uint8_t>(src[x]);
    }
  }
}

void unpack_aligned(const AVFrame& frame, const AVPixFmtDescriptor& desc, Gop& gop, int index) {
  const bool big = (desc.flags & AV_PIX_FMT_FLAG_BE) != 0;
  for (int c = 0; c < gop.components(); ++c) {
    const AVComponentDescriptor& comp = desc.comp[av_component(desc, c)];
    const MutableVolumeView view = gop.plane(c);
    const int bytes = view.bytes_per_sample;
    const bool planar = comp.step == bytes && comp.shift == 0;
    // The reader checks samples of planes; in shared words the neighbours are masked off.
    const unsigned mask = planar ? 0xffffu : (1u << comp.depth) - 1;
    for (int y = 0; y < view.shape.height; ++y) {
      const std::uint8_t* src =
          frame.data[comp.plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[comp.plane] + comp.offset;
      std::byte* dst = view.row(index, y);
      if (planar && !(big && bytes == 2))
        std::memcpy(dst, src, static_cast<std::size_t>(view.shape.width) * static_cast<std::size_t>(bytes));
      else if (bytes == 1)
        gather<std::uint8_t, false>(src, comp.step, comp.shift, mask, reinterpret_cast<std::uint8_t*>(dst),
                                    view.shape.width);
      else
        (big ? gather<std::uint16_t, true> : gather<std::uint16_t, false>)(src, comp.step, comp.shift, mask,
                                                                           reinterpret_cast<std::uint16_t*>(dst),
                                                                           view.shape.width);
    }
  }
}

void unpack_small(const AVFrame& frame, const AVPixFmtDescriptor& desc, Gop& gop, int index) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(frame.width));
  const std::uint8_t* data[4] = {frame.data[0], frame.data[1], frame.data[2], frame.data[3]};
  for (int c = 0; c < gop.components(); ++c) {
    const int component = av_component(desc, c);
    const unsigned most = (1u << desc.comp[component].depth) - 1;
    const bool inverted = frame.format == AV_PIX_FMT_MONOWHITE;
    const MutableVolumeView view = gop.plane(c);
    for (int y = 0; y < view.shape.height; ++y) {
      av_read_image_line2(values.data(), data, frame.linesize, &desc, 0, y, component, view.shape.width, 0, 2);
      std::byte* dst = view.row(index, y);
      for (const std::uint16_t read : values) {
        const unsigned value = inverted ? most - read : read;
        *dst++ = static_cast<std::byte>((value * 255 + most / 2) / most);
      }
    }
  }
}

std::uint32_t palette_colour(const AVFrame& frame, int x, int y) {
  const std::uint8_t entry = frame.data[0][static_cast<std::ptrdiff_t>(y) * frame.linesize[0] + x];
  std::uint32_t argb;
  std::memcpy(&argb, frame.data[1] + 4 * std::size_t{entry}, 4);
  return argb;
}

bool palette_is_opaque(const AVFrame& frame) {
  for (int y = 0; y < frame.height; ++y)
    for (int x = 0; x < frame.width; ++x)
      if (palette_colour(frame, x, y) >> 24 != 255) return false;
  return true;
}

void unpack_palette(const AVFrame& frame, Gop& gop, int index) {
  constexpr std::array<int, 4> kShift = {8, 0, 16, 24};  // G, B, R, A in native ARGB words
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView view = gop.plane(c);
    for (int y = 0; y < view.shape.height; ++y) {
      std::byte* dst = view.row(index, y);
      for (int x = 0; x < view.shape.width; ++x)
        dst[x] = static_cast<std::byte>(palette_colour(frame, x, y) >> kShift[static_cast<std::size_t>(c)] & 255);
    }
  }
}

}  // namespace

bool implies_full_range(AVPixelFormat format) {
  const char* name = av_get_pix_fmt_name(format);
  return name != nullptr && std::string_view(name).substr(0, 4) == "yuvj";
}

std::optional<PixelFormat> same_samples(AVPixelFormat format) {
  const Layout layout = layout_of(format);
  if (layout == Layout::kNone || layout == Layout::kPalette) return std::nullopt;
  const AVPixFmtDescriptor& desc = *av_pix_fmt_desc_get(format);
  PixelFormat f;
  f.bits = layout == Layout::kSmall ? 8 : desc.comp[0].depth;
  f.alpha = (desc.flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  if (desc.nb_components <= 2) {
    f.model = ColourModel::kGrey;
  } else if (desc.flags & AV_PIX_FMT_FLAG_RGB) {
    f.model = ColourModel::kRgb;
  } else {
    f.log2_chroma_w = desc.log2_chroma_w;
    f.log2_chroma_h = desc.log2_chroma_h;
  }
  if (f.components() != desc.nb_components || f.log2_chroma_w > 2 || f.log2_chroma_h > 2) return std::nullopt;
  return f;
}

std::optional<PixelFormat> unpack_format(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  if (layout_of(format) != Layout::kPalette) return same_samples(format);
  return PixelFormat{.model = ColourModel::kRgb, .alpha = !palette_is_opaque(frame)};
}

void unpack(const AVFrame& frame, Gop& gop, int index) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(format);
  switch (layout_of(format)) {
    case Layout::kAligned: unpack_aligned(frame, *desc, gop, index); break;
    case Layout::kSmall: unpack_small(frame, *desc, gop, index); break;
    case Layout::kPalette: unpack_palette(frame, gop, index); break;
    case Layout::kNone: fail(ErrorKind::kInternal, "no planes for this pixel layout");
  }
}

AVPixelFormat planar_av_format(const PixelFormat& format) {
  if (format.is_signed) return AV_PIX_FMT_NONE;
  return av_get_pix_fmt(to_string(format).c_str());
}

AVPixelFormat find_av_format(const PixelFormat& format, bool full_range, const AVPixelFormat* candidates) {
  if (format.is_signed) return AV_PIX_FMT_NONE;
  if (candidates == nullptr) return planar_av_format(format);
  AVPixelFormat best = AV_PIX_FMT_NONE;
  int best_planes = 0;
  for (; *candidates != AV_PIX_FMT_NONE; ++candidates) {
    const std::optional<PixelFormat> samples = same_samples(*candidates);
    if (!samples || *samples != format || layout_of(*candidates) != Layout::kAligned) continue;
    if (implies_full_range(*candidates) && !full_range) continue;
    const AVPixFmtDescriptor& desc = *av_pix_fmt_desc_get(*candidates);
    const bool own_words = std::all_of(desc.comp, desc.comp + desc.nb_components,
                                       [](const AVComponentDescriptor& comp) { return comp.shift == 0; });
    const int planes = av_pix_fmt_count_planes(*candidates);
    if (!own_words || planes <= best_planes) continue;
    best = *candidates;
    best_planes = planes;
  }
  return best;
}

void pack(const Gop& gop, int index, AVFrame& frame) {
  const AVPixFmtDescriptor& desc = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool big = (desc.flags & AV_PIX_FMT_FLAG_BE) != 0;
  for (int c = 0; c < gop.components(); ++c) {
    const AVComponentDescriptor& comp = desc.comp[av_component(desc, c)];
    const VolumeView view = gop.plane(c);
    const int bytes = view.bytes_per_sample;
    for (int y = 0; y < view.shape.height; ++y) {
      const std::byte* src = view.row(index, y);
      std::uint8_t* dst =
          frame.data[comp.plane] + static_cast<std::ptrdiff_t>(y) * frame.linesize[comp.plane] + comp.offset;
      if (comp.step == bytes && !(big && bytes == 2))
        std::memcpy(dst, src, static_cast<std::size_t>(view.shape.width) * static_cast<std::size_t>(bytes));
      else if (bytes == 1)
        scatter<std::uint8_t, false>(reinterpret_cast<const std::uint8_t*>(src), dst, comp.step, view.shape.width);
      else
        (big ? scatter<std::uint16_t, true>
             : scatter<std::uint16_t, false>)(reinterpret_cast<const std::uint16_t*>(src), dst, comp.step,
                                              view.shape.width);
    }
  }
}

bool is_bilevel(AVPixelFormat format) { return format == AV_PIX_FMT_MONOWHITE || format == AV_PIX_FMT_MONOBLACK; }

bool pack_bilevel(const Gop& gop, int index, AVFrame& frame) {
  const VolumeView view = gop.plane(0);
  const bool inverted = frame.format == AV_PIX_FMT_MONOWHITE;
  for (int y = 0; y < view.shape.height; ++y) {
    const std::byte* src = view.row(index, y);
    std::uint8_t* dst = frame.data[0] + static_cast<std::ptrdiff_t>(y) * frame.linesize[0];
    std::fill_n(dst, (view.shape.width + 7) / 8, std::uint8_t{0});
    for (int x = 0; x < view.shape.width; ++x) {
      const auto value = std::to_integer<unsigned>(src[x]);
      if (value != 0 && value != 255) return false;
      if ((value == 255) != inverted) dst[x / 8] = static_cast<std::uint8_t>(dst[x / 8] | 0x80 >> x % 8);
    }
  }
  return true;
}

}  // namespace trivelet::io
