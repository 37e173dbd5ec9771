// Pixel formats by FFmpeg's names, and the memory of GOPs: frames that a GOP owns, or frames borrowed from a caller.
#include "trivelet/types.h"
#include "codec/base/limits.h"

#include <array>
#include <cstring>
#include <utility>

#include "trivelet/large_memory.h"

namespace trivelet {

namespace {

struct Subsampling {
  const char* name;
  int w;
  int h;
};
constexpr std::array<Subsampling, 6> kSubsamplings = {
    {{"444", 0, 0}, {"422", 1, 0}, {"420", 1, 1}, {"440", 0, 1}, {"411", 2, 0}, {"410", 2, 2}}};

std::string bits_suffix(int bits) { return bits == 8 ? "" : std::to_string(bits) + "le"; }

}  // namespace

std::string to_string(const PixelFormat& f) {
  switch (f.model) {
    case ColourModel::kGrey:
      return (f.alpha ? "ya" : "gray") + bits_suffix(f.bits) + (f.alpha && f.bits == 8 ? "8" : "");
    case ColourModel::kRgb: return (f.alpha ? "gbrap" : "gbrp") + bits_suffix(f.bits);
    case ColourModel::kYuv: break;
  }
  for (const auto& s : kSubsamplings)
    if (s.w == f.log2_chroma_w && s.h == f.log2_chroma_h)
      return std::string(f.alpha ? "yuva" : "yuv") + s.name + "p" + bits_suffix(f.bits);
  return "yuv?";
}

PixelFormat parse_pixel_format(const std::string& name) {
  PixelFormat f;
  std::string rest = name;
  auto starts = [&](const char* prefix) {
    const std::string p = prefix;
    if (rest.compare(0, p.size(), p) != 0) return false;
    rest.erase(0, p.size());
    return true;
  };
  bool known = true;
  if (starts("gray") || starts("grey")) {
    f.model = ColourModel::kGrey;
  } else if (starts("ya")) {
    f.model = ColourModel::kGrey;
    f.alpha = true;
  } else if (starts("gbrap")) {
    f.model = ColourModel::kRgb;
    f.alpha = true;
  } else if (starts("gbrp")) {
    f.model = ColourModel::kRgb;
  } else if (starts("yuva") || starts("yuv")) {
    f.model = ColourModel::kYuv;
    f.alpha = name.compare(0, 4, "yuva") == 0;
    known = false;
    for (const auto& s : kSubsamplings)
      if (starts((std::string(s.name) + "p").c_str())) {
        f.log2_chroma_w = s.w;
        f.log2_chroma_h = s.h;
        known = true;
        break;
      }
  } else {
    known = false;
  }
  if (rest.size() > 2 && rest.compare(rest.size() - 2, 2, "le") == 0) rest.erase(rest.size() - 2);
  if (known && !rest.empty()) {
    known = rest.size() <= 2 && rest.find_first_not_of("0123456789") == std::string::npos;
    if (known) f.bits = std::stoi(rest);
  }
  require(known && f.bits >= 1 && f.bits <= 16, ErrorKind::kBadArgument,
          "unknown pixel format '" + name +
              "'; known: gray, yuv420p, yuv422p, yuv444p, yuv440p, yuv411p, yuv410p, gbrp, and with alpha ya8, yuva…, "
              "gbrap; a number of bits may follow (yuv420p10, gray12)");
  return f;
}

Gop::Gop(const VideoInfo& info, int capacity, const SampleAllocator& allocate)
    : format_(info.format), capacity_(capacity) {
  require(capacity >= 1, ErrorKind::kBadArgument,
          "a GOP needs room for 1 frame or more, not " + std::to_string(capacity));
  planes_.resize(static_cast<std::size_t>(format_.components()));
  for (int c = 0; c < format_.components(); ++c) {
    Plane& p = planes_[static_cast<std::size_t>(c)];
    p.width = info.component_width(c);
    p.height = info.component_height(c);
    p.row_stride = static_cast<std::ptrdiff_t>(p.width) * format_.bytes_per_sample();
    const Shape shape{capacity, p.height, p.width};
    const std::size_t bytes = checked_mul(shape.samples(), static_cast<std::size_t>(format_.bytes_per_sample()));
    p.memory = allocate ? allocate(bytes) : allocate_zeros(bytes);
  }
  times_.resize(static_cast<std::size_t>(capacity));
}

template <class T>
void Gop::borrow(const VideoInfo& info, std::span<const BasicFrameView<T>> frames) {
  require(!frames.empty(), ErrorKind::kBadArgument, "a GOP of no frames");
  format_ = info.format;
  capacity_ = frames_ = static_cast<int>(frames.size());
  planes_.resize(static_cast<std::size_t>(format_.components()));
  const auto sample = static_cast<std::size_t>(format_.bytes_per_sample());
  for (std::size_t c = 0; c < planes_.size(); ++c) {
    Plane& p = planes_[c];
    p.width = info.component_width(static_cast<int>(c));
    p.height = info.component_height(static_cast<int>(c));
    p.row_stride = frames[0].planes[c].row_stride;
    const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(p.width) * static_cast<std::ptrdiff_t>(sample);
    require(p.height == 1 || p.row_stride >= row || p.row_stride <= -row, ErrorKind::kBadArgument,
            "rows of component " + std::to_string(c) + " are " + count_of(p.row_stride, "byte") + " apart and hold " +
                std::to_string(row));
    for (const BasicFrameView<T>& frame : frames) {
      const auto& plane = frame.planes[c];
      require(plane.data != nullptr, ErrorKind::kBadArgument, "a frame without component " + std::to_string(c));
      require(plane.row_stride == p.row_stride, ErrorKind::kBadArgument,
              "frames of one GOP with rows " + std::to_string(p.row_stride) + " and " +
                  count_of(plane.row_stride, "byte") + " apart in component " + std::to_string(c));
      require((reinterpret_cast<std::uintptr_t>(plane.data) | static_cast<std::size_t>(plane.row_stride)) % sample == 0,
              ErrorKind::kBadArgument, "samples of two bytes at odd addresses");
      p.frames.push_back(const_cast<std::byte*>(plane.data));
    }
  }
  for (const BasicFrameView<T>& frame : frames) times_.push_back(frame.time);
}

Gop::Gop(const VideoInfo& info, std::span<const FrameView> frames) : read_only_(true) { borrow(info, frames); }
Gop::Gop(const VideoInfo& info, std::span<const MutableFrameView> frames) { borrow(info, frames); }

Gop::Gop(const Gop& other)
    : format_(other.format_),
      capacity_(other.capacity_),
      frames_(other.frames_),
      begins_scene_(other.begins_scene_),
      times_(other.times_) {
  for (const Plane& from : other.planes_) {
    Plane p;
    p.width = from.width;
    p.height = from.height;
    const auto row = static_cast<std::size_t>(p.width) * static_cast<std::size_t>(format_.bytes_per_sample());
    p.row_stride = static_cast<std::ptrdiff_t>(row);
    const std::size_t frame = row * static_cast<std::size_t>(p.height);
    p.memory = allocate_zeros(frame * static_cast<std::size_t>(capacity_));
    if (from.memory) std::memcpy(p.memory.get(), from.memory.get(), frame * static_cast<std::size_t>(capacity_));
    std::byte* to = p.memory.get();
    for (const std::byte* first : from.frames)
      for (int y = 0; y < p.height; ++y, to += row)
        if (first) std::memcpy(to, first + y * from.row_stride, row);
    planes_.push_back(std::move(p));
  }
}

void Gop::release() {
  for (Plane& p : planes_) {
    p.memory.reset();
    if (!p.own.empty()) p.frames.clear();
    p.own.clear();
  }
}

void Gop::set_frames(int frames) {
  require(frames >= 0 && frames <= capacity_, ErrorKind::kBadArgument,
          "a GOP of " + count_of(capacity_, "frame") + " cannot hold " + std::to_string(frames));
  frames_ = frames;
}

MutableVolumeView Gop::view(int component) const {
  const Plane& p = planes_.at(static_cast<std::size_t>(component));
  MutableVolumeView v;
  v.data = p.memory ? p.memory.get() : p.frames.empty() ? nullptr : p.frames.front();
  v.shape = {frames_, p.height, p.width};
  v.bytes_per_sample = format_.bytes_per_sample();
  v.is_signed = format_.is_signed;
  v.row_stride = p.row_stride;
  v.frame_stride = p.row_stride * p.height;
  v.frames = p.frames.empty() ? nullptr : p.frames.data();
  return v;
}

MutableVolumeView Gop::plane(int component) {
  require(!read_only_, ErrorKind::kBadArgument, "frames that are only to be read cannot be written");
  Plane& p = planes_.at(static_cast<std::size_t>(component));
  for (int frame = 0; !p.own.empty() && frame < frames_; ++frame) (void)plane_frame(component, frame);
  if (!p.memory && p.frames.empty())  // released
    p.memory = allocate_zeros(static_cast<std::size_t>(p.row_stride) * static_cast<std::size_t>(p.height) *
                              static_cast<std::size_t>(capacity_));
  return view(component);
}

MutableVolumeView Gop::plane_frame(int component, int frame, const SampleAllocator& allocate) {
  require(!read_only_, ErrorKind::kBadArgument, "frames that are only to be read cannot be written");
  require(frame >= 0 && frame < capacity_, ErrorKind::kBadArgument, "frame " + std::to_string(frame) + " of a GOP");
  Plane& p = planes_.at(static_cast<std::size_t>(component));
  const auto i = static_cast<std::size_t>(frame);
  if (!p.memory && p.frames.empty()) {  // released
    p.own.resize(static_cast<std::size_t>(capacity_));
    p.frames.resize(p.own.size());
  }
  if (!p.own.empty() && !p.own[i]) {
    const std::size_t bytes = static_cast<std::size_t>(p.row_stride) * static_cast<std::size_t>(p.height);
    p.own[i] = allocate ? allocate(bytes) : allocate_zeros(bytes);
    p.frames[i] = p.own[i].get();
  }
  MutableVolumeView one = view(component);
  one.data = one.row(frame, 0);
  one.frames = nullptr;
  one.shape.frames = 1;
  return one;
}

VolumeView Gop::plane(int component) const {
  const MutableVolumeView v = view(component);
  return {v.data, v.shape, v.bytes_per_sample, v.is_signed, v.row_stride, v.frame_stride, v.frames};
}

}  // namespace trivelet
