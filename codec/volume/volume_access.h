// The sizes of code blocks and slabs that suit what readers do (VolumeEncoderParams::access).
#pragma once

#include "trivelet/volume.h"

namespace trivelet {

/// `params` with a block size, and with slabs where `access` has any; those that were given stay.
VolumeEncoderParams with_blocks_for_access(const VolumeDescription& volume, const VolumeEncoderParams& params);

/// Whether blocks for regions are coded with mixed contexts if these save bytes, whatever the effort but `fast`.
bool mixes_for_regions(const VolumeDescription& volume, const VolumeEncoderParams& params);

}  // namespace trivelet
