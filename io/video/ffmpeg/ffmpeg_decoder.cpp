// Pictures that a GPU decodes have the layout of its video engine: two components alternate in one plane, and samples
// of more than 8 bits are at the upper end of 16.
#include "io/video/ffmpeg/ffmpeg_decoder.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <utility>

extern "C" {
#include <libavutil/hwcontext.h>
// FFmpeg's header needs only two names of CUDA's header.
#if !defined(CUDA_VERSION)
#define CUDA_VERSION 0
typedef struct CUctx_st* CUcontext;
typedef struct CUstream_st* CUstream;
#endif
#include <libavutil/hwcontext_cuda.h>
}

#include "codec/base/limits.h"
#include "io/video/ffmpeg/ffmpeg_extras.h"
#include "io/video/ffmpeg/left_out/ffmpeg_left_out.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_tracks.h"
#include "io/video/held_messages.h"

namespace trivelet::io {

namespace {

bool is_on_device(int format) {
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(format));
  return desc != nullptr && (desc->flags & AV_PIX_FMT_FLAG_HWACCEL) != 0;
}

// The device, if it supports the stream; otherwise the CPU.
AVPixelFormat prefer_cuda(AVCodecContext*, const AVPixelFormat* formats) {
  const AVPixelFormat* other = nullptr;
  for (; *formats != AV_PIX_FMT_NONE; ++formats) {
    if (*formats == AV_PIX_FMT_CUDA) return *formats;
    if (other == nullptr && !is_on_device(*formats)) other = formats;
  }
  return other != nullptr ? *other : AV_PIX_FMT_NONE;
}

bool helped_by_cuda(const AVCodec& codec) {
  for (int i = 0; const AVCodecHWConfig* way = avcodec_get_hw_config(&codec, i); ++i)
    if (way->pix_fmt == AV_PIX_FMT_CUDA && (way->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0) return true;
  return false;
}

// FFmpeg may prefer decoders of other libraries, which cannot use a device. Its own decoders can, and they also report
// damage in the structure of a stream, which decoders that run on the device alone do not.
const AVCodec* helped_decoder(AVCodecID id, const AVCodec* preferred) {
  if (preferred != nullptr && helped_by_cuda(*preferred)) return preferred;
  void* at = nullptr;
  while (const AVCodec* codec = av_codec_iterate(&at))
    if (codec->id == id && av_codec_is_decoder(codec) && (codec->capabilities & AV_CODEC_CAP_HARDWARE) == 0 &&
        helped_by_cuda(*codec))
      return codec;
  return preferred;
}

// True if a packet of H.264 is an IDR picture, after which no earlier picture is referred to (ITU-T H.264, 7.4.1.2.4).
// Units with lengths, as in MP4 and Matroska, are examined; others are not.
bool is_idr(const AVPacket& packet, const AVCodecParameters& coded) {
  constexpr int kIdr = 5;
  if (coded.codec_id != AV_CODEC_ID_H264 || coded.extradata_size < 5 || coded.extradata[0] != 1) return false;
  const std::size_t head = (coded.extradata[4] & 3u) + 1;
  const auto size = static_cast<std::size_t>(packet.size);
  for (std::size_t at = 0; at + head < size;) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < head; ++i) length = length << 8 | packet.data[at + i];
    at += head;
    if ((packet.data[at] & 31) == kIdr) return true;
    if (length > size - at) return false;
    at += length;
  }
  return false;
}

bool has_four_bytes(int format) {
  return format == AV_PIX_FMT_BGRA || format == AV_PIX_FMT_RGBA || format == AV_PIX_FMT_BGR0 ||
         format == AV_PIX_FMT_RGB0;
}

/// True if what is decoded of a picture depends on those before in a way that threads do not keep: the decoder of
/// MPEG-4 counts how pictures end, to find out how their encoder pads, and its threads begin pictures before it has.
bool learns_from_pictures(const AVCodecContext& codec) { return codec.codec_id == AV_CODEC_ID_MPEG4; }

std::int64_t shown_at(const AVFrame& frame) { return frame.best_effort_timestamp; }

PacketPtr copy_of(const AVPacket& packet) {
  PacketPtr out = make_packet();
  if (av_packet_ref(out.get(), &packet) < 0) throw std::bad_alloc();
  return out;
}

/// Whether FFmpeg has refused a size that a picture may have: it allows some 268 million pixels with their borders.
bool means_too_large(const std::string& message) {
  constexpr unsigned kMostSide = 1 << 20;
  unsigned width = 0, height = 0;
  return std::sscanf(message.c_str(), "Picture size %10ux%10u is invalid", &width, &height) == 2 && width > 0 &&
         height > 0 && width < kMostSide && height < kMostSide;
}

// True if a decoder's message means that it does not support this kind of picture: many decoders return the code of
// damage then.
bool means_unsupported(const std::string& message) {
  return means_too_large(message) || message.find("not supported") != std::string::npos ||
         message.find("nsupported") != std::string::npos || message.find("not implemented") != std::string::npos ||
         message.find("Unknown compression method") != std::string::npos;
}

// True for pictures of which the demuxer takes everything up to the end of the file, because no parser finds theirs.
bool needs_file(const AVFormatContext& input, const AVStream& stream) {
  const std::string_view demuxer = input.iformat->name;
  if (demuxer.size() < 5 || demuxer.substr(demuxer.size() - 5) != "_pipe") return false;
  AVCodecParserContext* const parser = av_parser_init(stream.codecpar->codec_id);
  av_parser_close(parser);
  return parser == nullptr;
}

}  // namespace

BufferPtr open_cuda_device(int number) {
  AVBufferRef* device = nullptr;
  const int code = av_hwdevice_ctx_create(&device, AV_HWDEVICE_TYPE_CUDA, std::to_string(number).c_str(), nullptr, 0);
  if (code < 0)
    av_fail(AVERROR(ENOSYS), "GPU " + std::to_string(number) + " does not decode video", ErrorKind::kUnsupported,
            code == AVERROR(ENOMEM) ? "this FFmpeg was built without CUDA" : "FFmpeg cannot use its driver");
  return BufferPtr(device);
}

namespace {

/// FFmpeg's name, or the four letters of the container where it knows none.
std::string name_of_codec(const AVCodecParameters& codec) {
  if (codec.codec_id != AV_CODEC_ID_NONE) return avcodec_get_name(codec.codec_id);
  std::array<char, AV_FOURCC_MAX_STRING_SIZE> letters = {};
  av_fourcc_make_string(letters.data(), codec.codec_tag);
  return codec.codec_tag != 0 ? std::string("pictures coded as '") + letters.data() + "'" : "pictures coded like these";
}

/// Of a file that no demuxer knows. Its name decides whether it may be a film or picture that is damaged.
[[noreturn]] void fail_unknown(const std::string& path, ErrorKind kind, const std::string& what) {
  const AVOutputFormat* const like = av_guess_format(nullptr, path.c_str(), nullptr);
  if (like != nullptr && like->video_codec != AV_CODEC_ID_NONE) fail(kind, what);
  throw NoPictures(kind, what);
}

}  // namespace

PictureDecoder::PictureDecoder(const std::string& path, Source source, const std::string& demuxer,
                               const ReaderOptions& options, int threads, AVBufferRef* device,
                               std::shared_ptr<Complaints> complaints)
    : name_(source ? source->name() : path),
      source_(std::move(source)),
      recover_(options.recover),
      complaints_(std::move(complaints)) {
  if (source_) missing_bytes_ = bytes_missing_at_end(*source_);
  const bool may_be_whole = missing_bytes_ > 0 && lacks_samples_alone(*source_);
  require(recover_ || missing_bytes_ == 0 || may_be_whole, ErrorKind::kBadStream,
          name_ + " " + cut_short() + " (ReaderOptions::recover takes what is there)");
  open_input(path, demuxer, options);
  if (may_be_whole && has_all_samples()) {
    if (complaints_) complaints_->add("its end", count_of(missing_bytes_, "byte") + " without samples are missing");
    missing_bytes_ = 0;
  }
  require(recover_ || missing_bytes_ == 0, ErrorKind::kBadStream,
          name_ + " " + cut_short() + " (ReaderOptions::recover takes what is there)");
  open_decoder(threads, device);
  frame_ = make_frame();
  packet_ = make_packet();
}

/// Whether all samples of all tracks are in the file, by the index of the demuxer, which has them all.
bool PictureDecoder::has_all_samples() const {
  const auto size = static_cast<std::int64_t>(source_->size().value_or(0));
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    AVStream* const stream = input_->streams[i];
    const int count = avformat_index_get_entries_count(stream);
    if (count == 0 || count < stream->nb_frames) return false;
    for (int at = 0; at < count; ++at) {
      const AVIndexEntry* const entry = avformat_index_get_entry(stream, at);
      if (entry == nullptr || entry->pos < 0 || entry->pos > size - entry->size) return false;
    }
  }
  return true;
}

/// The demuxer for the contents of the file.
const AVInputFormat* PictureDecoder::probe_format(const std::string& url) {
  const AVInputFormat* format = nullptr;
  const int code = av_probe_input_buffer2(io_->context(), &format, url.c_str(), nullptr, 0, 0);
  io_->rethrow();
  if (code < 0 && source_->position() == 0) fail_unknown(name_, ErrorKind::kBadStream, name_ + " is empty");
  if (code < 0)
    fail_unknown(name_, ErrorKind::kUnsupported,
                 name_ + " is no video that FFmpeg knows (raw samples need a size and a pixel format)");
  return format;
}

void PictureDecoder::open_input(const std::string& path, const std::string& demuxer, const ReaderOptions& options) {
  const AVInputFormat* format = nullptr;
  if (!demuxer.empty()) {
    format = av_find_input_format(demuxer.c_str());
    require(format != nullptr, ErrorKind::kBadArgument,
            "unknown input format '" + demuxer + "'; known: y4m, pnm, raw, ffmpeg, and the demuxers of FFmpeg");
  }
  const std::string url = path == "-" ? "" : path;
  if (source_) {
    io_ = std::make_unique<SourceIo>(*source_);
    if (format == nullptr) format = probe_format(url);
  }
  AVFormatContext* context = avformat_alloc_context();
  if (context == nullptr) throw std::bad_alloc();
  context->opaque = &log_;
  if (io_) context->pb = io_->context();
  AVDictionary* settings = nullptr;
  // What we read ourselves may lead to no other file, a playlist to some if allowed; nothing leads to the network.
  av_dict_set(&settings, "protocol_whitelist", source_ && !options.allow_outside ? "data" : "file,crypto,data", 0);
  av_dict_set(&settings, "export_xmp", "1", 0);  // of MP4: a tag
  if (options.frame_rate.num > 0 && demuxer == "image2") {
    const std::string rate = to_string(options.frame_rate);
    av_dict_set(&settings, "framerate", rate.c_str(), 0);
  }
  int code = avformat_open_input(&context, url.c_str(), format, &settings);  // frees the context when it fails
  av_dict_free(&settings);
  if (io_) io_->rethrow();
  if (code < 0) av_fail(code, name_ + " is not a video that FFmpeg can read", ErrorKind::kBadStream, log_.take());
  input_.reset(context);
  std::vector<ContainerColours> colours;  // which those of the pictures may replace at once
  for (unsigned i = 0; i < input_->nb_streams; ++i) {
    const AVCodecParameters& p = *input_->streams[i]->codecpar;
    colours.push_back({p.color_primaries, p.color_trc, p.color_space, p.color_range});
  }
  {
    const HeldMessages held(input_->nb_streams > 0 && input_->streams[0]->codecpar->codec_id == AV_CODEC_ID_JPEGXL);
    code = avformat_find_stream_info(input_.get(), nullptr);
  }
  if (io_) io_->rethrow();
  if (code < 0) av_fail(code, name_ + ": FFmpeg finds no stream parameters", ErrorKind::kBadStream, log_.take());
  const int index = main_video(*input_, options.stream, name_);
  if (index < 0)
    throw NoPictures(ErrorKind::kUnsupported, name_ + ": no video stream in this " + input_->iformat->name + " file");
  for (unsigned i = 0; i < input_->nb_streams; ++i)
    if (static_cast<int>(i) != index) input_->streams[i]->discard = AVDISCARD_ALL;
  stream_ = input_->streams[index];
  if (static_cast<std::size_t>(index) < colours.size()) container_colours_ = colours[static_cast<std::size_t>(index)];
  require(source_ == nullptr || source_->size() || !needs_file(*input_, *stream_), ErrorKind::kUnsupported,
          name_ + ": FFmpeg reads pictures of this type (" + avcodec_get_name(stream_->codecpar->codec_id) +
              ") from files alone; write it to a file first");
  // Of WebM the demuxer says it here, of MP4 of each packet.
  require(av_dict_get(input_->metadata, "ASF_Protection_Type", nullptr, 0) == nullptr &&
              av_dict_get(stream_->metadata, "enc_key_id", nullptr, 0) == nullptr,
          ErrorKind::kUnsupported, name_ + " is encrypted; decrypt it first");
}

void PictureDecoder::open_decoder(int threads, AVBufferRef* device) {
  const AVCodecID id = stream_->codecpar->codec_id;
  const AVCodec* codec = decoder_with_alpha(*stream_, avcodec_find_decoder(id));
  if (device != nullptr) codec = helped_decoder(id, codec);
  require(codec != nullptr, ErrorKind::kUnsupported,
          name_ + ": this FFmpeg has no decoder for " + name_of_codec(*stream_->codecpar));
  codec_.reset(avcodec_alloc_context3(codec));
  if (!codec_) throw std::bad_alloc();
  int code = avcodec_parameters_to_context(codec_.get(), stream_->codecpar);
  if (code < 0) av_fail(code, name_ + ": wrong codec parameters", ErrorKind::kBadStream);
  codec_->pkt_timebase = stream_->time_base;
  // With threads for slices the decoder of H.264 conceals without a message.
  codec_->thread_count = recover_ || learns_from_pictures(*codec_) ? 1 : std::max(threads, 0);
  codec_->thread_type = FF_THREAD_FRAME | FF_THREAD_SLICE;
  codec_->err_recognition = AV_EF_CRCCHECK;
  codec_->opaque = &log_;
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
  codec_->flags |= AV_CODEC_FLAG_COPY_OPAQUE;
#endif
  if (device != nullptr) {
    codec_->hw_device_ctx = av_buffer_ref(device);
    if (codec_->hw_device_ctx == nullptr) throw std::bad_alloc();
    codec_->get_format = prefer_cuda;
  }
  log_.forget();  // messages while the streams were found
  code = avcodec_open2(codec_.get(), codec, nullptr);
  if (code == AVERROR(EAGAIN)) throw std::bad_alloc();  // for the stack of a thread
  if (code < 0)
    av_fail(code, name_ + ": the " + codec->name + " decoder does not open", ErrorKind::kBadStream, log_.take());
}

std::string PictureDecoder::damage() const {
  if (lost_.empty()) return damage_;
  std::array<char, 32> seconds = {};
  std::snprintf(seconds.data(), seconds.size(), "%.3f", lost_seconds_);
  const std::string lost = lost_ + "; what is shown before " + seconds.data() + " s is missing";
  return damage_.empty() ? lost : lost + ", and what follows this: " + damage_;
}

/// Where nothing was delivered before the damage: goes on with the next key frame. False at the end of the file.
bool PictureDecoder::go_on_behind_damage() {
  if (!recover_ || frames_ > 0 || damage_.empty()) return false;
  if (lost_.empty()) lost_ = damage_;
  damage_.clear();
  recovered_ = false;
  sent_.clear();
  avcodec_flush_buffers(codec_.get());
  is_draining_ = false;
  log_.forget();
  complaint_.clear();
  // The decoder's threads had further packets than the damaged one.
  for (; !again_.empty(); again_.pop_front()) held_.push_back(std::move(again_.front()));
  again_ = std::exchange(held_, {});
  if (!again_.empty()) again_.pop_front();
  const auto is_key = [](const AVPacket& packet) {
    return (packet.flags & AV_PKT_FLAG_KEY) != 0 && (packet.flags & AV_PKT_FLAG_CORRUPT) == 0;
  };
  while (!again_.empty() && !is_key(*again_.front())) again_.pop_front();
  while (again_.empty()) {
    if (!read_packet()) {
      if (damage_.empty()) break;  // the end
      damage_.clear();
      if (io_ == nullptr || input_->pb == nullptr || avio_feof(input_->pb) != 0) break;
      continue;
    }
    if (is_key(*packet_)) again_.push_back(copy_of(*packet_));
  }
  if (again_.empty()) {
    damage_ = std::exchange(lost_, {});
    if (unsupported_) std::rethrow_exception(unsupported_);
    return false;
  }
  begins_at_ = again_.front()->pts;
  return true;
}

/// Whether the first picture is the key frame with which it goes on behind damage; one that needs others is no
/// beginning.
bool PictureDecoder::begins_behind_damage() {
  if (frame_->key_frame == 0 && frame_->pict_type != AV_PICTURE_TYPE_I) {
    damage_ = lost_;
    return false;
  }
  const std::int64_t start = stream_->start_time != AV_NOPTS_VALUE ? stream_->start_time : 0;
  const std::int64_t at = shown_at(*frame_) != AV_NOPTS_VALUE ? shown_at(*frame_) : start;
  lost_seconds_ = static_cast<double>(at - start) * av_q2d(stream_->time_base);
  return true;
}

AVFrame* PictureDecoder::next() {
  if (recovered_) return nullptr;
  const HeldMessages held(codec_->codec->name == std::string_view("libjxl"));
  for (;;) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    const std::uint64_t packet = code == 0 ? packet_of(*frame_) : ErrorLog::kAll;
    if (code != AVERROR(EAGAIN)) check_damage(code == AVERROR_EOF ? 0 : code, packet, first_undecoded());
    if (code == AVERROR_EOF) {
      if (go_on_behind_damage()) continue;
      const bool all_there = stream_->nb_frames > 0 && frames_ >= static_cast<std::uint64_t>(stream_->nb_frames);
      if (missing_bytes_ > 0 && !all_there && damage_.empty()) damage_ = cut_short();
      return nullptr;
    }
    if (code == AVERROR(EAGAIN)) {
      send_packet();
      continue;
    }
    if (code != 0) {  // only with recover_: damage that the decoder cannot repair
      if (go_on_behind_damage()) continue;
      recovered_ = true;
      return nullptr;
    }
    // What is shown before a seek's place needs pictures that are not there.
    if (before_begin_ && shown_at(*frame_) < begin_->pts) continue;
    before_begin_ = false;
    const bool behind = !damage_.empty() && shown_at(*frame_) >= damaged_at_;
    if (behind || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0 || frame_->decode_error_flags != 0) {
      check_damage(AVERROR_INVALIDDATA, packet);
      if (go_on_behind_damage()) continue;
      recovered_ = true;  // this picture is damaged
      return nullptr;
    }
    if (frames_ == 0 && !lost_.empty()) {
      if (shown_at(*frame_) < begins_at_) continue;  // it may need pictures before the key frame
      if (!begins_behind_damage()) {
        if (go_on_behind_damage()) continue;
        recovered_ = true;
        return nullptr;
      }
      sent_.clear();
    }
    if (four_bytes_ != AV_PIX_FMT_NONE && has_four_bytes(frame_->format)) frame_->format = four_bytes_;
    held_.clear();
    if (!sent_.empty()) {
      const auto is_before = [this](std::int64_t pts) { return pts < shown_at(*frame_); };
      left_out_ = static_cast<std::uint64_t>(std::count_if(sent_.begin(), sent_.end(), is_before));
      sent_ = {};
    }
    complaint_.clear();
    ++frames_;
    return frame_.get();
  }
}

/// av_read_frame(), until there is a packet. Demuxers answer "again" when they have skipped something that is not a
/// packet.
int PictureDecoder::read_any_packet() {
  // After this many skips in a row reading has failed: a packet has at least a byte, and no file is read like that.
  constexpr int kMost = 1'000'000;
  int code = AVERROR(EAGAIN);
  for (int i = 0; i < kMost && code == AVERROR(EAGAIN); ++i) {
    av_packet_unref(packet_.get());
    code = av_read_frame(input_.get(), packet_.get());
    if (io_) io_->rethrow();
  }
  return code;
}

/// The next packet of our stream. False at the end. Those without bytes say that the picture before stays (AVI), and a
/// decoder would take them for the end.
bool PictureDecoder::read_packet() {
  int code = 0;
  do {
    code = read_any_packet();
  } while (code == 0 && (packet_->stream_index != stream_->index || packet_->size == 0));
  if (io_) io_->rethrow();
  if (code < 0 && code != AVERROR_EOF) check_damage(code, ErrorLog::kAll, log_.packets() + 1);
  require(code != 0 || av_packet_get_side_data(packet_.get(), AV_PKT_DATA_ENCRYPTION_INFO, nullptr) == nullptr,
          ErrorKind::kUnsupported, name_ + " is encrypted; decrypt it first");
  if (code == 0 && packet_->pts != AV_NOPTS_VALUE) latest_ = std::max(latest_, packet_->pts);
  return code == 0;
}

void PictureDecoder::note_sent(const AVPacket& packet) {
  sent_at_ = packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
}

/// Throws for pictures out of which FFmpeg makes others.
void PictureDecoder::refuse_misread() const {
  struct Kind {
    AVCodecID codec;
    const char *name, *instead;
    std::string (*misread)(const AVPacket&);
  };
  static constexpr Kind kKinds[] = {{AV_CODEC_ID_TIFF, "TIFF", "plain TIFF", misread_tiff},
                                    {AV_CODEC_ID_PSD, "Photoshop", "TIFF", misread_psd},
                                    {AV_CODEC_ID_TARGA, "Targa", "TIFF", misread_targa}};
  for (const Kind& kind : kKinds) {
    if (codec_->codec_id != kind.codec) continue;
    const std::string misread = kind.misread(*packet_);
    require(misread.empty(), ErrorKind::kUnsupported,
            name_ + ": a " + kind.name + " picture " + misread + ", which FFmpeg reads wrong; write it as PNG or " +
                kind.instead + " first");
  }
}

/// Sends one packet of our stream to the decoder, or the end.
void PictureDecoder::send_packet() {
  if (std::exchange(has_packet_, false)) return check_sent(send(*packet_));
  if (!damage_.empty()) {  // the decoder still holds pictures
    avcodec_send_packet(codec_.get(), nullptr);
    return;
  }
  int code = 0;
  if (!again_.empty()) {
    held_.push_back(std::move(again_.front()));
    again_.pop_front();
    note_sent(*held_.back());
    code = send(*held_.back());
  } else if (!read_packet()) {
    damaged_at_ = INT64_MAX;  // of what was sent nothing is damaged
    if (!damage_.empty()) return;
    is_draining_ = true;
    code = avcodec_send_packet(codec_.get(), nullptr);
    if (code == AVERROR_EOF) code = 0;
  } else {
    constexpr std::size_t kMost = 100'000;
    const bool is_shown = packet_->pts != AV_NOPTS_VALUE && (packet_->flags & AV_PKT_FLAG_DISCARD) == 0;
    if (frames_ == 0 && !begin_ && is_shown && sent_.size() < kMost) sent_.push_back(packet_->pts);
    refuse_misread();
    four_bytes_ = format_of_four_bytes(*packet_, codec_->codec_id);
    note_sent(*packet_);
    if (recover_ && frames_ == 0) held_.push_back(copy_of(*packet_));
    const bool whole = (packet_->flags & AV_PKT_FLAG_CORRUPT) == 0;
    code = whole ? send(*packet_) : AVERROR_INVALIDDATA;
  }
  check_sent(code);
}

/// Gives packets numbers, which come back with their frames and their messages.
int PictureDecoder::send(AVPacket& packet) {
  void* const mark = log_.begin_packet();
  // What is shown before a seek's place needs pictures that are not there.
  const bool is_before = begin_ && packet.pts != AV_NOPTS_VALUE && packet.pts < begin_->pts;
  passes_over_ = passes_over_ || is_before;
  codec_->opaque = is_before ? nullptr : mark;
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
  packet.opaque = reinterpret_cast<void*>(static_cast<std::uintptr_t>(log_.packets()));
#else
  codec_->reordered_opaque = static_cast<std::int64_t>(log_.packets());
#endif
  return avcodec_send_packet(codec_.get(), &packet);
}

/// The number of the packet that a frame is of; kAll if it is unknown, or if all that was sent is decoded.
std::uint64_t PictureDecoder::packet_of(const AVFrame& frame) const {
  if (recover_) return ErrorLog::kAll;
#ifdef AV_CODEC_FLAG_COPY_OPAQUE
  const auto number = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(frame.opaque));
#else
  const auto number = static_cast<std::uint64_t>(frame.reordered_opaque);
#endif
  return number > 0 && number <= log_.packets() ? number : ErrorLog::kAll;
}

/// The first packet that a call may have failed for: threads have later ones.
std::uint64_t PictureDecoder::first_undecoded() const {
  const bool is_ahead = (codec_->active_thread_type & FF_THREAD_FRAME) != 0;
  const auto later = static_cast<std::uint64_t>(is_ahead ? std::max(codec_->thread_count - 1, 0) : 0);
  return is_draining_ ? 0 : log_.packets() - std::min(log_.packets(), later);
}

/// The messages of a packet that was sent are those of its frame, except where damage is looked for.
void PictureDecoder::check_sent(int code) {
  if (code < 0 || recover_) check_damage(code, ErrorLog::kAll, first_undecoded());
}

/// Throws if FFmpeg failed, or concealed samples of packets up to `last`: threads work ahead, and what they say of
/// later packets does not yet count, so that it depends on no thread how far a film is read. `first`: the packet for
/// which a call failed, or one before; 0 = unknown.
void PictureDecoder::check_damage(int code, std::uint64_t last, std::uint64_t first) {
  // Some decoders return -1 for damage, as EPERM is called; errors of the system come from our own bytes.
  if (code == AVERROR(EPERM)) code = AVERROR_INVALIDDATA;
  log_.forget(passed_);
  const bool concealed = log_.take_concealed(last);
  std::string reason = code < 0 && first > 0 ? log_.take_reason(first) : log_.take(last);
  if (code >= 0 && before_begin_ && !concealed) return;
  if (code >= 0 && !concealed) {
    if (complaints_ && !reason.empty()) complaints_->add(place(), reason);
    if (!reason.empty()) complaint_ = std::move(reason);
    return;
  }
  if (code == AVERROR_INVALIDDATA && before_begin_ && passes_over_) return;
  if (reason.empty()) reason = complaint_;
  const std::string missing = log_.missing_feature();
  if (code < 0 && frames_ == 0 && !begin_ &&
      (code == AVERROR_PATCHWELCOME || means_unsupported(reason) || !missing.empty())) {
    if (!missing.empty()) reason = missing;
    try {
      av_fail(AVERROR_PATCHWELCOME, name_ + ": FFmpeg's " + codec_->codec->name + " decoder does not read it",
              ErrorKind::kUnsupported, reason);
    } catch (const Error&) {
      if (!recover_) throw;
      if (!unsupported_) unsupported_ = std::current_exception();  // a damaged packet may look so
    }
  }
  if (recover_) {
    if (damage_.empty()) {
      damage_ = reason.empty() ? "a packet is damaged" : reason;
      damaged_at_ = sent_at_;
    }
    return;
  }
  av_fail(code < 0 ? code : AVERROR_INVALIDDATA,
          name_ + ": " + place() + " or one soon after is damaged or missing (" + input_->iformat->name + ", " +
              codec_->codec->name + ")",
          ErrorKind::kBadStream, reason);
}

std::string PictureDecoder::place() const {
  const std::string frame = "frame " + std::to_string(frames_);
  if (!begin_) return frame;
  return frame + " behind " + std::to_string(static_cast<double>(begin_->pts) * av_q2d(stream_->time_base)) + " s";
}

std::string PictureDecoder::cut_short() const {
  return "is cut short: " + count_of(missing_bytes_, "byte", "is", "are") + " missing at its end";
}

std::vector<PictureDecoder::Entry> PictureDecoder::entries(std::int64_t ticks) {
  std::vector<Entry> found;
  if (!reads_file() || recover_ || learns_from_pictures(*codec_)) return found;
  // Some containers read their index when it is first needed.
  const std::int64_t start = stream_->start_time != AV_NOPTS_VALUE ? stream_->start_time : 0;
  if (av_seek_frame(input_.get(), stream_->index, start, AVSEEK_FLAG_BACKWARD) < 0) {
    io_->rethrow();
    log_.forget();
    return found;
  }
  std::vector<std::int64_t> stamps;
  const int count = avformat_index_get_entries_count(stream_);
  for (int i = 0; i < count; ++i) {
    const AVIndexEntry* e = avformat_index_get_entry(stream_, i);
    if (e == nullptr || (e->flags & AVINDEX_KEYFRAME) == 0) continue;
    if (stamps.empty() || e->timestamp - stamps.back() >= ticks) stamps.push_back(e->timestamp);
  }
  for (const std::int64_t stamp : stamps) {
    if (av_seek_frame(input_.get(), stream_->index, stamp, AVSEEK_FLAG_BACKWARD) < 0 || !read_packet()) continue;
    if ((packet_->flags & AV_PKT_FLAG_KEY) == 0 || packet_->pts == AV_NOPTS_VALUE) continue;
    if (found.empty() || packet_->pts > found.back().pts) found.push_back({stamp, packet_->pts});
  }
  io_->rethrow();
  log_.forget();
  av_seek_frame(input_.get(), stream_->index, start, AVSEEK_FLAG_BACKWARD);
  if (found.size() < 2) found.clear();
  return found;
}

void PictureDecoder::seek(const Entry& entry) {
  const int code = av_seek_frame(input_.get(), stream_->index, entry.timestamp, AVSEEK_FLAG_BACKWARD);
  io_->rethrow();
  if (code < 0) av_fail(code, name_ + ": a place of its index is not found", ErrorKind::kBadStream, log_.take());
  log_.forget();
  // What is left of this place is passed over, if all of it is shown before the new one.
  const bool all_before = latest_ < entry.pts;
  has_packet_ = read_packet();
  // FFmpeg's H.264 decoder loses its state when it is flushed, and to start that of a GPU takes a tenth of a second. So
  // before a picture that needs no earlier one, pictures that are left from another position are skipped instead.
  const bool goes_on = has_packet_ && all_before && is_idr(*packet_, *stream_->codecpar);
  passes_over_ = goes_on;
  passed_ = log_.packets();
  is_draining_ = false;
  if (!goes_on) {
    avcodec_flush_buffers(codec_.get());
    latest_ = has_packet_ && packet_->pts != AV_NOPTS_VALUE ? packet_->pts : INT64_MIN;
  }
  begin_ = entry;
  before_begin_ = true;
  frames_ = 0;
}

AVPixelFormat PictureDecoder::sample_format(const AVFrame& frame) const {
  return on_device(frame) ? codec_->sw_pix_fmt : static_cast<AVPixelFormat>(frame.format);
}

bool PictureDecoder::on_device(const AVFrame& frame) { return is_on_device(frame.format); }

DevicePicture device_picture(const AVFrame& frame, const PixelFormat& format, const std::string& name) {
  const auto* frames = reinterpret_cast<const AVHWFramesContext*>(frame.hw_frames_ctx->data);
  const AVPixFmtDescriptor* desc = av_pix_fmt_desc_get(frames->sw_format);
  const int bytes = format.bits > 8 ? 2 : 1;
  const bool known = desc != nullptr && desc->nb_components >= format.components() &&
                     (desc->flags & (AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_BE)) == 0;
  DevicePicture picture;
  picture.context = static_cast<const AVCUDADeviceContext*>(frames->device_ctx->hwctx)->cuda_ctx;
  picture.components = format.components();
  picture.bytes_per_sample = bytes;
  picture.shift = bytes == 2 ? 16 - format.bits : 0;
  for (int c = 0; known && c < picture.components; ++c) {
    const AVComponentDescriptor& part = desc->comp[c];
    const bool chroma = c == 1 || c == 2;
    const int right = chroma ? desc->log2_chroma_w : 0;
    const int down = chroma ? desc->log2_chroma_h : 0;
    DevicePlane& plane = picture.planes[static_cast<std::size_t>(c)];
    // Engines write samples at the upper end of 16 bits, whatever depth the name of the layout has.
    if (part.step % bytes != 0 || part.step > 2 * bytes || part.depth < format.bits) break;
    plane.step = part.step / bytes;
    plane.pitch = frame.linesize[part.plane];
    plane.width = AV_CEIL_RSHIFT(frame.width, right);
    plane.height = AV_CEIL_RSHIFT(frame.height, down);
    const auto left = static_cast<std::ptrdiff_t>(frame.crop_left >> right);
    const auto top = static_cast<std::ptrdiff_t>(frame.crop_top >> down);
    plane.data = frame.data[part.plane] + part.offset + top * plane.pitch + left * part.step;
  }
  require(picture.planes[static_cast<std::size_t>(picture.components - 1)].data != nullptr, ErrorKind::kUnsupported,
          name + ": the GPU decodes to " + (desc != nullptr ? desc->name : "a layout") +
              ", which is not taken from it for " + to_string(format) + "; decode on the CPU");
  return picture;
}

}  // namespace trivelet::io
