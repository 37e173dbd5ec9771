// Several processes with one command line: the first one looks whether the job can be done, and calls the others; or
// tells them that there is nothing to do, when it has failed or ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cluster/processes.h"

namespace trivelet::cli {

/// In the first process: what the others wait for until it ends.
class Summons {
 public:
  /// `processes`: null if there are no others.
  explicit Summons(Processes* processes) : processes_(processes) {}
  ~Summons();
  Summons(const Summons&) = delete;
  Summons& operator=(const Summons&) = delete;
  /// `job`: what is the same in all, input and output by name.
  void call(const std::string& job, const std::vector<std::uint8_t>& along = {});

 private:
  Processes* processes_;
};

/// In the others.
struct Call {
  std::string job;
  std::vector<std::uint8_t> along;
  /// Throws BadArgument if this process was started for another one.
  void check(const std::string& own_job) const;
};
/// Nothing when the first process has nothing to do.
std::optional<Call> wait_for_call(Processes& processes);
void wait_for_farewell(Processes& processes);

}  // namespace trivelet::cli
