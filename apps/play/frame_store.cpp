// The thread that decodes GOPs around the position of a player.

#include "apps/play/frame_store.h"

#ifdef __linux__
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>

#include "codec/base/bytes.h"
#include "codec/base/stream_header.h"
#include "codec/format/stream_layout.h"

namespace trivelet::play {

namespace {

constexpr std::size_t kAhead = 5;                           // GOPs, with the one that is shown: seconds of other work
constexpr std::size_t kLeastAhead = 2;                      // of large ones: one is shown, one is being decoded
constexpr std::size_t kMostBytes = std::size_t{768} << 20;  // of decoded GOPs that are kept

std::size_t bytes_of(const DecodedGop& decoded) {
  return cli::frame_bytes(decoded.info) * static_cast<std::size_t>(decoded.gop.capacity());
}

/// A GOP with a damaged header, as the index describes it.
std::vector<FrameTime> times_between(const GopInfo& gop) {
  std::vector<FrameTime> times;
  constexpr double kMost = 1e15;  // also of indices that lie
  const double begin = std::clamp(static_cast<double>(gop.begin_pts), -kMost, kMost);
  const double length = std::clamp(static_cast<double>(gop.end_pts) - begin, 0.0, kMost);
  const auto at = [&](int i) { return static_cast<std::int64_t>(begin + length * i / gop.frames); };
  for (int i = 0; i < gop.frames; ++i) times.push_back({at(i), at(i + 1) - at(i)});
  return times;
}

}  // namespace

FrameStore::FrameStore(const std::string& path, const DecoderParams& params, std::shared_ptr<const Backend> backend,
                       bool budget)
    : params_(params), backend_(std::move(backend)), file_(cli::open_stream_file(path)), budget_(false, 0, 0, 0) {
  require(file_.source->seekable(), ErrorKind::kUnsupported,
          "a pipe cannot be played, because seeking is not possible");
  read_times();
  budget_ = Budget(budget, stream_.layers, most_reduce_, most_temporal_);
  worker_.begin([this] { run(); });
}

FrameStore::~FrameStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
}

void FrameStore::read_times() {
  std::uint64_t bytes_read = 0;
  StreamInput in(*file_.source, bytes_read);
  StreamLayout layout;
  layout.read(in);
  require(!layout.info.gops.empty(), ErrorKind::kBadStream, "the stream holds no frames");
  const Rational base = layout.header.video.time_base;
  const Rational rate = layout.header.video.frame_rate;
  for (const GopInfo& gop : layout.info.gops) {
    std::vector<FrameTime> times = times_between(gop);
    try {
      times = cli::read_gop_header(in, layout.header, gop).times;
    } catch (const Error& e) {  // the decoder says it again when it comes there
      if (e.kind() != ErrorKind::kBadStream) throw;
    }
    first_frames_.push_back(times_.size());
    for (const FrameTime& t : times) {
      const bool timed = base.num > 0 && base.den > 0 && rate.num > 0;
      const double begin = timed ? static_cast<double>(t.pts) * base.value() : static_cast<double>(times_.size()) / 25;
      const double length = timed ? static_cast<double>(t.duration) * base.value() : 1.0 / 25;
      // Times that do not grow could not be sought.
      times_.push_back(times_.empty() ? begin : std::max(begin, times_.back() + 1e-6));
      end_ = times_.back() + std::max(length, 1e-6);
    }
  }
  const StreamHeader& h = layout.header;
  most_reduce_ = h.max_reduce() - h.dropped_spatial;
  most_temporal_ = h.layout == Layout::kDyadic ? 0 : h.temporal_levels - h.dropped_temporal;
  stream_ = layout.info;
}

std::size_t FrameStore::frame_at(double time) const {
  constexpr double kRounding = 1e-4;
  const auto next = std::upper_bound(times_.begin(), times_.end(), time + kRounding);
  return next == times_.begin() ? 0 : static_cast<std::size_t>(next - times_.begin()) - 1;
}

std::size_t FrameStore::gop_of(std::size_t frame) const {
  const auto next = std::upper_bound(first_frames_.begin(), first_frames_.end(), frame);
  return static_cast<std::size_t>(next - first_frames_.begin()) - 1;
}

double FrameStore::length_of(std::size_t gop) const {
  return (gop + 1 < first_frames_.size() ? times_[first_frames_[gop + 1]] : end_) - times_[first_frames_[gop]];
}

void FrameStore::want(const Wanted& wanted) {
  const std::size_t gop = gop_of(frame_at(wanted.time));
  {
    const std::lock_guard lock(mutex_);
    const bool same_quality = wanted.quality == wanted_.quality;
    const bool same = asked_ && same_quality && gop == wanted_gop_ && (wanted.speed == 0) == (wanted_.speed == 0);
    if (!same_quality) seconds_a_gop_ = 0;
    asked_ = true;
    wanted_ = wanted;
    wanted_gop_ = gop;
    if (same) return;
  }
  changed_.notify_all();
}

std::shared_ptr<const DecodedGop> FrameStore::find(std::size_t gop) const {
  const std::lock_guard lock(mutex_);
  const auto found = decoded_.find(gop);
  return found == decoded_.end() ? nullptr : found->second;
}

std::shared_ptr<const DecodedGop> FrameStore::find_before(std::size_t gop) const {
  const std::lock_guard lock(mutex_);
  for (auto next = decoded_.upper_bound(gop); next != decoded_.begin();)
    if ((--next)->second->gop.frames() > 0) return next->second;
  return nullptr;
}

// True if the GOP is decoded in sufficient quality; the mutex is held. While the clock runs, what the budget chose is
// sufficient.
bool FrameStore::is_good(std::size_t gop) const {
  const auto found = decoded_.find(gop);
  if (found == decoded_.end() || !(found->second->wanted == wanted_.quality)) return false;
  return wanted_.speed > 0 || found->second->quality == wanted_.quality;
}

bool FrameStore::is_ready(std::size_t gop) const {
  const std::lock_guard lock(mutex_);
  return is_good(gop);
}

void FrameStore::wait_for(std::size_t gop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || is_good(gop); });
  if (error_) std::rethrow_exception(error_);
}

void FrameStore::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

int FrameStore::budget_level() const {
  const std::lock_guard lock(mutex_);
  return budget_.level();
}

Work FrameStore::work() const {
  const std::lock_guard lock(mutex_);
  return work_;
}

std::vector<std::string> FrameStore::damage() const {
  const std::lock_guard lock(mutex_);
  return damage_;
}

// The same damage is found each time that a GOP is decoded.
void FrameStore::note_damage(const std::vector<std::string>& lines) {
  constexpr std::size_t kMostLines = 100;
  const std::lock_guard lock(mutex_);
  for (const std::string& line : lines)
    if (damage_.size() < kMostLines && std::find(damage_.begin(), damage_.end(), line) == damage_.end())
      damage_.push_back(line);
}

// GOPs that are decoded beforehand, with the one that is shown; the mutex is held.
std::size_t FrameStore::most_ahead() const {
  std::size_t largest = 0;
  for (const auto& [index, kept] : decoded_) largest = std::max(largest, bytes_of(*kept));
  return largest == 0 ? kLeastAhead : std::clamp(kMostBytes / largest, kLeastAhead, kAhead);
}

// GOPs to decode until this one is done, if decoding continues from the last one or starts at a closed GOP.
std::size_t FrameStore::cost(std::size_t gop, const Quality& quality) const {
  const std::size_t from_closed = gop > 0 && stream_.gops[gop].key == GopKey::kOpen ? 2 : 1;  // keys alone take little
  const bool behind = decoder_ && decoder_quality_ == quality && decoder_next_ <= gop;
  return behind ? std::min(from_closed, gop - decoder_next_ + 1) : from_closed;
}

// The next GOP to decode; the mutex is held. False if all wanted GOPs are decoded.
bool FrameStore::choose(std::size_t& gop) const {
  if (!asked_) return false;
  const std::size_t end = std::min(wanted_gop_ + most_ahead(), stream_.gops.size());
  for (gop = wanted_gop_; gop < end && is_good(gop); ++gop) {
  }
  if (gop == end) return false;
  const bool runs = wanted_.speed > 0 && !wanted_.waiting;
  const Quality quality = wanted_.speed > 0 ? budget_.apply(wanted_.quality) : wanted_.quality;
  // What would be over before it is there is passed by; if all would, the one that is least late is next.
  const auto late = [&](std::size_t g) {
    const double there = wanted_.time + static_cast<double>(cost(g, quality)) * seconds_a_gop_ * wanted_.speed;
    return there - times_[first_frames_[g]] - length_of(g);
  };
  for (std::size_t g = gop + 1; runs && g < end && late(gop) > 0; ++g)
    if (late(g) < late(gop)) gop = g;
  // GOPs between the decoder's position and the wanted one must be decoded anyway.
  if (decoder_ && decoder_quality_ == quality && decoder_next_ < gop && gop - decoder_next_ < cost(gop, quality))
    gop = decoder_next_;
  return true;
}

// Decoding is for later, drawing and sound are for now, so it gets a lower priority. On Linux each thread has a
// priority, and the threads that a decoder starts inherit it.
void FrameStore::run() {
#ifdef __linux__
  constexpr int kNice = 5;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), getpriority(PRIO_PROCESS, 0) + kNice);
#endif
  try {
    for (;;) {
      std::size_t gop = 0;
      Wanted wanted;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || choose(gop); });
        if (stopping_) return;
        wanted = wanted_;
      }
      decode(gop, wanted);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

void FrameStore::begin(std::size_t gop, const Quality& quality) {
  DecoderParams params = params_;
  params.reduce = quality.reduce;
  params.temporal_reduce = quality.temporal;
  params.max_layers = quality.layers;
  params.first_frame = stream_.gops[gop].first_frame;
  params.keep_partial = true;  // a film continues after damage
  decoder_.reset();            // it reads ahead from the same source
  file_.source->seek(0);
  if (!(decoder_quality_ == quality)) spare_.clear();
  decoder_ = std::make_unique<Decoder>(*file_.source, params, backend_.get());
  decoder_quality_ = quality;
  decoder_next_ = gop;
}

Gop FrameStore::take_memory() {
  if (spare_.empty()) return decoder_->make_gop();
  Gop gop = std::move(spare_.back());
  spare_.pop_back();
  return gop;
}

void FrameStore::decode(std::size_t gop, const Wanted& wanted) {
  const auto begun = std::chrono::steady_clock::now();
  Quality quality = wanted.quality;
  if (wanted.speed > 0) {
    const std::lock_guard lock(mutex_);
    quality = budget_.apply(quality);
  }
  if (!decoder_ || !(decoder_quality_ == quality) || decoder_next_ != gop) begin(gop, quality);
  const auto counted = [](const CodecStats& s) { return s.gops + s.passed_gops; };
  const std::uint64_t before = counted(decoder_->stats());
  auto decoded = std::make_shared<DecodedGop>();
  decoded->number = ++numbers_;
  decoded->wanted = wanted.quality;
  decoded->quality = quality;
  decoded->info = decoder_->output();
  decoded->gop = take_memory();
  std::size_t found = stream_.gops.size();
  if (decoder_->exchange(decoded->gop)) {
    const Rational base = decoded->info.time_base;
    const double time = static_cast<double>(decoded->gop.times()[0].pts) * base.value();
    const bool timed = base.num > 0 && base.den > 0 && decoded->info.frame_rate.num > 0;
    found = timed ? std::max(gop, gop_of(frame_at(time))) : gop;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  decoded->seconds = seconds;
  const std::uint64_t gops = counted(decoder_->stats()) - before;
  note_damage(decoder_->stats().damage);
  double length = 0;
  for (std::size_t g = gop; g <= found && g < stream_.gops.size(); ++g) length += length_of(g);
  decoder_next_ = found + 1;
  learn(wanted, seconds, gops, length);  // before anyone sees the frames, and begins to play
  // At a reduced rate short GOPs may have no frame: they are there, and empty.
  for (; gop < found && gop < stream_.gops.size(); ++gop) {
    auto empty = std::make_shared<DecodedGop>();
    empty->wanted = wanted.quality;
    empty->quality = quality;
    keep(gop, std::move(empty));
  }
  if (found < stream_.gops.size()) keep(found, std::move(decoded));
}

// Records the time of decoding `length` seconds of the stream, for the budget and to predict late GOPs.
void FrameStore::learn(const Wanted& wanted, double seconds, std::uint64_t gops, double length) {
  const std::lock_guard lock(mutex_);
  work_.gops += gops;
  work_.seconds += seconds;
  if (!(wanted.quality == wanted_.quality)) return;
  seconds_a_gop_ = seconds / static_cast<double>(std::max<std::uint64_t>(gops, 1));
  const bool ahead = decoder_next_ >= std::min(wanted_gop_ + most_ahead(), stream_.gops.size());
  const int level = budget_.level();
  if (wanted.speed > 0 && gops == 1) budget_.decoded(seconds, length / wanted.speed, ahead);
  if (budget_.level() != level) seconds_a_gop_ = 0;
}

// What is farthest from the place that is shown, first; the mutex is held.
void FrameStore::drop_farthest() {
  const auto distance = [this](std::size_t g) { return g > wanted_gop_ ? g - wanted_gop_ : wanted_gop_ - g; };
  const auto first = decoded_.begin();
  const auto last = std::prev(decoded_.end());
  const auto farthest = distance(first->first) >= distance(last->first) ? first : last;
  DecodedGop& dropped = *farthest->second;
  decoded_bytes_ -= bytes_of(dropped);
  // Its memory is used again, unless someone looks at it: new memory costs as much as decoding a good part of it.
  if (farthest->second.use_count() == 1 && dropped.quality == decoder_quality_ && dropped.gop.capacity() > 0 &&
      spare_.size() < 2)
    spare_.push_back(std::move(dropped.gop));
  decoded_.erase(farthest);
}

void FrameStore::keep(std::size_t gop, std::shared_ptr<DecodedGop> decoded) {
  {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<DecodedGop>& place = decoded_[gop];
    if (place) decoded_bytes_ -= bytes_of(*place);
    decoded_bytes_ += bytes_of(*decoded);
    place = std::move(decoded);
    while (decoded_bytes_ > kMostBytes && decoded_.size() > most_ahead()) drop_farthest();
  }
  changed_.notify_all();
}

}  // namespace trivelet::play
