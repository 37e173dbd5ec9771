// The zerotree coder's geometry (codec/transform/tree.h) as flat tables in device memory.
//
// The words of one level of one family of one code block (64 slots each, all orientations) are divided into *tiles* of
// 32: a warp's work, a word for each lane. Arrays of words are indexed [tile * 32 + lane], arrays of bit planes [(tile
// * planes + plane) * 32 + lane]. The tiles of a block's level are consecutive, so its word j is at first_word(block) +
// j. Tiles are numbered finest resolution first (the encoder's order), segments coarsest first (the decoder's order).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "codec/backend.h"
#include "gpu/transform/dwt.h"

namespace trivelet::gpu {

inline constexpr int kTileWords = 32;

/// A level k of a family of a component; indices of other levels are -1 if there is none.
struct DeviceLevel {
  int component, family, k;
  int arity, orientations;
  int words;                                                 ///< per orientation
  int all_words;                                             ///< orientations * words
  int tiles;                                                 ///< per block
  int child, up;                                             ///< levels k + 1 and k - 1 of the family
  int temporal;                                              ///< k = 0: level 0 of the family of the temporal parents
  int root_frames;                                           ///< frames of root groups
  int per_frame;                                             ///< root groups of a frame
  int fine;                                                  ///< one of the two finest: flags say "exactly one"
  int tile8x8;                                               ///< words are 8x8 squares in Z order
  int rows, columns, side;                                   ///< code blocks of the component; side of a block's patch
  int wanted;                                                ///< the target of a decoder has it
  std::uint32_t first_tile, first_segment;                   ///< + block * tiles, + block
  std::uint32_t valid, child_mask, child_mask_size, exists;  ///< + class * all_words, child_mask_size, words
  std::uint32_t base, slot, band;
};

struct DeviceTile {
  std::uint32_t level, block, first;  ///< first: of its words, among the block's all_words
};
struct DeviceSegment {
  std::uint32_t level, block;
};
/// A subband in the array of coefficients, in elements; row_stride 0: there is none.
struct DeviceBand {
  std::uint64_t origin = 0, frame_stride = 0;
  std::uint32_t row_stride = 0;
  float step = 1;
};

/// What kernels get.
struct TreeTables {
  const DeviceLevel* levels;
  const DeviceTile* tiles;
  const DeviceSegment* segments;
  const std::uint64_t* valid;
  const std::uint64_t* child;
  const std::uint16_t* exists;
  const WordBase* base;
  const WordBase* slot;
  const DeviceBand* bands;
  const std::uint32_t* roots;       ///< [component * families + family]: level 0
  const std::uint32_t* root_block;  ///< [i]: first block number of component i among all; one more at the end
  const std::uint8_t* low;          ///< [level * layers + layer]: lowest plane (encoder)
  const std::uint32_t* part_order;  ///< [i]: segment * layers + layer of the i-th part of the output
  int components, families, layers;
  std::uint32_t tile_count, segment_count, block_count;
};

class TreePlan {
 public:
  /// `layouts`: of the arrays of coefficients, for each component; they begin at `origins` (in elements). A decoder's
  /// may be smaller than the geometry: reduced. `by_plane`: every plane is a layer.
  TreePlan(const StreamHeader& header, const StreamGeometry& geometry, const std::vector<CoefficientLayout>& layouts,
           const std::vector<std::size_t>& origins, bool by_plane, const Stream& stream);

  TreeTables tables() const;
  const std::vector<DeviceLevel>& levels() const { return levels_; }
  std::uint32_t tiles() const { return static_cast<std::uint32_t>(tiles_.size()); }
  std::uint32_t segments() const { return static_cast<std::uint32_t>(segments_.size()); }
  std::uint32_t parts() const { return segments() * static_cast<std::uint32_t>(layers_); }
  std::uint32_t blocks() const { return root_block_.back(); }
  int layers() const { return layers_; }
  /// Tiles of the levels at a distance from the finest: [first, end).
  std::uint32_t first_tile(int distance) const { return distance_tiles_[static_cast<std::size_t>(distance)]; }
  int distances() const { return static_cast<int>(distance_tiles_.size()) - 1; }
  /// Segments of resolution k: [first, end).
  std::uint32_t first_segment(int k) const { return resolution_segments_[static_cast<std::size_t>(k)]; }
  int resolutions() const { return static_cast<int>(resolution_segments_.size()) - 1; }
  /// The largest number of tiles of a segment of resolution k, or of the level above it.
  int most_tiles(int k) const;
  /// Number of segment (family, k) of a block.
  std::uint32_t segment(int component, int family, int k, int block) const {
    return level(component, family, k).first_segment + static_cast<std::uint32_t>(block);
  }
  const DeviceLevel& level(int component, int family, int k) const;
  std::uint32_t block(int component, int block) const {
    return root_block_[static_cast<std::size_t>(component)] + static_cast<std::uint32_t>(block);
  }
  const std::vector<std::uint32_t>& part_order() const { return part_order_; }
  /// Words of the lowest bands are this one and later ones.
  std::uint32_t first_root_word() const;
  std::size_t device_bytes() const;

 private:
  struct Collected;
  void add_component(int c, const BlockGrid& grid, const LayerPlan& plan, const SubbandTable& target,
                     const CoefficientLayout& layout, std::size_t origin, Collected& all);
  static void add_bands(DeviceLevel& level, const SubbandTable& target, const CoefficientLayout& layout,
                        std::size_t origin, Collected& all);
  static void add_masks(DeviceLevel& level, const BlockGrid& grid, Collected& all);
  void list_tiles();
  void list_segments();
  void order_parts(int spatial_levels);
  void upload(const Collected& all, const Stream& stream);

  int layers_ = 1, components_ = 1, families_ = 1;
  std::vector<DeviceLevel> levels_;
  std::vector<DeviceTile> tiles_;
  std::vector<DeviceSegment> segments_;
  std::vector<std::vector<int>> index_;  // [component][family * resolutions + k]
  std::vector<int> resolutions_of_;
  std::vector<std::uint32_t> distance_tiles_, resolution_segments_, root_block_, part_order_;
  DeviceBuffer<DeviceLevel> d_levels_;
  DeviceBuffer<DeviceTile> d_tiles_;
  DeviceBuffer<DeviceSegment> d_segments_;
  DeviceBuffer<std::uint64_t> d_valid_, d_child_;
  DeviceBuffer<std::uint16_t> d_exists_;
  DeviceBuffer<WordBase> d_base_, d_slot_;
  DeviceBuffer<DeviceBand> d_bands_;
  DeviceBuffer<std::uint32_t> d_roots_, d_root_block_, d_part_order_;
  DeviceBuffer<std::uint8_t> d_low_;
};

}  // namespace trivelet::gpu
