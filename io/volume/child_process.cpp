// Runs a function in a child process with limits, and reads its output.

#include "io/volume/child_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <new>

#include "codec/base/limits.h"
#include "trivelet/error.h"

namespace trivelet::io {

namespace {

constexpr int kFailed = 10;
constexpr int kNoMemory = 11;

/// Address space of this process in bytes.
std::uint64_t addresses() {
  std::FILE* f = std::fopen("/proc/self/statm", "r");
  if (!f) return 0;
  unsigned long long pages = 0;
  const bool read = std::fscanf(f, "%llu", &pages) == 1;
  std::fclose(f);
  return read ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

void set_limit(int resource, std::uint64_t soft) {
  rlimit limit = {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return;
  limit.rlim_cur = std::min<rlim_t>(soft, limit.rlim_cur);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

/// True if the system gives this process less than `memory` bytes more.
bool gives_less_than(std::uint64_t memory) {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  return limit.rlim_cur - std::min<rlim_t>(limit.rlim_cur, addresses()) < memory;
}

/// The child's environment: no terminal, no core file, none of the program's signal handlers.
void confine(std::uint64_t memory, std::uint64_t seconds) {
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (const int null = ::open("/dev/null", O_RDWR); null >= 0) {
    ::dup2(null, 0);
    ::dup2(null, 1);
    ::dup2(null, 2);
  }
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_CPU, seconds);
  const std::uint64_t before = addresses();
  if (before > 0 && memory < ~std::uint64_t{0} - before) set_limit(RLIMIT_AS, before + memory);
}

[[noreturn]] void run(const std::function<bool(const ChildProcess::Write&)>& work, int output) {
  const auto write = [output](const std::byte* data, std::size_t size) {
    while (size > 0) {
      const ssize_t n = ::write(output, data, size);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) ::_exit(kFailed);
      data += n;
      size -= static_cast<std::size_t>(n);
    }
  };
  int result = kFailed;
  try {
    if (work(write)) result = 0;
  } catch (const std::bad_alloc&) {
    result = kNoMemory;
  } catch (...) {
    result = kFailed;
  }
  ::_exit(result);  // without destructors, and without flushing the parent's buffers
}

}  // namespace

ChildProcess::ChildProcess(const std::function<bool(const Write&)>& work, std::uint64_t memory, std::uint64_t seconds)
    : memory_(memory), is_limited_(gives_less_than(memory)), seconds_(seconds) {
  // A child of another thread must not inherit the writing end, because closing it marks the end of the data.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  int ends[2] = {-1, -1};
  require(::pipe2(ends, O_CLOEXEC) == 0, ErrorKind::kIo,
          std::string("cannot make a pipe to another process: ") + std::strerror(errno));
  child_ = ::fork();
  const int error = errno;
  if (child_ == 0) {
    ::close(ends[0]);
    confine(memory, seconds);
    run(work, ends[1]);
  }
  ::close(ends[1]);
  input_ = ends[0];
  if (child_ < 0) {
    ::close(input_);
    fail(ErrorKind::kIo, std::string("cannot start another process: ") + std::strerror(error));
  }
}

ChildProcess::~ChildProcess() {
  if (child_ > 0) ::kill(child_, SIGKILL);
  (void)end();
}

std::size_t ChildProcess::read(std::byte* data, std::size_t size) {
  if (input_ < 0) return 0;
  for (;;) {
    const ssize_t n = ::read(input_, data, size);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno != EINTR) return 0;
  }
}

/// Waits for the child. Its status, or 0 if another thread has waited for it.
int ChildProcess::end() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
  if (child_ <= 0) return 0;
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(child_, &status, 0);
  while (ended < 0 && errno == EINTR);
  child_ = -1;
  return ended < 0 ? 0 : status;
}

std::string ChildProcess::wait() {
  const int status = end();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory && is_limited_) throw std::bad_alloc();
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoMemory)
    return "it needs more than the " + count_of(memory_, "byte") + " of memory that it may take";
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU)
    return "it takes more than the " + count_of(seconds_, "second") + " that it may";
  if (WIFSIGNALED(status))
    return "it crashed (signal " + std::to_string(WTERMSIG(status)) + ", " + ::strsignal(WTERMSIG(status)) + ")";
  return WEXITSTATUS(status) == kFailed
             ? std::string("it cannot read them") + (is_limited_ ? ", or it gets too little memory (ulimit -v)" : "")
             : "it gave up (exit code " + std::to_string(WEXITSTATUS(status)) + ")";
}

}  // namespace trivelet::io
