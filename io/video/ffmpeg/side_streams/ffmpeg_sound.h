// Sound from one codec to another: decoded, resampled to what the other takes, encoded. Internal to io.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

extern "C" {
#include <libavutil/audio_fifo.h>
#include <libswresample/swresample.h>
}

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

/// What to add to the times of a track that is written, in its time base. Opus is decoded with samples before its first
/// one, the codec delay, which readers of Matroska take off the times of packets. FFmpeg's muxer adds it first in some
/// versions and does not in others (5.1): each copy of a track would be shifted by it.
std::int64_t delay_to_add(const AVFormatContext& output, const AVStream& track);

class SoundCoder {
 public:
  /// Gets encoded packets, with times in units of encoder().time_base.
  using Send = std::function<void(AVPacket&)>;

  /// `codec`: "opus" or "flac". `name` begins messages; throws Unsupported where FFmpeg lacks a coder.
  SoundCoder(const AVStream& from, const std::string& codec, bool global_header, std::string name);
  const AVCodecContext& encoder() const { return *encoder_; }
  /// A packet of the stream. What cannot be decoded is silence.
  void add(const AVPacket* packet, const Send& send);
  /// Sends what is left.
  void finish(const Send& send);

 private:
  struct FreeFifo {
    void operator()(AVAudioFifo* p) const { av_audio_fifo_free(p); }
  };
  struct FreeResampler {
    void operator()(SwrContext* p) const { swr_free(&p); }
  };

  void open_encoder(const std::string& codec, bool global_header);
  void resample(const AVFrame* frame);
  void encode(bool all, const Send& send);
  void receive(const Send& send);

  std::string name_;
  ErrorLog log_;
  CodecPtr decoder_;
  CodecPtr encoder_;
  std::unique_ptr<SwrContext, FreeResampler> resampler_;
  std::unique_ptr<AVAudioFifo, FreeFifo> fifo_;
  FramePtr frame_;
  PacketPtr packet_;
  AVRational base_ = {1, 1};                ///< of what comes in
  std::int64_t next_pts_ = AV_NOPTS_VALUE;  ///< of the first sample in the queue
};

}  // namespace trivelet::io
