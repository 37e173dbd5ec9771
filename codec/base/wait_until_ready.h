// Waiting on files that have O_NONBLOCK set. Standard input and output share that flag with other programs, so it must
// not be cleared.
#pragma once

#include <poll.h>

#include <cerrno>

namespace trivelet {

/// Call it with errno as read() or write() left it. If errno is EAGAIN, waits until `file` is ready for `events`
/// (POLLIN, POLLOUT) and returns true; the call can then be repeated. Otherwise returns false.
inline bool wait_until_ready(int file, short events) {
  if (errno != EAGAIN) return false;
  pollfd wanted{file, events, 0};
  return ::poll(&wanted, 1, -1) >= 0 || errno == EINTR;
}

}  // namespace trivelet
