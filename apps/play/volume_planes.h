// Three planes of a volume that meet in a voxel, in the layout of 'view --montage': along z, y and x. The vertical axis
// of the last two is z, drawn upwards.
#pragma once

#include <imgui.h>

#include <array>

#include "apps/play/player.h"

namespace trivelet::play {

/// The axes of a plane: across it, up or down, along.
struct Plane {
  int across;
  int down;
  int along;
  bool upwards;  ///< the second axis is drawn so
};
inline constexpr std::array<Plane, 3> kPlanes = {Plane{0, 1, 2, false}, Plane{0, 2, 1, true}, Plane{1, 2, 0, true}};

/// The values of a decoded volume in the three planes. Places are voxels of the whole volume, of which the decoded one
/// may be a reduction.
class VolumeSlices {
 public:
  VolumeSlices(const Volume& volume, const std::array<int, 3>& whole_size, const std::array<int, 3>& place);

  const std::array<int, 3>& place() const { return place_; }
  /// Limited to the volume.
  void set_place(int axis, int voxel);
  /// The place along an axis as a part of the extent, 0..1.
  float part(int axis) const;
  void set_part(int axis, float part);

  int extent(int axis) const { return volume_.size[static_cast<std::size_t>(axis)]; }  ///< of the decoded volume
  double spacing(int axis) const { return volume_.spacing[static_cast<std::size_t>(axis)]; }
  /// The value where the planes meet.
  float value() const { return value_at({cut(0), cut(1), cut(2)}); }
  /// The size of the planes side by side, one pixel a voxel.
  std::array<int, 2> montage_size() const;
  /// The least and largest value of the planes, as 'view' takes them for black and white.
  std::array<double, 2> range() const;
  /// f(column, row, value) for all of a plane.
  template <class F>
  void for_plane(const Plane& plane, const F& f) const {
    std::array<int, 3> at = {};
    at[static_cast<std::size_t>(plane.along)] = cut(plane.along);
    const int rows = extent(plane.down);
    for (int y = 0; y < rows; ++y) {
      at[static_cast<std::size_t>(plane.down)] = plane.upwards ? rows - 1 - y : y;
      for (int x = 0; x < extent(plane.across); ++x) {
        at[static_cast<std::size_t>(plane.across)] = x;
        f(x, y, value_at(at));
      }
    }
  }

 private:
  int cut(int axis) const;
  float value_at(const std::array<int, 3>& at) const;

  const Volume& volume_;
  const std::array<int, 3> whole_size_;
  std::array<int, 3> place_;
};

/// The planes as pictures in the window. Needs a graphics context.
class PlanePictures {
 public:
  PlanePictures();
  ~PlanePictures();
  PlanePictures(const PlanePictures&) = delete;
  PlanePictures& operator=(const PlanePictures&) = delete;

  /// Copies the planes to the graphics card; values from black to white are those of `window`.
  void upload(const VolumeSlices& slices, const std::array<double, 2>& window);
  /// Where the planes are drawn. plain: a pixel a voxel; otherwise as large as they can be in their true proportions.
  void lay_out(const VolumeSlices& slices, float width, float height, bool plain);
  /// `crosses`: with lines where the other planes cut.
  void draw(ImDrawList& list, const VolumeSlices& slices, bool crosses) const;
  /// The plane under a point of the window, and the place in it, 0..1; -1: none.
  int plane_at(float x, float y, std::array<float, 2>& place) const;

 private:
  struct Cell {
    ImVec2 low;
    ImVec2 high;
  };
  void draw_cross(ImDrawList& list, const VolumeSlices& slices, std::size_t plane) const;

  std::array<unsigned, 3> textures_{};
  std::array<Cell, 3> cells_{};
};

}  // namespace trivelet::play
