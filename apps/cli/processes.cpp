#include "apps/cli/processes.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <initializer_list>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "apps/cli/modules.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

/// The first of these that the environment has.
int number_in(std::initializer_list<const char*> names, int otherwise) {
  for (const char* name : names)
    if (const char* text = std::getenv(name); text && *text) return std::atoi(text);
  return otherwise;
}

class OneProcess final : public Processes {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void send(int, int channel, const std::vector<std::uint8_t>& bytes) override {
    const std::lock_guard lock(mutex_);
    channels_[channel].push_back({0, bytes});
  }
  std::optional<Message> try_receive(int channel) override {
    const std::lock_guard lock(mutex_);
    std::deque<Message>& messages = channels_[channel];
    if (messages.empty()) return std::nullopt;
    Message first = std::move(messages.front());
    messages.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::map<int, std::deque<Message>> channels_;
};

}  // namespace

std::unique_ptr<Processes> one_process() { return std::make_unique<OneProcess>(); }

Processes::Message Processes::receive(int channel) {
  Patience patience;
  for (;;) {
    if (std::optional<Message> message = try_receive(channel)) return std::move(*message);
    patience.wait();
  }
}

void Patience::wait() {
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(2 * pause_, kLongest);
}

// Open MPI, then those of MPICH and of Slurm. A batch script of Slurm is one process, whatever SLURM_NTASKS says.
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

const MpiAdapter* mpi_adapter(const std::string& user) {
  if (place_of_process().size < 2) return nullptr;
  const auto* mpi = static_cast<const MpiAdapter*>(load_module("mpi", user));
  require(mpi, ErrorKind::kUnsupported,
          user + ": started by mpirun, but this build has no MPI; configure with TRIVELET_MPI=ON");
  return mpi;
}

std::unique_ptr<Processes> start_processes(const std::string& user) {
  const MpiAdapter* mpi = mpi_adapter(user);
  return mpi ? mpi->start_processes() : nullptr;
}

}  // namespace trivelet::cli
