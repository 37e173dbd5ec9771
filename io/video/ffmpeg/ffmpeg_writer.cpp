// Video files through FFmpeg: lossless FFV1 in Matroska, AVI or NUT, H.264 in MP4 and MOV, other formats by name.
//
// The encoder gets a pixel layout that holds exactly our samples, or the format is refused: nothing is converted on the
// way out but to the colours of a GIF. All choices are made before the file is created. Bytes go through a FileSink, so
// the file appears under its name only when complete. Times are kept where the container has them (Matroska rounds to
// milliseconds, AVI and codecs with fixed frame rates count frames); a time that does not increase is replaced by frame
// number / frame rate. MP4 and MOV keep rotation and mirroring.
#include <algorithm>
#include <cmath>
#include <exception>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <type_traits>
#include <utility>

#include "codec/base/frame_times.h"
#include "codec/base/limits.h"
#include "io/video/ffmpeg/ffmpeg_bytes.h"
#include "io/video/ffmpeg/ffmpeg_common.h"
#include "io/video/ffmpeg/ffmpeg_convert.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_streams.h"
#include "io/video/planes.h"
#include "io/video/video_format_table.h"

namespace trivelet::io {

namespace {

struct Choice {
  const AVOutputFormat* muxer = nullptr;
  const AVCodec* codec = nullptr;
  AVPixelFormat pixels = AV_PIX_FMT_NONE;
  bool one_picture = false;  ///< a still image format
  bool few_colours = false;  ///< `pixels` has fewer than the frames: those of a GIF
  bool bilevel = false;      ///< `pixels` has one bit
};

/// The format among `candidates` most like `format`: the same planes, more bits if possible. "" when there is none.
std::string nearest(const PixelFormat& format, const AVPixelFormat* candidates) {
  const PixelFormat* best = nullptr;
  PixelFormat kept;
  for (; candidates != nullptr && *candidates != AV_PIX_FMT_NONE; ++candidates) {
    const std::optional<PixelFormat> samples = same_samples(*candidates);
    if (!samples) continue;
    PixelFormat same_depth = *samples;
    same_depth.bits = format.bits;
    if (same_depth != format) continue;
    const auto rank = [&](int bits) { return bits >= format.bits ? 100 - bits : bits; };
    if (best != nullptr && rank(samples->bits) <= rank(best->bits)) continue;
    kept = *samples;
    best = &kept;
  }
  return best != nullptr ? to_string(*best) : "";
}

const AVOutputFormat* choose_muxer(const std::string& path, const std::string& name) {
  const AVOutputFormat* muxer = nullptr;
  if (name.empty()) {
    muxer = av_guess_format(nullptr, path.c_str(), nullptr);
    require(muxer != nullptr, ErrorKind::kBadArgument,
            "the extension of " + path + " names no format; known: " + supported_writers());
  } else {
    muxer = av_guess_format(name.c_str(), nullptr, nullptr);
    if (muxer == nullptr) muxer = av_guess_format(nullptr, ("x." + name).c_str(), nullptr);
    require(muxer != nullptr, ErrorKind::kBadArgument,
            "unknown output format '" + name + "'; known: " + supported_writers());
  }
  return muxer;
}

const AVCodec* choose_codec(const AVOutputFormat& muxer, const std::string& path, const VideoInfo& info,
                            const std::string& wanted) {
  const std::string format = muxer.name;
  std::string name = wanted;
  if (name.empty() && (format == "matroska" || format == "avi" || format == "nut")) name = "ffv1";
  if (name.empty() && (format == "mp4" || format == "mov"))
    name = info.format.model == ColourModel::kRgb ? "libx264rgb" : "libx264";
  if (!name.empty()) {
    const AVCodec* codec = avcodec_find_encoder_by_name(name.c_str());
    require(codec != nullptr, ErrorKind::kUnsupported, "this FFmpeg has no encoder '" + name + "'");
    require(codec->type == AVMEDIA_TYPE_VIDEO, ErrorKind::kBadArgument, "'" + name + "' does not encode video");
    return codec;
  }
  const AVCodecID id = av_guess_codec(&muxer, nullptr, path.c_str(), nullptr, AVMEDIA_TYPE_VIDEO);
  require(id != AV_CODEC_ID_NONE, ErrorKind::kUnsupported, "the format " + format + " holds no video");
  const AVCodec* codec = avcodec_find_encoder(id);
  require(codec != nullptr, ErrorKind::kUnsupported,
          std::string("this FFmpeg has no encoder for ") + avcodec_get_name(id));
  return codec;
}

/// Muxer and codec.
Choice choose_kind(const std::string& path, const VideoInfo& info, const std::string& muxer_name,
                   const WriterOptions& options) {
  Choice choice;
  choice.muxer = choose_muxer(path, muxer_name);
  choice.codec = choose_codec(*choice.muxer, path, info, options.video_codec);
  if (std::string_view(choice.muxer->name) == "image2") {
    // image2 opens files itself; image2pipe writes the same bytes to ours.
    choice.one_picture = true;
    choice.muxer = av_guess_format("image2pipe", nullptr, nullptr);
  }
  require(choice.muxer != nullptr && !(choice.muxer->flags & AVFMT_NOFILE), ErrorKind::kUnsupported,
          path + ": this format does not write one file");
  require(choice.one_picture || avformat_query_codec(choice.muxer, choice.codec->id, FF_COMPLIANCE_EXPERIMENTAL) != 0,
          ErrorKind::kUnsupported,
          std::string(choice.muxer->name) + " cannot hold video coded by " + choice.codec->name);
  return choice;
}

bool takes_even_sizes_only(const AVCodec& codec, const VideoInfo& info) {
  return std::string_view(codec.name).substr(0, 7) == "libx264" &&
         ((info.format.log2_chroma_w > 0 && info.width % 2 != 0) ||
          (info.format.log2_chroma_h > 0 && info.height % 2 != 0));
}

/// Sets the layout for samples of `info`; NONE if the codec has none.
void choose_pixels(Choice& choice, const VideoInfo& info, const WriterOptions& options) {
  const bool full_range = info.colour.range == 2;
  choice.pixels = find_av_format(info.format, full_range, choice.codec->pix_fmts);
  // JPEG knows no other range.
  if (choice.codec->id == AV_CODEC_ID_MJPEG && !full_range) choice.pixels = AV_PIX_FMT_NONE;
  // 256 colours are no loss that happens unasked.
  if (choice.codec->id == AV_CODEC_ID_GIF && info.format == PixelFormat{.model = ColourModel::kRgb} &&
      !options.pixel_format.empty()) {
    choice.pixels = AV_PIX_FMT_RGB8;
    choice.few_colours = true;
  }
  // Samples of pictures in black and white are 0 and 255.
  const AVPixelFormat* only = choice.codec->pix_fmts;
  if (choice.pixels == AV_PIX_FMT_NONE && info.format == PixelFormat{.model = ColourModel::kGrey} && only != nullptr &&
      is_bilevel(*only)) {
    choice.pixels = *only;
    choice.bilevel = true;
  }
}

Choice choose(const std::string& path, const VideoInfo& info, const std::string& muxer_name,
              const WriterOptions& options) {
  Choice choice = choose_kind(path, info, muxer_name, options);
  choose_pixels(choice, info, options);
  const std::string codec = choice.codec->name;
  if (choice.pixels == AV_PIX_FMT_NONE) {
    const std::string like = nearest(info.format, choice.codec->pix_fmts);
    fail(ErrorKind::kUnsupported,
         codec + " has no pixel format for " + to_string(info.format) +
             (info.format.is_signed ? " of signed samples" : "") +
             (choice.codec->id == AV_CODEC_ID_MJPEG && info.colour.range != 2 ? " of limited range" : "") +
             (like.empty() ? "" : "; the nearest it has is " + like) +
             "; convert (WriterOptions::pixel_format auto); raw (.yuv) holds every format, .mkv (ffv1) most");
  }
  require(!takes_even_sizes_only(*choice.codec, info), ErrorKind::kUnsupported,
          codec + " takes " + to_string(info.format) + " of even size only, not " + describe(info) +
              "; .mkv (ffv1) does, yuv444p has no such limit (WriterOptions::pixel_format)");
  return choice;
}

/// The number of slices with which FFV1 is lossless, 0 for none.
///
/// FFmpeg before 7.1 loses chroma rows or columns when a slice does not begin on a chroma sample (its ticket 5548), and
/// everything when a slice is one sample wide or high. Asked for n slices it takes the first grid of the search below
/// with n = columns * rows, so a grid that is safe can be chosen by its number.
int safe_ffv1_slices(const VideoInfo& info) {
  const PixelFormat& f = info.format;
  const auto safe = [](int size, int parts, int log2_subsampling) {
    if (size / parts < 2) return false;
    for (int i = 1; i < parts; ++i)
      if ((static_cast<std::int64_t>(size) * i / parts) % (1 << log2_subsampling) != 0) return false;
    return true;
  };
  const int wanted = info.width * static_cast<std::int64_t>(info.height) >= 1280 * 720 ? 16 : 4;
  int best = 0;
  std::set<int> taken;
  for (int rows = info.width > 352 || info.height > 288 ? 2 : 1; rows < 32; ++rows)
    for (int columns = rows; columns < 2 * rows; ++columns) {
      const std::int64_t slice_area =
          static_cast<std::int64_t>((info.width + columns - 1) / columns) * ((info.height + rows - 1) / rows);
      if (slice_area * (f.bits + 1) * f.components() > 8 << 24) continue;  // the encoder's own limit
      const int slices = rows * columns;
      if (!taken.insert(slices).second) continue;
      if (!safe(info.width, columns, f.log2_chroma_w) || !safe(info.height, rows, f.log2_chroma_h)) continue;
      if (best == 0 || (best < wanted && slices > best) || (slices >= wanted && slices < best)) best = slices;
    }
  return best;
}

/// Whether the encoder takes times in units of `unit`: MPEG-1 and MPEG-2 have a few frame rates and no other times,
/// MPEG-4 16 bits for the units of a second.
bool takes_clock(const AVCodec& codec, AVRational unit) {
  if (codec.id == AV_CODEC_ID_MPEG4) return unit.den <= 65535;
  if (codec.supported_framerates == nullptr) return true;
  const AVRational* rate = codec.supported_framerates;
  while (rate->num > 0 && av_cmp_q(*rate, av_inv_q(unit)) != 0) ++rate;
  return rate->num > 0;
}

class FfmpegWriter final : public FrameWriter {
 public:
  FfmpegWriter(const std::string& path, const VideoInfo& info, const std::string& muxer, const WriterOptions& options)
      : info_(info), choice_(choose(path, info, muxer, options)), file_(path, options.overwrite) {
    name_ = file_.is_stdout() ? "standard output" : path;
    rate_ = info.frame_rate.num > 0 && info.frame_rate.den > 0 ? to_av(info.frame_rate) : AVRational{25, 1};
    const std::string format = choice_.muxer->name;
    const bool has_times = format != "avi" && !(choice_.muxer->flags & AVFMT_NOTIMESTAMPS);
    keep_times_ = has_times && info.time_base.num > 0 && info.time_base.den > 0;
    codec_counts_ = keep_times_ && !takes_clock(*choice_.codec, to_av(info.time_base));
    keep_times_ = keep_times_ && !codec_counts_;
    check_rate();
    require(file_.seekable() || (format != "mp4" && format != "mov"), ErrorKind::kUnsupported,
            format + " needs an output that can seek, which " + name_ + " cannot; use matroska or nut");
    metadata_ = options.metadata;
    open_encoder(options);
    if (!options.side_streams.from.empty() && !choice_.one_picture) side_streams_.emplace(options.side_streams);
    open_muxer();
  }

  void write(const Gop& gop, int index) override {
    check_gop(gop, index, info_);
    require(!choice_.one_picture || frames_ == 0, ErrorKind::kUnsupported,
            name_ + ": " + choice_.codec->name +
                " files hold one picture; write numbered ones (img%04d.png) or a video file (.mkv)");
    if (av_frame_make_writable(frame_.get()) < 0) throw std::bad_alloc();
    if (choice_.few_colours)
      pack_few_colours(gop, index);
    else if (choice_.bilevel)
      require(pack_bilevel(gop, index, *frame_), ErrorKind::kUnsupported,
              at_frame() + ": " + choice_.codec->name + " holds black and white only, not greys; .png and .pgm do");
    else
      pack(gop, index, *frame_);
    const FrameTime time = next_time(gop.times()[static_cast<std::size_t>(index)]);
    frame_->pts = time.pts;
    durations_[time.pts] = time.duration;
    if (side_streams_ && frames_ == 0) side_streams_->begin(microseconds(time.pts));
    const int code = avcodec_send_frame(codec_.get(), frame_.get());
    if (code < 0) av_fail(code, at_frame() + " does not encode", ErrorKind::kUnsupported, log_.take());
    drain();
    ++frames_;
  }

  void complete() override {
    if (completed_) return;
    int code = avcodec_send_frame(codec_.get(), nullptr);
    if (code < 0) av_fail(code, name_ + ": the encoder does not finish", ErrorKind::kInternal, log_.take());
    drain();
    if (side_streams_) side_streams_->finish(microseconds(add_times(last_pts_, last_duration_)));
    code = av_write_trailer(format_.get());
    avio_flush(io_->context());
    check_written(code);
    if (!choice_.one_picture && !file_.temporary_path().empty()) {
      file_.seek(file_.position());  // writes out what is buffered
      lost_ = wanted_.lost(file_.temporary_path());
    }
    codec_.reset();
    frame_.reset();
    packet_.reset();
    format_.reset();
    io_.reset();
    completed_ = true;
    if (file_.seekable()) file_.suspend();
  }

  void finish() override {
    complete();
    file_.commit();
  }

  std::vector<std::string> remarks() const override {
    std::vector<std::string> all = side_streams_ ? side_streams_->remarks() : std::vector<std::string>();
    if (!lost_.empty()) all.push_back(lost_);
    if (moved_ > 0)
      all.push_back(std::string(choice_.codec->name) + " has no times of frames, and shows " +
                    count_of(moved_, "frame") + " earlier or later than the input");
    return all;
  }

 private:
  void check_rate() const {
    const AVCodec& codec = *choice_.codec;
    if (keep_times_ || codec.supported_framerates == nullptr || takes_clock(codec, av_inv_q(rate_))) return;
    const AVRational nearest = codec.supported_framerates[av_find_nearest_q_idx(rate_, codec.supported_framerates)];
    fail(ErrorKind::kUnsupported, name_ + ": " + codec.name + " has no frame rate of " + to_string(from_av(rate_)) +
                                      " (the nearest is " + to_string(from_av(nearest)) + "); most codecs take any");
  }

  void open_encoder(const WriterOptions& options) {
    const int crf = options.crf;
    codec_.reset(avcodec_alloc_context3(choice_.codec));
    if (!codec_) throw std::bad_alloc();
    AVCodecContext& c = *codec_;
    c.opaque = &log_;
    c.width = info_.width;
    c.height = info_.height;
    c.pix_fmt = choice_.pixels;
    c.time_base = keep_times_ ? to_av(info_.time_base) : av_inv_q(rate_);
    c.framerate = rate_;
    c.sample_aspect_ratio = info_.sample_aspect.num > 0 ? to_av(info_.sample_aspect) : AVRational{0, 1};
    c.color_primaries = static_cast<AVColorPrimaries>(info_.colour.primaries);
    c.color_trc = static_cast<AVColorTransferCharacteristic>(info_.colour.transfer);
    c.colorspace = static_cast<AVColorSpace>(info_.colour.matrix);
    c.color_range = static_cast<AVColorRange>(std::min<int>(info_.colour.range, 2));
    c.chroma_sample_location = static_cast<AVChromaLocation>(std::min<int>(info_.colour.chroma_location, 6));
    c.field_order = info_.field_order == 1 ? AV_FIELD_TT : info_.field_order == 2 ? AV_FIELD_BB : AV_FIELD_PROGRESSIVE;
    c.thread_count = choice_.one_picture ? 1 : std::max(options.threads, 0);
    if (choice_.muxer->flags & AVFMT_GLOBALHEADER) c.flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    const std::string codec = choice_.codec->name;
    if (codec == "ffv1") {
      c.slices = safe_ffv1_slices(info_);
      c.level = c.slices > 0 ? 3 : 1;  // version 1 has no slices
      c.gop_size = 1;
      if (c.level == 3) av_opt_set_int(c.priv_data, "slicecrc", 1, 0);
    } else if (codec.rfind("libx264", 0) == 0) {
      av_opt_set(c.priv_data, "preset", "medium", 0);
      av_opt_set(c.priv_data, "crf", "18", 0);
    } else if (codec == "mjpeg") {
      // Without it FFmpeg aims at 200 kbit/s.
      c.flags |= AV_CODEC_FLAG_QSCALE;
      c.global_quality = 2 * FF_QP2LAMBDA;
    }
    require(crf < 0 || (c.priv_data != nullptr && av_opt_set_double(c.priv_data, "crf", crf, 0) >= 0),
            ErrorKind::kBadArgument, codec + " has no constant rate factor " + std::to_string(crf));
    for (const auto& [name, value] : options.codec_options) {
      const int set = av_opt_set(&c, name.c_str(), value.c_str(), AV_OPT_SEARCH_CHILDREN);
      require(set != AVERROR_OPTION_NOT_FOUND, ErrorKind::kBadArgument,
              codec + " has no option '" + name + "'; 'ffmpeg -h encoder=" + codec + "' lists them");
      require(set >= 0, ErrorKind::kBadArgument, codec + ": option '" + name + "' does not take '" + value + "'");
    }
    const int code = avcodec_open2(&c, choice_.codec, nullptr);
    if (code < 0)
      av_fail(code, name_ + ": " + codec + " refuses " + describe(info_), ErrorKind::kUnsupported, log_.take());
    frame_ = make_frame();
    frame_->format = c.pix_fmt;
    frame_->width = c.width;
    frame_->height = c.height;
    frame_->sample_aspect_ratio = c.sample_aspect_ratio;
    frame_->color_primaries = c.color_primaries;
    frame_->color_trc = c.color_trc;
    frame_->colorspace = c.colorspace;
    frame_->color_range = c.color_range;
    frame_->chroma_location = c.chroma_sample_location;
#ifdef AV_FRAME_FLAG_INTERLACED
    if (info_.field_order != 0) frame_->flags |= AV_FRAME_FLAG_INTERLACED;
    if (info_.field_order == 1) frame_->flags |= AV_FRAME_FLAG_TOP_FIELD_FIRST;
#else
    frame_->interlaced_frame = info_.field_order != 0;
    frame_->top_field_first = info_.field_order == 1;
#endif
    frame_->quality = c.global_quality;
    if (av_frame_get_buffer(frame_.get(), 0) < 0) throw std::bad_alloc();
    // Layouts such as bgr0 have bytes that no component fills.
    for (int plane = 0; plane < AV_NUM_DATA_POINTERS && frame_->buf[plane] != nullptr; ++plane)
      std::fill_n(frame_->buf[plane]->data, frame_->buf[plane]->size, std::uint8_t{0});
    packet_ = make_packet();
  }

  /// The colours of a GIF: 3 bits of red and green, 2 of blue, dithered.
  void pack_few_colours(const Gop& gop, int index) {
    if (!colours_) {
      planes_ = make_frame();
      planes_->format = AV_PIX_FMT_GBRP;
      planes_->width = info_.width;
      planes_->height = info_.height;
      if (av_frame_get_buffer(planes_.get(), 0) < 0) throw std::bad_alloc();
      VideoInfo tags = info_;
      colours_.emplace(AV_PIX_FMT_GBRP, choice_.pixels, tags, false, name_);
    }
    pack(gop, index, *planes_);
    if (av_frame_copy(frame_.get(), &colours_->convert(*planes_)) < 0)
      fail(ErrorKind::kInternal, at_frame() + " does not become a GIF's");
  }

  void open_muxer() {
    AVFormatContext* context = nullptr;
    int code = avformat_alloc_output_context2(&context, choice_.muxer, nullptr, nullptr);
    if (code < 0) av_fail(code, name_ + ": no muxer", ErrorKind::kInternal);
    format_.reset(context);
    io_ = std::make_unique<FileIo>(file_);
    context->opaque = &log_;
    context->pb = io_->context();
    context->strict_std_compliance = FF_COMPLIANCE_EXPERIMENTAL;  // FLAC in MP4, which older versions call so
    stream_ = avformat_new_stream(context, nullptr);
    if (stream_ == nullptr) throw std::bad_alloc();
    code = avcodec_parameters_from_context(stream_->codecpar, codec_.get());
    if (code < 0) av_fail(code, name_ + ": no stream", ErrorKind::kInternal);
    stream_->time_base = codec_->time_base;
    stream_->avg_frame_rate = rate_;
    stream_->r_frame_rate = rate_;
    stream_->sample_aspect_ratio = codec_->sample_aspect_ratio;
    stream_->disposition = AV_DISPOSITION_DEFAULT;
    if (info_.rotation != 0 || info_.mirrored) {
      std::uint8_t* matrix = av_stream_new_side_data(stream_, AV_PKT_DATA_DISPLAYMATRIX, 9 * sizeof(std::int32_t));
      if (matrix == nullptr) throw std::bad_alloc();
      auto* const entries = reinterpret_cast<std::int32_t*>(matrix);
      av_display_rotation_set(entries, info_.rotation);
      for (const int i : {0, 1}) entries[i] = info_.mirrored ? -entries[i] : entries[i];  // before the rotation
    }
    add_hdr(*stream_, metadata_);
    if (side_streams_) side_streams_->add_to(*context);
    if (!choice_.one_picture) add_chapters_and_tags(*context, metadata_);
    // Shown for ever, as GIF is by FFmpeg's default; its default for PNG is once.
    if (std::string_view(choice_.muxer->name) == "apng") av_opt_set_int(context->priv_data, "plays", 0, 0);
    wanted_ = WantedFields(*context);
    check_written(avformat_write_header(context, nullptr));
  }

  FrameTime next_time(FrameTime time) {
    const std::int64_t one = std::max<std::int64_t>(1, av_rescale_q(1, av_inv_q(rate_), codec_->time_base));
    if (!keep_times_) {
      if (codec_counts_) count_moved(time.pts);
      last_pts_ = static_cast<std::int64_t>(frames_);
      last_duration_ = 1;
      return {last_pts_, 1};
    }
    if (frames_ == 0) first_pts_ = time.pts;
    if (frames_ > 0 && time.pts <= last_pts_)
      time.pts = std::max(
          add_times(last_pts_, 1),
          add_times(first_pts_, av_rescale_q(static_cast<std::int64_t>(frames_), av_inv_q(rate_), codec_->time_base)));
    if (time.duration <= 0) time.duration = one;
    last_pts_ = time.pts;
    last_duration_ = time.duration;
    return time;
  }

  /// Counts the frames that equal distances move by more than half of one.
  void count_moved(std::int64_t pts) {
    if (frames_ == 0) first_pts_ = pts;
    const double since = (static_cast<double>(pts) - static_cast<double>(first_pts_)) * info_.time_base.value();
    if (std::abs(since * av_q2d(rate_) - static_cast<double>(frames_)) > 0.5) ++moved_;
  }

  std::int64_t microseconds(std::int64_t pts) const { return av_rescale_q(pts, codec_->time_base, {1, 1'000'000}); }

  /// Moves the packets that are ready into the file.
  void drain() {
    for (;;) {
      int code = avcodec_receive_packet(codec_.get(), packet_.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      if (code < 0) av_fail(code, at_frame() + " does not encode", ErrorKind::kUnsupported, log_.take());
      packet_->stream_index = stream_->index;
      if (side_streams_) side_streams_->write_until(microseconds(packet_->dts));
      if (const auto known = durations_.find(packet_->pts); known != durations_.end()) {
        packet_->duration = known->second;
        durations_.erase(known);
      }
      av_packet_rescale_ts(packet_.get(), codec_->time_base, stream_->time_base);
      code = av_interleaved_write_frame(format_.get(), packet_.get());
      check_written(code);
    }
  }

  void check_written(int code) {
    io_->rethrow();
    if (code < 0)
      av_fail(code, "cannot write " + name_ + " (" + choice_.muxer->name + ")", ErrorKind::kUnsupported, log_.take());
  }

  std::string at_frame() const { return name_ + ": frame " + std::to_string(frames_); }

  VideoInfo info_;
  Choice choice_;
  FileSink file_;
  std::string name_;
  AVRational rate_ = {25, 1};
  Metadata metadata_;
  bool keep_times_ = true;
  bool codec_counts_ = false;  ///< the container has times, the codec does not take them
  std::uint64_t moved_ = 0;    ///< frames whose times are then others
  bool completed_ = false;
  ErrorLog log_;
  std::optional<SideStreamCopy> side_streams_;
  std::unique_ptr<FileIo> io_;
  FormatPtr format_;
  CodecPtr codec_;
  AVStream* stream_ = nullptr;
  FramePtr frame_;
  std::optional<Converter> colours_;
  FramePtr planes_;
  PacketPtr packet_;
  std::uint64_t frames_ = 0;
  std::int64_t first_pts_ = 0;
  std::int64_t last_pts_ = 0;
  std::int64_t last_duration_ = 0;
  WantedFields wanted_;
  std::string lost_;                                ///< what the container does not hold of tags and the like
  std::map<std::int64_t, std::int64_t> durations_;  ///< of frames in the encoder, by time
};

}  // namespace

bool ffmpeg_writes_picture(const std::string& path, const std::string& muxer_name) {
  const AVOutputFormat* muxer =
      av_guess_format(muxer_name.empty() ? nullptr : muxer_name.c_str(),
                      muxer_name.empty() ? path.c_str() : ("x." + muxer_name).c_str(), nullptr);
  return muxer != nullptr && std::string_view(muxer->name).substr(0, 6) == "image2";
}

bool ffmpeg_output_holds(const std::string& path, const VideoInfo& info, const std::string& muxer,
                         const WriterOptions& options) {
  Choice choice = choose_kind(path, info, muxer, options);
  choose_pixels(choice, info, options);
  return choice.pixels != AV_PIX_FMT_NONE && !takes_even_sizes_only(*choice.codec, info);
}

Writer make_ffmpeg_writer(const std::string& path, const VideoInfo& info, const std::string& muxer,
                          const WriterOptions& options) {
  return std::make_unique<FfmpegWriter>(path, info, muxer, options);
}

}  // namespace trivelet::io
