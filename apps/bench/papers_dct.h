// The rest of a codec around the DCT of a whole picture in the way of Ghetia, Gajjar and Gajjar: a quantiser table, the
// zigzag scan and run lengths. For comparison only: the codec `dct` has one step and adaptive coding (DCT.md).
//
// The table is not the paper's, but JPEG's for luminance (ITU-T T.81, table K.1). A whole picture needs one of any
// size: a coefficient takes the entry of its frequency relative to the picture's sides. Entries count sixteenths of the
// step of a QP.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "codec/still/dct/dct_transform.h"

namespace trivelet::papers_dct {

/// Step of coefficient (x, y).
double step_of(int x, int y, int width, int height, int qp, int bits);

/// The first `keep` of the coefficients of a grey picture: for each level that is not 0 a byte with the zeros before it
/// (255: so many, and no level yet) and the level, zigzag and LEB128.
std::vector<std::byte> encode(const still::Image& image, int qp, double keep, dct::Transform& transform);
/// Writes the samples of `image`, whose size and format are those of the picture. Throws BadStream for bytes that
/// encode() does not write.
void decode(std::span<const std::byte> bytes, int qp, dct::Transform& transform, still::Image& image);

}  // namespace trivelet::papers_dct
