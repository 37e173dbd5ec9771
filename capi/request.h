// What trivelet.h asks of decoders, in C++; null: everything.
#pragma once

#include "trivelet/codec.h"
#include "trivelet/trivelet.h"
#include "trivelet/volume.h"

namespace trivelet::capi {

DecoderParams decoder_params(const tvl_decode_params* params);
VolumeDecoderParams volume_decoder_params(const tvl_volume_decode_params* params);

}  // namespace trivelet::capi
