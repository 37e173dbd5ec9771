// Frames on their way from one process to another, a message each.
#pragma once

#include <cstdint>
#include <vector>

#include "apps/cluster/processes.h"
#include "trivelet/types.h"

namespace trivelet::cli {

/// The samples and times of a frame.
std::vector<std::uint8_t> pack_frame(const Gop& gop, int frame);
/// Puts them into another Gop of the same video.
void unpack_frame(const Processes::Message& m, Gop& gop, int frame);
/// Where memory is shared: all frames of `to` from those of another Gop of the same video.
void copy_frames(const Gop& from, Gop& to);

}  // namespace trivelet::cli
