// The coded form of a GOP and its division into chunks (FORMAT.md "Chunk"). A chunk holds the parts of one layer,
// temporal band and distance of all components, behind a header with their planes and sizes.
//
// This code works on bytes and does not know the coders' bits. Truncation therefore needs no decoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/entropy/coded_block.h"
#include "codec/motion/motion.h"

namespace trivelet {

/// A GOP as a backend coded it, not yet divided into chunks.
struct CodedGop {
  struct Component {
    const BlockGrid* grid = nullptr;
    std::vector<CodedBlock> blocks;  ///< raster order
    LayerPlan plan;                  ///< fast profile: how `blocks` are divided into layers
    std::vector<PassTable> passes;   ///< per block, where rate control decides: dense always; fast when asked for
  };
  std::vector<Component> components;
  /// Copies the coded samples into a Gop, from a frame on. Null if the backend no longer has them; see
  /// BackendOptions::keeps_samples.
  std::function<void(Gop& gop, int first)> samples;
  /// The coded samples in the backend's memory, valid until the next call of the encoder. Null: not available.
  const Gop* held = nullptr;
  std::shared_ptr<const GopMotion> motion;  ///< with its sections; null: none
};

/// A GOP in layers, as an encoder sends it or a decoder received it. Parts point into memory of others.
struct LayeredGop {
  int frames = 0;
  float step = 0;
  int stop_plane = 0;                       ///< planes below are not wanted
  std::vector<std::uint8_t> frame_gains;    ///< GopHeader::frame_gains
  std::shared_ptr<const GopMotion> motion;  ///< null: none
  bool follows = false;                     ///< the GOP before was delivered just before, which open GOPs need
  bool begins = false;                      ///< nothing that was delivered before belongs to the same stream
  bool only_keys = false;                   ///< no samples are wanted, only the keys that later GOPs are predicted from
  bool no_samples = false;  ///< none are wanted: an open GOP behind needs the key frame, at all levels or by only_keys
  struct Component {
    const BlockGrid* grid = nullptr;
    std::vector<std::vector<LayeredSegment>> blocks;  ///< [block][segment]
  };
  std::vector<Component> components;
  int temporal_bands() const { return components[0].grid->table().temporal_bands(); }
};

/// The unit of truncation points: bit planes (fast) or passes, two to a plane (dense).
inline int cuts_per_plane(Profile profile) { return profile == Profile::kDense ? 2 : 1; }

/// The lowest truncation point of a segment whose parent ends at `parent_cut`.
inline int lowest_cut(Profile profile, int parent_cut) {
  return profile == Profile::kDense ? parent_cut & ~1 : parent_cut;
}

/// The inverse: the highest truncation point of the parent of a segment that ends at `cut`.
inline int highest_parent_cut(Profile profile, int cut) { return profile == Profile::kDense ? cut | 1 : cut; }

/// The parent of segment (b, k) of a block: its spatial parent, for k = 0 the temporal one; -1 for none.
int parent_segment(const BlockGrid& grid, int b, int k);

/// Calls f(component, resolution) for the components that have parts in the chunks of this band and distance. The
/// others are too small for the distance, or have no frames in the band.
template <class F>
void for_shares(const StreamHeader& stream, const LayeredGop& gop, int band, int distance, const F& f) {
  for (std::size_t c = 0; c < gop.components.size(); ++c) {
    const int k = stream.components[c].spatial_levels - distance;
    if (k >= 0 && gop.components[c].grid->families()[static_cast<std::size_t>(band)].frames > 0) f(c, k);
  }
}

/// Calls f(component, block, segment) for the parts of a chunk in their order.
template <class F>
void for_parts(const StreamHeader& stream, const LayeredGop& gop, int band, int distance, const F& f) {
  for_shares(stream, gop, band, distance, [&](std::size_t c, int k) {
    const auto s = static_cast<std::size_t>(segment_index(*gop.components[c].grid, band, k));
    for (std::size_t b = 0; b < gop.components[c].blocks.size(); ++b) f(c, b, s);
  });
}

/// The layers of a GOP of the fast profile that was coded by a plan. Parts point into `coded`.
void divide_by_plan(const CodedGop& coded, LayeredGop& out);

/// Fills header.planes and header.layer_top.
void set_planes(const StreamHeader& stream, const LayeredGop& gop, GopHeader& header);

/// Readable bytes behind what a coder decodes, for its 64-bit loads.
inline constexpr std::size_t kChunkPadding = 16;

/// The bytes that a chunk of this size takes in a packet, with its entry in the table.
inline std::uint64_t bytes_in_packet(std::uint64_t size) {
  std::uint64_t bytes = size + (size > 0 ? 4 : 0) + 1;
  for (std::uint64_t v = size; v >= 128; v >>= 7) ++bytes;
  return bytes;
}

/// Writes chunk (layer, band, distance). Every segment must have a part in every layer up to this one. Empty if no part
/// has bytes.
std::vector<std::uint8_t> write_chunk(const StreamHeader& stream, const LayeredGop& gop, int layer, int band,
                                      int distance);
/// Its size.
std::size_t chunk_size(const StreamHeader& stream, const LayeredGop& gop, int layer, int band, int distance);

/// The fields of a chunk's header for one component, one entry per code block in raster order.
struct HeadRows {
  std::vector<std::uint8_t> top;     ///< planes of the segment
  std::vector<std::uint8_t> limit;   ///< truncation point of the parent, if there is one
  std::vector<std::uint8_t> before;  ///< truncation point of the layers before
  std::vector<std::uint8_t> low;     ///< truncation point including this layer
  std::vector<std::uint32_t> size;   ///< bytes of the part
  void resize(std::size_t blocks);
};
/// The codes of these fields, and the bits they take.
struct HeadCodes {
  int nominal = 0;
  int rice = 0;
  bool uniform = false;
  bool says_something = false;
  std::uint64_t bits = 0;
  std::uint64_t body = 0;  ///< bytes of the parts
};
/// `first_layer`: tops are coded. `root`: the segments have no parents.
HeadCodes head_codes(const HeadRows& rows, bool first_layer, bool root);

/// The bytes of a chunk from the codes of its components.
class ChunkSize {
 public:
  void add(const HeadCodes& codes) {
    bits_ += codes.bits;
    body_ += codes.body;
    says_something_ |= codes.says_something;
  }
  std::uint64_t bytes() const { return (says_something_ ? (bits_ + 7) / 8 : 0) + body_; }

 private:
  std::uint64_t bits_ = 0;
  std::uint64_t body_ = 0;
  bool says_something_ = false;
};

/// Adds a chunk to the received GOP. `bytes` must stay alive and have kChunkPadding readable bytes behind `size`;
/// layer 0 of a band and distance comes before its later layers, and coarser ones come first. An empty chunk is size 0.
/// Throws BadStream.
void read_chunk(const StreamHeader& stream, const std::uint8_t* bytes, std::size_t size, int layer, int band,
                int distance, LayeredGop& gop);

}  // namespace trivelet
