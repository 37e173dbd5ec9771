// The processes that mpirun or srun started, and messages between them. MPI is in a module of the program's own, which is
// loaded only then: starting it costs a second, and a plain run needs none of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trivelet::vstc {
class Team;
}

namespace trivelet::cli {

class Processes {
 public:
  struct Message {
    int from = 0;
    std::vector<std::uint8_t> bytes;
  };
  virtual ~Processes() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Any thread, to any process, this one too. Returns when the message is taken over or received. Those of one channel
  /// arrive in their order.
  virtual void send(int to, int channel, const std::vector<std::uint8_t>& bytes) = 0;
  /// What came in, if anything did; one thread asks for a channel at a time.
  virtual std::optional<Message> try_receive(int channel) = 0;

  Message receive(int channel);
};

/// Sleeps while there is nothing to do, the longer the longer: processes share cores, and MPI itself would spin.
class Patience {
 public:
  void wait();
  void reset() { pause_ = kShortest; }

 private:
  static constexpr std::chrono::microseconds kShortest{20}, kLongest{500};
  std::chrono::microseconds pause_ = kShortest;
};

/// This process among those that were started together, and among those of its host, as the launcher tells; alone: 0 of 1.
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

/// This process alone, whose threads send each other messages.
std::unique_ptr<Processes> one_process();

/// What the module with MPI gives; MPI is started once.
struct MpiAdapter {
  std::unique_ptr<vstc::Team> (*start_team)();
  std::unique_ptr<Processes> (*start_processes)();
};
extern "C" const MpiAdapter trivelet_mpi;
/// Null when there is one process only. Throws like start_processes().
const MpiAdapter* mpi_adapter(const std::string& user);

}  // namespace trivelet::cli
