// The processes that mpirun or srun started, and messages between them. MPI is in a module that is loaded only then,
// because it takes a second to start and a plain run does not need it. Threads of one process, each with a device of
// its own, use the same messages.
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

/// A queue of messages from one process to another. Messages of a channel arrive in order, and one thread at a time
/// receives them. Commands that never run at the same time share channels.
enum class Channel : std::uint8_t {
  kCalls,      ///< to the others: the job
  kResults,    ///< to the leader: results of a worker
  kTasks,      ///< to a worker: its next tasks
  kAnswers,    ///< to a worker: requests for its results
  kPositions,  ///< to a worker: positions at which it writes
  kLooks,      ///< to the leader: rows of decoded frames
  kRequests,   ///< to a process that has frames
  kFrames,     ///< to a process that requested frames
  kWarnings,   ///< to the leader, at the end: the warnings of a worker
};
inline constexpr std::size_t kChannels = 9;

class Processes {
 public:
  struct Message {
    int from = 0;
    std::vector<std::uint8_t> bytes;
    std::shared_ptr<void> object{};  ///< only from a process that shares memory
  };
  static constexpr std::size_t kMostTakenOver = 1 << 16;
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// True if messages to it may have an object, which is handed over without a copy.
  virtual bool shares_memory(int with) const { return with == rank(); }
  /// For any thread, to any process, this one too. Returns at once if the message has at most kMostTakenOver bytes, or
  /// goes to a thread of this process; otherwise when it is received.
  void send(int to, Channel channel, std::vector<std::uint8_t> bytes, std::shared_ptr<void> object = nullptr);
  /// A message that has arrived, if any. One thread at a time receives on a channel.
  std::optional<Message> try_receive(Channel channel);

  Message receive(Channel channel);

  /// Run by each new thread that works for this process: moves it to cores near its device.
  std::function<void()> at_work;

 protected:
  virtual void send_away(int to, Channel channel, Message message) = 0;
  virtual std::optional<Message> receive_from_others(Channel channel) = 0;
  /// A message that has arrived.
  void keep(Channel channel, Message message);

 private:
  std::mutex mutex_;
  std::map<Channel, std::deque<Message>> kept_;  ///< by channel
};

/// Backoff: each wait is longer than the one before. Processes share cores, and MPI itself would spin.
class Backoff {
 public:
  /// `yields`: the number of waits that only yield, for answers that come within microseconds.
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

/// The number of this process among all, and among those of its host, as the launcher reports; alone: 0 of 1.
struct Place {
  int rank = 0;
  int size = 1;
  int local_rank = 0;
  int local_size = 1;
};
Place place_of_process();

/// Null if there is one process only. Throws Unsupported if there are several but this build has no MPI: every process
/// would do the whole work and write the same file. `user`: the command that needs them.
std::unique_ptr<Processes> start_processes(const std::string& user);

/// `count` threads of this process that work as processes do; each uses one of these.
std::vector<std::unique_ptr<Processes>> thread_processes(int count);

/// The processes of the MPI module; MPI is started once.
struct MpiAdapter {
  std::unique_ptr<Processes> (*start_processes)();
};
extern "C" const MpiAdapter trivelet_mpi;

}  // namespace trivelet::cli
