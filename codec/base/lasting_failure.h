// A failure that lasts. What failed in the middle of its work, for want of memory or because the system refused to
// read, no longer knows where it stands: what it would say next would be wrong, for instance that a good stream is
// damaged.
#pragma once

#include <exception>

#include "trivelet/error.h"

namespace trivelet {

class LastingFailure {
 public:
  /// Runs call(). If an earlier call failed for a reason other than the stream or the caller, it throws that error
  /// again.
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
