// A thread that reads or decodes the next GOPs while the one before is used.
#pragma once

#include <functional>
#include <memory>

#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"
#include "trivelet/types.h"

namespace trivelet {

/// Fills Gops in a thread of its own while another one is used; where the system starts no more threads, in next().
class Prefetch {
 public:
  using Make = std::function<Gop()>;
  using Fill = std::function<bool(Gop&)>;  ///< false = nothing left
  /// At most `most` Gops, 2 or more, are made: each in the thread, when all others are filled or in use.
  /// Not in a thread of its own with `alone`.
  Prefetch(Make make, int most, Fill fill, bool alone = false);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next filled Gop, the caller's until the call after this; null at the end. Rethrows what `fill` threw.
  Gop* next();
  double seconds_waited() const { return waited_; }  ///< of next(), for Gops that were not there yet

 private:
  void run();

  Make make_;
  Fill fill_;
  const int most_;
  StageQueue<std::unique_ptr<Gop>> filled_;
  StageQueue<std::unique_ptr<Gop>> free_;
  std::unique_ptr<Gop> used_;
  double waited_ = 0;
  Worker worker_{"read ahead"};  ///< last: it ends first
};

}  // namespace trivelet
