#define GL_GLEXT_PROTOTYPES
#include "apps/play/volume_planes.h"

#include <SDL_opengl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace trivelet::play {

namespace {

constexpr int kGap = 2;  // pixels between planes, as in 'view'

}  // namespace

VolumeSlices::VolumeSlices(const Volume& volume, const std::array<int, 3>& whole_size, const std::array<int, 3>& place)
    : volume_(volume), whole_size_(whole_size) {
  for (int axis = 0; axis < 3; ++axis) set_place(axis, place[static_cast<std::size_t>(axis)]);
}

void VolumeSlices::set_place(int axis, int voxel) {
  const auto a = static_cast<std::size_t>(axis);
  place_[a] = std::clamp(voxel, 0, whole_size_[a] - 1);
}

float VolumeSlices::part(int axis) const {
  const auto a = static_cast<std::size_t>(axis);
  return (static_cast<float>(place_[a]) + 0.5F) / static_cast<float>(whole_size_[a]);
}

void VolumeSlices::set_part(int axis, float part) {
  set_place(axis, static_cast<int>(part * static_cast<float>(whole_size_[static_cast<std::size_t>(axis)])));
}

/// The voxel of the decoded volume that corresponds to the place.
int VolumeSlices::cut(int axis) const {
  const auto a = static_cast<std::size_t>(axis);
  return static_cast<int>(std::int64_t{place_[a]} * volume_.size[a] / whole_size_[a]);
}

float VolumeSlices::value_at(const std::array<int, 3>& at) const {
  return volume_.values[(static_cast<std::size_t>(at[2]) * static_cast<std::size_t>(volume_.size[1]) +
                         static_cast<std::size_t>(at[1])) *
                            static_cast<std::size_t>(volume_.size[0]) +
                        static_cast<std::size_t>(at[0])];
}

std::array<int, 2> VolumeSlices::montage_size() const {
  std::array<int, 2> size = {-kGap, 0};
  for (const Plane& plane : kPlanes) {
    size[0] += extent(plane.across) + kGap;
    size[1] = std::max(size[1], extent(plane.down));
  }
  return size;
}

std::array<double, 2> VolumeSlices::range() const {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  for (const Plane& plane : kPlanes)
    for_plane(plane, [&](int, int, float v) {
      if (!std::isfinite(v)) return;
      low = std::min(low, static_cast<double>(v));
      high = std::max(high, static_cast<double>(v));
    });
  if (!std::isfinite(low)) low = 0;
  return {low, low < high ? high : low + 1};
}

PlanePictures::PlanePictures() { glGenTextures(3, textures_.data()); }
PlanePictures::~PlanePictures() { glDeleteTextures(3, textures_.data()); }

void PlanePictures::upload(const VolumeSlices& slices, const std::array<double, 2>& window) {
  for (std::size_t p = 0; p < 3; ++p) {
    const Plane& plane = kPlanes[p];
    const int width = slices.extent(plane.across);
    const int height = slices.extent(plane.down);
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height));
    slices.for_plane(plane, [&](int x, int y, float v) {
      const double part = (static_cast<double>(v) - window[0]) / (window[1] - window[0]);
      const auto grey =
          static_cast<std::uint32_t>(std::isfinite(part) ? std::lround(255 * std::clamp(part, 0.0, 1.0)) : 0);
      pixels[static_cast<std::size_t>(y) * static_cast<std::size_t>(width) + static_cast<std::size_t>(x)] =
          IM_COL32(grey, grey, grey, 255);
    });
    glBindTexture(GL_TEXTURE_2D, textures_[p]);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_LINEAR);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    glTexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    glTexImage2D(GL_TEXTURE_2D, 0, GL_RGBA8, width, height, 0, GL_RGBA, GL_UNSIGNED_BYTE, pixels.data());
  }
}

void PlanePictures::lay_out(const VolumeSlices& slices, float width, float height, bool plain) {
  float left = 0;
  const float column = width / 3;
  for (std::size_t p = 0; p < 3; ++p) {
    const Plane& plane = kPlanes[p];
    const auto w = static_cast<float>(slices.extent(plane.across));
    const auto h = static_cast<float>(slices.extent(plane.down));
    if (plain) {
      cells_[p] = {{left, 0}, {left + w, h}};
      left += w + kGap;
      continue;
    }
    const auto true_w = w * static_cast<float>(slices.spacing(plane.across));
    const auto true_h = h * static_cast<float>(slices.spacing(plane.down));
    const float scale = std::min((column - 8) / true_w, (height - 8) / true_h);
    const float x = column * static_cast<float>(p) + (column - true_w * scale) / 2;
    const float y = (height - true_h * scale) / 2;
    cells_[p] = {{x, y}, {x + true_w * scale, y + true_h * scale}};
  }
}

void PlanePictures::draw(ImDrawList& list, const VolumeSlices& slices, bool crosses) const {
  for (std::size_t p = 0; p < 3; ++p) {
    const Cell& cell = cells_[p];
    list.AddImage(reinterpret_cast<ImTextureID>(static_cast<std::uintptr_t>(textures_[p])), cell.low, cell.high);
    if (crosses) draw_cross(list, slices, p);
  }
}

void PlanePictures::draw_cross(ImDrawList& list, const VolumeSlices& slices, std::size_t p) const {
  constexpr std::array<ImU32, 3> kColours = {IM_COL32(255, 90, 90, 150), IM_COL32(90, 230, 90, 150),
                                             IM_COL32(90, 150, 255, 150)};  // of the planes along x, y, z
  const Plane& plane = kPlanes[p];
  const Cell& cell = cells_[p];
  const float x = cell.low.x + slices.part(plane.across) * (cell.high.x - cell.low.x);
  const float down = plane.upwards ? 1 - slices.part(plane.down) : slices.part(plane.down);
  const float y = cell.low.y + down * (cell.high.y - cell.low.y);
  list.AddLine({x, cell.low.y}, {x, cell.high.y}, kColours[static_cast<std::size_t>(plane.across)]);
  list.AddLine({cell.low.x, y}, {cell.high.x, y}, kColours[static_cast<std::size_t>(plane.down)]);
  list.AddRect(cell.low, cell.high, kColours[static_cast<std::size_t>(plane.along)]);
}

int PlanePictures::plane_at(float x, float y, std::array<float, 2>& place) const {
  for (std::size_t p = 0; p < 3; ++p) {
    const Cell& cell = cells_[p];
    if (x < cell.low.x || x >= cell.high.x || y < cell.low.y || y >= cell.high.y) continue;
    const float down = (y - cell.low.y) / (cell.high.y - cell.low.y);
    place = {(x - cell.low.x) / (cell.high.x - cell.low.x), kPlanes[p].upwards ? 1 - down : down};
    return static_cast<int>(p);
  }
  return -1;
}

}  // namespace trivelet::play
