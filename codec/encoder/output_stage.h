// The threads between a backend and the stream. Some divide coded GOPs into layers and chunks, one GOP each; one writes
// them in order. The backend codes other GOPs at the same time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <optional>
#include <vector>

#include "codec/encoder/gop_work.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet {

/// Used by the thread that calls the encoder. Several threads call `divide` at once; one thread calls `write` in the
/// order of hand_over().
class OutputStage {
 public:
  using Step = std::function<void(GopWork&)>;
  /// `outstanding`: limit of GOPs inside. Throws std::system_error if the system starts no more threads.
  OutputStage(int threads, int outstanding, Step divide, Step write);
  ~OutputStage();
  void hand_over(GopWork work);
  /// Waits until at most `unfinished` GOPs are not written. Throws the error of a thread, if there is one.
  void wait(std::size_t unfinished);
  /// GOPs handed over that wait() has not seen written.
  std::size_t unfinished() const { return unfinished_; }
  /// A written GOP, to reuse its memory.
  GopWork used();
  /// Waits until all is written and ends the threads. Throws the error of a thread, if there is one.
  void finish();

 private:
  void stop();
  void run_divide();
  void run_write();

  Step divide_;
  Step write_;
  std::uint64_t handed_over_ = 0;
  std::size_t unfinished_ = 0;  ///< as known to the caller
  std::vector<GopWork> used_;
  OrderedQueue<GopWork> divided_;
  StageQueue<GopWork> work_;
  StageQueue<GopWork> done_;
  std::list<Worker> workers_;
};

}  // namespace trivelet
