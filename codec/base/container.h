// The .tvl container: boxes, stream header, GOP packets with their chunk tables, index and end. FORMAT.md is normative;
// section names there are the names here.
//
// Pure byte work: nothing here reads files or knows the coder's bits. Every length that comes from a stream is checked
// against a limit before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trivelet/parameters.h"
#include "trivelet/stream_info.h"
#include "trivelet/types.h"

namespace trivelet {

inline constexpr std::uint8_t kSignature[8] = {0x89, 'T', 'V', 'L', 0x0D, 0x0A, 0x1A, 0x0A};

/// Limits a decoder imposes (FORMAT.md "Limits").
inline constexpr int kMaxDimension = 65536;
inline constexpr int kMaxGopFrames = 128;
inline constexpr int kMaxLayers = 16;
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::uint64_t kMaxGopSamples = std::uint64_t{1} << 33;

// --------------------------------------------------------------------------------------------------------------- box

/// Every element of a stream after the signature is a box: type, payload length, CRC-32C of both, payload.
/// Types beginning with a capital letter are critical: a reader that does not know one must refuse the stream. Those
/// whose fourth character is one are bound to what is coded.
struct Box {
  char type[5] = {};
  std::uint64_t length = 0;
  bool is(const char* name) const { return std::string(type) == name; }
  bool critical() const { return type[0] >= 'A' && type[0] <= 'Z'; }
};
inline constexpr std::size_t kBoxHeaderBytes = 16;
/// Behind the payload of every box but "Gop ", and part of it.
inline constexpr std::size_t kBoxCrcBytes = 4;
/// Extra boxes (codec.h): the largest a decoder takes in.
inline constexpr std::size_t kMaxExtraBytes = std::size_t{1} << 28;
/// A box of type `type` with this content: its header, the payload but the crc, and the crc, to be written one after the
/// other.
struct BoxEnds {
  std::uint8_t header[kBoxHeaderBytes];
  std::uint8_t crc[kBoxCrcBytes];
};
BoxEnds box_around(const char* type, const std::vector<std::uint8_t>& content);
/// The boxes a stream consists of.
inline bool is_stream_box(const std::string& type) {
  return type == "Head" || type == "Gop " || type == "Indx" || type == "Done";
}

/// Whether a box of this type depends on what is coded.
inline bool is_bound(const std::string& type) { return type[3] >= 'A' && type[3] <= 'Z'; }
/// Of those between header and first GOP: there is one at most.
inline bool is_known_extra_box(const std::string& type) {
  for (const char* known : {"Volm", "Mask", "volh", "volq", "mdcv", "clli", "chap", "meta"})
    if (type == known) return true;
  return false;
}

void write_box_header(const char* type, std::uint64_t length, std::uint8_t* out);
/// False when the CRC does not match, or the type is none.
bool parse_box_header(const std::uint8_t* bytes, Box& box);

// ------------------------------------------------------------------------------------------------------ stream header

struct ComponentHeader {
  std::int32_t offset = 0;  ///< subtracted from samples before the transform
  float weight = 1;         ///< factor of the quantiser step
  std::uint8_t spatial_levels = 0;
  /// [k], 64 = 1: subbands of resolution k are quantised by a step 64 / scale as large. Lossless: 64.
  std::vector<std::uint8_t> scale;

  double scale_of(int k) const {
    const auto i = static_cast<std::size_t>(k);
    return i < scale.size() ? 64.0 / scale[i] : 1.0;
  }
};

/// The content of the "Head" box.
struct StreamHeader {
  std::uint8_t major = kFormatMajor;
  std::uint8_t minor = kFormatMinor;
  std::uint64_t optional_features = 0;  ///< nobody here knows any; kept
  Profile profile = Profile::kFast;
  FastMode fast_mode = FastMode::kStaged;
  bool lossless = false;
  Layout layout = Layout::kT2d;
  Wavelet temporal = Wavelet::kCdf97;
  Wavelet spatial = Wavelet::kCdf97;
  std::uint8_t temporal_levels = 0;
  std::uint8_t spatial_levels = 0;
  std::uint8_t log2_block = 7;
  std::uint8_t layers = 1;
  std::uint8_t centroid = 102;        ///< of 256: place of the reconstruction point in its interval
  std::uint8_t colour_transform = 0;  ///< 0 none, 1 YCoCg-R of planes G, B, R
  std::uint8_t dropped_spatial = 0;   ///< finest spatial levels that were left out of the stream (trivelet extract)
  std::uint8_t dropped_temporal = 0;  ///< likewise; t+2D
  std::uint16_t gop_frames = 1;
  VideoInfo video;  ///< frames = 0 when unknown
  std::vector<ComponentHeader> components;
  std::string writer;
  std::string settings;
  std::vector<std::uint8_t> room;  ///< fields of later versions; kept
  bool motion = false;             ///< GOPs may have motion; t+2D
  bool known_ahead = false;        ///< predictive profile: contexts do not look at the row itself
  bool moved = false;              ///< predictive profile: heads of codewords say which frames move
  bool key_last = false;           ///< of of_gop(): frames have a place before them that is not theirs

  int block_size() const { return 1 << log2_block; }
  /// Of a GOP of so many frames, with that place.
  Shape component_shape(int c, int frames) const {
    return {frames + (key_last ? 1 : 0), video.component_height(c), video.component_width(c)};
  }
  /// Of all components.
  std::uint64_t samples(int frames) const {
    std::uint64_t sum = 0;
    for (int c = 0; c < video.format.components(); ++c) sum += component_shape(c, frames).samples();
    return sum;
  }
  Decomposition decomposition(int c) const {
    return {layout,   temporal_levels, components[static_cast<std::size_t>(c)].spatial_levels,
            temporal, spatial,         key_last};
  }
  /// As it describes a GOP: what those with motion have along time is not what the header says.
  StreamHeader of_gop(bool with_motion, GopKey key) const {
    StreamHeader h = *this;
    if (with_motion) h.temporal = Wavelet::kMotion;
    h.key_last = with_motion && key != GopKey::kFirst;
    return h;
  }
  int temporal_bands() const { return layout == Layout::kDyadic ? 1 : temporal_levels + 1; }
  /// How often all components can be halved, from the full size.
  int max_reduce() const;
};

/// Behind an error that asks for less than all of a stream.
inline const char* no_smaller(Profile profile) {
  return profile == Profile::kPredictive ? "; it is of the predictive profile, which has no parts, as wavelets have"
                                         : "";
}

/// What samples may be.
inline std::int32_t lowest_sample(const PixelFormat& f) { return f.is_signed ? -(1 << (f.bits - 1)) : 0; }
inline std::int32_t highest_sample(const PixelFormat& f) {
  return f.is_signed ? (1 << (f.bits - 1)) - 1 : (1 << f.bits) - 1;
}

std::vector<std::uint8_t> serialise(const StreamHeader& header);
/// Throws BadStream or Unsupported with the field, its value and its range.
StreamHeader parse_stream_header(const std::uint8_t* bytes, std::size_t size);

// --------------------------------------------------------------------------------------------------------- GOP packet

struct ChunkEntry {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;  ///< from the first byte behind the GOP header
};

/// The head of a "Gop " box.
struct GopHeader {
  std::uint64_t index = 0;
  std::uint64_t first_frame = 0;
  int frames = 0;
  float step = 0;
  bool has_hash = false;
  std::uint64_t hash = 0;
  std::uint8_t planes = 0;              ///< the largest top of any segment
  std::vector<std::uint8_t> layer_top;  ///< planes of layer l are all below layer_top[l]
  std::vector<FrameTime> times;
  /// Empty, or per frame of the GOP's field: the coefficients of that frame after the temporal transform were
  /// multiplied by this / 64 before the spatial one.
  std::vector<std::uint8_t> frame_gains;
  /// Empty, or the sections of motion, from the coarsest temporal level on; they stand before the chunks.
  std::vector<ChunkEntry> motion;
  GopKey key = GopKey::kFirst;     ///< with motion
  std::vector<ChunkEntry> chunks;  ///< [(layer * bands + band) * distances + i], i = 0 for the coarsest
  std::uint64_t body_bytes = 0;    ///< sum of the sizes of sections and chunks
  std::vector<std::uint8_t> room;  ///< fields of later versions; kept

  const ChunkEntry& chunk(const StreamHeader& h, int layer, int band, int distance) const {
    const int n = h.spatial_levels + 1;
    return chunks[static_cast<std::size_t>((layer * h.temporal_bands() + band) * n + (h.spatial_levels - distance))];
  }
};

/// Where the last of these frames ends.
std::int64_t end_of(const std::vector<FrameTime>& times);

std::vector<std::uint8_t> serialise(const StreamHeader& stream, const GopHeader& gop);
GopHeader parse_gop_header(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size);

// ---------------------------------------------------------------------------------------------------------- index, end

/// `gops` have `layers` entries each.
std::vector<std::uint8_t> serialise_index(const std::vector<GopInfo>& gops);
/// Bytes that the entry of a GOP takes at most when none of its layers has more than `layer_bytes`. It begins at
/// `begin_pts`, where the GOP before ends at `before_pts`.
std::uint64_t index_entry_bound(int layers, std::uint64_t layer_bytes, std::int64_t before_pts, std::int64_t begin_pts,
                                std::int64_t end_pts);
std::vector<GopInfo> parse_index(const std::uint8_t* bytes, std::size_t size, int layers);

/// Mean squared errors as the index keeps them: 512 * log2, 1/512 of an octave fine.
std::uint16_t error_code(double mean_squared_error);
double error_of(std::uint16_t code);
inline constexpr std::uint16_t kErrorUnknown = 65535;

/// The content of the "Done" box, the last of a finished stream: fixed size, so that it is found from the end.
struct StreamEnd {
  std::uint64_t frames = 0;
  std::uint64_t index_offset = 0;  ///< of the index box in the file
};
inline constexpr std::size_t kEndPayloadBytes = 20;
std::vector<std::uint8_t> serialise(const StreamEnd& end);
/// False when the CRC does not match.
bool parse_stream_end(const std::uint8_t* bytes, std::size_t size, StreamEnd& end);

}  // namespace trivelet
