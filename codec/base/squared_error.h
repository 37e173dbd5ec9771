// The squared error of decoded samples, from which encoders compute the quality that they report.
#pragma once

#include <cstddef>
#include <cstdint>

#include "trivelet/types.h"

namespace trivelet {

/// The squared error of `n` samples of a row; `like` gives their type.
std::uint64_t squared_row_error(const VolumeView& like, const std::byte* a, const std::byte* b, int n);

/// The sum over all samples of a component. Both views have the same shape and sample type.
double squared_error(const VolumeView& a, const VolumeView& b);

}  // namespace trivelet
