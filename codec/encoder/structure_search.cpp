// Searches the wavelets, levels and GOP length of a video by coding its beginning with each candidate and comparing
// bytes at equal quality.
#include "trivelet/structure_search.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/base/squared_error.h"
#include "codec/encoder/encoder_params.h"

namespace trivelet {

namespace {

constexpr int kFrames = 65;        // frames at the beginning that are coded: two GOPs of 33 and 32, or one
constexpr int kMovingFrames = 64;  // with motion: one GOP of the default length
constexpr int kWidth = 960;        // their middle: a quarter of 1080p gives the same choice in a quarter of the time
constexpr int kHeight = 544;
constexpr int kMovingWidth = 480;  // with motion, where coding takes several times as long
constexpr int kMovingHeight = 288;
// The exchange rate of bytes and quality is measured between the step in use and this multiple: about half a bit plane.
constexpr double kCoarser = 1.4;
// What levels that are the same for all GOPs must save at the beginning, in octaves of bytes: 1 %. GOPs behind it can
// have others only if they choose by themselves.
constexpr double kWorthFixing = 0.015;
constexpr double kNear = 0.1;            // octaves from the target within which the step is accepted
constexpr double kOctavesPerStep = 1.5;  // of the squared error when the step doubles; about -1 of bytes

using Structure = StructureTrial;  // its cost is not used

struct Before {
  bool operator()(const Structure& a, const Structure& b) const {
    return std::tie(a.temporal, a.spatial, a.temporal_levels, a.spatial_levels, a.gop_frames) <
           std::tie(b.temporal, b.spatial, b.temporal_levels, b.spatial_levels, b.gop_frames);
  }
};

/// View of frames first … first + frames - 1 of `all`, of their middle if they are larger than `info` says.
Gop part_of(const Gop& all, const VideoInfo& info, int first, int frames) {
  Gop gop(info, frames);
  gop.set_frames(frames);
  for (int c = 0; c < all.components(); ++c) {
    const VolumeView in = all.plane(c);
    const MutableVolumeView out = gop.plane(c);
    const int top = (in.shape.height - out.shape.height) / 2;
    const auto sample = static_cast<std::size_t>(in.bytes_per_sample);
    const std::size_t left = static_cast<std::size_t>((in.shape.width - out.shape.width) / 2) * sample;
    for (int f = 0; f < frames; ++f)
      for (int y = 0; y < out.shape.height; ++y)
        std::memcpy(out.row(f, y), in.row(first + f, top + y) + left, out.row_bytes());
  }
  return gop;
}

/// The first frames of scenes.
std::vector<int> scenes_of(const Gop& frames, const PixelFormat& format) {
  SceneCuts cuts(format);
  std::vector<int> scenes{0};
  SceneCuts::Look before, now;
  for (int f = 0; f < frames.frames(); ++f) {
    cuts.look_at(frames, f, now);
    if (f > 0 && cuts.judge(cuts.compare(before, now))) scenes.push_back(f);
    std::swap(before, now);
  }
  return scenes;
}

class Trials {
 public:
  /// `scenes`: the first frames of those among `frames`.
  Trials(EncoderParams params, const Gop& frames, std::vector<int> scenes, const VideoInfo& info,
         const std::function<void(const StructureTrial&)>& on_trial)
      : params_(std::move(params)),
        frames_(frames),
        scenes_(std::move(scenes)),
        info_(info),
        target_(params_),
        on_trial_(on_trial) {
    const bool moving = params_.motion != Motion::kOff;
    if (moving) params_.effort = Effort::kMedium;  // a higher effort helps all structures equally
    info_.width = std::min(info.width, moving ? kMovingWidth : kWidth);
    info_.height = std::min(info.height, moving ? kMovingHeight : kHeight);
    info_.frames = static_cast<std::uint64_t>(frames.frames());
    // Constant quality whatever the target is: structures are compared at one step.
    params_.target_bytes = 0;
    params_.bits_per_pixel = params_.bit_rate = params_.psnr = 0;
    params_.layers = 1;
    params_.measure_errors = false;
    if (params_.lossless) return;
    if (params_.step == 0) params_.step = step_of_quality(params_, info.format.bits);
  }

  /// Finds the approximate step for the target, and the exchange rate of bytes and quality there.
  void aim(const Structure& structure, const VideoInfo& whole) {
    if (params_.lossless) return;
    std::optional<double> wanted;  // log2 of bytes or of the mean squared error
    const double pixels = static_cast<double>(info_.width) * info_.height * frames_.frames();
    const double share = pixels / (static_cast<double>(whole.width) * whole.height);
    if (target_.psnr > 0)
      wanted = 2 * info_.format.bits - target_.psnr / (10 * std::log10(2.0));
    else if (target_.bits_per_pixel > 0)
      wanted = std::log2(target_.bits_per_pixel * pixels / 8);
    else if (target_.bit_rate > 0)
      wanted = std::log2(target_.bit_rate / 8 / whole.frame_rate.value() * share);
    else if (target_.target_bytes > 0 && whole.frames > 0)
      wanted = std::log2(static_cast<double>(target_.target_bytes) / static_cast<double>(whole.frames) * share);
    if (target_.has_byte_target()) params_.step = std::exp2(info_.format.bits - 4);
    const auto amount = [&] {
      const Outcome o = code(structure);
      return target_.psnr > 0 ? o.log2_error : o.log2_bytes;
    };
    if (wanted) {
      const double octave = target_.psnr > 0 ? kOctavesPerStep : -1;
      for (int i = 0; i < 3; ++i) {
        const double off = *wanted - amount();
        params_.step = std::clamp(params_.step * std::exp2(off / octave), 0.05, 1e6);
        if (std::abs(off) < kNear) break;
      }
    }
    const Outcome here = code(structure);
    params_.step *= kCoarser;
    const Outcome coarser = code(structure);
    params_.step /= kCoarser;
    const double exchange =
        (here.log2_bytes - coarser.log2_bytes) / std::max(0.05, coarser.log2_error - here.log2_error);
    bytes_per_error_ = std::clamp(exchange, 0.2, 3.0);
    keep(structure, here);
  }

  /// log2 of the bytes for a picture of equal quality; lower is better.
  double cost(const Structure& s) {
    const auto known = costs_.find(s);
    return known != costs_.end() ? known->second : keep(s, code(s));
  }

 private:
  struct Outcome {
    double log2_bytes = 0;
    double log2_error = 0;  // of the mean squared error
  };

  double keep(Structure s, const Outcome& o) {
    s.cost = o.log2_bytes + bytes_per_error_ * o.log2_error;
    costs_[s] = s.cost;
    if (on_trial_) on_trial_(s);
    return s.cost;
  }

  void push_all(Encoder& encoder, int gop_frames) const {
    for (std::size_t scene = 0; scene < scenes_.size(); ++scene) {
      const int end = scene + 1 < scenes_.size() ? scenes_[scene + 1] : frames_.frames();
      for (int first = scenes_[scene]; first < end; first += gop_frames) {
        Gop gop = part_of(frames_, info_, first, std::min(gop_frames, end - first));
        gop.set_begins_scene(first == scenes_[scene]);
        encoder.push(gop);
      }
    }
  }

  Outcome code(const Structure& s) {
    EncoderParams p = params_;
    p.temporal = s.temporal;
    p.spatial = s.spatial;
    p.temporal_levels = s.temporal_levels;
    p.spatial_levels = s.spatial_levels;
    p.gop_frames = s.gop_frames;
    MemorySink sink;
    Encoder encoder(info_, p, sink);
    push_all(encoder, s.gop_frames);
    encoder.finish();
    Outcome o;
    o.log2_bytes = std::log2(static_cast<double>(sink.bytes.size()));
    if (p.lossless) return o;
    MemorySource source(sink.bytes.data(), sink.bytes.size());
    DecoderParams reading;
    reading.threads = p.threads;
    Decoder decoder(source, reading);
    Gop decoded = decoder.make_gop();
    double squared = 0;
    std::size_t samples = 0;
    for (int first = 0; decoder.pull(decoded); first += decoded.frames()) {
      const Gop original = part_of(frames_, info_, first, decoded.frames());
      for (int c = 0; c < original.components(); ++c) {
        squared += squared_error(original.plane(c), std::as_const(decoded).plane(c));
        samples += original.plane(c).shape.samples();
      }
    }
    o.log2_error = std::log2(std::max(1e-6, squared / static_cast<double>(samples)));
    return o;
  }

  EncoderParams params_;
  const Gop& frames_;
  std::vector<int> scenes_;
  VideoInfo info_;
  EncoderParams target_;
  double bytes_per_error_ = 1;
  std::map<Structure, double, Before> costs_;
  const std::function<void(const StructureTrial&)>& on_trial_;
};

/// Keeps the cheapest structure so far and tries others against it.
class Search {
 public:
  Search(Trials& trials, const Structure& first) : best(first), trials_(trials) {}

  bool better(const Structure& s) {
    if (!(trials_.cost(s) < trials_.cost(best))) return false;
    best = s;
    return true;
  }
  bool climb(int Structure::*levels, int by, int least, int most) {
    bool any = false;
    for (;;) {
      Structure s = best;
      s.*levels += by;
      if (s.*levels < least || s.*levels > most || !better(s)) return any;
      any = true;
    }
  }

  Structure best;

 private:
  Trials& trials_;
};

constexpr int kMostLevels = 8;
constexpr int kLevelsByGop = -1;  // as in EncoderParams

void search_still(Search& search, const EncoderParams& params, const FixedStructure& fixed, int frames) {
  Structure& best = search.best;
  const int levels = best.temporal_levels;
  // One parameter after the other: the best so far decides what is worth trying next.
  if (!fixed.temporal_wavelet)
    for (const Wavelet w : {Wavelet::kHaar, Wavelet::kCdf53, Wavelet::kRev137}) {
      if (w == Wavelet::kRev137 && !params.lossless) continue;
      Structure s = best;
      s.temporal = w;
      search.better(s);
    }
  if (!fixed.spatial_wavelet && params.lossless) {
    Structure s = best;
    s.spatial = Wavelet::kRev137;
    search.better(s);
  }
  if (!fixed.levels) {
    const int most = static_cast<int>(std::log2(std::max(1, best.gop_frames)));
    if (!search.climb(&Structure::temporal_levels, -1, 0, most)) search.climb(&Structure::temporal_levels, 1, 0, most);
    if (best.temporal != Wavelet::kHaar && best.temporal_levels < levels && !fixed.temporal_wavelet) {
      Structure s = best;  // may pay off with fewer levels
      s.temporal = Wavelet::kHaar;
      if (search.better(s)) search.climb(&Structure::temporal_levels, -1, 0, most);
    }
  }
  if (!fixed.gop_frames && best.temporal_levels > 0 && frames > best.gop_frames) {
    Structure s = best;
    s.gop_frames = frames;
    search.better(s);
    ++s.temporal_levels;
    if (!fixed.levels) search.better(s);
  }
  if (!fixed.levels && !search.climb(&Structure::spatial_levels, -1, 1, kMostLevels))
    search.climb(&Structure::spatial_levels, 1, 1, kMostLevels);
}

// With motion. What each GOP chooses by itself is compared with the same number of levels for all: fewer suit fast
// motion, and one level more than whole pyramids have leaves a short GOP one key instead of two. The likelier change is
// tried first. More spatial levels, other wavelets and other GOP lengths gained nothing on any clip
// (tests/bench/RESULTS.md).
void search_moving(Search& search, Trials& trials, int usual_levels) {
  const auto gop = static_cast<unsigned>(std::max(1, search.best.gop_frames));
  const int most = std::bit_width(gop - 1);
  const int likelier = std::has_single_bit(gop) ? -1 : 1;
  Structure alike = search.best;
  alike.temporal_levels = usual_levels;
  Search same(trials, alike);
  if (!same.climb(&Structure::temporal_levels, likelier, 1, most))
    same.climb(&Structure::temporal_levels, -likelier, 1, most);
  if (trials.cost(same.best) < trials.cost(search.best) - kWorthFixing) search.best = same.best;
  search.climb(&Structure::spatial_levels, -1, 1, kMostLevels);
}

}  // namespace

EncoderParams search_structure(const VideoInfo& info, const FrameInput& input, EncoderParams params,
                               const FixedStructure& fixed,
                               const std::function<void(const StructureTrial&)>& on_trial) {
  params.motion = chosen_motion(params);
  const bool moving = params.motion != Motion::kOff;
  if (moving && fixed.levels) return params;
  const int most = moving ? kMovingFrames : kFrames;
  Gop frames(info, most);
  frames.set_frames(most);
  int count = 0;
  while (count < most && input(frames, count)) ++count;
  if (count == 0) return params;
  frames.set_frames(count);
  EncoderParams resolved;
  {
    MemorySink nowhere;
    resolved = Encoder(info, params, nowhere).params();
  }
  std::vector<int> scenes{0};
  if (moving && !fixed.plain_gops) scenes = scenes_of(frames, info.format);
  Trials trials(params, frames, std::move(scenes), info, on_trial);
  const int first_levels = moving && resolved.levels_by_gop ? kLevelsByGop : resolved.temporal_levels;
  Search search(trials,
                {resolved.temporal, resolved.spatial, first_levels, resolved.spatial_levels, resolved.gop_frames, 0});
  trials.aim(search.best, info);
  moving ? search_moving(search, trials, resolved.temporal_levels) : search_still(search, params, fixed, count);
  const Structure& best = search.best;
  params.temporal = best.temporal;
  params.spatial = best.spatial;
  params.temporal_levels = best.temporal_levels;
  params.spatial_levels = best.spatial_levels;
  if (!moving) params.gop_frames = best.gop_frames;
  return params;
}

}  // namespace trivelet
