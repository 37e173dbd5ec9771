// Colour transform: a thread per pixel, three reads and three writes. Bound: memory.
#include "gpu/transform/colour.h"

#include <algorithm>
#include <cmath>

namespace trivelet::gpu {
namespace {

constexpr unsigned kThreads = 256;

struct Planes {
  std::byte* p[3];
};
template <class T>
struct Values {
  T* v[3];
};

__device__ __forceinline__ std::int32_t load_sample(const std::byte* p, std::size_t i, bool wide) {
  return wide ? reinterpret_cast<const std::uint16_t*>(p)[i] : reinterpret_cast<const std::uint8_t*>(p)[i];
}
__device__ __forceinline__ void store_sample(std::byte* p, std::size_t i, bool wide, std::int32_t v,
                                             std::int32_t most) {
  v = v < 0 ? 0 : v > most ? most : v;
  if (wide)
    reinterpret_cast<std::uint16_t*>(p)[i] = static_cast<std::uint16_t>(v);
  else
    reinterpret_cast<std::uint8_t*>(p)[i] = static_cast<std::uint8_t>(v);
}
__device__ __forceinline__ std::int32_t whole(std::int32_t v, float) { return v; }
__device__ __forceinline__ std::int32_t whole(float v, float gain) {
  const float x = v * gain;
  constexpr float kLimit = 16777216.0f;
  return static_cast<std::int32_t>(rintf(x < kLimit ? (x > -kLimit ? x : -kLimit) : kLimit));
}

template <class T>
__global__ void forward_colour_kernel(Planes in, bool wide, std::size_t count, std::int32_t offset, Values<T> out) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const std::int32_t green = load_sample(in.p[0], i, wide), blue = load_sample(in.p[1], i, wide),
                       red = load_sample(in.p[2], i, wide);
    const std::int32_t o = red - blue, t = blue + (o >> 1), g = green - t;
    out.v[0][i] = static_cast<T>(t + (g >> 1) - offset);
    out.v[1][i] = static_cast<T>(o);
    out.v[2][i] = static_cast<T>(g);
  }
}

// Sums wrap around as unsigned numbers: a hostile stream may hold any value.
template <class T>
__global__ void inverse_colour_kernel(Values<T> in, std::size_t count, float gain, std::int32_t offset,
                                      std::int32_t most, Planes out, bool wide) {
  const auto add = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  };
  const auto subtract = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
  };
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    const std::int32_t o = whole(in.v[1][i], gain), g = whole(in.v[2][i], gain);
    const std::int32_t t = subtract(add(whole(in.v[0][i], gain), offset), g >> 1);
    const std::int32_t blue = subtract(t, o >> 1);
    store_sample(out.p[0], i, wide, add(g, t), most);
    store_sample(out.p[1], i, wide, blue, most);
    store_sample(out.p[2], i, wide, add(blue, o), most);
  }
}

dim3 blocks_for(std::size_t count) {
  return dim3(static_cast<unsigned>(std::min<std::size_t>((count + kThreads - 1) / kThreads, 65536)));
}

}  // namespace

template <class T>
void forward_colour(const std::byte* const (&samples)[3], SampleFormat format, std::size_t count, std::int32_t offset,
                    T* const (&values)[3], const Stream& stream) {
  Planes in;
  for (int c = 0; c < 3; ++c) in.p[c] = const_cast<std::byte*>(samples[c]);  // only read
  const Values<T> out{{values[0], values[1], values[2]}};
  launch("forward_colour_kernel", forward_colour_kernel<T>, blocks_for(count), dim3(kThreads), 0, stream.get(), in,
         format >= SampleFormat::kU16, count, offset, out);
}

template <class T>
void inverse_colour(const T* const (&values)[3], std::size_t count, float gain, std::int32_t offset,
                    std::int32_t max_sample, std::byte* const (&samples)[3], SampleFormat format,
                    const Stream& stream) {
  Values<T> in;
  for (int c = 0; c < 3; ++c) in.v[c] = const_cast<T*>(values[c]);  // only read
  const Planes out{{samples[0], samples[1], samples[2]}};
  launch("inverse_colour_kernel", inverse_colour_kernel<T>, blocks_for(count), dim3(kThreads), 0, stream.get(), in,
         count, gain, offset, max_sample, out, format >= SampleFormat::kU16);
}

template void forward_colour(const std::byte* const (&)[3], SampleFormat, std::size_t, std::int32_t,
                             float* const (&)[3], const Stream&);
template void forward_colour(const std::byte* const (&)[3], SampleFormat, std::size_t, std::int32_t,
                             std::int32_t* const (&)[3], const Stream&);
template void inverse_colour(const float* const (&)[3], std::size_t, float, std::int32_t, std::int32_t,
                             std::byte* const (&)[3], SampleFormat, const Stream&);
template void inverse_colour(const std::int32_t* const (&)[3], std::size_t, float, std::int32_t, std::int32_t,
                             std::byte* const (&)[3], SampleFormat, const Stream&);

}  // namespace trivelet::gpu
