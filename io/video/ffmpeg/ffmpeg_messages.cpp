// The libraries have one callback for all messages, which finds the log by the `opaque` of what a message is about.
#include "io/video/ffmpeg/ffmpeg_messages.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <vector>

#include "io/video/ffmpeg/ffmpeg_common.h"

namespace trivelet::io {

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

}  // namespace

void ErrorLog::on_message(void* context, int level, const char* format, va_list arguments) {
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
  for (ErrorLog* const log : logs) {
    const std::uint64_t packet = log->packet_of(opaque);
    if (packet == 0) continue;
    if (is_missing) return log->add_missing(feature + " is not implemented");
    return log->add(packet, std::move(message), concealed);
  }
}

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

void* ErrorLog::begin_packet() {
  const std::lock_guard lock(logs_mutex);
  return &marks_[++packets_ % kMarks];
}

std::uint64_t ErrorLog::packets() const {
  const std::lock_guard lock(logs_mutex);
  return packets_;
}

std::uint64_t ErrorLog::packet_of(const void* opaque) const {
  if (opaque == this) return packets_ + 1;
  const auto at = reinterpret_cast<std::uintptr_t>(opaque) - reinterpret_cast<std::uintptr_t>(marks_.data());
  if (at >= kMarks) return 0;
  const std::uint64_t ago = (packets_ % kMarks + kMarks - at) % kMarks;
  return packets_ - std::min(packets_, ago);
}

void ErrorLog::add(std::uint64_t packet, std::string message, bool concealed) {
  // A decoder that only complains and gives no pictures must not fill the memory.
  if (first_.size() < kMostHeld) first_.try_emplace(packet, std::move(message));
  if (concealed && concealed_.size() < kMostHeld) concealed_.insert(packet);
}

std::string ErrorLog::take(std::uint64_t last) {
  const std::lock_guard lock(logs_mutex);
  if (first_.empty() || first_.begin()->first > last) return {};
  std::string text = std::move(first_.begin()->second);
  first_.erase(first_.begin(), first_.upper_bound(last));
  return text;
}

std::string ErrorLog::take_reason(std::uint64_t first) {
  const std::lock_guard lock(logs_mutex);
  const auto at = first_.lower_bound(first);
  std::string text = at != first_.end() ? std::move(at->second) : !first_.empty() ? first_.begin()->second : "";
  first_.clear();
  return text;
}

bool ErrorLog::take_concealed(std::uint64_t last) {
  const std::lock_guard lock(logs_mutex);
  const auto end = concealed_.upper_bound(last);
  const bool any = end != concealed_.begin();
  concealed_.erase(concealed_.begin(), end);
  return any;
}

std::string ErrorLog::missing_feature() {
  const std::lock_guard lock(logs_mutex);
  return missing_;
}

void ErrorLog::forget(std::uint64_t last) {
  const std::lock_guard lock(logs_mutex);
  first_.erase(first_.begin(), first_.upper_bound(last));
  concealed_.erase(concealed_.begin(), concealed_.upper_bound(last));
  if (last == kAll) missing_.clear();
}

void Complaints::add(const std::string& place, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (count_++ == 0) first_ = "near " + place + ": " + message;
}

std::string Complaints::summary() const {
  const std::lock_guard lock(mutex_);
  if (count_ == 0) return {};
  return "FFmpeg complained " + (count_ == 1 ? "once, " : std::to_string(count_) + " times, first ") + first_ +
         "; it decoded what it read all the same";
}

}  // namespace trivelet::io
