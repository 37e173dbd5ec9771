// Plain descriptions of pictures and volumes, shared by io, codec, gpu and apps. No type of another library appears.
//
// Samples are integers of 1..16 bits. Up to 8 bits they are stored in one byte, above in two (native byte order).
// Components are planar. RGB pictures are stored in the order G, B, R (FFmpeg's "gbrp"); alpha is a further plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trivelet/error.h"

namespace trivelet {

/// Multiplies sizes; throws BadArgument instead of wrapping around.
inline std::size_t checked_mul(std::size_t a, std::size_t b) {
  if (b != 0 && a > std::numeric_limits<std::size_t>::max() / b)
    fail(ErrorKind::kBadArgument, "size overflow: " + std::to_string(a) + " x " + std::to_string(b));
  return a * b;
}

struct Rational {
  std::int32_t num = 0;
  std::int32_t den = 1;
  double value() const { return den ? static_cast<double>(num) / den : 0.0; }
  bool operator==(const Rational&) const = default;
};

/// Samples along time (or z), rows and columns.
struct Shape {
  int frames = 0;
  int height = 0;
  int width = 0;
  std::size_t samples() const {
    return checked_mul(checked_mul(static_cast<std::size_t>(frames), static_cast<std::size_t>(height)),
                       static_cast<std::size_t>(width));
  }
  bool operator==(const Shape&) const = default;
};

enum class ColourModel : std::uint8_t { kGrey = 0, kYuv = 1, kRgb = 2 };

/// What the samples of a picture mean and how many planes they fill.
struct PixelFormat {
  ColourModel model = ColourModel::kYuv;
  int bits = 8;            ///< significant bits per sample, 1..16
  int log2_chroma_w = 0;   ///< horizontal chroma subsampling: 0 or 1 (2 for 4:1:1, 4:1:0); 0 unless kYuv
  int log2_chroma_h = 0;   ///< vertical chroma subsampling
  bool alpha = false;      ///< a full-size alpha plane follows the colour planes
  bool is_signed = false;  ///< two's complement samples (volumes; never for video)

  int components() const { return (model == ColourModel::kGrey ? 1 : 3) + (alpha ? 1 : 0); }
  int bytes_per_sample() const { return bits <= 8 ? 1 : 2; }
  bool is_chroma(int component) const { return model == ColourModel::kYuv && (component == 1 || component == 2); }
  int component_width(int width, int component) const {
    const int s = is_chroma(component) ? log2_chroma_w : 0;
    return static_cast<int>((static_cast<std::int64_t>(width) + (std::int64_t{1} << s) - 1) >> s);
  }
  int component_height(int height, int component) const {
    const int s = is_chroma(component) ? log2_chroma_h : 0;
    return static_cast<int>((static_cast<std::int64_t>(height) + (std::int64_t{1} << s) - 1) >> s);
  }
  bool operator==(const PixelFormat&) const = default;
};

/// FFmpeg's name of the little-endian format: "gray", "gray10le", "yuv420p", "yuva444p12le", "gbrp16le", …
std::string to_string(const PixelFormat& format);

/// The inverse of to_string, accepting names with and without "le". Throws BadArgument for anything else.
PixelFormat parse_pixel_format(const std::string& name);

/// Code points of ITU-T H.273 (CICP); 2 means unspecified.
struct ColourTags {
  std::uint8_t primaries = 2;
  std::uint8_t transfer = 2;
  std::uint8_t matrix = 2;
  std::uint8_t range = 0;  ///< 0 unspecified, 1 limited ("tv"), 2 full ("pc")
  std::uint8_t chroma_location =
      0;  ///< 0 unspecified, else FFmpeg's/H.273's value + 1: 1 left, 2 centre, 3 top left, …
  bool operator==(const ColourTags&) const = default;
};

/// Everything about a video (or stack of slices) but its samples.
struct VideoInfo {
  int width = 0;
  int height = 0;
  PixelFormat format;
  Rational frame_rate{25, 1};    ///< 0/1 when unknown (a volume)
  Rational sample_aspect{1, 1};  ///< 0/1 when unknown
  Rational time_base{1, 25};     ///< unit of FrameTime
  ColourTags colour;
  int rotation = 0;              ///< clockwise degrees to turn the picture for display: 0, 90, 180, 270
  std::uint8_t field_order = 0;  ///< 0 unknown or progressive, 1 top field first, 2 bottom field first
  std::uint64_t frames = 0;      ///< 0 when not known beforehand
  int component_width(int c) const { return format.component_width(width, c); }
  int component_height(int c) const { return format.component_height(height, c); }
};

/// Presentation time in units of VideoInfo::time_base. A frame without its own times is frame_number / frame_rate.
struct FrameTime {
  std::int64_t pts = 0;
  std::int64_t duration = 0;
};

/// One component of a run of frames: a strided, non-owning view. `T` is std::byte or const std::byte.
/// Rows are contiguous samples; strides are in bytes and may be any value that keeps samples inside the memory.
template <class T>
struct BasicVolumeView {
  T* data = nullptr;
  Shape shape;
  int bytes_per_sample = 1;
  bool is_signed = false;
  std::ptrdiff_t row_stride = 0;    ///< bytes from a row to the next
  std::ptrdiff_t frame_stride = 0;  ///< bytes from a frame to the next

  T* row(int frame, int y) const { return data + frame * frame_stride + y * row_stride; }
};
using VolumeView = BasicVolumeView<const std::byte>;
using MutableVolumeView = BasicVolumeView<std::byte>;

/// A run of frames with all their components, owning its memory: every plane is frames x height x width, contiguous.
class Gop {
 public:
  Gop() = default;
  /// Allocates room for `capacity` frames of the format; `frames()` starts at 0.
  Gop(const VideoInfo& info, int capacity);

  int frames() const { return frames_; }
  int capacity() const { return capacity_; }
  /// Sets the number of frames that hold data (0..capacity).
  void set_frames(int frames);
  int components() const { return static_cast<int>(planes_.size()); }
  VolumeView plane(int component) const;
  MutableVolumeView plane(int component);
  std::vector<FrameTime>& times() { return times_; }
  const std::vector<FrameTime>& times() const { return times_; }

 private:
  struct Plane {
    int width = 0;
    int height = 0;
    std::vector<std::byte> bytes;
  };
  PixelFormat format_;
  int capacity_ = 0;
  int frames_ = 0;
  std::vector<Plane> planes_;
  std::vector<FrameTime> times_;
};

}  // namespace trivelet
