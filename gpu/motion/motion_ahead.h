// Searches for motion of several GOPs at once (BackendOptions::lookahead). A search is as long as its slowest region,
// which takes a small part of the device; other GOPs fill it meanwhile.
//
// Whether the GOP before left a key may turn out when a GOP was searched (GopChoices::search_key): it is searched as if
// it had.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "codec/cpu/motion_gop.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"
#include "gpu/motion/motion_search.h"

namespace trivelet::gpu {

class MotionAhead {
 public:
  /// `memory`: that all searches, `wanted` at most, should find room in; see most().
  MotionAhead(const StreamHeader& header, const BackendOptions& options, int device, std::size_t memory,
              int wanted = kMostSearches);
  ~MotionAhead();
  MotionAhead(const MotionAhead&) = delete;
  MotionAhead& operator=(const MotionAhead&) = delete;

  /// Searches at once, so far as is known; 0: not even the fewest find room.
  int most() const { return static_cast<int>(most_); }
  /// Memory of the device that they may take in all.
  std::size_t device_bytes() const { return most_ == 0 ? 0 : most_ * bytes_of_one(); }
  /// GOPs that were begun and not let go.
  int in_flight() const { return static_cast<int>(in_flight_); }
  /// Whether one more can begin; else one has to be let go first.
  bool has_room();

  /// Takes the memory of all searches that so many GOPs can have at once.
  void reserve(std::uint64_t gops);
  /// Begins to search a GOP, which should be page-locked. GOPs come in their order. They are read until wait_uploaded()
  /// returns.
  void begin(const Gop& gop, const GopChoices& choices);
  void wait_uploaded() const noexcept;
  /// Whether end() has nothing to wait for.
  bool is_found();

  struct Found {
    int frames = 0;
    GopChoices choices;
    std::shared_ptr<const GopMotion> motion;  ///< null: a GOP that cannot move
    DeviceMotionSearch* search = nullptr;
  };
  /// Waits for the oldest one that did not end.
  Found end();
  /// The GOP before has left no key. True where that took another search, which was begun: close_end() waits for it.
  bool close(Found& found, ThreadPool& pool);
  void close_end(Found& found, ThreadPool& pool);
  /// The GOP that ended last is done with. Its samples stay where they are until samples_read() was recorded and is
  /// over.
  void let_go() { --in_flight_; }

 private:
  static constexpr int kMostSearches = 24;  // more at once find no more of them

  std::size_t bytes_of_one() const { return searches_.front()->device_bytes(); }
  void add_search();
  void find(Found& found, const MotionTransform& transform, ThreadPool& pool);
  void run();

  StreamHeader header_;
  int device_;
  ThreadPool pool_;
  MotionTransform transform_;
  std::size_t memory_of_one_;  // at most
  std::size_t most_;
  std::vector<std::unique_ptr<DeviceMotionSearch>> searches_;  // taken in turn
  std::size_t next_ = 0, in_flight_ = 0;
  DeviceMotionSearch* last_ = nullptr;  // of the GOP begun last
  bool before_may_stay_ = false;        // that GOP may turn out to be without motion
  // What was begun, and what the thread has found; without a thread, end() finds it.
  StageQueue<Found> begun_, found_;
  std::optional<Found> ready_;
  Worker worker_{"vectors"};  // last: it ends first
};

}  // namespace trivelet::gpu
