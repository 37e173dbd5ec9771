// Whether two streams were encoded alike.
#pragma once

#include <string>

#include "codec/base/stream_header.h"

namespace trivelet {

/// Describes the first field that differs and concerns coding, for instance "GOPs of 33 frames and of 17"; empty if
/// there is none. Length, settings, writer and, unless `gop_frames`, the largest number of frames in a GOP are ignored.
std::string header_difference(const StreamHeader& a, const StreamHeader& b, bool gop_frames);

}  // namespace trivelet
