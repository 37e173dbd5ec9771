// Candidates for coding a volume and their trials on a piece of it (see volume_choice.h).
#include "codec/volume/volume_choice.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "codec/base/limits.h"
#include "codec/volume/volume_access.h"
#include "codec/volume/volume_predict.h"

namespace trivelet {

namespace {

// Bytes of voxels that reordering slices may hold in memory.
constexpr std::uint64_t kMostHeld = std::uint64_t{4} << 30;
constexpr std::uint64_t kTrialVoxels = std::uint64_t{1} << 20;

int floor_log2(std::uint64_t n) {
  int l = 0;
  while (n >>= 1) ++l;
  return l;
}

const char* name_of(Wavelet wavelet) {
  switch (wavelet) {
    case Wavelet::kHaar: return "haar";
    case Wavelet::kCdf53: return "5/3";
    case Wavelet::kCdf97: return "9/7";
    case Wavelet::kRev137:
    case Wavelet::kMotion: break;  // not for volumes
  }
  return "13/7";
}

bool wants_prediction(const std::optional<VolumeTransform>& transform) {
  return transform && *transform != VolumeTransform::kWavelet;
}

}  // namespace

std::string VolumeCandidate::text() const {
  std::string s;
  if (predictive) s = labels ? "labels and prediction" : "prediction";
  if (ahead) s += " with static contexts";
  if (mixed) s += ", mixed contexts";
  if (!predictive) switch (prediction) {
      case VolumePrediction::kNone:
        s = std::string(name_of(wavelet)) + " " + std::to_string(z_levels) + "x" + std::to_string(xy_levels);
        break;
      case VolumePrediction::kInSlice: s = "prediction in the slice"; break;
      case VolumePrediction::kAcross: s = "prediction across slices"; break;
    }
  if (palette) s += ", palette";
  if (order == VolumeOrder::kFourthAxis) s += ", along the fourth axis";
  return s;
}

int slab_frames(const VolumeDescription& volume, const VolumeCandidate& c, bool lossless, int wanted) {
  const std::uint64_t run = c.order == VolumeOrder::kFourthAxis ? volume.volumes : volume.slices;
  if (wanted > 0)
    return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted), volume.all_slices()));
  // Twice as many gain 0.2 dB (CThead at 0.5 bits per voxel), and almost nothing when lossless.
  const std::uint64_t usual = lossless ? 64 : 128;
  if (run <= usual) return static_cast<int>(run);
  // Parts have nearly equal sizes and consist of whole groups of the temporal transform.
  const std::uint64_t parts = (run + usual - 1) / usual;
  const std::uint64_t group = std::uint64_t{1} << c.z_levels;
  const std::uint64_t part = ((run + parts - 1) / parts + group - 1) / group * group;
  return static_cast<int>(std::min<std::uint64_t>(part, 128));
}

void apply(const VolumeCandidate& c, int slab, CodingParams& p) {
  p.layout = Layout::kDyadic;
  p.spatial = p.temporal = p.lossless ? c.wavelet : Wavelet::kCdf97;
  p.spatial_levels = c.xy_levels;
  p.temporal_levels = std::min({c.z_levels, c.xy_levels, floor_log2(static_cast<std::uint64_t>(slab))});
  p.gop_frames = slab;
  if (c.predictive) {
    p.profile = Profile::kPredictive;
    p.moved_frames = false;
    p.labels = c.labels;
    p.mixed = c.mixed;
    if (c.ahead) p.effort = Effort::kFast;
    p.layout = Layout::kT2d;
    p.spatial_levels = p.temporal_levels = 0;
    p.layers = 1;
    return;
  }
  if (c.prediction == VolumePrediction::kNone) return;
  p.spatial_levels = p.temporal_levels = 0;
  p.layers = 1;
  p.block_size = 64;
}

VideoInfo slice_video(const VolumeMap& map, int width, int height, std::uint64_t frames) {
  VideoInfo v;
  v.width = width;
  v.height = height;
  v.format = map.pixel_format();
  v.frame_rate = {0, 1};
  v.sample_aspect = {0, 1};
  v.time_base = {1, 1};
  v.frames = frames;
  return v;
}

bool can_be_held(const VolumeDescription& volume) { return volume.bytes() <= kMostHeld; }

// -------------------------------------------------------------------------------------------------------------- trial

VolumeTrial::VolumeTrial(const VolumeDescription& volume) : whole_(volume), piece_(volume) {
  // Takes whole rows: air at the sides belongs to the volume as much as its middle.
  piece_.volumes = std::min<std::uint64_t>(volume.volumes, 32);
  piece_.slices = std::min<std::uint64_t>({volume.slices, 64, std::max<std::uint64_t>(4, 256 / piece_.volumes)});
  const std::uint64_t rows = kTrialVoxels / (static_cast<std::uint64_t>(volume.width) * piece_.all_slices());
  piece_.height = std::min(static_cast<int>(std::clamp<std::uint64_t>(rows, 64, 1024)), volume.height);
  first_slice_ = (volume.slices - piece_.slices) / 2;
  voxels_.resize(static_cast<std::size_t>(piece_.bytes()));
}

void VolumeTrial::add(std::uint64_t slice, const std::byte* voxels) {
  const std::uint64_t z = slice % whole_.slices;
  if (slice / whole_.slices >= piece_.volumes || z < first_slice_ || z >= first_slice_ + piece_.slices) return;
  const std::size_t row = static_cast<std::size_t>(whole_.width) * whole_.voxel.bytes();
  const std::byte* from = voxels + static_cast<std::size_t>((whole_.height - piece_.height) / 2) * row;
  const std::uint64_t place = slice / whole_.slices * piece_.slices + (z - first_slice_);
  std::memcpy(voxels_.data() + static_cast<std::size_t>(place) * piece_.slice_bytes(), from, piece_.slice_bytes());
}

namespace {

/// How many values equal those to the left, above, and in the slice before, from the second value of n on.
template <class T>
std::uint64_t equal_around(const T* row, const T* above, const T* before, std::size_t n) {
  std::uint32_t equal = 0;
  for (std::size_t x = 1; x < n; ++x) equal += (row[x] == row[x - 1]) & (row[x] == above[x]) & (row[x] == before[x]);
  return equal;
}

/// The same of voxels of any size.
std::uint64_t equal_voxels_around(const std::byte* row, const std::byte* above, const std::byte* before, std::size_t n,
                                  std::size_t voxel) {
  const auto as = [&]<class T>(T) {
    const auto of = [](const std::byte* p) { return reinterpret_cast<const T*>(p); };
    return equal_around(of(row), of(above), of(before), n);
  };
  if (voxel == 1) return as(std::uint8_t{});
  if (voxel == 2) return as(std::uint16_t{});
  std::uint64_t equal = 0;
  for (std::size_t x = voxel; x < n * voxel; x += voxel)
    equal += std::memcmp(row + x, row + x - voxel, voxel) == 0 && std::memcmp(row + x, above + x, voxel) == 0 &&
             std::memcmp(row + x, before + x, voxel) == 0;
  return equal;
}

}  // namespace

double VolumeTrial::inside_regions() const {
  constexpr int kRowStep = 4;
  const std::size_t voxel = piece_.voxel.bytes();
  const auto width = static_cast<std::size_t>(piece_.width);
  const std::size_t row = width * voxel;
  std::uint64_t looked_at = 0, inside = 0;
  const std::uint64_t first = piece_.slices > 1 ? 1 : 0;
  for (std::uint64_t z = first; z < piece_.slices; ++z)
    for (int y = 1; y < piece_.height; y += kRowStep) {
      const std::byte* at =
          &voxels_[static_cast<std::size_t>(z) * piece_.slice_bytes() + static_cast<std::size_t>(y) * row];
      inside += equal_voxels_around(at, at - row, at - first * piece_.slice_bytes(), width, voxel);
      looked_at += static_cast<std::uint64_t>(piece_.width - 1);
    }
  return looked_at > 0 ? static_cast<double>(inside) / static_cast<double>(looked_at) : 0;
}

VolumeTrial VolumeTrial::quarter() const {
  VolumeTrial part = *this;
  part.piece_.slices = std::max<std::uint64_t>(1, piece_.slices / 4);
  const std::uint64_t skipped = (piece_.slices - part.piece_.slices) / 2;
  part.first_slice_ = first_slice_ + skipped;
  const std::size_t run = static_cast<std::size_t>(part.piece_.slices) * piece_.slice_bytes();
  part.voxels_.resize(static_cast<std::size_t>(part.piece_.bytes()));
  for (std::uint64_t v = 0; v < piece_.volumes; ++v)
    std::memcpy(part.voxels_.data() + static_cast<std::size_t>(v) * run,
                voxels_.data() + static_cast<std::size_t>(v * piece_.slices + skipped) * piece_.slice_bytes(), run);
  return part;
}

std::vector<SizeByKind> VolumeTrial::estimate(const VolumeMap& map, int block_size) const {
  const int slices = static_cast<int>(piece_.all_slices());
  Gop gop(slice_video(map, piece_.width, piece_.height, piece_.all_slices()), slices);
  gop.set_frames(slices);
  const VolumeMapper mapper(map);
  for (int z = 0; z < slices; ++z)
    mapper.to_samples(voxels_.data() + static_cast<std::size_t>(z) * piece_.slice_bytes(), gop, z);
  return estimate_sizes(gop, map.plane_bits(), block_size);
}

std::uint64_t VolumeTrial::code(VolumeMap map, const VolumeCandidate& c, CodingParams p, int slab) const {
  map.prediction = c.prediction;
  map.order = c.order;
  map.slices = piece_.slices;
  map.volumes = piece_.volumes;
  const std::uint64_t all = piece_.all_slices();
  const int frames = slab_frames(piece_, c, p.lossless, slab);
  apply(c, frames, p);
  p.boxes.clear();
  const VideoInfo video = slice_video(map, piece_.width, piece_.height, all);
  MemorySink sink;
  Encoder encoder = make_encoder(video, p, sink);
  const VolumeMapper mapper(map);
  std::vector<std::uint64_t> slice_of(static_cast<std::size_t>(all));
  for (std::uint64_t s = 0; s < all; ++s) slice_of[static_cast<std::size_t>(map.frame_of(s))] = s;
  Gop gop(video, frames);
  for (std::uint64_t f = 0; f < all; f += static_cast<std::uint64_t>(frames)) {
    const int n = static_cast<int>(std::min<std::uint64_t>(all - f, static_cast<std::uint64_t>(frames)));
    gop.set_frames(n);
    for (int i = 0; i < n; ++i) {
      const auto slice = static_cast<std::size_t>(slice_of[static_cast<std::size_t>(f) + static_cast<std::size_t>(i)]);
      mapper.to_samples(voxels_.data() + slice * piece_.slice_bytes(), gop, i);
    }
    predict(map.prediction, map.plane_bits(), gop);
    encoder.push(gop);
  }
  encoder.finish();
  const auto map_bytes = static_cast<std::uint64_t>(share() * static_cast<double>(serialise(map).size()));
  return encoder.stats().stream_bytes + map_bytes;
}

// ------------------------------------------------------------------------------------------------------------- choice

bool VolumeChoice::palette_is_possible() const { return palette.has_value(); }

bool VolumeChoice::prediction_is_possible() const {
  // Without a transform only the contexts of the dense coder exploit neighbours.
  return !wanted.is_lossy() && wanted.profile != Profile::kFast && volume.voxel.channels < 3;
}

bool VolumeChoice::predictive_is_possible() const {
  const bool wanted_so = wanted.transform ? *wanted.transform == VolumeTransform::kPrediction : wanted.predictive;
  // `profile` concerns wavelets. A caller that wants the fast one gets prediction only where prediction is as fast.
  const bool fast_enough =
      wanted.profile != Profile::kFast || (wanted.effort == VolumeEffort::kFast && !wanted.transform);
  return wanted_so && !wanted.is_lossy() && fast_enough && wanted.layers <= 1;
}

void VolumeChoice::check() const {
  const bool possible =
      wanted.transform == VolumeTransform::kPrediction ? predictive_is_possible() : prediction_is_possible();
  require(!wants_prediction(wanted.transform) || possible, ErrorKind::kBadArgument,
          wanted.transform == VolumeTransform::kPrediction
              ? "prediction needs lossless coding, not in the fast profile, and one layer"
              : "prediction needs lossless coding, not in the fast profile, and voxels that are not colours");
  require(!wanted.palette.value_or(false) || palette_is_possible(), ErrorKind::kBadArgument,
          "a palette needs lossless coding or a largest error, and at most " + std::to_string(kMaxPalette) +
              " different values");
  require(!wanted.fourth_axis_first.value_or(false) || can_be_held(volume), ErrorKind::kUnsupported,
          "coding along the fourth axis holds the volume in memory, and it has " + count_of(volume.bytes(), "byte") +
              "; the limit is " + std::to_string(kMostHeld));
}

namespace {

/// Coordinate descent: each candidate changes one property of the best one so far.
class Chooser {
 public:
  Chooser(const VolumeChoice& choice, const VolumeTrial& trial, const CodingParams& params)
      : choice_(choice),
        wanted_(choice.wanted),
        trial_(trial),
        params_(params),
        slow_(choice.wanted.effort == VolumeEffort::kSlow),
        palette_is_open_(!wanted_.palette && choice.palette && choice.palette->last < choice.plain.last) {}

  VolumeCandidate choose() {
    start();
    if (wanted_.effort == VolumeEffort::kFast) {
      if (palette_is_open_) best_.palette = has_holes(0.5) && palette_is_short();  // a palette pays without a trial
      // The lower planes of large numbers cannot be predicted.
      if (choice_.predictive_is_possible() && map_of(best_).planes() == 1 && !is_colour()) best_.predictive = true;
      if (best_.predictive) {
        const Labels labels = labels_wanted();
        if (labels == Labels::kTry) {
          consider(best_);
          try_labels();
        }
        if (labels == Labels::kYes) take_labels();
      }
      return best_;
    }
    if (choice_.predictive_is_possible()) {
      const VolumeCandidate usual = best_;
      try_predictive();
      // Whole volumes were 2 to 8 % smaller with prediction even where the piece was not, because the adaptive weights
      // see more data. Exceptions: the lower planes of large numbers cannot be predicted (floats: 8 % more bytes), and
      // channels are predicted independently, which costs bytes for similar colours but not for dissimilar ones
      // (probabilities of four labels).
      if ((choice_.plain.planes() == 1 && !is_colour()) || wanted_.transform) return best_;
      if (least_ == std::numeric_limits<double>::infinity()) consider(best_);
      consider(usual);
    } else {
      consider(best_);
    }
    try_predictions();
    if (palette_is_open_) vary([](VolumeCandidate& c) { c.palette = true; });
    if (!wanted_.fourth_axis_first && choice_.volume.volumes > 1 && can_be_held(choice_.volume)) try_fourth_axis();
    if ((!is_predicted() || slow_) && !wants_prediction(wanted_.transform)) try_wavelets();
    return best_;
  }

 private:
  static constexpr double kLeastSaved = 0.01;    // by what is slow to code
  static constexpr double kPlainlySaved = 0.03;  // three times as much

  /// Begins with the defaults and the fixed choices.
  void start() {
    const int smallest = std::min(choice_.volume.width, choice_.volume.height);
    best_.palette = wanted_.palette.value_or(false);
    best_.order = wanted_.fourth_axis_first.value_or(false) ? VolumeOrder::kFourthAxis : VolumeOrder::kFile;
    best_.xy_levels = std::clamp(floor_log2(static_cast<std::uint64_t>(smallest)) - 1, 0, smallest >= 512 ? 5 : 4);
    best_.wavelet = Wavelet::kRev137;
    best_.z_levels = std::min(3, most_z_levels(best_));
    best_.predictive = wanted_.transform == VolumeTransform::kPrediction;
    if (wants_prediction(wanted_.transform) && !best_.predictive)
      best_.prediction = *wanted_.transform == VolumeTransform::kPredictionAcross ? VolumePrediction::kAcross
                                                                                  : VolumePrediction::kInSlice;
  }

  /// Codes nothing if there is no alternative to compare.
  void try_predictive() {
    best_.predictive = true;
    const bool along_fourth = !wanted_.fourth_axis_first && choice_.volume.volumes > 1 && can_be_held(choice_.volume);
    // A palette does not pay for a few missing values.
    const bool palette = palette_is_open_ && has_holes(0.95);
    const Labels wanted = labels_wanted();
    const bool ahead = is_small();
    const bool mixed = mixing_may_pay();
    if (wanted == Labels::kYes && !slow_ && !palette && !along_fourth && !ahead && !mixed) return take_labels();
    const bool labels = wanted != Labels::kNo;
    if (palette || along_fourth || labels || ahead || mixed) consider(best_);
    if (palette) vary([](VolumeCandidate& c) { c.palette = true; });
    if (labels) try_labels();
    if (labels && palette && best_.palette) vary([](VolumeCandidate& c) { c.palette = false; });  // labels need none
    if (ahead) vary([](VolumeCandidate& c) { c.ahead = true; });
    if (along_fourth) vary([](VolumeCandidate& c) { c.order = VolumeOrder::kFourthAxis; });
    if (mixed) vary_costly([](VolumeCandidate& c) { c.mixed = true; });
    if (best_.mixed && palette && best_.palette) vary([](VolumeCandidate& c) { c.palette = false; });  // as for labels
  }

  /// Whether the trial codes the whole volume, or blocks have so few samples that their tables of frequencies matter,
  /// of which static contexts have fewer.
  bool is_small() const {
    constexpr std::uint64_t kFewSlices = 4;
    return trial_.share() >= 1 || choice_.volume.all_slices() <= kFewSlices;
  }

  /// Mixing takes ten times as long as other contexts, in both directions: `medium` does it for small volumes and
  /// regions of them alone, and not where numbers have lower planes, most of which are noise.
  bool mixing_may_pay() const {
    const bool few = choice_.volume.voxels() <= kTrialVoxels || mixes_for_regions(choice_.volume, wanted_);
    return slow_ || (few && map_of(best_).planes() == 1);
  }

  /// Takes what is slow to code where it saves what its time is worth: of small volumes anything.
  template <class F>
  void vary_costly(const F& change) {
    const VolumeCandidate others = best_;
    const double bytes = least_;
    vary(change);
    if (choice_.volume.voxels() <= kTrialVoxels || least_ <= (1 - kLeastSaved) * bytes) return;
    best_ = others;
    least_ = bytes;
  }
  void try_labels() {
    const auto change = [](VolumeCandidate& c) { c.labels = true; };
    if (slow_)
      vary(change);
    else
      vary_costly(change);
  }

  enum class Labels { kNo, kTry, kYes };

  /// One value, or few in regions or of two kinds; and where labels must save much, not without any hope. Where they
  /// plainly save, nothing need be tried: each block is coded both ways. Where few voxels lie inside regions, they are
  /// small, or there are none: only estimates that no scan reaches (0.86 at least) tell.
  Labels labels_wanted() const {
    constexpr std::size_t kMostLabels = 4096;
    constexpr double kLeastInside = 0.4;
    constexpr double kFewInside = 0.1;
    constexpr double kNoNumbers = 0.7;
    const std::size_t values = choice_.analysis.distinct();
    if (values == 0 || values > kMostLabels) return Labels::kNo;
    const double inside = values <= 2 ? 1 : trial_.inside_regions();
    if (inside <= kFewInside) return Labels::kNo;
    if (inside > kLeastInside && (slow_ || is_small())) return Labels::kTry;
    // The estimates take labels for up to this factor larger than they are: they know fewer neighbours.
    constexpr double kTooLarge = 1.15;
    const std::vector<SizeByKind> blocks = trial_.quarter().estimate(map_of(best_), wanted_.block_size);
    double numbers = 0;
    double both = 0;
    double hope = 0;
    for (const SizeByKind& b : blocks) {
      numbers += b.numbers;
      both += std::min(b.numbers, b.labels);
      hope += std::min(b.numbers, b.labels / kTooLarge);
    }
    if (inside <= kLeastInside) return both < kNoNumbers * numbers ? Labels::kYes : Labels::kNo;
    if (both < (1 - kPlainlySaved) * numbers) return Labels::kYes;
    return values <= 2 || numbers == 0 || hope < (1 - kLeastSaved) * numbers ? Labels::kTry : Labels::kNo;
  }

  /// Without a trial.
  void take_labels() {
    best_.labels = true;
    if (wanted_.on_remark) wanted_.on_remark("estimated: labels are smaller");
  }

  const VolumeMap& map_of(const VolumeCandidate& c) const { return c.palette ? *choice_.palette : choice_.plain; }

  bool is_colour() const { return choice_.volume.voxel.channels >= 3; }

  /// Whether less than this share of the numbers is in use.
  bool has_holes(double share) const {
    return static_cast<double>(choice_.palette->last + 1) < share * static_cast<double>(choice_.plain.last);
  }

  /// Whether the palette takes less than half a bit a voxel, the least that numbers without holes save.
  bool palette_is_short() const { return 16 * serialise(*choice_.palette).size() < choice_.volume.voxels(); }

  void try_predictions() {
    if (!choice_.prediction_is_possible()) return;
    if (wanted_.transform) return;
    const auto predicted = [](VolumePrediction prediction) {
      return [prediction](VolumeCandidate& c) {
        c.predictive = false;
        c.prediction = prediction;
      };
    };
    vary(predicted(VolumePrediction::kInSlice));
    if (slow_ || is_predicted()) vary(predicted(VolumePrediction::kAcross));
  }

  void try_fourth_axis() {
    VolumeCandidate c = best_;
    c.order = VolumeOrder::kFourthAxis;
    for (const int levels : {3, 1}) {
      if (is_predicted() && levels == 1) continue;
      c.z_levels = std::min(levels, most_z_levels(c));
      consider(c);
    }
  }

  /// Finds the best wavelet; only that one is compared with prediction.
  void try_wavelets() {
    VolumeCandidate wavelet = best_wavelet_;
    const auto better = [&](const auto& change) {
      VolumeCandidate c = wavelet;
      change(c);
      const std::uint64_t bytes = consider(c);
      if (bytes < wavelet_bytes_) {
        wavelet_bytes_ = bytes;
        wavelet = c;
      }
    };
    if (params_.lossless) better([](VolumeCandidate& c) { c.wavelet = Wavelet::kCdf53; });
    const int tried = wavelet.z_levels;
    const int most = most_z_levels(wavelet);
    for (int z = 0; z <= most; ++z)
      if (z != tried && (slow_ || z == 0 || z == 2)) better([z](VolumeCandidate& c) { c.z_levels = z; });
    if (!slow_ || !params_.lossless) return;
    const Wavelet other = wavelet.wavelet == Wavelet::kCdf53 ? Wavelet::kRev137 : Wavelet::kCdf53;
    better([&](VolumeCandidate& c) { c.wavelet = other; });
    for (const int levels : {wavelet.xy_levels - 1, wavelet.xy_levels + 1})
      if (levels >= wavelet.z_levels && levels >= 0 && levels <= 8)
        better([levels](VolumeCandidate& c) { c.xy_levels = levels; });
  }

  bool is_predicted() const { return best_.predictive || best_.prediction != VolumePrediction::kNone; }

  int most_z_levels(const VolumeCandidate& c) const {
    const std::uint64_t run = c.order == VolumeOrder::kFourthAxis ? choice_.volume.volumes : choice_.volume.slices;
    return std::min(c.xy_levels, floor_log2(std::max<std::uint64_t>(1, run)));
  }

  std::uint64_t consider(const VolumeCandidate& c) {
    const std::uint64_t bytes = trial_.code(map_of(c), c, params_, wanted_.slab.value_or(0));
    if (wanted_.on_remark) wanted_.on_remark("tried " + c.text() + ": " + count_of(bytes, "byte"));
    const bool is_wavelet = !c.predictive && c.prediction == VolumePrediction::kNone;
    // A wavelet gets a bonus of 1 %, because it also offers reduced sizes and qualities; `slow` wants the fewest bytes.
    const double weight = is_wavelet || slow_ ? 1 : 1.01;
    if (const double cost = weight * static_cast<double>(bytes); cost < least_) {
      least_ = cost;
      best_ = c;
    }
    if (is_wavelet && bytes < wavelet_bytes_) {
      wavelet_bytes_ = bytes;
      best_wavelet_ = c;
    }
    return bytes;
  }

  template <class F>
  void vary(const F& change) {
    VolumeCandidate c = best_;
    change(c);
    consider(c);
  }

  const VolumeChoice& choice_;
  const VolumeEncoderParams& wanted_;
  const VolumeTrial& trial_;
  const CodingParams& params_;
  bool slow_;
  bool palette_is_open_;
  VolumeCandidate best_;
  VolumeCandidate best_wavelet_;
  double least_ = std::numeric_limits<double>::infinity();
  std::uint64_t wavelet_bytes_ = ~std::uint64_t{0};
};

}  // namespace

VolumeCandidate choose_candidate(const VolumeChoice& choice, const VolumeTrial& trial, const CodingParams& params) {
  return Chooser(choice, trial, params).choose();
}

}  // namespace trivelet
