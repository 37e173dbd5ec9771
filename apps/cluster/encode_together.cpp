// Encoding by several processes: the leader of an encode, and the call to the other processes.

#include "apps/cluster/encode_together.h"

#include <exception>
#include <utility>

#include "apps/cluster/encode_worker.h"
#include "apps/cluster/gop_distributor.h"
#include "apps/cluster/messages.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

/// The first process: receives what workers send until all have ended, and sends them GOPs.
class Leader {
 public:
  Leader(Processes& processes, const PartEncoder& encoder, Distribution& distribution, ByteSink& sink)
      : processes_(processes),
        states_(processes),
        finder_(encoder, distribution),
        records_(processes, encoder, distribution, sink),
        distributor_(processes, encoder, distribution, finder_, records_),
        encoded_(static_cast<std::size_t>(processes.size())) {}

  EncodeTotals run() {
    try {
      records_.begin();
    } catch (...) {
      stop(std::current_exception());
    }
    for (Backoff backoff; !states_.all_ended();) {
      bool busy = false;
      try {
        while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kResults)) {
          busy = true;
          take(std::move(*m));
        }
        if (!states_.stopped()) busy = distributor_.send() || busy;
      } catch (...) {
        stop(std::current_exception());
      }
      busy ? backoff.reset() : backoff.wait();
    }
    const double finding = finder_.finish();
    if (failure_) std::rethrow_exception(failure_);
    records_.finish();
    return {finding,           records_.seconds(), records_.taken(),   records_.positioned(),
            records_.frames(), records_.bytes(),   std::move(encoded_)};
  }

 private:
  void take(Processes::Message m) {
    MessageReader message(std::move(m));
    if (!states_.take(message)) return;
    if (message.kind() == MessageKind::kWant) distributor_.add_room(message.from(), message.number());
    if (message.kind() == MessageKind::kErrors) records_.add_errors(message);
    if (message.kind() != MessageKind::kRecord) return;
    const std::shared_ptr<GopRecord> object = message.object<GopRecord>();
    GopRecord record = object ? std::move(*object) : GopRecord::parse(message.rest());
    if (!record.waits) ++encoded_.at(static_cast<std::size_t>(message.from()));
    records_.add(message.from(), std::move(record));
  }

  // The workers finish their current GOPs; everything that still arrives is ignored.
  void stop(std::exception_ptr failure) {
    if (states_.stopped()) return;
    failure_ = std::move(failure);
    finder_.stop();
    states_.stop(Channel::kAnswers);
    distributor_.finish();
  }

  Processes& processes_;
  WorkerStates states_;
  GopFinder finder_;
  RecordWriter records_;
  GopDistributor distributor_;
  std::vector<std::uint64_t> encoded_;  ///< GOPs of each worker
  std::exception_ptr failure_;
};

}  // namespace

std::function<void(Gop& gop, std::uint64_t first_frame)> read_from(std::shared_ptr<VideoInput> input) {
  return [input, at = std::uint64_t{0}](Gop& gop, std::uint64_t first_frame) mutable {
    input->skip(first_frame - at);
    const int got = input->read_frames(gop, 0, gop.frames());
    require(got == gop.frames(), ErrorKind::kBadStream, "the input became shorter while it was read");
    at = first_frame + static_cast<std::uint64_t>(got);
  };
}

std::vector<std::uint8_t> pack_call(const StreamHeader& header, Reading reading, const io::SharedOutput& output) {
  ByteWriter m;
  m.fixed(static_cast<std::uint8_t>(reading));
  const std::vector<std::uint8_t> place = io::serialise(output);
  m.varint(place.size());
  m.bytes.insert(m.bytes.end(), place.begin(), place.end());
  const std::vector<std::uint8_t> head = serialise(header);
  m.bytes.insert(m.bytes.end(), head.begin(), head.end());
  return std::move(m.bytes);
}

void help_encode(Processes& processes, const std::string& job,
                 const std::function<WorkerSetup(const StreamHeader&, Reading)>& prepare) {
  const std::optional<CalledJob> call = wait_for_call(processes);
  if (!call) return;
  ByteReader in(call->details.data(), call->details.size(), "a call");
  std::uint8_t reading = 0;
  std::uint64_t place_bytes = 0;
  in.fixed(reading);
  in.varint(place_bytes);
  const auto place = call->details.end() - static_cast<std::ptrdiff_t>(in.left());
  const std::vector<std::uint8_t> head(place + static_cast<std::ptrdiff_t>(place_bytes), call->details.end());
  WorkerSetup setup;
  std::exception_ptr unprepared;
  try {
    call->check(job);
    setup = prepare(parse_stream_header(head.data(), head.size()), static_cast<Reading>(reading));
    const io::SharedOutput output = io::parse_shared_output(&*place, static_cast<std::size_t>(place_bytes));
    if (!output.path.empty()) setup.output = io::SharedFile::open(output);
    require(serialise(setup.encoder->header()) == head, ErrorKind::kInternal,
            "makes another header from the same options; all processes need the same program");
  } catch (...) {
    unprepared = std::current_exception();
  }
  if (unprepared) {
    report_failure(processes, Channel::kResults, unprepared);
    while (MessageReader(processes.receive(Channel::kTasks)).kind() != MessageKind::kFinish) {
    }
    MessageWriter(MessageKind::kEnded).send(processes, 0, Channel::kResults);
    if (static_cast<Reading>(reading) == Reading::kKept) KeptFrames::stand_aside(processes);
  } else {
    if (setup.kept) setup.kept->start();
    encode_gops(processes, setup);
    setup.kept.reset();
  }
  wait_for_farewell(processes);
}

EncodeTotals encode_together(Processes& processes, WorkerSetup& own, Distribution& distribution, ByteSink& sink) {
  Worker worker("code");
  worker.begin([&] { encode_gops(processes, own); });
  return Leader(processes, *own.encoder, distribution, sink).run();
}

}  // namespace trivelet::cli
