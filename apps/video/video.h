// Frames at the program's edges: one kind of reader for every video, .tvl included.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/cli/cli.h"
#include "codec/base/stream_header.h"
#include "codec/format/stream_input.h"
#include "codec/threads/prefetch.h"
#include "io/video/matroska.h"
#include "io/video/video_io.h"
#include "trivelet/codec.h"
#include "trivelet/volume.h"

namespace trivelet::cli {

/// True if the file, or the pipe "-", begins like a .tvl stream or is a Matroska file with one. Consumes nothing. False
/// for files that cannot be opened.
bool is_tvl_file(const std::string& path);
/// Throws BadStream, with the reason, for other files, and Io for files that cannot be opened.
void require_tvl_file(const std::string& path, const std::string& is_not = "is not a .tvl stream");

/// For messages: the path in quotes, or "standard input".
std::string name_of_input(const std::string& path);
/// Returns the result of `work`, which reads a stream. Errors of damage and limits get the name of the file if they
/// have none.
template <class Work>
auto naming(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    const std::string_view said = e.what();
    const bool names_input = e.kind() == ErrorKind::kBadStream || said.find("Limits::") != std::string_view::npos;
    if (!names_input || said.find(path == "-" ? "standard input" : path) != std::string_view::npos) throw;
    fail(e.kind(), name_of_input(path) + ": " + e.what());
  }
}
/// Opens any video, .tvl included. `range` selects frames; frames before it are skipped here. Refuses options that
/// contradict the input.
class VideoInput {
 public:
  VideoInput(const std::string& path, const io::ReaderOptions& options, const Common& common,
             const FrameRange& range = {});
  /// Prints the warnings of the reader.
  ~VideoInput();

  /// Of the selected frames; `frames` is 0 when the count is not known.
  const VideoInfo& info() const { return info_; }
  bool is_tvl() const { return is_tvl_; }
  const io::SideStreams& side_streams() const { return side_streams_; }
  /// Whether a GPU decodes it.
  bool on_device() const { return reader_->on_device(); }
  Metadata metadata() const { return reader_->metadata(); }
  /// Of inputs that are recovered: why they ended, or did not begin with their first frame.
  std::string damage() const { return reader_->damage(); }
  /// Fills `gop` up to its capacity. False when no frame was left.
  bool read(Gop& gop);
  /// Fills up to `count` frames of `gop` from `first` on. Returns how many, fewer only at the end.
  int read_frames(Gop& gop, int first, int count);
  /// Whether other processes find frames by their numbers.
  bool can_look() const { return reader_->can_look(); }
  /// As read_frames(), if can_look() is true, but only with the samples that SceneCuts compares, or without `scenes`
  /// without samples.
  int look(Gop& gop, int first, int count, bool scenes);
  /// Skips frames; throws if there are fewer.
  void skip(std::uint64_t count);
  /// Gives back the last `count` frames; false if that cannot be.
  bool unread(int count);
  /// The next reader of the film reports the warnings.
  void leave_remarks_to_others() { says_remarks_ = false; }

 private:
  template <class Read>
  int take(const Gop& gop, int first, int count, const Read& read);

  std::string path_;
  std::unique_ptr<io::FrameReader> reader_;
  VideoInfo info_;
  io::SideStreams side_streams_;
  std::uint64_t left_;               ///< frames that may still be read
  std::optional<double> end_ticks_;  ///< frames that begin then or later are not read
  int passed_ = 0;                   ///< of those the last ones that were read all the same
  bool is_tvl_;
  bool says_remarks_ = true;
};

/// Raw planes have no header: if `path` is raw video, takes the properties that were not typed from `like`.
io::ReaderOptions like_video(io::ReaderOptions options, const std::string& path, const VideoInfo& like);

/// Frames of `info` that take about 64 MB, between 1 and 32: a size for buffers that is independent of GOPs.
int buffer_frames(const VideoInfo& info);

/// Bytes of one frame in memory.
std::size_t frame_bytes(const VideoInfo& info);

/// Warns, once, when the index of a stream was lost and had to be rebuilt.
void warn_of_lost_index(const std::string& path, const std::string& index_damage);

/// Sound, subtitles and so on of films, as it is typed.
struct FilmOptions {
  std::string audio = "copy";
  bool only_video = false;
  std::string tracks_from;
  std::vector<std::string> map;
};
void add_film_options(Command& app, FilmOptions& options);

/// A stream to read, from a separate file, a pipe or Matroska, and its side streams.
struct StreamFile {
  std::unique_ptr<ByteSource> source;
  io::SideStreams side_streams{};
};
StreamFile open_stream_file(const std::string& path);

/// --frames of a stream or another video. For a stream, times are replaced by frame numbers.
FrameRange frame_range(const std::string& text, const std::string& input);

/// The header of a GOP's packet, with the times of its frames. Throws BadStream.
GopHeader read_gop_header(StreamInput& in, const StreamHeader& stream, const GopInfo& gop);

/// The side streams for an output that can hold them: those of `input`, which has `side_streams`, unless --tracks-from
/// names another file. With `frames`, only packets of that time, and at an open end also those before or after it.
io::SideStreamOptions side_streams_for(const std::string& input, const io::SideStreams& side_streams,
                                       const FilmOptions& options, const FrameRange& frames);
/// Options that an output of pictures alone cannot obey.
void refuse_film_options(const std::string& output, const Command& app);

/// True if the extension is that of another kind of film, picture or volume: a stream of that name would be mistaken
/// for one.
bool names_other_file(const std::string& output);
/// Refuses such names.
void require_stream_name(const std::string& output);
/// The destination of a stream: a separate file, or Matroska if `output` ends in .mkv.
bool is_matroska_name(const std::string& output);
std::unique_ptr<io::StreamOutput> open_stream_output(const std::string& output, const Common& common,
                                                     const io::SideStreamOptions& side_streams);
/// Reads back what was written; null if that is not possible.
std::unique_ptr<ReadBack> read_back_of(io::StreamOutput& output);
/// Warns, once, of everything of the input that `output` lacks.
void warn_of_loss(const std::string& output, const io::SideStreams& input, const FilmOptions& options);
void warn_of_remarks(const std::string& output, const std::vector<std::string>& remarks);

/// What of a stream to decode, as it is typed.
struct DecodingOptions {
  std::string frames;
  int reduce = 0;
  int temporal_reduce = 0;
  int max_planes = 0;
  int max_layers = 0;
  std::string max_bytes;
  double max_bpp = 0;
  bool keep_partial = false;
  std::string slices;
  std::string region;
};
void add_decoding_options(Command& app, DecodingOptions& options);
/// Applies them to a video. Refuses options for volumes.
DecoderParams part_params(const std::string& input, const DecodingOptions& options, const Common& common);
/// Applies them to a volume. Refuses options for videos.
void refuse_video_parts(const std::string& input, const DecodingOptions& options);

/// Binary data does not go to a terminal, and no output replaces its own input.
void check_output(const std::string& input, const std::string& output, bool binary);

}  // namespace trivelet::cli
