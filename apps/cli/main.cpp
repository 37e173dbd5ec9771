// trivelet: the command line program. A table of subcommands; everything else is in their files.

#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "apps/still/ccsds.h"
#include "apps/cli/cli.h"
#include "apps/cli/help.h"
#include "apps/still/team.h"

namespace {

using namespace trivelet;

struct Command {
  const char* name;
  const char* help;
  cli::Action (*define)(CLI::App& app, cli::Common& common);
  bool volumes = false;  ///< takes volumes, too
};

constexpr std::array<Command, 11> kCommands = {{
    {"encode", "Encode a video or a volume (NIfTI, NRRD, MetaImage, DICOM, raw) into a .tvl stream", cli::define_encode,
     true},
    {"decode", "Decode a .tvl stream: whole, or reduced in size, frame rate, quality or length", cli::define_decode,
     true},
    {"info", "Describe a stream, video or volume", cli::define_info, true},
    {"truncate", "Make a stream smaller in bytes without coding it again", cli::define_truncate, true},
    {"extract", "Take a lower resolution, frame rate or some GOPs out of a stream", cli::define_extract},
    {"verify", "Check a stream for damage, and against its original", cli::define_verify, true},
    {"compare", "Compare two videos or volumes: PSNR, SSIM, maximum error", cli::define_compare, true},
    {"bench", "Encode and decode in memory, check the result and time the stages", cli::define_bench},
    {"view", "Show slices of a volume: write one, or three planes, as a picture", cli::define_view, true},
    {"ccsds", "Still images in CCSDS 122.0-B-2: encode, decode, info, compare, bench", cli::define_ccsds},
    {"still", "Still images in .tvs files, codecs vstc and dct: encode, decode, info", cli::define_still},
}};

constexpr const char* kDescription =
    "trivelet: a 3D wavelet video codec, lossy to lossless\n"
    "\n"
    "Examples:\n"
    "  trivelet encode in.mp4 out.tvl -q 60\n"
    "  trivelet decode out.tvl half.mkv --reduce 1\n"
    "  ffmpeg -i in.mov -f yuv4mpegpipe -strict -1 - | trivelet encode - out.tvl --lossless";

constexpr const char* kNotMedical = "Volumes: not for primary diagnosis; not a medical device.";

constexpr const char* kFooter =
    "Exit codes: 0 done, 1 internal error, 2 usage, 3 input/output, 4 corrupt input, 5 unsupported,\n"
    "6 verification or comparison failed, 130 interrupted.\n"
    "'trivelet COMMAND --help' lists the options of a command, 'trivelet --help-all' those of all.";

std::string version() {
  return fmt::format("trivelet {}\nstream format {}.{}\nFFmpeg {}\nMPI {}\nSIMD {}", kLibraryVersion, kFormatMajor,
                     kFormatMinor, io::have_ffmpeg() ? "yes" : "no", cli::have_mpi(),
                     trivelet::to_string(detected_simd()));
}

/// "trivelet: error: " before warnings and errors, nothing before plain information.
class Prefix final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    if (message.level == spdlog::level::info) return;
    const auto level = spdlog::level::to_string_view(message.level);
    fmt::format_to(std::back_inserter(out), "trivelet: {}: ", std::string_view(level.data(), level.size()));
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Prefix>(); }
};

void set_up_log() {
  const char* no_colour = std::getenv("NO_COLOR");
  const auto mode = no_colour && *no_colour ? spdlog::color_mode::never : spdlog::color_mode::automatic;
  auto logger =
      std::make_shared<spdlog::logger>("trivelet", std::make_shared<spdlog::sinks::stderr_color_sink_st>(mode));
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<Prefix>('*').set_pattern("%^%*%$%v");
  logger->set_formatter(std::move(formatter));
  spdlog::set_default_logger(std::move(logger));
}

void set_log_level(const cli::Common& common) {
  spdlog::set_level(common.verbose ? spdlog::level::debug
                    : common.quiet ? spdlog::level::err
                                   : spdlog::level::from_str(common.log_level));
}

/// Temporary files go, nothing is said. A closed pipe ends the program as quietly.
extern "C" void on_signal(int signal) {
  io::remove_temporaries();
  _exit(128 + signal);
}

void set_up_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction old {};
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    // What the parent told us to ignore (nohup, background jobs) stays ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

/// Runs `action` and turns what it throws into a message and an exit code.
int run(const cli::Action& action) {
  try {
    const int code = action();
    require(std::fflush(stdout) == 0, ErrorKind::kIo, "cannot write to standard output");
    return code;
  } catch (const Error& e) {
    spdlog::error("{}", e.what());
    return cli::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    spdlog::error("out of memory");
    return cli::kExitInternal;
  } catch (const std::system_error& e) {
    spdlog::error("{}", e.what());
    return cli::kExitIo;
  } catch (const std::exception& e) {
    spdlog::error("internal error: {}", e.what());
    return cli::kExitInternal;
  }
}

int usage_error(const CLI::App& app, const std::string& what) {
  const auto chosen = app.get_subcommands();
  spdlog::error("{}", what);
  spdlog::info("'trivelet {}--help' shows how it is used", chosen.empty() ? "" : chosen.front()->get_name() + " ");
  return cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  set_up_log();
  set_up_signals();

  cli::Common common;
  CLI::App app(kDescription, "trivelet");
  app.formatter(cli::make_help_formatter());
  app.set_version_flag("--version", version, "Versions of program and stream format, and what this build has");
  app.set_help_flag("-h,--help", "Help; trivelet COMMAND --help for that of a command");
  app.require_subcommand(0, 1);
  std::array<cli::Action, kCommands.size()> actions;
  for (std::size_t i = 0; i < kCommands.size(); ++i) {
    CLI::App* command = app.add_subcommand(kCommands[i].name, kCommands[i].help);
    command->set_help_flag();  // for the order: ours comes last
    actions[i] = kCommands[i].define(*command, common);
    if (kCommands[i].name == std::string_view("bench")) {  // also found as "trivelet ccsds bench"
      CLI::App* still = command->add_subcommand("ccsds", "The same for CCSDS 122.0 still images");
      actions[i] = [still, video = actions[i], action = cli::define_ccsds_bench(*still, common)] {
        return still->parsed() ? action() : video();
      };
      still->set_help_flag("-h,--help", "This help")->group("Common");
    }
    command->set_help_flag("-h,--help", "This help")->group("Common");
    if (kCommands[i].volumes) {
      const std::string footer = command->get_footer();
      command->footer(footer + (footer.empty() ? "" : "\n") + kNotMedical);
    }
  }
  app.set_help_all_flag("--help-all", "Help of all commands");
  app.footer(kFooter);

  try {
    app.parse(argc, argv);
    require(!app.get_subcommands().empty(), ErrorKind::kBadArgument, "a command is missing: encode, decode, info, …");
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success))
      return run([&] { return app.exit(e); });  // --help, --version
    return usage_error(app, e.what());
  } catch (const Error& e) {
    return usage_error(app, e.what());
  }
  set_log_level(common);
  for (std::size_t i = 0; i < kCommands.size(); ++i)
    if (app.got_subcommand(kCommands[i].name)) return run(actions[i]);
  return cli::kExitUsage;
}
