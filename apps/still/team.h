// The processes that mpirun started, as a vstc::Team.
#pragma once

#include <memory>

#include "codec/still/vstc/vstc.h"

namespace trivelet::cli {

/// Null when the program was not started by mpirun. Throws Unsupported when it was but this build has no MPI: every
/// process would do the whole work and write the same file.
std::unique_ptr<vstc::Team> make_team();

}  // namespace trivelet::cli
