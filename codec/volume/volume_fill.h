// What is coded at the places of marked scalars (volume_mask.h): values that go on smoothly from those around, so that
// neither the wavelet nor the prediction has an edge to code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/volume/volume_mask.h"
#include "trivelet/volume.h"

namespace trivelet {

/// Fills slices one after the other, by halving them and going back (Gortler et al. 1996, "pull-push"): a place takes
/// the mean of the scalars around it at the finest scale that has any, between which it is interpolated.
class SliceFiller {
 public:
  /// `usual`: of a slice without any scalar to go by, if no slice before had one.
  SliceFiller(const VolumeDescription& volume, double usual) : volume_(volume), usual_(usual) {}
  /// Writes over the marked scalars of a slice.
  void fill(std::span<const std::uint8_t> marks, std::byte* slice);

 private:
  struct Level {
    int width = 0, height = 0;
    std::vector<double> values;
    std::vector<std::uint8_t> known;
  };
  void fill_channel(std::size_t channel, std::span<const std::uint8_t> marks, std::byte* slice);

  VolumeDescription volume_;
  double usual_;
  std::vector<Level> levels_;
};

/// The slices of another source, filled.
class FilledSlices final : public SliceSource {
 public:
  FilledSlices(SliceSource& source, VolumeMarker marker, double usual);
  const VolumeDescription& description() const override { return source_.description(); }
  void read(std::byte* slice) override;
  void rewind() override;

 private:
  SliceSource& source_;
  VolumeMarker marker_;
  double usual_;
  SliceFiller filler_;
  std::vector<std::uint8_t> marks_;
};

}  // namespace trivelet
