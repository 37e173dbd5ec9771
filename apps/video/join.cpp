// trivelet join: one stream out of several that were encoded alike, without coding again.

#include <filesystem>
#include <memory>
#include <vector>

#include "apps/cli/log.h"
#include "apps/video/video.h"
#include "codec/join.h"

namespace trivelet::cli {

namespace {

struct Options {
  std::vector<std::string> inputs;
  std::string output;
};

int run(const Options& options, const Common& common) {
  std::vector<std::unique_ptr<ByteSource>> sources;
  bool alone = true;
  std::vector<JoinInput> inputs;
  for (const std::string& input : options.inputs) {
    check_output(input, options.output, true);
    require_tvl_file(input);
    StreamFile file = open_stream_file(input);
    alone = alone && file.company.empty();
    sources.push_back(std::move(file.source));
    inputs.push_back({input, sources.back().get()});
  }
  const auto sink = open_stream_output(options.output, common, {});
  const std::unique_ptr<ReadBack> again = read_back_of(*sink);
  const JoinResult result = join(inputs, *sink, limits(common), again.get());
  sink->commit();
  if (!alone) log::warn("'{}' holds the pictures only: sound and the like are not joined", options.output);
  for (std::size_t i = 0; i < options.inputs.size(); ++i) warn_of_lost_index(options.inputs[i], result.index_damage[i]);
  log::info("{} in {}, {} bytes", count_of(result.frames, "frame"), count_of(result.gops, "GOP"), result.bytes);
  return kExitDone;
}

}  // namespace

Action define_join(Command& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->inputs, "Streams in their order in time; files, since their indexes are at their ends")
      .required();
  app.add_option("-o,--output", options->output, "Stream to write; - = standard output").required().type_name("OUT");
  add_overwrite_option(app, common);
  add_limit_options(app, common, false);
  add_log_options(app, common);
  app.add_footer(
      "Streams fit that differ in their length only. Parts of a video that were encoded with --joinable give the same\n"
      "bytes as encoding it at once: see 'trivelet encode --help'.");
  return [options, &common] { return run(*options, common); };
}

}  // namespace trivelet::cli
