// trivelet still: single pictures in CCSDS 122.0 streams and .tvs files: encode, decode, info.

#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <filesystem>
#include <memory>

#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/still/ccsds.h"
#include "apps/still/ccsds_image.h"
#include "apps/still/still_codec.h"
#include "apps/still/team.h"
#include "codec/still/dct/dct.h"
#include "codec/still/vstc/vstc_wave.h"
#include "codec/threads/stopwatch.h"
#include "gpu/still/ccsds122.h"
#include "gpu/still/dct.h"
#include "gpu/still/vstc.h"

namespace trivelet::cli {

namespace {

struct StillEncodeOptions {
  std::vector<std::string> files;
  InputOptions reading;
  std::uint64_t frame = 0;
  std::string codec;  ///< empty = by the name of the output
  double bpp = 0;
  int qp = vstc::Params{}.qp;
  double keep = dct::Params{}.keep;
  int block = 1 << vstc::Params{}.log2_block;
  std::string effort = "medium";
  bool plain_recursion = false;
  bool plain_levels = false;
  std::string sharing = "rows";
  std::string device = "cpu";
  bool json = false;
};

struct StillDecodeOptions {
  std::string input, output;
  std::string device = "cpu";
};

struct StillInfoOptions {
  std::string input;
  bool json = false;
};

const char* codec_name(still::Codec codec) { return codec == still::Codec::kVstc ? "vstc" : "dct"; }

/// One frame of anything the program reads.
still::Image read_picture(const std::string& path, const InputOptions& options, std::uint64_t frame,
                          const Common& common) {
  const auto reader = io::open_reader(path, reader_options(options, common));
  if (frame > 0) reader->skip(frame);
  Gop gop(reader->info(), 1);
  require(io::read_gop(*reader, gop), ErrorKind::kBadArgument, fmt::format("{} has no frame {}", path, frame));
  still::Image image;
  image.width = reader->info().width;
  image.height = reader->info().height;
  image.format = reader->info().format;
  image.allocate();
  std::byte* to = image.samples.data();
  for (int c = 0; c < gop.components(); ++c) {
    const Gop& all = gop;
    const VolumeView plane = all.plane(c);
    const std::size_t row =
        static_cast<std::size_t>(plane.shape.width) * static_cast<std::size_t>(plane.bytes_per_sample);
    for (int y = 0; y < plane.shape.height; ++y, to += row) std::memcpy(to, plane.row(0, y), row);
  }
  return image;
}

void write_picture(const std::string& path, const still::Image& image, bool overwrite) {
  VideoInfo info;
  info.width = image.width;
  info.height = image.height;
  info.format = image.format;
  info.frames = 1;
  Gop gop(info, 1);
  gop.set_frames(1);
  const std::byte* from = image.samples.data();
  for (int c = 0; c < gop.components(); ++c) {
    const MutableVolumeView plane = gop.plane(c);
    const std::size_t row =
        static_cast<std::size_t>(plane.shape.width) * static_cast<std::size_t>(plane.bytes_per_sample);
    for (int y = 0; y < plane.shape.height; ++y, from += row) std::memcpy(plane.row(0, y), from, row);
  }
  io::WriterOptions options;
  options.overwrite = overwrite;
  const auto writer = io::open_writer(path, info, options);
  writer->write(gop, 0);
  writer->finish();
}

/// The transform of dct on the device of --device; "auto" uses the CPU if there is a GPU but no cuFFT.
std::unique_ptr<dct::Transform> make_transform(const DeviceChoice& choice, ThreadPool& pool) {
  if (choice.gpu >= 0) {
    try {
      return gpu::make_dct_transform(choice.gpu);
    } catch (const Error& e) {
      if (!choice.automatic || e.kind() != ErrorKind::kUnsupported) throw;
      log::info("on the CPU: {}", e.what());
    }
  }
  return dct::make_fast_transform(pool);
}

vstc::Params vstc_params(const StillEncodeOptions& o, const Common& common) {
  vstc::Params p;
  p.qp = o.qp;
  p.log2_block = o.block == 16 ? 4 : o.block == 32 ? 5 : 6;
  p.effort = o.effort == "fast"   ? vstc::Effort::kFast
             : o.effort == "full" ? vstc::Effort::kFull
                                  : vstc::Effort::kMedium;
  p.remember = !o.plain_recursion;
  p.optimise_levels = !o.plain_levels;
  p.sharing = o.sharing == "rows"    ? vstc::Sharing::kRows
              : o.sharing == "modes" ? vstc::Sharing::kModes
                                     : vstc::Sharing::kCandidates;
  p.simd = parse_simd(common.simd);
  return p;
}

/// What became of a picture.
struct Outcome {
  std::vector<std::byte> bytes;
  std::string by;                              ///< the transform or device
  const vstc::Statistics* searched = nullptr;  ///< of vstc on the CPU
};

void report(const StillEncodeOptions& o, const FileJob& job, const still::Image& image, const Outcome& outcome,
            double seconds, int threads, int processes) {
  const std::size_t size = outcome.bytes.size();
  const double bpp = 8 * static_cast<double>(size) / (static_cast<double>(image.width) * image.height);
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("file", job.input);
    json.member("width", image.width);
    json.member("height", image.height);
    json.member("bytes", size);
    json.member("bits_per_pixel", bpp);
    json.member("seconds", seconds);
    json.member("threads", threads);
    json.member("processes", processes);
    json.member("by", outcome.by);
    if (outcome.searched) {
      json.member("prediction_blocks_tried", outcome.searched->predictions);
      json.member("residual_trials", outcome.searched->trials);
      json.member("residual_trials_of_plain_recursion", outcome.searched->plain_trials);
    }
    json.end_object();
    fmt::print("{}", json.text());
  }
  log::info("{}: {}x{} {}: {} bytes, {:.4f} bits per pixel, {:.2f} s ({})", job.output, image.width, image.height,
            trivelet::to_string(image.format), size, bpp, seconds, outcome.by);
}

struct Encoding {
  const StillEncodeOptions& options;
  const Common& common;
  vstc::Params params;
  DeviceChoice device;
  int processes = 1;
  ThreadPool pool{common.threads};
  std::unique_ptr<dct::Transform> transform{};  ///< of dct
};

void encode_picture(Encoding& encoding, const FileJob& job, int rank) {
  const StillEncodeOptions& o = encoding.options;
  const still::Image image = read_picture(job.input, o.reading, o.frame, encoding.common);
  const Stopwatch clock;
  Outcome outcome;
  vstc::Encoded e;
  // Of several processes one alone shows how far it is.
  Common quiet = encoding.common;
  if (rank != 0 || encoding.transform) quiet.progress = "never";
  const bool together = encoding.params.team && encoding.processes > 1;
  Progress progress(quiet, job.output, together ? 0 : vstc::searched_blocks(image, encoding.params), "blocks");
  encoding.params.block_searched = [&] { progress.add_done(); };
  if (encoding.transform) {
    outcome = {dct::encode(image, {.qp = o.qp, .keep = o.keep}, *encoding.transform), encoding.transform->name()};
  } else if (encoding.device.gpu >= 0 && encoding.params.remember) {
    e = vstc::encode_waves(image, encoding.params, gpu::make_vstc_search(encoding.device.gpu));
    outcome = {std::move(e.bytes), fmt::format("GPU {}", encoding.device.gpu)};
  } else {
    e = vstc::encode(image, encoding.params, encoding.pool);
    outcome = {std::move(e.bytes), "CPU", &e.statistics};
  }
  progress.finish();
  encoding.params.block_searched = nullptr;
  const double seconds = clock.seconds();
  if (encoding.params.team && rank != 0) return;
  FileSink file(job.output, encoding.common.overwrite);
  file.write(outcome.bytes.data(), outcome.bytes.size());
  file.commit();
  report(o, job, image, outcome, seconds, encoding.pool.threads(), encoding.processes);
}

/// Several pictures are dealt out to the processes, and these use the GPUs in turn; one is searched by all together.
int run_encode(const StillEncodeOptions& o, const Common& common) {
  std::unique_ptr<Processes> all = start_processes("still encode");
  if (!all) all = std::move(thread_processes(1).front());
  const int rank = all->rank(), processes = all->size();
  const std::vector<FileJob> jobs = make_file_jobs(o.files, ".tvs");
  const bool together = jobs.size() == 1;
  const bool is_dct = o.codec == "dct";
  DeviceChoice device = choose_device(o.device);
  if (device.gpu >= 0 && (o.device == "gpu" || device.automatic)) device.gpu = rank % gpu::still_device_count();
  require(
      processes == 1 || !together || !(is_dct || (device.gpu >= 0 && !device.automatic)), ErrorKind::kBadArgument,
      fmt::format("{} processes can share one picture only with vstc on the CPU; give several pictures and a folder",
                  processes));
  if (together && processes > 1) device.gpu = -1;
  Encoding encoding{o, common, vstc_params(o, common), device, processes};
  if (is_dct) encoding.transform = make_transform(device, encoding.pool);
  if (!together) {
    for (auto i = static_cast<std::size_t>(rank); i < jobs.size(); i += static_cast<std::size_t>(processes))
      encode_picture(encoding, jobs[i], rank);
    return kExitDone;
  }
  TeamMessages messages(*all);
  ProcessTeam team(*all, messages);
  encoding.params.team = &team;
  messages.run([&] { encode_picture(encoding, jobs.front(), rank); });
  return kExitDone;
}

/// A .tvs file, or else a CCSDS stream.
bool is_tvs(const std::vector<std::byte>& bytes) {
  return bytes.size() >= 4 && std::memcmp(bytes.data(), "\x89TVS", 4) == 0;
}

int run_decode(const StillDecodeOptions& o, const Common& common) {
  const std::vector<std::byte> bytes = read_bytes(o.input);
  if (!is_tvs(bytes)) return decode_ccsds(o.input, bytes, o.output, o.device, common);
  ThreadPool pool(common.threads);
  vstc::DecodeParams params;
  params.simd = parse_simd(common.simd);
  params.limits = limits(common);
  const Stopwatch clock;
  const bool is_dct = still::read_file(bytes).header.codec == still::Codec::kDct;
  require(is_dct || o.device == "cpu" || o.device == "auto", ErrorKind::kUnsupported,
          "--device " + o.device + ": pictures of vstc are decoded on the CPU only");
  const still::Image image =
      is_dct ? dct::decode(bytes, {.limits = params.limits}, *make_transform(choose_device(o.device), pool))
             : vstc::decode(bytes, params, pool);
  const double seconds = clock.seconds();
  write_picture(o.output, image, common.overwrite);
  log::info("{}x{} {}: {:.3f} s", image.width, image.height, trivelet::to_string(image.format), seconds);
  return kExitDone;
}

int run_info(const StillInfoOptions& o, const Common& common) {
  const std::vector<std::byte> bytes = read_bytes(o.input);
  if (!is_tvs(bytes)) return describe_ccsds(o.input, bytes, o.json, common);
  const still::File file = still::read_file(bytes);
  const still::Header& h = file.header;
  const double bpp = 8 * static_cast<double>(bytes.size()) / (static_cast<double>(h.width) * h.height);
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("file", o.input);
    json.member("type", std::string("still"));
    json.member("codec", std::string(codec_name(h.codec)));
    json.member("width", h.width);
    json.member("height", h.height);
    json.member("pixel_format", trivelet::to_string(h.format));
    json.member("bytes", bytes.size());
    json.member("bits_per_pixel", bpp);
    if (h.codec == still::Codec::kVstc) {
      json.member("block", 1 << (h.parameters[0] & 7));
      json.member("qp", static_cast<int>(h.parameters[1]));
    }
    json.end_object();
    fmt::print("{}", json.text());
    return kExitDone;
  }
  fmt::print("{:<12} {}\n", "file", o.input);
  fmt::print("{:<12} {}\n", "codec", codec_name(h.codec));
  fmt::print("{:<12} {}x{} {}\n", "picture", h.width, h.height, trivelet::to_string(h.format));
  fmt::print("{:<12} {} bytes, {:.4f} bits per pixel\n", "size", bytes.size(), bpp);
  if (h.codec == still::Codec::kDct) fmt::print("{:<12} one transform, QP {}\n", "coding", h.parameters[0]);
  if (h.codec == still::Codec::kVstc)
    fmt::print("{:<12} blocks of {}, QP {}\n", "coding", 1 << (h.parameters[0] & 7), h.parameters[1]);
  return kExitDone;
}

std::string extension_of(const std::string& path) { return std::filesystem::path(path).extension().string(); }

/// The codec that is not said follows from the name of the output. Names of the other kind are refused.
void choose_codec(StillEncodeOptions& o) {
  const std::string extension = o.files.empty() ? "" : extension_of(o.files.back());
  if (o.codec.empty()) o.codec = extension == ".tvs" ? "vstc" : "ccsds";
  require(o.codec != "ccsds" || extension != ".tvs", ErrorKind::kBadArgument,
          "a .tvs file has --codec vstc or dct; streams of ccsds are named .c122");
  require(o.codec == "ccsds" || extension != ".c122", ErrorKind::kBadArgument,
          "a .c122 file has --codec ccsds; those of vstc and dct are named .tvs");
}

int run_encode_ccsds(const StillEncodeOptions& o, const Common& common) {
  const std::unique_ptr<Processes> all = start_processes("still encode");
  require(!all || all->size() == 1, ErrorKind::kBadArgument,
          "--codec ccsds runs in one process; several processes take --codec vstc or dct");
  require(o.reading.frame_rate.empty() && o.reading.format.empty() && !o.reading.allow_outside &&
              o.reading.sizes.size() < 2,
          ErrorKind::kBadArgument, "--fps, --format and --allow-outside are for --codec vstc and dct");
  CcsdsInput reading;
  if (!o.reading.sizes.empty()) reading.size = o.reading.sizes.front();
  reading.pixel_format = o.reading.pixel_format;
  return encode_ccsds(o.files, o.bpp, reading, o.device, common);
}

Action define_still_encode(Command& app, Common& common) {
  auto o = std::make_shared<StillEncodeOptions>();
  app.add_option("FILES", o->files,
                 "IN OUT.c122, IN OUT.tvs, or IN... FOLDER; pictures, or videos of which one frame is taken")
      .required()
      .type_name("IN... OUT");
  app.add_option("--codec", o->codec,
                 "ccsds: CCSDS 122.0-B-2, grey, exact unless --bpp is given, settings by 'trivelet ccsds encode'; "
                 "vstc: blocks of variable size, intra prediction, the smallest, very slow; dct: one transform of the "
                 "whole picture [ccsds; vstc if OUT is a .tvs file]")
      .one_of({"ccsds", "vstc", "dct"});
  auto bpp = app.add_option("--bpp", o->bpp, "ccsds: bits per pixel of the stream").positive();
  auto qp =
      app.add_option("-q,--qp", o->qp, "vstc, dct: quantiser: 0 the finest, 51 the coarsest; 6 more double the step")
          .range(0, 51)
          .show_default();
  auto keep = app.add_option("--keep", o->keep, "dct: share of the coefficients to keep, lowest frequencies first")
                  .range(0.0, 1.0)
                  .show_default();
  auto block = app.add_option("--block", o->block, "vstc: side of the blocks").one_of({16, 32, 64}).show_default();
  auto effort =
      app.add_option(
             "--effort", o->effort,
             "vstc: effort of the search. Seconds of one core for 512x512 at -q 27: fast 9, medium 16, full 140; "
             "full is never worse than medium")
          .one_of({"fast", "medium", "full"})
          .show_default();
  auto frame = app.add_option("--frame", o->frame, "vstc, dct: frame of a video, from 0").show_default();
  app.add_flag("--plain-recursion", o->plain_recursion,
               "vstc: compute the best cost of a residual block each time instead of once: same stream, very slow");
  app.add_flag("--plain-levels", o->plain_levels, "vstc: round levels instead of choosing them by rate and distortion");
  auto share =
      app.add_option("--share", o->sharing,
                     "vstc under mpirun: processes take rows of blocks, candidates (modes and halves), or modes")
          .one_of({"rows", "candidates", "modes"})
          .show_default();
  app.add_flag("--json", o->json, "vstc, dct: print JSON with size, time and counts");
  add_device_option(app, o->device);
  add_limit_options(app, common);
  add_input_options(app, o->reading);
  add_work_options(app, common);
  add_progress_option(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common, bpp, qp, keep, block, effort, frame, share] {
    choose_codec(*o);
    // An option typed is obeyed or refused.
    const bool only_vstc = block.typed() || effort.typed() || share.typed() || o->plain_levels || o->plain_recursion;
    if (o->codec == "ccsds") {
      require(!only_vstc && !qp.typed() && !keep.typed() && !frame.typed() && !o->json, ErrorKind::kBadArgument,
              "CCSDS streams have no --qp, --keep, --block, --effort, --share, --plain-levels, --plain-recursion, "
              "--frame and --json; these need --codec vstc or dct. Quality is set by --bpp");
      return run_encode_ccsds(*o, common);
    }
    require(!bpp.typed(), ErrorKind::kBadArgument, "--bpp is for --codec ccsds; vstc and dct have --qp");
    require(o->codec == "vstc" || !only_vstc, ErrorKind::kBadArgument,
            "--block, --effort, --share, --plain-levels and --plain-recursion are for --codec vstc");
    require(o->codec == "dct" || !keep.typed(), ErrorKind::kBadArgument, "--keep is for --codec dct");
    require(!o->plain_recursion || o->device == "cpu" || o->device == "auto", ErrorKind::kBadArgument,
            "--plain-recursion is for the CPU; a GPU computes every cost once");
    return run_encode(*o, common);
  };
}

Action define_still_decode(Command& app, Common& common) {
  auto o = std::make_shared<StillDecodeOptions>();
  app.add_option("IN", o->input, "File; - = standard input").required();
  app.add_option("-o,--output,OUT", o->output, "Picture: .pgm, .ppm, .y4m, .png, …").required();
  add_device_option(app, o->device);
  add_limit_options(app, common);
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_decode(*o, common); };
}

Action define_still_info(Command& app, Common& common) {
  auto o = std::make_shared<StillInfoOptions>();
  app.add_option("IN", o->input, "File; - = standard input").required();
  app.add_flag("--json", o->json, "Print JSON");
  add_limit_options(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_info(*o, common); };
}

}  // namespace

Action define_still(Command& app, Common& common) {
  static constexpr Subcommand kCommands[] = {
      {"encode", "Encode a picture: CCSDS 122.0-B-2, vstc or dct", define_still_encode},
      {"decode", "Decode a CCSDS stream or a .tvs file into a picture", define_still_decode},
      {"info", "Describe a CCSDS stream or a .tvs file", define_still_info},
  };
  return define_subcommands(app, common, kCommands);
}

}  // namespace trivelet::cli
