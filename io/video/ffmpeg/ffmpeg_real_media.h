// Where the packets end that FFmpeg reads of a RealMedia file. Internal to io.
#pragma once

#include <cstdint>
#include <optional>

#include "io/source.h"

namespace trivelet::io {

/// Where the second chunk of packets begins in a file whose next bytes are its beginning; null without one. Films of
/// several rates have one for each; the demuxer of FFmpeg knows one, and takes the head of the second for packets.
std::optional<std::uint64_t> second_data_of_real_media(InputBytes& source);

}  // namespace trivelet::io
