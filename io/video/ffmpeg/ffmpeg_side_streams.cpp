// Copies tracks, chapters, attachments and tags from one container to another.

#include "io/video/ffmpeg/ffmpeg_side_streams.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <string_view>

#include "codec/base/bytes.h"
#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "io/md5.h"
#include "io/video/ffmpeg/ffmpeg_decode_times.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/ffmpeg_sound.h"

namespace trivelet::io {

namespace {

constexpr AVRational kMicroseconds = {1, 1'000'000};

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

/// Microseconds of a packet of sound and its neighbours that an edit list of MP4 leaves out, if they are more than the
/// packet itself: so many encoders put before the sound.
std::int64_t left_out_by_edits(const AVFormatContext& input, const AVStream& from, const AVPacket& packet) {
  if (std::string_view(input.iformat->name).substr(0, 3) != "mov" || from.codecpar->sample_rate <= 0) return 0;
  std::size_t size = 0;
  const std::uint8_t* const data = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &size);
  if (data == nullptr || size < 4) return 0;
  const std::int64_t us =
      av_rescale_q(load_little_endian<std::uint32_t>(data), {1, from.codecpar->sample_rate}, kMicroseconds);
  return us > av_rescale_q(packet.duration, from.time_base, kMicroseconds) ? us : 0;
}

/// The name of what a packet of FLV holds where its demuxer takes data of a script for text: "onCuePoint". "" for text.
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

/// The codec of text subtitles in a container; NONE if there are several.
AVCodecID text_subtitles_of(std::string_view muxer) {
  if (muxer == "matroska") return AV_CODEC_ID_SUBRIP;
  if (muxer == "mp4" || muxer == "mov") return AV_CODEC_ID_MOV_TEXT;
  return AV_CODEC_ID_NONE;
}

/// Matroska also holds what AVI and WAV hold, by their numbers of codecs (A_MS/ACM, V_MS/VFW/FOURCC): FFmpeg writes
/// such tracks but does not name them among the muxer's codecs. Some of RealMedia it names but refuses to write, and
/// ADPCM of FLV it writes without a header.
bool holds_codec(const AVOutputFormat& muxer, const AVCodecParameters& codec) {
  constexpr std::array kRefused = {AV_CODEC_ID_ATRAC3, AV_CODEC_ID_COOK, AV_CODEC_ID_RA_288, AV_CODEC_ID_SIPR,
                                   AV_CODEC_ID_RV10,   AV_CODEC_ID_RV20, AV_CODEC_ID_RV30,   AV_CODEC_ID_ADPCM_SWF};
  const bool matroska = std::string_view(muxer.name) == "matroska";
  if (matroska && std::find(kRefused.begin(), kRefused.end(), codec.codec_id) != kRefused.end()) return false;
  if (avformat_query_codec(&muxer, codec.codec_id, FF_COMPLIANCE_NORMAL) == 1) return true;
  if (!matroska) return false;
  const AVCodecTag* const tags[] = {codec.codec_type == AVMEDIA_TYPE_AUDIO   ? avformat_get_riff_audio_tags()
                                    : codec.codec_type == AVMEDIA_TYPE_VIDEO ? avformat_get_riff_video_tags()
                                                                             : nullptr,
                                    nullptr};
  return tags[0] != nullptr && av_codec_get_tag(tags, codec.codec_id) != 0;
}

bool holds_chapters(std::string_view muxer) {
  return muxer == "matroska" || muxer == "webm" || muxer == "mp4" || muxer == "mov" || muxer == "nut";
}

/// MP4 has its chapters as a track of text, too.
bool is_track_of_chapters(const AVFormatContext& input, const AVStream& stream) {
  return input.nb_chapters > 0 && stream.codecpar->codec_type == AVMEDIA_TYPE_DATA &&
         stream.codecpar->codec_tag == MKTAG('t', 'e', 'x', 't');
}

/// "sound (aac, 48000 Hz, 2 channels)".
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

/// True if a decoder of one decodes the packets of the other.
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

/// "0 video (h264), 1 sound (aac, eng)".
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

/// Whether a specifier of FFmpeg's means the stream; "0:" before it is the file.
bool matches(AVFormatContext& input, AVStream& stream, const std::string& specifier, const std::string& name) {
  const bool with_file = specifier.substr(0, 2) == "0:" && specifier.size() > 2;
  const int found = avformat_match_stream_specifier(&input, &stream, specifier.c_str() + (with_file ? 2 : 0));
  require(found >= 0, ErrorKind::kBadArgument,
          name + ": '" + specifier + "' is no specifier of tracks; write a:0, s, v:1, 3, m:language:eng as for ffmpeg");
  return found > 0;
}

/// True if `other` is as large and as much the default as `best`. Alpha and depth tracks follow the picture that they
/// belong to, and may have more bits.
bool is_first_of_equals(const AVStream& other, const AVStream& best) {
  constexpr int kPlaces = AV_DISPOSITION_DEFAULT | AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
  const AVCodecParameters& codec = *other.codecpar;
  return codec.codec_type == AVMEDIA_TYPE_VIDEO && codec.width == best.codecpar->width &&
         codec.height == best.codecpar->height && ((other.disposition ^ best.disposition) & kPlaces) == 0 &&
         avcodec_find_decoder(codec.codec_id) != nullptr;
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
  const int best = av_find_best_stream(&input, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  for (int i = 0; i < best; ++i)
    if (is_first_of_equals(*input.streams[i], *input.streams[best])) return i;
  return best;
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

namespace {

/// Prefix of the key of a tag of the video track, in a stream that also has those of the film.
constexpr std::string_view kOfTrack = "track_";

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const int more = first < 0x80                    ? 0
                     : first >= 0xC2 && first < 0xE0 ? 1
                     : first >= 0xE0 && first < 0xF0 ? 2
                     : first >= 0xF0 && first < 0xF5 ? 3
                                                     : -1;
    if (more < 0 || text.size() - i <= static_cast<std::size_t>(more)) return false;
    for (int k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]) & 0xC0) != 0x80) return false;
    i += static_cast<std::size_t>(more) + 1;
  }
  return true;
}

AVChapter* new_chapter(AVFormatContext& output) {
  void* grown = av_realloc_array(output.chapters, output.nb_chapters + std::size_t{1}, sizeof *output.chapters);
  if (grown == nullptr) throw std::bad_alloc();
  output.chapters = static_cast<AVChapter**>(grown);
  auto* chapter = static_cast<AVChapter*>(av_mallocz(sizeof(AVChapter)));
  if (chapter == nullptr) throw std::bad_alloc();
  output.chapters[output.nb_chapters++] = chapter;
  return chapter;
}

}  // namespace

std::vector<std::string> read_chapters_and_tags(const AVFormatContext& input, int video, Metadata& metadata) {
  std::vector<std::string> lost;
  constexpr std::size_t kMostTitle = 4096;  // FORMAT.md
  constexpr std::size_t kMostValue = 65536;
  constexpr std::size_t kMost = 1000;
  for (unsigned i = 0; i < input.nb_chapters && metadata.chapters.size() < kMost; ++i) {
    const AVChapter& from = *input.chapters[i];
    if (from.time_base.num <= 0 || from.time_base.den <= 0 || from.start == AV_NOPTS_VALUE) continue;
    if (metadata.chapters.empty()) metadata.chapter_time_base = from_av(from.time_base);
    const AVRational unit = to_av(metadata.chapter_time_base);
    Chapter chapter;
    chapter.begin = av_rescale_q(from.start, from.time_base, unit);
    chapter.end = std::max(chapter.begin, av_rescale_q(from.end, from.time_base, unit));
    const std::string title = tag_of(from.metadata, "title");
    const bool is_held = title.size() <= kMostTitle && is_utf8(title);
    if (is_held) chapter.title = title;
    if (!is_held) lost.push_back("the title of chapter " + std::to_string(i + 1));
    metadata.chapters.push_back(chapter);
  }
  std::stable_sort(metadata.chapters.begin(), metadata.chapters.end(),
                   [](const Chapter& a, const Chapter& b) { return a.begin < b.begin; });
  const auto add = [&](std::string key, const std::string& value) {
    for (char& c : key)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    if (key.empty()) return;
    if (key.size() > kMostTitle || !is_utf8(key))
      lost.push_back("a key of " + count_of(key.size(), "byte"));
    else if (value.size() > kMostValue || metadata.entries.size() >= kMost)
      lost.push_back(key + " (" + count_of(value.size(), "byte") + ")");
    else if (!is_utf8(value))
      lost.push_back(key + " (no UTF-8)");
    else
      metadata.entries.emplace_back(std::move(key), value);
  };
  const AVDictionaryEntry* tag = nullptr;
  while ((tag = av_dict_get(input.metadata, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    if (!is_of_container(tag->key)) add(tag->key, tag->value);
  if (video < 0) return lost;
  const AVDictionary* program = program_tags(input, video);
  while ((tag = av_dict_get(program, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    if (tag_of(input.metadata, tag->key).empty()) add(tag->key, tag->value);
  const AVDictionary* own = input.streams[video]->metadata;
  while ((tag = av_dict_get(own, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    const std::string_view key = tag->key;
    // Most containers give the track the date of the film.
    if (key == "creation_time" && is_same_value(key, tag->value, tag_of(input.metadata, tag->key))) continue;
    if (!is_of_coding(key) && key != "language" && key != "timecode") add(std::string(kOfTrack) + tag->key, tag->value);
  }
  const std::string flags = flags_to_text(input.streams[video]->disposition);
  const std::string_view container = input.iformat->name;
  const bool has_flags = container.starts_with("matroska") || container.starts_with("mov");
  if (flags != "default" && (has_flags || !flags.empty())) add("disposition", flags.empty() ? "none" : flags);
  if (const std::string language = tag_of(own, "language"); !language.empty() && language != "und")
    add("language", language);
  if (const std::string code = tag_of(own, "timecode"); !code.empty() && tag_of(input.metadata, "timecode").empty())
    add("timecode", code);
  return lost;
}

namespace {

/// Matroska has one date, that of the film: of a film without one it is that of the pictures.
void date_by_pictures(AVFormatContext& output) {
  const std::string_view muxer = output.oformat->name;
  if ((muxer != "matroska" && muxer != "webm") || output.nb_streams == 0) return;
  const std::string date = tag_of(output.streams[0]->metadata, "creation_time");
  if (!date.empty()) av_dict_set(&output.metadata, "creation_time", date.c_str(), AV_DICT_DONT_OVERWRITE);
}

}  // namespace

void add_chapters_and_tags(AVFormatContext& output, const Metadata& metadata) {
  if (output.nb_chapters == 0 && holds_chapters(output.oformat->name))
    for (std::size_t i = 0; i < metadata.chapters.size(); ++i) {
      const Chapter& from = metadata.chapters[i];
      AVChapter* to = new_chapter(output);
      to->id = static_cast<std::int64_t>(i + 1);
      to->time_base = to_av(metadata.chapter_time_base);
      to->start = from.begin;
      to->end = from.end;
      if (!from.title.empty()) av_dict_set(&to->metadata, "title", from.title.c_str(), 0);
    }
  for (const auto& [key, value] : metadata.entries) {
    AVStream* const video = output.nb_streams > 0 ? output.streams[0] : nullptr;
    if (video != nullptr && key == "disposition")
      video->disposition = flags_of_text(value);
    else if (video != nullptr && (key == "language" || key.starts_with(kOfTrack)))
      av_dict_set(&video->metadata, key.c_str() + (key == "language" ? 0 : kOfTrack.size()), value.c_str(),
                  AV_DICT_DONT_OVERWRITE);
    else
      av_dict_set(&output.metadata, key.c_str(), value.c_str(), AV_DICT_DONT_OVERWRITE);
  }
  date_by_pictures(output);
}

namespace {

/// The bytes of a packet of sound that are in all containers: AAC of a transport stream has a header of its own.
void add_sound(Md5& digest, const AVPacket& packet, AVCodecID codec) {
  const std::uint8_t* data = packet.data;
  int size = packet.size;
  if (codec == AV_CODEC_ID_AAC && size > 7 && data[0] == 0xff && (data[1] & 0xf6) == 0xf0) {
    const int header = (data[1] & 1) != 0 ? 7 : 9;
    data += header;
    size -= header;
  }
  if (size > 0) digest.update(data, static_cast<std::size_t>(size));
}

}  // namespace

struct SideStreamCopy::Target {
  AVStream* from = nullptr;
  AVStream* to = nullptr;
  CodecPtr decoder;  ///< of subtitles that change their form
  CodecPtr encoder;
  std::unique_ptr<SoundCoder> sound;        ///< that is encoded again
  std::optional<DecodeTimes> decode_times;  ///< of pictures of which a container does not tell them
  std::int64_t last_dts = AV_NOPTS_VALUE;
  bool is_read = false;  ///< a packet of it
  bool is_written = false;
  bool has_script = false;            ///< among its text
  std::int64_t heard_again_us = 0;    ///< of what an edit list leaves out
  std::optional<std::int64_t> delay;  ///< added to times, which a reader takes off again; null: not yet looked for
  // Of a file in parts, in microseconds: when the last packet began and ended, of this part and those before, and of
  // those before alone.
  std::int64_t begin_us = INT64_MIN;
  std::int64_t end_us = INT64_MIN;
  std::int64_t covered_begin_us = INT64_MIN;
  std::int64_t covered_end_us = INT64_MIN;
  // Of sound whose packets muxers leave alone (they remove headers of WavPack), to compare it with the finished file:
  int index = -1;  ///< in the output; -1: not compared
  AVCodecID codec = AV_CODEC_ID_NONE;
  Md5 digest;

  /// Packets across the cut between two parts of a film are in both.
  bool is_covered(std::int64_t us, std::int64_t duration_us) const {
    if (from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && duration_us > 0)
      return add_times(us, duration_us / 2) < covered_end_us;
    return us <= covered_begin_us;
  }
};

SideStreamCopy::SideStreamCopy(const SideStreamOptions& options)
    : options_(options), offset_us_(options.clock_offset_us) {
  open(options.from);
  if (options_.parts.empty()) return;
  offset_us_ += options_.parts[0].shift_us;
  begin_us_ = options_.parts[0].begin_us;
  end_us_ = options_.parts[0].end_us;
}
SideStreamCopy::~SideStreamCopy() = default;

void SideStreamCopy::close() {
  input_.reset();
  io_.reset();
  source_.reset();
}

void SideStreamCopy::open(const std::string& path) {
  source_.emplace(path);
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->opaque = &log_;
  io_ = std::make_unique<SourceIo>(*source_);
  context->pb = io_->context();
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "data", 0);
  av_dict_set(&settings, "export_xmp", "1", 0);  // of MP4: a tag
  int code = avformat_open_input(&context, path.c_str(), nullptr, &settings);
  av_dict_free(&settings);
  io_->rethrow();
  if (code < 0)
    av_fail(code, source_->name() + ": no sound, subtitles or chapters can be read from it", ErrorKind::kBadStream,
            log_.take());
  input_.reset(context);
  code = avformat_find_stream_info(input_.get(), nullptr);
  io_->rethrow();
  if (code < 0) av_fail(code, source_->name() + ": FFmpeg finds no stream parameters", ErrorKind::kBadStream);
  log_.take();  // it does not know our video, and prints a message about it
  video_ = main_video(*input_, options_.stream, source_->name());
  packet_ = make_packet();
}

// What --map asks for; all that is not there is left out.
std::vector<bool> SideStreamCopy::mapped(AVFormatContext& input, int video) const {
  bool only_without = true;
  for (const std::string& specifier : options_.map) only_without = only_without && specifier[0] == '-';
  std::vector<bool> taken(input.nb_streams, only_without);
  for (const std::string& specifier : options_.map) {
    const bool without = specifier[0] == '-';
    bool found = false;
    for (unsigned i = 0; i < input.nb_streams; ++i)
      if (matches(input, *input.streams[i], specifier.substr(without ? 1 : 0), source_->name())) {
        found = true;
        taken[i] = !without;
      }
    require(found || &input != input_.get() || part_ > 0, ErrorKind::kBadArgument,
            source_->name() + " has no track " + specifier + "; its tracks: " + list_tracks(input));
  }
  if (video >= 0) taken[static_cast<std::size_t>(video)] = false;
  return taken;
}

void SideStreamCopy::add_to(AVFormatContext& output) {
  output_ = &output;
  const int video = video_;
  const std::vector<bool> taken = mapped(*input_, video);
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    AVStream& from = *input_->streams[i];
    from.discard = AVDISCARD_ALL;
    if (static_cast<int>(i) == video) {
      av_dict_copy(&output.streams[0]->metadata, from.metadata, AV_DICT_DONT_OVERWRITE);
      output.streams[0]->disposition = flags_of_text(flags_to_text(from.disposition));
      av_dict_set(&output.streams[0]->metadata, "encoder", nullptr, 0);
    } else if (is_wanted(*input_, i, taken)) {
      add_track(from);
      first_tracks_.emplace_back(from.codecpar->codec_type, static_cast<int>(i));
    }
  }
  const AVDictionaryEntry* tag = nullptr;
  while ((tag = av_dict_get(input_->metadata, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr)
    if (!is_of_container(tag->key)) av_dict_set(&output.metadata, tag->key, tag->value, AV_DICT_DONT_OVERWRITE);
  av_dict_copy(&output.metadata, video >= 0 ? program_tags(*input_, video) : nullptr, AV_DICT_DONT_OVERWRITE);
  if (options_.parts.empty()) return add_chapters();
  const bool has_chapters = output.nb_chapters > 0;  // of the joined stream
  for (std::size_t i = 0; i < options_.parts.size(); ++i) {
    SideStreamOptions alone = options_;
    alone.from = options_.parts[i].from;
    alone.parts.clear();
    const SideStreamCopy other(alone);
    if (i > 0) check_part(*other.input_, other.video_, alone.from);
    if (!has_chapters && holds_chapters(output.oformat->name)) add_chapters_of(options_.parts[i], *other.input_);
  }
}

bool SideStreamCopy::is_wanted(const AVFormatContext& input, unsigned index, const std::vector<bool>& taken) const {
  const AVStream& stream = *input.streams[index];
  return taken[index] && !is_track_of_chapters(input, stream) &&
         (stream.codecpar->codec_type != AVMEDIA_TYPE_AUDIO || options_.sound);
}

// Maps the tracks of a later part to those of the first part: the n-th of a kind to the n-th; -1: none.
std::map<int, int> SideStreamCopy::follow(AVFormatContext& input, int video) const {
  const std::vector<bool> taken = mapped(input, video);
  std::map<int, int> all;
  std::map<AVMediaType, std::size_t> seen;
  for (unsigned i = 0; i < input.nb_streams; ++i) {
    if (static_cast<int>(i) == video || !is_wanted(input, i, taken)) continue;
    const AVMediaType kind = input.streams[i]->codecpar->codec_type;
    std::size_t left = seen[kind]++;
    const auto same = std::find_if(first_tracks_.begin(), first_tracks_.end(),
                                   [&](const auto& first) { return first.first == kind && left-- == 0; });
    all[static_cast<int>(i)] = same != first_tracks_.end() ? same->second : -1;
  }
  return all;
}

void SideStreamCopy::check_part(AVFormatContext& input, int video, const std::string& name) {
  const std::map<int, int> followed = follow(input, video);
  std::map<int, bool> goes_on;
  for (const auto& [index, first] : followed) {
    const AVStream& stream = *input.streams[index];
    const auto target = targets_.find(first);
    goes_on[first] = true;
    if (first < 0 && stream.codecpar->codec_type != AVMEDIA_TYPE_ATTACHMENT)
      remarks_.push_back(name_of_track(stream) + " of '" + name + "', for '" + options_.from + "' has no such track");
    if (first < 0 || target == targets_.end()) continue;
    require(is_alike(*input_->streams[first]->codecpar, *stream.codecpar), ErrorKind::kBadArgument,
            "'" + name + "' does not fit '" + options_.from + "': " + name_of_track(stream) + " and " +
                name_of_track(*input_->streams[first]) + "; --only-video or --map leaves tracks out");
  }
  for (const auto& [first, target] : targets_)
    if (!goes_on[first])
      remarks_.push_back(name_of_track(*input_->streams[first]) + " in the time of '" + name + "', which has none");
}

void SideStreamCopy::add_track(AVStream& from) {
  const AVCodecParameters& codec = *from.codecpar;
  const std::string_view muxer = output_->oformat->name;
  const bool attachment = codec.codec_type == AVMEDIA_TYPE_ATTACHMENT;
  if (from.disposition & AV_DISPOSITION_ATTACHED_PIC) return add_cover(from);
  if (const std::string script = script_of(from); !script.empty()) {
    remarks_.push_back("data of a script (" + script + ", track " + std::to_string(from.index) +
                       "), which are no text");
    return;
  }
  if (codec.codec_type == AVMEDIA_TYPE_AUDIO && !options_.sound_codec.empty()) return add_recoded(from);
  const bool held = attachment ? muxer == "matroska" : holds_codec(*output_->oformat, codec);
  if (!held && add_converted(from)) return;
  if (!held || codec.codec_type == AVMEDIA_TYPE_DATA) {
    const bool known = codec.codec_id != AV_CODEC_ID_NONE || attachment;
    remarks_.push_back(std::string(kind_of(from)) + " (" +
                       (attachment ? tag_of(from.metadata, "filename") + ", "
                        : known    ? std::string(avcodec_get_name(codec.codec_id)) + ", "
                                   : "") +
                       "track " + std::to_string(from.index) + "): " +
                       (known ? std::string(muxer) + " cannot hold it" : "this FFmpeg does not know how it is coded"));
    return;
  }
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_copy(target->to->codecpar, &codec) < 0) throw std::bad_alloc();
  target->to->codecpar->codec_tag = 0;
  target->to->time_base = from.time_base;
  target->to->avg_frame_rate = from.avg_frame_rate;
  target->to->sample_aspect_ratio = from.sample_aspect_ratio;
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  if (attachment) return;
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
}

// Matroska has covers as attachments, MP4 as a track of one packet.
void SideStreamCopy::add_cover(AVStream& from) {
  const AVPacket& picture = from.attached_pic;
  AVStream* to = nullptr;
  if (std::string_view(output_->oformat->name) == "matroska" && picture.size > 0 &&
      (from.codecpar->codec_id == AV_CODEC_ID_MJPEG || from.codecpar->codec_id == AV_CODEC_ID_PNG)) {
    to = avformat_new_stream(output_, nullptr);
    if (to == nullptr) throw std::bad_alloc();
    const bool png = from.codecpar->codec_id == AV_CODEC_ID_PNG;
    to->codecpar->codec_type = AVMEDIA_TYPE_ATTACHMENT;
    to->codecpar->codec_id = from.codecpar->codec_id;
    const auto size = static_cast<std::size_t>(picture.size);
    to->codecpar->extradata = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
    if (to->codecpar->extradata == nullptr) throw std::bad_alloc();
    std::memcpy(to->codecpar->extradata, picture.data, size);
    to->codecpar->extradata_size = picture.size;
    av_dict_copy(&to->metadata, from.metadata, 0);  // name, title and so on of a cover of Matroska's
    av_dict_set(&to->metadata, "filename", png ? "cover.png" : "cover.jpg", AV_DICT_DONT_OVERWRITE);
    av_dict_set(&to->metadata, "mimetype", png ? "image/png" : "image/jpeg", AV_DICT_DONT_OVERWRITE);
  } else {
    remarks_.push_back("the cover (track " + std::to_string(from.index) + "): " + output_->oformat->name +
                       " files get none here");
  }
}

void SideStreamCopy::add_recoded(AVStream& from) {
  const AVCodecID id = options_.sound_codec == "opus" ? AV_CODEC_ID_OPUS : AV_CODEC_ID_FLAC;
  require(avformat_query_codec(output_->oformat, id, FF_COMPLIANCE_EXPERIMENTAL) == 1, ErrorKind::kUnsupported,
          std::string(output_->oformat->name) + " cannot hold sound coded by " + options_.sound_codec);
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->sound = std::make_unique<SoundCoder>(from, options_.sound_codec,
                                               (output_->oformat->flags & AVFMT_GLOBALHEADER) != 0, source_->name());
  const AVCodecContext& encoder = target->sound->encoder();
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_from_context(target->to->codecpar, &encoder) < 0)
    throw std::bad_alloc();
  target->to->time_base = encoder.time_base;
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  av_dict_set(&target->to->metadata, "encoder", nullptr, 0);
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
}

/// What the first packet of a track of FLV's is called, unless it is text.
std::string SideStreamCopy::script_of(const AVStream& track) const {
  if (std::string_view(input_->iformat->name) != "flv" || track.codecpar->codec_id != AV_CODEC_ID_TEXT) return {};
  SideStreamOptions alone = options_;
  alone.parts.clear();
  const SideStreamCopy again(alone);
  do av_packet_unref(again.packet_.get());
  while (av_read_frame(again.input_.get(), again.packet_.get()) >= 0 && again.packet_->stream_index != track.index);
  again.io_->rethrow();
  return name_of_script(*input_, *again.packet_);
}

bool SideStreamCopy::add_converted(AVStream& from) {
  const AVCodecID form = text_subtitles_of(output_->oformat->name);
  const AVCodecDescriptor* described = avcodec_descriptor_get(from.codecpar->codec_id);
  if (from.codecpar->codec_type != AVMEDIA_TYPE_SUBTITLE || form == AV_CODEC_ID_NONE || described == nullptr ||
      (described->props & AV_CODEC_PROP_TEXT_SUB) == 0)
    return false;
  const AVCodec* decoder = avcodec_find_decoder(from.codecpar->codec_id);
  const AVCodec* encoder = avcodec_find_encoder(form);
  if (decoder == nullptr || encoder == nullptr) return false;
  auto target = std::make_unique<Target>();
  target->from = &from;
  target->decoder.reset(avcodec_alloc_context3(decoder));
  target->encoder.reset(avcodec_alloc_context3(encoder));
  if (!target->decoder || !target->encoder) throw std::bad_alloc();
  AVCodecContext& in = *target->decoder;
  AVCodecContext& out = *target->encoder;
  in.opaque = &log_;
  out.opaque = &log_;
  in.pkt_timebase = from.time_base;
  if (avcodec_parameters_to_context(&in, from.codecpar) < 0 || avcodec_open2(&in, decoder, nullptr) < 0) return false;
  if (in.subtitle_header != nullptr) {
    out.subtitle_header = static_cast<std::uint8_t*>(av_mallocz(static_cast<std::size_t>(in.subtitle_header_size) + 1));
    if (out.subtitle_header == nullptr) throw std::bad_alloc();
    std::memcpy(out.subtitle_header, in.subtitle_header, static_cast<std::size_t>(in.subtitle_header_size));
    out.subtitle_header_size = in.subtitle_header_size;
  }
  out.time_base = {1, 1000};
  if (avcodec_open2(&out, encoder, nullptr) < 0) return false;
  target->to = avformat_new_stream(output_, nullptr);
  if (target->to == nullptr || avcodec_parameters_from_context(target->to->codecpar, &out) < 0) throw std::bad_alloc();
  target->to->time_base = {1, 1000};
  target->to->disposition = from.disposition;
  av_dict_copy(&target->to->metadata, from.metadata, 0);
  from.discard = AVDISCARD_DEFAULT;
  targets_[from.index] = std::move(target);
  return true;
}

/// By how much a muxer that writes no times below 0 shifts all tracks, since one of them begins before.
std::int64_t SideStreamCopy::shift_of_muxer() const {
  if ((output_->oformat->flags & AVFMT_TS_NEGATIVE) != 0 || options_.after_first_frame) return 0;
  std::int64_t first = 0;
  const auto look_at = [&](std::int64_t time, AVRational unit, std::int64_t delay_us) {
    if (time == AV_NOPTS_VALUE) return;  // INT64_MIN
    first = std::min(first, add_times(av_rescale_q(time, unit, kMicroseconds), add_times(delay_us, offset_us_)));
  };
  if (video_ >= 0) look_at(input_->streams[video_]->start_time, input_->streams[video_]->time_base, 0);
  for (const auto& [index, target] : targets_) {
    AVStream* const from = input_->streams[index];
    const std::int64_t delay = av_rescale_q(delay_to_add(*output_, *target->to), target->to->time_base, kMicroseconds);
    look_at(from->start_time, from->time_base, delay);
    // Of sound in MP4 it is the time of what is heard; packets may begin before.
    const AVIndexEntry* const packet = avformat_index_get_entry(from, 0);
    if (packet != nullptr && from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && !target->sound)
      look_at(packet->timestamp, from->time_base, delay);
  }
  return first == INT64_MIN ? 0 : -first;
}

void SideStreamCopy::add_chapters_of(const SideStreamPart& part, const AVFormatContext& input) {
  const std::int64_t shift = shift_of_muxer();
  for (unsigned i = 0; i < input.nb_chapters; ++i) {
    const AVChapter& from = *input.chapters[i];
    if (from.start == AV_NOPTS_VALUE || from.time_base.num <= 0 || from.time_base.den <= 0) continue;
    const std::int64_t offset = add_times(part.clock_offset_us, part.shift_us);
    const std::int64_t begin = add_times(av_rescale_q(from.start, from.time_base, kMicroseconds), offset);
    const std::int64_t end = add_times(av_rescale_q(from.end, from.time_base, kMicroseconds), offset);
    // Chapters across the cut between two parts of a film are in both, or all are; files round their times.
    constexpr std::int64_t kRounding = 1000;
    const std::int64_t at = std::max<std::int64_t>(0, add_times(begin, shift));
    const auto is_same = [&](const AVChapter* c) {
      return std::abs(c->start - at) <= kRounding && tag_of(c->metadata, "title") == tag_of(from.metadata, "title");
    };
    if (end <= part.begin_us || begin >= part.end_us ||
        std::any_of(output_->chapters, output_->chapters + output_->nb_chapters, is_same))
      continue;
    AVChapter* to = new_chapter(*output_);
    to->id = static_cast<std::int64_t>(output_->nb_chapters);
    to->time_base = kMicroseconds;
    to->start = at;
    to->end = std::max(at, add_times(end, shift));
    av_dict_copy(&to->metadata, from.metadata, 0);
  }
}

void SideStreamCopy::add_chapters() {
  if (input_->nb_chapters == 0) return;
  if (!holds_chapters(output_->oformat->name)) {
    remarks_.push_back(std::string("chapters: ") + output_->oformat->name + " cannot hold them");
    return;
  }
  // As the pictures are: muxers that shift tracks do not shift chapters.
  const std::int64_t shift_us = add_times(offset_us_, shift_of_muxer());
  for (unsigned i = 0; i < input_->nb_chapters; ++i) {
    const AVChapter& from = *input_->chapters[i];
    AVChapter* to = new_chapter(*output_);
    const std::int64_t shift = shift_us != 0 ? av_rescale_q(shift_us, kMicroseconds, from.time_base) : 0;
    to->id = from.id;
    to->time_base = from.time_base;
    to->start = std::max<std::int64_t>(std::min<std::int64_t>(0, from.start), add_times(from.start, shift));
    to->end = std::max(to->start, add_times(from.end, shift));
    av_dict_copy(&to->metadata, from.metadata, 0);
  }
}

void SideStreamCopy::begin(std::int64_t us) {
  if (options_.after_first_frame) begin_us_ = us;
}

bool SideStreamCopy::next_part() {
  if (part_ + 1 >= options_.parts.size()) return false;
  const SideStreamPart& part = options_.parts[++part_];
  close();
  open(part.from);
  offset_us_ = part.clock_offset_us + part.shift_us;
  begin_us_ = part.begin_us;
  end_us_ = part.end_us;
  followed_ = follow(*input_, video_);
  for (auto& [first, target] : targets_) {
    target->from = nullptr;
    target->covered_begin_us = target->begin_us;
    target->covered_end_us = target->end_us;
  }
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    AVStream& stream = *input_->streams[i];
    const auto follows = followed_.find(static_cast<int>(i));
    const auto target = follows != followed_.end() ? targets_.find(follows->second) : targets_.end();
    stream.discard = target != targets_.end() ? AVDISCARD_DEFAULT : AVDISCARD_ALL;
    if (target != targets_.end()) target->second->from = &stream;
  }
  return true;
}

SideStreamCopy::Target* SideStreamCopy::target_of(const AVPacket& packet) {
  int first = packet.stream_index;
  if (part_ > 0) {
    const auto follows = followed_.find(first);
    first = follows != followed_.end() ? follows->second : -1;
  }
  const auto found = targets_.find(first);
  return found != targets_.end() ? found->second.get() : nullptr;
}

void SideStreamCopy::write_until(std::int64_t us) {
  while (!ended_ && !targets_.empty()) {
    if (!pending_) {
      av_packet_unref(packet_.get());
      const int code = av_read_frame(input_.get(), packet_.get());
      io_->rethrow();
      if (code == AVERROR_EOF) {
        if (next_part()) continue;
        ended_ = true;
        return;
      }
      if (code < 0)
        av_fail(code, source_->name() + ": its sound or subtitles are damaged", ErrorKind::kBadStream, log_.take());
      pending_ = true;
    }
    const AVPacket& p = *packet_;
    const std::int64_t time = p.dts != AV_NOPTS_VALUE ? p.dts : p.pts;
    const AVRational base = input_->streams[p.stream_index]->time_base;
    const std::int64_t at =
        time == AV_NOPTS_VALUE ? INT64_MIN : add_times(av_rescale_q(time, base, kMicroseconds), offset_us_);
    if (at >= us && at < end_us_) return;
    pending_ = false;
    Target* const target = target_of(p);
    const std::int64_t duration = av_rescale_q(p.duration, base, kMicroseconds);
    const bool passed =
        at != INT64_MIN && (add_times(at, duration) <= begin_us_ || (target && target->is_covered(at, duration)));
    if (target != nullptr) target->is_read = true;
    if (target == nullptr || passed || at >= end_us_) continue;
    if (at != INT64_MIN) {
      target->begin_us = std::max(target->begin_us, at);
      target->end_us = std::max(target->end_us, add_times(at, duration));
    }
    write(*target, *packet_);
  }
}

void SideStreamCopy::finish(std::int64_t us) {
  if (options_.before_last_frame) end_us_ = us;
  write_until(options_.before_last_frame ? us : INT64_MAX);
  for (const auto& [index, target] : targets_)
    if (target->decode_times) target->decode_times->finish([&t = *target, this](AVPacket& p) { send(t, p); });
  for (const auto& [index, target] : targets_)
    if (target->sound) target->sound->finish([&t = *target, this](AVPacket& coded) { send_recoded(t, coded); });
  for (const auto& [index, target] : targets_)
    if (target->heard_again_us > 0)
      remarks_.push_back("sound (track " + std::to_string(index) + "): " +
                         count_of(static_cast<std::uint64_t>((target->heard_again_us + 500) / 1000), "millisecond") +
                         " that an edit list leaves out are heard");
  for (const auto& [index, target] : targets_)
    if (!target->is_written && begin_us_ == INT64_MIN && !target->encoder && target->from)
      remarks_.push_back(
          std::string(kind_of(*target->from)) + " (track " + std::to_string(index) +
          (target->is_read ? "): nothing of it is in the time of the pictures" : "): FFmpeg finds nothing in it"));
}

void SideStreamCopy::write(Target& target, AVPacket& packet) {
  if (target.encoder) return write_converted(target, packet);
  const AVRational base = target.from->time_base;
  const std::int64_t offset = av_rescale_q(offset_us_, kMicroseconds, base);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts = add_times(packet.pts, offset);
  if (packet.dts != AV_NOPTS_VALUE) packet.dts = add_times(packet.dts, offset);
  if (target.from->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && !target.sound &&
      (output_->oformat->flags & AVFMT_TS_NEGATIVE) == 0)
    target.heard_again_us = add_times(target.heard_again_us, left_out_by_edits(*input_, *target.from, packet));
  if (target.sound) return target.sound->add(&packet, [&](AVPacket& coded) { send_recoded(target, coded); });
  av_packet_rescale_ts(&packet, base, target.to->time_base);
  const AVCodecParameters& codec = *target.from->codecpar;
  if (codec.codec_type == AVMEDIA_TYPE_VIDEO && packet.dts == AV_NOPTS_VALUE && !target.decode_times)
    target.decode_times.emplace(codec.video_delay);
  if (target.decode_times && packet.pts != AV_NOPTS_VALUE)
    return target.decode_times->add(packet, [&](AVPacket& p) { send(target, p); });
  send(target, packet);
}

void SideStreamCopy::send_recoded(Target& target, AVPacket& packet) {
  av_packet_rescale_ts(&packet, target.sound->encoder().time_base, target.to->time_base);
  send(target, packet);
}

void SideStreamCopy::write_converted(Target& target, AVPacket& packet) {
  if (const std::string script = name_of_script(*input_, packet); !script.empty()) {
    if (std::exchange(target.has_script, true)) return;
    remarks_.push_back("data of a script (" + script + ") among the text of track " +
                       std::to_string(packet.stream_index));
    return;
  }
  AVSubtitle subtitle = {};
  int there = 0;
  if (avcodec_decode_subtitle2(target.decoder.get(), &subtitle, &there, &packet) < 0 || there == 0) {
    log_.take();
    return;
  }
  const std::unique_ptr<AVSubtitle, void (*)(AVSubtitle*)> owner(&subtitle, avsubtitle_free);
  if (subtitle.num_rects == 0) return;
  std::array<std::uint8_t, 1 << 16> text;
  const int size = avcodec_encode_subtitle(target.encoder.get(), text.data(), static_cast<int>(text.size()), &subtitle);
  if (size <= 0) {
    log_.take();
    return;
  }
  const PacketPtr out = make_packet();
  if (av_new_packet(out.get(), size) < 0) throw std::bad_alloc();
  std::memcpy(out->data, text.data(), static_cast<std::size_t>(size));
  const std::int64_t offset = av_rescale_q(offset_us_, kMicroseconds, target.from->time_base);
  out->pts = add_times(packet.pts, offset);
  out->dts = out->pts;
  out->duration = packet.duration;
  av_packet_rescale_ts(out.get(), target.from->time_base, target.to->time_base);
  send(target, *out);
}

void SideStreamCopy::send(Target& target, AVPacket& packet) {
  packet.stream_index = target.to->index;
  packet.pos = -1;
  if (!target.delay) target.delay = delay_to_add(*output_, *target.to);
  if (packet.pts != AV_NOPTS_VALUE) packet.pts = add_times(packet.pts, *target.delay);
  if (packet.dts != AV_NOPTS_VALUE) packet.dts = add_times(packet.dts, *target.delay);
  if (packet.dts == AV_NOPTS_VALUE) packet.dts = packet.pts;
  // Rounded to a coarser clock two times may fall together.
  if (target.last_dts != AV_NOPTS_VALUE && packet.dts <= target.last_dts &&
      !(output_->oformat->flags & AVFMT_TS_NONSTRICT))
    packet.dts = add_times(target.last_dts, 1);
  if (packet.pts != AV_NOPTS_VALUE && packet.pts < packet.dts) packet.pts = packet.dts;
  target.last_dts = packet.dts;
  target.is_written = true;
  if (target.to->codecpar->codec_type == AVMEDIA_TYPE_AUDIO && target.to->codecpar->codec_id != AV_CODEC_ID_WAVPACK) {
    target.index = target.to->index;
    target.codec = target.to->codecpar->codec_id;
    add_sound(target.digest, packet, target.codec);
  }
  const int code = av_interleaved_write_frame(output_, &packet);
  if (code < 0)
    av_fail(code,
            std::string("cannot write ") + (target.from ? kind_of(*target.from) : "sound") + " of " + source_->name() +
                " into " + output_->oformat->name,
            ErrorKind::kUnsupported);
}

int SideStreamCopy::verify_sound(const std::string& path) const {
  std::map<int, const Target*> wanted;
  for (const auto& [first, target] : targets_)
    if (target->index >= 0) wanted[target->index] = target.get();
  if (wanted.empty()) return 0;
  SideStreamOptions again;
  again.from = path;
  const SideStreamCopy file(again);
  std::map<int, Md5> found;
  for (unsigned i = 0; i < file.input_->nb_streams; ++i)
    if (!wanted.contains(static_cast<int>(i))) file.input_->streams[i]->discard = AVDISCARD_ALL;
  for (;;) {
    av_packet_unref(file.packet_.get());
    const int code = av_read_frame(file.input_.get(), file.packet_.get());
    file.io_->rethrow();
    if (code < 0) break;  // what is missing at its end is no match
    const auto target = wanted.find(file.packet_->stream_index);
    if (target != wanted.end()) add_sound(found[target->first], *file.packet_, target->second->codec);
  }
  for (const auto& [index, target] : wanted) {
    Md5 written = target->digest;
    require(written.hex() == found[index].hex(), ErrorKind::kMismatch,
            "the sound of track " + std::to_string(index) + " differs from what was written");
  }
  return static_cast<int>(wanted.size());
}

}  // namespace trivelet::io
