// The coefficients of a GOP in memory, for the encoder and the decoder on the CPU: one field per component, whose
// subbands are views into it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "codec/backend.h"
#include "codec/cpu/motion_gop.h"
#include "codec/entropy/fast/zerotree.h"
#include "codec/transform/dwt.h"

namespace trivelet {

template <class T>
std::vector<LargeVector<T>>& memory(CoefficientGop& c);
template <>
inline std::vector<LargeVector<float>>& memory<float>(CoefficientGop& c) {
  return c.real;
}
template <>
inline std::vector<LargeVector<std::int32_t>>& memory<std::int32_t>(CoefficientGop& c) {
  return c.integer;
}

template <class T>
Field<T> packed_field(T* data, const Shape& shape) {
  Field<T> f;
  f.data = data;
  f.shape = shape;
  f.row_stride = shape.width;
  f.frame_stride = static_cast<std::ptrdiff_t>(shape.width) * shape.height;
  return f;
}

template <class T>
Field<T> field_of(CoefficientGop& c, int component, const Shape& shape) {
  auto& m = memory<T>(c)[static_cast<std::size_t>(component)];
  if (m.capacity() < shape.samples()) {  // a vector that grows by itself takes twice the memory and copies
    m = {};
    m.reserve(shape.samples() + shape.samples() / static_cast<std::size_t>(shape.frames));  // or a frame before it
  }
  if (m.size() < shape.samples()) m.resize(shape.samples());
  return packed_field(m.data(), shape);
}

inline void set_pointer(SubbandView& v, float* p) { v.real = p; }
inline void set_pointer(SubbandView& v, std::int32_t* p) { v.integer = p; }

// Shapes and decompositions of the components after a reduction.
struct Reduced {
  VideoInfo video;
  int frames = 0;  // of the GOP, without place 0
  const StreamHeader& header;
  Reduction reduction;

  Reduced(const StreamHeader& h, const Reduction& r, int full_frames)
      : video(h.video), header(h), reduction(r.clamped(h.temporal_levels)) {
    frames = low_length(h.component_shape(0, full_frames).frames, reduction.temporal) - (h.key_last ? 1 : 0);
    video.width = low_length(h.video.width, r.spatial);
    video.height = low_length(h.video.height, r.spatial);
  }
  Shape shape(int c) const {
    const Shape full = header.component_shape(c, frames);
    return {full.frames, low_length(full.height, reduction.spatial), low_length(full.width, reduction.spatial)};
  }
  Decomposition decomposition(int c) const {
    Decomposition d = header.decomposition(c);
    d.spatial_levels -= reduction.spatial;
    d.temporal_levels -= reduction.temporal;
    return d;
  }
};

// Allocates the fields of a GOP and lists its subbands.
template <class T>
void lay_out(const Reduced& r, int full_frames, float step, CoefficientGop& out) {
  const auto components = r.header.components.size();
  out.lossless = r.header.lossless;
  out.subbands.clear();
  memory<T>(out).resize(components);
  for (int c = 0; c < static_cast<int>(components); ++c) {
    const Shape shape = r.shape(c);
    const Field<T> field = field_of<T>(out, c, shape);
    const Decomposition d = r.decomposition(c);
    const SubbandTable table(shape, d, r.header.lossless);
    const SubbandTable full(r.header.component_shape(c, full_frames), r.header.decomposition(c), r.header.lossless);
    for (const Subband& s : table.all()) {
      if (s.shape.samples() == 0) continue;
      SubbandView v;
      v.component = c;
      v.temporal_band = s.temporal_band;
      v.level = s.resolution == 0 ? d.spatial_levels : d.spatial_levels - s.resolution + 1;
      v.level += r.reduction.spatial;
      v.orientation = s.orientation;
      v.norm = full.at(s.temporal_band, s.resolution, s.orientation).norm;
      v.step = r.header.lossless
                   ? 1.0f
                   : subband_step(r.header.components[static_cast<std::size_t>(c)], step, v.norm, s.resolution);
      const Field<T> view = subband_view(field, s);
      v.shape = view.shape;
      v.row_stride = view.row_stride;
      v.frame_stride = view.frame_stride;
      set_pointer(v, view.data);
      out.subbands.push_back(v);
    }
  }
}

// The gain that the inverse transform applies at the end. The unscaled 9/7 amplifies low bands by dc_gain once per
// split, on each axis with more than one sample; a decoder that leaves out levels must undo that.
template <class T>
float synthesis_gain(const StreamHeader& header, const Reduction& reduction, int c, int source_frames) {
  if (std::is_integral_v<T>) return 1.0f;
  const Shape full = header.component_shape(c, source_frames);
  const int times = effective_levels(full.frames, std::min<int>(reduction.temporal, header.temporal_levels));
  const int spaces = effective_levels(full.width, reduction.spatial) + effective_levels(full.height, reduction.spatial);
  double amplified = 1;
  for (int i = 0; i < times; ++i) amplified *= dc_gain(header.temporal);
  for (int i = 0; i < spaces; ++i) amplified *= dc_gain(header.spatial);
  return static_cast<float>(1.0 / amplified);
}

// The same decomposition without its temporal levels.
inline Decomposition in_space(Decomposition d) {
  d.temporal_levels = 0;
  return d;
}

// The inverse frame gains of the frames that a temporal reduction keeps.
inline std::vector<float> inverse_gains(const std::vector<std::uint8_t>& frame_gains, int temporal_reduction) {
  std::vector<float> gains;
  for (std::size_t t = 0; t < frame_gains.size(); t += std::size_t{1} << temporal_reduction)
    gains.push_back(static_cast<float>(64.0 / frame_gains[t]));
  return gains;
}

// The headers that describe the GOPs of a stream: one for GOPs without motion, and for GOPs with it one for each number
// of levels and place of the key.
class GopHeaders {
 public:
  explicit GopHeaders(const StreamHeader& header) {
    for (int levels = 0; levels <= header.temporal_levels; ++levels)
      for (const GopKey key : {GopKey::kFirst, GopKey::kLast}) headers_.push_back(header.describe_gop(levels, key));
  }
  const StreamHeader& of(const GopMotion* motion) const { return motion ? of(motion->places) : headers_[0]; }
  const StreamHeader& of(const MotionPlaces& places) const {
    return headers_[2 * static_cast<std::size_t>(places.levels) + (places.key == GopKey::kFirst ? 0 : 1)];
  }

 private:
  std::vector<StreamHeader> headers_;
};

}  // namespace trivelet
