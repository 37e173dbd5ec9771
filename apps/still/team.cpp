#include "apps/still/team.h"

#include "apps/cluster/processes.h"

namespace trivelet::cli {

std::unique_ptr<vstc::Team> make_team() {
  const MpiAdapter* mpi = mpi_adapter("still encode");
  return mpi ? mpi->start_team() : nullptr;
}

}  // namespace trivelet::cli
