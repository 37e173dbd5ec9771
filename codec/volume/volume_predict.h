// Reversible prediction of a volume's samples in place of a wavelet: for pictures with sharp edges, few values or large
// flat parts, of which wavelets make more bits than there were.
//
// Every sample is replaced by its difference from what its neighbours say, modulo 2^bits, as a signed number. The
// predictor is the median edge detector of LOCO-I (Weinberger, Seroussi, Sapiro 2000; JPEG-LS), with left a, above b
// and above left c:
//
//   P(a, b, c) = min(a, b) if c >= max(a, b);  max(a, b) if c <= min(a, b);  else a + b - c
//
// The first row knows only a, the first column only b, the first sample 0. In the slice: P of the samples. Across
// slices: the sample of the slice before plus P of the differences to that slice, limited to 0..2^bits - 1; the first
// slice of a GOP as in the slice. The bit-plane coder with its contexts does the rest (no transform levels).
#pragma once

#include "codec/volume/volume_map.h"
#include "trivelet/types.h"

namespace trivelet {

/// Numbers -> differences, in all components and frames of the GOP.
void predict(VolumeMap::Prediction prediction, int bits, Gop& gop);
/// Differences -> numbers. Any differences give numbers of `bits` bits. Frames from the first of the GOP on.
void unpredict(VolumeMap::Prediction prediction, int bits, Gop& gop);

}  // namespace trivelet
