// Encodes a video with the other processes of mpirun, or with several GPUs.

#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <future>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cluster/encode_together.h"
#include "apps/video/encode_choice.h"
#include "apps/video/encode_job.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

/// Lets all processes decode a film, if it has an index of key frames.
void keep_frames(WorkerSetup& setup, Processes& processes, const EncodeOptions& options, const Common& common) {
  std::unique_ptr<io::FrameReader> reader = io::open_reader(options.input, reader_options(options.reading, common));
  require(reader->stretches() > 1, ErrorKind::kBadStream,
          "'" + options.input + "' has different key frames in each process");
  // More frames than are read ahead to find the end of a GOP, then as many again that other processes decode meanwhile.
  setup.kept = std::make_unique<KeptFrames>(processes, name_of_input(options.input), std::move(reader),
                                            4 * static_cast<std::size_t>(setup.encoder->header().gop_frames));
  setup.read = [&kept = *setup.kept](Gop& gop, std::uint64_t first) { kept.read(gop, first); };
}

/// How the processes of `mpirun` get frames. Threads of one process hand them over in memory.
Reading how_to_read(const EncodeOptions& options, const Common& common, const Processes& processes,
                    const VideoInput& input) {
  if (options.input == "-") return Reading::kSent;
  if (input.can_look()) return Reading::kDirect;
  if (input.is_tvl() || input.on_device() || options.resume || !options.frames.empty() || processes.size() < 2 ||
      processes.shares_memory((processes.rank() + 1) % processes.size()))
    return Reading::kSent;
  return io::open_reader(options.input, reader_options(options.reading, common))->stretches() > 1 ? Reading::kKept
                                                                                                  : Reading::kSent;
}

/// The setup of all processes but the first, whose results are in the header.
WorkerSetup worker_setup(const EncodeOptions& options, const Common& common, const Command& app,
                         const StreamHeader& header, Reading reading, Processes& processes,
                         std::shared_future<std::shared_ptr<const Backend>> starting) {
  EncoderParams params = typed_params(options, common, app);
  if (header.profile == Profile::kPredictive && params.profile != header.profile)
    choose_prediction(app, options, params);
  if (options.joinable) make_joinable(app, options, std::nullopt, params);
  params.temporal = header.temporal;
  params.spatial = header.spatial;
  params.temporal_levels = header.temporal_levels;
  params.levels_by_gop = header.levels_by_gop;
  if (!header.motion) params.motion = Motion::kOff;
  if (!header.predicted_keys) params.key_prediction = KeyPrediction::kOff;
  params.spatial_levels = header.spatial_levels;
  params.gop_frames = header.gop_frames;
  params.moved_frames = header.moved;
  params.labels = header.labels;
  WorkerSetup setup;
  if (params.profile != Profile::kPredictive) setup.backend = starting.get();
  setup.encoder = std::make_unique<PartEncoder>(header.video, params, setup.backend.get());
  if (reading == Reading::kDirect)
    setup.read = read_from(std::make_shared<VideoInput>(options.input, reader_options(options.reading, common), common,
                                                        frame_range(options.frames, options.input)));
  if (reading == Reading::kKept) keep_frames(setup, processes, options, common);
  return setup;
}

/// Identifies a run that another one may resume: its output and its input.
std::vector<std::uint8_t> identity_of(const EncodeOptions& options, const std::vector<std::uint8_t>& head) {
  ByteWriter out;
  out.text(options.frames, kMaxTextBytes);
  out.text(options.input, kMaxTextBytes);
  out.text(options.reading.stream, kMaxTextBytes);
  std::error_code none;
  if (std::filesystem::is_regular_file(options.input, none)) {
    out.varint(std::filesystem::file_size(options.input));
    out.fixed(static_cast<std::int64_t>(std::filesystem::last_write_time(options.input).time_since_epoch().count()));
  }
  out.bytes.insert(out.bytes.end(), head.begin(), head.end());
  return std::move(out.bytes);
}

/// The setup of the first process, and the source of all GOPs.
void take_part(EncodeJob& job, WorkerSetup& own, Distribution& distribution) {
  own.backend = job.backend;
  own.encoder = std::make_unique<PartEncoder>(job.video, job.params, job.backend.get());
  job.check_pin(own.encoder->header());
  distribution.reading = how_to_read(job.options, job.common, *job.processes, *job.input);
  if (distribution.reading == Reading::kKept) {
    keep_frames(own, *job.processes, job.options, job.common);
    distribution.kept = own.kept.get();
    job.input->leave_remarks_to_others();
  }
  if (distribution.reading == Reading::kDirect)
    own.read = read_from(std::make_shared<VideoInput>(
        job.options.input, reader_options(job.options.reading, job.common), job.common, job.range));
  if (!job.options.resume) return;
  job.journal = std::make_unique<EncodeJournal>(job.options.output + ".resume");
  job.journal->begin(identity_of(job.options, own.encoder->head()));
  distribution.journal = job.journal.get();
}

void log_work(const EncodeJob& job, const WorkerSetup& own, const Distribution& distribution, const EncodeTotals& all) {
  if (all.coded.size() > 1)
    log::debug("{} {} coded {} GOPs", job.processes->size(), job.members, fmt::join(all.coded, " + "));
  log::debug("{} {}; {}, {}; the first one took {:.3f} CPU s to find the ends of GOPs, {:.3f} s to write",
             job.processes->size(), job.members,
             distribution.reading == Reading::kDirect ? "each read its own frames"
             : own.kept
                 ? fmt::format("each frame was decoded once, {} of {}", fmt::join(own.kept->end(), " + "), all.frames)
                 : fmt::format("one read {} frames and sent them", all.frames),
             all.positioned > 0
                 ? fmt::format("{} were written by the process that coded them", count_of(all.positioned, "GOP"))
                 : "one wrote all",
             all.finding, all.writing);
}

}  // namespace

void encode_with_others(EncodeJob& job) {
  WorkerSetup own;
  Progress progress(job.common, "encode", job.input->info().frames);
  Distribution distribution{.input = *job.input,
                            .plain_gops = job.plain_gops(),
                            .threads = job.common.threads,
                            .written = [&progress](std::uint64_t frames) { progress.update(frames); }};
  take_part(job, own, distribution);
  // A journal gets all that is coded; one process alone writes as it comes.
  const bool all_write = !job.journal && job.processes->size() > 1 && job.sink->file() != nullptr;
  const io::SharedOutput shared = all_write ? io::shared_file(*job.sink->file(), false) : io::SharedOutput{};
  if (!shared.path.empty()) {
    own.output = io::SharedFile::open(shared);
    distribution.skip = [&job](std::uint64_t bytes) { job.stream->skip(bytes); };
  }
  if (job.call) job.call(pack_call(own.encoder->header(), distribution.reading, shared));
  if (own.kept) own.kept->start();
  const EncodeTotals all = encode_together(*job.processes, own, distribution, *job.stream);
  job.coded = {all.frames, all.bytes};
  if (all.taken > 0) log::info("{} of '{}' were not coded again", count_of(all.taken, "GOP"), job.journal->path());
  progress.finish();
  log_work(job, own, distribution, all);
}

void help_with_encoding(const EncodeOptions& given, const Command& app, const std::string& name, Processes& processes,
                        const std::string& device, const Common& common) {
  remove_when_first_dies(processes, given.output);
  EncodeOptions mine = given;
  mine.device = device;
  // A GPU starts while the first process looks at the input.
  const bool wavelet = given.transform != "prediction" && !may_predict(app, given);
  const auto policy = wavelet && device.rfind("gpu", 0) == 0 ? std::launch::async : std::launch::deferred;
  const std::shared_future starting = std::async(policy, [&] {
                                        const std::size_t gpu_memory =
                                            mine.gpu_memory.empty() ? 0 : parse_size(mine.gpu_memory);
                                        return choose_backend(mine.device, gpu_memory, kFastGops);
                                      }).share();
  help_encode(processes, name, [&](const StreamHeader& header, Reading reading) {
    return worker_setup(mine, common, app, header, reading, processes, starting);
  });
}

}  // namespace trivelet::cli
