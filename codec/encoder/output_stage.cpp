// Queues and threads of the output stage (output_stage.h).
#include "codec/encoder/output_stage.h"

#include <utility>

#include "codec/threads/trace.h"

namespace trivelet {

OutputStage::OutputStage(int threads, int outstanding, Step divide, Step write)
    : divide_(std::move(divide)),
      write_(std::move(write)),
      divided_(static_cast<std::size_t>(threads)),
      work_(static_cast<std::size_t>(outstanding)),
      done_(static_cast<std::size_t>(outstanding) + 1) {
  try {
    for (int i = 0; i < threads; ++i) workers_.emplace_back("layers and chunks").begin([this] { run_divide(); });
    workers_.emplace_back("write").begin([this] { run_write(); });
  } catch (...) {
    stop();
    throw;
  }
}

OutputStage::~OutputStage() { stop(); }

void OutputStage::stop() {
  work_.stop();
  done_.stop();
  divided_.stop();
  workers_.clear();
}

void OutputStage::run_divide() {
  while (std::optional<GopWork> work = work_.pop()) {
    try {
      divide_(*work);
    } catch (...) {
      work->error = std::current_exception();
    }
    const std::uint64_t number = work->number;
    if (!divided_.put(number, std::move(*work))) return;
  }
}

void OutputStage::run_write() try {
  for (std::uint64_t next = 0; std::optional<GopWork> work = divided_.take(next); ++next) {
    if (work->error) std::rethrow_exception(work->error);
    write_(*work);
    if (!done_.push(std::move(*work))) return;
  }
} catch (...) {
  work_.stop();
  divided_.stop();
  done_.close(std::current_exception());
}

void OutputStage::finish() {
  wait(0);
  work_.stop();
  divided_.stop();
  workers_.clear();
}

void OutputStage::hand_over(GopWork work) {
  work.number = handed_over_++;
  ++unfinished_;
  (void)work_.push(std::move(work));
}

void OutputStage::wait(std::size_t unfinished) {
  const trace::Span span("wait for layers");
  for (;;) {
    std::optional<GopWork> done = unfinished_ > unfinished ? done_.pop() : done_.try_pop();
    if (!done) return;
    --unfinished_;
    used_.push_back(std::move(*done));
  }
}

GopWork OutputStage::used() {
  if (used_.empty()) return {};
  GopWork work = std::move(used_.back());
  used_.pop_back();
  return work;
}

}  // namespace trivelet
