// trivelet play: shows a stream, with the sound of a film, or a volume in three planes. The player is a module, for its
// libraries are large.

#include <sys/stat.h>
#include <unistd.h>

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include "apps/cli/backends.h"
#include "apps/cli/log.h"
#include "apps/cli/modules.h"
#include "apps/play/player.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"
#include "codec/format/stream_layout.h"
#include "codec/rate/spool.h"
#include "trivelet/cuda.h"

namespace trivelet::cli {

namespace {

/// The module calls it in the program. Without a use here the linker would leave it in its library.
[[gnu::used]] constexpr auto kForTheModule = &gpu::share_textures;

struct PlayOptions {
  play::Options player;
  std::string device = "auto";
  bool no_budget = false;
  std::string place;
  std::string window;
};

/// "40,52,12"
std::array<int, 3> parse_place(const std::string& text) {
  std::array<int, 3> place{};
  char end = 0;
  require(std::sscanf(text.c_str(), "%d,%d,%d%c", &place[0], &place[1], &place[2], &end) == 3, ErrorKind::kBadArgument,
          "--at " + text + ": write X,Y,Z, a voxel of the volume");
  return place;
}

std::array<double, 2> parse_window(const std::string& text) {
  std::array<double, 2> window{};
  char end = 0;
  require(std::sscanf(text.c_str(), "%lf:%lf%c", &window[0], &window[1], &end) == 2 && window[0] < window[1],
          ErrorKind::kBadArgument, "--window " + text + ": write LOW:HIGH, in scaled values");
  return window;
}

/// What is decoded, in scaled values.
play::Volume load_volume(const std::string& path, const play::Quality& quality, const Common& common,
                         const std::shared_ptr<const Backend>& backend) {
  VolumeDecoding decoding;
  decoding.reduce = quality.reduce;
  decoding.max_layers = quality.layers;
  const auto source = decode_volume(path, decoding, common, backend);
  const io::VolumeInfo& info = source->info();
  play::Volume volume;
  volume.size = {info.width, info.height, static_cast<int>(info.slices)};
  for (std::size_t a = 0; a < 3; ++a) volume.spacing[a] = info.spacing[a] > 0 ? info.spacing[a] : 1;
  const std::size_t plane = checked_mul(static_cast<std::size_t>(info.width), static_cast<std::size_t>(info.height));
  const std::size_t voxels = checked_mul(plane, static_cast<std::size_t>(info.slices));
  const std::uint64_t most = limits(common).memory;
  require(checked_mul(voxels, sizeof(float)) <= most, ErrorKind::kUnsupported,
          fmt::format("'{}': {} MiB of voxels, the limit is {} MiB; --reduce 1 shows an eighth, --max-memory raises it",
                      path, voxels * sizeof(float) >> 20, most >> 20));
  volume.values.reserve(voxels);
  std::vector<std::byte> slice(info.slice_bytes());
  const std::size_t bytes = info.voxel.bytes();
  for (std::uint64_t z = 0; z < info.slices && source->read(slice.data()); ++z)
    for (std::size_t i = 0; i < plane; ++i)
      volume.values.push_back(static_cast<float>(
          scalar_value(slice.data() + i * bytes, info.voxel.type, info.voxel.big_endian) * info.slope +
          info.intercept));
  volume.values.resize(voxels);  // of a volume that was cut short
  return volume;
}

int show_volume(const PlayOptions& options, const VolumeInStream& volume, const Common& common, const Command& app) {
  const play::Options& player = options.player;
  for (const char* option : {"--seek", "--compare", "--mute", "--sound", "--subtitles", "--loop", "--stats",
                             "--no-budget", "--temporal-reduce", "--screenshot-at"})
    require(!app.typed(option), ErrorKind::kBadArgument, std::string(option) + " is for videos, not for volumes");
  require(player.headless == !player.screenshot.empty(), ErrorKind::kBadArgument,
          "--headless needs --screenshot, and --screenshot needs --headless: without a window a screenshot is the only "
          "output");
  play::VolumeOptions show;
  show.input = player.input;
  const std::shared_ptr<const Backend> backend = volume_backend(options.device, 0, player.input, common);
  show.load = [&](const play::Quality& q) { return load_volume(player.input, q, common, backend); };
  show.quality = player.quality;
  show.size = {volume.info.width, volume.info.height, static_cast<int>(volume.info.slices)};
  {
    const StreamFile file = open_stream_file(player.input);
    std::uint64_t bytes_read = 0;
    StreamInput in(*file.source, bytes_read);
    StreamLayout layout;
    layout.read(in);
    const bool wavelet = layout.info.profile != Profile::kPredictive;
    show.layers = std::max(1, layout.info.layers);
    show.most_reduce = wavelet ? layout.header.max_reduce() - layout.header.dropped_spatial : 0;
  }
  if (!options.place.empty()) {
    show.place = parse_place(options.place);
    for (std::size_t a = 0; a < 3; ++a)
      require((*show.place)[a] >= 0 && (*show.place)[a] < show.size[a], ErrorKind::kBadArgument,
              fmt::format("--at {}: the volume has {}x{}x{} voxels", options.place, show.size[0], show.size[1],
                          show.size[2]));
  }
  if (!options.window.empty()) show.window = parse_window(options.window);
  show.headless = player.headless;
  show.screenshot = player.screenshot;
  show.overlay = player.overlay;
  show.overwrite = common.overwrite;
  show.full_screen = player.full_screen;
  show.quit_after = player.quit_after;
  const auto* module = static_cast<const play::Player*>(load_module("play", player.input));
  require(module != nullptr, ErrorKind::kUnsupported,
          "this build has no player, because SDL 2, OpenGL, Dear ImGui or FFmpeg was missing; 'trivelet view' writes "
          "slices");
  module->show(show);
  return kExitDone;
}

/// An unnamed file for the data of a pipe, because a player seeks.
struct Kept {
  explicit Kept(std::string& input) {
    struct stat status = {};
    if (input != "-" || fstat(STDIN_FILENO, &status) != 0) return;
    int number = STDIN_FILENO;
    if (!S_ISREG(status.st_mode)) {
      require(isatty(STDIN_FILENO) == 0, ErrorKind::kBadArgument, "standard input is a terminal, not a stream");
      log::info("standard input is first read to its end, because a player seeks in it");
      file.emplace("");
      FileSource pipe("-");
      std::vector<std::byte> buffer(std::size_t{1} << 18);
      while (const std::size_t got = pipe.read(buffer.data(), buffer.size()))
        require(std::fwrite(buffer.data(), 1, got, file->file()) == got, ErrorKind::kIo,
                "cannot keep standard input in a temporary file; set TMPDIR to another folder");
      file->rewind();
      number = fileno(file->file());
    }
    input = "/dev/fd/" + std::to_string(number);
  }
  std::optional<Spool> file;
};

int run(PlayOptions options, const Common& common, const Command& app) {
  play::Options& player = options.player;
  const Kept kept(player.input);
  require_tvl_file(player.input,
                   "is neither a Trivelet stream nor Matroska with one; use another player for other videos");
  if (const std::optional<VolumeInStream> volume = volume_in(player.input, common))
    return show_volume(options, *volume, common, app);
  for (const char* option : {"--at", "--window"})
    require(!app.typed(option), ErrorKind::kBadArgument, std::string(option) + " is for volumes, not for videos");
  require(player.headless == !player.screenshot.empty(), ErrorKind::kBadArgument,
          "--headless needs --screenshot, and --screenshot needs --headless: without a window a screenshot is the only "
          "output");
  require(player.headless || !app.typed("--screenshot-at"), ErrorKind::kBadArgument,
          "--screenshot-at needs --headless and --screenshot");
  player.decoding = decoder_params(common);
  player.overwrite = common.overwrite;
  player.budget = !options.no_budget && !player.headless;
  player.backend =
      choose_player_backend(options.device, app.typed("--max-memory") ? player.decoding.limits.memory : 0, player.gpu);
  // Frames that stay on a GPU cannot be compared with the hashes of the originals. The checksums of the bytes are still
  // checked.
  if (player.gpu >= 0) player.decoding.verify_hash = false;
  const auto* module = static_cast<const play::Player*>(load_module("play", player.input));
  require(module != nullptr, ErrorKind::kUnsupported,
          "this build has no player, because SDL 2, OpenGL, Dear ImGui or FFmpeg was missing; '" +
              std::string("trivelet decode ") + player.input + " - | ffplay -i -' plays the pictures");
  module->run(player);
  return kExitDone;
}

}  // namespace

Action define_play(Command& app, Common& common) {
  auto options = std::make_shared<PlayOptions>();
  play::Options& o = options->player;
  constexpr const char* kPicture = "What is decoded";
  constexpr const char* kTest = "Without a window";
  app.add_option("FILE", o.input, "Stream of a video or a volume, or film in Matroska").required();
  app.add_option("--seek", o.start, "Start T seconds after the first frame").non_negative().type_name("T");
  app.add_option("--compare", o.compare, "Show a second stream to the right of a line that follows the mouse")
      .type_name("FILE");
  app.add_flag("--fullscreen", o.full_screen, "Start in full screen");
  app.add_flag("--mute", o.mute, "No sound");
  app.add_option("--sound", o.sound, "Sound track to begin with, from 1 [the best]").range(1, 99).type_name("N");
  app.add_option("--subtitles", o.subtitles, "Track of subtitles to show, from 1 [none]").range(1, 99).type_name("N");
  app.add_flag("--loop", o.loop, "Start again at the end");
  app.add_flag("--overlay", o.overlay, "Start with the controls shown; otherwise they appear when the mouse moves");
  app.add_flag("--stats", o.stats, "At the end print the number of late frames and the times of decoding and drawing");
  app.add_option("--quit-after", o.quit_after, "End after T seconds").positive().type_name("T");
  app.add_flag(
         "--no-budget", options->no_budget,
         "All of every frame, late or not; without it quality layers, then resolution, then frames are dropped if "
         "decoding is too slow")
      .group(kPicture);
  app.add_option("--max-layers", o.quality.layers, "Only the first N quality layers; 0 = all")
      .range(0, 16)
      .type_name("N")
      .show_default()
      .group(kPicture);
  app.add_option("--reduce", o.quality.reduce, "Halve width and height N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPicture);
  app.add_option("--temporal-reduce", o.quality.temporal, "Halve the frame rate N times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPicture);
  constexpr const char* kVolumes = "Volumes";
  app.add_option("--at", options->place, "The voxel in which the three planes meet [the middle]")
      .type_name("X,Y,Z")
      .group(kVolumes);
  app.add_option("--window", options->window,
                 "Scaled values that become black and white [least and largest in the planes]")
      .type_name("LOW:HIGH")
      .group(kVolumes);
  auto headless = app.add_flag("--headless", o.headless, "Draw without a window").group(kTest);
  app.add_option("--screenshot-at", o.screenshot_at, "Write the picture T seconds after the first frame")
      .non_negative()
      .type_name("T")
      .group(kTest)
      .needs(headless);
  app.add_option("--screenshot", o.screenshot, "Picture to write, e.g. shot.png").type_name("FILE").group(kTest);
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_device_option(app, options->device);
  add_work_options(app, common);
  add_log_options(app, common);
  app.add_footer(
      "Keys: space pause; left, right 5 s; down, up 60 s; . and , a frame forward, back; [ ] slower, faster;\n"
      "backspace normal speed; 9 0 or wheel volume; m mute; a sound track; t subtitles; s screenshot;\n"
      "f or double click full screen; o controls; ? all keys; Escape leaves full screen or quits; q quit.");
  return [options, &common, app] {
    const std::string& other = options->player.compare;  // errors of it are not named after the input
    if (!other.empty()) require_tvl_file(other, "is neither a Trivelet stream nor Matroska with one");
    return naming(options->player.input, [&] { return run(*options, common, app); });
  };
}

}  // namespace trivelet::cli
