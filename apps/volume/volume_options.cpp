// The options of encode for volumes, and the parameters that they give.

#include "apps/volume/volume_options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <map>
#include <sstream>

#include "apps/cli/log.h"

namespace trivelet::cli {

namespace {

// Defaults of lossless dense volumes on a GPU: 16 slabs of 256 blocks in a volume of 512^3, for 1 to 3 % more bytes
// than blocks of 128 and slabs of 64.
constexpr int kDeviceBlock = 32, kDeviceSlab = 32;

/// "-9999,1e20"
std::vector<double> parse_fill_values(const std::string& text) {
  std::vector<double> values;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) {
    double value = 0;
    const char* end = one.data() + one.size();
    const auto [stop, error] = std::from_chars(one.data(), end, value);
    require(error == std::errc() && stop == end, ErrorKind::kBadArgument,
            "--fill-value '" + text + "': '" + one +
                "' is not a number; write numbers separated by commas, e.g. -9999,1e20");
    values.push_back(value);
  }
  return values;
}

/// Typed options of a volume's structure are fixed, the others are left to trials. `p`: of all options.
VolumeEncoderParams volume_params(const EncodeOptions& options, const EncoderParams& p, const Command& app) {
  VolumeEncoderParams v;
  v.max_error = std::max(0.0, options.max_error);
  v.fill_values = parse_fill_values(options.fill_values);
  if (app.typed("-q")) v.quality = p.quality;
  if (app.typed("--step")) v.step = p.step;
  if (app.typed("--psnr")) v.psnr = p.psnr;
  if (app.typed("--bpp")) v.bits_per_voxel = p.bits_per_pixel;
  if (options.ratio > 0) v.ratio = options.ratio;
  if (p.target_bytes > 0) v.total_bytes = p.target_bytes;
  v.effort = effort_of(options);
  if (options.transform == "wavelet") v.transform = VolumeTransform::kWavelet;
  if (options.transform == "prediction") v.transform = VolumeTransform::kPrediction;
  if (options.slab > 0) v.slab = options.slab;
  if (app.typed("--gop")) v.slab = p.gop_frames;
  if (app.typed("--levels")) v.depth_levels = p.temporal_levels;
  if (app.typed("--levels")) v.slice_levels = p.spatial_levels;
  if (app.typed("--wavelet")) v.slice_wavelet = p.spatial;
  if (app.typed("--temporal-wavelet")) v.depth_wavelet = p.temporal;
  if (app.typed("--layout")) v.layout = options.coding.layout == "dyadic" ? Layout::kDyadic : Layout::kT2d;
  if (app.typed("--gop") && !v.layout && options.transform != "prediction") v.layout = Layout::kDyadic;
  v.profile = p.profile;
  // The fast preset has a transform that a GPU supports, too.
  const bool is_for_gpu = options.device.rfind("gpu", 0) == 0;
  v.predictive = !app.typed("--profile") && !(v.effort == Effort::kFast && is_for_gpu);
  if (v.transform == VolumeTransform::kPrediction) {
    require(!app.typed("--profile"), ErrorKind::kBadArgument,
            "--profile is for wavelets; drop it or --transform prediction");
    v.profile = Profile::kDense;  // whatever the preset sets for wavelets
  }
  if (app.typed("--block-size")) v.block_size = options.coding.block_size;
  if (options.access == "region") v.access = VolumeAccess::kRegion;
  if (options.access == "slices") v.access = VolumeAccess::kSlices;
  // A segment of a block is coded by one thread of a device, decision after decision: there must be thousands of them,
  // and short ones. With loss there are few decisions.
  const bool may_predict = v.predictive && v.transform != VolumeTransform::kWavelet;
  if (is_for_gpu && p.lossless && v.profile == Profile::kDense && !may_predict && options.access.empty()) {
    if (!app.typed("--block-size")) v.block_size = kDeviceBlock;
    if (!v.slab) v.slab = kDeviceSlab;
  }
  v.layers = p.layers;
  v.visual = p.visual;
  v.threads = p.threads;
  v.simd = p.simd;
  v.settings = p.settings;
  return v;
}

}  // namespace

void add_volume_encode_options(Command& app, EncodeOptions& options, Option verify) {
  constexpr const char* kVolumes = "Volumes (lossless by default; not a medical device)";
  auto error = app.add_option("--max-error", options.max_error,
                              "Largest error of any voxel, in stored units; guaranteed by construction")
                   .non_negative()
                   .type_name("E")
                   .group(kVolumes);
  app.add_option("--max-error-hu", options.max_error_hu, "The same in scaled units (Hounsfield, ...)")
      .non_negative()
      .type_name("E")
      .group(kVolumes)
      .excludes(error);
  app.add_option(
         "--fill-value", options.fill_values,
         "Lossy: values that stand for missing data, e.g. -9999 or 1e20; they are restored exactly, as NaN always is")
      .type_name("V,...")
      .group(kVolumes);
  app.add_option("--ratio", options.ratio, "Lossy: the file is at least R times smaller than the voxels")
      .range(1.0, 1e9)
      .type_name("R")
      .group(kVolumes);
  app.add_option("--access", options.access,
                 "What is read of the file: region = boxes, so that small ones read little, for a few percent more "
                 "bytes; slices = some slices; whole = all. It chooses --block-size and --slab where these are not "
                 "given [whole]")
      .one_of({"region", "slices", "whole"})
      .group(kVolumes);
  app.add_option("--slab", options.slab, "Slices coded together, 1..128 [parts of about 64, lossy 128; see --access]")
      .range(1, 128)
      .type_name("N")
      .group(kVolumes);
  auto no_verify = app.add_flag("--no-verify", options.no_verify,
                                "Do not verify the result, neither while coding nor by decoding the finished file")
                       .group(kVolumes)
                       .excludes(verify);
  app.add_flag("--verify-full", options.verify_full,
               "With prediction: decode the finished file and compare, instead of checking while coding")
      .group(kVolumes)
      .excludes(no_verify);
  app.add_option("--type", options.voxel_type,
                 "Type of raw volumes (--size WxHxD): u8 s8 u16 s16 u32 s32 f32 f64 ..., with suffix be for big-endian")
      .type_name("T")
      .group(kVolumes);
  add_series_options(app, options.series, kVolumes);
}

void refuse_volume_options(const Command& app) {
  for (const char* option : {"--max-error", "--max-error-hu", "--fill-value", "--access", "--slab", "--ratio",
                             "--no-verify", "--verify-full", "--type", "--series", "--only-matching", "--layout"})
    require(!app.typed(option), ErrorKind::kBadArgument, std::string(option) + " is for volumes, not for videos");
}

VolumeTyped typed_volume(const EncodeOptions& options) {
  return {volume_size(options.reading), options.voxel_type, options.reading.format, options.reading.allow_outside,
          options.series};
}

std::vector<BatchPart> volume_parts(const std::string& path, const EncodeOptions& options, const Common& common) {
  std::error_code ignored;
  if (!options.series.name.empty() || !std::filesystem::is_directory(path, ignored)) return {};
  std::vector<io::SeriesInFolder> all;
  try {
    all = io::series_in_folder(path, volume_options(typed_volume(options), common));
  } catch (const Error&) {  // encoding tells it
    return {};
  }
  std::map<std::string, int> counts;
  for (const io::SeriesInFolder& s : all) ++counts[s.number];
  std::map<std::string, int> seen;
  std::vector<BatchPart> parts;
  for (io::SeriesInFolder& s : all) {
    BatchPart part;
    std::string number = s.number.empty() ? "without-number" : s.number;
    if (counts[s.number] > 1) number += "-" + std::to_string(++seen[s.number]);
    for (char& c : number)
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-') c = '-';
    part.choice = s.uid.empty() ? io::kSeriesWithoutUid : s.uid;
    part.suffix = "_series-" + number;
    part.text = "series " + number + (s.description.empty() ? "" : ", '" + log::printable(s.description) + "'");
    part.files = std::move(s.files);
    parts.push_back(std::move(part));
  }
  return parts;
}

int run_volume(const EncodeOptions& options, const Common& common, const Command& app) {
  for (const char* option :
       {"--recover", "--stream", "--frames", "--fps", "--pix-fmt", "--bitrate", "--max-rate", "--rate-window",
        "--no-scene-cuts", "--motion", "--keyint", "--joinable", "--pin-from", "--resume", "--hwaccel"})
    require(!app.typed(option), ErrorKind::kBadArgument, std::string(option) + " is for videos, not for volumes");
  require(options.use.empty() || options.use == "archive", ErrorKind::kBadArgument,
          "--for " + options.use + " is for videos; volumes are lossless, or have --max-error");
  refuse_film_options(options.output, app);
  require(!is_matroska_name(options.output), ErrorKind::kBadArgument,
          "'" + options.output + "': volumes have no place in Matroska; write a .tvl file");
  require_stream_name(options.output);
  CodingOptions coding = options.coding;
  coding.lossless = false;
  EncoderParams params = encoder_params(app, coding, options.reading, common, false);
  const bool bounded = options.max_error >= 0 || options.max_error_hu >= 0;
  const bool other_target =
      params.target_bytes > 0 || app.typed("-q") || app.typed("--step") || app.typed("--bpp") || app.typed("--psnr");
  const bool lossy = other_target || options.ratio > 0;
  require(!(lossy && (bounded || options.coding.lossless)), ErrorKind::kBadArgument,
          "--max-error and --lossless bound the error of every voxel and exclude other targets (-q, --step, --bpp, "
          "--psnr, --size, --ratio)");
  require(options.ratio == 0 || !other_target, ErrorKind::kBadArgument,
          "--ratio excludes the other targets: a file has one");
  if (!lossy) {
    coding.lossless = true;
    params = encoder_params(app, coding, options.reading, common, false);
  }
  VolumeCoding volume;
  volume.params = volume_params(options, params, app);
  volume.max_error_hu = options.max_error_hu;
  volume.verify = !options.no_verify;
  volume.must_verify = options.verify || options.verify_full;
  if (!options.verify_full) volume.params.verification = VolumeVerify::kRunning;
  volume.device = options.device;
  volume.gpu_memory = options.gpu_memory.empty() ? 0 : parse_size(options.gpu_memory);
  return encode_volume_to(options.input, options.output, typed_volume(options), volume, common);
}

}  // namespace trivelet::cli
