// Messages of FFmpeg's libraries: about one coder or container, and by packet. Internal to io.
#pragma once

#include <array>
#include <cstdarg>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace trivelet::io {

/// The messages of level "error" about one coder or container. The libraries continue after them, so a message is the
/// reason if a call fails, and otherwise a warning to pass on. While a log exists, nothing is printed.
///
/// Set the `opaque` of the AVCodecContext or AVFormatContext to the log, which must live longer. A decoder's threads
/// work ahead, and their messages come when they come: begin_packet() tells of which packet they are.
class ErrorLog {
 public:
  static constexpr std::uint64_t kAll = UINT64_MAX;

  ErrorLog();
  ~ErrorLog();
  ErrorLog(const ErrorLog&) = delete;
  ErrorLog& operator=(const ErrorLog&) = delete;

  /// Counts a packet that is about to be sent. Returns the `opaque` that a decoder is to have then: its threads take it
  /// over with the packet, so that what they log is of this packet. What is logged with the log itself as `opaque` is
  /// of the next packet.
  void* begin_packet();
  /// Those that have begun; the first is number 1.
  std::uint64_t packets() const;

  /// The first message of packets up to `last`, in their order, since the last call; "" when there was none.
  std::string take(std::uint64_t last = kAll);
  /// Why a call failed for packet `first` or one behind: their first message, otherwise any. No message is left.
  std::string take_reason(std::uint64_t first);
  /// True if a decoder has concealed missing samples of packets up to `last` since the last call. Frames are not always
  /// marked: with several threads the mark of a frame that is shown later is lost.
  bool take_concealed(std::uint64_t last = kAll);
  /// What a decoder has said it lacks since the last forget(), "FMO is not implemented"; "" if it lacks nothing.
  std::string missing_feature();
  /// What was of packets up to `last` is of no interest.
  void forget(std::uint64_t last = kAll);

 private:
  static void on_message(void* context, int level, const char* format, va_list arguments);
  void add(std::uint64_t packet, std::string message, bool concealed);
  void add_missing(std::string feature) { missing_ = std::move(feature); }
  /// The number of the packet that `opaque` stands for; 0 if it is not of this log.
  std::uint64_t packet_of(const void* opaque) const;

  static constexpr std::size_t kMarks = 4096;     // more than there are threads
  static constexpr std::size_t kMostHeld = 4096;  // packets of which messages are kept; the first ones count
  std::array<char, kMarks> marks_ = {};           ///< addresses, one for each of the last packets
  std::uint64_t packets_ = 0;
  std::map<std::uint64_t, std::string> first_;  ///< message of a packet
  std::set<std::uint64_t> concealed_;
  std::string missing_;
};

/// What decoders complained of and decoded all the same. Any thread may use it.
class Complaints {
 public:
  /// `place`: of the frame near the damage.
  void add(const std::string& place, const std::string& message);
  /// One sentence; "" if there was nothing.
  std::string summary() const;

 private:
  mutable std::mutex mutex_;
  std::string first_;
  std::uint64_t count_ = 0;
};

}  // namespace trivelet::io
