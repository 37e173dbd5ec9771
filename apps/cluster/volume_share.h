// A volume's stream decoded by several processes: each takes every n-th piece of slices, and the first one gets them in
// their order, two pieces of each ahead.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/volume.h"

namespace trivelet::cli {

/// Slices of one volume that are decoded at once.
struct VolumePiece {
  std::uint64_t volume = 0;
  VoxelRegion region;
};
/// What the decoder delivers, cut where its slabs end, or between its volumes. Nothing where pieces would need each
/// other's slabs: of reduced sizes, and where the slabs go along the fourth axis.
std::vector<VolumePiece> volume_pieces(const VolumeDecoder& decoder, const VolumeDecoderParams& params);

/// Opens a decoder of some piece.
using PieceDecoder = std::function<std::unique_ptr<VolumeDecoder>(const VolumeDecoderParams&)>;

/// In all processes but the first. `params`: of the whole.
void decode_pieces_for_others(Processes& processes, const std::vector<VolumePiece>& pieces,
                              const VolumeDecoderParams& params, const PieceDecoder& open);
/// What went wrong before there were pieces.
void decode_no_pieces(Processes& processes, const std::exception_ptr& error);

/// In the first process: all slices, in their order. The others have been called.
class GatheredSlices {
 public:
  GatheredSlices(Processes& processes, std::vector<VolumePiece> pieces, const VolumeDecoderParams& params,
                 PieceDecoder open);
  /// The others stop.
  ~GatheredSlices();
  /// The next slice; false at the end. Throws what went wrong in any of them.
  bool read(std::byte* slice);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::cli
