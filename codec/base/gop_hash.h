// The content hash of a lossless GOP (FORMAT.md "Gop"), and the check that samples fit the bits that the header
// promises.
#pragma once

#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// XXH64 of all samples: component by component, frame by frame, row by row, little-endian.
std::uint64_t hash_samples(const Gop& gop);

/// Throws BadArgument that names the first sample that does not fit `bits` bits. (Samples of 8 or 16 bits always fit.)
void check_samples(const Gop& gop, int bits);

}  // namespace trivelet
