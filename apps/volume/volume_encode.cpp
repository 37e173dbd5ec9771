// Encoding a volume's file or files: everything but the coding itself, which is encode_volume() of volume.h.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <limits>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/video/metrics.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

constexpr std::uint64_t kUsualSlab = 64;  // slices; of lossy volumes up to twice as many

/// Checks that decoding can restore the files from what the stream holds beside its voxels.
void check_envelope(const std::vector<std::uint8_t>& bytes, const io::VolumeInfo& info) {
  try {
    const io::Envelope envelope = io::parse_envelope(bytes.data(), bytes.size());
    std::uint64_t voxel_bytes = 0;
    for (const io::VolumeFile& f : envelope.files) voxel_bytes += f.voxel_bytes;
    require(voxel_bytes == info.bytes(), ErrorKind::kMismatch,
            fmt::format("it describes {} bytes of voxels, but {} were read", voxel_bytes, info.bytes()));
    if (envelope.format == "raw") return;
    io::VolumeInfo said = io::volume_info(envelope);
    std::vector<std::string> ignored;
    if (info.voxel.channels == 1 && said.voxel.channels > 1 && envelope.format != "dicom")
      io::put_values_first(said, ignored);
    require(said.width == info.width && said.height == info.height && said.all_slices() == info.all_slices(),
            ErrorKind::kMismatch, "it describes another size than was read");
  } catch (const Error& e) {
    fail(ErrorKind::kMismatch, std::string("the header that the stream would hold cannot be read again: ") + e.what());
  }
}

class FileSlices final : public SliceSource {
 public:
  explicit FileSlices(io::VolumeReader& reader) : reader_(reader) {}
  const VolumeDescription& description() const override { return reader_.info(); }
  void read(std::byte* slice) override { reader_.read(slice, description().slice_bytes()); }
  void rewind() override { reader_.rewind(); }
  bool reads_anywhere() const override { return reader_.reads_anywhere(); }
  void read_at(std::uint64_t number, std::byte* slice) const override {
    reader_.read_at(number * description().slice_bytes(), slice, description().slice_bytes());
  }
  std::vector<std::uint8_t> envelope() override {
    std::vector<std::uint8_t> bytes = serialise(reader_.envelope());
    check_envelope(bytes, reader_.info());
    return bytes;
  }

 private:
  io::VolumeReader& reader_;
};

double max_error_of(const VolumeCoding& coding, const io::VolumeInfo& info) {
  if (coding.max_error_hu < 0) return coding.params.max_error;
  require(info.slope != 0, ErrorKind::kBadArgument, "--max-error-hu: the volume's slope is 0");
  return coding.max_error_hu / (info.largest_slope > 0 ? info.largest_slope : std::fabs(info.slope));
}

std::string result_text(const VolumeResult& r) {
  if (!r.verified) return {};
  if (r.exact()) return ", lossless, verified";
  return fmt::format(", largest error {:g}, PSNR {}, verified", r.cuts.cuts.back().max_error,
                     format_psnr(psnr_of(r.cuts, r.cuts.cuts.size() - 1)));
}

}  // namespace

namespace {

int encode_from(io::VolumeReader& reader, const std::string& output, const VolumeCoding& coding, const Common& common) {
  const io::VolumeInfo& info = reader.info();
  FileSink sink(output, common.overwrite);
  const std::unique_ptr<FileReadBack> again = FileReadBack::of(sink);
  const bool verified = coding.verify && again;
  require(verified || !coding.must_verify, ErrorKind::kBadArgument,
          "--verify decodes the finished file again, and '" + output + "' cannot be read back; write to a file");
  if (!verified && coding.verify) log::warn("'{}' cannot be read back and is not verified", output);

  Progress progress(common, "encode", info.all_slices());
  VolumeEncoderParams params = coding.params;
  params.max_error = max_error_of(coding, info);
  params.verify = verified;
  params.on_remark = [](const std::string& text) { log::debug("{}", text); };
  params.progress = [&](std::uint64_t slices) {
    progress.update(slices);
    if (slices == info.all_slices()) progress.finish();
  };
  // A GPU takes a tenth of a second to begin, in which the volume is looked at.
  const std::uint64_t slabs = (info.all_slices() + kUsualSlab - 1) / kUsualSlab;
  std::shared_ptr<const Backend> backend;
  std::future<std::shared_ptr<const Backend>> starting;
  const bool wavelet = params.is_lossy() || params.transform == VolumeTransform::kWavelet;
  if (coding.device != "cpu" && (wavelet || !params.predictive))
    starting = start_backend(coding.device, coding.gpu_memory, slabs);
  params.backend = [&](Profile profile) {
    const bool started = starting.valid() && profile != Profile::kPredictive;
    backend = started ? starting.get() : volume_backend(coding.device, coding.gpu_memory, profile, slabs);
    return backend.get();
  };
  FileSlices slices(reader);
  VolumeResult result;
  try {
    result = encode_volume(slices, params, sink, again.get());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kMismatch) throw;
    fail(ErrorKind::kMismatch, "verification of '" + output + "' failed, nothing is kept: " + e.what());
  }
  sink.commit();
  if (result.spared_loss)
    log::warn("'{}' is coded without loss: with the loss that {} allows it would not be smaller", output,
              params.max_error > 0 ? "--max-error" : "the target");
  const CodecStats& stats = result.stats;
  log::debug("{:.3f} seconds in all, {:.3f} in the transform, {:.3f} in the coder", result.seconds,
             stats.stages.transform.seconds, stats.stages.coder.seconds);
  const auto bytes = static_cast<double>(info.bytes());
  log::info("{}x{}x{}{} {}, {} bytes, {:.4g} bits per voxel, ratio {:.2f}, {:.1f} MB/s{}", info.width, info.height,
            info.slices, info.volumes > 1 ? fmt::format("x{}", info.volumes) : "", trivelet::to_string(info.voxel.type),
            stats.stream_bytes, 8.0 * static_cast<double>(stats.stream_bytes) / static_cast<double>(info.voxels()),
            bytes / static_cast<double>(stats.stream_bytes), 1e-6 * bytes / result.seconds, result_text(result));
  return kExitDone;
}

/// Whether the values of a voxel may take more planes than can be coded together.
bool may_exceed_planes(const VoxelFormat& voxel) {
  constexpr int kMostPlanes = 4;  // of 16 bits
  return voxel.channels > 1 && voxel.channels * ((bytes_of(voxel.type) + 1) / 2) > kMostPlanes;
}

}  // namespace

int encode_volume_to(const std::string& input, const std::string& output, const VolumeTyped& typed,
                     const VolumeCoding& coding, const Common& common) {
  check_output("", output, true);
  io::VolumeOptions options = volume_options(typed, common);
  auto reader = io::open_volume(input, options);
  for (const std::string& remark : reader->remarks()) log::warn("{}: {}", input, in_options(remark));
  try {
    return encode_from(*reader, output, coding, common);
  } catch (const Error& e) {
    const bool is_of_values = e.kind() == ErrorKind::kUnsupported && may_exceed_planes(reader->info().voxel);
    if (!is_of_values || input == "-" || reader->info().format == "dicom") throw;
  }
  reader.reset();
  options.values_as_axis = true;
  reader = io::open_volume(input, options);
  log::warn("{}: {}", input, in_options(reader->remarks().back()));
  return encode_from(*reader, output, coding, common);
}

}  // namespace trivelet::cli
