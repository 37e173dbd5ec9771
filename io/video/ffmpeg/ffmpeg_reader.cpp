// Frames of anything FFmpeg decodes: the best video stream, one picture after the other.
//
// Bytes come from an InputBytes, so a pipe can be examined first, and errors of the system keep their texts. The first
// picture is decoded at opening, because only then are size, pixel layout and colour tags certain. Pictures go into
// planes by unpack(), exactly, or from a GPU's memory by DevicePictures. swscale is used only if the caller asks for
// another pixel format. Damage is an error that names the frame. Nothing is skipped or concealed silently, except what
// the video engine of a GPU conceals without reporting it. Frames about which decoders only complain are coded, with a
// warning.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "codec/base/frame_times.h"
#include "io/video/ffmpeg/ffmpeg_convert.h"
#include "io/video/ffmpeg/ffmpeg_description.h"
#include "io/video/ffmpeg/ffmpeg_extras.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/ffmpeg_pictures.h"
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"
#include "io/video/matroska.h"
#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

/// The format of 16 bits with the same components.
std::string integers_for(AVPixelFormat format) {
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(format);
  const bool alpha = desc != nullptr && (desc->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  const bool grey = desc != nullptr && desc->nb_components <= 2 && (desc->flags & AV_PIX_FMT_FLAG_RGB) == 0;
  return grey ? (alpha ? "ya16" : "gray16") : alpha ? "gbrap16" : "gbrp16";
}

/// Size and pixel layout of a picture.
struct PictureLayout {
  int width = 0;
  int height = 0;
  int format = AV_PIX_FMT_NONE;

  static PictureLayout of(const AVFrame& frame) { return {frame.width, frame.height, frame.format}; }
  bool operator==(const PictureLayout&) const = default;
  std::string text() const {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(format));
    return std::to_string(width) + "x" + std::to_string(height) + " " + (name != nullptr ? name : "unknown");
  }
};

/// Counts frames and gives them their times: those of the file, or one tick a frame at a rate of the caller's.
class FrameTimer {
 public:
  FrameTimer() = default;
  /// `ticks`: the duration of frames of which the file tells none.
  FrameTimer(bool own_rate, std::int64_t ticks) : own_rate_(own_rate), ticks_(ticks) {}

  bool has_own_rate() const { return own_rate_; }
  std::uint64_t frames() const { return frames_; }
  /// The time of the next frame.
  FrameTime time_of(const AVFrame& frame) const {
    if (own_rate_) return {static_cast<std::int64_t>(frames_), 1};
    FrameTime time{frame.best_effort_timestamp, duration_of(frame)};
    if (time.duration <= 0) time.duration = ticks_;
    if (time.pts == AV_NOPTS_VALUE) time.pts = frames_ == 0 ? 0 : add_times(last_.pts, last_.duration);
    return time;
  }
  FrameTime count(const AVFrame& frame) {
    const FrameTime time = time_of(frame);
    if (follows_last_ && time.pts <= last_.pts) ++not_behind_;
    follows_last_ = true;
    last_ = time;
    ++frames_;
    return last_;
  }
  void uncount(int frames) {
    frames_ -= static_cast<std::uint64_t>(frames);
    jump();
  }
  /// The next picture is not the one that follows.
  void jump() { follows_last_ = false; }
  /// Pictures whose times are not behind those of the pictures before them.
  std::uint64_t not_behind() const { return not_behind_; }

 private:
  bool own_rate_ = false;
  std::int64_t ticks_ = 1;
  FrameTime last_;
  bool follows_last_ = false;  ///< the next picture
  std::uint64_t frames_ = 0;
  std::uint64_t not_behind_ = 0;
};

class FfmpegReader final : public FrameReader {
 public:
  FfmpegReader(const std::string& path, Source source, const std::string& demuxer, const ReaderOptions& options)
      : name_(source ? source->name() : path), pictures_(name_, path, std::move(source), demuxer, options) {
    const PictureDecoder& decoder = pictures_.decoder();
    const AVFrame& first = pictures_.frame();
    layout_ = PictureLayout::of(first);
    samples_ = pictures_.sample_format();
    check_dimensions(first.width, first.height, ErrorKind::kUnsupported, name_);
    info_ = describe_video(decoder, first, samples_, options.frame_rate);
    const bool own_rate = options.frame_rate.num > 0;
    timer_ = FrameTimer(own_rate, std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(to_av(info_.frame_rate)),
                                                                         decoder.stream().time_base)));
    metadata_ = hdr_of(decoder.stream(), first);
    if (decoder.has_source()) lost_tags_ = read_chapters_and_tags(decoder.input(), decoder.stream().index, metadata_);
    take_time_code(first);
    choose_format(options.pixel_format);
    take_range_of_grey(decoder);
    begin_pts_ = timer_.time_of(first).pts;
    other_colours_ = other_colours(decoder.container_colours(), first);
    if (options.stream.empty()) choice_ = choice_of_video(decoder.input(), decoder.stream().index);
    describe_file(path, first, options.recover);
    // Times of frames that are counted do not match those of chapters.
    if (own_rate && !metadata_.chapters.empty()) {
      metadata_.chapters.clear();
      left_out_fields_.push_back("chapters, whose times are not of the frame rate that was asked for");
    }
    pictures_.start(info_.format);
  }

  const VideoInfo& info() const override { return info_; }

  bool read(Gop& gop, int index) override { return read_frames(gop, index, 1) == 1; }

  int read_frames(Gop& gop, int first, int count) override {
    pictures_.begin_delivery();
    int done = 0;
    for (; done < count; ++done) {
      check_gop(gop, first + done, info_);
      if (!advance()) break;
      take(gop, first + done);
      gop.times()[static_cast<std::size_t>(first + done)] = timer_.count(pictures_.frame());
    }
    pictures_.wait();
    return done;
  }

  std::size_t stretches() override { return timer_.has_own_rate() ? 0 : pictures_.stretches(); }

  void go_to(std::size_t stretch) override {
    require(stretch < stretches(), ErrorKind::kBadArgument, name_ + ": has no stretch " + std::to_string(stretch));
    pictures_.go_to(stretch);
    timer_.jump();
  }

  bool unread(int count) override {
    if (!pictures_.unread(count)) return false;
    timer_.uncount(count);
    return true;
  }

  std::uint64_t skip(std::uint64_t count) override {
    for (std::uint64_t done = 0; done < count; ++done) {
      if (!advance()) return done;
      timer_.count(pictures_.frame());
    }
    return count;
  }

  std::uint64_t skip_before(double seconds) override {
    if (timer_.has_own_rate()) return FrameReader::skip_before(seconds);
    std::uint64_t skipped = 0;
    for (; advance(); ++skipped) {
      const auto since = static_cast<double>(timer_.time_of(pictures_.frame()).pts) - static_cast<double>(begin_pts_);
      if (since * info_.time_base.value() >= seconds - 1e-6) {
        pictures_.hold();
        break;
      }
      timer_.count(pictures_.frame());
    }
    return skipped;
  }
  std::int64_t begin_pts() const override { return begin_pts_; }

  Metadata metadata() const override { return metadata_; }
  std::string damage() const override { return pictures_.decoder().damage(); }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all;
    // A packet of an interlaced film may hold a picture or a field.
    const std::string pictures = info_.field_order == 0 ? " pictures need" : " pictures or fields need";
    if (left_out_ > 0)
      all.push_back((left_out_ == 1 ? "the first picture needs" : "the first " + std::to_string(left_out_) + pictures) +
                    " others that are not in the file, and cannot be decoded; what follows is read");
    if (!left_out_fields_.empty()) all.push_back(text_of_left_out());
    if (!lost_tags_.empty()) {
      std::string text = "tags that the stream has no place for: ";
      constexpr std::size_t kNamed = 4;
      for (std::size_t i = 0; i < std::min(kNamed, lost_tags_.size()); ++i) text += (i > 0 ? ", " : "") + lost_tags_[i];
      all.push_back(text + (lost_tags_.size() > kNamed ? " and others" : ""));
    }
    if (!other_colours_.empty())
      all.push_back("the colours that the container states are not those of the pictures, which are kept: " +
                    other_colours_);
    if (const std::uint64_t count = timer_.not_behind(); count > 0)
      all.push_back(
          (count == 1 ? "the time of 1 picture is" : "the times of " + std::to_string(count) + " pictures are") +
          " not behind that of the picture before: films that are decoded have another");
    if (const std::string complaints = pictures_.complaints(); !complaints.empty()) all.push_back(complaints);
    if (!choice_.empty()) all.push_back(choice_);
    const PictureDecoder& decoder = pictures_.decoder();
    const std::string others = names_of_other_programs(decoder.input(), decoder.stream().index);
    if (!others.empty())
      all.push_back("one program is encoded, and the names of others are not kept: service_name " + others);
    return all;
  }
  std::uint64_t missing_bytes() const override { return pictures_.decoder().missing_bytes(); }
  double seconds() const override {
    // Of pictures in a row nothing is known.
    return timer_.has_own_rate() || !pictures_.decoder().has_source() ? 0 : seconds_of(pictures_.decoder());
  }
  SideStreams side_streams() const override {
    return side_streams_of(pictures_.decoder().input(), pictures_.decoder().stream().index);
  }
  bool on_device() const override { return pictures_.on_device(); }

 private:
  /// What the file of a picture says beside its samples: how it is turned, and what is left out.
  void describe_file(const std::string& path, const AVFrame& first, bool recover) {
    const PictureDecoder& decoder = pictures_.decoder();
    const std::optional<PictureFile> file = decoder.reads_file() ? picture_file(path) : std::nullopt;
    require(!file || !file->misread, ErrorKind::kUnsupported, name_ + ": FFmpeg takes it for something else");
    require(!file || !file->lacks_lines || recover, ErrorKind::kBadStream,
            name_ + " ends before its last line (ReaderOptions::recover takes what is there)");
    const bool has_turn = info_.rotation != 0 || info_.mirrored;
    if (const std::optional<Turn> turn = file && !has_turn ? turn_of(file->orientation) : std::nullopt) {
      info_.rotation = turn->degrees;
      info_.mirrored = turn->mirrored;
    }
    constexpr std::uint8_t kUnknown = 2;
    if (file && info_.colour.primaries == kUnknown && info_.colour.transfer == kUnknown) {
      if (file->primaries != 0) info_.colour.primaries = file->primaries;
      if (file->transfer != 0) info_.colour.transfer = file->transfer;
    }
    std::vector<std::string> all = left_out_of(file, first, *decoder.stream().codecpar, decoder.input().iformat->name);
    for (std::string& extra : extras_left_out(decoder.stream(), first)) all.push_back(std::move(extra));
    for (std::string& what : all)
      if (std::find(left_out_fields_.begin(), left_out_fields_.end(), what) == left_out_fields_.end())
        left_out_fields_.push_back(std::move(what));
    is_heif_ = file && file->is_heif;
  }

  std::string text_of_left_out() const {
    std::string text = is_heif_ ? "a HEIF picture (AVIF, HEIC), of which the samples" : "the samples";
    text += " are read and these are left out: ";
    for (std::size_t i = 0; i < left_out_fields_.size(); ++i) text += (i > 0 ? ", " : "") + left_out_fields_[i];
    return text;
  }

  /// Grey of picture files has all values, which not all of FFmpeg's decoders say; of films it is luma.
  void take_range_of_grey(const PictureDecoder& decoder) {
    const std::string_view demuxer = decoder.input().iformat->name;
    const std::optional<PixelFormat> samples = same_samples(samples_);
    constexpr std::uint8_t kUnknown = 0, kFull = 2;
    if ((demuxer.starts_with("image2") || demuxer.ends_with("_pipe")) && samples &&
        samples->model == ColourModel::kGrey && info_.colour.range == kUnknown)
      info_.colour.range = kFull;
  }

  /// The time code of MPEG-2's first group of pictures, where no container says one. Encoders write 0 of themselves.
  void take_time_code(const AVFrame& first) {
    const std::string code = tag_of(first.metadata, "timecode");
    const auto has = std::any_of(metadata_.entries.begin(), metadata_.entries.end(),
                                 [](const auto& entry) { return entry.first == "timecode"; });
    if (!has && code.find_first_not_of("0:;") != std::string::npos) metadata_.entries.emplace_back("timecode", code);
  }

  /// The format that was asked for, or that of the samples, if they are integers.
  void choose_format(const std::string& wanted) {
    const std::optional<PixelFormat> exact =
        pictures_.on_device() ? same_samples(samples_) : unpack_format(pictures_.frame());
    if (!wanted.empty()) info_.format = samples_of(wanted);
    if (exact && (wanted.empty() || info_.format == *exact)) {
      info_.format = *exact;
      return;
    }
    require(!wanted.empty(), ErrorKind::kUnsupported,
            name_ + ": the pixel format " + PictureLayout{info_.width, info_.height, samples_}.text() +
                " has no planes of integers; ask for a conversion (ReaderOptions::pixel_format " +
                integers_for(samples_) + ")");
    const AVPixelFormat to = planar_av_format(info_.format);
    require(to != AV_PIX_FMT_NONE, ErrorKind::kUnsupported,
            name_ + ": FFmpeg cannot convert " + av_get_pix_fmt_name(samples_) + " to " + to_string(info_.format));
    converter_.emplace(samples_, to, info_, false, name_);
  }

  std::string at_frame() const { return name_ + ": frame " + std::to_string(timer_.frames()); }

  bool advance() {
    if (!pictures_.next()) return false;
    const PictureLayout layout = PictureLayout::of(pictures_.frame());
    require(layout == layout_, ErrorKind::kUnsupported,
            at_frame() + " is " + layout.text() + ", the first was " +
                PictureLayout{layout_.width, layout_.height, samples_}.text() +
                "; split the video there or scale it to one size first");
    add_extras_of(pictures_.frame(), left_out_fields_);
    return true;
  }

  /// The samples of the current picture: at once or, from a device, after PictureStream::wait().
  void take(Gop& gop, int index) {
    if (pictures_.on_device()) return pictures_.read_from_device(gop, index);
    const AVFrame& frame = pictures_.frame();
    if (!converter_) check_palette(frame);
    unpack(converter_ ? converter_->convert(frame) : frame, gop, index);
    check_samples(gop, index, info_.format, name_, timer_.frames());
    pictures_.note_delivered();
  }

  /// Colours that are not opaque may appear after an opaque first frame.
  void check_palette(const AVFrame& frame) const {
    if (frame.format != AV_PIX_FMT_PAL8 || info_.format.alpha) return;
    require(
        unpack_format(frame) == info_.format, ErrorKind::kUnsupported,
        at_frame() +
            " has transparent colours, the first had none; give a pixel format (ReaderOptions::pixel_format gbrap)");
  }

  std::string name_;
  PictureStream pictures_;
  const std::uint64_t left_out_ = pictures_.decoder().left_out_at_start();
  std::vector<std::string> left_out_fields_;
  bool is_heif_ = false;
  std::vector<std::string> lost_tags_;
  std::string other_colours_;                ///< that the container states, or ""
  std::string choice_;                       ///< of one video among several, or ""
  PictureLayout layout_;                     ///< of the first picture
  AVPixelFormat samples_ = AV_PIX_FMT_NONE;  ///< of its samples, which may be on a device
  VideoInfo info_;
  Metadata metadata_;
  std::optional<Converter> converter_;
  FrameTimer timer_;
  std::int64_t begin_pts_ = 0;
};

}  // namespace

Reader make_ffmpeg_reader(const std::string& path, Source source, const std::string& demuxer,
                          const ReaderOptions& options) {
  const bool can_read_again = source && source->size().has_value();
  try {
    return std::make_unique<FfmpegReader>(path, std::move(source), demuxer, options);
  } catch (const Error& e) {
    const std::optional<PictureFile> file = can_read_again ? picture_file(path) : std::nullopt;
    if (file && !file->unread.empty())
      fail(ErrorKind::kUnsupported, path + ": " + file->unread + ", which FFmpeg does not read; " + file->advice);
    const bool may_be_right = file && (file->is_heif || (file->is_jxl && !file->is_cut));
    if (e.kind() != ErrorKind::kBadStream || !may_be_right) throw;
    const std::string what = file->is_jxl ? "a JPEG XL picture" : "a HEIF picture (AVIF, HEIC)";
    fail(ErrorKind::kUnsupported, path + ": " + what + (file->in_tiles ? " in tiles" : "") +
                                      " that FFmpeg does not read; convert it first, for example to PNG (" + e.what() +
                                      ")");
  }
}

}  // namespace trivelet::io
