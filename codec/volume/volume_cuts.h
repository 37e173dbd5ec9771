// The box `volq`: the measured errors of a volume's quality layers (FORMAT.md "volq"). Decoding does not need it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet {

/// The size depends only on the number of layers, so that the box can be overwritten in place.
std::vector<std::uint8_t> serialise(const VolumeCuts& cuts);
/// Empty if the bytes cannot be read. Never throws.
VolumeCuts parse_volume_cuts(const std::uint8_t* bytes, std::size_t size);

}  // namespace trivelet
