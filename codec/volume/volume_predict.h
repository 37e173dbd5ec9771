// Reversible prediction of a volume's samples in place of a wavelet, for pictures with sharp edges, few values or large
// flat parts, which wavelets code badly.
//
// Every sample is replaced by its residual modulo 2^bits, as a signed number. The predictor is the median edge detector
// of LOCO-I (Weinberger, Seroussi, Sapiro 2000; JPEG-LS), with left a, above b and above left c:
//
//   P(a, b, c) = min(a, b) if c >= max(a, b);  max(a, b) if c <= min(a, b);  else a + b - c
//
// The first row uses only a, the first column only b, and the first sample is predicted as 0. Within a slice the
// prediction is P of the samples. Across slices it is the sample of the slice before plus P of the differences to that
// slice, clamped to 0..2^bits - 1; the first slice of a GOP is predicted within the slice. The bit-plane coder follows
// without transform levels.
#pragma once

#include "codec/volume/volume_map.h"
#include "trivelet/types.h"

namespace trivelet {

/// Numbers -> residuals, in all components and frames of the GOP.
void predict(VolumeMap::Prediction prediction, int bits, Gop& gop);
/// Residuals -> numbers of `bits` bits, for any residuals. Frames must begin with the first of the GOP.
void unpredict(VolumeMap::Prediction prediction, int bits, Gop& gop);

}  // namespace trivelet
