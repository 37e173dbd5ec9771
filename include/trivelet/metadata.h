// Descriptive data of a video: mastering display, light levels, chapters, key-value pairs (FORMAT.md "Metadata").
// Decoding does not depend on it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trivelet/types.h"

namespace trivelet {

/// The display on which the video was mastered (SMPTE ST 2086).
struct MasteringDisplay {
  std::array<std::array<std::uint16_t, 2>, 4> chromaticity{};  ///< x, y of red, green, blue, white, in 1/50000
  std::uint32_t max_luminance = 0;                             ///< in 1/10000 cd/m^2
  std::uint32_t min_luminance = 0;
  bool operator==(const MasteringDisplay&) const = default;
};

/// Light levels (CTA-861.3) in cd/m^2; 0 = unknown.
struct ContentLight {
  std::uint16_t max_content = 0;        ///< brightest pixel
  std::uint16_t max_frame_average = 0;  ///< highest average of a frame
  bool operator==(const ContentLight&) const = default;
};

/// [begin, end) in units of Metadata::chapter_time_base, on the clock of the frames' times.
struct Chapter {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string title;  ///< UTF-8, at most 4096 bytes
  bool operator==(const Chapter&) const = default;
};

struct Metadata {
  std::optional<MasteringDisplay> mastering_display;
  std::optional<ContentLight> content_light;
  Rational chapter_time_base{1, 1000};
  std::vector<Chapter> chapters;  ///< by `begin`, ascending
  /// UTF-8 keys (lower case, 1 to 4096 bytes) and values (at most 65536 bytes). A key may occur repeatedly. FORMAT.md
  /// "meta" defines some keys.
  std::vector<std::pair<std::string, std::string>> entries;

  bool empty() const { return !mastering_display && !content_light && chapters.empty() && entries.empty(); }
  bool operator==(const Metadata&) const = default;
};

/// Bytes of the metadata in a stream. Throws BadArgument for what the format cannot hold.
std::uint64_t metadata_bytes(const Metadata& metadata);

}  // namespace trivelet
