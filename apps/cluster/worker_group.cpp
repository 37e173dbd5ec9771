// Starts and ends the group of processes, or of threads with a GPU each, and collects their warnings.

#include "apps/cluster/worker_group.h"

#include <algorithm>
#include <thread>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cluster/messages.h"
#include "codec/base/temporaries.h"
#include "trivelet/error.h"

namespace trivelet::cli {

void remove_when_first_dies(Processes& helping, const std::string& output) {
  if (helping.rank() > 0 && place_of_process().rank > 0 && output != "-") remove_with_temporaries(output);
}

namespace {

/// MPI buffers a message of this many warnings, so that a process can end whether or not it is received.
constexpr std::size_t kMostWarnings = 16;

void send_warnings(Processes& processes) {
  std::vector<std::string> warnings = log::warnings();
  warnings.resize(std::min(warnings.size(), kMostWarnings));
  MessageWriter message(MessageKind::kWarnings);
  message.number(warnings.size());
  for (const std::string& warning : warnings) message.text(warning);
  message.send(processes, 0, Channel::kWarnings);
}

void say_warnings_of_others(Processes& processes) {
  for (int i = 1; i < processes.size(); ++i) {
    MessageReader message(processes.receive(Channel::kWarnings));
    for (std::uint64_t left = message.number(); left > 0; --left) log::warn("{}", message.text());
  }
}

}  // namespace

WorkerGroup::WorkerGroup(const std::string& command, std::string& device, Common& common, const Help& help)
    : processes_(start_processes(command)) {
  if (processes_) {
    const Place place = place_of_process();
    common.threads = threads_of_process(place, common.threads);
    helped_ = processes_->rank() > 0;
    if (!helped_) job_call_ = std::make_unique<JobCall>(processes_.get());
    try {
      device = device_of_process(place, device);
    } catch (const Error&) {  // the first process says it
      if (!helped_) throw;
    }
    log::debug("process {} of {}, number {} of its host: --device {}, {}", place.rank, place.size, place.local_rank,
               device, count_of(static_cast<std::uint64_t>(common.threads), "thread"));
    if (!helped_) return;
    log::set_level(log::Level::kError);
    try {
      help(*processes_, device, common);
    } catch (...) {
      send_warnings(*processes_);
      throw;
    }
    send_warnings(*processes_);
  } else if (const std::vector<std::string> devices = devices_named(device); devices.size() > 1) {
    const int threads = common.threads > 0 ? common.threads : static_cast<int>(std::thread::hardware_concurrency());
    common.threads = std::max(1, threads / static_cast<int>(devices.size()));
    device = devices.front();
    ends_ = thread_processes(static_cast<int>(devices.size()));
    for (std::size_t i = 0; i < ends_.size(); ++i) ends_[i]->at_work = [name = devices[i]] { stay_near(name); };
    processes_ = std::move(ends_.front());
    for (std::size_t i = 1; i < devices.size(); ++i)
      threads_.emplace_back("process").begin([end = ends_[i].get(), name = devices[i], common, help] {
        end->at_work();
        help(*end, name, common);
      });
    job_call_ = std::make_unique<JobCall>(processes_.get());
  } else {
    device = devices.front();
  }
}

WorkerGroup::~WorkerGroup() {
  const bool leads_processes = job_call_ && !threads() && processes_;
  job_call_.reset();
  threads_.clear();
  if (!leads_processes) return;
  try {
    say_warnings_of_others(*processes_);
  } catch (const std::exception&) {  // no memory for the texts
  }
}

}  // namespace trivelet::cli
