// Encoding a volume: look at all voxels, choose the map and the transform, code slab by slab, decode again and compare.
//
// The input is read three times (look, code, verify) rather than held: memory stays at a few slabs. Only a volume whose
// fourth axis is transformed is held as a whole, because its slices are wanted in another order.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/video/metrics.h"
#include "apps/volume/volume.h"
#include "codec/volume_predict.h"

namespace trivelet::cli {

namespace {

constexpr std::size_t kMostHeld = std::size_t{4} << 30;  // bytes of voxels for another order of slices
constexpr std::size_t kTrialVoxels = std::size_t{1} << 20;

/// Pieces of some slices, cut from the middle of the picture.
struct Trial {
  int width = 0, height = 0;
  std::uint64_t first_slice = 0;
  std::uint64_t slices = 0;   ///< along the third axis
  std::uint64_t volumes = 0;  ///< the first so many
  std::vector<std::byte> voxels;
  std::size_t slice_bytes = 0;

  bool has(std::uint64_t slice, std::uint64_t volume) const {
    return volume < volumes && slice >= first_slice && slice < first_slice + slices;
  }
};

Trial plan_trial(const io::VolumeInfo& info) {
  // Whole rows, because air at the sides is as much a part of the volume as what is in the middle.
  Trial t;
  t.width = info.width;
  t.volumes = std::min<std::uint64_t>(info.volumes, 32);
  t.slices = std::min<std::uint64_t>({info.slices, 64, std::max<std::uint64_t>(4, 256 / t.volumes)});
  const std::uint64_t rows = kTrialVoxels / (static_cast<std::uint64_t>(t.width) * t.slices * t.volumes);
  t.height = static_cast<int>(std::clamp<std::uint64_t>(rows, 64, 1024));
  t.height = std::min(t.height, info.height);
  t.slice_bytes = static_cast<std::size_t>(t.width) * static_cast<std::size_t>(t.height) * info.voxel.bytes();
  t.first_slice = (info.slices - t.slices) / 2;
  return t;
}

void keep_for_trial(Trial& t, const io::VolumeInfo& info, const std::byte* slice) {
  const std::size_t voxel = info.voxel.bytes();
  const std::size_t x = static_cast<std::size_t>((info.width - t.width) / 2);
  const std::size_t y = static_cast<std::size_t>((info.height - t.height) / 2);
  for (int row = 0; row < t.height; ++row) {
    const std::byte* from =
        slice + ((y + static_cast<std::size_t>(row)) * static_cast<std::size_t>(info.width) + x) * voxel;
    t.voxels.insert(t.voxels.end(), from, from + static_cast<std::size_t>(t.width) * voxel);
  }
}

/// What a lossy stream is made of: numbers in proportion to the values (those of floats stand for their exponents), and
/// a single plane of them, because an error in the upper of two would be a large one.
VolumeMap lossy_map(const VolumeAnalysis& analysis, VolumeMap exact) {
  require(
      analysis.not_finite() == 0, ErrorKind::kBadArgument,
      fmt::format("{} voxels are not finite (NaN or infinite); code this volume losslessly", analysis.not_finite()));
  const bool real = is_real(exact.format.type);
  if ((!real && exact.planes() == 1) || exact.last == 0) return exact;
  const double range = analysis.max_value() - analysis.min_value();
  constexpr double kSteps = 65000;  // of 16 bits; the rest is room for rounding
  return bounded_map(analysis, real ? range / (2 * kSteps) : std::ceil(range / (2 * kSteps)));
}

bool voxel_bytes_fit(const io::VolumeInfo& info) { return info.voxels() * info.voxel.bytes() <= kMostHeld; }

VideoInfo video_info(const VolumeMap& map, int width, int height, std::uint64_t frames) {
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

int floor_log2(std::uint64_t n) {
  int l = 0;
  while (n >>= 1) ++l;
  return l;
}

/// How a volume can be coded.
struct Candidate {
  bool palette = false;
  VolumeMap::Prediction prediction = VolumeMap::Prediction::kNone;
  VolumeMap::Order order = VolumeMap::Order::kFile;
  Wavelet wavelet = Wavelet::kCdf53;
  int z_levels = 0;
  int xy_levels = 4;
  std::string text() const {
    static constexpr const char* kPredictions[] = {"", "prediction in the slice", "prediction across slices"};
    const std::string transform = prediction == VolumeMap::Prediction::kNone
                                      ? fmt::format("{} {}x{}", to_string(wavelet), z_levels, xy_levels)
                                      : kPredictions[static_cast<int>(prediction)];
    return fmt::format("{}{}{}", transform, palette ? ", palette" : "",
                       order == VolumeMap::Order::kFourthAxis ? ", along the fourth axis" : "");
  }
};

/// Frames transformed together.
int slab_frames(const io::VolumeInfo& info, const Candidate& c, bool lossless, int wanted) {
  const std::uint64_t run = c.order == VolumeMap::Order::kFourthAxis ? info.volumes : info.slices;
  const std::uint64_t all = info.all_slices();
  if (wanted > 0) return static_cast<int>(std::min<std::uint64_t>(static_cast<std::uint64_t>(wanted), all));
  // Twice as many bring 0.2 dB (CThead at 0.5 bits per voxel), and next to nothing when lossless.
  const std::uint64_t usual = lossless ? 64 : 128;
  if (run <= usual) return static_cast<int>(run);
  // Parts of nearly one size, and of whole groups of the transform.
  const std::uint64_t parts = (run + usual - 1) / usual;
  const std::uint64_t group = std::uint64_t{1} << c.z_levels;
  const std::uint64_t part = ((run + parts - 1) / parts + group - 1) / group * group;
  return static_cast<int>(std::min<std::uint64_t>(part, 128));
}

void apply(const Candidate& c, int frames, EncoderParams& p) {
  p.layout = Layout::kDyadic;
  p.spatial = p.temporal = p.lossless ? c.wavelet : Wavelet::kCdf97;
  p.spatial_levels = c.xy_levels;
  p.temporal_levels = std::min({c.z_levels, c.xy_levels, floor_log2(static_cast<std::uint64_t>(frames))});
  p.gop_frames = frames;
  if (c.prediction == VolumeMap::Prediction::kNone) return;
  p.spatial_levels = p.temporal_levels = 0;
  p.layers = 1;
  p.block_size = 64;
}

/// Bytes of the trial's GOPs under a candidate.
std::uint64_t try_out(const Trial& t, const io::VolumeInfo& info, VolumeMap map, const Candidate& c, EncoderParams p) {
  map.prediction = c.prediction;
  io::VolumeInfo small = info;
  small.width = t.width;
  small.height = t.height;
  small.slices = t.slices;
  small.volumes = t.volumes;
  const std::uint64_t all = small.all_slices();
  const int frames = slab_frames(small, c, p.lossless, p.gop_frames);
  apply(c, frames, p);
  p.boxes.clear();
  const VideoInfo video = video_info(map, t.width, t.height, all);
  MemorySink sink;
  Encoder encoder(video, p, sink);
  const VolumeMapper mapper(map);
  Gop gop(video, frames);
  VolumeMap order = map;
  order.order = c.order;
  order.slices = small.slices;
  order.volumes = small.volumes;
  std::vector<std::uint64_t> slice_of(static_cast<std::size_t>(all));
  for (std::uint64_t s = 0; s < all; ++s) slice_of[static_cast<std::size_t>(order.frame_of(s))] = s;
  for (std::uint64_t f = 0; f < all; f += static_cast<std::uint64_t>(frames)) {
    const int n = static_cast<int>(std::min<std::uint64_t>(all - f, static_cast<std::uint64_t>(frames)));
    gop.set_frames(n);
    for (int i = 0; i < n; ++i)
      mapper.to_samples(t.voxels.data() + static_cast<std::size_t>(
                                              slice_of[static_cast<std::size_t>(f) + static_cast<std::size_t>(i)]) *
                                              t.slice_bytes,
                        gop, i);
    predict(map.prediction, map.plane_bits(), gop);
    encoder.push(gop);
  }
  encoder.finish();
  return encoder.stats().stream_bytes;
}

/// Tries what a volume can be coded with on a piece of it. `preset`: fast takes the usual, medium tries the most
/// promising, one thing after the other, slow more of them. `transform`: auto, wavelet, prediction.
class Chooser {
 public:
  Chooser(const Trial& trial, const io::VolumeInfo& info, const VolumeAnalysis& analysis, const VolumeMap& plain,
          const EncoderParams& params)
      : trial_(trial), info_(info), analysis_(analysis), plain_(plain), params_(params) {
    palette_possible_ =
        params.lossless && plain.kind == VolumeMap::Kind::kAffine && plain.exact() && palette_may_pay(analysis);
    // Without a transform only the dense coder sees neighbours.
    prediction_possible_ = params.lossless && params.profile != Profile::kFast && plain.format.channels < 3;
    if (palette_possible_) palette_ = exact_map(analysis, true);
  }

  Candidate choose(const std::string& preset, const std::string& transform) {
    require(transform != "prediction" || prediction_possible_, ErrorKind::kBadArgument,
            "--transform prediction needs lossless coding in the dense profile, and voxels that are not colours");
    const int smallest = std::min(info_.width, info_.height);
    best_.xy_levels = std::clamp(floor_log2(static_cast<std::uint64_t>(smallest)) - 1, 0, smallest >= 512 ? 5 : 4);
    best_.wavelet = Wavelet::kRev137;
    best_.z_levels = std::min(3, most_z_levels(best_));
    if (transform == "prediction") best_.prediction = VolumeMap::Prediction::kInSlice;
    if (preset == "fast") {
      // Many holes in a narrow range: the values that occur are worth a table.
      const double range = static_cast<double>((analysis_.max_key() - analysis_.min_key()) / analysis_.common_scale());
      best_.palette = palette_possible_ && static_cast<double>(analysis_.distinct()) < 0.5 * range;
      return best_;
    }
    const bool slow = preset == "slow";
    consider(best_);
    if (prediction_possible_ && transform == "auto")
      vary([](Candidate& c) { c.prediction = VolumeMap::Prediction::kInSlice; });
    if (prediction_possible_ && transform != "wavelet" && (slow || predicted()))
      vary([](Candidate& c) { c.prediction = VolumeMap::Prediction::kAcross; });
    if (palette_possible_) vary([](Candidate& c) { c.palette = true; });
    if (info_.volumes > 1 && voxel_bytes_fit(info_)) {
      Candidate c = best_;
      c.order = VolumeMap::Order::kFourthAxis;
      for (const int levels : {3, 1}) {
        if (predicted() && levels == 1) continue;
        c.z_levels = std::min(levels, most_z_levels(c));
        consider(c);
      }
    }
    if (predicted() && !slow) return best_;
    // The best wavelet; against prediction it may win only in the end.
    Candidate wavelet = best_wavelet_;
    const auto better = [&](const auto& change) {
      Candidate c = wavelet;
      change(c);
      const std::uint64_t bytes = consider(c);
      if (bytes < wavelet_bytes_) {
        wavelet_bytes_ = bytes;
        wavelet = c;
      }
    };
    if (transform == "prediction") return best_;
    if (params_.lossless) better([](Candidate& c) { c.wavelet = Wavelet::kCdf53; });
    const int tried = wavelet.z_levels;
    const int most = most_z_levels(wavelet);
    for (int z = 0; z <= most; ++z)
      if (z != tried && (slow || z == 0 || z == 2)) better([z](Candidate& c) { c.z_levels = z; });
    if (slow && params_.lossless) {
      const Wavelet other = wavelet.wavelet == Wavelet::kCdf53 ? Wavelet::kRev137 : Wavelet::kCdf53;
      better([&](Candidate& c) { c.wavelet = other; });
      for (const int levels : {wavelet.xy_levels - 1, wavelet.xy_levels + 1})
        if (levels >= wavelet.z_levels && levels >= 0 && levels <= 8)
          better([levels](Candidate& c) { c.xy_levels = levels; });
    }
    return best_;
  }

 private:
  bool predicted() const { return best_.prediction != VolumeMap::Prediction::kNone; }
  int most_z_levels(const Candidate& c) const {
    const std::uint64_t run = c.order == VolumeMap::Order::kFourthAxis ? info_.volumes : info_.slices;
    return std::min(c.xy_levels, floor_log2(std::max<std::uint64_t>(1, run)));
  }
  std::uint64_t consider(const Candidate& c) {
    const std::uint64_t bytes = try_out(trial_, info_, c.palette ? palette_ : plain_, c, params_);
    log::debug("tried {}: {} bytes", c.text(), bytes);
    // What only a wavelet can do (smaller pictures, lower quality) is worth a little.
    const double weight = c.prediction == VolumeMap::Prediction::kNone ? 1 : 1.01;
    if (const double cost = weight * static_cast<double>(bytes); cost < least_) {
      least_ = cost;
      best_ = c;
    }
    if (c.prediction == VolumeMap::Prediction::kNone && bytes < wavelet_bytes_) {
      wavelet_bytes_ = bytes;
      best_wavelet_ = c;
    }
    return bytes;
  }
  template <class F>
  void vary(const F& change) {
    Candidate c = best_;
    change(c);
    consider(c);
  }

  const Trial& trial_;
  const io::VolumeInfo& info_;
  const VolumeAnalysis& analysis_;
  const VolumeMap& plain_;
  EncoderParams params_;
  VolumeMap palette_;
  bool palette_possible_ = false;
  bool prediction_possible_ = false;
  Candidate best_;
  Candidate best_wavelet_;
  double least_ = std::numeric_limits<double>::infinity();
  std::uint64_t wavelet_bytes_ = ~std::uint64_t{0};
};

/// Distance of the volume from what so many layers of its stream give. Reads the file again.
VolumeError measure(const std::string& coded, io::VolumeReader& reader, int layers, const Common& common) {
  Common unlimited = common;
  unlimited.max_memory = "1000000G";  // what could be encoded may be decoded
  VolumeDecoding decoding;
  decoding.max_layers = layers;
  const auto decoded = decode_volume(coded, decoding, unlimited);
  const io::VolumeInfo& info = decoded->info();
  std::vector<std::byte> slice(info.slice_bytes());
  std::vector<std::byte> wanted(info.slice_bytes());
  reader.rewind();
  VolumeError error;
  const std::size_t scalars = slice.size() / static_cast<std::size_t>(bytes_of(info.voxel.type));
  for (std::uint64_t z = 0; z < info.all_slices(); ++z) {
    require(decoded->read(slice.data()), ErrorKind::kMismatch, "slices are missing");
    reader.read(wanted.data(), wanted.size());
    if (slice == wanted)
      error.scalars += scalars;
    else
      error.add(compare_scalars(wanted.data(), info.voxel, slice.data(), info.voxel, scalars));
  }
  return error;
}

/// Decodes every cut of the finished stream, checks the whole, and says what each layer is worth.
VolumeCuts verify(const std::string& coded, io::VolumeReader& reader, const VolumeMap& map, bool lossy, int layers,
                  double peak, const Common& common) {
  VolumeCuts result;
  result.peak = peak;
  for (int l = 1; l <= layers; ++l) {
    const VolumeError error = measure(coded, reader, l < layers ? l : 0, common);
    result.cuts.push_back({error.max, error.squared / static_cast<double>(error.scalars)});
    if (l < layers) continue;
    require(lossy || !map.exact() || error.different == 0, ErrorKind::kMismatch,
            fmt::format("{} values differ from the input", error.different));
    require(lossy || error.max <= map.max_error, ErrorKind::kMismatch,
            fmt::format("an error of {:g} where at most {:g} was promised", error.max, map.max_error));
  }
  return result;
}

}  // namespace

int encode_volume(const std::string& input, const std::string& output, const VolumeTyped& typed,
                  const VolumeCoding& coding, const EncoderParams& typed_params, const std::string& preset,
                  const Command& app, const Common& common) {
  const bool lossy = !typed_params.lossless;
  check_output("", output, true);
  const Stopwatch clock;
  const auto reader = io::open_volume(input, volume_options(typed));
  const io::VolumeInfo& info = reader->info();
  for (const std::string& remark : reader->remarks()) log::warn("{}: {}", input, remark);

  // Look at everything once.
  VolumeAnalysis analysis(info.voxel);
  Trial trial = plan_trial(info);
  std::vector<std::byte> slice(info.slice_bytes());
  for (std::uint64_t s = 0; s < info.all_slices(); ++s) {
    reader->read(slice.data(), slice.size());
    analysis.add(slice.data(), slice.size() / info.voxel.bytes());
    if (trial.has(s % info.slices, s / info.slices)) keep_for_trial(trial, info, slice.data());
  }
  const io::Envelope envelope = reader->envelope();
  const std::size_t values = analysis.distinct();
  log::debug("values {:g}..{:g}, {} different", analysis.min_value(), analysis.max_value(),
             values > 0 ? std::to_string(values) : "many");

  // Map.
  double bound = coding.max_error;
  if (coding.max_error_hu >= 0) {
    require(info.slope != 0, ErrorKind::kBadArgument, "--max-error-hu: the volume's slope is 0");
    bound = coding.max_error_hu / std::fabs(info.slope);
  }
  VolumeMap map = bound > 0 ? bounded_map(analysis, bound) : exact_map(analysis, false);
  if (lossy) map = lossy_map(analysis, std::move(map));
  map.slices = info.slices;
  map.volumes = info.volumes;
  (void)map.pixel_format();

  // Transform.
  EncoderParams params = typed_params;
  if (coding.ratio > 0) params.bits_per_pixel = 8.0 * static_cast<double>(info.voxel.bytes()) / coding.ratio;
  if (params.psnr > 0 && map.last > 0)  // the peak is what occurs, not what the bits could hold
    params.psnr += 20 * std::log10(std::exp2(map.plane_bits()) - 1) - 20 * std::log10(static_cast<double>(map.last));
  params.even_ends = false;
  // The number of layers is known before the stream begins, because what they are worth stands before them.
  if (params.layers == 0) params.layers = params.profile == Profile::kDense || lossy ? 9 : 4;
  params.measure_errors = false;                   // verify() measures every cut
  params.part_checks = !params.has_byte_target();  // for regions
  params.gop_frames = coding.slab;
  Candidate c;
  const auto is_typed = [&app](const char* option) { return app.typed(option); };
  const bool structure_typed = is_typed("--levels") || is_typed("--wavelet") || is_typed("--temporal-wavelet") ||
                               is_typed("--layout") || is_typed("--gop");
  if (structure_typed) {
    if (!is_typed("--layout")) params.layout = Layout::kDyadic;
    if (is_typed("--gop")) params.gop_frames = typed_params.gop_frames;
    params.gop_frames = slab_frames(info, c, params.lossless, params.gop_frames);
  } else {
    EncoderParams trial_params = params;
    if (lossy) {  // the same quantiser for all
      trial_params = {};
      trial_params.profile = params.profile;
      trial_params.step = std::exp2(map.plane_bits() - 8);
      trial_params.gop_frames = params.gop_frames;
      trial_params.threads = params.threads;
      trial_params.simd = params.simd;
      trial_params.even_ends = false;
      trial_params.layers = params.layers;
      trial_params.measure_errors = false;
    }
    c = Chooser(trial, info, analysis, map, trial_params).choose(preset, coding.transform);
    if (c.palette) {
      const VolumeMap plain = map;
      map = exact_map(analysis, true);
      map.slices = plain.slices;
      map.volumes = plain.volumes;
    }
    map.order = c.order;
    map.prediction = c.prediction;
    apply(c, slab_frames(info, c, params.lossless, coding.slab), params);
    log::debug("chosen: {}, slabs of {} slices", c.text(), params.gop_frames);
  }
  params.boxes.push_back({kMapBox, serialise(map)});
  params.boxes.push_back({kEnvelopeBox, serialise(envelope)});
  trial = {};

  // Code.
  FileSink sink(output, common.overwrite);
  const bool verified = !coding.no_verify && sink.file().seekable();
  require(verified || !is_typed("--verify"), ErrorKind::kBadArgument,
          "--verify decodes the finished file again, and '" + output + "' cannot be read back; write to a file");
  if (!verified && !coding.no_verify) log::warn("'{}' cannot be read back and is not verified", output);
  if (verified) {
    VolumeCuts unknown;
    unknown.cuts.resize(static_cast<std::size_t>(params.layers));
    params.boxes.push_back({kCutsBox, serialise(unknown)});
  }
  const VideoInfo video = video_info(map, info.width, info.height, info.all_slices());
  Encoder encoder(video, params, sink);
  // Where what the layers are worth will be written when it is known.
  const std::uint64_t cuts_at = verified ? encoder.stats().stream_bytes - params.boxes.back().payload.size() : 0;
  const VolumeMapper mapper(map);
  std::vector<std::byte> held;
  reader->rewind();
  if (map.order == VolumeMap::Order::kFourthAxis) {
    held.resize(static_cast<std::size_t>(info.all_slices()) * info.slice_bytes());
    reader->read(held.data(), held.size());
  }
  std::uint64_t next = 0;
  const auto fill = [&](Gop& gop) {
    const int n =
        static_cast<int>(std::min<std::uint64_t>(info.all_slices() - next, static_cast<std::uint64_t>(gop.capacity())));
    gop.set_frames(n);
    for (int i = 0; i < n; ++i, ++next) {
      if (held.empty()) {
        reader->read(slice.data(), slice.size());
        mapper.to_samples(slice.data(), gop, i);
      } else {
        const std::uint64_t s = next % info.volumes * info.slices + next / info.volumes;
        mapper.to_samples(held.data() + static_cast<std::size_t>(s) * info.slice_bytes(), gop, i);
      }
      gop.times()[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(next), 1};
    }
    predict(map.prediction, map.plane_bits(), gop);
    return n > 0;
  };
  {
    Progress progress(common, "encode", info.all_slices());
    const int capacity = encoder.gop_frames();
    Prefetch gops(Gop(video, capacity), Gop(video, capacity), fill);
    while (const Gop* gop = gops.next()) {
      encoder.push(*gop);
      progress.update(encoder.stats().frames);
    }
    progress.finish();
  }
  encoder.finish();
  held = {};
  const double seconds = clock.seconds();
  const CodecStats& stats = encoder.stats();
  log::debug("seconds in the transform {:.3f}, coder {:.3f}, container {:.3f}; {:.3f} in all", stats.seconds_transform,
             stats.seconds_coder, stats.seconds_container, seconds);

  std::string result;
  if (verified) {
    // Seeking writes out what is buffered, so that the file can be read by its temporary name.
    const std::uint64_t end = sink.file().position();
    sink.file().seek(cuts_at);
    try {
      const VolumeCuts cuts = verify(sink.file().temporary_path(), *reader, map, lossy, params.layers,
                                     analysis.max_value() - analysis.min_value(), common);
      const std::vector<std::uint8_t> bytes = serialise(cuts);
      sink.file().write(bytes.data(), bytes.size());
      sink.file().seek(end);
      result = !lossy && map.exact()
                   ? ", lossless, verified"
                   : fmt::format(", largest error {:g}, PSNR {}, verified", cuts.cuts.back().max_error,
                                 format_psnr(psnr_of(cuts, cuts.cuts.size() - 1)));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kMismatch && e.kind() != ErrorKind::kBadStream) throw;
      fail(ErrorKind::kMismatch, "verification of '" + output + "' failed, nothing is kept: " + e.what());
    }
  }
  sink.file().commit();
  const auto bytes = static_cast<double>(info.voxels() * info.voxel.bytes());
  log::info("{}x{}x{}{} {}, {} bytes, {:.4g} bits per voxel, ratio {:.2f}, {:.1f} MB/s{}", info.width, info.height,
            info.slices, info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type),
            stats.stream_bytes, 8.0 * static_cast<double>(stats.stream_bytes) / static_cast<double>(info.voxels()),
            bytes / static_cast<double>(stats.stream_bytes), 1e-6 * bytes / seconds, result);
  return kExitDone;
}

}  // namespace trivelet::cli
