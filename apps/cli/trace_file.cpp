// --trace: starts the trace and writes it to a file at the end.

#include "apps/cli/trace_file.h"

#include "codec/threads/trace.h"

namespace trivelet::cli {

void add_trace_option(Command& app, Common& common) {
  app.add_option("--trace", common.trace,
                 "Write what every thread did when, for chrome://tracing or ui.perfetto.dev (JSON)")
      .type_name("FILE")
      .group("Common");
}

TraceFile::TraceFile(const Common& common) {
  if (common.trace.empty()) return;
  file_.emplace(common.trace, common.overwrite);
  trace::start();
  trace::name_thread("main");
}

void TraceFile::finish() {
  if (!file_) return;
  const std::string text = trace::json();
  file_->write(text.data(), text.size());
  file_->commit();
}

}  // namespace trivelet::cli
