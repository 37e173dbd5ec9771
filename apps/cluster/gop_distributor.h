// Distributes GOPs to the workers that encode them: each as soon as it has room, and the GOPs of a run to one of them.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "apps/cluster/gop_finder.h"
#include "apps/cluster/record_writer.h"

namespace trivelet::cli {

class GopDistributor {
 public:
  GopDistributor(Processes& processes, const PartEncoder& encoder, const Distribution& distribution, GopFinder& finder,
                 RecordWriter& records);

  /// A worker has room for so many more GOPs.
  void add_room(int worker, std::uint64_t gops) { workers_.at(static_cast<std::size_t>(worker)).room += gops; }
  /// Sends what can be sent; false if nothing can.
  bool send();
  /// Nothing more is sent.
  void finish();

 private:
  struct WorkerQueue {
    std::uint64_t room = 0;
    std::deque<EncodeTask> tasks;  ///< not sent yet
    std::int64_t left() const { return static_cast<std::int64_t>(room) - static_cast<std::int64_t>(tasks.size()); }
  };
  bool send_queued();
  void send(int worker, EncodeTask& task);
  void hold_next();
  bool is_far_ahead() const;
  bool assign();

  Processes& processes_;
  const EncoderParams& params_;
  const bool sends_frames_;
  GopFinder& finder_;
  RecordWriter& records_;
  std::vector<WorkerQueue> workers_;
  std::optional<EncodeTask> held_;  ///< the next one, which no worker has room for yet
  std::deque<EncodeTask> passed_;   ///< of the run that is found now: what the journal has
  std::deque<EncodeTask> ahead_;    ///< next, before what is found
  std::size_t current_ = 0;         ///< the worker of this run
  std::size_t queued_ = 0;          ///< tasks of all workers
  bool finished_ = false;
};

}  // namespace trivelet::cli
