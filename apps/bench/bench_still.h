// The subcommands of "trivelet bench" that reproduce the papers' measurements.
#pragma once

#include "apps/cli/cli.h"

namespace trivelet::cli {

Action define_bench_dwt2d(Command& app, Common& common);
Action define_bench_dct2d(Command& app, Common& common);
Action define_bench_papers(Command& app, Common& common);

}  // namespace trivelet::cli
