// Several processes with one command line: the first one checks whether the job is possible and calls the others, or
// sends kFarewell when it fails or ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cluster/processes.h"

namespace trivelet::cli {

/// In the first process: calls the others, which wait until this is destroyed.
class JobCall {
 public:
  /// `processes`: null if there is one process only.
  explicit JobCall(Processes* processes) : processes_(processes) {}
  ~JobCall();
  JobCall(const JobCall&) = delete;
  JobCall& operator=(const JobCall&) = delete;
  /// `job`: the names of input and output, which are equal in all processes. `details`: results of the first process's
  /// checks.
  void call(const std::string& job, const std::vector<std::uint8_t>& details = {});

 private:
  Processes* processes_;
};

/// The call that the other processes receive.
struct CalledJob {
  std::string job;
  std::vector<std::uint8_t> details;
  /// Throws BadArgument if this process was started for another job.
  void check(const std::string& own_job) const;
};
/// Empty if the first process has no work for them.
std::optional<CalledJob> wait_for_call(Processes& processes);
void wait_for_farewell(Processes& processes);

}  // namespace trivelet::cli
