// The messages of processes that search one picture together.

#include "apps/still/team.h"

#include <optional>

namespace trivelet::cli {

namespace {

// Costs of a block are compared within microseconds, which a sleep would lengthen several times.
constexpr int kYields = 1000;

}  // namespace

bool TeamMessages::take_arrived() {
  bool any = false;
  while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kResults)) {
    any = true;
    auto message = std::make_unique<MessageReader>(std::move(*m));
    if (message->kind() == MessageKind::kStop) throw Stopped();
    if (workers_.take(*message) && message->kind() != MessageKind::kEnded)
      arrived_[static_cast<std::size_t>(message->from())].push_back(std::move(message));
  }
  return any;
}

std::unique_ptr<MessageReader> TeamMessages::receive(int from) {
  auto& messages = arrived_[static_cast<std::size_t>(from)];
  for (Backoff backoff(kYields); messages.empty(); backoff.wait()) (void)take_arrived();
  std::unique_ptr<MessageReader> first = std::move(messages.front());
  messages.pop_front();
  return first;
}

void TeamMessages::run(const std::function<void()>& work) {
  if (processes_.rank() == 0)
    return workers_.lead(
        work, [this] { return take_arrived(); }, Channel::kResults);
  run_and_report(processes_, Channel::kResults, work);
  MessageWriter(MessageKind::kEnded).send(processes_, 0, Channel::kResults);
}

ProcessTeam::ProcessTeam(TeamMessages& messages, int first, int size, int rank)
    : messages_(messages), first_(first), size_(size), rank_(rank) {
  if (size < 2) return;
  const int low = size / 2;
  half_.reset(rank < low ? new ProcessTeam(messages, first, low, rank)
                         : new ProcessTeam(messages, first + low, size - low, rank - low));
}

std::pair<std::int64_t, int> ProcessTeam::minimum(std::int64_t value, int index) {
  std::pair<std::int64_t, int> least{value, index};
  const auto send_to = [&](int member) {
    MessageWriter m(MessageKind::kCost);
    m.signed_number(least.first).signed_number(least.second);
    messages_.send(first_ + member, m);
  };
  const auto receive_from = [&](int member) {
    const std::unique_ptr<MessageReader> m = messages_.receive(first_ + member);
    const std::int64_t cost = m->signed_number();
    return std::pair<std::int64_t, int>{cost, static_cast<int>(m->signed_number())};
  };
  if (rank_ > 0) {
    send_to(0);
    return receive_from(0);
  }
  for (int i = 1; i < size_; ++i) least = std::min(least, receive_from(i));
  for (int i = 1; i < size_; ++i) send_to(i);
  return least;
}

void ProcessTeam::broadcast(std::vector<std::int16_t>& data, int root) {
  if (rank_ != root) {
    data = receive(root);
    return;
  }
  for (int i = 0; i < size_; ++i)
    if (i != root) send(data, i);
}

void ProcessTeam::send(std::vector<std::int16_t> data, int to) {
  MessageWriter m(MessageKind::kSamples);
  m.append(data.data(), data.size() * sizeof(std::int16_t));
  messages_.send(first_ + to, m);
}

std::vector<std::int16_t> ProcessTeam::receive(int from) {
  const std::unique_ptr<MessageReader> m = messages_.receive(first_ + from);
  std::vector<std::int16_t> data(m->left() / sizeof(std::int16_t));
  m->read(data.data(), data.size() * sizeof(std::int16_t));
  return data;
}

}  // namespace trivelet::cli
