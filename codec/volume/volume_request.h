// What VolumeDecoder asks of Decoder.
#pragma once

#include <optional>
#include <vector>

#include "codec/volume/volume_map.h"
#include "trivelet/volume.h"

namespace trivelet {

/// Reads the header, as VolumeDecoder's constructor does, and throws what that throws for the request.
DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params);

/// A request for a whole volume whose samples are its numbers, in order and one for each voxel, with nothing else over
/// them: who has a Decoder and the map needs nothing else.
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
/// What VolumeDecoder would do, if it is that; nothing for other requests. Throws as volume_request().
std::optional<PlainVolume> plain_volume(ByteSource& source, const VolumeDecoderParams& params);

}  // namespace trivelet
