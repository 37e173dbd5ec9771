// Translates a VolumeDecoder request into one for Decoder.
#pragma once

#include <optional>
#include <vector>

#include "codec/volume/volume_map.h"
#include "trivelet/volume.h"

namespace trivelet {

/// Reads the header and throws as VolumeDecoder's constructor does.
DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params);

/// A request that a Decoder and the map can answer alone: a whole volume of numbers, in order, one number a voxel,
/// without marked values.
struct PlainVolume {
  struct PlainGop {
    int frames = 0;
    std::optional<std::uint64_t> hash;  ///< GopHeader::hash
  };
  DecoderParams decoding;
  VolumeMap map;
  VolumeDescription output;
  std::vector<PlainGop> gops;
};
/// The request if it is plain; empty for others. Throws as volume_request().
std::optional<PlainVolume> plain_volume(ByteSource& source, const VolumeDecoderParams& params);

}  // namespace trivelet
