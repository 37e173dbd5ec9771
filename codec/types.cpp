#include "trivelet/types.h"

#include <array>

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

Gop::Gop(const VideoInfo& info, int capacity) : format_(info.format), capacity_(capacity) {
  require(capacity >= 1, ErrorKind::kBadArgument,
          "a GOP needs room for 1 frame or more, not " + std::to_string(capacity));
  planes_.resize(static_cast<std::size_t>(format_.components()));
  for (int c = 0; c < format_.components(); ++c) {
    Plane& p = planes_[static_cast<std::size_t>(c)];
    p.width = info.component_width(c);
    p.height = info.component_height(c);
    const Shape shape{capacity, p.height, p.width};
    p.bytes.resize(checked_mul(shape.samples(), static_cast<std::size_t>(format_.bytes_per_sample())));
  }
  times_.resize(static_cast<std::size_t>(capacity));
}

void Gop::set_frames(int frames) {
  require(frames >= 0 && frames <= capacity_, ErrorKind::kBadArgument,
          "a GOP of " + std::to_string(capacity_) + " frames cannot hold " + std::to_string(frames));
  frames_ = frames;
}

MutableVolumeView Gop::plane(int component) {
  Plane& p = planes_.at(static_cast<std::size_t>(component));
  MutableVolumeView v;
  v.data = p.bytes.data();
  v.shape = {frames_, p.height, p.width};
  v.bytes_per_sample = format_.bytes_per_sample();
  v.is_signed = format_.is_signed;
  v.row_stride = static_cast<std::ptrdiff_t>(p.width) * v.bytes_per_sample;
  v.frame_stride = v.row_stride * p.height;
  return v;
}

VolumeView Gop::plane(int component) const {
  const MutableVolumeView v = const_cast<Gop*>(this)->plane(component);
  return {v.data, v.shape, v.bytes_per_sample, v.is_signed, v.row_stride, v.frame_stride};
}

}  // namespace trivelet
