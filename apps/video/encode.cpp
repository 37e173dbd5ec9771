// trivelet encode: any video into a .tvl stream. A thread reads the next GOP while this one is encoded.

#include <filesystem>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/encode_choice.h"
#include "apps/video/encode_job.h"
#include "apps/volume/volume_options.h"
#include "codec/edit/header_difference.h"
#include "codec/encoder/encoder_params.h"
#include "trivelet/cuda.h"
#include "trivelet/device_pictures.h"

namespace trivelet::cli {

namespace {

// Engines that an H200 has. Beside more decoders than eight, streams of kernels wait for each other.
constexpr int kHardwareDecoders = 7;

/// Where --hwaccel lets a GPU decode the input: on the one that encodes.
io::ReaderOptions hardware_reader(const EncodeOptions& options, const Common& common) {
  io::ReaderOptions reader = reader_options(options.reading, common);
  if (options.hwaccel == "none") return reader;
  const bool must = options.hwaccel == "cuda";
  const DeviceChoice choice = choose_device(options.device);
  require(!must || choice.gpu >= 0, ErrorKind::kUnsupported,
          "--hwaccel cuda decodes on the GPU that encodes, but --device " + options.device + " is the CPU");
  if (choice.gpu < 0) return reader;
  reader.device_decoding = must ? io::DeviceDecoding::kAlways : io::DeviceDecoding::kWherePossible;
  reader.pictures = gpu::device_pictures(choice.gpu);
  reader.decoders = kHardwareDecoders;
  return reader;
}

double bits_per_pixel(const VideoInfo& info, std::uint64_t frames, std::uint64_t bytes) {
  return 8.0 * static_cast<double>(bytes) /
         (static_cast<double>(info.width) * static_cast<double>(info.height) * static_cast<double>(frames));
}

/// The number of GOPs; 0 if it is unknown.
std::uint64_t gops_of(const VideoInfo& info, int gop_frames) {
  const auto length = static_cast<std::uint64_t>(gop_frames);
  return (info.frames + length - 1) / length;
}

/// What no input or output of a video can obey.
void check(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  require(!job.processes || options.hwaccel != "cuda", ErrorKind::kUnsupported,
          "--hwaccel cuda is for one GPU and one process; leave it out, or use --device gpu:N");
  if (job.processes) job.options.hwaccel = "none";
  require(options.coding.max_rate.empty() || (!job.processes && !options.resume), ErrorKind::kBadArgument,
          "--max-rate cuts GOPs in their order, with what those before it took; use one process and one GPU, without "
          "--resume");
  if (options.resume && !job.processes) {
    job.alone = std::move(thread_processes(1).front());
    job.processes = job.alone.get();
  }
  refuse_volume_options(job.app);
  require_stream_name(options.output);
  check_output(options.input, options.output, true);
  require(!(options.verify && options.output == "-"), ErrorKind::kBadArgument,
          "--verify decodes the finished file again, and standard output cannot be read back; write to a file");
  require(!options.verify || options.coding.lossless || can_read_again(options.input), ErrorKind::kBadArgument,
          "--verify of a lossy stream reads the input twice, which a pipe does not allow; use a file or --lossless");
}

/// `what` is not coded on a GPU; an existing GPU supports `others`.
void start_on_cpu(EncodeJob& job, const char* what, const char* others) {
  job.starting = start_backend("cpu", 0, 0);
  if (const DeviceChoice choice = choose_device(job.given.device); choice.gpu >= 0)
    log::info("{} is coded on the CPU; GPU {}, {}, supports {}", what, choice.gpu, choice.name, others);
}

/// Starts the device, before the input is opened if the number of GOPs is known by then.
void start_backend_and_open(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  const std::size_t gpu_memory = options.gpu_memory.empty() ? 0 : parse_size(options.gpu_memory);
  const std::uint64_t few_gops = few_gops_of(job.params);
  if (few_gops > 0 && options.hwaccel != "none") gpu::expect_gops(static_cast<int>(few_gops) + kHardwareDecoders);
  if (few_gops > 0) job.starting = start_backend(options.device, gpu_memory, few_gops);
  if (!job.input) open_input(job);
  const bool predicts = job.params.profile == Profile::kPredictive;
  choose_gop_frames(job.input->info(), job.params);
  if (predicts) {
    start_on_cpu(job, "prediction", "--transform wavelet");
  } else if (rounds_along_motion(job.params)) {
    start_on_cpu(job, "--preset slow with motion", "other presets");
  } else if (few_gops == 0) {
    const std::uint64_t gops = gops_of(job.input->info(), job.params.gop_frames);
    job.starting = start_backend(options.device, gpu_memory,
                                 job.params.motion == Motion::kOff ? gops
                                 : gops == 0                       ? kMovingGops
                                                                   : std::min(2 * gops, kMovingGops));
  }
}

void warn_of_other_clock(const std::string& output, io::SideStreams lost) {
  lost.chapters = lost.tags = false;  // the stream has places for tags, and the reader names the chapters
  if (!lost.empty()) log::warn("--fps changes the speed of the video: '{}' gets no {}", output, io::to_string(lost));
}

/// The metadata of the video for the stream, and its side streams.
void describe_stream(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  const VideoInput& input = *job.input;
  job.video = input.info();
  job.params.metadata = input.metadata();
  if (options.joinable) {
    job.video.frames = 0;  // of the part, so it decides nothing
    require(job.range.first % static_cast<std::uint64_t>(job.params.gop_frames) == 0, ErrorKind::kBadArgument,
            "--frames " + options.frames + ": joinable parts begin with a GOP, at a multiple of " +
                std::to_string(job.params.gop_frames));
  }
  const bool matroska = is_matroska_name(options.output);
  if (matroska) {
    job.video.frames = 0;  // its header cannot be corrected afterwards
    const bool other_clock = job.app.typed("--fps") && options.film.tracks_from.empty();
    if (!other_clock)
      job.side_streams = side_streams_for(options.input, input.side_streams(), options.film, job.range);
    else
      warn_of_other_clock(options.output, input.side_streams());
    if (job.side_streams.from == options.input) job.side_streams.stream = options.reading.stream;
  } else {
    refuse_film_options(options.output, job.app);
    io::SideStreams lost = input.side_streams();
    lost.chapters = lost.tags = false;  // the stream has places for them
    warn_of_loss(options.output, lost, options.film);
  }
  // In Matroska, players look for them in the container. Of parts that are to be joined the first one has them.
  if (options.film.only_video || job.side_streams.from == options.input || (options.joinable && job.range.first > 0)) {
    job.params.metadata.chapters.clear();
    job.params.metadata.entries.clear();
  }
  if (!matroska && options.output != "-" && std::filesystem::path(options.output).extension() != ".tvl")
    log::warn("'{}' will hold a Trivelet stream although its name does not end in .tvl", options.output);
}

void open_output(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  job.sink = open_stream_output(options.output, job.common, job.side_streams);
  require(!options.verify || !job.sink->temporary_path().empty(), ErrorKind::kBadArgument,
          "--verify decodes the finished file again and '" + options.output + "' cannot be read back");
  job.backend = job.starting.get();
  job.stream.emplace(*job.sink, job.sink->file());
  log::debug("{}: {}{}", options.input, describe(job.input->info()),
             job.input->on_device() ? ", decoded on the GPU" : "");
  if (options.verify && job.params.lossless && !job.processes) job.digest = std::make_unique<Digest>(job.input->info());
}

void finish(EncodeJob& job) {
  const EncodeOptions& options = job.options;
  require(job.coded.frames > 0, options.frames.empty() ? ErrorKind::kBadStream : ErrorKind::kBadArgument,
          "'" + options.input + "' holds no frames" + (options.frames.empty() ? "" : " in --frames " + options.frames));
  // Of one frame the count tells a decoder that reads a pipe that nothing moves.
  const std::uint64_t promised = job.video.frames;
  if (options.joinable || promised > job.coded.frames || (job.coded.frames == 1 && promised != 1))
    job.stream->set_frames(job.coded.frames);
  const double seconds = job.clock.seconds();
  // Before the rename: a file that fails never gets its name.
  job.sink->finish();
  if (const std::string& path = job.sink->temporary_path(); !path.empty())
    check_written(path, options.output, job.coded.frames);
  const std::string verified = options.verify ? ", " + verify(job) : "";
  job.sink->commit();
  if (job.journal) job.journal->remove();
  warn_of_remarks(options.output, job.sink->remarks());
  job.trace->finish();
  if (job.range.has_end() && job.coded.frames < job.range.count())
    log::warn("--frames {}: the input ends before", options.frames);
  log::info("{}, {} bytes, {:.4g} bits per pixel, {:.1f} frames/s{}", count_of(job.coded.frames, "frame"),
            job.coded.bytes, bits_per_pixel(job.input->info(), job.coded.frames, job.coded.bytes),
            static_cast<double>(job.coded.frames) / seconds, verified);
  require(job.input->damage().empty(), ErrorKind::kBadStream,
          "'" + options.input + "' is damaged (" + job.input->damage() + "); the output holds " +
              count_of(job.coded.frames, "frame"));
}

/// Of a video.
void encode(EncodeJob& job) {
  check(job);
  choose_params(job);
  job.clock = {};
  start_backend_and_open(job);
  describe_stream(job);
  open_output(job);
  job.processes ? encode_with_others(job) : encode_alone(job);
  finish(job);
}

int run(const EncodeOptions& given, const Common& given_common, const Command& app) {
  EncodeJob job{.given = given, .app = app, .options = given, .common = given_common};
  EncodeOptions& options = job.options;
  expect_gops(options, job.common, app);
  WorkerGroup workers("encode", options.device, job.common,
                      [&given, &app, name = job.name()](Processes& end, const std::string& device, const Common& own) {
                        help_with_encoding(given, app, name, end, device, own);
                      });
  if (workers.helped()) return kExitDone;
  job.processes = workers.processes();
  job.members = workers.members();
  job.call = [&](const std::vector<std::uint8_t>& details) { workers.call(job.name(), details); };
  if (wants_volume(options.input, typed_volume(options))) {
    if (job.processes) {
      log::info("'{}' is a volume: one of {} {} encodes it, the others are idle", options.input, job.processes->size(),
                workers.members());
      if (given.device == "auto") options.device = given.device;
    }
    return run_volume(options, given_common, app);
  }
  encode(job);
  return kExitDone;
}

/// Whether a film has what only Matroska can hold.
bool needs_matroska(const std::string& path, const EncodeOptions& options, const Common& common) {
  if (wants_volume(path, typed_volume(options)) || options.film.only_video) return false;
  io::ReaderOptions reader = reader_options(options.reading, common);
  reader.recover = true;  // damage is for the encoder to report
  const io::SideStreams found = io::open_reader(path, reader)->side_streams();
  return !found.tracks.empty() || found.attachments;
}

/// One file, or many.
int run_all(const EncodeOptions& as_typed, const Common& common, const Command& app) {
  EncodeOptions typed = as_typed;
  take_use(app, typed);
  if (!typed.batch.is_typed()) {
    check_single("encode", typed.output, typed.batch);
    return run(typed, common, app);
  }
  const std::string& extension = typed.batch.extension;
  require(extension.empty() || extension == "tvl" || extension == "mkv", ErrorKind::kBadArgument,
          "--out-ext " + extension + ": encode writes tvl and mkv");
  BatchWork work{.command = "encode"};
  work.verifies = typed.verify;
  work.takes = [](const std::string& path) { return !is_tvl_file(path); };
  work.parts = [&](const std::string& path) { return volume_parts(path, typed, common); };
  work.output_name = [&](const std::string& path, const std::string& name) {
    if (!extension.empty()) return name + "." + extension;
    return name + (needs_matroska(path, typed, common) ? ".mkv" : ".tvl");
  };
  work.run = [&](const std::string& input, const std::string& output, const std::string& choice) {
    EncodeOptions one = typed;
    one.input = input;
    one.output = output;
    if (!choice.empty()) one.series.name = choice;
    return run(one, common, app);
  };
  return run_batch(typed.input, typed.output, typed.batch, common, work);
}

}  // namespace

bool can_read_again(const std::string& path) {
  std::error_code ignored;
  return path != "-" && (!std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored) ||
                         std::filesystem::is_directory(path, ignored));
}

void open_input(EncodeJob& job) {
  job.input =
      std::make_unique<VideoInput>(job.options.input, hardware_reader(job.options, job.common), job.common, job.range);
}

void EncodeJob::check_pin(const StreamHeader& header) const {
  const std::string difference = pin ? header_difference(pin->header, header, true) : "";
  require(difference.empty(), ErrorKind::kBadArgument,
          "'" + options.input + "' does not fit --pin-from '" + options.pin_from + "': " + difference);
}

namespace {

/// Returns --verify, which others exclude.
Option add_check_options(Command& app, EncodeOptions& options) {
  app.add_option("--frames", options.frames,
                 "Encode only frame A up to, but not including, frame B; A: and :B leave an end open; also times, "
                 "such as 1.5s:00:01:10")
      .type_name("A:B")
      .group("Selection and checks");
  auto joinable =
      app.add_flag(
             "--joinable", options.joinable,
             "For 'trivelet join': GOPs have equal lengths and are closed; --frames begins at a multiple of --gop")
          .group("Selection and checks");
  app.add_option("--pin-from", options.pin_from,
                 "Take over the choices of --preset slow from the first part, which was encoded with the same options")
      .type_name("FIRST.tvl")
      .group("Selection and checks")
      .needs(joinable);
  app.add_flag("--resume", options.resume,
               "Keep coded GOPs in OUT.resume until OUT is complete, and reuse those that a stopped run left there")
      .group("Selection and checks");
  return app
      .add_flag("--verify", options.verify,
                "Decode the finished file and compare: lossless must be identical (otherwise exit code 6), of lossy "
                "the PSNR is printed")
      .group("Selection and checks");
}

void add_video_input_options(Command& app, EncodeOptions& options) {
  app.add_option("--stream", options.reading.stream, "Video track to encode, in ffmpeg's notation: v:1, 3 [the best]")
      .type_name("TRACK")
      .group("Input");
  app.add_option("--hwaccel", options.hwaccel,
                 "Decoder of H.264, HEVC, AV1, VP9, ...: none = the CPU, cuda = the video engine of the encoding GPU, "
                 "which conceals damage without reporting it, auto = that engine if it supports the input")
      .one_of({"none", "cuda", "auto"})
      .show_default()
      .group("Input");
}

void add_transform_option(Command& app, EncodeOptions& options) {
  app.add_option(
         "--transform", options.transform,
         "wavelet: the file contains smaller sizes, lower frame rates and lower qualities. prediction: lossless only, "
         "smaller and faster, on the CPU, without these. auto: prediction for --lossless, except for colours (RGB) and "
         "with --device gpu, --hwaccel, an option of wavelets or, for videos, --preset fast")
      .one_of({"auto", "wavelet", "prediction"})
      .show_default()
      .group("Structure of the stream");
}

}  // namespace

Action define_encode(Command& app, Common& common) {
  auto options = std::make_shared<EncodeOptions>();
  app.add_option("IN", options->input, "Video to encode; - = standard input (Y4M, or raw with --size and --pix-fmt)")
      .required();
  app.add_option("-o,--output,OUT", options->output,
                 "Stream to write, e.g. out.tvl, or a film with sound, out.mkv; - = standard output");
  add_batch_options(app, options->batch,
                    "tvl or mkv, added to the names of the inputs [mkv for films with sound, subtitles or attachments, "
                    "else tvl]");
  app.add_option(
         "--for", options->use,
         "Defaults for a purpose: mezzanine = --preset fast -q 70 --gop 8, about the PSNR of ProRes 422 HQ; editing = "
         "the same with --gop 1, so that any frame is decoded alone; proxy = --preset fast -q 26 --gop 8, as ProRes "
         "Proxy; delivery = -q 46 --motion auto, as x264's --crf 20; archive = --lossless --verify. Options that are "
         "typed count")
      .one_of({"mezzanine", "editing", "proxy", "delivery", "archive"})
      .group("Quality");
  const Option verify = add_check_options(app, *options);
  add_coding_options(app, options->coding);
  app.add_flag(
         "--recover", options->reading.recover,
         "Encode the frames before the damage of a damaged or cut input, or those between it and the next where it "
         "begins with damage; the exit code is 4 if frames are missing")
      .group("Selection and checks");
  add_video_input_options(app, *options);
  add_film_options(app, options->film);
  add_transform_option(app, *options);
  add_volume_encode_options(app, *options, verify);
  add_input_options(app, options->reading, true);
  add_overwrite_option(app, common);
  app.add_option("--max-memory", options->gpu_memory, "Most GPU memory to use; suffixes k, M and G")
      .type_name("SIZE")
      .group("Common");
  add_limit_options(app, common, false);
  add_device_option(app, options->device, true);
  add_work_options(app, common);
  add_trace_option(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  return [options, &common, app] { return run_all(*options, common, app); };
}

}  // namespace trivelet::cli
