// Whether two streams were encoded alike.
#pragma once

#include <string>

#include "codec/base/stream_header.h"

namespace trivelet {

/// The first field in which two headers differ that tells how a stream is encoded, "GOPs of 33 frames and of 17"; empty
/// when there is none. Length, settings, writer and, unless `gop_frames`, the most frames of a GOP do not count.
std::string header_difference(const StreamHeader& a, const StreamHeader& b, bool gop_frames);

}  // namespace trivelet
