// The names of colours for people: what FFmpeg calls the code points of ITU-T H.273.
#pragma once

#include <spdlog/fmt/fmt.h>

#include <array>
#include <cstddef>
#include <string>

#include "trivelet/types.h"

namespace trivelet::cli {

/// "bt2020 (9)"; "unspecified" for 2; the number alone where it has no name. `names`: by code point, empty = none.
template <std::size_t kCount>
std::string colour_name(const std::array<const char*, kCount>& names, int code) {
  if (code == 2) return "unspecified";
  const char* const name = static_cast<std::size_t>(code) < kCount ? names[static_cast<std::size_t>(code)] : "";
  return *name != '\0' ? fmt::format("{} ({})", name, code) : std::to_string(code);
}

inline std::string describe_colour(const ColourTags& tags) {
  constexpr std::array kPrimaries = {"",          "bt709", "",       "",         "bt470m",   "bt470bg", "smpte170m",
                                     "smpte240m", "film",  "bt2020", "smpte428", "smpte431", "smpte432"};
  constexpr std::array kTransfers = {
      "",          "bt709",     "",          "",         "bt470m",       "bt470bg", "smpte170m",
      "smpte240m", "linear",    "log100",    "log316",   "iec61966-2-4", "bt1361e", "iec61966-2-1",
      "bt2020-10", "bt2020-12", "smpte2084", "smpte428", "arib-std-b67"};
  constexpr std::array kMatrices = {
      "gbr",       "bt709", "",         "",        "fcc",       "bt470bg",           "smpte170m",
      "smpte240m", "ycgco", "bt2020nc", "bt2020c", "smpte2085", "chroma-derived-nc", "chroma-derived-c",
      "ictcp"};
  constexpr std::array kRanges = {"unspecified", "limited", "full"};
  constexpr std::array kPlaces = {"unspecified", "left", "centre", "top left", "top", "bottom left", "bottom"};
  const auto one_of = [](const auto& names, int code) {
    return static_cast<std::size_t>(code) < names.size() ? std::string(names[static_cast<std::size_t>(code)])
                                                         : std::to_string(code);
  };
  return fmt::format("primaries {}, transfer {}, matrix {}, range {}, chroma location {}",
                     colour_name(kPrimaries, tags.primaries), colour_name(kTransfers, tags.transfer),
                     colour_name(kMatrices, tags.matrix), one_of(kRanges, tags.range),
                     one_of(kPlaces, tags.chroma_location));
}

}  // namespace trivelet::cli
