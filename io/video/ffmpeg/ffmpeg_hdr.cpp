// HDR: the display on which a video was mastered and its light level, between FFmpeg's side data and Metadata.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>

extern "C" {
#include <libavutil/mastering_display_metadata.h>
}

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

namespace {

constexpr int kChromaUnit = 50000;  // of coordinates
constexpr int kLightUnit = 10000;   // of cd/m2

template <class T>
T in_units(AVRational value, int unit) {
  const double scaled = value.den != 0 ? av_q2d(value) * unit : 0;
  return static_cast<T>(std::llround(std::clamp(scaled, 0.0, static_cast<double>(std::numeric_limits<T>::max()))));
}

MasteringDisplay display_of(const AVMasteringDisplayMetadata& m) {
  MasteringDisplay d;
  for (std::size_t xy = 0; xy < 2; ++xy) {
    for (std::size_t i = 0; i < 3; ++i)
      d.chromaticity[i][xy] = in_units<std::uint16_t>(m.display_primaries[i][xy], kChromaUnit);
    d.chromaticity[3][xy] = in_units<std::uint16_t>(m.white_point[xy], kChromaUnit);
  }
  d.max_luminance = in_units<std::uint32_t>(m.max_luminance, kLightUnit);
  d.min_luminance = in_units<std::uint32_t>(m.min_luminance, kLightUnit);
  return d;
}

AVRational luminance(std::uint32_t value) {
  constexpr std::uint32_t kMost = std::numeric_limits<int>::max();
  return {static_cast<int>(std::min(value, kMost)), kLightUnit};
}

/// The stream's side data, otherwise the frame's; null if there is none of this kind.
template <class T>
const T* find(const AVStream& stream, AVPacketSideDataType stream_type, const AVFrame& frame,
              AVFrameSideDataType frame_type) {
  if (const std::uint8_t* data = av_stream_get_side_data(&stream, stream_type, nullptr))
    return reinterpret_cast<const T*>(data);
  const AVFrameSideData* data = av_frame_get_side_data(&frame, frame_type);
  return data != nullptr ? reinterpret_cast<const T*>(data->data) : nullptr;
}

/// Takes `data` from av_malloc().
void add_side_data(AVStream& stream, AVPacketSideDataType type, void* data, std::size_t size) {
  if (av_stream_add_side_data(&stream, type, static_cast<std::uint8_t*>(data), size) >= 0) return;
  av_free(data);
  throw std::bad_alloc();
}

}  // namespace

Metadata hdr_of(const AVStream& stream, const AVFrame& frame) {
  Metadata metadata;
  const auto* mastering = find<AVMasteringDisplayMetadata>(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, frame,
                                                           AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
  if (mastering != nullptr && mastering->has_primaries && mastering->has_luminance)
    metadata.mastering_display = display_of(*mastering);
  const auto* light =
      find<AVContentLightMetadata>(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, frame, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL);
  if (light != nullptr)
    metadata.content_light = ContentLight{static_cast<std::uint16_t>(std::min(light->MaxCLL, 65535U)),
                                          static_cast<std::uint16_t>(std::min(light->MaxFALL, 65535U))};
  return metadata;
}

void add_hdr(AVStream& stream, const Metadata& metadata) {
  if (const auto& d = metadata.mastering_display) {
    AVMasteringDisplayMetadata* m = av_mastering_display_metadata_alloc();
    if (m == nullptr) throw std::bad_alloc();
    for (std::size_t xy = 0; xy < 2; ++xy) {
      for (std::size_t i = 0; i < 3; ++i) m->display_primaries[i][xy] = {d->chromaticity[i][xy], kChromaUnit};
      m->white_point[xy] = {d->chromaticity[3][xy], kChromaUnit};
    }
    m->max_luminance = luminance(d->max_luminance);
    m->min_luminance = luminance(d->min_luminance);
    m->has_primaries = m->has_luminance = 1;
    add_side_data(stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, m, sizeof *m);
  }
  if (const auto& level = metadata.content_light) {
    std::size_t size = 0;
    AVContentLightMetadata* light = av_content_light_metadata_alloc(&size);
    if (light == nullptr) throw std::bad_alloc();
    light->MaxCLL = level->max_content;
    light->MaxFALL = level->max_frame_average;
    add_side_data(stream, AV_PKT_DATA_CONTENT_LIGHT_LEVEL, light, size);
  }
}

}  // namespace trivelet::io
