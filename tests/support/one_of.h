// Sampling of large test grids (every byte, every option). TRIVELET_FULL=1 in the environment, which tests/run.sh
// --full sets, runs all cases.
#pragma once

#include <cstdlib>
#include <cstring>

namespace trivelet::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;  ///< runs take ten times as long
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

inline bool full() {
  const char* set = std::getenv("TRIVELET_FULL");
  return set != nullptr && std::strcmp(set, "") != 0 && std::strcmp(set, "0") != 0;
}

/// Selects every n-th case, or all of them. Choose an `n` that is coprime to the numbers of options, so that every
/// option is tested.
class OneOf {
 public:
  explicit OneOf(unsigned n) : n_(full() ? 1 : n) {}
  bool operator()() { return count_++ % n_ == 0; }

 private:
  unsigned n_, count_ = 0;
};

}  // namespace trivelet::test
