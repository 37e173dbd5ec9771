// Messages on standard error while a library that prints by itself is held back: those of other threads are printed in
// their order, those of the library are not.
#include "io/video/held_messages.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

namespace trivelet::io {
namespace {

/// What `work` prints on standard error.
template <typename Work>
std::string printed_by(Work work) {
  std::fflush(stderr);
  std::FILE* const file = std::tmpfile();
  const int kept = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  work();
  std::fflush(stderr);
  ::dup2(kept, STDERR_FILENO);
  ::close(kept);
  std::string text(10000, '\0');
  text.resize(static_cast<std::size_t>(std::max<::ssize_t>(0, ::pread(::fileno(file), text.data(), text.size(), 0))));
  std::fclose(file);
  return text;
}

TEST(HeldMessages, OursArePrintedAndTheLibrarysAreNot) {
  EXPECT_EQ(printed_by([] {
              std::fputs("before\n", stderr);
              {
                const HeldMessages held(true);
                std::fputs("./lib/jxl/decode.cc:12: JXL_FAILURE: no\n", stderr);
                std::thread([] { std::fputs("of a thread\n", stderr); }).join();
                std::fputs("50 %\r/build/lib/jxl/a.h:1: JXL_RETURN_IF_ERROR code=1: x\n", stderr);
                std::fputs("100 %", stderr);
              }
              std::fputs(" behind\n", stderr);
            }),
            "before\nof a thread\n50 %\r100 % behind\n");
}

TEST(HeldMessages, SeveralAtOnce) {
  EXPECT_EQ(printed_by([] {
              const HeldMessages none(false);
              auto first = std::make_unique<HeldMessages>(true);
              const auto second = std::make_unique<HeldMessages>(true);
              std::fputs("one\n", stderr);
              first.reset();  // not in the order of their making
              std::fputs("two\n./lib/jxl/a.cc:1: JXL_FAILURE", stderr);
            }),
            "one\ntwo\n");
}

}  // namespace
}  // namespace trivelet::io
