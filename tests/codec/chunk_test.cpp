// Chunks: parts of blocks of any size round-trip, and every contradicting bit is detected.

#include "codec/format/chunk.h"

#include <gtest/gtest.h>

#include <random>

#include "codec/backend.h"
#include "codec/base/bits.h"
#include "tests/support/boxes.h"
#include "tests/support/container_support.h"

namespace trivelet {
namespace {

using namespace test;

// Coded blocks with random tops and sizes; a segment never has more planes than the one it hangs on.
CodedGop random_blocks(const StreamHeader& h, const StreamGeometry& geometry, std::mt19937& random) {
  CodedGop gop;
  gop.components.resize(h.components.size());
  for (int c = 0; c < geometry.components(); ++c) {
    auto& component = gop.components[static_cast<std::size_t>(c)];
    const BlockGrid& grid = geometry.grid(c);
    component.grid = &grid;
    component.plan = layer_plan(h, grid);
    const int segments = segment_count(grid);
    for (int i = 0; i < grid.blocks(); ++i) {
      CodedBlock b;
      b.top.assign(static_cast<std::size_t>(segments), 0);
      for (int band = 0; band < h.temporal_bands(); ++band) {
        const Family& f = grid.families()[static_cast<std::size_t>(band)];
        if (f.frames == 0) continue;
        for (int k = 0; k < grid.resolutions(); ++k) {
          int limit = 30;
          if (k > 0)
            limit = b.top[static_cast<std::size_t>(segment_index(grid, band, k - 1))];
          else if (f.parent >= 0)
            limit = b.top[static_cast<std::size_t>(segment_index(grid, f.parent, 0))];
          b.top[static_cast<std::size_t>(segment_index(grid, band, k))] =
              static_cast<std::uint8_t>(random() % static_cast<unsigned>(limit + 1));
        }
      }
      for (int s = 0; s < segments; ++s) {
        int from = b.top[static_cast<std::size_t>(s)];
        for (int l = 0; l < h.layers; ++l) {
          const int to = std::min<int>(from, component.plan.low[static_cast<std::size_t>(l * segments + s)]);
          const std::size_t size = to < from ? random() % (random() % 50 ? 20 : 3000) : 0;
          b.size.push_back(static_cast<std::uint32_t>(size));
          b.offset.push_back(b.bytes.size());
          for (std::size_t j = 0; j < size; ++j) b.bytes.push_back(static_cast<std::uint8_t>(random()));
          from = to;
        }
      }
      component.blocks.push_back(std::move(b));
    }
  }
  return gop;
}

LayeredGop nothing_received(const StreamHeader& h, const StreamGeometry& geometry) {
  LayeredGop r;
  r.frames = geometry.frames();
  r.components.resize(h.components.size());
  for (int c = 0; c < geometry.components(); ++c) {
    auto& component = r.components[static_cast<std::size_t>(c)];
    component.grid = &geometry.grid(c);
    component.blocks.assign(static_cast<std::size_t>(component.grid->blocks()),
                            std::vector<LayeredSegment>(static_cast<std::size_t>(segment_count(*component.grid))));
  }
  return r;
}

TEST(Container, ChunkRoundTrip) {
  std::mt19937 random(4);
  for (int i = 0; i < 60; ++i) {
    StreamHeader h = grey_header();
    h.video =
        video(1 + static_cast<int>(random() % 150), 1 + static_cast<int>(random() % 90), i & 1 ? "yuv420p" : "gray");
    h.layout = i & 2 ? Layout::kDyadic : Layout::kT2d;
    h.lossless = i & 4;
    h.temporal = h.spatial = Wavelet::kCdf53;
    h.log2_block = 5;
    h.layers = static_cast<std::uint8_t>(1 + random() % 5);
    h.components.assign(static_cast<std::size_t>(h.video.format.components()), h.components[0]);
    for (std::size_t c = 1; c < h.components.size(); ++c) h.components[c].spatial_levels = 2;
    const StreamGeometry geometry(h, 1 + static_cast<int>(random() % 6));
    const CodedGop gop = random_blocks(h, geometry, random);
    LayeredGop layered;
    divide_by_plan(gop, layered);
    LayeredGop r = nothing_received(h, geometry);
    std::vector<Bytes> chunks;
    for (int l = 0; l < h.layers; ++l)
      for (int b = 0; b < h.temporal_bands(); ++b)
        for (int d = h.spatial_levels; d >= 0; --d) {
          chunks.push_back(write_chunk(h, layered, l, b, d));
          EXPECT_EQ(chunk_size(h, layered, l, b, d), chunks.back().size());
          const std::size_t size = chunks.back().size();
          chunks.back().resize(size + 16);
          // A cut chunk must be refused (or be a shorter one that means something, which the last byte never is).
          if (size > 0 && i % 8 == 0) {
            const LayeredGop before = r;
            for (std::size_t n = 1; n < std::min<std::size_t>(size, 40); ++n) {
              LayeredGop copy = before;
              EXPECT_EQ(kind_of([&] { read_chunk(h, chunks.back().data(), size - n, l, b, d, copy); }),
                        ErrorKind::kBadStream);
            }
            LayeredGop copy = before;
            EXPECT_EQ(kind_of([&] { read_chunk(h, chunks.back().data(), size + 1, l, b, d, copy); }),
                      ErrorKind::kBadStream);
          }
          ASSERT_NO_THROW(read_chunk(h, chunks.back().data(), size, l, b, d, r));
        }
    for (std::size_t c = 0; c < gop.components.size(); ++c) {
      const auto& coded = gop.components[c];
      const BlockGrid& grid = *coded.grid;
      for (std::size_t n = 0; n < coded.blocks.size(); ++n)
        for (int b = 0; b < h.temporal_bands(); ++b)
          for (int k = 0; k < grid.resolutions() && grid.families()[static_cast<std::size_t>(b)].frames > 0; ++k) {
            const auto s = static_cast<std::size_t>(segment_index(grid, b, k));
            const CodedBlock& from = coded.blocks[n];
            const LayeredSegment& to = r.components[c].blocks[n][s];
            ASSERT_EQ(to.top, from.top[s]);
            ASSERT_EQ(to.parts.size(), h.layers);
            for (std::size_t l = 0; l < h.layers; ++l) {
              const std::size_t part = s * h.layers + l;
              ASSERT_EQ(to.parts[l].low,
                        std::min(from.top[s], coded.plan.low[l * static_cast<std::size_t>(segment_count(grid)) + s]));
              ASSERT_EQ(to.parts[l].size, from.size[part]);
              ASSERT_TRUE(from.size[part] == 0 ||
                          std::memcmp(to.parts[l].data, from.bytes.data() + from.offset[part], from.size[part]) == 0);
            }
          }
    }
  }
}

TEST(Bits, ComeBackInAnyMixture) {
  std::mt19937 engine(5);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  for (int round = 0; round < 200; ++round) {
    struct Value {
      int kind;
      std::uint32_t value;
      int k;
    };
    std::vector<Value> values;
    BitWriter w;
    std::size_t bits = 0;
    for (int i = 0; i < 60; ++i) {
      Value v{static_cast<int>(random() % 3), 0, static_cast<int>(random() % 33)};
      if (v.kind == 0) {
        v.value = v.k < 32 ? random() & ((1u << v.k) - 1) : random();
        w.put(v.value, v.k);
        bits += static_cast<std::size_t>(v.k);
      } else {  // ones over several words of the reader, too
        if (v.kind == 1) v.k = 0;
        v.k = v.k % 20;
        v.value = (random() % (random() % 8 ? 9u : 200u) << v.k) | (random() & ((1u << v.k) - 1));
        v.kind == 1 ? w.put_unary(v.value) : w.put_rice(v.value, v.k);
        bits += (v.value >> v.k) + 1 + static_cast<unsigned>(v.k);
      }
      values.push_back(v);
    }
    EXPECT_EQ(w.bits(), bits);
    const Bytes bytes = w.take();
    BitReader r(bytes.data(), bytes.size());
    for (const Value& v : values)
      ASSERT_EQ(v.kind == 0 ? r.get(v.k) : v.kind == 1 ? r.get_unary(v.value) : r.get_rice(v.k, v.value), v.value);
    EXPECT_FALSE(r.overrun());
    EXPECT_EQ(r.bytes(), bytes.size());
    EXPECT_TRUE(r.padding_is_zero());
    (void)r.get(8);
    EXPECT_TRUE(r.overrun());
  }
}

TEST(Bits, OnesHaveALimitAndAnEnd) {
  const Bytes ones(20, 0xff);
  for (const unsigned limit : {0u, 7u, 62u, 63u, 64u, 100u, 158u}) {
    BitReader r(ones.data(), ones.size());
    (void)r.get_unary(limit);
    EXPECT_TRUE(r.overrun()) << limit;
  }
  BitReader r(ones.data(), ones.size());
  (void)r.get_unary(1000);  // no zero before the end
  EXPECT_TRUE(r.overrun());
  for (const unsigned n : {0u, 1u, 55u, 62u, 63u, 64u, 120u}) {
    BitWriter w;
    w.put_unary(n);
    const Bytes bytes = w.take();
    BitReader enough(bytes.data(), bytes.size()), less(bytes.data(), bytes.size());
    EXPECT_EQ(enough.get_unary(n), n);
    EXPECT_FALSE(enough.overrun()) << n;
    if (n == 0) continue;
    (void)less.get_unary(n - 1);
    EXPECT_TRUE(less.overrun()) << n;
  }
}

// Every cut and every parameter tried.
HeadCodes tried_codes(const HeadRows& rows) {
  const auto zigzag = [](int v) { return v > 0 ? 2 * v - 1 : -2 * v; };
  HeadCodes best;
  std::uint64_t sizes = ~std::uint64_t{0}, cuts = ~std::uint64_t{0};
  for (int k = 0; k < 24; ++k) {
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < rows.low.size(); ++i)
      if (rows.low[i] < rows.before[i]) bits += (rows.size[i] >> k) + 1u + static_cast<unsigned>(k);
    if (bits < sizes) sizes = bits, best.rice = k;
  }
  int least = 60, most = 0;
  bool some = false;
  for (std::size_t i = 0; i < rows.low.size(); ++i) {
    if (rows.before[i] == 0) continue;
    some = true;
    least = std::min<int>(least, rows.low[i]);
    most = std::max<int>(most, rows.low[i]);
  }
  best.uniform = !some;
  best.nominal = 0;
  for (int p = least; p <= most; ++p) {
    std::uint64_t bits = 0;
    bool same = true;
    for (std::size_t i = 0; i < rows.low.size(); ++i) {
      if (rows.before[i] == 0) continue;
      const int n = std::min<int>(rows.before[i], p);
      bits += static_cast<unsigned>(zigzag(rows.low[i] - n)) + 1u;
      same = same && rows.low[i] == n;
    }
    if (same) bits = 0;
    if (bits < cuts) cuts = bits, best.nominal = p, best.uniform = same;
  }
  best.bits = 12 + sizes + (some ? cuts : 0);
  return best;
}

TEST(Container, HeadsAreTheShortest) {
  std::mt19937 engine(11);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(engine() % n); };
  for (int round = 0; round < 3000; ++round) {
    HeadRows rows;
    rows.resize(1 + below(round % 3 ? 40 : 4));
    const unsigned planes = 1 + below(60), zeros = below(4), spread = 1 + below(planes);
    const int shift = static_cast<int>(below(22));
    for (std::size_t i = 0; i < rows.low.size(); ++i) {
      rows.before[i] = static_cast<std::uint8_t>(zeros && below(4) < zeros ? 0 : below(planes + 1));
      rows.low[i] = static_cast<std::uint8_t>(rows.before[i] - std::min<unsigned>(rows.before[i], below(spread)));
      rows.top[i] = rows.limit[i] = 0;
      rows.size[i] = below(1u << shift) << below(2);
    }
    const HeadCodes found = head_codes(rows, false, false), tried = tried_codes(rows);
    ASSERT_EQ(found.rice, tried.rice) << round;
    ASSERT_EQ(found.nominal, tried.nominal) << round;
    ASSERT_EQ(found.uniform, tried.uniform) << round;
    ASSERT_EQ(found.bits, tried.bits) << round;
  }
}

TEST(Container, ChunkWithItsOwnCuts) {
  StreamHeader h = grey_header();  // 40x30 in blocks of 32: two blocks
  h.temporal_levels = 0;
  h.layers = 1;
  h.log2_block = 5;
  const StreamGeometry geometry(h, 1);
  ASSERT_EQ(geometry.grid(0).blocks(), 2);
  struct Segment {
    int top, cut, size;
  };
  // nominal cut 3: the first block ends one plane higher, the second one lower
  auto write = [&](const Segment& a, const Segment& b, int nominal) {
    BitWriter w;
    w.put(static_cast<std::uint32_t>(nominal), 6);
    w.put(0, 1);
    w.put(2, 5);
    int before = 0;
    for (const Segment& s : {a, b}) {
      auto zigzag = [](int v) { return v > 0 ? 2u * static_cast<unsigned>(v) - 1 : 2u * static_cast<unsigned>(-v); };
      w.put_unary(zigzag(s.top - before));
      before = s.top;
      if (s.top > 0) w.put_unary(zigzag(s.cut - std::min(s.top, nominal)));
      if (s.cut < s.top) w.put_rice(static_cast<std::uint32_t>(s.size), 2);
    }
    Bytes out = w.take();
    out.resize(out.size() + static_cast<std::size_t>(a.size + b.size) + 16);
    return out;
  };
  auto read = [&](const Bytes& bytes) {
    LayeredGop r = nothing_received(h, geometry);
    read_chunk(h, bytes.data(), bytes.size() - 16, 0, 0, 3, r);
    return r;
  };
  const LayeredGop r = read(write({7, 4, 5}, {9, 2, 100}, 3));
  EXPECT_EQ(r.components[0].blocks[0][0].top, 7);
  EXPECT_EQ(r.components[0].blocks[0][0].parts.at(0).low, 4);
  EXPECT_EQ(r.components[0].blocks[0][0].parts.at(0).size, 5u);
  EXPECT_EQ(r.components[0].blocks[1][0].top, 9);
  EXPECT_EQ(r.components[0].blocks[1][0].parts.at(0).low, 2);
  EXPECT_EQ(r.components[0].blocks[1][0].parts.at(0).size, 100u);
  EXPECT_EQ(read(write({0, 0, 0}, {2, 2, 0}, 3)).components[0].blocks[1][0].parts.at(0).low, 2);
  // Below plane 0, above the segment's own planes, more planes than can be.
  EXPECT_EQ(kind_of([&] { read(write({7, -1, 5}, {9, 2, 5}, 3)); }), ErrorKind::kBadStream);
  EXPECT_EQ(kind_of([&] { read(write({7, 8, 0}, {9, 2, 5}, 3)); }), ErrorKind::kBadStream);
  EXPECT_EQ(kind_of([&] { read(write({31, 2, 5}, {9, 2, 5}, 3)); }), ErrorKind::kBadStream);
  EXPECT_EQ(kind_of([&] { read(write({7, 4, 5}, {-1, -1, 0}, 3)); }), ErrorKind::kBadStream);
}

// Any bytes: BadStream or a result whose parts lie inside the chunk.
TEST(Container, RandomChunks) {
  std::mt19937 random(5);
  StreamHeader h = grey_header();
  h.log2_block = 5;
  const StreamGeometry geometry(h, 4);
  int accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t size = 1 + random() % 40;
    Bytes bytes(size + 16);
    for (std::size_t j = 0; j < size; ++j) bytes[j] = static_cast<std::uint8_t>(random() % 3 ? random() : 0);
    LayeredGop r = nothing_received(h, geometry);
    try {
      read_chunk(h, bytes.data(), size, 0, 0, 3, r);
    } catch (const Error& e) {
      ASSERT_EQ(e.kind(), ErrorKind::kBadStream);
      continue;
    }
    ++accepted;
    for (const auto& block : r.components[0].blocks) {
      ASSERT_LE(block[0].top, 30);
      const LayerPart& p = block[0].parts.at(0);
      ASSERT_LE(p.low, block[0].top);
      ASSERT_TRUE(p.data >= bytes.data() && p.data + p.size <= bytes.data() + size);
    }
  }
  EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace trivelet
