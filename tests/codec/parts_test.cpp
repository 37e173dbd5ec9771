// One stream from several encoders that each code some of its GOPs: the bytes are those of one encoder.
#include "codec/encoder/encoder_part.h"
#include "codec/format/container.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "codec/base/gop_hash.h"
#include "tests/support/support.h"

namespace trivelet {
namespace {

using namespace test;

constexpr int kGop = 4;

/// Encodes in parts: each encoder codes whole runs of GOPs. Records reach the assembly in order, and measurements
/// `late` records later.
std::vector<std::byte> by_parts(const Clip& clip, const EncoderParams& params, int encoders, std::size_t late) {
  std::vector<std::unique_ptr<PartEncoder>> parts;
  for (int i = 0; i < encoders; ++i) parts.push_back(std::make_unique<PartEncoder>(clip.info, params));
  for (const auto& p : parts) EXPECT_EQ(p->head(), parts[0]->head());
  MemorySink sink;
  StreamAssembly assembly(parts[0]->header(), parts[0]->head(), sink);
  KeySchedule schedule = parts[0]->schedule();
  struct Asked {
    PartEncoder* by;
    std::uint64_t number;
    std::vector<std::size_t> layers;
  };
  std::deque<Asked> asked;
  const auto answer = [&](std::size_t left) {
    for (; asked.size() > left; asked.pop_front()) {
      const Asked& a = asked.front();
      a.by->settle(a.number, a.layers);
    }
    for (const auto& p : parts)
      for (const GopErrors& measured : p->take_errors()) assembly.measured(measured.number, measured.errors);
  };
  std::size_t turn = 0;
  GopTask task;
  std::vector<WaitingGop> waiting;
  std::vector<PartEncoder*> by;
  for (const Gop& gop : clip.gops) {
    const KeySchedule::Start start = schedule.next(gop.frames(), gop.begins_scene());
    task.must_close = start.must_close;
    task.run = start.run;
    if (task.run) turn = (turn + 1) % parts.size();
    PartEncoder& part = *parts[turn];
    Gop copy = part.make_gop();
    copy = gop;
    part.push(std::move(copy), task);
    part.flush();
    std::optional<GopRecord> record = part.next();
    EXPECT_TRUE(record.has_value());
    const GopRecord sent = GopRecord::parse(record->serialise());
    if (task.number == 0) task.seed = sent.seed;
    if (sent.waits) {
      waiting.push_back(sent.waiting);
      by.push_back(&part);
      ++task.number;
      task.first_frame += static_cast<std::uint64_t>(gop.frames());
      continue;
    }
    const std::vector<std::size_t> layers = assembly.add(sent);
    if (sent.asks) asked.push_back({&part, task.number, layers});
    answer(late);
    ++task.number;
    task.first_frame += static_cast<std::uint64_t>(gop.frames());
  }
  EXPECT_FALSE(parts[turn]->next().has_value());
  if (!waiting.empty()) {
    const EncoderParams& p = parts[0]->params();
    const auto total =
        static_cast<std::uint64_t>(bytes_wanted(clip.info, p, static_cast<double>(task.first_frame),
                                                {waiting.front().info.begin_pts, 0}, {waiting.back().info.end_pts, 0}));
    const BytePlan plan(parts[0]->header(), waiting, total);
    for (;;) {
      const std::size_t first = assembly.index().size();
      const std::vector<std::uint64_t> bytes = plan.next(assembly.index(), assembly.bytes());
      if (bytes.empty()) break;
      // Of those that can be cut at once, the last one first.
      for (std::size_t i = bytes.size(); i-- > 0;) by[first + i]->fit(first + i, bytes[i], plan.slope());
      std::map<std::uint64_t, GopRecord> records;
      for (const auto& p2 : parts)
        while (std::optional<GopRecord> record = p2->next()) records.emplace(record->number, *record);
      EXPECT_EQ(records.size(), bytes.size());
      for (const auto& r : records) (void)assembly.add(GopRecord::parse(r.second.serialise()));
    }
  }
  answer(0);
  for (const auto& p : parts) EXPECT_EQ(p->unsettled(), 0u);
  assembly.finish();
  EXPECT_EQ(assembly.bytes(), sink.bytes.size());
  return std::move(sink.bytes);
}

TEST(Parts, MakeTheWhole) {
  EncoderParams dense;
  dense.motion = Motion::kOff;
  EncoderParams lossless{.lossless = true, .motion = Motion::kOff};
  EncoderParams fast{.profile = Profile::kFast};
  EncoderParams regions{.lossless = true, .motion = Motion::kOff};
  regions.block_size = 32;
  regions.part_checks = true;
  EncoderParams unmeasured;
  unmeasured.motion = Motion::kOff;
  unmeasured.measure_errors = false;
  EncoderParams motion{.motion = Motion::kOn, .key_interval = 9};
  EncoderParams may_move{.motion = Motion::kAuto, .key_interval = 9};
  EncoderParams lossless_motion{.lossless = true, .motion = Motion::kOn, .key_interval = 1};
  EncoderParams predicted{.lossless = true};
  predicted.profile = Profile::kPredictive;
  int i = 0;
  for (EncoderParams p : {dense, lossless, fast, regions, unmeasured, motion, may_move, lossless_motion, predicted}) {
    SCOPED_TRACE(i++);
    p.gop_frames = kGop;
    if (p.profile != Profile::kPredictive) p.spatial_levels = p.temporal_levels = 2;
    p.threads = 1;
    // Patterns differ: GOPs with other errors are measured again.
    Clip clip = make_clip(video(36, 28, "yuv420p", 0), 18, kGop, Pattern::kTexture, 7);
    Clip other = make_clip(video(36, 28, "yuv420p", 0), 14, kGop, Pattern::kNoise, 9);
    for (Gop& g : other.gops) {
      for (auto& t : g.times()) t.pts += 18;
      clip.gops.push_back(g);
    }
    clip.gops[6].set_begins_scene(true);
    const auto whole = encode(clip, p);
    EXPECT_EQ(by_parts(clip, p, 3, 3), whole);
  }
}

// GOPs of runs are coded side by side, and bytes are divided when all are known.
TEST(Parts, TargetsAreThoseOfTheWhole) {
  EncoderParams psnr{.psnr = 38, .motion = Motion::kOff};
  EncoderParams psnr_motion{.psnr = 36, .motion = Motion::kOn, .key_interval = 9};
  EncoderParams size{.target_bytes = 18000, .motion = Motion::kOff};
  EncoderParams size_motion{.target_bytes = 24000, .motion = Motion::kAuto, .key_interval = 9};
  EncoderParams bits{.bits_per_pixel = 1.5, .profile = Profile::kFast};
  EncoderParams rate{.bit_rate = 60000, .motion = Motion::kOff};
  int i = 0;
  for (EncoderParams p : {psnr, psnr_motion, size, size_motion, bits, rate}) {
    SCOPED_TRACE(i++);
    p.gop_frames = 2;
    p.spatial_levels = 2;
    p.temporal_levels = 1;
    p.threads = 1;
    VideoInfo info = video(40, 30, "gray", 0);
    info.frame_rate = {25, 1};
    info.time_base = {1, 25};
    Clip clip = make_clip(info, 16, 2, Pattern::kTexture, 7);
    Clip other = make_clip(info, 11, 2, Pattern::kSmooth, 9);
    for (Gop& g : other.gops) {
      for (auto& t : g.times()) t.pts += 16;
      clip.gops.push_back(g);
    }
    if (p.target_bytes > 0) clip.info.frames = 27;
    const auto whole = encode(clip, p);
    if (p.target_bytes > 0) {
      EXPECT_LE(whole.size(), p.target_bytes);
      EXPECT_GE(whole.size(), p.target_bytes * 98 / 100);
    }
    EXPECT_EQ(by_parts(clip, p, 3, 0), whole);
  }
}

// Decoders that share runs deliver the GOPs of one, each once.
TEST(Parts, DecodersTakeTurns) {
  EncoderParams p{.motion = Motion::kOn, .key_interval = 9};
  p.gop_frames = kGop;
  p.spatial_levels = p.temporal_levels = 2;
  const std::vector<std::byte> stream =
      encode(make_clip(video(48, 40, "yuv420p", 0), 50, kGop, Pattern::kTexture, 7), p);
  DecoderParams part;
  part.first_frame = 6;
  part.end_frame = 47;
  using Gops = std::map<std::uint64_t, std::uint64_t>;  // hashes of samples, by first frames
  const auto decoded = [&](const DecoderParams& params, Gops& gops) {
    MemorySource source(stream.data(), stream.size());
    Decoder decoder(source, params);
    std::uint64_t frames = 0;
    for (Gop gop = decoder.make_gop(); decoder.pull(gop); frames += static_cast<std::uint64_t>(gop.frames()))
      EXPECT_TRUE(gops.emplace(decoder.first_frame_of_gop(), hash_samples(gop)).second);
    EXPECT_EQ(decoder.output().frames, frames);
    return frames;
  };
  for (const int halved : {0, 1}) {
    part.temporal_reduce = halved;
    Gops whole;
    const std::uint64_t frames = decoded(part, whole);
    EXPECT_GT(whole.size(), 8u);
    for (const std::uint64_t turns : {2, 3, 7}) {
      Gops shared;
      std::uint64_t all = 0;
      for (std::uint64_t turn = 0; turn < turns; ++turn) {
        DecoderParams mine = part;
        mine.turn = turn;
        mine.turns = turns;
        const std::size_t before = shared.size();
        all += decoded(mine, shared);
        EXPECT_TRUE(turns > 2 || shared.size() > before);
      }
      EXPECT_EQ(all, frames);
      EXPECT_EQ(shared, whole);
    }
  }
  MemorySource source(stream.data(), stream.size());
  part.turn = part.turns = 2;
  EXPECT_THROW(Decoder(source, part), Error);
}

}  // namespace
}  // namespace trivelet
