// The geometry of a stream's GOPs: grids of code blocks for each component, and where layers divide their segments.
// Coder, container and every backend share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/stream_header.h"
#include "codec/format/chunk.h"

namespace trivelet {

/// What GOPs of a stream have in common that have the same geometry.
struct GopKind {
  int frames = 0;
  int motion_levels = 0;  ///< temporal levels of a GOP with motion; 0: it has none
  bool key_last = false;  ///< StreamHeader::key_last

  GopKind() = default;
  GopKind(int frame_count, int levels, GopKey key)
      : frames(frame_count), motion_levels(levels), key_last(levels > 0 && key != GopKey::kFirst) {}
  auto operator<=>(const GopKind&) const = default;
};

/// The grids of all components of GOPs of one kind.
class StreamGeometry {
 public:
  /// `header`: as StreamHeader::describe_gop() describes the GOPs.
  StreamGeometry(const StreamHeader& header, int frames);
  int frames() const { return frames_; }
  const BlockGrid& grid(int component) const { return grids_[grid_of_[static_cast<std::size_t>(component)]]; }
  int components() const { return static_cast<int>(grid_of_.size()); }
  /// Resets `gop` to all blocks of the grids, without parts. Reuses its memory.
  void clear(LayeredGop& gop) const;

 private:
  int frames_;
  std::vector<BlockGrid> grids_;  // components of equal shape share one
  std::vector<std::size_t> grid_of_;
};

/// Memory in bytes of the geometry of a stream's full GOPs and of one received GOP, without the bytes of its parts.
std::uint64_t geometry_memory(const StreamHeader& header);

/// The truncation points of a component's segments for all layers (the encoder's choice; FORMAT.md "Layers").
LayerPlan layer_plan(const StreamHeader& header, const BlockGrid& grid);
/// One layer per bit plane, for GopChoices::passes.
LayerPlan plane_plan(const BlockGrid& grid);

}  // namespace trivelet
