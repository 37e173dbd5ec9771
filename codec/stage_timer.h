// What a stage of the work takes: by the clock, and of all threads together.
#pragma once

#include "codec/parallel.h"
#include "codec/stopwatch.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Adds a scope to a stage. `times()` are those of the pools that the scope uses; what it does outside of them is done by
/// one thread.
template <class PoolTimes>
class StageTimer {
 public:
  StageTimer(StageTime& stage, PoolTimes times) : stage_(stage), times_(times), before_(times()) {}
  ~StageTimer() {
    const double seconds = watch_.seconds();
    const ThreadPool::Times after = times_();
    stage_.seconds += seconds;
    stage_.busy += seconds - (after.seconds - before_.seconds) + (after.busy - before_.busy);
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageTime& stage_;
  PoolTimes times_;
  ThreadPool::Times before_;
  Stopwatch watch_;
};

}  // namespace trivelet
