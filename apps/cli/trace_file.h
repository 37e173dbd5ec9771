// --trace: a timeline of all threads.
#pragma once

#include <optional>

#include "apps/cli/cli.h"
#include "trivelet/streams.h"

namespace trivelet::cli {

void add_trace_option(Command& app, Common& common);

/// Keeps spans of time from its making on, if --trace was given, and writes them.
class TraceFile {
 public:
  explicit TraceFile(const Common& common);
  void finish();

 private:
  std::optional<FileSink> file_;
};

}  // namespace trivelet::cli
