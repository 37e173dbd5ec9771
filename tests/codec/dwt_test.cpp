// The wavelet transform against a simple reference: bits, reconstruction, shapes, strides, SIMD and threads.
#include "codec/transform/dwt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/support/one_of.h"
#include "trivelet/error.h"

namespace trivelet {
namespace {

// ------------------------------------------------------------------------------------------------------- reference
// One signal at a time, index by index; T = double checks the mathematics, float and int32 the bits.

int reflect(int i, int n) {
  if (n == 1) return 0;
  const int period = 2 * (n - 1);
  i = ((i % period) + period) % period;
  return i < n ? i : period - i;
}

template <class T>
class Signal {
 public:
  Signal(std::vector<T>& x) : x_(x), n_(static_cast<int>(x.size())) {}
  T at(int i) const { return x_[static_cast<std::size_t>(reflect(i, n_))]; }
  T near(int i) const { return at(i - 1) + at(i + 1); }
  T far(int i) const { return at(i - 3) + at(i + 3); }
  template <class F>
  void each(int parity, F f) {
    for (int i = parity; i < n_; i += 2) x_[static_cast<std::size_t>(i)] = f(i, x_[static_cast<std::size_t>(i)]);
  }
  int size() const { return n_; }

 private:
  std::vector<T>& x_;
  int n_;
};

/// A lifting step of a filter: which parity it changes and what it adds. sign = -1 undoes it.
template <class T>
void reference_step(Signal<T>& s, Wavelet w, int step, int sign) {
  const int parity = 1 - step % 2;
  if constexpr (std::is_floating_point_v<T>) {
    if (w == Wavelet::kHaar) {
      s.each(parity, [&](int i, T x) -> T {
        if (parity == 1) return x + static_cast<T>(-sign) * s.at(i - 1);
        return i + 1 < s.size() ? x + static_cast<T>(0.5 * sign) * s.at(i + 1) : x;
      });
      return;
    }
    const float c97[] = {-1.586134342f, -0.05298011854f, 0.8829110762f, 0.4435068522f};
    const float c53[] = {-0.5f, 0.25f};
    const T c = static_cast<T>(w == Wavelet::kCdf97 ? c97[step] : c53[step]) * static_cast<T>(sign);
    s.each(parity, [&](int i, T x) -> T { return x + c * s.near(i); });
  } else {
    s.each(parity, [&](int i, T x) -> T {
      T amount = 0;
      if (w == Wavelet::kHaar && parity == 1)
        amount = -s.at(i - 1);
      else if (w == Wavelet::kHaar)
        amount = i + 1 < s.size() ? s.at(i + 1) >> 1 : 0;
      else if (w == Wavelet::kCdf53)
        amount = parity == 1 ? -(s.near(i) >> 1) : (s.near(i) + 2) >> 2;
      else
        amount = parity == 1 ? -((9 * s.near(i) - s.far(i) + 8) >> 4) : (9 * s.near(i) - s.far(i) + 16) >> 5;
      return x + static_cast<T>(sign) * amount;
    });
  }
}

int steps_of(Wavelet w) { return w == Wavelet::kCdf97 ? 4 : 2; }

template <class T>
void reference_lift(std::vector<T>& x, Wavelet w, bool inverse) {
  if (x.size() < 2) return;
  Signal<T> s(x);
  const int steps = steps_of(w);
  for (int j = 0; j < steps; ++j) reference_step(s, w, inverse ? steps - 1 - j : j, inverse ? -1 : 1);
}

template <class T>
std::vector<T> separate(const std::vector<T>& x) {
  std::vector<T> out;
  for (std::size_t i = 0; i < x.size(); i += 2) out.push_back(x[i]);
  for (std::size_t i = 1; i < x.size(); i += 2) out.push_back(x[i]);
  return out;
}

template <class T>
std::vector<T> interleave(const std::vector<T>& x) {
  std::vector<T> out(x.size());
  const std::size_t lows = (x.size() + 1) / 2;
  for (std::size_t i = 0; i < x.size(); ++i) out[i] = i % 2 ? x[lows + i / 2] : x[i / 2];
  return out;
}

template <class T>
struct Volume {
  Shape shape;
  std::vector<T> x;
  explicit Volume(Shape s) : shape(s), x(s.samples()) {}
  T& at(int t, int y, int c) {
    return x[(static_cast<std::size_t>(t) * static_cast<std::size_t>(shape.height) + static_cast<std::size_t>(y)) *
                 static_cast<std::size_t>(shape.width) +
             static_cast<std::size_t>(c)];
  }
};

/// One level along one axis (0 time, 1 rows, 2 columns) of the region low in `lt` splits of time and `ls` of space.
template <class T>
void reference_axis(Volume<T>& v, int axis, int lt, int ls, Wavelet w, bool inverse) {
  const int dt = 1 << lt, dy = 1 << ls, width = low_length(v.shape.width, ls);
  const auto run = [&](int n, auto at) {
    std::vector<T> line(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) line[static_cast<std::size_t>(i)] = at(i);
    if (axis == 2 && inverse) line = interleave(line);
    reference_lift(line, w, inverse);
    if (axis == 2 && !inverse) line = separate(line);
    for (int i = 0; i < n; ++i) at(i) = line[static_cast<std::size_t>(i)];
  };
  const int frames = low_length(v.shape.frames, lt), rows = low_length(v.shape.height, ls);
  if (axis == 0)
    for (int y = 0; y < rows; ++y)
      for (int x = 0; x < width; ++x) run(frames, [&](int i) -> T& { return v.at(i * dt, y * dy, x); });
  else if (axis == 1)
    for (int t = 0; t < frames; ++t)
      for (int x = 0; x < width; ++x) run(rows, [&](int i) -> T& { return v.at(t * dt, i * dy, x); });
  else
    for (int t = 0; t < frames; ++t)
      for (int y = 0; y < rows; ++y) run(width, [&](int i) -> T& { return v.at(t * dt, y * dy, i); });
}

struct Pass {
  int axis, lt, ls;
  Wavelet wavelet;
};

std::vector<Pass> passes(const Decomposition& d) {
  std::vector<Pass> p;
  if (d.layout == Layout::kT2d) {
    for (int l = 0; l < d.temporal_levels; ++l) p.push_back({0, l, 0, d.temporal});
    for (int l = 0; l < d.spatial_levels; ++l) {
      p.push_back({2, 0, l, d.spatial});
      p.push_back({1, 0, l, d.spatial});
    }
  } else {
    for (int l = 0; l < d.spatial_levels; ++l) {
      const int lt = std::min(l, d.temporal_levels);
      if (l < d.temporal_levels) p.push_back({0, lt, l, d.temporal});
      p.push_back({2, lt, l, d.spatial});
      p.push_back({1, lt, l, d.spatial});
    }
  }
  return p;
}

template <class T>
void reference_transform(Volume<T>& v, const Decomposition& d, bool inverse) {
  std::vector<Pass> p = passes(d);
  if (inverse) std::reverse(p.begin(), p.end());
  for (const Pass& q : p) reference_axis(v, q.axis, q.lt, q.ls, q.wavelet, inverse);
}

// ---------------------------------------------------------------------------------------------------------- helpers

std::vector<SimdLevel> simd_levels() {
  std::vector<SimdLevel> levels;
  for (const SimdLevel l : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) levels.push_back(l);
  return levels;
}

/// A field with rows and frames further apart than needed; the gaps and the surroundings must stay untouched.
template <class T>
class GuardedField {
 public:
  explicit GuardedField(Shape s, int gap = 3, int shift = 1)
      : shape_(s),
        row_(s.width + gap),
        frame_(static_cast<std::ptrdiff_t>(row_) * s.height + 5),
        shift_(shift),
        memory_(static_cast<std::size_t>(frame_ * s.frames + 2 * kMargin), poison()) {}
  static T poison() { return static_cast<T>(-123456789); }
  Field<T> field() { return {memory_.data() + kMargin + shift_, shape_, row_, frame_}; }
  void set(const Volume<T>& v) {
    for (int t = 0; t < shape_.frames; ++t)
      for (int y = 0; y < shape_.height; ++y)
        for (int x = 0; x < shape_.width; ++x) field().row(t, y)[x] = const_cast<Volume<T>&>(v).at(t, y, x);
  }
  Volume<T> get() {
    Volume<T> v(shape_);
    for (int t = 0; t < shape_.frames; ++t)
      for (int y = 0; y < shape_.height; ++y)
        for (int x = 0; x < shape_.width; ++x) v.at(t, y, x) = field().row(t, y)[x];
    return v;
  }
  bool surroundings_intact() {
    std::vector<T> copy = memory_;
    const std::ptrdiff_t first = kMargin + shift_;
    for (int t = 0; t < shape_.frames; ++t)
      for (int y = 0; y < shape_.height; ++y)
        std::fill_n(copy.begin() + first + t * frame_ + y * row_, shape_.width, poison());
    return std::all_of(copy.begin(), copy.end(), [](T x) { return x == poison(); });
  }

 private:
  static constexpr std::ptrdiff_t kMargin = 64;
  Shape shape_;
  std::ptrdiff_t row_, frame_, shift_;
  std::vector<T> memory_;
};

template <class T>
bool same_bits(const Volume<T>& a, const Volume<T>& b) {
  return std::memcmp(a.x.data(), b.x.data(), a.x.size() * sizeof(T)) == 0;
}

std::string name(const Shape& s) {
  return std::to_string(s.frames) + "x" + std::to_string(s.height) + "x" + std::to_string(s.width);
}

std::string describe(const Shape& s, const Decomposition& d) {
  return name(s) + (d.layout == Layout::kT2d ? " t+2D" : " dyadic") + " levels " + std::to_string(d.temporal_levels) +
         "," + std::to_string(d.spatial_levels) + " wavelets " + std::to_string(static_cast<int>(d.temporal)) + "," +
         std::to_string(static_cast<int>(d.spatial));
}

/// Smooth content with edges and noise, as integers in [low, high].
std::vector<std::int32_t> content(const Shape& s, std::int32_t low, std::int32_t high, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> x;
  const double middle = 0.5 * (low + high), swing = 0.5 * (static_cast<double>(high) - low);
  for (int t = 0; t < s.frames; ++t)
    for (int y = 0; y < s.height; ++y)
      for (int c = 0; c < s.width; ++c) {
        double v = std::sin(0.05 * c + 0.1 * t) * 0.5 + std::cos(0.07 * y) * 0.3;
        if ((c / 7 + y / 5 + t / 3) % 11 == 0) v += 0.7;
        v += (static_cast<double>(random() % 1000) / 1000 - 0.5) * 0.4;
        if (random() % 50 == 0) v = random() % 2 ? 2 : -2;
        x.push_back(static_cast<std::int32_t>(std::lround(middle + swing * std::clamp(v, -1.0, 1.0))));
      }
  return x;
}

template <class T>
std::vector<Wavelet> wavelets() {
  if (std::is_same_v<T, float>) return {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kCdf97};
  return {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kRev137};
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> s = {{1, 1, 1},   {1, 1, 2},    {1, 2, 1},    {2, 1, 1},   {1, 3, 3}, {3, 2, 5},
                                       {1, 17, 31}, {5, 31, 17},  {4, 4, 4},    {7, 7, 7},   {8, 1, 9}, {9, 33, 1},
                                       {33, 5, 67}, {16, 40, 64}, {2, 65, 130}, {3, 70, 300}};
  return s;
}

std::vector<Decomposition> decompositions(Wavelet temporal, Wavelet spatial) {
  std::vector<Decomposition> d;
  for (const auto& [lt, ls] : {std::pair{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 3}, {4, 5}, {8, 8}}) {
    d.push_back({Layout::kT2d, lt, ls, temporal, spatial});
    if (lt <= ls) d.push_back({Layout::kDyadic, lt, ls, temporal, spatial});
  }
  return d;
}

struct SampleFormat {
  int bytes;
  bool is_signed;
  std::int32_t low, high;
};
const SampleFormat kFormats[] = {
    {1, false, 0, 255}, {1, true, -128, 127}, {2, false, 0, 65535}, {2, true, -32768, 32767}, {2, false, 0, 1023}};

/// Samples as bytes with odd strides.
class Samples {
 public:
  Samples(Shape s, SampleFormat f, int row_gap, int frame_gap)
      : shape_(s),
        format_(f),
        row_(static_cast<std::ptrdiff_t>(s.width) * f.bytes + row_gap),
        frame_(row_ * s.height + frame_gap),
        memory_(static_cast<std::size_t>(frame_ * s.frames + 1), std::byte{0xA5}) {}
  MutableVolumeView view() { return {memory_.data() + 1, shape_, format_.bytes, format_.is_signed, row_, frame_}; }
  VolumeView const_view() { return {memory_.data() + 1, shape_, format_.bytes, format_.is_signed, row_, frame_}; }
  void set(const std::vector<std::int32_t>& x) {
    std::size_t k = 0;
    for_each([&](std::byte* p) { std::memcpy(p, &x[k++], static_cast<std::size_t>(format_.bytes)); });  // little endian
  }
  std::vector<std::int32_t> get() {
    std::vector<std::int32_t> x;
    for_each([&](const std::byte* p) {
      std::uint32_t u = 0;
      std::memcpy(&u, p, static_cast<std::size_t>(format_.bytes));
      const std::int32_t range = 1 << (8 * format_.bytes);
      std::int32_t v = static_cast<std::int32_t>(u);
      if (format_.is_signed && v >= range / 2) v -= range;
      x.push_back(v);
    });
    return x;
  }

 private:
  template <class F>
  void for_each(F f) {
    const MutableVolumeView v = view();
    for (int t = 0; t < shape_.frames; ++t)
      for (int y = 0; y < shape_.height; ++y)
        for (int c = 0; c < shape_.width; ++c) f(v.row(t, y) + static_cast<std::ptrdiff_t>(c) * format_.bytes);
  }
  Shape shape_;
  SampleFormat format_;
  std::ptrdiff_t row_, frame_;
  std::vector<std::byte> memory_;
};

template <class T>
class DwtTest : public testing::Test {};
using Types = testing::Types<float, std::int32_t>;
TYPED_TEST_SUITE(DwtTest, Types);

// ------------------------------------------------------------------------------------------------------------ tests

TYPED_TEST(DwtTest, EverySimdLevelAndThreadCountGivesTheBitsOfTheReference) {
  using T = TypeParam;
  ThreadPool pool1(1), pool2(2), pool4(4);
  test::OneOf chosen(test::kSanitized ? 11 : 7), way(test::kSanitized ? 4 : 1);
  unsigned seed = 1;
  for (const Shape& s : shapes())
    for (const Wavelet wt : wavelets<T>())
      for (const Wavelet ws : wavelets<T>())
        for (const Decomposition& d : decompositions(wt, ws)) {
          if ((wt != ws && d.temporal_levels == 0) || !chosen()) continue;
          SCOPED_TRACE(describe(s, d));
          const std::vector<std::int32_t> c = content(s, -512, 511, seed++);
          Volume<T> input(s);
          for (std::size_t i = 0; i < c.size(); ++i) input.x[i] = static_cast<T>(c[i]);
          Volume<T> coefficients = input;
          reference_transform(coefficients, d, false);
          Volume<T> output = coefficients;
          reference_transform(output, d, true);
          for (const SimdLevel simd : simd_levels())
            for (ThreadPool* pool : {&pool1, &pool2, &pool4}) {
              if (!way()) continue;
              GuardedField<T> g(s);
              g.set(input);
              forward_transform(g.field(), d, *pool, simd);
              ASSERT_TRUE(same_bits(g.get(), coefficients)) << "forward " << to_string(simd) << pool->threads();
              ASSERT_TRUE(g.surroundings_intact());
              inverse_transform(g.field(), d, *pool, simd);
              ASSERT_TRUE(same_bits(g.get(), output)) << "inverse " << to_string(simd) << pool->threads();
              ASSERT_TRUE(g.surroundings_intact());
            }
          if constexpr (std::is_same_v<T, std::int32_t>) {
            ASSERT_TRUE(same_bits(output, input));
          } else {
            for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(output.x[i], input.x[i], 1e-2) << i;
          }
        }
}

TYPED_TEST(DwtTest, SamplesInAndOutOfEveryFormat) {
  using T = TypeParam;
  ThreadPool pool1(1), pool3(3);
  test::OneOf chosen(7);
  unsigned seed = 100;
  for (const Shape& s : {Shape{1, 1, 1}, Shape{1, 17, 31}, Shape{5, 9, 131}, Shape{3, 2, 66}, Shape{9, 16, 48}})
    for (const SampleFormat& f : kFormats)
      for (const Wavelet w : wavelets<T>())
        for (const Decomposition& d : decompositions(w, w)) {
          if (!chosen()) continue;
          SCOPED_TRACE(describe(s, d) + " bytes " + std::to_string(f.bytes) + (f.is_signed ? " signed" : ""));
          const std::int32_t offset = f.is_signed ? 0 : (f.high + 1) / 2;
          const std::vector<std::int32_t> x = content(s, f.low, f.high, seed++);
          Samples samples(s, f, 1, 3);
          samples.set(x);
          Volume<T> coefficients(s);
          for (std::size_t i = 0; i < x.size(); ++i) coefficients.x[i] = static_cast<T>(x[i] - offset);
          reference_transform(coefficients, d, false);
          for (const SimdLevel simd : simd_levels())
            for (ThreadPool* pool : {&pool1, &pool3}) {
              GuardedField<T> g(s, 0, simd == SimdLevel::kScalar ? 0 : 1);
              forward_transform(samples.const_view(), offset, g.field(), d, *pool, simd);
              ASSERT_TRUE(same_bits(g.get(), coefficients)) << to_string(simd);
              ASSERT_TRUE(g.surroundings_intact());
              Samples out(s, f, 3, 0);
              inverse_transform(g.field(), d, 1.0f, offset, f.low, f.high, out.view(), *pool, simd);
              ASSERT_EQ(out.get(), x) << to_string(simd);
            }
        }
}

TEST(Dwt, SplitSweepsAndManyTilesGiveTheSameBits) {
  ThreadPool pool1(1), pool4(4);
  for (const Shape& s : {Shape{2, 97, 1201}, Shape{1, 300, 519}, Shape{70, 3, 1100}, Shape{600, 2, 131}}) {
    const Decomposition d{Layout::kT2d, 3, 4, Wavelet::kCdf97, Wavelet::kCdf97};
    const std::vector<std::int32_t> c = content(s, 0, 255, 7);
    Volume<float> expected(s);
    for (std::size_t i = 0; i < c.size(); ++i) expected.x[i] = static_cast<float>(c[i] - 128);
    reference_transform(expected, d, false);
    Samples samples(s, kFormats[0], 0, 0);
    samples.set(c);
    for (const SimdLevel simd : simd_levels())
      for (ThreadPool* pool : {&pool1, &pool4}) {
        GuardedField<float> g(s);
        forward_transform(samples.const_view(), 128, g.field(), d, *pool, simd);
        ASSERT_TRUE(same_bits(g.get(), expected)) << name(s) << to_string(simd);
        Samples out(s, kFormats[0], 0, 0);
        inverse_transform(g.field(), d, 1.0f, 128, 0, 255, out.view(), *pool, simd);
        ASSERT_EQ(out.get(), c);
      }
  }
}

/// Fields above the size from which results are written past the caches.
TEST(Dwt, LargeFieldsRoundTrip) {
  ThreadPool pool(2);
  const Shape s{test::kSanitized && !test::full() ? 9 : 17, 541, 1031};
  const std::vector<std::int32_t> c = content(s, 0, 255, 8);
  Samples samples(s, kFormats[0], 0, 0);
  samples.set(c);
  std::vector<float> first;
  test::OneOf chosen(5);
  for (const SimdLevel simd : simd_levels())
    for (const int gap : {9, 0}) {  // aligned and unaligned rows
      if (!chosen()) continue;
      const Decomposition d{Layout::kT2d, 3, 2, Wavelet::kCdf97, Wavelet::kCdf97};
      std::vector<float> memory(static_cast<std::size_t>(1031 + gap) * 541 * static_cast<std::size_t>(s.frames));
      const Field<float> field{memory.data(), s, 1031 + gap, (1031 + gap) * 541};
      forward_transform(samples.const_view(), 128, field, d, pool, simd);
      std::vector<float> dense;
      for (int t = 0; t < s.frames; ++t)
        for (int y = 0; y < s.height; ++y) dense.insert(dense.end(), field.row(t, y), field.row(t, y) + s.width);
      if (first.empty()) first = dense;
      ASSERT_EQ(std::memcmp(first.data(), dense.data(), first.size() * sizeof(float)), 0);
      Samples out(s, kFormats[0], 0, 0);
      inverse_transform(field, d, 1.0f, 128, 0, 255, out.view(), pool, simd);
      ASSERT_EQ(out.get(), c);
    }
}

TEST(Dwt, FloatStaysCloseToDoublePrecision) {
  ThreadPool pool(1);
  const Shape s{17, 45, 61};
  for (const Wavelet w : wavelets<float>())
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic}) {
      const Decomposition d{layout, 4, 5, w, w};
      const std::vector<std::int32_t> c = content(s, -32768, 32767, 3);
      Volume<double> exact(s);
      Volume<float> input(s);
      for (std::size_t i = 0; i < c.size(); ++i) exact.x[i] = input.x[i] = static_cast<float>(c[i]);
      reference_transform(exact, d, false);
      GuardedField<float> g(s);
      g.set(input);
      forward_transform(g.field(), d, pool, SimdLevel::kBest);
      const Volume<float> out = g.get();
      for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(out.x[i], exact.x[i], 32768 * 1e-5);
      inverse_transform(g.field(), d, pool, SimdLevel::kBest);
      const Volume<float> back = g.get();
      for (std::size_t i = 0; i < c.size(); ++i) ASSERT_NEAR(back.x[i], input.x[i], 32768 * 1e-5);
    }
}

TEST(Dwt, DcGainOfConstantSignals) {
  ThreadPool pool(1);
  const Shape s{16, 32, 32};
  for (const Wavelet w : wavelets<float>()) {
    const Decomposition d{Layout::kT2d, 4, 5, w, w};
    GuardedField<float> g(s);
    Volume<float> v(s);
    std::fill(v.x.begin(), v.x.end(), 100.0f);
    g.set(v);
    forward_transform(g.field(), d, pool, SimdLevel::kBest);
    const double gain = std::pow(dc_gain(w), 4 + 2 * 5);
    EXPECT_NEAR(g.field().row(0, 0)[0], 100 * gain, 1e-3 * gain);
    EXPECT_NEAR(g.field().row(8, 0)[0], 0, 1e-3);
    EXPECT_NEAR(g.field().row(0, 16)[0], 0, 1e-3);
    EXPECT_NEAR(g.field().row(0, 0)[1], 0, 1e-3);
  }
  EXPECT_EQ(dc_gain(Wavelet::kRev137), 1.0);
}

/// 13/7 with the rounding taken as linear, for the norms.
void linear_inverse(std::vector<double>& x, Wavelet w) {
  if (w != Wavelet::kRev137) {
    reference_lift(x, w, true);
    return;
  }
  Signal<double> s(x);
  s.each(0, [&](int i, double v) { return v - (9 * s.near(i) - s.far(i)) / 32; });
  s.each(1, [&](int i, double v) { return v + (9 * s.near(i) - s.far(i)) / 16; });
}

TEST(Dwt, SynthesisNormsAreThoseOfTheFilters) {
  for (const Wavelet w : {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kCdf97, Wavelet::kRev137})
    for (int level = 0; level <= 8; ++level)
      for (const bool high : {false, true}) {
        if (high && level == 0) continue;
        std::vector<double> x{std::vector<double>(64)};
        if (level == 0) x[20] = 1;
        for (int l = level; l > 0; --l) {
          std::vector<double> y(2 * x.size());
          if (l == level)
            y[high ? 65 : 64] = 1;
          else
            for (std::size_t i = 0; i < x.size(); ++i) y[2 * i] = x[i];
          linear_inverse(y, w);
          x = y;
        }
        double energy = 0;
        for (const double v : x) energy += v * v;
        for (const bool reversible : {false, true}) {
          if ((w == Wavelet::kCdf97 && reversible) || (w == Wavelet::kRev137 && !reversible)) continue;
          const double norm = synthesis_norm(w, reversible, high, level);
          EXPECT_NEAR(norm / std::sqrt(energy), 1.0, 6e-9) << static_cast<int>(w) << high << level;
        }
      }
  EXPECT_THROW(synthesis_norm(Wavelet::kCdf97, true, false, 1), Error);
  EXPECT_THROW(synthesis_norm(Wavelet::kRev137, false, false, 1), Error);
  EXPECT_THROW(synthesis_norm(Wavelet::kHaar, false, true, 0), Error);
  EXPECT_THROW(synthesis_norm(Wavelet::kHaar, false, false, 9), Error);
}

TEST(Dwt, SamplesAreRoundedHalfToEvenAndClamped) {
  ThreadPool pool(1);
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> in = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f,  0.49999997f, 127.49f, 127.5f, 1e9f,  -1e9f,
                                 inf,  -inf, nan,  3e38f, 126.5f, -128.5f,     -127.5f, 0,      -0.0f, 1e-40f};
  const std::vector<std::int32_t> expected = {128, 130, 130, 128, 126, 128, 255, 255, 255, 0,
                                              255, 0,   0,   255, 254, 0,   0,   128, 128, 128};
  for (const SimdLevel simd : simd_levels()) {
    std::vector<float> values;
    std::vector<std::int32_t> wanted;
    for (int k = 0; k < 5; ++k) {
      values.insert(values.end(), in.begin(), in.end());
      wanted.insert(wanted.end(), expected.begin(), expected.end());
    }
    const Shape s{1, 1, static_cast<int>(values.size())};
    Samples out(s, kFormats[0], 0, 0);
    const Field<float> field{values.data(), s, s.width, s.width};
    inverse_transform(field, Decomposition{}, 1.0f, 128, 0, 255, out.view(), pool, simd);
    EXPECT_EQ(out.get(), wanted) << to_string(simd);
    inverse_transform(field, Decomposition{}, 0.5f, 128, 100, 140, out.view(), pool, simd);
    EXPECT_EQ(out.get()[1], 129);  // 0.75 -> 1
    EXPECT_EQ(out.get()[8], 140);
    EXPECT_EQ(out.get()[9], 100);
  }
}

/// Whatever a corrupt stream delivers: no undefined behaviour (sanitizers), the same samples everywhere.
TYPED_TEST(DwtTest, HostileCoefficients) {
  using T = TypeParam;
  ThreadPool pool(2);
  const Shape s{9, 21, 53};
  for (const Wavelet w : wavelets<T>()) {
    const Decomposition d{Layout::kT2d, 3, 3, w, w};
    std::vector<std::int32_t> first;
    for (const SimdLevel simd : simd_levels()) {
      std::mt19937 random(5);
      Volume<T> v(s);
      for (T& x : v.x) {
        auto bits = static_cast<std::uint32_t>(random());
        if (random() % 3 == 0) bits = 0x7FFFFFFFu + bits % 2;  // the largest and smallest int32; NaN and -0
        std::memcpy(&x, &bits, sizeof x);
      }
      GuardedField<T> g(s);
      g.set(v);
      Samples out(s, kFormats[3], 0, 0);
      inverse_transform(g.field(), d, 1.0f, 0, -32768, 32767, out.view(), pool, simd);
      if (first.empty()) first = out.get();
      EXPECT_EQ(out.get(), first);
      g.set(v);
      forward_transform(g.field(), d, pool, simd);
    }
  }
}

TEST(Dwt, ReducedResolutionIsTheLowBandTimesTheGain) {
  ThreadPool pool(1);
  const Shape s{8, 64, 64};
  std::vector<std::int32_t> c(s.samples(), 77);
  Samples samples(s, kFormats[0], 0, 0);
  samples.set(c);
  GuardedField<float> g(s);
  forward_transform(samples.const_view(), 128, g.field(), {Layout::kT2d, 2, 3, Wavelet::kCdf97, Wavelet::kCdf97}, pool,
                    SimdLevel::kBest);
  // half the size in time, rows and columns
  Field<float> low = g.field();
  low.shape = {4, 32, 32};
  low.frame_stride *= 2;
  low.row_stride *= 2;
  const double gain = 1 / std::pow(dc_gain(Wavelet::kCdf97), 3);
  Samples out(low.shape, kFormats[0], 0, 0);
  inverse_transform(low, {Layout::kT2d, 1, 2, Wavelet::kCdf97, Wavelet::kCdf97}, static_cast<float>(gain), 128, 0, 255,
                    out.view(), pool, SimdLevel::kBest);
  for (const std::int32_t v : out.get()) ASSERT_EQ(v, 77);
}

TEST(Dwt, RejectsWhatItCannotDo) {
  ThreadPool pool(1);
  const Shape s{2, 4, 4};
  std::vector<float> f(s.samples());
  std::vector<std::int32_t> n(s.samples());
  const Field<float> ff{f.data(), s, 4, 16};
  const Field<std::int32_t> fi{n.data(), s, 4, 16};
  const auto run = [&](auto field, Decomposition d) { forward_transform(field, d, pool, SimdLevel::kScalar); };
  const auto d = [](int lt, int ls, Wavelet t, Wavelet w, Layout layout = Layout::kT2d) {
    return Decomposition{layout, lt, ls, t, w};
  };
  EXPECT_THROW(run(ff, d(1, 1, Wavelet::kRev137, Wavelet::kCdf97)), Error);
  EXPECT_THROW(run(ff, d(1, 1, Wavelet::kCdf97, Wavelet::kRev137)), Error);
  EXPECT_THROW(run(fi, d(1, 1, Wavelet::kCdf97, Wavelet::kCdf53)), Error);
  EXPECT_THROW(run(fi, d(1, 1, Wavelet::kCdf53, Wavelet::kCdf97)), Error);
  EXPECT_THROW(run(ff, d(9, 1, Wavelet::kCdf97, Wavelet::kCdf97)), Error);
  EXPECT_THROW(run(ff, d(1, -1, Wavelet::kCdf97, Wavelet::kCdf97)), Error);
  EXPECT_THROW(run(ff, d(2, 1, Wavelet::kCdf97, Wavelet::kCdf97, Layout::kDyadic)), Error);
  EXPECT_THROW(run(ff, d(1, 1, static_cast<Wavelet>(7), Wavelet::kCdf97)), Error);
  EXPECT_NO_THROW(run(fi, d(0, 1, Wavelet::kCdf97, Wavelet::kCdf53)));  // the filter of an axis without levels is free
  Samples other({2, 4, 5}, kFormats[0], 0, 0), same(s, kFormats[0], 0, 0);
  EXPECT_THROW(forward_transform(other.const_view(), 0, ff, Decomposition{}, pool, SimdLevel::kScalar), Error);
  EXPECT_THROW(inverse_transform(fi, d(1, 1, Wavelet::kCdf53, Wavelet::kCdf53), 0.5f, 0, 0, 255, same.view(), pool,
                                 SimdLevel::kScalar),
               Error);
  EXPECT_THROW(inverse_transform(ff, Decomposition{}, 1.0f, 0, 0, 256, same.view(), pool, SimdLevel::kScalar), Error);
}

}  // namespace
}  // namespace trivelet
