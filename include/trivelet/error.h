// The one exception type of Trivelet and the helpers that throw it.
//
// An Error is thrown at setup, once per stream element or once per chunk, never per coefficient. Its message names the
// value seen, the limit and what to do. Libraries print nothing; programs map the kind to an exit code.
#pragma once

#include <stdexcept>
#include <string>

namespace trivelet {

enum class ErrorKind {
  kBadArgument,  ///< the caller asked for something outside the documented range           (exit code 2)
  kIo,           ///< the operating system refused to read or write                          (exit code 3)
  kBadStream,    ///< the input is corrupt, truncated or not what it claims to be            (exit code 4)
  kUnsupported,  ///< valid, but this build, version or device cannot do it                  (exit code 5)
  kMismatch,     ///< a verification or comparison failed                                    (exit code 6)
  kInternal,     ///< a broken invariant of our own                                          (exit code 1)
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

[[noreturn]] inline void fail(ErrorKind kind, const std::string& message) { throw Error(kind, message); }

inline void require(bool ok, ErrorKind kind, const std::string& message) {
  if (!ok) fail(kind, message);
}

}  // namespace trivelet
