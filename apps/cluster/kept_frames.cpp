#include "apps/cluster/kept_frames.h"

#include <algorithm>
#include <exception>

#include "apps/cluster/sent_frames.h"
#include "apps/cluster/summons.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

// Channels beside those of encode_together.cpp: to the first process; to who has frames; frames.
constexpr int kLooks = 5;
constexpr int kAsked = 6;
constexpr int kFrames = 7;

enum class What : std::uint8_t { kLook, kStretchEnds, kFailed, kGone, kStop, kLocate, kHandOver, kEnd };

ByteWriter message(What what) {
  ByteWriter out;
  out.fixed(static_cast<std::uint8_t>(what));
  return out;
}

std::uint64_t number(ByteReader& in) {
  std::uint64_t v = 0;
  in.varint(v);
  return v;
}

/// The time of the only frame, and of its first component the rows that are compared.
void pack_look(const Gop& gop, const SceneCuts::Rows& rows, ByteWriter& out) {
  out.signed_varint(gop.times()[0].pts);
  out.signed_varint(gop.times()[0].duration);
  const VolumeView v = gop.plane(0);
  for (int y = rows.first; y < v.shape.height; y += rows.step) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(v.row(0, y));
    out.bytes.insert(out.bytes.end(), from, from + v.row_bytes());
  }
}

void unpack_look(const std::vector<std::uint8_t>& bytes, const SceneCuts::Rows& rows, Gop& gop, int frame) {
  ByteReader in(bytes.data(), bytes.size(), "what was seen of a frame");
  FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  in.signed_varint(time.pts);
  in.signed_varint(time.duration);
  const MutableVolumeView v = gop.plane(0);
  const std::uint8_t* at = bytes.data() + (bytes.size() - in.left());
  std::size_t left = in.left();
  for (int y = rows.first; y < v.shape.height; y += rows.step) {
    require(left >= v.row_bytes(), ErrorKind::kInternal, "rows of a frame were sent in part");
    std::copy_n(at, v.row_bytes(), reinterpret_cast<std::uint8_t*>(v.row(frame, y)));
    at += v.row_bytes();
    left -= v.row_bytes();
  }
}

}  // namespace

KeptFrames::KeptFrames(Processes& processes, std::unique_ptr<io::FrameReader> reader, std::size_t most_frames)
    : processes_(processes),
      reader_(std::move(reader)),
      most_frames_(most_frames),
      rows_(SceneCuts::rows(reader_->info().height)),
      decoded_(static_cast<std::size_t>(processes.size())) {}

KeptFrames::~KeptFrames() {
  if (server_.has_thread() && processes_.rank() == 0) end();
}

void KeptFrames::start() {
  decoder_.begin([this] { decode(); });
  server_.begin([this] { serve(); });
}

void KeptFrames::stand_aside(Processes& processes) {
  ByteWriter gone = message(What::kGone);
  gone.varint(0);
  processes.send(0, kLooks, std::move(gone.bytes));
  while (processes.receive(kAsked).bytes.at(0) != static_cast<std::uint8_t>(What::kEnd)) {
  }
}

// ------------------------------------------------------------------------------------------------- who decodes and
// keeps

void KeptFrames::decode() {
  std::uint64_t decoded = 0;
  try {
    const auto step = static_cast<std::size_t>(processes_.size());
    for (auto s = static_cast<std::size_t>(processes_.rank()); s < reader_->stretches(); s += step) {
      reader_->go_to(s);
      std::uint64_t frames = 0;
      while (keep({s, frames})) ++frames;
      decoded += frames;
      ByteWriter m = message(What::kStretchEnds);
      m.varint(s);
      processes_.send(0, kLooks, std::move(m.bytes));
    }
  } catch (const Stopped&) {
  } catch (...) {
    ByteWriter m = message(What::kFailed);
    put_error(m, std::current_exception());
    processes_.send(0, kLooks, std::move(m.bytes));
  }
  ByteWriter gone = message(What::kGone);
  gone.varint(decoded);
  processes_.send(0, kLooks, std::move(gone.bytes));
}

// Decodes the next frame. False at the end of the stretch.
bool KeptFrames::keep(const Place& place) {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || kept_.size() < most_frames_; });
    if (stopped_) throw Stopped();
  }
  const auto frame = std::make_shared<Gop>(reader_->info(), 1);
  if (!reader_->read(*frame, 0)) return false;
  frame->set_frames(1);
  ByteWriter m = message(What::kLook);
  m.varint(place.first);
  pack_look(*frame, rows_, m);
  {
    const std::lock_guard lock(mutex_);
    kept_.emplace(place, frame);
  }
  processes_.send(0, kLooks, std::move(m.bytes));
  return true;
}

// Answers until the end. Only frames that the first process has seen are asked for: they are all there.
void KeptFrames::serve() {
  for (;;) {
    const Processes::Message m = processes_.receive(kAsked);
    ByteReader in(m.bytes.data(), m.bytes.size(), "a message");
    std::uint8_t what = 0;
    in.fixed(what);
    if (static_cast<What>(what) == What::kEnd) break;
    if (static_cast<What>(what) == What::kLocate) {
      const std::uint64_t first = number(in);
      locate(m.from, first, number(in));
    } else {
      const int asker = static_cast<int>(number(in));
      const std::uint64_t at = number(in);
      const std::uint64_t stretch = number(in);
      const std::uint64_t first = number(in);
      hand_over(asker, at, {stretch, first}, number(in));
    }
  }
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

void KeptFrames::locate(int asker, std::uint64_t first, std::uint64_t count) {
  for (std::uint64_t done = 0; done < count;) {
    std::uint64_t stretch = 0;
    ByteWriter m = message(What::kHandOver);
    m.varint(static_cast<std::uint64_t>(asker));
    m.varint(done);
    {
      const std::lock_guard lock(mutex_);
      const auto behind = std::upper_bound(begins_.begin(), begins_.end(), first + done);
      stretch = static_cast<std::uint64_t>(behind - begins_.begin()) - 1;
      const std::uint64_t here =
          behind == begins_.end() ? count - done : std::min(count - done, *behind - first - done);
      m.varint(stretch);
      m.varint(first + done - begins_[static_cast<std::size_t>(stretch)]);
      m.varint(here);
      done += here;
    }
    processes_.send(static_cast<int>(stretch % static_cast<std::uint64_t>(processes_.size())), kAsked,
                    std::move(m.bytes));
  }
}

void KeptFrames::hand_over(int asker, std::uint64_t at, Place place, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i, ++place.second) {
    std::shared_ptr<Gop> frame;
    {
      const std::lock_guard lock(mutex_);
      const auto found = kept_.find(place);
      if (found != kept_.end()) {
        frame = std::move(found->second);
        kept_.erase(found);
      }
    }
    changed_.notify_all();
    ByteWriter m;
    m.fixed(static_cast<std::uint32_t>(at + i));
    const bool handed = frame && processes_.shares_memory(asker);
    if (frame && !handed) {
      const std::vector<std::uint8_t> samples = pack_frame(*frame, 0);
      m.bytes.insert(m.bytes.begin(), samples.begin(), samples.end());
    }
    processes_.send(asker, kFrames, std::move(m.bytes), handed ? std::move(frame) : nullptr);
  }
}

void KeptFrames::read(Gop& gop, std::uint64_t first_frame) {
  ByteWriter ask = message(What::kLocate);
  ask.varint(first_frame);
  ask.varint(static_cast<std::uint64_t>(gop.frames()));
  processes_.send(0, kAsked, std::move(ask.bytes));
  for (int f = 0; f < gop.frames(); ++f) {
    Processes::Message m = processes_.receive(kFrames);
    ByteReader in(m.bytes.data() + (m.bytes.size() - sizeof(std::uint32_t)), sizeof(std::uint32_t), "a frame");
    std::uint32_t at = 0;
    in.fixed(at);
    m.bytes.resize(m.bytes.size() - sizeof at);
    if (m.object) m.bytes = pack_frame(*std::static_pointer_cast<Gop>(m.object), 0);
    unpack_frame(m, gop, static_cast<int>(at));
  }
}

// ---------------------------------------------------------------------------------------------------- who looks at
// them

FramesInput KeptFrames::looks() {
  return {[this](Gop& gop, int first, int count) { return read_looks(gop, first, count); },
          [this](int count) { return unread_looks(count); }};
}

void KeptFrames::stop_looking() { processes_.send(processes_.rank(), kLooks, message(What::kStop).bytes); }

const std::vector<std::uint64_t>& KeptFrames::end() {
  if (gone_ == decoded_.size()) return decoded_;
  for (int p = 0; p < processes_.size(); ++p) processes_.send(p, kAsked, message(What::kEnd).bytes);
  while (gone_ < decoded_.size()) try {
      receive_look();
      arrived_.clear();
    } catch (...) {  // it was said already, or comes too late
    }
  return decoded_;
}

void KeptFrames::receive_look() {
  const Processes::Message m = processes_.receive(kLooks);
  ByteReader in(m.bytes.data(), m.bytes.size(), "a message");
  std::uint8_t first = 0;
  in.fixed(first);
  const auto what = static_cast<What>(first);
  if (what == What::kStop) throw Stopped();
  if (what == What::kFailed) throw_error(in, processes_, m.from);
  if (what == What::kGone) {
    decoded_[static_cast<std::size_t>(m.from)] = number(in);
    ++gone_;
    return;
  }
  const std::uint64_t stretch = number(in);
  Look look;
  look.frame = what == What::kLook;
  look.bytes.assign(m.bytes.end() - static_cast<std::ptrdiff_t>(in.left()), m.bytes.end());
  arrived_[stretch].push_back(std::move(look));
}

bool KeptFrames::next_look(Look& look) {
  if (!again_.empty()) {
    look = std::move(again_.front());
    again_.pop_front();
    return true;
  }
  while (stretch_ < reader_->stretches()) {
    std::deque<Look>& here = arrived_[stretch_];
    if (here.empty()) {
      receive_look();
      continue;
    }
    look = std::move(here.front());
    here.pop_front();
    if (look.frame) {
      ++seen_;
      return true;
    }
    arrived_.erase(stretch_++);
    const std::lock_guard lock(mutex_);
    begins_.push_back(begins_.back() + std::exchange(seen_, 0));
  }
  return false;
}

int KeptFrames::read_looks(Gop& gop, int first, int count) {
  delivered_.clear();
  int done = 0;
  for (Look look; done < count && next_look(look); ++done) {
    unpack_look(look.bytes, rows_, gop, first + done);
    delivered_.push_back(std::move(look));
  }
  return done;
}

bool KeptFrames::unread_looks(int count) {
  if (count > static_cast<int>(delivered_.size())) return false;
  for (; count > 0; --count) {
    again_.push_front(std::move(delivered_.back()));
    delivered_.pop_back();
  }
  return true;
}

}  // namespace trivelet::cli
