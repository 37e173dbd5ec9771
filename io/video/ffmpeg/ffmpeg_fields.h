// What containers say of a film beside its packets: tags, flags of tracks, chapters. Internal to io.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

std::string tag_of(const AVDictionary* tags, const char* key);

/// Tags that describe the file they are in, and are not taken into another: brands, programs that wrote it.
bool is_of_container(std::string_view key);
/// The same of a track: who wrote it, how many bytes it has.
bool is_of_coding(std::string_view key);

/// The flags of a track in FFmpeg's words, "default+forced"; and back. Covers are no flag here.
std::string flags_to_text(int disposition);
int flags_of_text(std::string_view text);

/// What `wanted`, which was written, has and the file at `path` has not: its container has no place for it. A sentence, or
/// "" if nothing is lost, or if the file cannot be read again.
std::string lost_fields(const AVFormatContext& wanted, const std::string& path);

}  // namespace trivelet::io
