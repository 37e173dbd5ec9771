// Reconstructs the picture from the segments that were found: dequantisation and inverse transform.
#pragma once

#include "codec/still/ccsds122/ccsds122_segments.h"

namespace trivelet::ccsds122 {

/// Makes the picture and frees the contents of the segments. A constant fills blocks without a segment. A `device` that
/// is not null does all the work.
Decoded assemble_picture(SegmentList& list, const Limits& limits, const Kernels& kernels, ThreadPool& pool,
                         SegmentDevice* device);

}  // namespace trivelet::ccsds122
