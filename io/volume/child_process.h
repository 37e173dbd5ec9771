// Work of a library that is not trusted with the process: in a child, which may fail, crash, hang or take too much
// memory without more harm than an Error. Internal to io.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace trivelet::io {

/// What the child writes is read here, in order. The child prints nothing: its standard output and error are closed.
class ChildProcess {
 public:
  using Write = std::function<void(const std::byte*, std::size_t)>;
  /// `work` runs in the child, which has a copy of this process's memory, and says whether it succeeded. `memory`:
  /// bytes that it may take beyond that copy. `seconds`: of processor time. `work` starts no threads.
  ChildProcess(const std::function<bool(const Write&)>& work, std::uint64_t memory, std::uint64_t seconds);
  /// Ends the child.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Up to `size` bytes, at least one, 0 when there are no more.
  std::size_t read(std::byte* data, std::size_t size);
  /// Waits for the end. Empty if the work succeeded, otherwise the reason, as the end of a sentence.
  std::string wait();

 private:
  pid_t child_ = -1;
  int input_ = -1;
  std::uint64_t memory_;
  std::uint64_t seconds_;
};

}  // namespace trivelet::io
