#include "io/ffmpeg_common.h"

#include <array>
#include <cerrno>
#include <new>

namespace trivelet::io {

FramePtr make_frame() {
  FramePtr frame(av_frame_alloc());
  if (!frame) throw std::bad_alloc();
  return frame;
}

PacketPtr make_packet() {
  PacketPtr packet(av_packet_alloc());
  if (!packet) throw std::bad_alloc();
  return packet;
}

std::string av_text(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text = {};
  av_strerror(code, text.data(), text.size());
  return text.data();
}

void av_fail(int code, const std::string& what, ErrorKind kind) {
  switch (code) {
    case AVERROR(ENOENT):
    case AVERROR(EACCES):
    case AVERROR(EPERM):
    case AVERROR(EIO):
    case AVERROR(ENOSPC):
    case AVERROR(EPIPE):
    case AVERROR(ENOMEM): kind = ErrorKind::kIo; break;
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_ENCODER_NOT_FOUND:
    case AVERROR_DEMUXER_NOT_FOUND:
    case AVERROR_MUXER_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
    case AVERROR_PATCHWELCOME:
    case AVERROR(ENOSYS): kind = ErrorKind::kUnsupported; break;
    default: break;
  }
  fail(kind, what + ": " + av_text(code));
}

void silence_ffmpeg() { av_log_set_level(AV_LOG_FATAL); }

}  // namespace trivelet::io
