#include "capi/metadata.h"

#include <string>

#include "capi/handle.h"

namespace trivelet::capi {

namespace {

std::uint16_t to_u16(std::int32_t value, const char* what) {
  require(value >= 0 && value <= 65535, ErrorKind::kBadArgument,
          std::string(what) + " is " + std::to_string(value) + "; it must be 0..65535");
  return static_cast<std::uint16_t>(value);
}

std::string text_of(const char* text, const char* what) { return not_null(text, what); }

}  // namespace

tvl_metadata default_metadata() {
  tvl_metadata m{};
  m.struct_size = sizeof m;
  const Metadata d;
  m.chapter_time_base_num = d.chapter_time_base.num;
  m.chapter_time_base_den = d.chapter_time_base.den;
  return m;
}

Metadata to_metadata(const tvl_metadata* given) {
  const tvl_metadata m = read_struct(given, default_metadata(), "tvl_metadata");
  Metadata out;
  if (m.has_mastering_display) {
    MasteringDisplay& display = out.mastering_display.emplace();
    for (std::size_t i = 0; i < 8; ++i) display.chromaticity[i / 2][i % 2] = to_u16(m.chromaticity[i], "chromaticity");
    display.max_luminance = m.max_luminance;
    display.min_luminance = m.min_luminance;
  }
  if (m.has_content_light)
    out.content_light = ContentLight{to_u16(m.max_content_light, "max_content_light"),
                                     to_u16(m.max_frame_average, "max_frame_average")};
  out.chapter_time_base = {m.chapter_time_base_num, m.chapter_time_base_den};
  require((m.chapters || m.chapter_count == 0) && (m.entries || m.entry_count == 0), ErrorKind::kBadArgument,
          std::to_string(m.chapter_count) + " chapters and " + std::to_string(m.entry_count) +
              " entries, of which some are at NULL");
  for (std::uint64_t i = 0; i < m.chapter_count; ++i)
    out.chapters.push_back(
        {m.chapters[i].begin, m.chapters[i].end, text_of(m.chapters[i].title, "title of a chapter")});
  for (std::uint64_t i = 0; i < m.entry_count; ++i)
    out.entries.emplace_back(text_of(m.entries[i].key, "key of an entry"),
                             text_of(m.entries[i].value, "value of an entry"));
  return out;
}

void give_metadata(const Metadata& metadata, GivenMetadata& out) {
  out.chapters.clear();
  out.entries.clear();
  for (const Chapter& c : metadata.chapters) out.chapters.push_back({c.begin, c.end, c.title.c_str()});
  for (const auto& [key, value] : metadata.entries) out.entries.push_back({key.c_str(), value.c_str()});
  tvl_metadata& m = out.all = default_metadata();
  if (metadata.mastering_display) {
    m.has_mastering_display = 1;
    for (std::size_t i = 0; i < 8; ++i) m.chromaticity[i] = metadata.mastering_display->chromaticity[i / 2][i % 2];
    m.max_luminance = metadata.mastering_display->max_luminance;
    m.min_luminance = metadata.mastering_display->min_luminance;
  }
  if (metadata.content_light) {
    m.has_content_light = 1;
    m.max_content_light = metadata.content_light->max_content;
    m.max_frame_average = metadata.content_light->max_frame_average;
  }
  m.chapter_time_base_num = metadata.chapter_time_base.num;
  m.chapter_time_base_den = metadata.chapter_time_base.den;
  m.chapters = out.chapters.data();
  m.chapter_count = out.chapters.size();
  m.entries = out.entries.data();
  m.entry_count = out.entries.size();
}

}  // namespace trivelet::capi
