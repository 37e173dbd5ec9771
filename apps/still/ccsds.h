// Subcommands of "trivelet ccsds" that have files of their own.
#pragma once

#include "apps/cli/cli.h"

namespace trivelet::cli {

Action define_ccsds_bench(CLI::App& app, Common& common);
Action define_ccsds_compare(CLI::App& app, Common& common);

}  // namespace trivelet::cli
