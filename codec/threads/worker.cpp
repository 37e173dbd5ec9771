// The thread sleeps on one condition variable between jobs. `busy_` is true from begin() until the job has ended, with
// or without an error.
#include "codec/threads/worker.h"

#include <system_error>
#include <utility>

#include "codec/threads/trace.h"

namespace trivelet {

namespace {

/// Runs `work` and returns what it throws, or null. `work` and all that it holds are destroyed here.
std::exception_ptr error_of(std::function<void()> work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

}  // namespace

Worker::~Worker() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Worker::begin(std::function<void()> work) {
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  hand_over(std::move(work));
}

bool Worker::try_begin(std::function<void()> work) {
  if (!start()) return false;
  hand_over(std::move(work));
  return true;
}

void Worker::begin_or_run(std::function<void()> work) {
  if (start())
    hand_over(std::move(work));
  else
    error_ = error_of(std::move(work));
}

void Worker::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !busy_; });
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

bool Worker::start() {
  if (thread_.joinable()) return true;
  try {
    thread_ = std::thread([this] { run(); });
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

void Worker::hand_over(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_ = std::move(work);
    busy_ = true;
  }
  changed_.notify_all();
}

void Worker::run() {
  trace::name_thread(name_);
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || work_; });
    if (!work_) return;
    std::function<void()> work = std::exchange(work_, nullptr);
    lock.unlock();
    std::exception_ptr error = error_of(std::move(work));
    lock.lock();
    error_ = std::move(error);
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace trivelet
