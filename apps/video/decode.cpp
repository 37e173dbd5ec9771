// trivelet decode: a .tvl stream, or a part of it, back into video. A thread decodes the next GOP while this one is
// written.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cli/trace_file.h"
#include "apps/cluster/gather.h"
#include "apps/cluster/parts.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/threads/stopwatch.h"
#include "codec/threads/trace.h"
#include "io/video/part_writer.h"
#include "trivelet/cuda.h"

namespace trivelet::cli {

namespace {

struct Options {
  std::string device = "auto";
  std::string input;
  std::string output;
  DecodingOptions part;
  FilmOptions film;
  io::WriterOptions writer;
};

/// Most GOPs that a device will have in flight; 0 if that is unknown before reading.
std::uint64_t gops_in_flight(ByteSource& source, const std::string& device, const Limits& limits) {
  if (!source.seekable()) return 0;
  const StreamInfo info = probe(source, limits);
  source.seek(0);
  require(info.profile != Profile::kPredictive || device.rfind("gpu", 0) != 0, ErrorKind::kUnsupported,
          "--device " + device + ": streams of the predictive profile are decoded on the CPU; leave the option out");
  if (info.profile == Profile::kFast) return kFastGops;
  // Work queues for all GOPs that a device can have in flight take 0.25 s to start, which pays from this many GOPs on.
  constexpr std::size_t kMany = 150;
  constexpr std::size_t kSome = 15;
  return info.gops.size() < kMany ? std::min(info.gops.size(), kSome) : info.gops.size();
}

/// How long the frames last by their own times, and by their number.
class Clock {
 public:
  explicit Clock(const VideoInfo& info) : info_(info) {}
  void add(const Gop& gop) {
    if (gop.frames() == 0) return;
    const FrameTime& last = gop.times()[static_cast<std::size_t>(gop.frames()) - 1];
    add(gop.frames(), static_cast<double>(gop.times()[0].pts),
        static_cast<double>(last.pts) + static_cast<double>(last.duration));
  }
  void add(std::int64_t frames, double begin, double end) {
    if (frames == 0) return;
    if (frames_ == 0) begin_ = begin;
    end_ = end;
    frames_ += frames;
  }
  std::int64_t frames() const { return frames_; }
  double begin() const { return begin_; }
  double end() const { return end_; }
  /// Warns if `output` shows the frames in equal distances and that is not when they were.
  void warn(const std::string& output) const {
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

 private:
  const VideoInfo& info_;
  double begin_ = 0;  ///< in units of the time base
  double end_ = 0;
  std::int64_t frames_ = 0;
};

/// --pix-fmt of an output. FFmpeg's names that say a range, too, mean the same samples.
std::string output_pixel_format(const std::string& typed) {
  if (typed.empty() || typed == "auto") return typed;
  const std::string name = typed == "rgb" ? "rgb24" : typed.starts_with("yuvj") ? "yuv" + typed.substr(4) : typed;
  (void)io::samples_of(name);  // which refuses unknown names
  return name;
}

/// Warns of properties of the stream that the output cannot have.
void warn_of_output(const Options& options, const StreamInfo& stream, const VideoInfo& info) {
  const io::WriterOptions& writer = options.writer;
  if (info.rotation != 0 && !io::holds_rotation(options.output, writer.format))
    log::warn("'{}' loses the rotation by {} degrees for display: .mp4 and .mov can store it, this format cannot",
              options.output, info.rotation);
  const std::string kind =
      writer.format.empty() ? std::filesystem::path(options.output).extension().string() : "." + writer.format;
  if (stream.lossless && writer.video_codec.empty() && writer.crf < 0 && (kind == ".mp4" || kind == ".mov"))
    log::warn("the stream is lossless, but '{}' is not: libx264 codes it with --crf 18; .mkv (ffv1) is exact",
              options.output);
}

// ------------------------------------------------------------------------------------------------ several processes

/// How the processes share the work.
enum class Sharing : std::uint8_t { kAlone, kInTurns, kInParts, kVolume };

/// A decoder of a file, with the objects that it uses.
struct OpenDecoder {
  OpenDecoder(const std::string& input, const DecoderParams& params, std::shared_ptr<const Backend> b)
      : file(open_stream_file(input)), backend(std::move(b)), decoder(*file.source, params, backend.get()) {}
  StreamFile file;
  std::shared_ptr<const Backend> backend;
  Decoder decoder;
};

/// Runs of a stream, which are decoded in turns.
RunDecoding decode_runs(const std::string& input, const DecoderParams& all, std::shared_ptr<const Backend> backend) {
  RunDecoding runs;
  const auto file = std::make_shared<StreamFile>(open_stream_file(input));
  runs.borders = run_borders(probe(*file->source, all.limits).gops, all.first_frame, all.end_frame);
  runs.make = [file, all, backend](std::uint64_t turn, std::uint64_t turns) {
    DecoderParams params = all;
    params.turn = turn;
    params.turns = turns;
    file->source->seek(0);
    return std::make_unique<Decoder>(*file->source, params, backend.get());
  };
  return runs;
}

/// The frames that one process decodes and writes at their place in the output; without a path they are not written.
PartWork write_part(const Options& options, const DecoderParams& all, std::shared_ptr<const Backend> backend, int part,
                    int parts, const io::SharedOutput& output) {
  const bool nowhere = output.path.empty();
  return [=](Pace& pace) {
    std::vector<GopInfo> gops;
    {
      const StreamFile file = open_stream_file(options.input);
      gops = probe(*file.source, all.limits).gops;
    }
    const std::vector<std::uint64_t> borders = part_borders(gops, all.first_frame, all.end_frame, parts);
    DecoderParams params = all;
    params.first_frame = borders[static_cast<std::size_t>(part)];
    params.end_frame = borders[static_cast<std::size_t>(part) + 1];
    ByteWriter found;
    if (params.first_frame >= params.end_frame) {
      if (all.temporal_reduce > 0 && !nowhere) pace.sum_before(0);
      found.varint(0);
      return std::move(found.bytes);
    }
    OpenDecoder mine(options.input, params, backend);
    const VideoInfo& info = mine.decoder.output();
    // The number of frames at a lower frame rate is known only to the process that decodes the part.
    const std::uint64_t first = nowhere                   ? 0
                                : all.temporal_reduce > 0 ? pace.sum_before(info.frames)
                                                          : params.first_frame - all.first_frame;
    const std::unique_ptr<io::FrameWriter> writer =
        nowhere ? io::open_writer("null", info, {}) : io::open_part_writer(output, info, first);
    Clock times(info);
    Prefetch decoded([&] { return mine.decoder.make_gop(); }, 2, [&](Gop& gop) { return mine.decoder.exchange(gop); });
    while (const Gop* gop = decoded.next()) {
      writer->write_frames(*gop);
      times.add(*gop);
      pace.done(static_cast<std::uint64_t>(gop->frames()));
    }
    require(static_cast<std::uint64_t>(times.frames()) == info.frames, ErrorKind::kBadStream,
            fmt::format("'{}': {} of {} in frames {}:{}", options.input, times.frames(), count_of(info.frames, "frame"),
                        params.first_frame, params.end_frame));
    writer->finish();
    found.varint(static_cast<std::uint64_t>(times.frames()));
    found.real(times.begin());
    found.real(times.end());
    return std::move(found.bytes);
  };
}

/// All parts of a file that is open in `output`. Returns how many frames there were.
std::uint64_t write_parts(Processes& processes, const PartWork& own, Clock& times, Progress& progress) {
  std::uint64_t all = 0;
  for (const std::vector<std::uint8_t>& found :
       do_parts(processes, own, [&](std::uint64_t frames) { progress.update(frames); })) {
    ByteReader in(found.data(), found.size(), "output of a process");
    std::uint64_t frames = 0;
    double begin = 0, end = 0;
    in.varint(frames);
    if (frames > 0) {
      in.real(begin);
      in.real(end);
    }
    times.add(static_cast<std::int64_t>(frames), begin, end);
    all += frames;
  }
  return all;
}

std::string job_of(const Options& o) {
  return fmt::format("{}\n{}\n{} {} {} {} {} {} {} {} {} {}", o.input, o.output, o.part.frames, o.part.reduce,
                     o.part.temporal_reduce, o.part.max_planes, o.part.max_layers, o.part.max_bytes, o.part.max_bpp,
                     o.part.keep_partial, o.part.slices, o.part.region);
}

VolumeDecoding volume_decoding(const DecodingOptions& part) {
  return {part.reduce, part.slices, part.region, part.max_layers, part.max_planes};
}

/// The decoder of one process. `given`: --device as typed; `auto` may use the CPU although `device` is this process's
/// GPU.
std::shared_ptr<const Backend> backend_of_volume(const std::string& given, const std::string& device,
                                                 const std::string& input, const Command& app, const Common& common) {
  const std::size_t gpu_memory = app.typed("--max-memory") ? limits(common).memory : 0;
  const bool predictive =
      given == "auto" && probe(*open_stream_file(input).source, limits(common)).profile == Profile::kPredictive;
  return volume_backend(predictive ? given : device, gpu_memory, input, common);
}

std::vector<std::uint8_t> pack_call(Sharing sharing, const io::SharedOutput& output) {
  ByteWriter m;
  m.fixed(static_cast<std::uint8_t>(sharing));
  const std::vector<std::uint8_t> place = io::serialise(output);
  m.bytes.insert(m.bytes.end(), place.begin(), place.end());
  return std::move(m.bytes);
}

/// In all processes but the first.
void help_decode(Processes& processes, const Options& options, const Common& common, const Command& app,
                 const std::string& device) {
  // A GPU starts while the first process looks at the input.
  auto starting = std::async(device.rfind("gpu", 0) == 0 ? std::launch::async : std::launch::deferred, [&] {
    const Limits most = limits(common);
    std::uint64_t gops = 0;
    if (device != "cpu" && options.input != "-")
      gops = gops_in_flight(*open_stream_file(options.input).source, device, most);
    return choose_backend(device, app.typed("--max-memory") ? most.memory : 0, gops);
  });
  const std::optional<CalledJob> call = wait_for_call(processes);
  if (!call) return;
  const std::uint8_t sharing = call->details.at(0);
  const io::SharedOutput output = io::parse_shared_output(call->details.data() + 1, call->details.size() - 1);
  std::shared_ptr<const Backend> backend;
  const auto prepare = [&] {
    call->check(job_of(options));
    backend = starting.get();
    return part_params(options.input, options.part, common);
  };
  if (static_cast<Sharing>(sharing) == Sharing::kInParts)
    do_part(processes, [&](Pace& pace) {
      const DecoderParams params = prepare();
      return write_part(options, params, backend, processes.rank(), processes.size(), output)(pace);
    });
  else if (static_cast<Sharing>(sharing) == Sharing::kVolume)
    help_decode_volume(processes, options.input, volume_decoding(options.part), common, [&] {
      call->check(job_of(options));
      return backend_of_volume(options.device, device, options.input, app, common);
    });
  else
    decode_for_others(processes, [&] {
      const DecoderParams params = prepare();
      return decode_runs(options.input, params, backend);
    });
  wait_for_farewell(processes);
}

/// Whether several can decode it: they find its GOPs by the index.
bool can_share(const std::string& input, const Limits& limits) {
  if (input == "-") return false;
  const StreamFile file = open_stream_file(input);
  return file.source->seekable() && probe(*file.source, limits).has_index;
}

/// Must be called before the first use of GPUs, because they are started for the expected number of GOPs.
void expect_gops(const Options& options, const Common& common) try {
  if (options.device == "cpu" || !std::filesystem::is_regular_file(options.input)) return;
  const std::uint64_t gops = gops_in_flight(*open_stream_file(options.input).source, "cpu", limits(common));
  if (gops > 0) gpu::expect_gops(static_cast<int>(std::min<std::uint64_t>(gops, 1000)));
} catch (const Error&) {  // the reader of the stream reports the error
}

int run(const Options& given, const Common& given_common, const Command& app) {
  Options options = given;
  Common common = given_common;
  expect_gops(options, common);
  WorkerGroup workers("decode", options.device, common,
                      [&given, &app](Processes& end, const std::string& device, const Common& own) {
                        remove_when_first_dies(end, given.output);
                        help_decode(end, given, own, app, device);
                      });
  if (workers.helped()) return kExitDone;
  Processes* const processes = workers.processes();
  const DecodingOptions& part = options.part;
  if (volume_in(options.input, common)) {
    refuse_video_parts(options.input, part);
    refuse_film_options(options.output, app);
    require(
        options.writer.format.empty() && options.writer.video_codec.empty() && !app.typed("--crf") &&
            !app.typed("--pix-fmt") && !app.typed("--fill-cfr"),
        ErrorKind::kUnsupported,
        "'" + options.input + "' holds a volume: --format, --pix-fmt, --fill-cfr, --codec and --crf are for videos");
    const VolumeWorkers volume_workers{processes,
                                       [&] { workers.call(job_of(options), pack_call(Sharing::kVolume, {})); }};
    return decode_volume_to(options.input, options.output, volume_decoding(part), common,
                            backend_of_volume(given.device, options.device, options.input, app, common),
                            volume_workers);
  }
  const DecoderParams params = part_params(options.input, part, common);
  const std::string& kind = options.writer.format.empty() ? options.output : options.writer.format;
  const bool is_text = kind == "md5" || kind == "null";
  check_output(options.input, options.output, !is_text);
  const FrameRange range{params.first_frame, params.end_frame};
  io::WriterOptions writing = options.writer;
  writing.overwrite = common.overwrite;
  writing.pixel_format = output_pixel_format(writing.pixel_format);
  writing.threads = common.threads;

  TraceFile trace(common);
  const Stopwatch clock;
  const StreamFile file = open_stream_file(options.input);
  ByteSource& source = *file.source;
  const std::shared_ptr<const Backend> backend =
      choose_backend(options.device, app.typed("--max-memory") ? params.limits.memory : 0,
                     options.device == "cpu" ? 0 : gops_in_flight(source, options.device, params.limits));
  Sharing sharing = processes && can_share(options.input, params.limits) ? Sharing::kInTurns : Sharing::kAlone;
  if (processes && sharing == Sharing::kAlone)
    log::info("one process decodes '{}', the others are idle: without an index in a file they cannot find its GOPs",
              options.input);
  Decoder decoder(source, params, backend.get());
  warn_of_lost_index(options.input, decoder.info().index_damage);
  const VideoInfo& info = decoder.output();
  if (options.output == "-" && writing.format.empty())
    writing.format = writing.pixel_format.empty() ? io::pipe_format(info) : "y4m";
  require(writing.crf < 0 || io::holds_side_streams(options.output, writing.format), ErrorKind::kBadArgument,
          "--crf is for codecs of FFmpeg; '" + options.output + "' holds uncompressed samples");
  writing.metadata = decoder.info().metadata;
  if (options.film.only_video) {
    writing.metadata.chapters.clear();
    writing.metadata.entries.clear();
  }
  if (!is_text) warn_of_output(options, decoder.info(), info);
  if (io::holds_side_streams(options.output, writing.format)) {
    writing.side_streams = side_streams_for(options.input, file.side_streams, options.film, range);
  } else {
    refuse_film_options(options.output, app);
    io::SideStreams lost = file.side_streams;
    lost.chapters = lost.chapters || !writing.metadata.chapters.empty();
    lost.tags = lost.tags || !writing.metadata.entries.empty();
    if (!is_text) warn_of_loss(options.output, lost, options.film);
  }
  const auto writer = io::open_writer(options.output, info, writing);
  // Frames that may be missing have no places.
  const io::SharedOutput shared =
      sharing == Sharing::kInTurns && !part.keep_partial ? io::shared_output(*writer) : io::SharedOutput{};
  const bool nowhere = sharing == Sharing::kInTurns && !part.keep_partial &&
                       (writing.format.empty() ? options.output : writing.format) == "null";
  if (!shared.path.empty() || nowhere) sharing = Sharing::kInParts;
  if (sharing != Sharing::kAlone) workers.call(job_of(options), pack_call(sharing, shared));
  std::uint64_t frames = 0;
  Clock times(info);
  Gathered gathered;
  const double begun = clock.seconds();
  double waited = 0;
  double decoding = 0;
  {
    Progress progress(common, "decode", info.frames);
    const auto write = [&](const Gop& gop) {
      const trace::Span span("write frames");
      writer->write_frames(gop);
      times.add(gop);
      frames += static_cast<std::uint64_t>(gop.frames());
      progress.update(frames);
    };
    if (sharing == Sharing::kInParts) {
      frames =
          write_parts(*processes, write_part(options, params, backend, 0, processes->size(), shared), times, progress);
    } else if (sharing == Sharing::kInTurns) {
      Gathering gathering(*processes, decode_runs(options.input, params, backend), decoder);
      while (const std::shared_ptr<const Gop> gop = gathering.next()) write(*gop);
      gathered = gathering.found();
    } else {
      Prefetch gops([&] { return decoder.make_gop(); }, 2,
                    [&](Gop& gop) {
                      const ScopeTimer timer(decoding);
                      return decoder.exchange(gop);
                    });
      while (const Gop* gop = gops.next()) write(*gop);
      waited = gops.seconds_waited();
    }
    progress.finish();
  }
  CodecStats stats = decoder.stats();
  if (sharing == Sharing::kInTurns) {
    stats.damaged_gops = gathered.damaged_gops;
    stats.damage = gathered.damage;
  }
  const bool damaged = stats.damaged_gops > 0 || !stats.damage.empty();
  require(frames > 0 || damaged, ErrorKind::kBadArgument,
          "'" + options.input + "' holds no frames" + (part.frames.empty() ? "" : " in --frames " + part.frames));
  writer->finish();
  trace.finish();
  const double seconds = clock.seconds();
  if (const std::string result = writer->result(); !result.empty()) fmt::print("{}\n", result);
  warn_of_remarks(options.output, writer->remarks());
  if (!is_text && !writing.constant_rate && !io::holds_times(options.output, writing.format))
    times.warn(options.output);

  log::info("{}, {}x{} {}, {:.1f} frames/s", count_of(frames, "frame"), info.width, info.height,
            trivelet::to_string(info.format), static_cast<double>(frames) / seconds);
  if (range.has_end() && params.temporal_reduce == 0 && frames < range.count() && !damaged)
    log::warn("--frames {}: the stream ends before", part.frames);
  if (sharing == Sharing::kInParts)
    log::debug("{} {}, each {} what it decoded", processes->size(), workers.members(), nowhere ? "dropped" : "wrote");
  else if (sharing == Sharing::kInTurns)
    log::debug("{} {} decoded {} GOPs, one process wrote them", processes->size(), workers.members(),
               fmt::join(gathered.gops, " + "));
  else
    log::debug("{:.3f} seconds in all", seconds);
  if (sharing == Sharing::kAlone) {
    log::debug("seconds in the decoder by stage: {}", describe(stages_by_name(stats.decoding), decoding));
    log::debug("{:.3f} to set up, {:.3f} waiting for the decoder, {:.3f} writing; bottleneck: {}", begun, waited,
               seconds - begun - waited, 2 * waited > seconds - begun ? "decoding" : "writing");
  }
  for (const std::string& line : stats.damage) log::warn("{}", line);
  require(!damaged, ErrorKind::kBadStream,
          fmt::format("'{}': {} damaged; the output has the intact part", options.input,
                      count_of(stats.damaged_gops, "GOP")));
  return kExitDone;
}

}  // namespace

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
  app.add_option("--region", options.region,
                 "Volumes: only this box: its first voxel and its extent, in voxels of the full size")
      .type_name("X,Y,Z,W,H,D")
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
               "Decode the intact part of a damaged stream; the exit code is still 4")
      .group(kPart);
}

DecoderParams part_params(const std::string& input, const DecodingOptions& options, const Common& common) {
  require(options.slices.empty() && options.region.empty(), ErrorKind::kBadArgument,
          "'" + input + "' holds a video: --slices and --region are for volumes");
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
  return params;
}

void refuse_video_parts(const std::string& input, const DecodingOptions& options) {
  require(
      options.frames.empty() && options.temporal_reduce == 0 && !options.keep_partial && options.max_bytes.empty() &&
          options.max_bpp == 0,
      ErrorKind::kUnsupported,
      "'" + input +
          "' holds a volume: --frames, --temporal-reduce, --max-bytes, --max-bpp and --keep-partial are for videos; "
          "--max-layers decodes a lower quality");
}

Action define_decode(Command& app, Common& common) {
  auto options = std::make_shared<Options>();
  constexpr const char* kOutput = "Output";
  app.add_option("IN", options->input, "Stream to decode; - = standard input").required();
  app.add_option(
         "OUT", options->output,
         "Video to write, whose extension gives the format, or pictures (img%04d.png); - = standard output (Y4M, or "
         "Matroska if Y4M has no name for the samples), null = nothing, md5 = print the MD5 of the samples")
      .required();
  add_decoding_options(app, options->part);
  app.add_option("--format", options->writer.format,
                 "Output format instead of the extension: y4m, raw, null, md5, matroska, ...")
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
  return [options, &common, app] { return naming(options->input, [&] { return run(*options, common, app); }); };
}

}  // namespace trivelet::cli
