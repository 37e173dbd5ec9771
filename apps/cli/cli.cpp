// The options that several subcommands share, and the parsing of their values.

#include "apps/cli/cli.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numeric>

#include "codec/encoder/encoder_params.h"

namespace trivelet::cli {

namespace {

constexpr const char* kCommonGroup = "Common";
constexpr const char* kInputGroup = "Raw input and pipes";
constexpr const char* kQualityGroup = "Quality";
constexpr const char* kStructureGroup = "Structure of the stream";

const std::vector<std::string> kWavelets = {"9/7", "5/3", "13/7", "haar"};

Wavelet parse_wavelet(const std::string& name) {
  if (name == "5/3") return Wavelet::kCdf53;
  if (name == "13/7") return Wavelet::kRev137;
  if (name == "haar") return Wavelet::kHaar;
  return Wavelet::kCdf97;
}

/// The whole of `text` as a number, or nothing.
template <class T>
bool parse_number(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  return !text.empty() && result.ec == std::errc() && result.ptr == end;
}

}  // namespace

std::string in_options(std::string message) {
  // What libraries call it, and how it is typed.
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"EncoderParams::layers", "--layers"},
      {"EncoderParams::max_rate", "--max-rate"},
      {"EncoderParams::motion", "--motion"},
      {"use SimdLevel::kBest", "use --simd auto"},
      {"ReaderOptions::width, height", "--size WxH; of a volume --size WxHxD --type T"},
      {"ReaderOptions::pixel_format", "--pix-fmt"},
      {"ReaderOptions::format", "--format"},
      {"VolumeOptions::size", "--size WxHxD"},
      {"VolumeOptions::type", "--type"},
      {"VolumeOptions::series takes one, by its UID or number",
       "--series takes one, by its UID or number, and encode --out-dir FOLDER each into a file of its own"},
      {"VolumeOptions::series", "--series"},
      {"VolumeOptions::only_matching", "--only-matching"},
      {"VolumeOptions::allow_outside", "--allow-outside"},
      {"ReaderOptions::stream takes", "encode --stream takes"},
      {"ReaderOptions::recover takes", "encode --recover takes"},
      {"WriterOptions::format", "--format"},
      {"WriterOptions::pixel_format", "--pix-fmt"},
      {" and is not to be overwritten", "; say -y to replace it"},
      {"it is a directory without DICOM files or pictures",
       "it is a directory without DICOM files or pictures; encode takes the files in it with --recursive --out-dir "
       "FOLDER"},
      {"open one of these folders", "encode one of them, or all with --recursive --out-dir FOLDER"},
      {"open that folder", "encode that one, or all below with --recursive --out-dir FOLDER"},
      {"Limits::memory", "--max-memory"},
      {"Limits::samples_per_byte", "--max-work"},
      {"Limits::samples", "--max-samples"},
      {"Limits::frames", "--max-frames"},
      {"Limits::files", "--max-files"},
      {"Limits::unpacked", "--max-unpacked"},
      {"MiB; allow more", "MiB; raise --max-memory"},
      {"or on the CPU", "or use --device cpu"},
      {"or the CPU", "or --device cpu"},
      {"use the CPU to", "use --device cpu to"},
      {"nothing can be taken out of it but frames",
       "nothing can be taken out of it but frames; encode with --transform wavelet for a stream that holds more"},
      {"which has no parts, as wavelets have",
       "which has no parts; encode with --transform wavelet for a stream that has some"},
      {"which has no lower quality in it",
       "which has no lower quality in it; encode with --transform wavelet for a stream that holds some"},
  };
  for (const auto& [library, program] : kNames)
    if (const std::size_t at = message.find(library); at != std::string::npos)
      message.replace(at, library.size(), program);
  return message;
}

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kBadArgument: return kExitUsage;
    case ErrorKind::kIo: return kExitIo;
    case ErrorKind::kBadStream: return kExitBadStream;
    case ErrorKind::kUnsupported: return kExitUnsupported;
    case ErrorKind::kMismatch: return kExitMismatch;
    case ErrorKind::kInternal: break;
  }
  return kExitInternal;
}

Action define_subcommands(Command& app, Common& common, std::span<const Subcommand> commands) {
  app.require_command(1, 1);
  auto actions = std::make_shared<std::vector<std::pair<Command, Action>>>();
  for (const Subcommand& c : commands) {
    Command command = app.add_command(c.name, c.help);
    actions->emplace_back(command, c.define(command, common));
    command.add_help();
  }
  return [actions] {
    for (const auto& [command, action] : *actions)
      if (command.chosen()) return action();
    return kExitUsage;
  };
}

void add_log_options(Command& app, Common& common) {
  auto verbose = app.add_flag("-v,--verbose", common.verbose, "Say more");
  auto quiet = app.add_flag("--quiet", common.quiet, "Errors only");
  auto level = app.add_option("--log-level", common.log_level, "Messages on standard error")
                   .one_of({"trace", "debug", "info", "warn", "error", "off"})
                   .show_default();
  verbose.excludes(quiet).excludes(level).group(kCommonGroup);
  quiet.excludes(level).group(kCommonGroup);
  level.group(kCommonGroup);
}

void add_work_options(Command& app, Common& common) {
  app.add_option("-t,--threads", common.threads, "Threads; 0 = one per core. Never changes the output")
      .range(0, 1024)
      .type_name("N")
      .show_default()
      .group(kCommonGroup);
  app.add_option("--simd", common.simd, "Instruction set. Never changes the output")
      .one_of({"auto", "scalar", "avx2", "avx512"})
      .show_default()
      .group(kCommonGroup);
}

void add_progress_option(Command& app, Common& common) {
  app.add_option("--progress", common.progress,
                 "Progress on standard error: auto = only on a terminal, always, never, json = one object a line")
      .one_of({"auto", "always", "never", "json"})
      .show_default()
      .group(kCommonGroup);
}

void add_limit_options(Command& app, Common& common, bool with_memory) {
  const auto add = [&](const char* name, std::string& value, const char* help) {
    app.add_option(name, value, help)
        .type_name("N")
        .show_default()
        .group("Limits of what an input may cost; suffixes k, M and G");
  };
  if (with_memory) add("--max-memory", common.max_memory, "Most bytes of memory for decoding");
  add("--max-samples", common.max_samples, "Most samples of a GOP, a picture or a frame");
  add("--max-frames", common.max_frames, "Most frames, or slices of a volume");
  add("--max-files", common.max_files, "Most files that a header may name");
  add("--max-unpacked", common.max_unpacked, "Most bytes that compressed data of a volume's file may unpack to");
  add("--max-work", common.max_work, "Most samples for each byte of input, beyond the first 16M");
}

void add_overwrite_option(Command& app, Common& common) {
  app.add_flag("-y,--overwrite", common.overwrite, "Replace an existing output file").group(kCommonGroup);
}

DecoderParams decoder_params(const Common& common) {
  DecoderParams params;
  params.threads = common.threads;
  params.simd = parse_simd(common.simd);
  params.limits = limits(common);
  return params;
}

Limits limits(const Common& common) {
  if (common.limitless) return kNoLimits;
  return {parse_size(common.max_memory), parse_size(common.max_samples),  parse_size(common.max_frames),
          parse_size(common.max_files),  parse_size(common.max_unpacked), parse_size(common.max_work)};
}

void add_input_options(Command& app, InputOptions& options, bool with_target) {
  options.sizes_may_be_targets = with_target;
  app.add_option(
         "--size", options.sizes,
         with_target
             ? "10M: most bytes of the output, nearly all of which are used; 1920x1080: width and height of raw video"
             : "Width and height of raw video, e.g. 1920x1080")
      .type_name(with_target ? "BYTES|WxH" : "WxH")

      .repeatable()
      .group(kInputGroup);
  app.add_option("--pix-fmt", options.pixel_format,
                 "Pixel format of raw video (yuv420p, yuv422p10, gray16, gbrp12, ...); other inputs are converted to "
                 "it by FFmpeg")
      .type_name("FORMAT")
      .group(kInputGroup);
  app.add_option("--fps", options.frame_rate,
                 "Frame rate, e.g. 25, 29.97, 30000/1001; overrides that of the file [raw video: 25]")
      .type_name("RATE")
      .group(kInputGroup);
  app.add_option("--format", options.format, "Format of the input: y4m, pnm, raw, ffmpeg, or FFmpeg's name [detected]")
      .type_name("F")
      .group(kInputGroup);
  app.add_flag("--allow-outside", options.allow_outside,
               "Read files that the input names: parts of playlists, and data files of volumes in other folders")
      .group(kInputGroup);
}

namespace {
bool is_picture_size(const std::string& text) { return text.find('x') != std::string::npos; }
void add_quality_options(Command& app, CodingOptions& options) {
  auto quality =
      app.add_option("-q,--quality", options.quality,
                     "Constant quality, 0..100; 12 more halve the quantiser step, 100 is a step of 1/2 at 8 bits")
          .range(0.0, 100.0)
          .type_name("Q")
          .show_default()
          .group(kQualityGroup);
  auto step = app.add_option("--step", options.step, "Quantiser step in units of a sample, instead of -q")
                  .positive()
                  .type_name("S")
                  .group(kQualityGroup);
  auto lossless =
      app.add_flag("--lossless", options.lossless, "Lossless: every sample is restored exactly").group(kQualityGroup);
  auto bpp = app.add_option("--bpp", options.bits_per_pixel, "Most bits per pixel of the whole file")
                 .positive()
                 .type_name("X")
                 .group(kQualityGroup);
  auto rate = app.add_option("--bitrate", options.bit_rate, "Most bits per second of the whole file: 8M, 500k")
                  .type_name("R")
                  .group(kQualityGroup);
  auto psnr = app.add_option("--psnr", options.psnr, "Target PSNR in dB over all planes, met within 0.1")
                  .range(1.0, 120.0)
                  .type_name("DB")
                  .group(kQualityGroup);
  std::vector<Option> goals = {quality, step, lossless, bpp, rate, psnr};
  for (std::size_t i = 0; i < goals.size(); ++i)
    for (std::size_t j = i + 1; j < goals.size(); ++j) goals[i].excludes(goals[j]);
  app.add_option("--max-rate", options.max_rate,
                 "Most bits per second of any stretch of --rate-window or more, e.g. 150Mbps: GOPs that take more are "
                 "cut, the others keep their quality. With -q, --step, or a size or bit rate of the whole")
      .type_name("R")
      .excludes(lossless)
      .excludes(psnr)
      .group(kQualityGroup);
  app.add_option("--rate-window", options.rate_window,
                 "Seconds over which --max-rate is averaged; a longer GOP counts by itself")
      .positive()
      .type_name("S")
      .show_default()
      .group(kQualityGroup);
  app.add_option(
         "--preset", options.preset,
         "fast: the fast profile without motion (lossless volumes: the fast form of prediction). medium: the dense "
         "profile with motion where it pays. slow: also tries levels on the first frames, rounds coefficients by their "
         "effect on the decoded frames (CPU), and takes GOPs of 64 frames and blocks of 256. With --motion off, slow "
         "tries temporal wavelets, levels and GOP lengths; with --motion on or auto, fast searches less")
      .one_of({"fast", "medium", "slow"})
      .show_default()
      .group(kQualityGroup);
  app.add_option("--tune", options.tune, "Measure of quality: psnr, or visual = weighted by contrast sensitivity")
      .one_of({"psnr", "visual"})
      .show_default()
      .group(kQualityGroup);
}

void add_structure_options(Command& app, CodingOptions& options) {
  app.add_option("--gop", options.gop,
                 "Frames of a GOP, 1..128, which are coded together [64 with motion, but 32 above 720x576 without "
                 "--preset slow; 33 without motion; predicted small pictures up to 66]")
      .range(1, 128)
      .type_name("N")
      .group(kStructureGroup);
  app.add_option("--levels", options.levels,
                 "Wavelet levels, temporal x spatial [with motion up to 5 temporal ones, as suits each GOP, without 4; "
                 "5 spatial ones from 720 rows or columns up, else 4; fewer for short GOPs and tiny pictures]")
      .type_name("TxS")
      .group(kStructureGroup);
  app.add_option(
         "--wavelet", options.spatial_wavelet,
         "Spatial wavelet [lossy: 9/7, lossless: the reversible default]; 13/7 is lossless only, 9/7 lossy only")
      .one_of(kWavelets)
      .group(kStructureGroup);
  app.add_option("--temporal-wavelet", options.temporal_wavelet, "Temporal wavelet [as for --wavelet]")
      .one_of(kWavelets)
      .group(kStructureGroup);
  app.add_option("--motion", options.motion,
                 "Motion compensation: off, on, auto = in the GOPs that then take fewer bits [auto; off with "
                 "--preset fast, --profile fast, --temporal-wavelet, --gop 1 or no temporal levels]")
      .one_of({"off", "on", "auto"})
      .group(kStructureGroup);
  app.add_option("--keyint", options.key_interval,
                 "With motion: most frames between closed GOPs, or a GOP if that is longer; scene cuts begin a "
                 "closed GOP, too [4 seconds]")
      .range(1, 1000000)
      .type_name("N")
      .group(kStructureGroup);
  app.add_option(
         "--key-prediction", options.key_prediction,
         "With motion, -q, --step or --lossless: keys are predicted from those of the GOP before where that takes "
         "fewer "
         "bits. auto = from the same places of pictures; on = along motion, which saves more, but smaller pictures are "
         "then less exact; off = never [auto]")
      .one_of({"auto", "on", "off"})
      .group(kStructureGroup);
  app.add_option("--layout", options.layout,
                 "Volumes: dyadic = depth, rows and columns level by level, t+2d = all levels of depth first [dyadic]")
      .one_of({"t+2d", "dyadic"})
      .group(kStructureGroup);
  app.add_option(
         "--profile", options.profile,
         "Entropy coder [dense; with --preset fast: fast]. fast needs a fifth more bytes and a tenth of the time")
      .one_of({"fast", "dense"})
      .group(kStructureGroup);
  app.add_option(
         "--block-size", options.block_size,
         "Side of the code blocks in samples [128, with motion 256 in pictures of at most 720x576; of volumes see "
         "--access]")
      .one_of({32, 64, 128, 256})
      .group(kStructureGroup);
  app.add_option("--layers", options.layers,
                 "Quality layers, 1..16, for truncation and for decoding at lower quality [16, fewer in small pictures "
                 "and GOPs; fast profile 4, with --psnr up to 16]")
      .range(1, 16)
      .type_name("N")
      .group(kStructureGroup);
  app.add_flag("--no-scene-cuts", options.no_scene_cuts, "Do not begin a new GOP at scene cuts").group(kStructureGroup);
}

}  // namespace

io::ReaderOptions reader_options(const InputOptions& options, const Common& common) {
  io::ReaderOptions reader;
  reader.format = options.format;
  reader.allow_outside = options.allow_outside;
  reader.recover = options.recover;
  reader.stream = options.stream;
  reader.limits = limits(common);
  for (const std::string& size : options.sizes) {
    if (!is_picture_size(size)) {
      require(options.sizes_may_be_targets, ErrorKind::kBadArgument,
              "--size " + size + ": write width x height, e.g. 1920x1080");
      continue;
    }
    require(reader.width == 0, ErrorKind::kBadArgument, "--size is given twice: " + size);
    std::tie(reader.width, reader.height) = parse_pair(size, "--size", "width x height, e.g. 1920x1080");
  }
  if (!options.pixel_format.empty()) {
    (void)io::samples_of(options.pixel_format);  // which refuses unknown names
    reader.pixel_format = options.pixel_format;
  }
  if (!options.frame_rate.empty()) reader.frame_rate = parse_frame_rate(options.frame_rate);
  reader.threads = common.threads;
  return reader;
}

void add_coding_options(Command& app, CodingOptions& options) {
  add_quality_options(app, options);
  add_structure_options(app, options);
}

EncoderParams encoder_params(const Command& app, const CodingOptions& options, const InputOptions& input,
                             const Common& common, bool names_preset) {
  EncoderParams params;
  std::string target;
  for (const std::string& size : input.sizes) {
    if (is_picture_size(size)) continue;
    require(target.empty(), ErrorKind::kBadArgument, "--size is given twice: " + target + " and " + size);
    for (const char* other : {"-q", "--step", "--lossless", "--bpp", "--bitrate", "--psnr"})
      require(!app.typed(other), ErrorKind::kBadArgument,
              "--size " + size + " excludes " + other + ": a file has one target");
    target = size;
    params.target_bytes = parse_size(size);
    require(params.target_bytes > 0, ErrorKind::kBadArgument, "--size " + size + ": a file cannot be empty");
  }
  params.bits_per_pixel = options.bits_per_pixel;
  if (!options.bit_rate.empty()) params.bit_rate = parse_bit_rate(options.bit_rate);
  params.psnr = options.psnr;
  if (!options.max_rate.empty()) params.max_rate = parse_bit_rate(options.max_rate);
  require(params.max_rate > 0 || !app.typed("--rate-window"), ErrorKind::kBadArgument,
          "--rate-window is the window of --max-rate; add that, or drop it");
  params.rate_window = options.rate_window;
  params.visual = options.tune == "visual";
  require(!(params.visual && options.lossless), ErrorKind::kBadArgument,
          "--tune visual weights errors, and --lossless has none; drop one of them");
  params.lossless = options.lossless;
  params.quality = options.quality;
  params.step = options.step;
  params.gop_frames = options.gop;
  if (!options.levels.empty()) {
    std::tie(params.temporal_levels, params.spatial_levels) =
        parse_pair(options.levels, "--levels", "temporal x spatial levels, e.g. 4x5");
    require(params.temporal_levels <= 8 && params.spatial_levels <= 8, ErrorKind::kBadArgument,
            "--levels " + options.levels + ": at most 8 levels of either kind");
  }
  for (const auto& [option, name] :
       {std::pair{"--wavelet", options.spatial_wavelet}, std::pair{"--temporal-wavelet", options.temporal_wavelet}})
    require(!(options.lossless && name == "9/7"), ErrorKind::kBadArgument,
            std::string(option) + " 9/7 cannot be lossless; the reversible wavelets are 5/3, 13/7 and haar");
  params.spatial = parse_wavelet(options.spatial_wavelet);
  params.temporal = parse_wavelet(options.temporal_wavelet);
  const bool fast = options.profile.empty() ? options.preset == "fast" : options.profile == "fast";
  params.profile = fast ? Profile::kFast : Profile::kDense;
  const bool still = options.preset == "fast" || app.typed("--temporal-wavelet");
  params.motion = options.motion == "on"             ? Motion::kOn
                  : options.motion == "auto"         ? Motion::kAuto
                  : options.motion == "off" || still ? Motion::kOff
                                                     : chosen_motion(params);
  if (params.motion != Motion::kOff)
    params.effort = options.preset == "fast"   ? Effort::kFast
                    : options.preset == "slow" ? Effort::kSlow
                                               : Effort::kMedium;
  require(params.motion != Motion::kOff || !app.typed("--keyint"), ErrorKind::kBadArgument,
          "--keyint needs GOPs that refer to each other, and there is no motion; add --motion auto, or drop --keyint");
  params.key_interval = options.key_interval;
  params.key_prediction = options.key_prediction == "on"    ? KeyPrediction::kOn
                          : options.key_prediction == "off" ? KeyPrediction::kOff
                                                            : KeyPrediction::kAuto;
  const bool predicts_keys = params.key_prediction == KeyPrediction::kOn;
  require(!predicts_keys || params.motion != Motion::kOff, ErrorKind::kBadArgument,
          "--key-prediction on needs motion; add --motion auto, or drop it");
  const bool has_goal =
      params.target_bytes > 0 || params.bits_per_pixel > 0 || !options.bit_rate.empty() || params.psnr > 0;
  require(!predicts_keys || params.max_rate == 0, ErrorKind::kBadArgument,
          "--key-prediction on predicts from decoded keys, which --max-rate would cut; drop one of them");
  require(!predicts_keys || !has_goal, ErrorKind::kBadArgument,
          "--key-prediction on needs -q, --step or --lossless: keys are predicted from decoded ones, which are not "
          "known before a target is met");
  if (app.typed("--block-size")) params.block_size = options.block_size;
  params.layers = options.layers;
  params.threads = common.threads;
  params.simd = parse_simd(common.simd);

  // The settings text: the quality, then the options of the structure that were typed or that --for chose. Neither file
  // names nor machine settings.
  params.settings = options.lossless             ? "--lossless"
                    : options.step > 0           ? fmt::format("--step {}", options.step)
                    : !target.empty()            ? "--size " + target
                    : options.bits_per_pixel > 0 ? fmt::format("--bpp {}", options.bits_per_pixel)
                    : !options.bit_rate.empty()  ? "--bitrate " + options.bit_rate
                    : options.psnr > 0           ? fmt::format("--psnr {}", options.psnr)
                                                 : fmt::format("-q {}", options.quality);
  if (!options.max_rate.empty()) params.settings += " --max-rate " + options.max_rate;
  if (app.typed("--rate-window")) params.settings += fmt::format(" --rate-window {}", options.rate_window);
  if (names_preset && options.preset != "medium") params.settings += " --preset " + options.preset;
  if (options.tune != "psnr") params.settings += " --tune " + options.tune;
  if (options.gop > 0 && !app.typed("--gop")) params.settings += fmt::format(" --gop {}", options.gop);
  if (!options.motion.empty() && !app.typed("--motion")) params.settings += " --motion " + options.motion;
  for (const auto& [name, value] : app.typed_under(kStructureGroup)) params.settings += " " + name + " " + value;
  return params;
}

void choose_gop_frames(const VideoInfo& video, EncoderParams& params) {
  if (params.gop_frames == 0) params.gop_frames = usual_gop_frames(video, params);
}

namespace {

/// `text` in lower case, without one of `endings`.
std::string without_ending(std::string text, std::initializer_list<std::string_view> endings) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const std::string_view ending : endings)
    if (text.size() > ending.size() && text.ends_with(ending)) return text.substr(0, text.size() - ending.size());
  return text;
}

/// Takes k, m or g off the end of `text`: 1, 2 or 3; otherwise 0.
int take_prefix(std::string& text) {
  const std::size_t at = text.empty() ? std::string_view::npos : std::string_view("kmg").find(text.back());
  if (at == std::string_view::npos) return 0;
  text.pop_back();
  return static_cast<int>(at) + 1;
}

}  // namespace

std::size_t parse_size(const std::string& text) {
  // As GNU's programs count: M and MiB are 2^20 bytes, MB is 10^6.
  std::string digits = without_ending(text, {"ib", "b"});
  const bool decimal = digits.size() + 1 == text.size();
  const int prefix = take_prefix(digits);
  const double unit = std::pow(decimal ? 1000.0 : 1024.0, prefix);
  double value = 0;
  require(parse_number(digits, value) && std::isfinite(value) && value >= 0 && value * unit < 9e18,
          ErrorKind::kBadArgument,
          "'" + text + "' is not a size; write bytes, or 1500k, 10M, 4G (of 1024), 10MB (of 1000)");
  return static_cast<std::size_t>(value * unit);
}

double parse_bit_rate(const std::string& text) {
  std::string digits = without_ending(text, {"bit/s", "bits/s", "bps", "b/s"});
  const double unit = std::pow(1000.0, take_prefix(digits));
  double value = 0;
  require(parse_number(digits, value) && std::isfinite(value) && value > 0 && value * unit < 1e15,
          ErrorKind::kBadArgument, "'" + text + "' is not a bit rate; write bits per second, or 500k, 8M, 8Mbps");
  return value * unit;
}

namespace {

/// An end of a range: nothing, a frame number, "1.5s", or hours, minutes and seconds, "00:01:10.5". False for other
/// texts.
bool parse_frame_place(std::string_view text, std::uint64_t& frame, std::optional<double>& seconds) {
  std::uint64_t number = 0;
  if (text.empty()) return true;
  if (parse_number(text, number)) {
    frame = number;
    return true;
  }
  double value = 0;
  if (text.back() == 's') {
    if (!parse_number(text.substr(0, text.size() - 1), value)) return false;
  } else {
    unsigned hours = 0;
    unsigned minutes = 0;
    const std::size_t h = text.find(':');
    const std::size_t m = h == std::string_view::npos ? h : text.find(':', h + 1);
    if (m != h + 3 || h < 2 || m == std::string_view::npos || !parse_number(text.substr(0, h), hours) ||
        !parse_number(text.substr(h + 1, 2), minutes) || minutes > 59 || text.size() < m + 3 || text[m + 1] < '0' ||
        text[m + 1] > '5' || (text.size() > m + 3 && text[m + 3] != '.') || !parse_number(text.substr(m + 1), value))
      return false;
    value += 60.0 * minutes + 3600.0 * hours;
  }
  if (!std::isfinite(value) || value < 0) return false;
  seconds = value;
  return true;
}

}  // namespace

FrameRange parse_frame_range(const std::string& text, const std::string& option) {
  if (text.empty()) return {};
  const std::string name = option + " " + text;
  const std::string bad = name +
                          ": write A:B for frame A up to, but not including, frame B; A: and :B leave one end open; A "
                          "and B are numbers or times such as 1.5s and 00:01:10";
  std::optional<FrameRange> found;
  for (std::size_t colon = text.find(':'); colon != std::string::npos && text.size() > 1;
       colon = text.find(':', colon + 1)) {
    FrameRange range;
    if (!parse_frame_place(std::string_view(text).substr(0, colon), range.first, range.first_seconds) ||
        !parse_frame_place(std::string_view(text).substr(colon + 1), range.end, range.end_seconds))
      continue;
    require(!found, ErrorKind::kBadArgument, name + " can be read in two ways; write times in seconds, like 70s");
    found = range;
  }
  require(found.has_value(), ErrorKind::kBadArgument, bad);
  const bool empty = found->first_seconds && found->end_seconds ? *found->first_seconds >= *found->end_seconds
                     : found->has_times()                       ? found->end_seconds == 0.0 || found->end == 0
                                                                : found->first >= found->end;
  require(!empty, ErrorKind::kBadArgument, name + ": the range is empty");
  return *found;
}

Rational parse_frame_rate(const std::string& text) {
  const std::string bad = "--fps " + text + ": write a number above 0 such as 25, 29.97 or 30000/1001";
  const std::size_t slash = text.find('/');
  Rational rate;
  if (slash != std::string::npos) {
    const std::string_view view = text;
    require(parse_number(view.substr(0, slash), rate.num) && parse_number(view.substr(slash + 1), rate.den),
            ErrorKind::kBadArgument, bad);
    require(rate.num > 0 && rate.den > 0, ErrorKind::kBadArgument, bad);
  } else {
    double value = 0;
    require(parse_number(text, value) && value > 0 && value < 1e6, ErrorKind::kBadArgument, bad);
    rate = {static_cast<std::int32_t>(std::lround(value * 1000)), 1000};
    for (const int ntsc : {24, 30, 48, 60, 120})  // 23.976, 29.97, 47.952, 59.94, 119.88
      if (value != ntsc && std::abs(value - ntsc * 1000 / 1001.0) < 0.0006) rate = {ntsc * 1000, 1001};
    require(rate.num > 0, ErrorKind::kBadArgument, bad);
  }
  const std::int32_t divisor = std::gcd(rate.num, rate.den);
  return {rate.num / divisor, rate.den / divisor};
}

std::pair<int, int> parse_pair(const std::string& text, const std::string& option, const std::string& meaning) {
  const std::size_t x = text.find('x');
  int a = 0;
  int b = 0;
  const std::string_view view = text;
  require(x != std::string::npos && parse_number(view.substr(0, x), a) && parse_number(view.substr(x + 1), b) &&
              a >= 0 && b >= 0,
          ErrorKind::kBadArgument, option + " " + text + ": write " + meaning);
  return {a, b};
}

std::string to_string(Wavelet wavelet) {
  switch (wavelet) {
    case Wavelet::kHaar: return "haar";
    case Wavelet::kCdf53: return "5/3";
    case Wavelet::kCdf97: return "9/7";
    case Wavelet::kRev137: return "13/7";
    case Wavelet::kMotion: return "motion";
  }
  return "?";
}

std::string to_string(Layout layout) { return layout == Layout::kDyadic ? "dyadic" : "t+2d"; }

std::string to_string(Profile profile) {
  switch (profile) {
    case Profile::kFast: return "fast";
    case Profile::kDense: return "dense";
    case Profile::kPredictive: break;
  }
  return "predictive";
}

std::string to_string(FastMode mode) { return mode == FastMode::kRaw ? "raw" : "staged"; }

std::string describe(const VideoInfo& info) {
  std::string text = fmt::format("{}x{} {}", info.width, info.height, trivelet::to_string(info.format));
  if (info.frame_rate.num > 0) text += fmt::format(", {:.6g} frames/s", info.frame_rate.value());
  return text;
}

std::vector<std::pair<const char*, StageTime>> stages_by_name(const EncoderStages& stages) {
  return {
      {"hash", stages.hash},       {"transform", stages.transform}, {"coder", stages.coder}, {"layers", stages.layers},
      {"measure", stages.measure}, {"pack", stages.pack},           {"write", stages.write}, {"wait", stages.wait}};
}

std::vector<std::pair<const char*, StageTime>> stages_by_name(const DecoderStages& stages) {
  return {{"read", stages.read},
          {"coder", stages.coder},
          {"transform", stages.transform},
          {"hash", stages.hash},
          {"wait", stages.wait}};
}

std::string describe(const std::vector<std::pair<const char*, StageTime>>& stages, double seconds) {
  constexpr double kShown = 0.0005;
  std::string text;
  double left = seconds;
  for (const auto& [name, time] : stages) {
    left -= time.seconds;
    if (time.seconds >= kShown)
      text += fmt::format("{} {:.3f} ({:.1f} threads), ", name, time.seconds, time.busy / time.seconds);
  }
  return fmt::format("{}other {:.3f}", text, std::max(0.0, left));
}

}  // namespace trivelet::cli
