// Runs the work of an untrusted library in a child process, which may fail, crash, hang or exhaust its memory; the
// parent sees an Error. Internal to io.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace trivelet::io {

/// Reads what the child writes, in order. The child prints nothing: its standard output and error are closed.
class ChildProcess {
 public:
  using Write = std::function<void(const std::byte*, std::size_t)>;
  /// `work` runs in the child on a copy of this process's memory and returns whether it succeeded; it must not start
  /// threads. `memory`: the most bytes beyond that copy. `seconds`: the most processor time.
  ChildProcess(const std::function<bool(const Write&)>& work, std::uint64_t memory, std::uint64_t seconds);
  /// Ends the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads up to `size` bytes, at least one; 0 at the end.
  std::size_t read(std::byte* data, std::size_t size);
  /// Waits for the end. Empty if the work succeeded, otherwise the reason, phrased as the end of a sentence. Throws
  /// std::bad_alloc if the system refused memory before `memory` bytes were taken.
  std::string wait();

 private:
  int end();

  pid_t child_ = -1;
  int input_ = -1;
  std::uint64_t memory_;
  bool is_limited_ = false;  ///< the system gives less than `memory_`
  std::uint64_t seconds_;
};

}  // namespace trivelet::io
