// Writes a stream into Matroska: a packet per GOP, with the side streams of another file. matroska.h describes the
// track. The stream is cut into boxes as it arrives, and their times are in the headers of the GOPs.
#include <climits>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/limits.h"
#include "codec/format/container.h"
#include "codec/format/stream_layout.h"
#include "io/video/ffmpeg/ffmpeg_bytes.h"
#include "io/video/ffmpeg/ffmpeg_common.h"
#include "io/video/ffmpeg/ffmpeg_fields.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_chapters.h"
#include "io/video/ffmpeg/side_streams/ffmpeg_side_streams.h"
#include "io/video/matroska.h"

namespace trivelet::io {

namespace {

class MatroskaOutput final : public StreamOutput {
 public:
  MatroskaOutput(const std::string& path, bool overwrite, const SideStreamOptions& side_streams)
      : name_(path), file_(path, overwrite) {
    if (!side_streams.from.empty()) side_streams_.emplace(side_streams);
    joins_ = !side_streams.parts.empty();
  }

  void write(const void* data, std::size_t size) override {
    const auto* p = static_cast<const std::uint8_t*>(data);
    while (size > 0) {
      const std::size_t wanted = wanted_bytes();
      const std::size_t n = std::min(size, wanted - buffer_.size());
      buffer_.insert(buffer_.end(), p, p + n);
      p += n;
      size -= n;
      if (buffer_.size() == wanted_bytes()) take();
    }
  }

  void finish() override {
    if (finished_) return;
    require(ended_ && buffer_.empty(), ErrorKind::kBadStream, "the stream for " + name_ + " has no end");
    check(av_write_trailer(format_.get()));
    avio_flush(io_->context());
    io_->rethrow();
    file_.seek(file_.position());  // writes out what is buffered
    if (!file_.temporary_path().empty()) lost_ = wanted_.lost(file_.temporary_path());
    finished_ = true;
  }

  void commit() override {
    finish();
    file_.commit();
  }

  const std::string& temporary_path() const override { return file_.temporary_path(); }
  int verify_sound() const override { return side_streams_ ? side_streams_->verify_sound(file_.temporary_path()) : 0; }
  std::vector<std::string> remarks() const override {
    std::vector<std::string> all = side_streams_ ? side_streams_->remarks() : std::vector<std::string>();
    if (!lost_.empty()) all.push_back(lost_);
    return all;
  }

 private:
  /// The size of the signature or box at the beginning of the buffer; a box's header has its length.
  std::size_t wanted_bytes() const {
    if (!signature_seen_) return sizeof kSignature;
    if (buffer_.size() < kBoxHeaderBytes) return kBoxHeaderBytes;
    Box box;
    require(parse_box_header(buffer_.data(), box), ErrorKind::kBadStream, "the stream for " + name_ + " is damaged");
    constexpr std::uint64_t kMost = INT_MAX / 2;  // libavformat counts with int
    require(box.length < kMost, ErrorKind::kUnsupported,
            name_ + ": a GOP of " + count_of(box.length, "byte") + " is too large for a packet; the limit is " +
                std::to_string(kMost));
    return kBoxHeaderBytes + static_cast<std::size_t>(box.length);
  }

  // A whole signature or box is in the buffer.
  void take() {
    if (!signature_seen_) {
      signature_seen_ = true;
      head_ = std::move(buffer_);
      buffer_.clear();
      return;
    }
    Box box;
    parse_box_header(buffer_.data(), box);
    if (box.length > 0 && buffer_.size() == kBoxHeaderBytes) return;  // more is to come
    if (box.is("Gop ")) {
      take_gop();
    } else if (box.is("Indx")) {
      write_held();
      held_ = buffer_;
    } else if (box.is("Done")) {
      take_end();
    } else if (!box.is("tocF")) {  // places in it would be others
      require(!box.is("Volm"), ErrorKind::kUnsupported,
              name_ + ": volumes have no place in Matroska; write a .tvl file");
      std::vector<std::uint8_t>& before = ended_with_gop_ ? held_ : head_;
      before.insert(before.end(), buffer_.begin(), buffer_.end());
    }
    buffer_.clear();
  }

  std::int64_t microseconds(std::int64_t pts) const {
    const double us = static_cast<double>(pts) * base_.value() * 1e6;
    constexpr double kMost = 1e15;  // thirty years
    require(std::abs(us) < kMost, ErrorKind::kUnsupported,
            name_ + ": a frame at " + std::to_string(us / 1e6) + " s; Matroska is not written so far from 0");
    return std::llround(us);
  }

  void take_gop() {
    if (!format_) open();
    write_held();
    const auto bytes = load_little_endian<std::uint32_t>(buffer_.data() + kBoxHeaderBytes);
    require(bytes >= 8 && bytes <= buffer_.size() - kBoxHeaderBytes, ErrorKind::kBadStream,
            "the stream for " + name_ + " has a GOP without a header");
    const GopHeader gop = parse_gop_header(header_, buffer_.data() + kBoxHeaderBytes, bytes);
    const std::int64_t first = microseconds(gop.times.front().pts);
    end_us_ = microseconds(gop.times.back().pts) + microseconds(gop.times.back().duration);
    if (side_streams_) {
      if (!begun_) side_streams_->begin(first);
      side_streams_->write_until(first);
    }
    begun_ = true;
    held_ = buffer_;
    held_us_ = first;
    held_alone_ = gop.key != GopKey::kOpen;
    ended_with_gop_ = true;
  }

  // A GOP's packet includes the boxes after the GOP.
  void write_held() {
    if (ended_with_gop_) write_packet(held_us_, std::max<std::int64_t>(0, end_us_ - held_us_), held_alone_, held_);
    held_.clear();
    ended_with_gop_ = false;
  }

  void take_end() {
    if (!format_) open();
    if (side_streams_) side_streams_->finish(end_us_);
    held_.insert(held_.end(), buffer_.begin(), buffer_.end());
    // Within the last frame: libavformat would give a later packet the length of a frame, which would lengthen the
    // file.
    const std::int64_t at = std::max(held_us_, end_us_ - 1000);
    write_packet(at, end_us_ - at, false, held_);
    ended_ = true;
  }

  void write_packet(std::int64_t us, std::int64_t duration_us, bool key, const std::vector<std::uint8_t>& content) {
    const std::size_t repeated = key ? head_.size() : 0;
    const PacketPtr packet = make_packet();
    if (av_new_packet(packet.get(), static_cast<int>(repeated + content.size())) < 0) throw std::bad_alloc();
    std::copy_n(head_.data(), repeated, packet->data);
    std::copy_n(content.data(), content.size(), packet->data + repeated);
    packet->stream_index = 0;
    packet->flags = key ? AV_PKT_FLAG_KEY : 0;
    packet->pts = packet->dts = us;
    packet->duration = duration_us;
    av_packet_rescale_ts(packet.get(), {1, 1'000'000}, format_->streams[0]->time_base);
    check(av_interleaved_write_frame(format_.get(), packet.get()));
  }

  void open() {
    require(head_.size() <= kMaxHeaderBytes, ErrorKind::kUnsupported,
            name_ + ": " + count_of(head_.size(), "byte") + " before the first GOP; Matroska gets at most " +
                std::to_string(kMaxHeaderBytes));
    MemorySource source(head_.data(), head_.size());
    std::uint64_t bytes_read = 0;
    StreamInput in(source, bytes_read);
    StreamLayout layout;
    layout.read(in);
    header_ = layout.header;
    const VideoInfo& video = layout.info.video;
    base_ = header_.video.time_base;
    require(base_.num > 0 && base_.den > 0, ErrorKind::kUnsupported,
            name_ + ": the stream has no unit of time, which a film needs; write a .tvl file");
    AVFormatContext* context = nullptr;
    check(avformat_alloc_output_context2(&context, nullptr, "matroska", nullptr));
    format_.reset(context);
    context->opaque = &log_;
    context->flags |= AVFMT_FLAG_BITEXACT;  // the same bytes every time
    io_ = std::make_unique<FileIo>(file_);
    context->pb = io_->context();
    add_video(video);
    add_hdr(*format_->streams[0], layout.info.metadata);
    if (joins_) add_chapters_and_tags(*context, layout.info.metadata);  // chapters of all parts; each has its own
    if (side_streams_) side_streams_->add_to(*context);
    add_chapters_and_tags(*context, layout.info.metadata);
    wanted_ = WantedFields(*context);
    check(avformat_write_header(context, nullptr));
    log_.take();
  }

  void add_video(const VideoInfo& video) {
    AVStream* stream = avformat_new_stream(format_.get(), nullptr);
    if (stream == nullptr) throw std::bad_alloc();
    AVCodecParameters& codec = *stream->codecpar;
    codec.codec_type = AVMEDIA_TYPE_VIDEO;
    codec.codec_id = AV_CODEC_ID_NONE;
    codec.codec_tag = MKTAG('T', 'R', 'V', 'L');
    codec.width = video.width;
    codec.height = video.height;
    codec.color_primaries = static_cast<AVColorPrimaries>(video.colour.primaries);
    codec.color_trc = static_cast<AVColorTransferCharacteristic>(video.colour.transfer);
    codec.color_space = static_cast<AVColorSpace>(video.colour.matrix);
    codec.color_range = static_cast<AVColorRange>(std::min<int>(video.colour.range, 2));
    codec.chroma_location = static_cast<AVChromaLocation>(std::min<int>(video.colour.chroma_location, 6));
    if (video.sample_aspect.num > 0)
      stream->sample_aspect_ratio = codec.sample_aspect_ratio = to_av(video.sample_aspect);
    if (video.frame_rate.num > 0) stream->avg_frame_rate = to_av(video.frame_rate);
    codec.extradata = static_cast<std::uint8_t*>(av_mallocz(head_.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (codec.extradata == nullptr) throw std::bad_alloc();
    std::copy(head_.begin(), head_.end(), codec.extradata);
    codec.extradata_size = static_cast<int>(head_.size());
    stream->time_base = {1, 1000};
    stream->disposition = AV_DISPOSITION_DEFAULT;
    if (video.field_order != 0) codec.field_order = video.field_order == 1 ? AV_FIELD_TT : AV_FIELD_BB;
  }

  void check(int code) {
    if (io_) io_->rethrow();
    if (code < 0) av_fail(code, "cannot write " + name_ + " (matroska)", ErrorKind::kUnsupported, log_.take());
  }

  std::string name_;
  FileSink file_;
  ErrorLog log_;
  std::optional<SideStreamCopy> side_streams_;
  bool joins_ = false;  ///< the tracks of several files
  std::unique_ptr<FileIo> io_;
  FormatPtr format_;
  StreamHeader header_;
  Rational base_;
  std::vector<std::uint8_t> head_;  ///< of the stream, before the first GOP
  std::vector<std::uint8_t> held_;  ///< the last GOP with the boxes after it, or the index
  std::int64_t held_us_ = 0;
  bool held_alone_ = false;
  bool ended_with_gop_ = false;
  std::vector<std::uint8_t> buffer_;  ///< of an incomplete box
  bool signature_seen_ = false;
  bool begun_ = false;
  bool ended_ = false;
  bool finished_ = false;
  std::int64_t end_us_ = 0;
  WantedFields wanted_;
  std::string lost_;  ///< tags and the like that Matroska cannot hold
};

}  // namespace

std::unique_ptr<StreamOutput> make_ffmpeg_matroska_output(const std::string& path, bool overwrite,
                                                          const SideStreamOptions& side_streams) {
  return std::make_unique<MatroskaOutput>(path, overwrite, side_streams);
}

}  // namespace trivelet::io
