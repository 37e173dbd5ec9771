// What streams of one kind reuse: the state of finished encoders and decoders (kept_encoders.cpp, kept_decoders.cpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace trivelet {

/// Unused states by their kinds, most recently used last; any thread.
template <class State>
class KeptStates {
 public:
  explicit KeptStates(std::size_t most) : most_(most) {}

  /// The caller's from here on; nullptr if there is none of this kind.
  std::unique_ptr<State> take(const std::string& kind) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const auto& s) { return s.first == kind; });
    if (found == all_.rend()) return nullptr;
    std::unique_ptr<State> state = std::move(found->second);
    all_.erase(std::next(found).base());
    return state;
  }
  /// Drops the least recently used one if there are too many. Throws std::bad_alloc.
  void give_back(std::string kind, std::unique_ptr<State> state) {
    std::unique_ptr<State> oldest;  // destroyed without the lock
    const std::lock_guard lock(mutex_);
    all_.emplace_back(std::move(kind), std::move(state));
    if (all_.size() <= most_) return;
    oldest = std::move(all_.front().second);
    all_.erase(all_.begin());
  }

 private:
  const std::size_t most_;
  std::mutex mutex_;
  std::vector<std::pair<std::string, std::unique_ptr<State>>> all_;
};

/// A state used by one stream. The destructor returns it, unless it still has work, or an exception left it in a
/// condition that nobody knows.
template <class State>
class TakenState {
 public:
  TakenState(std::shared_ptr<KeptStates<State>> from, std::string kind, std::unique_ptr<State> state)
      : from_(std::move(from)), kind_(std::move(kind)), state_(std::move(state)) {}
  ~TakenState() {
    if (in_flight != 0 || failed_) return;
    try {
      from_->give_back(std::move(kind_), std::move(state_));
    } catch (const std::bad_alloc&) {  // it is not kept
    }
  }
  TakenState(const TakenState&) = delete;
  TakenState& operator=(const TakenState&) = delete;

  State* operator->() const { return state_.get(); }

  /// What `f` returns; remembers that it threw.
  template <class F>
  std::invoke_result_t<F> or_fail(const F& f) {
    const bool failed_before = std::exchange(failed_, true);
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      f();
      failed_ = failed_before;
    } else {
      std::invoke_result_t<F> result = f();
      failed_ = failed_before;
      return result;
    }
  }

  int in_flight = 0;  ///< GOPs that went in and did not come out

 private:
  std::shared_ptr<KeptStates<State>> from_;
  std::string kind_;
  std::unique_ptr<State> state_;
  bool failed_ = false;
};

}  // namespace trivelet
