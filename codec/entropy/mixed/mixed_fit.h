// Weights of a mixed codeword, fitted to a block by least squares.
#pragma once

#include "codec/predict/prediction_history.h"

namespace trivelet::mixed {

/// The weights of frame 0 (`first`), or of all frames behind it. `history` has all numbers of the block.
prediction::Weights fit_weights(prediction::History& history, int frames, bool first, int taps);

}  // namespace trivelet::mixed
