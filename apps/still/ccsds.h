// Subcommands of "trivelet ccsds" that are in other files.
#pragma once

#include "apps/cli/cli.h"

namespace trivelet::cli {

Action define_ccsds_bench(Command& app, Common& common);
Action define_ccsds_compare(Command& app, Common& common);

}  // namespace trivelet::cli
