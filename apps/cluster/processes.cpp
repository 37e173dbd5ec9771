// Processes without MPI: threads that work as processes, the environment of launchers, and waiting.

#include "apps/cluster/processes.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <thread>
#include <utility>

#include "apps/cli/modules.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

/// The first of these variables that is set in the environment.
int number_in(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* text = std::getenv(name); text && *text) return std::atoi(text);
  return otherwise;
}

class ThreadProcess final : public Processes {
 public:
  using Group = std::vector<ThreadProcess*>;
  ThreadProcess(int rank, std::shared_ptr<Group> group) : rank_(rank), group_(std::move(group)) {}

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->size()); }
  bool shares_memory(int) const override { return true; }

 private:
  void send_away(int to, Channel channel, Message message) override {
    (*group_)[static_cast<std::size_t>(to)]->keep(channel, std::move(message));
  }
  std::optional<Message> receive_from_others(Channel) override { return std::nullopt; }

  int rank_;
  std::shared_ptr<Group> group_;
};

}  // namespace

std::vector<std::unique_ptr<Processes>> thread_processes(int count) {
  const auto group = std::make_shared<ThreadProcess::Group>();
  std::vector<std::unique_ptr<Processes>> all;
  for (int i = 0; i < count; ++i) {
    auto one = std::make_unique<ThreadProcess>(i, group);
    group->push_back(one.get());
    all.push_back(std::move(one));
  }
  return all;
}

void Processes::keep(Channel channel, Message message) {
  const std::lock_guard lock(mutex_);
  kept_[channel].push_back(std::move(message));
}

void Processes::send(int to, Channel channel, std::vector<std::uint8_t> bytes, std::shared_ptr<void> object) {
  Message message{rank(), std::move(bytes), std::move(object)};
  if (to == rank()) return keep(channel, std::move(message));
  send_away(to, channel, std::move(message));
}

std::optional<Processes::Message> Processes::try_receive(Channel channel) {
  {
    const std::lock_guard lock(mutex_);
    if (std::deque<Message>& messages = kept_[channel]; !messages.empty()) {
      Message first = std::move(messages.front());
      messages.pop_front();
      return first;
    }
  }
  return receive_from_others(channel);
}

Processes::Message Processes::receive(Channel channel) {
  Backoff backoff;
  for (;;) {
    if (std::optional<Message> message = try_receive(channel)) return std::move(*message);
    backoff.wait();
  }
}

void Backoff::wait() {
  if (left_ > 0) {
    --left_;
    return std::this_thread::yield();
  }
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongest);
}

// Variables of Open MPI, then of MPICH and of Slurm. A batch script of Slurm is one process, whatever SLURM_NTASKS is.
Place place_of_process() {
  Place p;
  p.size =
      number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}, std::getenv("PMIX_RANK") ? number_in({"SLURM_NTASKS"}, 2) : 1);
  if (p.size < 2) return {};
  p.rank = number_in({"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, 0);
  p.local_rank = number_in({"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"}, 0);
  p.local_size = std::max(1, number_in({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}, 1));
  return p;
}

std::unique_ptr<Processes> start_processes(const std::string& user) {
  if (place_of_process().size < 2) return nullptr;
  const auto* mpi = static_cast<const MpiAdapter*>(load_module("mpi", user));
  require(mpi, ErrorKind::kUnsupported,
          user + ": started by mpirun, but this build has no MPI; configure with TRIVELET_MPI=ON");
  return mpi->start_processes();
}

}  // namespace trivelet::cli
