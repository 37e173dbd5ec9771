// Measures the time of a stage: wall clock, and the sum over all threads.
#pragma once

#include <utility>

#include "codec/threads/parallel.h"
#include "codec/threads/stopwatch.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Adds the time of a scope to a stage. `times()` returns the times of the pools that the scope uses. Outside of the
/// pools one thread works.
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

/// Divides the time spent waiting for GOPs in lanes (gop_lanes.h) between their two stages, in proportion to the work
/// of their threads.
inline std::pair<StageTime, StageTime> shared_out(double seconds, double busy_transform, double busy_coder) {
  const double busy = busy_transform + busy_coder;
  const double part = busy > 0 ? busy_transform / busy : 0;
  return {{part * seconds, busy_transform}, {(1 - part) * seconds, busy_coder}};
}

}  // namespace trivelet
