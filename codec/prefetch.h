// A thread that reads or decodes the next GOP while the one before is used.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "trivelet/types.h"

namespace trivelet {

/// Fills one Gop in a thread of its own while the other one is used.
class Prefetch {
 public:
  using Fill = std::function<bool(Gop&)>;  ///< false = nothing left
  Prefetch(Gop first, Gop second, Fill fill);
  ~Prefetch();
  Prefetch(const Prefetch&) = delete;
  Prefetch& operator=(const Prefetch&) = delete;

  /// The next filled Gop, valid until the call after this; null at the end. Rethrows what `fill` threw.
  const Gop* next();
  double seconds_waited() const { return waited_; }  ///< of next(), for Gops that were not there yet

 private:
  void run();

  Fill fill_;
  Gop gops_[2];
  std::mutex mutex_;
  std::condition_variable changed_;
  int filled_ = 0;    ///< Gops filled so far
  int taken_ = 0;     ///< Gops handed out so far
  int released_ = 0;  ///< Gops given back so far
  bool ended_ = false;
  bool stop_ = false;
  std::exception_ptr error_;
  double waited_ = 0;
  std::thread thread_;
};

}  // namespace trivelet
