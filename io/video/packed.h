// Packed layouts of raw pixels, by FFmpeg's names: rgb24, bgra, rgb48 … Frames are planar (types.h), so only the
// readers and writers of raw bytes use these. Internal to io.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "trivelet/types.h"

namespace trivelet::io {

struct PackedFormat {
  std::string_view name;
  PixelFormat samples;
  std::array<std::uint8_t, 4> components{};  ///< in the order in which they lie: 0 is green, 1 blue, 2 red, 3 alpha
};
/// Null if it is not the name of such a layout.
const PackedFormat* packed_format(std::string_view name);

/// The bytes of a frame, 16-bit samples little-endian, and back.
void pack_pixels(const Gop& gop, int index, const PackedFormat& format, std::vector<std::byte>& bytes);
void unpack_pixels(const std::vector<std::byte>& bytes, const PackedFormat& format, Gop& gop, int index);

}  // namespace trivelet::io
