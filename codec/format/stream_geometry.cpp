#include "codec/format/stream_geometry.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "codec/entropy/dense/dense_block.h"

namespace trivelet {

StreamGeometry::StreamGeometry(const StreamHeader& header, int frames) : frames_(frames) {
  std::vector<std::pair<Shape, int>> known;
  grids_.reserve(header.components.size());  // a grid is large to move
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const std::pair<Shape, int> key{header.component_shape(c, frames),
                                    header.components[static_cast<std::size_t>(c)].spatial_levels};
    const auto at = std::find(known.begin(), known.end(), key);
    grid_of_.push_back(static_cast<std::size_t>(at - known.begin()));
    if (at == known.end()) {
      known.push_back(key);
      grids_.emplace_back(key.first, header.decomposition(c), header.lossless, header.block_size(),
                          header.profile != Profile::kPredictive);
    }
  }
}

std::uint64_t geometry_memory(const StreamHeader& header) {
  constexpr std::uint64_t kMaskBytes = 4 * 16 + 8;  // of a word
  const std::uint64_t segment = sizeof(LayeredSegment) + header.layers * sizeof(LayerPart);
  std::uint64_t bytes = 0;
  std::vector<std::pair<Shape, int>> known;  // components of equal shape share their masks
  for (int c = 0; c < static_cast<int>(header.components.size()); ++c) {
    const Shape s = header.component_shape(c, header.gop_frames);
    const Decomposition d = header.decomposition(c);
    const GridSize grid = grid_size(s, d, header.block_size());
    bytes += grid.blocks * static_cast<std::uint64_t>(grid.segments) * segment;
    const std::pair<Shape, int> key{s, d.spatial_levels};
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    known.push_back(key);
    bytes += grid.words * kMaskBytes;
  }
  return bytes;
}

void StreamGeometry::clear(LayeredGop& gop) const {
  gop.components.resize(static_cast<std::size_t>(components()));
  for (int c = 0; c < components(); ++c) {
    LayeredGop::Component& component = gop.components[static_cast<std::size_t>(c)];
    component.grid = &grid(c);
    component.blocks.resize(static_cast<std::size_t>(component.grid->blocks()));
    for (auto& block : component.blocks) {
      block.resize(static_cast<std::size_t>(segment_count(*component.grid)));
      for (LayeredSegment& s : block) {
        s.top = 0;
        s.parts.clear();
      }
    }
  }
}

LayerPlan layer_plan(const StreamHeader& header, const BlockGrid& grid) {
  const SubbandTable& table = grid.table();
  const int segments = segment_count(grid);
  // Lossy subbands are quantised in proportion to their weight, so a plane means the same everywhere. Integer
  // transforms are not scaled: there a subband of weight 2^n keeps n planes more.
  std::vector<int> shift(static_cast<std::size_t>(segments), 0);
  if (header.lossless) {
    double least = 1e30;
    auto norm = [&](int b, int k) { return table.at(b, k, k == 0 ? 0 : 1).norm; };
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k) least = std::min(least, norm(b, k));
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k)
        shift[static_cast<std::size_t>(segment_index(grid, b, k))] =
            static_cast<int>(std::lround(std::log2(norm(b, k) / least)));
  }
  LayerPlan plan;
  plan.layers = header.layers;
  plan.low.assign(static_cast<std::size_t>(plan.layers * segments), 0);
  for (int l = 0; l + 1 < plan.layers; ++l)
    for (int b = 0; b < table.temporal_bands(); ++b)
      for (int k = 0; k < table.resolutions(); ++k) {
        const int s = segment_index(grid, b, k);
        int low = std::max(0, plan.layers - 1 - l - shift[static_cast<std::size_t>(s)]);
        // A child is never cut lower than its parent.
        const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
        if (k > 0) low = std::max<int>(low, plan.low[static_cast<std::size_t>(l * segments + s - 1)]);
        if (k == 0 && parent >= 0)
          low = std::max<int>(low, plan.low[static_cast<std::size_t>(l * segments + segment_index(grid, parent, 0))]);
        plan.low[static_cast<std::size_t>(l * segments + s)] = static_cast<std::uint8_t>(low);
      }
  return plan;
}

LayerPlan plane_plan(const BlockGrid& grid) {
  LayerPlan plan;
  plan.layers = dense::kMaxPlanes;
  for (int l = 0; l < plan.layers; ++l)
    plan.low.insert(plan.low.end(), static_cast<std::size_t>(segment_count(grid)),
                    static_cast<std::uint8_t>(dense::kMaxPlanes - 1 - l));
  return plan;
}

}  // namespace trivelet
