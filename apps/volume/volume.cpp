// Volumes in streams and files: options, backends, and one reader for both.

#include "apps/volume/volume.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"

namespace trivelet::cli {

std::optional<VolumeInStream> volume_in(const StreamInfo& stream) {
  std::optional<VolumeStreamInfo> coded = volume_stream_info(stream);
  if (!coded) return std::nullopt;
  VolumeInStream found;
  if (!coded->envelope.empty()) {
    found.envelope = io::parse_envelope(coded->envelope.data(), coded->envelope.size());
    found.info = io::volume_info(found.envelope, coded->volume, &found.remarks);
  } else {
    static_cast<VolumeDescription&>(found.info) = coded->volume;
  }
  std::uint64_t bytes = 0;
  for (const io::VolumeFile& f : found.envelope.files) bytes += f.voxel_bytes;
  require(found.envelope.files.empty() || bytes == found.info.bytes(), ErrorKind::kBadStream,
          "the header in the stream is of a volume of another size");
  found.coded = std::move(*coded);
  return found;
}

std::optional<VolumeInStream> volume_in(const std::string& path, const Common& common) {
  if (path == "-" || !is_tvl_file(path)) return std::nullopt;
  return volume_in(probe(*open_stream_file(path).source, limits(common)));
}

std::shared_ptr<const Backend> volume_backend(const std::string& device, std::size_t max_memory, Profile profile,
                                              std::uint64_t slabs) {
  if (profile != Profile::kPredictive) return choose_backend(device, max_memory, slabs);
  const bool named = device.rfind("gpu", 0) == 0;
  require(!named, ErrorKind::kUnsupported,
          "--device " + device +
              ": prediction is coded on the CPU; leave the option out, or encode with --transform wavelet, which a GPU "
              "supports");
  if (const DeviceChoice choice = choose_device(device); choice.gpu >= 0)
    log::info("prediction is coded on the CPU; GPU {}, {}, supports --transform wavelet", choice.gpu, choice.name);
  return nullptr;
}

std::shared_ptr<const Backend> volume_backend(const std::string& device, std::size_t max_memory,
                                              const std::string& path, const Common& common) {
  const StreamInfo stream = probe(*open_stream_file(path).source, limits(common));
  return volume_backend(device, max_memory, stream.profile, stream.gops.size());
}

namespace {

std::vector<std::uint64_t> parse_list(const std::string& text, char separator, const std::string& bad) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    std::uint64_t v = 0;
    const auto result = std::from_chars(text.data() + at, text.data() + end, v);
    require(end > at && result.ec == std::errc() && result.ptr == text.data() + end, ErrorKind::kBadArgument, bad);
    numbers.push_back(v);
    at = end + 1;
  }
  return numbers;
}

bool names_voxels(const std::string& size) { return std::count(size.begin(), size.end(), 'x') >= 2; }

class FileVolume final : public VolumeSource {
 public:
  FileVolume(const std::string& path, const io::VolumeOptions& options) : reader_(io::open_volume(path, options)) {}
  const io::VolumeInfo& info() const override { return reader_->info(); }
  bool read(std::byte* slice) override {
    if (done_ == info().all_slices()) return false;
    reader_->read(slice, info().slice_bytes());
    ++done_;
    return true;
  }

 private:
  std::unique_ptr<io::VolumeReader> reader_;
  std::uint64_t done_ = 0;
};

}  // namespace

VoxelRegion parse_region(const std::string& text, const io::VolumeInfo& info) {
  const std::string bad = "--region " + text + ": write x,y,z,w,h,d: the first voxel, then width, height and depth";
  const std::vector<std::uint64_t> n = parse_list(text, ',', bad);
  require(n.size() == 6, ErrorKind::kBadArgument, bad);
  const VoxelRegion r{n[0], n[1], n[2], n[3], n[4], n[5]};
  const auto inside = [](std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    return count >= 1 && first < size && count <= size - first;
  };
  require(inside(r.x, r.width, static_cast<std::uint64_t>(info.width)) &&
              inside(r.y, r.height, static_cast<std::uint64_t>(info.height)) && inside(r.z, r.depth, info.slices),
          ErrorKind::kBadArgument,
          fmt::format("--region {}: is not inside the volume of {}x{}x{} voxels", text, info.width, info.height,
                      info.slices));
  return r;
}

std::string volume_size(const InputOptions& input) {
  for (const std::string& size : input.sizes)
    if (names_voxels(size)) return size;
  return {};
}

void add_series_options(Command& app, SeriesChoice& series, const char* group) {
  auto name =
      app.add_option(
             "--series", series.name,
             "DICOM folders with several series: the series to read, by UID or number; encode --out-dir takes all")
          .type_name("UID|N");
  auto only = app.add_flag(
      "--only-matching", series.only_matching,
      "DICOM folders: leave out files of another orientation, spacing, size or type than the majority, and duplicates");
  if (!group) return;
  name.group(group);
  only.group(group);
}

bool wants_volume(const std::string& path, const VolumeTyped& typed) {
  for (const char* format : {"nifti", "nrrd", "metaimage", "dicom"})
    if (typed.format == format) return true;
  if (names_voxels(typed.size) || !typed.type.empty() || typed.series.is_typed()) return true;
  if (!typed.format.empty() || !typed.size.empty()) return false;
  // By name, too, so that a damaged one is called a damaged volume.
  return io::has_volume_name(path) || !io::unread_volume(path).empty() || io::is_volume(path);
}

io::VolumeOptions volume_options(const VolumeTyped& typed, const Common& common) {
  io::VolumeOptions options;
  options.format = typed.format;
  options.type = typed.type;
  options.series = typed.series.name;
  options.only_matching = typed.series.only_matching;
  options.allow_outside = typed.allow_outside;
  options.limits = limits(common);
  if (!typed.size.empty())
    options.size = parse_list(typed.size, 'x', "--size " + typed.size + ": write WxHxD, e.g. 256x256x113");
  return options;
}

std::unique_ptr<VolumeSource> open_volume_source(const std::string& path, const io::VolumeOptions& options,
                                                 const Common& common) {
  if (volume_in(path, common)) return decode_volume(path, {}, common);
  return std::make_unique<FileVolume>(path, options);
}

}  // namespace trivelet::cli
