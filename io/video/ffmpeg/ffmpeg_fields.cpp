// Reads the fields of a film, and finds those that its container could not hold.

#include "io/video/ffmpeg/ffmpeg_fields.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <utility>

extern "C" {
#include <libavutil/parseutils.h>
}

#include "io/video/ffmpeg/ffmpeg_bytes.h"

namespace trivelet::io {

namespace {

struct Flag {
  int bit;
  std::string_view name;
};
// FFmpeg's dispositions that describe the purpose of a track.
constexpr Flag kFlags[] = {
    {AV_DISPOSITION_DEFAULT, "default"},
    {AV_DISPOSITION_DUB, "dub"},
    {AV_DISPOSITION_ORIGINAL, "original"},
    {AV_DISPOSITION_COMMENT, "comment"},
    {AV_DISPOSITION_LYRICS, "lyrics"},
    {AV_DISPOSITION_KARAOKE, "karaoke"},
    {AV_DISPOSITION_FORCED, "forced"},
    {AV_DISPOSITION_HEARING_IMPAIRED, "hearing_impaired"},
    {AV_DISPOSITION_VISUAL_IMPAIRED, "visual_impaired"},
    {AV_DISPOSITION_CLEAN_EFFECTS, "clean_effects"},
    {AV_DISPOSITION_CAPTIONS, "captions"},
    {AV_DISPOSITION_DESCRIPTIONS, "descriptions"},
    {AV_DISPOSITION_METADATA, "metadata"},
    {AV_DISPOSITION_DEPENDENT, "dependent"},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); });
  return out;
}

/// The code of a language for both of its codes in ISO 639-2: Matroska has "fre" for "fra".
std::string_view bibliographic(std::string_view language) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 20> kCodes = {
      {{"sqi", "alb"}, {"hye", "arm"}, {"eus", "baq"}, {"mya", "bur"}, {"zho", "chi"}, {"ces", "cze"}, {"nld", "dut"},
       {"fra", "fre"}, {"kat", "geo"}, {"deu", "ger"}, {"ell", "gre"}, {"isl", "ice"}, {"mkd", "mac"}, {"mri", "mao"},
       {"msa", "may"}, {"fas", "per"}, {"ron", "rum"}, {"slk", "slo"}, {"bod", "tib"}, {"cym", "wel"}}};
  const auto found =
      std::find_if(kCodes.begin(), kCodes.end(), [language](const auto& code) { return code.first == language; });
  return found != kCodes.end() ? found->second : language;
}

/// A key, and the language behind it: "artist-fra".
std::pair<std::string_view, std::string_view> divided_key(std::string_view key) {
  constexpr std::size_t kSuffix = 4;
  if (key.size() <= kSuffix || key[key.size() - kSuffix] != '-') return {key, ""};
  return {key.substr(0, key.size() - kSuffix), bibliographic(key.substr(key.size() - kSuffix + 1))};
}

/// Matroska's names of tags have '_' for ' '.
bool is_same_key(std::string_view a, std::string_view b) {
  const auto [name_a, language_a] = divided_key(a);
  const auto [name_b, language_b] = divided_key(b);
  const auto same = [](char x, char y) { return (x == ' ' ? '_' : x) == (y == ' ' ? '_' : y); };
  return language_a == language_b && std::equal(name_a.begin(), name_a.end(), name_b.begin(), name_b.end(), same);
}

InputPtr open_again(InputBytes& file, SourceIo& io, ErrorLog& log) {
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->opaque = &log;
  context->pb = io.context();
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "data", 0);
  av_dict_set(&settings, "export_xmp", "1", 0);  // of MP4: a tag
  const int code = avformat_open_input(&context, file.name().c_str(), nullptr, &settings);
  av_dict_free(&settings);
  io.rethrow();
  return InputPtr(code < 0 ? nullptr : context);
}

}  // namespace

bool is_same_value(std::string_view key, std::string_view a, std::string_view b) {
  if (lower(key) == "language") return bibliographic(a) == bibliographic(b);
  if (lower(key) != "creation_time") return a == b;
  // Not all containers have fractions of a second, and all write it as FFmpeg does, 2026-01-02T03:04:05.
  constexpr std::int64_t kSecond = 1'000'000;
  std::int64_t at_a = 0, at_b = 0;
  if (av_parse_time(&at_a, std::string(a).c_str(), 0) < 0 || av_parse_time(&at_b, std::string(b).c_str(), 0) < 0)
    return a == b;
  return at_a / kSecond == at_b / kSecond;
}

std::string tag_of(const AVDictionary* tags, const char* key) {
  const AVDictionaryEntry* entry = av_dict_get(tags, key, nullptr, 0);
  return entry != nullptr ? entry->value : "";
}

const AVDictionary* program_tags(const AVFormatContext& input, int track) {
  const AVProgram* program = av_find_program_from_stream(const_cast<AVFormatContext*>(&input), nullptr, track);
  return program != nullptr ? program->metadata : nullptr;
}

std::string names_of_other_programs(const AVFormatContext& input, int track) {
  const AVDictionary* const own = program_tags(input, track);
  std::string names;
  for (unsigned i = 0; i < input.nb_programs; ++i) {
    const AVProgram& program = *input.programs[i];
    const std::string name = tag_of(program.metadata, "service_name");
    if (program.metadata == own || name.empty()) continue;
    names += (names.empty() ? "'" : ", '") + name + "' of program " + std::to_string(program.id);
  }
  return names;
}

bool is_of_container(std::string_view key) {
  constexpr std::array<std::string_view, 4> kOwn = {"major_brand", "minor_version", "compatible_brands", "encoder"};
  return std::find(kOwn.begin(), kOwn.end(), lower(divided_key(key).first)) != kOwn.end();
}

bool is_of_coding(std::string_view key) {
  constexpr std::array<std::string_view, 8> kOwn = {"encoder", "duration",         "handler_name",    "vendor_id",
                                                    "bps",     "number_of_frames", "number_of_bytes", "rotate"};
  const std::string name = lower(key);
  return std::find(kOwn.begin(), kOwn.end(), name) != kOwn.end() || name.starts_with("_statistics");
}

std::string flags_to_text(int disposition) {
  std::string text;
  for (const Flag& flag : kFlags)
    if ((disposition & flag.bit) != 0) text += (text.empty() ? "" : "+") + std::string(flag.name);
  return text;
}

int flags_of_text(std::string_view text) {
  int disposition = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('+');
    for (const Flag& flag : kFlags)
      if (flag.name == text.substr(0, end)) disposition |= flag.bit;
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  }
  return disposition;
}

WantedFields::Tags WantedFields::tags_of(const AVDictionary* tags) {
  Tags all;
  const AVDictionaryEntry* tag = nullptr;
  while ((tag = av_dict_get(tags, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
    const std::string key = lower(tag->key);
    const std::string_view value = tag->value;
    if (!is_of_container(key) && !is_of_coding(key) && !(key == "language" && value == "und"))
      all.emplace_back(key, value);
  }
  return all;
}

WantedFields::Tags WantedFields::colour_of(const AVCodecParameters& codec) {
  Tags all;
  if (codec.codec_type != AVMEDIA_TYPE_VIDEO) return all;
  const auto add = [&all](const char* name, bool is_known, const char* value) {
    if (is_known && value != nullptr) all.emplace_back(name, value);
  };
  // RGB has no matrix, and is of full range where a file says nothing.
  const AVPixFmtDescriptor* const format = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(codec.format));
  const bool is_rgb = format != nullptr && (format->flags & AV_PIX_FMT_FLAG_RGB) != 0;
  add("color_range", codec.color_range != AVCOL_RANGE_UNSPECIFIED && !(is_rgb && codec.color_range == AVCOL_RANGE_JPEG),
      av_color_range_name(codec.color_range));
  add("color_space", codec.color_space != AVCOL_SPC_UNSPECIFIED && !(is_rgb && codec.color_space == AVCOL_SPC_RGB),
      av_color_space_name(codec.color_space));
  add("color_transfer", codec.color_trc != AVCOL_TRC_UNSPECIFIED, av_color_transfer_name(codec.color_trc));
  add("color_primaries", codec.color_primaries != AVCOL_PRI_UNSPECIFIED,
      av_color_primaries_name(codec.color_primaries));
  add("chroma_location", codec.chroma_location != AVCHROMA_LOC_UNSPECIFIED,
      av_chroma_location_name(codec.chroma_location));
  return all;
}

WantedFields::WantedFields(const AVFormatContext& output)
    : muxer_(output.oformat->name), tags_(tags_of(output.metadata)) {
  for (unsigned i = 0; i < output.nb_streams; ++i) {
    const AVStream& stream = *output.streams[i];
    tracks_.push_back({tags_of(stream.metadata), stream.disposition, colour_of(*stream.codecpar)});
  }
  for (unsigned i = 0; i < output.nb_chapters; ++i) chapters_.push_back(tag_of(output.chapters[i]->metadata, "title"));
}

std::string WantedFields::not_in(const Tags& wanted, const Tags& found, const std::string& where,
                                 const std::string& date) {
  constexpr std::size_t kShown = 40;  // characters of a value
  std::string text;
  for (const auto& [key, value] : wanted) {
    const auto same = [&](const auto& other) {
      return is_same_key(other.first, key) && is_same_value(key, value, other.second);
    };
    // A track's date counts as the film's if only the track has one.
    if ((key == "creation_time" && is_same_value(key, value, date)) || std::any_of(found.begin(), found.end(), same))
      continue;
    text += (text.empty() ? "" : ", ") + key + " '" + value.substr(0, kShown) + "'" + where;
  }
  return text;
}

std::string WantedFields::lost(const std::string& path) const {
  ErrorLog log;
  InputBytes file(path);
  SourceIo io(file);
  const InputPtr found = open_again(file, io, log);
  if (!found || found->nb_streams < tracks_.size()) return {};
  std::string text;
  const auto add = [&text](const std::string& what) {
    if (!what.empty()) text += (text.empty() ? "" : ", ") + what;
  };
  const auto date = std::find_if(tags_.begin(), tags_.end(), [](const auto& t) { return t.first == "creation_time"; });
  Tags film_tags = tags_of(found->metadata);
  for (unsigned i = 0; i < found->nb_programs; ++i)
    for (auto& tag : tags_of(found->programs[i]->metadata)) film_tags.push_back(std::move(tag));
  add(not_in(tags_, film_tags, "", ""));
  bool looked = false;
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    const Track& track = tracks_[i];
    const AVStream& stream = *found->streams[i];
    const std::string where = " of track " + std::to_string(i);
    add(not_in(track.tags, tags_of(stream.metadata), where, date != tags_.end() ? date->second : ""));
    // A track that is alone is the default, whatever the file says.
    const int implied = tracks_.size() == 1 ? AV_DISPOSITION_DEFAULT : 0;
    const std::string flags = flags_to_text(track.disposition & ~stream.disposition & ~implied);
    if (!flags.empty()) add((flags.find('+') == std::string::npos ? "flag " : "flags ") + flags + where);
    // What the container does not say of colours, the codec may.
    std::string colours = not_in(track.colour, colour_of(*stream.codecpar), where, "");
    if (!colours.empty() && !std::exchange(looked, true)) avformat_find_stream_info(found.get(), nullptr);
    if (!colours.empty()) colours = not_in(track.colour, colour_of(*stream.codecpar), where, "");
    add(colours);
  }
  io.rethrow();
  for (std::size_t i = 0; i < chapters_.size(); ++i)
    if (i >= found->nb_chapters || tag_of(found->chapters[i]->metadata, "title") != chapters_[i])
      add("chapter " + std::to_string(i + 1));
  return text.empty() ? "" : muxer_ + " has no place for " + text;
}

}  // namespace trivelet::io
