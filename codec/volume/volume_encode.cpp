// encode_volume() of volume.h: surveys all voxels, chooses map and structure, codes GOP by GOP, then verifies by
// decoding. Each pass reads the source again, so memory holds only a few GOPs. The exception is a volume whose fourth
// axis is coded first: it is held as a whole, because its slices are coded in another order.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <utility>

#include "codec/backend.h"
#include "codec/base/bytes.h"
#include "codec/base/hash.h"
#include "codec/base/limits.h"
#include "codec/cpu/prediction_backend.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/container.h"
#include "codec/format/front_table.h"
#include "codec/threads/parallel.h"
#include "codec/threads/prefetch.h"
#include "codec/threads/stopwatch.h"
#include "codec/volume/volume_access.h"
#include "codec/volume/volume_choice.h"
#include "codec/volume/volume_cuts.h"
#include "codec/volume/volume_fill.h"
#include "codec/volume/volume_mask.h"
#include "codec/volume/volume_predict.h"
#include "codec/volume/volume_samples.h"
#include "trivelet/volume.h"

namespace trivelet {

void MemorySlices::read(std::byte* slice) { read_at(next_++, slice); }

void MemorySlices::read_at(std::uint64_t number, std::byte* slice) const {
  require(number < description_.all_slices(), ErrorKind::kBadArgument, "more slices are wanted than the volume has");
  const std::size_t bytes = description_.slice_bytes();
  std::memcpy(slice, voxels_ + static_cast<std::size_t>(number) * bytes, bytes);
}

std::unique_ptr<ByteSource> MemoryReadBack::open() {
  return std::make_unique<MemorySource>(sink_.bytes.data(), sink_.bytes.size());
}

void MemoryReadBack::replace(std::uint64_t position, const void* data, std::size_t size) {
  require(position <= sink_.bytes.size() && size <= sink_.bytes.size() - position, ErrorKind::kBadArgument,
          "only bytes that were written can be written over");
  std::memcpy(sink_.bytes.data() + position, data, size);
}

std::unique_ptr<FileReadBack> FileReadBack::of(FileSink& sink) {
  if (!sink.seekable() || sink.temporary_path().empty()) return nullptr;
  return std::unique_ptr<FileReadBack>(new FileReadBack(sink));
}

std::unique_ptr<ByteSource> FileReadBack::open() {
  sink_.seek(sink_.position());  // flushes the buffer
  return std::make_unique<FileSource>(sink_.temporary_path());
}

void FileReadBack::replace(std::uint64_t position, const void* data, std::size_t size) {
  const std::uint64_t end = sink_.position();
  sink_.seek(position);
  sink_.write(data, size);
  sink_.seek(end);
}

namespace {

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

void remark(const VolumeEncoderParams& params, const std::string& text) {
  if (params.on_remark) params.on_remark(text);
}

bool has_fixed_wavelet(const VolumeEncoderParams& p) {
  return p.slice_levels || p.depth_levels || p.slice_wavelet || p.depth_wavelet || p.layout;
}

void check_request(const VolumeDescription& v, const VolumeEncoderParams& p) {
  const auto refuse = [](const std::string& why) { fail(ErrorKind::kBadArgument, why); };
  if (v.width < 1 || v.height < 1 || v.slices < 1 || v.volumes < 1)
    refuse("a volume of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "x" + std::to_string(v.slices) +
           "x" + std::to_string(v.volumes) + " voxels");
  if (v.width > kMaxDimension || v.height > kMaxDimension)
    refuse("pictures of " + std::to_string(v.width) + "x" + std::to_string(v.height) + "; sizes must be 1.." +
           std::to_string(kMaxDimension));
  if (static_cast<int>(v.voxel.type) >= kVoxelTypes || v.voxel.channels < 1 || v.voxel.channels > kMaxChannels)
    refuse("voxels of " + count_of(v.voxel.channels, "channel") + "; must be 1.." + std::to_string(kMaxChannels));
  const int targets = (p.max_error > 0 ? 1 : 0) + (p.quality ? 1 : 0) + (p.step ? 1 : 0) + (p.psnr ? 1 : 0) +
                      (p.bits_per_voxel ? 1 : 0) + (p.ratio ? 1 : 0) + (p.total_bytes ? 1 : 0);
  if (targets > 1)
    refuse("a volume has one target: a largest error, a quality, step or PSNR, bits per voxel, a ratio or a size");
  if (p.psnr && !(*p.psnr > 0)) refuse("a PSNR of " + number_text(*p.psnr) + " dB; must be positive");
  if (p.ratio && !(*p.ratio > 0)) refuse("a ratio of " + number_text(*p.ratio) + "; must be positive");
  if (p.bits_per_voxel && !(*p.bits_per_voxel > 0)) refuse("a target of no bits");
  if (p.total_bytes && *p.total_bytes == 0) refuse("a target of no bytes");
  if (!p.fill_values.empty() && !p.is_lossy() && p.max_error == 0)
    refuse("fill values are for coding with loss; without, every value comes back as it is");
  if (p.slab && (*p.slab < 1 || *p.slab > 128)) refuse("slabs hold 1..128 slices, not " + std::to_string(*p.slab));
  if (has_fixed_wavelet(p) && p.transform && *p.transform != VolumeTransform::kWavelet)
    refuse("prediction has neither levels nor wavelets nor a layout");
}

/// The map for lossy coding. Numbers are proportional to the values (exact numbers of floats are not: they include
/// exponents) and fit into one plane, because an error in the upper of two planes would be large.
VolumeMap lossy_map(const VolumeAnalysis& analysis, VolumeMap exact) {
  const bool real = is_real(exact.format.type);
  const double range = analysis.max_value() - analysis.min_value();
  if ((!real && exact.planes() == 1) || exact.last == 0 || range == 0) return exact;
  constexpr double kSteps = 65000;  // of the 65536 of 16 bits; the rest allows for rounding
  double bound = range / (2 * kSteps);
  bound = real ? std::max(bound, least_bound(analysis)) : std::ceil(bound);
  // Doubles the bound while the resolution of the float type, or the common factor of the integers, needs more bits.
  for (;; bound *= 2)
    if (VolumeMap map = bounded_map(analysis, bound); map.planes() == 1) return map;
}

VolumeMap map_without_palette(const VolumeDescription& volume, const VolumeAnalysis& analysis,
                              const VolumeEncoderParams& params) {
  VolumeMap map = params.max_error != 0 ? bounded_map(analysis, params.max_error) : exact_map(analysis, false);
  if (params.is_lossy()) map = lossy_map(analysis, std::move(map));
  map.slices = volume.slices;
  map.volumes = volume.volumes;
  (void)map.pixel_format();  // throws if there is none
  return map;
}

/// Everything but the structure.
CodingParams coding_params(const VolumeDescription& volume, const VolumeMap& map, const VolumeEncoderParams& v) {
  CodingParams p;
  p.is_volume = true;
  p.lossless = !v.is_lossy();
  p.quality = v.quality.value_or(p.quality);
  p.step = v.step.value_or(0);
  p.target_bytes = v.total_bytes.value_or(0);
  p.bits_per_pixel = v.bits_per_voxel.value_or(0);
  if (v.ratio) p.bits_per_pixel = 8.0 * static_cast<double>(volume.voxel.bytes()) / *v.ratio;
  p.psnr = v.psnr.value_or(0);
  if (p.psnr > 0 && map.last > 0)  // the peak is the largest value that occurs, not the largest that fits
    p.psnr += 20 * std::log10(std::exp2(map.plane_bits()) - 1) - 20 * std::log10(static_cast<double>(map.last));
  p.profile = v.profile;
  p.effort = v.effort;
  p.block_size = v.block_size;
  p.visual = v.visual;
  p.threads = v.threads;
  p.workers = v.workers;
  p.simd = v.simd;
  p.settings = v.settings;
  p.spool_path = v.spool_path;
  // The layers are counted before the stream begins, because the box with their errors precedes them.
  p.layers = v.layers != 0 ? v.layers : p.profile == Profile::kDense || v.is_lossy() ? 9 : 4;
  p.measure_errors = false;              // verify() measures every truncation point
  p.part_checks = !p.has_byte_target();  // for regions
  return p;
}

/// The parameters of trials. Lossy candidates have the same quantiser, so that their bytes are comparable.
CodingParams trial_params(const VolumeMap& map, const CodingParams& coding) {
  if (coding.lossless) return coding;
  CodingParams p;
  p.is_volume = true;
  p.profile = coding.profile;
  p.step = std::exp2(map.plane_bits() - 8);
  p.threads = coding.threads;
  p.workers = coding.workers;
  p.simd = coding.simd;
  p.layers = coding.layers;
  p.measure_errors = false;
  return p;
}

/// The map with a palette, if there may be one.
std::optional<VolumeMap> palette_map(const VolumeAnalysis& analysis, const VolumeMap& plain,
                                     const VolumeEncoderParams& params) {
  if (params.is_lossy() || !params.palette.value_or(true) || analysis.distinct() == 0) return std::nullopt;
  std::optional<VolumeMap> map =
      params.max_error > 0 ? bounded_palette(analysis, params.max_error) : exact_map(analysis, true);
  if (!map) return map;
  map->slices = plain.slices;
  map->volumes = plain.volumes;
  return map;
}

/// What is decided before the first slice is coded.
struct Plan {
  VolumeMap map;
  CodingParams coding;
  std::string text;
  double peak = 0;                     ///< largest minus least value
  std::optional<VolumeMarker> marker;  ///< finds values outside the map
  double usual = 0;                    ///< value for slices of nothing but marks
  std::uint64_t hash = 0;              ///< hash of all slices, for VolumeVerify::kRunning
  VolumeCandidate candidate;
};

VolumeCandidate fixed_candidate(const VolumeEncoderParams& params, CodingParams& coding) {
  VolumeCandidate c;
  c.palette = params.palette.value_or(false);
  c.order = params.fourth_axis_first.value_or(false) ? VolumeOrder::kFourthAxis : VolumeOrder::kFile;
  coding.layout = params.layout.value_or(Layout::kDyadic);
  coding.spatial = params.slice_wavelet.value_or(coding.spatial);
  coding.temporal = params.depth_wavelet.value_or(coding.temporal);
  coding.spatial_levels = params.slice_levels.value_or(-1);
  coding.temporal_levels = params.depth_levels.value_or(-1);
  return c;
}

/// An order-independent hash of all slices.
class SliceHash {
 public:
  explicit SliceHash(std::uint64_t slices) : slice_hashes_(static_cast<std::size_t>(slices)) {}
  void set(std::uint64_t slice, const std::byte* voxels, std::size_t bytes) {
    XxHash64 h;
    h.update(voxels, bytes);
    slice_hashes_[static_cast<std::size_t>(slice)] = h.digest();
  }
  std::uint64_t digest() const {
    XxHash64 all;
    all.update(slice_hashes_.data(), slice_hashes_.size() * sizeof(std::uint64_t));
    return all.digest();
  }

 private:
  std::vector<std::uint64_t> slice_hashes_;
};

// Bytes of slices that all threads together process at once.
constexpr std::size_t kMostInHands = std::size_t{32} << 20;

/// As many threads as requested, fewer where slices are large.
std::unique_ptr<ThreadPool> pool_for_slices(const SliceSource& source, const VolumeEncoderParams& params) {
  const std::size_t most = std::max<std::size_t>(1, kMostInHands / source.description().slice_bytes());
  if (!source.reads_anywhere() || most == 1 || params.workers.run) return std::make_unique<ThreadPool>(1);
  auto pool = std::make_unique<ThreadPool>(params.threads);
  if (static_cast<std::size_t>(pool->threads()) > most) pool = std::make_unique<ThreadPool>(static_cast<int>(most));
  return pool;
}

/// What one pass over all voxels finds.
struct Survey {
  explicit Survey(const VolumeDescription& volume) : analysis(volume.voxel), trial(volume), hash(volume.all_slices()) {}
  VolumeAnalysis analysis;  ///< unmarked scalars
  VolumeTrial trial;        ///< a piece with filled marks
  std::optional<VolumeMarker> marker;
  std::vector<std::uint8_t> mask;  ///< content of the mask box; empty: no marks
  SliceHash hash;                  ///< if requested
};

/// Surveys slices without marks: in pieces, and several slices in parallel if the source allows it.
void look_at_slices(SliceSource& source, const VolumeEncoderParams& params, bool hashes, Survey& survey) {
  const VolumeDescription& volume = source.description();
  const bool anywhere = source.reads_anywhere();
  const std::unique_ptr<ThreadPool> pool = pool_for_slices(source, params);
  const std::uint64_t slices = volume.all_slices();
  const int pieces = static_cast<int>(std::min<std::uint64_t>(slices, static_cast<std::uint64_t>(pool->threads())));
  const std::size_t scalars = volume.slice_bytes() / static_cast<std::size_t>(bytes_of(volume.voxel.type));
  std::vector<VolumeAnalysis> seen(static_cast<std::size_t>(pieces), VolumeAnalysis(volume.voxel));
  pool->parallel_for(pieces, [&](int piece, int) {
    const auto n = static_cast<std::uint64_t>(pieces);
    const auto p = static_cast<std::uint64_t>(piece);
    const auto begin_of = [&](std::uint64_t i) { return slices / n * i + std::min(slices % n, i); };
    std::vector<std::byte> slice(volume.slice_bytes());
    for (std::uint64_t s = begin_of(p); s < begin_of(p + 1); ++s) {
      anywhere ? source.read_at(s, slice.data()) : source.read(slice.data());
      if (hashes) survey.hash.set(s, slice.data(), slice.size());
      seen[static_cast<std::size_t>(piece)].add_scalars(slice.data(), scalars);
      survey.trial.add(s, slice.data());
    }
  });
  for (const VolumeAnalysis& a : seen) survey.analysis.add(a);
}

Survey survey_of(SliceSource& source, const VolumeEncoderParams& params) {
  const VolumeDescription volume = source.description();
  Survey survey(volume);
  const auto scalar = static_cast<std::size_t>(bytes_of(volume.voxel.type));
  const std::size_t scalars = volume.slice_bytes() / scalar;
  const bool lossy = params.is_lossy() || params.max_error > 0;
  const bool hashes = params.verify && params.verification == VolumeVerify::kRunning;
  if (lossy && (is_real(volume.voxel.type) || !params.fill_values.empty()))
    survey.marker.emplace(volume.voxel, params.fill_values);
  if (!survey.marker) {
    look_at_slices(source, params, hashes, survey);
    return survey;
  }
  MaskEncoder mask(volume);
  SliceFiller filler(volume, 0);
  std::vector<std::byte> slice(volume.slice_bytes());
  std::vector<std::byte> kept;
  std::vector<std::uint8_t> marks(scalars);
  for (std::uint64_t s = 0; s < volume.all_slices(); ++s) {
    source.read(slice.data());
    if (hashes) survey.hash.set(s, slice.data(), slice.size());
    const bool marked = survey.marker->find(slice.data(), marks);
    mask.add(marks);
    if (marked) {
      kept.clear();
      for (std::size_t i = 0; i < scalars; ++i)
        if (marks[i] == 0)
          kept.insert(kept.end(), slice.begin() + static_cast<std::ptrdiff_t>(i * scalar),
                      slice.begin() + static_cast<std::ptrdiff_t>((i + 1) * scalar));
      survey.analysis.add_scalars(kept.data(), kept.size() / scalar);
      filler.fill(marks, slice.data());
    } else {
      survey.analysis.add_scalars(slice.data(), scalars);
    }
    survey.trial.add(s, slice.data());
  }
  if (mask.any()) survey.mask = mask.finish(survey.marker->values());
  require(survey.analysis.scalars() > 0, ErrorKind::kBadArgument,
          "no voxel has a value of its own, all are fill values or not finite; code this volume losslessly");
  return survey;
}

/// Chooses map and structure.
Plan plan_of(const VolumeDescription& volume, const Survey& survey, const VolumeEncoderParams& params) {
  const VolumeAnalysis& analysis = survey.analysis;
  Plan plan;
  plan.hash = survey.hash.digest();
  if (!survey.mask.empty()) {
    plan.marker = survey.marker;
    plan.usual = analysis.min_value() + (analysis.max_value() - analysis.min_value()) / 2;
  }
  plan.peak = analysis.max_value() - analysis.min_value();
  plan.map = map_without_palette(volume, analysis, params);
  plan.coding = coding_params(volume, plan.map, params);
  VolumeChoice choice{volume, analysis, plan.map, params, palette_map(analysis, plan.map, params)};
  choice.check();
  VolumeCandidate& c = plan.candidate;
  if (has_fixed_wavelet(params)) {
    c = fixed_candidate(params, plan.coding);
    plan.coding.gop_frames = slab_frames(volume, c, plan.coding.lossless, params.slab.value_or(0));
    plan.text = "as asked for";
  } else {
    c = choose_candidate(choice, survey.trial, trial_params(plan.map, plan.coding));
    apply(c, slab_frames(volume, c, plan.coding.lossless, params.slab.value_or(0)), plan.coding);
    plan.text = c.text();
  }
  plan.text += ", slabs of " + count_of(plan.coding.gop_frames, "slice");
  remark(params, "chosen: " + plan.text);
  if (c.palette) plan.map = std::move(*choice.palette);
  plan.map.order = c.order;
  plan.map.prediction = c.prediction;
  return plan;
}

void report(const VolumeEncoderParams& params, const Survey& survey) {
  const VolumeAnalysis& analysis = survey.analysis;
  const std::size_t values = analysis.distinct();
  remark(params, "values " + number_text(analysis.min_value()) + ".." + number_text(analysis.max_value()) + ", " +
                     (values > 0 ? std::to_string(values) : "many") + " different");
  if (!survey.mask.empty())
    remark(params, count_of(survey.marker->values().size(), "value", "is", "are") + " marked, in " +
                       count_of(survey.mask.size(), "byte"));
}

/// State of verification during coding (VolumeVerify::kRunning).
struct Running {
  Running(std::uint64_t slices, ByteSink& s) : source(slices), sink(s) {}

  /// Hashes what is written.
  class Sink final : public ByteSink {
   public:
    explicit Sink(ByteSink& to) : to_(to) {}
    void write(const void* data, std::size_t size) override {
      hash_.update(data, size);
      to_.write(data, size);
    }
    std::uint64_t digest() const { return hash_.digest(); }

   private:
    ByteSink& to_;
    XxHash64 hash_;
  };

  SliceHash source;
  VolumeError error;  ///< error of mapping there and back
  Sink sink;
};

/// Delivers the slices as samples, in coding order.
class SliceFeed {
 public:
  SliceFeed(SliceSource& source, const VolumeMap& map, const VolumeEncoderParams& params, Running* running)
      : source_(source),
        volume_(source.description()),
        mapper_(map),
        running_(running),
        anywhere_(source.reads_anywhere()),
        pool_(pool_for_slices(source, params)),
        hands_(static_cast<std::size_t>(pool_->threads())) {
    for (Hands& h : hands_) {
      h.slice.resize(volume_.slice_bytes());
      if (running) h.back.resize(volume_.slice_bytes());
    }
    source.rewind();
    if (map.order == VolumeOrder::kFile || anywhere_) return;
    held_.resize(static_cast<std::size_t>(volume_.bytes()));
    for (std::uint64_t s = 0; s < volume_.all_slices(); ++s)
      read(s, held_.data() + static_cast<std::size_t>(s) * volume_.slice_bytes());
  }

  /// Fills the GOP as far as slices are left; false if there is none.
  bool fill(Gop& gop) {
    const int n = static_cast<int>(
        std::min<std::uint64_t>(volume_.all_slices() - next_, static_cast<std::uint64_t>(gop.capacity())));
    gop.set_frames(n);
    std::vector<VolumeError> errors(running_ ? static_cast<std::size_t>(n) : 0);
    pool_->parallel_for(n, [&](int i, int worker) {
      Hands& hands = hands_[static_cast<std::size_t>(worker)];
      const std::byte* slice = slice_of(next_ + static_cast<std::uint64_t>(i), hands);
      mapper_.to_samples(slice, gop, i);
      if (running_) errors[static_cast<std::size_t>(i)] = compare(slice, gop, i, hands);
    });
    for (const VolumeError& e : errors) running_->error.add(e);
    for (int i = 0; i < n; ++i, ++next_)
      gop.times()[static_cast<std::size_t>(i)] = {static_cast<std::int64_t>(next_), 1};
    predict(mapper_.map().prediction, mapper_.map().plane_bits(), gop);
    return n > 0;
  }

 private:
  /// Buffers of one thread.
  struct Hands {
    std::vector<std::byte> slice;
    std::vector<std::byte> back;
  };

  void read(std::uint64_t number, std::byte* slice) {
    anywhere_ ? source_.read_at(number, slice) : source_.read(slice);
    if (running_) running_->source.set(number, slice, volume_.slice_bytes());
  }

  /// Compares the slice with what its samples map back to.
  VolumeError compare(const std::byte* slice, const Gop& gop, int frame, Hands& hands) const {
    mapper_.to_stored(gop, frame, hands.back.data());
    const std::size_t scalars = hands.back.size() / static_cast<std::size_t>(bytes_of(volume_.voxel.type));
    if (std::memcmp(slice, hands.back.data(), hands.back.size()) != 0)
      return compare_scalars(slice, volume_.voxel, hands.back.data(), volume_.voxel, scalars);
    VolumeError none;
    none.scalars = scalars;
    return none;
  }

  const std::byte* slice_of(std::uint64_t frame, Hands& hands) {
    const bool in_order = mapper_.map().order == VolumeOrder::kFile;
    const std::uint64_t s = in_order ? frame : frame % volume_.volumes * volume_.slices + frame / volume_.volumes;
    if (!held_.empty()) return held_.data() + static_cast<std::size_t>(s) * volume_.slice_bytes();
    read(s, hands.slice.data());
    return hands.slice.data();
  }

  SliceSource& source_;
  VolumeDescription volume_;
  VolumeMapper mapper_;
  Running* running_;  ///< may be null
  bool anywhere_;     ///< slices may be read in any order by several threads; else by one thread in order
  std::unique_ptr<ThreadPool> pool_;
  std::vector<Hands> hands_;
  std::vector<std::byte> held_;  ///< all slices, if the source delivers them in another order than they are coded in
  std::uint64_t next_ = 0;       ///< next frame
};

// GOPs read ahead of a device: one is uploaded while the next is read, and one is spare.
constexpr int kGopsForDevice = 3;

/// Reads the volume for the second time. Returns the position of the last box's payload.
std::uint64_t code(SliceSource& original, const Plan& plan, const VolumeEncoderParams& params, const Backend* backend,
                   Running* running, ByteSink& sink, CodecStats& stats) {
  const VolumeDescription volume = original.description();
  std::optional<FilledSlices> filled;
  if (plan.marker) filled.emplace(original, *plan.marker, plan.usual);
  SliceSource& source = filled ? *filled : original;
  const VideoInfo video = slice_video(plan.map, volume.width, volume.height, volume.all_slices());
  Encoder encoder = make_encoder(video, plan.coding, sink, backend);
  const std::uint64_t last_box = encoder.stats().stream_bytes - kBoxCrcBytes - plan.coding.boxes.back().payload.size();
  SliceFeed feed(source, plan.map, params, running);
  const auto gop_frames = static_cast<std::uint64_t>(resolve(video, plan.coding).gop_frames);
  const bool one_gop = volume.all_slices() <= gop_frames;
  {
    Prefetch gops([&] { return encoder.make_gop(); },
                  backend && backend->allocate ? kGopsForDevice
                  : one_gop                    ? 1
                                               : 2,
                  [&feed](Gop& gop) { return feed.fill(gop); }, params.workers.run != nullptr);
    while (const Gop* gop = gops.next()) {
      encoder.push(*gop);
      if (params.progress) params.progress(encoder.stats().frames);
    }
  }
  encoder.finish();
  stats = encoder.stats();
  return last_box;
}

// Bytes of slices that are compared at once, for each of the two volumes.
constexpr std::size_t kMostCompared = std::size_t{16} << 20;

/// Decodes the first `layers` layers and compares them with the volume, which is read again.
VolumeError measure(SliceSource& source, ByteSource& coded, int layers, const VolumeEncoderParams& params,
                    const Backend* backend) {
  VolumeDecoderParams decoding;
  decoding.max_layers = layers;
  decoding.threads = params.threads;
  decoding.workers = params.workers;
  decoding.simd = params.simd;
  decoding.limits = kNoLimits;  // whatever was encoded may be decoded
  VolumeDecoder decoder(coded, decoding, backend);
  const VolumeDescription& volume = decoder.output();
  const std::size_t bytes = volume.slice_bytes();
  const std::size_t scalars = bytes / static_cast<std::size_t>(bytes_of(volume.voxel.type));
  const bool anywhere = source.reads_anywhere();
  ThreadPool pool(params.threads, params.workers);
  const std::size_t most =
      std::clamp<std::size_t>(kMostCompared / bytes, 1, 4 * static_cast<std::size_t>(pool.threads()));
  std::vector<std::byte> given(most * bytes);
  std::vector<std::byte> wanted(most * bytes);
  std::vector<VolumeError> errors(most);
  source.rewind();
  VolumeError error;
  for (std::uint64_t z = 0; z < volume.all_slices();) {
    const std::uint64_t n = decoder.read(given.data(), std::min<std::uint64_t>(most, volume.all_slices() - z));
    require(n > 0, ErrorKind::kMismatch, "slices are missing");
    for (std::size_t i = 0; i < n && !anywhere; ++i) source.read(&wanted[i * bytes]);
    pool.parallel_for(static_cast<int>(n), [&](int index, int) {
      const auto i = static_cast<std::size_t>(index);
      std::byte* original = &wanted[i * bytes];
      if (anywhere) source.read_at(z + i, original);
      errors[i] = {};
      if (std::memcmp(&given[i * bytes], original, bytes) == 0)
        errors[i].scalars = scalars;
      else
        errors[i] = compare_scalars(original, volume.voxel, &given[i * bytes], volume.voxel, scalars);
    });
    // In a fixed order, so that sums do not depend on the threads.
    for (std::size_t i = 0; i < n; ++i) error.add(errors[i]);
    z += n;
  }
  return error;
}

/// Throws Mismatch when the stream violates its bound.
void check_promise(const VolumeError& error, const VolumeMap& map) {
  require(!map.exact() || error.different == 0, ErrorKind::kMismatch,
          count_of(error.different, "value", "differs", "differ") + " from the input");
  require(error.max <= map.max_error, ErrorKind::kMismatch,
          "an error of " + number_text(error.max) + " where at most " + number_text(map.max_error) + " was promised");
}

/// Ends VolumeVerify::kRunning.
VolumeCuts conclude(const Running& running, ReadBack& again, const Plan& plan) {
  require(running.source.digest() == plan.hash, ErrorKind::kMismatch,
          "the input gave other values when it was read again");
  check_promise(running.error, plan.map);
  const std::unique_ptr<ByteSource> coded = again.open();
  coded->seek(0);
  XxHash64 hash;
  std::vector<std::byte> piece(std::size_t{1} << 16);
  while (const std::size_t n = coded->read(piece.data(), piece.size())) hash.update(piece.data(), n);
  require(hash.digest() == running.sink.digest(), ErrorKind::kMismatch,
          "what was written reads back as something else");
  VolumeCuts result;
  result.peak = plan.peak;
  result.cuts.push_back({running.error.max, running.error.squared / static_cast<double>(running.error.scalars)});
  return result;
}

/// Decodes the finished stream at every layer, checks it completely, and returns the errors of the layers.
VolumeCuts verify(SliceSource& source, ReadBack& again, const Plan& plan, const VolumeEncoderParams& params,
                  const Backend* backend) {
  VolumeCuts result;
  result.peak = plan.peak;
  const int layers = plan.coding.layers;
  for (int l = 1; l <= layers; ++l) {
    const std::unique_ptr<ByteSource> coded = again.open();
    const VolumeError error = measure(source, *coded, l < layers ? l : 0, params, backend);
    result.cuts.push_back({error.max, error.squared / static_cast<double>(error.scalars)});
    if (l == layers && plan.coding.lossless) check_promise(error, plan.map);
  }
  return result;
}

/// Bytes of voxels from which on a front table pays.
constexpr std::uint64_t kWorthFrontTable = std::uint64_t{1} << 20;
constexpr std::uint64_t kWorthForParts = std::uint64_t{1} << 16;  // where parts are what is read
std::uint64_t worth_table(const VolumeEncoderParams& params) {
  return params.access == VolumeAccess::kWhole ? kWorthFrontTable : kWorthForParts;
}

std::size_t room_for_front_table(const VolumeDescription& volume, const Plan& plan, VolumeAccess access) {
  const VideoInfo video = slice_video(plan.map, volume.width, volume.height, volume.all_slices());
  const StreamHeader header = make_header(video, resolve(video, plan.coding));
  const std::size_t room = front_table_room(header, (volume.all_slices() + header.gop_frames - 1u) / header.gop_frames,
                                            plan.coding.part_checks);
  return access == VolumeAccess::kWhole ? room : room + room / 2;  // sizes of small blocks differ more
}

/// What stands in front of the slices beside the stream's header.
struct Front {
  const std::vector<std::uint8_t>& mask;
  std::vector<std::uint8_t> envelope;
  bool has_table = false;
  bool measures = false;  ///< errors of the layers become known
  VolumeAccess access = VolumeAccess::kWhole;
  /// A single layer without any error needs no box that says so.
  bool has_cuts(const Plan& plan) const {
    return measures && !(plan.coding.layers == 1 && plan.coding.lossless && plan.map.exact());
  }
};

/// Adds the boxes of the plan. Returns the bytes reserved for the front table.
std::size_t add_boxes(const VolumeDescription& volume, const Front& front, Plan& plan) {
  std::vector<ExtraBox>& boxes = plan.coding.boxes;
  boxes.push_back({kMapBox, serialise(plan.map)});
  if (plan.marker) boxes.push_back({kMaskBox, front.mask});
  if (!front.envelope.empty()) boxes.push_back({kEnvelopeBox, front.envelope});
  std::size_t room = 0;
  if (front.has_table) {
    room = room_for_front_table(volume, plan, front.access);
    boxes.insert(boxes.begin(), empty_front_table(room));
  }
  if (front.has_cuts(plan)) {  // reserves the box for the errors of layers, which are written later
    VolumeCuts unknown;
    unknown.cuts.resize(static_cast<std::size_t>(plan.coding.layers));
    boxes.push_back({kCutsBox, serialise(unknown)});
  }
  return room;
}

// -------------------------------------------------------------------------------------------- loss that is not needed

/// Counts bytes up to a limit.
class CountingSink final : public ByteSink {
 public:
  struct Exceeded {};
  explicit CountingSink(double limit) : limit_(limit) {}
  void write(const void*, std::size_t size) override {
    count_ += static_cast<double>(size);
    if (count_ > limit_) throw Exceeded{};
  }
  double count() const { return count_; }

 private:
  double limit_;
  double count_ = 0;
};

/// The bytes of the stream, or infinity if they exceed the limit.
double counted_bytes(SliceSource& source, const Front& front, Plan plan, const VolumeEncoderParams& params,
                     double limit) {
  VolumeEncoderParams quiet = params;
  quiet.progress = nullptr;
  add_boxes(source.description(), front, plan);
  CountingSink sink(limit);
  CodecStats stats;
  try {
    code(source, plan, quiet, nullptr, nullptr, sink, stats);
  } catch (const CountingSink::Exceeded&) {
    return std::numeric_limits<double>::infinity();
  }
  return sink.count();
}

/// The bytes that the target allows; 0 for a target of another kind.
double bytes_allowed(const VolumeDescription& volume, const VolumeEncoderParams& p) {
  if (p.total_bytes) return static_cast<double>(*p.total_bytes);
  if (p.ratio) return static_cast<double>(volume.bytes()) / *p.ratio;
  return p.bits_per_voxel ? *p.bits_per_voxel * static_cast<double>(volume.voxels()) / 8 : 0;
}

double trial_bytes(const VolumeTrial& trial, const Plan& plan, const VolumeEncoderParams& params) {
  CodingParams coding = plan.coding;
  coding.settings.clear();
  coding.spool_path.clear();
  return static_cast<double>(trial.code(plan.map, plan.candidate, coding, params.slab.value_or(0)));
}

/// Whether a quarter of the trial's piece says that the stream without loss is plainly larger: by estimates beside a
/// bound, by coding it beside a wavelet. Where no palette could save so much, this spares most volumes the trials of
/// the whole piece.
bool is_plainly_larger(const VolumeDescription& volume, const Survey& survey, const Plan& lossy,
                       const VolumeEncoderParams& exact) {
  constexpr double kPlainly = 1.25;    // estimates
  constexpr double kPlainlyCoded = 3;  // which knows no labels
  const VolumeAnalysis& analysis = survey.analysis;
  const double range = analysis.max_value() - analysis.min_value() + 1;
  if (analysis.distinct() > 0 && static_cast<double>(analysis.distinct()) < range / 2) return false;
  Plan plain;
  plain.map = exact_map(analysis, false);
  if (plain.map.planes() > 1 || lossy.map.planes() > 1 || volume.voxel.channels > 1) return false;
  const VolumeTrial part = survey.trial.quarter();
  if (!lossy.coding.lossless || !lossy.candidate.predictive) {
    plain.coding = coding_params(volume, plain.map, exact);
    plain.candidate.predictive = true;
    return trial_bytes(part, plain, exact) > kPlainlyCoded * trial_bytes(part, lossy, exact);
  }
  const auto size = [&](const VolumeMap& map) {
    double bits = 0;
    for (const SizeByKind& b : part.estimate(map, lossy.coding.block_size)) bits += std::min(b.numbers, b.labels);
    return bits;
  };
  return size(plain.map) > kPlainly * size(lossy.map);
}

/// The plan without loss, if its stream is smaller than that of `lossy`, or is what a target of bytes allows.
std::optional<Plan> plan_without_loss(SliceSource& source, const Survey& survey, const Front& front, const Plan& lossy,
                                      const VolumeEncoderParams& params) {
  // Trials of a piece decide unless they differ by less than this factor; then both are coded to be counted.
  constexpr double kClear = 1.25;
  constexpr double kFastIsLarger = 1.5;  // at most, with loss of no kind, than what the effort would find
  const VolumeDescription volume = source.description();
  // Marked values are restored without being coded, which coding without loss cannot do.
  if ((lossy.coding.lossless && lossy.map.exact()) || lossy.marker) return std::nullopt;
  constexpr int kMostComponents = 4;  // of a picture
  if (exact_map(survey.analysis, false).planes() * volume.voxel.channels > kMostComponents) return std::nullopt;
  VolumeEncoderParams exact = params;
  exact.max_error = 0;
  exact.quality = exact.step = exact.psnr = exact.bits_per_voxel = exact.ratio = std::nullopt;
  exact.total_bytes = std::nullopt;
  exact.fill_values.clear();
  exact.visual = false;
  const double allowed = bytes_allowed(volume, params);
  if (allowed == 0 && is_plainly_larger(volume, survey, lossy, exact)) return std::nullopt;
  const double least = allowed > 0 ? allowed * survey.trial.share() : trial_bytes(survey.trial, lossy, params);
  VolumeEncoderParams quick = exact;
  quick.effort = VolumeEffort::kFast;
  quick.on_remark = nullptr;
  if (trial_bytes(survey.trial, plan_of(volume, survey, quick), params) > kFastIsLarger * least) return std::nullopt;
  Plan plan = plan_of(volume, survey, exact);
  const double bytes = trial_bytes(survey.trial, plan, params);
  if (bytes > kClear * least) return std::nullopt;
  if (allowed > 0) {
    if (!std::isfinite(counted_bytes(source, front, plan, exact, allowed))) return std::nullopt;
  } else if (bytes * kClear > least) {
    const double limit = counted_bytes(source, front, lossy, params, std::numeric_limits<double>::infinity());
    if (!std::isfinite(counted_bytes(source, front, plan, exact, limit))) return std::nullopt;
  }
  remark(params, "no loss is needed: without, the stream is not larger");
  return plan;
}

}  // namespace

bool codes_from_samples(const VolumeDescription& volume, const VolumeEncoderParams& p) {
  const bool plain = volume.voxel.channels == 1 && bytes_of(volume.voxel.type) <= 2 && !volume.voxel.big_endian;
  const bool tries = p.effort != VolumeEffort::kFast && !has_fixed_wavelet(p);
  const bool wavelet = p.transform ? *p.transform == VolumeTransform::kWavelet : !p.predictive;
  return plain && wavelet && !tries && !p.is_lossy() && p.max_error == 0 && p.fill_values.empty() && !p.verify &&
         !p.fourth_axis_first.value_or(false);
}

std::optional<VolumeResult> encode_volume(VolumeSamples& samples, const VolumeEncoderParams& given,
                                          const std::vector<std::uint8_t>& envelope, ByteSink& sink, ReadBack* again) {
  const Stopwatch watch;
  const VolumeDescription volume = samples.description();
  check_request(volume, given);
  const VolumeEncoderParams params = with_blocks_for_access(volume, given);
  require(codes_from_samples(volume, params), ErrorKind::kInternal, "a volume that the host must read");
  Survey survey(volume);
  survey.analysis = samples.survey();
  const Front front{survey.mask, envelope, again && params.front_table.value_or(volume.bytes() >= worth_table(params)),
                    false, params.access};
  report(params, survey);
  Plan plan = plan_of(volume, survey, params);
  const VideoInfo video = slice_video(plan.map, volume.width, volume.height, volume.all_slices());
  if (!samples.begin(plan.map, video, resolve(video, plan.coding).gop_frames)) return std::nullopt;
  const std::size_t room = add_boxes(volume, front, plan);
  const Backend* const backend = params.backend(plan.coding.profile);
  VolumeResult result;
  {
    Encoder encoder = make_encoder(video, plan.coding, sink, backend);
    while (const Gop* gop = samples.next()) {
      encoder.push(*gop);
      if (params.progress) params.progress(encoder.stats().frames);
    }
    encoder.finish();
    result.stats = encoder.stats();
  }
  result.seconds = watch.seconds();
  result.transform = plan.text;
  if (room > 0) write_front_table(*again, room);
  return result;
}

VolumeResult encode_volume(SliceSource& source, const VolumeEncoderParams& given, ByteSink& sink, ReadBack* again) {
  const Stopwatch watch;
  const VolumeDescription volume = source.description();
  check_request(volume, given);
  const VolumeEncoderParams params = with_blocks_for_access(volume, given);
  const Survey survey = survey_of(source, params);
  const bool verifies = again && params.verify;
  const Front front{survey.mask, source.envelope(),
                    again && params.front_table.value_or(volume.bytes() >= worth_table(params)), verifies,
                    params.access};
  report(params, survey);
  Plan plan = plan_of(volume, survey, params);
  if (std::optional<Plan> exact = plan_without_loss(source, survey, front, plan, params)) plan = std::move(*exact);
  const std::size_t room = add_boxes(volume, front, plan);
  const Backend* backend = params.backend ? params.backend(plan.coding.profile) : nullptr;
  std::optional<Running> running;
  if (verifies && params.verification == VolumeVerify::kRunning && plan.coding.profile == Profile::kPredictive &&
      !plan.marker) {
    running.emplace(volume.all_slices(), sink);
    if (!backend) backend = &checked_prediction();
  }
  VolumeResult result;
  ByteSink& to = running ? static_cast<ByteSink&>(running->sink) : sink;
  const std::uint64_t cuts_at = code(source, plan, params, backend, running ? &*running : nullptr, to, result.stats);
  result.seconds = watch.seconds();
  result.transform = plan.text;
  result.promised_error = plan.coding.lossless ? plan.map.max_error : std::numeric_limits<double>::infinity();
  result.spared_loss = (params.is_lossy() || params.max_error > 0) && plan.coding.lossless && plan.map.exact();
  if (running) result.cuts = conclude(*running, *again, plan);  // before anything is overwritten
  if (room > 0) write_front_table(*again, room);
  if (!verifies) return result;
  try {
    if (!running) result.cuts = verify(source, *again, plan, params, backend);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::kBadStream) fail(ErrorKind::kMismatch, e.what());  // the encoder's own fault
    throw;
  }
  std::vector<std::uint8_t> cuts = serialise(result.cuts);
  if (front.has_cuts(plan)) {
    append_crc(cuts);
    again->replace(cuts_at, cuts.data(), cuts.size());
  }
  // As a reader sees them: rounded, or unknown where a field cannot hold them.
  result.cuts = parse_volume_cuts(cuts.data(), cuts.size());
  result.verified = true;
  return result;
}

}  // namespace trivelet
