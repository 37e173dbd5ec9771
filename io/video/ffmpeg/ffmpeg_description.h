// What a video's stream and its first picture say of it. Internal to io.
#pragma once

#include "io/video/ffmpeg/ffmpeg_decoder.h"

namespace trivelet::io {

/// The rate, shape, colours and direction of the pictures; not their pixel format. `samples`: the layout of the first
/// picture's samples. `own_rate`: given instead of the file's times; 0: none.
VideoInfo describe_video(const PictureDecoder& decoder, const AVFrame& first, AVPixelFormat samples,
                         const Rational& own_rate);

/// Where the container states other colours than the pictures: "matrix bt709 for bt470bg"; "" if nowhere.
std::string other_colours(const ContainerColours& container, const AVFrame& first);

/// Seconds that the container says the video lasts; 0 if it does not say.
double seconds_of(const PictureDecoder& decoder);

}  // namespace trivelet::io
