// Frames that are sent from one process to another, one message each.
#pragma once

#include "apps/cluster/messages.h"
#include "trivelet/types.h"

namespace trivelet::cli {

/// Appends the samples and times of a frame.
void pack_frame(const Gop& gop, int frame, MessageWriter& message);
/// Puts them into another Gop of the same video.
void unpack_frame(MessageReader& message, Gop& gop, int frame);
/// All frames of a GOP, a kFrame each.
void send_frames(Processes& processes, int to, Channel channel, const Gop& gop);
/// With shared memory: copies a frame of another Gop of the same video into frame `at` of `to`.
void copy_frame(const Gop& from, int frame, Gop& to, int at);
/// All frames of `to`.
void copy_frames(const Gop& from, Gop& to);

}  // namespace trivelet::cli
