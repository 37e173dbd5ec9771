#include "codec/step_sample.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "codec/draw.h"

namespace trivelet {

namespace {

constexpr int kBlocks = 2;       // a window is so many code blocks wide: one of chroma then is whole, too
constexpr int kWindowDraws = 8;  // a fifth of 1080p
constexpr int kLeastOf = 24;     // windows; of fewer those drawn would be more than a third
constexpr double kByActivity = 0.85;

int sample_at(const VolumeView& v, int frame, int y, int x) {
  const std::byte* row = v.row(frame, y);
  if (v.bytes_per_sample == 1)
    return v.is_signed ? reinterpret_cast<const std::int8_t*>(row)[x] : reinterpret_cast<const std::uint8_t*>(row)[x];
  return v.is_signed ? reinterpret_cast<const std::int16_t*>(row)[x] : reinterpret_cast<const std::uint16_t*>(row)[x];
}

// About what the samples take, from differences along rows and time at once: bits of them, in some rows of some frames.
double activity(const VolumeView& v, int bits, int y0, int x0, int height, int width) {
  constexpr int kFrames = 4;
  constexpr int kRows = 4;
  const double unit = std::exp2(bits - 7);
  double sum = 0;
  for (int t = 0; t < v.shape.frames; t += kFrames)
    for (int y = y0; y < y0 + height; y += kRows)
      for (int x = x0; x + 1 < x0 + width; ++x) {
        const int next = std::min(t + 1, v.shape.frames - 1);
        int d = sample_at(v, t, y, x) - sample_at(v, t, y, x + 1);
        if (next > t) d -= sample_at(v, next, y, x) - sample_at(v, next, y, x + 1);
        sum += std::log2(1 + std::abs(d) / unit);
      }
  return sum;
}

}  // namespace

struct StepSample::Window {
  StreamHeader header;
  Gop samples;
  std::unique_ptr<GopEncoder> coder;
  double weight = 0;
  bool coded = false;
};

StepSample::StepSample(const StreamHeader& header, const Gop& gop, SimdLevel simd) {
  const int side = kBlocks * header.block_size();
  const VideoInfo& video = header.video;
  const int columns = (video.width + side - 1) / side;
  const int rows = (video.height + side - 1) / side;
  if (columns * rows < kLeastOf) return;
  std::vector<double> activities;
  std::vector<double> sizes;
  const auto extent = [side](int i, int length) { return std::min(side, length - i * side); };
  for (int i = 0; i < rows * columns; ++i) {
    const int height = extent(i / columns, video.height);
    const int width = extent(i % columns, video.width);
    activities.push_back(
        activity(gop.plane(0), video.format.bits, i / columns * side, i % columns * side, height, width));
    sizes.push_back(static_cast<double>(height) * width);
  }
  for (const Drawn& d : draw(activities, sizes, kByActivity, kWindowDraws)) {
    const int row = static_cast<int>(d.which) / columns;
    const int column = static_cast<int>(d.which) % columns;
    auto w = std::make_unique<Window>();
    w->header = header;
    w->header.video.width = extent(column, video.width);
    w->header.video.height = extent(row, video.height);
    w->weight = d.weight;
    std::vector<FrameView> frames(static_cast<std::size_t>(gop.frames()));
    for (int f = 0; f < gop.frames(); ++f)
      for (int c = 0; c < gop.components(); ++c) {
        const VolumeView v = gop.plane(c);
        const bool chroma = video.format.is_chroma(c);
        const int y = row * side >> (chroma ? video.format.log2_chroma_h : 0);
        const int x = column * side >> (chroma ? video.format.log2_chroma_w : 0);
        frames[static_cast<std::size_t>(f)].planes[static_cast<std::size_t>(c)] = {
            v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample, v.row_stride};
      }
    w->samples = Gop(w->header.video, frames);
    w->coder = cpu_backend().make_encoder(w->header, {1, simd});
    windows_.push_back(std::move(w));
  }
}

StepSample::~StepSample() = default;

StepSample::Amounts StepSample::at(const GopChoices& choices, ThreadPool& pool) {
  std::vector<Amounts> of_windows(windows_.size());
  GopChoices choice = choices;
  choice.passes = true;
  pool.parallel_for(static_cast<int>(windows_.size()), [&](int i, int) {
    Window& w = *windows_[static_cast<std::size_t>(i)];
    w.coded ? w.coder->push_again(w.samples, choice) : w.coder->push(w.samples, choice);
    w.coded = true;
    CodedGop coded;
    require(w.coder->pull(coded), ErrorKind::kInternal, "the backend lost a GOP");
    const RateControl control(w.header, coded);
    const Cuts without_last = control.planes(1);
    Amounts& a = of_windows[static_cast<std::size_t>(i)];
    a.bytes = w.weight * static_cast<double>(control.body_bytes(control.complete()));
    a.bytes_without_last = w.weight * static_cast<double>(control.body_bytes(without_last));
    a.error = w.weight * control.error(control.complete());
    a.error_without_last = w.weight * control.error(without_last);
  });
  Amounts sum;
  for (const Amounts& a : of_windows) {
    sum.bytes += a.bytes;
    sum.bytes_without_last += a.bytes_without_last;
    sum.error += a.error;
    sum.error_without_last += a.error_without_last;
  }
  return sum;
}

}  // namespace trivelet
