// Decoding streams of volumes: the whole volume into its old files, or a part of it under a new header.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/video/metrics.h"
#include "apps/volume/volume.h"
#include "codec/verify.h"
#include "codec/volume_predict.h"
#include "io/md5.h"

namespace trivelet::cli {

namespace {

/// Decodes GOP by GOP and cuts out what is wanted. Volumes whose fourth axis was coded first are held in memory.
class StreamVolume final : public VolumeSource {
 public:
  StreamVolume(const std::string& path, const VolumeDecoding& decoding, const Common& common) : source_(path) {
    DecoderParams params = decoder_params(common);
    params.reduce = decoding.reduce;
    params.max_layers = decoding.max_layers;
    params.max_planes = decoding.max_planes;
    {
      DecoderParams look = params;
      look.reduce = 0;
      const Decoder header(source_, look);
      const auto boxes = volume_boxes(header.info());
      require(boxes.has_value(), ErrorKind::kBadArgument, "'" + path + "' holds a video, not a volume");
      map_ = boxes->map;
      slab_ = static_cast<std::uint64_t>(header.info().gop_frames);
      decomposition_ = header.info().decomposition;
      info_ = boxes->info;
      source_.seek(0);
    }
    region_ = {0,           0, 0, static_cast<std::uint64_t>(info_.width), static_cast<std::uint64_t>(info_.height),
               info_.slices};
    if (!decoding.region.empty()) region_ = parse_region(decoding.region, info_);
    if (!decoding.slices.empty()) {
      require(decoding.region.empty(), ErrorKind::kBadArgument, "--slices and --region exclude each other");
      const FrameRange range = parse_frame_range(decoding.slices);
      require(range.first < info_.slices, ErrorKind::kBadArgument,
              fmt::format("--slices {}: the volume has {} slices", decoding.slices, info_.slices));
      region_.z = range.first;
      region_.depth = std::min(range.end, info_.slices) - range.first;
    }
    partial_ = region_.width < static_cast<std::uint64_t>(info_.width) ||
               region_.height < static_cast<std::uint64_t>(info_.height) || region_.depth < info_.slices;
    reduced_ = decoding.reduce > 0;
    in_order_ = map_.order == VolumeMap::Order::kFile || info_.volumes == 1;
    const bool predicted = map_.prediction != VolumeMap::Prediction::kNone;
    require(!predicted || (!reduced_ && decoding.max_layers == 0 && decoding.max_planes == 0), ErrorKind::kUnsupported,
            "'" + path +
                "' is coded by prediction, which has no smaller pictures and no lower quality in it; encode "
                "with --transform wavelet for those");
    const std::uint64_t z_step = reduced_ ? reduce(decoding.reduce, path) : 1;
    select_frames(params, z_step);
    // Differences lean on everything above and to the left.
    const auto begin = [predicted](std::uint64_t first) { return predicted ? 0 : static_cast<int>(first); };
    if (region_.width < static_cast<std::uint64_t>(info_.width) ||
        region_.height < static_cast<std::uint64_t>(info_.height))
      params.region = {begin(region_.x), begin(region_.y),
                       static_cast<int>(region_.x + region_.width) - begin(region_.x),
                       static_cast<int>(region_.y + region_.height) - begin(region_.y)};
    decoder_ = std::make_unique<Decoder>(source_, params);
    coded_slices_ = info_.slices;
    info_.width = static_cast<int>(region_.width);
    info_.height = static_cast<int>(region_.height);
    info_.slices = region_.depth;
    for (std::size_t row = 0; row < 3; ++row)
      info_.affine[4 * row + 3] += info_.affine[4 * row] * static_cast<double>(region_.x) +
                                   info_.affine[4 * row + 1] * static_cast<double>(region_.y) +
                                   info_.affine[4 * row + 2] * static_cast<double>(region_.z);
    coded_ = decoder_->output();
    mapper_ = std::make_unique<VolumeMapper>(map_);
    picture_.resize(static_cast<std::size_t>(coded_.width) * static_cast<std::size_t>(coded_.height) *
                    map_.format.bytes());
    gops_ = std::make_unique<Prefetch>(decoder_->make_gop(), decoder_->make_gop(), [this](Gop& gop) {
      if (!decoder_->pull(gop)) return false;
      unpredict(map_.prediction, map_.plane_bits(), gop);
      return true;
    });
    if (!in_order_) hold_all();
  }

  const io::VolumeInfo& info() const override { return info_; }
  bool reduced() const { return reduced_; }
  bool partial() const { return partial_; }
  const CodecStats& stats() const { return decoder_->stats(); }
  const StreamInfo& stream() const { return decoder_->info(); }

  bool read(std::byte* slice) override {
    if (!in_order_) {
      if (given_ == info_.all_slices()) return false;
      std::memcpy(slice, held_.data() + static_cast<std::size_t>(given_++) * info_.slice_bytes(), info_.slice_bytes());
      return true;
    }
    for (;;) {
      if (!next_picture()) return false;
      // Of several volumes, the slices wanted of each.
      const std::uint64_t z = seen_++ % coded_slices_;
      const int frame = at_++;
      if (z < region_.z || z >= region_.z + region_.depth) continue;
      cut(*gop_, frame, slice);
      return true;
    }
  }

 private:
  /// Makes `info_` and `region_` those of the volume at its smaller size. Returns how many slices one is left of.
  std::uint64_t reduce(int levels, const std::string& path) {
    const Decomposition& d = decomposition_;
    require(levels <= d.spatial_levels, ErrorKind::kBadArgument,
            fmt::format("'{}' can be reduced 0..{} times, not {}", path, d.spatial_levels, levels));
    const int z_levels = d.layout == Layout::kDyadic ? std::min(levels, d.temporal_levels) : 0;
    require(in_order_ || z_levels == 0, ErrorKind::kUnsupported,
            "--reduce of a volume whose fourth axis is transformed would leave out volumes, not slices");
    // Slices left of every group; groups may end inside a volume only when they were made so.
    require(info_.volumes == 1 || info_.slices % slab_ == 0 || z_levels == 0, ErrorKind::kUnsupported,
            "--reduce: the volumes do not end where the coded groups of slices do");
    // The voxel at x is left as the one at x / step; a range keeps all that a voxel of it is left as.
    const std::uint64_t step = std::uint64_t{1} << levels;
    const std::uint64_t z_step = std::uint64_t{1} << z_levels;
    const auto z_place = [&](std::uint64_t z) {
      return z / slab_ * ((slab_ + z_step - 1) / z_step) + z % slab_ / z_step;
    };
    const auto last_x = (region_.x + region_.width - 1) / step;
    const auto last_y = (region_.y + region_.height - 1) / step;
    const auto last_z = z_place(region_.z + region_.depth - 1);
    region_.x = region_.x / step;
    region_.y = region_.y / step;
    region_.z = z_place(region_.z);
    region_.width = last_x - region_.x + 1;
    region_.height = last_y - region_.y + 1;
    region_.depth = last_z - region_.z + 1;
    info_.width = low_length(info_.width, levels);
    info_.height = low_length(info_.height, levels);
    info_.slices = z_place(info_.slices - 1) + 1;
    info_.spacing[0] *= static_cast<double>(step);
    info_.spacing[1] *= static_cast<double>(step);
    info_.spacing[2] *= static_cast<double>(z_step);
    for (std::size_t row = 0; row < 3; ++row) {
      info_.affine[4 * row] *= static_cast<double>(step);
      info_.affine[4 * row + 1] *= static_cast<double>(step);
      info_.affine[4 * row + 2] *= static_cast<double>(z_step);
    }
    return z_step;
  }

  /// Of a single volume, and where the fourth axis was coded first, the slices wanted follow each other in the stream:
  /// whole groups of them where differences begin with the first of a group, or where groups were reduced.
  void select_frames(DecoderParams& params, std::uint64_t z_step) {
    if (info_.volumes > 1 && in_order_) return;
    const std::uint64_t per_slice = in_order_ ? 1 : info_.volumes;
    const std::uint64_t left = (slab_ + z_step - 1) / z_step;  // of a group
    std::uint64_t first = region_.z * per_slice;
    std::uint64_t end = (region_.z + region_.depth) * per_slice;
    const bool groups = z_step > 1 || map_.prediction == VolumeMap::Prediction::kAcross;
    if (groups) first = first / left * left;
    if (z_step > 1) end = (end + left - 1) / left * left;
    seen_ = first;
    params.first_frame = first / left * slab_ + first % left * z_step;
    params.end_frame = end / left * slab_ + end % left * z_step;
  }

  bool next_picture() {
    while (!gop_ || at_ == gop_->frames()) {
      gop_ = gops_->next();
      at_ = 0;
      if (!gop_) return false;
    }
    return true;
  }

  void cut(const Gop& gop, int frame, std::byte* slice) {
    const std::size_t voxel = map_.format.bytes();
    if (!partial_) {
      mapper_->to_stored(gop, frame, slice);
      return;
    }
    mapper_->to_stored(gop, frame, picture_.data());
    const std::size_t row = static_cast<std::size_t>(coded_.width) * voxel;
    const std::size_t bytes = static_cast<std::size_t>(region_.width) * voxel;
    for (std::uint64_t y = 0; y < region_.height; ++y)
      std::memcpy(
          slice + static_cast<std::size_t>(y) * bytes,
          picture_.data() + static_cast<std::size_t>(region_.y + y) * row + static_cast<std::size_t>(region_.x) * voxel,
          bytes);
  }

  void hold_all() {
    held_.resize(checked_mul(static_cast<std::size_t>(info_.all_slices()), info_.slice_bytes()));
    for (std::uint64_t frame = seen_; next_picture(); ++frame, ++at_) {
      const std::uint64_t z = frame / info_.volumes;
      const std::uint64_t volume = frame % info_.volumes;
      if (z < region_.z || z >= region_.z + region_.depth) continue;
      cut(*gop_, at_,
          held_.data() + static_cast<std::size_t>(volume * info_.slices + (z - region_.z)) * info_.slice_bytes());
    }
  }

  FileSource source_;
  VolumeMap map_;
  io::VolumeInfo info_;
  VoxelRegion region_;
  bool partial_ = false;
  bool reduced_ = false;
  bool in_order_ = true;
  std::unique_ptr<Decoder> decoder_;
  VideoInfo coded_;
  Decomposition decomposition_;
  std::uint64_t slab_ = 1;          // frames of a group
  std::uint64_t coded_slices_ = 0;  // of the whole volume, reduced
  std::unique_ptr<VolumeMapper> mapper_;
  std::vector<std::byte> picture_;
  std::vector<std::byte> held_;
  std::uint64_t given_ = 0;
  std::uint64_t seen_ = 0;  // frames of the stream so far, reduced; those that were passed over count
  const Gop* gop_ = nullptr;
  int at_ = 0;
  std::unique_ptr<Prefetch> gops_;  // last: its thread uses the decoder
};

/// The formats of an envelope by the extensions of its files.
bool belongs_to(const io::Envelope& envelope, const std::string& extension) {
  const std::string& f = envelope.format;
  const bool single = envelope.files.size() == 1;
  if (f.rfind("nifti", 0) == 0)
    return single ? extension == "nii" || extension == "nii.gz"
                  : extension == "hdr" || extension == "hdr.gz" || extension == "img" || extension == "img.gz";
  if (f == "nrrd") return single ? extension == "nrrd" || extension == "nrrd.gz" : extension == "nhdr";
  if (f == "metaimage") return single ? extension == "mha" || extension == "mha.gz" : extension == "mhd";
  return extension == f;
}

}  // namespace

std::unique_ptr<VolumeSource> decode_volume(const std::string& path, const VolumeDecoding& decoding,
                                            const Common& common) {
  return std::make_unique<StreamVolume>(path, decoding, common);
}

int decode_volume_to(const std::string& input, const std::string& output, const VolumeDecoding& decoding,
                     const Common& common) {
  const Stopwatch clock;
  StreamVolume volume(input, decoding, common);
  warn_of_lost_index(input, volume.stream().index_damage);
  const io::VolumeInfo& info = volume.info();
  const auto boxes = volume_boxes(volume.stream());
  const bool lossy =
      !has_exact_pictures(volume.stream()) || !boxes->map.exact() || decoding.max_layers > 0 || decoding.max_planes > 0;
  const bool text = output == "md5" || output == "null";
  const bool whole = !volume.reduced() && !volume.partial();
  const std::string extension = io::volume_extension(output);

  // The old files where they can be had; a new header for another format, or for a part.
  std::unique_ptr<io::VolumeWriter> writer;
  if (!text) {
    io::Envelope envelope = boxes->envelope;
    const bool other = io::can_make(extension) && !belongs_to(envelope, extension);
    if (!whole || other || envelope.files.empty()) {
      require(io::can_make(extension), ErrorKind::kUnsupported,
              "'" + output + "': " + (whole ? "a volume" : "a part of a volume") +
                  " can be written as .nii, .nii.gz, .nrrd, .mha or .raw");
      envelope = io::make_envelope(info, extension);
    } else if (envelope.format == "dicom" && lossy) {
      envelope = io::mark_lossy(std::move(envelope),
                                static_cast<double>(info.voxels() * info.voxel.bytes()) /
                                    static_cast<double>(std::max<std::uint64_t>(1, volume.stream().file_bytes)));
      log::warn("the DICOM files are marked as lossy and have new instance UIDs");
    }
    writer = std::make_unique<io::VolumeWriter>(std::move(envelope), output, common.overwrite);
  }
  io::Md5 digest;
  std::vector<std::byte> slice(info.slice_bytes());
  std::uint64_t slices = 0;
  {
    Progress progress(common, "decode", info.all_slices());
    for (; slices < info.all_slices() && volume.read(slice.data()); ++slices) {
      if (writer)
        writer->write(slice.data(), slice.size());
      else if (output == "md5")
        digest.update(slice.data(), slice.size());
      progress.update(slices + 1);
    }
    progress.finish();
  }
  require(slices == info.all_slices(), ErrorKind::kBadStream,
          fmt::format("'{}' ends after {} of {} slices", input, slices, info.all_slices()));
  if (writer) writer->finish();
  if (output == "md5") fmt::print("{}\n", digest.hex());
  log::info("{}x{}x{}{} {}, {} bytes read, {:.1f} MB/s", info.width, info.height, info.slices,
            info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type),
            volume.stats().stream_bytes,
            1e-6 * static_cast<double>(info.voxels() * info.voxel.bytes()) / clock.seconds());
  return kExitDone;
}

int verify_volume(const std::string& input, const std::string& against, const VolumeTyped& typed,
                  const Common& common) {
  FileSource source(input);
  const std::vector<std::string> damage = check_boxes(source);
  for (const std::string& line : damage) fmt::print("{}: {}\n", input, line);
  StreamVolume volume(input, {}, common);
  const auto boxes = volume_boxes(volume.stream());
  const io::VolumeInfo& info = volume.info();
  std::unique_ptr<io::VolumeReader> original;
  if (!against.empty()) {
    original = io::open_volume(against, volume_options(typed));
    const io::VolumeInfo& other = original->info();
    require(other.width == info.width && other.height == info.height && other.slices == info.slices &&
                other.volumes == info.volumes && other.voxel == info.voxel,
            ErrorKind::kMismatch, "'" + against + "' is a volume of another size or type than '" + input + "'");
  }
  std::vector<std::byte> slice(info.slice_bytes());
  std::vector<std::byte> wanted(original ? info.slice_bytes() : 0);
  VolumeError error;
  std::uint64_t slices = 0;
  {
    Progress progress(common, "verify", info.all_slices());
    for (; slices < info.all_slices() && volume.read(slice.data()); ++slices) {
      if (original) {
        original->read(wanted.data(), wanted.size());
        error.add(compare_scalars(wanted.data(), info.voxel, slice.data(), info.voxel,
                                  slice.size() / static_cast<std::size_t>(bytes_of(info.voxel.type))));
      }
      progress.update(slices + 1);
    }
    progress.finish();
  }
  require(slices == info.all_slices(), ErrorKind::kBadStream,
          fmt::format("'{}' ends after {} of {} slices", input, slices, info.all_slices()));
  require(damage.empty(), ErrorKind::kBadStream, "'" + input + "' is damaged");
  const bool bounded = has_exact_pictures(volume.stream());
  std::string result = fmt::format("{} slices, {}", slices,
                                   !bounded             ? "lossy"
                                   : boxes->map.exact() ? "lossless"
                                                        : fmt::format("no error above {:g}", boxes->map.max_error));
  if (original) {
    require(!bounded || error.max <= boxes->map.max_error, ErrorKind::kMismatch,
            fmt::format("'{}' promises errors up to {:g}, but the largest against '{}' is {:g} ({} voxels differ)",
                        input, boxes->map.max_error, against, error.max, error.different));
    require(!bounded || !boxes->map.exact() || error.different == 0, ErrorKind::kMismatch,
            fmt::format("{} voxels differ from '{}'", error.different, against));
    const io::Envelope other = original->envelope();
    const io::Envelope& mine = boxes->envelope;
    bool same_header = other.files.size() == mine.files.size();
    for (std::size_t i = 0; same_header && i < mine.files.size(); ++i)
      same_header = mine.files[i].head == other.files[i].head && mine.files[i].tail == other.files[i].tail;
    require(same_header, ErrorKind::kMismatch, "the header differs from that of '" + against + "'");
    result += error.different == 0 ? ", identical to " + against
                                   : fmt::format(", largest error {:g}, PSNR {} against {}", error.max,
                                                 format_psnr(error.psnr()), against);
  }
  fmt::print("{}: OK, {}\n", input, result);
  return kExitDone;
}

int compare_volumes(const std::string& a, const std::string& b, const VolumeTyped& typed, bool json,
                    const std::string& csv_path, double min_psnr, const Common& common) {
  const auto open = [&](const std::string& path) {
    return open_volume_source(path, wants_volume(path, {}) ? io::VolumeOptions{} : volume_options(typed), common);
  };
  const auto left = open(a);
  const auto right = open(b);
  const io::VolumeInfo& x = left->info();
  const io::VolumeInfo& y = right->info();
  require(x.width == y.width && x.height == y.height && x.slices == y.slices && x.volumes == y.volumes &&
              x.voxel.channels == y.voxel.channels,
          ErrorKind::kMismatch,
          fmt::format("the volumes differ in size: {}x{}x{}x{} and {}x{}x{}x{} voxels", x.width, x.height, x.slices,
                      x.volumes, y.width, y.height, y.slices, y.volumes));
  std::unique_ptr<FileSink> csv;
  std::string line = "slice,psnr,max_error,different\n";
  if (!csv_path.empty()) {
    csv = std::make_unique<FileSink>(csv_path, common.overwrite);
    csv->write(line.data(), line.size());
  }
  std::vector<std::byte> slice_x(x.slice_bytes());
  std::vector<std::byte> slice_y(y.slice_bytes());
  VolumeError error;
  const std::size_t scalars = x.slice_bytes() / static_cast<std::size_t>(bytes_of(x.voxel.type));
  {
    Progress progress(common, "compare", x.all_slices());
    for (std::uint64_t z = 0; z < x.all_slices(); ++z) {
      require(left->read(slice_x.data()) && right->read(slice_y.data()), ErrorKind::kBadStream,
              "a volume ends too early");
      const VolumeError e = compare_scalars(slice_x.data(), x.voxel, slice_y.data(), y.voxel, scalars);
      error.add(e);
      if (csv) {
        line = fmt::format("{},{:.4f},{:g},{}\n", z, e.psnr(), e.max, e.different);
        csv->write(line.data(), line.size());
      }
      progress.update(z + 1);
    }
    progress.finish();
  }
  if (csv) csv->file().commit();
  const double rms = std::sqrt(error.squared / static_cast<double>(error.scalars));
  if (json) {
    Json out;
    out.begin_object();
    out.member("a", a);
    out.member("b", b);
    out.member("identical", error.different == 0);
    out.member("psnr", error.psnr());
    out.member("peak", error.largest - error.least);
    out.member("rms_error", rms);
    out.member("max_error", error.max);
    out.member("max_error_scaled", error.max * std::fabs(x.slope));
    out.member("different", error.different);
    out.member("scalars", error.scalars);
    out.end_object();
    fmt::print("{}", out.text());
  } else if (csv_path != "-") {
    fmt::print("volume       {}x{}x{}{} {}, values {:g}..{:g}\n", x.width, x.height, x.slices,
               x.volumes > 1 ? fmt::format("x{}", x.volumes) : "", trivelet::to_string(x.voxel.type), error.least,
               error.largest);
    fmt::print("PSNR         {} (peak {:g})\n", format_psnr(error.psnr()), error.largest - error.least);
    fmt::print("max error    {:g}{}\n", error.max,
               x.slope != 1 ? fmt::format(" stored, {:g} scaled", error.max * std::fabs(x.slope)) : "");
    fmt::print("RMS error    {:.4g}\n", rms);
    fmt::print("different    {} of {} values\n", error.different, error.scalars);
    if (error.different == 0) fmt::print("identical\n");
  }
  require(error.psnr() >= min_psnr, ErrorKind::kMismatch,
          fmt::format("PSNR {} is below {} dB", format_psnr(error.psnr()), min_psnr));
  return kExitDone;
}

}  // namespace trivelet::cli
