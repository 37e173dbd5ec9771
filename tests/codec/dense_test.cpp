// The dense block coder: exact round trips, every cut, reduced tables, distortion records, damaged codewords.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <memory>
#include <random>

#include "codec/base/stream_header.h"
#include "codec/entropy/dense/dense.h"
#include "codec/entropy/dense/dense_block.h"
#include "codec/entropy/dense/packed_patch.h"
#include "codec/entropy/dense/range_coder.h"
#include "codec/entropy/fast/zerotree.h"
#include "tests/support/fields.h"
#include "tests/support/left_out_zeros.h"
#include "tests/support/one_of.h"

namespace trivelet {
namespace {

using test::Volume;

struct Case {
  Shape shape;
  int temporal, spatial, block;
};
const Case kCases[] = {{{1, 1, 1}, 0, 0, 64},     {{1, 5, 3}, 0, 1, 64},      {{2, 1, 40}, 1, 2, 64},
                       {{7, 9, 11}, 2, 2, 64},    {{8, 64, 64}, 3, 3, 64},    {{9, 65, 63}, 3, 4, 64},
                       {{16, 33, 130}, 4, 5, 64}, {{5, 200, 7}, 2, 4, 128},   {{12, 70, 90}, 2, 2, 64},
                       {{31, 20, 24}, 4, 4, 128}, {{3, 150, 140}, 1, 5, 128}, {{4, 40, 300}, 2, 7, 256},
                       {{6, 13, 12}, 2, 0, 64}};

// Of these fewer cuts and layers are tried: the smaller ones have had them all.
bool is_large(const Shape& s) { return s.samples() > 10000; }

enum class Kind { kSparse, kNatural, kNoise, kHuge, kZero };

// Coefficients that get smaller towards fine subbands, with runs of zeros and some outliers.
template <class T>
void fill(Volume<T>& v, const SubbandTable& table, Kind kind, unsigned seed) {
  std::mt19937 random(seed);
  auto unit = [&] { return static_cast<double>(random()) / 4294967296.0; };
  const double empty = is_large(table.shape()) ? 0.95 : 0.5;  // 30 planes of everything take long
  for (const Subband& band : table.all()) {
    const Field<T> f = subband_view(v.field, band);
    const double size = 4000 * std::pow(0.4, band.resolution + band.temporal_band);
    for (int t = 0; t < f.shape.frames; ++t)
      for (int y = 0; y < f.shape.height; ++y)
        for (int x = 0; x < f.shape.width; ++x) {
          double c = 0;
          switch (kind) {
            case Kind::kSparse: c = unit() < 0.01 ? (unit() - 0.5) * 60000 : 0; break;
            case Kind::kNatural:
              c = (y / 8 + x / 8) % 3 == 0 ? 0 : -size * std::log(1 - unit()) * (unit() < 0.5 ? -0.2 : 0.2);
              break;
            case Kind::kNoise: c = (unit() - 0.5) * 300; break;
            case Kind::kHuge: c = unit() < empty ? 0 : (unit() - 0.5) * 4e9; break;
            case Kind::kZero: break;
          }
          f.row(t, y)[x] = static_cast<T>(std::clamp(c, -2147483000.0, 2147483000.0));
        }
  }
}

Decomposition decomposition(const Case& c, bool dyadic) {
  Decomposition d;
  d.layout = dyadic ? Layout::kDyadic : Layout::kT2d;
  d.spatial_levels = c.spatial;
  d.temporal_levels = dyadic ? std::min(c.temporal, c.spatial) : c.temporal;
  d.spatial = d.temporal = Wavelet::kCdf53;
  return d;
}

void encode(DenseEncoder& e, const BlockGrid& g, int by, int bx, const Field<float>& f, const StepTable& s,
            CodedBlock& out, PassTable& t) {
  e.encode(g, by, bx, f, s, 102, nullptr, out, t);
}
void encode(DenseEncoder& e, const BlockGrid& g, int by, int bx, const Field<std::int32_t>& f, const StepTable&,
            CodedBlock& out, PassTable& t) {
  e.encode(g, by, bx, f, 102, nullptr, out, t);
}
const StepTable* steps_for(const Field<float>&, const StepTable& s) { return &s; }
const StepTable* steps_for(const Field<std::int32_t>&, const StepTable&) { return nullptr; }

// The value a decoder must give for a coefficient when its segment ends at `cut`.
float expected(float c, float inverse, float step, int cut, int centroid) {
  const auto m = static_cast<std::uint32_t>(limited_magnitude(c, inverse));
  const int low = cut >> 1;
  std::uint32_t known = m >> low << low;
  int at = low;
  if ((cut & 1) && known >> low >= 2) {
    at = low + 1;
    known = m >> at << at;
  }
  if (known == 0) return 0;
  const float v = (static_cast<float>(static_cast<std::int32_t>(known)) +
                   static_cast<float>(centroid) / 256.0f * static_cast<float>(std::int64_t{1} << at)) *
                  step;
  return c < 0 ? -v : v;
}
std::int32_t expected(std::int32_t c, float, float, int cut, int centroid) {
  const auto m = static_cast<std::uint32_t>(limited_magnitude(c, 1));
  const int low = cut >> 1;
  std::uint32_t known = m >> low << low;
  int at = low;
  if ((cut & 1) && known >> low >= 2) {
    at = low + 1;
    known = m >> at << at;
  }
  if (known == 0) return 0;
  const std::int32_t v =
      static_cast<std::int32_t>(known) + (at == 0 ? 0 : static_cast<std::int32_t>((std::int64_t{centroid} << at) >> 8));
  return c < 0 ? -v : v;
}

struct Coded {
  std::vector<CodedBlock> blocks;
  std::vector<PassTable> tables;
};

template <class T>
Coded encode_all(const BlockGrid& grid, const Volume<T>& v, const StepTable& steps) {
  Coded c;
  DenseEncoder encoder;
  for (int by = 0; by < grid.rows(); ++by)
    for (int bx = 0; bx < grid.columns(); ++bx) {
      c.blocks.emplace_back();
      c.tables.emplace_back();
      encode(encoder, grid, by, bx, v.field, steps, c.blocks.back(), c.tables.back());
    }
  return c;
}

// Bytes of a segment up to a cut, as a copy that ends exactly there.
std::vector<std::uint8_t> head(const CodedBlock& b, const PassTable& t, std::size_t s, int cut) {
  const int passes = 2 * b.top[s] - cut;
  const std::size_t n = passes <= 0 ? 0 : t.passes[t.first[s] + static_cast<std::size_t>(passes) - 1].bytes;
  return {b.bytes.begin() + static_cast<std::ptrdiff_t>(b.offset[s]),
          b.bytes.begin() + static_cast<std::ptrdiff_t>(b.offset[s] + n)};
}

// Writes packed patches to a field.
template <class T>
class Unpacking final : public PackedSink<T> {
 public:
  Unpacking(const BlockGrid& grid, const Field<T>& field) : grid_(grid), field_(field) {}
  void add(const Subband& band, int frame_of_band, int by, int bx, const std::uint32_t* packed,
           std::size_t words) override {
    const Field<T> to = patch_view(grid_, by, bx, field_, band);
    const auto masks = static_cast<std::size_t>((to.shape.width + 31) / 32);
    const std::uint32_t* value = packed + masks * static_cast<std::size_t>(to.shape.height);
    for (int y = 0; y < to.shape.height; ++y)
      for (int x = 0; x < to.shape.width; ++x)
        if (packed[static_cast<std::size_t>(y) * masks + static_cast<std::size_t>(x / 32)] >> x % 32 & 1)
          to.row(frame_of_band, y)[x] = std::bit_cast<T>(*value++);
    EXPECT_EQ(value, packed + words);
  }

 private:
  const BlockGrid& grid_;
  const Field<T> field_;
};

// Decodes everything with the cut of segment s of block i given by cut_of(i, s) and compares with the definition.
template <class T, class F>
void check(const BlockGrid& grid, const Volume<T>& v, const Coded& coded, const StepTable& steps,
           const SubbandTable& target, int centroid, F cut_of, double* squared = nullptr) {
  constexpr T kOld = 77;
  Volume<T> out(target.shape(), kOld);
  const bool leaves_out = target.decomposition().layout == Layout::kT2d;
  ZeroPatches left_out(grid, target);
  Volume<T> unpacked(target.shape(), 0);
  ZeroPatches not_packed(grid, target);
  Unpacking<T> sink(grid, unpacked.field);
  DenseDecoder decoder;
  const std::size_t n = coded.blocks[0].top.size();
  std::vector<std::vector<int>> cuts;
  for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
    const CodedBlock& b = coded.blocks[i];
    std::vector<std::vector<std::uint8_t>> heads;
    std::vector<LayeredSegment> segments(n);
    cuts.emplace_back();
    for (std::size_t s = 0; s < n; ++s) {
      const int cut = std::min<int>(cut_of(i, s), 2 * b.top[s]);
      cuts.back().push_back(cut);
      heads.push_back(head(b, coded.tables[i], s, cut));
    }
    for (std::size_t s = 0; s < n; ++s) {
      segments[s].top = b.top[s];
      segments[s].parts.push_back(
          {heads[s].data(), static_cast<std::uint32_t>(heads[s].size()), static_cast<std::uint8_t>(cuts.back()[s])});
    }
    decoder.decode<T>(grid, target, static_cast<int>(i) / grid.columns(), static_cast<int>(i) % grid.columns(),
                      segments, 0, centroid, steps_for(v.field, steps), {out.field}, leaves_out ? &left_out : nullptr);
    if (leaves_out)
      decoder.decode<T>(grid, target, static_cast<int>(i) / grid.columns(), static_cast<int>(i) % grid.columns(),
                        segments, 0, centroid, steps_for(v.field, steps), sink, not_packed);
  }
  if (leaves_out) {
    test::write_zeros(left_out, out.field, target.decomposition().spatial_levels);
    test::write_zeros(not_packed, unpacked.field, target.decomposition().spatial_levels);
    for (int t = 0; t < out.field.shape.frames; ++t)
      for (int y = 0; y < out.field.shape.height; ++y)
        ASSERT_TRUE(
            std::equal(out.field.row(t, y), out.field.row(t, y) + out.field.shape.width, unpacked.field.row(t, y)))
            << "packed, " << t << ", " << y;
  }
  double sum = 0;
  for (const Subband& band : target.all()) {
    const Subband& whole = grid.table().at(band.temporal_band, band.resolution, band.orientation);
    const auto slot = static_cast<std::size_t>(&whole - grid.table().all().data());
    const Field<T> in = subband_view(v.field, whole);
    const Field<T> got = subband_view(out.field, band);
    for (int by = 0; by < grid.rows(); ++by)
      for (int bx = 0; bx < grid.columns(); ++bx) {
        const auto i = static_cast<std::size_t>(by * grid.columns() + bx);
        const int cut = cuts[i][static_cast<std::size_t>(segment_index(grid, band.temporal_band, band.resolution))];
        const BlockGrid::Patch p = grid.patch(whole, by, bx);
        for (int t = 0; t < got.shape.frames; ++t)
          for (int y = p.y; y < p.y + p.height; ++y) {
            const T* a = in.row(t, y);
            const T* b = got.row(t, y);
            for (int x = p.x; x < p.x + p.width; ++x) {
              const T want = expected(a[x], steps.inverse[slot], steps.step[slot], cut, centroid);
              if (want != b[x]) {  // not for every sample: this is what the test would spend its time on
                ASSERT_EQ(want, b[x]) << "band " << band.temporal_band << " resolution " << band.resolution
                                      << " orientation " << band.orientation << " at " << t << "," << y << "," << x
                                      << " cut " << cut;
              }
              if (!squared) continue;
              double m = static_cast<double>(limited_magnitude(a[x], steps.inverse[slot]));
              double r = std::abs(static_cast<double>(b[x]));
              if constexpr (std::is_same_v<T, float>) r /= static_cast<double>(steps.step[slot]);
              sum += (m - r) * (m - r);
            }
          }
      }
  }
  if (squared) *squared = sum;
}

template <class T>
class Dense : public testing::Test {};
using Types = testing::Types<float, std::int32_t>;
TYPED_TEST_SUITE(Dense, Types);

// A case with its coefficients and codewords; made once for all tests.
template <class T>
struct Prepared {
  BlockGrid grid;
  Volume<T> volume;
  StepTable steps;
  Coded coded;
  Prepared(const Case& c, bool dyadic, Kind kind, unsigned seed)
      : grid(c.shape, decomposition(c, dyadic), std::is_same_v<T, std::int32_t>, c.block),
        volume(c.shape),
        steps(grid.table(), 1.5f, ComponentHeader{}) {
    fill(volume, grid.table(), kind, seed);
    coded = encode_all(grid, volume, steps);
  }
};

/// Of the cases that a test tries; one that calls for few of them takes those that others have prepared.
constexpr unsigned kFew = 7, kMany = test::kSanitized ? 7 : 3;

/// Calls f for one of so many cases.
template <class T, class F>
void for_cases(F f, unsigned one_of = kFew) {
  static std::map<unsigned, std::unique_ptr<const Prepared<T>>> known;
  unsigned seed = 1;
  test::OneOf chosen(one_of);
  for (const Case& c : kCases)
    for (const bool dyadic : {false, true})
      for (const Kind kind : {Kind::kSparse, Kind::kNatural, Kind::kNoise, Kind::kHuge, Kind::kZero}) {
        if (kind == Kind::kNoise && is_large(c.shape)) continue;
        SCOPED_TRACE(testing::Message() << c.shape.width << "x" << c.shape.height << "x" << c.shape.frames << " levels "
                                        << c.temporal << "+" << c.spatial << " block " << c.block << " dyadic "
                                        << dyadic << " kind " << static_cast<int>(kind));
        const unsigned mine = seed++;
        if (!chosen()) continue;
        auto& p = known[mine];
        if (!p) p = std::make_unique<const Prepared<T>>(c, dyadic, kind, mine);
        f(c, p->grid, p->volume, p->steps, p->coded);
        if (testing::Test::HasFatalFailure()) return;
      }
}

TYPED_TEST(Dense, WholeCodewordsAreExact) {
  for_cases<TypeParam>(
      [](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        check(grid, v, coded, steps, grid.table(), 0, [](std::size_t, std::size_t) { return 0; });
      });
}

TYPED_TEST(Dense, TopsAreThoseOfTheFastProfile) {
  for_cases<TypeParam>(
      [](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        BlockEncoder fast(SimdLevel::kScalar);
        LayerPlan plan;
        plan.low.assign(static_cast<std::size_t>(segment_count(grid)), 0);
        for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
          CodedBlock b;
          const int by = static_cast<int>(i) / grid.columns();
          const int bx = static_cast<int>(i) % grid.columns();
          if constexpr (std::is_same_v<TypeParam, float>)
            fast.encode(grid, by, bx, v.field, steps, plan, b);
          else
            fast.encode(grid, by, bx, v.field, plan, b);
          ASSERT_EQ(b.top, coded.blocks[i].top);
        }
      },
      kFew);
}

// Cuts at the same pass of all segments, and at passes drawn at random for each within what the decoder may use.
TYPED_TEST(Dense, EveryCutDecodesExactly) {
  for_cases<TypeParam>([](const Case& c, const BlockGrid& grid, const auto& v, const StepTable& steps,
                          const Coded& coded) {
    int top = 0;
    for (const CodedBlock& b : coded.blocks)
      for (const int t : b.top) top = std::max(top, t);
    // Few of them for the larger volumes, but not the same ones for every kind of coefficients.
    const bool large = is_large(c.shape);
    const int stride = large ? 7 : test::full() ? 1 : 5;
    for (int cut = large ? 1 + static_cast<int>(coded.blocks[0].bytes.size() % 7) : 1; cut <= 2 * top; cut += stride)
      check(grid, v, coded, steps, grid.table(), 102, [&](std::size_t, std::size_t) { return cut; });
    std::mt19937 random(7);
    for (int round = 0; round < (test::full() ? 3 : 1); ++round) {
      std::vector<std::vector<int>> cuts(coded.blocks.size(), std::vector<int>(coded.blocks[0].top.size(), 0));
      for (std::size_t i = 0; i < cuts.size(); ++i)
        for (int b = 0; b < grid.table().temporal_bands(); ++b)
          for (int k = 0; k < grid.resolutions(); ++k) {
            const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
            const int parent = grid.families()[static_cast<std::size_t>(b)].parent;
            int least = 0;
            if (k > 0) least = std::max(least, lowest_dense_cut(cuts[i][s - 1]));
            if (k == 0 && parent >= 0)
              least = lowest_dense_cut(cuts[i][static_cast<std::size_t>(segment_index(grid, parent, 0))]);
            cuts[i][s] = std::min(least + static_cast<int>(random() % 5), 2 * coded.blocks[i].top[s]);
          }
      check(grid, v, coded, steps, grid.table(), 102, [&](std::size_t i, std::size_t s) { return cuts[i][s]; });
    }
  });
}

TYPED_TEST(Dense, GainsAreTheMeasuredDecreaseOfTheError) {
  for_cases<TypeParam>(
      [](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        int top = 0;
        for (const CodedBlock& b : coded.blocks)
          for (const int t : b.top) top = std::max(top, t);
        double none = 0;
        check(
            grid, v, coded, steps, grid.table(), 102, [&](std::size_t, std::size_t) { return 2 * top; }, &none);
        for (int cut : {0, 1, top, 2 * top - 1}) {
          if (cut < 0) continue;
          double left = 0;
          check(
              grid, v, coded, steps, grid.table(), 102, [&](std::size_t, std::size_t) { return cut; }, &left);
          double gain = 0;
          for (std::size_t i = 0; i < coded.blocks.size(); ++i)
            for (std::size_t s = 0; s < coded.blocks[i].top.size(); ++s)
              for (int p = 0; p < 2 * coded.blocks[i].top[s] - cut; ++p)
                gain += coded.tables[i].passes[coded.tables[i].first[s] + static_cast<std::size_t>(p)].gain;
          ASSERT_NEAR(none - left, gain, 1e-6 * none) << cut;
        }
      },
      kMany);
}

TYPED_TEST(Dense, ReducedTablesGiveTheSameCoefficients) {
  for_cases<TypeParam>(
      [](const Case& c, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        const Decomposition& d = grid.table().decomposition();
        const bool dyadic = d.layout == Layout::kDyadic;
        for (int reduce = 0; reduce <= c.spatial; ++reduce)
          for (int temporal = 0; temporal <= (dyadic ? 0 : d.temporal_levels); ++temporal) {
            const int frames_reduce = dyadic ? std::min(reduce, d.temporal_levels) : temporal;
            Decomposition r = d;
            r.spatial_levels -= reduce;
            r.temporal_levels -= frames_reduce;
            const Shape s{low_length(c.shape.frames, frames_reduce), low_length(c.shape.height, reduce),
                          low_length(c.shape.width, reduce)};
            const SubbandTable target(s, r, std::is_same_v<TypeParam, std::int32_t>);
            check(grid, v, coded, steps, target, 102, [](std::size_t, std::size_t) { return 0; });
          }
      },
      kMany);
}

// Without the last passes codewords are those of before, up to the end of what is left.
TYPED_TEST(Dense, LastPassesMayBeSpared) {
  for_cases<TypeParam>(
      [](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& whole) {
        Coded coded = whole;
        DenseEncoder encoder;
        encoder.spare_last_pass(true);
        for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
          const int by = static_cast<int>(i) / grid.columns();
          const int bx = static_cast<int>(i) % grid.columns();
          encode(encoder, grid, by, bx, v.field, steps, coded.blocks[i], coded.tables[i]);
          const PassTable& all = whole.tables[i];
          const PassTable& left = coded.tables[i];
          ASSERT_EQ(left.spared, 1);
          std::size_t passes = 0;
          for (std::size_t s = 0; s < coded.blocks[i].top.size(); ++s) {
            ASSERT_EQ(coded.blocks[i].top[s], whole.blocks[i].top[s]);
            for (int p = 0; p + 1 < 2 * whole.blocks[i].top[s]; ++p, ++passes) {
              const auto n = static_cast<std::size_t>(p);
              ASSERT_EQ(left.passes[left.first[s] + n].gain, all.passes[all.first[s] + n].gain);
            }
          }
          ASSERT_EQ(left.passes.size(), passes);
        }
        check(grid, v, coded, steps, grid.table(), 102,
              [&](std::size_t i, std::size_t s) { return std::min<int>(1, 2 * coded.blocks[i].top[s]); });
      },
      kMany);
}

TYPED_TEST(Dense, LayersAreConsecutivePieces) {
  for_cases<TypeParam>(
      [](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        LayerPlan plan;
        plan.layers = 4;
        const std::size_t n = coded.blocks[0].top.size();
        for (const int low : {9, 4, 3, 0}) plan.low.insert(plan.low.end(), n, static_cast<std::uint8_t>(low));
        for (const int layers : is_large(grid.table().shape()) ? std::vector<int>{3} : std::vector<int>{1, 2, 3, 4}) {
          Volume<TypeParam> out(grid.table().shape());
          Volume<TypeParam> want(grid.table().shape());
          DenseDecoder decoder;
          for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
            std::vector<LayeredSegment> pieces(n), whole(n);
            for (std::size_t s = 0; s < n; ++s) {
              const CodedBlock& o = coded.blocks[i];
              const PassTable& table = coded.tables[i];
              pieces[s].top = whole[s].top = o.top[s];
              std::uint32_t done = 0;
              for (std::size_t l = 0; l < static_cast<std::size_t>(layers); ++l) {
                const int passes = 2 * o.top[s] - plan.low[l * n + s];
                const std::uint32_t end =
                    passes > 0 ? table.passes[table.first[s] + static_cast<std::size_t>(passes) - 1].bytes : 0;
                pieces[s].parts.push_back({o.bytes.data() + o.offset[s] + done, end - done, plan.low[l * n + s]});
                done = end;
              }
              whole[s].parts.push_back({o.bytes.data() + o.offset[s], o.size[s], pieces[s].parts.back().low});
            }
            const int by = static_cast<int>(i) / grid.columns();
            const int bx = static_cast<int>(i) % grid.columns();
            decoder.decode<TypeParam>(grid, grid.table(), by, bx, pieces, 0, 102, steps_for(v.field, steps),
                                      {out.field});
            decoder.decode<TypeParam>(grid, grid.table(), by, bx, whole, 0, 102, steps_for(v.field, steps),
                                      {want.field});
          }
          ASSERT_TRUE(out.memory == want.memory) << layers;
        }
      },
      kMany);
}

TYPED_TEST(Dense, DamagedBytesDecodeToSomething) {
  std::mt19937 random(3);
  for_cases<TypeParam>(
      [&](const Case&, const BlockGrid& grid, const auto& v, const StepTable& steps, const Coded& coded) {
        DenseDecoder decoder;
        Volume<TypeParam> out(grid.table().shape());
        for (int round = 0; round < 6; ++round)
          for (std::size_t i = 0; i < coded.blocks.size(); ++i) {
            const CodedBlock& b = coded.blocks[i];
            std::vector<LayeredSegment> segments(b.top.size());
            std::vector<std::vector<std::uint8_t>> bytes(2 * b.top.size());
            for (std::size_t s = 0; s < b.top.size(); ++s) {
              segments[s].top = round < 3 ? b.top[s] : static_cast<std::uint8_t>(random() % 32);
              int low = 60;
              for (std::size_t part = 0; part < 2; ++part) {
                auto& p = bytes[2 * s + part];
                p.resize(random() % 200);
                for (auto& x : p) x = static_cast<std::uint8_t>(round & 1 ? random() : 255);
                low = round < 2 ? (part == 0 ? b.top[s] : 0) : static_cast<int>(random() % 70);
                segments[s].parts.push_back(
                    {p.data(), static_cast<std::uint32_t>(p.size()), static_cast<std::uint8_t>(low)});
              }
            }
            try {
              decoder.decode<TypeParam>(grid, grid.table(), static_cast<int>(i) / grid.columns(),
                                        static_cast<int>(i) % grid.columns(), segments, static_cast<int>(random() % 3),
                                        102, steps_for(v.field, steps), {out.field});
            } catch (const Error& e) {
              ASSERT_EQ(e.kind(), ErrorKind::kBadStream);
            }
          }
      },
      kMany);
}

TEST(RangeCoder, CutsDecodeWhatIsBeforeThem) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    const int n = 1 + static_cast<int>(random() % 400);
    std::vector<bool> bits;
    std::vector<std::uint32_t> p;
    std::vector<dense::RangeEncoder::Mark> marks;
    dense::RangeEncoder e;
    e.start();
    e.reserve(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      p.push_back(24 + static_cast<std::uint32_t>(round % 3 == 0 ? random() % 60 : random() % 65489));
      bits.push_back(round % 5 == 0 ? false : random() % 65536 < p.back());
      e.put(bits.back(), p.back());
      marks.push_back(e.mark());
    }
    e.finish();
    for (int i = 0; i < n; ++i) {
      const std::vector<std::uint8_t> part(e.data(), e.data() + e.bytes_until(marks[static_cast<std::size_t>(i)]));
      dense::RangeDecoder d;
      d.start(part.data(), part.size());
      for (int j = 0; j <= i; ++j)
        ASSERT_EQ(d.get(p[static_cast<std::size_t>(j)]), bits[static_cast<std::size_t>(j)])
            << round << " " << i << " " << j;
    }
  }
}

}  // namespace
}  // namespace trivelet
