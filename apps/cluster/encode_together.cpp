#include "apps/cluster/encode_together.h"

#include <spdlog/fmt/fmt.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <exception>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "apps/cluster/messages.h"
#include "apps/cluster/sent_frames.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"
#include "codec/threads/worker.h"
#include "trivelet/scene_cuts.h"

namespace trivelet::cli {

namespace {

/// A GOP on its way to who codes it.
struct Task {
  GopTask task;
  int frames = 0;
  bool begins_scene = false;
  std::optional<Gop> samples;  ///< where they are sent
  bool end = false;            ///< none comes behind
};

/// Of the calling thread.
double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// ------------------------------------------------------------------------------------------------------- who codes
// GOPs

/// Writes GOPs into the output when it is told where they begin, in a thread of its own.
class Placing {
 public:
  Placing(Processes& processes, io::SharedFile& output) : processes_(processes), output_(output) {
    worker_.begin([this] { run(); });
  }
  ~Placing() { MessageWriter(MessageKind::kFinish).send(processes_, processes_.rank(), Channel::kPositions); }
  Placing(const Placing&) = delete;
  Placing& operator=(const Placing&) = delete;

  /// To be called before the first process hears of it.
  void add(std::uint64_t number, std::vector<std::uint8_t> bytes) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(number, std::move(bytes));
  }
  /// Whether all are written. Throws what went wrong.
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
  GopCoder(Processes& processes, Share& share)
      : processes_(processes), share_(share), slots_(slots_of(share)), tasks_(slots_) {}

  /// Codes what is dealt out until there is no more. What goes wrong is told to the first process.
  void run() {
    if (processes_.at_work) processes_.at_work();
    Worker reader("read");
    reader.begin([this] { read(); });
    run_and_report(processes_, Channel::kResults, [this] {
      if (share_.output) placing_.emplace(processes_, *share_.output);
      work();
    });
    tasks_.stop();
    reader.wait();
    placing_.reset();
    MessageWriter(MessageKind::kEnded).send(processes_, 0, Channel::kResults);
  }

 private:
  /// Bytes for a GOP that waits for them.
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

  // GOPs that are sent come in runs, of which each goes to one process: room for one. Of those that it reads the CPU,
  // which codes one for far longer, has one ahead: what lies ahead of it at the end others could code.
  static std::size_t slots_of(const Share& share) {
    const EncoderParams& p = share.encoder->params();
    const bool target = p.has_byte_target() || p.psnr > 0;
    return share.read ? (share.backend ? 2 : 1) : target ? kRunGops + 2 : share.encoder->header().motion ? 6 : 2;
  }

  void want(std::size_t gops) { MessageWriter(MessageKind::kWant).number(gops).send(processes_, 0, Channel::kResults); }

  // GOPs are read, or received, while others are coded.
  void read() {
    want(slots_);
    bool reading = true;
    bool failed = false;
    for (;;) {
      MessageReader task(processes_.receive(Channel::kTasks));
      if (task.kind() == MessageKind::kFinish) break;
      if (!reading) continue;  // what is on its way when something went wrong
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
        a.gop = share_.encoder->make_gop();
        a.task.number = task.number();
        a.task.first_frame = task.number();
        a.task.anew = task.number() != 0;
        a.task.run = task.number() != 0;
        a.gop.set_begins_scene(task.number() != 0);
        a.gop.set_frames(static_cast<int>(task.number()));
        a.task.seed = task.rest();
        if (const std::shared_ptr<Gop> samples = task.object<Gop>()) {
          copy_frames(*samples, a.gop);
        } else if (share_.read) {
          const trace::Span span("read frames");
          share_.read(a.gop, a.task.first_frame);
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
    // To wait until a device has nothing left to do takes several times as long as to read the next GOP.
    constexpr std::chrono::milliseconds kReading{50};
    PartEncoder& encoder = *share_.encoder;
    for (;;) {
      std::optional<Arrived> next = tasks_.pop_within(kReading);
      if (!next) {  // what a device still has is not waited for by others in vain
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
      if (placing_) (void)placing_->done();
      take_answers();
      // Those before that others code are known some time, for none waits for one behind it.
      for (Backoff backoff; asked_ > encoder.most_asked(); backoff.wait()) {
        encoder.advance();
        deliver();
        take_answers();
      }
    }
    encoder.flush();
    deliver();
    for (Backoff backoff; encoder.unsettled() > 0 || (placing_ && !placing_->done()); backoff.wait()) {
      take_answers();
      deliver();
    }
    deliver();
    if (share_.output) share_.output->finish();
  }

  void deliver() {
    const std::vector<GopErrors> measured = share_.encoder->take_errors();  // of records that are there by now
    while (std::optional<GopRecord> record = share_.encoder->next()) {
      if (record->asks) ++asked_;
      if (placing_ && !record->waits) placing_->add(record->number, std::exchange(record->bytes, {}));
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
      share_.encoder->settle(number, layers);
      --asked_;
    }
  }

  Processes& processes_;
  Share& share_;
  const std::size_t slots_;
  StageQueue<Arrived> tasks_;
  std::size_t asked_ = 0;
  std::optional<Placing> placing_;  ///< last: its thread ends first
};

// ------------------------------------------------------------------------------------------------- who deals and
// writes

class Leader {
 public:
  Leader(Processes& processes, Share& own, Dealing& dealing, ByteSink& sink)
      : processes_(processes),
        own_(*own.encoder),
        dealing_(dealing),
        sink_(sink),
        found_(dealing.reading == Reading::kSent ? 2 : 64),
        workers_(static_cast<std::size_t>(processes.size())),
        states_(processes) {}

  Together run() {
    Worker finding("read");
    finding.begin([this] { find(); });
    Backoff backoff;
    while (!states_.all_ended()) {
      bool busy = false;
      try {
        if (!assembly_ && !states_.stopped()) {
          assembly_.emplace(own_.header(), own_.head(), sink_, dealing_.skip);
          take_up();
        }
        while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kResults)) {
          busy = true;
          MessageReader message(std::move(*m));
          if (states_.take(message)) take(message);
        }
        busy = deal() || busy;
      } catch (...) {
        stop(std::current_exception());
      }
      busy ? backoff.reset() : backoff.wait();
    }
    found_.stop();
    finding.wait();
    if (failure_) std::rethrow_exception(failure_);
    assembly_->finish();
    Together all{finding_, writing_, taken_, placed_, assembly_->frames(), assembly_->bytes()};
    for (const WorkerState& w : workers_) all.coded.push_back(w.coded);
    return all;
  }

 private:
  struct WorkerState {
    std::uint64_t wants = 0;
    std::uint64_t coded = 0;  ///< GOPs
    std::deque<Task> tasks;   ///< that are its own, not sent yet
  };

  // Where GOPs end, in a thread of its own.
  void find() try {
    VideoInput& input = dealing_.input;
    const bool direct = dealing_.reading == Reading::kDirect;
    const FramesInput frames = dealing_.kept
                                   ? dealing_.kept->looks()
                                   : FramesInput{[&](Gop& gop, int first, int count) {
                                                   return direct ? input.look(gop, first, count, !dealing_.plain_gops)
                                                                 : input.read_frames(gop, first, count);
                                                 },
                                                 [&](int count) { return input.unread(count); }};
    SceneReader scenes(input.info(), frames, dealing_.threads);
    KeySchedule schedule = own_.schedule();
    std::optional<Gop> gop;
    Task next;
    for (;;) {
      const trace::Span span("read frames");
      if (!gop) gop.emplace(input.info(), own_.header().gop_frames);
      if (dealing_.plain_gops) {
        gop->set_frames(gop->capacity());
        gop->set_frames(frames.read(*gop, 0, gop->capacity()));
      }
      if (dealing_.plain_gops ? gop->frames() == 0 : !scenes.read(*gop)) break;
      Task task = next;
      task.frames = gop->frames();
      task.begins_scene = gop->begins_scene();
      const KeySchedule::Begins begins = schedule.next(task.frames, task.begins_scene);
      task.task.anew = begins.anew;
      task.task.run = begins.run;
      next.task.number += 1;
      next.task.first_frame += static_cast<std::uint64_t>(task.frames);
      if (dealing_.reading == Reading::kSent) task.samples = std::exchange(gop, std::nullopt);
      if (!found_.push(std::move(task))) return;
    }
    next.end = true;
    finding_ = cpu_seconds();
    (void)found_.push(std::move(next));
  } catch (...) {
    found_.close(std::current_exception());
  }

  // What a run that was stopped left of the first GOPs.
  void take_up() {
    GopRecord record;
    std::vector<double> errors;
    for (; dealing_.journal && dealing_.journal->take(taken_, record, errors); ++taken_) {
      // Not measured: it is coded again, and those behind it, too, of which it is not known whether they are to be.
      MeasuringPlan plan = assembly_->plan();
      const bool open = record.info.key == GopKey::kOpen;
      const bool measured =
          record.asks ? !plan.layers(record.predicted, open, record.anew).empty() : !record.measured_at.empty();
      if (measured && errors.empty()) return;
      if (taken_ == 0) seed_ = record.seed;
      if (!assembly_->add(record).empty()) assembly_->measured(taken_, errors);
    }
  }

  void take(MessageReader& message) {
    WorkerState& worker = workers_.at(static_cast<std::size_t>(message.from()));
    if (message.kind() == MessageKind::kWant) worker.wants += message.number();
    if (message.kind() == MessageKind::kErrors) take_errors(message);
    if (message.kind() != MessageKind::kRecord) return;
    const std::shared_ptr<GopRecord> object = message.object<GopRecord>();
    GopRecord record = object ? std::move(*object) : GopRecord::parse(message.rest());
    if (!record.waits) ++worker.coded;
    take(message.from(), std::move(record));
  }

  void take_errors(MessageReader& message) {
    const std::uint64_t number = message.number();
    std::vector<double> errors(message.left() / sizeof(double));
    for (double& e : errors) e = message.real();
    if (number < taken_) return;  // as dismiss() has it
    if (dealing_.journal) dealing_.journal->add_errors(number, errors);
    assembly_->measured(number, std::move(errors));
  }

  void take(int from, GopRecord record) {
    const std::uint64_t number = record.number;
    if (number == 0 && !record.seed.empty()) seed_ = record.seed;
    if (record.waits) {
      coded_ += static_cast<std::uint64_t>(record.info.frames);
      for_bytes_.emplace(number, std::pair(from, std::move(record.waiting)));
      if (dealing_.written) dealing_.written(coded_);
      return;
    }
    if (number < assembly_->next()) return dismiss(from, record);  // of a run that was taken up within
    if (dealing_.journal) dealing_.journal->add(record);
    waiting_.emplace(number, std::pair(from, std::move(record)));
    write();
  }

  // Is not to be measured.
  void dismiss(int from, const GopRecord& record) {
    if (record.asks)
      MessageWriter(MessageKind::kMeasure).number(record.number).number(0).send(processes_, from, Channel::kAnswers);
  }

  void write() {
    const trace::Span span("write");
    const ScopeTimer timer(writing_);
    for (auto first = waiting_.begin(); first != waiting_.end() && first->first == assembly_->next();
         first = waiting_.begin()) {
      const auto& [from, record] = first->second;
      const std::vector<std::size_t> layers = assembly_->add(record);
      if (record.bytes.empty()) {
        ++placed_;
        MessageWriter(MessageKind::kPosition)
            .number(record.number)
            .number(assembly_->position_of(record.number))
            .send(processes_, from, Channel::kPositions);
      }
      if (record.asks) {
        MessageWriter m(MessageKind::kMeasure);
        m.number(record.number).number(layers.size());
        for (const std::size_t l : layers) m.number(l);
        m.send(processes_, from, Channel::kAnswers);
      }
      waiting_.erase(first);
    }
    if (dealing_.written && coded_ == 0) dealing_.written(assembly_->frames());
  }

  // With a target for bytes: divides them when all GOPs are coded, some at once. Whether all have theirs.
  bool divide_bytes() {
    if (for_bytes_.empty()) return true;
    if (!bytes_) {
      std::vector<WaitingGop> all;
      for (auto& [number, w] : for_bytes_) {
        fitters_.push_back(w.first);
        all.push_back(std::move(w.second));
      }
      const StreamHeader& header = own_.header();
      const FrameTime begin{all.front().info.begin_pts, 0}, end{all.back().info.end_pts, 0};
      const double wanted = bytes_wanted(header.video, own_.params(), static_cast<double>(coded_), begin, end);
      bytes_.emplace(header, std::move(all), static_cast<std::uint64_t>(wanted));
    }
    if (assembly_->next() < given_) return false;
    const std::vector<std::uint64_t> bytes = bytes_->next(assembly_->index(), assembly_->bytes());
    for (const std::uint64_t b : bytes) {
      const int to = fitters_[given_];
      MessageWriter(MessageKind::kBudget)
          .number(given_++)
          .number(b)
          .real(bytes_->slope())
          .send(processes_, to, Channel::kTasks);
    }
    return bytes.empty();
  }

  bool with_target() const { return own_.params().has_byte_target() || own_.params().psnr > 0; }

  // Finds the next GOP to deal out, passing those that were taken up; but a run is coded as a whole.
  void hold() {
    const std::size_t most_not_sent = dealing_.reading == Reading::kSent ? 1 : 4096;
    while (!held_) {
      if (!again_.empty()) {
        held_ = std::move(again_.front());
        again_.pop_front();
        return;
      }
      std::optional<Task> t = not_sent_ < most_not_sent ? found_.try_pop() : std::nullopt;
      if (!t) return;
      const bool taken = !t->end && t->task.number < taken_;
      if (t->end || t->task.run) passed_.clear();
      (taken ? passed_ : again_).push_back(std::move(*t));
      if (!taken)
        again_.insert(again_.begin(), std::make_move_iterator(passed_.begin()), std::make_move_iterator(passed_.end()));
      if (!taken) passed_.clear();
    }
  }

  // Deals out what can be; false if nothing could.
  bool deal() {
    if (states_.stopped()) return false;
    // Far ahead of what is written nothing is coded: it waits in memory.
    const std::uint64_t most_ahead = 64 * (workers_.size() + 1);
    bool dealt = false;
    for (;;) {
      for (std::size_t w = 0; w < workers_.size(); ++w)
        for (WorkerState& s = workers_[w]; s.wants > 0 && !s.tasks.empty(); s.tasks.pop_front()) {
          send(static_cast<int>(w), s.tasks.front());
          --s.wants;
          --not_sent_;
          dealt = true;
        }
      hold();
      if (!held_) return dealt;
      if (held_->end) {
        if (ended_ || not_sent_ > 0) return dealt;
        if (own_.params().has_byte_target() && (for_bytes_.size() < held_->task.number || !divide_bytes()))
          return dealt;
        end_tasks();
        return true;
      }
      if (!own_.params().has_byte_target() && held_->task.number > assembly_->next() + most_ahead) return dealt;
      if (held_->task.run) {
        if (held_->task.number > 0 && with_target() && seed_.empty()) return dealt;
        held_->task.seed = seed_;
        const auto room = [](const WorkerState& s) {
          return static_cast<std::int64_t>(s.wants) - static_cast<std::int64_t>(s.tasks.size());
        };
        const auto best = std::max_element(workers_.begin(), workers_.end(),
                                           [&](const auto& a, const auto& b) { return room(a) < room(b); });
        if (room(*best) < 1) return dealt;
        current_ = static_cast<std::size_t>(best - workers_.begin());
      }
      workers_[current_].tasks.push_back(std::move(*held_));
      held_.reset();
      ++not_sent_;
      dealt = true;
    }
  }

  void send(int to, Task& t) {
    MessageWriter m(MessageKind::kGop);
    m.number(t.task.number).number(t.task.first_frame).number(t.task.anew).number(t.task.run);
    m.number(t.begins_scene).number(static_cast<std::uint64_t>(t.frames)).append(t.task.seed);
    if (t.samples && processes_.shares_memory(to))
      return m.send(processes_, to, Channel::kTasks, std::make_shared<Gop>(std::move(*t.samples)));
    m.send(processes_, to, Channel::kTasks);
    if (t.samples) send_frames(processes_, to, Channel::kTasks, *t.samples);
  }

  void end_tasks() {
    if (!std::exchange(ended_, true)) MessageWriter(MessageKind::kFinish).send_to_all(processes_, Channel::kTasks);
  }

  // The others finish the GOP they are at; nothing that still comes counts.
  void stop(std::exception_ptr failure) {
    if (states_.stopped()) return;
    failure_ = std::move(failure);
    found_.stop();
    if (dealing_.kept) dealing_.kept->stop_looking();
    states_.stop(Channel::kAnswers);
    end_tasks();
  }

  Processes& processes_;
  const PartEncoder& own_;
  Dealing& dealing_;
  ByteSink& sink_;
  std::optional<StreamAssembly> assembly_;
  StageQueue<Task> found_;
  std::optional<Task> held_;  ///< found, and nobody has room for it
  double finding_ = 0;
  double writing_ = 0;
  std::uint64_t placed_ = 0;
  std::uint64_t taken_ = 0;  ///< GOPs that were taken up
  std::deque<Task> passed_;  ///< of them, those of the run that is found now
  std::deque<Task> again_;   ///< to deal out before others
  std::vector<WorkerState> workers_;
  WorkerStates states_;
  std::size_t current_ = 0;  ///< who codes the GOPs of this run
  std::size_t not_sent_ = 0;
  std::map<std::uint64_t, std::pair<int, GopRecord>> waiting_;  ///< for those before them
  std::vector<std::uint8_t> seed_;                              ///< with a target: of GOP 0
  // With a target for bytes.
  std::uint64_t coded_ = 0;                                        ///< frames
  std::map<std::uint64_t, std::pair<int, WaitingGop>> for_bytes_;  ///< GOPs that wait for their bytes
  std::optional<BytePlan> bytes_;
  std::vector<int> fitters_;  ///< of all GOPs: who has coded them
  std::uint64_t given_ = 0;   ///< GOPs that have theirs
  bool ended_ = false;
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
                 const std::function<Share(const StreamHeader&, Reading)>& prepare) {
  const std::optional<Call> call = wait_for_call(processes);
  if (!call) return;
  ByteReader in(call->along.data(), call->along.size(), "a call");
  std::uint8_t reading = 0;
  std::uint64_t place_bytes = 0;
  in.fixed(reading);
  in.varint(place_bytes);
  const auto place = call->along.end() - static_cast<std::ptrdiff_t>(in.left());
  const std::vector<std::uint8_t> head(place + static_cast<std::ptrdiff_t>(place_bytes), call->along.end());
  Share share;
  std::exception_ptr unprepared;
  try {
    call->check(job);
    share = prepare(parse_stream_header(head.data(), head.size()), static_cast<Reading>(reading));
    const io::SharedOutput output = io::parse_shared_output(&*place, static_cast<std::size_t>(place_bytes));
    if (!output.path.empty()) share.output = io::SharedFile::open(output);
    require(serialise(share.encoder->header()) == head, ErrorKind::kInternal,
            "makes another header of the same options; all processes need the same program");
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
    if (share.kept) share.kept->start();
    GopCoder(processes, share).run();
    share.kept.reset();
  }
  wait_for_farewell(processes);
}

Together encode_together(Processes& processes, Share& own, Dealing& dealing, ByteSink& sink) {
  Worker coder("code");
  coder.begin([&] { GopCoder(processes, own).run(); });
  return Leader(processes, own, dealing, sink).run();
}

}  // namespace trivelet::cli
