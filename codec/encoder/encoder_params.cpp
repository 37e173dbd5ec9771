// Checks and default values of an encoder's parameters, and the stream header (encoder_params.h).
#include "codec/encoder/encoder_params.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "codec/entropy/dense/rounding.h"
#include "codec/motion/motion.h"
#include "codec/transform/colour.h"

namespace trivelet {

namespace {

int log2_floor(int v) {
  int n = 0;
  while (v > 1) {
    v >>= 1;
    ++n;
  }
  return n;
}

/// As printf's %g does it: 500, not 500.000000.
std::string text_of(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

[[noreturn]] void refuse(const std::string& message) { fail(ErrorKind::kBadArgument, message); }

void check_video(const VideoInfo& v) {
  const PixelFormat& f = v.format;
  if (v.width < 1 || v.height < 1 || v.width > kMaxDimension || v.height > kMaxDimension)
    refuse("pictures of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "; sizes must be 1.." +
           std::to_string(kMaxDimension));
  if (f.bits < 1 || f.bits > 16) refuse(count_of(f.bits, "bit") + " per sample; must be 1..16");
  if (f.log2_chroma_w < 0 || f.log2_chroma_w > 2 || f.log2_chroma_h < 0 || f.log2_chroma_h > 2)
    refuse("chroma subsampling above 4");
  if (f.model == ColourModel::kRgb && f.is_signed) refuse("signed RGB samples are not supported");
  if (v.time_base.num < 1 || v.time_base.den < 1) refuse("time base " + to_string(v.time_base) + " is not positive");
}

// With motion a block of 128 in a small picture has a few dozen bytes. A larger block adapts better and has fewer
// headers: 0.8 to 2.1 % fewer bytes (eight clips of 176x144 to 720x576, -q 26 and 38). Larger pictures keep more blocks
// for threads and GPUs.
constexpr double kSmallPicture = 720 * 576;

bool is_small(const VideoInfo& video) { return static_cast<double>(video.width) * video.height <= kSmallPicture; }

int fitting_blocks(const VideoInfo& video, const EncoderParams& p) {
  if (p.motion == Motion::kOff) return 128;
  return p.effort == Effort::kSlow || (is_small(video) && p.profile == Profile::kDense) ? 256 : 128;
}

// An empty chunk takes a byte. The layers may cost about 1/100 of the bytes; with motion 1/400, because few GOPs then
// have bytes for more than four.
int affordable_layers(const VideoInfo& video, const EncoderParams& p) {
  constexpr int kFastLayers = 4;
  if (p.profile == Profile::kFast && !p.has_byte_target() && p.psnr == 0) return kFastLayers;
  const double pixels = static_cast<double>(video.width) * video.height * p.gop_frames;
  double bytes = target_share(video, p, p.gop_frames);
  if (p.target_bytes > 0 && bytes == 0) bytes = static_cast<double>(p.target_bytes) / 4;  // frames unknown: a few GOPs
  // Motion compensation leaves about 2 bits per pixel at step 1 and 8 bits, less for larger steps.
  if (bytes == 0 && p.motion != Motion::kOff && !p.lossless)
    bytes = pixels / 8 * 2 * std::exp2(video.format.bits - 8) / p.step;
  if (bytes > 0) {
    const int chunks = (p.temporal_levels + 1) * (p.spatial_levels + 1);
    const double share = p.motion != Motion::kOff ? 0.0025 : 0.01;
    const int most = p.profile == Profile::kFast && p.has_byte_target() ? kFastLayers : kMaxLayers;
    return static_cast<int>(std::clamp(share * bytes / chunks, 1.0, static_cast<double>(most)));
  }
  return pixels < 3e5 ? 4 : pixels < 1e6 ? 6 : pixels < 2e6 ? 12 : kMaxLayers;
}

// Contrast sensitivity falls towards fine detail, faster in chroma, so steps grow there. An approximation for viewing
// at about three picture heights; coarse levels keep the steps that PSNR asks for.
std::vector<std::uint8_t> visual_scales(const PixelFormat& format, int component, int levels) {
  static constexpr std::uint8_t kLuma[] = {36, 52, 64};  // finest, next, others
  static constexpr std::uint8_t kChroma[] = {28, 40, 54};
  std::vector<std::uint8_t> scales;
  for (int k = 0; k <= levels; ++k) {
    const bool chroma = format.model != ColourModel::kGrey && (component == 1 || component == 2);
    const int distance = std::min(2, k == 0 ? 2 : levels - k);
    scales.push_back((chroma ? kChroma : kLuma)[distance]);
  }
  return scales;
}

// By how much -q falls until the step is twice as large. Along motion the same step gives more PSNR, the more so the
// larger it is: 2.8 dB at -q 30 and 1.5 dB at -q 60, means of nine clips.
constexpr double kStillOctave = 12;
constexpr double kMovingOctave = 10.6;

double step_at(double quality, double octave, int bits) { return std::exp2((100 - quality) / octave - 1 + (bits - 8)); }

// With motion whole pyramids, each of which halves evenly. Two pyramids adapt better and have fewer headers. In large
// pictures that gains little and takes much memory, so they have one.
int moving_gop_frames(const VideoInfo& video, Effort effort) {
  return is_small(video) || effort == Effort::kSlow ? 64 : 32;
}

// With prediction a first frame costs several times as much as the others: twice the usual number of frames saves up to
// a fifth of the bytes with little motion, else 2 %. Large pictures have as many as memory allows, at least the usual
// number; the same holds for Effort::kFast, which has a single set of weights per GOP.
int predicted_gop_frames(const VideoInfo& video, Effort effort) {
  constexpr double kBytes = 100e6;
  if (effort == Effort::kFast) return kStillGopFrames;
  double frame = 0;
  for (int c = 0; c < video.format.components(); ++c)
    frame +=
        static_cast<double>(video.component_width(c)) * video.component_height(c) * video.format.bytes_per_sample();
  return std::clamp(static_cast<int>(kBytes / frame), kStillGopFrames, 2 * kStillGopFrames);
}

// What cannot be cut to a bound on the rate.
void check_bound(const VideoInfo& video, const CodingParams& p) {
  if (video.frame_rate.num == 0) refuse("a bound on the bit rate needs a frame rate, and the input has none");
  if (p.lossless) refuse("a lossless stream takes what it takes: its rate has no bound");
  if (p.psnr > 0) refuse("a PSNR that every GOP reaches and a bound on the rate contradict each other; use a quality");
  if (p.part_checks) refuse("checks of parts are not written into streams with a bound on their rate");
  if (p.key_prediction == KeyPrediction::kOn)
    refuse("key frames that predict others cannot be cut to a bound on the rate");
}

void choose_steps(CodingParams& p, int bits) {
  p.still_step = p.step > 0 ? p.step : step_at(p.quality, kStillOctave, bits);
  if (p.step == 0) p.step = step_of_quality(p, bits);
  if (!(p.step >= 1e-4 && p.step <= 1e7))
    refuse("quantiser step " + std::to_string(p.step) + " is outside 0.0001..10000000");
}

}  // namespace

double target_share(const VideoInfo& video, const EncoderParams& p, double frames) {
  if (p.target_bytes > 0)
    return video.frames > 0 ? static_cast<double>(p.target_bytes) * frames / static_cast<double>(video.frames) : 0;
  if (p.bits_per_pixel > 0) return p.bits_per_pixel * static_cast<double>(video.width) * video.height * frames / 8;
  return p.bit_rate > 0 ? p.bit_rate / 8 * frames / video.frame_rate.value() : 0;
}

double bytes_wanted(const VideoInfo& video, const EncoderParams& p, double frames, FrameTime first, FrameTime last) {
  if (p.target_bytes > 0) return static_cast<double>(p.target_bytes);
  if (p.bit_rate > 0) return p.bit_rate / 8 * seconds_lasting(video, first, last, frames);
  return target_share(video, p, frames);
}

Motion chosen_motion(const EncoderParams& p) {
  if (p.motion != Motion::kDefault) return p.motion;
  const bool suits = p.profile == Profile::kDense && p.temporal == EncoderParams{}.temporal && p.gop_frames != 1 &&
                     p.temporal_levels != 0;
  return suits ? Motion::kAuto : Motion::kOff;
}

double step_of_quality(const EncoderParams& p, int bits) {
  return step_at(p.quality, p.motion == Motion::kOff ? kStillOctave : kMovingOctave, bits);
}

int usual_gop_frames(const VideoInfo& video, const EncoderParams& p) {
  // Of pictures of 67 million pixels and more fewer fit into a GOP. One frame may come before a GOP's own.
  const double samples = static_cast<double>(video.width) * video.height * video.format.components();
  const int most = static_cast<int>(std::clamp<double>(kMaxGopSamples / samples, 2, kMaxGopFrames)) - 1;
  if (p.profile == Profile::kPredictive) return std::min(most, predicted_gop_frames(video, p.effort));
  return std::min(most, p.motion == Motion::kOff ? kStillGopFrames : moving_gop_frames(video, p.effort));
}

// Prediction in place is left where decoded keys are not known, or where no GOP depends on another one.
KeyPrediction chosen_key_prediction(const VideoInfo& video, const CodingParams& p) {
  if (p.key_prediction != KeyPrediction::kAuto) return p.key_prediction;
  const bool has_open_gops =
      p.key_interval > p.gop_frames && (video.frames == 0 || video.frames > static_cast<std::uint64_t>(p.gop_frames));
  const bool suits =
      p.motion != Motion::kOff && has_open_gops && !p.has_byte_target() && p.psnr == 0 && p.max_rate == 0;
  return suits ? KeyPrediction::kAuto : KeyPrediction::kOff;
}

CodingParams resolve(const VideoInfo& video, CodingParams p) {
  check_video(video);
  const bool still = p.is_volume || p.layout == Layout::kDyadic;
  p.motion = still && p.motion == Motion::kDefault ? Motion::kOff : chosen_motion(p);
  if (p.gop_frames == 0) p.gop_frames = usual_gop_frames(video, p);
  if (p.gop_frames < 1 || p.gop_frames > kMaxGopFrames)
    refuse("GOPs hold 1.." + std::to_string(kMaxGopFrames) + " frames, not " + std::to_string(p.gop_frames));
  if (video.frames > 0)
    p.gop_frames = static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(p.gop_frames), video.frames));
  const int targets = (p.target_bytes > 0) + (p.bits_per_pixel > 0) + (p.bit_rate > 0) + (p.psnr > 0);
  if (targets > 1) refuse("a stream has one target: a size, bits per pixel, a bit rate or a PSNR");
  if (targets > 0 && p.lossless) refuse("a lossless stream has no target for its size or PSNR");
  if (p.part_checks && p.has_byte_target())
    refuse("checks of parts are not written into streams with a target for their bytes: they are not known in advance");
  if (p.bits_per_pixel < 0 || p.bit_rate < 0 || p.psnr < 0) refuse("a target must be positive");
  if (p.bit_rate > 0 && video.frame_rate.num == 0) refuse("a bit rate needs a frame rate, and the input has none");
  if (!(p.max_rate >= 0) || !(p.rate_window > 0)) refuse("a bound on the rate and its window must be positive");
  if (p.max_rate > 0) check_bound(video, p);
  if (p.psnr > 120) refuse("a PSNR of " + text_of(p.psnr) + " dB; the limit is 120, lossless is beyond it");
  if (p.profile == Profile::kPredictive) {
    if (!p.lossless) refuse("the predictive profile is lossless");
    if (p.layers > 1) refuse("the predictive profile has one layer, not " + std::to_string(p.layers));
    if (p.temporal_levels > 0 || p.spatial_levels > 0) refuse("the predictive profile has no levels");
    if (p.motion == Motion::kOn) refuse("the predictive profile does not follow motion");
    p.motion = Motion::kOff;
    p.layers = 1;
    p.temporal_levels = p.spatial_levels = 0;
  }
  const bool default_layers = p.layers == 0;
  if (default_layers) p.layers = kMaxLayers;
  if (p.layers < 1 || p.layers > kMaxLayers)
    refuse("layers must be 1.." + std::to_string(kMaxLayers) + ", not " + std::to_string(p.layers));
  if (p.lossless) {
    if (p.step != 0) refuse("a quantiser step means nothing in a lossless stream");
    if (p.spatial == Wavelet::kCdf97) p.spatial = Wavelet::kCdf53;
    if (p.temporal == Wavelet::kCdf97) p.temporal = Wavelet::kCdf53;
  } else {
    if (p.spatial == Wavelet::kRev137 || p.temporal == Wavelet::kRev137)
      refuse("the 13/7 wavelet is for lossless streams; lossy ones use 9/7, 5/3 or haar");
    if (!(p.quality >= 0 && p.quality <= 100)) refuse("quality is " + text_of(p.quality) + "; it must be 0..100");
  }
  const bool auto_spatial = p.spatial_levels < 0;
  if (auto_spatial) {
    p.spatial_levels = video.height >= 720 || video.width >= 1280 ? 5 : 4;
    const int smallest = std::min(video.width, video.height);
    p.spatial_levels = std::clamp(p.spatial_levels, 0, std::max(0, log2_floor(smallest) - 1));
  }
  if (p.spatial == Wavelet::kMotion || p.temporal == Wavelet::kMotion)
    refuse("a transform along motion is asked for by EncoderParams::motion, not as a wavelet");
  if (p.temporal_levels < 0) {
    // With motion a GOP has a single key frame, in its second half, as long as five levels suffice.
    p.temporal_levels = std::min(p.motion == Motion::kOff ? 4 : 5, log2_floor(p.gop_frames));
    p.levels_by_gop = true;
    if (p.layout == Layout::kDyadic) p.temporal_levels = std::min(p.temporal_levels, p.spatial_levels);
  }
  if (p.temporal_levels > 8 || p.spatial_levels > 8)
    refuse("levels must be 0..8, not " + std::to_string(p.temporal_levels) + "x" + std::to_string(p.spatial_levels));
  if (p.layout == Layout::kDyadic && p.temporal_levels > p.spatial_levels)
    refuse("a dyadic layout needs at least as many spatial as temporal levels, not " +
           std::to_string(p.temporal_levels) + "x" + std::to_string(p.spatial_levels));
  if (p.temporal_levels == 0) p.motion = Motion::kOff;  // nothing to transform along time
  if (p.key_prediction == KeyPrediction::kOn && targets > 0)
    refuse("key frames are predicted from decoded ones, which are not known before the target is met; use a quality");
  if (!p.lossless) choose_steps(p, video.format.bits);
  if (p.block_size == 0) p.block_size = fitting_blocks(video, p);
  if (p.block_size != 32 && p.block_size != 64 && p.block_size != 128 && p.block_size != 256)
    refuse("block size must be 32, 64, 128 or 256, not " + std::to_string(p.block_size));
  if (default_layers) p.layers = affordable_layers(video, p);
  if (p.key_interval < 0) refuse("a key interval of " + count_of(p.key_interval, "frame") + "; 0 = four seconds");
  if (p.key_interval == 0) {
    const double rate = video.frame_rate.num > 0 ? video.frame_rate.value() : 25;
    p.key_interval = static_cast<int>(std::clamp(std::lround(4 * rate), 1L, 1000000L));
    // Rounds to the nearest whole GOP: with long GOPs rounding down would lose much of the interval.
    p.key_interval = std::max(1, (p.key_interval + p.gop_frames / 2) / p.gop_frames) * p.gop_frames;
  }
  p.key_prediction = chosen_key_prediction(video, p);
  return p;
}

bool rounds_by_cost(const EncoderParams& p) {
  return p.motion != Motion::kOff && !p.lossless && p.profile == Profile::kDense;
}

bool rounds_along_motion(const EncoderParams& p) { return p.effort == Effort::kSlow && rounds_by_cost(p); }

bool needs_cpu(const EncoderParams& p) { return p.profile == Profile::kPredictive || rounds_along_motion(p); }

bool uses_lookahead(const EncoderParams& p) { return p.motion != Motion::kOff && !p.has_byte_target() && p.psnr <= 0; }

StreamHeader make_header(const VideoInfo& video, const CodingParams& p) {
  StreamHeader h;
  h.profile = p.profile;
  h.lossless = p.lossless;
  h.layout = p.layout;
  h.temporal = p.temporal;
  h.spatial = p.spatial;
  h.temporal_levels = static_cast<std::uint8_t>(p.temporal_levels);
  h.spatial_levels = static_cast<std::uint8_t>(p.spatial_levels);
  h.log2_block = static_cast<std::uint8_t>(log2_floor(p.block_size));
  h.layers = static_cast<std::uint8_t>(p.layers);
  h.gop_frames = static_cast<std::uint16_t>(p.gop_frames);
  h.colour_transform = video.format.model == ColourModel::kRgb && p.profile != Profile::kPredictive ? 1 : 0;
  h.video = video;
  h.motion = p.motion != Motion::kOff && p.temporal_levels > 0;
  h.levels_by_gop = h.motion && p.levels_by_gop;
  h.predicted_keys = h.motion && p.key_prediction != KeyPrediction::kOff;
  h.known_ahead = p.profile == Profile::kPredictive && p.effort == Effort::kFast;
  h.moved = p.profile == Profile::kPredictive && !h.known_ahead && p.moved_frames && p.gop_frames > 1;
  h.labels = p.profile == Profile::kPredictive && p.labels;
  h.mixed = p.profile == Profile::kPredictive && p.mixed;
  if (rounds_by_cost(p)) h.centroid = kCostCentroid;
  h.writer = std::string("Trivelet ") + kLibraryVersion;
  h.settings = p.settings;
  const PixelFormat& f = video.format;
  for (int c = 0; c < f.components(); ++c) {
    ComponentHeader ch;
    const bool difference = h.colour_transform && (c == 1 || c == 2);
    ch.offset = f.is_signed || difference ? 0 : 1 << (f.bits - 1);
    if (h.colour_transform && c < 3) ch.weight = static_cast<float>(1 / kColourNorm[c]);
    int levels = p.spatial_levels;
    if (f.is_chroma(c) && (f.log2_chroma_w > 0 || f.log2_chroma_h > 0))
      levels -= std::max(f.log2_chroma_w, f.log2_chroma_h);
    if (p.layout == Layout::kDyadic) levels = std::max(levels, p.temporal_levels);
    ch.spatial_levels = static_cast<std::uint8_t>(std::max(0, levels));
    ch.scale.assign(ch.spatial_levels + std::size_t{1}, 64);
    if (p.visual && !p.lossless) ch.scale = visual_scales(f, c, ch.spatial_levels);
    h.components.push_back(ch);
  }
  return h;
}

}  // namespace trivelet
