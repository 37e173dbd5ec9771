// The parts of the container: every field round-trips, and values out of range are refused.

#include "codec/format/container.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <tuple>

#include "codec/backend.h"
#include "codec/base/bytes.h"
#include "tests/support/boxes.h"
#include "tests/support/container_support.h"

namespace trivelet {
namespace {

using namespace test;

TEST(Container, BoxHeader) {
  std::uint8_t bytes[kBoxHeaderBytes];
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    write_box_header("abCd", length, bytes);
    Box box;
    ASSERT_TRUE(parse_box_header(bytes, box));
    EXPECT_TRUE(box.is("abCd"));
    EXPECT_FALSE(box.critical());
    EXPECT_EQ(box.length, length);
    for (std::size_t bit = 0; bit < 8 * kBoxHeaderBytes; ++bit) {
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ 1u << (bit % 8));
      EXPECT_FALSE(parse_box_header(bytes, box)) << bit;
      bytes[bit / 8] = static_cast<std::uint8_t>(bytes[bit / 8] ^ 1u << (bit % 8));
    }
  }
  Box box;
  write_box_header("Gop ", 1, bytes);
  ASSERT_TRUE(parse_box_header(bytes, box));
  EXPECT_TRUE(box.critical());
  EXPECT_TRUE(is_bound("noTE") && !is_bound("NOTe"));
  write_box_header("no\nt", 1, bytes);
  EXPECT_FALSE(parse_box_header(bytes, box));
}

// ----------------------------------------------------------------------------------------------------- stream header

TEST(Container, StreamHeaderRoundTrip) {
  for (const char* format : {"gray", "yuv420p10", "gbrap16", "yuva444p"}) {
    StreamHeader h = grey_header();
    h.video = video(65536, 3, format, 77);
    h.gop_frames = 3;
    h.video.frame_rate = {30000, 1001};
    h.video.sample_aspect = {0, 1};
    h.video.time_base = {1, 90000};
    h.video.colour = {9, 16, 9, 2, 3};
    h.video.rotation = 270;
    h.video.field_order = 2;
    h.centroid = 0;
    h.log2_block = 5;
    h.fast_mode = FastMode::kRaw;
    h.temporal = Wavelet::kHaar;
    h.spatial = Wavelet::kCdf53;
    h.components.clear();
    for (int c = 0; c < h.video.format.components(); ++c)
      h.components.push_back({-c, 0.5f + static_cast<float>(c), static_cast<std::uint8_t>(3 - c / 2),
                              std::vector<std::uint8_t>(static_cast<std::size_t>(4 - c / 2), 70)});
    const Bytes bytes = serialise(h);
    const StreamHeader r = parse_stream_header(bytes.data(), bytes.size());
    EXPECT_TRUE(serialise(r) == bytes);
    EXPECT_EQ(r.video.width, 65536);
    EXPECT_EQ(r.video.frames, 77u);
    EXPECT_TRUE(r.video.format == h.video.format);
    EXPECT_TRUE(r.video.frame_rate == h.video.frame_rate);
    EXPECT_TRUE(r.video.sample_aspect == h.video.sample_aspect);
    EXPECT_TRUE(r.video.time_base == h.video.time_base);
    EXPECT_TRUE(r.video.colour == h.video.colour);
    EXPECT_EQ(r.video.rotation, 270);
    EXPECT_EQ(r.components.size(), h.components.size());
    EXPECT_EQ(r.components.back().offset, h.components.back().offset);
    EXPECT_EQ(r.components.back().weight, h.components.back().weight);
    EXPECT_EQ(r.components.back().scale, h.components.back().scale);
    EXPECT_EQ(r.writer, "writer");
    EXPECT_EQ(r.settings, "settings");
    EXPECT_EQ(r.temporal, Wavelet::kHaar);
    EXPECT_EQ(r.fast_mode, FastMode::kRaw);
  }
}

TEST(Container, LongTextsAreCut) {
  StreamHeader h = grey_header();
  h.settings.assign(10000, 'x');
  const Bytes bytes = serialise(h);
  EXPECT_EQ(parse_stream_header(bytes.data(), bytes.size()).settings.size(), kMaxTextBytes);
}

TEST(Container, StreamHeaderFieldsAreChecked) {
  const Bytes good = serialise(grey_header());
  ASSERT_NO_THROW(parse_stream_header(good.data(), good.size()));
  struct Case {
    const char* what;
    std::size_t at;
    std::size_t bytes;
    std::uint64_t value;
    ErrorKind kind;
  };
  const auto bad = ErrorKind::kBadStream;
  const Case cases[] = {
      {"major", 0, 1, 99, ErrorKind::kUnsupported},
      {"minor", 1, 1, 8, ErrorKind::kUnsupported},
      {"profile", 19, 1, 200, bad},
      {"mode", 20, 1, 2, bad},
      {"lossless", 21, 1, 2, bad},
      {"lossless 9/7", 21, 1, 1, bad},
      {"layout", 22, 1, 2, bad},
      {"temporal wavelet", 23, 1, 4, bad},
      {"13/7 in a lossy stream", 23, 1, 3, bad},
      {"spatial wavelet", 24, 1, 255, bad},
      {"temporal levels", 25, 1, 9, bad},
      {"spatial levels", 26, 1, 9, bad},
      {"fewer levels than a component", 26, 1, 2, bad},
      {"block 16", 27, 1, 4, bad},
      {"block 512", 27, 1, 9, bad},
      {"no layers", 28, 1, 0, bad},
      {"layers", 28, 1, 17, bad},
      {"colour transform", 30, 1, 2, bad},
      {"colour transform of grey", 30, 1, 1, bad},
      {"dropped spatial levels", 31, 1, 4, bad},
      {"dropped temporal levels", 32, 1, 3, bad},
      {"scale 0", 66, 1, 0, bad},
      {"no frames in a GOP", 33, 2, 0, bad},
      {"frames in a GOP", 33, 2, 129, bad},
      {"width 0", 35, 4, 0, bad},
      {"width", 35, 4, 65537, bad},
      {"width 2^32-1", 35, 4, 0xffffffff, bad},
      {"height 0", 39, 4, 0, bad},
      {"height", 39, 4, 0x80000000, bad},
      {"colour model", 51, 1, 3, bad},
      {"no bits", 52, 1, 0, bad},
      {"bits", 52, 1, 17, bad},
      {"chroma subsampling", 53, 1, 3, bad},
      {"subsampled grey", 53, 1, 1, bad},
      {"chroma subsampling y", 54, 1, 255, bad},
      {"alpha", 55, 1, 2, bad},
      {"more components than stored", 55, 1, 1, bad},
      {"signed", 56, 1, 2, bad},
      {"offset", 57, 4, 65537, bad},
      {"offset below", 57, 4, 0x80000000, bad},
      {"weight 0", 61, 4, 0, bad},
      {"weight negative", 61, 4, 0xbf800000, bad},
      {"weight NaN", 61, 4, 0x7fc00000, bad},
      {"weight infinite", 61, 4, 0x7f800000, bad},
      {"component levels", 65, 1, 9, bad},
      {"more component levels than the stream", 65, 1, 4, bad},
      {"frame rate", 70, 4, 0x80000000, bad},
      {"frame rate / 0", 74, 4, 0, bad},
      {"sample aspect / -1", 82, 4, 0xffffffff, bad},
      {"time base 0", 86, 4, 0, bad},
      {"time base / 0", 90, 4, 0, bad},
      {"range", 97, 1, 3, bad},
      {"rotation", 99, 1, 8, bad},
      {"field order", 100, 1, 3, bad},
      {"text length", 101, 1, 255, bad},
  };
  for (const Case& c : cases) {
    Bytes bytes = good;
    store(bytes.data() + c.at, c.value, c.bytes);
    EXPECT_EQ(kind_of([&] { parse_stream_header(bytes.data(), bytes.size()); }), bad) << c.what << " without checksum";
    repair_crc(bytes.data(), bytes.size());
    EXPECT_EQ(kind_of([&] { parse_stream_header(bytes.data(), bytes.size()); }), c.kind) << c.what;
  }
  // Every length: cut with the checksum made right, and one byte too many.
  for (std::size_t n = 0; n < good.size(); ++n) {
    Bytes bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(n));
    repair_crc(bytes.data(), bytes.size());
    EXPECT_EQ(kind_of([&] { parse_stream_header(bytes.data(), bytes.size()); }), bad) << n;
  }
}

TEST(Container, StreamHeaderCombinationsAreChecked) {
  auto parse = [](const StreamHeader& h) {
    const Bytes b = serialise(h);
    return kind_of([&] { parse_stream_header(b.data(), b.size()); });
  };
  StreamHeader h = grey_header();
  h.layout = Layout::kDyadic;
  EXPECT_EQ(parse(h), ErrorKind::kInternal);  // fine
  h.temporal_levels = 4;
  EXPECT_EQ(parse(h), ErrorKind::kBadStream);
  h.spatial_levels = 4;
  EXPECT_EQ(parse(h), ErrorKind::kBadStream);  // the component still has three
  h = grey_header();
  h.video = video(65536, 65536, "gray");
  h.gop_frames = 3;
  EXPECT_EQ(parse(h), ErrorKind::kUnsupported);
  h = grey_header();
  h.video = video(16, 16, "gbrp");
  h.components.resize(3, h.components[0]);
  h.colour_transform = 1;
  EXPECT_EQ(parse(h), ErrorKind::kInternal);
  h.components[1].spatial_levels = 2;
  h.components[1].scale.pop_back();
  EXPECT_EQ(parse(h), ErrorKind::kBadStream);
  h.components[1] = h.components[0];
  h.video.format.is_signed = true;
  EXPECT_EQ(parse(h), ErrorKind::kBadStream);
  h.colour_transform = 0;
  EXPECT_EQ(parse(h), ErrorKind::kBadStream);
  h.video.format.is_signed = false;
  EXPECT_EQ(parse(h), ErrorKind::kInternal);
}

// -------------------------------------------------------------------------------------------------------- GOP header

GopHeader random_gop(const StreamHeader& h, std::mt19937& random, int times) {
  GopHeader g;
  g.index = random();
  g.first_frame = static_cast<std::uint64_t>(random()) << (random() % 32);
  g.frames = 1 + static_cast<int>(random() % h.gop_frames);
  g.step = 0.25f;
  g.has_hash = random() & 1;
  g.hash = g.has_hash ? static_cast<std::uint64_t>(random()) << 32 | random() : 0;
  g.planes = 12;
  if (!h.lossless && h.layout == Layout::kT2d && (random() & 1))
    for (int f = 0; f < g.frames; ++f)
      g.frame_gains.push_back(random() & 1 ? std::uint8_t{64} : static_cast<std::uint8_t>(1 + random() % 255));
  for (int l = 0; l < h.layers; ++l) g.layer_top.push_back(static_cast<std::uint8_t>(random() % 13));
  for (int f = 0; f < g.frames; ++f) {
    FrameTime t{f * 1001ll - 5, 1001};
    if (times == 1) t = {static_cast<std::int64_t>(random() % 10000), static_cast<std::int64_t>(random() % 100)};
    if (times == 2)
      t = {static_cast<std::int64_t>(static_cast<std::uint64_t>(random()) << 32 | random()),
           static_cast<std::int64_t>(static_cast<std::uint64_t>(random()) << 32)};
    if (times == 3) t = {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()};
    if (times == 4)
      t = f & 1 ? FrameTime{std::numeric_limits<std::int64_t>::min(), -1}
                : FrameTime{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
    g.times.push_back(t);
  }
  const int n = h.layers * h.temporal_bands() * (h.spatial_levels + 1);
  for (int i = 0; i < n; ++i) {
    ChunkEntry c;
    c.size = random() & 1 ? 0 : random() >> (random() % 32);
    c.crc = c.size ? static_cast<std::uint32_t>(random()) : 0;
    c.offset = g.body_bytes;
    g.body_bytes += c.size;
    g.chunks.push_back(c);
  }
  return g;
}

TEST(Container, GopHeaderRoundTrip) {
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    StreamHeader h = grey_header();
    h.layers = static_cast<std::uint8_t>(1 + random() % 16);
    h.lossless = random() & 1;
    const GopHeader g = random_gop(h, random, i % 5);
    const Bytes bytes = serialise(h, g);
    const GopHeader r = parse_gop_header(h, bytes.data(), bytes.size());
    EXPECT_EQ(r.index, g.index);
    EXPECT_EQ(r.first_frame, g.first_frame);
    ASSERT_EQ(r.frames, g.frames);
    EXPECT_EQ(r.step, h.lossless ? 0 : g.step);
    EXPECT_EQ(r.has_hash, g.has_hash);
    EXPECT_EQ(r.hash, g.hash);
    EXPECT_EQ(r.planes, g.planes);
    EXPECT_EQ(r.layer_top, g.layer_top);
    EXPECT_EQ(r.body_bytes, g.body_bytes);
    for (std::size_t f = 0; f < g.times.size(); ++f) {
      ASSERT_EQ(r.times[f].pts, g.times[f].pts) << f;
      ASSERT_EQ(r.times[f].duration, g.times[f].duration) << f;
    }
    ASSERT_EQ(r.chunks.size(), g.chunks.size());
    for (std::size_t c = 0; c < g.chunks.size(); ++c) {
      EXPECT_EQ(r.chunks[c].size, g.chunks[c].size);
      EXPECT_EQ(r.chunks[c].crc, g.chunks[c].crc);
      EXPECT_EQ(r.chunks[c].offset, g.chunks[c].offset);
    }
  }
}

TEST(Container, GopHeaderFieldsAreChecked) {
  std::mt19937 random(2);
  const StreamHeader h = grey_header();
  auto parse = [&](const GopHeader& g) {
    const Bytes b = serialise(h, g);
    return kind_of([&] { parse_gop_header(h, b.data(), b.size()); });
  };
  const GopHeader good = random_gop(h, random, 0);
  EXPECT_EQ(parse(good), ErrorKind::kInternal);
  GopHeader g = good;
  g.frames = 0;
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  g.frames = 17;
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  for (const float step :
       {0.0f, -1.0f, 1e-9f, 1e12f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    g = good;
    g.step = step;
    EXPECT_EQ(parse(g), ErrorKind::kBadStream) << step;
  }
  g = good;
  g.planes = 31;
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  g = good;
  g.layer_top[1] = 13;
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  g = good;
  g.chunks[3].size = ~std::uint64_t{0};
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  g = good;
  g.chunks.pop_back();
  EXPECT_EQ(parse(g), ErrorKind::kBadStream);
  const Bytes bytes = serialise(h, good);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n));
    EXPECT_EQ(kind_of([&] { parse_gop_header(h, cut.data(), cut.size()); }), ErrorKind::kBadStream);
    if (n < 8) continue;
    repair_crc(cut.data(), cut.size());
    EXPECT_EQ(kind_of([&] { parse_gop_header(h, cut.data(), cut.size()); }), ErrorKind::kBadStream) << n;
  }
}

TEST(Container, MotionInHeaders) {
  std::mt19937 random(3);
  StreamHeader h = grey_header();
  const Bytes without = serialise(h);
  EXPECT_EQ(load(without.data() + 2, 8), 0u);
  h.motion = true;
  const Bytes with = serialise(h);
  EXPECT_EQ(load(with.data() + 2, 8), 1u);
  EXPECT_EQ(with.size(), without.size() + 6);  // its name
  const StreamHeader read = parse_stream_header(with.data(), with.size());
  EXPECT_TRUE(read.motion);
  EXPECT_TRUE(serialise(read) == with);
  EXPECT_FALSE(parse_stream_header(without.data(), without.size()).motion);
  const auto refused = [](Bytes bytes) {
    repair_crc(bytes.data(), bytes.size());
    return kind_of([&] { parse_stream_header(bytes.data(), bytes.size()); });
  };
  StreamHeader dyadic = h;
  dyadic.layout = Layout::kDyadic;
  EXPECT_EQ(refused(serialise(dyadic)), ErrorKind::kBadStream);

  // GOPs: sections stand before the chunks, not beside frame gains, and only where the stream says so.
  GopHeader g = random_gop(h, random, 0);
  g.frame_gains.clear();
  g.motion = {{100, 7, 0}, {0, 0, 100}};
  g.body_bytes += 100;
  const Bytes bytes = serialise(h, g);
  const GopHeader r = parse_gop_header(h, bytes.data(), bytes.size());
  ASSERT_EQ(r.motion.size(), 2u);
  EXPECT_EQ(r.motion[0].size, 100u);
  EXPECT_EQ(r.motion[0].crc, 7u);
  EXPECT_EQ(r.chunks[0].offset, 100u);
  EXPECT_EQ(r.body_bytes, g.body_bytes);
  const auto parse = [](const StreamHeader& stream, const Bytes& b) {
    return kind_of([&] { parse_gop_header(stream, b.data(), b.size()); });
  };
  StreamHeader still = h;
  still.motion = false;
  EXPECT_EQ(parse(still, bytes), ErrorKind::kBadStream);
  g.frame_gains.assign(static_cast<std::size_t>(g.frames), 65);
  EXPECT_EQ(parse(h, serialise(h, g)), ErrorKind::kBadStream);
}

// A feature that must be known is refused by its number and name; one that need not be known is kept, and so is what a
// later version has put behind the fields.
TEST(Container, FeaturesAndRoom) {
  StreamHeader h = grey_header();
  h.optional_features = std::uint64_t{1} << 63 | 5;
  h.room = {1, 2, 3};
  h.minor = 12;
  Bytes bytes = serialise(h);
  const StreamHeader read = parse_stream_header(bytes.data(), bytes.size());
  EXPECT_EQ(read.optional_features, h.optional_features);
  EXPECT_EQ(read.room, h.room);
  EXPECT_EQ(read.minor, 12);
  EXPECT_TRUE(serialise(read) == bytes);

  const Bytes plain = serialise(grey_header());
  const auto with = [&](std::uint64_t required, const std::string& names) {
    Bytes b(plain.begin(), plain.begin() + 2);
    b.resize(10);
    store(b.data() + 2, required, 8);
    b.resize(18);
    b.push_back(static_cast<std::uint8_t>(names.size()));
    b.insert(b.end(), names.begin(), names.end());
    b.insert(b.end(), plain.begin() + 19, plain.end());
    repair_crc(b.data(), b.size());
    return b;
  };
  const auto refusal = [&](std::uint64_t required, const std::string& names) {
    const Bytes b = with(required, names);
    EXPECT_EQ(kind_of([&] { parse_stream_header(b.data(), b.size()); }), ErrorKind::kUnsupported);
    return message_of([&] { parse_stream_header(b.data(), b.size()); });
  };
  EXPECT_TRUE(with(0, "") == plain);
  EXPECT_NE(refusal(std::uint64_t{1} << 40, "hovering").find("feature 40, named 'hovering'"), std::string::npos);
  EXPECT_NE(refusal(std::uint64_t{3} << 62 | 1, "motion a\x1b[1mb c").find("feature 62, named 'a?[1mb'"),
            std::string::npos);
  EXPECT_NE(refusal(std::uint64_t{1} << 50, "").find("feature 50, which has no name"), std::string::npos);
  for (const Bytes& b : {with(1, ""), with(1, "motions"), with(0, "motion"), with(1, " motion")})
    EXPECT_EQ(kind_of([&] { parse_stream_header(b.data(), b.size()); }), ErrorKind::kBadStream);

  // Of 1.x the same is read; of what was before 0.9, and comes behind 1.x, nothing.
  for (const auto& [major, minor, known] :
       {std::tuple{0, 3, false}, {0, 8, false}, {0, 10, true}, {1, 0, true}, {1, 9, true}, {2, 0, false}}) {
    Bytes b = plain;
    b[0] = static_cast<std::uint8_t>(major);
    b[1] = static_cast<std::uint8_t>(minor);
    repair_crc(b.data(), b.size());
    EXPECT_EQ(kind_of([&] { parse_stream_header(b.data(), b.size()); }),
              known ? ErrorKind::kInternal : ErrorKind::kUnsupported)
        << major << "." << minor;
  }

  // GOPs and entries of the index have room, too; the index is made again.
  std::mt19937 random(9);
  GopHeader g = random_gop(grey_header(), random, 0);
  g.room = {9, 8};
  const Bytes gop = serialise(grey_header(), g);
  EXPECT_EQ(parse_gop_header(grey_header(), gop.data(), gop.size()).room, g.room);
  Bytes index = {1, 1, 11, 50, 7, 0, 3, 0, 0, 6, 4, 1, 0, 77, 200, 0, 0, 0, 0};
  repair_crc(index.data(), index.size());
  EXPECT_EQ(parse_index(index.data(), index.size(), 1).at(0).end_pts, 3);
  index[2] = 13;  // more than there is
  repair_crc(index.data(), index.size());
  EXPECT_EQ(kind_of([&] { parse_index(index.data(), index.size(), 1); }), ErrorKind::kBadStream);
}

// Numbers have one form.
TEST(Container, LongVarintsAreRefused) {
  const auto value_of = [](const Bytes& b) {
    ByteReader r(b.data(), b.size(), "numbers");
    std::uint64_t v = 0;
    r.varint(v);
    return v;
  };
  EXPECT_EQ(value_of({0}), 0u);
  EXPECT_EQ(value_of({0x80, 1}), 128u);
  EXPECT_EQ(value_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}), ~std::uint64_t{0});
  for (const Bytes& b :
       {Bytes{0x80, 0}, Bytes{0xff, 0x80, 0}, Bytes{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
        Bytes{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1}})
    EXPECT_EQ(kind_of([&] { value_of(b); }), ErrorKind::kBadStream);
}

// -------------------------------------------------------------------------------------------------------- index, end

TEST(Container, IndexRoundTrip) {
  std::mt19937 random(3);
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{1000}}) {
    std::vector<GopInfo> gops;
    std::uint64_t at = 100;
    std::uint64_t frame = 0;
    for (std::size_t i = 0; i < n; ++i) {
      GopInfo g;
      g.offset = at += random() % 50;
      g.bytes = random();
      g.first_frame = frame;
      g.frames = 1 + static_cast<int>(random() % 128);
      g.begin_pts = static_cast<std::int64_t>(std::uint64_t{random()} << 32 | random());
      g.end_pts = g.begin_pts + static_cast<std::int64_t>(random());
      for (int l = 0; l < 3; ++l) g.layers.push_back({random(), static_cast<std::uint16_t>(random())});
      at += g.bytes;
      frame += static_cast<std::uint64_t>(g.frames);
      gops.push_back(g);
    }
    const Bytes bytes = serialise_index(gops);
    const std::vector<GopInfo> r = parse_index(bytes.data(), bytes.size(), 3);
    ASSERT_EQ(r.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_EQ(r[i].offset, gops[i].offset);
      EXPECT_EQ(r[i].bytes, gops[i].bytes);
      EXPECT_EQ(r[i].first_frame, gops[i].first_frame);
      EXPECT_EQ(r[i].frames, gops[i].frames);
      EXPECT_EQ(r[i].begin_pts, gops[i].begin_pts);
      EXPECT_EQ(r[i].end_pts, gops[i].end_pts);
      for (std::size_t l = 0; l < 3; ++l) {
        EXPECT_EQ(r[i].layers[l].bytes, gops[i].layers[l].bytes);
        EXPECT_EQ(r[i].layers[l].error, gops[i].layers[l].error);
      }
    }
    for (std::size_t cut = 0; cut < std::min<std::size_t>(bytes.size(), 200); ++cut) {
      Bytes b(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut));
      repair_crc(b.data(), b.size());
      EXPECT_EQ(kind_of([&] { parse_index(b.data(), b.size(), 3); }), ErrorKind::kBadStream);
    }
  }
  // A number of GOPs that cannot be, a GOP without frames, one behind the end of all files.
  for (const Bytes& content :
       {Bytes{1, 0xff, 0xff, 0xff, 0xff, 0x7f}, Bytes{1, 1, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
        Bytes{2, 0}, Bytes{1, 1, 24, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0,
                           1, 0, 0,  0,    0,    0,    0,    0,    0,    0,    0,    0,    0}}) {
    Bytes b = content;
    b.resize(b.size() + 4);
    repair_crc(b.data(), b.size());
    EXPECT_EQ(kind_of([&] { parse_index(b.data(), b.size(), 3); }), ErrorKind::kBadStream);
  }
}

TEST(Container, ErrorCodes) {
  EXPECT_EQ(error_code(0), 0);
  EXPECT_EQ(error_of(0), 0);
  for (double e = 1e-8; e < 1e12; e *= 1.37) EXPECT_NEAR(error_of(error_code(e)) / e, 1, 0.001) << e;
  EXPECT_EQ(error_code(1e300), 65534);
  EXPECT_EQ(error_code(1e-300), 1);
}

TEST(Container, EndRoundTrip) {
  const Bytes bytes = serialise(StreamEnd{~std::uint64_t{0}, 12345});
  ASSERT_EQ(bytes.size(), kEndPayloadBytes);
  StreamEnd end;
  ASSERT_TRUE(parse_stream_end(bytes.data(), bytes.size(), end));
  EXPECT_EQ(end.frames, ~std::uint64_t{0});
  EXPECT_EQ(end.index_offset, 12345u);
  EXPECT_FALSE(parse_stream_end(bytes.data(), bytes.size() - 1, end));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    Bytes b = bytes;
    b[i] ^= 16;
    EXPECT_FALSE(parse_stream_end(b.data(), b.size(), end));
  }
}

}  // namespace
}  // namespace trivelet
