// Runs the searches for motion of several GOPs at once, with a thread that takes their results.

#include "gpu/motion/motion_ahead.h"

#include <algorithm>
#include <utility>

#include "codec/threads/trace.h"

namespace trivelet::gpu {
namespace {

constexpr std::size_t kFewestSearches = 2;  // an open GOP looks at the one before

}  // namespace

MotionAhead::MotionAhead(const StreamHeader& header, const BackendOptions& options, int device, std::size_t memory,
                         int wanted)
    : header_(header),
      device_(device),
      pool_(options.threads, options.workers),
      transform_(header_, pool_, options.simd, options.effort, options.keys_in_place),
      memory_of_one_(memory / kFewestSearches),
      most_(kFewestSearches),
      begun_(kMostSearches),
      found_(kMostSearches) {
  while (searches_.size() < most_) add_search();
  if (searches_.size() < kFewestSearches) {
    searches_.clear();
    most_ = 0;
    return;
  }
  const auto most = static_cast<std::size_t>(std::clamp(wanted, static_cast<int>(kFewestSearches), kMostSearches));
  most_ = std::clamp(memory / bytes_of_one(), kFewestSearches, most);
  if (options.workers.run) return;
  (void)worker_.try_begin([this] { run(); });
}

MotionAhead::~MotionAhead() {
  begun_.stop();
  found_.stop();
}

// Before the first search runs, because allocating device memory or locking pages would later wait for running
// searches.
void MotionAhead::reserve(std::uint64_t gops) {
  while (searches_.size() < most_ && searches_.size() < gops) add_search();
}

// One more, before the oldest in flight: it comes next. Where it finds no room, the one before was the last.
void MotionAhead::add_search() {
  std::unique_ptr<DeviceMotionSearch> search;
  try {
    search = std::make_unique<DeviceMotionSearch>(header_, device_, memory_of_one_);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kUnsupported) throw;
  }
  if (search && search->has_room())
    searches_.insert(searches_.begin() + static_cast<std::ptrdiff_t>(next_), std::move(search));
  else
    most_ = searches_.size();
}

bool MotionAhead::has_room() {
  if (in_flight_ == searches_.size() && searches_.size() < most_) add_search();
  return in_flight_ < searches_.size();
}

void MotionAhead::begin(const Gop& gop, const GopChoices& choices) {
  require(has_room(), ErrorKind::kInternal, "no search for motion is free: end one first");
  const trace::Span span("begin a search");
  DeviceMotionSearch* search = searches_[next_].get();
  const bool moves = may_move(header_, gop.frames(), choices);
  if (moves)
    search->begin(gop, choices.key, choices.key == GopKey::kOpen ? last_ : nullptr,
                  transform_.search_params(choices.step, choices.levels, before_may_stay_));
  else
    search->keep(gop);
  before_may_stay_ = choices.motion == Motion::kAuto;
  next_ = (next_ + 1) % searches_.size();
  last_ = search;
  ++in_flight_;
  (void)begun_.push({gop.frames(), choices, nullptr, search});
}

void MotionAhead::wait_uploaded() const noexcept {
  if (last_) last_->wait_uploaded();
}

void MotionAhead::find(Found& found, const MotionTransform& transform, ThreadPool& pool) {
  found.motion = nullptr;
  if (!may_move(header_, found.frames, found.choices)) return;
  GopMotion motion = [&] {
    const trace::Span span("wait for a search");
    return found.search->end(&pool);
  }();
  const trace::Span span("code vectors");
  found.motion = transform.with_sections(std::move(motion), found.choices.step);
}

bool MotionAhead::close(Found& found, ThreadPool& pool) {
  const trace::Span span("close a GOP");
  const bool turns = found.choices.search_key(false) == found.choices.key;
  found.choices.key = found.choices.key_behind(false);
  if (turns) {
    found.motion = MotionTransform(header_, pool, SimdLevel::kBest)
                       .with_sections(without_before(*found.motion), found.choices.step);
    return false;
  }
  found.motion = nullptr;
  const bool moves = may_move(header_, found.frames, found.choices);
  if (moves) found.search->again(found.choices.key);
  return moves;
}

void MotionAhead::close_end(Found& found, ThreadPool& pool) {
  find(found, MotionTransform(header_, pool, SimdLevel::kBest), pool);
}

void MotionAhead::run() try {
  while (std::optional<Found> found = begun_.pop()) {
    find(*found, transform_, pool_);
    if (!found_.push(std::move(*found))) return;
  }
} catch (...) {
  found_.close(std::current_exception());
}

bool MotionAhead::is_found() {
  if (!worker_.has_thread() || in_flight_ == 0) return false;
  if (!ready_) ready_ = found_.try_pop();
  return ready_.has_value();
}

MotionAhead::Found MotionAhead::end() {
  if (!ready_) ready_ = worker_.has_thread() ? found_.pop() : begun_.pop();
  require(ready_.has_value(), ErrorKind::kInternal, "no search for motion was begun");
  Found found = *std::exchange(ready_, std::nullopt);
  if (!worker_.has_thread()) find(found, transform_, pool_);
  return found;
}

}  // namespace trivelet::gpu
