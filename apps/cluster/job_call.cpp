#include "apps/cluster/job_call.h"

#include "apps/cluster/messages.h"
#include "codec/base/stream_header.h"
#include "trivelet/error.h"

namespace trivelet::cli {

Summons::~Summons() {
  if (processes_) MessageWriter(MessageKind::kFarewell).send_to_all(*processes_, Channel::kCalls, 1);
}

void Summons::call(const std::string& job, const std::vector<std::uint8_t>& along) {
  if (processes_)
    MessageWriter(MessageKind::kCall).text(job).append(along).send_to_all(*processes_, Channel::kCalls, 1);
}

void Call::check(const std::string& own_job) const {
  require(own_job.substr(0, kMaxTextBytes) == job, ErrorKind::kBadArgument,
          "was started with another input or output, and all make one stream; for streams of their own start them "
          "without MPI");
}

std::optional<Call> wait_for_call(Processes& processes) {
  MessageReader message(processes.receive(Channel::kCalls));
  if (message.kind() == MessageKind::kFarewell) return std::nullopt;
  Call call;
  call.job = message.text();
  call.along = message.rest();
  return call;
}

void wait_for_farewell(Processes& processes) { (void)processes.receive(Channel::kCalls); }

}  // namespace trivelet::cli
