// The pictures of one video stream, as FFmpeg decodes them: on the CPU, or on a GPU, in whose memory they then are.
// Internal to io.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_bytes.h"
#include "io/video/ffmpeg/ffmpeg_common.h"
#include "trivelet/device_pictures.h"

namespace trivelet::io {

struct FreeBuffer {
  void operator()(AVBufferRef* p) const { av_buffer_unref(&p); }
};
using BufferPtr = std::unique_ptr<AVBufferRef, FreeBuffer>;

/// A device on which FFmpeg decodes, in a separate context: decoders in the CUDA runtime's context leave too few queues
/// for streams, which then wait for each other. Throws Unsupported if there is none.
BufferPtr open_cuda_device(int number);

/// Colours as a container states them.
struct ContainerColours {
  AVColorPrimaries primaries = AVCOL_PRI_UNSPECIFIED;
  AVColorTransferCharacteristic transfer = AVCOL_TRC_UNSPECIFIED;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
};

class PictureDecoder {
 public:
  /// `threads` decode, on `device` if there is one; the other arguments as FfmpegAdapter::make_reader() has them.
  PictureDecoder(const std::string& path, Source source, const std::string& demuxer, const ReaderOptions& options,
                 int threads, AVBufferRef* device = nullptr, std::shared_ptr<Complaints> complaints = nullptr);

  AVFormatContext& input() const { return *input_; }
  AVStream& stream() const { return *stream_; }
  const std::string& name() const { return name_; }
  const ContainerColours& container_colours() const { return container_colours_; }
  bool reads_file() const { return source_ != nullptr && source_->size().has_value(); }
  /// "" is detected; otherwise FFmpeg reads the file itself.
  bool has_source() const { return io_ != nullptr; }

  /// The next picture, valid until the next call; null at the end. Throws for damage unless it is to be recovered from:
  /// data that cannot be read or decoded, and pictures whose samples FFmpeg has concealed. Other messages of its
  /// decoders go to `complaints`.
  AVFrame* next();
  /// A key frame at which decoding can start: its time stamp in the container's index, and when its picture is shown.
  struct Entry {
    std::int64_t timestamp = 0;
    std::int64_t pts = 0;
  };
  /// Key frames in order, at least `ticks` of the time base apart; the first is the beginning. The input is then at the
  /// beginning. Empty if there is no index, or if it has fewer than two.
  std::vector<Entry> entries(std::int64_t ticks);
  /// The next picture is the first that is shown at `entry` or later.
  void seek(const Entry& entry);

  /// Pictures that are shown before the first that was delivered, and could not be decoded: those that they need are
  /// not in the file. FFmpeg leaves them out without an error. 0 where packets do not say when they are shown.
  std::uint64_t left_out_at_start() const { return left_out_; }
  /// With ReaderOptions::recover: what is damaged, and what is missing at the beginning; "" if nothing is.
  std::string damage() const;
  std::uint64_t missing_bytes() const { return missing_bytes_; }

  static bool on_device(const AVFrame& frame);
  /// The format of the samples, wherever they are in memory.
  AVPixelFormat sample_format(const AVFrame& frame) const;

 private:
  const AVInputFormat* probe_format(const std::string& url);
  void open_input(const std::string& path, const std::string& demuxer, const ReaderOptions& options);
  void open_decoder(int threads, AVBufferRef* device);
  bool go_on_behind_damage();
  bool begins_behind_damage();
  void refuse_misread() const;
  bool has_all_samples() const;
  void note_sent(const AVPacket& packet);
  void send_packet();
  bool read_packet();
  int read_any_packet();
  int send(AVPacket& packet);
  std::uint64_t packet_of(const AVFrame& frame) const;
  std::uint64_t first_undecoded() const;
  void check_sent(int code);
  void check_damage(int code, std::uint64_t last, std::uint64_t first = 0);
  std::string cut_short() const;
  std::string place() const;

  std::string name_;
  Source source_;
  ErrorLog log_;
  std::unique_ptr<SourceIo> io_;
  InputPtr input_;
  AVStream* stream_ = nullptr;
  ContainerColours container_colours_;
  CodecPtr codec_;
  FramePtr frame_;
  PacketPtr packet_;
  bool has_packet_ = false;                     ///< packet_ is still to be sent
  AVPixelFormat four_bytes_ = AV_PIX_FMT_NONE;  ///< see format_of_four_bytes(), of the last packet
  bool recover_ = false;
  bool recovered_ = false;          ///< and nothing intact is left
  std::deque<PacketPtr> held_;      ///< with recover_: those that were sent before the first picture was delivered
  std::deque<PacketPtr> again_;     ///< of these, those to be sent again
  std::int64_t sent_at_ = 0;        ///< when the picture of the last packet is shown
  std::int64_t damaged_at_ = 0;     ///< with damage_: the same of that packet
  std::string lost_;                ///< why the beginning is missing; "" = it is not
  double lost_seconds_ = 0;         ///< when the first picture behind is shown
  std::int64_t begins_at_ = 0;      ///< with lost_: when the key frame is shown with which it goes on
  std::exception_ptr unsupported_;  ///< what the first packets cannot be decoded for, unless it is damage
  std::uint64_t missing_bytes_ = 0;
  std::string damage_;
  std::shared_ptr<Complaints> complaints_;
  std::string complaint_;            ///< since the last frame: a thread logs the reason before the call that fails
  std::uint64_t frames_ = 0;         ///< that were delivered, since `begin_`
  std::optional<Entry> begin_;       ///< of a seek
  std::int64_t latest_ = INT64_MIN;  ///< when the last picture of the packets that the decoder may hold is shown
  std::vector<std::int64_t> sent_;   ///< when pictures are shown that were sent before the first was delivered
  std::uint64_t left_out_ = 0;
  bool before_begin_ = false;  ///< pictures that need others before `begin_` are still to be passed over
  bool passes_over_ = false;   ///< and the decoder has some
  std::uint64_t passed_ = 0;   ///< packets that were sent before the seek
  bool is_draining_ = false;
};

/// A picture on a device as it lies there, for frames of `format`. Throws Unsupported for layouts that hold another.
DevicePicture device_picture(const AVFrame& frame, const PixelFormat& format, const std::string& name);

}  // namespace trivelet::io
