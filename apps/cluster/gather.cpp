#include "apps/cluster/gather.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

#include "apps/cluster/sent_frames.h"
#include "codec/base/stream_header.h"
#include "codec/threads/stage_queue.h"
#include "codec/threads/worker.h"

namespace trivelet::cli {

namespace {

// Channels.
constexpr int kToFirst = 1;
constexpr int kToDecoders = 2;

enum class Sent : std::uint8_t { kGop, kFrame, kFailed, kEnded, kRoom, kStop };

// GOPs that are on their way to the first process from each of the others, or wait there.
constexpr int kMostWaiting = 2;

ByteWriter sent(Sent what) {
  ByteWriter out;
  out.fixed(static_cast<std::uint8_t>(what));
  return out;
}

/// Gops whose memory is used again.
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

/// Decodes in a thread of its own, and sends what there is room for.
class Turns {
 public:
  Turns(Processes& processes, RunDecoding runs) : processes_(processes), runs_(std::move(runs)) {}

  void run() {
    if (processes_.at_work) processes_.at_work();
    Worker decoding("decode");
    decoding.begin([this] { decode(); });
    ByteWriter end = sent(Sent::kEnded);
    try {
      while (std::optional<Decoded> d = decoded_.pop()) {
        while (room_ == 0) obey(processes_.receive(kToDecoders));
        while (std::optional<Processes::Message> m = processes_.try_receive(kToDecoders)) obey(*m);
        deliver(*d);
      }
    } catch (const Stopped&) {
    } catch (...) {
      ByteWriter m = sent(Sent::kFailed);
      put_error(m, std::current_exception());
      processes_.send(0, kToFirst, std::move(m.bytes));
    }
    decoded_.stop();
    decoding.wait();
    end.varint(damaged_gops_);
    end.varint(damage_.size());
    for (const std::string& line : damage_) end.text(line.substr(0, kMaxTextBytes), kMaxTextBytes);
    processes_.send(0, kToFirst, std::move(end.bytes));
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
    if (static_cast<Sent>(m.bytes.at(0)) == Sent::kStop) throw Stopped();
    ++room_;
  }

  void deliver(const Decoded& d) {
    --room_;
    ByteWriter m = sent(Sent::kGop);
    m.varint(d.run);
    m.varint(static_cast<std::uint64_t>(d.gop->frames()));
    if (processes_.shares_memory(0)) return processes_.send(0, kToFirst, std::move(m.bytes), d.gop);
    processes_.send(0, kToFirst, std::move(m.bytes));
    for (int f = 0; f < d.gop->frames(); ++f) processes_.send(0, kToFirst, pack_frame(*d.gop, f));
  }

  Processes& processes_;
  RunDecoding runs_;
  std::uint64_t damaged_gops_ = 0;   // of the decoding thread
  std::vector<std::string> damage_;  // likewise
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
  struct Sender {
    std::deque<Waiting> gops;
    bool ended = false;
  };

  Processes& processes;
  const Decoder& whole;
  std::shared_ptr<Pool> pool;
  std::vector<Sender> senders;
  std::uint64_t run = 0;  ///< whose GOPs come next
  bool stopped = false;
  Gathered found;
  Worker own{"gather"};  ///< last: it ends first

  State(Processes& p, RunDecoding runs, const Decoder& d)
      : processes(p), whole(d), pool(std::make_shared<Pool>()), senders(static_cast<std::size_t>(p.size())) {
    found.gops.resize(senders.size());
    own.begin([this, r = std::move(runs)] { Turns(processes, r).run(); });
  }

  bool hear() {
    bool heard = false;
    while (std::optional<Processes::Message> m = processes.try_receive(kToFirst)) {
      heard = true;
      take(*m);
    }
    return heard;
  }

  void take(Processes::Message& m) {
    Sender& sender = senders.at(static_cast<std::size_t>(m.from));
    if (!sender.gops.empty() && sender.gops.back().frames < sender.gops.back().gop->frames()) {
      Waiting& w = sender.gops.back();
      unpack_frame(m, *w.gop, w.frames);
      ++w.frames;
      return;
    }
    ByteReader in(m.bytes.data(), m.bytes.size(), "a message of another process");
    std::uint8_t what = 0;
    in.fixed(what);
    if (static_cast<Sent>(what) == Sent::kGop) {
      std::uint64_t frames = 0;
      Waiting w;
      in.varint(w.run);
      in.varint(frames);
      w.gop = m.object ? std::static_pointer_cast<Gop>(m.object) : pool->take(whole);
      if (m.object) w.frames = static_cast<int>(frames);
      w.gop->set_frames(static_cast<int>(frames));
      sender.gops.push_back(std::move(w));
    } else if (static_cast<Sent>(what) == Sent::kEnded) {
      sender.ended = true;
      std::uint64_t damaged = 0, lines = 0;
      in.varint(damaged);
      in.varint(lines);
      found.damaged_gops += damaged;
      for (std::string line; lines > 0; --lines) {
        in.text(line, kMaxTextBytes);
        if (std::find(found.damage.begin(), found.damage.end(), line) == found.damage.end())
          found.damage.push_back(line);
      }
    } else if (!stopped) {
      throw_error(in, processes, m.from);
    }
  }

  bool all_ended() const {
    return std::all_of(senders.begin(), senders.end(), [](const Sender& s) { return s.ended; });
  }

  std::shared_ptr<const Gop> next() {
    Patience patience;
    for (;;) {
      const std::size_t whose = static_cast<std::size_t>(run % senders.size());
      Sender& sender = senders[whose];
      Waiting* w = sender.gops.empty() ? nullptr : &sender.gops.front();
      if (w && w->run == run && w->frames == w->gop->frames()) {
        std::shared_ptr<const Gop> gop = std::move(w->gop);
        sender.gops.pop_front();
        ++found.gops[whose];
        if (!sender.ended) processes.send(static_cast<int>(whose), kToDecoders, sent(Sent::kRoom).bytes);
        return gop;
      }
      if ((w && w->run > run) || (!w && sender.ended)) {
        const bool no_more =
            all_ended() && std::all_of(senders.begin(), senders.end(), [](const Sender& s) { return s.gops.empty(); });
        if (no_more) return nullptr;
        ++run;
        continue;
      }
      hear() ? patience.reset() : patience.wait();
    }
  }

  void stop() {
    stopped = true;
    for (int i = 0; i < processes.size(); ++i) processes.send(i, kToDecoders, sent(Sent::kStop).bytes);
    Patience patience;
    while (!all_ended()) {
      for (Sender& s : senders)
        while (!s.gops.empty() && s.gops.front().frames == s.gops.front().gop->frames()) s.gops.pop_front();
      hear() ? patience.reset() : patience.wait();
    }
  }
};

Gathering::Gathering(Processes& processes, RunDecoding runs, const Decoder& whole)
    : state_(std::make_unique<State>(processes, std::move(runs), whole)) {}

Gathering::~Gathering() {
  try {
    state_->stop();
  } catch (const std::exception&) {  // what is said now was not asked for
  }
}

std::shared_ptr<const Gop> Gathering::next() { return state_->next(); }

const Gathered& Gathering::found() const { return state_->found; }

void decode_for_others(Processes& processes, const std::function<RunDecoding()>& prepare) {
  RunDecoding runs;
  try {
    runs = prepare();
  } catch (...) {
    ByteWriter m = sent(Sent::kFailed);
    put_error(m, std::current_exception());
    processes.send(0, kToFirst, std::move(m.bytes));
    runs = {};  // there is nothing to decode
  }
  Turns(processes, std::move(runs)).run();
}

}  // namespace trivelet::cli
