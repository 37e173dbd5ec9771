#include "io/video/ffmpeg/ffmpeg_description.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codec/base/frame_times.h"
#include "io/video/planes.h"

namespace trivelet::io {

namespace {

/// Of the container or of the first picture; null without one.
const std::int32_t* display_matrix(const AVStream& stream, const AVFrame& first) {
  const std::uint8_t* bytes = av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr);
  const AVFrameSideData* data = av_frame_get_side_data(&first, AV_FRAME_DATA_DISPLAYMATRIX);
  if (bytes == nullptr && data != nullptr) bytes = data->data;
  return reinterpret_cast<const std::int32_t*>(bytes);
}

/// Whether a display matrix also changes left and right.
bool mirrors(const std::int32_t* m) { return static_cast<double>(m[0]) * m[4] < static_cast<double>(m[1]) * m[3]; }

/// Degrees clockwise from a display matrix, to the nearest quarter turn. Of one that mirrors: those that follow the
/// mirroring of left and right.
int rotation_of(const std::int32_t* matrix) {
  std::int32_t turn[9];
  std::copy_n(matrix, 9, turn);
  if (mirrors(matrix))
    for (const int i : {0, 1}) turn[i] = static_cast<std::int32_t>(-std::int64_t{turn[i]});
  const double counterclockwise = av_display_rotation_get(turn);
  if (std::isnan(counterclockwise)) return 0;
  const int quarters = static_cast<int>(std::lround(-counterclockwise / 90.0));
  return ((quarters % 4) + 4) % 4 * 90;
}

std::uint8_t field_order_of(const AVFrame& frame) {
#ifdef AV_FRAME_FLAG_INTERLACED
  const bool interlaced = (frame.flags & AV_FRAME_FLAG_INTERLACED) != 0;
  const bool top_first = (frame.flags & AV_FRAME_FLAG_TOP_FIELD_FIRST) != 0;
#else
  const bool interlaced = frame.interlaced_frame != 0;
  const bool top_first = frame.top_field_first != 0;
#endif
  return !interlaced ? 0 : top_first ? 1 : 2;
}

ColourTags colour_of(const AVFrame& frame, AVPixelFormat samples) {
  auto code_point = [](int value) { return static_cast<std::uint8_t>(value > 0 && value < 256 ? value : 2); };
  ColourTags colour;
  colour.primaries = code_point(frame.color_primaries);
  colour.transfer = code_point(frame.color_trc);
  colour.matrix = frame.colorspace == AVCOL_SPC_RGB ? std::uint8_t{0} : code_point(frame.colorspace);
  colour.range = static_cast<std::uint8_t>(frame.color_range == AVCOL_RANGE_MPEG   ? 1
                                           : frame.color_range == AVCOL_RANGE_JPEG ? 2
                                                                                   : 0);
  if (implies_full_range(samples)) colour.range = 2;
  colour.chroma_location = static_cast<std::uint8_t>(frame.chroma_location);
  return colour;
}

}  // namespace

VideoInfo describe_video(const PictureDecoder& decoder, const AVFrame& first, AVPixelFormat samples,
                         const Rational& own_rate) {
  AVStream* const stream = &decoder.stream();
  AVFrame* const frame = const_cast<AVFrame*>(&first);  // FFmpeg's functions do not change it
  VideoInfo info;
  info.width = first.width;
  info.height = first.height;
  const AVRational rate = av_guess_frame_rate(&decoder.input(), stream, frame);
  info.frame_rate = rate.num > 0 && rate.den > 0 ? from_av(rate) : Rational{25, 1};
  info.time_base = from_av(stream->time_base);
  if (own_rate.num > 0) set_constant_rate(info, own_rate);
  const AVRational aspect = av_guess_sample_aspect_ratio(&decoder.input(), stream, frame);
  info.sample_aspect = aspect.num > 0 && aspect.den > 0 ? from_av(aspect) : Rational{0, 1};
  info.field_order = field_order_of(first);
  info.frames = stream->nb_frames > 0 ? static_cast<std::uint64_t>(stream->nb_frames) : 0;
  info.colour = colour_of(first, samples);
  if (const std::int32_t* matrix = display_matrix(*stream, first)) {
    info.rotation = rotation_of(matrix);
    info.mirrored = mirrors(matrix);
  }
  return info;
}

std::string other_colours(const ContainerColours& container, const AVFrame& first) {
  std::string text;
  const auto add = [&text](const char* what, bool differs, const char* theirs, const char* kept) {
    if (!differs || theirs == nullptr || kept == nullptr) return;
    text += (text.empty() ? "" : ", ") + std::string(what) + " " + theirs + " for " + kept;
  };
  const auto differ = [](int a, int b, int unknown) { return a != b && a != unknown && b != unknown; };
  add("primaries", differ(container.primaries, first.color_primaries, AVCOL_PRI_UNSPECIFIED),
      av_color_primaries_name(container.primaries), av_color_primaries_name(first.color_primaries));
  add("transfer", differ(container.transfer, first.color_trc, AVCOL_TRC_UNSPECIFIED),
      av_color_transfer_name(container.transfer), av_color_transfer_name(first.color_trc));
  add("matrix", differ(container.matrix, first.colorspace, AVCOL_SPC_UNSPECIFIED),
      av_color_space_name(container.matrix), av_color_space_name(first.colorspace));
  add("range", differ(container.range, first.color_range, AVCOL_RANGE_UNSPECIFIED),
      av_color_range_name(container.range), av_color_range_name(first.color_range));
  return text;
}

double seconds_of(const PictureDecoder& decoder) {
  const AVStream& stream = decoder.stream();
  const AVFormatContext& input = decoder.input();
  if (stream.duration > 0) return static_cast<double>(stream.duration) * av_q2d(stream.time_base);
  // Matroska says it of a track in a tag: 00:01:02.345000000.
  const AVDictionaryEntry* tag = av_dict_get(stream.metadata, "DURATION", nullptr, AV_DICT_IGNORE_SUFFIX);
  int hours = 0, minutes = 0;
  double rest = 0;
  if (tag != nullptr && std::sscanf(tag->value, "%4d:%2d:%lf", &hours, &minutes, &rest) == 3 && hours >= 0 &&
      minutes >= 0 && rest >= 0 && rest < 60)
    return 3600.0 * hours + 60.0 * minutes + rest;
  return input.duration > 0 && input.nb_streams == 1 ? static_cast<double>(input.duration) / AV_TIME_BASE : 0;
}

}  // namespace trivelet::io
