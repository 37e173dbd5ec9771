// A thread that runs one job after another for its owner. wait() rethrows the exception of a job.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace trivelet {

/// Only the owner's thread may call it. The thread starts with the first job.
class Worker {
 public:
  /// `name`: the name of the thread in traces; a literal.
  explicit Worker(const char* name) : name_(name) {}
  /// Waits for the running job, and drops what it throws.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Starts `work` in the thread. The owner must have waited for the previous job. Throws std::system_error if the
  /// system starts no more threads.
  void begin(std::function<void()> work);
  /// The same, but returns false if the system starts no more threads; `work` is then dropped.
  [[nodiscard]] bool try_begin(std::function<void()> work);
  /// The same, but the calling thread runs `work` if the system starts no more threads.
  void begin_or_run(std::function<void()> work);
  /// Whether the thread was started.
  bool has_thread() const { return thread_.joinable(); }

  /// Waits for the running job, if there is one. Throws what the job threw, once.
  void wait();

 private:
  bool start();
  void hand_over(std::function<void()> work);
  void run();

  const char* name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  ///< the next job, which the thread takes
  bool busy_ = false;           ///< a job was started and has not ended
  bool stop_ = false;
  std::exception_ptr error_;  ///< thrown by the last job
  std::thread thread_;        ///< last: it uses the other members
};

}  // namespace trivelet
