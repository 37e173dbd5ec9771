// Records which thread does what and when: named spans of time in the format of Chrome's about:tracing, which Perfetto
// reads as well. While recording is off, a span costs one look at a flag.
#pragma once

#include <cstdint>
#include <string>

namespace trivelet::trace {

/// Records spans from now until the process ends. Call it before starting the threads to record.
void start();
bool is_on();

/// Names the calling thread in the trace.
void name_thread(const char* name);

/// Records the time at which its scope was entered and left. `name` is a literal, because it is kept until the process
/// ends.
class Span {
 public:
  /// `number`: the GOP that the span works on; -1 = none.
  explicit Span(const char* name, std::int64_t number = -1);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  std::int64_t number_;
  double begin_;  ///< negative: not recorded
};

/// All spans that have ended so far, as the text of a JSON file.
std::string json();

}  // namespace trivelet::trace
