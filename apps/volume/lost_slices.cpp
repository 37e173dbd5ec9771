// Slices are lost in the order in which they are coded: of a volume whose fourth axis was coded first, each of all
// volumes and then the next one (lost_slices.h).
#include "apps/volume/lost_slices.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cli/log.h"

namespace trivelet::cli {

namespace {

std::string slices_text(std::uint64_t first, std::uint64_t last) {
  return first == last ? fmt::format("slice {}", first) : fmt::format("slices {} to {}", first, last);
}

/// Slices of volumes; `all` are selected.
std::string volumes_text(std::uint64_t first, std::uint64_t last, std::uint64_t all) {
  if (last - first + 1 == all) return "all volumes";
  return first == last ? fmt::format("volume {}", first) : fmt::format("volumes {} to {}", first, last);
}

/// Of a volume whose fourth axis was coded first: the rest of a slice's volumes, slices of all volumes, and the first
/// volumes of a slice.
std::string place_across_volumes(const LostSlices& lost, std::uint64_t first_volume, std::uint64_t volumes) {
  const std::uint64_t last_volume = first_volume + volumes - 1;
  if (lost.first_slice == lost.last_slice)
    return slices_text(lost.first_slice, lost.last_slice) + " of " +
           volumes_text(lost.first_volume, lost.last_volume, volumes);
  std::vector<std::string> parts;
  std::uint64_t first = lost.first_slice;
  std::uint64_t end = lost.last_slice + 1;
  if (lost.first_volume > first_volume) {
    parts.push_back(slices_text(first, first) + " of " + volumes_text(lost.first_volume, last_volume, volumes));
    ++first;
  }
  if (lost.last_volume < last_volume) --end;
  if (first < end) parts.push_back(slices_text(first, end - 1) + " of all volumes");
  if (lost.last_volume < last_volume)
    parts.push_back(slices_text(end, end) + " of " + volumes_text(first_volume, lost.last_volume, volumes));
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// Where the slices lie in the volume.
std::string place_of(const LostSlices& lost, const VolumeDecoder& decoder) {
  const VolumeDescription& output = decoder.output();
  if (output.volumes == 1) return fmt::format("--slices {}:{}", lost.first_slice, lost.last_slice + 1);
  if (decoder.info().order == VolumeOrder::kFourthAxis) return place_across_volumes(lost, 0, output.volumes);
  const auto text = [](std::uint64_t slice, std::uint64_t volume) {
    return fmt::format("slice {} of volume {}", slice, volume);
  };
  const std::string first = text(lost.first_slice, lost.first_volume);
  return lost.delivered == 1 ? first : first + " to " + text(lost.last_slice, lost.last_volume);
}

}  // namespace

void report_damage(const VolumeDecoder& decoder, const std::string& input) {
  constexpr std::size_t kMostNamed = 100;
  const std::vector<LostSlices>& lost = decoder.lost();
  std::uint64_t slices = 0;
  for (const LostSlices& l : lost) slices += l.delivered;
  for (std::size_t i = 0; i < std::min(kMostNamed, lost.size()); ++i)
    log::warn("'{}': damaged, 0 instead: {} ({})", input, place_of(lost[i], decoder), lost[i].why);
  if (lost.size() > kMostNamed) {
    std::uint64_t others = 0;
    for (std::size_t i = kMostNamed; i < lost.size(); ++i) others += lost[i].delivered;
    log::warn("'{}': damaged, 0 instead: {} in {} more, up to {}", input, count_of(others, "slice"),
              count_of(lost.size() - kMostNamed, "place"), place_of(lost.back(), decoder));
  }
  const std::string& header = decoder.stream().header_damage;
  if (!header.empty()) log::warn("'{}': {}", input, header);
  if (slices > 0)
    fail(ErrorKind::kBadStream, fmt::format("'{}': {} of {} are damaged and hold 0; the output has the others", input,
                                            slices, count_of(decoder.output().all_slices(), "slice")));
  if (!header.empty()) fail(ErrorKind::kBadStream, fmt::format("'{}' is damaged; all slices are intact", input));
}

}  // namespace trivelet::cli
