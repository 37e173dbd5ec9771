// The messages between the processes of one command: their kinds, how their fields are written and read, and the
// reports that workers of every command send: failure and end.
//
// The first process is the leader, and every process, the first one too, runs a worker. A worker reports on one channel
// to the leader and gets orders on others. A worker that fails sends kFailed with the error. The leader then sends
// kStop to all workers, drops what still arrives, and throws the error when every worker has sent kEnded.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cluster/processes.h"
#include "codec/base/bytes.h"

namespace trivelet::cli {

/// The first byte of a message. In brackets: the fields behind it; "bytes" is the rest of the message.
enum class MessageKind : std::uint8_t {
  // Any command.
  kFailed,  ///< to the leader [kind of error, text]
  kEnded,   ///< to the leader: no message of this worker follows on the channel [what the command adds]
  kStop,    ///< another worker failed, or the leader needs no more
  kFinish,  ///< no order follows on the channel
  kRoom,    ///< the leader takes one more result
  // A job (job_call.h).
  kCall,      ///< begin [job, bytes]
  kFarewell,  ///< the leader has ended, or there is nothing to do
  kWarnings,  ///< of a process that ends [count, texts]
  // Frames and GOPs.
  kFrame,  ///< [bytes: sent_frames.h]
  kGop,    ///< to encode; its frames follow unless the worker reads them [number, first frame, closed, run, scene,
           ///< frames, bytes: seed]
  // Encoding (encode_together.h).
  kWant,      ///< the worker has more free slots [count]
  kRecord,    ///< a coded GOP [bytes, or an object]
  kErrors,    ///< measured [number, reals]
  kBudget,    ///< the bytes of a GOP with a byte target [number, bytes, slope]
  kMeasure,   ///< truncation points whose errors are to be measured [number, count, layers]
  kPosition,  ///< the position of a GOP in the output [number, position]
  // Films between key frames (kept_frames.h).
  kLook,        ///< rows of a decoded frame [stretch, bytes]
  kStretchEnd,  ///< [stretch]
  kLocate,      ///< requested frames [first, count]
  kHandOver,    ///< frames to be sent [process, number of the first in its GOP, stretch, first in it, count]
  // Decoding (gather.h, volume_share.h).
  kDecoded,  ///< a GOP; its frames follow [run, frames]
  kPiece,    ///< decoded slices of a volume [number, bytes]
  // Parts (parts.h).
  kProgress,   ///< frames done [count]
  kCount,      ///< summand of sum_before() [count]
  kSumBefore,  ///< its result [sum]
  kResult,     ///< result of a part [bytes]
  // Searching one picture together (apps/still/team.h).
  kCost,     ///< [value, index]
  kSamples,  ///< [bytes: 16-bit numbers]
};

/// Writes one message.
class MessageWriter {
 public:
  explicit MessageWriter(MessageKind kind) { out_.fixed(static_cast<std::uint8_t>(kind)); }
  MessageWriter& number(std::uint64_t v) { return out_.varint(v), *this; }
  MessageWriter& signed_number(std::int64_t v) { return out_.signed_varint(v), *this; }
  MessageWriter& real(double v) { return out_.real(v), *this; }
  MessageWriter& text(const std::string& s);
  MessageWriter& append(const void* data, std::size_t size);
  MessageWriter& append(const std::vector<std::uint8_t>& bytes) { return append(bytes.data(), bytes.size()); }

  /// The message is empty afterwards. `object`: for a process that shares memory with this one.
  void send(Processes& processes, int to, Channel channel, std::shared_ptr<void> object = nullptr) {
    processes.send(to, channel, std::move(out_.bytes), std::move(object));
  }
  /// To all processes from number `first` on.
  void send_to_all(Processes& processes, Channel channel, int first = 0) const {
    for (int i = first; i < processes.size(); ++i) processes.send(i, channel, out_.bytes);
  }

 private:
  ByteWriter out_;
};

/// Reads one message, field by field. Throws BadStream at its end.
class MessageReader {
 public:
  explicit MessageReader(Processes::Message message)
      : message_(std::move(message)), in_(fields()), kind_(static_cast<MessageKind>(message_.bytes.at(0))) {}
  MessageReader(const MessageReader&) = delete;
  MessageReader& operator=(const MessageReader&) = delete;

  MessageKind kind() const { return kind_; }
  int from() const { return message_.from; }
  std::uint64_t number();
  std::int64_t signed_number();
  double real();
  std::string text();
  /// Copies this many bytes.
  void read(void* data, std::size_t size);
  std::vector<std::uint8_t> rest() { return in_.rest(); }
  /// Starts again at the first field.
  void restart() { in_ = fields(); }
  std::size_t left() const { return in_.left(); }
  /// Null if none was sent.
  template <class T>
  std::shared_ptr<T> object() const {
    return std::static_pointer_cast<T>(message_.object);
  }
  /// Throws the error of a kFailed. `processes`: of the reader. The error names the process unless that is a thread of
  /// this one.
  [[noreturn]] void throw_error(const Processes& processes);

 private:
  ByteReader fields() const {
    return {message_.bytes.data() + 1, message_.bytes.size() - 1, "a message of another process"};
  }

  Processes::Message message_;
  ByteReader in_;
  MessageKind kind_;
};

/// Thrown in a worker that got kStop because of another one.
struct Stopped {};

/// In a worker: sends the error to the leader.
void report_failure(Processes& processes, Channel channel, const std::exception_ptr& error);
/// In a worker: runs `work` and reports its exception to the leader. Stopped is not a failure.
void run_and_report(Processes& processes, Channel channel, const std::function<void()>& work);

/// In the leader: the workers that have ended, and whether kStop was sent.
class WorkerStates {
 public:
  explicit WorkerStates(Processes& processes)
      : processes_(processes), ended_(static_cast<std::size_t>(processes.size())) {}

  bool ended(int worker) const { return ended_[static_cast<std::size_t>(worker)]; }
  bool all_ended() const;
  /// For a worker that sends no kEnded: the leader's own.
  void set_ended(int worker) { ended_[static_cast<std::size_t>(worker)] = true; }
  /// True if the caller has to handle the message. kEnded is recorded, and also left to the caller for its extra
  /// fields. kFailed is thrown. After kStop all messages but kEnded are dropped.
  bool take(MessageReader& message);
  /// Sends kStop to the workers from number `first` on.
  void stop(Channel channel, int first = 0);
  bool stopped() const { return stopped_; }
  /// Runs `work`, the leader's own, then `receive` until all workers have ended. `receive` handles what has arrived,
  /// and returns true if there was anything. If one of them throws, the workers are stopped and awaited before the
  /// exception is thrown again.
  void lead(const std::function<void()>& work, const std::function<bool()>& receive, Channel stop_channel);

 private:
  void wait(const std::function<bool()>& receive) const;

  Processes& processes_;
  std::vector<bool> ended_;
  bool stopped_ = false;
};

}  // namespace trivelet::cli
