// Chooses a worker for each GOP and sends it.

#include "apps/cluster/gop_distributor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "apps/cluster/sent_frames.h"

namespace trivelet::cli {

GopDistributor::GopDistributor(Processes& processes, const PartEncoder& encoder, const Distribution& distribution,
                               GopFinder& finder, RecordWriter& records)
    : processes_(processes),
      params_(encoder.params()),
      sends_frames_(distribution.reading == Reading::kSent),
      finder_(finder),
      records_(records),
      workers_(static_cast<std::size_t>(processes.size())) {}

// Takes the next GOP to be encoded. Skips those that the journal has, unless a GOP of their run is missing: a run is
// encoded as a whole.
void GopDistributor::hold_next() {
  const std::size_t most_queued = sends_frames_ ? 1 : 4096;
  while (!held_) {
    if (!ahead_.empty()) {
      held_ = std::move(ahead_.front());
      ahead_.pop_front();
      return;
    }
    std::optional<EncodeTask> t = queued_ < most_queued ? finder_.try_pop() : std::nullopt;
    if (!t) return;
    if (t->end || t->task.run) passed_.clear();
    if (!t->end && t->task.number < records_.taken()) {
      passed_.push_back(std::move(*t));
    } else {
      ahead_ = std::exchange(passed_, {});
      ahead_.push_back(std::move(*t));
    }
  }
}

bool GopDistributor::send_queued() {
  bool sent = false;
  for (std::size_t w = 0; w < workers_.size(); ++w)
    for (WorkerQueue& q = workers_[w]; q.room > 0 && !q.tasks.empty(); q.tasks.pop_front()) {
      send(static_cast<int>(w), q.tasks.front());
      --q.room;
      --queued_;
      sent = true;
    }
  return sent;
}

void GopDistributor::send(int worker, EncodeTask& t) {
  MessageWriter m(MessageKind::kGop);
  m.number(t.task.number).number(t.task.first_frame).number(t.task.must_close).number(t.task.run);
  m.number(t.begins_scene).number(static_cast<std::uint64_t>(t.frames)).append(t.task.seed);
  if (t.samples && processes_.shares_memory(worker))
    return m.send(processes_, worker, Channel::kTasks, std::make_shared<Gop>(std::move(*t.samples)));
  m.send(processes_, worker, Channel::kTasks);
  if (t.samples) send_frames(processes_, worker, Channel::kTasks, *t.samples);
}

// Encoding does not run far ahead of writing, because the GOPs would wait in memory.
bool GopDistributor::is_far_ahead() const {
  const std::uint64_t most_ahead = 64 * (workers_.size() + 1);
  return !params_.has_byte_target() && held_->task.number > records_.next() + most_ahead;
}

// Puts the held GOP into the queue of a worker; false if it has to wait.
bool GopDistributor::assign() {
  if (is_far_ahead()) return false;
  if (held_->task.run) {
    const bool needs_seed = params_.has_byte_target() || params_.psnr > 0;
    if (held_->task.number > 0 && needs_seed && records_.seed().empty()) return false;
    held_->task.seed = records_.seed();
    const auto best = std::max_element(workers_.begin(), workers_.end(),
                                       [](const auto& a, const auto& b) { return a.left() < b.left(); });
    if (best->left() < 1) return false;
    current_ = static_cast<std::size_t>(best - workers_.begin());
  }
  workers_[current_].tasks.push_back(std::move(*held_));
  held_.reset();
  ++queued_;
  return true;
}

bool GopDistributor::send() {
  for (bool any = false;; any = true) {
    any = send_queued() || any;
    hold_next();
    if (!held_) return any;
    if (held_->end) {
      if (finished_ || queued_ > 0 || (params_.has_byte_target() && !records_.send_budgets(held_->task.number)))
        return any;
      finish();
      return true;
    }
    if (!assign()) return any;
  }
}

void GopDistributor::finish() {
  if (!std::exchange(finished_, true)) MessageWriter(MessageKind::kFinish).send_to_all(processes_, Channel::kTasks);
}

}  // namespace trivelet::cli
