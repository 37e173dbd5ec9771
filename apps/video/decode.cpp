// trivelet decode: a .tvl stream, or a part of it, back into video. A thread decodes the next GOP while this one is
// written, unless there is to be one thread.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/decode_job.h"
#include "apps/video/picture_region.h"
#include "apps/volume/volume.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"
#include "io/video/pictures.h"
#include "trivelet/cuda.h"

namespace trivelet::cli {

namespace {

/// --pix-fmt of an output. FFmpeg's names that say a range, too, mean the same samples.
std::string output_pixel_format(const std::string& typed) {
  if (typed.empty() || typed == "auto") return typed;
  const std::string name = typed == "rgb" ? "rgb24" : typed.starts_with("yuvj") ? "yuv" + typed.substr(4) : typed;
  (void)io::samples_of(name);  // which refuses unknown names
  return name;
}

/// Warns of properties of the stream that the output cannot have.
void warn_of_output(const DecodeOptions& options, const StreamInfo& stream, const VideoInfo& info) {
  const io::WriterOptions& writer = options.writer;
  if ((info.rotation != 0 || info.mirrored) && !io::holds_rotation(options.output, writer.format))
    log::warn("'{}' loses {}{} for display: .mp4 and .mov can store it, this format cannot", options.output,
              info.mirrored ? "the mirroring of left and right" : "",
              info.rotation == 0
                  ? ""
                  : fmt::format("{}the rotation by {} degrees", info.mirrored ? " and " : "", info.rotation));
  const std::string kind =
      writer.format.empty() ? std::filesystem::path(options.output).extension().string() : "." + writer.format;
  if (stream.lossless && writer.video_codec.empty() && writer.crf < 0 && (kind == ".mp4" || kind == ".mov"))
    log::warn("the stream is lossless, but '{}' is not: libx264 codes it with --crf 18; .mkv (ffv1) is exact",
              options.output);
}

/// Must be called before the first use of GPUs, because they are started for the expected number of GOPs.
void expect_gops(const DecodeOptions& options, const Common& common) try {
  if (options.device == "cpu" || !std::filesystem::is_regular_file(options.input)) return;
  const std::uint64_t gops = gops_in_flight(*open_stream_file(options.input).source, "cpu", limits(common));
  if (gops > 0) gpu::expect_gops(static_cast<int>(std::min<std::uint64_t>(gops, 1000)));
} catch (const Error&) {  // the reader of the stream reports the error
}

void choose(DecodeJob& job) {
  const DecodeOptions& options = job.options;
  job.params = part_params(options.input, options.part, job.common);
  job.range = {job.params.first_frame, job.params.end_frame};
  job.writing = options.writer;
  job.no_pictures = job.format() == "md5" || job.format() == "framemd5" || job.drops_pictures();
  check_output(options.input, options.output, !job.no_pictures);
  for (const std::string& option : options.codec_options) {
    const std::size_t at = option.find('=');
    job.writing.codec_options.emplace_back(option.substr(0, at), option.substr(at + 1));
  }
  job.writing.overwrite = job.common.overwrite;
  job.writing.pixel_format = output_pixel_format(job.writing.pixel_format);
  job.writing.threads = job.common.threads;
}

void open_decoder(DecodeJob& job) {
  job.file = open_stream_file(job.options.input);
  ByteSource& source = *job.file.source;
  job.backend =
      choose_backend(job.options.device, job.gpu_memory(),
                     job.options.device == "cpu" ? 0 : gops_in_flight(source, job.options.device, job.params.limits));
  job.decoder = std::make_unique<Decoder>(source, job.params, job.backend.get());
  warn_of_lost_index(job.options.input, job.decoder->info().index_damage);
}

/// Side streams and metadata, and warnings of what the output cannot have.
void choose_side_streams(DecodeJob& job) {
  const DecodeOptions& options = job.options;
  io::WriterOptions& writing = job.writing;
  writing.metadata = job.decoder->info().metadata;
  if (options.film.only_video) {
    writing.metadata.chapters.clear();
    writing.metadata.entries.clear();
  }
  if (!job.no_pictures) warn_of_output(options, job.decoder->info(), job.decoder->output());
  if (io::holds_side_streams(options.output, writing.format)) {
    writing.side_streams = side_streams_for(options.input, job.file.side_streams, options.film, job.range);
    return;
  }
  refuse_film_options(options.output, job.app);
  io::SideStreams lost = job.file.side_streams;
  lost.chapters = lost.chapters || !writing.metadata.chapters.empty();
  lost.tags = lost.tags || !writing.metadata.entries.empty();
  if (!job.no_pictures) warn_of_loss(options.output, lost, options.film);
}

void open_writer(DecodeJob& job) {
  const std::string& output = job.options.output;
  io::WriterOptions& writing = job.writing;
  const VideoInfo& info = job.decoder->output();
  if (output == "-" && writing.format.empty())
    writing.format = writing.pixel_format.empty() ? io::pipe_format(info) : "y4m";
  require(writing.crf < 0 || io::holds_side_streams(output, writing.format), ErrorKind::kBadArgument,
          "--crf is for codecs of FFmpeg; '" + output + "' holds uncompressed samples");
  require(writing.codec_options.empty() || !io::is_plain(output, writing.format), ErrorKind::kBadArgument,
          "--codec-opt is for codecs of FFmpeg; '" + output + "' is written without");
  choose_side_streams(job);
  const bool cuts = job.params.region.width > 0;
  job.picture = cuts ? info_of_region(info, job.params.region) : info;
  job.writer = io::open_writer(output, job.picture, writing);
  if (cuts) job.writer = make_region_writer(job.params.region, info, std::move(job.writer));
  job.times.emplace(info);
}

void write_frames(DecodeJob& job) {
  Decoder& decoder = *job.decoder;
  Progress progress(job.common, "decode", decoder.output().frames);
  const auto write = [&](const Gop& gop) {
    const trace::Span span("write frames");
    job.writer->write_frames(gop);
    job.times->add(gop);
    job.frames += static_cast<std::uint64_t>(gop.frames());
    progress.update(job.frames);
  };
  if (job.sharing == Sharing::kInParts) {
    decode_in_parts(job, progress);
  } else if (job.sharing == Sharing::kInTurns) {
    decode_in_turns(job, write);
  } else {
    // With one thread nothing is decoded meanwhile, so that the samples of one GOP are in memory, not of two.
    const bool alone = job.common.threads == 1 && !job.backend;
    Prefetch gops([&] { return decoder.make_gop(); }, 2,
                  [&](Gop& gop) {
                    const ScopeTimer timer(job.seconds_decoding);
                    return decoder.exchange(gop);
                  },
                  alone);
    while (const Gop* gop = gops.next()) write(*gop);
    job.seconds_waiting = alone ? job.seconds_decoding : gops.seconds_waited();
  }
  progress.finish();
}

void report_times(const DecodeJob& job, double seconds) {
  if (job.sharing == Sharing::kInParts) {
    log::debug("{} {}, each {} what it decoded", job.processes->size(), job.members,
               job.drops_pictures() ? "dropped" : "wrote");
  } else if (job.sharing == Sharing::kInTurns) {
    log::debug("{} {} decoded {} GOPs, one process wrote them", job.processes->size(), job.members,
               fmt::join(job.gathered.gops, " + "));
  } else {
    const double set_up = job.seconds_set_up, waiting = job.seconds_waiting, working = seconds - set_up;
    log::debug("{:.3f} seconds in all", seconds);
    log::debug("seconds in the decoder by stage: {}",
               describe(stages_by_name(job.decoder->stats().decoding), job.seconds_decoding));
    log::debug("{:.3f} to set up, {:.3f} waiting for the decoder, {:.3f} writing; bottleneck: {}", set_up, waiting,
               working - waiting, 2 * waiting > working ? "decoding" : "writing");
  }
}

/// Finishes the output and tells what came of it. Throws BadStream for damage.
void finish(DecodeJob& job) {
  const DecodeOptions& options = job.options;
  CodecStats stats = job.decoder->stats();
  if (job.sharing == Sharing::kInTurns) {
    stats.damaged_gops = job.gathered.damaged_gops;
    stats.damage = job.gathered.damage;
  }
  const bool damaged = stats.damaged_gops > 0 || !stats.damage.empty();
  const std::string& typed = options.part.frames;
  require(job.frames > 0 || damaged, ErrorKind::kBadArgument,
          "'" + options.input + "' holds no frames" + (typed.empty() ? "" : " in --frames " + typed));
  job.writer->finish();
  job.trace->finish();
  const double seconds = job.clock.seconds();
  if (const std::string result = job.writer->result(); !result.empty()) fmt::print("{}\n", result);
  warn_of_remarks(options.output, job.writer->remarks());
  if (!job.no_pictures && !job.writing.constant_rate && !io::holds_times(options.output, job.writing.format))
    job.times->warn(options.output);

  const VideoInfo& info = job.picture;
  log::info("{}, {}x{} {}, {:.1f} frames/s", count_of(job.frames, "frame"), info.width, info.height,
            trivelet::to_string(info.format), static_cast<double>(job.frames) / seconds);
  if (job.range.has_end() && job.params.temporal_reduce == 0 && job.frames < job.range.count() && !damaged)
    log::warn("--frames {}: the stream ends before", typed);
  report_times(job, seconds);
  for (const std::string& line : stats.damage) log::warn("{}", line);
  require(!damaged, ErrorKind::kBadStream,
          fmt::format("'{}': {} damaged; the output has the intact part", options.input,
                      count_of(stats.damaged_gops, "GOP")));
}

int run(const DecodeOptions& given, const Common& common, const Command& app) {
  DecodeJob job{given, app, given, common};
  expect_gops(job.options, job.common);
  WorkerGroup workers("decode", job.options.device, job.common,
                      [&given, &app](Processes& end, const std::string& device, const Common& own) {
                        remove_when_first_dies(end, given.output);
                        help_with_decoding(given, app, end, device, own);
                      });
  if (workers.helped()) return kExitDone;
  job.processes = workers.processes();
  job.members = workers.members();
  job.call = [&](const std::vector<std::uint8_t>& details) { workers.call(job.name(), details); };
  if (volume_in(job.options.input, job.common)) return decode_volume_job(job);
  choose(job);
  job.trace.emplace(job.common);
  job.clock = Stopwatch();
  open_decoder(job);
  open_writer(job);
  share_decoding(job);
  job.seconds_set_up = job.clock.seconds();
  write_frames(job);
  finish(job);
  return kExitDone;
}

/// One file, or many.
int run_all(const DecodeOptions& typed, const Common& common, const Command& app) {
  const auto run_named = [&](const DecodeOptions& one) {
    return naming(one.input, [&] { return run(one, common, app); });
  };
  if (!typed.batch.is_typed()) {
    check_single("decode", typed.output, typed.batch);
    return run_named(typed);
  }
  BatchWork work{.command = "decode"};
  work.takes = is_stream_in_folder;
  work.output_name = [&](const std::string& path, const std::string& name) {
    require_tvl_file(path);
    return batch_output_name(path, name, typed.batch.extension, common);
  };
  work.run = [&](const std::string& input, const std::string& output, const std::string&) {
    DecodeOptions one = typed;
    one.input = input;
    one.output = output;
    // Pictures hold R, G, B in another order than streams.
    if (one.writer.pixel_format.empty() && io::is_picture_name(output)) one.writer.pixel_format = "auto";
    return run_named(one);
  };
  return run_batch(typed.input, typed.output, typed.batch, common, work);
}

}  // namespace

void FrameClock::add(const Gop& gop) {
  if (gop.frames() == 0) return;
  const FrameTime& last = gop.times()[static_cast<std::size_t>(gop.frames()) - 1];
  add(gop.frames(), static_cast<double>(gop.times()[0].pts),
      static_cast<double>(last.pts) + static_cast<double>(last.duration));
}

void FrameClock::add(std::int64_t frames, double begin, double end) {
  if (frames == 0) return;
  if (frames_ == 0) begin_ = begin;
  end_ = end;
  frames_ += frames;
}

void FrameClock::warn(const std::string& output) const {
  if (info_.frame_rate.num <= 0 || info_.time_base.num <= 0) return;
  const double rate = info_.frame_rate.value();
  const double shown = static_cast<double>(frames_) / rate;
  const double lasting = (end_ - begin_) * info_.time_base.value();
  if (std::abs(shown - lasting) > std::max(1.5 / rate, 0.005 * lasting))
    log::warn(
        "'{}' has no frame times: at {:.6g} frames/s it lasts {:.2f} s, the video {:.2f} s; .mkv keeps the times, "
        "--fill-cfr repeats frames",
        output, rate, shown, lasting);
}

/// Most GOPs that a device will have in flight; 0 if that is unknown before reading.
std::uint64_t gops_in_flight(ByteSource& source, const std::string& device, const Limits& limits) {
  if (!source.seekable()) return 0;
  std::uint64_t bytes_read = 0;
  StreamInput in(source, bytes_read);
  StreamLayout layout;
  layout.limits = limits;
  layout.read(in);
  source.seek(0);
  const StreamInfo& info = layout.info;
  require(info.profile != Profile::kPredictive || device.rfind("gpu", 0) != 0, ErrorKind::kUnsupported,
          "--device " + device + ": streams of the predictive profile are decoded on the CPU; leave the option out");
  if (info.profile == Profile::kFast) return kFastGops;
  // Motion keeps the device busy with few GOPs (gpu/BENCHMARKS.md, "With motion").
  constexpr std::size_t kMoving = 7;
  if (info.motion) return std::min(info.gops.size(), kMoving);
  // Work queues for all GOPs that a device can have in flight take 0.25 s to start, which pays from this many GOPs on.
  constexpr std::size_t kMany = 150;
  constexpr std::size_t kSome = 15;
  return info.gops.size() < kMany ? std::min(info.gops.size(), kSome) : info.gops.size();
}

void add_decoding_options(Command& app, DecodingOptions& options) {
  constexpr const char* kPart = "What to decode";
  app.add_option("--reduce", options.reduce, "Halve width and height N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPart);
  app.add_option("--temporal-reduce", options.temporal_reduce, "Halve the frame rate N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPart);
  app.add_option("--frames", options.frames,
                 "Only frame A up to, but not including, frame B; A: and :B leave an end open; also times, such as "
                 "1.5s:00:01:10")
      .type_name("A:B")
      .group(kPart);
  app.add_option("--slices", options.slices,
                 "Volumes: only slice A up to, but not including, slice B of the third axis")
      .type_name("A:B")
      .group(kPart);
  app.add_option(
         "--region", options.region,
         "Only this rectangle of the pictures, in pixels of the full size; of volumes this box, X,Y,Z,W,H,D: its "
         "first voxel and its extent")
      .type_name("X,Y,W,H")
      .group(kPart);
  app.add_option("--max-planes", options.max_planes, "Only the N highest bit planes; 0 = all")
      .range(0, 30)
      .type_name("N")
      .show_default()
      .group(kPart);
  app.add_option("--max-layers", options.max_layers, "Only the first N quality layers; 0 = all")
      .range(0, 16)
      .type_name("N")
      .show_default()
      .group(kPart);
  auto bytes = app.add_option("--max-bytes", options.max_bytes,
                              "Read only about SIZE bytes of the file, the same share of every GOP: 10M, 500k")
                   .type_name("SIZE")
                   .group(kPart);
  app.add_option("--max-bpp", options.max_bpp, "Read only about X bits per decoded pixel")
      .positive()
      .type_name("X")
      .excludes(bytes)
      .group(kPart);
  app.add_flag("--keep-partial", options.keep_partial,
               "Decode the intact part of a damaged stream (slices that are damaged hold 0); the exit code is still 4")
      .group(kPart);
}

DecoderParams part_params(const std::string& input, const DecodingOptions& options, const Common& common) {
  require(options.slices.empty(), ErrorKind::kBadArgument, "'" + input + "' holds a video: --slices is for volumes");
  const FrameRange range = frame_range(options.frames, input);
  DecoderParams params = decoder_params(common);
  params.reduce = options.reduce;
  params.temporal_reduce = options.temporal_reduce;
  params.max_planes = options.max_planes;
  params.max_layers = options.max_layers;
  if (!options.max_bytes.empty()) {
    params.max_bytes = parse_size(options.max_bytes);
    require(params.max_bytes > 0, ErrorKind::kBadArgument, "--max-bytes " + options.max_bytes + ": must be above 0");
  }
  params.max_bits_per_pixel = options.max_bpp;
  params.keep_partial = options.keep_partial;
  params.first_frame = range.first;
  params.end_frame = range.end;
  if (!options.region.empty()) {
    require(input != "-", ErrorKind::kBadArgument,
            "--region " + options.region + ": the size of the pictures in a pipe is not known; use a file");
    const VideoInfo full = probe(*open_stream_file(input).source, params.limits).video;
    params.region = parse_picture_region(options.region, full, options.reduce);
  }
  return params;
}

void refuse_video_parts(const std::string& input, const DecodingOptions& options) {
  require(options.frames.empty() && options.temporal_reduce == 0 && options.max_bytes.empty() && options.max_bpp == 0,
          ErrorKind::kUnsupported,
          "'" + input +
              "' holds a volume: --frames, --temporal-reduce, --max-bytes and --max-bpp are for videos; --max-layers "
              "decodes "
              "a lower quality, --slices and --region a part");
}

Action define_decode(Command& app, Common& common) {
  auto options = std::make_shared<DecodeOptions>();
  constexpr const char* kOutput = "Output";
  app.add_option("IN", options->input, "Stream to decode; - = standard input").required();
  app.add_option(
      "-o,--output,OUT", options->output,
      "Video to write, whose extension gives the format, or pictures (img%04d.png); - = standard output (Y4M, or "
      "Matroska if Y4M has no name for the samples), null = nothing, md5 = print the MD5 of the samples, framemd5 = "
      "of every frame");
  add_batch_options(app, options->batch,
                    "Extension of the outputs [mkv; volumes get the names and formats of the encoded files]");
  add_decoding_options(app, options->part);
  app.add_option("--format", options->writer.format,
                 "Output format instead of the extension: y4m, raw, null, md5, framemd5, matroska, ...")
      .type_name("F")
      .group(kOutput);
  app.add_option("--pix-fmt", options->writer.pixel_format,
                 "Convert to this pixel format (rgb24, yuv420p, gray, yuva444p10 ...); auto = only if the output "
                 "cannot hold the samples, to the format that loses least")
      .type_name("FORMAT")
      .group(kOutput);
  app.add_flag("--fill-cfr", options->writer.constant_rate,
               "Repeat frames to a constant frame rate, for formats without frame times (Y4M, pictures)")
      .group(kOutput);
  app.add_option("--codec,--vcodec", options->writer.video_codec,
                 "Video codec for formats written through FFmpeg [ffv1 for .mkv .avi .nut, libx264 for .mp4 .mov]")
      .type_name("C")
      .group(kOutput);
  app.add_option("--codec-opt", options->codec_options,
                 "An option of the video codec, in ffmpeg's words, any number of times: preset=slow, profile=hq")
      .type_name("NAME=VALUE")
      .repeatable()
      .check([](const std::string& text) {
        const std::size_t at = text.find('=');
        return at == 0 || at == std::string::npos ? "--codec-opt " + text + ": write NAME=VALUE" : std::string();
      })
      .group(kOutput);
  app.add_option("--crf", options->writer.crf, "Constant rate factor of the video codec, 0 = lossless [18 for libx264]")
      .range(0, 63)
      .type_name("N")
      .group(kOutput);
  add_film_options(app, options->film);
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_device_option(app, options->device, true);
  add_work_options(app, common);
  add_trace_option(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  app.add_footer("Output formats: " + io::supported_writers() + ".");
  return [options, &common, app] { return run_all(*options, common, app); };
}

}  // namespace trivelet::cli
