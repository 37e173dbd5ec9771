// Whole streams: every box is skipped, kept or refused as specified, and truncated streams are reported as such.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "codec/base/bad_stream.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/format/metadata.h"
#include "tests/support/boxes.h"
#include "tests/support/container_support.h"
#include "trivelet/edit.h"

namespace trivelet {
namespace {

using namespace test;

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
    p.motion = Motion::kOff;
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

// A stream with index and end made again, after boxes were inserted.
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
  // Also behind a GOP, where joining takes what stands there along, but for front tables.
  for (const char* type : {"note", kFrontTableBox}) {
    const std::size_t before_index = e.boxes.size() - 2;
    Bytes s = remade(e.with(before_index, make_extra_box(type, {1, 2, 3})));
    write_box_header(type, std::uint64_t{1} << 40, s.data() + e.boxes[before_index].at);
    MemorySource source(s.data(), s.size());
    MemorySink sink;
    EXPECT_EQ(kind_of([&] { join(std::vector<JoinInput>{{"a", &source}}, sink); }), ErrorKind::kBadStream) << type;
  }
}

// Rewriting keeps unknown boxes; those that depend on coded data are kept only if nothing of it is dropped.
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
  p.motion = Motion::kOff;
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

// Limits count the GOPs that are there, not the longest that the header allows: a picture is a GOP of 1 of 32.
TEST(Stream, LimitsCountTheFramesOfGops) {
  const Clip clip = make_clip(video(256, 256, "gray"), 4, 3, Pattern::kTexture, 1);  // GOPs of 3 and of 1
  EncoderParams p;
  p.motion = Motion::kOff;
  p.lossless = true;
  p.gop_frames = 32;
  p.threads = 1;
  const auto coded = [&](std::size_t gops) {
    Clip part = clip;
    part.gops.erase(part.gops.begin(), part.gops.end() - static_cast<std::ptrdiff_t>(gops));
    Bytes out;
    for (const std::byte b : encode(part, p)) out.push_back(static_cast<std::uint8_t>(b));
    return out;
  };
  const auto decode_within = [](ByteSource& source, std::size_t memory, std::uint64_t samples) {
    DecoderParams d;
    d.threads = 1;
    d.limits.memory = memory;
    d.limits.samples = samples;
    return kind_of([&] {
      Decoder decoder(source, d);
      Gop gop = decoder.make_gop();
      while (decoder.pull(gop)) continue;
    });
  };
  constexpr std::uint64_t kFrame = 256 * 256;
  const std::size_t enough = std::size_t{4} << 20;  // 32 frames take 20 MB
  for (const std::size_t gops : {1, 2}) {
    SCOPED_TRACE(gops);
    Bytes bytes = coded(gops);
    MemorySource source(bytes.data(), bytes.size());
    const std::uint64_t frames = gops == 1 ? 1 : 3;
    for (const std::uint64_t samples : {frames * kFrame, frames * kFrame - 1}) {
      const ErrorKind nothing = ErrorKind::kInternal;  // was thrown
      const ErrorKind expected = samples < frames * kFrame ? ErrorKind::kUnsupported : nothing;
      source.seek(0);
      EXPECT_EQ(kind_of([&] { probe(source, {.samples = samples}); }), expected);
      source.seek(0);
      EXPECT_EQ(decode_within(source, enough, samples), expected);
      source.seek(0);
      MemorySink sink;
      EXPECT_EQ(kind_of([&] { rewrite(source, {.limits = {.samples = samples}}, sink); }), expected);
      // A header that says too few frames, and no index.
      const BoxAt head = list_boxes(bytes.data(), bytes.size()).front();
      StreamHeader h = parse_stream_header(bytes.data() + head.payload(), head.length);
      h.video.frames = 1;
      const Bytes box = make_box("Head", serialise(h));
      std::copy(box.begin(), box.end(), bytes.begin() + static_cast<std::ptrdiff_t>(head.at));
      Pipe pipe(bytes.data(), bytes.size());
      EXPECT_EQ(decode_within(pipe, enough, samples), expected);
    }
    source.seek(0);
    EXPECT_EQ(decode_within(source, kFrame, 3 * kFrame), ErrorKind::kUnsupported);
  }
  // The index says 1 frame where there are 3.
  const Bytes bytes = coded(2);
  MemorySource source(bytes.data(), bytes.size());
  StreamInfo info = probe(source);
  EXPECT_EQ(info.gop_frames, 32);
  info.gops.at(0).frames = 1;
  StreamEnd end;
  end.frames = 4;
  end.index_offset = list_boxes(bytes.data(), bytes.size()).at(3).at;
  Bytes lying(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end.index_offset));
  for (const Bytes& box : {make_box("Indx", serialise_index(info.gops)), make_box("Done", serialise(end))})
    lying.insert(lying.end(), box.begin(), box.end());
  EXPECT_EQ(kind_of([&] { decode_bytes(lying); }), ErrorKind::kBadStream);
}

// Streams with motion whose GOPs hold one frame each: those that are closed have none, and need no memory for keys.
TEST(Stream, PicturesAloneTakeNoMemoryForMotion) {
  for (const int frames : {1, 2}) {
    const Clip clip = make_clip(video(1024, 1024, "gray"), 2, frames, Pattern::kZero, 1);
    EncoderParams p;
    p.motion = Motion::kOn;
    p.lossless = true;
    p.gop_frames = 32;
    p.threads = 1;
    const std::vector<std::byte> coded = encode(clip, p);
    MemorySource source(coded.data(), coded.size());
    DecoderParams d;
    d.threads = 1;
    d.limits.memory = std::size_t{20} << 20;  // samples and coefficients take 7 MB, keys at five levels 20 more
    const ErrorKind expected = frames == 1 ? ErrorKind::kInternal : ErrorKind::kUnsupported;
    EXPECT_EQ(kind_of([&] { Decoder(source, d); }), expected);
    // From a pipe the header alone tells how many there are; of two frames this one lies.
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(coded.data());
    Bytes told(bytes, bytes + coded.size());
    const BoxAt head = list_boxes(told.data(), told.size()).at(0);
    StreamHeader h = parse_stream_header(told.data() + head.payload(), head.length);
    h.video.frames = 1;
    const Bytes box = make_box("Head", serialise(h));
    std::copy(box.begin(), box.end(), told.begin() + static_cast<std::ptrdiff_t>(head.at));
    Pipe pipe(told.data(), told.size());
    EXPECT_EQ(kind_of([&] {
                Decoder decoder(pipe, d);
                Gop gop = decoder.make_gop();
                while (decoder.pull(gop)) continue;
              }),
              expected);
  }
}

}  // namespace
}  // namespace trivelet
