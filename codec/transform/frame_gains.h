// How quantisation errors of temporal subbands spread over the frames of a GOP, and what is done about its ends.
//
// Near the ends of a closed GOP the mirrored lifting filters have other, larger synthesis gains than inside: the same
// step means up to 3 dB more error in the first and last frames. Two remedies, both exact for every length and filter:
// distortions are weighed by the true gain of every temporal coefficient, and the coefficients the ends depend on are
// multiplied by a gain > 1 before they are quantised (FORMAT.md "Frame gains").
#pragma once

#include <cstdint>
#include <vector>

#include "codec/transform/dwt.h"

namespace trivelet {

/// Per frame position of the interleaved field (dwt.h): the sum of squares of its temporal synthesis vector. Reversible
/// wavelets count as linear.
std::vector<double> temporal_synthesis_energies(int frames, int levels, Wavelet wavelet);
/// Of one position of any axis.
double synthesis_energy(int length, int levels, Wavelet wavelet, int position);

/// Gains (64 = 1) per frame position that even out the error over the frames of a GOP, if all coefficients had the
/// error of their subband's step. Empty when there is nothing to even out.
std::vector<std::uint8_t> even_frame_gains(int frames, int levels, Wavelet wavelet);

}  // namespace trivelet
