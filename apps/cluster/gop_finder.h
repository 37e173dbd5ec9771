// Finds the ends of GOPs in the first process, ahead of the encoders.
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
  std::optional<Gop> samples;  ///< the frames, if they are sent
  bool end = false;            ///< no GOP: the previous one was the last
};

class GopFinder {
 public:
  /// Starts to search, in a thread of its own.
  GopFinder(const PartEncoder& encoder, Distribution& distribution);
  ~GopFinder();
  GopFinder(const GopFinder&) = delete;
  GopFinder& operator=(const GopFinder&) = delete;

  /// The next GOP, or the end, if it has been found. Throws the error of the search.
  std::optional<EncodeTask> try_pop() { return found_.try_pop(); }
  /// Stops the search.
  void stop();
  /// Waits for the end. Returns the CPU seconds of the search and of the reading for it.
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
