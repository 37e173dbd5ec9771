// The look of --help: values and defaults readable, lines of at most 100 columns.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

namespace trivelet::cli {

std::shared_ptr<CLI::FormatterBase> make_help_formatter();

}  // namespace trivelet::cli
