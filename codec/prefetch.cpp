#include "codec/prefetch.h"

#include <utility>

#include "codec/stopwatch.h"

namespace trivelet {

Prefetch::Prefetch(Gop first, Gop second, Fill fill)
    : fill_(std::move(fill)), gops_{std::move(first), std::move(second)}, thread_([this] { run(); }) {}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::run() {
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stop_ || filled_ - released_ < 2; });
      if (stop_) return;
    }
    bool more = false;
    std::exception_ptr error;
    try {
      more = fill_(gops_[filled_ % 2]);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      filled_ += more ? 1 : 0;
      ended_ = !more;
      error_ = error;
    }
    changed_.notify_all();
    if (!more) return;
  }
}

const Gop* Prefetch::next() {
  std::unique_lock lock(mutex_);
  released_ = taken_;
  changed_.notify_all();
  {
    const ScopeTimer timer(waited_);
    changed_.wait(lock, [this] { return filled_ > taken_ || ended_; });
  }
  if (filled_ > taken_) return &gops_[taken_++ % 2];
  if (error_) std::rethrow_exception(error_);
  return nullptr;
}

}  // namespace trivelet
