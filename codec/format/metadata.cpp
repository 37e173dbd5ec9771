#include "codec/format/metadata.h"

#include <algorithm>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/format/container.h"

namespace trivelet {

namespace {

constexpr std::size_t kMaxValueBytes = std::size_t{1} << 16;

template <class IO, class Display>
void visit_mastering_display(IO& io, Display& d) {
  for (auto& xy : d.chromaticity)
    for (auto& v : xy) io.fixed(v);
  io.fixed(d.max_luminance);
  io.fixed(d.min_luminance);
}

template <class IO, class Light>
void visit_content_light(IO& io, Light& l) {
  io.fixed(l.max_content);
  io.fixed(l.max_frame_average);
}

std::vector<std::uint8_t> chapters_of(const Metadata& m) {
  require(m.chapter_time_base.num > 0 && m.chapter_time_base.den > 0, ErrorKind::kBadArgument,
          "chapters with a time base of " + to_string(m.chapter_time_base));
  ByteWriter w;
  w.fixed(m.chapter_time_base.num);
  w.fixed(m.chapter_time_base.den);
  w.varint(m.chapters.size());
  std::int64_t before = m.chapters[0].begin;
  for (const Chapter& c : m.chapters) {
    require(c.begin >= before && c.end >= c.begin, ErrorKind::kBadArgument,
            "a chapter from " + std::to_string(c.begin) + " to " + std::to_string(c.end) + " behind one from " +
                std::to_string(before));
    require(
        c.title.size() <= kMaxTextBytes, ErrorKind::kBadArgument,
        "a chapter's title of " + count_of(c.title.size(), "byte") + "; the limit is " + std::to_string(kMaxTextBytes));
    w.signed_varint(c.begin);
    w.signed_varint(c.end);
    w.text(c.title, kMaxTextBytes);
    before = c.begin;
  }
  return std::move(w.bytes);
}

bool is_key(const std::string& key) {
  return !key.empty() && key.size() <= kMaxTextBytes &&
         std::none_of(key.begin(), key.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
}

std::vector<std::uint8_t> entries_of(const Metadata& m) {
  ByteWriter w;
  w.varint(m.entries.size());
  for (const auto& [key, value] : m.entries) {
    require(is_key(key), ErrorKind::kBadArgument,
            "metadata with the key '" + key.substr(0, 64) + "'; keys are in lower case, of 1.." +
                std::to_string(kMaxTextBytes) + " bytes");
    require(value.size() <= kMaxValueBytes, ErrorKind::kBadArgument,
            "metadata '" + key.substr(0, 64) + "' of " + count_of(value.size(), "byte") + "; the limit is " +
                std::to_string(kMaxValueBytes));
    w.text(key, kMaxTextBytes);
    w.text(value, kMaxValueBytes);
  }
  return std::move(w.bytes);
}

void read_chapters(ByteReader& r, Metadata& m) {
  Rational base;
  r.fixed(base.num);
  r.fixed(base.den);
  if (base.num <= 0 || base.den <= 0) bad("chapters: their time base");
  std::uint64_t n = 0;
  r.varint(n);
  if (n > r.left() / 3) bad("chapters: more than there are bytes");
  std::vector<Chapter> chapters;
  for (std::uint64_t i = 0; i < n; ++i) {
    Chapter c;
    r.signed_varint(c.begin);
    r.signed_varint(c.end);
    r.text(c.title, kMaxTextBytes);
    if (c.end < c.begin || (i > 0 && c.begin < chapters.back().begin)) bad("chapters: their order");
    chapters.push_back(std::move(c));
  }
  m.chapter_time_base = base;
  m.chapters = std::move(chapters);
}

void read_entries(ByteReader& r, Metadata& m) {
  std::uint64_t n = 0;
  r.varint(n);
  if (n > r.left() / 2) bad("metadata: more than there are bytes");
  std::vector<std::pair<std::string, std::string>> entries(static_cast<std::size_t>(n));
  for (auto& [key, value] : entries) {
    r.text(key, kMaxTextBytes);
    r.text(value, kMaxValueBytes);
    if (!is_key(key)) bad("metadata: a key");
  }
  m.entries = std::move(entries);
}

void read_box(const ExtraBox& box, Metadata& m) {
  ByteReader r(box.payload.data(), box.payload.size(), "metadata");
  if (box.type == "mdcv") {
    MasteringDisplay d;
    visit_mastering_display(r, d);
    m.mastering_display = d;
  } else if (box.type == "clli") {
    ContentLight l;
    visit_content_light(r, l);
    m.content_light = l;
  } else if (box.type == "chap") {
    read_chapters(r, m);
  } else if (box.type == "meta") {
    read_entries(r, m);
  }
}

}  // namespace

std::vector<ExtraBox> metadata_boxes(const Metadata& m) {
  std::vector<ExtraBox> boxes;
  ByteWriter w;
  if (m.mastering_display) {
    visit_mastering_display(w, *m.mastering_display);
    boxes.push_back({"mdcv", std::exchange(w.bytes, {})});
  }
  if (m.content_light) {
    visit_content_light(w, *m.content_light);
    boxes.push_back({"clli", std::exchange(w.bytes, {})});
  }
  if (!m.chapters.empty()) boxes.push_back({"chap", chapters_of(m)});
  if (!m.entries.empty()) boxes.push_back({"meta", entries_of(m)});
  return boxes;
}

Metadata read_metadata(const std::vector<ExtraBox>& boxes) {
  Metadata m;
  for (const ExtraBox& box : boxes) try {
      read_box(box, m);
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
    }
  return m;
}

std::uint64_t metadata_bytes(const Metadata& metadata) {
  std::uint64_t bytes = 0;
  for (const ExtraBox& box : metadata_boxes(metadata)) bytes += kBoxHeaderBytes + box.payload.size() + kBoxCrcBytes;
  return bytes;
}

}  // namespace trivelet
