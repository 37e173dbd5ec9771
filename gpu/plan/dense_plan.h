// The description of a block for the dense coder's kernels, beyond the tree's tables: where the known magnitudes,
// groups and rows of a segment are in device memory, and how far they extend in blocks at the borders
// (codec/entropy/dense/dense_block.h).
//
// A level of a block has, without gaps, for each orientation and frame `side` rows of `side` coefficients, a byte for
// each group of siblings, and a byte for each row of groups. A byte is the number of planes in which the group, or any
// of the row's, is active. So "active at plane p" is byte > p in the encoder, which knows all, and in the decoder,
// which writes p + 1 when it decodes that.
#pragma once

#include <cstdint>
#include <vector>

#include "codec/entropy/dense/dense_block.h"
#include "codec/entropy/dense/dense_model.h"
#include "gpu/plan/tree_plan.h"

namespace trivelet::gpu {

inline constexpr int kDenseOrientations = 7;

struct DenseBox {
  int t, y, x;
};

/// Parallel to DeviceLevel. Places are those of block 0; spans lead to the next block.
struct DenseLevel {
  int groups_t, groups,
      frames;  ///< groups: along rows and columns of a frame, a power of two
  int log2_groups;
  int depth;   ///< frames of a group
  int finest;  ///< detail bands without children
  std::uint64_t value, group, quad, frame_sum;
  std::uint32_t value_span, group_span, quad_span,
      frame_sum_span;                       ///< bytes begin at multiples of 4
  std::uint32_t table[kDenseOrientations];  ///< start states, in contexts
  std::uint32_t slot;                       ///< of the first orientation among all subbands of all components
  std::int32_t frame_weight;                ///< of frame 0 of the band; -1: all 1
  DenseBox valid[4][kDenseOrientations],
      exists[4][kDenseOrientations];  ///< by block class
};

/// What kernels get beside TreeTables.
struct DenseTables {
  const DenseLevel* levels;
  const std::uint32_t* start;  ///< states: probability, and decisions seen in the upper half
  const std::uint16_t* rates;
  const std::uint8_t* energy_class;           ///< [256]
  const std::uint32_t* parents_first;         ///< segments, each after the one it depends on
  const std::uint32_t* order;                 ///< segments, the largest first
  const std::uint32_t* levels_by_resolution;  ///< levels, by k
};

class DensePlan {
 public:
  DensePlan(const StreamHeader& header, const StreamGeometry& geometry, const TreePlan& tree, const Stream& stream);

  DenseTables tables() const;
  const std::vector<DenseLevel>& levels() const { return levels_; }
  std::uint64_t values() const { return values_; }
  std::uint64_t groups() const { return groups_; }
  std::uint64_t quads() const { return quads_; }
  std::uint64_t frame_sums() const { return frame_sums_; }
  std::uint32_t subbands() const { return subbands_; }
  std::uint32_t frame_weights() const { return frame_weights_; }
  /// Levels of resolution k in DenseTables::levels_by_resolution: [first, end).
  std::uint32_t first_level(int k) const { return first_level_[static_cast<std::size_t>(k)]; }
  /// The most (block, orientation, frame of groups or of coefficients) triples of a level of resolution k.
  std::uint32_t most_frames(int k, bool by_group) const;
  int orientations(int k) const;
  std::size_t device_bytes() const;

 private:
  void add_component(const BlockGrid& grid, bool weighted);
  /// Takes the places of its values, groups and quads.
  DenseLevel make_level(const BlockGrid& grid, const dense::Block (&blocks)[4], int b, int k);
  void upload_orders(const Stream& stream);

  const TreePlan* tree_;
  std::vector<DenseLevel> levels_;
  std::uint64_t values_ = 0, groups_ = 0, quads_ = 0, frame_sums_ = 0;
  std::uint32_t subbands_ = 0, frame_weights_ = 0;
  std::vector<std::uint32_t> first_level_;
  DeviceBuffer<DenseLevel> d_levels_;
  DeviceBuffer<std::uint32_t> d_start_, d_order_, d_parents_first_, d_levels_by_resolution_;
  DeviceBuffer<std::uint16_t> d_rates_;
  DeviceBuffer<std::uint8_t> d_energy_class_;
};

}  // namespace trivelet::gpu
