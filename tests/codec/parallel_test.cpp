// The thread pool: every index runs once, errors of bodies are thrown, and the pool works if the system starts no more
// threads.

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <vector>

#include "codec/threads/parallel.h"
#include "tests/support/one_of.h"
#include "trivelet/error.h"

namespace trivelet {
namespace {

bool runs_every_index_once(ThreadPool& pool) {
  for (const int count : {0, 1, 7, 1000}) {
    std::vector<std::atomic<int>> seen(static_cast<std::size_t>(count));
    std::atomic<bool> known = true;
    pool.parallel_for(count, [&](int i, int worker) {
      ++seen[static_cast<std::size_t>(i)];
      if (worker < 0 || worker >= pool.threads()) known = false;
    });
    if (!known) return false;
    for (const std::atomic<int>& n : seen)
      if (n != 1) return false;
  }
  return true;
}

TEST(ThreadPool, RunsEveryIndexOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    EXPECT_TRUE(runs_every_index_once(pool));
    EXPECT_THROW(pool.parallel_for(100, [](int i, int) { require(i != 50, ErrorKind::kBadStream, "fifty"); }), Error);
    EXPECT_TRUE(runs_every_index_once(pool));
  }
  EXPECT_THROW(ThreadPool(1025), Error);
  EXPECT_THROW(ThreadPool(-1), Error);
}

// Once it slept for ever.
TEST(ThreadPool, WorksWithTheThreadsThereAre) {
  if (test::kSanitized) GTEST_SKIP() << "the sanitizer needs the address space";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{200} << 20);
    const rlimit limit{most, most};
    if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(2);
    ThreadPool pool(1024);
    _exit(pool.threads() < 1024 && runs_every_index_once(pool) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace trivelet
