// Reads the input ahead in a thread and finds the ends of GOPs.

#include "apps/cluster/gop_finder.h"

#include <time.h>

#include <exception>
#include <utility>

#include "codec/threads/trace.h"
#include "trivelet/scene_cuts.h"

namespace trivelet::cli {

namespace {

/// CPU seconds of the calling thread.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

}  // namespace

GopFinder::GopFinder(const PartEncoder& encoder, Distribution& distribution)
    : encoder_(encoder), distribution_(distribution), found_(distribution.reading == Reading::kSent ? 2 : 64) {
  worker_.begin([this] { run(); });
}

GopFinder::~GopFinder() { found_.stop(); }

void GopFinder::stop() {
  found_.stop();
  if (distribution_.kept) distribution_.kept->stop_looking();
}

double GopFinder::finish() {
  found_.stop();
  worker_.wait();
  return seconds_;
}

void GopFinder::run() try {
  VideoInput& input = distribution_.input;
  const bool direct = distribution_.reading == Reading::kDirect;
  const FramesInput frames =
      distribution_.kept ? distribution_.kept->looks()
                         : FramesInput{[&](Gop& gop, int first, int count) {
                                         return direct ? input.look(gop, first, count, !distribution_.plain_gops)
                                                       : input.read_frames(gop, first, count);
                                       },
                                       [&](int count) { return input.unread(count); }};
  SceneReader scenes(input.info(), frames, distribution_.threads);
  KeySchedule schedule = encoder_.schedule();
  std::optional<Gop> gop;
  EncodeTask next;
  for (;;) {
    const trace::Span span("read frames");
    if (!gop) gop.emplace(input.info(), encoder_.header().gop_frames);
    if (distribution_.plain_gops) {
      gop->set_frames(gop->capacity());
      gop->set_frames(frames.read(*gop, 0, gop->capacity()));
    }
    if (distribution_.plain_gops ? gop->frames() == 0 : !scenes.read(*gop)) break;
    EncodeTask task = next;
    task.frames = gop->frames();
    task.begins_scene = gop->begins_scene();
    const KeySchedule::Start start = schedule.next(task.frames, task.begins_scene);
    task.task.must_close = start.must_close;
    task.task.run = start.run;
    next.task.number += 1;
    next.task.first_frame += static_cast<std::uint64_t>(task.frames);
    if (distribution_.reading == Reading::kSent) task.samples = std::exchange(gop, std::nullopt);
    if (!found_.push(std::move(task))) return;
  }
  next.end = true;
  seconds_ = cpu_seconds();
  (void)found_.push(std::move(next));
} catch (...) {
  found_.close(std::current_exception());
}

}  // namespace trivelet::cli
