// What each quality layer of a volume's stream is worth, as its encoder measured it by decoding every cut: the stream's
// `volq` box (FORMAT.md "volq"). Nothing is decoded by it; `info` and `truncate` tell from it what a cut costs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trivelet {

struct VolumeCuts {
  struct Cut {
    double max_error = -1;           ///< largest distance of a voxel from the original, stored units; < 0 = not known
    double mean_squared_error = -1;  ///< likewise
    bool known() const { return max_error >= 0 && mean_squared_error >= 0; }
    bool operator==(const Cut&) const = default;
  };
  double peak = 0;        ///< largest minus least value of the original
  std::vector<Cut> cuts;  ///< by layer: of what this layer and those before it give
  bool operator==(const VolumeCuts&) const = default;
};

/// Always of the same size for so many layers, so that it can be written again over itself.
std::vector<std::uint8_t> serialise(const VolumeCuts& cuts);
/// What cannot be read is not known: then there are no cuts. Never throws.
VolumeCuts parse_volume_cuts(const std::uint8_t* bytes, std::size_t size);

/// PSNR of a known cut in dB, against the peak; infinite when exact.
double psnr_of(const VolumeCuts& cuts, std::size_t layer);

}  // namespace trivelet
