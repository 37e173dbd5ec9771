// Processes that search one picture together: a vstc::Team by the messages of apps/cluster.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "apps/cluster/messages.h"
#include "codec/still/vstc/vstc.h"

namespace trivelet::cli {

/// The messages of a team, shared by its two halves and sorted by sender, because messages of all senders arrive in one
/// order.
class TeamMessages {
 public:
  explicit TeamMessages(Processes& processes)
      : processes_(processes), workers_(processes), arrived_(static_cast<std::size_t>(processes.size())) {}

  void send(int to, MessageWriter& message) { message.send(processes_, to, Channel::kResults); }
  /// The next message of this process. In the first process throws the error of any process, in the others Stopped.
  std::unique_ptr<MessageReader> receive(int from);
  /// Runs the work of all members. In the first process it throws the error of any of them when all have stopped; in
  /// the others it throws nothing.
  void run(const std::function<void()>& work);

 private:
  bool take_arrived();

  Processes& processes_;
  WorkerStates workers_;
  std::vector<std::deque<std::unique_ptr<MessageReader>>> arrived_;
};

/// Some processes that follow one another.
class ProcessTeam final : public vstc::Team {
 public:
  /// Of all processes.
  ProcessTeam(const Processes& processes, TeamMessages& messages)
      : ProcessTeam(messages, 0, processes.size(), processes.rank()) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Team& half() override { return *half_; }
  std::pair<std::int64_t, int> minimum(std::int64_t value, int index) override;
  void broadcast(std::vector<std::int16_t>& data, int root) override;
  void send(std::vector<std::int16_t> data, int to) override;
  std::vector<std::int16_t> receive(int from) override;

 private:
  ProcessTeam(TeamMessages& messages, int first, int size, int rank);

  TeamMessages& messages_;
  int first_;  ///< process
  int size_, rank_;
  std::unique_ptr<ProcessTeam> half_;  ///< null in a team of one
};

}  // namespace trivelet::cli
