// The loops of YCoCg-R over the rows of a GOP. colour.h gives the formulas.
#include "codec/transform/colour.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace trivelet {

namespace {

std::int32_t load(const std::byte* row, int x, int bytes) {
  return bytes == 1 ? reinterpret_cast<const std::uint8_t*>(row)[x] : reinterpret_cast<const std::uint16_t*>(row)[x];
}
void store(std::byte* row, int x, int bytes, std::int32_t v) {
  if (bytes == 1)
    reinterpret_cast<std::uint8_t*>(row)[x] = static_cast<std::uint8_t>(v);
  else
    reinterpret_cast<std::uint16_t*>(row)[x] = static_cast<std::uint16_t>(v);
}

std::int32_t whole(std::int32_t v, float) { return v; }
std::int32_t whole(float v, float gain) {
  const float x = v * gain;
  constexpr float kLimit = 16777216.0f;
  return static_cast<std::int32_t>(std::nearbyint(x < kLimit ? (x > -kLimit ? x : -kLimit) : kLimit));
}

}  // namespace

template <class T>
void forward_colour(const Gop& gop, std::int32_t offset, const Field<T>& fy, const Field<T>& fco, const Field<T>& fcg,
                    ThreadPool& pool) {
  const VolumeView planes[3] = {gop.plane(0), gop.plane(1), gop.plane(2)};
  const Shape s = planes[0].shape;
  pool.parallel_for(s.frames, [&](int f, int) {
    for (int r = 0; r < s.height; ++r) {
      const std::byte* in[3] = {planes[0].row(f, r), planes[1].row(f, r), planes[2].row(f, r)};
      T* y = fy.row(f, r);
      T* co = fco.row(f, r);
      T* cg = fcg.row(f, r);
      for (int x = 0; x < s.width; ++x) {
        const int bytes = planes[0].bytes_per_sample;
        const std::int32_t green = load(in[0], x, bytes);
        const std::int32_t blue = load(in[1], x, bytes);
        const std::int32_t red = load(in[2], x, bytes);
        const std::int32_t o = red - blue;
        const std::int32_t t = blue + (o >> 1);
        const std::int32_t g = green - t;
        co[x] = static_cast<T>(o);
        cg[x] = static_cast<T>(g);
        y[x] = static_cast<T>(t + (g >> 1) - offset);
      }
    }
  });
}

template <class T>
void inverse_colour(const Field<T>& fy, const Field<T>& fco, const Field<T>& fcg, float gain, std::int32_t offset,
                    std::int32_t max_sample, Gop& gop, ThreadPool& pool) {
  const MutableVolumeView planes[3] = {gop.plane(0), gop.plane(1), gop.plane(2)};
  const Shape s = planes[0].shape;
  // Sums wrap around as unsigned numbers because a hostile stream may hold any value.
  auto add = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  };
  auto subtract = [](std::int32_t a, std::int32_t b) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
  };
  pool.parallel_for(s.frames, [&](int f, int) {
    for (int r = 0; r < s.height; ++r) {
      std::byte* out[3] = {planes[0].row(f, r), planes[1].row(f, r), planes[2].row(f, r)};
      const T* y = fy.row(f, r);
      const T* co = fco.row(f, r);
      const T* cg = fcg.row(f, r);
      for (int x = 0; x < s.width; ++x) {
        const int bytes = planes[0].bytes_per_sample;
        const std::int32_t o = whole(co[x], gain);
        const std::int32_t g = whole(cg[x], gain);
        const std::int32_t t = subtract(add(whole(y[x], gain), offset), g >> 1);
        const std::int32_t green = add(g, t);
        const std::int32_t blue = subtract(t, o >> 1);
        const std::int32_t red = add(blue, o);
        store(out[0], x, bytes, std::clamp(green, 0, max_sample));
        store(out[1], x, bytes, std::clamp(blue, 0, max_sample));
        store(out[2], x, bytes, std::clamp(red, 0, max_sample));
      }
    }
  });
}

template void forward_colour(const Gop&, std::int32_t, const Field<float>&, const Field<float>&, const Field<float>&,
                             ThreadPool&);
template void forward_colour(const Gop&, std::int32_t, const Field<std::int32_t>&, const Field<std::int32_t>&,
                             const Field<std::int32_t>&, ThreadPool&);
template void inverse_colour(const Field<float>&, const Field<float>&, const Field<float>&, float, std::int32_t,
                             std::int32_t, Gop&, ThreadPool&);
template void inverse_colour(const Field<std::int32_t>&, const Field<std::int32_t>&, const Field<std::int32_t>&, float,
                             std::int32_t, std::int32_t, Gop&, ThreadPool&);

}  // namespace trivelet
