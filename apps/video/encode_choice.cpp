// The choices of encode before the input is read: presets, prediction or wavelet, parts, refusals.

#include "apps/video/encode_choice.h"

#include <algorithm>
#include <iterator>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cluster/processes.h"
#include "apps/video/encode_job.h"
#include "codec/encoder/encoder_params.h"
#include "trivelet/cuda.h"
#include "trivelet/structure_search.h"

namespace trivelet::cli {

namespace {

/// --preset slow: typed options stay, and a GOP length that --for chose. 0: none is given.
EncoderParams best_structure(const EncodeJob& job, EncoderParams params, VideoInput& beginning) {
  const Command& app = job.app;
  FixedStructure fixed;
  fixed.temporal_wavelet = app.typed("--temporal-wavelet");
  fixed.spatial_wavelet = app.typed("--wavelet");
  fixed.levels = app.typed("--levels");
  fixed.gop_frames = job.options.coding.gop > 0;
  fixed.plain_gops = job.plain_gops();
  params = search_structure(
      beginning.info(), [&](Gop& gop, int index) { return beginning.read_frames(gop, index, 1) == 1; }, params, fixed,
      [](const StructureTrial& t) {
        log::debug("temporal {} x{}, spatial {} x{}, GOPs of {}: cost {:.4f}", to_string(t.temporal), t.temporal_levels,
                   to_string(t.spatial), t.spatial_levels, t.gop_frames, t.cost);
      });
  if (params.motion == Motion::kOff)
    log::info("--preset slow: temporal wavelet {}, spatial {}, {}x{} levels, GOPs of {}", to_string(params.temporal),
              to_string(params.spatial), params.temporal_levels, params.spatial_levels, params.gop_frames);
  else if (!fixed.levels && params.temporal_levels < 0)
    log::info("--preset slow: with motion, each GOP chooses its temporal levels, {} spatial levels",
              params.spatial_levels);
  else if (!fixed.levels)
    log::info("--preset slow: with motion, {}x{} levels", params.temporal_levels, params.spatial_levels);
  return params;
}

// What prediction does not have.
constexpr const char* kWaveletOptions[] = {"--levels", "--wavelet", "--temporal-wavelet",
                                           "--layout", "--profile", "--layers",
                                           "--motion", "--keyint",  "--key-prediction"};

/// What the first part has chosen.
void take_pinned(const EncodeOptions& options, const StreamLayout& first, EncoderParams& params) {
  const std::string name = "--pin-from '" + options.pin_from + "'";
  require(first.info.settings == params.settings, ErrorKind::kBadArgument,
          name + ": it was encoded with '" + first.info.settings + "', this part with '" + params.settings + "'");
  params.temporal = first.header.temporal;
  params.spatial = first.header.spatial;
  params.temporal_levels = first.header.temporal_levels;
  params.levels_by_gop = first.header.levels_by_gop;
  if (!first.header.motion) params.motion = Motion::kOff;
  if (!first.header.predicted_keys) params.key_prediction = KeyPrediction::kOff;
  params.spatial_levels = first.header.spatial_levels;
  params.gop_frames = first.header.gop_frames;
  params.moved_frames = first.header.moved;
  params.labels = first.header.labels;
}

/// The stream of --pin-from.
std::optional<StreamLayout> pinned(const EncodeOptions& options) {
  if (options.pin_from.empty()) return std::nullopt;
  require_tvl_file(options.pin_from);
  const StreamFile file = open_stream_file(options.pin_from);
  std::uint64_t bytes_read = 0;
  StreamInput in(*file.source, bytes_read);
  StreamLayout layout;
  layout.read(in);
  return layout;
}

/// --transform prediction, of a video.
void take_prediction(const Command& app, const EncodeOptions& options, EncoderParams& params) {
  require(params.lossless, ErrorKind::kBadArgument, "--transform prediction is lossless; add --lossless");
  for (const char* option : kWaveletOptions)
    require(!app.typed(option), ErrorKind::kBadArgument,
            std::string(option) + " is for wavelets; drop it or --transform prediction");
  require(!asks_for_gpu(app), ErrorKind::kUnsupported,
          "--device " + options.device + ": prediction is coded on the CPU; leave the option out");
  choose_prediction(app, options, params);
}

/// --preset slow: the best structure for the beginning of the input.
void choose_structure(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  if (options.coding.preset != "slow" || job.pin || job.params.profile == Profile::kPredictive) return;
  if (!can_read_again(options.input)) {
    require(job.params.motion != Motion::kOff, ErrorKind::kBadArgument,
            "--preset slow reads the beginning of the input twice, which a pipe does not allow; use a file or another "
            "preset");
    log::info("--preset slow: a pipe cannot be read twice, so the levels are those of --preset medium");
    return;
  }
  // For a first part, the search sees the frames that it would see of the whole: it may read beyond the part.
  const FrameRange shown = options.joinable ? FrameRange{job.range.first} : job.range;
  VideoInput beginning(options.input, reader_options(options.reading, job.common), job.common, shown);
  choose_gop_frames(beginning.info(), job.params);
  job.params = best_structure(job, job.params, beginning);
}

}  // namespace

void take_use(const Command& app, EncodeOptions& options) {
  if (options.use.empty()) return;
  CodingOptions& coding = options.coding;
  bool has_goal = volume_size(options.reading).empty() && !options.reading.sizes.empty();
  for (const char* goal : {"-q", "--step", "--lossless", "--bpp", "--bitrate", "--psnr"})
    has_goal = has_goal || app.typed(goal);
  const bool exact = options.use == "archive";
  require(!exact || !has_goal || coding.lossless, ErrorKind::kBadArgument,
          "--for archive is lossless; drop it, or the option that sets a quality or a size");
  coding.lossless = coding.lossless || exact;
  options.verify = options.verify || (exact && options.output != "-" && !options.no_verify);
  const bool quick = options.use == "mezzanine" || options.use == "editing" || options.use == "proxy";
  if (quick && !app.typed("--preset")) coding.preset = "fast";
  if (quick && !app.typed("--gop")) coding.gop = options.use == "editing" ? 1 : 8;
  if (options.use == "delivery" && !app.typed("--motion")) coding.motion = "auto";
  // Measured by tests/bench/purposes.sh.
  if (!has_goal && !exact) coding.quality = options.use == "proxy" ? 26 : options.use == "delivery" ? 46 : 70;
}

bool asks_for_gpu(const Command& app) {
  for (const auto& [name, value] : app.typed_under("Common"))
    if (name == "--device" && value.starts_with("gpu")) return true;
  return false;
}

void choose_prediction(const Command& app, const EncodeOptions& options, EncoderParams& params) {
  params.profile = Profile::kPredictive;
  params.effort = effort_of(options);
  params.motion = Motion::kOff;
  if (!app.typed("--block-size")) params.block_size = 256;
  if (options.transform != "prediction") params.settings += " --transform prediction";  // otherwise it throws
}

bool may_predict(const Command& app, const EncodeOptions& options) {
  return options.transform == "auto" && options.coding.lossless && options.coding.preset != "fast" &&
         options.hwaccel == "none" && !asks_for_gpu(app) &&
         std::none_of(std::begin(kWaveletOptions), std::end(kWaveletOptions),
                      [&app](const char* option) { return app.typed(option); });
}

void make_joinable(const Command& app, const EncodeOptions& options, const std::optional<StreamLayout>& first,
                   EncoderParams& params) {
  for (const char* option : {"--bpp", "--bitrate", "--psnr"})
    require(!app.typed(option), ErrorKind::kBadArgument,
            std::string(option) +
                " depends on earlier GOPs, which --joinable excludes; join first, then 'trivelet truncate' to a size "
                "or PSNR");
  require(params.max_rate == 0, ErrorKind::kBadArgument,
          "--max-rate depends on earlier GOPs, which --joinable excludes");
  require(params.target_bytes == 0, ErrorKind::kBadArgument,
          "--size needs the whole video, which --joinable excludes; join first, then 'trivelet truncate --size'");
  require(!app.typed("--keyint"), ErrorKind::kBadArgument,
          "--keyint needs GOPs that refer to each other, which --joinable excludes");
  if (params.motion != Motion::kOff) params.key_interval = 1;
  // The same for all pictures, since --frames counts in GOPs.
  if (params.profile == Profile::kPredictive && params.gop_frames == 0) params.gop_frames = kStillGopFrames;
  params.measure_errors = false;
  params.settings += " --joinable";
  if (first) take_pinned(options, *first, params);
}

EncoderParams typed_params(const EncodeOptions& options, const Common& common, const Command& app) {
  EncoderParams params = encoder_params(app, options.coding, options.reading, common);
  if (options.transform == "prediction") take_prediction(app, options, params);
  return params;
}

std::uint64_t few_gops_of(const EncoderParams& params) {
  if (params.motion != Motion::kOff || params.profile == Profile::kPredictive) return 0;
  return params.profile == Profile::kFast ? kFastGops : kDenseGops;
}

void expect_gops(const EncodeOptions& options, const Common& common, const Command& app) try {
  const bool several = may_name_several(options.device) || place_of_process().size > 1;
  if (!several && options.hwaccel != "none") return;  // more queues for its decoders are asked for later
  const EncoderParams params = typed_params(options, common, app);
  std::uint64_t gops = few_gops_of(params);
  // Several GPUs are listed before the input is open and tells the number of its GOPs.
  if (several && params.motion != Motion::kOff) gops = kMovingGops;
  if (gops > 0) gpu::expect_gops(static_cast<int>(gops));
} catch (const Error&) {  // the user of the options reports the error
}

void choose_params(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  job.params = typed_params(options, job.common, job.app);
  require(!rounds_along_motion(job.params) || !asks_for_gpu(job.app), ErrorKind::kUnsupported,
          "--device " + job.given.device +
              ": --preset slow with motion is coded on the CPU; leave the option out, add --motion off, or use "
              "another preset");
  require(!options.resume || (options.output != "-" && !job.params.has_byte_target()), ErrorKind::kBadArgument,
          options.output == "-"
              ? "--resume keeps coded GOPs beside the output, which standard output does not allow; write to a file"
              : "--resume: with a target for bytes no GOP is final before the end; use -q or --psnr");
  job.range = frame_range(options.frames, options.input);
  job.pin = pinned(options);
  require(!options.joinable || !job.range.has_times(), ErrorKind::kBadArgument,
          "--frames " + options.frames + ": joinable parts begin with a GOP; give frame numbers instead of times");
  job.trace.emplace(job.common);
  if (may_predict(job.app, options)) {
    if (!job.pin) open_input(job);
    if (job.pin ? job.pin->header.profile == Profile::kPredictive : job.input->info().format.model != ColourModel::kRgb)
      choose_prediction(job.app, options, job.params);
  }
  if (options.joinable) make_joinable(job.app, options, job.pin, job.params);
  choose_structure(job);
}

}  // namespace trivelet::cli
