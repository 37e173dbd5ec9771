// Fills the places of marked scalars (volume_mask.h) with smooth values, so that neither wavelet nor prediction has an
// edge to code there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/volume/volume_mask.h"
#include "trivelet/volume.h"

namespace trivelet {

/// Fills slices one after the other by pull-push interpolation (Gortler et al. 1996): a place gets the mean of the
/// scalars around it at the finest scale that has any, interpolated between scales.
class SliceFiller {
 public:
  /// `usual`: the value for slices without any unmarked scalar, until a slice has one.
  SliceFiller(const VolumeDescription& volume, double usual) : volume_(volume), usual_(usual) {}
  /// Overwrites the marked scalars of a slice.
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

/// Another source's slices with marked scalars filled.
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
