// join() and join_places() of edit.h: concatenates streams by renumbering GOPs and merging indexes; coded bytes are
// copied.
#include "trivelet/edit.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/edit/header_difference.h"
#include "codec/format/chunk_check.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/metadata.h"
#include "codec/format/stream_input.h"
#include "codec/format/stream_layout.h"
#include "codec/format/stream_writer.h"
#include "codec/volume/volume_map.h"

namespace trivelet {

namespace {

// One of the streams to join: its description and access to its bytes.
struct Part {
  Part(const JoinInput& input, const Limits& limits) : name("'" + input.name + "'"), in(*input.source, bytes_read) {
    require(
        in.seekable(), ErrorKind::kBadArgument,
        name +
            ": the index at the end of the stream is needed first, and a pipe cannot be read from its end; use a file");
    layout.limits = limits;
    layout.read(in);
    const StreamInfo& info = layout.info;
    if (!info.header_damage.empty()) fail_here(info.header_damage);
    if (!info.complete) fail_here("the stream is not complete, its end is missing");
    for (const ExtraBox& box : info.damaged_boxes)
      if (box.type != kFrontTableBox) fail_here("the box '" + box.type + "' is damaged");
    require(!volume_map_of(info.boxes), ErrorKind::kUnsupported,
            name + " holds a volume, whose shape is that of one stream; encode its slices together");
  }
  [[noreturn]] void fail_here(const std::string& what) const { bad(name + ": " + what); }

  std::string name;
  std::uint64_t bytes_read = 0;
  StreamInput in;
  StreamLayout layout;
};

class Joiner {
 public:
  Joiner(std::span<const JoinInput> inputs, ByteSink& sink, const Limits& limits, ReadBack* again)
      : out_(sink), again_(again) {
    require(!inputs.empty(), ErrorKind::kBadArgument, "no stream to join");
    for (const JoinInput& input : inputs) parts_.push_back(std::make_unique<Part>(input, limits));
    header_ = parts_[0]->layout.header;
    bool known = true;
    std::uint64_t frames = 0;
    std::uint64_t gops = 0;
    int largest = 1;  // frames of a GOP
    for (const auto& part : parts_) {
      const StreamLayout& l = part->layout;
      const std::string difference = header_difference(header_, l.header, false);
      require(difference.empty(), ErrorKind::kBadArgument,
              part->name + " does not fit " + parts_[0]->name + ": " + difference);
      check_boxes(*part);
      known = known && l.header.video.frames > 0;
      gops += l.info.gops.size();
      require(!__builtin_add_overflow(frames, l.promised_frames, &frames), ErrorKind::kBadStream,
              part->name + ": more frames than 64 bits can count");
      check_limit(frames, limits.frames, "frames", part->name + " is the end of " + count_of(frames, "frame"));
      header_.gop_frames = std::max(header_.gop_frames, l.header.gop_frames);
      largest = std::max(largest, l.largest_gop());
    }
    header_.video.frames = known ? frames : 0;
    const std::uint64_t samples = header_.samples(largest);
    check_limit(samples, limits.samples, "samples", "GOPs of " + count_of(samples, "sample"));
    if (again_ && parts_[0]->layout.has_front_table) table_room_ = front_table_room(header_, gops, false);
    for (const auto& part : parts_) result_.index_damage.push_back(part->layout.info.index_damage);
    place();
  }

  JoinPlaces places() const { return {places_, header_.video.time_base}; }

  JoinResult run() {
    out_.write_header(header_);
    if (table_room_ > 0) out_.write_box(empty_front_table(table_room_));
    // In the encoder's order, so that the result is what an encoder would have written.
    std::vector<ExtraBox> chapters = metadata_boxes(all_chapters());
    const auto write_chapters = [&] {
      for (const ExtraBox& box : std::exchange(chapters, {})) out_.write_box(box);
    };
    for (const ExtraBox& box : parts_[0]->layout.info.boxes) {
      if (box.type == "chap" || box.type == "meta") write_chapters();
      if (box.type != "chap") out_.write_box(box);
    }
    write_chapters();
    for (const auto& part : parts_) append(*part);
    out_.write_end(result_.frames, index_);
    result_.bytes = out_.position();
    if (table_room_ > 0) write_front_table(*again_, table_room_);
    return result_;
  }

 private:
  // The boxes that must be equal in all streams. Chapters are merged, and free metadata comes from the first stream.
  static std::vector<ExtraBox> boxes_of(const Part& part) {
    std::vector<ExtraBox> boxes = part.layout.info.boxes;
    std::erase_if(boxes, [](const ExtraBox& b) { return b.type == "chap" || b.type == "meta"; });
    return boxes;
  }

  // The time shift of a part that begins at or before the end of the previous one.
  static std::int64_t shift_of(std::int64_t end, std::int64_t begin) {
    return begin < end ? difference(end, begin) : 0;
  }

  void place() {
    std::int64_t end = 0;
    bool begun = false;
    for (const auto& part : parts_) {
      const std::vector<GopInfo>& gops = part->layout.info.gops;
      JoinPlace& place = places_.emplace_back();
      if (gops.empty()) continue;
      if (begun) place.shift_pts = shift_of(end, gops.front().begin_pts);
      place.begin_pts = sum(gops.front().begin_pts, place.shift_pts);
      place.end_pts = end = sum(gops.back().end_pts, place.shift_pts);
      place.empty = false;
      begun = true;
    }
  }

  Metadata all_chapters() const {
    Metadata all;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const auto& part = parts_[i];
      const StreamInfo& info = part->layout.info;
      const std::int64_t shift = places_[i].shift_pts;
      if (info.metadata.chapters.empty()) continue;
      const Rational& unit = info.metadata.chapter_time_base;
      require(all.chapters.empty() || unit == all.chapter_time_base, ErrorKind::kBadArgument,
              part->name + " does not fit " + parts_[0]->name + ": time base of chapters " + to_string(unit) + " and " +
                  to_string(all.chapter_time_base));
      all.chapter_time_base = unit;
      const auto units = static_cast<std::int64_t>(
          std::llround(static_cast<double>(shift) * header_.video.time_base.value() / unit.value()));
      for (const Chapter& c : info.metadata.chapters) {
        // Parts of one video that keep their times all carry the chapters of the whole video.
        const bool again = shift == 0 && std::any_of(all.chapters.begin(), all.chapters.end(), [&](const Chapter& a) {
                             return a.begin == c.begin && a.end == c.end && a.title == c.title;
                           });
        if (again) continue;
        const std::int64_t begin = sum(c.begin, units);
        // Parts may overlap by a rounding error.
        const std::int64_t from = all.chapters.empty() ? begin : std::max(begin, all.chapters.back().begin);
        all.chapters.push_back({from, std::max(from, sum(c.end, units)), c.title});
      }
    }
    return all;
  }

  void check_boxes(const Part& part) const {
    const std::vector<ExtraBox> a = boxes_of(*parts_[0]);
    const std::vector<ExtraBox> b = boxes_of(part);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool same = i < a.size() && i < b.size() && a[i].type == b[i].type && a[i].payload == b[i].payload;
      require(same, ErrorKind::kBadArgument,
              part.name + " does not fit " + parts_[0]->name + ": different boxes '" + (i < a.size() ? a : b)[i].type +
                  "' behind the header");
    }
  }

  void append(Part& part) {
    const StreamInfo& info = part.layout.info;
    const std::uint64_t first_frame = result_.frames;
    std::uint64_t next = 0;
    std::int64_t shift = 0;
    for (std::size_t i = 0; i < info.gops.size(); ++i) {
      const GopInfo& g = info.gops[i];
      if (g.first_frame != next)
        part.fail_here("a GOP begins with frame " + std::to_string(g.first_frame) + ", expected " +
                       std::to_string(next));
      next += static_cast<std::uint64_t>(g.frames);
      const std::string where = "the GOP packet at byte " + std::to_string(g.offset);
      GopHeader h = read_head(part, g, where);
      const std::uint64_t body = part.in.position();
      if (i == 0 && result_.gops > 0) shift = shift_of(end_time_, h.times[0].pts);
      for (FrameTime& t : h.times) t.pts = sum(t.pts, shift);
      end_time_ = sum(h.times.back().pts, h.times.back().duration);
      h.index = result_.gops;
      h.first_frame = first_frame + g.first_frame;
      GopInfo written = g;
      written.first_frame = h.first_frame;
      written.begin_pts = h.times[0].pts;
      written.end_pts = end_time_;
      written.offset = out_.begin_gop(header_, h);
      for (const ChunkEntry& section : h.motion) copy_chunk(part, body, section, where);
      for (const ChunkEntry& chunk : h.chunks) copy_chunk(part, body, chunk, where);
      written.bytes = out_.position() - written.offset;
      index_.push_back(std::move(written));
      copy_boxes(part, g);
      ++result_.gops;
    }
    if (next != part.layout.promised_frames)
      part.fail_here("the stream should have " + count_of(part.layout.promised_frames, "frame") + " and has " +
                     std::to_string(next));
    result_.frames += next;
  }

  static std::int64_t sum(std::int64_t a, std::int64_t b) {
    std::int64_t s = 0;
    require(!__builtin_add_overflow(a, b, &s), ErrorKind::kBadStream, "times of frames beyond 64 bits");
    return s;
  }
  static std::int64_t difference(std::int64_t a, std::int64_t b) {
    std::int64_t s = 0;
    require(!__builtin_sub_overflow(a, b, &s), ErrorKind::kBadStream, "times of frames beyond 64 bits");
    return s;
  }

  GopHeader read_head(Part& part, const GopInfo& g, const std::string& where) {
    part.in.seek(g.offset);
    std::vector<std::uint8_t> bytes;
    Box box;
    if (!part.in.append(bytes, kBoxHeaderBytes) || !parse_box_header(bytes.data(), box) || !box.is("Gop ") ||
        box.length + kBoxHeaderBytes != g.bytes)
      part.fail_here("there is not " + where);
    bytes.clear();
    if (!part.in.append(bytes, 4)) part.fail_here(where + " is cut");
    const auto n = load_little_endian<std::uint32_t>(bytes.data());
    if (n < 8 || n > kMaxHeaderBytes || n > box.length || !part.in.append(bytes, n - 4))
      part.fail_here(where + " is damaged");
    GopHeader h;
    try {
      h = parse_gop_header(part.layout.header, bytes.data(), bytes.size());
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      part.fail_here(where + ": " + e.what());
    }
    if (h.first_frame != g.first_frame || h.frames != g.frames)
      part.fail_here(where + " holds other frames than the index says");
    std::vector<std::uint64_t> layers(part.layout.header.layers);
    for (std::size_t i = 0; i < h.chunks.size(); ++i) layers[i * layers.size() / h.chunks.size()] += h.chunks[i].size;
    for (std::size_t l = 0; l < layers.size(); ++l)
      if (layers[l] != g.layers[l].bytes) part.fail_here(where + " has other layers than the index says");
    if (h.body_bytes != box.length - n) part.fail_here(where + ": its chunks do not fill it");
    return h;
  }

  void copy_chunk(Part& part, std::uint64_t body, const ChunkEntry& chunk, const std::string& where) {
    if (chunk.size == 0) return;
    part.in.seek(body + chunk.offset);
    bytes_.clear();
    if (!part.in.append(bytes_, chunk.size)) part.fail_here(where + " is cut");
    if (!is_intact(chunk, bytes_.data()))
      part.fail_here(where + ": the chunk at byte " + std::to_string(body + chunk.offset) + " has a wrong checksum");
    out_.write(bytes_.data(), bytes_.size());
  }

  // Copies what lies between a GOP and the next one or the index: checksums of parts, with the new GOP number, and
  // unknown boxes. A front table is not valid there.
  void copy_boxes(Part& part, const GopInfo& gop) {
    for (std::uint64_t at = gop.offset + gop.bytes;;) {
      const std::string where = "box at byte " + std::to_string(at);
      part.in.seek(at);
      std::uint8_t head[kBoxHeaderBytes];
      Box box;
      if (part.in.read(head, sizeof head) < sizeof head || !parse_box_header(head, box))
        part.fail_here("there is no intact " + where + ", behind a GOP");
      if (is_stream_box(box.type)) return;
      require(!box.critical(), ErrorKind::kUnsupported,
              part.name + ": unknown critical box '" + box.type + "' at byte " + std::to_string(at));
      if (box.is(kFrontTableBox)) {
        if (box.length > part.in.size() - part.in.position()) part.fail_here("the stream ends inside the " + where);
        at += sizeof head + box.length;
        continue;
      }
      bytes_.clear();
      if (box.length > kMaxExtraBytes || !part.in.append(bytes_, box.length))
        part.fail_here("the " + where + " has " + count_of(box.length, "byte") + "; the limit is " +
                       std::to_string(kMaxExtraBytes) + ", or the end of the stream");
      if (!crc_matches(bytes_.data(), bytes_.size())) part.fail_here("the " + where + " is damaged");
      if (box.is("part")) renumber_checks(bytes_);
      out_.write_box(box.type, bytes_);
      at += sizeof head + box.length;
    }
  }

  // Layout: version, number of the GOP, the rest. Other versions are copied unchanged.
  void renumber_checks(std::vector<std::uint8_t>& checks) const {
    ByteReader in(checks.data(), checks.size() - 4, "checks of parts");
    std::uint8_t version = 0;
    std::uint64_t number = 0;
    in.fixed(version);
    if (version != 1) return;
    in.varint(number);
    ByteWriter out;
    out.fixed(version);
    out.varint(result_.gops);
    out.bytes.insert(out.bytes.end(), checks.end() - 4 - static_cast<std::ptrdiff_t>(in.left()), checks.end() - 4);
    append_crc(out.bytes);
    checks = std::move(out.bytes);
  }

  StreamWriter out_;
  ReadBack* again_;
  std::size_t table_room_ = 0;  // reserved for the content of the front table; 0 = none
  std::vector<std::unique_ptr<Part>> parts_;
  std::vector<JoinPlace> places_;  ///< of parts_
  StreamHeader header_;
  std::vector<GopInfo> index_;
  std::vector<std::uint8_t> bytes_;  // the current chunk or box
  std::int64_t end_time_ = 0;        // end of the last frame
  JoinResult result_;
};

}  // namespace

JoinPlaces join_places(std::span<const JoinInput> inputs, const Limits& limits) {
  MemorySink nothing;
  const JoinPlaces places = Joiner(inputs, nothing, limits, nullptr).places();
  for (const JoinInput& input : inputs) input.source->seek(0);
  return places;
}

JoinResult join(std::span<const JoinInput> inputs, ByteSink& sink, const Limits& limits, ReadBack* again) {
  return Joiner(inputs, sink, limits, again).run();
}

}  // namespace trivelet
