// The motion of a GOP, as its temporal transform uses it (FORMAT.md "Motion"): which frames predict which, the vectors
// of every cell, and how both look for a component of another size.
//
// Frames stand at places. Those at odd multiples of 2^l are the high frames of level l; they are predicted from the low
// frames of the level around them. The key frame, which nothing predicts, is the first of a GOP, or the last: then the
// frames begin at place 1, and at place 0 stands, in an open GOP, the key frame of the GOP before. All decisions are
// kept per cell of 8x8 luma samples, the smallest block there is; a larger block is so many cells of the same motion.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/host_device.h"
#include "codec/motion/motion_arithmetic.h"
#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet {

inline constexpr int kMotionCell = 8;      ///< luma samples
inline constexpr int kMotionRoot = 8;      ///< cells along a side of the largest block
inline constexpr int kMotionRegion = 32;   ///< cells along a side of what is coded by itself
inline constexpr int kMotionReach = 8191;  ///< quarter samples, of a vector's components

/// In quarters of a luma sample.
struct MotionVector {
  std::int16_t x = 0;
  std::int16_t y = 0;
  bool operator==(const MotionVector&) const = default;
};

enum class MotionMode : std::uint8_t {
  kPast = 0,   ///< from the first reference
  kOther = 1,  ///< from the second one
  kBoth = 2,   ///< from the mean of both
  kPlain = 3,  ///< from nothing: constants
};

struct MotionCell {
  std::array<MotionVector, 2> vector{};  ///< that of a reference not used is only a guess for other blocks
  std::array<std::int8_t, 4> plain{};    ///< per component, -32..31, of kPlain
  MotionMode mode = MotionMode::kPast;   ///< kPast with a vector of 0: what is taken for motion that is not known
  std::uint8_t log2_cells = 0;           ///< of the side of its block
  TRIVELET_HOST_DEVICE bool uses(int reference) const {
    return mode == MotionMode::kBoth || mode == (reference == 0 ? MotionMode::kPast : MotionMode::kOther);
  }
  /// Whether it predicts the same samples.
  TRIVELET_HOST_DEVICE bool predicts_as(const MotionCell& o) const {
    if (mode != o.mode) return false;
    if (mode == MotionMode::kPlain) return plain == o.plain;
    return (!uses(0) || vector[0] == o.vector[0]) && (!uses(1) || vector[1] == o.vector[1]);
  }
};

/// The place of a GOP's first frame.
TRIVELET_HOST_DEVICE static inline int first_place(GopKey key) { return key == GopKey::kFirst ? 0 : 1; }

/// The places of a GOP's frames, and the levels between them.
struct MotionPlaces {
  int count = 0;  ///< with place 0, whatever stands there
  GopKey key = GopKey::kFirst;
  int levels = 0;  ///< temporal ones, of this GOP

  MotionPlaces() = default;
  MotionPlaces(int frames, GopKey k, int temporal_levels)
      : count(frames + first_place(k)), key(k), levels(temporal_levels) {}
  int frames() const { return count - first_place(key); }
  /// Whether a frame of this GOP, or one to refer to, stands at place t.
  TRIVELET_HOST_DEVICE bool has(int t) const { return t < count && t >= (key == GopKey::kLast ? 1 : 0); }
  /// Whether the frame at the last place is a low one of all levels: then a GOP that follows may be open.
  bool ends_with_key() const { return count > 0 && (count - 1) % (1 << levels) == 0; }
};

/// Where the low frames that predict a high frame stand.
struct MotionReferences {
  int past = 0;
  int other = -1;      ///< -1: there is none
  bool older = false;  ///< `other` is not the frame on the other side but the one beyond `past`

  /// The number of the reference that stands at a place, or -1.
  TRIVELET_HOST_DEVICE int number_of(int place) const { return past == place ? 0 : other == place ? 1 : -1; }
};

/// Of place t of level `level` (0 = finest).
TRIVELET_HOST_DEVICE static inline MotionReferences motion_references(int t, int level, const MotionPlaces& places) {
  const int s = 1 << level;
  if (!places.has(t - s)) return {t + s, places.has(t + 3 * s) ? t + 3 * s : -1, places.has(t + 3 * s)};
  if (places.has(t + s)) return {t - s, t + s, false};
  if (t >= 3 * s && places.has(t - 3 * s)) return {t - s, t - 3 * s, true};
  return {t - s, -1, false};
}

/// The places of the high frames of a level, in order.
inline std::vector<int> motion_frames(int level, const MotionPlaces& places) {
  std::vector<int> out;
  for (int t = 1 << level; t < places.count; t += 2 << level) out.push_back(t);
  return out;
}

/// The cells of a picture.
struct MotionGrid {
  int columns = 0;
  int rows = 0;
  MotionGrid() = default;
  TRIVELET_HOST_DEVICE MotionGrid(int width, int height)
      : columns((width + kMotionCell - 1) / kMotionCell), rows((height + kMotionCell - 1) / kMotionCell) {}
  TRIVELET_HOST_DEVICE std::size_t cells() const {
    return static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows);
  }
  TRIVELET_HOST_DEVICE std::size_t index(int y, int x) const {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(columns) + static_cast<std::size_t>(x);
  }
  TRIVELET_HOST_DEVICE int region_columns() const { return (columns + kMotionRegion - 1) / kMotionRegion; }
  TRIVELET_HOST_DEVICE int region_rows() const { return (rows + kMotionRegion - 1) / kMotionRegion; }
  int regions() const { return region_columns() * region_rows(); }
  bool operator==(const MotionGrid&) const = default;
};

using MotionField = std::vector<MotionCell>;  ///< of a frame, cell by cell

/// All motion of a GOP.
struct GopMotion {
  MotionPlaces places;
  MotionGrid grid;
  std::vector<MotionField> fields;  ///< by place; those of low frames, and of levels left out, are empty
  float step = 0;                   ///< encoder: the quantiser step it was chosen for
  std::vector<MotionField> closed;  ///< encoder: as MotionSearchParams::may_close says, by level; or none
  std::vector<std::vector<std::uint8_t>> sections;  ///< as bytes, from the coarsest level on (motion_field.h)

  GopMotion() = default;
  /// Without any movement, in the levels from `first_level` on.
  GopMotion(const MotionPlaces& p, int width, int height, int first_level = 0)
      : places(p), grid(width, height), fields(static_cast<std::size_t>(p.count)) {
    for (int l = first_level; l < places.levels; ++l)
      for (const int t : motion_frames(l, places)) fields[static_cast<std::size_t>(t)].resize(grid.cells());
  }
};

/// A component beside luma samples: halved so often in each direction (by subsampling and by decoding less).
struct MotionScale {
  int shift_x = 0;
  int shift_y = 0;
};

/// Samples of a cell along an axis.
TRIVELET_HOST_DEVICE static inline int cell_size(int shift) { return shift >= 3 ? 1 : kMotionCell >> shift; }
/// The cell of place i among cells of cell_size() samples: where that is 1 some are passed over.
TRIVELET_HOST_DEVICE static inline int cell_at(int i, int shift, int count) {
  const int at = shift > 3 ? i << (shift - 3) : i;
  return at < 0 ? 0 : at < count ? at : count - 1;
}
/// A vector's component in eighths of the component's samples.
TRIVELET_HOST_DEVICE static inline int eighths(int quarters, int shift) {
  if (shift == 0) return 2 * quarters;
  if (shift == 1) return quarters;
  return (quarters + (1 << (shift - 2))) >> (shift - 1);
}

}  // namespace trivelet
