// What each quality layer of a volume's stream is worth as bytes: the stream's `volq` box (FORMAT.md "volq"). Nothing
// is decoded by it; it tells what a cut costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trivelet/volume.h"

namespace trivelet {

/// Always of the same size for so many layers, so that it can be written again over itself.
std::vector<std::uint8_t> serialise(const VolumeCuts& cuts);
/// What cannot be read is not known: then there are no cuts. Never throws.
VolumeCuts parse_volume_cuts(const std::uint8_t* bytes, std::size_t size);

}  // namespace trivelet
