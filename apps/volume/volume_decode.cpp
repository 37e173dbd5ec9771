// Decoding streams of volumes: the whole volume into its old files, or a part of it under a new header.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <utility>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cluster/volume_share.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/lost_slices.h"
#include "apps/volume/volume.h"
#include "io/md5.h"
#include "trivelet/edit.h"

namespace trivelet::cli {

VolumeDecoderParams volume_decoder_params(const VolumeDecoding& decoding, const std::string& path,
                                          const Common& common) {
  VolumeDecoderParams params;
  const DecoderParams work = decoder_params(common);
  params.threads = work.threads;
  params.simd = work.simd;
  params.limits = work.limits;
  params.reduce = decoding.reduce;
  params.max_layers = decoding.max_layers;
  params.max_planes = decoding.max_planes;
  params.keep_partial = decoding.keep_partial;
  if (decoding.region.empty() && decoding.slices.empty()) return params;
  require(decoding.region.empty() || decoding.slices.empty(), ErrorKind::kBadArgument,
          "--slices and --region exclude each other");
  const std::optional<VolumeInStream> volume = volume_in(path, common);
  require(volume.has_value(), ErrorKind::kBadArgument, "'" + path + "' holds a video, not a volume");
  const io::VolumeInfo& info = volume->info;
  if (!decoding.region.empty()) {
    params.region = parse_region(decoding.region, info);
    return params;
  }
  const FrameRange range = parse_frame_range(decoding.slices, "--slices");
  require(!range.has_times(), ErrorKind::kBadArgument, "--slices " + decoding.slices + ": slices have no times");
  require(range.first < info.slices, ErrorKind::kBadArgument,
          "--slices " + decoding.slices + ": the volume has " + count_of(info.slices, "slice"));
  params.region = {0,
                   0,
                   range.first,
                   static_cast<std::uint64_t>(info.width),
                   static_cast<std::uint64_t>(info.height),
                   std::min(range.end, info.slices) - range.first};
  return params;
}

namespace {

/// The same file again for each piece.
class OpenVolume {
 public:
  OpenVolume(std::string path, std::shared_ptr<const Backend> backend)
      : path_(std::move(path)), backend_(std::move(backend)) {}
  /// The decoder reads from this buffer until the next call.
  std::unique_ptr<VolumeDecoder> operator()(const VolumeDecoderParams& params) {
    source_ = std::make_shared<FileSource>(path_);
    return std::make_unique<VolumeDecoder>(*source_, params, backend_.get());
  }

 private:
  std::string path_;
  std::shared_ptr<const Backend> backend_;
  std::shared_ptr<FileSource> source_;
};

/// After damage: no voxels are made up unless that is asked for.
constexpr const char* kHowToHaveTheRest =
    "; --slices A:B and --region decode what is intact, --keep-partial all, with 0 where it is damaged";

/// Whether all slices are decoded before the first one is read.
bool is_decoded_at_once(const std::string& path, const Common& common) {
  try {
    const std::optional<VolumeInStream> volume = volume_in(path, common);
    return volume && volume->coded.order == VolumeOrder::kFourthAxis;
  } catch (const Error&) {
    return false;
  }
}

class StreamVolume final : public VolumeSource {
 public:
  StreamVolume(const std::string& path, const VolumeDecoding& decoding, const Common& common,
               std::shared_ptr<const Backend> backend, const VolumeWorkers& workers = {})
      : source_(path), backend_(std::move(backend)) {
    const VolumeDecoderParams params = volume_decoder_params(decoding, path, common);
    try {
      decoder_ = std::make_unique<VolumeDecoder>(source_, params, backend_.get());
    } catch (const Error& e) {
      const bool is_of_slices = e.kind() == ErrorKind::kBadStream && is_decoded_at_once(path, common);
      fail(e.kind(), "'" + path + "': " + e.what() + (is_of_slices ? kHowToHaveTheRest : ""));
    }
    in_stream_ = *volume_in(decoder_->stream());
    info_ = in_stream_.info;
    static_cast<VolumeDescription&>(info_) = decoder_->output();
    place();
    if (!workers.processes || decoding.keep_partial) return;
    std::vector<VolumePiece> pieces = volume_pieces(*decoder_, params);
    if (pieces.size() < 2) {
      log::info("one process decodes '{}', the others are idle: it cannot be divided", path);
      return;
    }
    workers.call();
    gathered_ =
        std::make_unique<GatheredSlices>(*workers.processes, std::move(pieces), params, OpenVolume(path, backend_));
  }

  const io::VolumeInfo& info() const override { return info_; }
  bool read(std::byte* slice) override { return gathered_ ? gathered_->read(slice) : decoder_->read(slice); }
  const VolumeDecoder& decoder() const { return *decoder_; }
  const VolumeInStream& in_stream() const { return in_stream_; }
  const StreamInfo& stream() const { return decoder_->stream(); }
  std::uint64_t bytes_read() const {
    return gathered_ ? decoder_->stream().file_bytes : decoder_->stats().stream_bytes;
  }
  /// Everything, at full size.
  bool is_whole() const { return decoder_->output() == in_stream_.coded.volume && decoder_->step()[0] == 1; }

 private:
  /// The position of the selected part in the patient.
  void place() {
    const VoxelRegion& r = decoder_->selection();
    const std::array<std::uint64_t, 3> step = decoder_->step();
    const double first[3] = {static_cast<double>(r.x), static_cast<double>(r.y), static_cast<double>(r.z)};
    for (std::size_t axis = 0; axis < 3; ++axis) {
      info_.spacing[axis] *= static_cast<double>(step[axis]);
      for (std::size_t row = 0; row < 3; ++row) info_.affine[4 * row + axis] *= static_cast<double>(step[axis]);
    }
    for (std::size_t row = 0; row < 3; ++row) {
      double* a = &info_.affine[4 * row];
      a[3] += a[0] * first[0] + a[1] * first[1] + a[2] * first[2];
    }
  }

  FileSource source_;
  std::shared_ptr<const Backend> backend_;
  std::unique_ptr<VolumeDecoder> decoder_;
  VolumeInStream in_stream_;
  io::VolumeInfo info_;
  std::unique_ptr<GatheredSlices> gathered_;  ///< null: this process decodes all
};

/// A new header has the fields of VolumeInfo, as far as its format has a place for them.
void warn_of_new_header(const std::string& output, const std::string& extension, const io::VolumeInfo& info,
                        const std::vector<std::string>& remarks) {
  for (const std::string& remark : remarks) log::warn("'{}': {}", output, in_options(remark));
  const bool keeps_scale = extension != "nrrd" && extension != "raw";
  if (!keeps_scale && (info.slope != 1 || info.intercept != 0))
    log::warn("'{}' has no place for the scale of the values: {:g} * stored + {:g}", output, info.slope,
              info.intercept);
  if (info.has_other_place)
    log::warn("'{}' has not the directions and the origin of the {} header, whose space is not named as the patient's",
              output, info.format);
  const bool has_scale = !info.has_other_scales && keeps_scale;
  if (extension == "raw")
    log::info("'{}' holds the stored values alone; {}x{}x{}{} {}", output, info.width, info.height, info.slices,
              info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type));
  else if (!info.format.empty() && info.format != "raw")
    log::info("'{}' has a new header; it keeps {}spacing{} from that of the {} file", output,
              info.has_affine ? "position, " : "", has_scale ? " and scale" : "", info.format);
}

/// The formats of an envelope by the extensions of its files.
bool belongs_to(const io::Envelope& envelope, const std::string& extension) {
  const std::string& f = envelope.format;
  const bool single = envelope.files.size() == 1;
  if (f.rfind("nifti", 0) == 0)
    return single ? extension == "nii" || extension == "nii.gz"
                  : extension == "hdr" || extension == "hdr.gz" || extension == "img" || extension == "img.gz";
  if (f == "nrrd") return single ? extension == "nrrd" || extension == "nrrd.gz" : extension == "nhdr";
  if (f == "metaimage") return single ? extension == "mha" || extension == "mha.gz" : extension == "mhd";
  if (f == "dicom" && extension == "dcm") return true;  // many DICOM files have no extension
  return extension == f;
}

}  // namespace

std::unique_ptr<VolumeSource> decode_volume(const std::string& path, const VolumeDecoding& decoding,
                                            const Common& common, std::shared_ptr<const Backend> backend) {
  return std::make_unique<StreamVolume>(path, decoding, common, std::move(backend));
}

void help_decode_volume(Processes& processes, const std::string& input, const VolumeDecoding& decoding,
                        const Common& common, const std::function<std::shared_ptr<const Backend>()>& prepare) {
  std::vector<VolumePiece> pieces;
  VolumeDecoderParams params;
  std::optional<OpenVolume> open;
  try {
    params = volume_decoder_params(decoding, input, common);
    open.emplace(input, prepare());
    pieces = volume_pieces(*(*open)(params), params);
  } catch (...) {
    return decode_no_pieces(processes, std::current_exception());
  }
  decode_pieces_for_others(processes, pieces, params, *open);
}

bool read_slice(StreamVolume& volume, std::byte* slice) {
  try {
    return volume.read(slice);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream) throw;
    fail(e.kind(), std::string(e.what()) + kHowToHaveTheRest);
  }
}

int decode_volume_to(const std::string& input, const std::string& output, const VolumeDecoding& decoding,
                     const Common& common, std::shared_ptr<const Backend> backend, const VolumeWorkers& workers) {
  const Stopwatch clock;
  StreamVolume volume(input, decoding, common, std::move(backend), workers);
  warn_of_lost_index(input, volume.stream().index_damage);
  const io::VolumeInfo& info = volume.info();
  const bool lossy = !volume.in_stream().coded.exact() || decoding.max_layers > 0 || decoding.max_planes > 0;
  const bool text = output == "md5" || output == "null";
  const bool whole = volume.is_whole();
  const std::string extension = io::volume_extension(output);

  // Restores the old files if possible; writes a new header for another format, or for a part.
  std::unique_ptr<io::VolumeWriter> writer;
  if (!text) {
    io::Envelope envelope = volume.in_stream().envelope;
    const bool other = io::can_make(extension) && !belongs_to(envelope, extension);
    const bool as_it_was = std::any_of(envelope.files.begin(), envelope.files.end(), [&](const io::VolumeFile& f) {
      return io::volume_extension(f.name) == extension;
    });
    // Folders of DICOM files are named as one likes.
    const bool folder = envelope.format == "dicom" && !names_other_file(output);
    require(extension.empty() || other || as_it_was || folder || belongs_to(envelope, extension),
            ErrorKind::kBadArgument,
            "'" + output + "': a volume is not written as ." + extension +
                "; use .nii, .nii.gz, .nrrd, .mha or .raw, or the extension of the files that were encoded; 'trivelet "
                "view' draws pictures of it");
    if (!whole || other || envelope.files.empty()) {
      require(io::can_make(extension), ErrorKind::kUnsupported,
              "'" + output + "': " + (whole ? "a volume" : "a part of a volume") +
                  " can be written as .nii, .nii.gz, .nrrd, .mha or .raw");
      envelope = io::make_envelope(info, extension);
      warn_of_new_header(output, extension, info, volume.in_stream().remarks);
    } else if (envelope.format == "dicom" && lossy) {
      envelope = io::mark_lossy(std::move(envelope),
                                static_cast<double>(info.bytes()) /
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
    for (; slices < info.all_slices() && read_slice(volume, slice.data()); ++slices) {
      if (writer)
        writer->write(slice.data(), slice.size());
      else if (output == "md5")
        digest.update(slice.data(), slice.size());
      progress.update(slices + 1);
    }
    progress.finish();
  }
  require(slices == info.all_slices(), ErrorKind::kBadStream,
          fmt::format("'{}' ends after {} of {}", input, slices, count_of(info.all_slices(), "slice")));
  if (writer) writer->finish();
  if (output == "md5") fmt::print("{}\n", digest.hex());
  log::info("{}x{}x{}{} {}, {} bytes read, {:.1f} MB/s", info.width, info.height, info.slices,
            info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type),
            volume.bytes_read(), 1e-6 * static_cast<double>(info.bytes()) / clock.seconds());
  report_damage(volume.decoder(), input);
  return kExitDone;
}

int verify_volume(const std::string& input, const std::string& against, const VolumeTyped& typed, const Common& common,
                  std::shared_ptr<const Backend> backend, const VolumeWorkers& workers) {
  FileSource source(input);
  const std::vector<std::string> damage = check_boxes(source);
  for (const std::string& line : damage) fmt::print("{}: {}\n", input, log::printable(line));
  StreamVolume volume(input, {}, common, std::move(backend), workers);
  const VolumeStreamInfo& coded = volume.in_stream().coded;
  const io::VolumeInfo& info = volume.info();
  std::unique_ptr<io::VolumeReader> original;
  if (!against.empty()) {
    io::VolumeOptions options = volume_options(typed, common);
    options.values_as_axis = info.voxel.channels == 1;
    original = io::open_volume(against, options);
    const io::VolumeInfo& other = original->info();
    require(static_cast<const VolumeDescription&>(other) == info, ErrorKind::kMismatch,
            "'" + against + "' is a volume of another size or type than '" + input + "'");
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
          fmt::format("'{}' ends after {} of {}", input, slices, count_of(info.all_slices(), "slice")));
  require(damage.empty(), ErrorKind::kBadStream, "'" + input + "' is damaged");
  std::string result = fmt::format("{}, {}", count_of(slices, "slice"),
                                   !coded.has_bound ? "lossy"
                                   : coded.exact()  ? "lossless"
                                                    : fmt::format("no error above {:g}", coded.max_error));
  if (original) {
    require(!coded.has_bound || error.max <= coded.max_error, ErrorKind::kMismatch,
            fmt::format("'{}' promises errors up to {:g}, but the largest against '{}' is {:g} ({})", input,
                        coded.max_error, against, error.max, count_of(error.different, "voxel", "differs", "differ")));
    require(!coded.exact() || error.different == 0, ErrorKind::kMismatch,
            count_of(error.different, "voxel", "differs", "differ") + " from '" + against + "'");
    const io::Envelope other = original->envelope();
    const io::Envelope& mine = volume.in_stream().envelope;
    bool same_header = other.files.size() == mine.files.size();
    for (std::size_t i = 0; same_header && i < mine.files.size(); ++i)
      same_header = mine.files[i].head == other.files[i].head && mine.files[i].tail == other.files[i].tail &&
                    mine.files[i].order == other.files[i].order && mine.files[i].unused == other.files[i].unused;
    require(same_header, ErrorKind::kMismatch, "the header differs from that of '" + against + "'");
    result += error.different == 0 ? ", identical to " + against
                                   : fmt::format(", largest error {:g}, PSNR {} against {}", error.max,
                                                 format_psnr(error.psnr()), against);
  }
  fmt::print("{}: OK, {}\n", input, result);
  return kExitDone;
}

namespace {

double rms_of(const VolumeError& error) { return std::sqrt(error.squared / static_cast<double>(error.scalars)); }

void print_json(const std::string& a, const std::string& b, const io::VolumeInfo& info, const VolumeError& error) {
  Json out;
  out.begin_object();
  out.member("a", a);
  out.member("b", b);
  out.member("identical", error.different == 0);
  out.member("psnr", error.psnr());
  out.member("peak", error.largest - error.least);
  out.member("rms_error", rms_of(error));
  out.member("max_error", error.max);
  out.member("max_error_scaled", error.max * std::fabs(info.slope));
  out.member("different", error.different);
  out.member("scalars", error.scalars);
  out.end_object();
  fmt::print("{}", out.text());
}

void print_text(const io::VolumeInfo& info, const VolumeError& error) {
  fmt::print("volume       {}x{}x{}{} {}, values {:g}..{:g}\n", info.width, info.height, info.slices,
             info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type),
             error.least, error.largest);
  fmt::print("PSNR         {} (peak {:g})\n", format_psnr(error.psnr()), error.largest - error.least);
  fmt::print("max error    {:g}{}\n", error.max,
             info.slope != 1 ? fmt::format(" stored, {:g} scaled", error.max * std::fabs(info.slope)) : "");
  fmt::print("RMS error    {:.4g}\n", rms_of(error));
  fmt::print("different    {} of {}\n", error.different, count_of(error.scalars, "value"));
  if (error.different == 0) fmt::print("identical\n");
}

}  // namespace

int compare_volumes(const std::string& a, const std::string& b, const VolumeTyped& typed, bool json,
                    const std::string& csv_path, double min_psnr, const Common& common) {
  const auto open = [&](const std::string& path, bool values_as_axis) {
    io::VolumeOptions options = volume_options(wants_volume(path, {}) ? VolumeTyped{} : typed, common);
    options.allow_outside = typed.allow_outside;
    options.values_as_axis = values_as_axis;
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
      options.series = typed.series.name;
      options.only_matching = typed.series.only_matching;
    }
    return open_volume_source(path, options, common);
  };
  auto left = open(a, false);
  auto right = open(b, false);
  const auto channels = [](const std::unique_ptr<VolumeSource>& v) { return v->info().voxel.channels; };
  if (channels(left) > 1 && channels(right) == 1) left = open(a, true);
  if (channels(right) > 1 && channels(left) == 1) right = open(b, true);
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
  if (csv) csv->commit();
  if (json)
    print_json(a, b, x, error);
  else if (csv_path != "-")
    print_text(x, error);
  require(error.psnr() >= min_psnr, ErrorKind::kMismatch,
          fmt::format("PSNR {} is below {} dB", format_psnr(error.psnr()), min_psnr));
  return kExitDone;
}

}  // namespace trivelet::cli
