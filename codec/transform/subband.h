// The table of subbands of a decomposition: the place of each in the interleaved field (dwt.h), its size, its norm and
// its three indices (FORMAT.md "Subbands").
//
//   temporal band  b  t+2D: 0 = lowest, 1 = coarsest high … temporal_levels = finest high. Dyadic: always 0.
//   resolution     k  0 = lowest spatial band, 1 … spatial_levels = detail bands, coarse to fine
//                     (level = levels - k + 1).
//   orientation    o  bit 0: high along x, bit 1: high along y, bit 2: high along t (dyadic). 0 only at k = 0.
#pragma once

#include <cstddef>
#include <vector>

#include "codec/transform/dwt.h"
#include "trivelet/types.h"

namespace trivelet {

struct Subband {
  int temporal_band = 0;
  int resolution = 0;
  int orientation = 0;
  Shape shape;           ///< any extent may be 0
  int frame_origin = 0;  ///< sample (f, y, x) of the subband is at frame frame_origin + f * frame_step,
  int frame_step = 1;    ///< row row_origin + y * row_step, column column_origin + x of the field
  int row_origin = 0;
  int row_step = 1;
  int column_origin = 0;
  double norm = 1;  ///< L2 norm of a synthesis basis vector
};

/// All subbands of a volume, ordered by temporal band, resolution, orientation; empty subbands are included. Throws
/// BadArgument for levels outside 0..8 and for a dyadic layout with more temporal than spatial levels.
class SubbandTable {
 public:
  SubbandTable(const Shape& shape, const Decomposition& d, bool reversible);

  int temporal_bands() const { return temporal_bands_; }
  int resolutions() const { return resolutions_; }
  /// Orientations of detail bands are 1..orientations(): 3, or 7 in a dyadic layout that splits time.
  int orientations() const { return orientations_; }
  int frames(int temporal_band) const;  ///< frames of the lowest spatial band of this temporal band
  const Subband& lowest(int temporal_band) const { return at(temporal_band, 0, 0); }
  /// k = 0 with o = 0, or k >= 1 with o in 1..orientations().
  const Subband& at(int temporal_band, int resolution, int orientation) const;
  const std::vector<Subband>& all() const { return bands_; }
  const Decomposition& decomposition() const { return d_; }
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  Decomposition d_;
  int temporal_bands_ = 1;
  int resolutions_ = 1;
  int orientations_ = 3;
  std::vector<Subband> bands_;
};

/// The view of a subband inside a field.
template <class T>
Field<T> subband_view(const Field<T>& field, const Subband& band) {
  Field<T> v;
  v.shape = band.shape;
  v.row_stride = field.row_stride * band.row_step;
  v.frame_stride = field.frame_stride * band.frame_step;
  v.data =
      field.data + band.frame_origin * field.frame_stride + band.row_origin * field.row_stride + band.column_origin;
  return v;
}

}  // namespace trivelet
