// How fuzzers say that a result is wrong.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace trivelet::fuzz {

[[noreturn]] inline void wrong(const char* what) {
  std::fprintf(stderr, "wrong: %s\n", what);
  std::abort();
}

}  // namespace trivelet::fuzz
