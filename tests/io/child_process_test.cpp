// Jobs in a child process: their results, and the report of crashes, exceeded limits and jobs that never end.
#include "io/volume/child_process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "trivelet/error.h"

namespace trivelet::io {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{64} << 20;
constexpr std::uint64_t kSeconds = 60;

std::vector<std::byte> all_of(ChildProcess& child) {
  std::vector<std::byte> bytes;
  std::byte piece[1000];
  while (const std::size_t n = child.read(piece, sizeof piece)) bytes.insert(bytes.end(), piece, piece + n);
  return bytes;
}

/// Why the work did not succeed.
std::string reason(const std::function<bool(const ChildProcess::Write&)>& work, std::uint64_t seconds = kSeconds) {
  ChildProcess child(work, kMemory, seconds);
  EXPECT_TRUE(all_of(child).empty());
  return child.wait();
}

TEST(ChildProcess, GivesWhatItWritesAndPrintsNothing) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const std::vector<std::byte> wanted(300'000, std::byte{7});  // more than a pipe holds
  ChildProcess child(
      [&](const ChildProcess::Write& write) {
        write(wanted.data(), wanted.size());
        std::printf("out");
        std::fprintf(stderr, "error");
        std::fflush(stdout);
        return true;
      },
      kMemory, kSeconds);
  EXPECT_EQ(all_of(child), wanted);
  EXPECT_EQ(child.wait(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(ChildProcess, TellsOfCrashesAndRefusals) {
  EXPECT_NE(reason([](const auto&) {
              std::signal(SIGSEGV, SIG_DFL);  // a sanitizer's own handler would end it in its own way
              return ::raise(SIGSEGV) != 0;
            }).find("it crashed (signal 11"),
            std::string::npos);
  EXPECT_NE(reason([](const auto&) -> bool {
              std::signal(SIGABRT, SIG_DFL);
              std::abort();
            }).find("it crashed (signal 6"),
            std::string::npos);
  EXPECT_EQ(reason([](const auto&) -> bool { fail(ErrorKind::kBadStream, "damaged"); }), "it cannot read them");
  EXPECT_EQ(reason([](const auto&) { return false; }), "it cannot read them");
  EXPECT_EQ(reason([](const auto&) -> bool { ::_exit(3); }), "it gave up (exit code 3)");
}

TEST(ChildProcess, TakesNoMoreMemoryThanItMay) {
  const auto take = [](std::size_t bytes) {
    return [bytes](const ChildProcess::Write&) {
      constexpr std::size_t kPiece = std::size_t{1} << 20;
      void* last = nullptr;
      for (std::size_t taken = 0; taken < bytes; taken += kPiece) {
        // Not by new, whose sanitizer has memory of its own.
        void* piece = ::mmap(nullptr, kPiece, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (piece == MAP_FAILED) {
          ::munmap(last, kPiece);  // a sanitizer needs some to throw
          throw std::bad_alloc();
        }
        last = piece;
      }
      return true;
    };
  };
  EXPECT_EQ(reason(take(kMemory / 2)), "");
  EXPECT_EQ(reason(take(2 * kMemory)),
            "it needs more than the " + std::to_string(kMemory) + " bytes of memory that it may take");
}

TEST(ChildProcess, TakesNoMoreTimeThanItMay) {
  const auto hang = [](const ChildProcess::Write&) -> bool {
    for (std::atomic<int> i = 0;; ++i) {
    }
  };
  EXPECT_EQ(reason(hang, 1), "it takes more than the 1 second that it may");
}

// Who has enough of it ends it: nothing waits for a child that never ends.
TEST(ChildProcess, EndsWithItsOwner) {
  ChildProcess child(
      [](const ChildProcess::Write&) {
        for (;;) ::pause();
        return true;
      },
      kMemory, kSeconds);
}

}  // namespace
}  // namespace trivelet::io
