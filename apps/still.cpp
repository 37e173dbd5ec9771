// trivelet still: pictures in .tvs files: encode, decode, info.

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include "apps/ccsds_image.h"
#include "apps/json.h"
#include "apps/team.h"
#include "codec/still/dct.h"
#include "codec/still/vstc.h"

namespace trivelet::cli {

namespace {

struct StillEncodeOptions {
  std::string input, output;
  InputOptions reading;
  std::uint64_t frame = 0;
  std::string codec = "vstc";
  int qp = vstc::Params{}.qp;
  double keep = dct::Params{}.keep;
  int block = 1 << vstc::Params{}.log2_block;
  std::string effort = "medium";
  bool plain_recursion = false;
  bool plain_levels = false;
  std::string sharing = "rows";
  bool json = false;
};

struct StillDecodeOptions {
  std::string input, output;
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

vstc::Params vstc_params(const StillEncodeOptions& o, const Common& common) {
  vstc::Params p;
  p.qp = o.qp;
  p.log2_block = o.block == 16 ? 4 : o.block == 32 ? 5 : 6;
  p.effort = o.effort == "fast"   ? vstc::Effort::kFast
             : o.effort == "full" ? vstc::Effort::kFull
                                  : vstc::Effort::kMedium;
  p.remember = !o.plain_recursion;
  p.optimise_levels = !o.plain_levels;
  p.sharing = o.sharing == "rows" ? vstc::Sharing::kRows : vstc::Sharing::kCandidates;
  p.simd = parse_simd(common.simd);
  return p;
}

int run_encode_dct(const StillEncodeOptions& o, const Common& common) {
  const still::Image image = read_picture(o.input, o.reading, o.frame, common);
  ThreadPool pool(common.threads);
  const auto transform = dct::make_fast_transform(pool);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<std::byte> bytes = dct::encode(image, {.qp = o.qp, .keep = o.keep}, *transform);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  io::OutputFile file(o.output, common.overwrite);
  file.write(bytes.data(), bytes.size());
  file.commit();
  const double bpp = 8 * static_cast<double>(bytes.size()) / (static_cast<double>(image.width) * image.height);
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("width", image.width);
    json.member("height", image.height);
    json.member("bytes", bytes.size());
    json.member("bits_per_pixel", bpp);
    json.member("seconds", seconds);
    json.member("threads", pool.threads());
    json.member("transform", std::string(transform->name()));
    json.end_object();
    fmt::print("{}", json.text());
  }
  spdlog::info("{}x{} {}: {} bytes, {:.4f} bits per pixel, {:.2f} s ({})", image.width, image.height,
               trivelet::to_string(image.format), bytes.size(), bpp, seconds, transform->name());
  return kExitDone;
}

int run_encode(const StillEncodeOptions& o, const Common& common) {
  if (o.codec == "dct") return run_encode_dct(o, common);
  const std::unique_ptr<vstc::Team> team = make_team();
  const still::Image image = read_picture(o.input, o.reading, o.frame, common);
  vstc::Params params = vstc_params(o, common);
  params.team = team.get();
  ThreadPool pool(common.threads);
  const auto start = std::chrono::steady_clock::now();
  const vstc::Encoded e = vstc::encode(image, params, pool);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (team && team->rank() != 0) return kExitDone;
  io::OutputFile file(o.output, common.overwrite);
  file.write(e.bytes.data(), e.bytes.size());
  file.commit();
  const double bpp = 8 * static_cast<double>(e.bytes.size()) / (static_cast<double>(image.width) * image.height);
  if (o.json) {
    Json json;
    json.begin_object();
    json.member("width", image.width);
    json.member("height", image.height);
    json.member("bytes", e.bytes.size());
    json.member("bits_per_pixel", bpp);
    json.member("seconds", seconds);
    json.member("threads", pool.threads());
    json.member("processes", team ? team->size() : 1);
    json.member("prediction_blocks_tried", e.statistics.predictions);
    json.member("residual_trials", e.statistics.trials);
    json.member("residual_trials_of_plain_recursion", e.statistics.plain_trials);
    json.end_object();
    fmt::print("{}", json.text());
  }
  spdlog::info("{}x{} {}: {} bytes, {:.4f} bits per pixel, {:.2f} s", image.width, image.height,
               trivelet::to_string(image.format), e.bytes.size(), bpp, seconds);
  spdlog::debug("{} prediction blocks tried, {} residual blocks; a plain recursion would have tried {}",
                e.statistics.predictions, e.statistics.trials, e.statistics.plain_trials);
  return kExitDone;
}

int run_decode(const StillDecodeOptions& o, const Common& common) {
  const std::vector<std::byte> bytes = read_bytes(o.input);
  ThreadPool pool(common.threads);
  vstc::DecodeParams params;
  params.simd = parse_simd(common.simd);
  const auto start = std::chrono::steady_clock::now();
  const bool is_dct = still::read_file(bytes).header.codec == still::Codec::kDct;
  const still::Image image =
      is_dct ? dct::decode(bytes, {}, *dct::make_fast_transform(pool)) : vstc::decode(bytes, params, pool);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  write_picture(o.output, image, common.overwrite);
  spdlog::info("{}x{} {}: {:.3f} s", image.width, image.height, trivelet::to_string(image.format), seconds);
  return kExitDone;
}

int run_info(const StillInfoOptions& o) {
  const std::vector<std::byte> bytes = read_bytes(o.input);
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

Action define_still_encode(CLI::App& app, Common& common) {
  auto o = std::make_shared<StillEncodeOptions>();
  app.add_option("IN", o->input, "Picture or video (one frame of it): anything the program reads")->required();
  app.add_option("OUT", o->output, "File to write (.tvs)")->required();
  app.add_option("--codec", o->codec,
                 "vstc: blocks of variable size, intra prediction; dct: one transform of the whole picture")
      ->check(CLI::IsMember({"vstc", "dct"}))
      ->capture_default_str();
  app.add_option("-q,--qp", o->qp, "Quantiser: 0 the finest, 51 the coarsest; 6 more double the step")
      ->check(CLI::Range(0, 51))
      ->capture_default_str();
  auto* keep = app.add_option("--keep", o->keep, "dct: part of the coefficients that is kept, lowest frequencies first")
                   ->check(CLI::Range(0.0, 1.0))
                   ->capture_default_str();
  auto* block = app.add_option("--block", o->block, "vstc: side of the blocks")
                    ->check(CLI::IsMember({16, 32, 64}))
                    ->capture_default_str();
  auto* effort = app.add_option("--effort", o->effort, "vstc: how much is tried; full tries all 35 modes everywhere")
                     ->check(CLI::IsMember({"fast", "medium", "full"}))
                     ->capture_default_str();
  app.add_option("--frame", o->frame, "Which frame of a video, from 0")->capture_default_str();
  app.add_flag("--plain-recursion", o->plain_recursion,
               "Compute the best cost of a residual block whenever it comes up, not once: same stream, very slow");
  app.add_flag("--plain-levels", o->plain_levels, "Round levels instead of choosing them by rate and distortion");
  app.add_option("--share", o->sharing, "Under mpirun: processes take rows of blocks, or candidates of every block")
      ->check(CLI::IsMember({"rows", "candidates"}))
      ->capture_default_str();
  app.add_flag("--json", o->json, "Print JSON with size, time and counts");
  add_input_options(app, o->reading);
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common, keep, block, effort] {
    // An option typed is obeyed or refused.
    const bool is_dct = o->codec == "dct";
    require(!is_dct || (block->empty() && effort->empty() && !o->plain_levels && !o->plain_recursion),
            ErrorKind::kBadArgument, "--block, --effort, --plain-levels and --plain-recursion are for --codec vstc");
    require(is_dct || keep->empty(), ErrorKind::kBadArgument, "--keep is for --codec dct");
    return run_encode(*o, common);
  };
}

Action define_still_decode(CLI::App& app, Common& common) {
  auto o = std::make_shared<StillDecodeOptions>();
  app.add_option("IN", o->input, "File; - = standard input")->required();
  app.add_option("OUT", o->output, "Picture: .pgm, .ppm, .y4m, .png, …")->required();
  add_work_options(app, common);
  add_overwrite_option(app, common);
  add_log_options(app, common);
  return [o, &common] { return run_decode(*o, common); };
}

Action define_still_info(CLI::App& app, Common& common) {
  auto o = std::make_shared<StillInfoOptions>();
  app.add_option("IN", o->input, "File; - = standard input")->required();
  app.add_flag("--json", o->json, "Print JSON");
  add_log_options(app, common);
  return [o] { return run_info(*o); };
}

}  // namespace

Action define_still(CLI::App& app, Common& common) {
  struct Command {
    const char* name;
    const char* help;
    Action (*define)(CLI::App&, Common&);
  };
  static constexpr std::array<Command, 3> kCommands = {{
      {"encode", "Encode a picture into a .tvs file", define_still_encode},
      {"decode", "Decode a .tvs file into a picture", define_still_decode},
      {"info", "Describe a .tvs file", define_still_info},
  }};
  app.require_subcommand(1);
  auto actions = std::make_shared<std::vector<std::pair<CLI::App*, Action>>>();
  for (const Command& c : kCommands) {
    CLI::App* command = app.add_subcommand(c.name, c.help);
    actions->emplace_back(command, c.define(*command, common));
    command->set_help_flag("-h,--help", "This help")->group("Common");
  }
  return [actions] {
    for (const auto& [command, action] : *actions)
      if (command->parsed()) return action();
    return kExitUsage;
  };
}

}  // namespace trivelet::cli
