// Chooses pixel formats and colour ranges for swscale, and converts pictures.

#include "io/video/ffmpeg/ffmpeg_convert.h"

#include <optional>

#include "io/video/convert.h"
#include "io/video/planes.h"

namespace trivelet::io {

namespace {

bool is_rgb(AVPixelFormat format) { return (av_pix_fmt_desc_get(format)->flags & AV_PIX_FMT_FLAG_RGB) != 0; }

std::string cannot(const std::string& name, AVPixelFormat from, AVPixelFormat to) {
  return name + ": FFmpeg cannot convert " + av_get_pix_fmt_name(from) + " to " + av_get_pix_fmt_name(to);
}

/// The FFmpeg layout that holds such samples, planar ones first; NONE if there is none.
AVPixelFormat any_av_format(const PixelFormat& format) {
  const AVPixelFormat planar = planar_av_format(format);
  return planar != AV_PIX_FMT_NONE && same_samples(planar) == format ? planar : AV_PIX_FMT_NONE;
}

class GopConverter final : public FrameConverter {
 public:
  GopConverter(const std::string& user, const VideoInfo& from, const VideoInfo& to) : from_(from), to_(to) {
    const AVPixelFormat in = any_av_format(from.format);
    const AVPixelFormat out = any_av_format(to.format);
    const std::string way = to_string(from.format) + " to " + to_string(to.format);
    require(in != AV_PIX_FMT_NONE && out != AV_PIX_FMT_NONE, ErrorKind::kUnsupported,
            user + ": FFmpeg cannot convert " + way + (from.format.is_signed ? " (signed samples)" : ""));
    VideoInfo tags = from;
    converter_.emplace(in, out, tags, to.colour.range == 2 && from.colour.range != 2, user);
    to_.colour = tags.colour;
    picture_ = make_frame();
    picture_->format = in;
    picture_->width = from.width;
    picture_->height = from.height;
    if (av_frame_get_buffer(picture_.get(), 0) < 0) throw std::bad_alloc();
  }

  const VideoInfo& info() const override { return to_; }

  void convert(const Gop& from, int index, Gop& to, int to_index) override {
    check_gop(from, index, from_);
    check_gop(to, to_index, to_);
    pack(from, index, *picture_);
    unpack(converter_->convert(*picture_), to, to_index);
    to.times()[static_cast<std::size_t>(to_index)] = from.times()[static_cast<std::size_t>(index)];
  }

 private:
  VideoInfo from_;
  VideoInfo to_;
  std::optional<Converter> converter_;
  FramePtr picture_;
};

}  // namespace

Converter::Converter(AVPixelFormat from, AVPixelFormat to, VideoInfo& info, bool full_range, const std::string& name) {
  require(sws_isSupportedOutput(to) && sws_isSupportedInput(from), ErrorKind::kUnsupported, cannot(name, from, to));
  const bool from_rgb = is_rgb(from);
  const bool to_rgb = is_rgb(to);
  // Untagged YCbCr is taken for BT.601 below 720 lines and BT.709 from there on, as players do.
  int matrix = info.colour.matrix;
  if (matrix == AVCOL_SPC_UNSPECIFIED || matrix == AVCOL_SPC_RGB)
    matrix = info.height < 720 ? AVCOL_SPC_SMPTE170M : AVCOL_SPC_BT709;
  const bool from_full = from_rgb || info.colour.range == AVCOL_RANGE_JPEG;
  const bool to_full = to_rgb || full_range || (!from_rgb && from_full);

  scaler_.reset(sws_alloc_context());
  if (!scaler_) throw std::bad_alloc();
  const auto set = [&](const char* option, std::int64_t value) {
    if (av_opt_set_int(scaler_.get(), option, value, 0) < 0)
      fail(ErrorKind::kInternal, "swscale has no " + std::string(option));
  };
  set("srcw", info.width);
  set("srch", info.height);
  set("dstw", info.width);
  set("dsth", info.height);
  set("src_format", from);
  set("dst_format", to);
  // Set before the context is initialised: otherwise a context between equal formats copies, whatever the ranges.
  set("src_range", !from_rgb && from_full);
  set("dst_range", !to_rgb && to_full);
  set("sws_flags", SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP | SWS_BITEXACT);
  require(sws_init_context(scaler_.get(), nullptr, nullptr) >= 0, ErrorKind::kUnsupported, cannot(name, from, to));
  const int* coefficients = sws_getCoefficients(matrix);
  sws_setColorspaceDetails(scaler_.get(), coefficients, from_full, coefficients, to_full, 0, 1 << 16, 1 << 16);
  if (to_rgb != from_rgb) info.colour.matrix = static_cast<std::uint8_t>(to_rgb ? AVCOL_SPC_RGB : matrix);
  if (to_rgb != from_rgb || to_full != from_full)
    info.colour.range = static_cast<std::uint8_t>(to_full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG);
  picture_ = make_frame();
  picture_->format = to;
  picture_->width = info.width;
  picture_->height = info.height;
  if (av_frame_get_buffer(picture_.get(), 0) < 0) throw std::bad_alloc();
}

const AVFrame& Converter::convert(const AVFrame& frame) {
  sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, picture_->data, picture_->linesize);
  return *picture_;
}

std::unique_ptr<FrameConverter> make_ffmpeg_converter(const std::string& user, const VideoInfo& from,
                                                      const VideoInfo& to) {
  return std::make_unique<GopConverter>(user, from, to);
}

std::optional<VideoInfo> nearest_ffmpeg_format(const VideoInfo& from, const Holds& holds) {
  const AVPixelFormat source = any_av_format(from.format);
  if (source == AV_PIX_FMT_NONE) return std::nullopt;
  std::optional<VideoInfo> best;
  AVPixelFormat best_format = AV_PIX_FMT_NONE;
  for (const AVPixFmtDescriptor* d = av_pix_fmt_desc_next(nullptr); d != nullptr; d = av_pix_fmt_desc_next(d)) {
    const AVPixelFormat format = av_pix_fmt_desc_get_id(d);
    const std::optional<PixelFormat> samples = same_samples(format);
    if (!samples || any_av_format(*samples) != format || !sws_isSupportedOutput(format)) continue;
    VideoInfo candidate = from;
    candidate.format = *samples;
    if (!holds(candidate)) {
      candidate.colour.range = 2;
      if (!holds(candidate)) continue;
    }
    const AVPixelFormat better =
        best ? av_find_best_pix_fmt_of_2(best_format, format, source, from.format.alpha, nullptr) : format;
    if (better == best_format) continue;
    best = candidate;
    best_format = better;
  }
  return best;
}

}  // namespace trivelet::io
