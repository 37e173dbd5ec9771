// A thread that runs one thing after another, or one thing once, for its owner. What is thrown there is thrown again
// where the owner waits.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace trivelet {

/// One thread uses it, its owner. The thread is started with the first work.
class Worker {
 public:
  /// `name`: of the thread, in traces; a literal.
  explicit Worker(const char* name) : name_(name) {}
  /// Waits until the work that was begun is done, and drops what it throws.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Begins to run `work` in the thread; the work before it has been waited for. Throws std::system_error where the
  /// system starts no more threads.
  void begin(std::function<void()> work);
  /// The same, but false where the system starts no more threads; `work` is dropped then.
  [[nodiscard]] bool try_begin(std::function<void()> work);
  /// The same, but the calling thread runs `work` where the system starts no more threads.
  void begin_or_run(std::function<void()> work);
  /// Whether there is a thread: some work was begun in it.
  bool has_thread() const { return thread_.joinable(); }

  /// Returns when the work that was begun is done, at once if there is none. Throws what it threw, once.
  void wait();

 private:
  bool start();
  void hand_over(std::function<void()> work);
  void run();

  const char* name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::function<void()> work_;  ///< that was begun; taken by the thread
  bool busy_ = false;           ///< from its beginning to its end
  bool stop_ = false;
  std::exception_ptr error_;  ///< of the work that is done
  std::thread thread_;        ///< last: it uses the others
};

}  // namespace trivelet
