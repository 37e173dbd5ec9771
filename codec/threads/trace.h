// Records which thread does what and when: named spans of time in the format of Chrome's about:tracing, which Perfetto
// reads as well. While it is off, a span costs one look at a flag.
#pragma once

#include <cstdint>
#include <string>

namespace trivelet::trace {

/// Records spans from now until the process ends. Call it before the threads begin that shall be seen.
void start();
bool is_on();

/// Names the calling thread in the trace.
void name_thread(const char* name);

/// Records when its scope was entered and left. `name` is a literal: it must live as long as the process.
class Span {
 public:
  /// `number`: the GOP, to tell spans apart; -1 = none.
  explicit Span(const char* name, std::int64_t number = -1);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  std::int64_t number_;
  double begin_;  ///< < 0 = not recorded
};

/// All spans that have ended so far, as the text of a JSON file.
std::string json();

}  // namespace trivelet::trace
