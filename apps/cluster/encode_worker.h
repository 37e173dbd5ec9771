// The part of encode_together.h that every process runs, the first one too: it encodes the GOPs that are sent to it.
#pragma once

#include "apps/cluster/encode_together.h"

namespace trivelet::cli {

/// Encodes GOPs until no more follow. Reports failures to the first process.
void encode_gops(Processes& processes, WorkerSetup& setup);

}  // namespace trivelet::cli
