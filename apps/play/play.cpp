// trivelet play: shows a stream, with the sound of a film. The player is a module, for its libraries are large.

#include "apps/cli/backends.h"
#include "apps/cli/modules.h"
#include "apps/play/player.h"
#include "apps/video/video.h"
#include "apps/volume/volume.h"

namespace trivelet::cli {

namespace {

struct Options {
  play::Options player;
  std::string device = "auto";
  std::string screenshot_time;
};

int run(Options options, const Common& common, const Command& app) {
  play::Options& player = options.player;
  require(is_tvl_file(player.input), ErrorKind::kBadStream,
          "'" + player.input + "' is not a Trivelet stream, nor Matroska with one; other videos are for other players");
  require(!volume_in(player.input), ErrorKind::kUnsupported,
          "'" + player.input + "' holds a volume; 'trivelet view' shows its slices");
  require(player.headless == !player.screenshot.empty(), ErrorKind::kBadArgument,
          "--headless and --screenshot-at belong together: without a window there is nothing to see but a screenshot");
  player.decoding = decoder_params(common);
  player.overwrite = common.overwrite;
  player.backend = choose_backend(options.device, app.typed("--max-memory") ? player.decoding.limits.memory : 0, 0);
  const auto* module = static_cast<const play::Player*>(load_module("play", player.input));
  require(module != nullptr, ErrorKind::kUnsupported,
          "this build has no player, for SDL 2, OpenGL, Dear ImGui or FFmpeg was missing when it was made; '" +
              std::string("trivelet decode ") + player.input + " - | ffplay -i -' plays the pictures");
  module->run(player);
  return kExitDone;
}

}  // namespace

Action define_play(Command& app, Common& common) {
  auto options = std::make_shared<Options>();
  play::Options& o = options->player;
  constexpr const char* kPicture = "What is decoded";
  constexpr const char* kTest = "Without a window";
  app.add_option("FILE", o.input, "Stream, or film in Matroska").required();
  app.add_option("--seek", o.start, "Seconds after the first frame where to begin").non_negative().type_name("T");
  app.add_option("--compare", o.compare, "A second stream, to the right of a line that the mouse moves")
      .type_name("FILE");
  app.add_flag("--fullscreen", o.full_screen, "Begin with the whole screen");
  app.add_flag("--mute", o.mute, "No sound");
  app.add_flag("--loop", o.loop, "Begin again at the end");
  app.add_flag("--overlay", o.overlay, "Begin with the controls shown; they come when the mouse moves");
  app.add_flag("--stats", o.stats, "Say at the end how many frames were late");
  app.add_option("--quit-after", o.quit_after, "End after so many seconds").positive().type_name("T");
  app.add_flag("--budget", o.budget, "Where decoding is too slow drop quality layers, then resolution, then frames")
      .group(kPicture);
  app.add_option("--max-layers", o.quality.layers, "Only so many quality layers; 0 = all")
      .range(0, 16)
      .type_name("N")
      .show_default()
      .group(kPicture);
  app.add_option("--reduce", o.quality.reduce, "Halve width and height so many times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPicture);
  app.add_option("--temporal-reduce", o.quality.temporal, "Halve the frame rate so many times, 0..8")
      .range(0, 8)
      .type_name("N")
      .show_default()
      .group(kPicture);
  auto headless = app.add_flag("--headless", o.headless, "Draw, but show nothing").group(kTest);
  app.add_option("--screenshot-at", o.screenshot_at, "Seconds after the first frame of which a picture is written")
      .non_negative()
      .type_name("T")
      .group(kTest)
      .needs(headless);
  app.add_option("--screenshot", o.screenshot, "The picture to write, e.g. shot.png").type_name("FILE").group(kTest);
  add_overwrite_option(app, common);
  add_limit_options(app, common);
  add_device_option(app, options->device);
  add_work_options(app, common);
  add_log_options(app, common);
  app.add_footer(
      "Keys: space pause; left, right 5 s; down, up 60 s; . and , a frame on and back; [ ] slower, faster, backspace\n"
      "normal speed; m mute; s screenshot; f or double click whole screen; o controls; q end.");
  return [options, &common, app] { return run(*options, common, app); };
}

}  // namespace trivelet::cli
