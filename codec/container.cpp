#include "codec/container.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codec/bad_stream.h"
#include "codec/bytes.h"
#include "codec/hash.h"

namespace trivelet {

namespace {

// Small fields stored in one byte whatever their type.
template <class IO, class T>
void byte_field(IO& io, T& field, int low, int high, const char* name) {
  std::uint8_t v = 0;
  if constexpr (!IO::kReading) v = static_cast<std::uint8_t>(field);
  io.fixed(v);
  if constexpr (IO::kReading) {
    if (v < low || v > high)
      bad(std::string("stream header: ") + name + " is " + std::to_string(v) + ", must be " + std::to_string(low) +
          ".." + std::to_string(high));
    field = static_cast<T>(v);
  }
}

template <class IO>
void dimension(IO& io, int& field, const char* name) {
  auto v = static_cast<std::uint32_t>(field);
  io.fixed(v);
  if constexpr (IO::kReading) {
    if (v < 1 || v > kMaxDimension)
      bad(std::string("stream header: ") + name + " is " + std::to_string(v) + ", must be 1.." +
          std::to_string(kMaxDimension));
    field = static_cast<int>(v);
  }
}

// The time base must be a positive fraction; rates and aspects may be 0/1 for "unknown".
template <class IO>
void fraction(IO& io, Rational& r, bool positive, const char* name) {
  io.fixed(r.num);
  io.fixed(r.den);
  if constexpr (IO::kReading)
    if (r.num < (positive ? 1 : 0) || r.den <= 0)
      bad(std::string("stream header: ") + name + " is " + std::to_string(r.num) + "/" + std::to_string(r.den));
}

template <class IO, class Header>
void visit_stream_header(IO& io, Header& h) {
  byte_field(io, h.profile, 0, 1, "profile");
  byte_field(io, h.fast_mode, 0, 1, "mode");
  byte_field(io, h.lossless, 0, 1, "lossless");
  byte_field(io, h.layout, 0, 1, "layout");
  byte_field(io, h.temporal, 0, 3, "temporal wavelet");
  byte_field(io, h.spatial, 0, 3, "spatial wavelet");
  byte_field(io, h.temporal_levels, 0, 8, "temporal levels");
  byte_field(io, h.spatial_levels, 0, 8, "spatial levels");
  byte_field(io, h.log2_block, 5, 8, "log2 of the block size");
  byte_field(io, h.layers, 1, kMaxLayers, "number of layers");
  byte_field(io, h.centroid, 0, 255, "centroid");
  byte_field(io, h.colour_transform, 0, 1, "colour transform");
  byte_field(io, h.dropped_spatial, 0, 8, "dropped spatial levels");
  byte_field(io, h.dropped_temporal, 0, 8, "dropped temporal levels");
  io.fixed(h.gop_frames);
  auto& v = h.video;
  dimension(io, v.width, "width");
  dimension(io, v.height, "height");
  io.fixed(v.frames);
  byte_field(io, v.format.model, 0, 2, "colour model");
  byte_field(io, v.format.bits, 1, 16, "bits per sample");
  byte_field(io, v.format.log2_chroma_w, 0, 2, "log2 of the horizontal chroma subsampling");
  byte_field(io, v.format.log2_chroma_h, 0, 2, "log2 of the vertical chroma subsampling");
  byte_field(io, v.format.alpha, 0, 1, "alpha");
  byte_field(io, v.format.is_signed, 0, 1, "signed");
  if constexpr (IO::kReading) h.components.resize(static_cast<std::size_t>(v.format.components()));
  for (auto& c : h.components) {
    io.fixed(c.offset);
    io.real(c.weight);
    byte_field(io, c.spatial_levels, 0, 8, "spatial levels of a component");
    c.scale.resize(c.spatial_levels + std::size_t{1}, 64);
    for (auto& s : c.scale) byte_field(io, s, 1, 255, "scale of a resolution");
  }
  fraction(io, v.frame_rate, false, "frame rate");
  fraction(io, v.sample_aspect, false, "sample aspect");
  fraction(io, v.time_base, true, "time base");
  io.fixed(v.colour.primaries);
  io.fixed(v.colour.transfer);
  io.fixed(v.colour.matrix);
  byte_field(io, v.colour.range, 0, 2, "colour range");
  io.fixed(v.colour.chroma_location);
  std::uint8_t quarter_turns = static_cast<std::uint8_t>(v.rotation / 90);
  byte_field(io, quarter_turns, 0, 3, "rotation");
  if constexpr (IO::kReading) v.rotation = quarter_turns * 90;
  byte_field(io, v.field_order, 0, 2, "field order");
  io.text(h.writer, kMaxTextBytes);
  io.text(h.settings, kMaxTextBytes);
  if (h.minor > kFormatMinorWithoutMotion) byte_field(io, h.motion, 1, 1, "motion");
}

bool reversible_wavelet(Wavelet w) { return w != Wavelet::kCdf97; }
bool real_wavelet(Wavelet w) { return w != Wavelet::kRev137; }

}  // namespace

// --------------------------------------------------------------------------------------------------------------- box

void write_box_header(const char* type, std::uint64_t length, std::uint8_t* out) {
  std::memcpy(out, type, 4);
  store_little_endian(length, out + 4);
  store_little_endian(crc32c(out, 12), out + 12);
}

bool parse_box_header(const std::uint8_t* bytes, Box& box) {
  if (!crc_matches(bytes, kBoxHeaderBytes)) return false;
  std::memcpy(box.type, bytes, 4);
  box.length = load_little_endian<std::uint64_t>(bytes + 4);
  return true;
}

// ------------------------------------------------------------------------------------------------------ stream header

int StreamHeader::max_reduce() const {
  int n = spatial_levels;
  for (const auto& c : components) n = std::min<int>(n, c.spatial_levels);
  return n;
}

std::vector<std::uint8_t> serialise(const StreamHeader& header) {
  ByteWriter w;
  StreamHeader h = header;
  h.minor = static_cast<std::uint8_t>(header.motion ? kFormatMinor : kFormatMinorWithoutMotion);
  w.fixed(h.major);
  w.fixed(h.minor);
  visit_stream_header(w, h);
  append_crc(w.bytes);
  return std::move(w.bytes);
}

StreamHeader parse_stream_header(const std::uint8_t* bytes, std::size_t size) {
  if (!crc_matches(bytes, size)) bad("stream header: checksum does not match");
  ByteReader r(bytes, size - 4, "stream header");
  StreamHeader h;
  r.fixed(h.major);
  r.fixed(h.minor);
  require(h.major == kFormatMajor && (h.major != 0 || h.minor == kFormatMinor || h.minor == kFormatMinorWithoutMotion),
          ErrorKind::kUnsupported,
          "stream format " + std::to_string(h.major) + "." + std::to_string(h.minor) + "; this library reads " +
              std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinorWithoutMotion) + " and " +
              std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor) +
              ". Use the version that wrote it, or a newer one");
  visit_stream_header(r, h);
  r.expect_end();
  if (h.gop_frames < 1 || h.gop_frames > kMaxGopFrames)
    bad("stream header: GOP of " + std::to_string(h.gop_frames) + " frames, must be 1.." +
        std::to_string(kMaxGopFrames));
  if (h.layout == Layout::kDyadic && h.temporal_levels > h.spatial_levels)
    bad("stream header: dyadic layout with " + std::to_string(h.temporal_levels) + " temporal and " +
        std::to_string(h.spatial_levels) + " spatial levels");
  if (h.motion && h.layout != Layout::kT2d) bad("stream header: motion in a dyadic layout");
  for (const Wavelet w : {h.temporal, h.spatial})
    if (h.lossless ? !reversible_wavelet(w) : !real_wavelet(w))
      bad(std::string("stream header: wavelet ") + std::to_string(static_cast<int>(w)) + " in a " +
          (h.lossless ? "lossless" : "lossy") + " stream");
  const PixelFormat& f = h.video.format;
  if (f.model != ColourModel::kYuv && (f.log2_chroma_w || f.log2_chroma_h))
    bad("stream header: chroma subsampling without chroma");
  if (h.dropped_spatial > h.max_reduce())
    bad("stream header: " + std::to_string(h.dropped_spatial) + " spatial levels dropped of " +
        std::to_string(h.max_reduce()));
  if (h.dropped_temporal > (h.layout == Layout::kT2d ? h.temporal_levels : 0))
    bad("stream header: " + std::to_string(h.dropped_temporal) + " temporal levels dropped of " +
        std::to_string(h.temporal_levels));
  if (h.colour_transform && (f.model != ColourModel::kRgb || f.is_signed))
    bad("stream header: colour transform of something that is not RGB");
  std::uint64_t samples = 0;
  for (std::size_t c = 0; c < h.components.size(); ++c) {
    const ComponentHeader& ch = h.components[c];
    if (!(ch.weight > 1e-6f && ch.weight < 1e6f))
      bad("stream header: weight of component " + std::to_string(c) + " out of range");
    if (ch.offset < -65536 || ch.offset > 65536)
      bad("stream header: offset of component " + std::to_string(c) + " is " + std::to_string(ch.offset));
    for (const std::uint8_t s : ch.scale)
      if (h.lossless && s != 64) bad("stream header: a scale of " + std::to_string(s) + " in a lossless stream");
    if (ch.spatial_levels > h.spatial_levels)
      bad("stream header: component " + std::to_string(c) + " has " + std::to_string(ch.spatial_levels) +
          " levels, the stream " + std::to_string(h.spatial_levels));
    if (h.layout == Layout::kDyadic && h.temporal_levels > ch.spatial_levels)
      bad("stream header: dyadic layout with " + std::to_string(h.temporal_levels) + " temporal levels, component " +
          std::to_string(c) + " has " + std::to_string(ch.spatial_levels) + " spatial ones");
    if (h.colour_transform && c < 3 && ch.spatial_levels != h.components[0].spatial_levels)
      bad("stream header: colour planes with different levels");
    samples += static_cast<std::uint64_t>(h.video.component_width(static_cast<int>(c))) *
               static_cast<std::uint64_t>(h.video.component_height(static_cast<int>(c))) * h.gop_frames;
  }
  require(samples <= kMaxGopSamples, ErrorKind::kUnsupported,
          "GOPs of " + std::to_string(samples) + " samples; the limit is " + std::to_string(kMaxGopSamples));
  return h;
}

// --------------------------------------------------------------------------------------------------------- GOP packet

namespace {
constexpr std::uint8_t kGopHasHash = 1;
constexpr std::uint8_t kGopIrregularTimes = 2;
constexpr std::uint8_t kGopHasGains = 4;
constexpr std::uint8_t kGopHasMotion = 8;
constexpr std::uint8_t kGopKeyLast = 16;
constexpr std::uint8_t kGopOpen = 32;

// Times wrap around rather than overflow: some mean nothing, but none may be undefined.
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
}  // namespace

std::vector<std::uint8_t> serialise(const StreamHeader& stream, const GopHeader& g) {
  const FrameTime first = g.times.empty() ? FrameTime{} : g.times[0];
  bool irregular = false;
  for (std::size_t i = 1; i < g.times.size(); ++i)
    irregular =
        irregular || g.times[i].duration != first.duration || g.times[i].pts != add(g.times[i - 1].pts, first.duration);
  ByteWriter w;
  w.varint(g.index);
  w.varint(g.first_frame);
  w.varint(static_cast<std::uint64_t>(g.frames));
  w.fixed(
      static_cast<std::uint8_t>((g.has_hash ? kGopHasHash : 0) | (irregular ? kGopIrregularTimes : 0) |
                                (g.frame_gains.empty() ? 0 : kGopHasGains) | (g.motion.empty() ? 0 : kGopHasMotion) |
                                (g.key == GopKey::kFirst ? 0 : kGopKeyLast) | (g.key == GopKey::kOpen ? kGopOpen : 0)));
  w.signed_varint(first.pts);
  w.signed_varint(first.duration);
  if (irregular) {
    FrameTime before = first;
    for (std::size_t i = 1; i < g.times.size(); ++i) {
      w.signed_varint(subtract(g.times[i].pts, add(before.pts, before.duration)));
      w.signed_varint(subtract(g.times[i].duration, before.duration));
      before = g.times[i];
    }
  }
  if (g.has_hash) w.fixed(g.hash);
  if (!stream.lossless) w.real(g.step);
  if (!g.frame_gains.empty()) {
    std::uint64_t listed = 0;
    for (const std::uint8_t gain : g.frame_gains) listed += gain != 64;
    w.varint(listed);
    std::size_t next = 0;
    for (std::size_t f = 0; f < g.frame_gains.size(); ++f) {
      if (g.frame_gains[f] == 64) continue;
      w.varint(f - next);
      w.fixed(g.frame_gains[f]);
      next = f + 1;
    }
  }
  const auto table = [&](const std::vector<ChunkEntry>& entries) {
    for (const ChunkEntry& c : entries) {
      w.varint(c.size);
      if (c.size > 0) w.fixed(c.crc);
    }
  };
  table(g.motion);
  w.fixed(g.planes);
  for (const std::uint8_t t : g.layer_top) w.fixed(t);
  table(g.chunks);
  ByteWriter out;
  out.fixed(static_cast<std::uint32_t>(w.bytes.size() + 8));
  out.bytes.insert(out.bytes.end(), w.bytes.begin(), w.bytes.end());
  append_crc(out.bytes);
  return std::move(out.bytes);
}

GopHeader parse_gop_header(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size) {
  if (!crc_matches(bytes, size)) bad("GOP header: checksum does not match");
  ByteReader r(bytes + 4, size - 8, "GOP header");
  GopHeader g;
  r.varint(g.index);
  r.varint(g.first_frame);
  std::uint64_t frames = 0;
  r.varint(frames);
  if (frames < 1 || frames > stream.gop_frames)
    bad("GOP header: " + std::to_string(frames) + " frames, must be 1.." + std::to_string(stream.gop_frames));
  g.frames = static_cast<int>(frames);
  std::uint8_t flags = 0;
  r.fixed(flags);
  if (flags > (stream.motion ? 63 : 7)) bad("GOP header: unknown flags " + std::to_string(flags));
  if (flags & kGopKeyLast) g.key = flags & kGopOpen ? GopKey::kOpen : GopKey::kLast;
  if ((flags & (kGopKeyLast | kGopOpen)) && !((flags & kGopHasMotion) && (flags & kGopKeyLast)))
    bad("GOP header: flags " + std::to_string(flags) + " contradict each other");
  if (g.key == GopKey::kLast && g.frames < 1 << stream.temporal_levels)
    bad("GOP header: " + std::to_string(g.frames) + " frames are too few to have their key frame last");
  FrameTime t;
  r.signed_varint(t.pts);
  r.signed_varint(t.duration);
  g.times.push_back(t);
  for (int i = 1; i < g.frames; ++i) {
    std::int64_t gap = 0;
    std::int64_t change = 0;
    if (flags & kGopIrregularTimes) {
      r.signed_varint(gap);
      r.signed_varint(change);
    }
    t.pts = add(add(t.pts, t.duration), gap);
    t.duration = add(t.duration, change);
    g.times.push_back(t);
  }
  g.has_hash = (flags & kGopHasHash) != 0;
  if (g.has_hash) r.fixed(g.hash);
  if (!stream.lossless) {
    r.real(g.step);
    if (!(g.step >= 1e-6f && g.step <= 1e9f)) bad("GOP header: quantiser step out of range");
  }
  if (flags & kGopHasGains) {
    if (stream.lossless || stream.layout != Layout::kT2d || (flags & kGopHasMotion))
      bad("GOP header: frame gains in a stream that cannot have them");
    g.frame_gains.assign(static_cast<std::size_t>(g.frames), 64);
    std::uint64_t listed = 0;
    r.varint(listed);
    if (listed > static_cast<std::uint64_t>(g.frames))
      bad("GOP header: gains of " + std::to_string(listed) + " frames");
    std::uint64_t next = 0;
    for (std::uint64_t i = 0; i < listed; ++i) {
      std::uint64_t gap = 0;
      std::uint8_t gain = 0;
      r.varint(gap);
      r.fixed(gain);
      if (gap >= static_cast<std::uint64_t>(g.frames) - next || gain == 0)
        bad("GOP header: a frame gain of " + std::to_string(gain) + " or its place is out of range");
      g.frame_gains[static_cast<std::size_t>(next + gap)] = gain;
      next += gap + 1;
      if (next == static_cast<std::uint64_t>(g.frames) && i + 1 < listed)
        bad("GOP header: gains of frames behind the last");
    }
  }
  const auto table = [&](std::vector<ChunkEntry>& entries, std::size_t count) {
    entries.resize(count);
    for (auto& c : entries) {
      r.varint(c.size);
      if (c.size > 0) r.fixed(c.crc);
      c.offset = g.body_bytes;
      if (c.size > (std::uint64_t{1} << 40)) bad("GOP header: a chunk of " + std::to_string(c.size) + " bytes");
      g.body_bytes += c.size;
    }
  };
  if (flags & kGopHasMotion) {
    if (stream.temporal_levels == 0) bad("GOP header: motion without temporal levels");
    table(g.motion, stream.temporal_levels);
  }
  r.fixed(g.planes);
  if (g.planes > 30) bad("GOP header: " + std::to_string(g.planes) + " bit planes, the limit is 30");
  g.layer_top.resize(stream.layers);
  for (auto& l : g.layer_top) {
    r.fixed(l);
    if (l > g.planes)
      bad("GOP header: a layer begins at plane " + std::to_string(l) + " of " + std::to_string(g.planes));
  }
  table(g.chunks, static_cast<std::size_t>(stream.layers) * static_cast<std::size_t>(stream.temporal_bands()) *
                      (stream.spatial_levels + 1u));
  r.expect_end();
  return g;
}

// ---------------------------------------------------------------------------------------------------------- index, end

namespace {
constexpr std::uint64_t kIndexKey = 256;  // times the place of a GOP's key, added to its frames
}  // namespace

std::vector<std::uint8_t> serialise_index(const std::vector<GopInfo>& gops) {
  ByteWriter w;
  w.varint(gops.size());
  std::uint64_t end = 0;
  std::uint64_t frame = 0;
  for (const GopInfo& g : gops) {
    w.varint(g.offset - end);
    w.varint(g.bytes);
    w.varint(g.first_frame - frame);
    w.varint(static_cast<std::uint64_t>(g.frames) + kIndexKey * static_cast<std::uint64_t>(g.key));
    for (const LayerInfo& l : g.layers) {
      w.varint(l.bytes);
      w.fixed(l.error);
    }
    end = g.offset + g.bytes;
    frame = g.first_frame + static_cast<std::uint64_t>(g.frames);
  }
  append_crc(w.bytes);
  return std::move(w.bytes);
}

// Offset and frame follow those of the entry before (a byte each, or little more behind a "part" box); bytes of the
// packet and frames as varints of at most 6 and 2 bytes; per layer its bytes and the code of its error.
std::uint64_t index_entry_bound(int layers, std::uint64_t layer_bytes) {
  std::uint64_t varint = 1;
  for (; layer_bytes >= 128; layer_bytes >>= 7) ++varint;
  return 12 + (varint + sizeof LayerInfo::error) * static_cast<std::uint64_t>(layers);
}

std::vector<GopInfo> parse_index(const std::uint8_t* bytes, std::size_t size, int layers) {
  if (!crc_matches(bytes, size)) bad("index: checksum does not match");
  ByteReader r(bytes, size - 4, "index");
  std::uint64_t n = 0;
  r.varint(n);
  if (n > r.left() / 4) bad("index: " + std::to_string(n) + " GOPs in " + std::to_string(r.left()) + " bytes");
  std::vector<GopInfo> gops;
  std::uint64_t end = 0;
  std::uint64_t frame = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t gap = 0;
    std::uint64_t skipped = 0;
    std::uint64_t frames = 0;
    GopInfo g;
    r.varint(gap);
    r.varint(g.bytes);
    r.varint(skipped);
    r.varint(frames);
    constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
    const std::uint64_t key = frames / kIndexKey;
    frames %= kIndexKey;
    if (gap > kHuge || g.bytes > kHuge || skipped > kHuge || end > kHuge || frame > kHuge || frames < 1 ||
        frames > kMaxGopFrames || key > static_cast<std::uint64_t>(GopKey::kOpen))
      bad("index: GOP " + std::to_string(i) + " is out of range");
    g.layers.resize(static_cast<std::size_t>(layers));
    for (LayerInfo& l : g.layers) {
      r.varint(l.bytes);
      r.fixed(l.error);
      if (l.bytes > kHuge) bad("index: GOP " + std::to_string(i) + " is out of range");
    }
    g.offset = end + gap;
    g.first_frame = frame + skipped;
    g.frames = static_cast<int>(frames);
    g.key = static_cast<GopKey>(key);
    end = g.offset + g.bytes;
    frame = g.first_frame + frames;
    gops.push_back(g);
  }
  r.expect_end();
  return gops;
}

// Codes 1..65534 stand for 2^-32 .. 2^95.99 and so on; 0 is no error at all.
std::uint16_t error_code(double mean_squared_error) {
  if (!(mean_squared_error > 0)) return 0;
  return static_cast<std::uint16_t>(std::clamp(std::lround(512 * (std::log2(mean_squared_error) + 32)), 1L, 65534L));
}

double error_of(std::uint16_t code) { return code == 0 ? 0 : std::exp2(code / 512.0 - 32); }

std::vector<std::uint8_t> serialise(const StreamEnd& end) {
  ByteWriter w;
  w.fixed(end.frames);
  w.fixed(end.index_offset);
  append_crc(w.bytes);
  return std::move(w.bytes);
}

bool parse_stream_end(const std::uint8_t* bytes, std::size_t size, StreamEnd& end) {
  if (size != kEndPayloadBytes || !crc_matches(bytes, size)) return false;
  ByteReader r(bytes, size - 4, "end of stream");
  r.fixed(end.frames);
  r.fixed(end.index_offset);
  return true;
}

}  // namespace trivelet
