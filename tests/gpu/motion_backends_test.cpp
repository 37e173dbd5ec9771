// Motion on every backend against the CPU: the same search results, streams and samples for any motion.
//
// Built twice, like backends_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "codec/backend.h"
#include "codec/cpu/motion_gop.h"
#include "codec/encoder/encoder_params.h"
#include "codec/motion/motion_field.h"
#include "codec/threads/parallel.h"
#include "gpu/device/device.h"
#include "gpu/motion/level_choice.h"
#include "gpu/motion/motion_ahead.h"
#include "gpu/motion/motion_search.h"
#include "tests/support/backends_support.h"
#include "trivelet/codec.h"
#include "trivelet/cuda.h"

namespace trivelet {
namespace {

using namespace test;

struct MotionCase {
  std::string name;
  int width, height, frames, gop;
  const char* format;
  EncoderParams params;
  /// Emulated, without TRIVELET_FULL, it is in these tests: s(treams), t(argets), d(ecoding), any m(otion), l(oss). Null:
  /// in none, as it is too large.
  const char* sample = "";
};

std::vector<MotionCase> motion_cases() {
  const auto with = [](EncoderParams p, Profile profile, Motion motion = Motion::kOn) {
    p.profile = profile;
    p.motion = motion;
    p.temporal_levels = -1;
    return p;
  };
  const auto slow = [](EncoderParams p) {
    p.effort = Effort::kSlow;
    return p;
  };
  const EncoderParams exact = lossless(2, 3, 32), coarse = lossy(60, 2, 3, 32), fine = lossy(85, 2, 3, 32);
  return {
      {"open", 40, 24, 12, 4, "yuv420p", with(coarse, Profile::kFast), "d"},
      {"open dense", 40, 24, 12, 4, "yuv420p", with(coarse, Profile::kDense), "s"},
      {"slow dense", 40, 24, 8, 4, "yuv420p", slow(with(coarse, Profile::kDense)), "s"},
      {"rows between", 37, 29, 9, 8, "yuv422p", with(fine, Profile::kFast), "s"},
      {"whole colours", 33, 18, 6, 4, "gbrp", with(fine, Profile::kDense), "s"},
      {"alpha", 26, 22, 5, 4, "yuva420p", with(coarse, Profile::kFast), "d"},
      {"whole colours and alpha", 17, 31, 3, 3, "gbrap", with(coarse, Profile::kDense), "s"},
      {"ten bits", 35, 21, 8, 4, "yuv444p10le", with(fine, Profile::kFast)},
      {"sixteen bits", 30, 26, 5, 4, "gray16le", with(fine, Profile::kDense)},
      {"lossless", 41, 27, 10, 4, "yuv420p", with(exact, Profile::kFast), "s"},
      {"lossless dense", 24, 18, 5, 4, "gbrp", with(exact, Profile::kDense), "l"},
      {"lossless sixteen bits", 30, 26, 8, 8, "gray16le", with(exact, Profile::kFast), "d"},
      {"one pixel", 1, 1, 5, 4, "gray", with(fine, Profile::kFast), "s"},
      {"one column", 1, 53, 4, 4, "gray", with(fine, Profile::kFast)},
      {"smallest cells", 40, 36, 5, 4, "yuv410p", with(fine, Profile::kFast), "m"},
      {"two regions", 264, 12, 2, 2, "gray", with(coarse, Profile::kFast)},
      {"some GOPs", 40, 24, 12, 4, "gray", with(coarse, Profile::kFast, Motion::kAuto)},
      {"a last GOP shorter than its pyramid", 22, 14, 11, 8, "gray", with(fine, Profile::kDense), "t"},
      {"720p", 1280, 720, 40, 16, "yuv420p", with(coarse, Profile::kFast), nullptr},
      {"720p dense", 1282, 722, 20, 16, "yuv420p", with(coarse, Profile::kDense), nullptr},
      {"720p lossless", 1280, 720, 16, 8, "yuv420p10le", with(exact, Profile::kFast), nullptr},
      {"many frames", 320, 200, 130, 64, "gbrp", with(fine, Profile::kFast), nullptr},
  };
}

class MotionBackends : public ::testing::TestWithParam<MotionCase> {
 protected:
  void SetUp() override {
    if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
    if (kEmulated && !GetParam().sample) GTEST_SKIP() << "too large to be emulated";
  }
  bool is_left_out(char test) const {
    return kEmulated && !test::full() && std::strchr(GetParam().sample, test) == nullptr;
  }
  Clip clip() const {
    const MotionCase& c = GetParam();
    const VideoInfo info = test::video(c.width, c.height, c.format, static_cast<std::uint64_t>(c.frames));
    return test::make_clip(info, c.frames, c.gop, c.name.size() % 2 ? Pattern::kTexture : Pattern::kSmooth, 7);
  }
  EncoderParams params() const {
    EncoderParams p = GetParam().params;
    p.gop_frames = GetParam().gop;
    return p;
  }
};

// Whole, and with all that can be left out.
void compare_ways(const Backend& cuda, const std::vector<std::byte>& stream) {
  MemorySource source(stream.data(), stream.size());
  const Decoder probe(source, DecoderParams{});
  const Decomposition d = probe.info().decomposition;
  for (int way = 0; way < 6; ++way) {
    DecoderParams p;
    p.threads = 2;
    if (way == 1) p.max_planes = 3;
    if (way == 2) p.max_layers = 1;
    if (way == 3) p.reduce = std::min(1, d.spatial_levels);
    if (way == 4) p.temporal_reduce = std::min(1, d.temporal_levels);
    if (way == 5) {
      p.reduce = std::min(3, d.spatial_levels);
      p.temporal_reduce = d.temporal_levels;
    }
    if (kEmulated && !test::full() && way > 0 && (stream.size() + static_cast<std::size_t>(way)) % 5 > 0) continue;
    SCOPED_TRACE("way " + std::to_string(way));
    expect_equal(decode_with(nullptr, stream, p), decode_with(&cuda, stream, p));
  }
}

TEST_P(MotionBackends, StreamsAreTheSame) {
  if (is_left_out('s')) GTEST_SKIP() << "not of the sample";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const Clip c = clip();
  EXPECT_TRUE(encode_with(nullptr, c, params()) == encode_with(cuda.get(), c, params()));
}

// Every GOP is coded several times, along the same motion or another.
TEST_P(MotionBackends, TargetsAreMetTheSameWay) {
  if (GetParam().params.lossless) GTEST_SKIP() << "lossless";
  if (GetParam().width * GetParam().height < 100) GTEST_SKIP() << "headers alone take more";
  if (is_left_out('t')) GTEST_SKIP() << "not of the sample";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const Clip c = clip();
  for (const bool bytes : {false, true}) {
    EncoderParams p = params();
    (bytes ? p.bits_per_pixel : p.psnr) = bytes ? 6 : 38;
    EXPECT_TRUE(encode_with(nullptr, c, p) == encode_with(cuda.get(), c, p)) << (bytes ? "bytes" : "PSNR");
  }
}

TEST_P(MotionBackends, SamplesAreTheSame) {
  if (is_left_out('d')) GTEST_SKIP() << "not of the sample";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  compare_ways(*cuda, encode_with(nullptr, clip(), params()));
}

// Motion that no encoder would choose: vectors that lead far outside, blocks of every size and mode beside each other.
TEST_P(MotionBackends, AnyMotionIsFollowedTheSameWay) {
  if (GetParam().params.lossless) GTEST_SKIP() << "coefficients go into lossy streams only";
  if (is_left_out('m')) GTEST_SKIP() << "not of the sample";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const Clip c = clip();
  EncoderParams p = params();
  p.motion = Motion::kOn;
  p.key_prediction = KeyPrediction::kOff;  // coefficients of predicted keys are refused
  const std::vector<std::byte> stream = encode_with(nullptr, c, p);
  MemorySource source(stream.data(), stream.size());
  Decoder taken(source, {.threads = 2});
  MemorySink changed;
  Encoder encoder(c.info, p, changed);
  std::mt19937 random(5);
  CoefficientGop gop;
  while (taken.pull_coefficients(gop)) {
    const auto motion = std::make_shared<GopMotion>(*gop.motion);
    motion->sections.clear();
    for (int level = motion->places.levels - 1; level >= 0; --level) {
      for (const int t : motion_frames(level, motion->places)) {
        const bool other = motion_references(t, level, motion->places).other >= 0;
        for (MotionCell& cell : motion->fields[static_cast<std::size_t>(t)]) {
          const auto kind = random() % 16;
          cell.mode = kind == 0                 ? MotionMode::kPlain
                      : !other || kind % 3 == 0 ? MotionMode::kPast
                      : kind % 3 == 1           ? MotionMode::kOther
                                                : MotionMode::kBoth;
          const int reach = kind < 3 ? kMotionReach : kind < 8 ? 300 : 9;
          std::uniform_int_distribution<int> q(-reach, reach);
          for (MotionVector& v : cell.vector)
            v = {static_cast<std::int16_t>(q(random)), static_cast<std::int16_t>(q(random))};
          for (std::int8_t& v : cell.plain) v = static_cast<std::int8_t>(static_cast<int>(random() % 64) - 32);
          cell.log2_cells = 0;
        }
      }
      motion->sections.push_back(encode_motion(*motion, level, static_cast<int>(c.info.format.components())));
    }
    gop.motion = motion;
    encoder.push_coefficients(gop);
  }
  encoder.finish();
  compare_ways(*cuda, changed.bytes);
}

// For truncated streams and changed bytes, the losses are the same as on the CPU.
TEST_P(MotionBackends, DamageIsTheSame) {
  if (is_left_out('l')) GTEST_SKIP() << "not of the sample";
  const std::shared_ptr<const Backend> cuda = gpu::cuda_backend(0, 0);
  const std::vector<std::byte> stream = encode_with(nullptr, clip(), params());
  std::mt19937 random(9);
  for (int i = 0; i < (kEmulated && !test::full() ? 3 : 12); ++i) {
    std::vector<std::byte> damaged = stream;
    if (i % 3 == 2) damaged.resize(stream.size() / 4 + random() % (stream.size() * 3 / 4));
    for (int n = 0; n < 2; ++n) {
      const std::size_t first = std::min<std::size_t>(200, damaged.size() / 2);  // behind the head
      const std::size_t at = first + random() % (damaged.size() - first);
      damaged[at] ^= static_cast<std::byte>(1u << random() % 8);
    }
    for (const bool keep : {false, true}) {
      DecoderParams p;
      p.keep_partial = keep;
      p.threads = 2;
      expect_equal(decode_with(nullptr, damaged, p), decode_with(cuda.get(), damaged, p));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MotionBackends, ::testing::ValuesIn(motion_cases()), [](const auto& of) {
  std::string name;
  for (const char c : of.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

struct SearchCase {
  const char* name;
  int width, height, frames, levels;
  GopKey key;
  const char* format;
  double quality;      // 0: lossless
  bool extreme;        // contrasts that a transform of 16 bits does not hold
  bool tight = false;  // no more memory than must be
  bool large = false;
  bool keys = false;  // motion of keys, too
};

// Blocks of a texture that move in directions of their own, or are suddenly of one colour.
void fill_moving(Gop& gop, const VideoInfo& info, int frames, bool extreme, int first) {
  std::mt19937 random(3);
  constexpr int kSide = 64;
  std::vector<int> texture(kSide * kSide);
  for (int& v : texture) v = extreme ? static_cast<int>(random() % 2) * 255 : static_cast<int>(random() % 256);
  gop.set_frames(frames);
  const int most = highest_sample(info.format), bytes = info.format.bytes_per_sample();
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView v = gop.plane(c);
    for (int t = 0; t < frames; ++t)
      for (int y = 0; y < v.shape.height; ++y)
        for (int x = 0; x < v.shape.width; ++x) {
          const int block = y / 20 * 5 + x / 36, time = t + first;
          const auto at = [&](int j, int i) {
            return texture[static_cast<std::size_t>((j + 256) % kSide * kSide + (i + 256) % kSide)];
          };
          const int j = y + time * (block % 5 - 2), i = x + time * (block % 7 - 3);
          int value = extreme ? at(j, i) : (at(j, i) + at(j + 1, i) + at(j, i + 1) + at(j + 1, i + 1)) / 4;
          if (extreme && block % 2 == 0) value = time % 2 == 0 ? value / 6 : 255 - value / 6;  // flashes
          if ((block + time) % 11 == 0) value = 60 * (block % 4) + c;
          value = value * most / 255;
          std::memcpy(v.row(t, y) + x * bytes, &value, static_cast<std::size_t>(bytes));
        }
  }
}

class MotionSearches : public ::testing::TestWithParam<SearchCase> {};

TEST_P(MotionSearches, ChooseTheSame) {
  const SearchCase& c = GetParam();
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  if (kEmulated && c.large) GTEST_SKIP() << "too large to be emulated";
  const VideoInfo info = test::video(c.width, c.height, c.format, 2 * static_cast<std::uint64_t>(c.frames));
  EncoderParams p;
  p.profile = Profile::kFast;
  p.motion = Motion::kOn;
  p.gop_frames = c.frames;
  p.temporal_levels = c.levels;
  p.lossless = c.quality == 0;
  p.key_prediction = c.keys ? KeyPrediction::kOn : KeyPrediction::kOff;
  if (c.quality > 0) p.quality = c.quality;
  const StreamHeader header = make_header(info, resolve(info, p));
  ThreadPool pool(2);
  MotionTransform transform(header, pool, SimdLevel::kScalar, c.tight ? Effort::kFast : Effort::kMedium);
  Gop before(info, c.frames), gop(info, c.frames);
  fill_moving(before, info, c.frames, c.extreme, 0);
  fill_moving(gop, info, c.frames, c.extreme, c.frames);
  MotionKey key;
  if (c.key == GopKey::kOpen) key = transform.last_frame_of(before, {c.frames, GopKey::kLast, c.levels});
  ASSERT_EQ(key.empty(), c.key != GopKey::kOpen);
  std::vector<std::vector<std::int32_t>> memory;
  std::vector<Field<std::int32_t>> fields;
  for (int i = 0; i < gop.components(); ++i) {
    Shape s = header.component_shape(i, 1);
    s.frames = c.frames + first_place(c.key);
    memory.emplace_back(s.samples());
    fields.push_back({memory.back().data(), s, s.width, static_cast<std::ptrdiff_t>(s.width) * s.height});
  }
  const MotionPlaces places(c.frames, c.key, c.levels);
  transform.load(gop, places, key, fields);
  const float step = c.quality > 60 ? 2 : 12;
  // An open GOP may turn out to be a closed one.
  const bool closes = !key.empty() && places.ends_with_key();
  std::vector<std::shared_ptr<const GopMotion>> all{transform.search(step, false)};
  if (closes) all.push_back(transform.search(step, true));

  std::size_t room = std::size_t{1} << 30;
  if (c.tight)
    for (std::size_t least = 0; room - least > 1;) {
      const std::size_t middle = (least + room) / 2;
      (gpu::DeviceMotionSearch(header, 0, middle).has_room() ? room : least) = middle;
    }
  gpu::DeviceMotionSearch searcher(header, 0, room);
  ASSERT_TRUE(searcher.has_room());
  for (std::size_t again = 0; again < (c.tight ? 2 : 1) * all.size(); ++again) {
    const auto& expected = all[again % all.size()];
    const auto got = transform.search(gop, places, key, step, expected != all[0], searcher);
    EXPECT_EQ(expected->places.key, got->places.key);
    EXPECT_EQ(expected->step, got->step);
    EXPECT_EQ(expected->predicts_keys, got->predicts_keys);
    for (int t = 0; t < expected->places.count; ++t) {
      const MotionField &a = expected->fields[static_cast<std::size_t>(t)],
                        &b = got->fields[static_cast<std::size_t>(t)];
      ASSERT_EQ(a.size(), b.size()) << t;
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_TRUE(a[i].vector == b[i].vector && a[i].plain == b[i].plain && a[i].mode == b[i].mode &&
                    a[i].log2_cells == b[i].log2_cells)
            << "place " << t << ", cell " << i;
    }
    EXPECT_EQ(expected->sections, got->sections);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, MotionSearches,
    ::testing::Values(SearchCase{"closed", 88, 72, 4, 2, GopKey::kFirst, "yuv420p", 60, false},
                      SearchCase{"extreme", 76, 52, 3, 2, GopKey::kFirst, "yuv420p", 60, true},
                      SearchCase{"open", 70, 41, 4, 2, GopKey::kOpen, "gbrp", 80, false},
                      SearchCase{"tight", 44, 28, 9, 2, GopKey::kFirst, "yuva422p10le", 80, false, true},
                      SearchCase{"tight open", 44, 28, 8, 2, GopKey::kOpen, "gray", 80, false, true},
                      SearchCase{"keys", 52, 41, 8, 1, GopKey::kOpen, "yuv420p", 60, false, false, false, true},
                      SearchCase{"keys of a closed GOP", 44, 36, 7, 1, GopKey::kLast, "gray10le", 60, false, true,
                                 false, true},
                      SearchCase{"regions", 300, 24, 2, 1, GopKey::kLast, "gray16le", 0, true},
                      SearchCase{"cif", 352, 288, 17, 4, GopKey::kFirst, "yuv420p", 50, false, false, true},
                      SearchCase{"cif extreme", 350, 286, 16, 4, GopKey::kOpen, "gbrp", 70, true, true, true},
                      SearchCase{"hd", 1280, 720, 8, 3, GopKey::kOpen, "yuv420p10le", 60, false, false, true},
                      SearchCase{"hd extreme", 1920, 1080, 9, 3, GopKey::kFirst, "yuv420p", 0, true, false, true}),
    [](const auto& of) {
      std::string name;
      for (const char* p = of.param.name; *p; ++p) name += std::isalnum(static_cast<unsigned char>(*p)) ? *p : '_';
      return name;
    });

// Down to where the device has room for a GOP but none for the search, and then for neither.
TEST(MotionSearch, LeavesTheHostWhatFindsNoRoom) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const VideoInfo info = test::video(40, 24, "yuv420p", 4);
  const Clip clip = test::make_clip(info, 4, 4, Pattern::kTexture, 3);
  EncoderParams p = lossy(60, 2, 3, 32);
  p.motion = Motion::kOn;
  p.temporal_levels = -1;
  p.gop_frames = 4;
  const std::vector<std::byte> expected = encode_with(nullptr, clip, p);
  const StreamHeader header = make_header(info, resolve(info, p));
  bool with = false, without = false;
  for (std::size_t memory = std::size_t{kEmulated ? 8u : 64u} << 20; memory > 0; memory /= 2) {
    const bool has_room = gpu::DeviceMotionSearch(header, 0, memory / 3).has_room();
    try {
      EXPECT_TRUE(expected == encode_with(gpu::cuda_backend(0, memory).get(), clip, p)) << memory;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
      break;
    }
    (has_room ? with : without) = true;
  }
  EXPECT_TRUE(with);
  EXPECT_TRUE(without);
}

// A picture that wanders, or noise along which nothing moves, GOP by GOP.
Clip mixed_clip(const VideoInfo& info, int gop, const std::string& kinds) {
  Clip clip;
  clip.info = info;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int first = gop * static_cast<int>(i);
    Gop& g = clip.gops.emplace_back(info, gop);
    test::fill(g, i + 1 == kinds.size() ? gop - 1 : gop, info.format, Pattern::kNoise, 5);
    for (int c = 0; c < g.components() && kinds[i] == 'm'; ++c) {
      const MutableVolumeView v = g.plane(c);
      for (int f = 0; f < g.frames(); ++f)
        for (int y = 0; y < v.shape.height; ++y)
          for (int x = 0; x < v.shape.width; ++x) {
            const int a = x + 2 * (first + f), b = y + f;
            v.row(f, y)[x] = static_cast<std::byte>((a * a * 3 + b * b * 5 + a * b) >> 3 & 0xff);
          }
    }
    for (auto& t : g.times()) t.pts += first;
  }
  return clip;
}

// Of GOPs that move and others it turns out behind their search which they are; some have to be searched once more.
TEST(MotionSearch, OfGopsThatMayMoveChoosesTheSame) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const bool small = kEmulated && !test::full();
  const int gop = small ? 2 : 4, side = kEmulated ? 24 : 192;
  const std::string kinds = small ? "msmmssmmm" : "mmsmmssmsmmmmmssssmmmmmmmmmmmmmmmsmmmmmmssssssmsmm";
  for (const int way : {0, 1, 2}) {
    if (small && way == 0) continue;
    EncoderParams p = way == 2 ? lossless(1, 2, 32) : lossy(60, 1, 2, 32);
    p.profile = way == 1 ? Profile::kDense : Profile::kFast;
    p.motion = Motion::kAuto;
    p.temporal_levels = -1;
    p.gop_frames = gop;
    p.key_interval = 1000 * gop;
    const Clip clip = mixed_clip(test::video(side + 8, side, way == 2 ? "gbrp" : "yuv420p", 0), gop, kinds);
    const std::vector<std::byte> expected = encode_with(nullptr, clip, p);
    EXPECT_TRUE(expected == encode_with(gpu::cuda_backend(0, 0).get(), clip, p));
    MemorySource source(expected.data(), expected.size());
    const Decoder decoder(source, DecoderParams{});
    std::string found;
    for (const GopInfo& info : decoder.info().gops)
      found += info.key == GopKey::kOpen ? 'o' : info.key == GopKey::kLast ? 'l' : 'f';
    // Taken to be open, and not; taken to be none, and open.
    EXPECT_NE(found.find("fl"), std::string::npos) << found;
    EXPECT_NE(found.find("of"), std::string::npos) << found;
    EXPECT_NE(found.find("lo"), std::string::npos) << found;
  }
}

// GOPs that are searched beside each other, open ones and closed, down to where the device has room for no two of them.
TEST(MotionSearch, OfSeveralGopsAtOnceChoosesTheSame) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  const int width = kEmulated ? 26 : 352, height = kEmulated ? 18 : 288;
  for (const char* format : {"yuv420p", "gbrp10le"}) {
    // Two thirds of the time when it is emulated; MotionSearches tries these samples.
    if (kEmulated && !test::full() && format[0] == 'g') continue;
    const int gop = 2, gops = kEmulated && !test::full() ? 6 : 40, frames = gop * gops - 1;  // the last cannot move
    const VideoInfo info = test::video(width, height, format, static_cast<std::uint64_t>(frames));
    const Clip clip = test::make_clip(info, frames, gop, Pattern::kTexture, 5);
    EncoderParams p = lossy(60, 1, 2, 32);
    p.profile = Profile::kFast;
    p.motion = Motion::kOn;
    p.temporal_levels = -1;
    p.gop_frames = gop;
    p.key_interval = 5 * gop;
    const std::vector<std::byte> expected = encode_with(nullptr, clip, p);
    EXPECT_TRUE(expected == encode_with(gpu::cuda_backend(0, 0).get(), clip, p));
    if (!kEmulated || test::full()) {
      EncoderParams dense = p;  // errors of its GOPs are measured beside the searches
      dense.profile = Profile::kDense;
      EXPECT_TRUE(encode_with(nullptr, clip, dense) == encode_with(gpu::cuda_backend(0, 0).get(), clip, dense));
    }
    const StreamHeader header = make_header(info, resolve(info, p));
    bool many = false, two = false, none = false;
    for (std::size_t memory = std::size_t{1} << (kEmulated ? 24 : 33); memory > 0 && !none; memory -= memory / 4) {
      const int most = gpu::MotionAhead(header, {}, 0, memory / 2).most();
      bool& seen = most > 2 ? many : most == 2 ? two : none;
      if (seen) continue;
      seen = true;
      try {
        EXPECT_TRUE(expected == encode_with(gpu::cuda_backend(0, memory).get(), clip, p)) << memory;
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.what();
        break;
      }
    }
    EXPECT_TRUE(many && two && none) << many << two << none;
  }
}

// Noise whose pictures move a little, so that some blocks are lost at each distance.
Clip drifting_noise(int width, int height, const char* format, int frames) {
  const VideoInfo info = test::video(width, height, format, static_cast<std::uint64_t>(frames));
  Clip clip = test::make_clip(info, frames, frames, Pattern::kNoise, 3);
  const int bytes = info.format.bytes_per_sample();
  const MutableVolumeView v = clip.gops[0].plane(0);
  std::mt19937 random(5);
  for (int t = 1; t < frames; ++t)
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x) {
        const bool keeps = (x / 32 + y / 32 + static_cast<int>(random() % 8)) % 4 != 0;
        const int from = std::max(0, x - 4);
        if (keeps)
          std::memcpy(v.row(t, y) + x * bytes, v.row(t - 1, std::max(0, y - 4)) + from * bytes,
                      static_cast<std::size_t>(bytes));
      }
  return clip;
}

TEST(LevelChoices, AreTheSameOnADevice) {
  if (gpu::devices().empty()) GTEST_SKIP() << "no GPU";
  struct Input {
    int width, height, frames;
    const char* format;
  };
  std::vector<Input> inputs = {{48, 40, 1, "gray"},     {7, 90, 4, "gray"},   {40, 33, 3, "yuv420p10le"},
                               {52, 41, 9, "gray16le"}, {61, 40, 17, "gbrp"}, {37, 65, 8, "yuv422p12le"},
                               {240, 216, 2, "yuv420p"}};
  if (!kEmulated || test::full())
    for (const Input& c : {Input{720, 576, 32, "yuv420p"}, {1920, 1080, 33, "yuv420p"}, {2100, 2000, 10, "gray"}})
      inputs.push_back(c);
  ThreadPool pool(4);
  bool some = false;  // a share of the blocks is lost
  for (const Input& c : inputs)
    for (const bool drifts : {false, true}) {
      const VideoInfo info = test::video(c.width, c.height, c.format, static_cast<std::uint64_t>(c.frames));
      const Clip clip = drifts ? drifting_noise(c.width, c.height, c.format, c.frames)
                               : test::make_clip(info, c.frames, c.frames, Pattern::kTexture, 7);
      EncoderParams p = lossy(60, 1, 2, 32);
      p.motion = Motion::kOn;
      p.temporal_levels = -1;
      p.gop_frames = c.frames;
      const StreamHeader header = make_header(info, resolve(info, p));
      gpu::DeviceLevelChoice device(header, 0);
      for (const int most : {5, 1}) {
        const LevelChoice expected = choose_levels(clip.gops[0], info.format.bits, most, pool, SimdLevel::kBest),
                          got = device.choose(clip.gops[0], most);
        const std::string name = std::to_string(c.width) + "x" + std::to_string(c.height) + " " + c.format;
        EXPECT_EQ(got.lost, expected.lost) << name;
        EXPECT_EQ(got.levels, expected.levels) << name;
        EXPECT_EQ(got.moves, expected.moves) << name;
        for (const int percentage : got.lost) some = some || (percentage > 0 && percentage < 100);
      }
    }
  EXPECT_TRUE(some);
}

}  // namespace
}  // namespace trivelet
