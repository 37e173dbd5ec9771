// trivelet compare: two videos, sample by sample.

#include <spdlog/fmt/fmt.h>

#include <cctype>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/cluster/parts.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

namespace {

struct CompareOptions {
  std::string a;
  std::string b;
  bool json = false;
  std::string frames_csv;
  std::uint64_t frames = std::numeric_limits<std::uint64_t>::max();
  double min_psnr = -std::numeric_limits<double>::infinity();
  InputOptions reading;
  std::string voxel_type;
  SeriesChoice series;
};

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return fmt::format("{:.3g} %", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void print_text(const VideoInfo& info, const VideoError& error) {
  const PlaneError total = error.total();
  fmt::print("frames       {} ({})\n", error.frames(), describe(info));
  std::string planes;
  for (int c = 0; c < info.format.components(); ++c)
    planes +=
        fmt::format("  {} {}", component_name(info.format, c), format_psnr(error.plane(c).psnr(info.format.bits)));
  fmt::print("PSNR         {}  ({})\n", format_psnr(error.psnr()), planes.substr(2));
  fmt::print("SSIM         {}\n", std::isnan(error.ssim()) ? "picture too small" : fmt::format("{:.6f}", error.ssim()));
  fmt::print("max error    {}\n", total.max);
  fmt::print("different    {} of {} ({})\n", total.different, count_of(total.samples, "sample"),
             percent(total.different, total.samples));
  if (error.identical()) fmt::print("identical\n");
}

void print_json(const CompareOptions& options, const VideoInfo& info, const VideoError& error) {
  const auto put_error = [&](Json& json, const PlaneError& e) {
    json.member("psnr", e.psnr(info.format.bits));
    json.member("mse", e.squared / static_cast<double>(e.samples));
    json.member("max_error", e.max);
    json.member("different", e.different);
    json.member("samples", e.samples);
  };
  Json json;
  json.begin_object();
  json.member("a", options.a);
  json.member("b", options.b);
  json.member("width", info.width);
  json.member("height", info.height);
  json.member("pixel_format", trivelet::to_string(info.format));
  json.member("frames", error.frames());
  json.member("identical", error.identical());
  put_error(json, error.total());
  json.member("ssim", error.ssim());
  json.begin_object("planes");
  for (int c = 0; c < info.format.components(); ++c) {
    json.begin_object(component_name(info.format, c));
    put_error(json, error.plane(c));
    json.end_object();
  }
  json.end_object();
  json.end_object();
  fmt::print("{}", json.text());
}

std::string csv_header(const PixelFormat& format) {
  std::string line = "frame,psnr";
  for (int c = 0; c < format.components(); ++c) line += ",psnr_" + component_name(format, c);
  return line + ",ssim,max_error,different\n";
}

std::string csv_line(const PixelFormat& format, std::uint64_t frame, const FrameError& error) {
  const PlaneError total = error.total();
  std::string line = fmt::format("{},{:.4f}", frame, total.psnr(format.bits));
  for (int c = 0; c < format.components(); ++c)
    line += fmt::format(",{:.4f}", error.planes[static_cast<std::size_t>(c)].psnr(format.bits));
  return line + fmt::format(",{:.6f},{},{}\n", error.ssim, total.max, total.different);
}

/// Two videos that are compared.
struct Pair {
  std::unique_ptr<VideoInput> a;
  std::unique_ptr<VideoInput> b;
};

// The typed options describe the file that is not .tvl. A raw file takes the other properties from the other video.
Pair open_pair(const CompareOptions& options, const Common& common, const FrameRange& range) {
  const io::ReaderOptions typed = reader_options(options.reading, common);
  const bool a_is_tvl = is_tvl_file(options.a);
  const bool b_is_tvl = is_tvl_file(options.b);
  const auto open = [&](const std::string& path, bool alone, const VideoInput* like) {
    const io::ReaderOptions reading = alone ? io::ReaderOptions{} : typed;
    return std::make_unique<VideoInput>(path, like ? like_video(reading, path, like->info()) : reading, common, range);
  };
  Pair pair;
  if (b_is_tvl) {
    pair.b = open(options.b, !a_is_tvl, nullptr);
    pair.a = open(options.a, false, pair.b.get());
  } else {
    pair.a = open(options.a, a_is_tvl, nullptr);
    pair.b = open(options.b, false, pair.a.get());
  }
  return pair;
}

/// One of them ends before the other.
struct Shorter {
  bool is_a = false;
  std::uint64_t frames = 0;  ///< that it has
};

/// Compares frame by frame. `errors` gets those of consecutive frames.
std::optional<Shorter> compare_frames(Pair& pair, const Common& common,
                                      const std::function<void(const std::vector<FrameError>&)>& errors) {
  const VideoInfo& info = pair.a->info();
  ThreadPool pool(common.threads);
  const int capacity = buffer_frames(info);
  const auto read_ahead = [&](VideoInput& video) {
    return Prefetch([=] { return Gop(info, capacity); }, 2, [&video](Gop& gop) { return video.read(gop); });
  };
  Prefetch left = read_ahead(*pair.a);
  Prefetch right = read_ahead(*pair.b);
  for (std::uint64_t frames = 0;;) {
    const Gop* x = left.next();
    const Gop* y = right.next();
    const int in_x = x ? x->frames() : 0;
    const int in_y = y ? y->frames() : 0;
    if (in_x != in_y) return Shorter{in_x < in_y, frames + static_cast<std::uint64_t>(std::min(in_x, in_y))};
    if (!x) return std::nullopt;
    frames += static_cast<std::uint64_t>(in_x);
    errors(VideoError::measure(*x, *y, info.format, pool));
  }
}

void refuse_lengths(const CompareOptions& options, const Shorter& shorter) {
  fail(ErrorKind::kMismatch, fmt::format("the videos differ in length: '{}' ends after {}, the other goes on",
                                         shorter.is_a ? options.a : options.b, count_of(shorter.frames, "frame")));
}

// ------------------------------------------------------------------------------------------------ several processes

std::vector<GopInfo> gops_of(const std::string& path, const Limits& limits) {
  if (path == "-" || !is_tvl_file(path)) return {};
  const StreamFile file = open_stream_file(path);
  return file.source->seekable() ? probe(*file.source, limits).gops : std::vector<GopInfo>{};
}

/// The GOPs where parts may begin: those of the only stream, or of the longer one of two. Empty: one process compares.
std::vector<GopInfo> common_gops(const CompareOptions& options, const Common& common) {
  if (options.a == "-" || options.b == "-") return {};
  std::vector<GopInfo> a = gops_of(options.a, limits(common)), b = gops_of(options.b, limits(common));
  return a.size() < b.size() ? b : a;
}

/// The frames of one of several processes.
PartWork compare_part(const CompareOptions& options, const Common& common, int part, int parts) {
  return [=](Pace& pace) {
    const std::vector<std::uint64_t> borders = part_borders(common_gops(options, common), 0, options.frames, parts);
    FrameRange range;
    range.first = borders[static_cast<std::size_t>(part)];
    range.end = borders[static_cast<std::size_t>(part) + 1];
    std::optional<Shorter> shorter;
    std::vector<FrameError> errors;
    bool missing = false;  // one video ends before this part begins; the earlier parts report where
    if (range.first < range.end) {
      Pair pair;
      try {
        pair = open_pair(options, common, range);
      } catch (const Error& e) {
        if (range.first == 0 || e.kind() != ErrorKind::kBadArgument) throw;
        missing = true;
      }
      if (!missing)
        shorter = compare_frames(pair, common, [&](const std::vector<FrameError>& some) {
          errors.insert(errors.end(), some.begin(), some.end());
          pace.done(some.size());
        });
    }
    ByteWriter out;
    out.varint(missing);
    out.varint(shorter.has_value());
    out.varint(shorter && shorter->is_a);
    out.varint(range.first + (shorter ? shorter->frames : 0));
    put_errors(out, errors);
    return std::move(out.bytes);
  };
}

std::optional<Shorter> compare_parts(Processes& processes, const PartWork& own, Progress& progress,
                                     const std::function<void(const std::vector<FrameError>&)>& errors) {
  for (const std::vector<std::uint8_t>& found :
       do_parts(processes, own, [&](std::uint64_t frames) { progress.update(frames); })) {
    ByteReader in(found.data(), found.size(), "results of a process");
    std::uint64_t missing = 0, is_shorter = 0, is_a = 0, frames = 0;
    in.varint(missing);
    in.varint(is_shorter);
    in.varint(is_a);
    in.varint(frames);
    if (is_shorter) return Shorter{is_a != 0, frames};
    require(!missing, ErrorKind::kBadStream,
            "one of the videos ends before frame " + std::to_string(frames) + ", which its parts before did not show");
    errors(take_errors(in));
  }
  return std::nullopt;
}

std::string job_of(const CompareOptions& o) { return fmt::format("{}\n{}\n{}", o.a, o.b, o.frames); }

void help_compare(Processes& processes, const CompareOptions& options, const Common& common) {
  const std::optional<CalledJob> call = wait_for_call(processes);
  if (!call) return;
  do_part(processes, [&](Pace& pace) {
    call->check(job_of(options));
    return compare_part(options, common, processes.rank(), processes.size())(pace);
  });
  wait_for_farewell(processes);
}

int run(const CompareOptions& options, const Common& given_common) {
  Common common = given_common;
  std::string device = "cpu";
  WorkerGroup workers("compare", device, common, [&options](Processes& end, const std::string&, const Common& own) {
    help_compare(end, options, own);
  });
  if (workers.helped()) return kExitDone;
  Processes* const processes = workers.processes();
  require(!(options.a == "-" && options.b == "-"), ErrorKind::kBadArgument, "standard input cannot be both videos");
  require(!common.overwrite || !options.frames_csv.empty(), ErrorKind::kBadArgument,
          "-y replaces the file of --frames-csv, which is missing");
  require(!(options.json && options.frames_csv == "-"), ErrorKind::kBadArgument,
          "--json and --frames-csv - would both print to standard output");
  const VolumeTyped typed_volume{volume_size(options.reading), options.voxel_type, options.reading.format,
                                 options.reading.allow_outside, options.series};
  if (wants_volume(options.a, typed_volume) || wants_volume(options.b, typed_volume) || volume_in(options.a, common) ||
      volume_in(options.b, common)) {
    if (processes)
      log::info("'{}' and '{}' are volumes: one of {} processes compares them, the others are idle", options.a,
                options.b, processes->size());
    return compare_volumes(options.a, options.b, typed_volume, options.json, options.frames_csv, options.min_psnr,
                           common);
  }
  FrameRange range;
  range.end = options.frames;
  Pair pair = open_pair(options, common, range);
  const VideoInfo info = pair.a->info();
  require_comparable(info, pair.b->info());
  std::unique_ptr<FileSink> csv;
  if (!options.frames_csv.empty()) {
    csv = std::make_unique<FileSink>(options.frames_csv, common.overwrite);
    const std::string header = csv_header(info.format);
    csv->write(header.data(), header.size());
  }

  VideoError error(info);
  std::uint64_t line_number = 0;
  {
    Progress progress(common, "compare", info.frames);
    const auto add = [&](const std::vector<FrameError>& errors) {
      error.add(errors);
      for (std::size_t i = 0; csv && i < errors.size(); ++i) {
        const std::string line = csv_line(info.format, line_number++, errors[i]);
        csv->write(line.data(), line.size());
      }
    };
    std::optional<Shorter> shorter;
    if (processes && !common_gops(options, common).empty()) {
      pair = {};
      workers.call(job_of(options));
      shorter = compare_parts(*processes, compare_part(options, common, 0, processes->size()), progress, add);
    } else {
      if (processes) log::info("one process compares them, the others are idle: only streams in files can be divided");
      shorter = compare_frames(pair, common, [&](const std::vector<FrameError>& errors) {
        add(errors);
        progress.update(error.frames());
      });
    }
    if (shorter) refuse_lengths(options, *shorter);
    progress.finish();
  }
  require(error.frames() > 0, ErrorKind::kBadStream, "there are no frames to compare");
  if (csv) csv->commit();
  if (options.json)
    print_json(options, info, error);
  else if (options.frames_csv != "-")
    print_text(info, error);
  require(error.psnr() >= options.min_psnr, ErrorKind::kMismatch,
          fmt::format("PSNR {} is below {} dB", format_psnr(error.psnr()), options.min_psnr));
  return kExitDone;
}

}  // namespace

Action define_compare(Command& app, Common& common) {
  auto options = std::make_shared<CompareOptions>();
  app.add_option("A", options->a, "A video or .tvl stream; - = standard input").required();
  app.add_option("B", options->b, "The other video, of the same size, format and length").required();
  app.add_flag("--json", options->json, "Print JSON; the PSNR of identical videos is null").group("Output");
  app.add_option("--frames-csv", options->frames_csv,
                 "Also write a line of figures for each frame; - = print these instead")
      .type_name("FILE")
      .group("Output");
  add_overwrite_option(app, common);
  app.add_option("--frames", options->frames, "Compare only the first N frames")
      .positive()
      .type_name("N")
      .group("Selection and checks");
  app.add_option("--min-psnr", options->min_psnr,
                 "Exit code 6 if the overall PSNR is below DB; inf = must be identical")
      .type_name("DB")
      .group("Selection and checks");
  add_input_options(app, options->reading);
  app.add_option("--type", options->voxel_type, "Type of a raw volume, as for encode")
      .type_name("T")
      .group("Raw input and pipes");
  add_series_options(app, options->series, "Raw input and pipes");
  add_limit_options(app, common);
  add_work_options(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  app.add_footer(
      "PSNR: peak 2^bits - 1; overall over all samples of all planes. SSIM: first plane, windows of 8x8 samples every "
      "4\n"
      "samples (as FFmpeg's ssim filter). Exit code 6 when size, format or length differ.");
  return [options, &common] { return run(*options, common); };
}

}  // namespace trivelet::cli
