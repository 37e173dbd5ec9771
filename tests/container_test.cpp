// The container alone: what is written is read back, every field is checked against its range, every box is skipped or
// refused as it should be, and streams that were cut say so.

#include "codec/container.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <random>
#include <tuple>

#include "codec/backend.h"
#include "codec/bad_stream.h"
#include "codec/bits.h"
#include "codec/bytes.h"
#include "codec/gop_hash.h"
#include "codec/hash.h"
#include "codec/join.h"
#include "codec/metadata.h"
#include "codec/rewrite.h"
#include "codec/verify.h"
#include "tests/boxes.h"
#include "tests/support.h"

namespace trivelet {
namespace {

using namespace test;

StreamHeader grey_header() {
  StreamHeader h;
  h.video = video(40, 30, "gray", 100);
  h.spatial_levels = 3;
  h.temporal_levels = 2;
  h.layers = 3;
  h.gop_frames = 16;
  h.components.resize(1);
  h.components[0] = {128, 1.0f, 3, {64, 64, 64, 64}};
  h.writer = "writer";
  h.settings = "settings";
  return h;
}

template <class F>
ErrorKind kind_of(F f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_STRNE(e.what(), "");
    return e.kind();
  }
  return ErrorKind::kInternal;  // nothing was thrown
}

// ------------------------------------------------------------------------------------------------------------- boxes

// RFC 3720's check value, and the instruction against the tables at every length and offset.
TEST(Hash, Crc32cIsTheSameWithAndWithoutAnInstruction) {
  EXPECT_EQ(crc32c("123456789", 9), 0xE3069283u);
  EXPECT_EQ(crc32c_portable("123456789", 9), 0xE3069283u);
  std::mt19937 random(1);
  std::uint8_t bytes[100];
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
  for (std::size_t from = 0; from < 9; ++from)
    for (std::size_t n = 0; from + n <= sizeof bytes; ++n)
      ASSERT_EQ(crc32c(bytes + from, n, 7), crc32c_portable(bytes + from, n, 7)) << from << " " << n;
}

// Test values of the xxHash project, and pieces against the whole.
TEST(Hash, Xxh64IsThatOfXxhash) {
  EXPECT_EQ(XxHash64().digest(), 0xEF46DB3751D8E999u);
  XxHash64 abc;
  abc.update("abc", 3);
  EXPECT_EQ(abc.digest(), 0x44BC2CF5AD770999u);
  const std::vector<std::uint8_t> bytes(200, 77);
  XxHash64 whole, pieces;
  whole.update(bytes.data(), bytes.size());
  for (std::size_t at = 0, n = 1; at < bytes.size(); at += n++)
    pieces.update(bytes.data() + at, std::min(n, bytes.size() - at));
  EXPECT_EQ(whole.digest(), pieces.digest());
}

// What does not fit its bits is named by its place.
TEST(Hash, SamplesOutsideTheirBitsAreNamed) {
  const VideoInfo info = test::video(5, 3, "gray10", 2);
  Gop gop(info, 2);
  gop.set_frames(2);
  const auto set = [&](std::uint16_t value) { std::memcpy(gop.plane(0).row(1, 2) + 2 * 4, &value, 2); };
  set(1023);
  EXPECT_NO_THROW(check_samples(gop, 10));
  set(1024);
  try {
    check_samples(gop, 10);
    ADD_FAILURE() << "taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("1024 of component 0 at frame 1 of the GOP, row 2, column 4"),
              std::string::npos)
        << e.what();
  }
}

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

std::string message_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
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
  EXPECT_NE(refusal(4, "").find("feature 2, which has no name"), std::string::npos);
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

  // GOPs and entries of the index have room, too; the index is made anew.
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

// ------------------------------------------------------------------------------------------------------------ chunks

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

// ----------------------------------------------------------------------------------------------------------- streams

struct Decoded {
  std::vector<Gop> gops;
  CodecStats stats;
  StreamInfo info;
};

Decoded decode_from(ByteSource& source, bool keep_partial = false) {
  DecoderParams p;
  p.threads = 1;
  p.keep_partial = keep_partial;
  Decoder d(source, p);
  Decoded out;
  Gop gop = d.make_gop();
  while (d.pull(gop)) out.gops.push_back(gop);
  out.stats = d.stats();
  out.info = d.info();
  return out;
}
Decoded decode_bytes(const Bytes& bytes, bool keep_partial = false) {
  MemorySource source(bytes.data(), bytes.size());
  return decode_from(source, keep_partial);
}

struct Example {
  Clip clip;
  Bytes bytes;
  std::vector<BoxAt> boxes;
  explicit Example(int gops = 4) : clip(make_clip(video(20, 14, "yuv420p"), 3 * gops - 1, 3, Pattern::kTexture, 1)) {
    EncoderParams p;
    p.lossless = true;
    p.gop_frames = 3;
    p.threads = 1;
    p.block_size = 32;
    for (const std::byte b : encode(clip, p)) bytes.push_back(static_cast<std::uint8_t>(b));
    boxes = list_boxes(bytes.data(), bytes.size());
  }
  void expect_whole(const Decoded& d) const { expect_first(d, clip.gops.size()); }
  void expect_first(const Decoded& d, std::size_t n) const {
    ASSERT_EQ(d.gops.size(), n);
    for (std::size_t i = 0; i < n; ++i) {
      ASSERT_EQ(d.gops[i].frames(), clip.gops[i].frames());
      ASSERT_EQ(compare(d.gops[i], clip.gops[i]).largest, 0) << i;
      ASSERT_EQ(d.gops[i].times()[0].pts, clip.gops[i].times()[0].pts);
    }
  }
  Bytes with(std::size_t before_box, const Bytes& inserted) const {
    Bytes out = bytes;
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(boxes[before_box].at), inserted.begin(), inserted.end());
    return out;
  }
};

// A stream with its index and end made anew, for boxes that were put in.
Bytes remade(const Bytes& s) {
  const std::vector<BoxAt> boxes = list_boxes(s.data(), s.size());
  MemorySource source(s.data(), s.size());
  StreamInfo info = probe(source);
  std::size_t n = 0;
  for (const BoxAt& b : boxes)
    if (b.type == "Gop ") info.gops.at(n++).offset = b.at;
  Bytes out(s.begin(), s.end() - static_cast<std::ptrdiff_t>(s.size() - boxes.at(boxes.size() - 2).at));
  StreamEnd end;
  end.frames = info.gops.back().first_frame + static_cast<std::uint64_t>(info.gops.back().frames);
  end.index_offset = out.size();
  for (const Bytes& box : {make_box("Indx", serialise_index(info.gops)), make_box("Done", serialise(end))})
    out.insert(out.end(), box.begin(), box.end());
  return out;
}

TEST(Stream, HasTheBoxesItShouldHave) {
  const Example e;
  ASSERT_EQ(e.boxes.size(), 7u);
  EXPECT_EQ(e.boxes.front().type, "Head");
  for (std::size_t i = 1; i <= 4; ++i) EXPECT_EQ(e.boxes[i].type, "Gop ");
  EXPECT_EQ(e.boxes[5].type, "Indx");
  EXPECT_EQ(e.boxes[6].type, "Done");
  EXPECT_EQ(e.boxes[6].end(), e.bytes.size());
  const Decoded d = decode_bytes(e.bytes);
  e.expect_whole(d);
  EXPECT_TRUE(d.info.complete);
  EXPECT_TRUE(d.info.has_index);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(d.info.gops.at(i).offset, e.boxes[i + 1].at);
  Bytes copy = e.bytes;
  repair(copy);
  EXPECT_TRUE(copy == e.bytes);
}

TEST(Stream, PipesGiveTheSameAsFiles) {
  const Example e;
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100000}}) {
    Pipe pipe(e.bytes.data(), e.bytes.size(), piece);
    const Decoded d = decode_from(pipe);
    e.expect_whole(d);
    EXPECT_TRUE(d.info.complete || !d.info.has_index);
  }
  for (std::size_t n = 0; n < e.bytes.size(); n += 1 + n / 50) {
    Pipe pipe(e.bytes.data(), n);
    EXPECT_EQ(kind_of([&] { decode_from(pipe); }), ErrorKind::kBadStream) << n;
  }
}

TEST(Stream, UnknownBoxes) {
  const Example e;
  const Bytes note = make_extra_box("note", Bytes(300, 7));
  const Bytes empty = make_extra_box("zzzz", {});
  const Bytes must = make_extra_box("Must", {1, 2, 3});
  for (const Bytes& first : {note, empty, must,
                             Bytes(e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[1].at),
                                   e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[2].at))})
    EXPECT_EQ(kind_of([&] { decode_bytes(e.with(0, first)); }), ErrorKind::kBadStream) << "Head is not first";
  for (std::size_t i = 1; i < e.boxes.size(); ++i) {
    SCOPED_TRACE(i);
    const Bytes head(e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[0].at),
                     e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[0].end()));
    const Bytes twice = e.with(i, head);
    Pipe twice_pipe(twice.data(), twice.size());
    EXPECT_EQ(kind_of([&] { decode_from(twice_pipe); }), ErrorKind::kBadStream) << "a second Head";
    MemorySource twice_file(twice.data(), twice.size());
    EXPECT_EQ(kind_of([&] {
                if (!check_boxes(twice_file).empty()) bad("it is found");
              }),
              ErrorKind::kBadStream);
    for (const Bytes& extra : {note, empty}) {
      const Bytes s = e.with(i, extra);
      e.expect_whole(decode_bytes(s));
      Pipe pipe(s.data(), s.size());
      e.expect_whole(decode_from(pipe));
    }
    const Bytes s = e.with(i, must);
    Pipe pipe(s.data(), s.size());
    EXPECT_EQ(kind_of([&] { decode_from(pipe); }), ErrorKind::kUnsupported);
    // A file with an index need not look at every box.
    if (i > 1) continue;
    EXPECT_EQ(kind_of([&] { decode_bytes(s); }), ErrorKind::kUnsupported);
    EXPECT_NE(message_of([&] { decode_bytes(s); }).find("'Must'"), std::string::npos);
  }
  // A box that claims to be longer than the file.
  Bytes huge(kBoxHeaderBytes);
  write_box_header("note", ~std::uint64_t{0}, huge.data());
  for (const std::size_t i : {std::size_t{1}, std::size_t{3}}) {
    const Bytes s = e.with(i, huge);
    EXPECT_EQ(kind_of([&] { decode_bytes(s); }), ErrorKind::kBadStream) << i;
    Pipe pipe(s.data(), s.size());
    EXPECT_EQ(kind_of([&] { decode_from(pipe); }), ErrorKind::kBadStream) << i;
  }
}

// Whoever makes a stream of others keeps what he does not know; but what depends on what is coded only where nothing of
// that is left out.
TEST(Stream, UnknownBoxesAreKept) {
  const Example e;
  const std::size_t second_gop = 2;
  Bytes s = e.with(second_gop + 1, make_extra_box("afte", {5, 6}));  // behind the second GOP
  const auto insert = [&](const Bytes& box) {
    s.insert(s.begin() + static_cast<std::ptrdiff_t>(e.boxes[1].at), box.begin(), box.end());
  };
  insert(make_extra_box("frnt", Bytes(40, 3)));
  insert(make_extra_box("frnT", {4}));
  s = remade(s);
  const auto types_of = [](const std::vector<std::byte>& bytes) {
    std::string types;
    for (const BoxAt& b : list_boxes(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()))
      types += b.type + ",";
    return types;
  };
  const auto rewritten = [&](const RewriteParams& params) {
    MemorySource source(s.data(), s.size());
    MemorySink sink;
    EXPECT_TRUE(rewrite(source, params, sink).damage.empty());
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(verify_stream(again, {.threads = 1}).damage.empty());
    return sink.bytes;
  };
  EXPECT_EQ(types_of(rewritten({})), "Head,frnT,frnt,Gop ,Gop ,afte,Gop ,Gop ,Indx,Done,");
  EXPECT_EQ(types_of(rewritten({.layers = 1})), "Head,frnt,Gop ,Gop ,afte,Gop ,Gop ,Indx,Done,");
  EXPECT_EQ(types_of(rewritten({.reduce = 1})), "Head,frnt,Gop ,Gop ,afte,Gop ,Gop ,Indx,Done,");
  EXPECT_EQ(types_of(rewritten({.first_frame = 3, .end_frame = 6})), "Head,frnt,Gop ,afte,Indx,Done,");
  EXPECT_EQ(types_of(rewritten({.first_frame = 6})), "Head,frnt,Gop ,Gop ,Indx,Done,");
  const std::vector<std::byte> all = rewritten({});
  EXPECT_TRUE(std::equal(all.begin(), all.end(), reinterpret_cast<const std::byte*>(s.data()),
                         reinterpret_cast<const std::byte*>(s.data()) + s.size()));

  MemorySource a(s.data(), s.size()), b(s.data(), s.size());
  MemorySink joined;
  join(std::vector<JoinInput>{{"a", &a}, {"b", &b}}, joined);
  EXPECT_EQ(types_of(joined.bytes), "Head,frnT,frnt,Gop ,Gop ,afte,Gop ,Gop ,Gop ,Gop ,afte,Gop ,Gop ,Indx,Done,");

  // Damaged ones are found, and not written again.
  Bytes damaged = s;
  damaged[e.boxes[1].at + kBoxHeaderBytes + 1 + kBoxCrcBytes + kBoxHeaderBytes + 7] ^= 1;  // of frnt
  MemorySource source(damaged.data(), damaged.size());
  const StreamInfo info = probe(source);
  ASSERT_EQ(info.damaged_boxes.size(), 1u);
  EXPECT_EQ(info.damaged_boxes[0].type, "frnt");
  EXPECT_EQ(info.boxes.size(), 1u);
  EXPECT_FALSE(check_boxes(source).empty());
  MemorySink sink;
  source.seek(0);
  EXPECT_EQ(kind_of([&] { rewrite(source, {}, sink); }), ErrorKind::kBadStream);
  sink.bytes.clear();
  source.seek(0);
  EXPECT_EQ(rewrite(source, {.keep_partial = true}, sink).damage.size(), 1u);
  EXPECT_EQ(types_of(sink.bytes), "Head,frnT,Gop ,Gop ,afte,Gop ,Gop ,Indx,Done,");
}

Metadata much_metadata() {
  Metadata m;
  m.mastering_display =
      MasteringDisplay{{{{34000, 16000}, {13250, 34500}, {7500, 3000}, {15635, 16450}}}, 10000000, 50};
  m.content_light = ContentLight{1000, 400};
  m.chapter_time_base = {1, 1000};
  m.chapters = {{-5, 100, "first"}, {100, 100, ""}, {100, std::numeric_limits<std::int64_t>::max(), "last"}};
  m.entries = {{"title", "A title"}, {"title", std::string(65536, 'x')}, {"comment", ""}};
  return m;
}

TEST(Stream, MetadataIsCarriedThrough) {
  const Metadata metadata = much_metadata();
  EncoderParams p;
  p.threads = 1;
  p.gop_frames = 2;
  p.metadata = metadata;
  const Clip clip = make_clip(video(20, 14, "gray"), 4, 2, Pattern::kTexture, 1);
  const std::vector<std::byte> stream = encode(clip, p);
  MemorySource source(stream.data(), stream.size());
  EXPECT_TRUE(probe(source).metadata == metadata);
  for (const RewriteParams& part :
       {RewriteParams{.layers = 1}, RewriteParams{.first_frame = 2}, RewriteParams{.reduce = 1}}) {
    source.seek(0);
    MemorySink sink;
    rewrite(source, part, sink);
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(probe(again).metadata == metadata);
  }

  // Joined: chapters of all, as late as their frames; the rest must be the same, or is that of the first.
  p.metadata.chapters = {{0, 100, "a"}, {100, 160, "b"}};
  const std::vector<std::byte> first = encode(clip, p);  // 4 frames of 40 ms
  p.metadata.chapters = {{0, 70, "c"}};
  p.metadata.entries.clear();
  const std::vector<std::byte> second = encode(clip, p);
  const auto joined = [](const std::vector<std::byte>& x, const std::vector<std::byte>& y) {
    MemorySource a(x.data(), x.size()), b(y.data(), y.size());
    MemorySink sink;
    join(std::vector<JoinInput>{{"a", &a}, {"b", &b}}, sink);
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    return probe(again).metadata;
  };
  const Metadata both = joined(first, second);
  EXPECT_EQ(both.chapters, (std::vector<Chapter>{{0, 100, "a"}, {100, 160, "b"}, {160, 230, "c"}}));
  EXPECT_EQ(both.entries, metadata.entries);
  EXPECT_EQ(both.mastering_display, metadata.mastering_display);
  p.metadata.chapter_time_base = {1, 25};
  EXPECT_EQ(kind_of([&] { joined(first, encode(clip, p)); }), ErrorKind::kBadArgument);
  p.metadata = {};
  EXPECT_EQ(kind_of([&] { joined(first, encode(clip, p)); }), ErrorKind::kBadArgument);
}

TEST(Stream, MetadataIsChecked) {
  const Metadata good = much_metadata();
  const auto refused = [&](const std::function<void(Metadata&)>& change) {
    Metadata m = good;
    change(m);
    return kind_of([&] { metadata_boxes(m); }) == ErrorKind::kBadArgument;
  };
  EXPECT_FALSE(refused([](Metadata&) {}));
  EXPECT_TRUE(refused([](Metadata& m) { m.chapter_time_base.den = 0; }));
  EXPECT_TRUE(refused([](Metadata& m) { m.chapters[1].begin = -6; }));
  EXPECT_TRUE(refused([](Metadata& m) { m.chapters[0].end = -6; }));
  EXPECT_TRUE(refused([](Metadata& m) { m.chapters[0].title.assign(4097, 'x'); }));
  EXPECT_TRUE(refused([](Metadata& m) { m.entries[0].first = ""; }));
  EXPECT_TRUE(refused([](Metadata& m) { m.entries[0].first = "Title"; }));
  EXPECT_TRUE(refused([](Metadata& m) { m.entries[1].second += 'x'; }));
  EncoderParams p;
  p.metadata = good;
  p.boxes = {{"meta", {0}}};
  MemorySink sink;
  EXPECT_EQ(kind_of([&] { Encoder(video(8, 8, "gray"), p, sink); }), ErrorKind::kBadArgument);

  // A box that is cut, or says what cannot be, is as if it were not there; the others are. Room is passed over.
  const std::vector<ExtraBox> boxes = metadata_boxes(good);
  ASSERT_EQ(boxes.size(), 4u);
  EXPECT_TRUE(read_metadata(boxes) == good);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    std::vector<ExtraBox> changed = boxes;
    changed[i].payload.push_back(7);
    EXPECT_TRUE(read_metadata(changed) == good) << boxes[i].type;
    for (std::size_t n = 0; n < std::min<std::size_t>(boxes[i].payload.size(), 100); ++n) {
      changed[i].payload.assign(boxes[i].payload.begin(), boxes[i].payload.begin() + static_cast<std::ptrdiff_t>(n));
      const Metadata m = read_metadata(changed);
      EXPECT_EQ(m.mastering_display.has_value(), i != 0);
      EXPECT_EQ(m.content_light.has_value(), i != 1);
      EXPECT_EQ(m.chapters.empty(), i == 2);
      EXPECT_EQ(m.entries.empty(), i == 3);
    }
  }
  for (const Bytes& chapters : {Bytes{0, 0, 0, 0, 1, 0, 0, 0, 0}, Bytes{1, 0, 0, 0, 1, 0, 0, 0, 1, 4, 2, 0},
                                Bytes{1, 0, 0, 0, 1, 0, 0, 0, 2, 4, 4, 0, 2, 4, 0},
                                Bytes{1, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 1, 0, 0}})
    EXPECT_TRUE(read_metadata({{"chap", chapters}}).empty());
  EXPECT_TRUE(read_metadata({{"meta", {1, 1, 'A', 0}}}).empty());
}

TEST(Stream, ALostIndexIsRebuilt) {
  const Example e;
  Bytes s = e.bytes;
  s[e.boxes[5].payload() + 2] ^= 1;
  Decoded d = decode_bytes(s);
  e.expect_whole(d);
  EXPECT_TRUE(d.info.has_index);
  EXPECT_EQ(d.info.gops.size(), 4u);
  s = e.bytes;
  s[e.boxes[5].at] ^= 1;  // its box header
  e.expect_whole(decode_bytes(s));
  s = e.bytes;
  s.erase(s.begin() + static_cast<std::ptrdiff_t>(e.boxes[5].at),
          s.begin() + static_cast<std::ptrdiff_t>(e.boxes[6].at));
  e.expect_whole(decode_bytes(s));
  // An index of another stream: its places hold no packets.
  std::vector<GopInfo> wrong = decode_bytes(e.bytes).info.gops;
  for (GopInfo& g : wrong) ++g.offset;
  const Bytes index = make_box("Indx", serialise_index(wrong));
  s = e.bytes;
  ASSERT_EQ(index.size(), e.boxes[5].length + kBoxHeaderBytes);
  std::copy(index.begin(), index.end(), s.begin() + static_cast<std::ptrdiff_t>(e.boxes[5].at));
  d = decode_bytes(s);
  e.expect_whole(d);
  EXPECT_FALSE(d.info.index_damage.empty());
  MemorySource source(s.data(), s.size());
  EXPECT_FALSE(check_boxes(source).empty());
}

TEST(Stream, WithoutItsEnd) {
  const Example e;
  for (std::size_t complete = 0; complete <= 4; ++complete) {
    const Bytes s(e.bytes.begin(), e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[complete + 1].at));
    EXPECT_EQ(kind_of([&] { decode_bytes(s); }), ErrorKind::kBadStream);
    const Decoded d = decode_bytes(s, true);
    e.expect_first(d, complete);
    EXPECT_FALSE(d.info.complete);
    EXPECT_FALSE(d.stats.damage.empty());
    Pipe pipe(s.data(), s.size());
    e.expect_first(decode_from(pipe, true), complete);
  }
  // The GOPs before the end are delivered even when strict.
  const Bytes s(e.bytes.begin(), e.bytes.begin() + static_cast<std::ptrdiff_t>(e.boxes[3].at + 40));
  MemorySource source(s.data(), s.size());
  Decoder d(source, {});
  Gop gop = d.make_gop();
  EXPECT_TRUE(d.pull(gop));
  EXPECT_TRUE(d.pull(gop));
  EXPECT_EQ(compare(gop, e.clip.gops[1]).largest, 0);
  EXPECT_THROW(d.pull(gop), Error);
}

TEST(Stream, NotAStream) {
  EXPECT_FALSE(is_tvl("PK", 2));
  EXPECT_TRUE(is_tvl(kSignature, 8));
  for (const Bytes& b : {Bytes{}, Bytes(7, 0x89), Bytes(1000, 0), Bytes(kSignature, kSignature + 8)})
    EXPECT_EQ(kind_of([&] { decode_bytes(b); }), ErrorKind::kBadStream);
}

// A header alone may promise any number of frames; nothing may take time or memory for them.
TEST(Stream, PromisedFramesCostNothing) {
  StreamHeader h = grey_header();
  h.video.frames = 0xffffffff;
  h.gop_frames = 1;
  Bytes s(kSignature, kSignature + 8);
  const Bytes head = make_box("Head", serialise(h));
  s.insert(s.end(), head.begin(), head.end());
  Pipe pipe(s.data(), s.size());
  DecoderParams p;
  p.threads = 1;
  const Decoder d(pipe, p);
  EXPECT_EQ(d.output().frames, 0xffffffffu);
}

TEST(Stream, MemoryIsBoundedBeforeItIsTaken) {
  auto open = [](const StreamHeader& h, std::size_t limit) {
    Bytes s(kSignature, kSignature + 8);
    const Bytes head = make_box("Head", serialise(h));
    s.insert(s.end(), head.begin(), head.end());
    DecoderParams p;
    p.threads = 1;
    p.limits.memory = limit;
    MemorySource source(s.data(), s.size());
    Decoder d(source, p);
  };
  StreamHeader h = grey_header();
  h.video = video(20000, 20000, "gray");
  h.gop_frames = 8;
  EXPECT_EQ(kind_of([&] { open(h, std::size_t{8} << 30); }), ErrorKind::kUnsupported);
  // A tiny picture whose code blocks are as large as blocks can be.
  h = grey_header();
  h.video = video(1, 1, "gray");
  h.layout = Layout::kDyadic;
  h.temporal_levels = h.spatial_levels = h.components[0].spatial_levels = 8;
  h.gop_frames = 128;
  EXPECT_EQ(kind_of([&] { open(h, std::size_t{64} << 20); }), ErrorKind::kUnsupported);
  // Many small blocks with many segments and layers each.
  h = grey_header();
  h.video = video(4096, 4096, "gray");
  h.temporal_levels = 8;
  h.spatial_levels = h.components[0].spatial_levels = 4;
  h.log2_block = 5;
  h.layers = 16;
  h.gop_frames = 1;
  EXPECT_EQ(kind_of([&] { open(h, std::size_t{160} << 20); }), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace trivelet
