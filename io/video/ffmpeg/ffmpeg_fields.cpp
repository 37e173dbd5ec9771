#include "io/video/ffmpeg/ffmpeg_fields.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "io/video/ffmpeg/ffmpeg_bytes.h"

namespace trivelet::io {

namespace {

struct Flag {
  int bit;
  std::string_view name;
};
// Of FFmpeg's dispositions those that say what a track is for.
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

/// Whether a container that writes the one reads the other.
bool is_same_value(std::string_view key, std::string_view a, std::string_view b) {
  constexpr std::size_t kSeconds = 19;  // 2026-01-02T03:04:05, without fractions that not all containers have
  if (lower(key) == "creation_time") return a.substr(0, kSeconds) == b.substr(0, kSeconds);
  return a == b;
}

class Lost {
 public:
  void add(const std::string& what) { text_ += (text_.empty() ? "" : ", ") + what; }
  void compare_tags(const AVDictionary* wanted, const AVDictionary* found, const std::string& where,
                    const std::string& known_time) {
    const AVDictionaryEntry* tag = nullptr;
    while ((tag = av_dict_get(wanted, "", tag, AV_DICT_IGNORE_SUFFIX)) != nullptr) {
      const std::string key = lower(tag->key);
      if (is_of_container(key) || is_of_coding(key) || (key == "language" && std::string_view(tag->value) == "und"))
        continue;
      if (key == "creation_time" && is_same_value(key, tag->value, known_time)) continue;  // the file's says it
      if (!is_same_value(key, tag->value, tag_of(found, tag->key)))
        add(key + " '" + std::string(tag->value).substr(0, 40) + "'" + where);
    }
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

InputPtr open_again(InputBytes& file, SourceIo& io, ErrorLog& log) {
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->opaque = &log;
  context->pb = io.context();
  AVDictionary* settings = nullptr;
  av_dict_set(&settings, "protocol_whitelist", "data", 0);
  const int code = avformat_open_input(&context, file.name().c_str(), nullptr, &settings);
  av_dict_free(&settings);
  io.rethrow();
  return InputPtr(code < 0 ? nullptr : context);
}

}  // namespace

std::string tag_of(const AVDictionary* tags, const char* key) {
  const AVDictionaryEntry* entry = av_dict_get(tags, key, nullptr, 0);
  return entry != nullptr ? entry->value : "";
}

bool is_of_container(std::string_view key) {
  constexpr std::array<std::string_view, 4> kOwn = {"major_brand", "minor_version", "compatible_brands", "encoder"};
  return std::find(kOwn.begin(), kOwn.end(), lower(key)) != kOwn.end();
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

std::string lost_fields(const AVFormatContext& wanted, const std::string& path) {
  ErrorLog log;
  InputBytes file(path);
  SourceIo io(file);
  const InputPtr found = open_again(file, io, log);
  if (!found || found->nb_streams < wanted.nb_streams) return {};
  Lost lost;
  const std::string time = tag_of(wanted.metadata, "creation_time");
  lost.compare_tags(wanted.metadata, found->metadata, "", "");
  for (unsigned i = 0; i < wanted.nb_streams; ++i) {
    const AVStream& from = *wanted.streams[i];
    const AVStream& to = *found->streams[i];
    const std::string where = " of track " + std::to_string(i);
    lost.compare_tags(from.metadata, to.metadata, where, time);
    const std::string flags = flags_to_text(from.disposition & ~to.disposition);
    if (!flags.empty()) lost.add((flags.find('+') == std::string::npos ? "flag " : "flags ") + flags + where);
  }
  for (unsigned i = 0; i < wanted.nb_chapters; ++i)
    if (i >= found->nb_chapters ||
        tag_of(wanted.chapters[i]->metadata, "title") != tag_of(found->chapters[i]->metadata, "title"))
      lost.add("chapter " + std::to_string(i + 1));
  return lost.text().empty() ? "" : std::string(wanted.oformat->name) + " has no place for " + lost.text();
}

}  // namespace trivelet::io
