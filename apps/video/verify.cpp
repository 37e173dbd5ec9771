// trivelet verify: decodes a whole stream, checks every CRC and hash, and says what is damaged.

#include <spdlog/fmt/fmt.h>

#include <limits>

#include "apps/cli/backends.h"
#include "apps/cli/json.h"
#include "apps/cli/log.h"
#include "apps/cli/progress.h"
#include "apps/video/metrics.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/verify.h"

namespace trivelet::cli {

namespace {

struct Options {
  std::string device = "auto";
  std::string input;
  std::string against;
  InputOptions reading;
  std::string voxel_type;
  bool json = false;
};

void print_json(const Options& options, const VerifyResult& found, std::uint64_t frames, bool lossless,
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

int run(const Options& options, const Common& common, const Command& app) {
  for (const char* option : {"--size", "--pix-fmt", "--fps", "--format"})
    require(!app.typed(option) || !options.against.empty(), ErrorKind::kBadArgument,
            std::string(option) + " describes the file of --against, which is missing");
  if (volume_in(options.input, common)) {
    refuse_gpu(options.device);
    require(!options.json, ErrorKind::kUnsupported, "'" + options.input + "' holds a volume: --json is for videos");
    return verify_volume(
        options.input, options.against,
        {volume_size(options.reading), options.voxel_type, options.reading.format, options.reading.allow_outside},
        common);
  }
  const DecoderParams params = decoder_params(common);
  const StreamFile file = open_stream_file(options.input);
  const std::shared_ptr<const Backend> backend = choose_backend(options.device, params.limits.memory, 0);
  StreamVerifier verifier(*file.source, params, backend.get());
  const StreamInfo& stream = verifier.info();
  const VideoInfo& info = verifier.output();

  std::unique_ptr<VideoInput> original;
  std::unique_ptr<ThreadPool> pool;
  if (!options.against.empty()) {
    require(!(options.input == "-" && options.against == "-"), ErrorKind::kBadArgument,
            "standard input cannot be the stream and the original");
    original = std::make_unique<VideoInput>(
        options.against, like_video(reader_options(options.reading, common), options.against, info), common);
    require_comparable(original->info(), info);
    pool = std::make_unique<ThreadPool>(common.threads);
  }

  std::uint64_t frames = 0;
  VideoError error(info);
  bool same_count = true;
  {
    Progress progress(common, "verify", info.frames);
    Prefetch gops([&] { return verifier.make_gop(); }, 2, [&](Gop& gop) { return verifier.pull(gop); });
    while (const Gop* gop = gops.next()) {
      if (original && same_count) {
        Gop wanted(info, gop->frames());
        same_count = original->read(wanted) && wanted.frames() == gop->frames();
        if (same_count) error.add(*gop, wanted, *pool);
      }
      frames += static_cast<std::uint64_t>(gop->frames());
      progress.update(frames);
    }
    progress.finish();
  }

  const VerifyResult found = verifier.finish();
  if (options.json)
    print_json(options, found, frames, stream.lossless, original && same_count ? &error : nullptr);
  else
    for (const std::string& line : found.damage) fmt::print("{}: {}\n", options.input, log::printable(line));
  require(found.damage.empty(), ErrorKind::kBadStream,
          fmt::format("'{}' is damaged: {} of {} GOPs", options.input, found.damaged_gops, found.gops));
  require(frames > 0, ErrorKind::kBadStream, "'" + options.input + "' holds no frames");
  if (original) {
    if (same_count) {
      Gop rest(info, 1);
      same_count = !original->read(rest);
    }
    require(
        same_count, ErrorKind::kMismatch,
        fmt::format("'{}' holds {}, '{}' another number", options.input, count_of(frames, "frame"), options.against));
    require(!stream.lossless || error.identical(), ErrorKind::kMismatch,
            fmt::format("'{}' is a lossless stream, but {} samples differ from '{}', by up to {}", options.input,
                        error.total().different, options.against, error.total().max));
  }
  std::string result = fmt::format("{} in {}, {}", count_of(frames, "frame"), count_of(found.gops, "GOP"),
                                   stream.lossless ? "lossless" : "lossy");
  if (original)
    result += error.identical() ? ", identical to " + options.against
                                : ", PSNR " + format_psnr(error.psnr()) + " against " + options.against;
  if (!options.json) fmt::print("{}: OK, {}\n", options.input, result);
  return kExitDone;
}

}  // namespace

Action define_verify(Command& app, Common& common) {
  auto options = std::make_shared<Options>();
  app.add_option("IN", options->input, "Stream to check; - = standard input").required();
  app.add_option(
         "--against", options->against,
         "Compare with this video: a lossless stream must be identical (else exit code 6), a lossy one says its PSNR")
      .type_name("ORIG");
  app.add_flag("--json", options->json, "Print JSON; the exit code is the same");
  add_input_options(app, options->reading);
  app.add_option("--type", options->voxel_type, "Type of a raw volume, as for encode")
      .type_name("T")
      .group("Raw input and pipes");
  add_limit_options(app, common);
  add_device_option(app, options->device);
  add_work_options(app, common);
  add_progress_option(app, common);
  add_log_options(app, common);
  return [options, &common, app] { return run(*options, common, app); };
}

}  // namespace trivelet::cli
