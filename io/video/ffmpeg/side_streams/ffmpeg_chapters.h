// Chapters and tags of containers. Internal to io.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

bool holds_chapters(std::string_view muxer);
/// Appended to those of `output`, empty.
AVChapter* new_chapter(AVFormatContext& output);

/// Copies chapters and tags of a file into the metadata of a stream, as far as that can hold them. Returns what it has
/// no place for: "xmp (70000 bytes)". The second function does the reverse, if the output has none from elsewhere; it
/// must be called before the header of the output is written.
std::vector<std::string> read_chapters_and_tags(const AVFormatContext& input, int video, Metadata& metadata);
void add_chapters_and_tags(AVFormatContext& output, const Metadata& metadata);

}  // namespace trivelet::io
