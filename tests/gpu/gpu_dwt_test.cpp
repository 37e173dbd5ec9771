// The transform on the device against codec/transform: every bit of every subband and of reconstructed samples.
//
// Built twice: with kernels emulated on the CPU (gpu/emulation/cuda_emu.h; everywhere, sanitizers included) and for a
// GPU, skipped if there is none.
#include "gpu/transform/dwt.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "codec/transform/dwt.h"
#include "tests/support/one_of.h"

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

/// Values in rows that begin at multiples of 16 bytes, there and back, as many levels as possible by one kernel each.
void run_jointly(const Case& c, unsigned seed) {
  SCOPED_TRACE(describe(c) + ", jointly");
  const Shape& shape = c.shape;
  const std::size_t width = static_cast<std::size_t>(shape.width), height = static_cast<std::size_t>(shape.height);
  const std::size_t pitch = (width + 3) / 4 * 4 + (seed % 2) * 4, frame = pitch * height + (seed % 3) * 4;
  const std::size_t n = frame * static_cast<std::size_t>(shape.frames);
  std::vector<float> values(n);
  std::mt19937 random(seed);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 200001) - 100000) / 97.0f;
  std::vector<float> reference = values;
  const Field<float> field{reference.data(), shape, static_cast<std::ptrdiff_t>(pitch),
                           static_cast<std::ptrdiff_t>(frame)};
  ThreadPool pool(1);
  forward_transform<float>(field, c.d, pool, SimdLevel::kScalar);

  int possible = 0;
  for (int l = 0; l < c.d.temporal_levels; ++l)
    possible += low_length(shape.frames, l) > 1 && low_length(shape.height, l) > 1 && low_length(shape.width, l) > 1;
  ASSERT_GT(possible, 0);
  const Stream stream;
  DeviceTransform<float> transform(shape, c.d, JointLevels::kWherePossible);
  const CoefficientLayout& layout = transform.layout();
  const auto device_values = upload(values, stream);
  const auto coefficients = poisoned<float>(layout.size(), stream);
  DeviceSamples in{reinterpret_cast<const std::byte*>(device_values.data()), SampleFormat::kValues,
                   static_cast<std::ptrdiff_t>(4 * pitch), static_cast<std::ptrdiff_t>(4 * frame)};
  ASSERT_EQ(transform.forward(in, 0, coefficients.data(), nullptr, stream), possible);
  const std::vector<float> got = download(coefficients, stream);
  const SubbandTable table(shape, c.d, false);
  for (const Subband& s : table.all()) {
    const Field<float> want = subband_view(field, s);
    const CoefficientLayout::Band band = layout.band(s);
    for (int f = 0; f < s.shape.frames; ++f)
      for (int y = 0; y < s.shape.height; ++y)
        ASSERT_EQ(std::memcmp(want.row(f, y),
                              &got[band.origin + static_cast<std::size_t>(f) * band.frame_stride +
                                   static_cast<std::size_t>(y) * band.row_stride],
                              static_cast<std::size_t>(s.shape.width) * sizeof(float)),
                  0)
            << "band " << s.temporal_band << " resolution " << s.resolution << " orientation " << s.orientation
            << " frame " << f << " row " << y;
  }

  inverse_transform<float>(field, c.d, pool, SimdLevel::kScalar);
  const auto restored = poisoned<float>(n, stream);
  const MutableDeviceSamples out{reinterpret_cast<std::byte*>(restored.data()), in.format, in.row_stride,
                                 in.frame_stride};
  ASSERT_EQ(transform.inverse(coefficients.data(), nullptr, 0, {}, out, stream), possible);
  const std::vector<float> back = download(restored, stream);
  const std::vector<float> untouched = download(poisoned<float>(1, stream), stream);
  for (std::size_t i = 0; i < n; ++i) {
    const bool sample = i % frame < pitch * height && i % frame % pitch < width;
    ASSERT_EQ(std::memcmp(&back[i], sample ? &reference[i] : untouched.data(), sizeof(float)), 0)
        << "frame " << i / frame << " row " << i % frame / pitch << " column " << i % frame % pitch;
  }
}

/// What a block may have of shared memory on the device that is emulated, as on those that these kernels are for.
class SharedMemory {
 public:
  SharedMemory() {
#if defined(TRIVELET_CUDA_EMULATION)
    emulated_shared_memory = 227 << 10;
#else
    int bytes = 0;
    check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), "cudaDeviceGetAttribute");
    enough_ = bytes >= 227 << 10;
#endif
  }
  ~SharedMemory() {
#if defined(TRIVELET_CUDA_EMULATION)
    emulated_shared_memory = before_;
#endif
  }
  bool enough() const { return enough_; }

 private:
  bool enough_ = true;
#if defined(TRIVELET_CUDA_EMULATION)
  int before_ = emulated_shared_memory;
#endif
};

TEST_F(GpuDwt, LevelsInOneKernel) {
  const SharedMemory memory;
  if (!memory.enough()) GTEST_SKIP() << "no GPU with 227 KB of shared memory a block";
  // One tile and several, cut off in either direction; levels with one row, column or frame, which have no choice; segments of all lengths: forward 4 pairs of frames, inverse 8,
  // and what is left of them.
  std::vector<Shape> shapes = {{2, 2, 2},    {3, 5, 3},   {5, 9, 17},  {9, 66, 122}, {16, 33, 21},  {17, 12, 40},
                               {18, 40, 24}, {37, 10, 9}, {4, 130, 9}, {6, 31, 250}, {3, 148, 248}, {13, 71, 125}};
  if (!kEmulated || test::full())
    for (const Shape& s : {Shape{20, 148, 248}, Shape{64, 256, 333}, Shape{41, 98, 391}, Shape{130, 40, 60}})
      shapes.push_back(s);
  unsigned seed = 4000;
  for (const Shape& s : shapes) {
    run_jointly({s, {Layout::kDyadic, 3, 3, Wavelet::kCdf97, Wavelet::kCdf97}}, seed++);
    if (HasFatalFailure()) return;
  }
}

TEST_F(GpuDwt, LevelsInOneKernelOnlyWhereTheyCanBe) {
  const SharedMemory memory;
  const Shape s{6, 20, 20};
  const Decomposition best{Layout::kDyadic, 2, 2, Wavelet::kCdf97, Wavelet::kCdf97};
  const Stream stream;
  const DeviceBuffer<float> values(24 * 20 * 6), gains(6);
  const std::size_t bytes = values.size() * sizeof(float);
  check(cudaMemsetAsync(values.data(), 0, bytes, stream.get()), "cudaMemsetAsync");
  check(cudaMemsetAsync(gains.data(), 0, 6 * sizeof(float), stream.get()), "cudaMemsetAsync");
  const auto levels = [&](const Decomposition& d, JointLevels joint, SampleFormat format, std::ptrdiff_t pitch,
                          bool with_gains) {
    DeviceTransform<float> transform(s, d, joint);
    const DeviceBuffer<float> coefficients(transform.layout().size());
    const int n = transform.forward({reinterpret_cast<const std::byte*>(values.data()), format, 4 * pitch, 80 * pitch},
                                    0, coefficients.data(), nullptr, stream, with_gains ? gains.data() : nullptr);
    stream.synchronize();
    return n;
  };
  const auto possible = JointLevels::kWherePossible;
  EXPECT_EQ(levels(best, possible, SampleFormat::kValues, 20, false), memory.enough() ? 2 : 0);
  EXPECT_EQ(levels(best, possible, SampleFormat::kValues, 20, true), memory.enough() ? 1 : 0);
  EXPECT_EQ(levels(best, possible, SampleFormat::kU8, 20, false), memory.enough() ? 1 : 0);
  EXPECT_EQ(levels(best, possible, SampleFormat::kValues, 21, false), memory.enough() ? 1 : 0);
  EXPECT_EQ(levels(best, JointLevels::kNone, SampleFormat::kValues, 20, false), 0);
  EXPECT_EQ(levels(best, JointLevels::kWhereFaster, SampleFormat::kValues, 20, false), 0) << "so small a level";
  EXPECT_EQ(levels({Layout::kT2d, 1, 2, Wavelet::kCdf97, Wavelet::kCdf97}, possible, SampleFormat::kValues, 20, false),
            0);
  EXPECT_EQ(
      levels({Layout::kDyadic, 2, 2, Wavelet::kCdf53, Wavelet::kCdf97}, possible, SampleFormat::kValues, 20, false), 0);
  EXPECT_EQ(
      levels({Layout::kDyadic, 2, 2, Wavelet::kCdf97, Wavelet::kHaar}, possible, SampleFormat::kValues, 20, false), 0);
#if defined(TRIVELET_CUDA_EMULATION)
  const Shape large{20, 128, 124};  // for two multiprocessors; its second level is small
  DeviceTransform<float> chosen(large, best);
  const DeviceBuffer<float> in(large.samples()), coefficients(chosen.layout().size());
  check(cudaMemsetAsync(in.data(), 0, in.size() * sizeof(float), stream.get()), "cudaMemsetAsync");
  const MutableDeviceSamples samples{reinterpret_cast<std::byte*>(in.data()), SampleFormat::kValues, 4 * 124,
                                     4 * 124 * 128};
  EXPECT_EQ(chosen.forward({samples.data, samples.format, samples.row_stride, samples.frame_stride}, 0,
                           coefficients.data(), nullptr, stream),
            1);
  EXPECT_EQ(chosen.inverse(coefficients.data(), nullptr, 0, {}, samples, stream), 1);
  emulated_shared_memory = 99 << 10;
  EXPECT_EQ(levels(best, possible, SampleFormat::kValues, 20, false), 0) << "a device with too little shared memory";
#endif
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
