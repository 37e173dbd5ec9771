// Computes the tables of the zerotree coders on the host, and uploads them.

#include "gpu/plan/tree_plan.h"

#include <algorithm>
#include <limits>

namespace trivelet::gpu {
namespace {

template <class T>
std::uint32_t append(std::vector<T>& to, const std::vector<T>& from) {
  const std::size_t at = to.size();
  to.insert(to.end(), from.begin(), from.end());
  return static_cast<std::uint32_t>(at);
}

}  // namespace

/// The tables that the constructor collects for the device.
struct TreePlan::Collected {
  std::vector<std::uint64_t> valid, child;
  std::vector<std::uint16_t> exists;
  std::vector<WordBase> base, slot;
  std::vector<DeviceBand> bands;
  std::vector<std::uint32_t> roots;
  std::vector<std::uint8_t> low;
};

TreePlan::TreePlan(const StreamHeader& header, const StreamGeometry& geometry,
                   const std::vector<CoefficientLayout>& layouts, const std::vector<std::size_t>& origins,
                   bool by_plane, const Stream& stream)
    : components_(geometry.components()), families_(header.temporal_bands()) {
  Collected all;
  root_block_.push_back(0);
  for (int c = 0; c < components_; ++c) {
    const BlockGrid& grid = geometry.grid(c);
    const LayerPlan plan = by_plane ? plane_plan(grid) : layer_plan(header, grid);
    layers_ = plan.layers;
    const auto cu = static_cast<std::size_t>(c);
    const SubbandTable target(layouts[cu].shape(), layouts[cu].decomposition(), header.lossless);
    add_component(c, grid, plan, target, layouts[cu], origins[cu], all);
  }
  list_tiles();
  list_segments();
  order_parts(header.spatial_levels);
  upload(all, stream);
}

void TreePlan::add_component(int c, const BlockGrid& grid, const LayerPlan& plan, const SubbandTable& target,
                             const CoefficientLayout& layout, std::size_t origin, Collected& all) {
  const int resolutions = grid.resolutions();
  const int segments = segment_count(grid);
  root_block_.push_back(root_block_.back() + static_cast<std::uint32_t>(grid.blocks()));
  resolutions_of_.push_back(resolutions);
  index_.emplace_back();
  const int first = static_cast<int>(levels_.size());
  for (int b = 0; b < families_; ++b) {
    const Family& f = grid.families()[static_cast<std::size_t>(b)];
    all.roots.push_back(static_cast<std::uint32_t>(levels_.size()));
    for (int k = 0; k < resolutions; ++k) {
      const TreeLevel& l = f.levels[static_cast<std::size_t>(k)];
      DeviceLevel d{};
      const int here = static_cast<int>(levels_.size());
      d.component = c;
      d.family = b;
      d.k = k;
      d.arity = l.arity;
      d.orientations = l.orientations;
      d.words = l.words;
      d.all_words = l.orientations * l.words;
      d.tiles = (d.all_words + kTileWords - 1) / kTileWords;
      d.child = k + 1 < resolutions ? here + 1 : -1;
      d.up = k > 0 ? here - 1 : -1;
      d.temporal = k == 0 && f.parent >= 0 ? first + f.parent * resolutions : -1;
      d.root_frames = f.root_frames;
      d.per_frame = (f.levels[0].side / 2) * (f.levels[0].side / 2);
      d.fine = k >= resolutions - 2;
      d.tile8x8 = l.kind == WordKind::kTile8x8;
      d.rows = grid.rows();
      d.columns = grid.columns();
      d.side = l.side;
      d.wanted = b < target.temporal_bands() && k < target.resolutions();
      d.base = append(all.base, l.base);
      d.slot = append(all.slot, std::vector<WordBase>(l.slot.begin(), l.slot.end()));
      add_bands(d, target, layout, origin, all);
      add_masks(d, grid, all);
      for (int layer = 0; layer < layers_; ++layer)
        all.low.push_back(plan.low[static_cast<std::size_t>(layer * segments + segment_index(grid, b, k))]);
      index_.back().push_back(here);
      levels_.push_back(d);
    }
  }
}

void TreePlan::add_bands(DeviceLevel& level, const SubbandTable& target, const CoefficientLayout& layout,
                         std::size_t origin, Collected& all) {
  level.band = static_cast<std::uint32_t>(all.bands.size());
  for (int i = 0; i < level.orientations; ++i) {
    DeviceBand band;
    // If all levels that split time are dropped, a dyadic target has no bands that are high along time; those of the
    // tree are then empty.
    const int orientation = BlockGrid::orientation(level.k, i);
    if (level.wanted && orientation <= target.orientations()) {
      const CoefficientLayout::Band at = layout.band(target.at(level.family, level.k, orientation));
      band.origin = origin + at.origin;
      band.frame_stride = at.frame_stride;
      band.row_stride = static_cast<std::uint32_t>(at.row_stride);
    }
    all.bands.push_back(band);
  }
}

// A class of blocks without a block has no masks; then nothing asks for them either.
void TreePlan::add_masks(DeviceLevel& level, const BlockGrid& grid, Collected& all) {
  for (int cls = 0; cls < 4; ++cls) {
    const int by = cls & 2 ? grid.rows() - 1 : 0, bx = cls & 1 ? grid.columns() - 1 : 0;
    const FamilyMasks& m = grid.masks(by, bx).families[static_cast<std::size_t>(level.family)];
    const LevelMasks& lm = m.levels[static_cast<std::size_t>(level.k)];
    const std::uint32_t v = append(all.valid, lm.valid), ch = append(all.child, lm.child);
    if (cls == 0) {
      level.valid = v;
      level.child_mask = ch;
      level.child_mask_size = static_cast<std::uint32_t>(lm.child.size());
    }
    if (level.k == 0) {
      const std::uint32_t e = append(all.exists, m.root_exists);
      if (cls == 0) level.exists = e;
    }
  }
}

// Finest resolution first.
void TreePlan::list_tiles() {
  const int most = *std::max_element(resolutions_of_.begin(), resolutions_of_.end());
  for (int distance = 0; distance < most; ++distance) {
    distance_tiles_.push_back(tiles());
    for (std::size_t i = 0; i < levels_.size(); ++i) {
      DeviceLevel& l = levels_[i];
      if (l.k != resolutions_of_[static_cast<std::size_t>(l.component)] - 1 - distance) continue;
      l.first_tile = tiles();
      for (int block = 0; block < l.rows * l.columns; ++block)
        for (int t = 0; t < l.tiles; ++t)
          tiles_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(block),
                            static_cast<std::uint32_t>(t * kTileWords)});
    }
  }
  distance_tiles_.push_back(tiles());
  require(tiles_.size() < (std::size_t{1} << 26), ErrorKind::kUnsupported,
          "a GOP of " + std::to_string(tiles_.size()) + " tiles of words is too large for the GPU coder");
}

// Coarsest first and of a resolution the largest first.
void TreePlan::list_segments() {
  const int most = *std::max_element(resolutions_of_.begin(), resolutions_of_.end());
  for (int k = 0; k < most; ++k) {
    resolution_segments_.push_back(segments());
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < levels_.size(); ++i)
      if (levels_[i].k == k) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return levels_[a].all_words > levels_[b].all_words; });
    for (const std::size_t i : order) {
      levels_[i].first_segment = segments();
      for (int block = 0; block < levels_[i].rows * levels_[i].columns; ++block)
        segments_.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(block)});
    }
  }
  resolution_segments_.push_back(segments());
}

// In the order of the chunks, so that the body of a chunk is one run of bytes.
void TreePlan::order_parts(int spatial_levels) {
  part_order_.reserve(parts());
  for (int layer = 0; layer < layers_; ++layer)
    for (int b = 0; b < families_; ++b)
      for (int distance = spatial_levels; distance >= 0; --distance)
        for (int c = 0; c < components_; ++c) {
          const int k = resolutions_of_[static_cast<std::size_t>(c)] - 1 - distance;
          if (k < 0) continue;
          const DeviceLevel& l = level(c, b, k);
          for (int block = 0; block < l.rows * l.columns; ++block)
            part_order_.push_back((l.first_segment + static_cast<std::uint32_t>(block)) *
                                      static_cast<std::uint32_t>(layers_) +
                                  static_cast<std::uint32_t>(layer));
        }
}

void TreePlan::upload(const Collected& all, const Stream& stream) {
  d_levels_ = to_device(levels_, stream);
  d_tiles_ = to_device(tiles_, stream);
  d_segments_ = to_device(segments_, stream);
  d_valid_ = to_device(all.valid, stream);
  d_child_ = to_device(all.child, stream);
  d_exists_ = to_device(all.exists, stream);
  d_base_ = to_device(all.base, stream);
  d_slot_ = to_device(all.slot, stream);
  d_bands_ = to_device(all.bands, stream);
  d_roots_ = to_device(all.roots, stream);
  d_root_block_ = to_device(root_block_, stream);
  d_part_order_ = to_device(part_order_, stream);
  d_low_ = to_device(all.low, stream);
  stream.synchronize();
}

const DeviceLevel& TreePlan::level(int component, int family, int k) const {
  const auto c = static_cast<std::size_t>(component);
  return levels_[static_cast<std::size_t>(index_[c][static_cast<std::size_t>(family * resolutions_of_[c] + k)])];
}

int TreePlan::most_tiles(int k) const {
  int n = 1;
  for (const DeviceLevel& l : levels_)
    if (l.k == k || l.k == k - 1) n = std::max(n, l.tiles);
  return n;
}

std::uint32_t TreePlan::first_root_word() const {
  std::uint32_t first = tiles();
  for (const DeviceLevel& l : levels_)
    if (l.k == 0) first = std::min(first, l.first_tile);
  return first * kTileWords;
}

std::size_t TreePlan::device_bytes() const {
  return d_levels_.size() * sizeof(DeviceLevel) + d_tiles_.size() * sizeof(DeviceTile) +
         d_segments_.size() * sizeof(DeviceSegment) + (d_valid_.size() + d_child_.size()) * 8 + d_exists_.size() * 2 +
         (d_base_.size() + d_slot_.size()) * sizeof(WordBase) + d_bands_.size() * sizeof(DeviceBand) +
         (d_roots_.size() + d_root_block_.size() + d_part_order_.size()) * 4 + d_low_.size();
}

TreeTables TreePlan::tables() const {
  TreeTables t{};
  t.levels = d_levels_.data();
  t.tiles = d_tiles_.data();
  t.segments = d_segments_.data();
  t.valid = d_valid_.data();
  t.child = d_child_.data();
  t.exists = d_exists_.data();
  t.base = d_base_.data();
  t.slot = d_slot_.data();
  t.bands = d_bands_.data();
  t.roots = d_roots_.data();
  t.root_block = d_root_block_.data();
  t.low = d_low_.data();
  t.part_order = d_part_order_.data();
  t.components = components_;
  t.families = families_;
  t.layers = layers_;
  t.tile_count = tiles();
  t.segment_count = segments();
  t.block_count = blocks();
  return t;
}

}  // namespace trivelet::gpu
