// Divides frames into parts, runs one part in each process, and collects the results.

#include "apps/cluster/parts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/cluster/messages.h"

namespace trivelet::cli {

namespace {

class OwnPace final : public Pace {
 public:
  explicit OwnPace(Processes& processes) : processes_(processes) {}

  void done(std::uint64_t frames) override {
    MessageWriter(MessageKind::kProgress).number(frames).send(processes_, 0, Channel::kResults);
    if (std::optional<Processes::Message> m = processes_.try_receive(Channel::kTasks)) obey(std::move(*m));
  }
  std::uint64_t sum_before(std::uint64_t count) override {
    MessageWriter(MessageKind::kCount).number(count).send(processes_, 0, Channel::kResults);
    return obey(processes_.receive(Channel::kTasks));
  }

 private:
  static std::uint64_t obey(Processes::Message m) {
    MessageReader order(std::move(m));
    if (order.kind() == MessageKind::kStop) throw Stopped();
    return order.number();
  }

  Processes& processes_;
};

/// The first process, which receives the results of all others.
class Gatherer final : public Pace {
 public:
  Gatherer(Processes& processes, const std::function<void(std::uint64_t)>& frames)
      : processes_(processes),
        frames_(frames),
        parts_(static_cast<std::size_t>(processes.size())),
        workers_(processes) {}

  void done(std::uint64_t frames) override {
    count(frames);
    hear();
  }
  std::uint64_t sum_before(std::uint64_t count) override {
    parts_[0].count = count;
    Backoff backoff;
    while (!std::all_of(parts_.begin(), parts_.end(), [](const Part& p) { return p.count.has_value(); }))
      hear() ? backoff.reset() : backoff.wait();
    std::uint64_t before = count;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      MessageWriter(MessageKind::kSumBefore).number(before).send(processes_, static_cast<int>(i), Channel::kTasks);
      before += *parts_[i].count;
    }
    return 0;
  }

  std::vector<std::vector<std::uint8_t>> run(const PartWork& own) {
    workers_.lead([&] { parts_[0].found = own(*this); }, [&] { return hear(); }, Channel::kTasks);
    std::vector<std::vector<std::uint8_t>> found;
    for (Part& p : parts_) found.push_back(std::move(p.found));
    return found;
  }

 private:
  struct Part {
    std::optional<std::uint64_t> count;
    std::vector<std::uint8_t> found;
  };

  void count(std::uint64_t frames) {
    all_frames_ += frames;
    if (frames_) frames_(all_frames_);
  }

  bool hear() {
    bool heard = false;
    while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kResults)) {
      heard = true;
      MessageReader message(std::move(*m));
      if (!workers_.take(message)) continue;
      Part& part = parts_.at(static_cast<std::size_t>(message.from()));
      if (message.kind() == MessageKind::kProgress) count(message.number());
      if (message.kind() == MessageKind::kCount) part.count = message.number();
      if (message.kind() == MessageKind::kResult) part.found = message.rest();
    }
    return heard;
  }

  Processes& processes_;
  const std::function<void(std::uint64_t)>& frames_;
  std::vector<Part> parts_;
  WorkerStates workers_;
  std::uint64_t all_frames_ = 0;
};

}  // namespace

std::vector<std::vector<std::uint8_t>> do_parts(Processes& processes, const PartWork& own,
                                                const std::function<void(std::uint64_t)>& frames) {
  return Gatherer(processes, frames).run(own);
}

void do_part(Processes& processes, const PartWork& work) {
  run_and_report(processes, Channel::kResults, [&] {
    OwnPace pace(processes);
    MessageWriter(MessageKind::kResult).append(work(pace)).send(processes, 0, Channel::kResults);
  });
  MessageWriter(MessageKind::kEnded).send(processes, 0, Channel::kResults);
}

std::vector<std::uint64_t> part_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end,
                                        int parts) {
  const std::uint64_t last =
      gops.empty() ? 0 : gops.back().first_frame + static_cast<std::uint64_t>(gops.back().frames);
  const std::uint64_t frames = std::max(first, std::min(end, last)) - first;
  std::vector<std::uint64_t> borders = {first};
  auto gop = gops.begin();
  for (int i = 1; i < parts; ++i) {
    const std::uint64_t ideal =
        first + frames / static_cast<std::uint64_t>(parts) * static_cast<std::uint64_t>(i) +
        frames % static_cast<std::uint64_t>(parts) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(parts);
    gop = std::find_if(gop, gops.end(),
                       [&](const GopInfo& g) { return g.key != GopKey::kOpen && g.first_frame >= ideal; });
    borders.push_back(gop == gops.end() ? end : std::clamp(gop->first_frame, first, end));
  }
  borders.push_back(end);
  return borders;
}

}  // namespace trivelet::cli
