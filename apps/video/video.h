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

/// True when the file, or what comes out of the pipe "-", begins like a .tvl stream, or is a Matroska file with one.
/// Nothing is consumed. False for what cannot be opened.
bool is_tvl_file(const std::string& path);
/// Throws BadStream, which says what it is not, for other files, and Io for what cannot be opened.
void require_tvl_file(const std::string& path, const std::string& is_not = "is not a .tvl stream");

/// For messages: the path in quotes, or "standard input".
std::string name_of_input(const std::string& path);
/// What `work` returns, which reads a stream. Errors of damage and limits get the name of the file, if they have none.
template <class Work>
auto naming(const std::string& path, const Work& work) {
  try {
    return work();
  } catch (const Error& e) {
    const std::string_view said = e.what();
    const bool of_input = e.kind() == ErrorKind::kBadStream || said.find("Limits::") != std::string_view::npos;
    if (!of_input || said.find(path == "-" ? "standard input" : path) != std::string_view::npos) throw;
    fail(e.kind(), name_of_input(path) + ": " + e.what());
  }
}
/// Opens any video, .tvl included. `range` selects frames; frames before it are skipped here.
/// Refuses options that the input contradicts: what was typed is obeyed or refused.
class VideoInput {
 public:
  VideoInput(const std::string& path, const io::ReaderOptions& options, const Common& common,
             const FrameRange& range = {});
  /// Warns of what was found in what was read.
  ~VideoInput();

  /// Of the selected frames; `frames` is 0 when the count is not known.
  const VideoInfo& info() const { return info_; }
  bool is_tvl() const { return is_tvl_; }
  const io::SideStreams& side_streams() const { return side_streams_; }
  /// Whether a GPU decodes it.
  bool on_device() const { return reader_->on_device(); }
  Metadata metadata() const { return reader_->metadata(); }
  /// Of inputs that are recovered: why they ended.
  std::string damage() const { return reader_->damage(); }
  /// Fills `gop` up to its capacity. False when no frame was left.
  bool read(Gop& gop);
  /// Fills up to `count` frames of `gop` from `first` on. Returns how many, fewer only at the end.
  int read_frames(Gop& gop, int first, int count);
  /// Whether other processes find frames by their numbers.
  bool can_look() const { return reader_->can_look(); }
  /// As read_frames(), where can_look() says so, but only what SceneCuts looks at, or without `scenes` no samples.
  int look(Gop& gop, int first, int count, bool scenes);
  /// Passes over frames; throws if there are not so many.
  void skip(std::uint64_t count);
  /// Gives back the last `count` frames; false if that cannot be.
  bool unread(int count);
  /// Who decodes the film again says what was found.
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

/// Raw planes say nothing about themselves: where `path` is raw video, fills what was not typed from `like`.
io::ReaderOptions like_video(io::ReaderOptions options, const std::string& path, const VideoInfo& like);

/// Frames of `info` that make about 64 MB, between 1 and 32: a size for buffers where the GOP does not matter.
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

/// A stream to read, from a file of its own, a pipe or Matroska, and what else is there.
struct StreamFile {
  std::unique_ptr<ByteSource> source;
  io::SideStreams side_streams{};
};
StreamFile open_stream_file(const std::string& path);

/// --frames of a stream or another video. Of a stream, times are replaced by the numbers of its frames.
FrameRange frame_range(const std::string& text, const std::string& input);

/// The head of a GOP's packet, with the times of its frames. Throws BadStream.
GopHeader read_gop_header(StreamInput& in, const StreamHeader& stream, const GopInfo& gop);

/// What to take over for an output that can hold it: of `input`, which has `side_streams`, unless --tracks-from names
/// another file. Of `frames` only what is heard and read meanwhile, and where an end is open, what lies before or
/// behind it.
io::SideStreamOptions side_streams_for(const std::string& input, const io::SideStreams& side_streams,
                                       const FilmOptions& options, const FrameRange& frames);
/// Options that an output of pictures alone cannot obey.
void refuse_film_options(const std::string& output, const Command& app);

/// Whether the extension is that of another film, picture or volume: a stream of that name would be taken for one.
bool names_other_file(const std::string& output);
/// Refuses such names.
void require_stream_name(const std::string& output);
/// Where a stream goes: a file of its own, or Matroska if `output` ends in .mkv.
bool is_matroska_name(const std::string& output);
std::unique_ptr<io::StreamOutput> open_stream_output(const std::string& output, const Common& common,
                                                     const io::SideStreamOptions& side_streams);
/// A way back to what is written to it; null where there is none.
std::unique_ptr<ReadBack> read_back_of(io::StreamOutput& output);
/// Says, once, what `output` lacks of what the input has.
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
/// What they ask of a video. Refuses what is for volumes.
DecoderParams part_params(const std::string& input, const DecodingOptions& options, const Common& common);
/// Of a volume: refuses what is for videos.
void refuse_video_parts(const std::string& input, const DecodingOptions& options);

/// Binary data does not go to a terminal, and no output replaces its own input.
void check_output(const std::string& input, const std::string& output, bool binary);

}  // namespace trivelet::cli
