// Pictures in HEIF files (AVIF, HEIC): what they have that FFmpeg's demuxer leaves out. Internal to io.
#pragma once

#include <optional>
#include <string>

namespace trivelet::io {

/// Of a picture, not of a sequence, in a HEIF file. Source: ISO/IEC 23008-12.
struct HeifPicture {
  bool in_tiles = false;  ///< the picture is put together from others
  std::string left_out;   ///< "transparency, rotation", or ""
};

/// Nothing for other files, and for those that cannot be read twice.
std::optional<HeifPicture> heif_picture(const std::string& path);

}  // namespace trivelet::io
