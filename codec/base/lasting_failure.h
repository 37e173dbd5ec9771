// A failure that lasts. A call that failed in the middle of its work (no memory, a read that the system refused) leaves
// its object in an unknown state. A later call could be wrong, for instance report a good stream as damaged, so it
// throws the first error again.
#pragma once

#include <exception>

#include "trivelet/error.h"

namespace trivelet {

class LastingFailure {
 public:
  /// Runs call(). If an earlier call failed for a reason other than the stream or the arguments, throws that earlier
  /// error instead.
  template <class Call>
  auto over(const Call& call) {
    if (failed_) std::rethrow_exception(failed_);
    try {
      return call();
    } catch (const Error& e) {
      if (e.kind() != ErrorKind::kBadStream && e.kind() != ErrorKind::kBadArgument) failed_ = std::current_exception();
      throw;
    } catch (...) {
      failed_ = std::current_exception();
      throw;
    }
  }

 private:
  std::exception_ptr failed_;
};

}  // namespace trivelet
