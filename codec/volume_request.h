// What VolumeDecoder asks of Decoder.
#pragma once

#include "trivelet/volume.h"

namespace trivelet {

/// Reads the header, as VolumeDecoder's constructor does, and throws what that throws for the request.
DecoderParams volume_request(ByteSource& source, const VolumeDecoderParams& params);

}  // namespace trivelet
