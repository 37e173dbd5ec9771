// Reads or decodes the next GOPs in a thread while the caller uses the current one.
#pragma once

#include <functional>
#include <memory>

#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"
#include "trivelet/types.h"

namespace trivelet {

/// Fills Gops in a thread of its own. If the system starts no more threads, next() fills them.
class Prefetch {
 public:
  using Make = std::function<Gop()>;
  using Fill = std::function<bool(Gop&)>;  ///< returns false at the end of the data
  /// Makes at most `most` Gops, 2 or more for anything to be read ahead. A Gop is made when all others are filled or in
  /// use. With `alone` no thread is started.
  Prefetch(Make make, int most, Fill fill, bool alone = false);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next filled Gop, valid until the next call; null at the end. Rethrows what `fill` threw.
  Gop* next();
  double seconds_waited() const { return waited_; }  ///< time that next() waited for Gops that were not filled yet

 private:
  void run();

  Make make_;
  Fill fill_;
  const int most_;
  StageQueue<std::unique_ptr<Gop>> filled_;
  StageQueue<std::unique_ptr<Gop>> free_;
  std::unique_ptr<Gop> used_;
  double waited_ = 0;
  Worker worker_{"read ahead"};  ///< last: it is destroyed before the members that it uses
};

}  // namespace trivelet
