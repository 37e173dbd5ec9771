// Chapters and tags of a container in the metadata of a stream, and back.

#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "codec/base/limits.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"

namespace trivelet::io {

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

}  // namespace trivelet::io
