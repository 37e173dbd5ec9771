// Geometry and order of the passes; the kernels are in dwt2d.cu, dwt3d.cu and dwt_joint.cu.
#include "gpu/transform/dwt.h"

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>

#include "gpu/transform/dwt.cuh"
#include "gpu/transform/dwt_joint.cuh"

namespace trivelet::gpu {
namespace {

int align(int n) { return (n + CoefficientLayout::kAlign - 1) / CoefficientLayout::kAlign * CoefficientLayout::kAlign; }

template <class T>
void check_axis(const char* axis, int levels, Wavelet w) {
  constexpr Wavelet kOther = std::is_floating_point_v<T> ? Wavelet::kRev137 : Wavelet::kCdf97;
  require(levels >= 0 && levels <= 8, ErrorKind::kBadArgument,
          std::string(axis) + " levels must be 0 to 8, not " + std::to_string(levels));
  require(levels == 0 || (static_cast<int>(w) <= 3 && w != kOther), ErrorKind::kBadArgument,
          std::string(axis) + " wavelet " + std::to_string(static_cast<int>(w)) +
              " has no transform of this coefficient type");
}

}  // namespace

// -------------------------------------------------------------------------------------------------------------- layout

CoefficientLayout::CoefficientLayout(const Shape& shape, const Decomposition& d) : shape_(shape), d_(d) {
  require(shape.frames >= 1 && shape.height >= 1 && shape.width >= 1, ErrorKind::kBadArgument,
          "cannot transform a volume of " + std::to_string(shape.frames) + "x" + std::to_string(shape.height) + "x" +
              std::to_string(shape.width));
  require(d.spatial_levels >= 0 && d.spatial_levels <= 8, ErrorKind::kBadArgument,
          "spatial levels must be 0 to 8, not " + std::to_string(d.spatial_levels));
  require(d.layout == Layout::kT2d || d.temporal_levels <= d.spatial_levels, ErrorKind::kBadArgument,
          "the dyadic layout needs at least as many spatial levels (" + std::to_string(d.spatial_levels) +
              ") as temporal levels (" + std::to_string(d.temporal_levels) + ")");
  // From the lowest band: the low band of the last level, then the high bands of ever finer levels beside it.
  int end = align(low_columns(d.spatial_levels));
  for (int l = d.spatial_levels; l >= 1; --l) {
    high_column_[static_cast<std::size_t>(l)] = end;
    end = align(end + low_columns(l - 1) / 2);
  }
  high_column_[0] = end;
}

std::size_t CoefficientLayout::frame_stride() const {
  return checked_mul(static_cast<std::size_t>(pitch()), static_cast<std::size_t>(shape_.height));
}

std::size_t CoefficientLayout::size() const {
  return checked_mul(frame_stride(), static_cast<std::size_t>(shape_.frames));
}

CoefficientLayout::Band CoefficientLayout::band(const Subband& s) const {
  const int level = level_of(s);
  const int column = s.orientation & 1 ? high_column(level) : 0;
  const int row = s.orientation & 2 ? low_rows(level) : 0;
  Band b;
  b.shape = s.shape;
  b.row_stride = static_cast<std::size_t>(pitch());
  b.frame_stride = frame_stride() * static_cast<std::size_t>(s.frame_step);
  b.origin = frame_stride() * static_cast<std::size_t>(s.frame_origin) + b.row_stride * static_cast<std::size_t>(row) +
             static_cast<std::size_t>(column);
  return b;
}

std::size_t CoefficientLayout::steps() const {
  return static_cast<std::size_t>(std::max(d_.spatial_levels, 1)) * static_cast<std::size_t>(shape_.frames) * 4;
}

std::vector<float> CoefficientLayout::spread(const SubbandTable& table,
                                             const std::vector<float>& steps_by_subband) const {
  require(table.all().size() == steps_by_subband.size() && table.shape() == shape_, ErrorKind::kBadArgument,
          "steps of another table of subbands");
  std::vector<float> result(steps(), 1.0f);
  for (std::size_t i = 0; i < steps_by_subband.size(); ++i) {
    const Subband& s = table.all()[i];
    const int level = std::max(level_of(s), 1);
    for (int f = 0; f < s.shape.frames; ++f)
      result[(static_cast<std::size_t>(level - 1) * static_cast<std::size_t>(shape_.frames) +
              static_cast<std::size_t>(s.frame_origin + f * s.frame_step)) *
                 4 +
             static_cast<std::size_t>(s.orientation & 3)] = steps_by_subband[i];
  }
  return result;
}

// ----------------------------------------------------------------------------------------------------------- transform

template <class T>
DeviceTransform<T>::DeviceTransform(const Shape& shape, const Decomposition& d, JointLevels joint)
    : layout_(shape, d), joint_(joint) {
  check_axis<T>("temporal", d.temporal_levels, d.temporal);
  check_axis<T>("spatial", d.spatial_levels, d.spatial);
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&shared_bytes_, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
        "cudaDeviceGetAttribute");
  // Low bands of levels 1, 3, ... share memory, and so do those of 2, 4, ...: only neighbours are alive at the same
  // time.
  low_.resize(static_cast<std::size_t>(std::max(d.spatial_levels, 1)));
  for (std::size_t l = 0; l < low_.size(); ++l) {
    Plane& p = low_[l];
    const int level = static_cast<int>(l);
    p.pitch = align(layout_.low_columns(level));
    p.frame_stride = checked_mul(static_cast<std::size_t>(p.pitch), static_cast<std::size_t>(layout_.low_rows(level)));
    if (l < 3) p.memory = DeviceBuffer<T>(checked_mul(p.frame_stride, static_cast<std::size_t>(frames(level))));
    p.data = l < 3 ? p.memory.data() : low_[l - 2].data;
  }
}

template <class T>
std::size_t DeviceTransform<T>::scratch_bytes() const {
  std::size_t n = 0;
  for (const Plane& p : low_) n += p.memory.size() * sizeof(T);
  return n;
}

template <class T>
int DeviceTransform<T>::frames(int level) const {
  const Decomposition& d = layout_.decomposition();
  const int n = layout_.shape().frames;
  return d.layout == Layout::kT2d ? n : low_length(n, std::min(level, d.temporal_levels));
}

template <class T>
bool DeviceTransform<T>::splits_time(int level) const {
  const Decomposition& d = layout_.decomposition();
  return d.layout == Layout::kDyadic && level < d.temporal_levels && frames(level) > 1;
}

template <class T>
int DeviceTransform<T>::time_levels(int level) const {
  const Decomposition& d = layout_.decomposition();
  return d.layout == Layout::kDyadic ? (splits_time(level) ? 1 : 0) : level == 0 ? d.temporal_levels : 0;
}

/// At level 0 the samples are the plane, if they are values in rows that begin at multiples of 16 bytes.
template <class T>
template <class Byte>
bool DeviceTransform<T>::may_be_joint(int level, const BasicDeviceSamples<Byte>& samples,
                                      const float* frame_gains) const {
  const Decomposition& d = layout_.decomposition();
  if (!splits_time(level) || d.temporal != Wavelet::kCdf97 || d.spatial != Wavelet::kCdf97) return false;
  return level > 0 || (samples.format == SampleFormat::kValues && !frame_gains && samples.row_stride % 16 == 0 &&
                       samples.frame_stride % 16 == 0 && samples.row_stride < std::numeric_limits<std::int32_t>::max());
}

namespace {

template <class T, class Q, class Transform, class Planes, class Frames, class Splits>
PlaneArgs<T, Q> plane_args(const Transform& layout, const Planes& low, int level, Q* field, const float* steps,
                           const Frames& frames, const Splits& splits_time) {
  const Decomposition& d = layout.decomposition();
  PlaneArgs<T, Q> a;
  const auto& from = low[static_cast<std::size_t>(level)];
  a.plane = from.data;
  a.plane_pitch = from.pitch;
  a.plane_frame = static_cast<std::ptrdiff_t>(from.frame_stride);
  if (level + 1 < d.spatial_levels) {
    const auto& to = low[static_cast<std::size_t>(level) + 1];
    a.low = to.data;
    a.low_pitch = to.pitch;
    a.low_frame = static_cast<std::ptrdiff_t>(to.frame_stride);
    a.low_every = splits_time(level) ? 2 : 1;
  }
  // frame j of the plane is frame j << (temporal splits so far) of the field
  const int time = d.layout == Layout::kT2d ? 0 : std::min(level, d.temporal_levels);
  a.field = field;
  a.pitch = layout.pitch();
  a.field_frame = static_cast<std::ptrdiff_t>(layout.frame_stride()) << time;
  a.high_column = d.spatial_levels > 0 ? layout.high_column(level + 1) : 0;
  a.frames = frames(level);
  a.height = layout.low_rows(level);
  a.width = layout.low_columns(level);
  a.step_frame = 4 << time;
  if (steps) a.steps = steps + static_cast<std::size_t>(level) * static_cast<std::size_t>(layout.shape().frames) * 4;
  return a;
}

/// Coefficients and samples have one type, so that levels can be joint.
template <class T, class Q>
constexpr bool kAllFloat = std::is_same_v<T, float>&& std::is_same_v<Q, float>;

/// The plane of level `level` with all frames: at level 0 that of the samples. The forward transform only reads it.
template <class Byte>
PlaneArgs<float, float> joint_args(PlaneArgs<float, float> a, int level, const BasicDeviceSamples<Byte>& samples) {
  if (level > 0) return a;
  a.plane = const_cast<float*>(reinterpret_cast<const float*>(samples.data));
  a.plane_pitch = static_cast<int>(samples.row_stride / 4);
  a.plane_frame = samples.frame_stride / 4;
  return a;
}

}  // namespace

template <class T>
template <class Q>
int DeviceTransform<T>::forward(const DeviceSamples& samples, std::int32_t offset, Q* coefficients,
                                const float* inverse_steps, const Stream& stream, const float* frame_gains) {
  const Decomposition& d = layout_.decomposition();
  require(inverse_steps || std::is_same_v<T, Q> || std::is_same_v<T, std::int32_t>, ErrorKind::kBadArgument,
          "quantised coefficients need steps");
  const auto frames_of = [this](int level) { return frames(level); };
  const auto splits = [this](int level) { return splits_time(level); };
  const auto time_args = [&](int level, int levels, bool first) {
    const Plane& p = low_[static_cast<std::size_t>(level)];
    TimeArgs<T> a;
    a.out = p.data;
    a.out_row = static_cast<std::ptrdiff_t>(sizeof(T)) * p.pitch;
    a.out_frame = static_cast<std::ptrdiff_t>(sizeof(T) * p.frame_stride);
    a.in = first ? static_cast<const void*>(samples.data) : p.data;
    a.in_row = first ? samples.row_stride : a.out_row;
    a.in_frame = first ? samples.frame_stride : a.out_frame;
    a.format = first ? samples.format : SampleFormat::kValues;
    a.range.offset = offset;
    a.frames = frames(level);
    a.height = layout_.low_rows(level);
    a.width = layout_.low_columns(level);
    a.levels = levels;
    a.gains = level == 0 ? frame_gains : nullptr;
    return a;
  };

  const auto plane = [&](int level) {
    return plane_args<T, Q>(layout_, low_, level, coefficients, inverse_steps, frames_of, splits);
  };

  if (d.spatial_levels == 0) {
    forward_time(time_args(0, time_levels(0), true), d.temporal, stream);
    copy_plane(plane(0), false, stream);
  }
  int joint = 0;
  for (int l = 0; l < d.spatial_levels; ++l) {
    if constexpr (kAllFloat<T, Q>) {
      if (may_be_joint(l, samples, frame_gains) &&
          forward_joint(joint_args(plane(l), l, samples), {joint_, processors_, shared_bytes_}, stream)) {
        ++joint;
        continue;
      }
    }
    const int levels = time_levels(l);
    if (l == 0 || levels > 0) forward_time(time_args(l, levels, l == 0), d.temporal, stream);
    forward_plane(plane(l), d.spatial, processors_, stream);
  }
  return joint;
}

template <class T>
template <class Q>
int DeviceTransform<T>::inverse(const Q* coefficients, const float* steps, float centroid, const SampleRange& range,
                                const MutableDeviceSamples& samples, const Stream& stream, const float* frame_gains) {
  const Decomposition& d = layout_.decomposition();
  require(steps || std::is_same_v<T, Q> || std::is_same_v<T, std::int32_t>, ErrorKind::kBadArgument,
          "quantised coefficients need steps");
  const auto frames_of = [this](int level) { return frames(level); };
  const auto splits = [this](int level) { return splits_time(level); };
  const auto time_args = [&](int level, int levels, bool last) {
    const Plane& p = low_[static_cast<std::size_t>(level)];
    TimeArgs<T> a;
    a.in = p.data;
    a.in_row = static_cast<std::ptrdiff_t>(sizeof(T)) * p.pitch;
    a.in_frame = static_cast<std::ptrdiff_t>(sizeof(T) * p.frame_stride);
    a.out = last ? static_cast<void*>(samples.data) : p.data;
    a.out_row = last ? samples.row_stride : a.in_row;
    a.out_frame = last ? samples.frame_stride : a.in_frame;
    a.format = last ? samples.format : SampleFormat::kValues;
    a.range = range;
    a.frames = frames(level);
    a.height = layout_.low_rows(level);
    a.width = layout_.low_columns(level);
    a.levels = levels;
    a.gains = level == 0 ? frame_gains : nullptr;
    return a;
  };

  Q* field = const_cast<Q*>(coefficients);  // only read
  const auto plane = [&](int level) {
    PlaneArgs<T, Q> a = plane_args<T, Q>(layout_, low_, level, field, steps, frames_of, splits);
    a.centroid = centroid;
    return a;
  };

  int joint = 0;
  for (int l = d.spatial_levels - 1; l >= 0; --l) {
    if constexpr (kAllFloat<T, Q>) {
      if (may_be_joint(l, samples, frame_gains) &&
          inverse_joint(joint_args(plane(l), l, samples), {joint_, processors_, shared_bytes_}, stream)) {
        ++joint;
        continue;
      }
    }
    const int levels = time_levels(l);
    inverse_plane(plane(l), d.spatial, processors_, stream);
    if (l == 0 || levels > 0) inverse_time(time_args(l, levels, l == 0), d.temporal, stream);
  }
  if (d.spatial_levels == 0) {
    copy_plane(plane(0), true, stream);
    inverse_time(time_args(0, time_levels(0), true), d.temporal, stream);
  }
  return joint;
}

template class DeviceTransform<float>;
template class DeviceTransform<std::int32_t>;

#define TRIVELET_INSTANTIATE(T, Q)                                                                              \
  template int DeviceTransform<T>::forward(const DeviceSamples&, std::int32_t, Q*, const float*, const Stream&, \
                                           const float*);                                                       \
  template int DeviceTransform<T>::inverse(const Q*, const float*, float, const SampleRange&,                   \
                                           const MutableDeviceSamples&, const Stream&, const float*);
TRIVELET_FOR_COEFFICIENTS(TRIVELET_INSTANTIATE)
#undef TRIVELET_INSTANTIATE

}  // namespace trivelet::gpu
