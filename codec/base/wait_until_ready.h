// Reading and writing where somebody set O_NONBLOCK: standard input and output share that flag with the other programs
// that have them, so that it cannot simply be taken away.
#pragma once

#include <poll.h>

#include <cerrno>

namespace trivelet {

/// To be asked with errno as read() or write() left it: false unless that says "later"; else waits until `file` has
/// what `events` (POLLIN, POLLOUT) asks for, and says true: to be tried again.
inline bool wait_until_ready(int file, short events) {
  if (errno != EAGAIN) return false;
  pollfd wanted{file, events, 0};
  return ::poll(&wanted, 1, -1) >= 0 || errno == EINTR;
}

}  // namespace trivelet
