// A small thread pool: parallel_for over independent indices. Results never depend on the number of threads.
#pragma once

#include <functional>
#include <memory>

#include "trivelet/parameters.h"

namespace trivelet {

/// Threads that wait for work. One parallel_for at a time; the calling thread takes part as worker 0.
class ThreadPool {
 public:
  /// `threads` in all, the caller included; 0 = one per core of the machine; fewer where the system starts no more.
  /// Throws BadArgument above 1024 or below 0.
  /// With a runner in `workers` the pool starts no threads and gives the runner that many tasks.
  explicit ThreadPool(int threads, const Workers& workers = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// The time that parallel_for took so far: wall clock, and the sum over all threads.
  struct Times {
    double seconds = 0;
    double busy = 0;
  };
  Times times() const;

  /// Calls body(index, worker) once for every index in [0, count), worker in [0, threads()). Returns when all are done.
  /// The first exception thrown by a body, or by the check of the workers, is rethrown here; indices not yet started
  /// are then dropped.
  void parallel_for(int count, const std::function<void(int index, int worker)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trivelet
