// Origin, stride, size and norm of every subband, axis by axis.
#include "codec/transform/subband.h"

#include <string>

namespace trivelet {

namespace {

// One axis after `level` splits: the low lattice, or the high samples of the last split.
struct Axis {
  int origin = 0;
  int step = 1;
  int length = 0;
  double norm = 1;
};

// Interleaved axis (time, rows): low samples every 2^level, high ones half-way between.
Axis interleaved(int length, int level, bool high, Wavelet w, bool reversible) {
  Axis a;
  if (high) {
    a.origin = 1 << (level - 1);
    a.step = 1 << level;
    a.length = low_length(length, level - 1) / 2;
    a.norm = synthesis_norm(w, reversible, true, level);
  } else {
    a.step = 1 << level;
    a.length = low_length(length, level);
    a.norm = synthesis_norm(w, reversible, false, effective_levels(length, level));
  }
  return a;
}

// Columns: [low | high] inside the row of the level above.
Axis separated(int length, int level, bool high, Wavelet w, bool reversible) {
  Axis a = interleaved(length, level, high, w, reversible);
  a.origin = high ? low_length(length, level) : 0;
  a.step = 1;
  return a;
}

}  // namespace

SubbandTable::SubbandTable(const Shape& shape, const Decomposition& d, bool reversible) : shape_(shape), d_(d) {
  require(d.temporal_levels >= 0 && d.temporal_levels <= 8 && d.spatial_levels >= 0 && d.spatial_levels <= 8,
          ErrorKind::kBadArgument,
          "levels must be 0..8, not " + std::to_string(d.temporal_levels) + "x" + std::to_string(d.spatial_levels));
  const bool dyadic = d.layout == Layout::kDyadic;
  require(!dyadic || d.temporal_levels <= d.spatial_levels, ErrorKind::kBadArgument,
          "a dyadic layout needs at least as many spatial as temporal levels, not " +
              std::to_string(d.temporal_levels) + "x" + std::to_string(d.spatial_levels));
  temporal_bands_ = dyadic ? 1 : d.temporal_levels + 1;
  resolutions_ = d.spatial_levels + 1;
  orientations_ = dyadic && d.temporal_levels > 0 ? 7 : 3;

  auto add = [&](int b, int k, int o) {
    const int level = k == 0 ? d.spatial_levels : d.spatial_levels - k + 1;
    Axis t;
    if (!dyadic) {
      t = interleaved(shape.frames, b == 0 ? d.temporal_levels : d.temporal_levels - b + 1, b > 0, d.temporal,
                      reversible);
      if (d.key_last && b == 0) {
        t.origin += t.step;
        t.length -= 1;
      }
    } else if (o & 4) {
      if (level <= d.temporal_levels)
        t = interleaved(shape.frames, level, true, d.temporal, reversible);
      else
        t.length = 0;  // no such band at the levels that do not split time
    } else {
      t = interleaved(shape.frames, level < d.temporal_levels ? level : d.temporal_levels, false, d.temporal,
                      reversible);
    }
    const Axis y = interleaved(shape.height, level, (o & 2) != 0, d.spatial, reversible);
    const Axis x = separated(shape.width, level, (o & 1) != 0, d.spatial, reversible);
    Subband s;
    s.temporal_band = b;
    s.resolution = k;
    s.orientation = o;
    s.shape = {t.length, y.length, x.length};
    s.frame_origin = t.origin;
    s.frame_step = t.step;
    s.row_origin = y.origin;
    s.row_step = y.step;
    s.column_origin = x.origin;
    s.norm = t.norm * y.norm * x.norm;
    bands_.push_back(s);
  };
  for (int b = 0; b < temporal_bands_; ++b) {
    add(b, 0, 0);
    for (int k = 1; k < resolutions_; ++k)
      for (int o = 1; o <= orientations_; ++o) add(b, k, o);
  }
}

const Subband& SubbandTable::at(int b, int k, int o) const {
  const int per_band = 1 + (resolutions_ - 1) * orientations_;
  return bands_[static_cast<std::size_t>(b * per_band + (k == 0 ? 0 : 1 + (k - 1) * orientations_ + (o - 1)))];
}

int SubbandTable::frames(int b) const { return at(b, 0, 0).shape.frames; }

}  // namespace trivelet
