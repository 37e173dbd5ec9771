// Holds standard error back in a temporary file, and prints it without the lines of libjxl (".../lib/jxl/decode.cc:12:
// JXL_FAILURE: ...").
#include "io/video/held_messages.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>

namespace trivelet::io {

namespace {

constexpr std::string_view kLibrary = "lib/jxl/";

struct Held {
  std::mutex mutex;
  int users = 0;
  int printed = -1;           ///< standard error as it was
  std::FILE* file = nullptr;  ///< what stands in its place
};

Held& all_held() {
  static Held one;
  return one;
}

/// Without lines of the library. Something of ours may stand before one, on the same line.
std::string without_library(std::string text) {
  for (std::size_t at = text.find(kLibrary); at != std::string::npos; at = text.find(kLibrary, at)) {
    const std::size_t before = text.find_last_of(" \t\r\n", at);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = text.find('\n', at);
    text.erase(begin, end == std::string::npos ? end : end + 1 - begin);
    at = begin;
  }
  return text;
}

void print(int to, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t n = ::write(to, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string content_of(int file) {
  std::string text;
  char some[4096];
  for (::off_t at = 0;;) {
    const ::ssize_t n = ::pread(file, some, sizeof some, at);
    if (n <= 0) return text;
    text.append(some, static_cast<std::size_t>(n));
    at += n;
  }
}

}  // namespace

HeldMessages::HeldMessages(bool on) : on_(on) {
  if (!on_) return;
  Held& h = all_held();
  const std::lock_guard lock(h.mutex);
  if (h.users++ > 0) return;
  std::fflush(stderr);
  h.file = std::tmpfile();
  h.printed = h.file != nullptr ? ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
  if (h.printed >= 0) ::dup2(::fileno(h.file), STDERR_FILENO);
}

HeldMessages::~HeldMessages() {
  if (!on_) return;
  Held& h = all_held();
  const std::lock_guard lock(h.mutex);
  if (--h.users > 0) return;
  std::fflush(stderr);
  if (h.printed >= 0) {
    ::dup2(h.printed, STDERR_FILENO);
    print(h.printed, without_library(content_of(::fileno(h.file))));
    ::close(h.printed);
  }
  if (h.file != nullptr) std::fclose(h.file);
  h.printed = -1;
  h.file = nullptr;
}

}  // namespace trivelet::io
