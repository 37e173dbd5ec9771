// The subcommands of "trivelet bench" that reproduce the papers' measurements.
#pragma once

#include "apps/cli/cli.h"

namespace trivelet::cli {

Action define_bench_dwt2d(CLI::App& app, Common& common);
Action define_bench_dct2d(CLI::App& app, Common& common);
Action define_bench_papers(CLI::App& app, Common& common);

}  // namespace trivelet::cli
