// vstc::Team over MPI. Compiled when MPI is found, into a module that is loaded under mpirun only.
#include <mpi.h>

#include <cstdlib>
#include <exception>
#include <list>

#include "apps/cluster/processes.h"
#include "apps/still/team.h"
#include "trivelet/error.h"

namespace trivelet::cli {

namespace {

class MpiTeam final : public vstc::Team {
 public:
  /// Takes over `comm`; `owns_mpi`: the whole, which ends MPI with itself.
  MpiTeam(MPI_Comm comm, bool owns_mpi) : comm_(comm), owns_mpi_(owns_mpi) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
    // Splitting is collective and slow, so all levels are made at once.
    if (size_ > 1) {
      MPI_Comm half = MPI_COMM_NULL;
      MPI_Comm_split(comm_, rank_ < size_ / 2 ? 0 : 1, rank_, &half);
      half_ = std::make_unique<MpiTeam>(half, false);
    }
  }
  ~MpiTeam() override {
    for (Message& m : sent_) MPI_Wait(&m.request, MPI_STATUS_IGNORE);
    half_.reset();
    if (owns_mpi_) {
      // An exception on the way out: the others may wait for us, so they are ended too.
      if (std::uncaught_exceptions() > 0) MPI_Abort(comm_, EXIT_FAILURE);
      MPI_Finalize();
    } else {
      MPI_Comm_free(&comm_);
    }
  }
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  Team& half() override { return *half_; }

  std::pair<std::int64_t, int> minimum(std::int64_t value, int index) override {
    // MPI_LONG_INT is {long, int}; MINLOC takes the lowest index among equal values.
    static_assert(sizeof(long) == sizeof(std::int64_t));
    struct {
      long value;
      int index;
    } mine{static_cast<long>(value), index}, least{};
    MPI_Allreduce(&mine, &least, 1, MPI_LONG_INT, MPI_MINLOC, comm_);
    return {least.value, least.index};
  }
  void broadcast(std::vector<std::int16_t>& data, int root) override {
    auto count = static_cast<int>(data.size());
    MPI_Bcast(&count, 1, MPI_INT, root, comm_);
    data.resize(static_cast<std::size_t>(count));
    MPI_Bcast(data.data(), count, MPI_INT16_T, root, comm_);
  }
  void send(std::vector<std::int16_t> data, int to) override {
    sent_.remove_if([](Message& m) {
      int done = 0;
      MPI_Test(&m.request, &done, MPI_STATUS_IGNORE);
      return done != 0;
    });
    Message& m = sent_.emplace_back();
    m.data = std::move(data);
    MPI_Isend(m.data.data(), static_cast<int>(m.data.size()), MPI_INT16_T, to, 0, comm_, &m.request);
  }
  std::vector<std::int16_t> receive(int from) override {
    MPI_Status status;
    MPI_Probe(from, 0, comm_, &status);
    int count = 0;
    MPI_Get_count(&status, MPI_INT16_T, &count);
    std::vector<std::int16_t> data(static_cast<std::size_t>(count));
    MPI_Recv(data.data(), count, MPI_INT16_T, from, 0, comm_, MPI_STATUS_IGNORE);
    return data;
  }

 private:
  struct Message {
    std::vector<std::int16_t> data;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  MPI_Comm comm_;
  bool owns_mpi_;
  int rank_ = 0, size_ = 1;
  std::unique_ptr<MpiTeam> half_;
  std::list<Message> sent_;
};

}  // namespace

std::unique_ptr<vstc::Team> start_mpi_team() {
  int provided = 0;
  require(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS, ErrorKind::kUnsupported,
          "MPI cannot be started");
  return std::make_unique<MpiTeam>(MPI_COMM_WORLD, true);
}

}  // namespace trivelet::cli
