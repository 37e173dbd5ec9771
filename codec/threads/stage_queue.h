// The queue between two stages of a pipeline, each in a thread of its own: a few values in order, and an end, which may
// be an error. The reader may stop early; the writer is then told to stop.
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

  /// Waits for space. False if the reader has stopped; the value is then dropped.
  bool push(T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.push_back(std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Ends the queue behind the last value; pop() throws `error` there, if it is set.
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
  /// Returns at once; nothing if there is no value yet.
  std::optional<T> try_pop() { return pop_within(std::chrono::seconds(0)); }
  /// Waits at most `patience`.
  std::optional<T> pop_within(std::chrono::microseconds patience) {
    std::unique_lock lock(mutex_);
    if (patience.count() > 0)  // else even a wait that is over would ask the system
      changed_.wait_for(lock, patience, [this] { return stopped_ || closed_ || !values_.empty(); });
    if (values_.empty() && !error_) return std::nullopt;
    return take();
  }
  /// Wakes both sides: push() returns false, pop() nothing. Values in the queue are dropped.
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
  std::vector<T> values_;  // reserved at first, so that ending the queue never needs memory
  std::exception_ptr error_;
  bool closed_ = false;
  bool stopped_ = false;
};

/// A queue that several threads fill with numbered values, and one thread empties in the order of the numbers.
template <class T>
class OrderedQueue {
 public:
  /// A value that is far ahead of the next number waits for space, so that no writer runs ahead.
  explicit OrderedQueue(std::size_t most) : most_(most) {}

  /// False if the reader has stopped.
  bool put(std::uint64_t number, T value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || number == next_ || values_.size() < most_; });
    if (stopped_) return false;
    values_.emplace(number, std::move(value));
    lock.unlock();
    changed_.notify_all();
    return true;
  }
  /// Waits for the value of this number. The reader asks for numbers in order. Nothing after stop().
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
