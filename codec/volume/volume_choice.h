// Chooses how a volume is coded: the candidates, and trial encodings of them on a piece of the volume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/encoder/encoder_params.h"
#include "codec/volume/volume_estimate.h"
#include "codec/volume/volume_map.h"
#include "trivelet/volume.h"

namespace trivelet {

/// One way to code a volume.
struct VolumeCandidate {
  bool palette = false;
  bool predictive = false;  ///< predictive profile; the members below `mixed` do not apply
  bool labels = false;      ///< predictive: blocks may be coded as labels
  bool ahead = false;       ///< predictive: static contexts, whatever the effort
  bool mixed = false;       ///< predictive: blocks may be coded with mixed contexts
  VolumePrediction prediction = VolumePrediction::kNone;
  VolumeOrder order = VolumeOrder::kFile;
  Wavelet wavelet = Wavelet::kCdf53;
  int z_levels = 0;
  int xy_levels = 4;
  std::string text() const;
};

/// The frames of a GOP: `wanted`, or the default if that is 0.
int slab_frames(const VolumeDescription& volume, const VolumeCandidate& candidate, bool lossless, int wanted);
/// Sets the structure in `params` to the candidate's.
void apply(const VolumeCandidate& candidate, int slab, CodingParams& params);
/// The video whose frames are the slices.
VideoInfo slice_video(const VolumeMap& map, int width, int height, std::uint64_t frames);
/// Whether the volume fits into memory, which coding its slices in another order requires.
bool can_be_held(const VolumeDescription& volume);

/// A piece of a volume: the middle rows of the middle slices, from as many volumes as give about a million voxels.
class VolumeTrial {
 public:
  explicit VolumeTrial(const VolumeDescription& volume);
  /// Keeps the part of a slice that belongs to the piece. Call it for all slices, in any order, from any thread.
  void add(std::uint64_t slice, const std::byte* voxels);
  /// The share of the volume's voxels that the piece has.
  double share() const { return static_cast<double>(piece_.voxels()) / static_cast<double>(whole_.voxels()); }
  /// The share of voxels, of those looked at, that equal the ones to the left, above, and in the slice before.
  double inside_regions() const;
  /// The middle slices of the piece, a quarter of them.
  VolumeTrial quarter() const;
  /// What some rows of the piece take with this map as numbers and as labels, block by block, by an estimate.
  std::vector<SizeByKind> estimate(const VolumeMap& map, int block_size) const;
  /// The bytes of the piece's stream with a candidate, and the piece's share of those of the map. `params` has
  /// everything but the structure, `map` everything but prediction and order.
  std::uint64_t code(VolumeMap map, const VolumeCandidate& candidate, CodingParams params, int slab) const;

 private:
  VolumeDescription whole_;
  VolumeDescription piece_;
  std::uint64_t first_slice_ = 0;
  std::vector<std::byte> voxels_;
};

/// The input of choose_candidate(), which throws BadArgument for choices that the volume does not allow.
struct VolumeChoice {
  const VolumeDescription& volume;
  const VolumeAnalysis& analysis;
  const VolumeMap& plain;              ///< without a palette
  const VolumeEncoderParams& wanted;   ///< the effort and the fixed choices
  std::optional<VolumeMap> palette{};  ///< the map with a palette, if there may be one
  bool palette_is_possible() const;
  bool prediction_is_possible() const;
  bool predictive_is_possible() const;
  void check() const;
};

/// Tries candidates, coding with `params` except for the structure. Reports them to VolumeEncoderParams::on_remark.
VolumeCandidate choose_candidate(const VolumeChoice& choice, const VolumeTrial& trial, const CodingParams& params);

}  // namespace trivelet
