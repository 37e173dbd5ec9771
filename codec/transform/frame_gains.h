// The spread of quantisation errors of temporal subbands over the frames of a GOP, and its correction at the ends.
//
// Near the ends of a closed GOP the mirrored lifting filters have larger synthesis gains than inside: the same step
// means up to 3 dB more error in the first and last frames. Two corrections are exact for every length and filter.
// Distortions are weighted by the true gain of every temporal coefficient. Coefficients that the end frames depend on
// are multiplied by a gain > 1 before quantisation (FORMAT.md "Frame gains").
#pragma once

#include <cstdint>
#include <vector>

#include "codec/transform/dwt.h"

namespace trivelet {

/// Sum of squares of the temporal synthesis vector of each frame position of the interleaved field (dwt.h). Reversible
/// wavelets count as linear.
std::vector<double> temporal_synthesis_energies(int frames, int levels, Wavelet wavelet);
/// The same for one position of any axis.
double synthesis_energy(int length, int levels, Wavelet wavelet, int position);

/// Gains per frame position (64 means 1) that give all frames of a GOP the same error when every coefficient has the
/// error of its subband's step. Empty when no gain is worth it.
std::vector<std::uint8_t> even_frame_gains(int frames, int levels, Wavelet wavelet);

}  // namespace trivelet
