// The transforms of all components of a GOP, with colour and quantiser.

#include "gpu/pipeline/transforms.h"

#include <algorithm>

#include "gpu/transform/colour.h"

namespace trivelet::gpu {

template <class T>
GopTransforms<T>::GopTransforms(const GopShape& shape) : shape_(&shape) {
  for (std::size_t c = 0; c < shape.shapes.size(); ++c) {
    std::size_t same = 0;
    while (same < c && !(shape.shapes[same] == shape.shapes[c] &&
                         shape.decompositions[same].spatial_levels == shape.decompositions[c].spatial_levels))
      ++same;
    if (same < c) {
      transform_index_.push_back(transform_index_[same]);
    } else {
      transform_index_.push_back(transforms_.size());
      Decomposition d = shape.decompositions[c];
      if (shape.moves()) {
        d.temporal = Wavelet::kHaar;
        d.temporal_levels = 0;
      }
      transforms_.push_back(std::make_unique<DeviceTransform<T>>(shape.shapes[c], d));
    }
  }
  if (shape.header.colour_transform && !shape.moves())
    for (auto& v : colours_) v = DeviceBuffer<T>(shape.shapes[0].samples());
}

template <class T>
std::size_t GopTransforms<T>::device_bytes() const {
  std::size_t n = 0;
  for (const auto& t : transforms_) n += t->scratch_bytes();
  for (const auto& v : colours_) n += v.size() * sizeof(T);
  return n;
}

namespace {

template <class Byte>
BasicDeviceSamples<Byte> view(Byte* data, SampleFormat format, int bytes, const Shape& s) {
  BasicDeviceSamples<Byte> v;
  v.data = data;
  v.format = format;
  v.row_stride = static_cast<std::ptrdiff_t>(s.width) * bytes;
  v.frame_stride = v.row_stride * s.height;
  return v;
}

}  // namespace

template <class T>
template <class Q>
void GopTransforms<T>::forward(const std::byte* samples, Q* coefficients, const float* steps, const float* frame_gains,
                               const Stream& stream) {
  const PixelFormat& f = shape_->header.video.format;
  const SampleFormat format = sample_format(f.bytes_per_sample(), f.is_signed);
  if (shape_->header.colour_transform) {
    const std::byte* const in[3] = {samples + shape_->sample_origin[0], samples + shape_->sample_origin[1],
                                    samples + shape_->sample_origin[2]};
    T* const out[3] = {colours_[0].data(), colours_[1].data(), colours_[2].data()};
    forward_colour<T>(in, format, shape_->shapes[0].samples(), shape_->header.components[0].offset, out, stream);
  }
  for (std::size_t c = 0; c < shape_->shapes.size(); ++c) {
    const bool colour = shape_->header.colour_transform && c < 3;
    const DeviceSamples in =
        colour ? view(reinterpret_cast<const std::byte*>(colours_[c].data()), SampleFormat::kValues, sizeof(T),
                      shape_->shapes[c])
               : view(samples + shape_->sample_origin[c], format, f.bytes_per_sample(), shape_->shapes[c]);
    transforms_[transform_index_[c]]->forward(in, colour ? 0 : shape_->header.components[c].offset,
                                              coefficients + shape_->coefficient_origin[c],
                                              steps + shape_->step_origin[c], stream, frame_gains);
  }
}

// Low bands of the unscaled 9/7 are amplified by dc_gain once per dropped split and axis that has more than one sample.
template <class T>
float GopTransforms<T>::gain_of(int c) const {
  if (shape_->header.lossless) return 1.0f;
  const Shape full = shape_->header.component_shape(c, shape_->frames);
  double amplified = 1;
  for (int i = 0; i < effective_levels(full.frames, shape_->reduction.temporal); ++i)
    amplified *= dc_gain(shape_->header.temporal);
  for (int i = 0; i < effective_levels(full.width, shape_->reduction.spatial) +
                          effective_levels(full.height, shape_->reduction.spatial);
       ++i)
    amplified *= dc_gain(shape_->header.spatial);
  return static_cast<float>(1.0 / amplified);
}

template <class T>
template <class Q>
void GopTransforms<T>::inverse(const Q* coefficients, const float* steps, const float* frame_gains, std::byte* samples,
                               const Stream& stream) {
  const PixelFormat& f = shape_->header.video.format;
  const SampleFormat format = sample_format(f.bytes_per_sample(), f.is_signed);
  const std::int32_t most = f.is_signed ? (1 << (f.bits - 1)) - 1 : (1 << f.bits) - 1;
  for (std::size_t c = 0; c < shape_->shapes.size(); ++c) {
    const bool colour = shape_->header.colour_transform && c < 3;
    const auto out = colour ? view(reinterpret_cast<std::byte*>(colours_[c].data()), SampleFormat::kValues, sizeof(T),
                                   shape_->shapes[c])
                            : view(samples + shape_->sample_origin[c], format, f.bytes_per_sample(), shape_->shapes[c]);
    SampleRange range;
    range.gain = gain_of(static_cast<int>(c));
    range.offset = shape_->header.components[c].offset;
    range.min_sample = f.is_signed ? -(1 << (f.bits - 1)) : 0;
    range.max_sample = most;
    transforms_[transform_index_[c]]->inverse(
        coefficients + shape_->coefficient_origin[c], steps + shape_->step_origin[c],
        static_cast<float>(shape_->header.centroid) / 256.0f, range, out, stream, frame_gains);
  }
  if (shape_->header.colour_transform) {
    const T* const in[3] = {colours_[0].data(), colours_[1].data(), colours_[2].data()};
    std::byte* const out[3] = {samples + shape_->sample_origin[0], samples + shape_->sample_origin[1],
                               samples + shape_->sample_origin[2]};
    inverse_colour<T>(in, shape_->shapes[0].samples(), gain_of(0), shape_->header.components[0].offset, most, out,
                      format, stream);
  }
}

template <class T>
template <class Q>
void GopTransforms<T>::forward(const T* values, int component, Q* coefficients, const float* steps,
                               const Stream& stream) {
  const auto c = static_cast<std::size_t>(component);
  const DeviceSamples in =
      view(reinterpret_cast<const std::byte*>(values), SampleFormat::kValues, sizeof(T), shape_->shapes[c]);
  transforms_[transform_index_[c]]->forward(in, 0, coefficients + shape_->coefficient_origin[c],
                                            steps + shape_->step_origin[c], stream);
}

template <class T>
template <class Q>
void GopTransforms<T>::inverse(const Q* coefficients, const float* steps, int component, T* values,
                               const Stream& stream) {
  const auto c = static_cast<std::size_t>(component);
  transforms_[transform_index_[c]]->inverse(
      coefficients + shape_->coefficient_origin[c], steps + shape_->step_origin[c],
      static_cast<float>(shape_->header.centroid) / 256.0f, {},
      view(reinterpret_cast<std::byte*>(values), SampleFormat::kValues, sizeof(T), shape_->shapes[c]), stream);
}

template class GopTransforms<float>;
template class GopTransforms<std::int32_t>;
#define TRIVELET_INSTANTIATE(T, Q)                                                                          \
  template void GopTransforms<T>::forward(const std::byte*, Q*, const float*, const float*, const Stream&); \
  template void GopTransforms<T>::inverse(const Q*, const float*, const float*, std::byte*, const Stream&); \
  template void GopTransforms<T>::forward(const T*, int, Q*, const float*, const Stream&);                  \
  template void GopTransforms<T>::inverse(const Q*, const float*, int, T*, const Stream&);
TRIVELET_FOR_COEFFICIENTS(TRIVELET_INSTANTIATE)
#undef TRIVELET_INSTANTIATE

}  // namespace trivelet::gpu
