// Searches for motion of several GOPs at once (BackendOptions::lookahead). A search takes as long as its slowest
// region, which uses a small part of the device; other GOPs use the rest meanwhile.
//
// Whether the GOP before left a key may be known only after a GOP was searched (GopChoices::search_key). It is searched
// as if there were a key.
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
  /// `memory`: the limit for all searches, `wanted` at most; see most().
  MotionAhead(const StreamHeader& header, const BackendOptions& options, int device, std::size_t memory,
              int wanted = kMostSearches);
  ~MotionAhead();
  MotionAhead(const MotionAhead&) = delete;
  MotionAhead& operator=(const MotionAhead&) = delete;

  /// Searches at once, so far as is known; 0: not even the fewest find room.
  int most() const { return static_cast<int>(most_); }
  /// Most device memory for all searches.
  std::size_t device_bytes() const { return most_ == 0 ? 0 : most_ * bytes_of_one(); }
  /// GOPs that were begun and not released.
  int in_flight() const { return static_cast<int>(in_flight_); }
  /// True if one more can begin; otherwise one has to be released first.
  bool has_room();

  /// Allocates the memory of all searches for this many GOPs.
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
    std::shared_ptr<GopMotion> motion;  ///< null: a GOP that cannot move
    DeviceMotionSearch* search = nullptr;
  };
  /// Waits for the oldest one that did not end.
  Found end();
  /// The GOP before has left no key. Returns true if that needs another search, which is then begun: close_end() waits
  /// for it.
  bool close(Found& found, ThreadPool& pool);
  void close_end(Found& found, ThreadPool& pool);
  /// Releases the GOP that ended last. Its samples stay until the event of samples_read() was recorded and has passed.
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
  // The searches begun, and the results of the thread; without a thread, end() computes them.
  StageQueue<Found> begun_, found_;
  std::optional<Found> ready_;
  Worker worker_{"vectors"};  // last: it ends first
};

}  // namespace trivelet::gpu
