// The transform on the device against codec/dwt: every bit of every subband, and of the samples that come back.
//
// Built twice: with the kernels emulated on the CPU (gpu/emulation/cuda_emu.h; everywhere, sanitizers included) and for a GPU,
// where it is skipped when there is none.
#include "gpu/dwt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "codec/dwt.h"
#include "tests/one_of.h"

namespace trivelet::gpu {
namespace {

#if defined(TRIVELET_CUDA_EMULATION)
constexpr bool kEmulated = true;
#else
constexpr bool kEmulated = false;
#endif

template <class T>
DeviceBuffer<T> upload(const std::vector<T>& v, const Stream& stream) {
  DeviceBuffer<T> b(v.size());
  copy(b.data(), v.data(), v.size(), cudaMemcpyHostToDevice, stream);
  stream.synchronize();
  return b;
}

template <class T>
std::vector<T> download(const DeviceBuffer<T>& b, const Stream& stream) {
  std::vector<T> v(b.size());
  copy(v.data(), b.data(), v.size(), cudaMemcpyDeviceToHost, stream);
  stream.synchronize();
  return v;
}

/// A device array full of junk, so that nothing depends on what memory held.
template <class T>
DeviceBuffer<T> poisoned(std::size_t n, const Stream& stream) {
  DeviceBuffer<T> b(n);
  check(cudaMemsetAsync(b.data(), 0xA5, n * sizeof(T), stream.get()), "cudaMemsetAsync");
  return b;
}

template <class Q, class T>
Q expected_quantised(T c, float inverse_step) {
  if constexpr (std::is_same_v<T, Q>) {
    return c;
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return static_cast<Q>(c > 32767 ? 32767 : c < -32767 ? -32767 : c);
  } else {
    const float limit = sizeof(Q) == 2 ? 32767.0f : 1073741760.0f, m = std::fabs(c) * inverse_step;
    const auto q = static_cast<std::int32_t>(m < limit ? m : limit);
    return static_cast<Q>(c < 0 ? -q : q);
  }
}

template <class T, class Q>
T expected_restored(Q q, float step, float centroid) {
  if constexpr (std::is_same_v<T, float> && !std::is_same_v<Q, float>) {
    const float v = (static_cast<float>(std::abs(static_cast<std::int32_t>(q))) + centroid) * step;
    return q == 0 ? 0.0f : q < 0 ? -v : v;
  } else {
    return static_cast<T>(q);
  }
}

std::string name(const Shape& s) {
  return std::to_string(s.frames) + "x" + std::to_string(s.height) + "x" + std::to_string(s.width);
}

struct Case {
  Shape shape;
  Decomposition d;
};

std::string describe(const Case& c) {
  return name(c.shape) + (c.d.layout == Layout::kT2d ? " t+2D" : " dyadic") + " levels " +
         std::to_string(c.d.temporal_levels) + "," + std::to_string(c.d.spatial_levels) + " wavelets " +
         std::to_string(static_cast<int>(c.d.temporal)) + "," + std::to_string(static_cast<int>(c.d.spatial));
}

/// Forward and inverse of one case with samples of type Sample and coefficients stored as Q.
template <class T, class Q, class Sample>
void run(const Case& c, unsigned seed) {
  SCOPED_TRACE(describe(c) + ", " + std::to_string(sizeof(Sample) * 8) + " bit, stored " +
               std::to_string(sizeof(Q) * 8) + (std::is_same_v<Q, float> ? " float" : " int"));
  const Shape& shape = c.shape;
  const std::size_t n = shape.samples();
  const auto width = static_cast<std::size_t>(shape.width), height = static_cast<std::size_t>(shape.height);

  // samples, rows a little apart, sometimes by words
  const bool words = width % 4 == 0 && seed % 4 != 0;
  const std::size_t pitch = width + (words ? 4 : 3), frame = pitch * height + (words ? 4 : 1);
  std::vector<Sample> samples(frame * static_cast<std::size_t>(shape.frames));
  std::mt19937 random(seed);
  constexpr int low = std::numeric_limits<Sample>::min(), high = std::numeric_limits<Sample>::max();
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double wave = std::sin(0.11 * static_cast<double>(i % pitch) + 0.001 * static_cast<double>(i / pitch));
    const bool wild = random() % 16 == 0;
    samples[i] = static_cast<Sample>(wild ? low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1))
                                          : (low + high) / 2 + static_cast<int>(wave * 0.45 * (high - low)));
  }
  const std::int32_t offset = (low + high + 1) / 2;

  // the reference
  ThreadPool pool(1);
  std::vector<T> values(n);
  const Field<T> field{values.data(), shape, shape.width, static_cast<std::ptrdiff_t>(width * height)};
  VolumeView view{reinterpret_cast<const std::byte*>(samples.data()),
                  shape,
                  sizeof(Sample),
                  std::is_signed_v<Sample>,
                  static_cast<std::ptrdiff_t>(pitch * sizeof(Sample)),
                  static_cast<std::ptrdiff_t>(frame * sizeof(Sample))};
  forward_transform<T>(view, offset, field, c.d, pool, SimdLevel::kScalar);

  // the device
  const Stream stream;
  DeviceTransform<T> transform(shape, c.d);
  const CoefficientLayout& layout = transform.layout();
  const SubbandTable table(shape, c.d, std::is_same_v<T, std::int32_t>);
  std::vector<float> step, inverse_step;
  for (std::size_t i = 0; i < table.all().size(); ++i) {
    step.push_back(0.37f + 0.21f * static_cast<float>(i % 13));
    inverse_step.push_back(1.0f / step.back());
  }
  const auto device_samples = upload(samples, stream);
  const auto device_inverse_steps = upload(layout.spread(table, inverse_step), stream);
  const auto device_steps = upload(layout.spread(table, step), stream);
  const auto device_coefficients = poisoned<Q>(layout.size(), stream);
  DeviceSamples in;
  in.data = reinterpret_cast<const std::byte*>(device_samples.data());
  in.format = sample_format(sizeof(Sample), std::is_signed_v<Sample>);
  in.row_stride = view.row_stride;
  in.frame_stride = view.frame_stride;
  transform.forward(in, offset, device_coefficients.data(), device_inverse_steps.data(), stream);
  const std::vector<Q> coefficients = download(device_coefficients, stream);

  std::size_t compared = 0;
  for (std::size_t i = 0; i < table.all().size(); ++i) {
    const Subband& s = table.all()[i];
    const Field<T> expected = subband_view(field, s);
    const CoefficientLayout::Band band = layout.band(s);
    ASSERT_EQ(band.shape, s.shape);
    for (int f = 0; f < s.shape.frames; ++f)
      for (int y = 0; y < s.shape.height; ++y)
        for (int x = 0; x < s.shape.width; ++x, ++compared) {
          T& reference = expected.row(f, y)[x];
          const Q want = expected_quantised<Q>(reference, inverse_step[i]);
          const Q got = coefficients[band.origin + static_cast<std::size_t>(f) * band.frame_stride +
                                     static_cast<std::size_t>(y) * band.row_stride + static_cast<std::size_t>(x)];
          ASSERT_EQ(std::memcmp(&want, &got, sizeof(Q)), 0)
              << "band " << s.temporal_band << " resolution " << s.resolution << " orientation " << s.orientation
              << " at " << f << "," << y << "," << x << ": " << got << ", expected " << want;
          reference = expected_restored<T>(want, step[i], 0.4f);
        }
  }
  ASSERT_EQ(compared, n);

  // and back, from what was stored
  SampleRange range;
  range.gain = std::is_same_v<T, float> ? 0.97f : 1.0f;
  range.offset = offset;
  range.min_sample = low + 3;
  range.max_sample = high - 5;
  std::vector<Sample> want(samples.size());
  std::memset(want.data(), 0xA5, want.size() * sizeof(Sample));
  MutableVolumeView target{reinterpret_cast<std::byte*>(want.data()),
                           shape,
                           sizeof(Sample),
                           std::is_signed_v<Sample>,
                           view.row_stride,
                           view.frame_stride};
  inverse_transform<T>(field, c.d, range.gain, range.offset, range.min_sample, range.max_sample, target, pool,
                       SimdLevel::kScalar);
  const auto device_out = poisoned<Sample>(samples.size(), stream);
  MutableDeviceSamples out;
  out.data = reinterpret_cast<std::byte*>(device_out.data());
  out.format = in.format;
  out.row_stride = in.row_stride;
  out.frame_stride = in.frame_stride;
  transform.inverse(device_coefficients.data(), device_steps.data(), 0.4f, range, out, stream);
  const std::vector<Sample> got = download(device_out, stream);
  for (std::size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(static_cast<int>(got[i]), static_cast<int>(want[i]))
        << "frame " << i / frame << " row " << i % frame / pitch << " column " << i % frame % pitch;
}

std::vector<Case> cases(bool reversible) {
  const std::vector<Wavelet> wavelets = reversible ? std::vector{Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kRev137}
                                                   : std::vector{Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kCdf97};
  const std::vector<Shape> small = {{1, 1, 1},    {1, 1, 9},  {1, 9, 1},   {9, 1, 1},   {2, 2, 2},
                                    {3, 3, 3},    {5, 7, 11}, {4, 6, 33},  {6, 17, 40}, {7, 19, 5},
                                    {3, 37, 131}, {11, 3, 2}, {2, 33, 250}};
  std::vector<Case> list;
  int turn = 0;
  for (const Wavelet w : wavelets)
    for (const Shape& s : small) {
      const int levels = 1 + turn % 4;
      list.push_back({s, {Layout::kT2d, turn % 5, levels, wavelets[static_cast<std::size_t>(turn) % 3], w}});
      list.push_back({s, {Layout::kDyadic, turn % (levels + 1), levels, w, w}});
      ++turn;
    }
  // GOP lengths that kernels know, others, and lines too long for shared memory
  const Wavelet best = reversible ? Wavelet::kCdf53 : Wavelet::kCdf97;
  for (const int frames : {8, 16, 31, 32, 33, 64, 128})
    for (const Wavelet w : wavelets) list.push_back({{frames, 5, 7}, {Layout::kT2d, 5, 2, w, best}});
  for (const int frames : {16, 30, 32, 37, 64}) list.push_back({{frames, 12, 37}, {Layout::kDyadic, 3, 3, best, best}});
  for (const int frames : {16, 32, 64, 128})
    for (const int width : {8, 36, 132}) list.push_back({{frames, 3, width}, {Layout::kT2d, 4, 1, best, best}});
  list.push_back({{32, 40, 150}, {Layout::kT2d, 5, 3, best, best}});
  list.push_back({{400, 2, 3}, {Layout::kT2d, 8, 1, best, best}});
  list.push_back({{5, 12, 20}, {Layout::kT2d, 2, 0, best, best}});
  list.push_back({{5, 12, 20}, {Layout::kT2d, 0, 2, best, best}});
  list.push_back({{3, 300, 9}, {Layout::kT2d, 1, 8, best, best}});
  if (!kEmulated) {
    list.push_back({{32, 270, 481}, {Layout::kT2d, 5, 5, best, best}});
    list.push_back({{17, 271, 480}, {Layout::kT2d, 4, 5, best, best}});
    list.push_back({{32, 544, 960}, {Layout::kT2d, 5, 5, best, best}});
    list.push_back({{64, 256, 333}, {Layout::kDyadic, 3, 3, best, best}});
    list.push_back({{128, 272, 480}, {Layout::kDyadic, 3, 3, best, best}});
    for (const Wavelet w : wavelets) list.push_back({{32, 97, 389}, {Layout::kT2d, 5, 4, w, w}});
    for (const Wavelet w : wavelets) list.push_back({{41, 98, 390}, {Layout::kDyadic, 2, 4, w, w}});
  }
  return list;
}

class GpuDwt : public ::testing::Test {
 protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no GPU";
  }
};

/// Emulated, each of the three ways to store coefficients of the float transform takes every third case, so that together
/// they have all of them.
bool has_turn(std::size_t index, std::size_t way) { return !kEmulated || test::full() || index % 3 == way; }

TEST_F(GpuDwt, FloatBits) {
  const std::vector<Case> all = cases(false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (has_turn(i, 1)) run<float, float, std::uint8_t>(all[i], 1 + static_cast<unsigned>(i));
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuDwt, QuantisedTo16Bits) {
  const std::vector<Case> all = cases(false);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!has_turn(i, 2)) continue;
    const auto seed = 1000 + static_cast<unsigned>(i);
    if (seed % 2)
      run<float, std::int16_t, std::uint16_t>(all[i], seed);
    else
      run<float, std::int16_t, std::uint8_t>(all[i], seed);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuDwt, QuantisedTo32Bits) {
  unsigned seed = 2000;
  const std::vector<Case> all = cases(false);
  for (std::size_t i = 0; i < all.size(); i += kEmulated && !test::full() ? 6 : 3) {
    run<float, std::int32_t, std::int16_t>(all[i], seed++);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuDwt, ReversibleBits) {
  unsigned seed = 3000;
  test::OneOf chosen(kEmulated ? 2 : 1);
  for (const Case& c : cases(true)) {
    if (!chosen()) {
      ++seed;
      continue;
    }
    switch (seed % 3) {
      case 0: run<std::int32_t, std::int32_t, std::uint8_t>(c, seed); break;
      case 1: run<std::int32_t, std::int32_t, std::int16_t>(c, seed); break;
      default: run<std::int32_t, std::int16_t, std::int8_t>(c, seed); break;
    }
    ++seed;
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuDwt, RejectsWhatTheCpuRejects) {
  const Shape s{4, 8, 8};
  EXPECT_THROW(DeviceTransform<float>({0, 8, 8}, {}), Error);
  EXPECT_THROW(DeviceTransform<float>(s, {Layout::kT2d, 9, 2, Wavelet::kCdf97, Wavelet::kCdf97}), Error);
  EXPECT_THROW(DeviceTransform<float>(s, {Layout::kDyadic, 3, 2, Wavelet::kCdf97, Wavelet::kCdf97}), Error);
  EXPECT_THROW(DeviceTransform<float>(s, {Layout::kT2d, 2, 2, Wavelet::kRev137, Wavelet::kCdf97}), Error);
  EXPECT_THROW(DeviceTransform<std::int32_t>(s, {Layout::kT2d, 2, 2, Wavelet::kCdf53, Wavelet::kCdf97}), Error);
}

}  // namespace
}  // namespace trivelet::gpu
