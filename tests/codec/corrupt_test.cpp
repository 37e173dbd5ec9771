// Damaged streams: every prefix and every flipped bit. A strict decoder refuses or returns the original samples. A
// decoder that keeps intact parts reports what is lost, and untouched GOPs come out whole.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <set>

#include "codec/format/container.h"
#include "tests/support/boxes.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using namespace test;

struct Tiny {
  std::string name;
  Bytes bytes;
  std::vector<BoxAt> packets;
  std::map<std::int64_t, Gop> reference;  // what comes out of the intact stream, by time of the first frame
};

Tiny tiny_of(const std::string& name, const std::vector<std::byte>& stream) {
  Tiny t;
  t.name = name;
  for (const std::byte b : stream) t.bytes.push_back(static_cast<std::uint8_t>(b));
  for (const BoxAt& b : list_boxes(t.bytes.data(), t.bytes.size()))
    if (b.type == "Gop ") t.packets.push_back(b);
  DecoderParams dp;
  dp.threads = 1;
  for (Gop& g : decode(stream, dp)) t.reference.emplace(g.times()[0].pts, std::move(g));
  return t;
}

Bytes stream_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return {content.begin(), content.end()};
}

const std::filesystem::path kTests = std::filesystem::path(__FILE__).parent_path().parent_path();

/// A stream of the conformance set: of what encoders no longer write.
Tiny kept(const std::string& name) {
  const Bytes bytes = stream_file(kTests / "conformance" / (name + ".tvl"));
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return tiny_of(name, {first, first + bytes.size()});
}

Tiny make(const std::string& name, int width, int height, const std::string& format, int frames, int gop_frames,
          const std::function<void(CodingParams&)>& change) {
  const Clip clip = make_clip(video(width, height, format), frames, gop_frames, Pattern::kTexture, 5);
  CodingParams p;
  p.motion = Motion::kOff;
  p.gop_frames = gop_frames;
  p.block_size = 32;
  p.threads = 1;
  p.layers = 3;
  p.quality = 50;
  p.spatial_levels = 2;
  p.temporal_levels = 1;
  change(p);
  return tiny_of(name, encode(clip, p));
}

// The first two in both profiles, the others in one.
std::vector<Tiny> tiny_streams() {
  std::vector<Tiny> out;
  const auto make_in = [&](std::initializer_list<Profile> profiles, const char* name, int width, int height,
                           const char* format, int frames, int gop, const std::function<void(CodingParams&)>& set) {
    for (const Profile profile : profiles)
      out.push_back(make(name, width, height, format, frames, gop, [&](CodingParams& p) {
        set(p);
        p.profile = profile;
      }));
  };
  constexpr Profile kFast = Profile::kFast;
  constexpr Profile kDense = Profile::kDense;
  make_in({kFast, kDense}, "lossless t+2D", 9, 6, "gray", 5, 2, [](CodingParams& p) { p.lossless = true; });
  make_in({kFast, kDense}, "lossy dyadic", 8, 8, "gray", 5, 2, [](CodingParams& p) { p.layout = Layout::kDyadic; });
  make_in({kDense}, "lossy rgb", 8, 7, "gbrp", 3, 1, [](CodingParams& p) {
    p.temporal_levels = 0;
    p.layers = 2;
  });
  make_in({kFast}, "lossless dyadic rgb", 7, 5, "gbrp10", 4, 2, [](CodingParams& p) {
    p.lossless = true;
    p.layout = Layout::kDyadic;
    p.layers = 1;
  });
  make_in({kDense}, "lossless yuv, several blocks", 70, 10, "yuv420p", 3, 2, [](CodingParams& p) {
    p.lossless = true;
    p.layers = 2;
    p.spatial_levels = 1;
  });
  for (const char* name : {"fast_lossless_raw_gray16", "fast_raw_dyadic_lossy"}) out.push_back(kept(name));
  return out;
}

bool same(const Gop& a, const Gop& b) {
  if (a.frames() != b.frames() || compare(a, b).largest != 0) return false;
  for (int f = 0; f < a.frames(); ++f) {
    const auto i = static_cast<std::size_t>(f);
    if (a.times()[i].pts != b.times()[i].pts || a.times()[i].duration != b.times()[i].duration) return false;
  }
  return true;
}

struct Outcome {
  bool error = false;
  ErrorKind kind = ErrorKind::kInternal;
  std::string message;
  std::vector<Gop> gops;
  bool damaged = false;
};

Outcome decode_damaged(const Bytes& bytes, bool keep_partial, bool pipe, SimdLevel simd) {
  DecoderParams p;
  p.threads = 1;
  p.keep_partial = keep_partial;
  p.simd = simd;
  MemorySource file(bytes.data(), bytes.size());
  Pipe stream(bytes.data(), bytes.size());
  Outcome out;
  try {
    Decoder d(pipe ? static_cast<ByteSource&>(stream) : file, p);
    Gop gop = d.make_gop();
    while (d.pull(gop)) out.gops.push_back(gop);
    out.damaged = !d.stats().damage.empty();
    EXPECT_EQ(d.stats().damaged_gops > 0 && !out.damaged, false);
    EXPECT_LE(d.stats().damage.size(), 100u);
  } catch (const Error& e) {
    out.error = true;
    out.kind = e.kind();
    out.message = e.what();
  }
  return out;
}

// Bytes from `from` to the end or to `to` are not what they were.
void check(const Tiny& t, const Bytes& bytes, std::size_t from, std::size_t to, SimdLevel simd) {
  for (const bool pipe : {false, true}) {
    const Outcome strict = decode_damaged(bytes, false, pipe, simd);
    if (strict.error) {
      ASSERT_TRUE(strict.kind == ErrorKind::kBadStream || strict.kind == ErrorKind::kUnsupported) << strict.message;
    } else {
      ASSERT_EQ(strict.gops.size(), t.reference.size());
      for (const Gop& g : strict.gops)
        ASSERT_TRUE(t.reference.count(g.times()[0].pts) && same(g, t.reference.at(g.times()[0].pts)));
    }

    const Outcome partial = decode_damaged(bytes, true, pipe, simd);
    if (partial.error) {
      ASSERT_TRUE(partial.kind == ErrorKind::kBadStream || partial.kind == ErrorKind::kUnsupported) << partial.message;
      ASSERT_TRUE(from < t.packets.front().at) << "only the stream header cannot be done without: " << partial.message;
      continue;
    }
    ASSERT_TRUE(partial.damaged || partial.gops.size() == t.reference.size());
    std::map<std::int64_t, int> seen;
    for (const Gop& g : partial.gops) {
      const std::int64_t pts = g.times()[0].pts;
      ASSERT_TRUE(t.reference.count(pts)) << "a GOP that never was, at time " << pts;
      ASSERT_EQ(++seen[pts], 1) << "a GOP came twice, at time " << pts;
      ASSERT_TRUE(g.frames() == t.reference.at(pts).frames());
      ASSERT_TRUE(partial.damaged || same(g, t.reference.at(pts)));
    }
    std::size_t i = 0;
    bool reachable = true;  // a pipe cannot look for the next packet once it has lost a box header
    for (const auto& [pts, g] : t.reference) {
      const BoxAt& b = t.packets[i++];
      const bool touched = from < b.end() && to > b.at;
      if (pipe && touched) reachable = false;
      if (touched || !reachable) continue;
      ASSERT_EQ(seen[pts], 1) << "the GOP at time " << pts << " is intact but did not come out";
      for (const Gop& p : partial.gops)
        ASSERT_TRUE(p.times()[0].pts != pts || same(p, g))
            << "the GOP at time " << pts << " is intact but came out wrong";
    }
  }
}

std::vector<SimdLevel> ends() {
  if (detected_simd() == SimdLevel::kScalar) return {SimdLevel::kScalar};
  return {SimdLevel::kScalar, detected_simd()};
}

TEST(Corrupt, EveryPrefix) {
  OneOf chosen(kSanitized ? 67 : 23);
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    for (const SimdLevel simd : ends())
      for (std::size_t n = 0; n < t.bytes.size(); ++n) {
        if (!chosen()) continue;
        SCOPED_TRACE(testing::Message() << "first " << n << " of " << t.bytes.size() << " bytes, " << to_string(simd));
        check(t, Bytes(t.bytes.begin(), t.bytes.begin() + static_cast<std::ptrdiff_t>(n)), n, ~std::size_t{0}, simd);
        if (HasFatalFailure()) return;
      }
  }
}

TEST(Corrupt, EveryFlippedBit) {
  OneOf chosen(kSanitized ? 127 : 43);
  int number = 0;
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    const bool all_bits = number++ < 4;
    for (std::size_t at = 0; at < t.bytes.size(); ++at)
      for (const int mask : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
        if ((!all_bits && mask != 1 && mask != 255) || !chosen()) continue;
        SCOPED_TRACE(testing::Message() << "byte " << at << " of " << t.bytes.size() << " ^ " << mask);
        Bytes bytes = t.bytes;
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ mask);
        check(t, bytes, at, at + 1, at & 1 ? SimdLevel::kScalar : SimdLevel::kBest);
        if (HasFatalFailure()) return;
      }
  }
}

// Runs of bytes taken out, put in twice or overwritten: boxes move, nothing stands where the index says.
TEST(Corrupt, BytesLostAndAdded) {
  OneOf chosen(kSanitized ? 127 : 43);
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    for (std::size_t at = 0; at < t.bytes.size(); at += 3)
      for (const std::size_t n : {std::size_t{1}, std::size_t{40}, t.packets[0].length + kBoxHeaderBytes}) {
        if (!chosen()) continue;
        SCOPED_TRACE(testing::Message() << n << " bytes at " << at);
        const auto from = t.bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const std::size_t end = std::min(t.bytes.size(), at + n);
        Bytes lost(t.bytes.begin(), from);
        lost.insert(lost.end(), t.bytes.begin() + static_cast<std::ptrdiff_t>(end), t.bytes.end());
        Bytes added(t.bytes.begin(), from);
        added.insert(added.end(), n, 0x47);
        added.insert(added.end(), from, t.bytes.end());
        Bytes zeros = t.bytes;
        std::fill(zeros.begin() + static_cast<std::ptrdiff_t>(at), zeros.begin() + static_cast<std::ptrdiff_t>(end), 0);
        for (const Bytes* b : {&lost, &added, &zeros})
          for (const bool keep : {false, true}) {
            const Outcome o = decode_damaged(*b, keep, false, SimdLevel::kBest);
            if (o.error) {
              ASSERT_TRUE(o.kind == ErrorKind::kBadStream || o.kind == ErrorKind::kUnsupported) << o.message;
              continue;
            }
            if (!keep || !o.damaged) {
              ASSERT_EQ(o.gops.size(), t.reference.size());
              for (const Gop& g : o.gops)
                ASSERT_TRUE(t.reference.count(g.times()[0].pts) && same(g, t.reference.at(g.times()[0].pts)));
            }
          }
      }
  }
}

// Damage behind right checksums: what the coder itself must find out.
TEST(Corrupt, EveryFlippedBitWithChecksumsRepaired) {
  OneOf chosen(kSanitized ? 127 : 43);
  for (const Tiny& t : tiny_streams()) {
    SCOPED_TRACE(t.name);
    const bool lossless = t.name.find("lossless") != std::string::npos;
    for (std::size_t at = sizeof kSignature; at < t.bytes.size(); ++at)
      for (const int mask : {1, 8, 255}) {
        if (!chosen()) continue;
        SCOPED_TRACE(testing::Message() << "byte " << at << " of " << t.bytes.size() << " ^ " << mask);
        Bytes bytes = t.bytes;
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ mask);
        repair(bytes);
        if (bytes == t.bytes) continue;
        bool in_chunks = false;
        for (const BoxAt& b : t.packets)
          in_chunks =
              in_chunks ||
              (at >= b.payload() + static_cast<std::size_t>(load(t.bytes.data() + b.payload(), 4)) && at < b.end());
        for (const bool keep : {false, true}) {
          const Outcome scalar = decode_damaged(bytes, keep, false, SimdLevel::kScalar);
          const Outcome best = decode_damaged(bytes, keep, false, SimdLevel::kBest);
          ASSERT_EQ(scalar.error, best.error);
          if (scalar.error) {
            ASSERT_TRUE(scalar.kind == ErrorKind::kBadStream || scalar.kind == ErrorKind::kUnsupported)
                << scalar.message;
            continue;
          }
          ASSERT_EQ(scalar.gops.size(), best.gops.size());
          for (std::size_t i = 0; i < best.gops.size(); ++i) ASSERT_TRUE(same(scalar.gops[i], best.gops[i]));
          // The hash of a lossless GOP finds what checksums do not.
          if (!lossless || !in_chunks || (keep && best.damaged)) continue;
          for (const Gop& g : best.gops) ASSERT_TRUE(same(g, t.reference.at(g.times()[0].pts)));
        }
      }
  }
}

// Streams that once did harm, and others worth keeping.
TEST(Corrupt, PastFindings) {
  // Once read with GOPs missing or doubled, and no error.
  const std::set<std::string> must_fail = {"packet_header_damaged", "box_beyond_the_end",
                                           "last_packet_and_index_damaged"};
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "corrupt")) {
    if (entry.path().extension() != ".tvl") continue;
    SCOPED_TRACE(entry.path().filename());
    const Bytes bytes = stream_file(entry.path());
    ++files;
    for (const bool keep : {false, true})
      for (const bool pipe : {false, true})
        for (const SimdLevel simd : ends()) {
          const Outcome o = decode_damaged(bytes, keep, pipe, simd);
          EXPECT_TRUE(keep || o.error || !must_fail.count(entry.path().stem().string()));
          EXPECT_TRUE(!o.error || o.kind == ErrorKind::kBadStream || o.kind == ErrorKind::kUnsupported) << o.message;
        }
  }
  EXPECT_GT(files, 0);
}

}  // namespace
}  // namespace trivelet
