// Who does a command together.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cluster/processes.h"
#include "apps/cluster/job_call.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

/// Of a process that helps: what the first one was writing to `output` goes with this one if the first one was killed.
void remove_when_first_dies(Processes& helping, const std::string& output);

/// The processes that mpirun started, or, where --device names several GPUs, threads with one
/// each; or this process alone. `device` and `common` become what is this one's.
class Crew {
 public:
  /// What all do but the first, with their end of the messages.
  using Help = std::function<void(Processes& processes, const std::string& device, const Common& common)>;
  Crew(const std::string& command, std::string& device, Common& common, const Help& help);
  /// The others may end, and threads are waited for.
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool helped() const { return helped_; }              ///< this process was not the first, and is done
  Processes* processes() { return processes_.get(); }  ///< null: there are no others
  bool threads() const { return !threads_.empty(); }
  /// What the others are: "processes", "GPUs".
  const char* members() const { return threads() ? "GPUs" : "processes"; }
  /// Begins what they help with, if there are any.
  void call(const std::string& job, const std::vector<std::uint8_t>& along = {}) {
    if (summons_) summons_->call(job, along);
  }

 private:
  bool helped_ = false;
  std::unique_ptr<Processes> processes_;
  std::vector<std::unique_ptr<Processes>> ends_;  ///< of the threads
  std::list<Worker> threads_;
  std::unique_ptr<Summons> summons_;
};

}  // namespace trivelet::cli
