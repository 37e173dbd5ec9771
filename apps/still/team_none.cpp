// Builds without MPI.
#include <cstdlib>

#include "apps/still/team.h"
#include "trivelet/error.h"

namespace trivelet::cli {

std::unique_ptr<vstc::Team> make_team() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  require(!size || std::atoi(size) <= 1, ErrorKind::kUnsupported,
          "started by mpirun, but this build has no MPI; configure with TRIVELET_MPI=ON");
  return nullptr;
}

const char* have_mpi() { return "no"; }

}  // namespace trivelet::cli
