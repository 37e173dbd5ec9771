// Opens inputs and outputs of the commands for video: streams, films, pipes and raw files.

#include "apps/video/video.h"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>

#include "apps/cli/log.h"
#include "codec/base/bytes.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "io/source.h"
#include "io/video/video_format_table.h"
#include "trivelet/scene_cuts.h"

namespace trivelet::cli {

namespace {

/// The first bytes a pipe will deliver, left in it. Waits up to a second after the first one came, until all are there
/// or enough(count) of them.
template <class Enough>
std::size_t peek_pipe(int fd, std::byte* data, std::size_t size, const Enough& enough) {
  std::size_t seen = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    int copy[2];
    if (pipe(copy) != 0) return 0;
    const ssize_t there = tee(fd, copy[1], size, 0);
    seen = there > 0 ? static_cast<std::size_t>(std::max<ssize_t>(0, ::read(copy[0], data, size))) : 0;
    close(copy[0]);
    close(copy[1]);
    if (there <= 0 || seen == size || enough(seen)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return seen;
}

enum class Piped { kOther, kStream, kMatroska };

/// What comes out of standard input, a pipe.
Piped piped_stream() {
  std::vector<std::byte> head(std::size_t{1} << 16);  // what a pipe holds
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(head.data());
  const std::size_t seen = peek_pipe(STDIN_FILENO, head.data(), head.size(), [&](std::size_t there) {
    return there >= 8 && io::begins_with_stream(bytes, there).has_value();
  });
  if (trivelet::is_tvl(head.data(), seen)) return Piped::kStream;
  return io::begins_with_stream(bytes, seen).value_or(false) ? Piped::kMatroska : Piped::kOther;
}

/// A .tvl stream as a reader of frames.
class TvlReader final : public io::FrameReader {
 public:
  TvlReader(const std::string& path, const Common& common, const FrameRange& range, bool recover)
      : path_(path), file_(open_stream_file(path)), params_(params(common, range)), recover_(recover) {
    begin();
    warn_of_lost_index(path, decoder_->info().index_damage);
  }

  const VideoInfo& info() const override { return decoder_->output(); }
  io::SideStreams side_streams() const override { return file_.side_streams; }
  Metadata metadata() const override { return decoder_->info().metadata; }
  std::string damage() const override {
    if (lost_ == 0) return damage_;
    const std::string lost = lost_reason_ + "; the frames before " + std::to_string(lost_) + " are missing";
    return damage_.empty() ? lost : lost + ", and what follows this: " + damage_;
  }

  bool read(Gop& gop, int index) override {
    if (next_ >= gop_->frames()) {
      if (!naming(path_, [this] { return pull(); })) return false;
      next_ = 0;
    }
    const Gop& from = *gop_;
    for (int c = 0; c < from.components(); ++c) {
      const VolumeView in = from.plane(c);
      const MutableVolumeView out = gop.plane(c);
      const std::size_t bytes =
          static_cast<std::size_t>(in.shape.width) * static_cast<std::size_t>(in.bytes_per_sample);
      for (int y = 0; y < in.shape.height; ++y) std::memcpy(out.row(index, y), in.row(next_, y), bytes);
    }
    gop.times()[static_cast<std::size_t>(index)] = from.times()[static_cast<std::size_t>(next_)];
    ++next_;
    return true;
  }

 private:
  static DecoderParams params(const Common& common, const FrameRange& range) {
    DecoderParams p = decoder_params(common);
    p.first_frame = range.first;
    p.end_frame = range.end;
    return p;
  }

  void begin() {
    decoder_.emplace(*file_.source, params_);
    gop_.emplace(decoder_->make_gop());
  }

  /// The next GOP. Of a damaged stream those before the damage, or if there are none, those behind it.
  bool pull() {
    while (damage_.empty()) try {
        const bool more = decoder_->pull(*gop_);
        begun_ = begun_ || more;
        return more;
      } catch (const Error& e) {
        if (!recover_ || e.kind() != ErrorKind::kBadStream) throw;
        if (lost_reason_.empty()) lost_reason_ = e.what();
        if (begun_)
          damage_ = e.what();
        else if (!begin_at_next_key())
          throw;
      }
    gop_->set_frames(0);
    return false;
  }

  /// Whether there is a GOP behind that with the first frame that needs none before.
  bool begin_at_next_key() {
    const StreamInfo& stream = decoder_->info();
    if (!stream.has_index || !file_.source->seekable()) return false;
    const auto gop = std::find_if(stream.gops.begin(), stream.gops.end(), [&](const GopInfo& g) {
      return g.first_frame > params_.first_frame && g.key != GopKey::kOpen && !g.predicts_keys;
    });
    if (gop == stream.gops.end() || gop->first_frame >= params_.end_frame) return false;
    params_.first_frame = lost_ = gop->first_frame;
    gop_.reset();
    decoder_.reset();
    file_.source->seek(0);
    begin();
    return true;
  }

  std::string path_;
  StreamFile file_;
  DecoderParams params_;
  std::optional<Decoder> decoder_;
  std::optional<Gop> gop_;
  int next_ = 0;
  bool recover_ = false;
  bool begun_ = false;      ///< a GOP was delivered
  std::uint64_t lost_ = 0;  ///< frames before this one are missing; 0 = none are
  std::string lost_reason_;
  std::string damage_;  ///< by which it ended
};

}  // namespace

std::string name_of_input(const std::string& path) { return path == "-" ? "standard input" : "'" + path + "'"; }

bool is_tvl_file(const std::string& path) {
  std::array<std::byte, 8> head{};
  struct stat status {};
  const bool standard = path == "-";
  if ((standard ? fstat(STDIN_FILENO, &status) : stat(path.c_str(), &status)) != 0) return false;
  if (S_ISREG(status.st_mode)) {
    const int fd = standard ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    const ssize_t n = pread(fd, head.data(), head.size(), standard ? lseek(fd, 0, SEEK_CUR) : 0);
    if (!standard) close(fd);
    return n > 0 && (trivelet::is_tvl(head.data(), static_cast<std::size_t>(n)) || io::holds_stream(path));
  }
  // A named pipe would lose its writer if it were closed and opened again, so only its name is used.
  if (!standard) return S_ISFIFO(status.st_mode) && std::filesystem::path(path).extension() == ".tvl";
  return S_ISFIFO(status.st_mode) && piped_stream() != Piped::kOther;
}

void require_tvl_file(const std::string& path, const std::string& is_not) {
  if (is_tvl_file(path)) return;
  if (path != "-" && access(path.c_str(), R_OK) != 0)
    fail(ErrorKind::kIo, "cannot open '" + path + "': " + std::strerror(errno));
  fail(ErrorKind::kBadStream, "'" + path + "' " + is_not);
}

// ------------------------------------------------------------------------------------------------------ video input

VideoInput::VideoInput(const std::string& path, const io::ReaderOptions& options, const Common& common,
                       const FrameRange& range)
    : path_(path), left_(range.first_seconds ? range.end : range.count()) {
  require(path != "-" || isatty(STDIN_FILENO) == 0, ErrorKind::kBadArgument,
          "standard input is a terminal, not a video");
  is_tvl_ = options.format.empty() && is_tvl_file(path);
  require(!is_tvl_ || options.stream.empty(), ErrorKind::kBadArgument,
          "--stream " + options.stream + ": " + name_of_input(path) +
              " is a Trivelet stream; --stream is for other files, which may hold several videos");
  if (is_tvl_) {
    require(!range.has_times(), ErrorKind::kInternal, "times are numbers of frames where a stream is read");
    reader_ = naming(path, [&] { return std::make_unique<TvlReader>(path, common, range, options.recover); });
    info_ = reader_->info();
    side_streams_ = reader_->side_streams();
  } else {
    reader_ = io::open_reader(path, options);
    info_ = reader_->info();
    side_streams_ = reader_->side_streams();
    std::uint64_t first = range.first;
    if (range.first_seconds) {
      first = reader_->skip_before(*range.first_seconds);
      left_ = range.has_end() && range.end > first ? range.end - first : range.has_end() ? 0 : left_;
    } else if (first > 0) {
      const std::uint64_t skipped = reader_->skip(first);
      require(skipped == first, ErrorKind::kBadArgument,
              "--frames starts at " + std::to_string(first) + ", but " + name_of_input(path) + " holds only " +
                  count_of(skipped, "frame"));
    }
    if (range.end_seconds) {
      // As in skip_before(): times are rounded to ticks.
      end_ticks_ = static_cast<double>(reader_->begin_pts()) + (*range.end_seconds - 1e-6) / info_.time_base.value();
      info_.frames = 0;
    }
    if (info_.frames > 0) info_.frames = std::min(info_.frames - std::min(info_.frames, first), left_);
  }
  require(options.width == 0 || (options.width == info_.width && options.height == info_.height),
          ErrorKind::kBadArgument,
          "--size " + std::to_string(options.width) + "x" + std::to_string(options.height) + ": " +
              name_of_input(path) + " is " + describe(info_) + "; --size is for raw video");
  require(options.pixel_format.empty() || io::samples_of(options.pixel_format) == info_.format, ErrorKind::kBadArgument,
          "--pix-fmt " + options.pixel_format + ": " + name_of_input(path) + " is " + describe(info_) +
              " and is not converted; --format ffmpeg or a file that FFmpeg reads would be");
  require(options.frame_rate.num == 0 || options.frame_rate == info_.frame_rate, ErrorKind::kBadArgument,
          "--fps " + to_string(options.frame_rate) + ": " + name_of_input(path) + " is " + describe(info_) +
              " and keeps it");
}

VideoInput::~VideoInput() {
  if (!reader_ || !says_remarks_) return;
  try {
    for (const std::string& remark : reader_->remarks()) log::warn("{}: {}", name_of_input(path_), in_options(remark));
  } catch (const std::exception&) {  // no memory for the words
  }
}

bool VideoInput::read(Gop& gop) {
  gop.set_frames(gop.capacity());
  gop.set_frames(read_frames(gop, 0, gop.capacity()));
  return gop.frames() > 0;
}

template <class Read>
int VideoInput::take(const Gop& gop, int first, int count, const Read& read) {
  const auto wanted = static_cast<int>(std::min<std::uint64_t>(left_, static_cast<std::uint64_t>(count)));
  const int there = wanted > 0 ? read(wanted) : 0;
  int got = there;
  passed_ = 0;
  for (int i = 0; end_ticks_ && i < got; ++i)
    if (static_cast<double>(gop.times()[static_cast<std::size_t>(first + i)].pts) >= *end_ticks_) {
      passed_ = got - i;
      got = i;
    }
  left_ = got < wanted ? 0 : left_ - static_cast<std::uint64_t>(got);  // the end is requested once
  return got;
}

int VideoInput::read_frames(Gop& gop, int first, int count) {
  return take(gop, first, count, [&](int wanted) { return reader_->read_frames(gop, first, wanted); });
}

int VideoInput::look(Gop& gop, int first, int count, bool scenes) {
  const SceneCuts::Rows rows = scenes ? SceneCuts::rows(info_.height) : SceneCuts::Rows{info_.height, 1};
  return take(gop, first, count, [&](int wanted) { return reader_->look(gop, first, wanted, rows.first, rows.step); });
}

void VideoInput::skip(std::uint64_t count) {
  const std::uint64_t passed = reader_->skip(count);
  require(passed == count, ErrorKind::kBadStream,
          "the input ends " + count_of(count - passed, "frame") + " before those that are wanted of it");
  left_ -= std::min(left_, count);
}

bool VideoInput::unread(int count) {
  if (!reader_->unread(count + passed_)) return false;
  left_ += static_cast<std::uint64_t>(count + passed_);
  passed_ = 0;
  return true;
}

// ------------------------------------------------------------------------------------------------------------- films

namespace {

/// A stream in a separate file.
class PlainOutput final : public io::StreamOutput {
 public:
  PlainOutput(const std::string& path, bool overwrite) : file_(path, overwrite) {}
  void write(const void* data, std::size_t size) override { file_.write(data, size); }
  void end_packet(const PacketInfo& packet) override { file_.end_packet(packet); }
  void finish() override {
    if (file_.seekable()) file_.seek(file_.position());  // writes out what is buffered
  }
  void commit() override { file_.commit(); }
  const std::string& temporary_path() const override { return file_.temporary_path(); }
  FileSink* file() override { return file_.seekable() ? &file_ : nullptr; }
  std::vector<std::string> remarks() const override { return {}; }

 private:
  FileSink file_;
};

}  // namespace

void add_film_options(Command& app, FilmOptions& options) {
  constexpr const char* kFilm = "Sound, subtitles, chapters (outputs that hold them: .mkv, .mp4 ...)";
  auto audio = app.add_option("--audio", options.audio, "Sound: copy unchanged, leave out, or encode again")
                   .one_of({"copy", "none", "opus", "flac"})
                   .show_default()
                   .group(kFilm);
  app.add_flag("--only-video", options.only_video, "Leave out sound, subtitles, chapters, attachments and tags")
      .group(kFilm)
      .excludes(audio);
  app.add_option("--tracks-from", options.tracks_from, "Take all of these from another file instead of the input")
      .type_name("FILE")
      .group(kFilm);
  app.add_option(
         "--map", options.map,
         "Only these tracks beside the video, in ffmpeg's notation: a:0, s, 3, m:language:eng; -s: all but these")
      .type_name("TRACKS")
      .repeatable()
      .group(kFilm)
      .check([](const std::string& text) {
        return text.empty() || text == "-" ? "--map: write a:0, s, 3, -s ..." : std::string();
      });
}

void refuse_film_options(const std::string& output, const Command& app) {
  for (const char* option : {"--audio", "--tracks-from", "--map"})
    require(!app.typed(option), ErrorKind::kBadArgument,
            std::string(option) + ": '" + output + "' holds pictures only; .mkv holds more");
}

StreamFile open_stream_file(const std::string& path) {
  struct stat status = {};
  if (path == "-" && fstat(STDIN_FILENO, &status) == 0 && S_ISFIFO(status.st_mode) &&
      piped_stream() == Piped::kMatroska) {
    auto pipe = std::make_unique<io::MatroskaPipe>(path);
    io::SideStreams side_streams = pipe->side_streams();
    return {std::move(pipe), std::move(side_streams)};
  }
  if (!io::holds_stream(path)) return {std::make_unique<FileSource>(path)};
  auto matroska = std::make_unique<io::MatroskaSource>(path);
  io::SideStreams side_streams = matroska->side_streams();
  return {std::move(matroska), std::move(side_streams)};
}

io::SideStreamOptions side_streams_for(const std::string& input, const io::SideStreams& side_streams,
                                       const FilmOptions& options, const FrameRange& frames) {
  io::SideStreamOptions taken;
  if (options.only_video) return taken;
  taken.sound = options.audio != "none";
  if (options.audio == "opus" || options.audio == "flac") taken.sound_codec = options.audio;
  taken.map = options.map;
  taken.after_first_frame = frames.first > 0 || frames.first_seconds.value_or(0) > 0;
  taken.before_last_frame = frames.has_end() || frames.end_seconds;
  taken.from = options.tracks_from;
  if (taken.from.empty() && input == "-" && !side_streams.empty())
    log::warn(
        "of standard input these are left out, because a pipe is read only once; --tracks-from FILE takes them from a "
        "file: {}",
        io::to_string(side_streams));
  if (taken.from.empty() && input != "-" && (!side_streams.empty() || io::holds_stream(input))) taken.from = input;
  if (!taken.from.empty() && io::holds_stream(taken.from))
    taken.clock_offset_us = io::MatroskaSource(taken.from).clock_offset_us();
  return taken;
}

bool names_other_file(const std::string& output) {
  constexpr std::string_view kOther[] = {"3gp",  "avi", "bmp",  "dcm",  "dpx", "exr", "flv",  "gif", "gray", "gz",
                                         "h264", "hdr", "hevc", "img",  "j2k", "jp2", "jpeg", "jpg", "m4v",  "mha",
                                         "mhd",  "mov", "mp4",  "mpeg", "mpg", "mxf", "nhdr", "nii", "nrrd", "nut",
                                         "ogv",  "pbm", "pgm",  "png",  "pnm", "ppm", "raw",  "rgb", "tga",  "tif",
                                         "tiff", "ts",  "webm", "webp", "wmv", "y4m", "yuv"};
  std::string extension = std::filesystem::path(output).extension().string();
  if (extension.empty()) return false;
  extension.erase(0, 1);
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return std::find(std::begin(kOther), std::end(kOther), extension) != std::end(kOther);
}

void require_stream_name(const std::string& output) {
  require(!names_other_file(output), ErrorKind::kBadArgument,
          "'" + output +
              "' is the name of another kind of file, but this command writes a Trivelet stream; name it .tvl, or .mkv "
              "for a film with sound ('trivelet decode' writes other kinds)");
}

bool is_matroska_name(const std::string& output) { return std::filesystem::path(output).extension() == ".mkv"; }

std::unique_ptr<io::StreamOutput> open_stream_output(const std::string& output, const Common& common,
                                                     const io::SideStreamOptions& side_streams) {
  require_stream_name(output);
  if (is_matroska_name(output)) return io::make_matroska_output(output, common.overwrite, side_streams);
  return std::make_unique<PlainOutput>(output, common.overwrite);
}

std::unique_ptr<ReadBack> read_back_of(io::StreamOutput& output) {
  FileSink* const file = output.file();
  return file ? FileReadBack::of(*file) : nullptr;
}

void warn_of_loss(const std::string& output, const io::SideStreams& input, const FilmOptions& options) {
  if (!input.empty() && !options.only_video)
    log::warn("'{}' holds pictures only; of the input these are left out, which .mkv can hold: {}", output,
              io::to_string(input));
}

void warn_of_remarks(const std::string& output, const std::vector<std::string>& remarks) {
  if (remarks.empty()) return;
  std::string all;
  for (const std::string& remark : remarks) all += (all.empty() ? "" : "; ") + remark;
  log::warn("'{}' lacks something of the input: {}", output, all);
}

io::ReaderOptions like_video(io::ReaderOptions options, const std::string& path, const VideoInfo& like) {
  const std::string extension = std::filesystem::path(path).extension().string();
  const bool raw = options.format == "raw" || (options.format.empty() && (extension == ".yuv" || extension == ".raw" ||
                                                                          extension == ".rgb" || extension == ".gray"));
  if (!raw) return options;
  if (options.format.empty() && options.width == 0 && path != "-") {
    io::InputBytes file(path);
    if (io::is_sgi(file)) return options;
  }
  if (options.width == 0) {
    options.width = like.width;
    options.height = like.height;
  }
  if (options.pixel_format.empty()) options.pixel_format = trivelet::to_string(like.format);
  return options;
}

FrameRange frame_range(const std::string& text, const std::string& input) {
  FrameRange range = parse_frame_range(text);
  if (!range.has_times() || !is_tvl_file(input)) return range;
  const StreamFile file = open_stream_file(input);
  require(file.source->seekable(), ErrorKind::kBadArgument,
          "--frames " + text +
              ": the times of a stream are at its end, which a pipe does not allow to read first; use a file or frame "
              "numbers");
  std::uint64_t bytes_read = 0;
  StreamInput in(*file.source, bytes_read);
  StreamLayout layout;
  layout.read(in);
  const std::vector<GopInfo>& gops = layout.info.gops;
  const double tick = layout.header.video.time_base.value();
  require(!gops.empty() && tick > 0, ErrorKind::kBadArgument, "--frames " + text + ": '" + input + "' has no times");
  const auto begin = static_cast<double>(gops.front().begin_pts);
  // The first frame that begins at this time or later; the number of frames if there is none.
  const auto frame_at = [&](double seconds) -> std::optional<std::uint64_t> {
    const double then = begin + (seconds - 1e-6) / tick;
    for (const GopInfo& gop : gops) {
      if (static_cast<double>(gop.end_pts) <= then) continue;
      const GopHeader header = read_gop_header(in, layout.header, gop);
      for (std::size_t i = 0; i < header.times.size(); ++i)
        if (static_cast<double>(header.times[i].pts) >= then) return gop.first_frame + i;
    }
    return std::nullopt;
  };
  if (range.first_seconds) {
    const std::optional<std::uint64_t> first = frame_at(*range.first_seconds);
    require(first.has_value(), ErrorKind::kBadArgument,
            fmt::format("--frames {}: '{}' lasts {:.3f} s", text, input,
                        (static_cast<double>(gops.back().end_pts) - begin) * tick));
    range.first = *first;
  }
  if (range.end_seconds) {
    const std::optional<std::uint64_t> end = frame_at(*range.end_seconds);
    if (!end) log::warn("--frames {}: '{}' ends before", text, input);
    range.end = end.value_or(range.end);
  }
  require(range.first < range.end, ErrorKind::kBadArgument,
          "--frames " + text + ": no frame of '" + input + "' is there");
  range.first_seconds = range.end_seconds = std::nullopt;
  return range;
}

GopHeader read_gop_header(StreamInput& in, const StreamHeader& stream, const GopInfo& gop) {
  in.seek(gop.offset + kBoxHeaderBytes);
  std::vector<std::uint8_t> bytes;
  require(in.append(bytes, 4), ErrorKind::kBadStream, "a GOP ends within its header");
  const auto size = load_little_endian<std::uint32_t>(bytes.data());
  require(size >= 8 && size <= kMaxHeaderBytes && in.append(bytes, size - 4), ErrorKind::kBadStream,
          "a GOP ends within its header");
  return parse_gop_header(stream, bytes.data(), bytes.size());
}

// ------------------------------------------------------------------------------------------------------------ sizes

std::size_t frame_bytes(const VideoInfo& info) {
  std::size_t bytes = 0;
  for (int c = 0; c < info.format.components(); ++c)
    bytes += checked_mul(checked_mul(static_cast<std::size_t>(info.component_width(c)),
                                     static_cast<std::size_t>(info.component_height(c))),
                         static_cast<std::size_t>(info.format.bytes_per_sample()));
  return bytes;
}

int buffer_frames(const VideoInfo& info) {
  return static_cast<int>(
      std::clamp<std::size_t>((std::size_t{64} << 20) / std::max<std::size_t>(frame_bytes(info), 1), 1, 32));
}

void warn_of_lost_index(const std::string& path, const std::string& index_damage) {
  if (!index_damage.empty())
    log::warn("{}: {}; the GOPs were found without it, by their packets", name_of_input(path), index_damage);
}

void check_output(const std::string& input, const std::string& output, bool binary) {
  require(!(binary && output == "-" && isatty(STDOUT_FILENO) != 0), ErrorKind::kBadArgument,
          "standard output is a terminal; name a file or a pipe");
  std::error_code ignored;
  if (input != "-" && output != "-" && std::filesystem::is_regular_file(input, ignored))
    require(!std::filesystem::equivalent(input, output, ignored), ErrorKind::kBadArgument,
            "'" + output + "' is both input and output");
}

}  // namespace trivelet::cli
