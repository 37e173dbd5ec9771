// Shared by the files that use FFmpeg: objects and errors.

#include "io/video/ffmpeg/ffmpeg_common.h"

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

namespace {

std::string av_text(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text = {};
  av_strerror(code, text.data(), text.size());
  return text.data();
}

}  // namespace

void av_fail(int code, const std::string& what, ErrorKind kind, const std::string& reason) {
  switch (code) {
    case AVERROR(ENOMEM): throw std::bad_alloc();
    case AVERROR(ENOENT):
    case AVERROR(EACCES):
    case AVERROR(EPERM):
    case AVERROR(ENOSPC):
    case AVERROR(EPIPE): kind = ErrorKind::kIo; break;
    case AVERROR_DECODER_NOT_FOUND:
    case AVERROR_ENCODER_NOT_FOUND:
    case AVERROR_DEMUXER_NOT_FOUND:
    case AVERROR_MUXER_NOT_FOUND:
    case AVERROR_PROTOCOL_NOT_FOUND:
    case AVERROR_PATCHWELCOME:
    case AVERROR(ENOSYS): kind = ErrorKind::kUnsupported; break;
    default: break;
  }
  fail(kind, what + ": " + (reason.empty() ? av_text(code) : reason));
}

const FfmpegAdapter trivelet_ffmpeg = {make_ffmpeg_reader,    make_ffmpeg_writer,    make_ffmpeg_matroska_output,
                                       make_ffmpeg_converter, nearest_ffmpeg_format, ffmpeg_output_holds,
                                       ffmpeg_writes_picture};

}  // namespace trivelet::io
