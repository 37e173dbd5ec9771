// The processes, or the threads with a GPU each, that run one command together.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cluster/job_call.h"
#include "apps/cluster/processes.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

/// For all processes but the first: removes the first one's temporary output if that one is killed.
void remove_when_first_dies(Processes& helping, const std::string& output);

/// The processes that mpirun started, or threads with a GPU each if --device names several, or this process alone. Sets
/// `device` and `common` to those of this process.
class WorkerGroup {
 public:
  /// The work of all but the first. `processes`: their end of the messages.
  using Help = std::function<void(Processes& processes, const std::string& device, const Common& common)>;
  WorkerGroup(const std::string& command, std::string& device, Common& common, const Help& help);
  /// Sends kFarewell and waits for threads. Prints the warnings of other processes, each once.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  bool helped() const { return helped_; }              ///< this process is not the first, and has finished its work
  Processes* processes() { return processes_.get(); }  ///< null: this process is alone
  bool threads() const { return !threads_.empty(); }
  /// The name of its members: "processes", "GPUs".
  const char* members() const { return threads() ? "GPUs" : "processes"; }
  /// Calls the others, if there are any.
  void call(const std::string& job, const std::vector<std::uint8_t>& details = {}) {
    if (job_call_) job_call_->call(job, details);
  }

 private:
  bool helped_ = false;
  std::unique_ptr<Processes> processes_;
  std::vector<std::unique_ptr<Processes>> ends_;  ///< of the threads
  std::list<Worker> threads_;
  std::unique_ptr<JobCall> job_call_;
};

}  // namespace trivelet::cli
