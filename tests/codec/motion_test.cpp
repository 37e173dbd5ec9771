// Motion: lifting and its inverse, and the coded form. motion_stream_test.cpp tests whole streams.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "codec/base/simd.h"
#include "codec/motion/field_frames.h"
#include "codec/motion/motion_field.h"
#include "codec/motion/motion_frames.h"
#include "codec/motion/motion_lift.h"
#include "codec/motion/sad_kernels.h"
#include "tests/support/one_of.h"

namespace trivelet {
namespace {

const bool kFewRounds = test::kSanitized && !test::full();

enum class Vectors { kStill, kSmall, kAny, kFar };

MotionVector vector_of(Vectors kind, std::mt19937& random) {
  const int reach = kind == Vectors::kStill   ? 0
                    : kind == Vectors::kSmall ? 40
                    : kind == Vectors::kAny   ? 400
                                              : kMotionReach;
  std::uniform_int_distribution<int> q(-reach, reach);
  return {static_cast<std::int16_t>(q(random)), static_cast<std::int16_t>(q(random))};
}

// Every cell with motion of its own, or in runs of equal cells.
GopMotion random_motion(const MotionPlaces& places, int width, int height, Vectors kind, std::mt19937& random) {
  GopMotion m(places, width, height);
  for (int l = 0; l < places.levels; ++l)
    for (const int t : motion_frames(l, places)) {
      MotionField& f = m.fields[static_cast<std::size_t>(t)];
      for (std::size_t i = 0; i < f.size(); ++i) {
        if (i > 0 && random() % 2 == 0) {
          f[i] = f[i - 1];
          continue;
        }
        MotionCell& c = f[i];
        const auto mode = random() % 8;
        c.mode = mode == 0  ? MotionMode::kPlain
                 : mode < 4 ? MotionMode::kBoth
                 : mode < 6 ? MotionMode::kPast
                            : MotionMode::kOther;
        if (motion_references(t, l, places).other < 0 && c.mode != MotionMode::kPlain) c.mode = MotionMode::kPast;
        for (MotionVector& v : c.vector) v = vector_of(kind, random);
        for (std::int8_t& p : c.plain) p = static_cast<std::int8_t>(static_cast<int>(random() % 64) - 32);
      }
    }
  return m;
}

MotionPlaces key_first(int frames, int levels) { return {frames, GopKey::kFirst, levels}; }

// The keys that a GOP of so many frames can have.
std::vector<GopKey> keys_of(int frames, int levels) {
  if (frames < 1 << levels) return {GopKey::kFirst, GopKey::kOpen};
  return {GopKey::kFirst, GopKey::kLast, GopKey::kOpen};
}

struct Volume {
  Shape shape;
  std::vector<std::int32_t> samples;
  Volume(Shape s, int bits, int fraction, std::mt19937& random) : shape(s), samples(s.samples()) {
    std::uniform_int_distribution<std::int32_t> value(-(1 << (bits - 1)), (1 << (bits - 1)) - 1);
    for (auto& v : samples) v = value(random) * (1 << fraction);
  }
  Field<std::int32_t> field() {
    return {samples.data(), shape, shape.width, static_cast<std::ptrdiff_t>(shape.width) * shape.height};
  }
};

// Sizes smaller than a cell, odd, of several regions; components of every scale.
TEST(MotionLift, InverseOfForwardIsExact) {
  std::mt19937 random(1);
  ThreadPool pool(3);
  const int sizes[][2] = {{1, 1}, {3, 5}, {17, 9}, {64, 48}, {71, 33}, {300, 20}};
  test::OneOf some(test::kSanitized ? 5 : 1);
  for (const auto& [width, height] : sizes)
    for (const int frames : {1, 2, 3, 5, 8, 9})
      for (const Vectors kind : {Vectors::kStill, Vectors::kSmall, Vectors::kAny, Vectors::kFar})
        for (const int bits : {1, 8, 16})
          for (const int fraction : {0, kMotionFraction}) {
            if (!some()) continue;
            const int sx = static_cast<int>(random() % 3), sy = static_cast<int>(random() % 3);
            const std::vector<GopKey> keys = keys_of(frames, 3);
            const MotionPlaces places(frames, keys[random() % keys.size()], 3);
            const GopMotion m = random_motion(places, width, height, kind, random);
            const Shape s{places.count, (height + (1 << sy) - 1) >> sy, (width + (1 << sx) - 1) >> sx};
            Volume v(s, bits, fraction, random);
            KeyStates before;
            for (int l = 0; l < 3; ++l)
              before.push_back(Volume({1, s.height, s.width}, bits, fraction, random).samples);
            if (places.key == GopKey::kLast) std::fill_n(v.samples.begin(), s.height * s.width, 0);
            if (places.key == GopKey::kOpen) std::copy(before[0].begin(), before[0].end(), v.samples.begin());
            const Volume original = v;
            const MotionComponent c{static_cast<int>(random() % 4), {sx, sy}, fraction, bits};
            KeyStates left(5), found(5);  // a GOP behind may have more levels
            forward_motion(v.field(), m, c, {&before, &left, nullptr}, pool, SimdLevel::kBest);
            if (frames > 1 && kind == Vectors::kAny && bits > 1) {
              EXPECT_NE(v.samples, original.samples);
            }
            const Volume lifted = v;
            inverse_motion(v.field(), m, c, 0, {&before, &found, nullptr}, pool, SimdLevel::kBest);
            ASSERT_EQ(v.samples, original.samples)
                << width << "x" << height << "x" << frames << ", " << bits << " bits, scale " << sx << "," << sy;
            ASSERT_EQ(left, found);
            ASSERT_EQ(left[0].empty(), !places.ends_with_key());
            ASSERT_EQ(left[3], left[4]);
            if (!left[0].empty()) {
              const std::size_t frame = left[0].size();
              const auto last = lifted.samples.end() - static_cast<std::ptrdiff_t>(frame);
              ASSERT_TRUE(std::equal(left[3].begin(), left[3].end(), last)) << "as its levels have left it";
            }
          }
}

// Coefficients that no encoder produces, at any scale: forward still inverts the inverse transform.
TEST(MotionLift, TakesAnyIntegers) {
  std::mt19937 random(2);
  ThreadPool pool(1);
  for (int round = 0; round < 40; ++round) {
    const int shift = round % 7;
    const GopMotion m = random_motion(key_first(8, 3), 90, 50, Vectors::kFar, random);
    Volume v({8, (50 + (1 << shift) - 1) >> shift, (90 + (1 << shift) - 1) >> shift}, 8, 0, random);
    for (auto& x : v.samples) x = static_cast<std::int32_t>(random());
    const Volume original = v;
    const MotionComponent c{0, {shift, shift}, kMotionFraction, 8};
    inverse_motion(v.field(), m, c, 0, {}, pool, SimdLevel::kBest);
    forward_motion(v.field(), m, c, {}, pool, SimdLevel::kBest);
    ASSERT_EQ(v.samples, original.samples) << "scale " << shift;
  }
}

// Samples of a random limit, beyond 16 bits at first or in the middle of lifting, are lifted back as in 32 bits, and so
// are the key frames of GOPs in turn.
TEST(MotionLift, FramesOf16BitsGiveTheSame) {
  std::mt19937 random(7);
  ThreadPool pool(3);
  int stayed = 0, widened = 0, wide = 0;
  FramePool spare(10000);
  for (int round = 0; round < (kFewRounds ? 60 : 120); ++round) {
    constexpr int kLevels = 3;
    const int frames = 1 + static_cast<int>(random() % 9), scale = static_cast<int>(random() % 3);
    const int width = 1 + static_cast<int>(random() % 90), height = 1 + static_cast<int>(random() % 50);
    const MotionComponent c{0, {scale, scale}, random() % 2 == 0 ? 0 : kMotionFraction, 8};
    const auto limit = static_cast<std::int32_t>(1000 << random() % 6) + static_cast<std::int32_t>(random() % 1000);
    KeyStates keys(kLevels + 1), other_keys(kLevels + 1);
    NarrowKeyStates narrow_keys(kLevels + 1);
    bool follows = false;
    for (int gop = 0; gop < 3; ++gop) {
      const std::vector<GopKey> possible = keys_of(frames, kLevels);
      const MotionPlaces places(frames, follows ? GopKey::kOpen : possible[random() % possible.size()], kLevels);
      GopMotion m = random_motion(places, width << scale, height << scale, Vectors::kSmall, random);
      if (random() % 2 == 0) m.predict_keys();
      Volume v({places.count, height, width}, 8, 0, random);
      for (auto& x : v.samples)
        x = std::uniform_int_distribution<std::int32_t>(-limit, limit)(random) >> (gop == 0 ? 2 : 0);
      const std::size_t frame = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
      const SimdLevel simd = round % 3 == 0 ? SimdLevel::kScalar : round % 3 == 1 ? SimdLevel::kAvx2 : SimdLevel::kBest;
      MotionFrames small(v.shape, simd, round % 2 == 0 ? &spare : nullptr);
      for (int t = 0; t < places.count; ++t) small.set(t, v.samples.data() + static_cast<std::size_t>(t) * frame);
      const bool was_narrow = small.is_narrow();

      const auto before = [&](KeyStates& of) { return follows ? &of : nullptr; };
      const auto low = [&](const KeyStates& of) { return follows ? &of.back() : nullptr; };
      inverse_motion(v.field(), m, c, 0, {before(keys), &keys, nullptr, low(keys)}, pool, SimdLevel::kBest);
      inverse_motion(small, m, c, 0,
                     {before(other_keys), &other_keys, nullptr, low(other_keys), follows ? &narrow_keys : nullptr,
                      &narrow_keys, follows ? &narrow_keys.back() : nullptr},
                     pool, simd);
      ++(small.is_narrow() ? stayed : was_narrow ? widened : wide);
      std::vector<std::int32_t> row(static_cast<std::size_t>(width));
      for (int t = first_place(places.key); t < places.count; ++t)
        for (int y = 0; y < height; ++y) {
          small.read_row(t, y, row.data());
          ASSERT_TRUE(std::equal(row.begin(), row.end(), v.field().row(t, y))) << t << ", " << y << ", limit " << limit;
        }
      follows = places.ends_with_key();
      for (std::size_t l = 0; follows && l < keys.size(); ++l) {
        const auto& narrow = narrow_keys[l];
        ASSERT_NE(narrow.empty(), other_keys[l].empty());
        const std::vector<std::int32_t> is =
            narrow.empty() ? other_keys[l] : std::vector<std::int32_t>(narrow.begin(), narrow.end());
        ASSERT_EQ(is, keys[l]) << "level " << l << ", limit " << limit;
      }
    }
  }
  EXPECT_GT(stayed, 10);
  EXPECT_GT(widened, 10);
  EXPECT_GT(wide, 5);
}

// Samples that 16 bits hold to the end, at first or never are lifted as in 32 bits, and so are the key frames of GOPs in
// turn, in the memory of the coefficients.
TEST(MotionLift, FieldsOf16BitsGiveTheSame) {
  std::mt19937 random(17);
  ThreadPool pool(3);
  int stayed = 0, widened = 0, wide = 0;
  for (int round = 0; round < (kFewRounds ? 80 : 160); ++round) {
    constexpr int kLevels = 3;
    const int frames = 1 + static_cast<int>(random() % 9), scale = static_cast<int>(random() % 3);
    const int width = 1 + static_cast<int>(random() % 90), height = 1 + static_cast<int>(random() % 50);
    const int fraction = random() % 2 == 0 ? 0 : kMotionFraction;
    const MotionComponent c{0, {scale, scale}, fraction, 8};
    const auto limit = static_cast<std::int32_t>((fraction > 0 ? 60 : 1000) << random() % 9);
    KeyStates keys(kLevels + 1), other_keys(kLevels + 1);
    bool follows = false;
    for (int gop = 0; gop < 3; ++gop) {
      const std::vector<GopKey> possible = keys_of(frames, kLevels);
      const MotionPlaces places(frames, follows ? GopKey::kOpen : possible[random() % possible.size()], kLevels);
      const GopMotion m = random_motion(places, width << scale, height << scale, Vectors::kSmall, random);
      Volume v({places.count, height, width}, 8, 0, random);
      for (auto& x : v.samples) x = std::uniform_int_distribution<std::int32_t>(-limit, limit)(random);
      Volume other = v;
      for (auto& x : v.samples) x *= 1 << fraction;
      const auto before = [&](KeyStates& of) { return follows ? &of : nullptr; };
      forward_motion(v.field(), m, c, {before(keys), &keys, nullptr}, pool, SimdLevel::kScalar);
      const SimdLevel simd = round % 3 == 0 ? SimdLevel::kScalar : round % 3 == 1 ? SimdLevel::kAvx2 : SimdLevel::kBest;
      FieldFrames small(other.field(), fraction, pool, simd);
      const bool was_narrow = small.is_narrow();
      forward_motion(small, m, c, {before(other_keys), &other_keys, nullptr}, pool, simd);
      ++(small.is_narrow() ? stayed : was_narrow ? widened : wide);
      std::vector<std::int32_t> last;
      small.append(places.count - 1, last);
      ASSERT_TRUE(std::equal(last.begin(), last.end(), v.field().row(places.count - 1, 0)));
      if (round % 2 == 0) {
        small.widen();
        ASSERT_EQ(other.samples, v.samples) << "limit " << limit;
      } else {
        small.make_real();
        for (std::size_t i = 0; i < v.samples.size(); ++i)
          ASSERT_EQ(std::bit_cast<float>(other.samples[i]), static_cast<float>(v.samples[i]) / 16.0f);
      }
      ASSERT_EQ(other_keys, keys) << "limit " << limit;
      follows = places.ends_with_key();
    }
  }
  const int least = kFewRounds ? 10 : 20;
  EXPECT_GT(stayed, least);
  EXPECT_GT(widened, least);
  EXPECT_GT(wide, least);
}

// Regions that move alike, with whole samples and quarters, and cells of their own among them.
GopMotion patchy_motion(const MotionPlaces& places, int width, int height, std::mt19937& random) {
  GopMotion m = random_motion(places, width, height, Vectors::kAny, random);
  for (MotionField& f : m.fields) {
    if (f.empty()) continue;
    for (int n = 0; n < 6; ++n) {
      MotionCell c = f[random() % f.size()];
      if (n % 2 == 0)
        for (MotionVector& v : c.vector) v = {static_cast<std::int16_t>(v.x & ~3), static_cast<std::int16_t>(v.y & ~3)};
      if (n % 3 == 0) c.vector = {};
      const int rows = m.grid.rows, columns = m.grid.columns;
      const int y0 = static_cast<int>(random()) & 0x7fff, x0 = static_cast<int>(random()) & 0x7fff;
      for (int y = y0 % rows; y < std::min(rows, y0 % rows + 7); ++y)
        for (int x = x0 % columns; x < std::min(columns, x0 % columns + 14); ++x) f[m.grid.index(y, x)] = c;
    }
  }
  return m;
}

TEST(MotionLift, DependsNeitherOnThreadsNorOnInstructions) {
  std::mt19937 random(3);
  ThreadPool one(1), four(4);
  for (const int fraction : {0, kMotionFraction})
    for (const int shift : {0, 1, 2, 4})
      for (const int width : {200, 333}) {
        const GopMotion m = patchy_motion(key_first(9, 4), width, 70, random);
        const Shape shape{9, (70 + (1 << shift) - 1) >> shift, (width + (1 << shift) - 1) >> shift};
        const MotionComponent c{1, {shift, shift}, fraction, 10};
        Volume v(shape, 10, fraction, random);
        if (shift == 2)
          for (auto& x : v.samples) x = static_cast<std::int32_t>(random());
        Volume reference = v;
        forward_motion(reference.field(), m, c, {}, one, SimdLevel::kScalar);
        for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
          for (ThreadPool* pool : {&one, &four}) {
            if (simd > detected_simd()) continue;
            Volume other = v;
            forward_motion(other.field(), m, c, {}, *pool, simd);
            ASSERT_EQ(other.samples, reference.samples)
                << to_string(simd) << ", " << pool->threads() << " threads, width " << width << ", scale " << shift;
            inverse_motion(other.field(), m, c, 0, {}, *pool, simd);
            ASSERT_EQ(other.samples, v.samples) << to_string(simd) << ", width " << width << ", scale " << shift;
          }
      }
}

// What blocks overlap to is what FORMAT.md says, sample by sample.
TEST(MotionLift, PredictsAsItIsDefined) {
  std::mt19937 random(7);
  ThreadPool pool(1);
  for (const int shift : {0, 1, 3})
    for (const int width : {75, 170}) {
      const int height = 41;
      const GopMotion m = patchy_motion(key_first(3, 1), width, height, random);
      Volume v({3, (height + (1 << shift) - 1) >> shift, (width + (1 << shift) - 1) >> shift}, 8, kMotionFraction,
               random);
      Volume lifted = v;
      forward_motion(lifted.field(), m, {2, {shift, shift}, kMotionFraction, 8}, {}, pool, SimdLevel::kBest);
      const int size = cell_size(shift);
      const auto sample = [&](int t, int y, int x) {
        return v.field().row(t, std::clamp(y, 0, v.shape.height - 1))[std::clamp(x, 0, v.shape.width - 1)];
      };
      const auto along_row = [&](int t, int y, int x, int phase) {
        std::int32_t sum = 32;
        for (int i = 0; i < 8; ++i) sum += motion_tap(phase, i) * sample(t, y, x + i - 3);
        return sum >> 6;
      };
      const auto look_up = [&](int t, MotionVector q, int y, int x) {
        const int ey = eighths(q.y, shift), ex = eighths(q.x, shift);
        std::int32_t sum = 32;
        for (int i = 0; i < 8; ++i) {
          const int j = y + (ey >> 3) + i - 3;
          sum += motion_tap(ey & 7, i) * along_row(t, std::clamp(j, 0, v.shape.height - 1), x + (ex >> 3), ex & 7);
        }
        return sum >> 6;
      };
      const auto predict = [&](const MotionCell& c, int y, int x) {
        if (c.mode == MotionMode::kPlain) return motion_plain(c.plain[2], 8);
        if (c.mode == MotionMode::kPast) return look_up(0, c.vector[0], y, x);
        if (c.mode == MotionMode::kOther) return look_up(2, c.vector[1], y, x);
        return motion_mean_of(look_up(0, c.vector[0], y, x), look_up(2, c.vector[1], y, x));
      };
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x) {
          const int corner_y = (y + size / 2) / size, corner_x = (x + size / 2) / size;
          const int wy = motion_weight(size, (y + size / 2) % size), wx = motion_weight(size, (x + size / 2) % size);
          std::int32_t sum = 0;
          for (int k = 0; k < 4; ++k) {
            const int cy = cell_at(corner_y - 1 + (k >> 1), shift, m.grid.rows);
            const int cx = cell_at(corner_x - 1 + (k & 1), shift, m.grid.columns);
            sum += (k >> 1 ? wy : kMotionWeight - wy) * (k & 1 ? wx : kMotionWeight - wx) *
                   predict(m.fields[1][m.grid.index(cy, cx)], y, x);
          }
          ASSERT_EQ(lifted.field().row(1, y)[x], sample(1, y, x) - motion_mean(sum)) << y << " " << x;
        }
    }
}

// Blocks that stand still and are predicted from both sides: inside a GOP, where no update is clipped, these are the
// steps of the reversible 5/3.
TEST(MotionLift, WithoutMovementItIsTheFiveThree) {
  std::mt19937 random(4);
  ThreadPool pool(1);
  GopMotion m(key_first(9, 1), 40, 24);
  for (const int t : motion_frames(0, m.places))
    for (MotionCell& c : m.fields[static_cast<std::size_t>(t)]) c.mode = MotionMode::kBoth;
  Volume v({9, 24, 40}, 5, 0, random);  // small differences
  Volume old = v;
  forward_motion(v.field(), m, {0, {0, 0}, 0, 8}, {}, pool, SimdLevel::kBest);
  forward_transform<std::int32_t>(old.field(), {Layout::kT2d, 1, 0, Wavelet::kCdf53, Wavelet::kCdf53}, pool,
                                  SimdLevel::kBest);
  for (int t = 1; t < 8; ++t)
    for (int y = 0; y < 24; ++y)
      for (int x = 0; x < 40; ++x) {
        const std::int32_t wanted = old.field().row(t, y)[x];
        if (t % 2 == 0 && std::abs(wanted - v.field().row(t, y)[x]) > 0) {
          // Only by the clip: 12 grey levels.
          ASSERT_LE(std::abs(v.field().row(t, y)[x]), 16 + 12);
          continue;
        }
        ASSERT_EQ(v.field().row(t, y)[x], wanted) << t << " " << y << " " << x;
      }
}

// Blocks that stand still and are predicted from both sides give back half of what they take: then the product is exact,
// and the scalar product of two volumes as they come out of the inverse is that of one and the product of the other.
TEST(MotionLift, ProductIsThatOfTheInverseAndItsTranspose) {
  std::mt19937 random(8);
  ThreadPool one(1), three(3);
  constexpr int kLevels = 2;
  for (const GopKey key : {GopKey::kFirst, GopKey::kOpen}) {
    const MotionPlaces places(key == GopKey::kFirst ? 9 : 8, key, kLevels);
    GopMotion m(places, 40, 24);
    for (int l = 0; l < kLevels; ++l)
      for (const int t : motion_frames(l, places))
        for (MotionCell& c : m.fields[static_cast<std::size_t>(t)]) c.mode = MotionMode::kBoth;
    const MotionComponent component{0, {0, 0}, kMotionFraction, 8};
    const Shape shape{places.count, 24, 40};
    Volume a(shape, 8, kMotionFraction, random), b(shape, 8, kMotionFraction, random);
    KeyStates none(kLevels, std::vector<std::int32_t>(40 * 24));
    if (key != GopKey::kFirst)
      for (Volume* v : {&a, &b}) std::fill_n(v->samples.begin(), 40 * 24, 0);
    Volume product = b, other = b;
    correlate_motion(product.field(), m, component, one, SimdLevel::kScalar);
    correlate_motion(other.field(), m, component, three, SimdLevel::kBest);
    EXPECT_EQ(product.samples, other.samples);
    const auto dot = [](const Volume& x, const Volume& y) {
      double sum = 0;
      for (std::size_t i = 0; i < x.samples.size(); ++i) sum += static_cast<double>(x.samples[i]) * y.samples[i];
      return sum;
    };
    const double wanted = dot(a, product), scale = dot(b, product);
    // Updates of the inverse are clipped, those of the product are not.
    for (Volume* v : {&a, &b}) {
      for (auto& x : v->samples) x /= 8;
      inverse_motion(v->field(), m, component, 0, {&none, nullptr, nullptr}, one, SimdLevel::kBest);
    }
    EXPECT_NEAR(dot(a, b) * 8 * 8, wanted, 0.01 * scale);
    EXPECT_NEAR(dot(b, b) * 8 * 8, scale, 0.01 * scale);
  }
}

// A picture that moves by whole samples is predicted without a rest where nothing comes in from outside.
TEST(MotionLift, FollowsMovement) {
  std::mt19937 random(5);
  ThreadPool pool(2);
  constexpr int kWidth = 96, kHeight = 64;
  Volume big({1, 200, 200}, 8, 0, random);
  Volume v({2, kHeight, kWidth}, 8, 0, random);
  for (int t = 0; t < 2; ++t)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) v.field().row(t, y)[x] = big.field().row(0, 50 + y - 3 * t)[50 + x + 5 * t];
  GopMotion m(key_first(2, 1), kWidth, kHeight);
  for (MotionCell& c : m.fields[1]) c.vector[0] = {20, -12};
  forward_motion(v.field(), m, {0, {0, 0}, 0, 8}, {}, pool, SimdLevel::kBest);
  for (int y = 8; y < kHeight - 8; ++y)
    for (int x = 8; x < kWidth - 8; ++x) ASSERT_EQ(v.field().row(1, y)[x], 0);
}

// A level less: low frames alone come back to what they were as low frames of the finer level.
TEST(MotionLift, LeavesOutFineLevels) {
  std::mt19937 random(6);
  ThreadPool pool(1);
  const GopMotion m = random_motion(key_first(8, 3), 40, 40, Vectors::kSmall, random);
  Volume v({8, 40, 40}, 8, 0, random);
  const MotionComponent c{0, {0, 0}, 0, 8};
  Volume one = v;
  GopMotion finest = m;
  finest.places.levels = 1;
  forward_motion(one.field(), finest, c, {}, pool, SimdLevel::kBest);
  forward_motion(v.field(), m, c, {}, pool, SimdLevel::kBest);
  Volume half({4, 40, 40}, 8, 0, random);
  for (int t = 0; t < 4; ++t) std::copy_n(v.field().row(2 * t, 0), 1600, half.field().row(t, 0));
  inverse_motion(half.field(), m, c, 1, {}, pool, SimdLevel::kBest);
  for (int t = 0; t < 4; ++t)
    for (int i = 0; i < 1600; ++i) ASSERT_EQ(half.field().row(t, 0)[i], one.field().row(2 * t, 0)[i]);
}

// ------------------------------------------------------------------------------------------------------------- search

// The sum of the magnitudes of the Hadamard transform of 8x8 differences, without any trick.
template <class F>
int plain_satd(const F& difference) {
  int total = 0;
  for (int v = 0; v < 8; ++v)
    for (int u = 0; u < 8; ++u) {
      int sum = 0;
      for (int j = 0; j < 8; ++j)
        for (int i = 0; i < 8; ++i) {
          const bool odd = std::popcount(static_cast<unsigned>(u & i)) % 2 != std::popcount(unsigned(v & j)) % 2;
          sum += difference(j, i) * (odd ? -1 : 1);
        }
      total += std::abs(sum);
    }
  return total;
}

constexpr int kStride = 70;

/// A block with the numbers that a kernel is to give for it.
template <class T>
struct PlainCosts {
  const T *a, *b;
  int cell_sad(int y, int x) const {
    int sum = 0;
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 8; ++i) sum += std::abs(a[(y + j) * kStride + x + i] - b[(y + j) * kStride + x + i]);
    return sizeof(T) == 1 ? sum : sum >> kDeepShift;
  }
  int cell_satd(int y, int x) const {
    return plain_satd([&](int j, int i) {
             const int d = a[(y + j) * kStride + x + i] - b[(y + j) * kStride + x + i];
             return sizeof(T) == 1 ? d : (d + (1 << (kDeepShift - 1))) >> kDeepShift;
           }) /
           2;
  }
  int sad(int size) const { return sum(size, &PlainCosts::cell_sad); }
  int satd(int size) const { return sum(size, &PlainCosts::cell_satd); }

 private:
  int sum(int size, int (PlainCosts::*cell)(int, int) const) const {
    int total = 0;
    for (int y = 0; y < size; y += 8)
      for (int x = 0; x < size; x += 8) total += (this->*cell)(y, x);
    return total;
  }
};

template <class T>
void check_sad_kernels(const std::vector<T>& a, const std::vector<T>& b, const std::vector<T>& c) {
  const PlainCosts<T> plain{a.data(), b.data()};
  std::vector<T> mean(a.size()), constant(a.size(), b[0]);
  for (std::size_t i = 0; i < a.size(); ++i) mean[i] = static_cast<T>((b[i] + c[i] + 1) >> 1);
  for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
    if (simd > detected_simd()) continue;
    const SadKernels<T>& k = sad_kernels(simd, T{});
    for (const int size : {8, 16, 32, 64}) {
      EXPECT_EQ(k.sad(a.data(), b.data(), kStride, size), plain.sad(size)) << size;
      EXPECT_EQ(k.satd_of_mean(a.data(), b.data(), c.data(), kStride, size),
                (PlainCosts<T>{a.data(), mean.data()}.satd(size)));
      EXPECT_EQ(k.satd_of_plain(a.data(), b[0], kStride, size), (PlainCosts<T>{a.data(), constant.data()}.satd(size)));
      std::int32_t cells[8];
      k.satd_of_cells(a.data(), b.data(), kStride, size / 8, cells);
      for (int i = 0; i < size / 8; ++i) EXPECT_EQ(cells[i], plain.cell_satd(0, 8 * i));
    }
    std::uint16_t sads[64];
    k.sad_of_cells(a.data(), b.data(), kStride, sads);
    for (int i = 0; i < 64; ++i) ASSERT_EQ(sads[i], plain.cell_sad(i / 8 * 8, i % 8 * 8));
    const T* const many[3] = {b.data(), c.data() + 5, b.data() + kStride};
    std::int32_t satds[3];
    k.satd_of_many(a.data(), many, kStride, 3, satds);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(satds[i], (PlainCosts<T>{a.data(), many[i]}.cell_satd(0, 0)));
    // The whole numbers are those of the plain filter, at any length.
    std::vector<T> between[3];
    for (auto& v : between) v.resize(33);
    T* const out[3] = {between[0].data(), between[1].data(), between[2].data()};
    for (const int step : {1, kStride}) {
      const T* in = a.data() + 4 * kStride + 4;
      k.interpolate(in, step, out, 33);
      for (int q = 1; q < 4; ++q)
        for (int x = 0; x < 33; ++x) {
          int sum = 32;
          for (int i = 0; i < kMotionTaps; ++i) sum += motion_tap(2 * q, i) * in[x + (i - kMotionTapsBefore) * step];
          const int least = sizeof(T) == 1 ? 0 : -4096, most = sizeof(T) == 1 ? 255 : 4095;
          ASSERT_EQ(between[q - 1][static_cast<std::size_t>(x)], std::clamp(sum >> 6, least, most));
        }
    }
  }
}

TEST(MotionSearch, CostsAreTheSameInAllKernels) {
  std::mt19937 random(8);
  std::vector<std::uint8_t> bytes[3];
  std::vector<std::int16_t> deep[3];
  for (const int range : {1, 300, 4095}) {
    for (int i = 0; i < 3; ++i) {
      bytes[i].resize(kStride * 65);
      deep[i].resize(kStride * 65);
      for (auto& x : bytes[i])
        x = static_cast<std::uint8_t>(random() % static_cast<unsigned>(std::min(range + 1, 256)));
      for (auto& x : deep[i]) x = static_cast<std::int16_t>(static_cast<int>(random() % (2 * range + 1)) - range);
    }
    if (range == 4095) {  // the largest sums
      std::fill_n(bytes[0].begin(), bytes[0].size() / 2, std::uint8_t{255});
      std::fill_n(bytes[1].begin(), bytes[1].size() / 2, std::uint8_t{0});
      std::fill_n(deep[0].begin(), deep[0].size() / 2, std::int16_t{4095});
      std::fill_n(deep[1].begin(), deep[1].size() / 2, std::int16_t{-4095});
    }
    check_sad_kernels(bytes[0], bytes[1], bytes[2]);
    check_sad_kernels(deep[0], deep[1], deep[2]);
  }
}

TEST(MotionSearch, FineCostsAreTheSameInAllKernels) {
  std::mt19937 random(9);
  std::vector<std::int16_t> a(kStride * 8), b(a.size()), c(a.size()), mean(a.size());
  for (const int range : {1, 300, 2047}) {
    for (auto* v : {&a, &b, &c})
      for (auto& x : *v) x = static_cast<std::int16_t>(static_cast<int>(random() % (2 * range + 1)) - range);
    for (std::size_t i = 0; i < a.size(); ++i) mean[i] = static_cast<std::int16_t>((b[i] + c[i] + 1) >> 1);
    const auto satd = [&](const std::vector<std::int16_t>& other) {
      return plain_satd([&](int j, int i) {
               const auto at = static_cast<std::size_t>(j * kStride + i);
               return (a[at] - other[at]) >> 3;
             }) *
             8 / 5;
    };
    int sad = 0;
    for (std::size_t j = 0; j < 8; ++j)
      for (std::size_t i = 0; i < 8; ++i) sad += std::abs(a[j * kStride + i] - b[j * kStride + i]);
    for (const SimdLevel simd : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512}) {
      if (simd > detected_simd()) continue;
      const FineSadKernels& k = fine_sad_kernels(simd);
      EXPECT_EQ(k.sad(a.data(), kStride, b.data(), kStride), sad);
      EXPECT_EQ(k.satd(a.data(), kStride, b.data(), kStride), satd(b));
      EXPECT_EQ(k.satd_of_mean(a.data(), kStride, b.data(), c.data(), kStride), satd(mean));
    }
  }
}

// --------------------------------------------------------------------------------------------------------------- bytes

bool same_prediction(const GopMotion& a, const GopMotion& b) {
  for (std::size_t t = 0; t < a.fields.size(); ++t) {
    if (a.fields[t].size() != b.fields[t].size()) return false;
    for (std::size_t i = 0; i < a.fields[t].size(); ++i)
      if (!a.fields[t][i].predicts_as(b.fields[t][i])) return false;
  }
  return true;
}

TEST(MotionBytes, ComeBack) {
  std::mt19937 random(7);
  for (const auto& [width, height] : {std::pair{1, 1}, {40, 24}, {263, 31}, {300, 530}})
    for (const int frames : {2, 3, 5, 8, 13})
      for (const Vectors kind : {Vectors::kStill, Vectors::kSmall, Vectors::kFar}) {
        const std::vector<GopKey> keys = keys_of(frames, 3);
        const MotionPlaces places(frames, keys[random() % keys.size()], 3);
        GopMotion m = random_motion(places, width, height, kind, random);
        GopMotion back(places, width, height);
        for (int level = 2; level >= 0; --level) {
          const std::vector<std::uint8_t> bytes = encode_motion(m, level, 4);
          decode_motion(bytes.data(), bytes.size(), level, 4, back);
        }
        ASSERT_TRUE(same_prediction(m, back)) << width << "x" << height << "x" << frames;
      }
}

TEST(MotionBytes, LargeBlocksAreCheap) {
  GopMotion m(key_first(2, 1), 256, 256);
  for (MotionCell& c : m.fields[1]) {
    c.vector[0] = {5, -9};
    c.log2_cells = 3;
  }
  EXPECT_LT(encode_motion(m, 0, 1).size(), 16u);
}

TEST(MotionBytes, DamageIsAnErrorOrOtherMotion) {
  std::mt19937 random(8);
  int errors = 0;
  for (int round = 0; round < 400; ++round) {
    GopMotion m = random_motion(key_first(5, 2), 300, 80, Vectors::kFar, random);
    std::vector<std::uint8_t> bytes = encode_motion(m, 1, 3);
    if (round % 3 == 0)
      bytes.resize(random() % bytes.size());
    else
      bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1 + random() % 255);
    GopMotion back(key_first(5, 2), 300, 80);
    try {
      decode_motion(bytes.data(), bytes.size(), 1, 3, back);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kBadStream);
      ++errors;
    }
    for (const MotionField& f : back.fields)
      for (const MotionCell& c : f)
        for (const MotionVector& v : c.vector) ASSERT_LE(std::max(std::abs(v.x), std::abs(v.y)), kMotionReach);
  }
  EXPECT_GT(errors, 50);
}

}  // namespace
}  // namespace trivelet
