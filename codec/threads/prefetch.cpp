// The thread fills GOPs from `free_` and pushes them to `filled_`. The caller gives a GOP back with its next call.
#include "codec/threads/prefetch.h"

#include <exception>
#include <optional>
#include <utility>

#include "codec/base/fuzzing.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"

namespace trivelet {

Prefetch::Prefetch(Make make, int most, Fill fill, bool alone)
    : make_(std::move(make)),
      fill_(std::move(fill)),
      most_(most),
      filled_(static_cast<std::size_t>(most)),
      free_(static_cast<std::size_t>(most)) {
  if (!kThreadsAhead || alone) return;
  (void)worker_.try_begin([this] { run(); });  // if the system starts no more threads, next() fills
}

Prefetch::~Prefetch() {
  filled_.stop();
  free_.stop();
}

void Prefetch::run() try {
  for (int made = 0;;) {
    std::optional<std::unique_ptr<Gop>> gop = made < most_ ? free_.try_pop() : free_.pop();
    if (!gop && made == most_) return;
    if (!gop) {
      gop = std::make_unique<Gop>(make_());
      ++made;
    }
    if (!fill_(**gop)) {
      (void)free_.push(std::move(*gop));  // freeing memory that a device reads would wait for all of the device's work
      break;
    }
    if (!filled_.push(std::move(*gop))) return;
  }
  filled_.close();
} catch (...) {
  filled_.close(std::current_exception());
}

Gop* Prefetch::next() {
  if (!worker_.has_thread()) {
    if (!used_) used_ = std::make_unique<Gop>(make_());
    return fill_(*used_) ? used_.get() : nullptr;
  }
  if (used_) (void)free_.push(std::move(used_));
  const ScopeTimer timer(waited_);
  const trace::Span span("wait");
  if (auto gop = filled_.pop()) used_ = std::move(*gop);
  return used_.get();
}

}  // namespace trivelet
