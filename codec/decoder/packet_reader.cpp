// The packets of a stream (decoder_state.h): finds them, reads the wanted chunks and detects damage.

#include <algorithm>
#include <cstring>
#include <utility>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/decoder/decoder_state.h"
#include "codec/format/container.h"

namespace trivelet {

void Decoder::State::report_read(const std::string& what) {
  if (!params.keep_partial) fail(ErrorKind::kBadStream, what);
  if (found.size() < kMostDamage) found.push_back(what);
}

bool Decoder::State::open_next_packet(Box& box, std::uint64_t& offset) {
  if (info.has_index) {
    while (next_gop < info.gops.size() && !wanted_gop(next_gop)) {
      const GopInfo& g = info.gops[next_gop++];
      follow(g.first_frame, g.frames, "GOP packet at byte " + std::to_string(g.offset));
    }
    if (next_gop == info.gops.size()) {
      at_end = true;
      if (expected_frame >= params.end_frame) return false;
      if (!info.complete)
        report_read("the stream is not complete: its end is missing after frame " + std::to_string(expected_frame));
      else if (expected_frame < promised_frames)
        report_read("the stream should have " + count_of(promised_frames, "frame") + ", the last one found is " +
                    std::to_string(expected_frame));
      return false;
    }
    // Read this packet only: a damaged packet must not extend into the next, which has its own place in the index.
    const GopInfo& g = info.gops[next_gop++];
    in.seek(g.offset);
    offset = g.offset;
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("Gop ") &&
        box.length + kBoxHeaderBytes == g.bytes)
      return true;
    report_read("there is no intact GOP packet of " + count_of(g.bytes, "byte") + " at byte " + std::to_string(offset));
    return false;
  }
  for (;;) {
    offset = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    std::size_t got = sizeof head;
    if (pending_box) {
      std::memcpy(head, pending_box->data(), sizeof head);
      offset -= sizeof head;
      pending_box.reset();
    } else {
      got = in.read(head, sizeof head);
    }
    if (got < sizeof head) {
      at_end = true;
      report_read("the stream ends at byte " + std::to_string(in.position()) + ", after frame " +
                  std::to_string(expected_frame) + ", without its end box");
      return false;
    }
    if (!parse_box_header(head, box)) {
      report_read("damaged box header at byte " + std::to_string(offset));
      at_end = !(in.seekable() && resync(in));
      if (at_end) return false;
      continue;
    }
    if (box.is("Gop ")) return true;
    if (box.is("Done")) {
      at_end = true;
      std::uint8_t tail[kEndPayloadBytes];
      StreamEnd end;
      if (box.length != sizeof tail || in.read(tail, sizeof tail) < sizeof tail ||
          !parse_stream_end(tail, sizeof tail, end)) {
        report_read("the end of the stream, at byte " + std::to_string(offset) + ", is damaged");
        return false;
      }
      info.complete = true;
      if (expected_frame < end.frames)
        report_read("the stream should have " + count_of(end.frames, "frame") + ", the last one found is " +
                    std::to_string(expected_frame));
      return false;
    }
    if (box.is("Head")) bad("a second stream header at byte " + std::to_string(offset));
    require(box.is("Indx") || !box.critical(), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(offset));
    if (!in.skip(box.length)) {
      at_end = true;
      report_read("the stream ends inside the box '" + std::string(box.type) + "' at byte " + std::to_string(offset));
      return false;
    }
  }
}

void Decoder::State::follow(std::uint64_t first_frame, int frames, const std::string& where) {
  const auto [from, to] = std::minmax(first_frame, expected_frame);
  if (from < to && from < params.end_frame && to > params.first_frame)
    report_read(where + ": begins with frame " + std::to_string(first_frame) + ", expected " +
                std::to_string(expected_frame));
  expected_frame = first_frame + static_cast<std::uint64_t>(frames);
}

// Reads the header of a packet of `payload` bytes; `n` gets the header's size. False if the packet is not wanted or
// unusable.
bool Decoder::State::receive_head(GopHeader& g, std::uint64_t payload, const std::string& where, std::uint32_t& n) {
  std::vector<std::uint8_t> head;
  n = 0;
  if (payload < 8) {
    report_read(where + ": a packet of " + count_of(payload, "byte"));
    if (!in.skip(payload)) at_end = true;
    return false;
  }
  if (in.append(head, 4)) {
    n = load_little_endian<std::uint32_t>(head.data());
    if (n < 8 || n > kMaxHeaderBytes || n > payload) {
      report_read(where + ": a header of " + count_of(n, "byte") + " in a packet of " + std::to_string(payload));
      if (!in.skip(payload - 4)) at_end = true;
      return false;
    }
  }
  if (n == 0 || !in.append(head, n - 4)) {
    at_end = true;
    report_read(where + ": the stream ends inside its header");
    return false;
  }
  try {
    g = parse_gop_header(header, head.data(), head.size());
    if (g.body_bytes != payload - n)
      bad("chunks of " + count_of(g.body_bytes, "byte") + " in a body of " + std::to_string(payload - n));
  } catch (const Error& e) {
    report_read(where + ": " + e.what());
    if (!in.skip(payload - n)) at_end = true;
    return false;
  }
  follow(g.first_frame, g.frames, where);
  const bool by_index = header.predicted_keys && info.has_index;  // which knew that it is wanted
  if (!by_index && !wanted_before(g.first_frame, g.frames) && !keys_wanted_before(g)) {
    if (!in.skip(payload - n)) {
      at_end = true;
      if (expected_frame < params.end_frame) report_read(where + ": the stream ends inside the packet");
    }
    return false;
  }
  check_frames(g.frames, g.key);
  const std::uint64_t samples = header.samples(g.frames);
  if (g.body_bytes > 8 * samples + kMaxHeaderBytes) {
    report_read(where + ": " + count_of(g.body_bytes, "byte") + " for " + count_of(samples, "sample"));
    if (!in.skip(payload - n)) at_end = true;
    return false;
  }
  return true;
}

// Layers, temporal bands and bytes that the caller wants. `head_bytes`, the size of the header, counts towards the
// budget.
Decoder::State::Share Decoder::State::wanted_share(const GopHeader& g, std::uint64_t payload,
                                                   std::uint64_t head_bytes) const {
  Share share;
  share.layers = params.max_layers > 0 ? params.max_layers : header.layers;
  share.stop_plane = params.max_planes > 0 ? std::max(0, g.planes - params.max_planes) : 0;
  share.whole = share.layers == header.layers && share.stop_plane == 0 && reduction.spatial == 0 &&
                reduction.temporal == 0 && !has_region();
  while (share.layers > 1 && g.layer_top[static_cast<std::size_t>(share.layers) - 1] <= share.stop_plane)
    --share.layers;  // they contain no wanted planes
  const int levels = g.temporal_bands(header) - 1;
  share.bands = 1 + levels - (header.layout == Layout::kDyadic ? 0 : std::min(levels, reduction.temporal));
  // The index says what the GOPs after it need.
  share.only_keys = header.predicted_keys && !g.motion.empty() &&
                    !(info.has_index ? wanted_whole(next_gop - 1) : wanted_before(g.first_frame, g.frames));
  if (share.only_keys) share.bands = 1;
  share.budget = ~std::uint64_t{0};
  if (params.max_bytes > 0)
    share.budget = static_cast<std::uint64_t>(static_cast<double>(params.max_bytes) * static_cast<double>(payload) /
                                              static_cast<double>(std::max<std::uint64_t>(1, in.size())));
  if (params.max_bits_per_pixel > 0)
    share.budget = static_cast<std::uint64_t>(params.max_bits_per_pixel * static_cast<double>(output.width) *
                                              output.height * low_length(g.frames, reduction.temporal) / 8);
  for (const ChunkEntry& section : g.motion) head_bytes += section.size;
  if (share.budget != ~std::uint64_t{0}) share.budget -= std::min<std::uint64_t>(share.budget, head_bytes);
  return share;
}

// Reads the sections of motion of predicted keys and of the decoded levels, or those of keys alone; complete() decodes
// them.
void Decoder::State::fetch_motion(Packet& packet, bool only_keys) {
  const GopHeader& g = packet.head;
  const int levels = g.motion_levels(), dropped = only_keys ? levels : std::min(levels, reduction.temporal);
  MotionSections& to = packet.motion;
  packet.received.motion = nullptr;
  to.begin(MotionPlaces(g.frames, g.key, levels), header.video.width, header.video.height, dropped, g.predicts_keys);
  packet.received.motion = to.motion;
  to.components = static_cast<int>(header.components.size());
  to.motion->sections.resize(g.motion.size());
  to.wrong.resize(g.motion.size());
  for (int level = to.top; level >= dropped; --level) {
    const auto i = static_cast<std::size_t>(to.top - level);
    if (planned) {
      planned->add(in.position() + g.motion[i].offset, g.motion[i].size);
      continue;
    }
    std::vector<std::uint8_t>& bytes = to.motion->sections[i];
    if (!in.append(bytes, g.motion[i].size))
      to.wrong[i] = "the stream ends inside it";
    else if (!is_intact(g.motion[i], bytes.data()))
      to.wrong[i] = "it has a wrong checksum";
  }
}

// Reads the chunks of a share into packet.bytes, skips the others, and leaves the source after the packet. Of chunks
// with `checks` it reads the header only. `fetched` gets their places. False if a chunk is damaged.
bool Decoder::State::fetch_chunks(Packet& packet, const Share& share, const std::vector<ChunkChecks>& checks,
                                  std::uint64_t body, const std::string& where, std::vector<FetchedChunk>& fetched) {
  const GopHeader& g = packet.head;
  std::vector<std::uint8_t>& bytes = packet.bytes;
  const auto* given = planned ? static_cast<const GivenBytes*>(&in.source()) : nullptr;
  fetched.assign(g.chunks.size(), {});
  bytes.clear();
  const bool is_there = in.seekable() && in.position() <= in.size();
  if (share.whole && is_there && !planned && checks.empty())  // else it grows while reading
    bytes.reserve(static_cast<std::size_t>(std::min(g.body_bytes, in.size() - in.position())) +
                  (g.chunks.size() + 1) * kChunkPadding);
  bool intact = true;
  std::uint64_t budget = share.budget;
  std::size_t i = 0;
  for (int l = 0; l < header.layers && !at_end; ++l)
    for (int b = 0; b < g.temporal_bands(header) && !at_end; ++b)
      for (int d = header.spatial_levels; d >= 0 && !at_end; --d, ++i) {
        const ChunkEntry& c = g.chunks[i];
        if (l >= share.layers || b >= share.bands || d < reduction.spatial) continue;
        if (c.size > budget) {  // the first chunk above the budget ends reading
          budget = 0;
          packet.whole = false;
          continue;
        }
        budget -= c.size;
        FetchedChunk& chunk = fetched[i];
        chunk = {bytes.size(), static_cast<std::size_t>(c.size), true};
        if (c.size == 0) continue;
        if (planned) {
          const ByteRange range{body + c.offset, checks.empty() ? c.size : checks[i].head_bytes};
          planned->add(range.offset, range.size);
          chunk.ok = given->has(range) && !checks.empty();  // headers say which parts are wanted
          if (!chunk.ok) continue;
        }
        const auto name = [&] {
          return "chunk of layer " + std::to_string(l) + ", temporal band " + std::to_string(b) + ", distance " +
                 std::to_string(d) + " at byte " + std::to_string(body + c.offset) + " has a wrong checksum";
        };
        if (!checks.empty()) {  // only its header now
          bytes.resize(bytes.size() + chunk.size + kChunkPadding);
          in.seek(body + c.offset);
          const auto n_head = static_cast<std::size_t>(checks[i].head_bytes);
          if (in.read(bytes.data() + chunk.at, n_head) < n_head ||
              !(checks[i].expected || has_crc32c(bytes.data() + chunk.at, n_head, checks[i].head_crc))) {
            chunk.ok = intact = false;
            report_read(where + ": the head of the " + name());
          }
          continue;
        }
        if (!in.skip(body + c.offset - in.position()) || !in.append(bytes, c.size)) {
          at_end = true;
          chunk.ok = intact = false;
          report_read(where + ": the stream ends inside the packet");
          break;
        }
        if (!is_intact(c, bytes.data() + chunk.at)) {
          chunk.ok = intact = false;
          report_read(where + ", frames " + std::to_string(g.first_frame) + ".." +
                      std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) + ": the " + name());
        }
        bytes.insert(bytes.end(), kChunkPadding, 0);
      }
  bytes.insert(bytes.end(), kChunkPadding, 0);
  if (!checks.empty() || planned) {
    in.seek(body + g.body_bytes);
  } else if (!at_end && !in.skip(body + g.body_bytes - in.position())) {
    // Even if no missing byte was wanted: the stream is cut, so what follows may be missing too.
    at_end = true;
    if (expected_frame < params.end_frame) report_read(where + ": the stream ends inside the packet");
  }
  return intact;
}

// Puts fetched chunks into packet.received. A chunk can be decoded if those it depends on were: in layer 0 coarser
// distances and lower bands, in other layers the same distance and band in the layers before. False if a chunk is
// damaged.
bool Decoder::State::join_chunks(Packet& packet, const std::vector<ChunkChecks>& checks, std::uint64_t body,
                                 const std::string& where, std::vector<FetchedChunk>& fetched) {
  LayeredGop& received = packet.received;
  const auto distances = static_cast<std::size_t>(header.spatial_levels) + 1;
  const auto bands = static_cast<std::size_t>(packet.head.temporal_bands(header));
  bool intact = true;
  std::size_t i = 0;
  for (int l = 0; l < header.layers; ++l)
    for (int b = 0; b < packet.head.temporal_bands(header); ++b)
      for (int d = header.spatial_levels; d >= 0; --d, ++i) {
        FetchedChunk& chunk = fetched[i];
        if (!chunk.ok) continue;
        if (l > 0) {
          chunk.ok = fetched[i - bands * distances].ok;
        } else {
          if (d < header.spatial_levels) chunk.ok = chunk.ok && fetched[i - 1].ok;
          if (b > 0) chunk.ok = chunk.ok && fetched[i - distances].ok;
        }
        if (!chunk.ok) continue;
        try {
          read_chunk(header, packet.bytes.data() + chunk.at, chunk.size, l, b, d, received);
          if (!checks.empty() && chunk.size > 0 &&
              !read_parts(packet, packet.head.chunks[i], checks[i], body, chunk.at, b, d))
            bad("a part of the chunk of layer " + std::to_string(l) + ", temporal band " + std::to_string(b) +
                ", distance " + std::to_string(d) + " at byte " + std::to_string(body + packet.head.chunks[i].offset) +
                " has a wrong checksum");
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::kBadStream) throw;
          chunk.ok = intact = false;
          if (checks.empty() || !checks[i].expected) report_read(where + ": " + e.what());
          for_parts(header, received, b, d, [&](std::size_t c, std::size_t block, std::size_t s) {
            LayeredSegment& begun = received.components[c].blocks[block][s];  // part of this chunk: undone
            if (l == 0) begun.top = 0;
            begun.parts.resize(std::min<std::size_t>(begun.parts.size(), static_cast<std::size_t>(l)));
          });
        }
      }
  return intact;
}

// Called for a GOP after its wanted chunks, `intact` or not. Checks that an open GOP has the key frame before it, and
// records the state of its own key frame. False if a GOP it depends on is damaged.
bool Decoder::State::follow_key(Packet& packet, bool intact, const std::string& where) {
  const GopHeader& g = packet.head;
  KeyLeft own;
  if (!g.motion.empty() && MotionPlaces(g.frames, g.key, g.motion_levels()).ends_with_key())
    own = {g.first_frame + static_cast<std::uint64_t>(g.frames), intact, intact && packet.whole};
  const KeyLeft before = std::exchange(key_left, own);
  const bool follows = before.end == g.first_frame && g.first_frame > 0;
  packet.received.follows = follows;
  packet.received.begins = !std::exchange(received_one, true);
  if (g.key != GopKey::kOpen) return true;
  packet.whole = packet.whole && follows && before.whole;
  if (g.predicts_keys) {
    key_left.intact = key_left.intact && follows && before.intact;
    key_left.whole = key_left.whole && follows && before.whole;
  }
  // A GOP decoded only for its key frame does not need the one before, unless that is predicted from it.
  if ((follows && before.intact) || (!wanted(g.first_frame, g.frames) && !g.predicts_keys)) return true;
  report_read(where + ", frames " + std::to_string(g.first_frame) + ".." +
              std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) +
              ": the key frame before them is " + (follows ? "damaged" : "not there"));
  return false;
}

// Some are kept, the one used last in front: scene cuts shorten GOPs, and with motion each has its own levels and key.
void Decoder::State::find_geometry(const GopKind& kind, const StreamHeader& gop_header) {
  constexpr std::size_t kMostKinds = 8;
  auto at = std::find_if(geometries.begin(), geometries.end(), [&](const auto& g) { return g.first == kind; });
  if (at == geometries.end()) {
    if (geometries.size() == kMostKinds) geometries.pop_back();
    geometries.emplace_back(kind, make_geometry ? make_geometry(gop_header, kind.frames)
                                                : std::make_shared<StreamGeometry>(gop_header, kind.frames));
    at = geometries.end() - 1;
  }
  std::rotate(geometries.begin(), at, at + 1);
  geometry = geometries.front().second;
}

bool Decoder::State::receive(Packet& packet, std::uint64_t payload, std::uint64_t offset) {
  GopHeader& g = packet.head;
  LayeredGop& received = packet.received;
  const std::string where = "GOP packet at byte " + std::to_string(offset);
  std::uint32_t n = 0;
  if (!receive_head(g, payload, where, n)) return false;
  const Share share = wanted_share(g, payload, n);
  packet.whole = share.whole;
  const std::uint64_t body = in.position();
  const std::vector<ChunkChecks> checks = read_checks(g, body + g.body_bytes);
  std::vector<FetchedChunk> fetched;
  const bool moves = !g.motion.empty();
  if (moves) fetch_motion(packet, share.only_keys);
  bool intact = fetch_chunks(packet, share, checks, body, where, fetched);
  if (planned && checks.empty()) return true;

  find_geometry({g.frames, g.motion_levels(), g.key}, header.describe_gop(g.motion_levels(), g.key));
  packet.geometry = geometry;
  received.frames = g.frames;
  received.step = g.step;
  received.stop_plane = share.stop_plane;
  received.only_keys = share.only_keys;
  received.no_samples = !wanted(g.first_frame, g.frames);
  received.frame_gains = g.frame_gains;
  if (!moves) received.motion = nullptr;
  geometry->clear(received);
  if (has_region(g)) find_needed();
  intact = join_chunks(packet, checks, body, where, fetched) && intact;
  if (has_region(g)) forget_unneeded(received);
  packet.where = where;
  packet.counted_damaged = !intact;
  packet.whole = packet.whole && intact && !share.only_keys;
  return true;
}

// The second half of reading, in the order of the stream: the vectors of a packet that was received, if no reader has
// decoded them, and what depends on the GOP before.
void Decoder::State::complete(Packet& packet, bool decoded) {
  const GopHeader& g = packet.head;
  bool intact = !packet.counted_damaged;
  if (!g.motion.empty()) {
    MotionSections& motion = packet.motion;
    if (!decoded) {
      if (!motion_pool && motion.motion->grid.regions() > 1)
        motion_pool = std::make_unique<ThreadPool>(params.threads, params.workers);
      motion.decode(motion_pool.get());
    }
    for (const std::string& line : motion.damage)
      report_read(packet.where + ", frames " + std::to_string(g.first_frame) + ".." +
                  std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) + ": " + line);
    intact = intact && motion.intact;
    packet.whole = packet.whole && motion.intact;
  }
  intact = follow_key(packet, intact, packet.where) && intact;
  packet.counted_damaged = !intact;
  packet.whole = packet.whole && intact;
}

// Stand-in for the checks after a packet in a plan that does not have them yet: sizes of chunk headers as known from
// the front table. Empty if no byte is known.
std::vector<ChunkChecks> Decoder::State::expected_checks(const GopHeader& g, std::uint64_t body) const {
  const auto& given = static_cast<const GivenBytes&>(in.source());
  std::vector<ChunkChecks> checks(g.chunks.size());
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (g.chunks[i].size == 0) continue;
    checks[i].head_bytes = std::min(g.chunks[i].size, given.known_from(body + g.chunks[i].offset));
    checks[i].expected = true;
    if (checks[i].head_bytes == 0) return {};
  }
  return checks;
}

// The checks after a GOP packet, with which its chunks can be read in part; empty if there are no valid ones. Called at
// the position of its chunks.
std::vector<ChunkChecks> Decoder::State::read_checks(const GopHeader& g, std::uint64_t end_of_packet) {
  if (!has_region(g) || !in.seekable() || !info.has_index) return {};
  const std::uint64_t back = in.position();
  std::vector<ChunkChecks> checks;
  std::uint8_t head[kBoxHeaderBytes];
  Box box;
  std::vector<std::uint8_t> payload;
  if (end_of_packet <= in.size()) try {
      in.seek(end_of_packet);
      if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("part") &&
          box.length <= kMaxExtraBytes && in.append(payload, box.length))
        checks = parse_checks(g, payload.data(), payload.size()).value_or(std::vector<ChunkChecks>{});
    } catch (const NotGiven&) {
      if (!planned) throw;
      checks = expected_checks(g, back);
      if (checks.empty()) throw;
    }
  in.seek(back);
  return checks;
}

// Reads the needed parts of a chunk into its place in `bytes`. False if one is damaged.
bool Decoder::State::read_parts(Packet& packet, const ChunkEntry& chunk, const ChunkChecks& checks, std::uint64_t body,
                                std::size_t place, int band, int distance) {
  LayeredGop& received = packet.received;
  std::vector<std::uint8_t>& bytes = packet.bytes;
  std::size_t next = 0;
  bool intact = true;
  for_parts(header, received, band, distance, [&](std::size_t c, std::size_t b, std::size_t s) {
    const LayerPart& part = received.components[c].blocks[b][s].parts.back();
    if (part.size == 0 || !intact) return;
    intact = checks.expected || next < checks.parts.size();
    const std::uint32_t crc = intact && !checks.expected ? checks.parts[next++] : 0;
    const auto resolutions = static_cast<std::size_t>(received.components[c].grid->resolutions());
    if (!intact || !needed[c][b * resolutions + s % resolutions]) return;
    const auto at = static_cast<std::size_t>(part.data - bytes.data());
    if (planned) return planned->add(body + chunk.offset + (at - place), part.size);
    in.seek(body + chunk.offset + (at - place));
    intact = in.read(bytes.data() + at, part.size) == part.size && has_crc32c(bytes.data() + at, part.size, crc);
  });
  return intact;
}

void Decoder::State::find_needed() {
  needed.clear();
  for (int c = 0; c < geometry->components(); ++c) {
    const PixelFormat& f = header.video.format;
    PictureRegion r = params.region;
    if (f.is_chroma(c)) {  // the chroma samples of these columns and rows
      const int end_x = (r.x + r.width + (1 << f.log2_chroma_w) - 1) >> f.log2_chroma_w;
      const int end_y = (r.y + r.height + (1 << f.log2_chroma_h) - 1) >> f.log2_chroma_h;
      r.x >>= f.log2_chroma_w;
      r.y >>= f.log2_chroma_h;
      r.width = end_x - r.x;
      r.height = end_y - r.y;
    }
    needed.push_back(needed_segments(geometry->grid(c), reduction.spatial, r));
  }
}

// Removes what was not read or need not be decoded.
void Decoder::State::forget_unneeded(LayeredGop& received) const {
  for (std::size_t c = 0; c < received.components.size(); ++c) {
    auto& component = received.components[c];
    const auto resolutions = static_cast<std::size_t>(component.grid->resolutions());
    for (std::size_t b = 0; b < component.blocks.size(); ++b)
      for (std::size_t s = 0; s < component.blocks[b].size(); ++s)
        if (!needed[c][b * resolutions + s % resolutions]) component.blocks[b][s] = {};
  }
}

}  // namespace trivelet
