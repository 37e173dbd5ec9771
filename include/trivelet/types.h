// Basic descriptions of pictures and videos, shared by io, codec, gpu and apps. No third-party type appears.
//
// Samples are integers of 1..16 bits, stored in one byte up to 8 bits, else in two (native byte order). Components are
// planar. RGB is stored as G, B, R (FFmpeg's "gbrp"). Alpha is an additional plane.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trivelet/error.h"

namespace trivelet {

/// The product of two sizes; throws BadArgument on overflow.
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

/// For instance "30000/1001".
inline std::string to_string(const Rational& r) { return std::to_string(r.num) + "/" + std::to_string(r.den); }

/// Number of samples along time (or z), rows and columns.
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

/// The colour model, sample format and planes of a picture.
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

/// Everything about a video (or stack of slices) except its samples.
struct VideoInfo {
  int width = 0;
  int height = 0;
  PixelFormat format;
  Rational frame_rate{25, 1};    ///< 0/1 when unknown (a volume)
  Rational sample_aspect{1, 1};  ///< 0/1 when unknown
  Rational time_base{1, 25};     ///< unit of FrameTime
  ColourTags colour;
  int rotation = 0;              ///< clockwise degrees to turn the picture for display: 0, 90, 180, 270
  bool mirrored = false;         ///< mirror left and right for display, before the rotation
  bool premultiplied = false;    ///< colours are premultiplied by alpha; else straight
  std::uint8_t field_order = 0;  ///< 0 unknown or progressive, 1 top field first, 2 bottom field first
  std::uint64_t frames = 0;      ///< 0 if unknown
  int component_width(int c) const { return format.component_width(width, c); }
  int component_height(int c) const { return format.component_height(height, c); }
};

/// Presentation time in units of VideoInfo::time_base. A frame without its own times is frame_number / frame_rate.
struct FrameTime {
  std::int64_t pts = 0;
  std::int64_t duration = 0;
};

/// One frame in the caller's memory: where the rows of every component begin. `T` is std::byte or const std::byte. Rows
/// are contiguous samples, aligned for their type. Strides may be negative, for pictures stored bottom-up.
template <class T>
struct BasicFrameView {
  struct Plane {
    T* data = nullptr;
    std::ptrdiff_t row_stride = 0;  ///< distance of rows in bytes
  };
  std::array<Plane, 4> planes{};  ///< in the order of the components; surplus ones are ignored
  FrameTime time{};
};
using FrameView = BasicFrameView<const std::byte>;
using MutableFrameView = BasicFrameView<std::byte>;

/// One component of a run of frames: a strided, non-owning view. `T` is std::byte or const std::byte. Rows are
/// contiguous samples; strides are in bytes and may be negative.
template <class T>
struct BasicVolumeView {
  T* data = nullptr;
  Shape shape;
  int bytes_per_sample = 1;
  bool is_signed = false;
  std::ptrdiff_t row_stride = 0;    ///< distance of rows in bytes
  std::ptrdiff_t frame_stride = 0;  ///< distance of frames in bytes, if `frames` is null
  T* const* frames = nullptr;       ///< first row of each frame, for frames at unequal distances; else null

  T* row(int frame, int y) const { return (frames ? frames[frame] : data + frame * frame_stride) + y * row_stride; }
  /// Bytes of the samples of a row.
  std::size_t row_bytes() const {
    return static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(bytes_per_sample);
  }
};
using VolumeView = BasicVolumeView<const std::byte>;
using MutableVolumeView = BasicVolumeView<std::byte>;

/// Allocates memory for samples, for instance page-locked memory. Throws Unsupported when none is left.
using SampleAllocator = std::function<std::shared_ptr<std::byte>(std::size_t bytes)>;

/// A run of frames with all components. It either owns its memory (each plane has frames x height x width samples
/// without gaps) or borrows frames of the caller. A copy always owns its memory.
class Gop {
 public:
  Gop() = default;
  /// Allocates `capacity` frames of the format; `frames()` is 0 at first. Without an allocator the memory is on the
  /// heap and zeroed.
  Gop(const VideoInfo& info, int capacity, const SampleAllocator& allocate = nullptr);
  /// Borrows frames of the caller for reading or (second form) writing. No sample is copied; the frames must outlive
  /// the Gop. All frames have the same row strides. Writing to a read-only Gop throws BadArgument.
  Gop(const VideoInfo& info, std::span<const FrameView> frames);
  Gop(const VideoInfo& info, std::span<const MutableFrameView> frames);
  Gop(const Gop& other);
  Gop& operator=(const Gop& other) { return *this = Gop(other); }
  Gop(Gop&&) = default;
  Gop& operator=(Gop&&) = default;

  int frames() const { return frames_; }
  int capacity() const { return capacity_; }
  /// Sets the number of frames that hold data (0..capacity).
  void set_frames(int frames);
  int components() const { return static_cast<int>(planes_.size()); }
  /// Frees the samples, if the memory is the Gop's own. plane() for writing allocates that of its component on the heap
  /// again, for which one thread at a time may call it, and until then there is none to read.
  void release();
  VolumeView plane(int component) const;
  MutableVolumeView plane(int component);
  /// One frame of a plane for writing, 0 <= frame < capacity(). Of samples that were released, memory for this frame
  /// alone is allocated, by `allocate` or else on the heap and zeroed; plane() then allocates that of the other frames
  /// one by one. One thread at a time may call it.
  MutableVolumeView plane_frame(int component, int frame, const SampleAllocator& allocate = nullptr);
  /// Whether the first frame begins a scene; if so, nothing is predicted from the GOP before.
  bool begins_scene() const { return begins_scene_; }
  void set_begins_scene(bool begins) { begins_scene_ = begins; }
  std::vector<FrameTime>& times() { return times_; }
  const std::vector<FrameTime>& times() const { return times_; }

 private:
  struct Plane {
    int width = 0;
    int height = 0;
    std::ptrdiff_t row_stride = 0;
    std::shared_ptr<std::byte> memory;  // not null: the Gop owns its memory
    // When `memory` is null: the Gop's own frames, by plane_frame(), or else null.
    std::vector<std::shared_ptr<std::byte>> own;
    std::vector<std::byte*> frames;  // when `memory` is null: first rows of borrowed frames or of `own`
  };
  template <class T>
  void borrow(const VideoInfo& info, std::span<const BasicFrameView<T>> frames);
  MutableVolumeView view(int component) const;

  PixelFormat format_;
  bool read_only_ = false;
  int capacity_ = 0;
  int frames_ = 0;
  bool begins_scene_ = false;
  std::vector<Plane> planes_;
  std::vector<FrameTime> times_;
};

}  // namespace trivelet
