// Shared by the files that use FFmpeg: objects, errors, messages, times and pixel formats.

#include "io/video/ffmpeg/ffmpeg_common.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

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

std::mutex logs_mutex;
std::vector<ErrorLog*> logs;

/// The `opaque` of the coder or container that a message is about; its parts know their parent.
void* opaque_of(void* context) {
  while (context != nullptr) {
    const AVClass* about = *static_cast<const AVClass**>(context);
    if (about == nullptr) return nullptr;
    if (about == avcodec_get_class()) return static_cast<AVCodecContext*>(context)->opaque;
    if (about == avformat_get_class()) return static_cast<AVFormatContext*>(context)->opaque;
    if (about->parent_log_context_offset == 0) return nullptr;
    context = *reinterpret_cast<void**>(static_cast<char*>(context) + about->parent_log_context_offset);
  }
  return nullptr;
}

void on_message(void* context, int level, const char* format, va_list arguments) {
  // libavcodec's part that conceals says so as information. Where a checksum is wrong, FFV1 takes the picture before.
  // The decoder of JPEG leaves the rest of a picture empty behind what it cannot read, and where bytes are missing.
  const auto begins = [format](const char* text) { return std::strncmp(format, text, std::strlen(text)) == 0; };
  const bool concealed =
      level <= AV_LOG_INFO && (begins("concealing ") || begins("error y=%d x=%d") || begins("overread %d") ||
                               std::strstr(format, "CRC mismatch") != nullptr);
  // avpriv_report_missing_feature() warns in two messages, of which the first is the name.
  thread_local std::string feature;
  const bool is_missing = begins(" is not implemented. Update your FFmpeg");
  if (level > AV_LOG_WARNING && !concealed) return;
  std::array<char, 256> text = {};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  std::string message = text.data();
  while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) message.pop_back();
  if (!is_missing) feature = message;
  if (level > AV_LOG_ERROR && !concealed && !is_missing) return;
  void* const opaque = opaque_of(context);
  const std::lock_guard lock(logs_mutex);
  // Other contexts may have an opaque of another kind, so only registered logs are used.
  const auto log = std::find(logs.begin(), logs.end(), opaque);
  if (log == logs.end()) return;
  if (is_missing)
    (*log)->add_missing(feature + " is not implemented");
  else
    (*log)->add(std::move(message), concealed);
}

std::string av_text(int code) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text = {};
  av_strerror(code, text.data(), text.size());
  return text.data();
}

}  // namespace

ErrorLog::ErrorLog() {
  const std::lock_guard lock(logs_mutex);
  logs.push_back(this);
  av_log_set_callback(on_message);
}

ErrorLog::~ErrorLog() {
  const std::lock_guard lock(logs_mutex);
  logs.erase(std::find(logs.begin(), logs.end(), this));
  if (logs.empty()) av_log_set_callback(av_log_default_callback);
}

std::string ErrorLog::take() {
  const std::lock_guard lock(logs_mutex);
  return std::exchange(first_, {});
}

bool ErrorLog::take_concealed() {
  const std::lock_guard lock(logs_mutex);
  return std::exchange(concealed_, false);
}

std::string ErrorLog::missing_feature() {
  const std::lock_guard lock(logs_mutex);
  return missing_;
}

void ErrorLog::forget() {
  const std::lock_guard lock(logs_mutex);
  first_.clear();
  missing_.clear();
  concealed_ = false;
}

void ErrorLog::add(std::string message, bool concealed) {
  if (first_.empty()) first_ = std::move(message);
  concealed_ = concealed_ || concealed;
}

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
