#include "apps/cluster/parts.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

constexpr int kToFirst = 1;  // channels
constexpr int kToOthers = 2;

enum class Note : std::uint8_t { kFrames, kCount, kFound, kFailed, kEnded, kBefore, kStop };

ByteWriter note(Note what, std::uint64_t number) {
  ByteWriter out;
  out.fixed(static_cast<std::uint8_t>(what));
  out.varint(number);
  return out;
}

/// A note with its number; what is behind it is left in `in`.
struct Noted {
  explicit Noted(const Processes::Message& m) : in(m.bytes.data(), m.bytes.size(), "a message of another process") {
    std::uint8_t first = 0;
    in.fixed(first);
    what = static_cast<Note>(first);
    in.varint(number);
  }
  ByteReader in;
  Note what;
  std::uint64_t number = 0;
};

class OwnPace final : public Pace {
 public:
  explicit OwnPace(Processes& processes) : processes_(processes) {}

  void done(std::uint64_t frames) override {
    processes_.send(0, kToFirst, note(Note::kFrames, frames).bytes);
    if (std::optional<Processes::Message> m = processes_.try_receive(kToOthers)) obey(*m);
  }
  std::uint64_t sum_before(std::uint64_t count) override {
    processes_.send(0, kToFirst, note(Note::kCount, count).bytes);
    return obey(processes_.receive(kToOthers));
  }

 private:
  static std::uint64_t obey(const Processes::Message& m) {
    const Noted noted(m);
    if (noted.what == Note::kStop) throw Stopped();
    return noted.number;
  }

  Processes& processes_;
};

/// The first process, which hears what all others say.
class Gatherer final : public Pace {
 public:
  Gatherer(Processes& processes, const std::function<void(std::uint64_t)>& frames)
      : processes_(processes), frames_(frames), parts_(static_cast<std::size_t>(processes.size())) {}

  void done(std::uint64_t frames) override {
    count(frames);
    hear();
  }
  std::uint64_t sum_before(std::uint64_t count) override {
    parts_[0].count = count;
    wait([](const Part& p) { return p.count.has_value(); });
    std::uint64_t before = count;
    for (std::size_t i = 1; i < parts_.size(); ++i) {
      processes_.send(static_cast<int>(i), kToOthers, note(Note::kBefore, before).bytes);
      before += *parts_[i].count;
    }
    return 0;
  }

  std::vector<std::vector<std::uint8_t>> run(const PartWork& own) {
    std::exception_ptr failure;
    try {
      parts_[0].found = own(*this);
      parts_[0].ended = true;
      wait([](const Part& p) { return p.ended; });
    } catch (...) {
      failure = std::current_exception();
    }
    if (failure) {
      for (int i = 1; i < processes_.size(); ++i) processes_.send(i, kToOthers, note(Note::kStop, 0).bytes);
      parts_[0].ended = true;
      stopped_ = true;
      wait([](const Part& p) { return p.ended; });
      std::rethrow_exception(failure);
    }
    std::vector<std::vector<std::uint8_t>> found;
    for (Part& p : parts_) found.push_back(std::move(p.found));
    return found;
  }

 private:
  struct Part {
    std::optional<std::uint64_t> count;
    std::vector<std::uint8_t> found;
    bool ended = false;
  };

  void count(std::uint64_t frames) {
    all_frames_ += frames;
    if (frames_) frames_(all_frames_);
  }

  bool hear() {
    bool heard = false;
    while (std::optional<Processes::Message> m = processes_.try_receive(kToFirst)) {
      heard = true;
      Noted noted(*m);
      Part& part = parts_.at(static_cast<std::size_t>(m->from));
      if (noted.what == Note::kEnded) part.ended = true;
      if (stopped_) continue;
      if (noted.what == Note::kFrames) count(noted.number);
      if (noted.what == Note::kCount) part.count = noted.number;
      if (noted.what == Note::kFound) part.found = noted.in.rest();
      if (noted.what == Note::kFailed) throw_error(noted.in, processes_, m->from);
    }
    return heard;
  }

  template <class Ready>
  void wait(const Ready& ready) {
    Patience patience;
    while (!std::all_of(parts_.begin(), parts_.end(), ready)) hear() ? patience.reset() : patience.wait();
  }

  Processes& processes_;
  const std::function<void(std::uint64_t)>& frames_;
  std::vector<Part> parts_;
  std::uint64_t all_frames_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::vector<std::vector<std::uint8_t>> do_parts(Processes& processes, const PartWork& own,
                                                const std::function<void(std::uint64_t)>& frames) {
  return Gatherer(processes, frames).run(own);
}

void do_part(Processes& processes, const PartWork& work) {
  try {
    OwnPace pace(processes);
    const std::vector<std::uint8_t> found = work(pace);
    ByteWriter m = note(Note::kFound, 0);
    m.bytes.insert(m.bytes.end(), found.begin(), found.end());
    processes.send(0, kToFirst, std::move(m.bytes));
  } catch (const Stopped&) {
  } catch (...) {
    ByteWriter m = note(Note::kFailed, 0);
    put_error(m, std::current_exception());
    processes.send(0, kToFirst, std::move(m.bytes));
  }
  processes.send(0, kToFirst, note(Note::kEnded, 0).bytes);
}

std::vector<std::uint64_t> part_borders(const std::vector<GopInfo>& gops, std::uint64_t first, std::uint64_t end,
                                        int parts) {
  const std::uint64_t last =
      gops.empty() ? 0 : gops.back().first_frame + static_cast<std::uint64_t>(gops.back().frames);
  const std::uint64_t frames = std::max(first, std::min(end, last)) - first;
  std::vector<std::uint64_t> borders = {first};
  auto gop = gops.begin();
  for (int i = 1; i < parts; ++i) {
    const std::uint64_t ideal =
        first + frames / static_cast<std::uint64_t>(parts) * static_cast<std::uint64_t>(i) +
        frames % static_cast<std::uint64_t>(parts) * static_cast<std::uint64_t>(i) / static_cast<std::uint64_t>(parts);
    gop = std::find_if(gop, gops.end(),
                       [&](const GopInfo& g) { return g.key != GopKey::kOpen && g.first_frame >= ideal; });
    borders.push_back(gop == gops.end() ? end : std::clamp(gop->first_frame, first, end));
  }
  borders.push_back(end);
  return borders;
}

}  // namespace trivelet::cli
