// Draws and codes windows of a GOP to estimate rate and error at a step (step_sample.h).
#include "codec/measure/step_sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "codec/base/draw.h"
#include "codec/measure/activity.h"

namespace trivelet {

namespace {

constexpr int kWindowDraws = 6;  // windows of a code block: 1/20 of a 1080p picture, but about 1/7 of its bytes
constexpr int kLeastOf = 24;     // minimum number of windows; of fewer the draws would be more than a quarter
constexpr double kByActivity = 0.85;
constexpr int kLeastSide = 64;  // minimum; borders cost more in smaller windows

}  // namespace

// ------------------------------------------------------------------------------------------------------------ amounts

StepAmounts::StepAmounts(const RateControl& control, double coded_with, int finest)
    : step(std::ldexp(coded_with, finest)) {
  RateControl::Amounts amounts = control.amounts_of_planes(finest, kSteps);
  bytes = std::move(amounts.bytes);
  errors = std::move(amounts.errors);
}

void StepAmounts::add(const StepAmounts& others, double weight) {
  step = others.step;
  for (std::size_t i = 0; i < kSteps; ++i) {
    bytes[i] += weight * others.bytes[i];
    errors[i] += weight * others.errors[i];
  }
}

double StepAmounts::at(const std::vector<double>& amounts, double wanted) const {
  constexpr double kNothing = 1e-9;
  const double octaves = std::log2(wanted / step);
  const auto i = static_cast<std::size_t>(std::clamp(static_cast<int>(std::floor(octaves)), 0, kSteps - 2));
  const double low = std::log2(std::max(amounts[i], kNothing));
  const double high = std::log2(std::max(amounts[i + 1], kNothing));
  return std::exp2(low + (octaves - static_cast<double>(i)) * (high - low));
}

double StepAmounts::step_for(const std::vector<double>& amounts, double wanted) const {
  const bool grows = amounts[kSteps - 1] > amounts[0];
  double low = -kSteps;
  double high = kSteps - 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    ((at(amounts, step * std::exp2(middle)) < wanted) == grows ? low : high) = middle;
  }
  return step * std::exp2(low);
}

// ------------------------------------------------------------------------------------------------------------- sample

struct StepSample::Window {
  StreamHeader header;
  Gop samples;
  std::unique_ptr<GopEncoder> coder;
  double weight = 0;
  bool coded = false;
  CodedGop result;
  std::optional<RateControl> control;
};

StepSample::StepSample(const StreamHeader& header, const Gop& gop, SimdLevel simd)
    : header_(header), gop_(gop), simd_(simd), side_(std::max(kLeastSide, header.block_size())) {
  const VideoInfo& video = header.video;
  columns_ = (video.width + side_ - 1) / side_;
  const int rows = (video.height + side_ - 1) / side_;
  const Activity activity(gop.plane(0), video.format.bits);
  for (int i = 0; i < rows * columns_; ++i) {
    const int height = extent(i / columns_, video.height);
    const int width = extent(i % columns_, video.width);
    activities_.push_back(activity.window_bits(i / columns_ * side_, i % columns_ * side_, height, width));
  }
  double all = 0;
  for (const double a : activities_) all += a;
  activity_ = all / static_cast<double>(header.samples(gop.frames()));
}

bool StepSample::worth_it() const { return static_cast<int>(activities_.size()) >= kLeastOf; }

int StepSample::extent(int i, int length) const { return std::min(side_, length - i * side_); }

void StepSample::draw_windows() {
  const VideoInfo& video = header_.video;
  std::vector<double> sizes;
  for (int i = 0; i < static_cast<int>(activities_.size()); ++i)
    sizes.push_back(static_cast<double>(extent(i / columns_, video.height)) * extent(i % columns_, video.width));
  std::map<std::pair<int, int>, std::shared_ptr<const StreamGeometry>> geometries;  // by width and height
  for (const Drawn& d : draw(activities_, sizes, kByActivity, kWindowDraws)) {
    const int row = static_cast<int>(d.which) / columns_;
    const int column = static_cast<int>(d.which) % columns_;
    auto w = std::make_unique<Window>();
    w->header = header_;
    w->header.video.width = extent(column, video.width);
    w->header.video.height = extent(row, video.height);
    w->weight = d.weight;
    std::vector<FrameView> frames(static_cast<std::size_t>(gop_.frames()));
    for (int f = 0; f < gop_.frames(); ++f)
      for (int c = 0; c < gop_.components(); ++c) {
        const VolumeView v = gop_.plane(c);
        const bool chroma = video.format.is_chroma(c);
        const int y = row * side_ >> (chroma ? video.format.log2_chroma_h : 0);
        const int x = column * side_ >> (chroma ? video.format.log2_chroma_w : 0);
        frames[static_cast<std::size_t>(f)].planes[static_cast<std::size_t>(c)] = {
            v.row(f, y) + static_cast<std::ptrdiff_t>(x) * v.bytes_per_sample, v.row_stride};
      }
    w->samples = Gop(w->header.video, frames);
    auto& geometry = geometries[{w->header.video.width, w->header.video.height}];
    if (!geometry)
      geometry = std::make_shared<StreamGeometry>(w->header.describe_gop(0, GopKey::kFirst), gop_.frames());
    BackendOptions options{1, simd_};
    options.geometry = [geometry](const StreamHeader&, int) { return geometry; };  // the sample has no motion
    w->coder = cpu_backend().make_encoder(w->header, options);
    windows_.push_back(std::move(w));
  }
}

StepSample::~StepSample() = default;

StepAmounts StepSample::at(const GopChoices& choices, ThreadPool& pool) {
  if (windows_.empty()) draw_windows();
  std::vector<StepAmounts> window_amounts(windows_.size());
  GopChoices choice = choices;
  choice.passes = !choice.by_plane;
  choice.spare_last_pass = false;
  pool.parallel_for(static_cast<int>(windows_.size()), [&](int i, int) {
    Window& w = *windows_[static_cast<std::size_t>(i)];
    const bool kept = w.coded && choice.passes;
    kept ? w.coder->push_again(w.samples, choice) : w.coder->push(w.samples, choice);
    w.coded = true;
    require(w.coder->pull(w.result), ErrorKind::kInternal, "the backend lost a GOP");
    choice.by_plane ? w.control.emplace(w.header, w.result, choice.step, choice.frame_gains)
                    : w.control.emplace(w.header, w.result);
    window_amounts[static_cast<std::size_t>(i)] = StepAmounts(*w.control, static_cast<double>(choice.step));
  });
  StepAmounts sum;
  for (std::size_t i = 0; i < windows_.size(); ++i) sum.add(window_amounts[i], windows_[i]->weight);
  return sum;
}

double StepSample::excess(const GopChoices& coded_with, double step, ThreadPool& pool) const {
  const int planes = std::max(0, static_cast<int>(std::lround(std::log2(step / static_cast<double>(coded_with.step)))));
  std::vector<double> actual(windows_.size());
  std::vector<double> predicted(windows_.size());
  pool.parallel_for(static_cast<int>(windows_.size()), [&](int i, int) {
    const auto n = static_cast<std::size_t>(i);
    const Window& w = *windows_[n];
    const Cuts cuts = w.control->planes(planes);
    const double error = w.coder->squared_error(w.samples, coded_with, cuts);
    actual[n] = w.weight * error * static_cast<double>(w.control->samples());
    predicted[n] = w.weight * w.control->error(cuts);
  });
  double all = 0;
  double predicted_sum = 0;
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    all += actual[i];
    predicted_sum += predicted[i];
  }
  return predicted_sum > 0 && all > 0 ? all / predicted_sum : 1;
}

}  // namespace trivelet
