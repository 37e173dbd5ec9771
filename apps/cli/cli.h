// What the subcommands share: the options they have in common and the parsing of their values.
//
// A subcommand is a function define_NAME(app, common): it adds its options to `app` and returns the action to run once
// the command line is parsed. An action returns an exit code or throws Error, which main() maps:
//   0 done   1 internal error   2 usage   3 input/output   4 corrupt or truncated input   5 unsupported
//   6 a verification or comparison failed   7 out of memory   130 interrupted
// Standard output carries data only; everything else goes to standard error.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "apps/cli/command.h"
#include "codec/base/limits.h"
#include "io/video/video_io.h"
#include "trivelet/codec.h"

namespace trivelet::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitInternal = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitIo = 3;
inline constexpr int kExitBadStream = 4;
inline constexpr int kExitUnsupported = 5;
inline constexpr int kExitMismatch = 6;
inline constexpr int kExitNoMemory = 7;  // the system refused memory; needing more than --max-memory is unsupported

int exit_code(ErrorKind kind);

/// A message of a library, with its parameters replaced by options of the command line.
std::string in_options(std::string message);

/// Values of the options that several subcommands have. Only those that a subcommand declared can be typed.
struct Common {
  int threads = 0;
  std::string simd = "auto";
  std::string log_level = "info";
  bool verbose = false;
  bool quiet = false;
  std::string progress = "auto";
  bool overwrite = false;
  std::string max_memory = "8G";  // the defaults are those of Limits
  std::string max_samples = "8G";
  std::string max_frames = "100000000";
  std::string max_files = "100000";
  std::string max_unpacked = "1024G";
  std::string max_work = "4096";
  bool limitless = false;
  std::string trace{};  ///< file to write; empty = none
};

using Action = std::function<int()>;

Action define_encode(Command& app, Common& common);
Action define_decode(Command& app, Common& common);
Action define_info(Command& app, Common& common);
Action define_verify(Command& app, Common& common);
Action define_compare(Command& app, Common& common);
Action define_bench(Command& app, Common& common);
Action define_truncate(Command& app, Common& common);
Action define_extract(Command& app, Common& common);
Action define_join(Command& app, Common& common);
Action define_play(Command& app, Common& common);
Action define_thumbnail(Command& app, Common& common);
Action define_mux(Command& app, Common& common);
Action define_demux(Command& app, Common& common);
Action define_plan(Command& app, Common& common);
Action define_view(Command& app, Common& common);
Action define_ccsds(Command& app, Common& common);
Action define_still(Command& app, Common& common);

/// A command below another.
struct Subcommand {
  const char* name;
  const char* help;
  Action (*define)(Command&, Common&);
};
/// Adds them to `app`. One must be given; the action of `app` runs it.
Action define_subcommands(Command& app, Common& common, std::span<const Subcommand> commands);

// Groups of options. Each declares its options in `app` under its own heading.

void add_log_options(Command& app, Common& common);      ///< -v --quiet --log-level
void add_work_options(Command& app, Common& common);     ///< -t --simd
void add_progress_option(Command& app, Common& common);  ///< --progress
/// --max-memory, unless a command that encodes uses it for the GPU, and the other Limits
void add_limit_options(Command& app, Common& common, bool with_memory = true);
void add_overwrite_option(Command& app, Common& common);  ///< -y

/// Threads, instruction set and memory as the common options say.
DecoderParams decoder_params(const Common& common);
Limits limits(const Common& common);

/// How to read input that does not describe itself.
struct InputOptions {
  std::vector<std::string> sizes;  ///< --size: WxH of raw video; for encoding also the target in bytes
  bool sizes_may_be_targets = false;
  std::string pixel_format;
  std::string frame_rate;
  std::string format;
  std::string stream;
  bool allow_outside = false;
  bool recover = false;
};
/// `with_target`: --size may also be the size of the file to write.
void add_input_options(Command& app, InputOptions& options, bool with_target = false);
io::ReaderOptions reader_options(const InputOptions& options, const Common& common);

/// How to encode: everything in EncoderParams.
struct CodingOptions {
  double quality = EncoderParams{}.quality;
  double step = 0;
  double bits_per_pixel = 0;
  std::string bit_rate;
  double psnr = 0;
  std::string max_rate;
  double rate_window = EncoderParams{}.rate_window;
  bool lossless = false;
  std::string preset = "medium";
  std::string tune = "psnr";
  bool no_scene_cuts = false;
  int gop = 0;  ///< 0: as suits the video
  std::string levels;
  std::string spatial_wavelet;
  std::string temporal_wavelet;
  std::string layout = "dyadic";
  std::string motion;  ///< empty: as suits the other options
  int key_interval = 0;
  std::string key_prediction;
  std::string profile;
  int block_size = 128;
  int layers = EncoderParams{}.layers;
};
void add_coding_options(Command& app, CodingOptions& options);
/// `app` reports which options were typed; they are stored in EncoderParams::settings. With `names_preset` the preset
/// is, too; of a volume it would only say how long the encoder searched.
EncoderParams encoder_params(const Command& app, const CodingOptions& options, const InputOptions& input,
                             const Common& common, bool names_preset = true);
/// The GOP length of motion and prediction depends on the pictures, unless it is chosen already.
void choose_gop_frames(const VideoInfo& video, EncoderParams& params);

// Values.

/// "4G", "10M", "1500k", "10MiB" (powers of 1024), "10MB" (of 1000), "64" bytes.
std::size_t parse_size(const std::string& text);

/// Frames [first, end). An end that was typed as a time has seconds, counted from the beginning of the first frame. Its
/// number is undefined until the times of the frames are known (video.h: frame_range).
struct FrameRange {
  std::uint64_t first = 0;
  std::uint64_t end = std::numeric_limits<std::uint64_t>::max();
  std::optional<double> first_seconds{};
  std::optional<double> end_seconds{};
  std::uint64_t count() const { return end - first; }
  bool has_end() const { return end != std::numeric_limits<std::uint64_t>::max(); }
  bool has_times() const { return first_seconds || end_seconds; }
};
/// "A:B", "A:", ":B", "" = all; A and B are numbers or times, "1.5s" or "00:01:10.5". `option` is for messages.
FrameRange parse_frame_range(const std::string& text, const std::string& option = "--frames");

/// "8M", "8Mbps", "1500k", "64000" bits per second (powers of 1000).
double parse_bit_rate(const std::string& text);

/// "25", "30000/1001", "29.97" (the NTSC rates mean n * 1000 / 1001).
Rational parse_frame_rate(const std::string& text);

/// "1920x1080", "4x5": two numbers.
std::pair<int, int> parse_pair(const std::string& text, const std::string& option, const std::string& meaning);

std::string to_string(Wavelet wavelet);
std::string to_string(Layout layout);
std::string to_string(Profile profile);
std::string to_string(FastMode mode);

/// "1280x720 yuv420p, 25 frames/s".
std::string describe(const VideoInfo& info);

/// The stages of an encoder or a decoder by name, in their order.
std::vector<std::pair<const char*, StageTime>> stages_by_name(const EncoderStages& stages);
std::vector<std::pair<const char*, StageTime>> stages_by_name(const DecoderStages& stages);

/// "transform 0.812 (1.9 threads), coder ..., other 0.002": the stages of `seconds`.
std::string describe(const std::vector<std::pair<const char*, StageTime>>& stages, double seconds);

}  // namespace trivelet::cli
