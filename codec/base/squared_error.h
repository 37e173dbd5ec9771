// The squared error of samples, with which encoders measure their output.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// The squared error of `n` samples of a row; `like` gives their type.
std::uint64_t squared_row_error(const VolumeView& like, const std::byte* a, const std::byte* b, int n);

/// The sum over all samples of a component; both views of one shape and sample type.
double squared_error(const VolumeView& a, const VolumeView& b);

}  // namespace trivelet
