// The headers of a stream and of a GOP (FORMAT.md "Head", "Gop") as structs that every stage uses, and the limits of
// the format. format/container.h reads and writes them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trivelet/parameters.h"
#include "trivelet/stream_info.h"
#include "trivelet/types.h"

namespace trivelet {

/// Limits of the format (FORMAT.md "Limits").
inline constexpr int kMaxDimension = 65536;
inline constexpr int kMaxGopFrames = 128;
inline constexpr int kMaxLayers = 16;
inline constexpr std::size_t kMaxHeaderBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::uint64_t kMaxGopSamples = std::uint64_t{1} << 33;

struct ComponentHeader {
  std::int32_t offset = 0;  ///< subtracted from samples before the transform
  float weight = 1;         ///< factor of the quantiser step
  std::uint8_t spatial_levels = 0;
  /// [k]: subbands of resolution k have a quantiser step 64 / scale times as large; 64 = 1. Lossless streams have 64.
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
  std::uint64_t optional_features = 0;  ///< unknown to this version; kept
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
  std::uint8_t centroid = 102;        ///< position of the reconstruction point in its interval, in 1/256
  std::uint8_t colour_transform = 0;  ///< 0 none, 1 YCoCg-R of planes G, B, R
  std::uint8_t dropped_spatial = 0;   ///< finest spatial levels that the stream lacks (trivelet extract)
  std::uint8_t dropped_temporal = 0;  ///< finest temporal levels that the stream lacks; t+2D only
  std::uint16_t gop_frames = 1;
  VideoInfo video;  ///< frames = 0 when unknown
  std::vector<ComponentHeader> components;
  std::string writer;
  std::string settings;
  std::vector<std::uint8_t> room;  ///< reserved bytes that hold fields of later versions; kept
  bool motion = false;             ///< GOPs may have motion; t+2D
  bool levels_by_gop = false;   ///< GOPs with motion tell how many temporal levels they have, at most temporal_levels
  bool predicted_keys = false;  ///< keys of GOPs with motion may be predicted from the GOP before
  bool known_ahead = false;     ///< predictive profile, static contexts: no context depends on the row of its sample
  bool labels = false;          ///< predictive profile, codewords may be of labels
  bool mixed = false;           ///< predictive profile, codewords may have mixed contexts
  bool moved = false;     ///< predictive profile, inter frames: the header of a codeword tells which frames they are
  bool key_last = false;  ///< set by describe_gop(): place 0 holds no frame of this GOP

  /// Whether codewords begin with their kind.
  bool names_kinds() const { return labels || mixed; }
  int block_size() const { return 1 << log2_block; }
  /// The shape of a component in a GOP of `frames` frames. With key_last it includes place 0.
  Shape component_shape(int c, int frames) const {
    return {frames + (key_last ? 1 : 0), video.component_height(c), video.component_width(c)};
  }
  /// The number of samples of all components.
  std::uint64_t samples(int frames) const {
    std::uint64_t sum = 0;
    for (int c = 0; c < video.format.components(); ++c) sum += component_shape(c, frames).samples();
    return sum;
  }
  Decomposition decomposition(int c) const {
    return {layout,   temporal_levels, components[static_cast<std::size_t>(c)].spatial_levels,
            temporal, spatial,         key_last};
  }
  /// The header for the coding of one GOP: with motion, its temporal transform differs from that of the stream.
  /// `motion_levels`: temporal levels of a GOP with motion; 0: it has none.
  StreamHeader describe_gop(int motion_levels, GopKey key) const {
    StreamHeader h = *this;
    if (motion_levels == 0) return h;
    h.temporal = Wavelet::kMotion;
    h.temporal_levels = static_cast<std::uint8_t>(motion_levels);
    h.key_last = key != GopKey::kFirst;
    return h;
  }
  /// The fewest temporal levels that a GOP can have.
  int least_levels() const { return levels_by_gop ? std::min<int>(1, temporal_levels) : temporal_levels; }
  /// Frames of a decoded GOP at most, of which so many levels are dropped where it has them.
  int most_frames(int dropped) const {
    const int n = std::min(dropped, least_levels());
    return (gop_frames + (1 << n) - 1) >> n;
  }
  int temporal_bands() const { return layout == Layout::kDyadic ? 1 : temporal_levels + 1; }
  /// How often every component can be halved, counted from the full size.
  int max_reduce() const {
    int n = spatial_levels;
    for (const auto& c : components) n = std::min<int>(n, c.spatial_levels);
    return n;
  }
};

/// The end of an error message for a request of less than the whole stream.
inline const char* no_smaller(Profile profile) {
  return profile == Profile::kPredictive ? "; it is of the predictive profile, which has no parts, as wavelets have"
                                         : "";
}

/// The lowest and the highest value of a sample.
inline std::int32_t lowest_sample(const PixelFormat& f) { return f.is_signed ? -(1 << (f.bits - 1)) : 0; }
inline std::int32_t highest_sample(const PixelFormat& f) {
  return f.is_signed ? (1 << (f.bits - 1)) - 1 : (1 << f.bits) - 1;
}

struct ChunkEntry {
  std::uint64_t size = 0;
  std::uint32_t crc = 0;
  std::uint64_t offset = 0;  ///< from the first byte behind the GOP header
};

/// The header of a "Gop " box.
struct GopHeader {
  std::uint64_t index = 0;
  std::uint64_t first_frame = 0;
  int frames = 0;
  float step = 0;
  bool has_hash = false;
  std::uint64_t hash = 0;
  std::uint8_t planes = 0;              ///< the largest top of any segment
  std::vector<std::uint8_t> layer_top;  ///< all planes of layer l are below layer_top[l]
  std::vector<FrameTime> times;
  /// Empty, or a gain for each frame of the GOP. The coefficients of that frame were multiplied by gain / 64 after the
  /// temporal transform and before the spatial one.
  std::vector<std::uint8_t> frame_gains;
  /// Empty, or the sections of motion, from the coarsest temporal level on, before them that of predicted keys. They
  /// stand before the chunks.
  std::vector<ChunkEntry> motion;
  GopKey key = GopKey::kFirst;  ///< with motion
  bool predicts_keys = false;   ///< with motion: its keys are predicted
  /// Temporal levels of a GOP with motion, each of which has a section; 0: it has none.
  int motion_levels() const { return static_cast<int>(motion.size()) - (predicts_keys ? 1 : 0); }
  std::vector<ChunkEntry> chunks;  ///< [(layer * bands + band) * distances + i], i = 0 for the coarsest
  std::uint64_t body_bytes = 0;    ///< sum of the sizes of sections and chunks
  std::vector<std::uint8_t> room;  ///< reserved bytes that hold fields of later versions; kept

  int temporal_bands(const StreamHeader& stream) const {
    return motion.empty() ? stream.temporal_bands() : motion_levels() + 1;
  }
  const ChunkEntry& chunk(const StreamHeader& h, int layer, int band, int distance) const {
    const int n = h.spatial_levels + 1;
    return chunks[static_cast<std::size_t>((layer * temporal_bands(h) + band) * n + (h.spatial_levels - distance))];
  }
};

/// How often the pictures and the frame rate are halved in decoding.
struct Reduction {
  int spatial = 0;
  int temporal = 0;
  /// The same for a GOP of so many temporal levels.
  Reduction clamped(int levels) const { return {spatial, std::min(temporal, levels)}; }
};

}  // namespace trivelet
