// Decodes a stream with the other processes of mpirun, or with several GPUs.

#include <spdlog/fmt/fmt.h>

#include <future>
#include <utility>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cluster/parts.h"
#include "apps/video/decode_job.h"
#include "apps/volume/volume.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

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
PartWork write_part(const DecodeOptions& options, const DecoderParams& all, std::shared_ptr<const Backend> backend,
                    int part, int parts, const io::SharedOutput& output) {
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
    FrameClock times(info);
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

std::string job_of(const DecodeOptions& o) {
  return fmt::format("{}\n{}\n{} {} {} {} {} {} {} {} {} {}", o.input, o.output, o.part.frames, o.part.reduce,
                     o.part.temporal_reduce, o.part.max_planes, o.part.max_layers, o.part.max_bytes, o.part.max_bpp,
                     o.part.keep_partial, o.part.slices, o.part.region);
}

std::vector<std::uint8_t> pack_call(Sharing sharing, const io::SharedOutput& output) {
  ByteWriter m;
  m.fixed(static_cast<std::uint8_t>(sharing));
  const std::vector<std::uint8_t> place = io::serialise(output);
  m.bytes.insert(m.bytes.end(), place.begin(), place.end());
  return std::move(m.bytes);
}

VolumeDecoding volume_decoding(const DecodingOptions& part) {
  return {part.reduce, part.slices, part.region, part.max_layers, part.max_planes, part.keep_partial};
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

/// Whether several can decode it: they find its GOPs by the index.
bool can_share(const std::string& input, const Limits& limits) {
  if (input == "-") return false;
  const StreamFile file = open_stream_file(input);
  return file.source->seekable() && probe(*file.source, limits).has_index;
}

}  // namespace

std::string DecodeJob::name() const { return job_of(given); }

std::size_t DecodeJob::gpu_memory() const { return app.typed("--max-memory") ? limits(common).memory : 0; }

void share_decoding(DecodeJob& job) {
  if (!job.processes) return;
  if (!can_share(job.options.input, job.params.limits)) {
    log::info("one process decodes '{}', the others are idle: without an index in a file they cannot find its GOPs",
              job.options.input);
    return;
  }
  job.sharing = Sharing::kInTurns;
  // Frames that may be missing have no places.
  if (!job.options.part.keep_partial && job.params.region.width == 0) {
    job.shared = io::shared_output(*job.writer);
    if (!job.shared.path.empty() || job.drops_pictures()) job.sharing = Sharing::kInParts;
  }
  job.call(pack_call(job.sharing, job.shared));
}

void decode_in_parts(DecodeJob& job, Progress& progress) {
  const PartWork own = write_part(job.options, job.params, job.backend, 0, job.processes->size(), job.shared);
  for (const std::vector<std::uint8_t>& found :
       do_parts(*job.processes, own, [&](std::uint64_t frames) { progress.update(frames); })) {
    ByteReader in(found.data(), found.size(), "output of a process");
    std::uint64_t frames = 0;
    double begin = 0, end = 0;
    in.varint(frames);
    if (frames > 0) {
      in.real(begin);
      in.real(end);
    }
    job.times->add(static_cast<std::int64_t>(frames), begin, end);
    job.frames += frames;
  }
}

void decode_in_turns(DecodeJob& job, const std::function<void(const Gop&)>& write) {
  Gathering gathering(*job.processes, decode_runs(job.options.input, job.params, job.backend), *job.decoder);
  while (const std::shared_ptr<const Gop> gop = gathering.next()) write(*gop);
  job.gathered = gathering.found();
}

int decode_volume_job(DecodeJob& job) {
  const DecodeOptions& options = job.options;
  const io::WriterOptions& writer = options.writer;
  refuse_video_parts(options.input, options.part);
  refuse_film_options(options.output, job.app);
  require(writer.format.empty() && writer.video_codec.empty() && options.codec_options.empty() &&
              !job.app.typed("--crf") && !job.app.typed("--pix-fmt") && !job.app.typed("--fill-cfr"),
          ErrorKind::kUnsupported,
          "'" + options.input +
              "' holds a volume: --format, --pix-fmt, --fill-cfr, --codec, --codec-opt and --crf are for videos");
  require(options.output != "framemd5", ErrorKind::kUnsupported,
          "'" + options.input + "' holds a volume, which has no frames; use md5");
  const VolumeWorkers workers{job.processes, [&] { job.call(pack_call(Sharing::kVolume, {})); }};
  return decode_volume_to(options.input, options.output, volume_decoding(options.part), job.common,
                          backend_of_volume(job.given.device, options.device, options.input, job.app, job.common),
                          workers);
}

void help_with_decoding(const DecodeOptions& options, const Command& app, Processes& processes,
                        const std::string& device, const Common& common) {
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

}  // namespace trivelet::cli
