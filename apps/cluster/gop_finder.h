// Finds in the first process where the GOPs of an input end, ahead of those that are encoded.
#pragma once

#include <optional>

#include "apps/cluster/encode_together.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

/// A GOP on its way to the worker that encodes it.
struct EncodeTask {
  GopTask task;
  int frames = 0;
  bool begins_scene = false;
  std::optional<Gop> samples;  ///< where they are sent
  bool end = false;            ///< no GOP: the one before was the last
};

class GopFinder {
 public:
  /// Begins, in a thread of its own.
  GopFinder(const PartEncoder& encoder, Distribution& distribution);
  ~GopFinder();
  GopFinder(const GopFinder&) = delete;
  GopFinder& operator=(const GopFinder&) = delete;

  /// The next GOP, or the end, if it was found by now. Throws what went wrong.
  std::optional<EncodeTask> try_pop() { return found_.try_pop(); }
  /// Looks for no more.
  void stop();
  /// Waits for the end. CPU seconds that all took, with what was read for it.
  double finish();

 private:
  void run();

  const PartEncoder& encoder_;
  Distribution& distribution_;
  StageQueue<EncodeTask> found_;
  double seconds_ = 0;
  Worker worker_{"read"};  ///< last: it ends first
};

}  // namespace trivelet::cli
