// What a stream says about its video beside the pictures: FORMAT.md "Metadata". Nothing is decoded by it.
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

/// CTA-861.3; in cd/m^2, 0 = unknown.
struct ContentLight {
  std::uint16_t max_content = 0;        ///< of a pixel
  std::uint16_t max_frame_average = 0;  ///< of a frame's average
  bool operator==(const ContentLight&) const = default;
};

/// From `begin` up to `end`, in units of Metadata::chapter_time_base, on the same clock as the times of frames.
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
  std::vector<Chapter> chapters;  ///< in order of their begin
  /// Keys, in lower case and not empty, of at most 4096 bytes, and values of at most 65536, in UTF-8. FORMAT.md "meta"
  /// says what some keys mean. A key may occur more than once.
  std::vector<std::pair<std::string, std::string>> entries;

  bool empty() const { return !mastering_display && !content_light && chapters.empty() && entries.empty(); }
  bool operator==(const Metadata&) const = default;
};

/// Bytes that metadata takes in a stream. Throws BadArgument for what the format cannot hold.
std::uint64_t metadata_bytes(const Metadata& metadata);

}  // namespace trivelet
