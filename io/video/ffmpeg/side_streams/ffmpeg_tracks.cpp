// Which tracks a file has, what they are called, and what containers can hold of them.

#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string_view>

#include "io/video/ffmpeg/ffmpeg_bytes.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"

namespace trivelet::io {

const char* kind_of(const AVStream& stream) {
  if (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) return "cover";
  switch (stream.codecpar->codec_type) {
    case AVMEDIA_TYPE_VIDEO: return "video";
    case AVMEDIA_TYPE_AUDIO: return "sound";
    case AVMEDIA_TYPE_SUBTITLE: return "subtitles";
    case AVMEDIA_TYPE_ATTACHMENT: return "attachment";
    default: return "other";
  }
}

std::string name_of_script(const AVFormatContext& input, const AVPacket& packet) {
  constexpr int kHead = 3, kString = 2;  // AMF0: the type and two bytes of length
  if (std::string_view(input.iformat->name) != "flv" || packet.size < kHead || packet.data[0] != kString) return {};
  const int length = packet.data[1] << 8 | packet.data[2];
  if (length == 0 || length > packet.size - kHead) return {};
  std::string name(reinterpret_cast<const char*>(packet.data) + kHead, static_cast<std::size_t>(std::min(length, 40)));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return name;
}

/// Matroska also holds what AVI and WAV hold, by their numbers of codecs (A_MS/ACM, V_MS/VFW/FOURCC): FFmpeg writes
/// such tracks but does not name them among the muxer's codecs. ADPCM of FLV it writes without a header.
bool holds_codec(const AVOutputFormat& muxer, const AVCodecParameters& codec) {
  const bool matroska = std::string_view(muxer.name) == "matroska";
  if (matroska && codec.codec_id == AV_CODEC_ID_ADPCM_SWF) return false;
  if (avformat_query_codec(&muxer, codec.codec_id, FF_COMPLIANCE_NORMAL) == 1) return true;
  if (!matroska) return false;
  const AVCodecTag* const tags[] = {codec.codec_type == AVMEDIA_TYPE_AUDIO   ? avformat_get_riff_audio_tags()
                                    : codec.codec_type == AVMEDIA_TYPE_VIDEO ? avformat_get_riff_video_tags()
                                                                             : nullptr,
                                    nullptr};
  return tags[0] != nullptr && av_codec_get_tag(tags, codec.codec_id) != 0;
}

std::string refusal_of(const AVOutputFormat& muxer, const AVCodecParameters& codec) {
  const std::string_view name = muxer.name;
  if (name != "matroska" && name != "mp4" && name != "mov") return {};  // others may need a video beside it
  ErrorLog log;
  AVFormatContext* context = nullptr;
  if (avformat_alloc_output_context2(&context, &muxer, nullptr, nullptr) < 0) throw std::bad_alloc();
  const FormatPtr file(context);
  file->opaque = &log;
  file->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;  // as the writer has it
  AVStream* const track = avformat_new_stream(file.get(), nullptr);
  if (track == nullptr || avcodec_parameters_copy(track->codecpar, &codec) < 0 || avio_open_dyn_buf(&file->pb) < 0)
    throw std::bad_alloc();
  track->codecpar->codec_tag = 0;
  track->time_base = {1, 1000};
  const int code = avformat_write_header(file.get(), nullptr);
  std::uint8_t* bytes = nullptr;
  avio_close_dyn_buf(file->pb, &bytes);
  file->pb = nullptr;
  av_free(bytes);
  if (code >= 0) return {};
  const std::string reason = log.take();
  return reason.empty() ? "FFmpeg refuses it" : reason;
}

bool is_track_of_chapters(const AVFormatContext& input, const AVStream& stream) {
  return input.nb_chapters > 0 && stream.codecpar->codec_type == AVMEDIA_TYPE_DATA &&
         stream.codecpar->codec_tag == MKTAG('t', 'e', 'x', 't');
}

std::string name_of_track(const AVStream& stream) {
  const AVCodecParameters& codec = *stream.codecpar;
  std::string text = std::string(kind_of(stream)) + " (" + avcodec_get_name(codec.codec_id);
  if (codec.codec_type == AVMEDIA_TYPE_AUDIO)
    text += ", " + std::to_string(codec.sample_rate) + " Hz, " + std::to_string(codec.ch_layout.nb_channels) +
            (codec.ch_layout.nb_channels == 1 ? " channel" : " channels");
  if (codec.codec_type == AVMEDIA_TYPE_VIDEO)
    text += ", " + std::to_string(codec.width) + "x" + std::to_string(codec.height);
  return text + ")";
}

bool is_alike(const AVCodecParameters& a, const AVCodecParameters& b) {
  if (a.codec_id != b.codec_id || a.width != b.width || a.height != b.height || a.sample_rate != b.sample_rate ||
      a.ch_layout.nb_channels != b.ch_layout.nb_channels)
    return false;
  // That of FLAC has the length and the MD5 of the whole, which no decoder needs.
  if (a.codec_id == AV_CODEC_ID_FLAC) return true;
  return a.extradata_size == b.extradata_size &&
         (a.extradata_size == 0 ||
          std::memcmp(a.extradata, b.extradata, static_cast<std::size_t>(a.extradata_size)) == 0);
}

std::string list_tracks(const AVFormatContext& input) {
  std::string all;
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    const AVStream& stream = *input.streams[i];
    const std::string language = tag_of(stream.metadata, "language");
    all += (all.empty() ? "" : ", ") + std::to_string(i) + " " + kind_of(stream) + " (" +
           avcodec_get_name(stream.codecpar->codec_id) + (language.empty() ? "" : ", " + language) + ")";
  }
  return all;
}

bool matches(AVFormatContext& input, AVStream& stream, const std::string& specifier, const std::string& name) {
  const bool with_file = specifier.substr(0, 2) == "0:" && specifier.size() > 2;
  const int found = avformat_match_stream_specifier(&input, &stream, specifier.c_str() + (with_file ? 2 : 0));
  require(found >= 0, ErrorKind::kBadArgument,
          name + ": '" + specifier + "' is no specifier of tracks; write a:0, s, v:1, 3, m:language:eng as for ffmpeg");
  return found > 0;
}

namespace {

/// "(h264, 1920x1080)".
std::string text_of(const AVStream& video) {
  const AVCodecParameters& codec = *video.codecpar;
  return std::string("(") + avcodec_get_name(codec.codec_id) + ", " + std::to_string(codec.width) + "x" +
         std::to_string(codec.height) + ")";
}

/// As the program ffmpeg weighs videos: those of which it has seen packets, then the default if others are not much
/// larger, then the largest. Covers and what nothing decodes are taken if there is nothing else.
std::int64_t score_of(const AVStream& stream) {
  constexpr std::int64_t kHasPackets = 100'000'000, kIsDefault = 5'000'000;  // pixels
  const AVCodecParameters& codec = *stream.codecpar;
  if (codec.codec_type != AVMEDIA_TYPE_VIDEO) return 0;
  if ((stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0 || avcodec_find_decoder(codec.codec_id) == nullptr)
    return 1;
  return 2 + std::int64_t{codec.width} * codec.height +
         ((stream.event_flags & AVSTREAM_EVENT_FLAG_NEW_PACKETS) != 0 ? kHasPackets : 0) +
         ((stream.disposition & AV_DISPOSITION_DEFAULT) != 0 ? kIsDefault : 0);
}

}  // namespace

int main_video(AVFormatContext& input, const std::string& specifier, const std::string& name) {
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    AVStream* stream = input.streams[i];
    if (specifier.empty() && stream->codecpar->codec_tag == MKTAG('T', 'R', 'V', 'L')) return static_cast<int>(i);
    if (!specifier.empty() && stream->codecpar->codec_type == AVMEDIA_TYPE_VIDEO &&
        matches(input, *stream, specifier, name))
      return static_cast<int>(i);
  }
  require(specifier.empty(), ErrorKind::kBadArgument,
          name + " has no video " + specifier + "; its tracks: " + list_tracks(input));
  int best = -1;
  std::int64_t most = 0;
  for (unsigned i = 0; i < input.nb_streams; ++i)
    if (const std::int64_t score = score_of(*input.streams[i]); score > most) {
      most = score;
      best = static_cast<int>(i);
    }
  return best;
}

std::string choice_of_video(const AVFormatContext& input, int video) {
  std::string others;
  int count = 0;
  constexpr int kNamed = 4;
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    const AVStream& stream = *input.streams[i];
    if (score_of(stream) <= 1) continue;
    ++count;
    if (static_cast<int>(i) != video && count <= kNamed)
      others += (others.empty() ? "" : ", ") + std::to_string(i) + " " + text_of(stream);
  }
  if (count < 2 || video < 0) return {};
  return "of " + std::to_string(count) + " video tracks, " + std::to_string(video) + " " +
         text_of(*input.streams[video]) + " is read and not " + others + (count > kNamed ? ", ..." : "") +
         "; ReaderOptions::stream takes another";
}

SideStreams side_streams_of(AVFormatContext& input, int video) {
  SideStreams side_streams;
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    const AVStream& stream = *input.streams[i];
    if (static_cast<int>(i) == video || is_track_of_chapters(input, stream)) continue;
    if (stream.codecpar->codec_type == AVMEDIA_TYPE_ATTACHMENT)
      side_streams.attachments = true;
    else
      side_streams.tracks.push_back({kind_of(stream), avcodec_get_name(stream.codecpar->codec_id),
                                     tag_of(stream.metadata, "language"), tag_of(stream.metadata, "title")});
  }
  side_streams.chapters = input.nb_chapters > 0;
  const AVDictionaryEntry* tag = nullptr;
  while ((tag = av_dict_get(input.metadata, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    side_streams.tags =
        side_streams.tags || (!is_of_container(tag->key) && std::string_view(tag->key) != "creation_time");
  return side_streams;
}

}  // namespace trivelet::io
