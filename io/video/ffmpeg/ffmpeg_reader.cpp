// Frames of anything FFmpeg decodes: the best video stream, one picture after the other.
//
// Bytes come from an InputBytes, so a pipe can be examined first, and errors of the system keep their texts. The first
// picture is decoded at opening, because only then are size, pixel layout and colour tags certain. Pictures go into
// planes by unpack(), exactly, or from a GPU's memory by DevicePictures. swscale is used only if the caller asks for
// another pixel format. Damage is an error that names the frame. Nothing is skipped or concealed silently, except what
// the video engine of a GPU conceals without reporting it. Frames about which decoders only complain are coded, with a
// warning.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "codec/base/frame_times.h"
#include "io/video/ffmpeg/ffmpeg_convert.h"
#include "io/video/ffmpeg/ffmpeg_decoder.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/ffmpeg_segments.h"
#include "io/video/ffmpeg/ffmpeg_side_streams.h"
#include "io/video/matroska.h"
#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

/// Degrees clockwise from a display matrix, to the nearest quarter turn.
int rotation_of(const std::uint8_t* matrix) {
  const double counterclockwise = av_display_rotation_get(reinterpret_cast<const std::int32_t*>(matrix));
  if (std::isnan(counterclockwise)) return 0;
  const int quarters = static_cast<int>(std::lround(-counterclockwise / 90.0));
  return ((quarters % 4) + 4) % 4 * 90;
}

std::uint8_t field_order_of(const AVFrame& frame) {
#ifdef AV_FRAME_FLAG_INTERLACED
  const bool interlaced = (frame.flags & AV_FRAME_FLAG_INTERLACED) != 0;
  const bool top_first = (frame.flags & AV_FRAME_FLAG_TOP_FIELD_FIRST) != 0;
#else
  const bool interlaced = frame.interlaced_frame != 0;
  const bool top_first = frame.top_field_first != 0;
#endif
  return !interlaced ? 0 : top_first ? 1 : 2;
}

std::int64_t duration_of(const AVFrame& frame) {
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  return frame.duration;
#else
  return frame.pkt_duration;
#endif
}

/// The frame without its samples: times and side data.
FramePtr without_samples(const AVFrame& frame) {
  FramePtr out = make_frame();
  out->width = frame.width;
  out->height = frame.height;
  out->format = frame.format;
  out->best_effort_timestamp = frame.best_effort_timestamp;
#if LIBAVUTIL_VERSION_INT >= AV_VERSION_INT(57, 30, 100)
  out->duration = frame.duration;
#else
  out->pkt_duration = frame.pkt_duration;
#endif
  return out;
}

// The least length of stretches that are decoded separately: at the end of each some pictures are decoded twice.
constexpr double kLeastSegment = 1.5;  // seconds

// Of which all decoders make the same samples.
constexpr std::array kExactCodecs = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_AV1, AV_CODEC_ID_VP9,
                                     AV_CODEC_ID_VP8};

/// The format of 16 bits with the same components.
std::string integers_for(AVPixelFormat format) {
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(format);
  const bool alpha = desc != nullptr && (desc->flags & AV_PIX_FMT_FLAG_ALPHA) != 0;
  const bool grey = desc != nullptr && desc->nb_components <= 2 && (desc->flags & AV_PIX_FMT_FLAG_RGB) == 0;
  return grey ? (alpha ? "ya16" : "gray16") : alpha ? "gbrap16" : "gbrp16";
}

class FfmpegReader final : public FrameReader {
 public:
  FfmpegReader(const std::string& path, Source source, const std::string& demuxer, const ReaderOptions& options)
      : name_(source ? source->name() : path), path_(path), demuxer_(demuxer), options_(options) {
    if (options.device_decoding != DeviceDecoding::kNever) try_device(source);
    if (!decoder_) start_on_cpu(std::move(source));
    first_width_ = frame_->width;
    first_height_ = frame_->height;
    first_format_ = decoder_->sample_format(*frame_);
    first_layout_ = frame_->format;
    describe_stream(options);
    begin_pts_ = time_of_frame().pts;
    divide();
  }

  const VideoInfo& info() const override { return info_; }

  bool read(Gop& gop, int index) override { return read_frames(gop, index, 1) == 1; }

  int read_frames(Gop& gop, int first, int count) override {
    delivered_.clear();
    int done = 0;
    for (; done < count; ++done) {
      check_gop(gop, first + done, info_);
      if (!advance()) break;
      take(gop, first + done);
      gop.times()[static_cast<std::size_t>(first + done)] = next_time();
      ++frames_;
    }
    if (device_) options_.pictures->wait();
    return done;
  }

  std::size_t stretches() override {
    if (entries_.empty() && !own_rate_ && !options_.recover && !device_ && decoder_->reads_file() && path_ != "-")
      entries_ = open(open_file(), nullptr, 1)->entries(ticks_of(kLeastSegment));
    return entries_.size();
  }

  void go_to(std::size_t stretch) override {
    require(stretch < stretches(), ErrorKind::kBadArgument, name_ + ": has no stretch " + std::to_string(stretch));
    if (stretch == 0)
      decoder_ = open(open_file(), nullptr, options_.threads);
    else
      decoder_->seek(entries_[stretch]);
    segments_.reset();
    have_first_ = false;
    end_pts_.reset();
    if (stretch + 1 < entries_.size()) end_pts_ = entries_[stretch + 1].pts;
  }

  bool unread(int count) override {
    if (!segments_ || count > static_cast<int>(delivered_.size())) return false;
    for (; count > 0; --count) {
      again_.push_front(std::move(delivered_.back()));
      delivered_.pop_back();
      --frames_;
    }
    return true;
  }

  std::uint64_t skip(std::uint64_t count) override {
    for (std::uint64_t done = 0; done < count; ++done) {
      if (!advance()) return done;
      next_time();
      ++frames_;
    }
    return count;
  }

  std::uint64_t skip_before(double seconds) override {
    if (own_rate_) return FrameReader::skip_before(seconds);
    std::uint64_t skipped = 0;
    for (; advance(); ++skipped) {
      const auto since = static_cast<double>(time_of_frame().pts) - static_cast<double>(begin_pts_);
      if (since * info_.time_base.value() >= seconds - 1e-6) {
        have_first_ = true;  // it is the next to be delivered
        break;
      }
      next_time();
      ++frames_;
    }
    return skipped;
  }
  std::int64_t begin_pts() const override { return begin_pts_; }

  Metadata metadata() const override { return metadata_; }
  std::string damage() const override { return decoder_->damage(); }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all;
    if (const std::string complaints = complaints_->summary(); !complaints.empty()) all.push_back(complaints);
    const std::string others = names_of_other_programs(decoder_->input(), decoder_->stream().index);
    if (!others.empty())
      all.push_back("one program is encoded, and the names of others are not kept: service_name " + others);
    return all;
  }
  std::uint64_t missing_bytes() const override { return decoder_->missing_bytes(); }
  double seconds() const override {
    if (own_rate_ || !decoder_->has_source()) return 0;  // of pictures in a row nothing is known
    const AVStream& stream = decoder_->stream();
    const AVFormatContext& input = decoder_->input();
    if (stream.duration > 0) return static_cast<double>(stream.duration) * av_q2d(stream.time_base);
    // Matroska says it of a track in a tag: 00:01:02.345000000.
    const AVDictionaryEntry* tag = av_dict_get(stream.metadata, "DURATION", nullptr, AV_DICT_IGNORE_SUFFIX);
    int hours = 0, minutes = 0;
    double rest = 0;
    if (tag != nullptr && std::sscanf(tag->value, "%4d:%2d:%lf", &hours, &minutes, &rest) == 3 && hours >= 0 &&
        minutes >= 0 && rest >= 0 && rest < 60)
      return 3600.0 * hours + 60.0 * minutes + rest;
    return input.duration > 0 && input.nb_streams == 1 ? static_cast<double>(input.duration) / AV_TIME_BASE : 0;
  }
  SideStreams side_streams() const override { return side_streams_of(decoder_->input(), decoder_->stream().index); }
  bool on_device() const override { return device_ != nullptr; }

 private:
  std::unique_ptr<PictureDecoder> open(Source source, AVBufferRef* device, int threads) const {
    return std::make_unique<PictureDecoder>(path_, std::move(source), demuxer_, options_, threads, device, complaints_);
  }
  Source open_file() const { return std::make_unique<InputBytes>(path_); }
  /// Whether the file can be opened as often as it takes.
  bool can_open_again(const Source& source) const { return source && source->size().has_value() && path_ != "-"; }

  void start_on_cpu(Source source) {
    decoder_ = open(std::move(source), nullptr, options_.threads);
    have_first_ = decode_next();
    require(have_first_, ErrorKind::kBadStream, name_ + ": the video stream has no frame");
  }

  /// Begins on the device of ReaderOptions::pictures, or leaves `source` as it was and the rest to the CPU.
  void try_device(Source& source) {
    const bool must = options_.device_decoding == DeviceDecoding::kAlways;
    require(!must || options_.pictures, ErrorKind::kUnsupported, name_ + ": there is no GPU to decode on");
    require(!must || !options_.recover, ErrorKind::kBadArgument,
            name_ + ": a GPU does not tell of damage, from which to recover; decode on the CPU");
    if (!options_.pictures || options_.recover || !can_open_again(source)) {
      require(!must, ErrorKind::kUnsupported, name_ + ": a GPU decodes files, not pipes nor pictures in a row");
      return;
    }
    const std::string why_not = start_on_device(std::move(source));
    if (why_not.empty()) return;
    require(!must, ErrorKind::kUnsupported, name_ + ": the GPU does not decode it: " + why_not);
    decoder_.reset();
    device_.reset();
    source = open_file();
  }

  /// Why the first picture is not on the device; "" if it is.
  std::string start_on_device(Source source) {
    try {
      device_ = open_cuda_device(options_.pictures->device());
      decoder_ = open(std::move(source), device_.get(), 1);
      const AVCodecID codec = decoder_->stream().codecpar->codec_id;
      if (std::find(kExactCodecs.begin(), kExactCodecs.end(), codec) == kExactCodecs.end())
        return std::string(avcodec_get_name(codec)) + " leaves it to decoders how they round";
      have_first_ = decode_next();
      if (!have_first_ || !PictureDecoder::on_device(*frame_))
        return avcodec_get_name(codec) + std::string(" of this kind");
      const AVPixelFormat samples = decoder_->sample_format(*frame_);
      const std::optional<PixelFormat> format = same_samples(samples);
      if (!format || format->model == ColourModel::kGrey) return av_get_pix_fmt_name(samples);
      if (!options_.pixel_format.empty() && samples_of(options_.pixel_format) != *format)
        return "converting to " + options_.pixel_format + " is the CPU's";
      return makes_same(*frame_, *format) ? "" : "its first picture is not the one that the CPU decodes";
    } catch (const Error& e) {  // the CPU finds faults of the file itself again
      return e.what();
    }
  }

  /// True if the first picture of the device equals the CPU's: engines accept some streams that they decode wrongly,
  /// for example monochrome ones.
  bool makes_same(const AVFrame& frame, const PixelFormat& format) const {
    VideoInfo info;
    info.width = frame.width;
    info.height = frame.height;
    info.format = format;
    Gop theirs(info, 1), ours(info, 1);
    theirs.set_frames(1);
    ours.set_frames(1);
    options_.pictures->read(options_.pictures->keep(device_picture(frame, format, name_)), theirs, 0);
    options_.pictures->wait();
    const std::unique_ptr<PictureDecoder> cpu = open(open_file(), nullptr, 1);
    const AVFrame* same = cpu->next();
    if (same == nullptr || same->width != info.width || same->height != info.height || unpack_format(*same) != format)
      return false;
    unpack(*same, ours, 0);
    for (int c = 0; c < ours.components(); ++c) {
      const VolumeView a = std::as_const(ours).plane(c), b = std::as_const(theirs).plane(c);
      for (int y = 0; y < a.shape.height; ++y)
        if (std::memcmp(a.row(0, y), b.row(0, y), a.row_bytes()) != 0) return false;
    }
    return true;
  }

  std::int64_t ticks_of(double seconds) const { return std::llround(seconds / av_q2d(decoder_->stream().time_base)); }

  /// From here on several decoders, if the options ask for them and the file has several key frames.
  void divide() {
    if (options_.decoders < 2 || options_.recover || !decoder_->reads_file() || path_ == "-") return;
    AVBufferRef* const device = device_.get();
    const int threads = device != nullptr ? 1 : std::max(1, options_.threads / options_.decoders);
    const auto open_one = [this, device, threads] { return open(open_file(), device, threads); };
    std::vector<PictureDecoder::Entry> entries = open_one()->entries(ticks_of(kLeastSegment));
    if (entries.empty()) return;
    SegmentDecoders::Take take = [this](const AVFrame& frame) { return DecodedPicture{copy_of(frame), nullptr}; };
    if (device != nullptr)
      take = [this](const AVFrame& frame) {
        const bool fits = frame.width == first_width_ && frame.height == first_height_;  // advance() says it
        return DecodedPicture{without_samples(frame), fits ? keep(frame) : nullptr};
      };
    SegmentDecoders::Options options;
    options.decoders = options_.decoders;
    options.is_full = [this] { return !device_ || options_.pictures->is_full(); };
    segments_ = std::make_unique<SegmentDecoders>(std::move(entries), open_one, std::move(take), std::move(options));
    have_first_ = false;
  }

  std::shared_ptr<const void> keep(const AVFrame& frame) const {
    return options_.pictures->keep(device_picture(frame, info_.format, name_));
  }

  static FramePtr copy_of(const AVFrame& frame) {
    FramePtr out = make_frame();
    const int code = av_frame_ref(out.get(), &frame);
    if (code < 0) throw std::bad_alloc();
    return out;
  }

  /// The next picture is frame_. False at the end.
  bool decode_next() {
    if (!again_.empty()) {
      picture_ = std::move(again_.front());
      again_.pop_front();
      frame_ = picture_.frame.get();
      return true;
    }
    if (!segments_) {
      frame_ = decoder_->next();
      if (frame_ != nullptr && end_pts_ && frame_->best_effort_timestamp >= *end_pts_) frame_ = nullptr;
      return frame_ != nullptr;
    }
    std::optional<DecodedPicture> picture = segments_->next();
    if (!picture) return false;
    picture_ = std::move(*picture);
    frame_ = picture_.frame.get();
    return true;
  }

  /// The samples of frame_, at once or, from a device, by DevicePictures::wait().
  void take(Gop& gop, int index) {
    if (device_) {
      if (!segments_) picture_.kept = keep(*frame_);
      options_.pictures->read(picture_.kept, gop, index);
      delivered_.push_back({segments_ ? std::move(picture_.frame) : nullptr, picture_.kept});
      if (segments_) frame_ = delivered_.back().frame.get();
      return;
    }
    const AVFrame& picture = converter_ ? converter_->convert(*frame_) : *frame_;
    if (!converter_) check_palette();
    unpack(picture, gop, index);
    check_samples(gop, index, info_.format, name_, frames_);
    if (segments_) {
      delivered_.push_back(std::move(picture_));
      frame_ = delivered_.back().frame.get();
    }
  }

  std::string at_frame() const { return name_ + ": frame " + std::to_string(frames_); }

  bool advance() {
    if (have_first_) {
      have_first_ = false;
      return true;
    }
    if (!decode_next()) return false;
    require(frame_->width == first_width_ && frame_->height == first_height_ && frame_->format == first_layout_,
            ErrorKind::kUnsupported,
            at_frame() + " is " + size_and_format(frame_->width, frame_->height, frame_->format) + ", the first was " +
                size_and_format(first_width_, first_height_, first_format_) +
                "; split the video there or scale it to one size first");
    return true;
  }

  static std::string size_and_format(int width, int height, int format) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(format));
    return std::to_string(width) + "x" + std::to_string(height) + " " + (name != nullptr ? name : "unknown");
  }

  /// Colours that are not opaque may appear after an opaque first frame.
  void check_palette() const {
    if (frame_->format != AV_PIX_FMT_PAL8 || info_.format.alpha) return;
    require(
        unpack_format(*frame_) == info_.format, ErrorKind::kUnsupported,
        at_frame() +
            " has transparent colours, the first had none; give a pixel format (ReaderOptions::pixel_format gbrap)");
  }

  FrameTime time_of_frame() const {
    if (own_rate_) return {static_cast<std::int64_t>(frames_), 1};
    FrameTime time{frame_->best_effort_timestamp, duration_of(*frame_)};
    if (time.duration <= 0) time.duration = frame_ticks_;
    if (time.pts == AV_NOPTS_VALUE) time.pts = frames_ == 0 ? 0 : add_times(last_time_.pts, last_time_.duration);
    return time;
  }
  FrameTime next_time() { return last_time_ = time_of_frame(); }

  void describe_stream(const ReaderOptions& options) {
    check_dimensions(first_width_, first_height_, ErrorKind::kUnsupported, name_);
    info_.width = first_width_;
    info_.height = first_height_;
    AVStream* const stream = &decoder_->stream();
    AVRational rate = av_guess_frame_rate(&decoder_->input(), stream, frame_);
    own_rate_ = options.frame_rate.num > 0;
    info_.frame_rate = rate.num > 0 && rate.den > 0 ? from_av(rate) : Rational{25, 1};
    info_.time_base = from_av(stream->time_base);
    if (own_rate_) set_constant_rate(info_, options.frame_rate);
    frame_ticks_ = std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(to_av(info_.frame_rate)), stream->time_base));
    const AVRational aspect = av_guess_sample_aspect_ratio(&decoder_->input(), stream, frame_);
    info_.sample_aspect = aspect.num > 0 && aspect.den > 0 ? from_av(aspect) : Rational{0, 1};
    info_.field_order = field_order_of(*frame_);
    info_.frames = stream->nb_frames > 0 ? static_cast<std::uint64_t>(stream->nb_frames) : 0;
    describe_colour();
    metadata_ = hdr_of(*stream, *frame_);
    // Times of frames that are counted instead do not match those of chapters.
    if (decoder_->has_source() && !own_rate_) read_chapters_and_tags(decoder_->input(), stream->index, metadata_);
    if (const std::uint8_t* matrix = av_stream_get_side_data(stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr))
      info_.rotation = rotation_of(matrix);
    else if (const AVFrameSideData* data = av_frame_get_side_data(frame_, AV_FRAME_DATA_DISPLAYMATRIX))
      info_.rotation = rotation_of(data->data);

    const std::optional<PixelFormat> exact = device_ ? same_samples(first_format_) : unpack_format(*frame_);
    if (!options.pixel_format.empty()) info_.format = samples_of(options.pixel_format);
    if (exact && (options.pixel_format.empty() || info_.format == *exact)) {
      info_.format = *exact;
      return;
    }
    require(!options.pixel_format.empty(), ErrorKind::kUnsupported,
            name_ + ": the pixel format " + size_and_format(first_width_, first_height_, first_format_) +
                " has no planes of integers; ask for a conversion (ReaderOptions::pixel_format " +
                integers_for(first_format_) + ")");
    const AVPixelFormat to = planar_av_format(info_.format);
    require(to != AV_PIX_FMT_NONE, ErrorKind::kUnsupported,
            name_ + ": FFmpeg cannot convert " + av_get_pix_fmt_name(first_format_) + " to " + to_string(info_.format));
    converter_.emplace(first_format_, to, info_, false, name_);
  }

  void describe_colour() {
    auto code_point = [](int value) { return static_cast<std::uint8_t>(value > 0 && value < 256 ? value : 2); };
    ColourTags& colour = info_.colour;
    colour.primaries = code_point(frame_->color_primaries);
    colour.transfer = code_point(frame_->color_trc);
    colour.matrix = frame_->colorspace == AVCOL_SPC_RGB ? std::uint8_t{0} : code_point(frame_->colorspace);
    colour.range = static_cast<std::uint8_t>(frame_->color_range == AVCOL_RANGE_MPEG   ? 1
                                             : frame_->color_range == AVCOL_RANGE_JPEG ? 2
                                                                                       : 0);
    if (implies_full_range(first_format_)) colour.range = 2;
    colour.chroma_location = static_cast<std::uint8_t>(frame_->chroma_location);
  }

  std::string name_;
  const std::string path_, demuxer_;
  const ReaderOptions options_;
  const std::shared_ptr<Complaints> complaints_ = std::make_shared<Complaints>();
  BufferPtr device_;  ///< null: the CPU decodes
  std::unique_ptr<PictureDecoder> decoder_;
  DecodedPicture picture_;    ///< of segments_
  AVFrame* frame_ = nullptr;  ///< the decoder's, or picture_'s
  VideoInfo info_;
  std::optional<Converter> converter_;
  bool have_first_ = false;
  bool own_rate_ = false;
  int first_width_ = 0;
  int first_height_ = 0;
  AVPixelFormat first_format_ = AV_PIX_FMT_NONE;  ///< of the samples
  int first_layout_ = AV_PIX_FMT_NONE;            ///< of the frame
  std::uint64_t frames_ = 0;
  Metadata metadata_;
  std::int64_t frame_ticks_ = 1;
  FrameTime last_time_;
  std::int64_t begin_pts_ = 0;
  std::vector<PictureDecoder::Entry> entries_;  ///< of stretches()
  std::optional<std::int64_t> end_pts_;         ///< of the current stretch
  std::deque<DecodedPicture> delivered_;        ///< by the last read_frames()
  std::deque<DecodedPicture> again_;            ///< returned by unread()
  std::unique_ptr<SegmentDecoders> segments_;   ///< last: its threads use the rest
};

}  // namespace

Reader make_ffmpeg_reader(const std::string& path, Source source, const std::string& demuxer,
                          const ReaderOptions& options) {
  return std::make_unique<FfmpegReader>(path, std::move(source), demuxer, options);
}

}  // namespace trivelet::io
