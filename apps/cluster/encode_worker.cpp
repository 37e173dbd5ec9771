// Encodes the GOPs that a process is sent, and writes them into the output.

#include "apps/cluster/encode_worker.h"

#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "apps/cluster/messages.h"
#include "apps/cluster/sent_frames.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/trace.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

/// Writes encoded GOPs at the positions that the first process sends, in a thread of its own.
class PositionedWriter {
 public:
  PositionedWriter(Processes& processes, io::SharedFile& output) : processes_(processes), output_(output) {
    worker_.begin([this] { run(); });
  }
  ~PositionedWriter() { MessageWriter(MessageKind::kFinish).send(processes_, processes_.rank(), Channel::kPositions); }
  PositionedWriter(const PositionedWriter&) = delete;
  PositionedWriter& operator=(const PositionedWriter&) = delete;

  /// Must be called before the record is sent to the first process.
  void add(std::uint64_t number, std::vector<std::uint8_t> bytes) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(bytes));
  }
  /// True if all are written. Throws the error of the thread.
  bool done() {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return waiting_.empty();
  }

 private:
  void run() {
    for (bool good = true;;) {
      MessageReader position(processes_.receive(Channel::kPositions));
      if (position.kind() == MessageKind::kFinish) return;
      if (good) good = write(position);
    }
  }
  bool write(MessageReader& position) try {
    const trace::Span span("write");
    const std::uint64_t number = position.number();
    std::vector<std::uint8_t>* bytes = nullptr;
    {
      const std::lock_guard lock(mutex_);
      bytes = &waiting_.at(number);
    }
    output_.write_at(position.number(), bytes->data(), bytes->size());
    const std::lock_guard lock(mutex_);
    waiting_.erase(number);
    return true;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    return false;
  }

  Processes& processes_;
  io::SharedFile& output_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<std::uint8_t>> waiting_;  ///< by their numbers
  std::exception_ptr failure_;
  Worker worker_{"write"};  ///< last: it ends first
};

class GopCoder {
 public:
  GopCoder(Processes& processes, WorkerSetup& setup)
      : processes_(processes), setup_(setup), slots_(slots_of(setup)), tasks_(slots_) {}

  void run() {
    if (processes_.at_work) processes_.at_work();
    Worker reader("read");
    reader.begin([this] { read(); });
    run_and_report(processes_, Channel::kResults, [this] {
      if (setup_.output) writer_.emplace(processes_, *setup_.output);
      work();
    });
    tasks_.stop();
    reader.wait();
    writer_.reset();
    MessageWriter(MessageKind::kEnded).send(processes_, 0, Channel::kResults);
  }

 private:
  /// The byte budget of a GOP that waits for it.
  struct Budget {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    double slope = 0;
  };
  struct Arrived {
    Gop gop{};
    GopTask task{};
    std::optional<Budget> budget{};
  };

  // The number of GOPs that may wait in a worker. Sent GOPs come in runs, each of which goes to one process, so a run
  // has room. Of GOPs that it reads itself, the CPU takes only one ahead, because it codes a GOP for much longer: at
  // the end, other processes could code what it has taken.
  static std::size_t slots_of(const WorkerSetup& setup) {
    const EncoderParams& p = setup.encoder->params();
    const bool target = p.has_byte_target() || p.psnr > 0;
    return setup.read ? (setup.backend ? 2 : 1) : target ? kRunGops + 2 : setup.encoder->header().motion ? 6 : 2;
  }

  void want(std::size_t gops) { MessageWriter(MessageKind::kWant).number(gops).send(processes_, 0, Channel::kResults); }

  // GOPs are read, or received, while others are encoded.
  void read() {
    want(slots_);
    bool reading = true;
    bool failed = false;
    for (;;) {
      MessageReader task(processes_.receive(Channel::kTasks));
      if (task.kind() == MessageKind::kFinish) break;
      if (!reading) continue;  // GOPs in flight when something failed
      try {
        Arrived a;
        if (task.kind() == MessageKind::kBudget) {
          Budget& budget = a.budget.emplace();
          budget.number = task.number();
          budget.bytes = task.number();
          budget.slope = task.real();
          reading = tasks_.push(std::move(a));
          continue;
        }
        a.gop = setup_.encoder->make_gop();
        a.task.number = task.number();
        a.task.first_frame = task.number();
        a.task.must_close = task.number() != 0;
        a.task.run = task.number() != 0;
        a.gop.set_begins_scene(task.number() != 0);
        a.gop.set_frames(static_cast<int>(task.number()));
        a.task.seed = task.rest();
        if (const std::shared_ptr<Gop> samples = task.object<Gop>()) {
          copy_frames(*samples, a.gop);
        } else if (setup_.read) {
          const trace::Span span("read frames");
          setup_.read(a.gop, a.task.first_frame);
        } else {
          for (int f = 0; f < a.gop.frames(); ++f) {
            MessageReader frame(processes_.receive(Channel::kTasks));
            unpack_frame(frame, a.gop, f);
          }
        }
        reading = tasks_.push(std::move(a));
      } catch (...) {
        reading = false;
        failed = true;
        tasks_.close(std::current_exception());
      }
    }
    if (!failed) tasks_.close();
  }

  void work() {
    // Waiting until a device is idle takes several times as long as reading the next GOP.
    constexpr std::chrono::milliseconds kReading{50};
    PartEncoder& encoder = *setup_.encoder;
    for (;;) {
      std::optional<Arrived> next = tasks_.pop_within(kReading);
      if (!next) {  // other processes may wait for GOPs that a device still holds
        encoder.flush();
        deliver();
        next = tasks_.pop();
      }
      if (!next) break;
      if (next->budget) {
        encoder.fit(next->budget->number, next->budget->bytes, next->budget->slope);
        deliver();
        continue;
      }
      want(1);
      encoder.push(std::move(next->gop), next->task);
      deliver();
      if (writer_) (void)writer_->done();
      take_answers();
      // The earlier GOPs that other processes encode will be known, because none waits for a later one.
      for (Backoff backoff; asked_ > encoder.most_asked(); backoff.wait()) {
        encoder.advance();
        deliver();
        take_answers();
      }
    }
    encoder.flush();
    deliver();
    for (Backoff backoff; encoder.unsettled() > 0 || (writer_ && !writer_->done()); backoff.wait()) {
      take_answers();
      deliver();
    }
    deliver();
    if (setup_.output) setup_.output->finish();
  }

  void deliver() {
    const std::vector<GopErrors> measured = setup_.encoder->take_errors();  // records that have arrived by now
    while (std::optional<GopRecord> record = setup_.encoder->next()) {
      if (record->asks) ++asked_;
      if (writer_ && !record->waits) writer_->add(record->number, std::exchange(record->bytes, {}));
      MessageWriter m(MessageKind::kRecord);
      std::shared_ptr<GopRecord> object;
      if (processes_.shares_memory(0))
        object = std::make_shared<GopRecord>(std::move(*record));
      else
        m.append(record->serialise());
      m.send(processes_, 0, Channel::kResults, std::move(object));
    }
    for (const GopErrors& gop : measured) {
      MessageWriter m(MessageKind::kErrors);
      m.number(gop.number);
      for (const double e : gop.errors) m.real(e);
      m.send(processes_, 0, Channel::kResults);
    }
  }

  void take_answers() {
    while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kAnswers)) {
      MessageReader answer(std::move(*m));
      if (answer.kind() == MessageKind::kStop) throw Stopped();
      const std::uint64_t number = answer.number();
      std::vector<std::size_t> layers(static_cast<std::size_t>(answer.number()));
      for (std::size_t& l : layers) l = static_cast<std::size_t>(answer.number());
      setup_.encoder->settle(number, layers);
      --asked_;
    }
  }

  Processes& processes_;
  WorkerSetup& setup_;
  const std::size_t slots_;
  StageQueue<Arrived> tasks_;
  std::size_t asked_ = 0;
  std::optional<PositionedWriter> writer_;  ///< last: its thread ends first
};

}  // namespace

void encode_gops(Processes& processes, WorkerSetup& setup) { GopCoder(processes, setup).run(); }

}  // namespace trivelet::cli
