// trivelet join: appends streams that were encoded alike, without coding again.

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "apps/cli/log.h"
#include "apps/video/video.h"
#include "trivelet/edit.h"

namespace trivelet::cli {

namespace {

struct JoinOptions {
  std::vector<std::string> inputs;
  std::string output;
  FilmOptions film;
};

/// What is known of a file before any is written.
struct Part {
  std::string name;
  StreamFile file;
};

/// The side streams of all files, each in the time of its own frames.
io::SideStreamOptions side_streams_of(const std::vector<Part>& parts, const std::vector<JoinInput>& inputs,
                                      const FilmOptions& film, const Limits& limits) {
  if (film.only_video || !film.tracks_from.empty()) return side_streams_for("-", {}, film, {});
  io::SideStreamOptions taken;
  const JoinPlaces places = join_places(inputs, limits);
  const auto microseconds = [&](std::int64_t pts) {
    return std::llround(static_cast<double>(pts) * places.time_base.value() * 1e6);
  };
  bool begun = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const JoinPlace& place = places.of[i];
    if (place.empty) continue;
    // Packets of a part after its last frame are dropped in favour of the next part.
    if (!taken.parts.empty() && taken.parts.back().end_us == INT64_MAX)
      taken.parts.back().end_us = microseconds(place.begin_pts);
    const io::SideStreamOptions own = side_streams_for(parts[i].name, parts[i].file.side_streams, film, {});
    if (!own.from.empty()) {
      taken.parts.push_back({own.from, own.clock_offset_us, microseconds(place.shift_pts)});
      if (begun) taken.parts.back().begin_us = microseconds(place.begin_pts);
    } else if (!taken.parts.empty()) {
      log::warn("'{}' has neither sound nor subtitles", parts[i].name);
    }
    begun = true;
  }
  if (taken.parts.empty()) return taken;
  require(film.audio != "opus" && film.audio != "flac", ErrorKind::kBadArgument,
          "--audio " + film.audio +
              ": the sound of several files is joined unchanged; --tracks-from FILE takes that of one file");
  taken.from = taken.parts[0].from;
  taken.clock_offset_us = taken.parts[0].clock_offset_us;
  taken.sound = film.audio != "none";
  taken.map = film.map;
  return taken;
}

int run(const JoinOptions& options, const Common& common, const Command& app) {
  std::vector<Part> parts;
  io::SideStreams lost;
  std::vector<JoinInput> inputs;
  for (const std::string& input : options.inputs) {
    check_output(input, options.output, true);
    require_tvl_file(input);
    parts.push_back({input, open_stream_file(input)});
    if (lost.empty()) lost = parts.back().file.side_streams;
    inputs.push_back({input, parts.back().file.source.get()});
  }
  io::SideStreamOptions side_streams;
  if (is_matroska_name(options.output)) {
    side_streams = side_streams_of(parts, inputs, options.film, limits(common));
  } else {
    refuse_film_options(options.output, app);
    warn_of_loss(options.output, lost, options.film);
  }
  const auto sink = open_stream_output(options.output, common, side_streams);
  const std::unique_ptr<ReadBack> again = read_back_of(*sink);
  const JoinResult result = join(inputs, *sink, limits(common), again.get());
  sink->commit();
  warn_of_remarks(options.output, sink->remarks());
  for (std::size_t i = 0; i < options.inputs.size(); ++i) warn_of_lost_index(options.inputs[i], result.index_damage[i]);
  log::info("{} in {}, {} bytes", count_of(result.frames, "frame"), count_of(result.gops, "GOP"), result.bytes);
  return kExitDone;
}

}  // namespace

Action define_join(Command& app, Common& common) {
  auto options = std::make_shared<JoinOptions>();
  app.add_option("IN", options->inputs, "Streams in order of time; files only, because their indexes are at their ends")
      .required();
  app.add_option("-o,--output", options->output, "Stream to write; - = standard output").required().type_name("OUT");
  add_film_options(app, options->film);
  add_overwrite_option(app, common);
  add_limit_options(app, common, false);
  add_log_options(app, common);
  app.add_footer(
      "Streams can be joined if they differ in length only. Parts of a video that were encoded with --joinable give "
      "the\nsame bytes as encoding it at once: see 'trivelet encode --help'. Sound, subtitles and chapters of films "
      "(.mkv) are\nappended as the pictures are. Parts that 'extract' cut out of one film give those of that film.");
  return [options, &common, app] { return run(*options, common, app); };
}

}  // namespace trivelet::cli
