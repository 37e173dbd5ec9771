// A small thread pool: parallel_for over independent indices. Results never depend on the number of threads.
#pragma once

#include <functional>
#include <memory>

#include "trivelet/parameters.h"

namespace trivelet {

/// Threads that wait for work. Only one parallel_for may run at a time; its calling thread takes part as worker 0.
class ThreadPool {
 public:
  /// `threads`: the number of threads, the caller included; 0 = one per core of the machine. The pool has fewer if the
  /// system starts no more. Throws BadArgument above 1024 or below 0. With a runner in `workers` the pool starts no
  /// threads and gives the runner that many tasks.
  explicit ThreadPool(int threads, const Workers& workers = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// The time spent in parallel_for so far: wall clock, and the sum over all threads.
  struct Times {
    double seconds = 0;
    double busy = 0;
  };
  Times times() const;

  /// Calls body(index, worker) once for every index in [0, count), with worker in [0, threads()), and returns when all
  /// calls have ended. Rethrows the first exception of a body or of the check in `workers`; indices that were not
  /// started are then dropped.
  void parallel_for(int count, const std::function<void(int index, int worker)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
