// Parts of the encoder in isolation: PacketWriter, ErrorMeasurer, TargetSearch, OutputStage (codec/encoder).

#include <gtest/gtest.h>

#include <cmath>

#include "codec/encoder/error_measurer.h"
#include "codec/encoder/output_stage.h"
#include "codec/encoder/packet_writer.h"
#include "codec/encoder/target_search.h"
#include "codec/measure/measuring_plan.h"
#include "codec/transform/quantiser.h"
#include "tests/support/short_gops.h"

namespace trivelet {
namespace {

using test::Clip;
using test::Pattern;

Clip clip_of(int gops) {
  return test::make_clip(test::video(70, 50, "yuv420p", static_cast<std::uint64_t>(4 * gops)), 4 * gops, 4,
                         Pattern::kTexture, 3);
}

PendingGop pending(const Clip& clip, std::size_t n, const EncoderContext& context, double step) {
  const Gop& gop = clip.gops[n];
  PendingGop p;
  p.number = n;
  p.first_frame = 4 * n;
  p.frames = gop.frames();
  p.step = static_cast<float>(step);
  p.times.assign(gop.times().begin(), gop.times().begin() + gop.frames());
  p.frame_gains = context.gains(p.frames);
  p.measures = true;
  p.samples = &gop;
  return p;
}

GopWork coded(const Clip& clip, std::size_t n, EncoderContext& context) {
  GopWork work;
  work.gop = pending(clip, n, context, context.params.step);
  context.coder->push(clip.gops[n], context.choices(work.gop, context.params.step));
  EXPECT_TRUE(context.coder->pull(work.coded));
  divide_gop(context, work, nullptr);
  return work;
}

TEST(PacketWriter, PacketsAndIndexAreAStream) {
  const Clip clip = clip_of(3);
  EncoderContext context(clip.info, test::short_gop_params(2), nullptr, false);
  MemorySink sink;
  PacketWriter writer(context, sink);
  writer.write_head();
  for (std::size_t n = 0; n < 3; ++n) {
    const GopWork work = coded(clip, n, context);
    const std::uint64_t before = writer.position();
    writer.write_packet(work.gop, work.layers, work.chunks, {});
    EXPECT_EQ(writer.index().back().offset, before);
    EXPECT_EQ(writer.counts().gops, n + 1);
    EXPECT_EQ(writer.counts().bytes, sink.bytes.size());
  }
  writer.write_end();
  MemorySource source(sink.bytes.data(), sink.bytes.size());
  Decoder decoder(source, {});
  EXPECT_EQ(decoder.info().gops.size(), 3U);
  Gop gop = decoder.make_gop();
  int frames = 0;
  while (decoder.pull(gop)) frames += gop.frames();
  EXPECT_EQ(frames, 12);
}

TEST(PacketWriter, AnEntryCanBeTaken) {
  const Clip clip = clip_of(1);
  EncoderContext context(clip.info, test::short_gop_params(2), nullptr, false);
  MemorySink sink;
  PacketWriter writer(context, sink);
  writer.write_head();
  const GopWork work = coded(clip, 0, context);
  writer.write_packet(work.gop, work.layers, work.chunks, {});
  EXPECT_EQ(writer.take_entry().frames, 4);
  EXPECT_TRUE(writer.index().empty());
}

/// Index errors of a clip, measured by threads or not.
std::vector<std::uint16_t> index_errors(const Clip& clip, bool threads) {
  EncoderContext context(clip.info, test::short_gop_params(2), nullptr, false);
  MemorySink sink;
  PacketWriter writer(context, sink);
  ErrorMeasurer measurer(context, nullptr);
  if (threads) measurer.start_threads();
  for (std::size_t n = 0; n < clip.gops.size(); ++n) {
    GopWork work = coded(clip, n, context);
    writer.write_packet(work.gop, work.layers, work.chunks, {});
    bool later = true;
    measurer.begin(measurer.task_for(work, later));
    EXPECT_FALSE(later) << "there is no observer";
  }
  if (threads) measurer.finish();
  measurer.write_errors(writer.index());
  std::vector<std::uint16_t> errors;
  for (const GopInfo& info : writer.index())
    for (const LayerInfo& layer : info.layers) errors.push_back(static_cast<std::uint16_t>(layer.error));
  return errors;
}

TEST(ErrorMeasurer, ThreadsFindTheSameErrors) {
  const Clip clip = clip_of(5);
  const std::vector<std::uint16_t> alone = index_errors(clip, false);
  EXPECT_EQ(alone, index_errors(clip, true));
  EXPECT_GT(alone.front(), 0U);
}

TEST(ErrorMeasurer, DecodedErrorFallsWithMoreBytes) {
  const Clip clip = clip_of(1);
  EncoderParams p = test::short_gop_params(2);
  p.psnr = 40;
  EncoderContext context(clip.info, p, nullptr, false);
  ErrorMeasurer measurer(context, nullptr);
  PendingGop gop = pending(clip, 0, context, 2);
  CodedGop out;
  context.coder->push(clip.gops[0], context.choices(gop, 2));
  ASSERT_TRUE(context.coder->pull(out));
  RateControl control(context.header, out, &context.pool);
  const double all = measurer.decoded_error(clip.gops[0], gop, control, control.complete());
  const double fewer = measurer.decoded_error(clip.gops[0], gop, control, control.planes(2));
  EXPECT_LT(all, fewer);
  EXPECT_NEAR(fewer / control.mean_error(control.planes(2)), 1, 0.5);
}

TEST(TargetSearch, EveryGopMeetsThePsnr) {
  const Clip clip = clip_of(3);
  for (const double psnr : {34.0, 42.0}) {
    EncoderParams p = test::short_gop_params(2);
    p.psnr = psnr;
    EncoderContext context(clip.info, p, nullptr, false);
    ErrorMeasurer measurer(context, nullptr);
    KeyPlan keys(context.header, context.params);
    TargetSearch search(context, measurer, keys);
    EXPECT_FALSE(search.seed());
    for (std::size_t n = 0; n < 3; ++n) {
      PendingGop gop = pending(clip, n, context, search.step());
      gop.run = n == 0;
      search.begin_run(gop);
      TargetSearch::Coded coded = search.code_to_psnr(clip.gops[n], gop);
      const double error = measurer.decoded_error(clip.gops[n], gop, coded.control, coded.layers.back());
      EXPECT_NEAR(10 * std::log10(255.0 * 255.0 / error), psnr, 0.3) << n;
    }
    ASSERT_TRUE(search.seed());
    const double seeded = search.seed()->step;
    PendingGop gop = pending(clip, 2, context, search.step());
    gop.run = true;
    search.begin_run(gop);
    EXPECT_EQ(search.step(), seeded) << "a run begins with what the first GOP told";
  }
}

TEST(OutputStage, GopsAreWrittenInTheirOrder) {
  std::vector<std::uint64_t> written;
  OutputStage stage(
      3, 4, [](GopWork& work) { work.layers.frames = static_cast<int>(work.gop.number); },
      [&](GopWork& work) { written.push_back(static_cast<std::uint64_t>(work.layers.frames)); });
  for (std::uint64_t n = 0; n < 40; ++n) {
    stage.wait(3);
    GopWork work = stage.used();
    work.gop.number = n;
    stage.hand_over(std::move(work));
  }
  stage.finish();
  ASSERT_EQ(written.size(), 40U);
  for (std::uint64_t n = 0; n < 40; ++n) EXPECT_EQ(written[n], n);
}

TEST(OutputStage, WhatIsThrownComesToTheCaller) {
  for (const bool dividing : {false, true}) {
    const auto fail_at_2 = [](GopWork& work) { require(work.gop.number != 2, ErrorKind::kIo, "no space left"); };
    const auto nothing = [](GopWork&) {};
    OutputStage stage(2, 4, dividing ? OutputStage::Step(fail_at_2) : OutputStage::Step(nothing),
                      dividing ? OutputStage::Step(nothing) : OutputStage::Step(fail_at_2));
    for (std::uint64_t n = 0; n < 4; ++n) {
      GopWork work;
      work.gop.number = n;
      stage.hand_over(std::move(work));
    }
    EXPECT_THROW(stage.finish(), Error) << dividing;
  }
}

}  // namespace
}  // namespace trivelet
