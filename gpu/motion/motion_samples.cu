// Samples to the integers that are lifted along motion, and back: a thread per value.
#include "gpu/motion/motion_component.cuh"
#include "gpu/transform/colour.h"

namespace trivelet::gpu {
namespace {

__global__ void to_integers_kernel(std::int32_t* values, std::size_t count, float gain) {
  constexpr float kLargest = 4194303.0f;  // 2^22 - 1 sixteenths of a grey level: the limit of clamp_round()
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = clamp_round(__int_as_float(values[i]) * gain, -kLargest, kLargest);
}

__device__ __forceinline__ std::int32_t grey_level(std::int32_t v, int fraction) {
  return fraction == 0 ? v : wrap_add(v, 1 << (fraction - 1)) >> fraction;
}

__global__ void to_grey_levels_kernel(std::int32_t* values, std::size_t count, int fraction) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = grey_level(values[i], fraction);
}

template <class Sample>
__global__ void to_samples_kernel(const std::int32_t* values, std::size_t count, int fraction, SampleRange range,
                                  Sample* samples) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i >= count) return;
  samples[i] = static_cast<Sample>(
      clamp_int(grey_level(values[i], fraction), range.min_sample - range.offset, range.max_sample - range.offset) +
      range.offset);
}

__global__ void to_places_kernel(std::int32_t* values, std::size_t count, int fraction) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = values[i] * (1 << fraction);
}

template <class Sample>
__global__ void from_samples_kernel(const Sample* samples, std::size_t count, std::int32_t offset, int fraction,
                                    std::int32_t* values) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = (static_cast<std::int32_t>(samples[i]) - offset) * (1 << fraction);
}

__global__ void to_floats_kernel(std::int32_t* values, std::size_t count) {
  const std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x;
  if (i < count) values[i] = __float_as_int(static_cast<float>(values[i]) * (1.0f / (1 << kMotionFraction)));
}

// Starts a kernel of a thread per value.
template <class... Parameters, class... Arguments>
void launch_each(const char* name, void (*kernel)(Parameters...), std::size_t count, const Stream& stream,
                 const Arguments&... arguments) {
  if (count > 0)
    launch(name, kernel, dim3(motion_blocks(count, kMotionThreads)), dim3(kMotionThreads), 0, stream.get(),
           arguments...);
}

}  // namespace

template <class T>
void DeviceMotion::to_samples(const GopShape& shape, const MotionOfGop& motion, const float* gain, std::byte* samples,
                              const Stream& stream) {
  const PixelFormat& f = header_.video.format;
  const int fraction = header_.lossless ? 0 : kMotionFraction;
  const int components = static_cast<int>(shape.shapes.size());
  const int first = first_place(motion.places.key);
  const auto frames = static_cast<std::size_t>(shape.shapes[0].frames - first);
  const auto is_colour = [&](int c) { return header_.colour_transform && c < 3; };
  std::vector<const std::int32_t*> from;
  for (int c = 0; c < components; ++c) {
    const auto n = static_cast<std::size_t>(c);
    const DeviceMotionComponent d = component(shape, motion, c);
    if constexpr (std::is_same_v<T, float>)
      launch_each("to_integers_kernel", to_integers_kernel, shape.shapes[n].samples(), stream, d.values,
                  shape.shapes[n].samples(), gain[n] * (1 << kMotionFraction));
    if (motion.predicts_keys) add_to_keys(d, stream);
    keep_coarser_keys(d, stream);
    if (motion.only_keys) continue;
    for (int level = d.places.levels - 1; level >= d.dropped; --level) {
      update(d, level, true, stream);
      pass_keys(d, level, motion.follows, stream);
      predict(d, level, true, stream);
    }
    from.push_back(d.values + first * d.frame);
    const std::size_t count = frames * static_cast<std::size_t>(d.frame);
    if (is_colour(c)) {
      if (fraction > 0)
        launch_each("to_grey_levels_kernel", to_grey_levels_kernel, count, stream, d.values + first * d.frame, count,
                    fraction);
      continue;
    }
    SampleRange range;
    range.offset = header_.components[n].offset;
    range.min_sample = lowest_sample(f);
    range.max_sample = highest_sample(f);
    const auto store = [&](auto kind) {
      using Sample = decltype(kind);
      launch_each("to_samples_kernel", to_samples_kernel<Sample>, count, stream, from.back(), count, fraction, range,
                  reinterpret_cast<Sample*>(samples + shape.sample_origin[n]));
    };
    f.bytes_per_sample() == 1 ? store(std::uint8_t{}) : store(std::uint16_t{});
  }
  has_low_key_ = has_low_key_ || motion.places.ends_with_key();
  if (!header_.colour_transform || frames == 0 || motion.only_keys) return;
  std::byte* const out[3] = {samples + shape.sample_origin[0], samples + shape.sample_origin[1],
                             samples + shape.sample_origin[2]};
  const std::int32_t* const in[3] = {from[0], from[1], from[2]};
  inverse_colour<std::int32_t>(in, frames * shape.shapes[0].height * static_cast<std::size_t>(shape.shapes[0].width),
                               1.0f, header_.components[0].offset, highest_sample(f), out,
                               sample_format(f.bytes_per_sample(), f.is_signed), stream);
}

void integers_from_samples(const StreamHeader& header, const std::vector<const std::byte*>& samples,
                           const std::vector<std::size_t>& counts, int fraction,
                           const std::vector<std::int32_t*>& integers, const Stream& stream) {
  const PixelFormat& f = header.video.format;
  const SampleFormat format = sample_format(f.bytes_per_sample(), f.is_signed);
  if (header.colour_transform) {
    const std::byte* const in[3] = {samples[0], samples[1], samples[2]};
    std::int32_t* const out[3] = {integers[0], integers[1], integers[2]};
    forward_colour<std::int32_t>(in, format, counts[0], header.components[0].offset, out, stream);
  }
  for (std::size_t c = 0; c < samples.size(); ++c) {
    const auto load = [&](auto kind) {
      using Sample = decltype(kind);
      launch_each("from_samples_kernel", from_samples_kernel<Sample>, counts[c], stream,
                  reinterpret_cast<const Sample*>(samples[c]), counts[c], header.components[c].offset, fraction,
                  integers[c]);
    };
    if (header.colour_transform && c < 3) {
      if (fraction > 0)
        launch_each("to_places_kernel", to_places_kernel, counts[c], stream, integers[c], counts[c], fraction);
      continue;
    }
    switch (format) {
      case SampleFormat::kU8: load(std::uint8_t{}); break;
      case SampleFormat::kS8: load(std::int8_t{}); break;
      case SampleFormat::kU16: load(std::uint16_t{}); break;
      default: load(std::int16_t{}); break;
    }
  }
}

template <class T>
void DeviceMotion::from_samples(const GopShape& shape, const MotionOfGop& motion, const std::byte* samples,
                                const Stream& stream, std::int32_t* low) {
  const int components = static_cast<int>(shape.shapes.size());
  const int first = first_place(motion.places.key);
  const auto frames = static_cast<std::size_t>(shape.frames_left());
  std::vector<DeviceMotionComponent> all;
  std::vector<const std::byte*> from;
  std::vector<std::size_t> counts;
  std::vector<std::int32_t*> to;
  for (int c = 0; c < components; ++c) {
    all.push_back(component(shape, motion, c));
    from.push_back(samples + shape.sample_origin[static_cast<std::size_t>(c)]);
    counts.push_back(frames * static_cast<std::size_t>(all.back().frame));
    to.push_back(all.back().values + first * all.back().frame);
  }
  integers_from_samples(header_, from, counts, header_.lossless ? 0 : kMotionFraction, to, stream);
  for (const DeviceMotionComponent& d : all) {
    const auto n = static_cast<std::size_t>(d.index);
    for (int level = 0; level < d.places.levels; ++level) {
      pass_keys(d, level, motion.follows, stream);
      predict(d, level, false, stream);
      update(d, level, false, stream);
    }
    keep_coarser_keys(d, stream);
    for (int i = 0; low && i < d.places.keys(); ++i)
      copy(low + static_cast<std::size_t>(i) * key_origin_.back() + key_origin_[n],
           d.values + d.frame_at(d.places.key_place(i)), static_cast<std::size_t>(d.frame), cudaMemcpyDeviceToDevice,
           stream);
    if (first > 0)  // values that are not coded
      check(cudaMemsetAsync(d.values, 0, static_cast<std::size_t>(d.frame) * sizeof *d.values, stream.get()),
            "cudaMemsetAsync");
    if constexpr (std::is_same_v<T, float>) to_floats(d.values, shape.shapes[n].samples(), stream);
  }
}

void DeviceMotion::to_floats(std::int32_t* values, std::size_t count, const Stream& stream) {
  launch_each("to_floats_kernel", to_floats_kernel, count, stream, values, count);
}

void DeviceMotion::set_frame(const GopShape& shape, const MotionOfGop& motion, int component, int place,
                             const std::int32_t* from, const Stream& stream) const {
  const DeviceMotionComponent d = this->component(shape, motion, component);
  std::int32_t* const to = d.values + d.frame_at(place);
  copy(to, from, static_cast<std::size_t>(d.frame), cudaMemcpyDeviceToDevice, stream);
  if (!header_.lossless) to_floats(to, static_cast<std::size_t>(d.frame), stream);
}

template void DeviceMotion::from_samples<float>(const GopShape&, const MotionOfGop&, const std::byte*, const Stream&,
                                                std::int32_t*);
template void DeviceMotion::from_samples<std::int32_t>(const GopShape&, const MotionOfGop&, const std::byte*,
                                                       const Stream&, std::int32_t*);
template void DeviceMotion::to_samples<float>(const GopShape&, const MotionOfGop&, const float*, std::byte*,
                                              const Stream&);
template void DeviceMotion::to_samples<std::int32_t>(const GopShape&, const MotionOfGop&, const float*, std::byte*,
                                                     const Stream&);

}  // namespace trivelet::gpu
