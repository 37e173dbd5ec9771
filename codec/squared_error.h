// The squared error of samples, by which encoders judge what they made.
#pragma once

#include "trivelet/types.h"

namespace trivelet {

/// The sum over all samples of a component; both views of one shape and sample type.
double squared_error(const VolumeView& a, const VolumeView& b);

}  // namespace trivelet
