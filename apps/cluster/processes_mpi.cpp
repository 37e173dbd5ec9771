// Processes over MPI, in a module that is loaded under mpirun only.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <mutex>

#include "apps/cluster/processes.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

// MPI counts in int: longer messages are sent in pieces, the first of which has the total length.
constexpr std::size_t kPiece = std::size_t{1} << 30;

class MpiProcesses final : public Processes {
 public:
  MpiProcesses() {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~MpiProcesses() override {
    for (Sent& s : taken_over_) MPI_Wait(&s.request, MPI_STATUS_IGNORE);
    MPI_Finalize();
  }
  MpiProcesses(const MpiProcesses&) = delete;
  MpiProcesses& operator=(const MpiProcesses&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }

 private:
  void send_away(int to, Channel channel, Message message) override {
    const int tag = static_cast<int>(channel);
    require(!message.object, ErrorKind::kInternal, "an object cannot be sent to another process");
    const std::vector<std::uint8_t>& bytes = message.bytes;
    std::vector<std::uint8_t> first(sizeof(std::uint64_t) + std::min(bytes.size(), kPiece));
    const std::uint64_t length = bytes.size();
    std::memcpy(first.data(), &length, sizeof length);
    std::copy_n(bytes.begin(), first.size() - sizeof length, first.begin() + sizeof length);
    const std::lock_guard lock(sending_.at(static_cast<std::size_t>(channel)));
    if (bytes.size() <= kMostTakenOver) return take_over(std::move(first), to, tag);
    send_piece(first.data(), first.size(), to, tag);
    for (std::size_t at = kPiece; at < bytes.size(); at += kPiece)
      send_piece(bytes.data() + at, std::min(kPiece, bytes.size() - at), to, tag);
  }

  std::optional<Message> receive_from_others(Channel channel) override {
    const int tag = static_cast<int>(channel);
    int there = 0;
    MPI_Message handle;
    MPI_Status status;
    MPI_Improbe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &handle, &status);
    if (!there) return std::nullopt;
    Message message;
    message.from = status.MPI_SOURCE;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    message.bytes.resize(static_cast<std::size_t>(count));
    MPI_Request request;
    MPI_Imrecv(message.bytes.data(), count, MPI_BYTE, &handle, &request);
    wait(request);
    std::uint64_t length = 0;
    require(message.bytes.size() >= sizeof length, ErrorKind::kInternal, "a message without its length");
    std::memcpy(&length, message.bytes.data(), sizeof length);
    message.bytes.erase(message.bytes.begin(), message.bytes.begin() + sizeof length);
    message.bytes.resize(static_cast<std::size_t>(length));
    for (std::size_t at = kPiece; at < message.bytes.size(); at += kPiece) {
      const std::size_t size = std::min(kPiece, message.bytes.size() - at);
      MPI_Irecv(message.bytes.data() + at, static_cast<int>(size), MPI_BYTE, message.from, tag, MPI_COMM_WORLD,
                &request);
      wait(request);
    }
    return message;
  }

  // MPI buffers short messages only.
  void take_over(std::vector<std::uint8_t> bytes, int to, int tag) {
    const std::lock_guard lock(taking_over_);
    taken_over_.remove_if([](Sent& s) {
      int done = 0;
      MPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    Sent& s = taken_over_.emplace_back();
    s.bytes = std::move(bytes);
    MPI_Isend(s.bytes.data(), static_cast<int>(s.bytes.size()), MPI_BYTE, to, tag, MPI_COMM_WORLD, &s.request);
  }
  static void send_piece(const std::uint8_t* data, std::size_t size, int to, int tag) {
    MPI_Request request;
    MPI_Isend(data, static_cast<int>(size), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request);
    wait(request);
  }
  static void wait(MPI_Request& request) {
    Backoff backoff;
    for (int done = 0;;) {
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done) return;
      backoff.wait();
    }
  }

  struct Sent {
    std::vector<std::uint8_t> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  int rank_ = 0, size_ = 1;
  std::array<std::mutex, kChannels> sending_;  ///< pieces of a message follow one another
  std::mutex taking_over_;
  std::list<Sent> taken_over_;  ///< and not received yet
};

std::unique_ptr<Processes> start() {
  int provided = MPI_THREAD_SINGLE;
  require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS, ErrorKind::kUnsupported,
          "MPI cannot be started");
  require(provided == MPI_THREAD_MULTIPLE, ErrorKind::kUnsupported,
          "this MPI does not support calls from several threads (MPI_THREAD_MULTIPLE); use another MPI");
  return std::make_unique<MpiProcesses>();
}

}  // namespace

const MpiAdapter trivelet_mpi = {start};

}  // namespace trivelet::cli
