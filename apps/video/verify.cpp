// trivelet verify: decodes a whole stream, checks every CRC and hash, and reports the damage.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cluster/parts.h"
#include "apps/cluster/processes.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/batch.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/base/bytes.h"
#include "trivelet/edit.h"

namespace trivelet::cli {

namespace {

struct VerifyOptions {
  std::string device = "auto";
  std::string input;
  std::vector<std::string> more;  ///< inputs behind the first one
  bool recursive = false;
  std::string report;  ///< file of --report
  std::string against;
  InputOptions reading;
  std::string voxel_type;
  SeriesChoice series;
  bool json = false;
};

void print_json(const VerifyOptions& options, const VerifyResult& found, std::uint64_t frames, bool lossless,
                const VideoError* error) {
  Json json;
  json.begin_object();
  json.member("file", options.input);
  json.member("intact", found.damage.empty() && frames > 0);
  json.member("frames", frames);
  json.member("gops", found.gops);
  json.member("damaged_gops", found.damaged_gops);
  json.member("lossless", lossless);
  json.begin_array("damage");
  for (const std::string& line : found.damage) json.value(line);
  json.end_array();
  if (error != nullptr) {
    json.member("against", options.against);
    json.member("identical", error->identical());
    json.member("psnr", error->identical() ? std::numeric_limits<double>::quiet_NaN() : error->psnr());
  }
  json.end_object();
  fmt::print("{}", json.text());
}

/// What was found.
struct Checked {
  VerifyResult found;
  bool same_count = true;  ///< as the original, where it was compared
  bool longer = false;     ///< that is the original
};

std::unique_ptr<VideoInput> open_original(const VerifyOptions& options, const Common& common, const VideoInfo& stream,
                                          const FrameRange& range) {
  auto original = std::make_unique<VideoInput>(
      options.against, like_video(reader_options(options.reading, common), options.against, stream), common, range);
  require_comparable(original->info(), stream);
  return original;
}

/// The frames of one of several processes. The first one checks the boxes.
PartWork check_part(const VerifyOptions& options, const Common& common, std::shared_ptr<const Backend> backend,
                    int part, int parts) {
  return [=](Pace& pace) {
    const StreamFile file = open_stream_file(options.input);
    const std::vector<std::uint64_t> borders =
        part_borders(probe(*file.source, limits(common)).gops, 0, std::numeric_limits<std::uint64_t>::max(), parts);
    file.source->seek(0);
    DecoderParams params = decoder_params(common);
    params.keep_partial = true;
    params.differences = true;
    params.first_frame = borders[static_cast<std::size_t>(part)];
    params.end_frame = borders[static_cast<std::size_t>(part) + 1];
    Checked c;
    std::vector<FrameError> errors;
    if (params.first_frame < params.end_frame) {
      Decoder decoder(*file.source, params, backend.get());
      const VideoInfo& info = decoder.output();
      std::unique_ptr<VideoInput> original;
      try {
        // Opened up to its end, because it may have frames after the last part.
        if (!options.against.empty())
          original =
              open_original(options, common, info, {params.first_frame, std::numeric_limits<std::uint64_t>::max()});
      } catch (const Error& e) {
        if (params.first_frame == 0 || e.kind() != ErrorKind::kBadArgument) throw;
        c.same_count = false;  // it ends before this part begins
      }
      ThreadPool pool(common.threads);
      Prefetch gops([&] { return decoder.make_gop(); }, 2, [&](Gop& gop) { return decoder.exchange(gop); });
      while (const Gop* gop = gops.next()) {
        if (original && c.same_count) {
          Gop wanted(info, gop->frames());
          c.same_count = original->read(wanted) && wanted.frames() == gop->frames();
          if (c.same_count)
            for (const FrameError& e : VideoError::measure(*gop, wanted, info.format, pool)) errors.push_back(e);
        }
        c.found.frames += static_cast<std::uint64_t>(gop->frames());
        pace.done(static_cast<std::uint64_t>(gop->frames()));
      }
      if (original && c.same_count && part + 1 == parts) {
        Gop rest(info, 1);
        c.longer = original->read(rest);
      }
      c.found.gops = decoder.stats().gops;
      c.found.damaged_gops = decoder.stats().damaged_gops;
      c.found.damage = decoder.stats().damage;
    }
    ByteWriter out;
    out.varint(c.found.frames);
    out.varint(c.found.gops);
    out.varint(c.found.damaged_gops);
    out.varint(c.same_count);
    out.varint(c.longer);
    out.varint(c.found.damage.size());
    for (const std::string& line : c.found.damage) out.text(line.substr(0, kMaxTextBytes), kMaxTextBytes);
    put_errors(out, errors);
    return std::move(out.bytes);
  };
}

/// All parts, and the boxes.
Checked check_parts(Processes& processes, const PartWork& own, ByteSource& source, Progress& progress,
                    VideoError& error) {
  Checked all;
  const auto add = [&](const std::string& line) {
    std::vector<std::string>& lines = all.found.damage;
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  for (const std::vector<std::uint8_t>& bytes :
       do_parts(processes, own, [&](std::uint64_t frames) { progress.update(frames); })) {
    ByteReader in(bytes.data(), bytes.size(), "results of a process");
    std::uint64_t frames = 0, gops = 0, damaged = 0, same = 0, longer = 0, lines = 0;
    in.varint(frames);
    in.varint(gops);
    in.varint(damaged);
    in.varint(same);
    in.varint(longer);
    in.varint(lines);
    all.found.frames += frames;
    all.found.gops += gops;
    all.found.damaged_gops += damaged;
    all.same_count = all.same_count && same != 0;
    all.longer = longer != 0;
    for (std::string line; lines > 0; --lines) {
      in.text(line, kMaxTextBytes);
      add(line);
    }
    error.add(take_errors(in));
  }
  for (const std::string& line : check_boxes(source)) add(line);
  return all;
}

Checked check_alone(const VerifyOptions& options, const Common& common, StreamVerifier& verifier, Progress& progress,
                    VideoError& error) {
  const VideoInfo& info = verifier.output();
  std::unique_ptr<VideoInput> original;
  if (!options.against.empty()) original = open_original(options, common, info, {});
  ThreadPool pool(original ? common.threads : 1);
  Checked c;
  std::uint64_t frames = 0;
  Prefetch gops([&] { return verifier.make_gop(); }, 2, [&](Gop& gop) { return verifier.pull(gop); });
  while (const Gop* gop = gops.next()) {
    if (original && c.same_count) {
      Gop wanted(info, gop->frames());
      c.same_count = original->read(wanted) && wanted.frames() == gop->frames();
      if (c.same_count) error.add(*gop, wanted, pool);
    }
    frames += static_cast<std::uint64_t>(gop->frames());
    progress.update(frames);
  }
  c.found = verifier.finish();
  if (original && c.same_count && c.found.damage.empty()) {
    Gop rest(info, 1);
    c.longer = original->read(rest);
  }
  return c;
}

std::string job_of(const VerifyOptions& o) { return o.input + "\n" + o.against; }

/// Verifies a volume. `device`: this process's GPU, if --device names one that can decode the volume.
std::shared_ptr<const Backend> backend_of_volume(const VerifyOptions& given, const std::string& device,
                                                 const Common& common) {
  const bool predictive = given.device == "auto" &&
                          probe(*open_stream_file(given.input).source, limits(common)).profile == Profile::kPredictive;
  return volume_backend(predictive ? given.device : device, 0, given.input, common);
}

/// What the others are called for.
enum class Wanted : std::uint8_t { kVideo, kVolume };

/// In all processes but the first.
void help_verify(Processes& processes, const VerifyOptions& options, const Common& common, const std::string& device) {
  const std::optional<CalledJob> call = wait_for_call(processes);
  if (!call) return;
  if (static_cast<Wanted>(call->details.at(0)) == Wanted::kVolume) {
    help_decode_volume(processes, options.input, {}, common, [&] {
      call->check(job_of(options));
      return backend_of_volume(options, device, common);
    });
    return wait_for_farewell(processes);
  }
  do_part(processes, [&](Pace& pace) {
    call->check(job_of(options));
    return check_part(options, common, choose_backend(device, decoder_params(common).limits.memory, 0),
                      processes.rank(), processes.size())(pace);
  });
  wait_for_farewell(processes);
}

int run(const VerifyOptions& given, const Common& given_common, const Command& app) {
  VerifyOptions options = given;
  Common common = given_common;
  WorkerGroup workers(
      "verify", options.device, common,
      [&given](Processes& end, const std::string& device, const Common& own) { help_verify(end, given, own, device); });
  if (workers.helped()) return kExitDone;
  Processes* const processes = workers.processes();
  for (const char* option : {"--size", "--pix-fmt", "--fps", "--format", "--series"})
    require(!app.typed(option) || !options.against.empty(), ErrorKind::kBadArgument,
            std::string(option) + " describes the file of --against, which is missing");
  if (volume_in(options.input, common)) {
    require(!options.json, ErrorKind::kUnsupported, "'" + options.input + "' holds a volume: --json is for videos");
    return verify_volume(
        options.input, options.against,
        {volume_size(options.reading), options.voxel_type, options.reading.format, options.reading.allow_outside,
         options.series},
        common, backend_of_volume(given, options.device, common),
        {processes, [&] { workers.call(job_of(options), {static_cast<std::uint8_t>(Wanted::kVolume)}); }});
  }
  const DecoderParams params = decoder_params(common);
  const StreamFile file = open_stream_file(options.input);
  const std::shared_ptr<const Backend> backend = choose_backend(options.device, params.limits.memory, 0);
  StreamVerifier verifier(*file.source, params, backend.get());
  const StreamInfo& stream = verifier.info();
  const VideoInfo& info = verifier.output();
  require(!(options.input == "-" && options.against == "-"), ErrorKind::kBadArgument,
          "standard input cannot be the stream and the original");
  const bool original = !options.against.empty();
  const bool together =
      processes && options.input != "-" && options.against != "-" && file.source->seekable() && stream.has_index;
  if (processes && !together)
    log::info("one process verifies '{}', the others are idle: without an index in a file they cannot find its GOPs",
              options.input);
  Checked checked;
  VideoError error(info);
  {
    Progress progress(common, "verify", info.frames);
    if (together) {
      workers.call(job_of(options), {static_cast<std::uint8_t>(Wanted::kVideo)});
      checked = check_parts(*processes, check_part(options, common, backend, 0, processes->size()), *file.source,
                            progress, error);
    } else {
      checked = check_alone(options, common, verifier, progress, error);
    }
    progress.finish();
  }
  const VerifyResult& found = checked.found;
  const std::uint64_t frames = found.frames;
  const bool same_count = checked.same_count;
  if (options.json)
    print_json(options, found, frames, stream.lossless, original && same_count ? &error : nullptr);
  else
    for (const std::string& line : found.damage) fmt::print("{}: {}\n", options.input, log::printable(line));
  require(found.damage.empty(), ErrorKind::kBadStream,
          fmt::format("'{}' is damaged: {} of {}", options.input, found.damaged_gops, count_of(found.gops, "GOP")));
  require(frames > 0, ErrorKind::kBadStream, "'" + options.input + "' holds no frames");
  if (original) {
    require(
        same_count && !checked.longer, ErrorKind::kMismatch,
        fmt::format("'{}' holds {}, '{}' another number", options.input, count_of(frames, "frame"), options.against));
    require(!stream.lossless || error.identical(), ErrorKind::kMismatch,
            fmt::format("'{}' is a lossless stream, but {} from '{}', by up to {}", options.input,
                        count_of(error.total().different, "sample", "differs", "differ"), options.against,
                        error.total().max));
  }
  std::string result = fmt::format("{} in {}, {}", count_of(frames, "frame"), count_of(found.gops, "GOP"),
                                   stream.lossless ? "lossless" : "lossy");
  if (original)
    result += error.identical() ? ", identical to " + options.against
                                : ", PSNR " + format_psnr(error.psnr()) + " against " + options.against;
  if (!options.json) fmt::print("{}: OK, {}\n", options.input, result);
  return kExitDone;
}

/// The streams to check, of what was typed.
FoundFiles streams_of(const VerifyOptions& typed) {
  FoundFiles all;
  std::vector<std::string> inputs = typed.more;
  inputs.insert(inputs.begin(), typed.input);
  for (const std::string& input : inputs) {
    if (!typed.recursive || !std::filesystem::is_directory(input)) {
      all.taken.push_back(input);
      continue;
    }
    FoundFiles found = find_files(input, is_stream_in_folder);
    require(!found.taken.empty(), ErrorKind::kBadArgument, "there is no stream in the folder '" + input + "'");
    all.taken.insert(all.taken.end(), found.taken.begin(), found.taken.end());
    all.others += found.others;
  }
  return all;
}

/// What became of one of many streams.
struct CheckedFile {
  std::string path;
  int code = kExitDone;
  std::string error{};
  std::vector<std::string> warnings{};
};

std::string text_of_report(const std::vector<CheckedFile>& checked, std::uint64_t others) {
  const auto failed = static_cast<std::uint64_t>(
      std::count_if(checked.begin(), checked.end(), [](const CheckedFile& o) { return o.code != kExitDone; }));
  Json json;
  json.begin_object();
  json.member("writer", std::string("trivelet ") + kLibraryVersion);
  json.member("command", std::string("verify"));
  json.member("intact", checked.size() - failed);
  json.member("failed", failed);
  json.member("other", others);
  json.begin_array("files");
  for (const CheckedFile& found : checked) {
    json.begin_object();
    json.member("input", found.path);
    json.member("state", std::string(found.code == kExitDone ? "intact" : "failed"));
    put_digest(json, "input", found.path);
    if (found.code != kExitDone) {
      json.member("exit_code", found.code);
      json.member("error", found.error);
    }
    json.begin_array("warnings");
    for (const std::string& warning : found.warnings) json.value(warning);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.text();
}

/// Runs `check` and keeps what went wrong.
CheckedFile checked_file(const std::string& path, const std::function<void()>& check) {
  CheckedFile found{path};
  const std::size_t warnings_before = log::warnings().size();
  try {
    check();
  } catch (const Error& e) {
    found.code = exit_code(e.kind());
    found.error = in_options(e.what());
  } catch (const std::bad_alloc&) {
    found.code = kExitNoMemory;
    found.error = "out of memory";
  }
  if (found.code != kExitDone) report_failure(path, found.error);
  const std::vector<std::string> all = log::warnings();
  found.warnings.assign(all.begin() + static_cast<std::ptrdiff_t>(warnings_before), all.end());
  return found;
}

/// One file, or many. Then the exit code is that of the first failure.
int run_all(const VerifyOptions& typed, const Common& common, const Command& app) {
  const auto run_named = [&](const VerifyOptions& one) {
    return naming(one.input, [&] { return run(one, common, app); });
  };
  if (typed.more.empty() && !typed.recursive && typed.report.empty()) {
    std::error_code none;
    require(!std::filesystem::is_directory(typed.input, none), ErrorKind::kIo,
            "'" + typed.input + "' is a directory; --recursive checks the streams in it");
    return run_named(typed);
  }
  require(typed.against.empty() && !typed.json, ErrorKind::kBadArgument,
          "--against and --json are for one stream; give them with one IN, without --recursive and --report");
  require(typed.report != "-", ErrorKind::kBadArgument,
          "--report -: on standard output is a line for each stream; name a file");
  require(place_of_process().size <= 1, ErrorKind::kBadArgument,
          "several inputs are for one process; give mpirun one file at a time");
  const FoundFiles files = streams_of(typed);
  const auto report = typed.report.empty() ? nullptr : std::make_unique<FileSink>(typed.report, common.overwrite);
  int code = kExitDone;
  std::vector<CheckedFile> checked;
  std::size_t failed = 0;
  for (const std::string& file : files.taken) {
    VerifyOptions one = typed;
    one.input = file;
    checked.push_back(checked_file(file, [&] { run_named(one); }));
    if (checked.back().code == kExitDone) continue;
    if (code == kExitDone) code = checked.back().code;
    ++failed;
  }
  if (report) {
    const std::string text = text_of_report(checked, files.others);
    report->write(text.data(), text.size());
    report->commit();
  }
  std::string text = fmt::format("{} intact, {} failed", files.taken.size() - failed, failed);
  if (files.others > 0) text += ", " + count_of(files.others, "other file") + " left";
  log::info("{}", text);
  return code;
}

}  // namespace

Action define_verify(Command& app, Common& common) {
  auto options = std::make_shared<VerifyOptions>();
  app.add_option("IN", options->input, "Stream to check; - = standard input").required();
  app.add_option("MORE", options->more, "Further streams");
  app.add_flag("--recursive", options->recursive,
               "Check all streams in folders that are named, and below them. A file with another name than .tvl is a "
               "stream if it begins like one");
  app.add_option("--report", options->report,
                 "Write a report in JSON: state, MD5 digest, warnings and errors of every stream")
      .type_name("FILE");
  app.add_option("--against", options->against,
                 "Compare with this video: a lossless stream must be identical (otherwise exit code 6), of a lossy one "
                 "the PSNR is printed")
      .type_name("ORIG");
  app.add_flag("--json", options->json, "Print JSON; the exit code is the same");
  add_input_options(app, options->reading);
  app.add_option("--type", options->voxel_type, "Type of a raw volume, as for encode")
      .type_name("T")
      .group("Raw input and pipes");
  add_series_options(app, options->series, "Raw input and pipes");
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_device_option(app, options->device, true);
  add_work_options(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  return [options, &common, app] { return run_all(*options, common, app); };
}

}  // namespace trivelet::cli
