// The threads of a pool sleep on one condition variable. A call raises `generation`, and every thread that wakes takes
// indices from one atomic counter, so that long and short bodies balance by themselves.
#include "codec/threads/parallel.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "codec/threads/stopwatch.h"
#include "trivelet/error.h"

namespace trivelet {

struct ThreadPool::State {
  Workers given;
  int tasks = 0;  // for the runner of `given`
  std::vector<std::thread> workers;
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  const std::function<void(int, int)>* body = nullptr;
  std::atomic<int> next{0};
  int count = 0;
  int running = 0;    // workers that take part in this call and have not returned
  bool open = false;  // workers may join; the call does not wait for workers that have not joined
  unsigned long long generation = 0;
  bool stop = false;
  // The first exception that a body or a check threw.
  std::exception_ptr error;
  double seconds = 0;  // wall clock
  double busy = 0;     // sum over all threads

  void drain(int worker) {
    const Stopwatch watch;
    for (int i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        if (given.check) given.check();
        (*body)(i, worker);
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        next.store(count);
      }
    }
    const double worked = watch.seconds();
    std::lock_guard lock(mutex);
    busy += worked;
  }

  void join() {
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    wake.notify_all();
    for (auto& w : workers) w.join();
  }

  void run(int worker) {
    unsigned long long seen = 0;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || generation != seen; });
      if (stop) return;
      seen = generation;
      if (!open) continue;
      ++running;
      lock.unlock();
      drain(worker);
      lock.lock();
      if (--running == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads, const Workers& workers) : state_(std::make_unique<State>()) {
  require(threads >= 0 && threads <= 1024, ErrorKind::kBadArgument,
          "threads must be 0 (all cores) to 1024, not " + std::to_string(threads));
  if (threads == 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  state_->given = workers;
  if (workers.run) {
    state_->tasks = threads;
    return;
  }
  try {
    state_->workers.reserve(static_cast<std::size_t>(threads) - 1);
    for (int i = 1; i < threads; ++i) state_->workers.emplace_back([s = state_.get(), i] { s->run(i); });
  } catch (
      const std::system_error&) {  // the system has no more threads, or no memory for their stacks: those there are
  } catch (...) {
    state_->join();
    throw;
  }
}

ThreadPool::~ThreadPool() { state_->join(); }

int ThreadPool::threads() const {
  return state_->tasks > 0 ? state_->tasks : static_cast<int>(state_->workers.size()) + 1;
}

ThreadPool::Times ThreadPool::times() const { return {state_->seconds, state_->busy}; }

void ThreadPool::parallel_for(int count, const std::function<void(int, int)>& body) {
  State& s = *state_;
  const ScopeTimer timer(s.seconds);
  if (threads() == 1 || count <= 1) {
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) {
      if (s.given.check) s.given.check();
      body(i, 0);
    }
    s.busy += watch.seconds();
    return;
  }
  if (s.tasks > 0) {
    s.body = &body;
    s.count = count;
    s.next.store(0);
    s.error = nullptr;
    s.given.run(std::min(s.tasks, count), [&s](int task) { s.drain(task); });
    if (s.error) std::rethrow_exception(s.error);
    return;
  }
  {
    std::lock_guard lock(s.mutex);
    s.body = &body;
    s.count = count;
    s.next.store(0);
    s.error = nullptr;
    s.open = true;
    ++s.generation;
  }
  s.wake.notify_all();
  s.drain(0);
  std::unique_lock lock(s.mutex);
  s.open = false;
  s.done.wait(lock, [&] { return s.running == 0; });
  if (s.error) std::rethrow_exception(s.error);
}

}  // namespace trivelet
