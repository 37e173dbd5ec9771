#include "apps/video/scene.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace trivelet::cli {

namespace {

constexpr int kBins = 32;
constexpr int kGrid = 96;  // samples along each side that are looked at, at most

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

SceneReader::SceneReader(VideoInput& video, bool cuts) : video_(video), enabled_(cuts), held_(video.info(), 1) {}

bool SceneReader::is_cut(const Gop& gop, int frame) {
  const PixelFormat& format = video_.info().format;
  const VolumeView v = gop.plane(0);
  const int offset = format.is_signed ? 1 << (format.bits - 1) : 0;
  const int step_y = std::max(1, v.shape.height / kGrid);
  const int step_x = std::max(1, v.shape.width / kGrid);
  std::array<int, kBins> before{};
  std::array<int, kBins> after{};
  double difference = 0;
  int samples = 0;
  for (int y = step_y / 2; y < v.shape.height; y += step_y)
    for (int x = step_x / 2; x < v.shape.width; x += step_x) {
      const int a = value(v, frame - 1, y, x, offset);
      const int b = value(v, frame, y, x, offset);
      const auto bin = [&](int s) {
        return static_cast<std::size_t>(std::clamp(format.bits >= 5 ? s >> (format.bits - 5) : s, 0, kBins - 1));
      };
      ++before[bin(a)];
      ++after[bin(b)];
      difference += std::abs(a - b);
      ++samples;
    }
  double moved = 0;
  for (std::size_t i = 0; i < kBins; ++i) moved += std::abs(before[i] - after[i]);
  moved /= 2.0 * samples;
  difference /= static_cast<double>(samples) * ((1 << format.bits) - 1);
  const bool cut = difference > 0.05 && moved > 0.2 && difference > 2.5 * usual_;
  if (!cut) {
    ++known_;
    usual_ += (difference - usual_) / std::min(known_, 12);
  }
  return cut;
}

bool SceneReader::read(Gop& gop) {
  if (!enabled_) return video_.read(gop);
  int n = 0;
  gop.set_frames(gop.capacity());
  if (holds_) {
    copy_frame(held_, 0, gop, n++);
    holds_ = false;
  }
  for (; n < gop.capacity() && video_.read_frame(gop, n); ++n) {
    if (n == 0 || !is_cut(gop, n)) continue;
    held_.set_frames(1);
    copy_frame(gop, n, held_, 0);
    holds_ = true;
    ++cuts_;
    usual_ = 0;
    known_ = 0;
    break;
  }
  gop.set_frames(n);
  return n > 0;
}

}  // namespace trivelet::cli
