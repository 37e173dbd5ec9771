// trivelet encode: any video into a .tvl stream. A thread reads the next GOP while this one is encoded.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <future>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cli/trace_file.h"
#include "apps/cluster/crew.h"
#include "apps/cluster/encode_together.h"
#include "apps/video/encode_options.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/encode.h"
#include "codec/base/bytes.h"
#include "codec/base/container.h"
#include "codec/edit/join.h"
#include "codec/encoder/encoder_params.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/trace.h"
#include "trivelet/cuda.h"
#include "trivelet/device_pictures.h"
#include "trivelet/scene_cuts.h"
#include "trivelet/structure_search.h"

namespace trivelet::cli {

namespace {

/// Keeps the first bytes of a stream, to write its header again: containers may promise another number of frames than
/// they deliver, and a stream that promises more than it has does not verify.
class HeadSink final : public ByteSink {
 public:
  /// `file`: where the header can be written again; null if it cannot.
  HeadSink(ByteSink& sink, FileSink* file) : sink_(sink), file_(file) {}
  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::uint8_t*>(data);
    head_.insert(head_.end(), p, p + std::min(size, kMost - std::min(kMost, head_.size())));
    sink_.write(data, size);
  }
  /// Leaves out what somebody else writes there, into a file.
  void skip(std::uint64_t bytes) { file_->seek(file_->position() + bytes); }
  /// What was written first.
  StreamHeader header() const {
    Box box;
    require(head_.size() >= kAt && parse_box_header(head_.data() + sizeof kSignature, box) &&
                box.length <= head_.size() - kAt,
            ErrorKind::kInternal, "the encoder wrote no header");
    return parse_stream_header(head_.data() + kAt, static_cast<std::size_t>(box.length));
  }
  void set_frames(std::uint64_t frames) {
    if (file_ == nullptr) return;
    StreamHeader header_again = header();
    header_again.video.frames = frames;
    const std::vector<std::uint8_t> again = serialise(header_again);
    const std::uint64_t end = file_->position();
    file_->seek(kAt);
    file_->write(again.data(), again.size());
    file_->seek(end);
  }

 private:
  static constexpr std::size_t kAt = sizeof kSignature + kBoxHeaderBytes;
  static constexpr std::size_t kMost = 1 << 16;
  ByteSink& sink_;
  FileSink* file_;
  std::vector<std::uint8_t> head_;
};

double bits_per_pixel(const VideoInfo& info, std::uint64_t frames, std::uint64_t bytes) {
  return 8.0 * static_cast<double>(bytes) /
         (static_cast<double>(info.width) * static_cast<double>(info.height) * static_cast<double>(frames));
}

/// MD5 of all samples that pass by: proves a lossless round trip without reading the input twice.
class Digest {
 public:
  explicit Digest(const VideoInfo& info) : writer_(io::open_writer("md5", info, {})) {}
  void add(const Gop& gop) {
    for (int i = 0; i < gop.frames(); ++i) writer_->write(gop, i);
  }
  std::string result() {
    writer_->finish();
    return writer_->result();
  }

 private:
  std::unique_ptr<io::FrameWriter> writer_;
};

Prefetch decode_ahead(Decoder& decoder) {
  return Prefetch([&decoder] { return decoder.make_gop(); }, 2, [&decoder](Gop& gop) { return decoder.pull(gop); });
}

/// Decodes `path` and compares its samples with the digest of the input. Returns what to say.
std::string verify_lossless(const std::string& path, const Common& common, const std::string& wanted) {
  const StreamFile file = open_stream_file(path);
  Decoder decoder(*file.source, decoder_params(common));
  Digest digest(decoder.output());
  Prefetch decoded = decode_ahead(decoder);
  while (const Gop* gop = decoded.next()) digest.add(*gop);
  require(digest.result() == wanted, ErrorKind::kMismatch, "the decoded samples differ from the input");
  return "lossless, verified";
}

/// Decodes `path`, whose GOPs carry hashes of what was read. Returns what to say.
std::string verify_hashes(const std::string& path, const Common& common) {
  const StreamFile file = open_stream_file(path);
  Decoder decoder(*file.source, decoder_params(common));
  Prefetch decoded = decode_ahead(decoder);
  while (decoded.next()) {
  }
  return "lossless, verified";
}

/// Whether the input can be read a second time: files, folders of pictures and sequences (frames/%03d.png).
bool can_read_again(const std::string& path) {
  std::error_code ignored;
  return path != "-" && (!std::filesystem::exists(path, ignored) || std::filesystem::is_regular_file(path, ignored) ||
                         std::filesystem::is_directory(path, ignored));
}

/// Decodes `path` and measures its distance from the input, which is read again. Returns what to say.
std::string verify_lossy(const std::string& path, const EncodeOptions& options, const Common& common) {
  VideoInput original(options.input, reader_options(options.reading, common), common,
                      frame_range(options.frames, options.input));
  VideoInput coded(path, {}, common);
  require_comparable(original.info(), coded.info());
  const int capacity = buffer_frames(original.info());
  const auto read_ahead = [capacity](VideoInput& video) {
    return Prefetch([&video, capacity] { return Gop(video.info(), capacity); }, 2,
                    [&video](Gop& gop) { return video.read(gop); });
  };
  Prefetch a = read_ahead(original);
  Prefetch b = read_ahead(coded);
  ThreadPool pool(common.threads);
  VideoError error(original.info());
  for (;;) {
    const Gop* x = a.next();
    const Gop* y = b.next();
    require((x ? x->frames() : 0) == (y ? y->frames() : 0), ErrorKind::kMismatch,
            "the stream does not hold as many frames as the input");
    if (!x) break;
    error.add(*x, *y, pool);
  }
  return "PSNR " + format_psnr(error.psnr()) + ", verified";
}

/// --preset slow: what was typed stays.
EncoderParams best_structure(const Command& app, EncoderParams params, VideoInput& beginning) {
  FixedStructure fixed;
  fixed.temporal_wavelet = app.typed("--temporal-wavelet");
  fixed.spatial_wavelet = app.typed("--wavelet");
  fixed.levels = app.typed("--levels");
  fixed.gop_frames = app.typed("--gop");
  params = search_structure(
      beginning.info(), [&](Gop& gop, int index) { return beginning.read_frames(gop, index, 1) == 1; }, params, fixed,
      [](const StructureTrial& t) {
        log::debug("temporal {} x{}, spatial {} x{}, GOPs of {}: cost {:.4f}", to_string(t.temporal), t.temporal_levels,
                   to_string(t.spatial), t.spatial_levels, t.gop_frames, t.cost);
      });
  if (params.motion == Motion::kOff)
    log::info("--preset slow: temporal wavelet {}, spatial {}, {}x{} levels, GOPs of {}", to_string(params.temporal),
              to_string(params.spatial), params.temporal_levels, params.spatial_levels, params.gop_frames);
  else if (!fixed.levels)
    log::info("--preset slow: along motion, {}x{} levels", params.temporal_levels, params.spatial_levels);
  return params;
}

/// --joinable: no GOP depends on those before it, so that parts are what the whole would be. `first`: of --pin-from.
void make_joinable(const Command& app, const EncodeOptions& options, const std::optional<StreamLayout>& first,
                   EncoderParams& params) {
  for (const char* option : {"--bpp", "--bitrate", "--psnr"})
    require(!app.typed(option), ErrorKind::kBadArgument,
            std::string(option) +
                " decides by what came before, which --joinable excludes; join first, then "
                "'trivelet truncate' to a size or PSNR");
  require(params.target_bytes == 0, ErrorKind::kBadArgument,
          "--size looks at the whole, which --joinable excludes; join first, then 'trivelet truncate --size'");
  require(!app.typed("--keyint"), ErrorKind::kBadArgument,
          "--keyint says where groups may refer to others, which --joinable excludes");
  if (params.motion != Motion::kOff) params.key_interval = 1;
  params.measure_errors = false;
  params.settings += " --joinable";
  if (!first) return;
  const std::string name = "--pin-from '" + options.pin_from + "'";
  require(first->info.settings == params.settings, ErrorKind::kBadArgument,
          name + ": it was encoded with '" + first->info.settings + "', this part with '" + params.settings + "'");
  params.temporal = first->header.temporal;
  params.spatial = first->header.spatial;
  params.temporal_levels = first->header.temporal_levels;
  params.spatial_levels = first->header.spatial_levels;
  params.gop_frames = first->header.gop_frames;
  params.moved_frames = first->header.moved;
}

// What prediction does not have.
constexpr const char* kWaveletOptions[] = {"--levels",  "--wavelet", "--temporal-wavelet", "--layout",
                                           "--profile", "--mode",    "--layers",           "--motion"};

/// By --device as it was typed: what options say is of this process.
bool asks_for_gpu(const Command& app) {
  for (const auto& [name, value] : app.typed_under("Common"))
    if (name == "--device" && value.starts_with("gpu")) return true;
  return false;
}

void choose_prediction(const Command& app, const EncodeOptions& options, EncoderParams& params) {
  params.profile = Profile::kPredictive;
  params.effort = effort_of(options);
  if (!app.typed("--block-size")) params.block_size = 256;
  if (options.transform != "prediction") params.settings += " --transform prediction";  // else it says so
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

/// --transform auto: whether prediction may be chosen. It is smaller and faster, but for colours, which it takes one by
/// one, and for --preset fast, whose wavelet takes half the time. The rest is wishes that only a wavelet grants.
bool may_predict(const Command& app, const EncodeOptions& options) {
  return options.transform == "auto" && options.coding.lossless && options.coding.preset != "fast" &&
         options.hwaccel == "none" && !asks_for_gpu(app) &&
         std::none_of(std::begin(kWaveletOptions), std::end(kWaveletOptions),
                      [&app](const char* option) { return app.typed(option); });
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

// GOPs that are read ahead of a device: one goes up while two are read, by all threads, and one is to spare.
constexpr int kGopsForDevice = 4;

/// How many there will be; 0 if nobody knows.
std::uint64_t gops_of(const VideoInfo& info, int gop_frames) {
  const auto length = static_cast<std::uint64_t>(gop_frames);
  return (info.frames + length - 1) / length;
}

EncoderParams typed_params(const EncodeOptions& options, const Common& common, const Command& app) {
  EncoderParams params = encoder_params(app, options.coding, options.reading, common);
  if (options.transform == "prediction") take_prediction(app, options, params);
  return params;
}

/// What came of encoding.
struct Coded {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

struct AloneOptions {
  const Common& common;
  bool plain_gops = false;  ///< as long as they may be, whatever the scenes
  bool on_device = false;
  Digest* digest = nullptr;  ///< of what is read, if it is wanted
  double begun = 0;          ///< seconds of the clock before it
};

/// All of the input through the encoder. A stream of no frames is left unfinished.
Coded encode_alone(Encoder& encoder, VideoInput& input, const AloneOptions& o, const Stopwatch& clock) {
  Coded coded;
  double waited = 0;
  double looking = 0;
  {
    Progress progress(o.common, "encode", input.info().frames);
    SceneReader scenes(input.info(),
                       {[&](Gop& gop, int first, int count) {
                          const int got = input.read_frames(gop, first, count);
                          progress.add_read(got);
                          return got;
                        },
                        [&](int count) {
                          const bool taken = input.unread(count);
                          if (taken) progress.add_read(-count);
                          return taken;
                        }},
                       o.common.threads);
    Prefetch gops([&] { return encoder.make_gop(); }, o.on_device ? kGopsForDevice : 2,
                  [&](Gop& gop) {
                    const trace::Span span("read frames");
                    if (!(o.plain_gops ? input.read(gop) : scenes.read(gop))) return false;
                    if (o.plain_gops) progress.add_read(gop.frames());
                    if (o.digest) o.digest->add(gop);
                    return true;
                  });
    while (const Gop* gop = gops.next()) {
      encoder.push(*gop);
      progress.update(encoder.stats().frames);
    }
    waited = gops.seconds_waited();
    looking = scenes.seconds();
    if (encoder.stats().frames == 0) return coded;
    progress.stage("finishing the stream");
    encoder.finish();  // while the memory of `gops` is kept: to give it back waits for all that a device does
    progress.finish();
  }
  const CodecStats& stats = encoder.stats();
  const double seconds = clock.seconds() - o.begun;
  log::debug("{:.3f} seconds in all", o.begun + seconds);
  log::debug("seconds in the encoder by stage: {}", describe(stages_by_name(stats.stages), seconds - waited));
  log::debug("{:.3f} looking for scene cuts, while reading", looking);
  log::debug("{:.3f} to set up, {:.3f} waiting for the input, {:.3f} in the encoder: {} is what limits", o.begun,
             waited, seconds - waited, 2 * waited > seconds ? "reading" : "encoding");
  coded.frames = stats.frames;
  coded.bytes = stats.stream_bytes;
  return coded;
}

/// Has a film decoded by all processes, where it has key frames for them.
void keep_frames(Share& share, Processes& processes, const EncodeOptions& options, const Common& common) {
  std::unique_ptr<io::FrameReader> reader = io::open_reader(options.input, reader_options(options.reading, common));
  require(reader->stretches() > 1, ErrorKind::kBadStream,
          "'" + options.input + "' has other key frames for each process");
  // More than what is read ahead to find the end of a GOP; then as many frames again that others decode meanwhile.
  share.kept = std::make_unique<KeptFrames>(processes, std::move(reader),
                                            4 * static_cast<std::size_t>(share.encoder->header().gop_frames));
  share.read = [&kept = *share.kept](Gop& gop, std::uint64_t first) { kept.read(gop, first); };
}

/// How the processes that `mpirun` started get frames. Threads of one process hand them over in memory.
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

/// What one of several processes, but the first, codes with: what the first one found out is in the header.
Share share_of(const EncodeOptions& options, const Common& common, const Command& app, const StreamHeader& header,
               Reading reading, Processes& processes, std::shared_future<std::shared_ptr<const Backend>> starting) {
  EncoderParams params = typed_params(options, common, app);
  if (header.profile == Profile::kPredictive && params.profile != header.profile)
    choose_prediction(app, options, params);
  if (options.joinable) make_joinable(app, options, std::nullopt, params);
  params.temporal = header.temporal;
  params.spatial = header.spatial;
  params.temporal_levels = header.temporal_levels;
  params.spatial_levels = header.spatial_levels;
  params.gop_frames = header.gop_frames;
  params.moved_frames = header.moved;
  Share share;
  if (params.profile != Profile::kPredictive) share.backend = starting.get();
  share.encoder = std::make_unique<PartEncoder>(header.video, params, share.backend.get());
  if (reading == Reading::kDirect)
    share.read = read_from(std::make_shared<VideoInput>(options.input, reader_options(options.reading, common), common,
                                                        frame_range(options.frames, options.input)));
  if (reading == Reading::kKept) keep_frames(share, processes, options, common);
  return share;
}

/// What a run is known by that is to be taken up by another one: what it makes, of what.
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

// Engines that an H200 has. Beside more decoders than eight, streams of kernels wait for each other.
constexpr int kHardwareDecoders = 7;

/// Where --hwaccel lets a GPU decode the input: on the one that encodes.
io::ReaderOptions hardware_reader(const EncodeOptions& options, const Common& common) {
  io::ReaderOptions reader = reader_options(options.reading, common);
  if (options.hwaccel == "none") return reader;
  const bool must = options.hwaccel == "cuda";
  const DeviceChoice choice = choose_device(options.device);
  require(!must || choice.gpu >= 0, ErrorKind::kUnsupported,
          "--hwaccel cuda decodes on the GPU that encodes, and --device " + options.device + " is the CPU");
  if (choice.gpu < 0) return reader;
  reader.device_decoding = must ? io::DeviceDecoding::kAlways : io::DeviceDecoding::kWherePossible;
  reader.pictures = gpu::device_pictures(choice.gpu);
  reader.decoders = kHardwareDecoders;
  return reader;
}

/// For how many of them at once a GPU is to start, where that is known before the input is: not where they are searched
/// for motion beside each other (0).
std::uint64_t few_gops_of(const EncoderParams& params) {
  if (params.motion != Motion::kOff || params.profile == Profile::kPredictive) return 0;
  return params.profile == Profile::kFast ? kFastGops : kDenseGops;
}

/// To be called before anything asks for GPUs, for that starts them as they are expected to be used.
void expect_gops(const EncodeOptions& options, const Common& common, const Command& app) try {
  const std::uint64_t few = few_gops_of(typed_params(options, common, app));
  if (few > 0) gpu::expect_gops(static_cast<int>(few));
} catch (const Error&) {  // it is said where the options are needed
}

/// What is done can be opened: header, boxes and index are read again, which takes no time to speak of.
void check_written(const std::string& path, const std::string& output, std::uint64_t frames) {
  std::string wrong;
  try {
    const StreamInfo stream = probe(*open_stream_file(path).source, kNoLimits);
    std::uint64_t found = 0;
    for (const GopInfo& gop : stream.gops) found += static_cast<std::uint64_t>(gop.frames);
    wrong = !stream.header_damage.empty() ? stream.header_damage : stream.index_damage;
    if (!stream.damaged_boxes.empty()) wrong = "the box '" + stream.damaged_boxes.front().type + "' is damaged";
    if (wrong.empty() && stream.has_index && found != frames)
      wrong = fmt::format("its index has {} frames, {} were coded", found, frames);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kUnsupported) throw;
    wrong = e.what();
  }
  require(wrong.empty(), ErrorKind::kMismatch, "'" + output + "' cannot be read again, nothing is kept: " + wrong);
}

int run(const EncodeOptions& given, const Common& given_common, const Command& app) {
  EncodeOptions options = given;
  Common common = given_common;
  const std::string job = options.input + "\n" + options.output + "\n" + options.frames + "\n" + options.reading.stream;
  if (options.hwaccel == "none") expect_gops(options, common, app);
  Crew crew("encode", options.device, common,
            [&given, &app, job](Processes& end, const std::string& device, const Common& own) {
              remove_when_first_dies(end, given.output);
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
              help_encode(end, job, [&](const StreamHeader& header, Reading reading) {
                return share_of(mine, own, app, header, reading, end, starting);
              });
            });
  if (crew.helped()) return kExitDone;
  Processes* processes = crew.processes();
  const bool volume = wants_volume(options.input, typed_volume(options));
  if (volume) {
    if (processes) {
      log::info("'{}' is a volume, which one of {} {} encodes alone", options.input, processes->size(), crew.members());
      if (given.device == "auto") options.device = given.device;
    }
    return run_volume(options, given_common, app);
  }
  require(!processes || options.hwaccel != "cuda", ErrorKind::kUnsupported,
          "--hwaccel cuda is for one GPU and one process; leave it out, or --device at gpu:N");
  if (processes) options.hwaccel = "none";
  std::unique_ptr<Processes> alone;
  if (options.resume && !processes) {
    alone = std::move(team_of_threads(1).front());
    processes = alone.get();
  }
  refuse_volume_options(app);
  check_output(options.input, options.output, true);
  require(!(options.verify && options.output == "-"), ErrorKind::kBadArgument,
          "--verify decodes the finished file again, and standard output cannot be read back; write to a file");
  require(!options.verify || options.coding.lossless || can_read_again(options.input), ErrorKind::kBadArgument,
          "--verify of a lossy stream reads the input twice, which a pipe does not allow; use a file or --lossless");
  EncoderParams params = typed_params(options, common, app);
  require(!rounds_along_motion(params) || !asks_for_gpu(app), ErrorKind::kUnsupported,
          "--device " + given.device +
              ": --preset slow with --motion is coded on the CPU; leave the option out, or take another preset");
  require(!options.resume || (options.output != "-" && !params.has_byte_target()), ErrorKind::kBadArgument,
          options.output == "-"
              ? "--resume keeps what is coded beside the output, and standard output has no place; write to a file"
              : "--resume: with a target for bytes nothing is finished before the end; use -q or --psnr");
  const FrameRange range = frame_range(options.frames, options.input);
  const std::optional<StreamLayout> pin = pinned(options);
  require(!options.joinable || !range.has_times(), ErrorKind::kBadArgument,
          "--frames " + options.frames + ": joinable parts begin where a GOP does; give numbers of frames");
  TraceFile trace(common);
  std::unique_ptr<VideoInput> opened;
  const auto open_input = [&] {
    opened = std::make_unique<VideoInput>(options.input, hardware_reader(options, common), common, range);
  };
  if (may_predict(app, options)) {
    if (!pin) open_input();
    if (pin ? pin->header.profile == Profile::kPredictive : opened->info().format.model != ColourModel::kRgb)
      choose_prediction(app, options, params);
  }
  if (options.joinable) make_joinable(app, options, pin, params);
  const bool searches = options.coding.preset == "slow" && !pin && params.profile != Profile::kPredictive;
  if (searches && params.motion != Motion::kOff && !can_read_again(options.input)) {
    log::info("--preset slow: the beginning of a pipe is not read twice, so that levels are those of --preset medium");
  } else if (searches) {
    require(can_read_again(options.input), ErrorKind::kBadArgument,
            "--preset slow reads the beginning of the input twice, which a pipe does not allow; use a file or another "
            "preset");
    // Of a first part what the whole would show: the search looks as far as it likes.
    const FrameRange shown = options.joinable ? FrameRange{range.first} : range;
    VideoInput beginning(options.input, reader_options(options.reading, common), common, shown);
    choose_gop_frames(app, beginning.info(), params);
    params = best_structure(app, params, beginning);
  }
  const Stopwatch clock;
  const std::size_t gpu_memory = options.gpu_memory.empty() ? 0 : parse_size(options.gpu_memory);
  std::future<std::shared_ptr<const Backend>> starting;
  const std::uint64_t few_gops = few_gops_of(params);
  if (few_gops > 0 && options.hwaccel != "none") gpu::expect_gops(static_cast<int>(few_gops) + kHardwareDecoders);
  if (few_gops > 0) starting = start_backend(options.device, gpu_memory, few_gops);
  if (!opened) open_input();
  VideoInput& input = *opened;
  const bool predicts = params.profile == Profile::kPredictive;
  if (!pin && !(predicts && options.joinable)) choose_gop_frames(app, input.info(), params);
  if (predicts) {
    starting = start_backend("cpu", 0, 0);
    if (const DeviceChoice choice = choose_device(given.device); choice.gpu >= 0)
      log::info("prediction is coded on the CPU; GPU {}, {}, takes --transform wavelet", choice.gpu, choice.name);
  } else if (rounds_along_motion(params)) {
    starting = start_backend("cpu", 0, 0);
    if (const DeviceChoice choice = choose_device(given.device); choice.gpu >= 0)
      log::info("--preset slow with --motion is coded on the CPU; GPU {}, {}, takes other presets", choice.gpu,
                choice.name);
  } else if (few_gops == 0) {
    const std::uint64_t gops = gops_of(input.info(), params.gop_frames);
    // Each is searched, and coded behind that.
    starting = start_backend(options.device, gpu_memory, params.motion != Motion::kOff ? 2 * gops : gops);
  }
  VideoInfo video = input.info();
  params.metadata = input.metadata();
  if (options.joinable) {
    video.frames = 0;  // of the part, which decides nothing
    require(range.first % static_cast<std::uint64_t>(params.gop_frames) == 0, ErrorKind::kBadArgument,
            "--frames " + options.frames + ": joinable parts begin where a GOP does, at a multiple of " +
                std::to_string(params.gop_frames));
  }
  const bool matroska = is_matroska_name(options.output);
  io::CompanyOptions company;
  if (matroska) {
    video.frames = 0;  // its header cannot be corrected afterwards
    const bool other_clock = app.typed("--fps") && options.film.tracks_from.empty();
    if (!other_clock)
      company = company_for(options.input, input.company(), options.film, range);
    else if (!input.company().empty())
      log::warn("--fps changes how fast the pictures pass: '{}' gets neither sound nor subtitles", options.output);
    if (company.from == options.input) company.stream = options.reading.stream;
  } else {
    refuse_film_options(options.output, app);
    io::Company lost = input.company();
    lost.chapters = lost.tags = false;  // the stream has places for them
    warn_of_loss(options.output, lost, options.film);
  }
  // In Matroska they are where others look for them. Of parts that are to be joined the first one has them.
  if (options.film.only_video || company.from == options.input || (options.joinable && range.first > 0)) {
    params.metadata.chapters.clear();
    params.metadata.entries.clear();
  }
  if (!matroska && options.output != "-" && std::filesystem::path(options.output).extension() != ".tvl")
    log::warn("'{}' will hold a Trivelet stream although its name does not end in .tvl", options.output);

  const auto sink = open_stream_output(options.output, common, company);
  require(!options.verify || !sink->temporary_path().empty(), ErrorKind::kBadArgument,
          "--verify decodes the finished file again and '" + options.output + "' cannot be read back");
  const std::shared_ptr<const Backend> backend = starting.get();
  HeadSink stream(*sink, sink->file());
  const auto fits_pin = [&](const StreamHeader& header) {
    const std::string difference = pin ? header_difference(pin->header, header, true) : "";
    require(difference.empty(), ErrorKind::kBadArgument,
            "'" + options.input + "' does not fit --pin-from '" + options.pin_from + "': " + difference);
  };
  log::debug("{}: {}{}", options.input, describe(input.info()), input.on_device() ? ", decoded on the GPU" : "");

  std::unique_ptr<Digest> digest;
  if (options.verify && params.lossless && !processes) digest = std::make_unique<Digest>(input.info());
  const bool plain_gops = options.coding.no_scene_cuts || options.joinable;
  const double begun = clock.seconds();
  Coded coded;
  std::unique_ptr<EncodeJournal> journal;
  if (processes) {
    Share own;
    own.backend = backend;
    own.encoder = std::make_unique<PartEncoder>(video, params, backend.get());
    fits_pin(own.encoder->header());
    Progress progress(common, "encode", input.info().frames);
    Dealing dealing{.input = input,
                    .plain_gops = plain_gops,
                    .reading = how_to_read(options, common, *processes, input),
                    .threads = common.threads,
                    .written = [&progress](std::uint64_t frames) { progress.update(frames); }};
    if (dealing.reading == Reading::kKept) {
      keep_frames(own, *processes, options, common);
      dealing.kept = own.kept.get();
    }
    if (dealing.reading == Reading::kDirect)
      own.read = read_from(
          std::make_shared<VideoInput>(options.input, reader_options(options.reading, common), common, range));
    if (options.resume) {
      journal = std::make_unique<EncodeJournal>(options.output + ".resume");
      journal->begin(identity_of(options, own.encoder->head()));
      dealing.journal = journal.get();
    }
    // A journal gets all that is coded; one process alone writes as it comes.
    const bool all_write = !journal && processes->size() > 1 && sink->file() != nullptr;
    const io::SharedOutput shared = all_write ? io::shared_file(*sink->file(), false) : io::SharedOutput{};
    if (!shared.path.empty()) {
      own.output = io::SharedFile::open(shared);
      dealing.skip = [&stream](std::uint64_t bytes) { stream.skip(bytes); };
    }
    crew.call(job, pack_call(own.encoder->header(), dealing.reading, shared));
    if (own.kept) own.kept->start();
    const Together all = encode_together(*processes, own, dealing, stream);
    coded = {all.frames, all.bytes};
    if (all.taken > 0) log::info("{} of '{}' were not coded again", count_of(all.taken, "GOP"), journal->path());
    progress.finish();
    if (all.coded.size() > 1)
      log::debug("{} {} coded {} GOPs", processes->size(), crew.members(), fmt::join(all.coded, " + "));
    log::debug("{} {}; {}, {}; the first one took {:.3f} CPU s to find where GOPs end, {:.3f} s to write",
               processes->size(), crew.members(),
               dealing.reading == Reading::kDirect ? "each read its own frames"
               : own.kept
                   ? fmt::format("each frame was decoded once, {} of {}", fmt::join(own.kept->end(), " + "), all.frames)
                   : fmt::format("one read {} frames and sent them", all.frames),
               all.placed > 0 ? fmt::format("{} were written by who coded them", count_of(all.placed, "GOP"))
                              : "one wrote all",
               all.finding, all.writing);
  } else {
    Encoder encoder(video, params, stream, backend.get());
    fits_pin(stream.header());
    coded = encode_alone(encoder, input, {common, plain_gops, backend != nullptr, digest.get(), begun}, clock);
  }
  require(coded.frames > 0, options.frames.empty() ? ErrorKind::kBadStream : ErrorKind::kBadArgument,
          "'" + options.input + "' holds no frames" + (options.frames.empty() ? "" : " in --frames " + options.frames));
  if (options.joinable || input.info().frames > coded.frames) stream.set_frames(coded.frames);
  const double seconds = clock.seconds();
  std::string verified;
  // Before the rename: a file that fails never gets its name.
  sink->finish();
  const std::string& path = sink->temporary_path();
  if (!path.empty()) check_written(path, options.output, coded.frames);
  if (options.verify) {
    Common unlimited = common;
    unlimited.limitless = true;  // what could be encoded may be decoded
    try {
      verified = ", " + (digest            ? verify_lossless(path, unlimited, digest->result())
                         : params.lossless ? verify_hashes(path, unlimited)
                                           : verify_lossy(path, options, unlimited));
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kMismatch && e.kind() != ErrorKind::kBadStream) throw;
      fail(ErrorKind::kMismatch, "verification of '" + options.output + "' failed, nothing is kept: " + e.what());
    }
  }
  sink->commit();
  if (journal) journal->remove();
  warn_of_remarks(options.output, sink->remarks());
  trace.finish();
  if (range.has_end() && coded.frames < range.count()) log::warn("--frames {}: the input ends before", options.frames);
  log::info("{}, {} bytes, {:.4g} bits per pixel, {:.1f} frames/s{}", count_of(coded.frames, "frame"), coded.bytes,
            bits_per_pixel(input.info(), coded.frames, coded.bytes), static_cast<double>(coded.frames) / seconds,
            verified);
  require(input.damage().empty(), ErrorKind::kBadStream,
          "'" + options.input + "' is damaged (" + input.damage() + "); the output holds " +
              count_of(coded.frames, "frame") + " before");
  return kExitDone;
}

}  // namespace

Action define_encode(Command& app, Common& common) {
  auto options = std::make_shared<EncodeOptions>();
  app.add_option("IN", options->input, "Video to encode; - = standard input (Y4M, or raw with --size and --pix-fmt)")
      .required();
  app.add_option("OUT", options->output,
                 "Stream to write, e.g. out.tvl, or a film with sound, out.mkv; - = standard output")
      .required();
  app.add_option("--frames", options->frames,
                 "Encode only frames A up to, without, B; A: and :B leave an end open; times, too: 1.5s:00:01:10")
      .type_name("A:B")
      .group("Selection and checks");
  auto joinable =
      app.add_flag("--joinable", options->joinable,
                   "For 'trivelet join': GOPs have equal lengths, and none depends on those before; --frames "
                   "begins at a multiple of --gop")
          .group("Selection and checks");
  app.add_option("--pin-from", options->pin_from,
                 "The first part, whose choices (--preset slow) this part takes; it was encoded with the same options")
      .type_name("FIRST.tvl")
      .group("Selection and checks")
      .needs(joinable);
  app.add_flag(
         "--resume", options->resume,
         "Keep coded GOPs in OUT.resume until OUT is complete, and begin with those that a stopped run left there")
      .group("Selection and checks");
  auto verify =
      app.add_flag(
             "--verify", options->verify,
             "Decode the finished file and compare: lossless must be identical (else exit code 6), lossy says its PSNR")
          .group("Selection and checks");
  add_coding_options(app, options->coding);
  app.add_flag(
         "--recover", options->reading.recover,
         "Of a damaged or cut input encode the frames before the damage; the exit code is 4 where frames are missing")
      .group("Selection and checks");
  app.add_option("--stream", options->reading.stream,
                 "Which video of a file with several, named as for ffmpeg: v:1, 3 [the best]")
      .type_name("TRACK")
      .group("Input");
  app.add_option(
         "--hwaccel", options->hwaccel,
         "Who decodes H.264, HEVC, AV1, VP9, ...: none = the CPU, cuda = the GPU that encodes, whose video engine "
         "conceals damage and tells nobody, auto = that one where it can")
      .one_of({"none", "cuda", "auto"})
      .show_default()
      .group("Input");
  add_film_options(app, options->film);
  app.add_option(
         "--transform", options->transform,
         "wavelet: with smaller pictures, fewer frames a second and lower qualities in it; prediction: smaller and "
         "faster without loss, on the CPU, but with nothing less in it; auto: prediction for what is lossless, but "
         "for colours (RGB) and where --device gpu, --hwaccel, of videos --preset fast or an option of wavelets "
         "says otherwise")
      .one_of({"auto", "wavelet", "prediction"})
      .show_default()
      .group("Structure of the stream");
  add_volume_encode_options(app, *options, verify);
  add_input_options(app, options->reading, true);
  add_overwrite_option(app, common);
  app.add_option("--max-memory", options->gpu_memory, "Memory of the GPU to use at most; k, M and G are understood")
      .type_name("SIZE")
      .group("Common");
  add_limit_options(app, common, false);
  add_device_option(app, options->device, true);
  add_work_options(app, common);
  add_trace_option(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  return [options, &common, app] { return run(*options, common, app); };
}

}  // namespace trivelet::cli
