// trivelet plan: which bytes of a stream decoding a part of it reads.

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "trivelet/plan.h"

namespace trivelet::cli {

namespace {

struct PlanOptions {
  std::string input;
  DecodingOptions decoding;
  bool json = false;
};

std::unique_ptr<ReadPlan> make_plan(const PlanOptions& options, const Common& common, std::uint64_t bytes) {
  const DecodingOptions& d = options.decoding;
  if (volume_in(options.input, common)) {
    refuse_video_parts(options.input, d);
    const VolumeDecoding volume{d.reduce, d.slices, d.region, d.max_layers, d.max_planes};
    return std::make_unique<ReadPlan>(bytes, volume_decoder_params(volume, options.input, common));
  }
  return std::make_unique<ReadPlan>(bytes, part_params(options.input, d, common));
}

/// Between the headers of two packets of pictures lie those of sound. Another request, with its headers of HTTP, would
/// cost more than so few bytes.
constexpr std::uint64_t kGap = 1024;

/// Where ranges of a stream are in a film, and the headers that locate its packets. What lies close together is one
/// range.
std::vector<ByteRange> in_film(const io::MatroskaSource& film, const std::vector<ByteRange>& ranges) {
  std::vector<ByteRange> all = film.structure();
  for (const ByteRange& range : ranges)
    for (const ByteRange& place : film.places(range.offset, range.size)) all.push_back(place);
  std::sort(all.begin(), all.end(), [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> merged;
  for (const ByteRange& r : all)
    if (!merged.empty() && r.offset <= merged.back().offset + merged.back().size + kGap)
      merged.back().size = std::max(merged.back().size, r.offset + r.size - merged.back().offset);
    else
      merged.push_back(r);
  return merged;
}

int run(const PlanOptions& options, const Common& common) {
  require_tvl_file(options.input);
  const StreamFile file = open_stream_file(options.input);
  ByteSource& source = *file.source;
  require(source.seekable(), ErrorKind::kBadArgument, "a pipe cannot be read in parts; use a file");
  const std::unique_ptr<ReadPlan> plan = make_plan(options, common, source.size());
  int rounds = 0;
  std::vector<std::byte> bytes;
  for (std::vector<ByteRange> wanted = plan->next(); !wanted.empty(); wanted = plan->next(), ++rounds)
    for (const ByteRange& range : wanted) {
      bytes.resize(static_cast<std::size_t>(range.size));
      source.seek(range.offset);
      require(source.read(bytes.data(), bytes.size()) == bytes.size(), ErrorKind::kIo,
              "'" + options.input + "' became shorter while it was read");
      plan->give(range.offset, bytes.data(), bytes.size());
    }
  std::vector<ByteRange> ranges = plan->ranges();
  std::uint64_t file_bytes = source.size();
  if (const auto* film = dynamic_cast<const io::MatroskaSource*>(&source)) {
    ranges = in_film(*film, ranges);
    file_bytes = std::filesystem::file_size(options.input);
  }
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.size;
  if (options.json) {
    Json json;
    json.begin_object();
    json.member("bytes", total);
    json.member("rounds", rounds);
    json.begin_array("ranges");
    for (const ByteRange& range : ranges) {
      json.begin_object();
      json.member("offset", range.offset);
      json.member("bytes", range.size);
      json.end_object();
    }
    json.end_array();
    json.end_object();
    std::fputs(json.text().c_str(), stdout);
    return kExitDone;
  }
  for (const ByteRange& range : ranges) fmt::print("{} {}\n", range.offset, range.size);
  log::info("{} of {} bytes in {}, asked for in {}", total, file_bytes, count_of(ranges.size(), "range"),
            count_of(static_cast<std::uint64_t>(rounds), "round"));
  return kExitDone;
}

}  // namespace

Action define_plan(Command& app, Common& common) {
  auto options = std::make_shared<PlanOptions>();
  app.add_option("IN", options->input, "Stream; a file").required();
  app.add_flag("--json", options->json, "Print JSON");
  add_decoding_options(app, options->decoding);
  add_limit_options(app, common);
  add_log_options(app, common);
  app.add_footer(
      "Prints a line for every range: its first byte and its length. A file that holds only these ranges decodes "
      "with\nthe same options. For a film in Matroska these are the data of its pictures, and the headers of all "
      "packets,\nwhich locate those of the pictures; ranges with at most 1,024 bytes between them are one.");
  return [options, &common] { return naming(options->input, [&] { return run(*options, common); }); };
}

}  // namespace trivelet::cli
