// Bytes that the stretches before a GOP leave to it (rate_bound.h).
#include "codec/rate/rate_bound.h"

#include <algorithm>

#include "codec/format/container.h"

namespace trivelet {

namespace {

// What the GOPs before may take in advance, as a share of the rate: then a GOP that costs much, as one behind a scene
// cut, has more than the rate gives for its time, and those behind it in the window have 1 - kAhead of that or more.
// With 1 a single GOP could take the bits of a whole window.
constexpr double kAhead = 0.25;

}  // namespace

RateBound::RateBound(const VideoInfo& video, double bits_per_second, double window)
    : video_(video), bytes_per_second_(bits_per_second / 8), window_(window) {}

// Times that are unknown or overlap those before are replaced by the frame rate.
RateBound::Span RateBound::span_of(const std::vector<FrameTime>& frames) const {
  const double unit = video_.time_base.value();
  const double begin = std::max(static_cast<double>(frames.front().pts) * unit, end_);
  const double end = static_cast<double>(end_of(frames)) * unit;
  return {begin, end > begin ? end : begin + static_cast<double>(frames.size()) / video_.frame_rate.value()};
}

double RateBound::most(double span) const {
  return bytes_per_second_ * (span + kAhead * std::max(0.0, window_ - span));
}

std::uint64_t RateBound::bytes_allowed(const std::vector<FrameTime>& frames) const {
  const auto [begin, end] = span_of(frames);
  double allowed = most(end - begin);
  for (const Start& start : recent_)
    allowed = std::min(allowed, most(end - start.seconds) - static_cast<double>(written_ - start.bytes));
  allowed = std::min(allowed, older_ + bytes_per_second_ * end - static_cast<double>(written_));
  return allowed > 0 ? static_cast<std::uint64_t>(allowed) : 0;
}

void RateBound::add(const std::vector<FrameTime>& frames, std::uint64_t bytes) {
  const auto [begin, end] = span_of(frames);
  recent_.push_back({begin, written_});
  written_ += bytes;
  end_ = end;
  for (; !recent_.empty() && end - recent_.front().seconds >= window_; recent_.pop_front())
    older_ = std::min(older_, static_cast<double>(recent_.front().bytes) - bytes_per_second_ * recent_.front().seconds);
}

}  // namespace trivelet
