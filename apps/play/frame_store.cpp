#include "apps/play/frame_store.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "codec/bytes.h"
#include "codec/container.h"
#include "codec/stream_layout.h"

namespace trivelet::play {

namespace {

constexpr std::size_t kAhead = 3;                           // GOPs: one is shown, one waits, one is being decoded
constexpr std::size_t kMostBytes = std::size_t{768} << 20;  // of decoded GOPs that are kept

std::size_t bytes_of(const DecodedGop& decoded) {
  return cli::frame_bytes(decoded.info) * static_cast<std::size_t>(decoded.gop.capacity());
}

}  // namespace

FrameStore::FrameStore(const std::string& path, const DecoderParams& params, std::shared_ptr<const Backend> backend)
    : params_(params), backend_(std::move(backend)), file_(cli::open_stream_file(path)) {
  require(file_.source->seekable(), ErrorKind::kUnsupported, "a pipe cannot be played, for it cannot be sought in");
  read_times();
  thread_ = std::thread([this] { work(); });
}

FrameStore::~FrameStore() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
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
    const GopHeader head = cli::read_gop_header(in, layout.header, gop);
    first_frames_.push_back(times_.size());
    for (int i = 0; i < gop.frames; ++i) {
      const FrameTime& t = head.times[static_cast<std::size_t>(i)];
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

void FrameStore::want(std::size_t gop, const Quality& quality) {
  {
    const std::lock_guard lock(mutex_);
    if (gop == wanted_ && quality == quality_) return;
    wanted_ = gop;
    quality_ = quality;
  }
  changed_.notify_all();
}

std::shared_ptr<const DecodedGop> FrameStore::find(std::size_t gop) const {
  const std::lock_guard lock(mutex_);
  const auto found = decoded_.find(gop);
  return found == decoded_.end() ? nullptr : found->second;
}

bool FrameStore::is_ready(std::size_t gop) const {
  const std::lock_guard lock(mutex_);
  const auto found = decoded_.find(gop);
  return found != decoded_.end() && found->second->quality == quality_;
}

void FrameStore::wait_for(std::size_t gop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] {
    const auto found = decoded_.find(gop);
    return error_ || (found != decoded_.end() && found->second->quality == quality_);
  });
  if (error_) std::rethrow_exception(error_);
}

void FrameStore::check() const {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
}

// The next GOP that is not there as it is wanted; the mutex is held.
bool FrameStore::choose(std::size_t& gop) const {
  for (gop = wanted_; gop < std::min(wanted_ + kAhead, stream_.gops.size()); ++gop) {
    const auto found = decoded_.find(gop);
    if (found == decoded_.end() || !(found->second->quality == quality_)) return true;
  }
  return false;
}

void FrameStore::work() {
  try {
    for (;;) {
      std::size_t gop = 0;
      Quality quality;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || choose(gop); });
        if (stopping_) return;
        quality = quality_;
      }
      decode(gop, quality);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
}

void FrameStore::decode(std::size_t gop, const Quality& quality) {
  const auto begun = std::chrono::steady_clock::now();
  if (!decoder_ || !(decoder_quality_ == quality) || decoder_next_ != gop) {
    DecoderParams params = params_;
    params.reduce = quality.reduce;
    params.temporal_reduce = quality.temporal;
    params.max_layers = quality.layers;
    params.first_frame = stream_.gops[gop].first_frame;
    decoder_.reset();  // it reads ahead from the same source
    file_.source->seek(0);
    decoder_ = std::make_unique<Decoder>(*file_.source, params, backend_.get());
    decoder_quality_ = quality;
    decoder_next_ = gop;
  }
  auto decoded = std::make_shared<DecodedGop>();
  decoded->quality = quality;
  decoded->info = decoder_->output();
  decoded->gop = decoder_->make_gop();
  std::size_t found = stream_.gops.size();
  if (decoder_->pull(decoded->gop)) {
    const Rational base = decoded->info.time_base;
    const double time = static_cast<double>(decoded->gop.times()[0].pts) * base.value();
    const bool timed = base.num > 0 && base.den > 0 && decoded->info.frame_rate.num > 0;
    found = timed ? std::max(gop, gop_of(frame_at(time))) : gop;
  }
  decoded->seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  // At a reduced rate short GOPs may have no frame: they are there, and empty.
  for (; gop < found && gop < stream_.gops.size(); ++gop) {
    auto empty = std::make_shared<DecodedGop>();
    empty->quality = quality;
    keep(gop, std::move(empty));
  }
  decoder_next_ = found + 1;
  if (found < stream_.gops.size()) keep(found, std::move(decoded));
}

void FrameStore::keep(std::size_t gop, std::shared_ptr<const DecodedGop> decoded) {
  {
    const std::lock_guard lock(mutex_);
    decoded_[gop] = std::move(decoded);
    std::size_t bytes = 0;
    for (const auto& [index, kept] : decoded_) bytes += bytes_of(*kept);
    while (bytes > kMostBytes && decoded_.size() > kAhead + 1) {
      const auto distance = [this](std::size_t g) { return g > wanted_ ? g - wanted_ : wanted_ - g; };
      const auto first = decoded_.begin();
      const auto last = std::prev(decoded_.end());
      const auto farthest = distance(first->first) >= distance(last->first) ? first : last;
      bytes -= bytes_of(*farthest->second);
      decoded_.erase(farthest);
    }
  }
  changed_.notify_all();
}

}  // namespace trivelet::play
