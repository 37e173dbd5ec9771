// Sections of motion: whatever memory they are decoded into and by which threads, the motion is the same; damaged levels
// have none.
#include "codec/decoder/motion_sections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "codec/motion/motion_field.h"
#include "tests/support/short_gops.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

constexpr int kWide = 300, kHigh = 290, kComponents = 3;

// Sections of random motion, ready to be decoded into `to`.
void fill_sections(MotionSections& to, int frames, GopKey key, int levels, unsigned seed) {
  std::mt19937 random(seed);
  GopMotion motion(MotionPlaces(frames, key, levels), kWide, kHigh);
  to.begin(motion.places, kWide, kHigh, 0, false);
  to.components = kComponents;
  to.motion->sections.resize(static_cast<std::size_t>(levels));
  to.wrong.resize(static_cast<std::size_t>(levels));
  for (int level = levels - 1; level >= 0; --level) {
    for (const int t : motion_frames(level, motion.places))
      for (MotionCell& c : motion.fields[static_cast<std::size_t>(t)]) {
        const bool both = motion_references(t, level, motion.places).other >= 0;
        c.mode = random() % 5 == 0 ? MotionMode::kPlain : both ? MotionMode::kBoth : MotionMode::kPast;
        for (MotionVector& v : c.vector)
          v = {static_cast<std::int16_t>(random() % 64), static_cast<std::int16_t>(random() % 64)};
        for (int i = 0; i < kComponents; ++i)
          c.plain[static_cast<std::size_t>(i)] = static_cast<std::int8_t>(random() % 32);
      }
    to.motion->sections[static_cast<std::size_t>(levels - 1 - level)] = encode_motion(motion, level, kComponents);
  }
}

void expect_equal_cells(const GopMotion& a, const GopMotion& b) {
  ASSERT_EQ(a.fields.size(), b.fields.size());
  for (std::size_t t = 0; t < a.fields.size(); ++t) {
    ASSERT_EQ(a.fields[t].size(), b.fields[t].size()) << t;
    for (std::size_t i = 0; i < a.fields[t].size(); ++i) {
      const MotionCell &x = a.fields[t][i], &y = b.fields[t][i];
      ASSERT_TRUE(x.mode == y.mode && x.vector == y.vector && x.plain == y.plain && x.log2_cells == y.log2_cells)
          << t << ", " << i;
    }
  }
}

TEST(MotionSections, MemoryOfAnEarlierGopChangesNothing) {
  MotionSections used;
  unsigned seed = 0;
  for (const auto& [frames, levels] : {std::pair{9, 3}, {8, 3}, {16, 2}, {5, 2}, {9, 3}}) {
    MotionSections fresh;
    fill_sections(fresh, frames, GopKey::kFirst, levels, ++seed);
    fill_sections(used, frames, GopKey::kFirst, levels, seed);
    const GopMotion* memory = used.motion.get();
    fresh.decode(nullptr);
    used.decode(nullptr);
    ASSERT_TRUE(fresh.intact && used.intact);
    expect_equal_cells(*fresh.motion, *used.motion);
    fill_sections(used, frames, GopKey::kFirst, levels, ++seed);
    EXPECT_EQ(used.motion.get(), memory) << "its memory is used again";
    const std::shared_ptr<const GopMotion> elsewhere = used.motion;
    fill_sections(used, frames, GopKey::kFirst, levels, ++seed);
    EXPECT_NE(used.motion.get(), elsewhere.get()) << "but not while another has it";
  }
}

TEST(MotionSections, ReadersDecodeThoseOfSeveralGops) {
  for (const int threads : {1, 3}) {
    std::deque<MotionSections> expected(9), read(9);
    for (std::size_t i = 0; i < read.size(); ++i) {
      const auto seed = static_cast<unsigned>(i);
      fill_sections(expected[i], 9, GopKey::kLast, 3, seed);
      fill_sections(read[i], 9, GopKey::kLast, 3, seed);
      if (i == 4) expected[i].wrong[1] = read[i].wrong[1] = "it has a wrong checksum";
      expected[i].decode(nullptr);
    }
    MotionReaders readers(threads);
    for (MotionSections& s : read) readers.begin(s);
    for (std::size_t i = 0; i + 1 < read.size(); ++i) {  // the last one is left to them
      readers.finish(read[i]);
      EXPECT_EQ(read[i].intact, i != 4);
      EXPECT_EQ(read[i].damage, expected[i].damage);
      expect_equal_cells(*read[i].motion, *expected[i].motion);
    }
  }
}

TEST(MotionSections, ADamagedLevelAndFinerOnesDoNotMove) {
  MotionSections s, intact;
  fill_sections(s, 8, GopKey::kFirst, 3, 1);
  fill_sections(intact, 8, GopKey::kFirst, 3, 1);
  intact.decode(nullptr);
  s.motion->sections[1].pop_back();
  s.decode(nullptr);
  EXPECT_FALSE(s.intact);
  ASSERT_EQ(s.damage.size(), 1u);
  EXPECT_EQ(s.damage[0].find("the motion of level 2: "), 0u) << s.damage[0];
  for (int level = 0; level < 3; ++level)
    for (const int t : motion_frames(level, s.motion->places)) {
      const MotionField& f = s.motion->fields[static_cast<std::size_t>(t)];
      for (std::size_t i = 0; i < f.size(); ++i)
        ASSERT_TRUE(
            f[i].predicts_as(level == 2 ? intact.motion->fields[static_cast<std::size_t>(t)][i] : MotionCell()));
    }
}

// Every few bytes of a stream with motion in turn: lanes, whose vectors come from readers, say and deliver the same.
TEST(MotionSections, DamageIsWhatItIsWithoutReaders) {
  const test::Clip clip = test::make_clip(test::video(96, 64, "yuv420p", 24), 24, 8, test::Pattern::kTexture, 3);
  EncoderParams params = test::short_gop_params(1, Profile::kFast, false);
  params.gop_frames = 8;
  params.temporal_levels = 2;
  params.motion = Motion::kOn;
  const std::vector<std::byte> stream = test::encode(clip, params);
  const auto outcome = [](const std::vector<std::byte>& bytes, int threads) {
    std::pair<std::vector<Gop>, std::vector<std::string>> out;
    MemorySource source(bytes.data(), bytes.size());
    DecoderParams p{.threads = threads};
    p.keep_partial = true;
    Decoder decoder(source, p);
    for (Gop gop = decoder.make_gop(); decoder.pull(gop); gop = decoder.make_gop()) out.first.push_back(std::move(gop));
    out.second = decoder.stats().damage;
    std::sort(out.second.begin(), out.second.end());
    return out;
  };
  int damaged = 0;
  for (std::size_t at = stream.size() / 8; at < stream.size(); at += 1511) {
    std::vector<std::byte> other = stream;
    other[at] ^= std::byte{0x55};
    try {
      const auto expected = outcome(other, 1);
      const auto found = outcome(other, 16);
      ASSERT_EQ(found.second, expected.second) << at;
      ASSERT_EQ(found.first.size(), expected.first.size()) << at;
      for (std::size_t i = 0; i < found.first.size(); ++i)
        ASSERT_EQ(test::compare(found.first[i], expected.first[i]).largest, 0) << at;
      damaged += !found.second.empty();
    } catch (const Error& e) {
      EXPECT_NE(e.kind(), ErrorKind::kInternal) << at;
    }
  }
  EXPECT_GT(damaged, 1);
}

}  // namespace
}  // namespace trivelet
