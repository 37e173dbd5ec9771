#include "apps/volume/volume.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "codec/parallel.h"

namespace trivelet::cli {

std::optional<VolumeBoxes> volume_boxes(const StreamInfo& stream) {
  std::optional<VolumeBoxes> found;
  for (const ExtraBox& box : stream.boxes)
    if (box.type == kMapBox) {
      found.emplace();
      found->map = parse_volume_map(box.payload.data(), box.payload.size());
    }
  if (!found) return found;
  io::VolumeInfo said;
  for (const ExtraBox& box : stream.boxes) {
    if (box.type == kEnvelopeBox) {
      found->envelope = io::parse_envelope(box.payload.data(), box.payload.size());
      said = io::volume_info(found->envelope);
    }
    if (box.type == kCutsBox) found->cuts = parse_volume_cuts(box.payload.data(), box.payload.size());
  }
  if (found->cuts.cuts.size() != static_cast<std::size_t>(stream.layers)) found->cuts = {};
  // Sizes come from the pictures, which are there; the header only adds what they do not know.
  io::VolumeInfo& info = found->info;
  info = said;
  info.voxel = found->map.format;
  info.width = stream.video.width;
  info.height = stream.video.height;
  info.slices = found->map.slices;
  info.volumes = found->map.volumes;
  const std::uint64_t pictures = info.all_slices();
  require(stream.video.frames == 0 || stream.video.frames == pictures, ErrorKind::kBadStream,
          fmt::format("the stream has {} pictures, its volume {} slices", stream.video.frames, pictures));
  require(stream.video.format == found->map.pixel_format(), ErrorKind::kBadStream,
          "the pictures of the stream are not what its map of the volume makes");
  std::uint64_t bytes = 0;
  for (const io::VolumeFile& f : found->envelope.files) bytes += f.voxel_bytes;
  require(found->envelope.files.empty() || bytes == info.voxels() * info.voxel.bytes(), ErrorKind::kBadStream,
          "the header in the stream is one of a volume of another size");
  return found;
}

std::optional<VolumeBoxes> volume_boxes(const std::string& path) {
  if (path == "-" || !is_tvl_file(path)) return std::nullopt;
  FileSource source(path);
  return volume_boxes(probe(source));
}

bool has_exact_pictures(const StreamInfo& stream) {
  return stream.lossless && std::all_of(stream.gops.begin(), stream.gops.end(), [](const GopInfo& g) {
           return g.layers.empty() || g.layers.back().error == 0;
         });
}

void refuse_gpu(const std::string& device) {
  require(device.rfind("gpu", 0) != 0, ErrorKind::kUnsupported,
          "--device " + device + ": volumes are coded on the CPU; leave the option out");
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
  const std::string bad = "--region " + text + ": write x,y,z,w,h,d: the first voxel and how many from there";
  const std::vector<std::uint64_t> n = parse_list(text, ',', bad);
  require(n.size() == 6, ErrorKind::kBadArgument, bad);
  const VoxelRegion r{n[0], n[1], n[2], n[3], n[4], n[5]};
  const auto inside = [](std::uint64_t first, std::uint64_t count, std::uint64_t size) {
    return count >= 1 && first < size && count <= size - first;
  };
  require(inside(r.x, r.width, static_cast<std::uint64_t>(info.width)) &&
              inside(r.y, r.height, static_cast<std::uint64_t>(info.height)) && inside(r.z, r.depth, info.slices),
          ErrorKind::kBadArgument,
          fmt::format("--region {}: leaves the volume of {}x{}x{} voxels", text, info.width, info.height, info.slices));
  return r;
}

std::string volume_size(const InputOptions& input) {
  for (const std::string& size : input.sizes)
    if (names_voxels(size)) return size;
  return {};
}

bool wants_volume(const std::string& path, const VolumeTyped& typed) {
  for (const char* format : {"nifti", "nrrd", "metaimage", "dicom"})
    if (typed.format == format) return true;
  if (names_voxels(typed.size) || !typed.type.empty()) return true;
  if (!typed.format.empty() || !typed.size.empty()) return false;
  // By name, too, so that a damaged one is called a damaged volume.
  const std::string extension = io::volume_extension(path);
  for (const char* known : {"nii", "nii.gz", "nrrd", "nhdr", "mha", "mhd", "dcm"})
    if (extension == known) return true;
  return io::is_volume(path);
}

io::VolumeOptions volume_options(const VolumeTyped& typed) {
  io::VolumeOptions options;
  options.format = typed.format;
  options.type = typed.type;
  if (!typed.size.empty())
    options.size = parse_list(typed.size, 'x', "--size " + typed.size + ": write WxHxD, e.g. 256x256x113");
  return options;
}

std::unique_ptr<VolumeSource> open_volume_source(const std::string& path, const io::VolumeOptions& options,
                                                 const Common& common) {
  if (volume_boxes(path)) return decode_volume(path, {}, common);
  return std::make_unique<FileVolume>(path, options);
}

// ------------------------------------------------------------------------------------------------------------ compare

void VolumeError::add(const VolumeError& e) {
  if (e.scalars == 0) return;
  least = scalars == 0 ? e.least : std::min(least, e.least);
  largest = scalars == 0 ? e.largest : std::max(largest, e.largest);
  scalars += e.scalars;
  different += e.different;
  squared += e.squared;
  max = std::max(max, e.max);
}

double VolumeError::psnr() const {
  if (squared == 0 && max == 0) return std::numeric_limits<double>::infinity();
  const double peak = largest - least;
  return 10 * std::log10(peak * peak * static_cast<double>(scalars) / squared);
}

VolumeError compare_scalars(const std::byte* a, const VoxelFormat& fa, const std::byte* b, const VoxelFormat& fb,
                            std::size_t scalars) {
  VolumeError e;
  e.scalars = scalars;
  const auto step_a = static_cast<std::size_t>(bytes_of(fa.type));
  const auto step_b = static_cast<std::size_t>(bytes_of(fb.type));
  const bool same_format = fa == fb;
  bool first = true;
  for (std::size_t i = 0; i < scalars; ++i, a += step_a, b += step_b) {
    const double va = scalar_value(a, fa.type, fa.big_endian);
    if (std::isfinite(va)) {
      e.least = first ? va : std::min(e.least, va);
      e.largest = first ? va : std::max(e.largest, va);
      first = false;
    }
    if (same_format && std::memcmp(a, b, step_a) == 0) continue;
    const double vb = scalar_value(b, fb.type, fb.big_endian);
    if (va == vb && !same_format) continue;
    ++e.different;
    const double d = std::fabs(va - vb);
    if (d == 0) continue;  // the two zeros of floats
    if (std::isnan(d)) {
      e.max = e.squared = std::numeric_limits<double>::infinity();
    } else {
      e.max = std::max(e.max, d);
      e.squared += d * d;
    }
  }
  return e;
}

}  // namespace trivelet::cli
