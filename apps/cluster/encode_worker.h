// What every process does under encode_together.h, the first one too: it encodes the GOPs that are sent to it.
#pragma once

#include "apps/cluster/encode_together.h"

namespace trivelet::cli {

/// Encodes GOPs until no more follow. Reports what goes wrong to the first process.
void encode_gops(Processes& processes, WorkerSetup& setup);

}  // namespace trivelet::cli
