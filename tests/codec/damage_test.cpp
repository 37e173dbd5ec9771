// Every command that reads streams, on damaged streams: every prefix and every flipped byte. A success gives the same
// result as the intact stream; anything else is an Error of the right kind. verify finds all damage. TRIVELET_FULL=1
// runs every command at every place, otherwise they take turns.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "codec/backend.h"
#include "codec/format/container.h"
#include "codec/volume/volume_cuts.h"
#include "codec/volume/volume_map.h"
#include "tests/support/boxes.h"
#include "tests/support/held_memory.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"
#include "trivelet/edit.h"
#include "trivelet/volume.h"

namespace trivelet {
namespace {

using namespace test;

/// What a command gave, as bytes that can be compared: samples and times, or what a stream says.
struct Outcome {
  bool error = false;
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  Bytes result;
};

struct Command {
  std::string name;
  bool needs_all = true;  ///< of the stream: no prefix is enough
  std::function<void(ByteSource&, Bytes&)> run;
};

void put(Bytes& out, std::uint64_t v) {
  out.resize(out.size() + 8);
  store(out.data() + out.size() - 8, v, 8);
}

void put_region(Bytes& out, const Gop& gop, const PictureRegion& region) {
  put(out, static_cast<std::uint64_t>(gop.frames()));
  for (int f = 0; f < gop.frames(); ++f) {
    put(out, static_cast<std::uint64_t>(gop.times()[static_cast<std::size_t>(f)].pts));
    put(out, static_cast<std::uint64_t>(gop.times()[static_cast<std::size_t>(f)].duration));
    for (int c = 0; c < gop.components(); ++c) {
      const VolumeView v = gop.plane(c);
      const bool all = region.width == 0;
      for (int y = all ? 0 : region.y; y < (all ? v.shape.height : region.y + region.height); ++y)
        for (int x = all ? 0 : region.x; x < (all ? v.shape.width : region.x + region.width); ++x)
          put(out, static_cast<std::uint64_t>(sample(v, f, y, x)));
    }
  }
}

void decode_all(ByteSource& source, DecoderParams params, Bytes& out) {
  params.threads = 1;
  params.limits.memory = std::size_t{64} << 20;
  Decoder decoder(source, params);
  Gop gop = decoder.make_gop();
  while (decoder.pull(gop)) put_region(out, gop, params.region);
}

void rewrite_all(ByteSource& source, const RewriteParams& params, Bytes& out) {
  MemorySink sink;
  rewrite(source, params, sink);
  MemorySource again(sink.bytes.data(), sink.bytes.size());
  const VerifyResult found = verify_stream(again, {.threads = 1});
  EXPECT_TRUE(found.damage.empty()) << "a damaged stream was written: " << found.damage.front();
  again.seek(0);
  decode_all(again, {}, out);
}

void join_all(ByteSource& source, Bytes& out) {
  MemorySink sink;
  const JoinInput input{"it", &source};
  join({&input, 1}, sink);
  MemorySource again(sink.bytes.data(), sink.bytes.size());
  const VerifyResult found = verify_stream(again, {.threads = 1});
  EXPECT_TRUE(found.damage.empty()) << "a damaged stream was written: " << found.damage.front();
  again.seek(0);
  decode_all(again, {}, out);
}

std::uint64_t frames_in(const StreamInfo& info) {
  return info.gops.empty() ? 0 : info.gops.back().first_frame + static_cast<std::uint64_t>(info.gops.back().frames);
}

Command decoding(const char* name, DecoderParams params, bool needs_all = true) {
  return {name, needs_all, [params](ByteSource& s, Bytes& out) { decode_all(s, params, out); }};
}
Command rewriting(const char* name, RewriteParams params, bool needs_all = true) {
  return {name, needs_all, [params](ByteSource& s, Bytes& out) { rewrite_all(s, params, out); }};
}

struct Tiny {
  std::string name;
  Bytes bytes;
  std::vector<Command> commands;
  std::vector<Bytes> wanted;  ///< by command
};

Outcome run(const Command& command, const Bytes& bytes, bool pipe = false) {
  Outcome out;
  MemorySource file(bytes.data(), bytes.size());
  Pipe stream(bytes.data(), bytes.size());
  try {
    command.run(pipe ? static_cast<ByteSource&>(stream) : file, out.result);
  } catch (const Error& e) {
    out.error = true;
    out.kind = e.kind();
    out.message = e.what();
  }
  return out;
}

std::vector<Command> commands_for(const StreamInfo& info, std::uint64_t bytes, bool t2d, bool lossless, bool parts) {
  std::vector<Command> all;
  all.push_back(decoding("decode", {}));
  all.push_back(decoding("decode --reduce 1", {.reduce = 1}));
  all.push_back(decoding("decode --frames 2:4", {.first_frame = 2, .end_frame = 4}, false));
  all.push_back(decoding("decode --frames 3:", {.first_frame = 3}));
  all.push_back(decoding("decode --max-layers 1", {.max_layers = 1}));
  all.push_back(decoding("decode --max-bpp", {.max_bits_per_pixel = 1}));
  if (t2d) all.push_back(decoding("decode --temporal-reduce 1", {.temporal_reduce = 1}));
  if (parts) {
    DecoderParams region;
    region.region = {2, 1, 3, 4};
    all.push_back(decoding("decode --region", region));
  }
  all.push_back(rewriting("truncate --size", {.target_bytes = bytes * 9 / 10}));
  all.push_back(rewriting("truncate --layers 1", {.layers = 1}));
  if (!lossless && info.gops[0].layers[0].error != kErrorUnknown)
    all.push_back(rewriting("truncate --psnr", {.psnr = 25}));
  if (info.boxes.empty()) {
    all.push_back(rewriting("extract --reduce 1", {.reduce = 1}));
    if (t2d) all.push_back(rewriting("extract --temporal-reduce 1", {.temporal_reduce = 1}));
    all.push_back(rewriting("extract --frames 2:4", {.first_frame = 2, .end_frame = 4}, false));
    all.push_back({"join", true, join_all});
  }
  return all;
}

Tiny make(const std::string& name, int width, int height, const char* format, const CodingParams& given) {
  CodingParams p = given;
  p.gop_frames = 2;
  p.block_size = 32;
  p.threads = 1;
  p.layers = 2;
  p.quality = 40;
  p.spatial_levels = 1;
  p.temporal_levels = 1;
  Tiny t;
  t.name = name;
  for (const std::byte b : encode(make_clip(video(width, height, format), 5, 2, Pattern::kTexture, 5), p))
    t.bytes.push_back(static_cast<std::uint8_t>(b));
  MemorySource source(t.bytes.data(), t.bytes.size());
  t.commands = commands_for(probe(source), t.bytes.size(), p.layout == Layout::kT2d, p.lossless, p.part_checks);
  for (const Command& c : t.commands) {
    const Outcome o = run(c, t.bytes);
    EXPECT_FALSE(o.error) << name << ": " << c.name << ": " << o.message;
    EXPECT_FALSE(o.result.empty()) << name << ": " << c.name;
    t.wanted.push_back(o.result);
  }
  return t;
}

const std::vector<Tiny>& tiny_streams() {
  static const std::vector<Tiny> streams = [] {
    std::vector<Tiny> all;
    CodingParams p;
    p.motion = Motion::kOff;
    p.profile = Profile::kDense;
    all.push_back(make("dense", 24, 18, "gray", p));
    p.motion = Motion::kOn;
    all.push_back(make("motion", 24, 18, "gray", p));
    p.motion = Motion::kOff;
    p.lossless = true;
    VolumeMap map;  // of bytes as they are
    map.slices = 5;
    map.last = 255;
    map.last_key = 255;
    VolumeCuts cuts;
    cuts.peak = 255;
    cuts.cuts.assign(2, {1, 1});
    p.part_checks = true;
    p.boxes = {{"Volm", serialise(map)}, {"volh", {1, 0, 0, 0}}, {"volq", serialise(cuts)}, {"note", {1, 2, 3}}};
    all.push_back(make("volume", 8, 7, "gray", p));
    p.boxes.clear();
    p.part_checks = false;
    p.profile = Profile::kFast;
    all.push_back(make("fast lossless", 11, 9, "gray", p));
    p.lossless = false;
    p.layout = Layout::kDyadic;
    all.push_back(make("fast dyadic", 20, 16, "gray10", p));
    return all;
  }();
  return streams;
}

// One command over one damaged stream.
void check(const Tiny& t, std::size_t command, const Bytes& bytes, bool prefix, bool pipe) {
  const Command& c = t.commands[command];
  const Outcome o = run(c, bytes, pipe);
  if (o.error) {
    EXPECT_TRUE(o.kind == ErrorKind::kBadStream || o.kind == ErrorKind::kUnsupported ||
                o.kind == ErrorKind::kBadArgument)
        << c.name << ": " << o.message;
    EXPECT_FALSE(o.message.empty());
    return;
  }
  EXPECT_FALSE(prefix && c.needs_all) << c.name << ": the stream is cut, and nothing was said";
  EXPECT_TRUE(o.result == t.wanted[command]) << c.name << ": other samples, and nothing was said";
}

// Commands of every place: all of them, or some in turn.
void check_place(const Tiny& t, std::size_t place, const Bytes& bytes, bool prefix) {
  const std::size_t n = t.commands.size();
  const std::size_t most = full() ? n : kSanitized ? 1 : 3;
  for (std::size_t k = 0; k < most; ++k) check(t, (place * most + k) % n, bytes, prefix, false);
  if (place % 4 == 0) check(t, place / 4 % 6, bytes, prefix, true);  // decoding, from a pipe
}

bool verified(const Bytes& bytes, bool pipe, std::string& said) {
  MemorySource file(bytes.data(), bytes.size());
  Pipe stream(bytes.data(), bytes.size());
  try {
    const VerifyResult found = verify_stream(pipe ? static_cast<ByteSource&>(stream) : file, {.threads = 1});
    said = found.damage.empty() ? "" : found.damage.front();
    return found.damage.empty();
  } catch (const Error& e) {
    EXPECT_TRUE(e.kind() == ErrorKind::kBadStream || e.kind() == ErrorKind::kUnsupported) << e.what();
    said = e.what();
    return false;
  }
}

// What a stream says of itself is right, or it says that it had to guess.
void check_probe(const Tiny& t, const Bytes& bytes) {
  MemorySource intact(t.bytes.data(), t.bytes.size());
  const StreamInfo wanted = probe(intact);
  MemorySource source(bytes.data(), bytes.size());
  try {
    const StreamInfo info = probe(source);
    if (!info.header_damage.empty()) return;
    if (info.index_damage.empty()) {
      EXPECT_TRUE(info.complete);
      EXPECT_EQ(info.gops.size(), wanted.gops.size());
      EXPECT_EQ(frames_in(info), frames_in(wanted));
    }
    for (const GopInfo& g : info.gops) {  // all that is found is right
      const auto same = std::find_if(wanted.gops.begin(), wanted.gops.end(),
                                     [&](const GopInfo& w) { return w.first_frame == g.first_frame; });
      ASSERT_NE(same, wanted.gops.end());
      EXPECT_EQ(g.offset, same->offset);
      EXPECT_EQ(g.frames, same->frames);
      ASSERT_EQ(g.layers.size(), same->layers.size());
      for (std::size_t l = 0; l < g.layers.size(); ++l) EXPECT_EQ(g.layers[l].bytes, same->layers[l].bytes);
    }
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
  }
}

constexpr std::size_t kMostHeld = std::size_t{48} << 20;

TEST(Damage, EveryPrefix) {
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    OneOf chosen(kSanitized ? 11 : 3);
    for (std::size_t n = 0; n < t.bytes.size(); ++n) {
      if (!chosen()) continue;
      SCOPED_TRACE(testing::Message() << "first " << n << " of " << t.bytes.size() << " bytes");
      const Bytes bytes(t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(n));
      check_place(t, n, bytes, true);
      check_probe(t, bytes);
      std::string said;
      for (const bool pipe : {false, true}) EXPECT_FALSE(verified(bytes, pipe, said)) << "verify " << pipe;
      if (HasFailure()) return;
    }
  }
  EXPECT_LT(most_held, kMostHeld);
}

TEST(Damage, EveryFlippedByte) {
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    std::size_t chunks_from = ~std::size_t{0}, chunks_to = 0;  // of the first GOP: there one mask will do
    for (const BoxAt& b : list_boxes(t.bytes.data(), t.bytes.size()))
      if (b.type == "Gop " && chunks_to == 0) {
        chunks_from = b.payload() + static_cast<std::size_t>(load(t.bytes.data() + b.payload(), 4));
        chunks_to = b.end();
      }
    OneOf chosen(kSanitized ? 19 : 7);
    std::size_t place = 0;
    for (std::size_t at = 0; at < t.bytes.size(); ++at)
      for (const int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        const bool one = !full() && at >= chunks_from && at < chunks_to;
        if ((one && mask != 255) || (!full() && mask != 255 && mask != 1 << at % 8) || !chosen()) continue;
        SCOPED_TRACE(testing::Message() << "byte " << at << " of " << t.bytes.size() << " ^ " << mask);
        Bytes bytes = t.bytes;
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ mask);
        check_place(t, place++, bytes, false);
        check_probe(t, bytes);
        std::string said;
        for (const bool pipe : {false, true}) EXPECT_FALSE(verified(bytes, pipe, said)) << "verify " << pipe;
        if (HasFailure()) return;
      }
  }
  EXPECT_LT(most_held, kMostHeld);
}

// A lost index costs nothing but the errors of the layers.
TEST(Damage, TheIndexIsRebuilt) {
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    const std::vector<BoxAt> boxes = list_boxes(t.bytes.data(), t.bytes.size());
    ASSERT_EQ(boxes[boxes.size() - 2].type, "Indx");
    Bytes bytes = t.bytes;
    bytes[boxes[boxes.size() - 2].payload() + 1] ^= 4;
    MemorySource source(bytes.data(), bytes.size());
    const StreamInfo info = probe(source);
    EXPECT_TRUE(info.complete);
    EXPECT_NE(info.index_damage.find("index"), std::string::npos);
    for (std::size_t i = 0; i < t.commands.size(); ++i) {
      const Outcome o = run(t.commands[i], bytes);
      const bool impossible = t.commands[i].name == "truncate --psnr";
      EXPECT_EQ(o.error, impossible) << t.commands[i].name << ": " << o.message;
      EXPECT_TRUE(o.error || o.result == t.wanted[i]) << t.commands[i].name;
      if (!impossible) continue;
      EXPECT_EQ(o.kind, ErrorKind::kBadArgument);
      EXPECT_NE(o.message.find("only it knew the errors"), std::string::npos) << o.message;
    }
    bytes = t.bytes;
    bytes.push_back(0);  // something behind the end hides it; a decoder does without
    for (std::size_t i = 0; i < t.commands.size(); ++i)
      if (t.commands[i].name != "truncate --psnr") check(t, i, bytes, false, false);
    std::string said;
    for (const bool pipe : {false, true}) {
      EXPECT_FALSE(verified(bytes, pipe, said));
      EXPECT_NE(said.find("behind the end"), std::string::npos) << said;
    }
  }
}

// Of a cut stream what is intact is kept when that is asked for, and said.
TEST(Damage, WhatIsIntactIsKept) {
  const Tiny& t = tiny_streams().front();
  std::vector<BoxAt> gops;
  for (const BoxAt& b : list_boxes(t.bytes.data(), t.bytes.size()))
    if (b.type == "Gop ") gops.push_back(b);
  ASSERT_EQ(gops.size(), 3u);
  for (const std::size_t cut : {gops[2].end(), gops[2].payload() + 9, gops[2].at, gops[1].end() - 1}) {
    SCOPED_TRACE(cut);
    const Bytes bytes(t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(cut));
    MemorySource source(bytes.data(), bytes.size());
    MemorySink sink;
    RewriteParams params;
    params.layers = 1;
    EXPECT_THROW(rewrite(source, params, sink), Error);
    EXPECT_TRUE(sink.bytes.empty());
    params.keep_partial = true;
    source.seek(0);
    const RewriteResult result = rewrite(source, params, sink);
    EXPECT_FALSE(result.damage.empty());
    EXPECT_EQ(result.frames, cut >= gops[2].end() ? 5u : cut >= gops[1].end() ? 4u : 2u);
    MemorySource again(sink.bytes.data(), sink.bytes.size());
    EXPECT_TRUE(verify_stream(again, {.threads = 1}).damage.empty());
  }
  // A damaged chunk costs its GOP.
  Bytes bytes = t.bytes;
  bytes[gops[1].end() - 1] ^= 1;
  MemorySource source(bytes.data(), bytes.size());
  MemorySink sink;
  RewriteParams params;
  params.target_bytes = bytes.size();
  params.keep_partial = true;
  const RewriteResult result = rewrite(source, params, sink);
  EXPECT_EQ(result.frames, 3u);
  EXPECT_EQ(result.damage.size(), 1u);
}

// A header that says the pictures are huge: nothing is taken for them before it is known to be allowed.
TEST(Damage, TakingAPartIsLimited) {
  for (const Tiny& t : tiny_streams()) {
    Bytes bytes = t.bytes;
    const BoxAt head = list_boxes(bytes.data(), bytes.size()).front();
    const std::size_t fields = head.payload() + head_fields(bytes.data() + head.payload());
    store(bytes.data() + fields + 16, 65536, 4);
    store(bytes.data() + fields + 20, 8192, 4);
    repair_crc(bytes.data() + head.payload(), head.length);
    MemorySource source(bytes.data(), bytes.size());
    ASSERT_EQ(probe(source).video.width, 65536);
    source.seek(0);
    RewriteParams params;
    params.limits.memory = std::size_t{50} << 20;
    params.target_bytes = bytes.size() * 9 / 10;
    MemorySink sink;
    most_held = held.load();
    try {
      rewrite(source, params, sink);
      ADD_FAILURE() << "nothing was refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
    }
    EXPECT_LT(most_held, held + (std::size_t{1} << 20));
  }
}

// Of 2 volumes of 2048 slices one slice is there: the others cost neither memory nor are they taken for decoded.
TEST(Damage, VolumesOfMissingSlicesAreRefused) {
  VolumeMap map;
  map.order = VolumeMap::Order::kFourthAxis;
  map.slices = 2048;
  map.volumes = 2;
  map.last = 255;
  map.last_key = 255;
  EncoderParams p;
  p.motion = Motion::kOff;
  p.lossless = true;
  p.gop_frames = 1;
  p.boxes = {{"Volm", serialise(map)}};
  const std::vector<std::byte> bytes = encode(make_clip(video(512, 512, "gray"), 1, 1, Pattern::kZero, 1), p);
  EXPECT_LT(bytes.size(), 1000u);
  MemorySource source(bytes.data(), bytes.size());
  VolumeDecoderParams params;
  params.threads = 1;
  params.limits.memory = std::size_t{50} << 20;
  most_held = held.load();
  try {
    VolumeDecoder decoder(source, params);
    ADD_FAILURE() << "not refused";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kBadStream) << e.what();
  }
  EXPECT_LT(most_held, held + params.limits.memory);
  source.seek(0);
  EXPECT_FALSE(verify_stream(source, {.threads = 1}).damage.empty());
}

/// GOPs of so many frames in some hundred bytes each: all segments have `top` planes, in codewords without a byte.
struct Bomb {
  Profile profile;
  int top, width, height, frames, gops;
};

Bytes make_bomb(const Bomb& bomb) {
  const Clip small = make_clip(video(48, 32, "gray"), 1, 1, Pattern::kTexture, 1);
  EncoderParams p;
  p.motion = Motion::kOff;
  p.profile = bomb.profile;
  p.gop_frames = bomb.frames;
  p.layers = 1;
  p.lossless = true;
  const std::vector<std::byte> coded = encode(small, p);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(coded.data());
  const BoxAt head = list_boxes(bytes, coded.size()).front();
  StreamHeader header = parse_stream_header(bytes + head.payload(), head.length);
  header.video.width = bomb.width;
  header.video.height = bomb.height;
  header.video.frames = static_cast<std::uint64_t>(bomb.frames) * static_cast<std::uint64_t>(bomb.gops);
  header.writer = header.settings = "";
  const StreamGeometry geometry(header, bomb.frames);
  LayeredGop layers;
  layers.frames = bomb.frames;
  geometry.clear(layers);
  for (auto& component : layers.components)
    for (auto& block : component.blocks)
      for (LayeredSegment& s : block) {
        s.top = static_cast<std::uint8_t>(bomb.top);
        s.parts.assign(1, {nullptr, 0, 0});
      }
  GopHeader g;
  g.frames = bomb.frames;
  set_planes(header, layers, g);
  Bytes body;
  for (int b = 0; b < header.temporal_bands(); ++b)
    for (int d = header.spatial_levels; d >= 0; --d) {
      const std::vector<std::uint8_t> chunk = write_chunk(header, layers, 0, b, d);
      g.chunks.push_back({chunk.size(), crc32c(chunk.data(), chunk.size()), body.size()});
      body.insert(body.end(), chunk.begin(), chunk.end());
    }
  Bytes out(kSignature, kSignature + sizeof kSignature);
  const auto add = [&](const char* type, const Bytes& payload) {
    const Bytes box = make_box(type, payload);
    out.insert(out.end(), box.begin(), box.end());
  };
  add("Head", serialise(header));
  std::vector<GopInfo> index;
  for (int n = 0; n < bomb.gops; ++n) {
    const int first = n * bomb.frames;
    g.first_frame = static_cast<std::uint64_t>(first);
    g.times.clear();
    for (int t = 0; t < bomb.frames; ++t) g.times.push_back({first + t, 1});
    Bytes packet = serialise(header, g);
    packet.insert(packet.end(), body.begin(), body.end());
    GopInfo& info = index.emplace_back();
    info.offset = out.size();
    info.first_frame = g.first_frame;
    info.frames = bomb.frames;
    info.begin_pts = first;
    info.end_pts = first + bomb.frames;
    info.layers = {{body.size(), kErrorUnknown}};
    add("Gop ", packet);
    info.bytes = out.size() - info.offset;
  }
  StreamEnd end;
  end.frames = header.video.frames;
  end.index_offset = out.size();
  add("Indx", serialise_index(index));
  add("Done", serialise(end));
  return out;
}

// What limits_test gives the program; TRIVELET_WRITE=1 writes them again, for a changed format.
TEST(Damage, BombsOfTheProgramsTestAreThose) {
  const auto folder = std::filesystem::path(__FILE__).parent_path().parent_path() / "corrupt";
  const std::pair<const char*, Bomb> bombs[] = {{"empty_gop.bomb", {Profile::kFast, 0, 2800, 2800, 128, 1}},
                                                {"empty_gops.bomb", {Profile::kFast, 0, 2800, 2800, 128, 200}},
                                                {"empty_codewords.bomb", {Profile::kDense, 30, 480, 320, 32, 1}}};
  for (const auto& [name, bomb] : bombs) {
    const Bytes bytes = make_bomb(bomb);
    const std::string wanted(bytes.begin(), bytes.end());
    if (std::getenv("TRIVELET_WRITE")) std::ofstream(folder / name, std::ios::binary) << wanted;
    std::ifstream in(folder / name, std::ios::binary);
    EXPECT_TRUE(std::string(std::istreambuf_iterator<char>(in), {}) == wanted) << name << ": TRIVELET_WRITE=1 makes it";
  }
}

// Work is in proportion to what a stream holds.
TEST(Damage, FewBytesTakeLittleTime) {
  const auto decode_bytes = [](const Bytes& bytes, Bytes& samples) {
    MemorySource source(bytes.data(), bytes.size());
    decode_all(source, {.max_layers = 1}, samples);
  };
  Bytes samples;
  for (const Profile profile : {Profile::kDense, Profile::kFast}) {
    // Nothing at all: a grey GOP.
    const Bytes empty = make_bomb({profile, 0, 480, 320, 32, 1});
    EXPECT_LT(empty.size(), 600u);
    samples.clear();
    decode_bytes(empty, samples);
    ASSERT_EQ(samples.size(), 8u * (1 + 32 * (2 + 480 * 320)));
    EXPECT_EQ(load(samples.data() + samples.size() - 8, 8), 128u);
    EXPECT_EQ(load(samples.data() + 8 * 3, 8), 128u);
    // Thirty planes of empty codewords.
    const Bytes full_of_nothing = make_bomb({profile, 30, 480, 320, 32, 1});
    try {
      decode_bytes(full_of_nothing, samples);
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), profile == Profile::kDense ? ErrorKind::kUnsupported : ErrorKind::kBadStream) << e.what();
      EXPECT_TRUE(profile == Profile::kFast || std::string(e.what()).find("take time") != std::string::npos)
          << e.what();
    }
  }
}

// Also who only asks what there is says what it may cost.
TEST(Damage, AskingIsLimited) {
  for (const Tiny& t : tiny_streams()) {
    // With its index, and with one that is rebuilt.
    for (const std::size_t size : {t.bytes.size(), t.bytes.size() - 1}) {
      MemorySource source(t.bytes.data(), size);
      const StreamInfo info = probe(source);
      // Of a GOP, of the first component.
      const std::uint64_t samples = static_cast<std::uint64_t>(info.gop_frames) *
                                    static_cast<std::uint64_t>(info.video.width) *
                                    static_cast<std::uint64_t>(info.video.height);
      Limits sample_limit, frame_limit, memory_limit;
      sample_limit.samples = samples - 1;
      frame_limit.frames = frames_in(info) - 1;
      memory_limit.memory = 20;
      for (const auto& [limits, name] :
           {std::pair{sample_limit, "samples"}, {frame_limit, "frames"}, {memory_limit, "memory"}}) {
        source.seek(0);
        try {
          probe(source, limits);
          ADD_FAILURE() << t.name << ": " << name;
        } catch (const Error& e) {
          EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
          EXPECT_NE(std::string(e.what()).find(std::string("Limits::") + name), std::string::npos) << e.what();
        }
      }
    }
  }
}

// A header that promises more than there is.
TEST(Damage, PromisedFramesAreCounted) {
  for (const Tiny& t : tiny_streams()) {
    Bytes bytes = t.bytes;
    const BoxAt head = list_boxes(bytes.data(), bytes.size()).front();
    ASSERT_EQ(head.type, "Head");
    store(bytes.data() + head.payload() + head_fields(bytes.data() + head.payload()) + 24, 1000, 8);
    repair_crc(bytes.data() + head.payload(), head.length);
    std::string said;
    for (const bool pipe : {false, true}) {
      EXPECT_FALSE(verified(bytes, pipe, said));
      EXPECT_NE(said.find("promises 1000 frames"), std::string::npos) << said;
    }
  }
}

}  // namespace
}  // namespace trivelet
