// Decoder of codec.h: find the boxes, read the chunks that are wanted, hand them to the backend.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include "codec/backend.h"
#include "codec/bytes.h"
#include "codec/codec.h"
#include "codec/container.h"
#include "codec/gop_hash.h"
#include "codec/hash.h"
#include "codec/region.h"
#include "codec/stream_input.h"

namespace trivelet {

std::size_t MemorySource::read(void* data, std::size_t size) {
  const std::size_t n = std::min(size, size_ - position_);
  if (n > 0) std::memcpy(data, data_ + position_, n);
  position_ += n;
  return n;
}

void MemorySource::seek(std::uint64_t position) {
  require(position <= size_, ErrorKind::kIo,
          "seek to " + std::to_string(position) + " in " + std::to_string(size_) + " bytes");
  position_ = static_cast<std::size_t>(position);
}

void MemorySink::write(const void* data, std::size_t size) {
  const auto* p = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), p, p + size);
}

bool is_tvl(const void* data, std::size_t size) {
  return size >= sizeof kSignature && std::memcmp(data, kSignature, sizeof kSignature) == 0;
}

namespace {

// Size and frame rate of what is left.
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

constexpr std::size_t kPadding = 16;  // readable bytes behind chunk data, for the coder's 64-bit loads

[[noreturn]] void bad(const std::string& message) { fail(ErrorKind::kBadStream, message); }

}  // namespace

struct Decoder::State {
  // A GOP on its way through the backend.
  struct Packet {
    GopHeader head;
    std::shared_ptr<const StreamGeometry> geometry;
    LayeredGop received;
    std::vector<std::uint8_t> bytes;  // chunks, each followed by padding
    std::vector<std::string> damage;  // found by the backend
    bool counted_damaged = false;
    bool whole = false;  // everything was received and asked for
  };

  DecoderParams params;
  CodecStats stats;
  StreamInput in;
  StreamHeader header;
  StreamInfo info;
  VideoInfo output;
  Reduction reduction;
  std::unique_ptr<GopDecoder> backend;
  std::shared_ptr<const StreamGeometry> geometry;
  std::deque<std::unique_ptr<Packet>> flying;     // in the order of the stream
  std::unique_ptr<Packet> spare;                  // its memory is used again
  std::exception_ptr later;                       // from reading ahead: comes after the GOPs before it
  std::size_t next_gop = 0;                       // with an index
  std::vector<std::vector<std::uint8_t>> needed;  // with a region: per component, needed_segments()
  std::uint64_t expected_frame = 0;
  std::uint64_t promised_frames = 0;  // what the end of the stream says, once it is known
  std::uint64_t first_box = 0;
  std::optional<std::array<std::uint8_t, kBoxHeaderBytes>> pending_box;  // read from a pipe, not yet looked at
  bool at_end = false;

  State(ByteSource& source, const DecoderParams& p) : params(p), in(source, stats.stream_bytes) {}

  void read_header();
  void read_extra_boxes();
  void read_index();
  void scan();
  bool resync();
  void check_request();
  std::uint64_t memory_needed() const;
  void report(const std::string& what);
  // Reads packets until one of the wanted range is received. False at the end.
  bool next(Packet& packet);
  bool open_next_packet(Box& box, std::uint64_t& offset);
  bool receive(Packet& packet, std::uint64_t payload, std::uint64_t offset);
  // The checks behind a GOP packet, with which its chunks can be read in part; none when there are no good ones.
  std::vector<ChunkChecks> read_checks(const GopHeader& g, std::uint64_t end_of_packet);
  // Reads the parts of a chunk that are needed into its place in `bytes`. False when one is damaged.
  bool read_parts(Packet& packet, const ChunkEntry& chunk, const ChunkChecks& checks, std::uint64_t body,
                  std::size_t place, int band, int distance);
  void find_needed();
  void forget_unneeded(LayeredGop& received) const;
  bool has_region() const { return params.region.width > 0; }
  bool wanted(std::uint64_t first_frame, int frames) const {
    return first_frame < params.end_frame && first_frame + static_cast<std::uint64_t>(frames) > params.first_frame;
  }
  // Gives the backend as many GOPs as it likes to have.
  void read_ahead();
  // Takes the result of the oldest; null at the end.
  template <class T>
  std::unique_ptr<Packet> decode(T& result);
  void verify(const Gop& gop, Packet& packet);
  void count_damaged(Packet& packet) {
    if (!packet.counted_damaged) ++stats.damaged_gops;
    packet.counted_damaged = true;
  }
};

void Decoder::State::report(const std::string& what) {
  if (!params.keep_partial) bad(what);
  if (stats.damage.size() < 100) stats.damage.push_back(what);
}

void Decoder::State::read_header() {
  std::uint8_t signature[sizeof kSignature];
  const std::size_t got = in.read(signature, sizeof signature);
  if (!is_tvl(signature, got))
    bad("this is not a .tvl stream: it does not begin with the signature 89 'TVL' 0D 0A 1A 0A");
  for (;;) {
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) < sizeof head) bad("the stream ends before its header");
    Box box;
    if (!parse_box_header(head, box))
      bad("damaged box header at byte " + std::to_string(in.position() - sizeof head) + ", before the stream header");
    if (box.is("Head")) {
      if (box.length < 8 || box.length > kMaxHeaderBytes)
        bad("stream header of " + std::to_string(box.length) + " bytes; the limit is " +
            std::to_string(kMaxHeaderBytes));
      std::vector<std::uint8_t> payload;
      if (!in.append(payload, box.length)) bad("the stream ends inside its header");
      header = parse_stream_header(payload.data(), payload.size());
      break;
    }
    require(!box.critical(), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' before the stream header");
    if (!in.skip(box.length)) bad("the stream ends before its header");
  }
  read_extra_boxes();
  first_box = in.position() - (pending_box ? kBoxHeaderBytes : 0);
  info.video = header.video;
  info.format_major = header.major;
  info.format_minor = header.minor;
  info.profile = header.profile;
  info.fast_mode = header.fast_mode;
  info.lossless = header.lossless;
  info.decomposition = header.decomposition(0);
  info.gop_frames = header.gop_frames;
  info.block_size = header.block_size();
  info.layers = header.layers;
  info.settings = header.settings;
  info.writer = header.writer;
  info.file_bytes = in.size();
}

// Boxes between the header and the first GOP. A pipe's next box header is kept for open_next_packet().
void Decoder::State::read_extra_boxes() {
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    Box box;
    const bool intact = in.read(head, sizeof head) == sizeof head && parse_box_header(head, box);
    if (!intact || is_stream_box(box.type)) {
      if (in.seekable()) {
        in.seek(at);
      } else if (in.position() == at + sizeof head) {
        pending_box.emplace();
        std::memcpy(pending_box->data(), head, sizeof head);
      }
      return;
    }
    require(!box.critical() || box.is("Volm"), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(at));
    if (box.length > kMaxExtraBytes)
      bad("a box '" + std::string(box.type) + "' of " + std::to_string(box.length) + " bytes; the limit is " +
          std::to_string(kMaxExtraBytes));
    ExtraBox extra;
    extra.type = box.type;
    if (!in.append(extra.payload, box.length)) bad("the stream ends inside the box '" + extra.type + "'");
    info.boxes.push_back(std::move(extra));
  }
}

// The index at the end of a seekable source, else a scan over the packets' headers.
void Decoder::State::read_index() {
  constexpr std::size_t kEndBytes = kBoxHeaderBytes + kEndPayloadBytes;
  const std::uint64_t start = in.position();
  const std::uint64_t size = in.size();
  if (size >= start + kEndBytes) {
    std::uint8_t tail[kEndBytes];
    in.seek(size - kEndBytes);
    Box box;
    StreamEnd end;
    if (in.read(tail, sizeof tail) == sizeof tail && parse_box_header(tail, box) && box.is("Done") &&
        parse_stream_end(tail + kBoxHeaderBytes, sizeof tail - kBoxHeaderBytes, end)) {
      info.complete = true;
      promised_frames = end.frames;
      if (end.index_offset >= start && end.index_offset <= size - kEndBytes - kBoxHeaderBytes) {
        std::uint8_t head[kBoxHeaderBytes];
        in.seek(end.index_offset);
        if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("Indx") &&
            box.length <= size - kEndBytes - in.position()) {
          std::vector<std::uint8_t> payload;
          if (in.append(payload, box.length)) {
            try {
              info.gops = parse_index(payload.data(), payload.size(), header.layers);
              info.has_index = true;
              for (const GopInfo& g : info.gops)
                if (g.offset < start || g.offset > size || g.bytes > size - g.offset) info.has_index = false;
              const std::uint64_t frames = info.gops.empty() ? 0
                                                             : info.gops.back().first_frame +
                                                                   static_cast<std::uint64_t>(info.gops.back().frames);
              if (frames != end.frames) info.has_index = false;
            } catch (const Error&) {
              info.has_index = false;  // fall through to the scan
            }
          }
        }
      }
    }
  }
  if (!info.has_index) {
    in.seek(start);
    scan();
  }
  in.seek(start);
}

// Rebuilds the index from the packets' own headers, as far as they are intact.
void Decoder::State::scan() {
  info.gops.clear();
  for (;;) {
    const std::uint64_t at = in.position();
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) < sizeof head) break;
    Box box;
    if (!parse_box_header(head, box)) {
      in.seek(at + 1);
      if (!resync()) break;
      continue;
    }
    if (box.is("Gop ")) {
      std::uint8_t size_bytes[4];
      std::vector<std::uint8_t> bytes_of_head;
      if (in.read(size_bytes, 4) == 4) {
        const auto n = load_little_endian<std::uint32_t>(size_bytes);
        if (n >= 8 && n <= kMaxHeaderBytes && n <= box.length) {
          bytes_of_head.assign(size_bytes, size_bytes + 4);
          if (in.append(bytes_of_head, n - 4)) {
            try {
              const GopHeader g = parse_gop_header(header, bytes_of_head.data(), bytes_of_head.size());
              GopInfo i;
              i.offset = at;
              i.bytes = kBoxHeaderBytes + box.length;
              i.first_frame = g.first_frame;
              i.frames = g.frames;
              info.gops.push_back(i);
            } catch (const Error&) {  // a damaged packet is left out; decoding will say so
            }
          }
        }
      }
    }
    if (box.is("Done")) break;
    in.seek(at + kBoxHeaderBytes);
    if (box.length > in.size() - in.position()) break;
    in.seek(in.position() + box.length);
  }
  info.has_index = !info.gops.empty();
}

// Moves to the next intact header of a GOP packet. Only for seekable sources.
bool Decoder::State::resync() {
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

std::uint64_t Decoder::State::memory_needed() const {
  // Per sample of a GOP at the decoded size: 4 bytes of coefficient, the sample itself twice (a GOP in work, one being
  // written), and as much again for the compressed bytes. The coder works on whole blocks, however little of them lies
  // inside the picture: masks of their words once, the state of decoding for each thread.
  constexpr std::uint64_t kMaskBytes = 4 * 16 + 8;
  const std::uint64_t state_bytes = header.profile == Profile::kDense ? 640 : 30 * 8 + 3 * 8 + 6 * 2 + 4;
  const auto threads = static_cast<std::uint64_t>(
      params.threads > 0 ? params.threads : std::max(1u, std::thread::hardware_concurrency()));
  std::uint64_t coder = 0;
  std::uint64_t largest_block = 0;
  std::vector<std::pair<Shape, int>> known;  // components of equal shape share their masks
  std::uint64_t samples = 0;
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape s = header.component_shape(c, header.gop_frames);
    samples += static_cast<std::uint64_t>(low_length(s.frames, reduction.temporal)) *
               static_cast<std::uint64_t>(low_length(s.height, reduction.spatial)) *
               static_cast<std::uint64_t>(low_length(s.width, reduction.spatial));
    const Decomposition d = header.decomposition(c);
    const GridSize grid = grid_size(s, d, header.block_size());
    const std::uint64_t segment = sizeof(LayeredSegment) + header.layers * sizeof(LayerPart);
    coder += grid.blocks * static_cast<std::uint64_t>(grid.segments) * segment;
    largest_block = std::max(largest_block, grid.words);
    const std::pair<Shape, int> key{s, d.spatial_levels};
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      known.push_back(key);
      coder += grid.words * kMaskBytes;
    }
  }
  coder += largest_block * state_bytes * threads;
  return coder + samples * (4 + 2 * static_cast<unsigned>(header.video.format.bytes_per_sample()) + 2);
}

void Decoder::State::check_request() {
  const DecoderParams& p = params;
  const int most = header.max_reduce() - header.dropped_spatial;
  require(p.reduce >= 0 && p.reduce <= most, ErrorKind::kBadArgument,
          "this stream can be reduced 0.." + std::to_string(most) + " times, not " + std::to_string(p.reduce));
  if (header.layout == Layout::kDyadic) {
    require(p.temporal_reduce == 0, ErrorKind::kBadArgument,
            "in a dyadic stream time is reduced together with the picture; use a spatial reduction alone");
    const int total = p.reduce + header.dropped_spatial;
    reduction = {total, std::min<int>(total, header.temporal_levels)};
  } else {
    const int levels = header.temporal_levels - header.dropped_temporal;
    require(p.temporal_reduce >= 0 && p.temporal_reduce <= levels, ErrorKind::kBadArgument,
            "this stream's frame rate can be halved 0.." + std::to_string(levels) + " times, not " +
                std::to_string(p.temporal_reduce));
    reduction = {p.reduce + header.dropped_spatial, p.temporal_reduce + header.dropped_temporal};
  }
  require(p.max_bytes == 0 || p.max_bits_per_pixel == 0, ErrorKind::kBadArgument,
          "one limit at a time: bytes or bits per pixel");
  require(p.max_bytes == 0 || in.seekable(), ErrorKind::kBadArgument,
          "a limit for all bytes needs to know the size of the stream, which a pipe does not tell; limit the bits per "
          "pixel instead");
  require(p.max_planes >= 0 && p.max_planes <= 30, ErrorKind::kBadArgument,
          "planes must be 1..30 (0 = all), not " + std::to_string(p.max_planes));
  require(p.max_layers >= 0 && p.max_layers <= header.layers, ErrorKind::kBadArgument,
          "this stream has " + std::to_string(header.layers) + " layers, not " + std::to_string(p.max_layers));
  require(p.first_frame < p.end_frame, ErrorKind::kBadArgument, "an empty range of frames");
  if (has_region()) {
    const PictureRegion& r = p.region;
    const int width = low_length(header.video.width, reduction.spatial);
    const int height = low_length(header.video.height, reduction.spatial);
    require(r.x >= 0 && r.y >= 0 && r.height > 0 && r.x < width && r.width <= width - r.x && r.y < height &&
                r.height <= height - r.y,
            ErrorKind::kBadArgument,
            "a region of " + std::to_string(r.width) + "x" + std::to_string(r.height) + " at " + std::to_string(r.x) +
                "," + std::to_string(r.y) + " leaves the pictures of " + std::to_string(width) + "x" +
                std::to_string(height));
    require(p.max_bytes == 0 && p.max_bits_per_pixel == 0, ErrorKind::kBadArgument,
            "a region excludes limits of bytes: these count whole pictures");
  }
  const std::uint64_t memory = memory_needed();
  require(memory <= p.max_memory, ErrorKind::kUnsupported,
          "decoding needs about " + std::to_string(memory >> 20) + " MiB, the limit is " +
              std::to_string(p.max_memory >> 20) + " MiB; raise it, or decode at a lower resolution");
}

Decoder::Decoder(ByteSource& source, const DecoderParams& params, const Backend* backend)
    : state_(std::make_unique<State>(source, params)) {
  State& s = *state_;
  s.read_header();
  s.check_request();
  if (s.in.seekable()) s.read_index();

  const bool dyadic = s.header.layout == Layout::kDyadic;
  const int dropped = s.header.dropped_spatial;
  s.info.video = reduced_video(
      s.header.video, {dropped, dyadic ? std::min<int>(dropped, s.header.temporal_levels) : s.header.dropped_temporal});
  s.output = reduced_video(s.header.video, s.reduction);
  VideoInfo& o = s.output;
  const int t = s.reduction.temporal;
  // Frames that pull() will deliver, where it can be known.
  std::uint64_t frames = 0;
  auto count = [&](std::uint64_t first, std::uint64_t n) {
    for (std::uint64_t f = 0; f < n; f += std::uint64_t{1} << t)
      if (first + f >= params.first_frame && first + f < params.end_frame) ++frames;
  };
  if (s.info.has_index) {
    for (const GopInfo& g : s.info.gops) count(g.first_frame, static_cast<std::uint64_t>(g.frames));
  } else {
    // Kept frames before frame x of a stream whose GOPs are all full.
    auto kept_before = [&](std::uint64_t x) {
      const std::uint64_t length = s.header.gop_frames;
      const std::uint64_t round = (std::uint64_t{1} << t) - 1;
      return x / length * ((length + round) >> t) + ((x % length + round) >> t);
    };
    const std::uint64_t all = s.header.video.frames;
    frames = kept_before(std::min(all, params.end_frame)) - kept_before(std::min(all, params.first_frame));
  }
  o.frames = frames;

  const Backend& b = backend ? *backend : cpu_backend();
  s.backend = b.make_decoder(s.header, s.reduction, {params.threads, params.simd});
}

Decoder::~Decoder() = default;

const StreamInfo& Decoder::info() const { return state_->info; }
const VideoInfo& Decoder::output() const { return state_->output; }
const CodecStats& Decoder::stats() const { return state_->stats; }

Gop Decoder::make_gop() const {
  return Gop(state_->output, low_length(state_->header.gop_frames, state_->reduction.temporal));
}

// Finds the next GOP box of the stream; false at its end.
bool Decoder::State::open_next_packet(Box& box, std::uint64_t& offset) {
  if (info.has_index) {
    while (next_gop < info.gops.size() && !wanted(info.gops[next_gop].first_frame, info.gops[next_gop].frames)) {
      expected_frame = info.gops[next_gop].first_frame + static_cast<std::uint64_t>(info.gops[next_gop].frames);
      ++next_gop;
    }
    if (next_gop == info.gops.size()) {
      at_end = true;
      if (!info.complete)
        report("the stream is not complete: its end is missing after frame " + std::to_string(expected_frame));
      else if (expected_frame < promised_frames && expected_frame < params.end_frame)
        report("the stream should have " + std::to_string(promised_frames) + " frames, the last one found is " +
               std::to_string(expected_frame));
      return false;
    }
    // Only this one: a damaged packet must not lead into the next, which has its own place in the index.
    const GopInfo& g = info.gops[next_gop++];
    in.seek(g.offset);
    offset = g.offset;
    std::uint8_t head[kBoxHeaderBytes];
    if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("Gop ") &&
        box.length + kBoxHeaderBytes == g.bytes)
      return true;
    report("there is no intact GOP packet of " + std::to_string(g.bytes) + " bytes at byte " + std::to_string(offset));
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
      report("the stream ends at byte " + std::to_string(in.position()) + ", after frame " +
             std::to_string(expected_frame) + ", without its end box");
      return false;
    }
    if (!parse_box_header(head, box)) {
      report("damaged box header at byte " + std::to_string(offset));
      at_end = !(in.seekable() && resync());
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
        report("the end of the stream, at byte " + std::to_string(offset) + ", is damaged");
        return false;
      }
      info.complete = true;
      if (expected_frame < end.frames)
        report("the stream should have " + std::to_string(end.frames) + " frames, the last one found is " +
               std::to_string(expected_frame));
      return false;
    }
    require(box.is("Indx") || !box.critical(), ErrorKind::kUnsupported,
            std::string("unknown critical box '") + box.type + "' at byte " + std::to_string(offset));
    if (!in.skip(box.length)) {
      at_end = true;
      report("the stream ends inside the box '" + std::string(box.type) + "' at byte " + std::to_string(offset));
      return false;
    }
  }
}

// Reads the wanted chunks of one packet. False when the packet is not wanted or beyond use.
bool Decoder::State::receive(Packet& packet, std::uint64_t payload, std::uint64_t offset) {
  GopHeader& g = packet.head;
  LayeredGop& received = packet.received;
  std::vector<std::uint8_t>& bytes = packet.bytes;
  const std::string where = "GOP packet at byte " + std::to_string(offset);
  std::vector<std::uint8_t> head;
  std::uint32_t n = 0;
  if (payload < 8) {
    report(where + ": a packet of " + std::to_string(payload) + " bytes");
    if (!in.skip(payload)) at_end = true;
    return false;
  }
  if (in.append(head, 4)) {
    n = load_little_endian<std::uint32_t>(head.data());
    if (n < 8 || n > kMaxHeaderBytes || n > payload) {
      report(where + ": a header of " + std::to_string(n) + " bytes in a packet of " + std::to_string(payload));
      if (!in.skip(payload - 4)) at_end = true;
      return false;
    }
  }
  if (n == 0 || !in.append(head, n - 4)) {
    at_end = true;
    report(where + ": the stream ends inside its header");
    return false;
  }
  try {
    g = parse_gop_header(header, head.data(), head.size());
    if (g.body_bytes != payload - n)
      bad("chunks of " + std::to_string(g.body_bytes) + " bytes in a body of " + std::to_string(payload - n));
  } catch (const Error& e) {
    report(where + ": " + e.what());
    if (!in.skip(payload - n)) at_end = true;
    return false;
  }
  if (g.first_frame != expected_frame)
    report(where + ": begins with frame " + std::to_string(g.first_frame) + ", expected " +
           std::to_string(expected_frame));
  expected_frame = g.first_frame + static_cast<std::uint64_t>(g.frames);
  if (!wanted(g.first_frame, g.frames)) {
    if (!in.skip(payload - n)) at_end = true;
    return false;
  }
  std::uint64_t samples = 0;
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c)
    samples += header.component_shape(c, g.frames).samples();
  if (g.body_bytes > 8 * samples + kMaxHeaderBytes) {
    report(where + ": " + std::to_string(g.body_bytes) + " bytes for " + std::to_string(samples) + " samples");
    if (!in.skip(payload - n)) at_end = true;
    return false;
  }

  // Read the chunks of the wanted layers, temporal bands and resolutions; skip the others.
  int layers = params.max_layers > 0 ? params.max_layers : header.layers;
  const int stop = params.max_planes > 0 ? std::max(0, g.planes - params.max_planes) : 0;
  packet.whole =
      layers == header.layers && stop == 0 && reduction.spatial == 0 && reduction.temporal == 0 && !has_region();
  while (layers > 1 && g.layer_top[static_cast<std::size_t>(layers) - 1] <= stop) --layers;  // nothing wanted in them
  std::uint64_t budget = ~std::uint64_t{0};                                                  // for chunks
  if (params.max_bytes > 0)
    budget = static_cast<std::uint64_t>(static_cast<double>(params.max_bytes) * static_cast<double>(payload) /
                                        static_cast<double>(std::max<std::uint64_t>(1, in.size())));
  if (params.max_bits_per_pixel > 0)
    budget = static_cast<std::uint64_t>(params.max_bits_per_pixel * static_cast<double>(output.width) * output.height *
                                        low_length(g.frames, reduction.temporal) / 8);
  if (budget != ~std::uint64_t{0}) budget -= std::min<std::uint64_t>(budget, n);
  const bool dyadic = header.layout == Layout::kDyadic;
  const int bands = header.temporal_bands() - (dyadic ? 0 : reduction.temporal);
  struct Have {
    std::size_t at;
    std::size_t size;
    bool ok;
  };
  const auto distances = static_cast<std::size_t>(header.spatial_levels) + 1;
  std::vector<Have> have(g.chunks.size(), {0, 0, false});
  bytes.clear();
  bool damaged = false;
  const std::uint64_t body = in.position();
  const std::vector<ChunkChecks> checks = read_checks(g, body + g.body_bytes);
  std::size_t i = 0;
  for (int l = 0; l < header.layers && !at_end; ++l)
    for (int b = 0; b < header.temporal_bands() && !at_end; ++b)
      for (int d = header.spatial_levels; d >= 0 && !at_end; --d, ++i) {
        const ChunkEntry& c = g.chunks[i];
        if (l >= layers || b >= bands || d < reduction.spatial) continue;
        if (c.size > budget) {  // what does not fit any more ends the reading
          budget = 0;
          packet.whole = false;
          continue;
        }
        budget -= c.size;
        have[i] = {bytes.size(), static_cast<std::size_t>(c.size), true};
        if (c.size == 0) continue;
        if (!checks.empty()) {  // only its head yet
          bytes.resize(bytes.size() + static_cast<std::size_t>(c.size) + kPadding);
          in.seek(body + c.offset);
          const auto n_head = static_cast<std::size_t>(checks[i].head_bytes);
          if (in.read(bytes.data() + have[i].at, n_head) < n_head ||
              crc32c(bytes.data() + have[i].at, n_head) != checks[i].head_crc) {
            have[i].ok = false;
            damaged = true;
            report(where + ": the head of the chunk of layer " + std::to_string(l) + ", temporal band " +
                   std::to_string(b) + ", distance " + std::to_string(d) + " at byte " +
                   std::to_string(body + c.offset) + " has a wrong checksum");
          }
          continue;
        }
        if (!in.skip(body + c.offset - in.position()) || !in.append(bytes, c.size)) {
          at_end = true;
          damaged = true;
          have[i].ok = false;
          report(where + ": the stream ends inside the packet");
          break;
        }
        if (crc32c(bytes.data() + have[i].at, have[i].size) != c.crc) {
          have[i].ok = false;
          damaged = true;
          report(where + ", frames " + std::to_string(g.first_frame) + ".." +
                 std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) + ": the chunk of layer " +
                 std::to_string(l) + ", temporal band " + std::to_string(b) + ", distance " + std::to_string(d) +
                 " at byte " + std::to_string(body + c.offset) + " has a wrong checksum");
        }
        bytes.insert(bytes.end(), kPadding, 0);
      }
  bytes.insert(bytes.end(), kPadding, 0);
  if (!checks.empty())
    in.seek(body + g.body_bytes);
  else if (!at_end && !in.skip(body + g.body_bytes - in.position()))
    at_end = true;

  if (!geometry || geometry->frames() != g.frames) geometry = std::make_shared<StreamGeometry>(header, g.frames);
  packet.geometry = geometry;
  received.frames = g.frames;
  received.step = g.step;
  received.stop_plane = stop;
  received.frame_gains = g.frame_gains;
  received.components.resize(header.components.size());
  for (int c = 0; c < geometry->components(); ++c) {
    auto& component = received.components[static_cast<std::size_t>(c)];
    component.grid = &geometry->grid(c);
    component.blocks.resize(static_cast<std::size_t>(component.grid->blocks()));
    for (auto& block : component.blocks) {
      block.resize(static_cast<std::size_t>(segment_count(*component.grid)));
      for (auto& s : block) {
        s.top = 0;
        s.parts.clear();
      }
    }
  }
  if (has_region()) find_needed();
  // A chunk can be read if those before it that it leans on were: coarser distances and lower bands in layer 0, the
  // same distance and band in the layers before.
  i = 0;
  for (int l = 0; l < header.layers; ++l)
    for (int b = 0; b < header.temporal_bands(); ++b)
      for (int d = header.spatial_levels; d >= 0; --d, ++i) {
        if (!have[i].ok) continue;
        const std::size_t bands_all = static_cast<std::size_t>(header.temporal_bands());
        bool usable = true;
        if (l > 0) {
          usable = have[i - bands_all * distances].ok;
        } else {
          if (d < header.spatial_levels) usable = usable && have[i - 1].ok;
          if (b > 0) usable = usable && have[i - distances].ok;
        }
        have[i].ok = usable;
        if (!usable) continue;
        try {
          read_chunk(header, bytes.data() + have[i].at, have[i].size, l, b, d, received);
          if (!checks.empty() && have[i].size > 0 &&
              !read_parts(packet, g.chunks[i], checks[i], body, have[i].at, b, d))
            bad("a part of the chunk of layer " + std::to_string(l) + ", temporal band " + std::to_string(b) +
                ", distance " + std::to_string(d) + " at byte " + std::to_string(body + g.chunks[i].offset) +
                " has a wrong checksum");
        } catch (const Error& e) {
          if (e.kind() != ErrorKind::kBadStream) throw;
          have[i].ok = false;
          damaged = true;
          report(where + ": " + e.what());
          for (std::size_t c = 0; c < received.components.size(); ++c) {  // undo what the chunk had begun
            const int k = header.components[c].spatial_levels - d;
            if (k < 0) continue;
            const auto s = static_cast<std::size_t>(segment_index(*received.components[c].grid, b, k));
            for (auto& block : received.components[c].blocks) {
              if (l == 0) block[s].top = 0;
              block[s].parts.resize(std::min<std::size_t>(block[s].parts.size(), static_cast<std::size_t>(l)));
            }
          }
        }
      }
  if (has_region()) forget_unneeded(received);
  packet.counted_damaged = false;
  if (damaged) {
    count_damaged(packet);
    packet.whole = false;
  }
  return true;
}

std::vector<ChunkChecks> Decoder::State::read_checks(const GopHeader& g, std::uint64_t end_of_packet) {
  if (!has_region() || !in.seekable() || !info.has_index) return {};
  const std::uint64_t back = in.position();
  std::vector<ChunkChecks> checks;
  std::uint8_t head[kBoxHeaderBytes];
  Box box;
  std::vector<std::uint8_t> payload;
  if (end_of_packet <= in.size()) {
    in.seek(end_of_packet);
    if (in.read(head, sizeof head) == sizeof head && parse_box_header(head, box) && box.is("part") &&
        box.length <= kMaxExtraBytes && in.append(payload, box.length))
      checks = parse_checks(g, payload.data(), payload.size()).value_or(std::vector<ChunkChecks>{});
  }
  in.seek(back);
  return checks;
}

bool Decoder::State::read_parts(Packet& packet, const ChunkEntry& chunk, const ChunkChecks& checks, std::uint64_t body,
                                std::size_t place, int band, int distance) {
  LayeredGop& received = packet.received;
  std::vector<std::uint8_t>& bytes = packet.bytes;
  std::size_t next = 0;
  bool intact = true;
  for_parts(header, received, band, distance, [&](std::size_t c, std::size_t b, std::size_t s) {
    const LayerPart& part = received.components[c].blocks[b][s].parts.back();
    if (part.size == 0 || !intact) return;
    intact = next < checks.parts.size();
    const std::uint32_t crc = intact ? checks.parts[next++] : 0;
    const auto resolutions = static_cast<std::size_t>(received.components[c].grid->resolutions());
    if (!intact || !needed[c][b * resolutions + s % resolutions]) return;
    const auto at = static_cast<std::size_t>(part.data - bytes.data());
    in.seek(body + chunk.offset + (at - place));
    intact = in.read(bytes.data() + at, part.size) == part.size && crc32c(bytes.data() + at, part.size) == crc;
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

// What was not read, or need not be decoded.
void Decoder::State::forget_unneeded(LayeredGop& received) const {
  for (std::size_t c = 0; c < received.components.size(); ++c) {
    auto& component = received.components[c];
    const auto resolutions = static_cast<std::size_t>(component.grid->resolutions());
    for (std::size_t b = 0; b < component.blocks.size(); ++b)
      for (std::size_t s = 0; s < component.blocks[b].size(); ++s)
        if (!needed[c][b * resolutions + s % resolutions]) component.blocks[b][s] = {};
  }
}

void Decoder::State::read_ahead() {
  while (!later && static_cast<int>(flying.size()) < backend->depth()) {
    auto packet = spare ? std::move(spare) : std::make_unique<Packet>();
    try {
      if (!next(*packet)) return;
    } catch (...) {
      later = std::current_exception();
      return;
    }
    packet->damage.clear();
    backend->push(packet->received, params.keep_partial ? &packet->damage : nullptr);
    flying.push_back(std::move(packet));
  }
}

template <class T>
std::unique_ptr<Decoder::State::Packet> Decoder::State::decode(T& result) {
  read_ahead();
  if (flying.empty()) {
    if (later) std::rethrow_exception(std::exchange(later, nullptr));
    return nullptr;
  }
  std::unique_ptr<Packet> packet = std::move(flying.front());
  flying.pop_front();
  require(backend->pull(result), ErrorKind::kInternal, "the backend lost a GOP");
  stats.seconds_transform = backend->seconds_transform();
  stats.seconds_coder = backend->seconds_coder();
  std::sort(packet->damage.begin(), packet->damage.end());  // threads find it in any order
  for (const std::string& d : packet->damage) {
    report("frames from " + std::to_string(packet->head.first_frame) + ": " + d);
    count_damaged(*packet);
    packet->whole = false;
  }
  return packet;
}

bool Decoder::State::next(Packet& packet) {
  while (!at_end) {
    Box box;
    std::uint64_t offset = 0;
    const auto start = std::chrono::steady_clock::now();
    const bool got = open_next_packet(box, offset) && receive(packet, box.length, offset);
    stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (got) return true;
    if (!info.has_index && expected_frame >= params.end_frame) at_end = true;  // a pipe need not be read to its end
  }
  return false;
}

void Decoder::State::verify(const Gop& gop, Packet& packet) {
  const GopHeader& g = packet.head;
  if (!(packet.whole && g.has_hash && params.verify_hash)) return;
  const auto start = std::chrono::steady_clock::now();
  const bool same = hash_samples(gop) == g.hash;
  stats.seconds_container += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!same) {
    report("frames " + std::to_string(g.first_frame) + ".." +
           std::to_string(g.first_frame + static_cast<std::uint64_t>(g.frames) - 1) +
           ": the decoded samples do not have the hash of the originals");
    count_damaged(packet);
  }
}

namespace {

// Times of the frames that remain after a temporal reduction.
std::vector<FrameTime> reduced_times(const std::vector<FrameTime>& times, int levels) {
  std::vector<FrameTime> out;
  const std::size_t step = std::size_t{1} << levels;
  for (std::size_t i = 0; i < times.size(); i += step) {
    FrameTime t = times[i];
    for (std::size_t j = i + 1; j < std::min(i + step, times.size()); ++j)
      t.duration = static_cast<std::int64_t>(static_cast<std::uint64_t>(t.duration) +
                                             static_cast<std::uint64_t>(times[j].duration));
    out.push_back(t);
  }
  return out;
}

// Moves frames [from, to) of a GOP to its beginning.
void keep_frames(Gop& gop, int from, int to) {
  if (from > 0)
    for (int c = 0; c < gop.components(); ++c) {
      const MutableVolumeView v = gop.plane(c);
      for (int f = from; f < to; ++f)
        std::memcpy(v.row(f - from, 0), v.row(f, 0), static_cast<std::size_t>(v.frame_stride));
    }
  for (int f = from; f < to; ++f)
    gop.times()[static_cast<std::size_t>(f - from)] = gop.times()[static_cast<std::size_t>(f)];
  gop.set_frames(to - from);
}

}  // namespace

bool Decoder::pull(Gop& gop) {
  State& s = *state_;
  for (;;) {
    std::unique_ptr<State::Packet> packet = s.decode(gop);
    if (!packet) return false;
    const GopHeader& g = packet->head;
    s.verify(gop, *packet);
    const std::vector<FrameTime> times = reduced_times(g.times, s.reduction.temporal);
    std::copy(times.begin(), times.end(), gop.times().begin());

    // Drop what lies outside the wanted range.
    const std::uint64_t step = std::uint64_t{1} << s.reduction.temporal;
    int from = 0;
    int to = gop.frames();
    while (from < to && g.first_frame + static_cast<std::uint64_t>(from) * step < s.params.first_frame) ++from;
    while (to > from && g.first_frame + static_cast<std::uint64_t>(to - 1) * step >= s.params.end_frame) --to;
    if (from == to) continue;
    if (from > 0 || to < gop.frames()) keep_frames(gop, from, to);

    ++s.stats.gops;
    s.stats.frames += static_cast<std::uint64_t>(gop.frames());
    for (int c = 0; c < gop.components(); ++c) s.stats.samples += gop.plane(c).shape.samples();
    s.spare = std::move(packet);
    return true;
  }
}

bool Decoder::pull_coefficients(CoefficientGop& coefficients) {
  State& s = *state_;
  const std::unique_ptr<State::Packet> packet = s.decode(coefficients);
  if (!packet) return false;
  const GopHeader& g = packet->head;
  require(g.first_frame >= s.params.first_frame &&
              g.first_frame + static_cast<std::uint64_t>(g.frames) <= s.params.end_frame,
          ErrorKind::kBadArgument, "coefficients come in whole GOPs; the selected frames begin or end inside one");
  coefficients.times = reduced_times(g.times, s.reduction.temporal);
  ++s.stats.gops;
  s.stats.frames += static_cast<std::uint64_t>(coefficients.frames);
  return true;
}

void Decoder::inverse(CoefficientGop& coefficients, Gop& gop) {
  state_->backend->inverse(coefficients, gop);
  std::copy(coefficients.times.begin(), coefficients.times.end(), gop.times().begin());
  state_->stats.seconds_transform = state_->backend->seconds_transform();
}

}  // namespace trivelet
