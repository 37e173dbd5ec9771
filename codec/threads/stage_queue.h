// Queues between the stages of a pipeline, each of which runs in a thread of its own. A queue holds a few values in
// order and an end, which may be an error. The reader may stop early; push() then returns false.
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

  /// Waits for space. Returns false if the reader has stopped; the value is then dropped.
  bool push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.push_back(std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Ends the queue behind the last value. If `error` is set, pop() throws it there.
  void close(std::exception_ptr error = nullptr) {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }

  /// Waits for a value. Returns nothing at the end of the queue and after stop().
  std::optional<T> pop() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || closed_ || !values_.empty(); });
    return take();
  }
  /// Returns at once: the next value, or nothing if there is none yet.
  std::optional<T> try_pop() { return pop_within(std::chrono::seconds(0)); }
  /// Like pop(), but waits for at most `patience`.
  std::optional<T> pop_within(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    if (patience.count() > 0)  // otherwise even an expired wait would cost a system call
      changed_.wait_for(lock, patience, [this] { return stopped_ || closed_ || !values_.empty(); });
    if (values_.empty() && !error_) return std::nullopt;
    return take();
  }
  /// Wakes both sides: push() returns false and pop() returns nothing. Values in the queue are dropped.
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
  std::vector<T> values_;  // reserved in the constructor: the queue can then end without allocating
  std::exception_ptr error_;
  bool closed_ = false;
  bool stopped_ = false;
};

/// A queue that several threads fill with numbered values. One thread takes the values in the order of the numbers.
template <class T>
class OrderedQueue {
 public:
  /// put() waits while the queue holds `most` values, except for the number that the reader waits for.
  explicit OrderedQueue(std::size_t most) : most_(most) {}

  /// Returns false if the reader has stopped.
  bool put(std::uint64_t number, T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || number == next_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.emplace(number, std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Waits for the value with this number. The reader asks for the numbers in order. Returns nothing after stop().
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
