// PacketDecoder: the packets of a film give what Decoder gives. Each GOP is decoded once, after jumps and gaps, for
// changed requests, and after damage. Encoders report where packets end.
#include "trivelet/packet_decoder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>

#include "apps/players/player_request.h"
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

/// Packets as the encoder ends them.
class PacketSink final : public ByteSink {
 public:
  struct Packet {
    PacketInfo info;
    Bytes bytes;
  };
  void write(const void* data, std::size_t size) override {
    const auto* bytes = static_cast<const std::uint8_t*>(data);
    begun_.insert(begun_.end(), bytes, bytes + size);
  }
  void end_packet(const PacketInfo& info) override {
    packets.push_back({info, std::move(begun_)});
    begun_.clear();
  }
  std::vector<Packet> packets;

 private:
  Bytes begun_;
};

struct Film {
  std::vector<std::byte> stream;
  Bytes head;
  std::vector<Bytes> packets;  ///< as Matroska has them, the index, too
  std::vector<PacketInfo> infos;
};

EncoderParams film_params(Motion motion) {
  EncoderParams p;
  p.motion = motion;
  p.gop_frames = kGop;
  p.key_interval = 3 * kGop;
  p.key_prediction = KeyPrediction::kOff;
  p.layers = 3;
  p.block_size = 32;
  p.threads = 2;
  return p;
}

Film make_film(const EncoderParams& params) {
  const VideoInfo info = video(66, 50, "yuv420p");
  PacketSink sink;
  Encoder encoder(info, params, sink);
  const Clip clip = make_clip(info, kGop * kGops, kGop, Pattern::kSmooth, 3);
  for (const Gop& gop : clip.gops) encoder.push(gop);
  encoder.finish();
  Film film;
  for (PacketSink::Packet& packet : sink.packets) {
    const auto* bytes = reinterpret_cast<const std::byte*>(packet.bytes.data());
    film.stream.insert(film.stream.end(), bytes, bytes + packet.bytes.size());
    if (packet.info.kind == PacketInfo::Kind::kHead) {
      film.head = std::move(packet.bytes);
      continue;
    }
    film.packets.push_back(packet.info.key ? film.head : Bytes());
    film.packets.back().insert(film.packets.back().end(), packet.bytes.begin(), packet.bytes.end());
    film.infos.push_back(packet.info);
  }
  return film;
}

/// Made once, for most tests take it.
const Film& film_with(Motion motion) {
  static const Film still = make_film(film_params(Motion::kOff)), moving = make_film(film_params(Motion::kOn));
  return motion == Motion::kOn ? moving : still;
}

/// Where frame `t` of a GOP lies.
MutableFrameView view_of(Gop& gop, int t) {
  MutableFrameView view;
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView plane = gop.plane(c);
    view.planes[static_cast<std::size_t>(c)] = {plane.row(t, 0), plane.row_stride};
  }
  return view;
}

/// A packet as .tvl files have it.
Bytes without_header(const Film& film, std::size_t i) {
  const auto skip = film.infos[i].key ? static_cast<std::ptrdiff_t>(film.head.size()) : 0;
  return {film.packets[i].begin() + skip, film.packets[i].end()};
}

/// The frames of a packet, and whether it gave some.
bool show(PacketDecoder& decoder, const Bytes& packet, const PlayerRequest& request, PacketDecoder::Decoded& out) {
  return decoder.add(packet.data(), packet.size()) && decoder.decode(request_for(decoder, request), out);
}

TEST(PacketDecoder, GivesWhatADecoderGives) {
  for (const Motion motion : {Motion::kOff, Motion::kOn}) {
    const Film& film = film_with(motion);
    ASSERT_EQ(film.packets.size(), kGops + 1u);
    EXPECT_EQ(film.infos[1].key, motion == Motion::kOff);
    EXPECT_TRUE(film.infos[3].key);
    const std::vector<Gop> whole = test::decode(film.stream, {});
    PacketDecoder decoder;
    PacketDecoder::Decoded decoded;
    for (std::size_t i = 0; i < kGops; ++i) {
      constexpr int kManyThreads = 16;  // which decode several GOPs at once where they are there
      ASSERT_TRUE(show(decoder, film.packets[i], {0, 0, kManyThreads}, decoded)) << i;
      EXPECT_EQ(decoded.gop.times()[0].pts, static_cast<std::int64_t>(i) * kGop);
      EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
      EXPECT_FALSE(decoder.decode({}, decoded)) << "twice";
    }
    EXPECT_FALSE(show(decoder, film.packets.back(), {}, decoded)) << "the index";
    EXPECT_EQ(decoder.stats().gops, static_cast<std::uint64_t>(kGops));
    EXPECT_EQ(decoder.stats().passed_gops, 0u) << "each GOP is decoded once";
  }
}

// The encoder's packets are those that the index of the stream tells, and look() says the same of them.
TEST(PacketDecoder, TellsWhatAPacketIs) {
  for (const Motion motion : {Motion::kOff, Motion::kOn})
    for (const bool checks : {false, true}) {
      EncoderParams params = film_params(motion);
      params.part_checks = checks;
      const Film film = make_film(params);
      MemorySource source(film.stream.data(), film.stream.size());
      const StreamInfo info = probe(source);
      PacketDecoder decoder;
      EXPECT_THROW((void)decoder.stream(), Error);
      decoder.set_header(film.head.data(), film.head.size());
      EXPECT_EQ(decoder.stream().layers, 3);
      EXPECT_EQ(decoder.output({.reduce = 1}).video.width, 33);
      EXPECT_EQ(decoder.output({}).gop_frames, kGop);
      for (std::size_t i = 0; i < kGops; ++i) {
        const GopInfo& g = info.gops[i];
        const Bytes packet = without_header(film, i);
        EXPECT_EQ(std::memcmp(packet.data(), film.stream.data() + g.offset, g.bytes), 0);
        EXPECT_EQ(packet.size() > g.bytes, checks) << "checks of parts belong to the packet";
        for (const PacketInfo& said : {film.infos[i], decoder.look(packet.data(), packet.size()),
                                       decoder.look(film.packets[i].data(), film.packets[i].size())}) {
          EXPECT_EQ(said.kind, PacketInfo::Kind::kGop);
          EXPECT_EQ(said.key, g.key != GopKey::kOpen);
          EXPECT_EQ(said.first_frame, g.first_frame);
          EXPECT_EQ(said.frames, static_cast<std::uint64_t>(g.frames));
          EXPECT_EQ(said.begin_pts, g.begin_pts);
          EXPECT_EQ(said.end_pts, g.end_pts);
        }
      }
      const Bytes& end = film.packets.back();
      EXPECT_EQ(film.infos.back().kind, PacketInfo::Kind::kEnd);
      EXPECT_EQ(decoder.look(end.data(), end.size()).kind, PacketInfo::Kind::kEnd);
      EXPECT_EQ(decoder.look(film.head.data(), film.head.size()).kind, PacketInfo::Kind::kHead);
      Bytes damaged = without_header(film, 2);
      damaged[20] ^= 1;
      EXPECT_THROW((void)decoder.look(damaged.data(), damaged.size()), Error);
    }
}

// The header once, packets without it, strict, into the caller's memory; a container's padding does no harm.
TEST(PacketDecoder, TakesTheHeaderApart) {
  const Film& film = film_with(Motion::kOn);
  Bytes padded = film.head;
  padded.push_back(0);
  for (const int halved : {0, 1, 3}) {
    DecoderParams params;
    params.temporal_reduce = halved;
    const std::vector<Gop> whole = test::decode(film.stream, params);
    PacketDecoder decoder;
    decoder.set_header(padded.data(), padded.size());
    const PacketDecoder::Output output = decoder.output(params);
    for (std::size_t i = 0; i < kGops; ++i) {
      Gop gop(output.video, output.gop_frames);
      gop.set_frames(output.gop_frames);
      std::vector<MutableFrameView> views;
      for (int t = 0; t < output.gop_frames; ++t) views.push_back(view_of(gop, t));
      const Bytes packet = without_header(film, i);
      ASSERT_TRUE(decoder.add(packet.data(), packet.size())) << i;
      ASSERT_EQ(decoder.frames(params), whole[i].frames()) << i;
      ASSERT_EQ(decoder.decode(params, views), whole[i].frames()) << i;
      gop.set_frames(whole[i].frames());
      EXPECT_EQ(compare(gop, whole[i]).largest, 0) << halved << " " << i;
      EXPECT_EQ(views[0].time.pts, whole[i].times()[0].pts);
    }
  }
  PacketDecoder decoder;
  EXPECT_FALSE(decoder.add(film.packets[1].data(), film.packets[1].size())) << "no header yet";
  EXPECT_THROW(decoder.set_header(film.head.data(), 30), Error);
  decoder.set_header(film.head.data(), film.head.size());
  EXPECT_THROW((void)decoder.output({.first_frame = 3}), Error);
  EXPECT_THROW((void)decoder.output({.max_bytes = 1000}), Error);
}

TEST(PacketDecoder, BeginsWhereAPacketDecodesAlone) {
  const Film& film = film_with(Motion::kOn);
  const std::vector<Gop> whole = test::decode(film.stream, {});
  PacketDecoder decoder;
  PacketDecoder::Decoded decoded;
  EXPECT_TRUE(show(decoder, film.packets[0], {}, decoded));
  decoder.clear();
  EXPECT_FALSE(show(decoder, film.packets[2], {}, decoded));
  // Also back and over a gap, by a player that does not say so; of an open GOP's frames the one before it is enough.
  for (const std::size_t i : {3, 4, 0, 1}) {
    ASSERT_TRUE(show(decoder, film.packets[i], {}, decoded)) << i;
    EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
  }
  EXPECT_FALSE(show(decoder, film.packets[4], {}, decoded)) << "a GOP is missing before it";
  ASSERT_TRUE(show(decoder, film.packets[5], {}, decoded));
  EXPECT_EQ(compare(decoded.gop, whole[5]).largest, 0);
  EXPECT_EQ(decoder.stats().damaged_gops, 0u);
}

TEST(PacketDecoder, ChangesTheQualityAnywhere) {
  const Film& film = film_with(Motion::kOn);
  const std::vector<PlayerRequest> requests = {{}, {1, 0, 0}, {1, 0, 0}, {99, 1, 0}, {0, 0, 1}, {2, 1, 2}, {}};
  PacketDecoder decoder;
  PacketDecoder::Decoded decoded;
  for (std::size_t i = 0; i < kGops; ++i) {
    DecoderParams params;
    params.max_layers = std::min(requests[i].layers, 3);
    params.reduce = requests[i].reduce;
    const std::vector<Gop> whole = test::decode(film.stream, params);
    ASSERT_TRUE(show(decoder, film.packets[i], requests[i], decoded)) << i;
    EXPECT_EQ(decoded.info.width, requests[i].reduce == 0 ? 66 : 33);
    EXPECT_EQ(compare(decoded.gop, whole[i]).largest, 0) << i;
  }
}

// Whatever a packet holds, there are frames, none, or an Error; and with the next one that decodes alone all is well.
TEST(PacketDecoder, GoesOnBehindDamage) {
  const Film& film = film_with(Motion::kOn);
  const std::vector<Gop> whole = test::decode(film.stream, {});
  std::mt19937 random(5);
  int gave = 0;
  const int rounds = full() ? 60 : 12;
  for (int round = 0; round < rounds; ++round) {
    PacketDecoder decoder;
    PacketDecoder::Decoded decoded;
    for (std::size_t i = 0; i < kGops; ++i) {
      Bytes packet = film.packets[i];
      if (i < 3) {
        if (round % 3 == 0) packet.resize(random() % packet.size());
        for (std::uint32_t n = random() % 4; round % 3 > 0 && n > 0; --n)
          packet[random() % (round % 3 == 1 ? packet.size() : 100u)] ^= static_cast<std::uint8_t>(1u << random() % 8);
      }
      try {
        const bool shown = show(decoder, packet, {}, decoded);
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
