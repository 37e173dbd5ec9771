// What a stage of the work takes: by the clock, and of all threads together.
#pragma once

#include <utility>

#include "codec/threads/parallel.h"
#include "codec/threads/stopwatch.h"
#include "trivelet/codec.h"

namespace trivelet {

/// Adds a scope to a stage. `times()` are those of the pools that the scope uses; what it does outside of them is done
/// by one thread.
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

/// Time that was waited for GOPs in lanes (gop_lanes.h), to their two stages in proportion to what threads did in each.
inline std::pair<StageTime, StageTime> shared_out(double seconds, double busy_transform, double busy_coder) {
  const double busy = busy_transform + busy_coder;
  const double part = busy > 0 ? busy_transform / busy : 0;
  return {{part * seconds, busy_transform}, {(1 - part) * seconds, busy_coder}};
}

}  // namespace trivelet
