// The threads between a backend and the stream: some divide coded GOPs into layers and chunks, a GOP each, and one
// writes them in order, while the backend codes others.
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

/// Used by the thread that calls the encoder. `divide` is called by several threads at once, `write` by one thread, in
/// the order of hand_over().
class OutputStage {
 public:
  using Step = std::function<void(GopWork&)>;
  /// `outstanding`: GOPs that may be in it. Throws std::system_error where the system starts no more threads.
  OutputStage(int threads, int outstanding, Step divide, Step write);
  ~OutputStage();
  void hand_over(GopWork work);
  /// Waits until so many GOPs at most are not written yet. Throws what went wrong.
  void wait(std::size_t unfinished);
  /// GOPs handed over of which wait() does not know yet that they are written.
  std::size_t unfinished() const { return unfinished_; }
  /// A GOP that was written, for its memory.
  GopWork used();
  /// Waits until all is written, and ends the threads. Throws what went wrong.
  void finish();

 private:
  void stop();
  void run_divide();
  void run_write();

  Step divide_;
  Step write_;
  std::uint64_t handed_over_ = 0;
  std::size_t unfinished_ = 0;  ///< as the caller knows
  std::vector<GopWork> used_;
  OrderedQueue<GopWork> divided_;
  StageQueue<GopWork> work_;
  StageQueue<GopWork> done_;
  std::list<Worker> workers_;
};

}  // namespace trivelet
