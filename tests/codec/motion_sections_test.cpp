// Sections of motion: whatever memory they are decoded into and by which threads, the motion is the same; damaged levels
// have none. Damaged streams whose vectors readers decode: motion_backends_test.
#include "codec/decoder/motion_sections.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "codec/motion/motion_field.h"

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

}  // namespace
}  // namespace trivelet
