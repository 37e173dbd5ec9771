// Encodes a video with one encoder in this process, and prints its times.

#include <algorithm>
#include <utility>

#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/video/encode_job.h"
#include "apps/video/lossless_estimate.h"
#include "codec/threads/prefetch.h"
#include "codec/threads/trace.h"
#include "trivelet/scene_cuts.h"

namespace trivelet::cli {

namespace {

// GOPs that are read ahead of a device: one goes up while two are read, by all threads, and one is to spare.
constexpr int kGopsForDevice = 4;

/// Seconds, by the clock.
struct AloneTimes {
  double begun = 0;    ///< before the encoder was there
  double waited = 0;   ///< for the input
  double looking = 0;  ///< for scene cuts, while reading
};

/// Frames of `input`, counted in `progress`.
FramesInput counted(VideoInput& input, Progress& progress) {
  return {[&](Gop& gop, int first, int count) {
            const int got = input.read_frames(gop, first, count);
            progress.add_read(got);
            return got;
          },
          [&](int count) {
            const bool taken = input.unread(count);
            if (taken) progress.add_read(-count);
            return taken;
          }};
}

/// False if there were no frames; then the stream is not finished.
bool push_all(EncodeJob& job, Encoder& encoder, AloneTimes& times) {
  VideoInput& input = *job.input;
  Progress progress(job.common, "encode", input.info().frames);
  SceneReader scenes(input.info(), counted(input, progress), job.common.threads);
  Prefetch gops([&] { return encoder.make_gop(); }, job.backend ? kGopsForDevice : 2,
                [&, plain = job.plain_gops()](Gop& gop) {
                  const trace::Span span("read frames");
                  if (!(plain ? input.read(gop) : scenes.read(gop))) return false;
                  if (plain) progress.add_read(gop.frames());
                  if (job.digest) job.digest->add(gop);
                  return true;
                });
  LosslessEstimate lossless(job);
  while (const Gop* gop = gops.next()) {
    lossless.add(*gop);
    encoder.push(*gop);
    progress.update(encoder.stats().frames);
  }
  times.waited = gops.seconds_waited();
  times.looking = scenes.seconds();
  if (encoder.stats().frames == 0) return false;
  progress.stage("finishing the stream");
  encoder.finish();  // while the memory of `gops` is kept: to give it back waits for all that a device does
  progress.finish();
  lossless.tell();
  return true;
}

void log_times(const CodecStats& stats, const AloneTimes& times, double seconds) {
  log::debug("{:.3f} seconds in all", times.begun + seconds);
  log::debug("seconds in the encoder by stage: {}", describe(stages_by_name(stats.stages), seconds - times.waited));
  log::debug("{:.3f} finding scene cuts, while reading", times.looking);
  log::debug("{:.3f} to set up, {:.3f} waiting for the input, {:.3f} in the encoder; bottleneck: {}", times.begun,
             times.waited, seconds - times.waited, 2 * times.waited > seconds ? "reading" : "encoding");
}

}  // namespace

void encode_alone(EncodeJob& job) {
  AloneTimes times;
  times.begun = job.clock.seconds();
  Encoder encoder(job.video, job.params, *job.stream, job.backend.get());
  job.check_pin(job.stream->header());
  if (!push_all(job, encoder, times)) return;
  log_times(encoder.stats(), times, job.clock.seconds() - times.begun);
  job.coded = {encoder.stats().frames, encoder.stats().stream_bytes};
}

}  // namespace trivelet::cli
