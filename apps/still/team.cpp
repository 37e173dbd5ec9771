#include "apps/still/team.h"

#include <cstdlib>

#include "apps/cli/modules.h"
#include "trivelet/error.h"

namespace trivelet::cli {

std::unique_ptr<vstc::Team> make_team() {
  // Only under mpirun: without it starting MPI costs a second and needs what a plain run does not.
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (!size && !std::getenv("PMI_SIZE") && !std::getenv("PMIX_RANK")) return nullptr;
  const auto* mpi = static_cast<const MpiAdapter*>(load_module("mpi", "still encode"));
  require(mpi || !size || std::atoi(size) <= 1, ErrorKind::kUnsupported,
          "started by mpirun, but this build has no MPI; configure with TRIVELET_MPI=ON");
  return mpi ? mpi->start() : nullptr;
}

}  // namespace trivelet::cli
