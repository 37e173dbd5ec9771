// trivelet encode of a video, from the command line to the finished file: one EncodeJob, on which the stages work in
// turn.
#pragma once

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/trace_file.h"
#include "apps/cluster/encode_journal.h"
#include "apps/cluster/worker_group.h"
#include "apps/video/encode_options.h"
#include "apps/video/video.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "codec/threads/stopwatch.h"

namespace trivelet::cli {

/// Keeps the first bytes of a stream, to write its header again: containers may promise another number of frames than
/// they deliver, and a stream that promises more than it has does not verify.
class HeadSink final : public ByteSink {
 public:
  /// `file`: the file in which the header can be written again; null if that is not possible.
  HeadSink(ByteSink& sink, FileSink* file) : sink_(sink), file_(file) {}
  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::uint8_t*>(data);
    head_.insert(head_.end(), p, p + std::min(size, kMost - std::min(kMost, head_.size())));
    sink_.write(data, size);
  }
  void end_packet(const PacketInfo& packet) override { sink_.end_packet(packet); }
  /// Skips bytes that another process writes into the file.
  void skip(std::uint64_t bytes) { file_->seek(file_->position() + bytes); }
  /// What was written first.
  StreamHeader header() const {
    Box box;
    require(head_.size() >= kAt && parse_box_header(head_.data() + sizeof kSignature, box) &&
                box.length <= head_.size() - kAt,
            ErrorKind::kInternal, "the encoder wrote no header");
    return parse_stream_header(head_.data() + kAt, static_cast<std::size_t>(box.length));
  }
  void set_frames(std::uint64_t frames) {
    if (file_ == nullptr) return;
    StreamHeader header_again = header();
    header_again.video.frames = frames;
    const std::vector<std::uint8_t> again = serialise(header_again);
    const std::uint64_t end = file_->position();
    file_->seek(kAt);
    file_->write(again.data(), again.size());
    file_->seek(end);
  }

 private:
  static constexpr std::size_t kAt = sizeof kSignature + kBoxHeaderBytes;
  static constexpr std::size_t kMost = 1 << 16;
  ByteSink& sink_;
  FileSink* file_;
  std::vector<std::uint8_t> head_;
};

/// MD5 of all samples that pass by: proves a lossless round trip without reading the input twice.
class Digest {
 public:
  explicit Digest(const VideoInfo& info) : writer_(io::open_writer("md5", info, {})) {}
  void add(const Gop& gop) {
    for (int i = 0; i < gop.frames(); ++i) writer_->write(gop, i);
  }
  std::string result() {
    writer_->finish();
    return writer_->result();
  }

 private:
  std::unique_ptr<io::FrameWriter> writer_;
};

/// What came of encoding.
struct Coded {
  std::uint64_t frames = 0;
  std::uint64_t bytes = 0;
};

struct EncodeJob {
  // As typed; `options` and `common` become those of this process.
  const EncodeOptions& given;
  const Command& app;
  EncodeOptions options;
  Common common;
  /// Identifies the job; equal in all processes.
  std::string name() const {
    return given.input + "\n" + given.output + "\n" + given.frames + "\n" + given.reading.stream;
  }

  std::unique_ptr<Processes> alone{};  ///< of --resume in one process
  Processes* processes = nullptr;      ///< null: this one encodes alone
  const char* members = "";            ///< what they are: "processes", "GPUs"
  /// Calls the others, if there are any.
  std::function<void(const std::vector<std::uint8_t>& details)> call{};

  EncoderParams params{};
  FrameRange range{};
  std::optional<StreamLayout> pin{};  ///< the stream of --pin-from
  std::optional<TraceFile> trace{};
  std::unique_ptr<VideoInput> input{};
  Stopwatch clock{};  ///< from the moment on when all is chosen that does not need the input
  std::future<std::shared_ptr<const Backend>> starting{};
  VideoInfo video{};  ///< of the stream
  io::SideStreamOptions side_streams{};
  std::unique_ptr<io::StreamOutput> sink{};
  std::shared_ptr<const Backend> backend{};  ///< null: the CPU
  std::optional<HeadSink> stream{};          ///< into `sink`
  std::unique_ptr<Digest> digest{};          ///< of the input; null: not needed
  std::unique_ptr<EncodeJournal> journal{};
  Coded coded{};

  bool plain_gops() const { return options.coding.no_scene_cuts || options.joinable; }
  /// Throws if a stream with this header does not match --pin-from.
  void check_pin(const StreamHeader& header) const;
};

// The stages that have files of their own.
/// encode_choice.cpp: all choices before the input is read, except the device.
void choose_params(EncodeJob& job);
/// encode_alone.cpp: encodes the whole input with one encoder. A stream of no frames is left unfinished.
void encode_alone(EncodeJob& job);
/// encode_with_others.cpp: by several processes, or with a journal.
void encode_with_others(EncodeJob& job);
/// What all processes but the first do.
void help_with_encoding(const EncodeOptions& given, const Command& app, const std::string& name, Processes& processes,
                        const std::string& device, const Common& common);
/// encode_verify.cpp: checks that the finished file can be opened. It reads header, boxes and index again, which takes
/// almost no time.
void check_written(const std::string& path, const std::string& output, std::uint64_t frames);
/// Decodes the finished file again. Returns the result as text; throws Mismatch.
std::string verify(EncodeJob& job);

/// Whether the input can be read a second time: files, folders of pictures and sequences (frames/%03d.png).
bool can_read_again(const std::string& path);
void open_input(EncodeJob& job);
}  // namespace trivelet::cli
