// The processes that mpirun or srun started, and messages between them. MPI is in a module of the program's own, which
// is loaded only then: starting it costs a second, and a plain run needs none of it. Threads of one process, each with
// a device of its own, work together by the same messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace trivelet::cli {

/// A queue of messages from one process to another: those of a channel arrive in their order, and one thread at a time
/// receives them. Commands that never run at the same time use the same ones.
enum class Channel : std::uint8_t {
  kCalls,      ///< to the others: what to do
  kResults,    ///< to the leader: what a worker did
  kTasks,      ///< to a worker: what to do next
  kAnswers,    ///< to a worker: what its results were asked for
  kPositions,  ///< to a worker: where it writes
  kLooks,      ///< to the leader: rows of decoded frames
  kRequests,   ///< to who has frames
  kFrames,     ///< to who asked for frames
  kWarnings,   ///< to the leader, at the end: what a worker had to warn of
};
inline constexpr std::size_t kChannels = 9;

class Processes {
 public:
  struct Message {
    int from = 0;
    std::vector<std::uint8_t> bytes;
    std::shared_ptr<void> object{};  ///< of who shares memory with the sender
  };
  static constexpr std::size_t kMostTakenOver = 1 << 16;
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Whether messages to it may have an object, which is handed over and not copied.
  virtual bool shares_memory(int with) const { return with == rank(); }
  /// Any thread, to any process, this one too. Returns at once when the message has at most kMostTakenOver bytes, or
  /// goes to a thread of this process; else when it is received.
  void send(int to, Channel channel, std::vector<std::uint8_t> bytes, std::shared_ptr<void> object = nullptr);
  /// What came in, if anything did; one thread asks for a channel at a time.
  std::optional<Message> try_receive(Channel channel);

  Message receive(Channel channel);

  /// What a thread does first that works for this one, if anything: it goes where its device is near.
  std::function<void()> at_work;

 protected:
  virtual void send_away(int to, Channel channel, Message message) = 0;
  virtual std::optional<Message> receive_from_others(Channel channel) = 0;
  /// A message that is there already.
  void keep(Channel channel, Message message);

 private:
  std::mutex mutex_;
  std::map<Channel, std::deque<Message>> kept_;  ///< by channel
};

/// Waits while there is nothing to do, the longer it lasts the longer: processes share cores, and MPI itself would
/// spin.
class Backoff {
 public:
  /// `yields`: so many times wait() only lets others run, for answers that come within microseconds.
  explicit Backoff(int yields = 0) : yields_(yields), left_(yields) {}
  void wait();
  void reset() {
    pause_ = kShortest;
    left_ = yields_;
  }

 private:
  static constexpr std::chrono::microseconds kShortest{20}, kLongest{500};
  std::chrono::microseconds pause_ = kShortest;
  int yields_, left_;
};

/// This process among those that were started together, and among those of its host, as the launcher tells; alone: 0 of
/// 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};
Place place_of_process();

/// Null when there is one process only. Throws Unsupported when there are several but this build has no MPI: every
/// process would do the whole work and write the same file. `user`: who wants it.
std::unique_ptr<Processes> start_processes(const std::string& user);

/// So many threads of this process that work as processes do; each uses one of these.
std::vector<std::unique_ptr<Processes>> thread_processes(int count);

/// What the module with MPI gives; MPI is started once.
struct MpiAdapter {
  std::unique_ptr<Processes> (*start_processes)();
};
extern "C" const MpiAdapter trivelet_mpi;

}  // namespace trivelet::cli
