#include "codec/format/stream_layout.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/metadata.h"
#include "codec/format/stream_geometry.h"
#include "trivelet/codec.h"

namespace trivelet {

VideoInfo reduced_video(VideoInfo v, const Reduction& r) {
  v.width = low_length(v.width, r.spatial);
  v.height = low_length(v.height, r.spatial);
  if (r.temporal > 0 && v.frame_rate.num > 0) {
    if (v.frame_rate.num % (1 << r.temporal) == 0)
      v.frame_rate.num >>= r.temporal;
    else if (v.frame_rate.den <= (0x7fffffff >> r.temporal))
      v.frame_rate.den <<= r.temporal;
  }
  return v;
}

namespace {

bool has_box(const StreamInfo& info, const std::string& type) {
  return std::any_of(info.boxes.begin(), info.boxes.end(), [&](const ExtraBox& b) { return b.type == type; });
}

}  // namespace

StreamInfo probe(ByteSource& source, const Limits& limits) { return probe(source, limits, false); }

StreamInfo probe(ByteSource& source, const Limits& limits, bool uses_front_table) {
  std::uint64_t bytes_read = 0;
  StreamInput in(source, bytes_read);
  StreamLayout layout;
  layout.uses_front_table = uses_front_table;
  layout.limits = limits;
  layout.read(in);
  std::uint64_t frames = layout.info.video.frames;
  if (const auto& gops = layout.info.gops; !gops.empty())
    frames = std::max(frames, gops.back().first_frame + static_cast<std::uint64_t>(gops.back().frames));
  check_limit(frames, limits.frames, "frames", "a stream of " + count_of(frames, "frame"));
  const std::uint64_t samples = layout.header.samples(layout.largest_gop());
  check_limit(samples, limits.samples, "samples", "GOPs of " + count_of(samples, "sample"));
  return std::move(layout.info);
}

void StreamLayout::read(StreamInput& in) {
  read_head(in);
  if (!in.seekable()) return;
  read_end(in);
  // A first GOP whose box is damaged says so itself; where another box is lost, what is left may mean something else.
  if (damaged_box_ && !(info.index_damage.empty() && !info.gops.empty() && info.gops[0].offset == *damaged_box_))
    info.header_damage = "damaged box header at byte " + std::to_string(*damaged_box_) + ", before the first GOP";
}

int StreamLayout::largest_gop() const {
  std::uint64_t most = header.video.frames > 0 ? header.video.frames : header.gop_frames;
  if (info.has_index) most = static_cast<std::uint64_t>(longest_gop(info.gops));
  return static_cast<int>(std::min<std::uint64_t>(most, header.gop_frames));
}

void StreamLayout::read_head(StreamInput& in) {
  std::uint8_t signature[sizeof kSignature];
  const std::size_t got = in.read(signature, sizeof signature);
  if (!is_tvl(signature, got))
    bad("this is not a .tvl stream: it does not begin with the signature 89 'TVL' 0D 0A 1A 0A");
  std::uint8_t head[kBoxHeaderBytes];
  if (in.read(head, sizeof head) < sizeof head) bad("the stream ends before its header");
  Box box;
  if (!parse_box_header(head, box))
    bad("damaged box header at byte " + std::to_string(in.position() - sizeof head) + ", before the stream header");
  if (!box.is("Head")) bad(std::string("the stream begins with a box '") + box.type + "' instead of its header");
  if (box.length < 8 || box.length > kMaxHeaderBytes)
    bad("stream header of " + count_of(box.length, "byte") + "; the limit is " + std::to_string(kMaxHeaderBytes));
  std::vector<std::uint8_t> payload;
  if (!in.append(payload, box.length)) bad("the stream ends inside its header");
  header = parse_stream_header(payload.data(), payload.size());
  read_extra_boxes(in);
  if (has_box(info, "Mask") && !has_box(info, "Volm")) bad("a box 'Mask' in a stream that holds no volume");
  info.metadata = read_metadata(info.boxes);
  const int dropped = header.dropped_spatial;
  const bool dyadic = header.layout == Layout::kDyadic;
  info.video = reduced_video(
      header.video, {dropped, dyadic ? std::min<int>(dropped, header.temporal_levels) : header.dropped_temporal});
  info.format_major = header.major;
  info.format_minor = header.minor;
  info.profile = header.profile;
  info.fast_mode = header.fast_mode;
  info.lossless = header.lossless;
  info.decomposition = header.decomposition(0);
  info.motion = header.motion;
  info.gop_frames = header.gop_frames;
  info.block_size = header.block_size();
  info.layers = header.layers;
  info.settings = header.settings;
  info.writer = header.writer;
  info.file_bytes = in.size();
}

// A table of another stream, or of what this one was before, has another size for it.
void StreamLayout::use_front_table(StreamInput& in, const ExtraBox& box) const {
  if (!uses_front_table || !in.seekable()) return;
  std::optional<FrontTable> table = parse_front_table(box.payload.data(), box.payload.size());
  if (!table || table->stream_bytes != in.size()) return;
  for (FrontCopy& copy : table->copies) in.know(copy.offset, std::move(copy.bytes));
}

void StreamLayout::read_extra_boxes(StreamInput& in) {
  const std::uint64_t begin = in.position();
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    Box box;
    const bool intact = in.read(head, sizeof head) == sizeof head && parse_box_header(head, box);
    if (intact && box.is("Head")) bad("a second stream header at byte " + std::to_string(at));
    if (!intact || is_stream_box(box.type)) {
      if (in.seekable()) {
        if (!intact && in.position() == at + sizeof head) damaged_box_ = at;
        in.seek(at);
      } else if (in.position() == at + sizeof head) {
        pending_box.emplace();
        std::memcpy(pending_box->data(), head, sizeof head);
      }
      return;
    }
    require(!box.critical() || box.is("Volm") || box.is("Mask"), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(at));
    if (box.length > kMaxExtraBytes)
      bad("a box '" + std::string(box.type) + "' of " + count_of(box.length, "byte") + "; the limit is " +
          std::to_string(kMaxExtraBytes));
    ExtraBox extra;
    extra.type = box.type;
    if (!in.append(extra.payload, box.length)) bad("the stream ends inside the box '" + extra.type + "'");
    if (at == begin) has_front_table = box.is(kFrontTableBox);
    // Checks of parts belong to a GOP; before the first one there is none.
    const bool sound = extra.type != "part" && crc_matches(extra.payload.data(), extra.payload.size());
    if (box.critical()) {
      if (!sound) bad("the box '" + extra.type + "' at byte " + std::to_string(at) + " is damaged");
      if (has_box(info, extra.type)) bad("a second box '" + extra.type + "' at byte " + std::to_string(at));
    }
    if (!sound) {
      info.damaged_boxes.push_back(std::move(extra));
    } else if (box.is(kFrontTableBox)) {  // it describes this stream alone
      extra.payload.resize(extra.payload.size() - kBoxCrcBytes);
      if (at == begin) use_front_table(in, extra);
    } else if (!is_known_extra_box(extra.type) || !has_box(info, extra.type)) {
      extra.payload.resize(extra.payload.size() - kBoxCrcBytes);
      info.boxes.push_back(std::move(extra));
    }
  }
}

// The end of the stream, found from the end of the file, and the index it points to.
void StreamLayout::read_end(StreamInput& in) {
  constexpr std::size_t kEndBytes = kBoxHeaderBytes + kEndPayloadBytes;
  const std::uint64_t start = in.position();
  const std::uint64_t size = in.size();
  std::uint8_t tail[kEndBytes];
  Box box;
  StreamEnd end;
  bool found = false;
  if (size >= start + kEndBytes) {
    in.seek(size - kEndBytes);
    found = in.read(tail, sizeof tail) == sizeof tail && parse_box_header(tail, box) && box.is("Done") &&
            box.length == kEndPayloadBytes && parse_stream_end(tail + kBoxHeaderBytes, kEndPayloadBytes, end);
  }
  if (found) {
    info.complete = true;
    promised_frames = end.frames;
    try {
      require(end.index_offset >= start && end.index_offset <= size - kEndBytes - kBoxHeaderBytes,
              ErrorKind::kBadStream, "it is not where the end of the stream says");
      read_index(in, start, end.index_offset, size - kEndBytes);
      info.has_index = true;
      index_offset = end.index_offset;
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream) throw;
      info.index_damage = std::string("the index of the stream is damaged (") + e.what() + ")";
    }
  } else {
    info.index_damage = "the end of the stream is missing or damaged, and with it the index";
  }
  if (!info.has_index) {
    info.gops.clear();
    in.seek(start);
    scan(in);
  }
  in.seek(start);
}

void StreamLayout::read_index(StreamInput& in, std::uint64_t start, std::uint64_t offset, std::uint64_t end) {
  std::uint8_t head[kBoxHeaderBytes];
  Box box;
  in.seek(offset);
  if (in.read(head, sizeof head) < sizeof head || !parse_box_header(head, box) || !box.is("Indx") ||
      box.length != end - in.position())
    bad("there is no box of it at byte " + std::to_string(offset));
  constexpr std::uint64_t kUnpacked = 16;  // what a GopInfo takes for each byte of its entry, at most
  check_memory(limits, (1 + kUnpacked) * box.length, "the index of this stream");
  std::vector<std::uint8_t> payload;
  if (!in.append(payload, box.length)) bad("the stream ends inside it");
  info.gops = parse_index(payload.data(), payload.size(), header.layers);
  for (const GopInfo& g : info.gops)
    if (g.offset < start || g.offset > offset || g.bytes > offset - g.offset || g.bytes < kBoxHeaderBytes)
      bad("index: a GOP of " + count_of(g.bytes, "byte") + " at byte " + std::to_string(g.offset));
  const std::uint64_t frames =
      info.gops.empty() ? 0 : info.gops.back().first_frame + static_cast<std::uint64_t>(info.gops.back().frames);
  if (frames != promised_frames)
    bad("index: " + count_of(frames, "frame") + ", the end of the stream says " + std::to_string(promised_frames));
}

int longest_gop(const std::vector<GopInfo>& gops) {
  int most = 1;
  for (const GopInfo& g : gops) most = std::max(most, g.frames);
  return most;
}

GopInfo describe_gop(const StreamHeader& stream, const GopHeader& g, std::uint64_t offset, std::uint64_t bytes) {
  GopInfo info;
  info.offset = offset;
  info.bytes = bytes;
  info.first_frame = g.first_frame;
  info.frames = g.frames;
  info.key = g.key;
  info.predicts_keys = g.key == GopKey::kOpen && g.predicts_keys;
  info.begin_pts = g.times[0].pts;
  info.end_pts = end_of(g.times);
  info.layers.resize(stream.layers);
  const std::size_t per_layer = g.chunks.size() / stream.layers;
  for (std::size_t i = 0; i < g.chunks.size(); ++i) info.layers[i / per_layer].bytes += g.chunks[i].size;
  if (stream.lossless && g.has_hash) info.layers.back().error = 0;
  return info;
}

// Rebuilds the index from the packets' own headers, as far as they are intact. Damaged packets are left out; a reader
// of their frames finds them missing.
void StreamLayout::scan(StreamInput& in) {
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) < sizeof head) break;
    Box box;
    if (!parse_box_header(head, box)) {
      in.seek(at + 1);
      if (!resync(in)) break;
      continue;
    }
    if (box.is("Done")) {  // not at the end of the file, since then it had been found: something is behind it
      std::uint8_t tail[kEndPayloadBytes];
      StreamEnd end;
      if (box.length == sizeof tail && in.read(tail, sizeof tail) == sizeof tail &&
          parse_stream_end(tail, sizeof tail, end)) {
        info.complete = true;
        promised_frames = end.frames;
        const std::uint64_t behind = in.size() - in.position();
        if (behind > 0) info.index_damage = count_of(behind, "byte", "is", "are") + " behind the end of the stream";
      }
      break;
    }
    if (box.is("Gop ")) {
      std::vector<std::uint8_t> bytes;
      if (in.append(bytes, 4)) {
        const auto n = load_little_endian<std::uint32_t>(bytes.data());
        if (n >= 8 && n <= kMaxHeaderBytes && n <= box.length && in.append(bytes, n - 4)) {
          try {
            const GopHeader g = parse_gop_header(header, bytes.data(), bytes.size());
            if (g.body_bytes == box.length - n)
              info.gops.push_back(describe_gop(header, g, at, kBoxHeaderBytes + box.length));
          } catch (const Error&) {  // damaged
          }
          // A vector that grows holds as much again.
          check_memory(limits, info.gops.size() * (2 * sizeof(GopInfo) + header.layers * sizeof(LayerInfo)),
                       "the list of this stream's GOPs");
        }
      }
    }
    in.seek(at + kBoxHeaderBytes);
    if (box.length > in.size() - in.position()) break;
    in.seek(in.position() + box.length);
  }
  info.has_index = !info.gops.empty();
}

bool resync(StreamInput& in) {
  std::uint64_t at = in.position();
  std::vector<std::uint8_t> window;
  // The window grows, so that the work stays in proportion to the way that is gone.
  for (std::uint64_t reach = 4096; at + kBoxHeaderBytes <= in.size();
       reach = std::min(2 * reach, std::uint64_t{1} << 20)) {
    in.seek(at);
    window.clear();
    in.append(window, std::min(reach, in.size() - at));
    if (window.size() < kBoxHeaderBytes) return false;
    for (std::size_t i = 0; i + kBoxHeaderBytes <= window.size(); ++i) {
      Box box;
      const std::uint8_t* p = window.data() + i;
      if ((std::memcmp(p, "Gop ", 4) == 0 || std::memcmp(p, "Indx", 4) == 0 || std::memcmp(p, "Done", 4) == 0) &&
          parse_box_header(p, box)) {
        in.seek(at + i);
        return true;
      }
    }
    at += window.size() - kBoxHeaderBytes + 1;
  }
  return false;
}

}  // namespace trivelet
