// trivelet truncate, trivelet extract: smaller streams out of finished ones, without decoding a coefficient.

#include <spdlog/fmt/fmt.h>

#include <cmath>

#include "apps/cli/log.h"
#include "apps/cluster/job_call.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "trivelet/edit.h"

namespace trivelet::cli {

namespace {

struct TruncateOptions {
  std::string input;
  std::string output;
  std::string size;
  double bits_per_pixel = 0;
  std::string bit_rate;
  double psnr = 0;
  int layers = 0;
  int reduce = 0;
  int temporal_reduce = 0;
  std::string frames;
  bool keep_partial = false;
  FilmOptions film;
};

/// For a volume whose stream has the errors of its layers, otherwise empty.
std::string quality_of_cut(const RewriteResult& result) {
  const auto layer = static_cast<std::size_t>(result.layers);
  if (layer == 0 || result.cuts.cuts.size() < layer || !result.cuts.cuts[layer - 1].known()) return {};
  const VolumeCuts::Cut& cut = result.cuts.cuts[layer - 1];
  if (cut.mean_squared_error == 0) return ", lossless";
  const std::string layers = fmt::format(", {} of {}", result.layers, count_of(result.cuts.cuts.size(), "layer"));
  const std::string errors =
      fmt::format("PSNR {}, largest error {:g}", format_psnr(psnr_of(result.cuts, layer - 1)), cut.max_error);
  return result.part_of_next ? layers + " (" + errors + ") and a part of the next" : layers + ": " + errors;
}

/// Whether the options keep all of the stream, in a file of the same kind.
bool copies_all(const TruncateOptions& o, const Command& app) {
  for (const char* option : {"--size", "--bpp", "--bitrate", "--psnr", "--layers", "--reduce", "--temporal-reduce",
                             "--frames", "--keep-partial", "--audio", "--only-video", "--tracks-from", "--map"})
    if (app.typed(option)) return false;
  return is_matroska_name(o.input) == is_matroska_name(o.output);
}

/// Bytes are copied, so several processes would wait for the same disk: the first one does it, the others wait.
int run(const std::string& command, const TruncateOptions& options, const Common& common, const Command& app) {
  const std::unique_ptr<Processes> processes = start_processes(command);
  if (processes && processes->rank() > 0) {
    (void)wait_for_call(*processes);
    return kExitDone;
  }
  const JobCall others(processes.get());
  if (copies_all(options, app))
    log::warn("'{}' will be a copy of the whole stream: --reduce, --temporal-reduce, --frames or --layers take a part",
              options.output);
  check_output(options.input, options.output, true);
  RewriteParams params;
  if (!options.size.empty()) {
    params.target_bytes = parse_size(options.size);
    require(params.target_bytes > 0, ErrorKind::kBadArgument, "--size " + options.size + ": a file cannot be empty");
  }
  params.bits_per_pixel = options.bits_per_pixel;
  if (!options.bit_rate.empty()) params.bit_rate = parse_bit_rate(options.bit_rate);
  params.psnr = options.psnr;
  params.layers = options.layers;
  params.reduce = options.reduce;
  params.temporal_reduce = options.temporal_reduce;
  const FrameRange range = frame_range(options.frames, options.input);
  params.first_frame = range.first;
  params.end_frame = range.end;
  params.keep_partial = options.keep_partial;
  params.limits = limits(common);

  require_tvl_file(options.input);
  const StreamFile file = open_stream_file(options.input);
  ByteSource& source = *file.source;
  io::SideStreamOptions side_streams;
  if (is_matroska_name(options.output)) {
    FrameRange kept = range;
    if (range.has_end()) {
      const std::uint64_t frames = probe(source, params.limits).video.frames;
      if (frames > 0 && range.end >= frames) kept.end = FrameRange().end;
      source.seek(0);
    }
    side_streams = side_streams_for(options.input, file.side_streams, options.film, kept);
  } else {
    refuse_film_options(options.output, app);
    warn_of_loss(options.output, file.side_streams, options.film);
  }
  const auto sink = open_stream_output(options.output, common, side_streams);
  const std::unique_ptr<ReadBack> again = read_back_of(*sink);
  const RewriteResult result = rewrite(source, params, *sink, again.get());
  sink->commit();
  warn_of_remarks(options.output, sink->remarks());
  warn_of_lost_index(options.input, result.index_damage);
  std::string quality = quality_of_cut(result);
  if (quality.empty() && result.mean_squared_error >= 0) {
    const double peak = (1 << result.bits) - 1;
    quality = result.mean_squared_error == 0
                  ? ", lossless"
                  : ", predicted PSNR " + format_psnr(10 * std::log10(peak * peak / result.mean_squared_error));
  }
  log::info("{} of {} bytes, {} in {}{}", result.bytes, source.size(), count_of(result.frames, "frame"),
            count_of(result.gops, "GOP"), quality);
  if (range.first != result.first_frame || (range.has_end() && range.end != result.first_frame + result.frames))
    log::info("whole GOPs are kept: frames {}:{} of the source", result.first_frame,
              result.first_frame + result.frames);
  for (const std::string& line : result.damage) log::warn("{}", line);
  require(result.damage.empty(), ErrorKind::kBadStream,
          "'" + options.input + "' is damaged; the output has the intact part");
  return kExitDone;
}

void add_files(Command& app, TruncateOptions& options) {
  app.add_option("IN", options.input, "Stream to read; a file, because its index is at its end").required();
  app.add_option("-o,--output,OUT", options.output, "Stream to write; - = standard output").required();
}

void add_targets(Command& app, TruncateOptions& options, bool required) {
  Command group = app.add_group("How much to keep", required ? 1 : 0, 1);
  group.add_option("--size", options.size, "Most bytes of the output: 10M, 500k").type_name("SIZE");
  group.add_option("--bpp", options.bits_per_pixel, "Most bits per pixel of the output").positive().type_name("X");
  group.add_option("--bitrate", options.bit_rate, "Most bits per second of the output: 8M, 500k").type_name("R");
  group
      .add_option("--layers", options.layers,
                  "Number of whole quality layers to keep; 'trivelet info' lists PSNR and largest error of each layer "
                  "of a volume")
      .range(1, 16)
      .type_name("N");
  group.add_option("--psnr", options.psnr, "PSNR to keep, in dB over all planes, as predicted by the index")
      .range(1.0, 120.0)
      .type_name("DB");
}

void add_common(Command& app, TruncateOptions& options, Common& common) {
  app.add_flag("--keep-partial", options.keep_partial, "Leave damaged GOPs out; the exit code is still 4");
  add_film_options(app, options.film);
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_log_options(app, common);
}

}  // namespace

Action define_truncate(Command& app, Common& common) {
  auto options = std::make_shared<TruncateOptions>();
  add_files(app, *options);
  add_targets(app, *options, true);
  add_common(app, *options, common);
  app.add_footer(
      "Whole quality layers are kept as far as they fit, then parts of the next one. 'trivelet info' lists the sizes "
      "and\nthe predicted PSNR of the layers; for volumes the measured PSNR and largest error. The result can be "
      "truncated again.");
  return [options, &common, app] {
    return naming(options->input, [&] { return run("truncate", *options, common, app); });
  };
}

Action define_extract(Command& app, Common& common) {
  auto options = std::make_shared<TruncateOptions>();
  constexpr const char* kPart = "What to keep";
  add_files(app, *options);
  app.add_option("--reduce", options->reduce, "Halve width and height N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPart);
  app.add_option("--temporal-reduce", options->temporal_reduce, "Halve the frame rate N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPart);
  app.add_option("--frames", options->frames,
                 "Only the GOPs with frame A up to, but not including, frame B; A: and :B leave an end open; also "
                 "times, such as 1.5s:00:01:10")
      .type_name("A:B")
      .group(kPart);
  add_targets(app, *options, false);
  add_common(app, *options, common);
  return
      [options, &common, app] { return naming(options->input, [&] { return run("extract", *options, common, app); }); };
}

}  // namespace trivelet::cli
