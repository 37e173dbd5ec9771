// Decoding in turns: the threads that decode runs, and the queue of the first process.

#include "apps/cluster/gather.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "apps/cluster/messages.h"
#include "apps/cluster/sent_frames.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

// Most GOPs of each process that are on their way to the first process or wait there.
constexpr int kMostWaiting = 2;

/// Gops whose memory is reused.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  std::shared_ptr<Gop> take(const Decoder& decoder) {
    std::unique_ptr<Gop> gop;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        gop = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!gop) gop = std::make_unique<Gop>(decoder.make_gop());
    return {gop.release(), [pool = shared_from_this()](Gop* used) {
              const std::lock_guard lock(pool->mutex_);
              pool->free_.emplace_back(used);
            }};
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Gop>> free_;
};

/// Decodes in a thread of its own, and sends as many GOPs as the first process accepts.
class Turns {
 public:
  Turns(Processes& processes, RunDecoding runs) : processes_(processes), runs_(std::move(runs)) {}

  void run() {
    if (processes_.at_work) processes_.at_work();
    Worker decoding("decode");
    decoding.begin([this] { decode(); });
    run_and_report(processes_, Channel::kResults, [this] {
      while (std::optional<Decoded> d = decoded_.pop()) {
        while (room_ == 0) obey(processes_.receive(Channel::kTasks));
        while (std::optional<Processes::Message> m = processes_.try_receive(Channel::kTasks)) obey(*m);
        deliver(*d);
      }
    });
    decoded_.stop();
    decoding.wait();
    MessageWriter end(MessageKind::kEnded);
    end.number(damaged_gops_).number(damage_.size());
    for (const std::string& line : damage_) end.text(line);
    end.send(processes_, 0, Channel::kResults);
  }

 private:
  struct Decoded {
    std::uint64_t run = 0;
    std::shared_ptr<Gop> gop;
  };

  void decode() try {
    const auto pool = std::make_shared<Pool>();
    const auto turn = static_cast<std::uint64_t>(processes_.rank());
    if (turn + 1 < runs_.borders.size()) {
      const std::unique_ptr<Decoder> decoder = runs_.make(turn, static_cast<std::uint64_t>(processes_.size()));
      for (;;) {
        std::shared_ptr<Gop> gop = pool->take(*decoder);
        if (!decoder->exchange(*gop)) break;
        const auto behind = std::upper_bound(runs_.borders.begin(), runs_.borders.end(), decoder->first_frame_of_gop());
        const auto borders = static_cast<std::uint64_t>(behind - runs_.borders.begin());
        if (!decoded_.push({borders > 0 ? borders - 1 : 0, std::move(gop)})) return;
      }
      const CodecStats& stats = decoder->stats();
      damaged_gops_ = stats.damaged_gops;
      damage_ = stats.damage;
    }
    decoded_.close();
  } catch (...) {
    decoded_.close(std::current_exception());
  }

  void obey(const Processes::Message& m) {
    if (MessageReader(m).kind() == MessageKind::kStop) throw Stopped();
    ++room_;
  }

  void deliver(const Decoded& d) {
    --room_;
    const bool handed = processes_.shares_memory(0);
    MessageWriter(MessageKind::kDecoded)
        .number(d.run)
        .number(static_cast<std::uint64_t>(d.gop->frames()))
        .send(processes_, 0, Channel::kResults, handed ? d.gop : nullptr);
    if (!handed) send_frames(processes_, 0, Channel::kResults, *d.gop);
  }

  Processes& processes_;
  RunDecoding runs_;
  std::uint64_t damaged_gops_ = 0;   // of the decoding thread
  std::vector<std::string> damage_;  // of the decoding thread
  StageQueue<Decoded> decoded_{2};
  int room_ = kMostWaiting;
};

}  // namespace

std::vector<std::uint64_t> run_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> borders = {first};
  for (const GopInfo& g : gops)
    if (g.key != GopKey::kOpen && g.first_frame > first && g.first_frame < end) borders.push_back(g.first_frame);
  borders.push_back(end);
  return borders;
}

struct Gathering::State {
  struct Waiting {
    std::uint64_t run = 0;
    std::shared_ptr<Gop> gop;
    int frames = 0;  ///< that are there
  };

  Processes& processes;
  const Decoder& whole;
  std::shared_ptr<Pool> pool;
  std::vector<std::deque<Waiting>> arrived;  ///< of each process
  std::uint64_t run = 0;                     ///< whose GOPs come next
  WorkerStates workers;
  Gathered found;
  Worker own{"gather"};  ///< last: it ends first

  State(Processes& p, RunDecoding runs, const Decoder& d)
      : processes(p),
        whole(d),
        pool(std::make_shared<Pool>()),
        arrived(static_cast<std::size_t>(p.size())),
        workers(p) {
    found.gops.resize(arrived.size());
    own.begin([this, r = std::move(runs)] { Turns(processes, r).run(); });
  }

  bool hear() {
    bool heard = false;
    while (std::optional<Processes::Message> m = processes.try_receive(Channel::kResults)) {
      heard = true;
      MessageReader message(std::move(*m));
      if (workers.take(message)) take(message);
    }
    return heard;
  }

  void take(MessageReader& message) {
    std::deque<Waiting>& gops = arrived.at(static_cast<std::size_t>(message.from()));
    if (message.kind() == MessageKind::kFrame) {
      Waiting& w = gops.back();
      unpack_frame(message, *w.gop, w.frames);
      ++w.frames;
    } else if (message.kind() == MessageKind::kDecoded) {
      Waiting w;
      w.run = message.number();
      const int frames = static_cast<int>(message.number());
      w.gop = message.object<Gop>();
      if (w.gop)
        w.frames = frames;
      else
        w.gop = pool->take(whole);
      w.gop->set_frames(frames);
      gops.push_back(std::move(w));
    } else if (message.kind() == MessageKind::kEnded) {
      found.damaged_gops += message.number();
      for (std::uint64_t lines = message.number(); lines > 0; --lines) {
        std::string line = message.text();
        if (std::find(found.damage.begin(), found.damage.end(), line) == found.damage.end())
          found.damage.push_back(std::move(line));
      }
    }
  }

  bool no_more() const {
    return workers.all_ended() &&
           std::all_of(arrived.begin(), arrived.end(), [](const auto& gops) { return gops.empty(); });
  }

  std::shared_ptr<const Gop> next() {
    Backoff backoff;
    for (;;) {
      const auto owner = static_cast<int>(run % arrived.size());
      std::deque<Waiting>& gops = arrived[static_cast<std::size_t>(owner)];
      const Waiting* w = gops.empty() ? nullptr : &gops.front();
      if (w && w->run == run && w->frames == w->gop->frames()) {
        std::shared_ptr<const Gop> gop = w->gop;
        gops.pop_front();
        ++found.gops[static_cast<std::size_t>(owner)];
        if (!workers.ended(owner)) MessageWriter(MessageKind::kRoom).send(processes, owner, Channel::kTasks);
        return gop;
      }
      if (w ? w->run > run : workers.ended(owner)) {
        if (no_more()) return nullptr;
        ++run;
        continue;
      }
      hear() ? backoff.reset() : backoff.wait();
    }
  }

  void stop() {
    workers.stop(Channel::kTasks);
    Backoff backoff;
    while (!workers.all_ended()) hear() ? backoff.reset() : backoff.wait();
  }
};

Gathering::Gathering(Processes& processes, RunDecoding runs, const Decoder& whole)
    : state_(std::make_unique<State>(processes, std::move(runs), whole)) {}

Gathering::~Gathering() {
  try {
    state_->stop();
  } catch (const std::exception&) {  // a destructor does not report errors
  }
}

std::shared_ptr<const Gop> Gathering::next() { return state_->next(); }

const Gathered& Gathering::found() const { return state_->found; }

void decode_for_others(Processes& processes, const std::function<RunDecoding()>& prepare) {
  RunDecoding runs;
  try {
    runs = prepare();
  } catch (...) {
    report_failure(processes, Channel::kResults, std::current_exception());
    runs = {};  // there is nothing to decode
  }
  Turns(processes, std::move(runs)).run();
}

}  // namespace trivelet::cli
