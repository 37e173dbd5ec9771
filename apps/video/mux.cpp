// trivelet mux, trivelet demux: a stream into Matroska and out of it, byte for byte.

#include <vector>

#include "apps/cli/log.h"
#include "apps/video/video.h"
#include "trivelet/edit.h"

namespace trivelet::cli {

namespace {

struct MuxOptions {
  std::string input;
  std::string output;
  FilmOptions film;
};

/// Copies the stream of `file` to `output`; returns what is damaged in it.
std::vector<std::string> copy(const StreamFile& file, io::StreamOutput& output, std::uint64_t& bytes) {
  CheckedSource source(*file.source);
  std::vector<std::byte> buffer(std::size_t{1} << 18);
  while (const std::size_t got = source.read(buffer.data(), buffer.size())) {
    output.write(buffer.data(), got);
    bytes += got;
  }
  return source.finish();
}

/// Throws unless the stream has its header, index and end: Matroska gets its times and packets from it.
void require_whole(const StreamFile& file, const std::string& input, const Limits& limits) {
  require(file.source->seekable(), ErrorKind::kBadArgument,
          "'" + input + "': a pipe cannot be checked first; use a file");
  const StreamInfo info = probe(*file.source, limits);
  require(info.complete && info.index_damage.empty() && info.header_damage.empty(), ErrorKind::kBadStream,
          "'" + input + "' is damaged or cut short; 'trivelet extract --keep-partial' keeps what is intact");
  file.source->seek(0);
}

int run_mux(const MuxOptions& options, const Common& common) {
  check_output(options.input, options.output, true);
  require(is_matroska_name(options.output), ErrorKind::kBadArgument, "'" + options.output + "' does not end in .mkv");
  require_tvl_file(options.input);
  const StreamFile file = open_stream_file(options.input);
  require_whole(file, options.input, limits(common));
  const auto output =
      open_stream_output(options.output, common, side_streams_for(options.input, file.side_streams, options.film, {}));
  std::uint64_t bytes = 0;
  const std::vector<std::string> damage = copy(file, *output, bytes);
  for (const std::string& line : damage) log::warn("'{}': {}", options.input, line);
  require(damage.empty(), ErrorKind::kBadStream,
          "'" + options.input +
              "' is damaged, and nothing was written; 'trivelet extract --keep-partial' writes what " +
              "is intact into Matroska, too");
  output->commit();
  warn_of_remarks(options.output, output->remarks());
  log::info("{} bytes of pictures", bytes);
  return kExitDone;
}

int run_demux(const MuxOptions& options, const Common& common) {
  check_output(options.input, options.output, true);
  require(!is_matroska_name(options.output), ErrorKind::kBadArgument,
          "'" + options.output + "': demux writes the stream alone, a .tvl file");
  require(options.input != "-", ErrorKind::kBadArgument, "a pipe cannot be checked first; use a file");
  require(io::holds_stream(options.input), ErrorKind::kBadStream,
          "'" + options.input + "' is not a Matroska file with a Trivelet stream");
  const StreamFile file = open_stream_file(options.input);
  (void)probe(*file.source, limits(common));  // of what is no stream nothing is written
  file.source->seek(0);
  const auto output = open_stream_output(options.output, common, {});
  std::uint64_t bytes = 0;
  const std::vector<std::string> damage = copy(file, *output, bytes);
  output->commit();
  log::info("{} bytes", bytes);
  for (const std::string& line : damage) log::warn("'{}': {}", options.input, line);
  require(damage.empty(), ErrorKind::kBadStream,
          "'" + options.input + "' is damaged or cut short, and so is '" + options.output +
              "', which has its bytes as they are; 'trivelet extract --keep-partial' keeps what is intact");
  return kExitDone;
}

}  // namespace

Action define_mux(Command& app, Common& common) {
  auto options = std::make_shared<MuxOptions>();
  app.add_option("IN", options->input, "Stream, a .tvl file or one in Matroska").required();
  app.add_option("-o,--output,OUT", options->output, "Film to write, e.g. film.mkv").required();
  add_film_options(app, options->film);
  add_limit_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  app.add_footer(
      "'--tracks-from in.mp4' adds the sound, subtitles, chapters, attachments and tags of the file that the stream "
      "was\nencoded from. 'trivelet demux' restores the stream byte for byte.");
  return [options, &common] { return naming(options->input, [&] { return run_mux(*options, common); }); };
}

Action define_demux(Command& app, Common& common) {
  auto options = std::make_shared<MuxOptions>();
  app.add_option("IN", options->input, "Matroska file with a Trivelet stream").required();
  app.add_option("-o,--output,OUT", options->output, "Stream to write, e.g. out.tvl; - = standard output").required();
  add_limit_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [options, &common] { return naming(options->input, [&] { return run_demux(*options, common); }); };
}

}  // namespace trivelet::cli
