// Tests over everything there is (every byte, every option), thinned out under sanitizers.
#pragma once

namespace trivelet::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Says which cases to try: all of them, or with a sanitizer, which takes ten times as long, one of `n`. Choose an `n`
/// that has no divisor in common with the numbers of options, so that each of them has its turn.
class OneOf {
 public:
  explicit OneOf(unsigned n) : n_(kSanitized ? n : 1) {}
  bool operator()() { return count_++ % n_ == 0; }

 private:
  unsigned n_, count_ = 0;
};

}  // namespace trivelet::test
