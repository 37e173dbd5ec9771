// What which thread does when, for a picture of the pipeline: spans of time with a name, in the format of Chrome's
// about:tracing (Perfetto reads it, too). Costs a look at a flag per span unless it is switched on.
#pragma once

#include <cstdint>
#include <string>

namespace trivelet::trace {

/// From now on spans are kept, until the process ends. Before the threads that are to be seen begin.
void start();
bool is_on();

/// What the thread that calls is called in the picture.
void name_thread(const char* name);

/// Keeps when its scope was entered and left. `name` must live as long as the process: a literal.
class Span {
 public:
  /// `number`: of the GOP, to tell spans apart; -1 = none.
  explicit Span(const char* name, std::int64_t number = -1);
  ~Span();
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  std::int64_t number_;
  double begin_;  ///< < 0 = not kept
};

/// All spans that ended so far, as the text of a JSON file.
std::string json();

}  // namespace trivelet::trace
