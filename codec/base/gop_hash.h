// The content hash of a lossless GOP, and the check that samples fit the bits the header promises.
#pragma once

#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// XXH64 of all samples: component by component, frame by frame, row by row, little-endian.
std::uint64_t hash_samples(const Gop& gop);

/// Throws BadArgument naming the first sample that does not fit `bits` bits. (Full bytes and words always fit.)
void check_samples(const Gop& gop, int bits);

}  // namespace trivelet
