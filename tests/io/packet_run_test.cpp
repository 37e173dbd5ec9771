// PacketRun: the packets of a film give what a Decoder gives, each GOP decoded once, after jumps, with another quality, and
// behind damage.
#include "apps/players/packet_run.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "apps/players/player_times.h"
#include "codec/base/frame_times.h"
#include "tests/support/one_of.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using namespace test;
using Bytes = std::vector<std::uint8_t>;

constexpr int kGop = 8;
constexpr int kGops = 7;

struct Film {
  std::vector<std::byte> stream;
  std::vector<Bytes> packets;  ///< as Matroska has them, the index, too
  std::vector<bool> alone;
};

Film make_film(Motion motion) {
  Film film;
  EncoderParams p;
  p.motion = motion;
  p.gop_frames = kGop;
  p.key_interval = 3 * kGop;
  p.layers = 3;
  p.block_size = 32;
  p.threads = 2;
  film.stream = encode(make_clip(video(66, 50, "yuv420p"), kGop * kGops, kGop, Pattern::kSmooth, 3), p);
  MemorySource source(film.stream.data(), film.stream.size());
  const StreamInfo info = probe(source);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(film.stream.data());
  const Bytes head(bytes, bytes + info.gops[0].offset);
  for (const GopInfo& g : info.gops) {
    film.alone.push_back(g.key != GopKey::kOpen);
    film.packets.push_back(film.alone.back() ? head : Bytes());
    film.packets.back().insert(film.packets.back().end(), bytes + g.offset, bytes + g.offset + g.bytes);
  }
  film.packets.emplace_back(bytes + info.gops.back().offset + info.gops.back().bytes, bytes + film.stream.size());
  return film;
}

/// The frames of a packet, and whether it gave some.
bool show(PacketRun& run, const Bytes& packet, const PacketRun::Choice& choice, PacketRun::Decoded& out) {
  return run.add(packet.data(), packet.size()) && run.decode(choice, out);
}

TEST(PacketRun, GivesWhatADecoderGives) {
  for (const Motion motion : {Motion::kOff, Motion::kOn}) {
    const Film film = make_film(motion);
    ASSERT_EQ(film.packets.size(), kGops + 1u);
    EXPECT_EQ(film.alone[1], motion == Motion::kOff);
    EXPECT_TRUE(film.alone[3]);
    const std::vector<Gop> whole = test::decode(film.stream, {});
    PacketRun run;
    PacketRun::Decoded decoded;
    for (std::size_t i = 0; i < kGops; ++i) {
      constexpr int kManyThreads = 16;  // which decode several GOPs at once where they are there
      ASSERT_TRUE(show(run, film.packets[i], {0, 0, kManyThreads}, decoded)) << i;
      EXPECT_EQ(decoded.gop.times()[0].pts, static_cast<std::int64_t>(i) * kGop);
      EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
    }
    EXPECT_FALSE(show(run, film.packets.back(), {}, decoded)) << "the index";
    EXPECT_EQ(run.gops_decoded(), static_cast<std::uint64_t>(kGops));
  }
}

TEST(PacketRun, BeginsWhereAPacketDecodesAlone) {
  const Film film = make_film(Motion::kOn);
  const std::vector<Gop> whole = test::decode(film.stream, {});
  PacketRun run;
  PacketRun::Decoded decoded;
  EXPECT_TRUE(show(run, film.packets[0], {}, decoded));
  run.clear();
  EXPECT_FALSE(show(run, film.packets[2], {}, decoded));
  for (const std::size_t i : {3, 4, 0, 1}) {  // also back, by a player that does not say so
    ASSERT_TRUE(show(run, film.packets[i], {}, decoded)) << i;
    EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
  }
}

TEST(PacketRun, ChangesTheQualityAnywhere) {
  const Film film = make_film(Motion::kOn);
  const std::vector<PacketRun::Choice> choices = {{}, {1, 0, 0}, {1, 0, 0}, {99, 1, 0}, {0, 0, 1}, {2, 1, 2}, {}};
  PacketRun run;
  PacketRun::Decoded decoded;
  for (std::size_t i = 0; i < kGops; ++i) {
    DecoderParams params;
    params.max_layers = std::min(choices[i].layers, 3);
    params.reduce = choices[i].reduce;
    const std::vector<Gop> whole = test::decode(film.stream, params);
    ASSERT_TRUE(show(run, film.packets[i], choices[i], decoded)) << i;
    EXPECT_EQ(decoded.info.width, choices[i].reduce == 0 ? 66 : 33);
    EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
  }
}

// Whatever a packet holds, there are frames, none, or an Error; and with the next one that decodes alone all is well.
TEST(PacketRun, GoesOnBehindDamage) {
  const Film film = make_film(Motion::kOn);
  const std::vector<Gop> whole = test::decode(film.stream, {});
  std::mt19937 random(5);
  int gave = 0;
  const int rounds = full() ? 60 : 24;
  for (int round = 0; round < rounds; ++round) {
    PacketRun run;
    PacketRun::Decoded decoded;
    for (std::size_t i = 0; i < kGops; ++i) {
      Bytes packet = film.packets[i];
      if (i < 3) {
        if (round % 3 == 0) packet.resize(random() % packet.size());
        for (std::uint32_t n = random() % 4; round % 3 > 0 && n > 0; --n)
          packet[random() % (round % 3 == 1 ? packet.size() : 100u)] ^= static_cast<std::uint8_t>(1u << random() % 8);
      }
      try {
        const bool shown = show(run, packet, {}, decoded);
        gave += shown && i < 3;
        if (i < 3) continue;
        ASSERT_TRUE(shown) << round << " " << i;
        EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << round << " " << i;
      } catch (const Error& e) {
        EXPECT_LT(i, 3u) << e.what();
      }
    }
  }
  EXPECT_GT(gave, rounds / 2);
  EXPECT_LT(gave, rounds * 5 / 2);
}

// Streams may say any times: sums of three are still times of a player, and none is before its beginning.
TEST(PlayerTimes, KeepToTheirRange) {
  constexpr std::int64_t kLeast = INT64_MIN, kMost = INT64_MAX;
  EXPECT_EQ(player_time(3, 0.04e9), 120'000'000);
  EXPECT_EQ(player_time(-3, 0.04e9), 0);
  EXPECT_EQ(player_time(ticks_between({kLeast, 1}, {kMost, 1}), 1e9), kMostPlayerTime);
  EXPECT_EQ(player_time(ticks_between({kMost, 1}, {kLeast, 1}), 1e9), 0);
  EXPECT_EQ(player_time(0, HUGE_VAL), 0);
  EXPECT_LT(kMostPlayerTime, kMost / 3);
  EXPECT_EQ(add_times(kMost, 1), kMost);
  EXPECT_EQ(add_times(kLeast, -1), kLeast);
  EXPECT_EQ(add_times(kMost, kLeast), -1);
  EXPECT_EQ(add_times(40, 2), 42);
}

}  // namespace
}  // namespace trivelet
