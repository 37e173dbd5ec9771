// The picture of the segments that were found: values of coefficients from their bit planes, and the inverse transform.
#pragma once

#include "codec/still/ccsds122/ccsds122_segments.h"

namespace trivelet::ccsds122 {

/// Makes the picture and releases the contents of the segments. A constant fills what no segment describes. Unless
/// `device` is null, it does all of it.
Decoded assemble_picture(SegmentList& list, const Limits& limits, const Kernels& kernels, ThreadPool& pool,
                         SegmentDevice* device);

}  // namespace trivelet::ccsds122
