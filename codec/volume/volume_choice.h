// How a volume is coded: what can be chosen, and the trial of it on a piece of the volume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec/volume/volume_map.h"
#include "trivelet/volume.h"

namespace trivelet {

/// One way to code a volume.
struct VolumeCandidate {
  bool palette = false;
  bool predictive = false;  ///< the profile, with which what follows has no meaning
  VolumePrediction prediction = VolumePrediction::kNone;
  VolumeOrder order = VolumeOrder::kFile;
  Wavelet wavelet = Wavelet::kCdf53;
  int z_levels = 0;
  int xy_levels = 4;
  std::string text() const;
};

/// Frames transformed together: `wanted`, or if that is 0 what is usual.
int slab_frames(const VolumeDescription& volume, const VolumeCandidate& candidate, bool lossless, int wanted);
/// Sets the structure in `params` to the candidate's.
void apply(const VolumeCandidate& candidate, int slab, EncoderParams& params);
/// The video whose frames are the slices.
VideoInfo slice_video(const VolumeMap& map, int width, int height, std::uint64_t frames);
/// Whether the volume can be held in memory, as another order of its slices asks for.
bool can_be_held(const VolumeDescription& volume);

/// A piece of a volume: the middle rows of the middle slices, of as many volumes as make about a million voxels.
class VolumeTrial {
 public:
  explicit VolumeTrial(const VolumeDescription& volume);
  /// Keeps what belongs to the piece. All slices, in any order, several at once.
  void add(std::uint64_t slice, const std::byte* voxels);
  /// Bytes of the piece's stream under a candidate. `params`: all but the structure; `map` but for prediction and
  /// order.
  std::uint64_t code(VolumeMap map, const VolumeCandidate& candidate, EncoderParams params, int slab) const;

 private:
  VolumeDescription whole_;
  VolumeDescription piece_;
  std::uint64_t first_slice_ = 0;
  std::vector<std::byte> voxels_;
};

/// Throws BadArgument for choices that the volume does not allow.
struct VolumeChoice {
  const VolumeDescription& volume;
  const VolumeAnalysis& analysis;
  const VolumeMap& plain;             ///< without a palette
  const VolumeEncoderParams& wanted;  ///< the effort and what is fixed
  bool palette_is_possible() const;
  bool prediction_is_possible() const;
  bool predictive_is_possible() const;
  void check() const;
};

/// Tries candidates, coding with `params` but for the structure. They are noted where `choice.wanted` says.
VolumeCandidate choose_candidate(const VolumeChoice& choice, const VolumeTrial& trial, const EncoderParams& params);

}  // namespace trivelet
