// The motion of a GOP as its temporal transform uses it (FORMAT.md "Motion"): the references of every frame, the
// vectors of every cell, and both scaled to a component of another size.
//
// Frames have places. Those at odd multiples of 2^l are the high frames of level l, predicted from the low frames of
// the level around them. The key frame, which is not predicted, is the first of a GOP or the last. If it is the last,
// the frames begin at place 1, and place 0 of an open GOP is the key frame of the GOP before. Decisions are stored per
// cell of 8x8 luma samples, the smallest block; a larger block is several cells with the same motion.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "codec/base/host_device.h"
#include "codec/motion/motion_arithmetic.h"
#include "trivelet/parameters.h"
#include "trivelet/types.h"

namespace trivelet {

inline constexpr int kMotionCell = 8;      ///< luma samples
inline constexpr int kMotionRoot = 8;      ///< cells along a side of the largest block
inline constexpr int kMotionRegion = 32;   ///< cells along a side of the area that is coded by itself
inline constexpr int kMotionReach = 8191;  ///< limit of a vector's components, in quarter samples

/// In quarters of a luma sample.
struct MotionVector {
  std::int16_t x = 0;
  std::int16_t y = 0;
  bool operator==(const MotionVector&) const = default;
};

enum class MotionMode : std::uint8_t {
  kPast = 0,   ///< from the first reference
  kOther = 1,  ///< from the second reference
  kBoth = 2,   ///< from the mean of both
  kPlain = 3,  ///< no prediction: constants
};

struct MotionCell {
  std::array<MotionVector, 2> vector{};  ///< the vector of an unused reference is only a guess for other blocks
  std::array<std::int8_t, 4> plain{};    ///< kPlain: constants per component, -32..31
  MotionMode mode = MotionMode::kPast;   ///< kPast with vector 0 stands for unknown motion
  std::uint8_t log2_cells = 0;           ///< log2 of the side of its block in cells
  TRIVELET_HOST_DEVICE bool uses(int reference) const {
    return mode == MotionMode::kBoth || mode == (reference == 0 ? MotionMode::kPast : MotionMode::kOther);
  }
  /// Whether both predict the same samples.
  TRIVELET_HOST_DEVICE bool predicts_as(const MotionCell& o) const {
    if (mode != o.mode) return false;
    if (mode == MotionMode::kPlain) return plain == o.plain;
    return (!uses(0) || vector[0] == o.vector[0]) && (!uses(1) || vector[1] == o.vector[1]);
  }
  /// Equal for two cells where predicts_as() is true, and only there.
  std::uint64_t prediction_key() const {
    const auto bits = [](MotionVector v) {
      return std::uint32_t{static_cast<std::uint16_t>(v.y)} << 16 | static_cast<std::uint16_t>(v.x);
    };
    constexpr std::uint32_t kNoVector = 0x80008000u;  // its components are beyond kMotionReach
    std::uint32_t low = bits(vector[mode == MotionMode::kOther ? 1 : 0]);
    if (mode == MotionMode::kPlain) std::memcpy(&low, plain.data(), sizeof low);
    const std::uint32_t high =
        mode == MotionMode::kBoth ? bits(vector[1]) : kNoVector | static_cast<std::uint32_t>(mode);
    return std::uint64_t{high} << 32 | low;
  }
};

/// The place of a GOP's first frame.
TRIVELET_HOST_DEVICE static inline int first_place(GopKey key) { return key == GopKey::kFirst ? 0 : 1; }

/// The places of a GOP's frames, and its temporal levels.
struct MotionPlaces {
  int count = 0;  ///< including place 0, whatever is there
  GopKey key = GopKey::kFirst;
  int levels = 0;  ///< temporal levels of this GOP

  MotionPlaces() = default;
  MotionPlaces(int frames, GopKey k, int temporal_levels)
      : count(frames + first_place(k)), key(k), levels(temporal_levels) {}
  int frames() const { return count - first_place(key); }
  /// The number of frames of the lowest temporal band.
  int keys() const { return key == GopKey::kFirst ? ((count - 1) >> levels) + 1 : (count - 1) >> levels; }
  /// The place of one of them.
  int key_place(int number) const { return (number + first_place(key)) << levels; }
  /// Whether place t has a frame of this GOP or a reference.
  TRIVELET_HOST_DEVICE bool has(int t) const { return t < count && t >= (key == GopKey::kLast ? 1 : 0); }
  /// Whether the frame at the last place is a low frame of all levels. The next GOP may then be open.
  bool ends_with_key() const { return count > 0 && (count - 1) % (1 << levels) == 0; }
};

/// The places of the low frames that predict a high frame.
struct MotionReferences {
  int past = 0;
  int other = -1;      ///< -1: none
  bool older = false;  ///< `other` is on the same side as `past`, beyond it

  /// The number of the reference at a place, or -1.
  TRIVELET_HOST_DEVICE int number_of(int place) const { return past == place ? 0 : other == place ? 1 : -1; }
};

/// The references of place t at level `level` (0 = finest). The level above all others is that of predicted keys.
TRIVELET_HOST_DEVICE static inline MotionReferences motion_references(int t, int level, const MotionPlaces& places) {
  const int s = 1 << level;
  if (level >= places.levels) return {t - s, -1, false};
  if (!places.has(t - s)) return {t + s, places.has(t + 3 * s) ? t + 3 * s : -1, places.has(t + 3 * s)};
  if (places.has(t + s)) return {t - s, t + s, false};
  if (t >= 3 * s && places.has(t - 3 * s)) return {t - s, t - 3 * s, true};
  return {t - s, -1, false};
}

/// The places of the high frames of a level, in order. At the level above all others these are the keys that can be
/// predicted, each from the one before.
inline std::vector<int> motion_frames(int level, const MotionPlaces& places) {
  std::vector<int> out;
  const bool keys = level >= places.levels;
  const int s = 1 << level;
  for (int t = keys && !places.has(0) ? 2 * s : s; t < places.count; t += keys ? s : 2 * s) out.push_back(t);
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
  std::vector<MotionField> fields;  ///< by place; empty for keys that are not predicted and levels that are left out
  bool predicts_keys = false;       ///< fields and sections have the level above all others, too
  float step = 0;                   ///< encoder: quantiser step of the search
  bool keys_in_place = false;       ///< encoder: see MotionSearchParams::keys_in_place
  std::vector<MotionField> closed;  ///< encoder: see MotionSearchParams::may_close; by level, or empty
  std::vector<std::vector<std::uint8_t>> sections;  ///< as bytes, coarsest level first (motion_field.h)

  GopMotion() = default;
  /// Zero motion in the levels from `first_level` on.
  GopMotion(const MotionPlaces& p, int width, int height, int first_level = 0)
      : places(p), grid(width, height), fields(static_cast<std::size_t>(p.count)) {
    for (int l = first_level; l < places.levels; ++l)
      for (const int t : motion_frames(l, places)) fields[static_cast<std::size_t>(t)].resize(grid.cells());
  }
  /// Takes another shape and keeps what memory it can, in which cells may have any motion. No keys are predicted.
  void reshape(const MotionPlaces& p, int width, int height, int first_level) {
    places = p;
    grid = {width, height};
    predicts_keys = false;
    fields.resize(static_cast<std::size_t>(p.count));
    std::vector<bool> used(fields.size());
    for (int l = first_level; l < places.levels; ++l)
      for (const int t : motion_frames(l, places)) used[static_cast<std::size_t>(t)] = true;
    for (std::size_t t = 0; t < fields.size(); ++t) fields[t].resize(used[t] ? grid.cells() : 0);
  }
  /// Adds zero motion of the keys that can be predicted, if there are any.
  void predict_keys() {
    const std::vector<int> keys = motion_frames(places.levels, places);
    for (const int t : keys) fields[static_cast<std::size_t>(t)].resize(grid.cells());
    predicts_keys = !keys.empty();
  }
  /// Removes the motion of keys.
  void leave_keys() {
    if (!predicts_keys) return;
    for (const int t : motion_frames(places.levels, places)) fields[static_cast<std::size_t>(t)].clear();
    if (!sections.empty()) sections.erase(sections.begin());
    predicts_keys = false;
  }
};

/// Size of a component relative to luma: the number of halvings per axis, by subsampling and by reduced decoding.
struct MotionScale {
  int shift_x = 0;
  int shift_y = 0;
};

/// Samples of a cell along an axis.
TRIVELET_HOST_DEVICE static inline int cell_size(int shift) { return shift >= 3 ? 1 : kMotionCell >> shift; }
/// Index of the cell for position i in cells of cell_size() samples. With size 1 some cells are skipped.
TRIVELET_HOST_DEVICE static inline int cell_at(int i, int shift, int count) {
  const int at = shift > 3 ? i << (shift - 3) : i;
  return at < 0 ? 0 : at < count ? at : count - 1;
}
/// A component of a vector in eighths of the component's samples.
TRIVELET_HOST_DEVICE static inline int eighths(int quarters, int shift) {
  if (shift == 0) return 2 * quarters;
  if (shift == 1) return quarters;
  return (quarters + (1 << (shift - 2))) >> (shift - 1);
}

}  // namespace trivelet
