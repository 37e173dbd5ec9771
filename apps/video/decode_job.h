// trivelet decode of a video, from the command line to the finished output: one DecodeJob, on which the stages work in
// turn.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/progress.h"
#include "apps/cli/trace_file.h"
#include "apps/cluster/gather.h"
#include "apps/cluster/processes.h"
#include "apps/video/batch.h"
#include "apps/video/video.h"
#include "codec/threads/stopwatch.h"
#include "io/video/part_writer.h"

namespace trivelet::cli {

struct DecodeOptions {
  std::string device = "auto";
  std::string input;
  std::string output;
  DecodingOptions part;
  FilmOptions film;
  io::WriterOptions writer;
  std::vector<std::string> codec_options;  ///< --codec-opt: "name=value"
  BatchOptions batch;
};

/// How long the frames last by their own times, and by their number.
class FrameClock {
 public:
  explicit FrameClock(const VideoInfo& info) : info_(info) {}
  void add(const Gop& gop);
  void add(std::int64_t frames, double begin, double end);
  std::int64_t frames() const { return frames_; }
  double begin() const { return begin_; }
  double end() const { return end_; }
  /// Warns if `output` shows the frames in equal distances and that is not when they were.
  void warn(const std::string& output) const;

 private:
  const VideoInfo& info_;
  double begin_ = 0;  ///< in units of the time base
  double end_ = 0;
  std::int64_t frames_ = 0;
};

/// How the processes share the work.
enum class Sharing : std::uint8_t { kAlone, kInTurns, kInParts, kVolume };

struct DecodeJob {
  // As typed; `options` and `common` become those of this process.
  const DecodeOptions& given;
  const Command& app;
  DecodeOptions options;
  Common common;
  /// Identifies the job; equal in all processes.
  std::string name() const;
  /// Whether the output is "null".
  bool drops_pictures() const { return format() == "null"; }
  /// The format of the output by name, or the file's name.
  const std::string& format() const { return writing.format.empty() ? options.output : writing.format; }
  /// Most GPU memory to use; 0: all.
  std::size_t gpu_memory() const;

  Processes* processes = nullptr;  ///< null: this one decodes alone
  const char* members = "";        ///< what they are: "processes", "GPUs"
  /// Calls the others, if there are any.
  std::function<void(const std::vector<std::uint8_t>& details)> call{};

  DecoderParams params{};
  FrameRange range{};
  bool no_pictures = false;  ///< the output is a checksum, or nothing
  io::WriterOptions writing{};
  std::optional<TraceFile> trace{};
  Stopwatch clock{};
  StreamFile file{};
  std::shared_ptr<const Backend> backend{};  ///< null: the CPU
  std::unique_ptr<Decoder> decoder{};
  VideoInfo picture{};  ///< as it is written
  std::unique_ptr<io::FrameWriter> writer{};
  Sharing sharing = Sharing::kAlone;
  io::SharedOutput shared{};  ///< into which all write with kInParts; without a path nothing is written

  // What came of it.
  std::uint64_t frames = 0;
  std::optional<FrameClock> times{};
  Gathered gathered{};  ///< with kInTurns
  double seconds_set_up = 0;
  double seconds_waiting = 0;   ///< for the decoder, with kAlone
  double seconds_decoding = 0;  ///< with kAlone
};

/// Most GOPs that a device will have in flight; 0 if that is unknown before reading.
std::uint64_t gops_in_flight(ByteSource& source, const std::string& device, const Limits& limits);

// decode_with_others.cpp: by several processes, or with several GPUs.
/// Chooses how the processes share the work and calls them.
void share_decoding(DecodeJob& job);
/// With kInParts: all processes decode and write their part.
void decode_in_parts(DecodeJob& job, Progress& progress);
/// With kInTurns: this process gets the GOPs that all decode, and passes them on in order.
void decode_in_turns(DecodeJob& job, const std::function<void(const Gop&)>& write);
/// All of a stream that holds a volume. Returns the exit code.
int decode_volume_job(DecodeJob& job);
/// decode_names.cpp: what the output of one of many inputs is called; `name` is that of the input below its folder.
/// `extension`: --out-ext, empty = as the file was called that the stream was made of, or .mkv.
std::string batch_output_name(const std::string& path, const std::string& name, const std::string& extension,
                              const Common& common);

/// What all processes but the first do.
void help_with_decoding(const DecodeOptions& given, const Command& app, Processes& processes, const std::string& device,
                        const Common& common);

}  // namespace trivelet::cli
