// Bytes of a few frames without loss, beside the target (lossless_estimate.h).
#include "apps/video/lossless_estimate.h"

#include <algorithm>
#include <vector>

#include "apps/cli/log.h"
#include "codec/encoder/encoder_params.h"

namespace trivelet::cli {

namespace {

// Of a GOP. A first frame costs more with prediction, and few frames cost more along time, so that the estimate is
// rather too high. With the fast profile they take as long as the GOP's own frames.
constexpr int kFrames = 8;
constexpr int kFastFrames = 2;
constexpr int kPredictedFrames = 4;
// Of the bits of the samples: below it nearly nothing is exact, and the estimate would cost time in vain. The fast
// profile without loss takes 0.17 (an animation) to 0.6.
constexpr double kLeastShare = 0.05;
constexpr double kLeastShareFast = 0.15;

double pixels(const VideoInfo& video) { return static_cast<double>(video.width) * video.height; }

/// Bits of the samples, for each pixel.
double bits_of_samples(const VideoInfo& video) {
  double samples = 0;
  for (int c = 0; c < video.format.components(); ++c)
    samples += static_cast<double>(video.component_width(c)) * video.component_height(c);
  return samples * video.format.bits / pixels(video);
}

/// Bits per pixel; 0 if they are not known before the end.
double wanted_bits(const EncodeJob& job, const VideoInfo& video) {
  VideoInfo whole = video;
  if (job.range.has_end()) whole.frames = std::min(whole.frames, job.range.count());
  if (job.params.bit_rate > 0 && video.frame_rate.num == 0) return 0;
  return 8 * target_share(whole, job.params, 1) / pixels(video);
}

std::string target_text(const EncodeOptions& options) {
  if (!options.coding.bit_rate.empty()) return "--bitrate " + options.coding.bit_rate;
  if (options.coding.bits_per_pixel > 0) return fmt::format("--bpp {}", options.coding.bits_per_pixel);
  for (const std::string& size : options.reading.sizes)
    if (size.find('x') == std::string::npos) return "--size " + size;
  return "the target";
}

}  // namespace

LosslessEstimate::LosslessEstimate(const EncodeJob& job) : job_(job) {
  const VideoInfo& video = job.input->info();
  if (!job.params.has_byte_target() || job.input->on_device()) return;
  const double wanted = wanted_bits(job, video);
  const bool fast = job.options.coding.preset == "fast";
  if (wanted < (fast ? kLeastShareFast : kLeastShare) * bits_of_samples(video)) return;
  wanted_ = wanted;
  const bool predicts = !fast && video.format.model != ColourModel::kRgb;
  params_.lossless = true;
  params_.profile = fast ? Profile::kFast : predicts ? Profile::kPredictive : Profile::kDense;
  params_.effort = Effort::kFast;
  params_.motion = Motion::kOff;
  params_.gop_frames = fast ? kFastFrames : predicts ? kPredictedFrames : kFrames;
  params_.measure_errors = false;
  params_.threads = job.params.threads;
  params_.simd = job.params.simd;
}

void LosslessEstimate::add(const Gop& gop) {
  if (wanted_ == 0 || gops_++ != next_) return;
  next_ = 4 * next_ + 3;
  std::vector<FrameView> frames(static_cast<std::size_t>(std::min(gop.frames(), params_.gop_frames)));
  for (std::size_t t = 0; t < frames.size(); ++t) {
    frames[t].time = gop.times()[t];
    for (int c = 0; c < gop.components(); ++c) {
      const VolumeView plane = gop.plane(c);
      frames[t].planes[static_cast<std::size_t>(c)] = {plane.row(static_cast<int>(t), 0), plane.row_stride};
    }
  }
  VideoInfo video = job_.input->info();
  video.frames = 0;
  MemorySink sink;
  Encoder encoder(video, params_, sink);
  const std::size_t head = sink.bytes.size();
  encoder.push(frames);
  encoder.finish();
  bytes_ += static_cast<double>(sink.bytes.size() - head);
  frames_ += static_cast<double>(frames.size());
}

void LosslessEstimate::tell() const {
  if (frames_ == 0) return;
  const double share = 8 * bytes_ / frames_ / pixels(job_.input->info()) / wanted_;
  if (share >= 1) return;
  log::warn(
      "{} is more than the video takes without loss, about {:.0f} % of that by {:.0f} frames; --lossless is exact "
      "and smaller",
      target_text(job_.options), 100 * share, frames_);
}

}  // namespace trivelet::cli
