// Sends and receives the call to a job.

#include "apps/cluster/job_call.h"

#include "apps/cluster/messages.h"
#include "codec/base/stream_header.h"
#include "trivelet/error.h"

namespace trivelet::cli {

JobCall::~JobCall() {
  if (processes_) MessageWriter(MessageKind::kFarewell).send_to_all(*processes_, Channel::kCalls, 1);
}

void JobCall::call(const std::string& job, const std::vector<std::uint8_t>& details) {
  if (processes_)
    MessageWriter(MessageKind::kCall).text(job).append(details).send_to_all(*processes_, Channel::kCalls, 1);
}

void CalledJob::check(const std::string& own_job) const {
  require(
      own_job.substr(0, kMaxTextBytes) == job, ErrorKind::kBadArgument,
      "was started with another input or output, but all processes make one stream; for separate streams start them "
      "without MPI");
}

std::optional<CalledJob> wait_for_call(Processes& processes) {
  MessageReader message(processes.receive(Channel::kCalls));
  if (message.kind() == MessageKind::kFarewell) return std::nullopt;
  CalledJob call;
  call.job = message.text();
  call.details = message.rest();
  return call;
}

void wait_for_farewell(Processes& processes) { (void)processes.receive(Channel::kCalls); }

}  // namespace trivelet::cli
