// What stands between two stages of a pipeline, each a thread of its own: a queue of few values in their order, with an
// end that may be an error. Whoever reads may stop early; whoever writes then hears that nobody wants more.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace trivelet {

template <class T>
class StageQueue {
 public:
  /// Holds at most `most` values.
  explicit StageQueue(std::size_t most) : most_(most) { values_.reserve(most); }

  /// Waits for room. False when the reader has stopped; the value is gone then.
  bool push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.push_back(std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Nothing comes behind what was pushed; with `error`, pop() throws it there.
  void close(std::exception_ptr error = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  /// Waits for a value; nothing at the end, or after stop().
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || closed_ || !values_.empty(); });
    return take();
  }
  /// Nothing when there is none yet, too.
  std::optional<T> try_pop() { return pop_within(std::chrono::seconds(0)); }
  /// Nothing when there is none after so long, too.
  std::optional<T> pop_within(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    if (patience.count() > 0)  // else even a wait that is over would ask the system
      changed_.wait_for(lock, patience, [this] { return stopped_ || closed_ || !values_.empty(); });
    if (values_.empty() && !error_) return std::nullopt;
    return take();
  }
  /// Wakes both sides: push() returns false, pop() nothing, and what waits here is dropped.
  void stop() {
    std::vector<T> dropped;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      dropped.swap(values_);
    }
    changed_.notify_all();
  }

 private:
  std::optional<T> take() {
    if (stopped_) return std::nullopt;
    if (values_.empty()) {
      if (error_) std::rethrow_exception(error_);
      return std::nullopt;
    }
    std::optional<T> value(std::move(values_.front()));
    values_.erase(values_.begin());
    changed_.notify_all();
    return value;
  }

  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> values_;  // few; room for all is taken at first, so that no thread lacks the memory to say its end
  std::exception_ptr error_;
  bool closed_ = false;
  bool stopped_ = false;
};

/// Between several threads, each with a value of a number, and one that takes them by their numbers.
template <class T>
class OrderedQueue {
 public:
  /// Values that are ahead of the next wait for room, so that those who put them do not run ahead.
  explicit OrderedQueue(std::size_t most) : most_(most) {}

  /// False when nobody wants more.
  bool put(std::uint64_t number, T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || number == next_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.emplace(number, std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Waits for the value of this number; numbers are asked for in order. Nothing after stop().
  std::optional<T> take(std::uint64_t number) {
    std::unique_lock lock(mutex_);
    next_ = number;
    changed_.notify_all();
    changed_.wait(lock, [&] { return stopped_ || values_.count(number) > 0; });
    if (stopped_) return std::nullopt;
    std::optional<T> value(std::move(values_.at(number)));
    values_.erase(number);
    lock.unlock();
    changed_.notify_all();
    return value;
  }
  void stop() {
    std::map<std::uint64_t, T> dropped;
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      dropped.swap(values_);
    }
    changed_.notify_all();
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, T> values_;
  std::uint64_t next_ = 0;
  bool stopped_ = false;
};

}  // namespace trivelet
