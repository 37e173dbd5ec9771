// Volumes whose voxels the host does not read: a device surveys them and makes their samples (gpu/pipeline).
#pragma once

#include <optional>

#include "codec/backend.h"
#include "codec/volume/volume_map.h"

namespace trivelet {

/// Voxels on a device. Used by one thread.
class VolumeSamples {
 public:
  virtual ~VolumeSamples() = default;
  virtual const VolumeDescription& description() const = 0;
  /// Which values occur.
  virtual VolumeAnalysis survey() = 0;
  /// Begins to make the samples of GOPs of `gop_frames` slices of `video`; false if it cannot by this map.
  virtual bool begin(const VolumeMap& map, const VideoInfo& video, int gop_frames) = 0;
  /// The next GOP, for a backend whose encoders read its memory; null at the end. It stays until the next call.
  virtual const Gop* next() = 0;
};

/// Whether a volume can be coded so: little-endian voxels of one channel and 8 or 16 bits, without loss, as
/// wavelets, and nothing that needs voxels on the host (trials, verification).
bool codes_from_samples(const VolumeDescription& volume, const VolumeEncoderParams& params);

/// encode_volume() of what codes_from_samples() allows; the stream is the same. `params.backend` has a hash and encodes
/// the GOPs of `samples`. Empty if `samples` cannot be made by the map of the volume; nothing is written then.
std::optional<VolumeResult> encode_volume(VolumeSamples& samples, const VolumeEncoderParams& params,
                                          const std::vector<std::uint8_t>& envelope, ByteSink& sink, ReadBack* again);

}  // namespace trivelet
