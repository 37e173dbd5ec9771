// Distributes GOPs to the workers: each GOP when a worker has a free slot, and all GOPs of a run to the same worker.
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

  /// A worker has this many more free slots.
  void add_room(int worker, std::uint64_t gops) { workers_.at(static_cast<std::size_t>(worker)).room += gops; }
  /// Sends as many GOPs as possible; false if none can be sent.
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
  std::optional<EncodeTask> held_;  ///< the next GOP, for which no worker has a free slot yet
  std::deque<EncodeTask> passed_;   ///< the GOPs of the current run that the journal has
  std::deque<EncodeTask> ahead_;    ///< to be sent before newly found GOPs
  std::size_t current_ = 0;         ///< the worker of this run
  std::size_t queued_ = 0;          ///< tasks of all workers
  bool finished_ = false;
};

}  // namespace trivelet::cli
