// Decodes stretches of a film, keeps their frames, and answers requests for them.

#include "apps/cluster/kept_frames.h"

#include <algorithm>

#include "apps/cli/cli.h"
#include "apps/cli/log.h"
#include "apps/cluster/sent_frames.h"

namespace trivelet::cli {

namespace {

/// The time of the only frame, and the rows of its first component that SceneCuts compares.
void pack_look(const Gop& gop, const SceneCuts::Rows& rows, MessageWriter& message) {
  message.signed_number(gop.times()[0].pts).signed_number(gop.times()[0].duration);
  const VolumeView v = gop.plane(0);
  for (int y = rows.first; y < v.shape.height; y += rows.step) message.append(v.row(0, y), v.row_bytes());
}

void unpack_look(MessageReader& message, const SceneCuts::Rows& rows, Gop& gop, int frame) {
  message.restart();
  (void)message.number();  // its stretch
  FrameTime& time = gop.times()[static_cast<std::size_t>(frame)];
  time.pts = message.signed_number();
  time.duration = message.signed_number();
  const MutableVolumeView v = gop.plane(0);
  for (int y = rows.first; y < v.shape.height; y += rows.step) message.read(v.row(frame, y), v.row_bytes());
}

}  // namespace

KeptFrames::KeptFrames(Processes& processes, std::string name, std::unique_ptr<io::FrameReader> reader,
                       std::size_t most_frames)
    : processes_(processes),
      name_(std::move(name)),
      reader_(std::move(reader)),
      most_frames_(most_frames),
      rows_(SceneCuts::rows(reader_->info().height)),
      workers_(processes),
      decoded_(static_cast<std::size_t>(processes.size())) {}

KeptFrames::~KeptFrames() {
  if (server_.has_thread() && processes_.rank() == 0) end();
}

void KeptFrames::start() {
  decoder_.begin([this] { decode(); });
  server_.begin([this] { serve(); });
}

void KeptFrames::stand_aside(Processes& processes) {
  MessageWriter(MessageKind::kEnded).number(0).send(processes, 0, Channel::kLooks);
  while (MessageReader(processes.receive(Channel::kRequests)).kind() != MessageKind::kFinish) {
  }
}

// ------------------------------------------------------------------------------------------- decoding and keeping
// frames

void KeptFrames::decode() {
  std::uint64_t decoded = 0;
  run_and_report(processes_, Channel::kLooks, [&] {
    const auto step = static_cast<std::size_t>(processes_.size());
    for (auto s = static_cast<std::size_t>(processes_.rank()); s < reader_->stretches(); s += step) {
      reader_->go_to(s);
      std::uint64_t frames = 0;
      while (keep({s, frames})) ++frames;
      decoded += frames;
      MessageWriter(MessageKind::kStretchEnd).number(s).send(processes_, 0, Channel::kLooks);
    }
    for (const std::string& remark : reader_->remarks()) log::warn("{}: {}", name_, in_options(remark));
  });
  MessageWriter(MessageKind::kEnded).number(decoded).send(processes_, 0, Channel::kLooks);
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
  MessageWriter look(MessageKind::kLook);
  look.number(place.first);
  pack_look(*frame, rows_, look);
  {
    const std::lock_guard lock(mutex_);
    kept_.emplace(place, frame);
  }
  look.send(processes_, 0, Channel::kLooks);
  return true;
}

// Answers requests until the end. Only frames that the first process has seen are requested, so all of them exist.
void KeptFrames::serve() {
  for (;;) {
    MessageReader request(processes_.receive(Channel::kRequests));
    if (request.kind() == MessageKind::kFinish) break;
    if (request.kind() == MessageKind::kLocate) {
      const std::uint64_t first = request.number();
      locate(request.from(), first, request.number());
    } else {
      const int asker = static_cast<int>(request.number());
      const std::uint64_t at = request.number();
      const std::uint64_t stretch = request.number();
      const std::uint64_t first = request.number();
      hand_over(asker, at, {stretch, first}, request.number());
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
    MessageWriter request(MessageKind::kHandOver);
    request.number(static_cast<std::uint64_t>(asker)).number(done);
    {
      const std::lock_guard lock(mutex_);
      const auto behind = std::upper_bound(begins_.begin(), begins_.end(), first + done);
      stretch = static_cast<std::uint64_t>(behind - begins_.begin()) - 1;
      const std::uint64_t here =
          behind == begins_.end() ? count - done : std::min(count - done, *behind - first - done);
      request.number(stretch).number(first + done - begins_[static_cast<std::size_t>(stretch)]).number(here);
      done += here;
    }
    request.send(processes_, static_cast<int>(stretch % static_cast<std::uint64_t>(processes_.size())),
                 Channel::kRequests);
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
    MessageWriter m(MessageKind::kFrame);
    m.number(at + i);
    const bool handed = frame && processes_.shares_memory(asker);
    if (frame && !handed) pack_frame(*frame, 0, m);
    m.send(processes_, asker, Channel::kFrames, handed ? std::move(frame) : nullptr);
  }
}

void KeptFrames::read(Gop& gop, std::uint64_t first_frame) {
  MessageWriter(MessageKind::kLocate)
      .number(first_frame)
      .number(static_cast<std::uint64_t>(gop.frames()))
      .send(processes_, 0, Channel::kRequests);
  for (int f = 0; f < gop.frames(); ++f) {
    MessageReader frame(processes_.receive(Channel::kFrames));
    const int at = static_cast<int>(frame.number());
    if (const std::shared_ptr<Gop> handed = frame.object<Gop>())
      copy_frame(*handed, 0, gop, at);
    else
      unpack_frame(frame, gop, at);
  }
}

// -------------------------------------------------------------------------------------------------- finding scene cuts

FramesInput KeptFrames::looks() {
  return {[this](Gop& gop, int first, int count) { return read_looks(gop, first, count); },
          [this](int count) { return unread_looks(count); }};
}

void KeptFrames::stop_looking() {
  MessageWriter(MessageKind::kStop).send(processes_, processes_.rank(), Channel::kLooks);
}

const std::vector<std::uint64_t>& KeptFrames::end() {
  if (workers_.all_ended()) return decoded_;
  MessageWriter(MessageKind::kFinish).send_to_all(processes_, Channel::kRequests);
  while (!workers_.all_ended()) try {
      receive_look();
      arrived_.clear();
    } catch (...) {  // repeated, or too late
    }
  return decoded_;
}

void KeptFrames::receive_look() {
  auto message = std::make_unique<MessageReader>(processes_.receive(Channel::kLooks));
  if (message->kind() == MessageKind::kStop) throw Stopped();
  if (!workers_.take(*message)) return;
  if (message->kind() == MessageKind::kEnded) {
    decoded_[static_cast<std::size_t>(message->from())] = message->number();
    return;
  }
  const std::uint64_t stretch = message->number();
  if (message->kind() == MessageKind::kStretchEnd) message.reset();
  arrived_[stretch].push_back(std::move(message));
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
    if (look) {
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
    unpack_look(*look, rows_, gop, first + done);
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
