// The geometry of a stream's GOPs: grids of code blocks for each component, and where layers divide their segments.
// Coder, container and every backend share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/format/chunk.h"

namespace trivelet {

/// Geometry of the components of a GOP of some length: shared by coder and container.
class StreamGeometry {
 public:
  StreamGeometry(const StreamHeader& header, int frames);
  int frames() const { return frames_; }
  const BlockGrid& grid(int component) const { return grids_[grid_of_[static_cast<std::size_t>(component)]]; }
  int components() const { return static_cast<int>(grid_of_.size()); }
  /// Makes `gop` what it is before its first chunk: all blocks of the grids, without parts. Its memory is used again.
  void clear(LayeredGop& gop) const;

 private:
  int frames_;
  std::vector<BlockGrid> grids_;  // components of equal shape share one
  std::vector<std::size_t> grid_of_;
};

/// Bytes that the geometry of a stream's full GOPs and what is received of one take, without the parts' own.
std::uint64_t geometry_memory(const StreamHeader& header);

/// Where the layers cut the segments of a component (encoder's choice; FORMAT.md "Layers").
LayerPlan layer_plan(const StreamHeader& header, const BlockGrid& grid);
/// Every plane a layer of its own: what GopChoices::passes asks for.
LayerPlan plane_plan(const BlockGrid& grid);

}  // namespace trivelet
