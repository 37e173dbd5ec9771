#include "trivelet/scene_cuts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace trivelet {

namespace {

// Bins of the histogram: as wide as noise and slow changes of light, so that only another picture fills others.
constexpr int kBins = 32;
// Samples along each side that are looked at, at most: some thousands are enough for a histogram, and take no time
// beside the coding of the frame.
constexpr int kGrid = 96;
// A cut has all of these. One that is missed costs bytes in one GOP, one found in vain the heads of one GOP more.
constexpr double kLeastDifference = 0.05;  // mean, of the full range: below it even a cut has little to smear
constexpr double kLeastMoved = 0.2;     // share of samples in other bins: a pan moves them about, but not out of bins
constexpr double kMoreThanUsual = 2.5;  // times the mean difference in this scene: fast motion differs every time
constexpr int kUsualFrames = 12;        // over which that mean is taken: half a second

void copy_frame(const Gop& from, int a, Gop& to, int b) {
  for (int c = 0; c < from.components(); ++c) {
    const VolumeView in = from.plane(c);
    const MutableVolumeView out = to.plane(c);
    const std::size_t bytes = static_cast<std::size_t>(in.shape.width) * static_cast<std::size_t>(in.bytes_per_sample);
    for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(b, y), in.row(a, y), bytes);
  }
  to.times()[static_cast<std::size_t>(b)] = from.times()[static_cast<std::size_t>(a)];
}

int value(const VolumeView& v, int frame, int y, int x, int offset) {
  const std::byte* p = v.row(frame, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample;
  if (v.bytes_per_sample == 1)
    return (v.is_signed ? static_cast<std::int8_t>(*p) : static_cast<std::uint8_t>(*p)) + offset;
  std::uint16_t w = 0;
  std::memcpy(&w, p, 2);
  return (v.is_signed ? static_cast<std::int16_t>(w) : w) + offset;
}

}  // namespace

bool SceneCuts::begins_at(const Gop& gop, int index) {
  const VolumeView v = gop.plane(0);
  const int offset = format_.is_signed ? 1 << (format_.bits - 1) : 0;
  const int step_y = std::max(1, v.shape.height / kGrid);
  const int step_x = std::max(1, v.shape.width / kGrid);
  std::array<int, kBins> before{};
  std::array<int, kBins> after{};
  double difference = 0;
  int samples = 0;
  for (int y = step_y / 2; y < v.shape.height; y += step_y)
    for (int x = step_x / 2; x < v.shape.width; x += step_x) {
      const int a = value(v, index - 1, y, x, offset);
      const int b = value(v, index, y, x, offset);
      const auto bin = [&](int s) {
        return static_cast<std::size_t>(std::clamp(format_.bits >= 5 ? s >> (format_.bits - 5) : s, 0, kBins - 1));
      };
      ++before[bin(a)];
      ++after[bin(b)];
      difference += std::abs(a - b);
      ++samples;
    }
  double moved = 0;
  for (std::size_t i = 0; i < kBins; ++i) moved += std::abs(before[i] - after[i]);
  moved /= 2.0 * samples;
  difference /= static_cast<double>(samples) * ((1 << format_.bits) - 1);
  if (difference > kLeastDifference && moved > kLeastMoved && difference > kMoreThanUsual * usual_) {
    usual_ = 0;
    known_ = 0;
    return true;
  }
  ++known_;
  usual_ += (difference - usual_) / std::min(known_, kUsualFrames);
  return false;
}

SceneReader::SceneReader(const VideoInfo& info, FrameInput input)
    : input_(std::move(input)), detector_(info.format), held_(info, 1) {}

bool SceneReader::read(Gop& gop) {
  int n = 0;
  gop.set_frames(gop.capacity());
  if (holds_) {
    copy_frame(held_, 0, gop, n++);
    holds_ = false;
  }
  for (; n < gop.capacity() && input_(gop, n); ++n) {
    if (n == 0 || !detector_.begins_at(gop, n)) continue;
    held_.set_frames(1);
    copy_frame(gop, n, held_, 0);
    holds_ = true;
    ++cuts_;
    break;
  }
  gop.set_frames(n);
  return n > 0;
}

}  // namespace trivelet
