// Moves samples between packed raw pixels and planes.

#include "io/video/packed.h"

#include <cstring>

namespace trivelet::io {

namespace {

constexpr PixelFormat rgb(int bits, bool alpha) { return {.model = ColourModel::kRgb, .bits = bits, .alpha = alpha}; }

constexpr PackedFormat kFormats[] = {
    {"rgb24", rgb(8, false), {2, 0, 1}},     {"bgr24", rgb(8, false), {1, 0, 2}},
    {"rgba", rgb(8, true), {2, 0, 1, 3}},    {"bgra", rgb(8, true), {1, 0, 2, 3}},
    {"argb", rgb(8, true), {3, 2, 0, 1}},    {"abgr", rgb(8, true), {3, 1, 0, 2}},
    {"rgb48", rgb(16, false), {2, 0, 1}},    {"bgr48", rgb(16, false), {1, 0, 2}},
    {"rgba64", rgb(16, true), {2, 0, 1, 3}}, {"bgra64", rgb(16, true), {1, 0, 2, 3}},
};

/// move(in_the_gop, in_the_bytes, size) for each sample of a frame.
template <class PlaneOf, class Bytes, class Move>
void each_sample(int count, const PackedFormat& format, PlaneOf plane_of, int index, Bytes* bytes, Move move) {
  const auto size = static_cast<std::size_t>(format.samples.bytes_per_sample());
  const std::size_t pixel = size * static_cast<std::size_t>(count);
  for (std::size_t place = 0; place < static_cast<std::size_t>(count); ++place) {
    const auto view = plane_of(format.components[place]);
    const auto width = static_cast<std::size_t>(view.shape.width);
    for (int y = 0; y < view.shape.height; ++y) {
      auto* row = view.row(index, y);
      Bytes* at = bytes + static_cast<std::size_t>(y) * width * pixel + place * size;
      for (std::size_t x = 0; x < width; ++x) move(row + x * size, at + x * pixel, size);
    }
  }
}

}  // namespace

const PackedFormat* packed_format(std::string_view name) {
  if (name.ends_with("le")) name.remove_suffix(2);
  for (const PackedFormat& format : kFormats)
    if (format.name == name) return &format;
  return nullptr;
}

void pack_pixels(const Gop& gop, int index, const PackedFormat& format, std::vector<std::byte>& bytes) {
  const VolumeView plane = gop.plane(0);
  bytes.resize(plane.row_bytes() * static_cast<std::size_t>(plane.shape.height * gop.components()));
  each_sample(
      gop.components(), format, [&](int c) { return gop.plane(c); }, index, bytes.data(),
      [](const std::byte* in, std::byte* out, std::size_t size) { std::memcpy(out, in, size); });
}

void unpack_pixels(const std::vector<std::byte>& bytes, const PackedFormat& format, Gop& gop, int index) {
  each_sample(
      gop.components(), format, [&](int c) { return gop.plane(c); }, index, bytes.data(),
      [](std::byte* out, const std::byte* in, std::size_t size) { std::memcpy(out, in, size); });
}

}  // namespace trivelet::io
