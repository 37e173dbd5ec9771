// Compares two stream headers field by field.
#include "codec/edit/header_difference.h"

#include <algorithm>

namespace trivelet {

namespace {

std::string text_of(const Rational& r) { return to_string(r); }
std::string text_of(const std::string& s) { return s; }
template <class T>
std::string text_of(const T& v) {
  return std::to_string(static_cast<long long>(v));
}

// Finds the first field that differs.
class Comparison {
 public:
  template <class T>
  void field(const char* name, const T& a, const T& b) {
    if (found.empty() && !(a == b)) found = std::string(name) + " " + text_of(a) + " and " + text_of(b);
  }
  void same(const char* name, bool is_same) {
    if (found.empty() && !is_same) found = std::string("different ") + name;
  }
  std::string found;
};

}  // namespace

std::string header_difference(const StreamHeader& a, const StreamHeader& b, bool gop_frames) {
  Comparison c;
  const VideoInfo& v = a.video;
  const VideoInfo& w = b.video;
  c.field("width", v.width, w.width);
  c.field("height", v.height, w.height);
  c.field("pixel format", to_string(v.format), to_string(w.format));
  c.same("signs of samples", v.format.is_signed == w.format.is_signed);
  c.field("frame rate", v.frame_rate, w.frame_rate);
  c.field("time base", v.time_base, w.time_base);
  c.field("sample aspect", v.sample_aspect, w.sample_aspect);
  c.same("colour tags", v.colour == w.colour);
  c.field("rotation", v.rotation, w.rotation);
  c.same("mirrors", v.mirrored == w.mirrored);
  c.same("kinds of alpha", v.premultiplied == w.premultiplied);
  c.field("field order", v.field_order, w.field_order);
  c.field("lossless", a.lossless, b.lossless);
  c.field("profile", a.profile, b.profile);
  c.field("mode of the fast profile", a.fast_mode, b.fast_mode);
  c.field("layout", a.layout, b.layout);
  c.field("motion", a.motion, b.motion);
  c.field("contexts known ahead", a.known_ahead, b.known_ahead);
  c.field("moved frames", a.moved, b.moved);
  c.field("blocks of labels", a.labels, b.labels);
  c.field("mixed contexts", a.mixed, b.mixed);
  c.field("predicted keys", a.predicted_keys, b.predicted_keys);
  c.field("temporal levels by GOP", a.levels_by_gop, b.levels_by_gop);
  c.field("temporal wavelet", a.temporal, b.temporal);
  c.field("spatial wavelet", a.spatial, b.spatial);
  c.field("temporal levels", a.temporal_levels, b.temporal_levels);
  c.field("spatial levels", a.spatial_levels, b.spatial_levels);
  if (gop_frames) c.field("frames of a GOP", a.gop_frames, b.gop_frames);
  c.field("block size", a.block_size(), b.block_size());
  c.field("layers", a.layers, b.layers);
  c.field("major version of the format", a.major, b.major);
  c.field("minor version of the format", a.minor, b.minor);
  c.field("optional features", a.optional_features, b.optional_features);
  c.same("fields of a later version", a.room == b.room);
  c.field("reconstruction point", a.centroid, b.centroid);
  c.field("colour transform", a.colour_transform, b.colour_transform);
  c.field("spatial levels left out", a.dropped_spatial, b.dropped_spatial);
  c.field("temporal levels left out", a.dropped_temporal, b.dropped_temporal);
  const bool same = std::equal(a.components.begin(), a.components.end(), b.components.begin(), b.components.end(),
                               [](const ComponentHeader& x, const ComponentHeader& y) {
                                 return x.offset == y.offset && x.weight == y.weight &&
                                        x.spatial_levels == y.spatial_levels && x.scale == y.scale;
                               });
  c.same("weights of components", same);
  return c.found;
}

}  // namespace trivelet
