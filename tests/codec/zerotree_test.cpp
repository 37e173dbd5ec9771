// The zerotree coder on random coefficients: exact round trips, exact truncation at every plane, every layer and every
// lower resolution, and the same bytes for all instruction sets.

#include "codec/entropy/fast/zerotree.h"
#include "codec/base/stream_header.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "tests/support/fields.h"
#include "tests/support/left_out_zeros.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using test::Volume;

struct Case {
  Shape shape;
  Layout layout;
  int temporal_levels;
  int spatial_levels;
  int block_size;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.shape.frames << "x" << c.shape.height << "x" << c.shape.width
             << (c.layout == Layout::kDyadic ? " dyadic " : " t+2D ") << c.temporal_levels << "x" << c.spatial_levels
             << " blocks " << c.block_size;
}

const Shape kShapes[] = {{1, 1, 1},   {2, 1, 1},    {33, 1, 1},    {1, 3, 5},   {3, 5, 3},   {1, 1, 77},
                         {1, 77, 1},  {5, 33, 2},   {8, 8, 8},     {7, 13, 9},  {33, 9, 17}, {4, 40, 70},
                         {2, 65, 31}, {16, 32, 32}, {1, 130, 150}, {9, 100, 40}};

// Every shape with a number of decompositions, chosen at random but always the same.
std::vector<Case> cases(int per_shape) {
  std::mt19937 random(99);
  std::vector<Case> out;
  for (const Shape& s : kShapes)
    for (int i = 0; i < per_shape; ++i) {
      Case c;
      c.shape = s;
      c.layout = i & 1 ? Layout::kDyadic : Layout::kT2d;
      c.spatial_levels = static_cast<int>(random() % 7);
      c.temporal_levels = static_cast<int>(random() % 6);
      if (c.layout == Layout::kDyadic) c.temporal_levels = std::min(c.temporal_levels, c.spatial_levels);
      c.block_size = 32 << (random() % 4);
      out.push_back(c);
    }
  return out;
}

// Coefficients of all magnitudes, from few to many of them.
Volume<std::int32_t> random_field(const Shape& s, std::mt19937& random) {
  Volume<std::int32_t> v(s);
  const unsigned rarity[] = {1, 2, 7, 50, 1000};
  const unsigned one_of = rarity[random() % 5];
  const int bits = 1 + static_cast<int>(random() % 30);
  for (auto& x : v.memory) {
    if (random() % one_of != 0) continue;
    // Small values are the more frequent ones.
    const int n = 1 + static_cast<int>(random() % static_cast<unsigned>(bits));
    const auto m = static_cast<std::int32_t>(random() & ((1u << n) - 1));
    x = random() & 1 ? m : -m;
  }
  return v;
}

Decomposition decomposition(const Case& c) {
  return {c.layout, c.temporal_levels, c.spatial_levels, Wavelet::kCdf53, Wavelet::kCdf53};
}

// Cuts that fall from layer to layer and never lie below the parent's.
LayerPlan random_plan(const BlockGrid& grid, std::mt19937& random) {
  LayerPlan plan;
  plan.layers = 1 + static_cast<int>(random() % 5);
  const int segments = segment_count(grid);
  plan.low.assign(static_cast<std::size_t>(plan.layers * segments), 0);
  for (int l = 0; l + 1 < plan.layers; ++l)
    for (int b = 0; b < grid.table().temporal_bands(); ++b)
      for (int k = 0; k < grid.resolutions(); ++k) {
        const int s = segment_index(grid, b, k);
        const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
        auto low = [&](int layer, int segment) -> std::uint8_t& {
          return plan.low[static_cast<std::size_t>(layer * segments + segment)];
        };
        int least = 0;
        if (k > 0)
          least = low(l, s - 1);
        else if (parent >= 0)
          least = low(l, segment_index(grid, parent, 0));
        int most = 30;
        if (l > 0) most = low(l - 1, s);
        low(l, s) = static_cast<std::uint8_t>(
            least + static_cast<int>(random() % static_cast<unsigned>(std::max(1, most - least + 1))));
      }
  return plan;
}

// A coded field, all blocks; bytes with the padding a decoder may read.
struct Coded {
  std::vector<CodedBlock> blocks;
};

template <class T>
Coded encode_all(const BlockGrid& grid, const Field<T>& field, const StepTable* steps, const LayerPlan& plan,
                 SimdLevel simd) {
  BlockEncoder encoder(simd);
  Coded out;
  for (int by = 0; by < grid.rows(); ++by)
    for (int bx = 0; bx < grid.columns(); ++bx) {
      CodedBlock b;
      if constexpr (std::is_same_v<T, float>)
        encoder.encode(grid, by, bx, field, *steps, plan, b);
      else
        encoder.encode(grid, by, bx, field, plan, b);
      b.bytes.resize(b.bytes.size() + 16);
      out.blocks.push_back(std::move(b));
    }
  return out;
}

std::vector<LayeredSegment> received(const BlockGrid& grid, const CodedBlock& b, const LayerPlan& plan, int layers) {
  std::vector<LayeredSegment> out(static_cast<std::size_t>(segment_count(grid)));
  for (std::size_t s = 0; s < out.size(); ++s) {
    out[s].top = b.top[s];
    for (int l = 0; l < layers; ++l) {
      const std::size_t part = s * static_cast<std::size_t>(plan.layers) + static_cast<std::size_t>(l);
      const std::uint8_t low = plan.low[static_cast<std::size_t>(l) * out.size() + s];
      out[s].parts.push_back({b.bytes.data() + b.offset[part], b.size[part], std::min(low, b.top[s])});
    }
  }
  return out;
}

template <class T>
void decode_all(const BlockGrid& grid, const SubbandTable& target, const Coded& coded, const LayerPlan& plan,
                int layers, int stop, int centroid, const StepTable* steps, SimdLevel simd, const Field<T>& field,
                ZeroPatches* left_out = nullptr) {
  BlockDecoder decoder(FastMode::kStaged, simd);
  for (int by = 0; by < grid.rows(); ++by)
    for (int bx = 0; bx < grid.columns(); ++bx)
      decoder.decode(grid, target, by, bx,
                     received(grid, coded.blocks[static_cast<std::size_t>(by * grid.columns() + bx)], plan, layers),
                     stop, centroid, steps, BlockMemory<T>{field}, left_out);
}

std::vector<SimdLevel> levels() {
  std::vector<SimdLevel> out;
  for (const SimdLevel l : {SimdLevel::kScalar, SimdLevel::kAvx2, SimdLevel::kAvx512})
    if (l <= detected_simd()) out.push_back(l);
  return out;
}

// What must come out of a coefficient when planes below `low` are missing.
std::int32_t truncated(std::int32_t c, int low, int centroid) {
  const std::int32_t m = std::abs(c) >> low << low;
  if (m == 0) return 0;
  const std::int32_t v = low == 0 ? m : m + static_cast<std::int32_t>(static_cast<std::int64_t>(centroid) << low >> 8);
  return c < 0 ? -v : v;
}

// Calls f(coefficient of a, coefficient of b, band of b) for all of band `b` and the same band of `a`.
template <class A, class B, class F>
void for_each_pair(const SubbandTable& ta, const Field<A>& a, const SubbandTable& tb, const Field<B>& b, F f) {
  for (const Subband& band : tb.all()) {
    const Field<B> vb = subband_view(b, band);
    if (vb.shape.samples() == 0) continue;
    const Field<A> va = subband_view(a, ta.at(band.temporal_band, band.resolution, band.orientation));
    ASSERT_TRUE(va.shape == vb.shape);
    for (int t = 0; t < vb.shape.frames; ++t)
      for (int y = 0; y < vb.shape.height; ++y)
        for (int x = 0; x < vb.shape.width; ++x) f(va.row(t, y)[x], vb.row(t, y)[x], band);
  }
}

TEST(Zerotree, EveryLevelAndInstructionSetIsExact) {
  std::mt19937 random(1);
  for (const Case& c : cases(test::full() ? 24 : 6)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    const Coded reference = encode_all(grid, in.field, nullptr, plan, SimdLevel::kScalar);
    for (const SimdLevel simd : levels()) {
      const Coded coded = encode_all(grid, in.field, nullptr, plan, simd);
      for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
        ASSERT_TRUE(coded.blocks[i].top == reference.blocks[i].top) << to_string(simd);
        ASSERT_TRUE(coded.blocks[i].size == reference.blocks[i].size) << to_string(simd);
        ASSERT_TRUE(coded.blocks[i].bytes == reference.blocks[i].bytes) << to_string(simd);
      }
      Volume<std::int32_t> out(c.shape, 0x55555555);
      decode_all<std::int32_t>(grid, grid.table(), coded, plan, plan.layers, 0, 102, nullptr, simd, out.field);
      ASSERT_TRUE(out.memory == in.memory) << to_string(simd);
    }
  }
}

TEST(Zerotree, AllSmallDecompositions) {
  std::mt19937 random(2);
  for (const Shape& s : {Shape{3, 7, 6}, Shape{8, 16, 33}})
    for (const Layout layout : {Layout::kT2d, Layout::kDyadic})
      for (int spatial = 0; spatial <= 6; ++spatial)
        for (int temporal = 0; temporal <= 5; ++temporal) {
          if (layout == Layout::kDyadic && temporal > spatial) continue;
          const Case c{s, layout, temporal, spatial, 32};
          SCOPED_TRACE(testing::Message() << c);
          const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
          const auto in = random_field(c.shape, random);
          const LayerPlan plan = random_plan(grid, random);
          const Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
          Volume<std::int32_t> out(c.shape, -1);
          decode_all<std::int32_t>(grid, grid.table(), coded, plan, plan.layers, 0, 0, nullptr, SimdLevel::kBest,
                                   out.field);
          ASSERT_TRUE(out.memory == in.memory);
        }
}

TEST(Zerotree, EveryStopPlaneIsExact) {
  std::mt19937 random(3);
  for (const Case& c : cases(test::full() ? 4 : 2)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    const Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
    for (const int centroid : {0, 102, 255})
      for (int stop = 0; stop <= 31; stop += centroid == 102 ? 1 : 5) {
        Volume<std::int32_t> out(c.shape, 0x55555555);
        decode_all<std::int32_t>(grid, grid.table(), coded, plan, plan.layers, stop, centroid, nullptr,
                                 stop & 1 ? SimdLevel::kScalar : SimdLevel::kBest, out.field);
        for (std::size_t i = 0; i < in.memory.size(); ++i)
          ASSERT_EQ(out.memory[i], truncated(in.memory[i], std::min(stop, 30), centroid))
              << "stop " << stop << " of " << in.memory[i];
      }
  }
}

TEST(Zerotree, EveryNumberOfLayersIsExact) {
  std::mt19937 random(4);
  for (const Case& c : cases(test::full() ? 6 : 2)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    const Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
    for (int layers = 1; layers <= plan.layers; ++layers)
      for (const SimdLevel simd : levels()) {
        Volume<std::int32_t> out(c.shape, 0x55555555);
        decode_all<std::int32_t>(grid, grid.table(), coded, plan, layers, 0, 102, nullptr, simd, out.field);
        for_each_pair(
            grid.table(), in.field, grid.table(), out.field, [&](std::int32_t a, std::int32_t b, const Subband& band) {
              const auto s = static_cast<std::size_t>(segment_index(grid, band.temporal_band, band.resolution));
              const int low =
                  plan.low[static_cast<std::size_t>(layers - 1) * static_cast<std::size_t>(segment_count(grid)) + s];
              ASSERT_EQ(b, truncated(a, low, 102)) << layers;
            });
      }
  }
}

TEST(Zerotree, LowerResolutionsAreTheCoarseSubbands) {
  std::mt19937 random(5);
  for (const Case& c : cases(test::full() ? 4 : 2)) {
    SCOPED_TRACE(testing::Message() << c);
    const Decomposition d = decomposition(c);
    const BlockGrid grid(c.shape, d, true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    const Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
    for (int reduce = 0; reduce <= d.spatial_levels; ++reduce)
      for (int slower = 0; slower <= d.temporal_levels; ++slower) {
        const bool dyadic = c.layout == Layout::kDyadic;
        if (dyadic && slower != std::min(reduce, d.temporal_levels)) continue;
        Decomposition less = d;
        less.spatial_levels -= reduce;
        less.temporal_levels -= slower;
        const Shape small{low_length(c.shape.frames, slower), low_length(c.shape.height, reduce),
                          low_length(c.shape.width, reduce)};
        const SubbandTable target(small, less, true);
        const int stop = static_cast<int>(random() % 3);
        Volume<std::int32_t> out(small, 0x55555555);
        decode_all<std::int32_t>(grid, target, coded, plan, plan.layers, stop, 102, nullptr,
                                 reduce & 1 ? SimdLevel::kScalar : SimdLevel::kBest, out.field);
        for_each_pair(grid.table(), in.field, target, out.field, [&](std::int32_t a, std::int32_t b, const Subband&) {
          ASSERT_EQ(b, truncated(a, stop, 102)) << reduce << " " << slower;
        });
      }
  }
}

TEST(Zerotree, FloatsAreQuantisedTowardsZero) {
  std::mt19937 random(6);
  for (const Case& c : cases(test::full() ? 6 : 2)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), false, c.block_size);
    const StepTable steps(grid.table(), 0.75f, ComponentHeader{0, 1.5f, 0, {}});
    Volume<float> in(c.shape);
    for (auto& x : in.memory)
      x = random() % 4 ? 0
                       : std::ldexp(static_cast<float>(static_cast<int>(random() % 20001) - 10000),
                                    static_cast<int>(random() % 20) - 12);
    const LayerPlan plan = random_plan(grid, random);
    const Coded reference = encode_all(grid, in.field, &steps, plan, SimdLevel::kScalar);
    for (const int stop : {0, 3}) {
      Volume<float> first(c.shape);
      for (const SimdLevel simd : levels()) {
        const Coded coded = encode_all(grid, in.field, &steps, plan, simd);
        for (std::size_t i = 0; i < coded.blocks.size(); ++i)
          ASSERT_TRUE(coded.blocks[i].bytes == reference.blocks[i].bytes) << to_string(simd);
        Volume<float> out(c.shape, 77);
        decode_all<float>(grid, grid.table(), coded, plan, plan.layers, stop, 102, &steps, simd, out.field);
        if (simd == SimdLevel::kScalar) first.memory = out.memory;
        ASSERT_TRUE(out.memory == first.memory) << to_string(simd);
        std::size_t slot = 0;
        for (const Subband& band : grid.table().all()) {
          const float step = steps.step[slot];
          const float inverse = steps.inverse[slot++];
          const Field<float> a = subband_view(in.field, band);
          const Field<float> b = subband_view(out.field, band);
          for (int t = 0; t < band.shape.frames; ++t)
            for (int y = 0; y < band.shape.height; ++y)
              for (int x = 0; x < band.shape.width; ++x) {
                const float v = a.row(t, y)[x];
                const int m = static_cast<int>(std::abs(v) * inverse) >> stop << stop;
                const float expected =
                    m == 0 ? 0.0f : (static_cast<float>(m) + 102.0f / 256.0f * static_cast<float>(1 << stop)) * step;
                ASSERT_EQ(b.row(t, y)[x], v < 0 ? -expected : expected) << v;
              }
        }
      }
    }
  }
}

// Nothing a caller can put into a field does harm, and every instruction set makes the same of it.
TEST(Zerotree, ExtremeValues) {
  const float extremes[] = {0.0f,
                            -0.0f,
                            std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::quiet_NaN(),
                            std::numeric_limits<float>::max(),
                            -std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::denorm_min(),
                            1073741824.0f,
                            -1073741760.0f};
  const std::int32_t integers[] = {0,
                                   1,
                                   -1,
                                   (1 << 30) - 1,
                                   -(1 << 30) + 1,
                                   1 << 30,
                                   std::numeric_limits<std::int32_t>::max(),
                                   std::numeric_limits<std::int32_t>::min()};
  std::mt19937 random(7);
  for (const Case& c : cases(test::kSanitized && !test::full() ? 2 : 3)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), false, c.block_size);
    const StepTable steps(grid.table(), 1, ComponentHeader{});
    const LayerPlan plan = random_plan(grid, random);
    Volume<float> real(c.shape);
    Volume<std::int32_t> whole(c.shape);
    for (auto& x : real.memory) x = extremes[random() % std::size(extremes)];
    for (auto& x : whole.memory) x = integers[random() % std::size(integers)];
    const Coded real_reference = encode_all(grid, real.field, &steps, plan, SimdLevel::kScalar);
    const Coded whole_reference = encode_all(grid, whole.field, nullptr, plan, SimdLevel::kScalar);
    for (const SimdLevel simd : levels()) {
      const Coded a = encode_all(grid, real.field, &steps, plan, simd);
      const Coded b = encode_all(grid, whole.field, nullptr, plan, simd);
      for (std::size_t i = 0; i < a.blocks.size(); ++i) {
        EXPECT_TRUE(a.blocks[i].bytes == real_reference.blocks[i].bytes) << to_string(simd);
        EXPECT_TRUE(b.blocks[i].bytes == whole_reference.blocks[i].bytes) << to_string(simd);
      }
      Volume<float> out(c.shape);
      decode_all<float>(grid, grid.table(), a, plan, plan.layers, 0, 255, &steps, simd, out.field);
      Volume<std::int32_t> exact(c.shape);
      decode_all<std::int32_t>(grid, grid.table(), b, plan, plan.layers, 0, 255, nullptr, simd, exact.field);
      constexpr std::int32_t kLimit = (1 << 30) - 1;
      for (std::size_t i = 0; i < whole.memory.size(); ++i)
        ASSERT_EQ(exact.memory[i], std::clamp(whole.memory[i], -kLimit, kLimit));
    }
  }
}

// Bytes that are not what an encoder wrote: BadStream or coefficients, the same with every instruction set.
TEST(Zerotree, DamagedBits) {
  std::mt19937 random(8);
  int refused = 0;
  int accepted = 0;
  for (const Case& c : cases(test::full() ? 10 : 3)) {
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
    for (int i = 0; i < 6; ++i) {
      Coded damaged = coded;
      for (CodedBlock& b : damaged.blocks) {
        if (b.bytes.size() == 16) continue;
        for (int n = 0; n <= i; ++n) b.bytes[random() % (b.bytes.size() - 16)] = static_cast<std::uint8_t>(random());
      }
      Volume<std::int32_t> first(c.shape);
      bool first_refused = false;
      for (const SimdLevel simd : levels()) {
        Volume<std::int32_t> out(c.shape);
        bool thrown = false;
        try {
          decode_all<std::int32_t>(grid, grid.table(), damaged, plan, plan.layers, 0, 102, nullptr, simd, out.field);
        } catch (const Error& e) {
          ASSERT_EQ(e.kind(), ErrorKind::kBadStream);
          thrown = true;
        }
        if (simd == SimdLevel::kScalar) {
          first_refused = thrown;
          first.memory = out.memory;
          ++(thrown ? refused : accepted);
        }
        ASSERT_EQ(thrown, first_refused) << to_string(simd);
        ASSERT_TRUE(thrown || out.memory == first.memory) << to_string(simd);
      }
    }
  }
  EXPECT_GT(refused, 0);
  EXPECT_GT(accepted, 0);
}

TEST(Zerotree, ClearWritesEveryCoefficient) {
  for (const Case& c : cases(2)) {
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    Volume<std::int32_t> out(c.shape, 5);
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx)
        BlockDecoder::clear(grid, grid.table(), by, bx, BlockMemory<std::int32_t>{out.field});
    for (const std::int32_t x : out.memory) ASSERT_EQ(x, 0);
  }
}

// Patches of zeros that are left out, of whole and of reduced volumes: written afterwards they give what is written at
// once, and the inverse transform takes them for zeros however it shares its work.
TEST(Zerotree, ZerosMayBeLeftOut) {
  std::mt19937 random(7);
  int least = 1, most = 0;  // of the samples: left as they were
  ThreadPool alone(1), crowd(50);
  for (Case c : cases(test::full() ? 12 : 5)) {
    c.layout = Layout::kT2d;
    SCOPED_TRACE(testing::Message() << c);
    const BlockGrid grid(c.shape, decomposition(c), true, c.block_size);
    const auto in = random_field(c.shape, random);
    const LayerPlan plan = random_plan(grid, random);
    const Coded coded = encode_all(grid, in.field, nullptr, plan, SimdLevel::kBest);
    for (int reduce = 0; reduce <= std::min(2, c.spatial_levels); ++reduce) {
      Decomposition d = decomposition(c);
      d.spatial_levels -= reduce;
      const SubbandTable target({c.shape.frames, low_length(c.shape.height, reduce), low_length(c.shape.width, reduce)},
                                d, true);
      constexpr std::int32_t kOld = 0x55555555;
      Volume<std::int32_t> whole(target.shape(), kOld), sparse(target.shape(), kOld);
      ZeroPatches left_out(grid, target);
      decode_all<std::int32_t>(grid, target, coded, plan, 1, 3, 102, nullptr, SimdLevel::kBest, whole.field);
      decode_all<std::int32_t>(grid, target, coded, plan, 1, 3, 102, nullptr, SimdLevel::kBest, sparse.field,
                               &left_out);
      const bool any = std::count(sparse.memory.begin(), sparse.memory.end(), kOld) > 0;
      least = std::min<int>(least, any);
      most = std::max<int>(most, any);
      Volume<std::int32_t> written = sparse;
      written.field.data = written.memory.data();
      test::write_zeros(left_out, written.field, d.spatial_levels);
      ASSERT_TRUE(written.memory == whole.memory) << reduce;
      std::vector<std::vector<std::int32_t>> results;
      for (ThreadPool* pool : {&alone, &crowd})
        for (const Volume<std::int32_t>* from : {&whole, &sparse}) {
          Volume<std::int32_t> v = *from;
          v.field.data = v.memory.data();
          inverse_transform<std::int32_t>(v.field, d, *pool, SimdLevel::kBest, {},
                                          from == &whole ? nullptr : &left_out);
          results.push_back(v.memory);
        }
      for (const auto& r : results) ASSERT_TRUE(r == results[0]) << reduce;
    }
  }
  EXPECT_EQ(least, 0);
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace trivelet
