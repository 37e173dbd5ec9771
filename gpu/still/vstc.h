// VSTC's search on a GPU.
#pragma once

#include "codec/still/vstc/vstc_wave.h"

namespace trivelet::gpu {

/// For vstc::encode_waves: searches on GPU `device`. Throws BadArgument without Params::remember, because it computes
/// every cost once, and Unsupported if the device has too little memory.
vstc::MakeWaveSearch make_vstc_search(int device);

}  // namespace trivelet::gpu
