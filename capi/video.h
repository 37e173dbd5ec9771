// Pictures of trivelet.h and of types.h, and samples between them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "capi/device_memory.h"
#include "trivelet/codec.h"
#include "trivelet/trivelet.h"

namespace trivelet::capi {

tvl_video default_video();
/// BadArgument for values that the C++ types cannot hold; what means nothing the encoder refuses.
VideoInfo to_info(const tvl_video* video);
tvl_video to_video(const VideoInfo& info);

/// The planes that the format has, with every stride said. BadArgument for those without data.
tvl_frame explicit_strides(const VideoInfo& info, const tvl_frame& frame);
/// Whether a Gop can borrow these frames: samples without gaps and rows that are equally far apart in all of them.
bool can_borrow(const VideoInfo& info, std::span<const tvl_frame> frames);
/// Views of frames that can be borrowed.
std::vector<FrameView> views_of(const VideoInfo& info, std::span<const tvl_frame> frames);
std::vector<MutableFrameView> mutable_views_of(const VideoInfo& info, std::span<const tvl_frame> frames);

/// A frame of the caller into frame `index` of `gop`, with its time. From a GPU it is there after memory.wait().
void copy_in(const VideoInfo& info, const tvl_frame& from, Gop& gop, int index, const CallerMemory& memory);
/// Frame `index` of `gop` into one of the caller's, of the size of `info`: what begins at x, y of component 0.
/// To a GPU it is there after memory.wait().
void copy_out(const VideoInfo& info, const Gop& gop, int index, int x, int y, tvl_frame& to,
              const CallerMemory& memory);

}  // namespace trivelet::capi
