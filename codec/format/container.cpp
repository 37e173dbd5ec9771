#include "codec/format/container.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <sstream>

#include "codec/base/bad_stream.h"
#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/motion/motion.h"

namespace trivelet {

namespace {

[[noreturn]] void bad_byte(const char* name, int value, int low, int high) {
  std::string what = "stream header: ";
  what += name;
  bad(what + " is " + std::to_string(value) + ", must be " + std::to_string(low) + ".." + std::to_string(high));
}

// Small fields stored in one byte whatever their type.
template <class IO, class T>
void byte_field(IO& io, T& field, int low, int high, const char* name) {
  std::uint8_t v = 0;
  if constexpr (!IO::kReading) v = static_cast<std::uint8_t>(field);
  io.fixed(v);
  if constexpr (IO::kReading) {
    if (v < low || v > high) bad_byte(name, v, low, high);
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
    if (r.num < (positive ? 1 : 0) || r.den <= 0) bad(std::string("stream header: ") + name + " is " + to_string(r));
}

// Required features that are known, by their bits.
constexpr const char* kFeatureNames[] = {"motion", "ahead", "moved", "levels", "labels", "mixed", "keys"};
constexpr std::uint64_t kFeatureMotion = 1;
constexpr std::uint64_t kFeatureAhead = 2;
constexpr std::uint64_t kFeatureMoved = 4;
constexpr std::uint64_t kFeatureLevels = 8;
constexpr std::uint64_t kFeatureLabels = 16;
constexpr std::uint64_t kFeatureMixed = 32;
constexpr std::uint64_t kFeatureKeys = 64;

std::string name_of_features(std::uint64_t features) {
  std::string names;
  for (std::size_t bit = 0; bit < std::size(kFeatureNames); ++bit)
    if (features >> bit & 1) names += (names.empty() ? "" : " ") + std::string(kFeatureNames[bit]);
  return names;
}

// The name of required feature `bit` in the list of those that a stream has.
std::string name_of_feature(std::uint64_t features, int bit, const std::string& names) {
  std::istringstream words(names);
  std::string word;
  for (int i = std::popcount(features & ((std::uint64_t{1} << bit) - 1)); i >= 0; --i)
    if (!(words >> word)) return "which has no name";
  std::replace_if(
      word.begin(), word.end(), [](char c) { return c < 33 || c > 126; }, '?');
  return "named '" + word.substr(0, 64) + "'";
}

void write_features(ByteWriter& w, const StreamHeader& h) {
  const std::uint64_t required = (h.motion ? kFeatureMotion : 0) | (h.known_ahead ? kFeatureAhead : 0) |
                                 (h.moved ? kFeatureMoved : 0) | (h.levels_by_gop ? kFeatureLevels : 0) |
                                 (h.labels ? kFeatureLabels : 0) | (h.mixed ? kFeatureMixed : 0) |
                                 (h.predicted_keys ? kFeatureKeys : 0);
  w.fixed(required);
  w.fixed(h.optional_features);
  w.text(name_of_features(required), kMaxTextBytes);
}

void read_features(ByteReader& r, StreamHeader& h) {
  std::uint64_t required = 0;
  std::string names;
  r.fixed(required);
  r.fixed(h.optional_features);
  r.text(names, kMaxTextBytes);
  if (const std::uint64_t unknown = required >> std::size(kFeatureNames) << std::size(kFeatureNames); unknown != 0) {
    const int bit = std::countr_zero(unknown);
    fail(ErrorKind::kUnsupported, "the stream needs feature " + std::to_string(bit) + ", " +
                                      name_of_feature(required, bit, names) +
                                      ", which this library does not know. Use the version that wrote it, or a newer "
                                      "one");
  }
  if (names != name_of_features(required)) bad("stream header: the names of its features are not those of its bits");
  h.motion = (required & kFeatureMotion) != 0;
  h.known_ahead = (required & kFeatureAhead) != 0;
  h.moved = (required & kFeatureMoved) != 0;
  h.levels_by_gop = (required & kFeatureLevels) != 0;
  h.labels = (required & kFeatureLabels) != 0;
  h.mixed = (required & kFeatureMixed) != 0;
  h.predicted_keys = (required & kFeatureKeys) != 0;
}

// Straight or multiplied by it, where there is one.
template <class IO>
void alpha_field(IO& io, VideoInfo& v) {
  int alpha = !v.format.alpha ? 0 : v.premultiplied ? 2 : 1;
  byte_field(io, alpha, 0, 2, "alpha");
  v.format.alpha = alpha > 0;
  v.premultiplied = alpha == 2;
}

template <class IO>
void rotation_field(IO& io, VideoInfo& v) {
  int turns = v.rotation / 90 | (v.mirrored ? 4 : 0);
  byte_field(io, turns, 0, 7, "rotation");
  v.rotation = (turns & 3) * 90;
  v.mirrored = (turns & 4) != 0;
}

template <class IO, class Header>
void visit_stream_header(IO& io, Header& h) {
  byte_field(io, h.profile, 0, 2, "profile");
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
  alpha_field(io, v);
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
  rotation_field(io, v);
  byte_field(io, v.field_order, 0, 2, "field order");
  io.text(h.writer, kMaxTextBytes);
  io.text(h.settings, kMaxTextBytes);
}

bool reversible_wavelet(Wavelet w) { return w != Wavelet::kCdf97; }
bool real_wavelet(Wavelet w) { return w != Wavelet::kRev137; }

void check_components(const StreamHeader& h) {
  for (std::size_t c = 0; c < h.components.size(); ++c) {
    const ComponentHeader& ch = h.components[c];
    if (!(ch.weight > 1e-6f && ch.weight < 1e6f))
      bad("stream header: weight of component " + std::to_string(c) + " out of range");
    if (ch.offset < -65536 || ch.offset > 65536)
      bad("stream header: offset of component " + std::to_string(c) + " is " + std::to_string(ch.offset));
    for (const std::uint8_t s : ch.scale)
      if (h.lossless && s != 64) bad("stream header: a scale of " + std::to_string(s) + " in a lossless stream");
    if (ch.spatial_levels > h.spatial_levels)
      bad("stream header: component " + std::to_string(c) + " has " + count_of(ch.spatial_levels, "level") +
          ", the stream " + std::to_string(h.spatial_levels));
    if (h.layout == Layout::kDyadic && h.temporal_levels > ch.spatial_levels)
      bad("stream header: dyadic layout with " + std::to_string(h.temporal_levels) + " temporal levels, component " +
          std::to_string(c) + " has " + std::to_string(ch.spatial_levels) + " spatial ones");
    if (h.colour_transform && c < 3 && ch.spatial_levels != h.components[0].spatial_levels)
      bad("stream header: colour planes with different levels");
  }
}

void check_predictive(const StreamHeader& h) {
  if (!h.lossless || h.layout != Layout::kT2d || h.temporal_levels != 0 || h.spatial_levels != 0 || h.layers != 1 ||
      h.colour_transform != 0 || h.motion)
    bad("stream header: predictive profile with loss, levels, layers, a colour transform or motion");
  const PixelFormat& f = h.video.format;
  for (const ComponentHeader& c : h.components)
    if (c.offset != (f.is_signed ? 0 : 1 << (f.bits - 1)))
      bad("stream header: predictive profile with an offset of " + std::to_string(c.offset));
}

}  // namespace

// --------------------------------------------------------------------------------------------------------------- box

void write_box_header(const char* type, std::uint64_t length, std::uint8_t* out) {
  std::memcpy(out, type, 4);
  store_little_endian(length, out + 4);
  store_little_endian(crc32c(out, 12), out + 12);
}

BoxEnds box_around(const char* type, const std::vector<std::uint8_t>& content) {
  BoxEnds ends;
  write_box_header(type, content.size() + kBoxCrcBytes, ends.header);
  store_little_endian(crc32c(content.data(), content.size()), ends.crc);
  return ends;
}

bool parse_box_header(const std::uint8_t* bytes, Box& box) {
  if (!crc_matches(bytes, kBoxHeaderBytes)) return false;
  if (!std::all_of(bytes, bytes + 4, [](std::uint8_t c) { return c >= 32 && c < 127; })) return false;
  std::memcpy(box.type, bytes, 4);
  box.length = load_little_endian<std::uint64_t>(bytes + 4);
  return true;
}

// ------------------------------------------------------------------------------------------------------ stream header

std::vector<std::uint8_t> serialise(const StreamHeader& header) {
  ByteWriter w;
  StreamHeader h = header;
  w.fixed(h.major);
  w.fixed(h.minor);
  write_features(w, h);
  visit_stream_header(w, h);
  w.bytes.insert(w.bytes.end(), h.room.begin(), h.room.end());
  append_crc(w.bytes);
  return std::move(w.bytes);
}

StreamHeader parse_stream_header(const std::uint8_t* bytes, std::size_t size) {
  if (!crc_matches(bytes, size)) bad("stream header: checksum does not match");
  ByteReader r(bytes, size - 4, "stream header");
  StreamHeader h;
  r.fixed(h.major);
  r.fixed(h.minor);
  require((h.major == kFormatMajor && h.minor >= kFormatMinor) || h.major == kFormatMajor + 1, ErrorKind::kUnsupported,
          "stream format " + std::to_string(h.major) + "." + std::to_string(h.minor) + "; this library reads " +
              std::to_string(kFormatMajor) + "." + std::to_string(kFormatMinor) + " and later, and " +
              std::to_string(kFormatMajor + 1) + ".x. Use the version that wrote it" +
              (h.major > kFormatMajor ? ", or a newer one" : ""));
  read_features(r, h);
  visit_stream_header(r, h);
  h.room = r.rest();
  if (h.gop_frames < 1 || h.gop_frames > kMaxGopFrames)
    bad("stream header: GOP of " + count_of(h.gop_frames, "frame") + ", must be 1.." + std::to_string(kMaxGopFrames));
  if (h.layout == Layout::kDyadic && h.temporal_levels > h.spatial_levels)
    bad("stream header: dyadic layout with " + std::to_string(h.temporal_levels) + " temporal and " +
        std::to_string(h.spatial_levels) + " spatial levels");
  if (h.motion && h.layout != Layout::kT2d) bad("stream header: motion in a dyadic layout");
  if (h.levels_by_gop && (!h.motion || h.temporal_levels == 0))
    bad("stream header: temporal levels by GOP in a stream without motion or temporal levels");
  if (h.predicted_keys && (!h.motion || h.temporal_levels == 0))
    bad("stream header: predicted keys in a stream without motion or temporal levels");
  for (const Wavelet w : {h.temporal, h.spatial})
    if (h.lossless ? !reversible_wavelet(w) : !real_wavelet(w))
      bad(std::string("stream header: wavelet ") + std::to_string(static_cast<int>(w)) + " in a " +
          (h.lossless ? "lossless" : "lossy") + " stream");
  const PixelFormat& f = h.video.format;
  if (f.model != ColourModel::kYuv && (f.log2_chroma_w || f.log2_chroma_h))
    bad("stream header: chroma subsampling without chroma");
  if (f.model == ColourModel::kRgb && f.is_signed) bad("stream header: signed samples of RGB");
  if (h.dropped_spatial > h.max_reduce())
    bad("stream header: " + std::to_string(h.dropped_spatial) + " spatial levels dropped of " +
        std::to_string(h.max_reduce()));
  if (h.dropped_temporal > (h.layout == Layout::kT2d ? h.temporal_levels : 0))
    bad("stream header: " + std::to_string(h.dropped_temporal) + " temporal levels dropped of " +
        std::to_string(h.temporal_levels));
  if (h.colour_transform && f.model != ColourModel::kRgb)
    bad("stream header: colour transform of something that is not RGB");
  if (h.profile == Profile::kPredictive) check_predictive(h);
  if (h.known_ahead && h.profile != Profile::kPredictive)
    bad("stream header: contexts known ahead in a profile that is not the predictive one");
  if (h.names_kinds() && h.profile != Profile::kPredictive)
    bad("stream header: blocks of labels or mixed contexts in a profile that is not the predictive one");
  if (h.moved && (h.profile != Profile::kPredictive || h.known_ahead))
    bad("stream header: frames of the predictive profile move where another profile or a fast form of it is coded");
  check_components(h);
  const std::uint64_t samples = h.samples(h.gop_frames);
  require(samples <= kMaxGopSamples, ErrorKind::kUnsupported,
          "GOPs of " + count_of(samples, "sample") + "; the limit is " + std::to_string(kMaxGopSamples));
  return h;
}

// --------------------------------------------------------------------------------------------------------- GOP packet

namespace {
constexpr std::uint64_t kGopHasHash = 1;
constexpr std::uint64_t kGopIrregularTimes = 2;
constexpr std::uint64_t kGopHasGains = 4;
constexpr std::uint64_t kGopHasMotion = 8;
constexpr std::uint64_t kGopKeyLast = 16;
constexpr std::uint64_t kGopOpen = 32;
constexpr std::uint64_t kGopPredictsKeys = 64;

// Times wrap around rather than overflow: some mean nothing, but none may be undefined.
std::int64_t add(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t subtract(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
}  // namespace

std::int64_t end_of(const std::vector<FrameTime>& times) {
  return times.empty() ? 0 : add(times.back().pts, times.back().duration);
}

PacketInfo packet_info(const GopHeader& g) {
  return {PacketInfo::Kind::kGop, g.key != GopKey::kOpen, g.first_frame, static_cast<std::uint64_t>(g.frames),
          g.times[0].pts,         end_of(g.times)};
}

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
  w.varint((g.has_hash ? kGopHasHash : 0u) | (irregular ? kGopIrregularTimes : 0u) |
           (g.frame_gains.empty() ? 0u : kGopHasGains) | (g.motion.empty() ? 0u : kGopHasMotion) |
           (g.key == GopKey::kFirst ? 0u : kGopKeyLast) | (g.key == GopKey::kOpen ? kGopOpen : 0u) |
           (g.predicts_keys ? kGopPredictsKeys : 0u));
  if (stream.levels_by_gop && !g.motion.empty()) w.fixed(static_cast<std::uint8_t>(g.motion_levels()));
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
  w.bytes.insert(w.bytes.end(), g.room.begin(), g.room.end());
  ByteWriter out;
  out.fixed(static_cast<std::uint32_t>(w.bytes.size() + 8));
  out.bytes.insert(out.bytes.end(), w.bytes.begin(), w.bytes.end());
  append_crc(out.bytes);
  return std::move(out.bytes);
}

namespace {

// The temporal levels of a GOP with motion.
std::uint8_t read_motion_levels(ByteReader& r, const StreamHeader& stream) {
  std::uint8_t levels = stream.temporal_levels;
  if (levels == 0) bad("GOP header: motion without temporal levels");
  if (stream.levels_by_gop) r.fixed(levels);
  if (levels < 1 || levels > stream.temporal_levels)
    bad("GOP header: " + std::to_string(levels) + " temporal levels, must be 1.." +
        std::to_string(stream.temporal_levels));
  return levels;
}

std::vector<FrameTime> read_times(ByteReader& r, int frames, bool irregular) {
  std::vector<FrameTime> times;
  FrameTime t;
  r.signed_varint(t.pts);
  r.signed_varint(t.duration);
  times.push_back(t);
  for (int i = 1; i < frames; ++i) {
    std::int64_t gap = 0;
    std::int64_t change = 0;
    if (irregular) {
      r.signed_varint(gap);
      r.signed_varint(change);
    }
    t.pts = add(add(t.pts, t.duration), gap);
    t.duration = add(t.duration, change);
    times.push_back(t);
  }
  return times;
}

std::vector<std::uint8_t> read_frame_gains(ByteReader& r, int frames) {
  std::vector<std::uint8_t> gains(static_cast<std::size_t>(frames), 64);
  std::uint64_t listed = 0;
  r.varint(listed);
  if (listed > gains.size()) bad("GOP header: gains of " + count_of(listed, "frame"));
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < listed; ++i) {
    std::uint64_t gap = 0;
    std::uint8_t gain = 0;
    r.varint(gap);
    r.fixed(gain);
    if (gap >= gains.size() - next || gain == 0)
      bad("GOP header: a frame gain of " + std::to_string(gain) + " or its place is out of range");
    gains[static_cast<std::size_t>(next + gap)] = gain;
    next += gap + 1;
    if (next == gains.size() && i + 1 < listed) bad("GOP header: gains of frames behind the last");
  }
  return gains;
}

// Chunks follow one another, the first `g.body_bytes` behind the header.
std::vector<ChunkEntry> read_chunk_table(ByteReader& r, GopHeader& g, std::size_t count) {
  std::vector<ChunkEntry> entries(count);
  for (ChunkEntry& c : entries) {
    r.varint(c.size);
    if (c.size > 0) r.fixed(c.crc);
    c.offset = g.body_bytes;
    if (c.size > (std::uint64_t{1} << 40)) bad("GOP header: a chunk of " + count_of(c.size, "byte"));
    g.body_bytes += c.size;
  }
  return entries;
}

}  // namespace

GopHeader parse_gop_header(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size) {
  if (!crc_matches(bytes, size)) bad("GOP header: checksum does not match");
  ByteReader r(bytes + 4, size - 8, "GOP header");
  GopHeader g;
  r.varint(g.index);
  r.varint(g.first_frame);
  std::uint64_t frames = 0;
  r.varint(frames);
  if (frames < 1 || frames > stream.gop_frames)
    bad("GOP header: " + count_of(frames, "frame") + ", must be 1.." + std::to_string(stream.gop_frames));
  g.frames = static_cast<int>(frames);
  std::uint64_t flags = 0;
  r.varint(flags);
  if (flags > (stream.predicted_keys ? 127 : stream.motion ? 63 : 7))
    bad("GOP header: unknown flags " + std::to_string(flags));
  if (flags & kGopKeyLast) g.key = flags & kGopOpen ? GopKey::kOpen : GopKey::kLast;
  if ((flags & (kGopKeyLast | kGopOpen)) && !((flags & kGopHasMotion) && (flags & kGopKeyLast)))
    bad("GOP header: flags " + std::to_string(flags) + " contradict each other");
  if ((flags & kGopPredictsKeys) && !(flags & kGopHasMotion)) bad("GOP header: predicted keys in a GOP without motion");
  const std::uint8_t levels = flags & kGopHasMotion ? read_motion_levels(r, stream) : 0;
  g.predicts_keys = (flags & kGopPredictsKeys) != 0;
  if (g.predicts_keys && motion_frames(levels, MotionPlaces(g.frames, g.key, levels)).empty())
    bad("GOP header: no key of " + count_of(g.frames, "frame") + " can be predicted");
  if (g.key == GopKey::kLast && g.frames < 1 << levels)
    bad("GOP header: " + count_of(g.frames, "frame", "is", "are") + " too few to have their key frame last");
  g.times = read_times(r, g.frames, (flags & kGopIrregularTimes) != 0);
  g.has_hash = (flags & kGopHasHash) != 0;
  if (g.has_hash) r.fixed(g.hash);
  if (!stream.lossless) {
    r.real(g.step);
    if (!(g.step >= 1e-6f && g.step <= 1e9f)) bad("GOP header: quantiser step out of range");
  }
  if (flags & kGopHasGains) {
    if (stream.lossless || stream.layout != Layout::kT2d || (flags & kGopHasMotion))
      bad("GOP header: frame gains in a stream that cannot have them");
    g.frame_gains = read_frame_gains(r, g.frames);
  }
  if (flags & kGopHasMotion) g.motion = read_chunk_table(r, g, levels + (g.predicts_keys ? 1u : 0u));
  r.fixed(g.planes);
  if (g.planes > 30) bad("GOP header: " + std::to_string(g.planes) + " bit planes, the limit is 30");
  g.layer_top.resize(stream.layers);
  for (auto& l : g.layer_top) {
    r.fixed(l);
    if (l > g.planes)
      bad("GOP header: a layer begins at plane " + std::to_string(l) + " of " + std::to_string(g.planes));
  }
  g.chunks = read_chunk_table(r, g,
                              static_cast<std::size_t>(stream.layers) *
                                  static_cast<std::size_t>(g.temporal_bands(stream)) * (stream.spatial_levels + 1u));
  g.room = r.rest();
  return g;
}

// ---------------------------------------------------------------------------------------------------------- index, end

namespace {
constexpr std::uint8_t kIndexVersion = 1;
constexpr std::uint8_t kOpenWithPredictedKeys = 3;  // in place of a GopKey
}  // namespace

std::vector<std::uint8_t> serialise_index(const std::vector<GopInfo>& gops) {
  ByteWriter w;
  w.fixed(kIndexVersion);
  w.varint(gops.size());
  std::uint64_t end = 0;
  std::uint64_t frame = 0;
  std::int64_t time = 0;
  for (const GopInfo& g : gops) {
    ByteWriter entry;
    entry.varint(g.offset - end);
    entry.varint(g.bytes);
    entry.varint(g.first_frame - frame);
    entry.varint(static_cast<std::uint64_t>(g.frames));
    const bool depends = g.key == GopKey::kOpen && g.predicts_keys;
    entry.fixed(depends ? kOpenWithPredictedKeys : static_cast<std::uint8_t>(g.key));
    entry.signed_varint(subtract(g.begin_pts, time));
    entry.signed_varint(subtract(g.end_pts, g.begin_pts));
    for (const LayerInfo& l : g.layers) {
      entry.varint(l.bytes);
      entry.fixed(l.error);
    }
    w.varint(entry.bytes.size());
    w.bytes.insert(w.bytes.end(), entry.bytes.begin(), entry.bytes.end());
    end = g.offset + g.bytes;
    frame = g.first_frame + static_cast<std::uint64_t>(g.frames);
    time = g.end_pts;
  }
  append_crc(w.bytes);
  return std::move(w.bytes);
}

// Offset and frame follow those of the entry before (a byte each, or little more behind a "part" box); size of the
// entry, bytes of the packet and frames as varints of at most 2, 6 and 2 bytes; key; per layer its bytes and the code
// of its error.
std::uint64_t index_entry_bound(int layers, std::uint64_t layer_bytes, std::int64_t before_pts, std::int64_t begin_pts,
                                std::int64_t end_pts) {
  ByteWriter numbers;
  numbers.signed_varint(subtract(begin_pts, before_pts));
  numbers.signed_varint(subtract(end_pts, begin_pts));
  std::uint64_t varint = 1;
  for (; layer_bytes >= 128; layer_bytes >>= 7) ++varint;
  return 15 + numbers.bytes.size() + (varint + sizeof LayerInfo::error) * static_cast<std::uint64_t>(layers);
}

namespace {

// `end`, `frame` and `time` are where the GOP before ends, and then where this one does.
GopInfo parse_index_entry(ByteReader& r, int layers, std::uint64_t& end, std::uint64_t& frame, std::int64_t& time) {
  std::uint64_t gap = 0;
  std::uint64_t skipped = 0;
  std::uint64_t frames = 0;
  std::uint8_t key = 0;
  std::int64_t begin = 0;
  std::int64_t length = 0;
  GopInfo g;
  r.varint(gap);
  r.varint(g.bytes);
  r.varint(skipped);
  r.varint(frames);
  r.fixed(key);
  r.signed_varint(begin);
  r.signed_varint(length);
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
  bool in_range = gap <= kHuge && g.bytes <= kHuge && skipped <= kHuge && end <= kHuge && frame <= kHuge &&
                  frames >= 1 && frames <= kMaxGopFrames && key <= kOpenWithPredictedKeys;
  g.layers.resize(static_cast<std::size_t>(layers));
  for (LayerInfo& l : g.layers) {
    r.varint(l.bytes);
    r.fixed(l.error);
    in_range = in_range && l.bytes <= kHuge;
  }
  if (!in_range) bad("index: a GOP is out of range");
  g.offset = end + gap;
  g.first_frame = frame + skipped;
  g.frames = static_cast<int>(frames);
  g.predicts_keys = key == kOpenWithPredictedKeys;
  g.key = g.predicts_keys ? GopKey::kOpen : static_cast<GopKey>(key);
  g.begin_pts = add(time, begin);
  g.end_pts = add(g.begin_pts, length);
  end = g.offset + g.bytes;
  frame = g.first_frame + frames;
  time = g.end_pts;
  return g;
}

}  // namespace

std::vector<GopInfo> parse_index(const std::uint8_t* bytes, std::size_t size, int layers) {
  if (!crc_matches(bytes, size)) bad("index: checksum does not match");
  ByteReader r(bytes, size - 4, "index");
  std::uint8_t version = 0;
  r.fixed(version);
  if (version != kIndexVersion) bad("index: version " + std::to_string(version) + " is not known");
  std::uint64_t n = 0;
  r.varint(n);
  if (n > r.left() / 8) bad("index: " + count_of(n, "GOP") + " in " + count_of(r.left(), "byte"));
  std::vector<GopInfo> gops;
  gops.reserve(static_cast<std::size_t>(n));
  std::uint64_t end = 0;
  std::uint64_t frame = 0;
  std::int64_t time = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    std::uint64_t entry_bytes = 0;
    r.varint(entry_bytes);
    ByteReader entry = r.piece(entry_bytes);
    gops.push_back(parse_index_entry(entry, layers, end, frame, time));
  }
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
