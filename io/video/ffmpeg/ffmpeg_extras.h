// What FFmpeg's decoders pass over: alpha beside the coded pictures of a film, data that says how pictures are shown,
// and headers of pictures that say what their samples mean. Internal to io.
#pragma once

#include <string>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

/// The decoder for `stream`: `usual`, or one that also reads the alpha that WebM has beside pictures of VP8 and VP9.
const AVCodec* decoder_with_alpha(const AVStream& stream, const AVCodec* usual);

/// What a film has and no stream of ours: the names for a warning. `first`: the first picture, as it was decoded.
std::vector<std::string> extras_left_out(const AVStream& stream, const AVFrame& first);
/// Adds the names for what any picture has, unless they are there.
void add_extras_of(const AVFrame& picture, std::vector<std::string>& names);

/// The format of a picture of four bytes a pixel, by its packet, which is its file, where the decoder may call it by
/// another: Targa without bits of alpha, and DirectDraw with DXGI formats. AV_PIX_FMT_NONE: the decoder is right.
AVPixelFormat format_of_four_bytes(const AVPacket& packet, AVCodecID codec);

}  // namespace trivelet::io
