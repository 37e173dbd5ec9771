// Decodes a stream of a volume in several processes: each takes every n-th piece of slices, and the first one gets them
// in order, at most two pieces of each process ahead.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/cluster/job_call.h"
#include "trivelet/volume.h"

namespace trivelet::cli {

/// Slices of one volume that are decoded together.
struct VolumePiece {
  std::uint64_t volume = 0;
  VoxelRegion region;
};
/// Divides the decoder's output at the ends of slabs, or between volumes. Empty if pieces would need each other's
/// slabs: for reduced sizes, and if slabs go along the fourth axis.
std::vector<VolumePiece> volume_pieces(const VolumeDecoder& decoder, const VolumeDecoderParams& params);

/// Opens a decoder of some piece.
using PieceDecoder = std::function<std::unique_ptr<VolumeDecoder>(const VolumeDecoderParams&)>;

/// In all processes but the first. `params`: of the whole volume.
void decode_pieces_for_others(Processes& processes, const std::vector<VolumePiece>& pieces,
                              const VolumeDecoderParams& params, const PieceDecoder& open);
/// Reports an error that happened before there were pieces.
void decode_no_pieces(Processes& processes, const std::exception_ptr& error);

/// In the first process: all slices in order. The other processes have been called.
class GatheredSlices {
 public:
  GatheredSlices(Processes& processes, std::vector<VolumePiece> pieces, const VolumeDecoderParams& params,
                 PieceDecoder open);
  /// The others stop.
  ~GatheredSlices();
  /// The next slice; false at the end. Throws the error of any process.
  bool read(std::byte* slice);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet::cli
