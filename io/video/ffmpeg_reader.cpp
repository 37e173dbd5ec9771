// Frames of anything FFmpeg decodes: the best video stream, one picture after the other.
//
// Bytes come from a InputBytes, so a pipe can be looked at before and errors of the system keep their words. The first
// picture is decoded at opening: only then are size, pixel layout and colour tags certain. Pictures go into planes by
// unpack(), exactly; swscale is used only when the caller asks for another pixel format. Damage is an error and names
// the frame; nothing is skipped or concealed in silence.
#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "io/video/ffmpeg_bytes.h"
#include "io/video/ffmpeg_common.h"
#include "io/video/ffmpeg_company.h"
#include "io/video/ffmpeg_convert.h"
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

class FfmpegReader final : public FrameReader {
 public:
  FfmpegReader(const std::string& path, Source source, const std::string& demuxer, const ReaderOptions& options)
      : name_(source ? source->name() : path), source_(std::move(source)), recover_(options.recover) {
    if (source_) missing_bytes_ = bytes_missing_at_end(*source_);
    require(recover_ || missing_bytes_ == 0, ErrorKind::kBadStream,
            name_ + " " + cut_short() + " (ReaderOptions::recover takes what is there)");
    open_input(path, demuxer, options);
    open_decoder(options.threads);
    frame_ = make_frame();
    packet_ = make_packet();
    have_first_ = decode_next();
    require(have_first_, ErrorKind::kBadStream, name_ + ": the video stream has no frame");
    first_width_ = frame_->width;
    first_height_ = frame_->height;
    first_format_ = static_cast<AVPixelFormat>(frame_->format);
    describe_stream(options);
    begin_pts_ = time_of_frame().pts;
  }

  const VideoInfo& info() const override { return info_; }

  bool read(Gop& gop, int index) override {
    check_gop(gop, index, info_);
    if (!advance()) return false;
    const AVFrame& picture = converter_ ? converter_->convert(*frame_) : *frame_;
    if (!converter_) check_palette();
    unpack(picture, gop, index);
    check_samples(gop, index, info_.format, name_, frames_);
    gop.times()[static_cast<std::size_t>(index)] = next_time();
    ++frames_;
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
  std::string damage() const override { return damage_; }
  std::uint64_t missing_bytes() const override { return missing_bytes_; }
  double seconds() const override {
    if (own_rate_ || io_ == nullptr) return 0;  // of pictures in a row nothing is known
    if (stream_->duration > 0) return static_cast<double>(stream_->duration) * av_q2d(stream_->time_base);
    return input_->duration > 0 && input_->nb_streams == 1 ? static_cast<double>(input_->duration) / AV_TIME_BASE : 0;
  }
  Company company() const override { return company_of(*input_, stream_->index); }

 private:
  void open_input(const std::string& path, const std::string& demuxer, const ReaderOptions& options) {
    const AVInputFormat* format = nullptr;
    if (!demuxer.empty()) {
      format = av_find_input_format(demuxer.c_str());
      require(format != nullptr, ErrorKind::kBadArgument,
              "unknown input format '" + demuxer + "'; known: y4m, pnm, raw, ffmpeg, and the demuxers of FFmpeg");
    }
    AVFormatContext* context = avformat_alloc_context();
    if (context == nullptr) throw std::bad_alloc();
    context->opaque = &log_;
    if (source_) {
      io_ = std::make_unique<SourceIo>(*source_);
      context->pb = io_->context();
    }
    AVDictionary* settings = nullptr;
    // What we read ourselves may lead to no other file, a playlist to some if allowed; nothing leads to the network.
    av_dict_set(&settings, "protocol_whitelist", source_ && !options.allow_outside ? "data" : "file,crypto,data", 0);
    if (options.frame_rate.num > 0 && demuxer == "image2") {
      const std::string rate = std::to_string(options.frame_rate.num) + "/" + std::to_string(options.frame_rate.den);
      av_dict_set(&settings, "framerate", rate.c_str(), 0);
    }
    const std::string url = path == "-" ? "" : path;
    int code = avformat_open_input(&context, url.c_str(), format, &settings);  // frees the context when it fails
    av_dict_free(&settings);
    if (io_) io_->rethrow();
    if (code < 0)
      av_fail(code, name_ + " is not a video that FFmpeg reads (raw samples need a size and a pixel format)",
              ErrorKind::kBadStream, log_.take());
    input_.reset(context);
    code = avformat_find_stream_info(input_.get(), nullptr);
    if (io_) io_->rethrow();
    if (code < 0) av_fail(code, name_ + ": FFmpeg finds no stream parameters", ErrorKind::kBadStream, log_.take());
    const int index = main_video(*input_, options.stream, name_);
    if (index < 0) fail(ErrorKind::kBadStream, name_ + ": no video stream in this " + input_->iformat->name + " file");
    for (unsigned i = 0; i < input_->nb_streams; ++i)
      if (static_cast<int>(i) != index) input_->streams[i]->discard = AVDISCARD_ALL;
    stream_ = input_->streams[index];
  }

  void open_decoder(int threads) {
    const AVCodecID id = stream_->codecpar->codec_id;
    const AVCodec* codec = avcodec_find_decoder(id);
    require(codec != nullptr, ErrorKind::kUnsupported,
            name_ + ": this FFmpeg has no decoder for " + avcodec_get_name(id));
    codec_.reset(avcodec_alloc_context3(codec));
    if (!codec_) throw std::bad_alloc();
    int code = avcodec_parameters_to_context(codec_.get(), stream_->codecpar);
    if (code < 0) av_fail(code, name_ + ": wrong codec parameters", ErrorKind::kBadStream);
    codec_->pkt_timebase = stream_->time_base;
    codec_->thread_count = std::max(threads, 0);
    codec_->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
    codec_->err_recognition = AV_EF_CRCCHECK;
    codec_->opaque = &log_;
    log_.take();  // what happened while looking for streams
    code = avcodec_open2(codec_.get(), codec, nullptr);
    if (code < 0)
      av_fail(code, name_ + ": the " + codec->name + " decoder does not open", ErrorKind::kBadStream, log_.take());
  }

  /// Decodes the next picture into frame_. False at the end.
  bool decode_next() {
    if (recovered_) return false;
    for (;;) {
      const int code = avcodec_receive_frame(codec_.get(), frame_.get());
      if (code != AVERROR(EAGAIN)) check_damage(code == AVERROR_EOF ? 0 : code);
      if (code == AVERROR_EOF) {
        if (missing_bytes_ > 0 && damage_.empty()) damage_ = cut_short();
        return false;
      }
      if (code == 0) break;
      if (code != AVERROR(EAGAIN)) {  // only with recover_: what the decoder says is beyond repair
        recovered_ = true;
        return false;
      }
      send_packet();
    }
    if ((frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0) {
      check_damage(AVERROR_INVALIDDATA);
      recovered_ = true;  // this picture is one of the damaged
      return false;
    }
    return true;
  }

  /// Gives the decoder one packet of our stream, or tells it that there are no more.
  void send_packet() {
    int code = 0;
    if (!damage_.empty()) {  // what the decoder holds is still to come
      avcodec_send_packet(codec_.get(), nullptr);
      return;
    }
    do {
      av_packet_unref(packet_.get());
      code = av_read_frame(input_.get(), packet_.get());
    } while (code == 0 && packet_->stream_index != stream_->index);
    if (io_) io_->rethrow();
    if (code == AVERROR_EOF) {
      code = avcodec_send_packet(codec_.get(), nullptr);
      if (code == AVERROR_EOF) code = 0;
    } else if (code == 0) {
      const bool whole = (packet_->flags & AV_PKT_FLAG_CORRUPT) == 0;
      code = whole ? avcodec_send_packet(codec_.get(), packet_.get()) : AVERROR_INVALIDDATA;
    }
    check_damage(code);
  }

  /// Throws when FFmpeg failed or told of damage. Decoder threads work ahead, so it may lie in one of the next frames.
  void check_damage(int code) {
    const std::string reason = log_.take();
    if (code >= 0 && reason.empty()) return;
    if (recover_) {
      if (damage_.empty()) damage_ = reason.empty() ? "a packet is damaged" : reason;
      return;
    }
    av_fail(code < 0 ? code : AVERROR_INVALIDDATA,
            name_ + ": frame " + std::to_string(frames_) + " or one soon after is damaged or missing (" +
                input_->iformat->name + ", " + codec_->codec->name + ")",
            ErrorKind::kBadStream, reason);
  }

  std::string cut_short() const {
    return "is cut short: " + std::to_string(missing_bytes_) + " bytes are missing at its end";
  }

  std::string at_frame() const { return name_ + ": frame " + std::to_string(frames_); }

  bool advance() {
    if (have_first_) {
      have_first_ = false;
      return true;
    }
    if (!decode_next()) return false;
    require(frame_->width == first_width_ && frame_->height == first_height_ && frame_->format == first_format_,
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
    if (time.pts == AV_NOPTS_VALUE) time.pts = frames_ == 0 ? 0 : last_time_.pts + last_time_.duration;
    return time;
  }
  FrameTime next_time() { return last_time_ = time_of_frame(); }

  void describe_stream(const ReaderOptions& options) {
    check_dimensions(first_width_, first_height_, ErrorKind::kUnsupported, name_);
    info_.width = first_width_;
    info_.height = first_height_;
    AVRational rate = av_guess_frame_rate(input_.get(), stream_, frame_.get());
    own_rate_ = options.frame_rate.num > 0;
    info_.frame_rate = rate.num > 0 && rate.den > 0 ? from_av(rate) : Rational{25, 1};
    info_.time_base = from_av(stream_->time_base);
    if (own_rate_) set_constant_rate(info_, options.frame_rate);
    frame_ticks_ = std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(to_av(info_.frame_rate)), stream_->time_base));
    const AVRational aspect = av_guess_sample_aspect_ratio(input_.get(), stream_, frame_.get());
    info_.sample_aspect = aspect.num > 0 && aspect.den > 0 ? from_av(aspect) : Rational{0, 1};
    info_.field_order = field_order_of(*frame_);
    info_.frames = stream_->nb_frames > 0 ? static_cast<std::uint64_t>(stream_->nb_frames) : 0;
    describe_colour();
    metadata_ = hdr_of(*stream_, *frame_);
    // Times of frames that are counted instead have nothing to do with those of chapters.
    if (io_ != nullptr && !own_rate_) read_chapters_and_tags(*input_, stream_->index, metadata_);
    if (const std::uint8_t* matrix = av_stream_get_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, nullptr))
      info_.rotation = rotation_of(matrix);
    else if (const AVFrameSideData* data = av_frame_get_side_data(frame_.get(), AV_FRAME_DATA_DISPLAYMATRIX))
      info_.rotation = rotation_of(data->data);

    const std::optional<PixelFormat> exact = unpack_format(*frame_);
    if (!options.pixel_format.empty()) info_.format = parse_pixel_format(options.pixel_format);
    if (exact && (options.pixel_format.empty() || info_.format == *exact)) {
      info_.format = *exact;
      return;
    }
    require(!options.pixel_format.empty(), ErrorKind::kUnsupported,
            name_ + ": the pixel format " + size_and_format(first_width_, first_height_, first_format_) +
                " has no planes of integers; ask for a conversion (ReaderOptions::pixel_format gbrp16)");
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
  Source source_;
  ErrorLog log_;
  std::unique_ptr<SourceIo> io_;
  InputPtr input_;
  AVStream* stream_ = nullptr;
  CodecPtr codec_;
  FramePtr frame_;
  PacketPtr packet_;
  VideoInfo info_;
  std::optional<Converter> converter_;
  bool have_first_ = false;
  bool own_rate_ = false;
  int first_width_ = 0;
  int first_height_ = 0;
  AVPixelFormat first_format_ = AV_PIX_FMT_NONE;
  std::uint64_t frames_ = 0;
  bool recover_ = false;
  std::uint64_t missing_bytes_ = 0;
  bool recovered_ = false;  ///< and nothing intact is left
  std::string damage_;
  Metadata metadata_;
  std::int64_t frame_ticks_ = 1;
  FrameTime last_time_;
  std::int64_t begin_pts_ = 0;
};

}  // namespace

Reader make_ffmpeg_reader(const std::string& path, Source source, const std::string& demuxer,
                          const ReaderOptions& options) {
  return std::make_unique<FfmpegReader>(path, std::move(source), demuxer, options);
}

}  // namespace trivelet::io
