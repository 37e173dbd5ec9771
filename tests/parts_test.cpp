// One stream from several encoders that make some of its GOPs each: the bytes of one encoder that makes them all.
#include "codec/encoder_part.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "tests/support.h"

namespace trivelet {
namespace {

using namespace test;

constexpr int kGop = 4;

/// Each encoder codes what begins anew with it; records come to the assembly in order, but what is measured only when
/// `late` more of them have.
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
      const std::vector<double> errors = a.by->settle(a.number, a.layers);
      if (!a.layers.empty()) assembly.measured(a.number, errors);
    }
  };
  std::size_t turn = 0;
  GopTask task;
  for (const Gop& gop : clip.gops) {
    task.anew = schedule.begins_anew(gop.frames(), gop.begins_scene());
    if (task.anew) turn = (turn + 1) % parts.size();
    PartEncoder& part = *parts[turn];
    Gop copy = part.make_gop();
    copy = gop;
    part.push(std::move(copy), task);
    part.flush();
    std::optional<GopRecord> record = part.next();
    EXPECT_TRUE(record.has_value());
    const GopRecord sent = GopRecord::parse(record->serialise());
    const std::vector<std::size_t> layers = assembly.add(sent);
    if (sent.asks) asked.push_back({&part, task.number, layers});
    answer(late);
    ++task.number;
    task.first_frame += static_cast<std::uint64_t>(gop.frames());
  }
  EXPECT_FALSE(parts[turn]->next().has_value());
  answer(0);
  for (const auto& p : parts) EXPECT_EQ(p->unsettled(), 0u);
  assembly.finish();
  EXPECT_EQ(assembly.bytes(), sink.bytes.size());
  return std::move(sink.bytes);
}

TEST(Parts, MakeTheWhole) {
  EncoderParams dense;
  EncoderParams lossless{.lossless = true};
  EncoderParams fast{.profile = Profile::kFast};
  EncoderParams regions{.lossless = true};
  regions.block_size = 32;
  regions.part_checks = true;
  EncoderParams unmeasured;
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
    // Patterns differ: where errors do, GOPs are measured anew.
    Clip clip = make_clip(video(70, 50, "yuv420p", 0), 30, kGop, Pattern::kTexture, 7);
    Clip other = make_clip(video(70, 50, "yuv420p", 0), 26, kGop, Pattern::kNoise, 9);
    for (Gop& g : other.gops) {
      for (auto& t : g.times()) t.pts += 30;
      clip.gops.push_back(g);
    }
    clip.gops[8].set_begins_scene(true);
    const auto whole = encode(clip, p);
    for (const int encoders : {2, 7}) EXPECT_EQ(by_parts(clip, p, encoders, 3), whole) << encoders;
  }
}

TEST(Parts, TargetsAreRefused) {
  const VideoInfo info = video(70, 50, "gray", 0);
  for (const EncoderParams& p : {EncoderParams{.target_bytes = 1000}, EncoderParams{.psnr = 40}})
    EXPECT_THROW(PartEncoder(info, p), Error);
}

}  // namespace
}  // namespace trivelet
