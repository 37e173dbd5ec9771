// --region of videos: which part of the pictures is decoded, and a writer that gets this part alone.
#pragma once

#include <memory>
#include <string>

#include "io/video/video_io.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

/// "X,Y,W,H" in pixels of the full size, as a region of pictures of `full` that are reduced `reduce` times. Throws
/// BadArgument for a region that leaves the picture or divides a sample of chroma or of the reduced picture.
PictureRegion parse_picture_region(const std::string& text, const VideoInfo& full, int reduce);

/// `info` of the region alone.
VideoInfo info_of_region(VideoInfo info, const PictureRegion& region);

/// A writer of whole frames that passes their region on to `writer`, which was opened for info_of_region().
std::unique_ptr<io::FrameWriter> make_region_writer(const PictureRegion& region, const VideoInfo& full,
                                                    std::unique_ptr<io::FrameWriter> writer);

}  // namespace trivelet::cli
