// Films may have more than one stream of pictures says: WebM codes alpha as a second picture beside each one
// (BlockAdditional, which FFmpeg's own decoders pass over), and containers and pictures have side data.
#include "io/video/ffmpeg/ffmpeg_extras.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

extern "C" {
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/stereo3d.h>
}

#include "codec/base/limits.h"

namespace trivelet::io {

namespace {

bool has_alpha_beside(const AVStream& stream) {
  const AVCodecID id = stream.codecpar->codec_id;
  if (id != AV_CODEC_ID_VP8 && id != AV_CODEC_ID_VP9) return false;
  const AVDictionaryEntry* mode = av_dict_get(stream.metadata, "alpha_mode", nullptr, 0);
  return mode != nullptr && std::string_view(mode->value) != "0";
}

/// Side data of a stream that metadata of ours has, or that is about the coded bytes alone.
bool is_kept_or_of_coding(AVPacketSideDataType type) {
  constexpr std::array kTypes = {AV_PKT_DATA_PALETTE,
                                 AV_PKT_DATA_NEW_EXTRADATA,
                                 AV_PKT_DATA_PARAM_CHANGE,
                                 AV_PKT_DATA_DISPLAYMATRIX,
                                 AV_PKT_DATA_QUALITY_STATS,
                                 AV_PKT_DATA_FALLBACK_TRACK,
                                 AV_PKT_DATA_CPB_PROPERTIES,
                                 AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
                                 AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
                                 AV_PKT_DATA_ENCRYPTION_INIT_INFO,
                                 AV_PKT_DATA_ENCRYPTION_INFO,
                                 AV_PKT_DATA_PRFT,
                                 AV_PKT_DATA_ICC_PROFILE};
  return std::find(kTypes.begin(), kTypes.end(), type) != kTypes.end();
}

std::string name_of(AVPacketSideDataType type) {
  switch (type) {
    case AV_PKT_DATA_DOVI_CONF: return "Dolby Vision";
    case AV_PKT_DATA_SPHERICAL: return "that the picture is a sphere";
    case AV_PKT_DATA_STEREO3D: return "that the picture is stereoscopic";
    case AV_PKT_DATA_A53_CC: return "closed captions";
    default: break;
  }
  const char* const name = av_packet_side_data_name(type);
  return name != nullptr ? name : "side data of type " + std::to_string(static_cast<int>(type));
}

/// Matroska may say of a picture that it is an ordinary one.
bool is_stereoscopic(const std::uint8_t* data) {
  return data != nullptr && reinterpret_cast<const AVStereo3D*>(data)->type != AV_STEREO3D_2D;
}

/// Whether a part of the picture is to be shown. The decoder of MPEG-2 says it of every picture.
bool pans(const AVFrame& picture) {
  const AVFrameSideData* const data = av_frame_get_side_data(&picture, AV_FRAME_DATA_PANSCAN);
  if (data == nullptr) return false;
  const auto& part = *reinterpret_cast<const AVPanScan*>(data->data);
  constexpr int kSixteenths = 16;
  const bool is_smaller = part.width > 0 && part.height > 0 &&
                          (part.width < kSixteenths * picture.width || part.height < kSixteenths * picture.height);
  const auto is_moved = [](const std::int16_t(&at)[2]) { return at[0] != 0 || at[1] != 0; };
  return is_smaller || std::any_of(std::begin(part.position), std::end(part.position), is_moved);
}

/// What a file says of the colours of a display alone, without its luminances, or of these alone: no stream has a place
/// for a part. "" if it says nothing, both, or the primaries that sRGB and Rec. ITU-R BT.709 have (PNG's cHRM chunk).
std::string part_of_display(const AVStream& stream, const AVFrame& first) {
  const std::uint8_t* data = av_stream_get_side_data(&stream, AV_PKT_DATA_MASTERING_DISPLAY_METADATA, nullptr);
  const AVFrameSideData* beside = av_frame_get_side_data(&first, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA);
  if (data == nullptr && beside != nullptr) data = beside->data;
  const auto* display = reinterpret_cast<const AVMasteringDisplayMetadata*>(data);
  if (display == nullptr || (display->has_primaries != 0) == (display->has_luminance != 0)) return "";
  if (display->has_luminance != 0) return "the luminances of the mastering display";
  constexpr double kUsual[4][2] = {{0.64, 0.33}, {0.30, 0.60}, {0.15, 0.06}, {0.3127, 0.3290}};
  constexpr double kRounded = 0.0006;  // files have three digits
  bool is_usual = true;
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t xy = 0; xy < 2; ++xy) {
      const AVRational said = i < 3 ? display->display_primaries[i][xy] : display->white_point[xy];
      is_usual = is_usual && said.den != 0 && std::abs(av_q2d(said) - kUsual[i][xy]) < kRounded;
    }
  return is_usual ? "" : "the chromaticities of its colours";
}

}  // namespace

const AVCodec* decoder_with_alpha(const AVStream& stream, const AVCodec* usual) {
  if (!has_alpha_beside(stream)) return usual;
  const bool is_vp8 = stream.codecpar->codec_id == AV_CODEC_ID_VP8;
  const AVCodec* const codec = avcodec_find_decoder_by_name(is_vp8 ? "libvpx" : "libvpx-vp9");
  return codec != nullptr ? codec : usual;
}

void add_extras_of(const AVFrame& picture, std::vector<std::string>& names) {
  const auto add = [&names](const char* name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  };
  constexpr std::array<std::pair<AVFrameSideDataType, const char*>, 7> kOfPictures = {
      {{AV_FRAME_DATA_A53_CC, "closed captions"},
       {AV_FRAME_DATA_DYNAMIC_HDR_PLUS, "HDR10+"},
       {AV_FRAME_DATA_DOVI_METADATA, "Dolby Vision"},
       {AV_FRAME_DATA_SPHERICAL, "that the picture is a sphere"},
       {AV_FRAME_DATA_STEREO3D, "that the picture is stereoscopic"},
       {AV_FRAME_DATA_S12M_TIMECODE, "time codes of pictures"},
       {AV_FRAME_DATA_AFD, "active format"}}};
  for (int i = 0; i < picture.nb_side_data; ++i)
    for (const auto& [type, name] : kOfPictures)
      if (picture.side_data[i]->type == type &&
          (type != AV_FRAME_DATA_STEREO3D || is_stereoscopic(picture.side_data[i]->data)))
        add(name);
  if (pans(picture)) add("pan-scan");
}

std::vector<std::string> extras_left_out(const AVStream& stream, const AVFrame& first) {
  std::vector<std::string> names;
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  const AVPixFmtDescriptor* format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(first.format));
  if (has_alpha_beside(stream) && (format == nullptr || (format->flags & AV_PIX_FMT_FLAG_ALPHA) == 0))
    add("transparency, which this FFmpeg cannot decode");
  for (int i = 0; i < static_cast<int>(AV_PKT_DATA_NB); ++i) {
    const auto type = static_cast<AVPacketSideDataType>(i);
    const std::uint8_t* const data = av_stream_get_side_data(&stream, type, nullptr);
    if (data == nullptr || is_kept_or_of_coding(type) || (type == AV_PKT_DATA_STEREO3D && !is_stereoscopic(data)))
      continue;
    add(name_of(type));
  }
  for (int i = 0; i < stream.nb_side_data; ++i)
    if (const AVPacketSideData& data = stream.side_data[i]; data.type == AV_PKT_DATA_ICC_PROFILE)
      add("colour profile (ICC, " + count_of(static_cast<std::uint64_t>(data.size), "byte") + ")");
  add_extras_of(first, names);
  if (const std::string part = part_of_display(stream, first); !part.empty()) add(part);
  return names;
}

AVPixelFormat format_of_four_bytes(const AVPacket& packet, AVCodecID codec) {
  const auto number = [&packet](int at, int bytes) {
    std::uint32_t value = 0;
    for (int i = 0; i < bytes && at + i < packet.size; ++i) value |= std::uint32_t{packet.data[at + i]} << (8 * i);
    return value;
  };
  if (codec == AV_CODEC_ID_TARGA) {
    constexpr int kDescriptor = 17;
    return (number(kDescriptor, 1) & 15) == 0 ? AV_PIX_FMT_BGR0 : AV_PIX_FMT_NONE;
  }
  constexpr std::uint32_t kDx10 = 0x30315844;  // "DX10"
  constexpr int kFourCc = 84, kDxgiFormat = 128;
  if (codec != AV_CODEC_ID_DDS || number(kFourCc, 4) != kDx10) return AV_PIX_FMT_NONE;
  switch (number(kDxgiFormat, 4)) {
    case 27:  // DXGI_FORMAT_R8G8B8A8_TYPELESS, _UNORM, _UNORM_SRGB, _UINT, _SNORM, _SINT
    case 28:
    case 29:
    case 30:
    case 31:
    case 32: return AV_PIX_FMT_RGBA;
    case 87:  // DXGI_FORMAT_B8G8R8A8_UNORM, _TYPELESS, _UNORM_SRGB
    case 90:
    case 91: return AV_PIX_FMT_BGRA;
    case 88:  // DXGI_FORMAT_B8G8R8X8_UNORM, _TYPELESS, _UNORM_SRGB
    case 92:
    case 93: return AV_PIX_FMT_BGR0;
    default: return AV_PIX_FMT_NONE;
  }
}

}  // namespace trivelet::io
