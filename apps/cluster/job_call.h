// Several processes with one command line: the first one checks whether the job can be done and calls the others, or
// sends a farewell when it has failed or ends.
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
  /// `job`: input and output by name, which are the same in all. `details`: what the first process found out.
  void call(const std::string& job, const std::vector<std::uint8_t>& details = {});

 private:
  Processes* processes_;
};

/// In the others: what they are called for.
struct CalledJob {
  std::string job;
  std::vector<std::uint8_t> details;
  /// Throws BadArgument if this process was started for another one.
  void check(const std::string& own_job) const;
};
/// Nothing when the first process has no work for them.
std::optional<CalledJob> wait_for_call(Processes& processes);
void wait_for_farewell(Processes& processes);

}  // namespace trivelet::cli
