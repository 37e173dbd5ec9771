// trivelet: the command line program. This file has the table of subcommands.

#include <fcntl.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "apps/cli/cli.h"
#include "apps/cli/log.h"
#include "apps/cli/modules.h"
#include "apps/cluster/processes.h"
#include "apps/still/ccsds.h"

namespace {

using namespace trivelet;

struct Entry {
  const char* name;
  const char* help;
  cli::Action (*define)(cli::Command& app, cli::Common& common);
  bool volumes = false;  ///< takes volumes, too
};

constexpr std::array<Entry, 17> kCommands = {{
    {"encode", "Encode a video or a volume (NIfTI, NRRD, MetaImage, DICOM, raw) into a .tvl stream", cli::define_encode,
     true},
    {"decode", "Decode a .tvl stream: whole, or reduced in size, frame rate, quality or length", cli::define_decode,
     true},
    {"info", "Describe a stream, video or volume", cli::define_info, true},
    {"truncate", "Reduce a stream to a size, a rate or a PSNR without coding it again", cli::define_truncate, true},
    {"extract", "Take a smaller size, a lower frame rate or some GOPs out of a stream", cli::define_extract},
    {"join", "Join streams that were encoded alike, without coding them again", cli::define_join},
    {"play", "Play a stream or film, with sound; size and quality can change at any time", cli::define_play},
    {"thumbnail", "Write a small picture of a stream", cli::define_thumbnail},
    {"mux", "Put a stream into Matroska, with the sound, subtitles and chapters of another file", cli::define_mux},
    {"demux", "Take the stream out of Matroska", cli::define_demux},
    {"plan", "List the byte ranges of a stream that decoding a part of it reads", cli::define_plan, true},
    {"verify", "Check a stream for damage, and against its original", cli::define_verify, true},
    {"compare", "Compare two videos or volumes: PSNR, SSIM, maximum error", cli::define_compare, true},
    {"bench", "Encode and decode in memory, check the result and time the stages", cli::define_bench},
    {"view", "Write a slice or three planes of a volume as a picture", cli::define_view, true},
    {"ccsds", "Still images in CCSDS 122.0-B-2: encode, decode, info, compare, bench", cli::define_ccsds},
    {"still", "Single pictures: CCSDS 122.0-B-2, vstc, dct: encode, decode, info", cli::define_still},
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
    "6 verification or comparison failed, 7 out of memory, 130 interrupted.\n"
    "'trivelet COMMAND -h' shows the options of a command used most, 'trivelet help COMMAND' all,\n"
    "'trivelet --help-all' those of all commands.";

std::string version() {
  return fmt::format("trivelet {}\nstream format {}.{}\nFFmpeg {}\nMPI {}\nplayer {}\nSIMD {}", kLibraryVersion,
                     kFormatMajor, kFormatMinor, cli::has_module("ffmpeg") ? "yes" : "no",
                     cli::has_module("mpi") ? "yes" : "no", cli::has_module("play") ? "yes" : "no",
                     trivelet::to_string(detected_simd()));
}

void set_log_level(const cli::Common& common) {
  cli::log::set_level(common.log_level);
  if (common.verbose) cli::log::set_level(cli::log::Level::kDebug);
  if (common.quiet) cli::log::set_level(cli::log::Level::kError);
}

/// Temporary files go, nothing is said. A closed pipe ends the program as quietly.
extern "C" void on_signal(int signal) {
  remove_temporaries();
  _exit(128 + signal);
}

void set_up_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) {
    struct sigaction old {};
    struct sigaction action {};
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal;
    // Signals that the parent ignores (nohup, background jobs) stay ignored.
    if (sigaction(signal, nullptr, &old) == 0 && old.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // Without this, a file larger than ulimit allows would end the program by a signal. Now writing fails, the error is
  // printed, and no output is left.
  std::signal(SIGXFSZ, SIG_IGN);
}

/// A pipe or terminal with O_NONBLOCK is opened again: all its users share the flag, and neither stdio nor the look
/// ahead at the input can handle it. For what cannot be opened again (a socket), the reader waits.
void make_blocking(int standard, int access) {
  struct stat status {};
  const int flags = fcntl(standard, F_GETFL);
  if (flags < 0 || (flags & O_NONBLOCK) == 0 || fstat(standard, &status) != 0) return;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  const int again = open(fmt::format("/dev/fd/{}", standard).c_str(), access | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (again < 0) return;
  if (fcntl(again, F_SETFL, fcntl(again, F_GETFL) & ~O_NONBLOCK) == 0) dup2(again, standard);
  close(again);
}

/// Runs `action` and turns an exception into a message and an exit code.
int run(const cli::Action& action) {
  try {
    const int code = action();
    require(std::fflush(stdout) == 0, ErrorKind::kIo, "cannot write to standard output");
    return code;
  } catch (const Error& e) {
    cli::log::error("{}", cli::in_options(e.what()));
    return cli::exit_code(e.kind());
  } catch (const std::bad_alloc&) {
    cli::log::error("out of memory");
    return cli::kExitNoMemory;
  } catch (const std::system_error& e) {
    const bool no_thread = e.code() == std::errc::resource_unavailable_try_again;  // its stack takes memory
    cli::log::error("{}",
                    no_thread ? "no memory for another thread, or there are as many as the system allows" : e.what());
    return no_thread ? cli::kExitNoMemory : cli::kExitIo;
  } catch (const std::exception& e) {
    cli::log::error("internal error: {}", e.what());
    return cli::kExitInternal;
  }
}

int usage_error(const cli::CommandLine& line, const std::string& what) {
  if (cli::place_of_process().rank > 0) {
    // The first process prints the error. A launcher ends all processes when one has failed. If another process ended
    // first, the error would not be printed, so the others wait to be ended.
    std::this_thread::sleep_for(std::chrono::seconds(5));
    return cli::kExitUsage;
  }
  const std::string command = line.chosen_name();
  cli::log::error("{}", what);
  cli::log::info("'trivelet {}--help' shows how it is used", command.empty() ? "" : command + " ");
  return cli::kExitUsage;
}

}  // namespace

int main(int argc, char** argv) {
  make_blocking(STDIN_FILENO, O_RDONLY);
  make_blocking(STDOUT_FILENO, O_WRONLY);
  cli::log::set_up();
  set_up_signals();

  cli::Common common;
  cli::CommandLine line("trivelet", kDescription);
  line.add_version("-V,--version", version,
                   "Versions of the program and the stream format, and features of this build");
  line.add_help("Help; trivelet COMMAND --help for that of a command");
  line.require_command(0, 1);
  std::vector<std::pair<cli::Command, cli::Action>> commands;
  for (const Entry& entry : kCommands) {
    cli::Command command = line.add_command(entry.name, entry.help);
    cli::Action action = entry.define(command, common);
    if (entry.name == std::string_view("bench")) {  // also found as "trivelet ccsds bench"
      cli::Command ccsds =
          command.add_command("ccsds", "Time the stages of CCSDS 122.0 in memory and check the result");
      action = [ccsds, video = action, still = cli::define_ccsds_bench(ccsds, common)] {
        return ccsds.chosen() ? still() : video();
      };
      ccsds.add_help();
    }
    command.add_help();
    if (entry.volumes) command.add_footer(kNotMedical);
    commands.emplace_back(command, std::move(action));
  }
  line.add_help_all("Help for all commands");
  line.add_footer(kFooter);

  // "help COMMAND" is "COMMAND --help"; "help --table" is for what is made of it (packaging/from_help.sh).
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words == std::vector<std::string>{"help", "--table"})
    return run([&line] {
      std::fputs(line.table().c_str(), stdout);
      return cli::kExitDone;
    });
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    const bool known = words.empty() || std::any_of(std::begin(kCommands), std::end(kCommands),
                                                    [&words](const Entry& e) { return words[0] == e.name; });
    if (known) words.emplace_back("--help");  // otherwise CLI11 complains about an unexpected argument
  }
  try {
    if (const std::optional<std::string> text = line.parse(words))  // --help, --version
      return run([&text] {
        std::fputs(text->c_str(), stdout);
        return cli::kExitDone;
      });
    require(!line.chosen_name().empty(), ErrorKind::kBadArgument, "a command is missing: encode, decode, info, …");
  } catch (const Error& e) {
    return usage_error(line, e.what());
  }
  set_log_level(common);
  for (const auto& [command, action] : commands)
    if (command.chosen()) return run(action);
  return cli::kExitUsage;
}
