// The sequential 3D wavelet transform of the papers (Galiano, Lopez-Granado, Malumbres, Migallon, J. Supercomputing
// 2013): separable convolution with the 9/7 filters, axis by axis. For comparison only: the baseline of the GPU's
// convolutions (papers_convolution.cuh) and of the codec's own transform (codec/transform/dwt.h).
#pragma once

#include <vector>

#include "trivelet/types.h"

namespace trivelet::papers_dwt3d {

enum class Order {
  kLines,  ///< line by line along every axis, as in the papers
  kRows,   ///< columns and time with whole rows as the inner loop, which compilers vectorise
};

/// Transforms `data` (frames x height x width, contiguous) in place: CDF 9/7 without scaling, in Mallat's layout.
/// `scratch` is made as large. Throws BadArgument for extents that 2^levels does not divide.
void transform(std::vector<float>& data, std::vector<float>& scratch, const Shape& shape, int levels, Order order);

}  // namespace trivelet::papers_dwt3d
